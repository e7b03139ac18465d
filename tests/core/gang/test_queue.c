/* The order of the queue: priority, first come first served, backfill, and restarts that keep what they
 * had. */
#include "core/job/story.h"

#define BIG(name, parallel)                                                                                  \
    JOBSET(name, "failurePolicy: {maxRestarts: 9}, ",                                                        \
           "{name: x, replicas: 1, template: {spec: {parallelism: " #parallel ", completions: " #parallel    \
           ", backoffLimit: 0, " POD_OF("", "4") "}}}")
#define HIGH(name, parallel)                                                                                 \
    JOBSET(name, "",                                                                                         \
           "{name: x, replicas: 1, template: {spec: {parallelism: " #parallel ", completions: " #parallel    \
           ", backoffLimit: 0, " POD_OF("priorityClassName: high, ", "4") "}}}")

static bool placed(struct harness *h, const char *jobset)
{
    char name[64];
    snprintf(name, sizeof(name), "%s-x-0-0", jobset);
    const struct task *task = harness_task(h, name);
    return task && task->machine != MACHINE_NONE;
}

static void finish(struct harness *h, const char *jobset, int tasks)
{
    harness_run_all(h);
    for (int i = 0; i < tasks; i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s-x-0-%d", jobset, i);
        exits(h, name, 0);
    }
}

static void first_come(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, BIG("a", 2));
    harness_create(&h, BIG("b", 2));
    harness_create(&h, BIG("c", 2));
    const struct jobset *b = harness_jobset(&h, "b");
    char why[256];
    snprintf(why, sizeof(why), STR_FORMAT, STR_ARG(b->gangs.items[0]->why));
    assert_string_equal(
        why, "needs 2 machines with 4 free google.com/tpu chips; 0 of 2 have them: 2 taken by default/a");
    assert_note(&h, true, "FailedScheduling", why);
    finish(&h, "a", 2);
    assert_true(placed(&h, "b") && !placed(&h, "c"));
    assert_int_equal((int)b->gangs.items[0]->why.len, 0);
    finish(&h, "b", 2);
    assert_true(placed(&h, "c"));
    harness_done(&h);
}

static void priority_first(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, BIG("a", 2));
    harness_create(&h, BIG("b", 2));
    harness_create(&h, HIGH("c", 2));
    finish(&h, "a", 2);
    assert_true(placed(&h, "c") && !placed(&h, "b"));
    harness_done(&h);
}

/* Small ones overtake a waiting head only within its window. */
static void backfill_ends(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, BIG("a", 1));
    harness_create(&h, BIG("head", 2));
    harness_create(&h, BIG("b", 1));
    assert_true(placed(&h, "a") && placed(&h, "b") && !placed(&h, "head"));
    harness_wait(&h, 2 * core_cluster(h.core)->policy.backfill_window_ns);
    harness_create(&h, BIG("c", 1));
    finish(&h, "a", 1);
    assert_false(placed(&h, "c")); /* the head has waited long enough */
    finish(&h, "b", 1);
    assert_true(placed(&h, "head") && !placed(&h, "c"));
    finish(&h, "head", 2);
    assert_true(placed(&h, "c"));
    harness_done(&h);
}

/* With the head that held them back, those behind it need no machine to change. */
static void backfill_goes_on_without_its_head(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, BIG("a", 1));
    harness_create(&h, BIG("head", 2));
    harness_wait(&h, 2 * core_cluster(h.core)->policy.backfill_window_ns);
    harness_create(&h, BIG("c", 1));
    assert_true(placed(&h, "a") && !placed(&h, "head") && !placed(&h, "c"));
    assert_int_equal(delete_object(&h, OBJECT_JOBSET, STR("head")), 200);
    assert_true(placed(&h, "c"));
    harness_done(&h);
}

#define ELASTIC(parallel)                                                                                    \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"                                                   \
    "metadata: {name: a, annotations: {phalanx.dev/elastic: 'true'}}\nspec: {replicatedJobs: [{name: x, "    \
    "replicas: 1, template: {spec: {parallelism: " #parallel ", completions: " #parallel                     \
    ", " POD_OF("", "4") "}}}]}\n"

/* Tasks that leave a waiting gang let the rest go where there was no room for all. */
static void the_rest_of_a_waiting_gang_is_placed(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, ELASTIC(3));
    assert_false(placed(&h, "a"));
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", ELASTIC(2)), 200);
    assert_true(placed(&h, "a"));
    assert_int_equal((int)idle_chips(&h), 0);
    core_check_invariants(h.core);
    harness_check_replay(&h);
    harness_done(&h);
}

/* A refusal of the whole gang says nothing about its rest, which the queue's head has held back since. */
static void the_rest_is_asked_for_anew(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, BIG("b", 1));
    harness_create(&h, BIG("head", 2));
    harness_create(&h, ELASTIC(3));
    harness_wait(&h, 2 * core_cluster(h.core)->policy.backfill_window_ns);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", ELASTIC(1)), 200);
    assert_true(placed(&h, "b") && !placed(&h, "head") && !placed(&h, "a"));
    assert_int_equal(delete_object(&h, OBJECT_JOBSET, STR("head")), 200);
    assert_true(placed(&h, "a"));
    harness_done(&h);
}

/* The same where a Job of the gang fails, and its JobSet is no more to fail with it. */
static void the_rest_of_an_orphaned_gang_is_placed(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(
        &h, JOBSET("a", "",
                   RJOB("x", 1, "", 1, "") ", {name: z, template: {spec: {parallelism: 2, completions: 2, "
                                           "activeDeadlineSeconds: 60, " POD_OF("", "4") "}}}"));
    assert_false(placed(&h, "a"));
    assert_int_equal(harness_delete_orphaning(&h, OBJECT_JOBSET, "a"), 200);
    harness_wait(&h, 30 * NS_PER_SECOND);
    assert_false(placed(&h, "a"));
    harness_wait(&h, 31 * NS_PER_SECOND);
    assert_job_failed(&h, "a-z-0", "DeadlineExceeded", "Job was active longer than specified deadline");
    assert_true(placed(&h, "a"));
    harness_done(&h);
}

/* A restart takes its own chips over in the same step, so that nobody snatches them while the old tasks end.
 */
static void restart_keeps_its_chips(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, BIG("a", 2));
    harness_run_all(&h);
    harness_create(&h, HIGH("b", 1));
    exits(&h, "a-x-0-0", 1);
    /* The failed task's chips were free for one moment: the higher priority may have them, and then the whole
     * gang waits; but never half of it. */
    bool a = placed(&h, "a"), b = placed(&h, "b");
    assert_true(a != b);
    harness_run_all(&h);
    if (b) {
        assert_null(harness_jobset(&h, "a")->gangs.items[0]->state == GANG_QUEUED ? NULL : "");
        finish(&h, "b", 1);
    }
    harness_run_all(&h);
    finish(&h, "a", 2);
    assert_int_equal(harness_jobset(&h, "a")->terminal_state, TERMINAL_COMPLETED);
    harness_done(&h);
}

/* Without a rival of higher priority it keeps them all. */
static void restart_comes_before_later_ones(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, BIG("a", 2));
    harness_run_all(&h);
    harness_wait(&h, NS_PER_SECOND);
    harness_create(&h, BIG("b", 1));
    exits(&h, "a-x-0-0", 1);
    assert_true(placed(&h, "a") && !placed(&h, "b"));
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_RESTARTING], 8);
    assert_int_equal((int)idle_chips(&h), 0);
    harness_run_all(&h);
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_UNKEPT], 8);
    harness_done(&h);
}

/* A cordoned machine takes nothing new, and keeps what it has. */
static void cordon(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, BIG("a", 1));
    harness_run_all(&h);
    struct event event = {.kind = EVENT_WRITE};
    event.write = (struct write_event){
        .verb = WRITE_REPLACE,
        .object = OBJECT_NODE,
        .name = STR("m-1"),
        .body = STR("{\"metadata\":{\"labels\":{\"x\":\"y\"}},\"spec\":{\"unschedulable\":true}}")};
    harness_step(&h, &event);
    event.write.name = STR("m-2");
    harness_step(&h, &event);
    assert_int_equal(h.last_code, 200);
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_CORDONED], 4);
    assert_note(&h, false, "NodeNotSchedulable", "Node m-2 status is now: NodeNotSchedulable");
    harness_create(&h, BIG("b", 1));
    assert_false(placed(&h, "b"));
    assert_int_equal(harness_task(&h, "a-x-0-0")->state, TASK_RUNNING);
    event.write.body = STR("{\"spec\":{}}");
    harness_step(&h, &event);
    assert_true(placed(&h, "b"));
    event.write.name = STR("m-9");
    harness_step(&h, &event);
    assert_int_equal(h.last_code, 404);
    harness_done(&h);
}

/* The priority that is shown and labelled decides: the class's number at the time when the Pod was made. */
static void pods_have_the_priority_of_their_class(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 0);
    const char *class =
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 70\n";
    harness_write_checked(&h, OBJECT_PRIORITY_CLASS, WRITE_CREATE, "", class);
    assert_int_equal(h.last_code, 201);
    harness_create(&h, JOBSET("a", "",
                              "{name: x, template: {spec: {" POD_OF("priorityClassName: high, priority: 5, ",
                                                                    "1") "}}}"));
    harness_create(&h, JOBSET("b", "", "{name: x, template: {spec: {" POD_OF("priority: 5, ", "1") "}}}"));
    struct arena arena = {0};
    for (int classless = 0; classless < 2; classless++) {
        const struct task *task = harness_task(&h, classless ? "b-x-0-0" : "a-x-0-0");
        assert_int_equal(task->priority, classless ? 5 : 70);
        struct labels labels = job_labels(task->job, task, &arena);
        assert_true(
            str_is(labels_get(&labels, STR("jobset.sigs.k8s.io/priority"), STR("")), classless ? "5" : "70"));
        assert_int_equal(task->gang->queued.priority, task->priority);
    }
    harness_check_replay(&h);
    arena_done(&arena);
    harness_done(&h);
}

static int free_machines(const struct jobset *jobset)
{
    char why[256];
    int64_t left = -1;
    snprintf(why, sizeof(why), STR_FORMAT, STR_ARG(jobset->gangs.items[0]->why));
    struct str text = str_from(strstr(why, "; "));
    assert_true(str_take_number(&text, "; ", INT32_MAX, &left));
    return (int)left;
}

/* The text of a gang that waits follows a burst of changes for a while, and then once the burst is over; a
 * core that was restored in between says the same. */
static void reasons_of_a_burst(void **state)
{
    enum { MACHINES = 24 };
    struct harness h;
    harness_init(&h, MACHINES, 4, 0);
    harness_create(&h, BIG("half", 12));
    const struct jobset *big = harness_create(&h, BIG("big", 24));
    assert_int_equal(free_machines(big), 12);
    for (int i = 0; i < 11; i++) {
        char small[sizeof(BIG("small-00", 1))];
        snprintf(small, sizeof(small), "%s", BIG("small-00", 1));
        char *digits = strstr(small, "small-00") + 6;
        digits[0] = (char)('0' + i / 10);
        digits[1] = (char)('0' + i % 10);
        harness_create(&h, small);
        assert_int_equal(free_machines(big), i < 8 ? 12 - i : 5); /* before the small one */
        assert_true(big->gangs.items[0]->why_due == (i >= 8));
    }
    harness_check_replay(&h);
    harness_wait(&h, NS_PER_SECOND);
    assert_int_equal(free_machines(big), 1);
    assert_false(big->gangs.items[0]->why_due);
    harness_check_replay(&h);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_come),
        cmocka_unit_test(priority_first),
        cmocka_unit_test(pods_have_the_priority_of_their_class),
        cmocka_unit_test(backfill_ends),
        cmocka_unit_test(backfill_goes_on_without_its_head),
        cmocka_unit_test(the_rest_of_a_waiting_gang_is_placed),
        cmocka_unit_test(the_rest_is_asked_for_anew),
        cmocka_unit_test(the_rest_of_an_orphaned_gang_is_placed),
        cmocka_unit_test(restart_keeps_its_chips),
        cmocka_unit_test(restart_comes_before_later_ones),
        cmocka_unit_test(cordon),
        cmocka_unit_test(reasons_of_a_burst),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
