/* plan.c - liveness, peak and depth of functions. */
#include "flow/exec/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "flow/exec/fold.h"

static int pointers_compare(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return (x > y) - (x < y);
}

/* Returns the index of `function` among the plans, or the index at which to insert it. */
static uint32_t plans_place(const struct plans *plans, const struct ir_function *function)
{
    uint32_t low = 0, high = plans->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (pointers_compare(plans->items[middle]->function, function) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct plan *plan_known(const struct plans *plans, const struct ir_function *function)
{
    uint32_t place = plans_place(plans, function);
    return place < plans->count && plans->items[place]->function == function ? plans->items[place] : NULL;
}

const struct plan *plans_find(const struct plans *plans, const struct ir_function *function)
{
    const struct plan *plan = plan_known(plans, function);
    CHECK(plan != NULL);
    return plan;
}

static void plan_free(struct plan *plan)
{
    free(plan->last_use);
    free(plan->captures);
    free(plan);
}

void plans_free(struct plans *plans)
{
    for (uint32_t k = 0; k < plans->count; k++)
        plan_free(plans->items[k]);
    free(plans->items);
    *plans = (struct plans){0};
}

/* --- liveness */

/* A value as seen by the walk. */
struct value_note {
    const struct ir_value *value;
    uint8_t level; /* nesting of the block that defines it */
    bool captured; /* the last use is inside a region of plan.last_use */
};

/* The walk over one function. */
struct planning {
    struct plans *plans;
    struct plan *plan;
    struct value_note *notes;                   /* by value number */
    const struct ir_op *path[IR_DEPTH_MAX + 2]; /* the current operation, by nesting */
    uint32_t base, deepest;                     /* depth of the callers; greatest depth so far */
    struct error *error;
};

static int function_plan(struct plans *plans, const struct ir_function *function, uint32_t base,
                         struct error *error);

/* "FILE:LINE:COLUMN: stablehlo.OPERATION: cannot be computed for TYPE" */
static int planning_refuse(struct planning *planning, const struct ir_op *op, enum ir_element element)
{
    const char *name = ir_op_name(op->kind);
    bool custom = op->kind == IR_OP_CUSTOM_CALL;
    struct str target = custom ? op->attributes.custom.target : STR("");
    return error_set(planning->error, ERROR_UNSUPPORTED,
                     "%.*s:%u:%u: %s%s: %s%.*s%scannot be computed for %s",
                     STR_ARG(planning->plans->module->file), op->place.line, op->place.column,
                     strchr(name, '.') ? "" : "stablehlo.", name, custom ? "@" : "", STR_ARG(target),
                     custom ? " " : "", ir_element_name(element));
}

static int callee_plan(struct planning *planning, const struct ir_function *callee, uint32_t depth)
{
    int code = function_plan(planning->plans, callee, depth, planning->error);
    if (code < 0)
        return code;
    uint32_t deepest = depth + plans_find(planning->plans, callee)->depth - 1;
    planning->deepest = deepest > planning->deepest ? deepest : planning->deepest;
    return 0;
}

static int callees_plan(struct planning *planning, const struct ir_op *op, uint32_t depth)
{
    if (op->kind == IR_OP_CALL)
        return callee_plan(planning, op->attributes.call.callee, depth);
    uint64_t programs = op->kind == IR_OP_RUN_PARALLEL
                            ? (uint64_t)op->attributes.parallel.replicas * op->attributes.parallel.partitions
                            : 0;
    int code = 0;
    for (uint64_t k = 0; k < programs && code == 0; k++)
        code = callee_plan(planning, op->attributes.parallel.programs[k], depth);
    return code;
}

static void value_meet(struct planning *planning, const struct ir_value *value, uint32_t level)
{
    planning->notes[value->number] = (struct value_note){.value = value, .level = (uint8_t)level};
}

/* Records a use of a value. Operands come before regions: a value that is both counts as an operand. */
static void value_use(struct planning *planning, const struct ir_value *value, uint32_t level)
{
    struct value_note *note = &planning->notes[value->number];
    const struct ir_op *user = planning->path[note->level];
    CHECK(note->value == value && note->level <= level);
    if (note->level == level)
        note->captured = false;
    else if (planning->plan->last_use[value->number] != user)
        note->captured = true;
    planning->plan->last_use[value->number] = user;
}

static int block_live(struct planning *planning, const struct ir_block *block, uint32_t level)
{
    CHECK(level < IR_DEPTH_MAX + 2);
    if (planning->base + level >= PLAN_DEPTH_MAX)
        return error_set(planning->error, ERROR_LIMIT,
                         "@%.*s: more than %d regions and calls inside each other",
                         STR_ARG(planning->plan->function->name), PLAN_DEPTH_MAX);
    if (planning->base + level > planning->deepest)
        planning->deepest = planning->base + level;
    for (uint32_t k = 0; k < block->arg_count; k++)
        value_meet(planning, &block->args[k], level);
    for (const struct ir_op *op = block->first; op; op = op->next) {
        enum ir_element what;
        planning->path[level] = op;
        if (!plan_supported(op, &what))
            return planning_refuse(planning, op, what);
        for (uint32_t k = 0; k < op->operand_count; k++)
            value_use(planning, op->operands[k], level);
        int code = callees_plan(planning, op, planning->base + level + 1);
        for (uint32_t k = 0; k < op->region_count && code == 0; k++)
            code = block_live(planning, &op->regions[k], level + 1);
        if (code < 0)
            return code;
        for (uint32_t k = 0; k < op->result_count; k++)
            value_meet(planning, &op->results[k], level);
    }
    return 0;
}

static int captures_compare(const void *a, const void *b)
{
    const struct plan_capture *x = a, *y = b;
    int order = pointers_compare(x->op, y->op);
    return order ? order : (x->value->number > y->value->number) - (x->value->number < y->value->number);
}

static int captures_find(struct planning *planning)
{
    struct plan *plan = planning->plan;
    uint32_t values = plan->function->value_count, count = 0;
    for (uint32_t k = 0; k < values; k++)
        count += planning->notes[k].captured;
    plan->captures = calloc(count + 1, sizeof *plan->captures);
    if (!plan->captures)
        return error_set(planning->error, ERROR_LIMIT, "no memory for a plan");
    for (uint32_t k = 0; k < values; k++)
        if (planning->notes[k].captured)
            plan->captures[plan->capture_count++] =
                (struct plan_capture){plan->last_use[k], planning->notes[k].value};
    CHECK(plan->capture_count == count);
    qsort(plan->captures, count, sizeof *plan->captures, captures_compare);
    return 0;
}

uint32_t plan_captures(const struct plan *plan, const struct ir_op *op, const struct plan_capture **first)
{
    uint32_t low = 0, high = plan->capture_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (pointers_compare(plan->captures[middle].op, op) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    uint32_t count = 0;
    while (low + count < plan->capture_count && plan->captures[low + count].op == op)
        count++;
    *first = plan->captures + low;
    return count;
}

/* --- the peak: the interpreter's allocations, computed without running it */

static int64_t block_peak(const struct plans *plans, const struct plan *plan, const struct ir_block *block);

/* Peaks add up through calls, and saturate at this value. */
#define PEAK_MAX (INT64_MAX / 4)

static int64_t peak_capped(__int128 bytes)
{
    return bytes < PEAK_MAX ? (int64_t)bytes : PEAK_MAX;
}

static int64_t results_bytes(const struct ir_op *op)
{
    int64_t bytes = 0;
    for (uint32_t k = 0; k < op->result_count; k++)
        bytes += ir_type_bytes(&op->results[k].type);
    return bytes;
}

static int64_t regions_peak(const struct plans *plans, const struct plan *plan, const struct ir_op *op)
{
    int64_t peak = 0;
    for (uint32_t k = 0; k < op->region_count; k++) {
        int64_t of_region = block_peak(plans, plan, &op->regions[k]);
        peak = of_region > peak ? of_region : peak;
    }
    return peak;
}

/* Returns the bytes of scalars for regions that run element by element: two for each argument, because a
 * region may return it. */
static int64_t scalars_bytes(const struct plans *plans, const struct plan *plan, const struct ir_op *op)
{
    int64_t bytes = 0;
    for (uint32_t k = 0; k < op->region_count; k++) {
        const struct ir_block *region = &op->regions[k];
        bool folds = op->kind != IR_OP_MAP && op->kind != IR_OP_SORT &&
                     !(op->kind == IR_OP_SELECT_AND_SCATTER && k == 0);
        if (folds && fold_binary(region) != IR_OP_KINDS)
            continue;
        for (uint32_t a = 0; a < region->arg_count; a++)
            bytes += 2 * ir_type_bytes(&region->args[a].type);
        bytes += block_peak(plans, plan, region);
    }
    return bytes;
}

/* Returns the bytes that the operation holds while it runs, its results included. */
static int64_t op_peak(const struct plans *plans, const struct plan *plan, const struct ir_op *op)
{
    int64_t results = results_bytes(op), inner = results;
    if (op->kind == IR_OP_CALL) {
        inner = plans_find(plans, op->attributes.call.callee)->peak;
    } else if (op->kind == IR_OP_RUN_PARALLEL) {
        uint64_t count = (uint64_t)op->attributes.parallel.replicas * op->attributes.parallel.partitions;
        inner = 0;
        for (uint64_t k = 0; k < count; k++)
            inner =
                peak_capped((__int128)inner + plans_find(plans, op->attributes.parallel.programs[k])->peak);
    } else if (op->kind == IR_OP_WHILE) {
        inner = results + regions_peak(plans, plan, op); /* the state, and the iteration that replaces it */
    } else if (op->kind == IR_OP_IF || op->kind == IR_OP_CASE) {
        inner = regions_peak(plans, plan, op);
    } else if (op->kind == IR_OP_EXPECT_EQ || op->kind == IR_OP_EXPECT_CLOSE ||
               op->kind == IR_OP_EXPECT_ALMOST_EQ) {
        inner = op->attributes.expect.constant ? ir_type_bytes(&op->attributes.expect.expected.type) : 0;
    } else {
        inner = results + scalars_bytes(plans, plan, op);
    }
    return peak_capped(inner > results ? inner : results);
}

/* Returns the bytes of a value made by its block; arguments of blocks count where they were made. */
static int64_t value_bytes(const struct ir_value *value)
{
    return value->op ? ir_type_bytes(&value->type) : 0;
}

/* Returns the bytes of the values whose last use is `op`. */
static int64_t op_frees(const struct plan *plan, const struct ir_op *op)
{
    int64_t bytes = 0;
    const struct plan_capture *captures;
    for (uint32_t k = 0; k < op->operand_count; k++) {
        bool again = false;
        for (uint32_t j = 0; j < k && !again && plan->last_use[op->operands[k]->number] == op; j++)
            again = op->operands[j] == op->operands[k];
        if (!again && plan->last_use[op->operands[k]->number] == op)
            bytes += value_bytes(op->operands[k]);
    }
    uint32_t count = op->region_count ? plan_captures(plan, op, &captures) : 0;
    for (uint32_t k = 0; k < count; k++)
        bytes += value_bytes(captures[k].value);
    for (uint32_t k = 0; k < op->result_count; k++)
        if (!plan->last_use[op->results[k].number])
            bytes += ir_type_bytes(&op->results[k].type);
    return bytes;
}

static int64_t block_peak(const struct plans *plans, const struct plan *plan, const struct ir_block *block)
{
    __int128 live = 0, peak = 0;
    for (const struct ir_op *op = block->first; op && op->kind != IR_OP_RETURN; op = op->next) {
        __int128 with = live + op_peak(plans, plan, op);
        peak = with > peak ? with : peak;
        live += results_bytes(op) - op_frees(plan, op);
        CHECK(live >= 0);
    }
    return peak_capped(peak);
}

/* --- plans */

static int plan_store(struct plans *plans, struct plan *plan, struct error *error)
{
    if (plans->count == plans->room) {
        uint32_t room = plans->room ? 2 * plans->room : 8;
        struct plan **items = realloc(plans->items, room * sizeof *items);
        if (!items)
            return error_set(error, ERROR_LIMIT, "no memory for a plan");
        plans->items = items;
        plans->room = room;
    }
    uint32_t place = plans_place(plans, plan->function);
    memmove(plans->items + place + 1, plans->items + place, (plans->count - place) * sizeof *plans->items);
    plans->items[place] = plan;
    plans->count++;
    return 0;
}

static int function_plan(struct plans *plans, const struct ir_function *function, uint32_t base,
                         struct error *error)
{
    const struct plan *known = plan_known(plans, function);
    if (known)
        return base + known->depth < PLAN_DEPTH_MAX
                   ? 0
                   : error_set(error, ERROR_LIMIT, "@%.*s: more than %d regions and calls inside each other",
                               STR_ARG(function->name), PLAN_DEPTH_MAX);
    struct plan *plan = calloc(1, sizeof *plan);
    struct planning planning = {.plans = plans, .plan = plan, .base = base, .error = error};
    planning.notes = calloc(function->value_count + 1, sizeof *planning.notes);
    if (plan)
        *plan = (struct plan){.function = function,
                              .last_use = calloc(function->value_count + 1, sizeof *plan->last_use)};
    int code =
        plan && planning.notes && plan->last_use ? 0 : error_set(error, ERROR_LIMIT, "no memory for a plan");
    if (code == 0)
        code = block_live(&planning, &function->body, 0);
    if (code == 0)
        code = captures_find(&planning);
    if (code == 0) {
        plan->depth = planning.deepest + 1 - base;
        plan->peak = block_peak(plans, plan, &function->body);
        code = plan_store(plans, plan, error);
    }
    free(planning.notes);
    if (code < 0 && plan)
        plan_free(plan);
    return code;
}

int plans_make(struct plans *plans, const struct ir_module *module, const struct ir_function *function,
               struct error *error)
{
    *plans = (struct plans){.module = module};
    int code = function_plan(plans, function, 0, error);
    if (code < 0)
        plans_free(plans);
    return code;
}
