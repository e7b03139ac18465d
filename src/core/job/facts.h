/* facts.h - what the rooms that change jobs ask and set without deciding anything: questions about JobSets,
 * Jobs, gangs and tasks, ranks, chips that are held, gates, conditions, restart records and marks.
 */
#ifndef PHX_CORE_JOB_FACTS_H
#define PHX_CORE_JOB_FACTS_H

#include "core/job/job.h"
#include "core/step.h"

#define SPARE_KEY "phalanx.dev/spare" /* label of Pods that wait for a rank */

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
/* Whether managedBy names another controller: the JobSet is left alone, and that controller writes its
 * status. */
bool jobset_is_foreign(const struct jobset *jobset);
int64_t jobset_chips(const struct jobset *jobset); /* all chips that its spec wants */

/* --- facts.c: Jobs ---------------------------------------------------------------------------- */

uint32_t job_index_count(const struct rjob_spec *rjob); /* number of indexes of each of its Jobs */
bool job_over(const struct job *job);   /* COMPLETE or FAILED */
bool job_failed(const struct job *job); /* FAILING or FAILED */
/* The same as its JobSet sees it: at once, or when its tasks have ended. */
bool job_has_failed(const struct job *job);
bool job_alive(const struct job *job);       /* it has a task that has not ended */
int32_t job_wanted(const struct job *job);   /* min(parallelism, completions) */
uint32_t job_ranks_on(const struct job *job, machine_id machine); /* living ranks placed there */

/* --- facts.c: tasks and gangs ----------------------------------------------------------------- */

bool inplace_may(const struct task *task); /* whether a restart in place answers its failure now */
/* Whether its peers lose it when its process ends, so that its restart is a restart of all (restartPolicy
 * OnFailure of a rank that joined through libphalanx); and whether no more such restarts are allowed. */
bool inplace_is_shared(const struct task *task);
bool inplace_is_exhausted(const struct task *task);
/* Whether a failure of this task counts towards the backoffLimit of its Job, and not towards maxRestarts. */
bool recovery_charges_job(const struct task *culprit);
/* Whether its process survives into the next attempt: it runs, has joined (or is about to join again), and
 * has said that it can rejoin. */
bool recovery_keeps(const struct task *task);
bool task_is_named(const struct task *task);     /* its pod names a machine */
bool gang_is_named(const struct gang *gang);
/* Returns the machine that its pod names; NULL: unknown, or not ready. */
const struct machine *gang_named_machine(const struct step *step, const struct gang *gang);

/* --- spares.c ---------------------------------------------------------------------------------- */

uint32_t job_spares(const struct job *job);    /* number of spares by its spec, or its queue */
bool spares_are_cold(const struct job *job);   /* they hold their room, and no process */
uint32_t spares_wanted(const struct job *job); /* number of spares that it should have now */
/* Number of extra spares wanted until its ranks have left the machine that the JobSet leaves. */
uint32_t move_extra_spares(const struct job *job);
bool spare_start_waits(const struct task *task); /* a cold spare, which only holds its room */
/* Whether the spare gives up its chips for this gang, if the gang needs them. */
bool spare_gives_way(const struct task *spare, const struct gang *gang);
/* Whether its Job could have so many spares more than its users ask for. */
bool spare_may_be(const struct job *job, uint32_t count);
uint32_t spare_ready(const struct job *job, const struct cluster *cluster);

/* --- containers.c ------------------------------------------------------------------------------ */

/* Returns how often its containers, but sidecars, have been restarted in the Pod. */
uint64_t task_container_restarts(const struct task *task);
/* Returns the restarts in place that count towards its backoffLimit, of its living pods and of `ended`
 * (NULL: none). */
uint64_t job_container_restarts(const struct job *job, const struct task *ended);
/* Returns whether the agent runs the container again in its pod: as the pod says, as long as its Job allows
 * any failure. With backoffLimit 0 the first restart would end the Job. Under InPlaceRestart all processes of
 * the JobSet run again together. */
enum container_restart task_container_restart(const struct task *task,
                                              const struct container_spec *container);
/* Whether its pod is one process, which the agent never runs again. */
bool task_is_plain(const struct task *task);
/* Restores the agent's last report about its containers; copied. */
void containers_restore(struct task *task, const struct container_status *statuses, uint32_t count);

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

/* --- hold.c ----------------------------------------------------------------------------------- */

void task_release_chips(struct step *step, struct task *task);
void task_message(struct task *task, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* `count` of its held chips leave it (ended, or taken over). */
void gang_chips_left(struct step *step, struct gang *gang, int64_t count);
/* Gives its chips another owner. Marks the JobSet when they begin to prepare for steps. */
void gang_book(struct step *step, struct gang *gang, enum ledger_owner owner);
/* Returns the owner of a machine's free chips in the cluster's book, but of those that are reserved. */
enum ledger_owner machine_free_owner(const struct machine *machine);
/* Returns the free chips that the cluster's book has as reserved for a JobSet. */
uint64_t machine_free_reserved(const struct machine *machine);
/* Returns what the book is to say of the machine's free chips. */
struct booked_chips machine_to_book(const struct machine *machine);
static inline bool booked_equal(struct booked_chips a, struct booked_chips b)
{
    return a.owner == b.owner && a.chips == b.chips && a.reserved == b.reserved;
}
/* Adds a machine's chips to the book (1), or takes them out (-1). */
void machine_book_chips(struct step *step, struct booked_chips booked, int sign);
/* Books the machine's free chips anew; called after any change of them, or of the machine's state. */
void machine_book_free(struct step *step, struct machine *machine);

/* --- gates.c, priority.c ------------------------------------------------------------------------ */

void task_take_gates(struct task *task); /* those of its template: it was just made */
/* Removes the Pod's scheduling gates that are not in the list `left`. False: it has none. */
bool task_keep_gates(struct task *task, const struct doc *left);
/* Returns the priority of the Job's pods: of their PriorityClass, the cluster file's class, or their own. */
int32_t job_priority(const struct job_store *store, const struct cluster *cluster,
                     const struct rjob_spec *rjob);

/* --- user_meta.c ------------------------------------------------------------------------------- */

/* Replaces the labels and annotations of a Job or Pod (`task` NULL: the Job) by copies of these maps
 * (struct user_meta; NULL: empty) without the controllers' keys. Watchers are told if that is a change. */
void job_set_meta(struct step *step, struct job *job, struct task *task, const struct doc *labels,
                  const struct doc *annotations);
/* Restores a Job's or task's own labels and annotations from a snapshot, copied to *place. */
void user_meta_restore(struct user_meta **place, const struct labels *labels,
                       const struct labels *annotations);
void user_meta_free(struct user_meta *meta); /* NULL: nothing */

/* --- records.c --------------------------------------------------------------------------------- */

/* Whether this fault belongs to the restart that is under way. `culprit` NULL: no. */
bool restart_is_same_incident(const struct step *step, const struct jobset *jobset,
                              const struct task *culprit);
/* Renumbers the newest restart record after its attempt got another number. */
void restart_follow(struct jobset *jobset);
void restart_record_done(struct restart_record *record);
/* Copies as much of the text as fits, with a NUL. */
void restart_copy_text(char *to, size_t size, struct str from);
/* Writes the ladder's answer into the newest record; `passed` is copied. */
void restart_decided(struct jobset *jobset, enum rung rung, struct str passed);
void restart_suspect(struct jobset *jobset, machine_id machine); /* later gangs avoid it if they can */
/* Makes the records, if there are none yet. */
void restart_history_need(struct restart_history *history);
/* Restores the ladder's answer to a restart; `passed` is copied. */
void restart_record_decided(struct restart_record *record, enum rung rung, struct str passed);

/* --- conditions.c, mark.c --------------------------------------------------------------------- */

/* Sets a condition, and notes an event if its status changed. False: nothing changed. */
bool condition_set(struct step *step, struct jobset *jobset, enum condition_kind kind, bool status,
                   const char *reason, const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Gives the condition copies of both texts. */
void condition_say(struct condition *condition, struct str reason, struct str message);
/* Marks it to be reconciled before the step ends. */
void jobset_mark(struct step *step, struct jobset *jobset);
void job_count(struct job *job); /* only counted */
/* Marks the job to be reconciled and counted before the step ends; its JobSet must be marked too. */
void job_touch(struct job *job);
void jobs_mark_all(struct step *step); /* marks every JobSet to be reconciled */

#endif
