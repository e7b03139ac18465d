#include "host/agent/logtime.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void log_times_open(struct log_times *times, const char *log_path)
{
    char path[LAUNCH_PATH_MAX + 32];
    const char *name = strrchr(log_path, '/');
    *times = (struct log_times){.fd = -1};
    if (!name || strncmp(name, "/log", 4) != 0)
        return;
    snprintf(path, sizeof path, "%.*s/times%s", (int)(name - log_path), log_path, name + 4);
    times->fd = open(path, O_RDONLY | O_CLOEXEC);
}

void log_times_close(struct log_times *times)
{
    if (times->fd >= 0)
        close(times->fd);
    *times = (struct log_times){.fd = -1};
}

static bool read_at(const struct log_times *times, uint64_t index, struct launch_log_time *ret_time)
{
    return times->fd >= 0 && pread(times->fd, ret_time, sizeof *ret_time,
                                   (off_t)(index * sizeof *ret_time)) == sizeof *ret_time;
}

static uint64_t count_of(const struct log_times *times)
{
    struct stat info;
    return times->fd >= 0 && fstat(times->fd, &info) == 0
               ? (uint64_t)info.st_size / sizeof(struct launch_log_time)
               : 0;
}

/* Returns the first entry whose offset is beyond `offset`, or whose time is `since_ns` or later. */
static uint64_t search(const struct log_times *times, bool by_time, off_t offset, int64_t since_ns)
{
    uint64_t low = 0, high = count_of(times);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        struct launch_log_time time;
        if (!read_at(times, middle, &time))
            return low;
        bool before = by_time ? time.arrived_ns < since_ns : time.offset <= (uint64_t)offset;
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int64_t log_times_at(struct log_times *times, off_t offset)
{
    struct launch_log_time next;
    if (!times->known || times->now.offset > (uint64_t)offset) {
        uint64_t index = search(times, false, offset, 0);
        times->known = index > 0 && read_at(times, index - 1, &times->now);
        times->index = times->known ? index - 1 : 0;
        return times->known ? times->now.arrived_ns : 0;
    }
    while (read_at(times, times->index + 1, &next) && next.offset <= (uint64_t)offset) {
        times->now = next;
        times->index++;
    }
    return times->now.arrived_ns;
}

bool log_times_since(struct log_times *times, int64_t since_ns, off_t *ret_offset)
{
    struct launch_log_time time;
    if (count_of(times) == 0)
        return false;
    uint64_t index = search(times, true, 0, since_ns);
    *ret_offset = read_at(times, index, &time) ? (off_t)time.offset : -1;
    return true;
}
