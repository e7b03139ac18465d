/* A machine that is cordoned: its tasks hear of it in time to save a checkpoint; nothing else happens. */
#include "../harness.h"

static const char yaml[] = "apiVersion: jobset.x-k8s.io/v1alpha2\n"
                           "kind: JobSet\n"
                           "metadata: {name: p}\n"
                           "spec:\n"
                           "  replicatedJobs:\n"
                           "  - name: w\n"
                           "    template: {spec: {parallelism: 2, completions: 2, template: {spec: {\n"
                           "      terminationGracePeriodSeconds: 7,\n"
                           "      containers: [{name: c, image: i, command: [x],\n"
                           "      resources: {limits: {google.com/tpu: 4}}}]}}}}\n";

static size_t cordon(struct harness *h, const char *machine, bool on, struct task_notice *ret_notice)
{
    struct event event = {.kind = EVENT_WRITE};
    event.write = (struct write_event){.verb = WRITE_REPLACE,
                                       .object = OBJECT_NODE,
                                       .name = str_from(machine),
                                       .body = on ? STR("{\"spec\":{\"unschedulable\":true}}") : STR("{}"),
                                       .grace_s = -1};
    harness_step(h, &event);
    size_t notices = 0;
    for (size_t i = 0; i < h->effects.list.len; i++) {
        const struct effect *effect = &h->effects.list.items[i];
        if (effect->kind != EFFECT_TASK_NOTICE)
            continue;
        *ret_notice = effect->notice.notice;
        notices++;
    }
    return notices;
}

static void only_joined_tasks_of_the_machine_are_told(void **state)
{
    struct harness h;
    struct task_notice notice = {0};
    harness_init(&h, 3, 4, 0);
    harness_create(&h, yaml);
    harness_run_all(&h);
    struct task *task = harness_task(&h, "p-w-0-1");
    const char *machine = core_cluster(h.core)->machines[task->machine].name.data;
    assert_int_equal(cordon(&h, machine, true, &notice), 0); /* it does not speak libphalanx */
    assert_int_equal(cordon(&h, machine, false, &notice), 0);
    struct task_report joined = {.kind = REPORT_JOINED, .task = task->uid};
    harness_report(&h, &joined, task->machine);
    assert_int_equal(cordon(&h, machine, true, &notice), 1);
    assert_int_equal(notice.kind, NOTICE_DRAIN);
    assert_true(notice.task == task->uid);
    assert_true(notice.deadline_ns == 7 * NS_PER_SECOND);
    assert_int_equal(cordon(&h, machine, true, &notice), 0); /* once */
    assert_int_equal(task->state, TASK_RUNNING);
    harness_done(&h);
}

static void remove_pod(struct harness *h, const struct task *task, bool evict, const char *user)
{
    struct event event = {.kind = EVENT_WRITE};
    event.write = (struct write_event){.verb = WRITE_DELETE,
                                       .object = OBJECT_POD,
                                       .namespace_ = STR("default"),
                                       .name = task->name,
                                       .evict = evict,
                                       .user = str_from(user),
                                       .grace_s = -1};
    harness_step(h, &event);
}

/* The user who drains a machine, or deletes a Pod, is named as the cause of the restart, however long the Pod
 * took to end; the next restart does not name the user. */
static void an_order_is_the_cause_and_names_its_user(void **state)
{
    static const struct {
        bool cordon, evict;
        const char *cause;
    } cases[] = {
        {true, true, "drain"}, {true, false, "drain"}, {false, true, "eviction"}, {false, false, "deletion"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct harness h;
        struct task_notice notice;
        harness_init(&h, 3, 4, 0);
        struct jobset *jobset = harness_create(
            &h, "apiVersion: jobset.x-k8s.io/v1alpha2\n"
                "kind: JobSet\n"
                "metadata: {name: p}\n"
                "spec:\n"
                "  failurePolicy: {maxRestarts: 3}\n"
                "  replicatedJobs:\n"
                "  - name: w\n"
                "    template: {spec: {parallelism: 2, completions: 2, backoffLimit: 0, template: "
                "{spec: {restartPolicy: Never, containers: [{name: c, image: i, command: [x]}]}}}}\n");
        harness_run_all(&h);
        struct task *task = harness_task(&h, "p-w-0-1");
        if (cases[i].cordon)
            cordon(&h, core_cluster(h.core)->machines[task->machine].name.data, true, &notice);
        remove_pod(&h, task, cases[i].evict, "alice");
        harness_wait(&h, 20 * 60 * NS_PER_SECOND);
        harness_run_all(&h);
        assert_int_equal(jobset->history.record_count, 1);
        const struct restart_record *record = &jobset->history.records[0];
        struct attribution found;
        attribute(&record->faults, &record->signatures, str_from(record->machine), record->fault_ns, &found);
        assert_non_null(found.primary);
        assert_string_equal(found.primary->code, cases[i].cause);
        assert_string_equal(found.primary->user, "alice");
        assert_int_equal(found.domain, DOMAIN_USER);
        harness_exit(&h, harness_task(&h, "p-w-0-0"), 4);
        assert_int_equal(jobset->history.record_count, 2);
        record = &jobset->history.records[1];
        attribute(&record->faults, &record->signatures, str_from(record->machine), record->fault_ns, &found);
        assert_null(found.primary);
        harness_done(&h);
    }
}

static void say(struct harness *h, struct task *task, enum report_kind kind, int64_t number)
{
    struct task_report report = {.kind = kind, .task = task->uid, .step = number};
    harness_report(h, &report, task->machine);
}

/* A program that saves when it is told and then exits with 0, before the controller stops it, has left its
 * machine like any evicted one: the Pod goes, and the JobSet begins again elsewhere. */
static void one_that_ends_while_it_is_drained_was_evicted(void **state)
{
    for (int code = 0; code < 2; code++) {
        struct harness h;
        struct task_notice notice = {0};
        harness_init(&h, 3, 4, 0);
        struct jobset *jobset =
            harness_create(&h, "apiVersion: jobset.x-k8s.io/v1alpha2\n"
                               "kind: JobSet\n"
                               "metadata: {name: p}\n"
                               "spec:\n"
                               "  failurePolicy: {maxRestarts: 3}\n"
                               "  replicatedJobs:\n"
                               "  - name: w\n"
                               "    template: {spec: {parallelism: 1, completions: 1, backoffLimit: 0, "
                               "template: {spec: {restartPolicy: Never, terminationGracePeriodSeconds: 50, "
                               "containers: [{name: c, image: i, command: [x]}]}}}}\n");
        harness_run_all(&h);
        struct task *task = harness_task(&h, "p-w-0-0");
        obj_id uid = task->uid;
        const struct machine *machine = &core_cluster(h.core)->machines[task->machine];
        say(&h, task, REPORT_JOINED, 0);
        say(&h, task, REPORT_SHARD_SAVED, 3);
        assert_int_equal(jobset->checkpoint.committed_step, 3);
        assert_int_equal(cordon(&h, machine->name.data, true, &notice), 1);
        remove_pod(&h, task, true, "alice");
        assert_int_not_equal(jobset->recovery.move.state, MOVE_NONE);
        assert_int_equal(task->state, TASK_RUNNING);
        harness_exit(&h, task, code);
        assert_int_equal(jobset->recovery.move.state, MOVE_NONE);
        assert_false(jobset->conditions[CONDITION_COMPLETED].status);
        assert_null(jobs_find_task(core_jobs(h.core), uid));
        harness_wait(&h, 20 * 60 * NS_PER_SECOND);
        harness_run_all(&h);
        assert_int_equal(jobset->history.record_count, 1);
        assert_int_not_equal(harness_task(&h, "p-w-0-0")->machine, machine->id);
        harness_done(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_joined_tasks_of_the_machine_are_told),
        cmocka_unit_test(one_that_ends_while_it_is_drained_was_evicted),
        cmocka_unit_test(an_order_is_the_cause_and_names_its_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
