/* Reports of daemons to the agent: bodies member by member, requests byte by byte. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "host/agent/report.h"

static int parse(struct arena *arena, const char *text, struct signal **ret_signals, size_t *ret_count,
                 struct error *error)
{
    return report_parse(arena, str_from(text), 4, 77, ret_signals, ret_count, error);
}

static void one_and_many(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct signal *signals;
    struct error error;
    size_t count;
    assert_int_equal(parse(&arena, "{\"code\":\"fan/slow\"}", &signals, &count, &error), 0);
    assert_int_equal(count, 1);
    assert_true(signals[0].assertion == SIGNAL_OCCUR && signals[0].severity == SEVERITY_MAJOR &&
                signals[0].chip == -1 && signals[0].first_ns == 77 && signals[0].count == 1);
    assert_int_equal(
        parse(&arena,
              "[{\"code\":\"a/b\",\"assertion\":\"once\",\"severity\":\"notice\",\"chip\":3,"
              "\"place\":\"p/1\",\"evidence\":\"caf\\u00e9\"},{\"code\":\"a/b\",\"assertion\":\"recover\","
              "\"severity\":\"critical\"}]",
              &signals, &count, &error),
        0);
    assert_int_equal(count, 2);
    assert_true(signals[0].assertion == SIGNAL_ONCE && signals[0].chip == 3 &&
                str_is(signals[0].place, "p/1"));
    assert_true(signals[1].assertion == SIGNAL_RECOVER && signals[1].severity == SEVERITY_CRITICAL);
    assert_int_equal(parse(&arena, "[]", &signals, &count, &error), 0);
    assert_int_equal(count, 0);
}

static void mistakes_have_places(void **state)
{
    static const char *const bad[][2] = {
        {"{", "1:"},
        {"7", "expected an object"},
        {"[{\"code\":\"a/b\"}, {}]", "signal 1: code"},
        {"{\"code\":\"A/b\"}", "code"},
        {"{\"code\":5}", "\"code\" is a text"},
        {"{\"code\":\"a/b\",\"colour\":\"red\"}", "unknown member \"colour\""},
        {"{\"code\":\"a/b\",\"chip\":4}", "no such chip"},
        {"{\"code\":\"a/b\",\"chip\":\"4\"}", "a whole number"},
        {"{\"code\":\"a/b\",\"assertion\":\"maybe\"}", "occur, recover or once"},
        {"{\"code\":\"a/b\",\n\"severity\":\"bad\"}", "2:12: "},
        {"{\"code\":\"a/b\",\"place\":\"\\u00e9\"}", "place"},
        {"{\"code\":\"a/b\",\"evidence\":\"\\u0000\"}", "NUL"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct signal *signals;
        struct error error;
        size_t count;
        assert_true(parse(&arena, bad[i][0], &signals, &count, &error) < 0);
        if (!strstr(error.text, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], error.text);
    }
    struct buf many BUF_CLEANUP = {0};
    struct arena arena ARENA_CLEANUP = {0};
    struct signal *signals;
    struct error error;
    size_t count;
    for (int i = 0; i <= REPORT_SIGNALS_MAX; i++)
        buf_add_str(&many, i ? STR(",{\"code\":\"a/b\"}") : STR("[{\"code\":\"a/b\"}"));
    buf_add_char(&many, ']');
    assert_int_equal(parse(&arena, many.data, &signals, &count, &error), ERROR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_and_many),
        cmocka_unit_test(mistakes_have_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
