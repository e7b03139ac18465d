#include "host/qualify/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"

/* A test that takes this much longer than planned counts as hung. */
#define PATIENCE_DEFAULT_NS (20 * NS_PER_SECOND)

static bool (*const tests[QUALIFY_TESTS])(const struct qualify_options *options,
                                          struct test_answer *answer) = {
    [QUALIFY_CPU] = test_cpu,           [QUALIFY_MEMORY] = test_memory, [QUALIFY_DISK] = test_disk,
    [QUALIFY_LOOPBACK] = test_loopback, [QUALIFY_GPU] = test_gpu,       [QUALIFY_PAIR] = test_pair,
};

/* --- words of the tests --------------------------------------------------------------------------------- */

int64_t test_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

uint64_t test_noise(uint64_t seed)
{
    seed += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64's finish */
    seed = (seed ^ (seed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    seed = (seed ^ (seed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return seed ^ (seed >> 31);
}

static int compare_values(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t test_median(int64_t *values, size_t count)
{
    CHECK(count > 0);
    qsort(values, count, sizeof *values, compare_values);
    return values[count / 2];
}

void test_figure(struct test_answer *answer, const char *figure, double value)
{
    const struct qualify_figure *known = qualify_figure_find(str_from(figure));
    CHECK(known);
    answer->measured[known - qualify_figures] = true;
    answer->figures[known - qualify_figures] = value;
}

bool test_fail(struct test_answer *answer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(answer->why, sizeof answer->why, format, args);
    va_end(args);
    return false;
}

/* --- threads -------------------------------------------------------------------------------------------- */

struct started {
    struct test_thread thread;
    void (*work)(struct test_thread *thread);
    pthread_t handle;
    bool lives;
};

static void *run_thread(void *context)
{
    struct started *started = context;
    if (started->thread.cpu >= 0) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET((size_t)started->thread.cpu, &one);
        sched_setaffinity(0, sizeof one, &one); /* if that is refused, it runs on any allowed CPU */
    }
    started->work(&started->thread);
    return NULL;
}

static uint32_t allowed_cpus(const struct qualify_options *options, int cpus[CPU_SETSIZE])
{
    cpu_set_t allowed;
    uint32_t count = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET((size_t)cpu, &allowed))
                cpus[count++] = cpu;
    if (count == 0)
        cpus[count++] = -1;
    return options->threads > 0 && options->threads < count ? options->threads : count;
}

bool test_threads(const struct qualify_options *options, void (*work)(struct test_thread *thread),
                  void *shared, double *ret_rate, struct test_answer *answer)
{
    int cpus[CPU_SETSIZE];
    uint32_t count = allowed_cpus(options, cpus);
    struct started *all = mem_alloc(count * sizeof *all);
    int64_t until_ns = test_now_ns() + options->budget_ns;
    bool good = true;
    for (uint32_t i = 0; i < count; i++) {
        all[i].work = work;
        all[i].thread = (struct test_thread){.options = options,
                                             .index = i,
                                             .count = count,
                                             .cpu = cpus[i],
                                             .until_ns = until_ns,
                                             .shared = shared};
        all[i].lives = pthread_create(&all[i].handle, NULL, run_thread, &all[i]) == 0;
        if (!all[i].lives)
            good = test_fail(answer, "a thread could not be started");
    }
    *ret_rate = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!all[i].lives)
            continue;
        pthread_join(all[i].handle, NULL);
        const struct test_thread *thread = &all[i].thread;
        if (thread->why[0])
            good = test_fail(answer, "%s", thread->why);
        *ret_rate += thread->amount / ((double)(thread->took_ns > 0 ? thread->took_ns : 1) / 1e9);
    }
    mem_free(all);
    return good;
}

/* --- a child for each test ------------------------------------------------------------------------------ */

static _Noreturn void be_test(const struct qualify_options *options, enum qualify_test test, pid_t parent,
                              int fd)
{
    struct test_answer answer = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    setpgid(0, 0); /* so that its own children can be killed with it */
    answer.ok = tests[test](options, &answer);
    const char *bytes = (const char *)&answer;
    for (size_t at = 0; at < sizeof answer;) {
        ssize_t count = write(fd, bytes + at, sizeof answer - at);
        if (count <= 0 && errno != EINTR)
            _exit(1);
        at += count > 0 ? (size_t)count : 0;
    }
    _exit(0);
}

/* Reads the child's complete answer before the limit. Returns false if there is none. */
static bool hear(int fd, int64_t until_ns, struct test_answer *ret)
{
    char *bytes = (char *)ret;
    for (size_t at = 0; at < sizeof *ret;) {
        int64_t left_ns = until_ns - test_now_ns();
        struct pollfd ready = {fd, POLLIN, 0};
        int rc = left_ns > 0 ? poll(&ready, 1, (int)(left_ns / NS_PER_MS) + 1) : 0;
        if (rc < 0 && errno == EINTR)
            continue;
        ssize_t count = rc > 0 ? read(fd, bytes + at, sizeof *ret - at) : 0;
        if (count <= 0)
            return false;
        at += (size_t)count;
    }
    return true;
}

/* Kills and reaps a child. The test does not wait for one that hangs in the kernel. */
static int end_child(pid_t pid)
{
    int how = 0;
    for (int tries = 0; tries < 100; tries++) {
        pid_t gone = waitpid(pid, &how, WNOHANG);
        if (gone == pid || (gone < 0 && errno != EINTR))
            return how;
        if (tries == 0)
            kill(-pid, SIGKILL);
        kill(pid, SIGKILL);
        nanosleep(&(struct timespec){0, 10 * NS_PER_MS}, NULL);
    }
    return 0;
}

static void take_answer(const struct test_answer *answer, struct qualify_result *result,
                        struct qualify_report *report)
{
    result->ok = answer->ok;
    result->skipped = answer->skipped;
    result->work_ns = answer->work_ns;
    snprintf(result->why, sizeof result->why, "%.*s", (int)sizeof answer->why - 1, answer->why);
    for (int i = 0; i < QUALIFY_FIGURES; i++)
        if (answer->measured[i]) {
            report->measured[i] = true;
            report->figures[i] = answer->figures[i];
        }
}

int64_t test_patience_ns(const struct qualify_options *options)
{
    return options->patience_ns ? options->patience_ns : PATIENCE_DEFAULT_NS;
}

static void run_test(const struct qualify_options *options, enum qualify_test test,
                     struct qualify_report *report)
{
    struct qualify_result *result = &report->tests[test];
    struct test_answer answer;
    int fds[2];
    int64_t begun_ns = test_now_ns();
    result->ran = true;
    result->limit_ns = test_patience_ns(options) +
                       (test == QUALIFY_PAIR ? options->pair.deadline_ns : 2 * options->budget_ns);
    if (pipe2(fds, O_CLOEXEC) < 0) {
        snprintf(result->why, sizeof result->why, "no pipe: %s", strerror(errno));
        return;
    }
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        be_test(options, test, parent, fds[1]);
    close(fds[1]);
    bool heard = pid > 0 && hear(fds[0], begun_ns + result->limit_ns, &answer);
    bool late = test_now_ns() >= begun_ns + result->limit_ns;
    int how = pid > 0 ? end_child(pid) : 0;
    close(fds[0]);
    result->took_ns = test_now_ns() - begun_ns;
    if (heard)
        take_answer(&answer, result, report);
    else if (late)
        snprintf(result->why, sizeof result->why, "no answer within %lld s",
                 (long long)(result->limit_ns / NS_PER_SECOND));
    else
        snprintf(result->why, sizeof result->why, "it died of signal %d (%s)", WTERMSIG(how),
                 WIFSIGNALED(how) ? strsignal(WTERMSIG(how)) : "none");
}

/* --- thresholds ----------------------------------------------------------------------------------------- */

static void weigh(const struct qualify_golden *golden, int figure, struct qualify_report *report)
{
    const struct qualify_figure *known = &qualify_figures[figure];
    struct qualify_result *result = &report->tests[known->test];
    double value = report->figures[figure], limit = golden->limit[figure];
    bool counts =
        known->test == QUALIFY_GPU && figure == qualify_figure_find(STR("gpu/devices")) - qualify_figures;
    if (!golden->given[figure] || !result->ran || (!result->ok && !result->skipped))
        return;
    if (!report->measured[figure] && !counts)
        return; /* there was nothing to measure */
    if (known->at_most ? value <= limit : value >= limit)
        return;
    result->ok = result->skipped = false;
    snprintf(result->why, sizeof result->why, "%s is %.6g %s, expected %s %.6g", known->name, value,
             known->unit, known->at_most ? "at most" : "at least", limit);
}

void qualify_run(const struct qualify_options *options, struct qualify_report *ret)
{
    CHECK(options->budget_ns > 0 && options->budget_ns <= QUALIFY_SECONDS_MAX * NS_PER_SECOND);
    *ret = (struct qualify_report){.ok = true};
    for (int i = 0; i < QUALIFY_TESTS; i++)
        if (options->tests[i])
            run_test(options, (enum qualify_test)i, ret);
    for (int i = 0; i < QUALIFY_FIGURES; i++)
        weigh(&options->golden, i, ret);
    for (int i = 0; i < QUALIFY_TESTS; i++)
        ret->ok = ret->ok && (!ret->tests[i].ran || ret->tests[i].ok || ret->tests[i].skipped);
}
