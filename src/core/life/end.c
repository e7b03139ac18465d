/* end.c - the end of a task: it is told to stop, its process ends, its chips are released, it leaves its
 * gang, and its Pod is deleted. The consequence for its Job is decided when the step settles
 * (recover/decide.c). */
#include "base/backoff.h"
#include "core/life/internal.h"

#include <stdio.h>

void task_tell_stop(struct step *step, const struct task *task, int64_t grace_ns)
{
    CHECK(task->machine != MACHINE_NONE && task->state == TASK_STOPPING);
    struct effect *effect = effect_add(step->effects, EFFECT_TASK_STOP);
    effect->stop.machine = task->machine;
    effect->stop.stop = (struct task_stop){task->uid, grace_ns};
}

void task_stop(struct step *step, struct task *task, bool doom, int64_t grace_ns)
{
    CHECK(grace_ns >= 0);
    if (task_ended(task->state))
        return;
    task->doomed |= doom;
    if (task_is_dead(task))
        return;
    switch (task->state) {
    case TASK_PENDING:
    case TASK_PLACED:
        task_finish(step, task, END_STOPPED);
        break;
    case TASK_STARTING:
    case TASK_RUNNING:
        lifecycle_move(&task_lifecycle, &task->state, TASK_STOPPING);
        task->stopping_since_ns = step->now_ns;
        task->stop_grace_ns = grace_ns;
        task_tell_stop(step, task, grace_ns);
        step_changed(step, CHANGE_MODIFIED, ref_task(task));
        break;
    default: /* the task is stopping already: pass on a shorter grace */
        CHECK(task->state == TASK_STOPPING);
        if (grace_ns < task->stop_grace_ns) {
            task->stop_grace_ns = grace_ns;
            task_tell_stop(step, task, grace_ns);
        }
    }
}

void task_end(struct step *step, struct task *task, enum task_end end)
{
    struct job *job = task->job;
    CHECK(end != END_NONE && job->active > 0 && (!task->ready || job->ready > 0));
    bool was_running = task->ready;
    bool success =
        end == END_EXIT && task->exit_code == 0 && task->signal == 0 && !task->doomed && !task->evicted;
    lifecycle_move(&task_lifecycle, &task->state, success ? TASK_SUCCEEDED : TASK_FAILED);
    task->end = (uint8_t)end;
    task->ready = false;
    if (!task->ended_ns)
        task->ended_ns = step->now_ns;
    if (task->machine != MACHINE_NONE) { /* for faults that are found on the machine a moment later */
        step->cluster->machines[task->machine].last_job = job->jobset->uid;
        step->cluster->machines[task->machine].last_job_ns = step->now_ns;
    }
    list_remove(&task->on_machine);
    task_release_chips(step, task);
    job->active--;
    job->ready -= was_running;
    CHECK(job->ready <= job->active && !task->holds);
    step_changed(step, CHANGE_MODIFIED, ref_task(task));
}

void task_leave_gang(struct step *step, struct task *task)
{
    CHECK(task_ended(task->state));
    if (task->gang) {
        gang_task_ended(step, task);
    } else {
        CHECK(task->job->jobset->work.loose_tasks > 0);
        task->job->jobset->work.loose_tasks--;
    }
    job_touch(task->job);
    jobset_mark(step, task->job->jobset);
}

void spare_take_out(struct step *step, struct job *job, const struct task *task)
{
    CHECK(task->job == job && job->spares.len > 0);
    for (size_t s = 0; s < job->spares.len; s++)
        if (job->spares.items[s] == task) {
            vec_remove(&job->spares, s);
            CHECK(step->jobs->spares > 0);
            step->jobs->spares--;
            return;
        }
    CHECK_UNREACHABLE();
}

static void back_off(struct step *step, struct job *job)
{
    CHECK(!job->doomed && job->spare_failures < UINT32_MAX);
    job->spare_due_ns =
        step->now_ns + backoff_wait(SPARE_BACKOFF_FIRST_NS, SPARE_BACKOFF_MAX_NS, job->spare_failures);
    job->spare_failures++;
}

void task_bury(struct step *step, struct task *task)
{
    CHECK(task_ended(task->state) && !task->holds && list_empty(&task->on_machine));
    u64_map_remove(&step->jobs->tasks, task->uid);
    char key[2 * NAME_MAX_BYTES + 2];
    int len = snprintf(key, sizeof(key), STR_FORMAT "/" STR_FORMAT, STR_ARG(task->job->jobset->namespace_),
                       STR_ARG(task->name));
    CHECK(len > 0 && (size_t)len < sizeof(key));
    str_map_remove(&step->jobs->task_names, (struct str){key, (size_t)len});
    gang_leave(task);
    if (task->job->jobset->checkpoint.laggard == task)
        task->job->jobset->checkpoint.laggard = NULL;
    step_changed(step, CHANGE_DELETED, ref_task(task));
}

void spare_ended(struct step *step, struct task *task, enum task_end end)
{
    struct job *job = task->job;
    CHECK(task_is_spare(task) && task->gang && end != END_NONE && !task_ended(task->state));
    bool was_placed = task->state != TASK_PENDING;
    lifecycle_move(&task_lifecycle, &task->state, TASK_FAILED);
    task->end = (uint8_t)end;
    task->ready = false;
    list_remove(&task->on_machine);
    task_release_chips(step, task);
    if (!task->doomed && !job->doomed && was_placed)
        step_note(step, true, "SpareLost", ref_jobset(job->jobset), STR_FORMAT ": " STR_FORMAT,
                  STR_ARG(task->name), STR_ARG(task->message.len ? task->message : STR("it has ended")));
    if (!task->doomed && job_goes_on(job) && (end == END_EXIT || end == END_START_FAILED))
        back_off(step, job);
    struct gang *gang = task->gang;
    gang_task_ended(step, task);
    gang_leave(task);
    gang_thin(gang);
    spare_take_out(step, job, task);
    task_bury(step, task);
    vec_push(&step->jobs->dead_tasks, task);
    job_touch(job);
    step_changed(step, CHANGE_MODIFIED, ref_jobset(job->jobset));
    jobset_mark(step, job->jobset);
}

/* Returns the JobSet's incident. With its first loss or request, counts and marks the JobSet as one that
 * waits for an answer. */
static struct incident *open_incident(struct step *step, struct jobset *jobset)
{
    step->jobs->incidents += !incident_is_open(&jobset->recovery.incident);
    jobset_mark(step, jobset);
    return &jobset->recovery.incident;
}

void task_note_request(struct step *step, const struct task *task, enum loss_request_kind kind,
                       struct str why)
{
    CHECK(!task_ended(task->state) && !task_is_dead(task));
    incident_note_request(open_incident(step, task->job->jobset), kind, task->uid, why);
}

void task_finish(struct step *step, struct task *task, enum task_end end)
{
    CHECK(end != END_NONE && !task_ended(task->state) && !task_is_dead(task));
    if (task_is_spare(task)) {
        spare_ended(step, task, end);
        return;
    }
    slice_rank_ended(step, task);
    bool wanted =
        task->doomed || task->job->doomed || task->job->state != JOB_ACTIVE || job_is_hidden(task->job);
    if (task->state == TASK_PENDING || (task->state == TASK_PLACED && wanted)) {
        task_end(step, task, end);
        task_leave_gang(step, task);
        task->job->sift = true;
    }
    task->end = (uint8_t)end;
    if (!task_ended(task->state) || !wanted)
        incident_note(open_incident(step, task->job->jobset), task->uid, (uint8_t)end);
}
