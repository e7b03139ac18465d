#include "net/http_reply.h"

#include <strings.h>

#include "base/check.h"

void http_reply_begin(struct http_reply *reply, bool head)
{
    *reply = (struct http_reply){.bodiless = head};
}

void http_reply_done(struct http_reply *reply)
{
    buf_done(&reply->line);
}

static int malformed(struct error *error, const char *what, struct str line)
{
    return error_set(error, ERROR_CORRUPT, "the server's answer is not HTTP/1.1: %s: \"" STR_FORMAT "\"",
                     what, STR_ARG(str_head_utf8(line, 60)));
}

/* --- the head ---------------------------------------------------------------------------------- */

/* Takes a status line, "HTTP/1.1 200 OK"; the reason may be absent. */
static int take_status_line(struct http_reply *reply, struct str line, struct error *error)
{
    struct str version = STR("HTTP/1.");
    if (line.len < 12 || !str_starts(line, version) || line.data[8] != ' ' ||
        (line.len > 12 && line.data[12] != ' '))
        return malformed(error, "status line", line);
    int code = 0;
    for (size_t i = 9; i < 12; i++) {
        if (line.data[i] < '0' || line.data[i] > '9')
            return malformed(error, "status code", line);
        code = code * 10 + (line.data[i] - '0');
    }
    if (code < 100)
        return malformed(error, "status code", line);
    reply->code = code;
    reply->keep_alive = line.data[7] == '1';
    reply->chunked = reply->has_length = false;
    reply->state = HTTP_FIELDS;
    return 0;
}

static bool same_name(struct str a, const char *name)
{
    return a.len == strlen(name) && strncasecmp(a.data, name, a.len) == 0;
}

/* Takes a line of the header: records the fields that decide where the body ends, and passes every field to
 * the sink. */
static int take_field(struct http_reply *reply, struct str line, const struct http_sink *sink,
                      struct error *error)
{
    struct str name, value;
    if (!str_cut(line, ':', &name, &value) || name.len == 0 || name.data[name.len - 1] == ' ')
        return malformed(error, "header line", line);
    value = str_trim(value);
    if (same_name(name, "content-length")) {
        int64_t length;
        if (!str_to_i64(value, 0, INT64_MAX, &length) ||
            (reply->has_length && reply->left != (uint64_t)length))
            return malformed(error, "Content-Length", value);
        reply->has_length = true;
        reply->left = (uint64_t)length;
    } else if (same_name(name, "transfer-encoding")) {
        if (!same_name(value, "chunked"))
            return malformed(error, "Transfer-Encoding", value);
        reply->chunked = true;
    } else if (same_name(name, "connection")) {
        if (same_name(value, "close"))
            reply->keep_alive = false;
        else if (same_name(value, "keep-alive"))
            reply->keep_alive = true;
    }
    if (sink->field && reply->code >= 200)
        sink->field(sink->context, name, value);
    return 0;
}

/* Ends the header at its empty line, and decides how the body ends (RFC 9112 section 6.3). */
static int end_header(struct http_reply *reply, struct error *error)
{
    if (reply->code == 101 && reply->may_switch)
        reply->state = HTTP_COMPLETE;
    else if (reply->code == 101)
        return error_set(error, ERROR_CORRUPT, "the server switched protocols without being asked");
    else if (reply->code < 200) {
        reply->state = HTTP_STATUS_LINE;
        reply->code = 0;
    } else if (reply->bodiless || reply->code == 204 || reply->code == 304) {
        reply->state = HTTP_COMPLETE;
    } else if (reply->chunked) {
        reply->state = HTTP_CHUNK_SIZE;
    } else if (reply->has_length) {
        reply->state = reply->left ? HTTP_BODY_LENGTH : HTTP_COMPLETE;
    } else {
        reply->state = HTTP_BODY_CLOSE;
        reply->keep_alive = false;
    }
    return 0;
}

/* Takes a chunk size in hexadecimal, "1a2b;extension=value". */
static int take_chunk_size(struct http_reply *reply, struct str line, struct error *error)
{
    uint64_t size = 0;
    size_t i = 0;
    for (; i < line.len; i++) {
        char c = line.data[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                                : 16;
        if (digit == 16)
            break;
        if (size >> 56)
            return malformed(error, "chunk size", line);
        size = size << 4 | digit;
    }
    if (i == 0 || (i < line.len && line.data[i] != ';' && line.data[i] != ' ' && line.data[i] != '\t'))
        return malformed(error, "chunk size", line);
    reply->left = size;
    reply->state = size ? HTTP_CHUNK_DATA : HTTP_TRAILERS;
    return 0;
}

static int take_line(struct http_reply *reply, struct str line, const struct http_sink *sink,
                     struct error *error)
{
    switch (reply->state) {
    case HTTP_STATUS_LINE:
        return take_status_line(reply, line, error);
    case HTTP_FIELDS:
        return line.len ? take_field(reply, line, sink, error) : end_header(reply, error);
    case HTTP_CHUNK_SIZE:
        return take_chunk_size(reply, line, error);
    case HTTP_CHUNK_END:
        if (line.len)
            return malformed(error, "end of a chunk", line);
        reply->state = HTTP_CHUNK_SIZE;
        return 0;
    case HTTP_TRAILERS:
        if (!line.len)
            reply->state = HTTP_COMPLETE;
        return 0;
    case HTTP_BODY_LENGTH:
    case HTTP_BODY_CLOSE:
    case HTTP_CHUNK_DATA:
    case HTTP_COMPLETE:
        break;
    }
    CHECK(!"a state that has lines");
    return 0;
}

/* Takes bytes up to the next line end; a bare LF ends a line too (RFC 9112 section 2.2). */
static int take_part_of_line(struct http_reply *reply, struct str bytes, const struct http_sink *sink,
                             size_t *ret_used, struct error *error)
{
    const char *end = memchr(bytes.data, '\n', bytes.len);
    size_t used = end ? (size_t)(end - bytes.data) + 1 : bytes.len;
    bool is_chunk_line = reply->state == HTTP_CHUNK_SIZE || reply->state == HTTP_CHUNK_END;
    if (!is_chunk_line)
        reply->head_bytes += used;
    if (reply->line.len + used > HTTP_LINE_MAX || reply->head_bytes > HTTP_HEAD_MAX)
        return error_set(error, ERROR_LIMIT, "the head of the server's answer is longer than %d bytes",
                         reply->head_bytes > HTTP_HEAD_MAX ? HTTP_HEAD_MAX : HTTP_LINE_MAX);
    buf_add(&reply->line, bytes.data, used);
    *ret_used = used;
    if (!end)
        return 0;
    struct str line = {reply->line.data, reply->line.len - 1};
    if (line.len && line.data[line.len - 1] == '\r')
        line.len--;
    int rc = take_line(reply, line, sink, error);
    buf_clear(&reply->line);
    return rc;
}

/* --- the body ---------------------------------------------------------------------------------- */

/* Passes on as many bytes as belong to the body, or to the chunk. */
static int take_body(struct http_reply *reply, struct str bytes, const struct http_sink *sink,
                     size_t *ret_used)
{
    if (reply->state != HTTP_BODY_CLOSE) {
        if (bytes.len > reply->left)
            bytes.len = (size_t)reply->left;
        reply->left -= bytes.len;
        if (reply->left == 0)
            reply->state = reply->state == HTTP_CHUNK_DATA ? HTTP_CHUNK_END : HTTP_COMPLETE;
    }
    *ret_used = bytes.len;
    return sink->body && !sink->body(sink->context, reply->code, bytes);
}

int http_reply_take(struct http_reply *reply, struct str bytes, const struct http_sink *sink,
                    size_t *ret_used, struct error *error)
{
    size_t total = 0;
    int rc = 0;
    while (rc == 0 && total < bytes.len && reply->state != HTTP_COMPLETE) {
        struct str rest = {bytes.data + total, bytes.len - total};
        size_t used = 0;
        if (reply->state == HTTP_BODY_LENGTH || reply->state == HTTP_BODY_CLOSE ||
            reply->state == HTTP_CHUNK_DATA)
            rc = take_body(reply, rest, sink, &used);
        else
            rc = take_part_of_line(reply, rest, sink, &used, error);
        total += used;
    }
    CHECK(total <= bytes.len);
    *ret_used = total;
    return rc;
}

int http_reply_closed(struct http_reply *reply, struct error *error)
{
    if (reply->state == HTTP_BODY_CLOSE)
        reply->state = HTTP_COMPLETE;
    if (reply->state == HTTP_COMPLETE)
        return 0;
    if (reply->code == 0 && reply->line.len == 0)
        return error_set(error, ERROR_UNAVAILABLE, "the server closed the connection without an answer");
    return error_set(error, ERROR_UNAVAILABLE,
                     "the server closed the connection in the middle of its answer");
}
