#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/namespace.h"

/* namespace.c - child processes try the steps of the shim (src/shim/mount.c, root.c). A child makes only
 * system calls, because other threads may hold locks. */

static int own_mounts(void)
{
    return unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) < 0 ? errno : 0;
}

static int status_of(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

int os_mounts_refused(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(own_mounts());
    return child < 0 ? errno : status_of(child);
}

struct root_try {
    const char *place;
    char changes[PATH_MAX], work[PATH_MAX], root[PATH_MAX], proc[PATH_MAX], machine[PATH_MAX];
    char options[3 * PATH_MAX];
};

static int try_root(const struct root_try *try)
{
    int refused = own_mounts();
    if (refused == 0 &&
        (mount("changes", try->place, "tmpfs", 0, "mode=755,size=1m") < 0 || mkdir(try->changes, 0755) < 0 ||
         mkdir(try->work, 0755) < 0 || mkdir(try->root, 0755) < 0 ||
         mount("overlay", try->root, "overlay", 0, try->options) < 0 ||
         mount("/proc", try->proc, NULL, MS_BIND | MS_REC, NULL) < 0 || mkdir(try->machine, 0700) < 0 ||
         syscall(SYS_pivot_root, try->root, try->machine) < 0))
        refused = errno;
    return refused;
}

int os_root_refused(const char *place)
{
    struct root_try try = {.place = place};
    if (strlen(place) >= PATH_MAX - sizeof "/root/machine")
        return ENAMETOOLONG;
    snprintf(try.changes, sizeof try.changes, "%s/changes", place);
    snprintf(try.work, sizeof try.work, "%s/work", place);
    snprintf(try.root, sizeof try.root, "%s/root", place);
    snprintf(try.proc, sizeof try.proc, "%s/root/proc", place);
    snprintf(try.machine, sizeof try.machine, "%s/root/.machine", place);
    snprintf(try.options, sizeof try.options, "lowerdir=/,upperdir=%s,workdir=%s", try.changes, try.work);
    pid_t child = fork();
    if (child == 0)
        _exit(try_root(&try));
    return child < 0 ? errno : status_of(child);
}
