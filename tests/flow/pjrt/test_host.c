/* The host of PJRT plugins: on our own plugin it computes what the executor beneath computes; plugins that
 * are wrong are refused, by name, and leave nothing behind. */
#include "flow/exec/programs.h"

#include <dlfcn.h>

#include "flow/pjrt/host.h"

static const char *built(const char *file)
{
    static char path[4096];
    const char *build = getenv("PHX_BUILD");
    snprintf(path, sizeof path, "%s/%s", build ? build : "build", file);
    return path;
}

static const struct executor *plugin(const char *file)
{
    struct error error = {0};
    const struct executor *executor = executor_pjrt(built(file), &error);
    if (!executor)
        fail_msg("%s", error.text);
    return executor;
}

/* Compiles the function and launches it with these arguments. */
static int run(const struct executor *executor, const struct ir_module *module, const char *function,
               struct tensor *const *args, struct outcome *outcome)
{
    struct executable *executable = NULL;
    *outcome = (struct outcome){0};
    int rc = executor->compile(executor, module, ir_function(module, str_from(function)), &executable,
                               &outcome->error);
    if (rc < 0)
        return rc;
    executor->launch(executable, &(struct flow_launch){.args = args, .done = outcome_note, .arg = outcome});
    executor->release(executable);
    assert_int_equal(outcome->calls, 1);
    return outcome->error.code;
}

static struct tensor *vector(enum ir_element element, const void *data, int64_t count)
{
    struct ir_type type = {.element = element, .rank = 1, .dims = {count}};
    struct tensor *tensor = tensor_new(&type);
    assert_non_null(tensor);
    memcpy(tensor->data, data, (size_t)ir_type_bytes(&type));
    return tensor;
}

/* --- our own plugin ------------------------------------------------------------------------------------- */

static void a_function_runs_on_the_plugin(void **state)
{
    struct ir_module *module = program_module(
        "func.func @sums(%a: tensor<2xf32>, %b: tensor<2xf32>, %c: tensor<3xi1>) -> (tensor<2xf32>, "
        "tensor<f32>,"
        " tensor<3xi1>) {\n"
        "%s = stablehlo.add %a, %b : tensor<2xf32>\n%one = stablehlo.constant dense<1.5> : tensor<f32>\n"
        "%n = stablehlo.not %c : tensor<3xi1>\n"
        "return %s, %one, %n : tensor<2xf32>, tensor<f32>, tensor<3xi1>\n}\n");
    struct tensor *args[] = {vector(IR_F32, (float[]){1, 2}, 2), vector(IR_F32, (float[]){10, 20}, 2),
                             vector(IR_I1, (uint8_t[]){1, 0, 1}, 3)};
    struct outcome outcome;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(run(plugin("libphalanx_pjrt.so"), module, "sums", args, &outcome), 0);
        assert_int_equal(outcome.count, 3);
        const float *sums = outcome.results[0]->data, *one = outcome.results[1]->data;
        const uint8_t *not = outcome.results[2]->data;
        assert_true(sums[0] == 11 && sums[1] == 22 && *one == 1.5f);
        assert_true(not [0] == 0 && not [1] == 1 && not [2] == 0);
        outcome_free(&outcome);
    }
    for (int i = 0; i < 3; i++)
        tensor_unref(args[i]);
    ir_module_free(module);
    assert_int_equal(tensor_bytes(), 0);
}

static void every_type_comes_back_as_it_went(void **state)
{
    static const char *const TYPES[] = {"i1",   "i8",   "i16",  "i32",          "i64",         "ui8",
                                        "ui16", "ui32", "ui64", "f8E5M2",       "f8E4M3FN",    "f16",
                                        "bf16", "f32",  "f64",  "complex<f32>", "complex<f64>"};
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
        char text[256];
        uint8_t bytes[32];
        struct outcome outcome;
        snprintf(text, sizeof text,
                 "func.func @main(%%a: tensor<2x%s>) -> tensor<2x%s> {\nreturn %%a : tensor<2x%s>\n}\n",
                 TYPES[i], TYPES[i], TYPES[i]);
        struct ir_module *module = program_module(text);
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = i == 0 ? k % 2 : (uint8_t)(k + 60);
        struct tensor *arg = vector(module->functions->results[0].element, bytes, 2);
        if (run(plugin("libphalanx_pjrt.so"), module, "main", &arg, &outcome) < 0)
            fail_msg("%s: %s", TYPES[i], outcome.error.text);
        assert_memory_equal(outcome.results[0]->data, bytes, (size_t)ir_type_bytes(&arg->type));
        outcome_free(&outcome);
        tensor_unref(arg);
        ir_module_free(module);
    }
}

static void a_failure_has_the_plugin_s_words(void **state)
{
    struct outcome outcome;
    struct ir_module *module =
        program_module("func.func @main() {\n"
                       "%0 = stablehlo.constant dense<1> : tensor<i32>\n"
                       "check.expect_eq_const %0, dense<2> : tensor<i32>\nreturn\n}\n");
    assert_int_equal(run(plugin("libphalanx_pjrt.so"), module, "main", NULL, &outcome), ERROR_INVALID);
    assert_non_null(strstr(outcome.error.text, "libphalanx_pjrt.so: "));
    assert_non_null(strstr(outcome.error.text, "element 0 is 1, expected 2"));
    ir_module_free(module);
}

static void what_a_plugin_cannot_do_is_refused(void **state)
{
    static const char *const WRONG[][2] = {
        {"func.func @f() -> tensor<ui32> {\n%0 = stablehlo.partition_id : tensor<ui32>\nreturn %0 : "
         "tensor<ui32>\n}\n",
         "partition_id"},
        {"func.func @f(%a: tensor<2xi4>) -> tensor<2xi4> {\nreturn %a : tensor<2xi4>\n}\n", "tensor<2xi4>"},
        {"func.func @main() {\nreturn\n}\nfunc.func @f() {\nreturn\n}\n", "has another one"},
    };
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        struct outcome outcome;
        struct ir_module *module = program_module(WRONG[i][0]);
        assert_int_equal(run(plugin("libphalanx_pjrt.so"), module, "f", NULL, &outcome), ERROR_UNSUPPORTED);
        if (!strstr(outcome.error.text, WRONG[i][1]))
            fail_msg("%s", outcome.error.text);
        ir_module_free(module);
    }
}

/* --- wrong plugins -------------------------------------------------------------------------------------- */

static void a_wrong_plugin_is_not_loaded(void **state)
{
    static const struct {
        const char *file, *wrong, *words;
        int code;
    } rows[] = {
        {"nowhere.so", "", "nowhere.so", ERROR_NOT_FOUND},
        {"stub_switch.so", "", "no function GetPjrtApi", ERROR_UNSUPPORTED},
        {"stub_pjrt.so", "null", "returns no table", ERROR_UNSUPPORTED},
        {"stub_pjrt.so", "major", "is 1.90: expected 0.57 or later", ERROR_UNSUPPORTED},
        {"stub_pjrt.so", "minor", "is 0.56: expected 0.57 or later", ERROR_UNSUPPORTED},
        {"stub_pjrt.so", "short", "it has no PJRT_Executable_OutputElementTypes", ERROR_UNSUPPORTED},
        {"stub_pjrt.so", "missing", "it has no PJRT_LoadedExecutable_Execute", ERROR_UNSUPPORTED},
        {"stub_pjrt.so", "client", "stub_pjrt.so: the device is on fire", ERROR_INVALID},
        {"stub_pjrt.so", "device", "it has no device", ERROR_UNAVAILABLE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error = {0};
        setenv("PHX_STUB", rows[i].wrong, 1);
        assert_null(executor_pjrt(built(rows[i].file), &error));
        if ((int)error.code != rows[i].code || !strstr(error.text, rows[i].words))
            fail_msg("%s: %d %s", rows[i].wrong, (int)error.code, error.text);
    }
    unsetenv("PHX_STUB");
}

static const char COPY[] =
    "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\nreturn %a : tensor<2xf32>\n}\n";

static int run_stub(const char *wrong, struct outcome *outcome)
{
    const struct executor *executor = plugin("stub_pjrt.so");
    struct ir_module *module = program_module(COPY);
    struct tensor *arg = vector(IR_F32, (float[]){3, 4}, 2);
    setenv("PHX_STUB", wrong, 1);
    int rc = run(executor, module, "main", &arg, outcome);
    unsetenv("PHX_STUB");
    tensor_unref(arg);
    ir_module_free(module);
    return rc;
}

static void wrong_answers_are_found_and_nothing_is_left(void **state)
{
    static const struct {
        const char *wrong, *words;
        int code;
    } rows[] = {
        {"compile", "the device is on fire", ERROR_INVALID},
        {"outputs", "other results", ERROR_INVALID},
        {"type", "other results", ERROR_INVALID},
        {"dims", "other results", ERROR_INVALID},
        {"rank", "other results", ERROR_INVALID},
        {"send", "on fire", ERROR_INVALID},
        {"execute", "on fire", ERROR_INVALID},
        {"memory", "on fire", ERROR_LIMIT},
        {"late", "on fire", ERROR_INVALID},
        {"fetch", "on fire", ERROR_INVALID},
    };
    struct outcome outcome;
    assert_int_equal(run_stub("", &outcome), 0);
    assert_true(((const float *)outcome.results[0]->data)[1] == 4);
    outcome_free(&outcome);
    void *library = dlopen(built("stub_pjrt.so"), RTLD_NOW);
    int (*alive)(void);
    *(void **)&alive = dlsym(library, "stub_alive");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(run_stub(rows[i].wrong, &outcome), rows[i].code);
        if (!strstr(outcome.error.text, rows[i].words) || strstr(outcome.error.text, "says nobody"))
            fail_msg("%s: %s", rows[i].wrong, outcome.error.text);
        assert_int_equal(alive(), 0);
        assert_int_equal(tensor_bytes(), 0);
    }
    dlclose(library);
}

/* An argument that has been there is not brought again until it is evicted, and goes with its tensor. */
static void values_stay_on_the_device(void **state)
{
    const struct executor *executor = plugin("stub_pjrt.so");
    struct ir_module *module = program_module(COPY);
    struct tensor *arg = vector(IR_F32, (float[]){3, 4}, 2);
    struct outcome outcome;
    void *library = dlopen(built("stub_pjrt.so"), RTLD_NOW);
    int (*alive)(void);
    *(void **)&alive = dlsym(library, "stub_alive");
    assert_int_equal(run(executor, module, "main", &arg, &outcome), 0);
    assert_int_equal(alive(), 2); /* the argument, the result */
    outcome_free(&outcome);
    assert_int_equal(alive(), 1);
    setenv("PHX_STUB", "send", 1); /* sending fails: it must not be tried */
    assert_int_equal(run(executor, module, "main", &arg, &outcome), 0);
    struct tensor *result = tensor_ref(outcome.results[0]);
    outcome_free(&outcome);
    assert_int_equal(run(executor, module, "main", &result, &outcome), 0);
    outcome_free(&outcome);
    executor->evict(result);
    executor->evict(arg);
    executor->evict(arg);
    assert_int_equal(alive(), 0);
    assert_true(((const float *)result->data)[1] == 4);
    assert_int_equal(run(executor, module, "main", &arg, &outcome), ERROR_INVALID);
    unsetenv("PHX_STUB");
    assert_int_equal(run(executor, module, "main", &arg, &outcome), 0);
    outcome_free(&outcome);
    tensor_unref(arg);
    tensor_unref(result);
    assert_int_equal(alive(), 0);
    dlclose(library);
    ir_module_free(module);
}

static void the_peak_is_the_plugin_s_if_it_can_be_right(void **state)
{
    static const struct {
        const char *wrong;
        int64_t bytes;
    } rows[] = {{"", 108}, {"stats", 8}};
    const struct executor *executor = plugin("stub_pjrt.so");
    struct ir_module *module = program_module(COPY);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct executable *executable;
        struct error error = {0};
        setenv("PHX_STUB", rows[i].wrong, 1);
        assert_int_equal(
            executor->compile(executor, module, ir_function(module, STR("main")), &executable, &error), 0);
        assert_int_equal(executor->peak_bytes(executable), rows[i].bytes);
        executor->release(executable);
    }
    unsetenv("PHX_STUB");
    ir_module_free(module);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_plugin_is_not_loaded), /* first: what was loaded stays */
        cmocka_unit_test(a_function_runs_on_the_plugin),
        cmocka_unit_test(every_type_comes_back_as_it_went),
        cmocka_unit_test(a_failure_has_the_plugin_s_words),
        cmocka_unit_test(what_a_plugin_cannot_do_is_refused),
        cmocka_unit_test(wrong_answers_are_found_and_nothing_is_left),
        cmocka_unit_test(values_stay_on_the_device),
        cmocka_unit_test(the_peak_is_the_plugin_s_if_it_can_be_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
