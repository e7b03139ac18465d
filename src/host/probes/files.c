/* files.c - the probe of the table of open files, and the functions with which all probes read below the
 * root. */
#include "host/probes/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PATH_BYTES = 1024, NAMES_MAX = 65536 };

static bool path_of(const struct probes *all, char *ret_path, size_t size, const char *format, va_list args)
{
    size_t len = strlen(all->root);
    if (len >= size)
        return false;
    memcpy(ret_path, all->root, len);
    int rest = vsnprintf(ret_path + len, size - len, format, args);
    return rest >= 0 && (size_t)rest < size - len;
}

bool file_path(const struct probes *all, char *ret_path, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    bool fits = path_of(all, ret_path, size, format, args);
    va_end(args);
    return fits;
}

/* Opens a file. Returns -1 with errno on failure. Neither a FIFO nor a device in place of a file may block
 * us. */
static int open_below(const struct probes *all, const char *format, va_list args)
{
    char path[PATH_BYTES];
    if (!path_of(all, path, sizeof path, format, args)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static bool read_text(int fd, struct text *ret_text)
{
    ssize_t got;
    do
        got = read(fd, ret_text->data, sizeof ret_text->data - 1);
    while (got < 0 && errno == EINTR);
    int saved = errno;
    close(fd);
    errno = saved;
    if (got < 0)
        return false;
    while (got > 0 && strchr(" \t\n\r", ret_text->data[got - 1]))
        got--;
    ret_text->data[got] = 0;
    ret_text->len = (size_t)got;
    return true;
}

bool file_read(const struct probes *all, struct text *ret_text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int fd = open_below(all, format, args);
    va_end(args);
    return fd >= 0 && read_text(fd, ret_text);
}

bool file_u64(const struct probes *all, uint64_t *ret_value, const char *format, ...)
{
    struct text text;
    va_list args;
    va_start(args, format);
    int fd = open_below(all, format, args);
    va_end(args);
    return fd >= 0 && read_text(fd, &text) && str_to_u64((struct str){text.data, text.len}, ret_value);
}

bool file_read_all(const struct probes *all, struct buf *ret_text, size_t max, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int fd = open_below(all, format, args);
    va_end(args);
    if (fd < 0)
        return false;
    ssize_t got = 0;
    buf_clear(ret_text);
    do {
        buf_reserve(ret_text, 16384);
        got = read(fd, ret_text->data + ret_text->len, 16384);
        if (got > 0)
            ret_text->len += (size_t)got;
    } while ((got > 0 && ret_text->len < max) || (got < 0 && errno == EINTR));
    close(fd);
    buf_add_char(ret_text, 0);
    ret_text->len--;
    return got >= 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void file_list(const struct probes *all, struct names *ret_names, const char *prefix, const char *format, ...)
{
    char path[PATH_BYTES];
    va_list args;
    va_start(args, format);
    bool fits = path_of(all, path, sizeof path, format, args);
    va_end(args);
    DIR *folder = fits ? opendir(path) : NULL;
    if (!folder)
        return;
    for (struct dirent *entry; ret_names->list.len < NAMES_MAX && (entry = readdir(folder));) {
        size_t len = strlen(entry->d_name);
        if (entry->d_name[0] == '.' || strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
            continue;
        char *copy = mem_alloc(len + 1);
        memcpy(copy, entry->d_name, len);
        vec_push(&ret_names->list, copy);
    }
    closedir(folder);
    if (ret_names->list.len > 1)
        qsort(ret_names->list.items, ret_names->list.len, sizeof(char *), by_name);
}

void names_done(struct names *names)
{
    for (size_t i = 0; i < names->list.len; i++)
        mem_free(names->list.items[i]);
    vec_done(&names->list);
}

bool str_to_u64(struct str text, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (text.len == 0 || text.len > 20)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text.data[i] - '0'), &value))
            return false;
    }
    *ret_value = value;
    return true;
}

/* --- the probe: /proc/sys/fs/file-nr "used free max" ---------------------------------------------- */

struct files_state {
    int64_t percent;
};

static int start(struct probe *probe, struct error *error)
{
    struct files_state *state = probe->state = mem_alloc(sizeof *state);
    return probe_setting(probe, "percent", 1, 100, 90, &state->percent, error);
}

static void run(struct probe *probe)
{
    struct files_state *state = probe->state;
    struct text text;
    struct str used, rest, max;
    uint64_t used_count, max_count;
    if (!file_read(probe->all, &text, "/proc/sys/fs/file-nr") ||
        !str_cut((struct str){text.data, text.len}, '\t', &used, &rest) ||
        !str_cut(rest, '\t', &rest, &max) || !str_to_u64(used, &used_count) || !str_to_u64(max, &max_count) ||
        max_count == 0)
        return;
    double percent = 100.0 * (double)used_count / (double)max_count;
    bool on = percent >= (double)state->percent ||
              (probe_is_on(probe, "os/files", "") && percent >= 0.9 * (double)state->percent);
    probe_condition(probe, "os/files", "", on, SEVERITY_MAJOR, "%llu of %llu open files",
                    (unsigned long long)used_count, (unsigned long long)max_count);
}

const struct probe_kind probe_files = {.name = "files",
                                       .period_ns = 30 * NS_PER_SECOND,
                                       .cost_ns = 20 * NS_PER_MS,
                                       .keys = " percent ",
                                       .start = start,
                                       .run = run};
