/* One suite for every carrier of frames: order, back-pressure, a peer that ends; and bytes that are no
 * frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/rng.h"
#include "flow/wire/ends.h"

enum { PAYLOAD_BYTES = 20000, LARGE_BYTES = 3 << 20 };

struct taken {
    uint64_t next;
    uint32_t count;
};

/* Entry n has the number n, and n % 5000 bytes n, or a tensor of 20,000 of them. */
static bool take(void *context, const struct flow_entry *entry, struct str tail)
{
    struct taken *taken = context;
    assert_int_equal(entry->launch, taken->next);
    assert_int_equal(tail.len, entry->count ? PAYLOAD_BYTES : taken->next % 5000);
    for (size_t i = 0; i < tail.len; i++)
        if ((uint8_t)tail.data[i] != (uint8_t)taken->next)
            fail_msg("byte %zu of entry %llu differs", i, (unsigned long long)taken->next);
    taken->next++;
    return taken->next % 7 != 0; /* pauses now and then */
}

static void put_number(struct wire *wire, uint64_t number)
{
    struct flow_entry entry = {.kind = ENTRY_DATA, .launch = number, .count = number % 50 == 49};
    struct tensor *payload = NULL;
    struct buf tail = {0};
    if (entry.count) {
        payload = tensor_new(&(struct ir_type){IR_U8, 1, {PAYLOAD_BYTES}});
        memset(payload->data, (int)number, PAYLOAD_BYTES);
    } else {
        buf_reserve(&tail, 5000);
        memset(tail.data, (int)number, number % 5000);
        tail.len = number % 5000;
    }
    flow_wire_put(wire, &entry, buf_str(&tail), payload);
    tensor_unref(payload);
    buf_done(&tail);
}

/* Both ends send 3,000 entries, a few or many at a time, and read now and then. */
static void entries_arrive_in_order(void **state)
{
    enum { ENTRIES = 3000 };
    for (int c = 0; c < CARRIERS && carrier_is_here(carriers[c]); c++) {
        struct ends ends;
        struct taken taken[2] = {0};
        struct rng rng;
        uint64_t sent[2] = {0};
        rng_seed(&rng, 3);
        connect_ends(&ends, carriers[c]);
        flow_wire_flush(ends.a);
        for (bool first = true; taken[0].next < ENTRIES || taken[1].next < ENTRIES; first = false) {
            int side = first ? 0 : (int)rng_below(&rng, 2); /* who has connected speaks first */
            struct wire *wire = side ? ends.b : ends.a;
            for (uint64_t n = rng_below(&rng, 200); n > 0 && sent[side] < ENTRIES; n--)
                put_number(wire, sent[side]++);
            ends_turn(&ends);
            assert_true(flow_wire_flush(wire) >= 0);
            assert_int_equal(flow_wire_read(wire, take, &taken[side], NULL), 0);
        }
        assert_string_equal(ends.b->ops->name, carriers[c]);
        close_ends(&ends);
    }
}

static bool count_entry(void *context, const struct flow_entry *entry, struct str tail)
{
    (*(uint64_t *)context)++;
    return true;
}

/* A writer that is faster than its reader keeps the rest, and is told when there is room. */
static void full_carrier_pushes_back(void **state)
{
    for (int c = 0; c < CARRIERS && carrier_is_here(carriers[c]); c++) {
        struct ends ends;
        uint64_t entries = 0;
        connect_ends(&ends, carriers[c]);
        struct tensor *large = tensor_new(&(struct ir_type){IR_U8, 1, {LARGE_BYTES}});
        for (int i = 0; i < 8; i++)
            flow_wire_put(ends.a, &(struct flow_entry){.kind = ENTRY_DATA}, (struct str){0}, large);
        tensor_unref(large);
        assert_int_equal(flow_wire_flush(ends.a), 1);
        assert_int_equal(flow_wire_flush(ends.a), 1); /* still full, and broken by no further try */
        while (entries < 8) {
            wait_for_any(&ends, flow_wire_is_pending(ends.a), true);
            assert_int_equal(flow_wire_read(ends.b, count_entry, &entries, NULL), 0);
            uint64_t none = 0;
            assert_int_equal(flow_wire_read(ends.a, count_entry, &none, NULL), 0);
            assert_true(flow_wire_flush(ends.a) >= 0);
        }
        assert_false(flow_wire_is_pending(ends.a));
        close_ends(&ends);
    }
}

/* Bytes that a peer had written before it ended are read; then the connection ends on this side too. */
static void peer_ends_after_its_words(void **state)
{
    for (int c = 0; c < CARRIERS && carrier_is_here(carriers[c]); c++)
        for (int speaks = 0; speaks < 2; speaks++) {
            struct ends ends;
            struct taken taken = {0};
            struct error error;
            uint64_t count = 0;
            connect_ends(&ends, carriers[c]);
            for (uint64_t n = 0; n < 6; n++)
                put_number(ends.a, n);
            assert_int_equal(flow_wire_flush(ends.a), 0);
            if (speaks) { /* both directions are known */
                wait_for(&ends, ends.b);
                assert_int_equal(flow_wire_read(ends.b, take, &taken, NULL), 0);
                put_number(ends.b, 0);
                assert_int_equal(flow_wire_flush(ends.b), 0);
                put_number(ends.a, 6);
                assert_int_equal(flow_wire_flush(ends.a), 0);
            }
            flow_wire_free(ends.a);
            ends.a = NULL;
            int rc = 0;
            while (rc == 0) {
                wait_for(&ends, ends.b);
                rc = flow_wire_read(ends.b, count_entry, &count, &error);
            }
            assert_int_equal(rc, ERROR_UNAVAILABLE);
            assert_int_equal(taken.next + count, speaks ? 7 : 6);
            close_ends(&ends);
        }
}

/* A connecting side that ends at once, without a word. */
static void silent_peer_ends(void **state)
{
    for (int c = 0; c < CARRIERS && carrier_is_here(carriers[c]); c++) {
        struct ends ends;
        uint64_t count = 0;
        connect_ends(&ends, carriers[c]);
        flow_wire_free(ends.a);
        ends.a = NULL;
        int rc = 0;
        while (rc == 0) {
            wait_for(&ends, ends.b);
            rc = flow_wire_read(ends.b, count_entry, &count, NULL);
        }
        assert_int_equal(rc, ERROR_UNAVAILABLE);
        close_ends(&ends);
    }
}

static void garbage_is_refused(void **state)
{
    struct rng rng;
    rng_seed(&rng, 5);
    int refused = 0;
    for (int i = 0; i < 300; i++) {
        struct ends ends;
        uint64_t entries = 0;
        connect_ends(&ends, "sockets");
        for (int k = 0; k < 3; k++)
            flow_wire_put(ends.a, &(struct flow_entry){.kind = ENTRY_DATA}, STR("some bytes"), NULL);
        uint8_t bytes[238];
        assert_int_equal(flow_wire_flush(ends.a), 0);
        wait_for(&ends, ends.b);
        assert_int_equal(recv(ends.b->fd, bytes, sizeof bytes, MSG_WAITALL), sizeof bytes);
        bytes[i % 2 ? rng_below(&rng, 16) : rng_below(&rng, sizeof bytes)] ^=
            (uint8_t)(1 + rng_below(&rng, 255));
        assert_int_equal(send(ends.a->fd, bytes, sizeof bytes, 0), sizeof bytes);
        wait_for(&ends, ends.b);
        struct error error;
        int rc = flow_wire_read(ends.b, count_entry, &entries, &error);
        assert_true(rc == 0 || rc == ERROR_CORRUPT);
        refused += rc != 0;
        close_ends(&ends);
    }
    assert_true(refused > 100);
}

/* A peer that announces 2 GB and sends 80 bytes takes no memory for the rest. */
static void announced_bytes_take_no_memory(void **state)
{
    struct ends ends;
    uint64_t entries = 0;
    connect_ends(&ends, "sockets");
    struct {
        char magic[4];
        uint32_t entries;
        uint64_t bytes;
        struct flow_entry entry;
    } frame = {{'P', 'H', 'X', 'F'}, 1, sizeof(struct flow_entry) + ENTRY_TAIL_MAX, {.kind = ENTRY_DATA}};
    frame.entry.tail_bytes = ENTRY_TAIL_MAX;
    assert_int_equal(send(ends.a->fd, &frame, sizeof frame, 0), sizeof frame);
    wait_for(&ends, ends.b);
    assert_int_equal(flow_wire_read(ends.b, count_entry, &entries, NULL), 0);
    assert_int_equal(entries, 0);
    assert_in_range(ends.b->in.cap, 1, 4 * WIRE_READ_MAX);
    close_ends(&ends);
}

/* A machine that vanishes sends nothing any more: TCP on the other one asks, and gives up in time. */
static void a_silent_machine_is_noticed(void **state)
{
    struct ends ends;
    connect_ends(&ends, "sockets");
    const struct wire *const both[] = {ends.a, ends.b};
    for (int i = 0; i < 2; i++) {
        int asks = 0, unanswered_ms = 0;
        socklen_t len = sizeof asks;
        assert_int_equal(getsockopt(both[i]->fd, SOL_SOCKET, SO_KEEPALIVE, &asks, &len), 0);
        assert_int_equal(getsockopt(both[i]->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, &len), 0);
        assert_true(asks && unanswered_ms > 0 && unanswered_ms <= 30000);
    }
    close_ends(&ends);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_arrive_in_order),     cmocka_unit_test(full_carrier_pushes_back),
        cmocka_unit_test(peer_ends_after_its_words),   cmocka_unit_test(silent_peer_ends),
        cmocka_unit_test(garbage_is_refused),          cmocka_unit_test(announced_bytes_take_no_memory),
        cmocka_unit_test(a_silent_machine_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
