/* RFC 4648 section 10, and what is no base64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base64.h"
#include "base/rng.h"

static void vectors(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct buf text BUF_CLEANUP = {0}, back BUF_CLEANUP = {0};
        base64_encode(str_from(pairs[i][0]), &text);
        assert_true(str_is(buf_str(&text), pairs[i][1]));
        assert_true(base64_decode(buf_str(&text), &back));
        assert_true(str_is(buf_str(&back), pairs[i][0]));
    }
}

static void malformed(void **state)
{
    (void)state;
    static const char *const bad[] = {"Z",    "Zg",    "Zg=",      "Zg=a",  "=AAA", "A===", "Zm9v=",  "Zh==",
                                      "Zm9=", "Zm9vZ", "Zg==Zg==", "Zm 9v", "Zm-_", "====", "Zg==\n="};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(base64_decode(str_from(bad[i]), NULL));
    struct buf back BUF_CLEANUP = {0};
    assert_true(base64_decode(STR("Zm9v\r\nYmFy\n"), &back) && str_is(buf_str(&back), "foobar"));
}

static void any_bytes_come_back(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 1);
    for (int i = 0; i < 300; i++) {
        char bytes[64];
        struct str plain = {bytes, rng_below(&rng, sizeof bytes)};
        for (size_t k = 0; k < plain.len; k++)
            bytes[k] = (char)rng_next(&rng);
        struct buf text BUF_CLEANUP = {0}, back BUF_CLEANUP = {0};
        base64_encode(plain, &text);
        assert_int_equal((int)text.len, (int)((plain.len + 2) / 3 * 4));
        assert_true(base64_decode(buf_str(&text), &back) && str_equal(buf_str(&back), plain));
        buf_clear(&text);
        buf_clear(&back);
        base64url_encode(plain, &text);
        assert_int_equal((int)text.len, (int)((plain.len * 4 + 2) / 3));
        assert_true(base64url_decode(buf_str(&text), &back) && str_equal(buf_str(&back), plain));
    }
}

/* RFC 7515, appendix C; and what has another alphabet, padding, or bits that mean nothing. */
static void url_form(void **state)
{
    static const char bytes[] = {3, (char)236, (char)255, (char)224, (char)193};
    static const char *const bad[] = {"A", "Zg==", "A-z_4ME=", "A+z/4ME", "Zh", "Zm9\n", "Zm9v\r\n"};
    struct buf text BUF_CLEANUP = {0};
    base64url_encode((struct str){bytes, sizeof bytes}, &text);
    assert_true(str_is(buf_str(&text), "A-z_4ME"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(base64url_decode(str_from(bad[i]), NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(vectors), cmocka_unit_test(malformed),
                                       cmocka_unit_test(any_bytes_come_back), cmocka_unit_test(url_form)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
