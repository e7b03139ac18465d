/* csv.c - published job tables of clusters, as comma-separated values. The first line names the columns, in
 * any order and mixed with others.
 *
 *              Helios (SC '21)       Acme (NSDI '24)        Alibaba v2026-spot-gpu
 *   submit     submit_time           submit_time            submit_time, in seconds
 *   run time   duration              duration               duration
 *   chips      gpu_num               gpu_num                gpu_request x worker_num
 *   end        state                 state                  none: all complete
 *   queue      vc                    type                   organization
 *   others     user                  user                   gpu_model: partition, job_type: QoS
 *
 * A column named `queue`, which Helios and Acme have, is the time that a job waited. Jobs without a chip are
 * left out. */
#include "sim/trace/internal.h"

enum csv_column { CSV_SUBMIT, CSV_RUNTIME, CSV_CHIPS, CSV_RANKS, CSV_STATE, CSV_TAGS };
enum { CSV_COLUMNS = CSV_TAGS + TRACE_TAGS, CSV_FIELDS_MAX = 256 };

/* NULL: the format has no such column. */
static const char *const csv_names[TRACE_FORMATS][CSV_COLUMNS] = {
    [TRACE_HELIOS] = {"submit_time", "duration", "gpu_num", NULL, "state", [CSV_TAGS + TRACE_QUEUE] = "vc",
                      [CSV_TAGS + TRACE_USER] = "user"},
    [TRACE_ACME] = {"submit_time", "duration", "gpu_num", NULL, "state", [CSV_TAGS + TRACE_QUEUE] = "type",
                    [CSV_TAGS + TRACE_USER] = "user"},
    [TRACE_ALIBABA] = {"submit_time", "duration", "gpu_request", "worker_num", NULL,
                       [CSV_TAGS + TRACE_QUEUE] = "organization", [CSV_TAGS + TRACE_PARTITION] = "gpu_model",
                       [CSV_TAGS + TRACE_QOS] = "job_type"},
};

struct csv_layout {
    const char *const *names;
    int field[CSV_COLUMNS]; /* index in a line; -1: the file has no such column */
    size_t count;           /* number of fields in the first line */
};

/* Takes the next field of the line, without quotes around it. Returns false if none is left. */
static bool csv_field(struct str *rest, bool *more, struct str *ret)
{
    struct str field = *rest;
    size_t end = 0;
    if (!*more)
        return false;
    bool quoted = field.len > 0 && field.data[0] == '"';
    for (bool inside = quoted; end < field.len && (inside || field.data[end] != ','); end++)
        if (end > 0 && field.data[end] == '"' && quoted)
            inside = !inside;
    *more = end < field.len;
    *rest = *more ? (struct str){field.data + end + 1, field.len - end - 1} : (struct str){0};
    quoted = quoted && end >= 2 && field.data[end - 1] == '"';
    *ret = (struct str){field.data + quoted, end - 2 * quoted};
    return true;
}

static int csv_header(struct trace_reader *reader, struct csv_layout *layout)
{
    struct str rest = reader->line, field;
    bool more = true;
    for (int column = 0; column < CSV_COLUMNS; column++)
        layout->field[column] = -1;
    for (; csv_field(&rest, &more, &field); layout->count++) {
        if (layout->count == CSV_FIELDS_MAX)
            return trace_wrong(reader, field, "header", "at most 256 columns");
        for (int column = 0; column < CSV_COLUMNS; column++)
            if (layout->names[column] && layout->field[column] < 0 && str_is(field, layout->names[column]))
                layout->field[column] = (int)layout->count;
    }
    for (int column = 0; column < CSV_COLUMNS; column++)
        if (layout->names[column] && layout->field[column] < 0)
            return trace_wrong(reader, reader->line, layout->names[column],
                               "a column of this name in the first line");
    return 0;
}

/* Reads a number. An empty field is 0. */
static int csv_number(const struct trace_reader *reader, const struct csv_layout *layout,
                      enum csv_column column, const struct str *value, double *ret)
{
    if (!layout->names[column] || value[column].len == 0 || trace_number(value[column], ret))
        return 0;
    return trace_wrong(reader, value[column], layout->names[column], "a number");
}

static int csv_job(struct trace_reader *reader, const struct csv_layout *layout, const struct str *value)
{
    struct trace_job job = {.end = trace_end_of(value[CSV_STATE])};
    double chips = 0, ranks = 1;
    int rc = csv_number(reader, layout, CSV_RUNTIME, value, &job.runtime_s);
    if (rc == 0)
        rc = csv_number(reader, layout, CSV_CHIPS, value, &chips);
    if (rc == 0)
        rc = csv_number(reader, layout, CSV_RANKS, value, &ranks);
    if (rc == 0 && !trace_number(value[CSV_SUBMIT], &job.submit_s) &&
        !trace_date(value[CSV_SUBMIT], &job.submit_s))
        rc = trace_wrong(reader, value[CSV_SUBMIT], layout->names[CSV_SUBMIT],
                         "seconds, or a time such as 2025-03-01 12:00:00");
    if (rc == 0 && chips * ranks > TRACE_CHIPS_MAX)
        rc = trace_wrong(reader, value[CSV_CHIPS], layout->names[CSV_CHIPS], "at most 16777216 chips");
    for (int tag = 0; tag < TRACE_TAGS && rc == 0; tag++)
        rc = trace_tag(reader, &job, (enum trace_tag)tag, value[CSV_TAGS + tag]);
    if (rc < 0)
        return rc;
    if (job.runtime_s < 1 || chips <= 0 || ranks < 1) {
        reader->trace->left_out++;
        return 0;
    }
    chips *= ranks;
    job.chips = (uint32_t)chips + ((double)(uint32_t)chips < chips); /* a shared chip counts as a whole one */
    return trace_add(reader, &job);
}

static int csv_line(struct trace_reader *reader, const struct csv_layout *layout)
{
    struct str value[CSV_COLUMNS] = {0}, rest = reader->line, field;
    bool more = true;
    size_t at = 0;
    for (; csv_field(&rest, &more, &field); at++)
        for (int column = 0; column < CSV_COLUMNS; column++)
            if (layout->field[column] == (int)at)
                value[column] = field;
    if (at != layout->count)
        return trace_wrong(reader, reader->line, "line", "as many columns as the first line has");
    return csv_job(reader, layout, value);
}

int csv_read(struct trace_reader *reader, enum trace_format format)
{
    struct csv_layout layout = {.names = csv_names[format]};
    if (!trace_next_line(reader))
        return error_set(reader->error, ERROR_INVALID, "%s:1:1: expected the names of columns, got nothing",
                         reader->file);
    int rc = csv_header(reader, &layout);
    while (rc == 0 && trace_next_line(reader))
        rc = reader->line.len > 0 ? csv_line(reader, &layout) : 0;
    return rc;
}
