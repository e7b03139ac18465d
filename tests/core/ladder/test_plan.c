/* The states of a JobSet's recovery, and its paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "core/ladder/plan.h"

static bool may_move(enum recovery_state from, enum recovery_state to)
{
    return lifecycle_allows(&recovery_lifecycle, (uint8_t)from, (uint8_t)to);
}

/* A recovery begins from NONE alone: whatever was under way ends first. */
static void recoveries_begin_from_none(void **state)
{
    (void)state;
    for (int from = 0; from < RECOVERY_STATES; from++)
        assert_int_equal(may_move((enum recovery_state)from, RECOVERY_BACKING_OFF), from == RECOVERY_NONE);
    assert_true(may_move(RECOVERY_NONE, RECOVERY_PARKED));
    assert_false(may_move(RECOVERY_REJOINING, RECOVERY_PARKED));
    assert_false(may_move(RECOVERY_NONE, RECOVERY_REJOINING)); /* only out of the places that were kept */
}

static void every_state_can_be_called_off(void **state)
{
    (void)state;
    for (int from = 0; from < RECOVERY_STATES; from++)
        assert_int_equal(may_move((enum recovery_state)from, RECOVERY_NONE), from != RECOVERY_NONE);
}

/* A dying checkpoint is the only way to SAVED and REFUSED, which end with the restart that they belong to. */
static void dumps_end_in_an_answer(void **state)
{
    (void)state;
    for (int from = 0; from < RECOVERY_STATES; from++) {
        assert_int_equal(may_move((enum recovery_state)from, RECOVERY_SAVED), from == RECOVERY_DUMPING);
        assert_int_equal(may_move((enum recovery_state)from, RECOVERY_REFUSED), from == RECOVERY_DUMPING);
    }
    for (int to = 0; to < RECOVERY_STATES; to++)
        assert_int_equal(may_move(RECOVERY_SAVED, (enum recovery_state)to), to == RECOVERY_NONE);
}

static void states_and_paths_fit(void **state)
{
    (void)state;
    for (int path = 0; path < PATHS; path++) {
        assert_true(recovery_state_fits(RECOVERY_NONE, (uint8_t)path)); /* of the newest recovery */
        assert_true(recovery_state_fits(RECOVERY_PARKED, (uint8_t)path));
        assert_int_equal(recovery_state_fits(RECOVERY_DUMPING, (uint8_t)path), path == PATH_KEEP);
        assert_int_equal(recovery_state_fits(RECOVERY_REJOINING, (uint8_t)path), path != PATH_RESTART);
        assert_false(recovery_state_keeps(RECOVERY_NONE, (uint8_t)path));
        assert_int_equal(recovery_state_keeps(RECOVERY_BACKING_OFF, (uint8_t)path), path != PATH_RESTART);
    }
    assert_false(recovery_state_fits(RECOVERY_STATES, PATH_KEEP));
    assert_false(recovery_state_fits(RECOVERY_NONE, PATHS));
}

static void a_move_to_itself_is_none(void **state)
{
    (void)state;
    uint8_t now = RECOVERY_NONE;
    recovery_state_move(&now, RECOVERY_NONE);
    assert_int_equal(now, RECOVERY_NONE);
    recovery_state_move(&now, RECOVERY_PARKED);
    recovery_state_move(&now, RECOVERY_DUMPING);
    recovery_state_move(&now, RECOVERY_REFUSED);
    assert_int_equal(now, RECOVERY_REFUSED);
}

static void all_have_names(void **state)
{
    (void)state;
    for (int i = 0; i < RECOVERY_STATES; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(recovery_lifecycle.names[i], recovery_lifecycle.names[k]);
    assert_string_equal(recovery_path_name(PATH_RESTART), "restart");
    assert_string_equal(recovery_path_name(PATH_PLANNED), "planned");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recoveries_begin_from_none), cmocka_unit_test(every_state_can_be_called_off),
        cmocka_unit_test(dumps_end_in_an_answer),     cmocka_unit_test(states_and_paths_fit),
        cmocka_unit_test(a_move_to_itself_is_none),   cmocka_unit_test(all_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
