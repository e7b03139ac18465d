/* facts.h - what several files of the job module ask and set without deciding anything: questions about
 * JobSets, Jobs, gangs and tasks (facts.c), ranks (ranks.c), chips that are held (hold.c), conditions and
 * marks. These files call no others of the module, so every file may call them.
 */
#ifndef PHX_CORE_JOB_FACTS_H
#define PHX_CORE_JOB_FACTS_H

#include "core/job/job.h"
#include "core/job/life.h"

/* --- facts.c: JobSets ------------------------------------------------------------------------- */

uint32_t jobset_first_slot(const struct jobset *jobset, uint32_t rjob, uint32_t index);
/* Whether the parallelism and completions of its Jobs may change. */
bool jobset_is_elastic(const struct jobset *jobset);
/* Whether maxRestarts allows one more. Restarts of the whole JobSet, restarts in place and restarts of single
 * Jobs count together. */
bool attempt_within_max(const struct jobset *jobset);
bool inplace_is_asked(const struct jobset *jobset);      /* by the spec */
bool inplace_is_disabled(const struct jobset *jobset);   /* by its annotation */
bool inplace_is_whole(const struct jobset *jobset);      /* every task has a place, and none has succeeded */
bool inplace_has_succeeded(const struct jobset *jobset); /* a rank has succeeded */
bool move_by_spares(const struct jobset *jobset);        /* a move by spares is under way */
int64_t dump_deadline(const struct jobset *jobset);      /* of the dying checkpoint that is under way */
/* Whether the task is a living member of the dying checkpoint. Members are numbered in the order of their old
 * ranks. */
bool dump_has_member(const struct task *task, const struct jobset *jobset);
const struct task *dump_rank_zero(const struct jobset *jobset); /* the first member; NULL: none is left */
/* The time limit of the present rung. */
int64_t recovery_limit_ns(const struct jobset *jobset);
/* Whether replicas may leave the JobSet in its present recovery; whether it may go on at once without a
 * replica that finds no place. */
bool shrink_is_allowed(const struct jobset *jobset);
bool shrink_may_answer(const struct jobset *jobset);

/* --- facts.c: Jobs ---------------------------------------------------------------------------- */

bool job_over(const struct job *job);   /* COMPLETE or FAILED */
bool job_failed(const struct job *job); /* FAILING or FAILED */
/* The same as its JobSet sees it: at once, or when its tasks have ended. */
bool job_has_failed(const struct job *job);
bool job_alive(const struct job *job);       /* it has a task that has not ended */
int32_t job_wanted(const struct job *job);   /* min(parallelism, completions) */
uint32_t job_spares(const struct job *job);  /* number of spares by its spec, or its queue */
bool spares_are_cold(const struct job *job); /* they hold their room, and no process */
uint32_t job_ranks_on(const struct job *job, machine_id machine); /* living ranks placed there */
/* Number of extra spares wanted until its ranks have left the machine that the JobSet leaves. */
uint32_t move_extra_spares(const struct job *job);

/* --- facts.c: tasks and gangs ----------------------------------------------------------------- */

bool inplace_may(const struct task *task); /* whether a restart in place answers its failure now */
/* Whether its peers lose it when its process ends, so that its restart is a restart of all (restartPolicy
 * OnFailure of a rank that joined through libphalanx); and whether no more such restarts are allowed. */
bool inplace_is_shared(const struct task *task);
bool inplace_is_exhausted(const struct task *task);
/* Returns how often its containers, but sidecars, have been restarted in the Pod. */
uint64_t task_container_restarts(const struct task *task);
/* Whether a failure of this task counts towards the backoffLimit of its Job, and not towards maxRestarts. */
bool recovery_charges_job(const struct task *culprit);
/* Whether its process survives into the next attempt: it runs, has joined (or is about to join again), and
 * has said that it can rejoin. */
bool recovery_keeps(const struct task *task);
bool spare_start_waits(const struct task *task); /* a cold spare, which only holds its room */
bool task_is_named(const struct task *task);     /* its pod names a machine */
bool gang_is_named(const struct gang *gang);
/* Returns the machine that its pod names; NULL: unknown, or not ready. */
const struct machine *gang_named_machine(const struct step *step, const struct gang *gang);
/* Whether the spare gives up its chips for this gang, if the gang needs them. */
bool spare_gives_way(const struct task *spare, const struct gang *gang);

/* --- ranks.c ---------------------------------------------------------------------------------- */

void task_rank(struct task *task); /* sets rank, world and ports by the spec and the attempt */
/* Returns the size of the JobSet's replicas: of the absent ones, while some are; 0: it is not divided. */
static inline uint32_t replica_size(const struct jobset *jobset)
{
    return jobset->recovery.absence.replicas.len ? jobset->recovery.absence.size : jobset->spec.replica_size;
}
bool replica_is_away(const struct absence *absence, uint32_t replica);
/* Returns the number of absent ranks of the job. */
uint32_t shrink_away_in(const struct job *job);
/* Returns the rank of the full world's rank `full`: participating ranks are numbered first, absent ones
 * behind them. *ret_world: size of the part that the rank belongs to. */
uint32_t shrink_rank(const struct jobset *jobset, uint32_t full, uint32_t full_world, uint32_t *ret_world);
/* Returns the rank of the task's index in the present world: its own may be of an earlier one, in which it
 * stops. Not for spares. */
uint32_t task_present_rank(const struct task *task);
void shrink_forget(struct jobset *jobset); /* no replica is absent any more: it begins anew, or has ended */

/* Returns whether the agent runs the container again in its pod: as the pod says, as long as its Job allows
 * any failure. With backoffLimit 0 the first restart would end the Job. Under InPlaceRestart all processes of
 * the JobSet run again together. */
enum container_restart task_container_restart(const struct task *task,
                                              const struct container_spec *container);
/* Whether its pod is one process, which the agent never runs again. */
bool task_is_plain(const struct task *task);

/* --- hold.c ----------------------------------------------------------------------------------- */

void task_release_chips(struct step *step, struct task *task);
void task_message(struct task *task, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* `count` of its held chips leave it (ended, or taken over). */
void gang_chips_left(struct step *step, struct gang *gang, int64_t count);
/* Gives its chips another owner. Marks the JobSet when they begin to prepare for steps. */
void gang_book(struct step *step, struct gang *gang, enum ledger_owner owner);

/* --- conditions.c, mark.c --------------------------------------------------------------------- */

/* Sets a condition, and notes an event if its status changed. False: nothing changed. */
bool condition_set(struct step *step, struct jobset *jobset, enum condition_kind kind, bool status,
                   const char *reason, const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Marks it to be reconciled before the step ends. */
void jobset_mark(struct step *step, struct jobset *jobset);
void job_count(struct job *job); /* only counted */

#endif
