#include "cmd/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

/* One of the command line's words is `state`. */
static bool names_it(const char *pid, const char *state)
{
    char path[64], line[16384];
    snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, line, sizeof(line) - 1);
    close(fd);
    line[got > 0 ? got : 0] = 0;
    for (ssize_t at = 0; at < got; at += (ssize_t)strlen(line + at) + 1)
        if (strcmp(line + at, state) == 0)
            return true;
    return false;
}

/* It has been killed and only needs the time to die, which can be long on a busy computer, or it is dead. */
static bool is_dying(const char *pid)
{
    char path[64], text[8192];
    snprintf(path, sizeof(path), "/proc/%s/status", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return true;
    ssize_t got = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[got > 0 ? got : 0] = 0;
    static const char *const pending[] = {"\nSigPnd:", "\nShdPnd:"}; /* of the thread, of the process */
    for (int i = 0; i < 2; i++) {
        const char *at = strstr(text, pending[i]);
        if (at && strtoull(at + strlen(pending[i]), NULL, 16) >> (SIGKILL - 1) & 1)
            return true;
    }
    return strstr(text, "\nVmSize:") == NULL; /* its memory is gone */
}

static bool works_below(const char *pid, const char *state)
{
    char path[64], cwd[4096];
    snprintf(path, sizeof(path), "/proc/%s/cwd", pid);
    ssize_t got = readlink(path, cwd, sizeof(cwd) - 1);
    size_t len = strlen(state);
    if (got < (ssize_t)len)
        return false;
    cwd[got] = 0;
    return strncmp(cwd, state, len) == 0 && (cwd[len] == 0 || cwd[len] == '/');
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
