/* verify.c - the invariants of ir.h: scopes, counts, types. The rules of operations are in verify_*.c. */
#include "flow/ir/verify.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/check.h"

/* --- messages and helpers */

bool verify_fail(struct verifier *v, const char *format, ...)
{
    char text[ERROR_TEXT_MAX];
    const char *name = v->op ? ir_op_name(v->op->kind) : "function @", *dialect = "";
    struct ir_place place = v->op ? v->op->place : v->function->place;
    struct str function = v->op ? STR("") : v->function->name;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (v->op && !strchr(name, '.') && v->op->kind != IR_OP_RETURN)
        dialect = "stablehlo.";
    v->code =
        error_set(v->error, ERROR_INVALID, STR_FORMAT ":%u:%u: %s%s" STR_FORMAT ": %s",
                  STR_ARG(v->module->file), place.line, place.column, dialect, name, STR_ARG(function), text);
    return false;
}

unsigned element_class(enum ir_element element)
{
    if (element == IR_I1)
        return CLASS_BOOL;
    if (element <= IR_I64)
        return CLASS_SIGNED;
    if (element <= IR_U64)
        return CLASS_UNSIGNED;
    if (element <= IR_F64)
        return CLASS_FLOAT;
    return element == IR_TOKEN ? CLASS_TOKEN : CLASS_COMPLEX;
}

const struct ir_type *verify_operand(const struct verifier *v, uint32_t i)
{
    CHECK(i < v->op->operand_count);
    return &v->op->operands[i]->type;
}

const struct ir_type *verify_result(const struct verifier *v, uint32_t i)
{
    CHECK(i < v->op->result_count);
    return &v->op->results[i].type;
}

bool verify_is(struct verifier *v, const char *what, uint32_t i, const struct ir_type *type,
               const struct ir_type *wanted)
{
    char got[IR_TYPE_TEXT_MAX], want[IR_TYPE_TEXT_MAX];
    return ir_type_equal(type, wanted) || verify_fail(v, "%s %u has type %s, expected %s", what, i,
                                                      ir_type_text(type, got), ir_type_text(wanted, want));
}

bool verify_class(struct verifier *v, const char *what, uint32_t i, const struct ir_type *type, unsigned mask)
{
    return (element_class(type->element) & mask) ||
           verify_fail(v, "%s %u has elements of type %s, which the operation does not take", what, i,
                       ir_element_name(type->element));
}

bool verify_scalar(struct verifier *v, const char *what, uint32_t i, const struct ir_type *type,
                   enum ir_element element)
{
    struct ir_type scalar = {.element = element};
    return verify_is(v, what, i, type, &scalar);
}

bool verify_same_shape(struct verifier *v, const char *what, uint32_t i, const struct ir_type *type,
                       const struct ir_type *wanted)
{
    struct ir_type expected = *wanted;
    expected.element = type->element;
    return verify_is(v, what, i, type, &expected);
}

bool verify_results_are_operands(struct verifier *v)
{
    if (v->op->result_count != v->op->operand_count)
        return verify_fail(v, "%u operands, but %u results", v->op->operand_count, v->op->result_count);
    for (uint32_t i = 0; i < v->op->result_count; i++) {
        if (!verify_is(v, "result", i, verify_result(v, i), verify_operand(v, i)))
            return false;
    }
    return true;
}

bool verify_axis(struct verifier *v, const char *name, int64_t axis, int64_t limit)
{
    return (axis >= 0 && axis < limit) || verify_fail(v, "%s is %lld, expected a number from 0 to %lld", name,
                                                      (long long)axis, (long long)limit - 1);
}

bool verify_dims(struct verifier *v, const char *name, struct ir_ints dims, int64_t limit, bool sorted)
{
    if (dims.count > (uint64_t)limit)
        return verify_fail(v, "%s has %u dimensions of %lld", name, dims.count, (long long)limit);
    for (uint32_t i = 0; i < dims.count; i++) {
        if (!verify_axis(v, name, dims.items[i], limit))
            return false;
        if (ir_ints_have((struct ir_ints){dims.items, i}, dims.items[i]))
            return verify_fail(v, "%s names dimension %lld twice", name, (long long)dims.items[i]);
        if (sorted && i > 0 && dims.items[i] < dims.items[i - 1])
            return verify_fail(v, "%s is not in rising order", name);
    }
    return true;
}

bool verify_list(struct verifier *v, const char *name, struct ir_ints list, int64_t count, int64_t least)
{
    if (list.count != count)
        return verify_fail(v, "%s has %u numbers, expected %lld", name, list.count, (long long)count);
    for (uint32_t i = 0; i < list.count; i++) {
        if (list.items[i] < least || list.items[i] > IR_ELEMENTS_MAX)
            return verify_fail(v, "%s has the number %lld, which is out of range", name,
                               (long long)list.items[i]);
    }
    return true;
}

bool verify_type(struct verifier *v, const struct ir_type *type)
{
    int64_t elements = 1;
    if (type->element >= IR_ELEMENTS || type->rank < 0 || type->rank > IR_RANK_MAX ||
        (type->element == IR_TOKEN && type->rank > 0))
        return verify_fail(v, "a type is none of flow's");
    for (int32_t i = 0; i < type->rank; i++) {
        if (type->dims[i] < 0 || (type->dims[i] > 0 && elements > IR_ELEMENTS_MAX / type->dims[i]))
            return verify_fail(v, "a type has more than 2^40 elements");
        if (type->dims[i] > 0)
            elements *= type->dims[i];
    }
    return true;
}

bool verify_region(struct verifier *v, uint32_t i, const struct ir_type *const *args, uint32_t arg_count,
                   const struct ir_type *const *results, uint32_t result_count, bool whole)
{
    const struct ir_block *block = &v->op->regions[i];
    char got[IR_TYPE_TEXT_MAX], want[IR_TYPE_TEXT_MAX];
    if (block->arg_count != arg_count)
        return verify_fail(v, "region %u has %u arguments, expected %u", i, block->arg_count, arg_count);
    for (uint32_t k = 0; k < arg_count; k++) {
        struct ir_type type = whole ? *args[k] : (struct ir_type){.element = args[k]->element};
        if (!ir_type_equal(&block->args[k].type, &type))
            return verify_fail(v, "argument %u of region %u has type %s, expected %s", k, i,
                               ir_type_text(&block->args[k].type, got), ir_type_text(&type, want));
    }
    const struct ir_op *last = block->last; /* a return, as verify_block has ensured */
    if (last->operand_count != result_count)
        return verify_fail(v, "region %u returns %u values, expected %u", i, last->operand_count,
                           result_count);
    for (uint32_t k = 0; k < result_count; k++) {
        struct ir_type type = whole ? *results[k] : (struct ir_type){.element = results[k]->element};
        if (!ir_type_equal(&last->operands[k]->type, &type))
            return verify_fail(v, "value %u that region %u returns has type %s, expected %s", k, i,
                               ir_type_text(&last->operands[k]->type, got), ir_type_text(&type, want));
    }
    return true;
}

/* --- operations */

static bool op_in(enum ir_op_kind kind, enum ir_op_kind first, enum ir_op_kind last)
{
    return kind >= first && kind <= last;
}

/* Returns the number of results of an operation; -1 if its own rules determine it. */
static int64_t op_result_count(enum ir_op_kind kind)
{
    switch (kind) {
    case IR_OP_RETURN:
    case IR_OP_EXPECT_EQ:
    case IR_OP_EXPECT_CLOSE:
    case IR_OP_EXPECT_ALMOST_EQ:
        return 0;
    case IR_OP_RNG_BIT_GENERATOR:
        return 2;
    case IR_OP_BATCH_NORM_GRAD:
    case IR_OP_BATCH_NORM_TRAINING:
        return 3;
    case IR_OP_CALL:
    case IR_OP_CASE:
    case IR_OP_CUSTOM_CALL:
    case IR_OP_IF:
    case IR_OP_OPTIMIZATION_BARRIER:
    case IR_OP_REDUCE:
    case IR_OP_REDUCE_WINDOW:
    case IR_OP_SCATTER:
    case IR_OP_SORT:
    case IR_OP_WHILE:
    case IR_OP_ALL_GATHER:
    case IR_OP_ALL_REDUCE:
    case IR_OP_ALL_TO_ALL:
    case IR_OP_RUN_PARALLEL:
        return -1;
    default:
        return 1;
    }
}

static bool verify_counts(struct verifier *v)
{
    static const struct {
        unsigned char least, most, regions;
    } rows[] = {
#define IR_OP(id, name, least, most, regions) [IR_OP_##id] = {least, most, regions},
        IR_OPS(IR_OP)
#undef IR_OP
    };
    const struct ir_op *op = v->op;
    unsigned least = rows[op->kind].least, most = rows[op->kind].most, regions = rows[op->kind].regions;
    int64_t results = op_result_count(op->kind);
    if (op->operand_count < least || (most != IR_ANY && op->operand_count > most))
        return verify_fail(v, "%u operands, expected %s%u", op->operand_count,
                           most == least ? "" : "at least ", least);
    if (regions != IR_ANY && op->region_count != regions)
        return verify_fail(v, "%u regions, expected %u", op->region_count, regions);
    if (results >= 0 && op->result_count != results)
        return verify_fail(v, "%u results, expected %lld", op->result_count, (long long)results);
    return true;
}

static bool verify_rules(struct verifier *v)
{
    switch (v->op->kind) {
    case IR_OP_GATHER:
    case IR_OP_SCATTER:
        return verify_indexing(v);
    case IR_OP_CHOLESKY:
    case IR_OP_CONVOLUTION:
    case IR_OP_DOT_GENERAL:
    case IR_OP_FFT:
    case IR_OP_TRIANGULAR_SOLVE:
        return verify_contraction(v);
    default:
        break;
    }
    if (v->op->kind <= IR_OP_SELECT)
        return verify_elementwise(v);
    if (v->op->kind <= IR_OP_TRANSPOSE)
        return verify_movement(v);
    if (v->op->kind <= IR_OP_SORT)
        return verify_reduction(v);
    if (op_in(v->op->kind, IR_OP_ALL_GATHER, IR_OP_REPLICA_ID))
        return verify_collective(v);
    return verify_control(v);
}

static bool verify_block(struct verifier *v, const struct ir_block *block);

static bool verify_op(struct verifier *v, const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const struct ir_value *operand = op->operands[i];
        v->op = op;
        if (operand->number >= v->function->value_count || v->visible[operand->number] != operand)
            return verify_fail(v, "operand %u is not defined before its use", i);
    }
    for (uint32_t i = 0; i < op->region_count; i++) {
        if (!verify_block(v, &op->regions[i]))
            return false;
    }
    v->op = op;
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (!verify_type(v, &op->results[i].type))
            return false;
    }
    if (!verify_counts(v) || !verify_rules(v))
        return false;
    for (uint32_t i = 0; i < op->result_count; i++) {
        CHECK(op->results[i].number < v->function->value_count);
        v->visible[op->results[i].number] = &op->results[i];
    }
    return true;
}

/* Removes the values of a finished block from the scope. */
static void verify_forget(struct verifier *v, const struct ir_block *block)
{
    for (uint32_t i = 0; i < block->arg_count; i++)
        v->visible[block->args[i].number] = NULL;
    for (const struct ir_op *op = block->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->result_count; i++)
            v->visible[op->results[i].number] = NULL;
    }
}

static bool verify_block(struct verifier *v, const struct ir_block *block)
{
    const struct ir_op *owner = v->op;
    if (++v->depth > IR_DEPTH_MAX)
        return verify_fail(v, "regions are nested deeper than %d", IR_DEPTH_MAX);
    for (uint32_t i = 0; i < block->arg_count; i++) {
        CHECK(block->args[i].number < v->function->value_count);
        if (!verify_type(v, &block->args[i].type))
            return false;
        v->visible[block->args[i].number] = &block->args[i];
    }
    for (const struct ir_op *op = block->first; op; op = op->next) {
        if (!verify_op(v, op))
            return false;
        if (op->kind == IR_OP_RETURN && op->next)
            return verify_fail(v, "operations follow the return");
    }
    v->op = owner;
    if (!block->last || block->last->kind != IR_OP_RETURN)
        return verify_fail(v, "a block does not end with a return");
    verify_forget(v, block);
    v->depth--;
    return true;
}

static bool verify_function(struct verifier *v, const struct ir_function *function)
{
    char got[IR_TYPE_TEXT_MAX], want[IR_TYPE_TEXT_MAX];
    v->function = function;
    v->op = NULL;
    for (uint32_t i = 0; i < function->result_count; i++) {
        if (!verify_type(v, &function->results[i]))
            return false;
    }
    v->visible = mem_alloc(sizeof *v->visible * ((size_t)function->value_count + 1));
    bool ok = verify_block(v, &function->body);
    mem_free(v->visible);
    if (!ok)
        return false;
    v->op = function->body.last;
    if (v->op->operand_count != function->result_count)
        return verify_fail(v, "%u values returned, but @" STR_FORMAT " has %u results", v->op->operand_count,
                           STR_ARG(function->name), function->result_count);
    for (uint32_t i = 0; i < function->result_count; i++) {
        const struct ir_type *type = verify_operand(v, i);
        if (!ir_type_equal(type, &function->results[i]))
            return verify_fail(v, "value %u has type %s, but @" STR_FORMAT " returns %s", i,
                               ir_type_text(type, got), STR_ARG(function->name),
                               ir_type_text(&function->results[i], want));
    }
    return true;
}

int ir_verify(const struct ir_module *module, struct error *error)
{
    struct verifier v = {.module = module, .error = error};
    for (const struct ir_function *function = module->functions; function; function = function->next) {
        if (!verify_function(&v, function))
            return v.code;
        CHECK(v.depth == 0);
    }
    return verify_calls(&v) ? 0 : v.code;
}
