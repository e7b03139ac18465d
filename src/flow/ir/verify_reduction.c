/* verify_reduction.c - reductions, windows, map, sort, batch norms, random bits. */
#include "flow/ir/verify.h"

int64_t window_size(const struct ir_window *window, uint32_t i, int64_t dim, int64_t size)
{
    __int128 room = dim == 0 ? 0 : (__int128)(dim - 1) * window->base_dilations.items[i] + 1;
    __int128 reach = size == 0 ? 0 : (__int128)(size - 1) * window->window_dilations.items[i] + 1;
    room += window->pad_low[i];
    room += window->pad_high[i];
    if (room < 0 || room > IR_ELEMENTS_MAX || reach > IR_ELEMENTS_MAX)
        return -1;
    return room == 0 || reach > room ? 0 : (int64_t)((room - reach) / window->strides.items[i] + 1);
}

bool verify_window(struct verifier *v, const struct ir_window *window, int64_t rank)
{
    struct ir_ints low = {window->pad_low, window->sizes.count},
                   high = {window->pad_high, window->sizes.count};
    return verify_list(v, "window_dimensions", window->sizes, rank,
                       v->op->kind == IR_OP_CONVOLUTION ? 0 : 1) &&
           verify_list(v, "window_strides", window->strides, rank, 1) &&
           verify_list(v, "dilations of the operand", window->base_dilations, rank, 1) &&
           verify_list(v, "dilations of the window", window->window_dilations, rank, 1) &&
           verify_list(v, "padding", low, rank, -IR_ELEMENTS_MAX) &&
           verify_list(v, "padding", high, rank, -IR_ELEMENTS_MAX);
}

/* Checks the inputs: values of one shape, as many initial values, and a body on two elements each. */
static bool verify_inputs(struct verifier *v, uint32_t *inputs)
{
    const struct ir_type *elements[IR_OPERANDS_MAX];
    uint32_t n = *inputs = v->op->operand_count / 2;
    if (v->op->operand_count % 2 || v->op->operand_count > IR_OPERANDS_MAX || v->op->result_count != n)
        return verify_fail(v, "%u operands and %u results: expected values and as many initial values",
                           v->op->operand_count, v->op->result_count);
    for (uint32_t i = 0; i < n; i++) {
        elements[i] = elements[n + i] = verify_operand(v, i);
        if (!verify_class(v, "operand", i, verify_operand(v, i), ~(unsigned)CLASS_TOKEN) ||
            !verify_same_shape(v, "operand", i, verify_operand(v, i), verify_operand(v, 0)) ||
            !verify_scalar(v, "operand", n + i, verify_operand(v, n + i), verify_operand(v, i)->element))
            return false;
    }
    return verify_region(v, 0, elements, 2 * n, elements, n, false);
}

static bool verify_reduce(struct verifier *v)
{
    struct ir_ints dims = v->op->attributes.dims.dims;
    const struct ir_type *first = verify_operand(v, 0);
    struct ir_type wanted = {0};
    uint32_t inputs;
    if (!verify_inputs(v, &inputs) || !verify_dims(v, "dimensions", dims, first->rank, false))
        return false;
    for (int32_t i = 0; i < first->rank; i++) {
        if (!ir_ints_have(dims, i))
            wanted.dims[wanted.rank++] = first->dims[i];
    }
    for (uint32_t i = 0; i < inputs; i++) {
        wanted.element = verify_operand(v, i)->element;
        if (!verify_is(v, "result", i, verify_result(v, i), &wanted))
            return false;
    }
    return true;
}

/* Replaces the shape of *type by that of the windows over it. */
static bool verify_window_shape(struct verifier *v, const struct ir_window *window, struct ir_type *type)
{
    for (int32_t i = 0; i < type->rank; i++) {
        type->dims[i] = window_size(window, (uint32_t)i, type->dims[i], window->sizes.items[i]);
        if (type->dims[i] < 0)
            return verify_fail(v, "the window leaves no valid size for dimension %d", (int)i);
    }
    return true;
}

static bool verify_reduce_window(struct verifier *v)
{
    const struct ir_window *window = &v->op->attributes.window;
    struct ir_type wanted = *verify_operand(v, 0);
    uint32_t inputs;
    if (!verify_inputs(v, &inputs) || !verify_window(v, window, wanted.rank) ||
        !verify_window_shape(v, window, &wanted))
        return false;
    for (uint32_t i = 0; i < inputs; i++) {
        wanted.element = verify_operand(v, i)->element;
        if (!verify_is(v, "result", i, verify_result(v, i), &wanted))
            return false;
    }
    return true;
}

static bool verify_select_and_scatter(struct verifier *v)
{
    const struct ir_window *window = &v->op->attributes.window;
    const struct ir_type *operand = verify_operand(v, 0);
    struct ir_type wanted = *operand, truth = {.element = IR_I1};
    const struct ir_type *pair[2] = {operand, operand}, *truths[1] = {&truth};
    if (!verify_class(v, "operand", 0, operand, ~(unsigned)CLASS_TOKEN) ||
        !verify_window(v, window, operand->rank) || !verify_window_shape(v, window, &wanted))
        return false;
    return verify_is(v, "operand", 1, verify_operand(v, 1), &wanted) &&
           verify_scalar(v, "operand", 2, verify_operand(v, 2), operand->element) &&
           verify_is(v, "result", 0, verify_result(v, 0), operand) &&
           verify_region(v, 0, pair, 2, truths, 1, false) && verify_region(v, 1, pair, 2, pair, 1, false);
}

static bool verify_map(struct verifier *v)
{
    struct ir_ints dims = v->op->attributes.dims.dims;
    const struct ir_type *first = verify_operand(v, 0);
    const struct ir_type *elements[IR_OPERANDS_MAX], *results[1] = {verify_result(v, 0)};
    if (v->op->operand_count > IR_OPERANDS_MAX || dims.count != (uint32_t)first->rank)
        return verify_fail(v, "dimensions has %u numbers, expected %d", dims.count, (int)first->rank);
    for (uint32_t i = 0; i < dims.count; i++) {
        if (dims.items[i] != i)
            return verify_fail(v, "dimensions is not 0, 1, 2, ...");
    }
    for (uint32_t i = 0; i < v->op->operand_count; i++) {
        elements[i] = verify_operand(v, i);
        if (!verify_same_shape(v, "operand", i, verify_operand(v, i), first))
            return false;
    }
    return verify_same_shape(v, "result", 0, verify_result(v, 0), first) &&
           verify_region(v, 0, elements, v->op->operand_count, results, 1, false);
}

static bool verify_sort(struct verifier *v)
{
    struct ir_type truth = {.element = IR_I1};
    const struct ir_type *elements[2 * IR_OPERANDS_MAX], *truths[1] = {&truth};
    uint32_t n = v->op->operand_count;
    if (n > IR_OPERANDS_MAX ||
        !verify_axis(v, "dimension", v->op->attributes.sort.dimension, verify_operand(v, 0)->rank))
        return n <= IR_OPERANDS_MAX ? false : verify_fail(v, "more than %d operands", IR_OPERANDS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        elements[2 * i] = elements[2 * i + 1] = verify_operand(v, i);
        if (!verify_same_shape(v, "operand", i, verify_operand(v, i), verify_operand(v, 0)))
            return false;
    }
    return verify_results_are_operands(v) && verify_region(v, 0, elements, 2 * n, truths, 1, false);
}

static bool verify_batch_norm(struct verifier *v)
{
    const struct ir_type *operand = verify_operand(v, 0);
    int64_t axis = v->op->attributes.batch_norm.feature;
    bool grad = v->op->kind == IR_OP_BATCH_NORM_GRAD;
    if (!verify_class(v, "operand", 0, operand, CLASS_FLOAT) ||
        !verify_axis(v, "feature_index", axis, operand->rank))
        return false;
    struct ir_type features = {.element = operand->element, .rank = 1, .dims = {operand->dims[axis]}};
    for (uint32_t i = 1; i < v->op->operand_count; i++) {
        if (!verify_is(v, "operand", i, verify_operand(v, i), grad && i == 4 ? operand : &features))
            return false;
    }
    for (uint32_t i = 0; i < v->op->result_count; i++) {
        if (!verify_is(v, "result", i, verify_result(v, i), i == 0 ? operand : &features))
            return false;
    }
    return true;
}

static bool verify_random(struct verifier *v)
{
    const struct ir_type *state = verify_operand(v, 0);
    if (state->element != IR_U64 || state->rank != 1)
        return verify_fail(v, "the state is no vector of ui64");
    if (v->op->attributes.rng.algorithm != IR_RNG_DEFAULT && state->dims[0] != 2 &&
        !(v->op->attributes.rng.algorithm == IR_RNG_PHILOX && state->dims[0] == 3))
        return verify_fail(v, "the state has %lld numbers, expected 2", (long long)state->dims[0]);
    return verify_is(v, "result", 0, verify_result(v, 0), state) &&
           verify_class(v, "result", 1, verify_result(v, 1), CLASS_INTEGER | CLASS_FLOAT);
}

bool verify_reduction(struct verifier *v)
{
    switch (v->op->kind) {
    case IR_OP_REDUCE:
        return verify_reduce(v);
    case IR_OP_REDUCE_WINDOW:
        return verify_reduce_window(v);
    case IR_OP_SELECT_AND_SCATTER:
        return verify_select_and_scatter(v);
    case IR_OP_MAP:
        return verify_map(v);
    case IR_OP_SORT:
        return verify_sort(v);
    case IR_OP_RNG_BIT_GENERATOR:
        return verify_random(v);
    default:
        return verify_batch_norm(v);
    }
}
