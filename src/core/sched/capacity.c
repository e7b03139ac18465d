#include "core/sched/capacity.h"

#include <stdlib.h>

#include "base/check.h"
#include "core/sched/place.h"

enum { CAPACITY_SHAPES = 16 };

struct capacity {
    VEC(struct shape_capacity *) shapes;
    uint64_t asked; /* for the shape asked for longest ago */
};

struct capacity *capacity_new(void)
{
    return mem_alloc(sizeof(struct capacity));
}

static void shape_free(struct shape_capacity *kept)
{
    buf_done(&kept->why);
    arena_done(&kept->arena);
    mem_free(kept);
}

void capacity_forget(struct capacity *capacity)
{
    for (size_t i = 0; capacity && i < capacity->shapes.len; i++)
        shape_free(capacity->shapes.items[i]);
    if (capacity)
        vec_clear(&capacity->shapes);
}

void capacity_free(struct capacity *capacity)
{
    if (!capacity)
        return;
    capacity_forget(capacity);
    vec_done(&capacity->shapes);
    mem_free(capacity);
}

/* --- one machine -------------------------------------------------------------------------------------- */

static void add_to_sums(struct shape_capacity *kept, const struct machine *machine, bool add)
{
    uint32_t fits = kept->fits[machine->id];
    struct capacity_sums *sums = &kept->sums[kept->class[machine->id]];
    uint64_t factor = add ? 1 : UINT64_MAX, chips = (uint64_t)__builtin_popcountll(kept->free[machine->id]);
    kept->ideal_room += factor * kept->ideal_fits[machine->id];
    if (!fits)
        return;
    if (!sums->block_fits) {
        sums->block_fits = ARENA_ARRAY(&kept->arena, uint64_t, kept->blocks);
        sums->block_chips = ARENA_ARRAY(&kept->arena, uint64_t, kept->blocks);
        sums->pod_fits = ARENA_ARRAY(&kept->arena, uint64_t, kept->pods);
        sums->pod_chips = ARENA_ARRAY(&kept->arena, uint64_t, kept->pods);
    }
    sums->room += factor * fits;
    sums->block_fits[machine->block] += factor * fits;
    sums->block_chips[machine->block] += factor * chips;
    sums->pod_fits[machine->pod] += factor * fits;
    sums->pod_chips[machine->pod] += factor * chips;
}

/* What the machine has room for as it stands; its sums are the caller's. */
static void judge(struct shape_capacity *kept, const struct cluster *cluster, machine_id id)
{
    const struct machine *machine = &cluster->machines[id];
    const struct place_request request = {.use_spares = kept->use_spares};
    struct placer placer = {.cluster = cluster,
                            .request = &request,
                            .ideal = true,
                            .free = kept->free,
                            .cpu_milli = kept->nothing,
                            .memory_bytes = kept->nothing,
                            .load = kept->none,
                            .claimed = kept->none};
    enum refusal refusal;
    kept->free[id] = machine_all_chips(machine);
    kept->ideal_fits[id] = place_fit(&placer, &kept->like, id, kept->most, false, &refusal);
    placer.ideal = false;
    kept->free[id] &= machine->free_mask;
    kept->fits[id] = place_fit(&placer, &kept->like, id, kept->most, false, &refusal);
    kept->class[id] = place_class(&placer, &kept->like, id) | (machine->suspect ? CLASS_AVOID : 0);
}

static void catch_up(struct shape_capacity *kept, const struct cluster *cluster)
{
    const struct machine_changes *changes = cluster->changes;
    uint64_t end = cluster_next_change(cluster);
    bool anew = kept->read < changes->first || end - kept->read > cluster->machine_count;
    if (anew) {
        memset(kept->fits, 0, cluster->machine_count * sizeof *kept->fits);
        memset(kept->ideal_fits, 0, cluster->machine_count * sizeof *kept->ideal_fits);
        kept->ideal_room = 0;
        memset(kept->sums, 0, sizeof kept->sums);
        for (machine_id id = 0; id < cluster->machine_count; id++) {
            judge(kept, cluster, id);
            add_to_sums(kept, &cluster->machines[id], true);
        }
    }
    for (uint64_t at = kept->read; !anew && at < end; at++) {
        machine_id id = changes->ids.items[at - changes->first];
        add_to_sums(kept, &cluster->machines[id], false);
        judge(kept, cluster, id);
        add_to_sums(kept, &cluster->machines[id], true);
    }
    kept->read = end;
}

/* --- shapes ------------------------------------------------------------------------------------------- */

static const struct labels *copy_labels(struct arena *arena, const struct labels *from)
{
    if (!from)
        return NULL;
    struct labels *to = ARENA_NEW(arena, struct labels);
    *to = (struct labels){ARENA_ARRAY(arena, struct label, from->len), from->len};
    for (size_t i = 0; i < from->len; i++)
        to->items[i] =
            (struct label){arena_str(arena, from->items[i].key), arena_str(arena, from->items[i].value)};
    return to;
}

static const struct toleration *copy_tolerations(struct arena *arena, const struct toleration *from,
                                                 size_t count)
{
    struct toleration *to = ARENA_ARRAY(arena, struct toleration, count);
    for (size_t i = 0; i < count; i++)
        to[i] = (struct toleration){.key = arena_str(arena, from[i].key),
                                    .op = arena_str(arena, from[i].op),
                                    .value = arena_str(arena, from[i].value),
                                    .effect = arena_str(arena, from[i].effect)};
    return to;
}

/* Only what one machine is asked for. */
static struct place_job copy_job(struct arena *arena, const struct place_job *job)
{
    return (struct place_job){
        .chips = job->chips,
        .cpu_milli = job->cpu_milli,
        .memory_bytes = job->memory_bytes,
        .node_selector = copy_labels(arena, job->node_selector),
        .more_labels = copy_labels(arena, job->more_labels),
        .tolerations = copy_tolerations(arena, job->tolerations, job->toleration_count),
        .toleration_count = job->toleration_count,
        .more_tolerations = copy_tolerations(arena, job->more_tolerations, job->more_toleration_count),
        .more_toleration_count = job->more_toleration_count,
    };
}

static struct shape_capacity *shape_new(const struct cluster *cluster, const struct place_job *job,
                                        uint32_t most, bool use_spares)
{
    struct shape_capacity *kept = mem_alloc(sizeof *kept);
    struct arena *arena = &kept->arena;
    size_t machines = cluster->machine_count;
    kept->like = copy_job(arena, job);
    kept->most = most;
    kept->use_spares = use_spares;
    kept->blocks = cluster->block_count;
    kept->pods = cluster->pod_count;
    kept->free = ARENA_ARRAY(arena, uint64_t, machines);
    kept->nothing = ARENA_ARRAY(arena, int64_t, machines);
    kept->none = ARENA_ARRAY(arena, uint32_t, machines > kept->blocks ? machines : kept->blocks);
    kept->fits = ARENA_ARRAY(arena, uint32_t, machines);
    kept->ideal_fits = ARENA_ARRAY(arena, uint32_t, machines);
    kept->take = ARENA_ARRAY(arena, uint32_t, machines);
    kept->class = ARENA_ARRAY(arena, uint8_t, machines);
    return kept;
}

/* A slot for one more: that of the shape asked for longest ago, when all are taken. */
static struct shape_capacity **make_slot(struct capacity *capacity)
{
    if (capacity->shapes.len < CAPACITY_SHAPES) {
        vec_push(&capacity->shapes, NULL);
        return &vec_last(&capacity->shapes);
    }
    struct shape_capacity **oldest = &capacity->shapes.items[0];
    for (size_t i = 1; i < capacity->shapes.len; i++)
        if (capacity->shapes.items[i]->asked < (*oldest)->asked)
            oldest = &capacity->shapes.items[i];
    shape_free(*oldest);
    return oldest;
}

/* Nothing but the machines as they stand decides about its places. */
static bool is_plain(const struct place_request *request, uint64_t *ret_tasks)
{
    const struct place_job *like = request->jobs;
    *ret_tasks = 0;
    if (!request->job_count || !like->chips || like->node_name.len || like->node_term_count ||
        like->topology || like->exclusive_topology.len || request->avoid_count || request->own_chips ||
        request->own_cpu_milli || request->own_memory_bytes || request->reserved ||
        request->reserved_cpu_milli || request->reserved_memory_bytes || request->closed ||
        request->domain_owner)
        return false;
    for (size_t j = 0; j < request->job_count; j++) {
        const struct place_job *job = &request->jobs[j];
        if (!place_same_shape(job, like))
            return false;
        for (uint32_t t = 0; job->prefer && t < job->count; t++)
            if (job->prefer[t] != MACHINE_NONE)
                return false;
        *ret_tasks += job->count;
    }
    return *ret_tasks > 0;
}

bool sched_is_plain(const struct place_request *request)
{
    uint64_t tasks;
    return is_plain(request, &tasks);
}

struct shape_capacity *capacity_of(const struct cluster *cluster, const struct place_request *request,
                                   uint64_t *ret_tasks)
{
    struct capacity *capacity = request->capacity;
    if (!capacity || !cluster->changes || !is_plain(request, ret_tasks))
        return NULL;
    const struct place_job *job = request->jobs;
    uint32_t most = cluster->chips_max / job->chips; /* no machine takes more */
    most = *ret_tasks < most ? (uint32_t)*ret_tasks : most;
    struct shape_capacity *kept = NULL;
    for (size_t i = 0; i < capacity->shapes.len && !kept; i++) {
        struct shape_capacity *at = capacity->shapes.items[i];
        if (at->most == most && at->use_spares == request->use_spares && place_same_shape(&at->like, job))
            kept = at;
    }
    if (!kept) {
        struct shape_capacity **slot = make_slot(capacity);
        *slot = kept = shape_new(cluster, job, most, request->use_spares);
        kept->read = cluster->changes->first - 1; /* before all: everything is counted */
    }
    kept->asked = ++capacity->asked;
    catch_up(kept, cluster);
    return kept;
}

/* --- places ------------------------------------------------------------------------------------------- */

uint64_t capacity_room(const struct shape_capacity *kept)
{
    uint64_t room = 0;
    for (int class = 0; class < CLASSES; class ++)
        room += kept->sums[class].room;
    return room;
}

static int compare_ids(const void *a_id, const void *b_id)
{
    machine_id a = *(const machine_id *)a_id, b = *(const machine_id *)b_id;
    return a < b ? -1 : a > b;
}

bool capacity_place(struct shape_capacity *kept, const struct cluster *cluster,
                    const struct place_request *request, uint64_t tasks, struct placement *ret_places)
{
    if (capacity_room(kept) < tasks)
        return false;
    struct placer placer = {.cluster = cluster,
                            .request = request,
                            .kept = kept,
                            .fits = kept->fits,
                            .class = kept->class,
                            .free = kept->free,
                            .take = kept->take,
                            .block_load = kept->none,
                            .pod_load = kept->none,
                            .chips_left = tasks * kept->like.chips};
    placer.pool = ARENA_ARRAY(&placer.arena, machine_id, tasks);
    place_fill(&placer, &kept->like, tasks);
    qsort(placer.pool, placer.pool_len, sizeof *placer.pool, compare_ids);
    size_t task = 0;
    for (size_t i = 0; i < placer.pool_len; i++) {
        machine_id id = placer.pool[i];
        uint64_t free = kept->free[id];
        for (; kept->take[id]; kept->take[id]--) {
            uint64_t chips = place_chips(free, kept->like.chips);
            CHECK(task < tasks && (chips & ~free) == 0);
            ret_places[task++] = (struct placement){id, chips};
            free &= ~chips;
        }
    }
    CHECK(task == tasks);
    arena_done(&placer.arena);
    return true;
}

/* --- what holds --------------------------------------------------------------------------------------- */

static void check_shape(struct shape_capacity *kept, const struct cluster *cluster)
{
    struct shape_capacity *again = shape_new(cluster, &kept->like, kept->most, kept->use_spares);
    again->read = cluster->changes->first - 1;
    catch_up(again, cluster);
    catch_up(kept, cluster);
    for (machine_id id = 0; id < cluster->machine_count; id++)
        CHECK(kept->fits[id] == again->fits[id] && kept->free[id] == again->free[id] &&
              kept->class[id] == again->class[id] && kept->ideal_fits[id] == again->ideal_fits[id] &&
              !kept->take[id] && !kept->nothing[id] && !kept->none[id]);
    CHECK(kept->ideal_room == again->ideal_room);
    for (int class = 0; class < CLASSES; class ++) {
        const struct capacity_sums *a = &kept->sums[class], *b = &again->sums[class];
        CHECK(a->room == b->room);
        for (size_t i = 0; i < kept->blocks && a->block_fits; i++)
            CHECK(a->block_fits[i] == (b->block_fits ? b->block_fits[i] : 0) &&
                  a->block_chips[i] == (b->block_fits ? b->block_chips[i] : 0));
        for (size_t i = 0; i < kept->pods && a->block_fits; i++)
            CHECK(a->pod_fits[i] == (b->block_fits ? b->pod_fits[i] : 0) &&
                  a->pod_chips[i] == (b->block_fits ? b->pod_chips[i] : 0));
    }
    shape_free(again);
}

void capacity_check(struct capacity *capacity, const struct cluster *cluster)
{
    for (size_t i = 0; capacity && cluster->changes && i < capacity->shapes.len; i++)
        check_shape(capacity->shapes.items[i], cluster);
}
