/* bounds.h - finds where HTTP/1.1 messages begin and end, for a forwarder that passes their bytes on. Pure:
 * bytes in, bytes out. Private to standby.
 *
 * A request:
 *     rc = bounds_request_begin(bytes, scanned, scratch, &request, &len)    its head: `len` bytes
 *     bounds_request_take(&request, bytes, &used)                           its body, until request.whole
 * and its answer:
 *     bounds_answer_begin(&answer, &request)
 *     rc = bounds_answer_take(&answer, bytes, closes, &out, &used)          until bounds_answer_complete()
 *
 * Requests pass unchanged. In an answer's final head the line "Connection" is replaced: the leader's line is
 * about the forwarder's connection, not about the client's.
 */
#ifndef PHX_HOST_STANDBY_BOUNDS_H
#define PHX_HOST_STANDBY_BOUNDS_H

#include "host/http/head.h"
#include "net/http_reply.h"

/* The largest head that the forwarder takes: more than the API takes, so the API refuses a larger head. */
enum { BOUNDS_HEAD_MAX = 40 * 1024 };

/* A request whose head has been read. */
struct request_bounds {
    bool keeps;    /* the client may send another request after it */
    bool head;     /* the method is HEAD: the answer has no body */
    bool upgrades; /* it asks for another protocol */
    bool watches;  /* the answer is a stream of whole lines, and may end after any of them */
    bool whole;    /* head and body were taken */
    bool chunked;
    uint64_t left; /* bytes of the body still to come, unless chunked */
    struct http_chunks chunks;
};
/* Reads the head at the front of `bytes`, whose first `scanned` bytes are known to hold no end of a head.
 * Overwrites `scratch`. Returns 1 and sets *ret_request and *ret_len (bytes of the head); 0 if the head is
 * not complete; or the negated HTTP status that refuses it (400, 414, 431, 501, 505). */
int bounds_request_begin(struct str bytes, size_t scanned, struct http_head *scratch,
                         struct request_bounds *ret_request, size_t *ret_len);
/* Takes the next parameter ("a=b" or "a", not decoded) off a query. Returns false if there is none. */
bool query_next(struct str *query, struct str *ret_key, struct str *ret_value);
/* Takes bytes of the body and sets *ret_used to the number that belong to it. Returns false if its chunks are
 * malformed. */
bool bounds_request_take(struct request_bounds *request, struct str bytes, size_t *ret_used);

struct answer_bounds {
    struct http_reply reply;
    struct buf head; /* the current response's head, until it is complete */
    bool passed;     /* the final head was passed to the client */
    bool closes;     /* the client was told "Connection: close" */
    bool final;      /* the request allows no further one on the client's connection */
    bool watches;
};
void bounds_answer_begin(struct answer_bounds *answer, const struct request_bounds *request);
/* Takes bytes of the answer and appends what the client gets to `out`. `closes`: the client may send no
 * further request; it counts in the call that completes the head. Sets *ret_used to the number of bytes that
 * belong to the answer. Returns 0, or a negative value if this is no HTTP/1.1 answer. */
int bounds_answer_take(struct answer_bounds *answer, struct str bytes, bool closes, struct buf *out,
                       size_t *ret_used);
bool bounds_answer_complete(const struct answer_bounds *answer);
/* Returns whether the answer is complete and was "101 Switching Protocols". */
bool bounds_answer_switched(const struct answer_bounds *answer);
/* Completes the answer of a watch that is between two lines: appends the last chunk. Returns false if the
 * answer cannot end here. */
bool bounds_answer_end_watch(struct answer_bounds *answer, struct buf *out);
void bounds_answer_done(struct answer_bounds *answer);

#endif
