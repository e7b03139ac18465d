#include "sim/world.h"

#include "base/units.h"

const char *fault_name(enum fault_kind kind)
{
    static const char *const names[FAULT_KINDS] = {
        "controller-crash", "controller-pause", "agent-crash",  "agent-pause",     "machine-crash",
        "machine-power",    "partition",        "conn-timeout", "task-kill",       "disk-full",
        "clock-jump",       "delay-spike",      "signal",       "planned-restart", "restore",
    };
    CHECK((unsigned)kind < FAULT_KINDS);
    return names[kind];
}

const char *feature_name(enum sim_feature feature)
{
    static const char *const names[FEATURES] = {"queues", "objects",    "namespaces",
                                                "forms",  "containers", "topology"};
    CHECK((unsigned)feature < FEATURES);
    return names[feature];
}

/* Picks one of a few values: small worlds with extreme settings find more than large ones with usual
 * settings. */
static int64_t pick(struct rng *rng, const int64_t *values, size_t count)
{
    return values[rng_below(rng, count)];
}
#define PICK(rng, ...)                                                                                       \
    pick((rng), (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static void draw_cluster(struct swarm *swarm, struct rng *rng)
{
    swarm->racks = (uint32_t)PICK(rng, 1, 1, 2, 3);
    uint32_t per_rack = (uint32_t)rng_range(rng, 2, 12 / swarm->racks);
    swarm->machines = swarm->racks * per_rack;
    swarm->chips = (uint32_t)PICK(rng, 1, 2, 4, 4, 8);
    swarm->spares = (uint32_t)PICK(rng, 0, 0, 1);
    swarm->lease_ns = PICK(rng, 1000, 3000, 3000, 10000) * NS_PER_MS;
    swarm->heartbeat_ns = swarm->lease_ns / 3;
    swarm->backfill_ns = PICK(rng, 1, 10, 600) * NS_PER_SECOND;
}

static void draw_network(struct swarm *swarm, struct rng *rng)
{
    swarm->delay_min_ns = PICK(rng, 20, 100, 500) * NS_PER_US;
    swarm->delay_max_ns = swarm->delay_min_ns + PICK(rng, 100, 1000, 20000) * NS_PER_US;
    swarm->spike_ppm = (uint32_t)PICK(rng, 0, 1000, 20000);
    swarm->spike_max_ns = PICK(rng, 100, 1000, 6000) * NS_PER_MS;
    swarm->corrupt_ppm = (uint32_t)PICK(rng, 0, 0, 200, 3000);
    swarm->drift_ppm = (uint32_t)PICK(rng, 0, 100, 50000);
}

static void draw_faults(struct swarm *swarm, struct rng *rng)
{
    for (int kind = 0; kind < FAULT_SIGNAL; kind++)
        swarm->weights[kind] = rng_chance(rng, 450000) ? (uint32_t)rng_range(rng, 1, 10) : 0;
    swarm->fault_every_ns = PICK(rng, 200, 1000, 3000, 10000) * NS_PER_MS;
    if (rng_chance(rng, 40000))
        swarm->fault_every_ns = 0;
    swarm->sync_min_ns = PICK(rng, 10, 200, 2000) * NS_PER_US;
    swarm->sync_max_ns = swarm->sync_min_ns + PICK(rng, 100, 5000, 300000) * NS_PER_US;
    swarm->snapshot_every = (uint32_t)PICK(rng, 20, 100, 100000);
    swarm->start_fail_ppm = (uint32_t)PICK(rng, 0, 0, 10000, 100000);
    swarm->task_fail_ppm = (uint32_t)PICK(rng, 0, 20000, 200000);
    swarm->ignore_term_ppm = (uint32_t)PICK(rng, 0, 100000, 500000);
    swarm->reboot_forgets_ppm = (uint32_t)PICK(rng, 0, 500000);
}

static void draw_features(struct swarm *swarm, struct rng *rng)
{
    for (int feature = 0; feature < FEATURES; feature++)
        swarm->features[feature] = rng_chance(rng, 500000) ? (uint32_t)PICK(rng, 200000, 500000, 900000) : 0;
    swarm->probe_fail_ppm = (uint32_t)PICK(rng, 0, 20000, 300000);
    swarm->rejoin_ppm = (uint32_t)PICK(rng, 0, 600000, 850000);
    swarm->rejoin_slow_ppm = (uint32_t)PICK(rng, 0, 50000, 500000);
    swarm->spare_tasks_ppm = (uint32_t)PICK(rng, 0, 300000, 800000);
    swarm->min_run_s = PICK(rng, 0, 0, 0, 0, 1, 7200);
    swarm->max_life_s = PICK(rng, 0, 0, 4, 60);
    swarm->fair = rng_chance(rng, 300000);
    swarm->wait_ready = rng_chance(rng, 300000);
    swarm->block_admission = rng_chance(rng, 300000);
}

/* Makes three worlds of five about the ladder: most JobSets can climb it, processes can rejoin, and faults
 * leave time for it. Uses a separate sequence, so that the other options of a seed do not change. */
static void draw_ladder(struct swarm *swarm, uint64_t seed)
{
    struct rng rng;
    rng_seed(&rng, seed ^ UINT64_C(0x6c6164646572));
    if (!rng_chance(&rng, 600000))
        return;
    swarm->ladder_ppm = (uint32_t)PICK(&rng, 600000, 900000);
    swarm->rejoin_ppm = 950000;
    swarm->spare_tasks_ppm = (uint32_t)PICK(&rng, 300000, 800000);
    swarm->run_max_ns = 60 * NS_PER_SECOND;
    swarm->jobsets_max = (uint32_t)PICK(&rng, 2, 4);
    swarm->fault_every_ns = PICK(&rng, 1000, 3000) * NS_PER_MS;
    swarm->weights[FAULT_TASK_KILL] = (uint32_t)rng_range(&rng, 5, 15);
    swarm->weights[FAULT_MACHINE_POWER] = (uint32_t)rng_range(&rng, 1, 5);
    swarm->task_fail_ppm = 20000;
}

/* Gives one world of four planned restarts of the controller, by a separate draw. */
static void draw_holds(struct swarm *swarm, uint64_t seed)
{
    struct rng rng;
    rng_seed(&rng, seed ^ UINT64_C(0x686f6c64));
    if (rng_chance(&rng, 250000))
        swarm->weights[FAULT_HOLD] = (uint32_t)rng_range(&rng, 2, 10);
}

/* Gives one world of eight restored backups, by a separate draw. Worlds with lease holds have none, because a
 * hold in the lost part of the log is not waited for. The controller's clock does not jump in these worlds,
 * because epochs follow it. */
static void draw_restores(struct swarm *swarm, uint64_t seed)
{
    struct rng rng;
    rng_seed(&rng, seed ^ UINT64_C(0x7265730000050e0f));
    if (swarm->weights[FAULT_HOLD] || !rng_chance(&rng, 125000))
        return;
    swarm->weights[FAULT_RESTORE] = (uint32_t)rng_range(&rng, 1, 6);
    swarm->weights[FAULT_CLOCK_JUMP] = 0;
}

/* Draws the driver's limits, small enough to be reached, and a slow or failing log, by a separate draw. */
static void draw_driver(struct swarm *swarm, uint64_t seed)
{
    struct rng rng;
    rng_seed(&rng, seed ^ UINT64_C(0x647269766572));
    /* A disk that writes only a few records a second could not keep a single lease. */
    bool slow = swarm->sync_max_ns > 50 * NS_PER_MS;
    swarm->turn_records_max = (uint32_t)(slow ? PICK(&rng, 0, 0, 8, 16) : PICK(&rng, 0, 0, 1, 2, 5));
    swarm->turn_bytes_max = (uint32_t)(slow ? PICK(&rng, 0, 0, 16384) : PICK(&rng, 0, 0, 0, 1, 4096));
    swarm->queue_bytes_max = (uint32_t)PICK(&rng, 0, 0, 2000, 8000);
    if (slow && swarm->lease_ns < 3 * NS_PER_SECOND) { /* the burst of a gang's start outlasts such a lease */
        swarm->turn_records_max = 0;
        swarm->turn_bytes_max = 0;
        swarm->queue_bytes_max *= 8;
    }
    swarm->rank_table_inside_max = (uint32_t)PICK(&rng, 0, 1, 1, 3);
    swarm->log_waits = rng_chance(&rng, 600000);
    swarm->sync_fail_ppm = (uint32_t)PICK(&rng, 0, 0, 2000, 50000);
}

/* Makes one world of eight a pod with optical switches, by a separate draw. */
static void draw_pod(struct swarm *swarm, uint64_t seed)
{
    struct rng rng;
    rng_seed(&rng, seed ^ UINT64_C(0x706f64));
    if (!rng_chance(&rng, 125000))
        return;
    swarm->cubes = (uint32_t)PICK(&rng, 1, 2, 2);
    swarm->slice_ppm = (uint32_t)PICK(&rng, 300000, 900000);
    swarm->machines = swarm->cubes * CUBE_MACHINES;
    swarm->racks = 1;
    swarm->chips = 4;
    swarm->spares = 0;
    /* The other limits are drawn for a dozen machines; a pod's machines report more in the same time. */
    swarm->queue_bytes_max *= 8;
    swarm->turn_records_max *= 4;
    swarm->sync_max_ns = swarm->sync_max_ns < 50 * NS_PER_MS ? swarm->sync_max_ns : 50 * NS_PER_MS;
}

/* Makes two of three pods worlds of whole cubes, by a separate draw. A slice of whole cubes needs 16 working
 * machines. So faults of machines are rare, all JobSets use slices, and these run long enough to see switches
 * fail and return. */
static void draw_whole_cubes(struct swarm *swarm, uint64_t seed)
{
    struct rng rng;
    rng_seed(&rng, seed ^ UINT64_C(0x63756265));
    if (!swarm->cubes || !rng_chance(&rng, 670000))
        return;
    swarm->cubes = (uint32_t)PICK(&rng, 1, 2, 2, 2);
    swarm->machines = swarm->cubes * CUBE_MACHINES;
    swarm->slice_ppm = 950000;
    swarm->whole_ppm = (uint32_t)PICK(&rng, 800000, 950000);
    swarm->jobsets_max = (uint32_t)PICK(&rng, 1, 1, 2, 3);
    swarm->run_max_ns = PICK(&rng, 30, 120) * NS_PER_SECOND;
    if (swarm->fault_every_ns)
        swarm->fault_every_ns = PICK(&rng, 10, 30, 60) * NS_PER_SECOND;
    swarm->start_fail_ppm = (uint32_t)PICK(&rng, 0, 0, 2000);
    swarm->task_fail_ppm = 0;
    for (int feature = 0; feature < FEATURES; feature++)
        swarm->features[feature] = 0;
    swarm->weights[FAULT_SIGNAL] = rng_chance(&rng, 200000) ? 1 : 0;
    swarm->ladder_ppm = 0;
    swarm->client_every_ns = PICK(&rng, 1, 3) * NS_PER_SECOND;
}

void swarm_draw(struct swarm *swarm, struct rng *rng, uint64_t seed)
{
    draw_cluster(swarm, rng);
    draw_network(swarm, rng);
    draw_faults(swarm, rng);
    swarm->client_every_ns = PICK(rng, 100, 500, 3000) * NS_PER_MS;
    swarm->run_max_ns = PICK(rng, 500, 5000, 30000) * NS_PER_MS;
    swarm->jobsets_max = (uint32_t)PICK(rng, 2, 6, 14);
    draw_features(swarm, rng);
    swarm->weights[FAULT_SIGNAL] = rng_chance(rng, 300000) ? (uint32_t)rng_range(rng, 1, 20) : 0;
    swarm->lemon_outs = swarm->weights[FAULT_SIGNAL] % 4;
    draw_ladder(swarm, seed);
    draw_holds(swarm, seed);
    draw_driver(swarm, seed);
    draw_pod(swarm, seed);
    draw_whole_cubes(swarm, seed);
    draw_restores(swarm, seed);
}

void swarm_describe(const struct swarm *swarm, char *ret_text, size_t size)
{
    struct buf text BUF_CLEANUP = {0};
    buf_printf(&text, "racks=%u machines=%u chips=%u spares=%u lease=%gs backfill=%gs delay=%g..%gms",
               swarm->racks, swarm->machines, swarm->chips, swarm->spares, (double)swarm->lease_ns / 1e9,
               (double)swarm->backfill_ns / 1e9, (double)swarm->delay_min_ns / 1e6,
               (double)swarm->delay_max_ns / 1e6);
    if (swarm->cubes)
        buf_printf(&text, " cubes=%u slices=%uppm", swarm->cubes, swarm->slice_ppm);
    if (swarm->whole_ppm)
        buf_printf(&text, " whole=%uppm", swarm->whole_ppm);
    buf_printf(&text, " spikes=%uppm<=%gs corrupt=%uppm drift=%uppm sync=%g..%gms snapshot-every=%u",
               swarm->spike_ppm, (double)swarm->spike_max_ns / 1e9, swarm->corrupt_ppm, swarm->drift_ppm,
               (double)swarm->sync_min_ns / 1e6, (double)swarm->sync_max_ns / 1e6, swarm->snapshot_every);
    buf_printf(&text,
               " start-fail=%uppm task-fail=%uppm ignore-term=%uppm reboot-forgets=%uppm client-every=%gs",
               swarm->start_fail_ppm, swarm->task_fail_ppm, swarm->ignore_term_ppm, swarm->reboot_forgets_ppm,
               (double)swarm->client_every_ns / 1e9);
    buf_printf(&text, " run<=%gs jobsets<=%u faults-every=%gs:", (double)swarm->run_max_ns / 1e9,
               swarm->jobsets_max, (double)swarm->fault_every_ns / 1e9);
    for (int kind = 0; kind < FAULT_KINDS; kind++)
        if (swarm->weights[kind] && swarm->fault_every_ns)
            buf_printf(&text, " %s=%u", fault_name(kind), swarm->weights[kind]);
    for (int feature = 0; feature < FEATURES; feature++)
        if (swarm->features[feature])
            buf_printf(&text, " %s=%u%%", feature_name(feature), swarm->features[feature] / 10000);
    if (swarm->features[FEATURE_QUEUES])
        buf_printf(&text, " min-run=%llds max-life=%llds%s%s%s", (long long)swarm->min_run_s,
                   (long long)swarm->max_life_s, swarm->fair ? " fair" : "",
                   swarm->wait_ready ? " wait-ready" : "",
                   swarm->wait_ready && swarm->block_admission ? " block" : "");
    if (swarm->lemon_outs)
        buf_printf(&text, " lemons>=%u", swarm->lemon_outs);
    if (swarm->rejoin_ppm)
        buf_printf(&text, " rejoin=%uppm slow=%uppm", swarm->rejoin_ppm, swarm->rejoin_slow_ppm);
    if (swarm->ladder_ppm)
        buf_printf(&text, " ladder=%uppm", swarm->ladder_ppm);
    if (swarm->spare_tasks_ppm)
        buf_printf(&text, " spare-tasks=%uppm", swarm->spare_tasks_ppm);
    if (swarm->features[FEATURE_CONTAINERS])
        buf_printf(&text, " probe-fail=%uppm", swarm->probe_fail_ppm);
    buf_printf(&text, " turn<=%u/%uB queue<=%uB table>%u log-%s sync-fail=%uppm", swarm->turn_records_max,
               swarm->turn_bytes_max, swarm->queue_bytes_max, swarm->rank_table_inside_max,
               swarm->log_waits ? "waits" : "later", swarm->sync_fail_ppm);
    snprintf(ret_text, size, "%s", text.data);
}
