/* regions.h - named parts of a rank's state, and the bytes of their checkpoint, which are a safetensors file
 * (https://huggingface.co/docs/safetensors: u64 length of the header, the header as JSON, the data of all
 * parts one after the other). Other tools can therefore read exported files.
 *
 *     {"__metadata__":{"phalanx.shard.w":"axis 0, part 1 of 4"},"w":{"dtype":"F32","shape":[8,16],
 *      "data_offsets":[0,512]}, ...}   then blanks up to a multiple of 64
 *
 * The header is a function of the description alone: the same description gives the same bytes. A different
 * header belongs to other regions, or to the same regions in other parts (safetensors.h reads the header,
 * reshard.h puts the parts together).
 *
 * No state but the struct. Any thread.
 */
#ifndef PHX_JOB_CHECKPOINT_REGIONS_H
#define PHX_JOB_CHECKPOINT_REGIONS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "phalanx/phalanx.h"

struct job_regions {
    struct iovec
        *parts;   /* [count + 1]; the first is the header, owned; the others are the program's memory */
    size_t count; /* of regions; 0: none are registered */
    size_t len;   /* of all parts */
    uint64_t key; /* hash of the header: equal for ranks whose regions are the same parts (replicas); not 0 */
};

/* Copies the description, not the data. PHX_ERROR_INVALID names the wrong region. The caller frees
 * *ret_regions with job_regions_done. */
int job_regions_describe(const struct phx_region *regions, size_t count, struct job_regions *ret_regions,
                         struct phx_error *error);
void job_regions_done(struct job_regions *regions);

/* Returns a hash of these parts and their addresses. */
uint64_t job_regions_place(const struct job_regions *regions);

/* Copies `data`, a checkpoint of these regions, into the program's memory. Returns PHX_ERROR_INVALID if it is
 * a checkpoint of other regions. */
int job_regions_fill(const struct job_regions *regions, const uint8_t *data, size_t len,
                     struct phx_error *error);

#endif
