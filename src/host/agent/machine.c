#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "host/agent/internal.h"

void local_note(const struct local_machine *machine, struct str text)
{
    if (!machine->host->quiet)
        fprintf(stderr, "agent %s: " STR_FORMAT "\n", machine->name, STR_ARG(text));
}

void local_warn(const struct local_machine *machine, struct str text)
{
    fprintf(stderr, "agent %s: " STR_FORMAT "\n", machine->name, STR_ARG(text));
}

/* --- connections ---------------------------------------------------------------------------------- */

static void port_close(void *context)
{
    struct local_machine *machine = context;
    struct wire_conn *conn = machine->conn, *tether = machine->tether;
    machine->conn = machine->tether = NULL;
    local_seek_end(machine);
    if (conn)
        wire_close(conn);
    if (tether)
        wire_close(tether);
    if (machine->live)
        local_logs_close_all(machine->live);
    if (machine->live)
        local_exec_close_all(machine->live);
}

static void close_tether(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void local_close_tethers(struct local_machine *machine)
{
    close_tether(&machine->kept_tether);
    close_tether(&machine->next_tether);
}

static void port_tether_welcome(void *context)
{
    struct local_machine *machine = context;
    close_tether(&machine->kept_tether);
    machine->kept_tether = machine->next_tether;
    machine->next_tether = -1;
}

/* Returns advice about a connection that failed before a controller answered. */
static const char *advice(const struct local_machine *machine, enum wire_reason reason, bool opened)
{
    bool tls = machine->host->tls != NULL;
    if (reason == WIRE_PEER_TLS)
        return ": the controller wants TLS; start the agent with --tls-ca, --tls-cert and --tls-key "
               "(`phalanx certs agent` makes them)";
    if (reason == WIRE_PEER_PLAIN)
        return "; start the controller with --tls-cert, --tls-key and --client-ca, or the agent without "
               "--tls-ca, --tls-cert and --tls-key";
    if (reason == WIRE_PEER_HTTP)
        return ": that is the controller's API, or another server; --controller takes the address that the "
               "controller was given as --agents, not its API";
    if (opened && tls)
        return "; the other end may not accept this certificate, or be another program: "
               "--controller takes the address that the controller was given as --agents, not its API";
    if (opened)
        return "; the other end may be another program: "
               "--controller takes the address that the controller was given as --agents, not its API";
    return reason == WIRE_TIMEOUT ? "; a firewall may drop the packets"
                                  : "; it is tried again until it answers";
}

/* Notes from time to time why the controller is not reached (unreached.h). */
static void complain(struct local_machine *machine, enum wire_reason reason, const char *why, bool opened)
{
    struct agent_host *host = machine->host;
    int64_t now_ns = local_boot_ns();
    struct error text;
    if (!unreached_says(&machine->unreached, now_ns))
        return;
    int64_t silent_ns = now_ns - machine->unreached.since_ns;
    error_set(&text, ERROR_UNAVAILABLE, "no controller at %s:%u for %lld s: %s%s", host->controller,
              host->port, (long long)(silent_ns / NS_PER_SECOND), why, advice(machine, reason, opened));
    local_note(machine, str_from(text.text));
    machine->welcomed = false;
}

static void port_welcome(void *context)
{
    struct local_machine *machine = context;
    struct agent_host *host = machine->host;
    struct error text;
    machine->unreached = (struct unreached){0};
    if (machine->welcomed)
        return;
    machine->welcomed = true;
    error_set(&text, ERROR_UNAVAILABLE, "ready: the controller at %s:%u knows this machine", host->controller,
              host->port);
    if (host->announce)
        local_note(machine, str_from(text.text));
}

static void on_closed(struct wire_conn *conn, enum wire_reason reason, const char *why)
{
    struct local_machine *machine = wire_conn_context(conn);
    const struct machine_driver *driver = &machine->driver;
    if (driver->welcome) {
        struct error text;
        error_set(&text, ERROR_UNAVAILABLE, "the connection to the controller broke: %s", why);
        local_note(machine, str_from(text.text));
    } else {
        complain(machine, reason, why,
                 driver->session_open || driver->tether_open || reason == WIRE_PROTOCOL);
    }
    machine_closed(&machine->driver);
}

static void on_opened(struct wire_conn *conn)
{
    struct local_machine *machine = wire_conn_context(conn);
    machine_opened(&machine->driver, false);
}

static void on_tether_opened(struct wire_conn *conn)
{
    struct local_machine *machine = wire_conn_context(conn);
    machine_opened(&machine->driver, true);
}

/* Tasks get the tether from the launcher; the host's own descriptor of it outlives the connection. */
static void port_tether(void *context, const struct from_agent *message)
{
    struct local_machine *machine = context;
    struct error error;
    int fd = wire_conn_fd(machine->tether);
    wire_send_agent(machine->tether, message);
    if (launcher_set_tether(machine->live->launcher, fd, &error) < 0)
        local_note(machine, str_from(error.text));
    close_tether(&machine->next_tether);
    machine->next_tether = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (machine->next_tether < 0)
        local_note(machine, STR("no descriptor is left to keep the tether open"));
}

static void on_message(struct wire_conn *conn, const struct from_controller *message)
{
    struct local_machine *machine = wire_conn_context(conn);
    if (conn == machine->conn)
        local_seek_end(machine);
    machine_message(&machine->driver, conn == machine->tether, message);
}

static void port_message(void *context, const struct from_controller *message)
{
    local_exec_message(context, message);
}

static void on_drained(struct wire_conn *conn)
{
    struct local_machine *machine = wire_conn_context(conn);
    if (machine->live && machine->conn == conn)
        local_logs_pump(machine->live);
}

static const struct wire_handlers conn_handlers = {
    .opened = on_opened, .from_controller = on_message, .drained = on_drained, .closed = on_closed};
static const struct wire_handlers tether_handlers = {
    .opened = on_tether_opened, .from_controller = on_message, .closed = on_closed};

/* Chooses the source address of a simulated machine on the loopback, one for each 4,096 machines: the
 * kernel's search for a free port becomes slow when half of the 28,000 ports of one address are in use. */
static bool spread_source(const struct local_machine *machine, char ret_source[32])
{
    const struct agent_host *host = machine->host;
    size_t group = (size_t)(machine - host->machines) / 4096;
    if (!host->simulate || host->address || strncmp(host->controller, "127.", 4) != 0 || group == 0)
        return false;
    snprintf(ret_source, 32, "127.0.%zu.1", group);
    return true;
}

const struct local_place *local_machine_place(const struct local_machine *machine)
{
    const struct agent_host *host = machine->host;
    return &host->places[(machine->place + host->place_count - 1) % host->place_count];
}

struct wire_target local_machine_target(const struct local_machine *machine, uint32_t place,
                                        char ret_source[32])
{
    const struct agent_host *host = machine->host;
    const struct local_place *at = &host->places[place % host->place_count];
    struct wire_target target = {.host = at->controller, .port = at->port, .source = host->address};
    if (host->place_count > 1) /* a dead computer never refuses, and the next one may lead */
        target.timeout_ms = CONNECT_OF_SEVERAL_MS;
    if (spread_source(machine, ret_source))
        target.source = ret_source;
    return target;
}

static bool port_connect(void *context)
{
    struct local_machine *machine = context;
    struct agent_host *host = machine->host;
    CHECK(!machine->conn && !machine->tether);
    if (host->tls) /* a certificate may have been renewed; on failure the old one stays */
        (void)wire_tls_reload(host->tls, NULL);
    /* Session and tether go to one controller; the next try, to the next one. */
    machine->place = (machine->place + 1) % host->place_count;
    struct error error;
    char source[32];
    struct wire_target target = local_machine_target(machine, machine->place + host->place_count - 1, source);
    target.tls = host->tls;
    int rc = wire_connect(host->wire, &target, &conn_handlers, machine, &machine->conn, &error);
    if (rc == 0 && machine->live)
        rc = wire_connect(host->wire, &target, &tether_handlers, machine, &machine->tether, &error);
    if (rc < 0)
        local_note(machine, str_from(error.text));
    return rc == 0;
}

/* --- effects -------------------------------------------------------------------------------------- */

static void port_send(void *context, const struct from_agent *message)
{
    struct local_machine *machine = context;
    struct from_agent copy = *message;
    if (!machine->conn)
        return;
    if (machine->live && copy.kind == FROM_AGENT_HEARTBEAT)
        local_usage_add(machine->live, machine_arena(machine->host->shared), &copy.heartbeat);
    wire_send_agent(machine->conn, &copy);
    if (copy.kind == FROM_AGENT_HEARTBEAT)
        local_seek_beat(machine);
}

static void carry_out_live(struct local_machine *machine, const struct agent_effect *effect)
{
    struct live *live = machine->live;
    switch (effect->kind) {
    case AGENT_CONNECT:
    case AGENT_CLOSE:
    case AGENT_SEND:
        CHECK_UNREACHABLE(); /* the driver's */
    case AGENT_FENCE:
        launch_set_fence(live->launcher, (uint64_t)effect->fence_ns);
        break;
    case AGENT_LAUNCH:
        local_tasks_launch(live, effect);
        break;
    case AGENT_STOP:
        local_tasks_stop(live, &effect->stop, effect->container);
        break;
    case AGENT_FORGET:
        local_tasks_forget(live, effect->task, effect->container);
        break;
    case AGENT_CLIENT_WELCOME:
    case AGENT_CLIENT_FENCED:
    case AGENT_CLIENT_COMMITTED:
    case AGENT_CLIENT_DRAIN:
    case AGENT_CLIENT_REJOIN:
    case AGENT_CLIENT_TABLES:
        local_clients_send(live, effect);
        break;
    case AGENT_LOG_OPEN:
        local_logs_open(live, &effect->log_open);
        break;
    case AGENT_LOG_CLOSE:
        local_logs_close(live, effect->stream);
        break;
    case AGENT_NOTE:
        local_note(machine, effect->note);
        break;
    case AGENT_ACT:
        local_probe_run(live, effect);
        break;
    case AGENT_ACT_CANCEL:
        local_probe_cancel(live, effect->task, effect->container);
        break;
    case AGENT_CLOCK:
        local_health_clock(live, effect->clock.ahead_ns, effect->clock.error_ns);
        break;
    case AGENT_ERRAND_START:
        local_errand_start(live, effect->errand_start);
        break;
    case AGENT_SAY_AGAIN:
        local_health_say_again(live);
        break;
    case AGENT_ERRAND_STOP:
        local_errand_stop(live, effect->task);
        break;
    case AGENT_KEEP_CLUSTER:
        local_cluster_keep(machine);
        break;
    case AGENT_STRANGER:
        local_cluster_stranger(machine, effect->cluster);
        break;
    }
}

/* Carries out an effect of a simulated machine, which has no files, no clients and no health. */
static void carry_out_simulated(struct local_machine *machine, const struct agent_effect *effect)
{
    switch (effect->kind) {
    case AGENT_CONNECT:
    case AGENT_CLOSE:
    case AGENT_SEND:
        CHECK_UNREACHABLE(); /* the driver's */
    case AGENT_LAUNCH:
        local_sim_launch(machine, effect);
        break;
    case AGENT_STOP:
        local_sim_stop(machine, &effect->stop, effect->container);
        break;
    case AGENT_LOG_OPEN:
        local_sim_log_open(machine, &effect->log_open);
        break;
    case AGENT_NOTE:
        local_note(machine, effect->note);
        break;
    case AGENT_ACT:
        local_sim_act(machine, effect);
        break;
    case AGENT_ERRAND_START:
        local_sim_errand(machine, effect->errand_start);
        break;
    case AGENT_STRANGER:
        local_cluster_stranger(machine, effect->cluster);
        break;
    case AGENT_FENCE:
    case AGENT_FORGET:
    case AGENT_CLIENT_WELCOME:
    case AGENT_CLIENT_FENCED:
    case AGENT_CLIENT_COMMITTED:
    case AGENT_CLIENT_DRAIN:
    case AGENT_CLIENT_REJOIN:
    case AGENT_CLIENT_TABLES:
    case AGENT_LOG_CLOSE:
    case AGENT_ACT_CANCEL:
    case AGENT_CLOCK:
    case AGENT_SAY_AGAIN:
    case AGENT_ERRAND_STOP:
    case AGENT_KEEP_CLUSTER:
        break;
    }
}

static void port_carry_out(void *context, const struct agent_effect *effect)
{
    struct local_machine *machine = context;
    machine->live ? carry_out_live(machine, effect) : carry_out_simulated(machine, effect);
}

/* Returns the failures of effects as events. */
static bool port_next(void *context, struct agent_event *ret_event)
{
    struct local_machine *machine = context;
    struct live *live = machine->live;
    if (!live)
        return local_sim_acted(machine, ret_event);
    if (live->failed.len == 0)
        return false;
    live->said = live->failed.items[0];
    vec_remove(&live->failed, 0);
    *ret_event = (struct agent_event){.kind = AGENT_TASK_EXITED,
                                      .container = live->said.container,
                                      .run = live->said.run,
                                      .exited = {.task = live->said.task,
                                                 .start_failed = true,
                                                 .exit_code = -1,
                                                 .message = str_from(live->said.text)}};
    return true;
}

static void port_fed(void *context)
{
    struct local_machine *machine = context;
    struct agent_host *host = machine->host;
    if (!machine->booted)
        return; /* the tick that boots it is in the heap, or will be; until then it needs no others */
    int64_t deadline_ns = agent_deadline(machine->agent);
    if (machine->due.key != deadline_ns || !heap_has(&machine->due)) {
        if (heap_has(&machine->due))
            heap_remove(&host->due, &machine->due);
        machine->due.key = deadline_ns;
        if (deadline_ns != INT64_MAX)
            heap_insert(&host->due, &machine->due);
    }
    local_arm(host);
}

static int64_t port_boot_ns(void *context)
{
    return local_boot_ns();
}

static int64_t port_wall_ns(void *context)
{
    return local_wall_ns();
}

static void port_note(void *context, const char *text)
{
    local_note(context, str_from(text));
}

void local_machine_drive(struct local_machine *machine)
{
    struct agent_ports ports = {.context = machine,
                                .boot_ns = port_boot_ns,
                                .wall_ns = port_wall_ns,
                                .connect = port_connect,
                                .close = port_close,
                                .send = port_send,
                                .tether = port_tether,
                                .tether_welcome = port_tether_welcome,
                                .welcome = port_welcome,
                                .note = port_note,
                                .message = port_message,
                                .carry_out = port_carry_out,
                                .next = port_next,
                                .fed = port_fed};
    machine_driver_init(&machine->driver, machine->agent, &ports, machine->host->shared,
                        !machine->host->simulate);
}

void local_step(struct local_machine *machine, struct agent_event event)
{
    if (!machine->host->closing)
        machine_feed(&machine->driver, &event);
}

void local_tick(struct local_machine *machine)
{
    struct agent_event event = {.kind = machine->booted ? AGENT_TICK : AGENT_BOOT};
    machine->booted = true;
    local_step(machine, event);
}
