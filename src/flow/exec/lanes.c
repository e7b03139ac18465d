/* lanes.c - conversion of elements to numbers and back. */
#include "flow/exec/lanes.h"

#include <math.h>
#include <string.h>

#include "base/check.h"

enum lane_class lane_class_of(enum ir_element element)
{
    switch (element) {
    case IR_I1:
        return LANE_BOOL;
    case IR_I2:
    case IR_I4:
    case IR_I8:
    case IR_I16:
    case IR_I32:
    case IR_I64:
        return LANE_SIGNED;
    case IR_U2:
    case IR_U4:
    case IR_U8:
    case IR_U16:
    case IR_U32:
    case IR_U64:
        return LANE_UNSIGNED;
    case IR_F8E4M3FN:
    case IR_F8E5M2:
    case IR_BF16:
    case IR_F16:
    case IR_F32:
    case IR_F64:
        return LANE_FLOAT;
    case IR_C64:
    case IR_C128:
        return LANE_COMPLEX;
    case IR_TOKEN:
    case IR_ELEMENTS:
        break;
    }
    return LANE_NONE;
}

/* --- narrow floats */

double lane_round(double number, int exponent_bits, int mantissa_bits, bool subnormals)
{
    CHECK(exponent_bits >= 1 && exponent_bits <= 11 && mantissa_bits >= 0 && mantissa_bits <= 52);
    if (isnan(number) || isinf(number) || number == 0)
        return number;
    int least = 2 - (1 << (exponent_bits - 1)); /* exponent of the smallest normal number */
    int most = (1 << (exponent_bits - 1)) - 1;
    int exponent = ilogb(number);
    int scale = mantissa_bits - (exponent > least || !subnormals ? exponent : least);
    double rounded = scalbn(nearbyint(scalbn(number, scale)), -scale); /* to nearest, ties to even */
    if (rounded != 0 && ilogb(rounded) > most)
        return copysign(INFINITY, number);
    if (!subnormals && (rounded == 0 || ilogb(rounded) < least))
        return copysign(0, number);
    return rounded;
}

/* Widens the bits of an IEEE-like format with that many exponent and mantissa bits. */
static double float_widen(uint32_t bits, int exponent_bits, int mantissa_bits)
{
    uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
    uint32_t exponent = bits >> mantissa_bits & ((1u << exponent_bits) - 1);
    bool negative = bits >> (mantissa_bits + exponent_bits) & 1;
    int bias = (1 << (exponent_bits - 1)) - 1;
    double magnitude;
    if (exponent == (1u << exponent_bits) - 1)
        magnitude = mantissa ? NAN : INFINITY;
    else if (exponent == 0)
        magnitude = scalbn((double)mantissa, 1 - bias - mantissa_bits);
    else
        magnitude = scalbn((double)(mantissa | 1u << mantissa_bits), (int)exponent - bias - mantissa_bits);
    return negative ? -magnitude : magnitude;
}

static uint32_t float_narrow(double number, int exponent_bits, int mantissa_bits)
{
    uint32_t sign = signbit(number) ? 1u << (exponent_bits + mantissa_bits) : 0;
    uint32_t infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
    if (isnan(number))
        return sign | infinity | 1u << (mantissa_bits - 1);
    double rounded = fabs(lane_round(number, exponent_bits, mantissa_bits, true));
    if (isinf(rounded))
        return sign | infinity;
    if (rounded == 0)
        return sign;
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = ilogb(rounded);
    if (exponent < 1 - bias) /* subnormal */
        return sign | (uint32_t)scalbn(rounded, bias - 1 + mantissa_bits);
    uint32_t mantissa = (uint32_t)scalbn(rounded, mantissa_bits - exponent) - (1u << mantissa_bits);
    return sign | (uint32_t)(exponent + bias) << mantissa_bits | mantissa;
}

double lane_of_f16(uint16_t bits)
{
    return float_widen(bits, 5, 10);
}

double lane_of_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float number;
    memcpy(&number, &wide, sizeof number);
    return number;
}

double lane_of_f8e5m2(uint8_t bits)
{
    return float_widen(bits, 5, 2);
}

/* Converts a format without infinities: the largest exponent is an ordinary one, and all ones is NaN. */
double lane_of_f8e4m3fn(uint8_t bits)
{
    if ((bits & 0x7f) == 0x7f)
        return bits & 0x80 ? -NAN : NAN;
    if ((bits & 0x78) == 0x78) {
        double magnitude = scalbn(8 + (bits & 7), 8 - 3);
        return bits & 0x80 ? -magnitude : magnitude;
    }
    return float_widen(bits, 4, 3);
}

uint16_t lane_to_f16(double number)
{
    return (uint16_t)float_narrow(number, 5, 10);
}

uint16_t lane_to_bf16(double number)
{
    return (uint16_t)float_narrow(number, 8, 7);
}

uint8_t lane_to_f8e5m2(double number)
{
    return (uint8_t)float_narrow(number, 5, 2);
}

uint8_t lane_to_f8e4m3fn(double number)
{
    uint8_t sign = signbit(number) ? 0x80 : 0;
    double rounded = fabs(lane_round(number, 5, 3, true)); /* one more bit of range than IEEE's 4 */
    if (isnan(number) || rounded > 448)
        return sign | 0x7f;
    if (rounded >= 256)
        return sign | 0x78 | (uint8_t)(scalbn(rounded, -5) - 8);
    return (uint8_t)float_narrow(number, 4, 3);
}

/* --- runs */

#define LOAD(member, type, convert)                                                                          \
    for (uint32_t k = 0; k < count; k++)                                                                     \
    lanes->member[k] = convert(((const type *)data)[first + k * stride])
#define STORE(member, type, convert)                                                                         \
    for (uint32_t k = 0; k < count; k++)                                                                     \
    ((type *)data)[first + k] = (type)convert(lanes->member[k])

void lanes_load(union lanes *lanes, enum ir_element element, const void *data, int64_t first, int64_t stride,
                uint32_t count)
{
    CHECK(count <= LANES);
    switch (element) {
    case IR_I1:
    case IR_U2:
    case IR_U4:
    case IR_U8:
        LOAD(u, uint8_t, );
        break;
    case IR_U16:
        LOAD(u, uint16_t, );
        break;
    case IR_U32:
        LOAD(u, uint32_t, );
        break;
    case IR_U64:
        LOAD(u, uint64_t, );
        break;
    case IR_I2:
    case IR_I4:
    case IR_I8:
        LOAD(i, int8_t, );
        break;
    case IR_I16:
        LOAD(i, int16_t, );
        break;
    case IR_I32:
        LOAD(i, int32_t, );
        break;
    case IR_I64:
        LOAD(i, int64_t, );
        break;
    case IR_F8E4M3FN:
        LOAD(f, uint8_t, lane_of_f8e4m3fn);
        break;
    case IR_F8E5M2:
        LOAD(f, uint8_t, lane_of_f8e5m2);
        break;
    case IR_BF16:
        LOAD(f, uint16_t, lane_of_bf16);
        break;
    case IR_F16:
        LOAD(f, uint16_t, lane_of_f16);
        break;
    case IR_F32:
        LOAD(f, float, );
        break;
    case IR_F64:
        LOAD(f, double, );
        break;
    case IR_C64:
        LOAD(c, float complex, );
        break;
    case IR_C128:
        LOAD(c, double complex, );
        break;
    case IR_TOKEN:
    case IR_ELEMENTS:
        break;
    }
}

/* Returns the low bits of a number, sign-extended: the stored form of i2 and i4. */
static int8_t low_bits_signed(int64_t number, int bits)
{
    return (int8_t)((int8_t)((uint64_t)number << (8 - bits)) >> (8 - bits));
}

void lanes_store(const union lanes *lanes, enum ir_element element, void *data, int64_t first, uint32_t count)
{
    CHECK(count <= LANES);
    switch (element) {
    case IR_I1:
        STORE(u, uint8_t, !!);
        break;
    case IR_U2:
        STORE(u, uint8_t, 3 &);
        break;
    case IR_U4:
        STORE(u, uint8_t, 15 &);
        break;
    case IR_U8:
        STORE(u, uint8_t, );
        break;
    case IR_U16:
        STORE(u, uint16_t, );
        break;
    case IR_U32:
        STORE(u, uint32_t, );
        break;
    case IR_U64:
        STORE(u, uint64_t, );
        break;
    case IR_I2:
    case IR_I4:
        for (uint32_t k = 0; k < count; k++)
            ((int8_t *)data)[first + k] = low_bits_signed(lanes->i[k], element == IR_I2 ? 2 : 4);
        break;
    case IR_I8:
        STORE(i, int8_t, );
        break;
    case IR_I16:
        STORE(i, int16_t, );
        break;
    case IR_I32:
        STORE(i, int32_t, );
        break;
    case IR_I64:
        STORE(i, int64_t, );
        break;
    case IR_F8E4M3FN:
        STORE(f, uint8_t, lane_to_f8e4m3fn);
        break;
    case IR_F8E5M2:
        STORE(f, uint8_t, lane_to_f8e5m2);
        break;
    case IR_BF16:
        STORE(f, uint16_t, lane_to_bf16);
        break;
    case IR_F16:
        STORE(f, uint16_t, lane_to_f16);
        break;
    case IR_F32:
        STORE(f, float, );
        break;
    case IR_F64:
        STORE(f, double, );
        break;
    case IR_C64:
        STORE(c, float complex, );
        break;
    case IR_C128:
        STORE(c, double complex, );
        break;
    case IR_TOKEN:
    case IR_ELEMENTS:
        break;
    }
}

/* --- conversion */

static int64_t float_to_signed(double number, int64_t least, int64_t most)
{
    if (isnan(number))
        return 0;
    if (number <= (double)least)
        return least;
    return number >= (double)most ? most : (int64_t)number;
}

static uint64_t float_to_unsigned(double number, uint64_t most)
{
    if (!(number > 0))
        return 0;
    return number >= (double)most ? most : (uint64_t)number;
}

static void convert_from_float(union lanes *lanes, enum ir_element to, uint32_t count)
{
    enum lane_class class = lane_class_of(to);
    unsigned bits = class == LANE_SIGNED || class == LANE_UNSIGNED ? ir_element_bits(to) : 64;
    int64_t most = (int64_t)(UINT64_MAX >> (65 - bits));
    for (uint32_t k = 0; k < count; k++)
        if (class == LANE_BOOL)
            lanes->u[k] = lanes->f[k] != 0;
        else if (class == LANE_SIGNED)
            lanes->i[k] = float_to_signed(lanes->f[k], -most - 1, most);
        else if (class == LANE_UNSIGNED)
            lanes->u[k] = float_to_unsigned(lanes->f[k], UINT64_MAX >> (64 - bits));
}

/* Converts an integer to a double. If the target is narrower and digits are lost, the last digit kept is made
 * odd, so that the rounding to the target is still correct (Boldo and Melquiond, "When double rounding is
 * odd", 2005). */
static double integer_to_float(uint64_t magnitude, bool negative, enum ir_element to)
{
    int lost = magnitude >> 53 == 0 || to == IR_F64 || to == IR_C128 ? 0 : 11 - __builtin_clzll(magnitude);
    uint64_t kept = magnitude >> lost;
    if (lost > 0 && kept << lost != magnitude)
        kept |= 1;
    double number = scalbn((double)kept, lost);
    return negative ? -number : number;
}

void lanes_convert(union lanes *lanes, enum ir_element from, enum ir_element to, uint32_t count)
{
    CHECK(count <= LANES);
    enum lane_class source = lane_class_of(from), target = lane_class_of(to);
    if (source == LANE_COMPLEX && target != LANE_COMPLEX) {
        for (uint32_t k = 0; k < count; k++) /* ascending, because f[k] is stored at or before c[k] */
            lanes->f[k] = creal(lanes->c[k]);
        source = LANE_FLOAT;
    }
    if (source == LANE_FLOAT && target != LANE_FLOAT && target != LANE_COMPLEX)
        convert_from_float(lanes, to, count);
    else if (target == LANE_BOOL && source != LANE_BOOL && source != LANE_FLOAT)
        for (uint32_t k = 0; k < count; k++)
            lanes->u[k] = lanes->u[k] != 0;
    else if ((target == LANE_FLOAT || target == LANE_COMPLEX) && source == LANE_SIGNED)
        for (uint32_t k = 0; k < count; k++)
            lanes->f[k] = integer_to_float(lanes->i[k] < 0 ? -lanes->u[k] : lanes->u[k], lanes->i[k] < 0, to);
    else if ((target == LANE_FLOAT || target == LANE_COMPLEX) && source != LANE_FLOAT &&
             source != LANE_COMPLEX)
        for (uint32_t k = 0; k < count; k++)
            lanes->f[k] = integer_to_float(lanes->u[k], false, to);
    if (target == LANE_COMPLEX && source != LANE_COMPLEX)
        for (uint32_t k = count; k-- > 0;) /* descending, for the same reason */
            lanes->c[k] = lanes->f[k];
}

/* --- whole tensors */

static size_t lanes_number_size(enum ir_element as)
{
    return as == IR_C128 ? sizeof(double complex) : sizeof(double);
}

void lanes_widen(void *numbers, enum ir_element as, enum ir_element element, const void *data,
                 int64_t elements)
{
    size_t size = lanes_number_size(as);
    for (int64_t first = 0; first < elements; first += LANES) {
        uint32_t count = lanes_count(elements, first);
        union lanes x;
        lanes_load(&x, element, data, first, 1, count);
        lanes_convert(&x, element, as, count);
        memcpy((char *)numbers + (size_t)first * size, &x, count * size);
    }
}

void lanes_narrow(const void *numbers, enum ir_element as, enum ir_element element, void *data,
                  int64_t elements)
{
    size_t size = lanes_number_size(as);
    for (int64_t first = 0; first < elements; first += LANES) {
        uint32_t count = lanes_count(elements, first);
        union lanes x;
        memcpy(&x, (const char *)numbers + (size_t)first * size, count * size);
        lanes_convert(&x, as, element, count);
        lanes_store(&x, element, data, first, count);
    }
}
