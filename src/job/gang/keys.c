#include "job/gang/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "job/link/error.h"
#include "job/link/settings.h"
#include "job/link/wire.h"

#define PATH_SIZE  4096
#define MAGIC      "PHXKEYS1"
#define START_SIZE 16 /* magic, attempt, world */

bool keys_decode(const uint8_t *bytes, size_t len, uint32_t attempt, struct keys *ret_keys)
{
    struct jobwire_reader reader = {.data = bytes, .len = len};
    struct keys keys = {.world = (uint32_t)(len / 8), .attempt = attempt};
    if (len == 0 || len % 8 != 0 || len / 8 > JOB_WORLD_MAX)
        return false;
    keys.list = malloc(len);
    for (uint32_t i = 0; keys.list != NULL && i < keys.world; i++)
        keys.list[i] = jobwire_get(&reader, 8);
    if (keys.list == NULL)
        return false;
    *ret_keys = keys;
    return true;
}

uint8_t *keys_encode(const struct keys *keys, size_t *ret_len)
{
    size_t len = (size_t)keys->world * 8;
    uint8_t *bytes = malloc(len);
    struct jobwire_writer writer = {.data = bytes, .cap = len};
    for (uint32_t i = 0; bytes != NULL && i < keys->world; i++)
        jobwire_put(&writer, keys->list[i], 8);
    *ret_len = len;
    return bytes;
}

void keys_done(struct keys *keys)
{
    free(keys->list);
    *keys = (struct keys){0};
}

/* ---- the file ---- */

static bool write_all(int fd, const uint8_t *bytes, size_t len)
{
    while (len > 0) {
        ssize_t written = write(fd, bytes, len);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes += written;
        len -= (size_t)written;
    }
    return true;
}

static int write_file(const char *dir, const uint8_t *bytes, size_t len, struct phx_error *error)
{
    char path[PATH_SIZE], temporary[PATH_SIZE + 32];
    snprintf(path, sizeof path, "%s/keys", dir);
    snprintf(temporary, sizeof temporary, "%s.%d.tmp", path, (int)getpid());
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return job_fail_errno(error, errno, "create %.120s", temporary);
    bool whole = write_all(fd, bytes, len);
    int status = whole ? 0 : job_fail_errno(error, errno, "write %.120s", temporary);
    close(fd);
    if (status == 0 && rename(temporary, path) != 0)
        status = job_fail_errno(error, errno, "rename %.120s", temporary);
    if (status != 0)
        unlink(temporary);
    return status;
}

int keys_save(const char *dir, const struct keys *keys, struct phx_error *error)
{
    size_t len, size;
    uint8_t *list = keys_encode(keys, &len), *bytes = malloc(START_SIZE + len + 4);
    struct jobwire_writer writer = {.data = bytes, .cap = START_SIZE + len + 4};
    int status = list == NULL || bytes == NULL ? job_fail(error, PHX_ERROR_MEMORY, "out of memory") : 0;
    if (status == 0) {
        jobwire_put_bytes(&writer, MAGIC, 8);
        jobwire_put(&writer, keys->attempt, 4);
        jobwire_put(&writer, keys->world, 4);
        jobwire_put_bytes(&writer, list, len);
        size = writer.len;
        jobwire_put(&writer, crc32c(0, bytes, size), 4);
        status = write_file(dir, bytes, writer.len, error);
    }
    free(list);
    free(bytes);
    return status;
}

static bool parse_file(const uint8_t *bytes, size_t len, struct keys *ret_keys)
{
    struct jobwire_reader reader = {.data = bytes, .pos = 8, .len = len};
    if (len < START_SIZE + 4 || memcmp(bytes, MAGIC, 8) != 0)
        return false;
    uint32_t attempt = (uint32_t)jobwire_get(&reader, 4);
    uint64_t world = jobwire_get(&reader, 4);
    if (len != START_SIZE + world * 8 + 4)
        return false;
    reader.pos = len - 4;
    return jobwire_get(&reader, 4) == crc32c(0, bytes, len - 4) &&
           keys_decode(bytes + START_SIZE, len - START_SIZE - 4, attempt, ret_keys);
}

bool keys_load(const char *dir, struct keys *ret_keys)
{
    char path[PATH_SIZE];
    struct stat info;
    uint8_t *bytes = NULL;
    snprintf(path, sizeof path, "%s/keys", dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool found = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
                 info.st_size <= START_SIZE + 8 * JOB_WORLD_MAX + 4;
    if (found)
        bytes = malloc((size_t)info.st_size + 1);
    found = bytes != NULL && read(fd, bytes, (size_t)info.st_size) == info.st_size &&
            parse_file(bytes, (size_t)info.st_size, ret_keys);
    if (fd >= 0)
        close(fd);
    free(bytes);
    return found;
}
