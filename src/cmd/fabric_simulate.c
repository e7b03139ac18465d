#include "cmd/fabric_simulate.h"

#include "base/arena.h"
#include "doc/json.h"
#include "cmd/client.h"

enum {
    FLIT_BYTES = 256,      /* a cycle carries one flit */
    FLIT_PS = 5120,        /* at 50 GB/s */
    LOOKS = 10,            /* checks for deadlocks within --cycles */
    CIRCLE_SHOWN_MAX = 16, /* channels of a deadlock */
};

struct outcome {
    const struct torus *torus;
    const struct simulate_order *order;
    struct traffic traffic;
    struct cycle_counts counts;
    struct cycle_channel circle[CIRCLE_SHOWN_MAX];
    uint32_t circle_length;
    double bound_share;   /* share of the bound; 0: nothing was delivered */
    double gb_per_second; /* received by each chip */
};

/* Runs to the end, or for the given number of cycles with checks for deadlocks in between. */
static void run_net(struct cycle_net *net, struct outcome *outcome)
{
    uint64_t cycles = outcome->order->cycles;
    for (uint64_t look = 1; look <= LOOKS && outcome->circle_length == 0; look++) {
        cycle_net_run(net, cycles ? cycles / LOOKS * look + cycles % LOOKS * look / LOOKS : UINT64_MAX);
        outcome->circle_length = cycle_net_circle(net, outcome->circle, CIRCLE_SHOWN_MAX);
    }
    cycle_net_count(net, &outcome->counts);
}

static void rate(struct outcome *outcome)
{
    const struct cycle_counts *counts = &outcome->counts;
    struct load_bound bound = outcome->traffic.bound;
    uint64_t passed = counts->waiting == 0 && counts->moving == 0 ? counts->end : counts->now;
    double flits = (double)counts->delivered * outcome->order->terms.packet_cycles;
    if (passed == 0)
        return;
    outcome->bound_share =
        flits / (double)outcome->traffic.packets * (double)bound.units / (double)bound.links / (double)passed;
    outcome->gb_per_second =
        flits * FLIT_BYTES * 1000 / ((double)passed * FLIT_PS * (double)outcome->torus->chips);
}

static void put_text(struct buf *out, const struct outcome *outcome)
{
    const struct cycle_counts *counts = &outcome->counts;
    const struct torus *torus = outcome->torus;
    char shape[SHAPE_TEXT_MAX];
    slice_shape_format(&torus->shape, shape);
    buf_printf(out, "%s: %u chips, %u dead links; %s", shape, torus->chips,
               torus->dead[0] + torus->dead[1] + torus->dead[2],
               traffic_names[outcome->order->traffic.pattern]);
    if (outcome->order->traffic.packets)
        buf_printf(out, ", %llu packets of %u KiB each", (unsigned long long)outcome->order->traffic.packets,
                   outcome->order->terms.packet_cycles * FLIT_BYTES / 1024);
    uint64_t passed = counts->waiting == 0 && counts->moving == 0 ? counts->end : counts->now;
    buf_printf(out, "\ntime         %llu cycles, %.1f us; %.1f %% of the bound\n", (unsigned long long)passed,
               (double)passed * FLIT_PS / 1e6, 100 * outcome->bound_share);
    buf_printf(out, "delivered    %llu packets, %.1f GB/s for each chip; the slowest took %llu cycles\n",
               (unsigned long long)counts->delivered, outcome->gb_per_second,
               (unsigned long long)counts->time_max);
    if (outcome->circle_length == 0) {
        buf_printf(out, "deadlock     none\n");
        return;
    }
    buf_printf(out,
               "deadlock     %llu packets stand still; %u full buffers wait for each other in a circle:\n",
               (unsigned long long)counts->moving, outcome->circle_length);
    for (uint32_t i = 0; i < outcome->circle_length && i < CIRCLE_SHOWN_MAX; i++) {
        const struct cycle_channel *at = &outcome->circle[i];
        buf_printf(out, "  chip (%u,%u,%u) port %c%c virtual channel %u\n", torus->at[0][at->chip],
                   torus->at[1][at->chip], torus->at[2][at->chip], "xyz"[at->port / 2], "+-"[at->port % 2],
                   at -> vc);
    }
}

static void put_json(struct buf *out, const struct outcome *outcome)
{
    const struct cycle_counts *counts = &outcome->counts;
    struct json_writer writer = {.out = out};
    char shape[SHAPE_TEXT_MAX];
    slice_shape_format(&outcome->torus->shape, shape);
    json_begin_object(&writer);
    json_pair_text(&writer, "shape", shape);
    json_pair_int(&writer, "chips", outcome->torus->chips);
    json_pair_int(&writer, "deadLinks",
                  outcome->torus->dead[0] + outcome->torus->dead[1] + outcome->torus->dead[2]);
    json_pair_text(&writer, "traffic", traffic_names[outcome->order->traffic.pattern]);
    json_pair_int(&writer, "packets", (int64_t)outcome->order->traffic.packets);
    json_pair_int(&writer, "cycles", (int64_t)counts->now);
    json_pair_int(&writer, "lastArrival", (int64_t)counts->end);
    json_pair_int(&writer, "delivered", (int64_t)counts->delivered);
    json_pair_int(&writer, "hops", (int64_t)counts->hops);
    json_pair_int(&writer, "moving", (int64_t)counts->moving);
    json_pair_int(&writer, "slowestCycles", (int64_t)counts->time_max);
    json_pair_float(&writer, "shareOfBound", outcome->bound_share);
    json_pair_float(&writer, "gigabytesPerSecond", outcome->gb_per_second);
    json_pair_int(&writer, "deadlock", outcome->circle_length);
    json_end_object(&writer);
    buf_add_char(out, '\n');
}

int fabric_simulate(const struct torus *torus, const struct route *route, const struct simulate_order *order,
                    uint32_t *ret_load, struct buf *out)
{
    struct outcome outcome = {.torus = torus, .order = order};
    struct error error = {0};
    struct cycle_net *net = cycle_net_new(torus, route, &order->terms);
    if (traffic_offer(net, torus, route, &order->traffic, &outcome.traffic, &error) < 0) {
        say("%s", error.text);
        cycle_net_free(net);
        return EXIT_FAILED;
    }
    run_net(net, &outcome);
    rate(&outcome);
    uint64_t passed = outcome.counts.now ? outcome.counts.now : 1;
    for (uint32_t link = 0; link < torus->chips * CHIP_PORTS; link++)
        ret_load[link] =
            (uint32_t)(cycle_net_link_packets(net)[link] * order->terms.packet_cycles * 1000 / passed);
    if (order->json)
        put_json(out, &outcome);
    else
        put_text(out, &outcome);
    cycle_net_free(net);
    traffic_done(&outcome.traffic);
    return outcome.circle_length ? EXIT_FAILED : EXIT_OK;
}
