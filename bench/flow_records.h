/* flow_records.h - what devices ran and when: shared memory between a bench and functions/flow_wait.c. */
#ifndef PHX_BENCH_FLOW_RECORDS_H
#define PHX_BENCH_FLOW_RECORDS_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

enum { RECORDS_MAX = 1 << 17 };

struct flow_record {
    int64_t begin_ns, end_ns; /* of the monotonic clock */
    uint32_t client, partition;
};
struct flow_records {
    _Atomic uint32_t count; /* runs, also those that found no room */
    struct flow_record list[RECORDS_MAX];
};

static inline int64_t records_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
