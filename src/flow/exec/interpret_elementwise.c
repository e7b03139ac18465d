/* interpret_elementwise.c - operations that work on one element of each operand at a time. */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "flow/exec/interpret.h"
#include "flow/exec/kernels.h"
#include "flow/exec/lanes.h"

#define EACH(statement)                                                                                      \
    for (uint32_t k = 0; k < count; k++) {                                                                   \
        statement;                                                                                           \
    }                                                                                                        \
    return true

/* Returns the bits of an integer without sign extension. */
static uint64_t bits_of(uint64_t number, unsigned width)
{
    return width == 64 ? number : number & ((UINT64_C(1) << width) - 1);
}

int interpret_by_lanes(const struct ir_op *op, struct tensor *const *operands, lanes_step *step,
                       struct tensor *result, struct tensor **results)
{
    enum ir_element element = operands[0]->type.element;
    if (!result)
        return ERROR_LIMIT;
    CHECK(op->operand_count <= 3 && op->result_count == 1);
    int64_t elements = ir_type_elements(&result->type);
    for (int64_t first = 0; first < elements; first += LANES) {
        uint32_t count = lanes_count(elements, first);
        union lanes x[3];
        for (uint32_t k = 0; k < op->operand_count; k++) {
            bool scalar = operands[k]->type.rank == 0;
            lanes_load(&x[k], element, operands[k]->data, scalar ? 0 : first, !scalar, count);
        }
        step(op, element, x, count);
        lanes_store(&x[0], result->type.element, result->data, first, count);
    }
    results[0] = result;
    return 0;
}

/* --- one operand */

static bool unary_float(enum ir_op_kind kind, double *x, uint32_t count)
{
    switch (kind) {
    case IR_OP_ABS:
        EACH(x[k] = fabs(x[k]));
    case IR_OP_CBRT:
        EACH(x[k] = cbrt(x[k]));
    case IR_OP_CEIL:
        EACH(x[k] = ceil(x[k]));
    case IR_OP_COSINE:
        EACH(x[k] = cos(x[k]));
    case IR_OP_EXPONENTIAL:
        EACH(x[k] = exp(x[k]));
    case IR_OP_EXPONENTIAL_MINUS_ONE:
        EACH(x[k] = expm1(x[k]));
    case IR_OP_FLOOR:
        EACH(x[k] = floor(x[k]));
    case IR_OP_IMAG:
        EACH(x[k] = 0);
    case IR_OP_REAL:
        EACH();
    case IR_OP_LOG:
        EACH(x[k] = log(x[k]));
    case IR_OP_LOG_PLUS_ONE:
        EACH(x[k] = log1p(x[k]));
    case IR_OP_LOGISTIC:
        EACH(x[k] = 1 / (1 + exp(-x[k])));
    case IR_OP_NEGATE:
        EACH(x[k] = -x[k]);
    case IR_OP_ROUND_NEAREST_AFZ:
        EACH(x[k] = round(x[k]));
    case IR_OP_ROUND_NEAREST_EVEN:
        EACH(x[k] = nearbyint(x[k]));
    case IR_OP_RSQRT:
        EACH(x[k] = 1 / sqrt(x[k]));
    case IR_OP_SIGN:
        EACH(x[k] = isnan(x[k]) || x[k] == 0 ? x[k] : copysign(1, x[k]));
    case IR_OP_SINE:
        EACH(x[k] = sin(x[k]));
    case IR_OP_SQRT:
        EACH(x[k] = sqrt(x[k]));
    case IR_OP_TAN:
        EACH(x[k] = tan(x[k]));
    case IR_OP_TANH:
        EACH(x[k] = tanh(x[k]));
    default:
        return false;
    }
}

/* exp(z) - 1 without cancellation near 0. */
static double complex complex_expm1(double complex z)
{
    double a = creal(z), b = cimag(z), half = sin(b / 2);
    return lane_pair(expm1(a) * cos(b) - 2 * half * half, exp(a) * sin(b));
}

/* log(1 + z) without cancellation near 0: |1 + z|² - 1 = a (2 + a) + b². */
static double complex complex_log1p(double complex z)
{
    double a = creal(z), b = cimag(z);
    return lane_pair(fabs(a) < 0.5 && fabs(b) < 0.5 ? log1p(a * (2 + a) + b * b) / 2 : log(hypot(1 + a, b)),
                     atan2(b, 1 + a));
}

static bool unary_complex(enum ir_op_kind kind, double complex *x, uint32_t count)
{
    switch (kind) {
    case IR_OP_CBRT:
        EACH(x[k] = cpow(x[k], 1.0 / 3));
    case IR_OP_COSINE:
        EACH(x[k] = ccos(x[k]));
    case IR_OP_EXPONENTIAL:
        EACH(x[k] = cexp(x[k]));
    case IR_OP_EXPONENTIAL_MINUS_ONE:
        EACH(x[k] = complex_expm1(x[k]));
    case IR_OP_LOG:
        EACH(x[k] = clog(x[k]));
    case IR_OP_LOG_PLUS_ONE:
        EACH(x[k] = complex_log1p(x[k]));
    case IR_OP_LOGISTIC:
        EACH(x[k] = 1 / (1 + cexp(-x[k])));
    case IR_OP_NEGATE:
        EACH(x[k] = -x[k]);
    case IR_OP_RSQRT:
        EACH(x[k] = 1 / csqrt(x[k]));
    case IR_OP_SIGN:
        EACH(x[k] = x[k] == 0 ? 0 : x[k] / cabs(x[k]));
    case IR_OP_SINE:
        EACH(x[k] = csin(x[k]));
    case IR_OP_SQRT:
        EACH(x[k] = csqrt(x[k]));
    case IR_OP_TAN:
        EACH(x[k] = ctan(x[k]));
    case IR_OP_TANH:
        EACH(x[k] = ctanh(x[k]));
    default:
        return false;
    }
}

static bool unary_integer(enum ir_op_kind kind, enum ir_element element, union lanes *x, uint32_t count)
{
    bool is_signed = lane_class_of(element) == LANE_SIGNED;
    unsigned width = ir_element_bits(element);
    switch (kind) {
    case IR_OP_ABS:
        EACH(x->u[k] = is_signed && x->i[k] < 0 ? -x->u[k] : x->u[k]);
    case IR_OP_COUNT_LEADING_ZEROS:
        EACH(uint64_t bits = bits_of(x->u[k], width);
             x->u[k] = bits ? (uint64_t)__builtin_clzll(bits) - (64 - width) : width);
    case IR_OP_NEGATE:
        EACH(x->u[k] = -x->u[k]);
    case IR_OP_NOT:
        EACH(x->u[k] = element == IR_I1 ? !x->u[k] : ~x->u[k]);
    case IR_OP_POPCNT:
        EACH(x->u[k] = (uint64_t)__builtin_popcountll(bits_of(x->u[k], width)));
    case IR_OP_SIGN:
        EACH(x->i[k] = x->u[k] == 0 ? 0 : is_signed && x->i[k] < 0 ? -1 : 1);
    default:
        return false;
    }
}

/* Computes operations whose result has another class than their operand. */
static bool unary_crossing(enum ir_op_kind kind, enum lane_class class, union lanes *x, uint32_t count)
{
    if (kind == IR_OP_IS_FINITE && class == LANE_FLOAT) {
        EACH(x->u[k] = isfinite(x->f[k]));
    }
    if (class != LANE_COMPLEX)
        return false;
    /* Ascending order, because f[k] is stored at or before c[k]. */
    if (kind == IR_OP_ABS) {
        EACH(x->f[k] = cabs(x->c[k]));
    }
    if (kind == IR_OP_REAL) {
        EACH(x->f[k] = creal(x->c[k]));
    }
    if (kind == IR_OP_IMAG) {
        EACH(x->f[k] = cimag(x->c[k]));
    }
    return false;
}

bool lanes_unary(enum ir_op_kind kind, enum ir_element element, union lanes *x, uint32_t count)
{
    CHECK(count <= LANES);
    enum lane_class class = lane_class_of(element);
    if (unary_crossing(kind, class, x, count))
        return true;
    if (class == LANE_FLOAT)
        return unary_float(kind, x->f, count);
    if (class == LANE_COMPLEX)
        return unary_complex(kind, x->c, count);
    return class != LANE_NONE && unary_integer(kind, element, x, count);
}

static void unary_step(const struct ir_op *op, enum ir_element element, union lanes *x, uint32_t count)
{
    bool known = lanes_unary(op->kind, element, &x[0], count);
    CHECK(known); /* plan_supported */
}

int interpret_unary(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                    struct tensor **results)
{
    const struct tensor *operand = operands[0];
    struct tensor *result = interpret_result(run, op, 0);
    results[0] = result;
    if (result && operand->type.element == result->type.element &&
        kernel_unary(op->kind, operand->type.element, operand->data, ir_type_elements(&result->type),
                     result->data))
        return 0;
    return interpret_by_lanes(op, operands, unary_step, result, results);
}

/* --- two operands */

/* The larger and smaller of two numbers; NaN wins, and -0 is below +0. */
static double float_maximum(double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    return a > b || (a == b && !signbit(a)) ? a : b;
}

static double float_minimum(double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    return a < b || (a == b && signbit(a)) ? a : b;
}

static bool binary_float(enum ir_op_kind kind, double *x, const double *y, uint32_t count)
{
    switch (kind) {
    case IR_OP_ADD:
        EACH(x[k] += y[k]);
    case IR_OP_ATAN2:
        EACH(x[k] = atan2(x[k], y[k]));
    case IR_OP_DIVIDE:
        EACH(x[k] /= y[k]);
    case IR_OP_MAXIMUM:
        EACH(x[k] = float_maximum(x[k], y[k]));
    case IR_OP_MINIMUM:
        EACH(x[k] = float_minimum(x[k], y[k]));
    case IR_OP_MULTIPLY:
        EACH(x[k] *= y[k]);
    case IR_OP_POWER:
        EACH(x[k] = pow(x[k], y[k]));
    case IR_OP_REMAINDER:
        EACH(x[k] = fmod(x[k], y[k]));
    case IR_OP_SUBTRACT:
        EACH(x[k] -= y[k]);
    default:
        return false;
    }
}

/* Complex numbers are ordered by their real parts, then by their imaginary parts. */
static bool complex_below(double complex a, double complex b)
{
    return creal(a) != creal(b) ? creal(a) < creal(b) : cimag(a) < cimag(b);
}

/* atan2(y, x) of complex numbers: -i log((x + i y) / sqrt(x² + y²)). */
static double complex complex_atan2(double complex y, double complex x)
{
    return -I * clog((x + I * y) / csqrt(x * x + y * y));
}

static bool binary_complex(enum ir_op_kind kind, double complex *x, const double complex *y, uint32_t count)
{
    switch (kind) {
    case IR_OP_ADD:
        EACH(x[k] += y[k]);
    case IR_OP_ATAN2:
        EACH(x[k] = complex_atan2(x[k], y[k]));
    case IR_OP_DIVIDE:
        EACH(x[k] /= y[k]);
    case IR_OP_MAXIMUM:
        EACH(x[k] = complex_below(x[k], y[k]) ? y[k] : x[k]);
    case IR_OP_MINIMUM:
        EACH(x[k] = complex_below(y[k], x[k]) ? y[k] : x[k]);
    case IR_OP_MULTIPLY:
        EACH(x[k] *= y[k]);
    case IR_OP_POWER:
        EACH(x[k] = x[k] == 0 ? (y[k] == 0 ? 1 : 0) : cpow(x[k], y[k]));
    case IR_OP_SUBTRACT:
        EACH(x[k] -= y[k]);
    default:
        return false;
    }
}

/* Divides as XLA does: division by zero gives -1 (all ones) and the dividend as remainder; the least number
 * divided by -1 gives itself. */
static int64_t signed_divide(int64_t a, int64_t b)
{
    if (b == 0)
        return -1;
    return b == -1 ? (int64_t) - (uint64_t)a : a / b;
}

static int64_t signed_remainder(int64_t a, int64_t b)
{
    if (b == 0)
        return a;
    return b == -1 ? 0 : a % b;
}

/* Returns a^b modulo 2^64. A negative exponent gives the integral part of the quotient. */
static uint64_t integer_power(uint64_t a, uint64_t b, bool is_signed)
{
    if (is_signed && (int64_t)b < 0) {
        if (a == 1)
            return 1;
        if ((int64_t)a == -1)
            return b & 1 ? (uint64_t)-1 : 1;
        return a == 0 ? (uint64_t)-1 : 0;
    }
    uint64_t power = 1;
    for (; b; b >>= 1, a *= a)
        if (b & 1)
            power *= a;
    return power;
}

static bool binary_shift(enum ir_op_kind kind, union lanes *x, const union lanes *y, unsigned width,
                         uint32_t count)
{
    switch (kind) {
    case IR_OP_SHIFT_LEFT:
        EACH(x->u[k] = y->u[k] < width ? x->u[k] << y->u[k] : 0);
    case IR_OP_SHIFT_RIGHT_ARITHMETIC:
        EACH(int64_t wide = (int64_t)(x->u[k] << (64 - width)) >> (64 - width); /* of unsigned types too */
             x->i[k] = wide >> (y->u[k] < width ? y->u[k] : 63));
    case IR_OP_SHIFT_RIGHT_LOGICAL:
        EACH(x->u[k] = y->u[k] < width ? bits_of(x->u[k], width) >> y->u[k] : 0);
    default:
        return false;
    }
}

static bool binary_bits(enum ir_op_kind kind, union lanes *x, const union lanes *y, uint32_t count)
{
    switch (kind) {
    case IR_OP_ADD:
        EACH(x->u[k] += y->u[k]);
    case IR_OP_AND:
        EACH(x->u[k] &= y->u[k]);
    case IR_OP_MULTIPLY:
        EACH(x->u[k] *= y->u[k]);
    case IR_OP_OR:
        EACH(x->u[k] |= y->u[k]);
    case IR_OP_SUBTRACT:
        EACH(x->u[k] -= y->u[k]);
    case IR_OP_XOR:
        EACH(x->u[k] ^= y->u[k]);
    default:
        return false;
    }
}

static bool binary_integer(enum ir_op_kind kind, enum ir_element element, union lanes *x,
                           const union lanes *y, uint32_t count)
{
    bool is_signed = lane_class_of(element) == LANE_SIGNED;
    if (element == IR_I1 && (kind == IR_OP_ADD || kind == IR_OP_MULTIPLY)) /* or, and */
        kind = kind == IR_OP_ADD ? IR_OP_OR : IR_OP_AND;
    switch (kind) {
    case IR_OP_DIVIDE:
        EACH(x->u[k] = is_signed      ? (uint64_t)signed_divide(x->i[k], y->i[k])
                       : y->u[k] == 0 ? UINT64_MAX
                                      : x->u[k] / y->u[k]);
    case IR_OP_MAXIMUM:
        EACH(x->u[k] = (is_signed ? x->i[k] > y->i[k] : x->u[k] > y->u[k]) ? x->u[k] : y->u[k]);
    case IR_OP_MINIMUM:
        EACH(x->u[k] = (is_signed ? x->i[k] < y->i[k] : x->u[k] < y->u[k]) ? x->u[k] : y->u[k]);
    case IR_OP_POWER:
        EACH(x->u[k] = integer_power(x->u[k], y->u[k], is_signed));
    case IR_OP_REMAINDER:
        EACH(x->u[k] = is_signed      ? (uint64_t)signed_remainder(x->i[k], y->i[k])
                       : y->u[k] == 0 ? x->u[k]
                                      : x->u[k] % y->u[k]);
    default:
        return binary_bits(kind, x, y, count) || binary_shift(kind, x, y, ir_element_bits(element), count);
    }
}

bool lanes_binary(enum ir_op_kind kind, enum ir_element element, union lanes *x, const union lanes *y,
                  uint32_t count)
{
    enum lane_class class = lane_class_of(element);
    if (class == LANE_FLOAT)
        return binary_float(kind, x->f, y->f, count);
    return class == LANE_COMPLEX ? binary_complex(kind, x->c, y->c, count)
                                 : binary_integer(kind, element, x, y, count);
}

static void binary_step(const struct ir_op *op, enum ir_element element, union lanes *x, uint32_t count)
{
    bool known = op->kind == IR_OP_COMPLEX || lanes_binary(op->kind, element, &x[0], &x[1], count);
    CHECK(known);                                                      /* plan_supported */
    for (uint32_t k = op->kind == IR_OP_COMPLEX ? count : 0; k-- > 0;) /* c[k] is stored at or after f[k] */
        x[0].c[k] = lane_pair(x[0].f[k], x[1].f[k]);
}

int interpret_binary(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                     struct tensor **results)
{
    struct tensor *result = interpret_result(run, op, 0);
    results[0] = result;
    if (result && kernel_binary(op->kind, operands[0]->type.element, operands[0]->data, operands[1]->data,
                                ir_type_elements(&result->type), result->data))
        return 0;
    return interpret_by_lanes(op, operands, binary_step, result, results);
}

/* --- comparison */

/* Maps floats to integers in their total order (IEEE 754): -NaN < -inf < … < -0 < +0 < … < +inf < NaN. */
static int64_t float_total(double number)
{
    int64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits < 0 ? (int64_t)(UINT64_C(0x7fffffffffffffff) ^ (uint64_t)bits) : bits;
}

/* Whether the direction holds, given that a is below b, equal to it, or neither (above, or unordered). */
static bool direction_holds(enum ir_compare_direction direction, bool below, bool equal, bool above)
{
    switch (direction) {
    case IR_EQ:
        return equal;
    case IR_NE:
        return !equal;
    case IR_GE:
        return above || equal;
    case IR_GT:
        return above;
    case IR_LE:
        return below || equal;
    case IR_LT:
        return below;
    }
    return false;
}

static void compare_step(const struct ir_op *op, enum ir_element element, union lanes *x, uint32_t count)
{
    enum lane_class class = lane_class_of(element);
    const union lanes *y = &x[1];
    enum ir_compare_direction direction = op->attributes.compare.direction;
    bool total = op->attributes.compare.type == IR_COMPARE_TOTALORDER;
    for (uint32_t k = 0; k < count; k++) { /* u[k] is stored at or before all members of number k */
        bool below, equal, above;
        if (class == LANE_FLOAT && total) {
            int64_t a = float_total(x->f[k]), b = float_total(y->f[k]);
            below = a<b, equal = a == b, above = a> b;
        } else if (class == LANE_FLOAT) {
            below = x->f[k]<y->f[k], equal = x->f[k] == y->f[k], above = x->f[k]> y->f[k];
        } else if (class == LANE_COMPLEX) {
            below = complex_below(x->c[k], y->c[k]), equal = x->c[k] == y->c[k];
            above = complex_below(y->c[k], x->c[k]);
        } else if (class == LANE_SIGNED) {
            below = x->i[k]<y->i[k], equal = x->i[k] == y->i[k], above = x->i[k]> y->i[k];
        } else {
            below = x->u[k]<y->u[k], equal = x->u[k] == y->u[k], above = x->u[k]> y->u[k];
        }
        x->u[k] = direction_holds(direction, below, equal, above);
    }
}

int interpret_compare(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                      struct tensor **results)
{
    return interpret_by_lanes(op, operands, compare_step, interpret_result(run, op, 0), results);
}

/* --- three operands */

int interpret_select(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                     struct tensor **results)
{
    struct tensor *result = interpret_result(run, op, 0);
    if (!result)
        return ERROR_LIMIT;
    const uint8_t *chosen = operands[0]->data;
    const char *when_true = operands[1]->data, *when_false = operands[2]->data;
    size_t size = ir_element_size(result->type.element);
    int64_t elements = ir_type_elements(&result->type), step = operands[0]->type.rank > 0;
    bool done = step && kernel_select(size, chosen, when_true, when_false, elements, result->data);
    for (int64_t k = 0; k < elements && !done; k++)
        memcpy((char *)result->data + k * size, (chosen[k * step] ? when_true : when_false) + k * size, size);
    results[0] = result;
    return 0;
}

/* Clamps; the operands are the least value, the numbers, and the largest value. */
static void clamp_step(const struct ir_op *op, enum ir_element element, union lanes *x, uint32_t count)
{
    lanes_binary(IR_OP_MAXIMUM, element, &x[1], &x[0], count);
    lanes_binary(IR_OP_MINIMUM, element, &x[1], &x[2], count);
    x[0] = x[1];
}

int interpret_clamp(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                    struct tensor **results)
{
    return interpret_by_lanes(op, operands, clamp_step, interpret_result(run, op, 0), results);
}

/* --- types */

static void convert_step(const struct ir_op *op, enum ir_element element, union lanes *x, uint32_t count)
{
    lanes_convert(&x[0], element, op->results[0].type.element, count);
}

int interpret_convert(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                      struct tensor **results)
{
    return interpret_by_lanes(op, operands, convert_step, interpret_result(run, op, 0), results);
}

/* Returns bit `at` of a tensor whose elements have `width` bits each, stored in whole bytes. */
static unsigned bit_get(const unsigned char *data, size_t size, unsigned width, int64_t at)
{
    int64_t element = at / width;
    unsigned bit = (unsigned)(at % width);
    return data[(size_t)element * size + bit / 8] >> bit % 8 & 1;
}

/* Converts between elements of less than a byte: concatenates the low bits of all elements. */
static void bitcast_narrow(const struct tensor *from, struct tensor *to)
{
    unsigned from_width = ir_element_bits(from->type.element), width = ir_element_bits(to->type.element);
    int64_t elements = ir_type_elements(&to->type);
    for (int64_t k = 0; k < elements; k++) {
        union lanes x = {.u = {0}};
        for (unsigned bit = 0; bit < width; bit++)
            x.u[0] |= (uint64_t)bit_get(from->data, ir_element_size(from->type.element), from_width,
                                        k * width + bit)
                      << bit;
        if (ir_element_size(to->type.element) > 1)
            memcpy((char *)to->data + (size_t)k * (width / 8), x.u, width / 8);
        else if (lane_class_of(to->type.element) == LANE_FLOAT)
            ((uint8_t *)to->data)[k] = (uint8_t)x.u[0];
        else
            lanes_store(&x, to->type.element, to->data, k, 1);
    }
}

/* Reinterprets the bits. An element of twice the size corresponds to two of the smaller in its last
 * dimension, the low half first. */
int interpret_bitcast(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                      struct tensor **results)
{
    struct tensor *result = interpret_result(run, op, 0);
    if (!result)
        return ERROR_LIMIT;
    int64_t bytes = ir_type_bytes(&result->type);
    if (ir_element_bits(result->type.element) < 8 || ir_element_bits(operands[0]->type.element) < 8)
        bitcast_narrow(operands[0], result);
    else if (bytes > 0)
        memcpy(result->data, operands[0]->data, (size_t)bytes);
    results[0] = result;
    return 0;
}

static void precision_step(const struct ir_op *op, enum ir_element element, union lanes *x, uint32_t count)
{
    int exponent = op->attributes.precision.exponent_bits, mantissa = op->attributes.precision.mantissa_bits;
    for (uint32_t k = 0; k < count; k++)
        x[0].f[k] =
            lane_round(x[0].f[k], exponent < 11 ? exponent : 11, mantissa < 52 ? mantissa : 52, false);
}

int interpret_precision(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                        struct tensor **results)
{
    return interpret_by_lanes(op, operands, precision_step, interpret_result(run, op, 0), results);
}
