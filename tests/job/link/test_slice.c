/* Slices from the names of their routing tables: shapes, switches that are avoided, chips of a rank. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "job/link/slice.h"

static void test_a_name_is_read(void **state)
{
    struct phx_slice slice;
    assert_int_equal(job_slice_parse("4x4x8-twisted without x5, z15", 0, &slice), 0);
    assert_true(slice.extent[0] == 4 && slice.extent[1] == 4 && slice.extent[2] == 8 && slice.twisted == 1);
    assert_true(slice.without == (UINT64_C(1) << 5 | UINT64_C(1) << 47));
    assert_int_equal(job_slice_parse("4x4x8 without x5,z15", 0, &slice), 0); /* as the controller writes it */
    assert_true(slice.without == (UINT64_C(1) << 5 | UINT64_C(1) << 47));
    assert_int_equal(job_slice_parse("16x16x24", 0, &slice), 0);
    assert_true(slice.extent[2] == 24 && slice.twisted == 0 && slice.without == 0);
}

/* Every chip of the slice belongs to one rank, in the order of machines along X, Y, Z. */
static void test_ranks_have_their_chips(void **state)
{
    struct phx_slice slice;
    uint8_t seen[4 * 8 * 12] = {0};
    for (uint32_t rank = 0; rank < sizeof seen / PHX_SLICE_CHIPS; rank++) {
        assert_int_equal(job_slice_parse("4x8x12", rank, &slice), 0);
        assert_int_equal(slice.chip_count, PHX_SLICE_CHIPS);
        for (uint32_t i = 0; i < PHX_SLICE_CHIPS; i++) {
            const uint32_t *at = slice.chips[i].at;
            assert_true(at[0] < 4 && at[1] < 8 && at[2] < 12);
            assert_int_equal(slice.chips[i].number, at[0] + 4 * (at[1] + 8 * at[2]));
            assert_int_equal(seen[slice.chips[i].number]++, 0);
        }
    }
    assert_int_equal(job_slice_parse("4x8x12", 2 + 2 * 3 + 8 * 5 - 1, &slice), 0);
    assert_true(slice.chips[3].at[0] == 3 && slice.chips[3].at[1] == 7 && slice.chips[3].at[2] == 5);
    assert_int_equal(job_slice_parse("4x8x12", sizeof seen / PHX_SLICE_CHIPS, &slice), -1);
}

static void test_other_names_are_refused(void **state)
{
    static const char *const names[] = {"",
                                        "4x4",
                                        "4x4x",
                                        "4x4x8 ",
                                        "4x4x8-twist",
                                        "4x4x8x4",
                                        "04x4x8",
                                        "-4x4x8",
                                        "3x4x8",
                                        "0x4x4",
                                        "4x4x8000",
                                        "4x4x8 with",
                                        "4x4x8 without ",
                                        "4x4x8 without w1",
                                        "4x4x8 without x16",
                                        "4x4x8 without x1,",
                                        "4x4x8 without x1, ",
                                        "4x4x8 without x01",
                                        "99999999999x4x4"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct phx_slice slice = {.tables = 77};
        if (job_slice_parse(names[i], 0, &slice) == 0)
            fail_msg("\"%s\" is read", names[i]);
        assert_int_equal(slice.tables, 77); /* untouched */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_is_read),
        cmocka_unit_test(test_ranks_have_their_chips),
        cmocka_unit_test(test_other_names_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
