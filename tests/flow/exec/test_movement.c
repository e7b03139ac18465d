/* Operations that move elements: cut, spread, clamped, out of bounds, empty. */
#include "programs.h"

static void test_pad(void **state)
{
    static const char *const BODIES[] = {
        "%a = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>\n"
        "%z = stablehlo.constant dense<0> : tensor<i32>\n"
        "%0 = stablehlo.pad %a, %z, low = [-1], high = [1], interior = [1] : (tensor<4xi32>, tensor<i32>) -> "
        "tensor<7xi32>\n"
        "check.expect_eq_const %0, dense<[0, 2, 0, 3, 0, 4, 0]> : tensor<7xi32>",
        "%a = stablehlo.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>\n"
        "%z = stablehlo.constant dense<9> : tensor<i32>\n"
        "%0 = stablehlo.pad %a, %z, low = [0, -2], high = [-1, 3], interior = [0, 0] : (tensor<2x2xi32>, "
        "tensor<i32>) -> tensor<1x3xi32>\n"
        "check.expect_eq_const %0, dense<9> : tensor<1x3xi32>",
        "%a = stablehlo.constant dense<> : tensor<0xi32>\n"
        "%z = stablehlo.constant dense<5> : tensor<i32>\n"
        "%0 = stablehlo.pad %a, %z, low = [1], high = [1], interior = [1000000000000] : (tensor<0xi32>, "
        "tensor<i32>) "
        "-> tensor<2xi32>\n"
        "check.expect_eq_const %0, dense<5> : tensor<2xi32>",
    };
    BODIES_PASS(BODIES);
}

static void test_dynamic_starts_are_clamped(void **state)
{
    static const char *const BODIES[] = {
        "%a = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>\n"
        "%i = stablehlo.constant dense<9223372036854775807> : tensor<i64>\n"
        "%0 = stablehlo.dynamic_slice %a, %i, sizes = [2] : (tensor<4xi32>, tensor<i64>) -> tensor<2xi32>\n"
        "check.expect_eq_const %0, dense<[3, 4]> : tensor<2xi32>\n"
        "%j = stablehlo.constant dense<-9223372036854775808> : tensor<i64>\n"
        "%1 = stablehlo.dynamic_slice %a, %j, sizes = [2] : (tensor<4xi32>, tensor<i64>) -> tensor<2xi32>\n"
        "check.expect_eq_const %1, dense<[1, 2]> : tensor<2xi32>\n"
        "%k = stablehlo.constant dense<18446744073709551615> : tensor<ui64>\n"
        "%u = stablehlo.constant dense<[7, 8, 9]> : tensor<3xi32>\n"
        "%2 = stablehlo.dynamic_update_slice %a, %u, %k : (tensor<4xi32>, tensor<3xi32>, tensor<ui64>) -> "
        "tensor<4xi32>\n"
        "check.expect_eq_const %2, dense<[1, 7, 8, 9]> : tensor<4xi32>",
    };
    BODIES_PASS(BODIES);
}

static void test_shapes(void **state)
{
    static const char *const BODIES[] = {
        "%a = stablehlo.iota dim = 1 : tensor<2x3xi32>\n"
        "%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>\n"
        "check.expect_eq_const %0, dense<[[0, 0], [1, 1], [2, 2]]> : tensor<3x2xi32>\n"
        "%1 = stablehlo.reverse %a, dims = [1] : tensor<2x3xi32>\n"
        "check.expect_eq_const %1, dense<[[2, 1, 0], [2, 1, 0]]> : tensor<2x3xi32>\n"
        "%2 = stablehlo.slice %a [0:2, 0:3:2] : (tensor<2x3xi32>) -> tensor<2x2xi32>\n"
        "check.expect_eq_const %2, dense<[[0, 2], [0, 2]]> : tensor<2x2xi32>\n"
        "%3 = stablehlo.concatenate %2, %a, dim = 1 : (tensor<2x2xi32>, tensor<2x3xi32>) -> tensor<2x5xi32>\n"
        "check.expect_eq_const %3, dense<[[0, 2, 0, 1, 2], [0, 2, 0, 1, 2]]> : tensor<2x5xi32>\n"
        "%4 = stablehlo.reshape %2 : (tensor<2x2xi32>) -> tensor<4xi32>\n"
        "check.expect_eq_const %4, dense<[0, 2, 0, 2]> : tensor<4xi32>",
        /* a dimension of size 1 is repeated */
        "%a = stablehlo.constant dense<[[1], [2]]> : tensor<2x1xi32>\n"
        "%0 = stablehlo.broadcast_in_dim %a, dims = [1, 2] : (tensor<2x1xi32>) -> tensor<2x2x3xi32>\n"
        "check.expect_eq_const %0, dense<[[[1, 1, 1], [2, 2, 2]], [[1, 1, 1], [2, 2, 2]]]> : "
        "tensor<2x2x3xi32>",
        /* nothing to move */
        "%a = stablehlo.constant dense<> : tensor<0x3xf32>\n"
        "%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<0x3xf32>) -> tensor<3x0xf32>\n"
        "%1 = stablehlo.reverse %0, dims = [0, 1] : tensor<3x0xf32>\n"
        "%b = stablehlo.constant dense<1.0> : tensor<3x2xf32>\n"
        "%2 = stablehlo.concatenate %1, %b, dim = 1 : (tensor<3x0xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>\n"
        "check.expect_eq_const %2, dense<1.0> : tensor<3x2xf32>",
    };
    BODIES_PASS(BODIES);
}

/* Starts of gather are clamped; updates of scatter outside are dropped. Batching dimensions pair up. */
static void test_gather_and_scatter(void **state)
{
    static const char *const BODIES[] = {
        "%a = stablehlo.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi32>\n"
        "%i = stablehlo.constant dense<[[-5], [1], [99]]> : tensor<3x1xi64>\n"
        "%0 = \"stablehlo.gather\"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], "
        "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: "
        "1, 2>}> "
        ": (tensor<3x2xi32>, tensor<3x1xi64>) -> tensor<3x2xi32>\n"
        "check.expect_eq_const %0, dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi32>",
        "%a = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>\n"
        "%i = stablehlo.constant dense<[[2, 0], [1, 7]]> : tensor<2x2xi64>\n"
        "%0 = \"stablehlo.gather\"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [], "
        "collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], "
        "start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> "
        ": (tensor<2x3xi32>, tensor<2x2xi64>) -> tensor<2x2xi32>\n"
        "check.expect_eq_const %0, dense<[[3, 1], [5, 6]]> : tensor<2x2xi32>",
        "%a = stablehlo.constant dense<0> : tensor<3xi32>\n"
        "%i = stablehlo.constant dense<[[0], [3], [-1], [0], [9223372036854775807], [-9223372036854775808]]> "
        ": "
        "tensor<6x1xi64>\n"
        "%u = stablehlo.constant dense<[1, 10, 100, 1000, 5, 6]> : tensor<6xi32>\n"
        "%0 = \"stablehlo.scatter\"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<"
        "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n"
        "^bb0(%x: tensor<i32>, %y: tensor<i32>):\n"
        "  %s = stablehlo.add %x, %y : tensor<i32>\n"
        "  stablehlo.return %s : tensor<i32>\n"
        "}) : (tensor<3xi32>, tensor<6x1xi64>, tensor<6xi32>) -> tensor<3xi32>\n"
        "check.expect_eq_const %0, dense<[1001, 0, 0]> : tensor<3xi32>",
    };
    BODIES_PASS(BODIES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pad),
        cmocka_unit_test(test_dynamic_starts_are_clamped),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_gather_and_scatter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
