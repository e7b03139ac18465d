#include "host/agent/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* --- the end -------------------------------------------------------------------------------------- */

void probe_handle_gone(struct probe_run *probe)
{
    CHECK(probe->handles > 0);
    if (--probe->handles > 0 || !probe->gone)
        return;
    struct agent_host *host = probe->live->machine->host;
    probe_net_end(probe);
    buf_done(&probe->in);
    buf_done(&probe->request);
    arena_done(&probe->arena);
    mem_free(probe);
    local_part_closed(host);
}

static void on_closed(uv_handle_t *handle)
{
    probe_handle_gone(handle->data);
}

static void let_go(struct probe_run *probe)
{
    CHECK(!probe->gone);
    probe->gone = true;
    list_remove(&probe->node);
    probe->live->probe_count--;
    if (probe->exec)
        launch_exec_close(probe->exec);
    probe->exec = NULL;
    if (probe->polled)
        uv_close((uv_handle_t *)&probe->poll, on_closed);
    if (probe->fd >= 0)
        close(probe->fd);
    probe->fd = -1;
    uv_close((uv_handle_t *)&probe->timer, on_closed);
}

void probe_done(struct probe_run *probe, bool ok, const char *why)
{
    struct local_machine *machine = probe->live->machine;
    struct error text;
    error_set(&text, ERROR_IO, "%.*s", PROBE_OUTPUT_MAX, why);
    struct agent_event event = {.kind = AGENT_ACTED,
                                .container = probe->container,
                                .run = probe->run,
                                .acted = {probe->task, probe->act, ok, str_from(text.text)}};
    let_go(probe);
    local_step(machine, event);
}

void probe_watch(struct probe_run *probe, int events, uv_poll_cb on_poll)
{
    CHECK(probe->fd >= 0 && !probe->gone);
    if (!probe->polled) {
        CHECK(uv_poll_init(probe->live->machine->host->loop, &probe->poll, probe->fd) == 0);
        probe->poll.data = probe;
        probe->polled = true;
        probe->handles++;
    }
    uv_poll_start(&probe->poll, events, on_poll);
}

/* --- commands ------------------------------------------------------------------------------------- */

/* Reads the available output; only the first PROBE_OUTPUT_MAX bytes are kept. */
static void take_output(struct probe_run *probe)
{
    char chunk[4096];
    ssize_t count;
    while (probe->fd >= 0 && (count = read(probe->fd, chunk, sizeof chunk)) > 0) {
        size_t room = PROBE_OUTPUT_MAX - probe->in.len;
        buf_add(&probe->in, chunk, (size_t)count < room ? (size_t)count : room);
    }
}

static void on_output(uv_poll_t *poll, int status, int events)
{
    (void)events;
    struct probe_run *probe = poll->data;
    char chunk[4096];
    ssize_t count = read(probe->fd, chunk, sizeof chunk);
    size_t room = PROBE_OUTPUT_MAX - probe->in.len;
    if (count > 0)
        buf_add(&probe->in, chunk, (size_t)count < room ? (size_t)count : room);
    else if (count == 0 || status < 0 || (errno != EAGAIN && errno != EINTR))
        uv_poll_stop(poll); /* closed; its end comes apart */
}

static void on_exec(void *context, enum launch_exec_kind kind, int value, const char *why)
{
    struct probe_run *probe = context;
    if (kind == LAUNCH_EXEC_STARTED)
        return;
    probe->exec = NULL;
    probe->exited = true;
    if (kind == LAUNCH_EXEC_FAILED) {
        probe_done(probe, false, why);
        return;
    }
    take_output(probe);
    for (size_t i = 0; i < probe->in.len; i++) { /* any bytes, for a message of the API */
        unsigned char byte = (unsigned char)probe->in.data[i];
        probe->in.data[i] = byte == '\n' ? ' ' : byte < 32 || byte > 126 ? '?' : (char)byte;
    }
    struct str said = str_trim(buf_str(&probe->in));
    struct error text;
    error_set(&text, ERROR_IO, "exit code %d%s" STR_FORMAT, value, said.len > 0 ? ": " : "", STR_ARG(said));
    probe_done(probe, value == 0, text.text);
}

static void begin_exec(struct probe_run *probe)
{
    const struct container_action *action = probe->action;
    const char **argv = ARENA_ARRAY(&probe->arena, const char *, action->argc + 1);
    for (size_t i = 0; i < action->argc; i++)
        argv[i] = arena_strdup(&probe->arena, action->argv[i]);
    int pipe_fds[2] = {-1, -1}, null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct error error;
    int rc = null_fd < 0 || pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0
                 ? error_set_errno(&error, errno, "making the command's pipe")
                 : 0;
    probe->fd = pipe_fds[0];
    if (rc == 0) {
        fcntl(pipe_fds[1], F_SETFL, 0); /* the command's end waits as any would */
        struct launch_exec_options options = {
            .argv = argv, .fds = {null_fd, pipe_fds[1], pipe_fds[1]}, .on_event = on_exec, .context = probe};
        rc = launch_exec(probe->live->launcher, local_container_uid(probe->task, probe->container), &options,
                         &probe->exec, &error);
    }
    if (pipe_fds[1] >= 0)
        close(pipe_fds[1]);
    if (null_fd >= 0)
        close(null_fd);
    if (rc < 0)
        probe_done(probe, false, error.text);
    else
        probe_watch(probe, UV_READABLE, on_output);
}

/* --- begin ---------------------------------------------------------------------------------------- */

static void on_timeout(uv_timer_t *timer)
{
    struct probe_run *probe = timer->data;
    if (probe->action->kind == ACTION_SLEEP)
        probe_done(probe, true, "");
    else
        probe_done(probe, false, "timed out");
}

/* Called from the loop, because a result must not be fed while effects are carried out. */
static void on_begin(uv_timer_t *timer)
{
    struct probe_run *probe = timer->data;
    int64_t limit_ns = probe->action->kind == ACTION_SLEEP ? probe->action->sleep_ns : probe->limit_ns;
    if (limit_ns != INT64_MAX)
        uv_timer_start(timer, on_timeout, (uint64_t)((limit_ns + NS_PER_MS - 1) / NS_PER_MS), 0);
    if (probe->action->kind == ACTION_EXEC)
        begin_exec(probe);
    else if (probe->action->kind != ACTION_SLEEP)
        probe_net_begin(probe);
}

void local_probe_run(struct live *live, const struct agent_effect *effect)
{
    struct agent_host *host = live->machine->host;
    struct probe_run *probe = mem_alloc(sizeof *probe);
    struct container_launch from = {.post_start = *effect->act.action}, *copy;
    *probe = (struct probe_run){.live = live,
                                .task = effect->act.task,
                                .container = effect->container,
                                .run = effect->run,
                                .act = effect->act.act,
                                .limit_ns = effect->act.timeout_ns,
                                .fd = -1};
    copy = ARENA_NEW(&probe->arena, struct container_launch);
    container_launch_copy(&probe->arena, &from, copy); /* the container may end before its hook does */
    probe->action = &copy->post_start;
    list_append(&live->probes, &probe->node);
    live->probe_count++;
    host->open_parts++;
    uv_timer_init(host->loop, &probe->timer);
    probe->timer.data = probe;
    probe->handles = 1;
    uv_timer_start(&probe->timer, on_begin, 0, 0);
}

void local_probe_cancel(struct live *live, obj_id task, uint32_t container)
{
    list_for_each_safe(node, after, &live->probes)
    {
        struct probe_run *probe = container_of(node, struct probe_run, node);
        if (probe->task == task && probe->container == container)
            let_go(probe);
    }
}

void local_probe_close_all(struct live *live)
{
    list_for_each_safe(node, after, &live->probes) let_go(container_of(node, struct probe_run, node));
}
