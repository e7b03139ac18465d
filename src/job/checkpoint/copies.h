/* copies.h - copies of shards that ranks of other machines have sent here: two slots for each rank, each a
 * shard file of the owner's attempt and step. A slot counts while its header is whole, as in held.h: writing
 * removes the header, and puts it back when all data has arrived.
 *
 *     DIR/peer-<R>.0, DIR/peer-<R>.1
 *
 * No state but the structs; one writer for each owner. Blocking only by page faults.
 */
#ifndef PHX_JOB_CHECKPOINT_COPIES_H
#define PHX_JOB_CHECKPOINT_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/gang/offer.h"
#include "job/checkpoint/shard_format.h"
#include "phalanx/phalanx.h"

struct copy {
    int fd;
    uint8_t *map;
    size_t mapped;
    struct offer offer;
    bool any_base; /* `base` is the whole shard in the slot, until it is overwritten */
    struct shard_header base;
};

/* The slots written last stay mapped, because the page faults of a slot take as long as receiving its data.
 * All zero at the beginning. */
#define COPY_MAPS 4
struct copy_maps {
    struct copy_map {
        int fd;
        uint8_t *map; /* NULL: none */
        size_t mapped;
    } items[COPY_MAPS];
    size_t next; /* to make room */
};
void copy_maps_done(struct copy_maps *maps);

/* Takes the slot that is not (keep_step, keep_attempt), of several the one that loses least; the folder is
 * made where it is absent. The data goes to copy_data. All copies together may take `quota` bytes in the
 * folder; 0: half of its file system. PHX_ERROR_SPACE: there is no memory, or this copy would take more. */
int copy_begin(const char *dir, const struct offer *offer, uint64_t keep_step, uint32_t keep_attempt,
               uint64_t quota, struct copy_maps *maps, struct copy *ret_copy, struct phx_error *error);
uint8_t *copy_data(const struct copy *copy);
/* Makes it count; the caller has compared the checksum. */
void copy_seal(const struct copy *copy);
void copy_end(struct copy *copy, struct copy_maps *maps); /* also one that was never sealed */

#endif
