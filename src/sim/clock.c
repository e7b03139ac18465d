/* clock.c - clocks that run fast or slow. */
#include "sim/clock.h"

int64_t clock_at(const struct sim_clock *clock, int64_t true_ns)
{
    int64_t elapsed_ns = true_ns - clock->base_ns;
    return clock->offset_ns + elapsed_ns + (int64_t)((__int128)elapsed_ns * clock->drift_ppm / 1000000);
}

int64_t clock_when(const struct sim_clock *clock, int64_t local_ns)
{
    int64_t elapsed_ns = local_ns - clock->offset_ns;
    int64_t true_ns =
        clock->base_ns + (int64_t)((__int128)elapsed_ns * 1000000 / (1000000 + clock->drift_ppm));
    while (clock_at(clock, true_ns) < local_ns)
        true_ns++;
    return true_ns;
}
