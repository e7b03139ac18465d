/* The token file. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/rng.h"
#include "host/access/tokens.h"

static struct tokens *parse(const char *text)
{
    struct tokens *tokens;
    struct error error;
    if (tokens_parse(str_from(text), &tokens, &error) < 0)
        fail_msg("%s", error.text);
    return tokens;
}

static void test_users(void **state)
{
    struct tokens *tokens = parse("# comment\n\nsecret-token-1,alice,17,\"team-a,team-b\"\r\n"
                                  "secret-token-2,bob,\n\"quoted,\"\"token\",\"c,d\",u,\n");
    const struct access_user *alice = tokens_find(tokens, STR("secret-token-1"));
    assert_non_null(alice);
    assert_true(str_is(alice->name, "alice") && str_is(alice->uid, "17") && alice->group_count == 2);
    assert_true(str_is(alice->groups[1], "team-b"));
    assert_true(str_is(tokens_find(tokens, STR("secret-token-2"))->name, "bob"));
    assert_true(str_is(tokens_find(tokens, STR("quoted,\"token"))->name, "c,d"));
    assert_null(tokens_find(tokens, STR("secret-token-3")));
    assert_null(tokens_find(tokens, STR("secret-token-")));
    assert_null(tokens_find(tokens, STR("")));
    assert_int_equal(tokens_count(tokens), 3);
    tokens_free(tokens);
}

/* A line may carry the digest; the digest itself is no token. */
static void test_digests(void **state)
{
    uint8_t digest[32];
    char hex[65];
    struct buf line BUF_CLEANUP = {0};
    sha256("my-token", 8, digest);
    hex_encode(digest, 32, hex);
    buf_printf(&line, "sha256:%s,carol,1", hex);
    struct tokens *tokens = parse(line.data);
    assert_true(str_is(tokens_find(tokens, STR("my-token"))->name, "carol"));
    line.data[71] = 0;
    assert_null(tokens_find(tokens, str_from(line.data)));
    assert_null(tokens_find(tokens, str_from(hex)));
    tokens_free(tokens);
}

static void test_mistakes(void **state)
{
    static const char *const bad[] = {"secret-token-1",
                                      "secret-token-1,alice",
                                      "short,alice,1",
                                      "secret-token-1,,1",
                                      "secret-token-1,alice,1,a,b",
                                      "\"secret-token-1,alice,1",
                                      "secret-token-1,\"alice\"x,1",
                                      "sha256:abcd,alice,1",
                                      "secret-token-1,a,1\nsecret-token-1,b,2",
                                      "secret-token-1,\xff\xfe,1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tokens *tokens;
        struct error error;
        if (tokens_parse(str_from(bad[i]), &tokens, &error) != ERROR_INVALID)
            fail_msg("accepted: %s", bad[i]);
        assert_true(str_starts(str_from(error.text), STR("line ")));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_users),
        cmocka_unit_test(test_digests),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
