/* Any bytes as a stream between ranks (rank 0's port is open to whoever reaches it). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "job/gang/rendezvous.c" /* libphalanx is not part of any layer's library */
#include "job/gang/seal.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* No frame has a right tag by chance, and the tag of one place in the order fits no other place. */
static void check_tag(const uint8_t *frame, uint8_t *copy, size_t size)
{
    static const uint8_t key[SEAL_KEY_SIZE] = "k", nonce[SEAL_NONCE_SIZE] = "n";
    struct seal out, in, late;
    seal_begin(&out, key, RENDEZVOUS_PURPOSE, SEAL_FROM_CLIENT, nonce, nonce);
    late = in = out;
    late.next = 1;
    if (rendezvous_check(&in, frame, size))
        abort();
    rendezvous_seal(&out, copy, size);
    if (rendezvous_check(&late, copy, size) || !rendezvous_check(&in, copy, size) || in.next != 1)
        abort();
}

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
        if (memcmp(again + 8, data + 8, used - 8 - RENDEZVOUS_TAG_SIZE) != 0)
            abort();
        check_tag(data, again, used);
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
