/* Replicated jobs of an admitted JobSet that start later find their machines: they are kept for them. */
#include "queues.h"

#define RJOB(name, tasks)                                                                                    \
    "  - {name: " name ", template: {spec: {parallelism: " tasks ", completions: " tasks                     \
    ", backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, command: "  \
    "[run], resources: "                                                                                     \
    "{limits: {google.com/tpu: 4}}}]}}}}}\n"
#define ORDERED(name, labels)                                                                                \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: " name                             \
    ", namespace: default, labels: {kueue.x-k8s.io/queue-name: q" labels "}}\nspec:\n"                       \
    "  failurePolicy: {maxRestarts: 3}\n  startupPolicy: {startupPolicyOrder: InOrder}\n  replicatedJobs:\n"

static void setup(struct harness *h, const char *policy)
{
    char yaml[2048];
    harness_init(h, 4, 4, 0);
    set_queues(h, 4, 4, "{\"minimumRunTime\":\"0s\"}");
    snprintf(yaml, sizeof(yaml),
             FLAVOR("v5e") CLUSTER_QUEUE("team", "16", "  preemption: {withinClusterQueue: %s}\n")
                 LOCAL_QUEUE("q", "team") "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\n"
                                          "metadata: {name: high}\nvalue: 100\n",
             policy);
    must_apply(h, yaml);
}

static void plain(struct harness *h, const char *name, int tasks)
{
    char yaml[2048];
    snprintf(yaml, sizeof(yaml),
             "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: %s, namespace: default}\n"
             "spec:\n  replicatedJobs:\n  - {name: w, template: {spec: {parallelism: %d, completions: %d, "
             "template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, command: [run], "
             "resources: {limits: {google.com/tpu: 4}}}]}}}}}\n",
             name, tasks, tasks);
    must_apply(h, yaml);
}

static uint8_t state_of_task(struct harness *h, const char *hostname)
{
    const struct task *task = harness_task(h, hostname);
    return task ? task->state : TASK_STATES;
}

static void test_later_ones_find_their_machines(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, "Never");
    must_apply(&h, ORDERED("a", "") RJOB("first", "1") RJOB("second", "1") RJOB("third", "1"));
    assert_state(&h, "a", "admitted");
    assert_int_equal(state_of_task(&h, "a-first-0-0"), TASK_STARTING);
    assert_int_equal(harness_jobset(&h, "a")->grant.reserved_count, 2); /* a machine for each that follows */
    plain(&h, "b", 1);                                                  /* one machine is free */
    assert_int_equal(state_of_task(&h, "b-w-0-0"), TASK_STARTING);
    plain(&h, "c", 1); /* the others are not */
    assert_int_equal(state_of_task(&h, "c-w-0-0"), TASK_PENDING);
    assert_non_null(strstr(harness_jobset(&h, "c")->gangs.items[0]->why.data, "2 reserved for others"));
    harness_run_all(&h);
    assert_int_equal(state_of_task(&h, "a-second-0-0"), TASK_RUNNING);
    assert_int_equal(state_of_task(&h, "a-third-0-0"), TASK_RUNNING);
    assert_int_equal(harness_jobset(&h, "a")->grant.reserved_count, 0);
    finish_all(&h, "b", 1);
    assert_int_equal(state_of_task(&h, "c-w-0-0"), TASK_STARTING);
    harness_done(&h);
}

/* Resources kept for a victim's later jobs are room for its preemptor. */
static void test_a_victim_gives_what_was_kept(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, "LowerPriority");
    must_apply(&h, ORDERED("a", "") RJOB("first", "1") RJOB("second", "3"));
    assert_int_equal(harness_jobset(&h, "a")->grant.reserved_count, 3);
    submit(&h, "high", "q", 4, 4, "    kueue.x-k8s.io/priority-class: high\n");
    assert_state(&h, "a", "leaving");
    harness_run_all(&h);
    assert_state(&h, "high", "admitted");
    assert_state(&h, "a", "pending");
    assert_int_equal(harness_jobset(&h, "a")->grant.reserved_count, 0);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_later_ones_find_their_machines),
        cmocka_unit_test(test_a_victim_gives_what_was_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
