/* bench/checkpoint: what a checkpoint of 100 MB costs the training loop, and how fast it comes back.
 *
 * One rank, stand-alone, a state of STATE_BYTES that changes between rounds. Holding is measured beside a
 * copy of the same bytes within the process, into memory that was touched before; saving beside write and
 * fsync of the same bytes to the same folder; the peer is torch.save to a file in memory, where python3 has
 * torch. All in turn, medians. Memory is /dev/shm, storage TMPDIR (else /var/tmp). One JSON object per line
 * (bench/run --json).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "phalanx/phalanx.h"
#include "timing.h"

enum { ROUNDS = 21, SAVES = 7, STATE_BYTES = 100 * 1000 * 1000 };

static char memory_dir[64], storage_dir[256];
static uint8_t *state, *copy;

static void check(int status, const struct phx_error *error)
{
    if (status == 0)
        return;
    fprintf(stderr, "bench_checkpoint: %s\n", error->message);
    exit(1);
}

static void print(const char *name, double value, const char *unit, double limit, double peer)
{
    printf("{\"bench\":\"checkpoint\",\"case\":\"%s\",\"value\":%.4g,\"unit\":\"%s\"", name, value, unit);
    if (limit > 0)
        printf(",\"limit\":%.4g,\"ratio_limit\":%.4g", limit, value / limit);
    if (peer > 0)
        printf(",\"peer\":\"torch.save to memory\",\"peer_value\":%.4g,\"ratio_peer\":%.4g", peer,
               peer / value);
    printf("}\n");
    fflush(stdout);
}

static phx_context *join(uint32_t attempt)
{
    struct phx_error error;
    phx_context *ctx;
    char number[16];
    snprintf(number, sizeof number, "%u", attempt);
    setenv("PHX_ATTEMPT", number, 1);
    check(phx_join(NULL, &ctx, &error), &error);
    return ctx;
}

/* As an optimizer does: every page is another one than before. */
static void train(uint64_t step)
{
    for (size_t i = 0; i < STATE_BYTES; i += 512)
        state[i] = (uint8_t)(step + i);
}

/* Median ms of torch.save of the same size; 0: there is no torch. */
static double torch_save_ms(void)
{
    char command[1024];
    double ms = 0;
    snprintf(command, sizeof command,
             "p=/usr/bin/python3; python3 -c 'import torch' 2>/dev/null && p=python3; $p -c '\n"
             "import time, torch\n"
             "t, times = torch.ones(%d, dtype=torch.uint8), []\n"
             "for i in range(9):\n"
             "    t[::512] = i\n"
             "    begin = time.perf_counter()\n"
             "    torch.save(t, \"%s/peer\")\n"
             "    times.append(time.perf_counter() - begin)\n"
             "print(sorted(times)[4] * 1e3)' 2>/dev/null; rm -f %s/peer",
             STATE_BYTES, memory_dir, memory_dir);
    FILE *pipe = popen(command, "re");
    if (pipe && fscanf(pipe, "%lf", &ms) != 1)
        ms = 0;
    if (pipe)
        pclose(pipe);
    return ms;
}

static double copy_ms(void)
{
    double begin = now_ms();
    memcpy(copy, state, STATE_BYTES);
    return now_ms() - begin;
}

static uint64_t bench_hold(phx_context *ctx)
{
    struct phx_error error;
    double copies[ROUNDS], holds[ROUNDS], sealed[ROUNDS];
    uint64_t step = 0;
    for (int warm = 0; warm < 2; warm++) { /* the slots' memory is made */
        check(phx_checkpoint_hold(ctx, ++step, state, STATE_BYTES, &error), &error);
        check(phx_checkpoint_held(ctx, step, -1, &error), &error);
    }
    for (int round = 0; round < ROUNDS; round++) {
        train(++step);
        if (round % 2)
            copies[round] = copy_ms();
        double begin = now_ms();
        check(phx_checkpoint_hold(ctx, step, state, STATE_BYTES, &error), &error);
        holds[round] = now_ms() - begin;
        check(phx_checkpoint_held(ctx, step, -1, &error), &error);
        sealed[round] = now_ms() - begin;
        if (round % 2 == 0) /* whoever comes first finds the state colder */
            copies[round] = copy_ms();
    }
    double limit = median(copies, ROUNDS);
    print("hold 100 MB in memory, the loop stands still", median(holds, ROUNDS), "ms", limit,
          torch_save_ms());
    print("hold 100 MB in memory, until it counts", median(sealed, ROUNDS), "ms", limit, 0);
    return step;
}

static void bench_restore(uint64_t step)
{
    struct phx_error error;
    double copies[ROUNDS], restores[ROUNDS], joins[ROUNDS];
    for (uint32_t round = 0; round < ROUNDS; round++) {
        size_t len;
        uint64_t found;
        double begin = now_ms();
        phx_context *ctx = join(round + 1);
        joins[round] = now_ms() - begin;
        begin = now_ms();
        check(phx_checkpoint_restore(ctx, copy, STATE_BYTES, &len, &found, &error), &error);
        restores[round] = now_ms() - begin;
        if (found != step || memcmp(copy, state, STATE_BYTES) != 0) {
            fprintf(stderr, "bench_checkpoint: what was held is not what came back\n");
            exit(1);
        }
        copies[round] = copy_ms();
        phx_close(ctx);
    }
    double limit = median(copies, ROUNDS);
    print("restore 100 MB from memory", median(restores, ROUNDS), "ms", limit, 0);
    print("restore 100 MB from memory: join and verify before it", median(joins, ROUNDS), "ms", limit, 0);
}

/* The time of `dd` alone: what it says itself. 0: there is none. */
static double dd_ms(const char *arguments)
{
    char command[1024], line[256];
    double seconds = 0;
    snprintf(command, sizeof command, "{ LC_ALL=C dd %s; } 2>&1", arguments);
    FILE *pipe = popen(command, "re");
    while (pipe && fgets(line, sizeof line, pipe)) {
        const char *at = strstr(line, "copied, ");
        if (at && sscanf(at, "copied, %lf s", &seconds) != 1)
            seconds = 0;
    }
    if (pipe)
        pclose(pipe);
    return seconds * 1e3;
}

static double dd_write_ms(void)
{
    char arguments[700];
    snprintf(arguments, sizeof arguments, "if=/dev/zero of=%s/dd bs=%d count=100 conv=fsync; rm -f %s/dd",
             storage_dir, STATE_BYTES / 100, storage_dir);
    return dd_ms(arguments);
}

/* Reading what is not in the page cache. */
static double dd_read_ms(const char *path)
{
    char arguments[700];
    snprintf(arguments, sizeof arguments, "if=%s of=/dev/null bs=%d", path, STATE_BYTES / 100);
    return dd_ms(arguments);
}

static void forget(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0) {
        fprintf(stderr, "bench_checkpoint: %s: %s\n", path, strerror(errno));
        exit(1);
    }
    close(fd);
}

/* Measures what a program without threads does: write, fsync. */
static double plain_write_ms(void)
{
    char path[300];
    snprintf(path, sizeof path, "%s/plain", storage_dir);
    double begin = now_ms();
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (size_t at = 0; fd >= 0 && at < STATE_BYTES;) {
        ssize_t written = write(fd, state + at, STATE_BYTES - at);
        if (written < 0 && errno != EINTR)
            break;
        at += written > 0 ? (size_t)written : 0;
    }
    if (fd < 0 || fsync(fd) != 0) {
        fprintf(stderr, "bench_checkpoint: %s: %s\n", path, strerror(errno));
        exit(1);
    }
    close(fd);
    double ms = now_ms() - begin;
    unlink(path);
    return ms;
}

static void print_beside(const char *name, double value, double limit, const char *peer_name, double peer)
{
    printf("{\"bench\":\"checkpoint\",\"case\":\"%s\",\"value\":%.4g,\"unit\":\"ms\",\"limit\":%.4g,"
           "\"ratio_limit\":%.4g",
           name, value, limit, value / limit);
    if (peer > 0)
        printf(",\"peer\":\"%s\",\"peer_value\":%.4g,\"ratio_peer\":%.4g", peer_name, peer, peer / value);
    printf("}\n");
    fflush(stdout);
}

/* Waits until the checkpoints that a save made superfluous are deleted, so that they do not count towards
 * dd. */
static void wait_until_deleted(int step)
{
    char path[300];
    snprintf(path, sizeof path, "%s/step-%d", storage_dir, step);
    while (access(path, F_OK) == 0)
        usleep(1000);
}

static void bench_save(void)
{
    struct phx_error error;
    double plain[SAVES], saves[SAVES], dd[SAVES];
    phx_context *ctx = join(1000);
    for (int round = 0; round < SAVES; round++) {
        plain[round] = plain_write_ms();
        double begin = now_ms();
        check(phx_checkpoint_save(ctx, 1000 + (uint64_t)round, state, STATE_BYTES, &error), &error);
        saves[round] = now_ms() - begin;
        wait_until_deleted(1000 + round - 2);
        dd[round] = dd_write_ms();
    }
    print_beside("save 100 MB to storage", median(saves, SAVES), median(plain, SAVES), "dd conv=fsync",
                 median(dd, SAVES));
    phx_close(ctx);
}

/* The newest one, each time from the disk; joining has read it through already. */
static void bench_load(void)
{
    struct phx_error error;
    double loads[SAVES], dd[SAVES], copies[SAVES];
    char path[400];
    snprintf(path, sizeof path, "%s/step-%d/attempt-1000-rank-0.shard", storage_dir, 1000 + SAVES - 1);
    unsetenv("PHX_MEMORY_DIR");
    for (uint32_t round = 0; round < SAVES; round++) {
        size_t len;
        uint64_t found;
        phx_context *ctx = join(2000 + round);
        forget(path);
        dd[round] = dd_read_ms(path);
        forget(path);
        double begin = now_ms();
        check(phx_checkpoint_restore(ctx, copy, STATE_BYTES, &len, &found, &error), &error);
        loads[round] = now_ms() - begin;
        copies[round] = copy_ms();
        phx_close(ctx);
    }
    print_beside("restore 100 MB from storage, cold", median(loads, SAVES), median(copies, SAVES),
                 "dd from the same file", median(dd, SAVES));
}

int main(void)
{
    const char *parent = getenv("TMPDIR");
    char command[512];
    snprintf(memory_dir, sizeof memory_dir, "/dev/shm/phalanx-bench-XXXXXX");
    snprintf(storage_dir, sizeof storage_dir, "%s/phalanx-bench-XXXXXX", parent ? parent : "/var/tmp");
    state = malloc(STATE_BYTES);
    copy = malloc(STATE_BYTES);
    if (!state || !copy || !mkdtemp(memory_dir) || !mkdtemp(storage_dir)) {
        fprintf(stderr, "bench_checkpoint: %s\n", strerror(errno));
        return 1;
    }
    memset(copy, 1, STATE_BYTES);
    memset(state, 1, STATE_BYTES);
    unsetenv("PHX_AGENT_SOCKET");
    setenv("PHX_MEMORY_DIR", memory_dir, 1);
    setenv("PHX_CHECKPOINT_DIR", storage_dir, 1);
    phx_context *ctx = join(0);
    uint64_t step = bench_hold(ctx);
    phx_close(ctx);
    bench_restore(step);
    bench_save();
    bench_load();
    snprintf(command, sizeof command, "rm -rf %s %s", memory_dir, storage_dir);
    return system(command) == 0 ? 0 : 1;
}
