/* reports.c - reports of agents about the tasks on their machines. */
#include "core/recover/internal.h"

static void task_started(struct step *step, struct task *task, const struct task_report *report)
{
    CHECK(report->kind == REPORT_STARTED && report->task == task->uid);
    task->peers_lost = false;
    slice_take_routes(step, task, &report->routes);
    if (task->state == TASK_STOPPING) {
        containers_take(step, task, report);
        task_tell_stop(step, task, task->stop_grace_ns);
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
    CHECK(report->kind == REPORT_PREPARING && report->task == task->uid);
    task->peers_lost = false;
    containers_take(step, task, report);
    if (task->state == TASK_STOPPING)
        task_tell_stop(step, task, task->stop_grace_ns);
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
        (void)report; /* the message tells why the controller stopped the task; keep it */
    else if (report->signal)
        task_message(task, "killed by signal %d", report->signal);
    else if (report->exit_code)
        task_message(task, "exit code %d", report->exit_code);
    bool ours = task->state == TASK_STOPPING;
    if (catch_up_ends(step, task))
        return;
    if (!ours && report->kind == REPORT_EXITED && report->exit_code && !report->oom && !report->fenced)
        unjoined_given_up(step, task);
    if (report->kind == REPORT_EXITED && outage_explains(step, report))
        outage_ends(step, task);
    ends_take(step, task, report,
              report->kind == REPORT_START_FAILED ? SIGNATURE_START_FAILED : SIGNATURE_NONE);
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
                task_note_request(step, task, REQUEST_RETRY, report->message);
            break;
        case REPORT_ROUTES:
            slice_take_routes(step, task, &report->routes);
            break;
        case REPORT_PREPARING:
            task_preparing(step, task, report);
            break;
        case REPORT_NOTE:
            containers_note(step, task, report);
            break;
        }
    } else if (report->kind == REPORT_STARTED || report->kind == REPORT_PREPARING) {
        /* Stops a stale task: no task in the store should run there under this uid. */
        struct effect *effect = effect_add(step->effects, EFFECT_TASK_STOP);
        effect->stop.machine = machine->id;
        effect->stop.stop = (struct task_stop){report->task, 0};
        hearing_stranger(step, report->task);
    }
    if (ends) {
        hearing_ended(step, report->task);
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

/* Ends a task whose process must have existed and is unknown to the agent. */
static void hello_ends(struct step *step, const struct machine *machine, struct task *task)
{
    CHECK(task->machine == machine->id && !task_is_dead(task));
    if (task->state != TASK_RUNNING && task->state != TASK_STOPPING)
        return;
    task_message(task, "gone when the agent of " STR_FORMAT " came back", STR_ARG(machine->name));
    if (catch_up_ends(step, task))
        return;
    ends_take(step, task, NULL, SIGNATURE_MACHINE_LOST);
    task_finish(step, task, task->state == TASK_STOPPING ? END_STOPPED : END_MACHINE_LOST);
}

static struct task *still_there(const struct step *step, const struct machine *machine, uint64_t uid)
{
    struct task *task = jobs_find_task(step->jobs, uid);
    return task && task->machine == machine->id ? task : NULL;
}

/* Ends the tasks that are missing in the agent's inventory. Lost orders to start are repeated only when these
 * ends are answered, because the answer may begin another attempt, in which the task is stopped or has
 * another rank. */
static void hello_without(struct step *step, const struct machine *machine, const uid_list *unknown)
{
    for (size_t i = 0; i < unknown->len; i++) {
        struct task *task = still_there(step, machine, unknown->items[i]);
        if (!task || task_is_dead(task))
            continue;
        if (task->state == TASK_STARTING)
            task_note_request(step, task, REQUEST_START, STR(""));
        else
            hello_ends(step, machine, task);
    }
}

void jobs_machine_hello(struct step *step, struct machine *machine, const struct hello *hello)
{
    CHECK(machine->state == MACHINE_READY);
    uid_list unknown = {0};
    find_unknown(step, machine, hello, &unknown); /* before the reports, which may start further tasks */
    catch_up_hello(step, machine, hello);
    for (size_t i = 0; i < hello->report_count; i++)
        apply_report(step, machine, &hello->reports[i]);
    hello_without(step, machine, &unknown);
    vec_done(&unknown);
    jobs_tell_tables(step, machine);
    step->schedule = true;
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
        ends_take(step, task, NULL, SIGNATURE_MACHINE_LOST);
        task_finish(step, task, task->state == TASK_STOPPING ? END_STOPPED : END_MACHINE_LOST);
    }
}
