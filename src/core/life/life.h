/* life.h - the lives of JobSets, Jobs and tasks, from creation to deletion: the functions that core.c and the
 * folders above call, besides those about gangs (gang/gang.h) and answers to losses (recover/recover.h).
 *
 *   jobset.c       the JobSet: creation, new generations, deletion, its end
 *   restore.c      derived state, after a snapshot was read
 *   bury.c         freed objects; renumbered machines
 *   status.c       a JobSet's numbers and timers, from the Jobs that changed
 *   startup.c      which replicated jobs may start now (AnyOrder, InOrder, dependsOn)
 *   admitted.c     effects of admission on a JobSet
 *   batch.c        the batch/v1 Job: indexes, completions, back-off, failure reasons
 *   fail.c         the failure of a Job
 *   task.c         creation of a task
 *   end.c          orders to stop, and the end of a task
 *   evict.c        tasks that are ended from outside
 *   notice.c       notices to tasks that will be stopped or moved
 *   containers.c   consequences of an agent's report about containers
 *   named.c        pods that name their machine
 *   slice.c        consequences for a JobSet of the state of its slice
 *   spare.c        tasks that wait for a rank
 *   owned_objects.c   the Service and the claims of a JobSet
 *   resize.c       arrays of Jobs and indexes; changes of parallelism and completions
 *   cost.c         the cost of ended attempts
 *   ends.c         signatures of ended tasks, kept with the restart that they explain
 *
 * Functions that take a step change state through it and mark the JobSets that they touch, which are
 * reconciled before the step ends.
 */
#ifndef PHX_CORE_LIFE_LIFE_H
#define PHX_CORE_LIFE_LIFE_H

#include "core/job/facts.h"

/* Frees the objects that the last step removed from the store. Called before anything else in a step. */
void jobs_bury(struct job_store *store);
void job_store_done(struct job_store *store); /* frees everything in the store */

/* Adds a new JobSet to the store. `document` is valid and has its defaults. The document and `spec` live in
 * `*arena`, which the JobSet takes over and leaves empty. */
struct jobset *jobset_create(struct step *step, struct arena *arena, struct doc *document,
                             const struct jobset_spec *spec);
/* Removes spec.nodeName from a document that replaces a Pod without a JobSet, if the user only sent back the
 * machine's name that the API showed, or no name. Called before the documents are compared. */
void jobset_keep_node_name(const struct step *step, const struct jobset *jobset, struct doc *document);
/* Begins the deletion of the JobSet: its tasks are stopped, and it is removed when they have ended and no
 * finalizer is left. */
void jobset_delete(struct step *step, struct jobset *jobset);
/* Sets the status that another controller writes (managedBy) to a copy of `status`, if that differs. */
void jobset_set_foreign_status(struct step *step, struct jobset *jobset, const struct doc *status);
/* Called when a stored object was removed: has the JobSet that owns a removed Service make it again. */
void jobs_object_gone(struct step *step, const struct object *object);
/* Returns the name "<template>-<jobset>", in `arena`. */
struct str jobset_claim_name(struct arena *arena, struct str jobset, struct str template);
/* Checks the claims that a new JobSet would make. If one exists, its spec must be equal and its retention
 * policy Retain; otherwise adds to `errors`. */
void jobset_check_claims(const struct object_store *objects, const struct doc *object,
                         struct field_errors *errors);
/* Deletes one Pod, for a user or as a disruption: stops the task, which then counts as failed. grace_s < 0
 * takes the Pod's own grace. A Pod without a JobSet is deleted as a whole. */
void task_evict(struct step *step, struct task *task, int64_t grace_s);
/* Deletes a JobSet, or a Job without one, and orphans its Jobs or Pods (jobset.hidden). It must have no
 * finalizer and be in no queue. */
void jobset_hide(struct step *step, struct jobset *jobset);
/* Deletes one Job of a JobSet, for a user; the JobSet makes a new one. */
void job_delete(struct step *step, struct job *job);

/* Sends a drain notice to the machine's running tasks that use libphalanx, so that they save a checkpoint
 * within their grace before they are stopped. Returns the longest grace, or 0 if none got a notice. For
 * maintenance, leaves out JobSets that move by spares: these get a notice when the spares are ready. */
int64_t jobs_notice_drain(struct step *step, const struct machine *machine, enum drain_reason reason);
/* Returns whether the JobSet of every task that got a notice at `noticed_ns`, and still runs on the machine,
 * has committed a checkpoint since. */
bool jobs_have_saved(const struct job_store *store, const struct machine *machine, int64_t noticed_ns);
/* Stops the machine's tasks. They count as disrupted, like evicted Pods; users read `why`. */
void jobs_vacate(struct step *step, const struct machine *machine, struct str why);

/* Removes the finalizer from the document. A deleted JobSet that nothing else holds is then removed. */
void jobset_drop_finalizer(struct step *step, struct jobset *jobset, const char *name);

/* Adds a fault, or a user's order that ends tasks, to the record of the restart that it may explain, or keeps
 * it for the next one (health/attribute.h). The fault must have struck where the JobSet runs, or ran until
 * recently. */
void ends_strike(struct step *step, struct jobset *jobset, const struct end_fault *found);

/* Kills a task that makes its JobSet hang; the task counts as disrupted. Users read `why`. */
void jobs_end_hung(struct step *step, struct task *task, struct str why);
/* Slices (slice.c). Called when the JobSet's cross-connects are made: starts its placed tasks. */
void jobs_slice_connected(struct step *step, struct jobset *jobset);
/* Called when the JobSet's cross-connects cannot be made: gangs without a started task release their
 * machines and return to the queue. */
void jobs_slice_failed(struct step *step, struct jobset *jobset);
/* Called when the JobSet's cross-connects are lost: ends all of its tasks on machines. None is placed in this
 * slice again, so recovery takes other cubes. Returns false if there is no such task. Users read `why`. */
bool jobs_slice_lost(struct step *step, struct jobset *jobset, struct str why);
/* Stops all tasks of the JobSet on machines, like evicted Pods: its slice moves. Users read `why`. */
void jobs_slice_leave(struct step *step, struct jobset *jobset, struct str why);

/* Fails a Job whose program hangs, if its machines are not to blame or no culprit was found. The failure
 * policy of its JobSet decides what follows. `reason` is not copied. */
void jobs_fail_hung(struct step *step, struct job *job, const char *reason, struct str why);

struct errand;
struct errand_end;

/* Sends a notice to the JobSet's running tasks that use libphalanx: they will be stopped or moved, and can
 * save before. Returns the longest grace, or 0 if none got a notice. */
int64_t jobset_notice(struct step *step, const struct jobset *jobset, enum drain_reason reason);
/* Sends these tasks a notice that another machine takes over ranks. They save within MOVE_LIMIT_NS. */
void jobset_notice_hot_switch(struct step *step, const struct jobset *jobset);
/* The longest wait for tasks that are being moved. */
#define MOVE_LIMIT_NS (900 * NS_PER_SECOND)
/* Sets spec.suspend, also in the document that users read. A Pod without a JobSet has scheduling gates
 * instead, which can only be removed (`suspend` false). */
void jobset_set_suspend(struct step *step, struct jobset *jobset, bool suspend);
/* Partial admission: sets the parallelism of a Job without a JobSet and, if asked, its completions. */
void jobset_set_parallelism(struct step *step, struct jobset *jobset, int32_t parallelism,
                            bool completions_too);

/* Makes the lists of tasks by machine again; called after the cluster's machine array was rebuilt. */
void jobs_bind_machines(struct job_store *store, size_t machine_count);

/* Renumbers machines: map[old id] is the new id, or MACHINE_NONE for a removed machine. */
void jobs_remap_machines(struct job_store *store, const machine_id *map);

/* For restoring a snapshot. The caller sets the saved fields of the objects that these functions make;
 * jobs_restored derives the rest (chips on machines, timers, queue). `position` is the index in jobset->jobs.
 * A current Job of a place must not exist yet. */
struct jobset *jobs_restore_jobset(struct job_store *store, obj_id uid, struct arena *arena,
                                   struct doc *document, const struct jobset_spec *spec, bool hidden);
struct job *jobs_restore_job(struct job_store *store, struct jobset *jobset, obj_id uid, uint32_t position,
                             bool current);
struct task *jobs_restore_task(struct job_store *store, struct job *job, obj_id uid, int32_t index,
                               struct str name);
/* Sets the number of indexes of each Job to widths[spec.rjob_count]. None may be less than now. */
void jobset_widen(struct jobset *jobset, const uint32_t *widths);
struct gang *jobs_restore_gang(struct jobset *jobset, obj_id uid);
/* Called when all objects are restored: derives timers, queue and the chips taken on machines. Returns false
 * if numbers do not match the tasks, or the tasks do not fit on their machines. */
bool jobs_restored(struct job_store *store, struct cluster *cluster);

/* Counts the preemption of one JobSet for another: as a second-order loss by the cause of the preemptor's
 * newest restart if that is still under way, else as ordered. */
void jobset_count_preemption(struct step *step, const struct jobset *victim, struct jobset *preemptor);

#endif
