#include "doc/yaml_scalar.h"

#include <math.h>
#include <stdlib.h>

static const struct {
    const char *word;
    enum yaml_meaning meaning;
    bool boolean;
} words[] = {
    {"", YAML_NULL, false},           {"~", YAML_NULL, false},          {"null", YAML_NULL, false},
    {"Null", YAML_NULL, false},       {"NULL", YAML_NULL, false},       {"y", YAML_BOOL, true},
    {"Y", YAML_BOOL, true},           {"yes", YAML_BOOL, true},         {"Yes", YAML_BOOL, true},
    {"YES", YAML_BOOL, true},         {"true", YAML_BOOL, true},        {"True", YAML_BOOL, true},
    {"TRUE", YAML_BOOL, true},        {"on", YAML_BOOL, true},          {"On", YAML_BOOL, true},
    {"ON", YAML_BOOL, true},          {"n", YAML_BOOL, false},          {"N", YAML_BOOL, false},
    {"no", YAML_BOOL, false},         {"No", YAML_BOOL, false},         {"NO", YAML_BOOL, false},
    {"false", YAML_BOOL, false},      {"False", YAML_BOOL, false},      {"FALSE", YAML_BOOL, false},
    {"off", YAML_BOOL, false},        {"Off", YAML_BOOL, false},        {"OFF", YAML_BOOL, false},
    {".nan", YAML_NOT_FINITE, false}, {".NaN", YAML_NOT_FINITE, false}, {".NAN", YAML_NOT_FINITE, false},
    {".inf", YAML_NOT_FINITE, false}, {".Inf", YAML_NOT_FINITE, false}, {".INF", YAML_NOT_FINITE, false},
};

enum { WORD_MAX = 5, NUMBER_MAX = 400 };

static bool find_word(struct str text, struct yaml_scalar *ret_scalar)
{
    if (text.len > WORD_MAX)
        return false;
    /* Infinity may have a sign, nothing else. */
    if (text.len == 5 && (text.data[0] == '+' || text.data[0] == '-') && (text.data[2] | 0x20) == 'i')
        text = (struct str){text.data + 1, 4};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (str_is(text, words[i].word)) {
            *ret_scalar = (struct yaml_scalar){.meaning = words[i].meaning, .boolean = words[i].boolean};
            return true;
        }
    }
    return false;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        return (c | 0x20) - 'a' + 10;
    return 99;
}

/* [+-]? (0x | 0o | 0b | 0)? digits. Beyond int64_t, up to UINT64_MAX, a number in another base than ten
 * becomes a float; decimal numbers follow the rules of floats, which keep their text. */
static bool read_int(struct str text, struct yaml_scalar *scalar)
{
    bool negative = text.data[0] == '-';
    size_t at = text.data[0] == '-' || text.data[0] == '+';
    int base = 10;
    if (text.len - at >= 2 && text.data[at] == '0') {
        char c = text.data[at + 1] | 0x20;
        base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
        at += base ? 2 : 1;
        base = base ? base : 8;
    }
    if (at == text.len)
        return false;
    uint64_t value = 0;
    for (; at < text.len; at++) {
        int digit = digit_value(text.data[at]);
        if (digit >= base || __builtin_mul_overflow(value, (uint64_t)base, &value) ||
            __builtin_add_overflow(value, (uint64_t)digit, &value))
            return false;
    }
    if (value <= (uint64_t)INT64_MAX + negative) {
        scalar->meaning = YAML_INT;
        scalar->integer = negative ? (int64_t)-value : (int64_t)value;
        return true;
    }
    if (negative || base == 10)
        return false;
    scalar->meaning = YAML_FLOAT;
    scalar->number = (double)value;
    return true;
}

static size_t count_digits(struct str text, size_t at)
{
    size_t start = at;
    while (at < text.len && text.data[at] >= '0' && text.data[at] <= '9')
        at++;
    return at - start;
}

/* [-+]? (\.[0-9]+ | [0-9]+(\.[0-9]*)?) ([eE][-+]?[0-9]+)? */
static bool has_float_form(struct str text)
{
    size_t at = text.len && (text.data[0] == '-' || text.data[0] == '+');
    size_t whole = count_digits(text, at), fraction = 0;
    at += whole;
    if (at < text.len && text.data[at] == '.') {
        fraction = count_digits(text, at + 1);
        at += 1 + fraction;
    }
    if (whole + fraction == 0)
        return false;
    if (at < text.len && (text.data[at] | 0x20) == 'e') {
        at++;
        at += at < text.len && (text.data[at] == '-' || text.data[at] == '+');
        size_t digits = count_digits(text, at);
        if (digits == 0)
            return false;
        at += digits;
    }
    return at == text.len;
}

/* -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE]…)?, given has_float_form. */
static bool is_json_number(struct str text)
{
    size_t at = text.data[0] == '-';
    size_t whole = count_digits(text, at);
    if (whole == 0 || (whole > 1 && text.data[at] == '0'))
        return false;
    at += whole;
    return at == text.len || text.data[at] != '.' || count_digits(text, at + 1) > 0;
}

struct yaml_scalar yaml_resolve(struct str text)
{
    struct yaml_scalar scalar = {.meaning = YAML_STRING};
    if (find_word(text, &scalar))
        return scalar;
    char first = text.data[0];
    bool sign = first == '-' || first == '+', digit = first >= '0' && first <= '9';
    if ((!sign && !digit && first != '.') || text.len > NUMBER_MAX)
        return scalar;
    char plain[NUMBER_MAX + 1];
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] != '_')
            plain[len++] = text.data[i];
        else if (first == '.')
            return scalar;
    }
    plain[len] = 0;
    struct str number = {plain, len};
    if (first != '.' && read_int(number, &scalar))
        return scalar;
    if (!has_float_form(number))
        return scalar;
    double value = strtod(plain, NULL);
    if (isfinite(value)) {
        scalar.meaning = YAML_FLOAT;
        scalar.number = value;
        scalar.written = len == text.len && is_json_number(number);
    }
    return scalar;
}

/* [-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)? */
static bool is_base60(struct str text)
{
    size_t at = text.len && (text.data[0] == '-' || text.data[0] == '+'), groups = 0;
    if (count_digits(text, at) == 0)
        return false;
    while (at < text.len && (count_digits(text, at) || text.data[at] == '_'))
        at++;
    for (; at < text.len && text.data[at] == ':'; groups++) {
        size_t digits = count_digits(text, ++at);
        if (digits == 0 || digits > 2 || (digits == 2 && text.data[at] > '5'))
            return false;
        at += digits;
    }
    if (at < text.len && text.data[at] == '.') {
        at++;
        while (at < text.len && (count_digits(text, at) || text.data[at] == '_'))
            at++;
    }
    return groups && at == text.len;
}

/* Cuts a number of one or two digits between `low` and `high`, and the mark before it (0: none). */
static bool cut_field(struct str *text, char mark, int low, int high, int *ret_value)
{
    size_t at = mark != 0;
    if (mark && (text->len == 0 || text->data[0] != mark))
        return false;
    size_t digits = count_digits(*text, at);
    if (digits < 1 || digits > 2)
        return false;
    int value = text->data[at] - '0';
    if (digits == 2)
        value = value * 10 + (text->data[at + 1] - '0');
    if (value < low || value > high)
        return false;
    at += digits;
    *text = (struct str){text->data + at, text->len - at};
    *ret_value = value;
    return true;
}

/* Returns whether go-yaml reads the text as a time. Examples: 2026-8-21, "2026-8-21 7:05:09.5",
 * 2026-08-21T07:05:09Z or +02:00. */
static bool is_timestamp(struct str text)
{
    if (count_digits(text, 0) != 4)
        return false;
    int year = 0, month, day, field;
    for (int i = 0; i < 4; i++)
        year = year * 10 + (text.data[i] - '0');
    text = (struct str){text.data + 4, text.len - 4};
    if (!cut_field(&text, '-', 1, 12, &month) || !cut_field(&text, '-', 1, 31, &day))
        return false;
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    bool short_month = month == 4 || month == 6 || month == 9 || month == 11;
    if (day > (month == 2 ? 28 + leap : short_month ? 30 : 31))
        return false;
    if (text.len == 0)
        return true;
    char mark = text.data[0];
    if ((mark != 'T' && mark != 't' && mark != ' ') || !cut_field(&text, mark, 0, 23, &field) ||
        !cut_field(&text, ':', 0, 59, &field) || !cut_field(&text, ':', 0, 59, &field))
        return false;
    size_t fraction = text.len && text.data[0] == '.' ? 1 + count_digits(text, 1) : 0;
    text = (struct str){text.data + fraction, text.len - fraction};
    if (mark == ' ')
        return text.len == 0;
    if (str_is(text, "Z"))
        return true;
    return text.len == 6 && (text.data[0] == '+' || text.data[0] == '-') &&
           cut_field(&text, text.data[0], 0, 24, &field) && cut_field(&text, ':', 0, 60, &field) &&
           text.len == 0;
}

bool yaml_is_ambiguous(struct str text)
{
    return yaml_resolve(text).meaning != YAML_STRING || is_base60(text) || is_timestamp(text);
}
