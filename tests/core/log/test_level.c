/* The level of the log: only grows, is part of snapshot and digest, and a later one is refused. */
#include "core/harness.h"

#include "core/log/record.h"
#include "core/log/snapshot.h"

static void raise_to(struct core *core, uint64_t seq, uint32_t level)
{
    struct effects effects = {0};
    struct event event = {.kind = EVENT_LEVEL, .seq = seq, .level = level};
    core_step(core, &event, &effects);
    assert_int_equal(effects.list.len, 0);
    vec_done(&effects.list);
}

static void a_level_only_grows(void **state)
{
    struct core *core = core_new();
    assert_int_equal(core_level(core), 0);
    raise_to(core, 1, LEVEL_NEWEST);
    assert_int_equal(core_level(core), LEVEL_NEWEST);
    for (uint32_t level = 1; level < LEVEL_NEWEST; level++)
        raise_to(core, 1 + level, level);
    assert_int_equal(core_level(core), LEVEL_NEWEST);
    core_free(core);
}

static void a_level_is_in_snapshot_and_digest(void **state)
{
    struct core *core = core_new(), *without = core_new(), *again = core_new();
    struct effects effects = {0};
    struct event tick = {.kind = EVENT_TICK, .seq = 1};
    struct buf bytes = {0};
    struct error error;
    raise_to(core, 1, LEVEL_NEWEST);
    core_step(without, &tick, &effects);
    assert_true(core_digest(core) != core_digest(without));
    core_snapshot_write(core, &bytes);
    assert_int_equal(core_snapshot_read(again, buf_str(&bytes), &error), 0);
    assert_int_equal(core_level(again), LEVEL_NEWEST);
    assert_true(core_digest(again) == core_digest(core));
    buf_done(&bytes);
    vec_done(&effects.list);
    core_free(core);
    core_free(without);
    core_free(again);
}

static void the_place_of_a_boot_needs_its_level(void **state)
{
    struct event boot = {.kind = EVENT_BOOT}, level = {.kind = EVENT_LEVEL, .level = LEVEL_NEWEST};
    assert_int_equal(level_of_event(&boot), 0);
    assert_int_equal(level_of_event(&level), 0); /* else none could be raised */
    boot.boot.place = STR("10.0.0.1:7070");
    assert_int_equal(level_of_event(&boot), LEVEL_PLACE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_level_only_grows),
        cmocka_unit_test(a_level_is_in_snapshot_and_digest),
        cmocka_unit_test(the_place_of_a_boot_needs_its_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
