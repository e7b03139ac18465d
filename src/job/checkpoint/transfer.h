/* transfer.h - shards from one machine's memory to another's: the wire between ranks, its client and its
 * server.
 *
 * A rank with a folder in memory listens (its address and port are in the table of ranks). A connection
 * carries one request. All integers are little-endian; tags and nonces are seal.h's.
 *
 *     server  "PHXMOVE3", nonce
 *     client  the request, TRANSFER_REQUEST_SIZE bytes: "PHXMOVE3", u32 type, u32 attempt, u64 gang,
 *             u32 rank, u32 world (both of the client), offer (offer.h), then of the copy to keep: u64 step,
 *             u32 attempt (FRONT: u64 bytes, u32 unused); then the client's nonce, and the tag of both
 *     server  answers of TRANSFER_ANSWER_SIZE bytes: u32 phx_code without its sign (0: accepted), u32 zero,
 *             u64 length of the data that follows, and the tag
 *
 *     GET      the answer, then the data of that offer from the server's folder
 *     FRONT    as GET, but at most the given number of bytes of the data's beginning, which has no checksum
 *     PUT      the answer, then the data from the client, then a second answer when the server has all of it
 *              as a copy, DIR/peer-<rank>.<slot>, in place of an older one, never of the one to keep
 *     DELTA    as PUT, but instead of zero and length the answer has attempt and step of the copy that is
 *              replaced (attempt UINT32_MAX: there is none). The data is a map of blocks (delta.h), then only
 *              these blocks: the server already has the others
 *
 * With TRANSFER_PACKED in the type of a PUT or DELTA the data comes in pieces that may be compressed
 * (pack.h), counted from the beginning of the data, or of each run of blocks in the map. A server that cannot
 * unpack them refuses (PHX_ERROR_INVALID).
 *
 * With TRANSFER_PROVED in the type, a tag of all data bytes as they were sent, the map of a DELTA included,
 * follows the data (seal_data_begin). The receiver treats the data as damaged if the tag is wrong.
 *
 * A request with a wrong tag ends the connection without an answer. A client of another gang, attempt or
 * world, a rank outside the world, and a copy of a shard that is not the client's own are refused
 * (PHX_ERROR_FENCED): an old process can neither read nor write. The receiver verifies the checksum of the
 * offer, and a copy becomes valid (its header appears) only if the checksum is right. Without TRANSFER_PROVED
 * only the request and the answer, which name length and checksum of the data, have a tag.
 *
 * Waiting has limits: TRANSFER_CONNECT_MS, TRANSFER_STALL_MS without a byte, on both sides, and
 * TRANSFER_HELLO_MS for a whole request. While all lines are in use, a new connection replaces the one that
 * has waited longest without a valid request.
 */
#ifndef PHX_JOB_CHECKPOINT_TRANSFER_H
#define PHX_JOB_CHECKPOINT_TRANSFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/checkpoint/delta.h"
#include "job/gang/offer.h"
#include "job/checkpoint/pack.h"
#include "job/gang/seal.h"
#include "phalanx/phalanx.h"

#define TRANSFER_MAGIC        "PHXMOVE3"
#define TRANSFER_HELLO_SIZE   (8 + SEAL_NONCE_SIZE)
#define TRANSFER_REQUEST_SIZE (8 + 4 + 4 + 8 + 4 + 4 + OFFER_SIZE + 12)
#define TRANSFER_SEALED_SIZE  (TRANSFER_REQUEST_SIZE + SEAL_NONCE_SIZE + SEAL_TAG_SIZE)
#define TRANSFER_ANSWER_SIZE  (16 + SEAL_TAG_SIZE)
#define TRANSFER_CONNECT_MS   5000
#define TRANSFER_STALL_MS     10000
#define TRANSFER_HELLO_MS     2000
#define TRANSFER_LINES        64 /* connections that are served at once; further ones wait */

/* On the wire, beside the type. */
#define TRANSFER_PACKED 0x100u
#define TRANSFER_PROVED 0x200u

enum transfer_type { TRANSFER_GET = 1, TRANSFER_PUT = 2, TRANSFER_DELTA = 3, TRANSFER_FRONT = 4 };

/* The rank that asks, or that serves. */
struct transfer_self {
    uint64_t gang;    /* transfer_gang */
    uint32_t attempt; /* of the gang now; an offer may be of an older one */
    uint32_t rank, world;
    uint8_t key[SEAL_KEY_SIZE]; /* of the attempt; never on the wire */
};

struct transfer_request {
    enum transfer_type type;
    bool packed; /* PUT, DELTA; set by transfer_put and transfer_put_delta */
    bool proved; /* set from transfer_peer */
    struct transfer_self self;
    struct offer offer;
    uint64_t keep_step; /* PUT, DELTA; with keep_attempt UINT32_MAX nothing is to be kept */
    uint32_t keep_attempt;
    uint64_t front; /* FRONT */
};

/* Returns the gang's name as a number. */
uint64_t transfer_gang(const char *jobset);

void transfer_put_request(const struct transfer_request *request, uint8_t ret_bytes[TRANSFER_REQUEST_SIZE]);
/* Returns false if the bytes are not a request. The bytes do not contain the key, which is zero in the
 * result. */
bool transfer_get_request(const uint8_t bytes[TRANSFER_REQUEST_SIZE], struct transfer_request *ret_request);

/* ---- the client: blocking, any thread ---- */

struct transfer_peer {
    const char *address; /* numeric */
    uint16_t port;
    uint64_t rate;           /* bytes per second; 0: no limit */
    const atomic_bool *stop; /* when true, the call ends with PHX_ERROR_IO; may be NULL */
    struct pack *pack;       /* compresses the data that is sent; NULL: data is sent uncompressed */
    bool prove;              /* data has a tag too */
};

/* Gets request->offer.len bytes. Returns PHX_ERROR_CORRUPT if the shard is missing or differs from the offer,
 * and PHX_ERROR_TIMEOUT or PHX_ERROR_IO if the server cannot be reached. */
int transfer_get(const struct transfer_peer *peer, const struct transfer_request *request, uint8_t *to,
                 struct phx_error *error);
/* Gets the first bytes of the data, at most request->front, without verifying them; for a request of
 * FRONT. */
int transfer_front(const struct transfer_peer *peer, const struct transfer_request *request, uint8_t *to,
                   size_t *ret_got, struct phx_error *error);
/* Sends request->offer.len bytes. Returns 0 once the server has them as a valid copy, PHX_ERROR_SPACE if it
 * has no memory for them, and PHX_ERROR_INVALID if it cannot unpack what `pack` has compressed. */
int transfer_put(const struct transfer_peer *peer, const struct transfer_request *request,
                 const uint8_t *data, struct phx_error *error);
/* As transfer_put, for a request of DELTA: sends only the blocks that differ from the copy that is replaced,
 * according to the history. *ret_sent is the number of data bytes sent. */
int transfer_put_delta(const struct transfer_peer *peer, const struct transfer_request *request,
                       const uint8_t *data, struct delta_history *history, uint64_t *ret_sent,
                       struct phx_error *error);

/* ---- the server: one thread ---- */

struct transfer_server;

/* Listens at a port of the kernel's choice on this numeric address alone; on all addresses if it is NULL.
 * The caller frees *ret_server with transfer_serve_free. Until transfer_serve_as the server refuses every
 * request. Returns PHX_ERROR_IO if it cannot listen, for example because the address is not one of this
 * machine. */
int transfer_serve_new(const char *dir, const char *address, struct transfer_server **ret_server,
                       struct phx_error *error);
void transfer_serve_free(struct transfer_server *server);
/* Sets the library that unpacks packed data, before the server runs; PACK_LIBRARY by default. The string must
 * live as long as the server. */
void transfer_serve_library(struct transfer_server *server, const char *library);
uint16_t transfer_serve_port(const struct transfer_server *server);
/* Sets how many bytes the copies of other ranks may take in the folder, before the server runs; 0, the
 * default: half of its file system. */
void transfer_serve_quota(struct transfer_server *server, uint64_t bytes);
/* Sets the gang, attempt, world and key whose ranks are served from now on. Any thread. */
void transfer_serve_as(struct transfer_server *server, const struct transfer_self *self);
/* Serves until transfer_serve_stop, which any thread may call. */
void transfer_serve(struct transfer_server *server);
void transfer_serve_stop(struct transfer_server *server);

#endif
