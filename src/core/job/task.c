#include "core/job/internal.h"

#include <stdio.h>

#include "base/hash.h"

/* Makes the name "<job>-<index>-<5>" or "<job>-<5>", or takes the user's name. */
static void name_task(struct task *task, struct str name)
{
    const struct job *job = task->job;
    struct arena *arena = &task->arena;
    char suffix[SUFFIX_TEXT_MAX];
    uid_suffix(task->uid, suffix);
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
        task->hostname = arena_printf(arena, STR_FORMAT "-%d", STR_ARG(job->name), task->index);
    struct str stem = job->rjob->job.indexed ? task->hostname : job->name;
    task->name =
        name.len ? arena_str(arena, name) : arena_printf(arena, STR_FORMAT "-%s", STR_ARG(stem), suffix);
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

/* Whether a living task elsewhere has the same host name: this one must not start before that one is dead.
 * On one machine the agent keeps the order, if it knows the other task by this name. */
static bool name_is_taken(const struct task *task)
{
    if (task_is_spare(task))
        return false;
    const struct job *old = task->job->jobset->ending[task->job->global_index];
    for (; old; old = old->before) {
        const struct task *other =
            old->indexes[task->index].task; /* its predecessors ended before it was made */
        if (other && !task_ended(other->state) && (other->machine != task->machine || other->was_spare))
            return true;
    }
    return false;
}

void task_start_if_free(struct step *step, struct task *task)
{
    if (task->state != TASK_PLACED || task_is_dead(task) || jobset_parks(task->job->jobset) ||
        task_is_away(task) || name_is_taken(task) || spare_start_waits(task))
        return;
    CHECK(task->machine != MACHINE_NONE && task->gang);
    if (task->gang->preflight || slice_start_waits(step, task))
        return;
    if (task->job->rjob->job.pod.uses_config && task_config_waits(step, task))
        return;
    lifecycle_move(&task_lifecycle, &task->state, TASK_STARTING);
    task->start_sent_ns = step->now_ns;
    task->attempt = task->began_attempt = task->job->jobset->attempt;
    effect_add(step->effects, EFFECT_TASK_START)->start = task;
    step_changed(step, CHANGE_MODIFIED, ref_task(task));
}

static void effect_stop(struct step *step, const struct task *task, int64_t grace_ns)
{
    CHECK(task->machine != MACHINE_NONE && task->state == TASK_STOPPING);
    struct effect *effect = effect_add(step->effects, EFFECT_TASK_STOP);
    effect->stop.machine = task->machine;
    effect->stop.stop = (struct task_stop){task->uid, grace_ns};
}

void task_stop(struct step *step, struct task *task, bool doom, int64_t grace_ns)
{
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
        effect_stop(step, task, grace_ns);
        step_changed(step, CHANGE_MODIFIED, ref_task(task));
        break;
    default: /* already stopping: a shorter grace is passed on */
        CHECK(task->state == TASK_STOPPING);
        if (grace_ns < task->stop_grace_ns) {
            task->stop_grace_ns = grace_ns;
            effect_stop(step, task, grace_ns);
        }
    }
}

void task_evict(struct step *step, struct task *task, int64_t grace_s)
{
    bool single = task->job->jobset->form == FORM_POD, own = single || job_is_hidden(task->job);
    if (single)
        jobset_delete(step, task->job->jobset);
    if (task_ended(task->state)) { /* its Job has booked the end; the Pod is no longer shown */
        if (!single && !task->evicted) {
            task->evicted = true;
            step_changed(step, CHANGE_MODIFIED, ref_task(task));
            jobset_mark(step, task->job->jobset);
        }
        return;
    }
    task->evicted = !own;
    int64_t wanted_s = grace_s >= 0 ? grace_s : task->job->rjob->job.pod.grace_s;
    wanted_s = wanted_s < INT32_MAX ? wanted_s : INT32_MAX; /* a client may ask for any number */
    task_stop(step, task, own, wanted_s * NS_PER_SECOND);
    step_note(step, false, "Killing", ref_task(task), "Stopping container " STR_FORMAT,
              STR_ARG(task->job->rjob->job.pod.container));
    jobset_mark(step, task->job->jobset);
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
    if (task->machine != MACHINE_NONE) { /* for faults that are seen there a moment later */
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

/* Counts the JobSet among those that wait for an answer, with its first loss or request. */
static struct incident *open_incident(struct step *step, struct jobset *jobset)
{
    step->jobs->incidents += !incident_is_open(&jobset->recovery.incident);
    jobset_mark(step, jobset);
    return &jobset->recovery.incident;
}

static void note_request(struct step *step, const struct task *task, enum loss_request_kind kind,
                         struct str why)
{
    incident_note_request(open_incident(step, task->job->jobset), kind, task->uid, why);
}

void task_finish(struct step *step, struct task *task, enum task_end end)
{
    CHECK(end != END_NONE && !task_ended(task->state) && !task_is_dead(task));
    if (task_is_spare(task)) {
        spare_ended(step, task, end);
        return;
    }
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

/* --- what agents say -------------------------------------------------------------------------- */

static void task_started(struct step *step, struct task *task, const struct task_report *report)
{
    task->peers_lost = false;
    if (task->state == TASK_STOPPING) {
        containers_take(step, task, report);
        effect_stop(step, task, task->stop_grace_ns);
        return;
    }
    if (task->state == TASK_RUNNING) {
        rejoin_say_again(step, task, report);
        containers_take(step, task, report);
        task_set_ready(step, task, !report->not_ready);
        return;
    }
    if (task->state != TASK_STARTING)
        return;
    lifecycle_move(&task_lifecycle, &task->state, TASK_RUNNING);
    task->started_ns = report->started_ns > 0 ? report->started_ns : step->now_ns;
    CHECK(!task->ready);
    containers_take(step, task, report);
    task_set_ready(step, task, !report->not_ready);
    step_changed(step, CHANGE_MODIFIED, ref_task(task));
    step_note(step, false, "Started", ref_task(task), "Started container " STR_FORMAT " on " STR_FORMAT,
              STR_ARG(task->job->rjob->job.pod.container),
              STR_ARG(step->cluster->machines[task->machine].name));
    gang_task_started(step, task);
    jobset_mark(step, task->job->jobset);
}

/* While init containers run, the Pod is reported as Pending. */
static void task_preparing(struct step *step, struct task *task, const struct task_report *report)
{
    task->peers_lost = false;
    containers_take(step, task, report);
    if (task->state == TASK_STOPPING)
        effect_stop(step, task, task->stop_grace_ns);
}

static void task_exited(struct step *step, struct task *task, const struct task_report *report)
{
    CHECK(report->kind == REPORT_EXITED || report->kind == REPORT_START_FAILED);
    jobs_drained_ended(step, task);
    containers_take(step, task, report);
    task->exit_code = report->exit_code;
    task->signal = report->signal;
    task->oom = report->oom;
    task->fenced = report->fenced;
    if (report->started_ns > 0 && !task->started_ns)
        task->started_ns = report->started_ns;
    task->ended_ns = report->finished_ns > 0 ? report->finished_ns : step->now_ns;
    if (report->kind == REPORT_START_FAILED)
        task_message(task, STR_FORMAT, STR_ARG(report->message));
    else if (report->oom)
        task_message(task, "killed: out of memory");
    else if (report->fenced)
        task_message(task, "stopped by its fence: the machine was cut off from the controller");
    else if (task->state == TASK_STOPPING && task->evicted && task->message.len)
        (void)report; /* the message says why the controller stopped it, which is more than how it ended */
    else if (report->signal)
        task_message(task, "killed by signal %d", report->signal);
    else if (report->exit_code)
        task_message(task, "exit code %d", report->exit_code);
    bool ours = task->state == TASK_STOPPING;
    if (task->job->jobset->recovery.seen_attempt > 0) { /* the whole JobSet begins again */
        task->doomed = true;
        task_finish(step, task, END_STOPPED);
        return;
    }
    if (!ours && report->kind == REPORT_EXITED && report->exit_code && !report->oom && !report->fenced)
        unjoined_given_up(step, task);
    if (report->kind == REPORT_EXITED && outage_explains(step, report))
        outage_ends(step, task);
    ends_take(step, task, report, report->kind == REPORT_START_FAILED ? CLUE_START_FAILED : CLUE_NONE);
    task_finish(step, task,
                report->kind == REPORT_START_FAILED ? END_START_FAILED
                : ours                              ? END_STOPPED
                                                    : END_EXIT);
}

static void apply_report(struct step *step, struct machine *machine, const struct task_report *report)
{
    struct task *task = jobs_find_task(step->jobs, report->task);
    bool ends = report->kind == REPORT_EXITED || report->kind == REPORT_START_FAILED;
    bool told =
        task && task->machine == machine->id && task->state >= TASK_STARTING && !task_ended(task->state);
    told = told && !task_is_dead(task);
    if (told)
        catch_up_note(step, task, report);
    if (told) {
        switch (report->kind) {
        case REPORT_STARTED:
            task_started(step, task, report);
            break;
        case REPORT_EXITED:
        case REPORT_START_FAILED:
            task_exited(step, task, report);
            break;
        case REPORT_JOINED:
            progress_joined(step, task, report);
            break;
        case REPORT_SHARD_SAVED:
            if (!rejoin_is_old_word(task, report))
                progress_shard_saved(step, task, report->step);
            break;
        case REPORT_PEER_GONE:
            if (!rejoin_is_old_word(task, report))
                peers_report_gone(step, task, report->peer_rank);
            break;
        case REPORT_RETRY:
            if (!rejoin_is_old_word(task, report))
                note_request(step, task, REQUEST_RETRY, report->message);
            break;
        case REPORT_PREPARING:
            task_preparing(step, task, report);
            break;
        case REPORT_NOTE:
            containers_note(step, task, report);
            break;
        }
    } else if (report->kind == REPORT_STARTED || report->kind == REPORT_PREPARING) {
        /* Stops a task of the past: no task in the store should run there under this uid. */
        struct effect *effect = effect_add(step->effects, EFFECT_TASK_STOP);
        effect->stop.machine = machine->id;
        effect->stop.stop = (struct task_stop){report->task, 0};
    }
    if (ends) {
        struct effect *effect = effect_add(step->effects, EFFECT_TASK_FORGET);
        effect->forget.machine = machine->id;
        effect->forget.task = report->task;
    }
}

void jobs_reports(struct step *step, struct machine *machine, const struct reports *reports)
{
    for (size_t i = 0; i < reports->count; i++)
        apply_report(step, machine, &reports->items[i]);
}

typedef VEC(uint64_t) uid_list;

/* Finds tasks that were told to start on the machine and are missing in the agent's inventory. */
static void find_unknown(const struct step *step, const struct machine *machine, const struct hello *hello,
                         uid_list *ret_unknown)
{
    struct u64_map seen = {0};
    for (size_t i = 0; i < hello->report_count; i++)
        u64_map_put(&seen, hello->reports[i].task, &seen);
    list_for_each(node, &step->jobs->machine_tasks[machine->id])
    {
        const struct task *task = container_of(node, struct task, on_machine);
        if (task->state >= TASK_STARTING && !task_ended(task->state) && !u64_map_get(&seen, task->uid))
            vec_push(ret_unknown, task->uid);
    }
    u64_map_done(&seen);
}

/* Ends a task whose process must have existed and that the agent does not know. */
static void hello_ends(struct step *step, const struct machine *machine, struct task *task)
{
    if (task->state != TASK_RUNNING && task->state != TASK_STOPPING)
        return;
    task_message(task, "gone when the agent of " STR_FORMAT " came back", STR_ARG(machine->name));
    ends_take(step, task, NULL, CLUE_MACHINE_LOST);
    task_finish(step, task, task->state == TASK_STOPPING ? END_STOPPED : END_MACHINE_LOST);
}

static struct task *still_there(const struct step *step, const struct machine *machine, uint64_t uid)
{
    struct task *task = jobs_find_task(step->jobs, uid);
    return task && task->machine == machine->id ? task : NULL;
}

/* Ends the missing tasks. Orders to start are repeated when these ends are answered: the answer may begin
 * another attempt, in which the task is stopped or has another rank. */
static void hello_without(struct step *step, const struct machine *machine, const uid_list *unknown)
{
    for (size_t i = 0; i < unknown->len; i++) {
        struct task *task = still_there(step, machine, unknown->items[i]);
        if (!task || task_is_dead(task))
            continue;
        if (task->state == TASK_STARTING)
            note_request(step, task, REQUEST_START, STR(""));
        else
            hello_ends(step, machine, task);
    }
}

void jobs_machine_hello(struct step *step, struct machine *machine, const struct hello *hello)
{
    CHECK(machine->state == MACHINE_READY);
    uid_list unknown = {0};
    find_unknown(step, machine, hello, &unknown); /* reports may start further tasks, and stop them again */
    for (size_t i = 0; i < hello->report_count; i++)
        apply_report(step, machine, &hello->reports[i]);
    hello_without(step, machine, &unknown);
    vec_done(&unknown);
    step->schedule = true;
}

int64_t jobs_notice_drain(struct step *step, const struct machine *machine, enum drain_reason reason)
{
    int64_t longest_ns = 0;
    list_for_each(node, &step->jobs->machine_tasks[machine->id])
    {
        const struct task *task = container_of(node, struct task, on_machine);
        if (task->state != TASK_RUNNING || !task->joined || task_is_spare(task) ||
            (reason == DRAIN_MAINTENANCE && move_by_spares(task->job->jobset)))
            continue;
        int64_t grace_ns = task->job->rjob->job.pod.grace_s * NS_PER_SECOND;
        struct effect *effect = effect_add(step->effects, EFFECT_TASK_NOTICE);
        effect->notice.machine = machine->id;
        effect->notice.notice = (struct task_notice){NOTICE_DRAIN, task->uid, 0, grace_ns, reason};
        longest_ns = grace_ns > longest_ns ? grace_ns : longest_ns;
    }
    return longest_ns;
}

bool jobs_have_saved(const struct job_store *store, const struct machine *machine, int64_t noticed_ns)
{
    list_for_each(node, &store->machine_tasks[machine->id])
    {
        const struct task *task = container_of(node, struct task, on_machine);
        bool told = task->state == TASK_RUNNING && task->joined && !task_is_spare(task);
        if (told && task->job->jobset->checkpoint.committed_ns <= noticed_ns)
            return false;
    }
    return true;
}

void jobs_end_hung(struct step *step, struct task *task, struct str why)
{
    if (task_ended(task->state) || task_is_dead(task) || task->doomed)
        return;
    task_message(task, "its job hangs because of it: " STR_FORMAT, STR_ARG(why));
    task->loss = LOSS_HANG;
    task_evict(step, task, 0);
}

void jobs_end_broken(struct step *step, struct task *task, struct str why)
{
    if (task_ended(task->state) || task->doomed)
        return;
    task_message(task, "its slice is broken: " STR_FORMAT, STR_ARG(why));
    task->loss = LOSS_FAULT;
    task_evict(step, task, -1);
}

void jobs_vacate(struct step *step, const struct machine *machine, struct str why)
{
    preflight_leave(step, machine, why);
    list_for_each_safe(node, after, &step->jobs->machine_tasks[machine->id])
    {
        struct task *task = container_of(node, struct task, on_machine);
        if (task->state == TASK_STOPPING || task_is_dead(task) || task->doomed)
            continue;
        task_message(task, "evicted from " STR_FORMAT ": " STR_FORMAT, STR_ARG(machine->name), STR_ARG(why));
        task->loss = LOSS_FAULT;
        task_evict(step, task, -1);
    }
}

void jobs_machine_lost(struct step *step, struct machine *machine, struct str evidence)
{
    CHECK(machine->state == MACHINE_LOST);
    machine->qualified_ns = machine->paired_ns = 0; /* the machine may have been replaced */
    preflight_leave(step, machine, evidence);
    list_for_each_safe(node, after, &step->jobs->machine_tasks[machine->id])
    {
        struct task *task = container_of(node, struct task, on_machine);
        task_message(task, "lost with machine " STR_FORMAT ": " STR_FORMAT, STR_ARG(machine->name),
                     STR_ARG(evidence));
        if (outage_explains(step, NULL))
            outage_ends(step, task);
        ends_take(step, task, NULL, CLUE_MACHINE_LOST);
        task_finish(step, task, task->state == TASK_STOPPING ? END_STOPPED : END_MACHINE_LOST);
    }
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
