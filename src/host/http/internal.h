/* internal.h - connections and their server. Private to http: server.c has the loop, connection.c the life of
 * one connection, head.c the parsing of requests.
 */
#ifndef PHX_HOST_HTTP_INTERNAL_H
#define PHX_HOST_HTTP_INTERNAL_H

#include "base/arena.h"
#include "base/check.h"
#include "base/list.h"
#include "base/units.h"
#include "host/http/head.h"

/* http.h draws the moves. HTTP_LINGERS: the answer was sent, and what the client still sends is discarded. */
enum http_state { HTTP_HEAD, HTTP_BODY, HTTP_WAITS, HTTP_SENDS, HTTP_LENT, HTTP_LINGERS, HTTP_OVER };
enum {
    HTTP_STAGE_LINGER = HTTP_STAGES,
    HTTP_STAGES_ALL,
    HTTP_LINGERING_MAX = 64, /* limits the descriptors that lingering holds; more are closed at once */
    HTTP_LINGER_S = 2,
    HTTP_BLOCK_BYTES = 64 * 1024, /* read or sent at once */
    HTTP_CHUNK_DIGITS = 5,
    HTTP_CHUNK_HEAD = HTTP_CHUNK_DIGITS + 2, /* the digits and CRLF */
    HTTP_CHUNK_ROOM = HTTP_CHUNK_HEAD + 2,
    HTTP_LAST_CHUNK = 5, /* "0", CRLF, CRLF */
};

struct http_connection {
    struct http *http;
    struct list_node node;       /* in http->connections, or ->dead */
    struct list_node stage_node; /* in http->stages, the oldest first, or in none */
    struct list_node ready_node; /* in http->ready, or in none */
    int64_t since_ns;            /* when the stage began, or last saw progress */
    void *request, *peer;        /* the owner's */
    int fd;
    uint8_t state;                         /* enum http_state */
    bool readable, writable, hung;         /* as epoll reported, until a call shows otherwise */
    bool fresh : 1;                        /* `in` has bytes that were not parsed in this state yet */
    bool whole : 1;                        /* the request has arrived completely */
    bool keeps : 1, chunked : 1, bare : 1; /* of the answer; bare: without a body */
    bool upgrades : 1, dropped : 1, woken : 1;
    bool again : 1; /* made ready during the current step */
    struct http_chunks chunks;
    int64_t body_left; /* bytes still to come, or HTTP_CHUNKED */
    struct buf in;     /* received, not used yet */
    size_t scanned;    /* bytes of `in` without an end of a head: http_head_parse() */
    struct buf out, body;
    size_t sent;               /* bytes sent of `out`, then `body` */
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
    struct http_connection *current; /* the connection whose step is being taken */
    int lingering;
    int64_t now_ns, turn_end_ns; /* uv_hrtime(): now, and when this turn ends for other work of the loop */
    int64_t date_s;
    char date[48]; /* header line */
    bool running, closing;
    http_give *give; /* NULL: http_give_away() was not called */
    void *give_context;
    void (*closed)(void *context);
    void *closed_context;
    struct http_head head;
    char in[HTTP_BLOCK_BYTES];
    char out[HTTP_BLOCK_BYTES + HTTP_CHUNK_ROOM + HTTP_LAST_CHUNK];
};

/* Schedules the connection for http_go_on(). */
void http_make_ready(struct http_connection *connection);
/* Returns the Date header line, with CRLF. */
struct str http_date_line(struct http *http);
/* Takes steps of a connection until it waits for its client or its owner, or other connections are due. */
void http_go_on(struct http_connection *connection);
/* Ends a connection at once: calls `ended` and `left`, and closes the socket. */
void http_end(struct http_connection *connection);
/* Moves a connection to a stage, or to none (HTTP_STAGES_ALL), and restarts its time. */
void http_enter_stage(struct http_connection *connection, int stage);

#endif
