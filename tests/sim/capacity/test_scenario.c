/* Scenarios: defaults, distributions, and where a mistake is said to be; sweeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "doc/yaml.h"
#include "sim/capacity/study.h"

static struct doc *parse_yaml(struct arena *arena, const char *text)
{
    struct doc_list docs;
    struct error error = {0};
    assert_int_equal(yaml_parse_all(arena, str_from(text), &docs, &error), 0);
    return docs.items[0];
}

static void refuse(const char *text, const char *why)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct study study;
    struct error error = {0};
    assert_int_equal(study_read(&study, parse_yaml(&arena, text), "s.yaml", &error), ERROR_INVALID);
    assert_string_equal(error.text, why);
}

static void defaults(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct sim_scenario scenario;
    struct error error = {0};
    struct doc *doc =
        parse_yaml(&arena, "cluster: {machines: 10}\nworkload: {mix: rsc-1, jobsPerDay: 5, sizes: "
                           "[{chips: 8, jobs: 3, time: 1}, {chips: 16, jobs: 1, time: 1}]}\n");
    assert_int_equal(sim_scenario_read(&scenario, doc, "s.yaml", &error), 0);
    assert_int_equal(scenario.machines, 10);
    assert_int_equal(scenario.chips, 8);
    assert_true(scenario.duration_ns == INT64_C(30) * 86400 * 1000000000);
    assert_true(scenario.workload.jobs_per_day == 5 && scenario.workload.chip_hours == 44.3);
    assert_int_equal(scenario.workload.size_count, 2);
    assert_true(scenario.workload.sizes[0].job_share == 0.75 && scenario.workload.sizes[1].time_share == 0.5);
    assert_int_equal(simulation_check(&scenario, "s.yaml", &error), 0);
    sim_scenario_done(&scenario);
}

static void the_papers_mix(void **state)
{
    struct workload_model mix = {0};
    double jobs = 0, time = 0, small_jobs = 0, small_time = 0, large_time = 0;
    sim_scenario_paper_mix(&mix);
    for (uint32_t i = 0; i < mix.size_count; i++) {
        const struct job_size *size = &mix.sizes[i];
        jobs += size->job_share;
        time += size->time_share;
        small_jobs += size->chips <= 8 ? size->job_share : 0;
        small_time += size->chips <= 8 ? size->time_share : 0;
        large_time += size->chips >= 256 ? size->time_share : 0;
    }
    assert_true(fabs(jobs - 1) < 1e-9 && fabs(time - 1) < 1e-9);
    /* Fig. 6: over 40 % have one GPU, over 90 % at most 8 with under 10 % of the time; Table 1: 66 % of the
     * time is that of 256 and more; 83 % of 16,000 GPUs are at work. */
    assert_true(mix.sizes[0].job_share > 0.4 && small_jobs > 0.9 && small_time < 0.1);
    assert_true(fabs(large_time - 0.66) < 1e-9);
    assert_true(fabs(mix.jobs_per_day * mix.chip_hours / 24 / 16000 - 0.83) < 0.005);
}

static void mistakes(void **state)
{
    refuse("cluster: {machines: 0}\n",
           "s.yaml:1:21: cluster.machines: expected a whole number from 1 to 131072, got 0");
    refuse("workload: {}\n", "s.yaml:1:1: cluster: expected the number of machines, got nothing");
    refuse("cluster: {machines: 4, chip: 8}\n",
           "s.yaml:1:24: cluster.chip: unknown field; did you mean \"chips\"?");
    refuse(
        "cluster: {machines: 4}\nduration: soon\n",
        "s.yaml:2:11: duration: expected a duration such as 30s or 2h, from 60 to 3.16224e+08 seconds, got "
        "\"soon\"");
    refuse(
        "cluster: {machines: 4}\nfailures:\n- {kind: explosion, rate: 1}\n",
        "s.yaml:3:10: failures[0].kind: expected one of crash, fault, false-alarm, process, corruption, got "
        "\"explosion\"");
    refuse(
        "cluster: {machines: 4}\nfailures:\n- {kind: crash}\n",
        "s.yaml:3:3: failures[0].rate: expected failures in 1,000 days, or life in place of it, got nothing");
    refuse("cluster: {machines: 4}\nfailures:\n- {rate: 1, life: 5d}\n",
           "s.yaml:3:19: failures[0].life: rate and life exclude each other");
    refuse("cluster: {machines: 4}\nfailures:\n- {life: {weibull: {scale: 5d, shape: 0}}}\n",
           "s.yaml:3:39: failures[0].life.weibull.shape: expected a number from 0.05 to 20, got 0");
    refuse("cluster: {machines: 4}\nfailures:\n- {rate: 1, repair: {uniform: [2h, 1h]}}\n",
           "s.yaml:3:36: failures[0].repair.uniform[1]: expected a duration such as 30s or 2h, from 7200 to "
           "3e+09 seconds, got \"1h\"");
    refuse("cluster: {machines: 4}\nfailures:\n- {rate: 1, signal: XID 79}\n",
           "s.yaml:3:21: failures[0].signal: expected a code such as xid/79, got \"XID 79\"");
    refuse("cluster: {machines: 4}\nworkload:\n  jobs: [{chips: 64, runtime: 1h}]\n",
           "s.yaml:3:3: workload: jobs of 64 chips never fit 32");
    refuse("cluster: {machines: 4}\nworkload: {jobsPerDay: 3}\n",
           "s.yaml:2:11: workload.sizes: expected the sizes of jobs, or mix: rsc-1, got nothing");
    refuse("cluster: {machines: 4}\nworkload: {trace: {file: a.swf}}\n",
           "s.yaml:2:19: workload.trace.format: expected one of swf, sacct, phalanx, helios, acme, "
           "alibaba, philly, got nothing");
    refuse("cluster: {machines: 4}\nworkload: {command: [sh, 7]}\n",
           "s.yaml:2:26: workload.command[1]: expected a text, got 7");
    refuse("cluster: {machines: 4}\nfailures:\n- {kind: corruption, rate: 1}\n",
           "s.yaml:3:3: failures[0]: expected tests, validation or detection: nothing finds the corruption");
    refuse("cluster: {machines: 4}\nfailures:\n- {kind: corruption, rate: 1, tests: {coverage: 1}}\n",
           "s.yaml:3:38: failures[0].tests.interval: expected the time between two tests of a machine, got "
           "nothing");
    refuse("cluster: {machines: 4}\nfailures:\n"
           "- {kind: corruption, rate: 1, tests: {interval: 1d, coverage: 1.5}}\n",
           "s.yaml:3:63: failures[0].tests.coverage: expected a number from 0.001 to 1, got 1.5");
    refuse("cluster: {machines: 4}\nfailures:\n- {kind: crash, rate: 1, tests: {interval: 1d}}\n",
           "s.yaml:3:33: failures[0].tests: of kind: corruption alone");
    refuse("cluster: {machines: 4}\nfailures:\n- {kind: corruption, rate: 1, validation: often}\n",
           "s.yaml:3:43: failures[0].validation: expected a duration such as 30s or 2h, from 0 to 3e+09 "
           "seconds, got \"often\"");
    refuse("cluster: {machines: 4}\nworkload: {command: []}\n",
           "s.yaml:2:21: workload.command: expected a list of words, got a list");
    refuse("cluster: {machines: 4, spec: {settings: {lemons: {windowDays: 0}}}}\n",
           "s.yaml: cluster.spec.settings.lemons.windowDays: Invalid value: 0: must be from 1 to 28");
}

static void sweeps(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct study study;
    struct error error = {0};
    struct doc *doc = parse_yaml(&arena, "cluster: {machines: 8}\nfailures: [{rate: 3}]\n"
                                         "sweep: {checkpoint: [5m, 30m], 'failures[0].rate': [1, 2, 4]}\n");
    assert_int_equal(study_read(&study, doc, "s.yaml", &error), 0);
    assert_int_equal(study.points.len, 6);
    assert_true(str_is(study.fields[0], "workload.checkpoint.interval"));
    assert_true(study.points.items[0].scenario.workload.interval_s == 300);
    assert_true(study.points.items[5].scenario.workload.interval_s == 1800);
    assert_true(fabs(study.points.items[1].scenario.failures[0].life.a - 500 * 86400) < 1);
    assert_true(str_is(study.points.items[5].values[1], "4"));
    study_done(&study);
    refuse("cluster: {machines: 8}\nsweep: {machines: []}\n",
           "s.yaml:2:19: sweep.machines: expected a list of values, got a list");
    refuse("cluster: {machines: 8}\nsweep: {machines: [4, none]}\n",
           "s.yaml:2:23: cluster.machines: expected a whole number from 1 to 131072, got \"none\"");
    refuse("cluster: {machines: 8}\nsweep: {'failures[7].rate': [4]}\n",
           "s.yaml:2:29: sweep: \"failures[7].rate\" is not the path of a field");
}

/* Two points with two seeds in processes of their own give what this process would. */
static void processes(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct study study;
    struct error error = {0};
    struct simulation_outcome *alone = mem_alloc(sizeof *alone);
    struct doc *doc = parse_yaml(
        &arena, "duration: 1d\ncluster: {machines: 8}\nfailures: [{rate: 300}]\n"
                "workload: {jobsPerDay: 20, sizes: [{chips: 16, jobs: 1, time: 1}], chipHours: 60}\n"
                "sweep: {checkpoint: [5m, 3h]}\n");
    assert_int_equal(study_read(&study, doc, "s.yaml", &error), 0);
    struct study_options options = {.seed = 5, .seeds = 2, .jobs = 3};
    assert_int_equal(study_run(&study, &options, &error), 0);
    simulation_run(&(struct simulation_options){.scenario = &study.points.items[1].scenario, .seed = 6},
                   alone);
    assert_memory_equal(study.points.items[1].outcomes[1], alone, sizeof *alone);
    struct study_mean mean = study_figure(&study, 1, FIGURE_ETTR);
    double a = study_value(study.points.items[1].outcomes[0], FIGURE_ETTR);
    double b = study_value(study.points.items[1].outcomes[1], FIGURE_ETTR);
    assert_true(fabs(mean.mean - (a + b) / 2) < 1e-12);
    assert_true(fabs(mean.half - 12.706 * fabs(a - b) / 2) < 1e-9);
    mem_free(alone);
    study_done(&study);
}

/* Means of the distributions, from 20,000 draws. */
static void distributions(void **state)
{
    static const struct draw draws[] = {{DRAW_CONSTANT, 7, 0},
                                        {DRAW_UNIFORM, 2, 4},
                                        {DRAW_EXPONENTIAL, 5, 0},
                                        {DRAW_WEIBULL, 3, 0.7},
                                        {DRAW_LOGNORMAL, 2, 0.8}};
    struct rng rng;
    rng_seed(&rng, 11);
    for (size_t i = 0; i < sizeof draws / sizeof *draws; i++) {
        double sum = 0, mean = draw_mean(&draws[i]);
        for (int n = 0; n < 20000; n++)
            sum += draw_seconds(&draws[i], &rng);
        assert_true(fabs(sum / 20000 / mean - 1) < 0.04);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults), cmocka_unit_test(the_papers_mix), cmocka_unit_test(mistakes),
        cmocka_unit_test(sweeps),   cmocka_unit_test(processes),      cmocka_unit_test(distributions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
