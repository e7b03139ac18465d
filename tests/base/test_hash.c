#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/hash.h"
#include "base/rng.h"

/* Digests, by another program, of the bytes (i * 7 + len) mod 256, i < len; lengths around the padding's
 * borders. */
static const struct {
    size_t len;
    const char *sha1, *sha256;
} vectors[] = {
    {0, "da39a3ee5e6b4b0d3255bfef95601890afd80709",
     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {1, "bf8b4530d8d246dd74ac53a13471bba17941dff7",
     "4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a"},
    {55, "63ac9708fb581dd150d3647549f9e0cb51dcf1df",
     "81afe5b788dc2ce138ff83d9b20164db75a94d75d2b2432eea4a0ef605088c72"},
    {56, "5a0c4d0eb2f15e05bbbff6b8dada9ae767fc03f0",
     "2aba54f0ac632420a2b502431408866e40e1d5e430df4cd822642c78ab2eb9c1"},
    {63, "d94ff3ad53f9b9327704b812ee9c1f3abbba3d48",
     "733d3d4ee79ee67145bf73da13588f6f235d37414fc64b14a2f00f1762792f5e"},
    {64, "5f55a35e13f1865e7ffc22dca1275b1a49b0ff56",
     "79322907b3e9d013d7dc2c2f256674dbf733045cde01df3539271c6f5605feb8"},
    {65, "d7f8931010f8342a97383e1410a58c47d057708b",
     "d85c007c6eb440f085afa2b84f6f2bce4658b240e9f62cb1364bf0485a57e720"},
    {119, "774001b5ad1f46b40c48e1b94cb092c593ead25b",
     "6c87eedf096b345de205b702e5223b73b447a3207791ded3ea007ba15ed6736e"},
    {120, "6ebf3111dc761f11b13f29df0484848785385973",
     "42500cf6a1e3936d6b9e0bcfe296d654b63255e525487d3634d0b15fde591c4d"},
    {1000, "7461968a9edb9b418224f1acb305d2feeaa10ba5",
     "6b0df76627243d095b0c4400cb658b7e804dd03461cc03aee8fc8fe0bcada168"},
    {100000, "c769f921b49ffc0fe611bd4c9d41f9e02fb7d54a",
     "7591069642d2e63f5e1589cef92226875b8a3fec16eb4bef7cf030c78ed51fdc"},
};

static void digests_are_the_standard_ones(void **state)
{
    for (size_t v = 0; v < sizeof vectors / sizeof *vectors; v++) {
        unsigned char *data = test_malloc(vectors[v].len + 1);
        uint8_t digest[32];
        char text[65];
        for (size_t i = 0; i < vectors[v].len; i++)
            data[i] = (unsigned char)(i * 7 + vectors[v].len);
        sha1(data, vectors[v].len, digest);
        hex_encode(digest, 20, text);
        assert_string_equal(text, vectors[v].sha1);
        sha256(data, vectors[v].len, digest);
        hex_encode(digest, 32, text);
        assert_string_equal(text, vectors[v].sha256);
        test_free(data);
    }
}

/* Pieces of any size give what the whole gives. */
static void sha256_takes_pieces(void **state)
{
    uint8_t data[300], whole[SHA256_SIZE], pieces[SHA256_SIZE];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 7);
    for (size_t len = 0; len <= sizeof data; len += 13)
        for (size_t first = 0; first <= len; first += 5) {
            struct sha256 sum;
            size_t second = (len - first) / 2;
            sha256_begin(&sum);
            sha256_add(&sum, data, first);
            sha256_add(&sum, data + first, second);
            sha256_add(&sum, data + first + second, len - first - second);
            sha256_end(&sum, pieces);
            sha256(data, len, whole);
            assert_memory_equal(pieces, whole, sizeof whole);
        }
}

/* RFC 4231, test cases 1 to 4, 6 and 7. */
static void hmac_is_rfc_4231(void **state)
{
    static const char large[] = "Test Using Larger Than Block-Size Key - Hash Key First";
    static const char larger[] = "This is a test using a larger than block-size key and a larger than "
                                 "block-size data. The key needs to be hashed before being used by the HMAC "
                                 "algorithm.";
    uint8_t b[20], a[131], counted[25], d[50], c[50];
    memset(b, 0x0b, sizeof b);
    memset(a, 0xaa, sizeof a);
    memset(d, 0xdd, sizeof d);
    memset(c, 0xcd, sizeof c);
    for (size_t i = 0; i < sizeof counted; i++)
        counted[i] = (uint8_t)(i + 1);
    const struct {
        const void *key;
        size_t key_len;
        const void *data;
        size_t len;
        const char *sum;
    } cases[] = {
        {b, 20, "Hi There", 8, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {"Jefe", 4, "what do ya want for nothing?", 28,
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {a, 20, d, 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        {counted, 25, c, 50, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
        {a, 131, large, sizeof large - 1, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        {a, 131, larger, sizeof larger - 1,
         "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hmac hmac;
        uint8_t sum[SHA256_SIZE];
        char text[2 * SHA256_SIZE + 1];
        hmac_begin(&hmac, cases[i].key, cases[i].key_len);
        for (int again = 0; again < 2; again++) {
            hmac_sum(&hmac, cases[i].data, cases[i].len, sum);
            hex_encode(sum, sizeof sum, text);
            assert_string_equal(text, cases[i].sum);
        }
    }
}

/* RFC 3720, appendix B.4, the check value, and that the two paths and any split agree. */
static void crc32c_is_castagnoli(void **state)
{
    unsigned char data[300] = {0};
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(crc32c(0, data, 32), 0x8a9136aa);
    memset(data, 0xff, 32);
    assert_int_equal(crc32c(0, data, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        data[i] = (unsigned char)i;
    assert_int_equal(crc32c(0, data, 32), 0x46dd794e);
    assert_int_equal(crc32c(7, NULL, 0), 7);
    struct rng rng;
    rng_seed(&rng, 9);
    for (int round = 0; round < 5000; round++) {
        size_t start = rng_below(&rng, 9), len = rng_below(&rng, sizeof data - start),
               split = rng_below(&rng, len + 1);
        for (size_t i = 0; i < len; i++)
            data[start + i] = (unsigned char)rng_next(&rng);
        uint32_t whole = crc32c(0, data + start, len);
        assert_int_equal(whole, crc32c_by_table(0, data + start, len));
        assert_int_equal(whole, crc32c(crc32c(0, data + start, split), data + start + split, len - split));
        if (len) {
            data[start + rng_below(&rng, len)] ^= (unsigned char)(1u << rng_below(&rng, 8));
            assert_int_not_equal(whole, crc32c(0, data + start, len));
        }
    }
}

/* These values are in logs and snapshots: they may never change. */
static void hash64_is_fixed(void **state)
{
    assert_int_equal(hash_mix(0), 0);
    assert_int_equal(hash64(0, "", 0), hash_mix(UINT64_C(0xcbf29ce484222325)));
    assert_int_equal(hash64(0, "a", 1),
                     hash_mix(UINT64_C(0xaf63dc4c8601ec8c))); /* FNV-1a's published value */
    assert_int_equal(hash64(0, "foobar", 6), hash_mix(UINT64_C(0x85944171f73967e8)));
    assert_int_not_equal(hash64(1, "a", 1), hash64(0, "a", 1));
}

/* hash_words depends on every bit of the text and on its length. */
static void hash_words_is_fixed(void **state)
{
    unsigned char text[40] = {0};
    uint64_t seen[1 + 40 + 8 * 40];
    size_t count = 0;
    assert_int_equal(hash_words(0, NULL, 0), hash_mix(UINT64_C(0x9e3779b97f4a7c15)));
    assert_int_equal(hash_words(7, "a", 1),
                     hash_mix((7 ^ 2 * UINT64_C(0x9e3779b97f4a7c15) ^ 'a') * UINT64_C(0x9e3779b97f4a7c15)));
    for (size_t len = 0; len <= sizeof text; len++)
        seen[count++] = hash_words(0, text, len);
    for (size_t bit = 0; bit < 8 * sizeof text; bit++) {
        text[bit / 8] ^= (unsigned char)(1u << bit % 8);
        seen[count++] = hash_words(0, text, sizeof text);
        text[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    for (size_t a = 0; a < count; a++)
        for (size_t b = 0; b < a; b++)
            assert_int_not_equal(seen[a], seen[b]);
    assert_int_not_equal(hash_words(1, "a", 1), hash_words(0, "a", 1));
}

/* The generator's outputs for a known state: xoshiro256** from {1, 2, 3, 4}, computed by hand for two steps.
 */
static void generator_is_fixed(void **state)
{
    struct rng rng = {{1, 2, 3, 4}};
    assert_int_equal(rng_next(&rng), 11520);
    assert_int_equal(rng_next(&rng), 0);
    assert_int_equal(rng_next(&rng), 1509978240);
    rng_seed(&rng, 0);
    assert_int_equal(rng.state[0], UINT64_C(0xe220a8397b1dcdaf)); /* splitmix64's first output for seed 0 */
}

static void ranges_are_kept_and_even(void **state)
{
    struct rng rng, twin;
    rng_seed(&rng, 10);
    rng_seed(&twin, 10);
    int counts[7] = {0}, chances = 0;
    for (int i = 0; i < 70000; i++) {
        uint64_t value = rng_below(&rng, 7);
        assert_true(value < 7);
        assert_int_equal(value, rng_below(&twin, 7));
        counts[value]++;
    }
    for (int i = 0; i < 7; i++)
        assert_in_range(counts[i], 9500, 10500);
    for (int i = 0; i < 100000; i++) {
        int64_t value = rng_range(&rng, -3, 3);
        assert_true(value >= -3 && value <= 3);
        double unit = rng_unit(&rng);
        assert_true(unit >= 0 && unit < 1);
        chances += rng_chance(&rng, 250000);
    }
    assert_in_range(chances, 24000, 26000);
    rng_range(&rng, INT64_MIN, INT64_MAX);
    assert_int_equal(rng_range(&rng, INT64_MIN, INT64_MIN), INT64_MIN);
    assert_false(rng_chance(&rng, 0));
    assert_true(rng_chance(&rng, 1000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_are_the_standard_ones),
        cmocka_unit_test(sha256_takes_pieces),
        cmocka_unit_test(hmac_is_rfc_4231),
        cmocka_unit_test(crc32c_is_castagnoli),
        cmocka_unit_test(hash64_is_fixed),
        cmocka_unit_test(hash_words_is_fixed),
        cmocka_unit_test(generator_is_fixed),
        cmocka_unit_test(ranges_are_kept_and_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
