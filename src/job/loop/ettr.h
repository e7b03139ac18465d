/* ettr.h - what failures cost a job, as formulas: ETTR, the best interval between checkpoints, bounds of a
 * rate.
 *
 * ETTR (effective training time ratio) is productive time over all time. Failures are a Poisson process
 * that may also strike restarts and checkpoint writes; a restart takes `restart_s`, and the time in the
 * queue before it, `queue_s`, is not exposed to failures. Sources: "Revisiting Reliability in Large-Scale
 * Machine Learning Research Clusters" (arXiv 2410.21680, two versions with a formula each: ettr_linear has
 * the terms of both); the exact form is that of a renewal process, whose segments end with a checkpoint:
 *
 *     E[time of a segment] = (1/L + q) e^(L u) (e^(L (d + w)) - 1)          ETTR = d / E[time of a segment]
 *
 * with L failures per second, u restart, q queue, d interval, w write. All times are seconds, pure
 * functions of doubles: nothing here may reach a decision that must replay byte for byte on another
 * processor.
 */
#ifndef PHX_JOB_LOOP_ETTR_H
#define PHX_JOB_LOOP_ETTR_H

#include <stdint.h>

struct ettr_terms {
    double failures_per_s; /* of the whole job; > 0 */
    double interval_s;     /* between checkpoints, productive; > 0 */
    double write_s;        /* that a checkpoint stops the job; >= 0 */
    double restart_s;      /* from a failure to the next productive second, queue aside; >= 0 */
    double queue_s;        /* waited for machines at each failure; >= 0 */
};

/* L = machines x rate. `per_1000_machine_days` is the unit in which clusters publish their rate of
 * failures (r_f). */
double ettr_failures_per_s(double machines, double per_1000_machine_days);

double ettr_exact(const struct ettr_terms *terms); /* 0..1 */
/* (1 - L (u + d/2)) / ((1 + L q) (1 + w/d)); a lower bound of the exact one where w = 0; may be below 0. */
double ettr_linear(const struct ettr_terms *terms);

/* The interval with the largest ettr_exact; terms->interval_s is not read. With write_s 0 it is 0: always. */
double ettr_best_interval(const struct ettr_terms *terms);
double ettr_young_interval(const struct ettr_terms *terms); /* sqrt(2 w / L): Young 1974, the paper's */
/* Daly 2006 ("A higher order estimate of the optimum checkpoint interval"), its second form. */
double ettr_daly_interval(const struct ettr_terms *terms);
/* The largest interval whose ettr_exact is at least `ettr`; with `restart_too` a restart takes as long as
 * the interval (terms->restart_s is not read). 0: none reaches it. */
double ettr_interval_for(const struct ettr_terms *terms, double ettr, int restart_too);

/* Bounds of the mean time to failure after `failures` in `exposure` (any unit, the answer's), exact for a
 * Poisson process: [T / G^-1(1 - a/2; n + 1), T / G^-1(a/2; n)] with a = 1 - confidence and G the
 * distribution of a gamma variable of rate 1. No failure: *ret_high is infinite. */
void mttf_bounds(uint64_t failures, double exposure, double confidence, double *ret_low, double *ret_high);

/* Chips' hours lost by one failure where checkpoints come once an hour: min(runtime, 30 min) x chips (the
 * paper's measure of goodput loss). */
double goodput_loss_chip_hours(double runtime_s, double chips);

#endif
