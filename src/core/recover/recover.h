/* recover.h - recovery: answers to losses and planned changes of JobSets, and the reconciliation of JobSets.
 * core/job has the JobSets themselves, with their Jobs, tasks and gangs; core/ladder chooses the rungs.
 *
 *     jobs_reports(step, machine, reports);      // as events arrive: ends are noted, nothing is decided
 *     jobs_settle(step);                         // last: every marked JobSet is reconciled as a whole
 *
 *   reconcile.c    reconciles marked JobSets: losses, Jobs, success, suspension, deletion, TTL
 *   make.c         the Jobs of an attempt; timers.c: the deadlines of a JobSet
 *   decide.c       the answer to all losses of one step
 *   ask.c          the questions to the ladder; means.c: why a rung cannot be carried out
 *   attempt.c      restart numbers: failure policy, ending an attempt, beginning the next
 *   backoff.c      the wait of a workload that crashes repeatedly
 *   state.c        the end of a recovery
 *   restart.c      the end of an attempt: its record, and the loss of unsaved work
 *   suspect.c      machines that end attempts of different jobs
 *   The paths of a recovery (ladder/plan.h has the states):
 *   inplace.c      all tasks of a JobSet run again where they are; inplace_begin.c: its begin
 *   rejoin.c       processes that survive a restart in place and join the next attempt
 *   shrink.c       replicas that leave for lack of machines, and return
 *   dump.c         a dying checkpoint by the survivors, before the JobSet runs again
 *   move.c         a JobSet leaves an unhealthy machine
 *   suspend.c      a last checkpoint before a suspension
 *   Reports about tasks:
 *   reports.c      agents' reports about their tasks
 *   progress.c     joins, steps, checkpoints
 *   peers.c        reports of ranks about each other
 *   unjoined.c     processes that do not join though their peers have
 *   outage.c       an absence of the controller that ended all tasks
 *   catch_up.c     machines that know newer attempts than a restored log
 *   hearing.c      the wait for all machines before tasks start from a restored log
 *
 * Functions that take a step change state through it and mark the JobSets that they touch. jobs_settle()
 * reconciles these at the end of the step: each marked JobSet as a whole, until nothing changes. It is
 * level-triggered, so a missed edge cannot wedge a job.
 */
#ifndef PHX_CORE_RECOVER_RECOVER_H
#define PHX_CORE_RECOVER_RECOVER_H

#include "core/life/life.h"

/* --- events -------------------------------------------------------------------------------------- */

/* Applies an agent's hello: compares its inventory with the expected one. The machine must be READY. */
void jobs_machine_hello(struct step *step, struct machine *machine, const struct hello *hello);
/* Ends all tasks on a LOST machine, on which every process is dead. */
void jobs_machine_lost(struct step *step, struct machine *machine, struct str evidence);
void jobs_reports(struct step *step, struct machine *machine, const struct reports *reports);
void jobs_progress(struct step *step, const struct progress_event *progress);
/* Marks the JobSets whose timers are due, and updates reasons of waiting gangs that are due. */
void jobs_tick(struct step *step);

/* Returns whether the machine is lost: its agent is away, and peers have reported every task that may live
 * there gone. */
bool jobs_peers_say_lost(const struct job_store *store, const struct machine *machine);

/* --- a restored log (hearing.c) --------------------------------------------------------------- */

/* Begins the wait for all machines after the log was restored. In the log's lost part tasks may have started
 * anywhere, so no task starts during the wait. */
void hearing_begin(struct step *step);
/* Notes a living task that an agent has named and is told to stop: this log does not know the task, or the
 * lost part has told it of a newer attempt. hearing_ended notes that an agent has reported its end. */
void hearing_stranger(struct step *step, obj_id task);
void hearing_ended(struct step *step, obj_id task);
/* Ends the wait once every machine has been heard and all strangers have ended, or at its deadline, and
 * starts the tasks that are due. Called whenever that may be the case. */
void hearing_look(struct step *step);
/* Emits, or repeats, the orders to start for the JobSet's tasks, because no task of the lost part is in their
 * way any more. Does nothing but mark the JobSet while the wait lasts. */
void hearing_start(struct step *step, struct jobset *jobset);
/* Returns the stamp at which a tick is due for the wait and for JobSets. `jobs_ns` is jobs_deadline(), which
 * may stay overdue during the wait and then gives a tick only now and then. */
int64_t hearing_deadline(const struct hearing *hearing, int64_t now_ns, int64_t jobs_ns);

/* --- writes and orders ------------------------------------------------------------------------ */

/* Replaces the JobSet's document, and takes over the arena in which it lives with `spec`. Does nothing if the
 * content is the same. A suspension begins with a last save, if one is likely. */
void jobset_replace(struct step *step, struct jobset *jobset, struct arena *arena, struct doc *document,
                    const struct jobset_spec *spec);
/* Evicts the task from a cordoned machine after a save: its JobSet leaves the machine when the ranks have
 * saved, at the latest after `grace_s` seconds (-1: the longest grace among them). Returns false if a save is
 * impossible or not worth waiting for; the caller then evicts the task itself. */
bool jobs_drain(struct step *step, const struct task *task, int64_t grace_s);
bool jobs_are_drained(const struct task *task); /* the JobSet waits for a save to leave the task's machine */
/* Called when the task's process has ended: if it was being drained, saved or not, its JobSet leaves the
 * machine at once, and the task counts as evicted. */
void jobs_drained_ended(struct step *step, struct task *task);
/* Called when a machine of the JobSet is unhealthy: the JobSet leaves it or stays, by its policy. Users read
 * `why`. */
void jobs_move(struct step *step, const struct machine *machine, struct jobset *jobset, struct str why);
/* Called when the machine will be needed for something else: begins to move JobSets that can move by spares,
 * whose replacement processes start elsewhere first. */
void jobs_replace(struct step *step, const struct machine *machine, struct str why);
/* Returns whether a checkpoint that the ranks made after their notice at `noticed_ns` is committed
 * (suspend.c). It must be of their present step if they wait after the save; an older one was already on its
 * way to storage. */
bool jobset_has_answered(const struct jobset *jobset, int64_t noticed_ns);

/* --- settling --------------------------------------------------------------------------------- */

/* Reconciles the marked JobSets, and runs the scheduler if the queue or free capacity changed. Called last in
 * a step, repeatedly. */
void jobs_settle(struct step *step);
int64_t jobs_deadline(const struct job_store *store); /* stamp of the next timer; INT64_MAX: none */
/* Checks that the timers of all JobSets, Jobs and gangs are those that their states require, as in a restored
 * store. Aborts through CHECK; linear. */
void jobs_check_timers(const struct job_store *store);
/* Sets all timers, after a snapshot was restored (jobs_restored()). */
void jobs_set_timers(struct job_store *store);
void shrink_check(const struct jobset *jobset); /* checks its absent replicas; aborts through CHECK */
/* Returns whether the absent replicas of a JobSet from a snapshot are valid. */
bool shrink_restored(const struct jobset *jobset);

#endif
