/* wire.h - connections that carry entries in frames.
 *
 *     flow_wire_put(wire, &entry, tail, NULL);      // into the frame that is being filled
 *     rc = flow_wire_flush(wire);                   // 0 all written, 1 not yet, < 0 broken
 *     rc = flow_wire_read(wire, on_entry, context); // hands out whole entries
 *
 * A frame is up to WIRE_FRAME_ENTRIES entries under one header. The owner of the connection decides when to
 * flush: at 64 entries, after 50 us, or at once for what is urgent.
 *
 *     "PHXF" u32 entries, u64 bytes behind this header, then entry, tail, entry, tail ...
 *
 * Bytes move through a table of carriers: sockets (HOST:PORT), shared memory between processes of one host
 * (unix:PATH; ring.c), and UCX between hosts (hub.h), to which a connection moves from its socket. Between
 * frames such a connection has steps of its move:
 *
 *     "PHXU" u32 step (enum wire_step), u64 bytes behind this header, which the step's carrier knows
 *
 * Large tensors are written from where they are. Descriptors do not block. Not thread-safe per connection.
 */
#ifndef PHX_FLOW_WIRE_WIRE_H
#define PHX_FLOW_WIRE_WIRE_H

#include <sys/types.h>

#include "base/vec.h"
#include "flow/exec/executor.h"
#include "flow/island/entry.h"

enum { WIRE_FRAME_ENTRIES = 64, WIRE_INLINE_MAX = 16384, WIRE_READ_MAX = 1 << 18, WIRE_STEP_MAX = 8192 };

enum wire_step {
    WIRE_ANNOUNCE, /* the connecting side: this connection could move; no bytes */
    WIRE_OFFER,    /* the accepting side, once it trusts the peer */
    WIRE_ANSWER,   /* the connecting side; its frames go the other way from here */
    WIRE_SWITCH,   /* so do those of the accepting side; no bytes */
    WIRE_END,      /* behind the move, the last word on the socket: `bytes` went the other way in all */
    WIRE_STEPS,
};
struct wire_header {
    char magic[4];
    uint32_t entries; /* or the step */
    uint64_t bytes;
};
_Static_assert(sizeof(struct wire_header) == 16, "a frame's header has 16 bytes");

struct wire;
/* A carrier of bytes. `fd` becomes readable or writable for poll. Calls return bytes moved, 0 for "not now",
 * or -1 for the end. */
struct wire_ops {
    const char *name;
    ssize_t (*read)(struct wire *wire, void *data, size_t len);
    ssize_t (*write)(struct wire *wire, const void *data, size_t len);
    void (*close)(struct wire *wire);
    /* Whether `read` would find something, without a call of the kernel; NULL: only poll knows. A carrier
     * that has it tells of room to write as it tells of bytes: by becoming readable. */
    bool (*is_ready)(struct wire *wire);
    /* Present if is_ready is. Not dozing: the owner calls is_ready itself for a while, and poll may say
     * nothing. Dozing: poll tells again; false: there is something to read by now. `read` that has found
     * nothing leaves it so. */
    bool (*doze)(struct wire *wire, bool dozes);
    /* Writes a tensor's bytes from `from` on, of which the carrier keeps a reference as long as it needs
     * them; returns as `write` does. NULL: `write` is given the bytes. */
    ssize_t (*write_tensor)(struct wire *wire, struct tensor *tensor, size_t from);
    /* The peer's step has come at this place of its bytes; `rest` was read behind it. Returns 0; 1: what
     * follows comes the other way, and `rest` has been taken; or < 0: the step is refused. NULL: none is
     * expected. */
    int (*step)(struct wire *wire, enum wire_step step, struct str data, struct str rest);
    /* A step of this side has been written, behind which its frames go the other way. */
    void (*moved)(struct wire *wire);
};

struct wire_chunk {
    struct buf bytes;
    struct tensor *payload; /* NULL: bytes */
    bool is_step, moves;    /* a step of a move; behind this one frames go the other way */
};
struct wire {
    const struct wire_ops *ops;
    int fd;
    void *carrier; /* what the carrier keeps; NULL for sockets */
    void *owner;   /* for whoever has the connection */
    bool announced; /* the peer could move to UCX */
    struct buf in, spare;
    size_t in_used;      /* of `in`, by entries that were handed out */
    uint64_t frame_left; /* bytes of the frame that is being read */
    uint32_t entries_left; /* entries of it */
    VEC(struct wire_chunk) out;
    size_t out_first, out_done; /* chunks, and bytes of the first one, that are written */
    uint32_t frame_entries;     /* of the frame that is being filled; its header is in the last chunk */
    size_t frame_at;
};

int flow_wire_connect(const char *address, struct wire **ret_wire, struct error *error);
/* Returns a listening descriptor; a unix socket that is left over is replaced. */
int flow_wire_listen(const char *address, int *ret_fd, struct error *error);
/* The address with the port that the kernel has chosen, for HOST:0. */
int flow_wire_name(int fd, const char *address, char *ret, size_t len);
struct wire *flow_wire_accept(int listener); /* NULL: none waits */
void flow_wire_free(struct wire *wire);      /* closes; NULL allowed */

/* A payload's bytes follow the tail; the reference stays the caller's. */
void flow_wire_put(struct wire *wire, const struct flow_entry *entry, struct str tail,
                   struct tensor *payload);
/* Puts a step of a move (hub.h) between frames; `moves`: frames behind it go the other way. */
void flow_wire_put_step(struct wire *wire, enum wire_step step, struct str data, bool moves);
int flow_wire_flush(struct wire *wire);
bool flow_wire_is_pending(const struct wire *wire);
/* Reads what is there and calls `on_entry` for each whole entry; false from it: stop handing out for now
 * (the next call goes on there). Returns 0, or ERROR_UNAVAILABLE at the end, ERROR_CORRUPT for bytes that
 * are no frame. */
int flow_wire_read(struct wire *wire,
                   bool (*on_entry)(void *context, const struct flow_entry *entry, struct str tail),
                   void *context, struct error *error);

#endif
