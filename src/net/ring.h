/* ring.h - bytes from one process to another through shared memory: one writer, one reader, no lock.
 *
 *     struct ring ring;
 *     ring_attach(&ring, memory, size);              // both sides; ring_size(capacity) bytes, zero at first
 *     size_t moved = ring_write(&ring, data, len);   // one side; 0: full
 *     size_t moved = ring_read(&ring, buf, len);     // the other; 0: empty
 *
 * A side that finds nothing to do may sleep until the other rings a bell (a byte on a socket, say). It says
 * so with ring_sleep_reader or ring_sleep_writer, which answer false if there is something to do after all.
 * The other side asks ring_wake_reader after it has written, ring_wake_writer after it has read, and rings if
 * the answer is true. No wake-up is lost: flags and positions are sequentially consistent.
 *
 * The other process is not trusted: its position is checked at every call, and a side reads nothing else of
 * what the other one writes but the bytes. ring_is_broken says that positions made no sense; no more bytes
 * move then. The memory itself must not be able to shrink (F_SEAL_SHRINK).
 *
 * Cache lines: each side's position and flag have a line of their own, and each side keeps a copy of the
 * other's position, so that a stream costs a miss for many messages (Lamport's queue with cached indexes).
 */
#ifndef PHX_NET_RING_H
#define PHX_NET_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RING_LINE = 64, RING_CAPACITY_MIN = 4096 };

/* The shared memory; private to ring.c. Positions count bytes and wrap at 2^64. */
struct ring_shared {
    _Alignas(RING_LINE) _Atomic uint64_t written; /* by the writer */
    _Atomic uint32_t writer_sleeps;
    _Alignas(RING_LINE) _Atomic uint64_t read; /* by the reader */
    _Atomic uint32_t reader_sleeps;
    _Alignas(RING_LINE) unsigned char bytes[];
};

/* The view of one side. */
struct ring {
    struct ring_shared *shared;
    size_t capacity;      /* a power of two */
    uint64_t own, others; /* this side's position, and what it last saw of the other's */
    bool broken;
};

/* Bytes of shared memory for that capacity, a power of two of at least RING_CAPACITY_MIN. */
size_t ring_size(size_t capacity);
/* `memory` is aligned to a cache line and has ring_size(capacity) bytes; it outlives the ring. A new ring's
 * memory is zero. */
void ring_attach(struct ring *ring, void *memory, size_t capacity);

size_t ring_write(struct ring *ring, const void *data, size_t len);
size_t ring_read(struct ring *ring, void *data, size_t len);
/* Copies `len` bytes that wait behind the next `skip` ones, and leaves all of them there; false: they have
 * not come yet. */
bool ring_peek(struct ring *ring, size_t skip, void *data, size_t len);
void ring_drop(struct ring *ring, size_t len); /* takes bytes that were peeked at */
bool ring_is_empty(struct ring *ring); /* for the reader */
bool ring_is_broken(const struct ring *ring);

/* True: nothing to read (no room to write); the other side will ring. False: try again. */
bool ring_sleep_reader(struct ring *ring);
bool ring_sleep_writer(struct ring *ring);
/* The reader looks at the ring itself for a while: the other side need not ring. */
void ring_stay_awake(struct ring *ring);
/* True: the other side sleeps and has to be rung for, by this caller. */
bool ring_wake_reader(struct ring *ring);
bool ring_wake_writer(struct ring *ring);

#endif
