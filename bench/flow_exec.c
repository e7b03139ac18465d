/* Executors of flow: products of n x n matrices of f32 on one core, oneDNN beside the interpreter. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow/exec/executor.h"
#include "timing.h"

enum { ROUNDS_LEAST = 5, ROUNDS_MAX = 20000 };
#define MILLISECONDS_EACH 400

/* GFLOP/s of many rounds; 0: the executor is not in this build. */
struct rate {
    double median, best;
};

static void product_done(void *arg, struct tensor **results, uint32_t count,
                         const struct flow_failure *failure)
{
    bool *failed = arg;
    *failed = *failed || failure;
    for (uint32_t k = 0; k < count; k++)
        tensor_unref(results[k]);
}

static struct rate product_rate(const char *name, int n)
{
    char text[512];
    struct error error = {0};
    struct ir_module *module = NULL;
    struct executable *executable = NULL;
    const struct executor *executor = executor_named(name);
    if (!executor)
        return (struct rate){0};
    snprintf(text, sizeof text,
             "func.func @main(%%a: tensor<%dx%dxf32>, %%b: tensor<%dx%dxf32>) -> tensor<%dx%dxf32> {\n"
             "%%0 = stablehlo.dot %%a, %%b : (tensor<%dx%dxf32>, tensor<%dx%dxf32>) -> tensor<%dx%dxf32>\n"
             "return %%0 : tensor<%dx%dxf32>\n}\n",
             n, n, n, n, n, n, n, n, n, n, n, n, n, n);
    if (ir_parse(str_from(text), "bench", &module, &error) < 0 || ir_verify(module, &error) < 0 ||
        executor->compile(executor, module, ir_function(module, STR("main")), &executable, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    struct ir_type type = {.element = IR_F32, .rank = 2, .dims = {n, n}};
    struct tensor *args[2] = {tensor_new(&type), tensor_new(&type)};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < n * n; i++)
            ((float *)args[k]->data)[i] = (float)(i % 17) / 16;
    bool failed = false;
    static double times[ROUNDS_MAX];
    size_t rounds = 0;
    double began = now_ms();
    while (rounds < ROUNDS_MAX && (rounds < ROUNDS_LEAST || now_ms() - began < MILLISECONDS_EACH)) {
        double start = now_ms();
        executor->launch(executable,
                         &(struct flow_launch){.args = args, .done = product_done, .arg = &failed});
        times[rounds++] = now_ms() - start;
    }
    executor->release(executable);
    tensor_unref(args[0]), tensor_unref(args[1]);
    ir_module_free(module);
    if (failed)
        exit(1);
    double flops = 2.0 * n * n * n / 1e6, middle = median(times, rounds); /* sorts */
    return (struct rate){flops / middle, flops / times[0]};
}

int main(void)
{
    static const int SIZES[] = {64, 256, 512};
    for (size_t k = 0; k < sizeof SIZES / sizeof *SIZES; k++) {
        int n = SIZES[k];
        struct rate plain = product_rate("interpreter", n), dense = product_rate("onednn", n);
        printf("{\"bench\":\"flow_exec\",\"case\":\"%d x %d f32, "
               "interpreter\",\"value\":%.1f,\"unit\":\"GFLOP/s\","
               "\"best\":%.1f}\n",
               n, n, plain.median, plain.best);
        if (dense.best > 0)
            printf("{\"bench\":\"flow_exec\",\"case\":\"%d x %d f32, "
                   "onednn\",\"value\":%.1f,\"unit\":\"GFLOP/s\","
                   "\"best\":%.1f,\"peer\":\"the interpreter\",\"peer_value\":%.1f,\"ratio_peer\":%.2f}\n",
                   n, n, dense.median, dense.best, plain.median, dense.median / plain.median);
    }
    return 0;
}
