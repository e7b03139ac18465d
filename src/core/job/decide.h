/* decide.h - the answer to what a step brought upon a JobSet. Private to the job module. */
#ifndef PHX_CORE_JOB_DECIDE_H
#define PHX_CORE_JOB_DECIDE_H

#include "core/job/job.h"
#include "core/step.h"

/* Judges each loss with all that is known at the end of the step: whether the ladder may answer it, whether
 * its signature explains the others, its cause and place. */
void incident_judge(const struct step *step, struct incident *incident);
/* Answers the losses that were noted since the last call, if any: parks tasks, ends them, begins attempts,
 * fails Jobs. Called while the JobSet is reconciled, before its Jobs are. */
void incident_answer(struct step *step, struct jobset *jobset);
/* Gives the orders to start that the answered ends made due, and those that were lost. Called after the
 * JobSet was reconciled: a task that the answer or a new attempt has stopped gets none. */
void incident_start(struct step *step, struct jobset *jobset);

#endif
