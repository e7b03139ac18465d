/* internal.h - functions shared by the files of recover/ only. recover.h lists the files. Deadlines are
 * stamps, and INT64_MAX if there is none. */
#ifndef PHX_CORE_RECOVER_INTERNAL_H
#define PHX_CORE_RECOVER_INTERNAL_H

#include "core/life/acts.h"
#include "core/recover/ask.h"
#include "core/recover/recover.h"

/* timers.c */
void jobset_set_timer(struct job_store *store, struct jobset *jobset);

/* make.c */
/* Returns whether a Job has to be made, now or at attempt_due(). */
bool jobset_wants_jobs(const struct jobset *jobset);
/* Makes the Jobs that may exist now. Returns whether it made one. */
bool jobset_make_jobs(struct step *step, struct jobset *jobset);

/* attempt.c: applies the failure policy to the JobSet's failed Jobs. Returns whether it acted. */
bool attempt_failure_policy(struct step *step, struct jobset *jobset);

/* outage.c */
/* Returns whether an outage of the controller explains the end in this report, or, if `report` is NULL, the
 * end of a lost machine's task. */
bool outage_explains(const struct step *step, const struct task_report *report);
void outage_ends(struct step *step, struct task *task); /* called before such a task ends */

/* catch_up.c */
/* Note that a machine knows newer attempts than the log, which was restored from a backup. */
void catch_up_note(struct step *step, struct task *task, const struct task_report *report);
void catch_up_hello(struct step *step, const struct machine *machine, const struct hello *hello);
/* Ends the task without a loss if its JobSet begins again after such an attempt in this step. Returns false
 * if it does not. */
bool catch_up_ends(struct step *step, struct task *task);
/* Begins the attempt after the newest of these attempts, with new tasks. Returns false if there is none. */
bool catch_up(struct step *step, struct jobset *jobset);

/* backoff.c */
/* Sets the wait that attempt_due() returns. Called when the failure policy restarts the JobSet, or a Job of
 * it, because of the end of `culprit` (NULL: no task's). */
void backoff_begin(const struct step *step, struct jobset *jobset, const struct task *culprit);
/* Returns the stamp before which no Job is made: the guard against crash loops. */
int64_t attempt_due(const struct jobset *jobset);

/* inplace_begin.c */
/* Begins a restart in place after `culprit` failed or was lost, unless one is being prepared: ends the
 * JobSet's tasks, to run again. With `recovery` (may be NULL), processes that can rejoin are kept. */
void inplace_begin(struct step *step, struct jobset *jobset, struct task *culprit,
                   const struct recovery *recovery);
/* Begins a planned change of membership, without a loss: processes that can rejoin do so after their step,
 * the others are started again. Users read `cause` and `why`. */
void inplace_begin_planned(struct step *step, struct jobset *jobset, const char *cause, const char *why);
/* Answers a rank's request that all ranks return to the state they hold, as a new attempt, though none is
 * lost. If that is not allowed, the asking process is stopped and counts as failed. */
void inplace_retry(struct step *step, struct task *asker, struct str why);
/* Begins the next attempt although no task has ended, or gives the JobSet up. `all_live`: the ranks lost
 * their connections to each other; otherwise some did not rejoin. Users read `cause` and `why`. */
void inplace_go_on_without_loss(struct step *step, struct jobset *jobset, const char *cause, bool all_live,
                                struct str why);

/* inplace.c */
/* Moves a dead task to PLACED, where it waits for the next attempt with its chips. */
void inplace_park(struct step *step, struct task *task);
/* Advances a restart in place: runs the tasks again when all are parked, or gives up at a deadline. */
void inplace_go_on(struct step *step, struct jobset *jobset);
int64_t inplace_deadline(const struct jobset *jobset);

/* state.c */
void inplace_cancel(struct jobset *jobset); /* ends the preparation of a restart, if one is under way */
void inplace_end(struct jobset *jobset, enum recovery_state to); /* ends it, and moves it to this state */
/* Called when another restart begins. Ends a dying checkpoint; returns whether one had ended already, which
 * then belongs to that restart. */
bool inplace_forget_dump(struct jobset *jobset);
void inplace_forget_keepers(struct jobset *jobset); /* ends the wait for processes that rejoin */
/* Raises the attempt without a restart, so that later tasks never meet tasks that still run under the present
 * number, or learn of it late. */
void inplace_retire(const struct step *step, struct jobset *jobset);
/* Sets the attempt, which must be above the present one, and the epoch in which it began. */
void attempt_raise(const struct step *step, struct jobset *jobset, int32_t attempt);
/* Returns whether a restart in place that was given up left some tasks parked or in an earlier attempt. */
bool inplace_left_some(const struct jobset *jobset);
/* Returns whether the task waits for an attempt that never begins if its restart in place is given up. */
bool inplace_is_left(const struct task *task);
void unjoined_forget(struct jobset *jobset); /* ends the wait for joins, when another attempt begins */
void move_end(struct jobset *jobset);        /* ends the move that is under way, if any */

/* means.c */
/* Returns why the survivors of a loss cannot save the state of all ranks, or NULL if they can. */
const char *dump_lacks(const struct step *step, const struct jobset *jobset);
/* Returns why the JobSet cannot continue with `away` absent replicas, as the end of a sentence, or NULL if it
 * can. */
const char *shrink_lacks(const struct jobset *jobset, size_t away);
/* Returns whether the task holds the state of a rank. A spare that got a rank but has not joined with it yet
 * holds none. */
bool dump_has_state(const struct task *task);

/* dump.c */
/* Begins a dying checkpoint. `culprit` is NULL if places have been missing for too long. */
void dump_begin(struct step *step, struct jobset *jobset, struct task *culprit,
                const struct recovery *recovery);
void dump_lost(struct step *step, struct task *task); /* called when this task has ended during the dump */
/* Tells the members to save, and ends the dump when all have saved, none is left or its time has expired. */
void dump_go_on(struct step *step, struct jobset *jobset);

/* rejoin.c */
/* Keeps the running processes that can rejoin, and stops the rest, except `culprit` (may be NULL). */
void rejoin_keep_or_stop(struct step *step, struct jobset *jobset, const struct task *culprit);
void rejoin_tell(struct step *step, struct jobset *jobset); /* tells the keepers that the attempt has begun */
void rejoin_tell_one(struct step *step, struct task *task); /* tells this keeper */
/* Returns whether the report is not about the task's present attempt, or is not a join while the task is
 * still to join that attempt. */
bool rejoin_is_old_word(const struct task *task, const struct task_report *report);
/* Repeats Rejoin if the report shows that the task's process is in an older attempt. */
void rejoin_say_again(struct step *step, const struct task *task, const struct task_report *report);
/* Notes that `reporter` lost its connection to a living rank. If neither a loss nor a step follows soon, a
 * new attempt begins. */
void rejoin_note_apart(struct step *step, const struct task *reporter);
/* Called when every rank has made a step: no new attempt is needed for lost connections. */
void rejoin_note_step(struct step *step, struct jobset *jobset);
/* Returns the stamp at which the next two functions have to be called. */
int64_t rejoin_deadline(const struct jobset *jobset);
/* Returns whether some keepers that were told did not join in time. They are no longer keepers, and the
 * caller ends them. */
bool rejoin_is_late(const struct step *step, struct jobset *jobset);
/* Returns whether living ranks have been disconnected for too long, and all their machines are READY. */
bool rejoin_is_apart(const struct step *step, struct jobset *jobset);

/* shrink.c */
/* Returns whether the whole JobSet, which is to run again, can do so now: complete, or without its incomplete
 * replicas, which it then makes absent. */
bool shrink_settle(struct step *step, struct jobset *jobset);
int64_t shrink_deadline(const struct jobset *jobset);
/* Begins the return of absent replicas that are complete, when it is due. */
void shrink_look(struct step *step, struct jobset *jobset);
/* Moves the tasks of each absent replica to separate gangs. */
void shrink_divide(struct step *step, struct jobset *jobset);
/* Ends the absent replicas of an orphaned Job once a rank that took part has ended. Such a Job makes no
 * ranks, so the replicas would never return. */
void shrink_part(struct step *step, struct job *job);
/* Called when a rank succeeds: the Jobs may then complete without the absent replicas. */
void shrink_some_through(struct jobset *jobset);

/* restart.c */
/* Called when a fault ends an attempt, or one Job of it: books unsaved work as lost, and begins the record of
 * restart `attempt`. `cause` is used if `culprit` is NULL. */
void restart_begin(struct step *step, struct jobset *jobset, int32_t attempt, const char *cause,
                   const struct task *culprit);

/* progress.c: take reports of joins and of saved shards (`number`: their step). */
void progress_joined(struct step *step, struct task *task, const struct task_report *report);
void progress_shard_saved(struct step *step, struct task *task, int64_t number);

/* suspect.c: checks whether the machine of a task that ended an attempt also ends those of other jobs. */
void suspect_blame(struct step *step, const struct jobset *jobset, const struct task *culprit);

/* unjoined.c: processes that do not join though their peers have. */
void unjoined_note_join(struct step *step, struct jobset *jobset); /* called when a rank has joined */
int64_t unjoined_deadline(const struct jobset *jobset);
void unjoined_look(struct step *step, struct jobset *jobset); /* called at that deadline */
/* Called when a rank's process has failed, perhaps because it gave up waiting: blames late peers, if any. */
void unjoined_given_up(struct step *step, const struct task *task);

/* move.c */
/* Advances a move: checks whether the JobSet can leave now, or has to stay. */
void move_look(struct step *step, struct jobset *jobset);
int64_t move_deadline(const struct jobset *jobset);

/* suspend.c */
/* Suspends the Jobs of a suspended JobSet, and ends the wait for a last save. */
void suspend_stop(struct step *step, struct jobset *jobset);
/* Returns whether the JobSet still waits for its last save; otherwise it is to be stopped now. */
bool suspend_waits(const struct step *step, const struct jobset *jobset);
/* Returns whether the JobSet's ranks can be asked to save, and are likely to do so. */
bool suspend_is_worth_it(const struct jobset *jobset);
int64_t suspend_deadline(const struct jobset *jobset);

/* peers.c: takes a rank's report that it lost its connection to another rank. */
void peers_report_gone(struct step *step, struct task *reporter, uint32_t rank);

/* decide.c */
/* Judges each loss with the state at the end of the step: whether the ladder may answer it, whether its
 * signature explains the others, its cause and place. */
void incident_judge(const struct step *step, struct incident *incident);
/* Answers the losses that were noted since the last call, if any: parks tasks, ends them, begins attempts,
 * fails Jobs. Called while the JobSet is reconciled, before its Jobs are. */
void incident_answer(struct step *step, struct jobset *jobset);
/* Emits the orders to start that the answered ends made due, and repeats lost ones. Called after the JobSet
 * was reconciled. A task that was stopped before its lost order was repeated has no process: it ends here,
 * and the JobSet is reconciled again. */
void incident_start(struct step *step, struct jobset *jobset);

#endif
