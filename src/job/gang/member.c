/* A rank's connection to rank 0. On rank 0 itself, messages are exchanged with the coordinator in the same
 * process. */
#include "job/context.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct addrinfo *job_resolve(struct phx_context *ctx)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found = NULL;
    pthread_mutex_unlock(&ctx->mutex);
    int status = getaddrinfo(ctx->settings.host, ctx->settings.port, &hints, &found);
    pthread_mutex_lock(&ctx->mutex);
    return status == 0 ? found : NULL;
}

static void close_link(struct phx_context *ctx)
{
    bool was_ready = ctx->member.state == MEMBER_LINK_READY;
    job_conn_close(&ctx->member.conn);
    if (!was_ready) {
        ctx->member.state = MEMBER_LINK_DOWN;
        ctx->member.retry_ns = job_backoff(&ctx->member.backoff_ns);
        return;
    }
    ctx->member.state = MEMBER_LINK_OFF;
    if (!ctx->leaving && ctx->failure == 0)
        job_lose(ctx, 0);
    job_changed(ctx);
}

static void send_encoded(struct phx_context *ctx, const struct rendezvous_message *message)
{
    uint8_t small[1024];
    size_t size = rendezvous_size(message);
    uint8_t *frame = size <= sizeof small ? small : malloc(size);
    if (frame != NULL) {
        rendezvous_encode(message, frame);
        rendezvous_seal(&ctx->member.out, frame, size);
    }
    if (frame == NULL || job_conn_queue(&ctx->member.conn, frame, size) != 0)
        shutdown(ctx->member.conn.fd, SHUT_RDWR); /* poll reports it, and the thread closes it */
    else if (job_conn_pending(&ctx->member.conn))
        job_wake(ctx);
    if (frame != small)
        free(frame);
}

void job_member_send(struct phx_context *ctx, const struct rendezvous_message *message)
{
    if (ctx->coordinator != NULL)
        job_coordinator_receive(ctx, 0, message);
    else if (ctx->member.state == MEMBER_LINK_READY)
        send_encoded(ctx, message);
}

void job_member_give_up(struct phx_context *ctx)
{
    struct rendezvous_message message = {.type = RENDEZVOUS_GAVE_UP, .rank = ctx->settings.rank};
    if (ctx->coordinator != NULL)
        job_coordinator_broadcast(ctx, &message);
    else if (ctx->member.state == MEMBER_LINK_READY)
        send_encoded(ctx, &message);
}

/* Sends HELLO, with the answer to the coordinator's nonce. */
static void hello(struct phx_context *ctx, const uint8_t server_nonce[SEAL_NONCE_SIZE])
{
    const struct job_settings *settings = &ctx->settings;
    struct rendezvous_name name = {0};
    uint8_t bytes[SEAL_NONCE_SIZE + RENDEZVOUS_NAME_SIZE_MAX];
    if (!seal_nonce(bytes)) {
        close_link(ctx);
        return;
    }
    seal_begin(&ctx->member.out, ctx->key, RENDEZVOUS_PURPOSE, SEAL_FROM_CLIENT, server_nonce, bytes);
    seal_begin(&ctx->member.in, ctx->key, RENDEZVOUS_PURPOSE, SEAL_FROM_SERVER, server_nonce, bytes);
    memcpy(name.name, settings->name, sizeof settings->name);
    memcpy(name.address, settings->address, sizeof settings->address);
    job_own_place(ctx, &name);
    struct rendezvous_message message = {.type = RENDEZVOUS_HELLO,
                                         .rank = settings->rank,
                                         .world = settings->world,
                                         .attempt = ctx->attempt,
                                         .status = settings->standalone,
                                         .key = (const uint8_t *)settings->jobset,
                                         .key_len = (uint32_t)strlen(settings->jobset),
                                         .value = bytes};
    message.value_len = (uint32_t)(SEAL_NONCE_SIZE + rendezvous_put_name(&name, bytes + SEAL_NONCE_SIZE));
    ctx->member.state = MEMBER_LINK_JOINING;
    job_patience_end(&ctx->member.patience); /* from here on the wait is for other ranks, without a limit */
    send_encoded(ctx, &message);
}

/* Without a configured address, uses the local address of the connection to the coordinator. */
static void learn_address(struct phx_context *ctx)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    char *out = ctx->settings.address;
    if (out[0] == '\0' && getsockname(ctx->member.conn.fd, (struct sockaddr *)&address, &size) == 0 &&
        getnameinfo((struct sockaddr *)&address, size, out, sizeof ctx->settings.address, NULL, 0,
                    NI_NUMERICHOST) != 0)
        out[0] = '\0';
}

/* Returns true if the socket is connected to itself. That happens when nobody listens yet and the kernel
 * chooses the wanted port as the local one. */
static bool is_self(int fd)
{
    struct sockaddr_storage local = {0}, peer = {0};
    socklen_t local_size = sizeof local, peer_size = sizeof peer;
    return getsockname(fd, (struct sockaddr *)&local, &local_size) == 0 &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_size) == 0 && local_size == peer_size &&
           memcmp(&local, &peer, local_size) == 0;
}

static void connected(struct phx_context *ctx)
{
    int fd = ctx->member.conn.fd, on = 1, idle_s = 10, interval_s = 2, probes = 3;
    if (is_self(fd)) {
        close_link(ctx);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on,
               sizeof on); /* finds a machine that went silent; the agents' lease is faster */
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    learn_address(ctx);
    ctx->member.state = MEMBER_LINK_CONNECTED;
}

static void connect_hub(struct phx_context *ctx)
{
    struct addrinfo *found = job_resolve(ctx);
    for (struct addrinfo *at = found; at != NULL; at = at->ai_next) {
        int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
            continue;
        int status = connect(fd, at->ai_addr, at->ai_addrlen);
        if (status == 0 || errno == EINPROGRESS) {
            job_conn_open(&ctx->member.conn, fd);
            ctx->member.state = MEMBER_LINK_CONNECTING;
            job_patience_begin(&ctx->member.patience);
            if (status == 0)
                connected(ctx);
            break;
        }
        close(fd);
    }
    if (ctx->member.state == MEMBER_LINK_DOWN)
        ctx->member.retry_ns = job_backoff(&ctx->member.backoff_ns);
    if (found != NULL)
        freeaddrinfo(found);
}

static void on_table(struct phx_context *ctx, const struct rendezvous_message *message)
{
    size_t pos = 0;
    if (ctx->met)
        return;
    for (uint32_t rank = 0; rank < ctx->settings.world; rank++) {
        size_t used = rendezvous_get_name(message->value + pos, message->value_len - pos, &ctx->names[rank]);
        if (used == 0) {
            job_join_failed(ctx, PHX_ERROR_IO, "rank 0 sent an invalid table of ranks");
            return;
        }
        pos += used;
        ctx->members[rank] = MEMBER_PRESENT;
    }
    if (ctx->settings.standalone)
        ctx->attempt = message->attempt;
    ctx->met = true;
    if (ctx->member.state == MEMBER_LINK_JOINING)
        ctx->member.state = MEMBER_LINK_READY;
    job_negotiate_start(ctx,
                        (struct job_checkpoint_ref){message->status == 1, message->number, message->rank});
}

static void on_reply(struct phx_context *ctx, const struct rendezvous_message *message)
{
    struct job_call *call = ctx->calls;
    while (call != NULL && call->id != message->number)
        call = call->next;
    if (call == NULL || call->done)
        return; /* the caller has given up */
    call->done = true;
    call->status = -(int)message->status;
    call->len = message->value_len;
    if (call->status == 0 && call->len > call->cap)
        call->status = PHX_ERROR_SPACE;
    if (call->status == 0 && call->len > 0)
        memcpy(call->buf, message->value, call->len);
    job_changed(ctx);
}

void job_member_receive(struct phx_context *ctx, const struct rendezvous_message *message)
{
    uint32_t rank = message->rank;
    bool about_rank = message->type == RENDEZVOUS_GONE || message->type == RENDEZVOUS_LEFT;
    if (about_rank && rank >= ctx->settings.world)
        return;
    switch (message->type) {
    case RENDEZVOUS_TABLE:
        on_table(ctx, message);
        break;
    case RENDEZVOUS_REJECT:
        snprintf(ctx->join_text, sizeof ctx->join_text, "rank 0 refused: %.*s", (int)message->value_len,
                 (const char *)message->value);
        ctx->join_code = -(int)message->status;
        job_changed(ctx);
        break;
    case RENDEZVOUS_RELEASE:
        ctx->barrier_released = message->number;
        job_changed(ctx);
        break;
    case RENDEZVOUS_REPLY:
        on_reply(ctx, message);
        break;
    case RENDEZVOUS_GONE: /* GAVE_UP goes first: the program may end as soon as it learns of the loss */
        if (ctx->coordinator == NULL)
            job_member_send(ctx, &(struct rendezvous_message){.type = RENDEZVOUS_GAVE_UP});
        job_lose(ctx, rank);
        break;
    case RENDEZVOUS_GAVE_UP: /* the coordinator has joined another attempt */
        if (ctx->coordinator == NULL)
            job_end_attempt(ctx);
        break;
    case RENDEZVOUS_LEFT:
        ctx->members[rank] = MEMBER_LEFT;
        if (!ctx->any_left)
            ctx->left_rank = rank;
        ctx->any_left = true;
        job_changed(ctx);
        break;
    case RENDEZVOUS_DUMP:
    case RENDEZVOUS_SOURCE:
    case RENDEZVOUS_RESHARD:
    case RENDEZVOUS_AGREED:
        job_negotiate_told(ctx, message);
        break;
    case RENDEZVOUS_ASK_KEYS:
        job_keys_asked(ctx);
        break;
    case RENDEZVOUS_KEYS:
        job_keys_told(ctx, message);
        break;
    case RENDEZVOUS_HELD_BY_ALL:
        job_keep_told(ctx, message->number, message->status == 0);
        break;
    case RENDEZVOUS_COPIED_BY_ALL:
        job_peer_told(ctx, message->number, message->status == 0);
        break;
    case RENDEZVOUS_SAVE_AT:
        job_save_agreement_told(ctx, message);
        break;
    case RENDEZVOUS_COMMITTED:
        job_committed(ctx, message->number, message->attempt);
        break;
    default: /* for the coordinator */
        break;
    }
}

/* Takes a frame of the coordinator. Returns false if its tag is wrong: the connection must end. */
static bool take_frame(struct phx_context *ctx, const struct rendezvous_message *message,
                       const uint8_t *frame, size_t size)
{
    enum member_link_state state = ctx->member.state;
    bool rejects = message->type == RENDEZVOUS_REJECT && state != MEMBER_LINK_READY;
    if (state == MEMBER_LINK_CONNECTED && message->type == RENDEZVOUS_CHALLENGE) {
        if (message->value_len != SEAL_NONCE_SIZE)
            return false;
        hello(ctx, message->value);
        return ctx->member.state == MEMBER_LINK_JOINING;
    }
    if (!rejects && (state == MEMBER_LINK_CONNECTED || !rendezvous_check(&ctx->member.in, frame, size)))
        return false;
    job_member_receive(ctx, message);
    return true;
}

static int receive(struct phx_context *ctx)
{
    if (job_conn_read(&ctx->member.conn) != 0)
        return -1;
    for (;;) {
        struct rendezvous_message message;
        size_t len, used;
        const uint8_t *data = job_conn_data(&ctx->member.conn, &len);
        int status = data == NULL ? 0 : rendezvous_decode(data, len, RENDEZVOUS_BODY_MAX, &message, &used);
        if (status <= 0)
            return status;
        if (!take_frame(ctx, &message, data, used))
            return -1;
        job_conn_take(&ctx->member.conn, used);
    }
}

void job_member_start(struct phx_context *ctx)
{
    job_conn_init(&ctx->member.conn);
    ctx->member.state = ctx->settings.rank == 0 ? MEMBER_LINK_OFF : MEMBER_LINK_DOWN;
    ctx->member.retry_ns = ctx->member.backoff_ns =
        0; /* failures of the previous attempt do not count in this one */
}

void job_member_stop(struct phx_context *ctx)
{
    job_conn_close(&ctx->member.conn);
}

short job_member_events(const struct phx_context *ctx)
{
    if (ctx->member.state == MEMBER_LINK_CONNECTING)
        return POLLOUT;
    return (short)(POLLIN | (job_conn_pending(&ctx->member.conn) ? POLLOUT : 0));
}

void job_member_ready(struct phx_context *ctx, short events)
{
    if (ctx->member.state == MEMBER_LINK_CONNECTING) {
        int status = 0;
        socklen_t size = sizeof status;
        if (getsockopt(ctx->member.conn.fd, SOL_SOCKET, SO_ERROR, &status, &size) != 0 || status != 0)
            close_link(ctx);
        else
            connected(ctx);
        return;
    }
    bool broken = (events & POLLOUT) != 0 && job_conn_flush(&ctx->member.conn) != 0;
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0 && receive(ctx) != 0)
        broken = true;
    if (broken)
        close_link(ctx);
}

int64_t job_member_timer(const struct phx_context *ctx)
{
    if (ctx->member.state == MEMBER_LINK_CONNECTING || ctx->member.state == MEMBER_LINK_CONNECTED)
        return ctx->member.patience.due_ns;
    return ctx->member.state == MEMBER_LINK_DOWN && ctx->keyed ? ctx->member.retry_ns : JOB_NEVER;
}

void job_member_tick(struct phx_context *ctx, int64_t now_ns)
{
    (void)now_ns;
    if (ctx->member.state == MEMBER_LINK_DOWN)
        connect_hub(ctx);
    else
        close_link(ctx);
}
