/* phalanx fabric route, simulate, collective: makes forwarding tables with their proof, and runs traffic over
 * them. */
#include "base/rng.h"
#include "cmd/client.h"
#include "cmd/fabric_asked.h"
#include "cmd/fabric_cache.h"
#include "cmd/fabric_collective.h"
#include "cmd/fabric_report.h"
#include "cmd/fabric_simulate.h"
#include "cmd/picture.h"

/* Kills the link "X,Y,Z,PORT". */
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

static int kill_links(const struct fabric_asked *asked, struct torus *torus, struct error *error)
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

static int draw_loads(const struct fabric_asked *asked, const struct torus *torus, const uint32_t *load,
                      uint32_t load_max)
{
    struct buf picture BUF_CLEANUP = {0};
    fabric_picture(&picture, torus, load, load_max);
    return picture_write(asked->svg, "--svg", &picture);
}

static struct simulate_order simulate_order_of(const struct fabric_asked *asked)
{
    struct simulate_order order = {
        .terms = CYCLE_TERMS_DEFAULT, .cycles = (uint64_t)asked->cycles, .json = asked->json};
    order.terms.buffers = (uint32_t)asked->buffers;
    order.traffic = (struct traffic_order){.pattern = asked->traffic,
                                           .packets = (uint64_t)asked->packets,
                                           .pace_percent = (uint32_t)asked->pace_percent,
                                           .seed = (uint64_t)asked->seed};
    if (!asked->cycles && !asked->packets)
        order.traffic.packets = SIMULATE_PACKETS;
    return order;
}

/* Makes tables for the links that are alive, and reports the tables, or the result of traffic or collectives
 * over them. */
int fabric_run_tables(const struct fabric_asked *asked)
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
        status = fabric_refuse(&error);
    } else if (asked->action == FABRIC_COLLECTIVE) {
        fabric_collective(&out, &torus, &route, (uint32_t)asked->bytes, asked->json);
    } else if (asked->action == FABRIC_SIMULATE) {
        struct simulate_order order = simulate_order_of(asked);
        status = fabric_simulate(&torus, &route, &order, load, &out);
        proof.load_max = 1000;
    } else {
        fabric_report_route(&out, &torus, &route, &proof, load, source, asked->json);
    }
    output_write(&out);
    if (status == EXIT_OK && asked->svg)
        status = draw_loads(asked, &torus, load, proof.load_max);
    mem_free(load);
    route_done(&route);
    torus_done(&torus);
    return status;
}
