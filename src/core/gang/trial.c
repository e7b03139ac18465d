#include "core/gang/trial.h"

#include "core/gang/internal.h"
#include "core/gang/request.h"

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
                CHECK(places[task].machine != MACHINE_NONE);
                struct room *room = &rooms[places[task].machine];
                room->chips |= places[task].chips;
                room->cpu_milli += rjob->job.pod.cpu_request_milli;
                room->memory_bytes += rjob->job.pod.memory_request_bytes;
            }
        }
    }
}

/* Sets counts[rjob_count] to the number of tasks of Jobs that have not begun, and returns the sum. */
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
    CHECK(position == jobset->job_count && sum >= 0);
    return sum;
}

enum found { FOUND_NOTHING_LATER, FOUND_NO_ROOM, FOUND_ROOM };

/* Finds room for the tasks that will be made later; *ret_rooms lives in `arena`. */
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

/* Wakes no workload, because the JobSet's placed tasks use the rest of the reservation. */
void jobset_reserve_later(struct step *step, struct jobset *jobset)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct room *rooms = NULL;
    if (find_room_for_later(step, jobset, &arena, &rooms) != FOUND_NO_ROOM)
        jobset_replace_reserved(step, jobset, rooms);
}

void jobset_reserve_by_terms(struct step *step, struct jobset *jobset)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct room *rooms = NULL;
    (void)find_room_for_later(step, jobset, &arena, &rooms);
    jobset_reserve(step, jobset, rooms);
}
