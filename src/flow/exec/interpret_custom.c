/* interpret_custom.c - custom calls that represent functions of the CHLO dialect ("@mhlo.erf"). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "flow/exec/custom.h"
#include "flow/exec/fold.h"
#include "flow/exec/interpret.h"
#include "flow/exec/lanes.h"

static double number_square(double x)
{
    return x * x;
}

static double number_is_inf(double x)
{
    return isinf(x) != 0;
}

static double number_is_pos_inf(double x)
{
    return x == INFINITY;
}

static double number_is_neg_inf(double x)
{
    return x == -INFINITY;
}

/* Functions of floats, computed in double and rounded once. */
struct custom_function {
    const char *target;
    double (*of_one)(double);
    double (*of_two)(double, double);
    bool is_test; /* the result is i1 */
};

static const struct custom_function FUNCTIONS[] = {
    {"mhlo.acos", acos, NULL, false},
    {"mhlo.acosh", acosh, NULL, false},
    {"mhlo.asin", asin, NULL, false},
    {"mhlo.asinh", asinh, NULL, false},
    {"mhlo.atan", atan, NULL, false},
    {"mhlo.atanh", atanh, NULL, false},
    {"mhlo.bessel_i1e", special_bessel_i1e, NULL, false},
    {"mhlo.cosh", cosh, NULL, false},
    {"mhlo.digamma", special_digamma, NULL, false},
    {"mhlo.erf", erf, NULL, false},
    {"mhlo.erf_inv", special_erf_inv, NULL, false},
    {"mhlo.erfc", erfc, NULL, false},
    {"mhlo.is_inf", number_is_inf, NULL, true},
    {"mhlo.is_neg_inf", number_is_neg_inf, NULL, true},
    {"mhlo.is_pos_inf", number_is_pos_inf, NULL, true},
    {"mhlo.lgamma", special_lgamma, NULL, false},
    {"mhlo.polygamma", NULL, special_polygamma, false},
    {"mhlo.sinh", sinh, NULL, false},
    {"mhlo.square", number_square, NULL, false},
    {"mhlo.tan", tan, NULL, false},
    {"mhlo.zeta", NULL, special_zeta, false},
};

static const struct custom_function *custom_function_of(struct str target)
{
    for (size_t k = 0; k < sizeof FUNCTIONS / sizeof *FUNCTIONS; k++)
        if (str_is(target, FUNCTIONS[k].target))
            return &FUNCTIONS[k];
    return NULL;
}

/* --- next_after: the neighbour among the numbers of the type */

/* Returns the neighbour of x towards y. Floats are stored as sign and magnitude: bits count up from 0 on both
 * sides. */
static uint64_t bits_next_after(uint64_t x, uint64_t y, unsigned width)
{
    uint64_t sign = UINT64_C(1) << (width - 1), magnitude = sign - 1;
    if (x == y || ((x | y) & magnitude) == 0)
        return y;
    if ((x & magnitude) == 0)
        return (y & sign) | 1;
    int64_t a = x & sign ? -(int64_t)(x & magnitude) : (int64_t)x;
    int64_t b = y & sign ? -(int64_t)(y & magnitude) : (int64_t)y;
    bool outward = x & sign ? b < a : b > a;
    return outward ? x + 1 : x - 1;
}

static void next_after(const struct tensor *from, const struct tensor *towards, struct tensor *result)
{
    enum ir_element element = result->type.element;
    size_t size = ir_element_size(element);
    for (int64_t k = 0; k < ir_type_elements(&result->type); k++) {
        union lanes a, b;
        uint64_t x = 0, y = 0;
        lanes_load(&a, element, from->data, k, 0, 1);
        lanes_load(&b, element, towards->data, k, 0, 1);
        memcpy(&x, (const char *)from->data + (size_t)k * size, size);
        memcpy(&y, (const char *)towards->data + (size_t)k * size, size);
        x = bits_next_after(x, y, (unsigned)(8 * size));
        if (!isnan(a.f[0]) && !isnan(b.f[0])) {
            memcpy((char *)result->data + (size_t)k * size, &x, size);
            continue;
        }
        a.f[0] = NAN;
        lanes_store(&a, element, result->data, k, 1);
    }
}

/* --- topk: the largest elements of the last dimension; among equals the first comes first */

struct ranked {
    double key;
    int64_t at;
};

static int ranked_compare(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    bool x_nan = isnan(x->key), y_nan = isnan(y->key); /* NaN is the largest, as in XLA's total order */
    if (x_nan != y_nan)
        return x_nan ? -1 : 1;
    if (!x_nan && x->key != y->key)
        return x->key > y->key ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static int topk(struct interpretation *run, const struct ir_op *op, const struct tensor *operand,
                struct tensor **results)
{
    const struct ir_type *type = &operand->type;
    int64_t length = type->dims[type->rank - 1], count = op->results[0].type.dims[type->rank - 1];
    struct tensor *values = interpret_result(run, op, 0), *places = interpret_result(run, op, 1);
    struct ranked *line = calloc((size_t)length + 1, sizeof *line);
    if (!values || !places || !line) {
        tensor_unref(values), tensor_unref(places), free(line);
        return interpret_fail(run, op, ERROR_LIMIT, "no memory for the order");
    }
    for (int64_t from = 0, to = 0; from < ir_type_elements(type); from += length, to += count) {
        for (int64_t k = 0; k < length; k++) {
            union lanes x;
            lanes_load(&x, type->element, operand->data, from + k, 0, 1);
            lanes_convert(&x, type->element, IR_F64, 1);
            line[k] = (struct ranked){x.f[0], k};
        }
        qsort(line, (size_t)length, sizeof *line, ranked_compare);
        for (int64_t k = 0; k < count; k++) {
            element_copy(values, to + k, operand, from + line[k].at);
            ((int32_t *)places->data)[to + k] = (int32_t)line[k].at;
        }
    }
    free(line);
    results[0] = values;
    results[1] = places;
    return 0;
}

/* Whether topk supports these types. Elements must fit a double, which 64-bit integers do not. */
static bool topk_known(const struct ir_op *op)
{
    if (op->operand_count != 1 || op->result_count != 2)
        return false;
    const struct ir_type *operand = &op->operands[0]->type, *values = &op->results[0].type;
    const struct ir_type *places = &op->results[1].type;
    enum lane_class class = lane_class_of(operand->element);
    bool fits = class == LANE_FLOAT ||
                ((class == LANE_SIGNED || class == LANE_UNSIGNED) && ir_element_size(operand->element) < 8);
    if (!fits || operand->rank < 1 || operand->rank != values->rank || values->element != operand->element ||
        places->element != IR_I32)
        return false;
    int32_t last = operand->rank - 1;
    struct ir_type rows = *operand, row_places = *values;
    rows.dims[last] = values->dims[last];
    row_places.element = IR_I32;
    return ir_type_equal(&rows, values) && ir_type_equal(&row_places, places) &&
           values->dims[last] <= operand->dims[last] && operand->dims[last] <= INT32_MAX;
}

/* --- the call */

bool custom_known(const struct ir_op *op)
{
    struct str target = op->attributes.custom.target;
    if (str_is(target, "mhlo.topk"))
        return topk_known(op);
    const struct custom_function *function = custom_function_of(target);
    bool next = str_is(target, "mhlo.next_after");
    uint32_t arity = next || (function && function->of_two) ? 2 : 1;
    if ((!function && !next) || op->operand_count != arity || op->result_count != 1)
        return false;
    struct ir_type wanted = op->operands[0]->type;
    if (lane_class_of(wanted.element) != LANE_FLOAT || (next && ir_element_size(wanted.element) < 2) ||
        (arity == 2 && !ir_type_equal(&op->operands[1]->type, &wanted)))
        return false;
    if (function && function->is_test)
        wanted.element = IR_I1;
    return ir_type_equal(&op->results[0].type, &wanted);
}

static void custom_step(const struct ir_op *op, enum ir_element element, union lanes *x, uint32_t count)
{
    const struct custom_function *function = custom_function_of(op->attributes.custom.target);
    for (uint32_t k = 0; k < count; k++)
        x[0].f[k] = function->of_two ? function->of_two(x[0].f[k], x[1].f[k]) : function->of_one(x[0].f[k]);
    if (function->is_test)
        lanes_convert(&x[0], IR_F64, IR_I1, count);
}

int interpret_custom(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                     struct tensor **results)
{
    CHECK(custom_known(op)); /* plan_supported */
    struct str target = op->attributes.custom.target;
    if (str_is(target, "mhlo.topk"))
        return topk(run, op, operands[0], results);
    struct tensor *result = interpret_result(run, op, 0);
    if (!str_is(target, "mhlo.next_after"))
        return interpret_by_lanes(op, operands, custom_step, result, results);
    if (!result)
        return ERROR_LIMIT;
    next_after(operands[0], operands[1], result);
    results[0] = result;
    return 0;
}
