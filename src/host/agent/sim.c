/* sim.c - simulated tasks (agent_host.h). One heap serves the tasks of all machines. */
#include <signal.h>
#include <stdio.h>

#include "host/agent/internal.h"

enum sim_phase { SIM_STARTING, SIM_RUNNING, SIM_ENDING };

struct sim_task {
    struct local_machine *machine;
    struct list_node node;
    struct heap_node due; /* its next act */
    obj_id uid;
    uint32_t container, run;
    bool main; /* it joins and makes steps */
    int32_t attempt;
    uint8_t phase;                 /* enum sim_phase */
    int64_t started_ns;            /* boottime */
    int64_t end_ns;                /* boottime; INT64_MAX: when it is stopped */
    int64_t step_ns, next_step_ns; /* 0: none */
    int64_t step;
    int signal; /* ENDING: 0 or what ended it */
    int64_t wall_ns;
};

static int64_t milliseconds(const struct container_launch *launch, const char *name, int64_t fallback_ns)
{
    int64_t value;
    for (size_t i = 0; i < launch->env_count; i++)
        if (str_is(launch->env[i].name, name) && str_to_i64(launch->env[i].value, 0, INT32_MAX, &value))
            return value * NS_PER_MS;
    return fallback_ns;
}

static void plan(struct sim_task *task, int64_t at_ns)
{
    struct agent_host *host = task->machine->host;
    if (heap_has(&task->due))
        heap_remove(&host->sim_due, &task->due);
    task->due.key = at_ns;
    if (at_ns != INT64_MAX)
        heap_insert(&host->sim_due, &task->due);
    local_arm(host);
}

static void sim_remove(struct sim_task *task)
{
    if (heap_has(&task->due))
        heap_remove(&task->machine->host->sim_due, &task->due);
    list_remove(&task->node);
    mem_free(task);
}

void local_sim_launch(struct local_machine *machine, const struct agent_effect *effect)
{
    const struct task_launch *launch = effect->launch;
    struct container_launch container;
    local_container_launch(launch, effect->container, &container);
    struct sim_task *task = mem_alloc(sizeof *task);
    task->machine = machine;
    task->uid = launch->task;
    task->container = effect->container;
    task->run = effect->run;
    task->main = effect->container == 0;
    task->attempt = launch->attempt;
    task->due.tie = ++machine->host->sim_sequence;
    int64_t run_ns = container.role == CONTAINER_INIT ? NS_PER_MS : INT64_MAX;
    task->end_ns = milliseconds(&container, "PHX_SIM_RUN_MS", run_ns);
    task->step_ns = task->main ? milliseconds(&container, "PHX_SIM_STEP_MS", 0) : 0;
    list_append(&machine->sim_tasks, &task->node);
    plan(task, local_boot_ns() + NS_PER_MS);
}

void local_sim_stop(struct local_machine *machine, const struct task_stop *stop, uint32_t container)
{
    list_for_each(node, &machine->sim_tasks)
    {
        struct sim_task *task = container_of(node, struct sim_task, node);
        if (task->uid != stop->task || task->container != container)
            continue;
        task->phase = SIM_ENDING;
        task->signal = stop->grace_ns > 0 ? SIGTERM : SIGKILL;
        plan(task, local_boot_ns() + NS_PER_MS);
        return;
    }
}

static void sim_next(struct sim_task *task)
{
    int64_t at_ns = task->end_ns;
    if (task->step_ns > 0 && task->next_step_ns < at_ns)
        at_ns = task->next_step_ns;
    plan(task, at_ns);
}

static void sim_start(struct sim_task *task, int64_t now_ns)
{
    struct local_machine *machine = task->machine;
    obj_id uid = task->uid;
    int32_t attempt = task->attempt;
    uint32_t container = task->container, run = task->run;
    bool joins = task->step_ns > 0;
    task->phase = SIM_RUNNING;
    task->started_ns = now_ns;
    task->wall_ns = local_wall_ns();
    task->end_ns = task->end_ns == INT64_MAX ? INT64_MAX : now_ns + task->end_ns;
    task->next_step_ns = now_ns + task->step_ns;
    sim_next(task);
    /* A step of the agent may stop and free the task, so it is not touched from here on. */
    local_step(machine,
               (struct agent_event){.kind = AGENT_TASK_STARTED,
                                    .container = container,
                                    .run = run,
                                    .started = {uid, 1, local_wall_ns()}});
    if (joins)
        local_step(machine, (struct agent_event){.kind = AGENT_CLIENT_JOIN,
                                                 .client = {.client = uid, .task = uid, .attempt = attempt}});
}

static void sim_end(struct sim_task *task)
{
    struct local_machine *machine = task->machine;
    struct agent_event event = {.kind = AGENT_TASK_EXITED,
                                .container = task->container,
                                .run = task->run,
                                .exited = {.task = task->uid,
                                           .exit_code = task->signal ? -1 : 0,
                                           .signal = task->signal,
                                           .started_ns = task->wall_ns,
                                           .finished_ns = local_wall_ns(),
                                           .pid = 1}};
    sim_remove(task);
    local_step(machine, event);
}

static void sim_act(struct sim_task *task, int64_t now_ns)
{
    if (task->phase == SIM_STARTING) {
        sim_start(task, now_ns);
        return;
    }
    /* However late this runs, a step that is due before the end precedes it: no task ends without its first
     * step. */
    bool steps = task->step_ns > 0 && task->next_step_ns < task->end_ns;
    if (task->phase == SIM_ENDING || (now_ns >= task->end_ns && !steps)) {
        sim_end(task);
        return;
    }
    struct agent_event event = {.kind = AGENT_CLIENT_STEP, .client = {.client = task->uid}};
    struct local_machine *machine = task->machine;
    event.client.step = (struct task_step){.step = ++task->step};
    task->next_step_ns += ((now_ns - task->next_step_ns) / task->step_ns + 1) * task->step_ns;
    sim_next(task);
    local_step(machine, event);
}

void local_sim_run_due(struct agent_host *host, int64_t now_ns)
{
    struct heap_node *node;
    while (!host->closing && (node = heap_min(&host->sim_due)) && node->key <= now_ns) {
        heap_remove(&host->sim_due, node);
        sim_act(container_of(node, struct sim_task, due), now_ns);
    }
}

void local_sim_act(struct local_machine *machine, const struct agent_effect *effect)
{
    struct sim_act act = {effect->act.task, effect->container, effect->run, effect->act.act};
    vec_push(&machine->sim_acts, act);
}

void local_sim_errand(struct local_machine *machine, const struct errand_start *start)
{
    vec_push(&machine->sim_errands, start->errand);
}

bool local_sim_acted(struct local_machine *machine, struct agent_event *ret_event)
{
    if (machine->sim_errands.len > 0) {
        machine->sim_errand_end = (struct errand_end){machine->sim_errands.items[0], ERRAND_OK, 0, {0}};
        vec_remove(&machine->sim_errands, 0);
        *ret_event =
            (struct agent_event){.kind = AGENT_ERRAND_ENDED, .errand_ended = &machine->sim_errand_end};
        return true;
    }
    if (machine->sim_acts.len == 0)
        return false;
    struct sim_act act = machine->sim_acts.items[0];
    vec_remove(&machine->sim_acts, 0);
    *ret_event = (struct agent_event){.kind = AGENT_ACTED,
                                      .container = act.container,
                                      .run = act.run,
                                      .acted = {.task = act.task, .act = act.act, .ok = true}};
    return true;
}

void local_sim_log_open(struct local_machine *machine, const struct log_open *open)
{
    char text[64];
    snprintf(text, sizeof text, "simulated task %llu\n", (unsigned long long)open->task);
    struct from_agent message = {.kind = FROM_AGENT_LOG_DATA,
                                 .log_data = {open->stream, str_from(text), true, {0}}};
    if (machine->conn)
        wire_send_agent(machine->conn, &message);
}

void local_sim_free(struct local_machine *machine)
{
    list_for_each_safe(node, after, &machine->sim_tasks)
        sim_remove(container_of(node, struct sim_task, node));
    vec_done(&machine->sim_acts);
    vec_done(&machine->sim_errands);
}
