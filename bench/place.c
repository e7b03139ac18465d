/* bench/place - how long placing a gang takes on 16,384 machines, beside one pass over the machine array.
 *
 * One JSON object a line (bench/run gives the form); the median of RUNS. The limit is what any placement
 * must do at least: look at every machine once (state, free chips).
 */
#include <stdio.h>

#include "base/rng.h"
#include "doc/yaml.h"
#include "core/sched/sched.h"

#include "timing.h"

enum { RUNS = 41, GANG = 1024, CUBES = 1024 };

static void load(struct cluster *cluster)
{
    static const char text[] = "apiVersion: phalanx.dev/v1\nkind: Cluster\nmetadata: {name: big}\nspec:\n"
                               "  machineNames: p{pod:02}-c{cube:02}-{n:02}\n  addresses: 10.0.0.1\n"
                               "  pods: [{count: 16, cubes: 64}]\n";
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 64 << 20};
    struct field_errors errors = {.arena = &arena};
    struct doc_list docs;
    CHECK(yaml_parse_all(&arena, str_from(text), &docs, NULL) == 0);
    CHECK(cluster_load(docs.items[0], cluster, &errors));
    field_errors_done(&errors);
    for (size_t i = 0; i < cluster->machine_count; i++)
        machine_set_state(&cluster->machines[i], MACHINE_READY, 0, 0);
}

/* Takes whole machines at random until `percent` of them are full. */
static void fill(struct cluster *cluster, uint32_t percent)
{
    struct rng rng;
    rng_seed(&rng, 1);
    size_t target = cluster->machine_count * percent / 100;
    while (target) {
        struct machine *machine = &cluster->machines[rng_below(&rng, cluster->machine_count)];
        if (!machine->free_mask)
            continue;
        machine_take(machine, machine->free_mask, 0, 0);
        target--;
    }
}

static int64_t time_pass(const struct cluster *cluster)
{
    int64_t times[RUNS];
    static volatile uint64_t sink;
    for (int run = 0; run < RUNS; run++) {
        int64_t start = now_ns();
        uint64_t free = 0;
        for (size_t i = 0; i < cluster->machine_count; i++)
            if (machine_schedulable(&cluster->machines[i]))
                free += (uint64_t)__builtin_popcountll(cluster->machines[i].free_mask);
        sink = free;
        times[run] = now_ns() - start;
    }
    (void)sink;
    return median_ns(times, RUNS);
}

static int64_t time_place(const struct cluster *cluster, const struct place_request *request, bool expected)
{
    static struct placement places[CUBES * 16];
    int64_t times[RUNS];
    for (int run = 0; run < RUNS; run++) {
        struct buf why BUF_CLEANUP = {0};
        int64_t start = now_ns();
        bool placed = sched_place(cluster, request, NULL, NULL, places, &why);
        times[run] = now_ns() - start;
        CHECK(placed == expected);
    }
    return median_ns(times, RUNS);
}

static void report(const char *name, int64_t value_ns, int64_t limit_ns)
{
    printf("{\"bench\":\"place\",\"case\":\"%s\",\"value\":%.3f,\"unit\":\"ms\",\"limit\":%.3f,\"ratio_"
           "limit\":%.2f}\n",
           name, (double)value_ns / 1e6, (double)limit_ns / 1e6,
           (double)value_ns / (double)(limit_ns ? limit_ns : 1));
}

/* A whole pod's machines in one pod, where a pod is empty; and slices of a cube each. */
static void bench_topology(void)
{
    struct cluster cluster;
    load(&cluster);
    size_t pod = cluster.pods[0].count;
    for (size_t i = 0; i < cluster.machine_count; i++)
        if (i / pod != 7 && i % 2)
            machine_take(&cluster.machines[i], cluster.machines[i].free_mask, 0, 0);
    struct topology_rule rule = {.mode = TOPOLOGY_REQUIRED, .key = STR("phalanx.dev/pod")};
    struct place_job job = {.count = GANG, .chips = 4, .topology = &rule};
    struct place_request request = {.jobs = &job, .job_count = 1};
    int64_t limit_ns = time_pass(&cluster);
    report("gang 1024 of 16384, one pod required", time_place(&cluster, &request, true), limit_ns);
    rule.slices[0] = (struct topology_slice){STR("phalanx.dev/cube"), 16};
    rule.slice_count = 1;
    report("gang 1024 of 16384, one pod required, cubes whole", time_place(&cluster, &request, true),
           limit_ns);
    rule = (struct topology_rule){.mode = TOPOLOGY_PREFERRED, .key = STR("kubernetes.io/hostname")};
    report("gang 1024 of 16384, one machine preferred", time_place(&cluster, &request, true), limit_ns);
    machine_take(&cluster.machines[7 * pod], 0x1, 0, 0);
    rule = (struct topology_rule){.mode = TOPOLOGY_REQUIRED, .key = STR("phalanx.dev/pod")};
    report("gang 1024 of 16384, one pod required, refused", time_place(&cluster, &request, false), limit_ns);
    cluster_done(&cluster);
}

static void bench_full(uint32_t percent)
{
    struct cluster cluster;
    char name[64];
    load(&cluster);
    fill(&cluster, percent);
    size_t empty = cluster.machine_count - cluster.machine_count * percent / 100;
    struct place_job job = {.count = GANG, .chips = 4};
    struct place_request request = {.jobs = &job, .job_count = 1};
    int64_t limit_ns = time_pass(&cluster);
    snprintf(name, sizeof name, "gang 1024 of 16384, %u %% full%s", percent, empty < GANG ? ", refused" : "");
    report(name, time_place(&cluster, &request, empty >= GANG), limit_ns);
    if (empty < GANG) {
        job.count = (uint32_t)empty;
        snprintf(name, sizeof name, "gang %u of 16384, %u %% full", job.count, percent);
        report(name, time_place(&cluster, &request, true), limit_ns);
    }
    cluster_done(&cluster);
}

/* Jobs of 16 tasks, each with a cube for itself. */
static void bench_exclusive(size_t count)
{
    static struct place_job jobs[CUBES];
    struct cluster cluster;
    char name[64];
    load(&cluster);
    for (size_t j = 0; j < count; j++)
        jobs[j] = (struct place_job){
            .count = 16, .chips = 4, .job = j + 1, .exclusive_topology = STR("phalanx.dev/cube")};
    struct place_request request = {.jobs = jobs, .job_count = count};
    snprintf(name, sizeof name, "%zu jobs of 16, a cube each, of 16384", count);
    report(name, time_place(&cluster, &request, true), time_pass(&cluster));
    cluster_done(&cluster);
}

int main(void)
{
    bench_full(0);
    bench_full(50);
    bench_full(95);
    bench_exclusive(64);
    bench_exclusive(CUBES);
    bench_topology();
    return 0;
}
