#include "job/checkpoint/copies.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "job/link/error.h"
#include "job/checkpoint/held.h"
#include "job/checkpoint/shard.h"

#define PATH_SIZE 4096

/* Reads the header of a slot. Returns false if the slot is not valid. */
static bool look_at(const char *path, struct shard_header *ret_header)
{
    uint8_t bytes[SHARD_HEADER_SIZE];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool sealed = fd >= 0 && pread(fd, bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes &&
                  shard_header_decode(bytes, path, ret_header, NULL) == 0;
    if (fd >= 0)
        close(fd);
    return sealed;
}

/* Chooses the slot for the copy, and reads its present header. */
static void choose_slot(const char *dir, uint64_t keep_step, uint32_t keep_attempt, struct copy *copy)
{
    int best = -1;
    struct shard_header oldest = {0};
    copy->offer.slot = 0; /* both hold the copy to keep: one of them stays */
    for (uint8_t slot = 0; slot < PEER_SLOTS; slot++) {
        struct offer place = {.rank = copy->offer.rank, .place = OFFER_COPY, .slot = slot};
        struct shard_header header;
        char path[PATH_SIZE];
        offer_path(dir, &place, path, sizeof path);
        if (!look_at(path, &header)) {
            copy->offer.slot = slot;
            copy->any_base = false;
            return;
        }
        if (header.step == keep_step && header.attempt == keep_attempt)
            continue;
        if (best < 0 || plan_compare(header.step, header.attempt, oldest.step, oldest.attempt) < 0) {
            best = slot;
            oldest = copy->base = header;
            copy->offer.slot = slot;
            copy->any_base = true;
        }
    }
}

/* ---- maps of recent slots ---- */

static void drop_map(struct copy_map *item)
{
    if (item->map != NULL) {
        munmap(item->map, item->mapped);
        close(item->fd);
    }
    *item = (struct copy_map){0};
}

void copy_maps_done(struct copy_maps *maps)
{
    for (size_t i = 0; i < COPY_MAPS; i++)
        drop_map(&maps->items[i]);
}

/* Moves the map of this file to the copy and returns true, if the file is mapped. Unmaps a file that was
 * deleted in the meantime or has become too short. */
static bool take_map(struct copy_maps *maps, struct copy *copy, const struct stat *file, size_t size)
{
    bool found = false;
    for (size_t i = 0; i < COPY_MAPS; i++) {
        struct copy_map *item = &maps->items[i];
        struct stat info;
        if (item->map == NULL)
            continue;
        bool there = fstat(item->fd, &info) == 0 && info.st_nlink > 0;
        bool same = there && info.st_dev == file->st_dev && info.st_ino == file->st_ino;
        if (same && item->mapped >= size && (size_t)info.st_size >= item->mapped) {
            copy->map = item->map;
            copy->mapped = item->mapped;
            close(item->fd);
            *item = (struct copy_map){0};
            found = true;
        } else if (same || !there) {
            drop_map(item);
        }
    }
    return found;
}

/* ---- a copy ---- */

static int map_file(struct copy *copy, const char *path, size_t size, struct copy_maps *maps,
                    struct phx_error *error)
{
    struct stat info;
    copy->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (copy->fd < 0 || fstat(copy->fd, &info) != 0)
        return job_fail_errno(error, errno, "open %.120s", path);
    uint8_t zero[SHARD_HEADER_SIZE] = {0};
    size_t before = (size_t)info.st_size;
    if (before >= sizeof zero && pwrite(copy->fd, zero, sizeof zero, 0) != (ssize_t)sizeof zero)
        return job_fail_errno(error, errno, "write %.120s", path);
    int reason = before < size ? posix_fallocate(copy->fd, 0, (off_t)size) : 0;
    if (reason != 0 && ftruncate(copy->fd, info.st_size) != 0)
        return job_fail_errno(error, errno, "cut %.120s", path);
    if (reason == ENOSPC || reason == ENOMEM || reason == EFBIG)
        return job_fail(error, PHX_ERROR_SPACE, "there is no memory for a copy of %zu bytes in %.120s", size,
                        path);
    if (reason != 0)
        return job_fail_errno(error, reason, "make %.120s", path);
    if (take_map(maps, copy, &info, size))
        return 0;
    copy->map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, copy->fd, 0);
    copy->mapped = size;
    return copy->map != MAP_FAILED ? 0 : job_fail_errno(error, errno, "map %.120s", path);
}

/* Returns the total size of all copies in the folder except the file `but`. */
static uint64_t copies_bytes(const char *dir, const char *but)
{
    DIR *folder = opendir(dir);
    uint64_t bytes = 0;
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        struct stat info;
        if (strncmp(entry->d_name, "peer-", 5) == 0 && strcmp(entry->d_name, but) != 0 &&
            fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0)
            bytes += (uint64_t)info.st_size;
    }
    if (folder != NULL)
        closedir(folder);
    return bytes;
}

/* Returns half the size of the file system; the other half is for the ranks' own slots. Size 0 is a tmpfs
 * without a limit. */
static uint64_t half_of(const char *dir)
{
    struct statvfs info;
    bool known = statvfs(dir, &info) == 0 && info.f_blocks > 0;
    return known ? (uint64_t)info.f_blocks * info.f_frsize / 2 : UINT64_MAX;
}

static int check_quota(const char *dir, const char *path, uint64_t quota, size_t size,
                       struct phx_error *error)
{
    uint64_t most = quota > 0 ? quota : half_of(dir);
    const char *name = strrchr(path, '/');
    uint64_t others = copies_bytes(dir, name != NULL ? name + 1 : path);
    if (size <= most && others <= most - size)
        return 0;
    return job_fail(error, PHX_ERROR_SPACE, "copies of other ranks may take %llu bytes in %.120s",
                    (unsigned long long)most, dir);
}

int copy_begin(const char *dir, const struct offer *offer, uint64_t keep_step, uint32_t keep_attempt,
               uint64_t quota, struct copy_maps *maps, struct copy *ret_copy, struct phx_error *error)
{
    struct copy copy = {.fd = -1, .map = MAP_FAILED, .offer = *offer};
    char path[PATH_SIZE];
    int status = held_folder(dir, true, error);
    if (status == 0 && offer->len > SIZE_MAX / 2)
        status = job_fail(error, PHX_ERROR_SPACE, "a copy of %llu bytes", (unsigned long long)offer->len);
    if (status == 0) {
        copy.offer.place = OFFER_COPY;
        choose_slot(dir, keep_step, keep_attempt, &copy);
        offer_path(dir, &copy.offer, path, sizeof path);
        status = check_quota(dir, path, quota, SHARD_HEADER_SIZE + (size_t)offer->len, error);
    }
    if (status == 0) {
        status = map_file(&copy, path, SHARD_HEADER_SIZE + (size_t)offer->len, maps, error);
    }
    if (status != 0)
        copy_end(&copy, maps);
    else
        *ret_copy = copy;
    return status;
}

uint8_t *copy_data(const struct copy *copy)
{
    return copy->map + SHARD_HEADER_SIZE;
}

void copy_seal(const struct copy *copy)
{
    const struct offer *offer = &copy->offer;
    struct shard_header header = {
        .step = offer->step,
        .attempt = offer->attempt,
        .rank = offer->rank,
        .world = offer->world,
        .data_crc = offer->crc,
        .len = offer->len,
        .key = offer->key,
    };
    atomic_thread_fence(memory_order_release); /* writes the header only after the data */
    shard_header_put(&header, crc32c, copy->map);
}

void copy_end(struct copy *copy, struct copy_maps *maps)
{
    if (copy->map != MAP_FAILED && copy->map != NULL) {
        struct copy_map *item = &maps->items[maps->next++ % COPY_MAPS];
        drop_map(item);
        *item = (struct copy_map){copy->fd, copy->map, copy->mapped};
    } else if (copy->fd >= 0) {
        close(copy->fd);
    }
    *copy = (struct copy){.fd = -1};
}
