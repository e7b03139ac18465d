#include "base/hash.h"

#include <string.h>

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

/* Returns the little-endian number in the first `len` <= 8 bytes. */
static uint64_t load_word(const unsigned char *p, size_t len)
{
    uint64_t word = 0;
    memcpy(&word, p, len);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

uint64_t hash_words(uint64_t seed, const void *data, size_t len)
{
    const unsigned char *p = data;
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t hash = seed ^ (len + 1) * factor; /* the length tells a short last word from one with zeros */
    for (; len >= 8; p += 8, len -= 8) {
        hash = (hash ^ load_word(p, 8)) * factor;
        hash ^= hash >> 32;
    }
    if (len)
        hash = (hash ^ load_word(p, len)) * factor;
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
