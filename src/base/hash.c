#include "base/hash.h"

uint64_t hash_mix(uint64_t value)
{
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

uint64_t hash64(uint64_t seed, const void *data, size_t len)
{
    const unsigned char *p = data;
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ seed;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    return hash_mix(hash);
}

void hex_encode(const uint8_t *data, size_t len, char *ret_text)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        ret_text[2 * i] = digits[data[i] >> 4];
        ret_text[2 * i + 1] = digits[data[i] & 15];
    }
    ret_text[2 * len] = 0;
}
