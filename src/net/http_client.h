/* http_client.h - requests over plain HTTP/1.1, one connection at a time.
 *
 *     rc = http_client_new(STR("http://127.0.0.1:7070"), &client, &error);
 *     result = http_client_call(client, &(struct http_request){.path = path}, &code, &error);
 *     http_client_free(client);
 *
 * A connection is kept between calls where the server allows it. HTTPS, proxies, redirects and compression
 * are left to a library (cmd/https.h): this client exists because loading one takes ten times as long as a
 * whole request to a controller on the same machine. A call blocks its thread; one thread at a time may use
 * a client.
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
    int64_t resent_ms;        /* with a key: how long ago the request was sent first; 0: it is now */
    int64_t timeout_ms;       /* for the whole call; 0: none */
    int64_t connect_ms;       /* for the connection alone; 0: none */
    void *context;            /* handed to the functions below, each of which may be NULL */
    void (*on_field)(void *context, struct str name, struct str value); /* one header line of the answer */
    bool (*on_body)(void *context, int code, struct str bytes);         /* false: the caller wants no more */
    void (*on_tick)(void *context); /* about once a second while nothing comes */
};

enum http_result {
    HTTP_ANSWERED,  /* the answer is whole */
    HTTP_STOPPED,   /* on_body returned false */
    HTTP_TIMED_OUT, /* timeout_ms passed */
    HTTP_NO_SERVER, /* the name does not resolve, or nothing takes the connection */
    HTTP_BROKE,     /* the connection broke before the answer was whole */
    HTTP_NOT_HTTP,  /* the server's bytes, or its silence, are no answer in HTTP */
    HTTP_NO_TLS,    /* the TLS handshake failed: the server speaks none, refuses this client, or went */
};

/* `url` is http://HOST[:PORT][/PREFIX], HOST a name, an IPv4 address or an IPv6 address in brackets; the
 * prefix goes before each request's path. ERROR_INVALID: no such URL. Nothing is connected yet. */
int http_client_new(struct str url, struct http_client **ret_client, struct error *error);
void http_client_free(struct http_client *client); /* NULL: nothing */

/* *ret_code is the status of the answer, 0 where none has come; *error says why a result is not
 * HTTP_ANSWERED or HTTP_STOPPED. A kept connection that the server has closed in the meantime is replaced
 * before the request is sent; a GET that meets its end only later is sent once more. */
enum http_result http_client_call(struct http_client *client, const struct http_request *request,
                                  int *ret_code, struct error *error);

/* Whether a server that answered HTTP_NOT_HTTP speaks TLS: sends a ClientHello on a new connection and
 * looks at the first byte of what comes back (RFC 8446 section 5.1: a handshake or an alert record). Waits
 * up to `timeout_ms`. */
bool http_client_meets_tls(struct http_client *client, int64_t timeout_ms);

/* Whether the host and port of a URL, http:// or https://, take a connection within `timeout_ms`. */
bool http_reachable(struct str url, int64_t timeout_ms);

#endif
