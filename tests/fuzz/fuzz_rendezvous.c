/* Any bytes as a stream between ranks (rank 0's port is open to whoever reaches it). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "job/rendezvous.c" /* libphalanx is not part of any layer's library */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rendezvous_message message;
    struct rendezvous_name name;
    size_t used;
    while (rendezvous_decode(data, size, RENDEZVOUS_HELLO_MAX, &message, &used) == 1) {
        if (used > size || rendezvous_size(&message) != used)
            abort();
        uint8_t *again = malloc(used);
        if (again == NULL)
            return 0;
        rendezvous_encode(&message, again);
        if (memcmp(again + 8, data + 8, used - 8) != 0)
            abort();
        free(again);
        size_t names = rendezvous_get_name(message.value, message.value_len, &name);
        if (names > message.value_len ||
            (names > 0 && strlen(name.name) + strlen(name.address) + 20 != names))
            abort();
        data += used;
        size -= used;
    }
    return 0;
}
