/* flow_loops.h - the peer of bench/flow.c: processes that each run the loop by themselves, with the same
 * compiled function, executor and collective as the runtime, and no controller at all. */
#ifndef PHX_BENCH_FLOW_LOOPS_H
#define PHX_BENCH_FLOW_LOOPS_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "flow/exec/executor.h"
#include "flow/host/board.h"
#include "flow/host/gang.h"
#include "timing.h"

enum { LOOPS_HOSTS_MAX = 16, LOOPS_DEVICES_MAX = 64, LOOPS_DEPTH = 4 };

struct loops_host {
    struct gang_table *table;
    struct executable *executable;
    const struct executor *executor;
    uint32_t hosts[LOOPS_HOSTS_MAX * LOOPS_DEVICES_MAX], partitions, devices;
    int launches;
    _Atomic uint32_t ended[LOOPS_DEPTH];
};
struct loops_device {
    pthread_t thread;
    struct loops_host *host;
    uint32_t partition;
    struct tensor *value;
};
/* Shared by the processes: where each is, and a barrier at which all meet before the clock begins. */
struct loops_start {
    _Atomic uint64_t places[LOOPS_HOSTS_MAX];
    pthread_barrier_t ready;
    _Atomic uint32_t wrong;
    _Atomic int64_t begin_ns;
};

static void loops_send(void *context, uint32_t host, const struct flow_entry *entry, struct str tail)
{
    _exit(2); /* everybody is on the board */
}

static void loops_slow(void *context)
{
}

static void loops_done(void *arg, struct tensor **results, uint32_t count, const struct flow_failure *failure)
{
    struct loops_device *device = arg;
    tensor_unref(device->value);
    device->value = count == 1 ? results[0] : NULL;
}

static void *loops_device_main(void *arg)
{
    struct loops_device *device = arg;
    struct loops_host *host = device->host;
    for (int n = 1; n <= host->launches && device->value; n++) {
        struct run_id run = {.client = 1, .launch = (uint64_t)n, .partition = device->partition};
        struct gang_member *member = gang_member_new(host->table, &run, host->hosts, host->partitions);
        struct tensor *arg_value = device->value;
        struct flow_launch launch = {.args = &arg_value, .gang = gang_member_gang(member)};
        launch.done = loops_done;
        launch.arg = device;
        host->executor->launch(host->executable, &launch);
        gang_member_free(member);
        if (atomic_fetch_add(&host->ended[n % LOOPS_DEPTH], 1) + 1 == host->devices) {
            atomic_store(&host->ended[n % LOOPS_DEPTH], 0);
            gang_forget(host->table, &run);
        }
    }
    return NULL;
}

static void loops_host_main(int board_fd, struct loops_start *start, const char *text, uint32_t hosts,
                            uint32_t self, uint32_t devices, int launches, float expected)
{
    struct loops_host host = {.devices = devices, .partitions = hosts * devices, .launches = launches};
    struct ir_module *module;
    struct error error;
    struct board *board = board_join(board_fd, devices);
    host.executor = executor_named("onednn") ? executor_named("onednn") : executor_named("interpreter");
    if (!board || ir_parse(str_from(text), "loop", &module, &error) < 0 || ir_verify(module, &error) < 0 ||
        host.executor->compile(host.executor, module, ir_function(module, str_from("main")), &host.executable,
                               &error) < 0)
        _exit(1);
    host.table = gang_table_new(loops_send, NULL);
    gang_table_set_host(host.table, self);
    gang_table_use(host.table, board, loops_slow);
    for (uint32_t p = 0; p < host.partitions; p++)
        host.hosts[p] = p / devices;
    start->places[self] = board_place(board);
    pthread_barrier_wait(&start->ready);
    for (uint32_t h = 0; h < hosts; h++)
        if (h != self)
            gang_table_meet(host.table, h, start->places[h]);
    struct loops_device all[LOOPS_DEVICES_MAX];
    struct ir_type type = {.element = IR_F32, .rank = 1, .dims = {1}};
    for (uint32_t d = 0; d < devices; d++) {
        all[d] = (struct loops_device){.host = &host, .partition = self * devices + d};
        all[d].value = tensor_new(&type);
        *(float *)all[d].value->data = 0;
    }
    int64_t zero = 0;
    atomic_compare_exchange_strong(&start->begin_ns, &zero, now_ns());
    for (uint32_t d = 0; d < devices; d++)
        pthread_create(&all[d].thread, NULL, loops_device_main, &all[d]);
    for (uint32_t d = 0; d < devices; d++) {
        pthread_join(all[d].thread, NULL);
        if (!all[d].value || *(float *)all[d].value->data != expected)
            start->wrong++;
    }
    _exit(0);
}

/* Computations a second of `launches` launches of `calls` computations each; the text is the function's. */
static double loops_rate(const char *text, uint32_t hosts, uint32_t devices, int launches, int calls)
{
    struct loops_start *start =
        mmap(NULL, sizeof *start, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int fd = board_make();
    pthread_barrierattr_t shared;
    if (start == MAP_FAILED || fd < 0 || pthread_barrierattr_init(&shared) != 0 ||
        pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED) != 0 ||
        pthread_barrier_init(&start->ready, &shared, hosts) != 0)
        exit(1);
    pthread_barrierattr_destroy(&shared);
    fflush(stdout);
    pid_t pids[LOOPS_HOSTS_MAX];
    for (uint32_t h = 0; h < hosts; h++) {
        pids[h] = fork();
        if (pids[h] == 0)
            loops_host_main(fd, start, text, hosts, h, devices, launches, (float)launches * (float)calls);
    }
    for (uint32_t h = 0; h < hosts; h++) {
        int status;
        waitpid(pids[h], &status, 0);
        start->wrong += status != 0;
    }
    double rate = (double)launches * calls * 1e9 / (double)(now_ns() - start->begin_ns);
    if (start->wrong > 0)
        exit(1);
    close(fd);
    munmap(start, sizeof *start);
    return rate;
}

#endif
