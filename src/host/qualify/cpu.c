/* cpu.c - matrix products on every CPU, each element of each result compared with the known answer. */
#include "host/qualify/internal.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"

enum { SIZE = 192, ROWS = 4, COLUMNS = 8 };
_Static_assert(SIZE % ROWS == 0 && SIZE % COLUMNS == 0, "whole tiles");

typedef double lane __attribute__((vector_size(32), aligned(8)));

/* Computes a tile of the product, ROWS x COLUMNS, in registers. */
static inline __attribute__((always_inline)) void tile(const double *left, const double *right, double *out)
{
    lane sums[ROWS][2] = {{{0}}};
    for (int k = 0; k < SIZE; k++) {
        lane a = *(const lane *)(right + (size_t)k * SIZE), b = *(const lane *)(right + (size_t)k * SIZE + 4);
        for (int r = 0; r < ROWS; r++) {
            double x = left[r * SIZE + k];
            sums[r][0] += a * x;
            sums[r][1] += b * x;
        }
    }
    for (int r = 0; r < ROWS; r++) {
        *(lane *)(out + (size_t)r * SIZE) = sums[r][0];
        *(lane *)(out + (size_t)r * SIZE + 4) = sums[r][1];
    }
}

static inline __attribute__((always_inline)) void product(const double *left, const double *right,
                                                          double *out)
{
    for (int r = 0; r < SIZE; r += ROWS)
        for (int c = 0; c < SIZE; c += COLUMNS)
            tile(left + r * SIZE, right + c, out + r * SIZE + c);
}

static void multiply_plain(const double *left, const double *right, double *out)
{
    product(left, right, out);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void multiply_wide(const double *left, const double *right,
                                                              double *out)
{
    product(left, right, out);
}

static bool is_wide(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#else
static void multiply_wide(const double *left, const double *right, double *out)
{
    product(left, right, out);
}

static bool is_wide(void)
{
    return false;
}
#endif

static bool compare(struct test_thread *thread, const double *out, const double *wanted)
{
    if (memcmp(out, wanted, (size_t)SIZE * SIZE * sizeof *out) == 0)
        return true;
    for (int i = 0; i < SIZE * SIZE; i++)
        if (out[i] != wanted[i]) {
            snprintf(thread->why, sizeof thread->why,
                     "CPU %d computed a wrong product: %.17g instead of %.17g in row %d, column %d",
                     thread->cpu, out[i], wanted[i], i / SIZE, i % SIZE);
            return false;
        }
    return true; /* zeros of both signs */
}

static void work(struct test_thread *thread)
{
    struct gemm_answer answer;
    size_t bytes = (size_t)SIZE * SIZE * sizeof(double);
    double *left = mem_alloc(bytes), *right = mem_alloc(bytes), *out = mem_alloc(bytes);
    double *wanted = mem_alloc(bytes);
    gemm_init(&answer, SIZE, 1 + thread->index);
    for (uint32_t i = 0; i < SIZE * SIZE; i++) {
        left[i] = gemm_left(&answer, i / SIZE, i % SIZE);
        right[i] = gemm_right(&answer, i / SIZE, i % SIZE);
        wanted[i] = gemm_product(&answer, i / SIZE, i % SIZE);
    }
    bool wide = is_wide();
    int64_t begun_ns = test_now_ns(), now_ns = begun_ns;
    do {
        if (wide)
            multiply_wide(left, right, out);
        else
            multiply_plain(left, right, out);
        __asm__ volatile("" ::: "memory");
        thread->amount += 2.0 * SIZE * SIZE * SIZE;
        now_ns = test_now_ns();
    } while (compare(thread, out, wanted) && now_ns < thread->until_ns);
    thread->took_ns = now_ns - begun_ns;
    gemm_done(&answer);
    mem_free(left);
    mem_free(right);
    mem_free(out);
    mem_free(wanted);
}

bool test_cpu(const struct qualify_options *options, struct test_answer *answer)
{
    double rate;
    if (!test_threads(options, work, NULL, &rate, answer))
        return false;
    test_figure(answer, "cpu/gflops", rate / 1e9);
    return true;
}
