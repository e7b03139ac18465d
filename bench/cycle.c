/* bench/cycle - packets through the tables of a slice, cycle by cycle: the time of all-to-all and of ring
 * all-reduce beside the least time that any routing needs, hops that one core simulates in a second, and long
 * runs without a switch in which a deadlock would show.
 *
 *     bench_cycle           ten million cycles of one cube, some of larger slices
 *     bench_cycle all       both, and `long` of all shapes of 1 to 4 cubes: hours of one core
 *     bench_cycle long S [cycles C]
 *                           C (ten million) cycles of one shape, such as 8x8x8, without a switch of each axis
 *     bench_cycle long S F... [cycles C]
 *                           the same without the switch or the pair of switches F, such as x5 or x5+y9
 *     bench_cycle long S sample N SEED [cycles C]
 *                           the same for N faults drawn without repetition from the 48 single switches and
 *                           the 1,128 pairs; every fourth is a single switch, beginning with the first
 *     bench_cycle long S every [cycles C]
 *                           the same for one of each kind of these 1,176 faults: faults of a kind have the
 *                           same canonical torus, so their tables are the same, shifted. There are 222 kinds
 *
 * In long runs each buffer holds one packet and chips send as fast as they can, so that packets wait as much
 * as possible. Long runs say on standard error how far they are; a deadlock ends the bench. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"
#include "core/fabric/prove.h"
#include "sim/cycle/traffic.h"

#include "timing.h"

enum {
    PAIRS = POD_SWITCHES * (POD_SWITCHES - 1) / 2,
    FAULTS = POD_SWITCHES + PAIRS,
    PARTS = 1000, /* of a long run */
    CYCLES_MIN = 100 * PARTS,
    CYCLES_DEFAULT = 10000000,
    PROGRESS_MS = 30000,
};
#define FAULT_NONE ((struct fault){0})

/* The switches that are out. */
struct fault {
    struct pod_switch dead[2];
    uint32_t count;
};
/* Long runs of one shape. */
struct long_runs {
    struct slice_shape shape;
    const char *name; /* of the shape */
    struct fault faults[FAULTS];
    uint32_t count, done;
    uint64_t cycles; /* of each */
    double said_ms;  /* when progress was last told */
};

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

/* Reads a switch, or two that are joined by a plus. */
static bool fault_parse(const char *text, struct fault *ret_fault)
{
    struct str names[2], all = str_from(text);
    *ret_fault = (struct fault){.count = 1};
    if (str_cut(all, '+', &names[0], &names[1]))
        ret_fault->count = 2;
    else
        names[0] = all;
    for (uint32_t i = 0; i < ret_fault->count; i++)
        if (pod_switch_parse(names[i], &ret_fault->dead[i], NULL) < 0)
            return false;
    return ret_fault->count == 1 || ret_fault->dead[0].axis != ret_fault->dead[1].axis ||
           ret_fault->dead[0].index != ret_fault->dead[1].index;
}

/* Writes " without x5 and y9", or nothing. */
static const char *fault_name(const struct fault *fault, char text[32])
{
    int len = 0;
    *text = '\0';
    for (uint32_t i = 0; i < fault->count; i++)
        len += snprintf(text + len, 32 - (size_t)len, " %s %s", i ? "and" : "without",
                        pod_switch_name(fault->dead[i]));
    return text;
}

static void bed_make(struct bed *bed, struct slice_shape shape, const struct fault *fault, uint32_t buffers,
                     const struct traffic_order *order)
{
    struct cycle_terms terms = CYCLE_TERMS_DEFAULT;
    terms.buffers = buffers;
    torus_init(&bed->torus, &shape);
    for (uint32_t i = 0; i < fault->count; i++)
        torus_kill_switch(&bed->torus, fault->dead[i]);
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
    struct fault fault = FAULT_NONE;
    CHECK(!*dead || fault_parse(dead, &fault));
    struct traffic_order order = {pattern, packets, TRAFFIC_PACE_PERCENT, 1};
    struct cycle_terms terms = CYCLE_TERMS_DEFAULT;
    struct cycle_counts counts;
    struct bed bed;
    char name[96];
    bed_make(&bed, shape_of(shape), &fault, terms.buffers, &order);
    double begin_ms = now_ms();
    cycle_net_run(bed.net, UINT64_MAX);
    double ms = now_ms() - begin_ms;
    cycle_net_count(bed.net, &counts);
    CHECK(counts.moving == 0 && counts.waiting == 0);
    struct load_bound bound = bed.traffic.bound;
    char without[32];
    snprintf(name, sizeof name, "%s of %s%s", traffic_names[pattern], shape, fault_name(&fault, without));
    put(name, (double)counts.end, "cycles",
        (double)bound.units * (double)(packets * terms.packet_cycles) / (double)bound.links);
    if (strcmp(shape, "8x8x8") == 0 && pattern == TRAFFIC_ALL_TO_ALL && !*dead)
        put("hops simulated on one core, 8x8x8", (double)counts.hops / ms / 1e3, "million/s", 0);
    bed_done(&bed);
}

/* Says on standard error, now and then, how far long runs are. */
static void tell_progress(struct long_runs *runs, const char *without, uint64_t now)
{
    double ms = now_ms();
    if (ms - runs->said_ms < PROGRESS_MS)
        return;
    runs->said_ms = ms;
    fprintf(stderr, "%s: fault %u of %u (%s%s): %.1f of %.1f million cycles\n", runs->name, runs->done + 1,
            runs->count, runs->name, without, (double)now / 1e6, (double)runs->cycles / 1e6);
}

/* Looks after each part for a deadlock, and for chips that get nothing any more. Returns the cycles. */
static uint64_t run_long(struct long_runs *runs, const struct fault *fault)
{
    struct traffic_order order = {.pattern = TRAFFIC_ALL_TO_ALL, .seed = 1};
    struct cycle_counts counts = {0};
    struct bed bed;
    char without[32];
    fault_name(fault, without);
    bed_make(&bed, runs->shape, fault, 1, &order);
    for (uint64_t part = 1; part <= PARTS; part++) {
        uint64_t delivered = counts.delivered;
        cycle_net_run(bed.net, runs->cycles * part / PARTS);
        cycle_net_count(bed.net, &counts);
        if (cycle_net_circle(bed.net, NULL, 0) > 0 || counts.delivered == delivered) {
            fprintf(stderr, "deadlock: %s%s after %llu cycles\n", runs->name, without,
                    (unsigned long long)counts.now);
            exit(1);
        }
        tell_progress(runs, without, counts.now);
    }
    bed_done(&bed);
    return counts.now;
}

/* A row for each fault, then what they are together. */
static void bench_long(struct long_runs *runs)
{
    uint64_t cycles = 0;
    char name[96], without[32];
    runs->said_ms = now_ms();
    for (runs->done = 0; runs->done < runs->count; runs->done++) {
        const struct fault *fault = &runs->faults[runs->done];
        uint64_t now = run_long(runs, fault);
        cycles += now;
        snprintf(name, sizeof name, "no deadlock, %s%s", runs->name, fault_name(fault, without));
        put(name, (double)now / 1e6, "million cycles", 0);
    }
    if (runs->count < 2)
        return;
    snprintf(name, sizeof name, "no deadlock, %s, all these: faults", runs->name);
    put(name, runs->count, "faults", 0);
    snprintf(name, sizeof name, "no deadlock, %s, all these: cycles", runs->name);
    put(name, (double)cycles / 1e6, "million cycles", 0);
}

static void bench_fault(const char *shape, const char *dead, uint64_t cycles)
{
    static struct long_runs runs;
    runs = (struct long_runs){.shape = shape_of(shape), .name = shape, .count = 1, .cycles = cycles};
    CHECK(fault_parse(dead, &runs.faults[0]));
    bench_long(&runs);
}

/* The 16 switches of an axis have the same tables, shifted (core/fabric/route.h): one stands for them. */
static void add_axes(struct long_runs *runs)
{
    for (uint32_t axis = 0; axis < AXES; axis++)
        runs->faults[runs->count++] = (struct fault){.dead = {{axis, 0}}, .count = 1};
}

static void bench_axes(const char *shape)
{
    static struct long_runs runs;
    runs = (struct long_runs){.shape = shape_of(shape), .name = shape, .cycles = CYCLES_DEFAULT};
    add_axes(&runs);
    bench_long(&runs);
}

/* Lists single switches first; returns how many. */
static uint32_t list_faults(struct fault *ret_faults)
{
    uint32_t count = 0;
    for (uint32_t a = 0; a < POD_SWITCHES; a++)
        ret_faults[count++] = (struct fault){.dead = {pod_switch_at(a)}, .count = 1};
    for (uint32_t a = 0; a < POD_SWITCHES; a++)
        for (uint32_t b = a + 1; b < POD_SWITCHES; b++)
            ret_faults[count++] = (struct fault){.dead = {pod_switch_at(a), pod_switch_at(b)}, .count = 2};
    CHECK(count == FAULTS);
    return count;
}

/* Faults with the same canonical torus (core/fabric/route.h) have the same tables, shifted. A dead switch
 * kills the same link of every cube, so the live ports of the first cube tell canonical toruses apart. */
static void canonical_ports(const struct slice_shape *shape, const struct fault *fault,
                            uint8_t ret_live[CUBE_CHIPS])
{
    struct torus torus, canonical;
    torus_init(&torus, shape);
    for (uint32_t i = 0; i < fault->count; i++)
        torus_kill_switch(&torus, fault->dead[i]);
    route_canonical(&torus, &canonical);
    for (uint32_t i = 0; i < CUBE_CHIPS; i++)
        ret_live[i] = canonical.live[torus_chip(&canonical, i % 4, i / 4 % 4, i / 16)];
    torus_done(&canonical);
    torus_done(&torus);
}

/* Adds the first fault of each kind. */
static void add_kinds(struct long_runs *runs)
{
    static struct fault faults[FAULTS];
    static uint8_t seen[FAULTS][CUBE_CHIPS];
    uint32_t count = list_faults(faults);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *live = seen[runs->count];
        canonical_ports(&runs->shape, &faults[i], live);
        uint32_t same = 0;
        while (memcmp(seen[same], live, CUBE_CHIPS) != 0)
            same++;
        if (same == runs->count)
            runs->faults[runs->count++] = faults[i];
    }
}

static void shuffle(struct rng *rng, struct fault *faults, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t other = (uint32_t)rng_below(rng, i);
        struct fault fault = faults[i - 1];
        faults[i - 1] = faults[other];
        faults[other] = fault;
    }
}

static void add_sample(struct long_runs *runs, uint32_t count, uint64_t seed)
{
    static struct fault faults[FAULTS];
    uint32_t single = 0, pair = POD_SWITCHES;
    struct rng rng;
    list_faults(faults);
    rng_seed(&rng, seed);
    shuffle(&rng, faults, POD_SWITCHES);
    shuffle(&rng, faults + POD_SWITCHES, PAIRS);
    while (runs->count < count) {
        bool wants_single = runs->count % 4 == 0 && single < POD_SWITCHES;
        runs->faults[runs->count++] = faults[wants_single || pair == FAULTS ? single++ : pair++];
    }
}

static void refuse(const char *word, const char *expected)
{
    fprintf(stderr, "bench_cycle: argument %s: expected %s\n", word ? word : "missing", expected);
    exit(2);
}

static int64_t number_of(const char *word, int64_t min, int64_t max)
{
    int64_t number;
    char expected[64];
    snprintf(expected, sizeof expected, "a number from %lld to %lld", (long long)min, (long long)max);
    if (!word || !str_to_i64(str_from(word), min, max, &number))
        refuse(word, expected);
    return number;
}

/* `words`: what follows `long`, and NULL. */
static void long_alone(char **words)
{
    static struct long_runs runs;
    struct error error;
    if (!*words || slice_shape_parse(str_from(*words), &runs.shape, &error) < 0 ||
        !slice_shape_is_whole(&runs.shape))
        refuse(*words, "a shape of whole cubes, such as 8x8x8");
    runs.name = *words++;
    runs.cycles = CYCLES_DEFAULT;
    if (*words && strcmp(*words, "sample") == 0) {
        uint32_t count = (uint32_t)number_of(words[1], 1, FAULTS);
        add_sample(&runs, count, (uint64_t)number_of(words[2], 0, INT64_MAX));
        words += 3;
    } else if (*words && strcmp(*words, "every") == 0) {
        add_kinds(&runs);
        words++;
    }
    bool listed = runs.count > 0;
    for (; *words && strcmp(*words, "cycles") != 0; words++)
        if (listed || runs.count == FAULTS || !fault_parse(*words, &runs.faults[runs.count++]))
            refuse(*words, listed ? "cycles" : "a switch such as x5, a pair such as x5+y9, or cycles");
    if (*words) {
        runs.cycles = (uint64_t)number_of(words[1], CYCLES_MIN, INT64_MAX / PARTS);
        if (words[2])
            refuse(words[2], "nothing more");
    }
    if (runs.count == 0)
        add_axes(&runs);
    bench_long(&runs);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "long") == 0)
        return long_alone(argv + 2), 0;
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
    bench_fault("4x4x4", "x5", CYCLES_DEFAULT);
    bench_fault("4x4x8", "z5", 1000000);
    bench_fault("4x4x8-twisted", "x5", 1000000);
    bench_fault("8x8x8", "y9", 100000);
    if (argc < 2 || strcmp(argv[1], "all") != 0)
        return 0;
    static const char *const shapes[] = {"4x4x4", "4x4x8",         "4x4x8-twisted", "4x4x12",
                                         "4x8x8", "4x8x8-twisted", "4x4x16",        "8x8x8"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        bench_axes(shapes[i]);
    return 0;
}
