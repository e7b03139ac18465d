/* bench/fabric - forwarding tables and cross-connect plans: the load of the busiest link beside the least one
 * that any routing can reach, what tables, proofs and plans cost on one core, and how long the 48 switches of
 * a pod (emulated, another process, TCP) need for all 3,072 cross-connects.
 *
 *     bench_fabric          some of each case, in less than two minutes of one core
 *     bench_fabric all      more of each: 100 seeds of dead links, `sweep 64` and `pairs 64`
 *     bench_fabric gather   what ranks tell each other at the start of a session alone
 *     bench_fabric cache    solved tables from a folder, beside tables that are built, alone
 *     bench_fabric place    streams of slices through a pod alone
 *     bench_fabric links [S [M]]
 *                           8x8x8 with each number of dead links from 1 to M (64), S (100) seeds of each:
 *                           tables that hold, seeds whose torus fell apart, the largest load beside the
 *                           bound without faults
 *     bench_fabric sweep [N [P]] [all]
 *                           shapes of up to N (64) cubes alone, by P processes (one a core): all switches
 *                           well, then without each of the 48 switches; then the cases of `pairs`. The
 *                           extents of plain shapes ascend, as in 4x4x8; `all` adds their other orders
 *     bench_fabric pairs [N [P]]
 *                           1,000 random pairs of switches alone, on random shapes of up to N (64) cubes
 *
 * Long cases say on standard error how far they are.
 *
 * Every table is proved (core/fabric/prove.h); a proof that fails ends the bench. Times are of the processor,
 * so that other work on the computer does not count. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rng.h"
#include "core/fabric/bound.h"
#include "core/fabric/crossconnect.h"
#include "core/fabric/pattern.h"
#include "core/fabric/prove.h"
#include "host/fabric/switches.h"
#include "job/fabric/cache.h"
#include "sim/capacity/availability.h"
#include "sim/capacity/packing.h"
#include "sim/fabric/bring_up.h"
#include "sim/fabric/ocs_serve.h"

#include "gather.h"
#include "sweep.h"
#include "timing.h"

static bool everything;
static uint32_t processes; /* of a sweep */
static struct rng rng;

static double cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Processor time, in seconds, of the child processes that have ended. */
static double children_s(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_CHILDREN, &usage) == 0);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static struct torus torus_of(const char *text)
{
    struct slice_shape shape;
    struct torus torus;
    struct error error;
    if (slice_shape_parse(str_from(text), &shape, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    torus_init(&torus, &shape);
    return torus;
}

static void kill_switches(struct torus *torus, const char *names)
{
    struct str rest = str_from(names), name;
    while (rest.len) {
        struct pod_switch which;
        if (!str_cut(rest, ' ', &name, &rest)) {
            name = rest;
            rest = STR("");
        }
        CHECK(pod_switch_parse(name, &which, NULL) == 0);
        torus_kill_switch(torus, which);
    }
}

struct result {
    struct proof proof;
    struct load_bound bound;
    double build_ms, prove_ms;
};

/* Builds and proves, and lets go of the torus. */
static int try_to_solve(struct torus *torus, struct result *ret_result, struct error *error)
{
    struct route route = {0};
    double begin_ms = cpu_ms();
    int rc = route_build(torus, &route, error);
    double built_ms = cpu_ms();
    if (rc == 0)
        rc = route_prove(torus, &route, &ret_result->proof, NULL, error);
    ret_result->prove_ms = cpu_ms() - built_ms;
    ret_result->build_ms = built_ms - begin_ms;
    ret_result->bound = torus_load_bound(torus);
    route_done(&route);
    torus_done(torus);
    return rc;
}

static struct result solve(struct torus *torus)
{
    struct result result;
    struct error error;
    if (try_to_solve(torus, &result, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    return result;
}

static double bound_of(struct load_bound bound)
{
    return (double)bound.units / (double)bound.links;
}

static void put(const char *name, double value, const char *unit, double limit)
{
    printf("{\"bench\":\"fabric\",\"case\":\"%s\",\"value\":%.7g,\"unit\":\"%s\"", name, value, unit);
    if (limit > 0)
        printf(",\"limit\":%.7g,\"ratio_limit\":%.5f", limit, value / limit);
    printf("}\n");
    fflush(stdout);
}

static void bench_loads(void)
{
    static const char *const cases[][2] = {
        {"4x4x4", ""},
        {"4x4x8", ""},
        {"4x8x8", ""},
        {"8x8x8", ""},
        {"8x8x16", ""},
        {"8x16x16", ""},
        {"16x16x16", ""},
        {"4x4x8-twisted", ""},
        {"4x8x8-twisted", ""},
        {"8x8x16-twisted", ""},
        {"8x16x16-twisted", ""},
        {"12x12x24-twisted", ""},
        {"4x4x4", "x5"},
        {"4x4x8", "z5"},
        {"4x8x8", "y5"},
        {"8x8x8", "x5"},
        {"8x8x8", "x5 x9"},
        {"8x8x8", "x5 y9"},
        {"8x8x8", "x5 y9 z3"},
        {"8x8x16", "z5"},
        {"8x16x16", "y5"},
        {"12x12x12", "x5"},
        {"16x16x16", "x5"},
        {"4x4x8-twisted", "x5"},
        {"4x8x8-twisted", "x5"},
        {"8x8x16-twisted", "x5"},
        {"8x16x16-twisted", "x5"},
        {"12x12x24-twisted", "x5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct torus torus = torus_of(cases[i][0]);
        kill_switches(&torus, cases[i][1]);
        struct result result = solve(&torus);
        char name[96];
        snprintf(name, sizeof name, "load of %s%s%s", cases[i][0], *cases[i][1] ? " without " : "",
                 cases[i][1]);
        put(name, result.proof.load_max, "units", bound_of(result.bound));
    }
}

static void bench_times(void)
{
    static const char *const cases[][2] = {{"8x8x8", ""},    {"16x16x16", ""},   {"16x16x16", "x5"},
                                           {"16x16x24", ""}, {"16x16x24", "z5"}, {"8x16x16-twisted", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct torus torus = torus_of(cases[i][0]);
        kill_switches(&torus, cases[i][1]);
        struct result result = solve(&torus);
        char name[96];
        const char *without = *cases[i][1] ? " without " : "";
        snprintf(name, sizeof name, "tables of %s%s%s", cases[i][0], without, cases[i][1]);
        put(name, result.build_ms, "ms", 0);
        snprintf(name, sizeof name, "proof of %s%s%s", cases[i][0], without, cases[i][1]);
        put(name, result.prove_ms, "ms", 0);
    }
}

static void kill_random(struct torus *torus, uint32_t count)
{
    while (count > 0)
        count -= torus_kill_link(torus, (uint16_t)rng_below(&rng, torus->chips),
                                 (uint32_t)rng_below(&rng, CHIP_PORTS));
}

static void bench_cut(const char *shape, int runs)
{
    double times[32], worst = 0;
    CHECK(runs <= 32);
    for (int run = 0; run < runs; run++) {
        struct torus torus = torus_of(shape);
        kill_random(&torus, 1);
        struct result result = solve(&torus);
        times[run] = result.build_ms + result.prove_ms;
        worst = times[run] > worst ? times[run] : worst;
    }
    char name[96];
    snprintf(name, sizeof name, "a link of %s is cut: new tables and proof", shape);
    put(name, median(times, (size_t)runs), "ms", 0);
    snprintf(name, sizeof name, "a link of %s is cut: the slowest of %d", shape, runs);
    put(name, worst, "ms", 0);
}

enum { LINKS_SEEDS_MAX = 1000, LINKS_MAX = 512 };
/* 8x8x8 with one number of random dead links, many seeds. */
struct dead_links {
    double loads[LINKS_SEEDS_MAX]; /* of the busiest link, by table that holds */
    uint32_t proved, apart;        /* apart: dead links part the torus, and tables are refused */
    double most, bound;            /* the largest load, and the bound of its torus */
};

static void solve_dead_links(uint32_t count, uint32_t seeds, struct dead_links *ret_links)
{
    *ret_links = (struct dead_links){.bound = 1};
    for (uint32_t seed = 0; seed < seeds; seed++) {
        rng_seed(&rng, 1000 * count + seed);
        struct torus torus = torus_of("8x8x8");
        struct result result;
        struct error error;
        kill_random(&torus, count);
        bool joined = torus_connected(&torus);
        int rc = try_to_solve(&torus, &result, &error);
        if (!joined && rc == ERROR_UNAVAILABLE) {
            ret_links->apart++;
            continue;
        }
        if (!joined || rc < 0) {
            fprintf(stderr, "8x8x8, %u dead links, seed %u: %s\n", count, seed,
                    rc < 0 ? error.text : "tables of a torus that is not connected");
            exit(1);
        }
        double load = result.proof.load_max;
        ret_links->loads[ret_links->proved++] = load;
        if (load > ret_links->most) {
            ret_links->most = load;
            ret_links->bound = bound_of(result.bound);
        }
    }
}

static struct dead_links links;

static void bench_links(void)
{
    for (uint32_t count = 1; count <= 64; count *= 2) {
        char name[96];
        solve_dead_links(count, everything ? 100 : 8, &links);
        snprintf(name, sizeof name, "8x8x8, %u dead links: median load of %u seeds", count, links.proved);
        put(name, median(links.loads, links.proved), "units", 512);
        snprintf(name, sizeof name, "8x8x8, %u dead links: largest load", count);
        put(name, links.most, "units", links.bound);
    }
}

/* Every number of dead links up to `most`. */
static void links_alone(uint32_t seeds, uint32_t most)
{
    uint64_t proved = 0, apart = 0;
    double largest = 0;
    char name[96];
    for (uint32_t count = 1; count <= most; count++) {
        solve_dead_links(count, seeds, &links);
        snprintf(name, sizeof name, "8x8x8, %u dead links: tables that hold", count);
        put(name, links.proved, "tables", seeds);
        snprintf(name, sizeof name, "8x8x8, %u dead links: seeds whose torus fell apart", count);
        put(name, links.apart, "seeds", 0);
        snprintf(name, sizeof name, "8x8x8, %u dead links: largest load / fault-free", count);
        put(name, links.most, "units", 512);
        fprintf(stderr, "8x8x8: %u of %u numbers of dead links are done\n", count, most);
        proved += links.proved;
        apart += links.apart;
        largest = links.most > largest ? links.most : largest;
    }
    snprintf(name, sizeof name, "8x8x8, 1 to %u dead links: tables that hold", most);
    put(name, (double)proved, "tables", (double)seeds * most);
    snprintf(name, sizeof name, "8x8x8, 1 to %u dead links: seeds whose torus fell apart", most);
    put(name, (double)apart, "seeds", 0);
    snprintf(name, sizeof name, "8x8x8, 1 to %u dead links: largest load / fault-free", most);
    put(name, largest, "units", 512);
    snprintf(name, sizeof name, "8x8x8, 1 to %u dead links: time of one core", most);
    put(name, cpu_ms() / 1e3, "s", 0);
}

static void run_sweep(struct sweep *sweep, const char *what)
{
    char name[192], worst[96];
    double begin_s = children_s();
    sweep->what = what;
    if (!sweep_run(sweep, processes))
        exit(1);
    snprintf(name, sizeof name, "%s: time of one core", what);
    put(name, children_s() - begin_s, "s", 0);
    snprintf(name, sizeof name, "%s: proved", what);
    put(name, sweep->proved, "tables", (double)sweep->cases.len);
    snprintf(name, sizeof name, "%s: of these proved by a shift of another", what);
    put(name, sweep->carried, "tables", 0);
    snprintf(name, sizeof name, "%s: pairs of chips delivered", what);
    put(name, (double)sweep->pairs, "pairs", 0);
    sweep_name(&sweep->cases.items[sweep->worst], worst, sizeof worst);
    const char *beside = sweep->cases.items[0].dead_count ? "fault-free" : "optimum";
    snprintf(name, sizeof name, "%s: worst / %s (%s)", what, beside, worst);
    put(name, sweep->worst_ratio, "ratio", 1);
    vec_done(&sweep->cases);
}

/* Every shape with all switches, then without each switch, or without every `stride`-th. */
static void sweep_switches(enum sweep_family family, uint32_t cubes_max, uint32_t stride)
{
    static struct slice_shape shapes[SWEEP_SHAPES_MAX];
    struct sweep whole = {0}, cut = {0};
    uint32_t count = sweep_shapes(cubes_max, family, shapes), number = 0;
    if (count == 0)
        return;
    for (uint32_t i = 0; i < count; i++, number %= POD_SWITCHES) {
        sweep_add(&whole, shapes[i], NULL, 0);
        for (; number < POD_SWITCHES; number += stride) {
            struct pod_switch dead = pod_switch_at(number);
            sweep_add(&cut, shapes[i], &dead, 1);
        }
    }
    char what[64], name[96];
    snprintf(what, sizeof what, "%s, <= %u cubes, no switch out", sweep_families[family], cubes_max);
    snprintf(name, sizeof name, "%s: different shapes", what);
    put(name, count, "shapes", 0);
    run_sweep(&whole, what);
    snprintf(what, sizeof what, "%s, <= %u cubes, a switch out", sweep_families[family], cubes_max);
    run_sweep(&cut, what);
}

/* Random pairs of switches, random shapes. */
static void sweep_pairs(uint32_t cubes_max, uint32_t count)
{
    static struct slice_shape shapes[SWEEP_SHAPES_MAX];
    struct sweep sweep = {0};
    uint32_t plain = sweep_shapes(cubes_max, SWEEP_PLAIN, shapes),
             all = plain + sweep_shapes(cubes_max, SWEEP_TWISTED, shapes + plain);
    rng_seed(&rng, 2);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first = (uint32_t)rng_below(&rng, POD_SWITCHES),
                 second = (uint32_t)rng_below(&rng, POD_SWITCHES - 1);
        struct pod_switch dead[] = {pod_switch_at(first), pod_switch_at(second + (second >= first))};
        sweep_add(&sweep, shapes[rng_below(&rng, all)], dead, 2);
    }
    char what[64];
    snprintf(what, sizeof what, "<= %u cubes, a pair of switches out", cubes_max);
    run_sweep(&sweep, what);
}

/* A pod full of one slice, and one in which a slice takes the place of another. */
static void bench_plans(void)
{
    static struct crossconnects now;
    static struct crossconnect_limits limits;
    struct arena arena ARENA_CLEANUP = {0};
    struct crossconnect_plan plan;
    struct cube_slice slice;
    uint16_t cubes[64];
    struct slice_shape shape = {.extent = {16, 16, 16}};
    double arrange_ms[21], plan_ms[21], again_ms[21];
    for (uint16_t i = 0; i < 64; i++)
        cubes[i] = i;
    for (int run = 0; run < 21; run++) {
        crossconnects_init(&now, 64);
        double begin_ms = cpu_ms();
        CHECK(crossconnect_arrange(&now, &shape, cubes, 64, &slice, NULL) == 0);
        double arranged_ms = cpu_ms();
        CHECK(crossconnect_plan(&now, &limits, &slice, &arena, &plan, NULL) == 0 && plan.count == 3072);
        plan_ms[run] = cpu_ms() - arranged_ms;
        arrange_ms[run] = arranged_ms - begin_ms;
        CHECK(crossconnect_apply(&now, &plan, NULL) == 0);
        begin_ms = cpu_ms();
        CHECK(crossconnect_plan(&now, &limits, &slice, &arena, &plan, NULL) == 0 && plan.count == 0);
        again_ms[run] = cpu_ms() - begin_ms;
        arena_clear(&arena);
    }
    put("places of 64 cubes", median(arrange_ms, 21), "ms", 0);
    put("plan of 3,072 cross-connects", median(plan_ms, 21), "ms", 0);
    put("plan of no change, 3,072 kept", median(again_ms, 21), "ms", 0);
}

/* --- switches -------------------------------------------------------------------------------------- */

static void join_pod(struct crew *crew, const char *protocol)
{
    enum { RUNS = 7 };
    struct switch_work *work = mem_alloc(POD_SWITCHES * sizeof *work);
    double join_ms[RUNS], part_ms[RUNS];
    char name[96];
    for (int run = 0; run < RUNS; run++) {
        for (uint32_t i = 0; i < POD_SWITCHES; i++) {
            work[i].count = 0;
            for (uint32_t cube = 0; cube < 64; cube++)
                work[i].changes[work[i].count++] =
                    (struct switch_change){.add = true, .a = 1 + cube, .b = 65 + (cube + 1) % 64};
        }
        double begin_ms = now_ms();
        CHECK(crew_carry_out(crew, work) == 0);
        join_ms[run] = now_ms() - begin_ms;
        begin_ms = now_ms();
        CHECK(crew_undo(crew, work) == 0);
        part_ms[run] = now_ms() - begin_ms;
    }
    double tuning_ms = OCS_TUNING_NS / 1e6, joined_ms = median(join_ms, RUNS);
    snprintf(name, sizeof name, "3,072 cross-connects on 48 switches, %s", protocol);
    put(name, joined_ms, "ms", tuning_ms);
    snprintf(name, sizeof name, "beyond one switching time, %s", protocol);
    put(name, joined_ms - tuning_ms, "ms", 0);
    snprintf(name, sizeof name, "3,072 cross-connects taken back, %s", protocol);
    put(name, median(part_ms, RUNS), "ms", 0);
    mem_free(work);
}

static void bench_switches(enum ocs_protocol protocol)
{
    const char *name = protocol == OCS_SCPI ? "scpi" : "tl1";
    struct ocs_serve_settings settings = {
        .orders_fd = -1,
        .address = "127.0.0.1",
        .switches = POD_SWITCHES,
        .protocol = {protocol == OCS_SCPI, protocol == OCS_TL1},
        .ocs = {.a_ports = 64, .b_ports = 64, .tuning_ns = OCS_TUNING_NS, .seed = 1}};
    struct crew_terms terms = CREW_TERMS_DEFAULT;
    struct switches *switches = mem_alloc(sizeof *switches);
    struct ocs_serve *serve;
    struct crew *crew;
    static volatile sig_atomic_t never;
    CHECK(ocs_serve_open(&settings, &serve, NULL) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        ocs_serve_run(serve, NULL, &never);
        _exit(0);
    }
    for (uint32_t i = 0; i < POD_SWITCHES; i++) {
        struct switch_entry *entry = &switches->entry[i];
        entry->listed = true;
        snprintf(entry->driver, sizeof entry->driver, "%s", name);
        snprintf(entry->address, sizeof entry->address, "127.0.0.1:%u", ocs_serve_port(serve, i, protocol));
    }
    switches->listed = POD_SWITCHES;
    terms.cubes = 64;
    CHECK(switches_open(switches, &terms, &crew, NULL) == 0);
    join_pod(crew, name);
    crew_close(crew);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    ocs_serve_close(serve);
    mem_free(switches);
}

/* --- emulated chips --------------------------------------------------------------------------------- */

/* Joins all cubes of a pod into 16x16x16, and waits until the links are trained. */
static struct chips *lit_pod(const struct cube_slice *slice)
{
    static struct ocs ocs;
    struct chips_settings settings = {.cubes = 64,
                                      .memory_bytes = 8192,
                                      .buffers = 4,
                                      .packet_ns = 82,
                                      .copper_ns = 20,
                                      .optical_ns = 200,
                                      .seed = 1};
    struct ocs_settings ports = {.a_ports = 64, .b_ports = 64};
    struct chips *net = chips_new(&settings);
    for (uint32_t i = 0; i < POD_SWITCHES; i++) {
        ocs_init(&ocs, &ports);
        for (uint32_t cube = 0; cube < 64; cube++)
            ocs_join(&ocs, 1 + cube, 65 + slice_next_place(&slice->shape, cube, pod_switch_at(i).axis), 0);
        chips_follow(net, i, &ocs);
    }
    chips_run(net, INT64_MAX);
    return net;
}

static void write_packets(struct chips *net)
{
    static uint8_t bytes[CHIPS_PACKET_BYTES];
    struct chips_counts counts;
    struct chips_done done;
    uint32_t delivered = 0;
    for (uint32_t chip = 0; chip < 64 * CUBE_CHIPS; chip++)
        for (int i = 0; i < 8; i++)
            chips_write(net, chip, (uint16_t)rng_below(&rng, 64 * CUBE_CHIPS), 0, bytes, sizeof bytes, 0);
    double begin_ms = cpu_ms();
    chips_run(net, INT64_MAX);
    while (chips_take_done(net, &done))
        delivered += done.delivered;
    chips_count(net, &counts);
    CHECK(delivered == 8 * 64 * CUBE_CHIPS && counts.waiting == 0);
    put("packets of emulated chips, hops", (double)counts.hops / (cpu_ms() - begin_ms) / 1e3, "million/s", 0);
}

static void bench_session(void)
{
    static struct cube_slice slice = {.shape = {.extent = {16, 16, 16}}, .count = 64};
    struct fabric_session_terms terms = {
        .slice = &slice, .number = 1, .bytes_per_us = 50000, .packet_bytes = CHIPS_PACKET_BYTES};
    struct fabric_session *session;
    int64_t first_ns, last_ns;
    for (uint16_t i = 0; i < 64; i++)
        slice.cube[i] = i;
    double begin_ms = cpu_ms();
    struct chips *net = lit_pod(&slice);
    struct bring_up *up = bring_up_new(net, 64);
    put("4,096 emulated chips: made, light, training", cpu_ms() - begin_ms, "ms", 0);
    double lit_ms = cpu_ms();
    CHECK(fabric_session_new(&terms, &session, NULL) == 0);
    bring_up_carry_out(up, session);
    CHECK(fabric_session_state(session) == FABRIC_SESSION_RUN);
    put("session of 4,096 emulated chips: discovery, check, tables, start", cpu_ms() - lit_ms, "ms", 0);
    bring_up_started(up, &first_ns, &last_ns);
    put("session of 4,096 emulated chips: first and last start apart", (double)(last_ns - first_ns), "ns", 0);
    write_packets(net);
    double end_ms = cpu_ms();
    fabric_session_stop(session);
    bring_up_carry_out(up, session);
    CHECK(fabric_session_state(session) == FABRIC_SESSION_ENDED);
    put("session of 4,096 emulated chips: end", cpu_ms() - end_ms, "ms", 0);
    bring_up_free(up);
    chips_free(net);
    fabric_session_free(session);
}

/* --- availability ----------------------------------------------------------------------------------- */

/* The largest distance of simulated pods from the closed forms, in standard deviations. */
static double deviation_of_pods(uint32_t trials)
{
    static const uint32_t slices[] = {1, 4, 8, 16, 32, 48, 50, 56, 60, 64};
    static const double hosts[] = {.99, .995, .999};
    enum { COUNT = sizeof slices / sizeof *slices };
    struct availability means[COUNT];
    double most = 0;
    for (int h = 0; h < 3; h++) {
        availability_draw(64, slices, COUNT, hosts[h], trials, 1, means);
        for (int i = 0; i < COUNT; i++) {
            struct availability exact = availability_exact(64, slices[i], hosts[h]),
                                one = availability_deviation(64, slices[i], hosts[h]);
            double off[] = {fabs(means[i].slice - exact.slice) / (one.slice + 1e-9),
                            fabs(means[i].goodput - exact.goodput) / (one.goodput + 1e-9),
                            fabs(means[i].goodput_static - exact.goodput_static) /
                                (one.goodput_static + 1e-9)};
            for (int k = 0; k < 3; k++)
                most = off[k] > most ? off[k] : most;
        }
    }
    return most * sqrt(trials);
}

static void bench_availability(void)
{
    double host = availability_host_for(144, 130, .95);
    put("availability: simulated pods and closed forms, largest distance", deviation_of_pods(20000), "sigma",
        0);
    put("availability: host for 130 of 144 cubes with 0.95", host, "share", .99579);
    put("availability: of 144 cubes, whole with 0.95", availability_whole_cubes(144, host, .95), "cubes",
        130);
}

/* --- placement -------------------------------------------------------------------------------------- */

static int64_t cpu_ns(void)
{
    return (int64_t)(cpu_ms() * 1e6);
}

static void put_way(const char *figure, enum packing_way way, double host_up, double value, const char *unit,
                    double limit)
{
    char name[128];
    snprintf(name, sizeof name, "1,000 slices, hosts up %g, %s: %s", host_up, packing_names[way], figure);
    put(name, value, unit, limit);
}

/* Means of streams of 1,000 random slices through a pod of 64 cubes with broken hosts. */
static struct packing_result pack(enum packing_way way, double host_up)
{
    enum { SEEDS = 10 };
    struct packing_result sum = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct packing_order order = {
            .slices = 1000, .host_up = host_up, .seed = seed, .moves_max = 8, .clock_ns = cpu_ns};
        struct packing_result one;
        packing_run(&order, way, &one);
        CHECK(one.placed + one.refused == order.slices);
        sum.placed += one.placed;
        sum.refused += one.refused;
        sum.moves += one.moves;
        sum.busy += one.busy / SEEDS;
        sum.stranded += one.stranded / SEEDS;
        sum.choose_ns += one.choose_ns;
    }
    put_way("placed", way, host_up, sum.placed / (double)sum.choose_ns * 1e9, "slices/s", 0);
    put_way("never fit", way, host_up, sum.refused / (double)SEEDS, "slices", 0);
    put_way("working chips", way, host_up, 100 * sum.busy, "%", 100);
    if (way == PACKING_MOVING)
        put_way("moves", way, host_up, sum.moves / (double)SEEDS, "moves", 0);
    return sum;
}

/* The share of stranded chips, beside that of torus3d's boxes. */
static void bench_place(void)
{
    static const double hosts[] = {.99, .999};
    for (int h = 0; h < 2; h++) {
        struct packing_result results[PACKING_WAYS];
        for (int way = 0; way < PACKING_WAYS; way++)
            results[way] = pack(way, hosts[h]);
        for (int way = 0; way < PACKING_WAYS; way++)
            put_way("stranded chips", way, hosts[h], 100 * results[way].stranded, "%",
                    100 * results[PACKING_BOXES].stranded);
    }
}

/* Tables that are proved: built and kept, and found in the folder. `dead` names the links for people. */
static void time_cached(const char *folder, const struct torus *torus, const char *shape, const char *dead)
{
    struct route built, found;
    struct proof proof;
    struct buf bytes = {0};
    struct error error = {0};
    char name[120];
    double begin_ms = cpu_ms();
    CHECK(route_build(torus, &built, NULL) == 0 && route_prove(torus, &built, &proof, NULL, NULL) == 0);
    double built_ms = cpu_ms() - begin_ms;
    begin_ms = now_ms();
    if (route_cache_write(folder, torus, &built, &error) < 0)
        fprintf(stderr, "%s\n", error.text), exit(1);
    snprintf(name, sizeof name, "tables of %s without %s are kept, on the clock", shape, dead);
    put(name, now_ms() - begin_ms, "ms", 0);
    begin_ms = cpu_ms();
    CHECK(route_cache_read(folder, torus, &bytes, NULL) == 0);
    CHECK(pattern_routes(buf_str(&bytes), torus, &found, &proof, NULL, NULL) == 0);
    snprintf(name, sizeof name, "tables of %s without %s are found and proved; limit: built", shape, dead);
    put(name, cpu_ms() - begin_ms, "ms", built_ms);
    buf_done(&bytes);
    route_done(&built);
    route_done(&found);
}

static void bench_cache(void)
{
    static const char *const shapes[] = {"8x8x8", "16x16x16"};
    char folder[] = "/tmp/phalanx-routes-XXXXXX", command[64];
    CHECK(mkdtemp(folder) != NULL);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct torus torus = torus_of(shapes[i]), cut = torus_of(shapes[i]);
        kill_switches(&torus, "x5");
        time_cached(folder, &torus, shapes[i], "a switch");
        torus_kill_link(&cut, 17, PORT_X_PLUS);
        time_cached(folder, &cut, shapes[i], "a link");
        torus_done(&torus);
        torus_done(&cut);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
}

static void bench_gather(void)
{
    static const uint32_t worlds[] = {16, 64, 256};
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        char name[96];
        double each_ms = worlds[i] <= 64 ? gather_ms(worlds[i], false) : 0; /* more take minutes */
        snprintf(name, sizeof name, "all of %u ranks know what all chips see%s", worlds[i],
                 each_ms > 0 ? "; limit: each asks for each" : "");
        put(name, gather_ms(worlds[i], true), "ms", each_ms);
    }
}

/* Reads two numbers, of which none or the second may be missing, and then keeps its value. */
static void read_numbers(char **words, const int64_t *max, int64_t *numbers)
{
    for (int i = 0; i < 2 && words[i]; i++)
        if (!str_to_i64(str_from(words[i]), 1, max[i], &numbers[i])) {
            fprintf(stderr, "bench_fabric: argument %s: expected a number from 1 to %lld\n", words[i],
                    (long long)max[i]);
            exit(2);
        }
    if (words[0] && words[1] && words[2]) {
        fprintf(stderr, "bench_fabric: unexpected argument %s\n", words[2]);
        exit(2);
    }
}

/* The cases `sweep` and `pairs`; `count` words follow the name. */
static void sweep_alone(bool shapes, char **words, int count)
{
    int64_t numbers[] = {64, processes};
    bool all = shapes && count > 0 && strcmp(words[count - 1], "all") == 0;
    if (all)
        words[count - 1] = NULL;
    read_numbers(words, (int64_t[]){64, 256}, numbers);
    uint32_t cubes = (uint32_t)numbers[0];
    processes = (uint32_t)numbers[1];
    if (shapes) {
        sweep_switches(SWEEP_PLAIN, cubes, 1);
        sweep_switches(SWEEP_TWISTED, cubes, 1);
    }
    if (all)
        sweep_switches(SWEEP_OTHER_ORDERS, cubes, 1);
    sweep_pairs(cubes, 1000);
}

int main(int argc, char **argv)
{
    everything = argc > 1 && strcmp(argv[1], "all") == 0;
    rng_seed(&rng, 1);
    processes = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    bool sweep = argc > 1 && strcmp(argv[1], "sweep") == 0;
    if (sweep || (argc > 1 && strcmp(argv[1], "pairs") == 0))
        return sweep_alone(sweep, argv + 2, argc - 2), 0;
    if (argc > 1 && strcmp(argv[1], "links") == 0) {
        int64_t numbers[] = {100, 64};
        read_numbers(argv + 2, (int64_t[]){LINKS_SEEDS_MAX, LINKS_MAX}, numbers);
        return links_alone((uint32_t)numbers[0], (uint32_t)numbers[1]), 0;
    }
    if (argc > 1 && strcmp(argv[1], "cache") == 0)
        return bench_cache(), 0;
    bench_gather();
    if (argc > 1 && strcmp(argv[1], "gather") == 0)
        return 0;
    bench_place();
    if (argc > 1 && strcmp(argv[1], "place") == 0)
        return 0;
    bench_availability();
    bench_plans();
    bench_switches(OCS_SCPI);
    bench_switches(OCS_TL1);
    bench_session();
    bench_cache();
    bench_cut("8x8x8", 15);
    bench_cut("16x16x16", 3);
    bench_times();
    bench_loads();
    bench_links();
    sweep_pairs(everything ? 64 : 16, everything ? 1000 : 60);
    for (int family = SWEEP_PLAIN; family <= SWEEP_TWISTED; family++)
        sweep_switches((enum sweep_family)family, everything ? 64 : 8, everything ? 1 : 5);
    return 0;
}
