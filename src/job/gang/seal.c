#include "job/gang/seal.h"

#include <string.h>
#include <sys/random.h>

void seal_begin(struct seal *seal, const uint8_t key[SEAL_KEY_SIZE], const char purpose[SEAL_PURPOSE_SIZE],
                enum seal_direction direction, const uint8_t server_nonce[SEAL_NONCE_SIZE],
                const uint8_t client_nonce[SEAL_NONCE_SIZE])
{
    uint8_t input[SEAL_PURPOSE_SIZE + 1 + 2 * SEAL_NONCE_SIZE], derived[SHA256_SIZE];
    struct hmac hmac;
    memcpy(input, purpose, SEAL_PURPOSE_SIZE);
    input[SEAL_PURPOSE_SIZE] = (uint8_t)direction;
    memcpy(input + SEAL_PURPOSE_SIZE + 1, server_nonce, SEAL_NONCE_SIZE);
    memcpy(input + SEAL_PURPOSE_SIZE + 1 + SEAL_NONCE_SIZE, client_nonce, SEAL_NONCE_SIZE);
    hmac_begin(&hmac, key, SEAL_KEY_SIZE);
    hmac_sum(&hmac, input, sizeof input, derived);
    hmac_begin(&seal->hmac, derived, sizeof derived);
    seal->next = 0;
}

static void sum_of(const struct seal *seal, const uint8_t digest[SHA256_SIZE], uint8_t ret_sum[SHA256_SIZE])
{
    uint8_t input[8 + SHA256_SIZE];
    for (size_t i = 0; i < 8; i++)
        input[i] = (uint8_t)(seal->next >> (8 * i));
    memcpy(input + 8, digest, SHA256_SIZE);
    hmac_sum(&seal->hmac, input, sizeof input, ret_sum);
}

void seal_tag_digest(struct seal *seal, const uint8_t digest[SHA256_SIZE], uint8_t ret_tag[SEAL_TAG_SIZE])
{
    uint8_t sum[SHA256_SIZE];
    sum_of(seal, digest, sum);
    memcpy(ret_tag, sum, SEAL_TAG_SIZE);
    seal->next++;
}

void seal_tag(struct seal *seal, const void *frame, size_t len, uint8_t ret_tag[SEAL_TAG_SIZE])
{
    uint8_t digest[SHA256_SIZE];
    sha256(frame, len, digest);
    seal_tag_digest(seal, digest, ret_tag);
}

bool seal_check(struct seal *seal, const void *frame, size_t len, const uint8_t tag[SEAL_TAG_SIZE])
{
    uint8_t digest[SHA256_SIZE], sum[SHA256_SIZE];
    unsigned different = 0;
    sha256(frame, len, digest);
    sum_of(seal, digest, sum);
    for (size_t i = 0; i < SEAL_TAG_SIZE; i++)
        different |= (unsigned)(sum[i] ^ tag[i]);
    if (different == 0)
        seal->next++;
    return different == 0;
}

void seal_data_begin(const struct seal *seal, struct poly1305 *ret_sum)
{
    static const char purpose[] = "data"; /* of another length than what frames have under this key */
    uint8_t key[SHA256_SIZE];
    hmac_sum(&seal->hmac, purpose, sizeof purpose - 1, key);
    poly1305_begin(ret_sum, key);
}

bool seal_data_check(struct poly1305 *sum, const uint8_t tag[SEAL_TAG_SIZE])
{
    uint8_t own[POLY1305_TAG_SIZE];
    unsigned different = 0;
    poly1305_end(sum, own);
    for (size_t i = 0; i < SEAL_TAG_SIZE; i++)
        different |= (unsigned)(own[i] ^ tag[i]);
    return different == 0;
}

bool seal_nonce(uint8_t ret_nonce[SEAL_NONCE_SIZE])
{
    return getrandom(ret_nonce, SEAL_NONCE_SIZE, 0) == SEAL_NONCE_SIZE;
}
