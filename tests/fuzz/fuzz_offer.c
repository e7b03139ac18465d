/* Any bytes as the offers and keys that ranks send to rank 0, and as a request for a transfer: what decodes
 * encodes to the same, and a plan of whatever was offered names offers of one checkpoint that are in the
 * list. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "job/gang/keys.h"
#include "job/gang/offer.h"
#include "job/checkpoint/transfer.h"

enum { WORLD = 5, OFFERS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_keys(const uint8_t *data, size_t size, uint64_t wanted[WORLD])
{
    struct keys keys;
    size_t len;
    if (!keys_decode(data, size, 0, &keys))
        return;
    uint8_t *again = keys_encode(&keys, &len);
    if (again == NULL || len != size || memcmp(again, data, len) != 0)
        abort();
    plan_extend_keys(keys.list, keys.world, wanted, WORLD);
    free(again);
    keys_done(&keys);
}

/* The port of a rank is open to whoever reaches it. */
static void check_request(const uint8_t *data, size_t size)
{
    struct transfer_request request;
    uint8_t again[TRANSFER_REQUEST_SIZE];
    if (size < sizeof again || !transfer_get_request(data, &request))
        return;
    transfer_put_request(&request, again);
    if (memcmp(again, data, sizeof again) != 0)
        abort();
}

static void check_plan(const struct plan_input *input)
{
    uint32_t sources[WORLD];
    struct plan_choice choice;
    if (plan_make(input, sources, &choice) != PLAN_FOUND)
        return;
    for (uint32_t rank = 0; rank < WORLD; rank++)
        if (sources[rank] >= input->count || input->offers[sources[rank]].offer.step != choice.step ||
            input->offers[sources[rank]].offer.attempt != choice.attempt)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t machines[WORLD] = {1, 1, 2, 2, 3};
    struct plan_offer offers[OFFERS];
    uint64_t wanted[WORLD] = {0};
    struct plan_input input = {.world = WORLD, .machines = machines, .keys = wanted, .offers = offers};
    if (size < 1)
        return 0;
    check_request(data, size);
    size_t keys_len = data[0] < size - 1 ? data[0] : size - 1;
    check_keys(data + 1, keys_len, wanted);
    data += 1 + keys_len;
    size -= 1 + keys_len;
    for (; size >= 1 + OFFER_SIZE && input.count < OFFERS; data += 1 + OFFER_SIZE, size -= 1 + OFFER_SIZE) {
        struct plan_offer *at = &offers[input.count];
        uint8_t again[OFFER_SIZE];
        *at = (struct plan_offer){.holder = data[0] % WORLD};
        if (!offer_get(data + 1, &at->offer))
            continue;
        offer_put(&at->offer, again);
        if (memcmp(again, data + 1, OFFER_SIZE) != 0)
            abort();
        input.count++;
    }
    check_plan(&input);
    plan_dump(&input, NULL, (uint32_t[WORLD]){0}, &(struct plan_choice){0});
    return 0;
}
