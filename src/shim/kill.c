#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "shim/parts.h"

/* Killing direct children is enough: a process that loses its parent becomes a direct child of the shim, the
 * reaper of its tree. Each killed generation makes the next one direct children, with a SIGCHLD that calls
 * kill_all() again, and a process that forks in the meantime is killed in a later round. The work is done
 * when wait reports no child. */

typedef void child_fn(struct shim *shim, pid_t child, int signal_number);

static void parse_children(struct shim *shim, const char *list, child_fn *visit, int signal_number)
{
    while (*list) {
        pid_t pid = 0;
        while (*list >= '0' && *list <= '9')
            pid = pid * 10 + (*list++ - '0');
        if (pid > 0)
            visit(shim, pid, signal_number);
        while (*list && (*list < '0' || *list > '9'))
            list++;
    }
}

/* Reads the parent's pid from /proc/<pid>/stat: "pid (comm) state ppid"; comm may hold any bytes and ends at
 * the last ')'. */
static pid_t parent_of(const char *pid_text)
{
    struct text path = {.len = 0};
    text_add(&path, "/proc/");
    text_add(&path, pid_text);
    text_add(&path, "/stat");
    char line[512];
    if (file_read(path.data, line, sizeof line) <= 0)
        return 0;
    const char *at = strrchr(line, ')');
    if (!at || strlen(at) < 5)
        return 0;
    pid_t parent = 0;
    for (at += 4; *at >= '0' && *at <= '9'; at++)
        parent = parent * 10 + (*at - '0');
    return parent;
}

/* Visits the children on kernels without CONFIG_PROC_CHILDREN. */
static void scan_processes(struct shim *shim, child_fn *visit, int signal_number)
{
    _Alignas(struct dirent64) char block[8192];
    int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ssize_t got = 0;
    while (fd >= 0 && (got = getdents64(fd, (void *)block, sizeof block)) > 0) {
        for (ssize_t at = 0; at < got;) {
            const struct dirent64 *entry = (const void *)(block + at);
            at += entry->d_reclen;
            if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && parent_of(entry->d_name) == shim->pid)
                parse_children(shim, entry->d_name, visit, signal_number);
        }
    }
    if (fd >= 0)
        close(fd);
}

static void each_child(struct shim *shim, child_fn *visit, int signal_number)
{
    static char list[65536]; /* a cut list is harmless: the next round finds the rest */
    struct text path = {.len = 0};
    text_add(&path, "/proc/self/task/");
    text_add_number(&path, (uint64_t)shim->pid);
    text_add(&path, "/children");
    ssize_t len = file_read(path.data, list, sizeof list);
    if (len < 0) {
        scan_processes(shim, visit, signal_number);
        return;
    }
    while (len > 0 && list[len - 1] != ' ' && len == (ssize_t)sizeof list - 1)
        list[--len] = 0; /* half a number at the cut */
    parse_children(shim, list, visit, signal_number);
}

static void signal_orphan(struct shim *shim, pid_t child, int signal_number)
{
    if (child != shim->task && getpgid(child) != shim->task)
        kill(child, signal_number);
}

static void signal_child(struct shim *shim, pid_t child, int signal_number)
{
    (void)shim;
    kill(child, signal_number);
}

void kill_softly(struct shim *shim, int signal_number)
{
    kill(-shim->task, signal_number);
    if (signal_number == SIGTERM)
        each_child(shim, signal_orphan, signal_number);
}

void kill_all(struct shim *shim)
{
    cgroup_kill(shim);
    /* The group's number stays in use while a member lives. Once the task is reaped and the group is empty,
     * the number may be reused, so only our own children are signalled from then on. */
    if (!shim->task_dead)
        kill(-shim->task, SIGKILL);
    each_child(shim, signal_child, SIGKILL);
}
