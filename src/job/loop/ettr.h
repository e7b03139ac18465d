/* ettr.h - the cost of failures to a job: ETTR by the exact formula, and the best interval between
 * checkpoints.
 *
 * ETTR (effective training time ratio) is productive time over all time. Failures are a Poisson process
 * that may also strike restarts and checkpoint writes; a restart takes `restart_s`, and the time in the
 * queue before it, `queue_s`, is not exposed to failures. Segments of the job end with a checkpoint, and
 * the expected time of a segment is that of a renewal process:
 *
 *     E[time of a segment] = (1/L + q) e^(L u) (e^(L (d + w)) - 1)          ETTR = d / E[time of a segment]
 *
 * with L failures per second, u restart, q queue, d interval, w write. A running job chooses its interval by
 * these two functions; sim/model/ettr_forms.h has the published forms, inverses and random draws.
 *
 * Pure functions of doubles, in seconds. Results may differ in the last bits between processors, so no
 * decision that must replay byte for byte may depend on them.
 */
#ifndef PHX_JOB_LOOP_ETTR_H
#define PHX_JOB_LOOP_ETTR_H

struct ettr_terms {
    double failures_per_s; /* of the whole job; > 0 */
    double interval_s;     /* between checkpoints, productive; > 0 */
    double write_s;        /* time for which a checkpoint stops the job; >= 0 */
    double restart_s;      /* from a failure to the next productive second, without the queue; >= 0 */
    double queue_s;        /* wait for machines at each failure; >= 0 */
};

/* Returns the ETTR, from 0 to 1. */
double ettr_exact(const struct ettr_terms *terms);

/* Returns the interval with the largest ettr_exact; terms->interval_s is not read. Returns 0 if write_s is
 * 0. */
double ettr_best_interval(const struct ettr_terms *terms);

#endif
