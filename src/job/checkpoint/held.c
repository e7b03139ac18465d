#include "job/checkpoint/held.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "job/link/error.h"
#include "job/checkpoint/shard.h"

#define PATH_SIZE 4096
#define PIECE     ((size_t)16 << 20) /* of memory allocated in advance: takes some milliseconds */

static void slot_path(const struct held *held, int slot, char *path)
{
    snprintf(path, PATH_SIZE, "%s/rank-%u.%d", held->dir, held->rank, slot);
}

static void fence_path(const struct held *held, char *path)
{
    snprintf(path, PATH_SIZE, "%s/rank-%u.fence", held->dir, held->rank);
}

/* Opens or creates a file, extends it to at least `size` bytes, and maps all of it. */
static int open_mapped(const char *path, size_t size, int *ret_fd, uint8_t **ret_map, size_t *ret_mapped,
                       struct phx_error *error)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat info;
    if (fd < 0)
        return job_fail_errno(error, errno, "open %.120s", path);
    uint8_t *map = MAP_FAILED;
    if (fstat(fd, &info) == 0 && ((size_t)info.st_size >= size || posix_fallocate(fd, 0, (off_t)size) == 0)) {
        size = (size_t)info.st_size > size ? (size_t)info.st_size : size;
        map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (map == MAP_FAILED) {
        int status = job_fail_errno(error, errno, "map %.120s", path);
        close(fd);
        return status;
    }
    *ret_fd = fd;
    *ret_map = map;
    *ret_mapped = size;
    return 0;
}

static void look_at(const struct held *held, struct held_slot *slot)
{
    struct shard_header header;
    const struct held_slot before = *slot;
    slot->checked = 0;
    bool whole = shard_header_decode(slot->map, "", &header, NULL) == 0 &&
                 header.len <= slot->mapped - SHARD_HEADER_SIZE;
    slot->sealed = whole && header.rank == held->rank && header.world == held->world;
    slot->left = whole && !slot->sealed;
    if (!whole)
        return;
    slot->step = header.step;
    slot->attempt = header.attempt;
    if (!slot->sealed)
        return;
    slot->data_crc = header.data_crc;
    slot->len = (size_t)header.len;
    slot->key = header.key;
    if (before.sealed && before.step == slot->step && before.attempt == slot->attempt &&
        before.data_crc == slot->data_crc && before.len == slot->len)
        slot->checked = before.checked;
}

static int fenced(const struct held *held, struct phx_error *error)
{
    uint32_t newest = atomic_load((_Atomic uint32_t *)&held->mark->fence);
    if (newest <= held->attempt)
        return 0;
    return job_fail(error, PHX_ERROR_FENCED, "attempt %u of this rank exists, this is %u", newest,
                    held->attempt);
}

static int open_fence(struct held *held, struct phx_error *error)
{
    char path[PATH_SIZE];
    int fd;
    uint8_t *map;
    size_t mapped;
    fence_path(held, path);
    int status = open_mapped(path, sizeof *held->mark, &fd, &map, &mapped, error);
    if (status != 0)
        return status;
    close(fd);
    held->mark = (struct held_mark *)(void *)map;
    return 0;
}

static int raise_fence(struct held *held, struct phx_error *error)
{
    _Atomic uint32_t *fence = (_Atomic uint32_t *)&held->mark->fence;
    uint32_t seen = atomic_load(fence);
    while (seen < held->attempt && !atomic_compare_exchange_weak(fence, &seen, held->attempt))
        ;
    return fenced(held, error);
}

/* Returns true if the folder has no files: the agent creates it before any task holds a checkpoint. */
static bool is_empty(const char *dir)
{
    DIR *folder = opendir(dir);
    int count = 0; /* two: itself and its parent */
    while (folder != NULL && count <= 2 && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        closedir(folder);
    return folder != NULL && count <= 2;
}

int held_folder(const char *dir, bool make, struct phx_error *error)
{
    struct stat info;
    if (make && mkdir(dir, 0700) != 0 && errno != EEXIST)
        return job_fail_errno(error, errno, "create %.120s", dir);
    if (lstat(dir, &info) != 0)
        return !make && errno == ENOENT ? job_fail(error, PHX_ERROR_NONE, "%.120s does not exist", dir)
                                        : job_fail_errno(error, errno, "inspect %.120s", dir);
    if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid())
        return job_fail(error, PHX_ERROR_IO, "%.120s does not belong to this user, or is not a directory",
                        dir);
    return !make && is_empty(dir) ? job_fail(error, PHX_ERROR_NONE, "%.120s is empty", dir) : 0;
}

int held_open(struct held *ret_held, const char *dir, bool make, uint32_t rank, uint32_t world,
              uint32_t attempt, struct phx_error *error)
{
    struct held *held = ret_held;
    *held = (struct held){.rank = rank, .world = world, .attempt = attempt};
    size_t len = strlen(dir);
    for (int i = 0; i < HELD_SLOTS; i++)
        held->slots[i].fd = -1;
    if (len >= sizeof held->dir)
        return job_fail(error, PHX_ERROR_INVALID, "the path of held checkpoints is too long");
    memcpy(held->dir, dir, len + 1);
    int status = held_folder(dir, make, error);
    if (status == 0)
        status = open_fence(held, error);
    if (status == 0)
        status = raise_fence(held, error);
    for (int i = 0; i < HELD_SLOTS && status == 0; i++) {
        char path[PATH_SIZE];
        struct held_slot *slot = &held->slots[i];
        slot_path(held, i, path);
        status = open_mapped(path, SHARD_HEADER_SIZE, &slot->fd, &slot->map, &slot->mapped, error);
        if (status == 0)
            look_at(held, slot);
    }
    if (status != 0)
        held_close(held);
    return status;
}

/* The file may have grown. */
static int look_again(struct held *held, int index, struct phx_error *error)
{
    struct held_slot *slot = &held->slots[index];
    struct stat info;
    if (fstat(slot->fd, &info) != 0)
        return job_fail_errno(error, errno, "inspect %.120s", held->dir);
    size_t size = (size_t)info.st_size;
    if (size > slot->mapped) {
        uint8_t *map = mremap(slot->map, slot->mapped, size, MREMAP_MAYMOVE);
        if (map == MAP_FAILED)
            return job_fail_errno(error, errno, "map %zu bytes", size);
        slot->map = map;
        slot->mapped = size;
    }
    look_at(held, slot);
    return 0;
}

/* Returns true if the slot's file still has its name, and false after the folder was cleared. */
static bool is_there(const struct held *held, int index)
{
    char path[PATH_SIZE];
    struct stat own, named;
    slot_path(held, index, path);
    return fstat(held->slots[index].fd, &own) == 0 && lstat(path, &named) == 0 &&
           own.st_ino == named.st_ino && own.st_dev == named.st_dev;
}

int held_renew(struct held *held, uint32_t attempt, struct phx_error *error)
{
    held->attempt = attempt;
    int status = raise_fence(held, error);
    for (int i = 0; i < HELD_SLOTS && status == 0; i++)
        status = is_there(held, i) ? look_again(held, i, error)
                                   : job_fail(error, PHX_ERROR_NONE, "%.120s was cleared", held->dir);
    if (status != 0)
        held_close(held);
    return status;
}

void held_close(struct held *held)
{
    for (int i = 0; i < HELD_SLOTS; i++) {
        struct held_slot *slot = &held->slots[i];
        if (slot->fd < 0)
            continue;
        munmap(slot->map, slot->mapped);
        close(slot->fd);
        *slot = (struct held_slot){.fd = -1};
    }
    if (held->mark != NULL)
        munmap(held->mark, sizeof *held->mark);
    held->mark = NULL;
}

void held_discard(struct held *held)
{
    char path[PATH_SIZE];
    bool own = held->mark != NULL && fenced(held, NULL) == 0;
    for (int i = 0; i < HELD_SLOTS && own; i++) {
        slot_path(held, i, path);
        unlink(path);
    }
    fence_path(held, path);
    if (own && unlink(path) == 0)
        rmdir(held->dir); /* succeeds for the machine's last rank */
    held_close(held);
}

/* ---- the state of slots ---- */

int held_find(const struct held *held, uint64_t step, uint32_t attempt)
{
    for (int i = 0; i < HELD_SLOTS; i++)
        if (held->slots[i].sealed && held->slots[i].step == step && held->slots[i].attempt == attempt)
            return i;
    return -1;
}

bool held_left(const struct held *held, int slot, uint64_t step, uint32_t attempt)
{
    const struct held_slot *at = &held->slots[slot];
    return at->left && at->step == step && at->attempt == attempt;
}

static bool is_older(uint64_t step, uint32_t attempt, uint64_t than_step, uint32_t than_attempt)
{
    return step < than_step || (step == than_step && attempt < than_attempt);
}

bool held_find_older(const struct held *held, uint64_t *step, uint32_t *attempt)
{
    const struct held_slot *best = NULL;
    for (int i = 0; i < HELD_SLOTS; i++) {
        const struct held_slot *slot = &held->slots[i];
        if (slot->sealed && is_older(slot->step, slot->attempt, *step, *attempt) &&
            (best == NULL || is_older(best->step, best->attempt, slot->step, slot->attempt)))
            best = slot;
    }
    if (best == NULL)
        return false;
    *step = best->step;
    *attempt = best->attempt;
    return true;
}

void held_copied(struct held *held, uint64_t step, uint32_t attempt)
{
    _Atomic uint32_t *known = (_Atomic uint32_t *)&held->mark->copied_attempt;
    if (fenced(held, NULL) != 0)
        return;
    atomic_store(known, 0); /* invalid while step and attempt do not match */
    held->mark->copied_step = step;
    atomic_store(known, attempt + 1);
}

void held_forget_copied(struct held *held)
{
    if (fenced(held, NULL) == 0)
        atomic_store((_Atomic uint32_t *)&held->mark->copied_attempt, 0);
}

bool held_last_copied(const struct held *held, uint64_t *ret_step, uint32_t *ret_attempt)
{
    uint32_t known = atomic_load((_Atomic uint32_t *)&held->mark->copied_attempt);
    *ret_step = held->mark->copied_step;
    *ret_attempt = known - 1;
    return known > 0;
}

bool held_verify(struct held *held, int slot)
{
    struct held_slot *at = &held->slots[slot];
    if (at->sealed && at->checked == 1 + (uint64_t)held->attempt)
        return true;
    at->sealed = at->sealed && crc32c(0, at->map + SHARD_HEADER_SIZE, at->len) == at->data_crc;
    at->checked = at->sealed ? 1 + (uint64_t)held->attempt : 0;
    return at->sealed;
}

bool held_known(const struct held *held, int slot)
{
    return held->slots[slot].sealed && held->slots[slot].checked != 0;
}

int held_read(const struct held *held, int slot, void *buf, size_t cap, size_t *ret_len,
              struct phx_error *error)
{
    const struct held_slot *at = &held->slots[slot];
    *ret_len = at->len;
    if (at->len > cap)
        return job_fail(error, PHX_ERROR_SPACE, "%zu bytes are held in memory, the buffer has %zu", at->len,
                        cap);
    if (at->len > 0)
        memcpy(buf, at->map + SHARD_HEADER_SIZE, at->len);
    return 0;
}

int held_reload(struct held *held, int index, struct phx_error *error)
{
    held->slots[index].sealed = false;
    return look_again(held, index, error);
}

/* ---- writing ---- */

static void unseal(struct held_slot *slot)
{
    slot->sealed = slot->left = false;
    memset(slot->map, 0, SHARD_HEADER_SIZE);
    atomic_thread_fence(memory_order_release); /* overwrites the data only afterwards */
}

static int grow(const struct held *held, struct held_slot *slot, size_t size, struct phx_error *error)
{
    /* otherwise a full file system is a SIGBUS in the copy */
    int reason = posix_fallocate(slot->fd, 0, (off_t)size);
    if (reason != 0 && ftruncate(slot->fd, (off_t)slot->mapped) != 0)
        return job_fail_errno(error, errno, "cut %.120s", held->dir);
    if (reason == ENOSPC || reason == ENOMEM || reason == EFBIG)
        return job_fail(error, PHX_ERROR_SPACE, "there is no memory to hold %zu bytes in %.120s", size,
                        held->dir);
    if (reason != 0)
        return job_fail_errno(error, reason, "hold %zu bytes in %.120s", size, held->dir);
    uint8_t *map = mremap(slot->map, slot->mapped, size, MREMAP_MAYMOVE);
    if (map == MAP_FAILED)
        return job_fail_errno(error, errno, "map %zu bytes", size);
    slot->map = map;
    slot->mapped = size;
    return 0;
}

/* Fills the page table in advance. If the kernel cannot, the copy does it page by page. */
static void fill_pages(struct held_slot *slot, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), from = slot->paged / page * page;
    if (size > slot->paged) {
        madvise(slot->map + from, size - from, MADV_POPULATE_WRITE);
        slot->paged = size;
    }
}

bool held_prepare(struct held *held, int index, size_t len)
{
    struct held_slot *slot = &held->slots[index];
    size_t size = SHARD_HEADER_SIZE + len;
    size_t next = slot->mapped < size && size - slot->mapped > PIECE ? slot->mapped + PIECE : size;
    if (slot->mapped >= size || fenced(held, NULL) != 0 || grow(held, slot, next, NULL) != 0)
        return false;
    fill_pages(slot, next);
    return next < size;
}

int held_reserve(struct held *held, int index, size_t len, struct phx_error *error)
{
    struct held_slot *slot = &held->slots[index];
    size_t size = SHARD_HEADER_SIZE + len;
    int status = fenced(held, error);
    if (status != 0)
        return status;
    unseal(slot);
    if (size > slot->mapped)
        status = grow(held, slot, size, error);
    if (status == 0)
        fill_pages(slot, size);
    return status;
}

int held_copy(struct held *held, int index, const struct iovec *data, size_t count, struct phx_error *error)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += data[i].iov_len;
    int status = held_reserve(held, index, len, error);
    struct held_slot *slot = &held->slots[index];
    uint8_t *to = slot->map + SHARD_HEADER_SIZE;
    uint32_t crc = 0;
    for (size_t i = 0; i < count && status == 0; i++) {
        crc = crc32c_copy(crc, to, data[i].iov_base, data[i].iov_len);
        to += data[i].iov_len;
    }
    if (status == 0)
        slot->data_crc = crc;
    return status;
}

uint8_t *held_data(const struct held *held, int slot)
{
    return held->slots[slot].map + SHARD_HEADER_SIZE;
}

/* Writes the header of complete data, which makes the slot valid. */
static int put_header(struct held *held, int index, const struct shard_header *header,
                      struct phx_error *error)
{
    struct held_slot *slot = &held->slots[index];
    int status = fenced(held, error);
    if (status != 0)
        return status;
    atomic_thread_fence(memory_order_release);
    shard_header_put(header, crc32c, slot->map);
    look_at(held, slot);
    slot->checked = slot->sealed ? 1 + (uint64_t)held->attempt : 0;
    return slot->sealed ? 0
                        : job_fail(error, PHX_ERROR_CORRUPT,
                                   "the checkpoint in memory in %.120s was overwritten", held->dir);
}

int held_seal(struct held *held, int index, uint64_t step, size_t len, uint64_t key, struct phx_error *error)
{
    struct shard_header header = {
        .step = step,
        .attempt = held->attempt,
        .rank = held->rank,
        .world = held->world,
        .data_crc = held->slots[index].data_crc,
        .len = len,
        .key = key,
    };
    return put_header(held, index, &header, error);
}

int held_adopt(struct held *held, int index, const struct shard_header *header, struct phx_error *error)
{
    struct shard_header own = *header;
    own.rank = held->rank;
    own.world = held->world;
    return put_header(held, index, &own, error);
}

/* Returns true if losing `slot` costs less than losing `than`: unsealed slots cost least, newer checkpoints
 * most. */
static bool loses_less(const struct held_slot *slot, const struct held_slot *than)
{
    return than->sealed && (!slot->sealed || is_older(slot->step, slot->attempt, than->step, than->attempt));
}

static bool holds(const struct held_slot *slot, uint64_t step, uint32_t attempt)
{
    return slot->sealed && slot->step == step && slot->attempt == attempt;
}

static bool was_copied(const struct held *held, const struct held_slot *slot)
{
    uint64_t step;
    uint32_t attempt;
    return held_last_copied(held, &step, &attempt) && holds(slot, step, attempt);
}

int held_ready(const struct held *held, size_t len, uint64_t keep_step, uint32_t keep_attempt)
{
    int best = -1;
    for (int i = 0; i < HELD_SLOTS; i++) {
        const struct held_slot *slot = &held->slots[i];
        bool fits = slot->mapped > SHARD_HEADER_SIZE && len <= slot->mapped - SHARD_HEADER_SIZE;
        if (fits && !slot->left && !holds(slot, keep_step, keep_attempt) && !was_copied(held, slot) &&
            (best < 0 || loses_less(slot, &held->slots[best])))
            best = i;
    }
    return best;
}

int held_spare(const struct held *held, uint64_t step, uint32_t attempt)
{
    int best = -1;
    for (int i = 0; i < HELD_SLOTS; i++) {
        const struct held_slot *slot = &held->slots[i];
        if (!holds(slot, step, attempt) && !was_copied(held, slot) &&
            (best < 0 || loses_less(slot, &held->slots[best])))
            best = i;
    }
    return best;
}
