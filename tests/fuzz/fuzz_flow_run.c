/* Any text that parses and verifies runs, or fails with an error, within its limits of memory and work; it
 * leaves no tensor behind, and holds no more bytes than its plan says. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "flow/exec/executor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    ARGUMENTS_MAX = 8,
    MEMBERS_MAX = 4,     /* threads of a run_parallel */
    BYTES_MAX = 1 << 20, /* of arguments, and of the peak */
    WORK_MAX = 1 << 20,
};

static bool block_is_small(const struct ir_block *block)
{
    for (const struct ir_op *op = block->first; op; op = op->next) {
        if (op->kind == IR_OP_RUN_PARALLEL &&
            (uint64_t)op->attributes.parallel.replicas * op->attributes.parallel.partitions > MEMBERS_MAX)
            return false;
        for (uint32_t k = 0; k < op->region_count; k++)
            if (!block_is_small(&op->regions[k]))
                return false;
    }
    return true;
}

static bool module_is_small(const struct ir_module *module)
{
    for (const struct ir_function *f = module->functions; f; f = f->next)
        if (!block_is_small(&f->body))
            return false;
    return true;
}

static void fuzz_done(void *arg, struct tensor **results, uint32_t count, const struct flow_failure *failure)
{
    int *calls = arg;
    ++*calls;
    CHECK(!failure || (failure->error.code < 0 && failure->error.text[0]));
    for (uint32_t k = 0; k < count; k++)
        tensor_unref(results[k]);
}

static void fuzz_launch(const struct executor *executor, struct executable *executable,
                        const struct ir_function *function)
{
    struct tensor *args[ARGUMENTS_MAX];
    uint32_t count = function->body.arg_count, made = 0;
    int64_t bytes = executor->peak_bytes(executable);
    bool fits = count <= ARGUMENTS_MAX && bytes <= BYTES_MAX;
    for (; fits && made < count; made++) {
        int64_t size = ir_type_bytes(&function->body.args[made].type);
        fits = size <= BYTES_MAX;
        args[made] = fits ? tensor_new(&function->body.args[made].type) : NULL;
        if (fits)
            memset(args[made]->data, 0, (size_t)size);
    }
    int calls = 0;
    int64_t before = tensor_bytes();
    tensor_bytes_mark();
    if (fits) {
        executor->launch(
            executable,
            &(struct flow_launch){.args = args, .work_limit = WORK_MAX, .done = fuzz_done, .arg = &calls});
        CHECK(calls == 1);
        CHECK(tensor_bytes_peak() - before <= bytes + BYTES_MAX); /* operations' own copies of operands */
    }
    for (uint32_t k = 0; k < made; k++)
        tensor_unref(args[k]);
    CHECK(tensor_bytes() == 0);
}

static int fuzz_module(struct ir_module *module, void *arg)
{
    struct error error = {0};
    if (ir_verify(module, &error) < 0 || !module_is_small(module))
        return 0;
    const struct executor *executor = executor_named("interpreter");
    for (const struct ir_function *f = module->functions; f; f = f->next) {
        struct executable *executable = NULL;
        int code = executor->compile(executor, module, f, &executable, &error);
        CHECK(code == 0 || ((code == ERROR_UNSUPPORTED || code == ERROR_LIMIT) && error.text[0]));
        if (code < 0)
            continue;
        fuzz_launch(executor, executable, f);
        executor->release(executable);
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    ir_parse_split((struct str){(const char *)data, size}, "fuzz", fuzz_module, NULL, &error);
    return 0;
}
