/* ranks.h - two ranks of one job, stand-alone, for benches of what they do together: each a process with a
 * "machine" of its own, which is a folder below /dev/shm. libphalanx and libc only. */
#ifndef PHX_BENCH_RANKS_H
#define PHX_BENCH_RANKS_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "phalanx/phalanx.h"
#include "timing.h"

enum { RANKS = 2, STATE_BYTES = 100 * 1000 * 1000, WORK_BYTES = 8 * 1000 * 1000 };

static char ranks_root[64];               /* of the machines */
static uint8_t *ranks_state, *ranks_work; /* each process has its own */

static inline void ranks_check(int status, const struct phx_error *error)
{
    if (status == 0)
        return;
    fprintf(stderr, "bench: %s\n", error->message);
    _exit(1);
}

/* Before all else; storage: where shards are written. */
static inline void ranks_init(const char *storage)
{
    snprintf(ranks_root, sizeof ranks_root, "/dev/shm/phalanx-bench-XXXXXX");
    ranks_state = malloc(STATE_BYTES);
    ranks_work = malloc(WORK_BYTES);
    if (!ranks_state || !ranks_work || !mkdtemp(ranks_root))
        exit(1);
    memset(ranks_state, 1, STATE_BYTES);
    memset(ranks_work, 1, WORK_BYTES);
    unsetenv("PHX_AGENT_SOCKET");
    setenv("PHX_WORLD_SIZE", "2", 1);
    setenv("PHX_CHECKPOINT_DIR", storage, 1);
}

static inline void ranks_remove(const char *path)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", path);
    if (system(command) != 0)
        exit(1);
}

static inline void ranks_lose_machine(uint32_t machine)
{
    char path[80];
    snprintf(path, sizeof path, "%s/machine-%u", ranks_root, machine);
    ranks_remove(path);
}

/* The state is one region, of which each rank has its part. */
static inline phx_context *ranks_join(uint32_t rank, uint32_t attempt, int port)
{
    struct phx_error error;
    phx_context *ctx;
    char text[128];
    snprintf(text, sizeof text, "%s/machine-%u", ranks_root, rank);
    mkdir(text, 0700);
    snprintf(text, sizeof text, "%s/machine-%u/memory", ranks_root, rank);
    setenv("PHX_MEMORY_DIR", text, 1);
    snprintf(text, sizeof text, "%u", rank);
    setenv("PHX_RANK", text, 1);
    snprintf(text, sizeof text, "%u", attempt);
    setenv("PHX_ATTEMPT", text, 1);
    snprintf(text, sizeof text, "127.0.0.1:%d", port);
    setenv("PHX_RENDEZVOUS", text, 1);
    ranks_check(phx_join(NULL, &ctx, &error), &error);
    struct phx_region region = {.name = "state",
                                .data = ranks_state,
                                .dtype = PHX_U8,
                                .dims = 1,
                                .shape = {STATE_BYTES},
                                .shard_index = rank,
                                .shard_count = RANKS};
    ranks_check(phx_checkpoint_register(ctx, &region, 1, &error), &error);
    return ctx;
}

static inline int ranks_free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&address, size) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        exit(1);
    close(fd);
    return ntohs(address.sin_port);
}

/* `out` is shared by both. */
typedef void (*ranks_body)(uint32_t rank, uint32_t attempt, int port, double *out);

/* Both ranks; what they have measured. */
static inline void ranks_run(ranks_body body, uint32_t attempt, double *out, size_t count)
{
    double *shared =
        mmap(NULL, count * sizeof *out, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int port = ranks_free_port(), status, failed = 0;
    pid_t pids[RANKS];
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        pids[rank] = fork();
        if (pids[rank] == 0) {
            body(rank, attempt, port, shared);
            _exit(0);
        }
    }
    for (uint32_t rank = 0; rank < RANKS; rank++)
        failed |= waitpid(pids[rank], &status, 0) < 0 || status != 0;
    if (failed)
        exit(1);
    memcpy(out, shared, count * sizeof *out);
    munmap(shared, count * sizeof *out);
}

/* ---- the limit of a copy: one TCP stream over loopback, from memory to memory, without a checksum ---- */

static inline void ranks_drain(int listener)
{
    int fd = accept(listener, NULL, NULL);
    size_t at = 0;
    ssize_t got;
    while ((got = recv(fd, ranks_work, 262144, 0)) > 0)
        at += (size_t)got;
    _exit(at == STATE_BYTES ? 0 : 1);
}

/* Streams the state until all of it was read; milliseconds. */
static inline double ranks_stream_ms(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), status = 1;
    if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        exit(1);
    pid_t pid = fork();
    if (pid == 0)
        ranks_drain(listener);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    double begin = now_ms();
    if (connect(fd, (struct sockaddr *)&address, size) != 0)
        exit(1);
    for (size_t at = 0; at < STATE_BYTES;) {
        ssize_t sent = send(fd, ranks_state + at, STATE_BYTES - at, MSG_NOSIGNAL);
        if (sent <= 0)
            exit(1);
        at += (size_t)sent;
    }
    shutdown(fd, SHUT_WR);
    waitpid(pid, &status, 0);
    double ms = now_ms() - begin;
    close(fd);
    close(listener);
    if (status != 0)
        exit(1);
    return ms;
}

#endif
