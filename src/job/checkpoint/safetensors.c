#include "job/checkpoint/safetensors.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/link/error.h"
#include "job/link/settings.h"
#include "job/link/wire.h"

#define SHARD_KEY "phalanx.shard."

const struct safetensors_dtype safetensors_dtypes[PHX_DTYPES] = {
    [PHX_BOOL] = {"BOOL", 1}, [PHX_U8] = {"U8", 1},   [PHX_I8] = {"I8", 1},     [PHX_U16] = {"U16", 2},
    [PHX_I16] = {"I16", 2},   [PHX_F16] = {"F16", 2}, [PHX_BF16] = {"BF16", 2}, [PHX_U32] = {"U32", 4},
    [PHX_I32] = {"I32", 4},   [PHX_F32] = {"F32", 4}, [PHX_U64] = {"U64", 8},   [PHX_I64] = {"I64", 8},
    [PHX_F64] = {"F64", 8},
};

/* The split of a region, from the file's metadata. */
struct note {
    const char *name;
    uint32_t axis, index, count;
};

struct parser {
    char *at; /* in the text, which ends with a NUL */
    const char *wrong;
    struct safetensors *tensors;
    struct note *notes;
    size_t note_count;
};

/* ---- words ---- */

static bool fail(struct parser *parser, const char *why)
{
    if (parser->wrong == NULL)
        parser->wrong = why;
    return false;
}

static void skip_blanks(struct parser *parser)
{
    while (*parser->at == ' ' || *parser->at == '\n' || *parser->at == '\t' || *parser->at == '\r')
        parser->at++;
}

static bool next_is(struct parser *parser, char wanted)
{
    skip_blanks(parser);
    if (*parser->at != wanted)
        return false;
    parser->at++;
    return true;
}

static bool take(struct parser *parser, char wanted, const char *why)
{
    return next_is(parser, wanted) || fail(parser, why);
}

/* Reads a string, and terminates it by a NUL in place. */
static bool take_string(struct parser *parser, char **ret_text)
{
    if (!take(parser, '"', "expected a string"))
        return false;
    char *start = parser->at;
    while (*parser->at != '"') {
        if ((unsigned char)*parser->at < ' ' || *parser->at == '\\')
            return fail(parser, "a string has characters other than printable ASCII");
        parser->at++;
    }
    *parser->at++ = '\0';
    *ret_text = start;
    return true;
}

static bool take_number(struct parser *parser, uint64_t *ret_value)
{
    uint64_t value = 0;
    skip_blanks(parser);
    if (*parser->at < '0' || *parser->at > '9')
        return fail(parser, "expected a number");
    for (; *parser->at >= '0' && *parser->at <= '9'; parser->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*parser->at - '0'), &value))
            return fail(parser, "a number is too large");
    *ret_value = value;
    return true;
}

static bool take_numbers(struct parser *parser, uint64_t *values, size_t max, uint32_t *ret_count)
{
    uint32_t count = 0;
    if (!take(parser, '[', "expected a list of numbers"))
        return false;
    while (!next_is(parser, ']')) {
        if (count == max)
            return fail(parser, "a list has too many numbers");
        if ((count > 0 && !take(parser, ',', "expected a comma")) || !take_number(parser, &values[count++]))
            return false;
    }
    *ret_count = count;
    return true;
}

/* Reads the key of the next member, with its colon. Returns false at the end of the object and after a
 * failure. */
static bool next_member(struct parser *parser, bool first, char **ret_key)
{
    if (next_is(parser, '}'))
        return false;
    return (first || take(parser, ',', "expected a comma or a closing brace")) &&
           take_string(parser, ret_key) && take(parser, ':', "expected a colon");
}

/* Makes room for one more item in an array that doubles at every power of two. */
static void *grow(struct parser *parser, void *items, size_t count, size_t size)
{
    if ((count & (count - 1)) != 0)
        return items;
    void *more = reallocarray(items, count == 0 ? 1 : 2 * count, size);
    if (more == NULL)
        fail(parser, "out of memory");
    return more;
}

/* ---- the members of the header ---- */

static bool read_note(struct parser *parser, const char *name, const char *text)
{
    struct note note = {.name = name};
    int used = 0;
    if (sscanf(text, "axis %9u, part %9u of %9u%n", &note.axis, &note.index, &note.count, &used) != 3 ||
        text[used] != '\0' || note.count == 0 || note.count > JOB_WORLD_MAX || note.index >= note.count)
        return fail(parser, "the part of a region cannot be read");
    struct note *notes = grow(parser, parser->notes, parser->note_count, sizeof note);
    if (notes == NULL)
        return false;
    parser->notes = notes;
    notes[parser->note_count++] = note;
    return true;
}

static void read_metadata(struct parser *parser)
{
    char *key, *text;
    if (!take(parser, '{', "expected an object"))
        return;
    for (bool first = true; next_member(parser, first, &key); first = false) {
        if (!take_string(parser, &text))
            return;
        if (strncmp(key, SHARD_KEY, strlen(SHARD_KEY)) == 0 &&
            !read_note(parser, key + strlen(SHARD_KEY), text))
            return;
    }
}

static bool read_dtype(struct parser *parser, int *ret_dtype)
{
    char *text;
    if (!take_string(parser, &text))
        return false;
    for (*ret_dtype = 0; *ret_dtype < PHX_DTYPES; ++*ret_dtype)
        if (strcmp(safetensors_dtypes[*ret_dtype].name, text) == 0)
            return true;
    return fail(parser, "a dtype is not known");
}

/* Reads a region. Its offsets still count from the end of the header. */
static void read_region(struct parser *parser, const char *name)
{
    struct safetensors_region region = {.name = name, .count = 1};
    uint64_t offsets[2];
    uint32_t offset_count = 0;
    unsigned seen = 0;
    char *key;
    if (!take(parser, '{', "expected an object"))
        return;
    for (bool first = true, good = true; good && next_member(parser, first, &key); first = false) {
        if (strcmp(key, "dtype") == 0)
            seen |= 1, good = read_dtype(parser, &region.dtype);
        else if (strcmp(key, "shape") == 0)
            seen |= 2, good = take_numbers(parser, region.shape, PHX_REGION_DIMS_MAX, &region.dims);
        else if (strcmp(key, "data_offsets") == 0)
            seen |= 4, good = take_numbers(parser, offsets, 2, &offset_count);
        else
            good = fail(parser, "a region has an unknown member");
    }
    if (parser->wrong != NULL)
        return;
    if (seen != 7 || offset_count != 2 || offsets[1] < offsets[0]) {
        fail(parser, "a region has no dtype, no shape or no offsets");
        return;
    }
    region.begin = offsets[0];
    region.size = offsets[1] - offsets[0];
    struct safetensors *tensors = parser->tensors;
    void *regions = grow(parser, tensors->regions, tensors->count, sizeof region);
    if (regions == NULL)
        return;
    tensors->regions = regions;
    tensors->regions[tensors->count++] = region;
}

/* Applies a note to its region. Notes are in the order of the regions, so each search continues where the
 * previous one ended. */
static bool place(struct parser *parser, const struct note *note, size_t *cursor)
{
    struct safetensors *tensors = parser->tensors;
    for (size_t i = 0; i < tensors->count; i++) {
        struct safetensors_region *region = &tensors->regions[(*cursor + i) % tensors->count];
        if (strcmp(region->name, note->name) != 0)
            continue;
        if (note->axis >= region->dims && note->count > 1)
            return fail(parser, "a region is split along an axis that it does not have");
        region->axis = note->axis;
        region->index = note->index;
        region->count = note->count;
        *cursor = (*cursor + i + 1) % tensors->count;
        return true;
    }
    return fail(parser, "the metadata names a region that the header lacks");
}

static void parse(struct parser *parser)
{
    char *key;
    size_t cursor = 0;
    if (!take(parser, '{', "expected an object"))
        return;
    for (bool first = true; parser->wrong == NULL && next_member(parser, first, &key); first = false) {
        if (strcmp(key, "__metadata__") == 0)
            read_metadata(parser);
        else if (parser->tensors->count == PHX_REGIONS_MAX || strlen(key) >= PHX_REGION_NAME_MAX)
            fail(parser, "there are too many regions, or a name is too long");
        else
            read_region(parser, key);
    }
    skip_blanks(parser);
    if (parser->wrong == NULL && *parser->at != '\0')
        fail(parser, "there are bytes behind the header");
    for (size_t i = 0; i < parser->note_count && parser->wrong == NULL; i++)
        place(parser, &parser->notes[i], &cursor);
}

/* Returns true if the region's size follows from its shape and the region is within the data. Makes its
 * offset count from the start of the data. */
static bool fits(struct safetensors_region *region, size_t header_len, uint64_t data_len)
{
    uint64_t size = safetensors_dtypes[region->dtype].size, end;
    for (uint32_t d = 0; d < region->dims; d++)
        if (__builtin_mul_overflow(size, region->shape[d], &size))
            return false;
    return size == region->size && !__builtin_add_overflow(region->begin, header_len, &region->begin) &&
           !__builtin_add_overflow(region->begin, size, &end) && end <= data_len;
}

/* ---- calls ---- */

size_t safetensors_header_len(const uint8_t *data, uint64_t data_len)
{
    if (data_len < 8)
        return 0;
    struct jobwire_reader reader = {.data = data, .len = 8};
    uint64_t len = jobwire_get(&reader, 8);
    return len >= 2 && len <= data_len - 8 && len <= SAFETENSORS_HEADER_MAX - 8 ? (size_t)len + 8 : 0;
}

int safetensors_read(const uint8_t *header, size_t len, uint64_t data_len, const char *where,
                     struct safetensors *ret_tensors, struct phx_error *error)
{
    struct safetensors tensors = {.text = malloc(len - 8 + 1)};
    struct parser parser = {.at = tensors.text, .tensors = &tensors};
    int status = 0;
    if (tensors.text == NULL)
        return job_fail(error, PHX_ERROR_MEMORY, "out of memory");
    memcpy(tensors.text, header + 8, len - 8);
    tensors.text[len - 8] = '\0';
    parse(&parser);
    free(parser.notes);
    if (parser.wrong != NULL)
        status = job_fail(error, PHX_ERROR_CORRUPT, "%.120s: byte %zu of its header of regions: %s", where,
                          (size_t)(parser.at - tensors.text) + 8, parser.wrong);
    for (size_t i = 0; i < tensors.count && status == 0; i++)
        if (!fits(&tensors.regions[i], len, data_len))
            status = job_fail(error, PHX_ERROR_CORRUPT, "%.100s: region %s: its shape or offsets don't fit",
                              where, tensors.regions[i].name);
    if (status != 0)
        safetensors_done(&tensors);
    else
        *ret_tensors = tensors;
    return status;
}

void safetensors_done(struct safetensors *tensors)
{
    free(tensors->text);
    free(tensors->regions);
    *tensors = (struct safetensors){0};
}
