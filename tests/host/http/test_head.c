/* Heads of requests and bodies in chunks: what is whole, what is refused and with which status, however the
 * bytes are cut. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "host/http/head.h"

enum { HEAD_MAX = 1024 };

static struct http_head head;

static int parse(struct str bytes, size_t scanned)
{
    size_t len = 0;
    int rc = http_head_parse(bytes, scanned, HEAD_MAX, &head, &len);
    if (rc == 1)
        assert_true(len <= bytes.len);
    return rc;
}

/* However a head is cut, it is whole with its last byte and not before. */
static void test_heads_come_in_pieces(void **state)
{
    static const char text[] = "\r\nPOST /v1/faults?x=1 HTTP/1.1\r\nHost: a\r\ncontent-LENGTH:  5 \r\n"
                               "Connection: keep-alive, Close\r\nExpect: 100-continue\r\n"
                               "Accept: *\r\nOrigin: b\r\n\r\n"; /* names as long as "Expect" */
    for (size_t len = 0; len + 1 < sizeof text; len++)
        assert_int_equal(parse((struct str){text, len}, len ? len - 1 : 0), 0);
    assert_int_equal(parse(str_from(text), sizeof text - 2), 1);
    assert_true(str_is(head.method, "POST") && str_is(head.target, "/v1/faults?x=1") && head.minor == 1);
    assert_int_equal(head.content_length, 5);
    assert_true(!head.keeps && head.continues);
    assert_true(str_is(http_head_value(&head, "Content-Length"), "5"));
    assert_null(http_head_value(&head, "Range").data);
}

static void test_framing(void **state)
{
    assert_int_equal(parse(STR("GET / HTTP/1.0\r\n\r\n"), 0), 1);
    assert_true(head.minor == 0 && !head.keeps && head.content_length == 0);
    assert_int_equal(parse(STR("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"), 0), 1);
    assert_true(head.keeps && head.content_length == HTTP_CHUNKED);
    /* Twice the same length is one length (RFC 9110 section 8.6). */
    assert_int_equal(
        parse(STR("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\nContent-Length: 7\r\n\r\n"), 0), 1);
    assert_int_equal(head.content_length, 7);
}

#define POST "POST / HTTP/1.1\r\nHost: a\r\n"
static void test_refusals(void **state)
{
    static const struct {
        const char *text;
        int status;
    } bad[] = {{"GET\r\n\r\n", 400},
               {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400},
               {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
               {"GET / SMTP/1.1\r\n\r\n", 400},
               {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
               {"G@T / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
               {"GET /\t HTTP/1.1\r\nHost: a\r\n\r\n", 400},
               {"GET / HTTP/1.1\r\n\r\n", 400},                       /* no Host */
               {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400}, /* two */
               {POST "nonsense\r\n\r\n", 400},
               {POST "Name : value\r\n\r\n", 400},
               {POST ": value\r\n\r\n", 400},
               {POST "A: b\r\n folded\r\n\r\n", 400},
               {POST "A: b\nContent-Length: 3\r\n\r\n", 400}, /* a bare LF */
               {POST "A: b\rContent-Length: 3\r\n\r\n", 400}, /* a bare CR */
               {POST "Content-Length: -1\r\n\r\n", 400},
               {POST "Content-Length: -0\r\n\r\n", 400},
               {POST "Content-Length:\r\n\r\n", 400},
               {POST "Content-Length: 0x5\r\n\r\n", 400},
               {POST "Content-Length: 5 5\r\n\r\n", 400},
               {POST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", 400},
               {POST "Transfer-Encoding: chunked, identity\r\n\r\n", 501},
               {POST "Transfer-Encoding: \vchunked\r\n\r\n", 400},
               {POST "Transfer-Encoding\t: chunked\r\n\r\n", 400},
               {POST "Content-Length: +1\r\n\r\n", 400},
               {POST "Content-Length: 1, 1\r\n\r\n", 400},
               {POST "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
               {POST "Content-Length: 99999999999999999999\r\n\r\n", 400},
               {POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
               {POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
               {POST "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
               {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (parse(str_from(bad[i].text), 0) != -bad[i].status)
            fail_msg("%s: %d, not %d", bad[i].text, parse(str_from(bad[i].text), 0), bad[i].status);
    assert_int_equal(parse((struct str){POST "A: \0\r\n\r\n", sizeof POST + 7}, 0), -400);
}

/* As a client of a proxy asks: the target's host counts, whatever Host says. */
static void test_absolute_targets(void **state)
{
    static const struct {
        const char *text, *target, *host;
    } good[] = {
        {"GET http://b:1/c?d HTTP/1.1\r\nHost: a\r\n\r\n", "/c?d", "b:1"},
        {"GET HTTPS://[::1]:2/c//http://d/ HTTP/1.1\r\nX: y\r\nHost:\r\n\r\n", "/c//http://d/", "[::1]:2"},
        {"GET http://b HTTP/1.1\r\nHost: a\r\n\r\n", "/", "b"},
        {"GET http://b/ HTTP/1.0\r\n\r\n", "/", "b"},
        {"GET /http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", "/http://b/", "a"},
        {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "*", "a"}};
    static const char *const bad[] = {"http://",    "http:///",     "http://u@b/", "http://b?c",
                                      "http://b#c", "http://b%2f/", "http://b\\/"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(parse(str_from(good[i].text), 0), 1);
        assert_true(str_is(head.target, good[i].target));
        assert_true(str_is(http_head_value(&head, "Host"), good[i].host));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct buf text = {0};
        buf_printf(&text, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", bad[i]);
        if (parse(buf_str(&text), 0) != -400)
            fail_msg("%s", bad[i]);
        buf_done(&text);
    }
    assert_int_equal(parse(STR("GET http://b/ HTTP/1.1\r\n\r\n"), 0), -400); /* HTTP/1.1 has a Host */
}

/* The longest head is the same whether it comes at once or in pieces, of which one ends within its end. */
static void test_longest_heads(void **state)
{
    for (size_t len = HEAD_MAX - 8; len <= HEAD_MAX; len++) {
        char text[HEAD_MAX + 4];
        size_t end;
        memset(text, 'a', sizeof text);
        memcpy(text, "GET / HTTP/1.0\r\nA:", 18);
        memcpy(text + len, "\r\n\r\n", 4);
        int whole = parse((struct str){text, len + 4}, 0), part = parse((struct str){text, len + 3}, 0);
        int pieces =
            part < 0 ? part : http_head_parse((struct str){text, len + 4}, len + 3, HEAD_MAX, &head, &end);
        assert_int_equal(whole, len <= HEAD_MAX - 3 ? 1 : -431);
        assert_int_equal(pieces, whole);
    }
}

/* A head that is too long is refused before its end comes: by its target, or by its headers. */
static void test_long_heads(void **state)
{
    char text[HEAD_MAX + 2];
    memset(text, 'a', sizeof text);
    memcpy(text, "GET /", 5);
    assert_int_equal(parse((struct str){text, HEAD_MAX}, 0), 0);
    assert_int_equal(parse((struct str){text, HEAD_MAX + 1}, 0), -414);
    memcpy(text, "GET / HTTP/1.1\r\nA:", 18);
    assert_int_equal(parse((struct str){text, HEAD_MAX + 1}, 0), -431);
    struct buf many = {0};
    buf_add_str(&many, STR("GET / HTTP/1.1\r\nHost: a\r\n"));
    for (int i = 0; i < HTTP_HEADERS_MAX; i++)
        buf_add_str(&many, STR("A:\r\n"));
    buf_add_str(&many, STR("\r\n"));
    size_t len;
    assert_int_equal(http_head_parse(buf_str(&many), 0, many.len, &head, &len), -431);
    buf_done(&many);
}

/* Takes a body in pieces of `step` bytes; the result, the body in `ret_body`, and how many bytes it took. */
static int take(const char *text, size_t step, struct buf *ret_body, size_t *ret_used)
{
    struct http_chunks chunks = {0};
    size_t len = strlen(text);
    int rc = 0;
    buf_clear(ret_body);
    for (*ret_used = 0; rc == 0 && *ret_used < len;) {
        struct str piece = {text + *ret_used, len - *ret_used < step ? len - *ret_used : step}, data;
        size_t before = piece.len;
        while (rc == 0 && piece.len) {
            rc = http_chunks_take(&chunks, &piece, &data);
            buf_add_str(ret_body, data);
        }
        *ret_used += before - piece.len;
    }
    return rc;
}

static void test_chunks(void **state)
{
    static const char text[] =
        "5\r\nhello\r\n00C;name=\"x\"\r\n, world, all\r\n0\r\nTrailer: x\r\n\r\nGET /next";
    struct buf body = {0};
    size_t used;
    for (size_t step = 1; step < sizeof text; step++) {
        assert_int_equal(take(text, step, &body, &used), 1);
        assert_string_equal(body.data, "hello, world, all");
        assert_string_equal(text + used, "GET /next");
    }
    static const char *const bad[] = {
        "\r\n", "x\r\n", "-1\r\n", "5\nhello", "5\r\nhello!", "5\r\nhello\r0", "5 5\n", "5\rx", "0\r\n\n",
        "0\r\nA: b\n", "0\r\n\rx", "123456789abcdef01\r\n", "5\r\nhello\n",
        /* what follows the size is an extension, and neither it nor a trailer hides a control character */
        "5 5\r\nhello", "5\tx\r\nhello", "5;a=\vb\r\nhello", "0\r\nA: \vb\r\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (take(bad[i], 1, &body, &used) != -400)
            fail_msg("taken: %s", bad[i]);
    char zeros[2048];
    memset(zeros, '0', sizeof zeros - 1);
    zeros[sizeof zeros - 1] = 0;
    assert_int_equal(take(zeros, 1, &body, &used), -400); /* a size has an end */
    assert_int_equal(take("5 ;a\r\nhello\r\n0 \t\r\n\r\n", 1, &body, &used), 1);
    assert_string_equal(body.data, "hello");
    buf_done(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heads_come_in_pieces),
        cmocka_unit_test(test_framing),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_absolute_targets),
        cmocka_unit_test(test_longest_heads),
        cmocka_unit_test(test_long_heads),
        cmocka_unit_test(test_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
