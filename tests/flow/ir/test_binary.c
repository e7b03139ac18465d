/* A module as bytes: any damage is an error, and the bytes of another version are refused by name. */
#include "flow/ir/texts.h"

static const char text[] =
    "module @m attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 3 : i32} {\n"
    "func.func @main(%v: tensor<8xf32>, %i: tensor<1x1xi32>) -> tensor<8xf32> {\n"
    "%z = stablehlo.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>\n"
    "%0 = \"stablehlo.scatter\"(%v, %i, %z) <{scatter_dimension_numbers = "
    "#stablehlo.scatter<update_window_dims = [1], "
    "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n^bb0(%a: tensor<f32>, %b: "
    "tensor<f32>):\n"
    "stablehlo.return %b : tensor<f32>\n}) : (tensor<8xf32>, tensor<1x1xi32>, tensor<1x2xf32>) -> "
    "tensor<8xf32>\n"
    "%1 = call @f(%0) : (tensor<8xf32>) -> tensor<8xf32>\n"
    "stablehlo.custom_call @note(%1) {backend_config = \"x\"} : (tensor<8xf32>) -> ()\n"
    "return %1 : tensor<8xf32>\n}\n"
    "func.func @f(%v: tensor<8xf32>) -> tensor<8xf32> {\n"
    "%0 = \"stablehlo.all_reduce\"(%v) <{replica_groups = dense<[[0, 1, 2]]> : tensor<1x3xi64>}> ({\n"
    "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%x = stablehlo.add %a, %b : tensor<f32>\n"
    "stablehlo.return %x : tensor<f32>\n}) : (tensor<8xf32>) -> tensor<8xf32>\nreturn %0 : "
    "tensor<8xf32>\n}\n}\n";

static struct str module_bytes(struct arena *arena)
{
    struct ir_module *module = text_module(text);
    struct str bytes = ir_encode(module, arena);
    ir_module_free(module);
    return bytes;
}

static void kept(void **state)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct ir_module *module = NULL;
    struct error error;
    assert_int_equal(ir_decode(module_bytes(&arena), &module, &error), 0);
    assert_true(str_is(module->name, "m") && str_is(module->file, "t"));
    assert_true(module->replicas == 3 && module->partitions == 2);
    const struct ir_op *call = module_op(module, IR_OP_CALL);
    assert_ptr_equal(call->attributes.call.callee, ir_function(module, STR("f")));
    assert_int_equal(call->place.line, 8);
    assert_int_equal(call->place.column, 6);
    assert_true(str_is(module_op(module, IR_OP_CUSTOM_CALL)->attributes.custom.backend_config, "x"));
    ir_module_free(module);
}

/* Every prefix is refused; a changed byte is refused, or gives a module that can be printed and encoded. */
static void damaged(void **state)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct str bytes = module_bytes(&arena);
    struct error error;
    struct ir_module *module = NULL;
    for (size_t len = 0; len < bytes.len; len++) {
        assert_int_equal(ir_decode((struct str){bytes.data, len}, &module, &error), ERROR_CORRUPT);
        assert_int_equal(error.code, ERROR_CORRUPT);
    }
    char *copy = arena_strdup(&arena, bytes);
    unsigned accepted = 0;
    for (size_t at = 0; at < bytes.len; at++) {
        for (unsigned change = 1; change < 256; change++) {
            struct arena ARENA_CLEANUP printed = {0};
            copy[at] = (char)((unsigned char)bytes.data[at] ^ change);
            int code = ir_decode((struct str){copy, bytes.len}, &module, &error);
            copy[at] = bytes.data[at];
            assert_true(code == 0 || code == ERROR_CORRUPT || code == ERROR_UNSUPPORTED);
            if (code < 0)
                continue;
            accepted++;
            assert_true(ir_print(module, &printed).len > 0 && ir_encode(module, &printed).len > 0);
            ir_module_free(module);
        }
    }
    assert_true(accepted > 0 && accepted < bytes.len * 255 / 2);
    assert_int_equal(
        ir_decode((struct str){ARENA_CONCAT(&arena, bytes, STR("x")).data, bytes.len + 1}, &module, &error),
        ERROR_CORRUPT);
    assert_string_equal(error.text, "module: bytes are left at the end");
}

static void versions(void **state)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct str bytes = module_bytes(&arena);
    struct error error;
    struct ir_module *module = NULL;
    char *copy = arena_strdup(&arena, bytes), *name = memmem(copy, bytes.len, "all_reduce", 10);
    copy[4] = 9;
    assert_int_equal(ir_decode((struct str){copy, bytes.len}, &module, &error), ERROR_UNSUPPORTED);
    assert_string_equal(error.text, "module of version 9, this build reads version 1");
    copy[4] = 1;
    memcpy(name, "all_refuse", 10);
    assert_int_equal(ir_decode((struct str){copy, bytes.len}, &module, &error), ERROR_UNSUPPORTED);
    assert_string_equal(error.text, "module with the operation all_refuse, which this build does not know");
    assert_int_equal(ir_decode(STR("not a module"), &module, &error), ERROR_CORRUPT);
    assert_string_equal(error.text, "the bytes are no module of flow");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept),
        cmocka_unit_test(damaged),
        cmocka_unit_test(versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
