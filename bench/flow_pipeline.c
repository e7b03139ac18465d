/* A pipeline through the flow runtime: 8 stages of tiny work, each on a device of another host, values sent
 * from each to the next. Parallel dispatch launches the stages as one program of which every host knows its
 * part before the first stage begins; sequential dispatch launches each stage when the one before is through,
 * as a controller must that learns only then what the next one needs. Both in turns; medians of 5. */
#include <time.h>

#include "flow_records.h"
#include "flow_up.h"

enum { STAGES = 8, ROUNDS = 60, TURNS = 5 };
static const char stage_text[] = "user \"flow_wait.so\"\nfunc @wait(tensor<2xf32>) -> (tensor<2xf32>)\n";

struct pipeline {
    struct runtime *runtime;
    struct phx_flow_type type;
    struct phx_flow_sharding at[STAGES];
    phx_flow_program *whole, *stages[STAGES];
};

/* A program of the stages from `first` on, up to `end`. A stage takes its value from the stage before. */
static phx_flow_program *pipeline_program(struct pipeline *pipeline, int first, int end)
{
    struct runtime *runtime = pipeline->runtime;
    phx_flow_program *program = phx_flow_program_new(runtime->flow);
    uint32_t value = phx_flow_program_arg(program, &pipeline->type, &pipeline->at[first > 0 ? first - 1 : 0]);
    for (int s = first; s < end; s++) {
        if (s > 0)
            value = phx_flow_program_reshard(program, value, &pipeline->at[s]);
        bench_must(phx_flow_program_call(program, runtime->function, pipeline->at[s].mesh, &value, 1,
                                         &pipeline->at[s], &value, 1, &runtime->error),
                   runtime);
    }
    phx_flow_program_result(program, value);
    bench_must(phx_flow_program_finish(program, &runtime->error), runtime);
    return program;
}

static void pipeline_start(struct pipeline *pipeline, struct runtime *runtime)
{
    *pipeline = (struct pipeline){.runtime = runtime, .type = {PHX_FLOW_FLOAT32, 1, {2}}};
    bench_must(phx_flow_function(runtime->flow, stage_text, sizeof stage_text - 1, "wait", &runtime->function,
                                 &runtime->error),
               runtime);
    for (uint32_t s = 0; s < STAGES; s++) {
        struct phx_flow_mesh mesh;
        uint32_t start[] = {s, 0, 0}, one[] = {1, 0, 0};
        bench_must(phx_flow_mesh_slice(runtime->flow, runtime->mesh.id, start, one, &mesh, &runtime->error),
                   runtime);
        pipeline->at[s] = (struct phx_flow_sharding){mesh.id, {0}};
    }
    pipeline->whole = pipeline_program(pipeline, 0, STAGES);
    for (int s = 0; s < STAGES; s++)
        pipeline->stages[s] = pipeline_program(pipeline, s, s + 1);
}

static uint64_t pipeline_launch(struct pipeline *pipeline, phx_flow_program *program, uint64_t arg)
{
    struct runtime *runtime = pipeline->runtime;
    uint64_t result;
    bench_must(phx_flow_launch(runtime->flow, program, &arg, 1, &result, 1, &runtime->error), runtime);
    return result;
}

/* Passes of the pipeline a second, ROUNDS of them. */
static double pipeline_rate(struct pipeline *pipeline, bool sequential)
{
    struct runtime *runtime = pipeline->runtime;
    float start[2] = {0}, end[2];
    uint64_t arg =
        phx_flow_put(runtime->flow, &pipeline->type, &pipeline->at[0], start, sizeof start, &runtime->error);
    uint64_t last[ROUNDS];
    int64_t begin_ns = records_now_ns();
    for (int r = 0; r < ROUNDS; r++) {
        uint64_t value = arg;
        for (int s = 0; s < STAGES && sequential; s++) {
            uint64_t next = pipeline_launch(pipeline, pipeline->stages[s], value);
            bench_must(phx_flow_wait(runtime->flow, next, -1, NULL, &runtime->error), runtime);
            if (s > 0)
                phx_flow_release(runtime->flow, value);
            value = next;
        }
        last[r] = sequential ? value : pipeline_launch(pipeline, pipeline->whole, arg);
    }
    for (int r = 0; r < ROUNDS; r++) {
        bench_must(phx_flow_get(runtime->flow, last[r], end, sizeof end, -1, NULL, &runtime->error), runtime);
        phx_flow_release(runtime->flow, last[r]);
    }
    double rate = ROUNDS * 1e9 / (double)(records_now_ns() - begin_ns);
    phx_flow_release(runtime->flow, arg);
    return rate;
}

static int pipeline_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    struct runtime runtime;
    struct pipeline pipeline;
    double parallel[TURNS], sequential[TURNS], ratios[TURNS];
    runtime_start(&runtime, STAGES, 1);
    pipeline_start(&pipeline, &runtime);
    pipeline_rate(&pipeline, false);
    pipeline_rate(&pipeline, true);
    for (int t = 0; t < TURNS; t++) {
        parallel[t] = pipeline_rate(&pipeline, false);
        sequential[t] = pipeline_rate(&pipeline, true);
        ratios[t] = parallel[t] / sequential[t];
    }
    qsort(parallel, TURNS, sizeof *parallel, pipeline_compare);
    qsort(sequential, TURNS, sizeof *sequential, pipeline_compare);
    qsort(ratios, TURNS, sizeof *ratios, pipeline_compare);
    printf(
        "{\"bench\":\"flow_pipeline\",\"case\":\"%d stages, parallel beside sequential\",\"value\":%.4g,"
        "\"unit\":\"passes/s\",\"peer\":\"sequential dispatch\",\"peer_value\":%.4g,\"ratio_peer\":%.2f}\n",
        STAGES, parallel[TURNS / 2], sequential[TURNS / 2], ratios[TURNS / 2]);
    runtime_stop(&runtime);
    return 0;
}
