/* Any bytes as a stream between task and agent: no read outside, and what decodes encodes to something that
 * decodes to the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "job/link/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const struct jobwire_message *message)
{
    uint8_t first[JOBWIRE_FRAME_MAX], second[JOBWIRE_FRAME_MAX];
    struct jobwire_message back;
    size_t used, len = jobwire_encode(message, first, sizeof first);
    if (len == 0)
        return; /* a type of a later version */
    if (jobwire_decode(first, len, &back, &used) != 1 || used != len || back.type != message->type)
        abort();
    if (jobwire_encode(&back, second, sizeof second) != len || memcmp(first, second, len) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct jobwire_message message;
    size_t used;
    while (jobwire_decode(data, size, &message, &used) == 1) {
        if (used < JOBWIRE_HEADER_SIZE || used > size)
            abort();
        check_again(&message);
        data += used;
        size -= used;
    }
    return 0;
}
