/* request.h - one request to an S3 server: signed, sent, and retried while the server or the network fails,
 * with pauses that double from a tenth of a second to ten seconds, until the place's patience has passed.
 * Private to s3.c. One thread.
 */
#ifndef PHX_HOST_OBJECTSTORE_REQUEST_H
#define PHX_HOST_OBJECTSTORE_REQUEST_H

#include <curl/curl.h>

#include "host/objectstore/answer.h"
#include "host/objectstore/driver.h"
#include "host/objectstore/secrets.h"
#include "host/objectstore/sigv4.h"

struct s3 {
    struct object_store store;
    CURL *curl;
    struct store_secrets secrets;
    char host[STORE_TEXT_MAX * 2 + 2];  /* with the port, as in the Host header */
    char base[STORE_TEXT_MAX * 2 + 16]; /* "https://HOST" */
    uint64_t jitter;
};

struct s3_request {
    const char *method;
    const char *key;                /* NULL: the bucket */
    const struct sigv4_pair *query; /* sorted by name */
    size_t query_count;
    struct str body;
    const char *range; /* "bytes=0-63"; NULL: none */
    uint8_t *into;     /* buffer for the answer's body; NULL: it goes to s3_answer.body */
    size_t into_cap;
};
struct s3_answer {
    struct buf body; /* freed by the caller, also after an error */
    size_t into_len;
    char etag[STORE_TAG_MAX];
    uint64_t total;         /* of Content-Range; else of Content-Length */
    int64_t retry_after_ns; /* 0: not given */
    bool overflow;          /* the body was larger than allowed */
    const struct s3_request *request;
    CURL *curl;
};

/* Sends a request. Returns 0 for a status from 200 to 299 whose body is no error; other errors are those of
 * objectstore.h. */
int s3_request(struct s3 *s3, const struct s3_request *request, struct s3_answer *ret, struct error *error);

#endif
