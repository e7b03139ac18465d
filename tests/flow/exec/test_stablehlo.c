/* Runs the StableHLO programs of ../shared/data on the interpreter: each compares what it computes with the
 * values that it expects, and fails where they differ. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "flow/exec/executor.h"

#define FOLDER "../shared/data/stablehlo"

/* Reads a file; the caller frees. */
static struct str file_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    char *data = malloc((size_t)size + 1);
    rewind(file);
    assert_int_equal(fread(data, 1, (size_t)size, file), size);
    fclose(file);
    return (struct str){.data = data, .len = (size_t)size};
}

static void note_failure(void *arg, struct tensor **results, uint32_t count,
                         const struct flow_failure *failure)
{
    struct error *error = arg;
    if (failure)
        *error = failure->error;
    for (uint32_t k = 0; k < count; k++)
        tensor_unref(results[k]);
}

/* Runs one function without arguments; 0, or the failure's code. */
static int function_run(const struct executor *executor, const struct ir_module *module,
                        const struct ir_function *function, struct error *error)
{
    struct executable *executable = NULL;
    int code = executor->compile(executor, module, function, &executable, error);
    if (code < 0)
        return code;
    struct error failure = {0};
    executor->launch(executable, &(struct flow_launch){.done = note_failure, .arg = &failure});
    executor->release(executable);
    if (failure.code < 0)
        *error = failure;
    return failure.code;
}

struct tally {
    const struct executor *executor;
    uint32_t passed, failed;
};

static int module_run(struct ir_module *module, void *arg)
{
    struct tally *tally = arg;
    for (const struct ir_function *f = module->functions; f; f = f->next) {
        if (f->body.arg_count > 0 || !str_is(f->name, "main"))
            continue;
        struct error error = {0};
        if (function_run(tally->executor, module, f, &error) == 0)
            tally->passed++;
        else {
            print_message("%s\n", error.text);
            tally->failed++;
        }
    }
    return 0;
}

static void folder_run(const char *folder, struct tally *tally)
{
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct str name = str_from(entry->d_name);
        if (name.len < 5 || !str_equal(str_from(entry->d_name + name.len - 5), STR(".mlir")))
            continue;
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        struct str text = file_read(path);
        struct error error = {0};
        if (ir_parse_split(text, entry->d_name, module_run, tally, &error) < 0) {
            print_message("%s\n", error.text);
            tally->failed++;
        }
        free((char *)text.data);
    }
    closedir(dir);
}

/* Runs the programs of a folder on an executor; all must pass. */
static void programs_pass(const char *folder, const char *name)
{
    struct tally tally = {.executor = executor_named(name)};
    if (access(folder, R_OK) < 0 || !tally.executor) {
        print_message("skip: no %s, or no executor %s in this build\n", folder, name);
        skip();
    }
    folder_run(folder, &tally);
    print_message("%s, %s: %u passed, %u failed\n", folder, name, tally.passed, tally.failed);
    assert_int_equal(tally.failed, 0);
    assert_true(tally.passed > 0);
    assert_int_equal(tensor_bytes(), 0);
}

static void test_programs(void **state)
{
    programs_pass(FOLDER, "interpreter");
}

static void test_parallel_programs(void **state)
{
    programs_pass(FOLDER "/parallel", "interpreter");
}

static void test_programs_onednn(void **state)
{
    programs_pass(FOLDER, "onednn");
}

static void test_parallel_programs_onednn(void **state)
{
    programs_pass(FOLDER "/parallel", "onednn");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs),
        cmocka_unit_test(test_parallel_programs),
        cmocka_unit_test(test_programs_onednn),
        cmocka_unit_test(test_parallel_programs_onednn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
