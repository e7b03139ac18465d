/* receipt.h - the answers to writes that carried a request id.
 *
 * A client whose connection broke before the answer cannot know whether its write was applied. With a request
 * id it can send the write again: a write whose id has a receipt changes nothing, and gets the answer of the
 * first one. The API makes the id from the header Idempotency-Key (draft-ietf-httpapi-idempotency-key-header)
 * and the user's name, so users cannot reach each other's receipts.
 *
 * The step that applies a write leaves its receipt; a refused write leaves none, because it changed nothing.
 * The newest RECEIPTS_MAX are kept, each for RECEIPT_AGE_NS at most. receipts_since() tells how far back they
 * reach: an id without a receipt proves that no write with this id was applied after that stamp. Whether one
 * was applied earlier is unknown.
 *
 * One owner thread.
 */
#ifndef PHX_CORE_RECEIPT_RECEIPT_H
#define PHX_CORE_RECEIPT_RECEIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "base/units.h"
#include "core/words/ids.h"

enum {
    REQUEST_ID_BYTES = 16,
    RECEIPTS_MAX = 65536, /* about 10 MB */
};
#define RECEIPT_AGE_NS (300 * NS_PER_SECOND)

struct receipt {
    struct str id;    /* REQUEST_ID_BYTES */
    uint64_t content; /* hash of the whole request: a different request with the same id is refused */
    int64_t stamp_ns; /* of the step that applied the write */
    uint32_t code;    /* status code of the answer, 200 to 299 */
    obj_id object;    /* uid of the object in the answer; 0: none */
    struct str name;  /* of that object */
};

struct receipts;

/* Returns an empty set whose receipts_since() is INT64_MAX: until receipts_begin, an id proves nothing. */
struct receipts *receipts_new(void);
void receipts_free(struct receipts *receipts); /* NULL is fine */
/* Starts to keep receipts, of writes after this stamp. Does nothing if called again. */
void receipts_begin(struct receipts *receipts, int64_t stamp_ns);
/* Returns the stamp after which every applied write with an id has its receipt here; INT64_MAX: none has. */
int64_t receipts_since(const struct receipts *receipts);
/* Adds a copy of a receipt, and drops old ones. CHECKs that receipts_begin was called, the id has no receipt,
 * and the stamp is not below that of the newest receipt. */
void receipts_add(struct receipts *receipts, const struct receipt *receipt);
/* Returns the receipt of an id of REQUEST_ID_BYTES, or NULL. Valid until the next change. */
const struct receipt *receipts_find(const struct receipts *receipts, struct str id);
size_t receipts_count(const struct receipts *receipts);
/* Returns the next newer receipt, or the oldest one for NULL. Returns NULL at the end. */
const struct receipt *receipts_next(const struct receipts *receipts, const struct receipt *receipt);
/* Adds a receipt of a snapshot, the oldest first. Returns false, and adds nothing, if it is invalid. */
bool receipts_restore(struct receipts *receipts, int64_t now_ns, const struct receipt *receipt);
/* Sets receipts_since() from a snapshot, before the first receipt. Returns false if the stamp is invalid. */
bool receipts_restore_since(struct receipts *receipts, int64_t now_ns, int64_t since_ns);

void receipts_check(const struct receipts *receipts); /* CHECKs every invariant; linear */

#endif
