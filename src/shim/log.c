#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shim/parts.h"

#define TIMES_APART_NS     INT64_C(1000000)
#define TIMES_FAR_APART_NS INT64_C(60000000000) /* beyond the bytes that `times` may have */
enum { TIMES_BYTES_MIN = 4096 };

void log_open(struct task_log *log, uint64_t size_max, uint32_t files)
{
    log->size_max = size_max;
    log->files = files;
    log->fd = open("log", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    struct stat info;
    log->times_fd = open("times", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    log->timed_ns = 0;
    log->size = log->fd >= 0 && fstat(log->fd, &info) == 0 ? (uint64_t)info.st_size : 0;
    log->times_size = log->times_fd >= 0 && fstat(log->times_fd, &info) == 0 ? (uint64_t)info.st_size : 0;
}

static void part_name(struct text *text, const char *file, uint32_t part)
{
    text->len = 0;
    text_add(text, file);
    if (part > 0) {
        text_add(text, ".");
        text_add_number(text, part);
    }
}

/* Renames log -> log.1 -> ... and drops the oldest. A reader that has the old file open reads it to its end
 * first. */
static void rotate(struct task_log *log)
{
    struct text from, to;
    for (uint32_t part = log->files - 1; part > 0; part--) {
        part_name(&from, "log", part - 1);
        part_name(&to, "log", part);
        rename(from.data, to.data);
        part_name(&from, "times", part - 1);
        part_name(&to, "times", part);
        rename(from.data, to.data);
    }
    if (log->files == 1) {
        unlink("log");
        unlink("times");
    }
    close(log->fd);
    if (log->times_fd >= 0)
        close(log->times_fd);
    log_open(log, log->size_max, log->files);
}

/* Records when bytes arrived. Bytes that arrive within a millisecond share one record. A task that writes
 * single bytes would fill the disk with records, so beyond a limit the bytes of a minute share one. */
static void note_time(struct task_log *log)
{
    struct shim_log_time time = {log->size, (int64_t)clock_ns(CLOCK_REALTIME)};
    int64_t since_ns = time.arrived_ns - log->timed_ns;
    uint64_t most = log->size_max / 4 < TIMES_BYTES_MIN ? TIMES_BYTES_MIN : log->size_max / 4;
    int64_t apart_ns = log->times_size < most ? TIMES_APART_NS : TIMES_FAR_APART_NS;
    if (log->times_fd < 0 || (log->timed_ns != 0 && since_ns >= 0 && since_ns < apart_ns))
        return;
    if (write(log->times_fd, &time, sizeof time) == sizeof time) {
        log->timed_ns = time.arrived_ns;
        log->times_size += sizeof time;
    }
}

static void append(struct task_log *log, const char *data, size_t len)
{
    if (len > 0)
        note_time(log);
    while (len > 0) {
        ssize_t written = log->fd >= 0 ? write(log->fd, data, len) : -1;
        if (written < 0 && log->fd >= 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            log->dropped_bytes += len;
            return;
        }
        log->size += (uint64_t)written;
        data += written;
        len -= (size_t)written;
    }
}

/* Appends output. A part ends at a line's end if one fits, so no line is split unless it is longer than the
 * rest of the part. */
void log_write(struct task_log *log, const char *data, size_t len)
{
    while (log->size + len > log->size_max) {
        size_t room = log->size < log->size_max ? (size_t)(log->size_max - log->size) : 0;
        const char *line_end = room > 0 ? memrchr(data, '\n', room) : NULL;
        size_t head = line_end ? (size_t)(line_end - data) + 1 : log->size > 0 ? 0 : room;
        append(log, data, head);
        data += head;
        len -= head;
        rotate(log);
        if (log->fd < 0)
            break;
    }
    append(log, data, len);
}
