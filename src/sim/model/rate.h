/* rate.h - failure rates from counts and from logs of jobs: MTTF, r_f, and their confidence bounds.
 *
 * Failures are a Poisson process. After n failures in an exposure T the mean time to failure is T / n. Its
 * bounds with confidence 1 - a are [T / G^-1(1 - a/2; n + 1), T / G^-1(a/2; n)], where G is the distribution
 * of a gamma variable of rate 1 (equally, of chi-square with halves). The bounds are exact, and slightly
 * wider than their confidence because counts are whole numbers.
 *
 * r_f (arXiv 2410.21680) counts the infrastructure failures per 1,000 machine-days of large jobs:
 *
 *   - each job that ended in NODE_FAIL, and
 *   - each FAILED job with a critical health check on one of its machines between `before_s` before and
 *     `after_s` after its end, bounds included. Other FAILED jobs are attributed to their users.
 *
 * The sum is divided by the machine-days of these jobs. Only jobs on more than `machines_above` machines
 * count. Pure functions.
 */
#ifndef PHX_SIM_MODEL_RATE_H
#define PHX_SIM_MODEL_RATE_H

#include <stddef.h>
#include <stdint.h>

/* Computes bounds of the MTTF after `failures` in `exposure`, in the unit of `exposure`. Without failures
 * *ret_high is infinite. */
void mttf_bounds(uint64_t failures, double exposure, double confidence, double *ret_low, double *ret_high);

enum rate_end { RATE_END_OTHER, RATE_END_FAILED, RATE_END_NODE_FAIL };
struct rate_job {
    double start_s, end_s; /* end_s >= start_s */
    uint32_t machines;     /* > 0 */
    enum rate_end end;
};
struct rate_check { /* a critical finding on a machine of a job */
    uint32_t job;   /* index in `jobs` */
    double at_s;
};
struct rate_log {
    const struct rate_job *jobs;
    size_t job_count;
    const struct rate_check *checks; /* in any order; job < job_count */
    size_t check_count;
};
struct rate_window {
    double before_s, after_s;
    uint32_t machines_above;
};
/* The paper's window: 10 minutes before, 5 after, more than 128 GPUs at 8 a machine. */
#define RATE_WINDOW_DEFAULT                                                                                  \
    {                                                                                                        \
        .before_s = 600, .after_s = 300, .machines_above = 16                                                \
    }

struct rate_counts {
    uint64_t jobs;
    uint64_t node_fails;  /* ended in NODE_FAIL */
    uint64_t attributed;  /* FAILED with a critical check in the window */
    uint64_t unexplained; /* FAILED without such a check */
    double job_s;         /* time that the jobs ran */
    double machine_s;     /* the same, times their machines */
};

/* Sets ret_is_failure[job_count]: the jobs that count as infrastructure failures, whatever their size. */
void rate_attribute(const struct rate_log *log, const struct rate_window *window, uint8_t *ret_is_failure);
/* Counts jobs on more than window->machines_above machines. */
void rate_count(const struct rate_log *log, const struct rate_window *window, struct rate_counts *ret_counts);

/* Counts jobs by size: class k has the jobs on 2^k to 2^(k+1) - 1 machines. Ignores machines_above. */
enum { RATE_CLASSES = 32 };
void rate_count_classes(const struct rate_log *log, const struct rate_window *window,
                        struct rate_counts ret_classes[RATE_CLASSES]);

#endif
