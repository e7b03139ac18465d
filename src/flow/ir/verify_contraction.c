/* verify_contraction.c - dot_general, convolution, linear algebra and fft. */
#include "flow/ir/verify.h"

/* Checks the classes of a product: operands may be narrower than the result (i8 x i8 -> i32), but not of
 * another class. */
static bool verify_product_classes(struct verifier *v)
{
    unsigned class = element_class(verify_operand(v, 0)->element);
    if (!verify_class(v, "operand", 0, verify_operand(v, 0), CLASS_NUMBER | CLASS_BOOL))
        return false;
    class |= class & CLASS_INTEGER ? CLASS_INTEGER : 0; /* ui8 x i8 -> i32 */
    return verify_class(v, "operand", 1, verify_operand(v, 1), class) &&
           verify_class(v, "result", 0, verify_result(v, 0), class);
}

static bool verify_dot_pairs(struct verifier *v, const char *name, struct ir_ints left, struct ir_ints right)
{
    const struct ir_type *lhs = verify_operand(v, 0), *rhs = verify_operand(v, 1);
    if (left.count != right.count)
        return verify_fail(v, "%u and %u %s dimensions", left.count, right.count, name);
    if (!verify_dims(v, name, left, lhs->rank, false) || !verify_dims(v, name, right, rhs->rank, false))
        return false;
    for (uint32_t i = 0; i < left.count; i++) {
        if (lhs->dims[left.items[i]] != rhs->dims[right.items[i]])
            return verify_fail(v, "%s dimensions %lld and %lld have sizes %lld and %lld", name,
                               (long long)left.items[i], (long long)right.items[i],
                               (long long)lhs->dims[left.items[i]], (long long)rhs->dims[right.items[i]]);
    }
    return true;
}

static bool verify_dot(struct verifier *v)
{
    const union ir_attributes *a = &v->op->attributes;
    struct ir_type wanted = {.element = verify_result(v, 0)->element};
    struct ir_ints batch[2] = {a->dot.lhs_batch, a->dot.rhs_batch};
    struct ir_ints contract[2] = {a->dot.lhs_contract, a->dot.rhs_contract};
    if (!verify_product_classes(v) || !verify_dot_pairs(v, "batching", batch[0], batch[1]) ||
        !verify_dot_pairs(v, "contracting", contract[0], contract[1]))
        return false;
    for (uint32_t i = 0; i < batch[0].count; i++)
        wanted.dims[wanted.rank++] = verify_operand(v, 0)->dims[batch[0].items[i]];
    for (uint32_t side = 0; side < 2; side++) {
        const struct ir_type *type = verify_operand(v, side);
        for (int32_t i = 0; i < type->rank; i++) {
            bool batched = ir_ints_have(batch[side], i), contracted = ir_ints_have(contract[side], i);
            if (batched && contracted)
                return verify_fail(v, "dimension %d is both batching and contracting", (int)i);
            if (batched || contracted)
                continue;
            if (wanted.rank == IR_RANK_MAX)
                return verify_fail(v, "more than %d dimensions", IR_RANK_MAX);
            wanted.dims[wanted.rank++] = type->dims[i];
        }
    }
    return verify_is(v, "result", 0, verify_result(v, 0), &wanted);
}

/* Checks that the two letters and the spatial list name each of `rank` dimensions once. */
static bool verify_conv_dims(struct verifier *v, int64_t first, int64_t second, struct ir_ints spatial,
                             int32_t rank)
{
    int64_t all[IR_RANK_MAX];
    if (spatial.count + 2 != (uint32_t)rank)
        return verify_fail(v, "dimension numbers for rank %u, expected %d", spatial.count + 2, (int)rank);
    all[0] = first;
    all[1] = second;
    mem_copy(all + 2, spatial.items, spatial.count * sizeof *all);
    return verify_dims(v, "dimension_numbers", (struct ir_ints){all, (uint32_t)rank}, rank, false);
}

static bool verify_conv_groups(struct verifier *v)
{
    const union ir_attributes *a = &v->op->attributes;
    const struct ir_type *input = verify_operand(v, 0), *kernel = verify_operand(v, 1);
    int64_t features = a->conv.feature_groups, batches = a->conv.batch_groups;
    if (features < 1 || batches < 1 || (features > 1 && batches > 1))
        return verify_fail(v, "feature_group_count %lld and batch_group_count %lld", (long long)features,
                           (long long)batches);
    int64_t input_features = input->dims[a->conv.input_feature];
    int64_t output_features = kernel->dims[a->conv.kernel_output_feature];
    if (input->dims[a->conv.input_batch] % batches || output_features % batches)
        return verify_fail(v, "batch_group_count %lld does not divide the batch and the output features",
                           (long long)batches);
    if (input_features % features || output_features % features)
        return verify_fail(v, "feature_group_count %lld does not divide the input and output features",
                           (long long)features);
    return input_features / features == kernel->dims[a->conv.kernel_input_feature] ||
           verify_fail(v, "the kernel has %lld input features, expected %lld",
                       (long long)kernel->dims[a->conv.kernel_input_feature],
                       (long long)(input_features / features));
}

static bool verify_convolution(struct verifier *v)
{
    const union ir_attributes *a = &v->op->attributes;
    const struct ir_type *input = verify_operand(v, 0), *kernel = verify_operand(v, 1);
    const struct ir_window *window = &a->conv.window;
    struct ir_type wanted = {.element = verify_result(v, 0)->element, .rank = input->rank};
    uint32_t spatial = a->conv.input_spatial.count;
    if (!verify_product_classes(v) ||
        !verify_conv_dims(v, a->conv.input_batch, a->conv.input_feature, a->conv.input_spatial,
                          input->rank) ||
        !verify_conv_dims(v, a->conv.kernel_input_feature, a->conv.kernel_output_feature,
                          a->conv.kernel_spatial, kernel->rank) ||
        !verify_conv_dims(v, a->conv.output_batch, a->conv.output_feature, a->conv.output_spatial,
                          input->rank))
        return false;
    if (kernel->rank != input->rank)
        return verify_fail(v, "the kernel has rank %d, the input %d", (int)kernel->rank, (int)input->rank);
    if (!verify_conv_groups(v) || !verify_window(v, window, spatial))
        return false;
    wanted.dims[a->conv.output_batch] = input->dims[a->conv.input_batch] / a->conv.batch_groups;
    wanted.dims[a->conv.output_feature] = kernel->dims[a->conv.kernel_output_feature];
    for (uint32_t i = 0; i < spatial; i++) {
        int64_t size = kernel->dims[a->conv.kernel_spatial.items[i]];
        if (window->sizes.items[i] != size)
            return verify_fail(v, "the window's size %u is not the kernel's", i);
        size = window_size(window, i, input->dims[a->conv.input_spatial.items[i]], size);
        if (size < 0)
            return verify_fail(v, "the window leaves no valid size for spatial dimension %u", i);
        wanted.dims[a->conv.output_spatial.items[i]] = size;
    }
    return verify_is(v, "result", 0, verify_result(v, 0), &wanted);
}

/* Checks that the last two dimensions are equal. */
static bool verify_square(struct verifier *v, const struct ir_type *type)
{
    return (type->rank >= 2 && type->dims[type->rank - 1] == type->dims[type->rank - 2]) ||
           verify_fail(v, "operand 0 is no square matrix, or batch of them");
}

static bool verify_cholesky(struct verifier *v)
{
    return verify_class(v, "operand", 0, verify_operand(v, 0), CLASS_FLOAT | CLASS_COMPLEX) &&
           verify_square(v, verify_operand(v, 0)) && verify_results_are_operands(v);
}

static bool verify_triangular(struct verifier *v)
{
    const struct ir_type *a = verify_operand(v, 0), *b = verify_operand(v, 1);
    if (!verify_class(v, "operand", 0, a, CLASS_FLOAT | CLASS_COMPLEX) || !verify_square(v, a))
        return false;
    if (b->rank != a->rank || b->element != a->element)
        return verify_fail(v, "the two operands differ in rank or element type");
    int32_t side = v->op->attributes.triangular.left_side ? b->rank - 2 : b->rank - 1;
    for (int32_t i = 0; i < a->rank - 2; i++) {
        if (a->dims[i] != b->dims[i])
            return verify_fail(v, "batch dimension %d has sizes %lld and %lld", (int)i, (long long)a->dims[i],
                               (long long)b->dims[i]);
    }
    if (b->dims[side] != a->dims[a->rank - 1])
        return verify_fail(v, "operand 1 has size %lld in dimension %d, expected %lld",
                           (long long)b->dims[side], (int)side, (long long)a->dims[a->rank - 1]);
    return verify_is(v, "result", 0, verify_result(v, 0), b);
}

static bool verify_fft(struct verifier *v)
{
    const struct ir_type *from = verify_operand(v, 0), *to = verify_result(v, 0);
    struct ir_ints lengths = v->op->attributes.fft.lengths;
    enum ir_fft type = v->op->attributes.fft.type;
    struct ir_type wanted = *from;
    if (lengths.count < 1 || lengths.count > 3 || lengths.count > (uint32_t)from->rank)
        return verify_fail(v, "fft_length has %u numbers", lengths.count);
    if (!verify_list(v, "fft_length", lengths, lengths.count, 0) ||
        !verify_class(v, "operand", 0, from, type == IR_RFFT ? CLASS_FLOAT : CLASS_COMPLEX))
        return false;
    for (uint32_t i = 0; i < lengths.count; i++) {
        int32_t at = from->rank - (int32_t)lengths.count + (int32_t)i;
        bool last = i + 1 == lengths.count;
        int64_t size = lengths.items[i];
        int64_t half = size == 0 ? 0 : size / 2 + 1;
        if (from->dims[at] != (type == IR_IRFFT && last ? half : size))
            return verify_fail(v, "fft_length %lld does not fit dimension %d of size %lld", (long long)size,
                               (int)at, (long long)from->dims[at]);
        wanted.dims[at] = type == IR_RFFT && last ? half : size;
    }
    if (type == IR_RFFT || type == IR_IRFFT) {
        bool narrow = from->element == IR_F32 || from->element == IR_C64;
        if (from->element < IR_F32)
            return verify_fail(v, "operand 0 has elements of type %s, expected f32 or f64",
                               ir_element_name(from->element));
        wanted.element = type == IR_RFFT ? (narrow ? IR_C64 : IR_C128) : narrow ? IR_F32 : IR_F64;
    }
    return verify_is(v, "result", 0, to, &wanted);
}

bool verify_contraction(struct verifier *v)
{
    switch (v->op->kind) {
    case IR_OP_DOT_GENERAL:
        return verify_dot(v);
    case IR_OP_CONVOLUTION:
        return verify_convolution(v);
    case IR_OP_CHOLESKY:
        return verify_cholesky(v);
    case IR_OP_TRIANGULAR_SOLVE:
        return verify_triangular(v);
    default:
        return verify_fft(v);
    }
}
