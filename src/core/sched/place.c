#include "core/sched/place.h"

#include <stdlib.h>

#include "base/check.h"

enum { RETRIES_MAX = 4 };

static bool same_labels(const struct labels *a, const struct labels *b)
{
    size_t a_len = a ? a->len : 0, b_len = b ? b->len : 0;
    if (a_len != b_len)
        return false;
    for (size_t i = 0; a != b && i < a_len; i++)
        if (!str_equal(a->items[i].key, b->items[i].key) || !str_equal(a->items[i].value, b->items[i].value))
            return false;
    return true;
}

static bool same_tolerations(const struct toleration *a, size_t a_len, const struct toleration *b,
                             size_t b_len)
{
    if (a_len != b_len)
        return false;
    for (size_t i = 0; a != b && i < a_len; i++) {
        const struct toleration *x = &a[i], *y = &b[i];
        if (!str_equal(x->key, y->key) || !str_equal(x->op, y->op) || !str_equal(x->value, y->value) ||
            !str_equal(x->effect, y->effect))
            return false;
    }
    return true;
}

bool place_same_shape(const struct place_job *a, const struct place_job *b)
{
    return a->chips == b->chips && a->cpu_milli == b->cpu_milli && a->memory_bytes == b->memory_bytes &&
           str_equal(a->exclusive_topology, b->exclusive_topology) && a->topology == b->topology &&
           (a->node_terms == b->node_terms || (!a->node_term_count && !b->node_term_count)) &&
           (!a->topology || a->podset == b->podset) && str_equal(a->node_name, b->node_name) &&
           same_labels(a->node_selector, b->node_selector) && same_labels(a->more_labels, b->more_labels) &&
           same_tolerations(a->tolerations, a->toleration_count, b->tolerations, b->toleration_count) &&
           same_tolerations(a->more_tolerations, a->more_toleration_count, b->more_tolerations,
                            b->more_toleration_count);
}

static void find_shapes(struct placer *placer)
{
    const struct place_request *request = placer->request;
    size_t *shape_of = ARENA_ARRAY(&placer->arena, size_t, request->job_count);
    placer->shapes = ARENA_ARRAY(&placer->arena, struct shape, request->job_count);
    placer->offsets = ARENA_ARRAY(&placer->arena, size_t, request->job_count);
    for (size_t j = 0; j < request->job_count; j++) {
        const struct place_job *job = &request->jobs[j];
        size_t s = 0;
        while (s < placer->shape_count && !place_same_shape(placer->shapes[s].like, job))
            s++;
        if (s == placer->shape_count)
            placer->shapes[placer->shape_count++].like = job;
        placer->shapes[s].job_count++;
        placer->shapes[s].tasks += job->count;
        placer->offsets[j] = placer->task_count;
        placer->task_count += job->count;
        shape_of[j] = s;
    }
    for (size_t s = 0; s < placer->shape_count; s++) {
        placer->shapes[s].jobs = ARENA_ARRAY(&placer->arena, uint32_t, placer->shapes[s].job_count);
        placer->shapes[s].job_count = 0;
    }
    CHECK(placer->shape_count <= request->job_count);
    for (size_t j = 0; j < request->job_count; j++) {
        struct shape *shape = &placer->shapes[shape_of[j]];
        shape->jobs[shape->job_count++] = (uint32_t)j;
    }
}

static void prepare(struct placer *placer)
{
    struct arena *arena = &placer->arena;
    size_t machines = placer->cluster->machine_count, blocks = placer->cluster->block_count;
    size_t pods = placer->cluster->pod_count;
    find_shapes(placer);
    CHECK(placer->task_count == 0 || placer->shape_count > 0);
    placer->places = ARENA_ARRAY(arena, struct placement, placer->task_count);
    placer->free = ARENA_ARRAY(arena, uint64_t, machines);
    placer->cpu_milli = ARENA_ARRAY(arena, int64_t, machines);
    placer->memory_bytes = ARENA_ARRAY(arena, int64_t, machines);
    placer->load = ARENA_ARRAY(arena, uint32_t, machines);
    placer->claimed = ARENA_ARRAY(arena, uint32_t, machines);
    placer->fits = ARENA_ARRAY(arena, uint32_t, machines);
    placer->class = ARENA_ARRAY(arena, uint8_t, machines);
    placer->take = ARENA_ARRAY(arena, uint32_t, machines);
    placer->pool = ARENA_ARRAY(arena, machine_id, machines);
    placer->block_load = ARENA_ARRAY(arena, uint32_t, blocks);
    placer->block_fits = ARENA_ARRAY(arena, uint64_t, blocks);
    placer->block_chips = ARENA_ARRAY(arena, uint64_t, blocks);
    placer->pod_load = ARENA_ARRAY(arena, uint32_t, pods);
    placer->pod_fits = ARENA_ARRAY(arena, uint64_t, pods);
    placer->pod_chips = ARENA_ARRAY(arena, uint64_t, pods);
    CHECK(placer->request->avoid || placer->request->avoid_count == 0);
    placer->avoid = ARENA_ARRAY(arena, uint8_t, machines);
    for (size_t i = 0; i < placer->request->avoid_count; i++)
        if (placer->request->avoid[i] < machines)
            placer->avoid[placer->request->avoid[i]] = 1;
    for (size_t id = 0; !placer->ideal && id < machines; id++)
        placer->avoid[id] |= placer->cluster->machines[id].suspect;
}

/* Counts the gang's tasks in each block and pod by their last machines, even lost ones, so replacements are
 * placed near the gang. */
static void count_neighbours(struct placer *placer)
{
    const struct cluster *cluster = placer->cluster;
    for (size_t j = 0; j < placer->request->job_count; j++) {
        const struct place_job *job = &placer->request->jobs[j];
        for (uint32_t t = 0; job->prefer && t < job->count; t++) {
            if (job->prefer[t] >= cluster->machine_count)
                continue;
            placer->block_load[cluster->machines[job->prefer[t]].block]++;
            placer->pod_load[cluster->machines[job->prefer[t]].pod]++;
        }
    }
}

/* Resets the attempt to the cluster's present state, with no task of the gang placed. */
static void start_attempt(struct placer *placer)
{
    const struct cluster *cluster = placer->cluster;
    const uint64_t *own = placer->request->own_chips, *reserved = placer->request->reserved;
    for (size_t i = 0; i < cluster->machine_count; i++) {
        const struct machine *machine = &cluster->machines[i];
        uint64_t all = machine_all_chips(machine);
        placer->free[i] = placer->ideal ? all : (machine->free_mask | (own ? own[i] : 0)) & all;
        if (reserved && !placer->ideal)
            placer->free[i] &= ~reserved[i];
        placer->load[i] = placer->claimed[i] = placer->take[i] = 0;
        placer->cpu_milli[i] = placer->memory_bytes[i] = 0;
    }
    memset(placer->block_load, 0, cluster->block_count * sizeof *placer->block_load);
    memset(placer->pod_load, 0, cluster->pod_count * sizeof *placer->pod_load);
    count_neighbours(placer);
    for (size_t i = 0; i < placer->task_count; i++)
        placer->places[i] = (struct placement){.machine = MACHINE_NONE};
    placer->chips_left = 0;
    for (size_t s = 0; s < placer->shape_count; s++)
        placer->chips_left += placer->shapes[s].tasks * placer->shapes[s].like->chips;
}

void place_assign(struct placer *placer, const struct place_job *job, size_t task, machine_id id, bool stays)
{
    const struct machine *machine = &placer->cluster->machines[id];
    CHECK(task < placer->task_count && id < placer->cluster->machine_count);
    const uint64_t *own = placer->request->own_chips;
    uint64_t before = own && stays ? own[id] & placer->free[id] : 0;
    /* A task that stays gets chips that its gang already holds on the machine. */
    uint64_t from = (uint32_t)__builtin_popcountll(before) >= job->chips ? before : placer->free[id];
    uint64_t chips = place_chips(from, job->chips);
    CHECK(placer->places[task].machine == MACHINE_NONE && placer->chips_left >= job->chips);
    CHECK((chips & ~placer->free[id]) == 0 && (uint32_t)__builtin_popcountll(chips) == job->chips);
    placer->places[task] = (struct placement){id, chips};
    placer->free[id] &= ~chips;
    placer->cpu_milli[id] += job->cpu_milli;
    placer->memory_bytes[id] += job->memory_bytes;
    placer->load[id]++;
    placer->block_load[machine->block]++;
    placer->pod_load[machine->pod]++;
    placer->chips_left -= job->chips;
}

void place_unassign(struct placer *placer, const struct place_job *job, size_t task)
{
    CHECK(task < placer->task_count);
    struct placement place = placer->places[task];
    CHECK(place.machine != MACHINE_NONE);
    const struct machine *machine = &placer->cluster->machines[place.machine];
    CHECK((placer->free[place.machine] & place.chips) == 0 && placer->load[place.machine] > 0);
    CHECK((uint32_t)__builtin_popcountll(place.chips) == job->chips); /* the job's own */
    placer->places[task] = (struct placement){.machine = MACHINE_NONE};
    placer->free[place.machine] |= place.chips;
    placer->cpu_milli[place.machine] -= job->cpu_milli;
    placer->memory_bytes[place.machine] -= job->memory_bytes;
    placer->load[place.machine]--;
    placer->block_load[machine->block]--;
    placer->pod_load[machine->pod]--;
    placer->chips_left += job->chips;
}

uint64_t place_keep(struct placer *placer, uint32_t index, const uint32_t *domain_of, uint32_t domain)
{
    CHECK(index < placer->request->job_count);
    const struct place_job *job = &placer->request->jobs[index];
    uint64_t kept = 0;
    enum refusal refusal;
    for (uint32_t t = 0; job->prefer && t < job->count; t++) {
        machine_id id = job->prefer[t];
        if (id >= placer->cluster->machine_count || placer->avoid[id] ||
            (domain_of && domain_of[id] != domain) || !place_fit(placer, job, id, 1, true, &refusal))
            continue;
        place_assign(placer, job, placer->offsets[index] + t, id, true);
        kept++;
    }
    CHECK(kept <= job->count);
    return kept;
}

void place_hand_out(struct placer *placer, const uint32_t *jobs, size_t job_count)
{
    size_t j = 0;
    uint32_t task = 0;
    for (size_t i = 0; i < placer->pool_len; i++) {
        machine_id id = placer->pool[i];
        CHECK(placer->take[id] <= placer->fits[id]);
        for (; placer->take[id]; placer->take[id]--) {
            const struct place_job *job;
            for (;; task++) {
                CHECK(j < job_count);
                job = &placer->request->jobs[jobs[j]];
                if (task == job->count) {
                    j++;
                    task = UINT32_MAX; /* the loop's increment makes it 0 */
                } else if (placer->places[placer->offsets[jobs[j]] + task].machine == MACHINE_NONE) {
                    break;
                }
            }
            place_assign(placer, job, placer->offsets[jobs[j]] + task, id, false);
        }
    }
}

uint64_t place_pool(struct placer *placer, const struct place_job *job, uint64_t tasks)
{
    uint64_t room = 0;
    enum refusal refusal;
    placer->pool_len = 0;
    for (machine_id id = 0; id < placer->cluster->machine_count; id++) {
        placer->fits[id] = place_fit(placer, job, id, tasks, false, &refusal);
        if (!placer->fits[id])
            continue;
        placer->class[id] = place_class(placer, job, id);
        placer->pool[placer->pool_len++] = id;
        room += placer->fits[id];
    }
    CHECK(placer->pool_len <= placer->cluster->machine_count && room >= placer->pool_len);
    return room;
}

/* Places the tasks of the shape that did not keep their machines. */
static bool place_rest(struct placer *placer, const struct shape *shape)
{
    CHECK(shape->job_count > 0 && !shape->like->exclusive_topology.len);
    uint64_t tasks = 0;
    for (size_t i = 0; i < shape->job_count; i++) {
        uint32_t job = shape->jobs[i];
        for (uint32_t t = 0; t < placer->request->jobs[job].count; t++)
            tasks += placer->places[placer->offsets[job] + t].machine == MACHINE_NONE;
    }
    if (!tasks)
        return true;
    if (place_pool(placer, shape->like, tasks) < tasks) {
        placer->failed = shape;
        placer->failed_tasks = tasks;
        return false;
    }
    place_fill(placer, shape->like, tasks);
    uint64_t chips_left = placer->chips_left;
    place_hand_out(placer, shape->jobs, shape->job_count);
    CHECK(chips_left - placer->chips_left == tasks * shape->like->chips); /* all of them have a place */
    return true;
}

static bool has_rule(const struct shape *shape)
{
    return shape->like->topology && !shape->like->exclusive_topology.len;
}

/* Orders exclusive domains before shared ones, and these before single machines. */
static int compare_kind(const struct shape *a, const struct shape *b)
{
    bool a_own = a->like->exclusive_topology.len != 0, b_own = b->like->exclusive_topology.len != 0;
    if (a_own != b_own)
        return a_own ? -1 : 1;
    return has_rule(a) == has_rule(b) ? 0 : has_rule(a) ? -1 : 1;
}

/* Orders shapes by difficulty: exclusive jobs, which need whole domains, then tasks with many chips, which
 * fit in the fewest places. */
static int compare_size(const void *a_shape, const void *b_shape)
{
    const struct shape *a = a_shape, *b = b_shape;
    if (compare_kind(a, b))
        return compare_kind(a, b);
    if (a->like->chips != b->like->chips)
        return a->like->chips > b->like->chips ? -1 : 1;
    if (a->like->cpu_milli != b->like->cpu_milli)
        return a->like->cpu_milli > b->like->cpu_milli ? -1 : 1;
    return a->jobs[0] < b->jobs[0] ? -1 : a->jobs[0] > b->jobs[0];
}

/* The alternative order: first the shapes that found no place before, then those with the fewest eligible
 * places, such as a shape with a node selector. */
static int compare_choice(const void *a_shape, const void *b_shape)
{
    const struct shape *a = a_shape, *b = b_shape;
    if (compare_kind(a, b))
        return compare_kind(a, b);
    if (a->failures != b->failures)
        return a->failures > b->failures ? -1 : 1;
    if (a->eligible != b->eligible)
        return a->eligible < b->eligible ? -1 : 1;
    return compare_size(a, b);
}

/* Places exclusive domains first, because they close machines to all others; then the surviving tasks of
 * all other jobs; then the new tasks. */
static bool attempt(struct placer *placer, int (*order)(const void *, const void *), bool keep)
{
    start_attempt(placer);
    qsort(placer->shapes, placer->shape_count, sizeof *placer->shapes, order);
    size_t first = 0;
    for (; first < placer->shape_count && placer->shapes[first].like->exclusive_topology.len; first++)
        if (!place_domains(placer, &placer->shapes[first], keep))
            return false;
    for (size_t s = first; s < placer->shape_count && keep; s++)
        for (size_t i = 0; i < placer->shapes[s].job_count; i++)
            place_keep(placer, placer->shapes[s].jobs[i], NULL, 0);
    for (size_t s = first; s < placer->shape_count; s++) {
        const struct shape *shape = &placer->shapes[s];
        if (!(has_rule(shape) ? place_topology(placer, shape) : place_rest(placer, shape)))
            return false;
    }
    CHECK(placer->chips_left == 0);
    return true;
}

/* Counts the places for each shape alone. Returns false if a shape has too few, so no order of shapes can
 * help. Tasks that stay on spares are not counted, so a gang that was placed before is always tried. */
static bool count_eligible(struct placer *placer)
{
    bool enough = true;
    start_attempt(placer);
    for (size_t s = 0; s < placer->shape_count; s++) {
        struct shape *shape = &placer->shapes[s];
        shape->eligible = place_pool(placer, shape->like, shape->tasks);
        bool fresh = true;
        for (size_t i = 0; i < shape->job_count; i++)
            fresh &= !placer->request->jobs[shape->jobs[i]].prefer;
        enough &= shape->eligible >= shape->tasks || !fresh;
    }
    return enough;
}

/* Tries attempts until one succeeds. A single shape without exclusive domains needs one attempt: keeping
 * survivors cannot take places from its other tasks, and where a topology rule interferes, place_topology
 * moves them all. Several shapes are a packing problem: after a failed attempt, the shape that failed moves
 * forward in the order. */
static bool search(struct placer *placer)
{
    if (attempt(placer, compare_size, true))
        return true;
    if (placer->shape_count == 1 && !placer->shapes[0].like->exclusive_topology.len)
        return false;
    if (count_eligible(placer)) {
        if (attempt(placer, compare_choice, true) || attempt(placer, compare_size, false))
            return true;
        for (int i = 0; i < RETRIES_MAX; i++) {
            if (attempt(placer, compare_choice, false))
                return true;
            for (size_t s = 0; s < placer->shape_count; s++)
                placer->shapes[s].failures += &placer->shapes[s] == placer->failed;
        }
    }
    attempt(placer, compare_size, true); /* the failure that `why` reports */
    return false;
}

static bool run(struct placer *placer, struct placement *ret_places, struct buf *why)
{
    prepare(placer);
    bool placed = search(placer);
    CHECK(placed || (placer->failed && placer->failed_tasks > 0));
    if (placed && ret_places && placer->task_count)
        memcpy(ret_places, placer->places, placer->task_count * sizeof *ret_places);
    if (!placed && why)
        place_why(placer, why);
    arena_done(&placer->arena);
    return placed;
}

bool sched_place(const struct cluster *cluster, const struct place_request *request,
                 sched_occupant_fn occupant, const void *context, struct placement *ret_places,
                 struct buf *why)
{
    CHECK(cluster && request && (request->jobs || request->job_count == 0));
    CHECK(ret_places);
    uint64_t tasks;
    struct shape_capacity *kept = capacity_of(cluster, request, context, &tasks);
    if (kept && capacity_place(kept, cluster, request, tasks, ret_places))
        return true;
    struct placer placer = {.cluster = cluster, .request = request, .occupant = occupant, .context = context};
    if (!kept)
        return run(&placer, ret_places, why);
    if (why)
        capacity_why(kept, cluster, request, context, tasks, why);
    return false;
}

bool sched_feasible(const struct cluster *cluster, const struct place_request *request, const void *context,
                    struct buf *why)
{
    CHECK(cluster && request && (request->jobs || request->job_count == 0));
    uint64_t tasks;
    const struct shape_capacity *kept = capacity_of(cluster, request, context, &tasks);
    if (kept && (kept->ideal_room >= tasks || !why))
        return kept->ideal_room >= tasks;
    struct placer placer = {.cluster = cluster, .request = request, .context = context, .ideal = true};
    return run(&placer, NULL, why);
}

bool sched_competes(const struct cluster *cluster, const struct place_request *a,
                    const struct place_request *b)
{
    for (machine_id id = 0; id < cluster->machine_count; id++) {
        bool by_a = false, by_b = false;
        for (size_t j = 0; j < a->job_count && !by_a; j++)
            by_a = a->jobs[j].count && place_usable(cluster, &a->jobs[j], id, a->use_spares);
        for (size_t j = 0; j < b->job_count && by_a && !by_b; j++)
            by_b = b->jobs[j].count && place_usable(cluster, &b->jobs[j], id, b->use_spares);
        if (by_b)
            return true;
    }
    return false;
}
