/* The ladder at work: what it chose and why is kept and shown, budgets and attempts run out, infrastructure
 * is forgiven, a rung that is over its time gives way. */
#include "core/job/story.h"

#define TRAIN(notes, spec)                                                                                   \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, annotations: {" notes "}}\n"    \
    "spec: {" spec "replicatedJobs: [{name: w, replicas: 1, template: {spec: {parallelism: 2, "              \
    "completions: 2, backoffLimit: 0, " POD_OF("", "4") "}}}]}\n"
#define MAX(n)        "failurePolicy: {maxRestarts: " #n "}, "
#define RUNGS_OF(all) "phalanx.dev/recovery: '" all "'"

static struct jobset *begin(struct harness *h, int machines, const char *yaml)
{
    harness_init(h, machines, 4, 0);
    struct jobset *jobset = harness_create(h, yaml);
    harness_run_all(h);
    return jobset;
}

static const struct restart_record *newest(const struct jobset *jobset)
{
    assert_true(jobset->history.record_count > 0);
    return &jobset->history.records[(jobset->history.record_count - 1) % RESTART_RECORDS_MAX];
}

static void comes_back(struct harness *h, const char *machine)
{
    harness_hello(h, machine, NULL, 0);
    harness_run_all(h);
    core_check_invariants(h->core);
}

/* The task dies with its machine, which comes back. */
static void strike(struct harness *h, const char *hostname)
{
    char name[64];
    const struct machine *machine = &core_cluster(h->core)->machines[harness_task(h, hostname)->machine];
    snprintf(name, sizeof name, STR_FORMAT, STR_ARG(machine->name));
    harness_lose(h, name);
    h->now_ns += 5 * NS_PER_SECOND;
    comes_back(h, name);
}

static void the_answer_is_kept_and_told(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, 3, TRAIN(RUNGS_OF("restart-process,requeue"), MAX(9)));
    exits(&h, "a-w-0-1", 1);
    assert_int_equal(jobset->attempt, 1);
    assert_int_equal(newest(jobset)->rung, RUNG_RESTART_PROCESS);
    assert_string_equal(newest(jobset)->passed, "retry: not allowed");
    assert_non_null(strstr(last_note(&h, "RecoveryDecided")->message.data, "restart-process as attempt 1"));
    assert_int_equal(jobset->recovery.ladder.rung, RUNG_RESTART_PROCESS);
    harness_run_all(&h);
    progress_to(&h, jobset, 3);
    assert_int_equal(jobset->recovery.ladder.rung, RUNG_NONE);
    strike(&h, "a-w-0-0"); /* its machine is lost, and no rung that is left can do without it */
    assert_int_equal(newest(jobset)->rung, RUNG_REQUEUE);
    assert_non_null(strstr(newest(jobset)->passed, "restart-process: its machine is lost"));
    assert_non_null(strstr(newest(jobset)->passed, "replace-machine: not allowed"));
    assert_int_equal(jobset->restarts, 1);
    assert_int_equal(jobset->restarts_counted, 0); /* infrastructure */
    assert_non_null(strstr(last_note(&h, "RecoveryDecided")->message.data, "requeue as attempt 2"));
    harness_done(&h);
}

static void a_budget_sends_it_down(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(
        &h, 4,
        TRAIN(RUNGS_OF("restart-process") ", phalanx.dev/recovery-budgets: 'restart-process=1/1h'", MAX(9)));
    exits(&h, "a-w-0-1", 1);
    harness_run_all(&h);
    progress_to(&h, jobset, 1);
    exits(&h, "a-w-0-1", 1);
    assert_int_equal(newest(jobset)->rung, RUNG_REQUEUE);
    assert_non_null(strstr(newest(jobset)->passed, "restart-process: its budget is used up, 1 of 1 in"));
    assert_int_equal(jobset->restarts_counted + jobset->recovery.in_place_counted, 2); /* its own doing */
    harness_run_all(&h);
    harness_done(&h);
}

static void attempts_without_a_step_run_out(void **state)
{
    struct harness h;
    struct jobset *jobset =
        begin(&h, 3, TRAIN(RUNGS_OF("restart-process") ", phalanx.dev/no-progress-attempts: '3'", MAX(99)));
    progress_to(&h, jobset, 7);
    exits(&h, "a-w-0-1", 1); /* it got on */
    assert_int_equal(jobset->recovery.ladder.stalled, 0);
    harness_run_all(&h);
    progress_to(&h, jobset, 6); /* nothing new */
    exits(&h, "a-w-0-1", 1);
    assert_int_equal(jobset->recovery.ladder.stalled, 1);
    assert_false(jobset->recovery.state == RECOVERY_BACKING_OFF);
    harness_run_all(&h);
    exits(&h, "a-w-0-1", 1);
    assert_true(jobset->recovery.state == RECOVERY_BACKING_OFF); /* the second in a row waits for 10 s */
    harness_run_all(&h);
    assert_int_equal(harness_task(&h, "a-w-0-1")->state, TASK_PLACED);
    harness_wait(&h, 10 * NS_PER_SECOND);
    assert_false(jobset->recovery.state == RECOVERY_BACKING_OFF);
    harness_run_all(&h);
    harness_check_replay(&h);
    exits(&h, "a-w-0-1", 1);
    harness_run_all(&h);
    assert_int_equal(jobset->terminal_state, TERMINAL_FAILED);
    const struct condition *failed = &jobset->conditions[CONDITION_FAILED];
    assert_string_equal(failed->reason, "NoProgress");
    assert_non_null(strstr(failed->message.data,
                           "3 attempts in a row ended without a new step (the highest is 7); the last: "
                           "process-exit, rank 1 on m-"));
    harness_done(&h);
}

static void infrastructure_is_forgiven(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, 3, TRAIN(RUNGS_OF("requeue"), ""));
    for (int i = 0; i < 3; i++) { /* it has no failure policy at all */
        strike(&h, "a-w-0-1");
        assert_int_equal(jobset->terminal_state, TERMINAL_NONE);
        assert_int_equal(jobset->restarts, i + 1);
        progress_to(&h, jobset, i + 1);
    }
    assert_int_equal(jobset->restarts_counted, 0);
    exits(&h, "a-w-0-1", 1);
    harness_run_all(&h);
    assert_int_equal(jobset->terminal_state, TERMINAL_FAILED); /* that was its own */
    harness_done(&h);
}

static void others_are_as_upstream(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, 3, TRAIN("x: 'y'", MAX(1)));
    strike(&h, "a-w-0-1");
    assert_int_equal(jobset->restarts_counted, 1);
    assert_int_equal(newest(jobset)->rung, RUNG_NONE);
    assert_int_equal(notes(&h, "RecoveryDecided"), 0);
    strike(&h, "a-w-0-1");
    assert_int_equal(jobset->terminal_state, TERMINAL_FAILED);
    harness_done(&h);
}

static void requeues_wait_too(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, 3, TRAIN(RUNGS_OF("requeue"), MAX(99)));
    strike(&h, "a-w-0-1");
    assert_int_equal(jobset->made, 1);
    strike(&h, "a-w-0-1"); /* the second without a step */
    assert_int_equal(jobset->made, 0);
    assert_int_equal(notes(&h, "CrashLoopBackOff"), 1);
    harness_wait(&h, 10 * NS_PER_SECOND);
    harness_run_all(&h);
    assert_int_equal(jobset->made, 1);
    harness_done(&h);
}

/* No machine is left for the rank: the rung's time runs, then the failure policy answers. */
static void a_rung_over_its_time_gives_way(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(
        &h, 2,
        TRAIN(RUNGS_OF("replace-machine") ", phalanx.dev/recovery-limits: 'replace-machine=5s'", MAX(0)));
    harness_lose(&h, "m-2");
    harness_run_all(&h);
    assert_true(jobset_parks(jobset) && jobset_keeps(jobset));
    assert_int_equal(jobset->recovery.ladder.rung, RUNG_REPLACE_MACHINE);
    harness_wait(&h, 34 * NS_PER_SECOND); /* what is stopped has 30 s of grace */
    assert_true(jobset_parks(jobset));
    harness_wait(&h, 2 * NS_PER_SECOND);
    harness_run_all(&h);
    assert_false(jobset_parks(jobset));
    assert_int_equal(newest(jobset)->rung, RUNG_REQUEUE);
    assert_non_null(strstr(newest(jobset)->passed, "replace-machine: it did not help in its time"));
    assert_int_equal(jobset->terminal_state,
                     TERMINAL_NONE); /* the machine's doing, though no restart is allowed */
    assert_int_equal(jobset->restarts_counted, 0);
    comes_back(&h, "m-2");
    assert_int_equal(jobset->jobs[0]->active, 2);
    harness_done(&h);
}

static void changes_hold_at_once(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, 3, TRAIN(RUNGS_OF("restart-process"), MAX(9)));
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", TRAIN(RUNGS_OF("off"), MAX(9))), 200);
    exits(&h, "a-w-0-1", 1);
    assert_int_equal(newest(jobset)->rung, RUNG_NONE);
    assert_int_equal(jobset->restarts, 1);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", TRAIN(RUNGS_OF("of"), MAX(9))), 422);
    assert_non_null(strstr(h.last_message, "metadata.annotations[phalanx.dev/recovery]"));
    harness_run_all(&h);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answer_is_kept_and_told),     cmocka_unit_test(a_budget_sends_it_down),
        cmocka_unit_test(attempts_without_a_step_run_out), cmocka_unit_test(infrastructure_is_forgiven),
        cmocka_unit_test(others_are_as_upstream),          cmocka_unit_test(requeues_wait_too),
        cmocka_unit_test(a_rung_over_its_time_gives_way),  cmocka_unit_test(changes_hold_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
