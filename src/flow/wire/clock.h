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

#endif
