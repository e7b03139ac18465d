#include "cmd/shards.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "doc/json.h"

#define REGIONS_HEADER_MAX ((uint64_t)64 << 20)

/* --- names ---------------------------------------------------------------------------------------- */

static bool parse_step(const char *name, int64_t *ret_step)
{
    struct str text = str_from(name);
    return str_take_number(&text, "step-", INT64_MAX, ret_step) && text.len == 0;
}

static bool parse_shard(const char *name, int64_t *ret_attempt, int64_t *ret_rank)
{
    struct str text = str_from(name);
    return str_take_number(&text, "attempt-", UINT32_MAX, ret_attempt) &&
           str_take_number(&text, "-rank-", UINT32_MAX, ret_rank) && str_is(text, ".shard");
}

/* --- the folder ----------------------------------------------------------------------------------- */

static const char *check_header(struct shard *shard, int fd)
{
    uint8_t bytes[SHARD_HEADER_SIZE];
    struct stat info;
    uint32_t version;
    if (fstat(fd, &info) < 0 || pread(fd, bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return "it is truncated";
    if (!shard_header_get(bytes, crc32c, &shard->header, &version))
        return "its header is damaged";
    if (version != SHARD_VERSION)
        return "its format has another version";
    if (shard->header.step != shard->step || shard->header.attempt != shard->attempt ||
        shard->header.rank != shard->rank)
        return "it holds a shard other than its name says";
    if ((uint64_t)info.st_size - SHARD_HEADER_SIZE != shard->header.len)
        return "its size is not what its header says";
    return NULL;
}

static void add_shard(struct shards *shards, const char *folder, const char *step_name, int64_t step,
                      const char *name)
{
    int64_t attempt, rank;
    if (!parse_shard(name, &attempt, &rank))
        return;
    struct shard shard = {
        .path = arena_printf(&shards->arena, "%s/%s/%s", folder, step_name, name),
        .step = (uint64_t)step,
        .attempt = (uint32_t)attempt,
        .rank = (uint32_t)rank,
    };
    int fd = open(shard.path.data, O_RDONLY | O_CLOEXEC);
    shard.damage = fd < 0 ? "it cannot be opened" : check_header(&shard, fd);
    if (fd >= 0)
        close(fd);
    vec_push(&shards->list, shard);
}

static int by_name(const void *a, const void *b)
{
    const struct shard *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->attempt != y->attempt)
        return x->attempt < y->attempt ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Sums up a set of shards. Its world is the largest in a readable header: all should be equal, but files may
 * be in the wrong place. */
static void count_set(const struct shards *shards, struct shard_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct shard *shard = &shards->list.items[set->first + i];
        if (!shard->damage && shard->header.world > set->world)
            set->world = shard->header.world;
        set->bytes += shard->damage ? 0 : shard->header.len;
    }
    uint32_t next = 0; /* the next expected rank */
    for (size_t i = 0; i <= set->count; i++) {
        const struct shard *shard = i < set->count ? &shards->list.items[set->first + i] : NULL;
        if (shard && (shard->damage || shard->header.world != set->world))
            continue;
        uint32_t until = shard && shard->rank < set->world ? shard->rank : set->world;
        if (!set->missing && next < until)
            set->missing_first = next;
        set->missing += next < until ? until - next : 0;
        next = until < UINT32_MAX ? until + 1 : until;
    }
}

static void make_sets(struct shards *shards)
{
    for (size_t i = 0; i < shards->list.len;) {
        struct shard_set set = {.first = i};
        const struct shard *first = &shards->list.items[i];
        for (; i < shards->list.len; i++, set.count++)
            if (shards->list.items[i].step != first->step || shards->list.items[i].attempt != first->attempt)
                break;
        count_set(shards, &set);
        vec_push(&shards->sets, set);
    }
}

int shards_scan(const char *folder, struct shards *ret_shards, struct error *error)
{
    struct shards shards = {0};
    DIR *parent = opendir(folder);
    if (!parent)
        return error_set_errno(error, errno, "%s", folder);
    for (struct dirent *entry; (entry = readdir(parent));) {
        int64_t step;
        int fd = parse_step(entry->d_name, &step)
                     ? openat(dirfd(parent), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                     : -1;
        DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
        for (struct dirent *file; directory && (file = readdir(directory));)
            add_shard(&shards, folder, entry->d_name, step, file->d_name);
        if (directory)
            closedir(directory);
        else if (fd >= 0)
            close(fd);
    }
    closedir(parent);
    if (!shards.list.len) {
        shards_done(&shards);
        return error_set(error, ERROR_NOT_FOUND, "%s: contains no checkpoint (step-N/attempt-A-rank-R.shard)",
                         folder);
    }
    qsort(shards.list.items, shards.list.len, sizeof *shards.list.items, by_name);
    make_sets(&shards);
    *ret_shards = shards;
    return 0;
}

void shards_done(struct shards *shards)
{
    for (size_t i = 0; i < shards->list.len; i++)
        shard_close(&shards->list.items[i]);
    vec_done(&shards->list);
    vec_done(&shards->sets);
    arena_done(&shards->arena);
}

const struct shard_set *shards_choose(const struct shards *shards, int64_t step)
{
    for (size_t i = shards->sets.len; i-- > 0;) {
        const struct shard_set *set = &shards->sets.items[i];
        const struct shard *first = &shards->list.items[set->first];
        if (step < 0 ? set->world > 0 && !set->missing : first->step == (uint64_t)step)
            return set;
    }
    return NULL;
}

/* --- one shard ------------------------------------------------------------------------------------ */

bool shard_open(struct shard *shard)
{
    if (shard->damage || shard->map)
        return !shard->damage;
    int fd = open(shard->path.data, O_RDONLY | O_CLOEXEC);
    size_t size = SHARD_HEADER_SIZE + (size_t)shard->header.len;
    struct stat info;
    void *map = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &info) == 0 && (uint64_t)info.st_size == size)
        map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (map == MAP_FAILED) {
        shard->damage = "it cannot be read";
        return false;
    }
    shard->map = map;
    shard->data = shard->map + SHARD_HEADER_SIZE;
    return true;
}

void shard_close(struct shard *shard)
{
    if (shard->map)
        munmap(shard->map, SHARD_HEADER_SIZE + (size_t)shard->header.len);
    shard->map = NULL;
    shard->data = NULL;
}

bool shard_verify(struct shard *shard)
{
    if (shard_open(shard) && crc32c(0, shard->data, (size_t)shard->header.len) != shard->header.data_crc)
        shard->damage = "its data is damaged: the checksum is wrong";
    return !shard->damage;
}

const struct doc *shard_regions(struct shards *shards, const struct shard *shard, const uint8_t **ret_data)
{
    struct jobwire_reader reader = {.data = shard->data, .len = (size_t)shard->header.len};
    uint64_t len = jobwire_get(&reader, 8);
    struct doc *doc = NULL;
    if (reader.broken || len == 0 || len > REGIONS_HEADER_MAX || len > shard->header.len - 8 ||
        json_parse(&shards->arena, (struct str){(const char *)shard->data + 8, (size_t)len}, &doc, NULL) <
            0 ||
        doc->kind != DOC_OBJECT)
        return NULL;
    *ret_data = shard->data + 8 + len;
    return doc;
}
