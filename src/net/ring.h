/* ring.h - moves bytes from one process to another through shared memory: one writer, one reader, no lock.
 *
 *     struct ring ring;
 *     ring_attach(&ring, memory, size);              // both sides; ring_size(capacity) bytes, zero at first
 *     size_t moved = ring_write(&ring, data, len);   // one side; 0: full
 *     size_t moved = ring_read(&ring, buf, len);     // the other; 0: empty
 *
 * A side that has nothing to do may sleep until the other rings a bell (a byte on a socket, say). Before that
 * it calls ring_sleep_reader or ring_sleep_writer, which return false if there is something to do after all.
 * The other side calls ring_wake_reader after it has written, or ring_wake_writer after it has read, and
 * rings if the result is true. No wake-up is lost: flags and positions are sequentially consistent.
 *
 * The other process is not trusted: its position is checked at every call, and a side reads nothing else that
 * the other one writes but its flag and the bytes. ring_is_broken reports that positions made no sense; no
 * more bytes move then. The memory itself must not be able to shrink (F_SEAL_SHRINK).
 *
 * Cache lines: each side's position and flag have their own line, and each side keeps a copy of the other's
 * position, so that a stream costs a miss for many messages (Lamport's queue with cached indexes).
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
    uint64_t own, others; /* this side's position, and the other's as last seen */
    bool broken;
};

/* Returns the bytes of shared memory for a capacity, a power of two of at least RING_CAPACITY_MIN. */
size_t ring_size(size_t capacity);
/* Attaches one side to `memory`, which is aligned to a cache line, has ring_size(capacity) bytes and outlives
 * the ring. A new ring's memory is zero. Both sides must attach before bytes move. */
void ring_attach(struct ring *ring, void *memory, size_t capacity);

/* Move up to `len` bytes, and return how many: 0 if the ring is full, empty or broken. */
size_t ring_write(struct ring *ring, const void *data, size_t len);
size_t ring_read(struct ring *ring, void *data, size_t len);
/* Copies the `len` waiting bytes after the next `skip` ones, without taking them. Returns false if they have
 * not arrived yet. */
bool ring_peek(struct ring *ring, size_t skip, void *data, size_t len);
void ring_drop(struct ring *ring, size_t len); /* takes `len` waiting bytes, such as peeked ones */
bool ring_is_empty(struct ring *ring); /* for the reader */
bool ring_is_broken(const struct ring *ring);

/* Return true if there is nothing to read (no space to write) and the other side will ring; false: try
 * again. */
bool ring_sleep_reader(struct ring *ring);
bool ring_sleep_writer(struct ring *ring);
/* Cancels the reader's sleep, while it polls the ring: the other side need not ring. */
void ring_stay_awake(struct ring *ring);
/* Return true if the other side sleeps and this caller must ring. */
bool ring_wake_reader(struct ring *ring);
bool ring_wake_writer(struct ring *ring);

#endif
