#include "cmd/checkpoint_gc.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/crc32c.h"
#include "base/units.h"
#include "cmd/client.h"
#include "host/objectstore/transfer.h"
#include "job/checkpoint/shard_format.h"

#define UPLOAD_AGE_NS (24 * 3600 * NS_PER_SECOND)

struct found {
    struct str key;
    uint64_t step, bytes;
    uint32_t attempt, rank;
    bool temporary; /* an unfinished write */
    bool goes;
};

struct gc {
    struct object_store *store;
    struct arena arena;
    VEC(struct found) list; /* by step, attempt, rank; temporary files last in their attempt */
    bool dry_run;
    size_t count;
    uint64_t bytes;
};

static int by_name(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->attempt != y->attempt)
        return x->attempt < y->attempt ? -1 : 1;
    if (x->temporary != y->temporary)
        return x->temporary ? 1 : -1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int find(struct gc *gc, struct error *error)
{
    struct object_list list = {0};
    int rc = bucket_list(gc->store, "step-", &gc->arena, &list, error);
    for (size_t i = 0; i < list.entries.len; i++) {
        struct found found = {.key = list.entries.items[i].key, .bytes = list.entries.items[i].bytes};
        struct str name = found.key;
        found.temporary = str_ends(name, STR(".tmp"));
        name.len -= found.temporary ? 4 : 0;
        if (shard_key_parse(name, &found.step, &found.attempt, &found.rank))
            vec_push(&gc->list, found);
    }
    vec_done(&list.entries);
    if (gc->list.len > 1)
        qsort(gc->list.items, gc->list.len, sizeof *gc->list.items, by_name);
    return rc;
}

/* Finds out whether the checkpoint with the items [begin, end), all of one attempt at one step, is
 * complete. */
static int is_complete(struct gc *gc, size_t begin, size_t end, bool *ret_complete, struct error *error)
{
    uint8_t bytes[SHARD_HEADER_SIZE];
    struct shard_header header;
    uint32_t version, whole = 0;
    size_t got;
    *ret_complete = false;
    for (size_t i = begin; i < end && !gc->list.items[i].temporary; i++)
        whole += gc->list.items[i].rank == whole;
    for (size_t i = begin; i < begin + whole; i++) {
        const struct found *found = &gc->list.items[i];
        int rc = bucket_get(gc->store, arena_strdup(&gc->arena, found->key), 0, bytes, sizeof bytes, &got,
                            NULL, error);
        if (rc < 0)
            return rc;
        if (got != sizeof bytes || !shard_header_get(bytes, crc32c, &header, &version) ||
            header.world != whole || found->bytes != SHARD_HEADER_SIZE + header.len)
            return 0;
    }
    *ret_complete = whole > 0;
    return 0;
}

/* Chooses the files to delete: everything below the newest complete step that is not complete itself. */
static int choose(struct gc *gc, struct error *error)
{
    bool any = false;
    for (size_t end = gc->list.len; end > 0;) {
        size_t begin = end - 1;
        const struct found *last = &gc->list.items[end - 1];
        while (begin > 0 && gc->list.items[begin - 1].step == last->step &&
               gc->list.items[begin - 1].attempt == last->attempt)
            begin--;
        bool complete;
        int rc = is_complete(gc, begin, end, &complete, error);
        if (rc < 0)
            return rc;
        for (size_t i = begin; i < end; i++)
            gc->list.items[i].goes = any && (!complete || gc->list.items[i].temporary);
        any = any || complete;
        end = begin;
    }
    return 0;
}

static int delete_chosen(struct gc *gc, struct error *error)
{
    struct buf line BUF_CLEANUP = {0};
    for (size_t i = 0; i < gc->list.len; i++) {
        const struct found *found = &gc->list.items[i];
        if (!found->goes)
            continue;
        int rc = gc->dry_run ? 0 : bucket_delete(gc->store, arena_strdup(&gc->arena, found->key), error);
        if (rc < 0)
            return rc;
        buf_printf(&line, "%s " STR_FORMAT "\n", gc->dry_run ? "would delete" : "deleted",
                   STR_ARG(found->key));
        output_write(&line);
        gc->count++;
        gc->bytes += found->bytes;
    }
    return 0;
}

static int drop_uploads(struct gc *gc, struct error *error)
{
    struct object_list list = {0};
    struct buf line BUF_CLEANUP = {0};
    int64_t now_ns = (int64_t)time(NULL) * NS_PER_SECOND;
    int rc = upload_list(gc->store, &gc->arena, &list, error);
    for (size_t i = 0; i < list.entries.len && rc == 0; i++) {
        const struct object_entry *entry = &list.entries.items[i];
        if (entry->begun_ns == 0 || now_ns - entry->begun_ns < UPLOAD_AGE_NS)
            continue;
        if (!gc->dry_run)
            rc = upload_abort(gc->store, arena_strdup(&gc->arena, entry->key),
                              arena_strdup(&gc->arena, entry->upload), error);
        if (rc == 0)
            buf_printf(&line, "%s the upload of " STR_FORMAT "\n", gc->dry_run ? "would abort" : "aborted",
                       STR_ARG(entry->key));
        output_write(&line);
        gc->count++;
    }
    vec_done(&list.entries);
    return rc;
}

static int place_of(const char *where, struct store_place *ret_place, struct error *error)
{
    if (store_place_is(where))
        return store_place_parse(where, ret_place, error);
    char path[PATH_MAX];
    if (!realpath(where, path))
        return error_set_errno(error, errno, "%s", where);
    int rc = store_place_parse("file:///", ret_place, error);
    if (rc == 0 && strlen(path) >= sizeof ret_place->bucket)
        return error_set(error, ERROR_LIMIT, "%s: the path is too long", where);
    snprintf(ret_place->bucket, sizeof ret_place->bucket, "%.511s", path);
    return rc;
}

int checkpoint_gc(const char *where, bool dry_run)
{
    struct store_place place;
    struct gc gc = {.dry_run = dry_run};
    struct error error;
    char size[24];
    int rc = place_of(where, &place, &error);
    if (rc == 0)
        rc = object_store_open(&place, NULL, &gc.store, &error);
    if (rc == 0)
        rc = find(&gc, &error);
    if (rc == 0)
        rc = choose(&gc, &error);
    if (rc == 0)
        rc = delete_chosen(&gc, &error);
    if (rc == 0)
        rc = drop_uploads(&gc, &error);
    bytes_format(gc.bytes, size);
    if (rc < 0)
        say("%s", error.text);
    else
        printf("%zu %s, %s\n", gc.count, dry_run ? "would go" : "gone", size);
    object_store_close(gc.store);
    vec_done(&gc.list);
    arena_done(&gc.arena);
    return rc < 0 ? EXIT_FAILED : EXIT_OK;
}
