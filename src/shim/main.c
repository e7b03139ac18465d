/* main.c - phalanx-shim NAME: started by the launcher only; host/launch/shim.h describes its descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/parts.h"

#define NS_PER_SECOND UINT64_C(1000000000)
enum { LEFTOVER_RETRY_MS = 100 }; /* a child that died while the kernel listed them can hide another */

/* Sends an event to the current agent, if any. A full FIFO loses nothing: the agent finds the event in the
 * task file. */
static void tell(const struct shim *shim, enum shim_event_kind kind)
{
    struct shim_event event = {
        .magic = SHIM_EVENT_MAGIC,
        .kind = kind,
        .uid = shim->header->uid,
        .start = shim->start,
    };
    ssize_t ignored = write(SHIM_FD_EVENTS, &event, sizeof event);
    (void)ignored;
}

static void record_start(struct shim *shim)
{
    shim->start.shim_pid = shim->pid;
    shim->start.task_pid = shim->task;
    shim->start.magic = SHIM_START_MAGIC;
    ssize_t ignored = pwrite(SHIM_FD_TASK, &shim->start, sizeof shim->start, SHIM_START_OFFSET);
    (void)ignored;
    tell(shim, SHIM_EVENT_STARTED);
}

/* Writes the exit record and exits, when all processes are dead. */
static _Noreturn void finish(struct shim *shim)
{
    struct shim_exit *record = &shim->exit;
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    record->user_us = (uint64_t)usage.ru_utime.tv_sec * 1000000u + (uint64_t)usage.ru_utime.tv_usec;
    record->system_us = (uint64_t)usage.ru_stime.tv_sec * 1000000u + (uint64_t)usage.ru_stime.tv_usec;
    record->max_rss_bytes = (uint64_t)usage.ru_maxrss * 1024u;
    if (record->status != 0 && cgroup_oom_killed(shim))
        record->flags |= SHIM_EXIT_OOM;
    cgroup_remove(shim);
    record->log_dropped_bytes = shim->log.dropped_bytes;
    record->started_ns = shim->start.magic ? shim->start.started_ns : 0;
    record->finished_ns = (int64_t)clock_ns(CLOCK_REALTIME);
    record->magic = SHIM_EXIT_MAGIC;
    record->checksum = shim_exit_checksum(record);
    ssize_t ignored = pwrite(SHIM_FD_TASK, record, sizeof *record, SHIM_EXIT_OFFSET);
    (void)ignored;
    tell(shim, SHIM_EVENT_EXITED);
    _exit(0);
}

static _Noreturn void finish_unstarted(struct shim *shim)
{
    bool absent = shim->exit.stage == SHIM_STAGE_EXEC && shim->exit.error == ENOENT;
    shim->exit.flags |= SHIM_EXIT_START_FAILED;
    shim->exit.status = absent ? 127 : 126;
    finish(shim);
}

/* ---- the task's life ---- */

static uint64_t fence_deadline(const struct shim *shim)
{
    return __atomic_load_n(&shim->fence->deadline_boottime_ns, __ATOMIC_ACQUIRE);
}

static bool fence_passed(const struct shim *shim)
{
    uint64_t deadline = fence_deadline(shim);
    return deadline != 0 && clock_ns(CLOCK_BOOTTIME) >= deadline;
}

/* Acts on deadlines that are due, and arms the timer for the earliest other one. */
static void mind_deadlines(struct shim *shim, int timer)
{
    uint64_t now = clock_ns(CLOCK_BOOTTIME), next = fence_deadline(shim);
    if (next != 0 && next <= now) {
        if (!shim->task_dead)
            shim->exit.flags |= SHIM_EXIT_FENCED;
        kill_all(shim);
        next = 0;
    }
    if (shim->kill_at_ns != 0 && shim->kill_at_ns <= now) {
        shim->kill_at_ns = 0;
        kill_all(shim);
    }
    if (shim->kill_at_ns != 0 && (next == 0 || shim->kill_at_ns < next))
        next = shim->kill_at_ns;
    struct itimerspec when = {.it_value = {(time_t)(next / NS_PER_SECOND), (long)(next % NS_PER_SECOND)}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static void stop(struct shim *shim, uint64_t grace_ms)
{
    uint64_t grace_ns = shim->header->grace_ns;
    if (grace_ms != SHIM_GRACE_DEFAULT)
        grace_ns = grace_ms < UINT64_MAX / 4000000u ? grace_ms * 1000000u : UINT64_MAX / 4;
    uint64_t kill_at = clock_ns(CLOCK_BOOTTIME) + grace_ns;
    bool first = !(shim->exit.flags & SHIM_EXIT_STOPPED);
    shim->exit.flags |= SHIM_EXIT_STOPPED;
    if (first || kill_at < shim->kill_at_ns)
        shim->kill_at_ns = kill_at;
    if (first && grace_ns > 0) {
        kill_softly(shim, SIGTERM);
        kill_softly(shim, SIGCONT); /* a stopped task must receive it too */
    }
}

/* Reaps every child that has ended. Returns true if no child is left. */
static bool reap(struct shim *shim)
{
    for (;;) {
        siginfo_t info = {.si_pid = 0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
            return errno == ECHILD;
        if (info.si_pid == 0)
            return false;
        int status = 0;
        if (info.si_pid == shim->task && !shim->task_dead)
            kill_all(shim); /* while its number still holds the process group's */
        pid_t pid = waitpid(info.si_pid, &status, 0);
        exec_reaped(shim, pid, status);
        if (pid != shim->task || shim->task_dead)
            continue;
        shim->task_dead = true;
        shim->exit.status = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
        shim->exit.flags |= WIFSIGNALED(status) ? SHIM_EXIT_SIGNALED : 0;
    }
}

static void handle_signal(struct shim *shim, const struct signalfd_siginfo *info)
{
    bool valued = info->ssi_code == SI_QUEUE;
    if (shim->task_dead)
        return;
    if (info->ssi_signo == SHIM_SIGNAL_STOP || info->ssi_signo == SIGTERM)
        stop(shim, info->ssi_signo == SHIM_SIGNAL_STOP && valued ? info->ssi_ptr : SHIM_GRACE_DEFAULT);
    else if (info->ssi_signo == SHIM_SIGNAL_SEND && valued && info->ssi_ptr >= 1 && info->ssi_ptr <= 64)
        kill_softly(shim, (int)info->ssi_ptr);
    else if (info->ssi_signo == SHIM_SIGNAL_EXEC && valued)
        exec_connect(shim, info->ssi_ptr);
}

/* Moves a piece of output to the log. Returns false if there is none now. */
static bool move_output(struct shim *shim)
{
    static char block[65536];
    if (shim->output < 0)
        return false;
    ssize_t got = read(shim->output, block, sizeof block);
    if (got > 0)
        log_write(&shim->log, block, (size_t)got);
    if (got == 0) {
        close(shim->output);
        shim->output = -1;
    }
    return got > 0;
}

static _Noreturn void watch(struct shim *shim, int signals, int timer)
{
    mind_deadlines(shim, timer);
    for (;;) {
        struct pollfd fds[3 + SHIM_EXECS_MAX] = {
            {signals, POLLIN, 0}, {timer, POLLIN, 0}, {shim->output, POLLIN, 0}};
        exec_poll_set(shim, fds + 3);
        int ready = poll(fds, 3 + SHIM_EXECS_MAX, shim->task_dead ? LEFTOVER_RETRY_MS : -1);
        exec_poll_done(shim, fds + 3);
        struct signalfd_siginfo info;
        while (fds[0].revents && read(signals, &info, sizeof info) == sizeof info)
            handle_signal(shim, &info);
        uint64_t expirations;
        if (fds[1].revents && read(timer, &expirations, sizeof expirations) < 0 && errno != EAGAIN)
            _exit(1);
        if (fds[2].revents)
            move_output(shim);
        if (fds[0].revents || ready == 0) {
            if (reap(shim))
                break;
            if (shim->task_dead)
                kill_all(shim);
        }
        if (fds[0].revents || fds[1].revents)
            mind_deadlines(shim, timer);
    }
    while (move_output(shim))
        ;
    finish(shim);
}

static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SHIM_SIGNAL_STOP);
    sigaddset(&set, SHIM_SIGNAL_SEND);
    sigaddset(&set, SHIM_SIGNAL_FENCE);
    sigaddset(&set, SHIM_SIGNAL_EXEC);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Opens the folder above the log's own, while the machine's paths are still valid here. Returns -1 if the log
 * is in the task's directory. */
static int open_logs(const struct shim *shim)
{
    static char path[4096];
    const char *name = strrchr(shim->log_directory, '/');
    size_t len = name ? (size_t)(name - shim->log_directory) : 0;
    if (len == 0 || len >= sizeof path)
        return -1;
    memcpy(path, shim->log_directory, len);
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Enters the log's own folder below `logs`, or stays in the task's. */
static bool enter_logs(const struct shim *shim, int logs)
{
    if (!shim->log_directory[0])
        return true;
    if (logs < 0 || fchdir(logs) < 0)
        return false;
    const char *name = strrchr(shim->log_directory, '/') + 1;
    return (mkdir(name, 0755) == 0 || errno == EEXIST) && chdir(name) == 0;
}

int main(void)
{
    static struct shim shim = {.output = -1, .log = {.fd = -1, .times_fd = -1}};
    umask(022);
    shim.pid = getpid();
    if (spec_load(&shim) < 0)
        return 1; /* the launcher finds the task without a record, and reports it as lost */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (fence_passed(&shim)) {
        shim.exit.flags |= SHIM_EXIT_FENCED | SHIM_EXIT_SIGNALED;
        shim.exit.status = SIGKILL;
        finish(&shim);
    }
    int logs = open_logs(&shim);
    if (start_task(&shim) < 0)
        finish_unstarted(&shim);
    /* Only after the start: on a busy disk the journal can delay a new file for milliseconds. */
    if (enter_logs(&shim, logs))
        log_open(&shim.log, shim.header->log_limit_bytes, shim.header->log_files);
    record_start(&shim);
    int signals = open_signals();
    int timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (signals < 0 || timer < 0) {
        kill(shim.task, SIGKILL);
        return 1;
    }
    fcntl(shim.output, F_SETFL, O_NONBLOCK);
    watch(&shim, signals, timer);
}
