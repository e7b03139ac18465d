/* append.c - the log port on the model of etcd: the leader's appends, by the rules of
 * host/store/etcd/append.c.
 *
 * A group is cut into parts. Each part is put by a transaction that compares leader key and head; the last
 * part is put together with the new head. If the comparisons fail, the head in the answer decides the
 * outcome. */
#include "sim/ha/world.h"

#include "base/hash.h"

enum { GROUP_PART_BITS = 12 };

/* The headers of a group and of each of its records. */
struct group_front {
    uint64_t first, bytes;
    uint32_t count, pad;
};
struct record_front {
    int64_t stamp_ns;
    uint64_t bytes;
};

uint64_t ha_group_key(uint64_t first, uint64_t part)
{
    return first << GROUP_PART_BITS | part;
}

uint64_t ha_record_hash(const struct drive_record *record)
{
    uint64_t seed = record->seq ^ hash_mix((uint64_t)record->stamp_ns);
    return hash_words(seed, record->bytes.data, record->bytes.len);
}

struct sim_txn *ha_leader_txn(const struct ha_controller *controller)
{
    struct sim_txn *txn = sim_txn_new();
    if (controller->world->options.plant != PLANT_APPEND_UNGUARDED)
        sim_txn_if(txn, SIM_LEADER, controller->term);
    return txn;
}

static struct str head_bytes(const struct sim_head *head)
{
    return (struct str){(const char *)head, sizeof(*head)};
}

/* --- reading groups --------------------------------------------------------------------------- */

/* Joins the parts of the group that begins with record `first`. Returns false if a part is missing. */
static bool group_join(const sim_pairs *pairs, uint64_t first, size_t *next, struct buf *bytes)
{
    struct group_front front = {.bytes = UINT64_MAX};
    for (uint64_t part = 0; bytes->len < front.bytes; part++, (*next)++) {
        if (*next >= pairs->len || pairs->items[*next].number != ha_group_key(first, part))
            return false;
        buf_add_str(bytes, buf_str(&pairs->items[*next].value));
        CHECK(bytes->len >= sizeof(front));
        memcpy(&front, bytes->data, sizeof(front));
    }
    CHECK(front.first == first && front.bytes == bytes->len);
    return true;
}

bool ha_group_visit(const sim_pairs *pairs, uint64_t first, size_t *ret_next,
                    void (*visit)(void *context, const struct drive_record *record), void *context)
{
    struct buf bytes BUF_CLEANUP = {0};
    struct group_front front;
    struct record_front record;
    if (!group_join(pairs, first, ret_next, &bytes))
        return false;
    memcpy(&front, bytes.data, sizeof(front));
    size_t at = sizeof(front);
    for (uint32_t i = 0; i < front.count; i++) {
        memcpy(&record, bytes.data + at, sizeof(record));
        at += sizeof(record);
        struct drive_record read = {first + i, record.stamp_ns, {bytes.data + at, record.bytes}};
        at += record.bytes;
        visit(context, &read);
    }
    CHECK(at == bytes.len);
    return true;
}

static void apply_record(void *context, const struct drive_record *record)
{
    struct ha_controller *controller = context;
    struct error error = {0};
    if (ha_failed(controller->world))
        return;
    if (drive_replay(controller->core, record, &controller->effects, NULL, NULL, &error) < 0)
        ha_fail(controller->world, TORTURE_REPLAY, "c-%u cannot apply a record: %s", controller->index + 1,
                error.text);
    else
        ha_oracle_applied(controller, record, NULL);
}

bool ha_apply_groups(struct ha_controller *controller, const sim_pairs *pairs)
{
    size_t next = 0;
    while (core_seq(controller->core) < controller->head.last && !ha_failed(controller->world))
        if (!ha_group_visit(pairs, core_seq(controller->core) + 1, &next, apply_record, controller))
            return false;
    return true;
}

/* --- appending -------------------------------------------------------------------------------- */

static void group_encode(struct ha_controller *controller, const struct drive_record *records, size_t count)
{
    struct buf *group = &controller->group;
    struct group_front front = {.first = records[0].seq, .count = (uint32_t)count};
    controller->group_head = controller->head;
    controller->group_head.last += count;
    buf_clear(group);
    buf_add(group, &front, sizeof(front));
    for (size_t i = 0; i < count; i++) {
        struct record_front record = {records[i].stamp_ns, records[i].bytes.len};
        buf_add(group, &record, sizeof(record));
        buf_add_str(group, records[i].bytes);
        controller->group_head.chain = hash_mix(controller->group_head.chain ^ ha_record_hash(&records[i]));
    }
    front.bytes = group->len;
    memcpy(group->data, &front, sizeof(front));
    uint32_t part_bytes = controller->world->swarm.part_bytes;
    controller->group_first = records[0].seq;
    controller->part = 0;
    controller->parts = (uint32_t)((group->len + part_bytes - 1) / part_bytes);
    CHECK(controller->parts < 1u << GROUP_PART_BITS);
}

static void group_send(struct ha_controller *controller)
{
    size_t part_bytes = controller->world->swarm.part_bytes, at = controller->part * part_bytes;
    size_t left = controller->group.len - at;
    struct str bytes = {controller->group.data + at, left < part_bytes ? left : part_bytes};
    struct sim_txn *txn = ha_leader_txn(controller);
    bool last = controller->part + 1 == controller->parts;
    if (txn->compare_count)
        sim_txn_if(txn, SIM_HEAD, controller->head_mod);
    sim_txn_put(txn, SIM_GROUP, ha_group_key(controller->group_first, controller->part), bytes, 0);
    if (last) { /* an earlier refused group may have had more parts */
        sim_txn_delete(txn, SIM_GROUP, ha_group_key(controller->group_first, controller->part + 1),
                       ha_group_key(controller->group_first + 1, 0) - 1);
        sim_txn_put(txn, SIM_HEAD, 0, head_bytes(&controller->group_head), 0);
        sim_txn_get(txn, false, SIM_HEAD);
    }
    if (controller->part == 1)
        ha_reach(controller->world, HA_PARTS);
    call_txn(controller, last ? ASK_APPEND : ASK_PART, txn, 0, true);
}

static int port_append(void *context, const struct drive_record *records, size_t count, struct error *error)
{
    struct ha_controller *controller = context;
    if (controller->main.id) /* planted: the last append is under way */
        return error_set(error, ERROR_UNAVAILABLE, "an append is under way");
    if (!controller->term || !lease_runs(controller))
        return error_set(error, ERROR_FENCED, "its lease has ended");
    if (records[0].seq != controller->head.last + 1) {
        ha_fail(controller->world, TORTURE_SAFETY, "c-%u appends record %llu where the log ends with %llu",
                controller->index + 1, (unsigned long long)records[0].seq,
                (unsigned long long)controller->head.last);
        return error_set(error, ERROR_FENCED, "another record is next");
    }
    group_encode(controller, records, count);
    group_send(controller);
    return controller->world->options.plant == PLANT_APPLY_BEFORE_LOG ? APPEND_DONE : APPEND_LATER;
}

static bool port_snapshot(void *context, uint64_t seq, int64_t stamp_ns, struct buf *bytes)
{
    struct ha_controller *controller = context;
    buf_done(&controller->snapshot);
    controller->snapshot = *bytes;
    *bytes = (struct buf){0};
    controller->snapshot_before = controller->snapshot_seq;
    controller->snapshot_seq = seq;
    controller->saving = true;
    return true;
}

static void port_refuses(void *context, const struct error *why)
{
    const struct ha_controller *controller = context;
    ha_trace(controller->world, "c-%u: the log takes no records: %s", controller->index + 1, why->text);
}

static void port_takes(void *context, int64_t refused_ns)
{
    const struct ha_controller *controller = context;
    ha_trace(controller->world, "c-%u: the log takes records again", controller->index + 1);
}

static void port_lost(void *context, const struct error *why)
{
    ha_lost(context, why->text);
}

struct log_port ha_log_port(struct ha_controller *controller)
{
    return (struct log_port){controller, port_append, port_snapshot, port_refuses, port_takes, port_lost};
}

/* --- answers ---------------------------------------------------------------------------------- */

/* Handles failed comparisons: either an earlier attempt of the same transaction succeeded, or another
 * controller leads. */
static int judge_head(struct ha_controller *controller, const struct sim_head *wanted,
                      const struct ha_message *answer)
{
    const struct sim_pair *pair = sim_pair_find(&answer->pairs, SIM_HEAD, 0);
    if (!pair || memcmp(pair->value.data, wanted, sizeof(*wanted)) != 0)
        return ERROR_FENCED;
    ha_reach(controller->world, HA_JUDGED);
    controller->head_mod = pair->mod;
    return 0;
}

/* Handles the answer to a transaction that puts `wanted`. */
static int take_head_put(struct ha_controller *controller, const struct sim_head *wanted, int rc,
                         const struct ha_message *answer)
{
    if (rc == 0 && answer->held)
        controller->head_mod = answer->revision;
    else if (rc == 0)
        rc = judge_head(controller, wanted, answer);
    if (rc == 0)
        controller->head = *wanted;
    return rc;
}

static void group_ends(struct ha_controller *controller, int rc)
{
    static const char *const why[] = {"another one leads, or may", "etcd's quota is used up"};
    struct error error = {0};
    if (rc < 0)
        error_set(&error, (enum error_code)rc, "%s", why[rc == ERROR_NO_SPACE]);
    if (controller->world->options.plant == PLANT_APPLY_BEFORE_LOG)
        return;
    driver_appended(controller->driver, rc < 0 ? rc : APPEND_DONE, &error);
}

static void save_ends(struct ha_controller *controller, int rc, bool held)
{
    buf_done(&controller->snapshot);
    driver_snapshot_ended(controller->driver);
    if (rc == 0 && held) {
        ha_reach(controller->world, HA_SNAPSHOT);
        controller->trimming = controller->snapshot_before > controller->head.base;
    } else if (rc != ERROR_NO_SPACE) {
        ha_lost(controller, "a snapshot was refused: another one leads, or may");
    }
}

void append_answered(struct ha_controller *controller, enum ha_ask ask, int rc,
                     const struct ha_message *answer)
{
    bool held = rc == 0 && answer->held;
    switch (ask) {
    case ASK_PART:
        if (held) {
            controller->part++;
            group_send(controller);
            return;
        }
        group_ends(controller, rc < 0 ? rc : ERROR_FENCED);
        break;
    case ASK_APPEND:
        if (!answer && controller->world->options.plant == PLANT_TRUST_SILENCE) {
            controller->head = controller->group_head;
            rc = 0;
        } else {
            rc = take_head_put(controller, &controller->group_head, rc, answer);
        }
        group_ends(controller, rc);
        break;
    case ASK_SAVE:
        save_ends(controller, rc, held);
        break;
    case ASK_TRIM:
        rc = take_head_put(controller, &controller->group_head, rc, answer);
        if (rc < 0 && rc != ERROR_NO_SPACE)
            ha_lost(controller, "trimming was refused: another one leads, or may");
        break;
    default:
        CHECK_UNREACHABLE();
    }
    if (controller->lost)
        ha_end(controller, NS_PER_MS * ha_draw(controller->world, 1, 300), "begins anew as a standby");
    else
        ha_turn_soon(controller);
}

/* --- snapshots -------------------------------------------------------------------------------- */

bool append_maintain(struct ha_controller *controller)
{
    if (controller->saving) {
        struct sim_txn *txn = ha_leader_txn(controller);
        sim_txn_put(txn, SIM_SNAPSHOT, controller->snapshot_seq, buf_str(&controller->snapshot), 0);
        if (controller->snapshot_before)
            sim_txn_delete(txn, SIM_SNAPSHOT, 0, controller->snapshot_before - 1);
        controller->saving = false;
        call_txn(controller, ASK_SAVE, txn, 0, true);
        return true;
    }
    if (!controller->trimming)
        return false;
    struct sim_txn *txn = ha_leader_txn(controller);
    controller->trimming = false;
    controller->group_head = controller->head;
    controller->group_head.base = controller->snapshot_before;
    if (txn->compare_count)
        sim_txn_if(txn, SIM_HEAD, controller->head_mod);
    sim_txn_delete(txn, SIM_GROUP, 0, ha_group_key(controller->snapshot_before + 1, 0) - 1);
    sim_txn_put(txn, SIM_HEAD, 0, head_bytes(&controller->group_head), 0);
    sim_txn_get(txn, false, SIM_HEAD);
    call_txn(controller, ASK_TRIM, txn, 0, true);
    return true;
}
