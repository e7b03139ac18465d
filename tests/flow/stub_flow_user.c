/* A user's shared object for tests: @add1 adds one, @meet sums over the devices, @bad fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phalanx/flow_user.h"

struct function {
    char name[32];
    size_t count; /* elements of an argument */
};

uint32_t phx_user_abi(void)
{
    return PHX_USER_ABI;
}

int phx_user_open(const char *name, const struct phx_flow_type *args, uint32_t arg_count,
                  const struct phx_flow_type *results, uint32_t result_count, void **ret_function,
                  char *message, size_t len)
{
    if (arg_count != 1 || result_count != 1 || args[0].element != PHX_FLOW_FLOAT32) {
        snprintf(message, len, "one float32 argument and result");
        return -1;
    }
    struct function *function = calloc(1, sizeof *function);
    snprintf(function->name, sizeof function->name, "%s", name);
    function->count = 1;
    for (int32_t d = 0; d < args[0].rank; d++)
        function->count *= (size_t)args[0].dims[d];
    *ret_function = function;
    return 0;
}

int phx_user_run(void *opened, const struct phx_user_call *call, const void *const *args,
                 void *const *results, char *message, size_t len)
{
    const struct function *function = opened;
    const float *in = args[0];
    float *out = results[0];
    if (strcmp(function->name, "bad") == 0 && call->partition == 0) {
        snprintf(message, len, "bad on purpose");
        return -1;
    }
    float *all = calloc(call->partitions * function->count, sizeof *all);
    int rc = 0;
    if (strcmp(function->name, "add1") != 0)
        rc = call->all_gather(call, 1, in, function->count * sizeof *in, all);
    for (size_t i = 0; i < function->count; i++) {
        out[i] = strcmp(function->name, "add1") == 0 ? in[i] + 1 : 0;
        for (size_t p = 0; p < call->partitions; p++)
            out[i] += all[p * function->count + i];
    }
    free(all);
    return rc;
}

void phx_user_close(void *function)
{
    free(function);
}
