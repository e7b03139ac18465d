/* trace.c - shared by the formats: lines, places in messages, the order of jobs. */
#include "sim/trace/internal.h"

#include <stdlib.h>

#include "base/units.h"

enum { TRACE_VALUE_SHOWN = 40, TRACE_DIGITS_MAX = 15 };

const char *const trace_format_names[TRACE_FORMATS] = {"swf",  "sacct",   "phalanx", "helios",
                                                       "acme", "alibaba", "philly"};

const char *const trace_tag_names[TRACE_TAGS] = {"queue", "partition", "qos", "user", "account"};

bool trace_next_line(struct trace_reader *reader)
{
    struct str line, rest;
    if (reader->text.len == 0)
        return false;
    if (!str_cut(reader->text, '\n', &line, &rest)) {
        line = reader->text;
        rest = (struct str){0};
    }
    if (line.len > 0 && line.data[line.len - 1] == '\r')
        line.len--;
    reader->line = line;
    reader->text = rest;
    reader->number++;
    return true;
}

int trace_wrong(const struct trace_reader *reader, struct str value, const char *what, const char *wanted)
{
    size_t column = value.data ? (size_t)(value.data - reader->line.data) + 1 : reader->line.len + 1;
    char shown[TRACE_VALUE_SHOWN + 1];
    size_t len = 0;
    for (size_t i = 0; i < value.len && len < TRACE_VALUE_SHOWN; i++)
        shown[len++] = value.data[i] >= ' ' && value.data[i] <= '~' ? value.data[i] : '?';
    shown[len] = 0;
    return error_set(reader->error, ERROR_INVALID, "%s:%u:%zu: %s: expected %s, got \"%s\"", reader->file,
                     reader->number, column, what, wanted, shown);
}

bool trace_number(struct str text, double *ret)
{
    bool negative = text.len > 0 && text.data[0] == '-', point = false;
    double value = 0, scale = 1;
    size_t digits = 0;
    for (size_t i = negative; i < text.len; i++) {
        if (text.data[i] == '.' && !point) {
            point = true;
            continue;
        }
        if (text.data[i] < '0' || text.data[i] > '9' || ++digits > TRACE_DIGITS_MAX)
            return false;
        value = 10 * value + (text.data[i] - '0');
        scale *= point ? 10 : 1;
    }
    if (digits == 0)
        return false;
    *ret = (negative ? -value : value) / scale;
    return true;
}

/* Reads an offset such as "+08:00", "-07:30" or "Z", in seconds. */
static bool trace_offset(struct str text, double *ret_s)
{
    int64_t hours, minutes;
    *ret_s = 0;
    if (text.len == 0 || str_is(text, "Z"))
        return true;
    if (text.len != 6 || (text.data[0] != '+' && text.data[0] != '-') || text.data[3] != ':' ||
        !str_to_i64((struct str){text.data + 1, 2}, 0, 14, &hours) ||
        !str_to_i64((struct str){text.data + 4, 2}, 0, 59, &minutes))
        return false;
    *ret_s = (double)(3600 * hours + 60 * minutes) * (text.data[0] == '-' ? -1 : 1);
    return true;
}

bool trace_date(struct str text, double *ret_s)
{
    enum { DATE_BYTES = 19 };
    char stamp[DATE_BYTES + 2];
    int64_t time_ns;
    double offset_s;
    if (text.len < DATE_BYTES || (text.data[10] != 'T' && text.data[10] != ' '))
        return false;
    memcpy(stamp, text.data, DATE_BYTES);
    stamp[10] = 'T';
    stamp[DATE_BYTES] = 'Z';
    if (!time_parse((struct str){stamp, DATE_BYTES + 1}, &time_ns) ||
        !trace_offset((struct str){text.data + DATE_BYTES, text.len - DATE_BYTES}, &offset_s))
        return false;
    *ret_s = (double)(time_ns / NS_PER_SECOND) - offset_s;
    return true;
}

enum trace_end trace_end_of(struct str state)
{
    if (str_is(state, "FAILED") || str_is(state, "OUT_OF_MEMORY") || str_is(state, "BOOT_FAIL"))
        return TRACE_FAILED;
    return str_starts(state, STR("CANCELLED")) ? TRACE_CANCELLED : TRACE_COMPLETED;
}

static uint32_t trace_name(struct trace *trace, struct str text)
{
    uintptr_t place = (uintptr_t)str_map_get(&trace->name_places, text);
    if (place)
        return (uint32_t)place - 1;
    struct str name = arena_str(&trace->arena, text);
    vec_push(&trace->names, name);
    str_map_put(&trace->name_places, name, (void *)(uintptr_t)trace->names.len);
    return (uint32_t)trace->names.len - 1;
}

int trace_tag(const struct trace_reader *reader, struct trace_job *job, enum trace_tag tag, struct str text)
{
    if (text.len > TRACE_NAME_MAX)
        return trace_wrong(reader, text, trace_tag_names[tag], "at most 255 bytes");
    job->tags[tag] = text.len ? trace_name(reader->trace, text) : 0;
    return 0;
}

int trace_add(const struct trace_reader *reader, const struct trace_job *job)
{
    if (reader->trace->jobs.len == TRACE_JOBS_MAX)
        return error_set(reader->error, ERROR_LIMIT, "%s:%u: more than %d jobs", reader->file, reader->number,
                         TRACE_JOBS_MAX);
    vec_push(&reader->trace->jobs, *job);
    return 0;
}

static int trace_by_submit(const void *a, const void *b)
{
    const struct trace_job *first = a, *second = b;
    if (first->submit_s != second->submit_s)
        return first->submit_s < second->submit_s ? -1 : 1;
    if (first->chips != second->chips)
        return first->chips < second->chips ? -1 : 1;
    if (first->runtime_s != second->runtime_s)
        return first->runtime_s < second->runtime_s ? -1 : 1;
    if (first->end != second->end)
        return first->end < second->end ? -1 : 1;
    for (int tag = 0; tag < TRACE_TAGS; tag++)
        if (first->tags[tag] != second->tags[tag])
            return first->tags[tag] < second->tags[tag] ? -1 : 1;
    return (first->priority > second->priority) - (first->priority < second->priority);
}

/* Sorts by submission, then by all other fields, so that the order does not depend on the sorting
 * function. */
static void trace_order(struct trace *trace)
{
    bool sorted = true;
    for (size_t i = 1; i < trace->jobs.len && sorted; i++)
        sorted = trace->jobs.items[i - 1].submit_s <= trace->jobs.items[i].submit_s;
    if (!sorted)
        qsort(trace->jobs.items, trace->jobs.len, sizeof *trace->jobs.items, trace_by_submit);
    double first_s = trace->jobs.len ? trace->jobs.items[0].submit_s : 0;
    for (size_t i = 0; i < trace->jobs.len; i++)
        trace->jobs.items[i].submit_s -= first_s;
}

int trace_read(struct trace *ret_trace, enum trace_format format, struct str text, const char *file,
               const struct trace_terms *terms, struct error *error)
{
    struct trace trace = {0};
    struct trace_reader reader = {
        .trace = &trace, .terms = terms, .file = file, .error = error, .text = text};
    vec_push(&trace.names, ((struct str){0}));
    CHECK(format < TRACE_FORMATS && format != TRACE_PHALANX);
    int rc = format == TRACE_SWF      ? swf_read(&reader)
             : format == TRACE_SACCT  ? sacct_read(&reader)
             : format == TRACE_PHILLY ? philly_read(&reader)
                                      : csv_read(&reader, format);
    if (rc < 0) {
        trace_done(&trace);
        return rc;
    }
    trace_order(&trace);
    *ret_trace = trace;
    return 0;
}

void trace_done(struct trace *trace)
{
    vec_done(&trace->jobs);
    vec_done(&trace->names);
    str_map_done(&trace->name_places);
    arena_done(&trace->arena);
}
