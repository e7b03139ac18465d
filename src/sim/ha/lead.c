/* lead.c - leases, following and leading, by the rules of host/standby and host/store/etcd/lead.c.
 *
 * A process begins with a lease and the whole log. A standby reads the control keys when its watch reports a
 * change, and every LOOK_NS. It applies new records, and takes the lead if there is no leader key, or if the
 * leader's process is known to have ended. The leader checks whether another controller has taken over or
 * asks it to hand over. */
#include "sim/ha/world.h"

#include "base/hash.h"

#define LOOK_NS        (500 * NS_PER_MS) /* a watch may fail silently */
#define LEADER_LOOK_NS (100 * NS_PER_MS)
#define CENSUS_NS      (500 * NS_PER_MS)
#define PATIENCE_NS    (10 * NS_PER_SECOND)

/* --- the lease -------------------------------------------------------------------------------- */

bool lease_runs(const struct ha_controller *controller)
{
    return ha_mono(controller) < controller->lease_until_ns;
}

/* Sets the end of the lease. `asked_ns` is a time before the request was sent. A tenth of the time allows for
 * clocks of another pace. */
static void lease_lasts(struct ha_controller *controller, int64_t ttl_ns, int64_t asked_ns)
{
    controller->lease_length_ns = ttl_ns;
    controller->lease_until_ns = asked_ns + ttl_ns - ttl_ns / 10;
}

static void lease_ask(struct ha_controller *controller)
{
    controller->lease = (int64_t)++controller->world->next_id;
    controller->lease_until_ns = 0;
    controller->announced = false;
    call_lease(controller, false, ASK_GRANT, CALL_GRANT, controller->lease,
               ha_mono(controller) + PATIENCE_NS);
}

static void renew_later(struct ha_controller *controller)
{
    ha_after(controller->world, controller->lease_length_ns / 4, HA_RENEW, controller->index,
             controller->life, (uint64_t)controller->lease);
}

void lead_renew(struct ha_world *world, const struct ha_event *event)
{
    struct ha_controller *controller = &world->controllers[event->who];
    if (event->id != controller->life || (int64_t)event->number != controller->lease ||
        controller->state == HA_DOWN)
        return;
    int64_t until_ns = controller->lease_until_ns;
    if (until_ns <= ha_mono(controller))
        until_ns = ha_mono(controller) + PATIENCE_NS;
    call_drop(&controller->keeper);
    call_lease(controller, true, ASK_NOTHING, CALL_KEEP_ALIVE, controller->lease, until_ns);
}

void lead_kept(struct ha_controller *controller, int rc, const struct ha_message *answer)
{
    if (answer && answer->lease != controller->lease)
        return;
    if (rc == 0)
        lease_lasts(controller, answer->ttl_ns, controller->keeper.asked_ns);
    else if (rc == ERROR_NOT_FOUND)
        controller->lease_until_ns = 0;
    if (rc != ERROR_NOT_FOUND)
        renew_later(controller);
    if (rc < 0)
        ha_after(controller->world, 0, HA_NEWS, controller->index, controller->life, 0);
}

/* --- looking ---------------------------------------------------------------------------------- */

static void look_later(struct ha_controller *controller, int64_t delay_ns)
{
    ha_after(controller->world, delay_ns, HA_LOOK, controller->index, controller->life,
             ++controller->look_number);
}

static void look(struct ha_controller *controller)
{
    struct sim_txn *txn = sim_txn_new();
    sim_txn_get(txn, true, SIM_HEAD);
    sim_txn_get(txn, true, SIM_LEADER);
    sim_txn_get(txn, true, SIM_STEP_DOWN);
    controller->something_new = false;
    controller->announce_tried = false;
    call_txn(controller, ASK_LOOK, txn, ha_mono(controller) + PATIENCE_NS, false);
}

/* Takes the head from an answer. Returns false, and fails the world, if the log has become shorter. */
static bool take_head(struct ha_controller *controller, const struct ha_message *answer)
{
    const struct sim_pair *pair = sim_pair_find(&answer->pairs, SIM_HEAD, 0);
    struct sim_head head = {0};
    if (pair)
        memcpy(&head, pair->value.data, sizeof(head));
    if (head.last < controller->head.last)
        ha_fail(controller->world, TORTURE_SAFETY, "c-%u: the log has gone back from record %llu to %llu",
                controller->index + 1, (unsigned long long)controller->head.last,
                (unsigned long long)head.last);
    controller->head = head;
    controller->head_mod = pair ? pair->mod : 0;
    return !ha_failed(controller->world);
}

static void take_seen(struct ha_controller *controller, const struct ha_message *answer)
{
    const struct sim_pair *leader = sim_pair_find(&answer->pairs, SIM_LEADER, 0);
    const struct sim_pair *step_down = sim_pair_find(&answer->pairs, SIM_STEP_DOWN, 0);
    controller->seen = (struct ha_seen){0};
    if (!leader)
        return;
    controller->seen.leader_term = leader->mod;
    controller->seen.leader_lease = leader->lease;
    memcpy(&controller->seen.leader, leader->value.data, sizeof(controller->seen.leader));
    if (step_down)
        memcpy(&controller->seen.step_down_term, step_down->value.data, sizeof(int64_t));
}

/* --- the log ---------------------------------------------------------------------------------- */

static void followed(struct ha_controller *controller);

/* Continues to read the log up to the known head. */
static void catch_up(struct ha_controller *controller)
{
    struct ha_world *world = controller->world;
    bool fresh = !controller->core;
    struct sim_txn *txn = sim_txn_new();
    if (fresh && controller->head.base == 0 && ha_chance(world, 500000))
        controller->core = core_new();
    if (!controller->core || core_seq(controller->core) < controller->head.base) {
        if (!fresh)
            ha_reach(world, HA_LOADED);
        sim_txn_get_last(txn, SIM_SNAPSHOT);
        call_txn(controller, ASK_SNAPSHOT, txn, ha_mono(controller) + PATIENCE_NS, false);
    } else if (core_seq(controller->core) < controller->head.last &&
               !(controller->term && world->options.plant == PLANT_SKIP_CATCH_UP)) {
        sim_txn_get_from(txn, SIM_GROUP, ha_group_key(core_seq(controller->core) + 1, 0));
        call_txn(controller, ASK_RECORDS, txn, ha_mono(controller) + PATIENCE_NS, false);
    } else {
        sim_txn_unref(txn);
        if (controller->term)
            ha_leads(controller);
        else
            followed(controller);
    }
}

/* Returns whether this release reads the log's level. One that does not refuses the log, and takes no part
 * until it is replaced. */
static bool reads_level(struct ha_controller *controller)
{
    if (!controller->old || core_level(controller->core) == 0)
        return true;
    controller->old = false;
    ha_end(controller, NS_PER_SECOND, "does not read the log's level, and is exchanged");
    return false;
}

static void on_snapshot(struct ha_controller *controller, const struct ha_message *answer)
{
    struct error error = {0};
    core_free(controller->core);
    controller->core = core_new();
    if (answer->pairs.len > 0 &&
        core_snapshot_read(controller->core, buf_str(&answer->pairs.items[0].value), &error) < 0)
        ha_fail(controller->world, TORTURE_REPLAY, "c-%u: a snapshot cannot be read: %s",
                controller->index + 1, error.text);
    else if (!reads_level(controller))
        return;
    else if (core_seq(controller->core) < controller->head.base)
        look(controller); /* a newer one exists by now, or the next look finds the error */
    else
        catch_up(controller);
}

static void on_records(struct ha_controller *controller, const struct ha_message *answer)
{
    if (ha_apply_groups(controller, &answer->pairs)) {
        controller->missing = 0;
        if (!ha_failed(controller->world) && reads_level(controller))
            catch_up(controller);
        return;
    }
    uint64_t missing = core_seq(controller->core) + 1;
    if (controller->missing == missing)
        ha_fail(controller->world, TORTURE_SAFETY, "c-%u: the log: record %llu is missing, or not whole",
                controller->index + 1, (unsigned long long)missing);
    controller->missing = missing; /* trimmed meanwhile, unless something is wrong */
    look(controller);
}

/* --- taking the lead -------------------------------------------------------------------------- */

/* Removes groups after the known head that were begun and never finished. The head is compared too, because a
 * late transaction would otherwise remove newer records. */
static void txn_drop_left_overs(struct ha_controller *controller, struct sim_txn *txn)
{
    if (controller->world->options.plant != PLANT_LATE_CLEANING)
        sim_txn_if(txn, SIM_HEAD, controller->head_mod);
    sim_txn_delete(txn, SIM_GROUP, ha_group_key(controller->head.last + 1, 0), UINT64_MAX - 1);
}

static void txn_put_leader(struct ha_controller *controller, struct sim_txn *txn,
                           const struct sim_leader *leader, int64_t lease)
{
    sim_txn_put(txn, SIM_LEADER, 0, (struct str){(const char *)leader, sizeof(*leader)}, lease);
    sim_txn_delete(txn, SIM_STEP_DOWN, 0, 0);
    txn_drop_left_overs(controller, txn);
}

/* Returns the mod revision of the leader key to replace, or 0 for none. */
static int64_t instead_of(const struct ha_controller *controller)
{
    bool over = controller->world->options.plant == PLANT_REVOKE_LATER;
    return over ? controller->seen.leader_term : 0;
}

/* Tries to take the lead by putting the leader key. */
static void take_lead(struct ha_controller *controller)
{
    struct sim_leader leader = {.controller = controller->index, .life = controller->life};
    struct sim_txn *txn = sim_txn_new();
    CHECK(!controller->term);
    sim_txn_if(txn, SIM_LEADER, instead_of(controller));
    txn_put_leader(controller, txn, &leader, controller->lease);
    sim_txn_get(txn, false, SIM_HEAD);
    sim_txn_get(txn, false, SIM_LEADER);
    call_txn(controller, ASK_LEAD, txn, controller->lease_until_ns, false);
}

/* Handles that this controller has the leader key and knows the log's end. */
static void has_lead(struct ha_controller *controller, int64_t term)
{
    struct ha_world *world = controller->world;
    controller->term = term;
    ha_reach(world, HA_TAKE_OVER);
    ha_trace(world, "c-%u: has the leader key, term %lld, up to record %llu", controller->index + 1,
             (long long)term, (unsigned long long)controller->head.last);
    if (!world->healing && ha_chance(world, world->swarm.taker_ppm))
        ha_end(controller, ha_draw_about(world, 2 * world->swarm.ttl_ns), "dies with the leader key");
    else
        catch_up(controller);
}

static void on_lead(struct ha_controller *controller, const struct ha_message *answer)
{
    if (answer->held) {
        has_lead(controller, answer->revision);
        return;
    }
    const struct sim_pair *leader = sim_pair_find(&answer->pairs, SIM_LEADER, 0);
    if (!take_head(controller, answer))
        return;
    if (leader && leader->lease == controller->lease) /* by an earlier attempt of this controller */
        has_lead(controller, leader->mod);
    else if ((leader ? leader->mod : 0) == instead_of(controller))
        take_lead(controller); /* the log had grown */
    else
        look_later(controller, LOOK_NS); /* another controller was faster: its key will be noticed */
}

/* --- following -------------------------------------------------------------------------------- */

static void announce(struct ha_controller *controller)
{
    struct sim_replica replica = {.controller = controller->index,
                                  .reads = controller->old ? 0 : this_release.level,
                                  .level = core_level(controller->core),
                                  .life = controller->life};
    struct sim_txn *txn = sim_txn_new();
    controller->announce_tried = true;
    controller->announced_level = replica.level;
    sim_txn_put(txn, SIM_REPLICA, (uint64_t)controller->lease,
                (struct str){(const char *)&replica, sizeof(replica)}, controller->lease);
    call_txn(controller, ASK_ANNOUNCE, txn, ha_mono(controller) + PATIENCE_NS, false);
}

static bool announcement_is_due(const struct ha_controller *controller)
{
    return !controller->announce_tried &&
           (!controller->announced || controller->announced_level != core_level(controller->core));
}

/* Revokes the lease of a leader whose process has ended, which removes its key. Only then is the lead free:
 * if that controller lives after all, its keeper learns of it, whatever happens to this one. */
static void revoke_lead(struct ha_controller *controller)
{
    ha_trace(controller->world, "c-%u: ends the leadership of term %lld", controller->index + 1,
             (long long)controller->seen.leader_term);
    controller->dead_term = 0;
    if (controller->world->options.plant == PLANT_REVOKE_LATER)
        take_lead(controller);
    else
        call_lease(controller, false, ASK_REVOKE, CALL_REVOKE, controller->seen.leader_lease,
                   controller->lease_until_ns);
}

/* Decides the next action of a standby that has applied the log up to the known head. */
static void followed(struct ha_controller *controller)
{
    controller->state = HA_FOLLOWS;
    if (!lease_runs(controller))
        lease_ask(controller);
    else if (announcement_is_due(controller))
        announce(controller);
    else if (!controller->seen.leader_term)
        take_lead(controller);
    /* handed over, or put by an unanswered attempt */
    else if (controller->seen.leader_lease == controller->lease)
        has_lead(controller, controller->seen.leader_term);
    else if (controller->dead_term == controller->seen.leader_term)
        revoke_lead(controller);
    else if (controller->something_new)
        look(controller);
    else
        look_later(controller, LOOK_NS);
}

/* --- the leader's looks ----------------------------------------------------------------------- */

static bool census_is_due(const struct ha_controller *controller)
{
    return driver_is_open(controller->driver) && core_level(controller->core) < this_release.level &&
           ha_mono(controller) >= controller->census_ns;
}

bool lead_look_as_leader(struct ha_controller *controller)
{
    bool news = controller->something_new && ha_mono(controller) >= controller->leader_look_ns &&
                controller->world->options.plant != PLANT_OVERSTAY;
    if (!news && !census_is_due(controller))
        return false;
    controller->leader_look_ns = ha_mono(controller) + LEADER_LOOK_NS;
    look(controller);
    return true;
}

/* Gives the lead to the successor, or to any controller that takes it. */
static void resign(struct ha_controller *controller)
{
    struct sim_txn *txn = ha_leader_txn(controller);
    if (controller->successor_lease)
        txn_put_leader(controller, txn, &controller->successor, controller->successor_lease);
    else
        sim_txn_delete(txn, SIM_LEADER, 0, 0);
    sim_txn_get(txn, false, SIM_LEADER);
    call_txn(controller, ASK_RESIGN, txn, 0, true);
}

bool lead_resign(struct ha_controller *controller)
{
    if (!controller->resigns)
        return false;
    if (controller->succession) {
        resign(controller);
        return true;
    }
    struct sim_txn *txn = sim_txn_new();
    sim_txn_get_from(txn, SIM_REPLICA, 0);
    call_txn(controller, ASK_SUCCESSOR, txn, ha_mono(controller) + PATIENCE_NS, false);
    return true;
}

/* Chooses the first other live controller that reads the log's level as the successor. */
static void on_successors(struct ha_controller *controller, const struct ha_message *answer)
{
    for (size_t i = 0; i < answer->pairs.len && !controller->successor_lease; i++) {
        struct sim_replica replica;
        memcpy(&replica, answer->pairs.items[i].value.data, sizeof(replica));
        if (replica.controller == controller->index || replica.reads < core_level(controller->core))
            continue;
        controller->successor_lease = answer->pairs.items[i].lease;
        controller->successor = (struct sim_leader){.controller = replica.controller, .life = replica.life};
    }
}

static void on_resigned(struct ha_controller *controller, int rc, const struct ha_message *answer)
{
    /* the successor has ended: resign without one */
    if (rc == ERROR_NOT_FOUND && controller->successor_lease) {
        controller->successor_lease = 0;
        resign(controller);
        return;
    }
    const struct sim_pair *leader = rc == 0 ? sim_pair_find(&answer->pairs, SIM_LEADER, 0) : NULL;
    bool ours = leader && !(controller->successor_lease && leader->lease == controller->successor_lease);
    bool gone = rc == 0 && (answer->held || !ours);
    if (gone)
        ha_reach(controller->world, controller->successor_lease ? HA_HANDED_OVER : HA_RESIGNED);
    ha_end(controller, controller->ends ? NS_PER_SECOND : 10 * NS_PER_MS,
           gone ? "has handed over" : "could not hand over");
}

static void on_look_as_leader(struct ha_controller *controller)
{
    struct ha_world *world = controller->world;
    if (controller->seen.leader_term != controller->term) {
        ha_lost(controller, "another one has taken over");
        ha_end(controller, NS_PER_MS * ha_draw(world, 1, 300), "begins anew as a standby");
        return;
    }
    if (controller->seen.step_down_term == controller->term)
        controller->resigns = true;
    else if (announcement_is_due(controller)) {
        announce(controller);
        return;
    } else if (census_is_due(controller)) {
        controller->census_ns = ha_mono(controller) + CENSUS_NS;
        call_lease(controller, false, ASK_LEASES, CALL_LEASES, 0, ha_mono(controller) + PATIENCE_NS);
        return;
    }
    ha_turn_soon(controller);
}

static void on_leases(struct ha_controller *controller, const struct ha_message *answer)
{
    struct sim_txn *txn = sim_txn_new();
    vec_clear(&controller->leases);
    for (size_t i = 0; i < answer->leases.len; i++)
        vec_push(&controller->leases, answer->leases.items[i]);
    controller->leases_ns = answer->revision;
    sim_txn_get_from(txn, SIM_REPLICA, 0);
    call_txn(controller, ASK_REPLICAS, txn, ha_mono(controller) + PATIENCE_NS, false);
}

/* Raises the log to the level that all replicas read, once each lease has an announcement. */
static void on_replicas(struct ha_controller *controller, const struct ha_message *answer)
{
    struct ha_world *world = controller->world;
    uint32_t reads = this_release.level;
    for (size_t i = 0; i < controller->leases.len; i++)
        if (!sim_pair_find(&answer->pairs, SIM_REPLICA, (uint64_t)controller->leases.items[i]))
            return;
    for (size_t i = 0; i < answer->pairs.len; i++) {
        struct sim_replica replica;
        memcpy(&replica, answer->pairs.items[i].value.data, sizeof(replica));
        reads = replica.reads < reads ? replica.reads : reads;
    }
    if (answer->pairs.len == 0 || reads <= core_level(controller->core))
        return;
    for (uint32_t i = 0; i < world->swarm.controllers; i++) {
        const struct ha_controller *other = &world->controllers[i];
        if (other->old && other->announced && other->announced_ns < controller->leases_ns &&
            etcd_sim_has_lease(world, other->lease))
            ha_fail(world, TORTURE_SAFETY, "c-%u opens level %u, which c-%u does not read",
                    controller->index + 1, reads, i + 1);
    }
    driver_raise_level(controller->driver, reads);
}

/* --- answers ---------------------------------------------------------------------------------- */

static void on_look(struct ha_controller *controller, const struct ha_message *answer)
{
    if (!take_head(controller, answer))
        return;
    take_seen(controller, answer);
    if (controller->state == HA_LEADS)
        on_look_as_leader(controller);
    else
        catch_up(controller);
}

static void on_grant(struct ha_controller *controller, int rc, const struct ha_message *answer)
{
    if (rc == ERROR_EXISTS) { /* an earlier attempt succeeded: a renewal returns the remaining time */
        call_lease(controller, false, ASK_GRANT, CALL_KEEP_ALIVE, controller->lease,
                   ha_mono(controller) + PATIENCE_NS);
        return;
    }
    if (rc < 0) {
        ha_end(controller, NS_PER_SECOND, "etcd gives no lease");
        return;
    }
    lease_lasts(controller, answer->ttl_ns, controller->main.asked_ns);
    renew_later(controller);
    look(controller);
}

static void lead_answer_of_leader(struct ha_controller *controller, enum ha_ask ask, int rc,
                                  const struct ha_message *answer)
{
    if (ask == ASK_RESIGN) {
        on_resigned(controller, rc, answer);
    } else if (ask == ASK_LOOK && rc == 0) {
        on_look(controller, answer);
    } else if (ask == ASK_LEASES && rc == 0) {
        on_leases(controller, answer);
    } else {
        if (ask == ASK_REPLICAS && rc == 0)
            on_replicas(controller, answer);
        if (ask == ASK_SUCCESSOR && rc == 0)
            on_successors(controller, answer);
        controller->succession |= ask == ASK_SUCCESSOR;
        if (ask == ASK_ANNOUNCE)
            controller->announced = rc == 0;
        ha_turn_soon(controller);
    }
}

/* Handles a failed call of a standby: the next look may succeed. */
static void lead_fails(struct ha_controller *controller, enum ha_ask ask, int rc)
{
    if (controller->state == HA_STARTS || rc == ERROR_NOT_FOUND) {
        ha_end(controller, NS_PER_SECOND, "cannot read the log");
        return;
    }
    look_later(controller, LOOK_NS);
}

void lead_answered(struct ha_controller *controller, enum ha_ask ask, int rc, const struct ha_message *answer)
{
    if (controller->state == HA_LEADS) {
        lead_answer_of_leader(controller, ask, rc, answer);
    } else if (ask == ASK_GRANT) {
        on_grant(controller, rc, answer);
    } else if (ask == ASK_ANNOUNCE) {
        controller->announced = rc == 0;
        followed(controller);
    } else if (rc < 0) {
        lead_fails(controller, ask, rc);
    } else if (ask == ASK_LOOK) {
        on_look(controller, answer);
    } else if (ask == ASK_SNAPSHOT) {
        on_snapshot(controller, answer);
    } else if (ask == ASK_RECORDS) {
        on_records(controller, answer);
    } else if (ask == ASK_REVOKE) {
        take_lead(controller);
    } else if (ask == ASK_LEAD) {
        on_lead(controller, answer);
    } else {
        CHECK_UNREACHABLE();
    }
}

/* --- events ----------------------------------------------------------------------------------- */

void lead_begin(struct ha_controller *controller)
{
    controller->state = HA_STARTS;
    lease_ask(controller);
}

/* Makes the main loop read the control keys at once, or when it is free. */
static void look_at_news(struct ha_controller *controller)
{
    controller->something_new = true;
    if (controller->state == HA_FOLLOWS && !controller->main.id)
        look(controller);
    else if (controller->state == HA_LEADS)
        ha_turn_by(controller, controller->leader_look_ns);
}

void lead_news(struct ha_world *world, const struct ha_event *event)
{
    struct ha_controller *controller = &world->controllers[event->who];
    if (event->id == controller->life)
        look_at_news(controller);
}

void lead_look(struct ha_world *world, const struct ha_event *event)
{
    struct ha_controller *controller = &world->controllers[event->who];
    if (event->id == controller->life && event->number == controller->look_number)
        look_at_news(controller);
}

void lead_death(struct ha_world *world, const struct ha_event *event)
{
    struct ha_controller *controller = &world->controllers[event->who];
    if (event->id != controller->life || controller->state != HA_FOLLOWS)
        return;
    controller->dead_term = (int64_t)event->number;
    look_at_news(controller);
}
