#include "job/checkpoint/shard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "job/checkpoint/blocks.h"
#include "base/crc32c.h"
#include "job/link/error.h"
#include "job/link/settings.h"
#include "job/link/wire.h"

#define PATH_SIZE 4096

static void step_path(const struct shard_id *id, char *path)
{
    snprintf(path, PATH_SIZE, "%s/step-%llu", id->dir, (unsigned long long)id->step);
}

static void shard_path(const struct shard_id *id, const char *suffix, char *path)
{
    snprintf(path, PATH_SIZE, "%s/step-%llu/attempt-%u-rank-%u.shard%s", id->dir,
             (unsigned long long)id->step, id->attempt, id->rank, suffix);
}

static int sync_directory(const char *path, struct phx_error *error)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return job_fail_errno(error, errno, "open %.120s", path);
    int status = fsync(fd) == 0 ? 0 : job_fail_errno(error, errno, "sync %.120s", path);
    close(fd);
    return status;
}

/* Makes every missing directory on the way to `path`; several ranks may do so at once. The last two, those of
 * the checkpoints and of the step, are readable by this user alone; other users may pass the others but not
 * list them. */
static int make_directories(const char *path, struct phx_error *error)
{
    char part[PATH_SIZE];
    size_t len = strnlen(path, sizeof part - 1);
    memcpy(part, path, len);
    part[len] = 0;
    char *step = strrchr(part, '/');
    size_t closed = step != NULL ? (size_t)(step - part) : 0;
    for (size_t i = 1; i <= len; i++) {
        if (part[i] != '/' && part[i] != 0)
            continue;
        char kept = part[i];
        part[i] = 0;
        if (mkdir(part, i < closed ? 0711 : 0700) != 0 && errno != EEXIST)
            return job_fail_errno(error, errno, "create %.120s", part);
        part[i] = kept;
    }
    return 0;
}

/* Makes the directory of the step, and the checkpoint directory when it is missing. */
static int make_directory(const struct shard_id *id, struct phx_error *error)
{
    char path[PATH_SIZE];
    step_path(id, path);
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return 0;
    return errno == ENOENT ? make_directories(path, error)
                           : job_fail_errno(error, errno, "create %.120s", path);
}

/* ---- reading ---- */

int shard_header_decode(const uint8_t bytes[SHARD_HEADER_SIZE], const char *path,
                        struct shard_header *ret_header, struct phx_error *error)
{
    struct shard_header header;
    uint32_t version;
    if (!shard_header_get(bytes, crc32c, &header, &version))
        return job_fail(error, PHX_ERROR_CORRUPT, "%.160s is not a shard, or its header is damaged", path);
    if (version != SHARD_VERSION)
        return job_fail(error, PHX_ERROR_CORRUPT, "%.160s has format version %u, this library reads %d", path,
                        version, SHARD_VERSION);
    *ret_header = header;
    return 0;
}

/* Checks that these bytes are the header of this shard. */
static int check_header(const struct shard_id *id, const uint8_t *bytes, const char *path,
                        struct shard_header *ret_header, struct phx_error *error)
{
    int status = shard_header_decode(bytes, path, ret_header, error);
    if (status != 0)
        return status;
    if (ret_header->step != id->step || ret_header->attempt != id->attempt || ret_header->rank != id->rank)
        return job_fail(error, PHX_ERROR_CORRUPT, "%.160s holds a shard other than its name says", path);
    if (id->world != 0 && ret_header->world != id->world)
        return job_fail(error, PHX_ERROR_INVALID, "%.120s was saved by %u ranks, this world has %u", path,
                        ret_header->world, id->world);
    return 0;
}

/* Reads `len` bytes. Returns false with errno, which is 0 if the file is too short. */
static bool read_all(int fd, void *buf, size_t len)
{
    uint8_t *out = buf;
    while (len > 0) {
        ssize_t got = read(fd, out, len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got < 0 ? errno : 0;
            return false;
        }
        out += got;
        len -= (size_t)got;
    }
    return true;
}

/* Opens the file and reads its header; the descriptor is positioned after it. */
static int open_file(const struct shard_id *id, const char *path, struct shard_header *ret_header,
                     int *ret_fd, struct phx_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return job_fail(error, PHX_ERROR_CORRUPT, "%.160s is missing", path);
    if (fd < 0)
        return job_fail_errno(error, errno, "open %.120s", path);
    uint8_t bytes[SHARD_HEADER_SIZE];
    struct stat info;
    int status;
    if (fstat(fd, &info) != 0)
        status = job_fail_errno(error, errno, "inspect %.120s", path);
    else if (!read_all(fd, bytes, sizeof bytes))
        status = errno != 0 ? job_fail_errno(error, errno, "read %.120s", path)
                            : job_fail(error, PHX_ERROR_CORRUPT, "%.160s is truncated", path);
    else
        status = check_header(id, bytes, path, ret_header, error);
    if (status == 0 && (uint64_t)info.st_size - SHARD_HEADER_SIZE != ret_header->len)
        status = job_fail(error, PHX_ERROR_CORRUPT, "%.120s has %lld bytes, its header says %llu", path,
                          (long long)info.st_size, (unsigned long long)ret_header->len + SHARD_HEADER_SIZE);
    if (status != 0) {
        close(fd);
        return status;
    }
    *ret_fd = fd;
    return 0;
}

static int open_shard(const struct shard_id *id, char *path, struct shard_header *ret_header, int *ret_fd,
                      struct phx_error *error)
{
    shard_path(id, "", path);
    return open_file(id, path, ret_header, ret_fd, error);
}

/* Reads and verifies the data; with `buf` NULL only verifies it. */
static int read_data(int fd, const char *path, const struct shard_header *header, uint8_t *buf,
                     struct phx_error *error)
{
    uint32_t crc;
    int reason = blocks_read(fd, buf, (size_t)header->len, &crc);
    if (reason > 0)
        return job_fail_errno(error, reason, "read %.120s", path);
    if (reason < 0)
        return job_fail(error, PHX_ERROR_CORRUPT, "%.160s is truncated", path);
    return crc == header->data_crc
               ? 0
               : job_fail(error, PHX_ERROR_CORRUPT, "%.160s is damaged: the checksum is wrong", path);
}

int shard_length(const struct shard_id *id, size_t *ret_len, struct phx_error *error)
{
    char path[PATH_SIZE];
    struct shard_header header;
    int fd, status = open_shard(id, path, &header, &fd, error);
    if (status != 0)
        return status;
    close(fd);
    *ret_len = (size_t)header.len;
    return 0;
}

int shard_front(const struct shard_id *id, void *buf, size_t cap, struct shard_header *ret_header,
                size_t *ret_got, struct phx_error *error)
{
    char path[PATH_SIZE];
    int fd, status = open_shard(id, path, ret_header, &fd, error);
    if (status != 0)
        return status;
    size_t len = ret_header->len < cap ? (size_t)ret_header->len : cap;
    if (!read_all(fd, buf, len))
        status = errno != 0 ? job_fail_errno(error, errno, "read %.120s", path)
                            : job_fail(error, PHX_ERROR_CORRUPT, "%.160s is truncated", path);
    close(fd);
    *ret_got = len;
    return status;
}

int shard_read(const struct shard_id *id, void *buf, size_t cap, size_t *ret_len, struct phx_error *error)
{
    char path[PATH_SIZE];
    struct shard_header header;
    int fd, status = open_shard(id, path, &header, &fd, error);
    if (status != 0)
        return status;
    size_t len = (size_t)header.len;
    if (len > cap) {
        *ret_len = len;
        status = job_fail(error, PHX_ERROR_SPACE, "%.120s holds %zu bytes, the buffer %zu", path, len, cap);
    } else if (len > 0) {
        status = read_data(fd, path, &header, buf, error);
    }
    close(fd);
    if (status == 0)
        *ret_len = len;
    return status;
}

static int verify_file(const struct shard_id *id, const char *path, struct phx_error *error)
{
    struct shard_header header;
    int fd, status = open_file(id, path, &header, &fd, error);
    if (status != 0)
        return status;
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    status = read_data(fd, path, &header, NULL, error);
    close(fd);
    return status;
}

int shard_verify(const struct shard_id *id, struct phx_error *error)
{
    char path[PATH_SIZE];
    shard_path(id, "", path);
    return verify_file(id, path, error);
}

/* ---- writing ---- */

static int write_all(int fd, struct iovec *parts, size_t count)
{
    while (count > 0) {
        ssize_t written = writev(fd, parts, count < IOV_MAX ? (int)count : IOV_MAX);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -1;
        size_t rest = (size_t)written;
        while (count > 0 && rest >= parts->iov_len) {
            rest -= parts->iov_len;
            parts++;
            count--;
        }
        if (count > 0) {
            parts->iov_base = (uint8_t *)parts->iov_base + rest;
            parts->iov_len -= rest;
        }
    }
    return 0;
}

/* Reads the file back, from the disk if the kernel allows it: reading the cache would prove nothing. */
static int read_back(const struct shard_id *id, const char *path, struct phx_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return job_fail_errno(error, errno, "open %.120s", path);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    return verify_file(id, path, error);
}

/* Finishes the file at "NAME.tmp": gives it its durable name, or removes it. */
static int publish(const struct shard_id *id, bool verify, const char *name, const char *temporary, int fd,
                   int status, struct phx_error *error)
{
    char directory[PATH_SIZE];
    if (status == 0 && fsync(fd) != 0)
        status = job_fail_errno(error, errno, "sync %.120s", temporary);
    if (status == 0 && verify)
        status = read_back(id, temporary, error);
    if (close(fd) != 0 && status == 0) /* a network file system may report only now that it is full */
        status = job_fail_errno(error, errno, "close %.120s", temporary);
    if (status == 0 && rename(temporary, name) != 0)
        status = job_fail_errno(error, errno, "rename %.120s", temporary);
    if (status != 0) {
        unlink(temporary);
        return status;
    }
    step_path(id, directory);
    status = sync_directory(directory, error);
    return status != 0 ? status : sync_directory(id->dir, error);
}

/* Creates `name` with these contents: all of them, durable, or not at all. */
static int write_file(const struct shard_id *id, bool verify, const char *name, struct iovec *parts,
                      size_t count, struct phx_error *error)
{
    char temporary[PATH_SIZE + 8];
    int status = make_directory(id, error);
    if (status != 0)
        return status;
    snprintf(temporary, sizeof temporary, "%s.tmp", name);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return job_fail_errno(error, errno, "create %.120s", temporary);
    if (write_all(fd, parts, count) != 0)
        status = job_fail_errno(error, errno, "write %.120s", temporary);
    return publish(id, verify, name, temporary, fd, status, error);
}

/* Creates the file. *ret_direct: with O_DIRECT, which not all file systems support. */
static int open_large(const char *temporary, bool *ret_direct)
{
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_DIRECT, 0600);
    *ret_direct = fd >= 0;
    return fd >= 0 || errno != EINVAL ? fd : open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

/* Writes the data, then the header with the checksum. Returns 0 or errno. */
static int fill_large(int fd, bool direct, const struct iovec *data, size_t count,
                      struct shard_header *header)
{
    _Alignas(BLOCKS_ALIGN) uint8_t first[BLOCKS_ALIGN];
    off_t size = (off_t)(SHARD_HEADER_SIZE + header->len);
    if (fallocate(fd, 0, 0, size) != 0 && errno == ENOSPC) /* not all file systems can reserve */
        return errno;
    int reason = blocks_write(fd, direct, data, count, (size_t)header->len, &header->data_crc, first);
    /* the file system accepts O_DIRECT at open, but not in writes */
    if (reason == EINVAL && direct && fcntl(fd, F_SETFL, 0) == 0)
        reason = blocks_write(fd, false, data, count, (size_t)header->len, &header->data_crc, first);
    if (reason != 0)
        return reason;
    shard_header_put(header, crc32c, first);
    if (pwrite(fd, first, sizeof first, 0) != (ssize_t)sizeof first || ftruncate(fd, size) != 0)
        return errno;
    return 0;
}

/* As fill_large, from a complete shard file in memory. */
static int fill_sealed(int fd, bool direct, const uint8_t *file, size_t size)
{
    if (fallocate(fd, 0, 0, (off_t)size) != 0 && errno == ENOSPC)
        return errno;
    int reason = blocks_write_whole(fd, direct, file, size);
    if (reason == EINVAL && direct && fcntl(fd, F_SETFL, 0) == 0)
        reason = blocks_write_whole(fd, false, file, size);
    return reason != 0 ? reason : ftruncate(fd, (off_t)size) != 0 ? errno : 0;
}

/* The contents of a shard: data in parts, whose checksum goes into the header, or a complete file. */
struct content {
    const struct iovec *data;
    size_t count;
    struct shard_header *header;
    const uint8_t *file; /* a complete file; NULL: the parts */
    size_t size;
};

/* As write_file, for a shard that is large enough for several threads. */
static int write_large(const struct shard_id *id, bool verify, const char *name,
                       const struct content *content, struct phx_error *error)
{
    char temporary[PATH_SIZE + 8];
    bool direct;
    int status = make_directory(id, error);
    if (status != 0)
        return status;
    snprintf(temporary, sizeof temporary, "%s.tmp", name);
    int fd = open_large(temporary, &direct);
    if (fd < 0)
        return job_fail_errno(error, errno, "create %.120s", temporary);
    int reason = content->file != NULL
                     ? fill_sealed(fd, direct, content->file, content->size)
                     : fill_large(fd, direct, content->data, content->count, content->header);
    if (reason != 0)
        status = job_fail_errno(error, reason, "write %.120s", temporary);
    return publish(id, verify, name, temporary, fd, status, error);
}

static int write_small(const struct shard_id *id, bool verify, const char *path, const struct iovec *data,
                       size_t count, struct shard_header *header, struct phx_error *error)
{
    uint8_t bytes[SHARD_HEADER_SIZE];
    struct iovec *parts = malloc((count + 1) * sizeof *parts);
    if (parts == NULL)
        return job_fail(error, PHX_ERROR_MEMORY, "out of memory");
    for (size_t i = 0; i < count; i++) {
        header->data_crc = crc32c(header->data_crc, data[i].iov_base, data[i].iov_len);
        parts[i + 1] = data[i];
    }
    shard_header_put(header, crc32c, bytes);
    parts[0] = (struct iovec){bytes, sizeof bytes};
    int status = write_file(id, verify, path, parts, count + 1, error);
    free(parts);
    return status;
}

static int write_shard(const struct shard_id *id, bool verify, const struct iovec *data, size_t count,
                       uint64_t *ret_size, struct phx_error *error)
{
    char path[PATH_SIZE];
    struct shard_header header = {
        .step = id->step, .attempt = id->attempt, .rank = id->rank, .world = id->world, .key = id->key};
    for (size_t i = 0; i < count; i++)
        header.len += data[i].iov_len;
    shard_path(id, "", path);
    int status = header.len < BLOCKS_SMALL
                     ? write_small(id, verify, path, data, count, &header, error)
                     : write_large(id, verify, path, &(struct content){data, count, &header, NULL, 0}, error);
    if (status == 0)
        *ret_size = SHARD_HEADER_SIZE + header.len;
    return status;
}

int shard_write(const struct shard_id *id, const struct iovec *data, size_t count, uint64_t *ret_size,
                struct phx_error *error)
{
    return write_shard(id, false, data, count, ret_size, error);
}

int shard_write_verified(const struct shard_id *id, const struct iovec *data, size_t count,
                         uint64_t *ret_size, struct phx_error *error)
{
    return write_shard(id, true, data, count, ret_size, error);
}

int shard_write_sealed(const struct shard_id *id, bool verify, const uint8_t *file, size_t size,
                       struct phx_error *error)
{
    char path[PATH_SIZE];
    struct iovec whole = {(void *)(uintptr_t)file, size};
    shard_path(id, "", path);
    return size < BLOCKS_SMALL
               ? write_file(id, verify, path, &whole, 1, error)
               : write_large(id, verify, path, &(struct content){.file = file, .size = size}, error);
}

/* ---- the directory ---- */

/* Reads a number at *text, followed by `after`, and moves *text past both. */
static bool skip_number(const char **text, const char *after, uint64_t max, uint64_t *ret_value)
{
    char digits[24];
    size_t len = strspn(*text, "0123456789"), after_len = strlen(after);
    if (len == 0 || len >= sizeof digits || strncmp(*text + len, after, after_len) != 0)
        return false;
    memcpy(digits, *text, len);
    digits[len] = '\0';
    *text += len + after_len;
    return job_parse_number(digits, max, ret_value);
}

enum file_kind { FILE_OTHER, FILE_SHARD, FILE_COMMIT };

static enum file_kind parse_file(const char *name, uint32_t *ret_attempt, uint32_t *ret_rank)
{
    static const char prefix[] = "attempt-", rank_prefix[] = "-rank-";
    uint64_t attempt, rank = 0;
    enum file_kind kind = FILE_OTHER;
    if (strncmp(name, prefix, strlen(prefix)) != 0)
        return FILE_OTHER;
    const char *rest = name + strlen(prefix), *again = rest;
    if (skip_number(&rest, rank_prefix, UINT32_MAX, &attempt) &&
        skip_number(&rest, ".shard", UINT32_MAX, &rank))
        kind = FILE_SHARD;
    else if (skip_number(&again, ".commit", UINT32_MAX, &attempt))
        rest = again, kind = FILE_COMMIT;
    if (kind == FILE_OTHER || (*rest != '\0' && strcmp(rest, ".tmp") != 0))
        return FILE_OTHER;
    *ret_attempt = (uint32_t)attempt;
    *ret_rank = (uint32_t)rank;
    return kind;
}

static bool parse_step(const char *name, uint64_t *ret_step)
{
    static const char prefix[] = "step-";
    return strncmp(name, prefix, strlen(prefix)) == 0 &&
           job_parse_number(name + strlen(prefix), UINT64_MAX, ret_step);
}

static DIR *open_step(DIR *parent, const char *name)
{
    int fd = openat(dirfd(parent), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL && fd >= 0)
        close(fd);
    return dir;
}

void shard_delete_before(const struct shard_id *id, uint64_t keep_from, uint64_t every, bool commits)
{
    DIR *parent = opendir(id->dir);
    struct dirent *entry;
    while (parent != NULL && (entry = readdir(parent)) != NULL) {
        uint64_t step;
        if (!parse_step(entry->d_name, &step) || step >= keep_from || (every > 0 && step % every == 0))
            continue;
        DIR *dir = open_step(parent, entry->d_name);
        struct dirent *file;
        while (dir != NULL && (file = readdir(dir)) != NULL) {
            uint32_t attempt, rank;
            enum file_kind kind = parse_file(file->d_name, &attempt, &rank);
            if (kind == FILE_OTHER || attempt > id->attempt)
                continue;
            if (kind == FILE_COMMIT ? commits : rank % id->world == id->rank)
                unlinkat(dirfd(dir), file->d_name, 0);
        }
        if (dir != NULL)
            closedir(dir);
        unlinkat(dirfd(parent), entry->d_name, AT_REMOVEDIR); /* succeeds for the last rank */
    }
    if (parent != NULL)
        closedir(parent);
}

static bool is_temporary(const char *name)
{
    size_t len = strlen(name);
    return len >= 4 && strcmp(name + len - 4, ".tmp") == 0;
}

bool shard_find_older(struct shard_id *id)
{
    struct shard_id best = *id;
    bool found = false;
    DIR *parent = opendir(id->dir);
    struct dirent *entry, *file;
    while (parent != NULL && (entry = readdir(parent)) != NULL) {
        uint64_t step;
        if (!parse_step(entry->d_name, &step) || step > id->step || (found && step < best.step))
            continue;
        DIR *dir = open_step(parent, entry->d_name);
        while (dir != NULL && (file = readdir(dir)) != NULL) {
            uint32_t attempt, rank;
            if (parse_file(file->d_name, &attempt, &rank) != FILE_SHARD || is_temporary(file->d_name) ||
                (step == id->step && attempt >= id->attempt))
                continue;
            if (!found || step > best.step || attempt > best.attempt) {
                found = true;
                best.step = step;
                best.attempt = attempt;
            }
        }
        if (dir != NULL)
            closedir(dir);
    }
    if (parent != NULL)
        closedir(parent);
    *id = best;
    return found;
}

int shard_mark_committed(const struct shard_id *id, struct phx_error *error)
{
    char path[PATH_SIZE], contents[128];
    snprintf(path, sizeof path, "%s/step-%llu/attempt-%u.commit", id->dir, (unsigned long long)id->step,
             id->attempt);
    int len = snprintf(contents, sizeof contents, "phalanx checkpoint\nstep %llu\nattempt %u\nworld %u\n",
                       (unsigned long long)id->step, id->attempt, id->world);
    struct iovec part = {contents, (size_t)len};
    return write_file(id, false, path, &part, 1, error);
}

static void survey_step(DIR *dir, uint64_t step, struct shard_survey *survey)
{
    struct dirent *file;
    while ((file = readdir(dir)) != NULL) {
        uint32_t attempt, rank;
        enum file_kind kind = parse_file(file->d_name, &attempt, &rank);
        if (kind == FILE_OTHER)
            continue;
        if (attempt >= survey->next_attempt && attempt < UINT32_MAX)
            survey->next_attempt = attempt + 1;
        bool mark = kind == FILE_COMMIT && !is_temporary(file->d_name);
        if (mark && (!survey->committed || step > survey->step ||
                     (step == survey->step && attempt > survey->attempt))) {
            survey->committed = true;
            survey->step = step;
            survey->attempt = attempt;
        }
    }
}

int shard_survey(const char *path, struct shard_survey *ret_survey, struct phx_error *error)
{
    struct shard_survey survey = {0};
    DIR *parent = opendir(path);
    if (parent == NULL && errno != ENOENT)
        return job_fail_errno(error, errno, "open %.120s", path);
    struct dirent *entry;
    while (parent != NULL && (entry = readdir(parent)) != NULL) {
        uint64_t step;
        if (!parse_step(entry->d_name, &step))
            continue;
        DIR *dir = open_step(parent, entry->d_name);
        if (dir != NULL) {
            survey_step(dir, step, &survey);
            closedir(dir);
        }
    }
    if (parent != NULL)
        closedir(parent);
    *ret_survey = survey;
    return 0;
}
