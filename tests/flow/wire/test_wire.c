/* Frames over sockets, and bytes that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rng.h"
#include "flow/wire/wire.h"

struct ends {
    char folder[64], address[128];
    struct wire *a, *b;
};

static void connect_ends(struct ends *ends)
{
    int listener;
    struct error error;
    snprintf(ends->folder, sizeof ends->folder, "/tmp/test-wire-XXXXXX");
    assert_non_null(mkdtemp(ends->folder));
    snprintf(ends->address, sizeof ends->address, "unix:%s/s", ends->folder);
    assert_int_equal(flow_wire_listen(ends->address, &listener, &error), 0);
    assert_int_equal(flow_wire_connect(ends->address, &ends->a, &error), 0);
    ends->b = flow_wire_accept(listener);
    assert_non_null(ends->b);
    close(listener);
}

static void close_ends(struct ends *ends)
{
    flow_wire_free(ends->a);
    flow_wire_free(ends->b);
    unlink(ends->address + 5);
    rmdir(ends->folder);
}

struct taken {
    uint64_t next;
    uint32_t count;
};

/* Entry n has the number n, and n % 5000 bytes n, or a tensor of 20,000 of them. */
static bool take(void *context, const struct flow_entry *entry, struct str tail)
{
    struct taken *taken = context;
    assert_int_equal(entry->launch, taken->next);
    assert_int_equal(tail.len, entry->count ? 20000 : taken->next % 5000);
    for (size_t i = 0; i < tail.len; i++)
        assert_int_equal((uint8_t)tail.data[i], (uint8_t)taken->next);
    taken->next++;
    return taken->next % 7 != 0; /* pauses now and then */
}

static void entries_arrive_in_order(void **state)
{
    struct ends ends;
    struct taken taken = {0};
    uint64_t sent = 0;
    connect_ends(&ends);
    while (taken.next < 2000) {
        for (int i = 0; i < 100 && sent < 2000; i++, sent++) {
            struct flow_entry entry = {.kind = ENTRY_DATA, .launch = sent, .count = sent % 50 == 49};
            struct tensor *payload = NULL;
            struct buf tail = {0};
            if (entry.count) {
                payload = tensor_new(&(struct ir_type){IR_U8, 1, {20000}});
                memset(payload->data, (int)sent, 20000);
            } else {
                buf_reserve(&tail, 5000);
                memset(tail.data, (int)sent, sent % 5000);
                tail.len = sent % 5000;
            }
            flow_wire_put(ends.a, &entry, buf_str(&tail), payload);
            tensor_unref(payload);
            buf_done(&tail);
        }
        assert_true(flow_wire_flush(ends.a) >= 0);
        assert_int_equal(flow_wire_read(ends.b, take, &taken, NULL), 0);
    }
    assert_false(flow_wire_is_pending(ends.a));
    close_ends(&ends);
}

static bool count_entry(void *context, const struct flow_entry *entry, struct str tail)
{
    (*(uint64_t *)context)++;
    return true;
}

static void garbage_is_refused(void **state)
{
    struct rng rng;
    rng_seed(&rng, 5);
    int refused = 0;
    for (int i = 0; i < 300; i++) {
        struct ends ends;
        uint64_t entries = 0;
        connect_ends(&ends);
        for (int k = 0; k < 3; k++)
            flow_wire_put(ends.a, &(struct flow_entry){.kind = ENTRY_DATA}, STR("some bytes"), NULL);
        uint8_t bytes[238];
        assert_int_equal(flow_wire_flush(ends.a), 0);
        assert_int_equal(recv(ends.b->fd, bytes, sizeof bytes, 0), sizeof bytes);
        bytes[i % 2 ? rng_below(&rng, 16) : rng_below(&rng, sizeof bytes)] ^=
            (uint8_t)(1 + rng_below(&rng, 255));
        assert_int_equal(send(ends.a->fd, bytes, sizeof bytes, 0), sizeof bytes);
        struct error error;
        int rc = flow_wire_read(ends.b, count_entry, &entries, &error);
        assert_true(rc == 0 || rc == ERROR_CORRUPT);
        refused += rc != 0;
        close_ends(&ends);
    }
    assert_true(refused > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_arrive_in_order),
        cmocka_unit_test(garbage_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
