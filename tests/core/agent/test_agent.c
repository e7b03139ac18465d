/* The machine's brain, in readable scenarios. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>

#include "core/agent/desk.h"

static void tick_to(struct desk *desk, int64_t now_ns)
{
    desk->now_ns = now_ns;
    desk_step(desk, (struct agent_event){.kind = AGENT_TICK});
}

/* The `index`-th effect of a kind; NULL when there are fewer. */
static const struct agent_effect *effect_at(const struct desk *desk, enum agent_effect_kind kind,
                                            size_t index)
{
    for (size_t i = 0; i < desk->effects.list.len; i++)
        if (desk->effects.list.items[i].kind == kind && index-- == 0)
            return &desk->effects.list.items[i];
    return NULL;
}

static const struct agent_effect *effect_of(const struct desk *desk, enum agent_effect_kind kind)
{
    return effect_at(desk, kind, 0);
}

/* The report about a task in the last step's messages; NULL: none. */
static const struct task_report *report_of(const struct desk *desk, obj_id task, enum report_kind kind)
{
    const struct from_agent *reports = desk_sent(desk, FROM_AGENT_REPORTS),
                            *hello = desk_sent(desk, FROM_AGENT_HELLO);
    for (size_t i = 0; reports && i < reports->reports.count; i++)
        if (reports->reports.items[i].task == task && reports->reports.items[i].kind == kind)
            return &reports->reports.items[i];
    for (size_t i = 0; hello && i < hello->hello.report_count; i++)
        if (hello->hello.reports[i].task == task && hello->hello.reports[i].kind == kind)
            return &hello->hello.reports[i];
    return NULL;
}

static void meet(struct desk *desk)
{
    desk_step(desk, (struct agent_event){.kind = AGENT_BOOT});
    assert_non_null(effect_of(desk, AGENT_CONNECT));
    desk_step(desk, (struct agent_event){.kind = AGENT_CONNECTED});
    assert_non_null(desk_sent(desk, FROM_AGENT_HELLO));
    desk_welcome(desk);
    assert_true(agent_is_welcome(desk->agent));
}

static void start(struct desk *desk, obj_id task, obj_id jobset, int32_t attempt, uint64_t chips)
{
    struct task_launch launch = {.task = task,
                                 .jobset = jobset,
                                 .attempt = attempt,
                                 .name = STR("work-0-abcde"),
                                 .argv = one_arg,
                                 .argc = 1,
                                 .chips = chips,
                                 .grace_ns = 5 * NS_PER_SECOND,
                                 .restore_step = -1,
                                 .world = 1};
    desk_say(desk, (struct from_controller){.kind = FROM_CONTROLLER_START, .start = launch});
}

static void started(struct desk *desk, obj_id task)
{
    desk_step(desk, (struct agent_event){.kind = AGENT_TASK_STARTED, .started = {task, 100, WALL_NS}});
}

static void exited(struct desk *desk, obj_id task, int32_t code)
{
    desk_step(desk,
              (struct agent_event){.kind = AGENT_TASK_EXITED, .exited = {.task = task, .exit_code = code}});
}

/* --- scenarios ------------------------------------------------------------------------------------ */

static void test_life_of_a_task(void **state)
{
    struct desk desk;
    desk_init(&desk);
    meet(&desk);
    start(&desk, 11, 1, 0, 3);
    assert_non_null(effect_of(&desk, AGENT_LAUNCH));
    assert_int_equal(agent_busy_chips(desk.agent), 3);
    start(&desk, 11, 1, 0, 3); /* twice is harmless */
    assert_null(effect_of(&desk, AGENT_LAUNCH));
    started(&desk, 11);
    assert_int_equal(report_of(&desk, 11, REPORT_STARTED)->pid, 100);
    exited(&desk, 11, 3);
    assert_int_equal(report_of(&desk, 11, REPORT_EXITED)->exit_code, 3);
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_REPORTS_ACK, .number = 99});
    desk_step(&desk, (struct agent_event){.kind = AGENT_DISCONNECTED}); /* until FORGET every Hello says it */
    tick_to(&desk, agent_deadline(desk.agent));
    assert_non_null(effect_of(&desk, AGENT_CONNECT));
    desk_step(&desk, (struct agent_event){.kind = AGENT_CONNECTED});
    assert_int_equal(report_of(&desk, 11, REPORT_EXITED)->exit_code, 3);
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_WELCOME,
                                             .welcome = {.epoch = 5,
                                                         .lease_ns = LEASE_NS,
                                                         .heartbeat_ns = NS_PER_SECOND,
                                                         .cluster = DESK_CLUSTER,
                                                         .version = WIRE_VERSION}});
    assert_null(desk_sent(&desk, FROM_AGENT_REPORTS));
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_FORGET, .task = 11});
    assert_int_equal(effect_of(&desk, AGENT_FORGET)->task, 11);
    desk_done(&desk);
}

static void test_lease(void **state)
{
    struct desk desk;
    desk_init(&desk);
    int64_t hello_ns = desk.now_ns;
    meet(&desk);
    int64_t fence_ns = hello_ns + LEASE_NS - AGENT_KILL_ALLOWANCE_NS;
    assert_int_equal(effect_of(&desk, AGENT_FENCE)->fence_ns, fence_ns);
    start(&desk, 11, 1, 0, 1);
    assert_null(effect_of(&desk, AGENT_FENCE));
    tick_to(&desk, agent_deadline(desk.agent));
    const struct from_agent *heartbeat = desk_sent(&desk, FROM_AGENT_HEARTBEAT);
    assert_non_null(heartbeat);
    int64_t sent_ns = heartbeat->heartbeat.sent_ns;
    assert_int_equal(sent_ns, desk.now_ns);
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_HEARTBEAT_ACK,
                                             .sent_ns = sent_ns + 1}); /* never sent */
    assert_int_equal(agent_fence(desk.agent), fence_ns);
    desk.now_ns += 200 * NS_PER_MS; /* the answer's delay does not lengthen the lease */
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_HEARTBEAT_ACK, .sent_ns = sent_ns});
    fence_ns = sent_ns + LEASE_NS - AGENT_KILL_ALLOWANCE_NS;
    assert_int_equal(effect_of(&desk, AGENT_FENCE)->fence_ns, fence_ns);
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_HEARTBEAT_ACK,
                                             .sent_ns = hello_ns}); /* late: not back */
    assert_int_equal(agent_fence(desk.agent), fence_ns);
    while (agent_deadline(desk.agent) < fence_ns) {
        tick_to(&desk, agent_deadline(desk.agent));
        assert_null(effect_of(&desk, AGENT_STOP));
    }
    tick_to(&desk, fence_ns);
    assert_int_equal(effect_of(&desk, AGENT_STOP)->stop.grace_ns, 0);
    assert_non_null(effect_of(&desk, AGENT_CLOSE));
    exited(&desk, 11, -1);
    tick_to(&desk, agent_deadline(desk.agent));
    desk_step(&desk, (struct agent_event){.kind = AGENT_CONNECTED});
    assert_true(report_of(&desk, 11, REPORT_EXITED)->fenced);
    desk_done(&desk);
}

static void test_clocks_are_compared(void **state)
{
    struct desk desk;
    desk_init(&desk);
    meet(&desk);
    tick_to(&desk, agent_deadline(desk.agent));
    struct from_controller ack = {.kind = FROM_CONTROLLER_HEARTBEAT_ACK,
                                  .sent_ns = desk_sent(&desk, FROM_AGENT_HEARTBEAT)->heartbeat.sent_ns};
    desk_say(&desk, ack); /* of a controller that does not say */
    assert_null(effect_of(&desk, AGENT_CLOCK));
    int64_t middle_ns = desk.now_ns + 40 * NS_PER_MS;
    desk.now_ns += 80 * NS_PER_MS;
    ack.clock_ns = WALL_NS + middle_ns + 700 * NS_PER_MS;
    desk_say(&desk, ack);
    assert_int_equal(effect_of(&desk, AGENT_CLOCK)->clock.ahead_ns, -700 * NS_PER_MS);
    assert_int_equal(effect_of(&desk, AGENT_CLOCK)->clock.error_ns, 40 * NS_PER_MS);
    ack.sent_ns = desk.now_ns; /* never sent: it measures nothing */
    desk_say(&desk, ack);
    assert_null(effect_of(&desk, AGENT_CLOCK));
    desk_done(&desk);
}

static void test_order_on_chips(void **state)
{
    struct desk desk;
    desk_init(&desk);
    meet(&desk);
    start(&desk, 11, 1, 0, 3);
    started(&desk, 11);
    start(&desk, 12, 2, 0, 2); /* nobody told 11 to stop */
    const struct task_report *failed = report_of(&desk, 12, REPORT_START_FAILED);
    assert_non_null(failed);
    assert_true(failed->message.len > 10);
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_STOP, .stop = {11, NS_PER_SECOND}});
    assert_int_equal(effect_of(&desk, AGENT_STOP)->stop.grace_ns, NS_PER_SECOND);
    start(&desk, 13, 1, 1, 1); /* waits for 11 */
    start(&desk, 14, 3, 0, 4); /* other chips: at once */
    assert_int_equal(effect_of(&desk, AGENT_LAUNCH)->launch->task, 14);
    start(&desk, 15, 1, 1, 2);
    assert_null(effect_of(&desk, AGENT_LAUNCH));
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_STOP,
                                             .stop = {15, 0}}); /* ends where it waits */
    assert_int_equal(report_of(&desk, 15, REPORT_EXITED)->signal, SIGTERM);
    exited(&desk, 11, 0);
    assert_int_equal(effect_of(&desk, AGENT_LAUNCH)->launch->task, 13);
    assert_null(effect_at(&desk, AGENT_LAUNCH, 1));
    desk_done(&desk);
}

static void test_attempts(void **state)
{
    struct desk desk;
    desk_init(&desk);
    meet(&desk);
    start(&desk, 11, 1, 4, 1);
    started(&desk, 11);
    start(&desk, 12, 1, 3, 2); /* older than one seen */
    assert_true(report_of(&desk, 12, REPORT_START_FAILED)->fenced);
    start(&desk, 13, 1, 5, 1); /* newer, same chips: the old one must go */
    assert_int_equal(effect_of(&desk, AGENT_STOP)->stop.task, 11);
    exited(&desk, 11, 0);
    assert_int_equal(effect_of(&desk, AGENT_LAUNCH)->launch->task, 13);
    struct arena arena ARENA_CLEANUP = {0};
    desk_step(&desk, (struct agent_event){.kind = AGENT_DISCONNECTED});
    tick_to(&desk, agent_deadline(desk.agent));
    desk_step(&desk, (struct agent_event){.kind = AGENT_CONNECTED});
    const struct hello *hello = &desk_sent(&desk, FROM_AGENT_HELLO)->hello;
    assert_int_equal(hello->seen_count, 1); /* attempt 0 is not worth a word */
    assert_true(hello->seen[0].jobset == 1 && hello->seen[0].attempt == 5 && hello->seen[0].epoch == 5);
    desk_welcome(&desk);
    start(&desk, 14, 2, 0, 0x10); /* a chip that is not here */
    assert_non_null(report_of(&desk, 14, REPORT_START_FAILED));
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_STOP, .stop = {777, 0}});
    assert_non_null(report_of(&desk, 777, REPORT_EXITED));
    desk_done(&desk);
}

static void test_old_controller(void **state)
{
    struct desk desk;
    desk_init(&desk);
    meet(&desk);
    desk_step(&desk, (struct agent_event){.kind = AGENT_DISCONNECTED});
    tick_to(&desk, agent_deadline(desk.agent));
    desk_step(&desk, (struct agent_event){.kind = AGENT_CONNECTED});
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_WELCOME,
                                             .welcome = {.epoch = 4,
                                                         .lease_ns = LEASE_NS,
                                                         .heartbeat_ns = NS_PER_SECOND,
                                                         .cluster = DESK_CLUSTER,
                                                         .version = WIRE_VERSION}});
    assert_false(agent_is_welcome(desk.agent));
    assert_non_null(effect_of(&desk, AGENT_CLOSE));
    desk_done(&desk);
}

/* The fence may pass before. */
static void again(struct desk *desk)
{
    do
        tick_to(desk, agent_deadline(desk->agent));
    while (!effect_of(desk, AGENT_CONNECT));
    desk_step(desk, (struct agent_event){.kind = AGENT_CONNECTED});
}

static void welcome_of(struct desk *desk, uint64_t cluster, uint64_t epoch)
{
    desk_say(desk, (struct from_controller){.kind = FROM_CONTROLLER_WELCOME,
                                            .welcome = {.epoch = epoch,
                                                        .lease_ns = LEASE_NS,
                                                        .heartbeat_ns = NS_PER_SECOND,
                                                        .cluster = cluster,
                                                        .version = WIRE_VERSION}});
}

static void test_cluster_is_learnt_once(void **state)
{
    struct desk desk;
    desk_init(&desk);
    desk_step(&desk, (struct agent_event){.kind = AGENT_BOOT});
    desk_step(&desk, (struct agent_event){.kind = AGENT_CONNECTED});
    assert_int_equal(desk_sent(&desk, FROM_AGENT_HELLO)->hello.cluster, 0);
    desk_welcome(&desk);
    assert_int_equal(desk.effects.list.items[0].kind, AGENT_KEEP_CLUSTER); /* ahead of all others */
    assert_int_equal(effect_of(&desk, AGENT_KEEP_CLUSTER)->cluster, DESK_CLUSTER);
    assert_int_equal(agent_cluster(desk.agent), DESK_CLUSTER);
    desk_step(&desk, (struct agent_event){.kind = AGENT_DISCONNECTED});
    again(&desk);
    assert_int_equal(desk_sent(&desk, FROM_AGENT_HELLO)->hello.cluster, DESK_CLUSTER);
    welcome_of(&desk, DESK_CLUSTER, 6); /* a later controller of the cluster, perhaps on a restored log */
    assert_true(agent_is_welcome(desk.agent));
    assert_null(effect_of(&desk, AGENT_KEEP_CLUSTER));
    desk_done(&desk);
}

/* The machine's tasks go on until the end of the lease that their own controller granted, or its return. */
static void test_controller_of_another_cluster(void **state)
{
    struct desk desk;
    desk_init(&desk);
    meet(&desk);
    start(&desk, 11, 1, 0, 3);
    started(&desk, 11);
    int64_t fence_ns = agent_fence(desk.agent);
    desk_step(&desk, (struct agent_event){.kind = AGENT_DISCONNECTED});
    int told = 0;
    for (int i = 0; i < 3; i++) {
        again(&desk);
        welcome_of(&desk, DESK_CLUSTER + 1, 9);
        told += effect_of(&desk, AGENT_STRANGER) != NULL;
        assert_false(agent_is_welcome(desk.agent));
        assert_non_null(effect_of(&desk, AGENT_CLOSE));
        assert_int_equal(agent_fence(desk.agent), fence_ns);
        desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_STOP, .stop = {.task = 11}});
        assert_null(effect_of(&desk, AGENT_STOP));
    }
    assert_int_equal(told, 1); /* at once, and not again so soon */
    again(&desk);
    welcome_of(&desk, DESK_CLUSTER, 5); /* what the other said of its epoch counts for nothing */
    assert_true(agent_is_welcome(desk.agent));
    assert_true(agent_fence(desk.agent) > fence_ns);
    assert_true(agent_task_live(desk.agent, 11));
    desk_done(&desk);
}

static void test_strangers_are_told_of_ever_more_rarely(void **state)
{
    struct desk desk;
    desk_init(&desk);
    meet(&desk);
    desk_step(&desk, (struct agent_event){.kind = AGENT_DISCONNECTED});
    int64_t first_ns = 0, second_ns = 0, third_ns = 0;
    while (third_ns == 0) { /* without tasks, too */
        again(&desk);
        desk_say(&desk, (struct from_controller){
                            .kind = FROM_CONTROLLER_REFUSED, .text = STR("no"), .cluster = DESK_CLUSTER + 1});
        assert_null(effect_of(&desk, AGENT_NOTE));
        if (effect_of(&desk, AGENT_STRANGER))
            *(first_ns == 0 ? &first_ns : second_ns == 0 ? &second_ns : &third_ns) = desk.now_ns;
    }
    assert_true(second_ns - first_ns >= 10 * NS_PER_SECOND && second_ns - first_ns < 20 * NS_PER_SECOND);
    assert_true(third_ns - second_ns >= 60 * NS_PER_SECOND && third_ns - second_ns < 80 * NS_PER_SECOND);
    again(&desk);
    desk_welcome(&desk);
    desk_step(&desk, (struct agent_event){.kind = AGENT_DISCONNECTED});
    again(&desk);
    welcome_of(&desk, DESK_CLUSTER + 2, 5);
    assert_int_equal(effect_of(&desk, AGENT_STRANGER)->cluster, DESK_CLUSTER + 2); /* news again */
    desk_done(&desk);
}

/* A controller that is asked by the tether first may refuse the machine before its session is open. */
static void test_refused_by_the_tether(void **state)
{
    struct desk desk;
    desk_init(&desk);
    desk_step(&desk, (struct agent_event){.kind = AGENT_BOOT});
    desk_say(&desk, (struct from_controller){
                        .kind = FROM_CONTROLLER_REFUSED, .text = STR("unknown"), .cluster = DESK_CLUSTER});
    assert_non_null(strstr(effect_of(&desk, AGENT_NOTE)->note.data, "refuses this machine: unknown"));
    assert_non_null(effect_of(&desk, AGENT_CLOSE));
    assert_int_equal(agent_cluster(desk.agent), 0); /* it is not that cluster's */
    desk_done(&desk);
}

static void meet_version(uint32_t version, bool welcome)
{
    struct desk desk;
    desk_init(&desk);
    desk_step(&desk, (struct agent_event){.kind = AGENT_BOOT});
    desk_step(&desk, (struct agent_event){.kind = AGENT_CONNECTED});
    assert_int_equal(desk_sent(&desk, FROM_AGENT_HELLO)->hello.version, WIRE_VERSION);
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_WELCOME,
                                             .welcome = {.epoch = 5,
                                                         .lease_ns = LEASE_NS,
                                                         .heartbeat_ns = NS_PER_SECOND,
                                                         .cluster = DESK_CLUSTER,
                                                         .version = version}});
    assert_int_equal(agent_is_welcome(desk.agent), welcome);
    assert_int_equal(effect_of(&desk, AGENT_CLOSE) == NULL, welcome);
    desk_done(&desk);
}

static void test_controllers_of_other_releases(void **state)
{
    meet_version(WIRE_VERSION - 1, true);
    meet_version(WIRE_VERSION + 1, true);
    meet_version(WIRE_VERSION + 2, false);
    meet_version(UINT32_MAX, false);
}

static void join(struct desk *desk, uint64_t client, obj_id task, int32_t attempt)
{
    desk_step(desk, (struct agent_event){.kind = AGENT_CLIENT_JOIN,
                                         .client = {.client = client, .task = task, .attempt = attempt}});
}

static void client_step(struct desk *desk, uint64_t client, int64_t number)
{
    struct agent_event event = {.kind = AGENT_CLIENT_STEP, .client = {.client = client}};
    event.client.step = (struct task_step){
        .step = number, .total = 100, .metrics = {{STR("loss"), 2500000}}, .metric_count = 1};
    desk_step(desk, event);
}

static void test_clients(void **state)
{
    struct desk desk;
    desk_init(&desk);
    meet(&desk);
    start(&desk, 11, 1, 2, 1);
    started(&desk, 11);
    join(&desk, 1, 11, 1);
    assert_int_equal(effect_of(&desk, AGENT_CLIENT_FENCED)->client.attempt, 2);
    join(&desk, 2, 99, 0);
    assert_non_null(effect_of(&desk, AGENT_CLIENT_FENCED));
    join(&desk, 3, 11, 2);
    assert_int_equal(effect_of(&desk, AGENT_CLIENT_WELCOME)->client.restore_step, -1);
    assert_non_null(report_of(&desk, 11, REPORT_JOINED));
    client_step(&desk, 3, 1); /* the first goes at once */
    const struct from_agent *steps = desk_sent(&desk, FROM_AGENT_STEPS);
    assert_int_equal(steps->heartbeat.steps[0].step, 1);
    assert_int_equal(steps->heartbeat.steps[0].metrics[0].micro, 2500000);
    client_step(&desk, 3, 2);
    assert_null(desk_sent(&desk, FROM_AGENT_STEPS));
    assert_true(agent_deadline(desk.agent) <= desk.now_ns + AGENT_STEPS_INTERVAL_NS);
    client_step(&desk, 1, 50); /* a stranger has no say */
    tick_to(&desk, desk.now_ns + AGENT_STEPS_INTERVAL_NS);
    steps = desk_sent(&desk, FROM_AGENT_STEPS);
    steps = steps ? steps : desk_sent(&desk, FROM_AGENT_HEARTBEAT);
    assert_int_equal(steps->heartbeat.steps[0].step, 2);
    desk_step(&desk, (struct agent_event){.kind = AGENT_CLIENT_SHARD_SAVED,
                                          .client = {.client = 3, .saved_step = 2}});
    assert_int_equal(report_of(&desk, 11, REPORT_SHARD_SAVED)->step, 2);
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_NOTICE,
                                             .notice = {NOTICE_CHECKPOINT_COMMITTED, 11, 2, 0}});
    assert_int_equal(effect_of(&desk, AGENT_CLIENT_COMMITTED)->client.step, 2);
    desk_say(&desk,
             (struct from_controller){.kind = FROM_CONTROLLER_NOTICE, .notice = {NOTICE_DRAIN, 11, 0, 9}});
    assert_int_equal(effect_of(&desk, AGENT_CLIENT_DRAIN)->client.deadline_ns, 9);
    static const char *const tables[] = {"4x4x8", "4x4x8 without x5", "4x4x8"};
    for (int i = 0; i < 3; i++) { /* the last one is old, and comes late */
        struct task_notice notice = {
            .kind = NOTICE_TABLES, .task = 11, .step = i == 2 ? 1 : 1 + i, .tables = str_from(tables[i])};
        desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_NOTICE, .notice = notice});
        assert_int_equal(effect_of(&desk, AGENT_CLIENT_TABLES) != NULL, i < 2);
    }
    join(&desk, 4, 11, 2); /* again, after a reconnect: it learns all of it */
    assert_int_equal(effect_of(&desk, AGENT_CLIENT_WELCOME)->client.restore_step, 2);
    assert_int_equal(effect_of(&desk, AGENT_CLIENT_TABLES)->tables.number, 2);
    assert_true(str_is(effect_of(&desk, AGENT_CLIENT_TABLES)->tables.name, "4x4x8 without x5"));
    assert_non_null(effect_of(&desk, AGENT_CLIENT_DRAIN));
    desk_step(&desk, (struct agent_event){
                         .kind = AGENT_DISCONNECTED}); /* the shard was not acknowledged: said again */
    tick_to(&desk, agent_deadline(desk.agent));
    desk_step(&desk, (struct agent_event){.kind = AGENT_CONNECTED});
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_WELCOME,
                                             .welcome = {.epoch = 5,
                                                         .lease_ns = LEASE_NS,
                                                         .heartbeat_ns = NS_PER_SECOND,
                                                         .cluster = DESK_CLUSTER,
                                                         .version = WIRE_VERSION}});
    assert_non_null(report_of(&desk, 11, REPORT_SHARD_SAVED));
    assert_int_equal(desk_sent(&desk, FROM_AGENT_REPORTS)->reports.number, 1);
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_REPORTS_ACK, .number = 1});
    client_step(&desk, 4, 3);
    exited(&desk, 11, 0); /* the last step stands before the end */
    desk_done(&desk);
}

static void test_adoption(void **state)
{
    struct desk desk;
    desk_init(&desk);
    struct task_launch launch = {
        .task = 11, .jobset = 1, .attempt = 3, .chips = 5, .restore_step = 8, .argc = 1};
    desk_step(&desk, (struct agent_event){.kind = AGENT_ADOPTED,
                                          .adopted = {11, 3, STR("work-0-abcde"), 55, WALL_NS, &launch}});
    desk_step(&desk,
              (struct agent_event){
                  .kind = AGENT_TASK_EXITED,
                  .exited = {.task = 12, .exit_code = 7, .finished_ns = WALL_NS, .message = STR("why")}});
    assert_int_equal(agent_deadline(desk.agent), INT64_MAX); /* not before BOOT */
    desk_step(&desk, (struct agent_event){.kind = AGENT_BOOT});
    desk_step(&desk, (struct agent_event){.kind = AGENT_CONNECTED});
    assert_int_equal(report_of(&desk, 11, REPORT_STARTED)->pid, 55);
    assert_int_equal(report_of(&desk, 12, REPORT_EXITED)->exit_code, 7);
    assert_int_equal(agent_busy_chips(desk.agent), 5);
    join(&desk, 1, 11, 3);
    assert_int_equal(effect_of(&desk, AGENT_CLIENT_WELCOME)->client.restore_step, 8);
    desk_done(&desk);
}

static void test_back_off(void **state)
{
    struct desk desk;
    desk_init(&desk);
    desk_step(&desk, (struct agent_event){.kind = AGENT_BOOT});
    int64_t longest_ns = 0;
    for (int i = 0; i < 30; i++) {
        assert_non_null(effect_of(&desk, AGENT_CONNECT));
        desk_step(&desk, (struct agent_event){.kind = AGENT_DISCONNECTED});
        int64_t wait_ns = agent_deadline(desk.agent) - desk.now_ns;
        assert_true(wait_ns > 0 && wait_ns <= 2 * NS_PER_SECOND);
        longest_ns = wait_ns > longest_ns ? wait_ns : longest_ns;
        assert_true(i > 0 || wait_ns <= 20 * NS_PER_MS);
        tick_to(&desk, agent_deadline(desk.agent));
    }
    assert_true(longest_ns >= NS_PER_SECOND);
    desk_done(&desk);
}

/* An agent that lost the leader of several controllers asks each of them, and waits only then. */
static void test_each_controller_is_tried_before_a_wait(void **state)
{
    struct desk desk;
    desk_init(&desk);
    agent_free(desk.agent);
    struct agent_config config = {.machine = STR("m-1"), .incarnation = 1, .chips = 4, .controllers = 3};
    desk.agent = agent_new(&config);
    desk_step(&desk, (struct agent_event){.kind = AGENT_BOOT});
    int64_t begin_ns = desk.now_ns;
    for (int round = 1; round <= 8; round++) {
        int64_t most_ns = INT64_C(20) * NS_PER_MS << (round - 1), wait_ns = 0;
        for (int place = 0; place < 3; place++) {
            assert_non_null(effect_of(&desk, AGENT_CONNECT));
            desk_step(&desk, (struct agent_event){.kind = AGENT_DISCONNECTED});
            wait_ns = agent_deadline(desk.agent) - desk.now_ns;
            assert_true(place == 2 || wait_ns <= 4 * NS_PER_MS);
            tick_to(&desk, agent_deadline(desk.agent));
        }
        most_ns = most_ns < 2 * NS_PER_SECOND ? most_ns : 2 * NS_PER_SECOND;
        assert_true(wait_ns >= most_ns / 2 && wait_ns <= most_ns);
        assert_true(round > 2 || desk.now_ns - begin_ns <= 76 * NS_PER_MS);
    }
    desk_done(&desk);
}

/* The leader of several controllers stands still: its kernel takes connections, and nobody reads Hello. No
 * task ends for that when another one leads. */
static void test_a_hello_without_an_answer(void **state)
{
    struct desk desk;
    desk_init(&desk);
    agent_free(desk.agent);
    struct agent_config config = {.machine = STR("m-1"), .incarnation = 1, .chips = 4, .controllers = 3};
    desk.agent = agent_new(&config);
    meet(&desk);
    start(&desk, 11, 1, 0, 1);
    started(&desk, 11);
    int64_t fence_ns = agent_fence(desk.agent);
    desk_step(&desk, (struct agent_event){.kind = AGENT_DISCONNECTED});
    tick_to(&desk, agent_deadline(desk.agent));
    desk_step(&desk, (struct agent_event){.kind = AGENT_CONNECTED});
    assert_int_equal(agent_deadline(desk.agent), desk.now_ns + LEASE_NS / 4);
    tick_to(&desk, agent_deadline(desk.agent));
    assert_non_null(effect_of(&desk, AGENT_CLOSE));
    tick_to(&desk, agent_deadline(desk.agent));
    assert_non_null(effect_of(&desk, AGENT_CONNECT));
    desk_step(&desk, (struct agent_event){.kind = AGENT_CONNECTED});
    assert_int_equal(report_of(&desk, 11, REPORT_STARTED)->task, 11);
    desk_welcome(&desk);
    assert_true(agent_is_welcome(desk.agent) && desk.now_ns < fence_ns && agent_fence(desk.agent) > fence_ns);
    desk_done(&desk);
}

static void errand(struct desk *desk, obj_id uid)
{
    struct errand_start order = {uid, ERRAND_HOOK, STR("{\"hook\":\"reset\"}"), 60 * NS_PER_SECOND};
    desk_say(desk, (struct from_controller){.kind = FROM_CONTROLLER_ERRAND_START, .errand_start = order});
}

static void errand_ended(struct desk *desk, obj_id uid, struct str output)
{
    struct errand_end end = {uid, ERRAND_FAILED, 3, output};
    desk_step(desk, (struct agent_event){.kind = AGENT_ERRAND_ENDED, .errand_ended = &end});
}

/* The agent repeats the end of an errand on every connection until the controller has it; a known errand is
 * not begun again. */
static void test_an_errand_is_told_until_it_is_acknowledged(void **state)
{
    struct desk desk;
    desk_init(&desk);
    meet(&desk);
    errand(&desk, 21);
    assert_true(effect_of(&desk, AGENT_ERRAND_START)->errand_start->errand == 21);
    assert_true(str_is(effect_of(&desk, AGENT_ERRAND_START)->errand_start->body, "{\"hook\":\"reset\"}"));
    errand(&desk, 21);
    assert_null(effect_of(&desk, AGENT_ERRAND_START));
    errand_ended(&desk, 22, STR("nobody asked"));
    assert_null(desk_sent(&desk, FROM_AGENT_REPORTS));
    errand_ended(&desk, 21, STR("no such device"));
    const struct reports *reports = &desk_sent(&desk, FROM_AGENT_REPORTS)->reports;
    assert_int_equal(reports->errand_count, 1);
    assert_int_equal(reports->errands[0].exit_code, 3);
    assert_true(str_is(reports->errands[0].output, "no such device"));
    desk_step(&desk, (struct agent_event){.kind = AGENT_DISCONNECTED});
    tick_to(&desk, agent_deadline(desk.agent));
    desk_step(&desk, (struct agent_event){.kind = AGENT_CONNECTED});
    const struct hello *hello = &desk_sent(&desk, FROM_AGENT_HELLO)->hello;
    assert_true(hello->errands && hello->errand_count == 1 && hello->errand_ids[0] == 21);
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_WELCOME,
                                             .welcome = {.epoch = 5,
                                                         .lease_ns = LEASE_NS,
                                                         .heartbeat_ns = NS_PER_SECOND,
                                                         .cluster = DESK_CLUSTER,
                                                         .version = WIRE_VERSION}});
    reports = &desk_sent(&desk, FROM_AGENT_REPORTS)->reports;
    assert_true(reports->errand_count == 1 && reports->errands[0].errand == 21);
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_REPORTS_ACK, .number = reports->number});
    errand(&desk, 21); /* gone from memory: it is another errand to us */
    assert_non_null(effect_of(&desk, AGENT_ERRAND_START));
    desk_done(&desk);
}

static void test_errands_wait_for_their_turn(void **state)
{
    struct desk desk;
    desk_init(&desk);
    meet(&desk);
    for (obj_id i = 1; i <= AGENT_ERRANDS_RUNNING_MAX; i++) {
        errand(&desk, i);
        assert_non_null(effect_of(&desk, AGENT_ERRAND_START));
    }
    errand(&desk, 100);
    errand(&desk, 101);
    errand(&desk, 102);
    assert_null(effect_of(&desk, AGENT_ERRAND_START));
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_ERRAND_STOP, .number = 100});
    assert_null(effect_of(&desk, AGENT_ERRAND_STOP)); /* it had not begun */
    errand_ended(&desk, 3, STR(""));
    assert_true(effect_of(&desk, AGENT_ERRAND_START)->errand_start->errand == 101);
    desk_say(&desk, (struct from_controller){.kind = FROM_CONTROLLER_ERRAND_STOP, .number = 5});
    assert_true(effect_of(&desk, AGENT_ERRAND_STOP)->task == 5);
    assert_true(effect_of(&desk, AGENT_ERRAND_START)->errand_start->errand == 102);
    errand_ended(&desk, 5, STR("too late"));
    assert_null(desk_sent(&desk, FROM_AGENT_REPORTS));
    desk_done(&desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life_of_a_task),
        cmocka_unit_test(test_lease),
        cmocka_unit_test(test_clocks_are_compared),
        cmocka_unit_test(test_order_on_chips),
        cmocka_unit_test(test_attempts),
        cmocka_unit_test(test_old_controller),
        cmocka_unit_test(test_cluster_is_learnt_once),
        cmocka_unit_test(test_controller_of_another_cluster),
        cmocka_unit_test(test_strangers_are_told_of_ever_more_rarely),
        cmocka_unit_test(test_refused_by_the_tether),
        cmocka_unit_test(test_controllers_of_other_releases),
        cmocka_unit_test(test_clients),
        cmocka_unit_test(test_adoption),
        cmocka_unit_test(test_back_off),
        cmocka_unit_test(test_each_controller_is_tried_before_a_wait),
        cmocka_unit_test(test_a_hello_without_an_answer),
        cmocka_unit_test(test_an_errand_is_told_until_it_is_acknowledged),
        cmocka_unit_test(test_errands_wait_for_their_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
