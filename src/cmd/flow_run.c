/* phalanx flow run: runs the function @main of programs on an executor, and counts the programs that
 * passed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/flow.h"
#include "cmd/usage.h"
#include "doc/json.h"
#include "flow/exec/executor.h"
#include "flow/pjrt/host.h"

static const char usage[] =
    "Usage: phalanx flow run [--executor NAME] [-o text|json] FILE...\n"
    "\n"
    "Runs the function @main of each module in StableHLO files. @main takes no arguments; a program passes\n"
    "when it ends without a failed check (check.expect_eq and others). A program that uses what the "
    "executor\n"
    "cannot compute is refused: operation, type and place are named. So is a module without such a @main.\n"
    "  --executor NAME   interpreter (default), onednn where the build has it, or pjrt:FILE: a PJRT plugin\n"
    "  -o json           counts and failures as JSON\n"
    "  --help            this text\n"
    "\n"
    "Exit status: 0 every program passed, 1 one failed or was refused, 2 the command line is wrong.\n";

enum { RAN_PASSED, RAN_FAILED, RAN_REFUSED, RAN_KINDS };
static const char *const RAN_NAMES[RAN_KINDS] = {"passed", "failed", "refused"};

struct flow_ran {
    const struct executor *executor;
    unsigned long long counts[RAN_KINDS];
    bool json;
    struct json_writer failures;
};

static void ran_note(struct flow_ran *ran, const char *path, int code, const struct error *error)
{
    int kind = code == 0 ? RAN_PASSED : code == ERROR_UNSUPPORTED ? RAN_REFUSED : RAN_FAILED;
    ran->counts[kind]++;
    if (code == 0)
        return;
    if (!ran->json) {
        fprintf(stderr, "%s: %s\n", RAN_NAMES[kind], error->text);
        return;
    }
    json_begin_object(&ran->failures);
    json_pair_text(&ran->failures, "file", path);
    json_pair_text(&ran->failures, "outcome", RAN_NAMES[kind]);
    json_pair_text(&ran->failures, "message", error->text);
    json_end_object(&ran->failures);
}

static void ran_done(void *arg, struct tensor **results, uint32_t count, const struct flow_failure *failure)
{
    struct error *error = arg;
    if (failure)
        *error = failure->error;
    for (uint32_t i = 0; i < count; i++)
        tensor_unref(results[i]);
}

/* Verifies, compiles and runs @main. Returns 0 or the code of the failure. */
static int main_run(const struct executor *executor, const struct ir_module *module, struct error *error)
{
    struct executable *executable = NULL;
    if (ir_verify(module, error) < 0)
        return (int)error->code;
    const struct ir_function *function = ir_function(module, STR("main"));
    if (!function || function->body.arg_count > 0)
        return error_set(error, ERROR_UNSUPPORTED, STR_FORMAT ": expected a function @main without arguments",
                         STR_ARG(module->file));
    int code = executor->compile(executor, module, function, &executable, error);
    if (code < 0)
        return code;
    struct error failure = {0};
    executor->launch(executable, &(struct flow_launch){.done = ran_done, .arg = &failure});
    executor->release(executable);
    if (failure.code < 0)
        *error = failure;
    return (int)failure.code;
}

static int run_flow_module(struct ir_module *module, void *arg)
{
    struct flow_ran *ran = arg;
    struct error error = {0};
    char path[512];
    snprintf(path, sizeof path, STR_FORMAT, STR_ARG(module->file));
    int code = main_run(ran->executor, module, &error);
    ran_note(ran, path, code, &error);
    return 0;
}

static void ran_print(const struct flow_ran *ran, struct buf *failures)
{
    if (!ran->json) {
        printf("%s: %llu passed, %llu failed, %llu refused\n", ran->executor->name, ran->counts[RAN_PASSED],
               ran->counts[RAN_FAILED], ran->counts[RAN_REFUSED]);
        return;
    }
    struct buf BUF_CLEANUP out = {0};
    struct json_writer writer = {.out = &out};
    json_begin_object(&writer);
    json_pair_text(&writer, "executor", ran->executor->name);
    for (int k = 0; k < RAN_KINDS; k++)
        json_pair_int(&writer, RAN_NAMES[k], (int64_t)ran->counts[k]);
    json_key(&writer, "failures");
    json_put_raw(&writer, buf_str(failures));
    json_end_object(&writer);
    printf(STR_FORMAT "\n", STR_ARG(buf_str(&out)));
}

static int run_files(struct flow_ran *ran, char **paths, int count)
{
    struct buf BUF_CLEANUP failures = {0};
    ran->failures = (struct json_writer){.out = &failures};
    json_begin_array(&ran->failures);
    for (int i = 0; i < count; i++) {
        struct error error = {0};
        int code = flow_modules(paths[i], run_flow_module, ran, &error);
        if (code < 0)
            ran_note(ran, paths[i], code, &error);
    }
    json_end_array(&ran->failures);
    ran_print(ran, &failures);
    return ran->counts[RAN_FAILED] || ran->counts[RAN_REFUSED] ? EXIT_FAILED : EXIT_OK;
}

int flow_run(int argc, char **argv)
{
    static const struct option options[] = {{"executor", required_argument, NULL, 'x'},
                                            {"output", required_argument, NULL, 'o'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    struct flow_ran ran = {0};
    const char *name = "interpreter";
    for (int letter; (letter = usage_option(argc, argv, "o:h", options, NULL)) != -1;) {
        if (letter == 'h') {
            fputs(usage, stdout);
            return EXIT_OK;
        }
        if (letter == 'x')
            name = optarg;
        else if (letter != 'o' || !usage_json(optarg, &ran.json))
            return usage_wrong(usage, NULL);
    }
    if (optind == argc)
        return usage_wrong(usage, "FILE is missing");
    if (strncmp(name, "pjrt:", 5) == 0) {
        struct error error = {0};
        ran.executor = executor_pjrt(name + 5, &error);
        if (!ran.executor) {
            fprintf(stderr, "phalanx: flow run: %s\n", error.text);
            return EXIT_FAILED;
        }
    } else {
        ran.executor = executor_named(name);
        if (!ran.executor)
            return usage_wrong(usage, "executor %s is not in this build", name);
    }
    return run_files(&ran, argv + optind, argc - optind);
}
