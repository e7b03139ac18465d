/* http_client.h - requests over plain HTTP/1.1, one connection at a time.
 *
 *     rc = http_client_new(STR("http://127.0.0.1:7070"), &client, &error);
 *     result = http_client_call(client, &(struct http_request){.path = path}, &code, &error);
 *     http_client_free(client);
 *
 * A connection is kept between calls if the server allows it. HTTPS, proxies, redirects and compression are
 * left to a library (cmd/https.h): this client exists because loading the library takes ten times as long as
 * a request to a controller on the same machine. A call blocks its thread; one thread at a time may use a
 * client.
 */
#ifndef PHX_NET_HTTP_CLIENT_H
#define PHX_NET_HTTP_CLIENT_H

#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

struct http_client;

struct http_request {
    const char *method;       /* NULL: GET */
    struct str path;          /* with its query; percent-encoded */
    const char *accept;       /* NULL: application/json */
    const char *content_type; /* of the body; NULL: application/json */
    struct str body;          /* data NULL: none */
    const char *bearer;       /* token of the Authorization header; NULL or "": none */
    const char *agent;        /* User-Agent */
    const char *key;          /* Idempotency-Key: the request may be sent again; NULL: none */
    int64_t resent_ms;        /* with a key: how long ago the request was first sent; 0: it is the first */
    int64_t timeout_ms;       /* for the whole call; 0: none */
    int64_t connect_ms;       /* for the connection alone; 0: none */
    void *context;            /* passed to the functions below, each of which may be NULL */
    void (*on_field)(void *context, struct str name, struct str value); /* one header line of the answer */
    bool (*on_body)(void *context, int code, struct str bytes);         /* false: stop the call */
    void (*on_tick)(void *context); /* about once a second while nothing arrives */
};

enum http_result {
    HTTP_ANSWERED,  /* the answer is complete */
    HTTP_STOPPED,   /* on_body returned false */
    HTTP_TIMED_OUT, /* timeout_ms passed */
    HTTP_NO_SERVER, /* the name does not resolve, or no server accepts the connection */
    HTTP_BROKE,     /* the connection broke before the answer was complete */
    HTTP_NOT_HTTP,  /* the server sent no HTTP, or closed without an answer */
    /* The TLS handshake failed (cmd/https.h only): the server speaks no TLS, refuses this client, or
     * closed. */
    HTTP_NO_TLS,
};

/* Makes a client for `url`, http://HOST[:PORT][/PREFIX]; HOST is a name, an IPv4 address or an IPv6 address
 * in brackets. The prefix is put before each request's path. ERROR_INVALID: the URL has another form. Does
 * not connect yet. */
int http_client_new(struct str url, struct http_client **ret_client, struct error *error);
void http_client_free(struct http_client *client); /* NULL is allowed */

/* Sends a request and receives its answer. *ret_code is the status of the answer, or 0 if none has arrived;
 * *error has the reason of a result other than HTTP_ANSWERED or HTTP_STOPPED. A kept connection that the
 * server has closed is replaced before the request is sent; a GET for which this shows only later is sent
 * again. */
enum http_result http_client_call(struct http_client *client, const struct http_request *request,
                                  int *ret_code, struct error *error);

/* Returns whether a server that did not answer in HTTP speaks TLS: sends a ClientHello on a new connection
 * and examines the first byte of the answer (RFC 8446 section 5.1: a handshake or an alert record). Waits up
 * to `timeout_ms`. */
bool http_client_meets_tls(struct http_client *client, int64_t timeout_ms);

/* Returns whether the host and port of a URL, http:// or https://, accept a connection within
 * `timeout_ms`. */
bool http_reachable(struct str url, int64_t timeout_ms);

#endif
