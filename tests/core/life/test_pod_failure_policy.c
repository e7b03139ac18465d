/* podFailurePolicy: the first rule that matches decides; exit codes, disruptions, and their words. */
#include "core/job/story.h"

#define JOB(rules, fields)                                                                                   \
    JOBSET("a", "failurePolicy: {maxRestarts: 3}, ",                                                         \
           "{name: x, replicas: 1, template: {spec: {parallelism: 2, completions: 2, " fields                \
           "podFailurePolicy: {rules: [" rules "]}, " POD_OF("", "1") "}}}")
#define FAIL_3             "{action: FailJob, onExitCodes: {operator: In, values: [3]}}"
#define DISRUPTION(action) "{action: " action ", onPodConditions: [{type: DisruptionTarget}]}"

static void fail_job_by_exit_code(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, JOB(DISRUPTION("Ignore") ", " FAIL_3, "backoffLimit: 6, "));
    harness_run_all(&h);
    char name[64], message[256];
    snprintf(name, sizeof(name), STR_FORMAT, STR_ARG(harness_task(&h, "a-x-0-1")->name));
    exits(&h, "a-x-0-1", 3);
    snprintf(message, sizeof(message),
             "Container main for pod default/%s failed with exit code 3 matching FailJob rule at index 1",
             name);
    assert_note(&h, true, "PodFailurePolicy", message);
    assert_int_equal(jobset->restarts, 1);
    harness_done(&h);
}

static void fail_job_by_disruption(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, JOB(FAIL_3 ", " DISRUPTION("FailJob"), "backoffLimit: 6, "));
    harness_run_all(&h);
    struct task *task = harness_task(&h, "a-x-0-0");
    char message[256];
    snprintf(message, sizeof(message),
             "Pod default/" STR_FORMAT " has condition DisruptionTarget matching FailJob rule at index 1",
             STR_ARG(task->name));
    harness_lose(&h, core_cluster(h.core)->machines[task->machine].name.data);
    assert_note(&h, true, "PodFailurePolicy", message);
    assert_int_equal(jobset->restarts, 1);
    harness_done(&h);
}

static void ignored_failures_do_not_count(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(
        &h, JOB("{action: Ignore, onExitCodes: {operator: NotIn, values: [3]}}", "backoffLimit: 0, "));
    for (int i = 0; i < 4; i++) {
        harness_run_all(&h);
        exits(&h, "a-x-0-1", 7 + i);
        harness_wait(&h, 10 * NS_PER_SECOND);
    }
    assert_int_equal((int)job_of(&h, "a-x-0")->failed, 0);
    harness_run_all(&h);
    exits(&h, "a-x-0-1", 3); /* no rule matches: it counts */
    assert_int_equal(jobset->restarts, 1);
    harness_done(&h);
}

/* First match wins, whatever comes after it. */
static void order(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(
        &h, JOB("{action: Count, onExitCodes: {operator: In, values: [3]}}, " FAIL_3, "backoffLimit: 1, "));
    harness_run_all(&h);
    exits(&h, "a-x-0-1", 3);
    assert_int_equal((int)job_of(&h, "a-x-0")->failed, 1);
    assert_int_equal(jobset->restarts, 0);
    harness_done(&h);
}

static void fail_index(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, JOB("{action: FailIndex, onExitCodes: {operator: In, values: [3]}}",
                           "backoffLimitPerIndex: 5, "));
    harness_run_all(&h);
    exits(&h, "a-x-0-1", 3);
    harness_wait(&h, 600 * NS_PER_SECOND);
    assert_null(harness_task(&h, "a-x-0-1"));
    exits(&h, "a-x-0-0", 0);
    assert_note(&h, true, "FailedIndexes", "Job has failed indexes");
    harness_done(&h);
}

/* Several containers: the named one decides, else the first that failed so. */
static void of_one_container(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(
        &h, JOBSET("a", "failurePolicy: {maxRestarts: 3}, ",
                   "{name: x, template: {spec: {parallelism: 1, completions: 1, backoffLimit: 6, "
                   "podFailurePolicy: {rules: ["
                   "{action: FailJob, onExitCodes: {containerName: side, operator: In, values: [3]}}, "
                   "{action: FailJob, onExitCodes: {operator: NotIn, values: [1]}}]}, "
                   "template: {spec: {restartPolicy: Never, containers: [{name: main, image: i}, "
                   "{name: side, image: i, command: [x]}]}}}}}"));
    for (int which = 0; which < 2; which++) {
        harness_run_all(&h);
        struct task *task = harness_task(&h, "a-x-0-0");
        char name[64], message[256];
        snprintf(name, sizeof(name), STR_FORMAT, STR_ARG(task->name));
        struct container_status ends[2] = {
            {.name = STR("main"), .phase = CONTAINER_TERMINATED, .end = {.exit_code = which ? 1 : 3}},
            {.name = STR("side"), .phase = CONTAINER_TERMINATED, .end = {.exit_code = which ? 3 : 1}}};
        report_task(&h, "a-x-0-0",
                    (struct task_report){
                        .kind = REPORT_EXITED, .exit_code = 3, .containers = ends, .container_count = 2});
        snprintf(message, sizeof(message),
                 "Container %s for pod default/%s failed with exit code 3 matching FailJob rule at index %d",
                 which ? "side" : "main", name, which ? 0 : 1);
        assert_note(&h, true, "PodFailurePolicy", message);
    }
    assert_int_equal(jobset->restarts, 2);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fail_job_by_exit_code),
        cmocka_unit_test(fail_job_by_disruption),
        cmocka_unit_test(ignored_failures_do_not_count),
        cmocka_unit_test(order),
        cmocka_unit_test(fail_index),
        cmocka_unit_test(of_one_container),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
