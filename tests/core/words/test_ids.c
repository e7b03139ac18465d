/* Identifiers: texts that never collide and lead back, names from a draw, uids ahead of a restored log. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "core/words/ids.h"

static void a_text_leads_back_to_its_uid(void **state)
{
    struct rng rng;
    char text[UID_TEXT_MAX], other[UID_TEXT_MAX];
    rng_seed(&rng, 7);
    for (int i = 0; i < 20000; i++) {
        obj_id id = i < 1000 ? (obj_id)i + 1 : rng_next(&rng) | 1, back = 0;
        uid_text(id, text);
        assert_int_equal(strlen(text), UID_TEXT_MAX - 1);
        assert_true(uid_parse(str_from(text), &back) && back == id);
        memcpy(other, text, sizeof other); /* another digit in its place: no uid, or another one */
        size_t at = rng_below(&rng, UID_TEXT_MAX - 1);
        other[at] = other[at] == '3' ? '5' : '3';
        assert_true(!uid_parse(str_from(other), &back) || back != id);
    }
}

static void other_texts_are_no_uids(void **state)
{
    static const char *const texts[] = {"", "x", "00000000-0000-4000-8000-000000000000",
                                        "g0000000-0000-4000-8000-000000000000",
                                        "00000000-0000-4000-8000-0000000000000"};
    obj_id id = 42;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_false(uid_parse(str_from(texts[i]), &id));
    assert_int_equal(id, 42);
}

static void names_are_a_prefix_and_five_characters(void **state)
{
    struct arena arena = {0};
    char long_prefix[100];
    memset(long_prefix, 'a', sizeof long_prefix);
    struct str name = generated_name(&arena, STR("train-"), 12345);
    assert_int_equal(name.len, strlen("train-") + SUFFIX_TEXT_MAX - 1);
    assert_true(str_starts(name, STR("train-")));
    assert_true(str_equal(name, generated_name(&arena, STR("train-"), 12345)));
    assert_false(str_equal(name, generated_name(&arena, STR("train-"), 12346)));
    name = generated_name(&arena, (struct str){long_prefix, sizeof long_prefix}, 1);
    assert_int_equal(name.len, NAME_PREFIX_MAX + SUFFIX_TEXT_MAX - 1);
    arena_done(&arena);
}

/* A restored log is at an earlier position than its lost part was, and boots later. */
static void uids_of_a_restored_log_are_new(void **state)
{
    uint64_t ahead = uids_ahead(0, 100, 8 * 5000);
    assert_int_equal(ahead, 4900);
    assert_int_equal(uids_ahead(ahead, 50, 8 * 6000), 5950);
    assert_int_equal(uids_ahead(ahead, 9000, 8 * 6000), ahead); /* never backwards */
    uint64_t years = UINT64_C(1000) * 3600 * 24 * 365 * 30;
    assert_int_equal(uids_ahead(ahead, 100, years), ahead);
    assert_true(uid_base(UINT64_MAX, UINT64_C(1) << 36) > uid_base(UINT64_MAX, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_leads_back_to_its_uid),
        cmocka_unit_test(other_texts_are_no_uids),
        cmocka_unit_test(names_are_a_prefix_and_five_characters),
        cmocka_unit_test(uids_of_a_restored_log_are_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
