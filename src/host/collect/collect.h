/* collect.h - the flight records of a task that runs on this machine, and what the kernel says of its
 * processes: what an errand of kind DIAGNOSE brings (core/words/order.h), in the form that flight_add_answer
 * reads.
 *
 *     struct buf out = {0};
 *     if (collect_task(&order, &out, &error) == 0)
 *         ... {"ranks":[{"rank":3,"state":"S","step":41,"stepAgeMs":61000,"flight":{...}}]} ...
 *
 * The task's processes are those with its uid in their environment (PHX_TASK_UID). Of each rank the one that
 * has a record speaks, else the one that has worked most. Under torchrun its workers are the ranks. A rank's
 * record is PyTorch's, where there is one, else libphalanx's:
 *   PyTorch's     the dump PREFIX and its rank (TORCH_FR_DUMP_TEMP_FILE, TORCH_NCCL_DEBUG_INFO_TEMP_FILE),
 *                 asked for through PREFIX, its rank and ".pipe" (TORCH_NCCL_DEBUG_INFO_PIPE_FILE) and
 *                 waited for; where it cannot be asked for, one that was left since the process began
 *   libphalanx's  the memory that it keeps for this (job/link/wire.h, flight segment), read also while the
 *                 process is stopped or hangs in the kernel
 * Needs the right to read these processes: their user, or root. Blocks up to `within_ns` and as long as files
 * take to read, so it is for a process of its own. */
#ifndef PHX_HOST_COLLECT_COLLECT_H
#define PHX_HOST_COLLECT_COLLECT_H

#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

struct collect_order {
    uint64_t task;     /* its uid */
    size_t bytes;      /* the answer is at most so long, unless the ranks alone are longer */
    int64_t within_ns; /* for dumps that are written now */
};

/* Reads {"task":"UID","bytes":N,"withinMs":N}. ERROR_INVALID names the field. */
int collect_order_read(struct str text, struct collect_order *ret_order, struct error *error);
/* Appends one line of JSON; no process of the task: an empty list. ERROR_IO. */
int collect_task(const struct collect_order *order, struct buf *out, struct error *error);

#endif
