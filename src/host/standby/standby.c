#include "host/standby/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/vec.h"
#include "core/log/record.h"
#include "drive/drive.h"

#define LOOK_NS     (500 * NS_PER_MS) /* interval of refreshes: a watch may fail silently */
#define PATIENCE_NS NS_PER_SECOND     /* longest wait of the loop for etcd; after that the keeper queries */
enum {
    LEADER_LOOK_MS = 100, /* while we lead, each of our appends triggers the watch */
    CENSUS_MS = 500,      /* interval of checks of the level that replicas read */
    DEAF_MS = 2000,       /* a new leader listens well before that */
    YIELD_MS = 1500,      /* time for others to take the lead that we gave up */
    READS_MS = 2,         /* shortest interval of refreshes for reads, which any client can trigger */
};

struct standby {
    uv_loop_t *loop;
    struct standby_options options;
    struct etcd_options brief; /* options for the loop's queries, with PATIENCE_NS */
    char who[ETCD_WHO_MAX];
    struct etcd_log *log;
    struct log_store store;
    struct core *core;
    struct effects effects;
    struct keeper_thread *keeper;
    struct forward *forward;
    struct reads *reads;       /* NULL: the leader answers all reads */
    struct reads *reads_ended; /* NULL: all answers from before we led were sent */
    uv_async_t news;
    uv_timer_t look;
    uv_timer_t reads_look; /* refreshes for waiting reads, besides `look` */
    uint64_t looked_ms;    /* the loop's time of the last refresh */
    struct etcd_seen seen;
    /* controller to hand over to; without a lease: any that takes the lead */
    struct etcd_replica successor;
    bool leads, stopped, closed, away; /* away: it was reported that etcd does not answer */
    bool resigned;                     /* the controller is not freed yet: it owns state and log */
    bool ending;                       /* the process ends after the hand-over */
    bool leaving;                      /* the standby never leads again */
    uint64_t yields_ms; /* the loop's time until which we leave the lead to others; 0: we may lead */
    bool something_new; /* while we lead: read the control keys */
    bool announced;     /* etcd has our announcement, with this level */
    uint32_t announced_level;
    uint64_t census_ms; /* the loop's time of the next check of replicas; UINT64_MAX: none */
    struct error failure;
    struct controller_shared shared;
    void (*asked)(void *context);
    void *asked_context;
    uint32_t (*readers)(void *context, uint32_t reads);
    void *readers_context;
    /* The connection to the leader's process. */
    uv_tcp_t probe;
    uv_connect_t probe_connect;
    bool probe_open; /* being opened, or open */
    struct sockaddr_storage leader;
    int64_t leader_term; /* the leadership that `leader` belongs to; 0: none */
    bool leader_met;     /* the leader has accepted a connection: if it refuses one now, it is dead */
    /* since when a leader that was never met has refused every connection; 0: it has not */
    uint64_t deaf_from_ms;
};

/* --- the log ------------------------------------------------------------------------------------------ */

static void reads_anew(struct standby *standby);

static int standby_load(struct standby *standby, struct error *error)
{
    struct core *fresh = core_new();
    int rc = controller_replay(&standby->store, UINT64_MAX, true, fresh, NULL, NULL, error);
    if (rc < 0) {
        core_free(fresh);
        return rc;
    }
    struct core *before = standby->core;
    standby->core = fresh;
    reads_close(standby->reads_ended);
    if (standby->reads)
        reads_anew(standby); /* its watches have reported another state */
    if (before)
        core_free(before);
    return 0;
}

/* Applies the records up to the log's head, as last read. */
static int standby_apply(struct standby *standby, struct error *error)
{
    const struct log_store *store = &standby->store;
    struct store_record record;
    void *cursor;
    if (store->ends(store->context).last == core_seq(standby->core))
        return 0;
    int rc = store->read(store->context, core_seq(standby->core) + 1, &cursor, error);
    if (rc == 0) {
        while ((rc = store->next(cursor, &record, error)) > 0) {
            struct drive_record stored = {record.seq, record.stamp_ns, record.bytes};
            rc = drive_replay(standby->core, &stored, &standby->effects, NULL, NULL, error);
            if (rc < 0)
                break;
            if (standby->reads)
                reads_changed(standby->reads, &standby->effects);
        }
        store->cursor_free(cursor);
        if (standby->reads)
            reads_flush(standby->reads);
    }
    if (rc == ERROR_NOT_FOUND) /* the record was trimmed before we read it: a snapshot covers it */
        return standby_load(standby, error);
    return rc;
}

/* --- reads of clients --------------------------------------------------------------------------------- */

static int on_reads_connect(void *context, int client, const struct relay_client *tls)
{
    const struct standby *standby = context;
    return reads_connect(standby->reads, client, tls);
}

static uint64_t on_reads_version(void *context)
{
    return core_seq(((const struct standby *)context)->core);
}

static void standby_follow(struct standby *standby);

static void on_reads_timer(uv_timer_t *timer)
{
    struct standby *standby = timer->data;
    if (!standby->leads && !standby->stopped)
        standby_follow(standby);
}

static void on_reads_look(void *context)
{
    struct standby *standby = context;
    uint64_t due_ms = standby->looked_ms + READS_MS, now_ms = uv_now(standby->loop);
    if (!uv_is_active((uv_handle_t *)&standby->reads_look))
        uv_timer_start(&standby->reads_look, on_reads_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

static void reads_open(struct standby *standby)
{
    const struct controller_options *clients = standby->options.clients;
    const struct forward_reads reads = {standby, on_reads_connect, on_reads_version, on_reads_look};
    struct error error;
    if (!clients || standby->reads || standby->closed)
        return;
    if (reads_begin(standby->loop, clients, standby->core, &standby->reads, &error) < 0)
        fprintf(stderr, "warning: the leader is asked for all reads: %s\n", error.text);
    else
        forward_reads(standby->forward, &reads);
}

/* Ends the local API. `now`: also the answers that are under way. */
static void reads_stop(struct standby *standby, bool now)
{
    struct reads *reads = standby->reads;
    if (!reads)
        return;
    standby->reads = NULL;
    forward_reads(standby->forward, NULL);
    if (now) {
        reads_close(reads);
        return;
    }
    reads_close(standby->reads_ended);
    standby->reads_ended = reads;
    reads_end(&standby->reads_ended);
}

static void reads_anew(struct standby *standby)
{
    reads_stop(standby, true);
    reads_open(standby);
}

/* --- leaving the lead to others ----------------------------------------------------------------------- */

/* Returns whether the lead is left to others: we have handed it over, or leave. */
static bool standby_yields(const struct standby *standby)
{
    return standby->resigned || standby->leaving || uv_now(standby->loop) < standby->yields_ms;
}

/* --- the leader's process ----------------------------------------------------------------------------- */

static void standby_take_over(struct standby *standby, bool instead);
static void probe_begin(struct standby *standby);

static void probe_again(uv_handle_t *handle)
{
    struct standby *standby = handle->data;
    standby->probe_open = false;
    if (!standby->closed && !standby->leads && !standby->stopped)
        probe_begin(standby);
}

static void probe_over(uv_handle_t *handle)
{
    ((struct standby *)handle->data)->probe_open = false;
}

static void probe_end(struct standby *standby, uv_close_cb then)
{
    if (standby->probe_open && !uv_is_closing((uv_handle_t *)&standby->probe))
        uv_close((uv_handle_t *)&standby->probe, then);
}

static void probe_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    static char room[256]; /* what the leader sends is ignored */
    *buf = uv_buf_init(room, sizeof room);
}

/* Handles the end of the connection: the leader closes idle ones, or its process is dead. The next
 * connection shows which. */
static void probe_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    if (count < 0)
        probe_end(stream->data, probe_again);
}

static void probe_connected(uv_connect_t *request, int status)
{
    struct standby *standby = request->data;
    if (status == UV_ECANCELED)
        return;
    uint64_t now_ms = uv_now(standby->loop);
    if (status != UV_ECONNREFUSED)
        standby->deaf_from_ms = 0;
    else if (!standby->deaf_from_ms)
        standby->deaf_from_ms = now_ms;
    bool dead =
        status == UV_ECONNREFUSED && (standby->leader_met || now_ms - standby->deaf_from_ms >= DEAF_MS);
    if (dead && standby->leader_term == standby->seen.leader_term && !standby_yields(standby)) {
        probe_end(standby, probe_over);
        standby_take_over(standby, true);
    } else if (status < 0) { /* the leader does not listen yet, or its machine is down: its lease decides */
        probe_end(standby, probe_over);
    } else {
        standby->leader_met = true;
        uv_read_start((uv_stream_t *)&standby->probe, probe_room, probe_read);
    }
}

static void probe_begin(struct standby *standby)
{
    if (standby->probe_open || !standby->leader_term)
        return;
    uv_tcp_init(standby->loop, &standby->probe);
    standby->probe.data = standby->probe_connect.data = standby;
    standby->probe_open = true;
    if (uv_tcp_connect(&standby->probe_connect, &standby->probe, (struct sockaddr *)&standby->leader,
                       probe_connected) < 0)
        probe_end(standby, probe_over);
}

/* Parses "127.0.0.1:7070" or "[::1]:7070". Returns false if it is neither. */
static bool place_read(const char *text, struct sockaddr_storage *ret)
{
    char address[ETCD_WHO_MAX];
    const char *colon = strrchr(text, ':');
    int64_t port;
    if (!colon || !str_to_i64(str_from(colon + 1), 1, 65535, &port))
        return false;
    size_t len = (size_t)(colon - text);
    if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    if (len >= sizeof address)
        return false;
    memcpy(address, text, len);
    address[len] = 0;
    return uv_ip4_addr(address, (int)port, (struct sockaddr_in *)ret) == 0 ||
           uv_ip6_addr(address, (int)port, (struct sockaddr_in6 *)ret) == 0;
}

/* Directs clients and the probe to the leader that was last seen. */
static void follow_leader(struct standby *standby)
{
    if (standby->leader_term == standby->seen.leader_term) {
        probe_begin(standby);
        return;
    }
    struct sockaddr_storage leader;
    bool known = standby->seen.leader_term && strcmp(standby->seen.who, standby->who) != 0 &&
                 place_read(standby->seen.who, &leader);
    standby->leader_term = known ? standby->seen.leader_term : 0;
    standby->leader_met = false;
    standby->deaf_from_ms = 0;
    if (known)
        standby->leader = leader;
    forward_to(standby->forward, known ? &leader : NULL);
    if (standby->probe_open)
        probe_end(standby, probe_again);
    else
        probe_begin(standby);
    if (known)
        fprintf(stderr, "standby: %s leads; the log is applied up to record %llu\n", standby->seen.who,
                (unsigned long long)core_seq(standby->core));
}

/* --- replicas ----------------------------------------------------------------------------------------- */

/* Announces the level that we read, and the log's level as applied here. The next call retries after a
 * failure. */
static void standby_announce(struct standby *standby, uint32_t level)
{
    struct etcd_replica replica = {.reads = this_release.level, .level = level};
    struct error error;
    if (standby->announced && standby->announced_level == level)
        return;
    snprintf(replica.version, sizeof replica.version, "%s", this_release.version);
    snprintf(replica.who, sizeof replica.who, "%s", standby->who);
    etcd_log_patience(standby->log, PATIENCE_NS);
    standby->announced =
        etcd_log_announce(standby->log, keeper_lease(standby->keeper), &replica, &error) == 0;
    etcd_log_patience(standby->log, 0);
    standby->announced_level = level;
}

static int see_replicas(struct standby *standby, struct etcd_replicas *ret_replicas)
{
    struct error error;
    etcd_log_patience(standby->log, PATIENCE_NS);
    int rc = etcd_log_replicas(standby->log, ret_replicas, &error);
    etcd_log_patience(standby->log, 0);
    return rc;
}

/* The watch does not report a lease that ends without an announcement, so replicas are checked regularly. */
static bool census_is_due(const struct standby *standby)
{
    return standby->readers && uv_now(standby->loop) >= standby->census_ms;
}

/* While we lead: opens the level that all replicas read. Asks etcd nothing once that is our newest level. */
static void take_census(struct standby *standby)
{
    struct etcd_replicas replicas;
    uint32_t level = standby->readers(standby->readers_context, 0);
    standby_announce(standby, level);
    if (level >= this_release.level) {
        standby->census_ms = UINT64_MAX;
        return;
    }
    if (!census_is_due(standby))
        return;
    standby->census_ms = uv_now(standby->loop) + CENSUS_MS;
    if (see_replicas(standby, &replicas) < 0 || replicas.silent > 0)
        return; /* a later check may see more */
    uint32_t reads = this_release.level;
    for (size_t i = 0; i < replicas.count; i++)
        reads = replicas.items[i].reads < reads ? replicas.items[i].reads : reads;
    if (replicas.count > 0 && reads > level)
        (void)standby->readers(standby->readers_context, reads);
}

/* --- following ---------------------------------------------------------------------------------------- */

static void standby_fail(struct standby *standby, int rc, const struct error *error)
{
    /* The next refresh may succeed, also while etcd's users or certificates are being changed. A leadership
     * that we took and lost at once belongs to another controller. */
    if (rc == ERROR_UNAVAILABLE || rc == ERROR_NO_SPACE || rc == ERROR_FENCED || rc == ERROR_DENIED) {
        if (!standby->away)
            fprintf(stderr, "warning: %s\n", error->text);
        standby->away = true;
        if (rc == ERROR_UNAVAILABLE)
            keeper_seek(standby->keeper);
        return;
    }
    standby->failure = *error;
    standby->failure.code = (enum error_code)rc;
    (void)error_wrap(&standby->failure, "following the log in etcd behind record %llu",
                     (unsigned long long)core_seq(standby->core));
    uv_stop(standby->loop);
}

static bool lease_runs(const struct standby *standby)
{
    return uv_hrtime() < (uint64_t)etcd_lease_until_ns(keeper_lease(standby->keeper));
}

static void standby_take_over(struct standby *standby, bool instead)
{
    struct error error = {0};
    int64_t term = etcd_log_term(standby->log);
    struct etcd_lease *lease = keeper_lease(standby->keeper);
    bool ours = standby->seen.leader_lease == etcd_lease_id(lease);
    if (!lease_runs(standby) || keeper_seeks(standby->keeper))
        return;
    int rc = 1; /* the lead was taken before, when the log could not be read */
    if (!term || term != standby->seen.leader_term)
        rc = etcd_log_lead(standby->log, lease, str_from(standby->who),
                           instead || ours ? &standby->seen : NULL, &error);
    if (rc == 0)
        return; /* another controller was faster: its key triggers the watch */
    if (rc > 0)
        rc = standby_apply(standby, &error);
    if (rc < 0) {
        standby_fail(standby, rc, &error);
        return;
    }
    fprintf(stderr, "this controller leads, from record %llu on\n",
            (unsigned long long)core_seq(standby->core));
    reads_stop(standby, false);
    standby->leads = true;
    standby->leader_term = 0;
    forward_to(standby->forward, NULL);
    forward_rest(standby->forward, true);
    probe_end(standby, probe_over);
    uv_stop(standby->loop);
}

/* Reads etcd's control keys. If etcd does not answer, the keeper queries it; until it answers, this function
 * returns ERROR_UNAVAILABLE at once: a timer's callback that blocked each time would starve the rest of the
 * loop. */
static int standby_see(struct standby *standby, struct error *error)
{
    if (keeper_seeks(standby->keeper))
        return error_set(error, ERROR_UNAVAILABLE, "etcd does not answer");
    etcd_log_patience(standby->log, PATIENCE_NS);
    int rc = etcd_log_refresh(standby->log, &standby->seen, error);
    etcd_log_patience(standby->log, 0);
    uv_update_time(standby->loop); /* the call to etcd has blocked */
    if (rc == ERROR_UNAVAILABLE)
        keeper_seek(standby->keeper);
    return rc;
}

/* Replaces a lease that ended while etcd was away. */
static int take_new_lease(struct standby *standby, struct error *error)
{
    struct keeper_thread *fresh;
    int rc = keeper_begin(&standby->brief, &standby->news, &fresh, error);
    if (rc < 0)
        return rc;
    keeper_finish(standby->keeper);
    standby->keeper = fresh;
    standby->announced = false;
    return 0;
}

static void standby_follow(struct standby *standby)
{
    struct error error = {0};
    int rc = standby_see(standby, &error);
    bool applies = !standby->resigned && !standby->leaving;
    standby->looked_ms = uv_now(standby->loop);
    if (rc == 0 && applies)
        rc = standby_apply(standby, &error);
    forward_looked(standby->forward, rc == 0 && applies);
    if (rc == ERROR_UNAVAILABLE)
        follow_leader(standby); /* the leader may still answer */
    if (rc < 0) {
        standby_fail(standby, rc, &error);
        return;
    }
    if (standby->seen.leader_term)
        standby->yields_ms = 0;
    if (standby->away)
        fprintf(stderr, "etcd answers again\n");
    standby->away = false;
    if (!lease_runs(standby) && (rc = take_new_lease(standby, &error)) < 0) {
        standby_fail(standby, rc, &error);
        return;
    }
    if (standby_yields(standby)) {
        follow_leader(standby);
        return;
    }
    standby_announce(standby, core_level(standby->core));
    forward_repeats(standby->forward, core_level(standby->core) >= LEVEL_RECEIPTS);
    /* The key is ours after a hand-over to us, or after a take-over whose answer was lost. */
    if (!standby->seen.leader_term || strcmp(standby->seen.who, standby->who) == 0)
        standby_take_over(standby, false);
    if (!standby->leads)
        follow_leader(standby);
}

/* While we lead: checks whether another controller has taken over, or has asked us to hand over. */
static void look_as_leader(struct standby *standby)
{
    struct error error;
    standby->something_new = false;
    int64_t term = etcd_log_term(standby->log);
    int rc = term ? standby_see(standby, &error) : ERROR_FENCED;
    if (rc == ERROR_CORRUPT) {
        standby->options.lost(error.text);
        return;
    }
    if (rc < 0)
        return; /* the lease decides */
    if (standby->seen.leader_term != term)
        standby->options.lost("another one has taken over");
    if (standby->seen.step_down_term == term && standby->asked)
        standby->asked(standby->asked_context);
    else if (standby->seen.leader_term == term && standby->readers)
        take_census(standby);
}

static void on_news(uv_async_t *async)
{
    struct standby *standby = async->data;
    if (standby->leads)
        standby->something_new = true;
    else if (!standby->stopped)
        standby_follow(standby);
}

static void on_look(uv_timer_t *timer)
{
    struct standby *standby = timer->data;
    if (!standby->leads && !standby->stopped)
        standby_follow(standby);
    else if ((standby->something_new || census_is_due(standby)) && !standby->stopped)
        look_as_leader(standby);
}

/* --- begin and end ------------------------------------------------------------------------------------ */

static int open_forward(struct standby *standby, struct error *error)
{
    const struct standby_options *options = &standby->options;
    const struct controller_options *clients = options->clients;
    struct forward_tls tls = {0};
    if (clients && clients->tls_cert)
        tls = (struct forward_tls){clients->tls_cert,         clients->tls_key,
                                   clients->access.client_ca, clients->loopback_http,
                                   clients->handshakes_max,   clients->handshakes_of_address_max};
    return forward_new(standby->loop, options->api_address, options->api_port, 0, tls.cert ? &tls : NULL,
                       &standby->forward, error);
}

int standby_new(uv_loop_t *loop, const struct standby_options *options, struct standby **ret_standby,
                struct error *error)
{
    struct standby *standby = mem_alloc(sizeof *standby);
    standby->loop = loop;
    standby->options = *options;
    standby->brief = options->etcd;
    standby->brief.patience_ns = PATIENCE_NS;
    uv_async_init(loop, &standby->news, on_news);
    uv_timer_init(loop, &standby->look);
    uv_timer_init(loop, &standby->reads_look);
    standby->news.data = standby->look.data = standby->reads_look.data = standby;
    *ret_standby = standby;
    int rc = etcd_log_open(&options->etcd, &standby->log, error);
    if (rc < 0)
        return error_wrap(error, "opening the log in etcd");
    standby->store = etcd_log_store(standby->log);
    rc = standby_load(standby, error);
    if (rc < 0)
        return error_wrap(error, "replaying the log in etcd");
    rc = open_forward(standby, error);
    if (rc < 0)
        return error_wrap(error, "listening for the API");
    if (options->advertise)
        snprintf(standby->who, sizeof standby->who, "%s", options->advertise);
    else
        snprintf(standby->who, sizeof standby->who, "%s:%u", options->api_address,
                 forward_port(standby->forward));
    rc = keeper_begin(&standby->options.etcd, &standby->news, &standby->keeper, error);
    if (rc < 0)
        return rc;
    reads_open(standby);
    uv_timer_start(&standby->look, on_look, 0, LOOK_NS / NS_PER_MS);
    return 0;
}

uint16_t standby_api_port(const struct standby *standby)
{
    return forward_port(standby->forward);
}

void standby_stop(struct standby *standby)
{
    standby->stopped = true;
    uv_stop(standby->loop);
}

bool standby_leads(const struct standby *standby)
{
    return standby->leads && !standby->stopped; /* it may be stopped while it takes over */
}

int standby_failed(const struct standby *standby, struct error *error)
{
    return standby->failure.code ? error_set(error, standby->failure.code, "%s", standby->failure.text) : 0;
}

static int64_t shared_leads_until(void *context)
{
    const struct standby *standby = context;
    return standby->keeper ? etcd_lease_until_ns(keeper_lease(standby->keeper)) : 0;
}

/* Finds a controller that is alive and reads the log's level. */
static void find_successor(struct standby *standby)
{
    struct etcd_replicas replicas;
    standby->successor.lease = 0;
    if (see_replicas(standby, &replicas) < 0)
        return;
    for (size_t i = 0; i < replicas.count && !standby->successor.lease; i++)
        if (strcmp(replicas.items[i].who, standby->who) != 0 &&
            replicas.items[i].reads >= core_level(standby->core))
            standby->successor = replicas.items[i];
}

static void shared_hands_over(void *context)
{
    struct standby *standby = context;
    find_successor(standby);
    forward_to(standby->forward, NULL);
    if (standby->ending)
        forward_unlisten(standby->forward);
    else
        forward_rest(standby->forward, false);
}

static void shared_pass_on(void *context, int fd, struct str bytes, const struct relay_client *tls)
{
    forward_take(((struct standby *)context)->forward, fd, bytes, tls);
}

static bool shared_take_relay(void *context, struct relay *relay, struct api_tls *tls)
{
    return forward_adopt(((struct standby *)context)->forward, relay, tls);
}

static void shared_resign(void *context)
{
    struct standby *standby = context;
    struct error error;
    standby->leads = false;
    standby->resigned = true;
    uv_update_time(standby->loop);
    standby->yields_ms = uv_now(standby->loop) + YIELD_MS;
    uv_timer_start(&standby->look, on_look, 0, LOOK_NS / NS_PER_MS);
    const struct etcd_replica *successor = standby->successor.lease ? &standby->successor : NULL;
    if (etcd_log_resign(standby->log, successor, &error) < 0)
        fprintf(stderr, "warning: %s\n", error.text);
}

static void shared_lost(void *context, const char *why)
{
    ((const struct standby *)context)->options.lost(why);
}

const struct controller_shared *standby_shared(struct standby *standby)
{
    CHECK(standby->leads && standby->core);
    standby->shared =
        (struct controller_shared){.log = standby->store,
                                   .core = standby->core,
                                   .listening_fd = forward_socket(standby->forward),
                                   .place = standby->who,
                                   .owed_ns = etcd_lease_length_ns(keeper_lease(standby->keeper)),
                                   .context = standby,
                                   .leads_until_ns = shared_leads_until,
                                   .hands_over = shared_hands_over,
                                   .pass_on = shared_pass_on,
                                   .take_relay = shared_take_relay,
                                   .resign = shared_resign,
                                   .lost = shared_lost};
    return &standby->shared;
}

void standby_on_step_down(struct standby *standby, void (*asked)(void *context), void *context)
{
    standby->asked = asked;
    standby->asked_context = context;
    uv_timer_start(&standby->look, on_look, LEADER_LOOK_MS, LEADER_LOOK_MS);
}

void standby_on_readers(struct standby *standby, uint32_t (*readers)(void *context, uint32_t reads),
                        void *context)
{
    standby->readers = readers;
    standby->readers_context = context;
}

void standby_follow_on(struct standby *standby)
{
    CHECK(standby->resigned);
    standby->resigned = false;
    reads_open(standby);
    standby_follow(standby);
}

static void on_forward_left(void *context)
{
    standby_stop(context);
}

void standby_ends(struct standby *standby)
{
    standby->ending = true;
}

void standby_leave(struct standby *standby)
{
    if (standby->leaving || standby->leads) {
        standby_stop(standby);
        return;
    }
    standby->leaving = true;
    forward_leave(standby->forward, on_forward_left, standby);
}

void standby_serving(struct standby *standby)
{
    struct sockaddr_storage ours;
    char place[ETCD_WHO_MAX];
    snprintf(place, sizeof place, "%s:%u", standby->options.api_address, forward_port(standby->forward));
    if (place_read(place, &ours))
        forward_to(standby->forward, &ours);
}

void standby_close(struct standby *standby)
{
    if (!standby || standby->closed)
        return;
    standby->closed = standby->stopped = true;
    reads_stop(standby, true);
    reads_close(standby->reads_ended);
    keeper_finish(standby->keeper); /* no thread sends `news` any more */
    standby->keeper = NULL;
    uv_close((uv_handle_t *)&standby->news, NULL);
    uv_close((uv_handle_t *)&standby->look, NULL);
    uv_close((uv_handle_t *)&standby->reads_look, NULL);
    probe_end(standby, probe_over);
    forward_close(standby->forward);
}

void standby_free(struct standby *standby)
{
    if (!standby)
        return;
    CHECK(standby->closed);
    if (standby->core && !standby->failure.code) /* `phalanx log replay --until` prints the same digest */
        fprintf(stderr, "ended at record %" PRIu64 ", digest %016" PRIx64 "\n", core_seq(standby->core),
                core_digest(standby->core));
    forward_free(standby->forward);
    etcd_log_close(standby->log);
    if (standby->core)
        core_free(standby->core);
    vec_done(&standby->effects.list);
    mem_free(standby);
}
