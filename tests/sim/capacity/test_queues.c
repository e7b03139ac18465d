/* Queues and priorities of a scenario: who waits for quota, who is preempted, what a trace's names become. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "doc/yaml.h"
#include "sim/capacity/capacity.h"

#define TIMES "launch: 1s, load: 9s, stop: 1s, checkpoint: {interval: 10m, write: 0s, fromChips: 1}"
#define TWO                                                                                                  \
    "duration: 1d\ncluster: {machines: 4, chips: 8, spec: {queues: {minimumRunTime: 0s}}}\nqueues:\n"        \
    "- {name: small, match: [gpu, 3], quota: 8}\n"                                                           \
    "- {name: rest, match: ['*'], quota: 24, priority: 5, spec: {preemption: {withinClusterQueue: "          \
    "LowerPriority}}}\n"

static int read_scenario(struct arena *arena, const char *yaml, struct sim_scenario *ret, struct error *error)
{
    struct doc_list docs = {0};
    assert_int_equal(yaml_parse_all(arena, str_from(yaml), &docs, error), 0);
    int rc = sim_scenario_read(ret, docs.items[0], "s.yaml", error);
    return rc == 0 ? simulation_check(ret, "s.yaml", error) : rc;
}

static void refuse(const char *yaml, const char *why)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct sim_scenario scenario = {0};
    struct error error = {0};
    assert_int_equal(read_scenario(&arena, yaml, &scenario, &error), ERROR_INVALID);
    assert_string_equal(error.text, why);
    sim_scenario_done(&scenario);
}

/* A scenario with the jobs of a trace, where there is one. */
static struct simulation_outcome *run(const char *yaml, enum trace_format format, const char *jobs)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct sim_scenario scenario = {0};
    struct simulation_outcome *outcome = mem_alloc(sizeof *outcome);
    struct error error = {0};
    size_t left_out = 0;
    if (read_scenario(&arena, yaml, &scenario, &error) < 0)
        fail_msg("%s", error.text);
    if (jobs) {
        struct trace trace;
        if (trace_read(&trace, format, str_from(jobs), "t", &scenario.trace.terms, &error) < 0 ||
            sim_scenario_take_trace(&scenario, &trace, "t", &left_out, &error) < 0)
            fail_msg("%s", error.text);
        trace_done(&trace);
    }
    assert_int_equal(left_out, 0);
    simulation_run(&(struct simulation_options){.scenario = &scenario, .seed = 1}, outcome);
    assert_int_equal(outcome->refused, 0);
    sim_scenario_done(&scenario);
    return outcome;
}

/* Jobs that a stream makes go through the queue that it names. */
static void a_stream_has_a_queue(void **state)
{
    struct simulation_outcome *outcome =
        run(TWO "workload: {" TIMES ", mix: none, jobsPerDay: 40, chipHours: 4, "
                "sizes: [{chips: 8, jobs: 1, time: 1}], queue: small, priority: 7}\n",
            TRACE_SWF, NULL);
    assert_true(outcome->queues[1].all.jobs > 5);
    assert_int_equal(outcome->queues[0].all.jobs, 0);
    mem_free(outcome);
}

/* Three jobs of an hour share a quota for one, though machines are free. Each holds it for 3,610 s: a second
 * to launch, nine to load, and its work; so they wait 1, 3,611 and 7,221 s. */
static void a_quota_is_waited_for(void **state)
{
    struct simulation_outcome *outcome =
        run(TWO "workload: {" TIMES ", jobs: [{chips: 8, runtime: 1h, count: 3, queue: small}, "
                "{chips: 16, runtime: 1h, submit: 1m, queue: rest}, {chips: 8, runtime: 2h}]}\n",
            TRACE_SWF, NULL);
    const struct simulation_queue *none = &outcome->queues[0], *small = &outcome->queues[1],
                                  *rest = &outcome->queues[2];
    assert_true(none->all.jobs == 1 && small->all.jobs == 3 && rest->all.jobs == 1);
    assert_int_equal(small->all.fates[FATE_COMPLETED], 3);
    assert_true(fabs(small->wait_most_s - 7221) < 0.01);
    assert_true(fabs(small->all.wait_s - (1 + 3611 + 7221)) < 0.01);
    assert_true(fabs(rest->wait_most_s - 1) < 0.01 && fabs(none->all.wait_s - 1) < 0.01);
    assert_int_equal(outcome->preempted, 0);
    mem_free(outcome);
}

/* The newcomer's priority is higher: it takes the quota of the one that runs, which goes on behind it. */
static void priority_preempts(void **state)
{
    const char *yaml = TWO "workload: {" TIMES ", jobs: [{chips: 24, runtime: 2h, queue: rest}, "
                           "{chips: 24, runtime: 1h, submit: 1h, queue: rest, priority: %s}]}\n";
    for (int turn = 0; turn < 2; turn++) {
        struct buf text BUF_CLEANUP = {0};
        buf_printf(&text, yaml, turn ? "6" : "5");
        struct simulation_outcome *outcome = run(text.data, TRACE_SWF, NULL);
        const struct simulation_queue *rest = &outcome->queues[2];
        assert_int_equal(rest->all.fates[FATE_COMPLETED], 2);
        assert_int_equal(rest->preempted, turn);
        assert_int_equal(rest->all.preemptions, turn);
        assert_int_equal(outcome->preempted, turn);
        assert_true(turn ? rest->wait_most_s < 60 : rest->wait_most_s > 3000);
        mem_free(outcome);
    }
}

/* Partitions are queues, and the QoS says the priority. */
static void a_trace_names_queues(void **state)
{
    const char *yaml = TWO "workload: {" TIMES ", trace: {file: jobs, format: sacct, queue: partition, "
                           "priorities: {high: 100, low: -7}}}\n";
    struct simulation_outcome *outcome =
        run(yaml, TRACE_SACCT,
            "JobID|Submit|ElapsedRaw|State|AllocTRES|Partition|QOS\n"
            "1|2025-03-01T12:00:00|7200|COMPLETED|gres/gpu=24|big|low\n"
            "2|2025-03-01T12:00:01|3600|COMPLETED|gres/gpu=8|gpu|low\n"
            "3|2025-03-01T12:30:00|600|COMPLETED|gres/gpu=24|big|high\n"
            "4|2025-03-01T12:30:01|600|COMPLETED|gres/gpu=24|other|normal\n");
    assert_int_equal(outcome->queues[1].all.jobs, 1);
    assert_int_equal(outcome->queues[2].all.jobs, 3);
    assert_int_equal(outcome->queues[2].preempted,
                     1); /* low by high; normal, 5 by its queue, is before low */
    assert_true(outcome->queues[2].wait_most_s < 700);
    assert_int_equal(outcome->queues[2].all.fates[FATE_COMPLETED], 3);
    mem_free(outcome);
}

/* SWF's queues are numbers. A number that no queue matches is a mistake, which names the place. */
static void numbers_are_names(void **state)
{
    const char *yaml = "cluster: {machines: 4, chips: 8}\nqueues:\n- {name: small, match: [3], quota: 8}\n"
                       "workload: {trace: {file: jobs, format: swf}}\n";
    struct simulation_outcome *outcome = run(yaml, TRACE_SWF,
                                             "1 0 0 60 8 -1 -1 8 60 -1 1 1 1 -1 3 -1 -1 -1\n"
                                             "2 0 0 60 8 -1 -1 8 60 -1 1 1 1 -1 -1 -1 -1 -1\n");
    assert_true(outcome->queues[0].all.jobs == 1 && outcome->queues[1].all.jobs == 1);
    mem_free(outcome);
    struct arena arena ARENA_CLEANUP = {0};
    struct sim_scenario scenario = {0};
    struct trace trace;
    struct error error = {0};
    size_t left_out;
    assert_int_equal(read_scenario(&arena, yaml, &scenario, &error), 0);
    assert_int_equal(trace_read(&trace, TRACE_SWF, STR("1 0 0 60 8 -1 -1 8 60 -1 1 1 1 -1 4 -1 -1 -1\n"), "t",
                                &scenario.trace.terms, &error),
                     0);
    assert_int_equal(sim_scenario_take_trace(&scenario, &trace, "t", &left_out, &error), ERROR_INVALID);
    assert_string_equal(
        error.text, "s.yaml:3:3: queues[0]: the trace has jobs of the queue \"4\", and no queue matches it; "
                    "name it, or \"*\", in a list `match`");
    trace_done(&trace);
    sim_scenario_done(&scenario);
}

/* A cluster's history has both. */
static void a_history_has_both(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct sim_scenario scenario = {0};
    struct history history;
    struct error error = {0};
    size_t left_out;
    assert_int_equal(history_read(&history,
                                  STR("phalanx-trace 1\nbegin 2026-01-01T00:00:00.000000Z\n"
                                      "machine a chips=8 rack=r\nmachine b chips=8 rack=r\n"
                                      "job 0 x ranks=1 chips=8 run=60 end=completed queue=gpu priority=9\n"
                                      "job 1 y ranks=1 chips=8 run=60 end=completed\nend 1000\n"),
                                  "h", &error),
                     0);
    assert_int_equal(read_scenario(&arena, TWO, &scenario, &error), 0);
    assert_int_equal(sim_scenario_take_history(&scenario, &history, "h", &left_out, &error), 0);
    assert_true(scenario.jobs.items[0].queue == 1 && scenario.jobs.items[0].priority == 9);
    assert_true(scenario.jobs.items[1].queue == 2 && scenario.jobs.items[1].priority == 5);
    assert_int_equal(scenario.priorities.len, 2);
    history_done(&history);
    sim_scenario_done(&scenario);
}

static void mistakes(void **state)
{
#define HEAD "cluster: {machines: 4}\nqueues:\n"
    refuse(HEAD "- {name: a}\n", "s.yaml:3:3: queues[0]: expected name and quota");
    refuse(HEAD "- {name: Team_A, quota: 8}\n", "s.yaml:3:10: queues[0].name: expected a name of at most 50 "
                                                "lower-case letters, digits and dashes, got "
                                                "\"Team_A\"");
    refuse(HEAD "- {name: a, quota: many}\n",
           "s.yaml:3:20: queues[0].quota: expected a whole number from 0 to 16777216, got \"many\"");
    refuse(HEAD "- {name: a, quota: 8, match: [x]}\n- {name: b, quota: 8, match: [z, x]}\n",
           "s.yaml:4:34: queues[1].match[1]: \"x\" is matched by queue a already");
    refuse(HEAD "- {name: a, quota: 8}\n- {name: a, quota: 8}\n",
           "s.yaml:4:10: queues[1].name: there is a queue of this name already");
    refuse(HEAD "- {name: a, quota: 8, spec: {queueingStrategy: Best}}\n",
           "s.yaml:3:3: queues[0]: ClusterQueue.kueue.x-k8s.io \"a\" is invalid: spec.queueingStrategy: "
           "Unsupported value: \"Best\": supported values: \"StrictFIFO\", \"BestEffortFIFO\"");
    refuse(HEAD "- {name: a, quota: 8}\nworkload: {jobs: [{chips: 8, runtime: 1h, queue: b}]}\n",
           "s.yaml:4:50: workload.jobs[0].queue: expected the name of one of the queues, got \"b\"");
    refuse("cluster: {machines: 4}\nworkload: {jobs: [{chips: 8, runtime: 1h, priority: 1.5}]}\n",
           "s.yaml:2:53: workload.jobs[0].priority: expected a whole number from -1000000000 to 1000000000, "
           "got 1.5");
    refuse("cluster: {machines: 4}\nworkload: {trace: {file: a, format: sacct, queue: color}}\n",
           "s.yaml:2:51: workload.trace.queue: expected one of queue, partition, qos, user, account, got "
           "\"color\"");
    refuse("cluster: {machines: 4}\nworkload: {trace: {file: a, format: sacct, priority: column, priorities: "
           "{high: 3}}}\n",
           "s.yaml:2:54: workload.trace.priority: the column excludes priorities by QoS");
    refuse("cluster: {machines: 4}\nworkload: {trace: {file: a, format: sacct, priorities: {high: most}}}\n",
           "s.yaml:2:63: workload.trace.priorities.high: expected a whole number from -1000000000 to "
           "1000000000, got "
           "\"most\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_has_a_queue),
        cmocka_unit_test(a_quota_is_waited_for),
        cmocka_unit_test(priority_preempts),
        cmocka_unit_test(a_trace_names_queues),
        cmocka_unit_test(numbers_are_names),
        cmocka_unit_test(a_history_has_both),
        cmocka_unit_test(mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
