/* slice_tables.c - the routing tables of a slice (slice/slice.h). Ranks receive the name of the tables at
 * their start, when the tables change, and when their agent reconnects. They report the tables that their
 * chips have loaded.
 *
 * A rank's report counts from the opening of a session of its chips to the session's close or the end of its
 * process (struct rank_routes). The chips of a rank without a session do not forward by tables of the slice,
 * so no drain waits for it. Before it loads tables, the log has its opening, and the rank the newest tables.
 */
#include "core/gang/internal.h"
#include "core/slice/slice.h"

void slice_tell_tables(struct step *step, const struct task *task)
{
    const struct slice *slice =
        step->slices->list.len ? slice_find(step->slices, task->job->jobset->uid) : NULL;
    if (!slice || slice->tables == 0)
        return;
    CHECK(task->machine != MACHINE_NONE && slice->tables_name.len > 0 && slice->tables_number <= INT64_MAX);
    struct effect *effect = effect_add(step->effects, EFFECT_TASK_NOTICE);
    effect->notice.machine = task->machine;
    effect->notice.notice = (struct task_notice){.kind = NOTICE_TABLES,
                                                 .task = task->uid,
                                                 .step = (int64_t)slice->tables_number,
                                                 .session = task->routes.open ? task->routes.session : 0,
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

/* --- reports of ranks ----------------------------------------------------------------------------------- */

static void mark_pod(struct step *step, const struct task *task)
{
    CHECK(task->machine < step->cluster->machine_count);
    uint32_t pod = step->cluster->machines[task->machine].pod;
    if (pod < step->slices->pod_count)
        step->slices->pods[pod]->recount = true;
}

/* Returns the switches that the tables avoid: all, if the slice is part of a cube, a mesh of copper. */
static uint64_t switches_avoided(const struct slice *slice, uint64_t without)
{
    return slice_shape_is_whole(&slice->place.cubes.shape) ? without : UINT64_MAX;
}

static uint64_t switches_used(const struct slice *slice, uint64_t switches)
{
    return slice_shape_is_whole(&slice->place.cubes.shape) ? switches & ALL_SWITCHES : 0;
}

/* Replaces the tables of a slice after the log was restored from a backup, because its lost part has given
 * ranks tables that this log does not know. */
static void replace_lost(struct step *step, const struct task *task, struct slice *slice, uint64_t number)
{
    CHECK(slice_tables_are_lost(step, slice, number));
    slice_renumber_tables(step, slice);
    slices_read_anew(step);
    step_note(step, true, "LogRestored", ref_jobset(task->job->jobset),
              "rank %u has routing tables that the log does not know: all ranks go on with " STR_FORMAT,
              task->rank, STR_ARG(buf_str(&slice->tables_name)));
    jobs_slice_rerouted(step, task->job->jobset);
}

/* Returns the switches over which a rank sees other chips than it should, while its session is open. */
static uint64_t wrong_of_rank(const struct rank_routes *routes)
{
    return routes->open ? routes->wrong : 0;
}

static uint64_t wrong_of_ranks(const struct jobset *jobset)
{
    uint64_t wrong = 0;
    for (uint32_t j = 0; j < jobset->job_count; j++)
        for (size_t t = 0; jobset->jobs[j] && t < jobset->jobs[j]->tasks.len; t++)
            wrong |= wrong_of_rank(&jobset->jobs[j]->tasks.items[t]->routes);
    return wrong;
}

/* Updates the slice's wrong switches from the reports of all its ranks, and notes new ones. */
static void settle_wrong(struct step *step, const struct task *task, struct slice *slice)
{
    uint64_t wrong = switches_used(slice, wrong_of_ranks(task->job->jobset)), new = wrong & ~slice->wrong;
    if (wrong == slice->wrong)
        return;
    CHECK(slice_find(step->slices, task->job->jobset->uid) == slice && !(wrong & ~ALL_SWITCHES));
    slice->wrong = wrong;
    step->slices->pods[slice->place.pod]->dirty = true;
    for (uint32_t number = 0; number < POD_SWITCHES; number++)
        if (new >> number & 1)
            step_note(step, true, "WrongWire", ref_jobset(task->job->jobset),
                      "rank %u sees other chips over " STR_FORMAT " than its circuits join", task->rank,
                      STR_ARG(step->slices->pods[slice->place.pod]->switches[number].shown.name));
}

void slice_take_routes(struct step *step, struct task *task, const struct rank_routes *routes)
{
    struct slice *slice = step->slices->list.len ? slice_find(step->slices, task->job->jobset->uid) : NULL;
    struct rank_routes *known = &task->routes;
    if (!slice || slice->tables == 0 || routes->session == 0 || routes->session < known->session)
        return;
    bool same = routes->session == known->session, opens = routes->open && routes->tables == 0;
    if (same && (!known->open || (routes->open && !opens && routes->tables < known->tables)))
        return;
    bool sees_other = wrong_of_rank(routes) != wrong_of_rank(known);
    if (!(same && opens))
        *known = *routes;
    known->wrong = routes->wrong;
    if (sees_other)
        settle_wrong(step, task, slice);
    if (opens && !same) { /* the rank loads no older tables than those that it receives now */
        known->tables = slice->tables_number;
        known->without = slice->tables_out;
    }
    known->without = switches_avoided(slice, known->without);
    if (slice_tables_are_lost(step, slice, routes->tables))
        replace_lost(step, task, slice, routes->tables);
    else if (opens)
        slice_tell_tables(step, task); /* repeated, in case the answer to an earlier report was lost */
    mark_pod(step, task);
}

void slice_rank_ended(struct step *step, struct task *task)
{
    if (task->routes.session == 0)
        return;
    bool saw = wrong_of_rank(&task->routes) != 0;
    task->routes = (struct rank_routes){0};
    mark_pod(step, task);
    struct slice *slice = saw ? slice_find(step->slices, task->job->jobset->uid) : NULL;
    if (slice)
        settle_wrong(step, task, slice);
}

/* Returns whether the task's process may live and its chips have tables. */
static bool has_tables(const struct task *task)
{
    return task->routes.open && task->state >= TASK_STARTING && !task_ended(task->state) &&
           !task_is_dead(task);
}

static void note_late(struct step *step, const struct pod_now *pod, uint64_t late)
{
    for (uint32_t number = 0; number < POD_SWITCHES; number++) {
        const struct switch_now *now = &pod->switches[number];
        const struct jobset *jobset = late >> number & 1 ? jobs_find_uid(step->jobs, now->user_jobset) : NULL;
        if (jobset)
            step_note(step, true, "RerouteUnanswered", ref_jobset(jobset),
                      "rank %u has not loaded tables without " STR_FORMAT " within %d s; %u ranks have not",
                      now->user_rank, STR_ARG(now->shown.name), (int)(SLICE_ANSWER_MAX_NS / NS_PER_SECOND),
                      now->users);
    }
}

void jobs_count_switch_users(struct step *step, struct pod_now *pod)
{
    const struct pod *config = &step->cluster->pods[pod->index];
    CHECK(pod->index < step->cluster->pod_count);
    pod_count_begin(pod);
    for (machine_id m = config->first; m < config->first + config->count; m++)
        list_for_each(node, &step->jobs->machine_tasks[m])
        {
            const struct task *task = container_of(node, struct task, on_machine);
            if (has_tables(task))
                pod_count_rank(pod, task->job->jobset->uid, task->rank, task->routes.without);
        }
    note_late(step, pod, pod_count_end(step, pod));
}
