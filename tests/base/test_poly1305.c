/* Poly1305: the vectors of RFC 8439, and pieces of any length. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/poly1305.h"

static void sum_of(const uint8_t key[POLY1305_KEY_SIZE], const void *data, size_t len, size_t piece,
                   uint8_t tag[POLY1305_TAG_SIZE])
{
    struct poly1305 sum;
    poly1305_begin(&sum, key);
    for (size_t at = 0; at < len; at += piece)
        poly1305_add(&sum, (const char *)data + at, len - at < piece ? len - at : piece);
    poly1305_end(&sum, tag);
}

/* Section 2.5.2. */
static void test_example(void **state)
{
    static const uint8_t key[] = {0x85, 0xd6, 0xbe, 0x78, 0x57, 0x55, 0x6d, 0x33, 0x7f, 0x44, 0x52,
                                  0xfe, 0x42, 0xd5, 0x06, 0xa8, 0x01, 0x03, 0x80, 0x8a, 0xfb, 0x0d,
                                  0xb2, 0xfd, 0x4a, 0xbf, 0xf6, 0xaf, 0x41, 0x49, 0xf5, 0x1b};
    static const uint8_t wanted[] = {0xa8, 0x06, 0x1d, 0xc1, 0x30, 0x51, 0x36, 0xc6,
                                     0xc2, 0x2b, 0x8b, 0xaf, 0x0c, 0x01, 0x27, 0xa9};
    static const char text[] = "Cryptographic Forum Research Group";
    uint8_t tag[POLY1305_TAG_SIZE];
    (void)state;
    for (size_t piece = 1; piece < sizeof text; piece++) {
        sum_of(key, text, sizeof text - 1, piece, tag);
        assert_memory_equal(tag, wanted, sizeof wanted);
    }
}

/* Appendix A.3, vectors 7 to 11: carries, and sums around p. */
static void test_edges(void **state)
{
    static const struct {
        uint8_t r, data[64], wanted[16];
        size_t len;
    } cases[] = {
        {1, {[0 ... 15] = 0xff, [16] = 0xf0, [17 ... 31] = 0xff, [32] = 0x11}, {5}, 48},
        {1, {[0 ... 15] = 0xff, [16] = 0xfb, [17 ... 31] = 0xfe, [32 ... 47] = 1}, {0}, 48},
        {2, {[0] = 0xfd, [1 ... 15] = 0xff}, {[0] = 0xfa, [1 ... 15] = 0xff}, 16},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t key[POLY1305_KEY_SIZE] = {cases[i].r}, tag[POLY1305_TAG_SIZE];
        sum_of(key, cases[i].data, cases[i].len, 16, tag);
        assert_memory_equal(tag, cases[i].wanted, sizeof tag);
    }
}

static void test_empty(void **state)
{
    uint8_t key[POLY1305_KEY_SIZE], tag[POLY1305_TAG_SIZE];
    (void)state;
    for (size_t i = 0; i < sizeof key; i++)
        key[i] = (uint8_t)i;
    sum_of(key, "", 0, 1, tag);
    assert_memory_equal(tag, key + 16, sizeof tag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_example),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
