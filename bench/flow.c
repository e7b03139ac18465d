/* The flow runtime: the round trip of a value, the cost of a launch, and the paper's micro-benchmark (a
 * scalar all-reduce and an addition, its result the next one's argument): call by call, 128 calls a program,
 * and 128 computations in one call. The peer of each is processes that loop by themselves with the same
 * function and the same collective (flow_loops.h). Both sides run in turns; rates are medians over the turns,
 * and so are ratios. `bench_flow N D CASE` measures N hosts of D devices, and
 * one case (round, OpByOp, Chained, Fused), alone. */
#include <time.h>

#include "flow_up.h"

static int64_t bench_now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

#include "flow_loops.h"

enum { CHAIN = 128, SHARDS_MAX = 64, SAMPLES_MAX = 2000, TURNS = 5, TEXT_MAX = 65536 };

static void bench_row(const char *name, unsigned hosts, unsigned devices, double value, const char *unit)
{
    printf("{\"bench\":\"flow\",\"case\":\"%s, %u hosts x %u\",\"value\":%.4g,\"unit\":\"%s\"}\n", name,
           hosts, devices, value, unit);
    fflush(stdout);
}

/* Writes a function of `calls` computations over all members. */
static void bench_text(char *text, unsigned members, int calls)
{
    char group[512] = "0";
    for (unsigned i = 1; i < members; i++)
        snprintf(group + strlen(group), sizeof group - strlen(group), ", %u", i);
    size_t len = (size_t)snprintf(text, TEXT_MAX,
                                  "module {\n"
                                  "  func.func @main(%%x0: tensor<1xf32>) -> tensor<1xf32> {\n"
                                  "    %%one = stablehlo.constant dense<1.0> : tensor<1xf32>\n");
    for (int i = 0; i < calls; i++)
        len += (size_t)snprintf(
            text + len, TEXT_MAX - len,
            "    %%r%d = \"stablehlo.all_reduce\"(%%x%d) ({\n"
            "      ^bb0(%%a: tensor<f32>, %%b: tensor<f32>):\n"
            "        %%s = stablehlo.maximum %%a, %%b : tensor<f32>\n"
            "        stablehlo.return %%s : tensor<f32>\n"
            "    }) {replica_groups = dense<[[%s]]> : tensor<1x%uxi64>, use_global_device_ids,\n"
            "        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}\n"
            "        : (tensor<1xf32>) -> tensor<1xf32>\n"
            "    %%x%d = stablehlo.add %%r%d, %%one : tensor<1xf32>\n",
            i, i, group, members, i + 1, i);
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
static uint64_t runtime_launch(struct runtime *runtime, phx_flow_program *program, int count, int64_t *cpu_ns)
{
    float start[SHARDS_MAX] = {0};
    uint64_t value = phx_flow_put(runtime->flow, &runtime->type, &runtime->cut, start,
                                  (size_t)runtime->type.dims[0] * sizeof *start, &runtime->error);
    int64_t begin_ns = bench_now_ns(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < count; i++) {
        uint64_t next;
        bench_must(phx_flow_launch(runtime->flow, program, &value, 1, &next, 1, &runtime->error), runtime);
        phx_flow_release(runtime->flow, value);
        value = next;
    }
    *cpu_ns = bench_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
    return value;
}

static double runtime_rate(struct runtime *runtime, phx_flow_program *program, int launches, int calls)
{
    float data[SHARDS_MAX];
    int64_t cpu_ns, begin_ns = bench_now_ns(CLOCK_MONOTONIC);
    uint64_t value = runtime_launch(runtime, program, launches, &cpu_ns);
    bench_must(phx_flow_get(runtime->flow, value, data, (size_t)runtime->type.dims[0] * sizeof *data, -1,
                            NULL, &runtime->error),
               runtime);
    double rate = (double)launches * calls * 1e9 / (double)(bench_now_ns(CLOCK_MONOTONIC) - begin_ns);
    if (data[0] != (float)launches * (float)calls)
        bench_must(-1, runtime);
    phx_flow_release(runtime->flow, value);
    return rate;
}

static int bench_compare_rates(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double bench_median(double rates[TURNS])
{
    qsort(rates, TURNS, sizeof *rates, bench_compare_rates);
    return rates[TURNS / 2];
}

struct bench_case {
    const char *name;
    int launches, calls, loop_launches, loop_calls;
    const char *text;
};

/* Prints a row: the runtime and the loops, in turns. */
static void bench_compare_loops(struct runtime *runtime, unsigned hosts, unsigned devices,
                                const struct bench_case *one)
{
    phx_flow_program *program = runtime_chain(runtime, one->text, one->calls / one->loop_calls);
    double rates[TURNS], peers[TURNS], ratios[TURNS];
    runtime_rate(runtime, program, 1, one->calls);
    for (int turn = 0; turn < TURNS; turn++) {
        rates[turn] = runtime_rate(runtime, program, one->launches, one->calls);
        peers[turn] = loops_rate(one->text, hosts, devices, one->loop_launches, one->loop_calls);
        ratios[turn] = rates[turn] / peers[turn];
    }
    double ratio = bench_median(ratios), best = ratios[TURNS - 1];
    double peer = bench_median(peers), rate = bench_median(rates);
    printf("{\"bench\":\"flow\",\"case\":\"%s, %u hosts x %u\",\"value\":%.4g,\"best\":%.4g,"
           "\"unit\":\"computations/s\",\"peer\":\"processes that loop\",\"peer_value\":%.4g,"
           "\"ratio_peer\":%.3f,\"best_ratio\":%.3f}\n",
           one->name, hosts, devices, rate, rates[TURNS - 1], peer, ratio, best);
    fflush(stdout);
    phx_flow_program_free(program);
}

/* Processor time that a launch takes of the calling thread. */
static double runtime_launch_us(struct runtime *runtime, phx_flow_program *program)
{
    int64_t cpu_ns;
    phx_flow_release(runtime->flow, runtime_launch(runtime, program, 900, &cpu_ns));
    return (double)cpu_ns / 900 / 1e3;
}

static int bench_compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double runtime_round_trip_us(struct runtime *runtime, phx_flow_program *program)
{
    static int64_t samples[SAMPLES_MAX];
    float data[SHARDS_MAX];
    int count = 1000;
    for (int i = 0; i < count; i++) {
        int64_t cpu_ns, begin_ns = bench_now_ns(CLOCK_MONOTONIC);
        uint64_t value = runtime_launch(runtime, program, 1, &cpu_ns);
        bench_must(phx_flow_get(runtime->flow, value, data, (size_t)runtime->type.dims[0] * sizeof *data, -1,
                                NULL, &runtime->error),
                   runtime);
        samples[i] = bench_now_ns(CLOCK_MONOTONIC) - begin_ns;
        phx_flow_release(runtime->flow, value);
    }
    qsort(samples, (size_t)count, sizeof *samples, bench_compare);
    return (double)samples[count / 2] / 1e3;
}

static void bench_size(unsigned hosts, unsigned devices, const char *only)
{
    static char single[TEXT_MAX], fused[TEXT_MAX];
    struct runtime runtime;
    int scale = hosts * devices >= 32 ? 1 : hosts * devices >= 8 ? 2 : 8;
    bench_text(single, hosts * devices, 1);
    bench_text(fused, hosts * devices, hosts * devices > 16 ? 32 : CHAIN);
    int fused_calls = hosts * devices > 16 ? 32 : CHAIN;
    struct bench_case cases[] = {
        {"OpByOp", 1000 * scale, 1, 1000 * scale, 1, single},
        {"Chained 128", 8 * scale, CHAIN, 8 * CHAIN * scale, 1, single},
        {"Fused", 2048 * scale / fused_calls, fused_calls, 2048 * scale / fused_calls, fused_calls, fused},
    };
    runtime_start(&runtime, hosts, devices);
    phx_flow_program *one = runtime_chain(&runtime, single, 1);
    if (!only || strcmp(only, "round") == 0)
        bench_row("round trip of a value", hosts, devices, runtime_round_trip_us(&runtime, one), "us");
    if (!only)
        bench_row("processor time of a launch, client", hosts, devices, runtime_launch_us(&runtime, one),
                  "us");
    phx_flow_program_free(one);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!only || strncmp(only, cases[i].name, strlen(only)) == 0)
            bench_compare_loops(&runtime, hosts, devices, &cases[i]);
    runtime_stop(&runtime);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        int64_t hosts = 1, devices = 1;
        if (!str_to_i64(str_from(argv[1]), 1, LOOPS_HOSTS_MAX, &hosts) ||
            (argc > 2 && !str_to_i64(str_from(argv[2]), 1, SHARDS_MAX / hosts, &devices)))
            return 1;
        bench_size((unsigned)hosts, (unsigned)devices, argc > 3 ? argv[3] : NULL);
        return 0;
    }
    for (unsigned hosts = 1; hosts <= LOOPS_HOSTS_MAX; hosts *= 2)
        bench_size(hosts, 1, NULL);
    for (unsigned devices = 4; devices <= LOOPS_DEVICES_MAX; devices *= 4)
        bench_size(1, devices, NULL);
    return 0;
}
