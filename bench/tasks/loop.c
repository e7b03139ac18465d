/* loop STAMPS MEGABYTES: a rank with a state, that makes steps of 10 ms together with its peers and outlives
 * them.
 *
 * After each step it writes 16 bytes into the FIFO named STAMPS: the time (CLOCK_MONOTONIC in nanoseconds),
 * attempt and rank (32 bits each). It holds its state in memory every second.
 *
 * loop --alone FILE: the limit. Copies FILE, the state in somebody's memory, into memory of its own, and
 * ends.
 */
#include <fcntl.h>
#include <phalanx/phalanx.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STEP_MS = 10, HOLD_EVERY = 100, BARRIER_MS = 60000, TRY_AGAIN = 75 };

struct stamp {
    int64_t time_ns;
    uint32_t attempt, rank;
};

struct job {
    int stamps;
    uint8_t *state;
    size_t len;
};

/* In large pages, as libraries of arrays have theirs; NULL: there is no memory. */
static uint8_t *make_state(size_t len)
{
    enum { LARGE_PAGE = 2 << 20 };
    uint8_t *state = aligned_alloc(LARGE_PAGE, (len + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE);
    if (state != NULL)
        madvise(state, len, MADV_HUGEPAGE);
    return state;
}

static int reset(void *argument, phx_context *ctx, struct phx_error *error)
{
    struct job *job = argument;
    (void)ctx, (void)error;
    memset(job->state, 1, job->len); /* on every rank the same, as weights are: each is a replica */
    return 0;
}

/* The barrier stands for the collective of a real step; a state that is not written costs no less to keep. */
static int step(void *argument, phx_context *ctx, uint64_t number, struct phx_error *error)
{
    struct job *job = argument;
    struct pollfd failure = {phx_failure_fd(ctx), POLLIN, 0};
    poll(&failure, 1, STEP_MS);
    int status = phx_barrier(ctx, BARRIER_MS, error);
    if (status != 0)
        return status;
    memcpy(job->state, &number, sizeof number);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct stamp stamp = {(int64_t)now.tv_sec * 1000000000 + now.tv_nsec, phx_attempt(ctx), phx_rank(ctx)};
    (void)!write(job->stamps, &stamp, sizeof stamp);
    return 0;
}

static int run(struct job *job)
{
    struct phx_error error;
    struct phx_options options = {.size = sizeof options, .rejoins = 1};
    struct phx_region region = {
        .name = "state", .data = job->state, .dtype = PHX_U8, .dims = 1, .shape = {job->len}};
    struct phx_loop loop = {.size = sizeof loop,
                            .steps = UINT64_MAX,
                            .hold_every = HOLD_EVERY,
                            .job = job,
                            .reset = reset,
                            .step = step,
                            .whole_steps = 1};
    phx_context *ctx;
    if (phx_join(&options, &ctx, &error) != 0 || phx_checkpoint_register(ctx, &region, 1, &error) != 0 ||
        phx_run_steps(ctx, &loop, &error) != 0) {
        fprintf(stderr, "loop: %s\n", error.message);
        return TRY_AGAIN;
    }
    return phx_leave(ctx, &error) == 0 ? 0 : 1;
}

static int alone(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0)
        return 1;
    size_t len = (size_t)status.st_size;
    uint8_t *from = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0), *state = make_state(len);
    if (from == MAP_FAILED || state == NULL)
        return 1;
    memcpy(state, from, len);
    return state[len / 2] == from[len / 2] ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--alone") == 0)
        return alone(argv[2]);
    if (argc != 3)
        return 2;
    struct job job = {.stamps = open(argv[1], O_WRONLY | O_CLOEXEC),
                      .len = (size_t)strtoul(argv[2], NULL, 10) << 20};
    job.state = job.len > 0 ? make_state(job.len) : NULL;
    if (job.stamps < 0 || job.state == NULL) {
        perror(argv[1]);
        return 1;
    }
    return run(&job);
}
