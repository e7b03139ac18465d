/* draw.h - random durations of a scenario: how long repairs, detections, jobs and lives of machines take.
 *
 * A distribution is one or two numbers of seconds, or one of seconds and a shape. Constants take no number of
 * the generator, normal ones two, all others one. Part of
 * src/sim/capacity.
 */
#ifndef PHX_SIM_CAPACITY_DRAW_H
#define PHX_SIM_CAPACITY_DRAW_H

#include <stdint.h>

#include "base/rng.h"

enum draw_kind {
    DRAW_CONSTANT,    /* a */
    DRAW_UNIFORM,     /* from a to b */
    DRAW_EXPONENTIAL, /* mean a */
    DRAW_WEIBULL,     /* scale a, shape b: below 1 the rate falls with age, above 1 it grows */
    DRAW_LOGNORMAL,   /* median a, sigma b of the logarithm */
};
struct draw {
    enum draw_kind kind;
    double a, b;
};

/* Seconds, not negative and at most DRAW_SECONDS_MAX. */
#define DRAW_SECONDS_MAX 3.0e9
double draw_seconds(const struct draw *draw, struct rng *rng);
int64_t draw_ns(const struct draw *draw, struct rng *rng);
/* The mean in seconds. */
double draw_mean(const struct draw *draw);

#endif
