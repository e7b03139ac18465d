/* The round trip to a worker: a value of 64 bytes is fetched that is there, or put and fetched, over shared
 * memory and over TCP. Beside it the limits of the machine: 64 bytes there and back between two processes
 * through a plain ring that both look at all the time, and through a pair of sockets where each sleeps until
 * the other has written. Whether the runtime's threads look or sleep is its own rule (src/flow/wire/spin.h);
 * "runnable" says what the machine was like. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "flow/wire/spin.h"
#include "flow_process.h"
#include "net/ring.h"
#include "phalanx/flow.h"

enum { ROUNDS = 4000, VALUE_BYTES = 64, CAPACITY = 4096 };

struct distribution {
    double best, median, p99;
};

static int64_t wire_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

static void wire_must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static int wire_compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static struct distribution wire_sum_up(int64_t *samples)
{
    qsort(samples, ROUNDS, sizeof *samples, wire_compare);
    return (struct distribution){(double)samples[ROUNDS / 100] / 1e3, (double)samples[ROUNDS / 2] / 1e3,
                                 (double)samples[ROUNDS * 99 / 100] / 1e3};
}

static int wire_runnable(void)
{
    char line[128] = "";
    FILE *file = fopen("/proc/loadavg", "re");
    if (file && !fgets(line, sizeof line, file))
        line[0] = 0;
    if (file)
        fclose(file);
    return spin_runnable(line);
}

static void wire_row(const char *name, struct distribution us, double limit_us)
{
    printf("{\"bench\":\"wire\",\"case\":\"%s\",\"value\":%.3g,\"unit\":\"us\",\"best\":%.3g,\"p99\":%.4g,"
           "\"runnable\":%d",
           name, us.median, us.best, us.p99, wire_runnable());
    if (limit_us > 0)
        printf(",\"limit\":%.3g,\"ratio_limit\":%.1f", limit_us, us.median / limit_us);
    printf("}\n");
    fflush(stdout);
}

/* --- limits */

static void ring_move(struct ring *ring, void *data, bool writes)
{
    for (size_t done = 0; done < VALUE_BYTES;)
        done += writes ? ring_write(ring, (char *)data + done, VALUE_BYTES - done)
                       : ring_read(ring, (char *)data + done, VALUE_BYTES - done);
}

static struct distribution limit_ring(void)
{
    static int64_t samples[ROUNDS];
    size_t size = (ring_size(CAPACITY) + 4095) / 4096 * 4096;
    char data[VALUE_BYTES] = {0};
    char *memory = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    wire_must(memory != MAP_FAILED, "no memory");
    struct ring there, back;
    ring_attach(&there, memory, CAPACITY);
    ring_attach(&back, memory + size, CAPACITY);
    pid_t pid = fork();
    for (int i = 0; i < ROUNDS; i++) {
        int64_t begin_ns = wire_now_ns();
        ring_move(&there, data, pid != 0);
        ring_move(&back, data, pid == 0);
        samples[i] = wire_now_ns() - begin_ns;
    }
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    munmap(memory, 2 * size);
    return wire_sum_up(samples);
}

static struct distribution limit_sockets(void)
{
    static int64_t samples[ROUNDS];
    char data[VALUE_BYTES] = {0};
    int ends[2];
    wire_must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "no sockets");
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        while (recv(ends[1], data, sizeof data, MSG_WAITALL) == sizeof data)
            if (send(ends[1], data, sizeof data, 0) != sizeof data)
                break;
        _exit(0);
    }
    close(ends[1]);
    for (int i = 0; i < ROUNDS; i++) {
        int64_t begin_ns = wire_now_ns();
        wire_must(send(ends[0], data, sizeof data, 0) == sizeof data &&
                      recv(ends[0], data, sizeof data, MSG_WAITALL) == sizeof data,
                  "the other end of the sockets is gone");
        samples[i] = wire_now_ns() - begin_ns;
    }
    close(ends[0]);
    waitpid(pid, NULL, 0);
    return wire_sum_up(samples);
}

/* --- the runtime */

/* Rows of one carrier. */
static void flow_rows(const char *carrier, const char *head, const char *worker, double limit_us)
{
    static int64_t samples[ROUNDS];
    static uint64_t values[ROUNDS];
    char name[64];
    struct process runs[2] = {0};
    process_start(&runs[0], (const char *const[]){"phalanx", "flow", "head", "--listen", head, NULL});
    const char *address = runs[0].address;
    process_start(&runs[1], (const char *const[]){"phalanx", "flow", "worker", "--head", address, "--listen",
                                                  worker, NULL});
    phx_flow *flow;
    struct phx_error error;
    struct phx_flow_mesh mesh;
    struct phx_flow_mesh_options options = {.rank = 1, .dims = {1}};
    wire_must(phx_flow_connect(address, NULL, &flow, &error) == 0 &&
                  phx_flow_mesh_new(flow, &options, &mesh, &error) == 0,
              "no connection to the head");
    struct phx_flow_type type = {PHX_FLOW_FLOAT32, 1, {VALUE_BYTES / 4}};
    struct phx_flow_sharding whole = {mesh.id, {0}};
    char data[VALUE_BYTES] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        int64_t begin_ns = wire_now_ns();
        uint64_t value = phx_flow_put(flow, &type, &whole, data, sizeof data, &error);
        wire_must(value && phx_flow_get(flow, value, data, sizeof data, 10000, NULL, &error) == 0,
                  "a value did not come back");
        samples[i] = wire_now_ns() - begin_ns;
        phx_flow_release(flow, value);
    }
    snprintf(name, sizeof name, "put and get of 64 bytes, %s", carrier);
    wire_row(name, wire_sum_up(samples), limit_us);
    for (int i = 0; i < ROUNDS; i++)
        values[i] = phx_flow_put(flow, &type, &whole, data, sizeof data, &error);
    for (int i = 0; i < ROUNDS; i++) {
        int64_t begin_ns = wire_now_ns();
        wire_must(phx_flow_get(flow, values[i], data, sizeof data, 10000, NULL, &error) == 0,
                  "a value did not come back");
        samples[i] = wire_now_ns() - begin_ns;
    }
    snprintf(name, sizeof name, "get of 64 bytes, %s", carrier);
    wire_row(name, wire_sum_up(samples), limit_us);
    phx_flow_close(flow);
    for (int i = 1; i >= 0; i--)
        process_stop(&runs[i], SIGTERM);
}

int main(void)
{
    char folder[] = "/tmp/bench-wire-XXXXXX", head[64], worker[64];
    wire_must(mkdtemp(folder) != NULL, "no folder");
    snprintf(head, sizeof head, "unix:%s/h", folder);
    snprintf(worker, sizeof worker, "unix:%s/w", folder);
    struct distribution ring = limit_ring(), sockets = limit_sockets();
    wire_row("64 bytes there and back, plain ring, both look", ring, 0);
    wire_row("64 bytes there and back, pair of sockets, both sleep", sockets, 0);
    flow_rows("shared memory", head, worker, sockets.median);
    setenv("PHX_FLOW_TOKEN", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 0);
    flow_rows("TCP", "127.0.0.1:0", "127.0.0.1:0", sockets.median);
    unlink(head + 5);
    unlink(worker + 5);
    rmdir(folder);
    return 0;
}
