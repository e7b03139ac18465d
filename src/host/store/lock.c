#include "host/store/private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>
#include "base/check.h"
#include "base/crc32c.h"

/* FILE-lock has three lines of text at fixed offsets, so that one small write replaces each in place:
 *     phalanx store lock 1
 *     pid 0000012345
 *     head 00000000000000001234 0a1b2c3d 4e5f6071
 * head: newest acknowledged record, its checksum, and a CRC-32C of "SEQ CRC". The head is written after every
 * commit and never synced. It survives the death of the process; power loss may only set it back, which is
 * harmless, because it is a lower bound. The lock is flock(2), not fcntl(2), which any close of the file in
 * this process would drop.
 */
enum { PID_AT = 21, HEAD_AT = 36, HEAD_LEN = 44, LOCK_LEN = HEAD_AT + HEAD_LEN, SEQ_LEN = 20, HEX_LEN = 8 };
static const char title[] = "phalanx store lock 1\n";
_Static_assert(sizeof title - 1 == PID_AT, "the title fills its line");

/* Resolves links in `path`, so that every path to the file leads to the same lock. */
static int lock_path(const char *path, char *out, size_t size, struct error *error)
{
    char resolved[PATH_MAX];
    int len;
    if (realpath(path, resolved)) {
        len = snprintf(out, size, "%s-lock", resolved);
    } else if (errno == ENOENT) {
        const char *slash = strrchr(path, '/');
        const char *name = slash ? slash + 1 : path;
        char folder[PATH_MAX];
        int folder_len = slash ? snprintf(folder, sizeof folder, "%.*s/", (int)(slash - path), path)
                               : snprintf(folder, sizeof folder, ".");
        if (folder_len < 0 || (size_t)folder_len >= sizeof folder)
            return error_set(error, ERROR_INVALID, "the path is too long");
        if (!realpath(folder, resolved))
            return error_set_errno(error, errno, "its folder");
        len = snprintf(out, size, "%s/%s-lock", resolved, name);
    } else {
        return error_set_errno(error, errno, "resolving the path");
    }
    if (len < 0 || (size_t)len >= size)
        return error_set(error, ERROR_INVALID, "the path is too long");
    return 0;
}

static bool parse_head(const char *text, uint64_t *ret_seq, uint32_t *ret_crc)
{
    char line[HEAD_LEN + 1];
    memcpy(line, text, HEAD_LEN);
    line[HEAD_LEN] = 0;
    uint64_t seq;
    uint32_t crc, check;
    if (sscanf(line, "head %20" SCNu64 " %8" SCNx32 " %8" SCNx32 "\n", &seq, &crc, &check) != 3)
        return false;
    if (check != crc32c(0, line + 5, SEQ_LEN + 1 + HEX_LEN) || seq > INT64_MAX)
        return false;
    *ret_seq = seq;
    *ret_crc = crc;
    return true;
}

static int held_by_other(const struct store_lock *lock, struct error *error)
{
    char text[LOCK_LEN] = {0};
    ssize_t len = pread(lock->fd, text, sizeof text, 0);
    long pid = 0;
    if (len >= HEAD_AT && sscanf(text + PID_AT, "pid %10ld", &pid) == 1 && pid > 0)
        return error_set(error, ERROR_CONFLICT, "in use by process %ld (%s)", pid, lock->path);
    return error_set(error, ERROR_CONFLICT, "in use by another process (%s)", lock->path);
}

static void read_head(struct store_lock *lock, int fd)
{
    char text[LOCK_LEN] = {0};
    ssize_t len = pread(fd, text, sizeof text, 0);
    lock->has_head = len == LOCK_LEN && memcmp(text, title, PID_AT) == 0 &&
                     parse_head(text + HEAD_AT, &lock->head_seq, &lock->head_crc);
}

int store_lock_peek(struct store_lock *lock, const char *path, struct error *error)
{
    lock->fd = -1;
    int rc = lock_path(path, lock->path, sizeof lock->path, error);
    if (rc < 0)
        return rc;
    int fd = open(lock->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) /* a copy of the file without its lock: its head is unknown */
        return 0;
    read_head(lock, fd);
    close(fd);
    return 0;
}

int store_lock_take(struct store_lock *lock, const char *path, struct error *error)
{
    lock->fd = -1;
    int rc = lock_path(path, lock->path, sizeof lock->path, error);
    if (rc < 0)
        return rc;
    lock->fd = open(lock->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock->fd < 0)
        return error_set_errno(error, errno, "%s", lock->path);
    if (flock(lock->fd, LOCK_EX | LOCK_NB) < 0) {
        int errno_value = errno;
        rc = errno_value == EWOULDBLOCK ? held_by_other(lock, error)
                                        : error_set_errno(error, errno_value, "locking %s", lock->path);
        close(lock->fd);
        lock->fd = -1;
        return rc;
    }
    read_head(lock, lock->fd);
    char pid[HEAD_AT - PID_AT + 1];
    int pid_len = snprintf(pid, sizeof pid, "pid %010ld\n", (long)getpid());
    CHECK(pid_len == HEAD_AT - PID_AT);
    if (pwrite(lock->fd, title, PID_AT, 0) != PID_AT ||
        pwrite(lock->fd, pid, (size_t)pid_len, PID_AT) != pid_len) {
        rc = error_set_errno(error, errno, "writing %s", lock->path);
        store_lock_release(lock);
        return rc;
    }
    return 0;
}

void store_lock_head(struct store_lock *lock, uint64_t seq, uint32_t crc)
{
    char line[HEAD_LEN + 1];
    int len = snprintf(line, sizeof line, "head %020" PRIu64 " %08" PRIx32 " ", seq, crc);
    CHECK(len == HEAD_LEN - HEX_LEN - 1);
    uint32_t check = crc32c(0, line + 5, SEQ_LEN + 1 + HEX_LEN);
    len += snprintf(line + len, sizeof line - (size_t)len, "%08" PRIx32 "\n", check);
    CHECK(len == HEAD_LEN);
    /* A failure does no harm: the head in the file is only older than it could be. */
    ssize_t written = pwrite(lock->fd, line, HEAD_LEN, HEAD_AT);
    (void)written;
}

void store_lock_release(struct store_lock *lock)
{
    if (lock->fd >= 0)
        close(lock->fd);
    lock->fd = -1;
}
