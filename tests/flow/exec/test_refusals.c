/* Programs that compile refuses, with operation, type and place; and launches that are out of the work they
 * may do. */
#include "programs.h"

static const struct {
    const char *body, *error;
} refused[] = {
    {"%0 = stablehlo.constant dense<1> : tensor<2xi32>\n"
     "%1 = stablehlo.custom_call @lapack_spotrf(%0) : (tensor<2xi32>) -> tensor<2xi32>",
     "t:3:6: stablehlo.custom_call: @lapack_spotrf cannot be computed for i32"},
    {"%0 = stablehlo.constant dense<1> : tensor<2xi32>\n"
     "%1 = stablehlo.custom_call @mhlo.erf(%0) : (tensor<2xi32>) -> tensor<2xi32>",
     "t:3:6: stablehlo.custom_call: @mhlo.erf cannot be computed for i32"},
    {"%0 = stablehlo.constant dense<1> : tensor<5xui64>\n"
     "%1:2 = stablehlo.rng_bit_generator %0, algorithm = DEFAULT : (tensor<5xui64>) -> (tensor<5xui64>, "
     "tensor<2xui32>)",
     "t:3:8: stablehlo.rng_bit_generator: cannot be computed for ui32"},
    {"%0 = stablehlo.constant dense<(1.0, 1.0)> : tensor<complex<f32>>\n"
     "%1 = stablehlo.remainder %0, %0 : tensor<complex<f32>>",
     "t:3:6: stablehlo.remainder: cannot be computed for complex<f32>"},
    /* inside a region, and in a function that is called */
    {"%p = stablehlo.constant dense<true> : tensor<i1>\n"
     "%0 = \"stablehlo.if\"(%p) ({\n  %1 = stablehlo.custom_call @nothing() : () -> tensor<i1>\n"
     "  stablehlo.return %1 : tensor<i1>\n}, {\n  stablehlo.return %p : tensor<i1>\n}) : (tensor<i1>) -> "
     "tensor<i1>",
     "t:4:8: stablehlo.custom_call: @nothing cannot be computed for i1"},
    {"call @f() : () -> ()\nreturn\n}\nfunc.func @f() {\n"
     "%0 = stablehlo.custom_call @nothing() : () -> tensor<i1>",
     "t:6:6: stablehlo.custom_call: @nothing cannot be computed for i1"},
};

static void test_refusals(void **state)
{
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
        char text[4096];
        struct error error = {0};
        snprintf(text, sizeof text, "func.func @main() {\n%s\nreturn\n}\n", refused[k].body);
        assert_int_equal(program_run(text, &error), ERROR_UNSUPPORTED);
        assert_string_equal(error.text, refused[k].error);
    }
}

static void test_unknown_executor(void **state)
{
    assert_null(executor_named("magic"));
    assert_non_null(executor_named("interpreter"));
}

/* An endless loop, and one operation of 10^12 steps. */
static void test_work_limit(void **state)
{
    static const char *const TEXTS[] = {
        "func.func @main() {\n%t = stablehlo.constant dense<true> : tensor<i1>\n"
        "%0 = stablehlo.while(%v = %t) : tensor<i1>\n cond {\n  stablehlo.return %v : tensor<i1>\n } do {\n"
        "  stablehlo.return %v : tensor<i1>\n }\nreturn\n}\n",
        "func.func @main() {\n%a = stablehlo.constant dense<1.0> : tensor<1xf32>\n"
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%0 = \"stablehlo.reduce_window\"(%a, %z) <{window_dimensions = array<i64: 1000000000000>, padding = "
        "dense<[[0, 999999999999]]> : tensor<1x2xi64>}> ({\n"
        "^bb0(%x: tensor<f32>, %y: tensor<f32>):\n  %s = stablehlo.add %x, %y : tensor<f32>\n"
        "  stablehlo.return %s : tensor<f32>\n}) : (tensor<1xf32>, tensor<f32>) -> "
        "tensor<1xf32>\nreturn\n}\n",
    };
    for (size_t k = 0; k < sizeof TEXTS / sizeof *TEXTS; k++) {
        struct ir_module *module = program_module(TEXTS[k]);
        struct outcome outcome;
        assert_int_equal(
            program_launch("interpreter", module, &(struct flow_launch){.work_limit = 100000}, &outcome),
            ERROR_LIMIT);
        assert_non_null(strstr(outcome.error.text, "out of the work"));
        assert_int_equal(tensor_bytes(), 0);
        ir_module_free(module);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_unknown_executor),
        cmocka_unit_test(test_work_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
