/* A gang's reservation has all that the gang requests: cpu and memory as well as chips. */
#include "queues.h"

#define CPU_QUEUE                                                                                            \
    FLAVOR("any")                                                                                            \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: team}\nspec:\n"                \
    "  namespaceSelector: {}\n  preemption: {withinClusterQueue: LowerPriority}\n  resourceGroups:\n"        \
    "  - coveredResources: [cpu]\n    flavors: [{name: any, resources: [{name: cpu, nominalQuota: 1k}]}]\n"  \
    "---\n" LOCAL_QUEUE("q", "team") "apiVersion: kueue.x-k8s.io/v1beta2\nkind: "                            \
                                     "WorkloadPriorityClass\nmetadata: {name: high}\nvalue: 9\n"

/* Machines of 8 cpu. */
static void setup(struct harness *h, int machines)
{
    harness_init(h, machines, 4, 0);
    set_queues(h, machines, 4, "{\"minimumRunTime\":\"0s\"},\"cpu\":\"8\"");
    must_apply(h, CPU_QUEUE);
}

/* Tasks without chips, one replicated job of `tasks` for each of `jobs`. */
static void make(struct harness *h, const char *name, const char *labels, const char *more, int jobs,
                 int tasks, int cpu)
{
    struct buf yaml = {0};
    buf_printf(
        &yaml,
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: %s, labels: {%s}}\nspec:\n"
        "  failurePolicy: {maxRestarts: 3}\n%s  replicatedJobs:\n",
        name, labels, more);
    for (int j = 0; j < jobs; j++)
        buf_printf(
            &yaml,
            "  - {name: w%d, template: {spec: {parallelism: %d, completions: %d, template: {spec: {"
            "restartPolicy: Never, containers: [{name: c, image: i, command: [run], resources: {requests: "
            "{cpu: %d}}}]}}}}}\n",
            j, tasks, tasks, cpu);
    must_apply(h, yaml.data);
    buf_done(&yaml);
}

#define QUEUED "kueue.x-k8s.io/queue-name: q"
#define URGENT QUEUED ", kueue.x-k8s.io/priority-class: high"

#define A_POD(more)                                                                                          \
    "template: {spec: {restartPolicy: Never, " more "containers: [{name: c, image: i, command: [run], "      \
    "resources: {requests: {cpu: 8}}}]}}"
#define ONE_POD  A_POD("")
#define HIGH_POD A_POD("priorityClassName: high, ")

static uint8_t state_of_task(struct harness *h, const char *hostname)
{
    const struct task *task = harness_task(h, hostname);
    return task ? task->state : TASK_STATES;
}

/* The first victim has ended, the second has not: what the first has left is nobody else's. */
static void test_freed_cpu_is_the_preemptors(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, 2);
    make(&h, "a", QUEUED, "", 1, 1, 8);
    h.now_ns += NS_PER_SECOND;
    make(&h, "b", QUEUED, "", 1, 1, 8);
    harness_run_all(&h);
    make(&h, "urgent", URGENT, "", 1, 2, 8);
    assert_state(&h, "a", "leaving");
    assert_state(&h, "b", "leaving");
    harness_exit(&h, harness_task(&h, "a-w0-0-0"), 143);
    make(&h, "thief", "", "", 1, 1, 4);
    assert_int_equal(state_of_task(&h, "thief-w0-0-0"), TASK_PENDING);
    assert_non_null(strstr(harness_jobset(&h, "thief")->gangs.items[0]->why.data, "1 reserved for others"));
    assert_int_equal(harness_jobset(&h, "urgent")->grant.reserved_count, 2);
    harness_check_replay(&h);
    harness_run_all(&h);
    assert_state(&h, "urgent", "admitted");
    assert_int_equal(harness_jobset(&h, "urgent")->grant.reserved_count, 0);
    harness_done(&h);
}

/* A victim has 4 of 8 cpu and its preemptor wants 6: the other 2 are free for anybody meanwhile. */
static void test_room_of_victims_counts_once(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, 1);
    make(&h, "a", QUEUED, "", 1, 1, 4);
    harness_run_all(&h);
    make(&h, "urgent", URGENT, "", 1, 1, 6);
    assert_state(&h, "a", "leaving");
    make(&h, "large", "", "", 1, 1, 3);
    make(&h, "small", "", "", 1, 1, 2);
    assert_int_equal(state_of_task(&h, "large-w0-0-0"), TASK_PENDING);
    assert_int_not_equal(state_of_task(&h, "small-w0-0-0"), TASK_PENDING);
    harness_run_all(&h);
    assert_state(&h, "urgent", "admitted");
    assert_int_equal(state_of_task(&h, "large-w0-0-0"), TASK_PENDING);
    harness_done(&h);
}

/* Replicated jobs whose turn comes later have no chips, and find their cpu. */
static void test_later_ones_keep_their_cpu(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, 2);
    make(&h, "a", QUEUED, "  startupPolicy: {startupPolicyOrder: InOrder}\n", 2, 1, 8);
    assert_state(&h, "a", "admitted");
    assert_int_equal(harness_jobset(&h, "a")->grant.reserved_count, 1);
    make(&h, "thief", "", "", 1, 1, 4);
    assert_int_equal(state_of_task(&h, "thief-w0-0-0"), TASK_PENDING);
    harness_run_all(&h);
    assert_int_equal(state_of_task(&h, "a-w1-0-0"), TASK_RUNNING);
    assert_int_equal(harness_jobset(&h, "a")->grant.reserved_count, 0);
    harness_done(&h);
}

/* Gangs of a JobSet that has a reservation are placed before all others, also when a machine returns: the
 * queue's head, which has waited for the whole backfill window, does not hold them back. */
static void test_head_of_the_queue_does_not_hold_it_back(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, 3);
    must_apply(&h, "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, labels: {" QUEUED
                   "}}\nspec:\n  failurePolicy: {maxRestarts: 3}\n"
                   "  startupPolicy: {startupPolicyOrder: InOrder}\n  replicatedJobs:\n"
                   "  - {name: w0, template: {spec: {parallelism: 2, completions: 2, " ONE_POD "}}}\n"
                   "  - {name: w1, template: {spec: {" ONE_POD "}}}\n");
    assert_int_equal(harness_jobset(&h, "a")->grant.reserved_count, 1);
    must_apply(&h, "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: head}\nspec:\n"
                   "  replicatedJobs: [{name: w0, template: {spec: {parallelism: 3, completions: 3, " HIGH_POD
                   "}}}]\n");
    harness_wait(&h, 2 * core_cluster(h.core)->policy.backfill_window_ns);
    harness_lose(&h, "m-1"); /* its rank goes where room is kept for the second replicated job */
    harness_lose(&h, "m-2");
    assert_int_equal(state_of_task(&h, "a-w0-0-0"), TASK_STARTING);
    assert_int_equal(state_of_task(&h, "a-w0-0-1"), TASK_PENDING);
    assert_int_equal(harness_jobset(&h, "a")->grant.reserved_count, 1);
    harness_hello(&h, "m-1", NULL, 0);
    assert_int_equal(state_of_task(&h, "a-w0-0-1"), TASK_STARTING);
    assert_int_equal(state_of_task(&h, "head-w0-0-0"), TASK_PENDING);
    harness_check_replay(&h);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_freed_cpu_is_the_preemptors),
        cmocka_unit_test(test_room_of_victims_counts_once),
        cmocka_unit_test(test_later_ones_keep_their_cpu),
        cmocka_unit_test(test_head_of_the_queue_does_not_hold_it_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
