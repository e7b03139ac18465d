/* ettr.h - what failures cost a job: ETTR by the exact formula, and the best interval between checkpoints.
 *
 * ETTR (effective training time ratio) is productive time over all time. Failures are a Poisson process
 * that may also strike restarts and checkpoint writes; a restart takes `restart_s`, and the time in the
 * queue before it, `queue_s`, is not exposed to failures. Segments of the job end with a checkpoint, and
 * the expected time of a segment is that of a renewal process:
 *
 *     E[time of a segment] = (1/L + q) e^(L u) (e^(L (d + w)) - 1)          ETTR = d / E[time of a segment]
 *
 * with L failures per second, u restart, q queue, d interval, w write. A running job chooses its interval
 * by these two functions; sim/model/ettr_forms.h has the published forms, inverses and draws. All times are
 * seconds, pure functions of doubles: nothing here may reach a decision that must replay byte for byte on
 * another processor.
 */
#ifndef PHX_JOB_LOOP_ETTR_H
#define PHX_JOB_LOOP_ETTR_H

struct ettr_terms {
    double failures_per_s; /* of the whole job; > 0 */
    double interval_s;     /* between checkpoints, productive; > 0 */
    double write_s;        /* that a checkpoint stops the job; >= 0 */
    double restart_s;      /* from a failure to the next productive second, queue aside; >= 0 */
    double queue_s;        /* waited for machines at each failure; >= 0 */
};

double ettr_exact(const struct ettr_terms *terms); /* 0..1 */

/* The interval with the largest ettr_exact; terms->interval_s is not read. With write_s 0 it is 0: always. */
double ettr_best_interval(const struct ettr_terms *terms);

#endif
