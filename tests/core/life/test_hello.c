/* Agents come back: their inventory against what should be there. */
#include "core/job/story.h"

#define SET JOBSET("a", "failurePolicy: {maxRestarts: 3}, ", RJOB("x", 1, "", 2, ""))

static const char *machine_of(struct harness *h, const char *hostname)
{
    return core_cluster(h->core)->machines[harness_task(h, hostname)->machine].name.data;
}

static void lost_start_is_said_again(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, SET);
    struct task *task = harness_task(&h, "a-x-0-0");
    harness_hello(&h, machine_of(&h, "a-x-0-0"), NULL, 0);
    int starts = 0;
    for (size_t i = 0; i < h.effects.list.len; i++)
        starts += h.effects.list.items[i].kind == EFFECT_TASK_START;
    assert_int_equal(starts, 2);
    assert_int_equal(task->state, TASK_STARTING);
    struct task_report here = {.kind = REPORT_STARTED, .task = task->uid};
    harness_hello(&h, machine_of(&h, "a-x-0-0"), &here, 1); /* one it has, the other it has not */
    assert_int_equal(task->state, TASK_RUNNING);
    assert_true(find_effect(&h, EFFECT_TASK_START)->start == harness_task(&h, "a-x-0-1"));
    harness_done(&h);
}

static void assert_starts_are_of_this_attempt(struct harness *h, const struct jobset *jobset, int count)
{
    int starts = 0;
    for (size_t i = 0; i < h->effects.list.len; i++) {
        const struct effect *effect = &h->effects.list.items[i];
        if (effect->kind != EFFECT_TASK_START)
            continue;
        starts++;
        assert_int_equal(effect->start->attempt, jobset->attempt);
        assert_int_equal(effect->start->state, TASK_STARTING);
    }
    assert_int_equal(starts, count);
}

/* A task whose order to start was lost is not told again when another end of the same step restarts the
 * gang. */
static void a_lost_start_is_not_said_again_before_a_restart(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, SET);
    struct task *runs = harness_task(&h, "a-x-0-1");
    struct task_report here = {.kind = REPORT_STARTED, .task = runs->uid};
    harness_report(&h, &here, runs->machine);
    assert_int_equal(runs->machine, harness_task(&h, "a-x-0-0")->machine);
    harness_hello(&h, machine_of(&h, "a-x-0-1"), NULL, 0);
    assert_int_equal(jobset->attempt, 1);
    assert_starts_are_of_this_attempt(&h, jobset, 2);
    harness_done(&h);
}

/* A task that waited for its predecessor's end is not started when its own attempt ends in the same step. */
static void a_successor_of_an_ended_attempt_is_not_started(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 3}, ",
                                                      RJOB("x", 1, "", 2, "activeDeadlineSeconds: 100, ")));
    harness_run_all(&h);
    const char *away = machine_of(&h, "a-x-0-0");
    harness_news(&h, EVENT_MACHINE_AWAY, away);
    exits(&h, "a-x-0-1", 1);
    assert_int_equal(harness_task(&h, "a-x-0-0")->state, TASK_PLACED);
    h.now_ns += 200 * NS_PER_SECOND; /* the new attempt's Job is over its deadline, too */
    harness_hello(&h, away, NULL, 0);
    assert_int_equal(jobset->attempt, 2);
    assert_starts_are_of_this_attempt(&h, jobset, 2);
    harness_done(&h);
}

/* A spare without a process ends at once when its attempt ends in the same step, and its Job is counted. */
static void a_lost_start_of_a_spare_is_not_said_again_before_a_restart(void **state)
{
    struct harness h;
    harness_init(&h, 3, 4, 0);
    struct jobset *jobset = harness_create(
        &h,
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"
        "metadata: {name: a, annotations: {phalanx.dev/spares: '1'}}\n"
        "spec: {failurePolicy: {maxRestarts: 1}, replicatedJobs: [{name: x, replicas: 1, template: {spec: "
        "{parallelism: 2, completions: 2, completionMode: Indexed, activeDeadlineSeconds: 100, " POD_OF(
            "", "4") "}}}]}\n");
    for (uint32_t i = 0; i < 2; i++) {
        struct task *task = jobset->jobs[0]->indexes[i].task;
        struct task_report report = {.kind = REPORT_STARTED, .task = task->uid};
        harness_report(&h, &report, task->machine);
        report = (struct task_report){.kind = REPORT_JOINED, .task = task->uid, .attempt_plus_1 = 1};
        harness_report(&h, &report, task->machine);
    }
    assert_int_equal(jobset->jobs[0]->spares.len, 1);
    const struct task *spare = jobset->jobs[0]->spares.items[0];
    assert_int_equal(spare->state, TASK_STARTING);
    h.now_ns += 200 * NS_PER_SECOND;
    harness_hello(&h, core_cluster(h.core)->machines[spare->machine].name.data, NULL, 0);
    core_check_invariants(h.core);
    assert_int_equal(jobset->attempt, 1);
    assert_starts_are_of_this_attempt(&h, jobset, 2);
    assert_true(task_ended(spare->state));
    harness_check_replay(&h);
    harness_done(&h);
}

static void lost_stop_is_said_again(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, SET);
    harness_run_all(&h);
    const char *own = machine_of(&h, "a-x-0-0");
    struct task_report here = {.kind = REPORT_STARTED, .task = harness_task(&h, "a-x-0-0")->uid};
    harness_write(&h, WRITE_DELETE, "a", NULL);
    harness_hello(&h, own, &here, 1);
    const struct effect *stop = find_effect(&h, EFFECT_TASK_STOP);
    assert_true(stop->stop.stop.task == here.task && stop->stop.stop.grace_ns == 30 * NS_PER_SECOND);
    harness_hello(&h, str_is(STR("m-1"), own) ? "m-2" : "m-1", &here,
                  1); /* a machine that should not have it: at once */
    stop = find_effect(&h, EFFECT_TASK_STOP);
    assert_true(stop->stop.stop.task == here.task && stop->stop.stop.grace_ns == 0);
    harness_done(&h);
}

/* A client may ask for any number of seconds. */
static void endless_grace(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, SET);
    harness_run_all(&h);
    struct event event = {.kind = EVENT_WRITE};
    event.write = (struct write_event){.verb = WRITE_DELETE,
                                       .object = OBJECT_POD,
                                       .namespace_ = STR("default"),
                                       .name = harness_task(&h, "a-x-0-0")->name,
                                       .grace_s = INT64_MAX};
    harness_step(&h, &event);
    assert_int_equal(h.last_code, 200);
    assert_true(find_effect(&h, EFFECT_TASK_STOP)->stop.stop.grace_ns == INT32_MAX * NS_PER_SECOND);
    harness_done(&h);
}

static void unknown_tasks_are_stopped(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct task_report reports[] = {{.kind = REPORT_STARTED, .task = 77},
                                    {.kind = REPORT_EXITED, .task = 78}};
    harness_hello(&h, "m-1", reports, 2);
    const struct effect *stop = find_effect(&h, EFFECT_TASK_STOP),
                        *forget = find_effect(&h, EFFECT_TASK_FORGET);
    assert_true(stop->stop.stop.task == 77 && stop->stop.stop.grace_ns == 0);
    assert_true(forget->forget.task == 78);
    harness_done(&h);
}

static void ended_while_away(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    const char *name = machine_of(&h, "a-x-0-0");
    struct task_report reports[] = {
        {.kind = REPORT_EXITED, .task = harness_task(&h, "a-x-0-0")->uid, .exit_code = 0},
        {.kind = REPORT_STARTED, .task = harness_task(&h, "a-x-0-1")->uid}};
    harness_news(&h, EVENT_MACHINE_AWAY, name);
    assert_int_equal(harness_task(&h, "a-x-0-1")->state, TASK_RUNNING); /* maybe alive: nothing happens yet */
    harness_hello(&h, name, reports, 2);
    assert_null(harness_task(&h, "a-x-0-0"));
    assert_true(find_effect(&h, EFFECT_TASK_FORGET)->forget.task == reports[0].task);
    exits(&h, "a-x-0-1", 0);
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    harness_done(&h);
}

/* The task ran, and its agent knows nothing of it any more. */
static void vanished(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    harness_hello(&h, machine_of(&h, "a-x-0-0"), NULL, 0);
    assert_int_equal(jobset->restarts, 1);
    assert_string_equal(jobset->history.records[0].cause, "MachineLost");
    harness_done(&h);
}

static void back_after_the_loss(void **state)
{
    struct harness h;
    harness_init(&h, 3, 4, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    const char *name = machine_of(&h, "a-x-0-0");
    obj_id old = harness_task(&h, "a-x-0-0")->uid;
    harness_lose(&h, name);
    assert_int_equal(jobset->restarts, 1);
    assert_int_equal(notes(&h, "MachineLost"),
                     2); /* the Node, and the Pod that decided the fate of its Job */
    harness_run_all(&h);
    struct task_report fenced = {
        .kind = REPORT_EXITED, .task = old, .signal = 9, .exit_code = -1, .fenced = true};
    harness_hello(&h, name, &fenced, 1);
    assert_true(find_effect(&h, EFFECT_TASK_FORGET)->forget.task == old);
    assert_int_equal(jobset->restarts, 1);
    assert_int_equal(harness_task(&h, "a-x-0-0")->state, TASK_RUNNING);
    assert_int_equal((int)idle_chips(&h), 10);
    harness_done(&h);
}

/* A new controller: machines are away until they have said hello; nothing that runs is touched. */
static void controller_restarts(void **state)
{
    struct harness h;
    harness_init(&h, 1, 4, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    struct event boot = {.kind = EVENT_BOOT};
    boot.boot.epoch = 2;
    harness_step(&h, &boot);
    assert_int_equal((int)core_epoch(h.core), 2);
    assert_int_equal(core_cluster(h.core)->machines[0].state, MACHINE_AWAY);
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_DOWN], 2);
    struct task_report reports[] = {{.kind = REPORT_STARTED, .task = harness_task(&h, "a-x-0-0")->uid},
                                    {.kind = REPORT_STARTED, .task = harness_task(&h, "a-x-0-1")->uid}};
    harness_hello(&h, "m-1", reports, 2);
    assert_int_equal(jobset->restarts, 0);
    assert_null(find_effect(&h, EFFECT_TASK_START));
    assert_null(find_effect(&h, EFFECT_TASK_STOP));
    assert_int_equal((int)idle_chips(&h), 2);
    harness_done(&h);
}

static void a_wrong_inventory_is_named(void **state)
{
    struct harness h;
    harness_init(&h, 1, 4, 0);
    struct event event = {.kind = EVENT_MACHINE_HELLO};
    event.machine_hello.hello = (struct hello){.version = WIRE_VERSION, .machine = STR("m-1"), .chips = 3};
    harness_step(&h, &event);
    assert_note(
        &h, true, "InventoryMismatch",
        "m-1: the agent has 3 chips, the cluster file says 4: correct the agent's --chips or the file");
    const struct machine *machine = cluster_find(core_cluster(h.core), STR("m-1"));
    assert_true(str_is(fault_of_machine(core_health(h.core), STR("m-1"))->code, "inventory/chips"));
    assert_false(machine_schedulable(machine));
    event.machine_hello.hello.chips = 4;
    harness_step(&h, &event); /* it was corrected */
    assert_null(fault_of_machine(core_health(h.core), STR("m-1")));
    assert_true(machine_schedulable(machine));
    event.machine_hello.hello.machine = STR("nobody");
    harness_step(&h, &event); /* not in the cluster file */
    assert_int_equal((int)h.effects.list.len, 0);
    harness_done(&h);
}

/* Words about a task that was never told to start, or that is over, change nothing. */
static void words_out_of_turn(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    harness_news(&h, EVENT_MACHINE_AWAY, machine_of(&h, "a-x-0-0"));
    exits(&h, "a-x-0-1", 1); /* the next attempt must wait for the machine that is away */
    struct task *held = harness_task(&h, "a-x-0-0");
    assert_int_equal(held->state, TASK_PLACED);
    for (int kind = REPORT_STARTED; kind <= REPORT_PEER_GONE; kind++) {
        struct task_report report = {.kind = (enum report_kind)kind, .task = held->uid, .step = 5};
        harness_report(&h, &report, held->machine);
        assert_int_equal(held->state, TASK_PLACED);
    }
    assert_int_equal(jobset->restarts, 1);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_start_is_said_again),
        cmocka_unit_test(a_lost_start_is_not_said_again_before_a_restart),
        cmocka_unit_test(a_lost_start_of_a_spare_is_not_said_again_before_a_restart),
        cmocka_unit_test(a_successor_of_an_ended_attempt_is_not_started),
        cmocka_unit_test(lost_stop_is_said_again),
        cmocka_unit_test(endless_grace),
        cmocka_unit_test(unknown_tasks_are_stopped),
        cmocka_unit_test(ended_while_away),
        cmocka_unit_test(vanished),
        cmocka_unit_test(back_after_the_loss),
        cmocka_unit_test(controller_restarts),
        cmocka_unit_test(a_wrong_inventory_is_named),
        cmocka_unit_test(words_out_of_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
