/* When an agent says that no controller is reached: of a series of failures, and anew after a welcome. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/units.h"
#include "host/agent/unreached.h"

#define MS NS_PER_MS

/* Fails every `every_ms` from `from_ms` on, for `for_ms`; the failures that are told must be those at the
 * milliseconds `wanted` after the first, which a 0 ends. */
static void assert_said(struct unreached *unreached, int64_t from_ms, int64_t for_ms, int64_t every_ms,
                        const int64_t *wanted)
{
    for (int64_t at_ms = 0; at_ms <= for_ms; at_ms += every_ms) {
        bool said = unreached_says(unreached, (from_ms + at_ms) * MS);
        if (said != (at_ms == *wanted && at_ms > 0))
            fail_msg("%s after %lld ms", said ? "said" : "not said", (long long)at_ms);
        assert_int_equal(unreached->since_ns, from_ms * MS);
        wanted += said;
    }
    assert_int_equal(*wanted, 0);
}

/* An agent tries again several times a second. */
static void after_one_after_ten_then_every_minute(void **state)
{
    (void)state;
    static const int64_t wanted[] = {1000, 10000, 70000, 130000, 190000, 0};
    struct unreached unreached = {0};
    assert_said(&unreached, 5000, 200000, 100, wanted);
}

static void a_welcome_starts_anew(void **state)
{
    (void)state;
    static const int64_t first[] = {1000, 10000, 0}, again[] = {1000, 10000, 70000, 0};
    struct unreached unreached = {0};
    assert_said(&unreached, 5000, 60000, 100, first);
    unreached = (struct unreached){0};
    assert_said(&unreached, 65100, 129000, 100, again);
    unreached = (struct unreached){0};
    assert_said(&unreached, 200000, 900, 100, (const int64_t[]){0}); /* welcomed within a second */
}

/* Attempts that take long, each until its timeout, are told at the first failure from each time on. */
static void failures_far_apart(void **state)
{
    (void)state;
    static const int64_t seven[] = {7000, 14000, 77000, 0}, minutes[] = {45000, 135000, 225000, 0};
    struct unreached unreached = {0};
    assert_said(&unreached, 1, 126000, 7000, seven);
    unreached = (struct unreached){0};
    assert_said(&unreached, 1, 225000, 45000, minutes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_one_after_ten_then_every_minute),
        cmocka_unit_test(a_welcome_starts_anew),
        cmocka_unit_test(failures_far_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
