/* gather.h - the time in which all ranks of a slice know what the chips of all others see
 * (job/fabric/gather.c), beside the same by one get of each rank for each other. Each rank is a process; the
 * keys go through rank 0 over TCP on loopback, without an agent. */
#ifndef PHX_BENCH_GATHER_H
#define PHX_BENCH_GATHER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "job/fabric/gather.h"
#include "timing.h"

enum { GATHER_RUNS = 5, GATHER_WORD_BYTES = 312 };

static inline void gather_fail(const struct phx_error *error)
{
    fprintf(stderr, "bench: gather: %s\n", error->message);
    _exit(1);
}

/* Each rank asks each other one: what the tree replaces. */
static inline int gather_each(const struct fabric_ranks *ranks, struct phx_error *error)
{
    uint8_t bytes[GATHER_WORD_BYTES] = {0};
    char key[FABRIC_KEY_MAX];
    size_t len;
    fabric_gather_key(ranks->opened, "each", ranks->generation, ranks->rank, key);
    int status = phx_kv_put(ranks->ctx, key, bytes, sizeof bytes, error);
    for (uint32_t rank = 0; rank < ranks->world && status == 0; rank++) {
        fabric_gather_key(ranks->opened, "each", ranks->generation, rank, key);
        status = phx_kv_get(ranks->ctx, key, bytes, sizeof bytes, &len, -1, error);
    }
    return status;
}

/* The body of a rank; rank 0 leaves the median of the runs, in ms, from one barrier to the next. */
static inline void gather_rank(uint32_t rank, uint32_t world, bool tree, double *ret_ms)
{
    struct phx_error error;
    struct fabric_ranks ranks = {.rank = rank, .world = world};
    struct fabric_word word = {.done = rank};
    char text[32];
    double ms[GATHER_RUNS];
    snprintf(text, sizeof text, "%u", rank);
    setenv("PHX_RANK", text, 1);
    if (phx_join(NULL, &ranks.ctx, &error) != 0)
        gather_fail(&error);
    struct fabric_word *words = mem_alloc(world * sizeof *words);
    uint32_t runs = tree ? GATHER_RUNS : 1; /* the other way takes long */
    for (uint32_t run = 0; run < runs; run++) {
        ranks.generation = run + 1;
        int status = phx_barrier(ranks.ctx, -1, &error);
        double begun_ms = now_ms();
        if (status == 0)
            status = tree ? fabric_gather(&ranks, &word, words, &error) : gather_each(&ranks, &error);
        if (status != 0 || phx_barrier(ranks.ctx, -1, &error) != 0)
            gather_fail(&error);
        ms[run] = now_ms() - begun_ms;
    }
    if (rank == 0)
        *ret_ms = median(ms, runs);
    mem_free(words);
    phx_leave(ranks.ctx, NULL);
}

static inline double gather_ms(uint32_t world, bool tree)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int on = 1, status, failed = 0, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char text[64];
    double *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t *pids = mem_alloc(world * sizeof *pids);
    if (shared == MAP_FAILED || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, (struct sockaddr *)&address, size) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        exit(1);
    unsetenv("PHX_AGENT_SOCKET");
    snprintf(text, sizeof text, "127.0.0.1:%d", ntohs(address.sin_port));
    setenv("PHX_RENDEZVOUS", text, 1);
    snprintf(text, sizeof text, "%u", world);
    setenv("PHX_WORLD_SIZE", text, 1);
    for (uint32_t rank = 0; rank < world; rank++) {
        pids[rank] = fork();
        if (pids[rank] == 0) {
            gather_rank(rank, world, tree, shared);
            _exit(0);
        }
    }
    for (uint32_t rank = 0; rank < world; rank++)
        failed |= waitpid(pids[rank], &status, 0) < 0 || status != 0;
    double ms = *shared;
    munmap(shared, sizeof *shared);
    mem_free(pids);
    close(fd);
    if (failed)
        exit(1);
    return ms;
}

#endif
