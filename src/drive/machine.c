/* machine.c - an agent between its ports: steps, connections, messages (agent.h). */
#include "drive/agent.h"

#include "core/agent/codec.h"

struct machine_shared {
    struct agent_effects effects; /* of the step that is made */
    struct rank_table_reader *rank_tables;
    bool stepping;
};

struct machine_shared *machine_shared_new(void)
{
    struct machine_shared *shared = mem_alloc(sizeof(*shared));
    shared->rank_tables = rank_table_reader_new();
    return shared;
}

void machine_shared_free(struct machine_shared *shared)
{
    if (!shared)
        return;
    agent_effects_done(&shared->effects);
    rank_table_reader_free(shared->rank_tables);
    mem_free(shared);
}

struct arena *machine_arena(struct machine_shared *shared)
{
    return &shared->effects.arena;
}

void machine_driver_init(struct machine_driver *driver, struct agent *agent, const struct agent_ports *ports,
                         struct machine_shared *shared, bool tethers)
{
    *driver = (struct machine_driver){.agent = agent, .ports = *ports, .shared = shared, .tethers = tethers};
}

void machine_driver_done(struct machine_driver *driver)
{
    machine_rank_table_drop(&driver->rank_table);
}

/* --- steps ------------------------------------------------------------------------------------ */

static void carry_out(struct machine_driver *driver, const struct agent_effect *effect)
{
    const struct agent_ports *ports = &driver->ports;
    switch (effect->kind) {
    case AGENT_CONNECT:
        CHECK(!driver->session_open && !driver->tether_open);
        driver->failed = !ports->connect(ports->context);
        if (driver->failed)
            machine_drop(driver);
        break;
    case AGENT_CLOSE:
        machine_drop(driver);
        break;
    case AGENT_SEND:
        ports->send(ports->context, &effect->send);
        break;
    default:
        ports->carry_out(ports->context, effect);
    }
}

static void look_at_welcome(struct machine_driver *driver)
{
    const struct agent_ports *ports = &driver->ports;
    if (!agent_is_welcome(driver->agent))
        return;
    if (driver->next_tether)
        ports->tether_welcome(ports->context);
    driver->next_tether = false;
    if (!driver->welcome && ports->welcome)
        ports->welcome(ports->context);
    driver->welcome = true;
}

static void step_once(struct machine_driver *driver, struct agent_event *event)
{
    struct agent_effects *effects = &driver->shared->effects;
    event->boot_ns = driver->ports.boot_ns(driver->ports.context);
    event->wall_ns = driver->ports.wall_ns(driver->ports.context);
    driver->shared->stepping = true;
    agent_step(driver->agent, event, effects);
    for (size_t i = 0; i < effects->list.len; i++)
        carry_out(driver, &effects->list.items[i]);
    driver->shared->stepping = false;
    look_at_welcome(driver);
}

/* Returns the next event of a failed effect, or of the host. Returns false if there is none. */
static bool next_event(struct machine_driver *driver, struct agent_event *ret_event)
{
    const struct agent_ports *ports = &driver->ports;
    if (!driver->failed)
        return ports->next && ports->next(ports->context, ret_event);
    driver->failed = false;
    *ret_event = (struct agent_event){.kind = AGENT_DISCONNECTED};
    return true;
}

void machine_feed(struct machine_driver *driver, struct agent_event *event)
{
    CHECK(!driver->shared->stepping);
    do
        step_once(driver, event);
    while (next_event(driver, event));
    driver->ports.fed(driver->ports.context);
}

static void feed_kind(struct machine_driver *driver, enum agent_event_kind kind)
{
    machine_feed(driver, &(struct agent_event){.kind = kind});
}

/* --- connections ------------------------------------------------------------------------------ */

void machine_drop(struct machine_driver *driver)
{
    driver->session_open = driver->tether_open = driver->welcome = false;
    machine_rank_table_drop(&driver->rank_table);
    driver->ports.close(driver->ports.context);
}

void machine_closed(struct machine_driver *driver)
{
    machine_drop(driver);
    feed_kind(driver, AGENT_DISCONNECTED);
}

static void tether_opened(struct machine_driver *driver)
{
    struct from_agent message = {.kind = FROM_AGENT_TETHER, .hello = {.version = this_release.wire}};
    message.hello.machine = agent_machine(driver->agent);
    message.hello.incarnation = agent_incarnation(driver->agent);
    message.hello.connection = agent_connection(driver->agent);
    message.hello.cluster = agent_cluster(driver->agent);
    driver->ports.tether(driver->ports.context, &message);
    driver->tether_open = driver->next_tether = true;
}

void machine_opened(struct machine_driver *driver, bool tether)
{
    if (tether)
        tether_opened(driver);
    else
        driver->session_open = true;
    if (driver->session_open && (driver->tether_open || !driver->tethers))
        feed_kind(driver, AGENT_CONNECTED);
}

/* --- messages --------------------------------------------------------------------------------- */

static void on_start(struct machine_driver *driver, const struct from_controller *message)
{
    struct from_controller whole = *message;
    struct error error;
    if (whole.start.rank_table_number != 0 &&
        machine_rank_table_put_back(&driver->rank_table, driver->shared->rank_tables, &whole.start, &error) <
            0) {
        driver->ports.note(driver->ports.context, error.text);
        machine_closed(driver); /* on a new session the rank table is sent again */
        return;
    }
    machine_feed(driver, &(struct agent_event){.kind = AGENT_MESSAGE, .message = &whole});
}

void machine_message(struct machine_driver *driver, bool tether, const struct from_controller *message)
{
    const struct agent_ports *ports = &driver->ports;
    if (tether && message->kind != FROM_CONTROLLER_REFUSED) /* it may arrive on the tether first */
        return;
    if (message->kind >= FROM_CONTROLLER_EXEC_OPEN && message->kind <= FROM_CONTROLLER_EXEC_CLOSE) {
        if (ports->message && agent_is_welcome(driver->agent))
            ports->message(ports->context, message);
    } else if (message->kind == FROM_CONTROLLER_RANK_TABLE) {
        machine_rank_table_keep(&driver->rank_table, &message->rank_table);
    } else if (message->kind == FROM_CONTROLLER_START) {
        on_start(driver, message);
    } else {
        machine_feed(driver, &(struct agent_event){.kind = AGENT_MESSAGE, .message = message});
    }
}
