/* clock.h - the monotonic clock, for waits and measurements in flow's processes and clients. */
#ifndef PHX_FLOW_WIRE_CLOCK_H
#define PHX_FLOW_WIRE_CLOCK_H

#include <time.h>

#include "base/units.h"

/* Returns the nanoseconds of CLOCK_MONOTONIC. Any thread may call it. */
static inline int64_t flow_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

/* Returns the offset in nanoseconds from CLOCK_MONOTONIC to the time of day. Reads both clocks several times
 * and uses the reading that took the least time. */
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
