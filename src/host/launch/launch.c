#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/units.h"
#include "host/launch/state.h"
#include "os/file.h"
#include "os/folder.h"

int fd_raise(int fd)
{
    if (fd < 0 || fd >= FD_LOW)
        return fd;
    int raised = fcntl(fd, F_DUPFD_CLOEXEC, FD_LOW);
    int error = errno;
    close(fd);
    errno = error;
    return raised;
}

int64_t now_wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

static char *text_copy(struct str text)
{
    char *copy = mem_alloc(text.len + 1);
    if (text.len > 0)
        memcpy(copy, text.data, text.len);
    return copy;
}

struct task *task_new(struct launcher *launcher, uint64_t uid, uint32_t attempt, struct str name)
{
    struct task *task = mem_alloc(sizeof *task);
    task->launcher = launcher;
    task->uid = uid;
    task->attempt = attempt;
    task->name = text_copy(name);
    task->pidfd = -1;
    list_append(&launcher->tasks, &task->node);
    CHECK(!u64_map_put(&launcher->by_uid, uid, task));
    return task;
}

void task_free(struct task *task)
{
    CHECK(!task->watched);
    if (!task->forgotten)
        u64_map_remove(&task->launcher->by_uid, task->uid);
    list_remove(&task->node);
    sweep_free(task->sweep);
    mem_free(task->name);
    mem_free(task);
}

/* Leaves space for "/kept/<name>/<seq>-<uid>/log" after the directory. */
enum { DIRECTORY_MAX = LAUNCH_PATH_MAX - LAUNCH_NAME_MAX - 64 };

/* ---- the state directory ---- */

static int make_directories(const char *path, char ret_real[PATH_MAX], struct error *error)
{
    int rc = os_folder_own(path, os_folder_way(), error);
    if (rc < 0)
        return rc;
    if (!realpath(path, ret_real))
        return error_set_errno(error, errno, "resolving %s", path);
    if (strlen(ret_real) > DIRECTORY_MAX)
        return error_set(error, ERROR_INVALID, "directory \"%s\": longer than %d bytes", ret_real,
                         DIRECTORY_MAX);
    return 0;
}

static int open_below(const char *parent, const char *name, int flags, mode_t mode, int *ret_fd,
                      struct error *error)
{
    char path[LAUNCH_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", parent, name);
    int nofollow = flags & O_CREAT ? O_NOFOLLOW : 0;
    int fd = fd_raise(open(path, flags | nofollow | O_CLOEXEC, mode));
    if (fd < 0)
        return error_set_errno(error, errno, "opening %s", path);
    *ret_fd = fd;
    return 0;
}

static int make_below(const char *parent, const char *name, bool fifo, struct error *error)
{
    char path[LAUNCH_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", parent, name);
    if ((fifo ? mkfifo(path, 0600) : mkdir(path, 0755)) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "making %s", path);
    return 0;
}

/* Clears the fence after a reboot: its time counts from the earlier boot, whose tasks have ended. */
static int forget_old_boot(struct launcher *launcher, struct error *error)
{
    char now[64] = "", before[64] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (read(fd, now, sizeof now - 1) < 0)
            now[0] = 0;
        close(fd);
    }
    int result = open_below(launcher->directory, "boot", O_RDWR | O_CREAT, 0600, &fd, error);
    if (result < 0)
        return result;
    if (read(fd, before, sizeof before - 1) < 0)
        before[0] = 0;
    if (strcmp(now, before) != 0) {
        __atomic_store_n(&launcher->fence->deadline_boottime_ns, 0, __ATOMIC_RELEASE);
        if (ftruncate(fd, 0) < 0 || pwrite(fd, now, strlen(now), 0) < 0)
            result = error_set_errno(error, errno, "writing %s/boot", launcher->directory);
    }
    close(fd);
    return result;
}

static int open_fence(struct launcher *launcher, struct error *error)
{
    int result = open_below(launcher->directory, "fence", O_RDWR | O_CREAT, 0600, &launcher->fence_fd, error);
    if (result < 0)
        return result;
    if (ftruncate(launcher->fence_fd, sizeof *launcher->fence) < 0)
        return error_set_errno(error, errno, "sizing %s/fence", launcher->directory);
    void *memory =
        mmap(NULL, sizeof *launcher->fence, PROT_READ | PROT_WRITE, MAP_SHARED, launcher->fence_fd, 0);
    if (memory == MAP_FAILED)
        return error_set_errno(error, errno, "mapping %s/fence", launcher->directory);
    launcher->fence = memory;
    return forget_old_boot(launcher, error);
}

static int open_directory(struct launcher *launcher, struct error *error)
{
    const int flags = O_RDONLY | O_DIRECTORY;
    int result = open_below(launcher->directory, "lock", O_RDWR | O_CREAT, 0600, &launcher->lock_fd, error);
    if (result < 0)
        return result;
    if (flock(launcher->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return error_set(error, ERROR_CONFLICT, "%s is in use by another agent", launcher->directory);
    if ((result = make_below(launcher->directory, "tasks", false, error)) < 0 ||
        (result = make_below(launcher->logs, "tasks", false, error)) < 0 ||
        (result = make_below(launcher->logs, "kept", false, error)) < 0 ||
        (result = make_below(launcher->directory, "events", true, error)) < 0 ||
        (result = open_below(launcher->directory, "tasks", flags, 0, &launcher->tasks_fd, error)) < 0 ||
        (result = open_below(launcher->logs, "tasks", flags, 0, &launcher->log_tasks_fd, error)) < 0 ||
        (result = open_below(launcher->directory, "events", O_RDWR | O_NONBLOCK, 0, &launcher->events_fd,
                             error)) < 0 ||
        (result = open_fence(launcher, error)) < 0)
        return result;
    launcher->null_fd = fd_raise(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (launcher->null_fd < 0)
        return error_set_errno(error, errno, "opening /dev/null");
    return keep_load(launcher, error);
}

/* ---- life of the launcher ---- */

static char *find_shim(const char *given)
{
    if (given)
        return text_copy(str_from(given));
    char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
    path[len > 0 ? len : 0] = 0;
    char *slash = strrchr(path, '/');
    static const char name[] = "phalanx-shim";
    if (slash && (size_t)(slash + 1 - path) + sizeof name <= sizeof path) {
        memcpy(slash + 1, name, sizeof name);
        if (access(path, X_OK) == 0)
            return text_copy(str_from(path));
    }
    return text_copy(STR("/usr/libexec/phalanx/phalanx-shim"));
}

static bool protected_from_oom(void)
{
    char value[16] = "0";
    int fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, value, sizeof value - 1);
    close(fd);
    return got > 0 && value[0] == '-';
}

static void close_if_open(int fd)
{
    if (fd >= 0)
        close(fd);
}

static void close_files(struct launcher *launcher)
{
    if (launcher->fence)
        munmap(launcher->fence, sizeof *launcher->fence);
    int fds[] = {launcher->events_fd, launcher->tasks_fd, launcher->log_tasks_fd,
                 launcher->fence_fd,  launcher->null_fd,  launcher->lock_fd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        close_if_open(fds[i]);
}

static void launcher_free(struct launcher *launcher)
{
    while (!list_empty(&launcher->tasks))
        task_free(container_of(launcher->tasks.next, struct task, node));
    u64_map_done(&launcher->by_uid);
    keep_done(launcher);
    cgroups_done(launcher);
    close_files(launcher);
    close_if_open(launcher->tether_fd);
    mem_free(launcher->directory);
    mem_free(launcher->logs);
    mem_free(launcher->shim);
    mem_free(launcher->cgroup_parent);
    mem_free(launcher);
}

int launcher_new(uv_loop_t *loop, const struct launcher_options *options, struct launcher **ret_launcher,
                 struct error *error)
{
    CHECK(options->on_event && options->directory);
    char real[PATH_MAX], logs[PATH_MAX];
    int result = make_directories(options->directory, real, error);
    if (result == 0)
        result = make_directories(options->log_directory ? options->log_directory : options->directory, logs,
                                  error);
    if (result < 0)
        return result;
    struct launcher *launcher = mem_alloc(sizeof *launcher);
    *launcher = (struct launcher){
        .loop = loop,
        .on_event = options->on_event,
        .context = options->context,
        .directory = text_copy(str_from(real)),
        .logs = text_copy(str_from(logs)),
        .logs_apart = strcmp(real, logs) != 0,
        .shim = find_shim(options->shim),
        .cgroup_parent = text_copy(str_from(options->cgroup_parent ? options->cgroup_parent : "phalanx")),
        .cgroups = options->cgroups,
        .kept_attempts = options->kept_attempts ? options->kept_attempts : 3,
        .kept_tasks_max = options->kept_tasks_max ? options->kept_tasks_max : 1000,
        .private_hosts = !options->private_hosts_off,
        .reset_oom_score = protected_from_oom(),
        .lock_fd = -1,
        .tasks_fd = -1,
        .log_tasks_fd = -1,
        .fence_fd = -1,
        .events_fd = -1,
        .null_fd = -1,
        .tether_fd = -1,
    };
    list_init(&launcher->tasks);
    list_init(&launcher->kept);
    result = open_directory(launcher, error);
    if (result == 0 && access(launcher->shim, X_OK) < 0)
        result = error_set_errno(error, errno, "the task shim %s", launcher->shim);
    if (result == 0)
        result = watch_start(launcher, error);
    if (result < 0) {
        launcher_free(launcher);
        return result;
    }
    *ret_launcher = launcher;
    return 0;
}

/* Takes over the files. The watched FIFO keeps its number, so libuv's handle stays valid. */
static void take_files(struct launcher *launcher, struct launcher *fresh)
{
    int events_fd = launcher->events_fd;
    uv_poll_stop(&launcher->events_poll);
    CHECK(dup3(fresh->events_fd, events_fd, O_CLOEXEC) == events_fd);
    close(fresh->events_fd);
    fresh->events_fd = events_fd;
    launcher->events_fd = -1;
    fresh->fence->deadline_boottime_ns = launcher->fence->deadline_boottime_ns;
    close_files(launcher);
    launcher->lock_fd = fresh->lock_fd;
    launcher->tasks_fd = fresh->tasks_fd;
    launcher->log_tasks_fd = fresh->log_tasks_fd;
    launcher->fence_fd = fresh->fence_fd;
    launcher->events_fd = fresh->events_fd;
    launcher->null_fd = fresh->null_fd;
    launcher->fence = fresh->fence;
    CHECK(uv_poll_start(&launcher->events_poll, UV_READABLE, launcher->events_poll.poll_cb) == 0);
}

static bool is_linked(int fd, const char *parent)
{
    char path[LAUNCH_PATH_MAX];
    struct stat held, there;
    snprintf(path, sizeof path, "%s/tasks", parent);
    return fstat(fd, &held) == 0 && held.st_nlink > 0 && stat(path, &there) == 0 &&
           there.st_ino == held.st_ino && there.st_dev == held.st_dev;
}

bool launch_is_whole(const struct launcher *launcher)
{
    return is_linked(launcher->tasks_fd, launcher->directory) &&
           is_linked(launcher->log_tasks_fd, launcher->logs);
}

int launch_renew(struct launcher *launcher, struct error *error)
{
    char real[PATH_MAX];
    struct launcher fresh = {.directory = launcher->directory,
                             .logs = launcher->logs,
                             .lock_fd = -1,
                             .tasks_fd = -1,
                             .log_tasks_fd = -1,
                             .fence_fd = -1,
                             .events_fd = -1,
                             .null_fd = -1};
    list_init(&fresh.tasks);
    list_init(&fresh.kept);
    if (!list_empty(&launcher->tasks))
        return error_set(
            error, ERROR_UNAVAILABLE,
            "tasks are on the machine, and their ends cannot be written there: it is made again when "
            "they have ended");
    int rc = make_directories(launcher->directory, real, error);
    if (rc == 0)
        rc = make_directories(launcher->logs, real, error);
    flock(launcher->lock_fd, LOCK_UN); /* the file may be there yet */
    if (rc == 0)
        rc = open_directory(&fresh, error);
    keep_done(&fresh);
    if (rc < 0) {
        close_files(&fresh);
        flock(launcher->lock_fd, LOCK_EX | LOCK_NB);
    } else {
        take_files(launcher, &fresh);
    }
    if (rc == 0)
        keep_done(launcher); /* the kept logs were deleted */
    return rc;
}

void launch_shutdown(struct launcher *launcher, void (*closed)(void *context), void *context)
{
    CHECK(!launcher->closing);
    launcher->closing = true;
    launcher->closed = closed;
    launcher->closed_context = context;
    watch_stop(launcher);
}

void handle_closed(struct launcher *launcher)
{
    CHECK(launcher->handles > 0);
    if (--launcher->handles > 0 || !launcher->closing)
        return;
    void (*closed)(void *context) = launcher->closed;
    void *context = launcher->closed_context;
    launcher_free(launcher);
    if (closed)
        closed(context);
}

int launcher_set_tether(struct launcher *launcher, int fd, struct error *error)
{
    int copy = -1;
    if (fd >= 0 && (copy = fcntl(fd, F_DUPFD_CLOEXEC, FD_LOW)) < 0)
        return error_set_errno(error, errno, "duplicating the tether");
    close_if_open(launcher->tether_fd);
    launcher->tether_fd = copy;
    return 0;
}

/* ---- signals ---- */

static int signal_shim(struct task *task, int signal_number, uint64_t value, struct error *error)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = signal_number;
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = (void *)(uintptr_t)value;
    if (syscall(SYS_pidfd_send_signal, task->pidfd, signal_number, &info, 0) == 0 || errno == ESRCH)
        return 0;
    /* The queue of real-time signals is full (RLIMIT_SIGPENDING): a plain SIGTERM still requests a stop. */
    if (errno == EAGAIN && signal_number == SHIM_SIGNAL_STOP &&
        syscall(SYS_pidfd_send_signal, task->pidfd, SIGTERM, NULL, 0) == 0)
        return 0;
    return error_set_errno(error, errno, "signalling the shim of task %s", task->name);
}

bool launch_has(const struct launcher *launcher, uint64_t uid)
{
    return u64_map_get(&launcher->by_uid, uid) != NULL;
}

static int find_live(struct launcher *launcher, uint64_t uid, struct task **ret_task, struct error *error)
{
    struct task *task = u64_map_get(&launcher->by_uid, uid);
    if (!task)
        return error_set(error, ERROR_NOT_FOUND, "no task " UID_FORMAT " on this machine", UID_ARG(uid));
    *ret_task = task->state == TASK_STARTING || task->state == TASK_RUNNING ? task : NULL;
    return 0;
}

/* Finds a task as find_live does, for a call that needs its shim. A shim that launch_adopt found between
 * spawn and exec is known a moment later. */
static int find_watched(struct launcher *launcher, uint64_t uid, struct task **ret_task, struct error *error)
{
    int result = find_live(launcher, uid, ret_task, error);
    if (result == 0 && *ret_task && !(*ret_task)->watched)
        result = error_set(error, ERROR_UNAVAILABLE, "task %s is just being started", (*ret_task)->name);
    return result;
}

static int signal_stop(struct task *task, int64_t grace_ns, struct error *error)
{
    uint64_t grace_ms =
        grace_ns < 0 ? SHIM_GRACE_DEFAULT : (uint64_t)((grace_ns + NS_PER_MS - 1) / NS_PER_MS);
    return signal_shim(task, SHIM_SIGNAL_STOP, grace_ms, error);
}

/* The grace of a task's spec is not known before its shim, so any given grace counts as shorter. */
static void owe_stop(struct task *task, int64_t grace_ns)
{
    bool shorter = grace_ns >= 0 && (task->stop_grace_ns < 0 || grace_ns < task->stop_grace_ns);
    if (!task->stop_owed || shorter)
        task->stop_grace_ns = grace_ns;
    task->stop_owed = true;
}

void carry_out_stop(struct task *task)
{
    CHECK(task->watched);
    if (task->stop_owed && task->state == TASK_RUNNING)
        signal_stop(task, task->stop_grace_ns, NULL);
    task->stop_owed = false;
}

int launch_stop(struct launcher *launcher, uint64_t uid, int64_t grace_ns, struct error *error)
{
    struct task *task = NULL;
    int result = find_live(launcher, uid, &task, error);
    if (result < 0 || !task)
        return result;
    if (task->watched)
        return signal_stop(task, grace_ns, error);
    owe_stop(task, grace_ns);
    return 0;
}

int launch_signal(struct launcher *launcher, uint64_t uid, int signal_number, struct error *error)
{
    if (signal_number < 1 || signal_number > 64)
        return error_set(error, ERROR_INVALID, "no signal %d", signal_number);
    struct task *task = NULL;
    int result = find_watched(launcher, uid, &task, error);
    if (result < 0 || !task)
        return result;
    return signal_shim(task, SHIM_SIGNAL_SEND, (uint64_t)signal_number, error);
}

int exec_signal(struct launcher *launcher, uint64_t uid, uint64_t token, pid_t *ret_shim, struct error *error)
{
    struct task *task = NULL;
    int result = find_watched(launcher, uid, &task, error);
    if (result == 0 && (!task || task->state != TASK_RUNNING))
        result = error_set(error, ERROR_UNAVAILABLE, "the task is not running");
    if (result == 0)
        result = signal_shim(task, SHIM_SIGNAL_EXEC, token, error);
    if (result == 0)
        *ret_shim = task->shim_pid;
    return result;
}

void launch_set_fence(struct launcher *launcher, uint64_t deadline_boottime_ns)
{
    uint64_t before =
        __atomic_exchange_n(&launcher->fence->deadline_boottime_ns, deadline_boottime_ns, __ATOMIC_ACQ_REL);
    if (before != 0 && (deadline_boottime_ns == 0 || deadline_boottime_ns >= before))
        return; /* each shim wakes at the old deadline and then sees this one */
    list_for_each(node, &launcher->tasks)
    {
        struct task *task = container_of(node, struct task, node);
        if (task->watched && task->state != TASK_EXITED)
            signal_shim(task, SHIM_SIGNAL_FENCE, 0, NULL);
    }
}

/* ---- logs ---- */

int launch_log_path(struct launcher *launcher, uint64_t uid, char ret_path[LAUNCH_PATH_MAX],
                    struct error *error)
{
    if (u64_map_get(&launcher->by_uid, uid)) {
        snprintf(ret_path, LAUNCH_PATH_MAX, "%s/tasks/" UID_FORMAT "/log", launcher->logs, UID_ARG(uid));
        return 0;
    }
    if (keep_find(launcher, uid, 0, ret_path))
        return 0;
    return error_set(error, ERROR_NOT_FOUND, "no log of task " UID_FORMAT " on this machine", UID_ARG(uid));
}

int launch_previous_log_path(struct launcher *launcher, uint64_t uid, char ret_path[LAUNCH_PATH_MAX],
                             struct error *error)
{
    int skip = u64_map_get(&launcher->by_uid, uid) ? 0 : 1;
    if (keep_find(launcher, uid, skip, ret_path))
        return 0;
    return error_set(error, ERROR_NOT_FOUND, "no previous run of task " UID_FORMAT " is kept on this machine",
                     UID_ARG(uid));
}

int launch_forget(struct launcher *launcher, uint64_t uid, struct error *error)
{
    struct task *task = u64_map_get(&launcher->by_uid, uid);
    if (!task)
        return error_set(error, ERROR_NOT_FOUND, "no task " UID_FORMAT " on this machine", UID_ARG(uid));
    if (task->state != TASK_EXITED)
        return error_set(error, ERROR_CONFLICT, "task %s has not ended", task->name);
    keep_task(launcher, task);
    u64_map_remove(&launcher->by_uid, uid);
    task->forgotten = true; /* freed from the loop: the caller may be in the callback that reports it */
    timer_arm(launcher);
    return 0;
}

const char *launcher_cgroup_text(struct launcher *launcher)
{
    cgroups_probe(launcher);
    return launcher->cgroup.text;
}
