/* codec_attributes.c - the attributes of each kind of operation as bytes.
 *
 * Enumerations are numbers in the order of ir.h, which therefore only grow at their end.
 */
#include "flow/ir/codec.h"

static unsigned codec_enum(struct codec *codec, unsigned value, unsigned most)
{
    uint32_t number = value;
    codec_u32(codec, &number, most);
    return number;
}

/* A list that is stored without its length, which is `count`. */
static void codec_items(struct codec *codec, const int64_t **items, uint32_t count)
{
    struct ir_ints ints = {*items, count};
    codec_ints(codec, &ints);
    if (!codec->writing && ints.count != count)
        codec_fail(codec, "two lists differ in length");
    *items = ints.items;
}

static void codec_window(struct codec *codec, struct ir_window *window)
{
    codec_ints(codec, &window->sizes);
    codec_ints(codec, &window->strides);
    codec_ints(codec, &window->base_dilations);
    codec_ints(codec, &window->window_dilations);
    codec_items(codec, &window->pad_low, window->sizes.count);
    codec_items(codec, &window->pad_high, window->sizes.count);
    bool *reversal = codec->writing ? NULL : ARENA_ARRAY(codec->arena, bool, window->sizes.count);
    for (uint32_t i = 0; i < window->sizes.count; i++) {
        bool reversed = codec->writing && window->reversal[i];
        codec_bool(codec, &reversed);
        if (reversal)
            reversal[i] = reversed;
    }
    if (reversal)
        window->reversal = reversal;
}

static void codec_gather(struct codec *codec, union ir_attributes *a)
{
    codec_ints(codec, &a->gather.offset_dims);
    codec_ints(codec, &a->gather.collapsed_slice_dims);
    codec_ints(codec, &a->gather.operand_batching_dims);
    codec_ints(codec, &a->gather.start_indices_batching_dims);
    codec_ints(codec, &a->gather.start_index_map);
    codec_ints(codec, &a->gather.slice_sizes);
    codec_int(codec, &a->gather.index_vector_dim);
    codec_bool(codec, &a->gather.sorted);
}

static void codec_scatter(struct codec *codec, union ir_attributes *a)
{
    codec_ints(codec, &a->scatter.update_window_dims);
    codec_ints(codec, &a->scatter.inserted_window_dims);
    codec_ints(codec, &a->scatter.input_batching_dims);
    codec_ints(codec, &a->scatter.scatter_indices_batching_dims);
    codec_ints(codec, &a->scatter.scatter_dims_to_operand_dims);
    codec_int(codec, &a->scatter.index_vector_dim);
    codec_bool(codec, &a->scatter.sorted);
    codec_bool(codec, &a->scatter.unique);
}

static void codec_conv(struct codec *codec, union ir_attributes *a)
{
    codec_window(codec, &a->conv.window);
    codec_int(codec, &a->conv.input_batch);
    codec_int(codec, &a->conv.input_feature);
    codec_int(codec, &a->conv.kernel_input_feature);
    codec_int(codec, &a->conv.kernel_output_feature);
    codec_int(codec, &a->conv.output_batch);
    codec_int(codec, &a->conv.output_feature);
    codec_ints(codec, &a->conv.input_spatial);
    codec_ints(codec, &a->conv.kernel_spatial);
    codec_ints(codec, &a->conv.output_spatial);
    codec_int(codec, &a->conv.feature_groups);
    codec_int(codec, &a->conv.batch_groups);
}

static void codec_collective(struct codec *codec, union ir_attributes *a)
{
    struct ir_groups *groups = &a->collective.groups;
    codec_u32(codec, &groups->count, IR_VALUES_MAX);
    codec_u32(codec, &groups->size, IR_VALUES_MAX);
    uint64_t ids = (uint64_t)groups->count * groups->size;
    if (ids > IR_VALUES_MAX)
        codec_fail(codec, "too many ids of replicas");
    codec_items(codec, &groups->ids, codec->failed ? 0 : (uint32_t)ids);
    codec_bool(codec, &groups->use_global_ids);
    codec_int(codec, &groups->channel);
    codec_int(codec, &a->collective.dimension);
    codec_int(codec, &a->collective.split_dimension);
    codec_int(codec, &a->collective.concat_dimension);
    codec_int(codec, &a->collective.split_count);
}

static void codec_permute(struct codec *codec, union ir_attributes *a)
{
    struct ir_ints pairs = {(const int64_t *)a->permute.pairs, a->permute.count * 2};
    codec_ints(codec, &pairs);
    codec_int(codec, &a->permute.channel);
    if (!codec->writing && pairs.count % 2)
        codec_fail(codec, "half a pair");
    a->permute.pairs = (const int64_t(*)[2])pairs.items;
    a->permute.count = pairs.count / 2;
}

static void codec_expect(struct codec *codec, union ir_attributes *a)
{
    codec_double(codec, &a->expect.min_ulp);
    codec_double(codec, &a->expect.max_ulp);
    codec_double(codec, &a->expect.tolerance);
    codec_bool(codec, &a->expect.constant);
    if (a->expect.constant)
        codec_literal(codec, &a->expect.expected);
}

static void codec_parallel(struct codec *codec, union ir_attributes *a)
{
    codec_u32(codec, &a->parallel.replicas, IR_VALUES_MAX);
    codec_u32(codec, &a->parallel.partitions, IR_VALUES_MAX);
    uint64_t count = (uint64_t)a->parallel.replicas * a->parallel.partitions;
    if (!codec->writing) {
        if (!codec->failed && (count == 0 || count > (uint64_t)(codec->end - codec->at)))
            codec_fail(codec, "programs without bytes");
        if (codec->failed)
            return;
        a->parallel.programs = ARENA_ARRAY(codec->arena, const struct ir_function *, count);
    }
    for (uint64_t i = 0; i < count; i++)
        codec_function(codec, &a->parallel.programs[i]);
}

/* Attributes of one list or a few numbers. */
static void codec_simple(struct codec *codec, enum ir_op_kind kind, union ir_attributes *a)
{
    switch (kind) {
    case IR_OP_IOTA:
    case IR_OP_CONCATENATE:
        codec_int(codec, &a->axis.dimension);
        break;
    case IR_OP_BROADCAST_IN_DIM:
    case IR_OP_TRANSPOSE:
    case IR_OP_REVERSE:
    case IR_OP_REDUCE:
    case IR_OP_MAP:
        codec_ints(codec, &a->dims.dims);
        break;
    case IR_OP_COMPARE:
        a->compare.direction = codec_enum(codec, a->compare.direction, IR_LT);
        a->compare.type = codec_enum(codec, a->compare.type, IR_COMPARE_UNSIGNED);
        break;
    case IR_OP_DYNAMIC_SLICE:
        codec_ints(codec, &a->dynamic_slice.sizes);
        break;
    case IR_OP_SORT:
        codec_int(codec, &a->sort.dimension);
        codec_bool(codec, &a->sort.stable);
        break;
    case IR_OP_TRIANGULAR_SOLVE:
        codec_bool(codec, &a->triangular.left_side);
        codec_bool(codec, &a->triangular.lower);
        codec_bool(codec, &a->triangular.unit_diagonal);
        a->triangular.transpose_a = codec_enum(codec, a->triangular.transpose_a, IR_ADJOINT);
        break;
    case IR_OP_CHOLESKY:
        codec_bool(codec, &a->cholesky.lower);
        break;
    case IR_OP_FFT:
        a->fft.type = codec_enum(codec, a->fft.type, IR_IRFFT);
        codec_ints(codec, &a->fft.lengths);
        break;
    case IR_OP_RNG_BIT_GENERATOR:
        a->rng.algorithm = codec_enum(codec, a->rng.algorithm, IR_RNG_PHILOX);
        break;
    case IR_OP_REDUCE_PRECISION:
        a->precision.exponent_bits = (int32_t)codec_enum(codec, (unsigned)a->precision.exponent_bits, 64);
        a->precision.mantissa_bits = (int32_t)codec_enum(codec, (unsigned)a->precision.mantissa_bits, 64);
        break;
    default:
        break;
    }
}

/* Attributes of several lists. */
static void codec_lists(struct codec *codec, enum ir_op_kind kind, union ir_attributes *a)
{
    switch (kind) {
    case IR_OP_SLICE:
        codec_ints(codec, &a->slice.starts);
        codec_ints(codec, &a->slice.limits);
        codec_ints(codec, &a->slice.strides);
        break;
    case IR_OP_PAD:
        codec_ints(codec, &a->pad.low);
        codec_ints(codec, &a->pad.high);
        codec_ints(codec, &a->pad.interior);
        break;
    case IR_OP_DOT_GENERAL:
        codec_ints(codec, &a->dot.lhs_batch);
        codec_ints(codec, &a->dot.rhs_batch);
        codec_ints(codec, &a->dot.lhs_contract);
        codec_ints(codec, &a->dot.rhs_contract);
        break;
    case IR_OP_GATHER:
        codec_gather(codec, a);
        break;
    case IR_OP_SCATTER:
        codec_scatter(codec, a);
        break;
    case IR_OP_CONVOLUTION:
        codec_conv(codec, a);
        break;
    case IR_OP_REDUCE_WINDOW:
    case IR_OP_SELECT_AND_SCATTER:
        codec_window(codec, &a->window);
        break;
    default:
        codec_simple(codec, kind, a);
    }
}

void codec_attributes(struct codec *codec, enum ir_op_kind kind, union ir_attributes *a)
{
    switch (kind) {
    case IR_OP_CONSTANT:
        codec_literal(codec, &a->constant);
        break;
    case IR_OP_BATCH_NORM_GRAD:
    case IR_OP_BATCH_NORM_INFERENCE:
    case IR_OP_BATCH_NORM_TRAINING:
        codec_double(codec, &a->batch_norm.epsilon);
        codec_int(codec, &a->batch_norm.feature);
        break;
    case IR_OP_CALL:
        codec_function(codec, &a->call.callee);
        break;
    case IR_OP_CUSTOM_CALL:
        codec_str(codec, &a->custom.target);
        codec_str(codec, &a->custom.backend_config);
        codec_bool(codec, &a->custom.has_side_effect);
        break;
    case IR_OP_ALL_GATHER:
    case IR_OP_ALL_REDUCE:
    case IR_OP_ALL_TO_ALL:
    case IR_OP_COLLECTIVE_BROADCAST:
    case IR_OP_REDUCE_SCATTER:
        codec_collective(codec, a);
        break;
    case IR_OP_COLLECTIVE_PERMUTE:
        codec_permute(codec, a);
        break;
    case IR_OP_EXPECT_EQ:
    case IR_OP_EXPECT_CLOSE:
    case IR_OP_EXPECT_ALMOST_EQ:
        codec_expect(codec, a);
        break;
    case IR_OP_RUN_PARALLEL:
        codec_parallel(codec, a);
        break;
    default:
        codec_lists(codec, kind, a);
    }
}
