/* sim_report.c - writes the outcome of a simulation as tables, and as JSON. */
#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "cmd/client.h"
#include "cmd/sim.h"

static void report_span(double seconds, char ret_text[24])
{
    if (!isfinite(seconds))
        snprintf(ret_text, 24, "-");
    else if (seconds >= 2 * 86400)
        snprintf(ret_text, 24, "%.1f d", seconds / 86400);
    else if (seconds >= 7200)
        snprintf(ret_text, 24, "%.2f h", seconds / 3600);
    else if (seconds >= 120)
        snprintf(ret_text, 24, "%.1f min", seconds / 60);
    else
        snprintf(ret_text, 24, "%.1f s", seconds);
}

static double report_ratio(double a, double b)
{
    return b > 0 ? a / b : (double)NAN;
}

/* A row of the table of sizes. */
static void report_bucket(struct text_table *table, const char *name, const struct simulation_bucket *bucket,
                          const struct simulation_bucket *all)
{
    char span[24];
    struct arena *arena = &table->arena;
    table_add(table, arena_printf(arena, "%s", name));
    table_add(table, arena_printf(arena, "%llu", (unsigned long long)bucket->jobs));
    double share = 100 * report_ratio(bucket->chip_held_s, all->chip_held_s);
    table_add(table, isfinite(share) ? arena_printf(arena, "%.1f", share) : STR("-"));
    report_span(report_ratio(bucket->wait_s, (double)bucket->jobs), span);
    table_add(table, arena_printf(arena, "%s", span));
    table_add(table, arena_printf(arena, "%llu", (unsigned long long)bucket->interruptions));
    table_add(table, arena_printf(arena, "%llu", (unsigned long long)bucket->preemptions));
    report_span(report_ratio(bucket->run_s, (double)bucket->interruptions), span);
    table_add(table, arena_printf(arena, "%s", span));
    double ettr = simulation_ettr(bucket),
           with_queue = report_ratio(bucket->chip_productive_s, bucket->chip_lived_s);
    table_add(table, isfinite(ettr) ? arena_printf(arena, "%.4f", ettr) : STR("-"));
    table_add(table, isfinite(with_queue) ? arena_printf(arena, "%.4f", with_queue) : STR("-"));
}

static void report_sizes(struct buf *out, const struct simulation_outcome *outcome)
{
    static const char *const header[] = {"CHIPS", "JOBS", "TIME %", "WAIT",           "FAILURES",
                                         "STOPS", "MTTF", "ETTR",   "ETTR WITH QUEUE"};
    struct simulation_bucket all = simulation_sum(outcome, 1);
    struct text_table table = {.columns = sizeof header / sizeof *header};
    table_heads(&table, header);
    for (uint32_t b = 0; b < SIMULATION_BUCKETS; b++) {
        char name[24];
        if (outcome->buckets[b].jobs == 0)
            continue;
        snprintf(name, sizeof name, b < 2 ? "%u" : "<=%u", UINT32_C(1) << b);
        report_bucket(&table, name, &outcome->buckets[b], &all);
    }
    report_bucket(&table, "all", &all, &all);
    table_print(&table, out, false);
    table_done(&table);
}

static void report_queue(struct text_table *table, struct str name, struct str quota,
                         const struct simulation_queue *queue, const struct simulation_bucket *all)
{
    char span[24];
    struct arena *arena = &table->arena;
    const struct simulation_bucket *jobs = &queue->all;
    table_add(table, name);
    table_add(table, quota);
    table_add(table, arena_printf(arena, "%llu", (unsigned long long)jobs->jobs));
    double share = 100 * report_ratio(jobs->chip_held_s, all->chip_held_s);
    table_add(table, isfinite(share) ? arena_printf(arena, "%.1f", share) : STR("-"));
    report_span(report_ratio(jobs->wait_s, (double)jobs->jobs), span);
    table_add(table, arena_printf(arena, "%s", span));
    report_span(jobs->jobs ? queue->wait_most_s : (double)NAN, span);
    table_add(table, arena_printf(arena, "%s", span));
    table_add(table, arena_printf(arena, "%llu", (unsigned long long)jobs->fates[FATE_WAITING]));
    table_add(table, arena_printf(arena, "%llu", (unsigned long long)queue->preempted));
    double ettr = simulation_ettr(jobs),
           with_queue = report_ratio(jobs->chip_productive_s, jobs->chip_lived_s);
    table_add(table, isfinite(ettr) ? arena_printf(arena, "%.4f", ettr) : STR("-"));
    table_add(table, isfinite(with_queue) ? arena_printf(arena, "%.4f", with_queue) : STR("-"));
}

static void report_queues(struct buf *out, const struct sim_scenario *scenario,
                          const struct simulation_outcome *outcome)
{
    static const char *const header[] = {"QUEUE",   "QUOTA",   "JOBS",      "TIME %", "WAIT",
                                         "LONGEST", "WAITING", "PREEMPTED", "ETTR",   "ETTR WITH QUEUE"};
    struct simulation_bucket all = simulation_sum(outcome, 1);
    struct text_table table = {.columns = sizeof header / sizeof *header};
    table_heads(&table, header);
    for (size_t i = 0; i < scenario->queues.len; i++)
        report_queue(&table, scenario->queues.items[i].name,
                     arena_printf(&table.arena, "%lld", (long long)scenario->queues.items[i].quota),
                     &outcome->queues[i + 1], &all);
    if (outcome->queues[0].all.jobs)
        report_queue(&table, STR("(none)"), STR("-"), &outcome->queues[0], &all);
    table_print(&table, out, false);
    table_done(&table);
    buf_add_char(out, '\n');
}

static void report_fates(struct buf *out, const struct simulation_bucket *all)
{
    buf_printf(out, "jobs %llu%s", (unsigned long long)all->jobs, all->jobs ? ":" : "");
    for (int fate = 0; fate < JOB_FATES && all->jobs; fate++)
        buf_printf(out, "%s %s %llu (%.1f %%)", fate ? "," : "", job_fate_names[fate],
                   (unsigned long long)all->fates[fate],
                   100 * report_ratio((double)all->fates[fate], (double)all->jobs));
    buf_add_char(out, '\n');
}

static void report_corruption(struct buf *out, const struct simulation_failure *failure)
{
    buf_printf(out, "  %llu found (%llu by jobs), after %.1f h; ", (unsigned long long)failure->found,
               (unsigned long long)failure->found_by_jobs,
               report_ratio(failure->hidden_s, (double)failure->found) / 3600);
    buf_printf(out, "%llu jobs went back, by %.1f h each, and lost %.0f chip-hours; ",
               (unsigned long long)failure->rollbacks,
               report_ratio(failure->lost_s, (double)failure->rollbacks) / 3600, failure->chip_lost_s / 3600);
    buf_printf(out, "%llu jobs ended with %.0f chip-hours of wrong results\n",
               (unsigned long long)failure->wrong_jobs, failure->wrong_chip_s / 3600);
}

static void report_failures(struct buf *out, const struct sim_scenario *scenario,
                            const struct simulation_outcome *outcome)
{
    double kilo_days = scenario->machines * outcome->duration_s / 86400 / 1000;
    for (uint32_t i = 0; i < scenario->failure_count; i++) {
        const struct simulation_failure *failure = &outcome->failures[i];
        buf_printf(out,
                   "%s: %llu times, %.2f of a machine in 1,000 days; machines were out %.1f machine-days\n",
                   scenario->failures[i].name, (unsigned long long)failure->struck,
                   (double)failure->struck / kilo_days, failure->out_s / 86400);
        if (scenario->failures[i].kind == FAILURE_CORRUPTION)
            report_corruption(out, failure);
    }
}

static void report_books(struct buf *out, const struct simulation_outcome *outcome)
{
    double all = 0;
    for (uint32_t i = 0; i < outcome->owner_count; i++)
        all += outcome->owner_chip_s[i];
    buf_printf(out, "chip-time by the controller's books:");
    bool first = true;
    for (uint32_t i = 0; i < outcome->owner_count; i++) {
        if (outcome->owner_chip_s[i] <= 0)
            continue;
        buf_printf(out, "%s %s %.2f %%", first ? "" : ",", outcome->owner_names[i],
                   100 * outcome->owner_chip_s[i] / all);
        first = false;
    }
    buf_add_char(out, '\n');
}

void sim_report_text(struct buf *out, const struct sim_scenario *scenario,
                     const struct simulation_outcome *outcome)
{
    struct simulation_bucket all = simulation_sum(outcome, 1);
    buf_printf(out, "%s: %u machines of %u chips, %.4g days, seed %llu\n", scenario->name, scenario->machines,
               scenario->chips, outcome->duration_s / 86400, (unsigned long long)outcome->seed);
    report_fates(out, &all);
    if (outcome->refused)
        buf_printf(out, "%llu jobs were refused by the controller\n", (unsigned long long)outcome->refused);
    buf_printf(out, "chips at work %.2f %%, on machines that were out %.2f %%\n",
               100 * report_ratio(outcome->busy_chip_s, outcome->all_chip_s),
               100 * report_ratio(outcome->down_chip_s, outcome->all_chip_s));
    report_failures(out, scenario, outcome);
    buf_add_char(out, '\n');
    report_sizes(out, outcome);
    buf_add_char(out, '\n');
    if (scenario->queues.len)
        report_queues(out, scenario, outcome);
    report_books(out, outcome);
    buf_printf(out, "%llu records, digest %016llx\n", (unsigned long long)outcome->records,
               (unsigned long long)outcome->digest);
}

/* --- JSON ----------------------------------------------------------------------------------------- */

static void report_json_jobs(struct json_writer *json, const struct simulation_bucket *bucket)
{
    json_pair_int(json, "jobs", (int64_t)bucket->jobs);
    json_key(json, "fates");
    json_begin_object(json);
    for (int fate = 0; fate < JOB_FATES; fate++)
        json_pair_int(json, job_fate_names[fate], (int64_t)bucket->fates[fate]);
    json_end_object(json);
    json_pair_int(json, "starts", (int64_t)bucket->starts);
    json_pair_int(json, "interruptions", (int64_t)bucket->interruptions);
    json_pair_int(json, "stops", (int64_t)bucket->preemptions);
    json_pair_float(json, "waitSeconds", bucket->wait_s);
    json_pair_float(json, "heldSeconds", bucket->held_s);
    json_pair_float(json, "productiveSeconds", bucket->productive_s);
    json_pair_float(json, "lostSeconds", bucket->lost_s);
    json_pair_float(json, "checkpointSeconds", bucket->written_s);
    json_pair_float(json, "runSeconds", bucket->run_s);
    json_pair_float(json, "chipHours", bucket->chip_held_s / 3600);
    json_pair_float(json, "mttfSeconds", report_ratio(bucket->run_s, (double)bucket->interruptions));
    json_pair_float(json, "ettr", simulation_ettr(bucket));
    json_pair_float(json, "ettrWithQueue", report_ratio(bucket->chip_productive_s, bucket->chip_lived_s));
}

static void report_json_bucket(struct json_writer *json, uint32_t chips,
                               const struct simulation_bucket *bucket)
{
    json_begin_object(json);
    json_pair_int(json, "chips", chips);
    report_json_jobs(json, bucket);
    json_end_object(json);
}

/* Writes the queues of the scenario; jobs without a queue have no name. */
static void report_json_queues(struct json_writer *json, const struct sim_scenario *scenario,
                               const struct simulation_outcome *outcome)
{
    json_key(json, "queues");
    json_begin_array(json);
    for (size_t i = 0; i <= scenario->queues.len; i++) {
        const struct simulation_queue *queue = &outcome->queues[i];
        if (i == 0 && queue->all.jobs == 0)
            continue;
        json_begin_object(json);
        if (i > 0) {
            json_pair_str(json, "name", scenario->queues.items[i - 1].name);
            json_pair_int(json, "quota", scenario->queues.items[i - 1].quota);
        }
        report_json_jobs(json, &queue->all);
        json_pair_float(json, "longestWaitSeconds", queue->wait_most_s);
        json_pair_int(json, "preempted", (int64_t)queue->preempted);
        json_end_object(json);
    }
    json_end_array(json);
}

static void report_json_corruption(struct json_writer *json, const struct simulation_failure *failure)
{
    json_pair_int(json, "found", (int64_t)failure->found);
    json_pair_int(json, "foundByJobs", (int64_t)failure->found_by_jobs);
    json_pair_float(json, "hiddenSeconds", failure->hidden_s);
    json_pair_int(json, "rollbacks", (int64_t)failure->rollbacks);
    json_pair_float(json, "lostSeconds", failure->lost_s);
    json_pair_float(json, "lostChipSeconds", failure->chip_lost_s);
    json_pair_int(json, "wrongJobs", (int64_t)failure->wrong_jobs);
    json_pair_float(json, "wrongChipSeconds", failure->wrong_chip_s);
}

static void report_json_failures(struct json_writer *json, const struct sim_scenario *scenario,
                                 const struct simulation_outcome *outcome)
{
    json_key(json, "failures");
    json_begin_array(json);
    for (uint32_t i = 0; i < scenario->failure_count; i++) {
        json_begin_object(json);
        json_pair_text(json, "name", scenario->failures[i].name);
        json_pair_int(json, "struck", (int64_t)outcome->failures[i].struck);
        json_pair_int(json, "missed", (int64_t)outcome->failures[i].missed);
        json_pair_float(json, "outSeconds", outcome->failures[i].out_s);
        if (scenario->failures[i].kind == FAILURE_CORRUPTION)
            report_json_corruption(json, &outcome->failures[i]);
        json_end_object(json);
    }
    json_end_array(json);
}

static void report_json_samples(struct json_writer *json, const struct simulation_outcome *outcome)
{
    json_key(json, "samples");
    json_begin_array(json);
    for (uint32_t i = 0; i < outcome->sample_count; i++) {
        const struct simulation_sample *sample = &outcome->samples[i];
        json_begin_object(json);
        json_pair_float(json, "at", sample->at_s);
        json_pair_int(json, "busyChips", sample->busy_chips);
        json_pair_int(json, "queuedChips", sample->queued_chips);
        json_pair_int(json, "downMachines", sample->down_machines);
        json_pair_int(json, "runningJobs", sample->running_jobs);
        json_end_object(json);
    }
    json_end_array(json);
}

void sim_report_json(struct json_writer *json, const struct sim_scenario *scenario,
                     const struct simulation_outcome *outcome)
{
    struct simulation_bucket all = simulation_sum(outcome, 1);
    char digest[24];
    snprintf(digest, sizeof digest, "%016llx", (unsigned long long)outcome->digest);
    json_begin_object(json);
    json_pair_text(json, "name", scenario->name);
    json_pair_int(json, "seed", (int64_t)outcome->seed);
    json_pair_text(json, "digest", digest);
    json_pair_int(json, "machines", scenario->machines);
    json_pair_int(json, "chipsPerMachine", scenario->chips);
    json_pair_float(json, "durationSeconds", outcome->duration_s);
    json_pair_float(json, "busyShare", report_ratio(outcome->busy_chip_s, outcome->all_chip_s));
    json_pair_float(json, "downShare", report_ratio(outcome->down_chip_s, outcome->all_chip_s));
    json_pair_int(json, "refused", (int64_t)outcome->refused);
    json_key(json, "all");
    report_json_bucket(json, 0, &all);
    json_key(json, "sizes");
    json_begin_array(json);
    for (uint32_t b = 0; b < SIMULATION_BUCKETS; b++)
        if (outcome->buckets[b].jobs)
            report_json_bucket(json, UINT32_C(1) << b, &outcome->buckets[b]);
    json_end_array(json);
    if (scenario->queues.len)
        report_json_queues(json, scenario, outcome);
    report_json_failures(json, scenario, outcome);
    json_key(json, "books");
    json_begin_object(json);
    for (uint32_t i = 0; i < outcome->owner_count; i++)
        json_pair_float(json, outcome->owner_names[i], outcome->owner_chip_s[i]);
    json_end_object(json);
    report_json_samples(json, outcome);
    json_pair_int(json, "records", (int64_t)outcome->records);
    json_pair_int(json, "events", (int64_t)outcome->events);
    json_pair_int(json, "messages", (int64_t)outcome->messages);
    json_end_object(json);
}
