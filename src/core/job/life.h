/* life.h - how jobs change: what core.c calls when something happened.
 *
 * Every function here changes state through the step and marks the JobSets it touched; jobs_settle() then
 * reconciles them, once a step: it looks at each marked JobSet as a whole and moves it on until nothing
 * changes (level-triggered, so a missed edge cannot wedge a job).
 */
#ifndef PHX_CORE_JOB_LIFE_H
#define PHX_CORE_JOB_LIFE_H

#include "core/step.h"

/* Before anything else in a step: frees what the step before took out of the store. */
void jobs_bury(struct job_store *store);
void job_store_done(struct job_store *store);

/* Puts a new JobSet into the store. `document` is defaulted and valid and lives, with `spec`, in `*arena`,
 * which is taken over (emptied). */
struct jobset *jobset_create(struct step *step, struct arena *arena, struct doc *document,
                             const struct jobset_spec *spec);
/* A new generation of the document; the same takeover. No change of content: no change at all. */
void jobset_replace(struct step *step, struct jobset *jobset, struct arena *arena, struct doc *document,
                    const struct jobset_spec *spec);
/* Is the name of a Job that the workload would make in use, or kept for another JobSet's Jobs? Then
 * *ret_taken is that name, in `arena`. */
bool jobs_names_taken(const struct job_store *store, enum form form, struct str namespace_, struct str name,
                      const struct jobset_spec *spec, struct arena *arena, struct str *ret_taken);
/* Before a Pod of its own is replaced: the machine's name that it was shown with, or none at all, is no
 * change of the document. */
void jobset_keep_node_name(const struct step *step, const struct jobset *jobset, struct doc *document);
void jobset_delete(struct step *step, struct jobset *jobset);
/* managedBy names somebody else: it is left alone, and its status is theirs to write. */
bool jobset_is_foreign(const struct jobset *jobset);
/* `status` is copied; the same as before is no change. */
void jobset_set_foreign_status(struct step *step, struct jobset *jobset, const struct doc *status);
/* A stored object was removed: a JobSet that needs it makes it again. */
void jobs_object_gone(struct step *step, const struct object *object);
/* "<template>-<jobset>" */
struct str jobset_claim_name(struct arena *arena, struct str jobset, struct str template);
/* The claims that a new JobSet would make: one that exists must be the same, and kept (Retain). */
void jobset_check_claims(const struct object_store *objects, const struct doc *object,
                         struct field_errors *errors);
/* A user's deletion of one Pod: it is stopped, and counts as a failed one. grace_s < 0: its own. */
void task_evict(struct step *step, struct task *task, int64_t grace_s);
/* A user's deletion of one Job: its JobSet makes it anew. */
/* Deleted, and what it made stays (jobset.hidden). It has no finalizer, is no Pod, and no queue has it. */
void jobset_hide(struct step *step, struct jobset *jobset);
void job_delete(struct step *step, struct job *job);

/* An agent said hello: its inventory is compared with what should be there. The machine is READY already. */
void jobs_machine_hello(struct step *step, struct machine *machine, const struct hello *hello);
/* Everything on the machine is dead. */
void jobs_machine_lost(struct step *step, struct machine *machine, struct str evidence);
void jobs_reports(struct step *step, struct machine *machine, const struct reports *reports);
void jobs_progress(struct step *step, const struct progress_event *progress);
void jobs_tick(struct step *step);

/* The machine's agent is away, and peers have lost every task that may live there: it is lost now. */
bool jobs_peers_say_lost(const struct job_store *store, const struct machine *machine);

/* The machine is to be emptied: its tasks that speak libphalanx are told, with the time that their grace
 * leaves them, so that they can save a checkpoint before they are stopped. Returns the longest of those
 * times; 0: nobody was told. For maintenance those that leave by spares
 * are not: they hear of it when these are ready. */
int64_t jobs_notice_drain(struct step *step, const struct machine *machine, enum drain_reason reason);
/* The task is evicted from a cordoned machine: its JobSet leaves the machine when its ranks have saved, after
 * `grace_s` (-1: the longest grace among them) at the latest. False: nothing is worth waiting for. */
bool jobs_drain(struct step *step, const struct task *task, int64_t grace_s);
bool jobs_are_drained(const struct task *task); /* that is under way */
/* The task ended by itself while it was drained, saved or not: its JobSet leaves the machine at once, and the
 * task counts as evicted. Nothing happens to other tasks. */
void jobs_drained_ended(struct step *step, struct task *task);
/* Everyone who was told at `noticed_ns` has a checkpoint behind that in the log, or is not there any more. */
bool jobs_have_saved(const struct job_store *store, const struct machine *machine, int64_t noticed_ns);
/* Its tasks are stopped and count as disrupted, like those of evicted Pods; `why` is what users read. */
void jobs_vacate(struct step *step, const struct machine *machine, struct str why);

/* Takes the finalizer off the document: a deleted one that nothing else holds goes. */
void jobset_drop_finalizer(struct step *step, struct jobset *jobset, const char *name);
/* A machine that the JobSet runs on is not well: it leaves it, as its policy says, or stays. `why` is what
 * users read. */
void jobs_move(struct step *step, const struct machine *machine, struct jobset *jobset, struct str why);
/* The machine is wanted for something else later: who can be replaced there rank by rank, by processes that
 * are started elsewhere first, begins to be so. */
void jobs_replace(struct step *step, const struct machine *machine, struct str why);
enum sub_health jobset_sub_health(const struct jobset *jobset, const struct cluster *cluster);

/* A fault occurred where the JobSet runs, or ran until a moment ago, or a user ordered what ends tasks of it:
 * kept for the record of the restart that it may explain (health/attribute.h). */
void ends_strike(struct step *step, struct jobset *jobset, const struct end_fault *found);

/* Its JobSet hangs, and this task is why: it is killed and counts as disrupted; `why` is what users read. */
void jobs_end_hung(struct step *step, struct task *task, struct str why);
/* Its JobSet hangs by its own fault, or by nobody's: the Job has failed, and its policies say what follows.
 * `reason` stays. */
void jobs_fail_hung(struct step *step, struct job *job, const char *reason, struct str why);

/* Preflight (preflight.c): errands of ERRAND_OF_PREFLIGHT. */
struct errand;
struct errand_end;
void preflight_errand_ended(struct step *step, const struct errand *errand, const struct errand_end *end);
/* The next machine that failed; its texts are the caller's then. To be asked until it says false. */
bool preflight_next_verdict(struct step *step, struct preflight_verdict *ret);
/* It was not taken away for that: it counts as tested. */
void preflight_excuse(struct step *step, struct machine *machine);
/* Gangs whose preflight is on the machine look for other places; `why` is what users read. */
void preflight_leave(struct step *step, const struct machine *machine, struct str why);
/* After a snapshot was read, errands and all. False: it does not fit. */
bool preflight_restored(struct job_store *store, const struct cluster *cluster,
                        const struct errands *errands);
void preflight_check(const struct job_store *store, const struct cluster *cluster,
                     const struct errands *errands); /* aborts through CHECK */

void shrink_check(const struct jobset *jobset); /* aborts through CHECK */
/* After a snapshot was read. False: it does not fit. */
bool shrink_restored(const struct jobset *jobset);

/* For admission (admitted.c). Its tasks that speak libphalanx are told that they will be stopped, or moved,
 * and can save before; returns the longest grace among them, 0: nobody was told. */
int64_t jobset_notice(struct step *step, const struct jobset *jobset, enum drain_reason reason);
/* What its ranks saved when they were told, at `noticed_ns`, is committed (suspend.c): where they stand now,
 * not a step that was on its way to storage before. */
bool jobset_has_answered(const struct jobset *jobset, int64_t noticed_ns);
/* So long those that are moved are waited for. */
#define MOVE_LIMIT_NS (900 * NS_PER_SECOND)
void jobset_set_suspend(struct step *step, struct jobset *jobset, bool suspend);
/* Of a Job of its own: partial admission. `completions_too`: they are set to the same. */
void jobset_set_parallelism(struct step *step, struct jobset *jobset, int32_t parallelism,
                            bool completions_too);
bool jobset_has_living(const struct jobset *jobset); /* a task of it has not ended, placed or not */
bool jobset_is_running(const struct jobset *jobset); /* a task of it holds a machine or may be alive */

/* The cluster's machine array was rebuilt: makes the list heads for it. */
void jobs_bind_machines(struct job_store *store, size_t machine_count);

/* Machines got new ids: map[old id] is the new one, or MACHINE_NONE. */
void jobs_remap_machines(struct job_store *store, const machine_id *map);

/* For reading a snapshot: puts back what was written. The caller fills the objects; these derive the rest
 * (indexes, names, chips on machines, timers, queue). `position`: of the job in its JobSet. */
struct jobset *jobs_restore_jobset(struct job_store *store, obj_id uid, struct arena *arena,
                                   struct doc *document, const struct jobset_spec *spec, bool hidden);
struct job *jobs_restore_job(struct job_store *store, struct jobset *jobset, obj_id uid, uint32_t position,
                             bool current);
/* Likewise what its agent said last of its containers; copied. */
void containers_restore(struct task *task, const struct container_status *statuses, uint32_t count);
struct task *jobs_restore_task(struct job_store *store, struct job *job, obj_id uid, int32_t index,
                               struct str name);
/* The places of each Job that were written: [spec.rjob_count], none fewer than the spec has. */
void jobset_widen(struct jobset *jobset, const uint32_t *widths);
uint32_t job_index_count(const struct rjob_spec *rjob); /* indexes of each of its Jobs */
/* The job is to be looked at and counted again before the step ends; its JobSet must be marked too. */
void job_touch(struct job *job);
struct gang *jobs_restore_gang(struct jobset *jobset, obj_id uid);
/* How the ladder answered a restart; `passed` is copied. */
void restart_record_decided(struct restart_record *record, enum rung rung, struct str passed);
/* Everything is there: timers, queue, chips taken on machines. False: the tasks do not fit where they are. */
bool jobs_restored(struct job_store *store, struct cluster *cluster);

/* After all else in a step: the accounts that users see of the JobSets that it changed. */
void jobs_show_accounts(struct step *step);
/* Reconciles what is marked and runs the scheduler when there is reason to. Last in a step. */
void jobs_settle(struct step *step);
int64_t jobs_deadline(const struct job_store *store); /* INT64_MAX: none */

/* A machine's free chips changed their meaning (ready, cordoned, lost): books them under the right owner.
 * `was_free`: whether they were idle before. */
void machine_book(struct step *step, const struct machine *machine, bool was_schedulable);

/* Gives a Job or Pod (`task` NULL: the Job) these maps of labels and annotations (struct user_meta; NULL:
 * empty), copied without the controllers' keys. Watchers are told, unless it is what was there. */
/* Takes away the Pod's scheduling gates that are not in `left`, a list of them. False: there are none. */
bool task_keep_gates(struct task *task, const struct doc *left);
void job_set_meta(struct step *step, struct job *job, struct task *task, const struct doc *labels,
                  const struct doc *annotations);
/* What a snapshot kept of a Job's or task's own labels and annotations, copied to *place. */
void user_meta_restore(struct user_meta **place, const struct labels *labels,
                       const struct labels *annotations);

#endif
