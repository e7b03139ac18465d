/* A function of flow for benches: @wait takes a client's number and a time in microseconds, keeps its device
 * for that long without using a processor, as an accelerator does, and gives its argument back. Where the
 * environment names a file in BENCH_FLOW_RECORDS, each run is written there (flow_records.h). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../flow_records.h"
#include "phalanx/flow_user.h"

uint32_t phx_user_abi(void)
{
    return PHX_USER_ABI;
}

int phx_user_open(const char *name, const struct phx_flow_type *args, uint32_t arg_count,
                  const struct phx_flow_type *results, uint32_t result_count, void **ret_function,
                  char *message, size_t len)
{
    if (arg_count != 1 || result_count != 1 || args[0].element != PHX_FLOW_FLOAT32 || args[0].rank != 1 ||
        args[0].dims[0] != 2) {
        snprintf(message, len, "one argument and result of tensor<2xf32>");
        return -1;
    }
    const char *path = getenv("BENCH_FLOW_RECORDS");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *memory = MAP_FAILED;
    if (fd >= 0) {
        memory = mmap(NULL, sizeof(struct flow_records), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
    }
    *ret_function = memory == MAP_FAILED ? NULL : memory;
    return 0;
}

int phx_user_run(void *opened, const struct phx_user_call *call, const void *const *args,
                 void *const *results, char *message, size_t len)
{
    const float *in = args[0];
    struct flow_records *records = opened;
    int64_t begin_ns = records_now_ns(), end_ns = begin_ns + (int64_t)(in[1] * 1000);
    struct timespec until = {end_ns / 1000000000, end_ns % 1000000000};
    while (in[1] > 0 && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
        ;
    memcpy(results[0], in, 2 * sizeof *in);
    uint32_t at = records ? atomic_fetch_add(&records->count, 1) : RECORDS_MAX;
    if (at < RECORDS_MAX)
        records->list[at] =
            (struct flow_record){begin_ns, records_now_ns(), (uint32_t)in[0], call->partition};
    return 0;
}

void phx_user_close(void *function)
{
    if (function)
        munmap(function, sizeof(struct flow_records));
}
