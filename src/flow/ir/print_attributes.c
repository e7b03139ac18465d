/* print_attributes.c - writes an operation's attributes as a dictionary that build.c reads. */
#include "flow/ir/print.h"

/* Writes the name of the next attribute and "=". */
static void print_name(struct buf *out, const char *name)
{
    bool first = out->data[out->len - 1] == '{';
    buf_printf(out, "%s%s = ", first ? "" : ", ", name);
}

static void print_numbers(struct buf *out, struct ir_ints ints)
{
    for (uint32_t i = 0; i < ints.count; i++)
        buf_printf(out, "%s%lld", i ? ", " : "", (long long)ints.items[i]);
}

/* Writes array<i64: 1, 2>. */
static void print_array(struct buf *out, const char *name, struct ir_ints ints)
{
    print_name(out, name);
    buf_add_str(out, ints.count ? STR("array<i64: ") : STR("array<i64"));
    print_numbers(out, ints);
    buf_add_char(out, '>');
}

/* Writes name = [1, 2], inside #stablehlo.gather<> and the like. */
static void print_list(struct buf *out, const char *name, struct ir_ints ints)
{
    buf_printf(out, "%s = [", name);
    print_numbers(out, ints);
    buf_add_str(out, STR("], "));
}

static void print_integer(struct buf *out, const char *name, int64_t value)
{
    print_name(out, name);
    buf_printf(out, "%lld : i64", (long long)value);
}

static void print_bool(struct buf *out, const char *name, bool value)
{
    print_name(out, name);
    buf_add_str(out, value ? STR("true") : STR("false"));
}

static void print_number(struct buf *out, const char *name, double value)
{
    print_name(out, name);
    buf_printf(out, "%.17e : f64", value);
}

static void print_word(struct buf *out, const char *name, const char *enumeration, const char *word)
{
    print_name(out, name);
    buf_printf(out, "#stablehlo<%s %s>", enumeration, word);
}

static void print_text(struct buf *out, const char *name, struct str text)
{
    print_name(out, name);
    buf_add_char(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c < ' ' || c >= 0x7F || c == '"' || c == '\\')
            buf_printf(out, "\\%02X", c);
        else
            buf_add_char(out, (char)c);
    }
    buf_add_char(out, '"');
}

/* Writes dense<[[1, 2], [3, 4]]> : tensor<2x2xi64> of `count` rows. */
static void print_rows(struct buf *out, const char *name, const int64_t *items, uint32_t count, uint32_t size)
{
    print_name(out, name);
    buf_add_str(out, STR("dense<"));
    for (uint32_t i = 0; i < count; i++) {
        buf_add_str(out, i ? STR(", [") : STR("[["));
        print_numbers(out, (struct ir_ints){items + (size_t)i * size, size});
        buf_add_char(out, ']');
    }
    buf_printf(out, "%s> : tensor<%ux%uxi64>", count ? "]" : "", count, size);
}

static void print_compare(struct buf *out, const union ir_attributes *a)
{
    static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
    static const char *const types[] = {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
    print_word(out, "comparison_direction", "comparison_direction", directions[a->compare.direction]);
    print_word(out, "compare_type", "comparison_type", types[a->compare.type]);
}

static void print_dot(struct buf *out, const union ir_attributes *a)
{
    print_name(out, "dot_dimension_numbers");
    buf_add_str(out, STR("#stablehlo.dot<"));
    print_list(out, "lhs_batching_dimensions", a->dot.lhs_batch);
    print_list(out, "rhs_batching_dimensions", a->dot.rhs_batch);
    print_list(out, "lhs_contracting_dimensions", a->dot.lhs_contract);
    print_list(out, "rhs_contracting_dimensions", a->dot.rhs_contract);
    out->len -= 2; /* the last comma */
    buf_add_char(out, '>');
}

static void print_gather(struct buf *out, const union ir_attributes *a)
{
    print_name(out, "dimension_numbers");
    buf_add_str(out, STR("#stablehlo.gather<"));
    print_list(out, "offset_dims", a->gather.offset_dims);
    print_list(out, "collapsed_slice_dims", a->gather.collapsed_slice_dims);
    print_list(out, "operand_batching_dims", a->gather.operand_batching_dims);
    print_list(out, "start_indices_batching_dims", a->gather.start_indices_batching_dims);
    print_list(out, "start_index_map", a->gather.start_index_map);
    buf_printf(out, "index_vector_dim = %lld>", (long long)a->gather.index_vector_dim);
    print_array(out, "slice_sizes", a->gather.slice_sizes);
    print_bool(out, "indices_are_sorted", a->gather.sorted);
}

static void print_scatter(struct buf *out, const union ir_attributes *a)
{
    print_name(out, "scatter_dimension_numbers");
    buf_add_str(out, STR("#stablehlo.scatter<"));
    print_list(out, "update_window_dims", a->scatter.update_window_dims);
    print_list(out, "inserted_window_dims", a->scatter.inserted_window_dims);
    print_list(out, "input_batching_dims", a->scatter.input_batching_dims);
    print_list(out, "scatter_indices_batching_dims", a->scatter.scatter_indices_batching_dims);
    print_list(out, "scatter_dims_to_operand_dims", a->scatter.scatter_dims_to_operand_dims);
    buf_printf(out, "index_vector_dim = %lld>", (long long)a->scatter.index_vector_dim);
    print_bool(out, "indices_are_sorted", a->scatter.sorted);
    print_bool(out, "unique_indices", a->scatter.unique);
}

static void print_window(struct buf *out, const struct ir_window *window, const char *base,
                         const char *dilation)
{
    uint32_t rank = window->sizes.count;
    print_array(out, "window_strides", window->strides);
    print_array(out, base, window->base_dilations);
    print_array(out, dilation, window->window_dilations);
    if (rank == 0)
        return;
    print_name(out, "padding");
    buf_add_str(out, STR("dense<["));
    for (uint32_t i = 0; i < rank; i++)
        buf_printf(out, "%s[%lld, %lld]", i ? ", " : "", (long long)window->pad_low[i],
                   (long long)window->pad_high[i]);
    buf_printf(out, "]> : tensor<%ux2xi64>", rank);
}

/* Writes [b, 0, 1, f] of dimension numbers. */
static void print_conv_list(struct buf *out, int64_t first, char first_letter, int64_t second,
                            char second_letter, struct ir_ints spatial)
{
    for (uint32_t at = 0; at < spatial.count + 2; at++) {
        buf_add_str(out, at ? STR(", ") : STR("["));
        if (first == at)
            buf_add_char(out, first_letter);
        if (second == at)
            buf_add_char(out, second_letter);
        for (uint32_t i = 0; i < spatial.count; i++) {
            if (spatial.items[i] == at)
                buf_printf(out, "%u", i);
        }
    }
    buf_add_char(out, ']');
}

static void print_convolution(struct buf *out, const union ir_attributes *a)
{
    print_name(out, "dimension_numbers");
    buf_add_str(out, STR("#stablehlo.conv<"));
    print_conv_list(out, a->conv.input_batch, 'b', a->conv.input_feature, 'f', a->conv.input_spatial);
    buf_add_char(out, 'x');
    print_conv_list(out, a->conv.kernel_input_feature, 'i', a->conv.kernel_output_feature, 'o',
                    a->conv.kernel_spatial);
    buf_add_str(out, STR("->"));
    print_conv_list(out, a->conv.output_batch, 'b', a->conv.output_feature, 'f', a->conv.output_spatial);
    buf_add_char(out, '>');
    print_window(out, &a->conv.window, "lhs_dilation", "rhs_dilation");
    print_name(out, "window_reversal");
    buf_add_str(out, a->conv.window.sizes.count ? STR("array<i1: ") : STR("array<i1"));
    for (uint32_t i = 0; i < a->conv.window.sizes.count; i++)
        buf_printf(out, "%s%s", i ? ", " : "", a->conv.window.reversal[i] ? "true" : "false");
    buf_add_char(out, '>');
    print_integer(out, "feature_group_count", a->conv.feature_groups);
    print_integer(out, "batch_group_count", a->conv.batch_groups);
}

static void print_triangular(struct buf *out, const union ir_attributes *a)
{
    static const char *const transposes[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
    print_bool(out, "left_side", a->triangular.left_side);
    print_bool(out, "lower", a->triangular.lower);
    print_bool(out, "unit_diagonal", a->triangular.unit_diagonal);
    print_word(out, "transpose_a", "transpose", transposes[a->triangular.transpose_a]);
}

static void print_expect(struct buf *out, const union ir_attributes *a)
{
    if (a->expect.constant) {
        print_name(out, "value");
        print_literal(out, &a->expect.expected);
    }
    print_number(out, "min_ulp_difference", a->expect.min_ulp);
    print_number(out, "max_ulp_difference", a->expect.max_ulp);
    print_number(out, "tolerance", a->expect.tolerance);
}

static void print_custom(struct buf *out, const union ir_attributes *a)
{
    print_text(out, "call_target_name", a->custom.target);
    print_text(out, "backend_config", a->custom.backend_config);
    print_bool(out, "has_side_effect", a->custom.has_side_effect);
}

static void print_channel(struct buf *out, int64_t channel)
{
    print_name(out, "channel_handle");
    buf_printf(out, "#stablehlo.channel_handle<handle = %lld, type = 0>", (long long)channel);
}

static void print_collective(struct buf *out, const struct ir_op *op)
{
    const union ir_attributes *a = &op->attributes;
    const struct ir_groups *groups = &a->collective.groups;
    print_rows(out, "replica_groups", groups->ids, groups->count, groups->size);
    print_channel(out, groups->channel);
    print_bool(out, "use_global_device_ids", groups->use_global_ids);
    if (op->kind == IR_OP_ALL_GATHER || op->kind == IR_OP_REDUCE_SCATTER) {
        print_integer(out, op->kind == IR_OP_ALL_GATHER ? "all_gather_dim" : "scatter_dimension",
                      a->collective.dimension);
    } else if (op->kind == IR_OP_ALL_TO_ALL) {
        print_integer(out, "split_dimension", a->collective.split_dimension);
        print_integer(out, "concat_dimension", a->collective.concat_dimension);
        print_integer(out, "split_count", a->collective.split_count);
    }
}

static void print_parallel(struct buf *out, const union ir_attributes *a)
{
    print_name(out, "programs");
    for (uint32_t i = 0; i < a->parallel.replicas; i++) {
        buf_add_str(out, i ? STR(", [") : STR("[["));
        for (uint32_t k = 0; k < a->parallel.partitions; k++) {
            if (k)
                buf_add_str(out, STR(", "));
            print_symbol(out, a->parallel.programs[(size_t)i * a->parallel.partitions + k]->name);
        }
        buf_add_char(out, ']');
    }
    buf_add_char(out, ']');
}

/* Writes attributes that are one list or number. */
static void print_simple(struct buf *out, const struct ir_op *op)
{
    static const char *const ffts[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
    static const char *const algorithms[] = {"DEFAULT", "THREE_FRY", "PHILOX"};
    const union ir_attributes *a = &op->attributes;
    switch (op->kind) {
    case IR_OP_IOTA:
    case IR_OP_CONCATENATE:
        print_integer(out, op->kind == IR_OP_IOTA ? "iota_dimension" : "dimension", a->axis.dimension);
        break;
    case IR_OP_BROADCAST_IN_DIM:
        print_array(out, "broadcast_dimensions", a->dims.dims);
        break;
    case IR_OP_TRANSPOSE:
        print_array(out, "permutation", a->dims.dims);
        break;
    case IR_OP_REVERSE:
    case IR_OP_REDUCE:
    case IR_OP_MAP:
        print_array(out, "dimensions", a->dims.dims);
        break;
    case IR_OP_DYNAMIC_SLICE:
        print_array(out, "slice_sizes", a->dynamic_slice.sizes);
        break;
    case IR_OP_CHOLESKY:
        print_bool(out, "lower", a->cholesky.lower);
        break;
    case IR_OP_FFT:
        print_word(out, "fft_type", "fft_type", ffts[a->fft.type]);
        print_array(out, "fft_length", a->fft.lengths);
        break;
    case IR_OP_RNG_BIT_GENERATOR:
        print_word(out, "rng_algorithm", "rng_algorithm", algorithms[a->rng.algorithm]);
        break;
    case IR_OP_CALL:
        print_name(out, "callee");
        print_symbol(out, a->call.callee->name);
        break;
    default:
        break;
    }
}

/* Writes attributes of several parts. */
static void print_parts(struct buf *out, const struct ir_op *op)
{
    const union ir_attributes *a = &op->attributes;
    switch (op->kind) {
    case IR_OP_CONSTANT:
        print_name(out, "value");
        print_literal(out, &a->constant);
        break;
    case IR_OP_SLICE:
        print_array(out, "start_indices", a->slice.starts);
        print_array(out, "limit_indices", a->slice.limits);
        print_array(out, "strides", a->slice.strides);
        break;
    case IR_OP_PAD:
        print_array(out, "edge_padding_low", a->pad.low);
        print_array(out, "edge_padding_high", a->pad.high);
        print_array(out, "interior_padding", a->pad.interior);
        break;
    case IR_OP_REDUCE_WINDOW:
    case IR_OP_SELECT_AND_SCATTER:
        print_array(out, "window_dimensions", a->window.sizes);
        print_window(out, &a->window, "base_dilations", "window_dilations");
        break;
    case IR_OP_SORT:
        print_integer(out, "dimension", a->sort.dimension);
        print_bool(out, "is_stable", a->sort.stable);
        break;
    case IR_OP_REDUCE_PRECISION:
        print_integer(out, "exponent_bits", a->precision.exponent_bits);
        print_integer(out, "mantissa_bits", a->precision.mantissa_bits);
        break;
    case IR_OP_BATCH_NORM_GRAD:
    case IR_OP_BATCH_NORM_INFERENCE:
    case IR_OP_BATCH_NORM_TRAINING:
        print_number(out, "epsilon", a->batch_norm.epsilon);
        print_integer(out, "feature_index", a->batch_norm.feature);
        break;
    case IR_OP_COLLECTIVE_PERMUTE:
        print_rows(out, "source_target_pairs", (const int64_t *)a->permute.pairs, a->permute.count, 2);
        print_channel(out, a->permute.channel);
        break;
    default:
        print_simple(out, op);
    }
}

void print_attributes(struct buf *out, const struct ir_op *op)
{
    const union ir_attributes *a = &op->attributes;
    size_t start = out->len;
    buf_add_str(out, STR(" <{"));
    switch (op->kind) {
    case IR_OP_COMPARE:
        print_compare(out, a);
        break;
    case IR_OP_DOT_GENERAL:
        print_dot(out, a);
        break;
    case IR_OP_GATHER:
        print_gather(out, a);
        break;
    case IR_OP_SCATTER:
        print_scatter(out, a);
        break;
    case IR_OP_CONVOLUTION:
        print_convolution(out, a);
        break;
    case IR_OP_TRIANGULAR_SOLVE:
        print_triangular(out, a);
        break;
    case IR_OP_CUSTOM_CALL:
        print_custom(out, a);
        break;
    case IR_OP_EXPECT_EQ:
    case IR_OP_EXPECT_CLOSE:
    case IR_OP_EXPECT_ALMOST_EQ:
        print_expect(out, a);
        break;
    case IR_OP_RUN_PARALLEL:
        print_parallel(out, a);
        break;
    case IR_OP_ALL_GATHER:
    case IR_OP_ALL_REDUCE:
    case IR_OP_ALL_TO_ALL:
    case IR_OP_COLLECTIVE_BROADCAST:
    case IR_OP_REDUCE_SCATTER:
        print_collective(out, op);
        break;
    default:
        print_parts(out, op);
    }
    if (out->len == start + 3) /* none */
        out->len = start;
    else
        buf_add_str(out, STR("}>"));
}
