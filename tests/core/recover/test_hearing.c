/* A log that was restored from a backup: tasks of its lost part may run anywhere, so nothing starts before
 * every machine was heard. */
#include "core/job/story.h"

#include "core/agent/agent.h"

#define SET JOBSET("a", "failurePolicy: {maxRestarts: 9}, ", RJOB("x", 1, "", 3, ""))
#define IN_PLACE                                                                                             \
    JOBSET("a", "failurePolicy: {maxRestarts: 2, restartStrategy: InPlaceRestart}, ",                        \
           "{name: x, replicas: 1, template: {spec: {parallelism: 3, completions: 3, backoffLimit: "         \
           "2147483647, podReplacementPolicy: Failed, " POD_OF("", "1") "}}}")

#define OF_LADDER                                                                                            \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"                                                   \
    "metadata: {name: a, annotations: {phalanx.dev/recovery: 'replace-machine', "                            \
    "phalanx.dev/recovery-limits: 'replace-machine=500ms'}}\nspec: {failurePolicy: {maxRestarts: 9}, "       \
    "replicatedJobs: [{name: x, replicas: 1, template: {spec: {parallelism: 3, completions: 3, "             \
    "completionMode: Indexed, backoffLimit: 0, " POD_OF("terminationGracePeriodSeconds: 0, ", "1") "}}}]}\n"

#define WITH_SPARE                                                                                           \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"                                                   \
    "metadata: {name: a, annotations: {phalanx.dev/spares: '1'}}\nspec: {failurePolicy: {maxRestarts: 9}, "  \
    "replicatedJobs: [{name: x, replicas: 1, template: {spec: {parallelism: 3, completions: 3, "             \
    "completionMode: Indexed, backoffLimit: 0, " POD_OF("", "1") "}}}]}\n"

static void boot_on_a_backup(struct harness *h)
{
    harness_step(h, &(struct event){.kind = EVENT_BOOT,
                                    .boot = {.epoch = 100, .version = STR("test"), .restored = true}});
    assert_true(core_is_hearing(h->core));
}

/* The machine's agent is back, and has only these tasks. */
static void comes_back(struct harness *h, int machine, const struct task_report *reports, size_t count)
{
    char name[16];
    snprintf(name, sizeof name, "m-%d", machine);
    for (size_t i = 0; i < h->told.len; i++) {
        struct told *told = &h->told.items[i];
        bool lives = false;
        for (size_t r = 0; r < count; r++)
            lives |= reports[r].task == told->task;
        told->ended |= (int)told->machine + 1 == machine && !lives;
    }
    harness_hello(h, name, reports, count);
    core_check_invariants(h->core);
}

static void assert_all_run(struct harness *h, const struct jobset *jobset)
{
    harness_run_all(h);
    assert_false(core_is_hearing(h->core));
    assert_int_equal((int)jobset->jobs[0]->ready, 3);
}

static void nothing_starts_before_every_machine_was_heard(void **state)
{
    struct harness h;
    harness_init(&h, 5, 1, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    size_t told = h.told.len;
    boot_on_a_backup(&h);
    for (int machine = 1; machine <= 4; machine++) {
        comes_back(&h, machine, NULL, 0);
        harness_run_all(&h);
        assert_int_equal(h.told.len, told);
        assert_true(core_is_hearing(h.core));
    }
    assert_true(jobset->attempt > 0); /* its tasks are gone */
    comes_back(&h, 5, NULL, 0);
    assert_int_equal(h.told.len, told + 3);
    assert_all_run(&h, jobset);
    harness_done(&h);
}

/* The controller touches no task where the machines have what the log says. */
static void what_runs_runs_on(void **state)
{
    struct harness h;
    harness_init(&h, 3, 1, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    boot_on_a_backup(&h);
    for (int machine = 1; machine <= 3; machine++) {
        struct task_report report = {.kind = REPORT_STARTED};
        for (size_t i = 0; i < h.told.len; i++)
            if ((int)h.told.items[i].machine + 1 == machine)
                report.task = h.told.items[i].task;
        comes_back(&h, machine, &report, 1);
    }
    assert_false(core_is_hearing(h.core));
    assert_int_equal(jobset->attempt, 0);
    assert_int_equal((int)jobset->jobs[0]->ready, 3);
    harness_done(&h);
}

/* A task of the lost part is told to stop, and waited for. */
static void a_stranger_ends_first(void **state)
{
    struct harness h;
    harness_init(&h, 4, 1, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    size_t told = h.told.len;
    boot_on_a_backup(&h);
    struct task_report stranger = {.kind = REPORT_STARTED, .task = 4711};
    comes_back(&h, 4, &stranger, 1);
    assert_non_null(find_effect(&h, EFFECT_TASK_STOP));
    comes_back(&h, 4, &stranger, 1); /* once more */
    for (int machine = 1; machine <= 3; machine++)
        comes_back(&h, machine, NULL, 0);
    assert_true(core_is_hearing(h.core));
    assert_int_equal(h.told.len, told);
    stranger.kind = REPORT_EXITED;
    harness_report(&h, &stranger, 3);
    assert_int_equal(h.told.len, told + 3);
    assert_all_run(&h, jobset);
    harness_done(&h);
}

/* The lost part has given a spare a rank. The log knows the task, and may not start another one of that rank
 * beside it. */
static void a_spare_that_has_a_rank_ends_first(void **state)
{
    struct harness h;
    harness_init(&h, 4, 1, 0);
    struct jobset *jobset = harness_create(&h, WITH_SPARE);
    all_join_with_spares(&h, jobset);
    assert_int_equal((int)jobset->jobs[0]->spares.len, 1);
    const struct task *spare = jobset->jobs[0]->spares.items[0];
    int last = (int)spare->machine + 1;
    assert_int_equal(spare->state, TASK_RUNNING);
    struct task_report report = {.kind = REPORT_STARTED, .task = spare->uid, .attempt_plus_1 = 3};
    size_t told = h.told.len;
    boot_on_a_backup(&h);
    comes_back(&h, last, &report, 1);
    assert_int_equal(jobset->attempt, 3);
    for (int machine = 1; machine <= 4; machine++)
        if (machine != last)
            comes_back(&h, machine, NULL, 0);
    assert_true(core_is_hearing(h.core));
    assert_int_equal(h.told.len, told);
    report.kind = REPORT_EXITED;
    harness_report(&h, &report, (machine_id)(last - 1));
    assert_false(core_is_hearing(h.core));
    assert_int_equal(h.told.len, told + 3);
    assert_all_run(&h, jobset);
    harness_done(&h);
}

/* A machine that stays away has ended its tasks when its lease is over. Times of JobSets that have come
 * meanwhile ask for few ticks. */
static void leases_are_waited_for_at_the_longest(void **state)
{
    struct harness h;
    harness_init(&h, 5, 1, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    size_t told = h.told.len;
    int64_t lease_ns = core_cluster(h.core)->policy.lease_ns, boot_ns = h.now_ns;
    boot_on_a_backup(&h);
    for (int machine = 1; machine <= 4; machine++)
        comes_back(&h, machine, NULL, 0);
    harness_write(&h, WRITE_CREATE, "", JOBSET("b", "", RJOB("x", 1, "", 1, ""))); /* users may write */
    assert_int_equal(h.last_code, 201);
    while (core_is_hearing(h.core)) {
        int64_t due_ns = core_deadline(h.core);
        assert_true(due_ns > h.now_ns && due_ns <= boot_ns + 3 * lease_ns);
        assert_int_equal(h.told.len, told);
        harness_wait(&h, due_ns - h.now_ns);
    }
    assert_true(h.now_ns >= boot_ns + lease_ns);
    assert_int_equal(h.told.len, told + 4);
    harness_run_all(&h);
    assert_int_equal((int)jobset->jobs[0]->ready, 3);
    harness_done(&h);
}

/* The log says that they were told to start; whether they were, only their agents know. */
static void orders_are_repeated_afterwards(void **state)
{
    struct harness h;
    harness_init(&h, 4, 1, 0);
    struct jobset *jobset = harness_create(&h, SET);
    boot_on_a_backup(&h);
    for (int machine = 1; machine <= 3; machine++) {
        harness_hello(&h, (const char *[]){"m-1", "m-2", "m-3"}[machine - 1], NULL, 0);
        assert_null(find_effect(&h, EFFECT_TASK_START));
    }
    harness_hello(&h, "m-4", NULL, 0);
    assert_non_null(find_effect(&h, EFFECT_TASK_START));
    assert_int_equal(jobset->attempt, 0);
    assert_all_run(&h, jobset);
    harness_done(&h);
}

/* Processes that go on do not hear of their next attempt either. */
static void the_next_attempt_waits_too(void **state)
{
    struct harness h;
    harness_init(&h, 4, 1, 0);
    struct jobset *jobset = harness_create(&h, IN_PLACE);
    harness_run_all(&h);
    size_t told = h.told.len;
    boot_on_a_backup(&h);
    for (int machine = 1; machine <= 3; machine++)
        comes_back(&h, machine, NULL, 0);
    harness_run_all(&h);
    assert_int_equal(h.told.len, told);
    comes_back(&h, 4, NULL, 0);
    assert_all_run(&h, jobset);
    assert_int_equal(jobset->attempt, 1);
    harness_done(&h);
}

/* The time of a rung may be over before every machine was heard: no place is missing, so the attempt begins
 * then, and no rank is left waiting for it. */
static void the_time_of_a_rung_is_over_meanwhile(void **state)
{
    struct harness h;
    harness_init(&h, 4, 1, 0);
    struct jobset *jobset = harness_create(&h, OF_LADDER);
    harness_run_all(&h);
    for (int i = 0; i < 3; i++)
        task_joins(&h, jobset->jobs[0]->indexes[i].task);
    harness_lose(&h, "m-4");
    harness_lose(&h, "m-1");
    for (int i = 1; i < 3; i++)
        harness_exit(&h, jobset->jobs[0]->indexes[i].task, 1);
    boot_on_a_backup(&h);
    for (int machine = 1; machine <= 3; machine++)
        comes_back(&h, machine, NULL, 0);
    assert_true(jobset_parks(jobset) && jobset->jobs[0]->indexes[1].task->parked);
    harness_wait(&h, NS_PER_SECOND);
    assert_true(core_is_hearing(h.core));
    comes_back(&h, 4, NULL, 0);
    assert_all_run(&h, jobset);
    harness_check_replay(&h);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_starts_before_every_machine_was_heard),
        cmocka_unit_test(what_runs_runs_on),
        cmocka_unit_test(a_stranger_ends_first),
        cmocka_unit_test(a_spare_that_has_a_rank_ends_first),
        cmocka_unit_test(leases_are_waited_for_at_the_longest),
        cmocka_unit_test(orders_are_repeated_afterwards),
        cmocka_unit_test(the_next_attempt_waits_too),
        cmocka_unit_test(the_time_of_a_rung_is_over_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
