/* parse.c - parses tokens to values, operations of the generic form, and blocks.
 *
 *     operation  = [ %x[:n] {"," %y[:n]} "=" ] ( custom | generic ) [ loc(...) ]
 *     generic    = "name" "(" operands ")" ["<" {...} ">"] ["(" regions ")"] [{...}] ":" types "->" types
 *     region     = "{" [ ^bb0(arguments): ] { operation } "}"
 */
#include "flow/ir/parse.h"

#include <stdio.h>

/* --- tokens */

bool parse_fail(struct parser *parser, enum error_code code, struct ir_place place, const char *format, ...)
{
    char text[ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ir_make_printable(text, strlen(text));
    parser->code = error_set(parser->error, code, STR_FORMAT ":%u:%u: %s", STR_ARG(parser->module->file),
                             place.line, place.column, text);
    return false;
}

void parse_advance(struct parser *parser)
{
    parser->last_end = parser->lexer.at;
    parser->token = lexer_next(&parser->lexer);
}

bool parse_at(const struct parser *parser, char punctuation)
{
    return parser->token.kind == TOKEN_PUNCTUATION && *parser->token.text.data == punctuation;
}

bool parse_at_word(const struct parser *parser, const char *word)
{
    return parser->token.kind == TOKEN_WORD && str_is(parser->token.text, word);
}

bool parse_accept(struct parser *parser, char punctuation)
{
    if (!parse_at(parser, punctuation))
        return false;
    parse_advance(parser);
    return true;
}

bool parse_accept_word(struct parser *parser, const char *word)
{
    if (!parse_at_word(parser, word))
        return false;
    parse_advance(parser);
    return true;
}

bool parse_expected(struct parser *parser, const char *what)
{
    struct token token = parser->token;
    if (token.kind == TOKEN_END)
        return parse_fail(parser, ERROR_INVALID, token.place, "expected %s, got the end of the text", what);
    if (token.kind == TOKEN_BAD && (token.text.len == 0 || *token.text.data < ' '))
        return parse_fail(parser, ERROR_INVALID, token.place, "expected %s, got a stray character", what);
    return parse_fail(parser, ERROR_INVALID, token.place, "expected %s, got '" STR_FORMAT "'", what,
                      STR_ARG(str_head_utf8(token.text, 60)));
}

bool parse_expect(struct parser *parser, char punctuation)
{
    char what[] = {'\'', punctuation, '\'', 0};
    return parse_accept(parser, punctuation) || parse_expected(parser, what);
}

bool parse_expect_word(struct parser *parser, const char *word)
{
    char what[40];
    snprintf(what, sizeof what, "'%s'", word);
    return parse_accept_word(parser, word) || parse_expected(parser, what);
}

bool parse_enter(struct parser *parser)
{
    if (parser->depth >= IR_DEPTH_MAX)
        return parse_fail(parser, ERROR_LIMIT, parser->token.place, "nested deeper than %d", IR_DEPTH_MAX);
    parser->depth++;
    return true;
}

void parse_leave(struct parser *parser)
{
    CHECK(parser->depth > 0);
    parser->depth--;
}

bool parse_locations(struct parser *parser)
{
    while (parse_accept_word(parser, "loc")) {
        if (!parse_at(parser, '('))
            return parse_expected(parser, "'('");
        if (!parse_skip_group(parser))
            return false;
    }
    return true;
}

void *draft_room(struct parser *parser, void *items, uint32_t len, uint32_t *cap, size_t size)
{
    if (len < *cap)
        return items;
    uint32_t room = *cap ? *cap * 2 : 4;
    void *grown = arena_alloc_array(&parser->scratch, room, size);
    mem_copy(grown, items, len * size);
    *cap = room;
    return grown;
}

/* --- values */

bool parse_define(struct parser *parser, struct str name, struct ir_place place, struct ir_value *values,
                  uint32_t count)
{
    if (scope_find(&parser->values, name))
        return parse_fail(parser, ERROR_INVALID, place, "%%" STR_FORMAT " is defined already", STR_ARG(name));
    scope_push(&parser->values, name, values, count);
    return true;
}

static bool parse_count_values(struct parser *parser, uint32_t count)
{
    parser->value_count += count;
    return parser->value_count <= IR_VALUES_MAX ||
           parse_fail(parser, ERROR_LIMIT, parser->token.place, "more than %d values in a function",
                      IR_VALUES_MAX);
}

bool parse_operand(struct parser *parser, struct draft *draft)
{
    struct token token = parser->token;
    int64_t index = 0;
    if (token.kind != TOKEN_VALUE)
        return parse_expected(parser, "a value");
    const struct scope_name *name = scope_find(&parser->values, token.text);
    if (!name)
        return parse_fail(parser, ERROR_INVALID, token.place, "%%" STR_FORMAT " is not defined here",
                          STR_ARG(token.text));
    parse_advance(parser);
    if (parser->token.kind == TOKEN_HASH && parser->last_end == parser->token.text.data - 1) {
        if (!str_to_i64(parser->token.text, 0, UINT32_MAX, &index))
            return parse_expected(parser, "the number of a result");
        parse_advance(parser);
    }
    if (index >= name->count)
        return parse_fail(parser, ERROR_INVALID, token.place,
                          "%%" STR_FORMAT " has %u values, not a number %lld", STR_ARG(token.text),
                          name->count, (long long)index);
    if (draft->operands.len >= IR_OPERANDS_MAX)
        return parse_fail(parser, ERROR_LIMIT, token.place, "more than %d operands", IR_OPERANDS_MAX);
    draft_push(parser, &draft->operands, (struct ir_value *)name->value + index);
    return true;
}

bool parse_operands(struct parser *parser, struct draft *draft)
{
    if (!parse_expect(parser, '('))
        return false;
    if (parse_accept(parser, ')'))
        return true;
    do {
        if (!parse_operand(parser, draft))
            return false;
    } while (parse_accept(parser, ','));
    return parse_expect(parser, ')');
}

bool parse_block_args(struct parser *parser, struct ir_block *block, const struct ir_type *types,
                      uint32_t count)
{
    block->args = ARENA_ARRAY(parser->arena, struct ir_value, count);
    block->arg_count = count;
    for (uint32_t i = 0; i < count; i++)
        block->args[i].type = types[i];
    return parse_count_values(parser, count);
}

bool parse_named_args(struct parser *parser, struct ir_block *block)
{
    DRAFT_LIST(struct token) names = {0};
    DRAFT_LIST(struct ir_type) types = {0};
    while (!parse_at(parser, ')')) {
        struct ir_type type;
        struct attribute *ignored = NULL;
        if (names.len > 0 && !parse_expect(parser, ','))
            return false;
        if (parser->token.kind != TOKEN_VALUE)
            return parse_expected(parser, "an argument");
        if (names.len >= IR_OPERANDS_MAX)
            return parse_fail(parser, ERROR_LIMIT, parser->token.place, "more than %d arguments",
                              IR_OPERANDS_MAX);
        draft_push(parser, &names, parser->token);
        parse_advance(parser);
        if (!parse_expect(parser, ':') || !parse_type(parser, &type))
            return false;
        draft_push(parser, &types, type);
        if (parse_at(parser, '{') && !parse_attribute_dict(parser, '}', &ignored))
            return false;
        if (!parse_locations(parser))
            return false;
    }
    parse_advance(parser);
    if (!parse_block_args(parser, block, types.items, types.len))
        return false;
    for (uint32_t i = 0; i < names.len; i++) {
        if (!parse_define(parser, names.items[i].text, names.items[i].place, &block->args[i], 1))
            return false;
    }
    return true;
}

/* --- operations */

static bool draft_check_types(struct parser *parser, const struct draft *draft)
{
    char said[IR_TYPE_TEXT_MAX], is[IR_TYPE_TEXT_MAX];
    if (draft->operand_types.len == 0)
        return true;
    if (draft->operand_types.len != draft->operands.len)
        return parse_fail(parser, ERROR_INVALID, draft->place,
                          STR_FORMAT ": %u operands, but %u operand types", STR_ARG(draft->name),
                          draft->operands.len, draft->operand_types.len);
    for (uint32_t i = 0; i < draft->operands.len; i++) {
        const struct ir_type *type = &draft->operands.items[i]->type;
        if (!ir_type_equal(type, &draft->operand_types.items[i]))
            return parse_fail(parser, ERROR_INVALID, draft->place,
                              STR_FORMAT ": operand %u has type %s, not %s", STR_ARG(draft->name), i,
                              ir_type_text(type, is), ir_type_text(&draft->operand_types.items[i], said));
    }
    return true;
}

/* Gives names to the results of an operation, or to the operand that replaces it. */
static bool draft_define(struct parser *parser, const struct draft *draft, struct ir_value *values,
                         uint32_t count)
{
    uint32_t named = 0;
    for (uint32_t i = 0; i < draft->names.len; i++)
        named += draft->names.items[i].count;
    if (draft->names.len > 0 && named != count)
        return parse_fail(parser, ERROR_INVALID, draft->names.items[0].place,
                          STR_FORMAT " has %u results, but %u are named", STR_ARG(draft->name), count, named);
    for (uint32_t i = 0; i < draft->names.len; i++) {
        const struct draft_result *result = &draft->names.items[i];
        if (!parse_define(parser, result->name, result->place, values, result->count))
            return false;
        values += result->count;
    }
    return true;
}

struct ir_block *draft_region(struct parser *parser, struct draft *draft)
{
    draft_push(parser, &draft->regions, ((struct ir_block){0}));
    return &draft->regions.items[draft->regions.len - 1];
}

/* Whether the draft is custom_call @Sharding, which tells compilers how to lay out its operand. */
static bool draft_is_sharding(struct parser *parser, const struct draft *draft)
{
    const struct attribute *target =
        draft->kind == IR_OP_CUSTOM_CALL ? attribute_find(draft->attributes, "call_target_name") : NULL;
    return target && str_is(attribute_text(parser, target->text), "Sharding");
}

bool draft_finish(struct parser *parser, struct draft *draft, struct ir_block *block)
{
    if (!draft_check_types(parser, draft))
        return false;
    if (draft->is_alias || draft_is_sharding(parser, draft)) {
        if (draft->operands.len != 1)
            return parse_fail(parser, ERROR_INVALID, draft->place, STR_FORMAT ": expected one operand",
                              STR_ARG(draft->name));
        return draft_define(parser, draft, draft->operands.items[0], 1);
    }
    struct ir_op *op = ARENA_NEW(parser->arena, struct ir_op);
    op->kind = draft->kind;
    op->place = draft->place;
    op->operand_count = draft->operands.len;
    op->operands = ARENA_ARRAY(parser->arena, struct ir_value *, op->operand_count);
    mem_copy(op->operands, draft->operands.items, op->operand_count * sizeof *op->operands);
    op->result_count = draft->results.len;
    op->results = ARENA_ARRAY(parser->arena, struct ir_value, op->result_count);
    for (uint32_t i = 0; i < op->result_count; i++)
        op->results[i] = (struct ir_value){.type = draft->results.items[i], .op = op};
    op->region_count = draft->regions.len;
    op->regions = ARENA_ARRAY(parser->arena, struct ir_block, op->region_count);
    mem_copy(op->regions, draft->regions.items, op->region_count * sizeof *op->regions);
    if (!attributes_build(parser, op, draft) || !parse_count_values(parser, op->result_count))
        return false;
    if (block->last)
        block->last->next = op;
    else
        block->first = op;
    block->last = op;
    return draft_define(parser, draft, op->results, op->result_count);
}

/* Parses "%a:2, %b =" before an operation. */
static bool parse_result_names(struct parser *parser, struct draft *draft)
{
    if (parser->token.kind != TOKEN_VALUE)
        return true;
    do {
        struct draft_result result = {.name = parser->token.text, .count = 1, .place = parser->token.place};
        int64_t count;
        if (parser->token.kind != TOKEN_VALUE)
            return parse_expected(parser, "a value's name");
        parse_advance(parser);
        if (parse_accept(parser, ':')) {
            if (parser->token.kind != TOKEN_INTEGER ||
                !str_to_i64(parser->token.text, 1, IR_OPERANDS_MAX, &count))
                return parse_expected(parser, "the number of results");
            result.count = (uint32_t)count;
            parse_advance(parser);
        }
        if (draft->names.len >= IR_OPERANDS_MAX)
            return parse_fail(parser, ERROR_LIMIT, result.place, "more than %d results", IR_OPERANDS_MAX);
        draft_push(parser, &draft->names, result);
    } while (parse_accept(parser, ','));
    return parse_expect(parser, '=');
}

bool parse_region(struct parser *parser, struct ir_block *block)
{
    size_t mark = parser->values.list.len;
    if (!parse_enter(parser) || !parse_expect(parser, '{'))
        return false;
    if (parser->token.kind == TOKEN_BLOCK) {
        parse_advance(parser);
        if (parse_accept(parser, '(') && !parse_named_args(parser, block))
            return false;
        if (!parse_expect(parser, ':'))
            return false;
    }
    if (!parse_block_body(parser, block))
        return false;
    scope_cut(&parser->values, mark);
    parse_leave(parser);
    return true;
}

/* Parses the generic form after the operation's name. */
static bool parse_generic(struct parser *parser, struct draft *draft)
{
    if (!parse_operands(parser, draft))
        return false;
    if (parse_at(parser, '['))
        return parse_fail(parser, ERROR_UNSUPPORTED, parser->token.place,
                          "branches between blocks are not supported");
    if (parse_accept(parser, '<')) {
        if (!parse_at(parser, '{'))
            return parse_expected(parser, "'{'");
        if (!parse_attribute_dict(parser, '}', &draft->attributes) || !parse_expect(parser, '>'))
            return false;
    }
    if (parse_accept(parser, '(')) {
        do {
            struct ir_block block = {0};
            if (!parse_region(parser, &block))
                return false;
            *draft_region(parser, draft) = block;
        } while (parse_accept(parser, ','));
        if (!parse_expect(parser, ')'))
            return false;
    }
    if (parse_at(parser, '{') && !parse_attribute_dict(parser, '}', &draft->attributes))
        return false;
    return parse_expect(parser, ':') && parse_signature(parser, draft);
}

static bool parse_operation(struct parser *parser, struct ir_block *block)
{
    struct draft draft = {0};
    if (!parse_result_names(parser, &draft))
        return false;
    struct token token = parser->token;
    if (token.kind != TOKEN_WORD && token.kind != TOKEN_STRING)
        return parse_expected(parser, "an operation");
    draft.place = token.place;
    if (!draft_name(parser, &draft, token.text))
        return false;
    parse_advance(parser);
    if (!(token.kind == TOKEN_STRING ? parse_generic(parser, &draft) : parse_custom(parser, &draft)))
        return false;
    return draft_finish(parser, &draft, block) && parse_locations(parser);
}

bool parse_block_body(struct parser *parser, struct ir_block *block)
{
    while (!parse_accept(parser, '}')) {
        if (parser->token.kind == TOKEN_BLOCK)
            return parse_fail(parser, ERROR_UNSUPPORTED, parser->token.place,
                              "regions of several blocks are not supported");
        if (!parse_operation(parser, block))
            return false;
    }
    return true;
}
