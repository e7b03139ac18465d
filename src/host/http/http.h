/* http.h - the HTTP/1.1 server: of the API (host/api), and of an agent's metrics and reports of faults
 * (door.h). The only one in the tree.
 *
 *     http_new(loop, &options, &http, error)
 *     http_take(http, fd, peer)                          a connected socket; listener.h accepts them
 *       head whole   -> owner.begins(context, connection, head) = the owner's `request`
 *       body         -> owner.body(request, bytes), as it comes
 *       body whole   -> owner.whole(request)
 *     in or after begins, body or whole, once, the owner answers:
 *       http_answer()   a code, header lines, a body
 *       http_stream()   a body that comes in pieces; http_wake() when there is more
 *       http_upgrade()  101; the socket is lent to the owner until http_release()
 *       -> owner.ended(request)                          the answer has left, or the connection is over
 *     -> owner.left(context, peer)                       the connection is over
 *     http_give_away(http, give, context)                from now on another one serves the next requests
 *       -> give(context, peer, fd, bytes)
 *
 *  A connection's life:
 *           ┌──────────────────── the answer has left ────────────────────┐
 *           ▼                                                             │
 *   new ─► HTTP_HEAD ─ head ─► HTTP_BODY ─ whole ─► HTTP_WAITS ─ answer ─► HTTP_SENDS ─ 101 ─► HTTP_LENT
 *           └───────────────────┴─ refused, or answered early ────────────►─┘
 *     and from each of them to HTTP_OVER: client gone, time over, "Connection: close"
 *
 * A request is read when the one before it has been answered, so clients may send several ahead. A
 * connection that waits holds no buffers: bytes are read into one buffer of the server, and kept only
 * where a request is cut. Every connection is registered once, edge-triggered, in one epoll set that the
 * loop polls, so a request costs one recv and one sendmsg.
 *
 * A client makes progress or is closed (`stages_s` of the options): silence, a head, a body, and an answer
 * that is not taken have a time limit each. A request that waits for its owner, or a stream that has
 * nothing to send, has none; its client is watched for hanging up. A connection that is closed while its
 * client may still send is drained for two seconds at most, so that no reset overtakes the answer (RFC
 * 9112 section 9.6).
 *
 * All functions are the loop's. Hooks are called by the loop, or from inside http_close(); from inside a
 * hook every function but http_close() and http_take() may be called.
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
    int minor;              /* of HTTP/1.x */
    int64_t content_length; /* HTTP_CHUNKED: not known */
    bool keeps;             /* the connection may serve another request */
    bool continues;         /* the client waits for "100 Continue" before it sends the body */
    size_t header_count;
    struct http_header headers[HTTP_HEADERS_MAX];
};
/* Returns the first header of this name; .data NULL: there is none. */
struct str http_head_value(const struct http_head *head, const char *name);
/* Is the text this word, in ASCII letters of any case? */
bool http_is_word(struct str text, const char *word);

/* A body in pieces. */
struct http_source {
    void *context;
    /* Copies up to `max` bytes. 0: nothing now, http_wake() will come; negative: the end. */
    int64_t (*read)(void *context, char *data, size_t max);
};

enum http_stage { HTTP_STAGE_QUIET, HTTP_STAGE_HEAD, HTTP_STAGE_BODY, HTTP_STAGE_ANSWER, HTTP_STAGES };

struct http_options {
    void *context;
    /* Returns the owner's state of the request. `head` is valid until the return. An answer that is given
     * here, before the body has come, ends the connection. */
    void *(*begins)(void *context, struct http_connection *connection, const struct http_head *head);
    void (*body)(void *request, struct str bytes);
    void (*whole)(void *request);
    /* The client has hung up before the answer. True: nobody waits for it any more, and `ended` follows. */
    bool (*gone)(void *request);
    /* After http_wake() on a request that is not answered yet: a turn in which it may be. NULL: never woken.
     */
    void (*woken)(void *request);
    void (*ended)(void *request);
    void (*left)(void *context, void *peer);
    /* After http_upgrade(), when the answer has left: the socket is the owner's until http_release().
     * `first`: what the client has sent behind its request. NULL where upgrades never happen. */
    void (*upgraded)(void *request, int fd, struct str first);
    /* Around each turn's work. NULL: not wanted. */
    void (*turn_begins)(void *context);
    void (*turn_ends)(void *context);
    size_t head_bytes_max;
    int stages_s[HTTP_STAGES]; /* time limits, each of a stage as a whole; of ANSWER: without any progress */
};

int http_new(uv_loop_t *loop, const struct http_options *options, struct http **ret_http,
             struct error *error);
/* Closes every connection. `closed` (may be NULL) comes from the loop when the memory is gone. */
void http_close(struct http *http, void (*closed)(void *context), void *context);

/* The fate of a connection that waits for a request, or has begun to send one. */
enum http_giving {
    HTTP_GIVEN,  /* the socket is the other one's: `left` follows */
    HTTP_SERVED, /* its requests are served on; their answers say "Connection: close" */
    HTTP_CLOSED,
};
/* `bytes`: what of the next request has been received. */
typedef enum http_giving http_give(void *context, void *peer, int fd, struct str bytes);
/* From now on asks `give` for each connection before it reads a head; those that have a request now are asked
 * about when that is answered. `give` is called from the loop. Calling again asks about all again. */
void http_give_away(struct http *http, http_give *give, void *context);
/* Answers requests whose body has not all come with 503, which says that nothing was done. */
void http_refuse_bodies(struct http *http);
/* Connections whose request has not been answered: its body comes, or the owner is at work. */
size_t http_unanswered(const struct http *http);
size_t http_open(const struct http *http); /* connections */

/* Serves a connected socket that does not block, and owns it. `peer` is the owner's, until `left`. */
void http_take(struct http *http, int fd, void *peer);
void *http_peer(const struct http_connection *connection);
int http_socket(const struct http_connection *connection);

/* Answers. `lines`: header lines, each with its CRLF; Content-Length, Transfer-Encoding, Date and Connection
 * are added. *body is taken over, and is left out where the method or the code has none. */
void http_answer(struct http_connection *connection, int code, struct str lines, struct buf *body);
void http_stream(struct http_connection *connection, int code, struct str lines, struct http_source source);
void http_upgrade(struct http_connection *connection, struct str lines);
/* Gives the socket of an upgraded connection back, which ends the connection. */
void http_release(struct http_connection *connection);
/* The stream has bytes again, or has ended; before the answer: owner.woken is called soon. */
void http_wake(struct http_connection *connection);
/* Ends the connection soon, without an answer, as no client waits for one any more. */
void http_drop(struct http_connection *connection);
/* Sends what became ready since the last turn. Forgetting it costs a turn of the loop, nothing else. */
void http_flush(struct http *http);

#endif
