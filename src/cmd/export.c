#include "cmd/export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doc/json.h"

enum { DIMS_MAX = 32, PARTS_MAX = 65536, HEADER_ALIGN = 64 };

struct part {
    const struct doc *doc; /* of the region in its shard's header */
    const uint8_t *data;
    uint64_t len;
};
struct region {
    struct str name, dtype;
    uint64_t shape[DIMS_MAX]; /* of the whole */
    size_t dims;
    uint32_t axis, count; /* of parts; count 1: whole */
    struct part *parts;   /* [count] */
    uint64_t len;
};
struct export
{
    struct shards *shards;
    VEC(struct region) regions; /* in the order in which ranks name them */
};

/* --- reading -------------------------------------------------------------------------------------- */

static struct region *find(struct export *export, struct str name)
{
    for (size_t i = 0; i < export->regions.len; i++)
        if (str_equal(export->regions.items[i].name, name))
            return &export->regions.items[i];
    return NULL;
}

/* Reads "axis A, part I of N" (job/checkpoint/regions.c); if absent, the region is whole. */
static bool read_place(const struct doc *header, struct str name, uint32_t *ret_axis, uint32_t *ret_index,
                       uint32_t *ret_count)
{
    char key[256], text[64];
    unsigned axis = 0, index = 0, count = 1;
    int used = 0;
    snprintf(key, sizeof key, "phalanx.shard." STR_FORMAT, STR_ARG(name));
    const struct doc *said = doc_get(doc_get(header, "__metadata__"), key);
    if (said) {
        snprintf(text, sizeof text, STR_FORMAT, STR_ARG(doc_str(said, STR(""))));
        if (sscanf(text, "axis %u, part %u of %u%n", &axis, &index, &count, &used) != 3 || text[used])
            return false;
    }
    *ret_axis = axis;
    *ret_index = index;
    *ret_count = count;
    return count > 0 && count <= PARTS_MAX && index < count && axis < DIMS_MAX;
}

static bool read_part(const struct doc *doc, const uint8_t *data, uint64_t limit, struct part *ret_part)
{
    const struct doc *offsets = doc_get(doc, "data_offsets"), *shape = doc_get(doc, "shape");
    int64_t begin = doc_int(doc_at(offsets, 0), -1), end = doc_int(doc_at(offsets, 1), -1);
    if (begin < 0 || end < begin || (uint64_t)end > limit || !shape || doc_len(shape) > DIMS_MAX)
        return false;
    for (size_t i = 0; i < doc_len(shape); i++)
        if (doc_int(doc_at(shape, i), -1) < 0)
            return false;
    *ret_part = (struct part){doc, data + begin, (uint64_t)(end - begin)};
    return true;
}

static int add_part(struct export *export, const struct shard *shard, const struct doc *header,
                    struct str name, const struct part *part, struct error *error)
{
    uint32_t axis, index, count;
    if (!read_place(header, name, &axis, &index, &count))
        return error_set(error, ERROR_CORRUPT,
                         STR_FORMAT ": region " STR_FORMAT ": its part cannot be read",
                         STR_ARG(shard->path), STR_ARG(name));
    struct region *region = find(export, name);
    if (!region) {
        vec_push(&export->regions, ((struct region){.name = name, .axis = axis, .count = count}));
        region = &vec_last(&export->regions);
        region->dtype = doc_str(doc_get(part->doc, "dtype"), STR(""));
        region->parts = ARENA_ARRAY(&export->shards->arena, struct part, count);
        memset(region->parts, 0, count * sizeof *region->parts);
    }
    if (region->axis != axis || region->count != count ||
        !str_equal(region->dtype, doc_str(doc_get(part->doc, "dtype"), STR(""))))
        return error_set(error, ERROR_CORRUPT,
                         STR_FORMAT ": region " STR_FORMAT ": other ranks describe it differently",
                         STR_ARG(shard->path), STR_ARG(name));
    if (!region->parts[index].doc) /* replicas are equal */
        region->parts[index] = *part;
    return 0;
}

static int read_shard(struct export *export, struct shard *shard, struct error *error)
{
    const uint8_t *data;
    const struct doc *header = shard_open(shard) ? shard_regions(export->shards, shard, &data) : NULL;
    if (!header)
        return error_set(error, ERROR_UNSUPPORTED,
                         STR_FORMAT
                         " has no named regions (phx_checkpoint_register): only its program can read it",
                         STR_ARG(shard->path));
    uint64_t limit = shard->header.len - (uint64_t)(data - shard->data);
    for (size_t i = 0; i < doc_len(header); i++) {
        const struct doc_member *member = &header->object.members[i];
        struct part part;
        if (str_is(member->key, "__metadata__"))
            continue;
        if (!read_part(member->value, data, limit, &part))
            return error_set(error, ERROR_CORRUPT,
                             STR_FORMAT ": region " STR_FORMAT ": its shape or offsets cannot be read",
                             STR_ARG(shard->path), STR_ARG(member->key));
        int rc = add_part(export, shard, header, member->key, &part, error);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* --- putting together ------------------------------------------------------------------------------ */

static uint64_t part_dim(const struct part *part, size_t dim)
{
    return (uint64_t)doc_int(doc_at(doc_get(part->doc, "shape"), dim), 0);
}

/* Computes the shape of the whole region, and checks that all parts are present and fit. */
static int measure(struct region *region, struct error *error)
{
    const char *why = NULL;
    for (uint32_t i = 0; i < region->count && !why; i++) {
        const struct part *part = &region->parts[i];
        if (!part->doc) {
            why = "some of its parts are missing";
            break;
        }
        size_t dims = doc_len(doc_get(part->doc, "shape"));
        region->dims = i == 0 ? dims : region->dims;
        if (dims != region->dims || (region->count > 1 && region->axis >= dims))
            why = "its parts have different shapes";
        for (size_t d = 0; d < dims && !why; d++) {
            if (i == 0 || (region->count > 1 && d == region->axis))
                region->shape[d] = (i == 0 ? 0 : region->shape[d]) + part_dim(part, d);
            else if (region->shape[d] != part_dim(part, d))
                why = "its parts have different shapes";
        }
        region->len += part->len;
    }
    if (!why)
        return 0;
    return error_set(error, ERROR_CORRUPT, "region " STR_FORMAT ": %s", STR_ARG(region->name), why);
}

static void write_header(FILE *out, const struct export *export)
{
    struct buf text BUF_CLEANUP = {0};
    struct json_writer writer = {.out = &text};
    int64_t at = 0;
    json_begin_object(&writer);
    json_key(&writer, "__metadata__");
    json_begin_object(&writer);
    json_pair_text(&writer, "format", "phalanx");
    json_end_object(&writer);
    for (size_t i = 0; i < export->regions.len; i++) {
        const struct region *region = &export->regions.items[i];
        json_key_str(&writer, region->name);
        json_begin_object(&writer);
        json_pair_str(&writer, "dtype", region->dtype);
        json_key(&writer, "shape");
        json_begin_array(&writer);
        for (size_t d = 0; d < region->dims; d++)
            json_put_int(&writer, (int64_t)region->shape[d]);
        json_end_array(&writer);
        json_key(&writer, "data_offsets");
        json_begin_array(&writer);
        json_put_int(&writer, at);
        json_put_int(&writer, at += (int64_t)region->len);
        json_end_array(&writer);
        json_end_object(&writer);
    }
    json_end_object(&writer);
    while ((text.len + 8) % HEADER_ALIGN)
        buf_add_char(&text, ' ');
    uint8_t length[8];
    struct jobwire_writer number = {.data = length, .cap = sizeof length};
    jobwire_put(&number, text.len, 8);
    fwrite(length, 1, sizeof length, out);
    fwrite(text.data, 1, text.len, out);
}

/* Writes a region in row-major order: for each index of the axes before the split axis, a run of every
 * part. */
static void write_region(FILE *out, const struct region *region)
{
    uint64_t outer = 1;
    for (size_t d = 0; region->count > 1 && d < region->axis; d++)
        outer *= region->shape[d];
    for (uint64_t row = 0; row < outer && region->len > 0; row++)
        for (uint32_t i = 0; i < region->count; i++) {
            uint64_t run = region->parts[i].len / outer;
            fwrite(region->parts[i].data + row * run, 1, (size_t)run, out);
        }
}

static int write_file(const struct export *export, const char *path, struct error *error)
{
    struct buf temporary BUF_CLEANUP = {0};
    buf_printf(&temporary, "%s.tmp", path);
    FILE *out = fopen(temporary.data, "we");
    if (!out)
        return error_set_errno(error, errno, "%s", temporary.data);
    write_header(out, export);
    for (size_t i = 0; i < export->regions.len; i++)
        write_region(out, &export->regions.items[i]);
    bool written = fflush(out) == 0 && !ferror(out) && fsync(fileno(out)) == 0;
    int reason = errno;
    if (fclose(out) != 0 && written) {
        written = false;
        reason = errno;
    }
    if (written && rename(temporary.data, path) == 0)
        return 0;
    reason = written ? errno : reason;
    unlink(temporary.data);
    return error_set_errno(error, reason, "writing %s", path);
}

int checkpoint_export(struct shards *shards, const struct shard_set *set, const char *path,
                      struct error *error)
{
    struct export export = {.shards = shards};
    int rc = 0;
    for (size_t i = 0; i < set->count && rc == 0; i++)
        rc = read_shard(&export, &shards->list.items[set->first + i], error);
    for (size_t i = 0; i < export.regions.len && rc == 0; i++)
        rc = measure(&export.regions.items[i], error);
    if (rc == 0)
        rc = write_file(&export, path, error);
    vec_done(&export.regions);
    return rc;
}
