/* The decision whether to spin before sleeping. */
#include "flow/wire/spin.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "flow/wire/clock.h"

#define SPIN_ASK_NS (INT64_C(5) * 1000 * 1000)

void spin_init(struct spin *spin)
{
    cpu_set_t set;
    *spin = (struct spin){.fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC)};
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        spin->cores = CPU_COUNT(&set);
}

void spin_done(struct spin *spin)
{
    if (spin->fd >= 0)
        close(spin->fd);
    spin->fd = -1;
}

int32_t spin_runnable(const char *line)
{
    int32_t runnable;
    char slash;
    return sscanf(line, "%*f %*f %*f %d%c", &runnable, &slash) == 2 && slash == '/' && runnable >= 0
               ? runnable
               : INT32_MAX;
}

bool spin_lasts(int64_t end_ns)
{
    sched_yield();
    return flow_now_ns() < end_ns;
}

bool spin_may(struct spin *spin, int64_t now_ns)
{
    if (spin->fd < 0 || (spin->asked_ns && now_ns - spin->asked_ns < SPIN_ASK_NS))
        return spin->may;
    char line[128];
    ssize_t got = pread(spin->fd, line, sizeof line - 1, 0);
    line[got > 0 ? got : 0] = 0;
    spin->asked_ns = now_ns;
    spin->may = spin_runnable(line) <= spin->cores; /* the caller is one of them */
    return spin->may;
}
