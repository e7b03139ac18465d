/* spares.h - how many spare machines a job needs, for a failure rate and a repair time.
 *
 * A job runs on `machines` machines and has `spares` more. Each failed machine is away for its repair. Two
 * models differ in whether idle machines fail:
 *
 *   hot    every machine fails at the same rate, in use or not. Each is down with probability
 *          u = r T / (1 + r T), independently. The number that are down is binomial, and the job waits
 *          while more than `spares` are: P[B(machines + spares, u) > spares].
 *   cold   only machines in use fail, and none while the job waits. The number in repair is that of a loss
 *          system with spares + 1 servers; the job waits while all are busy: Erlang's B(spares + 1, a) with
 *          a = machines r T, the machines that are in repair on average.
 *
 * Here r is the failures of a machine per second and T the mean repair time. Neither model depends on the
 * distribution of repair times around T (Sevastyanov 1957); the Monte-Carlo draw confirms this with spread
 * repair times. Shares are shares of all time. Pure functions.
 */
#ifndef PHX_SIM_MODEL_SPARES_H
#define PHX_SIM_MODEL_SPARES_H

#include <stdbool.h>
#include <stdint.h>

enum { SPARES_MAX = 100000 };

struct spares_terms {
    uint32_t machines;     /* machines that the job needs; > 0 */
    double failures_per_s; /* of one machine; > 0 */
    double repair_s;       /* mean; > 0 */
    bool cold;             /* idle machines do not fail */
};

/* Returns the share of time in which the job waits for machines. */
double spares_waiting(const struct spares_terms *terms, uint32_t spares);
/* Returns the least number of spares with which the job has its machines for at least `target` (0 to 1) of
 * the time. Returns SPARES_MAX + 1 if SPARES_MAX spares are not enough. */
uint32_t spares_for(const struct spares_terms *terms, double target);
/* Returns the longest mean repair time with which `spares` reach the target. Ignores terms->repair_s. */
double spares_repair_for(const struct spares_terms *terms, uint32_t spares, double target);
/* Simulates `failures` failures, and returns the share of time in which the job waits. Requires machines +
 * spares <= SPARES_DRAWN_MAX. Repairs last 0.2 to 1.8 times the mean, uniformly. */
enum { SPARES_DRAWN_MAX = 4096 };
double spares_draw(const struct spares_terms *terms, uint32_t spares, uint32_t failures, uint64_t seed);

#endif
