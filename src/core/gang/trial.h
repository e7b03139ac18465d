/* trial.h - whether a JobSet would find machines now, asked by admit/ before it gives quota, so that quota
 * and placement are decided as one; and the terms under which its gangs are placed afterwards.
 *
 * Pure: nothing is taken. The gang that is formed in the same step finds the same places again, as long as
 * nothing else was placed in between.
 */
#ifndef PHX_CORE_GANG_TRIAL_H
#define PHX_CORE_GANG_TRIAL_H

#include "core/job/job.h"

struct step;

struct trial {
    const struct rjob_terms *terms; /* [rjob_count] or NULL */
    const int32_t *counts;          /* [rjob_count] tasks, fewer than the spec's, or NULL */
    const uint64_t *may_free;       /* [machine_count] masks of chips that would be freed first (the
                                       * victims'), or NULL */
    const int64_t *may_free_cpu_milli, *may_free_memory_bytes; /* likewise, or NULL */
    bool use_spares;
    /* JobSets (Pods) that are tried together, beginning with the one in question: `terms`, `counts` and
     * places are of all their replicated jobs. NULL: it alone. */
    const struct jobset *const *with;
    size_t with_count;
};

/* Tries all tasks of all replicated jobs at once. `places` (NULL: not wanted) gets one entry a task, in
 * spec order: replicated job, job, index. False: `why` gets one sentence in numbers. */
bool jobset_trial(const struct job_store *store, const struct cluster *cluster, const struct jobset *jobset,
                  const struct trial *trial, struct placement *places, struct buf *why);
/* Whether a queued gang could be placed if every machine were ready and empty. False: `why` (NULL: not
 * wanted) gets one sentence in numbers. */
bool gang_feasible(const struct job_store *store, const struct cluster *cluster, const struct gang *gang,
                   struct buf *why);
/* Tasks of one replicated job: replicas x min(parallelism, completions). */
int32_t rjob_task_count(const struct rjob_spec *rjob);

/* Sets jobset->grant.terms to a copy ([rjob_count]); NULL: none. Placed tasks stay where they are. */
void jobset_set_terms(struct step *step, struct jobset *jobset, const struct rjob_terms *terms);

/* Returns a Pod template as users see it, with the terms' additions (NULL: none). It shares nodes with
 * `template`. The reverse function removes from a written document what the terms added to its templates
 * (terms.c). */
const struct doc *template_with_terms(struct arena *arena, const struct doc *template,
                                      const struct rjob_terms *terms);
const struct doc *document_with_terms(struct arena *arena, const struct jobset *jobset);
void document_strip_terms(const struct jobset *jobset, struct doc *document);

/* Adds the chips, cpu and memory of a trial's places to `rooms` ([machine_count]). */
void trial_add_rooms(const struct jobset *jobset, const struct trial *trial, const struct placement *places,
                     struct room *rooms);

/* Reserves room for a gang that waits for its victims to end: no other gang gets it. A JobSet has at most
 * one reservation; a new one replaces it, NULL drops it. `rooms`: [machine_count], their `machine` is
 * ignored. Snapshots keep it; it is dropped when the JobSet's last waiting gang is placed, or the JobSet
 * ends. The room that it gives back wakes the waiting workloads of all queues. */
void jobset_reserve(struct step *step, struct jobset *jobset, const struct room *rooms);
/* The same, when all that it gives back is in use by its own placed tasks: no workload is woken. */
void jobset_replace_reserved(struct step *step, struct jobset *jobset, const struct room *rooms);

/* Called when its waiting gangs are placed: reserves the room of an admitted JobSet's later replicated
 * jobs (startupPolicy InOrder, dependsOn), and drops any other reservation. */
void jobset_reserve_later(struct step *step, struct jobset *jobset);
/* The terms may have changed since the reservation was made (a ResourceFlavor's labels, while a Workload had
 * no job or waited for its checks): reserves what suits them now, or nothing, where there is no such room. */
void jobset_reserve_by_terms(struct step *step, struct jobset *jobset);

/* For restoring a snapshot, and for a new inventory (map: life.h's jobs_remap_machines). Copies. */
void jobset_keep_terms(struct jobset *jobset, const struct rjob_terms *terms);
void jobset_keep_reserved(struct job_store *store, struct jobset *jobset, const struct room *rooms,
                          size_t count);
void jobset_remap_reserved(struct job_store *store, struct jobset *jobset, const machine_id *map);
/* After all are remapped: the machines of the new inventory, whose masks are empty, get theirs. */
void jobs_look_at_reserved(struct job_store *store);

/* Returns the machine's chips that are reserved for JobSets, free or not. */
uint64_t jobs_reserved_chips(const struct job_store *store, machine_id machine);
/* Called before a step ends: machines whose reservations have changed get their reserved_mask, and the
 * cluster's book the owners of their free chips. */
void jobs_book_reserved(struct step *step);
/* The same after a snapshot is read, without booking. */
void jobs_restore_reserved(struct job_store *store, struct cluster *cluster);

#endif
