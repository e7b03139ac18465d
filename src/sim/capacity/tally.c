/* tally.c - the statistics of a simulation. */
#include "sim/capacity/internal.h"

#include <math.h>
#include <stdio.h>

const char *const job_fate_names[JOB_FATES] = {"completed", "failed",  "cancelled",
                                               "gave up",   "running", "waiting"};

uint32_t simulation_bucket_of(uint32_t chips)
{
    uint32_t bucket = 0;
    while (bucket + 1 < SIMULATION_BUCKETS && (UINT32_C(1) << bucket) < chips)
        bucket++;
    return bucket;
}

void tally_advance(struct simulation_world *world)
{
    double span_s = (double)(world->now_ns - world->counted_ns) / 1e9;
    if (world->now_ns == world->counted_ns)
        return;
    world->outcome->busy_chip_s += span_s * world->busy_chips;
    world->outcome->down_chip_s += span_s * world->down_chips;
    world->counted_ns = world->now_ns;
}

void tally_sample(struct simulation_world *world)
{
    if (world->outcome->sample_count == SIMULATION_SAMPLES)
        return;
    uint64_t queued = 0;
    for (size_t i = 0; i < world->live.len; i++)
        queued += world->live.items[i]->run ? 0 : world->live.items[i]->chips;
    world->outcome->samples[world->outcome->sample_count++] =
        (struct simulation_sample){.at_s = (double)(world->now_ns - world->began_ns) / 1e9,
                                   .busy_chips = world->busy_chips,
                                   .queued_chips = queued < UINT32_MAX ? (uint32_t)queued : UINT32_MAX,
                                   .down_machines = world->down_machines,
                                   .running_jobs = world->whole_runs};
}

/* Adds a job's figures to those of its size or queue. */
static void tally_add(struct simulation_bucket *bucket, const struct simulation_bucket *more)
{
    bucket->jobs += more->jobs;
    for (int fate = 0; fate < JOB_FATES; fate++)
        bucket->fates[fate] += more->fates[fate];
    bucket->starts += more->starts;
    bucket->started += more->started;
    bucket->interruptions += more->interruptions;
    bucket->preemptions += more->preemptions;
    bucket->wait_s += more->wait_s;
    bucket->held_s += more->held_s;
    bucket->productive_s += more->productive_s;
    bucket->lost_s += more->lost_s;
    bucket->chip_lost_s += more->chip_lost_s;
    bucket->written_s += more->written_s;
    bucket->chip_held_s += more->chip_held_s;
    bucket->chip_productive_s += more->chip_productive_s;
    bucket->chip_lived_s += more->chip_lived_s;
    bucket->run_s += more->run_s;
    bucket->chip_run_s += more->chip_run_s;
}

void tally_job(struct simulation_world *world, struct sim_job *job, enum job_fate fate)
{
    struct simulation_queue *queue = &world->outcome->queues[job->queue];
    double began_s = (double)((job->first_ns ? job->first_ns : world->now_ns) - job->submit_ns) / 1e9;
    double lived_s = (double)(world->now_ns - job->submit_ns) / 1e9, held_s = lived_s - began_s;
    double kept_s = (double)(job->ended ? job->work_ns : job->saved_ns) / 1e9;
    double ran_s = (double)job->run_ns / 1e9;
    if (job->run && job->run->whole_ns)
        ran_s += (double)(world->now_ns - job->run->whole_ns) / 1e9;
    if (job->run && job->run->phase == RUN_TRAINING) /* it may still be kept */
        kept_s = (double)(job->run->work_ns + world->now_ns - job->run->since_ns) / 1e9;
    struct simulation_bucket one = {.jobs = 1,
                                    .starts = job->starts,
                                    .started = job->starts > 0,
                                    .interruptions = job->interruptions,
                                    .preemptions = job->preemptions,
                                    .wait_s = began_s,
                                    .held_s = held_s,
                                    .productive_s = kept_s,
                                    .lost_s = (double)job->lost_ns / 1e9,
                                    .chip_lost_s = (double)job->lost_ns / 1e9 * job->chips,
                                    .written_s = (double)job->written_ns / 1e9,
                                    .run_s = ran_s,
                                    .chip_run_s = ran_s * job->chips,
                                    .chip_held_s = held_s * job->chips,
                                    .chip_lived_s = lived_s * job->chips,
                                    .chip_productive_s = kept_s * job->chips};
    one.fates[fate] = 1;
    tally_add(&world->outcome->buckets[job->bucket], &one);
    tally_add(&queue->all, &one);
    if (began_s > queue->wait_most_s)
        queue->wait_most_s = began_s;
}

static void tally_ledger(struct simulation_world *world)
{
    const struct ledger *ledger = core_ledger(world->core);
    struct simulation_outcome *outcome = world->outcome;
    double since_s = (double)(world->now_ns / NS_PER_US - ledger->since_us) / 1e6;
    _Static_assert((int)LEDGER_OWNERS <= (int)SIMULATION_OWNERS_MAX, "an owner has no place");
    outcome->owner_count = LEDGER_OWNERS;
    for (uint32_t owner = 0; owner < LEDGER_OWNERS; owner++) {
        outcome->owner_chip_s[owner] =
            (double)ledger->chip_us[owner] / 1e6 + (double)ledger->chips[owner] * since_s;
        snprintf(outcome->owner_names[owner], sizeof outcome->owner_names[owner], "%s",
                 ledger_owner_name((enum ledger_owner)owner));
    }
}

void tally_end(struct simulation_world *world)
{
    struct simulation_outcome *outcome = world->outcome;
    tally_advance(world);
    tally_sample(world);
    outcome->duration_s = (double)(world->now_ns - world->began_ns) / 1e9;
    outcome->all_chip_s = outcome->duration_s * (double)core_cluster(world->core)->chip_count;
    for (size_t i = 0; i < world->live.len; i++) {
        struct sim_job *job = world->live.items[i];
        tally_job(world, job, job->ended ? job->plan : job->first_ns ? FATE_RUNNING : FATE_WAITING);
    }
    tally_ledger(world);
}

/* --- what follows from it ------------------------------------------------------------------------- */

struct simulation_bucket simulation_sum(const struct simulation_outcome *outcome, uint32_t chips)
{
    struct simulation_bucket sum = {0};
    for (uint32_t b = simulation_bucket_of(chips); b < SIMULATION_BUCKETS; b++)
        tally_add(&sum, &outcome->buckets[b]);
    return sum;
}

double simulation_ettr(const struct simulation_bucket *bucket)
{
    return bucket->chip_held_s > 0 ? bucket->chip_productive_s / bucket->chip_held_s : (double)NAN;
}
