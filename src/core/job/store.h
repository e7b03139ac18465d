/* store.h - the indexes of the job store: what joins and leaves them. */
#ifndef PHX_CORE_JOB_STORE_H
#define PHX_CORE_JOB_STORE_H

#include "core/job/job.h"

void store_add_jobset(struct job_store *store, struct jobset *jobset);
void store_count_naming(struct job_store *store, struct jobset *jobset); /* its spec is another */
/* Hides it from users, who still see its Jobs (of a Job without a JobSet: its pods). */
void store_hide_jobset(struct job_store *store, struct jobset *jobset);
void store_hide_job(struct job_store *store, struct job *job); /* frees its name */
void store_add_task(struct job_store *store, struct task *task);
void store_add_job(struct job_store *store, struct job *job);
void store_remove_jobset(struct job_store *store, struct jobset *jobset); /* from the indexes */
/* Whether the name of a Job that the workload would make is in use, or kept for another JobSet's Jobs.
 * Then *ret_taken is that name, in `arena`. */
bool jobs_names_taken(const struct job_store *store, enum form form, struct str namespace_, struct str name,
                      const struct jobset_spec *spec, struct arena *arena, struct str *ret_taken);

#endif
