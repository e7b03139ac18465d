/* means.c - reasons why a rung of the ladder cannot be carried out for a JobSet now. */
#include "core/recover/internal.h"

static bool is_one_world(const struct jobset_spec *spec)
{
    for (size_t r = 1; r < spec->rjob_count; r++)
        if (!str_equal(spec->rjobs[r].group, spec->rjobs[0].group))
            return false;
    return true;
}

bool dump_has_state(const struct task *task)
{
    return !task->was_spare || task->joined;
}

/* Returns whether the survivor can save. The tasks on a lost machine end one after the other, and do not
 * count as survivors meanwhile. */
static bool can_save(const struct step *step, const struct task *task)
{
    return recovery_keeps(task) && dump_has_state(task) &&
           step->cluster->machines[task->machine].state != MACHINE_LOST;
}

const char *dump_lacks(const struct step *step, const struct jobset *jobset)
{
    if (jobset->form != FORM_JOBSET)
        return "only a JobSet begins anew as a whole";
    if (step->cluster->checkpoint_dir.len == 0)
        return "there is no storage for checkpoints";
    if (!is_one_world(&jobset->spec))
        return "its ranks are more than one world";
    if (jobset->recovery.absence.replicas.len > 0)
        return "replicas of it are away";
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++)
            if (can_save(step, job->tasks.items[t]))
                return NULL;
    }
    return "no survivor can save";
}

const char *shrink_lacks(const struct jobset *jobset, size_t away)
{
    CHECK(away > 0);
    size_t least = jobset->spec.min_replicas > 1 ? jobset->spec.min_replicas : 1;
    if (!jobset->spec.replica_size)
        return "it is not divided into replicas";
    if (jobset->spec.replica_size != replica_size(jobset))
        return "replicas of another size are away";
    return away + least > jobset_replicas(jobset) ? "fewer replicas than its least would be left" : NULL;
}
