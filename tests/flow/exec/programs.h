/* programs.h - small StableHLO programs for the tests of flow/exec. */
#ifndef PHX_TESTS_FLOW_EXEC_PROGRAMS_H
#define PHX_TESTS_FLOW_EXEC_PROGRAMS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow/exec/executor.h"

/* The results of a launch, a reference each. */
struct outcome {
    struct tensor *results[8];
    uint32_t count;
    struct error error;
    int calls; /* of done */
};

static inline void outcome_note(void *arg, struct tensor **results, uint32_t count,
                                const struct flow_failure *failure)
{
    struct outcome *outcome = arg;
    assert_true(count <= 8);
    outcome->calls++;
    if (failure)
        outcome->error = failure->error;
    for (uint32_t k = 0; k < count; k++)
        outcome->results[k] = results[k];
    outcome->count = count;
}

static inline void outcome_free(struct outcome *outcome)
{
    for (uint32_t k = 0; k < outcome->count; k++)
        tensor_unref(outcome->results[k]);
}

/* The module of a text that is right; the caller frees it. */
static inline struct ir_module *program_module(const char *text)
{
    struct ir_module *module = NULL;
    struct error error = {0};
    if (ir_parse(str_from(text), "t", &module, &error) < 0 || ir_verify(module, &error) < 0)
        fail_msg("%s\n%s", error.text, text);
    return module;
}

/* Compiles @main and launches it; the code of the failure of either. */
static inline int program_launch(const char *executor_name, const struct ir_module *module,
                                 const struct flow_launch *how, struct outcome *outcome)
{
    const struct executor *executor = executor_named(executor_name);
    struct executable *executable = NULL;
    struct flow_launch launch = *how;
    *outcome = (struct outcome){.count = 0};
    int code =
        executor->compile(executor, module, ir_function(module, STR("main")), &executable, &outcome->error);
    if (code < 0)
        return code;
    launch.done = outcome_note;
    launch.arg = outcome;
    executor->launch(executable, &launch);
    executor->release(executable);
    assert_int_equal(outcome->calls, 1);
    return outcome->error.code;
}

/* Runs @main, which takes no arguments and whose results are dropped, on each executor of the build; all give
 * one code. */
static inline int program_run(const char *text, struct error *error)
{
    static const char *const NAMES[] = {"interpreter", "onednn"};
    struct ir_module *module = program_module(text);
    int codes[2] = {0};
    for (int k = 0; k < 2; k++) {
        struct outcome outcome;
        if (!executor_named(NAMES[k])) {
            codes[k] = codes[0];
            continue;
        }
        codes[k] = program_launch(NAMES[k], module, &(struct flow_launch){0}, &outcome);
        outcome_free(&outcome);
        *error = outcome.error;
        assert_int_equal(codes[k], codes[0]);
    }
    ir_module_free(module);
    assert_int_equal(tensor_bytes(), 0);
    return codes[0];
}

/* Operations of @main that check themselves; `return` is added. */
static inline void body_passes(const char *body)
{
    char text[8192];
    struct error error = {0};
    int len = snprintf(text, sizeof text, "func.func @main() {\n%s\nreturn\n}\n", body);
    assert_true(len > 0 && (size_t)len < sizeof text);
    if (program_run(text, &error) != 0)
        fail_msg("%s\n%s", error.text, text);
}

static inline void bodies_pass(const char *const *bodies, size_t count)
{
    for (size_t k = 0; k < count; k++)
        body_passes(bodies[k]);
}
#define BODIES_PASS(bodies) bodies_pass(bodies, sizeof(bodies) / sizeof *(bodies))

#endif
