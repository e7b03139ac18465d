/* Reductions, windows, sorting and control flow against results worked out by hand. */
#include "programs.h"

#define SUM                                                                                                  \
    "{\n^bb0(%x: tensor<i32>, %y: tensor<i32>):\n  %s = stablehlo.add %x, %y : tensor<i32>\n"                \
    "  stablehlo.return %s : tensor<i32>\n}"

static void test_reduce(void **state)
{
    static const char *const BODIES[] = {
        "%a = stablehlo.iota dim = 1 : tensor<2x3xi32>\n"
        "%z = stablehlo.constant dense<10> : tensor<i32>\n"
        "%0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : "
        "(tensor<2x3xi32>, "
        "tensor<i32>) -> tensor<2xi32>\n"
        "check.expect_eq_const %0, dense<13> : tensor<2xi32>\n"
        "%1 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : "
        "(tensor<2x3xi32>, "
        "tensor<i32>) -> tensor<3xi32>\n"
        "check.expect_eq_const %1, dense<[10, 12, 14]> : tensor<3xi32>\n"
        "%2 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0, 1] : "
        "(tensor<2x3xi32>, "
        "tensor<i32>) -> tensor<i32>\n"
        "check.expect_eq_const %2, dense<16> : tensor<i32>",
        /* f32 sums run in order, each rounded */
        "%a = stablehlo.constant dense<[16777216.0, 1.0, 1.0]> : tensor<3xf32>\n"
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, "
        "tensor<f32>) -> tensor<f32>\n"
        "check.expect_eq_const %0, dense<16777216.0> : tensor<f32>\n"
        "%n = stablehlo.constant dense<[1.0, 0x7FC00000, 3.0]> : tensor<3xf32>\n"
        "%1 = stablehlo.reduce(%n init: %z) applies stablehlo.maximum across dimensions = [0] : "
        "(tensor<3xf32>, "
        "tensor<f32>) -> tensor<f32>\n"
        "check.expect_eq_const %1, dense<0x7FC00000> : tensor<f32>",
        /* nothing to reduce leaves the initial value */
        "%a = stablehlo.constant dense<> : tensor<2x0xf32>\n"
        "%z = stablehlo.constant dense<7.0> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : "
        "(tensor<2x0xf32>, "
        "tensor<f32>) -> tensor<2xf32>\n"
        "check.expect_eq_const %0, dense<7.0> : tensor<2xf32>",
        /* two operands: the largest and its place */
        "%a = stablehlo.constant dense<[[3, 9, 4], [8, 1, 8]]> : tensor<2x3xi32>\n"
        "%i = stablehlo.iota dim = 1 : tensor<2x3xi32>\n"
        "%l = stablehlo.constant dense<-2147483648> : tensor<i32>\n"
        "%z = stablehlo.constant dense<0> : tensor<i32>\n"
        "%0:2 = \"stablehlo.reduce\"(%a, %i, %l, %z) <{dimensions = array<i64: 1>}> ({\n"
        "^bb0(%v: tensor<i32>, %p: tensor<i32>, %w: tensor<i32>, %q: tensor<i32>):\n"
        "  %c = stablehlo.compare GE, %v, %w : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "  %m = stablehlo.select %c, %v, %w : tensor<i1>, tensor<i32>\n"
        "  %n = stablehlo.select %c, %p, %q : tensor<i1>, tensor<i32>\n"
        "  stablehlo.return %m, %n : tensor<i32>, tensor<i32>\n"
        "}) : (tensor<2x3xi32>, tensor<2x3xi32>, tensor<i32>, tensor<i32>) -> (tensor<2xi32>, "
        "tensor<2xi32>)\n"
        "check.expect_eq_const %0#0, dense<[9, 8]> : tensor<2xi32>\n"
        "check.expect_eq_const %0#1, dense<[1, 0]> : tensor<2xi32>",
        /* a body that returns an argument itself */
        "%a = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>\n"
        "%z = stablehlo.constant dense<0> : tensor<i32>\n"
        "%0 = \"stablehlo.reduce\"(%a, %z) <{dimensions = array<i64: 0>}> ({\n"
        "^bb0(%x: tensor<i32>, %y: tensor<i32>):\n"
        "  stablehlo.return %y : tensor<i32>\n"
        "}) : (tensor<3xi32>, tensor<i32>) -> tensor<i32>\n"
        "check.expect_eq_const %0, dense<3> : tensor<i32>",
    };
    BODIES_PASS(BODIES);
}

static void test_windows(void **state)
{
    static const char *const BODIES[] = {
        "%a = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>\n"
        "%z = stablehlo.constant dense<0> : tensor<i32>\n"
        "%0 = \"stablehlo.reduce_window\"(%a, %z) <{window_dimensions = array<i64: 2>, window_strides = "
        "array<i64: 1>, base_dilations = array<i64: 2>, window_dilations = array<i64: 3>, padding = "
        "dense<[[1, -1]]> : tensor<1x2xi64>}> (" SUM ") : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>\n"
        /* dilated 1 0 2 0 3 0 4; padded 0 1 0 2 0 3 0; windows take elements k and k + 3 */
        "check.expect_eq_const %0, dense<[2, 1, 3, 2]> : tensor<4xi32>",
        "%a = stablehlo.constant dense<[5, 1, 3, 9]> : tensor<4xi32>\n"
        "%u = stablehlo.constant dense<[10, 20]> : tensor<2xi32>\n"
        "%z = stablehlo.constant dense<0> : tensor<i32>\n"
        "%0 = \"stablehlo.select_and_scatter\"(%a, %u, %z) <{window_dimensions = array<i64: 2>, "
        "window_strides = "
        "array<i64: 2>, padding = dense<0> : tensor<1x2xi64>}> ({\n"
        "^bb0(%x: tensor<i32>, %y: tensor<i32>):\n"
        "  %c = stablehlo.compare GE, %x, %y : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "  stablehlo.return %c : tensor<i1>\n"
        "}, " SUM ") : (tensor<4xi32>, tensor<2xi32>, tensor<i32>) -> tensor<4xi32>\n"
        "check.expect_eq_const %0, dense<[10, 0, 0, 20]> : tensor<4xi32>",
        /* regions of one operation whose arguments are set one by one */
        "%a = stablehlo.constant dense<[true, false, true, true]> : tensor<4xi1>\n"
        "%u = stablehlo.constant dense<[true, false]> : tensor<2xi1>\n"
        "%z = stablehlo.constant dense<false> : tensor<i1>\n"
        "%0 = \"stablehlo.select_and_scatter\"(%a, %u, %z) <{window_dimensions = array<i64: 2>, "
        "window_strides = "
        "array<i64: 2>, padding = dense<0> : tensor<1x2xi64>}> ({\n"
        "^bb0(%x: tensor<i1>, %y: tensor<i1>):\n"
        "  %c = stablehlo.or %x, %y : tensor<i1>\n"
        "  stablehlo.return %c : tensor<i1>\n"
        "}, {\n^bb0(%x: tensor<i1>, %y: tensor<i1>):\n"
        "  %c = stablehlo.or %x, %y : tensor<i1>\n"
        "  stablehlo.return %c : tensor<i1>\n"
        "}) : (tensor<4xi1>, tensor<2xi1>, tensor<i1>) -> tensor<4xi1>\n"
        "check.expect_eq_const %0, dense<[true, false, false, false]> : tensor<4xi1>\n"
        "%1 = \"stablehlo.map\"(%a, %a) <{dimensions = array<i64: 0>}> ({\n"
        "^bb0(%x: tensor<i1>, %y: tensor<i1>):\n"
        "  %c = stablehlo.xor %x, %y : tensor<i1>\n"
        "  stablehlo.return %c : tensor<i1>\n"
        "}) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>\n"
        "check.expect_eq_const %1, dense<false> : tensor<4xi1>",
    };
    BODIES_PASS(BODIES);
}

/* Total order puts -NaN first and NaN last; equal keys keep their order. */
static void test_sort(void **state)
{
    static const char *const BODIES[] = {
        "%k = stablehlo.constant dense<[0x7FC00000, 1.0, 0.0, -0.0, 0xFF800000, 1.0]> : tensor<6xf32>\n"
        "%p = stablehlo.iota dim = 0 : tensor<6xi32>\n"
        "%0:2 = \"stablehlo.sort\"(%k, %p) <{dimension = 0 : i64, is_stable = true}> ({\n"
        "^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):\n"
        "  %l = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "  stablehlo.return %l : tensor<i1>\n"
        "}) : (tensor<6xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xi32>)\n"
        "check.expect_eq_const %0#1, dense<[4, 3, 2, 1, 5, 0]> : tensor<6xi32>",
        "%k = stablehlo.constant dense<[[3, 1], [2, 4], [1, 9]]> : tensor<3x2xi32>\n"
        "%0 = \"stablehlo.sort\"(%k) <{dimension = 0 : i64}> ({\n"
        "^bb0(%a: tensor<i32>, %b: tensor<i32>):\n"
        "  %l = stablehlo.compare GT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "  stablehlo.return %l : tensor<i1>\n"
        "}) : (tensor<3x2xi32>) -> tensor<3x2xi32>\n"
        "check.expect_eq_const %0, dense<[[3, 9], [2, 4], [1, 1]]> : tensor<3x2xi32>",
    };
    BODIES_PASS(BODIES);
}

#define CASE_OF(index)                                                                                       \
    "%i = stablehlo.constant dense<" index "> : tensor<i32>\n"                                               \
    "%0 = \"stablehlo.case\"(%i) ({\n  %a = stablehlo.constant dense<10> : tensor<i32>\n"                    \
    "  stablehlo.return %a : tensor<i32>\n}, {\n  %b = stablehlo.constant dense<20> : tensor<i32>\n"         \
    "  stablehlo.return %b : tensor<i32>\n}) : (tensor<i32>) -> tensor<i32>\n"

static void test_control(void **state)
{
    static const char *const BODIES[] = {
        CASE_OF("0") "check.expect_eq_const %0, dense<10> : tensor<i32>",
        CASE_OF("2") "check.expect_eq_const %0, dense<20> : tensor<i32>",
        CASE_OF("-1") "check.expect_eq_const %0, dense<20> : tensor<i32>",
        /* a value from outside in the body; a loop that never runs */
        "%z = stablehlo.constant dense<0> : tensor<i32>\n"
        "%s = stablehlo.constant dense<3> : tensor<i32>\n"
        "%e = stablehlo.constant dense<12> : tensor<i32>\n"
        "%0 = stablehlo.while(%v = %z) : tensor<i32>\n"
        " cond {\n  %c = stablehlo.compare LT, %v, %e : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "  stablehlo.return %c : tensor<i1>\n } do {\n"
        "  %n = stablehlo.add %v, %s : tensor<i32>\n  stablehlo.return %n : tensor<i32>\n }\n"
        "check.expect_eq_const %0, dense<12> : tensor<i32>\n"
        "%1 = stablehlo.while(%v = %e) : tensor<i32>\n"
        " cond {\n  %c = stablehlo.compare LT, %v, %e : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "  stablehlo.return %c : tensor<i1>\n } do {\n  stablehlo.return %v : tensor<i32>\n }\n"
        "check.expect_eq_const %1, dense<12> : tensor<i32>",
    };
    BODIES_PASS(BODIES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_sort),
        cmocka_unit_test(test_control),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
