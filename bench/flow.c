/* The flow runtime: the round trip of a value, the cost of a launch, and the paper's micro-benchmark (a
 * scalar all-reduce and an addition, its result the next one's argument): call by call, 128 calls a program,
 * and 128 computations in one call. The peer of each is processes that loop by themselves with the same
 * function and the same collective (flow_loops.h). Where BENCH_FLOW_OPENMPI has a command (openmpi.py), a
 * second row has OpenMPI as the peer, on as many ranks as hosts of one device. All sides run in turns; rates
 * are medians over the turns, and so are ratios. `bench_flow N D CASE SCALE` measures N hosts of D devices,
 * one case (round, OpByOp, Chained, Fused) alone, about SCALE thousand computations a turn. */
#include "flow_chain.h"
#include "flow_loops.h"

enum { SAMPLES = 1000, TURNS = 5, SCALE_MAX = 1000, COMMAND_MAX = 8192 };

static void bench_row(const char *name, unsigned hosts, unsigned devices, double value, const char *unit)
{
    printf("{\"bench\":\"flow\",\"case\":\"%s, %u hosts x %u\",\"value\":%.4g,\"unit\":\"%s\"}\n", name,
           hosts, devices, value, unit);
    fflush(stdout);
}

struct bench_case {
    const char *name;
    int launches, calls, loop_launches, loop_calls;
    const char *text;
};

/* Rates of all turns: the runtime's, those of a peer, and how many times the peer's rate ours was. */
struct bench_turns {
    double rates[TURNS], peers[TURNS], ratios[TURNS];
};

static void bench_turn(struct bench_turns *turns, int turn, double rate, double peer)
{
    turns->rates[turn] = rate;
    turns->peers[turn] = peer;
    turns->ratios[turn] = rate / peer;
}

static void bench_turns_row(struct bench_turns *turns, const char *name, unsigned hosts, unsigned devices,
                            const char *beside, const char *peer)
{
    double rate = median(turns->rates, TURNS), peer_rate = median(turns->peers, TURNS),
           ratio = median(turns->ratios, TURNS);
    printf("{\"bench\":\"flow\",\"case\":\"%s, %u hosts x %u%s\",\"value\":%.4g,\"best\":%.4g,"
           "\"unit\":\"computations/s\",\"peer\":\"%s\",\"peer_value\":%.4g,\"peer_best\":%.4g,"
           "\"ratio_peer\":%.3f,\"best_ratio\":%.3f}\n",
           name, hosts, devices, beside, rate, turns->rates[TURNS - 1], peer, peer_rate,
           turns->peers[TURNS - 1], ratio, turns->ratios[TURNS - 1]);
    fflush(stdout);
}

/* Computations a second that OpenMPI reaches, as the command says: "RATE computations/s". */
static double openmpi_rate(struct runtime *runtime, const char *command, unsigned hosts,
                           const struct bench_case *one)
{
    char line[COMMAND_MAX], answer[256] = "";
    int end = 0;
    double rate = 0;
    snprintf(line, sizeof line, "%s %u %d %d %d", command, hosts, one->launches, one->calls / one->loop_calls,
             one->loop_calls);
    FILE *out = popen(line, "re");
    bool good = out && fgets(answer, sizeof answer, out) &&
                sscanf(answer, "%lf computations/s%n", &rate, &end) == 1 && end > 0 && rate > 0;
    if (!out || pclose(out) != 0 || !good) {
        answer[strcspn(answer, "\n")] = '\0';
        snprintf(runtime->error.message, sizeof runtime->error.message,
                 "expected \"RATE computations/s\" of OpenMPI's command and status 0, got \"%s\"", answer);
        bench_must(-1, runtime);
    }
    return rate;
}

/* Prints a row beside each peer: the runtime, the loops and, where it is asked for, OpenMPI, in turns. */
static void bench_compare_peers(struct runtime *runtime, unsigned hosts, unsigned devices,
                                const struct bench_case *one)
{
    const char *openmpi = hosts > 1 && devices == 1 ? getenv("BENCH_FLOW_OPENMPI") : NULL;
    phx_flow_program *program = runtime_chain(runtime, one->text, one->calls / one->loop_calls);
    struct bench_turns loops, ranks;
    runtime_rate(runtime, program, 1, one->calls);
    for (int turn = 0; turn < TURNS; turn++) {
        double rate = runtime_rate(runtime, program, one->launches, one->calls);
        bench_turn(&loops, turn, rate,
                   loops_rate(one->text, hosts, devices, one->loop_launches, one->loop_calls));
        if (openmpi)
            bench_turn(&ranks, turn, rate, openmpi_rate(runtime, openmpi, hosts, one));
    }
    bench_turns_row(&loops, one->name, hosts, devices, "", "processes that loop");
    if (openmpi)
        bench_turns_row(&ranks, one->name, hosts, devices, ", beside mpirun", "OpenMPI");
    phx_flow_program_free(program);
}

/* Processor time that a launch takes of the calling thread. */
static double runtime_launch_us(struct runtime *runtime, phx_flow_program *program)
{
    int64_t cpu_ns;
    phx_flow_release(runtime->flow, runtime_launch(runtime, program, 900, &cpu_ns));
    return (double)cpu_ns / 900 / 1e3;
}

static double runtime_round_trip_us(struct runtime *runtime, phx_flow_program *program)
{
    static int64_t samples[SAMPLES];
    float data[SHARDS_MAX];
    for (int i = 0; i < SAMPLES; i++) {
        int64_t cpu_ns, begin_ns = now_ns();
        uint64_t value = runtime_launch(runtime, program, 1, &cpu_ns);
        bench_must(phx_flow_get(runtime->flow, value, data, (size_t)runtime->type.dims[0] * sizeof *data, -1,
                                NULL, &runtime->error),
                   runtime);
        samples[i] = now_ns() - begin_ns;
        phx_flow_release(runtime->flow, value);
    }
    return (double)median_ns(samples, SAMPLES) / 1e3;
}

/* `scale`: thousands of computations a turn; 0: by the number of devices. */
static void bench_size(unsigned hosts, unsigned devices, const char *only, int scale)
{
    static char single[TEXT_MAX], fused[TEXT_MAX];
    struct runtime runtime;
    if (scale == 0)
        scale = hosts * devices >= 32 ? 1 : hosts * devices >= 8 ? 2 : 8;
    bench_text(single, hosts * devices, 1, 0);
    bench_text(fused, hosts * devices, hosts * devices > 16 ? 32 : CHAIN, 0);
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
            bench_compare_peers(&runtime, hosts, devices, &cases[i]);
    runtime_stop(&runtime);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        int64_t hosts = 1, devices = 1, scale = 0;
        if (!str_to_i64(str_from(argv[1]), 1, LOOPS_HOSTS_MAX, &hosts) ||
            (argc > 2 && !str_to_i64(str_from(argv[2]), 1, SHARDS_MAX / hosts, &devices)) ||
            (argc > 4 && !str_to_i64(str_from(argv[4]), 1, SCALE_MAX, &scale)))
            return 1;
        bench_size((unsigned)hosts, (unsigned)devices, argc > 3 ? argv[3] : NULL, (int)scale);
        return 0;
    }
    for (unsigned hosts = 1; hosts <= LOOPS_HOSTS_MAX; hosts *= 2)
        bench_size(hosts, 1, NULL, 0);
    for (unsigned devices = 4; devices <= LOOPS_DEVICES_MAX; devices *= 4)
        bench_size(1, devices, NULL, 0);
    return 0;
}
