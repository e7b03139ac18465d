/* internal.h - what the tests share; private to host/qualify.
 *   qualify.c   a child for each test, its time limit, the thresholds
 *   order.c     thresholds and orders as documents
 *   report.c    reports for people and programs; learning
 *   cpu.c memory.c disk.c gpu.c   tests of a machine alone
 *   net.c       the work over a TCP connection: loopback.c, pair.c
 *   gemm.c      matrices whose product is known
 *
 * A test runs in the child: it sets figures and `why`, and returns whether it passed.
 */
#ifndef PHX_HOST_QUALIFY_INTERNAL_H
#define PHX_HOST_QUALIFY_INTERNAL_H

#include "host/qualify/qualify.h"

/* The answer that a child sends through a pipe when it ends; its parent is the same program. */
struct test_answer {
    bool ok, skipped;
    int64_t work_ns;
    bool measured[QUALIFY_FIGURES];
    double figures[QUALIFY_FIGURES];
    char why[QUALIFY_WHY_MAX];
};

void test_figure(struct test_answer *answer, const char *figure, double value);
/* Stores the reason of a failure and returns false: "return test_fail(...)". */
bool test_fail(struct test_answer *answer, const char *format, ...) __attribute__((format(printf, 2, 3)));
int64_t test_now_ns(void);                          /* CLOCK_MONOTONIC */
/* Returns how much longer than planned a test may take before it counts as hung. */
int64_t test_patience_ns(const struct qualify_options *options);
uint64_t test_noise(uint64_t seed);                 /* well-mixed bits of a number */
int64_t test_median(int64_t *values, size_t count); /* sorts them; count > 0 */

bool test_cpu(const struct qualify_options *options, struct test_answer *answer);
bool test_memory(const struct qualify_options *options, struct test_answer *answer);
bool test_disk(const struct qualify_options *options, struct test_answer *answer);
bool test_loopback(const struct qualify_options *options, struct test_answer *answer);
bool test_gpu(const struct qualify_options *options, struct test_answer *answer);
bool test_pair(const struct qualify_options *options, struct test_answer *answer);

/* --- threads (qualify.c): `work` once on each CPU that this process may use ----------------------------- */

struct test_thread {
    const struct qualify_options *options;
    uint32_t index, count; /* this thread's index, of `count` threads */
    int cpu;               /* the CPU that it is pinned to; -1: none */
    int64_t until_ns;      /* when it should end */
    void *shared;
    double amount; /* work done */
    int64_t took_ns;
    char why[QUALIFY_WHY_MAX]; /* why it failed; "": it did not */
};
/* Runs all threads at once and stores the sum of amount / time, per second. Returns false if some failed,
 * with the reason in `answer`. */
bool test_threads(const struct qualify_options *options, void (*work)(struct test_thread *thread),
                  void *shared, double *ret_rate, struct test_answer *answer);

/* --- gemm.c --------------------------------------------------------------------------------------------- */

/* Square matrices of `size`. Each is the sum of two outer products of small whole numbers, so every element
 * of their product is known without multiplying matrices, and is exact in any order of summation. */
struct gemm_answer {
    int32_t *left[2], *right[2]; /* [2 * size]: the two vectors of an outer product */
    int64_t inner[2][2];
    uint32_t size;
};
void gemm_init(struct gemm_answer *answer, uint32_t size, uint64_t seed);
void gemm_done(struct gemm_answer *answer);
double gemm_left(const struct gemm_answer *answer, uint32_t row, uint32_t column);
double gemm_right(const struct gemm_answer *answer, uint32_t row, uint32_t column);
double gemm_product(const struct gemm_answer *answer, uint32_t row, uint32_t column);

/* --- net.c ---------------------------------------------------------------------------------------------- */

/* An end of a non-blocking connection. */
struct net_end {
    int fd;
    int64_t deadline_ns; /* monotonic */
    uint64_t bytes;      /* of each direction */
    uint32_t rounds;     /* round trips of one byte */
};
struct net_work {
    double mb_per_s;   /* of the slower direction */
    double latency_us; /* median of a round trip */
    int64_t work_ns;   /* from the first byte to the last */
};
/* Does the work on one of two ends: one begins (`first`), the other answers, and both get the same figures.
 * Returns false, with the reason in `answer`, if the peer left, the deadline passed or bytes were damaged. */
bool net_do(const struct net_end *end, bool first, struct net_work *ret, struct test_answer *answer);
int net_listen(const char *host, uint16_t port, uint16_t *ret_port, struct test_answer *answer); /* -1 */
/* Both return a connected descriptor, or -1 if there is no connection by the deadline. */
int net_accept(int listener, int64_t deadline_ns);
int net_connect(const char *host, uint16_t port, int64_t deadline_ns);
bool net_write(const struct net_end *end, const void *data, size_t len);
bool net_read(const struct net_end *end, void *data, size_t len);

#endif
