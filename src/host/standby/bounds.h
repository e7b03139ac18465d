/* bounds.h - where HTTP/1.1 messages begin and end, for a forwarder that passes their bytes on. Pure: bytes
 * in, bytes out. Private to standby.
 *
 * A request:
 *     rc = bounds_request_begin(bytes, scanned, scratch, &request, &len)    its head: `len` bytes
 *     bounds_request_take(&request, bytes, &used)                           its body, until request.whole
 * and its answer:
 *     bounds_answer_begin(&answer, &request)
 *     rc = bounds_answer_take(&answer, bytes, closes, &out, &used)          until bounds_answer_complete()
 *
 * Requests pass as they are. Of an answer's final head the line "Connection" is replaced: it is about the
 * connection to the leader, and the forwarder's client has another one.
 */
#ifndef PHX_HOST_STANDBY_BOUNDS_H
#define PHX_HOST_STANDBY_BOUNDS_H

#include "host/http/head.h"
#include "net/http_reply.h"

/* Bytes of a head that the forwarder takes: more than the API takes, so a larger head is refused there. */
enum { BOUNDS_HEAD_MAX = 40 * 1024 };

/* A request whose head has been read. */
struct request_bounds {
    bool keeps;    /* the client may send another request behind it */
    bool head;     /* the method is HEAD: its answer has no body */
    bool upgrades; /* it asks for another protocol */
    bool watches;  /* its answer is a stream of whole lines, which may end behind any of them */
    bool whole;    /* all of it was taken */
    bool chunked;
    uint64_t left; /* bytes of the body, unless chunked */
    struct http_chunks chunks;
};
/* Reads the head at the front of `bytes`. `scanned` bytes of them were looked at before, without an end;
 * `scratch` is written over. Returns 1: *ret_request and *ret_len (bytes of the head) are set; 0: more has to
 * come; negative: this is no request of HTTP/1.1, or one that the API refuses. */
int bounds_request_begin(struct str bytes, size_t scanned, struct http_head *scratch,
                         struct request_bounds *ret_request, size_t *ret_len);
/* Takes the next parameter off a query, as it is written: "a=b" or "a". False: there is none. */
bool query_next(struct str *query, struct str *ret_key, struct str *ret_value);
/* Takes bytes of the body; *ret_used: how many are its own. False: it cannot be read. */
bool bounds_request_take(struct request_bounds *request, struct str bytes, size_t *ret_used);

struct answer_bounds {
    struct http_reply reply;
    struct buf head; /* of the response at hand, until it is whole */
    bool passed;     /* the final head was given out */
    bool closes;     /* it said "Connection: close" */
    bool final;      /* the request allows no further one on the client's connection */
    bool watches;
};
void bounds_answer_begin(struct answer_bounds *answer, const struct request_bounds *request);
/* Takes bytes of the answer and adds what the client gets to `out`. `closes`: no request is taken from the
 * client behind this one; looked at when the head ends. *ret_used: bytes that belong to the answer. Negative:
 * this is no answer of HTTP/1.1. */
int bounds_answer_take(struct answer_bounds *answer, struct str bytes, bool closes, struct buf *out,
                       size_t *ret_used);
bool bounds_answer_complete(const struct answer_bounds *answer);
bool bounds_answer_switched(
    const struct answer_bounds *answer); /* complete: the protocol is another one now */
/* A watch between two lines: adds the bytes that make its answer whole. False: it cannot be ended here. */
bool bounds_answer_end_watch(struct answer_bounds *answer, struct buf *out);
void bounds_answer_done(struct answer_bounds *answer);

#endif
