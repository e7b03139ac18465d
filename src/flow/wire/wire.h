/* wire.h - connections that carry entries in frames.
 *
 *     flow_wire_put(wire, &entry, tail, NULL);      // into the current frame
 *     rc = flow_wire_flush(wire);                   // 0 all written, 1 not yet, < 0 broken
 *     rc = flow_wire_read(wire, on_entry, context, &error); // delivers whole entries
 *
 * A frame is up to WIRE_FRAME_ENTRIES entries under one header. The owner of the connection decides when to
 * flush: at 64 entries, after 50 us, or at once for urgent entries.
 *
 *     "PHXF" u32 entries, u64 bytes after this header, then entry, tail, entry, tail ...
 *
 * Bytes move through a table of carriers: sockets (HOST:PORT), shared memory between processes of one host
 * (unix:PATH; ring.c), and UCX between hosts (hub.h), to which a connection moves from its socket. The steps
 * of such a move are sent between frames:
 *
 *     "PHXU" u32 step (enum wire_step), u64 bytes after this header, whose form the step's carrier defines
 *
 * Large tensors are written from their own memory, without a copy. Descriptors do not block. Not thread-safe
 * per connection.
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
    WIRE_ANSWER,   /* the connecting side; its next frames go through the new carrier */
    WIRE_SWITCH,   /* the accepting side; its next frames go through the new carrier; no bytes */
    WIRE_END,      /* the last message on the socket after the move: `bytes` is the total through UCX */
    WIRE_STEPS,
};
struct wire_header {
    char magic[4];
    uint32_t entries; /* or the step */
    uint64_t bytes;
};
_Static_assert(sizeof(struct wire_header) == 16, "a frame's header has 16 bytes");

struct wire;
/* A carrier of bytes. `fd` becomes readable or writable for poll. read and write return the bytes moved, 0 if
 * none can move now, or -1 at the end of the connection. */
struct wire_ops {
    const char *name;
    ssize_t (*read)(struct wire *wire, void *data, size_t len);
    ssize_t (*write)(struct wire *wire, const void *data, size_t len);
    void (*close)(struct wire *wire);
    /* Returns whether `read` would find something, without a system call. NULL: only poll knows. A carrier
     * with this function becomes readable for poll also when there is space to write again. */
    bool (*is_ready)(struct wire *wire);
    /* Present if is_ready is. With `dozes` false, the owner polls is_ready itself, and poll need not report
     * anything. With `dozes` true, poll reports again; returns false if there is something to read already. A
     * `read` that finds nothing leaves the wire dozing. */
    bool (*doze)(struct wire *wire, bool dozes);
    /* Writes a tensor's bytes from `from` on, and returns as `write` does. The carrier holds a reference to
     * the tensor while it needs the bytes. NULL: the bytes go through `write`. */
    ssize_t (*write_tensor)(struct wire *wire, struct tensor *tensor, size_t from);
    /* Handles the peer's step at its place in the byte stream; `rest` are the bytes read after it. Returns 0;
     * 1 if the following bytes use the new carrier, and `rest` has been consumed; or < 0 to refuse the step.
     * NULL: no step is expected. */
    int (*step)(struct wire *wire, enum wire_step step, struct str data, struct str rest);
    /* Called when a step of this side has been written after which its frames use the new carrier. */
    void (*moved)(struct wire *wire);
};

struct wire_chunk {
    struct buf bytes;
    struct tensor *payload; /* the bytes are the tensor's; NULL: they are in `bytes` */
    bool is_step, moves;    /* a step of a move; frames after this step use the new carrier */
};
struct wire {
    const struct wire_ops *ops;
    int fd;
    void *carrier;  /* state of the carrier; NULL for sockets */
    void *owner;    /* for the owner of the connection */
    bool announced; /* the peer could move to UCX */
    struct buf in, spare;
    size_t in_used;        /* bytes of `in` in entries that have been delivered */
    uint64_t frame_left;   /* bytes of the frame that is being read */
    uint32_t entries_left; /* entries of it */
    VEC(struct wire_chunk) out;
    size_t out_first, out_done; /* chunks written; bytes of the first remaining chunk written */
    uint32_t frame_entries;     /* entries of the current frame; its header is in the last chunk */
    size_t frame_at;
};

/* Connects to HOST:PORT or unix:PATH, and waits for it. The caller frees *ret_wire. */
int flow_wire_connect(const char *address, struct wire **ret_wire, struct error *error);
/* Sets *ret_fd to a listening descriptor. Replaces a stale unix socket. */
int flow_wire_listen(const char *address, int *ret_fd, struct error *error);
/* Writes the address to `ret`; for HOST:0, with the port that the kernel has chosen. */
int flow_wire_name(int fd, const char *address, char *ret, size_t len);
struct wire *flow_wire_accept(int listener); /* NULL: no connection waits */
void flow_wire_free(struct wire *wire);      /* closes; NULL allowed */

/* Adds an entry to the current frame. The bytes of `payload` (NULL allowed) follow the tail; the wire takes
 * its own reference. */
void flow_wire_put(struct wire *wire, const struct flow_entry *entry, struct str tail,
                   struct tensor *payload);
/* Adds a step of a move (hub.h) between frames; `moves`: frames after this step use the new carrier. */
void flow_wire_put_step(struct wire *wire, enum wire_step step, struct str data, bool moves);
/* Writes as much as the carrier accepts. Returns 0 if all is written, 1 if not, or ERROR_UNAVAILABLE. */
int flow_wire_flush(struct wire *wire);
bool flow_wire_is_pending(const struct wire *wire); /* whether something remains to be written */
/* Reads the bytes that have arrived and calls `on_entry` for each whole entry, whose tail is valid during the
 * call. If `on_entry` returns false, reading stops; the next call continues there. Returns 0,
 * ERROR_UNAVAILABLE at the end of the connection, or ERROR_CORRUPT for bytes that are not a frame. */
int flow_wire_read(struct wire *wire,
                   bool (*on_entry)(void *context, const struct flow_entry *entry, struct str tail),
                   void *context, struct error *error);

#endif
