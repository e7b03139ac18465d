/* host.h - runs functions through a PJRT plugin (abi.h): XLA's for GPUs, TPUs and CPUs, or our own
 * (flow/plugin).
 *
 *     const struct executor *executor = executor_pjrt("/opt/pjrt/cuda.so", &error);
 *
 * A function is passed to the plugin as StableHLO text and compiled for its first device. A launch copies the
 * arguments to the device, runs, and copies the results back before it calls `done`, all on the launching
 * thread. The device's copies of arguments and results live as long as their tensors, or until they are
 * evicted, so that the next launch need not copy them again. None is donated. The types of a plugin's results
 * are compared with the function's declared types before the results are used.
 *
 * Refused, by name: collectives and partition_id, because a process sees only its own devices; run_parallel;
 * element types that PJRT lays out differently. A function of a plugin has no work limit.
 */
#ifndef PHX_FLOW_PJRT_HOST_H
#define PHX_FLOW_PJRT_HOST_H

#include "flow/exec/executor.h"

/* Loads the plugin and starts its client, each once per path; neither is ever freed. Any thread may call it.
 * Returns NULL with ERROR_NOT_FOUND if the file does not exist, ERROR_UNSUPPORTED if it is not a plugin, has
 * another version or lacks a function, ERROR_UNAVAILABLE if it has no device, or the plugin's own error. */
const struct executor *executor_pjrt(const char *path, struct error *error);

#endif
