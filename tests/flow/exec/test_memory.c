/* Values are freed after their last use: the static peak is what a launch really holds. */
#include "programs.h"

/* Bytes at the peak of one launch of @main, beyond its arguments. */
static int64_t peak_measured(const char *text, int64_t *peak)
{
    struct ir_module *module = program_module(text);
    const struct executor *executor = executor_named("interpreter");
    const struct ir_function *main = ir_function(module, STR("main"));
    struct executable *executable = NULL;
    struct error error = {0};
    struct tensor *args[4];
    struct outcome outcome = {.count = 0};
    assert_true(main->body.arg_count <= 4);
    for (uint32_t k = 0; k < main->body.arg_count; k++) {
        args[k] = tensor_new(&main->body.args[k].type);
        memset(args[k]->data, 0, (size_t)ir_type_bytes(&args[k]->type));
    }
    if (executor->compile(executor, module, main, &executable, &error) < 0)
        fail_msg("%s", error.text);
    int64_t before = tensor_bytes();
    tensor_bytes_mark();
    executor->launch(executable, &(struct flow_launch){.args = args, .done = outcome_note, .arg = &outcome});
    int64_t measured = tensor_bytes_peak() - before;
    assert_int_equal(outcome.error.code, 0);
    *peak = executor->peak_bytes(executable);
    executor->release(executable);
    outcome_free(&outcome);
    for (uint32_t k = 0; k < main->body.arg_count; k++)
        tensor_unref(args[k]);
    ir_module_free(module);
    assert_int_equal(tensor_bytes(), 0);
    return measured;
}

static const struct {
    const char *text;
    int64_t peak;
} programs[] = {
    /* a chain holds two values at a time, however long it is */
    {"func.func @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {\n"
     "%0 = stablehlo.add %x, %x : tensor<1024xf32>\n%1 = stablehlo.tanh %0 : tensor<1024xf32>\n"
     "%2 = stablehlo.tanh %1 : tensor<1024xf32>\n%3 = stablehlo.tanh %2 : tensor<1024xf32>\n"
     "return %3 : tensor<1024xf32>\n}\n",
     8192},
    /* %0 is used last at the end; %1 is never used */
    {"func.func @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {\n"
     "%0 = stablehlo.add %x, %x : tensor<1024xf32>\n%1 = stablehlo.tanh %0 : tensor<1024xf32>\n"
     "%2 = stablehlo.tanh %x : tensor<1024xf32>\n%3 = stablehlo.multiply %2, %0 : tensor<1024xf32>\n"
     "return %3 : tensor<1024xf32>\n}\n",
     12288},
    /* a callee's temporaries come on top of what the caller keeps */
    {"func.func @main(%x: tensor<256xf32>) -> tensor<256xf32> {\n"
     "%0 = stablehlo.add %x, %x : tensor<256xf32>\n"
     "%1 = call @f(%x) : (tensor<256xf32>) -> tensor<256xf32>\n"
     "%2 = stablehlo.add %0, %1 : tensor<256xf32>\nreturn %2 : tensor<256xf32>\n}\n"
     "func.func @f(%x: tensor<256xf32>) -> tensor<256xf32> {\n"
     "%0 = stablehlo.concatenate %x, %x, %x, dim = 0 : (tensor<256xf32>, tensor<256xf32>, tensor<256xf32>) "
     "-> "
     "tensor<768xf32>\n"
     "%1 = stablehlo.slice %0 [0:256] : (tensor<768xf32>) -> tensor<256xf32>\nreturn %1 : "
     "tensor<256xf32>\n}\n",
     1024 + 3072 + 1024},
    /* a loop: its state, and the iteration that replaces it; %c is taken from outside and freed behind it */
    {"func.func @main(%x: tensor<256xf32>) -> tensor<256xf32> {\n"
     "%c = stablehlo.add %x, %x : tensor<256xf32>\n%i = stablehlo.constant dense<0> : tensor<i32>\n"
     "%0:2 = stablehlo.while(%k = %i, %v = %x) : tensor<i32>, tensor<256xf32>\n"
     " cond {\n  %n = stablehlo.constant dense<5> : tensor<i32>\n"
     "  %p = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
     "  stablehlo.return %p : tensor<i1>\n } do {\n"
     "  %one = stablehlo.constant dense<1> : tensor<i32>\n  %s = stablehlo.add %k, %one : tensor<i32>\n"
     "  %w = stablehlo.add %v, %c : tensor<256xf32>\n"
     "  stablehlo.return %s, %w : tensor<i32>, tensor<256xf32>\n }\n"
     "%1 = stablehlo.tanh %0#1 : tensor<256xf32>\nreturn %1 : tensor<256xf32>\n}\n",
     /* %c, %i, state of two, %s and %w */ 1024 + 4 + (4 + 1024) + (4 + 1024)},
    /* a sum needs no scalars */
    {"func.func @main(%x: tensor<256xf32>) -> tensor<f32> {\n"
     "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
     "%0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<256xf32>, "
     "tensor<f32>) -> tensor<f32>\nreturn %0 : tensor<f32>\n}\n",
     8},
};

static void test_peak(void **state)
{
    for (size_t k = 0; k < sizeof programs / sizeof *programs; k++) {
        int64_t peak = 0, measured = peak_measured(programs[k].text, &peak);
        print_message("program %zu: static %lld, measured %lld bytes\n", k, (long long)peak,
                      (long long)measured);
        assert_int_equal(peak, programs[k].peak);
        assert_int_equal(measured, peak);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
