/* The emulated chip network in both of its forms, the net of a pod, and a net for each machine whose frames
 * a carrier takes as bytes from net to net: light from emulated switches, data when both ends ask, every
 * packet once over links that damage frames, one start, nothing across sessions, and a deadlock where the
 * tables have a circle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/error.h"
#include "base/heap.h"
#include "core/fabric/crossconnect.h"
#include "core/fabric/prove.h"
#include "sim/fabric/chips.h"

enum form { ONE_NET, NETS_OF_MACHINES };
static enum form forms[] = {ONE_NET, NETS_OF_MACHINES};

enum { NETS_MAX = 8 * CUBE_MACHINES, COPPER_NS = 20, OPTICAL_NS = 200 };

/* Bytes on their way from net to net. */
struct carried {
    struct heap_node node; /* by arrival */
    uint32_t to, epoch;    /* link end, and its light when they left */
    struct buf bytes;
};

struct pod {
    uint32_t nets; /* 1, or one for each machine */
    struct chips *net[NETS_MAX];
    struct ocs ocs[POD_SWITCHES];
    struct torus torus;
    struct route route;
    uint32_t cubes, chip_of[SLICE_CHIPS_MAX]; /* by number in the slice */
    /* The carrier: by link end, chip x CHIP_PORTS + port. */
    uint32_t *far, *epoch; /* the other end, CHIPS_NONE: none; counts the lights */
    struct heap under_way;
    uint64_t made;
    int64_t now_ns;
};

static struct chips *net_of(const struct pod *pod, uint32_t chip)
{
    return pod->net[pod->nets == 1 ? 0 : chips_machine(chip)];
}

/* --- the carrier -------------------------------------------------------------------------------------- */

static void carrier_light(struct pod *pod, uint32_t one, uint32_t other)
{
    const uint32_t ends[2] = {one, other};
    pod->far[one] = other;
    pod->far[other] = one;
    for (int i = 0; i < 2; i++) {
        pod->epoch[ends[i]]++;
        chips_light(net_of(pod, ends[i] / CHIP_PORTS), ends[i] / CHIP_PORTS, ends[i] % CHIP_PORTS, true);
    }
}

static void carrier_dark(struct pod *pod, uint32_t one)
{
    const uint32_t ends[2] = {one, pod->far[one]};
    for (int i = 0; i < 2; i++) {
        pod->far[ends[i]] = CHIPS_NONE;
        pod->epoch[ends[i]]++;
        chips_light(net_of(pod, ends[i] / CHIP_PORTS), ends[i] / CHIP_PORTS, ends[i] % CHIP_PORTS, false);
    }
}

static void carrier_init(struct pod *pod)
{
    uint32_t ends = pod->cubes * CUBE_CHIPS * CHIP_PORTS;
    pod->far = mem_alloc(ends * sizeof *pod->far);
    pod->epoch = mem_alloc(ends * sizeof *pod->epoch);
    for (uint32_t end = 0; end < ends; end++)
        pod->far[end] = CHIPS_NONE;
    for (uint32_t end = 0; end < ends && pod->nets > 1; end++) {
        uint32_t chip = end / CHIP_PORTS, port = end % CHIP_PORTS, next = chips_copper(chip, port);
        if (port % 2 == POLARITY_PLUS && next != CHIPS_NONE &&
            chips_leads_outside(net_of(pod, chip), chip, port))
            carrier_light(pod, end, next * CHIP_PORTS + port + 1);
    }
}

static void carrier_done(struct pod *pod)
{
    for (struct heap_node *node; (node = heap_min(&pod->under_way));) {
        struct carried *carried = container_of(node, struct carried, node);
        heap_remove(&pod->under_way, node);
        buf_done(&carried->bytes);
        mem_free(carried);
    }
    heap_done(&pod->under_way);
    mem_free(pod->far);
    mem_free(pod->epoch);
}

/* Takes what a net has to send on its way, and notices of lost writes to their writers. */
static void carry(struct pod *pod, struct chips *net)
{
    struct carried *next = mem_alloc(sizeof *next);
    uint32_t chip;
    enum chip_port port;
    for (struct chips_lost lost; chips_take_lost(net, &lost);)
        chips_put_lost(net_of(pod, lost.from), &lost);
    while (chips_take_frame(net, &chip, &port, &next->bytes)) {
        next->to = pod->far[chip * CHIP_PORTS + port];
        CHECK(next->to != CHIPS_NONE);
        next->epoch = pod->epoch[next->to];
        next->node.key = pod->now_ns + (chips_copper(chip, port) == CHIPS_NONE ? OPTICAL_NS : COPPER_NS);
        next->node.tie = pod->made++;
        heap_insert(&pod->under_way, &next->node);
        next = mem_alloc(sizeof *next);
    }
    mem_free(next);
}

static void arrive(struct pod *pod, struct carried *carried)
{
    uint32_t chip = carried->to / CHIP_PORTS;
    if (pod->epoch[carried->to] == carried->epoch)
        assert_int_equal(chips_put_frame(net_of(pod, chip), chip, carried->to % CHIP_PORTS,
                                         carried->bytes.data, carried->bytes.len),
                         0);
    buf_done(&carried->bytes);
    mem_free(carried);
}

/* The time of all nets goes from one event to the next. */
static int64_t pod_run(struct pod *pod, int64_t until_ns)
{
    if (pod->nets == 1)
        return chips_run(pod->net[0], until_ns);
    for (;;) {
        int64_t next_ns = INT64_MAX;
        for (uint32_t i = 0; i < pod->nets; i++) {
            carry(pod, pod->net[i]);
            next_ns = chips_next_ns(pod->net[i]) < next_ns ? chips_next_ns(pod->net[i]) : next_ns;
        }
        struct heap_node *node = heap_min(&pod->under_way);
        next_ns = node && node->key < next_ns ? node->key : next_ns;
        if (next_ns > until_ns || next_ns == INT64_MAX)
            return pod->now_ns;
        pod->now_ns = next_ns;
        for (uint32_t i = 0; i < pod->nets; i++)
            chips_run(pod->net[i], next_ns);
        while ((node = heap_min(&pod->under_way)) && node->key <= next_ns) {
            heap_remove(&pod->under_way, node);
            arrive(pod, container_of(node, struct carried, node));
        }
    }
}

static void pod_follow(struct pod *pod, uint32_t number)
{
    struct pod_switch which = pod_switch_at(number);
    struct link_end end = {0, which.axis, which.index, POLARITY_PLUS};
    uint32_t plus = link_end_chip(end) * CHIP_PORTS + 2u * which.axis;
    end.polarity = POLARITY_MINUS;
    uint32_t minus = link_end_chip(end) * CHIP_PORTS + 2u * which.axis + 1;
    if (pod->nets == 1) {
        chips_follow(pod->net[0], number, &pod->ocs[number]);
        return;
    }
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t cube = 0; cube < pod->cubes; cube++) {
            uint32_t joined = chips_joined(pod->cubes, number, &pod->ocs[number], (uint16_t)cube);
            uint32_t one = cube * CUBE_CHIPS * CHIP_PORTS + plus;
            uint32_t other = joined == CHIPS_NONE ? CHIPS_NONE : joined * CUBE_CHIPS * CHIP_PORTS + minus;
            if (pass == 0 && pod->far[one] != CHIPS_NONE && pod->far[one] != other)
                carrier_dark(pod, one);
            if (pass == 1 && other != CHIPS_NONE && pod->far[one] != other)
                carrier_light(pod, one, other);
        }
}

/* --- the pod ------------------------------------------------------------------------------------------ */

static bool pod_take_done(struct pod *pod, struct chips_done *ret_done)
{
    for (uint32_t i = 0; i < pod->nets; i++)
        if (chips_take_done(pod->net[i], ret_done))
            return true;
    return false;
}

static void pod_count(const struct pod *pod, struct chips_counts *ret_counts)
{
    *ret_counts = (struct chips_counts){0};
    for (uint32_t i = 0; i < pod->nets; i++) {
        struct chips_counts counts;
        chips_count(pod->net[i], &counts);
        ret_counts->hops += counts.hops;
        ret_counts->delivered += counts.delivered;
        ret_counts->resent += counts.resent;
        ret_counts->lost += counts.lost;
        ret_counts->refused += counts.refused;
        ret_counts->waiting += counts.waiting;
    }
}

static void pod_load(struct pod *pod, uint16_t number, uint32_t session)
{
    chips_load(net_of(pod, pod->chip_of[number]), pod->chip_of[number], number, session, &pod->route);
}

static void pod_ask(struct pod *pod, uint16_t number, uint32_t port, bool asked)
{
    chips_ask(net_of(pod, pod->chip_of[number]), pod->chip_of[number], port, asked);
}

static void pod_write(struct pod *pod, uint16_t from, uint16_t to, uint32_t address, const void *bytes,
                      uint32_t len, uint64_t tag)
{
    chips_write(net_of(pod, pod->chip_of[from]), pod->chip_of[from], to, address, bytes, len, tag);
}

/* A slice of all cubes of a pod: joined, with tables around its dead switch ("": none), that trains. */
static struct pod *pod_of(void **state, const char *text, const char *dead, uint32_t loss_ppm,
                          uint32_t buffers)
{
    struct pod *pod = mem_alloc(sizeof *pod);
    struct slice_shape shape;
    CHECK(slice_shape_parse(str_from(text), &shape, NULL) == 0);
    uint32_t side[AXES];
    pod->cubes = slice_shape_cubes(&shape);
    pod->nets = *(const enum form *)*state == ONE_NET ? 1 : pod->cubes * CUBE_MACHINES;
    struct pod_switch out;
    for (uint32_t i = 0; i < pod->nets; i++) {
        struct chips_settings settings = {.cubes = pod->cubes,
                                          .one_machine = pod->nets > 1,
                                          .machine = i,
                                          .memory_bytes = 64 * 1024,
                                          .buffers = buffers,
                                          .packet_ns = 82,
                                          .copper_ns = COPPER_NS,
                                          .optical_ns = OPTICAL_NS,
                                          .loss_ppm = loss_ppm,
                                          .seed = 7 + i};
        pod->net[i] = chips_new(&settings);
    }
    carrier_init(pod);
    torus_init(&pod->torus, &shape);
    bool broken = dead[0] && pod_switch_parse(str_from(dead), &out, NULL) == 0;
    if (broken)
        torus_kill_switch(&pod->torus, out);
    CHECK(route_build(&pod->torus, &pod->route, NULL) == 0);
    for (uint32_t i = 0; i < POD_SWITCHES; i++) {
        struct ocs_settings ocs = {.a_ports = 64, .b_ports = 64};
        ocs_init(&pod->ocs[i], &ocs);
        for (uint32_t c = 0; c < pod->cubes && !(broken && i == pod_switch_number(out)); c++)
            ocs_join(&pod->ocs[i], 1 + c, 65 + slice_next_place(&shape, c, pod_switch_at(i).axis), 0);
        pod_follow(pod, i);
    }
    for (int axis = 0; axis < AXES; axis++)
        side[axis] = shape.extent[axis] / 4u;
    for (uint16_t n = 0; n < pod->torus.chips; n++) {
        uint32_t x = pod->torus.at[0][n], y = pod->torus.at[1][n], z = pod->torus.at[2][n];
        uint32_t cube = x / 4 + side[0] * (y / 4 + side[1] * (z / 4));
        pod->chip_of[n] = cube * 64 + x % 4 + 4 * (y % 4) + 16 * (z % 4);
        pod_load(pod, n, 1);
        for (uint32_t port = 0; port < CHIP_PORTS; port++)
            pod_ask(pod, n, port, true);
    }
    return pod;
}

static void pod_done(struct pod *pod)
{
    for (uint32_t i = 0; i < pod->nets; i++)
        chips_free(pod->net[i]);
    carrier_done(pod);
    torus_done(&pod->torus);
    route_done(&pod->route);
    mem_free(pod);
}

/* Every chip writes its number to every other one: how many writes are delivered, whole. */
static uint32_t all_to_all(struct pod *pod, struct chips_counts *ret_counts)
{
    uint32_t chips = pod->torus.chips, delivered = 0;
    struct chips_done done;
    for (uint16_t from = 0; from < chips; from++)
        for (uint16_t step = 1; step < chips; step++) {
            uint16_t to = (uint16_t)((from + step) % chips);
            uint32_t word = 0x1000000u + from;
            pod_write(pod, from, to, from * 4u, &word, sizeof word, 1);
        }
    pod_run(pod, INT64_MAX);
    while (pod_take_done(pod, &done))
        delivered += done.delivered;
    for (uint32_t to = 0; to < chips; to++)
        for (uint32_t from = 0; from < chips; from++) {
            uint32_t word;
            memcpy(&word, chips_memory(net_of(pod, pod->chip_of[to]), pod->chip_of[to]) + from * 4,
                   sizeof word);
            CHECK(word == (from == to ? 0 : 0x1000000u + from) || delivered < chips * (chips - 1));
        }
    pod_count(pod, ret_counts);
    return delivered;
}

static void links_are_those_of_the_torus(void **state)
{
    static const char *const shapes[] = {"4x4x4", "4x4x8-twisted", "4x8x8-twisted"};
    for (size_t i = 0; i < 3; i++) {
        struct pod *pod = pod_of(state, shapes[i], "", 0, 4);
        uint32_t chip;
        enum chip_port port;
        assert_false(
            chips_neighbor(net_of(pod, pod->chip_of[0]), pod->chip_of[0], PORT_X_PLUS, &chip, &port));
        pod_run(pod, INT64_MAX);
        for (uint32_t n = 0; n < pod->torus.chips; n++)
            for (uint32_t p = 0; p < CHIP_PORTS; p++) {
                const struct chips *net = net_of(pod, pod->chip_of[n]);
                bool copper = chips_copper(pod->chip_of[n], p) != CHIPS_NONE;
                assert_true(chips_neighbor(net, pod->chip_of[n], p, &chip, &port));
                assert_int_equal(chips_rtt_ns(net, pod->chip_of[n], p),
                                 2 * (copper ? COPPER_NS : OPTICAL_NS));
                assert_int_equal(chip, pod->chip_of[pod->torus.next[n * CHIP_PORTS + p]]);
                assert_int_equal(port, p ^ 1);
            }
        pod_done(pod);
    }
}

static void every_packet_arrives_once_over_bad_links(void **state)
{
    struct pod *pod = pod_of(state, "4x4x8-twisted", "", 20000, 2);
    struct chips_counts counts;
    assert_int_equal(all_to_all(pod, &counts), 128 * 127);
    assert_int_equal(counts.delivered, 128 * 127);
    assert_true(counts.resent > 1000);
    assert_int_equal(counts.waiting + counts.lost + counts.refused, 0);
    pod_done(pod);
}

static void routes_lead_around_a_dead_switch(void **state)
{
    struct pod *pod = pod_of(state, "4x4x8", "z5", 0, 1);
    struct chips_counts counts;
    assert_int_equal(all_to_all(pod, &counts), 128 * 127);
    assert_int_equal(counts.waiting, 0);
    pod_done(pod);
}

/* Dimension order without a dateline closes a circle on every ring of eight chips. */
static void tables_with_a_circle_deadlock(void **state)
{
    struct pod *pod = pod_of(state, "8x8x8", "", 0, 1);
    struct chips_counts counts;
    static uint8_t bytes[16 * CHIPS_PACKET_BYTES];
    for (uint32_t i = 0; i < pod->route.chips * pod->route.chips; i++)
        if (pod->route.transit[i] < ROUTE_NONE)
            pod->route.transit[i] = route_entry(route_port(pod->route.transit[i]), 0);
    assert_true(route_prove(&pod->torus, &pod->route, &(struct proof){0}, NULL, NULL) < 0);
    for (uint16_t n = 0; n < 8; n++) /* one ring, each to the chip half-way round, the same direction */
        pod_write(pod, n, (uint16_t)((n + 3) % 8), 0, bytes, 12 * CHIPS_PACKET_BYTES, 1);
    pod_run(pod, INT64_MAX);
    pod_count(pod, &counts);
    assert_true(counts.waiting > 0);
    pod_done(pod);
}

static void data_flows_only_when_both_ends_ask(void **state)
{
    struct pod *pod = pod_of(state, "4x4x4", "", 0, 2);
    struct chips_done done;
    struct chips_counts counts;
    uint32_t word = 42;
    pod_ask(pod, 1, PORT_X_MINUS, false);
    pod_write(pod, 0, 1, 0, &word, sizeof word, 9);
    pod_run(pod, INT64_MAX);
    assert_false(pod_take_done(pod, &done));
    pod_ask(pod, 1, PORT_X_MINUS, true);
    pod_run(pod, INT64_MAX);
    assert_true(pod_take_done(pod, &done) && done.delivered && done.tag == 9);
    pod_count(pod, &counts);
    assert_int_equal(counts.hops, 1);
    pod_done(pod);
}

/* The time of 16 packets over one optical link, from the first byte sent to the last one taken. */
static int64_t time_over_link(struct pod *pod, uint16_t from, uint16_t to)
{
    static uint8_t bytes[16 * CHIPS_PACKET_BYTES];
    struct chips_done done;
    int64_t began_ns = pod_run(pod, INT64_MAX);
    pod_write(pod, from, to, 0, bytes, sizeof bytes, 1);
    pod_run(pod, INT64_MAX);
    assert_true(pod_take_done(pod, &done) && done.delivered);
    return done.at_ns - began_ns;
}

/* A buffer of the bytes of one round trip and a packet costs no time; half of it does. */
static void a_buffer_of_a_round_trip_keeps_a_link_busy(void **state)
{
    struct pod *pod = pod_of(state, "4x4x8", "", 0, 16);
    uint16_t top = torus_chip(&pod->torus, 0, 0, 3), over = torus_chip(&pod->torus, 0, 0, 4);
    struct chips *net = net_of(pod, pod->chip_of[over]);
    int64_t best_ns = time_over_link(pod, top, over);
    const uint32_t round_trip = 2 * OPTICAL_NS * CHIPS_PACKET_BYTES / 82;
    chips_set_buffer(net, pod->chip_of[over], PORT_Z_MINUS, round_trip + CHIPS_PACKET_BYTES);
    time_over_link(pod, top, over); /* takes the credits that the sender has too many */
    assert_int_equal(time_over_link(pod, top, over), best_ns);
    chips_set_buffer(net, pod->chip_of[over], PORT_Z_MINUS, round_trip / 2);
    time_over_link(pod, top, over);
    assert_true(time_over_link(pod, top, over) > best_ns * 3 / 2);
    chips_load(net, pod->chip_of[over], 0, 0, NULL); /* in no session: as before */
    pod_load(pod, over, 1);
    assert_int_equal(time_over_link(pod, top, over), best_ns);
    pod_done(pod);
}

static void nothing_crosses_sessions_or_comes_back_with_the_light(void **state)
{
    struct pod *pod = pod_of(state, "4x4x8", "", 0, 2);
    struct chips_done done;
    struct chips_counts counts;
    static uint8_t bytes[8 * CHIPS_PACKET_BYTES];
    uint16_t top = torus_chip(&pod->torus, 0, 0, 3), over = torus_chip(&pod->torus, 0, 0, 4);
    int64_t now_ns = pod_run(pod, INT64_MAX);
    pod_write(pod, top, over, 0, bytes, sizeof bytes, 5);
    pod_run(pod, now_ns + 150); /* one packet is under way */
    uint32_t z0 = pod_switch_number((struct pod_switch){2, 0});
    ocs_part(&pod->ocs[z0], 1, 0, 0);
    pod_follow(pod, z0);
    pod_run(pod, INT64_MAX);
    pod_load(pod, over, 2);
    ocs_join(&pod->ocs[z0], 1, 66, 0);
    pod_follow(pod, z0);
    pod_run(pod, INT64_MAX);
    pod_count(pod, &counts);
    assert_true(pod_take_done(pod, &done) && !done.delivered && done.tag == 5);
    assert_true(counts.lost >= 1 && counts.delivered == 0);
    assert_int_equal(counts.lost + counts.refused, 8);
    pod_done(pod);
}

/* A start runs down a line of chips: each begins when it has waited, and passes the start on at once. */
static void a_start_runs_along_the_links(void **state)
{
    struct pod *pod = pod_of(state, "4x4x8", "", 0, 2);
    uint16_t line[8];
    int64_t now_ns = pod_run(pod, INT64_MAX), along_ns = 0, expected_ns[8];
    for (uint32_t z = 0; z < 8; z++) {
        line[z] = torus_chip(&pod->torus, 1, 2, z);
        expected_ns[z] = along_ns + 1000 * z;
        chips_arm(net_of(pod, pod->chip_of[line[z]]), pod->chip_of[line[z]], 9, z < 7 ? 1u << PORT_Z_PLUS : 0,
                  1000 * z);
        along_ns += z == 3 ? OPTICAL_NS : COPPER_NS;
    }
    struct chips *first = net_of(pod, pod->chip_of[line[0]]);
    assert_false(chips_start(first, pod->chip_of[line[0]], 8));
    assert_true(chips_start(first, pod->chip_of[line[0]], 9));
    assert_false(chips_start(first, pod->chip_of[line[0]], 9)); /* a chip starts once */
    chips_disarm(net_of(pod, pod->chip_of[line[7]]), pod->chip_of[line[7]]);
    pod_run(pod, INT64_MAX);
    for (uint32_t z = 0; z < 8; z++) {
        struct chips_begun begun;
        bool found = false;
        for (uint32_t i = 0; i < pod->nets && !found; i++)
            found = chips_take_begun(pod->net[i], &begun);
        assert_int_equal(found, z < 7);
        for (uint32_t k = 0; found && k < 7; k++)
            if (begun.chip == pod->chip_of[line[k]])
                assert_int_equal(begun.at_ns, now_ns + expected_ns[k]);
    }
    pod_done(pod);
}

/* Bytes that no working end sends take the light of their link away, and of no other. */
static void nonsense_takes_the_light(void **state)
{
    static const struct {
        const char *what, *bytes;
        size_t len;
    } cases[] = {
        {"nothing", "", 0},
        {"an unknown kind", "\x63", 1},
        {"too short a frame", "\x02\0\0", 3},
        {"too long a frame", "\x03\x01\x01", 3},
        {"an echo of the future", "\x02\xff\xff\xff\xff\xff\xff\xff\x7f", 9},
        {"a frame acknowledged that was not sent", "\x05\x01\0\0\0\0\0\0\0", 9},
        {"a frame asked for again that was not sent", "\x06\0\0\0\0\0\0\0\0", 9},
        {"a credit too many", "\x07\x01", 2},
        {"a credit of no channel", "\x07\x03", 2},
        {"an asking that is neither", "\x03\x02", 2},
        {"data without bytes",
         "\x04\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\x01\0\0\0"
         "\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0",
         40},
        {"another chip than before", "\x01\0\0\0\0\0\0\0\0\x05\0\0\0\x01\x02\x02\x02", 17},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pod *pod = pod_of(state, "4x4x4", "", 0, 2);
        uint32_t chip = pod->chip_of[0], far;
        enum chip_port far_port;
        struct chips *net = net_of(pod, chip);
        pod_run(pod, INT64_MAX);
        assert_true(chips_leads_outside(net, chip, PORT_X_MINUS));
        if (chips_put_frame(net, chip, PORT_X_MINUS, cases[i].bytes, cases[i].len) != ERROR_CORRUPT)
            fail_msg("%s is taken", cases[i].what);
        assert_false(chips_neighbor(net, chip, PORT_X_MINUS, &far, &far_port));
        assert_true(chips_neighbor(net, chip, PORT_Y_MINUS, &far, &far_port));
        assert_int_equal(chips_put_frame(net, chip, PORT_X_MINUS, cases[i].bytes, cases[i].len), 0);
        pod_done(pod);
    }
}

#define IN_BOTH_FORMS(name)                                                                                  \
    {#name ": one net", name, NULL, NULL, &forms[0]},                                                        \
    {                                                                                                        \
#name ": nets of machines", name, NULL, NULL, &forms[1]                                              \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_BOTH_FORMS(links_are_those_of_the_torus),
        IN_BOTH_FORMS(every_packet_arrives_once_over_bad_links),
        IN_BOTH_FORMS(routes_lead_around_a_dead_switch),
        IN_BOTH_FORMS(tables_with_a_circle_deadlock),
        IN_BOTH_FORMS(data_flows_only_when_both_ends_ask),
        IN_BOTH_FORMS(a_buffer_of_a_round_trip_keeps_a_link_busy),
        IN_BOTH_FORMS(nothing_crosses_sessions_or_comes_back_with_the_light),
        IN_BOTH_FORMS(a_start_runs_along_the_links),
        {"nonsense takes the light", nonsense_takes_the_light, NULL, NULL, &forms[NETS_OF_MACHINES]},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
