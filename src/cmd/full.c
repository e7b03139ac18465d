#include "cmd/full.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/client.h"

static char **started_with;

void full_begin(char **argv)
{
    started_with = argv;
}

int full_run(void)
{
    static const char name[] = "phalanx-full";
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof name);
    char *slash = length > 0 ? memrchr(path, '/', (size_t)length) : NULL;
    if (!slash) {
        say("cannot find %s: /proc/self/exe cannot be read: %s", name, strerror(errno));
        return EXIT_FAILED;
    }
    memcpy(slash + 1, name, sizeof name);
    fflush(stdout);
    execv(path, started_with);
    say("cannot run %s: %s; it must stand beside phalanx", path, strerror(errno));
    return EXIT_FAILED;
}
