/* The flow runtime: the round trip of a value, the cost of a launch, and the paper's micro-benchmark (a
 * scalar all-reduce and an addition, its result the next one's argument), call by call and 128 calls a
 * program, beside processes that loop by themselves and meet over socket pairs. */
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "phalanx/flow.h"

enum { CHAIN = 128, HOSTS_MAX = 8, SAMPLES_MAX = 2000 };

struct runtime {
    pid_t pid;
    FILE *out;
    phx_flow *flow;
    struct phx_flow_mesh mesh;
    struct phx_flow_type type;
    struct phx_flow_sharding cut;
    uint64_t function;
    struct phx_error error;
};

static int64_t bench_now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

static void bench_row(const char *name, unsigned hosts, double value, const char *unit, double peer)
{
    printf("{\"bench\":\"flow\",\"case\":\"%s, %u hosts\",\"value\":%.4g,\"unit\":\"%s\"", name, hosts, value,
           unit);
    if (peer > 0)
        printf(",\"peer\":%.4g,\"ratio_peer\":%.3f", peer, value / peer);
    printf("}\n");
    fflush(stdout);
}

static void bench_must(int rc, const struct runtime *runtime)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "bench: %s\n", runtime->error.message);
    kill(runtime->pid, SIGTERM);
    exit(1);
}

static void runtime_start(struct runtime *runtime, unsigned hosts)
{
    char self[PATH_MAX] = "", program[PATH_MAX + 16], count[16], line[512], address[256];
    int out[2];
    *runtime = (struct runtime){0};
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0 || pipe(out) < 0)
        exit(1);
    snprintf(program, sizeof program, "%s/phalanx-full", dirname(self));
    snprintf(count, sizeof count, "%u", hosts);
    runtime->pid = fork();
    if (runtime->pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        close(out[1]);
        execl(program, "phalanx", "flow", "up", "--hosts", count, NULL);
        _exit(127);
    }
    close(out[1]);
    runtime->out = fdopen(out[0], "r");
    bool ready = false;
    while (!ready && fgets(line, sizeof line, runtime->out))
        ready = sscanf(line, "ready %255s", address) == 1;
    if (!ready)
        exit(1);
    bench_must(phx_flow_connect(address, NULL, &runtime->flow, &runtime->error), runtime);
    struct phx_flow_mesh_options options = {.rank = 1, .dims = {hosts}};
    bench_must(phx_flow_mesh_new(runtime->flow, &options, &runtime->mesh, &runtime->error), runtime);
    runtime->type = (struct phx_flow_type){PHX_FLOW_FLOAT32, 1, {hosts}};
    runtime->cut = (struct phx_flow_sharding){runtime->mesh.id, {1}};
}

static void runtime_stop(struct runtime *runtime)
{
    phx_flow_close(runtime->flow);
    kill(runtime->pid, SIGTERM);
    waitpid(runtime->pid, NULL, 0);
    fclose(runtime->out);
}

static void runtime_function(struct runtime *runtime, unsigned hosts)
{
    char text[2048], group[64] = "0";
    for (unsigned i = 1; i < hosts; i++)
        snprintf(group + strlen(group), sizeof group - strlen(group), ", %u", i);
    snprintf(text, sizeof text,
             "module {\n"
             "  func.func @main(%%x: tensor<1xf32>) -> tensor<1xf32> {\n"
             "    %%0 = \"stablehlo.all_reduce\"(%%x) ({\n"
             "      ^bb0(%%a: tensor<f32>, %%b: tensor<f32>):\n"
             "        %%s = stablehlo.maximum %%a, %%b : tensor<f32>\n"
             "        stablehlo.return %%s : tensor<f32>\n"
             "    }) {replica_groups = dense<[[%s]]> : tensor<1x%uxi64>, use_global_device_ids,\n"
             "        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}\n"
             "        : (tensor<1xf32>) -> tensor<1xf32>\n"
             "    %%1 = stablehlo.constant dense<1.0> : tensor<1xf32>\n"
             "    %%2 = stablehlo.add %%0, %%1 : tensor<1xf32>\n"
             "    return %%2 : tensor<1xf32>\n"
             "  }\n"
             "}\n",
             group, hosts);
    bench_must(
        phx_flow_function(runtime->flow, text, strlen(text), "main", &runtime->function, &runtime->error),
        runtime);
}

static phx_flow_program *runtime_chain(struct runtime *runtime, int calls)
{
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
    float start[HOSTS_MAX] = {0};
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
    float data[HOSTS_MAX];
    double best = 0;
    for (int round = 0; round < 4; round++) {
        int64_t cpu_ns, begin_ns = bench_now_ns(CLOCK_MONOTONIC);
        uint64_t value = runtime_launch(runtime, program, launches, &cpu_ns);
        bench_must(phx_flow_get(runtime->flow, value, data, (size_t)runtime->type.dims[0] * sizeof *data, -1,
                                NULL, &runtime->error),
                   runtime);
        double rate = (double)launches * calls * 1e9 / (double)(bench_now_ns(CLOCK_MONOTONIC) - begin_ns);
        if (data[0] != (float)launches * (float)calls)
            bench_must(-1, runtime);
        phx_flow_release(runtime->flow, value);
        if (rate > best)
            best = rate;
    }
    return best;
}

static int bench_compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double runtime_round_trip_us(struct runtime *runtime, phx_flow_program *program)
{
    static int64_t samples[SAMPLES_MAX];
    float data[HOSTS_MAX];
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

static float loop_exchange(const int *sockets, unsigned hosts, unsigned self, float mine)
{
    float largest = mine;
    for (unsigned i = 0; i < hosts; i++)
        if (i != self && write(sockets[i], &mine, sizeof mine) != sizeof mine)
            _exit(1);
    for (unsigned i = 0; i < hosts; i++) {
        float other = mine;
        if (i != self && recv(sockets[i], &other, sizeof other, MSG_WAITALL) != sizeof other)
            _exit(1);
        largest = other > largest ? other : largest;
    }
    return largest + 1;
}

/* Computations a second of processes that each run the loop themselves: no controller at all. */
static double loop_rate(unsigned hosts, int computations)
{
    int pairs[HOSTS_MAX][HOSTS_MAX] = {{0}};
    double best = 0;
    for (int round = 0; round < 4; round++) {
        pid_t pids[HOSTS_MAX];
        for (unsigned i = 0; i < hosts; i++)
            for (unsigned k = i + 1; k < hosts; k++) {
                int pair[2];
                if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
                    exit(1);
                pairs[i][k] = pair[0];
                pairs[k][i] = pair[1];
            }
        int64_t begin_ns = bench_now_ns(CLOCK_MONOTONIC);
        for (unsigned i = 0; i < hosts; i++) {
            pids[i] = fork();
            if (pids[i] == 0) {
                float value = 0;
                for (int n = 0; n < computations; n++)
                    value = loop_exchange(pairs[i], hosts, i, value);
                _exit(value == (float)computations ? 0 : 1);
            }
        }
        for (unsigned i = 0; i < hosts; i++)
            waitpid(pids[i], NULL, 0);
        double rate = computations * 1e9 / (double)(bench_now_ns(CLOCK_MONOTONIC) - begin_ns);
        best = rate > best ? rate : best;
        for (unsigned i = 0; i < hosts; i++)
            for (unsigned k = 0; k < hosts; k++)
                if (i != k)
                    close(pairs[i][k]);
    }
    return best;
}

int main(void)
{
    for (unsigned hosts = 1; hosts <= HOSTS_MAX; hosts *= 2) {
        struct runtime runtime;
        runtime_start(&runtime, hosts);
        runtime_function(&runtime, hosts);
        phx_flow_program *one = runtime_chain(&runtime, 1), *chain = runtime_chain(&runtime, CHAIN);
        double peer = hosts > 1 ? loop_rate(hosts, 20000) : 0;
        bench_row("round trip of a value", hosts, runtime_round_trip_us(&runtime, one), "us", 0);
        bench_row("OpByOp", hosts, runtime_rate(&runtime, one, 2000, 1), "computations/s", peer);
        bench_row("Chained 128", hosts, runtime_rate(&runtime, chain, 40, CHAIN), "computations/s", peer);
        int64_t cpu_ns;
        phx_flow_release(runtime.flow, runtime_launch(&runtime, one, 900, &cpu_ns));
        bench_row("processor time of a launch, client", hosts, (double)cpu_ns / 900 / 1e3, "us", 0);
        phx_flow_program_free(one);
        phx_flow_program_free(chain);
        runtime_stop(&runtime);
    }
    return 0;
}
