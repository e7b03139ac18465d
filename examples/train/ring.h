/* ring.h - an all-reduce for the example: every rank ends with the sum of all vectors. It goes over TCP, or
 * over the chips of the job's slice.
 *
 * Ring algorithm: the vector is cut into `world` chunks; each chunk travels once around to be summed and once
 * more to be handed out, so every rank sends and receives 2 * (world - 1) / world of the vector, whatever the
 * world's size. The elements are integers, so the sum doesn't depend on the order.
 *
 * A lost peer ends the call at once: its neighbours see the connection break, everybody else is told by
 * libphalanx (phx_failure_fd). All calls from one thread.
 */
#ifndef TRAIN_RING_H
#define TRAIN_RING_H

#include <stddef.h>
#include <stdint.h>

#include "phalanx/fabric.h"
#include "phalanx/phalanx.h"

struct ring {
    phx_context *ctx;
    phx_fabric *fabric; /* not NULL: sums go over it */
    uint32_t rank, world;
    int next_fd, previous_fd; /* -1 in a world of one */
    int64_t *chunk;           /* room for one incoming chunk */
    size_t chunk_max;
};

/* Connects the ranks, for vectors of at most count_max elements. All ranks call it. */
int ring_init(struct ring *ring, phx_context *ctx, size_t count_max, struct phx_error *error);
/* The same over the chips of the job's slice. */
int ring_init_fabric(struct ring *ring, phx_context *ctx, struct phx_error *error);
void ring_done(struct ring *ring);

/* Blocks until the sum is there. All ranks give the same count. */
int ring_sum(struct ring *ring, int64_t *vector, size_t count, struct phx_error *error);

#endif
