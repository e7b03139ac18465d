/* hearing.c - the wait after a boot on a log that was restored from a backup: no task starts before every
 * machine has been heard.
 *
 * The lost part of the log may have started tasks that this log does not know, on any machine. A rank that
 * starts now could therefore exist twice. An agent that says hello names the tasks that live on its machine.
 * The agent is told to stop tasks that this log does not know, and tasks that the lost part has moved to a
 * newer attempt, in which they may have any rank. An agent that does not say hello ends its tasks when its
 * lease expires (agent/agent.h). START and Rejoin wait until every machine has said hello since the boot and
 * all these tasks have ended, but no longer than the leases last. A hello renews the lease of its machine,
 * and so extends the time in which such a task must end.
 *
 * A slice also waits until all its switches have been read since the boot (slice/slice.h, `unread`).
 *
 * A hold of the leases that only the lost part knows is not waited for.
 */
#include "core/recover/internal.h"

enum { TICK_NS = 200 * NS_PER_MS };

void hearing_begin(struct step *step)
{
    struct hearing *hearing = step->hearing;
    hearing->until_ns = step->now_ns + step_return_ns(step);
    hearing->heard = 0;
    vec_clear(&hearing->strangers);
}

static size_t place_of(const struct hearing *hearing, obj_id task)
{
    size_t i = 0;
    while (i < hearing->strangers.len && hearing->strangers.items[i] != task)
        i++;
    return i;
}

void hearing_stranger(struct step *step, obj_id task)
{
    struct hearing *hearing = step->hearing;
    if (!step_is_hearing(step))
        return;
    hearing->until_ns = step->now_ns + step_return_ns(step);
    if (place_of(hearing, task) == hearing->strangers.len)
        vec_push(&hearing->strangers, task);
}

void hearing_ended(struct step *step, obj_id task)
{
    struct hearing *hearing = step->hearing;
    size_t at = place_of(hearing, task);
    if (at < hearing->strangers.len)
        vec_remove(&hearing->strangers, at);
}

static void start_job(struct step *step, struct job *job)
{
    CHECK(!step_is_hearing(step) && job->state == JOB_ACTIVE);
    for (size_t t = 0; t < job->tasks.len; t++) {
        struct task *task = job->tasks.items[t];
        if (task->state == TASK_STARTING && !task_is_dead(task) &&
            step->cluster->machines[task->machine].state == MACHINE_READY)
            task_note_request(step, task, REQUEST_START, STR(""));
        else if (!task->parked)
            task_start_if_free(step, task);
    }
}

void hearing_start(struct step *step, struct jobset *jobset)
{
    for (uint32_t j = 0; j < jobset->job_count && !step_is_hearing(step); j++)
        if (jobset->jobs[j] && jobset->jobs[j]->state == JOB_ACTIVE)
            start_job(step, jobset->jobs[j]);
    jobset_mark(step, jobset);
}

void hearing_look(struct step *step)
{
    struct hearing *hearing = step->hearing;
    size_t count = step->cluster->machine_count;
    if (!step_is_hearing(step))
        return;
    while (hearing->heard < count && step->cluster->machines[hearing->heard].state == MACHINE_READY)
        hearing->heard++;
    bool all = hearing->heard == count && hearing->strangers.len == 0;
    if (!all && step->now_ns < hearing->until_ns)
        return;
    *hearing = (struct hearing){.strangers = hearing->strangers};
    vec_clear(&hearing->strangers);
    for (size_t i = 0; i < step->jobs->jobsets.len; i++)
        hearing_start(step, step->jobs->jobsets.items[i]);
    step->schedule = true;
}

int64_t hearing_deadline(const struct hearing *hearing, int64_t now_ns, int64_t jobs_ns)
{
    if (hearing->until_ns == 0)
        return jobs_ns;
    int64_t soon_ns = now_ns + TICK_NS; /* a JobSet that is due may have to wait */
    jobs_ns = jobs_ns > soon_ns ? jobs_ns : soon_ns;
    return jobs_ns < hearing->until_ns ? jobs_ns : hearing->until_ns;
}
