/* AdmissionChecks: quota and machines first, then what others say. */
#include "queues.h"

#define CHECK_OBJECT(name, controller)                                                                       \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: AdmissionCheck\nmetadata: {name: " name                       \
    "}\nspec: {controllerName: " controller "}\n---\n"
#define ASKS(checks)       "  admissionChecksStrategy: {admissionChecks: [" checks "]}\n"
#define BUDGET             CHECK_OBJECT("budget", "example.com/budget")
#define QUEUE(quota, more) FLAVOR("v5e") CLUSTER_QUEUE("cq", quota, more) LOCAL_QUEUE("lq", "cq")
#define CLASS_HIGH                                                                                           \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: high}\nvalue: "       \
    "9\n---\n"

static void begin(struct harness *h, int machines, const char *objects)
{
    harness_init(h, machines, 4, 0);
    set_queues(h, machines, 4, "{\"minimumRunTime\":\"0s\"}");
    must_apply(h, objects);
    set_check_active(h, "budget", true); /* those that there are */
    set_check_active(h, "room", true);
}

/* Writes what a controller would write to the Workload's status. */
static int answer(struct harness *h, const char *jobset, const char *checks)
{
    const struct workload *workload = workload_named(h, jobset);
    char name[300], body[2048];
    snprintf(name, sizeof(name), STR_FORMAT, STR_ARG(workload->name));
    snprintf(body, sizeof(body), "{\"status\":{\"admissionChecks\":[%s]}}", checks);
    return post(h, WRITE_STATUS, OBJECT_WORKLOAD, "default", name, str_from(body));
}
#define SAYS(name, state) "{\"name\":\"" name "\",\"state\":\"" state "\",\"message\":\"because\"}"

static uint8_t check_of(struct harness *h, const char *jobset, size_t index)
{
    const struct workload *workload = workload_named(h, jobset);
    return index < workload->checks.len ? workload->checks.items[index].state : CHECK_STATES;
}

static void set_active(struct harness *h, const char *jobset, bool active)
{
    char name[300];
    snprintf(name, sizeof(name), STR_FORMAT, STR_ARG(workload_named(h, jobset)->name));
    post(h, WRITE_REPLACE, OBJECT_WORKLOAD, "default", name,
         active ? STR("{\"spec\":{\"active\":true}}") : STR("{\"spec\":{\"active\":false}}"));
}

static void test_admitted_when_all_are_ready(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2,
          BUDGET CHECK_OBJECT("room", "example.com/room") QUEUE("8", ASKS("{name: budget}, {name: room}")));
    submit(&h, "a", "lq", 2, 4, "");
    assert_state(&h, "a", "holding");
    assert_true(holds(&h, "a", WORKLOAD_QUOTA_RESERVED));
    assert_false(holds(&h, "a", WORKLOAD_IS_ADMITTED));
    assert_true(harness_jobset(&h, "a")->spec.suspend);
    assert_int_equal(check_of(&h, "a", 0), CHECK_PENDING);
    submit(&h, "b", "lq", 1, 4, ""); /* its quota is taken */
    assert_state(&h, "b", "pending");
    submit(&h, "c", "nowhere", 1, 4, "");
    assert_int_equal(answer(&h, "a", SAYS("budget", "Ready")), 200);
    assert_state(&h, "a", "holding");
    assert_int_equal(answer(&h, "a", SAYS("room", "Ready") "," SAYS("unknown", "Retry")), 200);
    assert_state(&h, "a", "admitted");
    assert_true(holds(&h, "a", WORKLOAD_IS_ADMITTED));
    assert_int_equal(answer(&h, "c", SAYS("budget", "Ready")), 403); /* nobody is asked about it */
    harness_run_all(&h);
    finish_all(&h, "a", 2);
    assert_state(&h, "b", "holding");
    assert_int_equal(answer(&h, "b", SAYS("budget", "Maybe")), 422);
    harness_check_replay(&h);
    harness_done(&h);
}

/* Machines are kept as well as quota: nobody takes them meanwhile. */
static void test_machines_are_kept(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, BUDGET QUEUE("8", ASKS("{name: budget}")));
    submit(&h, "a", "lq", 2, 4, "");
    harness_create(&h, "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: thief}\nspec:\n"
                       "  replicatedJobs:\n  - {name: w, template: {spec: {template: {spec: {restartPolicy: "
                       "Never, containers: [{name: c, image: i, command: [run], resources: {limits: "
                       "{google.com/tpu: 1}}}]}}}}}\n");
    assert_int_equal(harness_task(&h, "thief-w-0-0")->state, TASK_PENDING);
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_RESERVED], 8);
    harness_check_replay(&h);
    answer(&h, "a", SAYS("budget", "Ready"));
    assert_state(&h, "a", "admitted");
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_RESERVED], 0);
    harness_done(&h);
}

static void test_retry_comes_again(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, BUDGET QUEUE("8", ASKS("{name: budget}")));
    submit(&h, "a", "lq", 2, 4, "");
    answer(&h, "a", "{\"name\":\"budget\",\"state\":\"Retry\",\"requeueAfterSeconds\":60}");
    assert_state(&h, "a", "pending");
    assert_string_equal(reason_of(&h, "a", WORKLOAD_EVICTED), "AdmissionCheck");
    assert_int_equal(check_of(&h, "a", 0), CHECK_PENDING);
    assert_false(holds(&h, "a", WORKLOAD_REQUEUED));
    submit(&h, "b", "lq", 2, 4, ""); /* its quota and machines are free meanwhile */
    assert_state(&h, "b", "holding");
    answer(&h, "b", SAYS("budget", "Rejected"));
    assert_state(&h, "b", "pending");
    harness_wait(&h, 59 * NS_PER_SECOND);
    assert_state(&h, "a", "pending");
    harness_wait(&h, NS_PER_SECOND);
    assert_state(&h, "a", "holding");
    assert_true(holds(&h, "a", WORKLOAD_REQUEUED));
    assert_int_equal(workload_named(&h, "a")->checks.items[0].retries, 1);
    harness_check_replay(&h);
    harness_done(&h);
}

static void test_rejected_is_deactivated(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, BUDGET QUEUE("8", ASKS("{name: budget}")));
    submit(&h, "a", "lq", 2, 4, "");
    answer(&h, "a", SAYS("budget", "Rejected"));
    assert_state(&h, "a", "pending");
    assert_false(workload_named(&h, "a")->active);
    assert_string_equal(reason_of(&h, "a", WORKLOAD_EVICTED), "DeactivatedDueToAdmissionCheck");
    assert_non_null(strstr(message_of(&h, "a", WORKLOAD_EVICTED), "budget (because)"));
    set_active(&h, "a", true);
    assert_state(&h, "a", "holding"); /* and is asked anew */
    assert_int_equal(check_of(&h, "a", 0), CHECK_PENDING);
    set_active(&h, "a", false);
    assert_state(&h, "a", "pending");
    harness_done(&h);
}

/* A running workload is evicted when its check changes its mind. */
static void test_one_that_runs_is_evicted(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, BUDGET QUEUE("8", ASKS("{name: budget}")));
    submit(&h, "a", "lq", 2, 4, "");
    answer(&h, "a", SAYS("budget", "Ready"));
    harness_run_all(&h);
    answer(&h, "a", SAYS("budget", "Retry"));
    assert_state(&h, "a", "leaving");
    harness_run_all(&h);
    assert_state(&h, "a", "holding");
    assert_int_equal(check_of(&h, "a", 0), CHECK_PENDING);
    harness_check_replay(&h);
    harness_done(&h);
}

#define TWO_FLAVORS(checks)                                                                                  \
    FLAVOR("spot")                                                                                           \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: cq}\nspec:\n"                  \
    "  namespaceSelector: {}\n" checks "  resourceGroups:\n  - coveredResources: [google.com/tpu]\n"         \
    "    flavors:\n    - {name: v5e, resources: [{name: google.com/tpu, nominalQuota: 8}]}\n"                \
    "    - {name: spot, resources: [{name: google.com/tpu, nominalQuota: 8}]}\n---\n"

static void test_on_flavors_and_removed(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, BUDGET QUEUE("8", ""));
    must_apply(&h, TWO_FLAVORS(ASKS("{name: budget, onFlavors: [spot]}")));
    submit(&h, "a", "lq", 1, 4, "");
    assert_state(&h, "a", "admitted"); /* of another flavour */
    must_apply(&h, TWO_FLAVORS(ASKS("{name: budget, onFlavors: [v5e]}")));
    submit(&h, "b", "lq", 1, 4, "");
    assert_state(&h, "b", "holding");
    assert_state(&h, "a", "admitted");
    must_apply(&h, QUEUE("8", "")); /* nobody is asked any more */
    assert_state(&h, "b", "admitted");
    harness_done(&h);
}

static void test_queues_that_nobody_answers(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, CHECK_OBJECT("multi", "kueue.x-k8s.io/multikueue") QUEUE("8", ASKS("{name: multi}")));
    submit(&h, "a", "lq", 1, 4, "");
    assert_state(&h, "a", "pending");
    assert_non_null(
        strstr(message_of(&h, "a", WORKLOAD_QUOTA_RESERVED), "inactive AdmissionCheck(s): multi"));
    must_apply(&h, QUEUE("8", ASKS("{name: budget}")));
    assert_non_null(
        strstr(message_of(&h, "a", WORKLOAD_QUOTA_RESERVED), "missing AdmissionCheck(s): budget"));
    must_apply(&h, BUDGET);
    assert_non_null(
        strstr(message_of(&h, "a", WORKLOAD_QUOTA_RESERVED), "inactive AdmissionCheck(s): budget"));
    assert_int_equal(set_check_active(&h, "multi", true), 403); /* nobody here is that controller */
    assert_int_equal(post(&h, WRITE_STATUS, OBJECT_ADMISSION_CHECK, "", "budget",
                          STR("{\"status\":{\"conditions\":[{\"type\":\"Active\",\"status\":\"Yes\"}]}}")),
                     422);
    assert_int_equal(set_check_active(&h, "budget", true), 200);
    assert_state(&h, "a", "holding");
    harness_check_replay(&h);
    set_check_active(&h, "budget", false); /* who holds quota already waits on */
    assert_state(&h, "a", "holding");
    submit(&h, "b", "lq", 1, 4, "");
    assert_state(&h, "b", "pending");
    assert_int_equal(apply(&h, CHECK_OBJECT("budget", "example.com/other")), 422);
    harness_done(&h);
}

/* The workload has not begun: its quota goes at once to the workloads that may take it, and with its
 * queue. */
static void test_waiting_ones_give_way(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2,
          CLASS_HIGH BUDGET QUEUE(
              "8", "  preemption: {withinClusterQueue: LowerPriority}\n" ASKS("{name: budget}")));
    submit(&h, "a", "lq", 2, 4, "");
    submit(&h, "urgent", "lq", 2, 4, "    kueue.x-k8s.io/priority-class: high\n");
    assert_state(&h, "a", "pending");
    assert_string_equal(reason_of(&h, "a", WORKLOAD_PREEMPTED), "InClusterQueue");
    assert_state(&h, "urgent", "holding");
    assert_true(holds(&h, "urgent", WORKLOAD_QUOTA_RESERVED));
    must_apply(&h, QUEUE("8", "  stopPolicy: HoldAndDrain\n" ASKS("{name: budget}")));
    assert_state(&h, "urgent", "pending");
    assert_string_equal(reason_of(&h, "urgent", WORKLOAD_EVICTED), "ClusterQueueStopped");
    harness_check_replay(&h);
    harness_done(&h);
}

/* Victims first, then the checks. */
static void test_after_victims(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2,
          CLASS_HIGH BUDGET QUEUE(
              "8", "  preemption: {withinClusterQueue: LowerPriority}\n" ASKS("{name: budget}")));
    submit(&h, "a", "lq", 2, 4, "");
    answer(&h, "a", SAYS("budget", "Ready"));
    harness_run_all(&h);
    submit(&h, "urgent", "lq", 2, 4, "    kueue.x-k8s.io/priority-class: high\n");
    assert_state(&h, "a", "leaving");
    assert_false(holds(&h, "urgent", WORKLOAD_QUOTA_RESERVED));
    harness_run_all(&h);
    assert_state(&h, "urgent", "holding");
    assert_true(holds(&h, "urgent", WORKLOAD_QUOTA_RESERVED));
    harness_check_replay(&h);
    answer(&h, "urgent", SAYS("budget", "Ready"));
    assert_state(&h, "urgent", "admitted");
    harness_done(&h);
}

/* A preemptor that waits for its victims is switched off: their room goes to nobody. */
static void test_a_preemptor_gives_up(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, CLASS_HIGH QUEUE("8", "  preemption: {withinClusterQueue: LowerPriority}\n"));
    submit(&h, "a", "lq", 2, 4, "");
    harness_run_all(&h);
    submit(&h, "urgent", "lq", 2, 4, "    kueue.x-k8s.io/priority-class: high\n");
    assert_state(&h, "urgent", "holding");
    set_active(&h, "urgent", false);
    assert_state(&h, "urgent", "pending");
    harness_check_replay(&h);
    harness_run_all(&h);
    assert_state(&h, "a", "admitted");
    harness_done(&h);
}

/* The node selector that a check adds to a PodSet decides where its tasks go. */
static void test_updates_choose_nodes(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 3, BUDGET QUEUE("8", ASKS("{name: budget}")));
    submit(&h, "a", "lq", 1, 4, "");
    answer(&h, "a",
           "{\"name\":\"budget\",\"state\":\"Ready\",\"podSetUpdates\":[{\"name\":\"w\","
           "\"nodeSelector\":{\"kubernetes.io/hostname\":\"m-2\"}}]}");
    assert_state(&h, "a", "admitted");
    assert_int_equal(harness_task(&h, "a-w-0-0")->machine,
                     cluster_find(core_cluster(h.core), STR("m-2"))->id);
    harness_check_replay(&h);
    harness_done(&h);
}

/* The updates of a check are on the Pods while the workload is admitted, and go with the admission. */
static void test_updates_are_on_the_pods(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2,
          BUDGET CHECK_OBJECT("room", "example.com/room") QUEUE("8", ASKS("{name: budget}, {name: room}")));
    submit(&h, "a", "lq", 1, 4, "");
    answer(&h, "a",
           "{\"name\":\"budget\",\"state\":\"Ready\",\"podSetUpdates\":[{\"name\":\"w\",\"labels\":{"
           "\"tier\":\"gold\"},\"annotations\":{\"example.com/ticket\":\"17 a\"}}]},"
           "{\"name\":\"room\",\"state\":\"Ready\",\"podSetUpdates\":[{\"name\":\"w\",\"labels\":{"
           "\"tier\":\"gold\",\"hall\":\"3\"}}]}");
    assert_state(&h, "a", "admitted");
    struct arena arena ARENA_CLEANUP = {0};
    const struct task *task = harness_task(&h, "a-w-0-0");
    struct labels labels = job_labels(task->job, task, &arena), none = job_labels(task->job, NULL, &arena);
    struct labels notes = job_annotations(task->job, task, &arena);
    assert_true(str_is(labels_get(&labels, STR("tier"), STR("")), "gold"));
    assert_true(str_is(labels_get(&labels, STR("hall"), STR("")), "3"));
    assert_true(str_is(labels_get(&notes, STR("example.com/ticket"), STR("")), "17 a"));
    assert_true(str_is(labels_get(&none, STR("tier"), STR("")), "")); /* not the Job's */
    harness_check_replay(&h);
    harness_run_all(&h);
    answer(&h, "a", SAYS("budget", "Retry"));
    harness_run_all(&h);
    assert_state(&h, "a", "holding");
    assert_null(harness_jobset(&h, "a")->grant.terms);
    harness_done(&h);
}

static void test_updates_have_a_form(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "[{\"name\":\"nobody\"}]",
        "[{\"name\":\"w\"},{\"name\":\"w\"}]",
        "[{\"name\":\"w\",\"labels\":{\"a b\":\"c\"}}]",
        "[{\"name\":\"w\",\"labels\":{\"a\":\"not a value\"}}]",
        "[{\"name\":\"w\",\"nodeSelector\":[]}]",
        "[{\"name\":\"w\",\"annotations\":{\"a\":7}}]",
    };
    struct harness h;
    begin(&h, 2, BUDGET QUEUE("8", ASKS("{name: budget}")));
    submit(&h, "a", "lq", 1, 4, "");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        char text[512];
        snprintf(text, sizeof(text), "{\"name\":\"budget\",\"state\":\"Ready\",\"podSetUpdates\":%s}",
                 wrong[i]);
        assert_int_equal(answer(&h, "a", text), 422);
        assert_state(&h, "a", "holding");
    }
    harness_done(&h);
}

/* A key with two values: it can never start, and says so; a new Workload may. */
static void test_updates_that_contradict(void **state)
{
    (void)state;
    static const char *const said[][2] = {
        {"\"labels\":{\"tier\":\"gold\"}", "\"labels\":{\"tier\":\"tin\"}"},
        {"\"annotations\":{\"tier\":\"gold\"}", "\"annotations\":{\"tier\":\"tin\"}"},
        {"\"nodeSelector\":{\"tier\":\"gold\"}", "\"nodeSelector\":{\"tier\":\"tin\"}"},
    };
    for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++) {
        struct harness h;
        begin(&h, 2,
              BUDGET CHECK_OBJECT("room", "example.com/room")
                  QUEUE("8", ASKS("{name: budget}, {name: room}")));
        submit(&h, "a", "lq", 1, 4, "");
        char text[1024];
        snprintf(text, sizeof(text),
                 "{\"name\":\"budget\",\"state\":\"Ready\",\"podSetUpdates\":[{\"name\":\"w\",%s}]},"
                 "{\"name\":\"room\",\"state\":\"Ready\",\"podSetUpdates\":[{\"name\":\"w\",%s}]}",
                 said[i][0], said[i][1]);
        assert_int_equal(answer(&h, "a", text), 200);
        assert_state(&h, "a", "finished");
        assert_string_equal(reason_of(&h, "a", WORKLOAD_IS_FINISHED), "FailedToStart");
        assert_non_null(strstr(message_of(&h, "a", WORKLOAD_IS_FINISHED), "key=tier, value1=gold"));
        assert_true(harness_jobset(&h, "a")->spec.suspend);
        harness_check_replay(&h);
        char name[300];
        snprintf(name, sizeof(name), STR_FORMAT, STR_ARG(workload_named(&h, "a")->name));
        assert_true(post(&h, WRITE_DELETE, OBJECT_WORKLOAD, "default", name, STR("")) < 300);
        assert_state(&h, "a", "holding"); /* is asked anew */
        harness_done(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_admitted_when_all_are_ready),
        cmocka_unit_test(test_machines_are_kept),
        cmocka_unit_test(test_retry_comes_again),
        cmocka_unit_test(test_rejected_is_deactivated),
        cmocka_unit_test(test_one_that_runs_is_evicted),
        cmocka_unit_test(test_on_flavors_and_removed),
        cmocka_unit_test(test_queues_that_nobody_answers),
        cmocka_unit_test(test_waiting_ones_give_way),
        cmocka_unit_test(test_after_victims),
        cmocka_unit_test(test_a_preemptor_gives_up),
        cmocka_unit_test(test_updates_choose_nodes),
        cmocka_unit_test(test_updates_are_on_the_pods),
        cmocka_unit_test(test_updates_have_a_form),
        cmocka_unit_test(test_updates_that_contradict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
