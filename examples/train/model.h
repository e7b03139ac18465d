/* model.h - a small character-level transformer with its backward pass, in plain C.
 *
 * LAYERS blocks of causal attention and a two-layer perceptron, RMS normalisation in front of each, learned
 * positions. Everything is computed one sequence at a time, in one fixed order, with plain IEEE 754 float
 * arithmetic (no fused multiply-add, no libm where its result may differ between machines), so the same input
 * gives the same bits.
 *
 * Gradients are exported as 64-bit fixed point. Integer addition has no order: however the sequences of a
 * batch are spread over ranks and whatever way the sums travel, the total is the same to the last bit.
 */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include <stddef.h>
#include <stdint.h>

enum {
    MODEL_CONTEXT = 32, /* characters that are seen at once */
    MODEL_WIDTH = 32,
    MODEL_HEADS = 4,
    MODEL_HIDDEN = 128,
    MODEL_LAYERS = 2,
    MODEL_VOCABULARY_MAX = 256,
};

struct model; /* weights, gradients and activations of one process */

struct model *model_new(size_t vocabulary, uint64_t seed); /* NULL: out of memory */
void model_reset(struct model *model, uint64_t seed);      /* the weights of the beginning */
void model_free(struct model *model);

size_t model_count(const struct model *model); /* weights */
float *model_weights(struct model *model);

/* The loss of one sequence: text[0 .. MODEL_CONTEXT] are symbols below the vocabulary's size, each but the
 * first is to be predicted from those before it. Adds to sums[0 .. count - 1] the gradient, to sums[count]
 * the loss, both summed over the positions and scaled by MODEL_FIXED_ONE. Returns -1 when something is not
 * finite. */
#define MODEL_FIXED_ONE 68719476736.0 /* 2^36 */
int model_backward(struct model *model, const uint8_t *text, int64_t *sums);

/* Compares the gradient of one sequence with finite differences; the largest relative error over some
 * weights. */
double model_check(struct model *model, const uint8_t *text);

/* FNV-1a over the bits of the weights. */
uint64_t model_hash(const struct model *model);

#endif
