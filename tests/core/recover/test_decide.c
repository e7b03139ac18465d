/* Losses that arrive in one message of an agent are one incident, whatever their order. */
#include "core/job/story.h"

#define TRAIN(meta)                                                                                          \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, annotations: {" meta "}}\n"     \
    "spec: {failurePolicy: {maxRestarts: 9}, replicatedJobs: [{name: w, replicas: 1, template: {spec: "      \
    "{parallelism: 3, completions: 3, backoffLimit: 0, " POD_OF("", "2") "}}}]}\n"
#define LADDER "phalanx.dev/recovery: 'retry,restart-process,replace-machine'"

static struct jobset *begin(struct harness *h, const char *yaml)
{
    harness_init(h, 2, 8, 0);
    struct jobset *jobset = harness_create(h, yaml);
    harness_run_all(h);
    return jobset;
}

static struct task *rank(const struct jobset *jobset, size_t index)
{
    return jobset->jobs[0]->tasks.items[index];
}

static struct task_report ended(struct harness *h, const struct task *task, const struct signature *signature,
                                bool oom)
{
    harness_told(h, task->uid)->ended = true;
    return (struct task_report){.kind = REPORT_EXITED,
                                .task = task->uid,
                                .exit_code = 1,
                                .oom = oom,
                                .signatures = (struct signature *)signature,
                                .signature_count = signature != NULL,
                                .attempt_plus_1 = (uint32_t)task->attempt + 1};
}

static void report_all(struct harness *h, const struct jobset *jobset, struct task_report *reports,
                       size_t count)
{
    struct event event = {.kind = EVENT_REPORTS};
    event.reports.machine = core_cluster(h->core)->machines[rank(jobset, 0)->machine].name;
    event.reports.reports = (struct reports){.number = 1, .items = reports, .count = count};
    harness_step(h, &event);
}

/* The victim of a broken connection is reported before the rank that ran out of memory: the latter is the
 * cause, and the ladder is asked once. */
static void the_root_is_the_cause_in_either_order(void **state)
{
    for (int order = 0; order < 2; order++) {
        struct harness h;
        struct jobset *jobset = begin(&h, TRAIN(LADDER));
        const struct signature peer = {SIGNATURE_PEER, STR("connection reset by peer")};
        struct task_report reports[2];
        reports[order] = ended(&h, rank(jobset, 0), &peer, false);
        reports[1 - order] = ended(&h, rank(jobset, 1), NULL, true);
        report_all(&h, jobset, reports, 2);
        const struct restart_record *record = &jobset->history.records[0];
        assert_int_equal(jobset->history.record_count, 1);
        assert_string_equal(record->cause, "OutOfMemory");
        assert_int_equal(jobset->recovery.ladder.uses.len, 1);
        assert_int_equal(jobset->recovery.ladder.cause, LOSS_OUT_OF_MEMORY);
        assert_true(rank(jobset, 0)->parked && rank(jobset, 1)->parked);
        assert_int_equal(rank(jobset, 2)->state, TASK_STOPPING);
        harness_run_all(&h);
        assert_true(rank(jobset, 0)->state == TASK_RUNNING && rank(jobset, 2)->state == TASK_RUNNING);
        core_check_invariants(h.core);
        harness_check_replay(&h);
        harness_done(&h);
    }
}

/* A rank asks for a retry in the message that also reports a death: the death is the incident. */
static void a_death_answers_a_request(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, TRAIN(LADDER));
    for (size_t i = 0; i < 3; i++) {
        struct task_report joined = {
            .kind = REPORT_JOINED, .task = rank(jobset, i)->uid, .attempt_plus_1 = 1, .can_rejoin = true};
        harness_report(&h, &joined, rank(jobset, i)->machine);
    }
    struct task_report reports[2] = {
        {.kind = REPORT_RETRY, .task = rank(jobset, 0)->uid, .attempt_plus_1 = 1, .message = STR("bad sum")},
        ended(&h, rank(jobset, 1), NULL, false)};
    report_all(&h, jobset, reports, 2);
    assert_int_equal(jobset->attempt, 1);
    assert_int_equal(jobset->history.record_count, 1);
    assert_int_equal(jobset->recovery.ladder.rung, RUNG_RESTART_PROCESS);
    assert_true(rank(jobset, 0)->keep == KEEP_TOLD && rank(jobset, 1)->state == TASK_STARTING);
    harness_run_all(&h);
    assert_int_equal(rank(jobset, 1)->state, TASK_RUNNING);
    harness_check_replay(&h);
    harness_done(&h);
}

/* A second report of a death in the same message says nothing new. */
static void a_task_dies_once(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, TRAIN(LADDER));
    struct task_report reports[2] = {ended(&h, rank(jobset, 0), NULL, false),
                                     ended(&h, rank(jobset, 0), NULL, true)};
    report_all(&h, jobset, reports, 2);
    assert_int_equal(jobset->history.record_count, 1);
    assert_int_equal(jobset->recovery.ladder.cause, LOSS_EXIT);
    harness_run_all(&h);
    assert_int_equal(rank(jobset, 0)->state, TASK_RUNNING);
    harness_check_replay(&h);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_root_is_the_cause_in_either_order),
        cmocka_unit_test(a_death_answers_a_request),
        cmocka_unit_test(a_task_dies_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
