/* star.h - the messages between the ranks of a gang. Rank 0 is the hub: it listens at the rendezvous, every
 * other rank holds one connection to it. All messages have one form (integers little-endian):
 *
 *     offset  0  u32 length      of the body, which begins at offset 8: at most STAR_BODY_MAX, or
 *                                STAR_HELLO_MAX before a valid HELLO
 *             4  u16 type        enum star_type
 *             6  u16 version     STAR_VERSION; a rank of another version is refused at HELLO
 *             8  u32 rank
 *            12  u32 world
 *            16  u32 attempt
 *            20  u32 status
 *            24  u64 number
 *            32  u32 key length  at most PHX_KEY_MAX
 *            36  u32 value length
 *            40  key, then value, which fill the body exactly
 *
 * Life of a connection:
 *
 *     HELLO ─┬─► REJECT, close
 *            └─► TABLE, when the whole gang is there
 *     each rank: OFFERS                         the negotiation of the checkpoint to restore (agree.c)
 *     ASK_KEYS ─► KEYS of one rank              if the hub needs the keys
 *     SOURCE to each rank, or CUT to all ─► ANSWER of each rank     repeated while a shard is damaged
 *     AGREED
 *     any other message
 *     LEAVE ─► the hub closes
 *
 * A connection that ends without LEAVE or GAVE_UP is a lost rank.
 */
#ifndef PHX_JOB_STAR_H
#define PHX_JOB_STAR_H

#include <stddef.h>
#include <stdint.h>

#include "phalanx/phalanx.h"

#define STAR_VERSION     5
#define STAR_HEADER_SIZE 8
#define STAR_FIXED_SIZE  32 /* of the body: everything in front of key and value */
#define STAR_HELLO_MAX   4096
#define STAR_BODY_MAX    (16u * 1024 * 1024)

enum star_type {
    STAR_HELLO =
        0x5001,  /* rank, world, attempt; status 1: stand-alone; key: job set; value: names (see star_name) */
    STAR_REJECT, /* status: a phx_code without its sign; value: why */
    STAR_TABLE,  /* attempt; status 1: the newest commit is step `number`, attempt `rank`; value: names */
    STAR_ARRIVE, /* at barrier `number` (1, 2, ...) */
    STAR_RELEASE,   /* barrier `number` is complete */
    STAR_PUT,       /* number: call id; key, value */
    STAR_GET,       /* number: call id; key; status 1: wait for it */
    STAR_CANCEL,    /* the GET of call id `number` gave up */
    STAR_REPLY,     /* number: call id; status: a phx_code without its sign; value */
    STAR_GONE,      /* `rank` is lost */
    STAR_LEFT,      /* `rank` said goodbye */
    STAR_LEAVE,     /* goodbye */
    STAR_GAVE_UP,   /* the sender ends, or goes on under another attempt: its end here is not another loss */
    STAR_SAVED,     /* stand-alone: the shard of step `number` is durable */
    STAR_COMMITTED, /* stand-alone: the checkpoint of step `number`, attempt `attempt` */
    STAR_ANSWER,    /* to the SOURCE or CUT of round `world` (1, 2, ...); status 1: I have it, whole; to a CUT
                    status 0: value: u32 each, the old ranks whose shards are damaged here; to a SOURCE
                    status 0: value: offers, of what there is instead */
    STAR_SOURCE,    /* restore step `number`, attempt `rank`, round `world`; status: the rank that has your
                    shard; value: its offer (offer.h), then, where there is an older one that all could
                    restore, u64 step and u32 attempt of that: it must not be overwritten meanwhile */
    STAR_CUT,       /* restore step `number`, attempt `rank`, round `world`, kept by `status` ranks; value:
                    for each of them who gives its shard: u32 rank, offer. Who gives one answers for it */
    /* status 1: on step `number`, attempt `rank`; 3: on that, and it is in storage, whole; 2: on none, begin
     * anew; 0: on none, `world` is a rank that has no whole shard of the newest, and there is no older one
     * that all have; 4: a dying checkpoint is refused; value: why. */
    STAR_AGREED,
    STAR_HELD,          /* this rank holds step `number` in memory; status 1: it could not */
    STAR_HELD_BY_ALL,   /* all have said so; status 1: not all hold it */
    STAR_COPIED,        /* a peer has this rank's step `number`; status 1: it has not */
    STAR_COPIED_BY_ALL, /* all have said so; status 1: not all are copied */
    STAR_DUMP,     /* write these shards of step `number`, round `world`; value: for each u32 rank, offer;
                      then ANSWER: status 0: that of `rank` is damaged; 2: it could not be written (value) */
    STAR_OFFERS,   /* what I can give; value: offers (offer.h); number: key of my regions, 0: none yet; status
                         1: I know the keys of all, of attempt `attempt` */
    STAR_ASK_KEYS, /* tell them */
    STAR_KEYS,     /* of all ranks of a world; value: u64 each. Of attempt `attempt` */
    STAR_KEY,      /* number: key of the regions that were registered */
    STAR_NOTICE,   /* the sender will be stopped: at which step do all save? */
    /* From the hub: at step `number`; status 0: can you? 1: do. From a rank: status 1: I can, 0: too late,
     * `number` steps are made; 2: I have come to it and save. */
    STAR_SAVE_AT,
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

/* A rank as HELLO and TABLE carry it: u8 length, host name, u8 length, numeric address, u16 port, u64
 * machine, u64 rack. */
struct star_name {
    char name[256];
    char address[64];
    uint16_t port;    /* where it gives what it holds (transfer.h); 0: nowhere */
    uint64_t machine; /* equal for ranks that see one folder in memory */
    uint64_t rack;    /* 0: not known */
};

/* Appends at most STAR_NAME_SIZE_MAX bytes to out; returns how many. */
#define STAR_NAME_SIZE_MAX (2 + 255 + 63 + 18)
size_t star_put_name(const struct star_name *name, uint8_t *out);

/* Returns the bytes used, 0 when they are invalid. */
size_t star_get_name(const uint8_t *data, size_t len, struct star_name *ret_name);

#endif
