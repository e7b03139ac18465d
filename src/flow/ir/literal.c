/* literal.c - dense<...> : tensor<...>.
 *
 * Forms of the text between the angle brackets:
 *
 *     1.5, -3, true, (1.0, 2.0)      one element for all (splat)
 *     [[1, 2], [3, 4]]               the elements, in lists as the shape
 *     "0x3F800000..."                their bytes, little-endian; i1 has a bit or a byte for each element
 *     nothing                        a shape without elements
 *
 * A hexadecimal number among floats (0x7FC00000) is the float's bits. Source: MLIR, "Builtin Dialect", dense
 * elements attributes.
 */
#include "flow/ir/parse.h"

#include <math.h>
#include <stdlib.h>

enum { NUMBER_TEXT_MAX = 400 };

struct literal_reader {
    struct parser *parser;
    const struct ir_type *type;
    unsigned char *data;
    unsigned size; /* bytes of an element */
};

/* Returns the bits of the nearest value, ties to even, in a format with `exponent` and `mantissa` bits.
 * `finite`: the format has no infinity, and one NaN (f8E4M3FN). */
static uint64_t float_bits(double value, int exponent, int mantissa, bool finite)
{
    uint64_t sign = signbit(value) ? UINT64_C(1) << (exponent + mantissa) : 0;
    uint64_t infinity = ((UINT64_C(1) << exponent) - 1) << mantissa;
    uint64_t all = (UINT64_C(1) << (exponent + mantissa)) - 1;
    int bias = (1 << (exponent - 1)) - 1, power;
    if (isnan(value))
        return finite ? all : infinity | (UINT64_C(1) << (mantissa - 1));
    if (isinf(value))
        return sign | (finite ? all : infinity);
    double fraction = frexp(fabs(value), &power);
    uint64_t bits;
    if (value == 0)
        return sign;
    if (power - 1 < 1 - bias) /* subnormal; if rounding makes it normal, the bits are still right */
        bits = (uint64_t)nearbyint(ldexp(fabs(value), bias - 1 + mantissa));
    else if (power - 1 > bias + 1)
        bits = all;
    else
        bits = ((uint64_t)(power - 1 + bias) << mantissa) +
               ((uint64_t)nearbyint(ldexp(fraction, mantissa + 1)) - (UINT64_C(1) << mantissa));
    if (finite ? bits >= all : bits >= infinity)
        bits = finite ? all : infinity;
    return sign | bits;
}

static uint64_t float_of_text(enum ir_element element, const char *text, bool negative)
{
    double value = strtod(text, NULL);
    uint64_t bits = 0;
    value = negative ? -value : value;
    switch (element) {
    case IR_F64:
        memcpy(&bits, &value, sizeof value);
        return bits;
    case IR_F32: {
        float narrow = strtof(text, NULL); /* rounded once */
        narrow = negative ? -narrow : narrow;
        memcpy(&bits, &narrow, sizeof narrow);
        return bits;
    }
    case IR_F16:
        return float_bits(value, 5, 10, false);
    case IR_BF16:
        return float_bits(value, 8, 7, false);
    case IR_F8E5M2:
        return float_bits(value, 5, 2, false);
    default:
        return float_bits(value, 4, 3, true);
    }
}

static void literal_store(struct literal_reader *reader, int64_t at, unsigned offset, uint64_t bits,
                          unsigned size)
{
    memcpy(reader->data + (size_t)at * reader->size + offset, &bits, size); /* little-endian */
}

static bool literal_magnitude(struct parser *parser, uint64_t *value)
{
    struct token token = parser->token;
    bool hex = str_starts(token.text, STR("0x"));
    uint64_t base = hex ? 16 : 10;
    *value = 0;
    for (size_t i = hex ? 2 : 0; i < token.text.len; i++) {
        char c = token.text.data[i];
        uint64_t digit = (uint64_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
        if (*value > (UINT64_MAX - digit) / base)
            return parse_fail(parser, ERROR_INVALID, token.place, "the number is too large");
        *value = *value * base + digit;
    }
    return true;
}

static bool literal_integer(struct literal_reader *reader, int64_t at)
{
    struct parser *parser = reader->parser;
    enum ir_element element = reader->type->element;
    bool is_unsigned = element >= IR_U2 && element <= IR_U64, truth = parse_at_word(parser, "true");
    if (truth || parse_at_word(parser, "false")) {
        if (element != IR_I1)
            return parse_expected(parser, "an integer");
        parse_advance(parser);
        literal_store(reader, at, 0, truth, 1);
        return true;
    }
    bool negative = parse_accept(parser, '-');
    struct token token = parser->token;
    uint64_t value;
    unsigned bits = ir_element_bits(element);
    if (token.kind != TOKEN_INTEGER)
        return parse_expected(parser, element == IR_I1 ? "true or false" : "an integer");
    if (!literal_magnitude(parser, &value))
        return false;
    uint64_t most = negative     ? UINT64_C(1) << (bits - 1)
                    : bits == 64 ? UINT64_MAX
                                 : (UINT64_C(1) << bits) - 1;
    if (value > most || (negative && is_unsigned && value > 0))
        return parse_fail(parser, ERROR_INVALID, token.place, "%s" STR_FORMAT " is out of range for %s",
                          negative ? "-" : "", STR_ARG(token.text), ir_element_name(element));
    parse_advance(parser);
    value = negative ? -value : value;
    if (element == IR_I1)
        value &= 1;
    else if (bits < 8 && !is_unsigned && (value >> (bits - 1) & 1)) /* i2, i4: sign-extend to the byte */
        value |= ~UINT64_C(0) << bits;
    literal_store(reader, at, 0, value, reader->size);
    return true;
}

static bool literal_float(struct literal_reader *reader, enum ir_element element, int64_t at, unsigned offset)
{
    struct parser *parser = reader->parser;
    bool negative = parse_accept(parser, '-');
    struct token token = parser->token;
    unsigned size = ir_element_size(element);
    uint64_t bits;
    char text[NUMBER_TEXT_MAX];
    bool word = token.kind == TOKEN_WORD && (str_is(token.text, "nan") || str_is(token.text, "inf"));
    if (token.kind == TOKEN_INTEGER && str_starts(token.text, STR("0x")) && !negative) {
        if (!literal_magnitude(parser, &bits))
            return false;
        if (size < 8 && bits >> (size * 8))
            return parse_fail(parser, ERROR_INVALID, token.place, STR_FORMAT " has more bits than %s",
                              STR_ARG(token.text), ir_element_name(element));
    } else if (token.kind == TOKEN_FLOAT || word) {
        if (token.text.len >= sizeof text)
            return parse_fail(parser, ERROR_LIMIT, token.place, "the number is too long");
        memcpy(text, token.text.data, token.text.len);
        text[token.text.len] = 0;
        bits = float_of_text(element, text, negative);
    } else {
        return parse_expected(parser, "a number with a point, or its bits as 0x...");
    }
    parse_advance(parser);
    literal_store(reader, at, offset, bits, size);
    return true;
}

static bool literal_element(struct literal_reader *reader, int64_t at)
{
    enum ir_element element = reader->type->element;
    if (element < IR_F8E4M3FN)
        return literal_integer(reader, at);
    if (element < IR_C64)
        return literal_float(reader, element, at, 0);
    enum ir_element part = element == IR_C64 ? IR_F32 : IR_F64;
    return parse_expect(reader->parser, '(') && literal_float(reader, part, at, 0) &&
           parse_expect(reader->parser, ',') && literal_float(reader, part, at, ir_element_size(part)) &&
           parse_expect(reader->parser, ')');
}

/* Parses the list of dimension `dimension`, and stores its elements from *at on. */
static bool literal_list(struct literal_reader *reader, int32_t dimension, int64_t *at)
{
    struct parser *parser = reader->parser;
    const struct ir_type *type = reader->type;
    struct ir_place place = parser->token.place;
    if (dimension == type->rank)
        return literal_element(reader, (*at)++);
    if (!parse_expect(parser, '['))
        return false;
    int64_t count = 0;
    while (!parse_at(parser, ']')) {
        if (count > 0 && !parse_expect(parser, ','))
            return false;
        if (count >= type->dims[dimension])
            break;
        if (!literal_list(reader, dimension + 1, at))
            return false;
        count++;
    }
    if (count != type->dims[dimension] || !parse_at(parser, ']')) {
        char text[IR_TYPE_TEXT_MAX];
        return parse_fail(parser, ERROR_INVALID, place, "expected %lld elements for dimension %d of %s",
                          (long long)type->dims[dimension], (int)dimension, ir_type_text(type, text));
    }
    return parse_expect(parser, ']');
}

void literal_normalise(const struct ir_type *type, unsigned char *data, size_t count)
{
    unsigned bits = type->element < IR_F8E4M3FN ? ir_element_bits(type->element) : 8;
    for (size_t i = 0; bits < 8 && i < count; i++) {
        data[i] &= (unsigned char)((1U << bits) - 1);
        if (type->element == IR_I2 || type->element == IR_I4)
            data[i] = (unsigned char)(data[i] | (data[i] >> (bits - 1) ? 0xFFU << bits : 0));
    }
}

static bool literal_hex(struct literal_reader *reader, struct ir_literal *literal)
{
    struct parser *parser = reader->parser;
    struct token token = parser->token;
    int64_t elements = ir_type_elements(reader->type);
    size_t count = token.text.len < 2 ? 0 : (token.text.len - 2) / 2;
    unsigned char *bytes = arena_alloc(parser->arena, count);
    if (!str_starts(token.text, STR("0x")) || token.text.len % 2)
        return parse_fail(parser, ERROR_INVALID, token.place,
                          "expected \"0x...\" with two digits for each byte");
    for (size_t i = 0; i < count; i++) {
        int high = lexer_hex_digit(token.text.data[2 + 2 * i]),
            low = lexer_hex_digit(token.text.data[3 + 2 * i]);
        if (high < 0 || low < 0)
            return parse_fail(parser, ERROR_INVALID, token.place, "byte %zu is not hexadecimal", i);
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    bool is_bit = reader->type->element == IR_I1;
    literal->data = bytes;
    literal->splat = elements == 1;
    if (is_bit && count == 1 && (bytes[0] == 0 || bytes[0] == 0xFF) && elements > 0) {
        literal->splat = true;
        bytes[0] &= 1;
    } else if (count == (size_t)elements * reader->size) {
        literal_normalise(reader->type, bytes, count);
    } else if (count == reader->size && !is_bit && elements > 0) {
        literal_normalise(reader->type, bytes, count);
        literal->splat = true;
    } else if (is_bit && count == ((size_t)elements + 7) / 8) {
        unsigned char *data = arena_alloc(parser->arena, (size_t)elements);
        for (int64_t i = 0; i < elements; i++)
            data[i] = bytes[i / 8] >> (i % 8) & 1;
        literal->data = data;
    } else {
        char text[IR_TYPE_TEXT_MAX];
        return parse_fail(parser, ERROR_INVALID, token.place, "%zu bytes are not the elements of %s", count,
                          ir_type_text(reader->type, text));
    }
    parse_advance(parser);
    return true;
}

/* Parses the text between the brackets. `text_len` bounds the number of its elements. */
static bool literal_contents(struct parser *parser, struct ir_literal *literal, size_t text_len)
{
    struct literal_reader reader = {parser, &literal->type, NULL, ir_element_size(literal->type.element)};
    int64_t elements = ir_type_elements(&literal->type), at = 0;
    char text[IR_TYPE_TEXT_MAX];
    if (parser->token.kind == TOKEN_STRING)
        return literal_hex(&reader, literal);
    bool list = parse_at(parser, '['), empty = parse_at(parser, '>');
    if ((empty && elements > 0) || (list && elements > (int64_t)text_len))
        return parse_fail(parser, ERROR_INVALID, parser->token.place, "too few elements for %s",
                          ir_type_text(&literal->type, text));
    literal->splat = elements == 1 || (!list && elements != 0);
    literal->data = reader.data =
        ARENA_ARRAY(parser->arena, unsigned char, (list ? elements : 1) * reader.size);
    if (empty)
        return true;
    return list ? literal_list(&reader, 0, &at) : literal_element(&reader, 0);
}

bool parse_literal(struct parser *parser, struct ir_literal *literal)
{
    parse_advance(parser); /* dense */
    if (!parse_at(parser, '<'))
        return parse_expected(parser, "'<'");
    struct lexer lexer = parser->lexer;
    struct token token = parser->token;
    struct ir_place type_place;
    if (!parse_skip_group(parser) || !parse_expect(parser, ':'))
        return false;
    type_place = parser->token.place;
    if (!parse_type(parser, &literal->type))
        return false;
    if (literal->type.element == IR_TOKEN)
        return parse_fail(parser, ERROR_INVALID, type_place, "a token has no elements");
    struct lexer behind = parser->lexer;
    struct token behind_token = parser->token;
    const char *behind_end = parser->last_end;
    parser->lexer = lexer;
    parser->token = token;
    parse_advance(parser);
    if (!literal_contents(parser, literal, (size_t)(behind_end - token.text.data)) ||
        !parse_expect(parser, '>'))
        return false;
    parser->lexer = behind;
    parser->token = behind_token;
    parser->last_end = behind_end;
    return true;
}
