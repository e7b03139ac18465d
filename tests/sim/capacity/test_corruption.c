/* Silent corruption: what it costs follows from how it is found; the controller's books say the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "doc/yaml.h"
#include "sim/capacity/capacity.h"

static struct simulation_outcome *simulate(const char *text)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc_list docs;
    struct error error = {0};
    struct sim_scenario scenario;
    struct simulation_outcome *outcome = mem_alloc(sizeof *outcome);
    assert_int_equal(yaml_parse_all(&arena, str_from(text), &docs, &error), 0);
    if (sim_scenario_read(&scenario, docs.items[0], "test.yaml", &error) < 0 ||
        simulation_check(&scenario, "test.yaml", &error) < 0)
        fail_msg("%s", error.text);
    simulation_run(&(struct simulation_options){.scenario = &scenario, .seed = 1}, outcome);
    sim_scenario_done(&scenario);
    return outcome;
}

static double owned(const struct simulation_outcome *outcome, const char *owner)
{
    for (uint32_t i = 0; i < outcome->owner_count; i++)
        if (strcmp(outcome->owner_names[i], owner) == 0)
            return outcome->owner_chip_s[i];
    fail_msg("no owner %s", owner);
    return 0;
}

/* Thirty-six jobs of one machine each for a thousand days, with a checkpoint every twelve hours. */
static struct simulation_outcome *found_by(const char *how)
{
    char text[1024];
    snprintf(text, sizeof text,
             "duration: 1000d\ncluster: {machines: 40, chips: 8}\n"
             "failures: [{kind: corruption, rate: 30, repair: 6h, %s}]\n"
             "workload:\n  checkpoint: {interval: 12h, write: 0, fromChips: 1}\n  launch: 1s\n  load: 59s\n"
             "  jobs: [{chips: 8, runtime: 2000d, count: 36}]\n",
             how);
    return simulate(text);
}

/* The work that is lost is the time until it is found, and half the distance of two checkpoints. */
static void lost_work(void **state)
{
    static const struct {
        const char *how;
        double hidden_h, tolerance_h; /* four standard errors of about a thousand corruptions */
    } cases[] = {
        {"tests: {interval: 1d}", 12, 1},                    /* half the interval */
        {"tests: {interval: 1d, coverage: 0.5}", 36, 4.3},   /* (1/0.5 - 1/2) intervals */
        {"detection: {exponential: 10h}", 10, 1.3},          /* the mean */
        {"validation: 8h", 8, 0.45},                         /* of training */
        {"tests: {interval: 1d}, detection: 6h", 5.25, 0.5}, /* the first of both: 6 - 6^2 / 48 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct simulation_outcome *outcome = found_by(cases[i].how);
        const struct simulation_failure *failure = &outcome->failures[0];
        const struct simulation_bucket *bucket = &outcome->buckets[simulation_bucket_of(8)];
        double lost_h = failure->lost_s / 3600 / (double)failure->rollbacks;
        assert_true(failure->rollbacks > 900);
        if (fabs(lost_h - cases[i].hidden_h - 6) > cases[i].tolerance_h)
            fail_msg("%s: %f h a rollback", cases[i].how, lost_h);
        assert_true(fabs(failure->chip_lost_s - 8 * failure->lost_s) < 1);
        assert_true(fabs(bucket->chip_lost_s - failure->chip_lost_s) < 1e-3 * failure->chip_lost_s);
        double redone = owned(outcome, "redone"); /* the machine's fault explains it */
        if (fabs(redone / failure->chip_lost_s - 1) > 0.02)
            fail_msg("%s: the books have %f of the lost work", cases[i].how, redone / failure->chip_lost_s);
        assert_true((failure->found_by_jobs > 0) == (strstr(cases[i].how, "validation") != NULL));
        mem_free(outcome);
    }
}

/* A job that ends before the test comes has wrong results; others that come later run elsewhere. */
static void found_too_late(void **state)
{
    struct simulation_outcome *outcome = simulate(
        "duration: 4d\ncluster: {machines: 2, chips: 8}\n"
        "failures: [{kind: corruption, at: [{machine: 1, time: 1h}], detection: 1d, repair: 30d}]\n"
        "workload:\n  checkpoint: {interval: 1h, write: 0, fromChips: 1}\n  launch: 1s\n"
        "  load: 59s\n  jobs:\n  - {chips: 16, runtime: 3h}\n  - {chips: 8, runtime: 2h, submit: 2d}\n");
    const struct simulation_failure *failure = &outcome->failures[0];
    assert_int_equal(failure->found, 1);
    assert_int_equal(failure->rollbacks, 0);
    assert_int_equal(failure->wrong_jobs, 1);
    assert_true(fabs(failure->wrong_chip_s - 16 * (2 * 3600 + 60)) < 1);
    assert_int_equal(outcome->buckets[simulation_bucket_of(8)].fates[FATE_COMPLETED], 1);
    assert_true(owned(outcome, "in-repair") + owned(outcome, "quarantined") > 8 * 2 * 86400.0);
    mem_free(outcome);
}

/* Every job that the machine has touched goes back, the one that has left it meanwhile as well. */
static void jobs_that_have_left(void **state)
{
    struct simulation_outcome *outcome =
        simulate("duration: 2d\ncluster: {machines: 3, chips: 8}\n"
                 "failures:\n"
                 "- {kind: corruption, at: [{machine: 1, time: 90m}], detection: 6h, repair: 30d}\n"
                 "- {kind: crash, at: [{machine: 2, time: 210m, repair: 30d}], detection: 4s}\n"
                 "workload:\n  checkpoint: {interval: 1h, write: 0, fromChips: 1}\n  launch: 1s\n"
                 "  load: 59s\n  jobs: [{chips: 16, runtime: 12h}]\n");
    const struct simulation_bucket *bucket = &outcome->buckets[simulation_bucket_of(16)];
    assert_int_equal(outcome->failures[0].rollbacks, 1);
    /* Back to the first checkpoint from 450 minutes, of which two times a minute passed before training, and
     * half an hour was lost to the crash. */
    assert_true(fabs(outcome->failures[0].lost_s - (450 - 2 - 29 - 60) * 60) < 30);
    assert_true(bucket->fates[FATE_COMPLETED] + bucket->fates[FATE_WAITING] + bucket->fates[FATE_RUNNING] ==
                1);
    mem_free(outcome);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_work),
        cmocka_unit_test(found_too_late),
        cmocka_unit_test(jobs_that_have_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
