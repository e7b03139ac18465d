/* etcd.c - a model of etcd: one linearizable store behind several members.
 *
 * The model has these features of etcd: a revision that grows with each write; the mod revision of each key;
 * transactions that compare mod revisions and are carried out whole; leases that last at least as long as
 * promised, and remove their keys when they end; watchers that learn of a change some time later, or not at
 * all.
 *
 * A member answers while it reaches another one, because two of three are a majority. A request to a member
 * without a majority waits there or is lost. A waiting request may be carried out long after its sender has
 * given up. */
#include "sim/ha/world.h"

#define SIM_MEMBER_WAIT_NS (400 * NS_PER_MS)

/* --- transactions ----------------------------------------------------------------------------- */

struct sim_txn *sim_txn_new(void)
{
    struct sim_txn *txn = mem_alloc(sizeof(*txn));
    txn->refs = 1;
    return txn;
}

void sim_txn_unref(struct sim_txn *txn)
{
    if (!txn || --txn->refs > 0)
        return;
    for (size_t i = 0; i < txn->then.len; i++)
        buf_done(&txn->then.items[i].value);
    vec_done(&txn->then);
    vec_done(&txn->otherwise);
    mem_free(txn);
}

void sim_txn_if(struct sim_txn *txn, enum etcd_sim_kind kind, int64_t mod)
{
    CHECK(txn->compare_count < 2);
    txn->compares[txn->compare_count++] = (struct sim_compare){kind, mod};
}

void sim_txn_get(struct sim_txn *txn, bool held, enum etcd_sim_kind kind)
{
    struct sim_op op = {.op = SIM_GET, .kind = kind};
    if (held)
        vec_push(&txn->then, op);
    else
        vec_push(&txn->otherwise, op);
}

void sim_txn_get_from(struct sim_txn *txn, enum etcd_sim_kind kind, uint64_t number)
{
    struct sim_op op = {.op = SIM_GET_FROM, .kind = kind, .number = number};
    vec_push(&txn->then, op);
}

void sim_txn_get_last(struct sim_txn *txn, enum etcd_sim_kind kind)
{
    struct sim_op op = {.op = SIM_GET_LAST, .kind = kind};
    vec_push(&txn->then, op);
}

void sim_txn_put(struct sim_txn *txn, enum etcd_sim_kind kind, uint64_t number, struct str value,
                 int64_t lease)
{
    struct sim_op op = {.op = SIM_PUT, .kind = kind, .number = number, .lease = lease};
    buf_add_str(&op.value, value);
    vec_push(&txn->then, op);
}

void sim_txn_delete(struct sim_txn *txn, enum etcd_sim_kind kind, uint64_t number, uint64_t to)
{
    struct sim_op op = {.op = SIM_DELETE, .kind = kind, .number = number, .to = to};
    vec_push(&txn->then, op);
}

/* --- keys ------------------------------------------------------------------------------------- */

static bool sim_key_below(const struct sim_pair *pair, enum etcd_sim_kind kind, uint64_t number)
{
    return pair->kind < kind || (pair->kind == kind && pair->number < number);
}

/* Returns the index of the key, or of the first one after it. */
static size_t sim_place(const sim_pairs *pairs, enum etcd_sim_kind kind, uint64_t number)
{
    size_t low = 0, high = pairs->len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sim_key_below(&pairs->items[middle], kind, number))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool sim_is_at(const sim_pairs *pairs, size_t at, enum etcd_sim_kind kind, uint64_t number)
{
    return at < pairs->len && pairs->items[at].kind == kind && pairs->items[at].number == number;
}

const struct sim_pair *sim_pair_find(const sim_pairs *pairs, enum etcd_sim_kind kind, uint64_t number)
{
    for (size_t i = 0; i < pairs->len; i++)
        if (pairs->items[i].kind == kind && pairs->items[i].number == number)
            return &pairs->items[i];
    return NULL;
}

static void sim_key_drop(struct sim_etcd *etcd, size_t at)
{
    buf_done(&etcd->pairs.items[at].value);
    vec_remove(&etcd->pairs, at);
}

/* Notifies the watches of a changed control key. Each lags, and some are not notified. */
static void sim_tell(struct ha_world *world)
{
    for (uint32_t i = 0; i < world->swarm.controllers; i++) {
        const struct ha_controller *controller = &world->controllers[i];
        uint32_t member = (uint32_t)ha_draw(world, 0, HA_MEMBERS - 1);
        if (controller->state == HA_DOWN || !ha_passes(world, HA_PLACE_MEMBER + member, i, false) ||
            (!world->healing && ha_chance(world, world->swarm.watch_lose_ppm)))
            continue;
        int64_t lag_ns = world->healing ? 0 : ha_draw_about(world, world->swarm.watch_lag_ns);
        ha_after(world, ha_delay(world) + lag_ns, HA_NEWS, i, controller->life, 0);
    }
}

static void sim_put(struct ha_world *world, const struct sim_op *op)
{
    struct sim_etcd *etcd = &world->etcd;
    size_t at = sim_place(&etcd->pairs, op->kind, op->number);
    if (!sim_is_at(&etcd->pairs, at, op->kind, op->number)) {
        struct sim_pair fresh = {.kind = op->kind, .number = op->number};
        vec_push(&etcd->pairs, fresh);
        memmove(&etcd->pairs.items[at + 1], &etcd->pairs.items[at],
                (etcd->pairs.len - 1 - at) * sizeof(*etcd->pairs.items));
        etcd->pairs.items[at] = fresh;
    }
    struct sim_pair *pair = &etcd->pairs.items[at];
    pair->mod = etcd->revision;
    pair->lease = op->lease;
    buf_clear(&pair->value);
    buf_add_str(&pair->value, buf_str(&op->value));
}

static void sim_answer_pair(struct ha_message *message, const struct sim_pair *pair)
{
    struct sim_pair copy = {
        .kind = pair->kind, .number = pair->number, .mod = pair->mod, .lease = pair->lease};
    buf_add_str(&copy.value, buf_str(&pair->value));
    vec_push(&message->pairs, copy);
}

static void sim_carry_out(struct ha_world *world, struct ha_message *message, const struct sim_op *op)
{
    struct sim_etcd *etcd = &world->etcd;
    size_t at = sim_place(&etcd->pairs, op->kind, op->number);
    size_t end = sim_place(&etcd->pairs, op->kind, op->op == SIM_DELETE ? op->to + 1 : UINT64_MAX);
    switch (op->op) {
    case SIM_GET:
        if (sim_is_at(&etcd->pairs, at, op->kind, op->number))
            sim_answer_pair(message, &etcd->pairs.items[at]);
        break;
    case SIM_GET_FROM:
        for (; at < end; at++)
            sim_answer_pair(message, &etcd->pairs.items[at]);
        break;
    case SIM_GET_LAST:
        if (end > at)
            sim_answer_pair(message, &etcd->pairs.items[end - 1]);
        break;
    case SIM_PUT:
        sim_put(world, op);
        break;
    case SIM_DELETE:
        while (end > at)
            sim_key_drop(etcd, --end);
        break;
    }
}

static bool sim_holds(const struct sim_etcd *etcd, const struct sim_txn *txn)
{
    for (size_t i = 0; i < txn->compare_count; i++) {
        const struct sim_pair *pair = sim_pair_find(&etcd->pairs, txn->compares[i].kind, 0);
        if ((pair ? pair->mod : 0) != txn->compares[i].mod)
            return false;
    }
    return true;
}

static struct sim_lease *sim_lease_find(struct sim_etcd *etcd, int64_t id)
{
    for (size_t i = 0; i < etcd->leases.len; i++)
        if (etcd->leases.items[i].id == id)
            return &etcd->leases.items[i];
    return NULL;
}

bool etcd_sim_has_lease(struct ha_world *world, int64_t id)
{
    return sim_lease_find(&world->etcd, id) != NULL;
}

/* Returns the error with which etcd refuses the operations, or 0. */
static int sim_refusal(struct ha_world *world, const struct sim_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (ops[i].op == SIM_PUT && world->now_ns < world->etcd.full_until_ns)
            return ERROR_NO_SPACE;
        if (ops[i].op == SIM_PUT && ops[i].lease && !sim_lease_find(&world->etcd, ops[i].lease))
            return ERROR_NOT_FOUND;
    }
    return 0;
}

static void sim_txn_run(struct ha_world *world, struct ha_message *message)
{
    struct sim_etcd *etcd = &world->etcd;
    const struct sim_txn *txn = message->txn;
    message->held = sim_holds(etcd, txn);
    const struct sim_op *ops = message->held ? txn->then.items : txn->otherwise.items;
    size_t count = message->held ? txn->then.len : txn->otherwise.len;
    message->rc = sim_refusal(world, ops, count);
    if (message->rc < 0)
        return;
    bool writes = false, control = false;
    for (size_t i = 0; i < count; i++) {
        bool change = ops[i].op == SIM_PUT || ops[i].op == SIM_DELETE;
        writes |= change;
        control |= change && ops[i].kind <= SIM_REPLICA;
    }
    etcd->revision += writes;
    for (size_t i = 0; i < count; i++) {
        if (ops[i].op == SIM_PUT && ops[i].kind == SIM_HEAD)
            ha_oracle_head(world, message, &ops[i]);
        if (ops[i].op == SIM_PUT && ops[i].kind == SIM_REPLICA)
            world->controllers[message->controller].announced_ns = world->now_ns;
        sim_carry_out(world, message, &ops[i]);
    }
    message->revision = etcd->revision;
    if (control)
        sim_tell(world);
    if (!message->held && txn->compare_count > 0 && txn->compares[0].kind == SIM_LEADER &&
        txn->compares[0].mod > 0) {
        const struct sim_pair *leader = sim_pair_find(&etcd->pairs, SIM_LEADER, 0);
        if (!leader || leader->mod != txn->compares[0].mod)
            ha_reach(world, HA_DEPOSED);
    }
}

/* --- leases ----------------------------------------------------------------------------------- */

static void sim_lease_renew(struct ha_world *world, struct sim_lease *lease)
{
    lease->ends_ns = world->now_ns + lease->ttl_ns;
    lease->late_ns =
        !world->healing && ha_chance(world, 300000) ? ha_draw(world, 0, world->swarm.late_lease_ns) : 0;
}

static void sim_lease_arm(struct ha_world *world, const struct sim_lease *lease)
{
    ha_at(world, lease->ends_ns + lease->late_ns, HA_LEASE, 0, (uint64_t)lease->id, 0);
}

/* Ends a lease, and its keys with it. */
static void sim_lease_end(struct ha_world *world, int64_t id)
{
    struct sim_etcd *etcd = &world->etcd;
    bool any = false;
    for (size_t i = etcd->leases.len; i-- > 0;)
        if (etcd->leases.items[i].id == id)
            vec_remove(&etcd->leases, i);
    for (size_t i = etcd->pairs.len; i-- > 0;)
        if (etcd->pairs.items[i].lease == id && id) {
            sim_key_drop(etcd, i);
            any = true;
        }
    etcd->revision += any;
    if (any)
        sim_tell(world);
}

void etcd_sim_lease(struct ha_world *world, const struct ha_event *event)
{
    const struct sim_lease *lease = sim_lease_find(&world->etcd, (int64_t)event->id);
    if (!lease)
        return;
    if (lease->ends_ns + lease->late_ns > world->now_ns) {
        sim_lease_arm(world, lease);
    } else if (world->now_ns < world->etcd.stalled_until_ns) {
        ha_at(world, world->etcd.stalled_until_ns, HA_LEASE, 0, event->id, 0);
    } else {
        if (lease->late_ns > 0)
            ha_reach(world, HA_LATE_LEASE);
        sim_lease_end(world, lease->id);
    }
}

void etcd_sim_elect(struct ha_world *world, int64_t stall_ns)
{
    struct sim_etcd *etcd = &world->etcd;
    etcd->stalled_until_ns = world->now_ns + stall_ns;
    for (size_t i = 0; i < etcd->leases.len; i++)
        etcd->leases.items[i].ends_ns = etcd->stalled_until_ns + etcd->leases.items[i].ttl_ns;
}

static void sim_lease_call(struct ha_world *world, struct ha_message *message)
{
    struct sim_etcd *etcd = &world->etcd;
    struct sim_lease *lease = sim_lease_find(etcd, message->lease);
    if (message->kind == CALL_LEASES) {
        for (size_t i = 0; i < etcd->leases.len; i++)
            vec_push(&message->leases, etcd->leases.items[i].id);
        message->revision = world->now_ns; /* the true time of this list, for the oracle */
    } else if (message->kind == CALL_REVOKE) {
        sim_lease_end(world, message->lease);
    } else if (message->kind == CALL_GRANT && lease) {
        message->rc = ERROR_EXISTS;
    } else if (message->kind == CALL_GRANT) {
        struct sim_lease fresh = {.id = message->lease, .ttl_ns = world->swarm.ttl_ns};
        sim_lease_renew(world, &fresh);
        sim_lease_arm(world, &fresh);
        vec_push(&etcd->leases, fresh);
        message->ttl_ns = fresh.ttl_ns;
    } else if (lease) {
        sim_lease_renew(world, lease);
        message->ttl_ns = lease->ttl_ns;
    } else {
        message->rc = ERROR_NOT_FOUND;
    }
}

/* --- members ---------------------------------------------------------------------------------- */

static bool sim_member_up(const struct ha_world *world, uint32_t member)
{
    return world->now_ns >= world->etcd.down_until_ns[member];
}

/* Returns whether the member and another one reach each other. */
static bool sim_has_majority(struct ha_world *world, uint32_t member)
{
    if (world->now_ns < world->etcd.stalled_until_ns)
        return false;
    for (uint32_t other = 0; other < HA_MEMBERS; other++)
        if (other != member && sim_member_up(world, other) &&
            ha_passes(world, HA_PLACE_MEMBER + member, HA_PLACE_MEMBER + other, false) &&
            ha_passes(world, HA_PLACE_MEMBER + other, HA_PLACE_MEMBER + member, false))
            return true;
    return false;
}

/* Sends the answer back, unless it is lost. */
static void sim_answer(struct ha_world *world, struct ha_message *message)
{
    if (!ha_passes(world, HA_PLACE_MEMBER + message->member, message->controller, true)) {
        if (message->rc == 0 && message->kind == CALL_TXN && message->held)
            ha_reach(world, HA_UNKNOWN);
        ha_message_free(message);
        return;
    }
    struct ha_event *event =
        ha_after(world, ha_delay(world), HA_ANSWER, message->controller, message->call, message->keeper);
    event->message = message;
}

void etcd_sim_request(struct ha_world *world, struct ha_event *event)
{
    struct ha_message *message = event->message;
    event->message = NULL;
    if (!sim_member_up(world, message->member)) {
        message->rc = ERROR_UNAVAILABLE; /* its host refuses the connection */
        sim_answer(world, message);
        return;
    }
    if (!sim_has_majority(world, message->member)) {
        if (ha_chance(world, 300000)) {
            ha_message_free(message);
            return;
        }
        int64_t wait_ns = ha_draw(world, NS_PER_MS, SIM_MEMBER_WAIT_NS);
        ha_after(world, wait_ns, HA_REQUEST, event->who, 0, 0)->message = message;
        return;
    }
    if (message->kind == CALL_TXN)
        sim_txn_run(world, message);
    else
        sim_lease_call(world, message);
    sim_answer(world, message);
}

void etcd_sim_done(struct sim_etcd *etcd)
{
    while (etcd->pairs.len)
        sim_key_drop(etcd, etcd->pairs.len - 1);
    vec_done(&etcd->pairs);
    vec_done(&etcd->leases);
}
