/* forward.c - the clients of a controller that does not lead: which are accepted, and when they are closed.
 * Each client is a pair (pair.h). */
#include "host/standby/pair.h"

#include <gnutls/crypto.h>
#include <unistd.h>

#include "base/check.h"
#include "host/api/entry.h"
#include "host/http/listener.h"

enum {
    CLIENTS_MAX = 4096,
    TICK_MS = 20,          /* interval of pair_tick() */
    GRACE_MS = 500,        /* leaving: time for a client to begin a request, once a leader is known */
    GRACE_ALONE_MS = 1000, /* leaving: the same time while no leader is known */
    LEAVE_MS = 5000,       /* leaving: time until all clients are closed */
    UNDECIDED_MS = 1000,   /* at the start: longest wait of TLS clients for a leader to be known */
};

struct forward {
    struct listener *listener; /* NULL: closed */
    int open_parts;
    bool closed;
    uint16_t port;
    uv_timer_t tick;
    uint64_t leave_ms, leader_ms; /* the loop's time when leaving began, and when the leader became known */
    void (*left)(void *context);
    void *left_context;
    struct crowd crowd; /* clients of the listener, by source address */
    uint32_t of_address_max;
    bool loopback_http; /* with TLS: clients on this machine may speak plain HTTP */
    bool rests;         /* forward_rest() */
    bool undecided;     /* no client is accepted until it is known where TLS sessions end */
    uint64_t began_ms;
    struct pairs pairs;
};

static void on_part_closed(void *context)
{
    ((struct forward *)context)->open_parts--;
}

void forward_unlisten(struct forward *forward)
{
    if (!forward->listener)
        return;
    listener_drain(forward->listener);
    listener_close(forward->listener, on_part_closed, forward);
    forward->listener = NULL;
    forward->open_parts++;
}

/* Closes idle clients while the process leaves, and all clients when the time has expired. */
static void leave_tick(struct forward *forward, uint64_t now_ms)
{
    bool known = forward->pairs.has_leader;
    struct pair_leaving leaving = {
        .now_ms = now_ms, .spent_ms = now_ms - forward->leave_ms, .grace_ms = GRACE_MS};
    leaving.over = leaving.spent_ms >= LEAVE_MS;
    leaving.graced = known ? now_ms - forward->leader_ms >= GRACE_MS && leaving.spent_ms >= GRACE_MS
                           : leaving.spent_ms >= GRACE_ALONE_MS;
    for (struct pair *pair = NULL; (pair = pairs_next(&forward->pairs, pair));)
        pair_leave(pair, &leaving);
    bool asks = !leaving.graced && secure_shaking(forward->pairs.secure) > 0;
    if (forward->pairs.count > 0 || asks || !forward->left)
        return;
    void (*left)(void *context) = forward->left;
    forward->left = NULL;
    left(forward->left_context);
}

/* Begins to accept clients once it is known where their TLS sessions end; only the leader's answer decides
 * that. */
static void decide_tick(struct forward *forward, uint64_t now_ms)
{
    if (!forward->undecided ||
        (!secure_decided(forward->pairs.secure) && now_ms - forward->began_ms < UNDECIDED_MS))
        return;
    forward->undecided = false;
    if (forward->listener)
        listener_rest(forward->listener, forward->rests);
}

static void on_tick(uv_timer_t *timer)
{
    struct forward *forward = timer->data;
    uint64_t now_ms = uv_now(forward->pairs.loop);
    decide_tick(forward, now_ms);
    for (struct pair *pair = NULL; (pair = pairs_next(&forward->pairs, pair));)
        pair_tick(pair, now_ms);
    secure_tick(forward->pairs.secure, now_ms);
    if (forward->pairs.leaving)
        leave_tick(forward, now_ms);
}

/* --- all of them -------------------------------------------------------------------------------------- */

static void on_tick_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

static uint32_t on_client(void *context, int fd, const struct sockaddr_storage *address, socklen_t len)
{
    struct forward *forward = context;
    struct secure *secure = forward->pairs.secure;
    bool plain = !secure || (forward->loopback_http && !entry_begins_tls(fd, address)), taken;
    uint32_t place = crowd_place(&forward->crowd, (const struct sockaddr *)address);
    if (!crowd_enter(&forward->crowd, place, 1, forward->of_address_max))
        return 0;
    if (!plain && secure_ends(secure))
        taken = secure_take(secure, fd, address, len);
    else
        taken =
            pair_begin(&forward->pairs, plain ? PAIR_PLAIN : PAIR_BYTES, fd, place, (struct str){0}, NULL);
    if (!taken)
        crowd_leave(&forward->crowd, place, 1);
    return taken ? 1 : 0;
}

static void on_client_left(void *context, uint32_t place)
{
    struct forward *forward = context;
    crowd_leave(&forward->crowd, place, 1);
    if (forward->listener)
        listener_left(forward->listener, 1);
}

static void on_secure_client(void *context, struct relay_client *client)
{
    struct forward *forward = context;
    if (forward->closed ||
        !pair_begin(&forward->pairs, PAIR_SECURE, client->fd, PAIR_NO_PLACE, (struct str){0}, client))
        close(client->fd);
    client->fd = -1;
}

/* The relay counts its connections: their pairs have PAIR_NO_PLACE. */
static void on_secure_left(void *context, const struct sockaddr_storage *address)
{
    struct forward *forward = context;
    on_client_left(forward, crowd_place(&forward->crowd, (const struct sockaddr *)address));
}

void forward_take(struct forward *forward, int fd, struct str bytes, const struct relay_client *tls)
{
    if (!pair_begin(&forward->pairs, tls ? PAIR_SECURE : PAIR_PLAIN, fd, PAIR_NO_PLACE, bytes, tls))
        close(fd);
}

bool forward_adopt(struct forward *forward, struct relay *relay, struct api_tls *tls)
{
    return forward->pairs.secure && secure_adopt(forward->pairs.secure, relay, tls);
}

int forward_new(uv_loop_t *loop, const char *address, uint16_t port, uint32_t of_address_max,
                const struct forward_tls *tls, struct forward **ret_forward, struct error *error)
{
    struct forward *forward = mem_alloc(sizeof *forward);
    forward->loopback_http = tls && tls->loopback_http;
    const struct listener_options options = {
        .taken = on_client, .context = forward, .open_max = CLIENTS_MAX, .deferred = forward->loopback_http};
    const struct secure_hooks hooks = {forward, on_secure_client, on_secure_left};
    forward->crowd.seed = uv_hrtime() ^ (uint64_t)(uintptr_t)forward;
    forward->of_address_max = of_address_max ? of_address_max : CLIENTS_MAX / 2;
    forward->pairs.loop = loop;
    forward->pairs.left = on_client_left;
    forward->pairs.context = forward;
    list_init(&forward->pairs.list);
    CHECK(gnutls_rnd(GNUTLS_RND_NONCE, &forward->pairs.key, sizeof forward->pairs.key) == 0);
    int rc = listener_open_tcp(loop, address, port, &options, &forward->listener, &forward->port, error);
    if (rc < 0) {
        mem_free(forward);
        return rc;
    }
    if (tls)
        forward->pairs.secure = secure_new(loop, tls, &hooks);
    forward->began_ms = uv_now(loop);
    forward->undecided = !secure_decided(forward->pairs.secure);
    listener_rest(forward->listener, forward->undecided);
    uv_timer_init(loop, &forward->tick);
    forward->tick.data = forward;
    uv_timer_start(&forward->tick, on_tick, TICK_MS, TICK_MS);
    forward->open_parts = 1;
    *ret_forward = forward;
    return 0;
}

uint16_t forward_port(const struct forward *forward)
{
    return forward->port;
}

int forward_socket(const struct forward *forward)
{
    return forward->listener ? listener_socket(forward->listener) : 0;
}

void forward_rest(struct forward *forward, bool rests)
{
    forward->rests = rests;
    if (!forward->listener)
        return;
    listener_rest(forward->listener, rests || forward->undecided);
    if (!rests) /* the API's listener may have deferred clients on this socket */
        listener_prompt(forward->listener);
}

/* Returns whether two addresses and ports are equal. The other bytes of the structures may differ. */
static bool same_place(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
    const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET)
        return a4->sin_port == b4->sin_port && a4->sin_addr.s_addr == b4->sin_addr.s_addr;
    return a6->sin6_port == b6->sin6_port &&
           memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof a6->sin6_addr) == 0;
}

void forward_to(struct forward *forward, const struct sockaddr_storage *leader)
{
    struct pairs *pairs = &forward->pairs;
    if (!leader && !pairs->has_leader)
        return;
    if (leader && pairs->has_leader && same_place(leader, &pairs->leader))
        return;
    pairs->has_leader = leader != NULL;
    if (leader) {
        pairs->leader = *leader;
        forward->leader_ms = uv_now(pairs->loop);
    }
    secure_follow(pairs->secure, leader);
    for (struct pair *pair = NULL; (pair = pairs_next(pairs, pair));)
        pair_follow(pair);
}

void forward_reads(struct forward *forward, const struct forward_reads *reads)
{
    forward->pairs.reads = reads ? *reads : (struct forward_reads){0};
    if (reads)
        return;
    for (struct pair *pair = NULL; (pair = pairs_next(&forward->pairs, pair));)
        pair_reads_over(pair);
}

void forward_looked(struct forward *forward, bool newest)
{
    const struct forward_reads *reads = &forward->pairs.reads;
    if (!reads->connect)
        return;
    uint64_t version = reads->version(reads->context);
    for (struct pair *pair = NULL; (pair = pairs_next(&forward->pairs, pair));)
        pair_looked(pair, newest, version);
}

void forward_repeats(struct forward *forward, bool repeats)
{
    forward->pairs.repeats = repeats;
}

void forward_leave(struct forward *forward, void (*left)(void *context), void *context)
{
    struct pairs *pairs = &forward->pairs;
    CHECK(!forward->closed && !pairs->leaving);
    forward_unlisten(forward);
    pairs->leaving = true;
    forward->left = left;
    forward->left_context = context;
    uv_update_time(pairs->loop);
    forward->leave_ms = uv_now(pairs->loop);
    for (struct pair *pair = NULL; (pair = pairs_next(pairs, pair));)
        pair_end_watch(pair);
    uv_timer_start(&forward->tick, on_tick, 0, TICK_MS);
}

void forward_close(struct forward *forward)
{
    if (!forward || forward->closed)
        return;
    forward_unlisten(forward);
    forward->closed = true;
    uv_close((uv_handle_t *)&forward->tick, on_tick_closed);
    for (struct pair *pair = NULL; (pair = pairs_next(&forward->pairs, pair));)
        pair_close(pair);
    if (forward->pairs.secure)
        forward->open_parts++;
    secure_close(forward->pairs.secure, on_part_closed, forward);
    forward->pairs.secure = NULL;
}

void forward_free(struct forward *forward)
{
    if (!forward)
        return;
    CHECK(forward->closed && forward->pairs.count == 0 && forward->open_parts == 0);
    mem_free(forward);
}
