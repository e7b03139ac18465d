#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.h"
#include "host/launch/state.h"

enum { GRACE_DEFAULT_S = 30, LOG_FILES_DEFAULT = 5, LOG_FILES_MAX = 100, LOG_LIMIT_MIN = 1024 };
#define LOG_LIMIT_DEFAULT (UINT64_C(10) << 20)
#define PATH_DEFAULT      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static int check_spec(const struct launch_spec *spec, struct error *error)
{
    size_t name_len = spec->name ? strlen(spec->name) : 0;
    if (name_len == 0 || name_len > LAUNCH_NAME_MAX || strchr(spec->name, '/') || spec->name[0] == '.')
        return error_set(error, ERROR_INVALID, "task name \"%.40s\": empty, too long or not a file name",
                         spec->name ? spec->name : "");
    if (!spec->argv || !spec->argv[0])
        return error_set(error, ERROR_INVALID, "task %s: no command", spec->name);
    struct str texts[] = {spec->hosts, spec->rank_table};
    for (size_t i = 0; i < 2; i++)
        if (texts[i].len > LAUNCH_SPEC_BYTES_MAX || (texts[i].len && memchr(texts[i].data, 0, texts[i].len)))
            return error_set(error, ERROR_INVALID, "task %s: %s is too long or holds a NUL", spec->name,
                             i == 0 ? "the hosts text" : "the rank table");
    if (spec->group_count > LAUNCH_GROUPS_MAX)
        return error_set(error, ERROR_LIMIT, "task %s: more than %d groups", spec->name, LAUNCH_GROUPS_MAX);
    if (spec->mount_count > SHIM_MOUNTS_MAX)
        return error_set(error, ERROR_LIMIT, "task %s: more than %d mounts", spec->name, SHIM_MOUNTS_MAX);
    if (spec->log_files > LOG_FILES_MAX)
        return error_set(error, ERROR_INVALID, "task %s: more than %d log files", spec->name, LOG_FILES_MAX);
    return 0;
}

static void add_string(struct buf *file, const char *text)
{
    buf_add(file, text, strlen(text) + 1);
}

static struct shim_limit limit_of(struct launch_limit limit)
{
    return (struct shim_limit){.set = limit.set, .value = limit.value};
}

static struct shim_header header_of(struct launcher *launcher, const struct launch_spec *spec)
{
    bool hosts = spec->hosts.len > 0 && launcher->private_hosts;
    struct shim_header header = {
        .magic = SHIM_HEADER_MAGIC,
        .version = SHIM_VERSION,
        .flags =
            (spec->set_user ? SHIM_SET_USER : 0u) | (hosts ? SHIM_PRIVATE_HOSTS : 0u) |
            (launcher->tether_fd >= 0 ? SHIM_TETHER : 0u) | (spec->mount_count > 0 ? SHIM_MOUNTS : 0u) |
            ((spec->mount_count > 0 || hosts || spec->read_only_root) && geteuid() != 0 ? SHIM_USER_NAMESPACE
                                                                                        : 0u) |
            (launcher->reset_oom_score ? SHIM_RESET_OOM_SCORE : 0u) | (spec->bound ? SHIM_BOUND : 0u) |
            (spec->no_new_privileges ? SHIM_NO_NEW_PRIVILEGES : 0u) | (spec->filtered ? SHIM_SECCOMP : 0u) |
            (spec->read_only_root ? SHIM_READ_ONLY_ROOT : 0u) | (geteuid() != 0 ? SHIM_UNPRIVILEGED : 0u),
        .uid = spec->uid,
        .attempt = spec->attempt,
        .run = spec->run,
        .user_id = spec->user_id,
        .group_id = spec->group_id,
        .hosts_len = (uint32_t)spec->hosts.len,
        .rank_table_len = (uint32_t)spec->rank_table.len,
        .memory_limit_bytes = spec->memory_limit_bytes,
        .cpu_limit_milli = spec->cpu_limit_milli,
        .pids_limit = spec->pids_limit,
        .nofile = limit_of(spec->nofile),
        .core = limit_of(spec->core),
        .memlock = limit_of(spec->memlock),
        .grace_ns = (uint64_t)(spec->grace_ns > 0 ? spec->grace_ns : GRACE_DEFAULT_S * NS_PER_SECOND),
        .log_limit_bytes = spec->log_limit_bytes == 0              ? LOG_LIMIT_DEFAULT
                           : spec->log_limit_bytes < LOG_LIMIT_MIN ? LOG_LIMIT_MIN
                                                                   : spec->log_limit_bytes,
        .log_files = spec->log_files ? spec->log_files : LOG_FILES_DEFAULT,
        .capabilities = spec->capabilities,
        .group_count = (uint32_t)spec->group_count,
    };
    for (size_t i = 0; i < spec->group_count; i++)
        header.groups[i] = spec->groups[i];
    return header;
}

static uint32_t add_environment(struct launcher *launcher, const struct launch_spec *spec, struct buf *file)
{
    uint32_t count = 0;
    bool path = false;
    for (const char *const *env = spec->env; env && *env; env++, count++) {
        add_string(file, *env);
        path |= strncmp(*env, "PATH=", 5) == 0;
    }
    char text[LAUNCH_PATH_MAX];
    if (!path) {
        add_string(file, PATH_DEFAULT);
        count++;
    }
    const char *const files[][2] = {
        {"PHX_TASK_DIR=", ""}, {"PHX_HOSTS_FILE=", "/hosts"}, {"PHX_RANK_TABLE=", "/rank_table"}};
    const bool wanted[] = {true, spec->hosts.len > 0, spec->rank_table.len > 0};
    for (size_t i = 0; i < 3; i++) {
        if (!wanted[i])
            continue;
        snprintf(text, sizeof text, "%s%s/tasks/" UID_FORMAT "%s", files[i][0], launcher->directory,
                 UID_ARG(spec->uid), files[i][1]);
        add_string(file, text);
        count++;
    }
    return count;
}

static void add_mounts(const struct launch_spec *spec, struct buf *file)
{
    if (spec->mount_count == 0)
        return;
    buf_printf(file, "%zu", spec->mount_count);
    buf_add_char(file, 0);
    for (size_t i = 0; i < spec->mount_count; i++) {
        const struct launch_mount *mount = &spec->mounts[i];
        char letters[] = {mount->root      ? SHIM_MOUNT_ROOT
                          : mount->hidden  ? SHIM_MOUNT_HIDDEN
                          : mount->is_file ? SHIM_MOUNT_FILE
                                           : SHIM_MOUNT_DIRECTORY,
                          mount->read_only ? SHIM_MOUNT_READ_ONLY : SHIM_MOUNT_WRITABLE,
                          mount->inside     ? SHIM_MOUNT_INSIDE
                          : mount->optional ? SHIM_MOUNT_OPTIONAL
                                            : 0,
                          0};
        add_string(file, letters);
        add_string(file, mount->source ? mount->source : "");
        if (mount->inside)
            add_string(file, mount->inside);
        add_string(file, mount->target);
    }
}

/* Composes the bytes of the task file (shim.h). */
static int compose(struct launcher *launcher, const struct launch_spec *spec, struct buf *file,
                   bool *ret_unenforced, struct error *error)
{
    struct shim_header header = header_of(launcher, spec);
    struct buf cgroup[SHIM_CGROUPS_MAX] = {0};
    header.cgroup_version = (uint32_t)cgroups_for(launcher, spec, cgroup, ret_unenforced);
    static const char zero[SHIM_STRINGS_OFFSET];
    buf_add(file, zero, sizeof zero);
    add_string(file, spec->name);
    add_string(file, spec->directory ? spec->directory : "/");
    char logs[LAUNCH_PATH_MAX] = "";
    if (launcher->logs_apart)
        snprintf(logs, sizeof logs, "%s/tasks/" UID_FORMAT, launcher->logs, UID_ARG(spec->uid));
    add_string(file, logs);
    for (int i = 0; i < SHIM_CGROUPS_MAX; i++) {
        add_string(file, cgroup[i].data ? cgroup[i].data : "");
        buf_done(&cgroup[i]);
    }
    for (const char *const *arg = spec->argv; *arg && file->len <= LAUNCH_SPEC_BYTES_MAX;
         arg++, header.argc++)
        add_string(file, *arg);
    header.envc = add_environment(launcher, spec, file);
    buf_add_str(file, spec->hosts);
    buf_add_char(file, 0);
    buf_add_str(file, spec->rank_table);
    buf_add_char(file, 0);
    add_mounts(spec, file);
    if (file->len > LAUNCH_SPEC_BYTES_MAX)
        return error_set(error, ERROR_LIMIT, "task %s: command, environment and files exceed %d bytes",
                         spec->name, LAUNCH_SPEC_BYTES_MAX);
    header.file_len = file->len;
    memcpy(file->data, &header, sizeof header);
    return 0;
}

struct place { /* the task's directory while it is being made */
    char uid[24];
    int directory_fd, file_fd;
};

static void place_close(struct place *place)
{
    if (place->file_fd >= 0)
        close(place->file_fd);
    if (place->directory_fd >= 0)
        close(place->directory_fd);
}

static int place_make(struct launcher *launcher, const struct launch_spec *spec, struct str content,
                      struct place *place, struct error *error)
{
    *place = (struct place){.directory_fd = -1, .file_fd = -1};
    snprintf(place->uid, sizeof place->uid, UID_FORMAT, UID_ARG(spec->uid));
    if (mkdirat(launcher->tasks_fd, place->uid, 0755) < 0)
        return errno == EEXIST
                   ? error_set(error, ERROR_EXISTS, "task %s: uid %s has a directory here already",
                               spec->name, place->uid)
                   : error_set_errno(error, errno, "making the directory of task %s", spec->name);
    place->directory_fd =
        fd_raise(openat(launcher->tasks_fd, place->uid, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    bool shared = spec->set_user; /* lets the task's group reach its hosts file and rank table */
    if (place->directory_fd >= 0 && ((shared && fchown(place->directory_fd, (uid_t)-1, spec->group_id) < 0) ||
                                     fchmod(place->directory_fd, shared ? 0750 : 0700) < 0))
        return error_set_errno(error, errno, "giving the directory of task %s to its group", spec->name);
    if (place->directory_fd >= 0)
        place->file_fd =
            fd_raise(openat(place->directory_fd, "task", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (place->file_fd < 0 || flock(place->file_fd, LOCK_EX | LOCK_NB) < 0)
        return error_set_errno(error, errno, "making the file of task %s", spec->name);
    ssize_t written = write(place->file_fd, content.data, content.len);
    if (written != (ssize_t)content.len)
        return error_set_errno(error, written < 0 ? errno : ENOSPC, "writing the file of task %s",
                               spec->name);
    return 0;
}

/* Starts the shim with vfork semantics: the loop is blocked only until the shim is executed. */
static int start_shim(struct launcher *launcher, const struct place *place, const char *name, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    /* Not sigfillset: it leaves out the two signals that glibc uses itself, which posix_spawn would then
     * leave ignored for the task. */
    sigset_t all;
    memset(&all, 0xff, sizeof all);
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    if ((error = posix_spawnattr_init(&attributes))) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    const int from[] = {launcher->null_fd,  launcher->null_fd,   launcher->null_fd,  place->file_fd,
                        launcher->fence_fd, launcher->events_fd, launcher->tether_fd};
    int count = launcher->tether_fd >= 0 ? SHIM_FD_FREE : SHIM_FD_TETHER;
    for (int to = 0; to < count && !error; to++)
        error = posix_spawn_file_actions_adddup2(&actions, from[to], to);
    if (!error)
        error = posix_spawn_file_actions_addfchdir_np(&actions, place->directory_fd);
    if (!error)
        error = posix_spawn_file_actions_addclosefrom_np(&actions, count);
    if (!error)
        error = posix_spawnattr_setflags(&attributes,
                                         POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    if (!error)
        error = posix_spawnattr_setsigmask(&attributes, &all);
    if (!error)
        error = posix_spawnattr_setsigdefault(&attributes, &all);
    char *const argv[] = {(char *)"phalanx-shim", (char *)name, NULL};
    char *const environment[] = {NULL};
    if (!error)
        error = posix_spawn(ret_pid, launcher->shim, &actions, &attributes, argv, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Begins to watch the new process, and kills it if it cannot be watched. */
static int begin_watch(struct launcher *launcher, const struct launch_spec *spec, pid_t pid, bool unenforced,
                       struct error *error)
{
    struct task *task = task_new(launcher, spec->uid, spec->attempt, str_from(spec->name));
    task->child = true;
    task->run = spec->run;
    task->shim_pid = pid;
    task->limits_unenforced = unenforced;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    int result = pidfd < 0 ? error_set_errno(error, errno, "opening a pidfd for task %s", spec->name)
                           : watch_task(task, pidfd, error);
    if (result == 0)
        return 0;
    if (pidfd >= 0)
        close(pidfd);
    kill(pid, SIGKILL); /* our child and not reaped, so the number is still its own */
    waitpid(pid, NULL, 0);
    task_free(task);
    return result;
}

int launch_spawn(struct launcher *launcher, const struct launch_spec *spec, struct error *error)
{
    int result = check_spec(spec, error);
    if (result < 0)
        return result;
    const struct task *before = u64_map_get(&launcher->by_uid, spec->uid);
    if (before && before->state == TASK_EXITED && before->run < spec->run)
        launch_forget(launcher, spec->uid, NULL);
    else if (before)
        return error_set(error, ERROR_EXISTS, "task %s: uid " UID_FORMAT " is here already", spec->name,
                         UID_ARG(spec->uid));
    BUF_CLEANUP struct buf file = {0};
    bool unenforced = false;
    struct place place;
    if ((result = compose(launcher, spec, &file, &unenforced, error)) < 0)
        return result;
    result = place_make(launcher, spec, buf_str(&file), &place, error);
    if (result == ERROR_EXISTS)
        return result;
    pid_t pid = 0;
    if (result == 0) {
        int code = start_shim(launcher, &place, spec->name, &pid);
        if (code)
            result = error_set_errno(error, code, "starting %s", launcher->shim);
    }
    if (result == 0)
        result = begin_watch(launcher, spec, pid, unenforced, error);
    place_close(&place);
    if (result < 0)
        directory_remove(launcher->tasks_fd, place.uid);
    return result;
}
