#include "doc/json.h"

#include <math.h>
#include <stdlib.h>

#include "base/check.h"

/* Strings are decoded in place, in the arena's own copy of the text: a decoded one is never longer. */
struct reader {
    struct arena *arena;
    char *data;
    size_t len, at;
    size_t line_start; /* where the current line begins */
    size_t
        /* Bytes since line_start that do not begin a character, so that columns count characters. */
        continuation;
    uint32_t line;
    int depth;
    bool python; /* Python's words for floats that are not finite become null */
    struct error *error;
};

static uint32_t column(const struct reader *reader)
{
    return (uint32_t)(reader->at - reader->line_start - reader->continuation + 1);
}

/* Fails at the current place. */
static int fail(struct reader *reader, const char *why)
{
    return error_set(reader->error, ERROR_INVALID, "%u:%u: %s", reader->line, column(reader), why);
}

static int fail_memory(struct reader *reader)
{
    return error_set(reader->error, ERROR_LIMIT,
                     "%u:%u: the text needs more than the %zu bytes of memory allowed", reader->line,
                     column(reader), reader->arena->limit_bytes);
}

static int peek(const struct reader *reader)
{
    return reader->at < reader->len ? (unsigned char)reader->data[reader->at] : -1;
}

static void skip_space(struct reader *reader)
{
    for (; reader->at < reader->len; reader->at++) {
        char c = reader->data[reader->at];
        if (c == '\n') {
            reader->line++;
            reader->line_start = reader->at + 1;
            reader->continuation = 0;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            break;
        }
    }
}

static bool read_hex4(const char *data, size_t left, uint32_t *ret_value)
{
    uint32_t value = 0;
    if (left < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = data[i];
        if (c >= '0' && c <= '9')
            value = value << 4 | (uint32_t)(c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            value = value << 4 | (uint32_t)((c | 0x20) - 'a' + 10);
        else
            return false;
    }
    *ret_value = value;
    return true;
}

/* Reads the part after "\u" at `data`: a code point and its length. Returns NULL, or why it is refused. */
static const char *read_code_point(const char *data, size_t left, uint32_t *ret_code, size_t *ret_size)
{
    uint32_t high, low;
    if (!read_hex4(data, left, &high))
        return "\\u needs four hexadecimal digits";
    if (high == 0)
        return "a string may not contain NUL";
    if (high >= 0xdc00 && high <= 0xdfff)
        return "a low surrogate without its high one";
    if (high < 0xd800 || high > 0xdbff) {
        *ret_code = high;
        *ret_size = 4;
        return NULL;
    }
    if (left < 10 || data[4] != '\\' || data[5] != 'u' || !read_hex4(data + 6, left - 6, &low) ||
        low < 0xdc00 || low > 0xdfff)
        return "a high surrogate without its low one";
    *ret_code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    *ret_size = 10;
    return NULL;
}

static size_t encode_utf8(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = size - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(lead[size] | code);
    return size;
}

static char simple_escape(char c)
{
    switch (c) {
    case '"':
    case '\\':
    case '/':
        return c;
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return 0;
    }
}

/* Moves over one character or escape of a string; the caller handles the closing quote. */
static int skip_char(struct reader *reader)
{
    const char *data = reader->data + reader->at;
    size_t left = reader->len - reader->at;
    if ((unsigned char)data[0] < 0x20)
        return fail(reader, "control characters in a string must be escaped");
    if (data[0] == '\\') {
        if (left >= 2 && simple_escape(data[1])) {
            reader->at += 2;
            return 0;
        }
        if (left < 2 || data[1] != 'u')
            return fail(reader, "no such escape in a string");
        uint32_t code;
        size_t size;
        const char *why = read_code_point(data + 2, left - 2, &code, &size);
        if (why)
            return fail(reader, why);
        reader->at += 2 + size;
        return 0;
    }
    size_t size = str_utf8_len(data, left);
    if (size == 0)
        return fail(reader, "the text is not UTF-8");
    reader->at += size;
    reader->continuation += size - 1;
    return 0;
}

/* Decodes the string's content, which skip_char has checked, to `out`, which may be the same place: an escape
 * is never shorter than its character. */
static size_t decode(struct str raw, char *out)
{
    size_t len = 0;
    for (size_t at = 0; at < raw.len;) {
        if (raw.data[at] != '\\') {
            out[len++] = raw.data[at++];
        } else if (raw.data[at + 1] != 'u') {
            out[len++] = simple_escape(raw.data[at + 1]);
            at += 2;
        } else {
            uint32_t code = 0;
            size_t size = 0;
            CHECK(!read_code_point(raw.data + at + 2, raw.len - at - 2, &code, &size));
            len += encode_utf8(code, out + len);
            at += 2 + size;
        }
    }
    return len;
}

/* Moves over the one-byte characters of a string that are not escaped. */
static void skip_plain(struct reader *reader)
{
    static const bool special[256] = {
        [0 ... 0x1f] = true, ['"'] = true, ['\\'] = true, [0x80 ... 0xff] = true};
    size_t at = reader->at;
    while (at < reader->len && !special[(unsigned char)reader->data[at]])
        at++;
    reader->at = at;
}

static int parse_string(struct reader *reader, struct str *ret_text)
{
    uint32_t start_column = column(reader);
    size_t start = ++reader->at;
    bool escaped = false;
    for (;;) {
        skip_plain(reader);
        int c = peek(reader);
        if (c < 0)
            return error_set(reader->error, ERROR_INVALID, "%u:%u: the string that starts here is not closed",
                             reader->line, start_column);
        if (c == '"')
            break;
        escaped |= c == '\\';
        int code = skip_char(reader);
        if (code < 0)
            return code;
    }
    char *text = reader->data + start;
    size_t len = reader->at - start;
    if (escaped)
        len = decode((struct str){text, len}, text);
    text[len] = 0; /* in place of the closing quote, or before it */
    reader->at++;
    *ret_text = (struct str){text, len};
    return 0;
}

static bool skip_digits(struct reader *reader)
{
    size_t start = reader->at;
    while (peek(reader) >= '0' && peek(reader) <= '9')
        reader->at++;
    return reader->at > start;
}

/* Moves over number = [-] (0 | 1-9 digits) [. digits] [e [+-] digits]; *ret_whole is true without the last
 * two parts. */
static int skip_number(struct reader *reader, bool *ret_whole)
{
    *ret_whole = true;
    if (peek(reader) == '-')
        reader->at++;
    bool zero = peek(reader) == '0';
    size_t first = reader->at;
    if (!skip_digits(reader))
        return fail(reader, "a number needs a digit here");
    if (zero && reader->at > first + 1) {
        reader->at = first;
        return fail(reader, "a number may not start with 0");
    }
    if (peek(reader) == '.') {
        *ret_whole = false;
        reader->at++;
        if (!skip_digits(reader))
            return fail(reader, "a number needs a digit here");
    }
    if (peek(reader) == 'e' || peek(reader) == 'E') {
        *ret_whole = false;
        reader->at++;
        if (peek(reader) == '+' || peek(reader) == '-')
            reader->at++;
        if (!skip_digits(reader))
            return fail(reader, "a number needs a digit here");
    }
    return 0;
}

static int parse_number(struct reader *reader, struct doc *node)
{
    struct reader start = *reader;
    bool whole;
    int code = skip_number(reader, &whole);
    if (code < 0)
        return code;
    struct str raw = {reader->data + start.at, reader->at - start.at};
    if (whole && str_to_i64(raw, INT64_MIN, INT64_MAX, &node->integer)) {
        node->kind = DOC_INT;
        return 0;
    }
    char *text = arena_try_alloc(reader->arena, raw.len + 1);
    if (!text)
        return fail_memory(reader);
    memcpy(text, raw.data, raw.len);
    node->kind = DOC_FLOAT;
    node->text = (struct str){text, raw.len};
    node->number = strtod(text, NULL);
    return isfinite(node->number) ? 0 : fail(&start, "the number is too large");
}

static int parse_word(struct reader *reader, struct doc *node)
{
    static const struct {
        struct str word;
        enum doc_kind kind;
        bool boolean;
    } words[] = {
        {STR("null"), DOC_NULL, false}, {STR("true"), DOC_BOOL, true}, {STR("false"), DOC_BOOL, false}};
    struct str rest = {reader->data + reader->at, reader->len - reader->at};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (str_starts(rest, words[i].word)) {
            node->kind = words[i].kind;
            node->boolean = words[i].boolean;
            reader->at += words[i].word.len;
            return 0;
        }
    }
    return fail(reader,
                rest.len ? "a JSON value is expected here" : "the text ends where a value is expected");
}

static int parse_value(struct reader *reader, struct doc **ret_node);

static int parse_array(struct reader *reader, struct doc *node)
{
    node->kind = DOC_ARRAY;
    reader->at++;
    skip_space(reader);
    if (peek(reader) == ']') {
        reader->at++;
        return 0;
    }
    for (;;) {
        struct doc *item = NULL;
        int code = parse_value(reader, &item);
        if (code < 0)
            return code;
        if (!doc_try_push(reader->arena, node, item))
            return fail_memory(reader);
        skip_space(reader);
        int c = peek(reader);
        if (c != ',' && c != ']')
            return fail(reader, "',' or ']' is expected here");
        reader->at++;
        if (c == ']')
            return 0;
        skip_space(reader);
    }
}

static int parse_member(struct reader *reader, struct doc *object)
{
    struct doc_member member = {.line = reader->line, .column = column(reader)};
    if (peek(reader) != '"')
        return fail(reader, "a key in double quotes is expected here");
    int code = parse_string(reader, &member.key);
    if (code < 0)
        return code;
    skip_space(reader);
    if (peek(reader) != ':')
        return fail(reader, "':' is expected here");
    reader->at++;
    skip_space(reader);
    code = parse_value(reader, &member.value);
    if (code < 0)
        return code;
    return doc_try_add(reader->arena, object, member) ? 0 : fail_memory(reader);
}

static int parse_object(struct reader *reader, struct doc *node)
{
    node->kind = DOC_OBJECT;
    reader->at++;
    skip_space(reader);
    if (peek(reader) == '}') {
        reader->at++;
        return 0;
    }
    for (;;) {
        int code = parse_member(reader, node);
        if (code < 0)
            return code;
        skip_space(reader);
        int c = peek(reader);
        if (c != ',' && c != '}')
            return fail(reader, "',' or '}' is expected here");
        reader->at++;
        if (c == '}')
            break;
        skip_space(reader);
    }
    const struct doc_member *second, *first;
    if (node->object.len > (size_t)__builtin_popcountll(node->keys) && doc_duplicate(node, &second, &first))
        return error_set(reader->error, ERROR_INVALID, "%u:%u: the key \"%.*s\" is already at %u:%u",
                         second->line, second->column, (int)(second->key.len < 128 ? second->key.len : 128),
                         second->key.data, first->line, first->column);
    return 0;
}

/* Moves over NaN, Infinity or -Infinity. Returns false if the text has none here. */
static bool skip_not_finite(struct reader *reader)
{
    static const struct str words[] = {STR("NaN"), STR("Infinity"), STR("-Infinity")};
    struct str rest = {reader->data + reader->at, reader->len - reader->at};
    for (size_t i = 0; reader->python && i < sizeof words / sizeof *words; i++) {
        if (!str_starts(rest, words[i]))
            continue;
        reader->at += words[i].len;
        return true;
    }
    return false;
}

static int parse_value(struct reader *reader, struct doc **ret_node)
{
    struct doc *node = doc_try_new(reader->arena, DOC_NULL);
    if (!node)
        return fail_memory(reader);
    node->line = reader->line;
    node->column = column(reader);
    int c = peek(reader), code;
    if (c == '{' || c == '[') {
        if (reader->depth == JSON_DEPTH_MAX)
            return error_set(reader->error, ERROR_LIMIT, "%u:%u: nested deeper than %d levels", reader->line,
                             column(reader), JSON_DEPTH_MAX);
        reader->depth++;
        code = c == '{' ? parse_object(reader, node) : parse_array(reader, node);
        reader->depth--;
    } else if (c == '"') {
        node->kind = DOC_STRING;
        code = parse_string(reader, &node->text);
    } else if (skip_not_finite(reader)) {
        code = 0; /* null */
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        code = parse_number(reader, node);
    } else {
        code = parse_word(reader, node);
    }
    if (code < 0)
        return code;
    *ret_node = node;
    return 0;
}

static int parse_one(struct reader *reader, struct doc **ret_doc)
{
    skip_space(reader);
    struct doc *doc = NULL;
    int code = parse_value(reader, &doc);
    if (code < 0)
        return code;
    skip_space(reader);
    if (reader->at < reader->len)
        return fail(reader, "nothing may follow the value");
    *ret_doc = doc;
    return 0;
}

/* Begins to read the text, of which the arena gets a copy. */
static int begin(struct reader *reader, struct arena *arena, struct str text, struct error *error)
{
    *reader = (struct reader){.arena = arena, .len = text.len, .line = 1, .error = error};
    reader->data = arena_try_alloc(arena, text.len + 1);
    if (!reader->data)
        return fail_memory(reader);
    mem_copy(reader->data, text.data, text.len);
    return 0;
}

int json_parse(struct arena *arena, struct str text, struct doc **ret_doc, struct error *error)
{
    struct reader reader;
    int code = begin(&reader, arena, text, error);
    return code < 0 ? code : parse_one(&reader, ret_doc);
}

int json_parse_python(struct arena *arena, struct str text, struct doc **ret_doc, struct error *error)
{
    struct reader reader;
    int code = begin(&reader, arena, text, error);
    reader.python = true;
    return code < 0 ? code : parse_one(&reader, ret_doc);
}

int json_parse_all(struct arena *arena, struct str text, size_t count_max, struct doc **ret_array,
                   struct error *error)
{
    struct reader reader;
    int code = begin(&reader, arena, text, error);
    if (code < 0)
        return code;
    struct doc *array = doc_try_new(arena, DOC_ARRAY);
    if (!array)
        return fail_memory(&reader);
    for (skip_space(&reader); reader.at < reader.len; skip_space(&reader)) {
        struct doc *doc = NULL;
        if (array->array.len == count_max)
            return error_set(error, ERROR_LIMIT, "%u:%u: more than %zu documents", reader.line,
                             column(&reader), count_max);
        code = parse_value(&reader, &doc);
        if (code < 0)
            return code;
        if (!doc_try_push(arena, array, doc))
            return fail_memory(&reader);
    }
    *ret_array = array;
    return 0;
}
