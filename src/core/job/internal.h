/* internal.h - what the files of the job module say to each other. See job.h for which file does what. */
#ifndef PHX_CORE_JOB_INTERNAL_H
#define PHX_CORE_JOB_INTERNAL_H

#include "core/job/life.h"

/* jobset.c */
struct jobset *jobset_make(struct arena *arena, struct doc *document, const struct jobset_spec *spec);
void jobset_mark(struct step *step, struct jobset *jobset); /* to be reconciled before the step ends */
bool jobset_finished(const struct jobset *jobset);
void jobset_finish(struct step *step, struct jobset *jobset, enum condition_kind kind, const char *reason,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Sets a condition; a note is left when its status changed. False: nothing changed. */
bool condition_set(struct step *step, struct jobset *jobset, enum condition_kind kind, bool status,
                   const char *reason, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* reconcile.c */
void jobset_set_timer(struct job_store *store, struct jobset *jobset);
void jobset_reconcile(struct step *step, struct jobset *jobset);

/* belongings.c */
void belongings_lack(struct step *step, const struct jobset *jobset); /* look before the step ends */
void belongings_make(struct step *step);

/* resize.c */
void jobset_bind(struct jobset *jobset); /* makes what the spec wants room for */
void jobset_fit(struct jobset *jobset);  /* more room after a change of the spec */
uint32_t jobset_first_slot(const struct jobset *jobset, uint32_t rjob, uint32_t index);
/* Its Jobs' parallelism and completions may change. */
bool jobset_is_elastic(const struct jobset *jobset);

/* status.c */
void job_count(struct job *job); /* only counted */
void jobset_recount(struct step *step,
                    struct jobset *jobset); /* the jobs that changed, into status and timers */
void jobset_restored(struct job_store *store,
                     struct jobset *jobset); /* all of them, after a snapshot was read */

/* startup.c */
bool startup_allows(const struct jobset *jobset,
                    uint32_t rjob); /* may the replicated job's Jobs be made / run now? */
void startup_conditions(struct step *step, struct jobset *jobset);

/* attempt.c */
bool attempt_failure_policy(struct step *step, struct jobset *jobset); /* true: something was done */
/* Stamp before which no Job is made: the guard against crash loops. */
int64_t attempt_due(const struct jobset *jobset);
/* Dooms the current jobs (those with index in [first, end)) and keeps them among the old ones until they have
 * ended. */
void attempt_doom_jobs(struct step *step, struct jobset *jobset, uint32_t first, uint32_t end);

bool attempt_within_max(const struct jobset *jobset);

/* inplace.c */
bool inplace_is_asked(const struct jobset *jobset); /* by the spec */
bool inplace_may(const struct task *task);          /* its failure now is answered in place */
/* Its peers have lost it when its process ends: a restart of it is one of all (restartPolicy OnFailure of a
 * rank that joined through libphalanx); and no more of them are allowed. */
bool inplace_is_shared(const struct task *task);
bool inplace_is_exhausted(const struct task *task);
/* The JobSet's tasks are ended to run again; `culprit` failed, or was lost. */
void inplace_begin(struct step *step, struct jobset *jobset, struct task *culprit);
/* A process ended: true when its task stays, parked. */
bool inplace_takes(struct step *step, struct task *task, enum task_end end);
void inplace_go_on(struct step *step, struct jobset *jobset); /* runs them again when all are parked */
void inplace_cancel(struct jobset *jobset); /* nothing runs again in its place */
int64_t inplace_deadline(const struct jobset *jobset);

/* batch.c */
bool job_policy_fails(const struct job *job, const struct task *task); /* podFailurePolicy: FailJob */
struct job *job_make(struct jobset *jobset, uint32_t position);
struct job *job_new(struct step *step, struct jobset *jobset, uint32_t position, bool suspended);
void job_reconcile(struct step *step, struct job *job);
void job_fail(struct step *step, struct job *job, const char *reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void job_note_failure(struct step *step, const struct job *job); /* the event of a Job that has failed */
void job_suspend(struct step *step, struct job *job);
void job_resume(struct step *step, struct job *job);
void job_task_ended(struct step *step, struct job *job, struct task *task); /* counts it */
void job_resized(struct job *job); /* parallelism or completions changed: judged anew */
bool job_over(const struct job *job);                                       /* COMPLETE or FAILED */
bool job_has_failed(const struct job *job); /* for its JobSet: at once, or when its tasks have ended */
bool job_failed(const struct job *job);                                     /* FAILING or FAILED */
void user_meta_free(struct user_meta *meta);                                /* NULL: nothing */
int32_t job_wanted(const struct job *job); /* min(parallelism, completions) */
int64_t job_deadline(const struct job *job);
bool job_alive(const struct job *job); /* has a task that has not ended */
void job_bury(struct step *step,
              struct job *job); /* out of the store; told to watchers when `job` was current */

/* task.c */
/* `name` empty: it is generated. */
struct task *task_make(struct job *job, obj_id uid, int32_t index, struct str name);
struct task *task_create(struct step *step, struct job *job, int32_t index);
void task_rename(struct step *step, struct task *task); /* a new uid and attempt for its next run */
void task_stop(struct step *step, struct task *task, bool doom, int64_t grace_ns);
void task_start_if_free(struct step *step, struct task *task); /* PLACED -> STARTING when its name is free */
void task_finish(struct step *step, struct task *task, enum task_end end);
void task_release_chips(struct step *step, struct task *task);
void task_message(struct task *task, const char *format, ...) __attribute__((format(printf, 2, 3)));
void task_bury(struct step *step, struct task *task);

/* config.c */
bool task_config_waits(struct step *step, struct task *task); /* a ConfigMap or Secret of it is missing */
void config_wake_waiters(struct step *step);                   /* when one has been written */

/* containers.c: what an agent says of a task's containers. */
void containers_take(struct step *step, struct task *task, const struct task_report *report);
/* Restarts in place that count towards its backoffLimit, of its living pods and of `ended` (NULL: none). */
uint64_t job_container_restarts(const struct job *job, const struct task *ended);
/* It will run again: what was restarted within its runs so far is one sum. */
void task_forget_containers(struct task *task);
void containers_note(struct step *step, struct task *task, const struct task_report *report);
void task_set_ready(struct step *step, struct task *task, bool ready);

/* named.c: pods that name their machine */
bool task_is_named(const struct task *task);
bool gang_is_named(const struct gang *gang);
/* It waits, and its machine is ready: it is to be judged before the step ends. */
bool gang_waits_named(const struct step *step, const struct gang *gang);
/* Its machine; NULL: unknown, or not ready. */
const struct machine *gang_named_machine(const struct step *step, const struct gang *gang);
bool gang_some_wait_named(const struct step *step, const struct jobset *jobset);
void gang_mark_named(struct step *step); /* JobSets with such gangs */
void gang_judge_named(struct step *step, struct jobset *jobset); /* each gets its chips or has failed */

/* form.c, gang.c */
bool gang_is_gated(const struct gang *gang); /* a Pod of its own with scheduling gates */
bool gang_try(struct step *step, struct gang *gang); /* places it; its `why` when it cannot be */
/* Of its pods. */
int32_t job_priority(const struct job_store *store, const struct cluster *cluster,
                     const struct rjob_spec *rjob);
void gang_form(struct step *step, struct jobset *jobset); /* PENDING tasks without a gang become one */
/* The tasks after the first `count` leave a gang that waits: they are loose again. */
void gang_shrink(struct step *step, struct gang *gang, uint32_t count);
/* At once, what admission found places for. */
void gang_place_admitted(struct step *step, struct jobset *jobset);
void gang_leave(struct task *task);                       /* the task is not one of its gang any more */
void gang_thin(struct gang *gang);                        /* takes out those that left */
void gang_task_started(struct step *step, struct task *task);
void gang_task_parked(struct step *step, struct task *task); /* it waits to run again */
void gang_task_ended(struct step *step, struct task *task);
/* `count` of its held chips leave it (ended, taken over). */
void gang_chips_left(struct step *step, struct gang *gang, int64_t count);
void gang_book(struct step *step, struct gang *gang, enum ledger_owner owner); /* its chips change owner */
void gang_schedule(struct step *step);                                         /* one pass over the queue */
/* The cluster's owner of a machine's free chips. */
enum ledger_owner machine_free_owner(const struct machine *machine);

/* Takes the places back from a placed gang of which nothing has been told to start. */
void gang_unplace(struct step *step, struct gang *gang);

/* preflight.c */
struct preflight;
void preflight_begin(struct step *step, struct gang *gang); /* it was just placed */
void preflight_settle(struct step *step);                   /* goes on where nothing is waited for any more */
void preflight_free(struct preflight *preflight);           /* NULL: nothing */
void preflight_remap(struct job_store *store, const machine_id *map); /* after tasks were */

/* progress.c */
/* A fault ends an attempt, or one job of it: what was not kept is lost, and the record of restart `attempt`
 * begins. `culprit` NULL: `cause` says. */
/* Does this fault belong to the restart that is under way? `culprit` NULL: no. */
bool progress_same_incident(const struct step *step, const struct jobset *jobset, const struct task *culprit);
void progress_restart(struct step *step, struct jobset *jobset, int32_t attempt, const char *cause,
                      const struct task *culprit);
void progress_suspended(struct step *step, struct jobset *jobset);
void progress_resumed(struct step *step,
                      struct jobset *jobset); /* what was not kept before the suspension is lost */
void progress_running(struct step *step, struct gang *gang); /* every task of the gang runs */
void progress_joined(struct step *step, struct task *task);
void progress_shard_saved(struct step *step, struct task *task, int64_t number);
void progress_settle(struct step *step, struct jobset *jobset, bool kept); /* the JobSet is finished */

void progress_suspect(struct jobset *jobset, machine_id machine); /* later gangs avoid it if they can */

/* ends.c */
/* A task has ended, and is about to be counted. `report` says how, NULL: `kind` does; words: its message. */
void ends_take(struct step *step, const struct task *task, const struct task_report *report,
               enum clue_kind kind);
/* What has come together belongs to this record now, and users read about it. */
void ends_give(struct step *step, struct jobset *jobset, struct restart_record *record);

/* move.c */
void move_look(struct step *step, struct jobset *jobset); /* whether it can go now, or must not go at all */
int64_t move_deadline(const struct jobset *jobset);       /* INT64_MAX: none */
void move_remap(struct jobset *jobset, const machine_id *map);

/* peers.c */
void peers_report_gone(struct step *step, struct task *reporter, uint32_t rank);

/* store.c */
void store_add_jobset(struct job_store *store, struct jobset *jobset);
void store_remove_jobset(struct job_store *store, struct jobset *jobset); /* from the indexes */
/* Users do not find it any more; its Jobs (its pods, of a Job of its own) they do. */
void store_hide_jobset(struct job_store *store, struct jobset *jobset);
void store_add_job(struct job_store *store, struct job *job);
/* Its Job at this position could be made: no other has its name. */
bool store_name_free(const struct job_store *store, const struct jobset *jobset, struct str job);
void store_hide_job(struct job_store *store, struct job *job); /* its name is free again */
void store_add_task(struct job_store *store, struct task *task);
void store_free_gang(struct gang *gang);

#endif
