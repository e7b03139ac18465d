/* internal.h - functions shared by the files of the job module. job.h lists the files. */
#ifndef PHX_CORE_JOB_INTERNAL_H
#define PHX_CORE_JOB_INTERNAL_H

#include "core/job/facts.h"
#include "core/job/life.h"
#include "core/job/recovery.h"

#define NO_PROGRESS "NoProgress" /* reason of a Job, and of its JobSet, that is given up */
#define SPARE_KEY "phalanx.dev/spare" /* label of Pods that wait for a rank */

/* jobset.c */
struct jobset *jobset_make(struct arena *arena, struct doc *document, const struct jobset_spec *spec);
void jobset_finish(struct step *step, struct jobset *jobset, enum condition_kind kind, const char *reason,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));

/* reconcile.c */
/* Returns the stamp at which the JobSet, or one of its Jobs, has to be looked at again; INT64_MAX: none. */
int64_t jobset_due_ns(const struct jobset *jobset);
void jobset_set_timer(struct job_store *store, struct jobset *jobset);
void jobset_reconcile(struct step *step, struct jobset *jobset);

/* owned_objects.c */
/* Has its owned objects checked before the step ends. */
void owned_objects_mark(struct step *step, const struct jobset *jobset);
void owned_objects_make(struct step *step);

/* resize.c */
void jobset_bind(struct jobset *jobset); /* makes room for the Jobs and indexes of the spec */
void jobset_unbind(struct jobset *jobset);
void jobset_fit(struct jobset *jobset);    /* adds room after a change of the spec */
void jobset_rebind(struct jobset *jobset); /* FORM_WORKLOAD: makes room anew, for the present PodSets */

/* status.c */
void jobset_recount(struct step *step,
                    struct jobset *jobset); /* books the changed jobs in status and timers */
void jobset_restored(struct jobset *jobset); /* books all jobs, after a snapshot was read */

/* startup.c */
bool startup_allows(const struct jobset *jobset,
                    uint32_t rjob); /* whether the replicated job's Jobs may be made / may run now */
void startup_conditions(struct step *step, struct jobset *jobset);

/* attempt.c */
bool attempt_failure_policy(struct step *step, struct jobset *jobset); /* true: the policy acted */

/* outage.c */
/* Whether an outage of the controller explains the end in this report (NULL: the end of a lost machine's
 * task). */
bool outage_explains(const struct step *step, const struct task_report *report);
void outage_ends(struct step *step, struct task *task); /* called before such a task ends */

/* catch_up.c: notes that machines know newer attempts than the log, which was restored from a backup. */
void catch_up_note(struct step *step, struct task *task, const struct task_report *report);
/* Goes on after the newest of these attempts, with all tasks made anew. False: there is none. */
bool catch_up(struct step *step, struct jobset *jobset);

/* backoff.c: called when the failure policy restarts the whole JobSet because of this task (NULL: of
 * none). Sets the wait that attempt_due() returns. */
void backoff_begin(const struct step *step, struct jobset *jobset, const struct task *culprit);
/* Stamp before which no Job is made: the guard against crash loops. */
int64_t attempt_due(const struct jobset *jobset);

/* inplace_begin.c */
/* Ends the JobSet's tasks, to run again; `culprit` failed or was lost. With `recovery` (NULL: none)
 * processes that can rejoin are kept. */
void inplace_begin(struct step *step, struct jobset *jobset, struct task *culprit,
                   const struct recovery *recovery);
/* Begins a planned change of membership, without a loss: processes that can rejoin do so after their step,
 * the others are started again. `cause` is not copied; users read `why`. */
void inplace_begin_planned(struct step *step, struct jobset *jobset, const char *cause, const char *why);
/* Answers a rank's request that all ranks return to the state they hold, as a new attempt, though none is
 * lost. If that is not allowed, the asking process is ended as one that failed. */
void inplace_retry(struct step *step, struct task *asker, struct str why);
/* Begins the next attempt although no task has ended, or gives the JobSet up. `cause` is not copied; users
 * read `why`. `all_live`: the ranks lost their connections to each other; otherwise some did not rejoin. */
void inplace_go_on_without_loss(struct step *step, struct jobset *jobset, const char *cause, bool all_live,
                                struct str why);

/* inplace.c */
/* Keeps a dead task in its place, for the next attempt. */
void inplace_park(struct step *step, struct task *task);
void inplace_go_on(struct step *step, struct jobset *jobset); /* runs the tasks again when all are parked */
int64_t inplace_deadline(const struct jobset *jobset);

/* recovery_state.c */
void inplace_cancel(struct jobset *jobset); /* ends the preparation of a restart */
void inplace_end(struct jobset *jobset, enum recovery_state to); /* likewise, and leaves it in this state */
/* Another restart begins. The first ends a dying checkpoint (true: one is over, and belongs to that restart),
 * the second the wait for processes that rejoin. */
bool inplace_forget_dump(struct jobset *jobset);
void inplace_forget_keepers(struct jobset *jobset);
/* Numbers later attempts anew, so that later tasks never meet tasks that still run under the present
 * number or hear of it late. */
void inplace_retire(struct jobset *jobset);
/* Whether a restart in place that was given up left some tasks parked or in an earlier attempt. */
bool inplace_left_some(const struct jobset *jobset);
/* Whether the task waits for an attempt that will never begin, once its restart in place was given up. */
bool inplace_is_left(const struct task *task);
void unjoined_forget(struct jobset *jobset); /* another attempt begins: no join of this one is awaited */
void move_end(struct jobset *jobset);        /* no move is under way any more */

/* means.c */
/* Returns why the survivors of a loss cannot save the state of all ranks; NULL: they can. */
const char *dump_lacks(const struct step *step, const struct jobset *jobset);
/* Returns why it cannot go on with so many absent replicas, as the end of a sentence; NULL: it can. */
const char *shrink_lacks(const struct jobset *jobset, size_t away);
/* Whether the task holds the state of a rank. A spare that was given a rank but has not been told yet holds
 * none. */
bool dump_has_state(const struct task *task);

/* dump.c */
/* Begins a dying checkpoint. `culprit` NULL: places are missing for too long. */
void dump_begin(struct step *step, struct jobset *jobset, struct task *culprit,
                const struct recovery *recovery);
void dump_lost(struct step *step, struct task *task);      /* called when this task ends during the dump */
/* Tells the members, and ends the dump when it is over. */
void dump_go_on(struct step *step, struct jobset *jobset);
const struct task *dump_rank_zero(const struct jobset *jobset); /* the first survivor; NULL: none is left */

/* rejoin.c */
/* Handles all other running processes: keeps those that can rejoin, and stops the rest. */
void rejoin_keep_or_stop(struct step *step, struct jobset *jobset, const struct task *culprit);
void rejoin_tell(struct step *step, struct jobset *jobset); /* the attempt has begun: tells the keepers */
void rejoin_tell_one(struct step *step, struct task *task); /* this one */
/* Whether the report belongs to an attempt before the task's own. */
bool rejoin_is_old_word(const struct task *task, const struct task_report *report);
void rejoin_say_again(struct step *step, const struct task *task, const struct task_report *report);
/* Notes that `reporter` lost its connection to a living rank: if neither a loss nor a step explains this
 * soon, a new attempt begins. */
void rejoin_note_apart(struct step *step, const struct task *reporter);
/* Every rank has made a step, so no new attempt is needed. */
void rejoin_note_step(struct step *step, struct jobset *jobset);
/* Stamp at which the next two functions have to be called; INT64_MAX: never. */
int64_t rejoin_deadline(const struct jobset *jobset);
/* Whether some told keepers did not join in time. They are no longer keepers, and the caller ends them. */
bool rejoin_is_late(const struct step *step, struct jobset *jobset);
/* Whether living ranks have been disconnected for too long. */
bool rejoin_is_apart(const struct step *step, struct jobset *jobset);

/* spare.c */
/* Whether its Job could have so many spares more than its users ask for. */
bool spare_may_be(const struct job *job, uint32_t count);
uint32_t spare_ready(const struct job *job, const struct cluster *cluster);
void spare_look(struct step *step, struct job *job); /* makes missing spares and ends surplus ones */
void spare_stop_all(struct step *step, struct job *job); /* called when their Job ends */
void spare_joined(struct step *step, struct task *task); /* its process has joined as a spare */
/* Gives the index of a lost task to a spare, while the next attempt is prepared; NULL: no spare is ready. */
struct task *spare_take(struct step *step, struct job *job, int32_t index);
void spare_leave(struct step *step, struct task *task, struct str why); /* its machine is unhealthy */
/* Makes spares give up chips that the head of the queue needs, is entitled to, and fits with. */
void spare_yield(struct step *step);
int64_t spare_deadline(const struct job *job);   /* INT64_MAX: none */
void spare_resized(struct step *step,
                   struct jobset *jobset); /* called when the wanted number may have changed */

/* shrink.c */
/* While the whole JobSet is to run again: true when it can, without incomplete replicas (which are now
 * absent); false: it still waits. */
bool shrink_settle(struct step *step, struct jobset *jobset);
int64_t shrink_deadline(const struct jobset *jobset); /* INT64_MAX: none */
/* Brings back absent replicas that are complete, when their time has come. */
void shrink_look(struct step *step, struct jobset *jobset);
/* Gives the tasks of each absent replica gangs of their own. */
void shrink_divide(struct step *step, struct jobset *jobset);
/* Ends the absent replicas of an orphaned Job once a rank that took part has ended: no rank is made anew, so
 * they would never come back. */
void shrink_part(struct step *step, struct job *job);
/* Called when the first rank succeeds: the job may then complete without the absent replicas. */
void shrink_some_through(struct jobset *jobset);

/* fail.c */
/* Decides that an ACTIVE Job fails; does nothing to any other. `reason` is not copied. */
void job_fail(struct step *step, struct job *job, const char *reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void job_note_failure(struct step *step, const struct job *job); /* the event of a Job that has failed */

/* batch.c */
bool job_policy_fails(const struct job *job, const struct task *task); /* podFailurePolicy: FailJob */
struct job *job_make(struct jobset *jobset, uint32_t position);
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
void job_resized(struct job *job); /* judges the Job anew after a change of parallelism or completions */
void user_meta_free(struct user_meta *meta); /* NULL: nothing */
int64_t job_deadline(const struct job *job);
int64_t job_due_ns(const struct job *job); /* the stamp of the Job's timer; INT64_MAX: it has none */
void job_bury(struct step *step,
              struct job *job); /* removes it from the store; tells watchers if `job` was current */

/* task.c */
/* `name` empty: one is generated. */
struct task *task_make(struct job *job, obj_id uid, int32_t index, struct str name);
void task_name_anew(struct step *step, struct task *task); /* repeated until no other Pod has the name */
struct task *task_create(struct step *step, struct job *job, int32_t index);
void task_rename(struct step *step, struct task *task); /* gives its next run a new uid and attempt */

/* end.c */
/* Tells the task's process to end, or ends the task at once where it has none. `doom`: it is deleted then. */
void task_stop(struct step *step, struct task *task, bool doom, int64_t grace_ns);
/* Repeats the order to end to the agent of a STOPPING task. */
void task_tell_stop(struct step *step, const struct task *task, int64_t grace_ns);
/* Notes that the task's process has ended, or that it will never have one. The caller has set its exit
 * fields. What follows is decided when the step settles (decide.c); until then the task is dead. A task
 * without a process whose end is wanted, or that has no place, ends at once. */
void task_finish(struct step *step, struct task *task, enum task_end end);
/* The two halves of a task's end: it gives its chips back, then its gang goes on without it. */
void task_end(struct step *step, struct task *task, enum task_end end);
void task_leave_gang(struct step *step, struct task *task);
void task_bury(struct step *step, struct task *task);
/* Notes what was asked of the task's JobSet in this step (recover/incident.h). `why` is copied. */
void task_note_request(struct step *step, const struct task *task, enum loss_request_kind kind,
                       struct str why);
/* The only place where a spare ends. */
void spare_ended(struct step *step, struct task *task, enum task_end end);
/* Takes the spare out of its Job's list. */
void spare_take_out(struct step *step, struct job *job, const struct task *task);
/* Waits before another spare is made, after spares that ended by themselves. */
#define SPARE_BACKOFF_FIRST_NS (10 * NS_PER_SECOND)
#define SPARE_BACKOFF_MAX_NS   (300 * NS_PER_SECOND)

/* evict.c */
/* Ends a living task because its slice is broken; the task counts as disrupted. Users read `why`. */
void jobs_end_broken(struct step *step, struct task *task, struct str why);

/* start.c */
/* PLACED -> STARTING, unless something that must hold before does not: its name is in use, its slice is not
 * connected, a test of its machines or an object that it needs is awaited. */
void task_start_if_free(struct step *step, struct task *task);
/* Tries the tasks again that wait for a ConfigMap, Secret or claim, if one was written. */
void config_wake_waiters(struct step *step);

/* config.c */
/* Whether a ConfigMap or Secret that the task needs is missing. */
bool task_config_waits(struct step *step, struct task *task);

/* containers.c: takes an agent's report about a task's containers. */
void containers_take(struct step *step, struct task *task, const struct task_report *report);
/* Returns the restarts in place that count towards its backoffLimit, of its living pods and of `ended`
 * (NULL: none). */
uint64_t job_container_restarts(const struct job *job, const struct task *ended);
/* Called before a task runs again: keeps the sum of its containers' restarts in earlier runs. */
void task_forget_containers(struct task *task);
void containers_note(struct step *step, struct task *task, const struct task_report *report);
void task_set_ready(struct step *step, struct task *task, bool ready);

/* named.c: pods that name their machine */
/* Whether the gang waits and its machine is ready, so that it is judged before the step ends. */
bool gang_waits_named(const struct step *step, const struct gang *gang);
bool gang_some_wait_named(const struct step *step, const struct jobset *jobset);
void gang_mark_named(struct step *step); /* marks JobSets with such gangs */
void gang_judge_named(struct step *step, struct jobset *jobset); /* gives each gang its chips, or fails it */

/* gates.c */
void task_take_gates(struct task *task);     /* those of its template: it was just made */
void gang_look_at_gates(struct gang *gang);  /* its tasks are all there now */
bool gang_is_gated(const struct gang *gang); /* a living Pod of it has scheduling gates, or it is barred */
void gang_say_gated(const struct gang *gang, struct buf *why); /* names them */

/* bar.c: Pod Security levels, judged again when Pods are made */
void gang_judge(const struct job_store *store, struct gang *gang); /* it is new, or its namespace changed */
/* Says in Kubernetes' words why a gang is barred; false: it is not, or not any more. */
bool gang_say_barred(const struct job_store *store, struct gang *gang, struct buf *why);
void gangs_judge(struct job_store *store); /* all that wait, if a namespace has changed since */

/* priority.c */
/* Returns the priority of the Job's pods: of their PriorityClass, the cluster file's class, or their own. */
int32_t job_priority(const struct job_store *store, const struct cluster *cluster,
                     const struct rjob_spec *rjob);

/* form.c, gang.c */
bool gang_try(struct step *step, struct gang *gang);      /* places it, or sets its `why` */
void gang_form(struct step *step, struct jobset *jobset); /* makes gangs of PENDING tasks without one */
/* Makes a gang of one, behind all others in the queue. */
void gang_form_spare(struct step *step, struct task *task);
/* Gives the gang the rank that its spare has got. */
void gang_adopt_spare(struct step *step, struct gang *gang);
/* Takes the tasks after the first `count` out of a waiting gang: they are loose again. */
void gang_shrink(struct step *step, struct gang *gang, uint32_t count);
/* Places, at once, the gangs for which admission found places. */
void gang_place_admitted(struct step *step, struct jobset *jobset);
void gang_schedule(struct step *step); /* one pass over the queue */

/* members.c */
void gang_leave(struct task *task);                       /* takes the task out of its gang */
void gang_thin(struct gang *gang);                        /* drops the tasks that left */
/* Forgets what was found out for a waiting gang, which asks for other places now. */
void gang_judge_anew(struct gang *gang);
/* Brings the reasons up to date whose time has come. */
void gangs_say_due(struct step *step);
/* why.c: whether a refused gang says at once why it waits. */
bool gang_may_say_why(const struct step *step, const struct gang *gang);
/* Takes `why` over, which is empty then, as the gang's present reason; false: the gang said so before. */
bool gang_set_why(struct step *step, struct gang *gang, struct buf *why);
/* Stamp at which the gang's reason is looked at again; INT64_MAX: it is up to date. */
int64_t gang_why_due_ns(const struct gang *gang);
/* The reason is looked at again when the window is over; gang_why_is_said: it was. */
void gang_say_why_later(struct step *step, struct gang *gang);
void gang_why_is_said(struct step *step, struct gang *gang);
/* The gang has left the queue. */
void gang_waits_no_more(struct step *step, struct gang *gang);
/* Moves a PLACED gang to RUNNING if every remaining task already runs. */
void gang_go_on(struct step *step, struct gang *gang);
void gang_task_started(struct step *step, struct task *task);
void gang_task_parked(struct step *step, struct task *task); /* it waits to run again */
void gang_task_ended(struct step *step, struct task *task);
/* Takes back the places of a placed gang of which no task was told to start. */
void gang_unplace(struct step *step, struct gang *gang);

/* slice.c */
struct slice_place;
struct slice_shape;
/* Whether the JobSet asks for a slice, by its annotation phalanx.dev/slice. */
bool jobset_wants_slice(const struct jobset *jobset, struct slice_shape *ret_shape);
/* Called when its gang was just placed on `place`: the cross-connects are made. */
void slice_gang_placed(struct step *step, struct gang *gang, const struct slice_place *place);
/* Tells the task's agent by which tables its slice is routed, if it has one: after each order to start it. */
void slice_tell_tables(struct step *step, const struct task *task);
/* The same of all living tasks of a machine whose agent is back. */
void jobs_tell_tables(struct step *step, const struct machine *machine);
/* Whether the task's slice is not connected yet. */
bool slice_start_waits(const struct step *step, const struct task *task);

/* preflight.c */
struct preflight;
void preflight_begin(struct step *step, struct gang *gang); /* called when it was just placed */
/* Moves on the gangs that wait for no further test. */
void preflight_settle(struct step *step);
/* Ends the preflight of a gang that gives its places back. */
void preflight_drop(struct step *step, struct gang *gang);
void preflight_free(struct preflight *preflight);           /* NULL: nothing */
void preflight_remap(struct job_store *store, const machine_id *map); /* after tasks were */

/* records.c */
/* Whether this fault belongs to the restart that is under way. `culprit` NULL: no. */
bool progress_same_incident(const struct step *step, const struct jobset *jobset, const struct task *culprit);
struct restart_record *restart_newest(struct jobset *jobset); /* NULL: there was no restart */
/* Renumbers the newest restart record after its attempt got another number. */
void progress_follow(struct jobset *jobset);
void restart_record_done(struct restart_record *record);
/* Copies as much of the text as fits, with a NUL. */
void restart_copy_text(char *to, size_t size, struct str from);
/* Writes the ladder's answer into the newest record; `passed` is copied. */
void progress_decided(struct jobset *jobset, enum rung rung, struct str passed);
void progress_suspect(struct jobset *jobset, machine_id machine); /* later gangs avoid it if they can */

/* restart.c */
/* A fault ends an attempt, or one job of it: what was not kept is lost, and the record of restart
 * `attempt` begins. `culprit` NULL: `cause` says. */
void progress_restart(struct step *step, struct jobset *jobset, int32_t attempt, const char *cause,
                      const struct task *culprit);
void progress_suspended(struct step *step, struct jobset *jobset);

/* usage.c */
/* Progress since the last checkpoint before the suspension is lost. */
void progress_resumed(struct step *step, struct jobset *jobset);
void progress_running(struct step *step, struct gang *gang);               /* every task of the gang runs */
void progress_settle(struct step *step, struct jobset *jobset, bool kept); /* the JobSet is finished */
/* Books everything since the last checkpoint as lost, in every gang; returns its chip-microseconds. */
int64_t usage_lose(struct step *step, struct jobset *jobset);
/* Every rank has made step `at` (-1: they report none), so the rung that was under way has helped. Its time
 * limit ends with it, which moves the JobSet's timer. */
void usage_rung_helped(struct step *step, struct jobset *jobset, int64_t at);
/* Books so many of them back: ranks still held their work in memory. */
void usage_regain(struct step *step, struct jobset *jobset, int64_t chip_us);
/* Gives the chips that are held now another owner. */
void usage_book(struct step *step, struct jobset *jobset, enum ledger_owner owner);

/* progress.c */
void progress_joined(struct step *step, struct task *task, const struct task_report *report);
void progress_shard_saved(struct step *step, struct task *task, int64_t number);

/* suspect.c: checks whether the machine of a task that ended an attempt also ends those of other jobs. */
void suspect_blame(struct step *step, const struct jobset *jobset, const struct task *culprit);

/* unjoined.c: processes that do not join though their peers have. */
void unjoined_note_join(struct step *step, struct jobset *jobset);  /* a rank has joined */
int64_t unjoined_deadline(const struct jobset *jobset);             /* INT64_MAX: none */
void unjoined_look(struct step *step, struct jobset *jobset);       /* called at that deadline */
/* This rank is about to give up waiting and end. */
void unjoined_given_up(struct step *step, const struct task *task);

/* ends.c */
/* Takes the signatures of a task that has ended, before the end is counted. `report` has them; NULL: the
 * signature is of `kind`, with the task's message as its line. */
void ends_take(struct step *step, const struct task *task, const struct task_report *report,
               enum signature_kind kind);
/* Records that a user's order on the machine ends a task now, however long ago the order was given. */
void ends_confirm_order(struct jobset *jobset, struct str machine, int64_t now_ns);
/* Moves the collected signatures into this record, and tells users the cause. */
void ends_give(struct step *step, struct jobset *jobset, struct restart_record *record);

/* move.c */
/* Checks whether the JobSet can leave now, or has to stay. */
void move_look(struct step *step, struct jobset *jobset);
int64_t move_deadline(const struct jobset *jobset); /* INT64_MAX: none */
void move_remap(struct jobset *jobset, const machine_id *map);

/* suspend.c */
/* Ends the tasks of a suspended JobSet, and the wait for their last save. */
void jobset_stop(struct step *step, struct jobset *jobset);
/* Called when its user has just suspended it. */
void suspend_begin(struct step *step, struct jobset *jobset);
/* False: it is to be stopped now. */
bool suspend_waits(const struct step *step, const struct jobset *jobset);
/* Whether its ranks can be asked to save, and are likely to do so. */
bool suspend_is_worth_it(const struct jobset *jobset);
int64_t suspend_deadline(const struct jobset *jobset); /* INT64_MAX: none */

/* peers.c */
void peers_report_gone(struct step *step, struct task *reporter, uint32_t rank);

/* store.c */
void store_add_jobset(struct job_store *store, struct jobset *jobset);
void store_count_naming(struct job_store *store, struct jobset *jobset);  /* its spec is another */
void store_remove_jobset(struct job_store *store, struct jobset *jobset); /* from the indexes */
/* Hides it from users, who still see its Jobs (of a Job without a JobSet: its pods). */
void store_hide_jobset(struct job_store *store, struct jobset *jobset);
void store_add_job(struct job_store *store, struct job *job);
void store_hide_job(struct job_store *store, struct job *job); /* frees its name */
void store_add_task(struct job_store *store, struct task *task);
void store_free_gang(struct gang *gang);

#endif
