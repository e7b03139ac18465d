/* Answers and health of optical switches: the driver logs them before the core sees them. */
#include "drive/world.h"

#include "core/log/record.h"

static void last_record(const struct world *w, struct arena *arena, struct event *ret_event)
{
    assert_int_equal(record_decode(arena, buf_str(&vec_last(&w->log)), ret_event, NULL), 0);
}

static void an_answer_is_logged_whole(void **state)
{
    struct world w;
    struct arena arena = {0};
    struct event event;
    world_init(&w, NULL);
    struct circuit_result result = {{1, 65}, true, CIRCUIT_APPLIED};
    struct circuit present = {1, 65};
    char reason[2 * SWITCH_TEXT_MAX];
    memset(reason, 'x', sizeof reason);
    struct switch_report report = {.name = STR("pod-1-x5"),
                                   .operation = 7,
                                   .results = &result,
                                   .result_count = 1,
                                   .read = true,
                                   .present = &present,
                                   .present_count = 1,
                                   .reason = {reason, sizeof reason}};
    driver_switch_report(w.driver, &report);
    result.status = CIRCUIT_UNKNOWN; /* the driver has copies */
    present.minus = 66;
    driver_turn(w.driver);
    STORY(&w, "append 1; step ?; ");
    last_record(&w, &arena, &event);
    assert_int_equal(event.kind, EVENT_SWITCH_REPORT);
    assert_int_equal(event.switch_report.results[0].status, CIRCUIT_APPLIED);
    assert_int_equal(event.switch_report.present[0].minus, 65);
    assert_int_equal(event.switch_report.reason.len, SWITCH_TEXT_MAX);
    arena_done(&arena);
    world_done(&w);
}

static void health_is_logged_whole(void **state)
{
    struct world w;
    struct arena arena = {0};
    struct event event;
    world_init(&w, NULL);
    struct str alarm = STR("FAN:MJ");
    uint16_t bad_port = 17;
    struct switch_health health = {.name = STR("pod-1-x5"),
                                   .state = SWITCH_DEGRADED,
                                   .alarms = &alarm,
                                   .alarm_count = 1,
                                   .bad_ports = &bad_port,
                                   .bad_port_count = 1};
    driver_switch_health(w.driver, &health);
    driver_turn(w.driver);
    STORY(&w, "append 1; step ?; ");
    last_record(&w, &arena, &event);
    assert_int_equal(event.switch_health.state, SWITCH_DEGRADED);
    assert_true(str_is(event.switch_health.alarms[0], "FAN:MJ"));
    assert_int_equal(event.switch_health.bad_ports[0], 17);
    arena_done(&arena);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_logged_whole),
        cmocka_unit_test(health_is_logged_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
