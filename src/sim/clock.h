/* clock.h - clocks of simulated computers, which run fast or slow. Pure functions. */
#ifndef PHX_SIM_CLOCK_H
#define PHX_SIM_CLOCK_H

#include <stdint.h>

/* A clock that runs fast or slow. */
struct sim_clock {
    int64_t base_ns; /* true time at which the clock showed `offset_ns` */
    int64_t offset_ns;
    int64_t drift_ppm;
};
/* Returns what the clock shows at a true time. */
int64_t clock_at(const struct sim_clock *clock, int64_t true_ns);
/* Returns the first true time at which the clock shows `local_ns`. */
int64_t clock_when(const struct sim_clock *clock, int64_t local_ns);

#endif
