/* See cache.h. */
#include "job/fabric/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "core/fabric/pattern.h"

enum { PIECE_BYTES = 1 << 20 };

static void path_of(const char *folder, const struct torus *torus, struct buf *ret_path)
{
    char key[PATTERN_KEY_MAX];
    pattern_key(torus, key);
    buf_printf(ret_path, "%s/%s.route", folder, key);
}

/* --- reading -------------------------------------------------------------------------------------------- */

static int read_all(int fd, size_t size, struct buf *ret_bytes)
{
    size_t begin = ret_bytes->len, len = 0;
    buf_reserve(ret_bytes, size);
    while (len < size) {
        ssize_t got = read(fd, ret_bytes->data + begin + len, size - len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        len += (size_t)got;
    }
    ret_bytes->len = begin + len;
    ret_bytes->data[ret_bytes->len] = 0;
    return 0;
}

static int read_open(int fd, const char *path, size_t most, struct buf *ret_bytes, struct error *error)
{
    struct stat info;
    if (fstat(fd, &info) < 0)
        return error_set_errno(error, errno, "%s", path);
    if (!S_ISREG(info.st_mode))
        return error_set(error, ERROR_INVALID, "%s: expected a file", path);
    if ((size_t)info.st_size > most)
        return error_set(error, ERROR_LIMIT, "%s: %lld bytes, more than a pattern of this slice has", path,
                         (long long)info.st_size);
    return read_all(fd, (size_t)info.st_size, ret_bytes) < 0 ? error_set_errno(error, errno, "%s", path) : 0;
}

static int read_file(const char *path, size_t most, struct buf *ret_bytes, struct error *error)
{
    /* the name may be that of anything, such as a pipe */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? error_set(error, ERROR_NOT_FOUND, "%s: there is no such file", path)
                               : error_set_errno(error, errno, "%s", path);
    int status = read_open(fd, path, most, ret_bytes, error);
    close(fd);
    return status;
}

int route_cache_read(const char *folder, const struct torus *torus, struct buf *ret_bytes,
                     struct error *error)
{
    struct buf path BUF_CLEANUP = {0};
    path_of(folder, torus, &path);
    return read_file(path.data, pattern_size_max(torus), ret_bytes, error);
}

/* --- writing -------------------------------------------------------------------------------------------- */

/* Writes all bytes durably. Returns false with errno: ECANCELED when `hurry` (NULL: never) is set. */
static bool write_all(int fd, const struct buf *bytes, const atomic_bool *hurry)
{
    for (size_t at = 0; at < bytes->len;) {
        size_t left = bytes->len - at;
        if (hurry != NULL && atomic_load(hurry))
            return errno = ECANCELED, false;
        ssize_t put = write(fd, bytes->data + at, left < PIECE_BYTES ? left : PIECE_BYTES);
        if (put < 0 && errno != EINTR)
            return false;
        at += put > 0 ? (size_t)put : 0;
    }
    return fsync(fd) == 0;
}

/* Makes the rename durable. If folders cannot be synced, the file may be missing after a crash. */
static void sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        fsync(fd), close(fd);
}

static int replace(const char *folder, const char *path, const struct buf *bytes, const atomic_bool *hurry,
                   struct error *error)
{
    struct buf beside BUF_CLEANUP = {0};
    buf_printf(&beside, "%s.XXXXXX", path);
    int fd = mkostemp(beside.data, O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "%s", path);
    bool good = fchmod(fd, 0644) == 0 && write_all(fd, bytes, hurry);
    int reason = errno;
    bool closed = close(fd) == 0;
    reason = good && !closed ? errno : reason;
    if (good && closed && rename(beside.data, path) == 0) {
        sync_folder(folder);
        return 0;
    }
    reason = good && closed ? errno : reason;
    unlink(beside.data);
    return error_set_errno(error, reason, "%s", path);
}

static int keep(const char *folder, const char *path, const struct buf *bytes, size_t most,
                const atomic_bool *hurry, struct error *error)
{
    struct buf present BUF_CLEANUP = {0};
    if (read_file(path, most, &present, NULL) == 0 && str_equal(buf_str(&present), buf_str(bytes)))
        return 0; /* another process has written it */
    return replace(folder, path, bytes, hurry, error);
}

int route_cache_write(const char *folder, const struct torus *torus, const struct route *route,
                      struct error *error)
{
    struct buf path BUF_CLEANUP = {0}, bytes BUF_CLEANUP = {0};
    path_of(folder, torus, &path);
    pattern_pack(torus, route, &bytes);
    return keep(folder, path.data, &bytes, pattern_size_max(torus), NULL, error);
}

/* --- in a thread ---------------------------------------------------------------------------------------- */

struct route_keeper {
    pthread_t thread;
    bool runs; /* the thread was started */
    atomic_bool hurry, ended;
    struct buf folder, path, bytes;
    size_t most;
    struct error error; /* valid once `ended` is set */
};

static void *run_keeper(void *context)
{
    struct route_keeper *keeper = context;
    if (!atomic_load(&keeper->hurry))
        keep(keeper->folder.data, keeper->path.data, &keeper->bytes, keeper->most, &keeper->hurry,
             &keeper->error);
    atomic_store(&keeper->ended, true);
    return NULL;
}

struct route_keeper *route_cache_begin(const char *folder, const struct torus *torus,
                                       const struct route *route)
{
    struct route_keeper *keeper = mem_alloc(sizeof *keeper);
    sigset_t all, before;
    buf_printf(&keeper->folder, "%s", folder);
    path_of(folder, torus, &keeper->path);
    pattern_pack(torus, route, &keeper->bytes);
    keeper->most = pattern_size_max(torus);
    sigfillset(&all); /* the program's own threads handle its signals */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int reason = pthread_create(&keeper->thread, NULL, run_keeper, keeper);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    keeper->runs = reason == 0;
    if (!keeper->runs) {
        error_set_errno(&keeper->error, reason, "%s", keeper->path.data);
        atomic_store(&keeper->ended, true);
    }
    return keeper;
}

const struct error *route_cache_failure(const struct route_keeper *keeper)
{
    return atomic_load(&keeper->ended) && keeper->error.code != ERROR_NONE ? &keeper->error : NULL;
}

void route_cache_end(struct route_keeper *keeper, bool hurry)
{
    if (keeper == NULL)
        return;
    atomic_store(&keeper->hurry, hurry);
    if (keeper->runs)
        pthread_join(keeper->thread, NULL);
    buf_done(&keeper->folder);
    buf_done(&keeper->path);
    buf_done(&keeper->bytes);
    mem_free(keeper);
}
