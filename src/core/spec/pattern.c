/* pattern.c - runs a pattern's program. All threads advance over the text in step (Thompson 1968; Pike's
 * variant without captures), so the time is at most text length x program length for every pattern.
 */
#include "core/spec/pattern.h"

#include "base/check.h"
#include "core/spec/spec.h"

_Static_assert((int)LINE_PROGRAM_MAX <= (int)PATTERN_PROGRAM_MAX, "a smaller limit on programs");

/* A set of instructions with constant-time clearing (Briggs, Torczon 1993). */
struct threads {
    uint32_t *dense, *sparse;
    size_t len;
};
struct matcher {
    struct pattern program;
    struct threads now, then;
    uint32_t *stack;
};

uint32_t rune_next(struct str text, size_t *at)
{
    CHECK(*at < text.len);
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)text.data[*at];
    size_t len = first < 0x80                    ? 1
                 : first >= 0xf0 && first < 0xf8 ? 4
                 : first >= 0xe0                 ? 3
                 : first >= 0xc0                 ? 2
                                                 : 0;
    if (len == 1 || len == 0 || first >= 0xf8 || *at + len > text.len) {
        *at += 1;
        return len == 1 ? first : 0xfffd;
    }
    uint32_t rune = first & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        unsigned char byte = (unsigned char)text.data[*at + i];
        if ((byte & 0xc0) != 0x80) {
            *at += 1;
            return 0xfffd;
        }
        rune = rune << 6 | (byte & 0x3f);
    }
    if (rune < least[len] || rune > RUNE_MAX || (rune >= 0xd800 && rune < 0xe000)) {
        *at += 1;
        return 0xfffd;
    }
    *at += len;
    CHECK(*at <= text.len && rune <= RUNE_MAX);
    return rune;
}

static bool is_word(uint32_t rune)
{
    return (rune >= 'a' && rune <= 'z') || (rune >= 'A' && rune <= 'Z') || (rune >= '0' && rune <= '9') ||
           rune == '_';
}

bool pattern_holds(enum pattern_assert assert, uint32_t before, uint32_t after)
{
    switch (assert) {
    case ASSERT_TEXT_BEGIN:
        return before == RUNE_NONE;
    case ASSERT_TEXT_END:
        return after == RUNE_NONE;
    case ASSERT_LINE_BEGIN:
        return before == RUNE_NONE || before == '\n';
    case ASSERT_LINE_END:
        return after == RUNE_NONE || after == '\n';
    case ASSERT_WORD_EDGE:
        return is_word(before) != is_word(after);
    case ASSERT_NO_WORD_EDGE:
        return is_word(before) == is_word(after);
    }
    CHECK_UNREACHABLE();
}

bool rune_set_has(const struct rune_set *set, uint32_t rune)
{
    CHECK(rune <= RUNE_MAX); /* RUNE_NONE is in no set */
    size_t low = 0, high = set->len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rune > set->ranges[middle].high)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->len && rune >= set->ranges[low].low;
}

/* Adds `start` and all instructions that it reaches without consuming a rune. Returns true if PATTERN_MATCH
 * is among them. Each instruction enters once and pushes at most two, so the stack needs 2 x len + 1
 * entries. */
static bool add_thread(struct matcher *matcher, struct threads *threads, uint32_t start, uint32_t before,
                       uint32_t after)
{
    size_t depth = 0;
    matcher->stack[depth++] = start;
    while (depth > 0) {
        uint32_t at = matcher->stack[--depth];
        CHECK(at < matcher->program.len);
        if (threads->sparse[at] < threads->len && threads->dense[threads->sparse[at]] == at)
            continue;
        CHECK(threads->len < matcher->program.len); /* each instruction enters once */
        threads->sparse[at] = (uint32_t)threads->len;
        threads->dense[threads->len++] = at;
        const struct pattern_inst *inst = &matcher->program.insts[at];
        switch (inst->op) {
        case PATTERN_MATCH:
            return true;
        case PATTERN_SPLIT:
            matcher->stack[depth++] = inst->other;
            matcher->stack[depth++] = inst->next;
            break;
        case PATTERN_JUMP:
            matcher->stack[depth++] = inst->next;
            break;
        case PATTERN_ASSERT:
            if (pattern_holds(inst->assert, before, after))
                matcher->stack[depth++] = inst->next;
            break;
        case PATTERN_SET:
            break;
        case PATTERN_SAVE:
            CHECK_UNREACHABLE(); /* only programs of pattern_capture.c have it */
        }
        CHECK(depth <= 2 * matcher->program.len + 1);
    }
    return false;
}

bool matcher_find(struct matcher *matcher, struct str text, size_t *ret_end)
{
    size_t at = 0, here = 0; /* here: where `rune` begins */
    uint32_t before = RUNE_NONE, rune = text.len > 0 ? rune_next(text, &at) : RUNE_NONE;
    matcher->now.len = 0;
    for (;;) {
        /* `now` has the earlier threads. A new one starts at every position: the search is not anchored. */
        CHECK(here <= at && at <= text.len);
        *ret_end = here;
        if (add_thread(matcher, &matcher->now, 0, before, rune))
            return true;
        if (rune == RUNE_NONE)
            return false;
        here = *ret_end = at;
        uint32_t after = at < text.len ? rune_next(text, &at) : RUNE_NONE;
        matcher->then.len = 0;
        for (size_t i = 0; i < matcher->now.len; i++) {
            const struct pattern_inst *inst = &matcher->program.insts[matcher->now.dense[i]];
            if (inst->op == PATTERN_SET && rune_set_has(inst->set, rune) &&
                add_thread(matcher, &matcher->then, inst->next, rune, after))
                return true;
        }
        struct threads swap = matcher->now;
        matcher->now = matcher->then;
        matcher->then = swap;
        CHECK(at <= text.len && matcher->now.len <= matcher->program.len);
        before = rune;
        rune = after;
    }
}

int matcher_new(struct arena *arena, struct str pattern, size_t program_max, struct matcher **ret_matcher,
                struct error *error)
{
    struct node *tree = NULL;
    struct matcher *matcher = ARENA_NEW(arena, struct matcher);
    struct pattern *program = &matcher->program;
    int rc = pattern_compile(arena, pattern, &tree, error);
    if (rc == 0)
        rc = pattern_emit(arena, tree, false, program, error);
    if (rc < 0)
        return rc;
    CHECK(program->len > 0 && program->len <= PATTERN_PROGRAM_MAX);
    if (program->len > program_max)
        return error_set(error, ERROR_LIMIT, "pattern needs %zu instructions, more than %zu", program->len,
                         program_max);
    matcher->stack = ARENA_ARRAY(arena, uint32_t, 2 * program->len + 1);
    struct threads *both[2] = {&matcher->now, &matcher->then};
    for (size_t i = 0; i < 2; i++) {
        both[i]->dense = ARENA_ARRAY(arena, uint32_t, program->len);
        both[i]->sparse = ARENA_ARRAY(arena, uint32_t, program->len);
    }
    *ret_matcher = matcher;
    return 0;
}

int pattern_search(struct str pattern, struct str text, bool *ret_matched, struct error *error)
{
    ARENA_CLEANUP struct arena arena = {0};
    struct matcher *matcher;
    size_t end;
    int rc = matcher_new(&arena, pattern, PATTERN_PROGRAM_MAX, &matcher, error);
    if (rc == 0)
        *ret_matched = matcher_find(matcher, text, &end);
    return rc;
}
