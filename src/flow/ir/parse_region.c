/* parse_region.c - the custom forms with regions: reduce and while.
 *
 *     reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : types
 *     reduce(%a init: %z), (%b init: %y) across dimensions = [0] : types
 *      reducer(%l: t, %r: t) (%m: u, %s: u) { ... }
 *     while(%x = %a, %y = %b) : types cond { ... } do { ... }
 */
#include "flow/ir/parse.h"

/* Parses the values, then their initial values: the operands in the order of the generic form. */
static bool parse_reduce_operands(struct parser *parser, struct draft *draft)
{
    struct draft inits = {0};
    do {
        if (!parse_expect(parser, '(') || !parse_operand(parser, draft) ||
            !parse_expect_word(parser, "init") || !parse_expect(parser, ':') ||
            !parse_operand(parser, &inits) || !parse_expect(parser, ')'))
            return false;
    } while (parse_accept(parser, ','));
    for (uint32_t i = 0; i < inits.operands.len; i++)
        draft_push(parser, &draft->operands, inits.operands.items[i]);
    return draft->operands.len <= IR_OPERANDS_MAX ||
           parse_fail(parser, ERROR_LIMIT, draft->place, "more than %d operands", IR_OPERANDS_MAX);
}

/* Makes the region of "applies stablehlo.add": one operation on two elements. */
static bool parse_reduce_applied(struct parser *parser, struct draft *draft, struct draft *inner)
{
    struct ir_block block = {0};
    struct draft end = {.kind = IR_OP_RETURN, .name = STR("stablehlo.return"), .place = inner->place};
    if (draft->operands.len != 2)
        return parse_fail(parser, ERROR_INVALID, inner->place,
                          "'applies' needs one value and one initial value");
    struct ir_type type = draft->operands.items[1]->type, types[2] = {type, type};
    if (!parse_block_args(parser, &block, types, 2))
        return false;
    for (uint32_t i = 0; i < 2; i++)
        draft_push(parser, &inner->operands, &block.args[i]);
    draft_push(parser, &inner->results, type);
    if (!draft_finish(parser, inner, &block))
        return false;
    draft_push(parser, &end.operands, &block.first->results[0]);
    if (!draft_finish(parser, &end, &block))
        return false;
    *draft_region(parser, draft) = block;
    return true;
}

/* Parses "(%l: t, %r: t) (%m: u, %s: u) {...}". All left names come first in the region's arguments. */
static bool parse_reducer(struct parser *parser, struct draft *draft)
{
    DRAFT_LIST(struct token) names = {0};
    DRAFT_LIST(struct ir_type) types = {0};
    size_t mark = parser->values.list.len;
    struct ir_block block = {0};
    do {
        for (int side = 0; side < 2; side++) {
            struct ir_type type;
            if (!parse_expect(parser, side ? ',' : '('))
                return false;
            if (parser->token.kind != TOKEN_VALUE)
                return parse_expected(parser, "an argument");
            draft_push(parser, &names, parser->token);
            parse_advance(parser);
            if (!parse_expect(parser, ':') || !parse_type(parser, &type) || !parse_locations(parser))
                return false;
            draft_push(parser, &types, type);
        }
        if (!parse_expect(parser, ')'))
            return false;
    } while (parse_at(parser, '(') && names.len < IR_OPERANDS_MAX);
    uint32_t half = names.len / 2;
    struct ir_type *ordered = ARENA_ARRAY(&parser->scratch, struct ir_type, names.len);
    for (uint32_t i = 0; i < names.len; i++)
        ordered[i % 2 * half + i / 2] = types.items[i];
    if (!parse_enter(parser) || !parse_block_args(parser, &block, ordered, names.len))
        return false;
    for (uint32_t i = 0; i < names.len; i++) {
        struct ir_value *value = &block.args[i % 2 * half + i / 2];
        if (!parse_define(parser, names.items[i].text, names.items[i].place, value, 1))
            return false;
    }
    if (!parse_expect(parser, '{') || !parse_block_body(parser, &block))
        return false;
    scope_cut(&parser->values, mark);
    parse_leave(parser);
    *draft_region(parser, draft) = block;
    return true;
}

bool parse_reduce(struct parser *parser, struct draft *draft)
{
    struct draft inner = {0};
    if (!parse_reduce_operands(parser, draft))
        return false;
    if (parse_accept_word(parser, "applies")) {
        inner.place = parser->token.place;
        if (parser->token.kind != TOKEN_WORD)
            return parse_expected(parser, "an operation");
        if (!draft_name(parser, &inner, parser->token.text))
            return false;
        parse_advance(parser);
    }
    if (!parse_expect_word(parser, "across") || !parse_expect_word(parser, "dimensions") ||
        !parse_expect(parser, '=') ||
        !parse_attribute(parser, draft_attribute(parser, draft, "dimensions"), false))
        return false;
    if (parse_at(parser, '{') && !parse_attribute_dict(parser, '}', &draft->attributes))
        return false;
    if (!parse_expect(parser, ':') || !parse_signature(parser, draft))
        return false;
    if (inner.name.len > 0)
        return parse_reduce_applied(parser, draft, &inner);
    return parse_expect_word(parser, "reducer") && parse_reducer(parser, draft);
}

/* Parses a region of while. Its arguments have the names and types of the operands. */
static bool parse_while_region(struct parser *parser, struct draft *draft, const struct token *names)
{
    size_t mark = parser->values.list.len;
    struct ir_block block = {0};
    if (!parse_enter(parser) || !parse_block_args(parser, &block, draft->results.items, draft->results.len))
        return false;
    for (uint32_t i = 0; i < draft->results.len; i++) {
        if (!parse_define(parser, names[i].text, names[i].place, &block.args[i], 1))
            return false;
    }
    if (!parse_expect(parser, '{') || !parse_block_body(parser, &block))
        return false;
    scope_cut(&parser->values, mark);
    parse_leave(parser);
    *draft_region(parser, draft) = block;
    return true;
}

bool parse_while(struct parser *parser, struct draft *draft)
{
    DRAFT_LIST(struct token) names = {0};
    if (!parse_expect(parser, '('))
        return false;
    while (!parse_at(parser, ')')) {
        if (names.len > 0 && !parse_expect(parser, ','))
            return false;
        if (parser->token.kind != TOKEN_VALUE)
            return parse_expected(parser, "an argument");
        draft_push(parser, &names, parser->token);
        parse_advance(parser);
        if (!parse_expect(parser, '=') || !parse_operand(parser, draft))
            return false;
    }
    parse_advance(parser);
    if (parse_accept(parser, ':')) {
        do {
            struct ir_type type;
            if (!parse_type(parser, &type))
                return false;
            draft_push(parser, &draft->operand_types, type);
            draft_push(parser, &draft->results, type);
        } while (parse_accept(parser, ',') && draft->results.len <= names.len);
    }
    if (draft->results.len != names.len)
        return parse_fail(parser, ERROR_INVALID, draft->place, "stablehlo.while: %u operands, but %u types",
                          names.len, draft->results.len);
    if (parse_accept_word(parser, "attributes")) {
        if (!parse_at(parser, '{'))
            return parse_expected(parser, "'{'");
        if (!parse_attribute_dict(parser, '}', &draft->attributes))
            return false;
    }
    return parse_expect_word(parser, "cond") && parse_while_region(parser, draft, names.items) &&
           parse_expect_word(parser, "do") && parse_while_region(parser, draft, names.items);
}
