/* ettr_forms.h - ETTR of a job in every published form, the inverse questions, and the same by Monte-Carlo.
 *
 * The exact long-run formula and its terms are in job/loop/ettr.h. With L failures per second, u restart,
 * q queue, d interval, w write, and R the productive time of a run:
 *
 *   version 1   (1 - L (u + d/2)) / (1 + (u + q)/R + L q)        arXiv 2410.21680v1; R infinite: long run
 *   version 2   (1 - L (u + d/2)) / (1 + w/d)                    the same paper at HPCA 2025
 *   linear      (1 - L (u + d/2)) / ((1 + L q) (1 + w/d))        the terms of both
 *   exact run   R / (q + (1/L + q) (e^(L u) - 1) + (R/d) E[time of a segment])
 *
 * The long-run version 1 is a lower bound of the exact formula while w = 0. The exact run counts its first
 * start, which waits in the queue and may fail as any other; its ratio is that of expectations.
 *
 * Linear forms may be below 0 where failures are frequent: they are first orders. The draw shares no formula
 * with the closed forms: it lives through failures one by one. Pure functions of doubles and a seed.
 */
#ifndef PHX_SIM_MODEL_ETTR_FORMS_H
#define PHX_SIM_MODEL_ETTR_FORMS_H

#include <stdbool.h>
#include <stdint.h>

#include "job/loop/ettr.h"

/* L of a job on `machines`. `per_1000_machine_days` is the unit in which clusters publish their rate of
 * failures (r_f). */
double ettr_failures_per_s(double machines, double per_1000_machine_days);

/* --- forms ---------------------------------------------------------------------------------------------- */

double ettr_version_1(const struct ettr_terms *terms, double productive_s); /* INFINITY: the long run */
double ettr_version_2(const struct ettr_terms *terms);
double ettr_linear(const struct ettr_terms *terms);
double ettr_exact_run(const struct ettr_terms *terms, double productive_s);
/* The exact value with the best interval; the limit of ever shorter ones while write_s = 0. */
double ettr_at_best(const struct ettr_terms *terms);

double ettr_young_interval(const struct ettr_terms *terms); /* sqrt(2 w / L): Young 1974, version 2's */
/* Daly 2006 ("A higher order estimate of the optimum checkpoint interval"), its second form. */
double ettr_daly_interval(const struct ettr_terms *terms);

/* --- inverses: what reaches an ETTR `target` in (0, 1) -------------------------------------------------- */

/* The largest interval whose ettr_exact is at least `target`; with `restart_too` a restart takes as long as
 * the interval (terms->restart_s is not read). 0: none reaches it. */
double ettr_interval_for(const struct ettr_terms *terms, double target, bool restart_too);
/* The least such interval, restart as given; 0 while write_s = 0. Only asked where ettr_interval_for() has
 * an answer. */
double ettr_least_interval_for(const struct ettr_terms *terms, double target);

enum ettr_unknown { ETTR_OF_RATE, ETTR_OF_WRITE, ETTR_OF_RESTART, ETTR_OF_QUEUE, ETTR_UNKNOWNS };
/* The largest value of one term with which the target is reached; the other terms are as given, and with
 * `best_interval` the interval is the best one for each value. Below 0: not even 0 reaches it. */
double ettr_largest(const struct ettr_terms *terms, enum ettr_unknown unknown, double target,
                    bool best_interval);

/* --- Monte-Carlo ---------------------------------------------------------------------------------------- */

struct ettr_drawn {
    double ettr;
    double deviation; /* standard error of `ettr` */
};
/* Lives through so many failures (> 1) of an endless run. */
struct ettr_drawn ettr_draw(const struct ettr_terms *terms, uint32_t failures, uint64_t seed);
/* Lives through `runs` (> 1) runs of at least productive_s, rounded up to whole intervals. A draw takes as
 * long as the runs have failures: hopeless runs take for ever. */
struct ettr_drawn ettr_draw_runs(const struct ettr_terms *terms, double productive_s, uint32_t runs,
                                 uint64_t seed);

#endif
