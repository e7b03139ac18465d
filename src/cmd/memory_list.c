#include "cmd/memory_list.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "cmd/client.h"
#include "job/checkpoint/shard_format.h"

struct entry {
    struct str name;
    bool copy, sealed;
    struct shard_header header; /* sealed */
};

struct listing {
    struct arena arena;
    VEC(struct entry) list;
};

static const char *const columns[] = {"FILE", "STEP", "ATTEMPT", "RANK", "OF", "SIZE", "WHAT"};
#define COLUMNS (sizeof columns / sizeof *columns)

/* Returns true for "rank-3.0" and "peer-12.1"; no other file's name ends in a dot and digits. */
static bool is_slot(const char *name, bool *ret_copy)
{
    size_t len = strlen(name);
    *ret_copy = strncmp(name, "peer-", 5) == 0;
    return (*ret_copy || strncmp(name, "rank-", 5) == 0) && len > 7 && name[len - 2] == '.' &&
           name[len - 1] >= '0' && name[len - 1] <= '9';
}

static void scan(const char *folder, struct listing *listing)
{
    DIR *directory = opendir(folder);
    for (struct dirent *file; directory && (file = readdir(directory));) {
        struct entry entry = {0};
        uint8_t bytes[SHARD_HEADER_SIZE];
        uint32_t version;
        if (!is_slot(file->d_name, &entry.copy))
            continue;
        int fd = openat(dirfd(directory), file->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        entry.sealed = fd >= 0 && pread(fd, bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes &&
                       shard_header_get(bytes, crc32c, &entry.header, &version) && version == SHARD_VERSION;
        if (fd >= 0)
            close(fd);
        entry.name = arena_printf(&listing->arena, "%s", file->d_name);
        vec_push(&listing->list, entry);
    }
    if (directory)
        closedir(directory);
}

static int newest_first(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->sealed != y->sealed)
        return x->sealed ? -1 : 1;
    if (x->sealed && x->header.step != y->header.step)
        return x->header.step > y->header.step ? -1 : 1;
    return strcmp(x->name.data, y->name.data);
}

static const char *what(const struct entry *entry)
{
    return !entry->sealed ? "empty" : entry->copy ? "copy" : "held";
}

static void json_entries(const struct listing *listing, struct buf *out)
{
    struct json_writer writer = {.out = out};
    json_begin_object(&writer);
    json_key(&writer, "held");
    json_begin_array(&writer);
    for (size_t i = 0; i < listing->list.len; i++) {
        const struct entry *entry = &listing->list.items[i];
        json_begin_object(&writer);
        json_pair_str(&writer, "file", entry->name);
        json_pair_str(&writer, "what", str_from(what(entry)));
        if (entry->sealed) {
            json_pair_int(&writer, "step", (int64_t)entry->header.step);
            json_pair_int(&writer, "attempt", entry->header.attempt);
            json_pair_int(&writer, "rank", entry->header.rank);
            json_pair_int(&writer, "world", entry->header.world);
            json_pair_int(&writer, "bytes", (int64_t)entry->header.len);
        }
        json_end_object(&writer);
    }
    json_end_array(&writer);
    json_end_object(&writer);
    buf_add_char(out, '\n');
}

static void table_entries(const struct listing *listing, struct buf *out)
{
    struct text_table table = {.columns = COLUMNS};
    table_heads(&table, columns);
    for (size_t i = 0; i < listing->list.len; i++) {
        const struct entry *entry = &listing->list.items[i];
        const uint64_t numbers[] = {entry->header.step, entry->header.attempt, entry->header.rank,
                                    entry->header.world};
        char size[24];
        bytes_format(entry->header.len, size);
        table_add(&table, entry->name);
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            table_add(&table, entry->sealed
                                  ? arena_printf(&table.arena, "%llu", (unsigned long long)numbers[k])
                                  : STR("-"));
        table_add(&table, entry->sealed ? arena_printf(&table.arena, "%s", size) : STR("-"));
        table_add(&table, str_from(what(entry)));
    }
    table_print(&table, out, output_colors());
    table_done(&table);
}

bool memory_list(const char *folder, bool json, struct buf *out)
{
    struct listing listing = {0};
    scan(folder, &listing);
    bool found = listing.list.len > 0;
    if (found) {
        qsort(listing.list.items, listing.list.len, sizeof *listing.list.items, newest_first);
        if (json)
            json_entries(&listing, out);
        else
            table_entries(&listing, out);
    }
    vec_done(&listing.list);
    arena_done(&listing.arena);
    return found;
}
