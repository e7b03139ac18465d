/* agent_container.c - the containers of a task, each with its own lifecycle (run_lifecycle).
 * agent_containers_advance derives the next action from their states alone, so a restarted agent continues
 * from the launcher's records.
 *
 * Order, restarts and back-off follow kubelet ("Init Containers", "Sidecar Containers", "Pod Lifecycle"). The
 * first restart is immediate; later ones wait 10 s, doubling up to 5 minutes. A run of 10 minutes resets the
 * back-off.
 */
#include <signal.h>

#include "core/agent/agent_private.h"

#define BACKOFF_FIRST_NS (10 * NS_PER_SECOND)
#define BACKOFF_MAX_NS   (300 * NS_PER_SECOND)
#define BACKOFF_RESET_NS (600 * NS_PER_SECOND)

static const char *const run_names[] = {"idle", "back-off", "launching", "running", "stopping", "ended"};
static const uint32_t run_next[] = {
    [RUN_IDLE] = LIFECYCLE_TO(RUN_LAUNCHING) | LIFECYCLE_TO(RUN_ENDED),
    [RUN_BACKOFF] = LIFECYCLE_TO(RUN_LAUNCHING) | LIFECYCLE_TO(RUN_ENDED),
    [RUN_LAUNCHING] = LIFECYCLE_TO(RUN_RUNNING) | LIFECYCLE_TO(RUN_STOPPING) | LIFECYCLE_TO(RUN_ENDED) |
                      LIFECYCLE_TO(RUN_BACKOFF),
    [RUN_RUNNING] = LIFECYCLE_TO(RUN_STOPPING) | LIFECYCLE_TO(RUN_ENDED) | LIFECYCLE_TO(RUN_BACKOFF),
    [RUN_STOPPING] = LIFECYCLE_TO(RUN_ENDED) | LIFECYCLE_TO(RUN_BACKOFF),
    [RUN_ENDED] = 0,
};
_Static_assert(sizeof run_names / sizeof *run_names == RUN_STATES &&
                   sizeof run_next / sizeof *run_next == RUN_STATES,
               "a row for each state");
const struct lifecycle run_lifecycle = {"container", RUN_STATES, run_names, run_next};

void agent_containers_init(struct local_task *task, const struct task_launch *launch)
{
    CHECK(!task->containers && launch->container_count > 0);
    CHECK(launch->container_count <= TASK_CONTAINERS_MAX);
    task_launch_copy(&task->launch_arena, launch, &task->launch);
    task->container_count = launch->container_count;
    task->containers = mem_alloc(launch->container_count * sizeof *task->containers);
    task->culprit = -1;
    for (size_t i = 0; i < launch->container_count; i++)
        task->main_count += launch->containers[i].role == CONTAINER_MAIN;
    CHECK(task->main_count > 0); /* codec_container.c refuses others */
}

void agent_containers_free(struct local_task *task)
{
    for (size_t i = 0; i < task->container_count; i++)
        mem_free(task->containers[i].end_message);
    mem_free(task->containers);
}

static const struct container_launch *spec_of(const struct local_task *task, size_t index)
{
    CHECK(index < task->container_count && task->launch.container_count == task->container_count);
    return &task->launch.containers[index];
}

static bool has_role(const struct local_task *task, size_t index, enum container_role role)
{
    return spec_of(task, index)->role == role;
}

static bool end_failed(const struct local_container *container)
{
    const struct container_end *end = &container->end;
    return end->start_failed || end->exit_code != 0 || end->signal != 0 || container->failing;
}

/* --- launching ------------------------------------------------------------------------------------ */

static void launch_run(struct local_task *task, uint32_t index, struct agent_effects *effects)
{
    struct local_container *container = &task->containers[index];
    lifecycle_move(&run_lifecycle, &container->state, RUN_LAUNCHING);
    container->posted = container->started = container->ready = container->failing = false;
    container->hook_out = container->pre_stopped = container->stop_sent = container->kill_sent = false;
    container->pid = container->started_ns = container->stop_by_ns = 0;
    container->runs++;
    CHECK(container->runs > 0);
    if (task->main_count == 1 && index == 0)
        task->routes.open = false; /* the previous process has ended, and its chips have no tables */
    task->launched = true;
    task->report_due = true;
    struct agent_effect *effect = agent_effect_add(effects, AGENT_LAUNCH);
    effect->launch = &task->launch;
    effect->container = index;
    effect->run = container->runs - 1;
}

/* Whether the container delays those after it in the order. */
static bool holds_up(const struct local_task *task, size_t index)
{
    const struct local_container *container = &task->containers[index];
    switch (spec_of(task, index)->role) {
    case CONTAINER_INIT:
        return container->state != RUN_ENDED || end_failed(container);
    case CONTAINER_SIDECAR:
        return !container->started;
    default:
        return false;
    }
}

static void start_those_due(const struct agent *agent, struct local_task *task, struct agent_effects *effects)
{
    if (agent->link != LINK_WELCOME || task->doubtful)
        return; /* a started process must hold a tether that the controller knows */
    bool held_up = false;
    for (size_t i = 0; i < task->container_count; i++) {
        uint32_t index = container_in_order(task, i);
        struct local_container *container = &task->containers[index];
        if ((container->state == RUN_IDLE && !held_up) ||
            (container->state == RUN_BACKOFF && agent->boot_ns >= container->retry_ns))
            launch_run(task, index, effects);
        held_up = held_up || holds_up(task, index);
    }
}

/* --- stopping ------------------------------------------------------------------------------------- */

static void send_stop(const struct agent *agent, const struct local_task *task, uint32_t index,
                      struct agent_effects *effects)
{
    struct local_container *container = &task->containers[index];
    int64_t left_ns = container->stop_by_ns > agent->boot_ns ? container->stop_by_ns - agent->boot_ns : 0;
    container->stop_sent = true;
    container->kill_sent = container->kill_sent || left_ns == 0;
    struct agent_effect *effect = agent_effect_add(effects, AGENT_STOP);
    effect->stop = (struct task_stop){task->uid, left_ns};
    effect->container = index;
}

/* Takes the next action of a stop: the hook, SIGTERM, or the kill if the hook took all of the grace. */
static void go_on_stopping(const struct agent *agent, struct local_task *task, uint32_t index,
                           struct agent_effects *effects)
{
    struct local_container *container = &task->containers[index];
    CHECK(container->state == RUN_STOPPING);
    int64_t left_ns = container->stop_by_ns - agent->boot_ns;
    bool hook = spec_of(task, index)->pre_stop.kind != ACTION_NONE && container->posted;
    if (left_ns > 0 && hook && !container->pre_stopped) {
        if (!container->hook_out)
            agent_hook(task, index, ACT_PRE_STOP, left_ns, effects);
    } else if (!container->stop_sent || (left_ns <= 0 && !container->kill_sent)) {
        send_stop(agent, task, index, effects);
    }
}

static void stop_run(const struct agent *agent, struct local_task *task, uint32_t index, int64_t by_ns,
                     struct agent_effects *effects)
{
    struct local_container *container = &task->containers[index];
    if (container->state == RUN_IDLE || container->state == RUN_BACKOFF) {
        lifecycle_move(&run_lifecycle, &container->state, RUN_ENDED);
        return;
    }
    if (!run_live(container))
        return;
    bool shorter = container->stop_by_ns == 0 || by_ns < container->stop_by_ns;
    if (container->state != RUN_STOPPING) {
        lifecycle_move(&run_lifecycle, &container->state, RUN_STOPPING);
        agent_probes_end(task, index, effects);
        container->ready = false;
        container->stop_by_ns = by_ns;
        task->report_due = true;
    } else if (shorter) {
        container->stop_by_ns = by_ns;
        container->stop_sent = false; /* tells the shim the shorter grace */
    }
    go_on_stopping(agent, task, index, effects);
}

void agent_container_end_run(struct agent *agent, struct local_task *task, uint32_t index, int64_t grace_ns,
                             struct agent_effects *effects)
{
    task->containers[index].failing = true;
    stop_run(agent, task, index, agent->boot_ns + grace_ns, effects);
}

/* Stops main and init containers at once, then the sidecars, the last one first. */
static void stop_those_due(struct agent *agent, struct local_task *task, struct agent_effects *effects)
{
    bool killed = agent->boot_ns >= task->stop_by_ns, others = false;
    for (uint32_t i = 0; i < task->container_count; i++)
        if (killed || !has_role(task, i, CONTAINER_SIDECAR) || !run_live(&task->containers[i])) {
            stop_run(agent, task, i, task->stop_by_ns, effects);
            others = others || run_live(&task->containers[i]);
        }
    for (size_t i = task->container_count; i-- > 0 && !others;) {
        if (!run_live(&task->containers[i]))
            continue;
        stop_run(agent, task, (uint32_t)i, task->stop_by_ns, effects);
        others = true;
    }
}

static const struct local_container *result_of(const struct local_task *task)
{
    if (task->culprit >= 0)
        return &task->containers[task->culprit];
    for (size_t i = 0; i < task->container_count; i++)
        if (has_role(task, i, CONTAINER_MAIN) && task->containers[i].has_end)
            return &task->containers[i];
    return NULL;
}

static void end_task(struct agent *agent, struct local_task *task, struct agent_effects *effects)
{
    const struct local_container *result = result_of(task);
    task->exit_code = -1;
    task->signal = task->killed ? SIGKILL : SIGTERM; /* stopped before any process ran */
    task->finished_ns = agent->wall_ns;
    if (result) {
        task->exit_code = result->end.exit_code;
        task->signal = result->end.signal;
        task->oom = result->end.oom;
        task->start_failed = result->end.start_failed;
        mem_free(task->message);
        struct buf text = {0};
        const char *why = result->end_message ? result->end_message : "";
        buf_printf(
            &text, "%s%.*s%s%s", task->container_count > 1 ? "container " : "",
            task->container_count > 1 ? (int)spec_of(task, (size_t)(result - task->containers))->name.len : 0,
            spec_of(task, (size_t)(result - task->containers))->name.data,
            task->container_count > 1 ? ": " : "", why);
        task->message = text.data;
        if (result->failing && task->exit_code == 0 && task->signal == 0)
            task->exit_code = 137; /* killed because of a probe: it has failed */
    }
    agent_task_end(task);
    agent_task_start_waiting(agent, effects);
}

/* --- due actions ---------------------------------------------------------------------------------- */

static bool any_live(const struct local_task *task)
{
    for (size_t i = 0; i < task->container_count; i++)
        if (run_live(&task->containers[i]))
            return true;
    return false;
}

/* Whether all main containers, or an init container, have ended for good. */
static bool is_over(const struct local_task *task)
{
    bool mains = true;
    for (size_t i = 0; i < task->container_count; i++) {
        const struct local_container *container = &task->containers[i];
        if (has_role(task, i, CONTAINER_MAIN))
            mains = mains && container->state == RUN_ENDED;
        else if (container->state == RUN_ENDED && (!container->has_end || end_failed(container)))
            return true;
    }
    return mains;
}

static void note_running(struct agent *agent, struct local_task *task)
{
    bool all = task->state == LOCAL_LAUNCHING;
    for (size_t i = 0; i < task->container_count && all; i++) {
        const struct local_container *container = &task->containers[i];
        if (has_role(task, i, CONTAINER_MAIN))
            all = container->has_end || (container->state == RUN_RUNNING && container->posted);
    }
    if (!all)
        return;
    lifecycle_move(&local_lifecycle, &task->state, LOCAL_RUNNING);
    task->ran = task->report_due = true;
    if (task->join_due) {
        agent_pend_joined(agent, task);
        task->join_due = false;
    }
}

void agent_containers_advance(struct agent *agent, struct local_task *task, struct agent_effects *effects)
{
    if (!task->containers || task->adopting || !local_live(task) || task->state == LOCAL_WAITING)
        return;
    note_running(agent, task);
    if (task->state != LOCAL_STOPPING && is_over(task)) {
        lifecycle_move(&local_lifecycle, &task->state, LOCAL_STOPPING);
        task->stop_by_ns = agent->boot_ns + task->grace_ns;
        task->report_due = true;
    }
    if (task->state != LOCAL_STOPPING) {
        start_those_due(agent, task, effects);
        return;
    }
    stop_those_due(agent, task, effects);
    if (!any_live(task))
        end_task(agent, task, effects);
}

void agent_containers_stop(struct agent *agent, struct local_task *task, int64_t grace_ns,
                           struct agent_effects *effects)
{
    int64_t by_ns = agent->boot_ns + grace_ns;
    if (task->state != LOCAL_STOPPING) {
        lifecycle_move(&local_lifecycle, &task->state, LOCAL_STOPPING);
        task->stop_by_ns = by_ns;
    }
    task->stop_by_ns = by_ns < task->stop_by_ns ? by_ns : task->stop_by_ns;
    task->killed = task->killed || grace_ns == 0;
    task->adopting = false;
    agent_containers_advance(agent, task, effects);
}

/* --- reports of the launcher ----------------------------------------------------------------------- */

/* Whether a launcher's report is about the present run. An older run is over. A later run was started by an
 * earlier agent, and its record arrived after this agent had launched the container. */
static bool is_of_run(struct local_container *container, uint32_t run)
{
    if (container->state == RUN_LAUNCHING && run >= container->runs)
        container->runs = run + 1;
    return run_live(container) && container->runs == run + 1;
}

void agent_container_started(struct agent *agent, struct local_task *task, const struct agent_event *event,
                             struct agent_effects *effects)
{
    if (event->container >= task->container_count || task->state == LOCAL_WAITING)
        return;
    struct local_container *container = &task->containers[event->container];
    if (task->adopting && container->state == RUN_IDLE) {
        lifecycle_move(&run_lifecycle, &container->state, RUN_LAUNCHING);
        container->runs = event->run + 1;
        task->launched = true;
    }
    if (!is_of_run(container, event->run))
        return;
    container->pid = event->started.pid;
    container->started_ns = event->started.started_ns;
    container->begun_ns = agent->boot_ns;
    task->report_due = true;
    if (has_role(task, event->container, CONTAINER_MAIN) && task->started_ns == 0) {
        task->pid = container->pid;
        task->started_ns = container->started_ns;
    }
    if (container->state == RUN_LAUNCHING) {
        lifecycle_move(&run_lifecycle, &container->state, RUN_RUNNING);
        agent_probes_begin(agent, task, event->container, task->adopting, effects);
    }
    agent_containers_advance(agent, task, effects);
}

static bool rule_matches(const struct container_rule *rule, int32_t exit_code)
{
    bool listed = false;
    for (size_t i = 0; i < rule->code_count; i++)
        listed = listed || rule->codes[i] == exit_code;
    return listed != rule->not_in;
}

static bool runs_again(const struct local_task *task, uint32_t index)
{
    const struct container_launch *spec = spec_of(task, index);
    const struct local_container *container = &task->containers[index];
    if (task->state == LOCAL_STOPPING || task->fenced)
        return false;
    bool failed = end_failed(container);
    for (size_t i = 0; i < spec->rule_count && failed && !container->end.start_failed; i++)
        if (rule_matches(&spec->rules[i],
                         container->end.signal ? 128 + container->end.signal : container->end.exit_code))
            return true;
    if (spec->restart == RERUN_ALWAYS)
        return spec->role != CONTAINER_INIT || failed;
    return spec->restart == RERUN_ON_FAILURE && failed;
}

/* Whether the container's end ends the task, because the task's peers have lost it (container.h:
 * ends_joined). */
static bool ends_task(const struct local_task *task, uint32_t index)
{
    return spec_of(task, index)->ends_joined && (task->joined || task->rejoin.task != 0) &&
           task->state != LOCAL_STOPPING && end_failed(&task->containers[index]);
}

static void plan_run(struct agent *agent, struct local_task *task, uint32_t index)
{
    struct local_container *container = &task->containers[index];
    lifecycle_move(&run_lifecycle, &container->state, RUN_BACKOFF);
    bool long_run = container->begun_ns > 0 && agent->boot_ns - container->begun_ns >= BACKOFF_RESET_NS;
    int64_t delay_ns = container->backoff_ns;
    if (container->runs <= 1 || long_run) {
        container->backoff_ns = BACKOFF_FIRST_NS;
        delay_ns = 0;
    } else {
        container->backoff_ns = 2 * delay_ns < BACKOFF_MAX_NS ? 2 * delay_ns : BACKOFF_MAX_NS;
        delay_ns = delay_ns > 0 ? delay_ns : BACKOFF_FIRST_NS;
    }
    container->backoff_ns = container->backoff_ns > 0 ? container->backoff_ns : BACKOFF_FIRST_NS;
    container->retry_ns = agent->boot_ns + delay_ns;
    container->delay_ns = delay_ns;
    if (delay_ns > 0)
        agent_container_note(agent, task, true, "BackOff",
                             "Back-off restarting failed container " STR_FORMAT " in pod %s",
                             STR_ARG(spec_of(task, index)->name), task->name);
}

static void take_end(struct local_container *container, const struct agent *agent,
                     const struct agent_exit *exited)
{
    mem_free(container->end_message);
    container->end_message = mem_alloc(exited->message.len + 1);
    if (exited->message.len > 0)
        memcpy(container->end_message, exited->message.data, exited->message.len);
    container->end =
        (struct container_end){.exit_code = exited->exit_code,
                               .signal = exited->signal,
                               .oom = exited->oom,
                               .start_failed = exited->start_failed,
                               .started_ns = exited->started_ns ? exited->started_ns : container->started_ns,
                               .finished_ns = exited->finished_ns ? exited->finished_ns : agent->wall_ns};
    container->has_end = true;
    container->started = container->ready = container->posted = false;
}

void agent_container_exited(struct agent *agent, struct local_task *task, const struct agent_event *event,
                            struct agent_effects *effects)
{
    const struct agent_exit *exited = &event->exited;
    if (event->container >= task->container_count || !local_live(task) || task->state == LOCAL_WAITING)
        return;
    struct local_container *container = &task->containers[event->container];
    if (task->adopting && container->state == RUN_IDLE) {
        lifecycle_move(&run_lifecycle, &container->state, RUN_LAUNCHING);
        container->runs = event->run + 1;
        task->launched = true;
    }
    if (!is_of_run(container, event->run))
        return;
    agent_probes_end(task, event->container, effects);
    take_end(container, agent, exited);
    task->report_due = true;
    task->fenced = task->fenced || exited->fenced;
    /* Ended by the fence, by an earlier agent's stop, or by the stop of an agent that is shutting down. */
    bool over = exited->fenced || (exited->stopped && container->state != RUN_STOPPING);
    bool ends = over || ends_task(task, event->container);
    if (!ends && runs_again(task, event->container)) {
        plan_run(agent, task, event->container);
    } else {
        lifecycle_move(&run_lifecycle, &container->state, RUN_ENDED);
        if (task->culprit < 0 && end_failed(container) &&
            !has_role(task, event->container, CONTAINER_SIDECAR)) {
            task->culprit = (int32_t)event->container;
            agent_task_take_signatures(task, exited);
        }
    }
    task->stop_seen = task->stop_seen || over;
    if (ends && task->state != LOCAL_STOPPING && !task->adopting)
        agent_containers_stop(agent, task, exited->fenced ? 0 : task->grace_ns, effects);
    else
        agent_containers_advance(agent, task, effects);
}

/* Marks init containers without a record as ended if a later container ran: they have done their work. */
static void fill_gaps(struct local_task *task)
{
    bool later = false;
    for (size_t i = task->container_count; i-- > 0;) {
        uint32_t index = container_in_order(task, i);
        struct local_container *container = &task->containers[index];
        if (later && container->state == RUN_IDLE && has_role(task, index, CONTAINER_INIT)) {
            lifecycle_move(&run_lifecycle, &container->state, RUN_ENDED);
            container->has_end = true;
        }
        later = later || container->runs > 0;
    }
}

void agent_containers_confirmed(struct agent *agent, struct agent_effects *effects)
{
    for (size_t i = 0; i < agent->tasks.len; i++) {
        struct local_task *task = agent->tasks.items[i];
        if (!task->doubtful)
            continue;
        task->doubtful = false;
        agent_containers_advance(agent, task, effects);
    }
}

void agent_containers_boot(struct agent *agent, struct agent_effects *effects)
{
    for (size_t i = 0; i < agent->tasks.len; i++) {
        struct local_task *task = agent->tasks.items[i];
        if (!task->adopting)
            continue;
        fill_gaps(task);
        task->adopting = false;
        task->report_due = true;
        if (task->fenced || task->stop_seen)
            agent_containers_stop(agent, task, task->fenced ? 0 : task->grace_ns, effects);
        else
            agent_containers_advance(agent, task, effects);
    }
}

/* --- time ----------------------------------------------------------------------------------------- */

void agent_containers_tick(struct agent *agent, struct agent_effects *effects)
{
    for (size_t i = 0; i < agent->tasks.len; i++) {
        struct local_task *task = agent->tasks.items[i];
        if (task->container_count == 0 || !local_live(task) || task->state == LOCAL_WAITING)
            continue;
        for (uint32_t c = 0; c < task->container_count && local_live(task); c++) {
            if (task->containers[c].state == RUN_RUNNING)
                agent_probes_tick(agent, task, c, effects);
            else if (task->containers[c].state == RUN_STOPPING)
                go_on_stopping(agent, task, c, effects);
        }
        agent_containers_advance(agent, task, effects);
    }
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t task_deadline(const struct agent *agent, const struct local_task *task)
{
    int64_t due_ns = INT64_MAX;
    for (uint32_t c = 0; c < task->container_count; c++) {
        const struct local_container *container = &task->containers[c];
        if (container->state == RUN_BACKOFF && agent->link == LINK_WELCOME && !task->doubtful)
            due_ns = earlier(due_ns, container->retry_ns);
        else if (container->state == RUN_RUNNING)
            due_ns = earlier(due_ns, agent_probes_deadline(task, c));
        else if (container->state == RUN_STOPPING && !container->kill_sent)
            due_ns = earlier(due_ns, container->stop_by_ns);
        if (task->state == LOCAL_STOPPING && run_live(container) && !container->kill_sent)
            due_ns = earlier(due_ns, task->stop_by_ns);
    }
    return due_ns;
}

int64_t agent_containers_deadline(const struct agent *agent)
{
    int64_t due_ns = INT64_MAX;
    for (size_t i = 0; i < agent->tasks.len; i++)
        if (agent->tasks.items[i]->container_count > 0 && local_live(agent->tasks.items[i]) &&
            agent->tasks.items[i]->state != LOCAL_WAITING)
            due_ns = earlier(due_ns, task_deadline(agent, agent->tasks.items[i]));
    return due_ns;
}

/* --- reports to the controller -------------------------------------------------------------------- */

static void fill_status(const struct local_task *task, size_t index, struct arena *arena,
                        struct container_status *ret)
{
    const struct local_container *container = &task->containers[index];
    const struct container_launch *spec = spec_of(task, index);
    /* Copies the name, because the launch may be freed before the report is. */
    *ret = (struct container_status){.name = arena_str(arena, spec->name),
                                     .role = spec->role,
                                     .ready = container->ready,
                                     .started = container->started,
                                     .restarts = container->runs > 0 ? container->runs - 1 : 0,
                                     .started_ns = container->started_ns,
                                     .end = container->end};
    ret->end.message = str_from(container->end_message ? container->end_message : "");
    switch ((enum run_state)container->state) {
    case RUN_IDLE:
        ret->reason = STR("PodInitializing");
        break;
    case RUN_BACKOFF:
        ret->reason = STR("CrashLoopBackOff");
        ret->message = arena_printf(arena, "back-off %llds restarting failed container=" STR_FORMAT,
                                    (long long)(container->delay_ns / NS_PER_SECOND), STR_ARG(spec->name));
        break;
    case RUN_LAUNCHING:
        ret->reason = STR("ContainerCreating");
        break;
    case RUN_RUNNING:
    case RUN_STOPPING:
        ret->phase = CONTAINER_RUNNING;
        break;
    case RUN_ENDED:
        ret->phase = CONTAINER_TERMINATED;
        if (spec->role == CONTAINER_INIT)
            ret->ready = container->has_end && !end_failed(container);
        break;
    case RUN_STATES:
        CHECK_UNREACHABLE();
    }
}

void agent_containers_report(const struct local_task *task, struct arena *arena, struct task_report *report)
{
    CHECK(task->launch.container_count == task->container_count);
    report->container_count = task->container_count;
    report->containers = ARENA_ARRAY(arena, struct container_status, task->container_count);
    for (size_t i = 0; i < task->container_count; i++) {
        fill_status(task, i, arena, &report->containers[i]);
        if (!has_role(task, i, CONTAINER_INIT))
            report->not_ready = report->not_ready || !task->containers[i].ready;
    }
}
