#include "core/fabric/defrag.h"

#include "base/arena.h"
#include "base/check.h"
#include "base/arena.h"

static const uint8_t cube_extent[AXES] = {2, 2, 4}; /* in machines */

struct target {
    uint16_t cube, mask;
    uint32_t parts, machines; /* jobs that must leave, and their machines */
};
struct search {
    const struct defrag_pod *pod;
    uint32_t on[POD_CUBES_MAX][CUBE_MACHINES]; /* parts of each cube */
    uint32_t on_count[POD_CUBES_MAX];
    /* machines that no job may move to: blocked, fixed, target, destinations */
    uint16_t reserved[POD_CUBES_MAX];
    uint32_t chain[DEFRAG_MOVES_MAX];        /* parts that must move */
    struct defrag_move to[DEFRAG_MOVES_MAX]; /* moves of the first `assigned` of them */
    uint32_t chain_count, assigned, limit;
    uint32_t steps;
    bool gave_up;
    struct defrag_plan *plan;
};

uint16_t defrag_mask(const uint8_t at[AXES], const uint8_t extent[AXES])
{
    uint32_t mask = 0;
    for (int axis = 0; axis < AXES; axis++)
        CHECK(extent[axis] > 0 && at[axis] + extent[axis] <= cube_extent[axis]);
    for (uint32_t z = at[2]; z < at[2] + (uint32_t)extent[2]; z++)
        for (uint32_t y = at[1]; y < at[1] + (uint32_t)extent[1]; y++)
            for (uint32_t x = at[0]; x < at[0] + (uint32_t)extent[0]; x++)
                mask |= 1u << (x + 2 * y + 4 * z);
    return (uint16_t)mask;
}

void defrag_extent(const struct slice_shape *shape, uint8_t ret_extent[AXES])
{
    CHECK(slice_shape_cubes(shape) == 1 && !shape->twisted);
    ret_extent[0] = (uint8_t)(shape->extent[0] / 2);
    ret_extent[1] = (uint8_t)(shape->extent[1] / 2);
    ret_extent[2] = (uint8_t)shape->extent[2];
}

/* Writes the masks of all places of a box in a cube, at multiples of its extents, and returns their
 * number. */
static uint32_t list_places(const uint8_t extent[AXES], uint16_t ret_masks[CUBE_MACHINES])
{
    uint32_t count = 0;
    uint8_t at[AXES];
    for (at[2] = 0; at[2] < cube_extent[2]; at[2] = (uint8_t)(at[2] + extent[2]))
        for (at[1] = 0; at[1] < cube_extent[1]; at[1] = (uint8_t)(at[1] + extent[1]))
            for (at[0] = 0; at[0] < cube_extent[0]; at[0] = (uint8_t)(at[0] + extent[0]))
                ret_masks[count++] = defrag_mask(at, extent);
    CHECK(count <= CUBE_MACHINES);
    return count;
}

bool defrag_is_place(uint16_t mask, const uint8_t extent[AXES])
{
    uint16_t masks[CUBE_MACHINES];
    for (uint32_t i = list_places(extent, masks); i > 0; i--)
        if (masks[i - 1] == mask)
            return true;
    return false;
}

static bool in_chain(const struct search *search, uint32_t part)
{
    for (uint32_t i = 0; i < search->chain_count; i++)
        if (search->chain[i] == part)
            return true;
    return false;
}

/* Obliges the parts on these machines to move. Returns false, and leaves the chain as it was, if they are too
 * many. */
static bool oblige_parts(struct search *search, uint32_t cube, uint16_t mask)
{
    uint32_t before = search->chain_count;
    for (uint32_t i = 0; i < search->on_count[cube]; i++) {
        uint32_t part = search->on[cube][i];
        if (!(search->pod->parts[part].mask & mask) || in_chain(search, part))
            continue;
        if (search->chain_count == search->limit) {
            search->chain_count = before;
            return false;
        }
        search->chain[search->chain_count++] = part;
    }
    return true;
}

/* Sorts the moves so that each finds its machines free. Returns false if they wait for each other in a
 * circle. */
static bool order_moves(struct search *search)
{
    bool done[DEFRAG_MOVES_MAX] = {0};
    struct defrag_plan *plan = search->plan;
    plan->count = 0;
    while (plan->count < search->chain_count) {
        uint32_t next = search->chain_count;
        for (uint32_t i = 0; i < search->chain_count && next == search->chain_count; i++) {
            bool free = !done[i];
            for (uint32_t j = 0; j < search->chain_count && free; j++)
                free = done[j] || j == i || search->to[j].from_cube != search->to[i].cube ||
                       !(search->to[j].from_mask & search->to[i].mask);
            next = free ? i : next;
        }
        if (next == search->chain_count)
            return false;
        done[next] = true;
        plan->moves[plan->count++] = search->to[next];
    }
    return true;
}

/* Returns whether an earlier cube without jobs has the same free machines. A search that failed in that cube
 * fails in this one too. */
static bool has_twin(const struct search *search, uint32_t cube)
{
    for (uint32_t other = 0; other < cube && search->on_count[cube] == 0; other++)
        if (search->on_count[other] == 0 && search->reserved[other] == search->reserved[cube])
            return true;
    return false;
}

/* Finds places for the parts of the chain from `assigned` on. */
static bool assign_parts(struct search *search)
{
    if (search->assigned == search->chain_count)
        return order_moves(search);
    uint32_t index = search->chain[search->assigned], places;
    const struct defrag_part *part = &search->pod->parts[index];
    uint16_t masks[CUBE_MACHINES];
    places = list_places(part->extent, masks);
    for (uint32_t cube = 0; cube < search->pod->cubes; cube++) {
        if (search->reserved[cube] == DEFRAG_CUBE_FULL || has_twin(search, cube))
            continue;
        for (uint32_t i = 0; i < places && !search->gave_up; i++) {
            uint32_t chain_count = search->chain_count;
            search->gave_up = search->steps++ >= DEFRAG_STEPS_MAX;
            if (masks[i] & search->reserved[cube] || (cube == part->cube && masks[i] & part->mask) ||
                !oblige_parts(search, cube, masks[i]))
                continue;
            search->reserved[cube] |= masks[i];
            search->to[search->assigned++] =
                (struct defrag_move){index, part->cube, part->mask, (uint16_t)cube, masks[i]};
            if (assign_parts(search))
                return true;
            search->assigned--;
            search->reserved[cube] &= (uint16_t)~masks[i];
            search->chain_count = chain_count;
        }
    }
    return false;
}

static bool try_target(struct search *search, const struct target *target, uint32_t limit)
{
    search->chain_count = search->assigned = 0;
    search->limit = limit;
    if (!oblige_parts(search, target->cube, target->mask))
        return false;
    search->reserved[target->cube] |= target->mask;
    bool found = assign_parts(search);
    if (found) {
        search->plan->cube = target->cube;
        search->plan->mask = target->mask;
    } else {
        search->reserved[target->cube] &= (uint16_t)~target->mask;
    }
    return found;
}

/* Fills in the cubes and their parts for the search. */
static void prepare(struct search *search, const struct defrag_pod *pod)
{
    search->pod = pod;
    CHECK(pod->cubes <= POD_CUBES_MAX && pod->part_count <= DEFRAG_PARTS_MAX);
    for (uint32_t cube = 0; cube < pod->cubes; cube++)
        search->reserved[cube] = pod->blocked[cube];
    for (uint32_t i = 0; i < pod->part_count; i++) {
        const struct defrag_part *part = &pod->parts[i];
        CHECK(part->cube < pod->cubes && !(part->mask & search->reserved[part->cube]));
        if (part->fixed) {
            search->reserved[part->cube] |= part->mask;
            continue;
        }
        CHECK(search->on_count[part->cube] < CUBE_MACHINES);
        search->on[part->cube][search->on_count[part->cube]++] = i;
    }
}

static int compare_targets(const struct target *a, const struct target *b)
{
    return a->machines != b->machines ? (a->machines < b->machines ? -1 : 1)
           : a->cube != b->cube       ? (a->cube < b->cube ? -1 : 1)
           : a->mask != b->mask       ? (a->mask < b->mask ? -1 : 1)
                                      : 0;
}

/* Lists all places of the shape that moves can free, in the order in which they are tried. */
static uint32_t list_targets(const struct search *search, const struct slice_shape *shape,
                             struct target *ret_targets)
{
    uint8_t extent[AXES];
    uint16_t masks[CUBE_MACHINES];
    uint32_t count = 0;
    defrag_extent(shape, extent);
    uint32_t places = list_places(extent, masks);
    for (uint32_t cube = 0; cube < search->pod->cubes; cube++)
        for (uint32_t i = 0; i < places; i++) {
            struct target target = {.cube = (uint16_t)cube, .mask = masks[i]};
            if (search->reserved[cube] & masks[i])
                continue;
            for (uint32_t k = 0; k < search->on_count[cube]; k++) {
                uint16_t mask = search->pod->parts[search->on[cube][k]].mask;
                if (mask & masks[i]) {
                    target.parts++;
                    target.machines += (uint32_t)__builtin_popcount(mask);
                }
            }
            uint32_t at = count++;
            for (; at > 0 && compare_targets(&target, &ret_targets[at - 1]) < 0; at--)
                ret_targets[at] = ret_targets[at - 1];
            ret_targets[at] = target;
        }
    return count;
}

bool defrag_find(const struct defrag_pod *pod, const struct slice_shape *shape, uint32_t moves_max,
                 struct defrag_plan *ret_plan)
{
    CHECK(moves_max <= DEFRAG_MOVES_MAX);
    struct search *search = mem_alloc(sizeof *search);
    struct target *targets = mem_alloc((size_t)DEFRAG_PARTS_MAX * sizeof *targets);
    *ret_plan = (struct defrag_plan){0};
    search->plan = ret_plan;
    prepare(search, pod);
    uint32_t count = list_targets(search, shape, targets);
    bool found = false;
    for (uint32_t limit = 0; limit <= moves_max && !found && !search->gave_up; limit++)
        for (uint32_t i = 0; i < count && !found && !search->gave_up; i++)
            found = targets[i].parts <= limit && try_target(search, &targets[i], limit);
    ret_plan->proved = !search->gave_up;
    if (!found)
        ret_plan->count = 0;
    mem_free(targets);
    mem_free(search);
    return found;
}

bool defrag_make_room(struct defrag_pod *pod, const struct slice_shape *shape, uint32_t moves_max,
                      struct defrag_room *ret_room)
{
    struct slice_shape place = *shape;
    uint32_t cubes = slice_shape_cubes(shape);
    if (slice_shape_is_whole(shape))
        place = (struct slice_shape){{CUBE_SIDE, CUBE_SIDE, CUBE_SIDE}, false};
    CHECK(moves_max <= DEFRAG_MOVES_MAX && cubes <= POD_CUBES_MAX);
    *ret_room = (struct defrag_room){.proved = true};
    while (ret_room->place_count < cubes) {
        struct defrag_plan plan;
        bool found = defrag_find(pod, &place, moves_max - ret_room->move_count, &plan);
        ret_room->proved = ret_room->proved && plan.proved;
        if (!found)
            return false;
        for (uint32_t i = 0; i < plan.count; i++) {
            struct defrag_part *part = &pod->parts[plan.moves[i].part];
            ret_room->moves[ret_room->move_count++] = plan.moves[i];
            part->cube = plan.moves[i].cube;
            part->mask = plan.moves[i].mask;
        }
        pod->blocked[plan.cube] |= plan.mask;
        ret_room->places[ret_room->place_count].cube = plan.cube;
        ret_room->places[ret_room->place_count++].mask = plan.mask;
    }
    return true;
}

bool defrag_check(const struct defrag_pod *pod, const struct slice_shape *shape,
                  const struct defrag_plan *plan)
{
    uint16_t taken[POD_CUBES_MAX];
    uint8_t extent[AXES];
    mem_copy(taken, pod->blocked, sizeof taken);
    for (uint32_t i = 0; i < pod->part_count; i++)
        taken[pod->parts[i].cube] |= pod->parts[i].mask;
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct defrag_move *move = &plan->moves[i];
        if (move->part >= pod->part_count || move->cube >= pod->cubes)
            return false;
        const struct defrag_part *part = &pod->parts[move->part];
        bool place = defrag_is_place(move->mask, part->extent);
        for (uint32_t k = 0; k < i; k++)
            place = place && plan->moves[k].part != move->part;
        if (!place || part->fixed || part->cube != move->from_cube || part->mask != move->from_mask ||
            taken[move->cube] & move->mask)
            return false;
        taken[part->cube] &= (uint16_t)~part->mask;
        taken[move->cube] |= move->mask;
    }
    defrag_extent(shape, extent);
    return defrag_is_place(plan->mask, extent) && plan->cube < pod->cubes &&
           !(taken[plan->cube] & plan->mask);
}
