/* trainer.h - the training itself: gradients of a batch over all ranks, the optimiser (Adam), and the state
 * as regions for checkpoints. Every rank holds the whole state and, since the sums are exact, the same bits
 * of it. */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model.h"
#include "options.h"
#include "ring.h"
#include "text.h"

/* Part of the state: what it is the state of. Numbers as the machine has them: the gang's machines are of one
 * kind. */
struct trainer_header {
    char magic[8];
    uint64_t count, text, seed, batch;
    double rate;
};

struct trainer {
    const struct options *options;
    const struct text *text;
    struct model *model;
    size_t count;         /* weights */
    float *mean, *square; /* Adam's moments */
    struct trainer_header header;
    uint8_t *ballast; /* says the step at every megabyte */
    size_t ballast_len;
    int64_t *sums; /* gradients and the loss of a batch */
};

int trainer_init(struct trainer *trainer, const struct options *options, const struct text *text);
void trainer_done(struct trainer *trainer);

/* How many elements ring_sum gets. */
size_t trainer_vector(const struct trainer *trainer);

/* The state of the beginning. */
void trainer_reset(struct trainer *trainer);

#define TRAINER_REGIONS_MAX 5
/* Where the state is; returns how many there are. They live as long as the trainer. */
size_t trainer_regions(struct trainer *trainer, struct phx_region regions[TRAINER_REGIONS_MAX]);

/* False: what was loaded is of another text, batch, seed or rate, or not of this step. */
bool trainer_fits(const struct trainer *trainer, uint64_t step);

/* Step number `step` (from 0). The state changes when it succeeds, otherwise not at all. */
int trainer_step(struct trainer *trainer, uint64_t step, struct ring *ring, struct phx_error *error);

/* Damages the state as a page of broken memory would. */
void trainer_spoil(struct trainer *trainer);

/* Computes the loss over the batch of `step` by this rank alone, without a step. */
void trainer_look_ahead(struct trainer *trainer, uint64_t step);
double trainer_loss(const struct trainer *trainer); /* of the last step or look ahead */

#endif
