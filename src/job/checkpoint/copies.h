/* copies.h - copies of shards that ranks of other machines have sent to this machine: two slots for each
 * rank, each a shard file of the owner's attempt and step. A slot is valid while its header is whole, as in
 * held.h: writing removes the header, and puts it back when all data has arrived.
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

/* The most recently written slots, which stay mapped because the page faults of a slot take as long as
 * receiving its data. Begins as all zeros. */
#define COPY_MAPS 4
struct copy_maps {
    struct copy_map {
        int fd;
        uint8_t *map; /* NULL: none */
        size_t mapped;
    } items[COPY_MAPS];
    size_t next; /* the entry to replace next */
};
void copy_maps_done(struct copy_maps *maps);

/* Opens a slot for the offered shard: never the slot of (keep_step, keep_attempt), and among the others the
 * one whose loss costs least. Creates the folder if it is absent. The caller writes the data to copy_data.
 * All copies together may take `quota` bytes in the folder; 0: half of its file system. Returns
 * PHX_ERROR_SPACE if there is no memory, or this copy would exceed the quota. */
int copy_begin(const char *dir, const struct offer *offer, uint64_t keep_step, uint32_t keep_attempt,
               uint64_t quota, struct copy_maps *maps, struct copy *ret_copy, struct phx_error *error);
uint8_t *copy_data(const struct copy *copy);
/* Writes the header, which makes the copy valid. The caller has verified the checksum. */
void copy_seal(const struct copy *copy);
/* Closes the slot. A copy that was not sealed is not valid. */
void copy_end(struct copy *copy, struct copy_maps *maps);

#endif
