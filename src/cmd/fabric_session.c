#include "cmd/fabric_session.h"

#include <time.h>

#include "base/arena.h"
#include "doc/json.h"
#include "base/units.h"
#include "cmd/client.h"
#include "sim/fabric/bring_up.h"

enum {
    SESSION_NUMBER = 1,
    PACKET_NS = 82, /* at 50 GB/s */
    COPPER_NS = 20,
    OPTICAL_NS = 200,
    LINK_BYTES_PER_US = 50000,
    STEPS_WRITTEN = 8, /* chips to which each chip writes */
};

struct emulation {
    const struct session_order *order;
    struct chips *net;
    struct bring_up *up;
    struct fabric_session *session;
    int64_t begin_ns, came_up_ns; /* by the computer's clock */
    uint32_t cubes;               /* of the emulated pod: up to the highest of the slice */
    uint32_t written, delivered;
};

static int64_t session_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

static uint32_t session_ports(const struct emulation *emulation)
{
    return emulation->cubes <= SMALL_POD_CUBES ? SMALL_POD_CUBES : POD_CUBES_MAX;
}

/* Joins the cubes at one switch, with the wires crossed that the order names. */
static void join_at_switch(const struct emulation *emulation, struct ocs *ocs, uint32_t number)
{
    const struct session_order *order = emulation->order;
    struct ocs_settings ports = {.a_ports = session_ports(emulation), .b_ports = session_ports(emulation)};
    bool crossed = order->crossed && pod_switch_number(order->crossed_at) == number;
    ocs_init(ocs, &ports);
    ocs->dead = order->switch_out[number];
    if (!slice_shape_is_whole(&order->slice.shape))
        return; /* a slice that is part of a cube has no optical links */
    for (uint32_t place = 0; place < order->slice.count; place++) {
        uint32_t cube = order->slice.cube[place];
        uint32_t next = slice_next_place(&order->slice.shape, place, pod_switch_at(number).axis);
        for (int i = 0; i < 2 && crossed; i++)
            if (cube == order->crossed_cubes[i]) {
                cube = order->crossed_cubes[!i];
                break;
            }
        ocs_join(ocs, 1 + cube, 1 + ports.a_ports + order->slice.cube[next], 0);
    }
}

static void light_up(struct emulation *emulation)
{
    struct chips_settings settings = {.cubes = emulation->cubes,
                                      .memory_bytes = 4096,
                                      .buffers = 8,
                                      .packet_ns = PACKET_NS,
                                      .copper_ns = COPPER_NS,
                                      .optical_ns = OPTICAL_NS,
                                      .seed = 1};
    struct ocs *ocs = mem_alloc(sizeof *ocs);
    emulation->net = chips_new(&settings);
    emulation->up = bring_up_new(emulation->net, emulation->cubes);
    for (uint32_t i = 0; i < POD_SWITCHES; i++) {
        join_at_switch(emulation, ocs, i);
        chips_follow(emulation->net, i, ocs);
    }
    chips_run(emulation->net, INT64_MAX);
    mem_free(ocs);
}

static uint32_t chip_at(const struct session_order *order, uint32_t number)
{
    const uint16_t *extent = order->slice.shape.extent;
    uint32_t inside,
        at[AXES] = {number % extent[0], number / extent[0] % extent[1], number / (extent[0] * extent[1])};
    uint32_t place = slice_chip_place(&order->slice.shape, at, &inside);
    return order->slice.cube[place] * CUBE_CHIPS + inside;
}

/* Makes each chip write its label to other chips, each to a different place, and counts the labels that
 * arrived. */
static void write_labels(struct emulation *emulation)
{
    const struct session_order *order = emulation->order;
    uint32_t chips = slice_shape_chips(&order->slice.shape);
    struct chips_done done;
    for (uint32_t from = 0; from < chips; from++)
        for (uint32_t step = 1; step <= STEPS_WRITTEN; step++, emulation->written++) {
            uint32_t label = chip_at(order, from), to = (from + step * step * 31 + step) % chips;
            chips_write(emulation->net, label, (uint16_t)to, step * 4, &label, sizeof label, 0);
        }
    chips_run(emulation->net, INT64_MAX);
    while (chips_take_done(emulation->net, &done))
        emulation->delivered += done.delivered;
}

static void put_session_text(struct buf *out, const struct emulation *emulation,
                             const struct fabric_session_summary *summary)
{
    int64_t first_ns, last_ns;
    char shape[SHAPE_TEXT_MAX];
    bring_up_started(emulation->up, &first_ns, &last_ns);
    slice_shape_format(&emulation->order->slice.shape, shape);
    buf_printf(out, "%s: %u chips up in %.0f ms\n", shape, summary->chips,
               (double)(emulation->came_up_ns - emulation->begin_ns) / 1e6);
    buf_printf(out, "discovered   %u links, %u without light; every wire is where it should be\n",
               summary->links, summary->dark);
    buf_printf(out, "tables       %u for each chip, proved: %llu pairs arrive\n", summary->proof.tables,
               (unsigned long long)summary->proof.pairs);
    buf_printf(out,
               "buffers      %u bytes for each virtual channel of the longest link, %u ns there and back\n",
               summary->buffer_bytes_max, summary->rtt_ns_max);
    buf_printf(out, "clock tree   %lld ns from the first chip to the last; all started within %lld ns\n",
               (long long)summary->tree_ns, (long long)(last_ns - first_ns));
    buf_printf(out, "data         %u of %u writes delivered\n", emulation->delivered, emulation->written);
}

static void put_session_json(struct buf *out, const struct emulation *emulation,
                             const struct fabric_session_summary *summary)
{
    struct json_writer writer = {.out = out};
    char shape[SHAPE_TEXT_MAX];
    int64_t first_ns, last_ns;
    bring_up_started(emulation->up, &first_ns, &last_ns);
    slice_shape_format(&emulation->order->slice.shape, shape);
    json_begin_object(&writer);
    json_pair_text(&writer, "shape", shape);
    json_pair_int(&writer, "chips", summary->chips);
    json_pair_int(&writer, "links", summary->links);
    json_pair_int(&writer, "dark", summary->dark);
    json_pair_int(&writer, "rttNanoseconds", summary->rtt_ns_max);
    json_pair_int(&writer, "bufferBytes", summary->buffer_bytes_max);
    json_pair_int(&writer, "treeNanoseconds", summary->tree_ns);
    json_pair_int(&writer, "startSpreadNanoseconds", last_ns - first_ns);
    json_pair_int(&writer, "written", emulation->written);
    json_pair_int(&writer, "delivered", emulation->delivered);
    json_pair_int(&writer, "upMicroseconds", (emulation->came_up_ns - emulation->begin_ns) / NS_PER_US);
    json_end_object(&writer);
    buf_add_char(out, '\n');
}

static int run_session(struct emulation *emulation)
{
    struct buf out BUF_CLEANUP = {0};
    struct fabric_session_summary summary;
    emulation->begin_ns = session_clock_ns();
    bring_up_carry_out(emulation->up, emulation->session);
    emulation->came_up_ns = session_clock_ns();
    if (fabric_session_state(emulation->session) != FABRIC_SESSION_RUN) {
        say("%s", fabric_session_error(emulation->session));
        return EXIT_FAILED;
    }
    write_labels(emulation);
    fabric_session_summary(emulation->session, &summary);
    if (emulation->order->json)
        put_session_json(&out, emulation, &summary);
    else
        put_session_text(&out, emulation, &summary);
    output_write(&out);
    fabric_session_stop(emulation->session);
    bring_up_carry_out(emulation->up, emulation->session);
    return emulation->delivered == emulation->written ? EXIT_OK : EXIT_FAILED;
}

int fabric_session_emulate(const struct session_order *order)
{
    struct emulation emulation = {.order = order, .cubes = 1};
    struct error error = {0};
    struct fabric_session_terms terms = {.slice = &order->slice,
                                         .number = SESSION_NUMBER,
                                         .bytes_per_us = LINK_BYTES_PER_US,
                                         .packet_bytes = CHIPS_PACKET_BYTES,
                                         .route_around = true};
    if (fabric_session_new(&terms, &emulation.session, &error) < 0) {
        say("%s", error.text);
        return EXIT_FAILED;
    }
    for (uint32_t place = 0; place < order->slice.count; place++)
        if (order->slice.cube[place] >= emulation.cubes)
            emulation.cubes = order->slice.cube[place] + 1u;
    light_up(&emulation);
    int status = run_session(&emulation);
    bring_up_free(emulation.up);
    chips_free(emulation.net);
    fabric_session_free(emulation.session);
    return status;
}
