/* Changes that users make while gangs wait or run: priority, activity, deletion of a Workload. */
#include "queues.h"

#include "../object/object_test.h"

#define CLASS(name, value)                                                                                   \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: " name                \
    "}\nvalue: " value "\n---\n"

static void setup(struct harness *h)
{
    harness_init(h, 4, 4, 0);
    set_queues(h, 4, 4, "{\"minimumRunTime\":\"0s\"}");
    must_apply(h, FLAVOR("v5e") CLASS("low", "1") CLASS("high", "9") CLUSTER_QUEUE("team", "4", "")
                      LOCAL_QUEUE("q", "team"));
}

static void relabel(struct harness *h, const char *name, const char *class)
{
    char yaml[1024];
    snprintf(yaml, sizeof(yaml),
             "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata:\n  name: %s\n  labels:\n"
             "    kueue.x-k8s.io/queue-name: q\n    kueue.x-k8s.io/priority-class: %s\nspec:\n"
             "  failurePolicy: {maxRestarts: 3}\n  replicatedJobs:\n  - name: w\n    replicas: 1\n"
             "    template: {spec: {parallelism: 1, completions: 1, backoffLimit: 0, template: {spec: {"
             "restartPolicy: Never, containers: [{name: c, image: i, command: [run], resources: {limits: "
             "{google.com/tpu: 4}}}]}}}}\n",
             name, class);
    must_apply(h, yaml);
}

/* A label that changes while it waits changes its place at once. */
static void test_priority_changes_the_order(void **state)
{
    (void)state;
    struct harness h;
    setup(&h);
    submit(&h, "a", "q", 1, 4, "");
    submit(&h, "b", "q", 1, 4, "    kueue.x-k8s.io/priority-class: low\n");
    submit(&h, "c", "q", 1, 4, "    kueue.x-k8s.io/priority-class: low\n");
    relabel(&h, "c", "high");
    assert_int_equal(workload_named(&h, "c")->priority, 9);
    harness_run_all(&h);
    finish_all(&h, "a", 1);
    assert_state(&h, "c", "admitted");
    assert_state(&h, "b", "pending");
    harness_done(&h);
}

static int write_workload(struct harness *h, enum write_verb verb, const char *jobset, const char *body)
{
    char name[128];
    const struct workload *workload = workload_named(h, jobset);
    snprintf(name, sizeof(name), STR_FORMAT, STR_ARG(workload->name));
    return post(h, verb, OBJECT_WORKLOAD, "default", name, str_from(body));
}

static int32_t evictions(struct harness *h, const char *jobset, const char *reason)
{
    const struct workload *workload = workload_named(h, jobset);
    for (size_t i = 0; i < workload->evictions.len; i++)
        if (strcmp(workload->evictions.items[i].reason, reason) == 0)
            return workload->evictions.items[i].count;
    return 0;
}

static void test_evictions_are_counted(void **state)
{
    (void)state;
    struct harness h;
    setup(&h);
    submit(&h, "a", "q", 1, 4, "");
    for (int i = 1; i <= 3; i++) {
        assert_state(&h, "a", "admitted");
        assert_int_equal(write_workload(&h, WRITE_REPLACE, "a", "{\"spec\":{\"active\":false}}"), 200);
        harness_run_all(&h);
        assert_state(&h, "a", "pending");
        assert_int_equal(evictions(&h, "a", "Deactivated"), i);
        assert_int_equal(write_workload(&h, WRITE_REPLACE, "a", "{\"spec\":{\"active\":true}}"), 200);
    }
    harness_done(&h); /* and a snapshot has them */
}

/* A Workload that is deleted comes again, with its quota given back first. */
static void test_deleted_ones_come_again(void **state)
{
    (void)state;
    struct harness h;
    setup(&h);
    submit(&h, "a", "q", 1, 4, "");
    submit(&h, "b", "q", 1, 4, "");
    harness_run_all(&h);
    obj_id first = workload_named(&h, "a")->uid, second = workload_named(&h, "b")->uid;
    assert_int_equal(write_workload(&h, WRITE_DELETE, "b", ""), 200);
    assert_int_not_equal(workload_named(&h, "b")->uid, second);
    assert_state(&h, "b", "pending");
    assert_int_equal(write_workload(&h, WRITE_DELETE, "a", ""), 200);
    assert_state(&h, "a", "leaving");
    harness_run_all(&h);
    assert_int_not_equal(workload_named(&h, "a")->uid, first);
    assert_state(&h, "b", "admitted"); /* it waits longer than the new one */
    assert_state(&h, "a", "pending");
    harness_run_all(&h);
    finish_all(&h, "b", 1);
    assert_state(&h, "a", "admitted");
    harness_run_all(&h);
    finish_all(&h, "a", 1);
    assert_int_equal(write_workload(&h, WRITE_DELETE, "a", ""), 200);
    assert_string_equal(state_of(&h, "a"), "none"); /* what has finished needs none */
    core_check_invariants(h.core);
    harness_done(&h);
}

static uint64_t version_of(struct harness *h, enum object_kind kind, const char *ns, const char *name)
{
    return object_find(core_objects(h->core), kind, str_from(ns), str_from(name))->changed_seq;
}

/* The last Workload goes while it leaves: whoever watches its queues is told in that step. */
static void test_queues_show_that_the_last_goes(void **state)
{
    (void)state;
    struct harness h;
    setup(&h);
    submit(&h, "a", "q", 1, 4, "");
    harness_run_all(&h);
    must_apply(&h, CLUSTER_QUEUE("team", "4", "  stopPolicy: HoldAndDrain\n"));
    assert_state(&h, "a", "leaving");
    assert_int_equal(harness_write(&h, WRITE_DELETE, "a", NULL), 200);
    harness_run_all(&h);
    assert_null(harness_jobset(&h, "a"));
    assert_int_equal(version_of(&h, OBJECT_CLUSTER_QUEUE, "", "team"), core_seq(h.core));
    assert_int_equal(version_of(&h, OBJECT_LOCAL_QUEUE, "default", "q"), core_seq(h.core));
    must_apply(&h, CLASS("new", "2"));
    assert_true(version_of(&h, OBJECT_CLUSTER_QUEUE, "", "team") < core_seq(h.core));
    harness_done(&h);
}

/* A WorkloadPriorityClass may be exchanged, not taken away, and not given to one that runs without. */
static void test_priority_class_stays(void **state)
{
    (void)state;
    static const struct {
        const char *was, *is;
        int code;
    } rows[] = {
        {"high", "", 422},
        {"high", "low", 200},
        {"", "high", 422},
        {"", "", 200},
    };
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(*rows); i++) {
        bool waits = i >= sizeof(rows) / sizeof(*rows);
        size_t r = i % (sizeof(rows) / sizeof(*rows));
        struct harness h;
        harness_init(&h, 2, 4, 0);
        must_apply(&h, FLAVOR("v5e") LOCAL_QUEUE("lq", "cq"));
        must_apply(&h, CLUSTER_QUEUE("cq", "8", ""));
        must_apply(&h, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: "
                       "high}\nvalue: 9\n---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: "
                       "WorkloadPriorityClass\nmetadata: {name: low}\nvalue: 1\n");
        for (int write = 0; write < 2; write++) {
            const char *class = write ? rows[r].is : rows[r].was;
            char yaml[1024], label[128] = "";
            if (class[0])
                snprintf(label, sizeof(label), ", kueue.x-k8s.io/priority-class: %s", class);
            snprintf(
                yaml, sizeof(yaml),
                "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, labels: {kueue.x-k8s.io/queue-name: "
                "lq%s}}\nspec: {parallelism: %d, completions: 9, template: {spec: {restartPolicy: Never, "
                "containers: [{name: c, image: i, command: [run], resources: {limits: {google.com/tpu: "
                "4}}}]}}}\n",
                label, waits ? 9 : 1);
            int wanted = waits && !rows[r].was[0] ? 200 : rows[r].code;
            int code = write ? check(&h, WRITE_REPLACE, OBJECT_JOB, "default", "j", yaml) : apply(&h, yaml);
            if (code != (!write ? 201 : wanted == 200 ? 0 : wanted))
                fail_msg("row %zu: %d, not %d: %s", i, code, wanted, h.last_message);
        }
        harness_done(&h);
    }
}

static void job_with_labels(char *yaml, size_t size, int parallelism, const char *labels)
{
    snprintf(
        yaml, size,
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, labels: {kueue.x-k8s.io/queue-name: lq%s}}\n"
        "spec: {parallelism: %d, completions: 9, template: {spec: {restartPolicy: Never, containers: "
        "[{name: c, image: i, command: [run], resources: {limits: {google.com/tpu: 4}}}]}}}\n",
        labels, parallelism);
}

/* The longest time of a run is a number of seconds, and stays while the job runs. */
static void test_longest_time_is_checked(void **state)
{
    (void)state;
#define LONGEST(seconds) ", kueue.x-k8s.io/max-exec-time-seconds: '" seconds "'"
    static const struct {
        const char *was, *is; /* `is` NULL: the first write is refused */
        int runs, waits;      /* status of the second write */
    } rows[] = {
        {LONGEST("0"), NULL, 0, 0},
        {LONGEST("-3"), NULL, 0, 0},
        {LONGEST("30m"), NULL, 0, 0},
        {LONGEST("99999999999"), NULL, 0, 0},
        {", kueue.x-k8s.io/prebuilt-workload-name: W_1", NULL, 0, 0},
        {LONGEST("60"), LONGEST("60"), 0, 0},
        {LONGEST("60"), LONGEST("90"), 422, 0},
        {LONGEST("60"), LONGEST("x"), 422, 422},
        {LONGEST("60"), "", 422, 0},
        {"", LONGEST("60"), 422, 0},
    };
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(*rows); i++) {
        bool waits = i >= sizeof(rows) / sizeof(*rows);
        size_t r = i % (sizeof(rows) / sizeof(*rows));
        struct harness h;
        char yaml[1024];
        harness_init(&h, 2, 4, 0);
        must_apply(&h, FLAVOR("v5e") LOCAL_QUEUE("lq", "cq"));
        must_apply(&h, CLUSTER_QUEUE("cq", "8", ""));
        job_with_labels(yaml, sizeof(yaml), waits ? 9 : 1, rows[r].was);
        int code = check(&h, WRITE_CREATE, OBJECT_JOB, "default", "", yaml);
        if (code != (rows[r].is ? 0 : 422))
            fail_msg("row %zu: %d: %s", i, code, h.last_message);
        int wanted = waits ? rows[r].waits : rows[r].runs;
        if (rows[r].is) {
            must_apply(&h, yaml);
            job_with_labels(yaml, sizeof(yaml), waits ? 9 : 1, rows[r].is);
            code = check(&h, WRITE_REPLACE, OBJECT_JOB, "default", "j", yaml);
            if (code != wanted)
                fail_msg("row %zu: %d, not %d: %s", i, code, wanted, h.last_message);
        }
        harness_done(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_priority_class_stays),
        cmocka_unit_test(test_longest_time_is_checked),
        cmocka_unit_test(test_priority_changes_the_order),
        cmocka_unit_test(test_evictions_are_counted),
        cmocka_unit_test(test_deleted_ones_come_again),
        cmocka_unit_test(test_queues_show_that_the_last_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
