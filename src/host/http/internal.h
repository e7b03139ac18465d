/* internal.h - connections and the server that has them. Private to http: server.c has the loop, connection.c
 * what becomes of one connection, head.c the bytes.
 */
#ifndef PHX_HOST_HTTP_INTERNAL_H
#define PHX_HOST_HTTP_INTERNAL_H

#include "base/arena.h"
#include "base/check.h"
#include "base/list.h"
#include "base/units.h"
#include "host/http/head.h"

/* http.h draws the moves. HTTP_LINGERS: the answer has left, and what the client still sends is thrown away.
 */
enum http_state { HTTP_HEAD, HTTP_BODY, HTTP_WAITS, HTTP_SENDS, HTTP_LENT, HTTP_LINGERS, HTTP_OVER };
enum {
    HTTP_STAGE_LINGER = HTTP_STAGES,
    HTTP_STAGES_ALL,
    HTTP_LINGERING_MAX = 64, /* so that nobody holds descriptors by it; more are closed at once */
    HTTP_LINGER_S = 2,
    HTTP_BLOCK_BYTES = 64 * 1024, /* read or sent at once */
    HTTP_CHUNK_DIGITS = 5,
    HTTP_CHUNK_HEAD = HTTP_CHUNK_DIGITS + 2, /* and CRLF */
    HTTP_CHUNK_ROOM = HTTP_CHUNK_HEAD + 2,
    HTTP_LAST_CHUNK = 5, /* "0", CRLF, CRLF */
};

struct http_connection {
    struct http *http;
    struct list_node node;       /* in http->connections, or ->dead */
    struct list_node stage_node; /* in http->stages, the oldest first, or in none */
    struct list_node ready_node; /* in http->ready, or in none */
    int64_t since_ns;            /* when it came to its stage, or last made progress there */
    void *request, *peer;        /* the owner's */
    int fd;
    uint8_t state;                         /* enum http_state */
    bool readable, writable, hung;         /* as epoll has told, until a call says otherwise */
    bool fresh : 1;                        /* `in` has bytes that nobody has looked at in this state */
    bool whole : 1;                        /* the request has all come */
    bool keeps : 1, chunked : 1, bare : 1; /* of the answer: bare, no body is sent */
    bool upgrades : 1, dropped : 1, woken : 1;
    bool again : 1; /* made ready in the step that is being taken */
    struct http_chunks chunks;
    int64_t body_left; /* or HTTP_CHUNKED */
    struct buf in;     /* received, not used yet */
    size_t scanned;    /* of `in`, by http_head_parse */
    struct buf out, body;
    size_t sent;               /* of both */
    struct http_source source; /* read NULL: no stream, or its end was read */
};

struct http {
    uv_loop_t *loop;
    struct http_options options;
    int epoll_fd;
    uv_poll_t poll;
    uv_idle_t idle;
    uv_timer_t tick;
    int open_handles;
    struct list_node connections, ready, dead, stages[HTTP_STAGES_ALL];
    struct http_connection *current; /* whose step is being taken */
    int lingering;
    int64_t now_ns, turn_end_ns; /* uv_hrtime() of this turn, and when it leaves the loop to others */
    int64_t date_s;
    char date[48]; /* header line */
    bool running, closing;
    http_give *give; /* NULL: requests are read */
    void *give_context;
    void (*closed)(void *context);
    void *closed_context;
    struct http_head head;
    char in[HTTP_BLOCK_BYTES];
    char out[HTTP_BLOCK_BYTES + HTTP_CHUNK_ROOM + HTTP_LAST_CHUNK];
};

/* Has the connection go on soon. */
void http_make_ready(struct http_connection *connection);
/* The header line with the time, with CRLF. */
struct str http_date_line(struct http *http);
/* Moves a connection on until it waits for its client or its owner, or others are due. */
void http_go_on(struct http_connection *connection);
/* Ends a connection at once: tells the owner, and closes the socket. */
void http_end(struct http_connection *connection);
/* Brings it to a stage, or to none (HTTP_STAGES_ALL). */
void http_enter_stage(struct http_connection *connection, int stage);

#endif
