/* acts.h - the actions of a JobSet's reconciliation on its Jobs, tasks and accounts. core/recover decides
 * when to take them. life.h lists the files. */
#ifndef PHX_CORE_LIFE_ACTS_H
#define PHX_CORE_LIFE_ACTS_H

#include "core/gang/gang.h"
#include "core/job/store.h"
#include "core/life/life.h"

#define NO_PROGRESS "NoProgress" /* reason of a Job, and of its JobSet, that is given up */

/* --- JobSets ---------------------------------------------------------------------------------- */

/* jobset.c */
/* Completes or fails the JobSet (CONDITION_COMPLETED, CONDITION_FAILED): settles its accounts, sets the
 * condition and dooms its unfinished Jobs. The JobSet must be unfinished. */
void jobset_finish(struct step *step, struct jobset *jobset, enum condition_kind kind, const char *reason,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Replaces the document by a different one, and takes over its arena. A new spec raises the generation. */
void jobset_set_document(struct step *step, struct jobset *jobset, struct arena *arena, struct doc *document,
                         const struct jobset_spec *spec);

/* status.c: updates status and timers from the Jobs that were marked to be counted. */
void jobset_recount(struct step *step, struct jobset *jobset);

/* startup.c */
/* Returns whether the replicated job's Jobs may be made or run now. */
bool startup_allows(const struct jobset *jobset, uint32_t rjob);
/* Sets the conditions of startupPolicy InOrder. */
void startup_conditions(struct step *step, struct jobset *jobset);

/* owned_objects.c: makes the missing objects of JobSets that were marked. Called before the step ends. */
void owned_objects_make(struct step *step);

/* --- Jobs ------------------------------------------------------------------------------------- */

/* fail.c */
/* Moves an ACTIVE Job to FAILING; does nothing to any other. `reason` is not copied. */
void job_fail(struct step *step, struct job *job, const char *reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* batch.c */
/* Returns whether the podFailurePolicy answers the end of the task with FailJob. */
bool job_policy_fails(const struct job *job, const struct task *task);
/* Makes the current Job of a place (index in jobset->jobs), which must be empty. */
struct job *job_new(struct step *step, struct jobset *jobset, uint32_t position, bool suspended);
/* Makes the Job's missing tasks, stops surplus ones, and decides and settles its end. */
void job_reconcile(struct step *step, struct job *job);
/* Dooms the current Jobs with places in [first, end). They are among the old Jobs until they have ended. */
void attempt_doom_jobs(struct step *step, struct jobset *jobset, uint32_t first, uint32_t end);
/* Move a Job from ACTIVE to SUSPENDED, and delete its tasks; or back. Do nothing in other states. */
void job_suspend(struct step *step, struct job *job);
void job_resume(struct step *step, struct job *job);
void job_count_end(struct job *job, struct task *task); /* books the end of a task, but not a failure */
/* Counts the failure of a task by the Job's policies, which may fail the Job. */
void job_count_failure(struct step *step, struct job *job, struct task *task);
/* Delays the next try of the index after the failure that was just counted. */
void job_retry_later(struct step *step, struct job *job, const struct task *task);
int64_t job_due_ns(const struct job *job); /* the stamp of the Job's timer; INT64_MAX: it has none */
/* Removes a doomed Job whose tasks have ended from the store; it is freed with the next step. The caller
 * takes it out of its JobSet's lists. Watchers learn of it if users saw this Job in its place. */
void job_bury(struct step *step, struct job *job);

/* spare.c */
void spare_joined(struct step *step, struct task *task); /* called when a spare's process has joined */
/* Stops a spare that has to leave its place; another is made after a wait. Users read `why`. */
void spare_leave(struct step *step, struct task *task, struct str why);
/* Gives the index of a lost task to the best ready spare while the next attempt is prepared. Returns the
 * spare, or NULL if none may take it. */
struct task *spare_take(struct step *step, struct job *job, int32_t index);
/* Makes spares give up their chips to a gang that fits only with them: the first feasible gang in the queue
 * if its priority is higher, or a gang of the spares' own JobSet. */
void spare_yield(struct step *step);
/* Called when the wanted number of spares may have changed. */
void spare_resized(struct step *step, struct jobset *jobset);

/* --- tasks ------------------------------------------------------------------------------------ */

/* task.c */
/* Prepares the next run of a PLACED task: a new uid if it was parked, and rank and port of the attempt. */
void task_rename(struct step *step, struct task *task);

/* end.c */
/* Orders the task's process to end within its grace, or ends a task without a process at once. With `doom`,
 * the task is deleted when it has ended. A task that is stopping gets only an order with a shorter grace. */
void task_stop(struct step *step, struct task *task, bool doom, int64_t grace_ns);
/* Emits the order to stop for a STOPPING task. */
void task_tell_stop(struct step *step, const struct task *task, int64_t grace_ns);
/* Notes that the task's process has ended, or that it will never have one. The caller has set its exit
 * fields. The consequence is decided when the step settles (recover/decide.c); until then the task is dead. A
 * PENDING task ends at once, and so does a PLACED one whose end is wanted. */
void task_finish(struct step *step, struct task *task, enum task_end end);
/* The two halves of a task's end: its chips are released; then its gang continues without it. */
void task_end(struct step *step, struct task *task, enum task_end end);
void task_leave_gang(struct step *step, struct task *task);
/* Adds a request of a living task to its JobSet's incident (ladder/incident.h). `why` must outlive the
 * step. */
void task_note_request(struct step *step, const struct task *task, enum loss_request_kind kind,
                       struct str why);

/* containers.c */
/* Takes an agent's report about a task's containers. Their restarts may fail the Job. */
void containers_take(struct step *step, struct task *task, const struct task_report *report);
/* Clears the containers' statuses before a parked task runs again, and keeps the sums of their restarts. */
void task_forget_containers(struct task *task);
/* Leaves the Event that an agent reports for a Pod; drops one whose reason is not all letters. */
void containers_note(struct step *step, struct task *task, const struct task_report *report);
void task_set_ready(struct step *step, struct task *task, bool ready);

/* named.c: pods that name their machine */
/* Returns whether such a gang of the JobSet waits and its machine is ready. */
bool gang_some_wait_named(const struct step *step, const struct jobset *jobset);
void gang_mark_named(struct step *step);                         /* marks the JobSets with such gangs */
void gang_judge_named(struct step *step, struct jobset *jobset); /* places each such gang, or fails it */

/* --- restarts and accounts -------------------------------------------------------------------- */

/* cost.c */
/* Books `chip_us` lost chip-microseconds of the newest restart back: ranks still had the work in memory. */
void usage_regain(struct step *step, struct jobset *jobset, int64_t chip_us);
/* Books work that a checkpoint had kept as lost to the end of the last attempt: `steps` of the `all` steps
 * that were kept. Assumes that all steps cost the same. */
void usage_unkeep(struct step *step, struct jobset *jobset, int64_t steps, int64_t all);
/* Counts the end of an attempt in its restart's record. Books everything since the last checkpoint as lost,
 * in every gang, and stores the sum in record->redone_us. `before_us` is the loss of an earlier restart that
 * made no step, booked under `before`: it moves to the new cause. */
void usage_end(struct step *step, struct jobset *jobset, struct restart_record *record, int64_t before_us,
               enum ledger_owner before);
/* Returns the owner under which the losses of the restart are booked; REDONE for NULL. */
enum ledger_owner usage_loser(const struct restart_record *record);

/* ends.c */
/* Takes the signatures of a task that has ended, before the end is counted: those of `report` (NULL: none),
 * and one of `kind`, with the task's message as its line. A `kind` of 0 means that of the reported exit. */
void ends_take(struct step *step, const struct task *task, const struct task_report *report,
               enum signature_kind kind);
/* Records that a user's order on the machine ends a task now, however long ago the order was given. */
void ends_confirm_order(struct jobset *jobset, struct str machine, int64_t now_ns);
/* Moves the collected signatures and faults into this record, and announces the cause in an Event. */
void ends_give(struct step *step, struct jobset *jobset, struct restart_record *record);

#endif
