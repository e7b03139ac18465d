/* internal.h - functions shared by the files of life/ only. life.h lists the files. */
#ifndef PHX_CORE_LIFE_INTERNAL_H
#define PHX_CORE_LIFE_INTERNAL_H

#include "core/life/acts.h"

/* jobset.c */
/* Makes a JobSet, in no index yet, of a document that lives with `spec` in *arena, which it takes over. */
struct jobset *jobset_make(struct arena *arena, struct doc *document, const struct jobset_spec *spec);

/* owned_objects.c */
/* Has the JobSet's Service and claims checked before the step ends. */
void owned_objects_mark(struct step *step, const struct jobset *jobset);

/* resize.c */
void jobset_bind(struct jobset *jobset);   /* makes the arrays for the Jobs and indexes of the spec */
void jobset_unbind(struct jobset *jobset); /* frees them */
void jobset_fit(struct jobset *jobset);    /* widens them after a change of the spec */
void jobset_rebind(struct jobset *jobset); /* FORM_WORKLOAD: replaces them, for the present PodSets */

/* status.c */
void jobset_restored(struct jobset *jobset); /* counts all Jobs, after a snapshot was read */

/* spare.c */
void spare_look(struct step *step, struct job *job);     /* makes missing spares and stops surplus ones */
void spare_stop_all(struct step *step, struct job *job); /* called when their Job ends */
int64_t spare_deadline(const struct job *job); /* stamp of the next spare after a back-off; INT64_MAX: none */

/* fail.c */
void job_note_failure(struct step *step, const struct job *job); /* leaves the Event of a failed Job */

/* batch.c */
struct job *job_make(struct jobset *jobset, uint32_t position); /* in no list or index yet */
void job_resized(struct job *job); /* judges the Job again after a change of parallelism or completions */
/* Returns the stamp of the Job's next deadline, retry or spare, or INT64_MAX if there is none. */
int64_t job_deadline(const struct job *job);

/* task.c */
/* Makes a PENDING task, in no list or index yet. Generates a name if `name` is empty. */
struct task *task_make(struct job *job, obj_id uid, int32_t index, struct str name);
void task_name_anew(struct step *step, struct task *task); /* changes a generated name until it is unique */
/* Makes a task for the index and adds it to its Job and the store. */
struct task *task_create(struct step *step, struct job *job, int32_t index);

/* end.c */
/* Removes an ended task from the indexes. The caller takes it out of its Job, and has it freed. */
void task_bury(struct step *step, struct task *task);
/* Ends a spare; the only place where a spare ends. */
void spare_ended(struct step *step, struct task *task, enum task_end end);
/* Takes the spare out of its Job's list. */
void spare_take_out(struct step *step, struct job *job, const struct task *task);
/* Waits before another spare is made, after spares that ended unasked. */
#define SPARE_BACKOFF_FIRST_NS (10 * NS_PER_SECOND)
#define SPARE_BACKOFF_MAX_NS   (300 * NS_PER_SECOND)

/* evict.c */
/* Ends a living task because its slice is broken; the task counts as disrupted. Users read `why`. */
void jobs_end_broken(struct step *step, struct task *task, struct str why);

/* cost.c */
/* Settles the accounts of a JobSet that finishes: its work is kept if it completed (`kept`). */
void usage_settle(struct step *step, struct jobset *jobset, bool kept);
/* Counts the failure of the JobSet, and books all work that no checkpoint kept as lost. */
void usage_fail(struct step *step, struct jobset *jobset);
/* Work out the cause again after faults or signatures were added to a restart's record, or arrived after the
 * end of the JobSet, and rebook the losses. */
void usage_attribute(struct step *step, struct jobset *jobset, struct restart_record *record);
void usage_attribute_finish(struct step *step, struct jobset *jobset);
/* Counts the end in the record under another cause. */
void usage_recount(struct step *step, struct restart_record *record, enum ledger_cause cause);

/* bury.c */
void store_free_gang(struct gang *gang);

#endif
