#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/nearest.h"

static void distances(void **state)
{
    static const struct {
        const char *a, *b;
        unsigned distance;
    } cases[] = {
        {"", "", 0},
        {"", "abc", 3},
        {"get", "get", 0},
        {"GET", "get", 0},
        {"gte", "get", 1},
        {"gt", "get", 1},
        {"geet", "get", 1},
        {"gat", "get", 1},
        {"kitten", "sitting", 3},
        {"ca", "abc", 3},
        {"paralelism", "parallelism", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(edit_distance(str_from(cases[i].a), str_from(cases[i].b)), cases[i].distance);
        assert_int_equal(edit_distance(str_from(cases[i].b), str_from(cases[i].a)), cases[i].distance);
    }
}

static void long_words_have_no_distance(void **state)
{
    char text[NEAREST_WORD_MAX + 1];
    (void)state;
    memset(text, 'x', sizeof text);
    assert_int_equal(edit_distance((struct str){text, NEAREST_WORD_MAX}, STR("x")), NEAREST_WORD_MAX - 1);
    assert_int_equal(edit_distance((struct str){text, sizeof text}, STR("x")), NEAREST_WORD_MAX + 1);
}

static struct str meant(const char *word)
{
    static const char *const known[] = {"",    "get",    "describe",    "delete",
                                        "top", "JobSet", "parallelism", "completions"};
    struct nearest nearest = nearest_to(str_from(word));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        nearest_offer(&nearest, str_from(known[i]));
    return nearest.best;
}

static void words(void **state)
{
    (void)state;
    assert_true(str_is(meant("gte"), "get"));
    assert_true(str_is(meant("tpo"), "top"));
    assert_true(str_is(meant("descirbe"), "describe"));
    assert_true(str_is(meant("delet"), "delete"));
    assert_true(str_is(meant("jobset"), "JobSet"));
    assert_true(str_is(meant("Jobsets"), "JobSet"));
    assert_true(str_is(meant("parallel"), "parallelism"));
    assert_true(str_is(meant("compl"), "completions"));
    assert_int_equal(meant("xyz").len, 0);
    assert_int_equal(meant("").len, 0);
    assert_int_equal(meant("replicas").len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances),
        cmocka_unit_test(long_words_have_no_distance),
        cmocka_unit_test(words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
