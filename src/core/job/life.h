/* life.h - how jobs change: the functions that core.c calls for its events, besides those that answer losses
 * (recover/recover.h).
 *
 * Every function here changes state through the step and marks the JobSets it touched, which are reconciled
 * before the step ends.
 */
#ifndef PHX_CORE_JOB_LIFE_H
#define PHX_CORE_JOB_LIFE_H

#include "core/job/job.h"
#include "core/step.h"

struct pod_now;

/* Called before anything else in a step: frees what the last step removed from the store. */
void jobs_bury(struct job_store *store);
void job_store_done(struct job_store *store);

/* Adds a new JobSet to the store. `document` is valid, has its defaults and lives, with `spec`, in
 * `*arena`, which is taken over (emptied). */
struct jobset *jobset_create(struct step *step, struct arena *arena, struct doc *document,
                             const struct jobset_spec *spec);
/* Whether the name of a Job that the workload would make is in use, or kept for another JobSet's Jobs.
 * Then *ret_taken is that name, in `arena`. */
bool jobs_names_taken(const struct job_store *store, enum form form, struct str namespace_, struct str name,
                      const struct jobset_spec *spec, struct arena *arena, struct str *ret_taken);
/* Called before a Pod without a JobSet is replaced: the machine's name with which it was shown, or no
 * name, does not count as a change of the document. */
void jobset_keep_node_name(const struct step *step, const struct jobset *jobset, struct doc *document);
void jobset_delete(struct step *step, struct jobset *jobset);
/* Whether managedBy names another controller: the JobSet is left alone, and that controller writes its
 * status. */
bool jobset_is_foreign(const struct jobset *jobset);
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
/* Slices (slice_life.c). The JobSet's cross-connects are made: its gangs may start. */
void jobs_slice_connected(struct step *step, struct jobset *jobset);
/* The JobSet's cross-connects cannot be made: gangs that wait for them give their machines back. */
void jobs_slice_failed(struct step *step, struct jobset *jobset);
/* The JobSet's cross-connects are lost: all of its tasks on machines are ended, and none is placed in this
 * slice again, so that its recovery takes other cubes; false: there are none. Users read `why`. */
bool jobs_slice_lost(struct step *step, struct jobset *jobset, struct str why);
/* Every living task of the JobSet is told the slice's newest routing tables. */
void jobs_slice_rerouted(struct step *step, const struct jobset *jobset);
/* Counts the ranks whose chips have tables that may use a switch of the pod which leaves. */
void jobs_count_switch_users(struct step *step, struct pod_now *pod);
/* All tasks of the JobSet on machines are stopped like evicted Pods, because its slice moves to other cubes.
 * Users read `why`. */
void jobs_slice_leave(struct step *step, struct jobset *jobset, struct str why);

/* Fails a Job whose JobSet hangs by its own fault, or without a culprit; its policies decide what follows.
 * `reason` is not copied. */
void jobs_fail_hung(struct step *step, struct job *job, const char *reason, struct str why);

/* Preflight (preflight.c): errands of ERRAND_OF_PREFLIGHT. */
struct errand;
struct errand_end;
void preflight_errand_ended(struct step *step, const struct errand *errand, const struct errand_end *end);
/* Returns the next machine that failed, until false; the caller owns its texts then. */
bool preflight_next_verdict(struct step *step, struct preflight_verdict *ret);
/* Called when the machine was not isolated for that failure: it counts as tested. */
void preflight_excuse(struct step *step, struct machine *machine);
/* Gangs whose preflight includes the machine look for other places; users read `why`. */
void preflight_leave(struct step *step, const struct machine *machine, struct str why);
/* Called after a snapshot with its errands was restored. False: it does not fit. */
bool preflight_restored(struct job_store *store, const struct cluster *cluster,
                        const struct errands *errands);
void preflight_check(const struct job_store *store, const struct cluster *cluster,
                     const struct errands *errands); /* aborts through CHECK */

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
bool jobset_has_living(const struct jobset *jobset); /* it has a task that has not ended, placed or not */
bool jobset_is_running(const struct jobset *jobset); /* it has a task that holds a machine or may be alive */

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
/* Restores the agent's last report about its containers; copied. */
void containers_restore(struct task *task, const struct container_status *statuses, uint32_t count);
struct task *jobs_restore_task(struct job_store *store, struct job *job, obj_id uid, int32_t index,
                               struct str name);
/* Restores the number of indexes of each Job: [spec.rjob_count], none less than in the spec. */
void jobset_widen(struct jobset *jobset, const uint32_t *widths);
uint32_t job_index_count(const struct rjob_spec *rjob); /* number of indexes of each of its Jobs */
/* Marks the job to be reconciled and counted before the step ends; its JobSet must be marked too. */
void job_touch(struct job *job);
struct gang *jobs_restore_gang(struct jobset *jobset, obj_id uid);
/* For a gang with `why_due`: its `why` is looked at again when the window since `why_since_ns` is over. */
void gang_restore_why_timer(struct job_store *store, struct gang *gang);
/* Makes the records, if there are none yet. */
void restart_history_need(struct restart_history *history);
/* Gives the condition copies of both texts. */
void condition_say(struct condition *condition, struct str reason, struct str message);
/* Restores the ladder's answer to a restart; `passed` is copied. */
void restart_record_decided(struct restart_record *record, enum rung rung, struct str passed);
/* Called when all is restored: derives timers, queue and the chips taken on machines. False: the tasks do
 * not fit on their machines. */
bool jobs_restored(struct job_store *store, struct cluster *cluster);

/* Counts the preemption of one JobSet for another: a loss of second order, if a failure made the preemptor
 * look for machines again. */
void jobset_count_preemption(struct step *step, const struct jobset *victim, struct jobset *preemptor);

/* Called last in a step: updates the accounts that users see of the changed JobSets. */
void jobs_show_accounts(struct step *step);
void jobs_mark_all(struct step *step); /* marks every JobSet to be reconciled */
/* Lets every waiting gang say its reason at the next look, whatever it has said in this window: so that two
 * cores that look at different moments can be compared (core_is_settled). */
void jobs_let_gangs_say_why(struct job_store *store);

/* Books a machine's free chips under the right owner after its state changed (ready, cordoned, lost), and
 * marks the JobSets that have a spare there. `was_schedulable`: whether they were idle before. */
void machine_book(struct step *step, const struct machine *machine, bool was_schedulable);
/* Returns the owner of a machine's free chips in the cluster's book, but of those that are reserved. */
enum ledger_owner machine_free_owner(const struct machine *machine);
/* Returns the free chips that the cluster's book has as reserved for a JobSet. */
uint64_t machine_free_reserved(const struct machine *machine);
/* Returns what the book is to say of the machine's free chips. */
struct booked_chips machine_to_book(const struct machine *machine);
static inline bool booked_equal(struct booked_chips a, struct booked_chips b)
{
    return a.owner == b.owner && a.chips == b.chips && a.reserved == b.reserved;
}
/* Adds a machine's chips to the book (1), or takes them out (-1). */
void machine_book_chips(struct step *step, struct booked_chips booked, int sign);
/* Books the machine's free chips anew; called after any change of them, or of the machine's state. */
void machine_book_free(struct step *step, struct machine *machine);

/* Removes the Pod's scheduling gates that are not in the list `left`. False: it has none. */
bool task_keep_gates(struct task *task, const struct doc *left);
/* Replaces the labels and annotations of a Job or Pod (`task` NULL: the Job) by copies of these maps
 * (struct user_meta; NULL: empty) without the controllers' keys. Watchers are told if that is a change. */
void job_set_meta(struct step *step, struct job *job, struct task *task, const struct doc *labels,
                  const struct doc *annotations);
/* Restores a Job's or task's own labels and annotations from a snapshot, copied to *place. */
void user_meta_restore(struct user_meta **place, const struct labels *labels,
                       const struct labels *annotations);

#endif
