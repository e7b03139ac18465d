/* flow_user.h - functions of flow in a shared object of your own.
 *
 * A worker that was started with --functions DIR loads shared objects from that folder. A client names one in
 * place of StableHLO text, with the types of its functions:
 *
 *     user "sums.so"
 *     func @add(tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>)
 *
 * The object exports the four functions below. They may be called by several threads at once.
 */
#ifndef PHALANX_FLOW_USER_H
#define PHALANX_FLOW_USER_H

#include "phalanx/flow.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PHX_USER_ABI = 1 };

/* The call that runs: this device's number among the devices of the mesh, and how to meet the others. */
struct phx_user_call {
    uint32_t partition, partitions;
    void *context;
    /* Gives `size` bytes to every device of the call and receives those of all, in order, in `all`. Blocks
     * until all have come. Not 0: the gang has lost a member; return not 0 as well. `key` tells exchanges of
     * one call apart and is the same on every device. */
    int (*all_gather)(const struct phx_user_call *call, uint64_t key, const void *mine, size_t size,
                      void *all);
};

/* PHX_USER_ABI. */
uint32_t phx_user_abi(void);
/* Prepares function `name` for these types. 0 and *ret_function, or not 0 and a message of at most `len`
 * bytes with its NUL. */
int phx_user_open(const char *name, const struct phx_flow_type *args, uint32_t arg_count,
                  const struct phx_flow_type *results, uint32_t result_count, void **ret_function,
                  char *message, size_t len);
/* Computes the results, whose memory is there, from the arguments. Not 0: failed, with a message. */
int phx_user_run(void *function, const struct phx_user_call *call, const void *const *args,
                 void *const *results, char *message, size_t len);
void phx_user_close(void *function);

#ifdef __cplusplus
}
#endif
#endif
