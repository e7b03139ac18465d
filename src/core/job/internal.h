/* internal.h - functions shared by the files of the job module only. job.h lists the files; what core/recover
 * calls, too, is in acts.h. */
#ifndef PHX_CORE_JOB_INTERNAL_H
#define PHX_CORE_JOB_INTERNAL_H

#include "core/job/acts.h"

#define SPARE_KEY "phalanx.dev/spare" /* label of Pods that wait for a rank */

/* jobset.c */
struct jobset *jobset_make(struct arena *arena, struct doc *document, const struct jobset_spec *spec);

/* owned_objects.c */
/* Has its owned objects checked before the step ends. */
void owned_objects_mark(struct step *step, const struct jobset *jobset);

/* resize.c */
void jobset_bind(struct jobset *jobset); /* makes room for the Jobs and indexes of the spec */
void jobset_unbind(struct jobset *jobset);
void jobset_fit(struct jobset *jobset);    /* adds room after a change of the spec */
void jobset_rebind(struct jobset *jobset); /* FORM_WORKLOAD: makes room anew, for the present PodSets */

/* status.c */
void jobset_restored(struct jobset *jobset); /* books all jobs, after a snapshot was read */

/* spare.c */
void spare_look(struct step *step, struct job *job); /* makes missing spares and ends surplus ones */
void spare_stop_all(struct step *step, struct job *job); /* called when their Job ends */
int64_t spare_deadline(const struct job *job);           /* INT64_MAX: none */

/* start.c */
/* Returns a living task that has the index in *old or a Job before it, and moves *old on behind it; NULL:
 * there is none. The walk begins with one of jobset->ending. */
const struct task *next_elder(const struct job **old, int32_t index);

/* fail.c */
void job_note_failure(struct step *step, const struct job *job); /* the event of a Job that has failed */

/* batch.c */
struct job *job_make(struct jobset *jobset, uint32_t position);
void job_resized(struct job *job); /* judges the Job anew after a change of parallelism or completions */
void user_meta_free(struct user_meta *meta); /* NULL: nothing */
int64_t job_deadline(const struct job *job);

/* task.c */
/* `name` empty: one is generated. */
struct task *task_make(struct job *job, obj_id uid, int32_t index, struct str name);
void task_name_anew(struct step *step, struct task *task); /* repeated until no other Pod has the name */
struct task *task_create(struct step *step, struct job *job, int32_t index);

/* end.c */
void task_bury(struct step *step, struct task *task);
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

/* config.c */
/* Whether a ConfigMap or Secret that the task needs is missing. */
bool task_config_waits(struct step *step, struct task *task);

/* named.c: pods that name their machine */
/* Whether the gang waits and its machine is ready, so that it is judged before the step ends. */
bool gang_waits_named(const struct step *step, const struct gang *gang);

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
bool gang_try(struct step *step, struct gang *gang); /* places it, or sets its `why` */
/* Makes a gang of one, behind all others in the queue. */
void gang_form_spare(struct step *step, struct task *task);
/* Gives the gang the rank that its spare has got. */
void gang_adopt_spare(struct step *step, struct gang *gang);
/* Takes the tasks after the first `count` out of a waiting gang: they are loose again. */
void gang_shrink(struct step *step, struct gang *gang, uint32_t count);

/* members.c */
void gang_task_ended(struct step *step, struct task *task);
/* Takes back the places of a placed gang of which no task was told to start. */
void gang_unplace(struct step *step, struct gang *gang);

/* why.c: whether a refused gang says at once why it waits. */
bool gang_may_say_why(const struct step *step, const struct gang *gang);
/* Takes `why` over, which is empty then, as the gang's present reason; false: the gang said so before. */
bool gang_set_why(struct step *step, struct gang *gang, struct buf *why);
/* The reason is looked at again when the window is over; gang_why_is_said: it was. */
void gang_say_why_later(struct step *step, struct gang *gang);
void gang_why_is_said(struct step *step, struct gang *gang);
/* The gang has left the queue. */
void gang_waits_no_more(struct step *step, struct gang *gang);

/* slice.c */
struct slice_place;
struct slice_shape;
/* Whether the JobSet asks for a slice, by its annotation phalanx.dev/slice. */
bool jobset_wants_slice(const struct jobset *jobset, struct slice_shape *ret_shape);
/* Called when its gang was just placed on `place`: the cross-connects are made. */
void slice_gang_placed(struct step *step, struct gang *gang, const struct slice_place *place);
/* Whether the task's slice is not connected yet. */
bool slice_start_waits(const struct step *step, const struct task *task);

/* preflight.c */
struct preflight;
void preflight_begin(struct step *step, struct gang *gang); /* called when it was just placed */
/* Ends the preflight of a gang that gives its places back. */
void preflight_drop(struct step *step, struct gang *gang);
void preflight_free(struct preflight *preflight);           /* NULL: nothing */
void preflight_remap(struct job_store *store, const machine_id *map); /* after tasks were */

/* usage.c */
void usage_running(struct step *step, struct gang *gang);               /* every task of the gang runs */
void usage_settle(struct step *step, struct jobset *jobset, bool kept); /* the JobSet is finished */

/* Whether the JobSet reports absolute steps. Then the cost of a restart is known: all since the newest
 * checkpoint, less what the first step after it proves to be kept. Without steps, or with counted lines
 * only, nothing is known before the job's end. */
bool usage_knows_place(const struct jobset *jobset);

/* cost.c */
/* The JobSet fails: counts that end, and books what is not kept as lost. */
void usage_fail(struct step *step, struct jobset *jobset);
/* Faults or signatures were added to the record, or after the end of the JobSet: the cause may be another. */
void usage_attribute(struct step *step, struct jobset *jobset, struct restart_record *record);
void usage_attribute_finish(struct step *step, struct jobset *jobset);
void usage_recount(struct step *step, struct restart_record *record, enum ledger_cause cause);

/* store.c */
void store_add_jobset(struct job_store *store, struct jobset *jobset);
void store_count_naming(struct job_store *store, struct jobset *jobset); /* its spec is another */
/* Hides it from users, who still see its Jobs (of a Job without a JobSet: its pods). */
void store_hide_jobset(struct job_store *store, struct jobset *jobset);
void store_hide_job(struct job_store *store, struct job *job); /* frees its name */
void store_add_task(struct job_store *store, struct task *task);
void store_free_gang(struct gang *gang);

#endif
