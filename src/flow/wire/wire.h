/* wire.h - connections that carry entries in frames.
 *
 *     flow_wire_put(wire, &entry, tail, NULL);      // into the frame that is being filled
 *     rc = flow_wire_flush(wire);                   // 0 all written, 1 not yet, < 0 broken
 *     rc = flow_wire_read(wire, on_entry, context); // hands out whole entries
 *
 * A frame is up to WIRE_FRAME_ENTRIES entries under one header. Whoever owns the connection decides when to
 * flush: at 64 entries, after 50 us, or at once for what is urgent.
 *
 *     "PHXF" u32 entries, u64 bytes behind this header, then entry, tail, entry, tail ...
 *
 * Bytes move through a table of carriers: sockets (HOST:PORT), and shared memory between processes of one
 * host (unix:PATH; ring.c). Large tensors are written from where they are. Descriptors do not block. Not
 * thread-safe per connection.
 */
#ifndef PHX_FLOW_WIRE_WIRE_H
#define PHX_FLOW_WIRE_WIRE_H

#include <sys/types.h>

#include "base/vec.h"
#include "flow/exec/executor.h"
#include "flow/island/entry.h"

enum { WIRE_FRAME_ENTRIES = 64, WIRE_INLINE_MAX = 16384, WIRE_READ_MAX = 1 << 18 };

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
};

struct wire_chunk {
    struct buf bytes;
    struct tensor *payload; /* NULL: bytes */
};
struct wire {
    const struct wire_ops *ops;
    int fd;
    void *carrier; /* what the carrier keeps; NULL for sockets */
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
int flow_wire_flush(struct wire *wire);
bool flow_wire_is_pending(const struct wire *wire);
/* Reads what is there and calls `on_entry` for each whole entry; false from it: stop handing out for now
 * (the next call goes on there). Returns 0, or ERROR_UNAVAILABLE at the end, ERROR_CORRUPT for bytes that
 * are no frame. */
int flow_wire_read(struct wire *wire,
                   bool (*on_entry)(void *context, const struct flow_entry *entry, struct str tail),
                   void *context, struct error *error);

#endif
