/* containers.c - facts about the containers of tasks: their agent's last report, and their restarts. */
#include "core/job/facts.h"

void containers_restore(struct task *task, const struct container_status *statuses, uint32_t count)
{
    CHECK(statuses || count == 0);
    struct arena arena = {0};
    struct container_status *copy = count > 0 ? ARENA_ARRAY(&arena, struct container_status, count) : NULL;
    for (uint32_t i = 0; i < count; i++)
        container_status_copy(&arena, &statuses[i], &copy[i]);
    arena_done(&task->containers_arena);
    task->containers_arena = arena;
    task->containers = copy;
    task->container_count = count;
}

uint64_t task_container_restarts(const struct task *task)
{
    CHECK(task->container_count == 0 || task->containers);
    uint64_t restarts = task->failed_runs;
    for (uint32_t i = 0; i < task->container_count; i++)
        if (task->containers[i].role != CONTAINER_SIDECAR)
            restarts += task->containers[i].restarts;
    return restarts;
}

uint64_t job_container_restarts(const struct job *job, const struct task *ended)
{
    uint64_t restarts = 0;
    for (size_t t = 0; t < job->tasks.len; t++)
        if (!task_ended(job->tasks.items[t]->state) || job->tasks.items[t] == ended)
            restarts += task_container_restarts(job->tasks.items[t]);
    return restarts;
}

enum container_restart task_container_restart(const struct task *task, const struct container_spec *container)
{
    const struct job *job = task->job;
    if (container->own_restart || container->launch.role == CONTAINER_SIDECAR)
        return container->launch.restart;
    if ((job->jobset->form != FORM_POD && job->rjob->job.backoff_limit == 0) || inplace_is_asked(job->jobset))
        return RERUN_NEVER;
    return container->launch.restart;
}

bool task_is_plain(const struct task *task)
{
    const struct pod_spec *pod = &task->job->rjob->job.pod;
    CHECK(pod->container_count > 0 && (!pod->plain || pod->container_count == 1));
    return pod->plain && task_container_restart(task, &pod->containers[0]) == RERUN_NEVER;
}
