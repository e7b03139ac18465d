#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/namespace.h"

/* Takes the steps of shim/mount.c. The child makes system calls alone: other threads may hold locks. */
int os_mounts_refused(void)
{
    pid_t child = fork();
    if (child < 0)
        return errno;
    if (child == 0) {
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) < 0)
            _exit(errno);
        _exit(0);
    }
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}
