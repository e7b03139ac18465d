/* internal.h - functions shared by the files of the life room only. life.h lists the files; what core/recover
 * calls, too, is in acts.h. */
#ifndef PHX_CORE_LIFE_INTERNAL_H
#define PHX_CORE_LIFE_INTERNAL_H

#include "core/life/acts.h"

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
void spare_look(struct step *step, struct job *job);     /* makes missing spares and ends surplus ones */
void spare_stop_all(struct step *step, struct job *job); /* called when their Job ends */
int64_t spare_deadline(const struct job *job);           /* INT64_MAX: none */

/* fail.c */
void job_note_failure(struct step *step, const struct job *job); /* the event of a Job that has failed */

/* batch.c */
struct job *job_make(struct jobset *jobset, uint32_t position);
void job_resized(struct job *job); /* judges the Job anew after a change of parallelism or completions */
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

/* cost.c */
void usage_settle(struct step *step, struct jobset *jobset, bool kept); /* the JobSet is finished */
/* The JobSet fails: counts that end, and books what is not kept as lost. */
void usage_fail(struct step *step, struct jobset *jobset);
/* Faults or signatures were added to the record, or after the end of the JobSet: the cause may be another. */
void usage_attribute(struct step *step, struct jobset *jobset, struct restart_record *record);
void usage_attribute_finish(struct step *step, struct jobset *jobset);
void usage_recount(struct step *step, struct restart_record *record, enum ledger_cause cause);

/* bury.c */
void store_free_gang(struct gang *gang);

#endif
