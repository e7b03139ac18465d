/* process.h - what tests ask about processes that are not their children. */
#ifndef PHX_TESTS_HOST_PROCESS_H
#define PHX_TESTS_HOST_PROCESS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* Zombies count as gone: who reaps orphans, and when, is not ours to say. */
static inline bool process_gone(pid_t pid)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return true;
    ssize_t got = read(fd, line, sizeof line - 1);
    close(fd);
    const char *at = got > 0 ? strrchr(line, ')') : NULL;
    return !at || at[2] == 'Z' || at[2] == 'X';
}

#endif
