/* The connection to the agent. When it breaks, because an agent is restarted without its tasks, the library
 * connects again and sends JOIN. After WELCOME it sends everything that the new agent may not know. */
#include "job/context.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define STEP_INTERVAL_NS 50000000   /* 20 heartbeats per second */
#define SAME_DRAIN_NS    1000000000 /* a deadline that moves less is the same notice */

static void close_link(struct phx_context *ctx)
{
    job_conn_close(&ctx->link.conn);
    ctx->link.state = ctx->failure == PHX_ERROR_FENCED ? LINK_OFF : LINK_DOWN;
    ctx->link.retry_ns = job_backoff(&ctx->link.backoff_ns);
    ctx->link.leave_sent = false;
    job_changed(ctx);
}

static void send_now(struct phx_context *ctx, const struct jobwire_message *message)
{
    uint8_t frame[JOBWIRE_FRAME_MAX];
    size_t len = jobwire_encode(message, frame, sizeof frame);
    if (job_conn_queue(&ctx->link.conn, frame, len) != 0)
        shutdown(ctx->link.conn.fd, SHUT_RDWR); /* poll reports it, and the thread closes it */
    else if (job_conn_pending(&ctx->link.conn))
        job_wake(ctx);
}

void job_link_send(struct phx_context *ctx, const struct jobwire_message *message)
{
    if (ctx->link.state == LINK_READY)
        send_now(ctx, message);
}

static void send_step(struct phx_context *ctx, int64_t now_ns)
{
    job_link_send(ctx, &(struct jobwire_message){.type = JOBWIRE_STEP, .step = ctx->step});
    ctx->step_dirty = false;
    ctx->step_timer = false;
    ctx->step_sent_ns = now_ns;
}

void job_link_step(struct phx_context *ctx)
{
    ctx->step_dirty = true;
    if (ctx->link.state != LINK_READY)
        return; /* WELCOME sends it */
    int64_t now_ns = job_now_ns();
    if (now_ns - ctx->step_sent_ns >= STEP_INTERVAL_NS && !job_conn_pending(&ctx->link.conn)) {
        send_step(ctx, now_ns);
    } else if (!ctx->step_timer) {
        ctx->step_timer = true;
        job_wake(ctx);
    }
}

static void send_leave(struct phx_context *ctx)
{
    if (ctx->step_dirty)
        send_step(ctx, job_now_ns());
    job_link_send(ctx, &(struct jobwire_message){.type = JOBWIRE_LEAVE});
    ctx->link.leave_sent = true;
}

void job_link_leave(struct phx_context *ctx)
{
    ctx->link.leaving = true;
    if (ctx->link.state == LINK_READY)
        send_leave(ctx);
}

bool job_link_drained(const struct phx_context *ctx)
{
    return ctx->link.state == LINK_OFF || (ctx->link.leave_sent && !job_conn_pending(&ctx->link.conn));
}

static void join(struct phx_context *ctx)
{
    struct jobwire_message message = {.type = JOBWIRE_JOIN};
    message.join.task_uid = ctx->settings.task_uid;
    message.join.attempt = ctx->attempt;
    message.join.rank = ctx->settings.rank;
    message.join.world = ctx->settings.world;
    message.join.flags = (ctx->settings.rejoins ? JOBWIRE_JOIN_CAN_REJOIN : 0) |
                         (ctx->settings.spare ? JOBWIRE_JOIN_SPARE : 0);
    message.join.pid = (uint32_t)getpid();
    ctx->link.state = LINK_JOINING;
    job_patience_begin(&ctx->link.patience);
    send_now(ctx, &message);
}

void job_link_join(struct phx_context *ctx)
{
    if (ctx->link.state == LINK_READY || ctx->link.state == LINK_JOINING)
        join(ctx);
}

static void connect_agent(struct phx_context *ctx)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(ctx->settings.agent_socket);
    memcpy(address.sun_path, ctx->settings.agent_socket, len);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        ctx->link.retry_ns = job_backoff(&ctx->link.backoff_ns);
        return;
    }
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
        job_conn_open(&ctx->link.conn, fd);
        join(ctx);
    } else if (errno == EINPROGRESS) {
        job_conn_open(&ctx->link.conn, fd);
        ctx->link.state = LINK_CONNECTING;
        job_patience_begin(&ctx->link.patience);
    } else { /* the agent does not listen yet, or its queue of connections is full */
        close(fd);
        ctx->link.retry_ns = job_backoff(&ctx->link.backoff_ns);
    }
}

static void on_welcome(struct phx_context *ctx, const struct jobwire_welcome *welcome)
{
    if (ctx->link.state != LINK_JOINING)
        return;
    if (welcome->attempt < ctx->attempt)
        return; /* the answer to an earlier attempt's JOIN */
    if (welcome->attempt != ctx->attempt) {
        job_fence(ctx);
        return;
    }
    ctx->link.state = LINK_READY;
    ctx->link.backoff_ns = 0;
    job_patience_end(&ctx->link.patience);
    if (!ctx->keyed)
        memcpy(ctx->key, welcome->key, sizeof ctx->key);
    ctx->keyed = true;
    if (!ctx->welcomed) {
        ctx->welcomed = true;
        if (welcome->has_restore && ctx->coordinator != NULL)
            ctx->restore = (struct job_checkpoint_ref){true, welcome->restore_step, welcome->restore_attempt};
    }
    if (welcome->has_restore &&
        welcome->restore_attempt == ctx->attempt) /* the negotiation settles older ones */
        job_committed(ctx, welcome->restore_step, welcome->restore_attempt);
    for (uint32_t rank = 0; rank < ctx->settings.world; rank++)
        if (ctx->members[rank] == MEMBER_GONE)
            job_link_send(ctx, &(struct jobwire_message){.type = JOBWIRE_PEER_GONE, .peer_gone = {rank}});
    job_rejoin_ask(ctx);
    for (size_t i = 0; i < ctx->saved_count; i++)
        job_link_send(ctx,
                      &(struct jobwire_message){.type = JOBWIRE_SHARD_SAVED, .shard_saved = ctx->saved[i]});
    job_store_again(ctx);
    job_routes_say(ctx);
    if (ctx->step_known)
        send_step(ctx, job_now_ns());
    if (ctx->link.leaving)
        send_leave(ctx);
    job_changed(ctx);
}

/* Takes a notice. An agent repeats it on a new connection; only a different notice leads to another save. */
static void on_drain(struct phx_context *ctx, const struct jobwire_drain *drain)
{
    int64_t wait_ms = drain->deadline_ms > INT32_MAX ? INT32_MAX : (int64_t)drain->deadline_ms;
    int64_t deadline_ns = job_deadline_ns(wait_ms);
    int64_t moved_ns = deadline_ns - ctx->drain_deadline_ns;
    if (!ctx->drain || drain->reason != ctx->drain_reason || moved_ns > SAME_DRAIN_NS ||
        moved_ns < -SAME_DRAIN_NS)
        ctx->save_agreement.asked = false;
    ctx->drain = ctx->flight.due = true;
    ctx->drain_reason = drain->reason;
    ctx->drain_deadline_ns = deadline_ns;
    job_save_agreement_notice(ctx);
}

/* Takes routing tables. An agent repeats them on a new connection, and older tables may arrive late. */
static void on_tables(struct phx_context *ctx, const struct jobwire_tables *tables)
{
    uint64_t session = ctx->tables.session;
    if (tables->number > ctx->tables.number)
        ctx->tables = *tables;
    else if (tables->session <= session)
        return;
    ctx->tables.session = tables->session > session ? tables->session : session;
    job_changed(ctx);
}

static void on_message(struct phx_context *ctx, const struct jobwire_message *message)
{
    switch (message->type) {
    case JOBWIRE_WELCOME:
        on_welcome(ctx, &message->welcome);
        break;
    case JOBWIRE_FENCED:
        job_fence(ctx);
        break;
    case JOBWIRE_CHECKPOINT_COMMITTED:
        job_committed(ctx, message->committed.step, message->committed.attempt);
        break;
    case JOBWIRE_STORED:
        job_store_moved(ctx, JOB_MOVE_STORE, &message->moved);
        break;
    case JOBWIRE_FETCHED:
        job_store_moved(ctx, JOB_MOVE_FETCH, &message->moved);
        break;
    case JOBWIRE_DRAIN:
        on_drain(ctx, &message->drain);
        break;
    case JOBWIRE_TABLES:
        on_tables(ctx, &message->tables);
        break;
    case JOBWIRE_REJOIN:
        job_rejoin_told(ctx, &message->rejoin);
        break;
    default: /* of a later version, or for agents */
        break;
    }
}

static int receive(struct phx_context *ctx)
{
    if (job_conn_read(&ctx->link.conn) != 0)
        return -1;
    for (;;) {
        struct jobwire_message message;
        size_t len, used;
        const uint8_t *data = job_conn_data(&ctx->link.conn, &len);
        int status = data == NULL ? 0 : jobwire_decode(data, len, &message, &used);
        if (status <= 0)
            return status;
        job_conn_take(&ctx->link.conn, used);
        on_message(ctx, &message);
    }
}

void job_link_start(struct phx_context *ctx)
{
    job_conn_init(&ctx->link.conn);
    ctx->link.state = ctx->settings.standalone ? LINK_OFF : LINK_DOWN;
    ctx->welcomed = ctx->keyed = ctx->settings.standalone;
    memcpy(ctx->key, ctx->settings.key, sizeof ctx->key);
}

void job_link_stop(struct phx_context *ctx)
{
    job_conn_close(&ctx->link.conn);
}

short job_link_events(const struct phx_context *ctx)
{
    if (ctx->link.state == LINK_CONNECTING)
        return POLLOUT;
    return (short)(POLLIN | (job_conn_pending(&ctx->link.conn) ? POLLOUT : 0));
}

void job_link_ready(struct phx_context *ctx, short events)
{
    if (ctx->link.state == LINK_CONNECTING) {
        int status = 0;
        socklen_t size = sizeof status;
        if (getsockopt(ctx->link.conn.fd, SOL_SOCKET, SO_ERROR, &status, &size) != 0 || status != 0)
            close_link(ctx);
        else
            join(ctx);
        return;
    }
    bool broken = (events & POLLOUT) != 0 && job_conn_flush(&ctx->link.conn) != 0;
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0 && receive(ctx) != 0)
        broken = true;
    if (broken)
        close_link(ctx);
    else if (ctx->link.leaving)
        job_changed(ctx);
}

int64_t job_link_timer(const struct phx_context *ctx)
{
    if (ctx->link.state == LINK_DOWN)
        return ctx->link.retry_ns;
    if (ctx->link.state == LINK_CONNECTING || ctx->link.state == LINK_JOINING)
        return ctx->link.patience.due_ns;
    if (ctx->link.state == LINK_READY && ctx->step_dirty && !job_conn_pending(&ctx->link.conn))
        return ctx->step_sent_ns + STEP_INTERVAL_NS;
    return JOB_NEVER;
}

void job_link_tick(struct phx_context *ctx, int64_t now_ns)
{
    if (ctx->link.state == LINK_DOWN)
        connect_agent(ctx);
    else if (ctx->link.state == LINK_CONNECTING || ctx->link.state == LINK_JOINING)
        close_link(ctx);
    else if (ctx->link.state == LINK_READY && ctx->step_dirty)
        send_step(ctx, now_ns);
}
