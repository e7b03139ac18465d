#include "cmd/processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "base/units.h"
#include "cmd/client.h"
#include "os/file.h"

enum { LINE_BYTES = 16384 };

/* Reads the head of /proc/PID/NAME, as much as fits, and terminates it by a NUL. Returns its length, or -1 if
 * the file cannot be opened, because the process has ended. */
static ssize_t read_proc(const char *pid, const char *name, char *ret_text, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t got = read(fd, ret_text, size - 1);
    close(fd);
    got = got > 0 ? got : 0;
    ret_text[got] = 0;
    return got;
}

/* Reads the words of a command line, each terminated by a NUL. Returns their length in bytes. */
static size_t command_line(const char *pid, char ret_line[LINE_BYTES])
{
    ssize_t got = read_proc(pid, "cmdline", ret_line, LINE_BYTES);
    return got > 0 ? (size_t)got : 0;
}

/* Returns true if one of the words of the process's command line is `state`. */
static bool names_it(const char *pid, const char *state)
{
    char line[LINE_BYTES];
    size_t len = command_line(pid, line);
    for (size_t at = 0; at < len; at += strlen(line + at) + 1)
        if (strcmp(line + at, state) == 0)
            return true;
    return false;
}

/* Returns true if the process has ended, or has been killed and is about to end, which can take long on a
 * busy computer. */
static bool is_dying(const char *pid)
{
    char text[8192];
    if (read_proc(pid, "status", text, sizeof(text)) < 0)
        return true;
    static const char *const pending[] = {"\nSigPnd:", "\nShdPnd:"}; /* of the thread, of the process */
    for (int i = 0; i < 2; i++) {
        const char *at = strstr(text, pending[i]);
        if (at && strtoull(at + strlen(pending[i]), NULL, 16) >> (SIGKILL - 1) & 1)
            return true;
    }
    return strstr(text, "\nVmSize:") == NULL; /* its memory is already released */
}

/* Returns true if the process's working directory is below `state`. Compares folders rather than names, which
 * differ between mount namespaces. */
static bool works_below(const char *pid, const char *state)
{
    enum { DEPTH_MAX = 64 };
    char path[64];
    struct stat wanted, here, above;
    if (stat(state, &wanted) < 0)
        return false;
    snprintf(path, sizeof(path), "/proc/%s/cwd", pid);
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool found = false;
    if (fd < 0 || fstat(fd, &here) < 0)
        here.st_ino = 0;
    for (int depth = 0; fd >= 0 && !found && depth < DEPTH_MAX; depth++) {
        found = here.st_dev == wanted.st_dev && here.st_ino == wanted.st_ino;
        int up = found ? -1 : openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        close(fd);
        fd = up;
        if (fd < 0 || fstat(fd, &above) < 0 ||
            (above.st_dev == here.st_dev && above.st_ino == here.st_ino)) /* the root */
            break;
        here = above;
    }
    if (fd >= 0)
        close(fd);
    return found;
}

void processes_visit(const char *state, void (*visit)(void *context, pid_t pid), void *context)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    while (proc && (entry = readdir(proc))) {
        int64_t pid;
        if (!str_to_i64(str_from(entry->d_name), 1, INT32_MAX, &pid) || pid == getpid())
            continue;
        if ((names_it(entry->d_name, state) || works_below(entry->d_name, state)) && !is_dying(entry->d_name))
            visit(context, (pid_t)pid);
    }
    if (proc)
        closedir(proc);
}

/* Returns true for a "phalanx controller" or "phalanx agent" whose command line names the folder or a path in
 * it. */
static bool serves(const char *line, size_t len, const char *data)
{
    size_t at = strlen(line) + 1;
    if (at >= len || (strcmp(line + at, "controller") != 0 && strcmp(line + at, "agent") != 0))
        return false;
    for (; at < len; at += strlen(line + at) + 1)
        if (os_path_is_below(line + at, data))
            return true;
    return false;
}

static bool of_cluster(const char *pid, const char *data, const char *machines)
{
    char line[LINE_BYTES];
    size_t len = command_line(pid, line);
    if (len == 0)
        return false;
    return serves(line, len, data) || (strcmp(line, "phalanx-shim") == 0 && works_below(pid, machines));
}

void processes_of_cluster(const char *data, void (*visit)(void *context, pid_t pid), void *context)
{
    char machines[4096];
    snprintf(machines, sizeof(machines), "%s/machines", data);
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    while (proc && (entry = readdir(proc))) {
        int64_t pid;
        if (str_to_i64(str_from(entry->d_name), 1, INT32_MAX, &pid) && pid != getpid() &&
            of_cluster(entry->d_name, data, machines) && !is_dying(entry->d_name))
            visit(context, (pid_t)pid);
    }
    if (proc)
        closedir(proc);
}

static void found(void *context, pid_t pid)
{
    *(bool *)context = true;
}

bool processes_exist(const char *state)
{
    bool any = false;
    processes_visit(state, found, &any);
    return any;
}

/* --- one process ---------------------------------------------------------------------------------------- */

bool process_facts(pid_t pid, struct process_facts *ret)
{
    char number[16], text[1024];
    snprintf(number, sizeof(number), "%d", (int)pid);
    if (read_proc(number, "stat", text, sizeof(text)) < 0)
        return false;
    const char *open_at = strchr(text, '('), *close_at = strrchr(text, ')'); /* a name may contain both */
    long parent;
    unsigned long long started;
    struct process_facts facts = {0};
    if (!open_at || !close_at ||
        sscanf(close_at + 1,
               " %c %ld %*s %*s %*s %*s %*s %*s %*s %*s %*s"
               " %*s %*s %*s %*s %*s %*s %*s %*s %llu",
               &facts.state, &parent, &started) != 3)
        return false;
    snprintf(facts.name, sizeof(facts.name), "%.*s", (int)(close_at - open_at - 1), open_at + 1);
    facts.parent = (pid_t)parent;
    facts.started = started;
    *ret = facts;
    return true;
}

uint64_t processes_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    uint64_t per_second = (uint64_t)sysconf(_SC_CLK_TCK);
    return (uint64_t)now.tv_sec * per_second + (uint64_t)now.tv_nsec * per_second / NS_PER_SECOND;
}

int process_watch(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

bool process_await(int watch, int64_t deadline_ns)
{
    struct pollfd ended = {.fd = watch, .events = POLLIN};
    int rc;
    do {
        int64_t left_ns = deadline_ns - client_clock();
        int64_t left_ms = left_ns > 0 ? left_ns / NS_PER_MS + 1 : 0;
        rc = poll(&ended, 1, left_ms < INT32_MAX ? (int)left_ms : INT32_MAX);
    } while (rc < 0 && errno == EINTR);
    return rc > 0;
}
