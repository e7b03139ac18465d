/* internal.h - functions shared by the files of the recover module. recover.h lists the files. */
#ifndef PHX_CORE_RECOVER_INTERNAL_H
#define PHX_CORE_RECOVER_INTERNAL_H

#include "core/life/acts.h"
#include "core/recover/ask.h"
#include "core/recover/recover.h"

/* timers.c */
void jobset_set_timer(struct job_store *store, struct jobset *jobset);

/* make.c */
/* Whether a Job has to be made, now or at attempt_due(). */
bool jobset_wants_jobs(const struct jobset *jobset);
/* Makes the Jobs that may exist now. True: a Job was made. */
bool jobset_make_jobs(struct step *step, struct jobset *jobset);

/* attempt.c */
bool attempt_failure_policy(struct step *step, struct jobset *jobset); /* true: the policy acted */

/* outage.c */
/* Whether an outage of the controller explains the end in this report (NULL: the end of a lost machine's
 * task). */
bool outage_explains(const struct step *step, const struct task_report *report);
void outage_ends(struct step *step, struct task *task); /* called before such a task ends */

/* catch_up.c: notes that machines know newer attempts than the log, which was restored from a backup. */
void catch_up_note(struct step *step, struct task *task, const struct task_report *report);
void catch_up_hello(struct step *step, const struct machine *machine, const struct hello *hello);
/* Ends the task without a loss if its JobSet goes on behind such an attempt in this step, with all tasks made
 * anew. False: it does not. */
bool catch_up_ends(struct step *step, struct task *task);
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

/* state.c */
void inplace_cancel(struct jobset *jobset);                      /* ends the preparation of a restart */
void inplace_end(struct jobset *jobset, enum recovery_state to); /* likewise, and leaves it in this state */
/* Another restart begins. The first ends a dying checkpoint (true: one is over, and belongs to that restart),
 * the second the wait for processes that rejoin. */
bool inplace_forget_dump(struct jobset *jobset);
void inplace_forget_keepers(struct jobset *jobset);
/* Numbers later attempts anew, so that later tasks never meet tasks that still run under the present
 * number or hear of it late. */
void inplace_retire(const struct step *step, struct jobset *jobset);
/* The attempt has this number from now on, which is above the present one. */
void attempt_raise(const struct step *step, struct jobset *jobset, int32_t attempt);
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
void dump_lost(struct step *step, struct task *task); /* called when this task ends during the dump */
/* Tells the members, and ends the dump when it is over. */
void dump_go_on(struct step *step, struct jobset *jobset);

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

/* restart.c */
/* A fault ends an attempt, or one job of it: what was not kept is lost, and the record of restart
 * `attempt` begins. `culprit` NULL: `cause` says. */
void restart_begin(struct step *step, struct jobset *jobset, int32_t attempt, const char *cause,
                   const struct task *culprit);

/* progress.c */
void progress_joined(struct step *step, struct task *task, const struct task_report *report);
void progress_shard_saved(struct step *step, struct task *task, int64_t number);

/* suspect.c: checks whether the machine of a task that ended an attempt also ends those of other jobs. */
void suspect_blame(struct step *step, const struct jobset *jobset, const struct task *culprit);

/* unjoined.c: processes that do not join though their peers have. */
void unjoined_note_join(struct step *step, struct jobset *jobset); /* a rank has joined */
int64_t unjoined_deadline(const struct jobset *jobset);            /* INT64_MAX: none */
void unjoined_look(struct step *step, struct jobset *jobset);      /* called at that deadline */
/* The rank is about to give up waiting and end. */
void unjoined_given_up(struct step *step, const struct task *task);

/* move.c */
/* Checks whether the JobSet can leave now, or has to stay. */
void move_look(struct step *step, struct jobset *jobset);
int64_t move_deadline(const struct jobset *jobset); /* INT64_MAX: none */

/* suspend.c */
/* Ends the tasks of a suspended JobSet, and the wait for their last save. */
void suspend_stop(struct step *step, struct jobset *jobset);
/* False: it is to be stopped now. */
bool suspend_waits(const struct step *step, const struct jobset *jobset);
/* Whether its ranks can be asked to save, and are likely to do so. */
bool suspend_is_worth_it(const struct jobset *jobset);
int64_t suspend_deadline(const struct jobset *jobset); /* INT64_MAX: none */

/* peers.c */
void peers_report_gone(struct step *step, struct task *reporter, uint32_t rank);

/* decide.c */
/* Judges each loss with all that is known at the end of the step: whether the ladder may answer it, whether
 * its signature explains the others, its cause and place. */
void incident_judge(const struct step *step, struct incident *incident);
/* Answers the losses that were noted since the last call, if any: parks tasks, ends them, begins attempts,
 * fails Jobs. Called while the JobSet is reconciled, before its Jobs are. */
void incident_answer(struct step *step, struct jobset *jobset);
/* Gives the orders to start that the answered ends made due, and those that were lost. Called after the
 * JobSet was reconciled: a task that the answer or a new attempt has stopped gets none. It has no process and
 * ends here, and the JobSet is reconciled again. */
void incident_start(struct step *step, struct jobset *jobset);

#endif
