#include "host/controller/internal.h"
#include "os/file.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "core/log/record.h"
#include "doc/json.h"

#define MAINTAIN_IDLE_NS  (500 * NS_PER_MS)
#define MAINTAIN_BUSY_NS  (2 * NS_PER_MS)
#define LOG_BYTES_DEFAULT (UINT64_C(4) << 30)
/* Time limit of a hand-over for requests that have begun, and then (TAKE_NS) for clients to read their
 * answers. */
#define HAND_OVER_NS (500 * NS_PER_MS)
/* Time for TLS clients to send one more request, and so to learn that their connection ends. */
#define TLS_NS  (50 * NS_PER_MS)
#define TAKE_NS (1000 * NS_PER_MS)

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

int64_t controller_mono_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t controller_wall_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

uint64_t controller_draw(void)
{
    uint64_t bits;
    CHECK(gnutls_rnd(GNUTLS_RND_NONCE, &bits, sizeof bits) == 0);
    return bits;
}

/* --- the loop's hooks ------------------------------------------------------------------------- */

static int reload_wire_tls(struct controller *controller, struct error *error)
{
    int rc = wire_tls_reload(controller->wire_tls, error);
    controller->peers_round += rc == 0; /* checks the certificates of connected agents again */
    return rc;
}

/* Does the work that can wait. Runs a slice each time while there is much of it. */
static void maintain(struct controller *controller)
{
    struct error error;
    if (controller->wire_tls && wire_tls_files_changed(controller->wire_tls) &&
        reload_wire_tls(controller, &error) < 0)
        fprintf(stderr, "warning: the agents' TLS is not read again: %s\n", error.text);
    peers_check(controller);
    fault_file_look(controller);
    log_maintain(controller);
    bool busy = controller->snapshot || controller->trimming || peers_left(controller);
    controller->maintain_ns = controller_mono_ns() + (busy ? MAINTAIN_BUSY_NS : MAINTAIN_IDLE_NS);
}

static void on_timer(uv_timer_t *timer)
{
    struct controller *controller = timer->data;
    if (controller->leave >= LEAVE_RESIGNED) /* that turn of the loop was all that was wanted */
        return;
    wire_gather(controller->wire);
    driver_timers(controller->driver);
    if (controller_mono_ns() >= controller->maintain_ns)
        maintain(controller);
}

/* Counts the time since the end of the last turn, except the time spent waiting. */
static void count_turn(struct controller *controller)
{
    int64_t now_ns = controller_mono_ns(), idle_ns = (int64_t)uv_metrics_idle_time(controller->loop);
    int64_t busy_ns = now_ns - controller->turn_ended_ns - (idle_ns - controller->turn_idle_ns);
    if (controller->turn_ended_ns)
        api_turn(controller->api, busy_ns > 0 ? busy_ns : 0);
    controller->turn_ended_ns = now_ns;
    controller->turn_idle_ns = idle_ns;
}

bool controller_leads(const struct controller *controller)
{
    const struct controller_shared *shared = controller->options.shared;
    return !shared || controller_mono_ns() < shared->leads_until_ns(shared->context);
}

static void turn(struct controller *controller)
{
    const struct controller_shared *shared = controller->options.shared;
    if (!controller_leads(controller))
        shared->lost(shared->context, "its lease has ended");
    lease_turn(controller);
    wire_gather(controller->wire);
    driver_turn(controller->driver);
    api_flush(controller->api);
    wire_flush(controller->wire);
}

/* --- handing over ----------------------------------------------------------------------------- */

static bool leave_is_late(const struct controller *controller)
{
    return controller_mono_ns() >= controller->leave_ns;
}

/* Returns when the hand-over must be checked again if nothing happens until then. */
static int64_t leave_wait_ns(const struct controller *controller)
{
    return controller_mono_ns() < controller->tls_ns ? controller->tls_ns : controller->leave_ns;
}

static bool leave_is_due(const struct controller *controller)
{
    bool tls_done = api_tls_connections(controller->api) == 0 || controller_mono_ns() >= controller->tls_ns;
    return leave_is_late(controller) || (tls_done && api_unanswered(controller->api) == 0);
}

/* Commits, gives up the lead, and disconnects agents and clients. Requests that had begun are answered, or
 * have used up their time. */
static void leave_resign(struct controller *controller)
{
    static const char why[] = "the controller has handed over to another one";
    const struct controller_shared *shared = controller->options.shared;
    turn(controller);
    shared->resign(shared->context);
    lease_stop(controller);
    switches_end(controller);
    readers_end(controller, why);
    execs_finish(controller, why);
    api_handed_over(controller->api);
    wire_shutdown(controller->wire);
    fault_file_close(controller);
    controller->leave = LEAVE_RESIGNED;
    controller->leave_ns = controller_mono_ns() + TAKE_NS;
    uv_timer_start(&controller->timer, on_timer, 0, 0);
}

static void on_part_ended(void *context)
{
    struct controller *controller = context;
    if (--controller->open_parts == 0)
        controller->ended(controller->ended_context);
}

static void on_handle_ended(uv_handle_t *handle)
{
    on_part_ended(handle->data);
}

/* Closes the rest, once clients have read their answers. */
static void leave_close(struct controller *controller)
{
    api_flush(controller->api);
    if (api_connections(controller->api) > 0 && !leave_is_late(controller)) {
        int64_t wait_ns = controller->leave_ns - controller_mono_ns();
        uv_timer_start(&controller->timer, on_timer, (uint64_t)(wait_ns > 0 ? wait_ns / NS_PER_MS + 1 : 0),
                       0);
        return;
    }
    controller->leave = LEAVE_CLOSED;
    controller->stopping = true;
    controller->open_parts = 3;
    uv_prepare_stop(&controller->prepare);
    uv_close((uv_handle_t *)&controller->prepare, on_handle_ended);
    uv_close((uv_handle_t *)&controller->timer, on_handle_ended);
    api_close(controller->api, on_part_ended, controller);
}

void controller_hand_over(struct controller *controller, void (*ended)(void *context), void *context)
{
    const struct controller_shared *shared = controller->options.shared;
    CHECK(shared && !controller->stopping);
    if (controller->leave)
        return;
    controller->leave = LEAVE_ANSWERS;
    controller->leave_ns = controller_mono_ns() + HAND_OVER_NS;
    controller->tls_ns = controller_mono_ns() + TLS_NS;
    controller->ended = ended;
    controller->ended_context = context;
    shared->hands_over(shared->context);
    const struct api_heir heir = {shared->context, shared->pass_on, shared->take_relay};
    api_hand_over(controller->api, &heir);
}

/* --- the loop's turn -------------------------------------------------------------------------- */

static void on_prepare(uv_prepare_t *prepare)
{
    struct controller *controller = prepare->data;
    if (controller->leave == LEAVE_RESIGNED)
        leave_close(controller);
    if (controller->stopping || controller->leave >= LEAVE_RESIGNED)
        return;
    do { /* a connection that breaks while it is written to makes more work */
        turn(controller);
    } while (driver_has_work(controller->driver) || wire_has_kept(controller->wire));
    if (controller->leave && leave_is_due(controller)) {
        leave_resign(controller);
        return;
    }
    count_turn(controller);
    lease_turn(controller);
    int64_t due_ns = controller->maintain_ns;
    if (controller->leave && leave_wait_ns(controller) < due_ns)
        due_ns = leave_wait_ns(controller);
    int64_t until_ns = driver_wait(controller->driver, due_ns);
    int64_t wait_ns = until_ns - controller_mono_ns();
    uint64_t wait_ms = wait_ns > 0 ? (uint64_t)((wait_ns + NS_PER_MS - 1) / NS_PER_MS) : 0;
    uv_timer_start(&controller->timer, on_timer, wait_ms, 0);
}

/* --- the API's hooks -------------------------------------------------------------------------- */

static struct core *hook_core(void *context)
{
    return ((struct controller *)context)->core;
}

static int64_t hook_now_ns(void *context)
{
    return driver_stamp_ns(((struct controller *)context)->driver);
}

static bool hook_hold_counts(void *context, machine_id machine)
{
    return driver_hold_counts(((struct controller *)context)->driver, machine);
}

static void hook_submit(void *context, const struct write_event *write, struct api_request *request)
{
    struct controller *controller = context;
    if (controller->leave < LEAVE_RESIGNED) {
        driver_write(controller->driver, write, (uintptr_t)request);
        return;
    }
    prepared_write_free(write->prepared);
    api_reply_error(request, 503, "ServiceUnavailable",
                    "this controller has handed over to another one, which does not know of the write");
}

/* The API begins work that touches no connection of an agent: the stand-in may answer heartbeats
 * meanwhile. */
static void hook_begins(void *context)
{
    lease_lend(context);
}

static void hook_ends(void *context)
{
    struct controller *controller = context;
    if (lease_take(controller))
        wire_gather(controller->wire);
}

/* --- start and stop --------------------------------------------------------------------------- */

static int open_store(struct controller *controller, struct error *error)
{
    const char *dir = controller->options.data_dir;
    int rc = os_folder_own(dir, 0700, error);
    if (rc < 0)
        return rc;
    controller->data_dir = realpath(dir, NULL); /* tasks use paths below it from other folders */
    if (!controller->data_dir)
        return error_set_errno(error, errno, "finding %s", dir);
    if (controller->options.shared) {
        controller->log = controller->options.shared->log;
        return 0;
    }
    struct buf path BUF_CLEANUP = {0};
    buf_printf(&path, "%s/log.db", controller->data_dir);
    uint64_t most = controller->options.log_bytes_max ? controller->options.log_bytes_max : LOG_BYTES_DEFAULT;
    const char *keys = controller->options.encryption_keys;
    rc = keys ? store_keys_load(keys, &controller->store_keys, error) : 0;
    if (rc < 0)
        return rc;
    struct store_options options = {.bytes_max = most, .keys = controller->store_keys};
    struct store *store;
    rc = store_open(path.data, &options, &store, error);
    if (rc < 0)
        return error_wrap(error, "opening the log %s", path.data);
    controller->log = log_store_sqlite(store);
    rc = controller_replay(&controller->log, UINT64_MAX, true, controller->core, NULL, NULL, error);
    return rc < 0 ? error_wrap(error, "replaying the log %s", path.data) : 0;
}

/* Appends the cluster document to `out`. Sets the default place of checkpoints, next to the log, unless the
 * document names another. */
static int read_cluster(struct controller *controller, struct buf *out, struct error *error)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document;
    int rc = json_parse(&arena, controller->options.cluster_json, &document, error);
    if (rc < 0)
        return error_wrap(error, "the cluster document");
    struct doc *spec = doc_need_object(&arena, document, "spec");
    struct doc *settings = doc_need_object(&arena, spec, "settings");
    if (!doc_get(settings, "checkpointDir"))
        doc_set(&arena, settings, STR("checkpointDir"),
                doc_new_str(&arena, arena_printf(&arena, "%s/checkpoints", controller->data_dir)));
    json_write(out, document);
    return 0;
}

static int64_t port_mono_ns(void *context)
{
    return controller_mono_ns();
}

static int64_t port_wall_ns(void *context)
{
    return controller_wall_ns();
}

static int make_driver(struct controller *controller, struct error *error)
{
    struct store_stats stats;
    int rc = controller->log.stats(controller->log.context, &stats, error);
    if (rc < 0)
        return error_wrap(error, "asking the log for its newest snapshot");
    struct driver_options options = {
        .version = str_from(this_release.version),
        .snapshot_every = controller->options.snapshot_every,
        .snapshot_seq = stats.snapshot_seq,
        .restored = stats.restored,
        .owed_ns = controller->options.shared ? controller->options.shared->owed_ns : 0,
        .place = controller->options.shared ? str_from(controller->options.shared->place) : (struct str){0}};
    struct driver_ports ports = {log_port(controller),
                                 net_port(controller),
                                 {controller, port_mono_ns, port_wall_ns},
                                 sink_port(controller),
                                 switches_begin(controller)};
    controller->driver = driver_new(&options, &ports, controller->core);
    return 0;
}

static int boot(struct controller *controller, struct error *error)
{
    struct buf cluster BUF_CLEANUP = {0};
    int rc = controller->options.cluster_json.len ? read_cluster(controller, &cluster, error) : 0;
    if (rc == 0)
        rc = make_driver(controller, error);
    if (rc < 0)
        return rc;
    uint8_t secret[GANG_KEY_BYTES];
    CHECK(gnutls_rnd(GNUTLS_RND_KEY, secret, sizeof secret) == 0);
    driver_start(controller->driver, controller_draw(), secret, buf_str(&cluster));
    driver_turn(controller->driver);
    const struct error *refusal = driver_refusal(controller->driver);
    if (refusal)
        return error_set(error, refusal->code, "the log takes no records: %s", refusal->text);
    CHECK(driver_is_open(controller->driver)); /* the store's appends finish at once */
    if (!controller->options.shared) {         /* no other controller reads the log */
        driver_raise_level(controller->driver, this_release.level);
        driver_turn(controller->driver);
    }
    if (core_is_hearing(controller->core))
        fprintf(stderr,
                "the log was restored from a backup: nothing starts before every machine was heard, or "
                "its lease is over\n");
    if (core_cluster(controller->core)->machine_count == 0)
        return error_set(error, ERROR_INVALID,
                         "no cluster: the log has none yet, and no cluster file was given");
    return 0;
}

int controller_access(const struct controller_options *options, struct access **ret_access,
                      struct error *error)
{
    struct access_options with = options->access;
    *ret_access = NULL;
    if (!options->authenticate && !with.audit)
        return 0;
    with.open = !options->authenticate;
    return access_new(&with, ret_access, error);
}

static int open_access(struct controller *controller, struct error *error)
{
    struct controller_options *options = &controller->options;
    if (options->authenticate && !options->access.account_key) {
        buf_printf(&controller->account_key, "%s/service-account.key", controller->data_dir);
        options->access.account_key = controller->account_key.data;
    }
    return controller_access(options, &controller->access, error);
}

int controller_reload(struct controller *controller, struct error *error)
{
    int rc = api_reload(controller->api, error);
    if (rc == 0 && controller->wire_tls)
        rc = reload_wire_tls(controller, error);
    return rc;
}

/* Returns how many descriptors API connections may use, 0 if unknown. Reserves two for each agent, two for
 * its old connections that are closing, and some for the store and other files. */
static uint32_t connections_left(size_t machines)
{
    enum { OTHER_FILES = 256 };
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur == RLIM_INFINITY)
        return 0;
    uint64_t used = OTHER_FILES + 4 * (uint64_t)machines, half = files.rlim_cur / 2;
    uint64_t left = files.rlim_cur > used ? files.rlim_cur - used : 0;
    left = left > half ? left : half;
    return left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;
}

static int listen_all(struct controller *controller, struct error *error)
{
    controller->wire = wire_new(controller->loop);
    wire_set_limits(controller->wire, controller->options.handshakes_max,
                    controller->options.handshakes_of_address_max);
    int rc = peers_listen(controller, error);
    if (rc < 0)
        return error_wrap(error, "listening for agents");
    struct api_options options = {
        .address = controller->options.api_address,
        .port = controller->options.api_port,
        .listening_fd = controller->options.shared ? controller->options.shared->listening_fd : 0,
        .hooks = {controller, hook_core, hook_now_ns, hook_submit, readers_open, readers_closed, execs_open,
                  execs_input, execs_credit, execs_resize, execs_closed, hook_hold_counts, hook_begins,
                  hook_ends},
    };
    options.connections_max = connections_left(core_cluster(controller->core)->machine_count);
    options.access = controller->access;
    options.pod_security = controller->options.pod_security;
    options.loopback_http = controller->options.loopback_http;
    options.from_controllers = controller->options.shared != NULL;
    options.handshakes_max = controller->options.handshakes_max;
    options.handshakes_of_address_max = controller->options.handshakes_of_address_max;
    options.names = controller->options.api_names;
    options.name_count = controller->options.api_name_count;
    options.tls_cert = controller->options.tls_cert;
    options.tls_key = controller->options.tls_key;
    rc = api_new(controller->loop, &options, &controller->api, error);
    return rc < 0 ? error_wrap(error, "listening for the API") : 0;
}

int controller_new(uv_loop_t *loop, const struct controller_options *options,
                   struct controller **ret_controller, struct error *error)
{
    struct controller *controller = mem_alloc(sizeof(*controller));
    controller->loop = loop;
    controller->options = *options;
    controller->core = options->shared ? options->shared->core : core_new();
    list_init(&controller->strangers);
    list_init(&controller->peers);
    int rc = open_store(controller, error);
    if (rc == 0)
        rc = boot(controller, error);
    if (rc == 0)
        rc = fault_file_open(controller, error);
    if (rc == 0)
        rc = open_access(controller, error);
    if (rc == 0)
        rc = listen_all(controller, error);
    if (rc == 0)
        rc = lease_start(controller, error);
    if (rc < 0) {
        if (controller->wire)
            wire_shutdown(controller->wire);
        switches_end(controller);
        fault_file_close(controller);
        controller_free(controller);
        return rc;
    }
    (void)uv_loop_configure(loop, UV_METRICS_IDLE_TIME);
    uv_prepare_init(loop, &controller->prepare);
    controller->prepare.data = controller;
    uv_prepare_start(&controller->prepare, on_prepare);
    uv_timer_init(loop, &controller->timer);
    controller->timer.data = controller;
    *ret_controller = controller;
    return 0;
}

void controller_stop(struct controller *controller)
{
    if (controller->stopping)
        return;
    turn(controller);
    if (controller->options.shared)
        controller->options.shared->resign(controller->options.shared->context);
    lease_stop(controller);
    switches_end(controller);
    controller->stopping = true;
    uv_prepare_stop(&controller->prepare);
    uv_close((uv_handle_t *)&controller->prepare, NULL);
    uv_close((uv_handle_t *)&controller->timer, NULL);
    api_close(controller->api, NULL, NULL);
    wire_shutdown(controller->wire);
    fault_file_close(controller);
}

void controller_free(struct controller *controller)
{
    if (!controller)
        return;
    lease_stop(controller);
    driver_free(controller->driver);
    log_done(controller);
    peers_done(controller);
    vec_done(&controller->streams);
    vec_done(&controller->execs);
    if (controller->log.context && !controller->options.shared)
        controller->log.close(controller->log.context);
    store_keys_free(controller->store_keys);
    access_free(controller->access);
    if (!controller->options.shared)
        core_free(controller->core);
    free(controller->data_dir);
    buf_done(&controller->account_key);
    fault_file_free(controller);
    mem_free(controller);
}

uint32_t controller_level(const struct controller *controller)
{
    return core_level(controller->core);
}

void controller_raise_level(struct controller *controller, uint32_t level)
{
    if (!controller->stopping)
        driver_raise_level(controller->driver, level);
}

uint16_t controller_api_port(const struct controller *controller)
{
    return api_port(controller->api);
}

uint16_t controller_agent_port(const struct controller *controller)
{
    return controller->agent_port;
}
