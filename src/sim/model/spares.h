/* spares.h - how many spare machines a job needs, for a rate of failures and a time of repair.
 *
 * A job runs on `machines` at a time and has `spares` more; each failed machine is away for its repair. Two
 * questions differ in what idle machines do:
 *
 *   hot    every machine fails at the same rate, in use or not. Each is down with probability
 *          u = r T / (1 + r T), independently, so the number that are down is binomial, and the job waits
 *          while more than `spares` are: P[B(machines + spares, u) > spares].
 *   cold   only machines in use fail, and none while the job waits. The number in repair is that of a loss
 *          system with spares + 1 servers; the job waits while all are busy: Erlang's B(spares + 1, a) with
 *          a = machines r T, the machines that are in repair on average.
 *
 * with r failures of a machine per second and T the mean repair. Neither depends on how repair times are
 * spread around T (Sevastyanov 1957); the draw proves so with spread repairs. A share is one of all time.
 * Pure.
 */
#ifndef PHX_SIM_MODEL_SPARES_H
#define PHX_SIM_MODEL_SPARES_H

#include <stdbool.h>
#include <stdint.h>

enum { SPARES_MAX = 100000 };

struct spares_terms {
    uint32_t machines;     /* that the job needs; > 0 */
    double failures_per_s; /* of one machine; > 0 */
    double repair_s;       /* mean; > 0 */
    bool cold;             /* idle machines do not fail */
};

/* The share of time that the job waits for machines. */
double spares_waiting(const struct spares_terms *terms, uint32_t spares);
/* Returns the least number of spares with which the job has its machines for at least `target` (0 to 1) of
 * the time, or SPARES_MAX + 1: more than SPARES_MAX. */
uint32_t spares_for(const struct spares_terms *terms, double target);
/* The longest mean repair with which so many spares reach the target; terms->repair_s is not read. */
double spares_repair_for(const struct spares_terms *terms, uint32_t spares, double target);
/* machines + spares <= SPARES_DRAWN_MAX; repairs last 0.2 to 1.8 times the mean, evenly spread. */
enum { SPARES_DRAWN_MAX = 4096 };
double spares_draw(const struct spares_terms *terms, uint32_t spares, uint32_t failures, uint64_t seed);

#endif
