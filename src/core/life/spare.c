/* spare.c - spares, which are tasks that wait for a rank: `phalanx.dev/spares` of an Indexed Job, or of its
 * queue.
 *
 * A spare has no completion index, no host name of a rank, and no part in its Job's success, failures or
 * readiness. It is in job->spares, not in job->tasks, and in a separate gang at the end of the queue. A spare
 * is made when every rank of its Job is ready. It is placed on a machine without tasks of its JobSet, and on
 * one that caused restarts only if it fits nowhere else. The loss of a spare is not a failure, and another is
 * made: at once if its machine was lost, after a back-off if its process ended unasked.
 *
 * A warm spare runs, has joined, and waits (PHX_SPARE=1). A cold one is PLACED and never told to start.
 *
 * When a JobSet that restarts in place would replace a lost rank by a new task, a spare takes the index
 * instead (spare_take). It moves to job->tasks and is that task from then on. A warm spare becomes a keeper
 * that is told of its rank with the others (recover/rejoin.c); a cold one becomes a placed task.
 *
 * Spares give up their chips, and the topology domain to which a spare binds its Job, for a gang that fits
 * only without them: the gang at the head of the queue if its priority is higher, and any gang of the spare's
 * own JobSet (spare_yield). They also give them up while no rank of their Job has a machine.
 */
#include "core/life/internal.h"
#include "core/gang/request.h"
#include "core/gang/trial.h"

/* The number of gangs of other JobSets that one pass tries: the head, and infeasible ones before it. */
enum { YIELD_TRIES_MAX = 4 };

/* --- creation and end ------------------------------------------------------------------------- */

static int32_t free_index(const struct job *job)
{
    int32_t index = -1;
    for (size_t s = 0; s < job->spares.len; s++)
        if (job->spares.items[s]->index == index) {
            index--;
            s = SIZE_MAX; /* the loop's increment makes it 0 */
        }
    CHECK(index >= -SPARES_PER_JOB_MAX - 1);
    return index;
}

static void make(struct step *step, struct job *job)
{
    CHECK(!job->doomed && job->state == JOB_ACTIVE);
    struct task *task = task_make(job, step_uid(step), free_index(job), STR(""));
    task_name_anew(step, task);
    task->execution = job->execution;
    task->priority = job_priority(step->jobs, step->cluster, job->rjob);
    task->created_ns = step->now_ns;
    task->was_spare = true;
    task_rank(task);
    task_take_gates(task);
    vec_push(&job->spares, task);
    step->jobs->spares++;
    store_add_task(step->jobs, task);
    gang_form_spare(step, task);
    step_changed(step, CHANGE_ADDED, ref_task(task));
    step_changed(step, CHANGE_MODIFIED, ref_jobset(job->jobset));
}

static void stop(struct step *step, struct task *task)
{
    task_stop(step, task, true, task->job->rjob->job.pod.grace_s * NS_PER_SECOND);
}

void spare_stop_all(struct step *step, struct job *job)
{
    for (size_t s = job->spares.len; s > 0; s--)
        stop(step, job->spares.items[s - 1]); /* stop() may remove the spare from the list */
}

void spare_leave(struct step *step, struct task *task, struct str why)
{
    CHECK(task_is_spare(task));
    if (task->doomed || task_ended(task->state))
        return;
    step_note(step, false, "SpareLeft", ref_jobset(task->job->jobset), STR_FORMAT ": " STR_FORMAT,
              STR_ARG(task->name), STR_ARG(why));
    /* The next spare has to wait, because it might get the same place. */
    if (job_goes_on(task->job) && task->job->spare_due_ns < step->now_ns + SPARE_BACKOFF_FIRST_NS)
        task->job->spare_due_ns = step->now_ns + SPARE_BACKOFF_FIRST_NS;
    job_touch(task->job);
    jobset_mark(step, task->job->jobset);
    stop(step, task);
}

/* --- reconciliation --------------------------------------------------------------------------- */

/* Returns whether a rank was placed on the spare's machine later. Both would be lost with that machine. */
static bool shares_machine(const struct step *step, const struct task *task)
{
    if (task->machine == MACHINE_NONE)
        return false;
    list_for_each(node, &step->jobs->machine_tasks[task->machine])
    {
        const struct task *other = container_of(node, struct task, on_machine);
        if (other->job->jobset == task->job->jobset && !task_is_spare(other) && !other->doomed)
            return true;
    }
    return false;
}

static void look_at(struct step *step, struct task *task)
{
    CHECK(task_is_spare(task));
    bool cold = spares_are_cold(task->job);
    if (task->doomed)
        return;
    if (!jobset_parks(task->job->jobset) && shares_machine(step, task))
        spare_leave(step, task, STR("a rank is on its machine now"));
    else if (cold && (task->state == TASK_STARTING || task->state == TASK_RUNNING))
        spare_leave(step, task, STR("only its room is wanted now"));
    else
        task_start_if_free(step, task);
}

/* The state of the Job's ranks. A process that was told to stop belongs to an earlier run. */
struct ranks {
    bool placed;    /* a rank of this run has a machine */
    bool all_ready; /* all wanted ranks run and are ready */
};

static struct ranks look_at_ranks(const struct job *job)
{
    struct ranks ranks = {.all_ready = job->ready > 0 && (int32_t)job->ready >= job_wanted(job)};
    for (size_t t = 0; t < job->tasks.len; t++) {
        const struct task *task = job->tasks.items[t];
        if (task_ended(task->state))
            continue;
        bool leaves = task->doomed || task->evicted || task->state == TASK_STOPPING;
        ranks.all_ready &= !leaves;
        ranks.placed |= !leaves && task->machine != MACHINE_NONE;
    }
    return ranks;
}

/* Stops the spares of a Job without a placed rank, because they hold resources for which its own gang, or
 * another, waits. */
static void leave_if_no_rank_is_placed(struct step *step, struct job *job, struct ranks ranks)
{
    if (ranks.placed || jobset_parks(job->jobset))
        return;
    for (size_t s = job->spares.len; s > 0; s--)
        spare_leave(step, job->spares.items[s - 1], STR("no rank of its Job has a machine"));
}

void spare_look(struct step *step, struct job *job)
{
    CHECK(!job->gone);
    uint32_t count = spares_wanted(job), living = 0;
    if (job->spare_due_ns && job->spare_due_ns <= step->now_ns)
        job->spare_due_ns = 0;
    if (count == 0 && job->spares.len == 0)
        return;
    struct ranks ranks = look_at_ranks(job);
    leave_if_no_rank_is_placed(step, job, ranks);
    for (size_t s = job->spares.len; s > 0; s--) {
        struct task *task = job->spares.items[s - 1];
        look_at(step, task);
    }
    for (size_t s = 0; s < job->spares.len; s++)
        living += !job->spares.items[s]->doomed;
    /* While a restart is prepared, any of the spares may be taken, so none is stopped. */
    for (size_t s = job->spares.len; s > 0 && living > count && !jobset_parks(job->jobset); s--) {
        struct task *task = job->spares.items[s - 1];
        living -= !task->doomed;
        if (!task->doomed)
            stop(step, task);
    }
    if (job->spare_due_ns || !ranks.all_ready || jobset_parks(job->jobset))
        return;
    while (living < count && job->spares.len < SPARES_PER_JOB_MAX) {
        make(step, job);
        living++;
    }
}

int64_t spare_deadline(const struct job *job)
{
    CHECK(!job->spare_due_ns || job_goes_on(job));
    return job->spare_due_ns ? job->spare_due_ns : INT64_MAX;
}

void spare_resized(struct step *step, struct jobset *jobset)
{
    for (uint32_t i = 0; i < jobset->job_count; i++)
        if (jobset->jobs[i] && (jobset->jobs[i]->spares.len > 0 || spares_wanted(jobset->jobs[i]) > 0)) {
            job_touch(jobset->jobs[i]);
            jobset_mark(step, jobset);
        }
}

void spare_joined(struct step *step, struct task *task)
{
    CHECK(task_is_spare(task));
    if (!task_is_ready_spare(task, step->cluster))
        return;
    task->job->spare_failures = 0;
    step_note(step, false, "SpareReady", ref_jobset(task->job->jobset),
              STR_FORMAT " on " STR_FORMAT " waits for a rank", STR_ARG(task->name),
              STR_ARG(step->cluster->machines[task->machine].name));
    step_changed(step, CHANGE_MODIFIED, ref_jobset(task->job->jobset));
    if (task->job->jobset->recovery.move.state != MOVE_NONE)
        jobset_mark(step, task->job->jobset);
}

/* --- taking a rank ---------------------------------------------------------------------------- */

static struct ladder_place place_of(const struct step *step, const struct task *task, machine_id left)
{
    CHECK(task->machine < step->cluster->machine_count);
    const struct machine *machine = &step->cluster->machines[task->machine];
    const struct machine *before =
        left < step->cluster->machine_count ? &step->cluster->machines[left] : NULL;
    struct ladder_place place = {.machine = task->machine,
                                 .suspect = machine->suspect || machine->isolation != ISOLATION_HEALTHY,
                                 .same_rack = before && before->block == machine->block,
                                 .same_pod = before && before->pod == machine->pod};
    for (size_t i = 0; i < task->job->jobset->history.suspect_count; i++)
        place.caused |= task->job->jobset->history.suspects[i] == task->machine;
    return place;
}

static struct task *choose(const struct step *step, const struct job *job, machine_id left)
{
    struct task *best = NULL;
    struct ladder_place best_place = {0};
    for (size_t s = 0; s < job->spares.len; s++) {
        struct task *task = job->spares.items[s];
        if (!task_is_ready_spare(task, step->cluster) || shares_machine(step, task))
            continue;
        struct ladder_place place = place_of(step, task, left);
        if (best && ladder_place_compare(&place, &best_place) >= 0)
            continue;
        best = task;
        best_place = place;
    }
    return best;
}

static void take_index(struct step *step, struct task *task, int32_t index)
{
    struct job *job = task->job;
    struct job_index *slot = &job->indexes[index];
    CHECK(!slot->task || task_ended(slot->task->state)); /* one process for each name */
    CHECK(!slot->succeeded && !slot->failed);
    task->index = index;
    task->retry = slot->made++;
    task->hostname = arena_printf(&task->arena, STR_FORMAT "-%d", STR_ARG(job->name), index);
    task->execution = job->execution;
    slot->task = task;
    vec_push(&job->tasks, task);
    job->active++;
    job->ready += task->ready;
    CHECK(job->active <= job->index_count && job->ready <= job->active);
    job->jobset->slots.last_machines[job->first_slot + (uint32_t)index] = task->machine;
    task_rank(task);
}

/* Returns whether a process of an older Job of the place still has the index. A new task would wait for its
 * end; a spare that runs cannot. */
static bool index_is_taken(const struct job *job, int32_t index)
{
    const struct job *old = job->jobset->ending[job->global_index];
    return next_elder(&old, index) != NULL;
}

struct task *spare_take(struct step *step, struct job *job, int32_t index)
{
    struct jobset *jobset = job->jobset;
    CHECK(index >= 0 && (uint32_t)index < job->index_count);
    if (!jobset_parks(jobset) || job->spares.len == 0 || inplace_has_succeeded(jobset))
        return NULL; /* a succeeded rank does not return: the failure policy answers */
    if (index_is_taken(job, index))
        return NULL;
    struct task *task = choose(step, job, jobset->slots.last_machines[job->first_slot + (uint32_t)index]);
    if (!task)
        return NULL;
    bool warm = task->state == TASK_RUNNING;
    spare_take_out(step, job, task);
    take_index(step, task, index);
    task->spare = false;
    task->was_spare = warm;
    task->keep = warm ? KEEP_WAITS : KEEP_NO;
    task->joined = false; /* as a rank */
    gang_adopt_spare(step, task->gang);
    step_note(step, false, "SpareActivated", ref_jobset(jobset),
              STR_FORMAT " on " STR_FORMAT " takes rank %u as attempt %d", STR_ARG(task->name),
              STR_ARG(step->cluster->machines[task->machine].name), task->rank, jobset->attempt);
    job_touch(job);
    step_changed(step, CHANGE_MODIFIED, ref_task(task));
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
    return task;
}

/* --- giving up resources ---------------------------------------------------------------------- */

static bool fits_without(const struct step *step, const struct gang *gang, struct placement *places)
{
    struct request request;
    struct buf why BUF_CLEANUP = {0};
    request_gang(&request, step->jobs, step->cluster, gang, gang->tasks.len);
    bool fits = request_place(&request, places, &why);
    request_drop(&request);
    return fits;
}

static bool fits_with(const struct step *step, const struct gang *gang, struct placement *places)
{
    struct request request;
    struct buf why BUF_CLEANUP = {0};
    request_gang(&request, step->jobs, step->cluster, gang, gang->tasks.len);
    bool fits = request_add_spares(&request, gang) && request_place(&request, places, &why);
    request_drop(&request);
    return fits;
}

/* Returns whether the gang may need the spare's resources: its chips, or cpu and memory if the machine counts
 * them. */
static bool is_needed(const struct step *step, const struct task *spare, const struct placement *place)
{
    const struct machine *machine = &step->cluster->machines[place->machine];
    return (spare->chips & place->chips) || machine->cpu_milli || machine->memory_bytes;
}

/* Returns whether the spare prevents a placement of the task's Job, which has an exclusive topology domain: a
 * spare of that Job in another domain, or a spare of another Job of its JobSet in this one. */
static bool is_in_the_way(const struct step *step, const struct task *spare, const struct task *task,
                          const struct placement *place)
{
    CHECK(task_is_spare(spare) && place->machine < step->cluster->machine_count);
    const struct machine *machines = step->cluster->machines;
    struct str key = task->job->rjob->exclusive_topology, there, here;
    if (!key.len || spare->machine == MACHINE_NONE || !machine_label(&machines[place->machine], key, &there))
        return false;
    bool inside = machine_label(&machines[spare->machine], key, &here) && str_equal(here, there);
    return inside == (spare->job != task->job);
}

static void leave_domains(struct step *step, const struct gang *gang, const struct placement *places,
                          struct str why)
{
    const struct jobset *jobset = gang->jobset;
    for (uint32_t i = 0; jobset->entry.exclusive && i < jobset->job_count; i++)
        for (size_t s = jobset->jobs[i] ? jobset->jobs[i]->spares.len : 0; s > 0; s--) {
            /* The loop runs backwards, because spare_leave may remove the spare from the list. */
            struct task *spare = jobset->jobs[i]->spares.items[s - 1];
            size_t t = 0;
            while (t < gang->tasks.len && !is_in_the_way(step, spare, gang->tasks.items[t], &places[t]))
                t++;
            if (t < gang->tasks.len)
                spare_leave(step, spare, why);
        }
}

static void give_up(struct step *step, const struct gang *gang, const struct placement *places)
{
    struct buf why BUF_CLEANUP = {0};
    buf_printf(&why, STR_FORMAT " needs its room", STR_ARG(gang->jobset->key));
    leave_domains(step, gang, places, buf_str(&why));
    for (size_t t = 0; t < gang->tasks.len; t++)
        list_for_each_safe(node, after, &step->jobs->machine_tasks[places[t].machine])
        {
            struct task *task = container_of(node, struct task, on_machine);
            if (task_is_spare(task) && spare_gives_way(task, gang) && is_needed(step, task, &places[t]))
                spare_leave(step, task, buf_str(&why));
        }
}

enum yield {
    YIELD_WAITS, /* the gang fits now, or once others have ended: it keeps its turn */
    YIELD_DONE,  /* spares have given up their resources for the gang */
    YIELD_NEVER, /* the gang does not fit even on the empty cluster */
};

static enum yield yield_to(struct step *step, const struct gang *gang)
{
    CHECK(gang->state == GANG_QUEUED && !gang_is_spare(gang));
    struct placement *places = mem_alloc(gang->tasks.len * sizeof(*places));
    enum yield yield = YIELD_WAITS;
    bool fits = fits_without(step, gang, places);
    if (!fits && fits_with(step, gang, places)) {
        give_up(step, gang, places);
        yield = YIELD_DONE;
    } else if (!fits && !gang_feasible(step->jobs, step->cluster, gang, NULL)) {
        yield = YIELD_NEVER;
    }
    mem_free(places);
    return yield;
}

static bool has_spares(const struct jobset *jobset)
{
    for (uint32_t i = 0; i < jobset->job_count; i++)
        if (jobset->jobs[i] && jobset->jobs[i]->spares.len > 0)
            return true;
    return false;
}

/* A gang of a JobSet that has spares is tried wherever it is in the queue, because a gang before it may wait
 * for this very JobSet to end. Among the others, the first feasible one is tried, within YIELD_TRIES_MAX. */
void spare_yield(struct step *step)
{
    const struct sched_queue *queue = &step->jobs->queue;
    size_t tries = 0;
    bool others = true;
    for (size_t i = 0; step->jobs->spares > 0 && i < queue->gangs.len; i++) {
        const struct gang *gang = container_of(queue->gangs.items[i], struct gang, queued);
        if (gang_is_spare(gang))
            return; /* only spares follow, or gangs of no higher priority */
        bool own = has_spares(gang->jobset);
        if (gang_is_gated(gang) || gang_is_named(gang) || gang->thinned || (!own && !others))
            continue;
        enum yield yield = yield_to(step, gang);
        if (yield == YIELD_DONE)
            return;
        others = others && yield == YIELD_NEVER && ++tries < YIELD_TRIES_MAX;
    }
}
