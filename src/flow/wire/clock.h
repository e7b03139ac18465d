/* clock.h - the monotonic clock, for whoever waits or measures in flow's processes and clients. */
#ifndef PHX_FLOW_WIRE_CLOCK_H
#define PHX_FLOW_WIRE_CLOCK_H

#include <time.h>

#include "base/units.h"

/* Nanoseconds of CLOCK_MONOTONIC; any thread. */
static inline int64_t flow_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

/* Nanoseconds from CLOCK_MONOTONIC to the clock of the day: of several looks the one that took the least
 * time between its two clocks. */
static inline int64_t flow_day_ns(void)
{
    int64_t best_ns = INT64_MAX, day_ns = 0;
    for (int i = 0; i < 8; i++) {
        struct timespec day;
        int64_t before_ns = flow_now_ns();
        clock_gettime(CLOCK_REALTIME, &day);
        int64_t after_ns = flow_now_ns();
        if (after_ns - before_ns >= best_ns)
            continue;
        best_ns = after_ns - before_ns;
        day_ns = day.tv_sec * NS_PER_SECOND + day.tv_nsec - before_ns - best_ns / 2;
    }
    return day_ns;
}

#endif
