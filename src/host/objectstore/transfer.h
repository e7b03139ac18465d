/* transfer.h - a rank's shard (job/checkpoint/shard_format.h) between an open file and a store: in parts,
 * several at once, each with its own connection.
 *
 * Up. Sent bytes are verified twice: the server checks each part against the checksum in its signature,
 * and before the object appears the sums of the parts, as they were sent, must join to that of the shard's
 * header, which must still be the one it began with. So a slot that was overwritten meanwhile never becomes
 * an object. The upload's number and its parts stand in a record, a small file; a later call with the same
 * record, also of another process, sends only what is missing. An object that is there already is not sent
 * again.
 *
 * Down. The header last, when the sum of all that came is right: until then the file is no shard.
 *
 * Blocking; any thread.
 */
#ifndef PHX_HOST_OBJECTSTORE_TRANSFER_H
#define PHX_HOST_OBJECTSTORE_TRANSFER_H

#include "host/objectstore/objectstore.h"

struct shard_transfer {
    const struct store_place *place;
    const atomic_bool *stop; /* NULL: none */
    const char *key;
    int fd; /* of the shard; for a download open for writing too */
    uint64_t step;
    uint32_t attempt, rank;
    const char *record; /* path; for uploads. Its folder is there */
};

/* Both: ERROR_CORRUPT when file or object are not this shard, or changed meanwhile; other errors are those of
 * objectstore.h and of the file. *ret_bytes: of the shard with its header. */
int shard_upload(const struct shard_transfer *transfer, uint64_t *ret_bytes, struct error *error);
int shard_download(const struct shard_transfer *transfer, uint64_t *ret_bytes, struct error *error);

/* Gives up the upload of a record, of whichever shard it is; the record goes. */
void shard_upload_drop(const struct store_place *place, const atomic_bool *stop, const char *record);

/* "<folder>step-<N>/attempt-<A>-rank-<R>.shard" */
enum { SHARD_KEY_MAX = 768 };
void shard_key(const char *folder, uint64_t step, uint32_t attempt, uint32_t rank,
               char ret_key[SHARD_KEY_MAX]);
/* False: the key (behind the folder) is no shard's. */
bool shard_key_parse(struct str key, uint64_t *ret_step, uint32_t *ret_attempt, uint32_t *ret_rank);

#endif
