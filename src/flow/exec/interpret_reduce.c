/* interpret_reduce.c - operations that apply a region to many elements. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "flow/exec/fold.h"
#include "flow/exec/interpret.h"
#include "flow/exec/kernels.h"

static void tensors_free(struct tensor **tensors, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        tensor_unref(tensors[k]);
}

/* Makes the results of the operation with undefined elements. On failure none remains. */
static int results_new(struct interpretation *run, const struct ir_op *op, struct tensor **results)
{
    for (uint32_t k = 0; k < op->result_count; k++)
        if (!(results[k] = interpret_result(run, op, k))) {
            tensors_free(results, k);
            return ERROR_LIMIT;
        }
    return 0;
}

/* --- reduce */

static void fill_initial(struct tensor *const *initial, struct tensor **results, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        kernel_copy(ir_element_size(results[k]->type.element), initial[k]->data, 0,
                    ir_type_elements(&results[k]->type), results[k]->data);
}

int interpret_reduce(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                     struct tensor **results)
{
    uint32_t inputs = op->operand_count / 2;
    const struct ir_type *type = &operands[0]->type;
    struct folding folding;
    int code = results_new(run, op, results);
    if (code < 0)
        return code;
    fill_initial(operands + inputs, results, inputs);
    int64_t strides[IR_RANK_MAX] = {0}, index[IR_RANK_MAX] = {0}, stride = 1;
    for (int32_t d = type->rank; d-- > 0;) {
        bool reduced = false;
        for (uint32_t k = 0; k < op->attributes.dims.dims.count; k++)
            reduced = reduced || op->attributes.dims.dims.items[k] == d;
        if (!reduced) {
            strides[d] = stride;
            stride *= type->dims[d];
        }
    }
    code = folding_begin(&folding, run, op, &op->regions[0], true);
    int64_t elements = ir_type_elements(type), row = type->rank ? type->dims[type->rank - 1] : 1;
    bool row_reduced = type->rank && strides[type->rank - 1] == 0;
    for (int64_t from = 0; from < elements && code == 0; from += row) { /* rows of the last dimension */
        int64_t to = 0;
        for (int32_t d = 0; d + 1 < type->rank; d++)
            to += index[d] * strides[d];
        code = row_reduced ? fold_line(&folding, operands, from, results, to, row)
                           : fold_lines(&folding, operands, from, results, to, row);
        index_next(index, type->dims, type->rank - 1);
    }
    folding_end(&folding);
    if (code < 0)
        tensors_free(results, op->result_count);
    return code;
}

/* --- windows */

/* Returns the position in the input of window element `at` of the window that starts at `out`, or -1 if it is
 * in the padding or between elements of a dilated input. */
static int64_t window_source(const struct ir_window *window, const struct ir_type *input, const int64_t *out,
                             const int64_t *at)
{
    int64_t source = 0;
    for (int32_t d = 0; d < input->rank; d++) {
        int64_t position = out[d] * window->strides.items[d] + at[d] * window->window_dilations.items[d] -
                           window->pad_low[d];
        int64_t dilation = window->base_dilations.items[d];
        if (position < 0 || position % dilation != 0 || position / dilation >= input->dims[d])
            return -1;
        source = source * input->dims[d] + position / dilation;
    }
    return source;
}

int interpret_reduce_window(struct interpretation *run, const struct ir_op *op,
                            struct tensor *const *operands, struct tensor **results)
{
    uint32_t inputs = op->operand_count / 2;
    const struct ir_window *window = &op->attributes.window;
    const struct ir_type *type = &operands[0]->type, *out_type = &op->results[0].type;
    struct folding folding;
    int code = results_new(run, op, results);
    if (code < 0)
        return code;
    fill_initial(operands + inputs, results, inputs);
    int64_t out[IR_RANK_MAX] = {0};
    code = folding_begin(&folding, run, op, &op->regions[0], true);
    for (int64_t to = 0; to < ir_type_elements(out_type) && code == 0; to++) {
        int64_t at[IR_RANK_MAX] = {0};
        do {
            int64_t from = window_source(window, type, out, at);
            if (from >= 0)
                code = fold_element(&folding, operands, from, results, to);
        } while (code == 0 && index_next(at, window->sizes.items, type->rank));
        index_next(out, out_type->dims, out_type->rank);
    }
    folding_end(&folding);
    if (code < 0)
        tensors_free(results, op->result_count);
    return code;
}

/* Adds, by the second region, the window's source to the element that the first region selects in each
 * window. */
int interpret_select_and_scatter(struct interpretation *run, const struct ir_op *op,
                                 struct tensor *const *operands, struct tensor **results)
{
    const struct tensor *operand = operands[0], *source = operands[1];
    const struct ir_window *window = &op->attributes.window;
    struct folding select = {0}, scatter = {0};
    int code = results_new(run, op, results);
    if (code < 0)
        return code;
    fill_initial(operands + 2, results, 1);
    int64_t out[IR_RANK_MAX] = {0};
    code = folding_begin(&select, run, op, &op->regions[0], false);
    if (code == 0)
        code = folding_begin(&scatter, run, op, &op->regions[1], true);
    for (int64_t from = 0; from < ir_type_elements(&source->type) && code == 0; from++) {
        int64_t at[IR_RANK_MAX] = {0}, chosen = -1;
        do {
            int64_t candidate = window_source(window, &operand->type, out, at);
            bool keeps = chosen >= 0;
            if (candidate >= 0 && keeps) {
                folding_set(&select, 0, operand, chosen);
                folding_set(&select, 1, operand, candidate);
                code = folding_holds(&select, &keeps);
            }
            if (candidate >= 0 && !keeps)
                chosen = candidate;
        } while (code == 0 && index_next(at, window->sizes.items, operand->type.rank));
        if (code == 0 && chosen >= 0)
            code = fold_element(&scatter, operands + 1, from, results, chosen);
        index_next(out, source->type.dims, source->type.rank);
    }
    folding_end(&select), folding_end(&scatter);
    if (code < 0)
        tensors_free(results, op->result_count);
    return code;
}

/* --- map */

int interpret_map(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                  struct tensor **results)
{
    struct folding folding;
    int code = results_new(run, op, results);
    if (code < 0)
        return code;
    code = folding_begin(&folding, run, op, &op->regions[0], false);
    for (int64_t at = 0; at < ir_type_elements(&results[0]->type) && code == 0; at++) {
        struct tensor *mapped;
        for (uint32_t k = 0; k < op->operand_count; k++)
            folding_set(&folding, k, operands[k], at);
        if ((code = folding_apply(&folding, &mapped)) == 0) {
            element_copy(results[0], at, mapped, 0);
            tensor_unref(mapped);
        }
    }
    folding_end(&folding);
    if (code < 0)
        tensors_free(results, op->result_count);
    return code;
}

/* --- sort */

/* A line of the operands along the sorted dimension. */
struct sorting {
    struct folding folding;
    struct tensor *const *operands;
    uint32_t count;     /* of operands */
    int64_t base, step; /* of the line, in elements */
    int code;
};

/* Whether element `a` of the line must come before element `b`. */
static bool sorts_before(struct sorting *sorting, int64_t a, int64_t b)
{
    bool before = false;
    for (uint32_t k = 0; k < sorting->count && sorting->code == 0; k++) {
        folding_set(&sorting->folding, 2 * k, sorting->operands[k], sorting->base + a * sorting->step);
        folding_set(&sorting->folding, 2 * k + 1, sorting->operands[k], sorting->base + b * sorting->step);
    }
    if (sorting->code == 0)
        sorting->code = folding_holds(&sorting->folding, &before);
    return before;
}

/* Sorts `order` with a stable merge sort; `scratch` has the same length. */
static void order_sort(struct sorting *sorting, int64_t *order, int64_t count, int64_t *scratch)
{
    if (count < 2)
        return;
    int64_t half = count / 2, left = 0, right = half;
    order_sort(sorting, order, half, scratch);
    order_sort(sorting, order + half, count - half, scratch);
    for (int64_t k = 0; k < count; k++) {
        bool take_right = left == half || (right < count && sorts_before(sorting, order[right], order[left]));
        scratch[k] = order[take_right ? right++ : left++];
    }
    memcpy(order, scratch, (size_t)count * sizeof *order);
}

int interpret_sort(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                   struct tensor **results)
{
    const struct ir_type *type = &operands[0]->type;
    int64_t dimension = op->attributes.sort.dimension;
    int64_t length = type->rank ? type->dims[dimension] : 1, strides[IR_RANK_MAX] = {0};
    strides_of(type, strides);
    struct sorting sorting = {.operands = operands, .count = op->operand_count};
    int code = results_new(run, op, results);
    if (code < 0)
        return code;
    int64_t *order = calloc((size_t)length + 1, 2 * sizeof *order);
    sorting.code = order ? folding_begin(&sorting.folding, run, op, &op->regions[0], false)
                         : interpret_fail(run, op, ERROR_LIMIT, "no memory for the order");
    sorting.step = type->rank ? strides[dimension] : 1;
    for (int64_t at = 0; at < ir_type_elements(type) && sorting.code == 0; at++) {
        if (type->rank && at / sorting.step % length != 0) /* not the first of its line */
            continue;
        sorting.base = at;
        for (int64_t k = 0; k < length; k++)
            order[k] = k;
        order_sort(&sorting, order, length, order + length);
        for (uint32_t k = 0; k < op->operand_count && sorting.code == 0; k++)
            for (int64_t j = 0; j < length; j++)
                element_copy(results[k], at + j * sorting.step, operands[k], at + order[j] * sorting.step);
    }
    folding_end(&sorting.folding);
    free(order);
    if (sorting.code < 0)
        tensors_free(results, op->result_count);
    return sorting.code;
}
