#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/parts.h"

void text_add(struct text *text, const char *s)
{
    while (*s && text->len < sizeof text->data - 1)
        text->data[text->len++] = *s++;
    text->data[text->len] = 0;
}

void text_add_number(struct text *text, uint64_t number)
{
    char digits[21];
    size_t at = sizeof digits - 1;
    digits[at] = 0;
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    text_add(text, digits + at);
}

void text_add_descriptor(struct text *text, int fd)
{
    text_add(text, "/proc/self/fd/");
    text_add_number(text, (uint64_t)fd);
}

static int write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t written = write(fd, data, len);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? -errno : -EIO;
        data += written;
        len -= (size_t)written;
    }
    return 0;
}

int file_write(const char *path, const char *data, size_t len)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t written = write(fd, data, len);
    int result = written < 0 ? -errno : (size_t)written == len ? 0 : -EIO;
    close(fd);
    return result;
}

static int copy_into(int fd, const char *path)
{
    char block[4096];
    int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return errno == ENOENT ? 0 : -errno;
    char last = '\n';
    int result = 0;
    for (;;) {
        ssize_t got = read(from, block, sizeof block);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            result = got < 0 ? -errno : 0;
            break;
        }
        last = block[got - 1];
        if ((result = write_all(fd, block, (size_t)got)) < 0)
            break;
    }
    close(from);
    if (result == 0 && last != '\n')
        result = write_all(fd, "\n", 1);
    return result;
}

int file_create(const char *path, const char *data, size_t len, const char *copied_first)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    int result = copied_first ? copy_into(fd, copied_first) : 0;
    if (result == 0)
        result = write_all(fd, data, len);
    close(fd);
    return result;
}

ssize_t file_read(const char *path, char *ret_data, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    size_t len = 0;
    ssize_t got = 0;
    while (len < cap - 1 && (got = read(fd, ret_data + len, cap - 1 - len)) > 0)
        len += (size_t)got;
    int error = errno;
    close(fd);
    if (got < 0 && len == 0)
        return -error;
    ret_data[len] = 0;
    return (ssize_t)len;
}

uint64_t clock_ns(int clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
