/* verify_control.c - control flow, calls, checks, and the launcher of test programs. */
#include "flow/ir/verify.h"

/* Checks values, from value `first` on, against the types of a function's parameters or results. */
static bool verify_signature(struct verifier *v, const struct ir_function *callee, uint32_t first_operand,
                             uint32_t first_result)
{
    for (uint32_t i = 0; i < callee->body.arg_count; i++) {
        if (!verify_is(v, "operand", first_operand + i, verify_operand(v, first_operand + i),
                       &callee->body.args[i].type))
            return false;
    }
    for (uint32_t i = 0; i < callee->result_count; i++) {
        if (!verify_is(v, "result", first_result + i, verify_result(v, first_result + i),
                       &callee->results[i]))
            return false;
    }
    return true;
}

static bool verify_call(struct verifier *v)
{
    const struct ir_function *callee = v->op->attributes.call.callee;
    if (v->op->operand_count != callee->body.arg_count || v->op->result_count != callee->result_count)
        return verify_fail(v, "%u operands and %u results, but @" STR_FORMAT " has %u and %u",
                           v->op->operand_count, v->op->result_count, STR_ARG(callee->name),
                           callee->body.arg_count, callee->result_count);
    return verify_signature(v, callee, 0, 0);
}

/* Checks that run_parallel has the operands and results of all programs, in their order. */
static bool verify_parallel(struct verifier *v)
{
    const union ir_attributes *a = &v->op->attributes;
    uint64_t operands = 0, results = 0, count = (uint64_t)a->parallel.replicas * a->parallel.partitions;
    for (uint64_t i = 0; i < count; i++) {
        operands += a->parallel.programs[i]->body.arg_count;
        results += a->parallel.programs[i]->result_count;
    }
    if (operands != v->op->operand_count || results != v->op->result_count)
        return verify_fail(v, "%u operands and %u results, but the programs have %llu and %llu",
                           v->op->operand_count, v->op->result_count, (unsigned long long)operands,
                           (unsigned long long)results);
    operands = results = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (!verify_signature(v, a->parallel.programs[i], (uint32_t)operands, (uint32_t)results))
            return false;
        operands += a->parallel.programs[i]->body.arg_count;
        results += a->parallel.programs[i]->result_count;
    }
    return true;
}

/* if, case: checks that every region returns the operation's results. */
static bool verify_branches(struct verifier *v)
{
    const struct ir_type *types[IR_OPERANDS_MAX];
    if (v->op->result_count > IR_OPERANDS_MAX)
        return verify_fail(v, "more than %d results", IR_OPERANDS_MAX);
    if (!verify_scalar(v, "operand", 0, verify_operand(v, 0), v->op->kind == IR_OP_IF ? IR_I1 : IR_I32))
        return false;
    if (v->op->region_count == 0)
        return verify_fail(v, "no branches");
    for (uint32_t i = 0; i < v->op->result_count; i++)
        types[i] = verify_result(v, i);
    for (uint32_t i = 0; i < v->op->region_count; i++) {
        if (!verify_region(v, i, NULL, 0, types, v->op->result_count, true))
            return false;
    }
    return true;
}

static bool verify_while(struct verifier *v)
{
    struct ir_type truth = {.element = IR_I1};
    const struct ir_type *types[IR_OPERANDS_MAX], *truths[1] = {&truth};
    uint32_t n = v->op->operand_count;
    if (n > IR_OPERANDS_MAX)
        return verify_fail(v, "more than %d operands", IR_OPERANDS_MAX);
    for (uint32_t i = 0; i < n; i++)
        types[i] = verify_operand(v, i);
    return verify_results_are_operands(v) && verify_region(v, 0, types, n, truths, 1, true) &&
           verify_region(v, 1, types, n, types, n, true);
}

static bool verify_expect(struct verifier *v)
{
    const union ir_attributes *a = &v->op->attributes;
    unsigned mask = v->op->kind == IR_OP_EXPECT_EQ ? ~(unsigned)CLASS_TOKEN : CLASS_FLOAT | CLASS_COMPLEX;
    if (v->op->operand_count != (a->expect.constant ? 1U : 2U))
        return verify_fail(v, "%u operands, expected %d", v->op->operand_count, a->expect.constant ? 1 : 2);
    if (!verify_class(v, "operand", 0, verify_operand(v, 0), mask))
        return false;
    return a->expect.constant ? verify_is(v, "operand", 0, verify_operand(v, 0), &a->expect.expected.type)
                              : verify_is(v, "operand", 1, verify_operand(v, 1), verify_operand(v, 0));
}

static bool verify_tokens(struct verifier *v)
{
    for (uint32_t i = 0; i < v->op->operand_count; i++) {
        if (!verify_scalar(v, "operand", i, verify_operand(v, i), IR_TOKEN))
            return false;
    }
    return verify_scalar(v, "result", 0, verify_result(v, 0), IR_TOKEN);
}

bool verify_control(struct verifier *v)
{
    switch (v->op->kind) {
    case IR_OP_AFTER_ALL:
        return verify_tokens(v);
    case IR_OP_CALL:
        return verify_call(v);
    case IR_OP_IF:
    case IR_OP_CASE:
        return verify_branches(v);
    case IR_OP_WHILE:
        return verify_while(v);
    case IR_OP_OPTIMIZATION_BARRIER:
        return verify_results_are_operands(v);
    case IR_OP_EXPECT_EQ:
    case IR_OP_EXPECT_CLOSE:
    case IR_OP_EXPECT_ALMOST_EQ:
        return verify_expect(v);
    case IR_OP_RUN_PARALLEL:
        return verify_parallel(v);
    default: /* custom_call: determined by its target; return: checked with its block */
        return true;
    }
}
