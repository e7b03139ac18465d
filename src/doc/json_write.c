#include "doc/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "doc/pack.h"

#define EVERY_BYTE(value) (UINT64_C(0x0101010101010101) * (value))

/* Returns whether a byte of the word is 0. */
static bool has_zero(uint64_t word)
{
    return (word - EVERY_BYTE(1)) & ~word & EVERY_BYTE(0x80);
}

/* Returns whether all eight bytes need no escape. */
static bool is_plain_word(const char *data)
{
    uint64_t word;
    memcpy(&word, data, sizeof word);
    uint64_t controls = (word - EVERY_BYTE(0x20)) & ~word & EVERY_BYTE(0x80);
    return !(word & EVERY_BYTE(0x80)) && !controls && !has_zero(word ^ EVERY_BYTE('"')) &&
           !has_zero(word ^ EVERY_BYTE('\\'));
}

/* Returns how many bytes from `at` on need no escape. */
static size_t plain_run(struct str s, size_t at)
{
    size_t start = at;
    while (s.len - at >= 8 && is_plain_word(s.data + at))
        at += 8;
    if (at > start && at < s.len && s.len - at < 8 && is_plain_word(s.data + s.len - 8))
        return s.len - start; /* the last word overlaps the one before it */
    while (at < s.len) {
        unsigned char c = (unsigned char)s.data[at];
        if (c < 0x20 || c == '"' || c == '\\' || c >= 0x80)
            break;
        at++;
    }
    return at - start;
}

static void write_escaped(struct buf *out, unsigned char c)
{
    switch (c) {
    case '"':
    case '\\':
        buf_add_char(out, '\\');
        buf_add_char(out, (char)c);
        break;
    case '\b':
        buf_add(out, "\\b", 2);
        break;
    case '\f':
        buf_add(out, "\\f", 2);
        break;
    case '\n':
        buf_add(out, "\\n", 2);
        break;
    case '\r':
        buf_add(out, "\\r", 2);
        break;
    case '\t':
        buf_add(out, "\\t", 2);
        break;
    default:
        buf_printf(out, "\\u%04x", c);
    }
}

/* Writes a text that needs escapes from `at` on. */
static void write_rest(struct buf *out, struct str s, size_t at)
{
    while (at < s.len) {
        size_t run = plain_run(s, at);
        if (run) {
            buf_add(out, s.data + at, run);
            at += run;
            continue;
        }
        if ((unsigned char)s.data[at] < 0x80) {
            write_escaped(out, (unsigned char)s.data[at++]);
            continue;
        }
        size_t size = str_utf8_len(s.data + at, s.len - at);
        if (size == 0) {
            buf_add(out, "\xef\xbf\xbd", 3);
            at++;
        } else if (size == 3 && (memcmp(s.data + at, "\xe2\x80\xa8", 3) == 0 ||
                                 memcmp(s.data + at, "\xe2\x80\xa9", 3) == 0)) {
            /* Line and paragraph separator end a line in JavaScript, and are escaped as in Go. */
            buf_add(out, s.data[at + 2] == '\xa8' ? "\\u2028" : "\\u2029", 6);
            at += 3;
        } else {
            buf_add(out, s.data + at, size);
            at += size;
        }
    }
}

/* Writes a string; `end` is its closing quotation mark with any text after it. */
static void write_text(struct buf *out, struct str s, struct str end)
{
    size_t run = plain_run(s, 0);
    buf_reserve(out, s.len + 1 + end.len);
    char *to = out->data + out->len;
    *to++ = '"';
    mem_copy(to, s.data, run);
    out->len += run + 1;
    if (run < s.len)
        write_rest(out, s, run);
    buf_add_str(out, end);
}

void json_write_str(struct buf *out, struct str s)
{
    write_text(out, s, STR("\""));
}

void json_write_float(struct buf *out, double value)
{
    if (!isfinite(value)) {
        buf_add(out, "null", 4);
        return;
    }
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    buf_add(out, text, strlen(text));
    if (!strpbrk(text, ".e"))
        buf_add(out, ".0", 2); /* a reader shall see a float again */
}

static void write_int(struct buf *out, int64_t value)
{
    char text[DECIMAL_TEXT_MAX];
    buf_add_str(out, str_decimal(value, text));
}

/* Begins a new line at `depth`; compact texts (depth < 0) have none. */
static void write_break(struct buf *out, int depth)
{
    if (depth < 0)
        return;
    buf_add_char(out, '\n');
    for (int i = 0; i < depth; i++)
        buf_add(out, "    ", 4);
}

static void write_node(struct buf *out, const struct doc *node, int depth);

static void write_packed(struct buf *out, const struct doc *node, int depth)
{
    struct arena arena ARENA_CLEANUP = {0};
    if (depth < 0)
        buf_add_str(out, node->text);
    else
        write_node(out, doc_unpacked(&arena, node), depth);
}

/* Writes a node. `depth` < 0: compact. */
static void write_node(struct buf *out, const struct doc *node, int depth)
{
    int inner = depth < 0 ? -1 : depth + 1;
    switch (node->kind) {
    case DOC_NULL:
        buf_add(out, "null", 4);
        break;
    case DOC_BOOL:
        buf_add_str(out, node->boolean ? STR("true") : STR("false"));
        break;
    case DOC_INT:
        write_int(out, node->integer);
        break;
    case DOC_FLOAT:
        if (node->text.len)
            buf_add_str(out, node->text);
        else
            json_write_float(out, node->number);
        break;
    case DOC_STRING:
        json_write_str(out, node->text);
        break;
    case DOC_ARRAY:
        buf_add_char(out, '[');
        for (size_t i = 0; i < node->array.len; i++) {
            if (i)
                buf_add_char(out, ',');
            write_break(out, inner);
            write_node(out, node->array.items[i], inner);
        }
        if (node->array.len)
            write_break(out, depth);
        buf_add_char(out, ']');
        break;
    case DOC_OBJECT:
        buf_add_char(out, '{');
        for (size_t i = 0; i < node->object.len; i++) {
            if (i)
                buf_add_char(out, ',');
            write_break(out, inner);
            json_write_str(out, node->object.members[i].key);
            buf_add_str(out, depth < 0 ? STR(":") : STR(": "));
            write_node(out, node->object.members[i].value, inner);
        }
        if (node->object.len)
            write_break(out, depth);
        buf_add_char(out, '}');
        break;
    case DOC_PACKED:
        write_packed(out, node, depth);
        break;
    }
}

void json_write(struct buf *out, const struct doc *doc)
{
    write_node(out, doc, -1);
}

void json_write_pretty(struct buf *out, const struct doc *doc)
{
    write_node(out, doc, 0);
    buf_add_char(out, '\n');
}

/* Returns the current level's bit. */
static uint64_t level(const struct json_writer *writer)
{
    return UINT64_C(1) << (writer->depth - 1);
}

static void separate(struct json_writer *writer)
{
    if (writer->has_items & level(writer))
        buf_add_char(writer->out, ',');
    writer->has_items |= level(writer);
}

static void before_value(struct json_writer *writer)
{
    if (writer->depth == 0)
        return;
    if (writer->is_object & level(writer)) {
        CHECK(writer->after_key);
        writer->after_key = false;
    } else {
        separate(writer);
    }
}

static void begin(struct json_writer *writer, bool object)
{
    before_value(writer);
    CHECK(writer->depth < 64);
    writer->depth++;
    writer->has_items &= ~level(writer);
    writer->is_object = object ? writer->is_object | level(writer) : writer->is_object & ~level(writer);
    buf_add_char(writer->out, object ? '{' : '[');
}

static void end(struct json_writer *writer, bool object)
{
    CHECK(writer->depth > 0 && !writer->after_key && !!(writer->is_object & level(writer)) == object);
    writer->depth--;
    buf_add_char(writer->out, object ? '}' : ']');
}

void json_begin_object(struct json_writer *writer)
{
    begin(writer, true);
}

void json_begin_array(struct json_writer *writer)
{
    begin(writer, false);
}

void json_end_object(struct json_writer *writer)
{
    end(writer, true);
}

void json_end_array(struct json_writer *writer)
{
    end(writer, false);
}

void json_key_str(struct json_writer *writer, struct str key)
{
    CHECK(writer->depth > 0 && (writer->is_object & level(writer)) && !writer->after_key);
    separate(writer);
    write_text(writer->out, key, STR("\":"));
    writer->after_key = true;
}

void json_key(struct json_writer *writer, const char *key)
{
    json_key_str(writer, str_from(key));
}

void json_put_str(struct json_writer *writer, struct str value)
{
    before_value(writer);
    json_write_str(writer->out, value);
}

void json_put_text(struct json_writer *writer, const char *value)
{
    json_put_str(writer, str_from(value));
}

void json_put_int(struct json_writer *writer, int64_t value)
{
    before_value(writer);
    write_int(writer->out, value);
}

void json_put_float(struct json_writer *writer, double value)
{
    before_value(writer);
    json_write_float(writer->out, value);
}

void json_put_bool(struct json_writer *writer, bool value)
{
    json_put_raw(writer, value ? STR("true") : STR("false"));
}

void json_put_null(struct json_writer *writer)
{
    json_put_raw(writer, STR("null"));
}

void json_put_fixed(struct json_writer *writer, int64_t value, int decimals)
{
    CHECK(decimals >= 0 && decimals <= 18);
    uint64_t unit = 1, magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
    for (int i = 0; i < decimals; i++)
        unit *= 10;
    before_value(writer);
    buf_printf(writer->out, "%s%llu", value < 0 ? "-" : "", (unsigned long long)(magnitude / unit));
    if (decimals)
        buf_printf(writer->out, ".%0*llu", decimals, (unsigned long long)(magnitude % unit));
}

void json_put_doc(struct json_writer *writer, const struct doc *doc)
{
    before_value(writer);
    json_write(writer->out, doc);
}

void json_put_raw(struct json_writer *writer, struct str json)
{
    before_value(writer);
    buf_add_str(writer->out, json);
}

void json_pair_str(struct json_writer *writer, const char *key, struct str value)
{
    json_key(writer, key);
    json_put_str(writer, value);
}

void json_pair_text(struct json_writer *writer, const char *key, const char *value)
{
    json_key(writer, key);
    json_put_text(writer, value);
}

void json_pair_int(struct json_writer *writer, const char *key, int64_t value)
{
    json_key(writer, key);
    json_put_int(writer, value);
}

void json_pair_float(struct json_writer *writer, const char *key, double value)
{
    json_key(writer, key);
    json_put_float(writer, value);
}

void json_pair_bool(struct json_writer *writer, const char *key, bool value)
{
    json_key(writer, key);
    json_put_bool(writer, value);
}
