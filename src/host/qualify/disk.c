/* disk.c - writes and syncs a file without a name, reads it back past the page cache and compares it. */
#include "host/qualify/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1 << 20, ALIGNMENT = 4096, SYNCS = 9 };
#define DISK_MAX (UINT64_C(256) << 20)

struct file {
    int fd;
    bool direct;
    char *chunk, *wanted; /* [CHUNK], aligned */
    uint64_t written;     /* chunks */
};

static void fill(char *chunk, uint64_t number)
{
    for (size_t i = 0; i < CHUNK; i += sizeof(uint64_t)) {
        uint64_t noise = test_noise(number * CHUNK + i);
        memcpy(chunk + i, &noise, sizeof noise);
    }
}

/* Opens the file. Returns 0 or an errno. If the file system does not support O_DIRECT, the page cache is told
 * to drop the pages instead. */
static int open_file(const char *directory, struct file *file)
{
    char path[4096];
    int len = snprintf(path, sizeof path, "%s/phalanx-qualify-XXXXXX", directory);
    if (len < 0 || (size_t)len >= sizeof path)
        return ENAMETOOLONG;
    file->fd = mkostemp(path, O_CLOEXEC);
    if (file->fd < 0)
        return errno;
    unlink(path);
    int flags = fcntl(file->fd, F_GETFL);
    file->direct = fcntl(file->fd, F_SETFL, flags | O_DIRECT) == 0;
    return 0;
}

/* Writes as much as a third of the time allows. */
static bool write_file(struct file *file, uint64_t bytes, int64_t until_ns, struct test_answer *answer)
{
    int64_t begun_ns = test_now_ns();
    do {
        fill(file->chunk, file->written);
        ssize_t count = pwrite(file->fd, file->chunk, CHUNK, (off_t)(file->written * CHUNK));
        if (count < 0 && errno == EINVAL && file->direct) {
            file->direct = false;
            fcntl(file->fd, F_SETFL, fcntl(file->fd, F_GETFL) & ~O_DIRECT);
            continue;
        }
        if (count != CHUNK)
            return test_fail(answer, "writing to the disk: %s", count < 0 ? strerror(errno) : "it is full");
        file->written++;
    } while (file->written * CHUNK < bytes && test_now_ns() < until_ns);
    if (fdatasync(file->fd) < 0)
        return test_fail(answer, "syncing the disk: %s", strerror(errno));
    int64_t took_ns = test_now_ns() - begun_ns;
    test_figure(answer, "disk/write-mb-per-s",
                (double)(file->written * CHUNK) / ((double)(took_ns > 0 ? took_ns : 1) / 1e9) / 1e6);
    return true;
}

/* Measures the median time until a small write is durable. */
static bool sync_file(struct file *file, struct test_answer *answer)
{
    int64_t times_ns[SYNCS];
    fill(file->chunk, 0);
    for (int i = 0; i < SYNCS; i++) {
        int64_t begun_ns = test_now_ns();
        if (pwrite(file->fd, file->chunk, ALIGNMENT, 0) != ALIGNMENT || fdatasync(file->fd) < 0)
            return test_fail(answer, "syncing the disk: %s", strerror(errno));
        times_ns[i] = test_now_ns() - begun_ns;
    }
    test_figure(answer, "disk/sync-ms", (double)test_median(times_ns, SYNCS) / 1e6);
    return true;
}

static bool read_file(struct file *file, int64_t until_ns, struct test_answer *answer)
{
    int64_t took_ns = 0;
    uint64_t read = 0;
    posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
    for (; read < file->written && (read == 0 || test_now_ns() < until_ns); read++) {
        int64_t begun_ns = test_now_ns();
        ssize_t count = pread(file->fd, file->chunk, CHUNK, (off_t)(read * CHUNK));
        took_ns += test_now_ns() - begun_ns;
        if (count != CHUNK)
            return test_fail(answer, "reading from the disk: %s",
                             count < 0 ? strerror(errno) : "bytes are missing");
        fill(file->wanted, read);
        if (memcmp(file->chunk, file->wanted, CHUNK) != 0)
            return test_fail(answer, "the disk gave back other bytes than were written, in MiB %llu",
                             (unsigned long long)read);
    }
    test_figure(answer, "disk/read-mb-per-s",
                (double)(read * CHUNK) / ((double)(took_ns > 0 ? took_ns : 1) / 1e9) / 1e6);
    return true;
}

bool test_disk(const struct qualify_options *options, struct test_answer *answer)
{
    struct file file = {.fd = -1};
    const char *directory = options->directory ? options->directory : ".";
    int64_t budget_ns = options->budget_ns, begun_ns = test_now_ns();
    int error = open_file(directory, &file);
    if (error)
        return test_fail(answer, "making a file in %s: %s", directory, strerror(error));
    file.chunk = aligned_alloc(ALIGNMENT, CHUNK);
    file.wanted = aligned_alloc(ALIGNMENT, CHUNK);
    bool good = file.chunk && file.wanted ? true : test_fail(answer, "there is no memory");
    good = good && write_file(&file, options->disk_bytes ? options->disk_bytes : DISK_MAX,
                              begun_ns + budget_ns / 2, answer);
    good = good && sync_file(&file, answer);
    good = good && read_file(&file, begun_ns + budget_ns, answer);
    free(file.chunk);
    free(file.wanted);
    close(file.fd);
    return good;
}
