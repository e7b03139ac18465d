/* internal.h - what the files of the job module say to each other. See job.h for which file does what. */
#ifndef PHX_CORE_JOB_INTERNAL_H
#define PHX_CORE_JOB_INTERNAL_H

#include "core/job/life.h"
#include "core/job/recovery.h"

#define NO_PROGRESS "NoProgress" /* reason of a Job, and of its JobSet, that is given up */
#define SPARE_KEY "phalanx.dev/spare" /* label of Pods that wait for a rank */

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
void jobset_stop(struct step *step, struct jobset *jobset); /* it is suspended: what runs of it ends */

/* belongings.c */
void belongings_lack(struct step *step, const struct jobset *jobset); /* look before the step ends */
void belongings_make(struct step *step);

/* resize.c */
void jobset_bind(struct jobset *jobset); /* makes what the spec wants room for */
void jobset_unbind(struct jobset *jobset);
void jobset_fit(struct jobset *jobset);  /* more room after a change of the spec */
void jobset_rebind(struct jobset *jobset); /* FORM_WORKLOAD: anew, for the PodSets that the spec has now */
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

/* outage.c */
/* An outage of the controller explains the end that this report tells of (NULL: its machine is lost). */
bool outage_explains(const struct step *step, const struct task_report *report);
void outage_ends(struct step *step, struct task *task); /* such a task is about to end */

/* catch_up.c: machines know newer attempts of it than the log does, which was restored from a backup. */
void catch_up_note(struct step *step, struct task *task, const struct task_report *report);
/* Goes on behind the newest of them, all of it anew. True: it did. */
bool catch_up(struct step *step, struct jobset *jobset);

/* backoff.c: all of it is about to run again because of this task (NULL: of none); the failure policy said
 * so. From now on attempt_due() knows how long that is held back. */
void backoff_begin(const struct step *step, struct jobset *jobset, const struct task *culprit);
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
bool inplace_is_disabled(const struct jobset *jobset);   /* by its annotation */
bool inplace_is_whole(const struct jobset *jobset);      /* every task has a place, and none is through */
bool inplace_has_succeeded(const struct jobset *jobset); /* a rank of it is through */
/* The JobSet's tasks are ended to run again; `culprit` failed, or was lost. With `recovery` (NULL: none) the
 * processes that can rejoin live on. */
void inplace_begin(struct step *step, struct jobset *jobset, struct task *culprit,
                   const struct recovery *recovery);
/* A change of the membership for which nobody was lost: those that can rejoin do, when they have made their
 * step; the others are started again. `cause` stays; `why` is what users read. */
void inplace_begin_planned(struct step *step, struct jobset *jobset, const char *cause, const char *why);
/* A rank's program asks that all go back to what they hold, as another attempt, though nobody is lost. Where
 * that may not be, its process is ended, as one that failed. */
void inplace_retry(struct step *step, struct task *asker, struct str why);
/* A process ended: true when its task stays, parked. */
bool inplace_takes(struct step *step, struct task *task, enum task_end end);
void inplace_go_on(struct step *step, struct jobset *jobset); /* runs them again when all are parked */
void inplace_cancel(struct jobset *jobset); /* nothing runs again in its place */
/* Tasks that begin from here on do so under another number: some that run under this one, or hear of it late,
 * must not meet them. */
void inplace_retire(struct jobset *jobset);
int64_t inplace_deadline(const struct jobset *jobset);
/* Some of its tasks were left in an attempt before, or parked, by a restart in place that was given up. */
bool inplace_left_some(const struct jobset *jobset);

/* dump.c */
/* Why the survivors of a loss (`culprit`, NULL: it is gone already) cannot save what all had; NULL: they can.
 */
const char *dump_lacks(const struct step *step, const struct jobset *jobset, const struct task *culprit);
/* They are to. `culprit` NULL: places are missing for too long. */
void dump_begin(struct step *step, struct jobset *jobset, struct task *culprit,
                const struct recovery *recovery);
void dump_lost(struct step *step, struct task *task);      /* meanwhile this one has ended */
void dump_go_on(struct step *step, struct jobset *jobset); /* tells them; ends it when it is over */
int64_t dump_deadline(const struct jobset *jobset);
const struct task *dump_rank_zero(const struct jobset *jobset); /* of the survivors; NULL: nobody is there */

/* recovery.c: a failure of this task counts towards the backoffLimit of its Job, not towards maxRestarts. */
bool recovery_charges_job(const struct task *culprit);

/* rejoin.c */
/* Everybody else who runs: those that can rejoin stay, the others are stopped. */
void rejoin_keep_or_stop(struct step *step, struct jobset *jobset, const struct task *culprit);
void rejoin_tell(struct step *step, struct jobset *jobset); /* the attempt has begun: keepers are told */
void rejoin_tell_one(struct step *step, struct task *task); /* this one */
/* Does the report speak for an attempt before the task's own? */
bool rejoin_is_old_word(const struct task *task, const struct task_report *report);
void rejoin_say_again(struct step *step, const struct task *task, const struct task_report *report);
/* `reporter` lost its connection to a rank that lives: if neither a loss nor a step explains it soon, the
 * ranks must meet anew. */
void rejoin_note_apart(struct step *step, const struct task *reporter);
void rejoin_note_step(struct step *step, struct jobset *jobset); /* every rank has made one: they go on */
/* Stamp at which the next two are to be asked; INT64_MAX: nothing is waited for. */
int64_t rejoin_deadline(const struct jobset *jobset);
/* Some did not join in time: they are to be ended, and are no keepers any more. */
bool rejoin_is_late(const struct step *step, struct jobset *jobset);
/* Ranks that live have been apart for too long. */
bool rejoin_is_apart(const struct step *step, struct jobset *jobset);

/* spare.c */
/* Could its Job have so many more than its users ask for? */
uint32_t job_spares(const struct job *job); /* that its spec, or its queue, wants of it */
bool spare_may_be(const struct job *job, uint32_t count);
uint32_t spare_ready(const struct job *job, const struct cluster *cluster);
void spare_look(struct step *step, struct job *job); /* makes those that are missing, ends those too many */
void spare_stop_all(struct step *step, struct job *job);                   /* they end with their Job */
void spare_ended(struct step *step, struct task *task, enum task_end end); /* the one place where one ends */
void spare_joined(struct step *step, struct task *task); /* it has said that it has no rank */
/* A spare takes the index whose task is lost, while the next attempt is prepared; NULL: none is ready. */
struct task *spare_take(struct step *step, struct job *job, int32_t index);
void spare_leave(struct step *step, struct task *task, struct str why); /* its machine is not well */
/* Those whose chips the head of the queue needs, and may have, go if all that it needs is there then. */
void spare_yield(struct step *step);
bool spare_gives_way(const struct task *spare, const struct gang *gang); /* to this gang */
bool spare_start_waits(const struct task *task); /* its room is all that is wanted of it */
int64_t spare_deadline(const struct job *job);   /* INT64_MAX: none */
void spare_resized(struct jobset *jobset);       /* another number may be wanted */

/* shrink.c */
/* While all of it is to run again: true when it can, without replicas that are not whole (now absent); false:
 * something is still waited for. */
bool shrink_settle(struct step *step, struct jobset *jobset);
/* Why it cannot go on while so many replicas are away, as the end of a sentence; NULL: it can. */
const char *shrink_lacks(const struct jobset *jobset, size_t away);
int64_t shrink_deadline(const struct jobset *jobset); /* INT64_MAX: none */
/* Replicas that are whole again come back, when it is time. */
void shrink_look(struct step *step, struct jobset *jobset);
void shrink_forget(struct jobset *jobset); /* all take part: it begins anew, or has ended */
/* Ranks of the job that are away. */
uint32_t shrink_away_in(const struct job *job);
/* Its first rank to be through: replicas that are away are not waited for. */
void shrink_some_through(struct jobset *jobset);
/* The rank of the full world's rank `full` among those that take part, and those that are away behind them;
 * *ret_world: of the part that it belongs to. */
uint32_t shrink_rank(const struct jobset *jobset, uint32_t full, uint32_t full_world, uint32_t *ret_world);
/* A gang found no place: is that reason to go on without it? */
void shrink_gang_waits(struct step *step, const struct gang *gang);

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
void task_name_anew(struct step *step, struct task *task); /* until no other Pod has its name */
struct task *task_create(struct step *step, struct job *job, int32_t index);
void task_rank(struct task *task); /* its rank, world and ports, by the spec and the attempt */
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

/* gates.c */
void task_take_gates(struct task *task);     /* those of its template: it was just made */
void gang_look_at_gates(struct gang *gang);  /* its tasks are all there now */
bool gang_is_gated(const struct gang *gang); /* a living Pod of it has scheduling gates */
void gang_say_gated(const struct gang *gang, struct buf *why); /* names them */

/* form.c, gang.c */
bool gang_try(struct step *step, struct gang *gang); /* places it; its `why` when it cannot be */
/* Of its pods. */
int32_t job_priority(const struct job_store *store, const struct cluster *cluster,
                     const struct rjob_spec *rjob);
void gang_form(struct step *step, struct jobset *jobset); /* PENDING tasks without a gang become one */
void gang_form_spare(struct step *step, struct task *task); /* a gang of its own, behind all others */
/* It has a rank now, and so has its gang. */
void gang_adopt_spare(struct step *step, struct gang *gang);
/* The tasks after the first `count` leave a gang that waits: they are loose again. */
void gang_shrink(struct step *step, struct gang *gang, uint32_t count);
/* At once, what admission found places for. */
void gang_place_admitted(struct step *step, struct jobset *jobset);
void gang_leave(struct task *task);                       /* the task is not one of its gang any more */
void gang_thin(struct gang *gang);                        /* takes out those that left */
/* It may be that all that is left of it runs. */
void gang_go_on(struct step *step, struct gang *gang);
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
/* The attempt that the newest restart began has another number now. */
void progress_follow(struct jobset *jobset);
void restart_record_done(struct restart_record *record);
/* How the ladder answered it, into the newest record; `passed` is copied. */
void progress_decided(struct jobset *jobset, enum rung rung, struct str passed);
void progress_suspended(struct step *step, struct jobset *jobset);
void progress_resumed(struct step *step,
                      struct jobset *jobset); /* what was not kept before the suspension is lost */
void progress_running(struct step *step, struct gang *gang); /* every task of the gang runs */
void progress_joined(struct step *step, struct task *task, const struct task_report *report);
void progress_shard_saved(struct step *step, struct task *task, int64_t number);
void progress_settle(struct step *step, struct jobset *jobset, bool kept); /* the JobSet is finished */

void progress_suspect(struct jobset *jobset, machine_id machine); /* later gangs avoid it if they can */

/* suspect.c: it ended an attempt; does its machine end those of other jobs too? */
/* Processes that do not join though their peers have (unjoined.c). */
void unjoined_note_join(struct step *step, struct jobset *jobset);  /* a rank has joined */
void unjoined_forget(struct jobset *jobset);                        /* another attempt begins */
int64_t unjoined_deadline(const struct jobset *jobset);             /* INT64_MAX: none */
void unjoined_look(struct step *step, struct jobset *jobset);       /* that time has come */
void unjoined_given_up(struct step *step, const struct task *task); /* this rank is about to end by itself */
void suspect_blame(struct step *step, const struct jobset *jobset, const struct task *culprit);

/* ends.c */
/* A task has ended, and is about to be counted. `report` says how, NULL: `kind` does; words: its message. */
void ends_take(struct step *step, const struct task *task, const struct task_report *report,
               enum clue_kind kind);
/* A task ends now because of what a user ordered on its machine, however long ago that was. */
void ends_confirm_order(struct jobset *jobset, struct str machine, int64_t now_ns);
/* What has come together belongs to this record now, and users read about it. */
void ends_give(struct step *step, struct jobset *jobset, struct restart_record *record);

/* move.c */
void move_look(struct step *step, struct jobset *jobset); /* whether it can go now, or must not go at all */
int64_t move_deadline(const struct jobset *jobset);       /* INT64_MAX: none */
bool move_by_spares(const struct jobset *jobset);         /* it is under way so */
/* So many spares are wanted until its ranks have left the machine. */
uint32_t move_extra_spares(const struct job *job);
void move_remap(struct jobset *jobset, const machine_id *map);

/* suspend.c */
void suspend_begin(struct step *step, struct jobset *jobset); /* its user has just suspended it */
bool suspend_waits(const struct step *step, const struct jobset *jobset); /* false: it is to be stopped now */
/* Its ranks can be asked to save, and it is likely that they do. */
bool suspend_is_worth_it(const struct jobset *jobset);
int64_t suspend_deadline(const struct jobset *jobset); /* INT64_MAX: none */

/* peers.c */
void peers_report_gone(struct step *step, struct task *reporter, uint32_t rank);

/* store.c */
void store_add_jobset(struct job_store *store, struct jobset *jobset);
void store_count_naming(struct job_store *store, struct jobset *jobset);  /* its spec is another */
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
