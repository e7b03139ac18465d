/* collect.h - collects the flight records of a task on this machine, and the kernel's view of its processes:
 * the answer to an errand of kind DIAGNOSE (core/words/order.h), in the form that flight_add_answer() reads.
 *
 *     struct buf out = {0};
 *     if (collect_task(&order, &out, &error) == 0)
 *         ... {"ranks":[{"rank":3,"state":"S","step":41,"stepAgeMs":61000,"flight":{...}}]} ...
 *
 * The task's processes are those with its uid in their environment (PHX_TASK_UID). Each rank is represented
 * by its process that has a record of libphalanx, otherwise by the one with the most CPU time. Under torchrun
 * the ranks are torchrun's workers. A rank's record is one of these:
 *   PyTorch's     the file PREFIX RANK (PREFIX from TORCH_FR_DUMP_TEMP_FILE or
 *                 TORCH_NCCL_DEBUG_INFO_TEMP_FILE), requested through the pipe PREFIX RANK ".pipe"
 *                 (TORCH_NCCL_DEBUG_INFO_PIPE_FILE) and waited for; if it cannot be requested, a dump that
 *                 was written since the process began
 *   libphalanx's  if PyTorch's could not be requested and there is none: the memory that libphalanx keeps for
 *                 this purpose (job/link/wire.h, flight segment), readable even if the process hangs
 * A rank whose requested dump does not arrive in time has no record.
 *
 * Needs the right to read these processes: run it as their user, or as root. Blocks up to `within_ns`, and
 * while files are read, so run it in a separate process. */
#ifndef PHX_HOST_COLLECT_COLLECT_H
#define PHX_HOST_COLLECT_COLLECT_H

#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

struct collect_order {
    uint64_t task;     /* the task's uid */
    size_t bytes;      /* limit of the answer, exceeded only if the list of ranks alone is longer */
    int64_t within_ns; /* how long to wait for requested dumps */
};

/* Reads {"task":"UID","bytes":N,"withinMs":N}. ERROR_INVALID names the field. */
int collect_order_read(struct str text, struct collect_order *ret_order, struct error *error);
/* Appends one line of JSON to `out`; the list is empty if the task has no process here. Fails only if /proc
 * cannot be read. */
int collect_task(const struct collect_order *order, struct buf *out, struct error *error);

#endif
