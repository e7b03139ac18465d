#include "core/sched/capacity.h"

#include <stdlib.h>

#include "base/check.h"
#include "core/sched/place.h"

enum { CAPACITY_SHAPES = 16 };

struct capacity {
    VEC(struct shape_capacity *) shapes;
    uint64_t asked; /* counter of uses: the time of the last one */
    uint64_t made;  /* number of shapes ever made: the number of the newest */
    uint64_t last;  /* number of the most recently used shape */
};

struct capacity *capacity_new(void)
{
    return mem_alloc(sizeof(struct capacity));
}

static void shape_free(struct shape_capacity *kept)
{
    refusals_done(&kept->refusals);
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

/* Returns the position of the first block with more than `fits` places, or with `fits` places and an index of
 * at least `block`. */
static size_t find_in_order(const struct capacity_sums *sums, uint64_t fits, uint32_t block)
{
    size_t low = 0, high = sums->order_len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint32_t at = sums->order[middle];
        if (sums->block_fits[at] < fits || (sums->block_fits[at] == fits && at < block))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Sets a block's number of places, and moves the block to its new position in the order. */
static void set_block_fits(struct capacity_sums *sums, uint32_t block, uint64_t fits)
{
    uint32_t *order = sums->order;
    if (sums->block_fits[block]) {
        size_t place = find_in_order(sums, sums->block_fits[block], block);
        CHECK(place < sums->order_len && order[place] == block);
        sums->order_len--;
        memmove(order + place, order + place + 1, (sums->order_len - place) * sizeof *order);
    }
    sums->block_fits[block] = fits;
    if (fits) {
        size_t place = find_in_order(sums, fits, block);
        memmove(order + place + 1, order + place, (sums->order_len - place) * sizeof *order);
        order[place] = block;
        sums->order_len++;
    }
}

bool capacity_least_block(const struct capacity_sums *sums, uint64_t tasks, uint32_t *ret_block)
{
    CHECK(tasks > 0);
    size_t place = find_in_order(sums, tasks, 0);
    if (place == sums->order_len)
        return false;
    *ret_block = sums->order[place];
    return true;
}

static void count_refusal(struct shape_capacity *kept, machine_id id, bool add)
{
    enum refusal refusal = kept->fits[id] ? FITS : (enum refusal)kept->refusal[id];
    CHECK((refusal == FITS) == (kept->fits[id] > 0));
    if (add)
        refusals_add(&kept->refusals, &kept->arena, kept->machines, id, refusal, kept->holder[id]);
    else
        refusals_remove(&kept->refusals, id, refusal, kept->holder[id]);
}

static void add_to_sums(struct shape_capacity *kept, const struct machine *machine, bool add)
{
    uint32_t fits = kept->fits[machine->id];
    struct capacity_sums *sums = &kept->sums[kept->class[machine->id]];
    uint64_t factor = add ? 1 : UINT64_MAX, chips = (uint64_t)__builtin_popcountll(kept->free[machine->id]);
    kept->ideal_room += factor * kept->ideal_fits[machine->id];
    count_refusal(kept, machine->id, add);
    if (!fits)
        return;
    if (!sums->block_fits) {
        sums->block_fits = ARENA_ARRAY(&kept->arena, uint64_t, kept->blocks);
        sums->block_chips = ARENA_ARRAY(&kept->arena, uint64_t, kept->blocks);
        sums->order = ARENA_ARRAY(&kept->arena, uint32_t, kept->blocks);
        sums->pod_fits = ARENA_ARRAY(&kept->arena, uint64_t, kept->pods);
        sums->pod_chips = ARENA_ARRAY(&kept->arena, uint64_t, kept->pods);
    }
    sums->room += factor * fits;
    set_block_fits(sums, machine->block, sums->block_fits[machine->block] + factor * fits);
    sums->block_chips[machine->block] += factor * chips;
    sums->pod_fits[machine->pod] += factor * fits;
    sums->pod_chips[machine->pod] += factor * chips;
}

struct judgement {
    uint32_t fits, ideal_fits;
    uint8_t class, refusal;
};

/* Computes how many tasks of the shape the machine can take, and sets its free chips in `kept`. */
static struct judgement judge(struct shape_capacity *kept, const struct cluster *cluster, machine_id id)
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
    struct judgement now;
    enum refusal refusal;
    kept->free[id] = machine_all_chips(machine);
    now.ideal_fits = place_fit(&placer, &kept->like, id, kept->most, false, &refusal);
    placer.ideal = false;
    kept->free[id] &= machine->free_mask;
    now.fits = place_fit(&placer, &kept->like, id, kept->most, false, &refusal);
    now.class = place_class(&placer, &kept->like, id) | (machine->suspect ? CLASS_AVOID : 0);
    now.refusal = (uint8_t)refusal;
    return now;
}

/* Stores the machine's judgement in `kept`, and the holder of its chips if the request can name holders. */
static void note_machine(struct shape_capacity *kept, const struct cluster *cluster, machine_id id,
                         const struct place_request *request, const void *context)
{
    struct judgement now = judge(kept, cluster, id);
    kept->fits[id] = now.fits;
    kept->ideal_fits[id] = now.ideal_fits;
    kept->class[id] = now.class;
    kept->refusal[id] = now.refusal;
    kept->holder[id] = now.refusal == REFUSED_TAKEN && request->holder ? request->holder(context, id) : 0;
    add_to_sums(kept, &cluster->machines[id], true);
}

static void catch_up(struct shape_capacity *kept, const struct cluster *cluster,
                     const struct place_request *request, const void *context)
{
    const struct machine_changes *changes = cluster->changes;
    uint64_t end = cluster_next_change(cluster);
    if (kept->read == end)
        return;
    bool anew = kept->read < changes->first || end - kept->read > cluster->machine_count;
    if (anew) {
        kept->ideal_room = 0;
        memset(kept->sums, 0, sizeof kept->sums);
        refusals_clear(&kept->refusals);
    }
    for (machine_id id = 0; anew && id < cluster->machine_count; id++)
        note_machine(kept, cluster, id, request, context);
    for (uint64_t at = kept->read; !anew && at < end; at++) {
        machine_id id = changes->ids.items[at - changes->first];
        if (kept->caught_up[id] == end)
            continue; /* it has changed several times */
        kept->caught_up[id] = end;
        add_to_sums(kept, &cluster->machines[id], false);
        note_machine(kept, cluster, id, request, context);
    }
    kept->read = end;
    kept->checked = 0;
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

/* Copies the fields of a job that decide whether a machine can take a task. */
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
    kept->machines = machines;
    kept->blocks = cluster->block_count;
    kept->pods = cluster->pod_count;
    kept->free = ARENA_ARRAY(arena, uint64_t, machines);
    kept->nothing = ARENA_ARRAY(arena, int64_t, machines);
    kept->none = ARENA_ARRAY(arena, uint32_t, machines > kept->blocks ? machines : kept->blocks);
    kept->fits = ARENA_ARRAY(arena, uint32_t, machines);
    kept->ideal_fits = ARENA_ARRAY(arena, uint32_t, machines);
    kept->take = ARENA_ARRAY(arena, uint32_t, machines);
    kept->class = ARENA_ARRAY(arena, uint8_t, machines);
    kept->refusal = ARENA_ARRAY(arena, uint8_t, machines);
    kept->holder = ARENA_ARRAY(arena, obj_id, machines);
    kept->caught_up = ARENA_ARRAY(arena, uint64_t, machines);
    return kept;
}

/* Returns a free slot. If there is none, frees the least recently used shape and returns its slot. */
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

/* Implements sched_is_plain, and sets the number of tasks. */
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
                                   const void *context, uint64_t *ret_tasks)
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
        kept->number = ++capacity->made;
    }
    kept->asked = ++capacity->asked;
    capacity->last = kept->number;
    catch_up(kept, cluster, request, context);
    return kept;
}

uint64_t capacity_asked(const struct capacity *capacity)
{
    return capacity ? capacity->last : 0;
}

/* Returns the numbered shape, updated, or NULL if the cache has dropped it. */
static struct shape_capacity *numbered(const struct cluster *cluster, const struct place_request *request,
                                       const void *context, uint64_t shape)
{
    struct capacity *capacity = request->capacity;
    for (size_t i = 0; capacity && cluster->changes && i < capacity->shapes.len; i++) {
        struct shape_capacity *kept = capacity->shapes.items[i];
        if (kept->number != shape)
            continue;
        kept->asked = ++capacity->asked;
        catch_up(kept, cluster, request, context);
        return kept;
    }
    return NULL;
}

bool capacity_lacks(const struct cluster *cluster, const struct place_request *request, const void *context,
                    uint64_t shape, uint64_t tasks)
{
    CHECK(shape > 0 && tasks > 0);
    const struct shape_capacity *kept = numbered(cluster, request, context, shape);
    return kept && capacity_room(kept) < tasks;
}

struct str capacity_known_why(const struct cluster *cluster, const struct place_request *request,
                              const void *context, uint64_t shape, uint64_t tasks)
{
    CHECK(shape > 0 && tasks > 0);
    const struct shape_capacity *kept = numbered(cluster, request, context, shape);
    bool known = kept && kept->why_read == kept->read && kept->why_tasks == tasks;
    return known && capacity_room(kept) < tasks ? buf_str(&kept->why) : (struct str){0};
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

void capacity_why(struct shape_capacity *kept, const struct cluster *cluster,
                  const struct place_request *request, const void *context, uint64_t tasks, struct buf *why)
{
    if (kept->why_read != kept->read || kept->why_tasks != tasks) {
        struct shape failed = {.like = request->jobs, .job_count = request->job_count, .tasks = tasks};
        struct placer placer = {.cluster = cluster,
                                .request = request,
                                .context = context,
                                .kept = kept,
                                .failed = &failed,
                                .failed_tasks = tasks};
        buf_clear(&kept->why);
        place_why(&placer, &kept->why);
        kept->why_read = kept->read;
        kept->why_tasks = tasks;
    }
    buf_add_str(why, buf_str(&kept->why));
}

/* --- checks ------------------------------------------------------------------------------------------- */

static void check_refusals(const struct shape_capacity *kept)
{
    uint32_t counts[REFUSALS] = {0};
    for (machine_id id = 0; id < kept->machines; id++) {
        enum refusal refusal = kept->fits[id] ? FITS : (enum refusal)kept->refusal[id];
        counts[refusal]++;
        CHECK(refusal == FITS || refusals_next(&kept->refusals, refusal, id) == id);
        CHECK(refusal != REFUSED_TAKEN || refusals_held(&kept->refusals, kept->holder[id]) > 0);
    }
    CHECK(kept->refusals.fitting == counts[FITS]);
    for (int refusal = FITS + 1; refusal < REFUSALS; refusal++)
        CHECK(kept->refusals.counts[refusal] == counts[refusal]);
}

static void check_sums(const struct shape_capacity *kept, const struct cluster *cluster)
{
    for (int class = 0; class < CLASSES; class ++) {
        const struct capacity_sums *sums = &kept->sums[class];
        uint64_t room = 0;
        size_t roomy = 0;
        for (size_t b = 0; sums->block_fits && b < kept->blocks; b++) {
            const struct block *block = &cluster->blocks[b];
            uint64_t fits = 0, chips = 0;
            for (machine_id id = block->first; id < block->first + block->count; id++) {
                bool counts = kept->fits[id] && kept->class[id] == class;
                fits += counts ? kept->fits[id] : 0;
                chips += counts ? (uint64_t)__builtin_popcountll(kept->free[id]) : 0;
            }
            CHECK(sums->block_fits[b] == fits && sums->block_chips[b] == chips);
            room += fits;
            roomy += fits > 0;
        }
        CHECK(sums->room == room && sums->order_len == roomy);
        for (size_t at = 0; at < sums->order_len; at++)
            CHECK(find_in_order(sums, sums->block_fits[sums->order[at]], sums->order[at]) == at);
        for (size_t p = 0; sums->block_fits && p < kept->pods; p++) {
            const struct pod *pod = &cluster->pods[p];
            uint64_t fits = 0, chips = 0;
            for (uint32_t b = pod->first_block; b < pod->first_block + pod->block_count; b++) {
                fits += sums->block_fits[b];
                chips += sums->block_chips[b];
            }
            CHECK(sums->pod_fits[p] == fits && sums->pod_chips[p] == chips);
        }
    }
}

/* CHECKs a shape: a machine without unread changes must be as it was judged, and the sums must be right. */
static void check_shape(struct shape_capacity *kept, const struct cluster *cluster)
{
    const struct machine_changes *changes = cluster->changes;
    uint64_t end = cluster_next_change(cluster), ideal_room = 0;
    if (kept->checked == end || kept->read < changes->first)
        return;
    struct arena arena ARENA_CLEANUP = {0};
    bool *behind = ARENA_ARRAY(&arena, bool, cluster->machine_count);
    for (uint64_t at = kept->read; at < end; at++)
        behind[changes->ids.items[at - changes->first]] = true;
    for (machine_id id = 0; id < cluster->machine_count; id++) {
        uint64_t free = kept->free[id];
        struct judgement now = judge(kept, cluster, id);
        CHECK(behind[id] || (free == kept->free[id] && now.fits == kept->fits[id] &&
                             now.ideal_fits == kept->ideal_fits[id] && now.class == kept->class[id] &&
                             now.refusal == kept->refusal[id]));
        CHECK(!kept->take[id] && !kept->nothing[id] && !kept->none[id]);
        kept->free[id] = free;
        ideal_room += kept->ideal_fits[id];
    }
    CHECK(kept->ideal_room == ideal_room);
    check_sums(kept, cluster);
    check_refusals(kept);
    kept->checked = end;
}

void capacity_check(struct capacity *capacity, const struct cluster *cluster)
{
    for (size_t i = 0; capacity && cluster->changes && i < capacity->shapes.len; i++)
        check_shape(capacity->shapes.items[i], cluster);
}
