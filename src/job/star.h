/* star.h - the messages between the ranks of a gang. Rank 0 is the hub: it listens at the rendezvous, every
 * other rank holds one connection to it. All messages have one form (integers little-endian):
 *
 *     u32 length   of what follows the first 8 bytes, at most STAR_BODY_MAX (STAR_HELLO_MAX before a valid
 * HELLO) u16 type     enum star_type u16 version  STAR_VERSION; all ranks of a gang run one version, so a
 * difference is refused at HELLO u32 rank, u32 world, u32 attempt, u32 status, u64 number u32 key length (<=
 * PHX_KEY_MAX), u32 value length, key, value      these two fill the rest exactly
 *
 * Life of a connection: HELLO -> (REJECT and close | TABLE, when the whole gang is there). A table with a
 * checkpoint is the first proposal of what to restore: ANSWER of each rank -> (PROPOSE, and again | AGREED).
 * Then anything; LEAVE -> close by the hub. A connection that ends without LEAVE or GAVE_UP is a lost rank.
 */
#ifndef PHX_JOB_STAR_H
#define PHX_JOB_STAR_H

#include <stddef.h>
#include <stdint.h>

#include "phalanx/phalanx.h"

#define STAR_VERSION     2
#define STAR_HEADER_SIZE 8
#define STAR_FIXED_SIZE  32 /* of the body: everything in front of key and value */
#define STAR_HELLO_MAX   4096
#define STAR_BODY_MAX    (16u * 1024 * 1024)

enum star_type {
    STAR_HELLO =
        0x5001,  /* rank, world, attempt; status 1: stand-alone; key: job set; value: names (see star_name) */
    STAR_REJECT, /* status: a phx_code without its sign; value: why */
    STAR_TABLE,  /* attempt; status 1: there is a checkpoint of step `number`, attempt `rank`; value: names */
    STAR_ARRIVE, /* at barrier `number` (1, 2, ...) */
    STAR_RELEASE,   /* barrier `number` is complete */
    STAR_PUT,       /* number: call id; key, value */
    STAR_GET,       /* number: call id; key; status 1: wait for it */
    STAR_CANCEL,    /* the GET of call id `number` gave up */
    STAR_REPLY,     /* number: call id; status: a phx_code without its sign; value */
    STAR_GONE,      /* `rank` is lost */
    STAR_LEFT,      /* `rank` said goodbye */
    STAR_LEAVE,     /* goodbye */
    STAR_GAVE_UP,   /* the sender ends because of somebody's loss: don't count its own end as another loss */
    STAR_SAVED,     /* stand-alone: the shard of step `number` is durable */
    STAR_COMMITTED, /* stand-alone: the checkpoint of step `number`, attempt `attempt` */
    STAR_ANSWER, /* to proposal `world` (1, 2, ...); status bits 1: my shard is whole, 2: my next older one is
                       of step `number`, attempt `rank` */
    STAR_PROPOSE, /* the checkpoint of step `number`, attempt `rank` */
    /* status 1: on that one; 2: on none, begin anew; 0: on none, `world` is a rank that can't read the
     * newest, and there is no older one that all can. */
    STAR_AGREED,
    STAR_HELD,        /* this rank holds step `number` in memory; status 1: it could not */
    STAR_HELD_BY_ALL, /* all have said so; status 1: not all hold it */
};

/* key and value point into the sender's or the receiver's memory; they aren't copied. */
struct star_message {
    uint16_t type;
    uint32_t rank, world, attempt, status;
    uint64_t number;
    const uint8_t *key;
    uint32_t key_len;
    const uint8_t *value;
    uint32_t value_len;
};

/* Size of the frame; STAR_HEADER_SIZE + STAR_FIXED_SIZE without key and value. */
size_t star_size(const struct star_message *message);

/* out must have star_size bytes. Lengths must be within the limits. */
void star_encode(const struct star_message *message, uint8_t *out);

/* As jobwire_decode: 1 whole, 0 more bytes are needed, -1 invalid. The message points into data. */
int star_decode(const uint8_t *data, size_t len, size_t body_max, struct star_message *ret_message,
                size_t *ret_used);

/* A rank's names, as HELLO and TABLE carry them: u8 length, host name, u8 length, numeric address. */
struct star_name {
    char name[256];
    char address[64];
};

/* Appends at most STAR_NAME_SIZE_MAX bytes to out; returns how many. */
#define STAR_NAME_SIZE_MAX (2 + 255 + 63)
size_t star_put_name(const struct star_name *name, uint8_t *out);

/* Returns the bytes used, 0 when they are invalid. */
size_t star_get_name(const uint8_t *data, size_t len, struct star_name *ret_name);

#endif
