/* verify_elementwise.c - operations on each element by itself. */
#include "flow/ir/verify.h"

/* Returns the element types that an operation accepts, as a mask of classes. */
static unsigned elementwise_classes(enum ir_op_kind kind)
{
    switch (kind) {
    case IR_OP_ABS:
    case IR_OP_SIGN:
        return CLASS_SIGNED | CLASS_FLOAT | CLASS_COMPLEX;
    case IR_OP_NEGATE:
    case IR_OP_SUBTRACT:
    case IR_OP_DIVIDE:
    case IR_OP_REMAINDER:
    case IR_OP_POWER:
        return CLASS_NUMBER;
    case IR_OP_ADD:
    case IR_OP_MULTIPLY:
    case IR_OP_MAXIMUM:
    case IR_OP_MINIMUM:
    case IR_OP_CONVERT:
    case IR_OP_COMPARE:
    case IR_OP_SELECT:
    case IR_OP_CLAMP:
        return CLASS_NUMBER | CLASS_BOOL;
    case IR_OP_COUNT_LEADING_ZEROS:
    case IR_OP_POPCNT:
    case IR_OP_SHIFT_LEFT:
    case IR_OP_SHIFT_RIGHT_ARITHMETIC:
    case IR_OP_SHIFT_RIGHT_LOGICAL:
        return CLASS_INTEGER;
    case IR_OP_NOT:
    case IR_OP_AND:
    case IR_OP_OR:
    case IR_OP_XOR:
        return CLASS_INTEGER | CLASS_BOOL;
    case IR_OP_CEIL:
    case IR_OP_FLOOR:
    case IR_OP_ROUND_NEAREST_AFZ:
    case IR_OP_ROUND_NEAREST_EVEN:
    case IR_OP_IS_FINITE:
    case IR_OP_REDUCE_PRECISION:
    case IR_OP_COMPLEX:
        return CLASS_FLOAT;
    default: /* cosine, exponential, real, tanh, ... */
        return CLASS_FLOAT | CLASS_COMPLEX;
    }
}

static enum ir_element element_part(enum ir_element element)
{
    return element == IR_C64 ? IR_F32 : element == IR_C128 ? IR_F64 : element;
}

/* Derives the element type of the result from the operands. */
static bool elementwise_result(struct verifier *v, enum ir_element *element)
{
    *element = verify_operand(v, 0)->element;
    switch (v->op->kind) {
    case IR_OP_ABS:
    case IR_OP_REAL:
    case IR_OP_IMAG:
        *element = element_part(*element);
        return true;
    case IR_OP_IS_FINITE:
    case IR_OP_COMPARE:
        *element = IR_I1;
        return true;
    case IR_OP_COMPLEX:
        if (*element != IR_F32 && *element != IR_F64)
            return verify_fail(v, "operand 0 has elements of type %s, expected f32 or f64",
                               ir_element_name(*element));
        *element = *element == IR_F32 ? IR_C64 : IR_C128;
        return true;
    case IR_OP_CONVERT:
        *element = verify_result(v, 0)->element;
        return verify_class(v, "result", 0, verify_result(v, 0), elementwise_classes(IR_OP_CONVERT));
    default:
        return true;
    }
}

static bool verify_compare(struct verifier *v)
{
    unsigned class = element_class(verify_operand(v, 0)->element), mask = ~0U;
    switch (v->op->attributes.compare.type) {
    case IR_COMPARE_FLOAT:
        mask = CLASS_FLOAT | CLASS_COMPLEX;
        break;
    case IR_COMPARE_TOTALORDER:
        mask = CLASS_FLOAT;
        break;
    case IR_COMPARE_SIGNED:
        mask = CLASS_SIGNED;
        break;
    case IR_COMPARE_UNSIGNED:
        mask = CLASS_UNSIGNED | CLASS_BOOL;
        break;
    default:
        break;
    }
    if (!(class & mask))
        return verify_fail(v, "elements of type %s cannot be compared so",
                           ir_element_name(verify_operand(v, 0)->element));
    return class != CLASS_COMPLEX || v->op->attributes.compare.direction <= IR_NE ||
           verify_fail(v, "complex numbers are compared by EQ and NE alone");
}

/* clamp: bounds may be scalars; select: the predicate may be. */
static bool verify_ternary(struct verifier *v)
{
    const struct ir_type *value = verify_operand(v, 1);
    bool clamp = v->op->kind == IR_OP_CLAMP;
    if (clamp) {
        for (uint32_t i = 0; i < 3; i += 2) {
            struct ir_type wanted = *value;
            if (verify_operand(v, i)->rank == 0)
                wanted.rank = 0;
            if (!verify_is(v, "operand", i, verify_operand(v, i), &wanted))
                return false;
        }
    } else {
        struct ir_type wanted = *value;
        wanted.element = IR_I1;
        if (verify_operand(v, 0)->rank == 0)
            wanted.rank = 0;
        if (!verify_is(v, "operand", 0, verify_operand(v, 0), &wanted) ||
            !verify_is(v, "operand", 2, verify_operand(v, 2), value))
            return false;
    }
    return verify_class(v, "operand", 1, value, elementwise_classes(v->op->kind)) &&
           verify_is(v, "result", 0, verify_result(v, 0), value);
}

bool verify_elementwise(struct verifier *v)
{
    enum ir_element element;
    if (v->op->kind == IR_OP_CLAMP || v->op->kind == IR_OP_SELECT)
        return verify_ternary(v);
    if (!verify_class(v, "operand", 0, verify_operand(v, 0), elementwise_classes(v->op->kind)))
        return false;
    for (uint32_t i = 1; i < v->op->operand_count; i++) {
        if (!verify_is(v, "operand", i, verify_operand(v, i), verify_operand(v, 0)))
            return false;
    }
    if (!elementwise_result(v, &element))
        return false;
    struct ir_type wanted = *verify_operand(v, 0);
    wanted.element = element;
    if (!verify_is(v, "result", 0, verify_result(v, 0), &wanted))
        return false;
    if (v->op->kind == IR_OP_COMPARE)
        return verify_compare(v);
    if (v->op->kind == IR_OP_REDUCE_PRECISION) {
        int32_t exponent = v->op->attributes.precision.exponent_bits;
        int32_t mantissa = v->op->attributes.precision.mantissa_bits;
        return (exponent >= 1 && exponent <= 64 && mantissa >= 0 && mantissa <= 64) ||
               verify_fail(v, "a format with %d exponent bits and %d mantissa bits", exponent, mantissa);
    }
    return true;
}
