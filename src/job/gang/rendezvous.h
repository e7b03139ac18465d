/* rendezvous.h - the messages between the ranks of a gang. Rank 0 is the coordinator: it listens at the
 * rendezvous, and every other rank holds one connection to it. All messages have one form (integers
 * little-endian):
 *
 *     offset  0  u32 length      of the body, which begins at offset 8: at most RENDEZVOUS_BODY_MAX, or
 *                                RENDEZVOUS_HELLO_MAX before a valid HELLO
 *             4  u16 type        enum rendezvous_type
 *             6  u16 version     RENDEZVOUS_VERSION; a rank of another version is refused at HELLO
 *             8  u32 rank
 *            12  u32 world
 *            16  u32 attempt
 *            20  u32 status
 *            24  u64 number
 *            32  u32 key length  at most PHX_KEY_MAX
 *            36  u32 value length
 *            40  key, then value, which fill the body exactly
 *     after the body: the tag of the frame up to here (seal.h), RENDEZVOUS_TAG_SIZE bytes
 *
 * Life of a connection:
 *
 *     CHALLENGE of the coordinator ─► HELLO ─┬─► REJECT, close
 *                                            └─► TABLE, when the whole gang is present
 *     each rank: OFFERS                         the negotiation of the checkpoint to restore (negotiate.c)
 *     ASK_KEYS ─► KEYS of one rank              if the coordinator needs the keys
 *     SOURCE to each rank, or RESHARD to all ─► ANSWER of each rank     repeated while a shard is damaged
 *     AGREED
 *     any other message
 *     LEAVE ─► the coordinator closes
 *
 * A connection that ends without LEAVE or GAVE_UP is a lost rank. CHALLENGE and REJECT have no tag (zeros): a
 * receiver accepts them only before the TABLE. Any other frame with a wrong tag ends the connection. Only the
 * ranks of the attempt know the key, so no other process can join or send a valid TABLE.
 */
#ifndef PHX_JOB_GANG_RENDEZVOUS_H
#define PHX_JOB_GANG_RENDEZVOUS_H

#include <stddef.h>
#include <stdint.h>

#include "job/gang/seal.h"
#include "phalanx/phalanx.h"

#define RENDEZVOUS_VERSION     6
#define RENDEZVOUS_PURPOSE     "PHXMEET6" /* of its seals */
#define RENDEZVOUS_HEADER_SIZE 8
#define RENDEZVOUS_FIXED_SIZE  32 /* of the body: everything in front of key and value */
#define RENDEZVOUS_TAG_SIZE    SEAL_TAG_SIZE
#define RENDEZVOUS_HELLO_MAX   4096
#define RENDEZVOUS_BODY_MAX    (16u * 1024 * 1024)

enum rendezvous_type {
    /* rank, world, attempt; status 1: stand-alone; key: job set; value: the sender's nonce, then a name
     * (rendezvous_put_name). */
    RENDEZVOUS_HELLO = 0x5001,
    RENDEZVOUS_REJECT, /* status: a phx_code without its sign; value: the reason */
    /* attempt; status 1: the newest commit is step `number`, attempt `rank`; value: all ranks' names. */
    RENDEZVOUS_TABLE,
    RENDEZVOUS_ARRIVE,  /* at barrier `number` (1, 2, ...) */
    RENDEZVOUS_RELEASE, /* barrier `number` is complete */
    RENDEZVOUS_PUT,     /* number: call id; key, value */
    RENDEZVOUS_GET,     /* number: call id; key; status 1: wait for the key */
    RENDEZVOUS_CANCEL,  /* the caller of GET `number` has stopped waiting */
    RENDEZVOUS_REPLY,   /* number: call id; status: a phx_code without its sign; value */
    RENDEZVOUS_GONE,    /* `rank` is lost */
    RENDEZVOUS_LEFT,    /* `rank` has left */
    RENDEZVOUS_LEAVE,   /* the sender leaves */
    /* The sender ends, or joins another attempt: the end of its connection is not another loss. */
    RENDEZVOUS_GAVE_UP,
    RENDEZVOUS_SAVED,     /* stand-alone: the shard of step `number` is durable */
    RENDEZVOUS_COMMITTED, /* stand-alone: the checkpoint of step `number`, attempt `attempt` */
    /* Answers the SOURCE, RESHARD or DUMP of round `world` (1, 2, ...); status 1: the sender has its part,
     * whole. To a RESHARD, status 0: value: u32 each, the old ranks whose shards are damaged at the sender.
     * To a SOURCE, status 0: value: offers of alternatives. */
    RENDEZVOUS_ANSWER,
    /* Restore step `number`, attempt `rank`, round `world`; status: the rank that has the receiver's shard;
     * value: its offer (offer.h), then, if there is an older checkpoint that all could restore, its u64 step
     * and u32 attempt: the receiver must not overwrite that checkpoint. */
    RENDEZVOUS_SOURCE,
    /* Restore step `number`, attempt `rank`, round `world`, of a world of `status` ranks; value: for each of
     * these u32 rank, offer: the rank of this gang that provides the shard and sends the ANSWER for it. */
    RENDEZVOUS_RESHARD,
    /* Ends the negotiation. status 1: all restore step `number`, attempt `rank`; 3: the same, and it is in
     * storage, whole; 2: there is no checkpoint, begin from the start; 0: `world` is a rank that has no
     * whole shard of the newest checkpoint, and there is no older one that all have; 4: a dying checkpoint
     * is refused; value: the reason. */
    RENDEZVOUS_AGREED,
    RENDEZVOUS_HELD,          /* the sender holds step `number` in memory; status 1: it could not */
    RENDEZVOUS_HELD_BY_ALL,   /* every rank has answered for step `number`; status 1: not all hold it */
    RENDEZVOUS_COPIED,        /* a peer has the sender's step `number`; status 1: it has not */
    RENDEZVOUS_COPIED_BY_ALL, /* every rank has answered for step `number`; status 1: not all are copied */
    /* Write these shards of step `number`, round `world`; value: for each u32 rank, offer. The ANSWER has
     * status 0 if the shard of `rank` is damaged, 2 if it could not be written (value: the reason). */
    RENDEZVOUS_DUMP,
    /* The sender's offers; value: offers (offer.h); number: the key of its regions, 0: none yet; status 1:
     * it knows the keys of all ranks, of attempt `attempt`. */
    RENDEZVOUS_OFFERS,
    RENDEZVOUS_ASK_KEYS, /* send KEYS */
    RENDEZVOUS_KEYS,     /* the keys of all ranks of a world, of attempt `attempt`; value: u64 each */
    RENDEZVOUS_KEY,      /* number: the key of the regions that the sender has registered */
    RENDEZVOUS_NOTICE,   /* the sender will be stopped: name a step at which all ranks save */
    /* From the coordinator, status 0: asks whether the receiver can save at step `number`; status 1: all
     * ranks save at it. From a rank, status 1: the rank can; 0: it cannot, because it has made `number`
     * steps; 2: it has reached the step and saves. */
    RENDEZVOUS_SAVE_AT,
    RENDEZVOUS_CHALLENGE, /* the coordinator's first message; value: its nonce */
};

/* key and value point into the sender's or the receiver's memory; they are not copied. */
struct rendezvous_message {
    uint16_t type;
    uint32_t rank, world, attempt, status;
    uint64_t number;
    const uint8_t *key;
    uint32_t key_len;
    const uint8_t *value;
    uint32_t value_len;
};

/* Returns the size of the frame with its tag. */
size_t rendezvous_size(const struct rendezvous_message *message);

/* Writes the frame, with a tag of zeros, to `out`, which has rendezvous_size bytes. Lengths must be within
 * the limits. */
void rendezvous_encode(const struct rendezvous_message *message, uint8_t *out);

/* Reads one frame from the start of a stream's bytes, as jobwire_decode does: returns 1, 0 if more bytes are
 * needed, or -1 if the stream is invalid. The message points into data. The tag is not verified. */
int rendezvous_decode(const uint8_t *data, size_t len, size_t body_max,
                      struct rendezvous_message *ret_message, size_t *ret_used);

/* Writes the tag of the next frame to send behind an encoded frame of `size` bytes, tag included. */
void rendezvous_seal(struct seal *seal, uint8_t *frame, size_t size);
/* Returns true if the frame has the tag of the next frame to receive. */
bool rendezvous_check(struct seal *seal, const uint8_t *frame, size_t size);

/* A rank as HELLO and TABLE carry it: u8 length, host name, u8 length, numeric address, u16 port, u64
 * machine, u64 rack. */
struct rendezvous_name {
    char name[256];
    char address[64];
    uint16_t port;    /* where it serves its shards (transfer.h); 0: it does not */
    uint64_t machine; /* equal for ranks that see one folder in memory */
    uint64_t rack;    /* 0: not known */
};

/* Appends at most RENDEZVOUS_NAME_SIZE_MAX bytes to out; returns how many. */
#define RENDEZVOUS_NAME_SIZE_MAX (2 + 255 + 63 + 18)
size_t rendezvous_put_name(const struct rendezvous_name *name, uint8_t *out);

/* Reads a name. Returns how many bytes it takes, or 0 if they are invalid. */
size_t rendezvous_get_name(const uint8_t *data, size_t len, struct rendezvous_name *ret_name);

#endif
