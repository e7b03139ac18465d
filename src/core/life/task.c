/* task.c - the creation of a task for an index of its Job, and its new uid for each run. */
#include "core/life/internal.h"

/* Sets the name, "<job>-<index>-<5>" or "<job>-<5>" or a given one, and the host name. */
static void name_task(struct task *task, struct str name)
{
    const struct job *job = task->job;
    struct arena *arena = &task->arena;
    char suffix[SUFFIX_TEXT_MAX];
    uid_suffix(task->uid, suffix);
    /* Names are nearly all that the arena ever holds. */
    arena_reserve(arena, 2 * arena_round(job->name.len + DECIMAL_TEXT_MAX + SUFFIX_TEXT_MAX));
    if (job->jobset->form == FORM_POD) {
        const struct doc *host = doc_path(job->jobset->document, "spec", "hostname", NULL);
        task->name = job->name;
        task->hostname = arena_str(arena, doc_str(host, job->name));
        return;
    }
    if (!job->rjob->job.indexed && job->jobset->form != FORM_JOBSET) {
        task->name = name.len ? arena_str(arena, name)
                              : arena_printf(arena, STR_FORMAT "-%s", STR_ARG(job->name), suffix);
        task->hostname = task->name;
        return;
    }
    if (task_is_spare(task))
        task->hostname = arena_printf(arena, STR_FORMAT "-spare-%d", STR_ARG(job->name), -1 - task->index);
    else
        task->hostname = pod_hostname(arena, job->name, task->index);
    struct str stem = job->rjob->job.indexed ? task->hostname : job->name;
    task->name = name.len ? arena_str(arena, name) : ARENA_CONCAT(arena, stem, STR("-"), str_from(suffix));
}

struct task *task_make(struct job *job, obj_id uid, int32_t index, struct str name)
{
    CHECK(uid != 0 && index >= -SPARES_PER_JOB_MAX && index < (int64_t)job->index_count);
    struct task *task = mem_alloc(sizeof(*task));
    task->uid = task->pod_uid = uid;
    task->job = job;
    task->index = index;
    task->state = TASK_PENDING;
    task->machine = MACHINE_NONE;
    task->saved_step = -1;
    task->attempt = task->began_attempt = job->jobset->attempt;
    name_task(task, name);
    list_init(&task->on_machine);
    return task;
}

void task_name_anew(struct step *step, struct task *task)
{
    CHECK(task->name.len > 0);
    const struct job *job = task->job;
    for (obj_id salt = 1; jobs_find_pod(step->jobs, job->jobset->namespace_, task->name); salt++) {
        CHECK(job->jobset->form != FORM_POD); /* a write with a taken name is refused */
        char suffix[SUFFIX_TEXT_MAX];
        uid_suffix(task->uid ^ salt << 40, suffix);
        struct str stem = {task->name.data, task->name.len - (SUFFIX_TEXT_MAX - 1)};
        bool is_host = str_equal(task->hostname, task->name);
        task->name = arena_printf(&task->arena, STR_FORMAT "%s", STR_ARG(stem), suffix);
        task->hostname = is_host ? task->name : task->hostname;
    }
}

struct task *task_create(struct step *step, struct job *job, int32_t index)
{
    CHECK(!job->doomed && job->state == JOB_ACTIVE && index >= 0);
    struct task *task = task_make(job, step_uid(step), index, STR(""));
    task_name_anew(step, task);
    struct job_index *slot = &job->indexes[index];
    task->retry = slot->made++;
    CHECK(!slot->task || task_ended(slot->task->state)); /* one process for each name */
    CHECK(!slot->succeeded && !slot->failed);
    task->execution = job->execution;
    task->priority = job_priority(step->jobs, step->cluster, job->rjob);
    task->created_ns = step->now_ns;
    task_rank(task);
    task_take_gates(task);
    slot->task = task;
    job->jobset->work.loose_tasks++;
    vec_push(&job->tasks, task);
    job->active++;
    CHECK(job->active <= job->index_count);
    store_add_task(step->jobs, task);
    step_changed(step, CHANGE_ADDED, ref_task(task));
    return task;
}

void task_rename(struct step *step, struct task *task)
{
    CHECK(task->state == TASK_PLACED);
    if (task->parked) {
        u64_map_remove(&step->jobs->tasks, task->uid);
        task->uid = step_uid(step);
        u64_map_put(&step->jobs->tasks, task->uid, task);
        task->runs_before++;
        task->parked = task->was_spare = false;
    }
    task_rank(task); /* its ports depend on the attempt */
}
