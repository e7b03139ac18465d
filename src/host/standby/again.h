/* again.h - writes that are sent again when their leader goes before it answers. Pure. Private to standby.
 *
 * A write with the header Idempotency-Key is applied once, however often it comes (core/receipt/receipt.h).
 * The forwarder gives a key to each write of one object that has none, keeps its bytes until the answer
 * begins, and sends them to the next leader if it never does.
 */
#ifndef PHX_HOST_STANDBY_AGAIN_H
#define PHX_HOST_STANDBY_AGAIN_H

#include "base/str.h"
#include "host/http/http.h"

enum {
    AGAIN_BYTES_MAX = 256 << 10, /* of a write that is kept: head and body */
    AGAIN_KEY_MAX = 48,
};

/* Whether this is a write of one object that may be sent again, and is small enough to be kept. */
bool again_may(const struct http_head *head);
/* Appends the head, whose bytes these are with the empty line, and gives it the key unless it has one. */
void again_name(struct buf *out, const struct http_head *head, struct str bytes, const char *key);
/* Appends the head, and that it was sent first so long ago. */
void again_mark(struct buf *out, struct str bytes, uint64_t ms);

#endif
