#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/vec.h"
#include "host/launch/state.h"

/* Returns whether the shim of this task file lives: another process holds the lock (shim.h). */
static bool is_locked(int fd)
{
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK;
    flock(fd, LOCK_UN);
    return false;
}

enum adopted { ADOPTED_ALIVE, ADOPTED_DEAD, ADOPTED_UNDECIDED };

/* Opens a pidfd of the shim, if it lives. The lock is tested again after that: if the shim still lives, its
 * pid was its own when the pidfd was opened. */
static enum adopted find_shim(int fd, const struct task_file *file, int *ret_pidfd)
{
    if (!is_locked(fd))
        return ADOPTED_DEAD;
    if (file->exit.magic)
        return ADOPTED_DEAD; /* only its exit is left to do */
    if (!file->start.magic)
        return ADOPTED_UNDECIDED;
    int pidfd = (int)syscall(SYS_pidfd_open, file->start.shim_pid, 0);
    if (is_locked(fd) && pidfd >= 0) {
        *ret_pidfd = pidfd;
        return ADOPTED_ALIVE;
    }
    if (pidfd >= 0)
        close(pidfd);
    return is_locked(fd) ? ADOPTED_UNDECIDED : ADOPTED_DEAD;
}

/* Adopts the task in the state that its file shows. The file is read again, as the record may have been
 * written since. */
static enum adopted settle(struct task *task, int fd, const struct task_file *file,
                           enum launch_event_kind kind)
{
    int pidfd = -1;
    enum adopted adopted = find_shim(fd, file, &pidfd);
    if (adopted == ADOPTED_ALIVE && watch_task(task, pidfd, NULL) < 0) {
        close(pidfd);
        return ADOPTED_UNDECIDED;
    }
    if (adopted == ADOPTED_ALIVE) {
        task->shim_pid = file->start.shim_pid;
        task_started(task, &file->start, kind);
        carry_out_stop(task);
    } else if (adopted == ADOPTED_DEAD) {
        struct task_file now = {0};
        if (task_file_read(fd, &now) == 0 && now.exit.magic) {
            task->start = now.start;
            task_exited(task, &now.exit, fd);
        } else {
            task->start = now.start;
            sweep_begin(task);
        }
    }
    return adopted;
}

bool adopt_again(struct task *task)
{
    struct task_file file;
    int fd = task_file_open(task->launcher, task->uid);
    if (fd < 0)
        return false;
    enum adopted adopted = ADOPTED_UNDECIDED;
    if (task_file_read(fd, &file) == 0)
        adopted = settle(task, fd, &file, LAUNCH_STARTED);
    close(fd);
    return adopted != ADOPTED_UNDECIDED;
}

/* Adopts one task. Returns false for an invalid task file, which an agent leaves that dies while it makes
 * one. */
static bool adopt_one(struct launcher *launcher, uint64_t uid, bool *ret_alive)
{
    int fd = task_file_open(launcher, uid);
    struct task_file file;
    struct task_strings strings;
    char *block = NULL;
    if (fd < 0)
        return errno != ENOENT;
    if (task_file_read(fd, &file) < 0 || file.header.uid != uid ||
        task_file_strings(fd, &file, &strings, &block) < 0) {
        bool locked = is_locked(fd); /* its version is unknown: leave it alone */
        close(fd);
        return locked;
    }
    struct task *task = task_new(launcher, uid, file.header.attempt, strings.name);
    task->run = file.header.run;
    mem_free(block);
    enum adopted adopted = settle(task, fd, &file, LAUNCH_ADOPTED);
    if (adopted == ADOPTED_UNDECIDED)
        timer_arm(launcher);
    *ret_alive = adopted != ADOPTED_DEAD;
    close(fd);
    return true;
}

int launch_adopt(struct launcher *launcher, struct error *error)
{
    int fd = openat(launcher->tasks_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (!directory) {
        int code = errno;
        if (fd >= 0)
            close(fd);
        return error_set_errno(error, code, "reading %s/tasks", launcher->directory);
    }
    VEC(char *) invalid = {0};
    int alive = 0;
    const struct dirent *entry;
    while ((entry = readdir(directory)) && !launcher->closing) {
        struct str name = str_from(entry->d_name);
        uint64_t uid = 0;
        bool number = name.len > 0 && name.len <= 20;
        for (size_t i = 0; number && i < name.len; i++) {
            number = name.data[i] >= '0' && name.data[i] <= '9';
            uid = uid * 10 + (uint64_t)(name.data[i] - '0');
        }
        bool is_alive = false;
        if (!number || u64_map_get(&launcher->by_uid, uid))
            continue;
        if (!adopt_one(launcher, uid, &is_alive))
            vec_push(&invalid, strdup(entry->d_name));
        alive += is_alive;
    }
    closedir(directory);
    for (size_t i = 0; i < invalid.len; i++) {
        directory_remove(launcher->tasks_fd, invalid.items[i]);
        mem_free(invalid.items[i]);
    }
    vec_done(&invalid);
    keep_lost(launcher);
    return alive;
}
