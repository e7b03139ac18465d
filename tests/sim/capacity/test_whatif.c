/* A cluster's history in the simulator: it is played as it was, and beside a policy that differs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "doc/yaml.h"
#include "sim/capacity/study.h"

#define HEAD "phalanx-trace 1\nbegin 2026-03-01T12:00:00Z\nend 86400.5\n"
#define FOUR                                                                                                 \
    "machine a chips=8 rack=r1\nmachine b chips=8 rack=r1\nmachine c chips=8 rack=r2\n"                      \
    "machine d chips=8 rack=r2 spare=1\n"

/* Plays the history by the scenario file of its own; fails the test if it is refused. */
static struct simulation_outcome *play(const char *text, const char *file)
{
    struct history history;
    struct error error = {0};
    struct arena arena ARENA_CLEANUP = {0};
    struct doc_list docs = {0};
    struct sim_scenario scenario;
    struct simulation_outcome *outcome = mem_alloc(sizeof *outcome);
    size_t left_out = 0;
    if (history_read(&history, str_from(text), "t", &error) < 0 ||
        yaml_parse_all(&arena, str_from(file), &docs, &error) < 0 ||
        sim_scenario_read(&scenario, docs.items[0], "s", &error) < 0 ||
        sim_scenario_take_history(&scenario, &history, "t", &left_out, &error) < 0 ||
        simulation_check(&scenario, "t", &error) < 0)
        fail_msg("%s", error.text);
    simulation_run(&(struct simulation_options){.scenario = &scenario, .seed = 1}, outcome);
    sim_scenario_done(&scenario);
    history_done(&history);
    return outcome;
}

static const char plain[] = "workload: {trace: {file: t, format: phalanx}}\n";

/* Times of a job are the trace's own. One that comes between two microseconds' halves as a floating number is
 * submitted, too. */
static void as_it_was(void **state)
{
    struct simulation_outcome *outcome =
        play(HEAD FOUR "down 0 b until=100.25\ndown 0 c until=200\n"
                       "job 16.271632 x ranks=2 chips=8 run=3600 end=completed launch=0.5 load=2\n",
             plain);
    struct simulation_bucket all = simulation_sum(outcome, 1);
    assert_int_equal(all.fates[FATE_COMPLETED], 1);
    assert_true(fabs(all.wait_s - (100.25 - 16.271632 + 0.5)) < 1e-3); /* for the second machine */
    assert_true(fabs(all.held_s - 3602) < 1e-3 && all.productive_s == 3600);
    assert_int_equal(outcome->failures[0].struck, 2); /* "not there yet" */
    mem_free(outcome);
}

static void a_crash_and_an_outage(void **state)
{
    /* The crash at 1,000 s of steps costs what was not saved since 900 s; the machine's loss at 3,000 s what
     * was not since 2,700 s. */
    struct simulation_outcome *outcome = play(
        HEAD FOUR "down 3000 a until=4000\n"
                  "job 0 x ranks=3 chips=8 run=5000 end=completed launch=1 load=9 stop=1 save=300 write=0 "
                  "crashes=1000\n",
        plain);
    struct simulation_bucket all = simulation_sum(outcome, 1);
    assert_int_equal(all.fates[FATE_COMPLETED], 1);
    assert_int_equal(all.interruptions, 2);
    assert_int_equal(all.starts, 3);
    assert_true(all.lost_s >= 100 && all.lost_s < 700);
    assert_int_equal(outcome->failures[1].struck, 1); /* "machine lost" */
    assert_true(fabs(outcome->failures[1].out_s - 1000) < 1);
    struct simulation_outcome *again = play(
        HEAD FOUR "down 3000 a until=4000\n"
                  "job 0 x ranks=3 chips=8 run=5000 end=completed launch=1 load=9 stop=1 save=300 write=0 "
                  "crashes=1000\n",
        plain);
    assert_true(again->digest == outcome->digest);
    mem_free(again);
    mem_free(outcome);
}

/* A job whose position is not known loses nothing, one without checkpoints everything. */
static void what_a_restart_costs(void **state)
{
    static const char *const keys[] = {"", " keeps=1"};
    static const double lost_s[] = {1000, 0};
    for (int i = 0; i < 2; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 HEAD FOUR "job 0 x ranks=1 chips=8 run=5000 end=completed launch=1 load=0%s crashes=1000\n",
                 keys[i]);
        struct simulation_outcome *outcome = play(text, plain);
        struct simulation_bucket all = simulation_sum(outcome, 1);
        assert_int_equal(all.fates[FATE_COMPLETED], 1);
        assert_int_equal(all.interruptions, 1);
        assert_true(fabs(all.lost_s - lost_s[i]) < 1);
        mem_free(outcome);
    }
}

/* Outages that overlap are one: the machine is away from the first beginning to the last end. */
static void overlaps_are_one_outage(void **state)
{
    struct simulation_outcome *outcome = play(
        HEAD FOUR "down 100 a until=200\nfault 150 a until=400 code=xid/79 kills=1\ndown 300 a until=350\n"
                  "fault 1000 b until=1100 code=xid/79\nfault 2000 c until=2500 code=xid/31 kills=1\n",
        plain);
    assert_int_equal(outcome->failures[1].struck, 1);
    assert_true(fabs(outcome->failures[1].out_s - 300) < 1e-6);
    assert_int_equal(outcome->failures[2].struck, 1);
    assert_true(fabs(outcome->failures[2].out_s - 500) < 1e-6);
    assert_int_equal(outcome->failures[3].struck, 1);
    assert_true(fabs(outcome->down_chip_s - 8 * (300 + 100 + 500)) < 1e-3);
    mem_free(outcome);
}

/* The file's own machines, length and policy go before the trace's. */
static void the_scenario_has_the_last_word(void **state)
{
    static const char trace[] =
        HEAD "policy settings.backfillWindow 1m\npolicy queues.fairSharing.enable true\n" FOUR
             "job 0 x ranks=4 chips=8 run=50 end=completed\n"
             "job 1 y ranks=1 chips=8 run=0 end=cancelled\n";
    struct simulation_outcome *outcome = play(trace, plain);
    assert_int_equal(outcome->jobs, 0); /* the fourth machine is a spare; the other job never worked */
    assert_true(outcome->duration_s == 86400.5);
    mem_free(outcome);
    outcome = play(trace, "duration: 2h\ncluster: {machines: 6, spec: {settings: {backfillWindow: 5m}}}\n"
                          "workload: {trace: {file: t, format: phalanx}}\n");
    assert_int_equal(outcome->jobs, 1);
    assert_true(outcome->duration_s == 7200 && outcome->all_chip_s == 7200.0 * 6 * 8);
    mem_free(outcome);
}

static int read_beside(struct study *ret, const char *path, const char *value, struct error *error)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc_list docs = {0};
    struct study_change change = {str_from(path), str_from(value)};
    assert_int_equal(
        yaml_parse_all(&arena, STR("cluster: {machines: 4}\nworkload: {jobs: [{chips: 8, runtime: 1h}]}\n"),
                       &docs, NULL),
        0);
    return study_read_beside(ret, docs.items[0], "s", &change, 1, error);
}

static void a_base_and_what_differs(void **state)
{
    struct study study;
    struct error error = {0};
    struct buf base BUF_CLEANUP = {0}, other BUF_CLEANUP = {0};
    if (read_beside(&study, "policy.queues.minimumRunTime", "5m", &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(study.points.len, 2);
    study_value_at(&study, 0, 0, &base);
    study_value_at(&study, 1, 0, &other);
    assert_string_equal(base.data, "2h");
    assert_string_equal(other.data, "5m");
    study_done(&study);
    assert_int_equal(read_beside(&study, "policy.queues.nothing", "5m", &error), ERROR_INVALID);
    assert_non_null(strstr(error.text, "--set: \"policy.queues.nothing\" is no constant of the policy"));
    assert_int_equal(read_beside(&study, "policy.settings.hangs.enabled", "true", &error), ERROR_INVALID);
    assert_int_equal(read_beside(&study, "nowhere[2].x", "5m", &error), ERROR_INVALID);
    assert_int_equal(read_beside(&study, "machines", "0", &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_it_was),
        cmocka_unit_test(a_crash_and_an_outage),
        cmocka_unit_test(what_a_restart_costs),
        cmocka_unit_test(overlaps_are_one_outage),
        cmocka_unit_test(the_scenario_has_the_last_word),
        cmocka_unit_test(a_base_and_what_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
