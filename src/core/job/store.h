/* store.h - the indexes of the job store: adding and removing objects. */
#ifndef PHX_CORE_JOB_STORE_H
#define PHX_CORE_JOB_STORE_H

#include "core/job/job.h"

void store_add_jobset(struct job_store *store, struct jobset *jobset);
void store_count_naming(struct job_store *store, struct jobset *jobset); /* called after its spec changed */
/* Hides the JobSet from users, who still see its Jobs (for a Job without a JobSet: its pods). */
void store_hide_jobset(struct job_store *store, struct jobset *jobset);
void store_hide_job(struct job_store *store, struct job *job); /* removes its name from the index */
void store_add_task(struct job_store *store, struct task *task);
void store_add_job(struct job_store *store, struct job *job); /* if users see this Job in its place */
/* Removes the JobSet from all indexes but the list `jobsets`. Does not free it. */
void store_remove_jobset(struct job_store *store, struct jobset *jobset);
/* Returns whether the name of a Job that the workload would make is in use, or kept for another JobSet's
 * Jobs. Then *ret_taken is that name; it lives in `arena` or is `name`. */
bool jobs_names_taken(const struct job_store *store, enum form form, struct str namespace_, struct str name,
                      const struct jobset_spec *spec, struct arena *arena, struct str *ret_taken);

#endif
