/* The TL1 of Polatis switches: commands that are written, answers that are read or refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "host/fabric/tl1.h"

#define HEADER "\r\n\n   SW1 2026-11-28 05:00:00\r\n"

static void commands_carry_their_tag(void **state)
{
    struct buf out BUF_CLEANUP = {0};
    struct phx_crossconnect pairs[] = {{1, 65}, {2, 70}};
    tl1_put_pairs(&out, "ENT-PATCH", pairs, 2, true, 7);
    tl1_put_pairs(&out, "DLT-PATCH", pairs, 2, false, 8);
    assert_string_equal(out.data, "ENT-PATCH::1&2,65&70:7:;\nDLT-PATCH::1&2:8:;\n");
}

static void a_message_ends_outside_of_quotes(void **state)
{
    struct str bytes = STR(HEADER "M  7 COMPLD\r\n   \"a;b>\"\r\n; and more;");
    assert_int_equal(tl1_message_length(bytes), bytes.len - strlen(" and more;"));
    assert_int_equal(tl1_message_length(STR(HEADER "M  7 DENY\r\n /* no; */")), 0);
    assert_int_equal(tl1_message_length(STR("")), 0);
}

static void lines_of_an_answer_are_read(void **state)
{
    struct tl1_answer answer;
    struct str line;
    struct phx_crossconnect pair;
    assert_int_equal(
        tl1_read_answer(STR(HEADER "M  12 COMPLD\r\n   \"1,65\"\r\n   \"2,70\"\r\n>"), &answer, NULL), 0);
    assert_int_equal(answer.ctag, 12);
    assert_int_equal(answer.verdict, TL1_COMPLETED);
    assert_true(answer.continued && !answer.autonomous);
    assert_true(tl1_next_line(&answer.lines, &line) && tl1_read_pair(line, &pair));
    assert_int_equal(pair.b, 65);
    assert_true(tl1_next_line(&answer.lines, &line) && tl1_read_pair(line, &pair));
    assert_int_equal(pair.a, 2);
    assert_false(tl1_next_line(&answer.lines, &line));
}

static void a_refusal_says_why(void **state)
{
    struct tl1_answer answer;
    assert_int_equal(
        tl1_read_answer(STR(HEADER "M  3 DENY\r\n   SROF\r\n   /* Port is in use */\r\n;"), &answer, NULL),
        0);
    assert_int_equal(answer.verdict, TL1_DENIED);
    assert_string_equal(answer.code, "SROF");
    assert_true(str_is(answer.comment, "Port is in use"));
}

static void messages_of_the_switch_itself_are_told_apart(void **state)
{
    struct tl1_answer answer;
    static const char *const marks[] = {"A ", "* ", "**", "*C"};
    for (int i = 0; i < 4; i++) {
        char text[128];
        snprintf(text, sizeof text, HEADER "%s 5 REPT ALM PORT\r\n   \"65:MN,LOS,NSA\"\r\n;", marks[i]);
        assert_int_equal(tl1_read_answer(str_from(text), &answer, NULL), 0);
        assert_true(answer.autonomous);
    }
}

static void other_answers_are_refused(void **state)
{
    static const char *const texts[] = {"",
                                        ";",
                                        "M  1 COMPLD",
                                        HEADER ";",
                                        HEADER "M  x COMPLD\r\n;",
                                        HEADER "M  1 MAYBE\r\n;",
                                        HEADER "Z  1 COMPLD\r\n;",
                                        HEADER "M  99999999999 COMPLD\r\n;"};
    struct tl1_answer answer;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(tl1_read_answer(str_from(texts[i]), &answer, NULL), ERROR_CORRUPT);
}

static void power_shutters_and_alarms_are_read(void **state)
{
    uint32_t port;
    int32_t mdbm;
    bool closed, clear;
    struct phx_switch_alarm alarm;
    static const struct {
        const char *line;
        int32_t mdbm;
    } powers[] = {{"65:-3.42", -3420}, {"65:0.5", 500}, {"65:-60.00", -60000}, {"65:-0.05", -50}};
    for (size_t i = 0; i < sizeof powers / sizeof *powers; i++) {
        assert_true(tl1_read_power(str_from(powers[i].line), &port, &mdbm));
        assert_int_equal(port, 65);
        assert_int_equal(mdbm, powers[i].mdbm);
    }
    assert_false(tl1_read_power(STR("65:--3"), &port, &mdbm));
    assert_false(tl1_read_power(STR("65:1e9"), &port, &mdbm));
    assert_false(tl1_read_power(STR("65:-"), &port, &mdbm));
    assert_true(tl1_read_shutter(STR("3:CLOSED"), &port, &closed) && closed && port == 3);
    assert_false(tl1_read_shutter(STR("3:AJAR"), &port, &closed));
    assert_true(tl1_read_alarm(STR("65:MJ,MIRROR,SA"), &alarm, &clear) && !clear);
    assert_int_equal(alarm.severity, PHX_ALARM_MAJOR);
    assert_int_equal(alarm.port, 65);
    assert_string_equal(alarm.condition, "MIRROR");
    assert_true(tl1_read_alarm(STR("FAN-1:CR,EQPT"), &alarm, &clear) && alarm.port == 0);
    assert_true(tl1_read_alarm(STR("65:CL,LOS"), &alarm, &clear) && clear);
    assert_false(tl1_read_alarm(STR("65:XX,LOS"), &alarm, &clear));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_carry_their_tag),
        cmocka_unit_test(a_message_ends_outside_of_quotes),
        cmocka_unit_test(lines_of_an_answer_are_read),
        cmocka_unit_test(a_refusal_says_why),
        cmocka_unit_test(messages_of_the_switch_itself_are_told_apart),
        cmocka_unit_test(other_answers_are_refused),
        cmocka_unit_test(power_shutters_and_alarms_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
