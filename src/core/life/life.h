/* life.h - what JobSets, Jobs and tasks do by themselves: the functions that core.c calls for its events,
 * besides those about gangs (gang/gang.h) and those that answer losses (recover/recover.h).
 *
 *   jobset.c       the JobSet: creation, new generations, deletion, its end
 *   restore.c      what is derived after a snapshot was read
 *   bury.c         freed objects; machines that get other numbers
 *   status.c       a JobSet's numbers and timers, from the Jobs that changed
 *   startup.c      which replicated jobs may start now (AnyOrder, InOrder, dependsOn)
 *   admitted.c     what admission does to a JobSet
 *   batch.c        the batch/v1 Job: indexes, completions, back-off, failure reasons
 *   fail.c         how a Job fails
 *   task.c         one task is made
 *   end.c          how a task ends, or is told to
 *   evict.c        tasks that are ended from outside
 *   notice.c       tasks are told that they will be stopped or moved
 *   containers.c   what follows from an agent's report about containers
 *   named.c        pods that name their machine
 *   slice.c        what happens to a JobSet with its slice
 *   spare.c        tasks that wait for a rank
 *   owned_objects.c   the Service and the claims of a JobSet
 *   resize.c       room for Jobs and indexes; changes of parallelism and completions
 *   cost.c         what the ends of a JobSet's attempts cost
 *   ends.c         signatures of ended tasks, kept with the restart that they explain
 *
 * Every function here changes state through the step and marks the JobSets it touched, which are reconciled
 * before the step ends.
 */
#ifndef PHX_CORE_LIFE_LIFE_H
#define PHX_CORE_LIFE_LIFE_H

#include "core/job/facts.h"

/* Called before anything else in a step: frees what the last step removed from the store. */
void jobs_bury(struct job_store *store);
void job_store_done(struct job_store *store);

/* Adds a new JobSet to the store. `document` is valid, has its defaults and lives, with `spec`, in
 * `*arena`, which is taken over (emptied). */
struct jobset *jobset_create(struct step *step, struct arena *arena, struct doc *document,
                             const struct jobset_spec *spec);
/* Called before a Pod without a JobSet is replaced: the machine's name with which it was shown, or no
 * name, does not count as a change of the document. */
void jobset_keep_node_name(const struct step *step, const struct jobset *jobset, struct doc *document);
void jobset_delete(struct step *step, struct jobset *jobset);
/* Sets the status; `status` is copied. An equal status is no change. */
void jobset_set_foreign_status(struct step *step, struct jobset *jobset, const struct doc *status);
/* Called when a stored object was removed: a JobSet that needs it makes it again. */
void jobs_object_gone(struct step *step, const struct object *object);
/* "<template>-<jobset>" */
struct str jobset_claim_name(struct arena *arena, struct str jobset, struct str template);
/* Checks the claims that a new JobSet would make: an existing one must be equal, and its policy Retain. */
void jobset_check_claims(const struct object_store *objects, const struct doc *object,
                         struct field_errors *errors);
/* A user's deletion of one Pod: it is stopped, and counts as failed. grace_s < 0: the Pod's own grace. */
void task_evict(struct step *step, struct task *task, int64_t grace_s);
/* A deletion that orphans what the JobSet made (jobset.hidden). It has no finalizer, is no Pod, and is in
 * no queue. */
void jobset_hide(struct step *step, struct jobset *jobset);
/* A user's deletion of one Job: its JobSet makes it anew. */
void job_delete(struct step *step, struct job *job);

/* Tells the machine's tasks that it is to be emptied, if they use libphalanx: they get the remaining grace
 * to save a checkpoint before they are stopped. Returns the longest grace; 0: none was told. For
 * maintenance, tasks that are replaced by spares are told only when these are ready. */
int64_t jobs_notice_drain(struct step *step, const struct machine *machine, enum drain_reason reason);
/* Whether every task that was told at `noticed_ns` has a later checkpoint in the log, or is gone. */
bool jobs_have_saved(const struct job_store *store, const struct machine *machine, int64_t noticed_ns);
/* Stops the machine's tasks, which count as disrupted, like those of evicted Pods; users read `why`. */
void jobs_vacate(struct step *step, const struct machine *machine, struct str why);

/* Removes the finalizer from the document; a deleted JobSet that nothing else holds is removed. */
void jobset_drop_finalizer(struct step *step, struct jobset *jobset, const char *name);

/* Records a fault where the JobSet runs or ran until recently, or a user's order that ends tasks of it,
 * for the record of the restart that it may explain (health/attribute.h). */
void ends_strike(struct step *step, struct jobset *jobset, const struct end_fault *found);

/* Kills a task because of which its JobSet hangs; it counts as disrupted. Users read `why`. */
void jobs_end_hung(struct step *step, struct task *task, struct str why);
/* Slices (slice.c). The JobSet's cross-connects are made: its gangs may start. */
void jobs_slice_connected(struct step *step, struct jobset *jobset);
/* The JobSet's cross-connects cannot be made: gangs that wait for them give their machines back. */
void jobs_slice_failed(struct step *step, struct jobset *jobset);
/* The JobSet's cross-connects are lost: all of its tasks on machines are ended, and none is placed in this
 * slice again, so that its recovery takes other cubes; false: there are none. Users read `why`. */
bool jobs_slice_lost(struct step *step, struct jobset *jobset, struct str why);
/* All tasks of the JobSet on machines are stopped like evicted Pods, because its slice moves to other cubes.
 * Users read `why`. */
void jobs_slice_leave(struct step *step, struct jobset *jobset, struct str why);

/* Fails a Job whose JobSet hangs by its own fault, or without a culprit; its policies decide what follows.
 * `reason` is not copied. */
void jobs_fail_hung(struct step *step, struct job *job, const char *reason, struct str why);

/* Preflight (preflight.c): errands of ERRAND_OF_PREFLIGHT. */
struct errand;
struct errand_end;

/* For admission (admitted.c). Tells its tasks that use libphalanx that they will be stopped, or moved, so
 * that they can save before; returns the longest grace among them, 0: none was told. */
int64_t jobset_notice(struct step *step, const struct jobset *jobset, enum drain_reason reason);
/* Tells them that another machine takes ranks over: they save within MOVE_LIMIT_NS, and are not stopped for
 * it. */
void jobset_notice_hot_switch(struct step *step, const struct jobset *jobset);
/* The longest wait for tasks that are being moved. */
#define MOVE_LIMIT_NS (900 * NS_PER_SECOND)
void jobset_set_suspend(struct step *step, struct jobset *jobset, bool suspend);
/* Partial admission of a Job without a JobSet. `completions_too`: completions are set to the same value. */
void jobset_set_parallelism(struct step *step, struct jobset *jobset, int32_t parallelism,
                            bool completions_too);

/* The cluster's machine array was rebuilt: makes the list heads for it. */
void jobs_bind_machines(struct job_store *store, size_t machine_count);

/* Machines got new ids: map[old id] is the new one, or MACHINE_NONE. */
void jobs_remap_machines(struct job_store *store, const machine_id *map);

/* For restoring a snapshot. The caller fills the objects; these functions derive the rest (indexes, names,
 * chips on machines, timers, queue). `position`: of the job in its JobSet. */
struct jobset *jobs_restore_jobset(struct job_store *store, obj_id uid, struct arena *arena,
                                   struct doc *document, const struct jobset_spec *spec, bool hidden);
struct job *jobs_restore_job(struct job_store *store, struct jobset *jobset, obj_id uid, uint32_t position,
                             bool current);
struct task *jobs_restore_task(struct job_store *store, struct job *job, obj_id uid, int32_t index,
                               struct str name);
/* Restores the number of indexes of each Job: [spec.rjob_count], none less than in the spec. */
void jobset_widen(struct jobset *jobset, const uint32_t *widths);
struct gang *jobs_restore_gang(struct jobset *jobset, obj_id uid);
/* Called when all is restored: derives timers, queue and the chips taken on machines. False: the tasks do
 * not fit on their machines. */
bool jobs_restored(struct job_store *store, struct cluster *cluster);

/* Counts the preemption of one JobSet for another: a loss of second order, if a failure made the preemptor
 * look for machines again. */
void jobset_count_preemption(struct step *step, const struct jobset *victim, struct jobset *preemptor);

#endif
