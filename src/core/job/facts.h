/* facts.h - questions and small changes that the folders above job/ share: about JobSets, Jobs, gangs, tasks,
 * ranks, held chips, gates, conditions, restart records and marks. Nothing here takes a decision.
 */
#ifndef PHX_CORE_JOB_FACTS_H
#define PHX_CORE_JOB_FACTS_H

#include "core/job/job.h"
#include "core/step.h"

#define SPARE_KEY "phalanx.dev/spare" /* label of Pods that wait for a rank */

/* --- facts.c: JobSets ------------------------------------------------------------------------- */

/* Returns the slot (jobset->slots) of the first index of the Job `index` of the replicated job `rjob`. */
uint32_t jobset_first_slot(const struct jobset *jobset, uint32_t rjob, uint32_t index);
/* Returns whether the parallelism and completions of its Jobs may change. */
bool jobset_is_elastic(const struct jobset *jobset);
/* Returns whether maxRestarts allows one more restart. Restarts of the whole JobSet, restarts in place and
 * restarts of single Jobs count together. */
bool attempt_within_max(const struct jobset *jobset);
bool inplace_is_asked(const struct jobset *jobset);    /* the spec asks for restarts in place */
bool inplace_is_disabled(const struct jobset *jobset); /* an annotation forbids restarts in place */
/* Returns whether every task of the active Jobs, except absent ones, has a place, and none has succeeded. */
bool inplace_is_whole(const struct jobset *jobset);
bool inplace_has_succeeded(const struct jobset *jobset); /* a rank has succeeded */
bool move_by_spares(const struct jobset *jobset);        /* a move by spares is under way */
/* Returns the stamp at which the dying checkpoint that is under way is given up. */
int64_t dump_deadline(const struct jobset *jobset);
/* Returns whether the task (may be NULL) is a living member of the dying checkpoint. */
bool dump_has_member(const struct task *task, const struct jobset *jobset);
const struct task *dump_rank_zero(const struct jobset *jobset); /* the member of lowest rank; NULL: none */
/* Returns the time limit of the present rung. */
int64_t recovery_limit_ns(const struct jobset *jobset);
/* Return whether replicas may leave the JobSet in its present recovery, and whether it may continue now
 * without a replica that finds no place. */
bool shrink_is_allowed(const struct jobset *jobset);
bool shrink_may_answer(const struct jobset *jobset);
/* Returns whether managedBy names another controller, which then runs the JobSet and writes its status. */
bool jobset_is_foreign(const struct jobset *jobset);
int64_t jobset_chips(const struct jobset *jobset); /* number of all chips that its spec wants */

/* --- facts.c: Jobs ---------------------------------------------------------------------------- */

uint32_t job_index_count(const struct rjob_spec *rjob); /* number of indexes of each of its Jobs */
bool job_over(const struct job *job);   /* COMPLETE or FAILED */
bool job_failed(const struct job *job); /* FAILING or FAILED */
/* Returns whether the Job counts as failed for its JobSet (jobset->failures_wait). */
bool job_has_failed(const struct job *job);
bool job_alive(const struct job *job);       /* a task of the Job, or a spare, has not ended */
int32_t job_wanted(const struct job *job);   /* min(parallelism, completions) */
uint32_t job_ranks_on(const struct job *job, machine_id machine); /* number of living ranks there */

/* --- facts.c: tasks and gangs ----------------------------------------------------------------- */

/* Returns whether a restart in place answers the task's failure now. */
bool inplace_may(const struct task *task);
/* Returns whether a restart of the task restarts all its peers, which lose it with its process (restartPolicy
 * OnFailure of a joined rank). inplace_is_exhausted returns whether no more such restarts are allowed. */
bool inplace_is_shared(const struct task *task);
bool inplace_is_exhausted(const struct task *task);
/* Returns whether a failure of this task counts towards its Job's backoffLimit, not towards maxRestarts. */
bool recovery_charges_job(const struct task *culprit);
/* Returns whether the task's process survives into the next attempt. It must run, have joined (or be about to
 * join again), and have reported that it can rejoin. */
bool recovery_keeps(const struct task *task);
bool task_is_named(const struct task *task); /* its pod names a machine */
bool gang_is_named(const struct gang *gang); /* a gang of one task whose pod names a machine */
/* Returns the machine that the gang's pod names, or NULL if it is unknown or not ready. */
const struct machine *gang_named_machine(const struct step *step, const struct gang *gang);

/* --- spares.c ---------------------------------------------------------------------------------- */

uint32_t job_spares(const struct job *job);    /* number of spares by its spec, or its queue */
bool spares_are_cold(const struct job *job);   /* spares hold resources, and have no process */
uint32_t spares_wanted(const struct job *job); /* number of spares that the Job should have now */
/* Returns the number of extra spares wanted until the Job's ranks have left the machine of a move. */
uint32_t move_extra_spares(const struct job *job);
bool spare_start_waits(const struct task *task); /* the task is a cold spare, which is never started */
/* Returns whether the spare gives up its chips for this gang, if the gang needs them. */
bool spare_gives_way(const struct task *spare, const struct gang *gang);
/* Returns whether the Job could have `count` spares more than its users ask for. */
bool spare_may_be(const struct job *job, uint32_t count);
uint32_t spare_ready(const struct job *job, const struct cluster *cluster); /* number of ready spares */

/* --- containers.c ------------------------------------------------------------------------------ */

/* Returns how often the task's containers, except sidecars, have been restarted in the Pod. */
uint64_t task_container_restarts(const struct task *task);
/* Returns the number of container restarts that count towards the Job's backoffLimit: those of its living
 * pods and of `ended` (may be NULL). */
uint64_t job_container_restarts(const struct job *job, const struct task *ended);
/* Returns when the agent runs the container again in its pod: by the pod's rule, but never with backoffLimit
 * 0, whose first restart would end the Job, nor under InPlaceRestart, which restarts all processes together.
 * Sidecars and containers with a separate rule follow that one. */
enum container_restart task_container_restart(const struct task *task,
                                              const struct container_spec *container);
/* Returns whether the task's pod is one process, which the agent never runs again. */
bool task_is_plain(const struct task *task);
/* Replaces the agent's last report about the task's containers by a copy of `statuses`. */
void containers_restore(struct task *task, const struct container_status *statuses, uint32_t count);

/* --- ranks.c ---------------------------------------------------------------------------------- */

void task_rank(struct task *task); /* sets rank, world and port by the spec and the attempt */
/* Returns the number of ranks of each of the JobSet's replicas (of the absent ones, while there are any), or
 * 0 if the JobSet has no replicas. */
static inline uint32_t replica_size(const struct jobset *jobset)
{
    return jobset->recovery.absence.replicas.len ? jobset->recovery.absence.size : jobset->spec.replica_size;
}
bool replica_is_away(const struct absence *absence, uint32_t replica); /* the replica is absent */
/* Returns the number of absent ranks of the Job that have neither succeeded nor failed. */
uint32_t shrink_away_in(const struct job *job);
/* Returns the present rank of the full world's rank `full`. Participating ranks are numbered first; absent
 * ones follow. *ret_world becomes the number of participating ranks or, for an absent rank, of all ranks. */
uint32_t shrink_rank(const struct jobset *jobset, uint32_t full, uint32_t full_world, uint32_t *ret_world);
/* Returns the rank of the task's index in the present world. task->rank may belong to an earlier world, in
 * which the task is stopping. Not for spares. */
uint32_t task_present_rank(const struct task *task);
/* Clears the absence of replicas: called when the JobSet begins again from the start, or has ended. */
void shrink_forget(struct jobset *jobset);

/* --- hold.c ----------------------------------------------------------------------------------- */

/* Gives the task's chips, cpu and memory back to its machine, if it holds them. Its process may still be
 * ending: the machine's agent starts the next task on these chips only after that. */
void task_release_chips(struct step *step, struct task *task);
/* Sets task->message, for people. */
void task_message(struct task *task, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Takes `count` chips, released or no longer wanted, out of the gang's account. */
void gang_chips_left(struct step *step, struct gang *gang, int64_t count);
/* Books the gang's chips under another owner, or under OWNER_SPARE if it is a spare's. Marks the JobSet when
 * they begin to prepare for steps. */
void gang_book(struct step *step, struct gang *gang, enum ledger_owner owner);
/* Returns the owner of a machine's free chips in the cluster's book, except of those that are reserved. */
enum ledger_owner machine_free_owner(const struct machine *machine);
/* Returns the mask of free chips that the cluster's book has as reserved for a JobSet. Chips that cannot be
 * used at present are not among them. */
uint64_t machine_free_reserved(const struct machine *machine);
/* Returns the owners under which the machine's free chips are to be booked. */
struct booked_chips machine_to_book(const struct machine *machine);
static inline bool booked_equal(struct booked_chips a, struct booked_chips b)
{
    return a.owner == b.owner && a.chips == b.chips && a.reserved == b.reserved;
}
/* Adds a machine's chips to the book (sign 1), or takes them out (sign -1). */
void machine_book_chips(struct step *step, struct booked_chips booked, int sign);
/* Updates the booking of the machine's free chips, after a change of them or of the machine's state. */
void machine_book_free(struct step *step, struct machine *machine);

/* --- gates.c, priority.c ------------------------------------------------------------------------ */

void task_take_gates(struct task *task); /* gives a new task the scheduling gates of its template */
/* Removes the Pod's scheduling gates that are not in the list `left`. Returns whether it removed any. */
bool task_keep_gates(struct task *task, const struct doc *left);
/* Returns the priority of the Job's pods: of their PriorityClass, the cluster file's class, or their own. */
int32_t job_priority(const struct job_store *store, const struct cluster *cluster,
                     const struct rjob_spec *rjob);

/* --- user_meta.c ------------------------------------------------------------------------------- */

/* Replaces the labels and annotations of a Job (`task` NULL) or Pod by copies of these maps (struct
 * user_meta; NULL: empty), without the controllers' keys. Tells watchers of a change. */
void job_set_meta(struct step *step, struct job *job, struct task *task, const struct doc *labels,
                  const struct doc *annotations);
/* Restores a Job's or task's user_meta from a snapshot: *place becomes a copy. */
void user_meta_restore(struct user_meta **place, const struct labels *labels,
                       const struct labels *annotations);
void user_meta_free(struct user_meta *meta); /* NULL is fine */

/* --- records.c --------------------------------------------------------------------------------- */

/* Returns whether the end of `culprit` (may be NULL) belongs to the restart that is under way: its machine
 * was lost within INCIDENT_WINDOW_NS of the newest record, whose attempt has not started. */
bool restart_is_same_incident(const struct step *step, const struct jobset *jobset,
                              const struct task *culprit);
/* Renumbers the newest restart record after its attempt got another number. */
void restart_follow(struct jobset *jobset);
void restart_record_done(struct restart_record *record); /* frees the record's memory */
/* Copies as much of the text as fits, with a NUL. */
void restart_copy_text(char *to, size_t size, struct str from);
/* Stores the ladder's answer in the newest record, if there is one; `passed` is copied. */
void restart_decided(struct jobset *jobset, enum rung rung, struct str passed);
/* Adds the machine to those that caused restarts; later gangs avoid them if they can. */
void restart_suspect(struct jobset *jobset, machine_id machine);
/* Allocates the records, if they are not allocated yet. */
void restart_history_need(struct restart_history *history);
/* Stores the ladder's answer in a record; `passed` is copied. */
void restart_record_decided(struct restart_record *record, enum rung rung, struct str passed);

/* --- conditions.c, mark.c --------------------------------------------------------------------- */

/* Sets a condition, and leaves an Event if its status changed. Returns whether the status changed; a new
 * reason or message alone is stored, and returns false. */
bool condition_set(struct step *step, struct jobset *jobset, enum condition_kind kind, bool status,
                   const char *reason, const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Gives the condition copies of both texts. */
void condition_say(struct condition *condition, struct str reason, struct str message);
/* Marks the JobSet to be reconciled before the step ends. */
void jobset_mark(struct step *step, struct jobset *jobset);
/* Marks the Job to be counted, but not reconciled, before the step ends. */
void job_count(struct job *job);
/* Marks the Job to be reconciled and counted before the step ends; its JobSet must be marked too. */
void job_touch(struct job *job);
void jobs_mark_all(struct step *step); /* marks every JobSet to be reconciled */

#endif
