/* dense<...>: the bytes of every way to write elements. */
#include <math.h>

#include "flow/ir/texts.h"

static struct ir_module *constant_module(const char *literal)
{
    char text[1024];
    snprintf(text, sizeof text, "func.func @main() {\n%%0 = stablehlo.constant dense<%s\nreturn\n}\n",
             literal);
    return text_module(text);
}

/* The literal is splat or not, and has these bytes. */
static void has_bytes(const char *literal, bool splat, const void *bytes, size_t len)
{
    struct ir_module *module = constant_module(literal);
    const struct ir_literal *constant = &module_op(module, IR_OP_CONSTANT)->attributes.constant;
    assert_int_equal(constant->splat, splat);
    if (memcmp(constant->data, bytes, len) != 0)
        fail_msg("%s", literal);
    ir_module_free(module);
}
#define HAS(literal, splat, type, ...)                                                                       \
    has_bytes((literal), (splat), (const type[]){__VA_ARGS__}, sizeof((const type[]){__VA_ARGS__}))

static void integers(void **state)
{
    HAS("[[1, -2], [0x7f, -128]]> : tensor<2x2xi8>", false, int8_t, 1, -2, 127, -128);
    HAS("[255, 0]> : tensor<2xui8>", false, uint8_t, 255, 0);
    HAS("[200]> : tensor<1xi8>", true, uint8_t, 200); /* signless: either range */
    HAS("-9223372036854775808> : tensor<7xi64>", true, int64_t, INT64_MIN);
    HAS("18446744073709551615> : tensor<ui64>", true, uint64_t, UINT64_MAX);
    HAS("[-8, 7]> : tensor<2xi4>", false, int8_t, -8, 7);
    HAS("[15, 0]> : tensor<2xui4>", false, uint8_t, 15, 0);
    HAS("\"0x0F07\"> : tensor<2xi4>", false, int8_t, -1, 7);
    HAS("\"0x0100000002000000\"> : tensor<2xi32>", false, int32_t, 1, 2);
    HAS("\"0x03000000\"> : tensor<5xi32>", true, int32_t, 3);
}

static void truths(void **state)
{
    HAS("[true, false, true]> : tensor<3xi1>", false, uint8_t, 1, 0, 1);
    HAS("true> : tensor<3xi1>", true, uint8_t, 1);
    HAS("[1, 0]> : tensor<2xi1>", false, uint8_t, 1, 0);
    HAS("\"0xFF\"> : tensor<100xi1>", true, uint8_t, 1);
    HAS("\"0x00\"> : tensor<100xi1>", true, uint8_t, 0);
    HAS("\"0x0502\"> : tensor<10xi1>", false, uint8_t, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1); /* bits */
    HAS("\"0x010001\"> : tensor<3xi1>", false, uint8_t, 1, 0, 1);                     /* bytes */
}

static void floats(void **state)
{
    HAS("[1.5, -0.0, 1.0e-45]> : tensor<3xf32>", false, uint32_t, 0x3FC00000, 0x80000000, 1);
    HAS("0x7FC00000> : tensor<2xf32>", true, uint32_t, 0x7FC00000);
    HAS("16777217.0> : tensor<f32>", true, uint32_t, 0x4B800000); /* ties to even */
    HAS("0.1> : tensor<f64>", true, double, 0.1);
    HAS("[inf, -inf, nan]> : tensor<3xf32>", false, uint32_t, 0x7F800000, 0xFF800000, 0x7FC00000);
    HAS("[(1.0, -2.0), (0x7FC00000,0.5)]> : tensor<2xcomplex<f32>>", false, uint32_t, 0x3F800000, 0xC0000000,
        0x7FC00000, 0x3F000000);
    HAS("(1.0, -2.0)> : tensor<9xcomplex<f64>>", true, double, 1, -2);
}

/* Nearest, ties to even; overflow; subnormal numbers. */
static void narrow_floats(void **state)
{
    HAS("[1.0, 65504.0, 65520.0, 5.9604644775390625e-08, 2.9802322387695312e-08, 0.000060975551605224609, "
        "-2.0]> : "
        "tensor<7xf16>",
        false, uint16_t, 0x3C00, 0x7BFF, 0x7C00, 0x0001, 0x0000, 0x03FF, 0xC000);
    HAS("[1.0, 1.00390625, 1.01171875, 3.4e38, 3.5e38, 1.0e-40]> : tensor<6xbf16>", false, uint16_t, 0x3F80,
        0x3F80, 0x3F82, 0x7F80, 0x7F80, 0x0001);
    HAS("[1.0, 448.0, 480.0, 0.001953125, nan]> : tensor<5xf8E4M3FN>", false, uint8_t, 0x38, 0x7E, 0x7F, 0x01,
        0x7F);
    HAS("[1.0, 57344.0, 65536.0, inf]> : tensor<4xf8E5M2>", false, uint8_t, 0x3C, 0x7B, 0x7C, 0x7C);
}

static void shapes_without_elements(void **state)
{
    static const char *const literals[] = {"> : tensor<0xf32>",          "> : tensor<0x3xi1>",
                                           "[[], []]> : tensor<2x0xi8>", "[]> : tensor<0x4xi8>",
                                           "\"0x\"> : tensor<0xf32>",    "1.0> : tensor<0xf32>"};
    for (size_t i = 0; i < sizeof literals / sizeof *literals; i++) {
        struct ir_module *module = constant_module(literals[i]);
        assert_false(module_op(module, IR_OP_CONSTANT)->attributes.constant.splat);
        ir_module_free(module);
    }
}

static const struct {
    const char *literal, *error;
} wrong[] = {
    {"[1, 2]> : tensor<3xi32>", "t:2:31: expected 3 elements for dimension 0 of tensor<3xi32>"},
    {"[1, 2, 3]> : tensor<2xi32>", "t:2:31: expected 2 elements for dimension 0 of tensor<2xi32>"},
    {"[[1], [2, 3]]> : tensor<2x1xi32>", "t:2:37: expected 1 elements for dimension 1 of tensor<2x1xi32>"},
    {"256> : tensor<i8>", "t:2:31: 256 is out of range for i8"},
    {"-129> : tensor<i8>", "t:2:32: -129 is out of range for i8"},
    {"-1> : tensor<ui8>", "t:2:32: -1 is out of range for ui8"},
    {"1> : tensor<f32>", "t:2:31: expected a number with a point, or its bits as 0x..., got '1'"},
    {"1.0> : tensor<i32>", "t:2:31: expected an integer, got '1.0'"},
    {"0x1FFFF> : tensor<f16>", "t:2:31: 0x1FFFF has more bits than f16"},
    {"2> : tensor<i1>", "t:2:31: 2 is out of range for i1"},
    {"\"0x0102\"> : tensor<3xi32>", "t:2:31: 2 bytes are not the elements of tensor<3xi32>"},
    {"\"0x01g2\"> : tensor<2xi8>", "t:2:31: byte 1 is not hexadecimal"},
    {"\"hello\"> : tensor<2xi8>", "t:2:31: expected \"0x...\" with two digits for each byte"},
    {"> : tensor<2xi8>", "t:2:31: too few elements for tensor<2xi8>"},
    {"[1]> : tensor<1099511627776xi8>", "t:2:31: too few elements for tensor<1099511627776xi8>"},
    {"1> : tensor<1099511627777xi8>", "t:2:43: more than 2^40 elements"},
    {"1> : tensor<1048576x1048577xi8>", "t:2:51: more than 2^40 elements"},
    {"1> : tensor<?xi8>", "t:2:43: dynamic dimensions are not supported"},
    {"1> : tensor<2xi128>", "t:2:45: element type i128 is not supported"},
    {"1> : tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xi8>", "t:2:75: more than 16 dimensions"},
    {"1> : vector<2xi8>", "t:2:36: type vector is not supported"},
    {"(1.0, 2.0)> : tensor<2xf32>", "t:2:31: expected a number with a point, or its bits as 0x..., got '('"},
    {"1.0", "t:2:30: this bracket is not closed"},
    {"[[1", "t:2:30: this bracket is not closed"},
};

static void errors(void **state)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[256];
        struct error error = {0};
        struct ir_module *module = NULL;
        snprintf(text, sizeof text, "func.func @main() {\n%%0 = stablehlo.constant dense<%s\nreturn\n}\n",
                 wrong[i].literal);
        assert_true(ir_parse(str_from(text), "t", &module, &error) < 0);
        assert_string_equal(error.text, wrong[i].error);
        assert_null(module);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers),
        cmocka_unit_test(truths),
        cmocka_unit_test(floats),
        cmocka_unit_test(narrow_floats),
        cmocka_unit_test(shapes_without_elements),
        cmocka_unit_test(errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
