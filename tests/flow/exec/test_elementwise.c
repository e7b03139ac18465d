/* Elementwise operations at the edges of their types, by the StableHLO specification. */
#include "programs.h"

static void test_integers(void **state)
{
    static const char *const BODIES[] = {
        /* arithmetic wraps */
        "%a = stablehlo.constant dense<[127, -128, -128]> : tensor<3xi8>\n"
        "%b = stablehlo.constant dense<[1, -1, -128]> : tensor<3xi8>\n"
        "%0 = stablehlo.add %a, %b : tensor<3xi8>\n"
        "check.expect_eq_const %0, dense<[-128, 127, 0]> : tensor<3xi8>\n"
        "%1 = stablehlo.multiply %a, %b : tensor<3xi8>\n"
        "check.expect_eq_const %1, dense<[127, -128, 0]> : tensor<3xi8>\n"
        "%2 = stablehlo.divide %a, %b : tensor<3xi8>\n"
        "check.expect_eq_const %2, dense<[127, -128, 1]> : tensor<3xi8>\n"
        "%3 = stablehlo.remainder %a, %b : tensor<3xi8>\n"
        "check.expect_eq_const %3, dense<[0, 0, 0]> : tensor<3xi8>\n"
        "%4 = stablehlo.abs %a : tensor<3xi8>\n"
        "check.expect_eq_const %4, dense<[127, -128, -128]> : tensor<3xi8>",
        /* division by zero, as XLA's */
        "%a = stablehlo.constant dense<[7, -7]> : tensor<2xi32>\n"
        "%z = stablehlo.constant dense<0> : tensor<2xi32>\n"
        "%0 = stablehlo.divide %a, %z : tensor<2xi32>\n"
        "check.expect_eq_const %0, dense<-1> : tensor<2xi32>\n"
        "%1 = stablehlo.remainder %a, %z : tensor<2xi32>\n"
        "check.expect_eq_const %1, dense<[7, -7]> : tensor<2xi32>",
        /* u64 keeps all bits */
        "%a = stablehlo.constant dense<18446744073709551615> : tensor<1xui64>\n"
        "%b = stablehlo.constant dense<2> : tensor<1xui64>\n"
        "%0 = stablehlo.divide %a, %b : tensor<1xui64>\n"
        "check.expect_eq_const %0, dense<9223372036854775807> : tensor<1xui64>\n"
        "%1 = stablehlo.maximum %a, %b : tensor<1xui64>\n"
        "check.expect_eq_const %1, dense<18446744073709551615> : tensor<1xui64>\n"
        "%2 = stablehlo.convert %a : (tensor<1xui64>) -> tensor<1xf64>\n"
        "check.expect_eq_const %2, dense<18446744073709551616.0> : tensor<1xf64>\n"
        "%3 = stablehlo.popcnt %a : tensor<1xui64>\n"
        "check.expect_eq_const %3, dense<64> : tensor<1xui64>",
        /* i4 has 16 numbers, and shifts know the width */
        "%a = stablehlo.constant dense<[7, -8, -1]> : tensor<3xi4>\n"
        "%b = stablehlo.constant dense<[1, 1, 2]> : tensor<3xi4>\n"
        "%0 = stablehlo.add %a, %b : tensor<3xi4>\n"
        "check.expect_eq_const %0, dense<[-8, -7, 1]> : tensor<3xi4>\n"
        "%1 = stablehlo.shift_right_logical %a, %b : tensor<3xi4>\n"
        "check.expect_eq_const %1, dense<[3, 4, 3]> : tensor<3xi4>\n"
        "%2 = stablehlo.shift_right_arithmetic %a, %b : tensor<3xi4>\n"
        "check.expect_eq_const %2, dense<[3, -4, -1]> : tensor<3xi4>\n"
        "%3 = stablehlo.count_leading_zeros %a : tensor<3xi4>\n"
        "check.expect_eq_const %3, dense<[1, 0, 0]> : tensor<3xi4>",
        "%a = stablehlo.constant dense<[1, -1, 3]> : tensor<3xi8>\n"
        "%b = stablehlo.constant dense<[8, 9, 7]> : tensor<3xi8>\n"
        "%0 = stablehlo.shift_left %a, %b : tensor<3xi8>\n"
        "check.expect_eq_const %0, dense<[0, 0, -128]> : tensor<3xi8>\n"
        "%1 = stablehlo.shift_right_arithmetic %a, %b : tensor<3xi8>\n"
        "check.expect_eq_const %1, dense<[0, -1, 0]> : tensor<3xi8>",
        /* booleans: + is or, * is and */
        "%a = stablehlo.constant dense<[true, true, false]> : tensor<3xi1>\n"
        "%b = stablehlo.constant dense<[true, false, false]> : tensor<3xi1>\n"
        "%0 = stablehlo.add %a, %b : tensor<3xi1>\n"
        "check.expect_eq_const %0, dense<[true, true, false]> : tensor<3xi1>\n"
        "%1 = stablehlo.multiply %a, %b : tensor<3xi1>\n"
        "check.expect_eq_const %1, dense<[true, false, false]> : tensor<3xi1>\n"
        "%2 = stablehlo.not %a : tensor<3xi1>\n"
        "check.expect_eq_const %2, dense<[false, false, true]> : tensor<3xi1>",
        /* powers of integers */
        "%a = stablehlo.constant dense<[2, -1, -1, 3, 0]> : tensor<5xi32>\n"
        "%b = stablehlo.constant dense<[10, -3, -2, -1, 0]> : tensor<5xi32>\n"
        "%0 = stablehlo.power %a, %b : tensor<5xi32>\n"
        "check.expect_eq_const %0, dense<[1024, -1, 1, 0, 1]> : tensor<5xi32>",
    };
    BODIES_PASS(BODIES);
}

static void test_floats(void **state)
{
    static const char *const BODIES[] = {
        /* NaN wins; -0 is below +0: shown by the sign of 1 / x */
        "%a = stablehlo.constant dense<[0x7FC00000, 0.0, -0.0, 1.0, 0xFF800000]> : tensor<5xf32>\n"
        "%b = stablehlo.constant dense<[1.0, -0.0, 0.0, 0x7FC00000, 0x7F800000]> : tensor<5xf32>\n"
        "%0 = stablehlo.maximum %a, %b : tensor<5xf32>\n"
        "check.expect_eq_const %0, dense<[0x7FC00000, 0.0, 0.0, 0x7FC00000, 0x7F800000]> : tensor<5xf32>\n"
        "%one = stablehlo.constant dense<1.0> : tensor<5xf32>\n"
        "%1 = stablehlo.divide %one, %0 : tensor<5xf32>\n"
        "check.expect_eq_const %1, dense<[0x7FC00000, 0x7F800000, 0x7F800000, 0x7FC00000, 0.0]> : "
        "tensor<5xf32>\n"
        "%2 = stablehlo.minimum %a, %b : tensor<5xf32>\n"
        "%3 = stablehlo.divide %one, %2 : tensor<5xf32>\n"
        "check.expect_eq_const %3, dense<[0x7FC00000, 0xFF800000, 0xFF800000, 0x7FC00000, 0.0]> : "
        "tensor<5xf32>",
        "%a = stablehlo.constant dense<[-2.5, -0.0, 0x7FC00000, 2.5, 0.5, 1.5]> : tensor<6xf32>\n"
        "%0 = stablehlo.sign %a : tensor<6xf32>\n"
        "check.expect_eq_const %0, dense<[-1.0, 0.0, 0x7FC00000, 1.0, 1.0, 1.0]> : tensor<6xf32>\n"
        "%1 = stablehlo.round_nearest_even %a : tensor<6xf32>\n"
        "check.expect_eq_const %1, dense<[-2.0, 0.0, 0x7FC00000, 2.0, 0.0, 2.0]> : tensor<6xf32>\n"
        "%2 = stablehlo.round_nearest_afz %a : tensor<6xf32>\n"
        "check.expect_eq_const %2, dense<[-3.0, 0.0, 0x7FC00000, 3.0, 1.0, 2.0]> : tensor<6xf32>\n"
        "%3 = stablehlo.is_finite %a : (tensor<6xf32>) -> tensor<6xi1>\n"
        "check.expect_eq_const %3, dense<[true, true, false, true, true, true]> : tensor<6xi1>",
        /* conversions saturate; NaN gives 0 */
        "%a = stablehlo.constant dense<[1.0e30, -1.0e30, 0x7FC00000, -1.9, 300.0]> : tensor<5xf32>\n"
        "%0 = stablehlo.convert %a : (tensor<5xf32>) -> tensor<5xi8>\n"
        "check.expect_eq_const %0, dense<[127, -128, 0, -1, 127]> : tensor<5xi8>\n"
        "%1 = stablehlo.convert %a : (tensor<5xf32>) -> tensor<5xui64>\n"
        "check.expect_eq_const %1, dense<[18446744073709551615, 0, 0, 0, 300]> : tensor<5xui64>\n"
        "%2 = stablehlo.convert %a : (tensor<5xf32>) -> tensor<5xi1>\n"
        "check.expect_eq_const %2, dense<true> : tensor<5xi1>",
        /* narrow floats round to even, overflow to infinity */
        "%a = stablehlo.constant dense<[65519.0, 65520.0, 1.0004883, 5.9604645e-8, 2.9802322e-8]> : "
        "tensor<5xf32>\n"
        "%0 = stablehlo.convert %a : (tensor<5xf32>) -> tensor<5xf16>\n"
        "%1 = stablehlo.convert %0 : (tensor<5xf16>) -> tensor<5xf32>\n"
        "check.expect_eq_const %1, dense<[65504.0, 0x7F800000, 1.0, 5.9604645e-8, 0.0]> : tensor<5xf32>",
        /* an integer that double cannot hold rounds to f32 once */
        "%a = stablehlo.constant dense<[9007199791611905, 16777217]> : tensor<2xi64>\n"
        "%0 = stablehlo.convert %a : (tensor<2xi64>) -> tensor<2xf32>\n"
        "check.expect_eq_const %0, dense<[9007200328482816.0, 16777216.0]> : tensor<2xf32>",
        /* total order: -NaN < -inf < -0 < +0 < NaN */
        "%a = stablehlo.constant dense<[0xFFC00000, -0.0, 1.0, 0x7F800000]> : tensor<4xf32>\n"
        "%b = stablehlo.constant dense<[0xFF800000, 0.0, 0x7FC00000, 0x7FC00000]> : tensor<4xf32>\n"
        "%0 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>\n"
        "check.expect_eq_const %0, dense<true> : tensor<4xi1>\n"
        "%1 = stablehlo.compare LT, %a, %b, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>\n"
        "check.expect_eq_const %1, dense<false> : tensor<4xi1>\n"
        "%2 = stablehlo.compare NE, %a, %b, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>\n"
        "check.expect_eq_const %2, dense<[true, false, true, true]> : tensor<4xi1>",
        "%a = stablehlo.constant dense<[1.0000001, 3.4e38, 1.0e-40, -0.0]> : tensor<4xf32>\n"
        "%0 = stablehlo.reduce_precision %a, format = e5m10 : tensor<4xf32>\n"
        "check.expect_eq_const %0, dense<[1.0, 0x7F800000, 0.0, 0.0]> : tensor<4xf32>",
    };
    BODIES_PASS(BODIES);
}

static void test_select_and_clamp(void **state)
{
    static const char *const BODIES[] = {
        "%p = stablehlo.constant dense<false> : tensor<i1>\n"
        "%a = stablehlo.constant dense<[1, 2]> : tensor<2xi16>\n"
        "%b = stablehlo.constant dense<[3, 4]> : tensor<2xi16>\n"
        "%0 = stablehlo.select %p, %a, %b : tensor<i1>, tensor<2xi16>\n"
        "check.expect_eq_const %0, dense<[3, 4]> : tensor<2xi16>",
        "%l = stablehlo.constant dense<2.0> : tensor<f32>\n"
        "%h = stablehlo.constant dense<3.0> : tensor<f32>\n"
        "%x = stablehlo.constant dense<[1.0, 2.5, 9.0, 0x7FC00000]> : tensor<4xf32>\n"
        "%0 = stablehlo.clamp %l, %x, %h : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>\n"
        "check.expect_eq_const %0, dense<[2.0, 2.5, 3.0, 0x7FC00000]> : tensor<4xf32>",
    };
    BODIES_PASS(BODIES);
}

static void test_bits(void **state)
{
    static const char *const BODIES[] = {
        "%a = stablehlo.constant dense<[0x3F800000, 0x40000000]> : tensor<2xui32>\n"
        "%0 = stablehlo.bitcast_convert %a : (tensor<2xui32>) -> tensor<2xf32>\n"
        "check.expect_eq_const %0, dense<[1.0, 2.0]> : tensor<2xf32>\n"
        "%1 = stablehlo.bitcast_convert %a : (tensor<2xui32>) -> tensor<2x2xui16>\n"
        "check.expect_eq_const %1, dense<[[0, 16256], [0, 16384]]> : tensor<2x2xui16>",
        /* elements of less than a byte */
        "%a = stablehlo.constant dense<[15, 7]> : tensor<2xui4>\n"
        "%0 = stablehlo.bitcast_convert %a : (tensor<2xui4>) -> tensor<2xi4>\n"
        "check.expect_eq_const %0, dense<[-1, 7]> : tensor<2xi4>\n"
        "%1 = stablehlo.bitcast_convert %a : (tensor<2xui4>) -> tensor<ui8>\n"
        "check.expect_eq_const %1, dense<127> : tensor<ui8>\n"
        "%2 = stablehlo.bitcast_convert %1 : (tensor<ui8>) -> tensor<2xui4>\n"
        "check.expect_eq_const %2, dense<[15, 7]> : tensor<2xui4>",
    };
    BODIES_PASS(BODIES);
}

/* A failed check names the operation, its place, the element and both numbers. */
static void test_failed_check(void **state)
{
    struct error error = {0};
    assert_int_equal(program_run("func.func @main() {\n"
                                 "  %0 = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>\n"
                                 "  check.expect_eq_const %0, dense<[1, 5, 3]> : tensor<3xi32>\n"
                                 "  return\n}\n",
                                 &error),
                     ERROR_INVALID);
    assert_string_equal(error.text, "t:3:3: check.expect_eq: element 1 is 2, expected 5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),         cmocka_unit_test(test_floats),
        cmocka_unit_test(test_select_and_clamp), cmocka_unit_test(test_bits),
        cmocka_unit_test(test_failed_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
