/* sweep.h - many tables, built and proved by several processes: every shape of a pod without one switch or
 * with a pair of switches out.
 *
 * Each process takes the next case that no other has taken. A case whose tables cannot be built, or whose
 * proof fails, ends the bench. Each table is built and proved: patterns that a shift of the torus maps onto
 * each other still get different tables, because ties and datelines do not shift. */
#ifndef PHX_BENCH_SWEEP_H
#define PHX_BENCH_SWEEP_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/vec.h"
#include "core/fabric/bound.h"
#include "core/fabric/prove.h"

struct sweep_case {
    struct slice_shape shape;
    struct pod_switch dead[2];
    uint32_t dead_count;
};
/* Shared by the processes. */
struct sweep_board {
    uint32_t taken, proved;
    uint64_t pairs;
    struct {
        uint32_t load_max;
        double ratio; /* to the bound of the shape without faults */
    } result[];
};
struct sweep {
    VEC(struct sweep_case) cases;
    uint32_t worst; /* case */
    double worst_ratio;
    uint32_t proved;
    uint64_t pairs;
};

static void sweep_add(struct sweep *sweep, struct slice_shape shape, const struct pod_switch *dead,
                      uint32_t count)
{
    struct sweep_case item = {.shape = shape, .dead_count = count};
    for (uint32_t i = 0; i < count; i++)
        item.dead[i] = dead[i];
    vec_push(&sweep->cases, item);
}

static void sweep_name(const struct sweep_case *item, char *text, size_t size)
{
    char shape[SHAPE_TEXT_MAX];
    slice_shape_format(&item->shape, shape);
    int len = snprintf(text, size, "%s without %s", shape, pod_switch_name(item->dead[0]));
    if (item->dead_count > 1)
        snprintf(text + len, size - (size_t)len, " and %s", pod_switch_name(item->dead[1]));
}

static bool sweep_solve(const struct sweep_case *item, struct sweep_board *board, uint32_t number)
{
    struct torus torus;
    struct route route = {0};
    struct proof proof;
    struct error error = {0};
    char name[96];
    torus_init(&torus, &item->shape);
    struct load_bound whole = torus_load_bound(&torus);
    for (uint32_t i = 0; i < item->dead_count; i++)
        torus_kill_switch(&torus, item->dead[i]);
    bool good =
        route_build(&torus, &route, &error) == 0 && route_prove(&torus, &route, &proof, NULL, &error) == 0;
    if (good) {
        board->result[number].load_max = proof.load_max;
        board->result[number].ratio = (double)proof.load_max * (double)whole.links / (double)whole.units;
        __atomic_add_fetch(&board->pairs, proof.pairs, __ATOMIC_RELAXED);
        __atomic_add_fetch(&board->proved, 1, __ATOMIC_RELAXED);
    } else {
        sweep_name(item, name, sizeof name);
        fprintf(stderr, "%s: %s\n", name, error.text);
    }
    route_done(&route);
    torus_done(&torus);
    return good;
}

/* Solves all cases; false: one has failed, and is named on standard error. */
static bool sweep_run(struct sweep *sweep)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t size =
        sizeof(struct sweep_board) + sweep->cases.len * sizeof(((struct sweep_board *)0)->result[0]);
    struct sweep_board *board = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(board != MAP_FAILED);
    fflush(stdout);
    for (long i = 0; i < cores; i++)
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (uint32_t next;
                 (next = __atomic_fetch_add(&board->taken, 1, __ATOMIC_RELAXED)) < sweep->cases.len;)
                if (!sweep_solve(&sweep->cases.items[next], board, next))
                    _exit(1);
            _exit(0);
        }
    bool good = true;
    for (int status; wait(&status) > 0;)
        good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    sweep->proved = board->proved;
    sweep->pairs = board->pairs;
    for (uint32_t i = 0; i < sweep->cases.len && good; i++)
        if (board->result[i].ratio > sweep->worst_ratio) {
            sweep->worst_ratio = board->result[i].ratio;
            sweep->worst = i;
        }
    munmap(board, size);
    return good && sweep->proved == sweep->cases.len;
}

/* Lists all shapes of whole cubes with sorted extents, plain or twisted; returns how many. */
static uint32_t sweep_shapes(uint32_t cubes_max, bool twisted, struct slice_shape *ret_shapes)
{
    uint32_t count = 0;
    for (uint32_t x = 1; x * x * x <= cubes_max; x++)
        for (uint32_t y = x; x * y * y <= cubes_max; y++)
            for (uint32_t z = y; x * y * z <= cubes_max; z++) {
                struct slice_shape shape = {{(uint16_t)(4 * x), (uint16_t)(4 * y), (uint16_t)(4 * z)},
                                            twisted};
                if (slice_shape_check(&shape, NULL) == 0)
                    ret_shapes[count++] = shape;
            }
    return count;
}

#endif
