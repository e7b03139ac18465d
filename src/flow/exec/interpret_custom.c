/* interpret_custom.c - custom calls that stand for functions of the CHLO dialect ("@mhlo.erf"). */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "flow/exec/interpret.h"
#include "flow/exec/lanes.h"

struct custom_function {
    const char *target;
    double (*of_one)(double);
    double (*of_two)(double, double);
};

static const struct custom_function FUNCTIONS[] = {
    {"mhlo.acos", acos, NULL},     {"mhlo.acosh", acosh, NULL}, {"mhlo.asin", asin, NULL},
    {"mhlo.asinh", asinh, NULL},   {"mhlo.atan", atan, NULL},   {"mhlo.atanh", atanh, NULL},
    {"mhlo.cosh", cosh, NULL},     {"mhlo.erf", erf, NULL},     {"mhlo.erfc", erfc, NULL},
    {"mhlo.lgamma", lgamma, NULL}, {"mhlo.sinh", sinh, NULL},   {"mhlo.tan", tan, NULL},
};

static const struct custom_function *function_of(struct str target)
{
    for (size_t k = 0; k < sizeof FUNCTIONS / sizeof *FUNCTIONS; k++)
        if (str_equal(target, str_from(FUNCTIONS[k].target)))
            return &FUNCTIONS[k];
    return NULL;
}

int interpret_custom(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                     struct tensor **results)
{
    struct str target = op->attributes.custom.target;
    const struct custom_function *function = function_of(target);
    uint32_t arity = function && function->of_two ? 2 : 1;
    if (!function || op->operand_count != arity || op->result_count != 1)
        return interpret_fail(run, op, ERROR_UNSUPPORTED, "@%.*s is not known", STR_ARG(target));
    enum ir_element element = operands[0]->type.element;
    if (lane_class_of(element) != LANE_FLOAT || !ir_type_equal(&operands[0]->type, &op->results[0].type) ||
        (arity == 2 && !ir_type_equal(&operands[1]->type, &op->results[0].type)))
        return interpret_fail(run, op, ERROR_UNSUPPORTED, "@%.*s of %s", STR_ARG(target),
                              ir_element_name(element));
    struct tensor *result = interpret_result(run, op, 0);
    if (!result)
        return ERROR_LIMIT;
    int64_t elements = ir_type_elements(&result->type);
    for (int64_t first = 0; first < elements; first += LANES) {
        uint32_t count = elements - first < LANES ? (uint32_t)(elements - first) : LANES;
        union lanes x, y;
        lanes_load(&x, element, operands[0]->data, first, 1, count);
        if (arity == 2)
            lanes_load(&y, element, operands[1]->data, first, 1, count);
        for (uint32_t k = 0; k < count; k++)
            x.f[k] = arity == 2 ? function->of_two(x.f[k], y.f[k]) : function->of_one(x.f[k]);
        lanes_store(&x, element, result->data, first, count);
    }
    results[0] = result;
    return 0;
}
