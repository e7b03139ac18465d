/* trial.h - trial placement: whether a JobSet would find machines now. admit/ asks before it grants quota, so
 * that quota and placement are decided as one. Also the terms and reservations of admitted JobSets.
 *
 * A trial takes nothing. The gang that is formed in the same step finds the same places again if nothing else
 * was placed in between.
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
    /* [machine_count] cpu and memory that would be freed first, or NULL */
    const int64_t *may_free_cpu_milli, *may_free_memory_bytes;
    bool use_spares; /* the JobSet may use machines that are kept as spares */
    /* JobSets (Pods) that are tried together, beginning with the one in question. `terms`, `counts` and the
     * places then cover all their replicated jobs, in this order. NULL: the JobSet alone. */
    const struct jobset *const *with;
    size_t with_count;
};

/* Tries to place all tasks of all replicated jobs at once. `places` may be NULL; otherwise it gets one entry
 * for each task, in spec order: replicated job, job, index. Returns false, and appends one sentence in
 * numbers to `why`, if they do not fit. */
bool jobset_trial(const struct job_store *store, const struct cluster *cluster, const struct jobset *jobset,
                  const struct trial *trial, struct placement *places, struct buf *why);
/* Returns whether a queued gang could be placed if every machine were ready and empty. Otherwise appends one
 * sentence in numbers to `why`, which may be NULL. */
bool gang_feasible(const struct job_store *store, const struct cluster *cluster, const struct gang *gang,
                   struct buf *why);
/* Returns the number of tasks of one replicated job: replicas x min(parallelism, completions). */
int32_t rjob_task_count(const struct rjob_spec *rjob);

/* Sets jobset->grant.terms to a copy of terms[rjob_count] or NULL. Placed tasks keep their places. */
void jobset_set_terms(struct step *step, struct jobset *jobset, const struct rjob_terms *terms);

/* Return a Pod template, or the JobSet's document, as users see it: with the additions of its terms (terms
 * NULL: unchanged). The result lives in `arena` and shares nodes with the original. document_strip_terms is
 * the reverse: it removes the additions from the templates of a document that a user wrote. */
const struct doc *template_with_terms(struct arena *arena, const struct doc *template,
                                      const struct rjob_terms *terms);
const struct doc *document_with_terms(struct arena *arena, const struct jobset *jobset);
void document_strip_terms(const struct jobset *jobset, struct doc *document);

/* Adds the chips, cpu and memory of a trial's places to `rooms` ([machine_count]). */
void trial_add_rooms(const struct jobset *jobset, const struct trial *trial, const struct placement *places,
                     struct room *rooms);

/* Reserves capacity for a gang that waits for its victims to end; no other gang gets it. Copies `rooms`
 * ([machine_count], `machine` ignored). A JobSet has at most one reservation: a new one replaces it, NULL
 * drops it. Snapshots keep it. The reservation ends when the JobSet's last waiting gang is placed, or the
 * JobSet ends. Capacity that is given back wakes the waiting workloads of all queues. */
void jobset_reserve(struct step *step, struct jobset *jobset, const struct room *rooms);
/* Does the same without waking workloads: for capacity that the JobSet's own placed tasks now use. */
void jobset_replace_reserved(struct step *step, struct jobset *jobset, const struct room *rooms);

/* Called when the JobSet's waiting gangs are placed. Replaces the reservation by one for the later replicated
 * jobs of an admitted JobSet (startupPolicy InOrder, dependsOn), or drops it if no job comes later. If the
 * later jobs do not fit now, the present reservation stays. */
void jobset_reserve_later(struct step *step, struct jobset *jobset);
/* Replaces the reservation after a possible change of the terms (a ResourceFlavor's labels, while a Workload
 * had no job or waited for its checks). Drops it if the tasks that it is for do not fit under these terms. */
void jobset_reserve_by_terms(struct step *step, struct jobset *jobset);

/* For a snapshot or a new inventory (map: jobs_remap_machines). They copy arguments, and book nothing. */
void jobset_keep_terms(struct jobset *jobset, const struct rjob_terms *terms);
void jobset_keep_reserved(struct job_store *store, struct jobset *jobset, const struct room *rooms,
                          size_t count);
void jobset_remap_reserved(struct job_store *store, struct jobset *jobset, const machine_id *map);
/* Called after all reservations are remapped: lists the machines whose reserved_mask is to be computed. */
void jobs_look_at_reserved(struct job_store *store);

/* Returns the machine's chips that are reserved for JobSets, free or not. */
uint64_t jobs_reserved_chips(const struct job_store *store, machine_id machine);
/* Updates reserved_mask of machines whose reservations have changed, and the owners of their free chips in
 * the cluster's book. Called before a step ends. */
void jobs_book_reserved(struct step *step);
/* Updates the masks after a snapshot is read, without booking. */
void jobs_restore_reserved(struct job_store *store, struct cluster *cluster);

#endif
