/* fuzz_http.c - any bytes as a request to the API: an answer, in bounded memory, and a consistent core. */
#include <stddef.h>
#include <stdint.h>

#include "fuzz/api_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct api_world world = {0};
    struct buf answer = {0};
    if (size > 256 * 1024)
        return 0;
    world_begin(&world);
    world_ask(&world, (struct str){(const char *)data, size}, &answer);
    world_end(&world);
    buf_done(&answer);
    return 0;
}
