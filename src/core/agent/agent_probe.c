/* agent_probe.c - probes and hooks of containers: when the next is due, and the consequences of its result
 * (Kubernetes' "Liveness, Readiness and Startup Probes", "Container Lifecycle Hooks"). The host runs them
 * (AGENT_ACT). */
#include <stdarg.h>

#include "core/agent/agent_private.h"

_Static_assert((int)ACT_STARTUP == (int)PROBE_STARTUP && (int)ACT_LIVENESS == (int)PROBE_LIVENESS,
               "an act for each probe");

void agent_container_note(struct agent *agent, const struct local_task *task, bool warning,
                          const char *reason, const char *format, ...)
{
    struct buf text = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    struct task_report report = {.kind = REPORT_NOTE,
                                 .task = task->uid,
                                 .step = ++agent->notes,
                                 .reason = str_from(reason),
                                 .message = buf_str(&text),
                                 .warning = warning};
    agent_pend(agent, &report);
    buf_done(&text);
}

static const struct container_launch *spec_of(const struct local_task *task, uint32_t index)
{
    CHECK(index < task->container_count && index < task->launch.container_count);
    return &task->launch.containers[index];
}

static void act(struct local_task *task, uint32_t index, enum container_act kind,
                const struct container_action *action, int64_t timeout_ns, struct agent_effects *effects)
{
    CHECK(action->kind != ACTION_NONE);
    struct agent_effect *effect = agent_effect_add(effects, AGENT_ACT);
    effect->container = index;
    effect->run = task->containers[index].runs - 1;
    effect->act.task = task->uid;
    effect->act.act = kind;
    effect->act.launch = &task->launch;
    effect->act.action = action;
    effect->act.timeout_ns = timeout_ns;
}

void agent_hook(struct local_task *task, uint32_t index, enum container_act kind, int64_t timeout_ns,
                struct agent_effects *effects)
{
    CHECK(kind == ACT_POST_START || kind == ACT_PRE_STOP);
    const struct container_launch *spec = spec_of(task, index);
    task->containers[index].hook_out = true;
    act(task, index, kind, kind == ACT_POST_START ? &spec->post_start : &spec->pre_stop, timeout_ns, effects);
}

/* --- the life of a run ---------------------------------------------------------------------------- */

static bool has_probe(const struct local_task *task, uint32_t index, int kind)
{
    return spec_of(task, index)->probes[kind].action.kind != ACTION_NONE;
}

static bool may_probe(const struct local_task *task, uint32_t index, int kind)
{
    const struct local_container *container = &task->containers[index];
    return has_probe(task, index, kind) && container->posted &&
           (kind == PROBE_STARTUP ? !container->started : container->started);
}

static void become_started(const struct agent *agent, struct local_task *task, uint32_t index)
{
    struct local_container *container = &task->containers[index];
    container->started = true;
    container->ready =
        spec_of(task, index)->role != CONTAINER_INIT && !has_probe(task, index, PROBE_READINESS);
    for (int kind = PROBE_READINESS; kind < PROBE_KINDS; kind++) {
        struct local_probe *probe = &container->probes[kind];
        int64_t first_ns = container->begun_ns + spec_of(task, index)->probes[kind].initial_delay_ns;
        *probe = (struct local_probe){.next_ns = first_ns > agent->boot_ns ? first_ns : agent->boot_ns};
    }
    task->report_due = true;
}

static void become_posted(const struct agent *agent, struct local_task *task, uint32_t index)
{
    struct local_container *container = &task->containers[index];
    container->posted = true;
    container->probes[PROBE_STARTUP] = (struct local_probe){
        .next_ns = container->begun_ns + spec_of(task, index)->probes[PROBE_STARTUP].initial_delay_ns};
    if (!has_probe(task, index, PROBE_STARTUP))
        become_started(agent, task, index);
}

void agent_probes_begin(struct agent *agent, struct local_task *task, uint32_t index, bool adopted,
                        struct agent_effects *effects)
{
    CHECK(task->containers[index].state == RUN_RUNNING);
    if (adopted) {
        /* whether its startup probe had passed is not known: a kill by that probe could be wrong */
        become_posted(agent, task, index);
        if (!task->containers[index].started)
            become_started(agent, task, index);
    } else if (spec_of(task, index)->post_start.kind != ACTION_NONE) {
        agent_hook(task, index, ACT_POST_START, INT64_MAX, effects);
    } else {
        become_posted(agent, task, index);
    }
}

void agent_probes_tick(struct agent *agent, struct local_task *task, uint32_t index,
                       struct agent_effects *effects)
{
    struct local_container *container = &task->containers[index];
    for (int kind = 0; kind < PROBE_KINDS; kind++) {
        struct local_probe *probe = &container->probes[kind];
        if (!may_probe(task, index, kind) || probe->out || agent->boot_ns < probe->next_ns)
            continue;
        const struct container_probe *spec = &spec_of(task, index)->probes[kind];
        probe->out = true;
        probe->next_ns = agent->boot_ns + spec->period_ns;
        act(task, index, (enum container_act)kind, &spec->action, spec->timeout_ns, effects);
    }
}

int64_t agent_probes_deadline(const struct local_task *task, uint32_t index)
{
    int64_t due_ns = INT64_MAX;
    for (int kind = 0; kind < PROBE_KINDS; kind++) {
        const struct local_probe *probe = &task->containers[index].probes[kind];
        if (may_probe(task, index, kind) && !probe->out && probe->next_ns < due_ns)
            due_ns = probe->next_ns;
    }
    return due_ns;
}

void agent_probes_end(struct local_task *task, uint32_t index, struct agent_effects *effects)
{
    struct local_container *container = &task->containers[index];
    bool out = container->hook_out;
    for (int kind = 0; kind < PROBE_KINDS; kind++) {
        out = out || container->probes[kind].out;
        container->probes[kind].out = false;
    }
    container->hook_out = false;
    if (!out)
        return;
    struct agent_effect *effect = agent_effect_add(effects, AGENT_ACT_CANCEL);
    effect->task = task->uid;
    effect->container = index;
}

/* --- results -------------------------------------------------------------------------------------- */

static void probe_passed(struct agent *agent, struct local_task *task, uint32_t index, int kind)
{
    struct local_container *container = &task->containers[index];
    struct local_probe *probe = &container->probes[kind];
    probe->bad = 0;
    if (probe->good < INT32_MAX)
        probe->good++;
    if (probe->good < spec_of(task, index)->probes[kind].success_threshold)
        return;
    if (kind == PROBE_STARTUP)
        become_started(agent, task, index);
    if (kind == PROBE_READINESS && !container->ready && spec_of(task, index)->role != CONTAINER_INIT)
        container->ready = task->report_due = true;
}

static void probe_failed(struct agent *agent, struct local_task *task, uint32_t index, int kind,
                         struct str message, struct agent_effects *effects)
{
    static const char *const titles[] = {"Startup", "Readiness", "Liveness"};
    static const char *const names[] = {"startup", "readiness", "liveness"};
    struct local_container *container = &task->containers[index];
    const struct container_launch *spec = spec_of(task, index);
    const struct container_probe *rule = &spec->probes[kind];
    struct local_probe *probe = &container->probes[kind];
    probe->good = 0;
    if (probe->bad < INT32_MAX)
        probe->bad++;
    if (probe->bad == 1 || probe->bad == rule->failure_threshold) /* not every failure of a long row */
        agent_container_note(agent, task, true, "Unhealthy", "%s probe failed: " STR_FORMAT, titles[kind],
                             STR_ARG(message));
    if (probe->bad < rule->failure_threshold)
        return;
    if (kind == PROBE_READINESS) {
        task->report_due = task->report_due || container->ready;
        container->ready = false;
        return;
    }
    agent_container_note(agent, task, false, "Killing", "Container " STR_FORMAT " failed %s probe, %s",
                         STR_ARG(spec->name), names[kind],
                         spec->restart == RERUN_NEVER ? "it is stopped" : "will be restarted");
    agent_container_end_run(agent, task, index, rule->grace_ns >= 0 ? rule->grace_ns : task->grace_ns,
                            effects);
}

static void hook_done(struct agent *agent, struct local_task *task, uint32_t index,
                      const struct agent_event *event, struct agent_effects *effects)
{
    struct local_container *container = &task->containers[index];
    const struct container_launch *spec = spec_of(task, index);
    bool post = event->acted.act == ACT_POST_START;
    if (!container->hook_out || post != (container->state == RUN_RUNNING))
        return;
    container->hook_out = false;
    if (!event->acted.ok)
        agent_container_note(agent, task, true, post ? "FailedPostStartHook" : "FailedPreStopHook",
                             "%s hook of container " STR_FORMAT " failed: " STR_FORMAT,
                             post ? "postStart" : "preStop", STR_ARG(spec->name),
                             STR_ARG(event->acted.message));
    if (!post) {
        container->pre_stopped = true;
    } else if (event->acted.ok) {
        become_posted(agent, task, index);
    } else {
        agent_container_end_run(agent, task, index, task->grace_ns, effects);
    }
}

void agent_acted(struct agent *agent, const struct agent_event *event, struct agent_effects *effects)
{
    struct local_task *task = agent_task_find(agent, event->acted.task);
    if (!task || !local_live(task) || event->container >= task->container_count ||
        task->state == LOCAL_WAITING || event->acted.act >= ACT_KINDS)
        return;
    struct local_container *container = &task->containers[event->container];
    if (!run_live(container) || container->runs != event->run + 1)
        return;
    if (event->acted.act >= ACT_POST_START) {
        hook_done(agent, task, event->container, event, effects);
    } else if (container->probes[event->acted.act].out && container->state == RUN_RUNNING) {
        container->probes[event->acted.act].out = false;
        if (event->acted.ok)
            probe_passed(agent, task, event->container, (int)event->acted.act);
        else
            probe_failed(agent, task, event->container, (int)event->acted.act, event->acted.message, effects);
    }
    if (container->state == RUN_STOPPING || container->state == RUN_RUNNING)
        agent_containers_tick(agent, effects);
}
