#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/parts.h"

/* Mounts the hosts file over /etc/hosts. Minimal images have no such file to mount on. An empty file means
 * the same to the machine, so one is made if the rights suffice. */
static int cover_hosts(const struct shim *shim)
{
    int result = own_mounts(shim);
    if (result < 0)
        return result;
    if (mount("hosts", "/etc/hosts", NULL, MS_BIND, NULL) == 0)
        return 0;
    int error = errno, fd = error == ENOENT ? open("/etc/hosts", O_WRONLY | O_CREAT | O_CLOEXEC, 0644) : -1;
    if (fd < 0)
        return -error;
    close(fd);
    return mount("hosts", "/etc/hosts", NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

void hosts_mount(struct shim *shim)
{
    const struct shim_header *header = shim->header;
    if (header->hosts_len > 0)
        shim->start.hosts_error = header->flags & SHIM_PRIVATE_HOSTS ? -cover_hosts(shim) : EPERM;
}

static int write_files(const struct shim *shim)
{
    const struct shim_header *header = shim->header;
    int result = 0;
    if (header->rank_table_len > 0)
        result = file_create("rank_table", shim->rank_table, header->rank_table_len, NULL);
    if (result == 0 && header->hosts_len > 0)
        result = file_create("hosts", shim->hosts, header->hosts_len, "/etc/hosts");
    return result;
}

/* ---- in the vforked child: memory is the shim's, everything else its own ---- */

static _Noreturn void give_up(struct shim *shim, enum shim_stage stage, int error)
{
    shim->exit.stage = stage;
    shim->exit.error = error;
    _exit(127);
}

static void set_limit(struct shim *shim, int resource, const struct shim_limit *limit)
{
    rlim_t value = limit->value == UINT64_MAX ? RLIM_INFINITY : (rlim_t)limit->value;
    struct rlimit both = {value, value};
    if (limit->set && setrlimit(resource, &both) < 0)
        give_up(shim, SHIM_STAGE_LIMITS, errno);
}

static void join_cgroups(struct shim *shim)
{
    for (int i = 0; i < SHIM_CGROUPS_MAX; i++) {
        int fd = shim->cgroups.procs[i];
        if (fd >= 0 && write(fd, "0", 1) < 0) {
            shim->start.cgroup_stage = SHIM_STAGE_CGROUP_JOIN;
            shim->start.cgroup_error = errno;
        }
    }
    if (shim->header->flags & SHIM_RESET_OOM_SCORE)
        file_write("/proc/self/oom_score_adj", "0", 1);
}

/* Limits the capabilities of root, and of programs with file capabilities, from here on. The kernel refuses
 * this to users without privileges, whose tasks have none to lose. */
static void bound_capabilities(struct shim *shim)
{
    const struct shim_header *header = shim->header;
    if (!(header->flags & SHIM_BOUND))
        return;
    for (unsigned i = 0; i < 64; i++)
        if (!(header->capabilities >> i & 1) && prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0) {
            if (errno == EINVAL || (errno == EPERM && header->flags & SHIM_UNPRIVILEGED))
                return; /* the kernel has no further capabilities */
            give_up(shim, SHIM_STAGE_PRIVILEGES, errno);
        }
}

/* Root installs the filter before the change of user: a user who may gain privileges could not install it
 * afterwards. */
static void forgo_privileges(struct shim *shim)
{
    uint32_t flags = shim->header->flags;
    if (flags & SHIM_NO_NEW_PRIVILEGES && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        give_up(shim, SHIM_STAGE_PRIVILEGES, errno);
    int result = flags & SHIM_SECCOMP ? filter_calls(shim) : 0;
    if (result < 0)
        give_up(shim, SHIM_STAGE_PRIVILEGES, -result);
}

static void set_user(struct shim *shim)
{
    const struct shim_header *header = shim->header;
    if (!(header->flags & SHIM_SET_USER))
        return;
    /* Raw calls, as glibc's would signal other threads, of which there are none. */
    if (syscall(SYS_setgroups, header->group_count, header->groups) < 0 ||
        syscall(SYS_setresgid, header->group_id, header->group_id, header->group_id) < 0 ||
        syscall(SYS_setresuid, header->user_id, header->user_id, header->user_id) < 0)
        give_up(shim, SHIM_STAGE_USER, errno);
}

static const char *path_variable(const struct shim *shim)
{
    for (const char **env = shim->envp; *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    return "";
}

/* Executes the command as execvp does: the first file of that name in PATH that can run. Returns the errno,
 * EACCES in favour of ENOENT. */
static int execute(struct shim *shim)
{
    const char *command = shim->argv[0];
    char *const *argv = (char *const *)shim->argv, *const *envp = (char *const *)shim->envp;
    if (strchr(command, '/') || !command[0]) {
        execve(command, argv, envp);
        return errno;
    }
    static char file[PATH_MAX];
    size_t command_len = strlen(command);
    int error = ENOENT;
    for (const char *at = path_variable(shim); *at;) {
        size_t len = strcspn(at, ":");
        if (len > 0 && len + command_len + 2 <= sizeof file) {
            memcpy(file, at, len);
            file[len] = '/';
            memcpy(file + len + 1, command, command_len + 1);
            execve(file, argv, envp);
            if (errno != ENOENT && errno != ENOTDIR)
                error = errno;
            if (error != ENOENT && error != EACCES)
                return error;
        }
        at += len + (at[len] == ':');
    }
    return error;
}

static _Noreturn void become(struct shim *shim, const int fds[3], bool tty)
{
    join_cgroups(shim);
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0 && dup2(fds[i], i) < 0)
            give_up(shim, SHIM_STAGE_PROCESS, errno);
    for (int fd = SHIM_FD_TASK; fd < SHIM_FD_FREE; fd++) /* the tether and the lock are the shim's alone */
        close(fd);
    setsid(); /* its own process group and session */
    if (tty && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)
        give_up(shim, SHIM_STAGE_PROCESS, errno);
    set_limit(shim, RLIMIT_NOFILE, &shim->header->nofile);
    set_limit(shim, RLIMIT_CORE, &shim->header->core);
    set_limit(shim, RLIMIT_MEMLOCK, &shim->header->memlock);
    int result = shim->header->flags & SHIM_READ_ONLY_ROOT ? make_root_read_only(shim) : 0;
    if (result < 0)
        give_up(shim, SHIM_STAGE_READ_ONLY, -result);
    bound_capabilities(shim);
    forgo_privileges(shim);
    set_user(shim);
    /* Set after the change of user, which clears it. The shim may have died before. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != shim->pid)
        _exit(127);
    if (chdir(shim->directory) < 0)
        give_up(shim, SHIM_STAGE_DIRECTORY, errno);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    give_up(shim, SHIM_STAGE_EXEC, execute(shim));
}

/* ---- in the shim ---- */

static int failed(struct shim *shim, enum shim_stage stage, int error)
{
    shim->exit.stage = stage;
    shim->exit.error = error;
    return -error;
}

int start_task(struct shim *shim)
{
    int result = write_files(shim);
    if (result < 0)
        return failed(shim, SHIM_STAGE_FILES, -result);
    if (!(shim->header->flags & SHIM_MOUNTS))
        hosts_mount(shim);
    else if ((result = mount_all(shim)) < 0)
        return result;
    cgroup_make(shim);
    int output[2];
    if (pipe2(output, O_CLOEXEC) < 0)
        return failed(shim, SHIM_STAGE_PROCESS, errno);
    shim->output = output[0];
    shim->start.started_ns = (int64_t)clock_ns(CLOCK_REALTIME);
    pid_t child = vfork(); /* returns once the command runs, or the child gave up */
    if (child == 0)
        become(shim, (int[3]){-1, output[1], output[1]}, false);
    int error = errno;
    close(output[1]);
    if (child < 0)
        return failed(shim, SHIM_STAGE_PROCESS, error);
    if (shim->exit.stage != SHIM_STAGE_NONE) {
        waitpid(child, NULL, 0);
        return -shim->exit.error;
    }
    shim->task = child;
    return 0;
}

/* Starts a command beside the task. The child reads its command from the fields of the task's, and reports a
 * failure in the task's; both are restored afterwards. */
pid_t start_exec(struct shim *shim, const struct exec_command *command, enum shim_stage *ret_stage)
{
    const char **argv = shim->argv, **envp = shim->envp;
    struct shim_exit exit = shim->exit;
    struct shim_start start = shim->start;
    shim->argv = command->argv;
    shim->envp = command->envp;
    shim->exit.stage = SHIM_STAGE_NONE;
    pid_t child = vfork();
    if (child == 0)
        become(shim, command->fds, command->tty);
    int error = child < 0 ? errno : shim->exit.error;
    enum shim_stage stage = child < 0 ? SHIM_STAGE_PROCESS : (enum shim_stage)shim->exit.stage;
    shim->argv = argv;
    shim->envp = envp;
    shim->exit = exit;
    shim->start = start;
    if (stage == SHIM_STAGE_NONE)
        return child;
    if (child > 0)
        waitpid(child, NULL, 0);
    *ret_stage = stage;
    return -error;
}
