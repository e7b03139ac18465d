/* Any bytes as the shards of a checkpoint that regions are to be put together from: no read or write outside,
 * whatever the headers say; what is refused has a reason. Shards follow each other, each behind a u16 length.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "job/checkpoint/reshard.h"

enum { SHARDS = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct shard {
    uint8_t *data; /* of its own, so that its ends are seen */
    size_t len;
};

static size_t split(const uint8_t *data, size_t size, struct shard shards[SHARDS])
{
    size_t count = 0;
    while (size >= 2 && count < SHARDS) {
        size_t len = data[0] | (size_t)data[1] << 8;
        data += 2;
        size -= 2;
        len = len < size ? len : size;
        shards[count].data = malloc(len);
        if (len > 0)
            memcpy(shards[count].data, data, len);
        shards[count++].len = len;
        data += len;
        size -= len;
    }
    return count;
}

static void refused(int status, const struct phx_error *error)
{
    if (status == 0)
        return;
    if (error->message[0] == '\0' || (status != PHX_ERROR_CORRUPT && status != PHX_ERROR_INVALID))
        abort();
}

static int add(struct reshard *reshard, uint32_t rank, const struct shard *shard, struct phx_error *error)
{
    struct safetensors tensors;
    size_t len = safetensors_header_len(shard->data, shard->len);
    if (len == 0)
        return 0;
    int status = safetensors_read(shard->data, len, shard->len, "input", &tensors, error);
    refused(status, error);
    if (status != 0)
        return status;
    status = reshard_add(reshard, rank, &tensors, error);
    refused(status, error);
    safetensors_done(&tensors);
    return status;
}

static void load(const struct job_regions *regions, const struct shard *shards, size_t count)
{
    struct reshard *reshard;
    struct phx_error error = {0};
    uint32_t rank;
    int status = reshard_new(regions, &reshard, &error);
    if (status != 0)
        abort();
    for (uint32_t i = 0; i < count && status == 0 && !reshard_complete(reshard); i++)
        status = add(reshard, i, &shards[i], &error);
    if (status == 0)
        refused(status = reshard_plan(reshard, &error), &error);
    while (status == 0 && reshard_next(reshard, &rank))
        refused(status = reshard_fill(reshard, shards[rank].data, shards[rank].len, &error), &error);
    reshard_free(reshard);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint16_t *w = malloc(3 * 2 * sizeof *w);
    uint8_t *b = malloc(4);
    struct phx_region list[] = {
        {.name = "w",
         .data = w,
         .dtype = PHX_U16,
         .dims = 2,
         .shape = {3, 2},
         .shard_index = 1,
         .shard_count = 2},
        {.name = "b", .data = b, .dtype = PHX_U8, .dims = 1, .shape = {4}},
    };
    struct job_regions regions;
    struct shard shards[SHARDS];
    size_t count = split(data, size, shards);
    if (job_regions_describe(list, 2, &regions, NULL) != 0)
        abort();
    load(&regions, shards, count);
    job_regions_done(&regions);
    for (size_t i = 0; i < count; i++)
        free(shards[i].data);
    free(w);
    free(b);
    return 0;
}
