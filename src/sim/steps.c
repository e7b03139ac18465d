/* steps.c - steps of many ranks made one event a JobSet, as src/host/controller/steps.c; with each, a window
 * of their pace, as src/host/controller/paces.c. */
#include "sim/world.h"

#include "base/hash.h"
#include "base/units.h"

#define STEP_PERIOD_NS (500 * NS_PER_MS)

static struct sim_steps *steps_of(struct world *world, const struct jobset *jobset)
{
    struct sim_steps *steps = NULL;
    for (size_t i = 0; i < world->controller.steps.len && !steps; i++)
        if (world->controller.steps.items[i]->jobset == jobset->uid)
            steps = world->controller.steps.items[i];
    if (!steps) {
        steps = mem_alloc(sizeof(*steps));
        steps->jobset = jobset->uid;
        steps->attempt = -1;
        vec_push(&world->controller.steps, steps);
    }
    if (steps->attempt != jobset->attempt) {
        steps->attempt = jobset->attempt;
        steps->seen = 0;
        steps->sent_step = -1;
        steps->changed = false;
        vec_clear(&steps->slots);
        for (uint32_t i = 0; i < jobset->slot_count; i++)
            vec_push(&steps->slots, -1);
    }
    return steps;
}

static int64_t *slot_of(struct sim_steps *steps, const struct task *task)
{
    size_t slot = task->job->first_slot + (uint32_t)task->index;
    CHECK(slot < steps->slots.len);
    return &steps->slots.items[slot];
}

static int64_t lowest_step(struct sim_steps *steps, const struct jobset *jobset)
{
    int64_t lowest = INT64_MAX;
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            const struct task *task = job->tasks.items[t];
            if (task->state < TASK_RUNNING || task->state == TASK_FAILED ||
                (!task->joined && task->keep != KEEP_TOLD))
                continue;
            int64_t step = *slot_of(steps, task);
            if (step < 0)
                return -1;
            lowest = step < lowest ? step : lowest;
        }
    }
    return lowest == INT64_MAX ? -1 : lowest;
}

/* For a while each of some machines is slow; who works there takes longer. */
static bool is_slow(const struct world *world, machine_id machine)
{
    uint64_t spell = (uint64_t)(controller_mono(world) / (4 * NS_PER_SECOND));
    return !world->healing && machine != MACHINE_NONE && hash_mix(machine * 31 + spell) % 6 == 0;
}

static void send_pace(struct world *world, const struct sim_steps *steps, const struct jobset *jobset)
{
    struct pending *pending = controller_queue(world, EVENT_PACE);
    uint32_t *own_us = ARENA_ARRAY(&pending->arena, uint32_t, jobset->slot_count);
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            const struct task *task = job->tasks.items[t];
            uint32_t slot = job->first_slot + (uint32_t)task->index;
            if (task->state == TASK_RUNNING && task->joined)
                own_us[slot] = is_slow(world, task->machine) ? 2000 : 1000;
        }
    }
    pending->event.pace = (struct pace_event){.jobset = jobset->uid,
                                              .attempt = steps->attempt,
                                              .window_ns = STEP_PERIOD_NS,
                                              .own_us = own_us,
                                              .count = jobset->slot_count};
}

static void flush(struct world *world, struct sim_steps *steps, const struct jobset *jobset)
{
    int64_t lowest = lowest_step(steps, jobset);
    steps->changed = false;
    if (lowest <= steps->sent_step)
        return;
    steps->sent_step = lowest;
    steps->sent_ns = controller_mono(world);
    struct pending *pending = controller_queue(world, EVENT_PROGRESS);
    pending->event.progress = (struct progress_event){
        .jobset = jobset->uid, .attempt = jobset->attempt, .step = lowest, .total = steps->total};
    send_pace(world, steps, jobset);
}

void steps_report(struct world *world, const struct heartbeat *heartbeat)
{
    for (size_t i = 0; i < heartbeat->step_count; i++) {
        const struct task_step *step = &heartbeat->steps[i];
        const struct task *task = jobs_find_task(core_jobs(world->controller.core), step->task);
        if (!task || !task_step_counts(task, step))
            continue;
        const struct jobset *jobset = task->job->jobset;
        struct sim_steps *steps = steps_of(world, jobset);
        int64_t *slot = slot_of(steps, task);
        steps->seen += *slot < 0;
        *slot = step->step;
        if (task->rank == 0)
            steps->total = step->total;
        steps->changed = true;
        if (steps->sent_step < 0 && steps->seen >= task->world)
            flush(world, steps, jobset);
    }
}

static const struct jobset *jobset_of(const struct world *world, obj_id uid)
{
    const struct job_store *store = core_jobs(world->controller.core);
    for (size_t i = 0; i < store->jobsets.len; i++)
        if (store->jobsets.items[i]->uid == uid)
            return store->jobsets.items[i];
    return NULL;
}

static void steps_free(struct sim_steps *steps)
{
    vec_done(&steps->slots);
    mem_free(steps);
}

void steps_flush(struct world *world, bool all)
{
    int64_t now_ns = controller_mono(world);
    for (size_t i = 0; i < world->controller.steps.len;) {
        struct sim_steps *steps = world->controller.steps.items[i];
        const struct jobset *jobset = jobset_of(world, steps->jobset);
        if (!jobset) {
            vec_remove(&world->controller.steps, i);
            steps_free(steps);
            continue;
        }
        if (steps->changed && steps->attempt == jobset->attempt &&
            (all || steps->sent_ns + STEP_PERIOD_NS <= now_ns))
            flush(world, steps, jobset);
        i++;
    }
}

int64_t steps_deadline(const struct world *world)
{
    int64_t due_ns = INT64_MAX;
    for (size_t i = 0; i < world->controller.steps.len; i++) {
        const struct sim_steps *steps = world->controller.steps.items[i];
        const struct jobset *jobset = steps->changed ? jobset_of(world, steps->jobset) : NULL;
        if (jobset && jobset->attempt == steps->attempt && steps->sent_ns + STEP_PERIOD_NS < due_ns)
            due_ns = steps->sent_ns + STEP_PERIOD_NS;
    }
    return due_ns;
}

void steps_done(struct world *world)
{
    for (size_t i = 0; i < world->controller.steps.len; i++)
        steps_free(world->controller.steps.items[i]);
    vec_clear(&world->controller.steps);
}
