/* rate.c - see rate.h. */
#include "sim/model/rate.h"

#include <math.h>

#include "base/arena.h"
#include "base/check.h"
#include "sim/model/gamma.h"

void mttf_bounds(uint64_t failures, double exposure, double confidence, double *ret_low, double *ret_high)
{
    CHECK(confidence > 0 && confidence < 1);
    double tail = (1 - confidence) / 2, count = (double)failures;
    *ret_low = exposure / gamma_quantile_above(count + 1, tail);
    *ret_high = failures ? exposure / gamma_quantile_below(count, tail) : INFINITY;
}

void rate_attribute(const struct rate_log *log, const struct rate_window *window, uint8_t *ret_is_failure)
{
    for (size_t i = 0; i < log->job_count; i++)
        ret_is_failure[i] = log->jobs[i].end == RATE_END_NODE_FAIL;
    for (size_t i = 0; i < log->check_count; i++) {
        const struct rate_check *check = &log->checks[i];
        CHECK(check->job < log->job_count);
        const struct rate_job *job = &log->jobs[check->job];
        double since_s = check->at_s - job->end_s;
        if (job->end == RATE_END_FAILED && since_s >= -window->before_s && since_s <= window->after_s)
            ret_is_failure[check->job] = 1;
    }
}

static void count_job(struct rate_counts *counts, const struct rate_job *job, bool is_failure)
{
    CHECK(job->end_s >= job->start_s && job->machines > 0);
    counts->jobs++;
    counts->node_fails += job->end == RATE_END_NODE_FAIL;
    counts->attributed += job->end == RATE_END_FAILED && is_failure;
    counts->unexplained += job->end == RATE_END_FAILED && !is_failure;
    counts->job_s += job->end_s - job->start_s;
    counts->machine_s += (job->end_s - job->start_s) * job->machines;
}

void rate_count(const struct rate_log *log, const struct rate_window *window, struct rate_counts *ret_counts)
{
    uint8_t *is_failure = mem_alloc(log->job_count + 1);
    rate_attribute(log, window, is_failure);
    *ret_counts = (struct rate_counts){0};
    for (size_t i = 0; i < log->job_count; i++)
        if (log->jobs[i].machines > window->machines_above)
            count_job(ret_counts, &log->jobs[i], is_failure[i]);
    mem_free(is_failure);
}

static uint32_t class_of(uint32_t machines)
{
    CHECK(machines > 0);
    return 31 - (uint32_t)__builtin_clz(machines);
}

void rate_count_classes(const struct rate_log *log, const struct rate_window *window,
                        struct rate_counts ret_classes[RATE_CLASSES])
{
    uint8_t *is_failure = mem_alloc(log->job_count + 1);
    rate_attribute(log, window, is_failure);
    for (int i = 0; i < RATE_CLASSES; i++)
        ret_classes[i] = (struct rate_counts){0};
    for (size_t i = 0; i < log->job_count; i++)
        count_job(&ret_classes[class_of(log->jobs[i].machines)], &log->jobs[i], is_failure[i]);
    mem_free(is_failure);
}
