/* pattern_capture.c - finds the texts of a pattern's groups. All threads advance over the text in step, in
 * order of preference, each with its saved positions (Pike 1987, as described by Cox 2009). When a thread
 * matches, the threads that follow it are dropped, so the last match is the preferred one.
 */
#include "core/spec/pattern.h"

#include "base/check.h"
#include "core/spec/spec.h"

enum { SLOTS = 2 * PATTERN_GROUPS_MAX };
#define PLACE_NONE SIZE_MAX
_Static_assert(SLOTS == 2 * PATTERN_GROUPS_MAX && SLOTS < INT32_MAX, "a begin and an end of each group");

struct places {
    size_t slots[SLOTS];
};
struct run_list {
    uint32_t *dense, *sparse;
    struct places *places; /* of each instruction in `dense` */
    size_t len;
};
/* An instruction to add (slot < 0), or a slot to restore to its earlier position. */
struct frame {
    uint32_t at;
    int32_t slot;
    size_t place;
};
struct capturer {
    struct pattern program;
    struct run_list now, then;
    struct frame *stack;
    size_t groups;
    struct str names[PATTERN_GROUPS_MAX];
};

static bool enter(struct run_list *list, uint32_t at, const struct places *places)
{
    if (list->sparse[at] < list->len && list->dense[list->sparse[at]] == at)
        return false;
    list->sparse[at] = (uint32_t)list->len;
    list->dense[list->len] = at;
    list->places[list->len++] = *places;
    return true;
}

/* Adds `start` and all instructions that it reaches without consuming a rune, the preferred branch first.
 * `here` is the position. */
static void add(struct capturer *capturer, struct run_list *list, uint32_t start, struct places *places,
                size_t here, uint32_t before, uint32_t after)
{
    struct frame *stack = capturer->stack;
    size_t depth = 0;
    stack[depth++] = (struct frame){start, -1, 0};
    while (depth > 0) {
        struct frame frame = stack[--depth];
        CHECK(frame.slot < SLOTS && list->len <= capturer->program.len);
        if (frame.slot >= 0) {
            places->slots[frame.slot] = frame.place;
            continue;
        }
        CHECK(frame.at < capturer->program.len);
        if (!enter(list, frame.at, places))
            continue;
        const struct pattern_inst *inst = &capturer->program.insts[frame.at];
        switch (inst->op) {
        case PATTERN_SPLIT:
            stack[depth++] = (struct frame){inst->other, -1, 0};
            stack[depth++] = (struct frame){inst->next, -1, 0};
            break;
        case PATTERN_SAVE:
            CHECK(inst->other < SLOTS);
            stack[depth++] = (struct frame){0, (int32_t)inst->other, places->slots[inst->other]};
            stack[depth++] = (struct frame){inst->next, -1, 0};
            places->slots[inst->other] = here;
            break;
        case PATTERN_JUMP:
            stack[depth++] = (struct frame){inst->next, -1, 0};
            break;
        case PATTERN_ASSERT:
            if (pattern_holds(inst->assert, before, after))
                stack[depth++] = (struct frame){inst->next, -1, 0};
            break;
        case PATTERN_MATCH:
        case PATTERN_SET:
            break;
        }
        CHECK(depth <= 2 * capturer->program.len + 1);
    }
}

/* Consumes one rune. Returns true, and the positions, if a thread matched before it. */
static bool advance(struct capturer *capturer, uint32_t rune, uint32_t after, size_t next,
                    struct places *ret_places)
{
    capturer->then.len = 0;
    for (size_t i = 0; i < capturer->now.len; i++) {
        const struct pattern_inst *inst = &capturer->program.insts[capturer->now.dense[i]];
        struct places places = capturer->now.places[i];
        if (inst->op == PATTERN_MATCH) {
            *ret_places = places;
            return true;
        }
        if (inst->op == PATTERN_SET && rune != RUNE_NONE && rune_set_has(inst->set, rune))
            add(capturer, &capturer->then, inst->next, &places, next, rune, after);
    }
    return false;
}

static bool find_places(struct capturer *capturer, struct str text, struct places *ret_places)
{
    struct places none;
    size_t at = 0, here = 0; /* here: where `rune` begins */
    uint32_t before = RUNE_NONE, rune = text.len > 0 ? rune_next(text, &at) : RUNE_NONE;
    bool matched = false;
    for (size_t i = 0; i < SLOTS; i++)
        none.slots[i] = PLACE_NONE;
    capturer->now.len = 0;
    for (;;) {
        struct places places = none;
        if (!matched) /* the search is not anchored; a later start is the least preferred */
            add(capturer, &capturer->now, 0, &places, here, before, rune);
        size_t next = at;
        uint32_t after = at < text.len ? rune_next(text, &at) : RUNE_NONE;
        matched |= advance(capturer, rune, after, next, ret_places);
        if (rune == RUNE_NONE || (matched && capturer->then.len == 0))
            return matched;
        struct run_list swap = capturer->now;
        capturer->now = capturer->then;
        capturer->then = swap;
        CHECK(at <= text.len && capturer->now.len <= capturer->program.len);
        CHECK(here <= next && next <= at);
        here = next;
        before = rune;
        rune = after;
    }
}

bool capturer_find(struct capturer *capturer, struct str text, struct str ret_groups[PATTERN_GROUPS_MAX])
{
    struct places places;
    if (!find_places(capturer, text, &places))
        return false;
    for (size_t i = 0; i < PATTERN_GROUPS_MAX; i++) {
        size_t begin = places.slots[2 * i], end = places.slots[2 * i + 1];
        bool took_part = begin != PLACE_NONE && end != PLACE_NONE;
        CHECK(!took_part || (begin <= end && end <= text.len));
        ret_groups[i] = took_part ? (struct str){text.data + begin, end - begin} : (struct str){0};
    }
    return true;
}

/* --- making ------------------------------------------------------------------------------------------- */

/* Recursion is as deep as the parser allows: PATTERN_DEPTH_MAX groups. */
static void note_groups(struct capturer *capturer, const struct node *node)
{
    if (node->kind == NODE_GROUP) {
        capturer->groups++;
        CHECK(node->group > 0 && (size_t)node->group == capturer->groups); /* numbered in this order */
        if (node->group <= PATTERN_GROUPS_MAX)
            capturer->names[node->group - 1] = node->name;
    }
    for (const struct node *child = node->first; child; child = child->sibling)
        note_groups(capturer, child);
}

size_t capturer_groups(const struct capturer *capturer)
{
    return capturer->groups;
}

struct str capturer_name(const struct capturer *capturer, size_t group)
{
    CHECK(group < PATTERN_GROUPS_MAX);
    return capturer->names[group];
}

int capturer_new(struct arena *arena, struct str pattern, size_t program_max, struct capturer **ret_capturer,
                 struct error *error)
{
    struct node *tree = NULL;
    struct capturer *capturer = ARENA_NEW(arena, struct capturer);
    struct pattern *program = &capturer->program;
    int rc = pattern_compile(arena, pattern, &tree, error);
    if (rc == 0)
        rc = pattern_emit(arena, tree, false, program, error);
    if (rc == 0 && program->len > program_max)
        rc = error_set(error, ERROR_LIMIT, "pattern needs %zu instructions, more than %zu", program->len,
                       program_max);
    if (rc == 0)
        rc = pattern_emit(arena, tree, true, program, error);
    if (rc < 0)
        return rc;
    CHECK(program->len > 0 && program->len <= PATTERN_PROGRAM_MAX);
    note_groups(capturer, tree);
    capturer->stack = ARENA_ARRAY(arena, struct frame, 2 * program->len + 1);
    struct run_list *both[2] = {&capturer->now, &capturer->then};
    for (size_t i = 0; i < 2; i++) {
        both[i]->dense = ARENA_ARRAY(arena, uint32_t, program->len);
        both[i]->sparse = ARENA_ARRAY(arena, uint32_t, program->len);
        both[i]->places = ARENA_ARRAY(arena, struct places, program->len);
    }
    *ret_capturer = capturer;
    return 0;
}
