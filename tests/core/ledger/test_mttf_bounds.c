/* Bounds of a mean time to failure that was counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/ledger/mttf_bounds.h"

/* After so many failures in 1,000 hours, in seconds; high_s 0: none. */
static void known_counts(void **state)
{
    static const struct {
        uint64_t failures;
        int64_t low_s, high_s;
    } rows[] = {
        {0, 1201710, 0},      {1, 758875, 70184613}, {3, 464297, 4402639},
        {10, 212236, 663545}, {30, 88473, 166713},   {100, 30488, 42786},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ledger_bounds bounds = ledger_mttf_bounds(rows[i].failures, INT64_C(1000) * 3600 * 1000000);
        assert_in_range(bounds.low_us / 1000, rows[i].low_s * 999, rows[i].low_s * 1001);
        if (rows[i].high_s == 0)
            assert_true(bounds.high_us == -1);
        else
            assert_in_range(bounds.high_us / 1000, rows[i].high_s * 999, rows[i].high_s * 1001);
    }
}

/* More failures in the same time: both bounds sink, around the mean between them. */
static void bounds_sink(void **state)
{
    const int64_t exposure_us = INT64_C(1) << 60;
    struct ledger_bounds before = ledger_mttf_bounds(1, exposure_us);
    for (uint64_t failures = 2; failures < 1000000; failures += 1 + failures / 20) {
        struct ledger_bounds bounds = ledger_mttf_bounds(failures, exposure_us);
        int64_t mean_us = exposure_us / (int64_t)failures;
        assert_true(bounds.low_us < before.low_us && bounds.high_us < before.high_us);
        assert_true(bounds.low_us < mean_us && mean_us < bounds.high_us);
        before = bounds;
    }
}

static void ends_of_the_range(void **state)
{
    struct ledger_bounds bounds = ledger_mttf_bounds(0, 0);
    assert_true(bounds.low_us == 0 && bounds.high_us == -1);
    bounds = ledger_mttf_bounds(1, INT64_MAX);
    assert_true(bounds.low_us > INT64_MAX / 5 && bounds.high_us == INT64_MAX); /* 19 times the exposure */
    bounds = ledger_mttf_bounds((UINT64_C(1) << 40) - 1, INT64_MAX);
    assert_true(bounds.low_us < bounds.high_us && bounds.low_us > 8000000 && bounds.high_us < 9000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_counts),
        cmocka_unit_test(bounds_sink),
        cmocka_unit_test(ends_of_the_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
