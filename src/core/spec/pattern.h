/* pattern.h - regular expressions: a pattern becomes a tree (pattern_parse.c), the tree a program
 * (pattern_emit.c), and the program runs over a text (pattern.c, pattern_capture.c). Private to spec.
 *
 * Syntax: https://github.com/google/re2/wiki/Syntax without Unicode classes (\p) and with ASCII case folding.
 */
#ifndef PHX_CORE_SPEC_PATTERN_H
#define PHX_CORE_SPEC_PATTERN_H

#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"

enum {
    PATTERN_BYTES_MAX = 8192,
    PATTERN_PROGRAM_MAX = 16384, /* instructions, repetitions unfolded */
    PATTERN_REPEAT_MAX = 1000,   /* in {m,n} */
    PATTERN_DEPTH_MAX = 100,     /* groups in groups */
    RUNE_MAX = 0x10ffff,
};

enum pattern_assert {
    ASSERT_TEXT_BEGIN,
    ASSERT_TEXT_END,
    ASSERT_LINE_BEGIN,
    ASSERT_LINE_END,
    ASSERT_WORD_EDGE,
    ASSERT_NO_WORD_EDGE,
};
enum pattern_op { PATTERN_MATCH, PATTERN_SPLIT, PATTERN_JUMP, PATTERN_SET, PATTERN_ASSERT, PATTERN_SAVE };

struct rune_range {
    uint32_t low, high;
};
struct rune_set {
    struct rune_range *ranges; /* sorted, disjoint */
    size_t len;
};
struct pattern_inst {
    enum pattern_op op;
    enum pattern_assert assert;
    uint32_t next, other;       /* other: SPLIT's second branch; SAVE: the slot for the position */
    const struct rune_set *set; /* SET: consumes one rune of the set */
};
struct pattern {
    struct pattern_inst *insts; /* starts at 0 */
    size_t len;
};

enum node_kind { NODE_SET, NODE_ASSERT, NODE_SEQUENCE, NODE_CHOICE, NODE_REPEAT, NODE_GROUP };
struct node {
    /* Children of SEQUENCE and CHOICE are a list; REPEAT and GROUP have one. */
    enum node_kind kind;
    enum pattern_assert assert;
    const struct rune_set *set;
    struct node *first, *last, *sibling;
    int32_t min, max; /* REPEAT; max -1: no end */
    bool lazy;        /* REPEAT: as few times as possible */
    int32_t group;    /* GROUP: its number, from 1 */
    struct str name;  /* GROUP: empty: none */
};

/* Parses a pattern into a tree, which lives in the arena and points into `text`. Returns ERROR_INVALID if the
 * pattern is malformed or not UTF-8, ERROR_LIMIT if it exceeds one of the limits above. */
int pattern_compile(struct arena *arena, struct str text, struct node **ret_tree, struct error *error);
/* Emits the program of a tree, in the arena. With `groups` the program saves the begin and end of the first
 * PATTERN_GROUPS_MAX groups. Returns ERROR_LIMIT if it needs more than PATTERN_PROGRAM_MAX instructions. */
int pattern_emit(struct arena *arena, const struct node *tree, bool groups, struct pattern *ret_pattern,
                 struct error *error);

/* Ranges while a set is built (runes.c). */
struct runes {
    VEC(struct rune_range) list;
};
void runes_add(struct runes *ranges, uint32_t low, uint32_t high);
void runes_fold(struct runes *ranges);                    /* adds the letters' other case, a-z only */
void runes_normalise(struct runes *ranges, bool negated); /* sorts and joins; `negated`: complements */
/* Add the class of a letter, one of "dswDSW", or of a name such as "alpha". Return false if it is unknown. */
bool runes_add_perl(struct runes *ranges, char letter);
bool runes_add_posix(struct runes *ranges, struct str name, bool negated);

/* Returns the rune at text[*at] and advances *at past it. A byte that is not UTF-8 is U+FFFD. *at must be
 * below text.len. */
uint32_t rune_next(struct str text, size_t *at);

#define RUNE_NONE UINT32_MAX /* before the first and after the last rune */
/* Returns whether the assertion holds between two runes of the text. */
bool pattern_holds(enum pattern_assert assert, uint32_t before, uint32_t after);
bool rune_set_has(const struct rune_set *set, uint32_t rune);

#endif
