#include "core/sched/place.h"

#include <stdlib.h>

#include "base/check.h"

/* --- chips of one machine ------------------------------------------------------------------------------ */

static uint64_t run_mask(uint32_t first, uint32_t count)
{
    CHECK(count > 0 && first + count <= 64);
    return (count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1) << first;
}

/* Returns the size of the largest aligned power-of-two group around `first` that is wholly free: the group
 * that taking chips there would break up. */
static uint32_t group_around(uint64_t free, uint32_t first, uint32_t size)
{
    CHECK(size > 0 && (size & (size - 1)) == 0 && first % size == 0);
    while (size < 64) {
        uint32_t larger = size * 2, start = first / larger * larger;
        if ((free & run_mask(start, larger)) != run_mask(start, larger))
            break;
        size = larger;
    }
    return size;
}

uint64_t place_chips(uint64_t free, uint32_t count)
{
    CHECK(count <= 64 && (uint32_t)__builtin_popcountll(free) >= count);
    uint32_t size = 1, best_group = UINT32_MAX;
    uint64_t best = 0;
    if (!count)
        return 0;
    while (size < count)
        size *= 2;
    for (uint32_t first = 0; first + count <= 64; first += size) {
        uint64_t run = run_mask(first, count);
        if ((free & run) != run)
            continue;
        uint32_t group =
            (free & run_mask(first, size)) == run_mask(first, size) ? group_around(free, first, size) : 1;
        if (group < best_group) {
            best_group = group;
            best = run;
        }
    }
    for (uint32_t first = 0; !best && first + count <= 64; first++)
        best = (free & run_mask(first, count)) == run_mask(first, count) ? run_mask(first, count) : 0;
    CHECK(!best || (uint32_t)__builtin_popcountll(best) == count);
    if (best)
        return best;
    for (; count; count--) { /* no run is free: the lowest chips */
        best |= free & -free;
        free &= free - 1;
    }
    return best;
}

/* --- which machines ------------------------------------------------------------------------------------ */

/* A choice among machines of one class, by the rules in sched.h. */
struct chooser {
    struct placer *placer;
    uint8_t class;
};

static bool in_class(const struct chooser *chooser, machine_id id)
{
    return chooser->placer->fits[id] && chooser->placer->class[id] == chooser->class;
}

static uint32_t free_chips(const struct placer *placer, machine_id id)
{
    return (uint32_t)__builtin_popcountll(placer->free[id]);
}

/* Takes `tasks` places on the machines first .. first + count - 1, those with the fewest free chips first, to
 * keep wholly free machines free. */
static void fill_machines(const struct chooser *chooser, machine_id first, uint32_t count, uint64_t tasks)
{
    struct placer *placer = chooser->placer;
    CHECK(first + count <= placer->cluster->machine_count);
    uint64_t room[65] = {0};
    uint32_t last = 0;
    for (machine_id id = first; id < first + count; id++)
        if (in_class(chooser, id))
            room[free_chips(placer, id)] += placer->fits[id];
    uint64_t left = tasks; /* for machines with exactly `last` free chips; machines with fewer are used
                            * whole */
    while (last < 64 && room[last] < left)
        left -= room[last++];
    CHECK(room[last] >= left);
    for (machine_id id = first; id < first + count; id++) {
        uint32_t chips = free_chips(placer, id);
        if (!in_class(chooser, id) || chips > last)
            continue;
        uint32_t most = placer->fits[id];
        if (chips == last) {
            most = most < left ? most : (uint32_t)left;
            left -= most;
        }
        placer->take[id] += most;
        if (placer->kept && most)
            placer->pool[placer->pool_len++] = id;
    }
    CHECK(left == 0);
}

/* A container to fill: a block of a pod, or a pod of the cluster. */
struct holder {
    uint32_t index;
    uint32_t load; /* tasks of this gang that were placed in it already */
    uint64_t fits;
};

/* Orders holders by tasks of the gang, then by places, the most first, so few holders are used. */
static int compare_holders(const void *a_holder, const void *b_holder)
{
    const struct holder *a = a_holder, *b = b_holder;
    if (a->load != b->load)
        return a->load > b->load ? -1 : 1;
    if (a->fits != b->fits)
        return a->fits > b->fits ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* Compares two holders with enough places: better has more tasks of the gang, then fewer places. */
static bool better_fit(const struct holder *a, const struct holder *b)
{
    if (a->load != b->load)
        return a->load > b->load;
    if (a->fits != b->fits)
        return a->fits < b->fits;
    return a->index < b->index;
}

typedef void fill_fn(const struct chooser *chooser, uint32_t index, uint64_t tasks);

/* Fills the first holders completely, and puts the remaining tasks into the one holder that they fit best. */
static void fill_holders(const struct chooser *chooser, struct holder *holders, size_t count, fill_fn *fill,
                         uint64_t tasks)
{
    qsort(holders, count, sizeof *holders, compare_holders);
    for (size_t i = 0; tasks && i < count; i++) {
        if (holders[i].fits <= tasks) {
            fill(chooser, holders[i].index, holders[i].fits);
            tasks -= holders[i].fits;
            continue;
        }
        const struct holder *best = &holders[i];
        for (size_t k = i + 1; k < count; k++)
            if (holders[k].fits >= tasks && better_fit(&holders[k], best))
                best = &holders[k];
        fill(chooser, best->index, tasks);
        tasks = 0;
    }
    CHECK(!tasks);
}

static void fill_block(const struct chooser *chooser, uint32_t index, uint64_t tasks)
{
    CHECK(index < chooser->placer->cluster->block_count);
    const struct block *block = &chooser->placer->cluster->blocks[index];
    fill_machines(chooser, block->first, block->count, tasks);
}

/* Finds the best block of [first, first + count) with places for all tasks, and `chips` free chips. */
static bool one_block(const struct placer *placer, uint32_t first, uint32_t count, uint64_t tasks,
                      uint64_t chips, uint32_t *ret_block)
{
    CHECK(first + count <= placer->cluster->block_count);
    const struct block *blocks = placer->cluster->blocks;
    bool found = false;
    for (uint32_t b = first; b < first + count; b++) {
        if (placer->block_fits[b] < tasks || placer->block_chips[b] < chips)
            continue;
        struct holder at = {b, placer->block_load[b], placer->block_fits[b]};
        struct holder best = {*ret_block, placer->block_load[*ret_block], placer->block_fits[*ret_block]};
        uint32_t pod_load = placer->pod_load[blocks[b].pod],
                 best_pod_load = placer->pod_load[blocks[*ret_block].pod];
        if (!found || (at.load == best.load && pod_load != best_pod_load ? pod_load > best_pod_load
                                                                         : better_fit(&at, &best)))
            *ret_block = b;
        found = true;
    }
    return found;
}

static void fill_pod(const struct chooser *chooser, uint32_t index, uint64_t tasks)
{
    struct placer *placer = chooser->placer;
    CHECK(index < placer->cluster->pod_count);
    const struct pod *pod = &placer->cluster->pods[index];
    uint32_t block = pod->first_block;
    if (one_block(placer, pod->first_block, pod->block_count, tasks, 0, &block)) {
        fill_block(chooser, block, tasks);
        return;
    }
    struct holder *holders = ARENA_ARRAY(&placer->arena, struct holder, pod->block_count);
    size_t count = 0;
    for (uint32_t b = pod->first_block; b < pod->first_block + pod->block_count; b++)
        if (placer->block_fits[b])
            holders[count++] = (struct holder){b, placer->block_load[b], placer->block_fits[b]};
    CHECK(count <= pod->block_count);
    fill_holders(chooser, holders, count, fill_block, tasks);
}

static bool one_pod(const struct placer *placer, uint64_t tasks, uint64_t chips, uint32_t *ret_pod)
{
    bool found = false;
    struct holder best = {0};
    for (uint32_t p = 0; p < placer->cluster->pod_count; p++) {
        struct holder at = {p, placer->pod_load[p], placer->pod_fits[p]};
        if (at.fits < tasks || placer->pod_chips[p] < chips || (found && !better_fit(&at, &best)))
            continue;
        best = at;
        found = true;
    }
    if (found)
        *ret_pod = best.index;
    return found;
}

static void fill_cluster(const struct chooser *chooser, uint64_t tasks)
{
    struct placer *placer = chooser->placer;
    struct holder *holders = ARENA_ARRAY(&placer->arena, struct holder, placer->cluster->pod_count);
    size_t count = 0;
    for (uint32_t p = 0; p < placer->cluster->pod_count; p++)
        if (placer->pod_fits[p])
            holders[count++] = (struct holder){p, placer->pod_load[p], placer->pod_fits[p]};
    fill_holders(chooser, holders, count, fill_pod, tasks);
}

static void sum_places(const struct chooser *chooser)
{
    struct placer *placer = chooser->placer;
    if (placer->kept) {
        const struct capacity_sums *sums = &placer->kept->sums[chooser->class];
        placer->block_fits = sums->block_fits;
        placer->block_chips = sums->block_chips;
        placer->pod_fits = sums->pod_fits;
        placer->pod_chips = sums->pod_chips;
        return;
    }
    const struct cluster *cluster = placer->cluster;
    memset(placer->block_fits, 0, cluster->block_count * sizeof *placer->block_fits);
    memset(placer->block_chips, 0, cluster->block_count * sizeof *placer->block_chips);
    memset(placer->pod_fits, 0, cluster->pod_count * sizeof *placer->pod_fits);
    memset(placer->pod_chips, 0, cluster->pod_count * sizeof *placer->pod_chips);
    for (size_t i = 0; i < placer->pool_len; i++) {
        machine_id id = placer->pool[i];
        if (placer->class[id] != chooser->class)
            continue;
        const struct machine *machine = &cluster->machines[id];
        placer->block_fits[machine->block] += placer->fits[id];
        placer->block_chips[machine->block] += free_chips(placer, id);
    }
    for (uint32_t b = 0; b < cluster->block_count; b++) {
        placer->pod_fits[cluster->blocks[b].pod] += placer->block_fits[b];
        placer->pod_chips[cluster->blocks[b].pod] += placer->block_chips[b];
    }
}

/* Finds the best block with places for these tasks and free chips for all tasks that are not placed yet. For
 * a cached shape, whose gang has no other tasks, the order of its blocks gives the answer. */
static bool block_for_all(const struct chooser *chooser, uint64_t tasks, uint32_t *ret_block)
{
    const struct placer *placer = chooser->placer;
    const struct shape_capacity *kept = placer->kept;
    if (kept && placer->chips_left == tasks * kept->like.chips)
        return capacity_least_block(&kept->sums[chooser->class], tasks, ret_block);
    return one_block(placer, 0, (uint32_t)placer->cluster->block_count, tasks, placer->chips_left, ret_block);
}

/* Prefers one block for the whole gang, then one pod for the whole gang, then one block or one pod for
 * these tasks, then as few pods as possible. */
static void fill_class(struct placer *placer, uint8_t class, uint64_t tasks)
{
    CHECK(class < CLASSES && tasks > 0);
    const struct chooser chooser = {placer, class};
    uint32_t blocks = (uint32_t)placer->cluster->block_count, block = 0, pod = 0;
    sum_places(&chooser);
    if (block_for_all(&chooser, tasks, &block))
        fill_block(&chooser, block, tasks);
    else if (one_pod(placer, tasks, placer->chips_left, &pod))
        fill_pod(&chooser, pod, tasks);
    else if (one_block(placer, 0, blocks, tasks, 0, &block))
        fill_block(&chooser, block, tasks);
    else if (one_pod(placer, tasks, 0, &pod))
        fill_pod(&chooser, pod, tasks);
    else
        fill_cluster(&chooser, tasks);
}

/* Places tasks without chips one by one, each on the machine with the fewest tasks. */
static void spread(struct placer *placer, uint64_t tasks)
{
    struct heap heap = {0};
    struct heap_node *nodes = ARENA_ARRAY(&placer->arena, struct heap_node, placer->pool_len);
    for (size_t i = 0; i < placer->pool_len; i++) {
        machine_id id = placer->pool[i];
        int64_t tasks_there =
            (placer->ideal ? 0 : placer->cluster->machines[id].task_count) + placer->load[id];
        nodes[i].key = ((int64_t)placer->class[id] << 40) + tasks_there;
        nodes[i].tie = id;
        heap_insert(&heap, &nodes[i]);
    }
    for (; tasks; tasks--) {
        struct heap_node *node = heap_min(&heap);
        CHECK(node);
        machine_id id = (machine_id)node->tie;
        heap_remove(&heap, node);
        placer->take[id]++;
        CHECK(placer->take[id] <= placer->fits[id]);
        node->key++;
        if (placer->take[id] < placer->fits[id])
            heap_insert(&heap, node);
    }
    heap_done(&heap);
}

void place_fill(struct placer *placer, const struct place_job *job, uint64_t tasks)
{
    if (!tasks)
        return;
    if (!job->chips) {
        spread(placer, tasks);
        return;
    }
    CHECK(job->chips <= CHIPS_PER_MACHINE_MAX); /* some machine of the pool has them */
    uint64_t room[CLASSES] = {0};
    for (int class = 0; placer->kept && class < CLASSES; class ++)
        room[class] = placer->kept->sums[class].room;
    for (size_t i = 0; !placer->kept && i < placer->pool_len; i++)
        room[placer->class[placer->pool[i]]] += placer->fits[placer->pool[i]];
    for (uint8_t class = 0; class < CLASSES && tasks; class ++) {
        uint64_t some = room[class] < tasks ? room[class] : tasks;
        if (some)
            fill_class(placer, class, some);
        tasks -= some;
    }
    CHECK(!tasks);
}
