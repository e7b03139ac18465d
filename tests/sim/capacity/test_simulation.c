/* Simulated months: equal seeds are equal, failures cost what the renewal formula says, books balance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "base/hash.h"
#include "doc/yaml.h"
#include "sim/capacity/capacity.h"

static void read_scenario(const char *text, struct sim_scenario *ret)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc_list docs;
    struct error error = {0};
    assert_int_equal(yaml_parse_all(&arena, str_from(text), &docs, &error), 0);
    if (sim_scenario_read(ret, docs.items[0], "test.yaml", &error) < 0 ||
        simulation_check(ret, "test.yaml", &error) < 0)
        fail_msg("%s", error.text);
}

static struct simulation_outcome *simulate(const char *text, uint64_t seed)
{
    struct sim_scenario scenario;
    struct simulation_outcome *outcome = mem_alloc(sizeof *outcome);
    read_scenario(text, &scenario);
    simulation_run(&(struct simulation_options){.scenario = &scenario, .seed = seed}, outcome);
    sim_scenario_done(&scenario);
    return outcome;
}

/* --- what happens --------------------------------------------------------------------------------- */

static const char quiet[] = "duration: 1d\n"
                            "cluster: {machines: 4, chips: 8}\n"
                            "workload:\n"
                            "  checkpoint: {interval: 1h, write: 0, fromChips: 1}\n"
                            "  launch: 1s\n"
                            "  load: 59s\n"
                            "  jobs:\n"
                            "  - {chips: 32, runtime: 5h}\n"
                            "  - {chips: 8, runtime: 2h, submit: 10m}\n"
                            "  - {chips: 8, runtime: 1h, submit: 10m, fails: true}\n";

/* Without failures a job takes its start and its run time, and waits for those before it. */
static void without_failures(void **state)
{
    struct simulation_outcome *outcome = simulate(quiet, 1);
    const struct simulation_bucket *large = &outcome->buckets[simulation_bucket_of(32)];
    const struct simulation_bucket *small = &outcome->buckets[simulation_bucket_of(8)];
    assert_int_equal(large->fates[FATE_COMPLETED], 1);
    assert_int_equal(small->fates[FATE_COMPLETED], 1);
    assert_int_equal(small->fates[FATE_FAILED], 1);
    assert_true(fabs(large->held_s - 5 * 3600 - 59) < 2);
    assert_true(fabs(large->wait_s - 1) < 0.5);
    assert_true(fabs(large->productive_s - 5 * 3600) < 1e-6);
    assert_true(fabs(small->wait_s - 2 * (5 * 3600 + 60 - 600)) < 10);
    assert_int_equal(outcome->buckets[simulation_bucket_of(32)].interruptions, 0);
    /* The controller's book of the same day: the failed job's hour is not kept. */
    double sum = 0, kept = 0;
    for (uint32_t i = 0; i < outcome->owner_count; i++) {
        sum += outcome->owner_chip_s[i];
        kept += strstr(outcome->owner_names[i], "kept") ? outcome->owner_chip_s[i] : 0;
    }
    assert_true(fabs(sum - outcome->all_chip_s) < 40); /* the books open a second before */
    assert_true(fabs(kept - (32 * 5 + 8 * 2) * 3600.0) < 100);
    assert_true(outcome->busy_chip_s >= (32 * 5 + 8 * 3) * 3600);
    mem_free(outcome);
}

static const char crash[] = "duration: 1d\n"
                            "cluster: {machines: 4, chips: 8}\n"
                            "failures:\n"
                            "- {kind: %s, life: {uniform: [9000s, 9001s]}, detection: 10s, repair: 30d, "
                            "scope: %s}\n"
                            "workload:\n"
                            "  checkpoint: {interval: 1h, write: 0, fromChips: 1}\n"
                            "  launch: 1s\n"
                            "  load: 59s\n"
                            "  jobs: [{chips: 8, runtime: 3h}]\n";

/* A machine is struck after two hours and a half: half an hour of work is lost and done again elsewhere. */
static void a_strike_costs_the_work_since_the_checkpoint(void **state)
{
    static const char *const kinds[] = {"crash", "fault"};
    for (int i = 0; i < 2; i++) {
        char text[1024];
        snprintf(text, sizeof text, crash, kinds[i], "machine");
        struct simulation_outcome *outcome = simulate(text, 1);
        const struct simulation_bucket *bucket = &outcome->buckets[simulation_bucket_of(8)];
        assert_int_equal(outcome->failures[0].struck, 4); /* of the whole cluster, never to return */
        assert_int_equal(bucket->interruptions, 1);
        /* After a fault the job may lose seconds more, on a machine whose fault is not known yet. */
        assert_true(bucket->lost_s > 9000 - 60 - 7200 - 1 && bucket->lost_s < 9000 - 60 - 7200 + 40);
        mem_free(outcome);
    }
}

/* Processes that outlive their peers are not started again: one is, whether its machine lives or not. */
static void peers_rejoin(void **state)
{
    static const struct {
        const char *kind, *rejoins;
        int started;
    } cases[] = {
        {"process", "true", 5}, {"process", "false", 8}, {"crash", "true", 5}, {"crash", "false", 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "duration: 1d\ncluster: {machines: 5, chips: 8, machinesPerRack: 5, sparesPerRack: 1}\n"
                 "failures: [{kind: %s, at: [{machine: 1, time: 90m}], repair: 30d}]\n"
                 "workload:\n  rejoins: %s\n  checkpoint: {interval: 1h, write: 0, fromChips: 1}\n"
                 "  launch: 1s\n  load: 59s\n  jobs: [{chips: 32, runtime: 4h}]\n"
                 "  annotations: {phalanx.dev/recovery: 'restart-process,replace-machine'}\n",
                 cases[i].kind, cases[i].rejoins);
        struct simulation_outcome *outcome = simulate(text, 1);
        const struct simulation_bucket *bucket = &outcome->buckets[simulation_bucket_of(32)];
        assert_int_equal((int)outcome->tasks_started, cases[i].started);
        assert_int_equal(bucket->interruptions, 1);
        assert_int_equal(bucket->preemptions, 0);
        assert_int_equal(bucket->starts, 2);
        assert_int_equal(bucket->fates[FATE_COMPLETED], 1);
        assert_true(fabs(bucket->lost_s - (30 * 60 - 60)) < 2);
        mem_free(outcome);
    }
}

/* A process that dies alone leaves its machine in service. */
static void a_process_restarts(void **state)
{
    char text[1024];
    snprintf(text, sizeof text, crash, "process", "machine");
    struct simulation_outcome *outcome = simulate(text, 1);
    const struct simulation_bucket *bucket = &outcome->buckets[simulation_bucket_of(8)];
    assert_int_equal(bucket->fates[FATE_COMPLETED], 1);
    assert_true(bucket->interruptions >= 1);
    assert_true(outcome->down_chip_s == 0);
    mem_free(outcome);
}

/* A list of failures says which machine fails when, and for how long. */
static void planned_failures(void **state)
{
    struct simulation_outcome *outcome = simulate(
        "duration: 1d\ncluster: {machines: 3, chips: 8}\n"
        "failures:\n- {kind: crash, detection: 10s, at: [{machine: 1, time: 2h30m, repair: 1h}, "
        "{machine: 1, time: 3h, repair: 1h}, {machine: 2, time: 10h, repair: 2h}]}\n"
        "workload:\n  checkpoint: {interval: 1h, write: 0, fromChips: 1}\n  launch: 1s\n  load: 59s\n"
        "  jobs: [{chips: 24, runtime: 4h}]\n",
        1);
    const struct simulation_bucket *bucket = &outcome->buckets[simulation_bucket_of(24)];
    assert_int_equal(outcome->failures[0].struck, 2);
    assert_int_equal(outcome->failures[0].missed, 1); /* it was out already */
    assert_true(fabs(outcome->failures[0].out_s - 3 * 3600 - 20) < 0.1);
    assert_int_equal(bucket->fates[FATE_COMPLETED], 1);
    assert_int_equal(bucket->interruptions, 1);
    assert_true(fabs(bucket->lost_s - (9000 - 60 - 7200)) < 1);
    /* The job needs all machines, so it waits for the repair. */
    assert_true(fabs(bucket->held_s - (59 + 4 * 3600 + 1740 + 10 + 3600 + 60)) < 10);
    mem_free(outcome);
}

/* --- equal runs ----------------------------------------------------------------------------------- */

static const char busy[] =
    "duration: 3d\n"
    "cluster: {machines: 60, chips: 8, machinesPerRack: 4}\n"
    "failures:\n"
    "- {kind: crash, rate: 30, repair: {lognormal: {median: 2h, sigma: 1}}}\n"
    "- {kind: fault, life: {weibull: {scale: 40d, shape: 0.7}}, repair: {exponential: 6h}, "
    "lemons: {share: 0.1, factor: 10}, infant: {time: 1d, factor: 5}}\n"
    "- {kind: false-alarm, rate: 5, repair: 1h}\n"
    "- {kind: process, rate: 20}\n"
    "- {kind: crash, rate: 60, scope: rack, repair: 3h}\n"
    "workload:\n"
    "  jobsPerDay: 120\n"
    "  chipHours: 40\n"
    "  failed: 0.2\n"
    "  cancelled: 0.05\n"
    "  sizes: [{chips: 1, jobs: 5, time: 1}, {chips: 8, jobs: 3, time: 2}, {chips: 64, jobs: 1, time: 5}, "
    "{chips: 256, jobs: 0.1, time: 2}]\n";

/* The digest is of all records of the log and of the final state. */
static void equal_seeds_are_equal(void **state)
{
    struct simulation_outcome *first = simulate(busy, 7), *again = simulate(busy, 7);
    struct simulation_outcome *other = simulate(busy, 8);
    assert_true(first->digest == again->digest);
    assert_memory_equal(first, again, sizeof *first);
    assert_true(first->digest != other->digest);
    assert_true(first->records > 1000 && first->jobs > 200 && first->refused == 0);
    uint64_t struck = 0;
    for (int i = 0; i < 5; i++) {
        assert_true(first->failures[i].struck > 0);
        struck += first->failures[i].struck;
    }
    struct simulation_bucket all = simulation_sum(first, 1);
    assert_true(all.interruptions > 0 && all.interruptions <= struck * 8);
    assert_int_equal(all.jobs, first->jobs);
    mem_free(first);
    mem_free(again);
    mem_free(other);
}

static void mix_real(uint64_t *hash, double value)
{
    *hash = hash_words(*hash, &value, sizeof value);
}

/* A hash of the bits of all numbers that a study takes from a run. The log's digest is not part of it, so a
 * new field of a record changes nothing. */
static uint64_t hash_of_outcome(const struct simulation_outcome *outcome)
{
    uint64_t hash = hash_words(outcome->jobs, &outcome->tasks_started, sizeof outcome->tasks_started);
    for (int b = 0; b < SIMULATION_BUCKETS; b++) {
        const struct simulation_bucket *bucket = &outcome->buckets[b];
        const uint64_t counts[] = {bucket->jobs, bucket->starts, bucket->interruptions, bucket->preemptions};
        hash = hash_words(hash, counts, sizeof counts);
        hash = hash_words(hash, bucket->fates, sizeof bucket->fates);
        mix_real(&hash, bucket->wait_s);
        mix_real(&hash, bucket->chip_held_s);
        mix_real(&hash, bucket->chip_productive_s);
        mix_real(&hash, bucket->chip_lost_s);
        mix_real(&hash, bucket->chip_run_s);
    }
    for (int f = 0; f < SCENARIO_FAILURES_MAX; f++) {
        hash = hash_words(hash, &outcome->failures[f].struck, sizeof outcome->failures[f].struck);
        mix_real(&hash, outcome->failures[f].out_s);
    }
    mix_real(&hash, outcome->busy_chip_s);
    mix_real(&hash, outcome->down_chip_s);
    for (uint32_t i = 0; i < outcome->owner_count; i++)
        mix_real(&hash, outcome->owner_chip_s[i]);
    return hash;
}

/* Every compiler and every level of optimization gives the same run, bit by bit. A change of what the
 * controller decides, or of the simulator, changes the hash: then take over the new one, after a look at the
 * numbers. */
static void all_builds_agree(void **state)
{
    static const struct {
        uint64_t seed, hash;
    } runs[] = {{7, UINT64_C(0x89020066f05bce09)}, {8, UINT64_C(0x6d6e1aa042952a8e)}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct simulation_outcome *outcome = simulate(busy, runs[i].seed);
        uint64_t hash = hash_of_outcome(outcome);
        struct simulation_bucket all = simulation_sum(outcome, 1);
        if (hash != runs[i].hash)
            fail_msg(
                "seed %llu: 0x%016llx, expected 0x%016llx (%llu jobs, %llu interruptions, %.17g s at work)",
                (unsigned long long)runs[i].seed, (unsigned long long)hash, (unsigned long long)runs[i].hash,
                (unsigned long long)all.jobs, (unsigned long long)all.interruptions, all.chip_productive_s);
        mem_free(outcome);
    }
}

/* Neither the time of failures nor the jobs depend on what the controller does. */
static void policies_see_the_same_world(void **state)
{
    char text[4096];
    snprintf(text, sizeof text, "%s  annotations: {}\n", busy);
    struct simulation_outcome *ladder = simulate(busy, 7), *policy = simulate(text, 7);
    assert_int_equal(ladder->jobs, policy->jobs);
    assert_int_equal(ladder->failures[0].struck, policy->failures[0].struck);
    assert_true(ladder->digest != policy->digest);
    mem_free(ladder);
    mem_free(policy);
}

/* --- the renewal formula -------------------------------------------------------------------------- */

/* ETTR of segments that end with a checkpoint, with failures in all of the restart and the write (reference
 * of the formula: src/job/loop/ettr.h, written anew here). Seconds; q is not exposed to failures. */
static double renewal(double lambda, double interval, double write, double restart, double q)
{
    return lambda * interval /
           ((1 + lambda * q) * exp(lambda * restart) * expm1(lambda * (interval + write)));
}

/* One endless job on as many machines as lambda asks for, and enough others. About 2,500 failures give a
 * standard error below 0.005; bench/sim has 200,000. */
static void ettr_follows_the_formula(void **state)
{
    static const struct {
        double rate, interval, write, load; /* rate: of one machine in 1,000 days */
    } cases[] = {{10000, 3600, 0, 298}, {10000, 1800, 300, 298}, {30000, 600, 10, 118}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        snprintf(
            text, sizeof text,
            "duration: %.0fd\ncluster: {machines: 8, chips: 8}\n"
            "failures: [{kind: crash, rate: %g, detection: 4s, repair: 10m}]\n"
            "workload:\n  checkpoint: {interval: %g, write: %g, fromChips: 1}\n  launch: 2s\n  load: %g\n"
            "  annotations: {phalanx.dev/recovery: replace-machine, phalanx.dev/no-progress-attempts: '0', "
            "phalanx.dev/recovery-budgets: replace-machine=100/1h}\n"
            "  jobs: [{chips: 8, runtime: 3600d}]\n",
            2500 * 1000 / cases[i].rate, cases[i].rate, cases[i].interval, cases[i].write, cases[i].load);
        struct simulation_outcome *outcome = simulate(text, 3);
        const struct simulation_bucket *bucket = &outcome->buckets[simulation_bucket_of(8)];
        double lambda = cases[i].rate / 1000 / 86400;
        double exact = renewal(lambda, cases[i].interval, cases[i].write, cases[i].load + 2, 4);
        double ettr = simulation_ettr(bucket);
        print_message("ETTR %.4f, formula %.4f, %llu failures\n", ettr, exact,
                      (unsigned long long)bucket->interruptions);
        assert_true(bucket->interruptions > 1500);
        assert_true(fabs(ettr - exact) < 0.015);
        mem_free(outcome);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_failures),
        cmocka_unit_test(a_strike_costs_the_work_since_the_checkpoint),
        cmocka_unit_test(a_process_restarts),
        cmocka_unit_test(peers_rejoin),
        cmocka_unit_test(planned_failures),
        cmocka_unit_test(equal_seeds_are_equal),
        cmocka_unit_test(all_builds_agree),
        cmocka_unit_test(policies_see_the_same_world),
        cmocka_unit_test(ettr_follows_the_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
