#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/vec.h"
#include "host/launch/state.h"

/* Kills the processes that a killed shim left. The task's first process dies with the shim
 * (PR_SET_PDEATHSIG); processes that it had started live on. Each has PHX_TASK_DIR in its environment since
 * its exec, whatever its group or parent is now. A sweep finds these processes by that variable, kills them
 * through pidfds, and repeats until complete passes find none: a killed process may have forked after the
 * pass had gone by, and a process in the middle of its exec shows no environment. */

enum {
    /* An exec hides the environment for microseconds. A process that shows none for this many passes is not
     * ours: we may not read its memory. */
    UNSURE_PASSES_MAX = 100,
    /* A pass goes by rising pids, as forks do, so it meets the child of a process that it is about to reach.
     * Only when pids wrap around does a fork get a lower one, and pids do not wrap twice within two
     * passes. */
    CLEAN_PASSES = 2,
    /* How many killed processes are watched until they are dead. More could take all our descriptors; the
     * next pass finds the rest again. */
    PREY_MAX = 64,
};

enum sight {
    SIGHT_STRANGER,
    SIGHT_MARKED,
    SIGHT_UNSURE, /* perhaps amid its exec, or dying */
    SIGHT_BLIND,  /* out of descriptors: as if not examined */
};

struct prey {
    pid_t pid;
    int pidfd;
};

struct sweep {
    char mark[LAUNCH_PATH_MAX + 64]; /* "\0PHX_TASK_DIR=...\0" */
    size_t mark_len;
    uint32_t passes, clean_passes; /* all of them, and those at the end in a row */
    VEC(struct prey) prey;
};

void sweep_free(struct sweep *sweep)
{
    if (!sweep)
        return;
    for (size_t i = 0; i < sweep->prey.len; i++)
        close(sweep->prey.items[i].pidfd);
    vec_done(&sweep->prey);
    mem_free(sweep);
}

/* Classifies a process whose environment has no mark in the `seen` bytes that were read. Kernel threads and
 * zombies have no environment, and never will. In the middle of an exec, proc(5)'s env_end of the new image
 * is not set yet. If the environment is longer by now, the bytes that were read belonged to the old image,
 * which the exec replaced during the read. */
static enum sight look_again(pid_t pid, size_t seen)
{
    enum { FIELD_STATE = 3, FIELD_FLAGS = 9, FIELD_ENV_START = 50, FIELD_ENV_END = 51 };
    enum { KERNEL_THREAD = 0x00200000 };
    char path[40], block[2048];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE ? SIGHT_BLIND : SIGHT_STRANGER;
    ssize_t len = read(fd, block, sizeof block - 1);
    close(fd);
    if (len <= 0)
        return SIGHT_STRANGER;
    block[len] = 0;
    const char *at = strrchr(block, ')'); /* the name before it may hold anything */
    unsigned long env_start = 0, env_end = 0;
    for (int field = FIELD_STATE; at && field <= FIELD_ENV_END; field++) {
        at = strchr(at, ' ');
        if (!at++)
            return SIGHT_STRANGER;
        if (field == FIELD_STATE && strchr("ZXx", *at))
            return SIGHT_STRANGER;
        if (field == FIELD_FLAGS && (strtoul(at, NULL, 10) & KERNEL_THREAD))
            return SIGHT_STRANGER;
        if (field == FIELD_ENV_START)
            env_start = strtoul(at, NULL, 10);
        if (field == FIELD_ENV_END)
            env_end = strtoul(at, NULL, 10);
    }
    return env_end != 0 && env_end - env_start == seen ? SIGHT_STRANGER : SIGHT_UNSURE;
}

static enum sight look_at(const struct sweep *sweep, pid_t pid)
{
    char path[40], block[16384];
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE ? SIGHT_BLIND : SIGHT_STRANGER;
    size_t len = 1, seen = 0;
    block[0] = 0; /* the first variable has its leading NUL too */
    bool found = false;
    ssize_t got;
    while (!found && (got = read(fd, block + len, sizeof block - len)) > 0) {
        seen += (size_t)got;
        len += (size_t)got;
        found = memmem(block, len, sweep->mark, sweep->mark_len) != NULL;
        size_t keep = len < sweep->mark_len ? len : sweep->mark_len; /* it may be split between two reads */
        memmove(block, block + len - keep, keep);
        len = keep;
    }
    close(fd);
    if (found)
        return SIGHT_MARKED;
    bool whole = seen > 0 && seen < sizeof block - 1; /* one read, which is never of half an image */
    return whole ? SIGHT_STRANGER : look_again(pid, seen);
}

static bool is_known(const struct sweep *sweep, pid_t pid)
{
    for (size_t i = 0; i < sweep->prey.len; i++)
        if (sweep->prey.items[i].pid == pid)
            return true;
    return false;
}

static void keep_prey(struct sweep *sweep, pid_t pid, int pidfd)
{
    struct prey prey = {pid, pidfd};
    vec_push(&sweep->prey, prey);
}

/* Examines a process and kills it if it is the task's. Returns false unless it is a stranger, so that a later
 * pass examines it again. A process that was killed before is no stranger either: once it is dead, a child
 * may have its pid. */
static bool strike(struct sweep *sweep, pid_t pid)
{
    if (is_known(sweep, pid))
        return false;
    enum sight sight = look_at(sweep, pid);
    if (sight == SIGHT_UNSURE)
        return sweep->passes > UNSURE_PASSES_MAX;
    if (sight != SIGHT_MARKED)
        return sight == SIGHT_STRANGER;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0)
        return false;
    if (look_at(sweep, pid) != SIGHT_MARKED) { /* it has ended, and the number may be another's */
        close(pidfd);
        return false;
    }
    syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    if (sweep->prey.len < PREY_MAX)
        keep_prey(sweep, pid, pidfd);
    else
        close(pidfd);
    return false;
}

/* Makes a pass. Returns true if it found strangers only. */
static bool pass_is_clean(struct sweep *sweep)
{
    DIR *proc = opendir("/proc");
    if (!proc)
        return false;
    bool clean = true;
    sweep->passes++;
    const struct dirent *entry;
    while ((entry = readdir(proc)))
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            clean &= strike(sweep, (pid_t)strtol(entry->d_name, NULL, 10));
    closedir(proc);
    return clean;
}

/* Returns true if all killed processes are dead, and forgets these, so that a reused pid is examined
 * again. */
static bool all_dead(struct sweep *sweep)
{
    for (size_t i = sweep->prey.len; i-- > 0;) {
        struct pollfd fd = {sweep->prey.items[i].pidfd, POLLIN, 0};
        if (poll(&fd, 1, 0) != 1)
            continue;
        close(sweep->prey.items[i].pidfd);
        vec_remove(&sweep->prey, i);
    }
    return sweep->prey.len == 0;
}

static void remove_cgroups(int fd, const struct task_file *file)
{
    struct task_strings strings;
    char *block = NULL;
    if (task_file_strings(fd, file, &strings, &block) < 0)
        return;
    for (int i = 0; i < SHIM_CGROUPS_MAX; i++)
        if (strings.cgroup[i].len > 0)
            rmdir(strings.cgroup[i].data); /* NUL-terminated in the block */
    mem_free(block);
}

/* Makes the record that the shim could not write, and writes it to the file, so that the next agent finds the
 * same. */
static struct shim_exit lost_record(const struct task_file *file)
{
    struct shim_exit record = {
        .magic = SHIM_EXIT_MAGIC,
        .flags = SHIM_EXIT_LOST | SHIM_EXIT_SIGNALED,
        .status = SIGKILL,
        .started_ns = file->start.started_ns,
        .finished_ns = now_wall_ns(),
    };
    record.checksum = shim_exit_checksum(&record);
    return record;
}

bool sweep_step(struct task *task)
{
    struct sweep *sweep = task->sweep;
    sweep->clean_passes = pass_is_clean(sweep) ? sweep->clean_passes + 1 : 0;
    if (!all_dead(sweep) || sweep->clean_passes < CLEAN_PASSES)
        return false;
    int fd = task_file_open(task->launcher, task->uid);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        return false;
    struct task_file file = {0};
    bool valid = fd >= 0 && task_file_read(fd, &file) == 0;
    struct shim_exit record = file.exit;
    if (!valid || !record.magic) {
        record = lost_record(&file);
        if (valid && pwrite(fd, &record, sizeof record, SHIM_EXIT_OFFSET) < 0)
            record.finished_ns = now_wall_ns(); /* it will be found lost once more, no harm */
    }
    if (valid)
        remove_cgroups(fd, &file);
    task_exited(task, &record, fd);
    if (fd >= 0)
        close(fd);
    return true;
}

void sweep_begin(struct task *task)
{
    struct sweep *sweep = mem_alloc(sizeof *sweep);
    int len = snprintf(sweep->mark + 1, sizeof sweep->mark - 1, "PHX_TASK_DIR=%s/tasks/" UID_FORMAT,
                       task->launcher->directory, UID_ARG(task->uid));
    CHECK(len > 0 && (size_t)len + 2 <= sizeof sweep->mark);
    sweep->mark_len = (size_t)len + 2;
    task->sweep = sweep;
    task->state = TASK_SWEEPING;
    /* The first process has its SIGKILL already, and perhaps no environment any more, but may still be
     * releasing memory and devices: wait for it. It then still leads its session, as a stranger with its pid
     * hardly does. */
    pid_t first = task->start.task_pid;
    if (task->watched && first > 0 && getsid(first) == first) {
        int pidfd = (int)syscall(SYS_pidfd_open, first, 0);
        if (pidfd >= 0)
            keep_prey(sweep, first, pidfd);
    }
    if (!sweep_step(task))
        timer_arm(task->launcher);
}
