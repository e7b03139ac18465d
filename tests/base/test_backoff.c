/* Waits that double, up to a limit. */
#include "base/backoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void waits_double_up_to_the_limit(void **state)
{
    static const int64_t waits[] = {10, 20, 40, 80, 160, 300, 300};
    (void)state;
    for (uint32_t i = 0; i < sizeof(waits) / sizeof(*waits); i++)
        assert_int_equal(backoff_wait(10, 300, i), waits[i]);
    assert_int_equal(backoff_wait(10, 300, UINT32_MAX), 300);
}

static void no_first_wait_means_none_ever(void **state)
{
    (void)state;
    assert_int_equal(backoff_wait(0, 300, 0), 0);
    assert_int_equal(backoff_wait(0, 300, UINT32_MAX), 0);
    assert_int_equal(backoff_wait(0, 0, 5), 0);
}

static void limits_bound_the_first_wait_too(void **state)
{
    (void)state;
    assert_int_equal(backoff_wait(500, 300, 0), 300);
    assert_int_equal(backoff_wait(500, 0, 3), 0);
}

static void the_largest_numbers_do_not_overflow(void **state)
{
    (void)state;
    assert_int_equal(backoff_wait(INT64_MAX / 2 + 1, INT64_MAX, 1), INT64_MAX);
    assert_int_equal(backoff_wait(1, INT64_MAX, 62), INT64_C(1) << 62);
    assert_int_equal(backoff_wait(1, INT64_MAX, 63), INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_double_up_to_the_limit),
        cmocka_unit_test(no_first_wait_means_none_ever),
        cmocka_unit_test(limits_bound_the_first_wait_too),
        cmocka_unit_test(the_largest_numbers_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
