/* rejoin STAMPS: a rank that says when it is past its first barrier, then makes steps until its gang breaks.
 *
 * Each stamp is 16 bytes into the FIFO named STAMPS: the time (CLOCK_MONOTONIC in nanoseconds), attempt and
 * rank (32 bits each). Nothing is saved or loaded, so what is measured is the cluster's own part of a
 * recovery.
 */
#include <fcntl.h>
#include <phalanx/phalanx.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { STEP_MS = 50, BARRIER_MS = 60000, TRY_AGAIN = 75 };

struct stamp {
    int64_t time_ns;
    uint32_t attempt, rank;
};

static int fail(const struct phx_error *error)
{
    fprintf(stderr, "rejoin: %s\n", error->message);
    return TRY_AGAIN;
}

static int say(const char *path, const phx_context *ctx)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct stamp stamp = {(int64_t)now.tv_sec * 1000000000 + now.tv_nsec, phx_attempt(ctx), phx_rank(ctx)};
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, &stamp, sizeof stamp) != sizeof stamp)
        return -1;
    return close(fd);
}

int main(int argc, char **argv)
{
    struct phx_error error;
    phx_context *ctx;
    if (argc != 2)
        return 2;
    if (phx_join(NULL, &ctx, &error) != 0)
        return fail(&error);
    if (phx_barrier(ctx, BARRIER_MS, &error) != 0)
        return fail(&error);
    if (say(argv[1], ctx) != 0)
        return 1;
    struct pollfd failure = {phx_failure_fd(ctx), POLLIN, 0};
    for (uint64_t step = 1;; step++) {
        if (phx_step(ctx, step, NULL, 0, &error) != 0)
            return fail(&error);
        if (poll(&failure, 1, STEP_MS) != 0 && phx_check(ctx, &error) != 0)
            return fail(&error);
    }
}
