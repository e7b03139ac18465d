/* Values that leave devices for host memory: the head chooses, a worker carries out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/units.h"
#include "flow/island/machine.h"
#include "flow/lower/lower.h"

enum {
    HOST = 1,
    CLIENT = 100,    /* peers */
    BYTES = 40,      /* of every value, and of what a launch keeps */
    DEVICE = 200,    /* bytes of the device */
    HOST_BYTES = 80, /* of its host */
};

struct stand {
    struct head *head;
    struct flow_effects effects;
    int64_t now_ns;
    uint64_t launches, puts;
};

static const struct ir_type type = {IR_F32, 1, {BYTES / 4}};

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

static void meet(struct stand *stand, uint64_t peer, struct flow_entry hello, struct str tail)
{
    step(stand, (struct flow_event){.kind = FLOW_OPENED, .peer = peer, .token = 100 + peer});
    say(stand, peer, hello, tail);
}

/* One host with one device, one client with a mesh of it, and a program of one call of one argument. */
static void stand_begin(struct stand *stand, uint64_t host_bytes)
{
    *stand = (struct stand){.head = head_new(&(struct head_options){.secret = 1}), .now_ns = NS_PER_SECOND};
    struct flow_entry hello = {.kind = ENTRY_HELLO_WORKER, .count = 1, .args = {DEVICE}};
    hello.launch = host_bytes;
    meet(stand, HOST, hello, (struct str){"main\0address", 12});
    meet(stand, CLIENT, (struct flow_entry){.kind = ENTRY_HELLO_CLIENT, .node = 0x80000000u}, STR("client"));
    uint32_t devices = 1;
    say(stand, CLIENT, (struct flow_entry){.kind = ENTRY_MESH_NEW, .launch = 1, .count = 1},
        (struct str){(const char *)&devices, sizeof devices});
    struct program *program = program_new();
    struct flow_sharding whole = {.mesh = 1};
    struct program_value value = {type, whole};
    program_add_mesh(program, &(struct flow_mesh){1, 1, {1}});
    uint32_t arg = program_arg(program, &type, &whole);
    program_result(program, program_call(program, 1, 1, &arg, 1, &value, 1));
    struct buf bytes = {0};
    program_encode(program, &bytes);
    say(stand, CLIENT, (struct flow_entry){.kind = ENTRY_PROGRAM, .program = 1}, buf_str(&bytes));
    buf_done(&bytes);
    program_free(program);
}

static void stand_end(struct stand *stand)
{
    flow_effects_done(&stand->effects);
    head_free(stand->head);
}

static const struct flow_effect *failure(const struct stand *stand)
{
    for (size_t i = 0; i < stand->effects.list.len; i++)
        if (stand->effects.list.items[i].entry.kind == ENTRY_FAILED)
            return &stand->effects.list.items[i];
    return NULL;
}

/* Returns the handle; 0: there is no room for it. */
static uint64_t put(struct stand *stand)
{
    uint64_t handle = UINT64_C(1) << HANDLE_CLIENT_SHIFT | HANDLE_PUT | ++stand->puts;
    struct buf tail = {0};
    pack_type(&tail, &type);
    buf_add(&tail, (uint8_t[IR_RANK_MAX]){0}, IR_RANK_MAX);
    say(stand, CLIENT, (struct flow_entry){.kind = ENTRY_VALUE, .handle = handle, .node = 1, .epoch = 1},
        buf_str(&tail));
    buf_done(&tail);
    bool fits = failure(stand) == NULL;
    say(stand, HOST, (struct flow_entry){.kind = ENTRY_PUT_DONE, .handle = handle}, (struct str){0});
    return fits ? handle : 0;
}

/* Returns the handle of its result. */
static uint64_t launch(struct stand *stand, uint64_t arg)
{
    struct flow_entry entry = {.kind = ENTRY_LAUNCH, .program = 1, .epoch = 1, .node = 1, .count = 1};
    entry.launch = ++stand->launches;
    entry.handle = UINT64_C(1) << HANDLE_CLIENT_SHIFT | entry.launch;
    entry.args[0] = arg;
    say(stand, CLIENT, entry, (struct str){0});
    return entry.handle;
}

static void over(struct stand *stand, uint64_t launch)
{
    say(stand, HOST, (struct flow_entry){.kind = ENTRY_DONE, .client = 1, .launch = launch}, (struct str){0});
}

/* The host was told this in the last step, beside plans: `kinds` in their order, with handles (0 ends). */
static void expect(const struct stand *stand, const enum entry_kind *kinds, const uint64_t (*handles)[4])
{
    size_t at = 0;
    for (size_t i = 0; i < stand->effects.list.len; i++) {
        const struct flow_effect *effect = &stand->effects.list.items[i];
        if (effect->peer != HOST || effect->entry.kind == ENTRY_PLAN)
            continue;
        assert_int_equal(effect->entry.kind, kinds[at]);
        size_t count = 0;
        while (handles[at][count])
            count++;
        assert_int_equal(effect->tail.len, 8 * count);
        assert_memory_equal(effect->tail.data, handles[at], 8 * count);
        at++;
    }
    assert_int_equal(kinds[at], ENTRY_NONE);
}

static int64_t used(const struct stand *stand)
{
    return head_count(stand->head).used_bytes;
}

static int64_t spilled(const struct stand *stand)
{
    return head_count(stand->head).spilled_bytes;
}

static void the_least_recently_used_leaves(void **state)
{
    struct stand stand;
    stand_begin(&stand, HOST_BYTES);
    uint64_t a = put(&stand), b = put(&stand), c = put(&stand);
    uint64_t r = launch(&stand, a);
    over(&stand, 1);
    launch(&stand, a);
    expect(&stand, (enum entry_kind[]){ENTRY_LAUNCH, 0}, (uint64_t[][4]){{0}});
    assert_int_equal(used(&stand), DEVICE);
    launch(&stand, c); /* the others have been used since `b` was put */
    expect(&stand, (enum entry_kind[]){ENTRY_SPILL, ENTRY_LAUNCH, 0}, (uint64_t[][4]){{b}, {0}});
    assert_int_equal(used(&stand), DEVICE);
    assert_int_equal(spilled(&stand), BYTES);
    assert_true(head_has_spilled(stand.head, b));
    over(&stand, 2);
    launch(&stand, b); /* wants it back, and room for its result; `c` is in use */
    expect(&stand, (enum entry_kind[]){ENTRY_SPILL, ENTRY_FILL, ENTRY_LAUNCH, 0},
           (uint64_t[][4]){{r, a}, {b}, {0}});
    assert_int_equal(used(&stand), DEVICE);
    assert_int_equal(spilled(&stand), HOST_BYTES);
    assert_int_equal(head_count(stand.head).idle_bytes, BYTES); /* the second result */
    assert_int_equal(head_count(stand.head).spills, 3);
    assert_int_equal(head_count(stand.head).fills, 1);
    stand_end(&stand);
}

/* Where devices and host are full, a launch waits, and fails once it has waited long enough. */
static void back_pressure_stays(void **state)
{
    struct stand stand;
    stand_begin(&stand, HOST_BYTES);
    uint64_t handles[7];
    for (int i = 0; i < 7; i++) { /* five on the device, two that it has no room for */
        handles[i] = put(&stand);
        assert_int_not_equal(handles[i], 0);
        assert_int_equal(head_has_spilled(stand.head, handles[i]), i >= 5);
    }
    assert_int_equal(put(&stand), 0);
    launch(&stand, handles[0]);
    expect(&stand, (enum entry_kind[]){0}, NULL);
    stand.now_ns += 5 * NS_PER_SECOND;
    step(&stand, (struct flow_event){.kind = FLOW_TICK});
    assert_null(failure(&stand));
    stand.now_ns += 6 * NS_PER_SECOND;
    step(&stand, (struct flow_event){.kind = FLOW_TICK});
    const struct flow_effect *failed = failure(&stand);
    assert_non_null(failed);
    struct fault fault;
    assert_true(fault_decode(buf_str(&failed->tail), &fault));
    assert_int_equal(fault.reason, FAULT_OUT_OF_MEMORY);
    assert_int_equal(fault.device, 0);
    assert_string_equal(fault.text,
                        "the program needs 40 bytes on device 0: 200 of 200 are in use, and 80 of "
                        "80 of its host's memory");
    launch(&stand, handles[6]); /* and what comes back makes room for what leaves */
    expect(&stand, (enum entry_kind[]){0}, NULL);
    uint64_t freed = handles[5];
    say(&stand, CLIENT, (struct flow_entry){.kind = ENTRY_RELEASE},
        (struct str){(const char *)&freed, sizeof freed});
    expect(&stand, (enum entry_kind[]){ENTRY_RELEASE, ENTRY_SPILL, ENTRY_FILL, ENTRY_LAUNCH, 0},
           (uint64_t[][4]){{freed}, {handles[0], handles[1]}, {handles[6]}, {0}});
    assert_int_equal(spilled(&stand), HOST_BYTES);
    stand_end(&stand);
}

/* Without host memory nothing leaves: a value has no room, and a launch waits. */
static void without_host_memory_nothing_leaves(void **state)
{
    struct stand stand;
    stand_begin(&stand, 0);
    uint64_t a = 0;
    for (int i = 0; i < 5; i++)
        a = put(&stand);
    assert_int_not_equal(a, 0);
    assert_int_equal(put(&stand), 0);
    launch(&stand, a);
    expect(&stand, (enum entry_kind[]){0}, NULL);
    assert_int_equal(head_count(stand.head).queued, 1);
    assert_int_equal(spilled(&stand), 0);
    stand_end(&stand);
}

/* --- the worker ----------------------------------------------------------------------------------------- */

static void worker_say(struct worker *worker, uint64_t peer, struct flow_entry entry, struct str tail,
                       struct flow_effects *effects)
{
    entry.tail_bytes = (uint32_t)tail.len;
    flow_effects_clear(effects);
    worker_step(worker, &(struct flow_event){.kind = FLOW_ENTRY, .peer = peer, .entry = &entry, .tail = tail},
                effects);
}

/* A worker frees what devices hold of a value that leaves, answers fetches of it, and tells the next head. */
static void worker_evicts_and_remembers(void **state)
{
    struct worker *worker = worker_new("main", "address", 1, DEVICE);
    struct flow_effects effects = {0};
    worker_set_host_memory(worker, HOST_BYTES);
    worker_step(worker, &(struct flow_event){.kind = FLOW_OPENED, .peer = PEER_HEAD}, &effects);
    assert_int_equal(effects.list.items[0].entry.launch, HOST_BYTES);
    worker_say(worker, PEER_HEAD, (struct flow_entry){.kind = ENTRY_WELCOME, .args = {7, 8}}, (struct str){0},
               &effects);
    worker_say(worker, PEER_HEAD, (struct flow_entry){.kind = ENTRY_CLIENT, .client = 1, .args = {9}},
               (struct str){0}, &effects);
    uint64_t handle = UINT64_C(1) << HANDLE_CLIENT_SHIFT | HANDLE_PUT | 1;
    struct str name = {(const char *)&handle, sizeof handle};
    struct buf tail = {0};
    pack_type(&tail, &type);
    buf_add(&tail, (float[BYTES / 4]){1}, BYTES);
    worker_say(worker, peer_client(1), (struct flow_entry){.kind = ENTRY_PUT, .handle = handle},
               buf_str(&tail), &effects);
    buf_done(&tail);
    worker_say(worker, PEER_HEAD, (struct flow_entry){.kind = ENTRY_SPILL}, name, &effects);
    assert_int_equal(effects.list.len, 1);
    assert_int_equal(effects.list.items[0].kind, FLOW_EVICT);
    assert_non_null(effects.list.items[0].payload);
    assert_true(worker_has_spilled(worker, handle));
    worker_say(worker, peer_client(1), (struct flow_entry){.kind = ENTRY_FETCH, .handle = handle},
               (struct str){0}, &effects);
    assert_int_equal(effects.list.items[0].entry.kind, ENTRY_SHARD);
    assert_non_null(effects.list.items[0].payload);
    flow_effects_clear(&effects);
    worker_step(worker, &(struct flow_event){.kind = FLOW_CLOSED, .peer = PEER_HEAD}, &effects);
    worker_step(worker, &(struct flow_event){.kind = FLOW_OPENED, .peer = PEER_HEAD}, &effects);
    assert_int_equal(effects.list.items[2].entry.kind, ENTRY_PUT_DONE);
    assert_int_equal(effects.list.items[2].entry.count, 1);
    worker_say(worker, PEER_HEAD, (struct flow_entry){.kind = ENTRY_FILL}, name, &effects);
    assert_false(worker_has_spilled(worker, handle));
    flow_effects_clear(&effects);
    worker_free(worker, &effects);
    flow_effects_done(&effects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_recently_used_leaves),
        cmocka_unit_test(back_pressure_stays),
        cmocka_unit_test(without_host_memory_nothing_leaves),
        cmocka_unit_test(worker_evicts_and_remembers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
