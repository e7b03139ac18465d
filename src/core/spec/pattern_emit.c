/* pattern_emit.c - emits the program of a pattern's tree. {m,n} repeats its child, so both the program and
 * the number of visited nodes are bounded: nested repetitions of x{0} emit nothing, but take time.
 */
#include "core/spec/pattern.h"
#include "core/spec/spec.h"

enum { VISITS_MAX = 8 * PATTERN_PROGRAM_MAX };

_Static_assert(PATTERN_PROGRAM_MAX < UINT32_MAX, "UINT32_MAX ends a chain of instructions");

struct emitter {
    VEC(struct pattern_inst) insts;
    size_t visits;
    bool full, groups;
};

static uint32_t emit(struct emitter *emitter, struct pattern_inst inst)
{
    if (emitter->insts.len >= PATTERN_PROGRAM_MAX) {
        emitter->full = true;
        return 0;
    }
    vec_push(&emitter->insts, inst);
    return (uint32_t)emitter->insts.len - 1;
}

static uint32_t end(const struct emitter *emitter)
{
    return (uint32_t)emitter->insts.len;
}

/* Returns the instruction for patching, or NULL after an overflow. */
static struct pattern_inst *inst_at(struct emitter *emitter, uint32_t at)
{
    CHECK(emitter->full || at < emitter->insts.len);
    return emitter->full ? NULL : &emitter->insts.items[at];
}

static void emit_node(struct emitter *emitter, const struct node *node);

/* Emits a split before each branch but the last, and after each of these branches a jump to the end. The
 * jumps are chained through `next` until the end is known. */
static void emit_choice(struct emitter *emitter, const struct node *node)
{
    CHECK(node->kind == NODE_CHOICE && node->first && !node->last->sibling);
    uint32_t chain = UINT32_MAX;
    for (const struct node *child = node->first; child && !emitter->full; child = child->sibling) {
        uint32_t split = 0;
        if (child->sibling)
            split = emit(emitter, (struct pattern_inst){.op = PATTERN_SPLIT, .next = end(emitter) + 1});
        emit_node(emitter, child);
        if (!child->sibling)
            break;
        chain = emit(emitter, (struct pattern_inst){.op = PATTERN_JUMP, .next = chain});
        struct pattern_inst *inst = inst_at(emitter, split);
        if (inst)
            inst->other = end(emitter);
    }
    while (chain != UINT32_MAX && !emitter->full) {
        struct pattern_inst *jump = inst_at(emitter, chain);
        CHECK(jump->op == PATTERN_JUMP && (jump->next == UINT32_MAX || jump->next < chain));
        chain = jump->next;
        jump->next = end(emitter);
    }
}

/* Sets the exit of a repetition: tried after another round or, if the repetition is lazy, before it. */
static void leave_at(struct pattern_inst *split, uint32_t place, bool lazy)
{
    CHECK(split->op == PATTERN_SPLIT);
    split->other = lazy ? split->next : place;
    split->next = lazy ? place : split->next;
}

/* Emits the child `min` times, then a loop or max - min optional children, chained through `other`. */
static void emit_repeat(struct emitter *emitter, const struct node *node)
{
    CHECK(node->first && node->first == node->last);
    CHECK(node->min >= 0 && (node->max < 0 || node->max >= node->min));
    for (int32_t i = 0; i < node->min && !emitter->full; i++)
        emit_node(emitter, node->first);
    if (node->max < 0) {
        uint32_t split = emit(emitter, (struct pattern_inst){.op = PATTERN_SPLIT, .next = end(emitter) + 1});
        emit_node(emitter, node->first);
        emit(emitter, (struct pattern_inst){.op = PATTERN_JUMP, .next = split});
        struct pattern_inst *inst = inst_at(emitter, split);
        if (inst)
            leave_at(inst, end(emitter), node->lazy);
        return;
    }
    uint32_t chain = UINT32_MAX;
    for (int32_t i = node->min; i < node->max && !emitter->full; i++) {
        struct pattern_inst split = {.op = PATTERN_SPLIT, .next = end(emitter) + 1, .other = chain};
        chain = emit(emitter, split);
        emit_node(emitter, node->first);
    }
    while (chain != UINT32_MAX && !emitter->full) {
        struct pattern_inst *split = inst_at(emitter, chain);
        CHECK(split->op == PATTERN_SPLIT && (split->other == UINT32_MAX || split->other < chain));
        chain = split->other;
        leave_at(split, end(emitter), node->lazy);
    }
}

static void emit_group(struct emitter *emitter, const struct node *node)
{
    bool saved = emitter->groups && node->group <= PATTERN_GROUPS_MAX;
    CHECK(node->group > 0 && node->first && node->first == node->last);
    struct pattern_inst save = {.op = PATTERN_SAVE, .other = 2 * (uint32_t)(node->group - 1)};
    save.next = end(emitter) + 1;
    if (saved)
        emit(emitter, save);
    emit_node(emitter, node->first);
    save.next = end(emitter) + 1;
    save.other++;
    if (saved)
        emit(emitter, save);
}

static void emit_node(struct emitter *emitter, const struct node *node)
{
    if (emitter->full || ++emitter->visits > VISITS_MAX) {
        emitter->full = true;
        return;
    }
    switch (node->kind) {
    case NODE_SET:
        CHECK(node->set);
        emit(emitter, (struct pattern_inst){.op = PATTERN_SET, .set = node->set, .next = end(emitter) + 1});
        break;
    case NODE_ASSERT:
        emit(emitter,
             (struct pattern_inst){.op = PATTERN_ASSERT, .assert = node->assert, .next = end(emitter) + 1});
        break;
    case NODE_SEQUENCE:
        for (const struct node *child = node->first; child && !emitter->full; child = child->sibling)
            emit_node(emitter, child);
        break;
    case NODE_CHOICE:
        emit_choice(emitter, node);
        break;
    case NODE_REPEAT:
        emit_repeat(emitter, node);
        break;
    case NODE_GROUP:
        emit_group(emitter, node);
        break;
    }
}

int pattern_emit(struct arena *arena, const struct node *tree, bool groups, struct pattern *ret_pattern,
                 struct error *error)
{
    struct emitter emitter = {.groups = groups};
    CHECK(tree->kind == NODE_CHOICE); /* of pattern_compile */
    emit_node(&emitter, tree);
    emit(&emitter, (struct pattern_inst){.op = PATTERN_MATCH});
    if (!emitter.full) {
        CHECK(vec_last(&emitter.insts).op == PATTERN_MATCH && emitter.insts.len <= PATTERN_PROGRAM_MAX);
        struct pattern_inst *insts = ARENA_ARRAY(arena, struct pattern_inst, emitter.insts.len);
        memcpy(insts, emitter.insts.items, emitter.insts.len * sizeof *insts);
        *ret_pattern = (struct pattern){insts, emitter.insts.len};
    }
    vec_done(&emitter.insts);
    if (emitter.full)
        return error_set(error, ERROR_LIMIT, "pattern needs more than %d instructions",
                         (int)PATTERN_PROGRAM_MAX);
    return 0;
}
