/* draw.h - random durations of a scenario: of repairs, detections, jobs and machine lives.
 *
 * A distribution has one or two numbers of seconds, or seconds and a shape. A constant draws no number from
 * the generator, a lognormal one two, and all others one. Part of src/sim/capacity.
 */
#ifndef PHX_SIM_CAPACITY_DRAW_H
#define PHX_SIM_CAPACITY_DRAW_H

#include <stdint.h>

#include "base/rng.h"

enum draw_kind {
    DRAW_CONSTANT,    /* a */
    DRAW_UNIFORM,     /* from a to b */
    DRAW_EXPONENTIAL, /* mean a */
    DRAW_WEIBULL,     /* scale a, shape b: below 1 the failure rate falls with age, above 1 it rises */
    DRAW_LOGNORMAL,   /* median a, sigma b of the logarithm */
};
struct draw {
    enum draw_kind kind;
    double a, b;
};

/* Return a draw, which is not negative and at most DRAW_SECONDS_MAX. */
#define DRAW_SECONDS_MAX 3.0e9
double draw_seconds(const struct draw *draw, struct rng *rng);
int64_t draw_ns(const struct draw *draw, struct rng *rng);
/* Returns the mean in seconds. */
double draw_mean(const struct draw *draw);

#endif
