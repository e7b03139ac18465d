/* A controller's requests to optical switches: each is answered once, from the loop, with what the switch
 * holds; health follows what a switch does. The driver is the library of stub_switch.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <unistd.h>

#include "base/check.h"
#include "host/fabric/desk.h"
#include "stub_switch.h"

static char library[4096];
static stub_set_health_fn *set_health;
static stub_logins_fn *count_logins;

struct heard {
    uv_loop_t loop;
    struct desk *desk;
    int reports, healths;
    uint64_t operation;
    enum switch_outcome outcome;
    enum circuit_status statuses[8];
    struct circuit present[8];
    size_t present_count, result_count;
    bool read;
    char reason[SWITCH_TEXT_MAX];
    enum switch_state state; /* with what follows: of the health that was heard last */
    uint16_t bad_ports[8];
    size_t bad_port_count, alarm_count;
    char alarms[4][SWITCH_TEXT_MAX];
};

static void hear_report(void *context, const struct switch_report *report)
{
    struct heard *heard = context;
    heard->reports++;
    assert_true(report->operation > heard->operation);
    heard->operation = report->operation;
    heard->outcome = report->outcome;
    heard->read = report->read;
    heard->result_count = report->result_count;
    for (size_t i = 0; i < report->result_count; i++)
        heard->statuses[i] = report->results[i].status;
    heard->present_count = report->present_count;
    for (size_t i = 0; i < report->present_count; i++)
        heard->present[i] = report->present[i];
    snprintf(heard->reason, sizeof heard->reason, STR_FORMAT, STR_ARG(report->reason));
}

static void hear_health(void *context, const struct switch_health *health)
{
    struct heard *heard = context;
    heard->healths++;
    heard->state = health->state;
    assert_true(health->bad_port_count <= 8 && health->alarm_count <= 4);
    heard->bad_port_count = health->bad_port_count;
    for (size_t i = 0; i < health->bad_port_count; i++)
        heard->bad_ports[i] = health->bad_ports[i];
    heard->alarm_count = health->alarm_count;
    for (size_t i = 0; i < health->alarm_count; i++)
        snprintf(heard->alarms[i], sizeof heard->alarms[i], STR_FORMAT, STR_ARG(health->alarms[i]));
}

static void begin(struct heard *heard)
{
    struct desk_calls calls = {heard, hear_report, hear_health, 20};
    *heard = (struct heard){0};
    CHECK(uv_loop_init(&heard->loop) == 0);
    heard->desk = desk_new(&heard->loop, &calls);
}

static void end(struct heard *heard)
{
    desk_close(heard->desk);
    uv_run(&heard->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&heard->loop), 0);
}

static void on_late(uv_timer_t *timer)
{
    fail_msg("nothing was heard for ten seconds");
}

/* Runs the loop until *count is `wanted`. */
static void wait_until(struct heard *heard, const int *count, int wanted)
{
    uv_timer_t late;
    uv_timer_init(&heard->loop, &late);
    uv_timer_start(&late, on_late, 10000, 0);
    while (*count < wanted)
        uv_run(&heard->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&late, NULL);
    uv_run(&heard->loop, UV_RUN_NOWAIT);
}

static const char *called;               /* the name of the switch; NULL: its address */
static const struct switch_login *login; /* of requests; NULL: none */

static void ask(struct heard *heard, const char *address, uint64_t operation, const struct circuit *breaks,
                size_t break_count, const struct circuit *makes, size_t make_count)
{
    struct switch_apply apply = {.name = str_from(called ? called : address),
                                 .protocol = str_from(library),
                                 .address = str_from(address),
                                 .login = login,
                                 .operation = operation,
                                 .breaks = breaks,
                                 .makes = makes,
                                 .break_count = break_count,
                                 .make_count = make_count,
                                 .timeout_ns = 300 * (int64_t)1000000};
    desk_apply(heard->desk, &apply);
}

static const struct circuit two[] = {{1, 65}, {2, 66}}, other[] = {{1, 67}, {3, 68}};

static void a_request_is_carried_out_and_read_back(void **state)
{
    struct heard heard;
    begin(&heard);
    ask(&heard, "e1", 1, NULL, 0, two, 2);
    ask(&heard, "e1", 2, two, 1, NULL, 0);
    ask(&heard, "e1", 3, NULL, 0, NULL, 0);
    wait_until(&heard, &heard.reports, 3);
    assert_int_equal(heard.outcome, SWITCH_DONE);
    assert_true(heard.read && heard.present_count == 1);
    assert_true(circuit_equal(heard.present[0], two[1]));
    wait_until(&heard, &heard.healths, 1);
    assert_int_equal(heard.state, SWITCH_UP);
    end(&heard);
}

static void a_port_that_is_in_use_is_left_alone(void **state)
{
    struct heard heard;
    begin(&heard);
    ask(&heard, "f1", 1, NULL, 0, two, 2);
    ask(&heard, "f1", 2, NULL, 0, other, 2);
    wait_until(&heard, &heard.reports, 2);
    assert_int_equal(heard.outcome, SWITCH_PARTLY);
    assert_int_equal(heard.statuses[0], CIRCUIT_NOT_APPLIED);
    assert_int_equal(heard.statuses[1], CIRCUIT_APPLIED);
    assert_non_null(strstr(heard.reason, "another cross-connect"));
    ask(&heard, "f1", 3, NULL, 0, other, 1);
    wait_until(&heard, &heard.reports, 3);
    assert_int_equal(heard.outcome, SWITCH_REFUSED);
    ask(&heard, "f1", 4, NULL, 0, two, 2); /* there already */
    wait_until(&heard, &heard.reports, 4);
    assert_int_equal(heard.outcome, SWITCH_DONE);
    end(&heard);
}

static void a_switch_that_dies_is_unreachable_and_down(void **state)
{
    struct heard heard;
    begin(&heard);
    ask(&heard, "dies=1", 1, NULL, 0, two, 2);
    wait_until(&heard, &heard.reports, 1);
    assert_int_equal(heard.outcome, SWITCH_UNREACHABLE);
    assert_int_equal(heard.statuses[0], CIRCUIT_UNKNOWN);
    assert_false(heard.read);
    wait_until(&heard, &heard.healths, 1);
    assert_int_equal(heard.state, SWITCH_DOWN);
    end(&heard);
}

static void a_session_that_breaks_does_not_fail_a_request(void **state)
{
    struct heard heard;
    begin(&heard);
    ask(&heard, "breaks=1", 1, NULL, 0, two, 2);
    wait_until(&heard, &heard.reports, 1);
    assert_int_equal(heard.outcome, SWITCH_DONE);
    assert_int_equal(heard.present_count, 2);
    end(&heard);
}

static void a_desk_closes_while_a_switch_does_not_answer(void **state)
{
    struct heard heard;
    begin(&heard);
    ask(&heard, "dies=0", 1, NULL, 0, two, 2);
    wait_until(&heard, &heard.reports, 1);
    struct switch_apply apply = {
        .name = STR("dies=0"), .operation = 2, .timeout_ns = INT64_C(3600) * 1000000000};
    desk_apply(heard.desk, &apply);
    uint64_t begin_ns = uv_hrtime();
    end(&heard);
    assert_true(uv_hrtime() - begin_ns < UINT64_C(60) * 1000000000);
}

/* A desk that has joined two circuits and told the first health of their switch. */
static void begin_joined(struct heard *heard, const char *address)
{
    begin(heard);
    ask(heard, address, 1, NULL, 0, two, 2);
    wait_until(heard, &heard->reports, 1);
    wait_until(heard, &heard->healths, 1);
    assert_int_equal(heard->state, SWITCH_UP);
}

/* Changes a switch, and waits until its health is told: in this state, with these bad ports. */
static void change(struct heard *heard, const char *address, const struct stub_health *health,
                   enum switch_state state, const uint16_t *bad_ports, size_t count)
{
    int healths = heard->healths;
    set_health(address, health);
    wait_until(heard, &heard->healths, healths + 1);
    assert_int_equal(heard->healths, healths + 1);
    assert_int_equal(heard->state, state);
    assert_int_equal(heard->bad_port_count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(heard->bad_ports[i], bad_ports[i]);
}

/* Light counts at the far side of circuits, where it is measured. */
static void a_port_without_light_is_bad(void **state)
{
    struct heard heard;
    struct stub_health health = {.ports = {{.port = 65, .power_mdbm = DESK_DARK_MDBM - 1},
                                           {.port = 66, .power_mdbm = PHX_POWER_UNKNOWN},
                                           {.port = 2, .power_mdbm = -60000},
                                           {.port = 67, .power_mdbm = -60000}},
                                 .port_count = 4};
    begin_joined(&heard, "dark");
    change(&heard, "dark", &health, SWITCH_DEGRADED, (const uint16_t[]){65}, 1);
    health.ports[1].power_mdbm = -60000;
    change(&heard, "dark", &health, SWITCH_DEGRADED, (const uint16_t[]){65, 66}, 2);
    health.ports[0].power_mdbm = DESK_DARK_MDBM;
    change(&heard, "dark", &health, SWITCH_DEGRADED, (const uint16_t[]){66}, 1);
    ask(&heard, "dark", 2, two + 1, 1, NULL, 0); /* the circuit of port 66 */
    wait_until(&heard, &heard.healths, 5);
    assert_int_equal(heard.state, SWITCH_UP);
    assert_int_equal(heard.bad_port_count, 0);
    end(&heard);
}

static void failed_and_shut_ports_are_bad(void **state)
{
    struct heard heard;
    struct stub_health health = {.ports = {{.port = 7, .state = PHX_PORT_FAILED},
                                           {.port = 66, .state = PHX_PORT_TUNED, .shutter_closed = 1},
                                           {.port = 70, .state = PHX_PORT_BLOCKED, .shutter_closed = 1},
                                           {.port = 65, .state = PHX_PORT_TUNING}},
                                 .port_count = 4};
    begin_joined(&heard, "shut");
    change(&heard, "shut", &health, SWITCH_DEGRADED, (const uint16_t[]){7, 66}, 2);
    health.ports[1].shutter_closed = 0;
    change(&heard, "shut", &health, SWITCH_DEGRADED, (const uint16_t[]){7}, 1);
    health.ports[0].state = PHX_PORT_BLOCKED;
    change(&heard, "shut", &health, SWITCH_UP, NULL, 0);
    end(&heard);
}

static void alarms_are_told_and_make_their_ports_bad(void **state)
{
    struct heard heard;
    struct stub_health health = {.alarms = {{PHX_ALARM_CRITICAL, 0, "PSU"},
                                            {PHX_ALARM_MAJOR, 3, "MIRROR"},
                                            {PHX_ALARM_MINOR, 66, "LOS"}},
                                 .alarm_count = 3};
    begin_joined(&heard, "alarmed");
    change(&heard, "alarmed", &health, SWITCH_DEGRADED, (const uint16_t[]){3, 66}, 2);
    assert_int_equal(heard.alarm_count, 3);
    assert_string_equal(heard.alarms[0], "critical alarm PSU");
    assert_string_equal(heard.alarms[1], "major alarm MIRROR of port 3");
    assert_string_equal(heard.alarms[2], "minor alarm LOS of port 66");
    health.alarm_count = 1;
    change(&heard, "alarmed", &health, SWITCH_DEGRADED, NULL, 0);
    assert_int_equal(heard.alarm_count, 1);
    health.alarms[0].severity = PHX_ALARM_MAJOR; /* the same number of alarms, in other words */
    change(&heard, "alarmed", &health, SWITCH_DEGRADED, NULL, 0);
    assert_string_equal(heard.alarms[0], "major alarm PSU");
    health.alarms[0].severity = 1000; /* a driver that says what driver.h does not know */
    change(&heard, "alarmed", &health, SWITCH_DEGRADED, NULL, 0);
    assert_string_equal(heard.alarms[0], "unrated alarm PSU");
    health.alarm_count = 0;
    change(&heard, "alarmed", &health, SWITCH_UP, NULL, 0);
    assert_int_equal(heard.alarm_count, 0);
    end(&heard);
}

/* The next look opens another session, and finds the switch as it was: nothing is told until something else
 * has changed. */
static void a_session_that_breaks_between_looks_takes_no_switch_out(void **state)
{
    struct heard heard;
    struct stub_health health = {.alarms = {{PHX_ALARM_MAJOR, 0, "FAN"}}, .alarm_count = 1};
    begin_joined(&heard, "rests");
    change(&heard, "rests", &health, SWITCH_DEGRADED, NULL, 0);
    for (enum stub_break which = STUB_BREAKS_AT_PORTS; which <= STUB_BREAKS_AT_ALARMS; which++) {
        health.breaks = which;
        snprintf(health.alarms[0].condition, PHX_SWITCH_TEXT_MAX, "FAN %d", which);
        change(&heard, "rests", &health, SWITCH_DEGRADED, NULL, 0);
        assert_int_equal(heard.alarm_count, 1);
    }
    end(&heard);
}

/* One late answer is not told, two in a row are. */
static void a_switch_is_out_when_it_is_late_twice(void **state)
{
    struct heard heard;
    struct stub_health health = {
        .breaks = STUB_IS_LATE, .alarms = {{PHX_ALARM_MAJOR, 0, "FAN"}}, .alarm_count = 1};
    begin_joined(&heard, "late");
    change(&heard, "late", &health, SWITCH_DEGRADED, NULL, 0);
    health.breaks = STUB_HANGS;
    change(&heard, "late", &health, SWITCH_DOWN, NULL, 0);
    end(&heard);
}

/* The switch is told down, then up, so that the controller reads it and makes its circuits again. */
static void a_switch_that_restarted_without_its_circuits_was_out(void **state)
{
    struct heard heard;
    struct stub_health health = {.breaks = STUB_RESTARTS};
    begin_joined(&heard, "restarts");
    change(&heard, "restarts", &health, SWITCH_DOWN, NULL, 0);
    wait_until(&heard, &heard.healths, 3);
    assert_int_equal(heard.state, SWITCH_UP);
    end(&heard);
}

/* --- logins, and changed cluster files ----------------------------------------------------------------- */

static char secret_file[64];

static void write_secret(const char *text)
{
    FILE *file = fopen(secret_file, "we");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static int begin_login(void **state)
{
    static struct switch_login admin;
    snprintf(secret_file, sizeof secret_file, "/tmp/phalanx-desk-XXXXXX");
    int fd = mkstemp(secret_file);
    CHECK(fd >= 0 && close(fd) == 0);
    admin = (struct switch_login){STR("admin"), str_from(secret_file)};
    login = &admin;
    called = NULL;
    return 0;
}

static int end_login(void **state)
{
    unlink(secret_file);
    login = NULL;
    called = NULL;
    return 0;
}

/* Asks for two circuits, which fails; the reason has `why` in it, and not `never`. */
static void expect_no_login(struct heard *heard, const char *address, uint64_t operation, const char *why,
                            const char *never)
{
    int reports = heard->reports;
    ask(heard, address, operation, NULL, 0, two, 2);
    wait_until(heard, &heard->reports, reports + 1);
    assert_int_equal(heard->outcome, SWITCH_UNREACHABLE);
    assert_false(heard->read);
    assert_int_equal(heard->statuses[0], CIRCUIT_NOT_APPLIED);
    if (!strstr(heard->reason, why) || strstr(heard->reason, never))
        fail_msg("%s", heard->reason);
}

/* The file is read for each session, so a desk goes on when it is corrected. */
static void a_session_logs_in_with_the_first_line_of_the_file(void **state)
{
    struct heard heard;
    begin(&heard);
    unlink(secret_file);
    expect_no_login(&heard, "locked1", 1, secret_file, "right");
    assert_non_null(strstr(heard.reason, "No such file"));
    wait_until(&heard, &heard.healths, 1);
    assert_int_equal(heard.state, SWITCH_DOWN);
    write_secret("wronger\nright\n");
    expect_no_login(&heard, "locked1", 2, "wrong login; its password is that of /tmp/", "wronger");
    write_secret("\nright\n");
    expect_no_login(&heard, "locked1", 3, "1 to 63 bytes in the first line", "right");
    write_secret("0123456789012345678901234567890123456789012345678901234567890123\n");
    expect_no_login(&heard, "locked1", 4, "1 to 63 bytes in the first line", "0123456789");
    write_secret("right\r\nwrong\n");
    ask(&heard, "locked1", 5, NULL, 0, two, 2);
    wait_until(&heard, &heard.reports, 5);
    assert_int_equal(heard.outcome, SWITCH_DONE);
    while (heard.state != SWITCH_UP)
        wait_until(&heard, &heard.healths, heard.healths + 1);
    end(&heard);
}

/* Requests and looks are answered with the switch's refusal, and the switch sees each password once. */
static void a_refused_password_is_sent_once(void **state)
{
    struct heard heard;
    int before = count_logins();
    begin(&heard);
    write_secret("wronger\n");
    for (uint64_t operation = 1; operation <= 4; operation++) {
        if (operation == 3)
            write_secret("wrongest\n");
        expect_no_login(&heard, "locked3", operation, "wrong login; its password is that of /tmp/",
                        "wrongest");
    }
    end(&heard);
    assert_int_equal(count_logins(), before + 2);
}

/* Tells the desk the address of the switch "moves" as a changed cluster file has it. */
static void follow(struct heard *heard, const char *address, const struct switch_login *as)
{
    desk_follow(heard->desk, &(struct switch_apply){.name = STR("moves"),
                                                    .protocol = str_from(library),
                                                    .address = str_from(address),
                                                    .login = as});
}

/* Nothing is asked of a switch that is down: a desk finds out by itself that it can be reached again. */
static void a_changed_login_reaches_a_switch_that_is_down(void **state)
{
    struct heard heard;
    const struct switch_login *admin = login;
    begin(&heard);
    write_secret("right\n");
    called = "moves";
    login = NULL;
    follow(&heard, "locked2", admin); /* not asked yet: nothing to do */
    expect_no_login(&heard, "locked2", 1, "wrong login", "right");
    wait_until(&heard, &heard.healths, 1);
    assert_int_equal(heard.state, SWITCH_DOWN);
    follow(&heard, "locked2", admin);
    wait_until(&heard, &heard.healths, 2);
    assert_int_equal(heard.state, SWITCH_UP);
    end(&heard);
}

/* A switch without the circuits answers there: it is told down, then up, so that the controller reads it. */
static void a_changed_address_is_another_switch(void **state)
{
    struct heard heard;
    begin(&heard);
    called = "moves";
    login = NULL;
    ask(&heard, "here", 1, NULL, 0, two, 2);
    wait_until(&heard, &heard.reports, 1);
    wait_until(&heard, &heard.healths, 1);
    assert_int_equal(heard.state, SWITCH_UP);
    follow(&heard, "there", NULL);
    wait_until(&heard, &heard.healths, 2);
    assert_int_equal(heard.state, SWITCH_DOWN);
    wait_until(&heard, &heard.healths, 3);
    assert_int_equal(heard.state, SWITCH_UP);
    ask(&heard, "there", 2, NULL, 0, NULL, 0);
    wait_until(&heard, &heard.reports, 2);
    assert_true(heard.read && heard.present_count == 0);
    ask(&heard, "here", 3, NULL, 0, NULL, 0); /* a request says as well where the switch is */
    wait_until(&heard, &heard.reports, 3);
    assert_true(heard.read && heard.present_count == 2);
    end(&heard);
}

static void a_protocol_that_nobody_speaks_is_refused(void **state)
{
    struct heard heard;
    begin(&heard);
    snprintf(library, sizeof library, "telepathy");
    ask(&heard, "g1", 1, NULL, 0, two, 2);
    wait_until(&heard, &heard.reports, 1);
    assert_int_equal(heard.outcome, SWITCH_UNREACHABLE);
    assert_int_equal(heard.statuses[0], CIRCUIT_NOT_APPLIED);
    assert_non_null(strstr(heard.reason, "telepathy"));
    end(&heard);
}

int main(void)
{
    const char *build = getenv("PHX_BUILD");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_carried_out_and_read_back),
        cmocka_unit_test(a_port_that_is_in_use_is_left_alone),
        cmocka_unit_test(a_switch_that_dies_is_unreachable_and_down),
        cmocka_unit_test(a_session_that_breaks_does_not_fail_a_request),
        cmocka_unit_test(a_desk_closes_while_a_switch_does_not_answer),
        cmocka_unit_test(a_port_without_light_is_bad),
        cmocka_unit_test(failed_and_shut_ports_are_bad),
        cmocka_unit_test(alarms_are_told_and_make_their_ports_bad),
        cmocka_unit_test(a_session_that_breaks_between_looks_takes_no_switch_out),
        cmocka_unit_test(a_switch_is_out_when_it_is_late_twice),
        cmocka_unit_test(a_switch_that_restarted_without_its_circuits_was_out),
        cmocka_unit_test_setup_teardown(a_session_logs_in_with_the_first_line_of_the_file, begin_login,
                                        end_login),
        cmocka_unit_test_setup_teardown(a_refused_password_is_sent_once, begin_login, end_login),
        cmocka_unit_test_setup_teardown(a_changed_login_reaches_a_switch_that_is_down, begin_login,
                                        end_login),
        cmocka_unit_test_setup_teardown(a_changed_address_is_another_switch, begin_login, end_login),
        cmocka_unit_test(a_protocol_that_nobody_speaks_is_refused),
    };
    snprintf(library, sizeof library, "%s/stub_switch.so", build ? build : "build");
    void *stub = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    CHECK(stub);
    *(void **)&set_health = dlsym(stub, STUB_SET_HEALTH);
    *(void **)&count_logins = dlsym(stub, STUB_LOGINS);
    CHECK(set_health && count_logins);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
