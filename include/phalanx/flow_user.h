/* flow_user.h - functions of flow in a shared object of your own.
 *
 * A worker that was started with --functions DIR loads shared objects from that folder. A client names one in
 * place of StableHLO text, with the types of its functions:
 *
 *     user "sums.so"
 *     func @add(tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>)
 *
 * The object exports the four functions below. Several threads may call them at once.
 */
#ifndef PHALANX_FLOW_USER_H
#define PHALANX_FLOW_USER_H

#include "phalanx/flow.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PHX_USER_ABI = 1 };

/* A call on one device, valid while phx_user_run runs. */
struct phx_user_call {
    uint32_t partition, partitions; /* number of this device in the mesh, from 0; number of devices */
    void *context;                  /* the worker's own */
    /* Sends `size` bytes to every device of the call and receives the bytes of all devices, in order of their
     * numbers, in `all` (partitions * size bytes). Blocks until all devices have called it. `key` tells the
     * exchanges of one call apart and must be equal on every device. Returns not 0 if a device of the call is
     * lost: phx_user_run must then return not 0 as well. */
    int (*all_gather)(const struct phx_user_call *call, uint64_t key, const void *mine, size_t size,
                      void *all);
};

/* Returns PHX_USER_ABI. */
uint32_t phx_user_abi(void);
/* Prepares function `name` for these types, which are those of shards. Returns 0 with *ret_function, or not 0
 * with a message of at most `len` bytes, the NUL included. */
int phx_user_open(const char *name, const struct phx_flow_type *args, uint32_t arg_count,
                  const struct phx_flow_type *results, uint32_t result_count, void **ret_function,
                  char *message, size_t len);
/* Computes the results from the arguments, both in row-major order. The worker owns the memory of arguments
 * and results. Returns 0, or not 0 with a message as phx_user_open does. */
int phx_user_run(void *function, const struct phx_user_call *call, const void *const *args,
                 void *const *results, char *message, size_t len);
/* Frees a prepared function. */
void phx_user_close(void *function);

#ifdef __cplusplus
}
#endif
#endif
