/* crc32c.c - CRC by carry-less multiplication: the message so far, as a polynomial, is congruent to a
 * remainder of 128 bits. Several lanes are computed at once, each of every n-th block of 16 bytes. To move a
 * lane by D bits, to the block to which it is added, its halves are multiplied by x^(D + 31) and x^(D - 33)
 * modulo the polynomial (the odd bit is that of a product of reflected factors). At the end the lanes are
 * joined in the same way, and the processor's own instruction for this sum takes the last 16 bytes. Newer
 * processors multiply two lanes at once. */
#include "base/crc32c.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define HAVE_INSTRUCTION 1
#else
#define HAVE_INSTRUCTION 0
#endif

#define POLYNOMIAL 0x82f63b78u /* 0x1edc6f41, bits reversed */
#define BLOCK      ((size_t)16)
#define LANES      4 /* registers of one block, or of two */
#define COPY_PART  ((size_t)128 << 10)

static uint32_t table[8][256];
static bool by_instruction, two_at_once;
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

/* Multiplies two remainders modulo the polynomial; their highest bit is the coefficient of x^0. */
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

#if HAVE_INSTRUCTION
static uint64_t move_one[2], move_round[2], move_wide[2]; /* factors of the low and the high half */

/* Returns x^bits modulo the polynomial. */
static uint32_t power(size_t bits)
{
    uint32_t result = 1u << 31;
    for (uint32_t square = 1u << 30; bits > 0; bits >>= 1, square = multiply(square, square))
        if ((bits & 1) != 0)
            result = multiply(result, square);
    return result;
}

/* Computes the factors that move a CRC by `blocks` blocks. */
static void fill_factors(uint64_t factors[2], unsigned blocks)
{
    factors[0] = power(8 * BLOCK * blocks + 31);
    factors[1] = power(8 * BLOCK * blocks - 33);
}
#endif

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
#if HAVE_INSTRUCTION
    fill_factors(move_one, 1);
    fill_factors(move_round, LANES);
    fill_factors(move_wide, 2 * LANES);
    by_instruction = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
    two_at_once = by_instruction && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("vpclmulqdq");
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
#define TARGET      __attribute__((target("sse4.2,pclmul")))
#define WIDE_TARGET __attribute__((target("sse4.2,pclmul,avx2,vpclmulqdq")))
#define INLINE      __attribute__((always_inline)) inline

TARGET static uint32_t by_words(uint32_t crc, const uint8_t *bytes, size_t len)
{
    for (; len >= 8; len -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, sizeof word);
        crc = (uint32_t)_mm_crc32_u64(crc, word);
    }
    for (; len > 0; len--, bytes++)
        crc = _mm_crc32_u8(crc, *bytes);
    return crc;
}

TARGET static inline __m128i load(const void *bytes)
{
    return _mm_loadu_si128(bytes);
}

TARGET static inline __m128i move_on(__m128i sum, __m128i factors, __m128i block)
{
    __m128i low = _mm_clmulepi64_si128(sum, factors, 0x00), high = _mm_clmulepi64_si128(sum, factors, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), block);
}

TARGET static uint32_t join_lanes(const __m128i *sums, size_t count)
{
    __m128i sum = sums[0], factors = load(move_one);
    for (size_t i = 1; i < count; i++)
        sum = move_on(sum, factors, sums[i]);
    uint64_t crc = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(sum));
    return (uint32_t)_mm_crc32_u64(crc, (uint64_t)_mm_extract_epi64(sum, 1));
}

/* Sums whole rounds, at least one. If `to` (aligned) is not NULL, the bytes are also copied there, past the
 * processor's cache: they are not read soon, and memory that is overwritten need not be read first. */
TARGET INLINE static uint32_t rounds(uint32_t crc, uint8_t *to, const uint8_t *bytes, size_t len)
{
    __m128i sums[LANES], factors = load(move_round);
    for (size_t at = 0; at < len; at += BLOCK * LANES)
        for (size_t i = 0; i < LANES; i++) {
            __m128i block = load(bytes + at + BLOCK * i);
            if (to != NULL)
                _mm_stream_si128((void *)(to + at + BLOCK * i), block);
            sums[i] = at > 0 ? move_on(sums[i], factors, block) : block;
            if (at == 0 && i == 0)
                sums[0] = _mm_xor_si128(block, _mm_cvtsi32_si128((int)crc));
        }
    return join_lanes(sums, LANES);
}

/* As rounds, with two blocks in a register. */
WIDE_TARGET INLINE static uint32_t wide_rounds(uint32_t crc, uint8_t *to, const uint8_t *bytes, size_t len)
{
    __m256i sums[LANES], factors = _mm256_broadcastsi128_si256(load(move_wide));
    for (size_t at = 0; at < len; at += 2 * BLOCK * LANES)
        for (size_t i = 0; i < LANES; i++) {
            __m256i blocks = _mm256_loadu_si256((const void *)(bytes + at + 2 * BLOCK * i));
            if (to != NULL)
                _mm256_stream_si256((void *)(to + at + 2 * BLOCK * i), blocks);
            if (at > 0) {
                __m256i low = _mm256_clmulepi64_epi128(sums[i], factors, 0x00);
                __m256i high = _mm256_clmulepi64_epi128(sums[i], factors, 0x11);
                sums[i] = _mm256_xor_si256(_mm256_xor_si256(low, high), blocks);
            } else {
                int first = i == 0 ? (int)crc : 0;
                sums[i] = _mm256_xor_si256(blocks, _mm256_setr_epi32(first, 0, 0, 0, 0, 0, 0, 0));
            }
        }
    __m128i halves[2 * LANES];
    memcpy(halves, sums, sizeof halves);
    return join_lanes(halves, 2 * LANES);
}

TARGET static uint32_t sum_narrow(uint32_t crc, const uint8_t *bytes, size_t len)
{
    return rounds(crc, NULL, bytes, len);
}

TARGET static uint32_t copy_narrow(uint32_t crc, uint8_t *to, const uint8_t *bytes, size_t len)
{
    return rounds(crc, to, bytes, len);
}

WIDE_TARGET static uint32_t sum_wide(uint32_t crc, const uint8_t *bytes, size_t len)
{
    return wide_rounds(crc, NULL, bytes, len);
}

WIDE_TARGET static uint32_t copy_wide(uint32_t crc, uint8_t *to, const uint8_t *bytes, size_t len)
{
    return wide_rounds(crc, to, bytes, len);
}

static uint32_t by_lanes(uint32_t crc, const uint8_t *bytes, size_t len)
{
    size_t round = BLOCK * LANES * (two_at_once ? 2 : 1), whole = len / round * round;
    if (whole > 0)
        crc = two_at_once ? sum_wide(crc, bytes, whole) : sum_narrow(crc, bytes, whole);
    return by_words(crc, bytes + whole, len - whole);
}

static uint32_t copy_words(uint32_t crc, uint8_t *to, const uint8_t *bytes, size_t len)
{
    if (len > 0)
        memcpy(to, bytes, len);
    return by_words(crc, bytes, len);
}

static uint32_t copy_by_lanes(uint32_t crc, uint8_t *to, const uint8_t *bytes, size_t len)
{
    size_t round = BLOCK * LANES * (two_at_once ? 2 : 1), head = -(uintptr_t)to % (2 * BLOCK);
    head = head < len ? head : len;
    crc = copy_words(crc, to, bytes, head);
    size_t whole = (len - head) / round * round, rest = len - head - whole;
    if (whole > 0)
        crc = two_at_once ? copy_wide(crc, to + head, bytes + head, whole)
                          : copy_narrow(crc, to + head, bytes + head, whole);
    _mm_sfence(); /* stores past the cache must be visible before later writes */
    return copy_words(crc, to + head + whole, bytes + head + whole, rest);
}
#endif

uint32_t crc32c(uint32_t crc, const void *data, size_t len)
{
    if (len == 0) /* data may be NULL */
        return crc;
    pthread_once(&table_once, fill_tables);
#if HAVE_INSTRUCTION
    if (by_instruction)
        return ~by_lanes(~crc, data, len);
#endif
    return ~by_tables(~crc, data, len);
}

uint32_t crc32c_by_table(uint32_t crc, const void *data, size_t len)
{
    pthread_once(&table_once, fill_tables);
    return ~by_tables(~crc, data, len);
}

uint32_t crc32c_copy(uint32_t crc, void *to, const void *data, size_t len)
{
    if (len == 0)
        return crc;
    pthread_once(&table_once, fill_tables);
#if HAVE_INSTRUCTION
    if (by_instruction)
        return ~copy_by_lanes(~crc, to, data, len);
#endif
    const uint8_t *bytes = data;
    uint8_t *out = to;
    for (size_t at = 0, part; at < len; at += part) { /* summed while the cache has it */
        part = len - at < COPY_PART ? len - at : COPY_PART;
        memcpy(out + at, bytes + at, part);
        crc = crc32c(crc, out + at, part);
    }
    return crc;
}

/* ---- joining ---- */

uint32_t crc32c_join(uint32_t first, uint32_t second, size_t len)
{
    uint32_t power = 1u << 23; /* x^8: one byte; squared, two */
    for (; len > 0; len >>= 1) {
        if ((len & 1) != 0)
            first = multiply(power, first);
        power = multiply(power, power);
    }
    return first ^ second;
}
