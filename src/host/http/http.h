/* http.h - the HTTP/1.1 server of the API (host/api), and of an agent's metrics and fault reports (door.h).
 *
 *     http_new(loop, &options, &http, error)
 *     http_take(http, fd, peer)                          a connected socket; listener.h accepts them
 *       head complete -> owner.begins(context, connection, head) = the owner's `request`
 *       body          -> owner.body(request, bytes), as it arrives
 *       body complete -> owner.whole(request)
 *     in or after begins, body or whole, once, the owner answers:
 *       http_answer()   a code, header lines, a body
 *       http_stream()   a body that is produced in pieces; http_wake() when there is more
 *       http_upgrade()  101; the socket is lent to the owner until http_release()
 *       -> owner.ended(request)                          the answer was sent, or the connection is over
 *     -> owner.left(context, peer)                       the connection is over
 *     http_give_away(http, give, context)                later requests go to another server
 *       -> give(context, peer, fd, bytes)
 *
 *  A connection's life:
 *           ┌──────────────────── the answer has left ────────────────────┐
 *           ▼                                                             │
 *   new ─► HTTP_HEAD ─ head ─► HTTP_BODY ─ whole ─► HTTP_WAITS ─ answer ─► HTTP_SENDS ─ 101 ─► HTTP_LENT
 *           └───────────────────┴─ refused, or answered early ────────────►─┘
 *     and from each of them to HTTP_OVER: client gone, time over, "Connection: close"
 *
 * A request is read when the one before it has been answered, so clients may send several ahead. An idle
 * connection holds no buffers: bytes are read into one buffer of the server, and kept only if a request is
 * incomplete. Each connection is registered once, edge-triggered, in one epoll set that the loop polls, so a
 * request costs one recv and one sendmsg.
 *
 * A client that makes no progress is closed (`stages_s` of the options): silence, a head, a body, and an
 * answer that the client does not read have a time limit each. A request that waits for its owner, and a
 * stream that has nothing to send, have none; the server notices if their client disconnects. A connection
 * that is closed while its client may still send is drained for two seconds at most, so that no reset
 * overtakes the answer (RFC 9112 section 9.6).
 *
 * Call all functions on the loop's thread. Hooks are called by the loop, and by http_flush() and
 * http_close(). A hook may call every function but http_close() and http_take().
 */
#ifndef PHX_HOST_HTTP_HTTP_H
#define PHX_HOST_HTTP_HTTP_H

#include <uv.h>

#include "base/error.h"
#include "base/str.h"

enum {
    HTTP_HEADERS_MAX = 512,
    HTTP_CHUNKED = -1, /* content_length of a body in chunks */
};

struct http;            /* a server */
struct http_connection; /* valid until owner.left */

struct http_header {
    struct str name, value;
};

/* A request's head. Strings point into received bytes. */
struct http_head {
    struct str method, target;
    int minor;              /* the x of HTTP/1.x */
    int64_t content_length; /* HTTP_CHUNKED: unknown */
    bool keeps;             /* the connection may serve another request */
    bool continues;         /* the client waits for "100 Continue" before it sends the body */
    size_t header_count;
    struct http_header headers[HTTP_HEADERS_MAX];
};
/* Returns the value of the first header of this name; .data is NULL if there is none. */
struct str http_head_value(const struct http_head *head, const char *name);
/* Returns whether the text equals the word, ignoring the case of ASCII letters. */
bool http_is_word(struct str text, const char *word);

/* A body that is produced in pieces. */
struct http_source {
    void *context;
    /* Copies up to `max` bytes and returns their number. Returns 0 if there are none now (the owner calls
     * http_wake() later), a negative value at the end. */
    int64_t (*read)(void *context, char *data, size_t max);
};

enum http_stage { HTTP_STAGE_QUIET, HTTP_STAGE_HEAD, HTTP_STAGE_BODY, HTTP_STAGE_ANSWER, HTTP_STAGES };

struct http_options {
    void *context;
    /* Returns the owner's state of the request, which the other hooks get. `head` is valid during the call.
     * An answer that is given here, before the body has arrived, ends the connection. */
    void *(*begins)(void *context, struct http_connection *connection, const struct http_head *head);
    void (*body)(void *request, struct str bytes);
    void (*whole)(void *request);
    /* The client has disconnected before the answer. Returns whether the request may be dropped; `ended` then
     * follows. */
    bool (*gone)(void *request);
    /* Called after http_wake() on a request without an answer, which may be given now. NULL: never woken. */
    void (*woken)(void *request);
    void (*ended)(void *request);
    void (*left)(void *context, void *peer);
    /* Called after http_upgrade(), when the answer was sent. The socket is lent to the owner until
     * http_release(). `first`: bytes that the client has sent after its request. NULL: upgrades never
     * happen. */
    void (*upgraded)(void *request, int fd, struct str first);
    /* Called before and after each turn's work. May be NULL. */
    void (*turn_begins)(void *context);
    void (*turn_ends)(void *context);
    size_t head_bytes_max;
    int stages_s[HTTP_STAGES]; /* time limit of each stage; of HTTP_STAGE_ANSWER: without any progress */
};

int http_new(uv_loop_t *loop, const struct http_options *options, struct http **ret_http,
             struct error *error);
/* Closes every connection: calls `ended` and `left` for each. The loop calls `closed` (may be NULL) when the
 * memory is freed. */
void http_close(struct http *http, void (*closed)(void *context), void *context);

/* The fate of a connection that waits for a request, or has begun to send one. */
enum http_giving {
    HTTP_GIVEN,  /* the callee has taken over the socket; `left` follows */
    HTTP_SERVED, /* this server continues to serve it; answers say "Connection: close" */
    HTTP_CLOSED, /* this server closes it */
};
/* Decides about a connection. `bytes` is the received part of its next request. */
typedef enum http_giving http_give(void *context, void *peer, int fd, struct str bytes);
/* Has `give` called for each connection before the next head is read: soon, or once the current request is
 * answered. The loop calls `give`. A second call of this function asks about all connections again. */
void http_give_away(struct http *http, http_give *give, void *context);
/* Answers 503 to each request whose body has not arrived completely: such a request had no effect. */
void http_refuse_bodies(struct http *http);
/* Returns the number of connections with an unanswered request: its body arrives, or the owner is at work. */
size_t http_unanswered(const struct http *http);
size_t http_open(const struct http *http); /* number of connections */

/* Serves a connected, non-blocking socket, and owns the socket. `peer` is the owner's pointer; the server
 * passes it to `left` and does not use it afterwards. */
void http_take(struct http *http, int fd, void *peer);
void *http_peer(const struct http_connection *connection);
int http_socket(const struct http_connection *connection);

/* Answer a request. `lines` are header lines, each with its CRLF; Content-Length, Transfer-Encoding, Date and
 * Connection are added. *body is moved, and not sent if the method or the code allows no body. The source
 * must stay valid until `ended`. */
void http_answer(struct http_connection *connection, int code, struct str lines, struct buf *body);
void http_stream(struct http_connection *connection, int code, struct str lines, struct http_source source);
void http_upgrade(struct http_connection *connection, struct str lines);
/* Gives the socket of an upgraded connection back, which ends the connection. */
void http_release(struct http_connection *connection);
/* Resumes a stream that has bytes again or has ended. Before the answer: has owner.woken called soon. */
void http_wake(struct http_connection *connection);
/* Ends the connection soon, without an answer. */
void http_drop(struct http_connection *connection);
/* Runs the connections that have become ready since the last turn. Without this call they run in the next
 * turn of the loop. */
void http_flush(struct http *http);

#endif
