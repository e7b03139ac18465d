/* parse_op.c - the custom forms of operations.
 *
 * Nearly all have one shape, which parse_plain reads:
 *
 *     name %a, %b, dims = [0, 1], precision = [DEFAULT, DEFAULT] {attributes} : types
 *
 * A table gives the attribute for a short name like `dims`. `types` are either "(types) -> types" or one type
 * for all; parse_signature handles the exceptions.
 */
#include "flow/ir/parse.h"

static const struct {
    enum ir_op_kind kind;
    const char *text, *attribute;
} short_names[] = {
    {IR_OP_BROADCAST_IN_DIM, "dims", "broadcast_dimensions"},
    {IR_OP_BROADCAST_IN_DIM, "sizes", "broadcast_sizes"},
    {IR_OP_TRANSPOSE, "dims", "permutation"},
    {IR_OP_REVERSE, "dims", "dimensions"},
    {IR_OP_CONCATENATE, "dim", "dimension"},
    {IR_OP_IOTA, "dim", "iota_dimension"},
    {IR_OP_PAD, "low", "edge_padding_low"},
    {IR_OP_PAD, "high", "edge_padding_high"},
    {IR_OP_PAD, "interior", "interior_padding"},
    {IR_OP_DYNAMIC_SLICE, "sizes", "slice_sizes"},
    {IR_OP_FFT, "type", "fft_type"},
    {IR_OP_FFT, "length", "fft_length"},
    {IR_OP_RNG_BIT_GENERATOR, "algorithm", "rng_algorithm"},
};

static const char *short_name(enum ir_op_kind kind, struct str text)
{
    for (size_t i = 0; i < sizeof short_names / sizeof *short_names; i++) {
        if (short_names[i].kind == kind && str_is(text, short_names[i].text))
            return short_names[i].attribute;
    }
    return NULL;
}

/* Parses the short form of an operation's types, from which its other types follow. */
static bool parse_short_types(struct parser *parser, struct draft *draft)
{
    DRAFT_LIST(struct ir_type) types = {0};
    do {
        struct ir_type type;
        if (!parse_type(parser, &type))
            return false;
        if (types.len >= IR_OPERANDS_MAX)
            return parse_fail(parser, ERROR_LIMIT, draft->place, "more than %d types", IR_OPERANDS_MAX);
        draft_push(parser, &types, type);
    } while (parse_accept(parser, ','));
    if (parser->token.kind == TOKEN_ARROW) { /* chlo: "type, type -> type" */
        parse_advance(parser);
        for (uint32_t i = 0; i < types.len; i++)
            draft_push(parser, &draft->operand_types, types.items[i]);
        return parse_result_types(parser, draft);
    }
    switch (draft->kind) {
    case IR_OP_RETURN:
    case IR_OP_OPTIMIZATION_BARRIER:
        for (uint32_t i = 0; i < types.len; i++) {
            draft_push(parser, &draft->operand_types, types.items[i]);
            if (draft->kind == IR_OP_OPTIMIZATION_BARRIER)
                draft_push(parser, &draft->results, types.items[i]);
        }
        return true;
    case IR_OP_EXPECT_EQ:
    case IR_OP_EXPECT_CLOSE:
    case IR_OP_EXPECT_ALMOST_EQ:
        return true;
    case IR_OP_SELECT: /* predicate, result */
        break;
    default:
        if (types.len > 1)
            return parse_fail(parser, ERROR_INVALID, draft->place, STR_FORMAT ": expected one type, got %u",
                              STR_ARG(draft->name), types.len);
    }
    draft_push(parser, &draft->results, types.items[types.len - 1]);
    return true;
}

bool parse_signature(struct parser *parser, struct draft *draft)
{
    if (!parse_accept(parser, '('))
        return parse_short_types(parser, draft);
    if (!parse_types_until(parser, ')', draft, true))
        return false;
    if (parser->token.kind != TOKEN_ARROW) {
        bool check = draft->kind >= IR_OP_EXPECT_EQ && draft->kind <= IR_OP_EXPECT_ALMOST_EQ;
        return check || parse_expected(parser, "'->'");
    }
    parse_advance(parser);
    if (draft->operand_types.len == 0 && draft->operands.len > 0)
        return parse_fail(parser, ERROR_INVALID, draft->place,
                          STR_FORMAT ": %u operands, but no operand types", STR_ARG(draft->name),
                          draft->operands.len);
    return parse_result_types(parser, draft);
}

/* Parses "[{attributes}] : types" at the end of an operation. */
static bool parse_tail(struct parser *parser, struct draft *draft)
{
    if (parse_at(parser, '{') && !parse_attribute_dict(parser, '}', &draft->attributes))
        return false;
    return parse_expect(parser, ':') && parse_signature(parser, draft);
}

/* Parses "[0, 1] x [1, 2]" after contracting_dims or batching_dims. */
static bool parse_dot_dimensions(struct parser *parser, struct draft *draft, bool contracting)
{
    struct attribute *lhs = draft_attribute(
        parser, draft, contracting ? "lhs_contracting_dimensions" : "lhs_batching_dimensions");
    struct attribute *rhs = draft_attribute(
        parser, draft, contracting ? "rhs_contracting_dimensions" : "rhs_batching_dimensions");
    return parse_attribute(parser, lhs, false) && parse_expect_word(parser, "x") &&
           parse_attribute(parser, rhs, false);
}

/* Parses a "name = value" of the plain form, or a single word. */
static bool parse_named(struct parser *parser, struct draft *draft)
{
    struct token token = parser->token;
    parse_advance(parser);
    if (!parse_accept(parser, '=')) {
        const char *name = draft->kind == IR_OP_COMPARE
                               ? draft->operands.len == 0 ? "comparison_direction" : "compare_type"
                               : NULL;
        if (!name)
            return parse_fail(parser, ERROR_INVALID, token.place,
                              STR_FORMAT ": '" STR_FORMAT "' is unexpected", STR_ARG(draft->name),
                              STR_ARG(token.text));
        struct attribute *word = draft_attribute(parser, draft, name);
        word->kind = ATTRIBUTE_WORD;
        word->place = token.place;
        word->text = token.text;
        return true;
    }
    if (draft->kind == IR_OP_DOT_GENERAL &&
        (str_is(token.text, "contracting_dims") || str_is(token.text, "batching_dims")))
        return parse_dot_dimensions(parser, draft, *token.text.data == 'c');
    const char *name = short_name(draft->kind, token.text);
    struct attribute *attribute = draft_attribute(parser, draft, "");
    attribute->name = name ? str_from(name) : token.text;
    return parse_attribute(parser, attribute, false);
}

/* Parses [0:4, 1:8:2] of slice. */
static bool parse_slice_ranges(struct parser *parser, struct draft *draft)
{
    static const char *const names[] = {"start_indices", "limit_indices", "strides"};
    struct attribute *lists[3], **ends[3];
    for (int i = 0; i < 3; i++) {
        lists[i] = draft_attribute(parser, draft, names[i]);
        lists[i]->kind = ATTRIBUTE_LIST;
        ends[i] = &lists[i]->items;
    }
    parse_advance(parser);
    if (parse_accept(parser, ']'))
        return true;
    do {
        for (int i = 0; i < 3; i++) {
            struct attribute *item = ARENA_NEW(&parser->scratch, struct attribute);
            item->kind = ATTRIBUTE_INTEGER;
            item->integer = 1;
            item->place = parser->token.place;
            if (i == 1 && !parse_expect(parser, ':'))
                return false;
            if ((i < 2 || parse_accept(parser, ':')) && !parse_attribute(parser, item, false))
                return false;
            *ends[i] = item;
            ends[i] = &item->next;
            lists[i]->count++;
        }
    } while (parse_accept(parser, ','));
    return parse_expect(parser, ']');
}

static bool parse_plain(struct parser *parser, struct draft *draft)
{
    bool parenthesised = parse_accept(parser, '('); /* optimization_barrier(), chlo.top_k(%0, k = 2) */
    while (!parse_at(parser, ':') && !parse_at(parser, '{') && !parse_at(parser, ')')) {
        if (parser->token.kind == TOKEN_VALUE) {
            if (!parse_operand(parser, draft))
                return false;
            if (draft->kind == IR_OP_SLICE && parse_at(parser, '[') && !parse_slice_ranges(parser, draft))
                return false;
        } else if (parse_at_word(parser, "dense")) { /* check.expect_eq_const */
            if (!parse_attribute(parser, draft_attribute(parser, draft, "value"), true))
                return false;
        } else if (parser->token.kind == TOKEN_WORD) {
            if (!parse_named(parser, draft))
                return false;
        } else {
            return parse_expected(parser, "an operand");
        }
        if (!parse_accept(parser, ','))
            break;
    }
    if (parenthesised && !parse_expect(parser, ')'))
        return false;
    bool check = draft->kind >= IR_OP_EXPECT_EQ && draft->kind <= IR_OP_EXPECT_ALMOST_EQ;
    /* The literal has a type. */
    if (check && attribute_find(draft->attributes, "value") && !parse_at(parser, ':'))
        return !parse_at(parser, '{') || parse_attribute_dict(parser, '}', &draft->attributes);
    if (draft->kind == IR_OP_OPTIMIZATION_BARRIER && draft->operands.len == 0 && !parse_at(parser, ':'))
        return true;
    return parse_tail(parser, draft);
}

/* Parses constant [{attributes}] dense<...> : type */
static bool parse_constant(struct parser *parser, struct draft *draft)
{
    if (parse_accept(parser, '(') && !parse_expect(parser, ')'))
        return false;
    if (parse_at(parser, '{') && !parse_attribute_dict(parser, '}', &draft->attributes))
        return false;
    const struct attribute *value = attribute_find(draft->attributes, "value");
    if (value && value->kind == ATTRIBUTE_LITERAL)
        return parse_expect(parser, ':') && parse_signature(parser, draft);
    struct attribute *attribute = draft_attribute(parser, draft, "value");
    if (!parse_attribute(parser, attribute, true))
        return false;
    if (attribute->kind != ATTRIBUTE_LITERAL)
        return parse_fail(parser, ERROR_INVALID, attribute->place, "expected dense<...>");
    draft_push(parser, &draft->results, attribute->literal->type);
    return true;
}

/* Parses call @f(%a) : (types) -> types, and custom_call; composite has a string. */
static bool parse_call(struct parser *parser, struct draft *draft)
{
    bool composite = parser->token.kind == TOKEN_STRING;
    struct attribute *callee = draft_attribute(parser, draft,
                                               composite                   ? "name"
                                               : draft->kind == IR_OP_CALL ? "callee"
                                                                           : "call_target_name");
    if (!composite && parser->token.kind != TOKEN_SYMBOL)
        return parse_expected(parser, "@ and a name");
    if (!parse_attribute(parser, callee, false))
        return false;
    if (composite)
        return parse_plain(parser, draft);
    return parse_operands(parser, draft) && parse_tail(parser, draft);
}

static bool parse_return(struct parser *parser, struct draft *draft)
{
    while (parser->token.kind == TOKEN_VALUE) {
        if (!parse_operand(parser, draft))
            return false;
        if (!parse_accept(parser, ','))
            break;
    }
    if (parse_at(parser, '{') && !parse_attribute_dict(parser, '}', &draft->attributes))
        return false;
    return draft->operands.len == 0 || (parse_expect(parser, ':') && parse_short_types(parser, draft));
}

/* Parses convolution(%a, %b) dim_numbers = ..., window = {stride = [2], pad = [[0, 1]], ...} {attributes} :
 * types */
static bool parse_convolution(struct parser *parser, struct draft *draft)
{
    static const struct {
        const char *text, *attribute;
    } names[] = {
        {"stride", "window_strides"},   {"pad", "padding"},
        {"lhs_dilate", "lhs_dilation"}, {"rhs_dilate", "rhs_dilation"},
        {"reverse", "window_reversal"},
    };
    if (!parse_operands(parser, draft) || !parse_expect_word(parser, "dim_numbers") ||
        !parse_expect(parser, '=') ||
        !parse_conv_dimensions(parser, draft_attribute(parser, draft, "dimension_numbers")))
        return false;
    struct attribute *window = NULL;
    if (!parse_expect(parser, ',') || !parse_expect_word(parser, "window") || !parse_expect(parser, '='))
        return false;
    if (!parse_at(parser, '{'))
        return parse_expected(parser, "'{'");
    if (!parse_attribute_dict(parser, '}', &window))
        return false;
    for (struct attribute *entry = window, *next; entry; entry = next) {
        next = entry->next;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            if (str_is(entry->name, names[i].text))
                entry->name = str_from(names[i].attribute);
        }
        entry->next = draft->attributes;
        draft->attributes = entry;
    }
    return parse_tail(parser, draft);
}

/* Parses sdy.sharding_constraint %0 <@mesh, [{"x"}]> : type */
static bool parse_alias(struct parser *parser, struct draft *draft)
{
    if (!parse_operand(parser, draft))
        return false;
    if (parse_at(parser, '<') && !parse_skip_group(parser))
        return false;
    return parse_tail(parser, draft);
}

bool parse_custom(struct parser *parser, struct draft *draft)
{
    if (draft->is_alias)
        return parse_alias(parser, draft);
    if (str_starts(draft->name, STR("chlo.")))
        return parse_plain(parser, draft);
    switch (draft->kind) {
    case IR_OP_CONSTANT:
        return parse_constant(parser, draft);
    case IR_OP_CALL:
    case IR_OP_CUSTOM_CALL:
        return parse_call(parser, draft);
    case IR_OP_RETURN:
        return parse_return(parser, draft);
    case IR_OP_CONVOLUTION:
        return parse_convolution(parser, draft);
    case IR_OP_REDUCE:
        return parse_reduce(parser, draft);
    case IR_OP_WHILE:
        return parse_while(parser, draft);
    default:
        return parse_plain(parser, draft);
    }
}
