#include "host/standby/secure.h"

#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "host/standby/trial.h"

enum {
    OUTWARD_SHAKING_MAX = 64, /* fewer than a server takes from one address (RELAY_SHAKING_OF_ADDRESS_MAX) */
    LOOK_MS = 1000,           /* interval of checks of the certificate files */
};

static const char ends_now[] = "connections with TLS end at this controller now\n";

/* A relay and its settings, until its last connection has ended. */
struct side {
    struct secure *secure;
    struct list_node node; /* in secure.adopted, or in no list */
    struct relay *relay;   /* NULL: none, or closing */
    struct api_tls *tls;
};

struct secure {
    uv_loop_t *loop;
    struct forward_tls options;
    struct secure_hooks hooks;
    struct side inward, outward;
    struct list_node adopted, calls;
    struct sockaddr_storage leader;
    bool has_leader;
    uint64_t round;            /* grows when the leader or our certificate changes */
    uint64_t decided;          /* the newest round in which the leader's answer is known */
    bool refused;              /* the leader's newest answer was no */
    struct secure_call *tries; /* a session for a trial, being opened */
    struct trial *trial;       /* the trial under way */
    bool said;                 /* it was reported why no session ends here */
    uint64_t looked_ms;
    uv_idle_t last; /* closes last: there may be no relay */
    int open_parts; /* relays that are closing, and `last` */
    void (*closed)(void *context);
    void *closed_context;
};

struct secure_call {
    struct secure *secure;
    struct list_node node;
    uint64_t round;
    void (*done)(void *context, int fd); /* NULL: cancelled */
    void *context;
};

/* --- relays ------------------------------------------------------------------------------------------- */

static void part_closed(struct secure *secure)
{
    if (--secure->open_parts > 0)
        return;
    void (*closed)(void *context) = secure->closed;
    void *context = secure->closed_context;
    mem_free(secure);
    closed(context);
}

static void on_relay_closed(uv_handle_t *handle)
{
    part_closed(handle->data);
}

static void side_close(struct side *side)
{
    if (!side->relay)
        return;
    side->secure->open_parts++;
    relay_close(side->relay, on_relay_closed, side->secure);
    api_tls_free(side->tls); /* all sessions have ended */
    side->relay = NULL;
    side->tls = NULL;
}

static void on_client(void *context, struct relay_client *client)
{
    const struct secure *secure = ((struct side *)context)->secure;
    secure->hooks.client(secure->hooks.context, client);
}

static void on_client_gone(void *context, const struct sockaddr_storage *address)
{
    const struct secure *secure = ((struct side *)context)->secure;
    secure->hooks.left(secure->hooks.context, address);
}

static void on_gone_uncounted(void *context, const struct sockaddr_storage *address)
{
}

/* --- sessions with the leader ------------------------------------------------------------------------- */

/* Records whether the leader takes our requests, or the reason `why` it does not. Holds while it leads. */
static void decide(struct secure *secure, uint64_t round, const char *why)
{
    if (round != secure->round || (secure->decided == round && secure->refused))
        return;
    if (why && !secure->refused)
        fprintf(
            stderr,
            "warning: TLS connections are passed on to the leader, which answers their reads too: it takes "
            "no requests from this controller: %s\n",
            why);
    else if (!why && secure->refused)
        fprintf(stderr, "%s", ends_now);
    secure->refused = why != NULL;
    secure->decided = round;
}

/* Ends the call. `fd` is negative if it has failed. */
static void call_over(struct secure_call *call, int fd)
{
    void (*done)(void *context, int fd) = call->done;
    void *context = call->context;
    list_remove(&call->node);
    mem_free(call);
    if (done)
        done(context, fd);
    else if (fd >= 0)
        close(fd);
}

static void on_called(void *context, struct relay_client *client)
{
    struct secure_call *call = client->call;
    int fd = client->fd;
    client->fd = -1;
    call_over(call, fd);
}

static void on_call_failed(void *context, void *of_call, const struct error *why)
{
    struct secure_call *call = of_call;
    if (why->code == ERROR_DENIED)
        decide(call->secure, call->round, why->text);
    call_over(call, -1);
}

struct secure_call *secure_call(struct secure *secure, void (*done)(void *context, int fd), void *context)
{
    if (!secure->outward.relay || !secure->has_leader)
        return NULL;
    struct secure_call *call = mem_alloc(sizeof *call);
    *call = (struct secure_call){.secure = secure, .round = secure->round, .done = done, .context = context};
    list_append(&secure->calls, &call->node);
    if (relay_connect(secure->outward.relay, &secure->leader, call))
        return call;
    list_remove(&call->node);
    mem_free(call);
    return NULL;
}

void secure_cancel(struct secure_call *call)
{
    call->done = NULL;
}

static const char not_accepted[] = "it does not accept our certificate";

static void on_tried(void *context, int status)
{
    struct secure *secure = context;
    secure->trial = NULL;
    if (status)
        decide(secure, secure->round, status == 421 ? not_accepted : NULL);
}

static void on_trial_called(void *context, int fd)
{
    struct secure *secure = context;
    secure->tries = NULL;
    if (fd >= 0)
        secure->trial = trial_begin(secure->loop, fd, on_tried, secure);
}

static void end_trial(struct secure *secure)
{
    if (secure->tries)
        secure_cancel(secure->tries);
    trial_cancel(secure->trial);
    secure->tries = NULL;
    secure->trial = NULL;
}

/* Asks the leader whether it takes our requests, before a client's request depends on it. */
static void try_leader(struct secure *secure)
{
    if (!secure->tries && !secure->trial && secure->decided != secure->round)
        secure->tries = secure_call(secure, on_trial_called, secure);
}

/* Asks again: the leader or our certificate has changed. */
static void begin_round(struct secure *secure)
{
    end_trial(secure);
    secure->round++;
    try_leader(secure);
}

void secure_follow(struct secure *secure, const struct sockaddr_storage *leader)
{
    if (!secure)
        return;
    secure->has_leader = leader != NULL;
    if (!leader)
        return;
    secure->leader = *leader;
    begin_round(secure);
}

void secure_refuse(struct secure *secure)
{
    decide(secure, secure->round, not_accepted);
}

bool secure_decided(const struct secure *secure)
{
    return !secure || !secure->inward.relay || (secure->has_leader && secure->decided == secure->round);
}

/* --- certificates ------------------------------------------------------------------------------------- */

static int open_sides(struct secure *secure, struct error *error)
{
    const struct forward_tls *with = &secure->options;
    const struct relay_hooks in = {&secure->inward, on_client, on_client_gone, NULL};
    const struct relay_hooks out = {&secure->outward, on_called, on_gone_uncounted, on_call_failed};
    const struct relay_limits of_clients = {.shaking = with->handshakes_max,
                                            .shaking_of_address = with->handshakes_of_address_max};
    const struct relay_limits of_calls = {.shaking = OUTWARD_SHAKING_MAX,
                                          .shaking_of_address = OUTWARD_SHAKING_MAX};
    if (!with->client_ca)
        return error_set(error, ERROR_DENIED, "without --client-ca no controller can be told from others");
    int rc = api_tls_new_client(with->cert, with->key, with->client_ca, &secure->outward.tls, error);
    if (rc == 0)
        rc = api_tls_new(with->cert, with->key, true, &secure->inward.tls, error);
    if (rc == 0)
        api_tls_take_forwards(secure->inward.tls);
    if (rc == 0)
        rc = relay_new(secure->loop, secure->outward.tls, &out, &of_calls, &secure->outward.relay, error);
    if (rc == 0)
        rc = relay_new(secure->loop, secure->inward.tls, &in, &of_clients, &secure->inward.relay, error);
    if (rc == 0)
        return 0;
    side_close(&secure->outward);
    api_tls_free(secure->outward.tls);
    api_tls_free(secure->inward.tls);
    secure->outward.tls = secure->inward.tls = NULL;
    return rc;
}

/* Opens the relays, so that sessions end here, if the certificate allows it. */
static void try_open(struct secure *secure)
{
    struct error error;
    if (open_sides(secure, &error) == 0) {
        if (secure->said)
            fprintf(stderr, "%s", ends_now);
    } else if (!secure->said) {
        fprintf(stderr,
                "warning: TLS connections are passed on to the leader, which answers their reads too: %s "
                "(docs/ha.md)\n",
                error.text);
    }
    secure->said = !secure->inward.relay;
}

/* Returns whether the files have changed, and reads them again if so. */
static bool reload(struct side *side)
{
    struct error error;
    if (!api_tls_files_changed(side->tls))
        return false;
    if (api_tls_reload(side->tls, &error) < 0)
        fprintf(stderr, "warning: the certificate is not read again: %s\n", error.text);
    return true;
}

/* --- the whole ---------------------------------------------------------------------------------------- */

struct secure *secure_new(uv_loop_t *loop, const struct forward_tls *tls, const struct secure_hooks *hooks)
{
    struct secure *secure = mem_alloc(sizeof *secure);
    *secure = (struct secure){
        .loop = loop, .options = *tls, .hooks = *hooks, .looked_ms = uv_now(loop), .open_parts = 1};
    secure->inward.secure = secure->outward.secure = secure;
    list_init(&secure->adopted);
    list_init(&secure->calls);
    try_open(secure);
    return secure;
}

bool secure_ends(const struct secure *secure)
{
    return secure && secure->inward.relay && !secure->refused;
}

bool secure_take(struct secure *secure, int fd, const struct sockaddr_storage *address, socklen_t len)
{
    return relay_take(secure->inward.relay, fd, (const struct sockaddr *)address, len);
}

bool secure_adopt(struct secure *secure, struct relay *relay, struct api_tls *tls)
{
    if (!secure_ends(secure))
        return false;
    struct side *side = mem_alloc(sizeof *side);
    const struct relay_hooks hooks = {side, on_client, on_gone_uncounted, NULL};
    *side = (struct side){.secure = secure, .relay = relay, .tls = tls};
    list_append(&secure->adopted, &side->node);
    relay_set_hooks(relay, &hooks);
    return true;
}

uint32_t secure_shaking(const struct secure *secure)
{
    uint32_t count = secure && secure->inward.relay ? relay_shaking(secure->inward.relay) : 0;
    if (!secure)
        return 0;
    list_for_each(node, &secure->adopted) count +=
        relay_shaking(container_of(node, struct side, node)->relay);
    return count;
}

bool secure_trusts(const struct secure *secure, const struct relay_client *client)
{
    return client->forwards && secure->outward.tls &&
           api_tls_is_controller(secure->outward.tls, &client->chain);
}

static void adopted_end(struct side *side)
{
    list_remove(&side->node);
    side_close(side);
    mem_free(side);
}

void secure_tick(struct secure *secure, uint64_t now_ms)
{
    if (!secure)
        return;
    list_for_each_safe(node, after, &secure->adopted)
    {
        struct side *side = container_of(node, struct side, node);
        if (relay_open(side->relay) == 0)
            adopted_end(side);
    }
    if (now_ms - secure->looked_ms < LOOK_MS)
        return;
    secure->looked_ms = now_ms;
    bool changed = secure->inward.relay && reload(&secure->inward);
    changed = (secure->inward.relay && reload(&secure->outward)) || changed;
    if (!secure->inward.relay) {
        try_open(secure);
        changed = secure->inward.relay != NULL;
    }
    if (changed)
        begin_round(secure);
    else
        try_leader(secure);
}

void secure_close(struct secure *secure, void (*closed)(void *context), void *context)
{
    if (!secure)
        return;
    secure->closed = closed;
    secure->closed_context = context;
    end_trial(secure);
    list_for_each_safe(node, after, &secure->adopted)
    {
        adopted_end(container_of(node, struct side, node));
    }
    side_close(&secure->inward);
    side_close(&secure->outward);
    list_for_each_safe(node, after, &secure->calls)
    {
        struct secure_call *call = container_of(node, struct secure_call, node);
        list_remove(&call->node);
        mem_free(call);
    }
    uv_idle_init(secure->loop, &secure->last);
    secure->last.data = secure;
    uv_close((uv_handle_t *)&secure->last, on_relay_closed);
}
