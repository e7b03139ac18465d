/* recover.h - what answers losses and planned changes of JobSets, and moves JobSets on from one settled state
 * to the next. The JobSets themselves, with their Jobs, tasks and gangs, are core/job's; how rungs are chosen
 * is core/ladder's.
 *
 *     jobs_reports(step, machine, reports);      // as events arrive: ends are noted, nothing is decided
 *     jobs_settle(step);                         // last: every marked JobSet is moved on, as a whole
 *
 *   reconcile.c    moves marked JobSets on: losses, Jobs, success, suspension, deletion, TTL
 *   make.c         the Jobs of an attempt; timers.c: when a JobSet has to be looked at again
 *   decide.c       the answer to all losses of one step
 *   ask.c          the questions to the ladder; means.c: why a rung cannot be carried out
 *   attempt.c      restart numbers: failure policy, ending an attempt, beginning the next
 *   backoff.c      how long a workload that crashes is held back
 *   state.c        how a recovery ends
 *   restart.c      an attempt ends: its record begins, and what was not kept is lost
 *   suspect.c      machines that end attempts of different jobs
 *   The paths of a recovery (ladder/plan.h has the states):
 *   inplace.c      all tasks of a JobSet run again where they are; inplace_begin.c: its begin
 *   rejoin.c       processes that survive a restart in place and join the next attempt
 *   shrink.c       replicas that leave for lack of machines, and come back
 *   dump.c         a dying checkpoint by the survivors, before the JobSet runs again
 *   move.c         a JobSet leaves an unhealthy machine
 *   suspend.c      a last checkpoint before a suspension
 *   Reports about tasks:
 *   reports.c      what agents say about their tasks
 *   progress.c     joins, steps, checkpoints
 *   peers.c        reports of ranks about each other
 *   unjoined.c     processes that do not join though their peers have
 *   outage.c       an absence of the controller that ended all tasks
 *   catch_up.c     machines that know newer attempts than a restored log
 *   hearing.c      nothing starts from a restored log before every machine was heard
 *
 * Every function here changes state through the step and marks the JobSets it touched; jobs_settle() then
 * reconciles them, once a step: it takes each marked JobSet as a whole and moves it on until nothing changes
 * (level-triggered, so a missed edge cannot wedge a job).
 */
#ifndef PHX_CORE_RECOVER_RECOVER_H
#define PHX_CORE_RECOVER_RECOVER_H

#include "core/life/life.h"

/* --- what is heard ---------------------------------------------------------------------------- */

/* An agent said hello: compares its inventory with the expected one. The machine is READY already. */
void jobs_machine_hello(struct step *step, struct machine *machine, const struct hello *hello);
/* Every process on the machine is dead. */
void jobs_machine_lost(struct step *step, struct machine *machine, struct str evidence);
void jobs_reports(struct step *step, struct machine *machine, const struct reports *reports);
void jobs_progress(struct step *step, const struct progress_event *progress);
void jobs_tick(struct step *step);

/* Whether the machine is lost: its agent is away, and peers have lost every task that may live there. */
bool jobs_peers_say_lost(const struct job_store *store, const struct machine *machine);

/* --- a restored log (hearing.c) --------------------------------------------------------------- */

/* The log may lack its newest part, in which tasks were started anywhere: from now on none is started. */
void hearing_begin(struct step *step);
/* An agent has named a living task that this log does not know, or one that the lost part has told of a newer
 * attempt, and is told to stop it; or has said that a task has ended. */
void hearing_stranger(struct step *step, obj_id task);
void hearing_ended(struct step *step, obj_id task);
/* Starts what waits once every machine has been heard and all strangers have ended, or in time. Called when
 * that may be. */
void hearing_look(struct step *step);
/* Gives, or repeats, the orders to start that the JobSet's tasks wait for: nothing of the lost part stands in
 * their way any more. While machines are yet to be heard, that is said later. */
void hearing_start(struct step *step, struct jobset *jobset);
/* The stamp at which a tick is wanted for it and for JobSets (`jobs_ns`), which may be overdue meanwhile. */
int64_t hearing_deadline(const struct hearing *hearing, int64_t now_ns, int64_t jobs_ns);

/* --- writes and orders ------------------------------------------------------------------------ */

/* Sets a new generation of the document; the arena is taken over as well. Does nothing if the content is
 * the same. */
void jobset_replace(struct step *step, struct jobset *jobset, struct arena *arena, struct doc *document,
                    const struct jobset_spec *spec);
/* Evicts the task from a cordoned machine: its JobSet leaves the machine when its ranks have saved, at the
 * latest after `grace_s` (-1: the longest grace among them). False: a save is not worth waiting for. */
bool jobs_drain(struct step *step, const struct task *task, int64_t grace_s);
bool jobs_are_drained(const struct task *task); /* a drain is under way */
/* The task ended by itself while it was drained, saved or not: its JobSet leaves the machine at once, and the
 * task counts as evicted. Nothing happens to other tasks. */
void jobs_drained_ended(struct step *step, struct task *task);
/* Called when a machine of the JobSet is unhealthy: the JobSet leaves it or stays, as its policy says.
 * Users read `why`. */
void jobs_move(struct step *step, const struct machine *machine, struct jobset *jobset, struct str why);
/* Called when the machine is needed for something else later: begins to replace the ranks of JobSets that
 * can be moved rank by rank, to processes that are started elsewhere first. */
void jobs_replace(struct step *step, const struct machine *machine, struct str why);
/* Whether a save that the ranks made after their notice at `noticed_ns` is committed (suspend.c): their
 * present step, and not a step that was already on its way to storage. */
bool jobset_has_answered(const struct jobset *jobset, int64_t noticed_ns);

/* --- settling --------------------------------------------------------------------------------- */

/* Reconciles the marked JobSets, and runs the scheduler if there is reason to. Last in a step. */
void jobs_settle(struct step *step);
int64_t jobs_deadline(const struct job_store *store); /* INT64_MAX: none */
/* Checks that the timers of all JobSets, Jobs and gangs are those that their states ask for: a restored store
 * has no others. Aborts through CHECK; linear. */
void jobs_check_timers(const struct job_store *store);
/* Called when a snapshot was restored, after jobs_restored(). */
void jobs_set_timers(struct job_store *store);
void shrink_check(const struct jobset *jobset); /* aborts through CHECK */
/* Called after a snapshot was restored. False: it does not fit. */
bool shrink_restored(const struct jobset *jobset);

#endif
