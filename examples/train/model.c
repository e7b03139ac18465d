#include "model.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    T = MODEL_CONTEXT,
    D = MODEL_WIDTH,
    H = MODEL_HEADS,
    F = MODEL_HIDDEN,
    L = MODEL_LAYERS,
    HEAD = D / H
};

/* Where each matrix stands in the vector of weights (and of gradients). A matrix is [inputs][outputs]. */
struct layer_place {
    size_t gain1, qkv, mix, gain2, up, down;
};

struct place {
    size_t token, position, gain, out, count;
    struct layer_place layers[L];
};

/* The values of the forward pass that the backward pass needs. */
struct norm {
    float unit[T][D], out[T][D], inverse[T];
};

struct layer {
    struct norm norm1, norm2;
    float qkv[T][3 * D], attention[H][T][T], mixed[T][D], hidden[T][F];
};

struct model {
    size_t vocabulary;
    struct place place;
    float *weights, *gradient;
    struct layer layers[L];
    struct norm norm;
    float stream[T][D], d_stream[T][D]; /* the residual stream, and the loss's derivative by it */
    float logits[T][MODEL_VOCABULARY_MAX], d_logits[T][MODEL_VOCABULARY_MAX];
    float d_norm[T][D], d_qkv[T][3 * D], d_mixed[T][D], d_hidden[T][F];
    double loss;
};

static void lay_out(struct place *place, size_t vocabulary)
{
    size_t at = 0;
    place->token = at;
    place->position = at += vocabulary * D;
    at += T * D;
    for (size_t i = 0; i < L; i++) {
        struct layer_place *layer = &place->layers[i];
        layer->gain1 = at;
        layer->qkv = at += D;
        layer->mix = at += D * 3 * D;
        layer->gain2 = at += D * D;
        layer->up = at += D;
        layer->down = at += D * F;
        at += F * D;
    }
    place->gain = at;
    place->out = at += D;
    place->count = at + D * vocabulary;
}

/* Uniform with the given deviation; the i-th number is a function of seed and i alone (splitmix64). */
static void fill_random(float *weights, size_t from, size_t count, float deviation, uint64_t seed)
{
    for (size_t i = from; i < from + count; i++) {
        uint64_t value = seed + (i + 1) * 0x9e3779b97f4a7c15u;
        value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
        value = (value ^ value >> 27) * 0x94d049bb133111ebu;
        value ^= value >> 31;
        float unit = (float)(int32_t)(value >> 40) / 8388608.0f - 1.0f; /* 24 bits: [-1, 1) */
        weights[i] = unit * 1.7320508f * deviation;
    }
}

void model_reset(struct model *model, uint64_t seed)
{
    const struct place *place = &model->place;
    size_t vocabulary = model->vocabulary;
    float *weights = model->weights;
    fill_random(weights, place->token, (vocabulary + T) * D, 0.3f, seed);
    for (size_t i = 0; i < L; i++) {
        const struct layer_place *layer = &place->layers[i];
        fill_random(weights, layer->qkv, D * 3 * D, 0.18f, seed);
        fill_random(weights, layer->mix, D * D, 0.09f, seed);
        fill_random(weights, layer->up, D * F, 0.18f, seed);
        fill_random(weights, layer->down, F * D, 0.05f, seed);
        for (size_t d = 0; d < D; d++)
            weights[layer->gain1 + d] = weights[layer->gain2 + d] = 1.0f;
    }
    for (size_t d = 0; d < D; d++)
        weights[place->gain + d] = 1.0f;
    fill_random(weights, place->out, D * vocabulary, 0.05f, seed);
}

struct model *model_new(size_t vocabulary, uint64_t seed)
{
    if (vocabulary == 0 || vocabulary > MODEL_VOCABULARY_MAX)
        return NULL;
    struct model *model = calloc(1, sizeof *model);
    if (model == NULL)
        return NULL;
    struct place *place = &model->place;
    vocabulary = (vocabulary + 7) / 8 * 8; /* symbols that don't occur fill up the vectors */
    lay_out(place, vocabulary);
    model->vocabulary = vocabulary;
    model->weights = calloc(place->count, sizeof *model->weights);
    model->gradient = calloc(place->count, sizeof *model->gradient);
    if (model->weights == NULL || model->gradient == NULL) {
        model_free(model);
        return NULL;
    }
    model_reset(model, seed);
    return model;
}

void model_free(struct model *model)
{
    if (model == NULL)
        return;
    free(model->weights);
    free(model->gradient);
    free(model);
}

size_t model_count(const struct model *model)
{
    return model->place.count;
}

float *model_weights(struct model *model)
{
    return model->weights;
}

/* ---- arithmetic in a fixed order, in forms that a compiler can turn into vector instructions ---- */

/* e^x for x <= 0, by 2^n and a polynomial: the same bits on every machine, which libm doesn't promise. */
static inline float exponential(float x)
{
    if (x < -80.0f)
        return 0.0f;
    float n = (x * 1.44269504f + 12582912.0f) - 12582912.0f; /* rounds to an integer */
    float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    float p = 1.0f + r * (1.0f + r * (0.5f + r * (0.166666667f + r * (0.0416666667f + r * 0.00833333f))));
    int32_t bits = ((int32_t)n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

/* out[o] += sum over four i of x[i] * w[i][o] */
static inline void add_scaled4(float *out, const float *x, const float *w, size_t stride, size_t outs)
{
    const float *w0 = w, *w1 = w + stride, *w2 = w1 + stride, *w3 = w2 + stride;
    for (size_t o = 0; o < outs; o++)
        out[o] = (((out[o] + x[0] * w0[o]) + x[1] * w1[o]) + x[2] * w2[o]) + x[3] * w3[o];
}

/* The sum of eight interleaved partial sums; count is a multiple of 8. */
static inline float dot(const float *a, const float *b, size_t count)
{
    float part[8] = {0};
    for (size_t i = 0; i < count; i += 8)
        for (size_t lane = 0; lane < 8; lane++)
            part[lane] += a[i + lane] * b[i + lane];
    return ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
}

/* out[t][o] = sum_i x[t][i] * w[i][o]; ins is a multiple of 4. `step` is the distance between rows of out. */
static inline void multiply(float *out, size_t step, const float *x, const float *w, size_t ins, size_t outs)
{
    for (size_t t = 0; t < T; t++) {
        float *row = out + t * step;
        memset(row, 0, outs * sizeof *row);
        for (size_t i = 0; i < ins; i += 4)
            add_scaled4(row, x + t * ins + i, w + i * outs, outs, outs);
    }
}

/* dx[t][i] = sum_o d[t][o] * w[i][o];  dw[i][o] += sum_t x[t][i] * d[t][o] */
static inline void multiply_back(float *dx, float *dw, const float *d, size_t step, const float *x,
                                 const float *w, size_t ins, size_t outs)
{
    for (size_t t = 0; t < T; t++)
        for (size_t i = 0; i < ins; i++)
            dx[t * ins + i] = dot(d + t * step, w + i * outs, outs);
    for (size_t i = 0; i < ins; i++) {
        for (size_t t = 0; t < T; t += 4) {
            float column[4] = {x[t * ins + i], x[(t + 1) * ins + i], x[(t + 2) * ins + i],
                               x[(t + 3) * ins + i]};
            add_scaled4(dw + i * outs, column, d + t * step, step, outs);
        }
    }
}

static void normalise(struct norm *norm, float (*x)[D], const float *gain)
{
    for (size_t t = 0; t < T; t++) {
        float inverse = 1.0f / sqrtf(dot(x[t], x[t], D) / D + 1e-5f);
        norm->inverse[t] = inverse;
        for (size_t d = 0; d < D; d++) {
            norm->unit[t][d] = x[t][d] * inverse;
            norm->out[t][d] = norm->unit[t][d] * gain[d];
        }
    }
}

/* Adds the derivative by the normalisation's input to dx. */
static void normalise_back(float (*dx)[D], float *d_gain, float (*d_out)[D], const struct norm *norm,
                           const float *gain)
{
    for (size_t t = 0; t < T; t++) {
        float d_unit[D];
        for (size_t d = 0; d < D; d++) {
            d_gain[d] += d_out[t][d] * norm->unit[t][d];
            d_unit[d] = d_out[t][d] * gain[d];
        }
        float mean = dot(d_unit, norm->unit[t], D) / D;
        for (size_t d = 0; d < D; d++)
            dx[t][d] += norm->inverse[t] * (d_unit[d] - norm->unit[t][d] * mean);
    }
}

static void attend(struct layer *layer)
{
    const float scale = 0.35355339f; /* 1 / sqrt(HEAD) */
    _Static_assert(HEAD == 8, "the scale above is for heads of eight");
    memset(layer->mixed, 0, sizeof layer->mixed);
    for (size_t h = 0; h < H; h++) {
        for (size_t t = 0; t < T; t++) {
            const float *q = layer->qkv[t] + h * HEAD;
            float *row = layer->attention[h][t], most = -INFINITY, sum = 0;
            for (size_t s = 0; s <= t; s++) {
                row[s] = dot(q, layer->qkv[s] + D + h * HEAD, HEAD) * scale;
                most = row[s] > most ? row[s] : most;
            }
            for (size_t s = 0; s <= t; s++)
                sum += row[s] = exponential(row[s] - most);
            for (size_t s = 0; s <= t; s++) {
                const float *v = layer->qkv[s] + 2 * D + h * HEAD;
                row[s] /= sum;
                for (size_t d = 0; d < HEAD; d++)
                    layer->mixed[t][h * HEAD + d] += row[s] * v[d];
            }
        }
    }
}

static void attend_back(struct model *model, const struct layer *layer)
{
    const float scale = 0.35355339f;
    memset(model->d_qkv, 0, sizeof model->d_qkv);
    for (size_t h = 0; h < H; h++) {
        size_t q = h * HEAD, k = D + h * HEAD, v = 2 * D + h * HEAD;
        for (size_t t = 0; t < T; t++) {
            const float *row = layer->attention[h][t], *d_mixed = model->d_mixed[t] + q;
            float d_row[T], mean = 0;
            for (size_t s = 0; s <= t; s++) {
                d_row[s] = dot(d_mixed, layer->qkv[s] + v, HEAD);
                mean += d_row[s] * row[s];
                for (size_t d = 0; d < HEAD; d++)
                    model->d_qkv[s][v + d] += row[s] * d_mixed[d];
            }
            for (size_t s = 0; s <= t; s++) {
                float d_score = row[s] * (d_row[s] - mean) * scale;
                for (size_t d = 0; d < HEAD; d++) {
                    model->d_qkv[t][q + d] += d_score * layer->qkv[s][k + d];
                    model->d_qkv[s][k + d] += d_score * layer->qkv[t][q + d];
                }
            }
        }
    }
}

static void add_to_stream(struct model *model, float (*change)[D])
{
    for (size_t t = 0; t < T; t++)
        for (size_t d = 0; d < D; d++)
            model->stream[t][d] += change[t][d];
}

static void forward(struct model *model, const uint8_t *text)
{
    const float *weights = model->weights;
    const struct place *place = &model->place;
    float change[T][D];
    for (size_t t = 0; t < T; t++)
        for (size_t d = 0; d < D; d++)
            model->stream[t][d] =
                weights[place->token + text[t] * (size_t)D + d] + weights[place->position + t * D + d];
    for (size_t i = 0; i < L; i++) {
        struct layer *layer = &model->layers[i];
        const struct layer_place *at = &place->layers[i];
        normalise(&layer->norm1, model->stream, weights + at->gain1);
        multiply(layer->qkv[0], 3 * D, layer->norm1.out[0], weights + at->qkv, D, 3 * D);
        attend(layer);
        multiply(change[0], D, layer->mixed[0], weights + at->mix, D, D);
        add_to_stream(model, change);
        normalise(&layer->norm2, model->stream, weights + at->gain2);
        multiply(layer->hidden[0], F, layer->norm2.out[0], weights + at->up, D, F);
        for (size_t t = 0; t < T; t++)
            for (size_t f = 0; f < F; f++)
                layer->hidden[t][f] = layer->hidden[t][f] > 0 ? layer->hidden[t][f] : 0;
        multiply(change[0], D, layer->hidden[0], weights + at->down, F, D);
        add_to_stream(model, change);
    }
    normalise(&model->norm, model->stream, weights + place->gain);
    multiply(model->logits[0], MODEL_VOCABULARY_MAX, model->norm.out[0], weights + place->out, D,
             model->vocabulary);
}

/* Softmax and cross entropy: the loss, and its derivative by the logits. */
static void score(struct model *model, const uint8_t *text)
{
    model->loss = 0;
    for (size_t t = 0; t < T; t++) {
        const float *row = model->logits[t];
        float *d_row = model->d_logits[t], most = -INFINITY, sum = 0;
        for (size_t v = 0; v < model->vocabulary; v++)
            most = row[v] > most ? row[v] : most;
        for (size_t v = 0; v < model->vocabulary; v++)
            sum += d_row[v] = exponential(row[v] - most);
        for (size_t v = 0; v < model->vocabulary; v++)
            d_row[v] /= sum;
        d_row[text[t + 1]] -= 1.0f;
        model->loss += log((double)sum) - (double)(row[text[t + 1]] - most);
    }
}

static void backward(struct model *model, const uint8_t *text)
{
    const float *weights = model->weights;
    float *gradient = model->gradient;
    const struct place *place = &model->place;
    memset(gradient, 0, place->count * sizeof *gradient);
    memset(model->d_stream, 0, sizeof model->d_stream);
    multiply_back(model->d_norm[0], gradient + place->out, model->d_logits[0], MODEL_VOCABULARY_MAX,
                  model->norm.out[0], weights + place->out, D, model->vocabulary);
    normalise_back(model->d_stream, gradient + place->gain, model->d_norm, &model->norm,
                   weights + place->gain);
    for (size_t i = L; i-- > 0;) {
        const struct layer *layer = &model->layers[i];
        const struct layer_place *at = &place->layers[i];
        multiply_back(model->d_hidden[0], gradient + at->down, model->d_stream[0], D, layer->hidden[0],
                      weights + at->down, F, D);
        for (size_t t = 0; t < T; t++)
            for (size_t f = 0; f < F; f++)
                model->d_hidden[t][f] = layer->hidden[t][f] > 0 ? model->d_hidden[t][f] : 0;
        multiply_back(model->d_norm[0], gradient + at->up, model->d_hidden[0], F, layer->norm2.out[0],
                      weights + at->up, D, F);
        normalise_back(model->d_stream, gradient + at->gain2, model->d_norm, &layer->norm2,
                       weights + at->gain2);
        multiply_back(model->d_mixed[0], gradient + at->mix, model->d_stream[0], D, layer->mixed[0],
                      weights + at->mix, D, D);
        attend_back(model, layer);
        multiply_back(model->d_norm[0], gradient + at->qkv, model->d_qkv[0], 3 * D, layer->norm1.out[0],
                      weights + at->qkv, D, 3 * D);
        normalise_back(model->d_stream, gradient + at->gain1, model->d_norm, &layer->norm1,
                       weights + at->gain1);
    }
    for (size_t t = 0; t < T; t++) {
        for (size_t d = 0; d < D; d++) {
            gradient[place->token + text[t] * (size_t)D + d] += model->d_stream[t][d];
            gradient[place->position + t * D + d] += model->d_stream[t][d];
        }
    }
}

int model_backward(struct model *model, const uint8_t *text, int64_t *sums)
{
    const float limit = 16384.0f; /* times 2^36 leaves room for 2^13 sequences */
    size_t count = model->place.count, wrong = 0;
    forward(model, text);
    score(model, text);
    backward(model, text);
    for (size_t i = 0; i < count; i++) {
        float value = model->gradient[i];
        bool finite = value > -INFINITY && value < INFINITY;
        wrong += !finite;
        value = !finite ? 0 : value > limit ? limit : value < -limit ? -limit : value;
        sums[i] += (int64_t)((double)value * MODEL_FIXED_ONE);
    }
    if (wrong > 0 || !(model->loss < (double)limit))
        return -1;
    sums[count] += (int64_t)(model->loss * MODEL_FIXED_ONE);
    return 0;
}

double model_check(struct model *model, const uint8_t *text)
{
    double worst = 0;
    float *analytic = malloc(model->place.count * sizeof *analytic);
    if (analytic == NULL)
        return INFINITY;
    forward(model, text);
    score(model, text);
    backward(model, text);
    memcpy(analytic, model->gradient, model->place.count * sizeof *analytic);
    for (size_t i = 0; i < model->place.count; i += 97) { /* every matrix is met many times */
        float before = model->weights[i], step = 1e-3f;
        double losses[2];
        for (int side = 0; side < 2; side++) {
            model->weights[i] = before + (side == 0 ? -step : step);
            forward(model, text);
            score(model, text);
            losses[side] = model->loss;
        }
        model->weights[i] = before;
        double numeric = (losses[1] - losses[0]) / (2 * (double)step);
        double error =
            fabs(numeric - (double)analytic[i]) / (fabs(numeric) + fabs((double)analytic[i]) + 0.5);
        worst = error > worst ? error : worst;
    }
    free(analytic);
    return worst;
}

uint64_t model_hash(const struct model *model)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < model->place.count; i++) {
        uint32_t bits;
        memcpy(&bits, &model->weights[i], sizeof bits);
        for (int byte = 0; byte < 4; byte++)
            hash = (hash ^ (bits >> (8 * byte) & 0xff)) * 0x100000001b3u;
    }
    return hash;
}
