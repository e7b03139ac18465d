/* json.h - JSON (RFC 8259) to documents and back, and a streaming writer for lists too large for a tree.
 *
 * This is our own code rather than a library, because the core reads documents from the log: it needs places
 * for messages, bounded memory, refusal of duplicate keys, and no hidden randomness. Numbers without fraction
 * or exponent that fit int64_t are DOC_INT, all others DOC_FLOAT with their text kept.
 */
#ifndef PHX_DOC_JSON_H
#define PHX_DOC_JSON_H

#include "doc/doc.h"
#include "base/error.h"

enum { JSON_DEPTH_MAX = 64 };

/* Parses exactly one value (white space around it allowed). Strict: UTF-8, no duplicate keys, no trailing
 * text, depth at most JSON_DEPTH_MAX, memory within arena->limit_bytes. Returns 0, or ERROR_INVALID or
 * ERROR_LIMIT with "LINE:COLUMN: why". */
int json_parse(struct arena *arena, struct str text, struct doc **ret_doc, struct error *error);
/* As json_parse, but NaN, Infinity and -Infinity, which Python's json module writes, become null. */
int json_parse_python(struct arena *arena, struct str text, struct doc **ret_doc, struct error *error);
/* As json_parse, for a text of up to `count_max` values one after the other, which become an array. */
int json_parse_all(struct arena *arena, struct str text, size_t count_max, struct doc **ret_array,
                   struct error *error);

void json_write(struct buf *out, const struct doc *doc); /* compact, members in order */
/* Writes with 4 spaces a level and a final newline, as kubectl -o json. */
void json_write_pretty(struct buf *out, const struct doc *doc);
void json_write_str(struct buf *out, struct str s); /* quoted and escaped; invalid UTF-8 becomes U+FFFD */

void json_write_float(struct buf *out, double value); /* shortest exact text; null for inf and nan */

/* A streaming writer: adds the commas itself. Nesting is checked; ending the last level leaves one value.
 * Zeroed but for `out`, it is ready for use. */
struct json_writer {
    struct buf *out;
    uint64_t has_items; /* one bit a level */
    int depth;
    bool after_key;
    uint64_t is_object; /* one bit a level */
};
void json_begin_object(struct json_writer *writer);
void json_begin_array(struct json_writer *writer);
void json_end_object(struct json_writer *writer);
void json_end_array(struct json_writer *writer);
void json_key(struct json_writer *writer, const char *key);
void json_key_str(struct json_writer *writer, struct str key);
void json_put_str(struct json_writer *writer, struct str value);
void json_put_text(struct json_writer *writer, const char *value);
void json_put_int(struct json_writer *writer, int64_t value);
void json_put_bool(struct json_writer *writer, bool value);
void json_put_null(struct json_writer *writer);
void json_put_float(struct json_writer *writer, double value); /* as json_write_float */
/* Writes value / 10^decimals, exactly; decimals is 0 to 18. */
void json_put_fixed(struct json_writer *writer, int64_t value, int decimals);
void json_put_doc(struct json_writer *writer, const struct doc *doc);
void json_put_raw(struct json_writer *writer, struct str json); /* `json` must be one whole value */
/* Write a key and its value in one call. */
void json_pair_str(struct json_writer *writer, const char *key, struct str value);
void json_pair_text(struct json_writer *writer, const char *key, const char *value);
void json_pair_int(struct json_writer *writer, const char *key, int64_t value);
void json_pair_float(struct json_writer *writer, const char *key, double value); /* as json_write_float */
void json_pair_bool(struct json_writer *writer, const char *key, bool value);

#endif
