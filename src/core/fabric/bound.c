#include "core/fabric/bound.h"

#include "base/arena.h"
#include "base/check.h"

static struct load_bound larger(struct load_bound a, struct load_bound b)
{
    CHECK(a.links > 0 && b.links > 0);
    return (unsigned __int128)a.units * b.links >= (unsigned __int128)b.units * a.links ? a : b;
}

/* Returns the bound of the best cut by two planes across one axis. A mesh has no links at its last plane. */
static struct load_bound bound_by_cuts(const struct torus *torus, uint32_t axis)
{
    uint32_t extent = torus->shape.extent[axis];
    uint64_t line = torus->chips / extent, live[SLICE_CUBES_MAX * CUBE_SIDE] = {0};
    CHECK(extent <= SLICE_CUBES_MAX * CUBE_SIDE);
    for (uint32_t chip = 0; chip < torus->chips; chip++)
        live[torus->at[axis][chip]] += torus_link_live(torus, chip, 2 * axis);
    struct load_bound bound = {0, 1};
    for (uint32_t i = 0; i < extent; i++)
        for (uint32_t j = i + 1; j < extent; j++) {
            uint64_t inside = (j - i) * line, outside = torus->chips - inside;
            if (live[i] + live[j] > 0)
                bound = larger(bound, (struct load_bound){inside * outside, live[i] + live[j]});
        }
    return bound;
}

static struct load_bound bound_by_distances(const struct torus *torus)
{
    struct torus whole;
    torus_init(&whole, &torus->shape);
    uint16_t *steps = mem_alloc(2 * torus->chips * sizeof *steps);
    bool alike = slice_shape_is_whole(&torus->shape);
    uint64_t sum = 0, links = 0;
    for (uint32_t from = 0; from < (alike ? 1 : torus->chips); from++) {
        torus_distances(&whole, (uint16_t)from, steps + torus->chips, steps);
        for (uint32_t chip = 0; chip < torus->chips; chip++)
            sum += steps[chip];
    }
    for (uint32_t chip = 0; chip < torus->chips; chip++)
        links += (uint64_t)__builtin_popcount(torus->live[chip]);
    mem_free(steps);
    torus_done(&whole);
    return (struct load_bound){alike ? sum * torus->chips : sum, links > 0 ? links : 1};
}

struct load_bound torus_load_bound(const struct torus *torus)
{
    struct load_bound bound = bound_by_distances(torus);
    for (uint32_t axis = 0; axis < AXES && !torus->shape.twisted; axis++)
        bound = larger(bound, bound_by_cuts(torus, axis));
    CHECK(bound.links > 0);
    return bound;
}
