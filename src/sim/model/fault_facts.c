/* fault_facts.c - statistics of a history of faults, and the replay of a job: see fault_trace.h. */
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"
#include "sim/model/fault_trace.h"
#include "sim/model/rate.h"

/* The beginning or end of a fault. */
struct turn {
    double days;
    uint32_t fault;
    bool begins;
};

static int compare_turns(const void *a, const void *b)
{
    const struct turn *left = a, *right = b;
    if (left->days != right->days)
        return left->days < right->days ? -1 : 1;
    if (left->begins != right->begins)
        return left->begins ? -1 : 1;
    return left->fault < right->fault ? -1 : left->fault > right->fault;
}

/* Returns all beginnings and ends, sorted by time, beginnings first. The caller frees them with
 * mem_free(). */
static struct turn *turns_of(const struct fault_trace *trace)
{
    struct turn *turns = mem_alloc((2 * (size_t)trace->count + 1) * sizeof *turns);
    for (uint32_t i = 0; i < trace->count; i++) {
        turns[2 * i] = (struct turn){.days = trace->faults[i].start_days, .fault = i, .begins = true};
        turns[2 * i + 1] = (struct turn){.days = trace->faults[i].end_days, .fault = i};
    }
    qsort(turns, 2 * (size_t)trace->count, sizeof *turns, compare_turns);
    return turns;
}

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static int compare_counts_down(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left > right ? -1 : left < right;
}

/* --- facts ---------------------------------------------------------------------------------------------- */

static double share_of_first(const uint32_t *counts, uint32_t machines, uint32_t first, uint32_t faults)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < first && i < machines; i++)
        sum += counts[i];
    return (double)sum / faults;
}

static void facts_of_machines(const struct fault_trace *trace, uint32_t machines,
                              struct fault_trace_facts *facts)
{
    uint32_t *counts = mem_alloc(machines * sizeof *counts);
    double mean = (double)trace->count / machines, square = 0;
    for (uint32_t i = 0; i < trace->count; i++) {
        counts[trace->faults[i].machine]++;
        facts->hardware += trace->faults[i].hardware;
    }
    qsort(counts, machines, sizeof *counts, compare_counts_down);
    for (uint32_t i = 0; i < machines; i++) {
        square += (counts[i] - mean) * (counts[i] - mean);
        facts->with_five += counts[i] >= 5;
        facts->none += counts[i] == 0;
    }
    facts->most = counts[0];
    facts->none /= machines;
    facts->variance_to_mean = square / machines / mean;
    facts->top_5 = share_of_first(counts, machines, 5, trace->count);
    facts->top_20 = share_of_first(counts, machines, 20, trace->count);
    facts->top_40 = share_of_first(counts, machines, 40, trace->count);
    mem_free(counts);
}

static void facts_of_gaps(const struct fault_trace *trace, struct fault_trace_facts *facts)
{
    double square = 0;
    uint32_t gaps = trace->count - 1;
    if (gaps == 0)
        return;
    facts->gap_days = (trace->faults[gaps].start_days - trace->faults[0].start_days) / gaps;
    for (uint32_t i = 1; i <= gaps; i++) {
        double gap = trace->faults[i].start_days - trace->faults[i - 1].start_days;
        square += (gap - facts->gap_days) * (gap - facts->gap_days);
        facts->together += gap == 0;
    }
    facts->gap_cv = facts->gap_days > 0 ? sqrt(square / gaps) / facts->gap_days : 0;
}

static void facts_of_repairs(const struct fault_trace *trace, struct fault_trace_facts *facts)
{
    double *repairs = mem_alloc(trace->count * sizeof *repairs);
    for (uint32_t i = 0; i < trace->count; i++) {
        repairs[i] = trace->faults[i].end_days - trace->faults[i].start_days;
        facts->repair_days += repairs[i] / trace->count;
    }
    qsort(repairs, trace->count, sizeof *repairs, compare_doubles);
    facts->repair_median_days = repairs[trace->count / 2];
    facts->repair_p90_days = repairs[(uint64_t)trace->count * 9 / 10];
    facts->repair_max_days = repairs[trace->count - 1];
    mem_free(repairs);
}

/* Returns the least number such that at most so many machines are down for `share` of the time. */
static uint32_t down_percentile(const double *days_with, uint32_t machines, double share)
{
    double all = 0, sum = 0;
    for (uint32_t down = 0; down <= machines; down++)
        all += days_with[down];
    for (uint32_t down = 0; down < machines; down++)
        if ((sum += days_with[down]) >= share * all)
            return down;
    return machines;
}

static void facts_of_down(const struct fault_trace *trace, uint32_t machines, struct fault_trace_facts *facts)
{
    struct turn *turns = turns_of(trace);
    uint32_t *open = mem_alloc(machines * sizeof *open), down = 0;
    double *days_with = mem_alloc((machines + 1) * sizeof *days_with), now = trace->first_days;
    for (uint32_t i = 0; i < 2 * trace->count; i++) {
        uint32_t *faults = &open[trace->faults[turns[i].fault].machine];
        days_with[down] += turns[i].days - now;
        now = turns[i].days;
        if (turns[i].begins)
            down += (*faults)++ == 0;
        else
            down -= --*faults == 0;
        facts->down_max = down > facts->down_max ? down : facts->down_max;
    }
    double all = trace->last_days - trace->first_days;
    for (uint32_t i = 0; i <= machines && all > 0; i++)
        facts->down += i * days_with[i] / all;
    facts->down_p50 = down_percentile(days_with, machines, .50);
    facts->down_p95 = down_percentile(days_with, machines, .95);
    facts->down_p99 = down_percentile(days_with, machines, .99);
    mem_free(days_with);
    mem_free(open);
    mem_free(turns);
}

void fault_trace_facts(const struct fault_trace *trace, uint32_t machines, double days,
                       struct fault_trace_facts *ret_facts)
{
    CHECK(trace->count > 0 && machines >= trace->machines && days > 0);
    struct fault_trace_facts facts = {0};
    double exposure = machines * days / 1000, low, high;
    mttf_bounds(trace->count, exposure, .95, &low, &high);
    facts.rate = trace->count / exposure;
    facts.rate_low = 1 / high;
    facts.rate_high = 1 / low;
    facts_of_machines(trace, machines, &facts);
    facts.hardware_rate = facts.hardware / exposure;
    facts_of_gaps(trace, &facts);
    facts_of_repairs(trace, &facts);
    facts_of_down(trace, machines, &facts);
    *ret_facts = facts;
}

/* --- replay --------------------------------------------------------------------------------------------- */

struct replayed {
    const struct fault_replay_terms *terms;
    uint32_t *open; /* [machines] open faults */
    uint8_t *in_job;
    uint32_t up, of_job; /* machines */
    bool runs;
    double restart_days, since_checkpoint_days, kept_days, waited_days;
    uint32_t interruptions;
    struct rng rng;
};

static void replay_time(struct replayed *job, double days)
{
    if (!job->runs) {
        job->waited_days += days;
        return;
    }
    double restarting = fmin(days, job->restart_days);
    job->restart_days -= restarting;
    job->since_checkpoint_days += days - restarting;
    double whole = floor(job->since_checkpoint_days / job->terms->interval_days + 1e-12);
    job->kept_days += whole * job->terms->interval_days;
    job->since_checkpoint_days -= whole * job->terms->interval_days;
}

/* Takes a random free machine that is up. */
static void replay_take(struct replayed *job)
{
    uint64_t which = rng_below(&job->rng, job->up - job->of_job);
    for (uint32_t machine = 0; machine < job->terms->machines; machine++) {
        if (job->open[machine] || job->in_job[machine] || which-- > 0)
            continue;
        job->in_job[machine] = 1;
        job->of_job++;
        return;
    }
    CHECK_UNREACHABLE();
}

static void replay_start(struct replayed *job)
{
    if (job->runs || job->up < job->terms->needed)
        return;
    while (job->of_job < job->terms->needed)
        replay_take(job);
    job->runs = true;
    job->restart_days = job->terms->restart_days;
    job->since_checkpoint_days = 0;
}

static void replay_turn(struct replayed *job, uint32_t machine, bool begins)
{
    if (!begins) {
        job->up += --job->open[machine] == 0;
        return;
    }
    job->up -= job->open[machine]++ == 0;
    if (!job->in_job[machine])
        return;
    job->in_job[machine] = 0;
    job->of_job--;
    job->interruptions += job->runs;
    job->runs = false;
}

void fault_trace_replay(const struct fault_trace *trace, const struct fault_replay_terms *terms,
                        struct fault_replay *ret_replay)
{
    CHECK(terms->machines >= trace->machines && terms->needed > 0 && terms->needed <= terms->machines);
    struct turn *turns = turns_of(trace);
    struct replayed job = {.terms = terms,
                           .open = mem_alloc(terms->machines * sizeof *job.open),
                           .in_job = mem_alloc(terms->machines),
                           .up = terms->machines};
    double now = trace->first_days, all = trace->last_days - trace->first_days;
    rng_seed(&job.rng, terms->seed);
    replay_start(&job);
    for (uint32_t i = 0; i < 2 * trace->count; i++) {
        replay_time(&job, turns[i].days - now);
        now = turns[i].days;
        replay_turn(&job, trace->faults[turns[i].fault].machine, turns[i].begins);
        if (i + 1 == 2 * trace->count || turns[i + 1].days > now) /* after all turns of this moment */
            replay_start(&job);
    }
    *ret_replay = (struct fault_replay){.ettr = all > 0 ? job.kept_days / all : 0,
                                        .waiting = all > 0 ? job.waited_days / all : 0,
                                        .interruptions = job.interruptions};
    mem_free(job.in_job);
    mem_free(job.open);
    mem_free(turns);
}
