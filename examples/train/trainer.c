#include "trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARM_UP 20 /* steps over which the learning rate rises */

/* In front of the state; the rest are weights, means and squares as floats. Numbers as the machine has them:
 * the gang's machines are of one kind. */
struct saved_header {
    char magic[8];
    uint64_t count, text, seed, batch;
    double rate;
};

static struct saved_header make_header(const struct trainer *trainer)
{
    struct saved_header header = {.magic = "train 1",
                                  .count = trainer->count,
                                  .text = trainer->text->hash,
                                  .seed = trainer->options->seed,
                                  .batch = trainer->options->batch,
                                  .rate = trainer->options->rate};
    return header;
}

int trainer_init(struct trainer *trainer, const struct options *options, const struct text *text)
{
    *trainer = (struct trainer){.options = options, .text = text};
    trainer->model = model_new(text->vocabulary, options->seed);
    if (trainer->model == NULL)
        return -1;
    trainer->count = model_count(trainer->model);
    trainer->mean = calloc(trainer->count, sizeof *trainer->mean);
    trainer->square = calloc(trainer->count, sizeof *trainer->square);
    trainer->sums = calloc(trainer_vector(trainer), sizeof *trainer->sums);
    if (trainer->mean != NULL && trainer->square != NULL && trainer->sums != NULL)
        return 0;
    trainer_done(trainer);
    return -1;
}

void trainer_done(struct trainer *trainer)
{
    model_free(trainer->model);
    free(trainer->mean);
    free(trainer->square);
    free(trainer->sums);
    *trainer = (struct trainer){0};
}

size_t trainer_vector(const struct trainer *trainer)
{
    return trainer->count + 3; /* loss, notices, ranks whose numbers are not finite */
}

static double power(double base, uint64_t exponent)
{
    double result = 1;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if ((exponent & 1) != 0)
            result *= base;
    return result;
}

static void update(struct trainer *trainer, uint64_t step)
{
    const double beta1 = 0.9, beta2 = 0.99;
    double scale = 1 / (MODEL_FIXED_ONE * MODEL_CONTEXT * (double)trainer->options->batch);
    double warm = step < WARM_UP ? (double)(step + 1) / WARM_UP : 1;
    float *weights = model_weights(trainer->model);
    double correct2 = 1 - power(beta2, step + 1);
    double rate = trainer->options->rate * warm / (1 - power(beta1, step + 1));
    for (size_t i = 0; i < trainer->count; i++) {
        double gradient = (double)trainer->sums[i] * scale;
        double mean = beta1 * (double)trainer->mean[i] + (1 - beta1) * gradient;
        double square = beta2 * (double)trainer->square[i] + (1 - beta2) * gradient * gradient;
        weights[i] = (float)((double)weights[i] - rate * mean / (sqrt(square / correct2) + 1e-8));
        trainer->mean[i] = (float)mean;
        trainer->square[i] = (float)square;
    }
}

int trainer_step(struct trainer *trainer, uint64_t step, struct ring *ring, bool noticed, double *ret_loss,
                 bool *ret_noticed, struct phx_error *error)
{
    const struct options *options = trainer->options;
    int64_t *sums = trainer->sums, *extra = sums + trainer->count;
    memset(sums, 0, trainer_vector(trainer) * sizeof *sums);
    for (uint64_t index = ring->rank; index < options->batch; index += ring->world) {
        size_t at = text_pick(trainer->text, options->seed, step, index, MODEL_CONTEXT + 1);
        if (model_backward(trainer->model, trainer->text->symbols + at, sums) != 0)
            extra[2] = 1;
    }
    extra[1] = noticed;
    int status = ring_sum(ring, sums, trainer_vector(trainer), error);
    if (status != 0)
        return status;
    if (extra[2] != 0) {
        *error = (struct phx_error){.code = PHX_ERROR_INVALID, .rank = -1};
        snprintf(error->message, sizeof error->message, "the loss is not finite: try a lower --rate");
        return error->code;
    }
    update(trainer, step);
    *ret_loss = (double)extra[0] / (MODEL_FIXED_ONE * MODEL_CONTEXT * (double)options->batch);
    *ret_noticed = extra[1] > 0;
    return 0;
}

uint8_t *trainer_save(const struct trainer *trainer, size_t *ret_len)
{
    struct saved_header header = make_header(trainer);
    size_t bytes = trainer->count * sizeof(float);
    uint8_t *data = malloc(sizeof header + 3 * bytes);
    if (data == NULL)
        return NULL;
    memcpy(data, &header, sizeof header);
    memcpy(data + sizeof header, model_weights(trainer->model), bytes);
    memcpy(data + sizeof header + bytes, trainer->mean, bytes);
    memcpy(data + sizeof header + 2 * bytes, trainer->square, bytes);
    *ret_len = sizeof header + 3 * bytes;
    return data;
}

int trainer_restore(struct trainer *trainer, const uint8_t *data, size_t len)
{
    struct saved_header header = make_header(trainer);
    size_t bytes = trainer->count * sizeof(float);
    if (len != sizeof header + 3 * bytes || memcmp(data, &header, sizeof header) != 0)
        return -1;
    memcpy(model_weights(trainer->model), data + sizeof header, bytes);
    memcpy(trainer->mean, data + sizeof header + bytes, bytes);
    memcpy(trainer->square, data + sizeof header + 2 * bytes, bytes);
    return 0;
}
