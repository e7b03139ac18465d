/* The agent's deadline under a hold of the leases (core/health/lease_hold.h). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/agent/desk.h"

#define HELD_NS (60 * NS_PER_SECOND)

static void tick_to(struct desk *desk, int64_t now_ns)
{
    desk->now_ns = now_ns;
    desk_step(desk, (struct agent_event){.kind = AGENT_TICK});
}

static const struct agent_effect *effect_of(const struct desk *desk, enum agent_effect_kind kind)
{
    for (size_t i = 0; i < desk->effects.list.len; i++)
        if (desk->effects.list.items[i].kind == kind)
            return &desk->effects.list.items[i];
    return NULL;
}

static void welcomed(struct desk *desk, struct lease_grant grant)
{
    desk_step(desk, (struct agent_event){.kind = AGENT_CONNECTED});
    assert_non_null(desk_sent(desk, FROM_AGENT_HELLO));
    struct from_controller welcome = {.kind = FROM_CONTROLLER_WELCOME};
    welcome.welcome = (struct welcome){5, LEASE_NS, NS_PER_SECOND, 0, grant, DESK_CLUSTER, WIRE_VERSION};
    desk_say(desk, welcome);
    assert_true(agent_is_welcome(desk->agent));
}

/* With a running task. */
static void begin(struct desk *desk, struct lease_grant grant)
{
    desk_init(desk);
    desk_step(desk, (struct agent_event){.kind = AGENT_BOOT});
    welcomed(desk, grant);
    struct task_launch launch = {.task = 11,
                                 .jobset = 1,
                                 .name = STR("work-0-abcde"),
                                 .argv = one_arg,
                                 .argc = 1,
                                 .chips = 1,
                                 .restore_step = -1,
                                 .world = 1};
    desk_say(desk, (struct from_controller){.kind = FROM_CONTROLLER_START, .start = launch});
    desk_step(desk, (struct agent_event){.kind = AGENT_TASK_STARTED, .started = {11, 100, WALL_NS}});
    assert_int_equal(agent_live_tasks(desk->agent), 1);
}

/* The next heartbeat, and its answer; returns when it was sent. */
static int64_t beat(struct desk *desk, uint64_t counts_by, struct lease_grant grant)
{
    const struct from_agent *heartbeat = NULL;
    while (!heartbeat) {
        tick_to(desk, agent_deadline(desk->agent));
        heartbeat = desk_sent(desk, FROM_AGENT_HEARTBEAT);
    }
    assert_int_equal(heartbeat->heartbeat.grant, counts_by);
    int64_t sent_ns = heartbeat->heartbeat.sent_ns;
    desk->now_ns += 10 * NS_PER_MS;
    desk_say(desk, (struct from_controller){
                       .kind = FROM_CONTROLLER_HEARTBEAT_ACK, .sent_ns = sent_ns, .grant = grant});
    return sent_ns;
}

/* No controller answers until then. */
static void alone_until(struct desk *desk, int64_t until_ns)
{
    while (agent_deadline(desk->agent) < until_ns) {
        tick_to(desk, agent_deadline(desk->agent));
        if (effect_of(desk, AGENT_CONNECT))
            desk_step(desk, (struct agent_event){.kind = AGENT_DISCONNECTED});
    }
}

static void a_held_task_outlives_the_lease_but_not_the_hold(void **state)
{
    struct desk desk;
    begin(&desk, (struct lease_grant){0});
    int64_t sent_ns = beat(&desk, 0, (struct lease_grant){4, HELD_NS});
    int64_t fence_ns = sent_ns + LEASE_NS + HELD_NS - AGENT_KILL_ALLOWANCE_NS;
    assert_int_equal(effect_of(&desk, AGENT_FENCE)->fence_ns, fence_ns); /* the shims' as well */
    sent_ns = beat(&desk, 4, (struct lease_grant){4, HELD_NS - NS_PER_SECOND});
    assert_true(agent_fence(desk.agent) >= fence_ns);
    fence_ns = agent_fence(desk.agent);
    alone_until(&desk, sent_ns + LEASE_NS + NS_PER_SECOND);
    assert_false(agent_is_welcome(desk.agent)); /* it looks for its controller when the lease is over */
    alone_until(&desk, fence_ns);
    assert_true(desk.now_ns > sent_ns + LEASE_NS && desk.now_ns <= fence_ns);
    assert_int_equal(agent_live_tasks(desk.agent), 1);
    assert_null(effect_of(&desk, AGENT_STOP));
    tick_to(&desk, fence_ns);
    assert_int_equal(effect_of(&desk, AGENT_STOP)->stop.task, 11);
    desk_done(&desk);
}

static void without_a_hold_the_lease_is_all(void **state)
{
    struct desk desk;
    begin(&desk, (struct lease_grant){0});
    int64_t sent_ns = beat(&desk, 0, (struct lease_grant){0});
    assert_int_equal(agent_fence(desk.agent), sent_ns + LEASE_NS - AGENT_KILL_ALLOWANCE_NS);
    alone_until(&desk, agent_fence(desk.agent));
    tick_to(&desk, agent_fence(desk.agent));
    assert_non_null(effect_of(&desk, AGENT_STOP));
    desk_done(&desk);
}

/* Within one hold the fence never moves back, whatever is left of it; with the next number it does. */
static void an_early_end_brings_the_lease_back(void **state)
{
    struct desk desk;
    begin(&desk, (struct lease_grant){4, HELD_NS});
    int64_t fence_ns = agent_fence(desk.agent);
    beat(&desk, 4, (struct lease_grant){4, NS_PER_SECOND});
    assert_int_equal(agent_fence(desk.agent), fence_ns);
    int64_t sent_ns = beat(&desk, 4, (struct lease_grant){6, 0});
    assert_int_equal(effect_of(&desk, AGENT_FENCE)->fence_ns, sent_ns + LEASE_NS - AGENT_KILL_ALLOWANCE_NS);
    beat(&desk, 6, (struct lease_grant){6, 0});
    desk_done(&desk);
}

/* A hello while the hold stands, as of an agent that was started anew. */
static void a_welcome_grants_what_is_left(void **state)
{
    struct desk desk;
    begin(&desk, (struct lease_grant){4, HELD_NS});
    assert_int_equal(agent_fence(desk.agent),
                     10 * NS_PER_SECOND + LEASE_NS + HELD_NS - AGENT_KILL_ALLOWANCE_NS);
    desk_step(&desk, (struct agent_event){.kind = AGENT_DISCONNECTED});
    tick_to(&desk, 40 * NS_PER_SECOND);
    assert_non_null(effect_of(&desk, AGENT_CONNECT));
    welcomed(&desk, (struct lease_grant){8, 20 * NS_PER_SECOND}); /* of the next controller */
    assert_int_equal(agent_fence(desk.agent),
                     desk.now_ns + LEASE_NS + 20 * NS_PER_SECOND - AGENT_KILL_ALLOWANCE_NS);
    assert_int_equal(agent_live_tasks(desk.agent), 1);
    beat(&desk, 8, (struct lease_grant){8, 19 * NS_PER_SECOND});
    desk_done(&desk);
}

/* The controller stands still with its connections open, and then answers a Hello. */
static void answered_late(struct desk *desk, struct lease_grant grant)
{
    while (!effect_of(desk, AGENT_CONNECT))
        tick_to(desk, agent_deadline(desk->agent));
    desk_step(desk, (struct agent_event){.kind = AGENT_CONNECTED});
    assert_non_null(desk_sent(desk, FROM_AGENT_HELLO));
    desk->now_ns += LEASE_NS;
    struct from_controller welcome = {.kind = FROM_CONTROLLER_WELCOME};
    welcome.welcome = (struct welcome){5, LEASE_NS, NS_PER_SECOND, 0, grant, DESK_CLUSTER, WIRE_VERSION};
    desk_say(desk, welcome);
    assert_false(agent_is_welcome(desk->agent)); /* it asks again */
    assert_null(effect_of(desk, AGENT_STOP));
}

static void an_answer_later_than_the_lease_kills_nothing(void **state)
{
    struct desk desk;
    begin(&desk, (struct lease_grant){4, HELD_NS});
    alone_until(&desk, 10 * NS_PER_SECOND + LEASE_NS);
    tick_to(&desk, agent_deadline(desk.agent));
    answered_late(&desk, (struct lease_grant){4, 30 * NS_PER_SECOND});
    assert_int_equal(agent_live_tasks(desk.agent), 1);
    desk_done(&desk);
}

/* A restarted controller grants what is left under a number of its own. Counted from the Hello, that would
 * end a whole answer's time before the hold does. */
static void an_answer_later_than_the_lease_grants_nothing(void **state)
{
    static const int64_t lefts_ns[] = {0, NS_PER_SECOND, 30 * NS_PER_SECOND};
    for (size_t i = 0; i < sizeof(lefts_ns) / sizeof(*lefts_ns); i++) {
        struct desk desk;
        begin(&desk, (struct lease_grant){4, HELD_NS});
        int64_t fence_ns = agent_fence(desk.agent);
        desk_step(&desk, (struct agent_event){.kind = AGENT_DISCONNECTED});
        answered_late(&desk, (struct lease_grant){8, lefts_ns[i]});
        assert_int_equal(agent_fence(desk.agent), fence_ns);
        assert_int_equal(agent_live_tasks(desk.agent), 1);
        tick_to(&desk, agent_deadline(desk.agent));
        assert_non_null(effect_of(&desk, AGENT_CONNECT));
        welcomed(&desk, (struct lease_grant){8, lefts_ns[i]}); /* in time */
        assert_int_equal(agent_fence(desk.agent),
                         desk.now_ns + LEASE_NS + lefts_ns[i] - AGENT_KILL_ALLOWANCE_NS);
        beat(&desk, 8, (struct lease_grant){8, 0});
        desk_done(&desk);
    }
}

/* The fence of the agent before stands in the shims' memory until the new agent is granted another. */
static void a_new_agent_takes_no_late_answer_for_its_fence(void **state)
{
    struct desk desk;
    desk_init(&desk);
    desk_step(&desk, (struct agent_event){.kind = AGENT_ADOPTED,
                                          .adopted = {.task = 11, .pid = 100, .name = STR("work-0-abcde")}});
    desk_step(&desk, (struct agent_event){.kind = AGENT_BOOT});
    answered_late(&desk, (struct lease_grant){8, NS_PER_SECOND});
    assert_null(effect_of(&desk, AGENT_FENCE));
    assert_int_equal(agent_fence(desk.agent), 0);
    assert_int_equal(agent_live_tasks(desk.agent), 1);
    desk_done(&desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_held_task_outlives_the_lease_but_not_the_hold),
        cmocka_unit_test(without_a_hold_the_lease_is_all),
        cmocka_unit_test(an_early_end_brings_the_lease_back),
        cmocka_unit_test(a_welcome_grants_what_is_left),
        cmocka_unit_test(an_answer_later_than_the_lease_kills_nothing),
        cmocka_unit_test(an_answer_later_than_the_lease_grants_nothing),
        cmocka_unit_test(a_new_agent_takes_no_late_answer_for_its_fence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
