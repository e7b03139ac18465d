/* Machines that fail again and again: what is counted, what is said and done about it, and when it is
 * forgotten. */
#include "../harness.h"

#include "base/rng.h"
#include "core/health/fault.h"
#include "core/lemon/lemon.h"

/* As harness_init's, with settings for lemons. */
static void set_lemons(struct harness *h, int machines, const char *lemons)
{
    char json[1024];
    snprintf(json, sizeof(json),
             "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"test\"},"
             "\"spec\":{\"settings\":{\"lemons\":%s},\"machineNames\":\"m-{n}\",\"addresses\":\"127.0.1.1\","
             "\"pods\":[{\"racks\":[{\"machines\":%d,\"chips\":4}]}]}}",
             lemons, machines);
    struct event event = {.kind = EVENT_CLUSTER};
    event.cluster.document = str_from(json);
    harness_step(h, &event);
    core_check_invariants(h->core);
}

static void submit(struct harness *h, const char *name, int tasks, const char *affinity)
{
    char yaml[1024];
    snprintf(yaml, sizeof(yaml),
             "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: %s}\nspec:\n"
             "  failurePolicy: {maxRestarts: 100}\n  replicatedJobs:\n  - name: w\n    template: {spec: "
             "{parallelism: %d, completions: %d, backoffLimit: 0, template: {spec: {restartPolicy: Never%s, "
             "containers: [{name: c, image: i, command: [run], resources: {limits: {google.com/tpu: 4}}}]}}}}"
             "\n",
             name, tasks, tasks, affinity);
    harness_create(h, yaml);
    harness_run_all(h);
}

/* The machine dies with all tasks on it, and comes back. */
static void strike(struct harness *h, const char *machine)
{
    harness_lose(h, machine);
    h->now_ns += NS_PER_SECOND;
    harness_hello(h, machine, NULL, 0);
    harness_run_all(h);
    core_check_invariants(h->core);
}

static const struct lemon *of(struct harness *h, const char *machine)
{
    return lemon_find(core_lemons(h->core), str_from(machine));
}

static int64_t value(struct harness *h, const char *machine, enum lemon_signal signal)
{
    return of(h, machine) ? lemon_value(of(h, machine), signal) : 0;
}

static bool is_lemon(struct harness *h, const char *machine)
{
    return of(h, machine) && of(h, machine)->is_lemon;
}

static int notes_of(struct harness *h, const char *reason)
{
    const struct note_ring *ring = core_notes(h->core);
    int count = 0;
    for (uint64_t slot = ring->first; slot < ring->next; slot++)
        count += str_is(note_at(ring, slot)->reason, reason);
    return count;
}

static void test_three_times_is_a_lemon(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 3, 4, 0);
    submit(&h, "train", 2, "");
    strike(&h, "m-1");
    assert_int_equal(value(&h, "m-1", LEMON_SIGNAL_MULTI_NODE_FAILURES), 1);
    assert_int_equal(value(&h, "m-1", LEMON_SIGNAL_OUTS), 1);
    assert_false(is_lemon(&h, "m-1"));
    harness_wait(&h, 3 * LEMON_DAY_NS);
    if (list_empty(&core_jobs(h.core)->machine_tasks[cluster_find(core_cluster(h.core), STR("m-1"))->id])) {
        strike(&h, "m-3"); /* makes the gang move to m-1 */
        assert_false(is_lemon(&h, "m-3"));
    }
    strike(&h, "m-1");
    assert_int_equal(value(&h, "m-1", LEMON_SIGNAL_MULTI_NODE_FAILURES), 2);
    assert_false(is_lemon(&h, "m-1"));
    if (list_empty(&core_jobs(h.core)->machine_tasks[cluster_find(core_cluster(h.core), STR("m-1"))->id]))
        strike(&h, "m-3");
    strike(&h, "m-1");
    assert_true(is_lemon(&h, "m-1"));
    assert_int_equal(notes_of(&h, "LemonDetected"), 1);
    struct buf why BUF_CLEANUP = {0};
    lemon_describe(of(&h, "m-1"), &core_cluster(h.core)->policy.lemons, &why);
    assert_string_equal(why.data, "multi_node_node_fails 3 (threshold 3)");
    assert_true(lemon_score(of(&h, "m-1"), &core_cluster(h.core)->policy.lemons) >= 100);
    assert_true(machine_schedulable(cluster_find(core_cluster(h.core), STR("m-1")))); /* shown, not removed */
    harness_check_replay(&h);
    harness_wait(&h, 28 * LEMON_DAY_NS); /* the first of them is forgotten */
    assert_false(is_lemon(&h, "m-1"));
    assert_int_equal(notes_of(&h, "LemonCleared"), 1);
    harness_wait(&h, LEMON_DAY_NS);
    assert_null(of(&h, "m-1")); /* and nothing is kept of it */
    harness_done(&h);
}

static void say(struct harness *h, const char *machine, const char *code)
{
    struct signal signal =
        signal_now(str_from(code), SIGNAL_ONCE, SEVERITY_NOTICE, STR("on purpose"), h->now_ns);
    struct event event = {.kind = EVENT_REPORTS};
    event.reports.machine = str_from(machine);
    event.reports.reports = (struct reports){.number = 1, .signals = &signal, .signal_count = 1};
    harness_step(h, &event);
}

/* Acts of people say nothing about a machine: neither what they break on purpose nor orderly stops.
 * What happens a while after that does. */
static void test_on_purpose_does_not_count(void **state)
{
    static const char *const codes[] = {"injected/kill", "injected/network", "agent/stop"};
    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        struct harness h;
        harness_init(&h, 1, 4, 0);
        submit(&h, "train", 1, "");
        for (int times = 0; times < 6; times++) {
            say(&h, "m-1", codes[i]);
            say(&h, "m-1", "xid/79");
            strike(&h, "m-1");
            harness_wait(&h, 3600 * NS_PER_SECOND);
        }
        for (int s = LEMON_SIGNAL_XIDS; s < LEMON_SIGNALS; s++)
            assert_int_equal(value(&h, "m-1", (enum lemon_signal)s), 0);
        harness_done(&h);
        harness_init(&h, 1, 4, 0);
        say(&h, "m-1", codes[i]);
        harness_wait(&h, ON_PURPOSE_NS + NS_PER_SECOND);
        strike(&h, "m-1");
        assert_int_equal(value(&h, "m-1", LEMON_SIGNAL_OUTS), 1);
        harness_done(&h);
    }
}

static void test_removed_and_returned(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 4, 4, 0);
    set_lemons(&h, 4, "{\"remove\":true,\"windowDays\":7,\"thresholds\":{\"multiNodeNodeFails\":1}}");
    submit(&h, "train", 2, "");
    machine_id first = harness_task(&h, "train-w-0-0")->machine;
    const struct machine *machine = &core_cluster(h.core)->machines[first];
    strike(&h, machine->name.data);
    machine = &core_cluster(h.core)->machines[first];
    assert_true(is_lemon(&h, machine->name.data));
    assert_true(isolation_is_out(machine->isolation));
    const struct fault *fault = fault_of_machine(core_health(h.core), machine->name);
    assert_non_null(fault);
    assert_true(str_is(fault->code, LEMON_FAULT));
    assert_non_null(strstr(fault->evidence.data, "multi_node_node_fails 1 (threshold 1)"));
    assert_int_equal(fault->job_count, 0); /* it explains the end of no job */
    harness_check_replay(&h);
    assert_int_equal(value(&h, machine->name.data, LEMON_SIGNAL_OUTS), 1); /* of the loss, not of the drain */
    harness_wait(&h, 8 * LEMON_DAY_NS);
    assert_int_equal(core_cluster(h.core)->machines[first].isolation, ISOLATION_HEALTHY);
    harness_done(&h);
}

static void test_rate_of_those_alone(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 1, 4, 0);
    set_lemons(&h, 1,
               "{\"thresholds\":{\"singleNodeNodeFailureRatePercent\":60,\"outCount\":0,"
               "\"singleNodeNodeFails\":0}}");
    submit(&h, "a", 1, "");
    strike(&h, "m-1");                                                /* the first run of two */
    assert_int_equal(value(&h, "m-1", LEMON_SIGNAL_FAILURE_RATE), 0); /* one has no rate */
    strike(&h, "m-1");
    assert_int_equal(value(&h, "m-1", LEMON_SIGNAL_SINGLE_NODE_FAILURES), 2);
    assert_int_equal(value(&h, "m-1", LEMON_SIGNAL_MULTI_NODE_FAILURES), 0);
    assert_int_equal(value(&h, "m-1", LEMON_SIGNAL_FAILURE_RATE), 66);
    assert_true(is_lemon(&h, "m-1"));
    harness_exit(&h, harness_task(&h, "a-w-0-0"), 0);
    for (int i = 0; i < 3; i++) {
        char name[16], host[32];
        snprintf(name, sizeof(name), "j%d", i);
        snprintf(host, sizeof(host), "%s-w-0-0", name);
        submit(&h, name, 1, "");
        harness_exit(&h, harness_task(&h, host), 0);
    }
    assert_int_equal(value(&h, "m-1", LEMON_SIGNAL_FAILURE_RATE), 33);
    harness_done(&h);
}

/* Users' word adds to the score and makes no lemon. */
static void test_excluded_by_name(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 3, 4, 0);
    for (int i = 0; i < 7; i++) {
        char name[16];
        snprintf(name, sizeof(name), "j%d", i);
        submit(&h, name, 1,
               ", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
               "{nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: NotIn, "
               "values: [m-2, nobody]}]}]}}}");
    }
    assert_int_equal(value(&h, "m-2", LEMON_SIGNAL_EXCLUSIONS), 7);
    assert_false(is_lemon(&h, "m-2"));
    assert_int_equal(lemon_score(of(&h, "m-2"), &core_cluster(h.core)->policy.lemons), 140);
    harness_done(&h);
}

static void test_errors_of_chips(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 2, 4, 0);
    static const char *const codes[] = {"xid/13", "xid/94", "edac/ce", "sxid/12"};
    for (uint64_t i = 0; i < 4; i++) {
        struct signal signal = {.code = str_from(codes[i]),
                                .assertion = SIGNAL_ONCE,
                                .count = 9,
                                .severity = SEVERITY_MINOR,
                                .chip = 1,
                                .first_ns = 1,
                                .last_ns = 2};
        struct event event = {.kind = EVENT_REPORTS};
        event.reports.machine = STR("m-1");
        event.reports.reports = (struct reports){.number = i + 1, .signals = &signal, .signal_count = 1};
        harness_step(&h, &event);
    }
    assert_int_equal(value(&h, "m-1", LEMON_SIGNAL_XIDS), 2); /* an application caused the first */
    harness_done(&h);
}

/* Against a list of all that happened. */
static void test_walk(void **state)
{
    (void)state;
    enum { MACHINES = 5, EVENTS = 400 };
    struct harness h;
    struct rng rng;
    int64_t days[EVENTS];
    int who[EVENTS];
    rng_seed(&rng, 7);
    harness_init(&h, MACHINES, 4, 0);
    set_lemons(&h, MACHINES, "{\"windowDays\":5,\"thresholds\":{\"outCount\":4}}");
    for (int i = 0; i < EVENTS; i++) {
        harness_wait(&h, (int64_t)rng_below(&rng, 20) * 3600 * NS_PER_SECOND);
        who[i] = (int)rng_below(&rng, MACHINES);
        days[i] = h.now_ns / LEMON_DAY_NS;
        strike(&h, core_cluster(h.core)->machines[who[i]].name.data);
        harness_wait(&h, 0);
        int64_t today = h.now_ns / LEMON_DAY_NS;
        for (int m = 0; m < MACHINES; m++) {
            int expected = 0;
            for (int k = 0; k <= i; k++)
                expected += who[k] == m && days[k] > today - 5;
            const char *name = core_cluster(h.core)->machines[m].name.data;
            assert_int_equal(value(&h, name, LEMON_SIGNAL_OUTS), expected);
            assert_int_equal(is_lemon(&h, name), expected >= 4);
        }
    }
    harness_done(&h);
}

/* Removal is switched on when lemons are known already. */
static void test_removed_later(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 3, 4, 0);
    set_lemons(&h, 3, "{\"thresholds\":{\"outCount\":1}}");
    strike(&h, "m-2");
    assert_true(is_lemon(&h, "m-2"));
    assert_null(fault_of_machine(core_health(h.core), STR("m-2")));
    set_lemons(&h, 3, "{\"thresholds\":{\"outCount\":1},\"remove\":true}");
    assert_true(isolation_is_out(cluster_find(core_cluster(h.core), STR("m-2"))->isolation));
    const struct fault *fault = fault_of_machine(core_health(h.core), STR("m-2"));
    uint64_t count = fault->count;
    set_lemons(&h, 3, "{\"thresholds\":{\"outCount\":1},\"remove\":true,\"windowDays\":20}");
    assert_int_equal(fault_of_machine(core_health(h.core), STR("m-2"))->count, count); /* once is enough */
    harness_done(&h);
}

static void test_settings_are_checked(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 2, 4, 0);
    set_lemons(&h, 2, "{\"windowDays\":29}"); /* refused as a whole: the old file holds */
    assert_int_equal(core_cluster(h.core)->policy.lemons.window_days, 28);
    set_lemons(&h, 2, "{\"windowDays\":14,\"thresholds\":{\"tickets\":1}}");
    assert_int_equal(core_cluster(h.core)->policy.lemons.window_days, 14);
    assert_int_equal(core_cluster(h.core)->policy.lemons.thresholds[LEMON_SIGNAL_TICKETS], 1);
    assert_int_equal(core_cluster(h.core)->policy.lemons.thresholds[LEMON_SIGNAL_MULTI_NODE_FAILURES], 3);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_times_is_a_lemon),
        cmocka_unit_test(test_on_purpose_does_not_count),
        cmocka_unit_test(test_removed_and_returned),
        cmocka_unit_test(test_rate_of_those_alone),
        cmocka_unit_test(test_excluded_by_name),
        cmocka_unit_test(test_errors_of_chips),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_settings_are_checked),
        cmocka_unit_test(test_removed_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
