/* Clients that share a device of the flow runtime: 1 to 16 of them with programs of 0.33 ms, how much of the
 * time the device is in use, and whether four that always have launches waiting get it by their weights.
 * `bench_flow_tenants FILE.svg` also draws 60 ms of the shares by 1:2:4:8. The device is one that waits
 * (functions/flow_wait.c), so that the computer's other work does not count as use. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#include "flow_records.h"
#include "flow_up.h"

enum { TENANTS_MAX = 16, PROGRAM_US = 330, RUNS_LEAST = 5000 };
enum { AHEAD_ONE = 1, AHEAD_FULL = 200, AHEAD_MAX = 256 };
#define WARM_NS    (INT64_C(400) * 1000 * 1000)
#define RUN_NS     (INT64_C(2000) * 1000 * 1000) /* and longer, where the computer is slow, for RUNS_LEAST */
#define RUN_NS_MAX (INT64_C(12000) * 1000 * 1000)
#define PICTURE_NS (INT64_C(60) * 1000 * 1000)
static const char wait_text[] = "user \"flow_wait.so\"\nfunc @wait(tensor<2xf32>) -> (tensor<2xf32>)\n";

struct tenant {
    pthread_t thread;
    const char *address;
    uint32_t number, weight;
    int ahead; /* launches before the first of them is waited for */
    const _Atomic bool *over;
    bool good;
};

/* Launches, and waits for the oldest of `ahead` launches, until it is over. */
static bool tenant_run(const struct tenant *tenant, phx_flow *flow, struct phx_error *error)
{
    struct phx_flow_mesh_options options = {.rank = 1, .dims = {1}};
    struct phx_flow_mesh mesh;
    uint64_t function, kept[AHEAD_MAX] = {0};
    if (phx_flow_mesh_new(flow, &options, &mesh, error) < 0 ||
        phx_flow_function(flow, wait_text, sizeof wait_text - 1, "wait", &function, error) < 0)
        return false;
    struct phx_flow_type type = {PHX_FLOW_FLOAT32, 1, {2}};
    struct phx_flow_sharding whole = {mesh.id, {0}};
    phx_flow_program *program = phx_flow_program_new(flow);
    uint32_t value = phx_flow_program_arg(program, &type, &whole);
    if (phx_flow_program_call(program, function, mesh.id, &value, 1, &whole, &value, 1, error) < 0)
        return false;
    phx_flow_program_result(program, value);
    bool good = phx_flow_program_finish(program, error) == 0;
    float start[2] = {(float)tenant->number, PROGRAM_US};
    uint64_t arg = phx_flow_put(flow, &type, &whole, start, sizeof start, error);
    for (int n = 0; good && !*tenant->over; n++) {
        uint64_t *oldest = &kept[n % tenant->ahead];
        good = !*oldest || phx_flow_wait(flow, *oldest, -1, NULL, error) == 0;
        if (*oldest)
            phx_flow_release(flow, *oldest);
        good = good && phx_flow_launch(flow, program, &arg, 1, oldest, 1, error) == 0;
    }
    phx_flow_program_free(program);
    return good;
}

static void *tenant_main(void *arg)
{
    struct tenant *tenant = arg;
    struct phx_flow_options options = {.name = "tenant", .weight = tenant->weight};
    struct phx_error error = {0};
    phx_flow *flow = NULL;
    tenant->good =
        phx_flow_connect(tenant->address, &options, &flow, &error) == 0 && tenant_run(tenant, flow, &error);
    if (!tenant->good)
        fprintf(stderr, "bench: %s\n", error.message);
    phx_flow_close(flow);
    return NULL;
}

/* The share of the device that each tenant got between the warm-up and the end. Launches of 20 ms have their
 * tickets already (the window of an island), so a share is exact only over many of them. */
struct shares {
    int64_t begin_ns, end_ns, busy_ns;
    uint32_t runs[TENANTS_MAX];
};

static struct shares tenants_measure(struct runtime *runtime, struct flow_records *records, int count,
                                     const uint32_t *weights, int ahead)
{
    struct tenant tenants[TENANTS_MAX];
    struct shares shares = {.begin_ns = records_now_ns() + WARM_NS};
    _Atomic bool over = false;
    atomic_store(&records->count, 0);
    for (int i = 0; i < count; i++) {
        tenants[i] = (struct tenant){.address = runtime->up.address,
                                     .number = (uint32_t)i,
                                     .weight = weights ? weights[i] : 1,
                                     .ahead = ahead,
                                     .over = &over};
        if (pthread_create(&tenants[i].thread, NULL, tenant_main, &tenants[i]) != 0)
            bench_must(-1, runtime);
    }
    do {
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
        shares.end_ns = records_now_ns();
    } while (shares.end_ns < shares.begin_ns + RUN_NS ||
             (shares.end_ns < shares.begin_ns + RUN_NS_MAX && atomic_load(&records->count) < RUNS_LEAST));
    over = true;
    for (int i = 0; i < count; i++) {
        pthread_join(tenants[i].thread, NULL);
        bench_must(tenants[i].good ? 0 : -1, runtime);
    }
    uint32_t runs = atomic_load(&records->count);
    for (uint32_t i = 0; i < runs && i < RECORDS_MAX; i++) {
        const struct flow_record *run = &records->list[i];
        int64_t begin_ns = run->begin_ns > shares.begin_ns ? run->begin_ns : shares.begin_ns;
        int64_t end_ns = run->end_ns < shares.end_ns ? run->end_ns : shares.end_ns;
        if (end_ns <= begin_ns)
            continue;
        shares.busy_ns += end_ns - begin_ns;
        shares.runs[run->client]++;
    }
    return shares;
}

/* Percent of the time that the device ran something. */
static double shares_use(const struct shares *shares)
{
    return 100.0 * (double)shares->busy_ns / (double)(shares->end_ns - shares->begin_ns);
}

/* A row for each client, a mark for each run, from the beginning of what was measured. */
static void tenants_draw(const char *path, const struct flow_records *records, const struct shares *shares,
                         int count, const uint32_t *weights)
{
    static const char *const colours[] = {"#4269d0", "#efb118", "#3ca951", "#ff725c"};
    FILE *out = fopen(path, "w");
    if (!out)
        return;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"760\" height=\"%d\" "
            "font-family=\"sans-serif\" "
            "font-size=\"12\">\n",
            count * 30 + 36);
    for (int i = 0; i < count; i++)
        fprintf(out, "<text x=\"4\" y=\"%d\">weight %u</text>\n", i * 30 + 22, weights[i]);
    for (uint32_t i = 0; i < atomic_load(&records->count) && i < RECORDS_MAX; i++) {
        const struct flow_record *run = &records->list[i];
        double at = (double)(run->begin_ns - shares->begin_ns) / PICTURE_NS;
        double width = (double)(run->end_ns - run->begin_ns) / PICTURE_NS;
        if (at >= 0 && at + width <= 1)
            fprintf(out, "<rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"20\" fill=\"%s\"/>\n",
                    70 + at * 680, run->client * 30 + 8, width * 680, colours[run->client % 4]);
    }
    fprintf(out, "<text x=\"70\" y=\"%d\">0</text><text x=\"715\" y=\"%d\">60 ms</text>\n</svg>\n",
            count * 30 + 24, count * 30 + 24);
    fclose(out);
}

int main(int argc, char **argv)
{
    static const uint32_t weights[][4] = {{1, 1, 1, 1}, {1, 2, 4, 8}};
    char path[] = "/tmp/bench-flow-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || ftruncate(fd, sizeof(struct flow_records)) < 0 || setenv("BENCH_FLOW_RECORDS", path, 1) < 0)
        return 1;
    struct flow_records *records = mmap(NULL, sizeof *records, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    struct runtime runtime;
    if (records == MAP_FAILED)
        return 1;
    runtime_start(&runtime, 1, 1);
    for (int count = 1; count <= TENANTS_MAX; count *= 2) {
        struct shares shares = tenants_measure(&runtime, records, count, NULL, AHEAD_ONE);
        printf("{\"bench\":\"flow_tenants\",\"case\":\"device in use, %d clients, a launch at a time each\","
               "\"value\":%.1f,\"unit\":\"%%\"}\n",
               count, shares_use(&shares));
        fflush(stdout);
    }
    for (int w = 0; w < 2; w++) {
        struct shares shares = tenants_measure(&runtime, records, 4, weights[w], AHEAD_FULL);
        double total = 0, sum = 0, worst = 0;
        for (int i = 0; i < 4; i++) {
            total += shares.runs[i];
            sum += weights[w][i];
        }
        for (int i = 0; i < 4; i++) {
            double off = 100 * (shares.runs[i] / (total * weights[w][i] / sum) - 1);
            worst = off > worst ? off : -off > worst ? -off : worst;
        }
        const char *name = w ? "1:2:4:8" : "1:1:1:1";
        printf("{\"bench\":\"flow_tenants\",\"case\":\"shares %s: %u, %u, %u, %u runs, furthest off\","
               "\"value\":%.2f,\"unit\":\"%%\"}\n",
               name, shares.runs[0], shares.runs[1], shares.runs[2], shares.runs[3], worst);
        printf("{\"bench\":\"flow_tenants\",\"case\":\"shares %s: device in use\",\"value\":%.1f,"
               "\"unit\":\"%%\"}\n",
               name, shares_use(&shares));
        fflush(stdout);
        if (w == 1 && argc > 1)
            tenants_draw(argv[1], records, &shares, 4, weights[w]);
    }
    runtime_stop(&runtime);
    unlink(path);
    return 0;
}
