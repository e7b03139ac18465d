/* sacct.c - Slurm's accounting as printed by `sacct -P`: columns separated by '|', named by the first line.
 *
 * Slurm has no queues besides partitions, so Partition gives both tags. Of a list of partitions the first
 * counts. */
#include "sim/trace/internal.h"

enum sacct_column {
    SACCT_ID,
    SACCT_SUBMIT,
    SACCT_ELAPSED,
    SACCT_STATE,
    SACCT_TRES,
    SACCT_NODES,
    SACCT_PARTITION,
    SACCT_QOS,
    SACCT_USER,
    SACCT_ACCOUNT,
    SACCT_PRIORITY,
    SACCT_COLUMNS
};
enum { SACCT_FIELDS_MAX = 256 };

struct sacct_layout {
    int column[SACCT_FIELDS_MAX]; /* enum sacct_column of each field; -1: ignored */
    size_t count;
    bool has[SACCT_COLUMNS];
};

static int sacct_column_of(struct str name)
{
    static const struct {
        const char *name;
        enum sacct_column column;
    } names[] = {{"JobID", SACCT_ID},         {"Submit", SACCT_SUBMIT},    {"ElapsedRaw", SACCT_ELAPSED},
                 {"State", SACCT_STATE},      {"AllocTRES", SACCT_TRES},   {"ReqTRES", SACCT_TRES},
                 {"NNodes", SACCT_NODES},     {"AllocNodes", SACCT_NODES}, {"Partition", SACCT_PARTITION},
                 {"QOS", SACCT_QOS},          {"User", SACCT_USER},        {"Account", SACCT_ACCOUNT},
                 {"Priority", SACCT_PRIORITY}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_is(name, names[i].name))
            return (int)names[i].column;
    return -1;
}

/* Takes the next field of the line. Returns false if none is left. */
static bool sacct_field(struct str *rest, bool *more, struct str *ret)
{
    struct str head, tail;
    if (!*more)
        return false;
    *more = str_cut(*rest, '|', &head, &tail);
    *ret = *more ? head : *rest;
    *rest = *more ? tail : (struct str){0};
    return true;
}

static int sacct_header(struct trace_reader *reader, struct sacct_layout *layout)
{
    static const char *const wanted[] = {"JobID", "Submit", "ElapsedRaw", "State"};
    struct str rest = reader->line, field;
    bool more = true;
    while (sacct_field(&rest, &more, &field)) {
        if (layout->count == SACCT_FIELDS_MAX)
            return trace_wrong(reader, field, "header", "at most 256 columns");
        int column = sacct_column_of(field);
        layout->column[layout->count++] = column >= 0 && !layout->has[column] ? column : -1;
        if (column >= 0)
            layout->has[column] = true;
    }
    for (int i = SACCT_ID; i <= SACCT_STATE; i++)
        if (!layout->has[i])
            return trace_wrong(reader, reader->line, wanted[i], "a column of this name in the first line");
    if (!layout->has[SACCT_TRES] && !layout->has[SACCT_NODES])
        return trace_wrong(reader, reader->line, "AllocTRES", "a column of this name, or NNodes");
    return 0;
}

/* Reads the chips from text such as "billing=8,cpu=64,gres/gpu=8,gres/gpu:a100=8,mem=1T,node=1"; 0 if it
 * names none. */
static bool sacct_chips(struct str tres, double *ret)
{
    *ret = 0;
    for (bool more = true; more;) {
        struct str item, rest, key, value;
        more = str_cut(tres, ',', &item, &rest);
        item = more ? item : tres;
        tres = rest;
        if (!str_cut(item, '=', &key, &value))
            continue;
        bool exact = str_is(key, "gres/gpu");
        if (!exact && !(str_starts(key, STR("gres/gpu:")) && *ret == 0))
            continue;
        if (!trace_number(value, ret))
            return false;
        if (exact)
            return true;
    }
    return true;
}

static int sacct_tags(const struct trace_reader *reader, const struct str *value, struct trace_job *job)
{
    static const struct {
        enum trace_tag tag;
        enum sacct_column column;
    } tags[] = {{TRACE_QUEUE, SACCT_PARTITION},
                {TRACE_PARTITION, SACCT_PARTITION},
                {TRACE_QOS, SACCT_QOS},
                {TRACE_USER, SACCT_USER},
                {TRACE_ACCOUNT, SACCT_ACCOUNT}};
    int64_t priority = 0;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        struct str text = value[tags[i].column], head, rest;
        bool is_list = tags[i].column == SACCT_PARTITION && str_cut(text, ',', &head, &rest);
        int rc = trace_tag(reader, job, tags[i].tag, is_list ? head : text);
        if (rc < 0)
            return rc;
    }
    if (reader->terms->priorities && value[SACCT_PRIORITY].len > 0 &&
        !str_to_i64(value[SACCT_PRIORITY], -TRACE_PRIORITY_MAX, TRACE_PRIORITY_MAX, &priority))
        return trace_wrong(reader, value[SACCT_PRIORITY], "Priority", "a whole number up to 1000000000");
    job->priority = (int32_t)priority;
    return 0;
}

static int sacct_job(struct trace_reader *reader, const struct sacct_layout *layout, const struct str *value)
{
    struct trace_job job = {.end = trace_end_of(value[SACCT_STATE])};
    double chips = 0, nodes = 0;
    if (value[SACCT_ELAPSED].len > 0 && !trace_number(value[SACCT_ELAPSED], &job.runtime_s))
        return trace_wrong(reader, value[SACCT_ELAPSED], "ElapsedRaw", "a number of seconds");
    struct str submit = value[SACCT_SUBMIT];
    if (submit.len != 19 || submit.data[10] != 'T' || !trace_date(submit, &job.submit_s))
        return trace_wrong(reader, value[SACCT_SUBMIT], "Submit", "a time such as 2025-03-01T12:00:00");
    if (!sacct_chips(value[SACCT_TRES], &chips))
        return trace_wrong(reader, value[SACCT_TRES], "AllocTRES", "gres/gpu=N");
    if (layout->has[SACCT_NODES] && value[SACCT_NODES].len > 0 && !trace_number(value[SACCT_NODES], &nodes))
        return trace_wrong(reader, value[SACCT_NODES], "NNodes", "a number");
    chips = chips > 0 ? chips : nodes * reader->terms->chips_per_node;
    if (chips > TRACE_CHIPS_MAX)
        return trace_wrong(reader, value[SACCT_TRES], "AllocTRES", "at most 16777216 chips");
    if (job.runtime_s < 1 || chips < 1) {
        reader->trace->left_out++;
        return 0;
    }
    job.chips = (uint32_t)chips;
    int rc = sacct_tags(reader, value, &job);
    return rc < 0 ? rc : trace_add(reader, &job);
}

static int sacct_line(struct trace_reader *reader, const struct sacct_layout *layout)
{
    struct str value[SACCT_COLUMNS] = {0}, rest = reader->line, field, head, tail;
    bool more = true;
    size_t at = 0;
    while (sacct_field(&rest, &more, &field)) {
        if (at < layout->count && layout->column[at] >= 0)
            value[layout->column[at]] = field;
        at++;
    }
    if (at != layout->count)
        return trace_wrong(reader, reader->line, "line", "as many columns as the first line has");
    if (str_cut(value[SACCT_ID], '.', &head, &tail)) {
        reader->trace->left_out++;
        return 0;
    }
    return sacct_job(reader, layout, value);
}

int sacct_read(struct trace_reader *reader)
{
    struct sacct_layout layout = {0};
    int rc = 0;
    if (trace_next_line(reader))
        rc = sacct_header(reader, &layout);
    else
        rc = error_set(reader->error, ERROR_INVALID, "%s:1:1: expected the names of columns, got nothing",
                       reader->file);
    while (rc == 0 && trace_next_line(reader))
        rc = reader->line.len > 0 ? sacct_line(reader, &layout) : 0;
    return rc;
}
