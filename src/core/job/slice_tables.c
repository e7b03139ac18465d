/* slice_tables.c - ranks are told by which tables their slice is routed (slice/slice.h): at their start, when
 * the tables change, and when their agent was away. */
#include "core/job/internal.h"
#include "core/job/life.h"
#include "core/slice/slice.h"

void slice_tell_tables(struct step *step, const struct task *task)
{
    const struct slice *slice =
        step->slices->list.len ? slice_find(step->slices, task->job->jobset->uid) : NULL;
    if (!slice || slice->tables == 0)
        return;
    CHECK(task->machine != MACHINE_NONE && slice->tables_name.len > 0);
    struct effect *effect = effect_add(step->effects, EFFECT_TASK_NOTICE);
    effect->notice.machine = task->machine;
    effect->notice.notice = (struct task_notice){.kind = NOTICE_TABLES,
                                                 .task = task->uid,
                                                 .step = slice->tables,
                                                 .tables = buf_str(&slice->tables_name)};
}

static bool takes_tables(const struct task *task)
{
    CHECK(task->job && task->state < TASK_STATES);
    return task->state == TASK_STARTING || task->state == TASK_RUNNING;
}

void jobs_tell_tables(struct step *step, const struct machine *machine)
{
    CHECK(machine->id < step->cluster->machine_count);
    if (step->slices->list.len == 0)
        return;
    list_for_each(node, &step->jobs->machine_tasks[machine->id])
    {
        const struct task *task = container_of(node, struct task, on_machine);
        if (takes_tables(task))
            slice_tell_tables(step, task);
    }
}

void jobs_slice_rerouted(struct step *step, const struct jobset *jobset)
{
    for (uint32_t j = 0; j < jobset->job_count; j++)
        for (size_t t = 0; jobset->jobs[j] && t < jobset->jobs[j]->tasks.len; t++)
            if (takes_tables(jobset->jobs[j]->tasks.items[t]))
                slice_tell_tables(step, jobset->jobs[j]->tasks.items[t]);
}
