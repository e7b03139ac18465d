/* The controller was away for longer than a lease: one incident for each JobSet, whose cause is that,
 * whatever comes in which order; machines have not failed. */
#include "core/job/story.h"

#include "core/health/attribute.h"
#include "core/lemon/lemon.h"

#define SET JOBSET("a", "failurePolicy: {maxRestarts: 3}, ", RJOB("x", 1, "", 3, ""))

static void boot(struct harness *h, bool paused)
{
    struct event event = {.kind = EVENT_BOOT};
    event.boot.epoch = core_epoch(h->core) + 1;
    event.boot.identity = 7;
    event.boot.paused = paused;
    harness_step(h, &event);
    core_check_invariants(h->core);
}

static void joins(struct harness *h, const char *hostname)
{
    task_joins(h, harness_task(h, hostname));
}

/* The agent says hello, and that the task has fenced itself. */
static void comes_back_fenced(struct harness *h, const struct told *told, int64_t at_ns)
{
    struct task_report report = {.kind = REPORT_EXITED,
                                 .task = told->task,
                                 .exit_code = -1,
                                 .signal = 9,
                                 .fenced = true,
                                 .finished_ns = at_ns};
    harness_hello(h, core_cluster(h->core)->machines[told->machine].name.data, &report, 1);
    core_check_invariants(h->core);
}

static void assert_one_incident(struct harness *h, const struct jobset *jobset)
{
    struct attribution found;
    const struct restart_record *record = &jobset->history.records[0];
    assert_int_equal(jobset->history.record_count, 1);
    attribute(&record->faults, &record->signatures, str_from(record->machine), record->fault_ns, &found);
    assert_non_null(found.primary);
    assert_string_equal(found.primary->code, "controller-away");
    assert_int_equal(found.domain, DOMAIN_SOFTWARE);
    for (size_t i = 0; i < core_cluster(h->core)->machine_count; i++) {
        const struct lemon *lemon = lemon_find(core_lemons(h->core), core_cluster(h->core)->machines[i].name);
        assert_true(!lemon || lemon_value(lemon, LEMON_SIGNAL_OUTS) == 0);
        assert_true(!lemon || lemon_value(lemon, LEMON_SIGNAL_MULTI_NODE_FAILURES) == 0);
    }
}

/* `speaks`: its ranks can rejoin, so that each loss alone would be answered by a finer rung. */
static void agents_come_back_one_by_one(bool speaks, bool paused)
{
    struct harness h;
    struct told told[3];
    harness_init(&h, 3, 1, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    for (int rank = 0; rank < 3; rank++) {
        char host[16];
        snprintf(host, sizeof(host), "a-x-0-%d", rank);
        if (speaks)
            joins(&h, host);
        told[rank] = *harness_told(&h, harness_task(&h, host)->uid);
    }
    harness_wait(&h, 10 * NS_PER_SECOND);
    int64_t fenced_ns = h.now_ns;
    harness_wait(&h, NS_PER_SECOND);
    boot(&h, paused);
    for (int rank = 0; rank < 3; rank++) {
        harness_told(&h, told[rank].task)->ended = true;
        if (paused && rank > 0)
            harness_lose(&h, core_cluster(h.core)->machines[told[rank].machine].name.data);
        else
            comes_back_fenced(&h, &told[rank], fenced_ns);
        h.now_ns += 50 * NS_PER_MS;
    }
    for (int rank = 1; rank < 3 && paused; rank++)
        harness_hello(&h, core_cluster(h.core)->machines[told[rank].machine].name.data, NULL, 0);
    harness_run_all(&h);
    assert_one_incident(&h, jobset);
    assert_int_equal(jobset->attempt, 1);
    assert_non_null(harness_task(&h, "a-x-0-2"));
    assert_int_equal(harness_task(&h, "a-x-0-2")->state, TASK_RUNNING);
    harness_done(&h);
}

static void one_incident_of_ranks_that_rejoin(void **state)
{
    agents_come_back_one_by_one(true, false);
    agents_come_back_one_by_one(true, true);
}

static void one_incident_of_plain_processes(void **state)
{
    agents_come_back_one_by_one(false, false);
    agents_come_back_one_by_one(false, true);
}

/* A machine that is cut off while the controller is there is another matter. */
static void a_fence_without_an_outage_is_the_machines(void **state)
{
    struct harness h;
    harness_init(&h, 3, 1, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    boot(&h, false);
    for (int m = 1; m <= 3; m++) {
        char name[8];
        snprintf(name, sizeof(name), "m-%d", m);
        struct task_report report = {.kind = REPORT_STARTED};
        for (size_t i = 0; i < h.told.len; i++)
            if (strcmp(core_cluster(h.core)->machines[h.told.items[i].machine].name.data, name) == 0)
                report.task = h.told.items[i].task;
        harness_hello(&h, name, &report, report.task ? 1 : 0);
    }
    harness_wait(&h, 60 * NS_PER_SECOND);
    struct told told = *harness_told(&h, harness_task(&h, "a-x-0-1")->uid);
    harness_told(&h, told.task)->ended = true;
    comes_back_fenced(&h, &told, h.now_ns);
    const struct restart_record *record = &jobset->history.records[0];
    struct attribution found;
    assert_int_equal(jobset->history.record_count, 1);
    attribute(&record->faults, &record->signatures, str_from(record->machine), record->fault_ns, &found);
    assert_null(found.primary);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_incident_of_ranks_that_rejoin),
        cmocka_unit_test(one_incident_of_plain_processes),
        cmocka_unit_test(a_fence_without_an_outage_is_the_machines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
