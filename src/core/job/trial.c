#include "core/job/trial.h"

#include <stdlib.h>

#include "core/job/internal.h"
#include "core/job/request.h"

bool jobset_trial(const struct job_store *store, const struct cluster *cluster, const struct jobset *jobset,
                  const struct trial *trial, struct placement *places, struct buf *why)
{
    struct request request;
    request_jobset(&request, store, cluster, jobset, trial);
    struct placement *found = places ? places : mem_alloc((request.prefer.len + 1) * sizeof(*found));
    bool result = request_place(&request, found, why);
    if (!places)
        mem_free(found);
    request_drop(&request);
    return result;
}

/* --- terms ------------------------------------------------------------------------------------ */

static struct labels copy_labels(struct arena *arena, const struct labels *from)
{
    struct labels to = {ARENA_ARRAY(arena, struct label, from->len), from->len};
    for (size_t i = 0; i < from->len; i++)
        to.items[i] =
            (struct label){arena_str(arena, from->items[i].key), arena_str(arena, from->items[i].value)};
    return to;
}

static void copy_terms(struct arena *arena, const struct rjob_terms *from, struct rjob_terms *to)
{
    to->node_labels = copy_labels(arena, &from->node_labels);
    to->labels = copy_labels(arena, &from->labels);
    to->annotations = copy_labels(arena, &from->annotations);
    to->toleration_count = from->toleration_count;
    to->tolerations = ARENA_ARRAY(arena, struct toleration, from->toleration_count);
    for (size_t i = 0; i < from->toleration_count; i++) {
        const struct toleration *item = &from->tolerations[i];
        to->tolerations[i] =
            (struct toleration){arena_str(arena, item->key), arena_str(arena, item->op),
                                arena_str(arena, item->value), arena_str(arena, item->effect)};
    }
    to->level_count = from->level_count;
    to->levels = ARENA_ARRAY(arena, struct str, from->level_count);
    for (size_t i = 0; i < from->level_count; i++)
        to->levels[i] = arena_str(arena, from->levels[i]);
    to->spares = from->spares;
}

void jobset_keep_terms(struct jobset *jobset, const struct rjob_terms *terms)
{
    struct arena arena = {0};
    struct rjob_terms *kept = NULL;
    if (terms) {
        kept = ARENA_ARRAY(&arena, struct rjob_terms, jobset->spec.rjob_count);
        for (size_t r = 0; r < jobset->spec.rjob_count; r++)
            copy_terms(&arena, &terms[r], &kept[r]);
    }
    arena_done(&jobset->grant.arena); /* only now: `terms` may point into it */
    jobset->grant.arena = arena;
    jobset->grant.terms = kept;
}

void jobset_set_terms(struct step *step, struct jobset *jobset, const struct rjob_terms *terms)
{
    if (!terms && !jobset->grant.terms)
        return;
    jobset_keep_terms(jobset, terms);
    for (size_t g = 0; g < jobset->gangs.len; g++)
        gang_judge_anew(jobset->gangs.items[g]);
    step->schedule = true;
}

/* --- reservations ----------------------------------------------------------------------------- */

void trial_add_rooms(const struct jobset *jobset, const struct trial *trial, const struct placement *places,
                     struct room *rooms)
{
    size_t task = 0, podset = 0;
    for (size_t i = 0; i < (trial->with_count ? trial->with_count : 1); i++) {
        const struct jobset *one = trial->with_count ? trial->with[i] : jobset;
        for (size_t r = 0; r < one->spec.rjob_count; r++, podset++) {
            const struct rjob_spec *rjob = &one->spec.rjobs[r];
            int32_t count = trial->counts ? trial->counts[podset] : rjob_task_count(rjob);
            for (int32_t t = 0; t < count; t++, task++) {
                struct room *room = &rooms[places[task].machine];
                room->chips |= places[task].chips;
                room->cpu_milli += rjob->job.pod.cpu_request_milli;
                room->memory_bytes += rjob->job.pod.memory_request_bytes;
            }
        }
    }
}

void jobset_keep_reserved(struct job_store *store, struct jobset *jobset, const struct room *rooms,
                          size_t count)
{
    store->reserving -= jobset->grant.reserved_count > 0;
    mem_free(jobset->grant.reserved);
    jobset->grant.reserved = NULL;
    if (count) {
        jobset->grant.reserved = mem_alloc(count * sizeof(*jobset->grant.reserved));
        mem_copy(jobset->grant.reserved, rooms, count * sizeof(*rooms));
    }
    jobset->grant.reserved_count = count;
    store->reserving += count > 0;
}

/* Whether the present reservation has room that `rooms` has not. */
static bool gives_back(const struct jobset *jobset, const struct room *rooms)
{
    for (size_t r = 0; r < jobset->grant.reserved_count; r++) {
        const struct room *old = &jobset->grant.reserved[r];
        struct room new = rooms ? rooms[old->machine] : (struct room){0};
        if (old->chips & ~new.chips || old->cpu_milli > new.cpu_milli || old->memory_bytes > new.memory_bytes)
            return true;
    }
    return false;
}

static void replace_reserved(struct step *step, struct jobset *jobset, const struct room *rooms)
{
    VEC(struct room) list = {0};
    if (!rooms && !jobset->grant.reserved_count)
        return;
    CHECK(!rooms || (!jobset_finished(jobset) && !jobset->deleted_ns));
    for (machine_id id = 0; rooms && id < step->cluster->machine_count; id++) {
        const struct machine *machine = &step->cluster->machines[id];
        /* Resources that the machine does not count need not be kept. */
        struct room room = {id, rooms[id].chips & machine_all_chips(machine),
                            machine->cpu_milli ? rooms[id].cpu_milli : 0,
                            machine->memory_bytes ? rooms[id].memory_bytes : 0};
        if (room.chips || room.cpu_milli || room.memory_bytes)
            vec_push(&list, room);
    }
    step->schedule |= jobset->grant.reserved_count > 0; /* other gangs may have what it gives back */
    jobset_keep_reserved(step->jobs, jobset, list.items, list.len);
    vec_done(&list);
}

void jobset_reserve(struct step *step, struct jobset *jobset, const struct room *rooms)
{
    step->room |= gives_back(jobset, rooms);
    replace_reserved(step, jobset, rooms);
}

/* Counts the tasks of each replicated job whose Jobs have not begun; returns their sum. */
static int64_t count_later(const struct jobset *jobset, int32_t *counts)
{
    int64_t sum = 0;
    uint32_t position = 0;
    for (size_t r = 0; r < jobset->spec.rjob_count; r++) {
        const struct rjob_spec *rjob = &jobset->spec.rjobs[r];
        int32_t later = 0;
        for (int32_t i = 0; i < rjob->replicas; i++, position++) {
            const struct job *job = jobset->jobs[position];
            later += !job || job->state == JOB_SUSPENDED;
        }
        counts[r] = rjob->replicas ? rjob_task_count(rjob) / rjob->replicas * later : 0;
        sum += counts[r];
    }
    return sum;
}

enum found { FOUND_NOTHING_LATER, FOUND_NO_ROOM, FOUND_ROOM };

/* Looks for room for the tasks that will be made later; `ret_rooms` is in `arena`. */
static enum found find_room_for_later(const struct step *step, const struct jobset *jobset,
                                      struct arena *arena, struct room **ret_rooms)
{
    struct buf why BUF_CLEANUP = {0};
    int32_t *counts = ARENA_ARRAY(arena, int32_t, jobset->spec.rjob_count);
    int64_t tasks = jobset->grant.terms && !jobset->deleted_ns ? count_later(jobset, counts) : 0;
    if (!tasks || jobset_finished(jobset))
        return FOUND_NOTHING_LATER;
    struct placement *places = ARENA_ARRAY(arena, struct placement, (size_t)tasks);
    struct trial trial = {.terms = jobset->grant.terms, .counts = counts};
    if (!jobset_trial(step->jobs, step->cluster, jobset, &trial, places, &why))
        return FOUND_NO_ROOM;
    *ret_rooms = ARENA_ARRAY(arena, struct room, step->cluster->machine_count);
    trial_add_rooms(jobset, &trial, places, *ret_rooms);
    return FOUND_ROOM;
}

/* The JobSet's placed tasks have the rest of the reservation: no workload finds room there. */
void jobset_reserve_later(struct step *step, struct jobset *jobset)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct room *rooms = NULL;
    if (find_room_for_later(step, jobset, &arena, &rooms) != FOUND_NO_ROOM)
        replace_reserved(step, jobset, rooms);
}

void jobset_reserve_by_terms(struct step *step, struct jobset *jobset)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct room *rooms = NULL;
    (void)find_room_for_later(step, jobset, &arena, &rooms);
    jobset_reserve(step, jobset, rooms);
}

static int compare_rooms(const void *a, const void *b)
{
    machine_id x = ((const struct room *)a)->machine, y = ((const struct room *)b)->machine;
    return x < y ? -1 : x > y;
}

void jobset_remap_reserved(struct job_store *store, struct jobset *jobset, const machine_id *map)
{
    size_t kept = 0;
    for (size_t i = 0; i < jobset->grant.reserved_count; i++) {
        struct room room = jobset->grant.reserved[i];
        room.machine = map[room.machine];
        if (room.machine != MACHINE_NONE)
            jobset->grant.reserved[kept++] = room;
    }
    if (kept)
        qsort(jobset->grant.reserved, kept, sizeof(*jobset->grant.reserved), compare_rooms);
    if (kept)
        jobset->grant.reserved_count = kept;
    else
        jobset_keep_reserved(store, jobset, NULL, 0);
}
