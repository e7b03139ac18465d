/* Scheduling gates of pod templates: a gang waits for all of them, takes no machines, and holds nobody up. */
#include "core/job/story.h"

#define GATED(gates, chips)                                                                                  \
    "{name: w, replicas: 1, template: {spec: {parallelism: 2, completions: 2, backoffLimit: 6, "             \
    "template: {spec: {restartPolicy: Never, schedulingGates: [" gates                                       \
    "], containers: [{name: main, image: none, command: [run], "                                             \
    "resources: {limits: {google.com/tpu: " chips "}}}]}}}}}"

/* Writes metadata and gates of a Pod, as a PUT or a patch of it comes to the core; `gates` as JSON. */
static int keep(struct harness *h, const char *hostname, const char *gates)
{
    char name[128];
    struct arena arena ARENA_CLEANUP = {0};
    struct buf body = {0};
    struct task *task = harness_task(h, hostname);
    assert_non_null(task);
    snprintf(name, sizeof name, STR_FORMAT, STR_ARG(task->name));
    struct labels maps[] = {job_labels(task->job, task, &arena), job_annotations(task->job, task, &arena)};
    for (size_t m = 0; m < 2; m++) {
        buf_printf(&body, m ? "}, annotations: {" : "metadata: {labels: {");
        for (size_t i = 0; i < maps[m].len; i++)
            buf_printf(&body, "%s\"" STR_FORMAT "\": \"" STR_FORMAT "\"", i ? ", " : "",
                       STR_ARG(maps[m].items[i].key), STR_ARG(maps[m].items[i].value));
    }
    buf_printf(&body, "}}\nspec: {schedulingGates: %s}\n", gates);
    int code = harness_write_checked(h, OBJECT_POD, WRITE_METADATA, name, body.data);
    buf_done(&body);
    return code;
}

static const char *why(const struct task *task)
{
    static char text[256];
    snprintf(text, sizeof text, STR_FORMAT, STR_ARG(task->gang->why));
    return text;
}

static void a_gang_waits_for_the_gates_of_all_its_pods(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    int64_t idle = idle_chips(&h);
    struct jobset *jobset = harness_create(&h, JOBSET("a", "", GATED("{name: x/one}, {name: x/two}", "4")));
    struct task *first = harness_task(&h, "a-w-0-0"), *second = harness_task(&h, "a-w-0-1");
    assert_int_equal(first->state, TASK_PENDING);
    assert_int_equal(first->gate_count, 2);
    assert_string_equal(
        why(first), "Scheduling is blocked due to non-empty scheduling gates: x/one x/two (of 2 of 2 Pods)");
    assert_int_equal(idle_chips(&h), idle);
    struct jobset *other = harness_create(&h, JOBSET("b", "", RJOB("w", 1, "", 8, ""))); /* all machines */
    harness_run_all(&h);
    assert_int_equal(living(job_of(&h, "b-w-0")), 8);
    assert_true(jobset_is_running(other));
    assert_int_equal(delete_object(&h, OBJECT_JOBSET, STR("b")), 200);
    harness_run_all(&h);
    assert_int_equal(keep(&h, "a-w-0-0", "[]"), 200);
    assert_int_equal(first->gate_count, 0);
    assert_int_equal(first->state, TASK_PENDING);
    assert_string_equal(
        why(first), "Scheduling is blocked due to non-empty scheduling gates: x/one x/two (of 1 of 2 Pods)");
    assert_int_equal(keep(&h, "a-w-0-1", "[{\"name\":\"x/two\"}]"), 200);
    assert_string_equal(why(second),
                        "Scheduling is blocked due to non-empty scheduling gates: x/two (of 1 of 2 Pods)");
    assert_false(jobset_is_running(jobset));
    harness_check_replay(&h);
    assert_int_equal(keep(&h, "a-w-0-1", "[]"), 200);
    assert_int_equal(first->state, TASK_STARTING);
    assert_int_equal(second->state, TASK_STARTING);
    harness_run_all(&h);
    exits(&h, "a-w-0-0", 0);
    exits(&h, "a-w-0-1", 0);
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    harness_done(&h);
}

static void gates_only_go(void **state)
{
    static const struct {
        const char *gates;
        int code;
        const char *message;
    } cases[] = {
        {"[{\"name\":\"new\"}]", 422, "only deletion is allowed, but found new scheduling gate 'new'"},
        {"[{\"name\":\"one\"},{\"name\":\"new\"}]", 422, "found new scheduling gate 'new'"},
        {"7", 422, "spec.schedulingGates"},
        {"[7]", 422, "found new scheduling gate ''"},
        {"[{\"name\":\"one\"}]", 200, NULL},
        {"null", 200, NULL},
        {"[{\"name\":\"one\"}]", 422, "found new scheduling gate 'one'"},
    };
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, JOBSET("a", "", GATED("{name: one}", "1")));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int code = keep(&h, "a-w-0-1", cases[i].gates);
        if (code != cases[i].code || (cases[i].message && !strstr(h.last_message, cases[i].message)))
            fail_msg("%s: %d %s", cases[i].gates, code, h.last_message);
    }
    assert_int_equal(harness_task(&h, "a-w-0-0")->gate_count, 1);
    harness_done(&h);
}

/* As in Kubernetes, a Pod that takes the place of another has the gates of its template again. */
static void a_pod_made_anew_is_gated_again(void **state)
{
    struct harness h;
    harness_init(&h, 3, 4, 0);
    struct jobset *jobset =
        harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 3}, ", GATED("{name: one}", "1")));
    assert_int_equal(keep(&h, "a-w-0-0", "[]"), 200);
    assert_int_equal(keep(&h, "a-w-0-1", "[]"), 200);
    harness_run_all(&h);
    exits(&h, "a-w-0-0", 3); /* its Job tries again */
    harness_wait(&h, 60 * NS_PER_SECOND);
    harness_run_all(&h);
    struct task *again = harness_task(&h, "a-w-0-0");
    assert_int_equal(again->retry, 1);
    assert_int_equal(again->state, TASK_PENDING);
    assert_int_equal(again->gate_count, 1);
    assert_int_equal(harness_task(&h, "a-w-0-1")->state, TASK_RUNNING);
    assert_int_equal(keep(&h, "a-w-0-0", "[]"), 200);
    harness_run_all(&h);
    assert_int_equal(again->state, TASK_RUNNING);
    assert_int_equal(jobset->terminal_state, TERMINAL_NONE);
    assert_int_equal(delete_object(&h, OBJECT_JOB, STR("a-w-0")), 200); /* made anew */
    harness_run_all(&h);
    assert_int_equal(harness_task(&h, "a-w-0-1")->gate_count, 1);
    assert_int_equal(delete_object(&h, OBJECT_JOBSET, STR("a")), 200);
    assert_int_equal((int)core_jobs(h.core)->jobsets.len, 0); /* held Pods end at once */
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gang_waits_for_the_gates_of_all_its_pods),
        cmocka_unit_test(gates_only_go),
        cmocka_unit_test(a_pod_made_anew_is_gated_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
