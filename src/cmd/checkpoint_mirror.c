#include "cmd/checkpoint_mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/objectstore/transfer.h"
#include "job/checkpoint/shard_format.h"
#include "os/folder.h"

void checkpoint_mirror_remove(const char *folder)
{
    os_folder_remove(AT_FDCWD, folder);
}

static int copy_header(struct object_store *store, const char *key, int fd, struct error *error)
{
    uint8_t head[SHARD_HEADER_SIZE];
    uint64_t total;
    size_t got;
    int rc = bucket_get(store, key, 0, head, sizeof head, &got, &total, error);
    if (rc == 0 && (write(fd, head, got) != (ssize_t)got || ftruncate(fd, (off_t)total) < 0))
        rc = error_set_errno(error, errno, "writing %s", key);
    return rc;
}

/* Copies a shard. A damaged shard becomes a file without a header, which the reader reports. */
static int copy_whole(const struct store_place *place, const char *key, int fd, uint64_t step,
                      uint32_t attempt, uint32_t rank, struct error *error)
{
    uint64_t bytes;
    struct shard_transfer transfer = {
        .place = place, .key = key, .fd = fd, .step = step, .attempt = attempt, .rank = rank};
    int rc = shard_download(&transfer, &bytes, error);
    return rc == ERROR_CORRUPT ? 0 : rc;
}

static int copy(const struct store_place *place, struct object_store *store, const char *folder,
                const char *key, bool whole, struct error *error)
{
    char path[SHARD_KEY_MAX + 64];
    uint64_t step;
    uint32_t attempt, rank;
    if (!shard_key_parse(str_from(key), &step, &attempt, &rank))
        return 0;
    snprintf(path, sizeof path, "%s/step-%llu", folder, (unsigned long long)step);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "making %s", path);
    snprintf(path, sizeof path, "%s/%s", folder, key);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(error, errno, "making %s", path);
    int rc =
        whole ? copy_whole(place, key, fd, step, attempt, rank, error) : copy_header(store, key, fd, error);
    close(fd);
    return rc;
}

int checkpoint_mirror(const char *address, const char *folder, int64_t step, bool whole, struct error *error)
{
    struct store_place place;
    struct object_store *store = NULL;
    struct object_list list = {0};
    struct arena arena ARENA_CLEANUP = {0};
    char start[40] = "step-";
    if (step >= 0)
        snprintf(start, sizeof start, "step-%lld/", (long long)step);
    int rc = store_place_parse(address, &place, error);
    if (rc == 0)
        rc = object_store_open(&place, NULL, &store, error);
    if (rc == 0)
        rc = bucket_list(store, start, &arena, &list, error);
    for (size_t i = 0; i < list.entries.len && rc == 0; i++)
        rc = copy(&place, store, folder, arena_strdup(&arena, list.entries.items[i].key), whole, error);
    if (rc == 0 && list.entries.len == 0)
        rc = error_set(error, ERROR_NOT_FOUND, "%s: contains no checkpoint%s", address,
                       step >= 0 ? " of that step" : "");
    vec_done(&list.entries);
    object_store_close(store);
    return rc;
}
