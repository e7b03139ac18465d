/* reads.c - an API server on the standby's own state, for clients' reads (rule.h). The server does not
 * listen: the forwarder connects clients to it by socket pairs, one request at a time.
 *
 * The server lives while the standby follows. When the standby takes the lead, watches end as complete
 * answers, lists under way are sent completely, and the controller's API serves the next requests. */
#include "host/standby/internal.h"

#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "host/api/api.h"
#include "host/api/relay.h"

/* An API server, from reads_begin() until all its parts have closed. */
struct reads {
    uv_loop_t *loop;
    struct core *core;
    struct access *access; /* NULL: every client may read everything */
    struct api *api;
    uv_timer_t tick; /* after reads_end(): waits until clients have their answers */
    uint64_t end_ms;
    struct reads **owner; /* after reads_end(): set to NULL when it closes */
    int open_parts;
};

enum { TICK_MS = 20, END_MS = 5000 };

/* --- the API's hooks ---------------------------------------------------------------------------------- */

static const char not_here[] = "this controller does not lead: ask again";

static struct core *hook_core(void *context)
{
    return ((struct reads *)context)->core;
}

static int64_t hook_now_ns(void *context)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

/* Never called: hooks of requests that go to the leader. */
static void hook_submit(void *context, const struct write_event *write, struct api_request *request)
{
    prepared_write_free(write->prepared);
    api_reply_error(request, 503, "ServiceUnavailable", not_here);
}

static void hook_logs(void *context, const struct task *task, const struct api_log_options *options,
                      struct api_stream *stream)
{
    api_log_data(stream, STR(""), true, not_here);
}

static void hook_logs_closed(void *context, struct api_stream *stream)
{
}

static void hook_exec(void *context, const struct task *task, const struct api_exec_options *options,
                      struct api_exec *exec)
{
    api_exec_end(exec, -1, not_here);
}

static void hook_exec_input(void *context, struct api_exec *exec, struct str bytes, bool end)
{
}

static void hook_exec_credit(void *context, struct api_exec *exec, uint64_t bytes)
{
}

static void hook_exec_resize(void *context, struct api_exec *exec, uint16_t width, uint16_t height)
{
}

static void hook_exec_closed(void *context, struct api_exec *exec)
{
}

static bool hook_hold_counts(void *context, machine_id machine)
{
    return false; /* agents confirm holds to the leader only */
}

/* --- begin and end ------------------------------------------------------------------------------------ */

int reads_begin(uv_loop_t *loop, const struct controller_options *options, struct core *core,
                struct reads **ret_reads, struct error *error)
{
    struct reads *reads = mem_alloc(sizeof *reads);
    *reads = (struct reads){.loop = loop, .core = core};
    int rc = controller_access(options, &reads->access, error);
    if (rc == 0) {
        const struct api_options with = {.listens_not = true,
                                         .hooks = {reads, hook_core, hook_now_ns, hook_submit, hook_logs,
                                                   hook_logs_closed, hook_exec, hook_exec_input,
                                                   hook_exec_credit, hook_exec_resize, hook_exec_closed,
                                                   hook_hold_counts, NULL, NULL},
                                         .access = reads->access,
                                         .names = options->api_names,
                                         .name_count = options->api_name_count};
        rc = api_new(loop, &with, &reads->api, error);
    }
    if (rc < 0) {
        access_free(reads->access);
        mem_free(reads);
        return error_wrap(error, "serving reads");
    }
    uv_timer_init(loop, &reads->tick);
    reads->tick.data = reads;
    *ret_reads = reads;
    return 0;
}

static void on_part_closed(void *context)
{
    struct reads *reads = context;
    if (--reads->open_parts > 0)
        return;
    access_free(reads->access);
    mem_free(reads);
}

static void on_tick_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

void reads_close(struct reads *reads)
{
    if (!reads || reads->open_parts > 0)
        return;
    if (reads->owner)
        *reads->owner = NULL;
    reads->open_parts = 2;
    uv_close((uv_handle_t *)&reads->tick, on_tick_closed);
    api_close(reads->api, on_part_closed, reads);
}

static void on_end_tick(uv_timer_t *timer)
{
    struct reads *reads = timer->data;
    if (api_connections(reads->api) == 0 || uv_now(reads->loop) >= reads->end_ms)
        reads_close(reads);
}

/* Closes the connection. The forwarder notices, and sends a request without an answer to the leader. */
static void let_go(void *context, int fd, struct str bytes, const struct relay_client *tls)
{
    close(fd);
}

void reads_end(struct reads **owner)
{
    struct reads *reads = *owner;
    CHECK(reads->open_parts == 0 && !reads->owner);
    reads->owner = owner;
    reads->end_ms = uv_now(reads->loop) + END_MS;
    const struct api_heir nobody = {reads, let_go, NULL};
    api_hand_over(reads->api, &nobody);
    api_handed_over(reads->api);
    uv_timer_start(&reads->tick, on_end_tick, 0, TICK_MS);
}

/* --- while it follows --------------------------------------------------------------------------------- */

void reads_changed(struct reads *reads, const struct effects *effects)
{
    for (size_t i = 0; i < effects->list.len; i++)
        if (effects->list.items[i].kind == EFFECT_CHANGED)
            api_changed(reads->api, &effects->list.items[i]);
}

void reads_flush(struct reads *reads)
{
    api_flush(reads->api);
}

int reads_connect(struct reads *reads, int client, const struct relay_client *tls)
{
    int ends[2];
    struct sockaddr_storage from = {0}, here = {0};
    socklen_t from_len = sizeof from, here_len = sizeof here;
    if (!tls && (getpeername(client, (struct sockaddr *)&from, &from_len) < 0 ||
                 getsockname(client, (struct sockaddr *)&here, &here_len) < 0))
        return -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    api_take(reads->api, ends[1], tls ? &tls->address : &from, tls ? NULL : &here, tls);
    return ends[0];
}
