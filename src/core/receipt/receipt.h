/* receipt.h - the answers to writes that carried a request id.
 *
 * A client whose connection broke before it had an answer cannot know whether its write was applied. With an
 * id it sends the write again: a write whose id has a receipt changes nothing, and gets the answer of the
 * first one. The API takes the id from the header Idempotency-Key (draft-ietf-httpapi-idempotency-key-header)
 * and the user's name, so no user meets another's receipts.
 *
 * The step that applies a write leaves its receipt; a refused write leaves none, as nothing was done. The
 * newest RECEIPTS_MAX are kept, each for RECEIPT_AGE_NS at most. receipts_since() says how far back they
 * reach, so an id without a receipt proves that the write was not applied, or the answer is that nobody knows
 * any more.
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
    uint64_t content; /* hash of all that was asked for: another request may not have the same id */
    int64_t stamp_ns; /* of the step that applied it */
    uint32_t code;    /* that was answered: 200 to 299 */
    obj_id object;    /* the uid of the object that was answered; 0: none */
    struct str name;  /* of that object */
};

struct receipts;

struct receipts *receipts_new(void); /* empty, and since stamp INT64_MAX: no id proves anything yet */
void receipts_free(struct receipts *receipts); /* NULL is fine */
/* From this stamp on ids are noted; later calls change nothing. */
void receipts_begin(struct receipts *receipts, int64_t stamp_ns);
/* Every write with an id that was applied after this stamp has its receipt here; INT64_MAX: none has. */
int64_t receipts_since(const struct receipts *receipts);
/* Copies the receipt of a new id, whose stamp is not below the newest one's, and drops old ones. */
void receipts_add(struct receipts *receipts, const struct receipt *receipt);
/* Returns the receipt of the id; NULL: there is none. Valid until the next change. */
const struct receipt *receipts_find(const struct receipts *receipts, struct str id);
size_t receipts_count(const struct receipts *receipts);
/* Returns the receipt behind this one, by age, or the oldest for NULL; NULL: there is none. */
const struct receipt *receipts_next(const struct receipts *receipts, const struct receipt *receipt);
/* Reads one from a snapshot, oldest first. False: it does not fit. */
bool receipts_restore(struct receipts *receipts, int64_t now_ns, const struct receipt *receipt);
/* Sets receipts_since(), before the first is read. False: it cannot be. */
bool receipts_restore_since(struct receipts *receipts, int64_t now_ns, int64_t since_ns);

void receipts_check(const struct receipts *receipts); /* every invariant; linear */

#endif
