/* The head alone: one record of 64 bytes a host whatever the number of shards, shares by weight, memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "flow/island/machine.h"
#include "flow/lower/lower.h"

enum { CLIENTS = 4, FIRST_CLIENT = 1000 };

struct stand {
    struct head *head;
    struct flow_effects effects;
    uint32_t mesh; /* the last one made */
};

static void say_to_head(struct stand *stand, uint64_t peer, const struct flow_entry *entry, struct str tail)
{
    struct flow_entry sent = *entry;
    sent.tail_bytes = (uint32_t)tail.len;
    flow_effects_clear(&stand->effects);
    head_step(stand->head,
              &(struct flow_event){.kind = FLOW_ENTRY, .peer = peer, .entry = &sent, .tail = tail},
              &stand->effects);
    for (size_t i = 0; i < stand->effects.list.len; i++)
        if (stand->effects.list.items[i].entry.kind == ENTRY_MESH)
            stand->mesh = stand->effects.list.items[i].entry.node;
}

static void open_peer(struct stand *stand, uint64_t peer)
{
    flow_effects_clear(&stand->effects);
    head_step(stand->head, &(struct flow_event){.kind = FLOW_OPENED, .peer = peer, .token = 100 + peer},
              &stand->effects);
}

static void stand_begin(struct stand *stand, uint32_t hosts, uint16_t devices, uint64_t bytes,
                        uint32_t window)
{
    *stand = (struct stand){.head = head_new(&(struct head_options){.window = window, .secret = 1})};
    for (uint32_t h = 0; h < hosts; h++) {
        struct flow_entry hello = {.kind = ENTRY_HELLO_WORKER, .count = devices, .args = {bytes}};
        open_peer(stand, 1 + h);
        say_to_head(stand, 1 + h, &hello, (struct str){"main\0address", 12});
    }
}

static void stand_end(struct stand *stand)
{
    flow_effects_done(&stand->effects);
    head_free(stand->head);
}

/* Program `number`: one value without arguments on the mesh of `devices`, called `calls` times. */
static void add_program(struct stand *stand, uint64_t peer, uint32_t number, uint32_t mesh, uint32_t devices,
                        int calls)
{
    struct program *program = program_new();
    program_add_mesh(program, &(struct flow_mesh){mesh, 1, {devices}});
    struct program_value value = {{IR_F32, 1, {devices}}, {.mesh = mesh, .axes = {1}}};
    uint32_t last = program_call(program, 1, mesh, NULL, 0, &value, 1);
    for (int i = 1; i < calls; i++)
        last = program_call(program, 1, mesh, &last, 1, &value, 1);
    program_result(program, last);
    struct buf bytes = {0};
    program_encode(program, &bytes);
    say_to_head(stand, peer, &(struct flow_entry){.kind = ENTRY_PROGRAM, .program = number}, buf_str(&bytes));
    buf_done(&bytes);
    program_free(program);
}

/* A client with a mesh of `devices` and program 1 on it. */
static void add_client(struct stand *stand, uint64_t peer, uint16_t weight, uint32_t devices, int calls)
{
    struct flow_entry hello = {.kind = ENTRY_HELLO_CLIENT, .count = weight, .node = 0x80000000u};
    open_peer(stand, peer);
    say_to_head(stand, peer, &hello, STR("client"));
    struct flow_entry ask = {.kind = ENTRY_MESH_NEW, .launch = 1, .count = 1};
    say_to_head(stand, peer, &ask, (struct str){(const char *)&devices, sizeof devices});
    add_program(stand, peer, 1, stand->mesh, devices, calls);
}

static void launch(struct stand *stand, uint64_t peer, uint32_t client, uint64_t number)
{
    struct flow_entry entry = {.kind = ENTRY_LAUNCH, .program = 1, .epoch = 1, .launch = number, .node = 1};
    entry.handle = (uint64_t)client << HANDLE_CLIENT_SHIFT | number;
    say_to_head(stand, peer, &entry, (struct str){0});
}

static void one_record_a_host(void **state)
{
    for (uint32_t shards = 1; shards <= 4096; shards *= 4)
        for (int calls = 1; calls <= 128; calls *= 128) {
            struct stand stand;
            uint32_t hosts = 16;
            stand_begin(&stand, hosts, 256, 1 << 30, 64);
            add_client(&stand, FIRST_CLIENT, 1, shards, calls);
            launch(&stand, FIRST_CLIENT, 1, 1); /* the first one brings the plans */
            launch(&stand, FIRST_CLIENT, 1, 2);
            uint32_t records = 0;
            for (size_t i = 0; i < stand.effects.list.len; i++) {
                const struct flow_effect *effect = &stand.effects.list.items[i];
                assert_int_equal(effect->entry.kind, ENTRY_LAUNCH);
                assert_int_equal(effect->tail.len, 0);
                assert_int_equal(effect->entry.ticket, 2);
                records++;
            }
            uint32_t used = (shards + 255) / 256;
            assert_int_equal(records, used);
            stand_end(&stand);
        }
}

static uint32_t launches_said(const struct stand *stand)
{
    uint32_t launches = 0;
    for (size_t i = 0; i < stand->effects.list.len; i++)
        launches += stand->effects.list.items[i].entry.kind == ENTRY_LAUNCH;
    return launches;
}

/* A full window is filled again as a whole when half of it is through. */
static void launches_leave_together(void **state)
{
    struct stand stand;
    stand_begin(&stand, 1, 1, 1 << 30, 8);
    add_client(&stand, FIRST_CLIENT, 1, 1, 1);
    uint32_t stamped = 0;
    for (uint64_t n = 1; n <= 20; n++) {
        launch(&stand, FIRST_CLIENT, 1, n);
        stamped += launches_said(&stand);
    }
    assert_int_equal(stamped, 8);
    for (uint64_t n = 1; n <= 20; n++) {
        say_to_head(&stand, 1, &(struct flow_entry){.kind = ENTRY_DONE, .client = 1, .launch = n},
                    (struct str){0});
        assert_int_equal(launches_said(&stand), n % 4 == 0 && n <= 12 ? 4 : 0);
    }
    stand_end(&stand);
}

/* One DONE speaks for all launches up to its own; those of other numbers, clients and hosts still run. */
static void one_done_for_many(void **state)
{
    struct stand stand;
    stand_begin(&stand, 1, 1, 1 << 30, 64);
    add_client(&stand, FIRST_CLIENT, 1, 1, 1);
    add_client(&stand, FIRST_CLIENT + 1, 1, 1, 1);
    for (uint64_t n = 1; n <= 10; n++)
        launch(&stand, FIRST_CLIENT + n % 2, n % 2 + 1, (n + 1) / 2);
    assert_int_equal(head_count(stand.head).running, 10);
    struct flow_entry done = {.kind = ENTRY_DONE, .client = 1, .launch = 2, .count = 1};
    struct flow_entry next = {.kind = ENTRY_DONE, .client = 1, .launch = 3}, other = next;
    assert_true(entry_join(&done, &next));
    assert_int_equal(done.launch, 3);
    assert_int_equal(done.count, 2);
    assert_false(entry_join(&done, &next)); /* not the one that follows */
    other.launch = 4;
    other.client = 2;
    assert_false(entry_join(&done, &other));
    say_to_head(&stand, 1, &done, (struct str){0});
    assert_int_equal(head_count(stand.head).running, 8);
    say_to_head(&stand, 1, &done, (struct str){0}); /* said before */
    assert_int_equal(head_count(stand.head).running, 8);
    done = (struct flow_entry){.kind = ENTRY_DONE, .client = 2, .launch = 5, .count = 5};
    say_to_head(&stand, 1, &done, (struct str){0});
    assert_int_equal(head_count(stand.head).running, 3);
    done = (struct flow_entry){.kind = ENTRY_DONE, .client = 1, .launch = 5, .count = UINT16_MAX};
    say_to_head(&stand, 1, &done, (struct str){0});
    assert_int_equal(head_count(stand.head).running, 0);
    stand_end(&stand);
}

/* A value that is released while a launch that names it waits for its ticket costs no message of its own. */
static void a_release_rides_on_the_last_launch(void **state)
{
    struct stand stand;
    stand_begin(&stand, 1, 1, 1 << 30, 1);
    add_client(&stand, FIRST_CLIENT, 1, 1, 1);
    struct program *program = program_new();
    program_add_mesh(program, &(struct flow_mesh){stand.mesh, 1, {1}});
    struct program_value value = {{IR_F32, 1, {1}}, {.mesh = stand.mesh, .axes = {1}}};
    uint32_t arg = program_arg(program, &value.type, &value.sharding);
    program_result(program, program_call(program, 1, stand.mesh, &arg, 1, &value, 1));
    struct buf bytes = {0};
    program_encode(program, &bytes);
    say_to_head(&stand, FIRST_CLIENT, &(struct flow_entry){.kind = ENTRY_PROGRAM, .program = 2},
                buf_str(&bytes));
    buf_done(&bytes);
    program_free(program);
    launch(&stand, FIRST_CLIENT, 1, 1);
    uint64_t handle = UINT64_C(1) << HANDLE_CLIENT_SHIFT | 1;
    for (uint64_t n = 2; n <= 3; n++) { /* the window is full: both wait */
        struct flow_entry entry = {.kind = ENTRY_LAUNCH, .program = 2, .epoch = 1, .launch = n, .node = 1};
        entry.flags = ENTRY_ENDS_1; /* a client's word of it does not count */
        entry.count = 1;
        entry.args[0] = handle;
        entry.handle = UINT64_C(1) << HANDLE_CLIENT_SHIFT | n;
        say_to_head(&stand, FIRST_CLIENT, &entry, (struct str){0});
    }
    say_to_head(&stand, FIRST_CLIENT, &(struct flow_entry){.kind = ENTRY_RELEASE},
                (struct str){(const char *)&handle, sizeof handle});
    for (uint64_t n = 1; n <= 2; n++) {
        say_to_head(&stand, 1, &(struct flow_entry){.kind = ENTRY_DONE, .client = 1, .launch = n},
                    (struct str){0});
        uint32_t launches = 0;
        for (size_t i = 0; i < stand.effects.list.len; i++) {
            const struct flow_entry *entry = &stand.effects.list.items[i].entry;
            assert_int_not_equal(entry->kind, ENTRY_RELEASE);
            if (entry->kind != ENTRY_LAUNCH)
                continue;
            launches++;
            assert_int_equal(entry->flags, n == 2 ? ENTRY_ENDS_0 : 0); /* the second is the last to name it */
        }
        assert_int_equal(launches, 1);
    }
    stand_end(&stand);
}

/* Four clients that always have launches waiting get the device in proportion to their weights. */
static void shares_follow_weights(void **state)
{
    static const uint16_t weights[][CLIENTS] = {{1, 1, 1, 1}, {1, 2, 4, 8}};
    for (int w = 0; w < 2; w++) {
        struct stand stand;
        uint64_t numbers[CLIENTS] = {0}, done[CLIENTS] = {0}, total = 0, sum = 0;
        VEC(struct flow_entry) under_way = {0};
        stand_begin(&stand, 1, 1, 1 << 30, 4);
        for (uint32_t c = 0; c < CLIENTS; c++)
            add_client(&stand, FIRST_CLIENT + c, weights[w][c], 1, 1);
        for (int i = 0; i < 3; i++)
            for (uint32_t c = 0; c < CLIENTS; c++) {
                launch(&stand, FIRST_CLIENT + c, c + 1, ++numbers[c]);
                for (size_t e = 0; e < stand.effects.list.len; e++)
                    if (stand.effects.list.items[e].entry.kind == ENTRY_LAUNCH)
                        vec_push(&under_way, stand.effects.list.items[e].entry);
            }
        while (total < 6000) {
            struct flow_entry first = under_way.items[0];
            vec_remove(&under_way, 0);
            struct flow_entry over = {.kind = ENTRY_DONE, .client = first.client, .launch = first.launch};
            over.args[0] = 330000;
            done[first.client - 1]++;
            total++;
            say_to_head(&stand, 1, &over, (struct str){0});
            for (size_t e = 0; e < stand.effects.list.len; e++)
                if (stand.effects.list.items[e].entry.kind == ENTRY_LAUNCH)
                    vec_push(&under_way, stand.effects.list.items[e].entry);
            uint32_t c = first.client - 1;
            launch(&stand, FIRST_CLIENT + c, c + 1, ++numbers[c]);
            for (size_t e = 0; e < stand.effects.list.len; e++)
                if (stand.effects.list.items[e].entry.kind == ENTRY_LAUNCH)
                    vec_push(&under_way, stand.effects.list.items[e].entry);
        }
        for (uint32_t c = 0; c < CLIENTS; c++)
            sum += weights[w][c];
        for (uint32_t c = 0; c < CLIENTS; c++) {
            uint64_t fair = 6000 * weights[w][c] / sum;
            assert_in_range(done[c], fair * 95 / 100, fair * 105 / 100);
        }
        vec_done(&under_way);
        stand_end(&stand);
    }
}

/* A launch that no memory is left for waits; the ticket of another client's is stamped before it. */
static void waits_for_memory_without_a_ticket(void **state)
{
    struct stand stand;
    stand_begin(&stand, 1, 2, 4, 64);
    add_client(&stand, FIRST_CLIENT, 1, 1, 1);
    add_client(&stand, FIRST_CLIENT + 1, 1, 1, 1);
    launch(&stand, FIRST_CLIENT, 1, 1);
    assert_int_equal(head_count(stand.head).running, 1);
    launch(&stand, FIRST_CLIENT, 1, 2);
    assert_int_equal(head_count(stand.head).queued, 1);
    launch(&stand, FIRST_CLIENT + 1, 2, 1); /* on the other device */
    assert_int_equal(head_count(stand.head).tickets, 2);
    uint64_t handle = UINT64_C(1) << HANDLE_CLIENT_SHIFT | 1;
    say_to_head(&stand, 1, &(struct flow_entry){.kind = ENTRY_DONE, .client = 1, .launch = 1},
                (struct str){0});
    assert_int_equal(head_count(stand.head).queued, 1); /* the result still takes the room */
    say_to_head(&stand, FIRST_CLIENT, &(struct flow_entry){.kind = ENTRY_RELEASE},
                (struct str){(const char *)&handle, sizeof handle});
    assert_int_equal(head_count(stand.head).queued, 0);
    assert_int_equal(head_count(stand.head).tickets, 3);
    stand_end(&stand);
}

/* A client that names another's value, or its own before it is there, gets a failure and nothing else. */
static void foreign_handles_are_refused(void **state)
{
    struct stand stand;
    stand_begin(&stand, 1, 2, 1 << 20, 64);
    add_client(&stand, FIRST_CLIENT, 1, 1, 1);
    add_client(&stand, FIRST_CLIENT + 1, 1, 1, 1);
    launch(&stand, FIRST_CLIENT, 1, 1);
    struct flow_entry entry = {.kind = ENTRY_LAUNCH, .program = 1, .epoch = 1, .launch = 1, .node = 1};
    entry.handle = UINT64_C(1) << HANDLE_CLIENT_SHIFT | 5; /* client 1's */
    say_to_head(&stand, FIRST_CLIENT + 1, &entry, (struct str){0});
    assert_int_equal(stand.effects.list.len, 1);
    assert_int_equal(stand.effects.list.items[0].kind, FLOW_CLOSE);
    uint64_t handle = UINT64_C(1) << HANDLE_CLIENT_SHIFT | 1;
    say_to_head(&stand, FIRST_CLIENT + 1, &(struct flow_entry){.kind = ENTRY_RELEASE},
                (struct str){(const char *)&handle, sizeof handle});
    assert_int_equal(stand.effects.list.len, 0);
    assert_int_equal(head_count(stand.head).objects, 1);
    stand_end(&stand);
}

/* A worker may tell the head that it has a shard before the head has read the client's VALUE: the connections
 * are different ones. The launch that takes the value must not wait for that word for ever. */
static void shard_is_there_before_its_value_is_known(void **state)
{
    for (int early = 0; early <= 2; early++) {
        struct stand stand;
        stand_begin(&stand, 2, 1, 1 << 20, 64);
        add_client(&stand, FIRST_CLIENT, 1, 2, 1);
        struct program_value value = {{IR_F32, 1, {2}}, {.mesh = stand.mesh, .axes = {1}}};
        struct program *program = program_new();
        program_add_mesh(program, &(struct flow_mesh){stand.mesh, 1, {2}});
        program_result(program, program_arg(program, &value.type, &value.sharding));
        struct buf bytes = {0};
        program_encode(program, &bytes);
        say_to_head(&stand, FIRST_CLIENT, &(struct flow_entry){.kind = ENTRY_PROGRAM, .program = 2},
                    buf_str(&bytes));
        program_free(program);

        uint64_t handle = UINT64_C(1) << HANDLE_CLIENT_SHIFT | HANDLE_PUT | 1;
        struct flow_entry there = {.kind = ENTRY_PUT_DONE, .handle = handle};
        for (int i = 0; i < early; i++) {
            there.node = (uint32_t)i;
            say_to_head(&stand, 1 + (uint64_t)i, &there, (struct str){0});
        }
        buf_clear(&bytes);
        pack_type(&bytes, &value.type);
        buf_add(&bytes, value.sharding.axes, sizeof value.sharding.axes);
        struct flow_entry put = {.kind = ENTRY_VALUE, .handle = handle, .node = stand.mesh, .epoch = 1};
        say_to_head(&stand, FIRST_CLIENT, &put, buf_str(&bytes));
        struct flow_entry entry = {.kind = ENTRY_LAUNCH, .program = 2, .epoch = 1, .launch = 1, .node = 1};
        entry.handle = UINT64_C(1) << HANDLE_CLIENT_SHIFT | 1;
        entry.count = 1;
        entry.args[0] = handle;
        say_to_head(&stand, FIRST_CLIENT, &entry, (struct str){0});
        for (int i = early; i < 2; i++) {
            assert_int_equal(head_count(stand.head).queued, 1);
            there.node = 77; /* no shard of the value: a client may put what it likes */
            say_to_head(&stand, 1 + (uint64_t)i, &there, (struct str){0});
            there.node = 1 - (uint32_t)i; /* the other host's */
            say_to_head(&stand, 1 + (uint64_t)i, &there, (struct str){0});
            assert_int_equal(head_count(stand.head).queued, 1);
            there.node = (uint32_t)i;
            say_to_head(&stand, 1 + (uint64_t)i, &there, (struct str){0});
        }
        assert_int_equal(head_count(stand.head).queued, 0);
        assert_int_equal(head_count(stand.head).tickets, 1);
        buf_done(&bytes);
        stand_end(&stand);
    }
}

/* A shard that comes after its value has failed and is released goes again; the head keeps nothing. */
static void late_shards_go(void **state)
{
    struct stand stand;
    stand_begin(&stand, 1, 1, 4, 64);
    add_client(&stand, FIRST_CLIENT, 1, 1, 1);
    struct program_value value = {{IR_F32, 1, {2}}, {.mesh = stand.mesh, .axes = {1}}};
    uint64_t handle = UINT64_C(1) << HANDLE_CLIENT_SHIFT | HANDLE_PUT | 1;
    struct buf bytes = {0};
    pack_type(&bytes, &value.type);
    buf_add(&bytes, value.sharding.axes, sizeof value.sharding.axes);
    struct flow_entry put = {.kind = ENTRY_VALUE, .handle = handle, .node = 999};
    say_to_head(&stand, FIRST_CLIENT, &put, buf_str(&bytes));
    assert_int_equal(stand.effects.list.items[0].entry.kind, ENTRY_FAILED);
    say_to_head(&stand, FIRST_CLIENT, &(struct flow_entry){.kind = ENTRY_RELEASE},
                (struct str){(const char *)&handle, sizeof handle});
    say_to_head(&stand, 1, &(struct flow_entry){.kind = ENTRY_PUT_DONE, .handle = handle}, (struct str){0});
    assert_int_equal(stand.effects.list.len, 1);
    assert_int_equal(stand.effects.list.items[0].entry.kind, ENTRY_RELEASE);
    assert_int_equal(stand.effects.list.items[0].peer, 1);
    assert_int_equal(head_count(stand.head).objects, 0);
    buf_done(&bytes);
    stand_end(&stand);
}

/* Workers know a launch by its number: a client that uses one twice is cut off. */
static void launch_numbers_ascend(void **state)
{
    struct stand stand;
    stand_begin(&stand, 1, 1, 1 << 20, 64);
    add_client(&stand, FIRST_CLIENT, 1, 1, 1);
    launch(&stand, FIRST_CLIENT, 1, 1);
    struct flow_entry again = {.kind = ENTRY_LAUNCH, .program = 1, .epoch = 1, .launch = 1, .node = 1};
    again.handle = UINT64_C(1) << HANDLE_CLIENT_SHIFT | 2;
    say_to_head(&stand, FIRST_CLIENT, &again, (struct str){0});
    assert_int_equal(stand.effects.list.len, 1);
    assert_int_equal(stand.effects.list.items[0].kind, FLOW_CLOSE);
    assert_int_equal(head_count(stand.head).running, 1);
    stand_end(&stand);
}

static uint32_t count_failures(const struct stand *stand, enum fault_reason reason)
{
    uint32_t count = 0;
    for (size_t i = 0; i < stand->effects.list.len; i++) {
        const struct flow_effect *effect = &stand->effects.list.items[i];
        struct fault fault;
        bool failed = effect->entry.kind == ENTRY_FAILED ||
                      (effect->entry.kind == ENTRY_MESH && effect->entry.flags & ENTRY_IS_FAILED);
        if (failed && fault_decode(buf_str(&effect->tail), &fault))
            count += fault.reason == reason;
    }
    return count;
}

/* A client that never stops asking has typed failures for an answer, and the head keeps no more of it. */
static void quotas_fail_typed(void **state)
{
    struct stand stand;
    stand_begin(&stand, 1, 1, 1 << 20, 1);
    add_client(&stand, FIRST_CLIENT, 1, 1, 1);
    uint32_t one = 1, refused = 0;
    struct flow_entry ask = {.kind = ENTRY_MESH_NEW, .launch = 1, .count = 1};
    for (int i = 0; i < 5000; i++) {
        say_to_head(&stand, FIRST_CLIENT, &ask, (struct str){(const char *)&one, sizeof one});
        refused += count_failures(&stand, FAULT_CANCELLED);
    }
    assert_int_equal(head_count(stand.head).meshes, 4096);
    assert_int_equal(refused, 5000 - 4095);
    launch(&stand, FIRST_CLIENT, 1, 1); /* takes the window: what follows waits */
    struct flow_entry many = {.kind = ENTRY_LAUNCH, .program = 1, .epoch = 1, .node = 65535};
    refused = 0;
    for (uint64_t i = 0; i < 20; i++) {
        many.launch = 2 + i;
        many.program = 7; /* there is none: it fails, but its results stay until they are released */
        many.handle = UINT64_C(1) << HANDLE_CLIENT_SHIFT | (2 + i * 65535);
        say_to_head(&stand, FIRST_CLIENT, &many, (struct str){0});
        refused += count_failures(&stand, FAULT_OUT_OF_MEMORY);
    }
    assert_int_equal(refused, 4);
    assert_in_range(head_count(stand.head).objects, 65535, 1 << 20);
    for (uint32_t p = 0; p < 70000; p++)
        say_to_head(&stand, FIRST_CLIENT, &(struct flow_entry){.kind = ENTRY_PROGRAM, .program = 2 + p},
                    STR("x"));
    assert_int_equal(head_count(stand.head).programs, 65536);
    stand_end(&stand);
}

/* A client from before must have its token; one that does not come is gone for the workers after a while. */
static void identity_takes_the_token(void **state)
{
    struct stand stand;
    stand_begin(&stand, 0, 1, 1 << 20, 1);
    struct flow_entry worker = {.kind = ENTRY_HELLO_WORKER, .flags = ENTRY_IS_KEPT, .count = 1, .node = 3};
    worker.args[0] = 1 << 20;
    worker.args[1] = 55;
    open_peer(&stand, 1);
    say_to_head(&stand, 1, &worker, (struct str){"main\0address", 12});
    assert_int_equal(stand.effects.list.items[0].entry.node, 3);
    for (uint32_t c = 7; c <= 8; c++)
        say_to_head(&stand, 1,
                    &(struct flow_entry){
                        .kind = ENTRY_CLIENT, .flags = ENTRY_IS_KEPT, .client = c, .args = {1000 + c}},
                    (struct str){0});
    say_to_head(&stand, 1, &(struct flow_entry){.kind = ENTRY_CLIENT}, (struct str){0});
    open_peer(&stand, 2); /* another worker of the same number */
    say_to_head(&stand, 2, &worker, (struct str){"main\0address", 12});
    assert_int_equal(stand.effects.list.items[0].entry.kind, ENTRY_WELCOME);
    assert_int_equal(stand.effects.list.items[0].entry.flags, ENTRY_IS_FAILED | ENTRY_IS_DOWN);
    assert_int_equal(stand.effects.list.items[1].kind, FLOW_CLOSE);

    struct flow_entry hello = {.kind = ENTRY_HELLO_CLIENT, .flags = ENTRY_IS_KEPT, .count = 1};
    hello.client = 7;
    static const uint64_t tokens[] = {1008, 1007, 1007};
    uint32_t given[3] = {0};
    for (int i = 0; i < 3; i++) {
        hello.args[0] = tokens[i];
        open_peer(&stand, FIRST_CLIENT + (uint64_t)i);
        say_to_head(&stand, FIRST_CLIENT + (uint64_t)i, &hello, STR("client"));
        for (size_t k = 0; k < stand.effects.list.len; k++)
            if (stand.effects.list.items[k].entry.kind == ENTRY_WELCOME)
                given[i] = stand.effects.list.items[k].entry.client;
    }
    assert_int_not_equal(given[0], 7); /* not its token */
    assert_int_equal(given[1], 7);
    assert_int_not_equal(given[2], 7); /* it is there already */
    assert_int_equal(head_count(stand.head).clients, 4);
    flow_effects_clear(&stand.effects);
    head_step(stand.head, &(struct flow_event){.kind = FLOW_TICK, .now_ns = INT64_C(60000000000)},
              &stand.effects);
    assert_int_equal(stand.effects.list.len, 1); /* client 8 has not come: its worker drops what it has */
    assert_int_equal(stand.effects.list.items[0].entry.client, 8);
    assert_int_equal(stand.effects.list.items[0].entry.flags, ENTRY_IS_DOWN);
    stand_end(&stand);
}

static void tick_at(struct stand *stand, int64_t seconds)
{
    flow_effects_clear(&stand->effects);
    head_step(stand->head, &(struct flow_event){.kind = FLOW_TICK, .now_ns = seconds * INT64_C(1000000000)},
              &stand->effects);
}

/* Two hosts that live lose their connection: launches of both end, after the time in which a host that is
 * gone would have been seen lost. A client's put to such a host fails, and leaves nothing. */
static void broken_connection_ends_waits(void **state)
{
    struct stand stand;
    struct flow_entry down = {.kind = ENTRY_HOST, .flags = ENTRY_IS_DOWN, .node = 1};
    struct fault fault;
    stand_begin(&stand, 2, 1, 1 << 20, 4);
    add_client(&stand, FIRST_CLIENT, 1, 2, 1);
    launch(&stand, FIRST_CLIENT, 1, 1);
    say_to_head(&stand, 1, &down, (struct str){0});
    launch(&stand, FIRST_CLIENT, 1, 2); /* goes over another connection */
    tick_at(&stand, 1);
    assert_int_equal(stand.effects.list.len, 0);
    tick_at(&stand, 3);
    assert_int_equal(stand.effects.list.len, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct flow_effect *effect = &stand.effects.list.items[i];
        assert_int_equal(effect->entry.kind, ENTRY_LOST);
        assert_int_equal(effect->entry.launch, 1);
        assert_true(fault_decode(buf_str(&effect->tail), &fault));
        assert_int_equal(fault.reason, FAULT_CANCELLED);
        assert_true(fault.lost);
    }
    tick_at(&stand, 6); /* said once */
    assert_int_equal(stand.effects.list.len, 0);

    uint64_t handle = UINT64_C(1) << HANDLE_CLIENT_SHIFT | HANDLE_PUT | 1;
    struct flow_entry value = {.kind = ENTRY_VALUE, .handle = handle, .node = stand.mesh, .epoch = 1};
    struct buf tail = {0};
    struct ir_type type = {IR_F32, 1, {2}};
    pack_type(&tail, &type);
    buf_add(&tail, (const uint8_t[IR_RANK_MAX]){1}, IR_RANK_MAX);
    say_to_head(&stand, FIRST_CLIENT, &value, buf_str(&tail));
    say_to_head(&stand, 1, &(struct flow_entry){.kind = ENTRY_PUT_DONE, .handle = handle}, (struct str){0});
    say_to_head(&stand, FIRST_CLIENT, &down, (struct str){0});
    tick_at(&stand, 9);
    assert_int_equal(stand.effects.list.len, 1);
    assert_int_equal(stand.effects.list.items[0].entry.kind, ENTRY_FAILED);
    assert_true(head_count(stand.head).objects == 3);
    buf_clear(&tail);
    pack_u64(&tail, handle);
    say_to_head(&stand, FIRST_CLIENT, &(struct flow_entry){.kind = ENTRY_RELEASE}, buf_str(&tail));
    buf_done(&tail);
    assert_int_equal(stand.effects.list.len, 2); /* to both hosts */
    assert_true(head_count(stand.head).objects == 2);
    stand_end(&stand);
}

/* The slice of one device of the mesh, with program `number` on it. */
static void add_slice(struct stand *stand, uint32_t number, uint32_t mesh, uint32_t at)
{
    uint32_t place[] = {at, 1};
    struct flow_entry ask = {.kind = ENTRY_MESH_SLICE, .launch = 1, .count = 1, .node = mesh};
    say_to_head(stand, FIRST_CLIENT, &ask, (struct str){(const char *)place, sizeof place});
    add_program(stand, FIRST_CLIENT, number, stand->mesh, 1, 1);
}

/* Launches the program; returns the reason of its failure, FAULT_NONE: it runs. */
static enum fault_reason launch_on(struct stand *stand, uint32_t program, uint32_t epoch, uint64_t number)
{
    struct flow_entry entry = {.kind = ENTRY_LAUNCH, .program = program, .epoch = epoch, .node = 1};
    entry.launch = number;
    entry.handle = UINT64_C(1) << HANDLE_CLIENT_SHIFT | number;
    say_to_head(stand, FIRST_CLIENT, &entry, (struct str){0});
    struct fault fault = {0};
    for (size_t i = 0; i < stand->effects.list.len; i++)
        if (stand->effects.list.items[i].entry.kind == ENTRY_FAILED)
            assert_true(fault_decode(buf_str(&stand->effects.list.items[i].tail), &fault));
    assert_int_equal(launches_said(stand), fault.reason == FAULT_NONE);
    return fault.reason;
}

/* A mesh loses a host and no device is free. A slice of what lives is as good as one made before the loss;
 * a slice with the lost device is refused for that loss, until a host comes. */
static void hurt_mesh_is_sliced(void **state)
{
    struct stand stand;
    stand_begin(&stand, 2, 1, 1 << 20, 8);
    add_client(&stand, FIRST_CLIENT, 1, 2, 1);
    uint32_t mesh = stand.mesh;
    add_slice(&stand, 2, mesh, 0);
    flow_effects_clear(&stand.effects);
    head_step(stand.head, &(struct flow_event){.kind = FLOW_CLOSED, .peer = 2}, &stand.effects);
    uint32_t epoch = 0;
    for (size_t i = 0; i < stand.effects.list.len; i++)
        if (stand.effects.list.items[i].entry.kind == ENTRY_MESH)
            epoch = stand.effects.list.items[i].entry.epoch;
    assert_true(epoch > 0);
    add_slice(&stand, 3, mesh, 0);
    add_slice(&stand, 4, mesh, 1);
    assert_int_equal(launch_on(&stand, 1, epoch, 1), FAULT_DEVICE_LOST);
    assert_int_equal(launch_on(&stand, 2, epoch, 2), FAULT_NONE);
    assert_int_equal(launch_on(&stand, 3, epoch, 3), FAULT_NONE);
    assert_int_equal(launch_on(&stand, 4, epoch, 4), FAULT_DEVICE_LOST);

    struct flow_entry hello = {.kind = ENTRY_HELLO_WORKER, .count = 1, .args = {1 << 20}};
    open_peer(&stand, 3);
    say_to_head(&stand, 3, &hello, (struct str){"main\0elsewhere", 14});
    for (size_t i = 0; i < stand.effects.list.len; i++)
        if (stand.effects.list.items[i].entry.kind == ENTRY_MESH)
            epoch = stand.effects.list.items[i].entry.epoch;
    assert_int_equal(launch_on(&stand, 4, epoch, 5), FAULT_NONE);
    stand_end(&stand);
}

/* Workers know that the client of a broken connection has ended. So who comes back under its number and token
 * gets another number, whose launches they carry out. */
static void an_ended_client_gets_another_number(void **state)
{
    struct stand stand;
    struct flow_entry hello = {.kind = ENTRY_HELLO_CLIENT, .flags = ENTRY_IS_KEPT, .client = 7, .count = 1};
    uint32_t given[2] = {0};
    hello.args[0] = 1007;
    stand_begin(&stand, 1, 1, 1 << 20, 1);
    for (uint64_t i = 0; i < 2; i++) {
        open_peer(&stand, FIRST_CLIENT + 10 + i);
        say_to_head(&stand, FIRST_CLIENT + 10 + i, &hello, STR("client"));
        for (size_t k = 0; k < stand.effects.list.len; k++)
            if (stand.effects.list.items[k].entry.kind == ENTRY_WELCOME)
                given[i] = stand.effects.list.items[k].entry.client;
        flow_effects_clear(&stand.effects);
        head_step(stand.head, &(struct flow_event){.kind = FLOW_CLOSED, .peer = FIRST_CLIENT + 10 + i},
                  &stand.effects);
    }
    assert_int_equal(given[0], 7); /* of an earlier head */
    assert_true(given[1] != 0 && given[1] != 7);
    stand_end(&stand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ended_client_gets_another_number),
        cmocka_unit_test(one_record_a_host),
        cmocka_unit_test(launches_leave_together),
        cmocka_unit_test(one_done_for_many),
        cmocka_unit_test(a_release_rides_on_the_last_launch),
        cmocka_unit_test(shares_follow_weights),
        cmocka_unit_test(waits_for_memory_without_a_ticket),
        cmocka_unit_test(foreign_handles_are_refused),
        cmocka_unit_test(shard_is_there_before_its_value_is_known),
        cmocka_unit_test(late_shards_go),
        cmocka_unit_test(launch_numbers_ascend),
        cmocka_unit_test(quotas_fail_typed),
        cmocka_unit_test(identity_takes_the_token),
        cmocka_unit_test(broken_connection_ends_waits),
        cmocka_unit_test(hurt_mesh_is_sliced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
