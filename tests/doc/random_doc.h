/* random_doc.h - random documents for property tests: every kind, nesting, and strings that formats stumble
 * over. */
#ifndef PHX_TESTS_DOC_RANDOM_DOC_H
#define PHX_TESTS_DOC_RANDOM_DOC_H

#include <stdio.h>

#include "doc/doc.h"
#include "doc/json.h"
#include "base/rng.h"

/* Texts that formats stumble over. */
/* clang-format off */
static const char *const random_parts[] = {
    "a", "b", "Z", "0", "1", "9", " ", " ", "\n", "\n", "\t", "\r", ":", ": ", "#", " #", "-", "- ", "?",
    "? ", "'", "\"", "\\", "{", "}", "[", "]", ",", "&", "*", "!", "|", ">", "%", "@", "`", "~", "null",
    "true", "no", "y", "0x1f", "0o7", "1e3", ".5", "_", ".inf", "<<", "=", "---", "...", "+", ".", "12:30",
    "2024-1-2", "<&>", "\x01", "\x7f", "\xc2\x85", "\xc2\xa0", "\xe2\x80\xa8", "\xe2\x80\xa9",
    "\xef\xbb\xbf", "\xef\xbf\xbf", "\xc3\xa9", "\xf0\x9f\x98\x80",
    "word word word word word word word word word word word word word word word word word word word"
};
/* clang-format on */

static inline struct str random_string(struct arena *arena, struct rng *rng)
{
    struct buf text = {0};
    for (uint64_t count = rng_below(rng, rng_chance(rng, 300000) ? 12 : 4); count; count--)
        buf_add_str(&text,
                    str_from(random_parts[rng_below(rng, sizeof random_parts / sizeof *random_parts)]));
    struct str copy = arena_str(arena, buf_str(&text));
    buf_done(&text);
    return copy;
}

static inline struct doc *random_float(struct arena *arena, struct rng *rng)
{
    static const char *const written[] = {"1.50", "-0.0", "1E5", "2e-3", "123456789012345678901234567890",
                                          "1e+2"};
    struct doc *node = doc_new(arena, DOC_FLOAT);
    if (rng_chance(rng, 500000)) {
        struct error error;
        if (json_parse(arena, str_from(written[rng_below(rng, 6)]), &node, &error) < 0)
            return NULL;
    } else {
        node->number =
            ((double)rng_range(rng, -1000000, 1000000) + rng_unit(rng)) * (rng_chance(rng, 1000) ? 1e300 : 1);
    }
    return node;
}

static inline struct doc *random_doc(struct arena *arena, struct rng *rng, int depth)
{
    struct doc *node;
    uint64_t kind = rng_below(rng, depth > 0 ? 9 : 6);
    if (kind < 2)
        return doc_new_str(arena, random_string(arena, rng));
    switch (kind) {
    case 2:
        return doc_new(arena, DOC_NULL);
    case 3:
        return doc_new_bool(arena, rng_chance(rng, 500000));
    case 4:
        return doc_new_int(arena, (int64_t)rng_next(rng) >> rng_below(rng, 64));
    case 5:
        return random_float(arena, rng);
    case 6:
        node = doc_new(arena, DOC_ARRAY);
        for (uint64_t count = rng_below(rng, 5); count; count--)
            doc_push(arena, node, random_doc(arena, rng, depth - 1));
        return node;
    default:
        node = doc_new(arena, DOC_OBJECT);
        for (uint64_t count = rng_below(rng, rng_chance(rng, 50000) ? 40 : 5); count; count--)
            doc_set(arena, node, random_string(arena, rng), random_doc(arena, rng, depth - 1));
        return node;
    }
}

#endif
