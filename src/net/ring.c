/* ring.c - moves bytes from one process to another through shared memory. */
#include "net/ring.h"

#include <string.h>

#include "base/check.h"

_Static_assert(sizeof(struct ring_shared) == 2 * RING_LINE, "two lines before the bytes");

size_t ring_size(size_t capacity)
{
    CHECK(capacity >= RING_CAPACITY_MIN && (capacity & (capacity - 1)) == 0);
    return sizeof(struct ring_shared) + capacity;
}

void ring_attach(struct ring *ring, void *memory, size_t capacity)
{
    CHECK((uintptr_t)memory % RING_LINE == 0 && (capacity & (capacity - 1)) == 0);
    *ring = (struct ring){.shared = memory, .capacity = capacity};
}

bool ring_is_broken(const struct ring *ring)
{
    return ring->broken;
}

/* Copies between plain memory and the ring from `position` on, around its end. */
static void ring_put(struct ring *ring, uint64_t position, const unsigned char *data, size_t len)
{
    size_t at = position & (ring->capacity - 1), first = ring->capacity - at;
    first = len < first ? len : first;
    memcpy(ring->shared->bytes + at, data, first);
    memcpy(ring->shared->bytes, data + first, len - first);
}

static void ring_take(const struct ring *ring, uint64_t position, unsigned char *data, size_t len)
{
    size_t at = position & (ring->capacity - 1), first = ring->capacity - at;
    first = len < first ? len : first;
    memcpy(data, ring->shared->bytes + at, first);
    memcpy(data + first, ring->shared->bytes, len - first);
}

/* Returns the free bytes as the writer sees them; an impossible position of the reader breaks the ring. */
static size_t ring_room(struct ring *ring)
{
    uint64_t used = ring->own - ring->others;
    if (used > ring->capacity)
        ring->broken = true;
    return ring->broken ? 0 : ring->capacity - (size_t)used;
}

size_t ring_write(struct ring *ring, const void *data, size_t len)
{
    size_t room = ring_room(ring);
    if (room < len) {
        ring->others = atomic_load_explicit(&ring->shared->read, memory_order_acquire);
        room = ring_room(ring);
    }
    len = len < room ? len : room;
    if (len == 0)
        return 0;
    ring_put(ring, ring->own, data, len);
    ring->own += len;
    atomic_store(&ring->shared->written, ring->own);
    return len;
}

/* Returns the waiting bytes as the reader sees them. */
static size_t ring_waiting(struct ring *ring)
{
    uint64_t waiting = ring->others - ring->own;
    if (waiting > ring->capacity)
        ring->broken = true;
    return ring->broken ? 0 : (size_t)waiting;
}

size_t ring_read(struct ring *ring, void *data, size_t len)
{
    size_t waiting = ring_waiting(ring);
    if (waiting < len) {
        ring->others = atomic_load_explicit(&ring->shared->written, memory_order_acquire);
        waiting = ring_waiting(ring);
    }
    len = len < waiting ? len : waiting;
    if (len == 0)
        return 0;
    ring_take(ring, ring->own, data, len);
    ring->own += len;
    atomic_store(&ring->shared->read, ring->own);
    return len;
}

bool ring_peek(struct ring *ring, size_t skip, void *data, size_t len)
{
    if (ring_waiting(ring) < skip + len)
        ring->others = atomic_load_explicit(&ring->shared->written, memory_order_acquire);
    if (ring_waiting(ring) < skip + len)
        return false;
    ring_take(ring, ring->own + skip, data, len);
    return true;
}

void ring_drop(struct ring *ring, size_t len)
{
    CHECK(len <= ring_waiting(ring));
    ring->own += len;
    atomic_store(&ring->shared->read, ring->own);
}

bool ring_is_empty(struct ring *ring)
{
    if (ring_waiting(ring) > 0)
        return false;
    ring->others = atomic_load(&ring->shared->written);
    return ring_waiting(ring) == 0;
}

bool ring_sleep_reader(struct ring *ring)
{
    atomic_store(&ring->shared->reader_sleeps, 1);
    if (ring_is_empty(ring))
        return true;
    atomic_store(&ring->shared->reader_sleeps, 0);
    return false;
}

void ring_stay_awake(struct ring *ring)
{
    atomic_store(&ring->shared->reader_sleeps, 0);
}

bool ring_sleep_writer(struct ring *ring)
{
    atomic_store(&ring->shared->writer_sleeps, 1);
    ring->others = atomic_load(&ring->shared->read);
    if (ring_room(ring) == 0)
        return true;
    atomic_store(&ring->shared->writer_sleeps, 0);
    return false;
}

bool ring_wake_reader(struct ring *ring)
{
    return atomic_load(&ring->shared->reader_sleeps) && atomic_exchange(&ring->shared->reader_sleeps, 0);
}

bool ring_wake_writer(struct ring *ring)
{
    return atomic_load(&ring->shared->writer_sleeps) && atomic_exchange(&ring->shared->writer_sleeps, 0);
}
