/* bench/peer: what copies of 100 MB on another machine cost, and how fast they come back.
 *
 * Two ranks, stand-alone, each on a "machine" of its own: a folder below /dev/shm. The copy is measured until
 * it counts, whole and where only a tenth has changed, beside one plain TCP stream of the same bytes over the
 * loopback device, from memory to memory, without a checksum; coming back is the join after the loss of one
 * folder. The loop is a sum over memory with a barrier per step, with all tiers on (memory every 50 steps,
 * peer at the 100th, storage at the 200th) and off; it keeps both cores busy, as a host that feeds an
 * accelerator does not. All in turn, medians. One JSON object per line (bench/run --json).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "phalanx/phalanx.h"
#include "timing.h"

enum { ROUNDS = 9, LOOPS = 3, STEPS = 200, STATE_BYTES = 100 * 1000 * 1000, WORK_BYTES = 8 * 1000 * 1000 };

static char root[64];
static uint8_t *state, *work;
static size_t changing = STATE_BYTES; /* of the state, from one copy to the next */

static void check(int status, const struct phx_error *error)
{
    if (status == 0)
        return;
    fprintf(stderr, "bench_peer: %s\n", error->message);
    _exit(1);
}

static void print(const char *name, double value, const char *unit, double limit)
{
    printf("{\"bench\":\"peer\",\"case\":\"%s\",\"value\":%.4g,\"unit\":\"%s\",\"limit\":%.4g,"
           "\"ratio_limit\":%.4g}\n",
           name, value, unit, limit, value / limit);
    fflush(stdout);
}

/* ---- one TCP stream ---- */

static void drain(int listener)
{
    int fd = accept(listener, NULL, NULL);
    size_t at = 0;
    ssize_t got;
    while ((got = recv(fd, work, WORK_BYTES < 262144 ? WORK_BYTES : 262144, 0)) > 0)
        at += (size_t)got;
    _exit(at == STATE_BYTES ? 0 : 1);
}

static double stream_ms(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), status = 1;
    if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        exit(1);
    pid_t pid = fork();
    if (pid == 0)
        drain(listener);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    double begin = now_ms();
    if (connect(fd, (struct sockaddr *)&address, size) != 0)
        exit(1);
    for (size_t at = 0; at < STATE_BYTES;) {
        ssize_t sent = send(fd, state + at, STATE_BYTES - at, MSG_NOSIGNAL);
        if (sent <= 0)
            exit(1);
        at += (size_t)sent;
    }
    shutdown(fd, SHUT_WR);
    waitpid(pid, &status, 0); /* all of it has been read */
    double ms = now_ms() - begin;
    close(fd);
    close(listener);
    if (status != 0)
        exit(1);
    return ms;
}

/* ---- ranks ---- */

static phx_context *join(uint32_t rank, uint32_t attempt, int port)
{
    struct phx_error error;
    phx_context *ctx;
    char text[128];
    snprintf(text, sizeof text, "%s/machine-%u", root, rank);
    mkdir(text, 0700);
    snprintf(text, sizeof text, "%s/machine-%u/memory", root, rank);
    setenv("PHX_MEMORY_DIR", text, 1);
    snprintf(text, sizeof text, "%u", rank);
    setenv("PHX_RANK", text, 1);
    snprintf(text, sizeof text, "%u", attempt);
    setenv("PHX_ATTEMPT", text, 1);
    snprintf(text, sizeof text, "127.0.0.1:%d", port);
    setenv("PHX_RENDEZVOUS", text, 1);
    check(phx_join(NULL, &ctx, &error), &error);
    struct phx_region region = {.name = "state",
                                .data = state,
                                .dtype = PHX_U8,
                                .dims = 1,
                                .shape = {STATE_BYTES},
                                .shard_index = rank,
                                .shard_count = 2};
    check(phx_checkpoint_register(ctx, &region, 1, &error), &error);
    return ctx;
}

static int free_port(void)
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

typedef void (*body_fn)(uint32_t rank, uint32_t attempt, int port, double *out);

/* Both ranks; what rank 0 has measured. */
static void run(body_fn body, uint32_t attempt, double *out, size_t count)
{
    double *shared =
        mmap(NULL, count * sizeof *out, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int port = free_port(), status, failed = 0;
    pid_t pids[2];
    for (uint32_t rank = 0; rank < 2; rank++) {
        pids[rank] = fork();
        if (pids[rank] == 0) {
            body(rank, attempt, port, shared);
            _exit(0);
        }
    }
    for (uint32_t rank = 0; rank < 2; rank++)
        failed |= waitpid(pids[rank], &status, 0) < 0 || status != 0;
    if (failed)
        exit(1);
    memcpy(out, shared, count * sizeof *out);
    munmap(shared, count * sizeof *out);
}

/* Both at once, each to the other. */
static void copy_states(uint32_t rank, uint32_t attempt, int port, double *out)
{
    struct phx_error error;
    phx_context *ctx = join(rank, attempt, port);
    for (uint64_t step = 1; step <= ROUNDS + 3; step++) { /* the first ones make the memory */
        memset(state, (int)step, changing);
        check(phx_barrier(ctx, -1, &error), &error);
        check(phx_checkpoint_take(ctx, step, PHX_IN_PEER, &error), &error);
        check(phx_checkpoint_held(ctx, step, -1, &error), &error);
        double begin = now_ms();
        check(phx_checkpoint_copied(ctx, step, -1, &error), &error);
        if (rank == 0 && step > 3)
            out[step - 4] = now_ms() - begin;
    }
    check(phx_barrier(ctx, -1, &error), &error);
    phx_close(ctx);
}

/* The folder of machine 0 is gone: what its rank needs comes from machine 1. */
static void come_back(uint32_t rank, uint32_t attempt, int port, double *out)
{
    struct phx_error error;
    uint64_t step;
    double begin = now_ms();
    phx_context *ctx = join(rank, attempt, port);
    if (rank == 0)
        out[0] = now_ms() - begin;
    check(phx_checkpoint_load(ctx, &step, &error), &error);
    if (state[0] != step || state[STATE_BYTES - 1] != step) {
        fprintf(stderr, "bench_peer: what was copied is not what came back\n");
        _exit(1);
    }
    check(phx_barrier(ctx, -1, &error), &error);
    phx_close(ctx);
}

static uint64_t make_step(void)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < WORK_BYTES; i++)
        sum = sum * 31 + work[i];
    return sum;
}

/* out[0]: without, out[1]: with all tiers. */
static void train(uint32_t rank, uint32_t attempt, int port, double *out)
{
    struct phx_error error;
    volatile uint64_t sum = 0;
    phx_context *ctx = join(rank, attempt, port);
    uint64_t step = 0;
    check(phx_checkpoint_load(ctx, &step, &error), &error);
    for (int tiers = 0; tiers < 2; tiers++) {
        double begin = now_ms();
        for (int i = 1; i <= STEPS; i++) {
            sum += make_step();
            state[i] = (uint8_t)sum;
            check(phx_barrier(ctx, -1, &error), &error);
            step++;
            unsigned where = i % 200 == 0   ? PHX_IN_MEMORY | PHX_IN_STORAGE
                             : i % 100 == 0 ? PHX_IN_PEER
                                            : PHX_IN_MEMORY;
            if (tiers == 1 && i % 50 == 0)
                check(phx_checkpoint_take(ctx, step, where, &error), &error);
        }
        if (rank == 0)
            out[tiers] = now_ms() - begin;
    }
    check(phx_barrier(ctx, -1, &error), &error);
    phx_close(ctx);
}

static void lose_machine(uint32_t machine)
{
    char command[160];
    snprintf(command, sizeof command, "rm -rf %s/machine-%u", root, machine);
    if (system(command) != 0)
        exit(1);
}

int main(void)
{
    double streams[ROUNDS], copies[ROUNDS], deltas[ROUNDS], joins[ROUNDS], joins_own[ROUNDS], off[LOOPS],
        on[LOOPS];
    char command[160];
    uint32_t attempt = 1;
    snprintf(root, sizeof root, "/dev/shm/phalanx-bench-XXXXXX");
    state = malloc(STATE_BYTES);
    work = malloc(WORK_BYTES);
    if (!state || !work || !mkdtemp(root))
        return 1;
    memset(state, 1, STATE_BYTES);
    memset(work, 1, WORK_BYTES);
    unsetenv("PHX_AGENT_SOCKET");
    setenv("PHX_WORLD_SIZE", "2", 1);
    snprintf(command, sizeof command, "%s/storage", root);
    setenv("PHX_CHECKPOINT_DIR", command, 1);
    setenv("PHX_PEER_DELTA", "1", 1);
    changing = STATE_BYTES / 10;
    run(copy_states, attempt++, deltas, ROUNDS);
    unsetenv("PHX_PEER_DELTA");
    changing = STATE_BYTES;
    lose_machine(0);
    lose_machine(1);
    run(copy_states, attempt++, copies, ROUNDS);
    for (int round = 0; round < ROUNDS; round++) {
        streams[round] = stream_ms();
        run(come_back, attempt++, &joins_own[round], 1);
        lose_machine(0);
        run(come_back, attempt++, &joins[round], 1);
    }
    for (int round = 0; round < LOOPS; round++) {
        double out[2];
        run(train, attempt++, out, 2);
        off[round] = out[0];
        on[round] = out[1];
    }
    double stream = median(streams, ROUNDS), own = median(joins_own, ROUNDS);
    print("copy 2 x 100 MB to a peer, until both count", median(copies, ROUNDS), "ms", 2 * stream);
    print("copy 2 x 100 MB of which 10 MB have changed", median(deltas, ROUNDS), "ms", 2 * stream);
    print("join after a loss: 100 MB from a peer", median(joins, ROUNDS), "ms", own + stream);
    print("training loop, all tiers on", median(on, LOOPS) / STEPS, "ms/step", median(off, LOOPS) / STEPS);
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command) == 0 ? 0 : 1;
}
