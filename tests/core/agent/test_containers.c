/* Containers of a task: their order, restarts, probes, hooks and ends; and, at random, that nothing is ever
 * run twice at once or left behind. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include <signal.h>

#include "base/rng.h"
#include "core/agent/desk.h"

enum { TASK = 11, MAX = 5 };

struct bench {
    struct desk desk;
    struct container_launch containers[MAX];
    size_t count;
    bool live[MAX]; /* has a process */
    uint32_t run[MAX];
    uint32_t launches;
};

static void follow(struct bench *bench)
{
    for (size_t i = 0; i < bench->desk.effects.list.len; i++) {
        const struct agent_effect *effect = &bench->desk.effects.list.items[i];
        if (effect->kind != AGENT_LAUNCH)
            continue;
        assert_false(bench->live[effect->container]); /* one process of each at a time */
        bench->live[effect->container] = true;
        bench->run[effect->container] = effect->run;
        bench->launches++;
    }
}

static void step(struct bench *bench, struct agent_event event)
{
    event.boot_ns = bench->desk.now_ns;
    event.wall_ns = WALL_NS + bench->desk.now_ns;
    agent_step(bench->desk.agent, &event, &bench->desk.effects);
    agent_check_invariants(bench->desk.agent);
    follow(bench);
}

static void say(struct bench *bench, struct from_controller message)
{
    step(bench, (struct agent_event){.kind = AGENT_MESSAGE, .message = &message});
}

static void welcome(struct bench *bench)
{
    step(bench, (struct agent_event){.kind = AGENT_CONNECTED});
    say(bench, (struct from_controller){.kind = FROM_CONTROLLER_WELCOME,
                                        .welcome = {.epoch = 5,
                                                    .lease_ns = LEASE_NS,
                                                    .heartbeat_ns = NS_PER_SECOND,
                                                    .cluster = DESK_CLUSTER,
                                                    .version = WIRE_VERSION}});
}

static void open_bench(struct bench *bench)
{
    desk_init(&bench->desk);
    step(bench, (struct agent_event){.kind = AGENT_BOOT});
    welcome(bench);
}

static struct container_launch *add(struct bench *bench, const char *name, enum container_role role,
                                    enum container_restart restart)
{
    struct container_launch *container = &bench->containers[bench->count++];
    *container = (struct container_launch){.name = str_from(name),
                                           .role = role,
                                           .restart = restart,
                                           .argv = one_arg,
                                           .argc = 1,
                                           .run_as_user = -1,
                                           .run_as_group = -1};
    return container;
}

static void set_probe(struct container_launch *container, enum probe_kind kind)
{
    container->probes[kind] = (struct container_probe){.action = {.kind = ACTION_TCP, .port = 80},
                                                       .period_ns = NS_PER_SECOND,
                                                       .timeout_ns = NS_PER_SECOND,
                                                       .success_threshold = 1,
                                                       .failure_threshold = 2,
                                                       .grace_ns = -1};
}

static struct task_launch launch_of(struct bench *bench)
{
    return (struct task_launch){.task = TASK,
                                .jobset = 1,
                                .name = STR("pod"),
                                .chips = 1,
                                .grace_ns = 5 * NS_PER_SECOND,
                                .restore_step = -1,
                                .world = 1,
                                .containers = bench->containers,
                                .container_count = bench->count};
}

static void start(struct bench *bench)
{
    say(bench, (struct from_controller){.kind = FROM_CONTROLLER_START, .start = launch_of(bench)});
}

static void started(struct bench *bench, uint32_t index)
{
    step(bench, (struct agent_event){.kind = AGENT_TASK_STARTED,
                                     .container = index,
                                     .run = bench->run[index],
                                     .started = {TASK, 100 + index, WALL_NS}});
}

static void exited_as(struct bench *bench, uint32_t index, struct agent_exit exit)
{
    exit.task = TASK;
    bench->live[index] = false;
    step(bench, (struct agent_event){
                    .kind = AGENT_TASK_EXITED, .container = index, .run = bench->run[index], .exited = exit});
}

static void exited(struct bench *bench, uint32_t index, int32_t code)
{
    exited_as(bench, index, (struct agent_exit){.exit_code = code});
}

static void acted(struct bench *bench, uint32_t index, enum container_act act, bool ok)
{
    step(bench, (struct agent_event){.kind = AGENT_ACTED,
                                     .container = index,
                                     .run = bench->run[index],
                                     .acted = {TASK, act, ok, STR("why")}});
}

static void tick_to(struct bench *bench, int64_t now_ns)
{
    while (bench->desk.now_ns < now_ns) { /* the controller answers all the while */
        int64_t due_ns = agent_deadline(bench->desk.agent);
        bench->desk.now_ns = due_ns < now_ns ? due_ns : now_ns;
        step(bench, (struct agent_event){.kind = AGENT_TICK});
        if (agent_is_welcome(bench->desk.agent))
            say(bench, (struct from_controller){.kind = FROM_CONTROLLER_HEARTBEAT_ACK,
                                                .sent_ns = bench->desk.now_ns});
    }
}

static const struct agent_effect *effect_of(const struct bench *bench, enum agent_effect_kind kind,
                                            uint32_t container)
{
    for (size_t i = 0; i < bench->desk.effects.list.len; i++)
        if (bench->desk.effects.list.items[i].kind == kind &&
            bench->desk.effects.list.items[i].container == container)
            return &bench->desk.effects.list.items[i];
    return NULL;
}

static const struct task_report *report(const struct bench *bench)
{
    const struct task_report *found = NULL;
    for (size_t i = 0; i < bench->desk.effects.list.len; i++) {
        const struct agent_effect *effect = &bench->desk.effects.list.items[i];
        if (effect->kind != AGENT_SEND || effect->send.kind != FROM_AGENT_REPORTS)
            continue;
        for (size_t r = 0; r < effect->send.reports.count; r++)
            if (effect->send.reports.items[r].container_count > 0)
                found = &effect->send.reports.items[r];
    }
    return found;
}

/* --- scenarios ------------------------------------------------------------------------------------ */

static void init_containers_run_one_after_the_other(void **state)
{
    struct bench bench = {.count = 0};
    open_bench(&bench);
    add(&bench, "main", CONTAINER_MAIN, RERUN_NEVER);
    add(&bench, "one", CONTAINER_INIT, RERUN_NEVER);
    add(&bench, "two", CONTAINER_INIT, RERUN_NEVER);
    start(&bench);
    assert_true(bench.live[1] && !bench.live[0] && !bench.live[2]);
    assert_int_equal(report(&bench)->kind, REPORT_PREPARING);
    started(&bench, 1);
    exited(&bench, 1, 0);
    assert_true(bench.live[2] && !bench.live[0]);
    started(&bench, 2);
    exited(&bench, 2, 0);
    assert_true(bench.live[0]);
    started(&bench, 0);
    assert_int_equal(report(&bench)->kind, REPORT_STARTED);
    assert_false(report(&bench)->not_ready);
    exited(&bench, 0, 7);
    assert_int_equal(report(&bench)->kind, REPORT_EXITED);
    assert_int_equal(report(&bench)->exit_code, 7);
    assert_int_equal(bench.launches, 3);
    say(&bench, (struct from_controller){.kind = FROM_CONTROLLER_FORGET, .task = TASK});
    assert_non_null(effect_of(&bench, AGENT_FORGET, 3)); /* all three records */
    desk_done(&bench.desk);
}

static void a_failed_init_container_ends_the_task(void **state)
{
    struct bench bench = {.count = 0};
    open_bench(&bench);
    add(&bench, "main", CONTAINER_MAIN, RERUN_NEVER);
    add(&bench, "one", CONTAINER_INIT, RERUN_NEVER);
    start(&bench);
    started(&bench, 1);
    exited(&bench, 1, 3);
    assert_int_equal(report(&bench)->kind, REPORT_EXITED);
    assert_int_equal(report(&bench)->exit_code, 3);
    assert_int_equal(bench.launches, 1);
    desk_done(&bench.desk);
}

static void a_sidecar_holds_up_and_is_stopped_last(void **state)
{
    struct bench bench = {.count = 0};
    open_bench(&bench);
    add(&bench, "main", CONTAINER_MAIN, RERUN_NEVER);
    set_probe(add(&bench, "side", CONTAINER_SIDECAR, RERUN_ALWAYS), PROBE_STARTUP);
    add(&bench, "second", CONTAINER_SIDECAR, RERUN_ALWAYS);
    start(&bench);
    started(&bench, 1);
    assert_false(bench.live[2]);
    assert_non_null(effect_of(&bench, AGENT_ACT, 1));
    acted(&bench, 1, ACT_STARTUP, true);
    assert_true(bench.live[2]);
    started(&bench, 2);
    started(&bench, 0);
    exited(&bench, 0, 0);
    assert_non_null(effect_of(&bench, AGENT_STOP, 2));
    assert_null(effect_of(&bench, AGENT_STOP, 1));
    exited_as(&bench, 2, (struct agent_exit){.exit_code = -1, .signal = SIGTERM, .stopped = true});
    assert_non_null(effect_of(&bench, AGENT_STOP, 1));
    exited_as(&bench, 1, (struct agent_exit){.exit_code = -1, .signal = SIGTERM, .stopped = true});
    assert_int_equal(report(&bench)->kind, REPORT_EXITED);
    assert_int_equal(report(&bench)->exit_code, 0); /* the main container's */
    desk_done(&bench.desk);
}

static void restarts_back_off(void **state)
{
    struct bench bench = {.count = 0};
    open_bench(&bench);
    add(&bench, "main", CONTAINER_MAIN, RERUN_ON_FAILURE);
    start(&bench);
    started(&bench, 0);
    exited(&bench, 0, 1);
    assert_true(bench.live[0]); /* the first time at once */
    started(&bench, 0);
    assert_int_equal(report(&bench)->containers[0].restarts, 1);
    for (int64_t wait_s = 10; wait_s <= 80; wait_s *= 2) {
        exited(&bench, 0, 1);
        assert_string_equal(report(&bench)->containers[0].reason.data, "CrashLoopBackOff");
        char message[80];
        snprintf(message, sizeof message, "back-off %llds restarting failed container=main",
                 (long long)wait_s);
        assert_string_equal(report(&bench)->containers[0].message.data, message);
        tick_to(&bench, bench.desk.now_ns + wait_s * NS_PER_SECOND - 1);
        assert_false(bench.live[0]);
        tick_to(&bench, bench.desk.now_ns + 1);
        assert_true(bench.live[0]);
        started(&bench, 0);
    }
    exited(&bench, 0, 0); /* success ends it */
    assert_int_equal(report(&bench)->kind, REPORT_EXITED);
    assert_int_equal(report(&bench)->exit_code, 0);
    desk_done(&bench.desk);
}

/* The process of a rank that joined is not run again by its agent: its peers have lost it, and the controller
 * recovers the gang. */
static void a_rank_that_joined_ends_with_its_process(void **state)
{
    struct bench bench = {.count = 0};
    open_bench(&bench);
    add(&bench, "main", CONTAINER_MAIN, RERUN_ON_FAILURE)->ends_joined = true;
    add(&bench, "other", CONTAINER_MAIN, RERUN_ON_FAILURE)->ends_joined = true;
    start(&bench);
    started(&bench, 0);
    started(&bench, 1);
    exited(&bench, 0, 1); /* before it has met anybody */
    assert_true(bench.live[0] && bench.live[1]);
    started(&bench, 0);
    step(&bench, (struct agent_event){.kind = AGENT_CLIENT_JOIN, .client = {.client = 9, .task = TASK}});
    exited(&bench, 0, 3);
    assert_false(bench.live[0]);
    assert_non_null(effect_of(&bench, AGENT_STOP, 1));
    exited_as(&bench, 1, (struct agent_exit){.exit_code = 0, .stopped = true});
    assert_int_equal(report(&bench)->kind, REPORT_EXITED);
    assert_int_equal(report(&bench)->exit_code, 3);
    desk_done(&bench.desk);
}

static void rules_restart_what_the_policy_would_not(void **state)
{
    int32_t codes[] = {42};
    struct container_rule rule = {false, codes, 1};
    struct bench bench = {.count = 0};
    open_bench(&bench);
    struct container_launch *container = add(&bench, "main", CONTAINER_MAIN, RERUN_NEVER);
    container->rules = &rule;
    container->rule_count = 1;
    start(&bench);
    started(&bench, 0);
    exited(&bench, 0, 42);
    assert_true(bench.live[0]);
    started(&bench, 0);
    exited(&bench, 0, 41);
    assert_int_equal(report(&bench)->exit_code, 41);
    desk_done(&bench.desk);
}

static void probes_gate_and_kill(void **state)
{
    struct bench bench = {.count = 0};
    open_bench(&bench);
    struct container_launch *container = add(&bench, "main", CONTAINER_MAIN, RERUN_ALWAYS);
    set_probe(container, PROBE_STARTUP);
    set_probe(container, PROBE_READINESS);
    set_probe(container, PROBE_LIVENESS);
    start(&bench);
    started(&bench, 0);
    assert_true(report(&bench)->not_ready);
    assert_int_equal(effect_of(&bench, AGENT_ACT, 0)->act.act, ACT_STARTUP); /* and no other before it */
    acted(&bench, 0, ACT_STARTUP, false);
    tick_to(&bench, bench.desk.now_ns + NS_PER_SECOND);
    acted(&bench, 0, ACT_STARTUP, true);
    tick_to(&bench, bench.desk.now_ns + NS_PER_SECOND);
    acted(&bench, 0, ACT_READINESS, true);
    assert_false(report(&bench)->not_ready);
    for (int i = 0; i < 2; i++) {
        tick_to(&bench, bench.desk.now_ns + NS_PER_SECOND);
        acted(&bench, 0, ACT_READINESS, false);
    }
    assert_true(report(&bench)->not_ready);
    acted(&bench, 0, ACT_LIVENESS, false);
    tick_to(&bench, bench.desk.now_ns + NS_PER_SECOND);
    acted(&bench, 0, ACT_LIVENESS, false);
    assert_int_equal(effect_of(&bench, AGENT_STOP, 0)->stop.grace_ns, 5 * NS_PER_SECOND);
    exited_as(&bench, 0, (struct agent_exit){.exit_code = 0, .stopped = true});
    assert_true(bench.live[0] && bench.run[0] == 1); /* it runs again */
    desk_done(&bench.desk);
}

static void a_stop_runs_the_hook_within_the_grace(void **state)
{
    struct bench bench = {.count = 0};
    open_bench(&bench);
    add(&bench, "main", CONTAINER_MAIN, RERUN_NEVER)->pre_stop =
        (struct container_action){.kind = ACTION_SLEEP, .sleep_ns = NS_PER_SECOND};
    start(&bench);
    started(&bench, 0);
    say(&bench, (struct from_controller){.kind = FROM_CONTROLLER_STOP, .stop = {TASK, 3 * NS_PER_SECOND}});
    assert_non_null(effect_of(&bench, AGENT_ACT, 0));
    assert_null(effect_of(&bench, AGENT_STOP, 0));
    bench.desk.now_ns += NS_PER_SECOND;
    acted(&bench, 0, ACT_PRE_STOP, true);
    assert_int_equal(effect_of(&bench, AGENT_STOP, 0)->stop.grace_ns, 2 * NS_PER_SECOND);
    say(&bench, (struct from_controller){.kind = FROM_CONTROLLER_STOP, .stop = {TASK, 0}});
    assert_int_equal(effect_of(&bench, AGENT_STOP, 0)->stop.grace_ns, 0);
    exited_as(&bench, 0, (struct agent_exit){.exit_code = -1, .signal = SIGKILL, .stopped = true});
    assert_int_equal(report(&bench)->signal, SIGKILL);
    desk_done(&bench.desk);
}

static void a_hook_that_hangs_is_cut_off(void **state)
{
    struct bench bench = {.count = 0};
    open_bench(&bench);
    add(&bench, "main", CONTAINER_MAIN, RERUN_NEVER)->pre_stop =
        (struct container_action){.kind = ACTION_SLEEP, .sleep_ns = NS_PER_SECOND};
    start(&bench);
    started(&bench, 0);
    say(&bench, (struct from_controller){.kind = FROM_CONTROLLER_STOP, .stop = {TASK, 2 * NS_PER_SECOND}});
    bool killed = false;
    int64_t end_ns = bench.desk.now_ns + 2 * NS_PER_SECOND;
    while (bench.desk.now_ns < end_ns) {
        int64_t due_ns = agent_deadline(bench.desk.agent);
        bench.desk.now_ns = due_ns < end_ns ? due_ns : end_ns;
        step(&bench, (struct agent_event){.kind = AGENT_TICK});
        const struct agent_effect *stop = effect_of(&bench, AGENT_STOP, 0);
        killed = killed || (stop && stop->stop.grace_ns == 0);
    }
    assert_true(killed);
    desk_done(&bench.desk);
}

static void the_next_agent_goes_on(void **state)
{
    struct bench bench = {.count = 0};
    desk_init(&bench.desk);
    add(&bench, "main", CONTAINER_MAIN, RERUN_NEVER);
    add(&bench, "one", CONTAINER_INIT, RERUN_NEVER);
    add(&bench, "side", CONTAINER_SIDECAR, RERUN_ALWAYS);
    struct task_launch launch = launch_of(&bench);
    struct agent_event adopted = {.kind = AGENT_ADOPTED};
    adopted.adopted.task = TASK;
    adopted.adopted.name = STR("pod");
    adopted.adopted.launch = &launch;
    step(&bench, adopted);
    bench.run[2] = 4;
    started(&bench, 2); /* no record of the init container: it did its work */
    bench.live[2] = true;
    assert_int_equal(bench.launches, 0);
    step(&bench, (struct agent_event){.kind = AGENT_BOOT});
    assert_int_equal(bench.launches, 0); /* before a controller knows our tether nothing starts */
    welcome(&bench);
    /* The controller may have given the name to another machine: what it says to our Hello comes first. */
    assert_int_equal(bench.launches, 0);
    tick_to(&bench, bench.desk.now_ns + 2 * NS_PER_SECOND);
    assert_true(bench.live[0] && !bench.live[1]);
    assert_int_equal(bench.launches, 1);
    started(&bench, 0);
    assert_int_equal(report(&bench)->containers[2].restarts, 4);
    desk_done(&bench.desk);
}

static void the_fence_kills_all_and_nothing_starts_again(void **state)
{
    struct bench bench = {.count = 0};
    open_bench(&bench);
    add(&bench, "main", CONTAINER_MAIN, RERUN_ALWAYS);
    add(&bench, "other", CONTAINER_MAIN, RERUN_ALWAYS);
    add(&bench, "side", CONTAINER_SIDECAR, RERUN_ALWAYS);
    start(&bench);
    started(&bench, 2);
    started(&bench, 0);
    started(&bench, 1);
    bench.desk.now_ns = agent_fence(bench.desk.agent);
    step(&bench, (struct agent_event){.kind = AGENT_TICK});
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(effect_of(&bench, AGENT_STOP, i)->stop.grace_ns, 0);
    for (uint32_t i = 0; i < 3; i++)
        exited_as(&bench, i, (struct agent_exit){.exit_code = -1, .signal = SIGKILL, .fenced = true});
    assert_int_equal(bench.launches, 3);
    assert_false(agent_task_live(bench.desk.agent, TASK));
    desk_done(&bench.desk);
}

/* --- at random ------------------------------------------------------------------------------------ */

static void make_random_pod(struct bench *bench, struct rng *rng)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    size_t mains = (size_t)rng_range(rng, 1, 2), all = mains + (size_t)rng_range(rng, 0, MAX - 2);
    for (size_t i = 0; i < all; i++) {
        enum container_role role = i < mains              ? CONTAINER_MAIN
                                   : rng_range(rng, 0, 1) ? CONTAINER_INIT
                                                          : CONTAINER_SIDECAR;
        struct container_launch *container =
            add(bench, names[i], role,
                role == CONTAINER_SIDECAR ? RERUN_ALWAYS : (enum container_restart)rng_range(rng, 0, 2));
        for (int kind = 0; kind < PROBE_KINDS; kind++)
            if (role != CONTAINER_INIT && rng_range(rng, 0, 2) == 0)
                set_probe(container, (enum probe_kind)kind);
        if (rng_range(rng, 0, 3) == 0)
            container->pre_stop = (struct container_action){.kind = ACTION_SLEEP};
        if (rng_range(rng, 0, 3) == 0)
            container->post_start = (struct container_action){.kind = ACTION_SLEEP};
    }
}

static void random_event(struct bench *bench, struct rng *rng)
{
    uint32_t index = (uint32_t)rng_range(rng, 0, (int64_t)bench->count - 1);
    switch (rng_range(rng, 0, 9)) {
    case 0:
    case 1:
    case 2:
        if (bench->live[index])
            started(bench, index);
        break;
    case 3:
        if (bench->live[index])
            exited(bench, index, (int32_t)rng_range(rng, 0, 1));
        break;
    case 4:
    case 5:
    case 6:
        acted(bench, index, (enum container_act)rng_range(rng, 0, ACT_KINDS - 1), rng_range(rng, 0, 3) > 0);
        break;
    case 7:
        tick_to(bench, bench->desk.now_ns + rng_range(rng, 0, 12 * NS_PER_SECOND));
        break;
    case 8:
        if (rng_range(rng, 0, 9) == 0)
            step(bench, (struct agent_event){.kind = AGENT_DISCONNECTED});
        break;
    default:
        if (!agent_is_welcome(bench->desk.agent))
            welcome(bench);
    }
}

/* However it went: stopped, its processes end, and then so has the task, with nothing started any more. */
static void random_lives_end(void **state)
{
    struct rng rng;
    rng_seed(&rng, 4711);
    for (int round = 0; round < 400; round++) {
        struct bench bench = {.count = 0};
        open_bench(&bench);
        make_random_pod(&bench, &rng);
        start(&bench);
        for (int i = 0; i < 60; i++)
            random_event(&bench, &rng);
        tick_to(&bench, bench.desk.now_ns + 3 * NS_PER_SECOND);
        welcome(&bench);
        say(&bench, (struct from_controller){.kind = FROM_CONTROLLER_STOP, .stop = {TASK, 0}});
        uint32_t launches = bench.launches;
        for (uint32_t i = 0; i < bench.count; i++)
            if (bench.live[i])
                exited_as(&bench, i,
                          (struct agent_exit){.exit_code = -1, .signal = SIGKILL, .stopped = true});
        assert_false(agent_task_live(bench.desk.agent, TASK));
        assert_int_equal(bench.launches, launches);
        desk_done(&bench.desk);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_containers_run_one_after_the_other),
        cmocka_unit_test(a_failed_init_container_ends_the_task),
        cmocka_unit_test(a_sidecar_holds_up_and_is_stopped_last),
        cmocka_unit_test(restarts_back_off),
        cmocka_unit_test(a_rank_that_joined_ends_with_its_process),
        cmocka_unit_test(rules_restart_what_the_policy_would_not),
        cmocka_unit_test(probes_gate_and_kill),
        cmocka_unit_test(a_stop_runs_the_hook_within_the_grace),
        cmocka_unit_test(a_hook_that_hangs_is_cut_off),
        cmocka_unit_test(the_next_agent_goes_on),
        cmocka_unit_test(the_fence_kills_all_and_nothing_starts_again),
        cmocka_unit_test(random_lives_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
