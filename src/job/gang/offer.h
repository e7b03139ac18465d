/* offer.h - the shards that a rank can provide at a join: the list, its bytes on the wire, and the folder in
 * memory that it comes from. plan.h makes plans from offers.
 *
 * A folder in memory (held.h) contains shard files:
 *     rank-<R>.<S>   kept by the process of rank R; S below HELD_SLOTS
 *     peer-<R>.<S>   a copy that rank R of another machine has sent; S below PEER_SLOTS
 * A rank offers its own files. The ranks of a machine divide the other files among them, by the owner's
 * number, so each file is offered once.
 *
 * No state. Blocking file operations; any thread.
 */
#ifndef PHX_JOB_GANG_OFFER_H
#define PHX_JOB_GANG_OFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/gang/plan.h"
#include "job/checkpoint/shard_format.h"
#include "phalanx/phalanx.h"

#define PEER_SLOTS 2

#define OFFER_MEMORY_MAX 16 /* of one rank; the oldest shards of other ranks are left out first */
#define OFFER_STORED_MAX 8
#define OFFER_MAX        (OFFER_MEMORY_MAX + OFFER_STORED_MAX)
#define OFFER_SIZE       42 /* bytes on the wire */

struct offer_list {
    struct offer items[OFFER_MAX];
    size_t count;
};

/* Decides which rank offers a file of the folder. */
struct offer_share {
    uint32_t rank;            /* the rank that offers */
    uint32_t world;           /* of the gang */
    const uint64_t *machines; /* [world] as in plan.h */
    uint32_t members, place;  /* ranks on this machine; this one's place among them, from 0 */
};

struct offer_share offer_share_of(uint32_t rank, uint32_t world, const uint64_t *machines);

/* Adds this rank's share of the sealed files in the folder. Reads headers only. An absent folder has none. */
void offer_scan(const char *dir, const struct offer_share *share, struct offer_list *list);

/* Reads the header of the sealed shard in a place of the folder. Returns false if there is none. */
bool offer_look(const char *dir, enum offer_place place, uint32_t rank, uint8_t slot,
                struct offer *ret_offer);

/* Removes this rank's share of the other ranks' files in the folder, and the file of keys. Call it at the end
 * of the job. */
void offer_discard(const char *dir, const struct offer_share *share);

/* Removes, from this rank's share, files of attempts before `attempt` of ranks that are no longer on this
 * machine, and copies of another world. Other copies stay. Call it when all ranks hold a newer step. */
void offer_sweep(const char *dir, const struct offer_share *share, uint32_t attempt);

/* Reads the data of an offer in memory from the folder, `offer->len` bytes, and verifies its checksum.
 * Returns PHX_ERROR_CORRUPT if the shard is missing, replaced or damaged. */
int offer_read(const char *dir, const struct offer *offer, uint8_t *to, struct phx_error *error);

/* As offer_read, without keeping the data. */
int offer_verify(const char *dir, const struct offer *offer, struct phx_error *error);

/* Reads the first bytes of the data, at most `cap`. Only the header is verified. */
int offer_front(const char *dir, const struct offer *offer, uint8_t *to, size_t cap, size_t *ret_got,
                struct phx_error *error);

/* Opens the file of an offer in memory and reads its header, which must match the offer. The caller closes
 * the descriptor. */
int offer_open(const char *dir, const struct offer *offer, struct shard_header *ret_header, int *ret_fd,
               struct phx_error *error);

/* Writes the path of the offer's file. `cap` is at least 32 above the length of `dir`. */
void offer_path(const char *dir, const struct offer *offer, char *ret_path, size_t cap);

/* Returns the offer of a shard with this header in a place; it has all that the header has. */
struct offer offer_of(const struct shard_header *header, enum offer_place place, uint8_t slot);

/* ---- on the wire ---- */

void offer_put(const struct offer *offer, uint8_t ret_bytes[OFFER_SIZE]);
/* Returns false if the bytes are not a valid offer. */
bool offer_get(const uint8_t bytes[OFFER_SIZE], struct offer *ret_offer);

#endif
