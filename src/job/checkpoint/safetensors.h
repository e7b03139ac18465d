/* safetensors.h - reads the header of a shard of named regions (form: top of regions.h) back into a
 * description. The reader accepts headers as libphalanx writes them, with any blanks and in any order. Any
 * other header is an error: escapes in names, other members, or offsets outside the data.
 *
 * No state but the struct. Any thread.
 */
#ifndef PHX_JOB_CHECKPOINT_SAFETENSORS_H
#define PHX_JOB_CHECKPOINT_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "phalanx/phalanx.h"

#define SAFETENSORS_HEADER_MAX ((uint64_t)64 << 20) /* bytes, with the length in front */

struct safetensors_dtype {
    const char *name;
    size_t size; /* bytes of an element */
};
extern const struct safetensors_dtype safetensors_dtypes[PHX_DTYPES];

struct safetensors_region {
    const char *name; /* points into safetensors.text */
    int dtype;        /* enum phx_dtype */
    uint32_t dims;
    uint64_t shape[PHX_REGION_DIMS_MAX]; /* of the part */
    uint32_t axis, index, count;         /* of the part; count 1: the whole region */
    uint64_t begin, size; /* bytes; `begin` counts from the start of the shard's data, its header included */
};

struct safetensors {
    char *text;                         /* owned */
    struct safetensors_region *regions; /* [count], owned */
    size_t count;
};

/* Returns the length of the header, from the first 8 bytes of the data. Returns 0 if these bytes begin no
 * header that fits into `data_len` bytes of data. */
size_t safetensors_header_len(const uint8_t *data, uint64_t data_len);

/* Reads a header of safetensors_header_len bytes, of a shard with data_len bytes; `where` names the shard in
 * errors. PHX_ERROR_CORRUPT names the byte that is wrong, or the region that is outside the data. The caller
 * frees *ret_tensors with safetensors_done. */
int safetensors_read(const uint8_t *header, size_t len, uint64_t data_len, const char *where,
                     struct safetensors *ret_tensors, struct phx_error *error);
void safetensors_done(struct safetensors *tensors);

#endif
