/* interpret_norm.c - batch normalisation, as defined by the StableHLO specification. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "flow/exec/interpret.h"
#include "flow/exec/lanes.h"

/* The widened elements of a float tensor. The caller frees `of`. */
struct numbers {
    double *of;
    int64_t count;
};

static bool numbers_new(struct numbers *numbers, int64_t count)
{
    *numbers = (struct numbers){.of = calloc((size_t)count + 1, sizeof *numbers->of), .count = count};
    return numbers->of != NULL;
}

static bool numbers_of(struct numbers *numbers, const struct tensor *tensor)
{
    if (!numbers_new(numbers, ir_type_elements(&tensor->type)))
        return false;
    lanes_widen(numbers->of, IR_F64, tensor->type.element, tensor->data, numbers->count);
    return true;
}

static void numbers_store(const struct numbers *numbers, struct tensor *tensor)
{
    lanes_narrow(numbers->of, IR_F64, tensor->type.element, tensor->data, numbers->count);
}

/* Shared by the three operations: operands and results as numbers, and the mapping of elements to
 * features. */
struct norm {
    const struct ir_op *op;
    struct numbers in[5], out[3];
    int64_t step, features, per_feature; /* elements between features; how many; elements of one */
};

static int64_t feature_of(const struct norm *norm, int64_t at)
{
    return at / norm->step % norm->features;
}

static int norm_begin(struct norm *norm, struct interpretation *run, const struct ir_op *op,
                      struct tensor *const *operands)
{
    *norm = (struct norm){.op = op};
    int64_t strides[IR_RANK_MAX], feature = op->attributes.batch_norm.feature;
    strides_of(&operands[0]->type, strides);
    norm->step = strides[feature];
    norm->features = operands[0]->type.dims[feature];
    bool fits = true;
    for (uint32_t k = 0; k < op->operand_count; k++)
        fits = fits && numbers_of(&norm->in[k], operands[k]);
    for (uint32_t k = 0; k < op->result_count; k++)
        fits = fits && numbers_new(&norm->out[k], ir_type_elements(&op->results[k].type));
    norm->per_feature = norm->features ? norm->in[0].count / norm->features : 0;
    return fits ? 0 : interpret_fail(run, op, ERROR_LIMIT, "no memory for the operands");
}

/* Makes the results, unless `code` is an error, and frees all memory. */
static int norm_end(struct norm *norm, struct interpretation *run, int code, struct tensor **results)
{
    uint32_t made = 0;
    for (; made < norm->op->result_count && code == 0; made++) {
        if (!(results[made] = interpret_result(run, norm->op, made)))
            code = ERROR_LIMIT;
        else
            numbers_store(&norm->out[made], results[made]);
    }
    for (uint32_t k = 0; k < made && code < 0; k++)
        tensor_unref(results[k]);
    for (int k = 0; k < 5; k++)
        free(norm->in[k].of);
    for (int k = 0; k < 3; k++)
        free(norm->out[k].of);
    return code;
}

/* operand, scale, offset, mean, variance -> normalised operand */
int interpret_batch_norm(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                         struct tensor **results)
{
    struct norm norm;
    int code = norm_begin(&norm, run, op, operands);
    double epsilon = op->attributes.batch_norm.epsilon;
    for (int64_t at = 0; at < norm.in[0].count && code == 0; at++) {
        int64_t k = feature_of(&norm, at);
        double unit = (norm.in[0].of[at] - norm.in[3].of[k]) / sqrt(norm.in[4].of[k] + epsilon);
        norm.out[0].of[at] = unit * norm.in[1].of[k] + norm.in[2].of[k];
    }
    return norm_end(&norm, run, code, results);
}

/* operand, scale, offset -> normalised operand, mean, variance of the batch */
int interpret_batch_norm_training(struct interpretation *run, const struct ir_op *op,
                                  struct tensor *const *operands, struct tensor **results)
{
    struct norm norm;
    int code = norm_begin(&norm, run, op, operands);
    double epsilon = op->attributes.batch_norm.epsilon, *mean = norm.out[1].of, *variance = norm.out[2].of;
    const double *x = norm.in[0].of;
    int64_t count = code == 0 ? norm.in[0].count : 0;
    for (int64_t at = 0; at < count; at++)
        mean[feature_of(&norm, at)] += x[at] / (double)norm.per_feature;
    for (int64_t at = 0; at < count; at++) {
        double apart = x[at] - mean[feature_of(&norm, at)];
        variance[feature_of(&norm, at)] += apart * apart / (double)norm.per_feature;
    }
    for (int64_t at = 0; at < count; at++) {
        int64_t k = feature_of(&norm, at);
        norm.out[0].of[at] =
            (x[at] - mean[k]) / sqrt(variance[k] + epsilon) * norm.in[1].of[k] + norm.in[2].of[k];
    }
    return norm_end(&norm, run, code, results);
}

/* operand, scale, mean, variance, gradient of the output -> gradients of operand, scale and offset */
int interpret_batch_norm_grad(struct interpretation *run, const struct ir_op *op,
                              struct tensor *const *operands, struct tensor **results)
{
    struct norm norm;
    int code = norm_begin(&norm, run, op, operands);
    double epsilon = op->attributes.batch_norm.epsilon, per = (double)norm.per_feature;
    const double *x = norm.in[0].of, *scale = norm.in[1].of, *mean = norm.in[2].of, *variance = norm.in[3].of;
    const double *gradient = norm.in[4].of;
    int64_t count = code == 0 ? norm.in[0].count : 0;
    for (int64_t at = 0; at < count; at++) {
        int64_t k = feature_of(&norm, at);
        norm.out[1].of[k] += gradient[at] * (x[at] - mean[k]) / sqrt(variance[k] + epsilon);
        norm.out[2].of[k] += gradient[at];
    }
    for (int64_t at = 0; at < count; at++) {
        int64_t k = feature_of(&norm, at);
        double deviation = sqrt(variance[k] + epsilon), unit = (x[at] - mean[k]) / deviation;
        norm.out[0].of[at] =
            scale[k] / deviation * (gradient[at] - (norm.out[2].of[k] + unit * norm.out[1].of[k]) / per);
    }
    return norm_end(&norm, run, code, results);
}
