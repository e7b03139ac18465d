/* The coordinator of the gang, on rank 0: accepts the other ranks, sends the table when the gang is whole,
 * counts barriers, serves the key-value store, and announces losses to all ranks. Stand-alone, it commits
 * checkpoints. Rank 0 itself is a member without a connection.
 *
 * Only the context's own thread closes a connection (in job_coordinator_ready), so the list of descriptors
 * for poll() stays right. Other threads may only shut a connection down. */
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

#include "job/link/error.h"
#include "job/gang/kv.h"
#include "job/checkpoint/shard.h"

#define PENDING_MAX 64 /* connections that have not sent HELLO */

/* No rank is a whole hold ahead of another (keep.c), so at most two steps are counted at a time. */
#define HELD_STEPS 2

/* Counts the ranks that hold a step in memory, or have a copy of it at a peer. */
struct tally {
    uint64_t step;
    uint32_t ranks; /* that have answered */
    bool failed;    /* a rank could not hold or copy it */
};

struct job_coordinator {
    int listen_fd;
    int64_t retry_ns, backoff_ns;
    struct job_conn pending[PENDING_MAX];
    uint8_t nonces[PENDING_MAX][SEAL_NONCE_SIZE]; /* sent to the pending connections */
    size_t next_pending;
    struct job_conn *members; /* [world]; that of rank 0 stays closed */
    struct line_seals {
        struct seal in, out;
    } * seals;              /* [world] of the members' connections */
    uint32_t present;       /* members that have joined, rank 0 included */
    uint64_t *arrived;      /* [world] the barrier that each has reached */
    uint32_t arrived_count; /* at barrier released + 1 */
    uint64_t released;
    struct job_kv kv;
    uint64_t (*saved)[JOB_SAVED_MAX]; /* [world] stand-alone: last saved steps + 1, as a ring */
    uint8_t *saved_next;              /* [world] */
    struct tally held[HELD_STEPS], copied[HELD_STEPS];
};

int job_coordinator_new(struct phx_context *ctx, struct phx_error *error)
{
    uint32_t world = ctx->settings.world;
    struct job_coordinator *coordinator = calloc(1, sizeof *coordinator);
    if (coordinator != NULL) {
        coordinator->listen_fd = -1;
        coordinator->members = calloc(world, sizeof *coordinator->members);
        coordinator->seals = calloc(world, sizeof *coordinator->seals);
        coordinator->arrived = calloc(world, sizeof *coordinator->arrived);
        coordinator->saved = calloc(world, sizeof *coordinator->saved);
        coordinator->saved_next = calloc(world, sizeof *coordinator->saved_next);
    }
    ctx->coordinator = coordinator;
    for (size_t i = 0; coordinator != NULL && i < PENDING_MAX; i++)
        job_conn_init(&coordinator->pending[i]);
    for (uint32_t i = 0; coordinator != NULL && coordinator->members != NULL && i < world; i++)
        job_conn_init(&coordinator->members[i]);
    if (coordinator == NULL || coordinator->members == NULL || coordinator->seals == NULL ||
        coordinator->arrived == NULL || coordinator->saved == NULL || coordinator->saved_next == NULL)
        return job_fail(error, PHX_ERROR_MEMORY, "out of memory");
    coordinator->present = 1;
    ctx->members[0] = MEMBER_PRESENT;
    memcpy(ctx->names[0].name, ctx->settings.name, sizeof ctx->settings.name);
    memcpy(ctx->names[0].address, ctx->settings.address, sizeof ctx->settings.address);
    job_own_place(ctx, &ctx->names[0]);
    return 0;
}

void job_coordinator_free(struct phx_context *ctx)
{
    struct job_coordinator *coordinator = ctx->coordinator;
    if (coordinator == NULL)
        return;
    for (uint32_t i = 0; coordinator->members != NULL && i < ctx->settings.world; i++)
        job_conn_close(&coordinator->members[i]);
    for (size_t i = 0; i < PENDING_MAX; i++)
        job_conn_close(&coordinator->pending[i]);
    if (coordinator->listen_fd >= 0)
        close(coordinator->listen_fd);
    job_kv_done(&coordinator->kv);
    free(coordinator->members);
    free(coordinator->seals);
    free(coordinator->arrived);
    free(coordinator->saved);
    free(coordinator->saved_next);
    free(coordinator);
    ctx->coordinator = NULL;
}

/* ---- sending ---- */

/* Puts the member's tag into the frame, whose digest is given, and sends it. */
static void send_to(struct phx_context *ctx, uint32_t rank, uint8_t *frame, size_t size,
                    const uint8_t digest[SHA256_SIZE])
{
    struct job_conn *conn = &ctx->coordinator->members[rank];
    if (conn->fd < 0)
        return;
    seal_tag_digest(&ctx->coordinator->seals[rank].out, digest, frame + size - RENDEZVOUS_TAG_SIZE);
    if (job_conn_queue(conn, frame, size) != 0)
        shutdown(conn->fd, SHUT_RDWR); /* poll reports it, and the thread closes it */
    else if (job_conn_pending(conn))
        job_wake(ctx);
}

/* Sends a message, encoded once, to one member, or to all if `rank` is the size of the world. */
static void send_message(struct phx_context *ctx, uint32_t rank, const struct rendezvous_message *message)
{
    uint32_t world = ctx->settings.world;
    bool all = rank == world;
    if (rank == 0 || all)
        job_member_receive(ctx, message);
    if (rank == 0 || world == 1)
        return;
    uint8_t small[1024];
    size_t size = rendezvous_size(message);
    uint8_t *frame = size <= sizeof small ? small : malloc(size);
    if (frame == NULL) { /* the receiver would wait without end */
        for (uint32_t i = all ? 1 : rank; i < (all ? world : rank + 1); i++)
            shutdown(ctx->coordinator->members[i].fd, SHUT_RDWR);
        return;
    }
    uint8_t digest[SHA256_SIZE];
    rendezvous_encode(message, frame);
    sha256(frame, size - RENDEZVOUS_TAG_SIZE, digest);
    for (uint32_t i = all ? 1 : rank; i < (all ? world : rank + 1); i++)
        send_to(ctx, i, frame, size, digest);
    if (frame != small)
        free(frame);
}

void job_coordinator_broadcast(struct phx_context *ctx, const struct rendezvous_message *message)
{
    send_message(ctx, ctx->settings.world, message);
}

void job_coordinator_send(struct phx_context *ctx, uint32_t rank, const struct rendezvous_message *message)
{
    send_message(ctx, rank, message);
}

void job_coordinator_announce(struct phx_context *ctx, uint16_t type, uint32_t rank)
{
    send_message(ctx, ctx->settings.world, &(struct rendezvous_message){.type = type, .rank = rank});
}

static void reply(struct phx_context *ctx, uint32_t rank, uint64_t id, int code,
                  const struct job_kv_entry *entry)
{
    struct rendezvous_message message = {.type = RENDEZVOUS_REPLY, .number = id, .status = (uint32_t)-code};
    if (entry != NULL) {
        message.value = entry->value;
        message.value_len = entry->value_len;
    }
    send_message(ctx, rank, &message);
}

/* ---- members' messages ---- */

static void on_arrive(struct phx_context *ctx, uint32_t rank, uint64_t barrier)
{
    struct job_coordinator *coordinator = ctx->coordinator;
    if (barrier != coordinator->released + 1 || coordinator->arrived[rank] >= barrier)
        return;
    coordinator->arrived[rank] = barrier;
    if (++coordinator->arrived_count < ctx->settings.world)
        return;
    coordinator->arrived_count = 0;
    coordinator->released = barrier;
    send_message(ctx, ctx->settings.world,
                 &(struct rendezvous_message){.type = RENDEZVOUS_RELEASE, .number = barrier});
}

static void on_put(struct phx_context *ctx, uint32_t rank, const struct rendezvous_message *message)
{
    struct job_kv *kv = &ctx->coordinator->kv;
    int status = job_kv_put(kv, message->key, message->key_len, message->value, message->value_len);
    struct job_kv_waiter *waiter;
    while (status == 0 && (waiter = job_kv_take_waiter(kv, message->key, message->key_len)) != NULL) {
        reply(ctx, waiter->rank, waiter->id, 0, job_kv_get(kv, message->key, message->key_len));
        free(waiter);
    }
    reply(ctx, rank, message->number, status, NULL);
}

static void on_get(struct phx_context *ctx, uint32_t rank, const struct rendezvous_message *message)
{
    struct job_kv *kv = &ctx->coordinator->kv;
    const struct job_kv_entry *entry = job_kv_get(kv, message->key, message->key_len);
    if (entry != NULL) {
        reply(ctx, rank, message->number, 0, entry);
        return;
    }
    int status = PHX_ERROR_NONE;
    if (message->status == 1)
        status = job_kv_wait(kv, message->key, message->key_len, rank, message->number);
    if (status != 0)
        reply(ctx, rank, message->number, status, NULL);
}

static bool has_saved(const struct job_coordinator *coordinator, uint32_t rank, uint64_t step)
{
    for (size_t i = 0; i < JOB_SAVED_MAX; i++)
        if (coordinator->saved[rank][i] == step + 1)
            return true;
    return false;
}

/* Counts a saved shard, stand-alone only: under Phalanx the controller commits. If the commit file cannot be
 * written, the step stays uncommitted. */
static void on_saved(struct phx_context *ctx, uint32_t rank, uint64_t step)
{
    struct job_coordinator *coordinator = ctx->coordinator;
    if (!ctx->settings.standalone || step == UINT64_MAX)
        return;
    coordinator->saved[rank][coordinator->saved_next[rank]] = step + 1;
    coordinator->saved_next[rank] = (uint8_t)((coordinator->saved_next[rank] + 1) % JOB_SAVED_MAX);
    for (uint32_t i = 0; i < ctx->settings.world; i++)
        if (!has_saved(coordinator, i, step))
            return;
    struct shard_id id = {.dir = ctx->settings.checkpoint_dir,
                          .step = step,
                          .attempt = ctx->attempt,
                          .world = ctx->settings.world};
    if (shard_mark_committed(&id, NULL) != 0)
        return;
    struct rendezvous_message message = {
        .type = RENDEZVOUS_COMMITTED, .number = step, .attempt = ctx->attempt};
    send_message(ctx, ctx->settings.world, &message);
}

/* Returns the tally of the step. If ranks hold more different steps than there are tallies, which is a
 * mistake of the program, the oldest is dropped. */
static struct tally *tally_place(struct tally tallies[HELD_STEPS], uint64_t step)
{
    size_t best = 0;
    for (size_t i = 0; i < HELD_STEPS; i++) {
        if (tallies[i].ranks > 0 && tallies[i].step == step)
            return &tallies[i];
        if (tallies[i].ranks == 0 || (tallies[best].ranks > 0 && tallies[i].step < tallies[best].step))
            best = i;
    }
    return &tallies[best];
}

/* Counts a rank's answer for a step, one for each rank. After the last one, announces the result by a message
 * of `type`. */
static void on_held(struct phx_context *ctx, struct tally tallies[HELD_STEPS], uint16_t type,
                    const struct rendezvous_message *said)
{
    struct tally *tally = tally_place(tallies, said->number);
    if (tally->step != said->number)
        tally->ranks = 0;
    tally->step = said->number;
    tally->failed = said->status != 0 || (tally->failed && tally->ranks > 0);
    if (++tally->ranks < ctx->settings.world)
        return;
    tally->ranks = 0;
    struct rendezvous_message message = {.type = type, .number = tally->step, .status = tally->failed};
    send_message(ctx, ctx->settings.world, &message);
}

static void on_leave(struct phx_context *ctx, uint32_t rank)
{
    /* the first rank that leaves already tells that no further barrier completes */
    bool tell = rank == 0 || !ctx->any_left;
    ctx->members[rank] = MEMBER_LEFT;
    if (tell)
        job_coordinator_announce(ctx, RENDEZVOUS_LEFT, rank);
    if (rank != 0)
        shutdown(ctx->coordinator->members[rank].fd, SHUT_RDWR);
    job_changed(ctx);
}

void job_coordinator_receive(struct phx_context *ctx, uint32_t rank, const struct rendezvous_message *message)
{
    switch (message->type) {
    case RENDEZVOUS_ARRIVE:
        on_arrive(ctx, rank, message->number);
        break;
    case RENDEZVOUS_PUT:
        on_put(ctx, rank, message);
        break;
    case RENDEZVOUS_GET:
        on_get(ctx, rank, message);
        break;
    case RENDEZVOUS_CANCEL:
        job_kv_cancel(&ctx->coordinator->kv, rank, message->number);
        break;
    case RENDEZVOUS_SAVED:
        on_saved(ctx, rank, message->number);
        break;
    case RENDEZVOUS_HELD:
        on_held(ctx, ctx->coordinator->held, RENDEZVOUS_HELD_BY_ALL, message);
        break;
    case RENDEZVOUS_COPIED:
        on_held(ctx, ctx->coordinator->copied, RENDEZVOUS_COPIED_BY_ALL, message);
        break;
    case RENDEZVOUS_NOTICE:
        job_save_agreement_asked(ctx);
        break;
    case RENDEZVOUS_SAVE_AT:
        job_save_agreement_answered(ctx, message);
        break;
    case RENDEZVOUS_ANSWER:
        job_restore_coordinator_answer(ctx, rank, message);
        break;
    case RENDEZVOUS_OFFERS:
        job_restore_coordinator_offers(ctx, rank, message);
        break;
    case RENDEZVOUS_KEYS:
        job_restore_coordinator_keys(ctx, rank, message);
        break;
    case RENDEZVOUS_KEY:
        job_restore_coordinator_key(ctx, rank, message->number);
        break;
    case RENDEZVOUS_LEAVE:
        on_leave(ctx, rank);
        break;
    case RENDEZVOUS_GAVE_UP:
        if (ctx->members[rank] == MEMBER_PRESENT)
            ctx->members[rank] = MEMBER_LEFT;
        break;
    default: /* not a message of a member to the coordinator */
        break;
    }
}

/* ---- joining ---- */

/* Sends the table when all ranks are connected and the agent has named the newest commit. */
static void start_gang(struct phx_context *ctx)
{
    uint32_t world = ctx->settings.world;
    if (ctx->met || !ctx->welcomed || ctx->coordinator->present < world)
        return;
    uint8_t *table = malloc((size_t)world * RENDEZVOUS_NAME_SIZE_MAX);
    if (table == NULL) {
        job_join_failed(ctx, PHX_ERROR_MEMORY, "out of memory");
        return;
    }
    size_t len = 0;
    for (uint32_t rank = 0; rank < world; rank++)
        len += rendezvous_put_name(&ctx->names[rank], table + len);
    struct rendezvous_message message = {.type = RENDEZVOUS_TABLE,
                                         .attempt = ctx->attempt,
                                         .status = ctx->restore.valid,
                                         .number = ctx->restore.step,
                                         .rank = ctx->restore.attempt,
                                         .value = table,
                                         .value_len = (uint32_t)len};
    if (len > RENDEZVOUS_BODY_MAX - RENDEZVOUS_FIXED_SIZE)
        job_join_failed(ctx, PHX_ERROR_INVALID, "the names of all ranks together are too long");
    else
        send_message(ctx, world, &message);
    free(table);
}

static void reject(struct job_conn *conn, int code, const char *text)
{
    uint8_t frame[512];
    struct rendezvous_message message = {.type = RENDEZVOUS_REJECT, .status = (uint32_t)-code};
    message.value = (const uint8_t *)text;
    message.value_len = (uint32_t)strnlen(text, 256);
    rendezvous_encode(&message, frame);
    (void)job_conn_queue(conn, frame, rendezvous_size(&message)); /* the connection is closed in any case */
}

/* Returns true if the sender of the HELLO knows the key; *ret_seals are then those of its connection. */
static bool is_known(const struct phx_context *ctx, size_t place, const struct rendezvous_message *message,
                     const uint8_t *frame, size_t size, struct line_seals *ret_seals)
{
    const uint8_t *nonce = ctx->coordinator->nonces[place];
    if (message->type != RENDEZVOUS_HELLO || message->value_len < SEAL_NONCE_SIZE)
        return false;
    seal_begin(&ret_seals->in, ctx->key, RENDEZVOUS_PURPOSE, SEAL_FROM_CLIENT, nonce, message->value);
    seal_begin(&ret_seals->out, ctx->key, RENDEZVOUS_PURPOSE, SEAL_FROM_SERVER, nonce, message->value);
    return rendezvous_check(&ret_seals->in, frame, size);
}

/* Takes the HELLO of a rank that knows the key, and makes the connection that rank's. Returns -1 if the
 * connection must end. */
static int admit(struct phx_context *ctx, struct job_conn *conn, const struct rendezvous_message *message,
                 const struct line_seals *seals)
{
    const struct job_settings *settings = &ctx->settings;
    struct rendezvous_name name;
    uint32_t rank = message->rank;
    if (rendezvous_get_name(message->value + SEAL_NONCE_SIZE, message->value_len - SEAL_NONCE_SIZE, &name) ==
        0)
        return -1;
    if (message->key_len != strlen(settings->jobset) ||
        memcmp(message->key, settings->jobset, message->key_len) != 0)
        reject(conn, PHX_ERROR_INVALID, "another job set uses this rendezvous");
    else if (message->world != settings->world || rank == 0 || rank >= settings->world)
        reject(conn, PHX_ERROR_INVALID, "rank or world size don't match those of rank 0");
    else if (message->status != settings->standalone)
        reject(conn, PHX_ERROR_INVALID,
               "this rank and rank 0 must both have an agent, or both be stand-alone");
    else if (!settings->standalone && message->attempt < ctx->attempt)
        reject(conn, PHX_ERROR_FENCED, "a newer attempt has started");
    else if (ctx->met && ctx->members[rank] != MEMBER_ABSENT)
        reject(conn, PHX_ERROR_INVALID, "this rank has joined already");
    else if (settings->standalone || message->attempt == ctx->attempt) {
        if (ctx->members[rank] == MEMBER_ABSENT)
            ctx->coordinator->present++;
        job_conn_close(&ctx->coordinator->members[rank]); /* an earlier connection of the same rank */
        ctx->coordinator->members[rank] = *conn;
        ctx->coordinator->seals[rank] = *seals;
        job_conn_init(conn);
        ctx->members[rank] = MEMBER_PRESENT;
        ctx->names[rank] = name;
        return 0;
    }
    return -1; /* of a newer attempt: it connects again until this attempt has ended */
}

static struct addrinfo *wildcard(const struct phx_context *ctx)
{
    struct addrinfo hints = {
        .ai_socktype = SOCK_STREAM, .ai_family = AF_INET, .ai_flags = AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *found = NULL;
    return getaddrinfo(NULL, ctx->settings.port, &hints, &found) == 0 ? found : NULL;
}

/* Returns 0 with a listening socket, or an errno. */
static int listen_at(const struct addrinfo *at, int *ret_fd)
{
    int on = 1, fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, at->ai_addr, at->ai_addrlen) != 0 || listen(fd, 4096) != 0) {
        int status = errno;
        close(fd);
        return status;
    }
    *ret_fd = fd;
    return 0;
}

/* Listens at the rendezvous' address if this machine has it; otherwise (address translation) at all
 * addresses. */
static void start_listening(struct phx_context *ctx)
{
    struct job_coordinator *coordinator = ctx->coordinator;
    struct addrinfo *found = job_resolve(ctx);
    int status = found == NULL ? 0 : listen_at(found, &coordinator->listen_fd);
    if (status == EADDRNOTAVAIL) {
        freeaddrinfo(found);
        found = wildcard(ctx);
        if (found != NULL)
            listen_at(found, &coordinator->listen_fd);
    }
    if (coordinator->listen_fd < 0)
        coordinator->retry_ns =
            job_backoff(&coordinator->backoff_ns); /* the previous attempt's port may still be closing */
    else if (status == 0 && ctx->names[0].address[0] == '\0' &&
             getnameinfo(found->ai_addr, found->ai_addrlen, ctx->names[0].address,
                         sizeof ctx->names[0].address, NULL, 0, NI_NUMERICHOST) != 0)
        ctx->names[0].address[0] = '\0';
    if (found != NULL)
        freeaddrinfo(found);
}

/* Sends this side's nonce to a new connection. Returns false if the connection cannot be served. */
static bool challenge(struct job_conn *conn, uint8_t nonce[SEAL_NONCE_SIZE])
{
    uint8_t frame[RENDEZVOUS_HEADER_SIZE + RENDEZVOUS_FIXED_SIZE + SEAL_NONCE_SIZE + RENDEZVOUS_TAG_SIZE];
    struct rendezvous_message message = {
        .type = RENDEZVOUS_CHALLENGE, .value = nonce, .value_len = SEAL_NONCE_SIZE};
    if (!seal_nonce(nonce))
        return false;
    rendezvous_encode(&message, frame);
    return job_conn_queue(conn, frame, sizeof frame) == 0;
}

static void accept_all(struct phx_context *ctx)
{
    struct job_coordinator *coordinator = ctx->coordinator;
    int fd, on = 1, idle_s = 10, interval_s = 2, probes = 3;
    while ((fd = accept4(coordinator->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
        struct job_conn *place = &coordinator->pending[coordinator->next_pending];
        uint8_t *nonce = coordinator->nonces[coordinator->next_pending];
        coordinator->next_pending = (coordinator->next_pending + 1) % PENDING_MAX;
        job_conn_close(place); /* the oldest is closed: a rank connects again, a foreign process does not */
        job_conn_open(place, fd);
        if (!challenge(place, nonce))
            job_conn_close(place);
    }
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
        return;
    close(coordinator->listen_fd); /* out of descriptors or memory: poll would spin, so listen again later */
    coordinator->listen_fd = -1;
    coordinator->retry_ns = job_backoff(&coordinator->backoff_ns);
}

/* Takes the first frame of a connection. Returns -1 if the connection must end. A rank of an older attempt
 * has another key, and receives the reason; a rank of a newer attempt connects again. */
static int take_hello(struct phx_context *ctx, size_t place, const struct rendezvous_message *message,
                      const uint8_t *frame, size_t size)
{
    struct job_conn *conn = &ctx->coordinator->pending[place];
    struct line_seals seals;
    job_conn_take(conn, size); /* the bytes stay until the connection reads again */
    if (is_known(ctx, place, message, frame, size, &seals))
        return admit(ctx, conn, message, &seals);
    if (message->type == RENDEZVOUS_HELLO && !ctx->settings.standalone && message->attempt < ctx->attempt)
        reject(conn, PHX_ERROR_FENCED, "a newer attempt has started");
    else if (message->type == RENDEZVOUS_HELLO && message->attempt == ctx->attempt)
        reject(conn, PHX_ERROR_INVALID, "this rank does not have the key of rank 0");
    return -1;
}

static void pending_ready(struct phx_context *ctx, size_t place)
{
    struct job_conn *conn = &ctx->coordinator->pending[place];
    struct rendezvous_message message;
    size_t len, used;
    if (job_conn_read(conn) != 0) {
        job_conn_close(conn);
        return;
    }
    const uint8_t *data = job_conn_data(conn, &len);
    int status = data == NULL ? 0 : rendezvous_decode(data, len, RENDEZVOUS_HELLO_MAX, &message, &used);
    if (status == 0)
        return;
    if (status > 0)
        status = take_hello(ctx, place, &message, data, used);
    if (status < 0)
        job_conn_close(conn);
    else
        start_gang(ctx);
}

static void member_broken(struct phx_context *ctx, uint32_t rank)
{
    job_conn_close(&ctx->coordinator->members[rank]);
    if (ctx->met) {
        job_lose(ctx, rank);
    } else { /* the rank may connect again until its deadline */
        ctx->members[rank] = MEMBER_ABSENT;
        ctx->coordinator->present--;
    }
    job_changed(ctx);
}

static void member_ready(struct phx_context *ctx, uint32_t rank, short events)
{
    struct job_conn *conn = &ctx->coordinator->members[rank];
    bool broken = (events & POLLOUT) != 0 && job_conn_flush(conn) != 0;
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0 && job_conn_read(conn) != 0)
        broken = true;
    int status = 1;
    while (status > 0) { /* messages that arrived before the end still count */
        struct rendezvous_message message;
        size_t len, used;
        const uint8_t *data = job_conn_data(conn, &len);
        status = data == NULL ? 0 : rendezvous_decode(data, len, RENDEZVOUS_BODY_MAX, &message, &used);
        if (status > 0 && !rendezvous_check(&ctx->coordinator->seals[rank].in, data, used))
            status = -1;
        if (status > 0) {
            job_coordinator_receive(ctx, rank, &message);
            job_conn_take(conn, used);
        }
    }
    if (broken || status < 0)
        member_broken(ctx, rank);
}

/* ---- for the service thread ---- */

size_t job_coordinator_poll_size(const struct phx_context *ctx)
{
    return ctx->coordinator == NULL ? 0 : 1 + PENDING_MAX + (size_t)ctx->settings.world;
}

/* The order is fixed: the listener, the pending connections, the members by rank. */
size_t job_coordinator_poll_fill(const struct phx_context *ctx, struct pollfd *fds)
{
    const struct job_coordinator *coordinator = ctx->coordinator;
    if (coordinator == NULL)
        return 0;
    fds[0] = (struct pollfd){.fd = ctx->keyed ? coordinator->listen_fd : -1, .events = POLLIN};
    for (size_t i = 0; i < PENDING_MAX; i++)
        fds[1 + i] = (struct pollfd){.fd = coordinator->pending[i].fd, .events = POLLIN};
    for (uint32_t i = 0; i < ctx->settings.world; i++) {
        short events = (short)(POLLIN | (job_conn_pending(&coordinator->members[i]) ? POLLOUT : 0));
        fds[1 + PENDING_MAX + i] = (struct pollfd){.fd = coordinator->members[i].fd, .events = events};
    }
    return job_coordinator_poll_size(ctx);
}

void job_coordinator_ready(struct phx_context *ctx, const struct pollfd *fds, size_t count)
{
    struct job_coordinator *coordinator = ctx->coordinator;
    if (coordinator == NULL)
        return;
    assert(count == job_coordinator_poll_size(ctx));
    for (uint32_t i = 0; i < ctx->settings.world; i++) {
        const struct pollfd *fd = &fds[1 + PENDING_MAX + i];
        if (fd->revents != 0 && fd->fd == coordinator->members[i].fd)
            member_ready(ctx, i, fd->revents);
    }
    for (size_t i = 0; i < PENDING_MAX; i++)
        if (fds[1 + i].revents != 0 && fds[1 + i].fd == coordinator->pending[i].fd)
            pending_ready(ctx, i);
    if (fds[0].revents != 0)
        accept_all(ctx);
}

int64_t job_coordinator_timer(const struct phx_context *ctx)
{
    if (ctx->coordinator == NULL)
        return JOB_NEVER;
    if (ctx->settings.world > 1 && ctx->coordinator->listen_fd < 0)
        return ctx->coordinator->retry_ns;
    bool whole = !ctx->met && ctx->welcomed && ctx->coordinator->present == ctx->settings.world;
    return whole && ctx->join_code == 0 ? 0 : JOB_NEVER;
}

void job_coordinator_tick(struct phx_context *ctx, int64_t now_ns)
{
    (void)now_ns;
    if (ctx->settings.world > 1 && ctx->coordinator->listen_fd < 0)
        start_listening(ctx);
    start_gang(ctx);
}

bool job_coordinator_alone(const struct phx_context *ctx)
{
    for (uint32_t rank = 1; rank < ctx->settings.world; rank++)
        if (ctx->coordinator->members[rank].fd >= 0)
            return false;
    return true;
}

bool job_coordinator_missing(const struct phx_context *ctx, char *text, size_t cap)
{
    uint32_t listed = 0, missing = 0;
    size_t len = 0;
    for (uint32_t rank = 0; rank < ctx->settings.world; rank++) {
        if (ctx->members[rank] != MEMBER_ABSENT)
            continue;
        missing++;
        if (listed < 8 && len + 16 < cap) {
            len += (size_t)snprintf(text + len, cap - len, "%s%u", listed == 0 ? "" : ", ", rank);
            listed++;
        }
    }
    if (missing > listed && len + 32 < cap)
        snprintf(text + len, cap - len, " and %u more", missing - listed);
    return missing > 0;
}
