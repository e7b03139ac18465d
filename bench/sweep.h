/* sweep.h - many tables, built and proved by several processes: every shape of a pod with all switches, with
 * one switch out, or with a pair of switches out.
 *
 * Cases whose canonical torus is the same (core/fabric/route.h) have the same tables, shifted: one of them is
 * built and proved, and of the others every link is compared with that of the canonical torus, which carries
 * the proof over. Every SWEEP_SAMPLE-th of the others is built and proved all the same. Each process takes
 * the next case that no other has taken. A case whose tables cannot be built, or whose proof fails, ends the
 * bench. */
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

enum { SWEEP_SAMPLE = 64, SWEEP_SHAPES_MAX = 1024 };
/* The shapes of whole cubes, in three lists without a shape in common. */
enum sweep_family {
    SWEEP_PLAIN,        /* x <= y <= z */
    SWEEP_TWISTED,      /* which exist in this order only */
    SWEEP_OTHER_ORDERS, /* the plain shapes whose extents do not ascend, such as 8x4x4 */
    SWEEP_FAMILIES
};
static const char *const sweep_families[SWEEP_FAMILIES] = {"plain", "twisted", "plain, other orders"};
struct sweep_case {
    struct slice_shape shape;
    struct pod_switch dead[2];
    uint32_t dead_count;
    uint32_t same; /* the first case with the same canonical torus; its own number: none before */
    uint8_t canonical[CUBE_CHIPS]; /* live ports of the canonical torus's first cube */
};
/* Shared by the processes. */
struct sweep_board {
    uint32_t taken, proved, carried; /* carried: of the proved ones, by a shift */
    uint64_t pairs;
    double ratio[]; /* of the largest load to the bound of the shape without faults; 0: as the `same` case */
};
struct sweep {
    const char *what; /* for people */
    VEC(struct sweep_case) cases;
    uint32_t worst; /* case */
    double worst_ratio;
    uint32_t proved, carried;
    uint64_t pairs;
};

static struct torus sweep_torus(const struct sweep_case *item)
{
    struct torus torus;
    torus_init(&torus, &item->shape);
    for (uint32_t i = 0; i < item->dead_count; i++)
        torus_kill_switch(&torus, item->dead[i]);
    return torus;
}

static void sweep_add(struct sweep *sweep, struct slice_shape shape, const struct pod_switch *dead,
                      uint32_t count)
{
    struct sweep_case item = {.shape = shape, .dead_count = count};
    for (uint32_t i = 0; i < count; i++)
        item.dead[i] = dead[i];
    struct torus torus = sweep_torus(&item), canonical;
    route_canonical(&torus, &canonical);
    for (uint32_t i = 0; i < CUBE_CHIPS; i++)
        item.canonical[i] = canonical.live[torus_chip(&canonical, i % 4, i / 4 % 4, i / 16)];
    torus_done(&canonical);
    torus_done(&torus);
    item.same = (uint32_t)sweep->cases.len;
    for (size_t i = sweep->cases.len; i-- > 0 && item.same == sweep->cases.len;) {
        const struct sweep_case *other = &sweep->cases.items[i];
        if (memcmp(&other->shape, &shape, sizeof shape) == 0 &&
            memcmp(other->canonical, item.canonical, sizeof item.canonical) == 0)
            item.same = other->same;
    }
    vec_push(&sweep->cases, item);
}

static void sweep_name(const struct sweep_case *item, char *text, size_t size)
{
    char shape[SHAPE_TEXT_MAX];
    slice_shape_format(&item->shape, shape);
    int len = snprintf(text, size, "%s", shape);
    for (uint32_t i = 0; i < item->dead_count; i++)
        len += snprintf(text + len, size - (size_t)len, " %s %s", i ? "and" : "without",
                        pod_switch_name(item->dead[i]));
}

static int sweep_prove(const struct torus *torus, const struct sweep_case *item, struct sweep_board *board,
                       double *ret_ratio, struct error *error)
{
    struct torus whole;
    struct route route = {0};
    struct proof proof;
    torus_init(&whole, &item->shape);
    struct load_bound bound = torus_load_bound(&whole);
    torus_done(&whole);
    int rc = route_build(torus, &route, error);
    if (rc == 0 && (rc = route_prove(torus, &route, &proof, NULL, error)) == 0) {
        *ret_ratio = (double)proof.load_max * (double)bound.links / (double)bound.units;
        __atomic_add_fetch(&board->pairs, proof.pairs, __ATOMIC_RELAXED);
    }
    route_done(&route);
    return rc;
}

/* Counts a proved case, and says how many there are on standard error, twenty times in a sweep. */
static void sweep_count(const struct sweep *sweep, struct sweep_board *board)
{
    uint32_t proved = __atomic_add_fetch(&board->proved, 1, __ATOMIC_RELAXED);
    size_t all = sweep->cases.len;
    if (proved * 20 / all != (proved - 1) * 20 / all)
        fprintf(stderr, "%s: %u of %zu tables are proved\n", sweep->what, proved, all);
}

static bool sweep_solve(const struct sweep *sweep, struct sweep_board *board, uint32_t number)
{
    const struct sweep_case *item = &sweep->cases.items[number];
    struct torus torus = sweep_torus(item), canonical;
    struct error error = {0};
    char name[96];
    uint16_t shift = route_canonical(&torus, &canonical);
    int rc = route_shift_check(&torus, &canonical, shift, &error);
    bool carried = item->same != number;
    if (rc == 0 && (!carried || number % SWEEP_SAMPLE == 0))
        rc = sweep_prove(&torus, item, board, &board->ratio[number], &error);
    else if (rc == 0)
        __atomic_add_fetch(&board->pairs, (uint64_t)torus.chips * (torus.chips - 1), __ATOMIC_RELAXED);
    if (rc == 0) {
        __atomic_add_fetch(&board->carried, carried, __ATOMIC_RELAXED);
        sweep_count(sweep, board);
    } else {
        sweep_name(item, name, sizeof name);
        fprintf(stderr, "%s: %s\n", name, error.text);
    }
    torus_done(&canonical);
    torus_done(&torus);
    return rc == 0;
}

/* Solves all cases; false: one has failed, and is named on standard error. */
static bool sweep_run(struct sweep *sweep, uint32_t processes)
{
    size_t size = sizeof(struct sweep_board) + sweep->cases.len * sizeof(double);
    struct sweep_board *board = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(board != MAP_FAILED);
    fflush(stdout);
    for (uint32_t i = 0; i < processes; i++)
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (uint32_t next;
                 (next = __atomic_fetch_add(&board->taken, 1, __ATOMIC_RELAXED)) < sweep->cases.len;)
                if (!sweep_solve(sweep, board, next))
                    _exit(1);
            _exit(0);
        }
    bool good = true;
    for (int status; wait(&status) > 0;)
        good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    sweep->proved = board->proved;
    sweep->carried = board->carried;
    sweep->pairs = board->pairs;
    for (uint32_t i = 0; i < sweep->cases.len && good; i++)
        if (board->ratio[i] > sweep->worst_ratio) {
            sweep->worst_ratio = board->ratio[i];
            sweep->worst = i;
        }
    munmap(board, size);
    return good && sweep->proved == sweep->cases.len;
}

/* Lists the shapes of a family that have at most so many cubes; returns how many. */
static uint32_t sweep_shapes(uint32_t cubes_max, enum sweep_family family,
                             struct slice_shape ret_shapes[SWEEP_SHAPES_MAX])
{
    uint32_t count = 0;
    for (uint32_t x = 1; x <= cubes_max; x++)
        for (uint32_t y = 1; x * y <= cubes_max; y++)
            for (uint32_t z = 1; x * y * z <= cubes_max; z++) {
                struct slice_shape shape = {{(uint16_t)(4 * x), (uint16_t)(4 * y), (uint16_t)(4 * z)},
                                            family == SWEEP_TWISTED};
                bool ascends = x <= y && y <= z;
                if (ascends == (family == SWEEP_OTHER_ORDERS) || slice_shape_check(&shape, NULL) < 0)
                    continue;
                CHECK(count < SWEEP_SHAPES_MAX);
                ret_shapes[count++] = shape;
            }
    return count;
}

#endif
