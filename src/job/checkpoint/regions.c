#include "job/checkpoint/regions.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/link/error.h"
#include "job/checkpoint/safetensors.h"
#include "job/link/wire.h"

#define HEADER_ALIGN 64

/* ---- rules for descriptions ---- */

static bool name_is_valid(const char *name)
{
    size_t len = name == NULL ? 0 : strnlen(name, PHX_REGION_NAME_MAX);
    if (len == 0 || len == PHX_REGION_NAME_MAX || strcmp(name, "__metadata__") == 0)
        return false;
    for (size_t i = 0; i < len; i++)
        if (name[i] <= ' ' || name[i] > '~' || name[i] == '"' || name[i] == '\\')
            return false;
    return true;
}

static int region_size(const struct phx_region *region, size_t *ret_size, struct phx_error *error)
{
    if (!name_is_valid(region->name))
        return job_fail(error, PHX_ERROR_INVALID,
                        "a region's name must have 1 to %d printable characters without blanks and quotes",
                        PHX_REGION_NAME_MAX - 1);
    if (region->dtype < 0 || region->dtype >= PHX_DTYPES || region->dims > PHX_REGION_DIMS_MAX)
        return job_fail(error, PHX_ERROR_INVALID, "region %s: unknown dtype, or more than %d dimensions",
                        region->name, PHX_REGION_DIMS_MAX);
    size_t size = safetensors_dtypes[region->dtype].size;
    for (uint32_t i = 0; i < region->dims; i++)
        if (__builtin_mul_overflow(size, region->shape[i], &size))
            return job_fail(error, PHX_ERROR_INVALID, "region %s: its shape is too large", region->name);
    if (region->data == NULL && size > 0)
        return job_fail(error, PHX_ERROR_INVALID, "region %s: data is NULL", region->name);
    if (region->shard_count > 1 &&
        (region->shard_axis >= region->dims || region->shard_index >= region->shard_count))
        return job_fail(error, PHX_ERROR_INVALID, "region %s: part %u of %u along axis %u of %u",
                        region->name, region->shard_index, region->shard_count, region->shard_axis,
                        region->dims);
    *ret_size = size;
    return 0;
}

static int check_all(const struct phx_region *regions, size_t count, size_t *ret_len, struct phx_error *error)
{
    size_t len = 0;
    if (regions == NULL || count == 0 || count > PHX_REGIONS_MAX)
        return job_fail(error, PHX_ERROR_INVALID, "expected 1 to %d regions", PHX_REGIONS_MAX);
    for (size_t i = 0; i < count; i++) {
        size_t size = 0;
        int status = region_size(&regions[i], &size, error);
        if (status == 0 && __builtin_add_overflow(len, size, &len))
            status = job_fail(error, PHX_ERROR_INVALID, "the regions are too large together");
        for (size_t k = 0; k < i && status == 0; k++)
            if (strcmp(regions[i].name, regions[k].name) == 0)
                status = job_fail(error, PHX_ERROR_INVALID, "region %s: the name is taken", regions[i].name);
        if (status != 0)
            return status;
    }
    *ret_len = len;
    return 0;
}

/* ---- the header ---- */

static void write_metadata(FILE *out, const struct phx_region *regions, size_t count)
{
    fprintf(out, "{\"__metadata__\":{\"format\":\"phalanx\"");
    for (size_t i = 0; i < count; i++)
        if (regions[i].shard_count > 1)
            fprintf(out, ",\"phalanx.shard.%s\":\"axis %u, part %u of %u\"", regions[i].name,
                    regions[i].shard_axis, regions[i].shard_index, regions[i].shard_count);
    fprintf(out, "}");
}

static void write_region(FILE *out, const struct phx_region *region, size_t begin, size_t end)
{
    fprintf(out, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", region->name,
            safetensors_dtypes[region->dtype].name);
    for (uint32_t i = 0; i < region->dims; i++)
        fprintf(out, "%s%llu", i > 0 ? "," : "", (unsigned long long)region->shape[i]);
    fprintf(out, "],\"data_offsets\":[%zu,%zu]}", begin, end);
}

/* Returns the header with its length in front, owned by the caller. Returns NULL if there is no memory. */
static char *make_header(const struct phx_region *regions, size_t count, size_t *ret_len)
{
    char *text = NULL;
    size_t len = 0, at = 0;
    FILE *out = open_memstream(&text, &len);
    if (out == NULL)
        return NULL;
    fprintf(out, "%8s", "");
    write_metadata(out, regions, count);
    for (size_t i = 0; i < count; i++) {
        size_t size = 0;
        region_size(&regions[i], &size, NULL);
        write_region(out, &regions[i], at, at + size);
        at += size;
    }
    fprintf(out, "}");
    fflush(out);
    for (size_t blanks = (HEADER_ALIGN - len % HEADER_ALIGN) % HEADER_ALIGN; blanks > 0; blanks--)
        fputc(' ', out);
    if (ferror(out) || fclose(out) != 0) {
        free(text);
        return NULL;
    }
    struct jobwire_writer writer = {.data = (uint8_t *)text, .cap = 8};
    jobwire_put(&writer, len - 8, 8);
    *ret_len = len;
    return text;
}

/* Returns the FNV-1a hash of a header. It need only distinguish regions of one program: readers compare the
 * headers themselves. */
static uint64_t hash_header(const char *header, size_t len)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (uint8_t)header[i]) * 0x100000001b3u;
    return hash != 0 ? hash : 1;
}

int job_regions_describe(const struct phx_region *regions, size_t count, struct job_regions *ret_regions,
                         struct phx_error *error)
{
    size_t data_len = 0, header_len = 0;
    int status = check_all(regions, count, &data_len, error);
    if (status != 0)
        return status;
    struct job_regions made = {.parts = calloc(count + 1, sizeof *made.parts), .count = count};
    char *header = make_header(regions, count, &header_len);
    if (made.parts == NULL || header == NULL) {
        free(made.parts);
        free(header);
        return job_fail(error, PHX_ERROR_MEMORY, "out of memory");
    }
    made.parts[0] = (struct iovec){header, header_len};
    for (size_t i = 0; i < count; i++) {
        made.parts[i + 1].iov_base = regions[i].data;
        region_size(&regions[i], &made.parts[i + 1].iov_len, NULL);
    }
    made.len = header_len + data_len;
    made.key = hash_header(header, header_len);
    *ret_regions = made;
    return 0;
}

uint64_t job_regions_place(const struct job_regions *regions)
{
    uint64_t hash = regions->key ^ 0xcbf29ce484222325u; /* FNV-1a, a word at a time */
    for (size_t i = 1; i <= regions->count; i++) {
        hash = (hash ^ (uint64_t)(uintptr_t)regions->parts[i].iov_base) * 0x100000001b3u;
        hash ^= hash >> 32;
    }
    return hash;
}

void job_regions_done(struct job_regions *regions)
{
    if (regions->parts != NULL)
        free(regions->parts[0].iov_base);
    free(regions->parts);
    *regions = (struct job_regions){0};
}

int job_regions_fill(const struct job_regions *regions, const uint8_t *data, size_t len,
                     struct phx_error *error)
{
    const struct iovec *header = &regions->parts[0];
    if (len != regions->len || memcmp(data, header->iov_base, header->iov_len) != 0)
        return job_fail(
            error, PHX_ERROR_INVALID,
            "the checkpoint has other regions than those registered (`phalanx checkpoint show` lists them)");
    data += header->iov_len;
    for (size_t i = 1; i <= regions->count; i++) {
        if (regions->parts[i].iov_len > 0)
            memcpy(regions->parts[i].iov_base, data, regions->parts[i].iov_len);
        data += regions->parts[i].iov_len;
    }
    return 0;
}
