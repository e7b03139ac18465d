/* bench/spawn: from launch_spawn to a task's first instruction, beside a plain fork+exec of the same program.
 *
 * The program is this one: as a task its constructor writes the time, CLOCK_MONOTONIC, into a FIFO and ends.
 * A value is the median time from the first start of a batch to the last first instruction of it. All ways
 * are measured in turn, so that they see the same machine. The state lies in memory, as docs/launcher.md
 * advises; PHX_BENCH_DIR names another place. One JSON object per line (bench/run --json).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/launch/launch.h"

#include "timing.h"

enum { ROUNDS = 200, GANG = 64, GANG_ROUNDS = 15 };
#define FIFO_VARIABLE "PHX_BENCH_SPAWN"

/* The task: before main, as near to the first instruction as C allows. */
__attribute__((constructor)) static void be_the_task(void)
{
    int64_t now = now_ns();
    const char *fifo = getenv(FIFO_VARIABLE);
    if (!fifo)
        return;
    int fd = open(fifo, O_WRONLY | O_CLOEXEC);
    _exit(fd >= 0 && write(fd, &now, sizeof now) == sizeof now ? 0 : 1);
}

struct bench {
    char directory[256], fifo[300], variable[340];
    int fifo_fd;
    const char *self;
    uv_loop_t loop;
    struct launcher *launcher, *on_glibc; /* NULL: there is no such shim */
    struct launcher *current;
    uint64_t uid;
    int exited;
};

static void fail(const char *what)
{
    fprintf(stderr, "bench_spawn: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void on_event(void *context, const struct launch_event *event)
{
    struct bench *b = context;
    if (event->kind != LAUNCH_EXITED)
        return;
    if (event->exit.exit_code != 0 || event->exit.signaled) {
        fprintf(stderr, "bench_spawn: the task failed: %s\n", event->exit.message);
        exit(1);
    }
    b->exited++;
    launch_forget(b->current, event->uid, NULL);
}

/* The last of `count` first instructions. */
static int64_t last_instruction(struct bench *b, int count)
{
    int64_t last = 0, time;
    for (int i = 0; i < count; i++) {
        struct pollfd fd = {b->fifo_fd, POLLIN, 0};
        while (poll(&fd, 1, 10000) == 1 && read(b->fifo_fd, &time, sizeof time) != sizeof time)
            ;
        last = time > last ? time : last;
    }
    return last;
}

static double plain(struct bench *b, int count)
{
    char *const argv[] = {(char *)b->self, NULL}, *const env[] = {b->variable, NULL};
    pid_t pids[GANG];
    int64_t start = now_ns();
    for (int i = 0; i < count; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            execve(b->self, argv, env);
            _exit(127);
        }
    }
    int64_t last = last_instruction(b, count);
    for (int i = 0; i < count; i++)
        waitpid(pids[i], NULL, 0);
    return (double)(last - start) / 1e3;
}

static double ours(struct bench *b, struct launcher *launcher, int count, bool hosts, bool filtered)
{
    b->current = launcher;
    const char *const argv[] = {b->self, NULL}, *const env[] = {b->variable, NULL};
    struct launch_spec spec = {.name = "bench-0", .argv = argv, .env = env};
    if (hosts) {
        spec.hosts = STR("127.0.0.2 job-0.gang job-0\n127.0.0.3 job-1.gang job-1\n");
        spec.rank_table = STR("{\"version\":\"1.0\",\"server_list\":[]}\n");
    }
    spec.filtered = spec.no_new_privileges = filtered;
    struct error error;
    b->exited = 0;
    int64_t start = now_ns();
    for (int i = 0; i < count; i++) {
        spec.uid = ++b->uid;
        if (launch_spawn(launcher, &spec, &error) < 0) {
            fprintf(stderr, "bench_spawn: %s\n", error.text);
            exit(1);
        }
    }
    int64_t last = last_instruction(b, count);
    while (b->exited < count)
        uv_run(&b->loop, UV_RUN_ONCE);
    return (double)(last - start) / 1e3;
}

static void measure(struct bench *b, int count, int rounds)
{
    static double limit[ROUNDS], bare[ROUNDS], full[ROUNDS], filtered[ROUNDS], glibc[ROUNDS];
    for (int i = 0; i < rounds; i++) {
        limit[i] = plain(b, count);
        bare[i] = ours(b, b->launcher, count, false, false);
        full[i] = ours(b, b->launcher, count, true, false);
        filtered[i] = ours(b, b->launcher, count, false, true);
        glibc[i] = b->on_glibc ? ours(b, b->on_glibc, count, false, false) : 0;
    }
    double floor = median(limit, (size_t)rounds);
    const struct {
        const char *name;
        double value;
    } cases[] = {{"fork+exec", floor},
                 {"launch_spawn", median(bare, (size_t)rounds)},
                 {"launch_spawn, hosts and rank table", median(full, (size_t)rounds)},
                 {"launch_spawn, system calls filtered", median(filtered, (size_t)rounds)},
                 {"launch_spawn, shim on static glibc", median(glibc, (size_t)rounds)}};
    size_t shown = sizeof cases / sizeof cases[0] - !b->on_glibc;
    for (size_t i = 0; i < shown; i++)
        printf(
            "{\"bench\":\"spawn\",\"case\":\"%s, %d at once\",\"value\":%.0f,\"unit\":\"us\",\"limit\":%.0f,"
            "\"ratio_limit\":%.2f}\n",
            cases[i].name, count, cases[i].value, floor, cases[i].value / floor);
}

static void closed(void *context)
{
    (void)context;
}

static struct launcher *new_launcher(struct bench *b, const char *name, const char *shim)
{
    char directory[300];
    snprintf(directory, sizeof directory, "%s/%s", b->directory, name);
    struct launcher_options options = {
        .directory = directory, .shim = shim, .on_event = on_event, .context = b, .kept_attempts = -1};
    struct launcher *launcher;
    struct error error;
    if (launcher_new(&b->loop, &options, &launcher, &error) < 0) {
        fprintf(stderr, "bench_spawn: %s\n", error.text);
        exit(1);
    }
    return launcher;
}

int main(void)
{
    static char self[512];
    static struct bench bench = {.self = self};
    struct bench *b = &bench;
    const char *place = getenv("PHX_BENCH_DIR");
    if (!place)
        place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(b->directory, sizeof b->directory, "%.200s/phx-bench-XXXXXX", place);
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (len <= 0 || !mkdtemp(b->directory))
        fail("scratch directory");
    snprintf(b->fifo, sizeof b->fifo, "%.280s/fifo", b->directory);
    snprintf(b->variable, sizeof b->variable, FIFO_VARIABLE "=%.300s", b->fifo);
    if (mkfifo(b->fifo, 0600) < 0 || (b->fifo_fd = open(b->fifo, O_RDWR | O_NONBLOCK | O_CLOEXEC)) < 0)
        fail(b->fifo);
    uv_loop_init(&b->loop);
    b->launcher = new_launcher(b, "launcher", NULL);
    char glibc[600];
    snprintf(glibc, sizeof glibc, "%.*sphalanx-shim-glibc", (int)(strrchr(self, '/') + 1 - self), self);
    if (access(glibc, X_OK) == 0)
        b->on_glibc = new_launcher(b, "on-glibc", glibc);
    measure(b, 1, ROUNDS);
    measure(b, 8, 50);
    measure(b, GANG, GANG_ROUNDS);
    launch_shutdown(b->launcher, closed, NULL);
    if (b->on_glibc)
        launch_shutdown(b->on_glibc, closed, NULL);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    fflush(stdout);
    execl("/bin/rm", "rm", "-rf", b->directory, (char *)NULL);
    return 1;
}
