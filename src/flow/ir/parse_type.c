/* parse_type.c - types: tensor<4x8xf32>, !stablehlo.token. */
#include "flow/ir/parse.h"

static bool parse_element(struct parser *parser, struct ir_type *type)
{
    struct token token = parser->token;
    if (parse_at_word(parser, "complex")) {
        parse_advance(parser);
        if (!parse_expect(parser, '<'))
            return false;
        struct token part = parser->token;
        if (str_is(part.text, "f32"))
            type->element = IR_C64;
        else if (str_is(part.text, "f64"))
            type->element = IR_C128;
        else
            return parse_fail(parser, ERROR_UNSUPPORTED, part.place,
                              "type complex<" STR_FORMAT "> is not supported", STR_ARG(part.text));
        parse_advance(parser);
        return parse_expect(parser, '>');
    }
    if (parser->attribute_depth > 1 && parse_accept_word(parser, "index")) { /* layouts, which are ignored */
        type->element = IR_I64;
        return true;
    }
    for (enum ir_element i = 0; token.kind == TOKEN_WORD && i < IR_C64; i++) {
        if (str_is(token.text, ir_element_name(i))) {
            type->element = i;
            parse_advance(parser);
            return true;
        }
    }
    if (token.kind != TOKEN_WORD && token.kind != TOKEN_EXCLAMATION)
        return parse_expected(parser, "an element type");
    return parse_fail(parser, ERROR_UNSUPPORTED, token.place, "element type " STR_FORMAT " is not supported",
                      STR_ARG(token.text));
}

/* Parses the shape after "tensor<", whose "<" is the token read ahead. */
static bool parse_shape(struct parser *parser, struct ir_type *type)
{
    int64_t elements = 1, dimension = 0;
    for (;;) {
        struct ir_place place = lexer_place(&parser->lexer);
        int found = lexer_dimension(&parser->lexer, &dimension);
        if (found == 0)
            break;
        if (found > 0 && dimension < 0)
            return parse_fail(parser, ERROR_UNSUPPORTED, place, "dynamic dimensions are not supported");
        if (type->rank == IR_RANK_MAX)
            return parse_fail(parser, ERROR_LIMIT, place, "more than %d dimensions", IR_RANK_MAX);
        if (found < 0 || (dimension > 0 && elements > IR_ELEMENTS_MAX / dimension))
            return parse_fail(parser, ERROR_LIMIT, place, "more than 2^40 elements");
        if (dimension > 0) /* zeros do not count, so that no product of the others can overflow */
            elements *= dimension;
        type->dims[type->rank++] = dimension;
    }
    parse_advance(parser);
    return true;
}

bool parse_type(struct parser *parser, struct ir_type *type)
{
    struct token token = parser->token;
    *type = (struct ir_type){0};
    if (token.kind == TOKEN_EXCLAMATION && str_is(token.text, "stablehlo.token")) {
        type->element = IR_TOKEN;
        parse_advance(parser);
        return true;
    }
    if (token.kind != TOKEN_WORD && token.kind != TOKEN_EXCLAMATION)
        return parse_expected(parser, "a type");
    if (!parse_at_word(parser, "tensor"))
        return parse_fail(parser, ERROR_UNSUPPORTED, token.place, "type " STR_FORMAT " is not supported",
                          STR_ARG(token.text));
    parse_advance(parser);
    if (!parse_at(parser, '<'))
        return parse_expected(parser, "'<'");
    if (!parse_shape(parser, type))
        return false;
    if (parse_at(parser, '*'))
        return parse_fail(parser, ERROR_UNSUPPORTED, parser->token.place,
                          "unranked tensors are not supported");
    if (!parse_element(parser, type))
        return false;
    if (parse_accept(parser, ',')) { /* an encoding, which only other compilers use */
        struct attribute encoding = {0};
        if (!parse_attribute(parser, &encoding, true))
            return false;
    }
    return parse_expect(parser, '>');
}

bool parse_types_until(struct parser *parser, char close, struct draft *draft, bool operands)
{
    if (parse_accept(parser, close))
        return true;
    do {
        struct ir_type type;
        struct ir_place place = parser->token.place;
        if (!parse_type(parser, &type))
            return false;
        if (operands)
            draft_push(parser, &draft->operand_types, type);
        else
            draft_push(parser, &draft->results, type);
        if (draft->results.len > IR_OPERANDS_MAX || draft->operand_types.len > IR_OPERANDS_MAX)
            return parse_fail(parser, ERROR_LIMIT, place, "more than %d types", IR_OPERANDS_MAX);
        if (parse_at(parser, '{')) { /* attributes of a function's result */
            struct attribute *ignored = NULL;
            if (!parse_attribute_dict(parser, '}', &ignored))
                return false;
        }
    } while (parse_accept(parser, ','));
    return parse_expect(parser, close);
}

bool parse_result_types(struct parser *parser, struct draft *draft)
{
    if (parse_accept(parser, '('))
        return parse_types_until(parser, ')', draft, false);
    struct ir_type type;
    if (!parse_type(parser, &type))
        return false;
    draft_push(parser, &draft->results, type);
    return true;
}
