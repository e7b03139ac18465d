/* gang.h - gangs: forming, the queue, placement, tests, start and end, and the accounts of their chips.
 *
 * A gang waits in the queue and gets all its chips at once or none. Its tasks are told to start when every
 * preparation is complete: slices are connected, tests of its machines have ended, the objects that its Pods
 * need exist, older processes of the same names are dead.
 *
 *   form.c         the division of tasks into gangs
 *   gang.c         the queue, and the allocation of chips
 *   members.c      which tasks of a gang run, wait, leave or end
 *   gates.c        scheduling gates, which hold a gang before it is placed
 *   bar.c          Pod Security levels, judged again for each gang that waits
 *   why.c          the reason why a gang waits, in numbers
 *   request.c      requests to the scheduler: for a gang, or for a JobSet on trial
 *   trial.c        trial placement of a JobSet; terms of admission; terms.c: their additions to Pods
 *   reserve.c      the capacity that admission reserves for a JobSet
 *   slice.c        gangs that ask for a slice; slice_tables.c: the routing tables of their tasks
 *   preflight.c    tests of a gang's machines before it starts; preflight_pairs.c: in pairs
 *   config.c       ConfigMaps, Secrets and claims that a task needs
 *   start.c        the preparations that come before a placed task's start
 *   usage.c        the ledger's owner of a JobSet's chips while it starts, runs and restarts
 * trial.h has the questions that change nothing.
 *
 * Functions that take a step change state through it and mark the JobSets that they touch, which are
 * reconciled before the step ends.
 */
#ifndef PHX_CORE_GANG_GANG_H
#define PHX_CORE_GANG_GANG_H

#include "core/gang/trial.h"
#include "core/job/facts.h"

/* --- forming ---------------------------------------------------------------------------------- */

void gang_form(struct step *step, struct jobset *jobset); /* makes gangs of PENDING tasks without one */
/* Makes a gang of one spare, with the lowest priority in the queue. */
void gang_form_spare(struct step *step, struct task *task);
/* Gives the gang of a spare that has taken a rank the rank's priority, queue age and owner of chips. */
void gang_adopt_spare(struct step *step, struct gang *gang);

/* --- the queue ---------------------------------------------------------------------------------- */

/* Places the JobSet's waiting gangs for which admission has found places, ahead of the rest of the queue. */
void gang_place_admitted(struct step *step, struct jobset *jobset);
void gang_schedule(struct step *step); /* makes one pass over the queue */
/* Places a QUEUED gang, which the caller removes from the queue; or sets its `why` and returns false. */
bool gang_try(struct step *step, struct gang *gang);
/* Discards the cached judgements of a waiting gang whose request has changed. */
void gang_judge_anew(struct gang *gang);
/* Moves a PLACED gang without preflight and without started tasks back to QUEUED; releases its places. */
void gang_unplace(struct step *step, struct gang *gang);
/* Sets `barred`: called for a new gang, and after a change of its namespace. */
void gang_judge(const struct job_store *store, struct gang *gang);
/* Sets `gated`: called when all tasks of a new gang have joined it. */
void gang_look_at_gates(struct gang *gang);
/* Returns whether the gang must not be placed: a living Pod of it has scheduling gates, or it is barred. */
bool gang_is_gated(const struct gang *gang);
/* Books a machine's free chips under the right owner after a change of its state (ready, cordoned, lost), and
 * marks the JobSets that have a spare there. `was_schedulable` is machine_schedulable() before the change. */
void machine_book(struct step *step, const struct machine *machine, bool was_schedulable);

/* --- why a gang waits ---------------------------------------------------------------------------- */

/* Updates the reasons that are due (why.c). */
void gangs_say_due(struct step *step);
/* Returns the stamp at which the gang's reason is worked out again, or INT64_MAX if it is current. */
int64_t gang_why_due_ns(const struct gang *gang);
/* Starts the timer of a gang with `why_due`, which ends at gang_why_due_ns(). */
void gang_restore_why_timer(struct job_store *store, struct gang *gang);
/* Lets every waiting gang change its reason at its next try, however often it did in this window. Two cores
 * that try at different moments can then be compared (core_is_settled). */
void jobs_let_gangs_say_why(struct job_store *store);

/* --- members ------------------------------------------------------------------------------------- */

void gang_leave(struct task *task); /* takes the task out of its gang, if it has one */
void gang_thin(struct gang *gang);  /* removes tasks that left from gang->tasks */
/* Moves a PLACED gang to RUNNING if every remaining task already runs. */
void gang_go_on(struct step *step, struct gang *gang);
/* Count a task of a gang that has begun to run, has ended, or was parked to run again in its place. */
void gang_task_started(struct step *step, struct task *task);
void gang_task_ended(struct step *step, struct task *task);
void gang_task_parked(struct step *step, struct task *task);

/* --- the start of a task ------------------------------------------------------------------------- */

/* Moves a PLACED task to STARTING and emits its START, unless a preparation is missing (the table in
 * start.c): a test of its machines, its slice's cross-connects, an object that its Pod needs, the end of an
 * older task of its name. Does nothing in other states. */
void task_start_if_free(struct step *step, struct task *task);
/* Walks the older Jobs of a place from *old, which begins as one of jobset->ending. Returns the next living
 * task with the index and moves *old past its Job, or returns NULL at the end of the walk. */
const struct task *next_elder(const struct job **old, int32_t index);
/* Retries the start of tasks that wait for a ConfigMap, Secret or claim, if one was written. */
void config_wake_waiters(struct step *step);

/* --- slices ---------------------------------------------------------------------------------------- */

struct slice_shape;
/* Returns whether the JobSet asks for a slice, by its annotation phalanx.dev/slice; then sets *ret_shape. */
bool jobset_wants_slice(const struct jobset *jobset, struct slice_shape *ret_shape);
/* Returns whether the task has a slice that is not connected, or whose switches are still to be read. */
bool slice_start_waits(const struct step *step, const struct task *task);
/* Sends the names of its slice's routing tables to the task's agent. Called after each order to start the
 * task. Does nothing if the JobSet has no slice, or the slice no tables. */
void slice_tell_tables(struct step *step, const struct task *task);
/* Calls slice_tell_tables for the starting and running tasks of a machine whose agent has reconnected. */
void jobs_tell_tables(struct step *step, const struct machine *machine);
/* Takes a report of the task's process about the tables of its chips. Ignores late and repeated reports. */
void slice_take_routes(struct step *step, struct task *task, const struct rank_routes *routes);
/* Called when the task's process has ended: its chips have no tables any more. */
void slice_rank_ended(struct step *step, struct task *task);
struct pod_now;
/* Calls slice_tell_tables for the JobSet's starting and running tasks, after a change of the tables. */
void jobs_slice_rerouted(struct step *step, const struct jobset *jobset);
/* Counts, for each switch of the pod that is being drained, the ranks whose tables may still use it. */
void jobs_count_switch_users(struct step *step, struct pod_now *pod);

/* --- preflight: errands of ERRAND_OF_PREFLIGHT ----------------------------------------------------- */

struct errand;
struct errand_end;
struct preflight;
/* Takes the end of a preflight errand. */
void preflight_errand_ended(struct step *step, const struct errand *errand, const struct errand_end *end);
/* Takes the next verdict about a failed machine; the caller owns its texts. Returns false if there is
 * none. */
bool preflight_next_verdict(struct step *step, struct preflight_verdict *ret);
/* Counts the machine as tested: called if it stays in service despite its verdict. */
void preflight_excuse(struct step *step, struct machine *machine);
/* Ends the preflights that include the machine, and requeues their gangs. Users read `why` in an Event. */
void preflight_leave(struct step *step, const struct machine *machine, struct str why);
/* Derives the lists after a snapshot and its errands were read. Returns false if they do not fit. */
bool preflight_restored(struct job_store *store, const struct cluster *cluster,
                        const struct errands *errands);
void preflight_check(const struct job_store *store, const struct cluster *cluster,
                     const struct errands *errands); /* aborts through CHECK */
/* Advances every preflight: begins tests, and starts gangs that wait for no further test. */
void preflight_settle(struct step *step);
/* Ends a gang's preflight, whatever its result; cancels tests in pairs. */
void preflight_drop(struct step *step, struct gang *gang);
void preflight_free(struct preflight *preflight);                     /* NULL is fine */
void preflight_remap(struct job_store *store, const machine_id *map); /* after tasks were remapped */

/* --- accounts of chips ------------------------------------------------------------------------------ */

/* Returns whether the cost of a restart is known, because the JobSet has checkpoints or reports absolute
 * steps. The cost is all work since the newest checkpoint, less the part that the first step after the
 * restart proves to be kept. It is unknown without steps, or with counted lines only. */
bool usage_knows_place(const struct jobset *jobset);
/* Books the progress between the last checkpoint and the suspension as lost. */
void usage_resumed(struct step *step, struct jobset *jobset);
/* Called when every rank has made step `at` (-1: they report no steps). Ends the ladder's rung that was under
 * way and its time limit, and marks the JobSet to move its timer. */
void usage_rung_helped(struct step *step, struct jobset *jobset, int64_t at);
/* Books the chips of gangs that make no steps yet under what they wait for: a machine, cross-connects, tests,
 * ending processes, the first step. Called when the JobSet was reconciled; linear in its gangs. */
void usage_phases(struct step *step, struct jobset *jobset);
/* Books the time for which a newly complete checkpoint stalled the program, as rank 0 reports it with its
 * steps (metric checkpoint_write_s). */
void usage_stall(struct step *step, struct jobset *jobset);
/* Gives the chips that the JobSet's placed and running gangs hold another owner. */
void usage_book(struct step *step, struct jobset *jobset, enum ledger_owner owner);
/* Updates the accounts that users see of the JobSets that this step changed. Called last in a step. */
void jobs_show_accounts(struct step *step);

#endif
