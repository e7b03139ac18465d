/* regions.h - named parts of a rank's state, and the bytes of a checkpoint of them: those of a safetensors
 * file (https://huggingface.co/docs/safetensors: u64 length of the header, the header as JSON, the data of
 * all parts one after the other), so that other tools can read exported files.
 *
 *     {"__metadata__":{"phalanx.shard.w":"axis 0, part 1 of 4"},"w":{"dtype":"F32","shape":[8,16],
 *      "data_offsets":[0,512]}, ...}   then blanks up to a multiple of 64
 *
 * The header is a function of the description alone: the same description gives the same bytes. A different
 * header belongs to other regions, or to the same ones in other parts (safetensors.h reads it, reshard.h puts
 * them together).
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

/* Copies the description, not the data. PHX_ERROR_INVALID names the region. *ret_regions need not be valid
 * before. */
int job_regions_describe(const struct phx_region *regions, size_t count, struct job_regions *ret_regions,
                         struct phx_error *error);
void job_regions_done(struct job_regions *regions);

/* Returns a number for these parts at these addresses. Other parts or addresses have another number, except
 * by chance. */
uint64_t job_regions_place(const struct job_regions *regions);

/* Copies `data` (of a checkpoint of these regions) into the program's memory. PHX_ERROR_INVALID: it is one
 * of others. */
int job_regions_fill(const struct job_regions *regions, const uint8_t *data, size_t len,
                     struct phx_error *error);

#endif
