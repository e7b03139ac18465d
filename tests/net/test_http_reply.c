/* HTTP/1.1 responses: the same header and body however the bytes are cut, and no answer from what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/http_reply.h"

/* The header, body and status of a response. */
struct seen {
    struct buf fields, body;
    size_t wanted; /* body bytes after which the reader has enough; 0: all */
    int code;
};

static void see_field(void *context, struct str name, struct str value)
{
    struct seen *seen = context;
    buf_printf(&seen->fields, STR_FORMAT "=" STR_FORMAT ";", STR_ARG(name), STR_ARG(value));
}

static bool see_body(void *context, int code, struct str bytes)
{
    struct seen *seen = context;
    seen->code = code;
    buf_add_str(&seen->body, bytes);
    return !seen->wanted || seen->body.len < seen->wanted;
}

static void forget(struct seen *seen)
{
    buf_done(&seen->fields);
    buf_done(&seen->body);
}

/* Feeds `text` in pieces; returns the last result, with the bytes that were used. */
static int feed(struct http_reply *reply, struct str text, size_t piece, struct seen *seen, size_t *ret_used)
{
    struct http_sink sink = {seen, see_field, see_body};
    int rc = 0;
    *ret_used = 0;
    while (rc == 0 && *ret_used < text.len && !http_reply_complete(reply)) {
        size_t left = text.len - *ret_used, used;
        rc = http_reply_take(reply, (struct str){text.data + *ret_used, left < piece ? left : piece}, &sink,
                             &used, NULL);
        *ret_used += rc < 0 ? 0 : used;
    }
    return rc;
}

static void check_reply(struct str text, int code, const char *body, bool keep_alive, const char *behind)
{
    for (size_t piece = 1; piece <= text.len; piece++) {
        struct seen seen = {0};
        struct http_reply reply;
        size_t used;
        http_reply_begin(&reply, false);
        assert_int_equal(feed(&reply, text, piece, &seen, &used), 0);
        assert_int_equal(http_reply_closed(&reply, NULL), 0);
        assert_int_equal(reply.code, code);
        assert_string_equal(seen.body.data ? seen.body.data : "", body);
        assert_int_equal(reply.keep_alive, keep_alive);
        assert_true(str_is((struct str){text.data + used, text.len - used}, behind));
        forget(&seen);
        http_reply_done(&reply);
    }
}

static void bodies_end_where_the_standard_says(void **state)
{
    (void)state;
    check_reply(STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP"), 200, "hello", true, "HTTP");
    check_reply(
        STR("HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0B;x=y\r\ndefghijklmn\r\n0\r\n"
            "Trailer: 1\r\n\r\nnext"),
        200, "abcdefghijklmn", true, "next");
    check_reply(STR("HTTP/1.0 404 Not Found\r\nServer: x\r\n\r\nuntil the end"), 404, "until the end", false,
                "");
    check_reply(STR("HTTP/1.1 200 OK\nConnection: close\nContent-Length: 2\n\nok"), 200, "ok", false, "");
    check_reply(STR("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nnext"), 204, "", true, "next");
    check_reply(STR("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), 200, "", true, "");
    check_reply(STR("HTTP/1.1 100 Continue\r\nA: b\r\n\r\nHTTP/1.1 201 Created\r\ncontent-length:1\r\n\r\nx"),
                201, "x", true, "");
}

static void a_head_has_no_body(void **state)
{
    (void)state;
    struct seen seen = {0};
    struct http_reply reply;
    size_t used;
    http_reply_begin(&reply, true);
    assert_int_equal(feed(&reply, STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), 7, &seen, &used), 0);
    assert_true(http_reply_complete(&reply));
    forget(&seen);
    http_reply_done(&reply);
}

static void fields_come_trimmed_and_without_those_of_interim_responses(void **state)
{
    (void)state;
    struct seen seen = {0};
    struct http_reply reply;
    size_t used;
    http_reply_begin(&reply, false);
    feed(&reply,
         STR("HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nWarning:  299 - \"x\" \r\nEmpty:\r\n"
             "Content-Length: 0\r\n\r\n"),
         3, &seen, &used);
    assert_string_equal(seen.fields.data, "Warning=299 - \"x\";Empty=;Content-Length=0;");
    forget(&seen);
    http_reply_done(&reply);
}

static void a_reader_that_has_enough_stops(void **state)
{
    (void)state;
    struct seen seen = {.wanted = 3};
    struct http_reply reply;
    size_t used;
    http_reply_begin(&reply, false);
    assert_int_equal(
        feed(&reply, STR("HTTP/1.1 400 Bad\r\nContent-Length: 9\r\n\r\nabcdefghi"), 1, &seen, &used), 1);
    assert_string_equal(seen.body.data, "abc");
    assert_int_equal(seen.code, 400);
    forget(&seen);
    http_reply_done(&reply);
}

static void malformed_answers_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "HTTP/2 200 OK\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 20 OK\r\n",
        "HTTP/1.1 099 OK\r\n",
        "HTTP/1.1 2000\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n",
        "HTTP/1.1 200 OK\r\n: no name\r\n",
        "HTTP/1.1 200 OK\r\nName : blank before the colon\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (size_t piece = 1; piece < 40; piece += 13) {
            struct seen seen = {0};
            struct http_reply reply;
            size_t used;
            http_reply_begin(&reply, false);
            assert_int_equal(feed(&reply, str_from(bad[i]), piece, &seen, &used), ERROR_CORRUPT);
            forget(&seen);
            http_reply_done(&reply);
        }
}

static void a_head_without_end_is_refused(void **state)
{
    (void)state;
    struct http_sink sink = {0};
    struct http_reply reply;
    size_t used;
    char line[1000] = "Name: ";
    int rc = 0;
    for (size_t i = 6; i + 1 < sizeof line; i++)
        line[i] = 'x';
    line[sizeof line - 1] = '\n';
    http_reply_begin(&reply, false);
    assert_int_equal(http_reply_take(&reply, STR("HTTP/1.1 200 OK\r\n"), &sink, &used, NULL), 0);
    for (int i = 0; i < 100 && rc == 0; i++)
        rc = http_reply_take(&reply, (struct str){line, sizeof line}, &sink, &used, NULL);
    assert_int_equal(rc, ERROR_LIMIT);
    http_reply_done(&reply);
}

static void a_connection_that_ends_early_is_told_apart(void **state)
{
    (void)state;
    struct seen seen = {0};
    struct http_reply reply;
    struct error error;
    size_t used;
    http_reply_begin(&reply, false);
    assert_int_equal(http_reply_closed(&reply, &error), ERROR_UNAVAILABLE);
    assert_string_equal(error.text, "the server closed the connection without an answer");
    feed(&reply, STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"), 9, &seen, &used);
    assert_int_equal(http_reply_closed(&reply, &error), ERROR_UNAVAILABLE);
    assert_string_equal(error.text, "the server closed the connection in the middle of its answer");
    forget(&seen);
    http_reply_done(&reply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_end_where_the_standard_says),
        cmocka_unit_test(a_head_has_no_body),
        cmocka_unit_test(fields_come_trimmed_and_without_those_of_interim_responses),
        cmocka_unit_test(a_reader_that_has_enough_stops),
        cmocka_unit_test(malformed_answers_are_refused),
        cmocka_unit_test(a_head_without_end_is_refused),
        cmocka_unit_test(a_connection_that_ends_early_is_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
