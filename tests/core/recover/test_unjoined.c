/* Processes that run and do not join, though their peers have: whose fault that is, and what is done. */
#include "core/job/story.h"

#include "core/health/attribute.h"

#define SECOND NS_PER_SECOND
#define TRAIN                                                                                                \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a}\nspec: {failurePolicy: "        \
    "{maxRestarts: 3}, replicatedJobs: [{name: w, replicas: 1, template: {spec: {parallelism: 3, "           \
    "completions: 3, backoffLimit: 0, " POD_OF("", "4") "}}}]}\n"

static void joins(struct harness *h, const char *hostname)
{
    struct task *task = harness_task(h, hostname);
    struct task_report report = {
        .kind = REPORT_JOINED, .task = task->uid, .attempt_plus_1 = (uint32_t)task->attempt + 1};
    harness_report(h, &report, task->machine);
    core_check_invariants(h->core);
}

static struct jobset *begin(struct harness *h)
{
    harness_init(h, 20, 4, 0);
    struct jobset *jobset = harness_create(h, TRAIN);
    harness_run_all(h);
    return jobset;
}

static const struct machine *place_of(const struct harness *h, const char *hostname)
{
    return &core_cluster(h->core)->machines[harness_task((struct harness *)h, hostname)->machine];
}

static void assert_blamed(const struct harness *h, struct str machine)
{
    const struct fault *fault = fault_of_machine(core_health(h->core), machine);
    assert_non_null(fault);
    assert_true(str_is(fault->code, UNJOINED_FAULT));
    assert_true(isolation_is_out(cluster_find(core_cluster(h->core), machine)->isolation));
}

static void assert_cause(const struct jobset *jobset, const char *begins)
{
    struct buf text BUF_CLEANUP = {0};
    struct attribution found;
    const struct restart_record *record = &jobset->history.records[jobset->history.record_count - 1];
    attribute(&record->faults, &record->signatures, str_from(record->machine), record->fault_ns, &found);
    attribution_cause(&found, &text);
    if (strncmp(text.data, begins, strlen(begins)) != 0)
        fail_msg("%s", text.data);
}

static void the_machine_is_replaced(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h);
    struct str bad = place_of(&h, "a-w-0-1")->name;
    joins(&h, "a-w-0-0");
    harness_wait(&h, 40 * SECOND);
    joins(&h, "a-w-0-2"); /* the limit counts from here */
    harness_wait(&h, 59 * SECOND);
    assert_null(fault_of_machine(core_health(h.core), bad));
    harness_wait(&h, 2 * SECOND);
    assert_blamed(&h, bad);
    assert_int_equal(notes(&h, "NotJoined"), 1);
    harness_run_all(&h);
    assert_int_equal(jobset->attempt, 1);
    assert_false(str_equal(place_of(&h, "a-w-0-1")->name, bad));
    assert_cause(jobset, UNJOINED_FAULT);
    harness_done(&h);
}

static void the_limit_is_a_setting(void **state)
{
    struct harness h;
    struct event cluster = {.kind = EVENT_CLUSTER};
    cluster.cluster.document =
        STR("{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"test\"},"
            "\"spec\":{\"settings\":{\"checkpointDir\":\"/ckpt\",\"hangs\":{\"join\":\"5m\"}},"
            "\"machineNames\":\"m-{n}\","
            "\"addresses\":\"127.0.1.1\",\"pods\":[{\"racks\":[{\"machines\":20,\"chips\":4}]}]}}");
    begin(&h);
    harness_step(&h, &cluster);
    struct str bad = place_of(&h, "a-w-0-1")->name;
    joins(&h, "a-w-0-0");
    joins(&h, "a-w-0-2");
    harness_wait(&h, 299 * SECOND);
    assert_null(fault_of_machine(core_health(h.core), bad));
    harness_wait(&h, 2 * SECOND);
    assert_blamed(&h, bad);
    harness_done(&h);
}

/* Rank 0 gives up waiting and exits: it is not the one to blame. */
static void nor_is_the_rank_that_gives_up(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h);
    struct str bad = place_of(&h, "a-w-0-1")->name, good = place_of(&h, "a-w-0-0")->name;
    joins(&h, "a-w-0-0");
    joins(&h, "a-w-0-2");
    harness_wait(&h, 30 * SECOND);
    exits(&h, "a-w-0-0", 1);
    assert_blamed(&h, bad);
    assert_null(fault_of_machine(core_health(h.core), good));
    harness_run_all(&h);
    assert_false(str_equal(place_of(&h, "a-w-0-1")->name, bad));
    assert_cause(jobset, UNJOINED_FAULT);
    harness_done(&h);
}

static void who_never_joins_is_not_waited_for(void **state)
{
    struct harness h;
    begin(&h); /* nobody does */
    harness_wait(&h, 3600 * SECOND);
    assert_int_equal(notes(&h, "NotJoined"), 0);
    harness_done(&h);

    begin(&h); /* one of three: a slow start */
    joins(&h, "a-w-0-0");
    harness_wait(&h, 300 * SECOND);
    assert_int_equal(notes(&h, "NotJoined"), 0);
    joins(&h, "a-w-0-1");
    joins(&h, "a-w-0-2");
    harness_wait(&h, 300 * SECOND);
    assert_int_equal(notes(&h, "NotJoined"), 0);
    exits(&h, "a-w-0-0", 1); /* they had all met */
    assert_int_equal(notes(&h, "NotJoined"), 0);
    harness_done(&h);
}

/* The same on the next machine is the program. */
static void a_second_machine_is_not_blamed(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h);
    for (int attempt = 0; attempt < 2; attempt++) {
        struct str place = place_of(&h, "a-w-0-1")->name;
        joins(&h, "a-w-0-0");
        joins(&h, "a-w-0-2");
        harness_wait(&h, 61 * SECOND);
        assert_int_equal(notes(&h, "NotJoined"), attempt + 1);
        if (attempt == 0)
            assert_blamed(&h, place);
        else
            assert_null(fault_of_machine(core_health(h.core), place));
        harness_run_all(&h);
    }
    assert_int_equal(jobset->attempt, 1);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_machine_is_replaced),        cmocka_unit_test(the_limit_is_a_setting),
        cmocka_unit_test(nor_is_the_rank_that_gives_up),  cmocka_unit_test(who_never_joins_is_not_waited_for),
        cmocka_unit_test(a_second_machine_is_not_blamed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
