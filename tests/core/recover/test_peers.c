/* A broken connection between ranks is evidence about the other rank's machine. */
#include "core/job/story.h"

static const char *const yaml = "apiVersion: jobset.x-k8s.io/v1alpha2\n"
                                "kind: JobSet\n"
                                "metadata: {name: p}\n"
                                "spec:\n"
                                "  failurePolicy: {maxRestarts: 3}\n"
                                "  replicatedJobs:\n"
                                "  - name: w\n"
                                "    template: {spec: {parallelism: 2, completions: 2, backoffLimit: 0,\n"
                                "      template: {spec: {\n"
                                "      restartPolicy: Never, containers: [{name: c, image: i, command: [x],\n"
                                "      resources: {limits: {google.com/tpu: 4}}}]}}}}\n";

static void report_peer_gone(struct harness *h, const struct task *reporter, uint32_t rank)
{
    struct task_report report = {.kind = REPORT_PEER_GONE, .task = reporter->uid, .peer_rank = rank};
    harness_report(h, &report, reporter->machine);
}

static const char *place(struct harness *h, const struct task *task)
{
    return core_cluster(h->core)->machines[task->machine].name.data;
}

static void away_and_reported_is_lost(void **state)
{
    struct harness h;
    harness_init(&h, 3, 4, 1);
    struct jobset *jobset = harness_create(&h, yaml);
    harness_run_all(&h);
    const char *machine = place(&h, harness_task(&h, "p-w-0-1"));
    harness_news(&h, EVENT_MACHINE_AWAY, machine);
    assert_int_equal(jobset->restarts, 0);
    report_peer_gone(&h, harness_task(&h, "p-w-0-0"), 1);
    assert_int_equal(jobset->restarts, 1);
    assert_int_equal(cluster_find(core_cluster(h.core), str_from(machine))->state, MACHINE_LOST);
    harness_done(&h);
}

static void reported_first_then_away_is_lost(void **state)
{
    struct harness h;
    harness_init(&h, 3, 4, 1);
    struct jobset *jobset = harness_create(&h, yaml);
    harness_run_all(&h);
    const char *machine = place(&h, harness_task(&h, "p-w-0-1"));
    report_peer_gone(&h, harness_task(&h, "p-w-0-0"), 1);
    assert_int_equal(jobset->restarts, 0);
    harness_news(&h, EVENT_MACHINE_AWAY, machine);
    assert_int_equal(jobset->restarts, 1);
    harness_done(&h);
}

static void a_task_that_is_heard_of_again_clears_the_suspicion(void **state)
{
    struct harness h;
    harness_init(&h, 3, 4, 1);
    struct jobset *jobset = harness_create(&h, yaml);
    harness_run_all(&h);
    struct task *task = harness_task(&h, "p-w-0-1");
    const char *machine = place(&h, task);
    report_peer_gone(&h, harness_task(&h, "p-w-0-0"), 1);
    struct task_report alive = {.kind = REPORT_STARTED, .task = task->uid};
    harness_hello(&h, machine, &alive, 1);
    harness_news(&h, EVENT_MACHINE_AWAY, machine);
    assert_int_equal(jobset->restarts, 0);
    harness_done(&h);
}

/* Rank 0 of the JobSet has lost its connection to rank 1, and the agent of rank 1's machine is away: that
 * machine is not lost. */
static void check_not_lost(const char *text)
{
    struct harness h;
    harness_init(&h, 3, 4, 1);
    struct jobset *jobset = harness_create(&h, text);
    harness_run_all(&h);
    const char *machine = place(&h, harness_task(&h, "p-w-0-1"));
    report_peer_gone(&h, harness_task(&h, "p-w-0-0"), 1);
    harness_news(&h, EVENT_MACHINE_AWAY, machine);
    assert_int_equal(cluster_find(core_cluster(h.core), str_from(machine))->state, MACHINE_AWAY);
    assert_int_equal(jobset->restarts, 0);
    harness_done(&h);
}

/* A sidecar lives on when the process of the rank has ended, so that process's connections say nothing about
 * the machine: also before the agent has told of the containers. */
static void a_pod_of_several_processes_is_not_lost(void **state)
{
    struct buf with BUF_CLEANUP = {0};
    const char *at = strstr(yaml, "containers:");
    buf_add(&with, yaml, (size_t)(at - yaml));
    buf_printf(&with, "initContainers: [{name: s, image: i, command: [z], restartPolicy: Always}], %s", at);
    check_not_lost(with.data);
}

/* The agent itself runs the process again, and does not need the controller for that. */
static void a_process_that_may_run_again_is_not_lost(void **state)
{
    struct buf again BUF_CLEANUP = {0};
    const char *limit = strstr(yaml, "backoffLimit: 0"), *policy = strstr(yaml, "Never");
    buf_printf(&again, "%.*sbackoffLimit: 6%.*sOnFailure%s", (int)(limit - yaml), yaml,
               (int)(policy - limit - strlen("backoffLimit: 0")), limit + strlen("backoffLimit: 0"),
               policy + strlen("Never"));
    check_not_lost(again.data);
}

/* A process that ends is started where it was, next to what it holds in memory; where it ends again, it is
 * not. */
static void a_machine_is_given_one_more_chance(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 1);
    struct jobset *jobset = harness_create(&h, yaml);
    harness_run_all(&h);
    char machine[32];
    snprintf(machine, sizeof(machine), "%s", place(&h, harness_task(&h, "p-w-0-1")));
    for (int ends = 1; ends <= 2; ends++) {
        assert_string_equal(place(&h, harness_task(&h, "p-w-0-1")), machine);
        harness_exit(&h, harness_task(&h, "p-w-0-1"), 1);
        harness_run_all(&h);
        assert_int_equal(jobset->restarts, ends);
        assert_int_equal((int)jobset->history.suspect_count, ends - 1);
    }
    assert_string_not_equal(place(&h, harness_task(&h, "p-w-0-1")), machine);
    harness_done(&h);
}

/* A rank that misses the dead machine ends first; then the machine's death is known: one incident, counted
 * once. */
static void a_survivor_that_ends_first_is_the_same_incident(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 1);
    struct jobset *jobset = harness_create(&h, yaml);
    harness_run_all(&h);
    char machine[32];
    snprintf(machine, sizeof(machine), "%s", place(&h, harness_task(&h, "p-w-0-1")));
    harness_exit(&h, harness_task(&h, "p-w-0-0"), 75);
    assert_int_equal(jobset->restarts_counted, 1);
    assert_int_equal((int)jobset->history.suspect_count, 0); /* its process may run there again */
    harness_wait(&h, 5 * NS_PER_MS);
    harness_lose(&h, machine);
    assert_int_equal(jobset->restarts, 2);
    assert_int_equal(jobset->restarts_counted, 1);
    assert_int_equal((int)jobset->history.record_count, 1);
    assert_string_equal(jobset->history.records[0].cause, "MachineLost");
    assert_string_equal(jobset->history.records[0].machine, machine);
    assert_int_equal((int)jobset->history.suspect_count, 1);
    harness_run_all(&h);
    assert_int_equal(harness_task(&h, "p-w-0-0")->state, TASK_RUNNING);
    /* A loss of the attempt that runs now is another incident. */
    snprintf(machine, sizeof(machine), "%s", place(&h, harness_task(&h, "p-w-0-1")));
    harness_lose(&h, machine);
    assert_int_equal(jobset->restarts_counted, 2);
    assert_int_equal((int)jobset->history.record_count, 2);
    harness_done(&h);
}

static void starts_and_joins(struct harness *h, const struct task *task)
{
    struct task_report reports[] = {{.kind = REPORT_STARTED, .task = task->uid},
                                    {.kind = REPORT_JOINED, .task = task->uid}};
    for (size_t i = 0; i < 2; i++)
        harness_report(h, &reports[i], task->machine);
}

#define JOB(name, count)                                                                                     \
    "{name: " name ", template: {spec: {parallelism: " #count ", completions: " #count                       \
    ", backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, "           \
    "command: [x]}]}}}}}"

/* A Job that is made anew alone has the ranks and the attempt of the one before, whose processes may still
 * end: a new rank may have met an old one, so that its report is no evidence about the new one's machine. */
static void an_older_process_of_the_attempt_may_be_meant(void **state)
{
    struct harness h;
    harness_init(&h, 3, 4, 0);
    struct jobset *jobset = harness_create(
        &h, "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: p}\nspec: {failurePolicy: "
            "{maxRestarts: 3, rules: [{action: RestartJob}]}, replicatedJobs: [" JOB("w", 2) ", " JOB(
                "x", 1) "]}\n");
    harness_run_all(&h);
    struct task old = *harness_task(&h, "p-w-0-0");
    harness_exit(&h, harness_task(&h, "p-w-0-1"), 1);
    const struct task *zero = jobset->jobs[0]->indexes[0].task, *one = jobset->jobs[0]->indexes[1].task;
    assert_true(zero->uid != old.uid && zero->machine == old.machine && one->machine != old.machine);
    assert_true(jobset->attempt == 0 && zero->gang == one->gang);
    starts_and_joins(&h, one);
    struct task_report exited = {.kind = REPORT_EXITED, .task = old.uid, .signal = 15, .exit_code = -1};
    harness_report(&h, &exited, old.machine);
    starts_and_joins(&h, zero);
    report_peer_gone(&h, one, 0);
    harness_news(&h, EVENT_MACHINE_AWAY, place(&h, zero));
    assert_int_equal(core_cluster(h.core)->machines[old.machine].state, MACHINE_AWAY);
    harness_done(&h);
}

/* A rank that goes on and a spare that was given a rank were not placed together; each knows of the other. */
static void new_peers_are_believed(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 0);
    struct jobset *jobset =
        harness_create(&h, "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"
                           "metadata: {name: p, annotations: {phalanx.dev/spares: '1'}}\n"
                           "spec: {failurePolicy: {maxRestarts: 3}, replicatedJobs: [" JOB("w", 2) "]}\n");
    const struct job *job = jobset->jobs[0];
    all_join_with_spares(&h, jobset);
    harness_lose(&h, place(&h, job->indexes[0].task));
    all_join_with_spares(&h, jobset);
    const struct task *new = job->indexes[0].task, *old = job->indexes[1].task;
    assert_true(new->gang != old->gang &&new->attempt == 1 && old->attempt == 1 && new->joined &&
                old->joined);
    machine_id machine = old->machine;
    harness_news(&h, EVENT_MACHINE_AWAY, place(&h, old));
    report_peer_gone(&h, new, 1);
    assert_int_equal(core_cluster(h.core)->machines[machine].state, MACHINE_LOST);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(away_and_reported_is_lost),
        cmocka_unit_test(reported_first_then_away_is_lost),
        cmocka_unit_test(a_task_that_is_heard_of_again_clears_the_suspicion),
        cmocka_unit_test(a_pod_of_several_processes_is_not_lost),
        cmocka_unit_test(a_process_that_may_run_again_is_not_lost),
        cmocka_unit_test(a_machine_is_given_one_more_chance),
        cmocka_unit_test(a_survivor_that_ends_first_is_the_same_incident),
        cmocka_unit_test(an_older_process_of_the_attempt_may_be_meant),
        cmocka_unit_test(new_peers_are_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
