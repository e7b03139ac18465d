/* swarm.c - the options of a run, drawn from its seed. */
#include "sim/ha/world.h"

/* Picks one of a few values: small worlds with extreme settings find more than large ones with usual
 * settings. */
static int64_t pick_value(struct rng *rng, const int64_t *values, size_t count)
{
    return values[rng_below(rng, count)];
}
#define PICK(rng, ...)                                                                                       \
    pick_value((rng), (const int64_t[]){__VA_ARGS__},                                                        \
               sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* Draws a run with few writes, watches that report nothing, and controllers that replace living leaders and
 * die at once. A replaced leader then learns of it only by its lease. */
static void draw_quiet(struct ha_swarm *swarm)
{
    swarm->clients = 1;
    swarm->client_every_ns = 3 * NS_PER_SECOND;
    swarm->fault_every_ns = 3 * NS_PER_SECOND;
    swarm->watch_lose_ppm = 1000000;
    swarm->taker_ppm = 500000;
    swarm->ttl_ns = NS_PER_SECOND;
    ha_fault_suspicion_alone(swarm->weights);
}

void ha_swarm_draw(struct ha_swarm *swarm, struct rng *rng, uint32_t controllers)
{
    swarm->controllers = controllers;
    swarm->clients = (uint32_t)rng_range(rng, 1, HA_CLIENTS_MAX);
    swarm->ttl_ns = PICK(rng, 1000, 1000, 2000, 5000) * NS_PER_MS;
    swarm->delay_min_ns = PICK(rng, 50, 200, 1000) * NS_PER_US;
    swarm->delay_max_ns = swarm->delay_min_ns + PICK(rng, 100, 1000, 20000) * NS_PER_US;
    swarm->spike_ppm = (uint32_t)PICK(rng, 0, 2000, 20000);
    swarm->spike_max_ns = PICK(rng, 100, 1000, 3000) * NS_PER_MS;
    swarm->lose_ppm = (uint32_t)PICK(rng, 0, 1000, 20000, 100000);
    swarm->watch_lag_ns = PICK(rng, 0, 10, 500) * NS_PER_MS;
    swarm->watch_lose_ppm = (uint32_t)PICK(rng, 0, 0, 50000, 900000, 1000000);
    swarm->late_lease_ns = PICK(rng, 0, 100, 1000, 4000) * NS_PER_MS;
    swarm->drift_ppm = (uint32_t)PICK(rng, 0, 100, 30000);
    swarm->client_every_ns = PICK(rng, 5, 50, 300, 3000) * NS_PER_MS;
    swarm->fault_every_ns = PICK(rng, 200, 1000, 3000) * NS_PER_MS;
    swarm->call_timeout_ns = PICK(rng, 100, 300, 1000) * NS_PER_MS;
    swarm->snapshot_every = (uint32_t)PICK(rng, 10, 40, 100000);
    swarm->part_bytes = (uint32_t)PICK(rng, 512, 4096, 1 << 20);
    swarm->turn_records_max = (uint32_t)PICK(rng, 1, 3, 0);
    swarm->log_waits = rng_chance(rng, 600000);
    swarm->old = rng_chance(rng, 300000);
    swarm->taker_ppm = (uint32_t)PICK(rng, 0, 0, 100000, 500000);
    for (int kind = 0; kind < ha_fault_kinds(); kind++)
        swarm->weights[kind] = rng_chance(rng, 550000) ? (uint32_t)rng_range(rng, 1, 10) : 0;
    if (rng_chance(rng, 80000))
        draw_quiet(swarm);
    if (rng_chance(rng, 30000))
        swarm->fault_every_ns = 0;
}

void ha_swarm_describe(const struct ha_swarm *swarm, char *ret_text, size_t size)
{
    struct buf text BUF_CLEANUP = {0};
    buf_printf(&text,
               "controllers=%u clients=%u ttl=%gs delay=%g..%gms spikes=%uppm<=%gs lose=%uppm "
               "watch-lag=%gms watch-lose=%uppm late-lease<=%gs drift=%uppm",
               swarm->controllers, swarm->clients, (double)swarm->ttl_ns / 1e9,
               (double)swarm->delay_min_ns / 1e6, (double)swarm->delay_max_ns / 1e6, swarm->spike_ppm,
               (double)swarm->spike_max_ns / 1e9, swarm->lose_ppm, (double)swarm->watch_lag_ns / 1e6,
               swarm->watch_lose_ppm, (double)swarm->late_lease_ns / 1e9, swarm->drift_ppm);
    buf_printf(
        &text,
        " call-timeout=%gms snapshot-every=%u part=%uB turn<=%u log-%s%s takers-die=%uppm client-every=%gs "
        "faults-every=%gs:",
        (double)swarm->call_timeout_ns / 1e6, swarm->snapshot_every, swarm->part_bytes,
        swarm->turn_records_max, swarm->log_waits ? "waits" : "later", swarm->old ? " some-old" : "",
        swarm->taker_ppm, (double)swarm->client_every_ns / 1e9, (double)swarm->fault_every_ns / 1e9);
    for (int kind = 0; kind < ha_fault_kinds(); kind++)
        if (swarm->weights[kind] && swarm->fault_every_ns)
            buf_printf(&text, " %s=%u", ha_fault_name(kind), swarm->weights[kind]);
    snprintf(ret_text, size, "%s", text.data);
}
