/* The loop: guests that wait to be let in, and peers with two connections; over sockets and over rings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "flow/island/machine.h"
#include "flow/wire/loop.h"

enum { ENTRIES = 300, WAKES_BEFORE = 3 };

struct stand {
    struct loop *loop;
    struct wire *peers[2];
    char folder[64];
    uint64_t guest, next;
    uint32_t wakes, closed;
};

static const uint64_t friend = UINT64_C(2) << 32 | 7;

static void none_opened(void *context, uint64_t peer)
{
}

static void none_ticks(void *context)
{
}

static void count_closed(void *context, uint64_t peer)
{
    struct stand *stand = context;
    assert_int_equal(peer, friend);
    stand->closed++;
    loop_stop(stand->loop);
}

static void stand_begin(struct stand *stand, bool rings, int peers, const struct loop_handler *handler)
{
    char address[128], name[128];
    int listener;
    struct error error;
    *stand = (struct stand){0};
    struct loop_handler own = *handler;
    own.context = stand;
    own.opened = none_opened;
    own.tick = none_ticks;
    own.closed = count_closed;
    own.holds_guests = true;
    snprintf(stand->folder, sizeof stand->folder, "/tmp/test-loop-XXXXXX");
    assert_non_null(mkdtemp(stand->folder));
    snprintf(address, sizeof address, rings ? "unix:%s/s" : "127.0.0.1:0", stand->folder);
    assert_int_equal(loop_new(&own, &stand->loop, &error), 0);
    assert_int_equal(flow_wire_listen(address, &listener, &error), 0);
    flow_wire_name(listener, address, name, sizeof name);
    loop_listen(stand->loop, listener);
    for (int i = 0; i < peers; i++)
        assert_int_equal(flow_wire_connect(name, &stand->peers[i], &error), 0);
}

static void stand_end(struct stand *stand)
{
    char path[80];
    loop_free(stand->loop);
    for (int i = 0; i < 2; i++)
        flow_wire_free(stand->peers[i]);
    snprintf(path, sizeof path, "%s/s", stand->folder);
    unlink(path);
    rmdir(stand->folder);
}

static void say(struct wire *wire, enum entry_kind kind, uint64_t launch, uint32_t bytes)
{
    struct buf tail = {0};
    buf_reserve(&tail, bytes + 1);
    memset(tail.data, 0, bytes);
    tail.len = bytes;
    flow_wire_put(wire, &(struct flow_entry){.kind = (uint8_t)kind, .launch = launch}, buf_str(&tail), NULL);
    buf_done(&tail);
    assert_int_equal(flow_wire_flush(wire), 0);
}

/* --- a guest whose hello is answered late */

static void late_woken(void *context)
{
    struct stand *stand = context;
    if (stand->guest == 0)
        return;
    if (++stand->wakes == WAKES_BEFORE)
        loop_bind(stand->loop, stand->guest, friend);
    else
        loop_wake(stand->loop);
}

static void late_entry(void *context, uint64_t peer, const struct flow_entry *entry, struct str tail)
{
    struct stand *stand = context;
    if (entry->kind == ENTRY_HELLO_PEER) {
        assert_int_equal(stand->guest, 0);
        stand->guest = peer;
        loop_wake(stand->loop);
        return;
    }
    assert_true(stand->wakes >= WAKES_BEFORE);
    assert_int_equal(peer, friend);
    assert_int_equal(entry->launch, stand->next);
    if (++stand->next == ENTRIES)
        loop_stop(stand->loop);
}

/* Bytes that a guest has sent behind its hello stay, in the carrier and in the loop's own buffer, and come
 * when the guest is let in; no further byte need arrive for that. */
static void guest_is_let_in_late(void **state)
{
    for (int rings = 0; rings < 2; rings++) {
        struct stand stand;
        stand_begin(&stand, rings, 1, &(struct loop_handler){.entry = late_entry, .woken = late_woken});
        say(stand.peers[0], ENTRY_HELLO_PEER, 0, 0);
        for (uint64_t i = 0; i < ENTRIES; i++)
            say(stand.peers[0], ENTRY_DATA, i, 2000); /* more than the loop reads at once */
        loop_run(stand.loop);
        assert_int_equal(stand.next, ENTRIES);
        stand_end(&stand);
    }
}

/* --- a peer with two connections */

static void none_woken(void *context)
{
}

/* DATA 1 comes over the first connection, which ends thereupon; DATA 2 over the second is answered. */
static void twice_entry(void *context, uint64_t peer, const struct flow_entry *entry, struct str tail)
{
    struct stand *stand = context;
    if (entry->kind == ENTRY_HELLO_PEER) {
        loop_bind(stand->loop, peer, friend);
        if (++stand->next == 2)
            say(stand->peers[0], ENTRY_DATA, 1, 0);
        return;
    }
    assert_int_equal(peer, friend);
    if (entry->launch == 1) {
        flow_wire_free(stand->peers[0]);
        stand->peers[0] = NULL;
        loop_wake(stand->loop);
    } else {
        loop_send(stand->loop, friend, &(struct flow_entry){.kind = ENTRY_DATA, .launch = 3}, (struct str){0},
                  NULL);
        loop_stop(stand->loop);
    }
}

static bool is_answer(void *context, const struct flow_entry *entry, struct str tail)
{
    *(bool *)context = entry->launch == 3;
    return true;
}

/* Goes on when a whole turn has passed since the first connection ended, so that the loop has seen its end:
 * what is sent before goes to the connection that is broken. */
static void twice_woken(void *context)
{
    struct stand *stand = context;
    if (stand->peers[0] || stand->next == 4)
        return;
    if (++stand->next == 4)
        say(stand->peers[1], ENTRY_DATA, 2, 0);
    else
        loop_wake(stand->loop);
}

static void second_connection_takes_over(void **state)
{
    for (int rings = 0; rings < 2; rings++) {
        struct stand stand;
        bool answered = false;
        stand_begin(&stand, rings, 2, &(struct loop_handler){.entry = twice_entry, .woken = twice_woken});
        say(stand.peers[0], ENTRY_HELLO_PEER, 0, 0);
        say(stand.peers[1], ENTRY_HELLO_PEER, 0, 0);
        loop_run(stand.loop);
        assert_int_equal(stand.closed, 0);
        assert_int_equal(poll(&(struct pollfd){.fd = stand.peers[1]->fd, .events = POLLIN}, 1, 10000), 1);
        assert_int_equal(flow_wire_read(stand.peers[1], is_answer, &answered, NULL), 0);
        assert_true(answered);
        stand_end(&stand);
    }
}

static void ends_entry(void *context, uint64_t peer, const struct flow_entry *entry, struct str tail)
{
    struct stand *stand = context;
    loop_bind(stand->loop, peer, friend);
    if (++stand->next < 2)
        return;
    for (int i = 0; i < 2; i++) {
        flow_wire_free(stand->peers[i]);
        stand->peers[i] = NULL;
    }
}

static void peer_is_closed_once(void **state)
{
    for (int rings = 0; rings < 2; rings++) {
        struct stand stand;
        stand_begin(&stand, rings, 2, &(struct loop_handler){.entry = ends_entry, .woken = none_woken});
        say(stand.peers[0], ENTRY_HELLO_PEER, 0, 0);
        say(stand.peers[1], ENTRY_HELLO_PEER, 0, 0);
        loop_run(stand.loop);
        assert_int_equal(stand.closed, 1);
        assert_false(loop_has(stand.loop, friend));
        stand_end(&stand);
    }
}

/* --- a peer that never reads */

enum { BACKLOG_MAX = 4, ANSWER = 8192 }; /* 64 answers, one frame, are more than a chunk is filled to */

static void greedy_entry(void *context, uint64_t peer, const struct flow_entry *entry, struct str tail)
{
    struct stand *stand = context;
    loop_bind(stand->loop, peer, friend);
    struct buf answer = {0};
    buf_reserve(&answer, ANSWER + 1);
    memset(answer.data, 0, ANSWER);
    answer.len = ANSWER;
    for (int i = 0; i < BACKLOG_MAX * WIRE_FRAME_ENTRIES; i++)
        loop_send(stand->loop, friend, &(struct flow_entry){.kind = ENTRY_ISLANDS}, buf_str(&answer), NULL);
    assert_true(loop_has(stand->loop, friend));
    for (int i = 0; i < 2 * WIRE_FRAME_ENTRIES; i++)
        loop_send(stand->loop, friend, &(struct flow_entry){.kind = ENTRY_ISLANDS}, buf_str(&answer), NULL);
    assert_false(loop_has(stand->loop, friend));
    buf_done(&answer);
}

static void peer_that_never_reads_is_closed(void **state)
{
    for (int rings = 0; rings < 2; rings++) {
        struct stand stand;
        struct loop_handler handler = {
            .entry = greedy_entry, .woken = none_woken, .backlog_max = BACKLOG_MAX};
        stand_begin(&stand, rings, 1, &handler);
        say(stand.peers[0], ENTRY_HELLO_PEER, 0, 0);
        loop_run(stand.loop);
        assert_int_equal(stand.closed, 1);
        stand_end(&stand);
    }
}

/* --- a peer that is connected to again in the turn in which its connection ended */

static void none_entry(void *context, uint64_t peer, const struct flow_entry *entry, struct str tail)
{
}

static void again_woken(void *context)
{
    struct stand *stand = context;
    for (int i = 0; i < 2; i++) {
        loop_close(stand->loop, friend);
        assert_false(loop_has(stand->loop, friend));
        loop_add(stand->loop, stand->peers[i], friend);
        stand->peers[i] = NULL;
    }
}

static void peer_is_added_again(void **state)
{
    for (int rings = 0; rings <= 1; rings++) {
        struct stand stand;
        struct loop_handler handler = {.entry = none_entry, .woken = again_woken};
        stand_begin(&stand, rings, 2, &handler);
        loop_wake(stand.loop);
        loop_run(stand.loop);
        assert_int_equal(stand.closed, 1); /* the end of the first one is told */
        assert_true(loop_has(stand.loop, friend));
        stand_end(&stand);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guest_is_let_in_late), cmocka_unit_test(second_connection_takes_over),
        cmocka_unit_test(peer_is_closed_once),  cmocka_unit_test(peer_that_never_reads_is_closed),
        cmocka_unit_test(peer_is_added_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
