/* gang.h - gangs: how they are formed, wait, are placed, tested, started and left; and the accounts of their
 * chips.
 *
 * A gang waits in the queue, gets all its chips at once or none, and its tasks are told to start when nothing
 * that must hold before is missing: slices are connected, tests of its machines have ended, objects that its
 * Pods need exist, older processes of the same names are dead.
 *
 *   form.c         the division of tasks into gangs
 *   gang.c         the queue, and the allocation of chips
 *   members.c      which tasks of a gang run, wait, leave or end
 *   gates.c        scheduling gates, which hold a gang before it is placed
 *   bar.c          Pod Security levels, judged again for each gang that waits
 *   why.c          why a gang waits, in numbers
 *   request.c      what the scheduler is asked for: a gang, or a JobSet on trial
 *   trial.c        whether a JobSet finds machines; terms of admission; terms.c: their additions to Pods
 *   reserve.c      the room that admission keeps for a JobSet
 *   slice.c        gangs that ask for a slice: cubes, and cross-connects before the start; slice_tables.c:
 *                  the routing tables that their tasks are told
 *   preflight.c    tests of a gang's machines before it starts; preflight_pairs.c: in pairs
 *   config.c       ConfigMaps, Secrets and claims that a task needs
 *   start.c        the preparations that come before a placed task's start
 *   usage.c        who owns the chips of a JobSet while it starts, runs and restarts
 * trial.h has what is asked without changing anything.
 *
 * Functions that take a step change state through it, and mark the JobSets that they touched, which are
 * reconciled before the step ends.
 */
#ifndef PHX_CORE_GANG_GANG_H
#define PHX_CORE_GANG_GANG_H

#include "core/gang/trial.h"
#include "core/job/facts.h"

/* --- forming ---------------------------------------------------------------------------------- */

void gang_form(struct step *step, struct jobset *jobset); /* makes gangs of PENDING tasks without one */
/* Makes a gang of one, behind all others in the queue. */
void gang_form_spare(struct step *step, struct task *task);
/* Gives the gang the rank that its spare has got. */
void gang_adopt_spare(struct step *step, struct gang *gang);

/* --- the queue ---------------------------------------------------------------------------------- */

/* Places, at once, the gangs for which admission found places. */
void gang_place_admitted(struct step *step, struct jobset *jobset);
void gang_schedule(struct step *step);               /* one pass over the queue */
bool gang_try(struct step *step, struct gang *gang); /* places it, or sets its `why` */
/* Forgets what was found out for a waiting gang, which asks for other places now. */
void gang_judge_anew(struct gang *gang);
/* Takes back the places of a placed gang of which no task was told to start. */
void gang_unplace(struct step *step, struct gang *gang);
void gang_judge(const struct job_store *store, struct gang *gang); /* it is new, or its namespace changed */
void gang_look_at_gates(struct gang *gang);                        /* its tasks are all there now */
bool gang_is_gated(const struct gang *gang); /* a living Pod of it has scheduling gates, or it is barred */
/* Books a machine's free chips under the right owner after its state changed (ready, cordoned, lost), and
 * marks the JobSets that have a spare there. `was_schedulable`: whether they were idle before. */
void machine_book(struct step *step, const struct machine *machine, bool was_schedulable);

/* --- why a gang waits ---------------------------------------------------------------------------- */

/* Brings the reasons up to date whose time has come. */
void gangs_say_due(struct step *step);
/* Stamp at which the gang's reason is looked at again; INT64_MAX: it is up to date. */
int64_t gang_why_due_ns(const struct gang *gang);
/* For a gang with `why_due`: its `why` is looked at again when the window since `why_since_ns` is over. */
void gang_restore_why_timer(struct job_store *store, struct gang *gang);
/* Lets every waiting gang say its reason at the next look, whatever it has said in this window: so that two
 * cores that look at different moments can be compared (core_is_settled). */
void jobs_let_gangs_say_why(struct job_store *store);

/* --- members ------------------------------------------------------------------------------------- */

void gang_leave(struct task *task); /* takes the task out of its gang */
void gang_thin(struct gang *gang);  /* drops the tasks that left */
/* Moves a PLACED gang to RUNNING if every remaining task already runs. */
void gang_go_on(struct step *step, struct gang *gang);
void gang_task_started(struct step *step, struct task *task);
void gang_task_ended(struct step *step, struct task *task);
void gang_task_parked(struct step *step, struct task *task); /* it waits to run again */

/* --- the start of a task ------------------------------------------------------------------------- */

/* PLACED -> STARTING, unless a preparation is awaited (the table in start.c): a test of its machines, its
 * slice's cross-connects, an object that its Pod needs, the end of an older task of its name. */
void task_start_if_free(struct step *step, struct task *task);
/* Returns a living task that has the index in *old or a Job before it, and moves *old on behind it; NULL:
 * there is none. The walk begins with one of jobset->ending. */
const struct task *next_elder(const struct job **old, int32_t index);
/* Tries the tasks again that wait for a ConfigMap, Secret or claim, if one was written. */
void config_wake_waiters(struct step *step);

/* --- slices ---------------------------------------------------------------------------------------- */

struct slice_shape;
/* Whether the JobSet asks for a slice, by its annotation phalanx.dev/slice. */
bool jobset_wants_slice(const struct jobset *jobset, struct slice_shape *ret_shape);
/* Whether the task's slice is not connected yet. */
bool slice_start_waits(const struct step *step, const struct task *task);
/* Tells the task's agent by which tables its slice is routed, if it has one: after each order to start it. */
void slice_tell_tables(struct step *step, const struct task *task);
/* The same of all living tasks of a machine whose agent is back. */
void jobs_tell_tables(struct step *step, const struct machine *machine);
/* Takes what the task's process says about the tables of its chips; late and repeated words change
 * nothing. */
void slice_take_routes(struct step *step, struct task *task, const struct rank_routes *routes);
/* The task's process has ended, and its chips have no tables. */
void slice_rank_ended(struct step *step, struct task *task);
struct pod_now;
/* Every living task of the JobSet is told the slice's newest routing tables. */
void jobs_slice_rerouted(struct step *step, const struct jobset *jobset);
/* Counts the ranks whose chips have tables that may use a switch of the pod which leaves. */
void jobs_count_switch_users(struct step *step, struct pod_now *pod);

/* --- preflight: errands of ERRAND_OF_PREFLIGHT ----------------------------------------------------- */

struct errand;
struct errand_end;
struct preflight;
void preflight_errand_ended(struct step *step, const struct errand *errand, const struct errand_end *end);
/* Returns the next machine that failed, until false; the caller owns its texts then. */
bool preflight_next_verdict(struct step *step, struct preflight_verdict *ret);
/* Called when the machine was not isolated for that failure: it counts as tested. */
void preflight_excuse(struct step *step, struct machine *machine);
/* Gangs whose preflight includes the machine look for other places; users read `why`. */
void preflight_leave(struct step *step, const struct machine *machine, struct str why);
/* Called after a snapshot with its errands was restored. False: it does not fit. */
bool preflight_restored(struct job_store *store, const struct cluster *cluster,
                        const struct errands *errands);
void preflight_check(const struct job_store *store, const struct cluster *cluster,
                     const struct errands *errands); /* aborts through CHECK */
/* Moves on the gangs that wait for no further test. */
void preflight_settle(struct step *step);
/* Ends the preflight of a gang that gives its places back. */
void preflight_drop(struct step *step, struct gang *gang);
void preflight_free(struct preflight *preflight);                     /* NULL: nothing */
void preflight_remap(struct job_store *store, const machine_id *map); /* after tasks were */

/* --- accounts of chips ------------------------------------------------------------------------------ */

/* Whether the JobSet reports absolute steps. Then the cost of a restart is known: all since the newest
 * checkpoint, less what the first step after it proves to be kept. Without steps, or with counted lines
 * only, nothing is known before the job's end. */
bool usage_knows_place(const struct jobset *jobset);
/* Progress since the last checkpoint before the suspension is lost. */
void usage_resumed(struct step *step, struct jobset *jobset);
/* Every rank has made step `at` (-1: they report none), so the rung that was under way has helped. Its time
 * limit ends with it, which moves the JobSet's timer. */
void usage_rung_helped(struct step *step, struct jobset *jobset, int64_t at);
/* Gives the chips of gangs that make no steps yet the owner for which they wait now: a machine,
 * cross-connects, tests, ending processes, the first step. Called when the JobSet was looked at; linear in
 * its gangs. */
void usage_phases(struct step *step, struct jobset *jobset);
/* A checkpoint is complete: books the time for which it made the program stand still, as rank 0 reports it
 * with its steps (metric checkpoint_write_s). */
void usage_stall(struct step *step, struct jobset *jobset);
/* Gives the chips that are held now another owner. */
void usage_book(struct step *step, struct jobset *jobset, enum ledger_owner owner);
/* Called last in a step: updates the accounts that users see of the changed JobSets. */
void jobs_show_accounts(struct step *step);

#endif
