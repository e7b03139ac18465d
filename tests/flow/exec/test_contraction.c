/* dot_general and convolution against plain loops over indices, on each executor of the build. */
#include "programs.h"

#include <math.h>

enum { TEXT = 4096 };

static uint32_t random_next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

static struct tensor *random_tensor(const struct ir_type *type, uint64_t *seed)
{
    struct tensor *tensor = tensor_new(type);
    assert_non_null(tensor);
    for (int64_t k = 0; k < ir_type_elements(type); k++)
        ((float *)tensor->data)[k] = (float)(random_next(seed) % 2001) / 1000 - 1;
    return tensor;
}

/* Runs @main of two arguments on the executor. */
static struct tensor *product_run(const char *name, const struct ir_module *module,
                                  struct tensor *const *args)
{
    struct outcome outcome;
    if (program_launch(name, module, &(struct flow_launch){.args = args}, &outcome) != 0)
        fail_msg("%s: %s", name, outcome.error.text);
    assert_int_equal(outcome.count, 1);
    return outcome.results[0];
}

static void assert_close(const char *name, const struct tensor *actual, const double *expected)
{
    for (int64_t k = 0; k < ir_type_elements(&actual->type); k++) {
        double number = ((const float *)actual->data)[k];
        if (fabs(number - expected[k]) > 1e-5 * (1 + fabs(expected[k])))
            fail_msg("%s: element %lld is %.9g, expected %.9g", name, (long long)k, number, expected[k]);
    }
}

static void each_executor_gives(const struct ir_module *module, struct tensor *const *args,
                                const double *expected)
{
    static const char *const NAMES[] = {"interpreter", "onednn"};
    for (int k = 0; k < 2; k++) {
        if (!executor_named(NAMES[k]))
            continue;
        struct tensor *result = product_run(NAMES[k], module, args);
        assert_close(NAMES[k], result, expected);
        tensor_unref(result);
    }
}

/* out[b][i][j] = sum over p of lhs[p][b][i] * rhs[j][p][b]: every dimension in an unusual place. */
static void test_dot(void **state)
{
    static const int64_t SIZES[][4] = {/* batch, rows, columns, inner */
                                       {1, 1, 1, 1},  {2, 3, 5, 7}, {3, 17, 33, 300}, {1, 64, 48, 40},
                                       {2, 4, 16, 0}, {0, 3, 3, 3}, {5, 1, 70, 64},   {1, 31, 1, 513}};
    uint64_t seed = 7;
    for (size_t s = 0; s < sizeof SIZES / sizeof *SIZES; s++) {
        long long batch = SIZES[s][0], rows = SIZES[s][1], columns = SIZES[s][2], inner = SIZES[s][3];
        char text[TEXT];
        snprintf(
            text, sizeof text,
            "func.func @main(%%a: tensor<%lldx%lldx%lldxf32>, %%b: tensor<%lldx%lldx%lldxf32>) -> "
            "tensor<%lldx%lldx%lldxf32> {\n%%0 = stablehlo.dot_general %%a, %%b, batching_dims = [1] x [2], "
            "contracting_dims = [0] x [1] : (tensor<%lldx%lldx%lldxf32>, tensor<%lldx%lldx%lldxf32>) -> "
            "tensor<%lldx%lldx%lldxf32>\nreturn %%0 : tensor<%lldx%lldx%lldxf32>\n}\n",
            inner, batch, rows, columns, inner, batch, batch, rows, columns, inner, batch, rows, columns,
            inner, batch, batch, rows, columns, batch, rows, columns);
        struct ir_module *module = program_module(text);
        struct ir_type left = {.element = IR_F32, .rank = 3, .dims = {inner, batch, rows}};
        struct ir_type right = {.element = IR_F32, .rank = 3, .dims = {columns, inner, batch}};
        struct tensor *args[2] = {random_tensor(&left, &seed), random_tensor(&right, &seed)};
        const float *a = args[0]->data, *b = args[1]->data;
        double *expected = calloc((size_t)(batch * rows * columns) + 1, sizeof *expected);
        for (int64_t k = 0; k < batch * rows * columns; k++)
            for (int64_t p = 0; p < inner; p++) {
                int64_t n = k / (rows * columns), i = k / columns % rows, j = k % columns;
                expected[k] += (double)a[(p * batch + n) * rows + i] * b[(j * inner + p) * batch + n];
            }
        each_executor_gives(module, args, expected);
        free(expected);
        tensor_unref(args[0]), tensor_unref(args[1]);
        ir_module_free(module);
    }
}

/* Sums of f32 on the interpreter are those of a loop over the contracted dimension, digit for digit. */
static void test_digits_of_dot(void **state)
{
    enum { N = 37, INNER = 611 };
    struct ir_module *module = program_module(
        "func.func @main(%a: tensor<37x611xf32>, %b: tensor<611x37xf32>) -> tensor<37x37xf32> {\n"
        "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<37x611xf32>, "
        "tensor<611x37xf32>) -> tensor<37x37xf32>\nreturn %0 : tensor<37x37xf32>\n}\n");
    uint64_t seed = 11;
    struct ir_type left = {.element = IR_F32, .rank = 2, .dims = {N, INNER}};
    struct ir_type right = {.element = IR_F32, .rank = 2, .dims = {INNER, N}};
    struct tensor *args[2] = {random_tensor(&left, &seed), random_tensor(&right, &seed)};
    struct tensor *result = product_run("interpreter", module, args);
    for (int64_t k = 0; k < N * N; k++) {
        volatile float sum = 0; /* a product and a sum, each rounded */
        for (int64_t p = 0; p < INNER; p++) {
            volatile float product =
                ((float *)args[0]->data)[k / N * INNER + p] * ((float *)args[1]->data)[p * N + k % N];
            sum += product;
        }
        assert_true(((float *)result->data)[k] == sum);
    }
    tensor_unref(result), tensor_unref(args[0]), tensor_unref(args[1]);
    ir_module_free(module);
}

/* A convolution of one spatial dimension, NWC x WIO -> NWC. */
struct convolved {
    long long batch, width, features, window, outputs, stride, low, high, lhs_dilate, rhs_dilate, groups,
        batch_groups;
    bool reversed;
};

static int64_t convolved_width(const struct convolved *c)
{
    int64_t room = (c->width - 1) * c->lhs_dilate + 1 + c->low + c->high;
    return (room - ((c->window - 1) * c->rhs_dilate + 1)) / c->stride + 1;
}

static double convolved_at(const struct convolved *c, const float *x, const float *w, int64_t n, int64_t at,
                           int64_t out)
{
    double sum = 0;
    int64_t inputs = c->features / c->groups;
    int64_t first = out / (c->outputs / c->groups) * inputs;
    int64_t row = n + out / (c->outputs / c->batch_groups) * (c->batch / c->batch_groups);
    for (int64_t k = 0; k < c->window; k++) {
        int64_t place = at * c->stride + k * c->rhs_dilate - c->low;
        if (place < 0 || place % c->lhs_dilate || place / c->lhs_dilate >= c->width)
            continue;
        int64_t tap = c->reversed ? c->window - 1 - k : k;
        for (int64_t f = 0; f < inputs; f++)
            sum += (double)x[(row * c->width + place / c->lhs_dilate) * c->features + first + f] *
                   w[(tap * inputs + f) * c->outputs + out];
    }
    return sum;
}

static void convolution_agrees(const struct convolved *c, uint64_t *seed)
{
    long long width = convolved_width(c), inputs = c->features / c->groups, rows = c->batch / c->batch_groups;
    char text[TEXT];
    snprintf(
        text, sizeof text,
        "func.func @main(%%a: tensor<%lldx%lldx%lldxf32>, %%b: tensor<%lldx%lldx%lldxf32>) -> "
        "tensor<%lldx%lldx%lldxf32> {\n%%0 = stablehlo.convolution(%%a, %%b) dim_numbers = "
        "[b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [%lld], pad = [[%lld, %lld]], lhs_dilate = "
        "[%lld], "
        "rhs_dilate = [%lld], reverse = [%s]} {batch_group_count = %lld : i64, feature_group_count = %lld : "
        "i64} : (tensor<%lldx%lldx%lldxf32>, tensor<%lldx%lldx%lldxf32>) -> tensor<%lldx%lldx%lldxf32>\n"
        "return %%0 : tensor<%lldx%lldx%lldxf32>\n}\n",
        c->batch, c->width, c->features, c->window, inputs, c->outputs, rows, width, c->outputs, c->stride,
        c->low, c->high, c->lhs_dilate, c->rhs_dilate, c->reversed ? "true" : "false", c->batch_groups,
        c->groups, c->batch, c->width, c->features, c->window, inputs, c->outputs, rows, width, c->outputs,
        rows, width, c->outputs);
    struct ir_module *module = program_module(text);
    struct ir_type left = {.element = IR_F32, .rank = 3, .dims = {c->batch, c->width, c->features}};
    struct ir_type right = {.element = IR_F32, .rank = 3, .dims = {c->window, inputs, c->outputs}};
    struct tensor *args[2] = {random_tensor(&left, seed), random_tensor(&right, seed)};
    double *expected = calloc((size_t)(rows * width * c->outputs) + 1, sizeof *expected);
    for (int64_t k = 0; k < rows * width * c->outputs; k++)
        expected[k] = convolved_at(c, args[0]->data, args[1]->data, k / c->outputs / width,
                                   k / c->outputs % width, k % c->outputs);
    each_executor_gives(module, args, expected);
    free(expected);
    tensor_unref(args[0]), tensor_unref(args[1]);
    ir_module_free(module);
}

static void test_convolution(void **state)
{
    static const struct convolved CASES[] = {
        {2, 9, 3, 3, 4, 1, 1, 1, 1, 1, 1, 1, false},    {2, 9, 3, 3, 4, 2, 0, 2, 1, 2, 1, 1, false},
        {2, 9, 3, 3, 4, 1, -2, 1, 1, 1, 1, 1, false},   {2, 9, 3, 3, 4, 1, 2, 3, 3, 1, 1, 1, true},
        {2, 9, 6, 3, 4, 1, 1, 1, 1, 1, 2, 1, false},    {4, 9, 3, 3, 4, 1, 1, 1, 1, 1, 1, 2, false},
        {3, 40, 16, 5, 24, 1, 2, 2, 1, 1, 1, 1, false}, {3, 40, 16, 5, 24, 2, 4, 4, 1, 2, 4, 1, false},
        {3, 40, 16, 5, 24, 1, 2, 2, 1, 1, 1, 1, true},  {3, 40, 16, 5, 24, 1, 2, 2, 2, 1, 1, 1, false}};
    uint64_t seed = 3;
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++)
        convolution_agrees(&CASES[k], &seed);
}

static void test_other_types(void **state)
{
    static const char *const BODIES[] = {
        "%a = stablehlo.constant dense<[[127, -128]]> : tensor<1x2xi8>\n"
        "%b = stablehlo.constant dense<[[127], [-128]]> : tensor<2x1xi8>\n"
        "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<1x2xi8>, tensor<2x1xi8>) "
        "-> "
        "tensor<1x1xi32>\n"
        "check.expect_eq_const %0, dense<32513> : tensor<1x1xi32>",
        "%a = stablehlo.constant dense<[true, true]> : tensor<2xi1>\n"
        "%0 = stablehlo.dot_general %a, %a, contracting_dims = [0] x [0] : (tensor<2xi1>, tensor<2xi1>) -> "
        "tensor<i1>\n"
        "check.expect_eq_const %0, dense<true> : tensor<i1>",
        "%a = stablehlo.constant dense<[(1.0, 2.0), (0.0, 1.0)]> : tensor<2xcomplex<f32>>\n"
        "%0 = stablehlo.dot_general %a, %a, contracting_dims = [0] x [0] : (tensor<2xcomplex<f32>>, "
        "tensor<2xcomplex<f32>>) -> tensor<complex<f32>>\n"
        "check.expect_eq_const %0, dense<(-4.0, 4.0)> : tensor<complex<f32>>",
        /* not positive definite: NaN, not the root of an absolute value */
        "%a = stablehlo.constant dense<[[4.0, 2.0], [2.0, -9.0]]> : tensor<2x2xf32>\n"
        "%0 = stablehlo.cholesky %a, lower = true : tensor<2x2xf32>\n"
        "check.expect_eq_const %0, dense<[[2.0, 0.0], [1.0, 0x7FC00000]]> : tensor<2x2xf32>",
    };
    BODIES_PASS(BODIES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dot),
        cmocka_unit_test(test_digits_of_dot),
        cmocka_unit_test(test_convolution),
        cmocka_unit_test(test_other_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
