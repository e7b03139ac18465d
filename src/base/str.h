/* str.h - string views that carry their length, and a growable byte buffer.
 *
 * `struct str` never owns and need not be NUL-terminated. `struct buf` owns heap memory until buf_done(); its
 * bytes are always followed by a NUL that is not counted. Memory exhaustion aborts (we run with fixed limits,
 * see core/words/limits.h).
 */
#ifndef PHX_BASE_STR_H
#define PHX_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *data; /* may be NULL when len is 0 */
    size_t len;
};

#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1})
#define STR_FORMAT   "%.*s"
#define STR_ARG(s)   (int)(s).len, (s).data

static inline struct str str_from(const char *text)
{
    return (struct str){text, text ? strlen(text) : 0};
}

static inline bool str_equal(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline bool str_is(struct str a, const char *text)
{
    return str_equal(a, str_from(text));
}

int str_compare(struct str a, struct str b); /* bytewise, shorter first; <0, 0, >0 */
bool str_starts(struct str a, struct str prefix);
bool str_ends(struct str a, struct str suffix);
/* Cuts at the first `separator`: *ret_head is the part before it, *ret_tail the part after it. Returns false,
 * with both untouched, if it does not occur. */
bool str_cut(struct str a, char separator, struct str *ret_head, struct str *ret_tail);
struct str str_trim(struct str a); /* without ASCII white space at both ends */
/* Parses the whole string as a strict decimal number. Returns false if it is none, or is outside min..max. */
bool str_to_i64(struct str a, int64_t min, int64_t max, int64_t *ret_value);
/* Takes `before` and a number off the front of *text: "rank-12.shard" is "rank-", 12, and ".shard", which
 * stays in *text. Returns false, with both untouched, if *text does not begin with `before` and a number from
 * 0 to `max` without a sign. */
bool str_take_number(struct str *text, const char *before, int64_t max, int64_t *ret_value);
/* Returns the length of the well-formed UTF-8 character at `data` (1 to 4 bytes), or 0 if there is none
 * within `left` bytes. */
size_t str_utf8_len(const char *data, size_t left);
/* Returns at most the first `max` bytes, cut at a character's end, so that the text stays UTF-8. */
struct str str_head_utf8(struct str a, size_t max);
/* Undoes the octal escapes of proc(5) in place: "a\\040b" becomes "a b". Other backslashes stay. */
void str_undo_octal(char *text);
bool str_is_utf8(struct str a); /* well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms) */

/* Return a number in decimal, as a view into `text`; for names, where printf would be most of the cost. */
enum { DECIMAL_TEXT_MAX = 21 };
struct str str_decimal(int64_t value, char text[DECIMAL_TEXT_MAX]);
struct str str_decimal_unsigned(uint64_t value, char text[DECIMAL_TEXT_MAX]);

struct buf {
    char *data; /* NUL-terminated when not NULL */
    size_t len, cap;
};

/* Makes space for `extra` bytes after the content, and a NUL. */
void buf_reserve(struct buf *buf, size_t extra);
void buf_add_slowly(struct buf *buf, const void *data, size_t len); /* private: for lack of space */
static inline void buf_add(struct buf *buf, const void *data, size_t len)
{
    if (!buf->data || len >= buf->cap - buf->len) {
        buf_add_slowly(buf, data, len);
        return;
    }
    if (len)
        memcpy(buf->data + buf->len, data, len);
    buf->len += len;
    buf->data[buf->len] = 0;
}
static inline void buf_add_str(struct buf *buf, struct str s)
{
    buf_add(buf, s.data, s.len);
}
static inline void buf_add_char(struct buf *buf, char c)
{
    buf_add(buf, &c, 1);
}
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *buf, const char *format, va_list args);
void buf_drop_front(struct buf *buf, size_t len); /* forgets the first `len` bytes */
static inline void buf_clear(struct buf *buf)
{
    buf->len = 0;
    if (buf->data)
        buf->data[0] = 0;
}
static inline struct str buf_str(const struct buf *buf)
{
    return (struct str){buf->data, buf->len};
}
void buf_done(struct buf *buf); /* frees the memory; the buf is empty and usable again */
#define BUF_CLEANUP __attribute__((cleanup(buf_done)))

#endif
