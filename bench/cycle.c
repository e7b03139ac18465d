/* bench/cycle - packets through the tables of a slice, cycle by cycle: the time of all-to-all and of ring
 * all-reduce beside the least time that any routing needs, hops that one core simulates in a second, and long
 * runs without a switch in which a deadlock would show.
 *
 *     bench_cycle           ten million cycles of one cube, some of larger slices
 *     bench_cycle long S    ten million cycles of one shape, such as 8x8x8, without a switch of each axis
 *     bench_cycle all       both, and the same of all shapes of 1 to 4 cubes: hours of one core
 *
 * In long runs buffers hold one or two packets and chips send as fast as they can, so that packets wait as
 * much as possible. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "core/fabric/prove.h"
#include "sim/cycle/traffic.h"

#include "timing.h"

struct bed {
    struct torus torus;
    struct route route;
    struct cycle_net *net;
    struct traffic traffic;
};

static void put(const char *name, double value, const char *unit, double limit)
{
    printf("{\"bench\":\"cycle\",\"case\":\"%s\",\"value\":%.7g,\"unit\":\"%s\"", name, value, unit);
    if (limit > 0)
        printf(",\"limit\":%.7g,\"ratio_limit\":%.5f", limit, value / limit);
    printf("}\n");
    fflush(stdout);
}

static void bed_make(struct bed *bed, struct slice_shape shape, const char *dead, uint32_t buffers,
                     const struct traffic_order *order)
{
    struct cycle_terms terms = CYCLE_TERMS_DEFAULT;
    struct pod_switch out;
    terms.buffers = buffers;
    torus_init(&bed->torus, &shape);
    if (*dead && pod_switch_parse(str_from(dead), &out, NULL) == 0)
        torus_kill_switch(&bed->torus, out);
    CHECK(route_build(&bed->torus, &bed->route, NULL) == 0);
    bed->net = cycle_net_new(&bed->torus, &bed->route, &terms);
    CHECK(traffic_offer(bed->net, &bed->torus, &bed->route, order, &bed->traffic, NULL) == 0);
}

static void bed_done(struct bed *bed)
{
    cycle_net_free(bed->net);
    traffic_done(&bed->traffic);
    route_done(&bed->route);
    torus_done(&bed->torus);
}

static struct slice_shape shape_of(const char *text)
{
    struct slice_shape shape;
    CHECK(slice_shape_parse(str_from(text), &shape, NULL) == 0);
    return shape;
}

static void bench_pattern(const char *shape, const char *dead, enum traffic_pattern pattern, uint64_t packets)
{
    struct traffic_order order = {pattern, packets, TRAFFIC_PACE_PERCENT, 1};
    struct cycle_terms terms = CYCLE_TERMS_DEFAULT;
    struct cycle_counts counts;
    struct bed bed;
    char name[96];
    bed_make(&bed, shape_of(shape), dead, terms.buffers, &order);
    double begin_ms = now_ms();
    cycle_net_run(bed.net, UINT64_MAX);
    double ms = now_ms() - begin_ms;
    cycle_net_count(bed.net, &counts);
    CHECK(counts.moving == 0 && counts.waiting == 0);
    struct load_bound bound = bed.traffic.bound;
    snprintf(name, sizeof name, "%s of %s%s%s", traffic_names[pattern], shape, *dead ? " without " : "",
             dead);
    put(name, (double)counts.end, "cycles",
        (double)bound.units * (double)(packets * terms.packet_cycles) / (double)bound.links);
    if (strcmp(shape, "8x8x8") == 0 && pattern == TRAFFIC_ALL_TO_ALL && !*dead)
        put("hops simulated on one core, 8x8x8", (double)counts.hops / ms / 1e3, "million/s", 0);
    bed_done(&bed);
}

/* Long runs: every thousandth part looks for a deadlock, and for chips that get nothing any more. */
static uint64_t run_long(struct slice_shape shape, const char *dead, uint32_t buffers, uint64_t cycles)
{
    struct traffic_order order = {.pattern = TRAFFIC_ALL_TO_ALL, .seed = 1};
    struct cycle_counts counts = {0};
    struct bed bed;
    bed_make(&bed, shape, dead, buffers, &order);
    for (uint64_t part = 1; part <= 1000; part++) {
        uint64_t delivered = counts.delivered;
        cycle_net_run(bed.net, cycles / 1000 * part);
        cycle_net_count(bed.net, &counts);
        if (cycle_net_circle(bed.net, NULL, 0) > 0 || counts.delivered == delivered) {
            fprintf(stderr, "deadlock without %s after %llu cycles\n", dead, (unsigned long long)counts.now);
            exit(1);
        }
    }
    bed_done(&bed);
    return counts.now;
}

static void bench_long(const char *shape, const char *dead, uint64_t cycles)
{
    char name[96];
    snprintf(name, sizeof name, "no deadlock, %s without %s", shape, dead);
    put(name, (double)run_long(shape_of(shape), dead, 1, cycles) / 1e6, "million cycles", 0);
}

/* The 16 switches of an axis have the same tables, shifted (core/fabric/route.h): one stands for them. */
static void bench_axes(const char *shape)
{
    for (uint32_t axis = 0; axis < AXES; axis++)
        bench_long(shape, pod_switch_name((struct pod_switch){axis, 0}), 10000000);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "long") == 0) {
        bench_axes(argv[2]);
        return 0;
    }
    bench_pattern("8x8x8", "", TRAFFIC_ALL_TO_ALL, 4);
    bench_pattern("8x8x8", "x5", TRAFFIC_ALL_TO_ALL, 4);
    bench_pattern("4x4x8", "", TRAFFIC_ALL_TO_ALL, 16);
    bench_pattern("4x4x8-twisted", "", TRAFFIC_ALL_TO_ALL, 16);
    bench_pattern("4x8x8", "", TRAFFIC_ALL_TO_ALL, 8);
    bench_pattern("4x8x8-twisted", "", TRAFFIC_ALL_TO_ALL, 8);
    bench_pattern("8x8x16-twisted", "", TRAFFIC_ALL_TO_ALL, 2);
    bench_pattern("8x8x8", "", TRAFFIC_ALL_REDUCE, 32);
    bench_pattern("8x8x8", "x5", TRAFFIC_ALL_REDUCE, 32);
    bench_pattern("8x8x8", "", TRAFFIC_PERMUTATION, 64);
    bench_long("4x4x4", "x5", 10000000);
    bench_long("4x4x8", "z5", 1000000);
    bench_long("4x4x8-twisted", "x5", 1000000);
    bench_long("8x8x8", "y9", 100000);
    if (argc < 2 || strcmp(argv[1], "all") != 0)
        return 0;
    static const char *const shapes[] = {"4x4x4", "4x4x8",         "4x4x8-twisted", "4x4x12",
                                         "4x8x8", "4x8x8-twisted", "4x4x16",        "8x8x8"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        bench_axes(shapes[i]);
    return 0;
}
