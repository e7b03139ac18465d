/* shard_format.h - the header of a shard file, for the library that writes it and for tools that read it.
 * The file's contract is at the top of shard.h.
 *
 * Header-only and without state. The caller passes in its CRC-32C function (start with 0; it chains).
 */
#ifndef PHX_JOB_CHECKPOINT_SHARD_FORMAT_H
#define PHX_JOB_CHECKPOINT_SHARD_FORMAT_H

#include "job/link/wire.h"

#define SHARD_HEADER_SIZE 64
#define SHARD_VERSION     1
#define SHARD_MAGIC       "PHXSHARD"

struct shard_header {
    uint64_t step;
    uint32_t attempt, rank, world;
    uint32_t data_crc;
    uint64_t len; /* of the data */
    uint64_t key; /* of its regions (job/checkpoint/regions.h); 0: bytes, or written before there were keys */
};

typedef uint32_t (*shard_crc)(uint32_t crc, const void *data, size_t len);

static inline void shard_header_put(const struct shard_header *header, shard_crc crc,
                                    uint8_t ret_bytes[SHARD_HEADER_SIZE])
{
    struct jobwire_writer writer = {.data = ret_bytes, .cap = SHARD_HEADER_SIZE};
    static const uint8_t zero[4];
    jobwire_put_bytes(&writer, SHARD_MAGIC, 8);
    jobwire_put(&writer, SHARD_VERSION, 4);
    jobwire_put(&writer, SHARD_HEADER_SIZE, 4);
    jobwire_put(&writer, header->step, 8);
    jobwire_put(&writer, header->attempt, 4);
    jobwire_put(&writer, header->rank, 4);
    jobwire_put(&writer, header->world, 4);
    jobwire_put(&writer, header->data_crc, 4);
    jobwire_put(&writer, header->len, 8);
    jobwire_put(&writer, header->key, 8);
    jobwire_put_bytes(&writer, zero, sizeof zero);
    jobwire_put(&writer, crc(0, ret_bytes, writer.len), 4);
}

/* Reads a header. Returns false if it is damaged or not that of a shard. If *ret_version is not
 * SHARD_VERSION, the other fields must not be used. */
static inline bool shard_header_get(const uint8_t bytes[SHARD_HEADER_SIZE], shard_crc crc,
                                    struct shard_header *ret_header, uint32_t *ret_version)
{
    struct jobwire_reader reader = {.data = bytes, .pos = 8, .len = SHARD_HEADER_SIZE};
    uint64_t version = jobwire_get(&reader, 4), size = jobwire_get(&reader, 4);
    ret_header->step = jobwire_get(&reader, 8);
    ret_header->attempt = (uint32_t)jobwire_get(&reader, 4);
    ret_header->rank = (uint32_t)jobwire_get(&reader, 4);
    ret_header->world = (uint32_t)jobwire_get(&reader, 4);
    ret_header->data_crc = (uint32_t)jobwire_get(&reader, 4);
    ret_header->len = jobwire_get(&reader, 8);
    ret_header->key = jobwire_get(&reader, 8);
    jobwire_get_bytes(&reader, 4);
    *ret_version = size == SHARD_HEADER_SIZE ? (uint32_t)version : 0;
    return memcmp(bytes, SHARD_MAGIC, 8) == 0 &&
           jobwire_get(&reader, 4) == crc(0, bytes, SHARD_HEADER_SIZE - 4);
}

#endif
