/* offer.h - what a rank can give at a join: the list, its bytes on the wire, and the folder in memory that it
 * comes from. What a plan makes of offers is plan.h's.
 *
 * In a folder in memory (held.h) lie, each a shard file:
 *     rank-<R>.<S>   kept by the process of rank R; S below HELD_SLOTS
 *     peer-<R>.<S>   a copy that rank R of another machine has sent; S below PEER_SLOTS
 * Whoever is on the machine offers them: a rank its own, and the ranks of a machine share what others have
 * left, by the owner's number, so that each file is offered once.
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

#define OFFER_MEMORY_MAX 16 /* of one rank, newest first but its own before others' */
#define OFFER_STORED_MAX 8
#define OFFER_MAX        (OFFER_MEMORY_MAX + OFFER_STORED_MAX)
#define OFFER_SIZE       42 /* bytes on the wire */

struct offer_list {
    struct offer items[OFFER_MAX];
    size_t count;
};

/* Decides which rank offers a file of the folder. */
struct offer_share {
    uint32_t rank;            /* who asks */
    uint32_t world;           /* of the gang; */
    const uint64_t *machines; /* [world] as in plan.h */
    uint32_t members, place;  /* ranks on this machine; this one's place among them, from 0 */
};

struct offer_share offer_share_of(uint32_t rank, uint32_t world, const uint64_t *machines);

/* Adds the sealed files of the folder, by their headers alone. An absent folder holds nothing. */
void offer_scan(const char *dir, const struct offer_share *share, struct offer_list *list);

/* Reads the header of the shard that is sealed in a place of the folder; false: there is none. */
bool offer_look(const char *dir, enum offer_place place, uint32_t rank, uint8_t slot,
                struct offer *ret_offer);

/* Removes the files that others have left in the folder, as far as this rank would offer them, and the keys.
 * Call it at the end of the job. */
void offer_discard(const char *dir, const struct offer_share *share);

/* Removes files of attempts before `attempt` of ranks that are no longer on this machine, and copies of
 * another world, as far as this rank would offer them; other copies stay. Call it when all ranks hold a newer
 * step. */
void offer_sweep(const char *dir, const struct offer_share *share, uint32_t attempt);

/* Reads the data of an offer in memory from the folder, `offer->len` bytes, and compares its checksum.
 * PHX_ERROR_CORRUPT: it is not there (any more), or is damaged. */
int offer_read(const char *dir, const struct offer *offer, uint8_t *to, struct phx_error *error);

/* As offer_read, and forgets the data. */
int offer_verify(const char *dir, const struct offer *offer, struct phx_error *error);

/* Reads the first bytes of the data, at most `cap`; nothing is compared but the header. */
int offer_front(const char *dir, const struct offer *offer, uint8_t *to, size_t cap, size_t *ret_got,
                struct phx_error *error);

/* Opens the file of an offer in memory, and reads its header, which must be the offer's own. The descriptor
 * is the caller's. */
int offer_open(const char *dir, const struct offer *offer, struct shard_header *ret_header, int *ret_fd,
               struct phx_error *error);

/* The file's path; `cap` bytes at least 32 more than the folder's name. */
void offer_path(const char *dir, const struct offer *offer, char *ret_path, size_t cap);

/* The offer of this header at a place; the whole header's contents are in it. */
struct offer offer_of(const struct shard_header *header, enum offer_place place, uint8_t slot);

/* ---- on the wire ---- */

void offer_put(const struct offer *offer, uint8_t ret_bytes[OFFER_SIZE]);
/* False: these bytes are no offer. */
bool offer_get(const uint8_t bytes[OFFER_SIZE], struct offer *ret_offer);

#endif
