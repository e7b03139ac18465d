/* A living process goes on as another attempt: what its agent says, keeps, and refuses. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "desk.h"

enum { TASK = 11, JOBSET = 1 };

static const struct agent_effect *effect_of(const struct desk *desk, enum agent_effect_kind kind)
{
    for (size_t i = 0; i < desk->effects.list.len; i++)
        if (desk->effects.list.items[i].kind == kind)
            return &desk->effects.list.items[i];
    return NULL;
}

static const struct task_report *report_of(const struct desk *desk, enum report_kind kind)
{
    const struct from_agent *sent = desk_sent(desk, FROM_AGENT_REPORTS);
    for (size_t i = 0; sent && i < sent->reports.count; i++)
        if (sent->reports.items[i].kind == kind && sent->reports.items[i].task == TASK)
            return &sent->reports.items[i];
    return NULL;
}

static const struct task_launch launch = {.task = TASK,
                                          .jobset = JOBSET,
                                          .attempt = 1,
                                          .name = {"work", 4},
                                          .chips = 1,
                                          .world = 2,
                                          .restore_step = -1,
                                          .argv = one_arg,
                                          .argc = 1,
                                          .gang_key = "of attempt 1"};

static void begin(struct desk *desk, bool adopted)
{
    desk_init(desk);
    if (adopted)
        desk_step(desk, (struct agent_event){.kind = AGENT_ADOPTED,
                                             .adopted = {TASK, 1, STR("work"), 55, WALL_NS, &launch}});
    desk_step(desk, (struct agent_event){.kind = AGENT_BOOT});
    desk_step(desk, (struct agent_event){.kind = AGENT_CONNECTED});
    if (adopted)
        assert_int_equal(desk_sent(desk, FROM_AGENT_HELLO)->hello.reports[0].attempt_plus_1, 2);
    desk_welcome(desk);
    if (adopted)
        return;
    desk_say(desk, (struct from_controller){.kind = FROM_CONTROLLER_START, .start = launch});
    desk_step(desk, (struct agent_event){.kind = AGENT_TASK_STARTED, .started = {.task = TASK, .pid = 55}});
}

static void client(struct desk *desk, enum agent_event_kind kind, uint64_t id, int32_t attempt)
{
    desk_step(desk, (struct agent_event){.kind = kind,
                                         .client = {.client = id,
                                                    .task = TASK,
                                                    .attempt = attempt,
                                                    .step = {.step = 4},
                                                    .saved_step = 4,
                                                    .can_rejoin = true}});
}

static void order(struct desk *desk, int32_t attempt)
{
    const struct task_rejoin rejoin = {.task = TASK,
                                       .attempt = attempt,
                                       .rank = 1,
                                       .world = 2,
                                       .full_world = 2,
                                       .rendezvous = STR("10.0.0.1:20001"),
                                       .restore_step = 9,
                                       .gang_key = {(uint8_t)attempt, 'k'}};
    desk_say(desk, (struct from_controller){.kind = FROM_CONTROLLER_REJOIN, .rejoin = rejoin});
}

static void test_joins_again(void **state)
{
    struct desk desk;
    begin(&desk, false);
    client(&desk, AGENT_CLIENT_JOIN, 3, 1);
    assert_true(report_of(&desk, REPORT_JOINED)->can_rejoin);
    assert_int_equal(report_of(&desk, REPORT_JOINED)->attempt_plus_1, 2);
    client(&desk, AGENT_CLIENT_SHARD_SAVED, 3, 1); /* nobody acknowledges it */
    order(&desk, 2);
    const struct agent_effect *told = effect_of(&desk, AGENT_CLIENT_REJOIN);
    assert_int_equal(told->rejoin.client, 3);
    assert_int_equal(told->rejoin.order->attempt, 2);
    assert_int_equal(told->rejoin.order->rank, 1);
    assert_true(str_is(told->rejoin.order->rendezvous, "10.0.0.1:20001"));
    assert_int_equal(told->rejoin.order->gang_key[0], 2);
    /* A report of the attempt before is no news. */
    client(&desk, AGENT_CLIENT_SHARD_SAVED, 3, 1);
    assert_null(report_of(&desk, REPORT_SHARD_SAVED));
    client(&desk, AGENT_CLIENT_STEP, 3, 1);
    assert_null(desk_sent(&desk, FROM_AGENT_STEPS));
    order(&desk, 2); /* said twice, and older */
    assert_non_null(effect_of(&desk, AGENT_CLIENT_REJOIN));
    order(&desk, 1);
    assert_null(effect_of(&desk, AGENT_CLIENT_REJOIN));
    client(&desk, AGENT_CLIENT_JOIN, 3, 2);
    assert_int_equal(effect_of(&desk, AGENT_CLIENT_WELCOME)->client.attempt, 2);
    assert_int_equal(effect_of(&desk, AGENT_CLIENT_WELCOME)->client.restore_step, 9);
    assert_int_equal(effect_of(&desk, AGENT_CLIENT_WELCOME)->client.gang_key[0], 2);
    assert_int_equal(report_of(&desk, REPORT_JOINED)->attempt_plus_1, 3);
    client(&desk, AGENT_CLIENT_STEP, 3, 2);
    assert_int_equal(desk_sent(&desk, FROM_AGENT_STEPS)->heartbeat.steps[0].attempt_plus_1, 3);
    order(&desk, 2);
    assert_null(effect_of(&desk, AGENT_CLIENT_REJOIN)); /* it has */
    /* On a new connection to the controller the old shard is not said again. */
    desk_step(&desk, (struct agent_event){.kind = AGENT_DISCONNECTED});
    desk.now_ns = agent_deadline(desk.agent);
    desk_step(&desk, (struct agent_event){.kind = AGENT_TICK});
    desk_step(&desk, (struct agent_event){.kind = AGENT_CONNECTED});
    assert_int_equal(desk_sent(&desk, FROM_AGENT_HELLO)->hello.reports[0].attempt_plus_1, 3);
    desk_welcome(&desk);
    assert_int_equal(report_of(&desk, REPORT_JOINED)->attempt_plus_1, 3);
    assert_null(report_of(&desk, REPORT_SHARD_SAVED));
    desk_done(&desk);
}

/* The process of a container that was run again is another one: the controller hears that it cannot rejoin,
 * and an order that was sent before is not passed on. */
static void test_run_again_without_rejoin(void **state)
{
    struct desk desk;
    begin(&desk, false);
    client(&desk, AGENT_CLIENT_JOIN, 3, 1);
    assert_true(report_of(&desk, REPORT_JOINED)->can_rejoin);
    client(&desk, AGENT_CLIENT_JOIN, 4, 1); /* the same on another connection: no news */
    assert_null(report_of(&desk, REPORT_JOINED));
    desk_step(&desk,
              (struct agent_event){.kind = AGENT_CLIENT_JOIN,
                                   .client = {.client = 5, .task = TASK, .attempt = 1, .can_rejoin = false}});
    assert_non_null(report_of(&desk, REPORT_JOINED));
    assert_false(report_of(&desk, REPORT_JOINED)->can_rejoin);
    order(&desk, 2);
    assert_null(effect_of(&desk, AGENT_CLIENT_REJOIN));
    desk_done(&desk);
}

/* The first process of an attempt has its key from the START, also under an agent that was restarted. */
static void test_first_key(void **state)
{
    for (int adopted = 0; adopted < 2; adopted++) {
        struct desk desk;
        begin(&desk, adopted);
        client(&desk, AGENT_CLIENT_JOIN, 3, 1);
        assert_memory_equal(effect_of(&desk, AGENT_CLIENT_WELCOME)->client.gang_key, launch.gang_key,
                            GANG_KEY_BYTES);
        desk_done(&desk);
    }
}

/* A process whose connection was away when the order came comes back under its old attempt. */
static void test_comes_back_behind(void **state)
{
    struct desk desk;
    begin(&desk, false);
    client(&desk, AGENT_CLIENT_JOIN, 3, 1);
    client(&desk, AGENT_CLIENT_LEFT, 3, 1);
    order(&desk, 4);
    assert_null(effect_of(&desk, AGENT_CLIENT_REJOIN));
    client(&desk, AGENT_CLIENT_JOIN, 5, 1);
    assert_int_equal(effect_of(&desk, AGENT_CLIENT_WELCOME)->client.attempt, 1);
    assert_int_equal(effect_of(&desk, AGENT_CLIENT_WELCOME)->client.gang_key[0], 0); /* no newer one's */
    assert_int_equal(effect_of(&desk, AGENT_CLIENT_REJOIN)->rejoin.order->attempt, 4);
    assert_null(report_of(&desk, REPORT_JOINED));
    client(&desk, AGENT_CLIENT_JOIN, 5, 4);
    assert_int_equal(report_of(&desk, REPORT_JOINED)->attempt_plus_1, 5);
    client(&desk, AGENT_CLIENT_JOIN, 6, 1); /* now it is an impostor */
    assert_non_null(effect_of(&desk, AGENT_CLIENT_FENCED));
    desk_done(&desk);
}

/* The record of an adopted task is of its start; the process, or the controller, knows better. */
static void test_adopted(void **state)
{
    for (int first = 0; first < 2; first++) {
        struct desk desk;
        begin(&desk, true);
        if (first)
            order(&desk, 3);
        client(&desk, AGENT_CLIENT_JOIN, 7, 3);
        assert_int_equal(effect_of(&desk, AGENT_CLIENT_WELCOME)->client.attempt, 3);
        assert_int_equal(report_of(&desk, REPORT_JOINED)->attempt_plus_1, 4);
        if (!first)
            order(&desk, 3);
        assert_null(effect_of(&desk, AGENT_CLIENT_REJOIN));
        desk_done(&desk);
    }
}

/* A peer that was started again comes with the same attempt; a process of the attempt before comes too
 * late. */
static void test_fence(void **state)
{
    struct desk desk;
    begin(&desk, false);
    client(&desk, AGENT_CLIENT_JOIN, 3, 1);
    order(&desk, 2);
    struct task_launch late = launch;
    late.task = 20;
    late.chips = 2;
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_START, .start = late});
    assert_null(effect_of(&desk, AGENT_LAUNCH));
    late.task = 21;
    late.attempt = 2;
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_START, .start = late});
    assert_non_null(effect_of(&desk, AGENT_LAUNCH));
    assert_null(effect_of(&desk, AGENT_STOP));
    assert_int_equal(agent_busy_chips(desk.agent), 3);
    desk_done(&desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joins_again), cmocka_unit_test(test_run_again_without_rejoin),
        cmocka_unit_test(test_first_key),   cmocka_unit_test(test_comes_back_behind),
        cmocka_unit_test(test_adopted),     cmocka_unit_test(test_fence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
