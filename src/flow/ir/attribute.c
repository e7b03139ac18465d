/* attribute.c - attributes of the generic syntax: numbers, lists, dictionaries, dense literals, and the
 * dialect's own #stablehlo.gather<...>. The brackets of attributes that executors do not need are skipped.
 */
#include "flow/ir/parse.h"

#include <math.h>
#include <stdlib.h>

const struct attribute *attribute_find(const struct attribute *list, const char *name)
{
    for (; list; list = list->next) {
        if (str_is(list->name, name))
            return list;
    }
    return NULL;
}

struct attribute *draft_attribute(struct parser *parser, struct draft *draft, const char *name)
{
    struct attribute *attribute = ARENA_NEW(&parser->scratch, struct attribute);
    attribute->name = str_from(name);
    attribute->place = parser->token.place;
    attribute->next = draft->attributes;
    draft->attributes = attribute;
    return attribute;
}

/* Removes a closing bracket from the stack of expected ones. A ">", and a "<" that is still open, may also be
 * a comparison. Returns false if another bracket is expected. */
static bool brackets_close(char *awaited, uint32_t *depth, char bracket)
{
    if (bracket == '>') {
        if (awaited[*depth - 1] == '>')
            --*depth;
        return true;
    }
    while (*depth > 1 && awaited[*depth - 1] == '>')
        --*depth;
    return awaited[--*depth] == bracket;
}

bool parse_skip_group(struct parser *parser)
{
    char awaited[IR_DEPTH_MAX];
    uint32_t depth = 0;
    struct ir_place start = parser->token.place;
    do {
        struct token token = parser->token;
        char c = token.kind == TOKEN_PUNCTUATION ? *token.text.data : 0;
        if (token.kind == TOKEN_END || token.kind == TOKEN_BAD)
            return parse_fail(parser, ERROR_INVALID, start, "this bracket is not closed");
        if (c && strchr("([{<", c)) {
            if (depth == IR_DEPTH_MAX)
                return parse_fail(parser, ERROR_LIMIT, token.place, "nested deeper than %d", IR_DEPTH_MAX);
            awaited[depth++] = c == '(' ? ')' : c == '[' ? ']' : c == '{' ? '}' : '>';
        } else if (c && strchr(")]}>", c) && !brackets_close(awaited, &depth, c)) {
            return parse_fail(parser, ERROR_INVALID, start, "this bracket is not closed");
        }
        parse_advance(parser);
    } while (depth > 0);
    return true;
}

/* Skips a type of this dialect or another. */
static bool parse_skip_type(struct parser *parser)
{
    if (parse_at(parser, '(')) {
        if (!parse_skip_group(parser))
            return false;
        if (parser->token.kind != TOKEN_ARROW)
            return true;
        parse_advance(parser);
        return parse_at(parser, '(') ? parse_skip_group(parser) : parse_skip_type(parser);
    }
    if (parser->token.kind != TOKEN_WORD && parser->token.kind != TOKEN_EXCLAMATION)
        return parse_expected(parser, "a type");
    parse_advance(parser);
    return !parse_at(parser, '<') || parse_skip_group(parser);
}

static bool parse_number(struct parser *parser, struct attribute *attribute, bool typed)
{
    bool negative = parse_accept(parser, '-');
    struct token token = parser->token;
    if (token.kind == TOKEN_FLOAT) {
        char text[64];
        if (token.text.len >= sizeof text)
            return parse_fail(parser, ERROR_LIMIT, token.place, "the number is too long");
        memcpy(text, token.text.data, token.text.len);
        text[token.text.len] = 0;
        attribute->kind = ATTRIBUTE_FLOAT;
        attribute->real = negative ? -strtod(text, NULL) : strtod(text, NULL);
        if (!isfinite(attribute->real))
            return parse_fail(parser, ERROR_INVALID, token.place, "the number is too large");
    } else if (token.kind == TOKEN_INTEGER) {
        bool hex = str_starts(token.text, STR("0x"));
        uint64_t value = 0, base = hex ? 16 : 10;
        for (size_t i = hex ? 2 : 0; i < token.text.len; i++) {
            char c = token.text.data[i];
            uint64_t digit = (uint64_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
            if (value > (UINT64_MAX - digit) / base)
                return parse_fail(parser, ERROR_LIMIT, token.place, "the number is too large");
            value = value * base + digit;
        }
        attribute->kind = ATTRIBUTE_INTEGER;
        attribute->integer = (int64_t)(negative ? -value : value);
        attribute->text = token.text;
    } else {
        return parse_expected(parser, "a number");
    }
    parse_advance(parser);
    return !typed || !parse_accept(parser, ':') || parse_skip_type(parser);
}

static bool parse_list_items(struct parser *parser, struct attribute *attribute, char close)
{
    struct attribute **end = &attribute->items;
    attribute->kind = ATTRIBUTE_LIST;
    if (parse_accept(parser, close))
        return true;
    do {
        struct attribute *item = ARENA_NEW(&parser->scratch, struct attribute);
        if (!parse_attribute(parser, item, true))
            return false;
        *end = item;
        end = &item->next;
        attribute->count++;
    } while (parse_accept(parser, ','));
    return parse_expect(parser, close);
}

/* Parses array<i64: 1, 2>, from its "<" on. */
static bool parse_array(struct parser *parser, struct attribute *attribute)
{
    if (!parse_expect(parser, '<') || !parse_skip_type(parser))
        return false;
    attribute->kind = ATTRIBUTE_LIST;
    if (parse_accept(parser, '>'))
        return true;
    return parse_expect(parser, ':') && parse_list_items(parser, attribute, '>');
}

bool parse_attribute_dict(struct parser *parser, char close, struct attribute **list)
{
    parse_advance(parser); /* the opening bracket */
    if (parse_accept(parser, close))
        return true;
    do {
        struct attribute *entry = ARENA_NEW(&parser->scratch, struct attribute);
        struct token token = parser->token;
        if (token.kind != TOKEN_WORD && token.kind != TOKEN_STRING)
            return parse_expected(parser, "the name of an attribute");
        parse_advance(parser);
        entry->place = token.place;
        if (parse_accept(parser, '=') && !parse_attribute(parser, entry, true))
            return false;
        entry->name = token.text;
        entry->next = *list;
        *list = entry;
    } while (parse_accept(parser, ','));
    return parse_expect(parser, close);
}

/* Parses [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f] as a list of three lists. */
bool parse_conv_dimensions(struct parser *parser, struct attribute *attribute)
{
    struct attribute *lists = ARENA_ARRAY(&parser->scratch, struct attribute, 3);
    for (int i = 0; i < 3; i++) {
        if (i == 1 && !parse_expect_word(parser, "x"))
            return false;
        if (i == 2) {
            if (parser->token.kind != TOKEN_ARROW)
                return parse_expected(parser, "'->'");
            parse_advance(parser);
        }
        lists[i].place = parser->token.place;
        if (!parse_expect(parser, '[') || !parse_list_items(parser, &lists[i], ']'))
            return false;
        lists[i].next = i < 2 ? &lists[i + 1] : NULL;
    }
    attribute->kind = ATTRIBUTE_LIST;
    attribute->items = lists;
    attribute->count = 3;
    return true;
}

/* Parses #stablehlo.gather<...>, #stablehlo<transpose ADJOINT>, #loc3. */
static bool parse_hash(struct parser *parser, struct attribute *attribute)
{
    struct str name = parser->token.text;
    attribute->kind = ATTRIBUTE_OPAQUE;
    parse_advance(parser);
    if (!parse_at(parser, '<'))
        return true;
    if (str_is(name, "stablehlo") || str_is(name, "chlo")) {
        parse_advance(parser);
        if (parser->token.kind != TOKEN_WORD)
            return parse_expected(parser, "the name of an enumeration");
        parse_advance(parser);
        attribute->kind = ATTRIBUTE_WORD;
        attribute->text = parser->token.text;
        if (parser->token.kind != TOKEN_WORD)
            return parse_expected(parser, "an enumerator");
        parse_advance(parser);
        return parse_expect(parser, '>');
    }
    if (str_is(name, "stablehlo.conv")) {
        parse_advance(parser);
        return parse_conv_dimensions(parser, attribute) && parse_expect(parser, '>');
    }
    if (str_is(name, "stablehlo.gather") || str_is(name, "stablehlo.scatter") ||
        str_is(name, "stablehlo.dot") || str_is(name, "stablehlo.channel_handle")) {
        attribute->kind = ATTRIBUTE_DICT;
        return parse_attribute_dict(parser, '>', &attribute->items);
    }
    return parse_skip_group(parser);
}

static bool parse_word_value(struct parser *parser, struct attribute *attribute)
{
    struct token token = parser->token;
    if (parse_at_word(parser, "dense")) {
        struct ir_literal *literal = ARENA_NEW(&parser->scratch, struct ir_literal);
        attribute->kind = ATTRIBUTE_LITERAL;
        attribute->literal = literal;
        return parse_literal(parser, literal);
    }
    parse_advance(parser);
    attribute->kind = ATTRIBUTE_WORD;
    attribute->text = token.text;
    if (str_is(token.text, "true") || str_is(token.text, "false")) {
        attribute->kind = ATTRIBUTE_BOOL;
        attribute->integer = str_is(token.text, "true");
    } else if (str_is(token.text, "unit")) {
        attribute->kind = ATTRIBUTE_UNIT;
    } else if (str_is(token.text, "array") && parse_at(parser, '<')) {
        return parse_array(parser, attribute);
    } else if (str_is(token.text, "dense_resource") || str_is(token.text, "sparse")) {
        return parse_fail(parser, ERROR_UNSUPPORTED, token.place, STR_FORMAT "<...> is not supported",
                          STR_ARG(token.text));
    } else if (parse_at(parser, '<') ||
               parse_at(parser, '(')) { /* tensor<4xf32>, affine_map<...>, loc(...) */
        attribute->kind = ATTRIBUTE_OPAQUE;
        return parse_skip_group(parser);
    }
    return true;
}

/* Parses a value, except its `text`. */
static bool parse_value(struct parser *parser, struct attribute *attribute, bool typed)
{
    switch (parser->token.kind) {
    case TOKEN_INTEGER:
    case TOKEN_FLOAT:
        return parse_number(parser, attribute, typed);
    case TOKEN_STRING:
    case TOKEN_SYMBOL:
        attribute->kind = parser->token.kind == TOKEN_STRING ? ATTRIBUTE_STRING : ATTRIBUTE_SYMBOL;
        attribute->text = parser->token.text;
        parse_advance(parser);
        return attribute->kind == ATTRIBUTE_SYMBOL || !typed || !parse_accept(parser, ':') ||
               parse_skip_type(parser);
    case TOKEN_WORD:
        return parse_word_value(parser, attribute);
    case TOKEN_HASH:
        return parse_hash(parser, attribute);
    case TOKEN_EXCLAMATION:
        attribute->kind = ATTRIBUTE_OPAQUE;
        return parse_skip_type(parser);
    default:
        break;
    }
    if (parse_at(parser, '-'))
        return parse_number(parser, attribute, typed);
    if (parse_accept(parser, '['))
        return parse_list_items(parser, attribute, ']');
    if (parse_at(parser, '{')) {
        attribute->kind = ATTRIBUTE_DICT;
        return parse_attribute_dict(parser, '}', &attribute->items);
    }
    if (parse_at(parser, '(') || parse_at(parser, '<')) {
        attribute->kind = ATTRIBUTE_OPAQUE;
        return parse_at(parser, '<') ? parse_skip_group(parser) : parse_skip_type(parser);
    }
    return parse_expected(parser, "an attribute's value");
}

bool parse_attribute(struct parser *parser, struct attribute *attribute, bool typed)
{
    attribute->place = parser->token.place;
    const char *start = parser->token.text.data;
    if (parser->attribute_depth >= IR_DEPTH_MAX)
        return parse_fail(parser, ERROR_LIMIT, attribute->place, "nested deeper than %d", IR_DEPTH_MAX);
    parser->attribute_depth++;
    if (!parse_value(parser, attribute, typed))
        return false;
    parser->attribute_depth--;
    if (attribute->kind == ATTRIBUTE_DICT) /* its source, without the space and comments that follow */
        attribute->text = (struct str){start, (size_t)(parser->last_end - start)};
    return true;
}
