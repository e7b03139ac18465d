/* pattern.h - a pattern: its tree (pattern_parse.c), its program (pattern_emit.c), its run (pattern.c).
 * Private to spec. Syntax: https://github.com/google/re2/wiki/Syntax without Unicode classes (\p) and with
 * ASCII case folding.
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

/* 0, ERROR_INVALID or ERROR_LIMIT. Tree and program live in the arena. */
int pattern_compile(struct arena *arena, struct str text, struct node **ret_tree, struct error *error);
/* Emits the program of a tree. With `groups` it saves the begin and end of the first PATTERN_GROUPS_MAX
 * groups. */
int pattern_emit(struct arena *arena, const struct node *tree, bool groups, struct pattern *ret_pattern,
                 struct error *error);

/* Ranges while a set is built (runes.c). */
struct runes {
    VEC(struct rune_range) list;
};
void runes_add(struct runes *ranges, uint32_t low, uint32_t high);
void runes_fold(struct runes *ranges);                    /* adds the letters' other case, a-z only */
void runes_normalise(struct runes *ranges, bool negated); /* sorts and joins; `negated`: complements */
bool runes_add_perl(struct runes *ranges, char letter);   /* adds d s w D S W; false: another letter */
bool runes_add_posix(struct runes *ranges, struct str name, bool negated); /* "alpha"; false: unknown */

/* Returns the rune at text[*at] and moves *at behind it; a byte that is not UTF-8 is U+FFFD. *at must be
 * inside. */
uint32_t rune_next(struct str text, size_t *at);

#define RUNE_NONE UINT32_MAX /* before the first and behind the last rune */
bool pattern_holds(enum pattern_assert assert, uint32_t before, uint32_t after);
bool rune_set_has(const struct rune_set *set, uint32_t rune);

#endif
