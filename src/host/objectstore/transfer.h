/* transfer.h - moves a rank's shard (job/checkpoint/shard_format.h) between an open file and a store, several
 * parts at once, each over its own connection.
 *
 * Upload. Sent bytes are verified twice. The server checks each part against the checksum in its signature.
 * Before the object appears, the checksums of the parts as sent must join to that of the shard's header, and
 * the header must not have changed. So a slot that is overwritten during the upload never becomes an object.
 * The upload's id and its parts are kept in a record, a small file: a later call with the same record, even
 * by another process, sends only the missing parts. An existing object is not sent again.
 *
 * Download. The header is written last, once the checksum of all data is right: until then the file is no
 * shard.
 *
 * The functions block; any thread may call them.
 */
#ifndef PHX_HOST_OBJECTSTORE_TRANSFER_H
#define PHX_HOST_OBJECTSTORE_TRANSFER_H

#include "host/objectstore/objectstore.h"

struct shard_transfer {
    const struct store_place *place;
    const atomic_bool *stop; /* NULL: none */
    const char *key;
    int fd; /* of the shard; also writable for a download */
    uint64_t step;
    uint32_t attempt, rank;
    const char *record; /* path, for uploads; its folder exists */
};

/* Both return ERROR_CORRUPT if the file or object is not this shard or changed during the transfer; other
 * errors are those of objectstore.h and of the file. *ret_bytes is the shard's size with its header. */
int shard_upload(const struct shard_transfer *transfer, uint64_t *ret_bytes, struct error *error);
int shard_download(const struct shard_transfer *transfer, uint64_t *ret_bytes, struct error *error);

/* Aborts the upload of a record, whatever its shard, and removes the record. */
void shard_upload_drop(const struct store_place *place, const atomic_bool *stop, const char *record);

/* Writes the key of a shard: "<folder>step-<N>/attempt-<A>-rank-<R>.shard". */
enum { SHARD_KEY_MAX = 768 };
void shard_key(const char *folder, uint64_t step, uint32_t attempt, uint32_t rank,
               char ret_key[SHARD_KEY_MAX]);
/* Parses a key without its folder. Returns false if it is not a shard's. */
bool shard_key_parse(struct str key, uint64_t *ret_step, uint32_t *ret_attempt, uint32_t *ret_rank);

#endif
