/* philly.c - Microsoft's Philly trace (ATC '19): `cluster_job_log`, a JSON list of jobs.
 *
 *   {"status": "Pass|Killed|Failed", "vc": Q, "user": U, "submitted_time": T,
 *    "attempts": [{"start_time": T, "end_time": T, "detail": [{"ip": M, "gpus": ["gpu0", ...]}, ...]}, ...]}
 *
 * The run time of a job is the sum of its attempts with both times, its size is that of the last attempt with
 * chips, and its queue is the virtual cluster. Times are in the clusters' zone; daylight saving time is
 * ignored. */
#include "doc/json.h"
#include "sim/trace/internal.h"

#define PHILLY_BYTES_MAX ((size_t)8 << 30)

enum { PHILLY_SHOWN = 40 };

static int philly_wrong(const struct trace_reader *reader, const struct doc *job, const struct doc *value,
                        const char *field, const char *wanted)
{
    struct buf text BUF_CLEANUP = {0};
    const struct doc *at = value ? value : job;
    if (value)
        json_write(&text, value);
    else
        buf_printf(&text, "nothing");
    return error_set(reader->error, ERROR_INVALID, "%s:%u:%u: %s: expected %s, got %.*s", reader->file,
                     at->line, at->column, field, wanted,
                     (int)(text.len < PHILLY_SHOWN ? text.len : PHILLY_SHOWN), text.data);
}

/* Returns whether the value means none: null, "None" or "". */
static bool philly_is_none(const struct doc *value)
{
    return !value || value->kind == DOC_NULL ||
           (value->kind == DOC_STRING && (value->text.len == 0 || str_is(value->text, "None")));
}

static int philly_time(const struct trace_reader *reader, const struct doc *job, const struct doc *value,
                       const char *field, double *ret_s)
{
    if (value && value->kind == DOC_STRING && trace_date(value->text, ret_s))
        return 0;
    return philly_wrong(reader, job, value, field, "a time such as 2017-10-07 01:12:09");
}

static uint32_t philly_chips(const struct doc *attempt)
{
    const struct doc *detail = doc_get(attempt, "detail");
    size_t chips = 0;
    for (size_t i = 0; detail && detail->kind == DOC_ARRAY && i < doc_len(detail); i++)
        chips += doc_len(doc_get(doc_at(detail, i), "gpus"));
    return (uint32_t)(chips < TRACE_CHIPS_MAX ? chips : TRACE_CHIPS_MAX);
}

static int philly_attempts(const struct trace_reader *reader, const struct doc *entry, struct trace_job *job)
{
    const struct doc *attempts = doc_get(entry, "attempts");
    if (!attempts || attempts->kind != DOC_ARRAY)
        return philly_wrong(reader, entry, attempts, "attempts", "a list");
    for (size_t i = 0; i < doc_len(attempts); i++) {
        const struct doc *attempt = doc_at(attempts, i);
        const struct doc *start = doc_get(attempt, "start_time"), *end = doc_get(attempt, "end_time");
        uint32_t chips = philly_chips(attempt);
        double start_s = 0, end_s = 0;
        job->chips = chips ? chips : job->chips;
        if (philly_is_none(start) || philly_is_none(end))
            continue;
        int rc = philly_time(reader, entry, start, "start_time", &start_s);
        if (rc == 0)
            rc = philly_time(reader, entry, end, "end_time", &end_s);
        if (rc < 0)
            return rc;
        job->runtime_s += end_s > start_s ? end_s - start_s : 0;
    }
    return 0;
}

static int philly_job(struct trace_reader *reader, const struct doc *entry)
{
    struct trace_job job = {0};
    struct str status = doc_str(doc_get(entry, "status"), STR(""));
    if (entry->kind != DOC_OBJECT)
        return philly_wrong(reader, entry, entry, "job", "an object");
    if (!str_is(status, "Pass") && !str_is(status, "Killed") && !str_is(status, "Failed"))
        return philly_wrong(reader, entry, doc_get(entry, "status"), "status", "Pass, Killed or Failed");
    job.end = str_is(status, "Pass")     ? TRACE_COMPLETED
              : str_is(status, "Killed") ? TRACE_CANCELLED
                                         : TRACE_FAILED;
    int rc = philly_attempts(reader, entry, &job);
    if (rc == 0 && (job.runtime_s < 1 || job.chips == 0)) {
        reader->trace->left_out++;
        return 0;
    }
    if (rc == 0)
        rc = philly_time(reader, entry, doc_get(entry, "submitted_time"), "submitted_time", &job.submit_s);
    if (rc == 0)
        rc = trace_tag(reader, &job, TRACE_QUEUE, doc_str(doc_get(entry, "vc"), STR("")));
    if (rc == 0)
        rc = trace_tag(reader, &job, TRACE_USER, doc_str(doc_get(entry, "user"), STR("")));
    return rc < 0 ? rc : trace_add(reader, &job);
}

int philly_read(struct trace_reader *reader)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = PHILLY_BYTES_MAX};
    struct error error = {0};
    struct doc *list;
    if (json_parse_python(&arena, reader->text, &list, &error) < 0)
        return error_set(reader->error, ERROR_INVALID, "%s:%s", reader->file, error.text);
    if (list->kind != DOC_ARRAY)
        return philly_wrong(reader, list, list, "the document", "a list of jobs");
    int rc = 0;
    for (size_t i = 0; i < doc_len(list) && rc == 0; i++)
        rc = philly_job(reader, doc_at(list, i));
    return rc;
}
