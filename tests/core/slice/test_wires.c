/* Wrong wires: ranks that see other chips over a switch than its circuits join say so, and their slice is
 * routed around the switch for as long as one of them sees it. */
#include "core/slice/rig.h"

#include "core/health/fault.h"

#define X5 (UINT64_C(1) << 5)
#define Y0 (UINT64_C(1) << 16)

static void say_wrong(struct rig *rig, uint32_t rank, uint64_t wrong)
{
    say_routes_of(rig, rank, (struct rank_routes){.session = 70 + rank, .open = true, .wrong = wrong});
}

static const struct fault *fault_of_x5(struct rig *rig)
{
    return fault_find_open(core_health(rig->h.core), STR("switch/pod-1-x5"), STR("fabric/wrong-wire"));
}

static void begin_with_ranks(struct rig *rig, const char *shape, int tasks)
{
    begin(rig, 1);
    harness_create(&rig->h, slice_yaml("a", shape, tasks));
    answer_all(rig);
    run_all_tasks(rig);
    for (uint32_t rank = 0; rank < 2; rank++)
        say_wrong(rig, rank, 0); /* they open their sessions */
}

static void a_slice_does_without_a_switch_of_wrong_wires(void **state)
{
    struct rig *rig = *state;
    begin_with_ranks(rig, "4x4x8", 32);
    say_wrong(rig, 0, X5);
    const struct slice *slice = slice_of(rig, "a");
    assert_int_equal(slice->left_out, X5);
    assert_int_equal(slice->tables_out, X5);
    assert_true(str_is(buf_str(&slice->tables_name), "4x4x8 without x5"));
    assert_int_equal(harness_jobset(&rig->h, "a")->attempt, 0);
    const struct fault *fault = fault_of_x5(rig);
    assert_non_null(fault);
    assert_int_equal(fault->domain, DOMAIN_NETWORK);
    say_wrong(rig, 1, X5); /* at the other end */
    say_wrong(rig, 1, X5);
    assert_int_equal(notes(&rig->h, "WrongWire"), 1);
    say_wrong(rig, 0, 0);
    assert_int_equal(slice_of(rig, "a")->left_out, X5); /* one still sees it */
    say_wrong(rig, 1, 0);
    answer_all(rig);
    assert_int_equal(slice_of(rig, "a")->left_out, 0);
    assert_int_equal(slice_of(rig, "a")->tables_out, 0);
    assert_null(fault_of_x5(rig));
    end(rig);
}

static void a_closed_session_sees_nothing(void **state)
{
    struct rig *rig = *state;
    begin_with_ranks(rig, "4x4x8", 32);
    say_wrong(rig, 1, X5);
    say_routes_of(rig, 1, (struct rank_routes){.session = 71, .wrong = X5});
    answer_all(rig);
    assert_int_equal(slice_of(rig, "a")->left_out, 0);
    assert_null(fault_of_x5(rig));
    end(rig);
}

static void two_switches_of_wrong_wires_end_the_slice(void **state)
{
    struct rig *rig = *state;
    begin_with_ranks(rig, "4x4x8", 32);
    say_wrong(rig, 0, X5 | Y0);
    assert_int_equal(notes(&rig->h, "SliceLost"), 1);
    end_stopped(rig);
    answer_all(rig);
    const struct slice *slice = slice_of(rig, "a"); /* another one, whose ranks have seen nothing yet */
    assert_true(slice && slice->left_out == 0 && !fault_of_x5(rig));
    assert_int_equal(harness_jobset(&rig->h, "a")->attempt, 1);
    end(rig);
}

/* Part of a cube uses no switch, so a rank that names one is not believed; nor is a number of no switch. */
static void nonsense_changes_nothing(void **state)
{
    struct rig *rig = *state;
    begin_with_ranks(rig, "4x4x2", 8);
    say_wrong(rig, 0, X5);
    assert_true(slice_of(rig, "a")->left_out == 0 && !fault_of_x5(rig));
    end(rig);
    begin_with_ranks(rig, "4x4x8", 32);
    say_wrong(rig, 0, UINT64_C(1) << POD_SWITCHES);
    assert_int_equal(slice_of(rig, "a")->left_out, 0);
    end(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY_OF(a_slice_does_without_a_switch_of_wrong_wires),
        STORY_OF(a_closed_session_sees_nothing),
        STORY_OF(two_switches_of_wrong_wires_end_the_slice),
        STORY_OF(nonsense_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
