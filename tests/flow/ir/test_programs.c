/* Every program of JAX's test data is read, verified, and the same after printing and after encoding. */
#include "flow/ir/texts.h"

struct tally {
    int modules, functions;
};
static int module_is_kept_each(struct ir_module *module, void *arg)
{
    struct tally *tally = arg;
    for (struct ir_function *function = module->functions; function; function = function->next)
        tally->functions++;
    tally->modules++;
    module_is_kept(module);
    return 0;
}

static void jax_programs(void **state)
{
    struct tally tally = {0};
    int programs = data_programs(".", module_is_kept_each, &tally);
    if (programs == 0)
        return;
    print_message("%d programs, %d functions\n", programs, tally.functions);
    assert_true(programs >= 929);
    assert_int_equal(tally.modules, programs);
}

static void parallel_programs(void **state)
{
    struct tally tally = {0};
    int programs = data_programs("parallel", module_is_kept_each, &tally);
    if (programs == 0)
        return;
    assert_int_equal(programs, 7);
    assert_true(tally.modules > programs); /* several in a file */
}

/* Text that jax.jit(f).lower(x).as_text() prints besides operations: locations, shardings, layouts,
 * aliases. */
static void jax_surroundings(void **state)
{
    static const char text[] =
        "#loc = loc(unknown)\n"
        "module @jit_f attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 2 : i32,\n"
        "    mhlo.num_replicas = 1 : i32, mhlo.frontend_attributes = {a = \"{\\22x\\22=2}\"}} {\n"
        "  sdy.mesh @mesh = <[\"x\"=2]> loc(#loc)\n"
        "  func.func public @main(%arg0: tensor<8x16xf32> {mhlo.sharding = \"{devices=[2,1]<=[2]}\",\n"
        "      sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>} loc(\"x\"), %arg1: tensor<16x4xf32>)\n"
        "      -> (tensor<8x4xf32> {jax.result_info = \"result[0]\"}) {\n"
        "    %0 = stablehlo.custom_call @Sharding(%arg0) {mhlo.sharding = \"{}\"}\n"
        "        : (tensor<8x16xf32>) -> tensor<8x16xf32> loc(#loc2)\n"
        "    %1 = sdy.sharding_constraint %0 <@mesh, [{\"x\"}, {}]> : tensor<8x16xf32> loc(#loc)\n"
        "    %2 = stablehlo.dot_general %1, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, "
        "HIGHEST],\n"
        "        algorithm = <lhs_precision_type = tf32, num_primitive_operations = 1>\n"
        "        : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32> loc(#loc)\n"
        "    %3 = stablehlo.custom_call @solve(%2) {api_version = 4 : i32, backend_config = {n = 1 : i32},\n"
        "        operand_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<8x4xf32>) -> "
        "tensor<8x4xf32>\n"
        "    return %3 : tensor<8x4xf32> loc(#loc)\n"
        "  } loc(#loc)\n"
        "} loc(#loc)\n"
        "#loc2 = loc(\"jit(f)/dot_general\"(\"x.py\":3:0))\n";
    struct ir_module *module = text_module(text);
    const struct ir_function *main = ir_function(module, STR("main"));
    assert_true(str_is(module->name, "jit_f") && module->partitions == 2 && module->replicas == 1);
    const struct ir_op *dot = main->body.first; /* the two sharding constraints are their operand */
    assert_int_equal(dot->kind, IR_OP_DOT_GENERAL);
    assert_ptr_equal(dot->operands[0], &main->body.args[0]);
    assert_int_equal(dot->place.line, 11);
    assert_int_equal(dot->place.column, 10);
    assert_int_equal(dot->next->kind, IR_OP_CUSTOM_CALL);
    assert_true(str_is(dot->next->attributes.custom.target, "solve"));
    assert_true(str_is(dot->next->attributes.custom.backend_config, "{n = 1 : i32}"));
    assert_null(ir_function(module, STR("other")));
    module_is_kept(module);
    ir_module_free(module);
}

static void splitting(void **state)
{
    static const char text[] = "// a comment\n\n// -----\nfunc.func @main() {\n return\n}\n"
                               "// -----\nmodule @second {\n func.func @main() {\n  oops\n }\n}\n";
    struct tally tally = {0};
    struct error error;
    assert_int_equal(ir_parse_split(str_from(text), "two", module_is_kept_each, &tally, &error),
                     ERROR_INVALID);
    assert_string_equal(error.text, "two:10:3: expected an operation, got 'oops'");
    assert_int_equal(tally.modules, 1); /* the part of comments alone is none */
}

static int stop_at_once(struct ir_module *module, void *arg)
{
    return 42;
}

static void splitting_stops(void **state)
{
    struct error error;
    assert_int_equal(
        ir_parse_split(STR("func.func @a() {\nreturn\n}\n// -----\noops"), "t", stop_at_once, NULL, &error),
        42);
}

/* Values are numbered in the order of the text, results of an operation after its regions. */
static void value_numbers(void **state)
{
    struct ir_module *module =
        text_module("func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {\n"
                    "  %y = \"stablehlo.if\"(%p) ({\n    %a = stablehlo.negate %x : tensor<f32>\n"
                    "    stablehlo.return %a : tensor<f32>\n  }, {\n    stablehlo.return %x : tensor<f32>\n"
                    "  }) : (tensor<i1>) -> tensor<f32>\n  return %y : tensor<f32>\n}\n");
    const struct ir_function *main = ir_function(module, STR("main"));
    const struct ir_op *branch = main->body.first;
    assert_int_equal(main->value_count, 4);
    assert_int_equal(main->body.args[1].number, 1);
    assert_int_equal(branch->regions[0].first->results[0].number, 2);
    assert_int_equal(branch->results[0].number, 3);
    assert_ptr_equal(branch->results[0].op, branch);
    assert_ptr_equal(main->body.last->operands[0], &branch->results[0]);
    module_is_kept(module);
    ir_module_free(module);
}

/* The whole module in the generic form, as mlir-opt --mlir-print-op-generic prints it. */
static void generic_module(void **state)
{
    static const char text[] =
        "\"builtin.module\"() <{sym_name = \"jit_f\"}> ({\n"
        "  \"func.func\"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = \"main\", "
        "sym_visibility = "
        "\"public\"}> ({\n"
        "  ^bb0(%arg0: tensor<4xf32>):\n"
        "    %0 = \"func.call\"(%arg0) <{callee = @g}> : (tensor<4xf32>) -> tensor<4xf32>\n"
        "    \"func.return\"(%0) : (tensor<4xf32>) -> ()\n"
        "  }) : () -> ()\n"
        "  \"func.func\"() ({\n"
        "  ^bb0(%arg0: tensor<4xf32>):\n"
        "    \"func.return\"(%arg0) : (tensor<4xf32>) -> ()\n"
        "  }) {function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = \"g\"} : () -> ()\n"
        "}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} : () -> ()\n";
    static const char custom[] = "module @jit_f attributes {mhlo.num_replicas = 4 : i32} {\n"
                                 "  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
                                 "    %0 = call @g(%arg0) : (tensor<4xf32>) -> tensor<4xf32>\n"
                                 "    return %0 : tensor<4xf32>\n  }\n"
                                 "  func.func private @g(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
                                 "    return %arg0 : tensor<4xf32>\n  }\n}\n";
    struct arena ARENA_CLEANUP arena = {0};
    struct ir_module *generic = text_module(text), *module = text_module(custom);
    assert_true(str_equal(ir_print(generic, &arena), ir_print(module, &arena)));
    ir_module_free(generic);
    ir_module_free(module);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jax_programs),     cmocka_unit_test(parallel_programs),
        cmocka_unit_test(jax_surroundings), cmocka_unit_test(splitting),
        cmocka_unit_test(splitting_stops),  cmocka_unit_test(value_numbers),
        cmocka_unit_test(generic_module),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
