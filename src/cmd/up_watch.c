#include "cmd/up.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/processes.h"

/* A machine is judged shortly after its agent's end, because killing all of its processes takes some time. */
enum { RESTART_DELAY_MS = 20, CHIPS_DELAY_MS = 200, JUDGE_DELAY_MS = 20 };

/* --- stopping ------------------------------------------------------------------------------------------- */

static void close_if_open(uv_handle_t *handle, void *context)
{
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

void up_stop(struct up *up, int status)
{
    if (up->stopping)
        return;
    up->stopping = true;
    up->status = status;
    up_remove_ready(up);
    for (size_t i = 0; i < up->cluster.machine_count; i++)
        if (up->machines[i].running)
            uv_process_kill(&up->machines[i].process, SIGTERM);
    for (size_t i = 0; i < up->cluster.machine_count; i++)
        if (up->chips[i].running)
            uv_process_kill(&up->chips[i].process, SIGTERM);
    /* The controller is stopped last, by the exit of the last child, so that the ends of tasks reach its
     * log. */
    if (up->running == (size_t)up->controller.running) {
        if (up->controller.running)
            uv_process_kill(&up->controller.process, SIGTERM);
        else
            uv_walk(&up->loop, close_if_open, NULL);
    }
}

static void on_signal(uv_signal_t *handle, int number)
{
    up_stop(handle->data, 0);
}

/* --- watching ------------------------------------------------------------------------------------------- */

static bool machine_has_tasks(const struct up *up, const struct machine *machine)
{
    char state[PATH_BYTES + 300];
    snprintf(state, sizeof(state), "%s/machines/" STR_FORMAT, up->data, STR_ARG(machine->name));
    return processes_exist(state);
}

static void on_timer(uv_timer_t *timer)
{
    struct child *child = timer->data;
    if (!child->up->stopping)
        up_start(child);
}

static void restart_after(struct child *child, int64_t delay_ns)
{
    uv_timer_start(&child->timer, on_timer, (uint64_t)(delay_ns / NS_PER_MS), 0);
}

static void judge_machine(uv_timer_t *timer)
{
    struct child *child = timer->data;
    struct up *up = child->up;
    if (up->stopping)
        return;
    if (machine_has_tasks(up, child->machine)) {
        up_say(up, STR_FORMAT ": its agent died, its tasks live; starting the agent again",
               STR_ARG(child->machine->name));
        up_start(child);
    } else if (up->revive_ns > 0) {
        up_say(up, STR_FORMAT ": down; it comes back in %.0f s", STR_ARG(child->machine->name),
               (double)up->revive_ns / 1e9);
        restart_after(child, up->revive_ns);
    } else {
        up_say(up, STR_FORMAT ": down", STR_ARG(child->machine->name));
    }
}

static void on_controller_exit(struct up *up, int64_t status, int signal_number)
{
    if (!up->up && signal_number == 0 && status != 0) {
        up_stop(up, 1); /* the controller has printed the reason */
        return;
    }
    up_say(up, "controller ended (%s %lld); starting it again", signal_number ? "signal" : "status",
           signal_number ? (long long)signal_number : (long long)status);
    restart_after(&up->controller, RESTART_DELAY_MS * NS_PER_MS);
}

static void on_chips_exit(struct child *child, int64_t status, int signal_number)
{
    if (signal_number)
        restart_after(child, CHIPS_DELAY_MS * NS_PER_MS);
    else /* the child has printed the reason */
        up_say(child->up, STR_FORMAT ": its chips are not emulated: status %lld",
               STR_ARG(child->machine->name), (long long)status);
}

void up_child_ended(uv_process_t *process, int64_t status, int signal_number)
{
    struct child *child = process->data;
    struct up *up = child->up;
    child->running = false;
    up->running--;
    uv_close((uv_handle_t *)process, NULL);
    if (up->stopping) {
        if (up->running == 1 && up->controller.running)
            uv_process_kill(&up->controller.process, SIGTERM);
        else if (up->running == 0)
            uv_walk(&up->loop, close_if_open, NULL);
        return;
    }
    if (child->role == CHILD_AGENT)
        uv_timer_start(&child->timer, judge_machine, JUDGE_DELAY_MS, 0);
    else if (child->role == CHILD_CHIPS)
        on_chips_exit(child, status, signal_number);
    else
        on_controller_exit(up, status, signal_number);
}

/* --- the controller is ready ---------------------------------------------------------------------------- */

/* Takes the ports that the controller has announced; the first time, starts the machines. */
static void controller_ready(struct up *up)
{
    unsigned api_port, agent_port;
    if (sscanf(up->ready_text.data, "%u %u", &api_port, &agent_port) != 2)
        return;
    snprintf(up->api_at, sizeof(up->api_at), "%.*s:%u", (int)strcspn(up->api, ":"), up->api, api_port);
    snprintf(up->agents_at, sizeof(up->agents_at), "%.*s:%u", (int)strcspn(up->agents, ":"), up->agents,
             agent_port);
    if (up->up)
        return;
    up->up = true;
    for (size_t i = 0; i < up->cluster.machine_count && !up->stopping; i++)
        up_start(&up->machines[i]);
    up_announce(up);
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *ret)
{
    struct up *up = handle->data;
    buf_reserve(&up->ready_text, 256);
    *ret = uv_buf_init(up->ready_text.data + up->ready_text.len, 255);
}

static void on_ready(uv_stream_t *stream, ssize_t count, const uv_buf_t *data)
{
    struct up *up = stream->data;
    if (count < 0) {
        uv_close((uv_handle_t *)stream, NULL);
        return;
    }
    up->ready_text.len += (size_t)count;
    up->ready_text.data[up->ready_text.len] = 0;
    if (memchr(up->ready_text.data, '\n', up->ready_text.len))
        controller_ready(up);
}

void up_read_ready(struct up *up, int fd)
{
    buf_clear(&up->ready_text);
    uv_pipe_init(&up->loop, &up->ready, 0);
    up->ready.data = up;
    uv_pipe_open(&up->ready, fd);
    uv_read_start((uv_stream_t *)&up->ready, on_alloc, on_ready);
}

/* --- running -------------------------------------------------------------------------------------------- */

static void init_child(struct up *up, struct child *child, const struct machine *machine)
{
    child->up = up;
    child->role = machine ? CHILD_AGENT : CHILD_CONTROLLER;
    child->machine = machine;
    uv_timer_init(&up->loop, &child->timer);
    child->timer.data = child;
}

int up_run(struct up *up)
{
    uv_loop_init(&up->loop);
    up->machines = mem_alloc(up->cluster.machine_count * sizeof(*up->machines));
    init_child(up, &up->controller, NULL);
    for (size_t i = 0; i < up->cluster.machine_count; i++)
        init_child(up, &up->machines[i], &up->cluster.machines[i]);
    up->chips = mem_alloc(up->cluster.machine_count * sizeof(*up->chips));
    for (size_t i = 0; i < up->cluster.machine_count; i++) {
        init_child(up, &up->chips[i], &up->cluster.machines[i]);
        up->chips[i].role = CHILD_CHIPS;
    }
    int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction hangup;
    sigaction(SIGHUP, NULL, &hangup);
    int count = hangup.sa_handler == SIG_IGN ? 2 : 3; /* under nohup the cluster outlives its terminal */
    for (int i = 0; i < count; i++) {
        uv_signal_init(&up->loop, &up->signals[i]);
        up->signals[i].data = up;
        uv_signal_start(&up->signals[i], on_signal, numbers[i]);
    }
    for (size_t i = 0; up->emulates_chips && i < up->cluster.machine_count; i++)
        up_start(&up->chips[i]);
    up_start(&up->controller);
    uv_run(&up->loop, UV_RUN_DEFAULT);
    uv_loop_close(&up->loop);
    mem_free(up->machines);
    mem_free(up->chips);
    buf_done(&up->ready_text);
    return up->status;
}
