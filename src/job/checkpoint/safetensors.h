/* safetensors.h - reads the header of a shard of named regions (its form: top of regions.h) back into a
 * description. It reads headers that libphalanx has written, also with other blanks or another order; any
 * other header is an error, never a guess: no escapes in names, no other members, every offset within the
 * data.
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
    const char *name; /* in the text */
    int dtype;        /* enum phx_dtype */
    uint32_t dims;
    uint64_t shape[PHX_REGION_DIMS_MAX]; /* of the part */
    uint32_t axis, index, count;         /* count 1: it is the whole */
    uint64_t begin, size; /* bytes; where the part begins in the shard's data, its header included */
};

struct safetensors {
    char *text;                         /* owned */
    struct safetensors_region *regions; /* [count], owned */
    size_t count;
};

/* Bytes that the header takes, from the first 8 of the data; 0: these begin no header within the limits of
 * `data_len` bytes of data. */
size_t safetensors_header_len(const uint8_t *data, uint64_t data_len);

/* `header` has safetensors_header_len bytes, of a shard with data_len bytes; `where` names it in errors.
 * PHX_ERROR_CORRUPT says at which byte it is none, or which region does not lie within the data. */
int safetensors_read(const uint8_t *header, size_t len, uint64_t data_len, const char *where,
                     struct safetensors *ret_tensors, struct phx_error *error);
void safetensors_done(struct safetensors *tensors);

#endif
