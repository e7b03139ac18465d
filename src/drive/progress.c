/* progress.c - combines the steps of many ranks into one event for each JobSet.
 *
 * A step counts when every rank has made it. The first one of an attempt is passed on at once (it ends a
 * recovery), later ones at most once in STEP_PERIOD, so that the log grows with time, not with steps. A
 * rank's end is queued after the steps that preceded it.
 *
 * All ranks that have joined through libphalanx count. Without libphalanx, ranks count whose logs have shown
 * two steps (phalanx.dev/step-pattern), because often only one rank prints; if no log has shown two, one step
 * is enough. A restarted agent counts lines from 0; the earlier count is added.
 *
 * A look at every rank for each report would be quadratic. So the ranks are examined only if the last one
 * (the laggard) has moved: otherwise the result cannot have changed.
 */
#include "drive/internal.h"

#include <stdio.h>

#define STEP_PERIOD_NS (500 * NS_PER_MS)

struct rank_steps {
    int64_t step;     /* the newest; -1: none */
    int64_t said;     /* as last reported by the agent: `step` less the counts of earlier agents */
    uint32_t reports; /* that brought a step further */
    int64_t first_plus_1;
    enum step_source source;
};
struct job_steps { /* of one JobSet */
    obj_id jobset;
    int32_t attempt;
    uint32_t slot_count;
    struct rank_steps *slots; /* of each (job, index); as jobset->slots.last_machines */
    uint32_t seen;            /* ranks that have reported in this attempt */
    uint32_t speaker;         /* the lowest rank that has reported: its metrics are the JobSet's */
    obj_id laggard;           /* the task with the lowest step at the last look; 0: examine all */
    int64_t laggard_step;
    int64_t sent_step, total, looked_ns;
    struct heap_node due; /* in driver->steps_due while a report has not been examined */
    struct step_metric metrics[METRICS_MAX];
    char names[METRICS_MAX][32];
    size_t metric_count;
    size_t position; /* in driver->job_steps */
};

static void begin_attempt(struct job_steps *steps, const struct jobset *jobset)
{
    steps->attempt = jobset->attempt;
    steps->slot_count = jobset->slots.count;
    steps->seen = 0;
    steps->speaker = UINT32_MAX;
    steps->laggard = 0;
    steps->sent_step = -1;
    steps->slots = mem_realloc(steps->slots, (jobset->slots.count + 1) * sizeof(*steps->slots));
    for (uint32_t i = 0; i < jobset->slots.count; i++)
        steps->slots[i] = (struct rank_steps){.step = -1};
}

static struct job_steps *steps_of(struct driver *driver, const struct jobset *jobset)
{
    struct job_steps *steps = u64_map_get(&driver->steps_by_jobset, jobset->uid);
    if (!steps) {
        steps = mem_alloc(sizeof(*steps));
        steps->jobset = jobset->uid;
        steps->due.tie = jobset->uid;
        steps->position = driver->job_steps.len;
        vec_push(&driver->job_steps, steps);
        u64_map_put(&driver->steps_by_jobset, jobset->uid, steps);
        begin_attempt(steps, jobset);
    } else if (steps->attempt != jobset->attempt || steps->slot_count != jobset->slots.count) {
        begin_attempt(steps, jobset);
    }
    return steps;
}

void job_steps_forget(struct driver *driver, obj_id jobset)
{
    paces_forget(driver, jobset);
    struct job_steps *steps = u64_map_remove(&driver->steps_by_jobset, jobset);
    if (!steps)
        return;
    if (heap_has(&steps->due))
        heap_remove(&driver->steps_due, &steps->due);
    struct job_steps *last = vec_last(&driver->job_steps);
    driver->job_steps.items[steps->position] = last;
    last->position = steps->position;
    driver->job_steps.len--;
    mem_free(steps->slots);
    mem_free(steps);
}

static struct rank_steps *slot_of(struct job_steps *steps, const struct task *task)
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

enum { REPORTS_FIRST = 1, REPORTS_SURE = 2 };

/* Returns whether the task's steps count for the JobSet: those of a task with libphalanx do, also while it is
 * about to rejoin and has no step yet; any other task's do from `reports` reports on. */
static bool task_counts(struct job_steps *steps, const struct task *task, uint32_t reports)
{
    bool lives = task->state == TASK_RUNNING || task->state == TASK_STOPPING || task->state == TASK_SUCCEEDED;
    return lives && (task->joined || task->keep == KEEP_TOLD || slot_of(steps, task)->reports >= reports);
}

static bool laggard_waits(const struct driver *driver, struct job_steps *steps)
{
    const struct task *task = steps->laggard ? jobs_find_task(core_jobs(driver->core), steps->laggard) : NULL;
    return task && !task->job->doomed && task_counts(steps, task, REPORTS_SURE) &&
           slot_of(steps, task)->step == steps->laggard_step;
}

/* Returns the lowest of the ranks' newest steps; -1 while a rank has none, or no task counts. */
static int64_t lowest_step(struct job_steps *steps, const struct jobset *jobset, uint32_t reports,
                           struct progress_event *ret)
{
    int64_t lowest = INT64_MAX;
    steps->laggard = 0;
    ret->source = STEP_SAID;
    ret->first_plus_1 = 0;
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            const struct task *task = job->tasks.items[t];
            if (!task_counts(steps, task, reports))
                continue;
            const struct rank_steps *slot = slot_of(steps, task);
            ret->source = slot->source > ret->source ? slot->source : ret->source;
            if (slot->first_plus_1 > 0 && (!ret->first_plus_1 || slot->first_plus_1 < ret->first_plus_1))
                ret->first_plus_1 = slot->first_plus_1;
            if (slot->step >= lowest)
                continue;
            lowest = slot->step;
            steps->laggard = task->uid;
            steps->laggard_step = lowest;
            if (lowest < 0)
                return -1;
        }
    }
    return lowest == INT64_MAX ? -1 : lowest;
}

static void look_at_steps(struct driver *driver, struct job_steps *steps, const struct jobset *jobset)
{
    if (heap_has(&steps->due))
        heap_remove(&driver->steps_due, &steps->due);
    if (!jobset || steps->attempt != jobset->attempt || laggard_waits(driver, steps))
        return;
    steps->looked_ns = driver_mono_ns(driver);
    struct progress_event ranks;
    int64_t lowest = lowest_step(steps, jobset, REPORTS_SURE, &ranks);
    if (steps->laggard == 0)
        lowest = lowest_step(steps, jobset, REPORTS_FIRST, &ranks);
    if (lowest <= steps->sent_step)
        return;
    steps->sent_step = lowest;
    struct pending *pending = pending_new(EVENT_PROGRESS);
    struct progress_event *progress = &pending->event.progress;
    *progress = (struct progress_event){.jobset = jobset->uid,
                                        .attempt = jobset->attempt,
                                        .step = lowest,
                                        .total = steps->total,
                                        .source = ranks.source,
                                        .first_plus_1 = ranks.first_plus_1,
                                        .metric_count = steps->metric_count};
    for (size_t i = 0; i < steps->metric_count; i++)
        progress->metrics[i] =
            (struct step_metric){arena_str(&pending->arena, steps->metrics[i].name), steps->metrics[i].micro};
    queue_put(driver, pending);
}

/* Takes a rank's report. A new agent counts the lines of a task's log from where it starts to read. */
static void take_step(struct rank_steps *slot, const struct task_step *step)
{
    int64_t before = slot->step;
    bool goes_on = slot->source != STEP_COUNTED && step->step >= slot->step;
    if (step->source == STEP_SAID || (step->source == STEP_READ && goes_on)) {
        slot->source = step->source;
        slot->step = step->step;
    } else {
        int64_t from = step->step >= slot->said ? slot->said : 0;
        slot->source = STEP_COUNTED;
        slot->step = (slot->step > 0 ? slot->step : 0) + step->step - from;
    }
    slot->said = step->step;
    slot->first_plus_1 = slot->source != STEP_COUNTED ? step->first_plus_1 : 0;
    slot->reports += slot->step != before && slot->reports < REPORTS_SURE;
}

static void take_report(struct driver *driver, const struct task *task, const struct task_step *step)
{
    const struct jobset *jobset = task->job->jobset;
    struct job_steps *steps = steps_of(driver, jobset);
    struct rank_steps *slot = slot_of(steps, task);
    steps->seen += slot->step < 0;
    take_step(slot, step);
    if (task->rank <= steps->speaker) {
        steps->speaker = task->rank;
        keep_metrics(steps, step);
    }
    if (!heap_has(&steps->due)) {
        steps->due.key = steps->looked_ns + STEP_PERIOD_NS;
        heap_insert(&driver->steps_due, &steps->due);
    }
    if (steps->sent_step < 0 && steps->seen >= task->world)
        look_at_steps(driver, steps, jobset);
}

/* Takes the steps of a heartbeat. Only those of the machine's own tasks count. */
void job_steps_report(struct driver *driver, machine_id machine, const struct heartbeat *heartbeat)
{
    for (size_t i = 0; i < heartbeat->step_count; i++) {
        const struct task_step *step = &heartbeat->steps[i];
        const struct task *task = jobs_find_task(core_jobs(driver->core), step->task);
        if (task && task->machine == machine && task_step_counts(task, step) && step->step >= 0) {
            take_report(driver, task, step);
            if (step->pace.steps > 0)
                paces_report(driver, task, &step->pace);
        }
    }
}

void job_steps_before_end(struct driver *driver, const struct reports *reports)
{
    for (size_t i = 0; i < reports->count; i++) {
        const struct task *task = jobs_find_task(core_jobs(driver->core), reports->items[i].task);
        struct job_steps *steps = task ? u64_map_get(&driver->steps_by_jobset, task->job->jobset->uid) : NULL;
        if (steps && reports->items[i].kind == REPORT_EXITED && heap_has(&steps->due))
            look_at_steps(driver, steps, task->job->jobset);
    }
}

/* Returns the next steps that are due; none while the log refuses records. */
static struct heap_node *steps_due(const struct driver *driver)
{
    return driver->blocked_since_ns ? NULL : heap_min(&driver->steps_due);
}

void job_steps_flush(struct driver *driver)
{
    int64_t now_ns = driver_mono_ns(driver);
    struct heap_node *node;
    while ((node = steps_due(driver)) && node->key <= now_ns) {
        struct job_steps *steps = container_of(node, struct job_steps, due);
        look_at_steps(driver, steps, jobs_find_uid(core_jobs(driver->core), steps->jobset));
    }
    paces_flush(driver);
}

int64_t job_steps_deadline(const struct driver *driver)
{
    const struct heap_node *node = steps_due(driver);
    int64_t paces_ns = paces_deadline(driver);
    return node && node->key < paces_ns ? node->key : paces_ns;
}

void job_steps_done(struct driver *driver)
{
    while (driver->job_steps.len > 0)
        job_steps_forget(driver, vec_last(&driver->job_steps)->jobset);
    vec_done(&driver->job_steps);
    paces_done(driver);
    heap_done(&driver->steps_due);
    u64_map_done(&driver->steps_by_jobset);
}
