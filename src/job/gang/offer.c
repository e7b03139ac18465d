#include "job/gang/offer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "job/link/error.h"
#include "job/checkpoint/held.h"
#include "job/link/settings.h"
#include "job/checkpoint/shard.h"
#include "job/link/wire.h"

#define PATH_SIZE 4096
#define READ_SIZE ((size_t)1 << 20) /* small enough to be summed while it is in the processor's cache */

struct offer offer_of(const struct shard_header *header, enum offer_place place, uint8_t slot)
{
    return (struct offer){
        .step = header->step,
        .attempt = header->attempt,
        .rank = header->rank,
        .world = header->world,
        .key = header->key,
        .len = header->len,
        .crc = header->data_crc,
        .place = (uint8_t)place,
        .slot = slot,
    };
}

struct offer_share offer_share_of(uint32_t rank, uint32_t world, const uint64_t *machines)
{
    struct offer_share share = {.rank = rank, .world = world, .machines = machines};
    for (uint32_t i = 0; i < world; i++) {
        if (machines[i] != machines[rank])
            continue;
        share.members++;
        share.place += i < rank;
    }
    return share;
}

/* ---- the folder ---- */

void offer_path(const char *dir, const struct offer *offer, char *ret_path, size_t cap)
{
    snprintf(ret_path, cap, "%s/%s-%u.%u", dir, offer->place == OFFER_COPY ? "peer" : "rank", offer->rank,
             offer->slot);
}

/* "rank-12.0" */
static bool parse_name(const char *name, enum offer_place *ret_place, uint32_t *ret_rank, uint8_t *ret_slot)
{
    char digits[16];
    uint64_t rank;
    bool copy = strncmp(name, "peer-", 5) == 0;
    const char *dot = strchr(name, '.');
    if ((!copy && strncmp(name, "rank-", 5) != 0) || dot == NULL || dot - name - 5 >= (int)sizeof digits ||
        dot[1] == '\0' || dot[2] != '\0')
        return false;
    memcpy(digits, name + 5, (size_t)(dot - name - 5));
    digits[dot - name - 5] = '\0';
    int slot = dot[1] - '0';
    if (!job_parse_number(digits, JOB_WORLD_MAX - 1, &rank) || slot < 0 ||
        slot >= (copy ? PEER_SLOTS : HELD_SLOTS))
        return false;
    *ret_place = copy ? OFFER_COPY : OFFER_SLOT;
    *ret_rank = (uint32_t)rank;
    *ret_slot = (uint8_t)slot;
    return true;
}

static bool is_mine(const struct offer_share *share, enum offer_place place, uint32_t rank)
{
    bool present =
        place == OFFER_SLOT && rank < share->world && share->machines[rank] == share->machines[share->rank];
    return present ? rank == share->rank : rank % share->members == share->place;
}

/* Adds an offer. A full list drops the oldest offer that is not the rank's own, which may be the new one. */
static void add(struct offer_list *list, size_t begin, const struct offer *offer, uint32_t own)
{
    size_t oldest = list->count;
    if (list->count - begin < OFFER_MEMORY_MAX) {
        list->items[list->count++] = *offer;
        return;
    }
    for (size_t i = begin; i < list->count; i++) {
        const struct offer *item = &list->items[i];
        if ((item->place != OFFER_SLOT || item->rank != own) &&
            (oldest == list->count || plan_compare(item->step, item->attempt, list->items[oldest].step,
                                                   list->items[oldest].attempt) < 0))
            oldest = i;
    }
    bool is_own = offer->place == OFFER_SLOT && offer->rank == own;
    if (oldest < list->count && (is_own || plan_compare(offer->step, offer->attempt, list->items[oldest].step,
                                                        list->items[oldest].attempt) > 0))
        list->items[oldest] = *offer;
}

/* Opens a shard file and reads its header. Returns -1 if the header is not valid or does not fit the file. */
static int open_file(const char *path, struct shard_header *ret_header)
{
    uint8_t bytes[SHARD_HEADER_SIZE];
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -1;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) ||
        pread(fd, bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes ||
        shard_header_decode(bytes, path, ret_header, NULL) != 0 ||
        ret_header->len > (uint64_t)info.st_size - SHARD_HEADER_SIZE) {
        close(fd);
        return -1;
    }
    return fd;
}

bool offer_look(const char *dir, enum offer_place place, uint32_t rank, uint8_t slot, struct offer *ret_offer)
{
    struct offer at = {.place = (uint8_t)place, .rank = rank, .slot = slot};
    struct shard_header header;
    char path[PATH_SIZE];
    offer_path(dir, &at, path, sizeof path);
    int fd = open_file(path, &header);
    if (fd < 0)
        return false;
    close(fd);
    *ret_offer = offer_of(&header, place, slot);
    return header.rank == rank && header.world > rank;
}

void offer_scan(const char *dir, const struct offer_share *share, struct offer_list *list)
{
    DIR *folder = opendir(dir);
    struct dirent *entry;
    size_t begin = list->count;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        struct offer offer;
        enum offer_place place;
        uint32_t rank;
        uint8_t slot;
        if (parse_name(entry->d_name, &place, &rank, &slot) && is_mine(share, place, rank) &&
            offer_look(dir, place, rank, slot, &offer))
            add(list, begin, &offer, share->rank);
    }
    if (folder != NULL)
        closedir(folder);
}

void offer_discard(const char *dir, const struct offer_share *share)
{
    DIR *folder = opendir(dir);
    struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        enum offer_place place;
        uint32_t rank;
        uint8_t slot;
        bool named = parse_name(entry->d_name, &place, &rank, &slot) && is_mine(share, place, rank) &&
                     (place == OFFER_COPY || rank != share->rank);
        if (named || strcmp(entry->d_name, "keys") == 0)
            unlinkat(dirfd(folder), entry->d_name, 0);
    }
    if (folder != NULL)
        closedir(folder);
}

void offer_sweep(const char *dir, const struct offer_share *share, uint32_t attempt)
{
    struct offer_list list = {0};
    char path[PATH_SIZE];
    offer_scan(dir, share, &list);
    for (size_t i = 0; i < list.count; i++) {
        const struct offer *offer = &list.items[i];
        bool kept = offer->place == OFFER_SLOT ? offer->rank == share->rank : offer->world == share->world;
        if (kept || offer->attempt >= attempt)
            continue;
        offer_path(dir, offer, path, sizeof path);
        unlink(path);
    }
}

int offer_open(const char *dir, const struct offer *offer, struct shard_header *ret_header, int *ret_fd,
               struct phx_error *error)
{
    struct shard_header header;
    char path[PATH_SIZE];
    offer_path(dir, offer, path, sizeof path);
    int fd = open_file(path, &header);
    if (fd >= 0 && header.step == offer->step && header.attempt == offer->attempt &&
        header.rank == offer->rank && header.world == offer->world && header.key == offer->key &&
        header.len == offer->len && header.data_crc == offer->crc) {
        *ret_header = header;
        *ret_fd = fd;
        return 0;
    }
    if (fd >= 0)
        close(fd);
    return job_fail(error, PHX_ERROR_CORRUPT, "%.160s has changed since it was offered", path);
}

/* Reads data and computes its checksum. With `forget` every piece overwrites the one before. Returns false if
 * the file is shorter. */
static bool read_data(int fd, uint8_t *to, uint64_t len, bool forget, uint32_t *ret_crc)
{
    uint64_t at = 0;
    uint32_t crc = 0;
    while (at < len) {
        size_t part = len - at < READ_SIZE ? (size_t)(len - at) : READ_SIZE;
        uint8_t *place = forget ? to : to + at;
        ssize_t got = pread(fd, place, part, (off_t)(SHARD_HEADER_SIZE + at));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        crc = crc32c(crc, place, (size_t)got);
        at += (uint64_t)got;
    }
    *ret_crc = crc;
    return true;
}

static int read_offer(const char *dir, const struct offer *offer, uint8_t *to, bool forget,
                      struct phx_error *error)
{
    struct shard_header header;
    uint32_t crc = 0;
    int fd, status = offer_open(dir, offer, &header, &fd, error);
    if (status != 0)
        return status;
    bool whole = read_data(fd, to, offer->len, forget, &crc) && crc == offer->crc;
    close(fd);
    return whole ? 0
                 : job_fail(error, PHX_ERROR_CORRUPT,
                            "the checkpoint in memory in %.120s of rank %u is damaged: its checksum is wrong",
                            dir, offer->rank);
}

int offer_read(const char *dir, const struct offer *offer, uint8_t *to, struct phx_error *error)
{
    return read_offer(dir, offer, to, false, error);
}

int offer_verify(const char *dir, const struct offer *offer, struct phx_error *error)
{
    uint8_t *piece = malloc(READ_SIZE);
    int status = piece == NULL ? job_fail(error, PHX_ERROR_MEMORY, "out of memory")
                               : read_offer(dir, offer, piece, true, error);
    free(piece);
    return status;
}

int offer_front(const char *dir, const struct offer *offer, uint8_t *to, size_t cap, size_t *ret_got,
                struct phx_error *error)
{
    struct shard_header header;
    uint32_t ignored;
    int fd, status = offer_open(dir, offer, &header, &fd, error);
    if (status != 0)
        return status;
    size_t len = offer->len < cap ? (size_t)offer->len : cap;
    bool whole = read_data(fd, to, len, false, &ignored);
    close(fd);
    *ret_got = len;
    return whole ? 0
                 : job_fail(error, PHX_ERROR_CORRUPT,
                            "the checkpoint in memory in %.120s of rank %u is truncated", dir, offer->rank);
}

/* ---- on the wire ---- */

void offer_put(const struct offer *offer, uint8_t ret_bytes[OFFER_SIZE])
{
    struct jobwire_writer writer = {.data = ret_bytes, .cap = OFFER_SIZE};
    jobwire_put(&writer, offer->step, 8);
    jobwire_put(&writer, offer->attempt, 4);
    jobwire_put(&writer, offer->rank, 4);
    jobwire_put(&writer, offer->world, 4);
    jobwire_put(&writer, offer->key, 8);
    jobwire_put(&writer, offer->len, 8);
    jobwire_put(&writer, offer->crc, 4);
    jobwire_put(&writer, offer->place, 1);
    jobwire_put(&writer, offer->slot, 1);
}

bool offer_get(const uint8_t bytes[OFFER_SIZE], struct offer *ret_offer)
{
    struct jobwire_reader reader = {.data = bytes, .len = OFFER_SIZE};
    struct offer offer = {.step = jobwire_get(&reader, 8)};
    offer.attempt = (uint32_t)jobwire_get(&reader, 4);
    offer.rank = (uint32_t)jobwire_get(&reader, 4);
    offer.world = (uint32_t)jobwire_get(&reader, 4);
    offer.key = jobwire_get(&reader, 8);
    offer.len = jobwire_get(&reader, 8);
    offer.crc = (uint32_t)jobwire_get(&reader, 4);
    offer.place = (uint8_t)jobwire_get(&reader, 1);
    offer.slot = (uint8_t)jobwire_get(&reader, 1);
    unsigned slots = offer.place == OFFER_SLOT ? HELD_SLOTS : offer.place == OFFER_COPY ? PEER_SLOTS : 1;
    if (offer.place >= OFFER_PLACES || offer.slot >= slots || offer.rank >= offer.world)
        return false;
    *ret_offer = offer;
    return true;
}
