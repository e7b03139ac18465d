/* flow_chain.h - the paper's micro-benchmark on a flow runtime: computations of a scalar all-reduce and an
 * addition, the result of each the argument of the next one. */
#ifndef PHX_BENCH_FLOW_CHAIN_H
#define PHX_BENCH_FLOW_CHAIN_H

#include "flow_up.h"
#include "timing.h"

enum { CHAIN = 128, SHARDS_MAX = 64, TEXT_MAX = 65536 };

/* Writes work before computation `i`, which leaves its value as it is: the largest of so many copies of it.
 * Returns the number of bytes. */
static size_t bench_work_text(char *text, size_t cap, int i, int elements)
{
    return (size_t)snprintf(
        text, cap,
        "    %%b%d = stablehlo.broadcast_in_dim %%x%d, dims = [0] : (tensor<1xf32>) -> tensor<%dxf32>\n"
        "    %%m%d = stablehlo.reduce(%%b%d init: %%zero) applies stablehlo.maximum across dimensions = [0]\n"
        "        : (tensor<%dxf32>, tensor<f32>) -> tensor<f32>\n"
        "    %%w%d = stablehlo.reshape %%m%d : (tensor<f32>) -> tensor<1xf32>\n",
        i, i, elements, i, i, elements, i, i);
}

/* Writes a function of `calls` computations over all members, each after work on `elements`; 0: none. */
static void bench_text(char *text, unsigned members, int calls, int elements)
{
    char group[512] = "0";
    for (unsigned i = 1; i < members; i++)
        snprintf(group + strlen(group), sizeof group - strlen(group), ", %u", i);
    size_t len = (size_t)snprintf(text, TEXT_MAX,
                                  "module {\n"
                                  "  func.func @main(%%x0: tensor<1xf32>) -> tensor<1xf32> {\n"
                                  "    %%one = stablehlo.constant dense<1.0> : tensor<1xf32>\n"
                                  "    %%zero = stablehlo.constant dense<0.0> : tensor<f32>\n");
    for (int i = 0; i < calls; i++) {
        if (elements > 0)
            len += bench_work_text(text + len, TEXT_MAX - len, i, elements);
        len += (size_t)snprintf(
            text + len, TEXT_MAX - len,
            "    %%r%d = \"stablehlo.all_reduce\"(%%%c%d) ({\n"
            "      ^bb0(%%a: tensor<f32>, %%b: tensor<f32>):\n"
            "        %%s = stablehlo.maximum %%a, %%b : tensor<f32>\n"
            "        stablehlo.return %%s : tensor<f32>\n"
            "    }) {replica_groups = dense<[[%s]]> : tensor<1x%uxi64>, use_global_device_ids,\n"
            "        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}\n"
            "        : (tensor<1xf32>) -> tensor<1xf32>\n"
            "    %%x%d = stablehlo.add %%r%d, %%one : tensor<1xf32>\n",
            i, elements > 0 ? 'w' : 'x', i, group, members, i + 1, i);
    }
    snprintf(text + len, TEXT_MAX - len, "    return %%x%d : tensor<1xf32>\n  }\n}\n", calls);
}

/* A program of `calls` calls of the function, each on the result of the one before. */
static phx_flow_program *runtime_chain(struct runtime *runtime, const char *text, int calls)
{
    bench_must(
        phx_flow_function(runtime->flow, text, strlen(text), "main", &runtime->function, &runtime->error),
        runtime);
    phx_flow_program *program = phx_flow_program_new(runtime->flow);
    uint32_t value = phx_flow_program_arg(program, &runtime->type, &runtime->cut);
    for (int i = 0; i < calls; i++)
        phx_flow_program_call(program, runtime->function, runtime->mesh.id, &value, 1, &runtime->cut, &value,
                              1, &runtime->error);
    phx_flow_program_result(program, value);
    bench_must(phx_flow_program_finish(program, &runtime->error), runtime);
    return program;
}

/* Launches `count` times, each on the result of the one before; returns the last result. *cpu_ns: of the
 * calling thread, all launches together. */
static inline uint64_t runtime_launch(struct runtime *runtime, phx_flow_program *program, int count,
                                      int64_t *cpu_ns)
{
    float start[SHARDS_MAX] = {0};
    uint64_t value = phx_flow_put(runtime->flow, &runtime->type, &runtime->cut, start,
                                  (size_t)runtime->type.dims[0] * sizeof *start, &runtime->error);
    int64_t begin_ns = thread_ns();
    for (int i = 0; i < count; i++) {
        uint64_t next;
        bench_must(phx_flow_launch(runtime->flow, program, &value, 1, &next, 1, &runtime->error), runtime);
        phx_flow_release(runtime->flow, value);
        value = next;
    }
    *cpu_ns = thread_ns() - begin_ns;
    return value;
}

/* Computations a second of `launches` launches of `calls` each, until the last result is here. */
static inline double runtime_rate(struct runtime *runtime, phx_flow_program *program, int launches, int calls)
{
    float data[SHARDS_MAX];
    int64_t cpu_ns, begin_ns = now_ns();
    uint64_t value = runtime_launch(runtime, program, launches, &cpu_ns);
    bench_must(phx_flow_get(runtime->flow, value, data, (size_t)runtime->type.dims[0] * sizeof *data, -1,
                            NULL, &runtime->error),
               runtime);
    double rate = (double)launches * calls * 1e9 / (double)(now_ns() - begin_ns);
    if (data[0] != (float)launches * (float)calls)
        bench_must(-1, runtime);
    phx_flow_release(runtime->flow, value);
    return rate;
}

#endif
