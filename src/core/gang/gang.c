/* gang.c - the queue of gangs, and the allocation of their chips. form.c decides which tasks form a gang;
 * request.c makes the request to the scheduler. */
#include "core/gang/internal.h"
#include "core/gang/request.h"
#include "core/gang/trial.h"
#include "core/lemon/lemon.h"
#include "core/sched/capacity.h"

enum { SCHEDULE_ATTEMPTS_MAX = 64 };

/* Marks the JobSets with a spare on the machine. A move waits until the spares that are to take its ranks are
 * on ready machines (recover/move.c). */
static void mark_spares_there(struct step *step, const struct machine *machine)
{
    list_for_each(node, &step->jobs->machine_tasks[machine->id])
    {
        const struct task *task = container_of(node, struct task, on_machine);
        if (task_is_spare(task))
            jobset_mark(step, task->job->jobset);
    }
}

void machine_book(struct step *step, const struct machine *machine, bool was_schedulable)
{
    CHECK(machine->id < step->cluster->machine_count);
    machine_book_free(step, &step->cluster->machines[machine->id]);
    mark_spares_there(step, machine);
    if (machine_schedulable(machine) == was_schedulable)
        return;
    step->room |= !was_schedulable;
    step->schedule = true;
}

/* --- asking for places ------------------------------------------------------------------------ */

/* Releases the resources of ending tasks of the same JobSet whose chips a new task takes over. Ending tasks
 * without chips release their cpu and memory. */
static void take_over(struct step *step, const struct jobset *jobset, machine_id machine, uint64_t chips)
{
    CHECK(machine < step->cluster->machine_count);
    if (jobset->old_jobs.len == 0)
        return;
    list_for_each_safe(node, after, &step->jobs->machine_tasks[machine])
    {
        struct task *task = container_of(node, struct task, on_machine);
        if (task->holds && task->job->doomed && task->job->jobset == jobset &&
            ((task->chips & chips) || !task->chips))
            task_release_chips(step, task);
    }
}

static bool one_waits(const struct jobset *jobset)
{
    for (size_t g = 0; g < jobset->gangs.len; g++)
        if (jobset->gangs.items[g]->state == GANG_QUEUED && !gang_is_spare(jobset->gangs.items[g]))
            return true;
    return false;
}

/* Counts a run of the machine if the whole gang is on it: the outcome is then evidence about the machine. */
static void count_run(struct step *step, const struct gang *gang)
{
    CHECK(gang->state == GANG_QUEUED && gang->alive > 0);
    machine_id first = gang->tasks.len && !gang_is_spare(gang) ? gang->tasks.items[0]->machine : MACHINE_NONE;
    for (size_t t = 1; t < gang->tasks.len; t++)
        if (gang->tasks.items[t]->machine != first)
            return;
    if (first != MACHINE_NONE)
        lemon_count(step, &step->cluster->machines[first], LEMON_SINGLE_NODE_RUN);
}

static void commit(struct step *step, struct gang *gang, const struct placement *places,
                   const struct slice_place *slice)
{
    CHECK(gang->state == GANG_QUEUED && !gang->preflight && !gang->thinned);
    bool is_spare = gang_is_spare(gang);
    CHECK(gang->waiting == gang->alive && gang->alive == gang->tasks.len); /* all tasks at once */
    for (size_t t = 0; t < gang->tasks.len; t++) {
        struct task *task = gang->tasks.items[t];
        const struct pod_spec *pod = &task->job->rjob->job.pod;
        CHECK(places[t].machine < step->cluster->machine_count && !task->holds);
        take_over(step, gang->jobset, places[t].machine, places[t].chips);
        struct machine *machine = &step->cluster->machines[places[t].machine];
        task->cpu_milli = pod->cpu_request_milli;
        task->memory_bytes = pod->memory_request_bytes;
        machine_take(machine, places[t].chips, task->cpu_milli, task->memory_bytes);
        machine_book_free(step, machine);
        lifecycle_move(&task_lifecycle, &task->state, TASK_PLACED);
        task->machine = places[t].machine;
        task->chips = task->chips_were = places[t].chips;
        task->holds = true;
        task->placed_ns = step->now_ns;
        if (!is_spare)
            gang->jobset->slots.last_machines[task->job->first_slot + (uint32_t)task->index] = task->machine;
        list_append(&step->jobs->machine_tasks[task->machine], &task->on_machine);
        step_changed(step, CHANGE_MODIFIED, ref_task(task));
        step_note(step, false, "Scheduled", ref_task(task),
                  "Successfully assigned " STR_FORMAT "/" STR_FORMAT " to " STR_FORMAT,
                  STR_ARG(gang->jobset->namespace_), STR_ARG(task->name), STR_ARG(machine->name));
    }
    count_run(step, gang);
    ledger_account_take(&gang->account, step->ledger, is_spare ? OWNER_SPARE : OWNER_PLACING,
                        step_now_us(step));
    lifecycle_move(&gang_lifecycle, &gang->state, GANG_PLACED);
    gang->placed_ns = step->now_ns;
    gang_waits_no_more(step, gang);
    buf_clear(&gang->why_text);
    gang->why = (struct str){0};
    preflight_begin(step, gang);
    if (slice)
        slice_gang_placed(step, gang, slice);
    for (size_t t = 0; t < gang->tasks.len; t++)
        task_start_if_free(step, gang->tasks.items[t]);
    step_changed(step, CHANGE_MODIFIED, ref_jobset(gang->jobset));
    if (!one_waits(gang->jobset))
        jobset_reserve_later(step, gang->jobset); /* the JobSet has used its reservation */
    jobset_mark(step, gang->jobset);
}

/* Makes `why` the reason of a refused gang that may change it now. The first reason is also an Event. */
static void keep_why(struct step *step, struct gang *gang, struct buf *why)
{
    bool first = gang->why.len == 0;
    CHECK(gang->state == GANG_QUEUED && gang_may_say_why(step, gang));
    if (!gang_set_why(step, gang, why))
        return;
    if (shrink_may_answer(gang->jobset)) /* the JobSet may continue without the replica that waits */
        jobset_mark(step, gang->jobset);
    if (first && !gang_is_spare(gang))
        step_note(step, true, "FailedScheduling", ref_jobset(gang->jobset), STR_FORMAT, STR_ARG(gang->why));
}

/* Updates the reason why the gang waits. A gang that fits waits for others, and keeps its reason. */
static void say_why(struct step *step, struct gang *gang)
{
    struct buf why = {0};
    struct request request;
    if (gang_is_gated(gang))
        return;
    request_gang(&request, step->jobs, step->cluster, gang, gang->tasks.len);
    struct placement *places = mem_alloc(gang->tasks.len * sizeof(*places));
    if (!request_place(&request, places, &why))
        keep_why(step, gang, &why);
    buf_done(&why);
    mem_free(places);
    request_drop(&request);
}

void gangs_say_due(struct step *step)
{
    struct heap_node *node;
    while ((node = heap_min(&step->jobs->whys)) && node->key <= step->now_ns) {
        struct gang *gang = container_of(node, struct gang, why_timer);
        CHECK(gang->why_due && gang->state == GANG_QUEUED && !gang->thinned);
        gang_why_is_said(step, gang);
        say_why(step, gang);
    }
}

/* Finds places for a gang that may start with fewer tasks (minCount of spec.scheduling): for as many of its
 * first tasks as fit. The others leave the gang, and follow one by one. */
static bool place_some(struct step *step, struct gang *gang, struct placement *places)
{
    uint32_t count = gang->min_count, end = (uint32_t)gang->tasks.len;
    if (!count || count >= end)
        return false;
    struct buf why BUF_CLEANUP = {0};
    bool found = false;
    for (uint32_t tried = count; tried < end; tried = count + (end - count) / 2) {
        struct request request;
        request_gang(&request, step->jobs, step->cluster, gang, tried);
        bool fits = request_place(&request, places, &why);
        request_drop(&request);
        if (!fits && !found)
            return false;
        if (fits)
            count = tried;
        else
            end = tried;
        found = true;
        if (end - count < 2)
            break;
    }
    struct request request; /* the last try may have failed */
    request_gang(&request, step->jobs, step->cluster, gang, count);
    found = request_place(&request, places, &why);
    request_drop(&request);
    CHECK(found);
    gang_shrink(step, gang, count);
    return true;
}

/* Returns whether nothing but the machines can have changed since the gang was refused for lack of them. */
static bool only_machines_decide(const struct step *step, const struct gang *gang)
{
    CHECK(gang->state == GANG_QUEUED);
    const struct jobset *jobset = gang->jobset;
    return gang->refused_at && gang->feasible_shape == step->jobs->shape + 1 && !step->jobs->reserving.len &&
           !step->jobs->exclusive && !jobset->old_jobs.len && !jobset->history.suspect_count;
}

/* Takes the reason of a gang with the same request. Returns false if none is known since machines changed. */
static bool says_known_why(struct step *step, struct gang *gang)
{
    struct str known = request_known_why(step->jobs, step->cluster, gang);
    struct buf why = {0};
    if (!known.len)
        return false;
    buf_add_str(&why, known);
    keep_why(step, gang, &why);
    gang->refused_at = cluster_next_change(step->cluster);
    return true;
}

/* Returns whether the gang is refused again, if that can be decided without a search. */
static bool is_refused_still(struct step *step, struct gang *gang)
{
    if (!only_machines_decide(step, gang))
        return false;
    bool unchanged = gang->refused_at == cluster_next_change(step->cluster);
    if (gang_may_say_why(step, gang))
        return unchanged ? !gang->why_due : says_known_why(step, gang);
    if (!unchanged && !request_lacks_room(step->jobs, step->cluster, gang))
        return false;
    gang->refused_at = cluster_next_change(step->cluster);
    gang_say_why_later(step, gang);
    return true;
}

/* Stores the result of a search that found no places for the gang. */
static void refused(struct step *step, struct gang *gang, const struct request *request, struct buf *why)
{
    if (gang_may_say_why(step, gang))
        keep_why(step, gang, why);
    else
        gang_say_why_later(step, gang);
    if (gang->min_count || request->found || !sched_is_plain(&request->place))
        return;
    gang->refused_at = cluster_next_change(step->cluster);
    gang->refused_shape = capacity_asked(step->jobs->capacity);
}

bool gang_try(struct step *step, struct gang *gang)
{
    CHECK(gang->state == GANG_QUEUED && !gang->thinned);
    struct buf why = {0};
    if (gang_say_barred(step->jobs, gang, &why)) {
        if (gang_set_why(step, gang, &why))
            step_note(step, true, "FailedCreate", ref_jobset(gang->jobset), "Error creating: " STR_FORMAT,
                      STR_ARG(gang->why));
        return false;
    }
    if (gang_is_gated(gang)) {
        gang_say_gated(gang, &why);
        (void)gang_set_why(step, gang, &why);
        return false;
    }
    if (is_refused_still(step, gang))
        return false;
    struct request request;
    request_gang(&request, step->jobs, step->cluster, gang, gang->tasks.len);
    struct placement *places = mem_alloc(gang->tasks.len * sizeof(*places));
    gang->refused_at = 0;
    bool placed = request_place(&request, places, &why) || place_some(step, gang, places);
    if (placed)
        commit(step, gang, places, request.found);
    else
        refused(step, gang, &request, &why);
    buf_done(&why);
    mem_free(places);
    request_drop(&request);
    return placed;
}

static bool try_place(void *context, struct queued_gang *queued)
{
    struct step *step = context;
    struct gang *gang = container_of(queued, struct gang, queued);
    return gang_try(step, gang);
}

/* Returns whether admission has found places for the gang and relies on them, so that it goes first. */
static bool has_found_places(const struct step *step, const struct gang *gang)
{
    CHECK(gang->state == GANG_QUEUED);
    const struct jobset *jobset = gang->jobset;
    return jobset->grant.terms && !gang_is_spare(gang) &&
           (jobset->grant.reserved_count > 0 || jobset->form == FORM_POD ||
            (!gang->replaces && gang->queued_ns == step->now_ns));
}

void gang_place_admitted(struct step *step, struct jobset *jobset)
{
    for (size_t g = 0; jobset->grant.terms && g < jobset->gangs.len; g++) {
        struct gang *gang = jobset->gangs.items[g];
        if (gang->state == GANG_QUEUED && !gang->thinned && has_found_places(step, gang) &&
            gang_try(step, gang))
            sched_queue_remove(&step->jobs->queue, &gang->queued);
    }
}

bool gang_feasible(const struct job_store *store, const struct cluster *cluster, const struct gang *gang,
                   struct buf *why)
{
    CHECK(gang->tasks.len > 0 && gang->jobset);
    struct request request;
    struct buf unread BUF_CLEANUP = {0};
    size_t least = gang->min_count && gang->min_count < gang->tasks.len ? gang->min_count : gang->tasks.len;
    request_gang(&request, store, cluster, gang, least); /* min_count may be stale: tasks may have left */
    struct slice_shape shape;
    bool result = sched_feasible(cluster, &request.place, &request, why ? why : &unread);
    if (result && jobset_wants_slice(gang->jobset, &shape))
        result = slice_is_feasible(cluster, &shape, why ? why : &unread);
    request_drop(&request);
    return result;
}

static bool judge_rivals(const struct step *step, const struct gang *x, const struct gang *y)
{
    struct request a, b;
    request_gang(&a, step->jobs, step->cluster, x, x->tasks.len);
    request_gang(&b, step->jobs, step->cluster, y, y->tasks.len);
    bool result = sched_competes(step->cluster, &a.place, &b.place);
    request_drop(&a);
    request_drop(&b);
    return result;
}

/* Returns whether the gang's JobSet has no other placed tasks, which could bind the gang to their domains. */
static bool stands_alone(const struct gang *gang)
{
    CHECK(gang->state == GANG_QUEUED);
    for (size_t g = 0; g < gang->jobset->gangs.len; g++) {
        const struct gang *other = gang->jobset->gangs.items[g];
        if (other != gang && other->state != GANG_QUEUED)
            return false;
    }
    return true;
}

/* Returns whether the gang could delay the head of the queue. Judges each pair once for each shape of the
 * cluster. A gang for which admission has found places does not wait for the head. Nor does a gang for which
 * other ranks wait on their chips, which the head cannot get before they run. */
static bool competes(void *context, const struct queued_gang *queued, const struct queued_gang *head)
{
    const struct step *step = context;
    struct gang *x = container_of(queued, struct gang, queued);
    const struct gang *y = container_of(head, struct gang, queued);
    uint64_t shape = step->jobs->shape + 1;
    if (has_found_places(step, x) || (jobset_parks(x->jobset) && !stands_alone(x)))
        return false;
    if (x->rival != y->uid || x->rival_shape != shape) {
        x->competes = judge_rivals(step, x, y);
        x->rival = y->uid;
        x->rival_shape = shape;
    }
    return x->competes;
}

/* Returns whether the gang could be placed on the empty cluster. Judges once for each shape of the cluster if
 * the answer depends on that shape alone. */
static bool feasible(void *context, struct queued_gang *queued)
{
    const struct step *step = context;
    struct gang *gang = container_of(queued, struct gang, queued);
    uint64_t shape = step->jobs->shape + 1;
    bool named = step->jobs->naming > 0 && gang_is_named(gang); /* rarely: avoids reading its task */
    if (gang_is_gated(gang) || (named && !gang_named_machine(step, gang)))
        return false;
    if (!stands_alone(gang))
        return gang_feasible(step->jobs, step->cluster, gang, NULL);
    if (gang->feasible_shape != shape) {
        gang->feasible_shape = shape;
        gang->feasible = gang_feasible(step->jobs, step->cluster, gang, NULL);
    }
    return gang->feasible;
}

void gang_schedule(struct step *step)
{
    gangs_judge(step->jobs);
    struct sched_pass pass = {
        .try_place = try_place,
        .competes = competes,
        .feasible = feasible,
        .context = step,
        .now_ns = step->now_ns,
        .backfill_window_ns = step->cluster->policy.backfill_window_ns,
        .attempts_max = SCHEDULE_ATTEMPTS_MAX,
    };
    sched_queue_pass(&step->jobs->queue, &pass);
}
