/* timing.h - what benches measure with: a clock and the middle of many values. libc only. */
#ifndef PHX_BENCH_TIMING_H
#define PHX_BENCH_TIMING_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

/* Processor time of this process, which does not hang on what else the computer does. */
static inline int64_t processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Processor time of the calling thread. */
static inline int64_t thread_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static inline int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline double now_ms(void)
{
    return (double)now_ns() / 1e6;
}

static inline int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the values. */
static inline double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
    return values[count / 2];
}

static inline int ascending_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts the times. */
static inline int64_t median_ns(int64_t *times, size_t count)
{
    qsort(times, count, sizeof *times, ascending_ns);
    return times[count / 2];
}

#endif
