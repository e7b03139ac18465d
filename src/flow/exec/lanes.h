/* lanes.h - elements of any type as numbers that C computes with. Private to src/flow/exec.
 *
 * The interpreter computes on runs of at most LANES elements: they are widened, an operation works on the
 * wide numbers, and the result is rounded once. Booleans and integers widen to 64 bits of their signedness,
 * floats to double, complex numbers to two doubles. For +, -, *, / and square root of f32 and narrower this
 * gives the correctly rounded result, since double has more than twice their digits and two more (Figueroa,
 * "When is double rounding innocuous?", 1995); other functions are as exact as the C library's in double.
 */
#ifndef PHX_FLOW_EXEC_LANES_H
#define PHX_FLOW_EXEC_LANES_H

#include <complex.h>

#include "flow/ir/ir.h"

enum { LANES = 256 };

/* The kind of number that an element type widens to. */
enum lane_class { LANE_BOOL, LANE_SIGNED, LANE_UNSIGNED, LANE_FLOAT, LANE_COMPLEX, LANE_NONE };
enum lane_class lane_class_of(enum ir_element element);

/* A run of widened elements. The class selects the member (bool and unsigned: u). */
union lanes {
    int64_t i[LANES];
    uint64_t u[LANES];
    double f[LANES];
    double complex c[LANES];
};

/* Makes a complex number as C11's CMPLX does, which the C library has for gcc only: `real + I * imag` would
 * lose the signs of zeros and infinities. */
static inline double complex lane_pair(double real, double imag)
{
    return __builtin_complex(real, imag);
}

/* Widens `count` (≤ LANES) elements from `data`, starting with element `first`, `stride` elements apart
 * (0: the same one for all). */
void lanes_load(union lanes *lanes, enum ir_element element, const void *data, int64_t first, int64_t stride,
                uint32_t count);

/* Rounds `count` numbers to `element` and stores them from element `first` on. Integers wrap; floats round to
 * nearest, ties to even. */
void lanes_store(const union lanes *lanes, enum ir_element element, void *data, int64_t first,
                 uint32_t count);

/* Converts numbers in place as stablehlo.convert does, from the class of `from` to the class of `to`;
 * lanes_store does the rest. Float to integer truncates, saturates out of range, and turns NaN to 0. To
 * boolean, anything but 0 is true. Complex to real takes the real part. */
void lanes_convert(union lanes *lanes, enum ir_element from, enum ir_element to, uint32_t count);

/* Widens all `elements` of `data` to numbers of the class of `as` (IR_I1, IR_I64, IR_U64, IR_F64 or IR_C128),
 * consecutive in `numbers`. lanes_narrow is the inverse. */
void lanes_widen(void *numbers, enum ir_element as, enum ir_element element, const void *data,
                 int64_t elements);
void lanes_narrow(const void *numbers, enum ir_element as, enum ir_element element, void *data,
                  int64_t elements);

/* Returns the length of the run that begins with element `first`. */
static inline uint32_t lanes_count(int64_t elements, int64_t first)
{
    return elements - first < LANES ? (uint32_t)(elements - first) : LANES;
}

/* Computes x[k] = x[k] op y[k], for an elementwise operation with two operands of one type
 * (interpret_elementwise.c). Returns false if the operation is not defined for that type. */
bool lanes_binary(enum ir_op_kind kind, enum ir_element element, union lanes *x, const union lanes *y,
                  uint32_t count);

/* Computes x[k] = op x[k], and returns false if that is not defined for the type. The class of the result may
 * differ (abs and real of complex numbers, is_finite). */
bool lanes_unary(enum ir_op_kind kind, enum ir_element element, union lanes *x, uint32_t count);

/* Convert between narrow floats, given by their bits, and double; rounding to nearest, ties to even. */
double lane_of_f16(uint16_t bits);
double lane_of_bf16(uint16_t bits);
double lane_of_f8e4m3fn(uint8_t bits);
double lane_of_f8e5m2(uint8_t bits);
uint16_t lane_to_f16(double number);
uint16_t lane_to_bf16(double number);
uint8_t lane_to_f8e4m3fn(double number);
uint8_t lane_to_f8e5m2(double number);

/* Rounds a number to `exponent_bits` and `mantissa_bits` (as stablehlo.reduce_precision): values beyond the
 * range become infinite, values below it 0 or, where the format has them, subnormal. */
double lane_round(double number, int exponent_bits, int mantissa_bits, bool subnormals);

#endif
