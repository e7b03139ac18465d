/* damage.c - flips bits and fills disks. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "host/inject/inject.h"

int inject_flip(const char *path, uint64_t keep, uint32_t flips, struct rng *rng, struct error *error)
{
    struct stat found;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &found) < 0) {
        int rc = error_set_errno(error, errno, "%s", path);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    int rc =
        (uint64_t)found.st_size > keep ? 0 : error_set(error, ERROR_INVALID, "%s: the file is empty", path);
    for (uint32_t i = 0; i < flips && rc == 0; i++) {
        off_t at = (off_t)(keep + rng_below(rng, (uint64_t)found.st_size - keep));
        unsigned char byte;
        if (pread(fd, &byte, 1, at) != 1) {
            rc = error_set_errno(error, errno, "%s: reading", path);
            break;
        }
        byte ^= (unsigned char)(1u << rng_below(rng, 8));
        if (pwrite(fd, &byte, 1, at) != 1)
            rc = error_set_errno(error, errno, "%s: writing", path);
    }
    close(fd);
    return rc;
}

/* Allocates the free space, in ever smaller pieces, as other writers may take some of it. Returns the
 * bytes. */
static uint64_t take_all(int fd, uint64_t size)
{
    uint64_t taken = 0;
    while (size >= 4096) {
        if (posix_fallocate(fd, (off_t)taken, (off_t)size) == 0)
            taken += size;
        else
            size /= 2;
    }
    return taken;
}

int inject_fill(const char *path, uint64_t limit_bytes, uint64_t *ret_bytes, struct error *error)
{
    struct statvfs disk;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set_errno(error, errno, "%s", path);
    int rc = fstatvfs(fd, &disk) == 0 ? 0 : error_set_errno(error, errno, "%s", path);
    uint64_t free_bytes = rc == 0 ? (uint64_t)disk.f_bfree * disk.f_frsize : 0;
    if (rc == 0 && free_bytes > limit_bytes)
        rc = error_set(error, ERROR_LIMIT,
                       "%llu MiB are free there, which is more than would be taken (%llu MiB)",
                       (unsigned long long)(free_bytes >> 20), (unsigned long long)(limit_bytes >> 20));
    if (rc == 0)
        *ret_bytes = take_all(fd, free_bytes + 4096);
    else
        unlink(path);
    close(fd);
    return rc;
}
