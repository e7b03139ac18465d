/* The head alone: a client is suspended, others take its devices, its value moves; what may go wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/units.h"
#include "flow/island/machine.h"
#include "flow/lower/lower.h"

enum { DEVICES = 2, FIRST = 100, SECOND = 101, WATCHER = 102 }; /* peers; those of hosts are 1 and 2 */

struct stand {
    struct head *head;
    struct flow_effects effects;
    int64_t now_ns;
};

static const uint64_t handle = UINT64_C(1) << HANDLE_CLIENT_SHIFT | HANDLE_PUT | 1;
static const struct ir_type type = {IR_F32, 1, {2}};

static void step(struct stand *stand, struct flow_event event)
{
    event.now_ns = stand->now_ns;
    flow_effects_clear(&stand->effects);
    head_step(stand->head, &event, &stand->effects);
}

static void say(struct stand *stand, uint64_t peer, struct flow_entry entry, struct str tail)
{
    entry.tail_bytes = (uint32_t)tail.len;
    step(stand, (struct flow_event){.kind = FLOW_ENTRY, .peer = peer, .entry = &entry, .tail = tail});
}

/* The first message of a kind to a peer that the last step has sent; NULL: none. */
static const struct flow_effect *said(const struct stand *stand, uint64_t peer, enum entry_kind kind)
{
    for (size_t i = 0; i < stand->effects.list.len; i++) {
        const struct flow_effect *effect = &stand->effects.list.items[i];
        if (effect->kind == FLOW_SEND && effect->peer == peer && effect->entry.kind == kind)
            return effect;
    }
    return NULL;
}

/* Opens a connection, and says the first word on it. */
static void meet(struct stand *stand, uint64_t peer, struct flow_entry hello, struct str tail)
{
    step(stand, (struct flow_event){.kind = FLOW_OPENED, .peer = peer, .token = 100 + peer});
    say(stand, peer, hello, tail);
}

/* A client with a mesh of two devices. */
static void add_client(struct stand *stand, uint64_t peer, struct str name)
{
    uint32_t devices = DEVICES;
    meet(stand, peer, (struct flow_entry){.kind = ENTRY_HELLO_CLIENT, .node = 0x80000000u}, name);
    say(stand, peer, (struct flow_entry){.kind = ENTRY_MESH_NEW, .launch = 1, .count = 1},
        (struct str){(const char *)&devices, sizeof devices});
    assert_non_null(said(stand, peer, ENTRY_MESH));
}

static void tell_value(struct stand *stand, uint64_t number)
{
    struct flow_sharding cut = {.mesh = 1, .axes = {1}};
    struct buf tail = {0};
    pack_type(&tail, &type);
    buf_add(&tail, cut.axes, sizeof cut.axes);
    say(stand, FIRST, (struct flow_entry){.kind = ENTRY_VALUE, .handle = number, .node = 1, .epoch = 1},
        buf_str(&tail));
    buf_done(&tail);
}

static void tell_there(struct stand *stand, uint64_t host_peer, uint32_t shard)
{
    say(stand, host_peer, (struct flow_entry){.kind = ENTRY_PUT_DONE, .handle = handle, .node = shard},
        (struct str){0});
}

/* Two hosts of two devices; the first client has a value on host 0, and is asked to stop. */
static void stand_begin(struct stand *stand)
{
    *stand = (struct stand){.head = head_new(&(struct head_options){.secret = 1}), .now_ns = NS_PER_SECOND};
    for (uint64_t peer = 1; peer <= 2; peer++)
        meet(stand, peer, (struct flow_entry){.kind = ENTRY_HELLO_WORKER, .count = DEVICES, .args = {1000}},
             (struct str){"main\0address", 12});
    add_client(stand, FIRST, STR("first"));
    meet(stand, WATCHER, (struct flow_entry){.kind = ENTRY_HELLO_WATCH}, (struct str){0});
    tell_value(stand, handle);
    tell_there(stand, 1, 0);
    say(stand, WATCHER, (struct flow_entry){.kind = ENTRY_SUSPEND, .args = {10 * NS_PER_SECOND}},
        STR("first"));
    const struct flow_effect *stop = said(stand, FIRST, ENTRY_SUSPEND);
    assert_non_null(stop);
    assert_null(said(stand, 1, ENTRY_SAVE)); /* a shard is on its way, and the client has not answered */
    say(stand, FIRST, stop->entry, (struct str){0});
    assert_null(said(stand, 1, ENTRY_SAVE));
    tell_there(stand, 1, 1);
    assert_non_null(said(stand, 1, ENTRY_SAVE));
    assert_non_null(said(stand, 2, ENTRY_SAVE));
}

static void save_all(struct stand *stand)
{
    struct flow_entry saved = {.kind = ENTRY_SAVE, .client = 1, .epoch = 1, .args = {8}};
    say(stand, 1, saved, (struct str){0});
    assert_null(said(stand, WATCHER, ENTRY_SUSPEND));
    saved.args[0] = 0;
    say(stand, 2, saved, (struct str){0});
    const struct flow_effect *answer = said(stand, WATCHER, ENTRY_SUSPEND);
    assert_non_null(answer);
    assert_int_equal(answer->entry.flags, 0);
    assert_int_equal(answer->entry.count, 1);
    assert_int_equal(answer->entry.args[0], 8);
    assert_int_equal(head_count(stand->head).suspended, 1);
    assert_int_equal(head_count(stand->head).used_bytes, 0);
    assert_int_equal(head_count(stand->head).loads, 0);
}

/* Another client takes host 0; the first one is resumed on host 1. */
static void move(struct stand *stand)
{
    save_all(stand);
    add_client(stand, SECOND, STR("second"));
    say(stand, WATCHER, (struct flow_entry){.kind = ENTRY_RESUME}, STR("first"));
    assert_int_equal(said(stand, WATCHER, ENTRY_RESUME)->entry.flags, 0);
    assert_int_equal(said(stand, FIRST, ENTRY_MESH)->entry.flags, ENTRY_IS_KEPT);
    assert_non_null(said(stand, FIRST, ENTRY_RESUME));
    const struct flow_effect *to_move = said(stand, 1, ENTRY_MOVE);
    assert_non_null(to_move);
    assert_null(said(stand, 2, ENTRY_MOVE));
    struct unpack in = {to_move->tail.data, to_move->tail.len, false};
    for (uint32_t shard = 0; shard < DEVICES; shard++) {
        assert_int_equal(unpack_u64(&in, UINT64_MAX), handle);
        assert_int_equal(unpack_u32(&in, UINT32_MAX), shard);
        assert_int_equal(unpack_u32(&in, UINT32_MAX), 1);
    }
    assert_int_equal(in.left, 0);
    assert_int_equal(head_count(stand->head).used_bytes, 8);
    assert_int_equal(head_count(stand->head).loads, 2 * DEVICES);
}

static void stand_end(struct stand *stand)
{
    step(stand, (struct flow_event){.kind = FLOW_CLOSED, .peer = FIRST});
    step(stand, (struct flow_event){.kind = FLOW_CLOSED, .peer = SECOND});
    assert_int_equal(head_count(stand->head).used_bytes, 0);
    assert_int_equal(head_count(stand->head).loads, 0);
    assert_int_equal(head_count(stand->head).clients, 0);
    flow_effects_done(&stand->effects);
    head_free(stand->head);
}

/* The value is lost with the host that has saved it, until its shards have left. */
static void host_lost_on_the_way(void **state)
{
    for (int come = 0; come <= DEVICES; come++) {
        struct stand stand;
        stand_begin(&stand);
        move(&stand);
        for (int shard = 0; shard < come; shard++)
            tell_there(&stand, 2, (uint32_t)shard);
        step(&stand, (struct flow_event){.kind = FLOW_CLOSED, .peer = 1});
        const struct flow_effect *failed = said(&stand, FIRST, ENTRY_FAILED);
        assert_int_equal(failed != NULL, come < DEVICES);
        if (failed)
            assert_int_equal(failed->entry.handle, handle);
        stand_end(&stand);
    }
}

static void host_lost_while_suspended(void **state)
{
    struct stand stand;
    stand_begin(&stand);
    save_all(&stand);
    step(&stand, (struct flow_event){.kind = FLOW_CLOSED, .peer = 1});
    assert_int_equal(said(&stand, FIRST, ENTRY_FAILED)->entry.handle, handle);
    assert_null(said(&stand, FIRST, ENTRY_MESH)); /* it gets other devices when it is resumed */
    say(&stand, WATCHER, (struct flow_entry){.kind = ENTRY_RESUME}, STR("first"));
    assert_int_equal(said(&stand, WATCHER, ENTRY_RESUME)->entry.flags, 0);
    assert_null(said(&stand, 2, ENTRY_MOVE));
    assert_int_equal(head_count(stand.head).loads, DEVICES);
    stand_end(&stand);
}

/* A connection that breaks between the two hosts may have had a shard on it. */
static void connection_breaks_on_the_way(void **state)
{
    struct stand stand;
    stand_begin(&stand);
    move(&stand);
    tell_there(&stand, 2, 0);
    say(&stand, 1, (struct flow_entry){.kind = ENTRY_HOST, .flags = ENTRY_IS_DOWN, .node = 1},
        (struct str){0});
    step(&stand, (struct flow_event){.kind = FLOW_TICK});
    assert_null(said(&stand, FIRST, ENTRY_FAILED));
    stand.now_ns += 3 * NS_PER_SECOND;
    step(&stand, (struct flow_event){.kind = FLOW_TICK});
    assert_int_equal(said(&stand, FIRST, ENTRY_FAILED)->entry.handle, handle);
    stand_end(&stand);
}

/* A client that puts after it has said that it stops harms itself alone. */
static void puts_after_it_has_stopped(void **state)
{
    struct stand stand;
    stand_begin(&stand);
    tell_value(&stand, handle + 1);
    const struct flow_effect *failed = said(&stand, FIRST, ENTRY_FAILED);
    struct fault fault;
    assert_true(failed && failed->entry.handle == handle + 1);
    assert_true(fault_decode(buf_str(&failed->tail), &fault) && fault.lost);
    save_all(&stand);
    tell_value(&stand, handle + 2);
    assert_int_equal(said(&stand, FIRST, ENTRY_FAILED)->entry.handle, handle + 2);
    stand_end(&stand);
}

/* The client runs on where it was, and the late answer of a host means nothing. */
static void time_is_over(void **state)
{
    struct stand stand;
    stand_begin(&stand);
    struct flow_entry saved = {.kind = ENTRY_SAVE, .client = 1, .epoch = 1, .args = {8}};
    say(&stand, 1, saved, (struct str){0});
    stand.now_ns += 10 * NS_PER_SECOND;
    step(&stand, (struct flow_event){.kind = FLOW_TICK});
    assert_int_equal(said(&stand, WATCHER, ENTRY_SUSPEND)->entry.flags, ENTRY_IS_FAILED);
    assert_non_null(said(&stand, FIRST, ENTRY_RESUME));
    assert_null(said(&stand, FIRST, ENTRY_MESH));
    assert_non_null(said(&stand, 1, ENTRY_MOVE));
    say(&stand, 2, saved, (struct str){0});
    assert_int_equal(head_count(stand.head).suspended, 0);
    assert_int_equal(head_count(stand.head).used_bytes, 8);
    assert_int_equal(head_count(stand.head).loads, DEVICES);
    stand_end(&stand);
}

/* A host that cannot save ends the suspension; others that have saved load again. */
static void disk_is_full(void **state)
{
    struct stand stand;
    struct buf tail = {0};
    stand_begin(&stand);
    struct fault fault = fault_make(FAULT_CANCELLED, 0, 0, "no space");
    fault_encode(&fault, &tail);
    say(&stand, 1, (struct flow_entry){.kind = ENTRY_SAVE, .flags = ENTRY_IS_FAILED, .client = 1, .epoch = 1},
        buf_str(&tail));
    const struct flow_effect *answer = said(&stand, WATCHER, ENTRY_SUSPEND);
    assert_true(fault_decode(buf_str(&answer->tail), &fault));
    assert_string_equal(fault.text, "no space");
    assert_non_null(said(&stand, 2, ENTRY_MOVE));
    buf_done(&tail);
    stand_end(&stand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_lost_on_the_way),
        cmocka_unit_test(host_lost_while_suspended),
        cmocka_unit_test(connection_breaks_on_the_way),
        cmocka_unit_test(puts_after_it_has_stopped),
        cmocka_unit_test(time_is_over),
        cmocka_unit_test(disk_is_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
