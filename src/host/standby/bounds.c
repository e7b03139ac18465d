#include "host/standby/bounds.h"

#include "base/check.h"

/* --- requests ------------------------------------------------------------------------------------------ */

bool query_next(struct str *query, struct str *ret_key, struct str *ret_value)
{
    struct str word = *query, rest = {0};
    if (query->len == 0)
        return false;
    (void)str_cut(*query, '&', &word, &rest);
    *query = rest;
    *ret_key = word;
    *ret_value = (struct str){0};
    (void)str_cut(word, '=', ret_key, ret_value);
    return true;
}

/* Returns whether the query has "watch=true" or "watch=1". */
static bool target_watches(struct str target)
{
    struct str path, query = {0}, key, value;
    (void)str_cut(target, '?', &path, &query);
    while (query_next(&query, &key, &value))
        if (str_is(key, "watch") && (str_is(value, "true") || str_is(value, "1")))
            return true;
    return false;
}

int bounds_request_begin(struct str bytes, size_t scanned, struct http_head *scratch,
                         struct request_bounds *ret_request, size_t *ret_len)
{
    int rc = http_head_parse(bytes, scanned, BOUNDS_HEAD_MAX, scratch, ret_len);
    if (rc <= 0)
        return rc;
    if (str_is(scratch->method, "CONNECT"))
        return -501;
    bool chunked = scratch->content_length == HTTP_CHUNKED;
    *ret_request = (struct request_bounds){.keeps = scratch->keeps,
                                           .head = str_is(scratch->method, "HEAD"),
                                           .upgrades = http_head_value(scratch, "Upgrade").data != NULL,
                                           .watches = target_watches(scratch->target),
                                           .whole = scratch->content_length == 0,
                                           .chunked = chunked,
                                           .left = chunked ? 0 : (uint64_t)scratch->content_length};
    return 1;
}

bool bounds_request_take(struct request_bounds *request, struct str bytes, size_t *ret_used)
{
    struct str rest = bytes, data;
    int rc = 0;
    if (request->chunked) {
        while (rc == 0 && rest.len)
            rc = http_chunks_take(&request->chunks, &rest, &data);
        request->whole = rc > 0;
        *ret_used = bytes.len - rest.len;
        return rc >= 0;
    }
    *ret_used = bytes.len < request->left ? bytes.len : (size_t)request->left;
    request->left -= *ret_used;
    request->whole = request->left == 0;
    return true;
}

/* --- answers ------------------------------------------------------------------------------------------- */

void bounds_answer_begin(struct answer_bounds *answer, const struct request_bounds *request)
{
    *answer = (struct answer_bounds){.final = !request->keeps, .watches = request->watches};
    http_reply_begin(&answer->reply, request->head);
    answer->reply.may_switch = request->upgrades;
}

void bounds_answer_done(struct answer_bounds *answer)
{
    http_reply_done(&answer->reply);
    buf_done(&answer->head);
    *answer = (struct answer_bounds){0};
}

bool bounds_answer_complete(const struct answer_bounds *answer)
{
    return http_reply_complete(&answer->reply);
}

bool bounds_answer_switched(const struct answer_bounds *answer)
{
    return bounds_answer_complete(answer) && answer->reply.code == 101;
}

static bool is_connection_line(struct str line)
{
    struct str name, value;
    return str_cut(line, ':', &name, &value) && http_is_word(name, "Connection");
}

/* Passes on the final head, with our own Connection line before the empty line. */
static void pass_head(struct answer_bounds *answer, struct buf *out)
{
    struct str lines = buf_str(&answer->head), line, rest;
    bool switches = answer->reply.code == 101;
    while (str_cut(lines, '\n', &line, &rest)) {
        bool last = rest.len == 0;
        if (last && answer->closes && !switches)
            buf_add_str(out, STR("Connection: close\r\n"));
        if (switches || !is_connection_line(line))
            buf_add(out, line.data, line.len + 1);
        lines = rest;
    }
    answer->passed = true;
    buf_done(&answer->head);
}

static bool answer_in_head(const struct answer_bounds *answer)
{
    return answer->reply.state == HTTP_STATUS_LINE || answer->reply.state == HTTP_FIELDS;
}

/* Takes bytes of heads, up to the end of one line. */
static int take_head_part(struct answer_bounds *answer, struct str bytes, bool closes, struct buf *out,
                          size_t *ret_used)
{
    const struct http_sink nothing = {0};
    struct error error;
    const char *end = memchr(bytes.data, '\n', bytes.len);
    struct str part = {bytes.data, end ? (size_t)(end - bytes.data) + 1 : bytes.len};
    bool fields = answer->reply.state == HTTP_FIELDS;
    int rc = http_reply_take(&answer->reply, part, &nothing, ret_used, &error);
    if (rc < 0)
        return rc;
    CHECK(*ret_used == part.len);
    buf_add_str(&answer->head, part);
    if (fields && answer->reply.state == HTTP_STATUS_LINE) { /* an interim response */
        buf_add_str(out, buf_str(&answer->head));
        buf_clear(&answer->head);
    } else if (!answer_in_head(answer)) {
        answer->closes = closes || answer->final || answer->reply.state == HTTP_BODY_CLOSE;
        pass_head(answer, out);
    }
    return 0;
}

int bounds_answer_take(struct answer_bounds *answer, struct str bytes, bool closes, struct buf *out,
                       size_t *ret_used)
{
    const struct http_sink nothing = {0};
    struct error error;
    int rc = 0;
    *ret_used = 0;
    while (rc == 0 && *ret_used < bytes.len && !bounds_answer_complete(answer)) {
        struct str rest = {bytes.data + *ret_used, bytes.len - *ret_used};
        size_t used = 0;
        if (answer_in_head(answer)) {
            rc = take_head_part(answer, rest, closes, out, &used);
        } else {
            rc = http_reply_take(&answer->reply, rest, &nothing, &used, &error);
            if (rc == 0)
                buf_add(out, rest.data, used);
        }
        *ret_used += used;
    }
    return rc < 0 ? rc : 0;
}

bool bounds_answer_end_watch(struct answer_bounds *answer, struct buf *out)
{
    if (!answer->watches || !answer->passed || answer->reply.state != HTTP_CHUNK_SIZE ||
        answer->reply.line.len > 0)
        return false;
    buf_add_str(out, STR("0\r\n\r\n"));
    answer->reply.state = HTTP_COMPLETE;
    return true;
}
