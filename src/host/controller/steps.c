/* steps.c - steps of many ranks, made one event a JobSet.
 *
 * A step counts when every rank has made it. The first one of an attempt is passed on at once (it ends a
 * recovery), later ones at most each STEP_PERIOD, so that the log grows with time, not with steps. A rank's
 * end is queued behind the steps that came before it.
 *
 * Looking at every rank for each report would be quadratic: while the rank that was last (the laggard) has
 * not moved, nothing can have changed.
 */
#include "host/controller/internal.h"

#include <stdio.h>

#define STEP_PERIOD_NS (500 * NS_PER_MS)

struct job_steps { /* of one JobSet */
    obj_id jobset;
    int32_t attempt;
    uint32_t slot_count;
    int64_t *slots; /* newest step of each (job, index), -1: none; as jobset->last_machines */
    uint32_t seen;  /* ranks that have reported in this attempt */
    obj_id laggard; /* the task with the lowest step at the last look; 0: look at all */
    int64_t laggard_step;
    int64_t sent_step, total, looked_ns;
    struct heap_node due; /* in controller->steps_due while a report has not been looked at */
    struct step_metric metrics[METRICS_MAX];
    char names[METRICS_MAX][32];
    size_t metric_count;
    size_t position; /* in controller->job_steps */
};

static void begin_attempt(struct job_steps *steps, const struct jobset *jobset)
{
    steps->attempt = jobset->attempt;
    steps->slot_count = jobset->slot_count;
    steps->seen = 0;
    steps->laggard = 0;
    steps->sent_step = -1;
    steps->slots = mem_realloc(steps->slots, (jobset->slot_count + 1) * sizeof(*steps->slots));
    for (uint32_t i = 0; i < jobset->slot_count; i++)
        steps->slots[i] = -1;
}

static struct job_steps *steps_of(struct controller *controller, const struct jobset *jobset)
{
    struct job_steps *steps = u64_map_get(&controller->steps_by_jobset, jobset->uid);
    if (!steps) {
        steps = mem_alloc(sizeof(*steps));
        steps->jobset = jobset->uid;
        steps->due.tie = jobset->uid;
        steps->position = controller->job_steps.len;
        vec_push(&controller->job_steps, steps);
        u64_map_put(&controller->steps_by_jobset, jobset->uid, steps);
        begin_attempt(steps, jobset);
    } else if (steps->attempt != jobset->attempt || steps->slot_count != jobset->slot_count) {
        begin_attempt(steps, jobset);
    }
    return steps;
}

void steps_forget(struct controller *controller, obj_id jobset)
{
    paces_forget(controller, jobset);
    struct job_steps *steps = u64_map_remove(&controller->steps_by_jobset, jobset);
    if (!steps)
        return;
    if (heap_has(&steps->due))
        heap_remove(&controller->steps_due, &steps->due);
    struct job_steps *last = vec_last(&controller->job_steps);
    controller->job_steps.items[steps->position] = last;
    last->position = steps->position;
    controller->job_steps.len--;
    mem_free(steps->slots);
    mem_free(steps);
}

static int64_t *slot_of(struct job_steps *steps, const struct task *task)
{
    uint32_t slot = task->job->first_slot + (uint32_t)task->index;
    CHECK(slot < steps->slot_count);
    return &steps->slots[slot];
}

static void keep_metrics(struct job_steps *steps, const struct task_step *step)
{
    steps->total = step->total;
    steps->metric_count = step->metric_count;
    for (size_t i = 0; i < step->metric_count; i++) {
        snprintf(steps->names[i], sizeof(steps->names[i]), STR_FORMAT, STR_ARG(step->metrics[i].name));
        steps->metrics[i] = (struct step_metric){str_from(steps->names[i]), step->metrics[i].micro};
    }
}

/* Does its step count? Only of tasks that run and speak libphalanx; one that is about to join again has none
 * yet. */
static bool counts(const struct task *task)
{
    return (task->joined || task->keep == KEEP_TOLD) &&
           (task->state == TASK_RUNNING || task->state == TASK_STOPPING || task->state == TASK_SUCCEEDED);
}

static bool laggard_waits(const struct controller *controller, struct job_steps *steps)
{
    const struct task *task =
        steps->laggard ? jobs_find_task(core_jobs(controller->core), steps->laggard) : NULL;
    return task && !task->job->doomed && counts(task) && *slot_of(steps, task) == steps->laggard_step;
}

/* Lowest newest step of all ranks; -1 while one of them has none. */
static int64_t lowest_step(struct job_steps *steps, const struct jobset *jobset)
{
    int64_t lowest = INT64_MAX;
    steps->laggard = 0;
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            const struct task *task = job->tasks.items[t];
            if (!counts(task) || *slot_of(steps, task) >= lowest)
                continue;
            lowest = *slot_of(steps, task);
            steps->laggard = task->uid;
            steps->laggard_step = lowest;
            if (lowest < 0)
                return -1;
        }
    }
    return lowest == INT64_MAX ? -1 : lowest;
}

static void look(struct controller *controller, struct job_steps *steps, const struct jobset *jobset)
{
    if (heap_has(&steps->due))
        heap_remove(&controller->steps_due, &steps->due);
    if (!jobset || steps->attempt != jobset->attempt || laggard_waits(controller, steps))
        return;
    steps->looked_ns = controller_mono_ns();
    int64_t lowest = lowest_step(steps, jobset);
    if (lowest <= steps->sent_step)
        return;
    steps->sent_step = lowest;
    struct pending *pending = pending_new(EVENT_PROGRESS);
    struct progress_event *progress = &pending->event.progress;
    *progress = (struct progress_event){.jobset = jobset->uid,
                                        .attempt = jobset->attempt,
                                        .step = lowest,
                                        .total = steps->total,
                                        .metric_count = steps->metric_count};
    for (size_t i = 0; i < steps->metric_count; i++)
        progress->metrics[i] =
            (struct step_metric){arena_str(&pending->arena, steps->metrics[i].name), steps->metrics[i].micro};
    commit_queue(controller, pending);
}

static void report(struct controller *controller, const struct task *task, const struct task_step *step)
{
    const struct jobset *jobset = task->job->jobset;
    struct job_steps *steps = steps_of(controller, jobset);
    int64_t *slot = slot_of(steps, task);
    steps->seen += *slot < 0;
    *slot = step->step;
    if (task->rank == 0)
        keep_metrics(steps, step);
    if (!heap_has(&steps->due)) {
        steps->due.key = steps->looked_ns + STEP_PERIOD_NS;
        heap_insert(&controller->steps_due, &steps->due);
    }
    if (steps->sent_step < 0 && steps->seen >= task->world)
        look(controller, steps, jobset);
}

/* An agent speaks for the tasks of its own machine only. */
void tracker_report(struct controller *controller, machine_id machine, const struct heartbeat *heartbeat)
{
    for (size_t i = 0; i < heartbeat->step_count; i++) {
        const struct task_step *step = &heartbeat->steps[i];
        const struct task *task = jobs_find_task(core_jobs(controller->core), step->task);
        if (task && task->machine == machine && task_step_counts(task, step) && step->step >= 0) {
            report(controller, task, step);
            if (step->pace.steps > 0)
                paces_report(controller, task, &step->pace);
        }
    }
}

void steps_before_end(struct controller *controller, const struct reports *reports)
{
    for (size_t i = 0; i < reports->count; i++) {
        const struct task *task = jobs_find_task(core_jobs(controller->core), reports->items[i].task);
        struct job_steps *steps =
            task ? u64_map_get(&controller->steps_by_jobset, task->job->jobset->uid) : NULL;
        if (steps && reports->items[i].kind == REPORT_EXITED && heap_has(&steps->due))
            look(controller, steps, task->job->jobset);
    }
}

/* While the disk is full steps wait where they are. */
static struct heap_node *steps_due(const struct controller *controller)
{
    return controller->blocked_since_ns ? NULL : heap_min(&controller->steps_due);
}

void tracker_flush(struct controller *controller)
{
    int64_t now_ns = controller_mono_ns();
    struct heap_node *node;
    while ((node = steps_due(controller)) && node->key <= now_ns) {
        struct job_steps *steps = container_of(node, struct job_steps, due);
        look(controller, steps, jobs_find_uid(core_jobs(controller->core), steps->jobset));
    }
    paces_flush(controller);
}

int64_t tracker_deadline(const struct controller *controller)
{
    const struct heap_node *node = steps_due(controller);
    int64_t paces_ns = paces_deadline(controller);
    return node && node->key < paces_ns ? node->key : paces_ns;
}

void tracker_done(struct controller *controller)
{
    while (controller->job_steps.len > 0)
        steps_forget(controller, vec_last(&controller->job_steps)->jobset);
    vec_done(&controller->job_steps);
    paces_done(controller);
    heap_done(&controller->steps_due);
    u64_map_done(&controller->steps_by_jobset);
}
