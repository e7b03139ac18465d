/* ettr_forms.h - the ETTR of a job in every published form, the inverse questions, and a Monte-Carlo check.
 *
 * The exact long-run formula and its terms are in job/loop/ettr.h. With L failures per second, u restart, q
 * queue, d interval, w write, and R the productive time of a run:
 *
 *   version 1   (1 - L (u + d/2)) / (1 + (u + q)/R + L q)        arXiv 2410.21680v1; R infinite: long run
 *   version 2   (1 - L (u + d/2)) / (1 + w/d)                    the same paper at HPCA 2025
 *   linear      (1 - L (u + d/2)) / ((1 + L q) (1 + w/d))        the terms of both
 *   exact run   R / (q + (1/L + q) (e^(L u) - 1) + (R/d) E[time of a segment])
 *
 * The long-run version 1 is a lower bound of the exact formula while w = 0. The exact run includes its first
 * start, which waits in the queue and may fail like any other. Its value is the ratio of two expectations.
 *
 * The linear forms are first-order approximations, and may be below 0 if failures are frequent. The
 * Monte-Carlo draw shares no formula with the closed forms: it simulates one failure after another. Pure
 * functions of doubles and a seed.
 */
#ifndef PHX_SIM_MODEL_ETTR_FORMS_H
#define PHX_SIM_MODEL_ETTR_FORMS_H

#include <stdbool.h>
#include <stdint.h>

#include "job/loop/ettr.h"

/* Returns L of a job on `machines`. `per_1000_machine_days` is the unit in which clusters publish failure
 * rates (r_f). */
double ettr_failures_per_s(double machines, double per_1000_machine_days);

/* --- forms ---------------------------------------------------------------------------------------------- */

double ettr_version_1(const struct ettr_terms *terms, double productive_s); /* INFINITY for the long run */
double ettr_version_2(const struct ettr_terms *terms);
double ettr_linear(const struct ettr_terms *terms);
double ettr_exact_run(const struct ettr_terms *terms, double productive_s);
/* Returns the exact ETTR with the best interval. While write_s = 0, returns the limit for intervals that
 * shrink to 0. */
double ettr_at_best(const struct ettr_terms *terms);

/* sqrt(2 w / L): Young 1974; best for version 2 */
double ettr_young_interval(const struct ettr_terms *terms);
/* Daly 2006 ("A higher order estimate of the optimum checkpoint interval"), its second form. */
double ettr_daly_interval(const struct ettr_terms *terms);

/* --- inverses: values that reach an ETTR `target` in (0, 1) --------------------------------------------- */

/* Returns the largest interval with which ettr_exact() is at least `target`, or 0 if there is none. With
 * `restart_too` a restart takes as long as the interval, and terms->restart_s is ignored. */
double ettr_interval_for(const struct ettr_terms *terms, double target, bool restart_too);
/* Returns the least such interval for the given restart_s, or 0 while write_s = 0. The target must be
 * reachable: ettr_interval_for() is not 0. */
double ettr_least_interval_for(const struct ettr_terms *terms, double target);

enum ettr_unknown { ETTR_OF_RATE, ETTR_OF_WRITE, ETTR_OF_RESTART, ETTR_OF_QUEUE, ETTR_UNKNOWNS };
/* Returns the largest value of one term with which the target is reached, while the other terms are as given.
 * With `best_interval` each value is tried with its own best interval. Returns a value below 0 if not even 0
 * reaches the target. */
double ettr_largest(const struct ettr_terms *terms, enum ettr_unknown unknown, double target,
                    bool best_interval);

/* --- Monte-Carlo ---------------------------------------------------------------------------------------- */

struct ettr_drawn {
    double ettr;
    double deviation; /* standard error of `ettr` */
};
/* Simulates `failures` (> 1) failures of an endless run. */
struct ettr_drawn ettr_draw(const struct ettr_terms *terms, uint32_t failures, uint64_t seed);
/* Simulates `runs` (> 1) runs of at least productive_s, rounded up to whole intervals. The computation takes
 * time for every failure, so runs that can hardly ever finish take forever. */
struct ettr_drawn ettr_draw_runs(const struct ettr_terms *terms, double productive_s, uint32_t runs,
                                 uint64_t seed);

#endif
