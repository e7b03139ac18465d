#include "base/str.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/check.h"

int str_compare(struct str a, struct str b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common ? memcmp(a.data, b.data, common) : 0;
    if (order)
        return order;
    return (a.len > b.len) - (a.len < b.len);
}

bool str_starts(struct str a, struct str prefix)
{
    return a.len >= prefix.len && (prefix.len == 0 || memcmp(a.data, prefix.data, prefix.len) == 0);
}

bool str_ends(struct str a, struct str suffix)
{
    return a.len >= suffix.len &&
           (suffix.len == 0 || memcmp(a.data + a.len - suffix.len, suffix.data, suffix.len) == 0);
}

bool str_cut(struct str a, char separator, struct str *ret_head, struct str *ret_tail)
{
    const char *at = a.len ? memchr(a.data, separator, a.len) : NULL;
    if (!at)
        return false;
    size_t head_len = (size_t)(at - a.data);
    *ret_head = (struct str){a.data, head_len};
    *ret_tail = (struct str){at + 1, a.len - head_len - 1};
    return true;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str a)
{
    while (a.len && is_space(a.data[0])) {
        a.data++;
        a.len--;
    }
    while (a.len && is_space(a.data[a.len - 1]))
        a.len--;
    return a;
}

bool str_to_i64(struct str a, int64_t min, int64_t max, int64_t *ret_value)
{
    bool negative = a.len && a.data[0] == '-';
    size_t at = negative;
    if (at == a.len)
        return false;
    /* Collected as a negative number, because the negative range is the larger one. */
    int64_t value = 0;
    for (; at < a.len; at++) {
        if (a.data[at] < '0' || a.data[at] > '9')
            return false;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, a.data[at] - '0', &value))
            return false;
    }
    if (!negative && __builtin_sub_overflow((int64_t)0, value, &value))
        return false;
    if (value < min || value > max)
        return false;
    *ret_value = value;
    return true;
}

bool str_take_number(struct str *text, const char *before, int64_t max, int64_t *ret_value)
{
    struct str start = str_from(before);
    if (!str_starts(*text, start))
        return false;
    struct str rest = {text->data + start.len, text->len - start.len};
    size_t digits = 0;
    while (digits < rest.len && rest.data[digits] >= '0' && rest.data[digits] <= '9')
        digits++;
    if (!str_to_i64((struct str){rest.data, digits}, 0, max, ret_value))
        return false;
    *text = (struct str){rest.data + digits, rest.len - digits};
    return true;
}

size_t str_utf8_len(const char *data, size_t left)
{
    const unsigned char *p = (const unsigned char *)data;
    if (left == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    /* The second byte's range has all the exceptions (RFC 3629, section 4). */
    unsigned char low = 0x80, high = 0xbf;
    size_t size;
    if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        size = 2;
    } else if (p[0] >= 0xe0 && p[0] <= 0xef) {
        size = 3;
        low = p[0] == 0xe0 ? 0xa0 : low;
        high = p[0] == 0xed ? 0x9f : high;
    } else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        size = 4;
        low = p[0] == 0xf0 ? 0x90 : low;
        high = p[0] == 0xf4 ? 0x8f : high;
    } else {
        return 0;
    }
    if (left < size || p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < size; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    }
    return size;
}

struct str str_head_utf8(struct str a, size_t max)
{
    if (a.len <= max)
        return a;
    a.len = max;
    while (a.len > 0 && ((unsigned char)a.data[a.len] & 0xc0) == 0x80)
        a.len--;
    return a;
}

bool str_is_utf8(struct str a)
{
    for (size_t at = 0; at < a.len;) {
        size_t size = str_utf8_len(a.data + at, a.len - at);
        if (size == 0)
            return false;
        at += size;
    }
    return true;
}

struct str str_decimal_unsigned(uint64_t value, char text[DECIMAL_TEXT_MAX])
{
    size_t at = DECIMAL_TEXT_MAX;
    do {
        text[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    return (struct str){text + at, DECIMAL_TEXT_MAX - at};
}

struct str str_decimal(int64_t value, char text[DECIMAL_TEXT_MAX])
{
    struct str digits = str_decimal_unsigned(value < 0 ? -(uint64_t)value : (uint64_t)value, text);
    if (value >= 0)
        return digits;
    text[DECIMAL_TEXT_MAX - digits.len - 1] = '-';
    return (struct str){digits.data - 1, digits.len + 1};
}

static bool is_octal(char c, char max)
{
    return c >= '0' && c <= max;
}

void str_undo_octal(char *text)
{
    char *to = text;
    for (const char *at = text; *at; to++) {
        bool escape = at[0] == '\\' && is_octal(at[1], '3') && is_octal(at[2], '7') && is_octal(at[3], '7');
        *to = escape ? (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0')) : *at;
        at += escape ? 4 : 1;
    }
    *to = 0;
}

void buf_reserve(struct buf *buf, size_t extra)
{
    size_t need;
    CHECK(!__builtin_add_overflow(buf->len, extra, &need) && need < SIZE_MAX / 2);
    if (buf->data && need < buf->cap)
        return;
    size_t cap = buf->cap ? buf->cap : 64;
    while (cap <= need)
        cap *= 2;
    buf->data = mem_realloc(buf->data, cap);
    buf->cap = cap;
    buf->data[buf->len] = 0;
}

void buf_add_slowly(struct buf *buf, const void *data, size_t len)
{
    buf_reserve(buf, len);
    if (len)
        memcpy(buf->data + buf->len, data, len);
    buf->len += len;
    buf->data[buf->len] = 0;
}

/* Appends the next argument by the conversion at *format, just after its '%', and moves *format past it.
 * Returns false for any other conversion. */
static bool add_conversion(struct buf *buf, const char **format, va_list *args)
{
    _Static_assert(sizeof(size_t) == sizeof(long) && sizeof(long) == sizeof(long long),
                   "lu, llu, zu: 64 bits");
    char digits[DECIMAL_TEXT_MAX];
    const char *at = *format, *text;
    bool wide = at[0] == 'l' || at[0] == 'z';
    at += wide + (at[0] == 'l' && at[1] == 'l');
    if (strncmp(at, ".*s", 3) == 0) {
        int len = va_arg(*args, int);
        text = va_arg(*args, const char *);
        if (len < 0 || (len > 0 && !text))
            return false;
        buf_add(buf, text, len > 0 ? strnlen(text, (size_t)len) : 0);
        at += 2;
    } else if (*at == 's') {
        text = va_arg(*args, const char *);
        if (!text)
            return false;
        buf_add_str(buf, str_from(text));
    } else if (*at == 'd') {
        buf_add_str(buf, str_decimal(wide ? va_arg(*args, long) : va_arg(*args, int), digits));
    } else if (*at == 'u') {
        uint64_t value = wide ? va_arg(*args, unsigned long) : va_arg(*args, unsigned);
        buf_add_str(buf, str_decimal_unsigned(value, digits));
    } else if (*at == '%') {
        buf_add_char(buf, '%');
    } else {
        return false;
    }
    *format = at + 1;
    return true;
}

/* Formats strings and whole numbers, of which nearly all texts consist, without printf, which takes several
 * times as long. Returns false, perhaps after a part of the text, if the format has another conversion. */
static bool add_plain_format(struct buf *buf, const char *format, va_list *args)
{
    for (const char *at; (at = strchr(format, '%'));) {
        buf_add(buf, format, (size_t)(at - format));
        format = at + 1;
        if (!add_conversion(buf, &format, args))
            return false;
    }
    buf_add_str(buf, str_from(format));
    return true;
}

void buf_vprintf(struct buf *buf, const char *format, va_list args)
{
    va_list again;
    size_t start = buf->len;
    buf_reserve(buf, 64);
    va_copy(again, args);
    bool plain = add_plain_format(buf, format, &again);
    va_end(again);
    if (plain)
        return;
    buf->len = start;
    va_copy(again, args);
    int need = vsnprintf(buf->data + buf->len, buf->cap - buf->len, format, args);
    CHECK(need >= 0);
    if ((size_t)need >= buf->cap - buf->len) {
        buf_reserve(buf, (size_t)need);
        vsnprintf(buf->data + buf->len, buf->cap - buf->len, format, again);
    }
    va_end(again);
    buf->len += (size_t)need;
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    buf_vprintf(buf, format, args);
    va_end(args);
}

void buf_drop_front(struct buf *buf, size_t len)
{
    CHECK(len <= buf->len);
    if (len == 0)
        return;
    memmove(buf->data, buf->data + len, buf->len - len + 1);
    buf->len -= len;
}

void buf_done(struct buf *buf)
{
    mem_free(buf->data);
    *buf = (struct buf){0};
}
