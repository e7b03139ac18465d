/* Corners in which JobSet's and Kubernetes' controllers decide in one way only (docs/conformance.md). */
#include "core/job/story.h"

#define NOTED(notes, fields, rjobs)                                                                          \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, annotations: {" notes           \
    "}}\nspec: {" fields "replicatedJobs: [" rjobs "]}\n"

/* One Job fails and one succeeds before anybody looks: the failure decides. */
static void failure_beats_success(void **state)
{
    struct harness h;
    harness_init(&h, 1, 4, 0);
    struct jobset *jobset = harness_create(&h, JOBSET("a", "successPolicy: {operator: Any}, ",
                                                      RJOB("x", 1, "", 1, "") "," RJOB("z", 1, "", 1, "")));
    harness_run_all(&h);
    const struct task *good = harness_task(&h, "a-x-0-0"), *bad = harness_task(&h, "a-z-0-0");
    struct task_report both[] = {{.kind = REPORT_EXITED, .task = good->uid},
                                 {.kind = REPORT_EXITED, .task = bad->uid, .exit_code = 1}};
    struct event event = {.kind = EVENT_REPORTS};
    event.reports.machine = core_cluster(h.core)->machines[0].name;
    event.reports.reports = (struct reports){.items = both, .count = 2};
    harness_step(&h, &event);
    assert_int_equal(jobset->terminal_state, TERMINAL_FAILED);
    assert_no_condition(jobset, CONDITION_COMPLETED);
    harness_done(&h);
}

#define WAITING(suspend)                                                                                     \
    NOTED("phalanx.dev/act-on-failure-target: 'false'",                                                      \
          "suspend: " suspend ", failurePolicy: {maxRestarts: 1}, ", RJOB("x", 1, "", 2, ""))

/* Two Jobs have failed when the JobSet looks: the one that failed first is named, and judged by the rules. */
static void the_earliest_failure_is_meant(void **state)
{
    struct harness h;
    harness_init(&h, 1, 4, 0);
    struct jobset *jobset =
        harness_create(&h, NOTED("phalanx.dev/act-on-failure-target: 'false'",
                                 "failurePolicy: {maxRestarts: 1}, ", RJOB("x", 2, "", 2, "")));
    harness_run_all(&h);
    exits(&h, "a-x-1-0", 1);
    harness_wait(&h, NS_PER_SECOND);
    exits(&h, "a-x-0-0", 1);
    assert_int_equal(jobset->restarts, 0);
    struct task_report both[] = {{.kind = REPORT_EXITED, .task = harness_task(&h, "a-x-0-1")->uid},
                                 {.kind = REPORT_EXITED, .task = harness_task(&h, "a-x-1-1")->uid}};
    struct event event = {.kind = EVENT_REPORTS};
    event.reports.machine = core_cluster(h.core)->machines[0].name;
    event.reports.reports = (struct reports){.items = both, .count = 2};
    harness_step(&h, &event);
    assert_int_equal(jobset->restarts, 1);
    assert_note(&h, true, "RestartJobSetFailurePolicyAction",
                "applying RestartJobSet failure policy action (first failed job: a-x-1)");
    harness_done(&h);
}

/* A Job that was failing when its JobSet was suspended has failed when its pods are gone. */
static void failures_count_while_suspended(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, WAITING("false"));
    harness_run_all(&h);
    exits(&h, "a-x-0-0", 1);
    assert_int_equal(job_of(&h, "a-x-0")->state, JOB_FAILING);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", WAITING("true")), 200);
    assert_int_equal(jobset->restarts, 0);
    harness_run_all(&h);
    assert_int_equal(jobset->restarts, 1);
    assert_int_equal(job_of(&h, "a-x-0")->state, JOB_SUSPENDED);
    assert_int_equal(job_of(&h, "a-x-0")->attempt, 1);
    harness_done(&h);
}

/* lastTransitionTime is that of the last change of the status, not of the words. */
static void a_condition_keeps_its_time(void **state)
{
    struct harness h;
    harness_init(&h, 1, 4, 0);
    struct jobset *jobset = harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 5}, ",
                                                      RJOB("x", 1, "", 1, "") "," RJOB("z", 1, "", 1, "")));
    harness_run_all(&h);
    exits(&h, "a-x-0-0", 1);
    const struct condition *restarting = &jobset->conditions[CONDITION_RESTARTING];
    int64_t since_ns = restarting->changed_ns;
    assert_true(since_ns == h.now_ns);
    harness_wait(&h, 20 * NS_PER_SECOND);
    report_task(&h, "a-z-0-0",
                (struct task_report){.kind = REPORT_START_FAILED, .message = STR("no such file")});
    assert_int_equal(jobset->restarts, 2);
    assert_non_null(strstr(restarting->message.data, "first failed job: a-z-0"));
    assert_true(restarting->status && restarting->changed_ns == since_ns);
    harness_done(&h);
}

/* active: it has pods, also such as wait for machines. */
static void waiting_pods_are_active(void **state)
{
    struct harness h;
    harness_init(&h, 1, 4, 0);
    struct jobset *jobset = harness_create(&h, JOBSET("a", "", RJOB("x", 2, "", 3, "")));
    assert_int_equal(jobset->rjob_status[0].active, 2);
    assert_int_equal(jobset->rjob_status[0].ready, 0);
    harness_done(&h);
}

static void single_restarts_without_limit(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(
        &h,
        JOBSET("a", "failurePolicy: {maxRestarts: 0, rules: [{action: RestartJobAndIgnoreMaxRestarts}]}, ",
               RJOB("x", 2, "", 1, "")));
    for (int i = 0; i < 3; i++) {
        harness_run_all(&h);
        exits(&h, "a-x-1-0", 1);
        harness_wait(&h, 30 * NS_PER_SECOND);
    }
    assert_int_equal(jobset->restarts, 0);
    assert_int_equal(jobset->job_attempts[1], 3);
    assert_int_equal(jobset->job_attempts_counted[1], 0);
    assert_int_equal(jobset->job_attempts[0], 0);
    assert_int_equal(notes(&h, "RestartJobAndIgnoreMaxRestartsFailurePolicyAction"), 3);
    harness_done(&h);
}

#define SET(suspend)                                                                                         \
    JOBSET("a", "suspend: " suspend ", failurePolicy: {maxRestarts: 3}, ", RJOB("x", 1, "", 1, ""))

/* Neither suspension nor resumption is a restart: the label restart-attempt stays. */
static void resuming_keeps_the_attempt(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, SET("false"));
    harness_run_all(&h);
    exits(&h, "a-x-0-0", 1);
    harness_run_all(&h);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", SET("true")), 200);
    harness_run_all(&h);
    assert_true(job_of(&h, "a-x-0")->start_ns == 0);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", SET("false")), 200);
    harness_run_all(&h);
    assert_int_equal(jobset->restarts, 1);
    assert_int_equal(job_of(&h, "a-x-0")->attempt, 1);
    assert_true(job_of(&h, "a-x-0")->start_ns == h.now_ns);
    harness_done(&h);
}

/* KEP-1282: a number for each stretch of running, by restart or resumption; each Pod has its own. */
static void executions_are_counted(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, SET("true"));
    assert_int_equal(jobset->executions, -1);
    harness_check_replay(&h);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", SET("false")), 200);
    harness_run_all(&h);
    assert_int_equal(jobset->executions, 0);
    exits(&h, "a-x-0-0", 1);
    harness_run_all(&h);
    assert_int_equal(jobset->executions, 1);
    assert_int_equal(harness_task(&h, "a-x-0-0")->execution, 1);
    const struct task *before = harness_task(&h, "a-x-0-0");
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", SET("true")), 200);
    assert_int_equal(jobset->executions, 1);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", SET("false")), 200);
    assert_int_equal(jobset->executions, 2);
    assert_int_equal(before->execution, 1); /* it still ends */
    harness_run_all(&h);
    const struct task *task = harness_task(&h, "a-x-0-0");
    struct arena arena = {0};
    struct labels notes = job_annotations(task->job, task, &arena);
    assert_true(str_is(labels_get(&notes, STR("jobset.sigs.k8s.io/execution-attempt"), STR("")), "2"));
    assert_int_equal(jobset->restarts, 1);
    harness_check_replay(&h);
    arena_done(&arena);
    harness_done(&h);
}

#define SIZED(n)                                                                                             \
    NOTED("phalanx.dev/elastic: 'true'", "",                                                                 \
          "{name: w, template: {spec: {parallelism: " #n ", completions: " #n ", " POD_OF("", "1") "}}}")

static bool is_allowed(struct harness *h, const char *yaml)
{
    struct arena arena = {0};
    struct buf json = {0};
    struct doc_list docs = {0};
    struct effects refusal = {0};
    assert_int_equal(yaml_parse_all(&arena, str_from(yaml), &docs, NULL), 0);
    json_write(&json, docs.items[0]);
    struct write_event write = {.verb = WRITE_REPLACE,
                                .object = OBJECT_JOBSET,
                                .namespace_ = STR("default"),
                                .name = STR("a"),
                                .body = buf_str(&json),
                                .grace_s = -1};
    bool allowed = core_check_write(h->core, &write, h->now_ns, &refusal, NULL);
    if (!allowed)
        snprintf(h->last_message, sizeof(h->last_message), STR_FORMAT,
                 STR_ARG(refusal.list.items[0].reply.message));
    vec_done(&refusal.list);
    buf_done(&json);
    arena_done(&arena);
    return allowed;
}

static void sizes_stay_when_it_has_finished(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, SIZED(1));
    assert_true(is_allowed(&h, SIZED(2)));
    harness_run_all(&h);
    exits(&h, "a-w-0-0", 0);
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    assert_false(is_allowed(&h, SIZED(2)));
    assert_non_null(strstr(h.last_message, "spec.replicatedJobs[0].template.spec: Forbidden: cannot mutate"));
    assert_true(is_allowed(&h, SIZED(1)));
    harness_done(&h);
}

#define LIMITS(fields)                                                                                       \
    "{name: x, template: {spec: {parallelism: 2, completions: 2, " fields POD_OF("", "1") "}}}"

/* One failure that passes several limits: podFailurePolicy, then backoffLimit, then maxFailedIndexes. */
static void reasons_have_an_order(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, JOBSET("a", "",
                              LIMITS("backoffLimit: 0, backoffLimitPerIndex: 0, maxFailedIndexes: 0, "
                                     "podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: "
                                     "In, values: [3]}}]}, ")));
    harness_create(
        &h, JOBSET("b", "", LIMITS("backoffLimit: 0, backoffLimitPerIndex: 0, maxFailedIndexes: 0, ")));
    harness_create(&h, JOBSET("c", "", LIMITS("backoffLimitPerIndex: 0, maxFailedIndexes: 0, ")));
    harness_run_all(&h);
    exits(&h, "a-x-0-0", 3);
    exits(&h, "b-x-0-0", 3);
    exits(&h, "c-x-0-0", 3);
    assert_string_equal(job_of(&h, "a-x-0")->reason, "PodFailurePolicy");
    assert_string_equal(job_of(&h, "b-x-0")->reason, "BackoffLimitExceeded");
    assert_string_equal(job_of(&h, "c-x-0")->reason, "MaxFailedIndexesExceeded");
    harness_done(&h);
}

#define MANY(suspend) JOBSET("a", "suspend: " suspend ", ", RJOB("x", 1, "", 12, ""))

/* The Job controller's events: ten pods by name, the others as one; of a deleted Job none. */
static void a_job_tells_of_its_pods(void **state)
{
    struct harness h;
    harness_init(&h, 3, 4, 0);
    harness_create(&h, MANY("true"));
    assert_note(&h, false, "Suspended", "Job suspended");
    assert_int_equal(notes(&h, "SuccessfulCreate"), 0);
    harness_write(&h, WRITE_REPLACE, "a", MANY("false"));
    assert_note(&h, false, "Resumed", "Job resumed");
    char text[128];
    snprintf(text, sizeof(text), "(combined from similar events): Created pod: " STR_FORMAT,
             STR_ARG(harness_task(&h, "a-x-0-11")->name));
    assert_note(&h, false, "SuccessfulCreate", text);
    assert_int_equal(notes(&h, "SuccessfulCreate"), 11);
    harness_run_all(&h);
    exits(&h, "a-x-0-0", 0);
    snprintf(text, sizeof(text), "(combined from similar events): Deleted pod: " STR_FORMAT,
             STR_ARG(harness_task(&h, "a-x-0-11")->name));
    harness_write(&h, WRITE_REPLACE, "a", MANY("true"));
    assert_note(&h, false, "SuccessfulDelete", text);
    assert_int_equal(notes(&h, "SuccessfulDelete"), 11);
    harness_run_all(&h);
    harness_write(&h, WRITE_REPLACE, "a", MANY("false"));
    harness_run_all(&h);
    harness_write(&h, WRITE_DELETE, "a", NULL);
    harness_run_all(&h);
    assert_int_equal(notes(&h, "SuccessfulDelete"), 11);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failure_beats_success),           cmocka_unit_test(the_earliest_failure_is_meant),
        cmocka_unit_test(failures_count_while_suspended),  cmocka_unit_test(a_condition_keeps_its_time),
        cmocka_unit_test(waiting_pods_are_active),         cmocka_unit_test(single_restarts_without_limit),
        cmocka_unit_test(resuming_keeps_the_attempt),      cmocka_unit_test(executions_are_counted),
        cmocka_unit_test(reasons_have_an_order),           cmocka_unit_test(a_job_tells_of_its_pods),
        cmocka_unit_test(sizes_stay_when_it_has_finished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
