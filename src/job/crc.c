/* The instruction takes eight bytes and answers three cycles later, but takes new ones each cycle: three
 * lanes of LANE bytes are under way at once. The remainder of lane A followed by lane B is that of A, moved
 * on by LANE zero bytes, xor that of B alone: moving on is linear over the bits, so four tables of a byte
 * each do it. */
#include "job/crc.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#define HAVE_INSTRUCTION 1
#else
#define HAVE_INSTRUCTION 0
#endif

#define POLYNOMIAL 0x82f63b78u /* 0x1edc6f41, bits reversed */
#define LANE       1024

static uint32_t table[8][256];
static uint32_t moved[4][256]; /* the remainder of each byte of a remainder, LANE zero bytes later */
static bool by_instruction;
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void fill_moved(void)
{
    uint32_t bit_moved[32];
    for (int bit = 0; bit < 32; bit++) {
        uint32_t crc = 1u << bit;
        for (int i = 0; i < LANE; i++)
            crc = (crc >> 8) ^ table[0][crc & 0xff];
        bit_moved[bit] = crc;
    }
    for (int place = 0; place < 4; place++)
        for (int byte = 0; byte < 256; byte++)
            for (int bit = 0; bit < 8; bit++)
                if (byte >> bit & 1)
                    moved[place][byte] ^= bit_moved[8 * place + bit];
}

static void fill_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? POLYNOMIAL : 0);
        table[0][byte] = crc;
    }
    for (size_t slice = 1; slice < 8; slice++)
        for (size_t byte = 0; byte < 256; byte++)
            table[slice][byte] = (table[slice - 1][byte] >> 8) ^ table[0][table[slice - 1][byte] & 0xff];
    fill_moved();
#if HAVE_INSTRUCTION
    by_instruction = __builtin_cpu_supports("sse4.2");
#endif
}

static uint32_t by_tables(uint32_t crc, const uint8_t *bytes, size_t len)
{
    for (; len >= 8; len -= 8, bytes += 8) {
        uint32_t low = crc ^ ((uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                              (uint32_t)bytes[3] << 24);
        crc = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^
              table[4][low >> 24] ^ table[3][bytes[4]] ^ table[2][bytes[5]] ^ table[1][bytes[6]] ^
              table[0][bytes[7]];
    }
    for (; len > 0; len--, bytes++)
        crc = (crc >> 8) ^ table[0][(crc ^ *bytes) & 0xff];
    return crc;
}

#if HAVE_INSTRUCTION
static uint32_t move_on(uint32_t crc)
{
    return moved[0][crc & 0xff] ^ moved[1][crc >> 8 & 0xff] ^ moved[2][crc >> 16 & 0xff] ^
           moved[3][crc >> 24];
}

static uint64_t eight(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

__attribute__((target("sse4.2"))) static uint32_t by_lanes(uint32_t crc, const uint8_t *bytes, size_t len)
{
    for (; len >= 3 * LANE; len -= 3 * LANE, bytes += 3 * LANE) {
        uint64_t first = crc, second = 0, third = 0;
        for (size_t i = 0; i < LANE; i += 8) {
            first = _mm_crc32_u64(first, eight(bytes + i));
            second = _mm_crc32_u64(second, eight(bytes + LANE + i));
            third = _mm_crc32_u64(third, eight(bytes + 2 * LANE + i));
        }
        crc = move_on(move_on((uint32_t)first) ^ (uint32_t)second) ^ (uint32_t)third;
    }
    for (; len >= 8; len -= 8, bytes += 8)
        crc = (uint32_t)_mm_crc32_u64(crc, eight(bytes));
    for (; len > 0; len--, bytes++)
        crc = _mm_crc32_u8(crc, *bytes);
    return crc;
}
#endif

uint32_t job_crc32c(uint32_t crc, const void *data, size_t len)
{
    pthread_once(&table_once, fill_tables);
#if HAVE_INSTRUCTION
    if (by_instruction)
        return ~by_lanes(~crc, data, len);
#endif
    return ~by_tables(~crc, data, len);
}

/* ---- joining ---- */

/* a * b modulo the polynomial; of remainders, whose highest bit is the coefficient of x^0. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
        if ((a & bit) != 0)
            product ^= b;
        b = (b >> 1) ^ ((b & 1) != 0 ? POLYNOMIAL : 0);
    }
    return product;
}

uint32_t job_crc32c_join(uint32_t first, uint32_t second, size_t len)
{
    uint32_t power = 1u << 23; /* x^8: one byte; squared, two */
    for (; len > 0; len >>= 1) {
        if ((len & 1) != 0)
            first = multiply(power, first);
        power = multiply(power, power);
    }
    return first ^ second;
}
