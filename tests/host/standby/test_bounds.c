/* The ends of requests and answers, and the line "Connection" in the head of an answer. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "host/standby/bounds.h"

static struct http_head scratch;

static struct request_bounds request_of(const char *text)
{
    struct request_bounds request;
    size_t len = 0;
    assert_int_equal(bounds_request_begin(str_from(text), 0, &scratch, &request, &len), 1);
    assert_int_equal(len, strlen(text));
    return request;
}

/* The whole answer, in pieces of `step` bytes; *ret_rest: bytes behind its end. */
static void pass(const char *request_text, const char *text, bool closes, size_t step, struct buf *out,
                 size_t *ret_rest)
{
    struct request_bounds request = request_of(request_text);
    struct answer_bounds answer;
    struct str rest = str_from(text);
    bounds_answer_begin(&answer, &request);
    while (rest.len && !bounds_answer_complete(&answer)) {
        size_t used = 0;
        struct str piece = {rest.data, rest.len < step ? rest.len : step};
        assert_int_equal(bounds_answer_take(&answer, piece, closes, out, &used), 0);
        rest = (struct str){rest.data + used, rest.len - used};
    }
    buf_add_char(out, 0);
    *ret_rest = rest.len;
    bounds_answer_done(&answer);
}

#define GET "GET /api HTTP/1.1\r\nHost: a\r\n\r\n"

static void check_pass(const char *request, const char *text, bool closes, const char *expected, size_t rest)
{
    for (size_t step = 1; step <= strlen(text); step++) {
        struct buf out BUF_CLEANUP = {0};
        size_t left;
        pass(request, text, closes, step, &out, &left);
        assert_string_equal(out.data, expected);
        assert_int_equal(left, rest);
    }
}

static void requests_end_by_their_heads(void **state)
{
    struct request_bounds none = request_of(GET);
    assert_true(none.whole && none.keeps && !none.head && !none.upgrades && !none.watches);
    struct request_bounds length = request_of("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n");
    size_t used = 0;
    assert_false(length.whole);
    assert_true(bounds_request_take(&length, STR("ab"), &used) && used == 2 && !length.whole);
    assert_true(bounds_request_take(&length, STR("cdGET"), &used) && used == 2 && length.whole);
    struct request_bounds chunks =
        request_of("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_true(bounds_request_take(&chunks, STR("2\r\nab\r\n0\r\n"), &used) && used == 10 && !chunks.whole);
    assert_true(bounds_request_take(&chunks, STR("\r\nGET"), &used) && used == 2 && chunks.whole);
    assert_false(request_of("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").keeps);
    assert_false(request_of("GET / HTTP/1.0\r\n\r\n").keeps);
    assert_true(request_of("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n").head);
    assert_true(request_of("GET /p?watch=true HTTP/1.1\r\nHost: a\r\n\r\n").watches);
    assert_true(request_of("GET /p?limit=5&watch=1&x=y HTTP/1.1\r\nHost: a\r\n\r\n").watches);
    assert_false(request_of("GET /p?follow=true HTTP/1.1\r\nHost: a\r\n\r\n").watches);
    assert_true(request_of("GET /x HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n").upgrades);
}

static void what_is_no_request_is_refused(void **state)
{
    struct request_bounds request;
    struct buf long_head BUF_CLEANUP = {0};
    size_t len;
    assert_int_equal(bounds_request_begin(STR("GET /api HT"), 0, &scratch, &request, &len), 0);
    assert_true(bounds_request_begin(STR("\x16\x03\x01"), 0, &scratch, &request, &len) < 0);
    assert_true(bounds_request_begin(STR("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"), 0, &scratch, &request,
                                     &len) < 0);
    buf_add_str(&long_head, STR("GET / HTTP/1.1\r\nHost: a\r\nX: "));
    while (long_head.len <= BOUNDS_HEAD_MAX)
        buf_add_char(&long_head, 'x');
    assert_true(bounds_request_begin(buf_str(&long_head), 0, &scratch, &request, &len) < 0);
}

static void answers_end_by_their_heads(void **state)
{
    check_pass(GET, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokmore", false,
               "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 4);
    check_pass(GET, "HTTP/1.1 204 No Content\r\n\r\n", false, "HTTP/1.1 204 No Content\r\n\r\n", 0);
    check_pass("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", false,
               "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", 0);
    check_pass(GET, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nX", false,
               "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 1);
    check_pass(GET, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", false,
               "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", 0);
}

static void the_connection_is_the_clients_own(void **state)
{
    /* The leader's connection ends, the client's stays. */
    check_pass(GET, "HTTP/1.1 200 OK\r\nconnection: close\r\nContent-Length: 2\r\n\r\nok", false,
               "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 0);
    /* The other way round. */
    check_pass(GET, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true,
               "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", 0);
    check_pass("GET / HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false,
               "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", 0);
    /* An answer that ends with its connection. */
    check_pass(GET, "HTTP/1.1 200 OK\r\n\r\nok", false, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok", 0);
    /* Another protocol's head is not touched. */
    check_pass("GET /x HTTP/1.1\r\nHost: a\r\nUpgrade: echo\r\n\r\n",
               "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\nraw", true,
               "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n", 3);
}

static void bad_answers_are_refused(void **state)
{
    static const char *const texts[] = {"SSH-2.0-x\r\n", "HTTP/1.1 101 Switching\r\n\r\n",
                                        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct request_bounds request = request_of(GET);
        struct answer_bounds answer;
        struct buf out BUF_CLEANUP = {0};
        size_t used;
        bounds_answer_begin(&answer, &request);
        assert_true(bounds_answer_take(&answer, str_from(texts[i]), false, &out, &used) < 0);
        bounds_answer_done(&answer);
    }
}

static void a_watch_ends_between_lines(void **state)
{
    struct request_bounds request = request_of("GET /p?watch=1 HTTP/1.1\r\nHost: a\r\n\r\n");
    struct answer_bounds answer;
    struct buf out BUF_CLEANUP = {0};
    size_t used;
    bounds_answer_begin(&answer, &request);
    assert_false(bounds_answer_end_watch(&answer, &out)); /* no head yet */
    assert_int_equal(bounds_answer_take(&answer,
                                        STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nli"),
                                        false, &out, &used),
                     0);
    assert_false(bounds_answer_end_watch(&answer, &out)); /* within a chunk */
    assert_int_equal(bounds_answer_take(&answer, STR("n\r\n"), false, &out, &used), 0);
    buf_clear(&out);
    assert_true(bounds_answer_end_watch(&answer, &out));
    assert_true(bounds_answer_complete(&answer));
    assert_true(str_is(buf_str(&out), "0\r\n\r\n"));
    bounds_answer_done(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_end_by_their_heads), cmocka_unit_test(what_is_no_request_is_refused),
        cmocka_unit_test(answers_end_by_their_heads),  cmocka_unit_test(the_connection_is_the_clients_own),
        cmocka_unit_test(bad_answers_are_refused),     cmocka_unit_test(a_watch_ends_between_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
