/* build.c - converts an operation's list of named attributes to its union of ir.h.
 *
 * Defaults are those of the specification, and of StableHLO's text where that omits attributes. verify.c
 * checks whether values are within bounds; this file only checks that lists which belong together have equal
 * lengths.
 */
#include "flow/ir/parse.h"

enum { INTS_MAX = 1 << 20, SPLAT_MAX = 2 * IR_RANK_MAX };

struct builder {
    struct parser *parser;
    struct ir_op *op;
    const struct draft *draft;
    const struct attribute *from; /* the list in which names are found: the draft's, or a dictionary in it */
};

static bool build_fail(struct builder *b, const struct attribute *attribute, const char *name,
                       const char *what)
{
    return parse_fail(b->parser, ERROR_INVALID, attribute ? attribute->place : b->draft->place,
                      STR_FORMAT ": attribute %s: %s", STR_ARG(b->draft->name), name, what);
}

/* --- lists of integers */

static int64_t literal_integer_at(const struct ir_literal *literal, int64_t at)
{
    const char *data = (const char *)literal->data;
    switch (ir_element_size(literal->type.element)) {
    case 1:
        return ((const int8_t *)data)[at];
    case 4: {
        int32_t value;
        memcpy(&value, data + at * 4, sizeof value);
        return value;
    }
    default: {
        int64_t value;
        memcpy(&value, data + at * 8, sizeof value);
        return value;
    }
    }
}

static bool build_ints_count(const struct attribute *attribute, uint32_t *count)
{
    int64_t elements = 1;
    bool ok = true;
    switch (attribute->kind) {
    case ATTRIBUTE_LITERAL: {
        enum ir_element element = attribute->literal->type.element;
        elements = ir_type_elements(&attribute->literal->type);
        if (attribute->literal->splat && elements > SPLAT_MAX) /* a short text must not become a long list */
            return false;
        ok = element == IR_I64 || element == IR_I32 || element == IR_I1;
        break;
    }
    case ATTRIBUTE_LIST:
        for (const struct attribute *item = attribute->items; item && ok; item = item->next)
            ok = build_ints_count(item, count);
        return ok;
    default:
        ok = attribute->kind == ATTRIBUTE_INTEGER || attribute->kind == ATTRIBUTE_BOOL;
    }
    ok = ok && elements <= INTS_MAX && *count <= INTS_MAX - (uint32_t)elements;
    *count += ok ? (uint32_t)elements : 0;
    return ok;
}

static void build_ints_fill(const struct attribute *attribute, int64_t *items, uint32_t *count)
{
    if (attribute->kind == ATTRIBUTE_LITERAL) {
        int64_t elements = ir_type_elements(&attribute->literal->type);
        for (int64_t i = 0; i < elements; i++)
            items[(*count)++] = literal_integer_at(attribute->literal, attribute->literal->splat ? 0 : i);
    } else if (attribute->kind == ATTRIBUTE_LIST) {
        for (const struct attribute *item = attribute->items; item; item = item->next)
            build_ints_fill(item, items, count);
    } else {
        items[(*count)++] = attribute->integer;
    }
}

/* Reads the integers of the attribute, with nested lists flattened. Without the attribute: returns false if
 * it is required, and an empty list otherwise. */
static bool build_ints(struct builder *b, const char *name, bool required, struct ir_ints *ints)
{
    const struct attribute *attribute = attribute_find(b->from, name);
    uint32_t count = 0;
    if (!attribute)
        return !required || build_fail(b, NULL, name, "is missing");
    if (!build_ints_count(attribute, &count))
        return build_fail(b, attribute, name, "expected a list of integers");
    int64_t *items = ARENA_ARRAY(b->parser->arena, int64_t, count);
    *ints = (struct ir_ints){items, count};
    count = 0;
    build_ints_fill(attribute, items, &count);
    return true;
}

/* Reads a list of `count` integers; without the attribute all are `otherwise`. */
static bool build_ints_of(struct builder *b, const char *name, uint32_t count, int64_t otherwise,
                          struct ir_ints *ints)
{
    if (attribute_find(b->from, name)) {
        if (!build_ints(b, name, true, ints))
            return false;
        return ints->count == count ||
               build_fail(b, attribute_find(b->from, name), name, "has the wrong length");
    }
    int64_t *items = ARENA_ARRAY(b->parser->arena, int64_t, count);
    for (uint32_t i = 0; i < count; i++)
        items[i] = otherwise;
    *ints = (struct ir_ints){items, count};
    return true;
}

/* --- single values */

static bool build_integer(struct builder *b, const char *name, bool required, int64_t *value)
{
    const struct attribute *attribute = attribute_find(b->from, name);
    if (!attribute)
        return !required || build_fail(b, NULL, name, "is missing");
    if (attribute->kind != ATTRIBUTE_INTEGER)
        return build_fail(b, attribute, name, "expected an integer");
    *value = attribute->integer;
    return true;
}

static bool build_number(struct builder *b, const char *name, double *value)
{
    const struct attribute *attribute = attribute_find(b->from, name);
    if (!attribute)
        return true;
    if (attribute->kind != ATTRIBUTE_INTEGER && attribute->kind != ATTRIBUTE_FLOAT)
        return build_fail(b, attribute, name, "expected a number");
    *value = attribute->kind == ATTRIBUTE_FLOAT ? attribute->real : (double)attribute->integer;
    return true;
}

/* Reads `true`, `false`, or the name alone, which means true. */
static bool build_bool(struct builder *b, const char *name, bool *value)
{
    const struct attribute *attribute = attribute_find(b->from, name);
    if (!attribute)
        return true;
    if (attribute->kind != ATTRIBUTE_BOOL && attribute->kind != ATTRIBUTE_UNIT)
        return build_fail(b, attribute, name, "expected true or false");
    *value = attribute->kind == ATTRIBUTE_UNIT || attribute->integer;
    return true;
}

/* Reads an enumerator as its index in `words`, a list of alternatives between spaces: " EQ NE GE ". */
static bool build_word(struct builder *b, const char *name, const char *const *words, unsigned *value)
{
    const struct attribute *attribute = attribute_find(b->from, name);
    if (!attribute)
        return true;
    for (unsigned i = 0; words[i]; i++) {
        if ((attribute->kind == ATTRIBUTE_WORD || attribute->kind == ATTRIBUTE_STRING) &&
            str_is(attribute->text, words[i])) {
            *value = i;
            return true;
        }
    }
    return build_fail(b, attribute, name, "is none of the known words");
}

struct str attribute_text(struct parser *parser, struct str text)
{
    char *out = arena_alloc(parser->arena, text.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c != '\\' || i + 1 == text.len) {
            out[len++] = c;
            continue;
        }
        c = text.data[++i];
        int high = lexer_hex_digit(c), low = i + 1 < text.len ? lexer_hex_digit(text.data[i + 1]) : -1;
        if (high >= 0 && low >= 0) {
            out[len++] = (char)(high << 4 | low);
            i++;
        } else {
            out[len++] = (char)(c == 'n' ? '\n' : c == 't' ? '\t' : c);
        }
    }
    out[len] = 0;
    return (struct str){out, len};
}

/* Continues with the names in the dictionary attribute `name`. */
static bool build_enter(struct builder *b, const char *name)
{
    const struct attribute *attribute = attribute_find(b->draft->attributes, name);
    if (!attribute || attribute->kind != ATTRIBUTE_DICT)
        return build_fail(b, attribute, name, attribute ? "expected #stablehlo...<...>" : "is missing");
    b->from = attribute->items;
    return true;
}

static void build_leave(struct builder *b)
{
    b->from = b->draft->attributes;
}

/* --- families of operations */

static bool build_compare(struct builder *b)
{
    static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT", NULL};
    static const char *const types[] = {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED", NULL};
    unsigned direction = 0, type = IR_COMPARE_DEFAULT;
    if (!attribute_find(b->from, "comparison_direction"))
        return build_fail(b, NULL, "comparison_direction", "is missing");
    if (!build_word(b, "comparison_direction", directions, &direction) ||
        !build_word(b, "compare_type", types, &type))
        return false;
    b->op->attributes.compare.direction = direction;
    b->op->attributes.compare.type = type;
    return true;
}

static bool build_broadcast(struct builder *b)
{
    struct ir_ints sizes = {0};
    if (!attribute_find(b->from, "broadcast_sizes"))
        return build_ints(b, "broadcast_dimensions", true, &b->op->attributes.dims.dims);
    if (!build_ints(b, "broadcast_sizes", true, &sizes)) /* stablehlo.broadcast prepends dimensions */
        return false;
    uint32_t rank = b->op->operand_count > 0 ? (uint32_t)b->op->operands[0]->type.rank : 0;
    int64_t *items = ARENA_ARRAY(b->parser->arena, int64_t, rank);
    for (uint32_t i = 0; i < rank; i++)
        items[i] = (int64_t)sizes.count + i;
    b->op->attributes.dims.dims = (struct ir_ints){items, rank};
    return true;
}

/* stablehlo.dot: contracts the last dimension of the left operand with the first of the right one. */
static void build_plain_dot(struct builder *b)
{
    int64_t *items = ARENA_ARRAY(b->parser->arena, int64_t, 2);
    union ir_attributes *to = &b->op->attributes;
    items[0] = b->op->operand_count > 0 ? b->op->operands[0]->type.rank - 1 : 0;
    to->dot.lhs_contract = (struct ir_ints){&items[0], 1};
    to->dot.rhs_contract = (struct ir_ints){&items[1], 1};
}

static bool build_dot(struct builder *b)
{
    union ir_attributes *to = &b->op->attributes;
    if (str_is(b->draft->name, "stablehlo.dot")) {
        build_plain_dot(b);
        return true;
    }
    if (attribute_find(b->from, "dot_dimension_numbers") && !build_enter(b, "dot_dimension_numbers"))
        return false;
    bool ok = build_ints(b, "lhs_batching_dimensions", false, &to->dot.lhs_batch) &&
              build_ints(b, "rhs_batching_dimensions", false, &to->dot.rhs_batch) &&
              build_ints(b, "lhs_contracting_dimensions", false, &to->dot.lhs_contract) &&
              build_ints(b, "rhs_contracting_dimensions", false, &to->dot.rhs_contract);
    build_leave(b);
    return ok;
}

static bool build_gather(struct builder *b)
{
    union ir_attributes *to = &b->op->attributes;
    if (!build_enter(b, "dimension_numbers"))
        return false;
    bool ok = build_ints(b, "offset_dims", false, &to->gather.offset_dims) &&
              build_ints(b, "collapsed_slice_dims", false, &to->gather.collapsed_slice_dims) &&
              build_ints(b, "operand_batching_dims", false, &to->gather.operand_batching_dims) &&
              build_ints(b, "start_indices_batching_dims", false, &to->gather.start_indices_batching_dims) &&
              build_ints(b, "start_index_map", false, &to->gather.start_index_map) &&
              build_integer(b, "index_vector_dim", false, &to->gather.index_vector_dim);
    build_leave(b);
    return ok && build_ints(b, "slice_sizes", true, &to->gather.slice_sizes) &&
           build_bool(b, "indices_are_sorted", &to->gather.sorted);
}

static bool build_scatter(struct builder *b)
{
    union ir_attributes *to = &b->op->attributes;
    if (!build_enter(b, "scatter_dimension_numbers"))
        return false;
    bool ok =
        build_ints(b, "update_window_dims", false, &to->scatter.update_window_dims) &&
        build_ints(b, "inserted_window_dims", false, &to->scatter.inserted_window_dims) &&
        build_ints(b, "input_batching_dims", false, &to->scatter.input_batching_dims) &&
        build_ints(b, "scatter_indices_batching_dims", false, &to->scatter.scatter_indices_batching_dims) &&
        build_ints(b, "scatter_dims_to_operand_dims", false, &to->scatter.scatter_dims_to_operand_dims) &&
        build_integer(b, "index_vector_dim", false, &to->scatter.index_vector_dim);
    build_leave(b);
    return ok && build_bool(b, "indices_are_sorted", &to->scatter.sorted) &&
           build_bool(b, "unique_indices", &to->scatter.unique);
}

/* Reads a window of `rank` dimensions; base and window are the names of its dilations. */
static bool build_window(struct builder *b, struct ir_window *window, uint32_t rank, const char *base,
                         const char *dilation)
{
    struct ir_ints padding;
    if (!build_ints_of(b, "window_strides", rank, 1, &window->strides) ||
        !build_ints_of(b, base, rank, 1, &window->base_dilations) ||
        !build_ints_of(b, dilation, rank, 1, &window->window_dilations) ||
        !build_ints_of(b, "padding", 2 * rank, 0, &padding))
        return false;
    int64_t *low = ARENA_ARRAY(b->parser->arena, int64_t, rank),
            *high = ARENA_ARRAY(b->parser->arena, int64_t, rank);
    for (uint32_t i = 0; i < rank; i++) {
        low[i] = padding.items[2 * i];
        high[i] = padding.items[2 * i + 1];
    }
    window->pad_low = low;
    window->pad_high = high;
    window->reversal = ARENA_ARRAY(b->parser->arena, bool, rank);
    return true;
}

static bool build_reduce_window(struct builder *b)
{
    struct ir_window *window = &b->op->attributes.window;
    return build_ints(b, "window_dimensions", true, &window->sizes) &&
           build_window(b, window, window->sizes.count, "base_dilations", "window_dilations");
}

/* Reads a bracketed list of a convolution's dimension numbers: `first` and `second` are its letters. */
static bool build_conv_list(struct builder *b, const struct attribute *list, const char *first,
                            const char *second, int64_t *first_at, int64_t *second_at,
                            struct ir_ints *spatial)
{
    uint32_t rank = list->count < 2 ? 0 : list->count - 2;
    int64_t *items = ARENA_ARRAY(b->parser->arena, int64_t, rank), at = 0;
    for (uint32_t i = 0; i < rank; i++)
        items[i] = -1;
    *first_at = *second_at = -1;
    for (const struct attribute *item = list->items; item; item = item->next, at++) {
        int64_t *to = NULL;
        if (item->kind == ATTRIBUTE_WORD)
            to = str_is(item->text, first) ? first_at : str_is(item->text, second) ? second_at : NULL;
        else if (item->kind == ATTRIBUTE_INTEGER && item->integer >= 0 && item->integer < rank)
            to = &items[item->integer];
        if (!to || *to >= 0)
            return build_fail(b, item->place.line ? item : list, "dimension_numbers",
                              "each list has its two letters and the numbers of the spatial dimensions once");
        *to = at;
    }
    *spatial = (struct ir_ints){items, rank};
    return list->count >= 2 || build_fail(b, list, "dimension_numbers", "has too few dimensions");
}

static bool build_convolution(struct builder *b)
{
    union ir_attributes *to = &b->op->attributes;
    const struct attribute *numbers = attribute_find(b->from, "dimension_numbers");
    if (!numbers || numbers->kind != ATTRIBUTE_LIST || numbers->count != 3)
        return build_fail(b, numbers, "dimension_numbers", "expected [b, 0, f]x[0, i, o]->[b, 0, f]");
    const struct attribute *input = numbers->items, *kernel = input->next, *output = kernel->next;
    if (input->kind != ATTRIBUTE_LIST || kernel->kind != ATTRIBUTE_LIST || output->kind != ATTRIBUTE_LIST)
        return build_fail(b, numbers, "dimension_numbers", "expected three lists");
    if (!build_conv_list(b, input, "b", "f", &to->conv.input_batch, &to->conv.input_feature,
                         &to->conv.input_spatial) ||
        !build_conv_list(b, kernel, "i", "o", &to->conv.kernel_input_feature, &to->conv.kernel_output_feature,
                         &to->conv.kernel_spatial) ||
        !build_conv_list(b, output, "b", "f", &to->conv.output_batch, &to->conv.output_feature,
                         &to->conv.output_spatial))
        return false;
    uint32_t rank = to->conv.input_spatial.count;
    if (to->conv.kernel_spatial.count != rank || to->conv.output_spatial.count != rank)
        return build_fail(b, numbers, "dimension_numbers", "the three lists differ in length");
    if (!build_window(b, &to->conv.window, rank, "lhs_dilation", "rhs_dilation"))
        return false;
    struct ir_ints reversal = {0};
    bool *reversed = ARENA_ARRAY(b->parser->arena, bool, rank);
    int64_t *sizes = ARENA_ARRAY(b->parser->arena, int64_t, rank);
    if (!build_ints_of(b, "window_reversal", rank, 0, &reversal))
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t at = to->conv.kernel_spatial.items[i];
        reversed[i] = reversal.items[i] != 0;
        sizes[i] = b->op->operand_count > 1 && at < b->op->operands[1]->type.rank
                       ? b->op->operands[1]->type.dims[at]
                       : 0; /* verify.c reports that the ranks disagree */
    }
    to->conv.window.reversal = reversed;
    to->conv.window.sizes = (struct ir_ints){sizes, rank};
    to->conv.feature_groups = to->conv.batch_groups = 1;
    return build_integer(b, "feature_group_count", false, &to->conv.feature_groups) &&
           build_integer(b, "batch_group_count", false, &to->conv.batch_groups);
}

static bool build_sort(struct builder *b)
{
    int64_t dimension = -1;
    if (!build_integer(b, "dimension", false, &dimension) ||
        !build_bool(b, "is_stable", &b->op->attributes.sort.stable))
        return false;
    if (dimension < 0 && b->op->operand_count > 0) /* counted from the last one */
        dimension += b->op->operands[0]->type.rank;
    b->op->attributes.sort.dimension = dimension;
    return true;
}

static bool build_triangular(struct builder *b)
{
    static const char *const transposes[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT", NULL};
    union ir_attributes *to = &b->op->attributes;
    unsigned transpose = IR_NO_TRANSPOSE;
    if (!build_bool(b, "left_side", &to->triangular.left_side) ||
        !build_bool(b, "lower", &to->triangular.lower) ||
        !build_bool(b, "unit_diagonal", &to->triangular.unit_diagonal) ||
        !build_word(b, "transpose_a", transposes, &transpose))
        return false;
    to->triangular.transpose_a = transpose;
    return true;
}

static bool build_fft(struct builder *b)
{
    static const char *const types[] = {"FFT", "IFFT", "RFFT", "IRFFT", NULL};
    unsigned type = IR_FFT;
    if (!build_word(b, "fft_type", types, &type) ||
        !build_ints(b, "fft_length", true, &b->op->attributes.fft.lengths))
        return false;
    b->op->attributes.fft.type = type;
    return true;
}

static bool build_rng(struct builder *b)
{
    static const char *const algorithms[] = {"DEFAULT", "THREE_FRY", "PHILOX", NULL};
    unsigned algorithm = IR_RNG_DEFAULT;
    if (!build_word(b, "rng_algorithm", algorithms, &algorithm))
        return false;
    b->op->attributes.rng.algorithm = algorithm;
    return true;
}

/* reduce_precision: exponent_bits and mantissa_bits, or format = e8m23. */
static bool build_precision(struct builder *b)
{
    const struct attribute *format = attribute_find(b->from, "format");
    int64_t exponent = -1, mantissa = -1;
    if (format) {
        struct str text = format->text;
        if (format->kind != ATTRIBUTE_WORD || !str_take_number(&text, "e", 64, &exponent) ||
            !str_take_number(&text, "m", 64, &mantissa) || text.len > 0)
            return build_fail(b, format, "format",
                              "expected e and the exponent's bits, m and the mantissa's bits");
    } else if (!build_integer(b, "exponent_bits", true, &exponent) ||
               !build_integer(b, "mantissa_bits", true, &mantissa)) {
        return false;
    }
    if (exponent < 0 || exponent > 64 || mantissa < 0 || mantissa > 64)
        return build_fail(b, NULL, "exponent_bits", "more than 64 bits");
    b->op->attributes.precision.exponent_bits = (int32_t)exponent;
    b->op->attributes.precision.mantissa_bits = (int32_t)mantissa;
    return true;
}

static bool build_pending(struct builder *b, const struct attribute *symbol, const char *name,
                          const struct ir_function **callee)
{
    if (!symbol || symbol->kind != ATTRIBUTE_SYMBOL)
        return build_fail(b, symbol, name, "expected @ and a function's name");
    vec_push(&b->parser->calls, ((struct pending_call){callee, symbol->text, symbol->place}));
    return true;
}

static bool build_call(struct builder *b)
{
    const struct attribute *callee = attribute_find(b->from, "decomposition");
    return build_pending(b, callee ? callee : attribute_find(b->from, "callee"), "callee",
                         &b->op->attributes.call.callee);
}

static bool build_parallel(struct builder *b)
{
    const struct attribute *programs = attribute_find(b->from, "programs");
    uint32_t rows = 0, columns = 0, at = 0;
    if (attribute_find(b->from, "infeed"))
        return parse_fail(b->parser, ERROR_UNSUPPORTED, attribute_find(b->from, "infeed")->place,
                          "interpreter.run_parallel: infeed is not supported");
    if (!programs || programs->kind != ATTRIBUTE_LIST || programs->count == 0)
        return build_fail(b, programs, "programs", "expected lists of functions");
    for (const struct attribute *row = programs->items; row; row = row->next, rows++) {
        if (row->kind != ATTRIBUTE_LIST || row->count == 0 || (rows > 0 && row->count != columns))
            return build_fail(b, row, "programs", "expected lists of equal length");
        columns = row->count;
    }
    const struct ir_function **list =
        ARENA_ARRAY(b->parser->arena, const struct ir_function *, (size_t)rows *columns);
    for (const struct attribute *row = programs->items; row; row = row->next) {
        for (const struct attribute *item = row->items; item; item = item->next) {
            if (!build_pending(b, item, "programs", &list[at++]))
                return false;
        }
    }
    b->op->attributes.parallel.programs = list;
    b->op->attributes.parallel.replicas = rows;
    b->op->attributes.parallel.partitions = columns;
    return true;
}

static bool build_expect(struct builder *b)
{
    union ir_attributes *to = &b->op->attributes;
    const struct attribute *value = attribute_find(b->from, "value");
    if (value && value->kind != ATTRIBUTE_LITERAL)
        return build_fail(b, value, "value", "expected dense<...>");
    to->expect.min_ulp = 0;
    to->expect.max_ulp = 3;
    to->expect.tolerance = 0.0001;
    to->expect.constant = value != NULL;
    if (value)
        to->expect.expected = *value->literal;
    return build_number(b, "min_ulp_difference", &to->expect.min_ulp) &&
           build_number(b, "max_ulp_difference", &to->expect.max_ulp) &&
           build_number(b, "tolerance", &to->expect.tolerance);
}

static bool build_custom(struct builder *b)
{
    union ir_attributes *to = &b->op->attributes;
    const struct attribute *target = attribute_find(b->from, "call_target_name");
    const struct attribute *config = attribute_find(b->from, "mhlo.attributes");
    if (!target || (target->kind != ATTRIBUTE_STRING && target->kind != ATTRIBUTE_SYMBOL))
        return build_fail(b, target, "call_target_name", "expected a name");
    struct str name = attribute_text(b->parser, target->text);
    static const struct {
        const char *target;
        enum ir_op_kind kind;
    } others[] = {
        {"check.expect_eq", IR_OP_EXPECT_EQ},
        {"check.expect_close", IR_OP_EXPECT_CLOSE},
        {"check.expect_almost_eq", IR_OP_EXPECT_ALMOST_EQ},
        {"mhlo.tan", IR_OP_TAN},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (str_is(name, others[i].target)) {
            b->op->kind = others[i].kind;
            return b->op->kind == IR_OP_TAN || build_expect(b);
        }
    }
    to->custom.target = name;
    if (!config)
        config = attribute_find(b->from, "backend_config");
    if (config && (config->kind == ATTRIBUTE_STRING || config->kind == ATTRIBUTE_DICT))
        to->custom.backend_config = config->kind == ATTRIBUTE_STRING
                                        ? attribute_text(b->parser, config->text)
                                        : arena_str(b->parser->arena, config->text);
    return build_bool(b, "has_side_effect", &to->custom.has_side_effect);
}

static bool build_constant(struct builder *b)
{
    const struct attribute *value = attribute_find(b->from, "value");
    if (!value || value->kind != ATTRIBUTE_LITERAL)
        return build_fail(b, value, "value", "expected dense<...>");
    b->op->attributes.constant = *value->literal;
    return true;
}

/* --- collectives */

static bool build_channel(struct builder *b, int64_t *channel)
{
    if (!attribute_find(b->from, "channel_handle"))
        return build_integer(b, "channel_id", false, channel);
    bool ok = build_enter(b, "channel_handle") && build_integer(b, "handle", true, channel);
    build_leave(b);
    return ok;
}

static bool build_groups(struct builder *b, struct ir_groups *groups)
{
    const struct attribute *attribute = attribute_find(b->from, "replica_groups");
    struct ir_ints ids = {0};
    if (attribute && attribute->kind == ATTRIBUTE_OPAQUE)
        return parse_fail(b->parser, ERROR_UNSUPPORTED, attribute->place,
                          STR_FORMAT ": replica_groups by axes of a mesh are not supported",
                          STR_ARG(b->draft->name));
    if (!build_ints(b, "replica_groups", true, &ids) || !build_channel(b, &groups->channel) ||
        !build_bool(b, "use_global_device_ids", &groups->use_global_ids))
        return false;
    groups->ids = ids.items;
    if (attribute->kind != ATTRIBUTE_LITERAL || attribute->literal->type.rank != 2)
        return build_fail(b, attribute, "replica_groups", "expected dense<...> of two dimensions");
    groups->count = ids.count ? (uint32_t)attribute->literal->type.dims[0] : 0;
    groups->size = ids.count ? (uint32_t)attribute->literal->type.dims[1] : 0;
    return true;
}

static bool build_collective(struct builder *b)
{
    union ir_attributes *to = &b->op->attributes;
    if (!build_groups(b, &to->collective.groups))
        return false;
    switch (b->op->kind) {
    case IR_OP_ALL_GATHER:
        return build_integer(b, "all_gather_dim", true, &to->collective.dimension);
    case IR_OP_REDUCE_SCATTER:
        return build_integer(b, "scatter_dimension", true, &to->collective.dimension);
    case IR_OP_ALL_TO_ALL:
        return build_integer(b, "split_dimension", true, &to->collective.split_dimension) &&
               build_integer(b, "concat_dimension", true, &to->collective.concat_dimension) &&
               build_integer(b, "split_count", true, &to->collective.split_count);
    default:
        return true;
    }
}

static bool build_permute(struct builder *b)
{
    struct ir_ints pairs = {0};
    if (!build_ints(b, "source_target_pairs", true, &pairs) ||
        !build_channel(b, &b->op->attributes.permute.channel))
        return false;
    if (pairs.count % 2)
        return build_fail(b, attribute_find(b->from, "source_target_pairs"), "source_target_pairs",
                          "expected pairs");
    b->op->attributes.permute.pairs = (const int64_t(*)[2])pairs.items;
    b->op->attributes.permute.count = pairs.count / 2;
    return true;
}

static bool build_batch_norm(struct builder *b)
{
    union ir_attributes *to = &b->op->attributes;
    if (!attribute_find(b->from, "epsilon"))
        return build_fail(b, NULL, "epsilon", "is missing");
    return build_number(b, "epsilon", &to->batch_norm.epsilon) &&
           build_integer(b, "feature_index", true, &to->batch_norm.feature);
}

/* Reads attributes that are one list or number. */
static bool build_simple(struct builder *b)
{
    union ir_attributes *to = &b->op->attributes;
    switch (b->op->kind) {
    case IR_OP_IOTA:
        return build_integer(b, "iota_dimension", true, &to->axis.dimension);
    case IR_OP_CONCATENATE:
        return build_integer(b, "dimension", true, &to->axis.dimension);
    case IR_OP_TRANSPOSE:
        return build_ints(b, "permutation", true, &to->dims.dims);
    case IR_OP_REVERSE:
    case IR_OP_REDUCE:
    case IR_OP_MAP:
        return build_ints(b, "dimensions", true, &to->dims.dims);
    case IR_OP_SLICE:
        return build_ints(b, "start_indices", true, &to->slice.starts) &&
               build_ints(b, "limit_indices", true, &to->slice.limits) &&
               build_ints(b, "strides", true, &to->slice.strides);
    case IR_OP_DYNAMIC_SLICE:
        return build_ints(b, "slice_sizes", true, &to->dynamic_slice.sizes);
    case IR_OP_PAD:
        return build_ints(b, "edge_padding_low", true, &to->pad.low) &&
               build_ints(b, "edge_padding_high", true, &to->pad.high) &&
               build_ints(b, "interior_padding", true, &to->pad.interior);
    case IR_OP_CHOLESKY:
        return build_bool(b, "lower", &to->cholesky.lower);
    default: /* no attributes */
        return true;
    }
}

bool attributes_build(struct parser *parser, struct ir_op *op, const struct draft *draft)
{
    struct builder b = {parser, op, draft, draft->attributes};
    switch (op->kind) {
    case IR_OP_CONSTANT:
        return build_constant(&b);
    case IR_OP_BROADCAST_IN_DIM:
        return build_broadcast(&b);
    case IR_OP_COMPARE:
        return build_compare(&b);
    case IR_OP_DOT_GENERAL:
        return build_dot(&b);
    case IR_OP_GATHER:
        return build_gather(&b);
    case IR_OP_SCATTER:
        return build_scatter(&b);
    case IR_OP_CONVOLUTION:
        return build_convolution(&b);
    case IR_OP_REDUCE_WINDOW:
    case IR_OP_SELECT_AND_SCATTER:
        return build_reduce_window(&b);
    case IR_OP_SORT:
        return build_sort(&b);
    case IR_OP_TRIANGULAR_SOLVE:
        return build_triangular(&b);
    case IR_OP_FFT:
        return build_fft(&b);
    case IR_OP_RNG_BIT_GENERATOR:
        return build_rng(&b);
    case IR_OP_REDUCE_PRECISION:
        return build_precision(&b);
    case IR_OP_BATCH_NORM_GRAD:
    case IR_OP_BATCH_NORM_INFERENCE:
    case IR_OP_BATCH_NORM_TRAINING:
        return build_batch_norm(&b);
    case IR_OP_CALL:
        return build_call(&b);
    case IR_OP_CUSTOM_CALL:
        return build_custom(&b);
    case IR_OP_ALL_GATHER:
    case IR_OP_ALL_REDUCE:
    case IR_OP_ALL_TO_ALL:
    case IR_OP_COLLECTIVE_BROADCAST:
    case IR_OP_REDUCE_SCATTER:
        return build_collective(&b);
    case IR_OP_COLLECTIVE_PERMUTE:
        return build_permute(&b);
    case IR_OP_EXPECT_EQ:
    case IR_OP_EXPECT_CLOSE:
    case IR_OP_EXPECT_ALMOST_EQ:
        return build_expect(&b);
    case IR_OP_RUN_PARALLEL:
        return build_parallel(&b);
    default:
        return build_simple(&b);
    }
}
