/* The worker alone: what clients may put and ask for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "flow/island/machine.h"

enum { CLIENT = 5, TOKEN = 99, DEVICE_BYTES = 64 };

struct stand {
    struct worker *worker;
    struct flow_effects effects;
};

static void say(struct stand *stand, uint64_t peer, const struct flow_entry *entry, struct str tail)
{
    struct flow_entry sent = *entry;
    sent.tail_bytes = (uint32_t)tail.len;
    flow_effects_clear(&stand->effects);
    worker_step(stand->worker,
                &(struct flow_event){.kind = FLOW_ENTRY, .peer = peer, .entry = &sent, .tail = tail},
                &stand->effects);
}

static uint64_t handle_of(uint64_t number)
{
    return (uint64_t)CLIENT << HANDLE_CLIENT_SHIFT | HANDLE_PUT | number;
}

/* Puts 16 bytes. */
static void put(struct stand *stand, uint64_t handle)
{
    struct ir_type type = {IR_F32, 1, {4}};
    struct buf tail = {0};
    pack_type(&tail, &type);
    buf_add(&tail, (float[4]){1, 2, 3, 4}, 16);
    say(stand, peer_client(CLIENT), &(struct flow_entry){.kind = ENTRY_PUT, .handle = handle},
        buf_str(&tail));
    buf_done(&tail);
}

/* Whether a fetch brings bytes, or a failure for want of memory. */
static bool is_there(struct stand *stand, uint64_t handle)
{
    say(stand, peer_client(CLIENT), &(struct flow_entry){.kind = ENTRY_FETCH, .handle = handle},
        (struct str){0});
    assert_int_equal(stand->effects.list.len, 1);
    const struct flow_effect *shard = &stand->effects.list.items[0];
    struct fault fault;
    if (!(shard->entry.flags & ENTRY_IS_FAILED))
        return true;
    assert_true(fault_decode(buf_str(&shard->tail), &fault));
    assert_int_equal(fault.reason, FAULT_OUT_OF_MEMORY);
    return false;
}

static void stand_begin(struct stand *stand)
{
    *stand = (struct stand){.worker = worker_new("main", "address", 1, DEVICE_BYTES)};
    worker_step(stand->worker, &(struct flow_event){.kind = FLOW_OPENED, .peer = PEER_HEAD}, &stand->effects);
    say(stand, PEER_HEAD, &(struct flow_entry){.kind = ENTRY_WELCOME, .args = {7, 8}}, (struct str){0});
    say(stand, PEER_HEAD, &(struct flow_entry){.kind = ENTRY_CLIENT, .client = CLIENT, .args = {TOKEN}},
        (struct str){0});
}

static void stand_end(struct stand *stand)
{
    flow_effects_clear(&stand->effects);
    worker_free(stand->worker, &stand->effects);
    flow_effects_done(&stand->effects);
}

/* Bytes that are put without the head's word are bounded too, and come back with what is released. */
static void puts_are_bounded(void **state)
{
    struct stand stand;
    stand_begin(&stand);
    for (uint64_t i = 1; i <= 20; i++)
        put(&stand, handle_of(i));
    for (uint64_t i = 1; i <= 20; i++)
        assert_int_equal(is_there(&stand, handle_of(i)), i <= 2 * DEVICE_BYTES / 16);
    uint64_t first = handle_of(1);
    say(&stand, PEER_HEAD, &(struct flow_entry){.kind = ENTRY_RELEASE, .client = CLIENT},
        (struct str){(const char *)&first, sizeof first});
    put(&stand, handle_of(21));
    assert_true(is_there(&stand, handle_of(21)));
    stand_end(&stand);
}

/* A head with another token for a client's number: what the first one had is gone. */
static void number_alone_gets_nothing(void **state)
{
    struct stand stand;
    stand_begin(&stand);
    put(&stand, handle_of(1));
    assert_int_equal(worker_count(stand.worker).objects, 1);
    flow_effects_clear(&stand.effects);
    worker_step(stand.worker, &(struct flow_event){.kind = FLOW_CLOSED, .peer = PEER_HEAD}, &stand.effects);
    worker_step(stand.worker, &(struct flow_event){.kind = FLOW_OPENED, .peer = PEER_HEAD}, &stand.effects);
    assert_int_equal(stand.effects.list.len, 4); /* its hello, the client, its shard, the end */
    assert_int_equal(stand.effects.list.items[0].entry.args[1], 8);
    assert_int_equal(stand.effects.list.items[1].entry.args[0], TOKEN);
    assert_int_equal(stand.effects.list.items[2].entry.handle, handle_of(1));
    say(&stand, PEER_HEAD, &(struct flow_entry){.kind = ENTRY_CLIENT, .client = CLIENT, .args = {TOKEN}},
        (struct str){0});
    assert_int_equal(worker_count(stand.worker).objects, 1);
    say(&stand, PEER_HEAD, &(struct flow_entry){.kind = ENTRY_CLIENT, .client = CLIENT, .args = {TOKEN + 1}},
        (struct str){0});
    assert_int_equal(worker_count(stand.worker).objects, 0);
    assert_int_equal(worker_count(stand.worker).cells, 0);
    stand_end(&stand);
}

static void say_data(struct stand *stand, uint32_t client, uint64_t head)
{
    say(stand, peer_host(3),
        &(struct flow_entry){.kind = ENTRY_DATA, .client = client, .launch = 1, .ticket = head}, STR("abcd"));
}

static void lose_head(struct stand *stand, uint64_t next)
{
    flow_effects_clear(&stand->effects);
    worker_step(stand->worker, &(struct flow_event){.kind = FLOW_CLOSED, .peer = PEER_HEAD}, &stand->effects);
    worker_step(stand->worker, &(struct flow_event){.kind = FLOW_OPENED, .peer = PEER_HEAD}, &stand->effects);
    if (next)
        say(stand, PEER_HEAD, &(struct flow_entry){.kind = ENTRY_WELCOME, .args = {next, 8}},
            (struct str){0});
}

/* Data that comes before its launch is kept for as long as the head that has stamped the launch is there, or
 * may be the next one. */
static void early_data_goes_with_its_head(void **state)
{
    struct stand stand;
    stand_begin(&stand);
    say_data(&stand, CLIENT, 7);
    say_data(&stand, CLIENT + 1, 7);
    assert_int_equal(worker_count(stand.worker).instances, 2);
    lose_head(&stand, 0);
    assert_int_equal(worker_count(stand.worker).instances, 0);
    say_data(&stand, CLIENT + 1, 7);
    say_data(&stand, CLIENT + 2, 9);
    assert_int_equal(worker_count(stand.worker).instances, 2);
    say(&stand, PEER_HEAD, &(struct flow_entry){.kind = ENTRY_WELCOME, .args = {9, 8}}, (struct str){0});
    assert_int_equal(worker_count(stand.worker).instances, 1);
    assert_int_equal(worker_count(stand.worker).clients, 2);
    say_data(&stand, CLIENT + 1, 7);
    assert_int_equal(worker_count(stand.worker).instances, 1);
    assert_true(worker_expects(stand.worker, CLIENT + 2, 1, 9));
    assert_false(worker_expects(stand.worker, CLIENT + 1, 1, 7));
    lose_head(&stand, 11);
    assert_int_equal(worker_count(stand.worker).instances, 0);
    assert_int_equal(worker_count(stand.worker).clients, 1);
    stand_end(&stand);
}

/* Returns the number of the order that the worker gives for the client's function `id`. */
static uint64_t order_of(struct stand *stand, uint64_t id)
{
    say(stand, PEER_HEAD, &(struct flow_entry){.kind = ENTRY_FUNCTION, .client = CLIENT, .handle = id},
        (struct str){"main\0module {}", 14});
    assert_int_equal(stand->effects.list.len, 1);
    assert_int_equal(stand->effects.list.items[0].kind, FLOW_COMPILE);
    return stand->effects.list.items[0].as;
}

/* Returns what the worker drops once the order is carried out; NULL: nothing. */
static void *dropped_by(struct stand *stand, uint64_t order, void *executable)
{
    flow_effects_clear(&stand->effects);
    worker_step(stand->worker,
                &(struct flow_event){.kind = FLOW_COMPILED, .handle = order, .executable = executable},
                &stand->effects);
    bool drops = stand->effects.list.len > 0 && stand->effects.list.items[0].kind == FLOW_DROP;
    return drops ? stand->effects.list.items[0].executable : NULL;
}

/* A client ends while its function is compiled, and another one gets its number and has a function of the
 * same id. Each executable is of the function for which it was ordered. */
static void an_order_names_one_function(void **state)
{
    struct stand stand;
    int first, second;
    stand_begin(&stand);
    uint64_t of_first = order_of(&stand, 3);
    say(&stand, PEER_HEAD, &(struct flow_entry){.kind = ENTRY_CLIENT, .client = CLIENT, .args = {TOKEN + 1}},
        (struct str){0});
    uint64_t of_second = order_of(&stand, 3);
    assert_int_not_equal(of_first, of_second);
    assert_ptr_equal(dropped_by(&stand, of_first, &first), &first);
    assert_null(dropped_by(&stand, of_second, &second));
    assert_int_equal(worker_count(stand.worker).functions, 1);
    assert_ptr_equal(dropped_by(&stand, of_second, &second), &second); /* an order is carried out once */
    stand_end(&stand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(puts_are_bounded),
        cmocka_unit_test(number_alone_gets_nothing),
        cmocka_unit_test(early_data_goes_with_its_head),
        cmocka_unit_test(an_order_names_one_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
