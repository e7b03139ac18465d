/* again.h - writes that are sent again when their leader disappears before it answers. Pure. Private to
 * standby.
 *
 * The leader applies a write with the header Idempotency-Key once, however often it arrives
 * (core/receipt/receipt.h). The forwarder adds a key to each write of one object that has none. It keeps the
 * write's bytes until the answer begins, and sends them to the next leader if no answer does.
 */
#ifndef PHX_HOST_STANDBY_AGAIN_H
#define PHX_HOST_STANDBY_AGAIN_H

#include "base/str.h"
#include "host/http/http.h"

enum {
    AGAIN_BYTES_MAX = 256 << 10, /* largest write that is kept, head and body */
    AGAIN_KEY_MAX = 48,
};

/* Returns whether the request is a write of one object that may be sent twice, and is small enough to
 * keep. */
bool again_may(const struct http_head *head);
/* Appends the head to `out`, with the line "Idempotency-Key: KEY" unless it has such a line. `bytes` is the
 * text of `head` with the empty line at its end. */
void again_name(struct buf *out, const struct http_head *head, struct str bytes, const char *key);
/* Appends a head to `out` with the line "Phalanx-Resent: MS", the time since the write was first sent. */
void again_mark(struct buf *out, struct str bytes, uint64_t ms);

#endif
