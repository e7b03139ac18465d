/* copies.h - copies of shards that ranks of other machines have sent here: two slots for each, a shard file
 * each, of whose owner's attempt and step. A slot counts while its header is whole, as in held.h: writing
 * takes the header away, and puts it back when all of the data is there.
 *
 *     DIR/peer-<R>.0, DIR/peer-<R>.1
 *
 * No state but the struct; one writer for each owner. Blocking only by page faults.
 */
#ifndef PHX_JOB_COPIES_H
#define PHX_JOB_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/offer.h"
#include "job/shard_format.h"
#include "phalanx/phalanx.h"

struct copy {
    int fd;
    uint8_t *map;
    size_t mapped;
    struct offer offer;
    bool any_base; /* what lay whole in its place, and lies there until it is overwritten: */
    struct shard_header base;
};

/* Takes the slot that is not (keep_step, keep_attempt), of several the one that loses least; the folder is
 * made where it is absent. The data goes to copy_data. PHX_ERROR_SPACE: there is no memory. */
int copy_begin(const char *dir, const struct offer *offer, uint64_t keep_step, uint32_t keep_attempt,
               struct copy *ret_copy, struct phx_error *error);
uint8_t *copy_data(const struct copy *copy);
/* Makes it count; the caller has compared the checksum. */
void copy_seal(const struct copy *copy);
void copy_end(struct copy *copy); /* also one that was never sealed */

#endif
