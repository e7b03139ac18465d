/* host.h - runs functions by a PJRT plugin (abi.h): XLA's for GPUs, TPUs and CPUs, or our own (flow/plugin).
 *
 *     const struct executor *executor = executor_pjrt("/opt/pjrt/cuda.so", &error);
 *
 * A function goes to the plugin as StableHLO text and is compiled for its first device. A launch brings the
 * arguments to the device, runs, and brings the results back before it calls `done`, all on the thread that
 * launches. Arguments and results stay on the device as long as their tensors live, or until they are
 * evicted, so that the next launch need not bring them again; none is donated. A plugin's answer is compared
 * with the function's declared types before it is used.
 *
 * Refused, by name: collectives and partition_id, because a process sees its own devices alone; run_parallel;
 * element types that PJRT does not lay out as we do. A plugin's function has no limit of work.
 */
#ifndef PHX_FLOW_PJRT_HOST_H
#define PHX_FLOW_PJRT_HOST_H

#include "flow/exec/executor.h"

/* Loads the plugin and starts its client, both once for each path; they live for ever. Any thread. NULL:
 * ERROR_NOT_FOUND there is no such file, ERROR_UNSUPPORTED it is no plugin, is of another version or lacks a
 * function, ERROR_UNAVAILABLE it has no device; or the plugin's own error. */
const struct executor *executor_pjrt(const char *path, struct error *error);

#endif
