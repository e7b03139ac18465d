/* Batches of cross-connects on a switch of a SAI library. Refused members do not stop the others: a bulk call
 * gives each member a status, and members that it did not execute are sent again. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "host/fabric/line.h"
#include "host/fabric/sai_session.h"

enum { SETTLE_NAP_MS = 2, STATUS_UNTOUCHED = 1 }; /* SAI has no positive status */

/* Members that are sent together. */
struct order {
    bool add;
    uint32_t count;
    struct phx_crossconnect pairs[2 * PHX_SWITCH_PORTS_MAX];
    sai_id ids[2 * PHX_SWITCH_PORTS_MAX]; /* cross-connects to remove, or that were made */
    sai_status statuses[2 * PHX_SWITCH_PORTS_MAX];
    bool pending[2 * PHX_SWITCH_PORTS_MAX];
};

struct bulk {
    struct sai_attribute attributes[2 * PHX_SWITCH_PORTS_MAX][2];
    const struct sai_attribute *lists[2 * PHX_SWITCH_PORTS_MAX];
    uint32_t counts[2 * PHX_SWITCH_PORTS_MAX], members[2 * PHX_SWITCH_PORTS_MAX];
    sai_id ids[2 * PHX_SWITCH_PORTS_MAX];
    sai_status statuses[2 * PHX_SWITCH_PORTS_MAX];
};

static const char *call_of(const struct order *order, bool bulk)
{
    static const char *const names[2][2] = {{"remove_ocs_cross_connect", "remove_ocs_cross_connects"},
                                            {"create_ocs_cross_connect", "create_ocs_cross_connects"}};
    return names[order->add][bulk];
}

static void put_member(struct order *order, struct phx_crossconnect pair, sai_id id)
{
    order->pairs[order->count] = pair;
    order->ids[order->count] = id;
    order->pending[order->count++] = true;
}

static void describe_pair(const struct phx_switch *sw, struct phx_crossconnect pair,
                          struct sai_attribute attributes[2])
{
    attributes[0] = (struct sai_attribute){.number = SAI_CROSS_CONNECT_A, .id = sw->ports[pair.a]};
    attributes[1] = (struct sai_attribute){.number = SAI_CROSS_CONNECT_B, .id = sw->ports[pair.b]};
}

static bool is_unsupported(sai_status status)
{
    return status == SAI_NOT_SUPPORTED || status == SAI_NOT_IMPLEMENTED;
}

/* Sends the pending members with one call. *ret_decided is the number of members that now have a final
 * status. */
static int send_bulk(struct phx_switch *sw, struct order *order, struct bulk *bulk, uint32_t *ret_decided,
                     struct phx_switch_error *error)
{
    const struct sai_ocs_table *ocs = sw->device->ocs;
    uint32_t count = 0, decided = 0;
    for (uint32_t i = 0; i < order->count; i++) {
        if (!order->pending[i])
            continue;
        describe_pair(sw, order->pairs[i], bulk->attributes[count]);
        bulk->lists[count] = bulk->attributes[count];
        bulk->counts[count] = 2;
        bulk->ids[count] = order->ids[i];
        bulk->statuses[count] = STATUS_UNTOUCHED;
        bulk->members[count++] = i;
    }
    sai_status whole = order->add
                           ? ocs->create_cross_connects(sw->device->id, count, bulk->counts, bulk->lists,
                                                        SAI_BULK_GO_ON, bulk->ids, bulk->statuses)
                           : ocs->remove_cross_connects(count, bulk->ids, SAI_BULK_GO_ON, bulk->statuses);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t member = bulk->members[i];
        sai_status status = bulk->statuses[i] == STATUS_UNTOUCHED ? whole : bulk->statuses[i];
        bool nonsense = (bulk->statuses[i] == STATUS_UNTOUCHED && whole == SAI_OK) ||
                        (order->add && status == SAI_OK && !bulk->ids[i]);
        if (nonsense)
            return sai_garbled(error, sw->device, call_of(order, true),
                               "the library reports success without a status or an id for member %u", i);
        order->statuses[member] = status;
        order->ids[member] = bulk->ids[i];
        order->pending[member] = status == SAI_NOT_EXECUTED || is_unsupported(status);
        decided += !order->pending[member];
    }
    *ret_decided = decided;
    return PHX_SWITCH_OK;
}

static int send_single(struct phx_switch *sw, struct order *order, uint32_t member,
                       struct phx_switch_error *error)
{
    const struct sai_ocs_table *ocs = sw->device->ocs;
    struct sai_attribute attributes[2];
    describe_pair(sw, order->pairs[member], attributes);
    sai_id *id = &order->ids[member];
    sai_status status = order->add ? ocs->create_cross_connect(id, sw->device->id, 2, attributes)
                                   : ocs->remove_cross_connect(*id);
    if (order->add && status == SAI_OK && !*id)
        return sai_garbled(error, sw->device, call_of(order, false), "the library returned no cross-connect");
    order->statuses[member] = status;
    order->pending[member] = false;
    return PHX_SWITCH_OK;
}

/* Gives every member a status: by bulk calls while they make progress, then one by one. */
static int send_order(struct phx_switch *sw, struct order *order, struct phx_switch_error *error)
{
    const struct sai_ocs_table *ocs = sw->device->ocs;
    bool has_bulk = order->add ? ocs->create_cross_connects != NULL : ocs->remove_cross_connects != NULL;
    bool has_single = order->add ? ocs->create_cross_connect != NULL : ocs->remove_cross_connect != NULL;
    struct bulk *bulk = mem_alloc(sizeof *bulk);
    uint32_t left = order->count, decided = 1;
    int rc = PHX_SWITCH_OK;
    for (; rc == PHX_SWITCH_OK && has_bulk && left && decided; left -= decided)
        rc = send_bulk(sw, order, bulk, &decided, error);
    for (uint32_t i = 0; rc == PHX_SWITCH_OK && has_single && i < order->count; i++)
        if (order->pending[i])
            rc = send_single(sw, order, i, error);
    mem_free(bulk);
    return rc;
}

/* Keeps the first refusal of a batch. */
static void keep_refusal(const struct phx_switch *sw, const struct order *order, uint32_t member,
                         struct phx_switch_error *refusal)
{
    char word[SAI_WORD_MAX];
    if (refusal->message[0])
        return;
    sai_pair_word(sw, order->pairs[member], word);
    sai_fail(refusal, sw->device, call_of(order, true), word, order->statuses[member]);
}

/* Returns the driver's status of a member that SAI has answered. */
static int status_of(const struct order *order, uint32_t member)
{
    int status = sai_meaning(order->statuses[member]);
    if (order->add && status == PHX_SWITCH_ABSENT) /* SAI no longer knows the port */
        status = PHX_SWITCH_INVALID;
    return status;
}

/* --- mirrors ---------------------------------------------------------------------------------------- */

static int64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

enum pair_state { PAIR_MOVES, PAIR_SETTLED, PAIR_FAILED };

/* Reads the state of a pair. A blocked port without a closed shutter has not begun to move. */
static int read_pair(struct phx_switch *sw, struct phx_crossconnect pair, enum pair_state *ret_state,
                     struct phx_switch_error *error)
{
    const uint32_t ports[2] = {pair.a, pair.b};
    enum pair_state state = PAIR_SETTLED;
    for (int i = 0; i < 2; i++) {
        struct sai_port_view view;
        int rc = sai_read_port(sw, ports[i], &view, error);
        if (rc < 0)
            return rc;
        if (view.status == SAI_PORT_FAILED)
            state = PAIR_FAILED;
        else if (view.status != SAI_PORT_TUNED && !view.closed && state == PAIR_SETTLED)
            state = PAIR_MOVES;
    }
    *ret_state = state;
    return PHX_SWITCH_OK;
}

/* Waits until a pair has settled or the time has expired. Leaves the library while it waits. */
static int wait_for_pair(struct phx_switch *sw, struct phx_crossconnect pair, int64_t until_ms,
                         enum pair_state *ret_state, struct phx_switch_error *error)
{
    for (;;) {
        int rc = read_pair(sw, pair, ret_state, error);
        if (rc < 0 || *ret_state != PAIR_MOVES || clock_ms() >= until_ms)
            return rc;
        sai_end(sw);
        poll(NULL, 0, SETTLE_NAP_MS);
        rc = sai_begin(sw, error);
        if (rc < 0)
            return rc;
    }
}

/* Waits for the mirrors of the new cross-connects. Those that do not settle go to `back`, to be removed
 * again, so that the switch then lists what the statuses say. */
static int wait_for_mirrors(struct phx_switch *sw, struct order *made, struct order *back,
                            struct phx_switch_error *refusal)
{
    int64_t until_ms = clock_ms() + sw->timeout_ms;
    char word[SAI_WORD_MAX];
    for (uint32_t i = 0; i < made->count; i++) {
        enum pair_state state;
        if (made->statuses[i] != SAI_OK)
            continue;
        int rc = wait_for_pair(sw, made->pairs[i], until_ms, &state, refusal);
        if (rc < 0)
            return rc;
        if (state == PAIR_SETTLED)
            continue;
        put_member(back, made->pairs[i], made->ids[i]);
        made->statuses[i] = SAI_FAILURE;
        if (refusal->message[0])
            continue;
        sai_pair_word(sw, made->pairs[i], word);
        switch_fail(refusal, PHX_SWITCH_FAILED, "%.60s: %s: %s", sai_file(sw->device), word,
                    state == PAIR_FAILED ? "a port failed" : "the mirrors did not settle");
    }
    return PHX_SWITCH_OK;
}

/* --- batches ---------------------------------------------------------------------------------------- */

struct work {
    struct sai_joined joined;
    struct peers before;             /* state before an addition */
    struct order parted, made, back; /* what STEAL removes; what is added or removed; what did not settle */
    uint32_t members[PHX_SWITCH_PORTS_MAX]; /* index in the batch, by member of `made` */
    struct phx_switch_error refusal;
};

static int send_and_keep(struct phx_switch *sw, struct order *order, struct phx_switch_error *refusal)
{
    int rc = order->count ? send_order(sw, order, refusal) : PHX_SWITCH_OK;
    for (uint32_t i = 0; rc == PHX_SWITCH_OK && i < order->count; i++)
        if (order->statuses[i] != SAI_OK)
            keep_refusal(sw, order, i, refusal);
    return rc;
}

/* Fills the orders of an addition. A member from which a later member of the batch steals a port is not sent,
 * because it would not last. */
static void plan_addition(struct phx_switch *sw, struct work *work, const struct phx_crossconnect *pairs,
                          uint32_t count, enum phx_batch_mode mode, int *statuses)
{
    struct peers *now = &work->joined.peers;
    struct phx_crossconnect *stolen = mem_alloc(2 * PHX_SWITCH_PORTS_MAX * sizeof *stolen);
    const struct peers *before = &work->before;
    uint32_t stolen_count = batch_sort_out(sw->size, now, pairs, count, mode, statuses, stolen);
    work->made.add = true;
    for (uint32_t i = 0; i < stolen_count; i++) {
        struct phx_crossconnect pair = stolen[i];
        if (before->of[pair.a] == pair.b && now->of[pair.a] != pair.b)
            put_member(&work->parted, pair, work->joined.cross_connects[pair.a]);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (statuses[i] != PHX_SWITCH_NOT_TRIED)
            continue;
        if (now->of[pairs[i].a] != pairs[i].b) {
            statuses[i] = PHX_SWITCH_FAILED;
        } else if (before->of[pairs[i].a] == pairs[i].b) {
            statuses[i] = PHX_SWITCH_OK;
        } else {
            work->members[work->made.count] = i;
            put_member(&work->made, pairs[i], 0);
        }
    }
    mem_free(stolen);
}

static int carry_out(struct phx_switch *sw, struct work *work, int *statuses)
{
    int rc = send_and_keep(sw, &work->parted, &work->refusal);
    if (rc == PHX_SWITCH_OK)
        rc = send_and_keep(sw, &work->made, &work->refusal);
    if (rc == PHX_SWITCH_OK && work->made.add)
        rc = wait_for_mirrors(sw, &work->made, &work->back, &work->refusal);
    if (rc == PHX_SWITCH_OK)
        rc = send_and_keep(sw, &work->back, &work->refusal);
    for (uint32_t i = 0; i < work->made.count; i++)
        statuses[work->members[i]] = rc < 0 ? rc : status_of(&work->made, i);
    return rc;
}

int sai_add(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count,
            enum phx_batch_mode mode, int *ret_statuses, struct phx_switch_error *error)
{
    if (batch_check_count(count, ret_statuses, error) < 0)
        return PHX_SWITCH_INVALID;
    struct work *work = mem_alloc(sizeof *work);
    int rc = sai_begin(sw, &work->refusal);
    if (rc == PHX_SWITCH_OK)
        rc = sai_read_joined(sw, &work->joined, &work->refusal);
    if (rc < 0) {
        batch_all_statuses(ret_statuses, count, rc);
    } else {
        work->before = work->joined.peers;
        plan_addition(sw, work, pairs, count, mode, ret_statuses);
        rc = carry_out(sw, work, ret_statuses);
        batch_end_repeats(&work->before, pairs, count, ret_statuses);
    }
    sai_end(sw);
    if (error)
        *error = work->refusal;
    mem_free(work);
    return rc;
}

int sai_remove(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count, int *ret_statuses,
               struct phx_switch_error *error)
{
    if (batch_check_count(count, ret_statuses, error) < 0)
        return PHX_SWITCH_INVALID;
    struct work *work = mem_alloc(sizeof *work);
    int rc = sai_begin(sw, &work->refusal);
    if (rc == PHX_SWITCH_OK)
        rc = sai_read_joined(sw, &work->joined, &work->refusal);
    if (rc < 0) {
        batch_all_statuses(ret_statuses, count, rc);
    } else {
        batch_sort_out_removal(sw->size, &work->joined.peers, pairs, count, ret_statuses);
        for (uint32_t i = 0; i < count; i++)
            if (ret_statuses[i] == PHX_SWITCH_NOT_TRIED) {
                work->members[work->made.count] = i;
                put_member(&work->made, pairs[i], work->joined.cross_connects[pairs[i].a]);
            }
        rc = carry_out(sw, work, ret_statuses);
    }
    sai_end(sw);
    if (error)
        *error = work->refusal;
    mem_free(work);
    return rc;
}
