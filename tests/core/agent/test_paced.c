/* Steps that stand in a task's log go with the heartbeats; those of a task that joined are its own. And what
 * ended a task is said with its end, again on each connection until it is durable. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/agent/desk.h"

static void meet(struct desk *desk)
{
    desk_step(desk, (struct agent_event){.kind = AGENT_CONNECTED});
    desk_welcome(desk);
}

static void run(struct desk *desk, obj_id task)
{
    struct from_controller start = {.kind = FROM_CONTROLLER_START};
    start.start = (struct task_launch){.task = task,
                                       .jobset = 1,
                                       .name = STR("t"),
                                       .argv = one_arg,
                                       .argc = 1,
                                       .restore_step = -1,
                                       .world = 1};
    desk_say(desk, start);
    struct agent_event started = {.kind = AGENT_TASK_STARTED};
    started.started.task = task;
    started.started.pid = 7;
    desk_step(desk, started);
}

static void pace(struct desk *desk, obj_id task, int64_t steps)
{
    struct agent_event event = {.kind = AGENT_TASK_PACED};
    event.paced.task = task;
    event.paced.step =
        (struct task_step){.step = steps, .source = STEP_COUNTED, .pace = {steps, steps * 100, steps * 60}};
    desk_step(desk, event);
}

static const struct task_step *sent_now(const struct desk *desk)
{
    for (size_t i = 0; i < desk->effects.list.len; i++) {
        const struct agent_effect *effect = &desk->effects.list.items[i];
        bool beats = effect->kind == AGENT_SEND &&
                     (effect->send.kind == FROM_AGENT_HEARTBEAT || effect->send.kind == FROM_AGENT_STEPS);
        if (beats && effect->send.heartbeat.step_count == 1)
            return effect->send.heartbeat.steps;
    }
    return NULL;
}

/* The steps that left with the last step, or leave within the next second; NULL: none. */
static const struct task_step *sent(struct desk *desk)
{
    const struct task_step *said = sent_now(desk);
    for (int i = 0; i < 20 && !said; i++) {
        desk_say(desk,
                 (struct from_controller){.kind = FROM_CONTROLLER_HEARTBEAT_ACK, .sent_ns = desk->now_ns});
        desk->now_ns += 60 * NS_PER_MS;
        desk_step(desk, (struct agent_event){.kind = AGENT_TICK});
        said = sent_now(desk);
    }
    return said;
}

static void steps_of_logs_are_sent(void **state)
{
    struct desk desk;
    desk_init(&desk);
    desk_step(&desk, (struct agent_event){.kind = AGENT_BOOT});
    meet(&desk);
    pace(&desk, 9, 1); /* of nobody */
    run(&desk, 9);
    pace(&desk, 9, 5);
    const struct task_step *said = sent(&desk);
    assert_non_null(said);
    assert_true(said->task == 9 && said->pace.steps == 5 && said->pace.elapsed_us == 500 &&
                said->pace.own_us == 300);
    struct agent_event join = {.kind = AGENT_CLIENT_JOIN};
    join.client.client = 1;
    join.client.task = 9;
    desk_step(&desk, join);
    pace(&desk, 9, 6);
    assert_null(sent(&desk)); /* it speaks for itself now */
    struct agent_event own = {.kind = AGENT_CLIENT_STEP};
    own.client.client = 1;
    own.client.step = (struct task_step){.step = 2, .pace = {1, 20, 10}};
    desk_step(&desk, own);
    said = sent(&desk);
    assert_true(said && said->step == 2 && said->pace.own_us == 10);
    desk_done(&desk);
}

static const struct task_report *end_of(const struct desk *desk)
{
    for (size_t i = 0; i < desk->effects.list.len; i++) {
        const struct agent_effect *effect = &desk->effects.list.items[i];
        if (effect->kind != AGENT_SEND)
            continue;
        bool hello = effect->send.kind == FROM_AGENT_HELLO;
        const struct task_report *reports = hello ? effect->send.hello.reports : effect->send.reports.items;
        size_t count = hello                                     ? effect->send.hello.report_count
                       : effect->send.kind == FROM_AGENT_REPORTS ? effect->send.reports.count
                                                                 : 0;
        for (size_t r = 0; r < count; r++)
            if (reports[r].kind == REPORT_EXITED)
                return &reports[r];
    }
    return NULL;
}

static void signatures_stay_until_forgotten(void **state)
{
    struct desk desk;
    desk_init(&desk);
    desk_step(&desk, (struct agent_event){.kind = AGENT_BOOT});
    meet(&desk);
    run(&desk, 9);
    char line[] = "ValueError: x";
    struct signature signature = {SIGNATURE_TRACEBACK, str_from(line)};
    struct agent_event ended = {.kind = AGENT_TASK_EXITED};
    ended.exited =
        (struct agent_exit){.task = 9, .exit_code = 1, .signatures = &signature, .signature_count = 1};
    desk_step(&desk, ended);
    memset(line, 'y', sizeof line - 1); /* it was copied */
    for (int i = 0; i < 2; i++) {
        const struct task_report *report = end_of(&desk);
        assert_true(report && report->signature_count == 1 &&
                    report->signatures[0].kind == SIGNATURE_TRACEBACK &&
                    str_is(report->signatures[0].line, "ValueError: x"));
        desk_step(&desk, (struct agent_event){.kind = AGENT_DISCONNECTED});
        desk.now_ns += NS_PER_SECOND;
        desk_step(&desk, (struct agent_event){.kind = AGENT_TICK});
        desk_step(&desk, (struct agent_event){.kind = AGENT_CONNECTED});
    }
    desk_done(&desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_logs_are_sent),
        cmocka_unit_test(signatures_stay_until_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
