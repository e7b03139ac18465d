/* interpret_expect.c - the checks of test programs. A failed check fails the program. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "flow/exec/interpret.h"
#include "flow/exec/lanes.h"

enum { NUMBER_TEXT = 80 };

/* The digits of the mantissa, including the implicit one, and the exponent of the smallest normal number. */
struct precision {
    int digits, least;
};

static struct precision precision_of(enum ir_element element)
{
    switch (element) {
    case IR_F8E4M3FN:
        return (struct precision){4, -6};
    case IR_F8E5M2:
        return (struct precision){3, -14};
    case IR_BF16:
        return (struct precision){8, -126};
    case IR_F16:
        return (struct precision){11, -14};
    case IR_F32:
    case IR_C64:
        return (struct precision){24, -126};
    default:
        return (struct precision){53, -1022};
    }
}

/* Returns the position of a float in the order of all floats of its type: neighbours differ by one. */
static double float_place(double number, struct precision precision)
{
    if (number == 0)
        return 0;
    double magnitude = fabs(number), normal = scalbn(1, precision.least);
    double per_octave = scalbn(1, precision.digits - 1), place;
    if (isinf(magnitude))
        place = scalbn(1, 62);
    else if (magnitude < normal)
        place = magnitude / normal * per_octave;
    else {
        int exponent = ilogb(magnitude);
        place = (exponent - precision.least + 1 + (scalbn(magnitude, -exponent) - 1)) * per_octave;
    }
    return number < 0 ? -place : place;
}

/* Whether two floats are the same, or as many units in the last place apart as the check allows. */
static bool floats_agree(const struct ir_op *op, enum ir_element element, double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (op->kind == IR_OP_EXPECT_EQ)
        return a == b;
    if (op->kind == IR_OP_EXPECT_ALMOST_EQ)
        return a == b || fabs(a - b) <= op->attributes.expect.tolerance;
    struct precision precision = precision_of(element);
    double apart = fabs(float_place(a, precision) - float_place(b, precision));
    return apart >= op->attributes.expect.min_ulp && apart <= op->attributes.expect.max_ulp;
}

static bool elements_agree(const struct ir_op *op, enum ir_element element, const union lanes *a,
                           const union lanes *b, uint32_t k)
{
    switch (lane_class_of(element)) {
    case LANE_FLOAT:
        return floats_agree(op, element, a->f[k], b->f[k]);
    case LANE_COMPLEX:
        return floats_agree(op, element, creal(a->c[k]), creal(b->c[k])) &&
               floats_agree(op, element, cimag(a->c[k]), cimag(b->c[k]));
    default:
        return a->u[k] == b->u[k];
    }
}

static void number_text(enum ir_element element, const union lanes *numbers, uint32_t k,
                        char text[NUMBER_TEXT])
{
    switch (lane_class_of(element)) {
    case LANE_FLOAT:
        snprintf(text, NUMBER_TEXT, "%.9g", numbers->f[k]);
        break;
    case LANE_COMPLEX:
        snprintf(text, NUMBER_TEXT, "(%.9g, %.9g)", creal(numbers->c[k]), cimag(numbers->c[k]));
        break;
    case LANE_SIGNED:
        snprintf(text, NUMBER_TEXT, "%lld", (long long)numbers->i[k]);
        break;
    default:
        snprintf(text, NUMBER_TEXT, "%llu", (unsigned long long)numbers->u[k]);
    }
}

static int tensors_compare(struct interpretation *run, const struct ir_op *op, const struct tensor *actual,
                           const struct tensor *expected)
{
    enum ir_element element = actual->type.element;
    int64_t elements = ir_type_elements(&actual->type);
    for (int64_t first = 0; first < elements; first += LANES) {
        uint32_t count = lanes_count(elements, first);
        union lanes a, b;
        lanes_load(&a, element, actual->data, first, 1, count);
        lanes_load(&b, element, expected->data, first, 1, count);
        for (uint32_t k = 0; k < count; k++) {
            if (elements_agree(op, element, &a, &b, k))
                continue;
            char got[NUMBER_TEXT], wanted[NUMBER_TEXT];
            number_text(element, &a, k, got), number_text(element, &b, k, wanted);
            return interpret_fail(run, op, ERROR_INVALID, "element %lld is %s, expected %s",
                                  (long long)(first + k), got, wanted);
        }
    }
    return 0;
}

int interpret_expect(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                     struct tensor **results)
{
    if (!op->attributes.expect.constant)
        return tensors_compare(run, op, operands[0], operands[1]);
    struct tensor *expected = tensor_of_literal(&op->attributes.expect.expected);
    if (!expected)
        return interpret_fail(run, op, ERROR_LIMIT, "no memory for the expected value");
    int code = tensors_compare(run, op, operands[0], expected);
    tensor_unref(expected);
    return code;
}
