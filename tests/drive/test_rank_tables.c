/* Rank tables on a machine's side: a START that refers to one is made whole again. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/agent/codec.h"
#include "drive/agent.h"

static struct buf pack(const char *address)
{
    struct rank_table_entry entries[] = {{STR("work-0"), str_from(address), STR("m-1"), 1, 0},
                                         {STR("work-1"), STR("10.0.0.2"), STR("m-2"), 1, 1}};
    struct gang_rank_table rank_table = {STR("train"), STR("default"), entries, 2};
    struct buf bytes = {0};
    codec_pack_rank_table(&bytes, &rank_table);
    return bytes;
}

static void test_put_back(void **state)
{
    struct buf bytes BUF_CLEANUP = pack("10.0.0.1"), other BUF_CLEANUP = pack("10.0.0.9");
    struct rank_table_reader *reader = rank_table_reader_new();
    struct machine_rank_table rank_table = {0}, second = {0};
    struct error error = {0};
    struct task_launch launch = {.task = 7, .rank_table_number = 11};
    assert_int_equal(machine_rank_table_put_back(&rank_table, reader, &launch, &error), ERROR_INVALID);
    machine_rank_table_keep(&rank_table, &(struct packed_rank_table){11, buf_str(&bytes)});
    assert_int_equal(machine_rank_table_put_back(&rank_table, reader, &launch, &error), 0);
    assert_int_equal(launch.rank_table.count, 2);
    assert_true(str_is(launch.rank_table.entries[0].address, "10.0.0.1"));
    /* Another machine of the process has another one; a newer one takes the place of the first. */
    machine_rank_table_keep(&second, &(struct packed_rank_table){12, buf_str(&other)});
    launch = (struct task_launch){.task = 8, .rank_table_number = 12};
    assert_int_equal(machine_rank_table_put_back(&second, reader, &launch, &error), 0);
    assert_true(str_is(launch.rank_table.entries[0].address, "10.0.0.9"));
    assert_int_equal(machine_rank_table_put_back(&rank_table, reader, &launch, &error), ERROR_INVALID);
    machine_rank_table_drop(&second);
    launch = (struct task_launch){.task = 9, .rank_table_number = 12};
    assert_int_equal(machine_rank_table_put_back(&second, reader, &launch, &error), ERROR_INVALID);
    machine_rank_table_drop(&rank_table);
    rank_table_reader_free(reader);
}

static void test_damaged(void **state)
{
    struct buf bytes BUF_CLEANUP = pack("10.0.0.1");
    struct rank_table_reader *reader = rank_table_reader_new();
    struct machine_rank_table rank_table = {0};
    struct error error = {0};
    struct task_launch launch = {.task = 7, .rank_table_number = 11};
    machine_rank_table_keep(&rank_table, &(struct packed_rank_table){11, {bytes.data, bytes.len - 3}});
    assert_true(machine_rank_table_put_back(&rank_table, reader, &launch, &error) < 0);
    machine_rank_table_keep(&rank_table, &(struct packed_rank_table){11, buf_str(&bytes)});
    assert_int_equal(machine_rank_table_put_back(&rank_table, reader, &launch, &error), 0);
    machine_rank_table_drop(&rank_table);
    rank_table_reader_free(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_back),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
