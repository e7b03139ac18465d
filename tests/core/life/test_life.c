/* Stories of whole JobSets: placement, restarts, the spare, policies. */
#include "../harness.h"

#define TRAIN(extra)                                                                                         \
    "apiVersion: jobset.x-k8s.io/v1alpha2\n"                                                                 \
    "kind: JobSet\n"                                                                                         \
    "metadata: {name: train}\n"                                                                              \
    "spec:\n"                                                                                                \
    "  failurePolicy: {maxRestarts: 3}\n" extra "  replicatedJobs:\n"                                        \
    "  - name: w\n"                                                                                          \
    "    replicas: 1\n"                                                                                      \
    "    template:\n"                                                                                        \
    "      spec:\n"                                                                                          \
    "        parallelism: 5\n"                                                                               \
    "        completions: 5\n"                                                                               \
    "        backoffLimit: 0\n"                                                                              \
    "        template:\n"                                                                                    \
    "          spec:\n"                                                                                      \
    "            restartPolicy: Never\n"                                                                     \
    "            containers:\n"                                                                              \
    "            - name: main\n"                                                                             \
    "              image: none\n"                                                                            \
    "              command: [train]\n"                                                                       \
    "              resources: {limits: {google.com/tpu: 4}}\n"

static const char *machine_of(struct harness *h, const char *hostname)
{
    struct task *task = harness_task(h, hostname);
    assert_non_null(task);
    assert_true(task->machine != MACHINE_NONE);
    return core_cluster(h->core)->machines[task->machine].name.data;
}

static void finish_all(struct harness *h)
{
    char name[32];
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof(name), "train-w-0-%d", i);
        harness_exit(h, harness_task(h, name), 0);
    }
}

static void completes(void **state)
{
    struct harness h;
    harness_init(&h, 6, 4, 1);
    struct jobset *jobset = harness_create(&h, TRAIN(""));
    assert_int_equal((int)h.told.len, 5);
    harness_run_all(&h);
    assert_int_equal(jobset->rjob_status[0].ready, 1);
    finish_all(&h);
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    assert_int_equal(
        (int)(core_ledger(h.core)->chips[OWNER_IDLE] + core_ledger(h.core)->chips[OWNER_STANDBY]), 24);
    harness_done(&h);
}

static void machine_lost_spare_replaces(void **state)
{
    struct harness h;
    harness_init(&h, 6, 4, 1);
    struct jobset *jobset = harness_create(&h, TRAIN(""));
    harness_run_all(&h);
    char before[5][32];
    char name[32];
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof(name), "train-w-0-%d", i);
        snprintf(before[i], sizeof(before[i]), "%s", machine_of(&h, name));
    }
    harness_wait(&h, NS_PER_SECOND);
    harness_lose(&h, before[2]);
    assert_int_equal(jobset->restarts, 1);
    harness_run_all(&h);
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof(name), "train-w-0-%d", i);
        assert_string_equal(machine_of(&h, name), i == 2 ? "m-6" : before[i]);
        assert_int_equal(harness_task(&h, name)->state, TASK_RUNNING);
    }
    assert_string_equal(jobset->history.records[0].cause, "MachineLost");
    assert_string_equal(jobset->history.records[0].machine, before[2]);
    finish_all(&h);
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    harness_done(&h);
}

static void restarts_are_limited(void **state)
{
    struct harness h;
    harness_init(&h, 6, 4, 1);
    struct jobset *jobset = harness_create(&h, TRAIN(""));
    for (int i = 0; i < 4; i++) {
        harness_run_all(&h);
        assert_int_equal(jobset->terminal_state, TERMINAL_NONE);
        harness_exit(&h, harness_task(&h, "train-w-0-1"), 7);
    }
    harness_run_all(&h);
    assert_int_equal(jobset->terminal_state, TERMINAL_FAILED);
    assert_string_equal(jobset->conditions[CONDITION_FAILED].reason, "ReachedMaxRestarts");
    assert_int_equal(jobset->restarts, 3);
    assert_int_equal(
        (int)(core_ledger(h.core)->chips[OWNER_IDLE] + core_ledger(h.core)->chips[OWNER_STANDBY]), 24);
    harness_done(&h);
}

static void suspend_and_resume(void **state)
{
    struct harness h;
    harness_init(&h, 6, 4, 1);
    struct jobset *jobset = harness_create(&h, TRAIN(""));
    harness_run_all(&h);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "train", TRAIN("  suspend: true\n")), 200);
    harness_run_all(&h);
    assert_true(jobset->conditions[CONDITION_SUSPENDED].status);
    assert_int_equal(
        (int)(core_ledger(h.core)->chips[OWNER_IDLE] + core_ledger(h.core)->chips[OWNER_STANDBY]), 24);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "train", TRAIN("")), 200);
    harness_run_all(&h);
    assert_false(jobset->conditions[CONDITION_SUSPENDED].status);
    assert_int_equal(jobset->restarts, 0);
    finish_all(&h);
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    harness_done(&h);
}

static void waits_with_reason_and_then_runs(void **state)
{
    struct harness h;
    harness_init(&h, 6, 4, 1);
    harness_news(&h, EVENT_MACHINE_SILENT, "m-1");
    struct jobset *jobset = harness_create(&h, TRAIN(""));
    assert_int_equal((int)h.told.len, 0);
    assert_int_equal((int)jobset->gangs.len, 1);
    assert_true(jobset->gangs.items[0]->why.len > 0);
    print_message("why: " STR_FORMAT "\n", STR_ARG(jobset->gangs.items[0]->why));
    harness_hello(&h, "m-1", NULL, 0);
    harness_run_all(&h);
    finish_all(&h);
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    harness_done(&h);
}

static void deletion_waits_for_the_tasks(void **state)
{
    struct harness h;
    harness_init(&h, 6, 4, 1);
    harness_create(&h, TRAIN(""));
    harness_run_all(&h);
    assert_int_equal(harness_write(&h, WRITE_DELETE, "train", NULL), 200);
    assert_non_null(harness_jobset(&h, "train"));
    harness_run_all(&h);
    assert_null(harness_jobset(&h, "train"));
    assert_int_equal(
        (int)(core_ledger(h.core)->chips[OWNER_IDLE] + core_ledger(h.core)->chips[OWNER_STANDBY]), 24);
    harness_done(&h);
}

/* A task of the new attempt must not start while the one with its name may be alive on another machine. */
static void a_name_runs_once(void **state)
{
    struct harness h;
    harness_init(&h, 6, 4, 1);
    struct jobset *jobset = harness_create(&h, TRAIN(""));
    harness_run_all(&h);
    obj_id old = harness_task(&h, "train-w-0-0")->uid;
    const char *machine = machine_of(&h, "train-w-0-0");
    harness_news(&h, EVENT_MACHINE_AWAY, machine); /* may be alive */
    harness_exit(&h, harness_task(&h, "train-w-0-1"), 1);
    assert_int_equal(jobset->restarts, 1);
    struct task *fresh = harness_task(&h, "train-w-0-0");
    assert_true(fresh->uid != old);
    assert_string_not_equal(machine_of(&h, "train-w-0-0"), machine);
    assert_int_equal(fresh->state, TASK_PLACED);
    harness_lose(&h, machine);
    assert_int_equal(fresh->state, TASK_STARTING);
    harness_run_all(&h);
    assert_int_equal(fresh->state, TASK_RUNNING);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(completes),
        cmocka_unit_test(machine_lost_spare_replaces),
        cmocka_unit_test(restarts_are_limited),
        cmocka_unit_test(suspend_and_resume),
        cmocka_unit_test(waits_with_reason_and_then_runs),
        cmocka_unit_test(deletion_waits_for_the_tasks),
        cmocka_unit_test(a_name_runs_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
