/* controller.c - a controller's process: the driver that ships, between ports on the model of etcd and on
 * drifting clocks; its turns, start and end. */
#include "sim/ha/world.h"

#include "base/hash.h"

#define TURN_DELAY_NS (200 * NS_PER_US)
#define MAINTAIN_NS   (500 * NS_PER_MS)

static const char cluster_json[] =
    "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"torture\"},\"spec\":{"
    "\"settings\":{\"lease\":\"3s\",\"heartbeat\":\"1s\"},\"machineNames\":\"m-{n}\","
    "\"addresses\":\"10.0.0.1\",\"pods\":[{\"racks\":[{\"count\":1,\"namePattern\":\"rack-{rack}\","
    "\"machines\":4,\"chips\":4,\"spares\":0}]}]}}";

int64_t ha_mono(const struct ha_controller *controller)
{
    return clock_at(&controller->mono, controller->world->now_ns);
}

bool ha_stands(struct ha_controller *controller, struct ha_event *event, bool keeper)
{
    const struct ha_world *world = controller->world;
    int64_t until_ns = controller->stopped_until_ns;
    if (!keeper && controller->busy_until_ns > until_ns)
        until_ns = controller->busy_until_ns;
    if (world->now_ns >= until_ns)
        return false;
    struct ha_event *again =
        ha_at(controller->world, until_ns, event->what, event->who, event->id, event->number);
    again->message = event->message;
    event->message = NULL;
    return true;
}

/* Returns whether the main loop waits for etcd, and so reads nothing. */
static bool loop_waits(const struct ha_controller *controller)
{
    bool appends = controller->main.ask == ASK_PART || controller->main.ask == ASK_APPEND;
    return controller->main.id && (!appends || controller->world->swarm.log_waits);
}

bool ha_reads(const struct ha_controller *controller)
{
    return controller->state == HA_LEADS && driver_is_open(controller->driver) && !loop_waits(controller) &&
           controller->world->now_ns >= controller->stopped_until_ns &&
           controller->world->now_ns >= controller->busy_until_ns;
}

/* --- turns ------------------------------------------------------------------------------------ */

static void arm_turn(struct ha_controller *controller, int64_t true_ns)
{
    if (controller->turn_ns <= true_ns)
        return;
    controller->turn_ns = true_ns;
    ha_at(controller->world, true_ns, HA_TURN, controller->index, controller->life,
          ++controller->turn_number);
}

void ha_turn_soon(struct ha_controller *controller)
{
    struct ha_world *world = controller->world;
    if (controller->state == HA_LEADS)
        arm_turn(controller, world->now_ns + 1 + ha_draw(world, 0, TURN_DELAY_NS));
}

void ha_turn_by(struct ha_controller *controller, int64_t mono_ns)
{
    int64_t true_ns = clock_when(&controller->mono, mono_ns);
    arm_turn(controller, true_ns > controller->world->now_ns ? true_ns : controller->world->now_ns + 1);
}

static void take_write(struct ha_controller *controller, struct ha_message *message)
{
    struct ha_world *world = controller->world;
    struct effects refused = {0};
    struct write_event *write = &message->write;
    if (core_check_write(controller->core, write, driver_stamp_ns(controller->driver), &refused,
                         &write->prepared)) {
        vec_push(&controller->waiting, message);
        driver_write(controller->driver, write, ++world->next_id);
        message->version = world->next_id; /* the request's id, until it is answered */
        write->prepared = NULL;            /* the driver owns it now */
    } else {
        const struct sim_pair *leader = sim_pair_find(&world->etcd.pairs, SIM_LEADER, 0);
        message->code = refused.list.items[0].reply.code;
        if (refused.list.items[0].reply.receipt)
            ha_reach(world, HA_RECEIPT);
        message->stale = !leader || leader->mod != controller->term;
        ha_client_answer(world, message, controller->index);
    }
    vec_done(&refused.list);
}

/* Hands the driver what agents and clients have sent. */
static void read_all(struct ha_controller *controller)
{
    ha_conn_gather(controller);
    for (size_t i = 0; i < controller->inbox.len; i++)
        take_write(controller, controller->inbox.items[i]);
    vec_clear(&controller->inbox);
}

/* Makes one call to etcd between two turns, while no append is under way. */
static void turn_maintain(struct ha_controller *controller)
{
    if (controller->main.id || driver_is_appending(controller->driver) || !driver_is_open(controller->driver))
        return;
    if (!lead_resign(controller) && !append_maintain(controller))
        lead_look_as_leader(controller);
}

void ha_turn(struct ha_world *world, const struct ha_event *event)
{
    struct ha_controller *controller = &world->controllers[event->who];
    if (controller->state != HA_LEADS || event->id != controller->life ||
        event->number != controller->turn_number)
        return;
    controller->turn_ns = INT64_MAX;
    if (loop_waits(controller))
        return; /* the answer arms the next turn */
    if (!lease_runs(controller) && world->options.plant != PLANT_OVERSTAY) {
        ha_lost(controller, "its lease has ended");
    } else {
        if (driver_is_open(controller->driver))
            read_all(controller);
        driver_timers(controller->driver);
        do
            driver_turn(controller->driver);
        while (driver_has_work(controller->driver) && !controller->lost);
    }
    if (controller->lost) {
        ha_end(controller, NS_PER_MS * ha_draw(world, 1, 300), "begins anew as a standby");
        return;
    }
    driver_maintain(controller->driver);
    ha_oracle_opened(controller);
    turn_maintain(controller);
    if (loop_waits(controller))
        return;
    int64_t due_ns = driver_wait(controller->driver, ha_mono(controller) + MAINTAIN_NS);
    ha_turn_by(controller, due_ns);
}

void ha_lost(struct ha_controller *controller, const char *why)
{
    if (controller->lost)
        return;
    controller->lost = true;
    ha_reach(controller->world, HA_LOST);
    ha_trace(controller->world, "c-%u: leads no more: %s", controller->index + 1, why);
}

/* --- ports ------------------------------------------------------------------------------------ */

static int64_t port_mono_ns(void *context)
{
    return ha_mono(context);
}

static int64_t port_wall_ns(void *context)
{
    const struct ha_controller *controller = context;
    return clock_at(&controller->wall, controller->world->now_ns);
}

static void port_send(void *context, drive_session session, const struct from_controller *message)
{
    struct ha_controller *controller = context;
    struct ha_conn *conn = ha_conn_find(controller->world, session);
    if (conn && conn->controller_open)
        ha_conn_send_controller(controller->world, conn, message);
}

static void port_close(void *context, drive_session session, const char *refused)
{
    struct ha_controller *controller = context;
    struct ha_conn *conn = ha_conn_find(controller->world, session);
    if (conn)
        ha_conn_close_controller(controller->world, conn);
}

static struct ha_message *take_waiting(struct ha_controller *controller, drive_request request)
{
    for (size_t i = 0; i < controller->waiting.len; i++) {
        struct ha_message *message = controller->waiting.items[i];
        if (message->version != request)
            continue;
        vec_remove(&controller->waiting, i);
        return message;
    }
    CHECK_UNREACHABLE(); /* each write is answered once */
}

static uint64_t version_of(const struct object_ref *ref)
{
    switch (ref->kind) {
    case OBJECT_JOBSET:
        return ref->any ? ref->jobset->changed_seq : 0;
    case OBJECT_CONFIG_MAP:
        return ref->any ? ref->object->changed_seq : 0;
    default:
        return 0;
    }
}

static void port_reply(void *context, drive_request request, const struct effect *effect)
{
    struct ha_controller *controller = context;
    struct ha_message *message = take_waiting(controller, request);
    message->code = effect->reply.code;
    if (effect->reply.receipt)
        ha_reach(controller->world, HA_RECEIPT);
    message->version = version_of(&effect->reply.object);
    ha_client_answer(controller->world, message, controller->index);
}

static void port_refuse(void *context, drive_request request, int code, const char *reason, const char *why)
{
    struct ha_controller *controller = context;
    struct ha_message *message = take_waiting(controller, request);
    message->code = code;
    message->version = 0;
    ha_client_answer(controller->world, message, controller->index);
}

static void port_before_step(void *context, const struct event *event)
{
    ha_oracle_before(context, event);
}

static void port_after_step(void *context, const struct event *event, const struct drive_record *record,
                            const struct effects *effects)
{
    ha_oracle_applied(context, record, event);
}

/* --- start and end ---------------------------------------------------------------------------- */

static bool others_lead(const struct ha_world *world, const struct ha_controller *controller)
{
    for (uint32_t i = 0; i < world->swarm.controllers; i++)
        if (i != controller->index && world->controllers[i].state == HA_LEADS)
            return true;
    return false;
}

void ha_leads(struct ha_controller *controller)
{
    struct ha_world *world = controller->world;
    const struct ha_swarm *swarm = &world->swarm;
    struct driver_options options = {.version = STR("torture"),
                                     .place = STR("10.0.0.9:7070"),
                                     .turn_records_max = swarm->turn_records_max,
                                     .snapshot_every = swarm->snapshot_every,
                                     .snapshot_seq = core_seq(controller->core),
                                     .owed_ns = controller->lease_length_ns};
    struct driver_ports ports = {
        .log = ha_log_port(controller),
        .net = {controller, port_send, port_close},
        .clock = {controller, port_mono_ns, port_wall_ns},
        .sinks = {.context = controller,
                  .reply = port_reply,
                  .refuse = port_refuse,
                  .before_step = port_before_step,
                  .after_step = port_after_step},
    };
    uint8_t secret[GANG_KEY_BYTES];
    for (size_t i = 0; i < sizeof secret; i++)
        secret[i] = (uint8_t)hash_mix(world->options.seed + i);
    if (others_lead(world, controller))
        ha_reach(world, HA_TWO_LEAD);
    controller->state = HA_LEADS;
    controller->turn_ns = INT64_MAX;
    controller->snapshot_seq = core_seq(controller->core);
    controller->driver = driver_new(&options, &ports, controller->core);
    bool tells = core_cluster(controller->core)->machine_count == 0 || ha_chance(world, 100000);
    driver_start(controller->driver, rng_next(&world->rng), secret, str_from(tells ? cluster_json : ""));
    ha_trace(world, "c-%u: leads from record %llu on", controller->index + 1,
             (unsigned long long)core_seq(controller->core));
    ha_turn_soon(controller);
}

static void drop_messages(struct ha_message **messages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        prepared_write_free(messages[i]->write.prepared);
        ha_message_free(messages[i]);
    }
}

/* Frees the state of the process. Its clocks and its lease in etcd remain. */
static void forget_process(struct ha_controller *controller)
{
    driver_free(controller->driver);
    core_free(controller->core);
    vec_done(&controller->effects.list);
    controller->effects = (struct effects){0};
    call_drop(&controller->main);
    call_drop(&controller->keeper);
    drop_messages(controller->inbox.items, controller->inbox.len);
    drop_messages(controller->waiting.items, controller->waiting.len);
    vec_done(&controller->inbox);
    vec_done(&controller->waiting);
    vec_done(&controller->leases);
    buf_done(&controller->group);
    buf_done(&controller->snapshot);
}

/* Tells standbys that reach the host of the dead leader that its process has ended, as the host's kernel
 * does. */
static void tell_death(struct ha_controller *dead)
{
    struct ha_world *world = dead->world;
    for (uint32_t i = 0; i < world->swarm.controllers; i++) {
        const struct ha_controller *other = &world->controllers[i];
        if (other != dead && other->state == HA_FOLLOWS && ha_passes(world, dead->index, i, false))
            ha_after(world, ha_delay(world), HA_DEATH, i, other->life, (uint64_t)dead->term);
    }
}

void ha_end(struct ha_controller *controller, int64_t away_ns, const char *why)
{
    struct ha_world *world = controller->world;
    if (controller->state == HA_DOWN)
        return;
    ha_trace(world, "c-%u: %s", controller->index + 1, why);
    if (controller->state == HA_LEADS)
        tell_death(controller);
    ha_conn_end_of(controller);
    forget_process(controller);
    *controller = (struct ha_controller){.world = world,
                                         .index = controller->index,
                                         .life = controller->life,
                                         .mono = controller->mono,
                                         .wall = controller->wall,
                                         .old = controller->old && !ha_chance(world, 300000)};
    ha_after(world, away_ns, HA_START, controller->index, 0, 0);
}

void ha_start(struct ha_world *world, uint32_t index)
{
    struct ha_controller *controller = &world->controllers[index];
    if (controller->state != HA_DOWN)
        return;
    controller->life++;
    controller->turn_ns = INT64_MAX;
    world->outcome->boots++;
    ha_trace(world, "c-%u: starts%s", index + 1, controller->old ? ", of the release before" : "");
    lead_begin(controller);
}

void ha_controller_done(struct ha_controller *controller)
{
    forget_process(controller);
}

/* --- writes ----------------------------------------------------------------------------------- */

/* Forwards a write from a standby to the leader that it has seen. */
static void forward(struct ha_controller *controller, struct ha_event *event)
{
    struct ha_world *world = controller->world;
    uint32_t leader = controller->seen.leader.controller;
    if (controller->state == HA_FOLLOWS && controller->seen.leader_term && leader != controller->index &&
        !event->message->forwarded && ha_passes(world, controller->index, leader, false)) {
        struct ha_event *on = ha_after(world, ha_delay(world), HA_WRITE, leader, 0, 0);
        on->message = event->message;
        on->message->forwarded = true;
        on->message->controller = controller->index;
        event->message = NULL;
        return;
    }
    event->message->code = 0; /* the connection is refused or closed */
    ha_client_answer(world, event->message, controller->index);
    event->message = NULL;
}

void ha_write_arrives(struct ha_world *world, struct ha_event *event)
{
    struct ha_controller *controller = &world->controllers[event->who];
    if (controller->state != HA_DOWN && ha_stands(controller, event, false))
        return;
    if (controller->state != HA_LEADS) {
        forward(controller, event);
        return;
    }
    vec_push(&controller->inbox, event->message);
    event->message = NULL;
    if (ha_reads(controller))
        ha_turn_soon(controller);
}
