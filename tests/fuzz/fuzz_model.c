/* Any bytes as a history of faults, as a log of jobs and as a log of checks: no crash, memory within the
 * limit, and what is read keeps the promises of its header, so that statistics, replays and counts run. */
#include <math.h>
#include <stdint.h>

#include "base/check.h"
#include "doc/json.h"
#include "sim/model/fault_trace.h"
#include "sim/model/job_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 64 << 20 };

static void try_trace(struct str text)
{
    struct arena ARENA_CLEANUP arena = {.limit_bytes = LIMIT};
    struct doc *doc;
    struct fault_trace trace;
    struct error error;
    if (json_parse(&arena, text, &doc, &error) < 0)
        return;
    int code = fault_trace_read(&arena, doc, &trace, &error);
    CHECK(code == 0 || code == ERROR_INVALID || code == ERROR_LIMIT);
    if (code < 0)
        return;
    CHECK(trace.count > 0 && trace.machines > 0 && trace.machines <= trace.count);
    CHECK(trace.cause_count > 0 && trace.first_days >= 0 && trace.last_days >= trace.first_days);
    for (uint32_t i = 0; i < trace.count; i++) {
        const struct trace_fault *fault = &trace.faults[i];
        CHECK(fault->machine < trace.machines && fault->cause < trace.cause_count);
        CHECK(fault->start_days <= fault->end_days && fault->end_days <= trace.last_days);
    }
    struct fault_trace_facts facts;
    fault_trace_facts(&trace, trace.machines + 1, trace.last_days + 1, &facts);
    CHECK(facts.down_max <= trace.machines && facts.down_p50 <= facts.down_p99);
    struct fault_replay_terms terms = {.machines = trace.machines + 2,
                                       .needed = trace.machines / 2 + 1,
                                       .interval_days = .04,
                                       .restart_days = .003,
                                       .seed = text.len};
    struct fault_replay replay;
    fault_trace_replay(&trace, &terms, &replay);
    CHECK(replay.ettr >= 0 && replay.waiting >= 0 && replay.ettr + replay.waiting <= 1 + 1e-6);
}

static void try_counts(const struct job_log *log)
{
    struct rate_log counted = {log->jobs, log->job_count, log->checks, log->check_count};
    struct rate_window window = RATE_WINDOW_DEFAULT;
    struct rate_counts counts, classes[RATE_CLASSES];
    uint64_t jobs = 0;
    rate_count(&counted, &window, &counts);
    rate_count_classes(&counted, &window, classes);
    for (int i = 0; i < RATE_CLASSES; i++)
        jobs += classes[i].jobs;
    CHECK(jobs == log->job_count && counts.jobs <= jobs);
}

/* The text up to a line "--" is the jobs, what follows it the checks. */
static void try_jobs(struct str text)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct job_log log = {0};
    struct error error = {0};
    struct str checks = {0};
    for (size_t i = 0; i + 4 <= text.len; i++)
        if (memcmp(text.data + i, "\n--\n", 4) == 0) {
            checks = (struct str){text.data + i + 4, text.len - i - 4};
            text.len = i;
        }
    int code = job_log_read_jobs(&arena, text, &log, &error);
    CHECK(code == 0 || code == ERROR_INVALID || code == ERROR_LIMIT);
    if (code < 0) {
        CHECK(error.text[0] >= '0' && error.text[0] <= '9' && log.jobs == NULL);
        return;
    }
    code = job_log_read_checks(&arena, checks, &log, &error);
    CHECK(code == 0 || code == ERROR_INVALID || code == ERROR_LIMIT);
    try_counts(&log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    if (size > 0 && (data[0] == '[' || data[0] == '{'))
        try_trace(text);
    else
        try_jobs(text);
    return 0;
}
