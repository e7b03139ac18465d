/* http_reply.h - an HTTP/1.1 response, parsed as its bytes arrive (RFC 9112).
 *
 *     struct http_reply reply;
 *     http_reply_begin(&reply, false);
 *     while (!http_reply_complete(&reply)) {
 *         ... read some bytes; none, because the server closed: http_reply_closed(&reply, &error) ...
 *         rc = http_reply_take(&reply, bytes, &sink, &used, &error);
 *     }
 *     http_reply_done(&reply);
 *
 * The parser does no I/O and holds at most one line of the head. Interim responses (1xx) are skipped. The
 * body ends as section 6.3 says: by the method and the status, by chunks, by Content-Length, or by the end of
 * the connection.
 * Not thread-safe per object; objects are independent.
 *
 * Limits: HTTP_LINE_MAX bytes a line, HTTP_HEAD_MAX bytes of head and trailers together.
 */
#ifndef PHX_NET_HTTP_REPLY_H
#define PHX_NET_HTTP_REPLY_H

#include "base/error.h"
#include "base/str.h"

enum { HTTP_LINE_MAX = 16 * 1024, HTTP_HEAD_MAX = 64 * 1024 };

enum http_reply_state {
    HTTP_STATUS_LINE,
    HTTP_FIELDS,      /* the header's lines, up to the empty one */
    HTTP_BODY_LENGTH, /* `left` bytes of the body are to come */
    HTTP_BODY_CLOSE,  /* the body ends with the connection */
    HTTP_CHUNK_SIZE,
    HTTP_CHUNK_DATA, /* `left` bytes of the chunk are to come */
    HTTP_CHUNK_END,  /* the line end after a chunk's bytes */
    HTTP_TRAILERS,
    HTTP_COMPLETE,
};

struct http_reply {
    enum http_reply_state state;
    int code;          /* of the final response; 0 before its status line */
    bool bodiless;     /* the request was a HEAD */
    bool may_switch;   /* the request offered another protocol: 101 is a final response, without a body */
    bool keep_alive;   /* the connection can serve another request once this response is complete */
    bool chunked;      /* Transfer-Encoding */
    bool has_length;   /* Content-Length */
    uint64_t left;     /* bytes */
    size_t head_bytes; /* of status line, header and trailers so far */
    struct buf line;   /* the part of a line that has arrived */
};

/* Receives header and body from the parser. Both functions may be NULL; bytes are valid during the call
 * only. */
struct http_sink {
    void *context;
    void (*field)(void *context, struct str name, struct str value); /* a header line of the final response */
    bool (*body)(void *context, int code, struct str bytes);         /* false: stop */
};

/* Starts a parser. `head`: the response is that to a HEAD request, which has no body, whatever its header
 * says. */
void http_reply_begin(struct http_reply *reply, bool head);

/* Parses `bytes`, and stores how many of them belong to this response in *ret_used: all, unless it is
 * complete or the sink stopped it. Returns 1 when the sink's `body` returned false, 0 otherwise, or
 * ERROR_CORRUPT for bytes that are not an HTTP/1 response, and ERROR_LIMIT for a head that is too large. */
int http_reply_take(struct http_reply *reply, struct str bytes, const struct http_sink *sink,
                    size_t *ret_used, struct error *error);

/* Ends the response when the connection has ended. Returns 0 if the response is complete, in particular a
 * body that ends with the connection; otherwise ERROR_UNAVAILABLE. */
int http_reply_closed(struct http_reply *reply, struct error *error);

static inline bool http_reply_complete(const struct http_reply *reply)
{
    return reply->state == HTTP_COMPLETE;
}

void http_reply_done(struct http_reply *reply); /* releases the line's memory */

#endif
