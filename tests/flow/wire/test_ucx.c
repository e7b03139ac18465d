/* The carrier over UCX: the move to it, peers that are hostile or die, and the loop that offers it. What all
 * carriers do: test_wire. Built where UCX is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/rng.h"
#include "flow/island/machine.h"
#include "flow/wire/clock.h"
#include "flow/wire/ends.h"
#include "flow/wire/loop.h"
#include "flow/wire/ucx.h"

enum { LARGE_BYTES = 3 << 20 };

static bool count_entry(void *context, const struct flow_entry *entry, struct str tail)
{
    (*(uint64_t *)context)++;
    return true;
}

static void put_data(struct wire *wire, uint64_t number)
{
    flow_wire_put(wire, &(struct flow_entry){.kind = ENTRY_DATA, .launch = number}, STR("some bytes"), NULL);
}

/* Reads until the wire ends, and returns why. */
static int read_to_the_end(struct ends *ends, struct wire *wire, uint64_t *entries)
{
    int rc;
    struct error error;
    while ((rc = flow_wire_read(wire, count_entry, entries, &error)) == 0)
        wait_for(ends, wire);
    return rc;
}

/* --- the move */

struct numbers {
    uint64_t next;
};

static bool take_number(void *context, const struct flow_entry *entry, struct str tail)
{
    struct numbers *numbers = context;
    assert_int_equal(entry->launch, numbers->next);
    numbers->next++;
    return numbers->next % 7 != 0; /* pauses now and then */
}

/* Both ends talk all the time while they move, with tensors on their way. */
static void frames_stay_in_order_across_the_move(void **state)
{
    enum { ENTRIES = 400 };
    struct tensor *large = tensor_new(&(struct ir_type){IR_U8, 1, {LARGE_BYTES / 8}});
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct ends ends;
        struct numbers taken[2] = {0};
        uint64_t sent[2] = {0};
        struct rng rng;
        rng_seed(&rng, seed);
        connect_ends_unmoved(&ends, "ucx");
        uint64_t offer_at = rng_below(&rng, ENTRIES / 2);
        bool offered = false;
        while (taken[0].next < ENTRIES || taken[1].next < ENTRIES) {
            int side = (int)rng_below(&rng, 2);
            struct wire *wire = side ? ends.b : ends.a;
            for (uint64_t n = rng_below(&rng, 40); n > 0 && sent[side] < ENTRIES; n--)
                flow_wire_put(wire, &(struct flow_entry){.kind = ENTRY_DATA, .launch = sent[side]++},
                              (struct str){0}, rng_below(&rng, 20) ? NULL : large);
            if (!offered && ends.b->announced && taken[1].next >= offer_at) {
                wire_hub_offer(ends.hub_b, ends.b);
                offered = true;
            }
            ends_turn(&ends);
            assert_true(flow_wire_flush(wire) >= 0);
            assert_int_equal(flow_wire_read(wire, take_number, &taken[side], NULL), 0);
        }
        while (strcmp(ends.a->ops->name, "ucx") != 0 || strcmp(ends.b->ops->name, "ucx") != 0)
            exchange(&ends);
        close_ends(&ends);
    }
    tensor_unref(large);
}

/* A peer that has announced nothing stays on its socket, with and without a hub of its own. */
static void peer_without_ucx_stays_on_its_socket(void **state)
{
    struct ends ends;
    uint64_t entries = 0;
    connect_ends_unmoved(&ends, "sockets");
    struct error error;
    assert_int_equal(wire_hub_new(WIRE_BY_UCX, &ends.hub_b, &error), 0);
    put_data(ends.a, 0);
    assert_int_equal(flow_wire_flush(ends.a), 0);
    assert_int_equal(poll(&(struct pollfd){.fd = ends.b->fd, .events = POLLIN}, 1, 10000), 1);
    assert_int_equal(flow_wire_read(ends.b, count_entry, &entries, NULL), 0);
    assert_int_equal(entries, 1);
    wire_hub_offer(ends.hub_b, ends.b);
    assert_false(flow_wire_is_pending(ends.b));
    assert_string_equal(ends.b->ops->name, "sockets");
    close_ends(&ends);
}

/* --- hostile peers */

static void say_step(int fd, uint32_t step, const void *data, uint64_t bytes, size_t sent)
{
    struct wire_header header = {{'P', 'H', 'X', 'U'}, step, bytes};
    assert_int_equal(send(fd, &header, sizeof header, 0), sizeof header);
    if (sent)
        assert_int_equal(send(fd, data, sent, MSG_NOSIGNAL), sent);
}

/* Steps that come at the wrong time, or say nonsense, end the connection before UCX sees a byte of them. */
static void steps_out_of_place_are_refused(void **state)
{
    static char bytes[WIRE_STEP_MAX + 1];
    struct ucx_greeting wrong_version = {.version = 99};
    struct {
        const char *name;
        bool offered;
        uint32_t step;
        const void *data;
        uint64_t bytes;
    } const cases[] = {
        {"an answer to no offer", false, WIRE_ANSWER, bytes, 200},
        {"a switch before the move", false, WIRE_SWITCH, bytes, 0},
        {"an end before the move", false, WIRE_END, bytes, 0},
        {"an announcement with bytes", false, WIRE_ANNOUNCE, bytes, 1},
        {"no step", false, WIRE_STEPS, bytes, 0},
        {"an offer to who has offered", true, WIRE_OFFER, bytes, 200},
        {"a switch to who has offered", true, WIRE_SWITCH, bytes, 0},
        {"an answer without an address", true, WIRE_ANSWER, &wrong_version, sizeof wrong_version},
        {"an answer of zeros", true, WIRE_ANSWER, bytes, 200},
        {"an answer that is too long", true, WIRE_ANSWER, bytes, sizeof bytes},
        {"an answer of 2^63 bytes", true, WIRE_ANSWER, bytes, UINT64_C(1) << 63},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ends ends;
        uint64_t entries = 0;
        connect_ends_unmoved(&ends, "ucx");
        while (!ends.b->announced)
            exchange(&ends);
        if (cases[i].offered)
            wire_hub_offer(ends.hub_b, ends.b);
        assert_true(flow_wire_flush(ends.b) >= 0);
        size_t sent = cases[i].bytes < sizeof bytes ? cases[i].bytes : sizeof bytes;
        say_step(ends.a->fd, cases[i].step, cases[i].data, cases[i].bytes, sent);
        int rc = read_to_the_end(&ends, ends.b, &entries);
        if (rc != ERROR_CORRUPT)
            fail_msg("%s: %d", cases[i].name, rc);
        close_ends(&ends);
    }
}

/* Messages from a peer that has the worker's address, but not the key, are dropped. */
static void messages_without_the_key_are_dropped(void **state)
{
    struct ends ends;
    uint64_t entries = 0;
    char offer[sizeof(struct wire_header) + WIRE_STEP_MAX];
    connect_ends_unmoved(&ends, "ucx");
    while (!ends.b->announced)
        exchange(&ends);
    wire_hub_offer(ends.hub_b, ends.b);
    assert_int_equal(flow_wire_flush(ends.b), 0);
    ssize_t got = recv(ends.a->fd, offer, sizeof offer, 0);
    assert_true(got > (ssize_t)(sizeof(struct wire_header) + sizeof(struct ucx_greeting)));
    offer[sizeof(struct wire_header) + offsetof(struct ucx_greeting, key)] ^= 1;
    buf_add(&ends.a->in, offer, (size_t)got);
    while (strcmp(ends.a->ops->name, "ucx") != 0 || strcmp(ends.b->ops->name, "ucx") != 0)
        exchange(&ends);
    struct tensor *large = tensor_new(&(struct ir_type){IR_U8, 1, {LARGE_BYTES}});
    for (uint64_t i = 0; i < 100; i++)
        put_data(ends.a, i);
    flow_wire_put(ends.a, &(struct flow_entry){.kind = ENTRY_DATA}, (struct str){0}, large);
    tensor_unref(large);
    assert_int_equal(flow_wire_flush(ends.a), 0);
    put_data(ends.b, 0); /* the other direction's key is right, and tells that UCX carries */
    assert_int_equal(flow_wire_flush(ends.b), 0);
    uint64_t back = 0;
    while (back == 0) {
        wait_for_any(&ends, true, true);
        assert_int_equal(flow_wire_read(ends.a, count_entry, &back, NULL), 0);
        assert_int_equal(flow_wire_read(ends.b, count_entry, &entries, NULL), 0);
    }
    shutdown(ends.a->fd, SHUT_RDWR); /* without an END, for whose bytes the other side would wait */
    assert_int_equal(read_to_the_end(&ends, ends.b, &entries), ERROR_UNAVAILABLE);
    assert_int_equal(entries, 0);
    close_ends(&ends);
}

/* A peer that sends more than the window, overlapping bytes, credit for what was never sent or messages of no
 * kind is cut off. */
static void messages_that_break_the_rules_end_the_connection(void **state)
{
    static char bytes[1000];
    struct {
        const char *name;
        uint32_t kind;
        uint64_t at;
        size_t len;
    } const cases[] = {
        {"behind the window", UCX_DATA, STREAM_WINDOW, 1000},
        {"no bytes", UCX_DATA, 0, 0},
        {"credit for nothing", UCX_CREDIT, 1000, 0},
        {"credit with bytes", UCX_CREDIT, 0, 10},
        {"no kind", 77, 0, 10},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ends ends;
        uint64_t entries = 0;
        connect_ends(&ends, "ucx");
        hub_send(ends.a->carrier, cases[i].kind, cases[i].at, bytes, cases[i].len);
        int rc = read_to_the_end(&ends, ends.b, &entries);
        if (rc != ERROR_UNAVAILABLE || entries != 0)
            fail_msg("%s: %d", cases[i].name, rc);
        close_ends(&ends);
    }
}

/* --- peers that die */

/* The accepting side in a process of its own: moves to UCX, says 100 entries, and reads what comes if asked
 * to, until it is killed. */
static void be_peer(int listener, bool reads)
{
    struct wire_hub *hub;
    struct error error;
    uint64_t entries = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (wire_hub_new(WIRE_BY_UCX, &hub, &error) < 0)
        exit(1);
    poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, -1);
    struct wire *wire = flow_wire_accept(listener);
    while (wire && strcmp(wire->ops->name, "ucx") != 0) {
        wire_hub_turn(hub);
        if (flow_wire_read(wire, count_entry, &entries, &error) < 0)
            exit(1);
        wire_hub_offer(hub, wire);
        flow_wire_flush(wire);
    }
    for (uint64_t i = 0; i < 100; i++)
        put_data(wire, i);
    flow_wire_flush(wire);
    for (;;) {
        struct pollfd polled = {.fd = wire_hub_fd(hub), .events = POLLIN};
        while (wire_hub_next(hub))
            continue;
        if (reads)
            flow_wire_read(wire, count_entry, &entries, &error);
        poll(&polled, 1, wire_hub_turn(hub) ? -1 : 0);
    }
}

/* As another program: threads of UCX in this one do not live on in a mere fork. */
static pid_t start_peer(int listener, bool reads)
{
    pid_t pid = fork();
    if (pid == 0) {
        char fd[16];
        snprintf(fd, sizeof fd, "%d", listener);
        fcntl(listener, F_SETFD, 0);
        execl("/proc/self/exe", "test_ucx", "peer", fd, reads ? "reads" : "sleeps", NULL);
        _exit(127);
    }
    return pid;
}

/* A peer is killed with tensors on their way to it: the connection ends, and nothing of it is left. */
static void killed_peer_is_noticed(void **state)
{
    for (int reads = 0; reads < 2; reads++) {
        struct ends ends = {0};
        struct error error;
        int listener;
        char name[128];
        uint64_t entries = 0;
        assert_int_equal(flow_wire_listen("127.0.0.1:0", &listener, &error), 0);
        flow_wire_name(listener, "127.0.0.1:0", name, sizeof name);
        pid_t pid = start_peer(listener, reads);
        close(listener);
        assert_int_equal(wire_hub_new(WIRE_BY_UCX, &ends.hub_a, &error), 0);
        ends.hub_b = NULL;
        assert_int_equal(wire_hub_connect(ends.hub_a, name, &ends.a, &error), 0);
        int64_t before = tensor_bytes();
        struct tensor *large = tensor_new(&(struct ir_type){IR_U8, 1, {LARGE_BYTES}});
        bool put = false;
        int rc = 0;
        for (bool killed = false; rc == 0;) {
            if (!put && strcmp(ends.a->ops->name, "ucx") == 0) {
                for (int i = 0; i < 16; i++)
                    flow_wire_put(ends.a, &(struct flow_entry){.kind = ENTRY_DATA}, (struct str){0}, large);
                put = true;
            }
            rc = flow_wire_flush(ends.a);
            rc = rc < 0 ? rc : flow_wire_read(ends.a, count_entry, &entries, &error);
            if (entries == 100 && put && !killed) {
                kill(pid, SIGKILL);
                killed = true;
            }
            bool rests = rc == 0 && wire_hub_turn(ends.hub_a);
            while (wire_hub_next(ends.hub_a))
                rests = false;
            struct pollfd polled[2] = {{.fd = ends.a->fd, .events = POLLIN},
                                       {.fd = wire_hub_fd(ends.hub_a), .events = POLLIN}};
            bool steps = flow_wire_is_pending(ends.a) && !put;
            if (rests && !killed && !steps)
                assert_true(poll(polled, 2, 10000) > 0);
        }
        assert_int_equal(rc, ERROR_UNAVAILABLE);
        waitpid(pid, NULL, 0);
        flow_wire_free(ends.a);
        tensor_unref(large);
        int64_t begin_ns = flow_now_ns();
        wire_hub_free(ends.hub_a);
        assert_true(flow_now_ns() - begin_ns < 4 * NS_PER_SECOND);
        assert_int_equal(tensor_bytes(), before); /* UCX has let go of what was on its way */
    }
}

/* --- the loop */

struct stand {
    struct loop *loop;
    struct ends ends; /* `a` and hub_a are the peer's */
    uint64_t as;      /* what the guest is let in as */
    uint64_t heard;
};

static void none_opened(void *context, uint64_t peer)
{
}

static void none_closed(void *context, uint64_t peer)
{
}

static void stand_entry(void *context, uint64_t peer, const struct flow_entry *entry, struct str tail)
{
    struct stand *stand = context;
    stand->heard++;
    if (entry->kind == ENTRY_HELLO_PEER && stand->as)
        loop_bind(stand->loop, peer, stand->as);
    loop_send(stand->loop, stand->as ? stand->as : peer,
              &(struct flow_entry){.kind = ENTRY_DATA, .launch = entry->launch}, (struct str){0}, NULL);
}

/* Lets the peer work between two turns of the loop, which wakes itself. */
static void stand_woken(void *context)
{
    struct stand *stand = context;
    struct ends *ends = &stand->ends;
    wire_hub_turn(ends->hub_a);
    while (wire_hub_next(ends->hub_a))
        continue;
    assert_true(flow_wire_flush(ends->a) >= 0);
    uint64_t answers = 0;
    assert_int_equal(flow_wire_read(ends->a, count_entry, &answers, NULL), 0);
    bool moved = strcmp(ends->a->ops->name, "ucx") == 0;
    if (answers && (moved || stand->heard == 20))
        loop_stop(stand->loop);
    else if (answers)
        put_data(ends->a, 0);
    loop_wake(stand->loop);
}

/* Whether a peer that is let in so is moved to UCX. */
static bool loop_moves(uint64_t as)
{
    static const struct loop_handler handler = {.opened = none_opened,
                                                .entry = stand_entry,
                                                .closed = none_closed,
                                                .woken = stand_woken,
                                                .tick = stand_woken,
                                                .holds_guests = false};
    struct stand stand = {.as = as};
    struct loop_handler own = handler;
    struct wire_hub *hub;
    struct error error;
    int listener;
    char name[128];
    own.context = &stand;
    assert_int_equal(loop_new(&own, &stand.loop, &error), 0);
    assert_int_equal(wire_hub_new(WIRE_BY_UCX, &hub, &error), 0);
    assert_int_equal(wire_hub_new(WIRE_BY_UCX, &stand.ends.hub_a, &error), 0);
    loop_use(stand.loop, hub);
    assert_int_equal(flow_wire_listen("127.0.0.1:0", &listener, &error), 0);
    flow_wire_name(listener, "127.0.0.1:0", name, sizeof name);
    loop_listen(stand.loop, listener);
    assert_int_equal(wire_hub_connect(stand.ends.hub_a, name, &stand.ends.a, &error), 0);
    flow_wire_put(stand.ends.a, &(struct flow_entry){.kind = ENTRY_HELLO_PEER}, (struct str){0}, NULL);
    loop_wake(stand.loop);
    loop_run(stand.loop);
    bool moved = strcmp(stand.ends.a->ops->name, "ucx") == 0;
    flow_wire_free(stand.ends.a);
    loop_free(stand.loop);
    wire_hub_free(stand.ends.hub_a);
    return moved;
}

/* Only a peer that the owner knows as a host hears the address and a key; guests and clients do not. */
static void loop_offers_to_hosts_alone(void **state)
{
    assert_true(loop_moves(peer_host(7)));
    assert_false(loop_moves(peer_client(7)));
    assert_false(loop_moves(0));
}

int main(int argc, char **argv)
{
    int64_t listener;
    if (argc == 4 && strcmp(argv[1], "peer") == 0 && str_to_i64(str_from(argv[2]), 0, INT32_MAX, &listener))
        be_peer((int)listener, strcmp(argv[3], "reads") == 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_stay_in_order_across_the_move),
        cmocka_unit_test(peer_without_ucx_stays_on_its_socket),
        cmocka_unit_test(steps_out_of_place_are_refused),
        cmocka_unit_test(messages_without_the_key_are_dropped),
        cmocka_unit_test(messages_that_break_the_rules_end_the_connection),
        cmocka_unit_test(killed_peer_is_noticed),
        cmocka_unit_test(loop_offers_to_hosts_alone),
    };
    if (!carrier_is_here("ucx"))
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
