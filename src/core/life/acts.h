/* acts.h - what the reconciliation of a JobSet does to its Jobs, tasks and accounts. life.h lists the files.
 * Shown to core/recover, which decides when. */
#ifndef PHX_CORE_LIFE_ACTS_H
#define PHX_CORE_LIFE_ACTS_H

#include "core/gang/gang.h"
#include "core/job/store.h"
#include "core/life/life.h"

#define NO_PROGRESS "NoProgress" /* reason of a Job, and of its JobSet, that is given up */

/* --- JobSets ---------------------------------------------------------------------------------- */

/* jobset.c */
void jobset_finish(struct step *step, struct jobset *jobset, enum condition_kind kind, const char *reason,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Sets a new generation of the document, which is not equal to the present one; the arena is taken over. */
void jobset_set_document(struct step *step, struct jobset *jobset, struct arena *arena, struct doc *document,
                         const struct jobset_spec *spec);

/* status.c: books the changed Jobs in status and timers. */
void jobset_recount(struct step *step, struct jobset *jobset);

/* startup.c: whether the replicated job's Jobs may be made / may run now. */
bool startup_allows(const struct jobset *jobset, uint32_t rjob);
void startup_conditions(struct step *step, struct jobset *jobset);

/* owned_objects.c: makes those that were marked, before the step ends. */
void owned_objects_make(struct step *step);

/* --- Jobs ------------------------------------------------------------------------------------- */

/* fail.c */
/* Decides that an ACTIVE Job fails; does nothing to any other. `reason` is not copied. */
void job_fail(struct step *step, struct job *job, const char *reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* batch.c */
bool job_policy_fails(const struct job *job, const struct task *task); /* podFailurePolicy: FailJob */
struct job *job_new(struct step *step, struct jobset *jobset, uint32_t position, bool suspended);
void job_reconcile(struct step *step, struct job *job);
/* Dooms the current jobs with index in [first, end), and keeps them among the old ones until they have
 * ended. */
void attempt_doom_jobs(struct step *step, struct jobset *jobset, uint32_t first, uint32_t end);
void job_suspend(struct step *step, struct job *job);
void job_resume(struct step *step, struct job *job);
void job_count_end(struct job *job, struct task *task); /* books a task that has ended, not yet its failure */
/* Counts its failure as the Job's policies say, which may fail the Job. */
void job_count_failure(struct step *step, struct job *job, struct task *task);
/* Delays the next try of the index after the failure that was just counted. */
void job_retry_later(struct step *step, struct job *job, const struct task *task);
int64_t job_due_ns(const struct job *job); /* the stamp of the Job's timer; INT64_MAX: it has none */
/* Removes it from the store; tells watchers if `job` was current. */
void job_bury(struct step *step, struct job *job);

/* spare.c */
void spare_joined(struct step *step, struct task *task); /* its process has joined as a spare */
void spare_leave(struct step *step, struct task *task, struct str why); /* its machine is unhealthy */
/* Gives the index of a lost task to a spare, while the next attempt is prepared; NULL: no spare is ready. */
struct task *spare_take(struct step *step, struct job *job, int32_t index);
/* Makes spares give up chips that the head of the queue needs, is entitled to, and fits with. */
void spare_yield(struct step *step);
/* Called when the wanted number may have changed. */
void spare_resized(struct step *step, struct jobset *jobset);

/* --- tasks ------------------------------------------------------------------------------------ */

/* task.c */
void task_rename(struct step *step, struct task *task); /* gives its next run a new uid and attempt */

/* end.c */
/* Tells the task's process to end, or ends the task at once where it has none. `doom`: it is deleted then. */
void task_stop(struct step *step, struct task *task, bool doom, int64_t grace_ns);
/* Repeats the order to end to the agent of a STOPPING task. */
void task_tell_stop(struct step *step, const struct task *task, int64_t grace_ns);
/* Notes that the task's process has ended, or that it will never have one. The caller has set its exit
 * fields. The consequence is decided when the step settles (recover/decide.c); until then the task is dead. A
 * task without a process whose end is wanted, or that has no place, ends at once. */
void task_finish(struct step *step, struct task *task, enum task_end end);
/* The two halves of a task's end: it gives its chips back, then its gang goes on without it. */
void task_end(struct step *step, struct task *task, enum task_end end);
void task_leave_gang(struct step *step, struct task *task);
/* Notes what was asked of the task's JobSet in this step (ladder/incident.h). `why` is copied. */
void task_note_request(struct step *step, const struct task *task, enum loss_request_kind kind,
                       struct str why);

/* containers.c: takes an agent's report about a task's containers. */
void containers_take(struct step *step, struct task *task, const struct task_report *report);
/* Called before a task runs again: keeps the sum of its containers' restarts in earlier runs. */
void task_forget_containers(struct task *task);
void containers_note(struct step *step, struct task *task, const struct task_report *report);
void task_set_ready(struct step *step, struct task *task, bool ready);

/* named.c: pods that name their machine */
bool gang_some_wait_named(const struct step *step, const struct jobset *jobset);
void gang_mark_named(struct step *step);                         /* marks JobSets with such gangs */
void gang_judge_named(struct step *step, struct jobset *jobset); /* gives each gang its chips, or fails it */

/* --- restarts and accounts -------------------------------------------------------------------- */

/* cost.c */
/* Books so many lost chip-microseconds of the newest restart back: ranks still had the work in memory. */
void usage_regain(struct step *step, struct jobset *jobset, int64_t chip_us);
/* The reverse for work that a checkpoint had kept: `steps` of the `all` steps that were kept are lost to what
 * ended the last attempt. Steps are taken to have cost the same. */
void usage_unkeep(struct step *step, struct jobset *jobset, int64_t steps, int64_t all);
/* Counts the end of an attempt with its restart's record, and books everything since the last checkpoint as
 * lost, in every gang: record->redone_us. Of an earlier restart that made no step, `before_us` were lost and
 * booked under `before`. */
void usage_end(struct step *step, struct jobset *jobset, struct restart_record *record, int64_t before_us,
               enum ledger_owner before);
/* Returns the owner of what the restart has lost (NULL: REDONE). */
enum ledger_owner usage_loser(const struct restart_record *record);

/* ends.c */
/* Takes the signatures of a task that has ended, before the end is counted. `report` has them; NULL: the
 * signature is of `kind`, with the task's message as its line. */
void ends_take(struct step *step, const struct task *task, const struct task_report *report,
               enum signature_kind kind);
/* Records that a user's order on the machine ends a task now, however long ago the order was given. */
void ends_confirm_order(struct jobset *jobset, struct str machine, int64_t now_ns);
/* Moves the collected signatures into this record, and tells users the cause. */
void ends_give(struct step *step, struct jobset *jobset, struct restart_record *record);

#endif
