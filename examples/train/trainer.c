#include "trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARM_UP  20 /* steps over which the learning rate rises */
#define MEGABYTE 1000000

static struct trainer_header make_header(const struct trainer *trainer)
{
    struct trainer_header header = {.magic = "train 2",
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
    trainer->ballast_len = (size_t)options->state_mb * MEGABYTE;
    trainer->ballast = calloc(trainer->ballast_len > 0 ? trainer->ballast_len : 1, 1);
    trainer->header = make_header(trainer);
    if (trainer->mean != NULL && trainer->square != NULL && trainer->sums != NULL && trainer->ballast != NULL)
        return 0;
    trainer_done(trainer);
    return -1;
}

void trainer_reset(struct trainer *trainer)
{
    model_reset(trainer->model, trainer->options->seed);
    memset(trainer->mean, 0, trainer->count * sizeof *trainer->mean);
    memset(trainer->square, 0, trainer->count * sizeof *trainer->square);
    memset(trainer->ballast, 0, trainer->ballast_len);
    trainer->header = make_header(trainer);
}

void trainer_spoil(struct trainer *trainer)
{
    memset(model_weights(trainer->model), 0x55, trainer->count * sizeof(float));
}

size_t trainer_regions(struct trainer *trainer, struct phx_region regions[TRAINER_REGIONS_MAX])
{
    const struct phx_region all[] = {
        {.name = "header",
         .data = &trainer->header,
         .dtype = PHX_U8,
         .dims = 1,
         .shape = {sizeof trainer->header}},
        {.name = "weights",
         .data = model_weights(trainer->model),
         .dtype = PHX_F32,
         .dims = 1,
         .shape = {trainer->count}},
        {.name = "mean", .data = trainer->mean, .dtype = PHX_F32, .dims = 1, .shape = {trainer->count}},
        {.name = "square", .data = trainer->square, .dtype = PHX_F32, .dims = 1, .shape = {trainer->count}},
        {.name = "ballast",
         .data = trainer->ballast,
         .dtype = PHX_U8,
         .dims = 1,
         .shape = {trainer->ballast_len}},
    };
    memcpy(regions, all, sizeof all);
    return trainer->ballast_len > 0 ? TRAINER_REGIONS_MAX : TRAINER_REGIONS_MAX - 1;
}

bool trainer_fits(const struct trainer *trainer, uint64_t step)
{
    struct trainer_header header = make_header(trainer);
    if (memcmp(&header, &trainer->header, sizeof header) != 0)
        return false;
    for (size_t at = 0; at < trainer->ballast_len; at += MEGABYTE)
        if (memcmp(trainer->ballast + at, &step, sizeof step) != 0)
            return false;
    return true;
}

void trainer_done(struct trainer *trainer)
{
    model_free(trainer->model);
    free(trainer->mean);
    free(trainer->square);
    free(trainer->sums);
    free(trainer->ballast);
    *trainer = (struct trainer){0};
}

size_t trainer_vector(const struct trainer *trainer)
{
    return trainer->count + 2; /* the loss, ranks whose numbers are not finite */
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

/* The gradients and the loss of every stride-th sequence of the batch of `step`, from `first` on. */
static bool add_up(struct trainer *trainer, uint64_t step, uint64_t first, uint64_t stride)
{
    const struct options *options = trainer->options;
    bool finite = true;
    memset(trainer->sums, 0, trainer_vector(trainer) * sizeof *trainer->sums);
    for (uint64_t index = first; index < options->batch; index += stride) {
        size_t at = text_pick(trainer->text, options->seed, step, index, MODEL_CONTEXT + 1);
        if (model_backward(trainer->model, trainer->text->symbols + at, trainer->sums) != 0)
            finite = false;
    }
    return finite;
}

double trainer_loss(const struct trainer *trainer)
{
    return (double)trainer->sums[trainer->count] /
           (MODEL_FIXED_ONE * MODEL_CONTEXT * (double)trainer->options->batch);
}

int trainer_step(struct trainer *trainer, uint64_t step, struct ring *ring, struct phx_error *error)
{
    int64_t *extra = trainer->sums + trainer->count;
    bool finite = add_up(trainer, step, ring->rank, ring->world);
    extra[1] = !finite;
    int status = ring_sum(ring, trainer->sums, trainer_vector(trainer), error);
    if (status != 0)
        return status;
    if (extra[1] != 0) {
        *error = (struct phx_error){.code = PHX_ERROR_INVALID, .rank = -1};
        snprintf(error->message, sizeof error->message, "the loss is not finite: try a lower --rate");
        return error->code;
    }
    update(trainer, step);
    uint64_t made = step + 1;
    for (size_t at = 0; at < trainer->ballast_len; at += MEGABYTE)
        memcpy(trainer->ballast + at, &made, sizeof made);
    return 0;
}

void trainer_look_ahead(struct trainer *trainer, uint64_t step)
{
    (void)add_up(trainer, step, 0, 1);
}
