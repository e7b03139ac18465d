/* phalanx fabric: shapes of slices, plans of cross-connects, and routes with their proofs. Only diff, apply
 * and clear talk to switches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"
#include "base/units.h"
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/fabric_availability.h"
#include "cmd/fabric_cache.h"
#include "cmd/fabric_collective.h"
#include "cmd/fabric_drawings.h"
#include "cmd/fabric_live.h"
#include "cmd/fabric_report.h"
#include "cmd/fabric_session.h"
#include "cmd/fabric_simulate.h"
#include "cmd/picture.h"
#include "cmd/usage.h"

static const char usage[] =
    "Usage: phalanx fabric check SHAPE [-o json]\n"
    "       phalanx fabric plan SHAPE --cubes LIST [OPTIONS]\n"
    "       phalanx fabric route SHAPE [OPTIONS]\n"
    "       phalanx fabric simulate SHAPE [OPTIONS]\n"
    "       phalanx fabric session SHAPE [OPTIONS]\n"
    "       phalanx fabric collective SHAPE [OPTIONS]\n"
    "       phalanx fabric diff|apply SHAPE --cubes LIST --switches FILE [OPTIONS]\n"
    "       phalanx fabric clear --cubes LIST --switches FILE [OPTIONS]\n"
    "       phalanx fabric availability [OPTIONS]\n"
    "\n"
    "Slices of an optically switched pod (docs/fabric.md), without a controller. A SHAPE is 4x4x8, or\n"
    "4x4x8-twisted. check says what a shape is made of, or why it is none. plan prints what each switch\n"
    "removes and adds, so that the cubes form the slice; 3-9 joins the plus end of cube 3 with the minus\n"
    "end of cube 9. route builds forwarding tables, proves them, and compares the load of the busiest\n"
    "link with the least possible. simulate sends packets through such tables, with finite buffers and\n"
    "credits, and compares the time with the bound; a deadlock is found and named. session brings the\n"
    "slice up on emulated chips: discovery, check of every wire, tables, one start. diff reads real switches "
    "and prints the changes that apply carries\n"
    "out: on all switches at once, verified by reading back. clear parts the cubes from all others.\n"
    "collective prints what all-reduce, all-to-all and others cost by the loads of links.\n"
    "availability prints how much of a pod works when hosts fail, with and without switches.\n"
    "  --switch-out NAME      a switch that is dead, such as x5; may be repeated\n"
    "  -o json                one JSON object; plans have switch ports in place of cubes\n"
    "  --svg FILE             draws, as SVG: of check the cubes of the slice (--cubes, by place), of plan "
    "the\n"
    "                         mirrors of the switches, of route and simulate the load of every link\n"
    "  --help                 this text\n"
    "For diff, apply and clear (and --cubes, --pod, --running, --cube-out of plan):\n"
    "  --switches FILE        names, drivers and addresses of the switches; phalanx switch-sim --write\n"
    "                         makes such a list\n"
    "  --cluster FILE         takes them from a cluster file (spec.pods[].fabric) instead\n"
    "  --in POD               the pod of the cluster file, if several have switches\n"
    "  --timeout TIME         for an answer (2s)\n"
    "  --attempts N           sessions that are tried when one breaks (3)\n"
    "  --keep                 leaves what was applied when a switch fails, rather than to take it back\n"
    "For plan:\n"
    "  --cubes LIST           the cubes of the slice, such as 3,9\n"
    "  --pod N                cubes of the pod (64)\n"
    "  --running SHAPE:LIST   a slice that runs and must not be touched; may be repeated\n"
    "  --joined SHAPE:LIST    cubes that are joined to a slice that has ended; may be repeated\n"
    "  --cube-out N           a cube that is out of service; may be repeated\n"
    "For route, simulate and collective:\n"
    "  --link-out X,Y,Z,PORT  a dead link at a port of a chip, such as 0,3,2,y+; may be repeated\n"
    "  --random-links N       kills N links, the same ones for the same --seed (1)\n"
    "  --cache DIR            takes tables that are there, after their proof, and leaves new ones there\n"
    "For simulate:\n"
    "  --traffic PATTERN      all-to-all (the default), all-reduce, permutation, mirror or halfway\n"
    "  --packets N            packets for each destination, of 4 KiB (4); of all-reduce: for each step\n"
    "  --cycles N             goes on without end, and stops after N cycles\n"
    "  --buffers N            packets in the buffer of one link and virtual channel (16)\n"
    "  --pace PERCENT         of the bound, at which chips send all-to-all (97); 0: as fast as they can\n"
    "For collective:\n"
    "  --bytes N              of the array on each chip, such as 64M (16M)\n"
    "For session (and --cubes, by place):\n"
    "  --cross SWITCH:A,B     crosses the wires of cubes A and B at a switch, such as z6:0,1\n"
    "For availability (and --pod, --seed):\n"
    "  --host P               the probability that a host is up; may be repeated (0.99, 0.995, 0.999)\n"
    "  --whole N              finds the P with which N cubes are whole\n"
    "  --confidence P         with which cubes are whole (0.95)\n"
    "  --switch-up P          the probability that a switch is up (0.9998)\n"
    "  --trials N             pods that are simulated to check the formulas (10000); 0: none\n"
    "  --plot FILE            draws the goodput by the size of slices, as SVG\n"
    "\n"
    "Examples:\n"
    "  phalanx switch-sim --write switches.yaml &\n"
    "  phalanx fabric apply 4x4x8-twisted --cubes 3,9 --switches switches.yaml\n"
    "  phalanx fabric diff 4x4x8 --cubes 3,9 --switches switches.yaml\n"
    "\n"
    "Exit status: 0 done, 1 refused or failed: the reason is printed; of diff: something would change;\n"
    "2 wrong usage.\n";

enum { WORDS_MAX = 64 };
struct words {
    const char *items[WORDS_MAX];
    int count;
};
struct asked {
    struct slice_shape shape;
    struct words switches, links, running, joined, cubes_out;
    const char *crossed, *cubes, *svg, *cache, *switch_list, *cluster, *in;
    int64_t pod, random_links, seed, attempts, timeout_ns;
    bool json, keep_partial;
    uint32_t collective_bytes;
    struct simulate_order simulate;
    struct availability_order availability;
};

enum {
    OPTION_SWITCH = 256,
    OPTION_LINK,
    OPTION_RUNNING,
    OPTION_JOINED,
    OPTION_CUBE,
    OPTION_CUBES,
    OPTION_POD,
    OPTION_RANDOM,
    OPTION_SEED,
    OPTION_SVG,
    OPTION_CACHE,
    OPTION_SWITCH_LIST,
    OPTION_CLUSTER,
    OPTION_IN,
    OPTION_TIMEOUT,
    OPTION_ATTEMPTS,
    OPTION_KEEP,
    OPTION_TRAFFIC,
    OPTION_PACKETS,
    OPTION_CYCLES,
    OPTION_BUFFERS,
    OPTION_PACE,
    OPTION_HOST,
    OPTION_WHOLE,
    OPTION_CONFIDENCE,
    OPTION_SWITCH_UP,
    OPTION_TRIALS,
    OPTION_PLOT,
    OPTION_CROSS,
    OPTION_BYTES
};

static bool keep(struct words *words, const char *word)
{
    if (words->count < WORDS_MAX)
        words->items[words->count++] = word;
    return usage_value(words->count < WORDS_MAX);
}

/* A number from 0 to 1. */
static bool take_share(const char *value, double *ret_share)
{
    char *end;
    double share = strtod(value, &end);
    if (!usage_value(*value && !*end && share >= 0 && share <= 1))
        return false;
    *ret_share = share;
    return true;
}

static bool take_availability(struct asked *asked, int letter, const char *value)
{
    struct availability_order *order = &asked->availability;
    int64_t number = 0;
    bool good = true;
    switch (letter) {
    case OPTION_HOST:
        return usage_value(order->host_count + 1 < AVAILABILITY_HOSTS_MAX) &&
               take_share(value, &order->hosts[order->host_count++]);
    case OPTION_CONFIDENCE:
        return take_share(value, &order->confidence) && usage_value(order->confidence < 1);
    case OPTION_SWITCH_UP:
        return take_share(value, &order->switch_up);
    case OPTION_WHOLE:
        good = str_to_i64(str_from(value), 1, POD_CUBES_MAX, &number);
        order->whole = (uint32_t)number;
        break;
    case OPTION_TRIALS:
        good = str_to_i64(str_from(value), 0, 1000000, &number);
        order->trials = (uint32_t)number;
        break;
    case OPTION_PLOT:
        order->plot = value;
        break;
    case OPTION_CROSS:
        asked->crossed = value;
        break;
    case OPTION_BYTES:
        good = quantity_parse_milli(str_from(value), &number) && number >= 1000 &&
               number / 1000 <= COLLECTIVE_BYTES_MAX;
        asked->collective_bytes = good ? (uint32_t)(number / 1000) : 0;
        break;
    default:
        return false;
    }
    return usage_value(good);
}

static bool take_traffic(struct asked *asked, const char *value)
{
    for (uint32_t i = 0; i < TRAFFIC_PATTERNS; i++)
        if (strcmp(value, traffic_names[i]) == 0) {
            asked->simulate.traffic.pattern = i;
            return true;
        }
    usage_unknown("traffic", str_from(value), traffic_names, TRAFFIC_PATTERNS);
    return false;
}

static bool take_simulation(struct asked *asked, int letter, const char *value)
{
    struct simulate_order *order = &asked->simulate;
    int64_t number = 0;
    bool good = true;
    switch (letter) {
    case OPTION_TRAFFIC:
        return take_traffic(asked, value);
    case OPTION_PACKETS:
        good = str_to_i64(str_from(value), 1, 1000000, &number);
        order->traffic.packets = (uint64_t)number;
        break;
    case OPTION_CYCLES:
        good = str_to_i64(str_from(value), 1, INT64_MAX / 1024, &number);
        order->cycles = (uint64_t)number;
        break;
    case OPTION_BUFFERS:
        good = str_to_i64(str_from(value), 1, CYCLE_BUFFERS_MAX, &number);
        order->terms.buffers = (uint32_t)number;
        break;
    case OPTION_PACE:
        good = str_to_i64(str_from(value), 0, 100, &number);
        order->traffic.pace_percent = (uint32_t)number;
        break;
    default:
        return take_availability(asked, letter, value);
    }
    return usage_value(good);
}

static bool take_option(struct asked *asked, int letter, const char *value)
{
    switch (letter) {
    case OPTION_SWITCH:
        return keep(&asked->switches, value);
    case OPTION_LINK:
        return keep(&asked->links, value);
    case OPTION_RUNNING:
        return keep(&asked->running, value);
    case OPTION_JOINED:
        return keep(&asked->joined, value);
    case OPTION_CUBE:
        return keep(&asked->cubes_out, value);
    case OPTION_CUBES:
        asked->cubes = value;
        return true;
    case OPTION_POD:
        return usage_value(str_to_i64(str_from(value), 1, POD_CUBES_MAX, &asked->pod));
    case OPTION_RANDOM:
        return usage_value(str_to_i64(str_from(value), 0, SLICE_CHIPS_MAX * AXES, &asked->random_links));
    case OPTION_SEED:
        return usage_value(str_to_i64(str_from(value), 0, INT64_MAX, &asked->seed));
    case OPTION_SVG:
        asked->svg = value;
        return true;
    case OPTION_CACHE:
        asked->cache = value;
        return true;
    case OPTION_SWITCH_LIST:
        asked->switch_list = value;
        return true;
    case OPTION_CLUSTER:
        asked->cluster = value;
        return true;
    case OPTION_IN:
        asked->in = value;
        return true;
    case OPTION_TIMEOUT:
        return usage_value(duration_parse(str_from(value), &asked->timeout_ns) &&
                           asked->timeout_ns >= 1000000 && asked->timeout_ns <= 3600 * (int64_t)1000000000);
    case OPTION_ATTEMPTS:
        return usage_value(str_to_i64(str_from(value), 1, 100, &asked->attempts));
    case OPTION_KEEP:
        asked->keep_partial = true;
        return true;
    case 'o':
        return usage_json(value, &asked->json);
    }
    return take_simulation(asked, letter, value);
}

static int refuse(const struct error *error)
{
    say("%s", error->text);
    return EXIT_FAILED;
}

/* --- plan ----------------------------------------------------------------------------------------- */

static int cubes_parse(struct str text, uint16_t *cubes, uint32_t *ret_count, struct error *error)
{
    uint32_t count = 0;
    for (struct str rest = text, part; rest.len; count++) {
        int64_t cube;
        if (!str_cut(rest, ',', &part, &rest)) {
            part = rest;
            rest = STR("");
        }
        if (count == SLICE_CUBES_MAX || !str_to_i64(part, 0, POD_CUBES_MAX - 1, &cube))
            return error_set(error, ERROR_INVALID,
                             "cubes \"" STR_FORMAT "\": \"" STR_FORMAT
                             "\": expected at most %d numbers from 0 to %d",
                             STR_ARG(str_head_utf8(text, 64)), STR_ARG(str_head_utf8(part, 32)),
                             SLICE_CUBES_MAX, POD_CUBES_MAX - 1);
        cubes[count] = (uint16_t)cube;
    }
    *ret_count = count;
    return 0;
}

/* Joins the cubes of "SHAPE:LIST"; they belong to slice `owner` from then on, or are free if it is 0. */
static int join_slice(struct crossconnects *now, struct crossconnect_limits *limits, const char *word,
                      uint32_t owner, struct arena *arena, struct error *error)
{
    struct str shape_text, list;
    struct slice_shape shape;
    struct cube_slice slice;
    struct crossconnect_plan plan;
    uint16_t cubes[SLICE_CUBES_MAX];
    uint32_t count;
    if (!str_cut(str_from(word), ':', &shape_text, &list))
        return error_set(error, ERROR_INVALID, "\"%.64s\": expected SHAPE:CUBES, such as 4x4x8:3,9", word);
    if (slice_shape_parse(shape_text, &shape, error) < 0 || cubes_parse(list, cubes, &count, error) < 0 ||
        crossconnect_arrange(now, &shape, cubes, count, &slice, error) < 0 ||
        crossconnect_plan(now, limits, &slice, arena, &plan, error) < 0 ||
        crossconnect_apply(now, &plan, error) < 0)
        return error_wrap(error, "%.64s", word);
    for (uint32_t i = 0; i < count; i++)
        limits->slice_of[cubes[i]] = owner;
    return 0;
}

static int take_limits(const struct asked *asked, struct crossconnects *now,
                       struct crossconnect_limits *limits, struct arena *arena, struct error *error)
{
    for (int i = 0; i < asked->joined.count; i++)
        if (join_slice(now, limits, asked->joined.items[i], 0, arena, error) < 0)
            return ERROR_INVALID;
    for (int i = 0; i < asked->running.count; i++)
        if (join_slice(now, limits, asked->running.items[i], (uint32_t)i + 1, arena, error) < 0)
            return ERROR_INVALID;
    for (int i = 0; i < asked->cubes_out.count; i++) {
        int64_t cube;
        if (!str_to_i64(str_from(asked->cubes_out.items[i]), 0, asked->pod - 1, &cube))
            return error_set(error, ERROR_INVALID, "--cube-out %.64s: the pod has cubes 0 to %lld",
                             asked->cubes_out.items[i], (long long)asked->pod - 1);
        limits->cube_out[cube] = true;
    }
    for (int i = 0; i < asked->switches.count; i++) {
        struct pod_switch which;
        if (pod_switch_parse(str_from(asked->switches.items[i]), &which, error) < 0)
            return ERROR_INVALID;
        limits->switch_out[pod_switch_number(which)] = true;
    }
    limits->switches_out_max = (uint32_t)asked->switches.count;
    return 0;
}

static int draw_plan(const struct asked *asked, const struct crossconnects *now,
                     const struct crossconnect_plan *plan)
{
    static struct crossconnects after;
    struct buf picture BUF_CLEANUP = {0};
    struct error error = {0};
    after = *now;
    if (crossconnect_apply(&after, plan, &error) < 0)
        return refuse(&error);
    fabric_draw_mirrors(&picture, now, &after);
    return picture_write(asked->svg, "--svg", &picture);
}

static int run_plan(const struct asked *asked)
{
    static struct crossconnects now;
    static struct crossconnect_limits limits;
    struct arena arena ARENA_CLEANUP = {0};
    struct buf out BUF_CLEANUP = {0};
    struct error error = {0};
    struct cube_slice slice;
    struct crossconnect_plan plan;
    uint16_t cubes[SLICE_CUBES_MAX];
    uint32_t count;
    if (!asked->cubes)
        return usage_wrong(usage, "plan needs --cubes");
    crossconnects_init(&now, (uint32_t)asked->pod);
    if (take_limits(asked, &now, &limits, &arena, &error) < 0 ||
        cubes_parse(str_from(asked->cubes), cubes, &count, &error) < 0 ||
        crossconnect_arrange(&now, &asked->shape, cubes, count, &slice, &error) < 0 ||
        crossconnect_plan(&now, &limits, &slice, &arena, &plan, &error) < 0)
        return refuse(&error);
    fabric_report_plan(&out, now.cubes, &slice, &plan, asked->json);
    output_write(&out);
    return asked->svg ? draw_plan(asked, &now, &plan) : EXIT_OK;
}

/* --- diff, apply, clear --------------------------------------------------------------------------- */

static int run_live(const struct asked *asked, enum live_action action)
{
    static struct crossconnects joined;
    static struct crossconnect_limits limits;
    struct arena arena ARENA_CLEANUP = {0};
    struct error error = {0};
    uint16_t cubes[SLICE_CUBES_MAX];
    uint32_t count;
    if (!asked->cubes || !asked->switch_list == !asked->cluster)
        return usage_wrong(usage, "diff, apply and clear need --cubes, and --switches or --cluster");
    if (asked->joined.count)
        return usage_wrong(usage, "--joined is for plan: the switches say what is joined");
    uint32_t pod = (uint32_t)asked->pod;
    if (asked->cluster && !fabric_live_pod(asked->cluster, asked->in, &pod))
        return EXIT_FAILED;
    struct asked of_pod = *asked;
    of_pod.pod = pod;
    crossconnects_init(&joined, pod);
    if (take_limits(&of_pod, &joined, &limits, &arena, &error) < 0 ||
        cubes_parse(str_from(asked->cubes), cubes, &count, &error) < 0)
        return refuse(&error);
    struct live_order order = {.action = action,
                               .list = asked->switch_list,
                               .cluster = asked->cluster,
                               .in = asked->in,
                               .shape = asked->shape,
                               .cubes = cubes,
                               .cube_count = count,
                               .pod = pod,
                               .limits = &limits,
                               .timeout_ms = (uint32_t)(asked->timeout_ns / 1000000),
                               .attempts = (uint32_t)asked->attempts,
                               .keep = asked->keep_partial,
                               .json = asked->json};
    return fabric_live(&order);
}

static int run_diff(const struct asked *asked)
{
    return run_live(asked, LIVE_DIFF);
}

static int run_live_apply(const struct asked *asked)
{
    return run_live(asked, LIVE_APPLY);
}

/* --- route ---------------------------------------------------------------------------------------- */

/* "X,Y,Z,PORT" */
static int kill_named_link(struct torus *torus, const char *word, struct error *error)
{
    static const char *const ports[CHIP_PORTS] = {"x+", "x-", "y+", "y-", "z+", "z-"};
    struct str rest = str_from(word), part;
    int64_t at[AXES];
    for (int axis = 0; axis < AXES; axis++)
        if (!str_cut(rest, ',', &part, &rest) ||
            !str_to_i64(part, 0, torus->shape.extent[axis] - 1, &at[axis]))
            return error_set(
                error, ERROR_INVALID,
                "--link-out %.64s: expected X,Y,Z,PORT with a chip of the slice, such as 0,0,0,x+", word);
    for (uint32_t port = 0; port < CHIP_PORTS; port++) {
        uint16_t chip = torus_chip(torus, (uint32_t)at[0], (uint32_t)at[1], (uint32_t)at[2]);
        if (!str_is(rest, ports[port]))
            continue;
        if (!torus_kill_link(torus, chip, port))
            return error_set(error, ERROR_INVALID,
                             "--link-out %.64s: there is no link, or it is dead already", word);
        return 0;
    }
    return error_set(error, ERROR_INVALID, "--link-out %.64s: expected a port x+, x-, y+, y-, z+ or z-",
                     word);
}

static int kill_links(const struct asked *asked, struct torus *torus, struct error *error)
{
    for (int i = 0; i < asked->switches.count; i++) {
        struct pod_switch which;
        if (pod_switch_parse(str_from(asked->switches.items[i]), &which, error) < 0)
            return ERROR_INVALID;
        torus_kill_switch(torus, which);
    }
    for (int i = 0; i < asked->links.count; i++)
        if (kill_named_link(torus, asked->links.items[i], error) < 0)
            return ERROR_INVALID;
    uint32_t live = 0;
    for (uint32_t chip = 0; chip < torus->chips; chip++)
        live += (uint32_t)__builtin_popcount(torus->live[chip]);
    if (asked->random_links > live / 2)
        return error_set(error, ERROR_INVALID, "--random-links %lld: the slice has %u live links",
                         (long long)asked->random_links, live / 2);
    struct rng rng;
    rng_seed(&rng, (uint64_t)asked->seed);
    for (int64_t left = asked->random_links; left > 0;)
        left -= torus_kill_link(torus, (uint16_t)rng_below(&rng, torus->chips),
                                (uint32_t)rng_below(&rng, CHIP_PORTS));
    return 0;
}

static int draw(const struct asked *asked, const struct torus *torus, const uint32_t *load, uint32_t load_max)
{
    struct buf picture BUF_CLEANUP = {0};
    fabric_picture(&picture, torus, load, load_max);
    return picture_write(asked->svg, "--svg", &picture);
}

enum table_use { TABLES_REPORTED, TABLES_SIMULATED, TABLES_COSTED };

/* Makes tables for the links that are alive, and reports them, or what traffic or collectives make of
 * them. */
static int run_tables(const struct asked *asked, enum table_use use)
{
    struct buf out BUF_CLEANUP = {0};
    struct error error = {0};
    struct torus torus;
    struct route route = {0};
    struct proof proof;
    const char *source = NULL;
    int status = EXIT_OK;
    torus_init(&torus, &asked->shape);
    uint32_t *load = mem_alloc(torus.chips * CHIP_PORTS * sizeof *load);
    if (kill_links(asked, &torus, &error) < 0 ||
        fabric_cache_routes(asked->cache, &torus, &route, &proof, load, &source, &error) < 0) {
        status = refuse(&error);
    } else if (use == TABLES_COSTED) {
        fabric_collective(&out, &torus, &route, asked->collective_bytes, asked->json);
    } else if (use == TABLES_SIMULATED) {
        struct simulate_order order = asked->simulate;
        order.json = asked->json;
        order.traffic.seed = (uint64_t)asked->seed;
        order.traffic.packets = order.cycles ? 0 : order.traffic.packets;
        status = fabric_simulate(&torus, &route, &order, load, &out);
        proof.load_max = 1000;
    } else {
        fabric_report_route(&out, &torus, &route, &proof, load, source, asked->json);
    }
    output_write(&out);
    if (status == EXIT_OK && asked->svg)
        status = draw(asked, &torus, load, proof.load_max);
    mem_free(load);
    route_done(&route);
    torus_done(&torus);
    return status;
}

static int run_route(const struct asked *asked)
{
    return run_tables(asked, TABLES_REPORTED);
}

static int run_simulate(const struct asked *asked)
{
    return run_tables(asked, TABLES_SIMULATED);
}

static int run_collective(const struct asked *asked)
{
    return run_tables(asked, TABLES_COSTED);
}

/* --- session, availability --------------------------------------------------------------------------- */

/* "SWITCH:A,B" */
static int cross_wires(const char *word, struct session_order *order, struct error *error)
{
    struct str name, list, first, second;
    int64_t a, b;
    if (!str_cut(str_from(word), ':', &name, &list) || !str_cut(list, ',', &first, &second) ||
        !str_to_i64(first, 0, POD_CUBES_MAX - 1, &a) || !str_to_i64(second, 0, POD_CUBES_MAX - 1, &b))
        return error_set(error, ERROR_INVALID, "--cross %.64s: expected SWITCH:A,B, such as z6:0,1", word);
    order->crossed = true;
    order->crossed_cubes[0] = (uint16_t)a;
    order->crossed_cubes[1] = (uint16_t)b;
    return pod_switch_parse(name, &order->crossed_at, error);
}

static int run_session(const struct asked *asked)
{
    struct session_order order = {.slice.shape = asked->shape, .json = asked->json};
    struct error error = {0};
    struct pod_switch out;
    order.slice.count = slice_shape_cubes(&asked->shape);
    for (uint16_t i = 0; i < order.slice.count; i++)
        order.slice.cube[i] = i;
    if (asked->cubes && cubes_parse(str_from(asked->cubes), order.slice.cube, &order.slice.count, &error) < 0)
        return refuse(&error);
    if (asked->crossed && cross_wires(asked->crossed, &order, &error) < 0)
        return refuse(&error);
    for (int i = 0; i < asked->switches.count; i++) {
        if (pod_switch_parse(str_from(asked->switches.items[i]), &out, &error) < 0)
            return refuse(&error);
        order.switch_out[pod_switch_number(out)] = true;
    }
    return fabric_session_emulate(&order);
}

static int run_availability(const struct asked *asked)
{
    struct availability_order order = asked->availability;
    order.cubes = (uint32_t)asked->pod;
    order.seed = (uint64_t)asked->seed;
    order.json = asked->json;
    return fabric_availability(&order);
}

static int draw_slice(const struct asked *asked)
{
    struct buf picture BUF_CLEANUP = {0};
    struct error error = {0};
    struct cube_slice slice = {.shape = asked->shape, .count = slice_shape_cubes(&asked->shape)};
    uint32_t count = slice.count;
    for (uint16_t i = 0; i < slice.count; i++)
        slice.cube[i] = i;
    if (asked->cubes && cubes_parse(str_from(asked->cubes), slice.cube, &count, &error) < 0)
        return refuse(&error);
    if (!slice_shape_is_whole(&asked->shape) || count != slice.count) {
        say("--svg: expected a slice of whole cubes, and as many --cubes");
        return EXIT_FAILED;
    }
    fabric_draw_slice(&picture, &slice, !asked->cubes);
    return picture_write(asked->svg, "--svg", &picture);
}

static int run_check(const struct asked *asked)
{
    struct buf out BUF_CLEANUP = {0};
    struct torus torus;
    torus_init(&torus, &asked->shape);
    fabric_report_shape(&out, &torus, asked->json);
    output_write(&out);
    torus_done(&torus);
    return asked->svg ? draw_slice(asked) : EXIT_OK;
}

static const struct option options[] = {{"switch-out", required_argument, NULL, OPTION_SWITCH},
                                        {"link-out", required_argument, NULL, OPTION_LINK},
                                        {"running", required_argument, NULL, OPTION_RUNNING},
                                        {"joined", required_argument, NULL, OPTION_JOINED},
                                        {"cube-out", required_argument, NULL, OPTION_CUBE},
                                        {"cubes", required_argument, NULL, OPTION_CUBES},
                                        {"pod", required_argument, NULL, OPTION_POD},
                                        {"random-links", required_argument, NULL, OPTION_RANDOM},
                                        {"seed", required_argument, NULL, OPTION_SEED},
                                        {"svg", required_argument, NULL, OPTION_SVG},
                                        {"cache", required_argument, NULL, OPTION_CACHE},
                                        {"switches", required_argument, NULL, OPTION_SWITCH_LIST},
                                        {"cluster", required_argument, NULL, OPTION_CLUSTER},
                                        {"in", required_argument, NULL, OPTION_IN},
                                        {"timeout", required_argument, NULL, OPTION_TIMEOUT},
                                        {"attempts", required_argument, NULL, OPTION_ATTEMPTS},
                                        {"keep", no_argument, NULL, OPTION_KEEP},
                                        {"traffic", required_argument, NULL, OPTION_TRAFFIC},
                                        {"packets", required_argument, NULL, OPTION_PACKETS},
                                        {"cycles", required_argument, NULL, OPTION_CYCLES},
                                        {"buffers", required_argument, NULL, OPTION_BUFFERS},
                                        {"pace", required_argument, NULL, OPTION_PACE},
                                        {"host", required_argument, NULL, OPTION_HOST},
                                        {"whole", required_argument, NULL, OPTION_WHOLE},
                                        {"confidence", required_argument, NULL, OPTION_CONFIDENCE},
                                        {"switch-up", required_argument, NULL, OPTION_SWITCH_UP},
                                        {"trials", required_argument, NULL, OPTION_TRIALS},
                                        {"plot", required_argument, NULL, OPTION_PLOT},
                                        {"cross", required_argument, NULL, OPTION_CROSS},
                                        {"bytes", required_argument, NULL, OPTION_BYTES},
                                        {"output", required_argument, NULL, 'o'},
                                        {"help", no_argument, NULL, 'h'},
                                        {0}};

int cmd_fabric(int argc, char **argv)
{
    static const char *const actions[] = {"check",      "plan", "route", "simulate", "session",
                                          "collective", "diff", "apply", "clear",    "availability"};
    static int (*const runs[])(const struct asked *) = {
        run_check, run_plan, run_route, run_simulate, run_session, run_collective, run_diff, run_live_apply};
    enum { ACTIONS = sizeof actions / sizeof *actions };
    struct asked asked = {.pod = SMALL_POD_CUBES,
                          .seed = 1,
                          .attempts = 3,
                          .timeout_ns = 2 * (int64_t)1000000000,
                          .collective_bytes = 16 << 20,
                          .simulate = SIMULATE_ORDER_DEFAULT,
                          .availability = AVAILABILITY_ORDER_DEFAULT};
    struct error error = {0};
    for (int letter; (letter = usage_option(argc, argv, "ho:", options, NULL)) != -1;) {
        if (letter == 'h') {
            fputs(usage, stdout);
            return EXIT_OK;
        }
        if (!take_option(&asked, letter, optarg))
            return usage_wrong(usage, NULL);
    }
    if (optind + 1 == argc && strcmp(argv[optind], "clear") == 0)
        return run_live(&asked, LIVE_CLEAR);
    if (optind + 1 == argc && strcmp(argv[optind], "availability") == 0)
        return run_availability(&asked);
    if (optind + 2 != argc)
        return usage_wrong(
            usage,
            "expected check, plan, route, simulate, session, collective, diff or apply, and one shape; or "
            "clear or availability");
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        if (strcmp(argv[optind], actions[i]) == 0)
            return slice_shape_parse(str_from(argv[optind + 1]), &asked.shape, &error) < 0 ? refuse(&error)
                                                                                           : runs[i](&asked);
    usage_unknown("action", str_from(argv[optind]), actions, ACTIONS);
    return usage_wrong(usage, NULL);
}
