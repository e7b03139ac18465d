/* What daemons say to the agent: bodies member by member, requests byte by byte. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "host/agent/http.h"
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

/* However a request is cut, it is whole with its last byte and not before. */
static void requests_come_in_pieces(void **state)
{
    static const char text[] = "POST /v1/faults?x=1 HTTP/1.1\r\nHost: a\r\ncontent-length: 5\r\n\r\n[1,2]";
    struct http_request request;
    for (size_t len = 0; len + 1 < sizeof text; len++)
        assert_int_equal(http_parse((struct str){text, len}, &request), 0);
    assert_int_equal(http_parse(str_from(text), &request), 1);
    assert_true(str_is(request.method, "POST") && str_is(request.path, "/v1/faults") &&
                str_is(request.body, "[1,2]"));
    assert_int_equal(http_parse(STR("GET /metrics HTTP/1.0\r\n\r\n"), &request), 1);
    assert_true(str_is(request.path, "/metrics") && request.body.len == 0);
}

static void what_is_no_request(void **state)
{
    static const struct {
        const char *text;
        int status;
    } bad[] = {{"GET\r\n\r\n", 400},
               {"GET x HTTP/1.1\r\n\r\n", 400},
               {"GET / SMTP/1.1\r\n\r\n", 400},
               {"POST / HTTP/1.1\r\nnonsense\r\n\r\n", 400},
               {"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400},
               {"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
               {"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
               {"POST / HTTP/1.1\r\nContent-Length: 262145\r\n\r\n", 413},
               {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411}};
    struct http_request request;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(http_parse(str_from(bad[i].text), &request), -bad[i].status);
    char *long_one = malloc(HTTP_HEAD_MAX + 2);
    memset(long_one, 'a', HTTP_HEAD_MAX + 2);
    assert_int_equal(http_parse((struct str){long_one, HTTP_HEAD_MAX + 2}, &request), -431);
    free(long_one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_and_many),
        cmocka_unit_test(mistakes_have_places),
        cmocka_unit_test(requests_come_in_pieces),
        cmocka_unit_test(what_is_no_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
