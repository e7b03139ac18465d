/* trainer.h - the training itself: gradients of a batch over all ranks, the optimiser (Adam), and the state
 * as bytes for a checkpoint. Every rank holds the whole state and, since the sums are exact, the same bits of
 * it. */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model.h"
#include "options.h"
#include "ring.h"
#include "text.h"

struct trainer {
    const struct options *options;
    const struct text *text;
    struct model *model;
    size_t count;         /* weights */
    float *mean, *square; /* Adam's moments */
    int64_t *sums;        /* gradients, the loss, notices */
};

int trainer_init(struct trainer *trainer, const struct options *options, const struct text *text);
void trainer_done(struct trainer *trainer);

/* How many elements ring_sum gets. */
size_t trainer_vector(const struct trainer *trainer);

/* Step number `step` (from 0). `noticed` says that this rank was told to expect its end; *ret_noticed that
 * any rank was: all ranks see the same. */
int trainer_step(struct trainer *trainer, uint64_t step, struct ring *ring, bool noticed, double *ret_loss,
                 bool *ret_noticed, struct phx_error *error);

/* The state as bytes: allocated, to be freed by the caller; NULL: out of memory. */
uint8_t *trainer_save(const struct trainer *trainer, size_t *ret_len);

/* -1 when the bytes are of another text, batch, seed, rate or model. */
int trainer_restore(struct trainer *trainer, const uint8_t *data, size_t len);

#endif
