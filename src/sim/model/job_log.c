/* job_log.c - see job_log.h. */
#include "sim/model/job_log.h"

#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/units.h"

enum { COLUMNS_MAX = 256, FIELDS_MAX = 5 };

struct field {
    struct str text;
    uint32_t column; /* from 1, in bytes */
};

/* A reader that cuts lines into fields, and keeps the wanted ones in the order of `wanted`. */
struct csv {
    struct arena *arena;
    struct str rest;
    uint32_t line;
    const char *const *wanted;
    uint32_t wanted_count;
    uint32_t columns;           /* columns of the heading */
    uint8_t place[COLUMNS_MAX]; /* index in fields[] of each column; FIELDS_MAX: ignored */
    struct field fields[FIELDS_MAX];
    struct error *error;
};

static int csv_refuse(const struct csv *csv, const struct field *field, const char *name, const char *wanted)
{
    return error_set(csv->error, ERROR_INVALID, "%u:%u: %s \"%.*s\": expected %s", csv->line, field->column,
                     name, (int)(field->text.len < 64 ? field->text.len : 64), field->text.data, wanted);
}

/* Takes the next line that is not empty. Returns false at the end. */
static bool csv_line(struct csv *csv, struct str *ret_line)
{
    while (csv->rest.len > 0) {
        struct str line = csv->rest, rest = {0};
        if (!str_cut(csv->rest, '\n', &line, &rest))
            line = csv->rest;
        csv->rest = rest;
        csv->line++;
        if (str_trim(line).len == 0)
            continue;
        if (line.data[line.len - 1] == '\r')
            line.len--;
        *ret_line = line;
        return true;
    }
    return false;
}

/* Takes one field off *rest. Returns false if a quote does not end. A line that ends with a comma has one
 * more field. */
static bool csv_field(struct csv *csv, struct str *rest, struct str *ret_text, bool *ret_more)
{
    struct str text = *rest, head = text, tail = {0};
    if (text.len == 0 || text.data[0] != '"') {
        *ret_more = str_cut(text, ',', &head, &tail);
        *ret_text = str_trim(*ret_more ? head : text);
        *rest = tail;
        return true;
    }
    char *copy = arena_alloc(csv->arena, text.len);
    size_t len = 0, at = 1;
    for (;; at++) {
        if (at >= text.len)
            return false;
        if (text.data[at] == '"' && (at + 1 == text.len || text.data[at + 1] != '"'))
            break;
        at += text.data[at] == '"';
        copy[len++] = text.data[at];
    }
    at++;
    *ret_more = at < text.len && text.data[at] == ',';
    *ret_text = (struct str){copy, len};
    *rest = *ret_more ? (struct str){text.data + at + 1, text.len - at - 1} : (struct str){0};
    return *ret_more || at == text.len;
}

/* Cuts a line into fields, and keeps the wanted ones. */
static int csv_cut(struct csv *csv, struct str line, bool heading)
{
    struct str rest = line;
    uint32_t count = 0;
    for (bool more = true; more; count++) {
        struct field field = {.column =
                                  (uint32_t)(rest.len ? rest.data - line.data : (ptrdiff_t)line.len) + 1};
        if (!csv_field(csv, &rest, &field.text, &more))
            return error_set(csv->error, ERROR_INVALID, "%u:%u: a quote does not end, or text follows it",
                             csv->line, field.column);
        if (count == (heading ? COLUMNS_MAX : csv->columns))
            return error_set(csv->error, ERROR_INVALID, "%u:%u: expected %s%u fields", csv->line,
                             field.column, heading ? "at most " : "", heading ? COLUMNS_MAX : csv->columns);
        if (heading) {
            csv->place[count] = FIELDS_MAX;
            for (uint32_t i = 0; i < csv->wanted_count; i++)
                if (str_is(field.text, csv->wanted[i]))
                    csv->place[count] = (uint8_t)i;
        } else if (csv->place[count] < FIELDS_MAX) {
            csv->fields[csv->place[count]] = field;
        }
    }
    if (heading)
        csv->columns = count;
    else if (count < csv->columns)
        return error_set(csv->error, ERROR_INVALID, "%u:%zu: expected %u fields, got %u", csv->line,
                         line.len + 1, csv->columns, count);
    return 0;
}

static int csv_heading(struct csv *csv)
{
    struct str line;
    if (!csv_line(csv, &line))
        return error_set(csv->error, ERROR_INVALID, "1:1: the file is empty");
    int code = csv_cut(csv, line, true);
    for (uint32_t i = 0; i < csv->wanted_count && code == 0; i++) {
        bool found = false;
        for (uint32_t k = 0; k < csv->columns; k++)
            found = found || csv->place[k] == i;
        if (!found)
            code = error_set(csv->error, ERROR_INVALID, "%u:1: the first line names no column \"%s\"",
                             csv->line, csv->wanted[i]);
    }
    return code;
}

/* Reads the next line. *ret is whether there was one. */
static int csv_next(struct csv *csv, bool *ret)
{
    struct str line;
    *ret = csv_line(csv, &line);
    return *ret ? csv_cut(csv, line, false) : 0;
}

static size_t csv_lines(struct str text)
{
    size_t count = 1;
    for (size_t i = 0; i < text.len; i++)
        count += text.data[i] == '\n';
    return count;
}

/* --- values --------------------------------------------------------------------------------------------- */

static bool log_time(struct str text, double *ret_s)
{
    int64_t time_ns;
    char copy[40], *end;
    if (time_parse(text, &time_ns)) {
        *ret_s = (double)time_ns / (double)NS_PER_SECOND;
        return true;
    }
    if (text.len == 0 || text.len >= sizeof copy || text.data[0] < '0' || text.data[0] > '9')
        return false;
    memcpy(copy, text.data, text.len);
    copy[text.len] = 0;
    *ret_s = strtod(copy, &end);
    return !*end && *ret_s <= 1e12;
}

static bool log_state(struct str text, enum rate_end *ret_end)
{
    static const char *const others[] = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "OUT_OF_MEMORY",
                                         "PENDING",   "PREEMPTED", "REQUEUED",  "RESIZING", "REVOKED",
                                         "RUNNING",   "SUSPENDED", "TIMEOUT"};
    *ret_end = RATE_END_OTHER;
    if (str_is(text, "FAILED"))
        *ret_end = RATE_END_FAILED;
    else if (str_is(text, "NODE_FAIL"))
        *ret_end = RATE_END_NODE_FAIL;
    else if (!str_starts(text, STR("CANCELLED by "))) {
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            if (str_is(text, others[i]))
                return true;
        return false;
    }
    return true;
}

/* --- jobs ----------------------------------------------------------------------------------------------- */

enum { JOB_NAME, JOB_MACHINES, JOB_START, JOB_END, JOB_STATE, JOB_FIELDS };
static const char *const job_fields[JOB_FIELDS] = {"job", "machines", "start", "end", "state"};

static int read_job(const struct csv *csv, struct rate_job *ret_job)
{
    int64_t machines;
    const struct field *fields = csv->fields;
    if (!str_to_i64(fields[JOB_MACHINES].text, 1, JOB_LOG_MACHINES_MAX, &machines))
        return csv_refuse(csv, &fields[JOB_MACHINES], "machines", "a number from 1 to 10000000");
    if (!log_time(fields[JOB_START].text, &ret_job->start_s))
        return csv_refuse(csv, &fields[JOB_START], "start",
                          "a time such as 2026-03-01T04:00:00Z, or seconds");
    if (!log_time(fields[JOB_END].text, &ret_job->end_s) || ret_job->end_s < ret_job->start_s)
        return csv_refuse(csv, &fields[JOB_END], "end", "a time from the start on");
    if (!log_state(fields[JOB_STATE].text, &ret_job->end))
        return csv_refuse(csv, &fields[JOB_STATE], "state",
                          "a state of Slurm, such as COMPLETED or NODE_FAIL");
    ret_job->machines = (uint32_t)machines;
    return 0;
}

static int compare_jobs(const void *a, const void *b, void *context)
{
    const struct job_log *log = context;
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    int order = str_compare(log->names[left], log->names[right]);
    if (order)
        return order;
    if (log->jobs[left].end_s != log->jobs[right].end_s)
        return log->jobs[left].end_s < log->jobs[right].end_s ? -1 : 1;
    return left < right ? -1 : left > right;
}

int job_log_read_jobs(struct arena *arena, struct str text, struct job_log *ret_log, struct error *error)
{
    struct csv csv = {
        .arena = arena, .rest = text, .wanted = job_fields, .wanted_count = JOB_FIELDS, .error = error};
    size_t lines = csv_lines(text);
    struct job_log log = {0};
    if (lines > JOB_LOG_LINES_MAX)
        return error_set(error, ERROR_LIMIT, "1:1: more than %d lines", JOB_LOG_LINES_MAX);
    int code = csv_heading(&csv);
    if (code < 0)
        return code;
    log.jobs = ARENA_ARRAY(arena, struct rate_job, lines);
    log.names = ARENA_ARRAY(arena, struct str, lines);
    log.by_name = ARENA_ARRAY(arena, uint32_t, lines);
    for (bool more;; log.job_count++) {
        code = csv_next(&csv, &more);
        if (code < 0)
            return code;
        if (!more)
            break;
        if (read_job(&csv, &log.jobs[log.job_count]) < 0)
            return ERROR_INVALID;
        log.names[log.job_count] = csv.fields[JOB_NAME].text;
        log.by_name[log.job_count] = (uint32_t)log.job_count;
    }
    qsort_r(log.by_name, log.job_count, sizeof *log.by_name, compare_jobs, &log);
    *ret_log = log;
    return 0;
}

/* --- checks --------------------------------------------------------------------------------------------- */

enum { CHECK_JOB, CHECK_TIME, CHECK_FIELDS };
static const char *const check_fields[CHECK_FIELDS] = {"job", "time"};

/* Finds the job with this name whose end is nearest to the time. Returns false if there is none. */
static bool job_at(const struct job_log *log, struct str name, double at_s, uint32_t *ret_job)
{
    size_t low = 0, high = log->job_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint32_t job = log->by_name[middle];
        int order = str_compare(log->names[job], name);
        if (order < 0 || (order == 0 && log->jobs[job].end_s < at_s))
            low = middle + 1;
        else
            high = middle;
    }
    bool after = low < log->job_count && str_equal(log->names[log->by_name[low]], name);
    bool before = low > 0 && str_equal(log->names[log->by_name[low - 1]], name);
    if (!after && !before)
        return false;
    if (after && before)
        after = log->jobs[log->by_name[low]].end_s - at_s < at_s - log->jobs[log->by_name[low - 1]].end_s;
    *ret_job = log->by_name[after ? low : low - 1];
    return true;
}

int job_log_read_checks(struct arena *arena, struct str text, struct job_log *log, struct error *error)
{
    struct csv csv = {
        .arena = arena, .rest = text, .wanted = check_fields, .wanted_count = CHECK_FIELDS, .error = error};
    size_t lines = csv_lines(text), count = 0;
    if (lines > JOB_LOG_LINES_MAX)
        return error_set(error, ERROR_LIMIT, "1:1: more than %d lines", JOB_LOG_LINES_MAX);
    int code = csv_heading(&csv);
    if (code < 0)
        return code;
    struct rate_check *checks = ARENA_ARRAY(arena, struct rate_check, lines);
    for (bool more;; count++) {
        code = csv_next(&csv, &more);
        if (code < 0)
            return code;
        if (!more)
            break;
        if (!log_time(csv.fields[CHECK_TIME].text, &checks[count].at_s))
            return csv_refuse(&csv, &csv.fields[CHECK_TIME], "time",
                              "a time such as 2026-03-01T04:00:00Z, or seconds");
        if (!job_at(log, csv.fields[CHECK_JOB].text, checks[count].at_s, &checks[count].job))
            return csv_refuse(&csv, &csv.fields[CHECK_JOB], "job", "a job of the log");
    }
    log->checks = checks;
    log->check_count = count;
    return 0;
}
