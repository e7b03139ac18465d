/* An object store behind the agent: the rank's slot is stored before a save returns, a machine that holds
 * nothing fetches, an agent that comes back is asked again, what it cannot do is said with its reason. */
#include "job/gang.h"

enum { WORLD = 3, FOREVER = -1, LEN = 300 * 1000 };

static void fill(uint8_t *data, uint32_t rank, uint64_t step)
{
    for (size_t i = 0; i < LEN; i++)
        data[i] = (uint8_t)(i * 31 + rank * 7 + step);
}

static uint8_t state[LEN], back[LEN];

static int save_some(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    for (uint64_t step = 1; step <= 3; step++) {
        fill(state, phx_rank(ctx), step);
        EXPECT(phx_checkpoint_save(ctx, step, state, LEN, &error) == 0);
    }
    EXPECT(phx_checkpoint_wait(ctx, 3, FOREVER, &error) == 0);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static int restore_and_go_on(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    size_t len;
    uint64_t step;
    EXPECT(phx_checkpoint_find(ctx, &len, &step, &error) == 0 && len == LEN && step == 3);
    EXPECT(phx_checkpoint_restore(ctx, back, LEN, &len, &step, &error) == 0 && len == LEN && step == 3);
    fill(state, phx_rank(ctx), 3);
    EXPECT(memcmp(state, back, LEN) == 0);
    EXPECT(phx_checkpoint_save(ctx, 4, state, LEN, &error) == 0);
    EXPECT(phx_checkpoint_wait(ctx, 4, FOREVER, &error) == 0);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void lose_memory(struct gang *gang)
{
    char path[96];
    snprintf(path, sizeof path, "%s/memory", gang->dir);
    gang_remove_tree(path);
}

static void test_all_machines_lost(void **unused)
{
    struct gang gang;
    gang_init(&gang, WORLD);
    gang.store = true;
    gang_run(&gang, save_some, NULL);
    assert_true(gang.has_commit && gang.commit_step == 3);
    assert_int_equal(gang.move_count, 3 * WORLD);
    lose_memory(&gang);
    gang_next_attempt(&gang);
    gang_run(&gang, restore_and_go_on, NULL);
    assert_true(gang.commit_step == 4 && gang.commit_attempt == 1);
    assert_int_equal(gang.move_count, 3 * WORLD + 2 * WORLD); /* one fetch, one save */
    gang_done(&gang);
}

static int save_once(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    fill(state, phx_rank(ctx), 1);
    EXPECT(phx_checkpoint_save(ctx, 1, state, LEN, &error) == 0);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void test_agent_restarts(void **unused)
{
    struct gang gang;
    gang_init(&gang, WORLD);
    gang.store = gang.hold_moves = true;
    gang_fork_all(&gang, save_once, NULL);
    gang_until(&gang, gang.move_count == WORLD);
    gang_stop_agent(&gang);
    gang.hold_moves = false;
    gang_listen(&gang);
    gang_expect_exits(&gang, 0);
    assert_int_equal(gang.move_count, 2 * WORLD); /* each was asked once more */
    assert_true(gang.has_commit && gang.commit_step == 1);
    gang_done(&gang);
}

static int fail_to_save(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    fill(state, phx_rank(ctx), 1);
    EXPECT(phx_checkpoint_save(ctx, 1, state, LEN, &error) == PHX_ERROR_IO);
    EXPECT(strstr(error.message, "the bucket is full") != NULL);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static int find_nothing(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    size_t len;
    uint64_t step;
    EXPECT(phx_checkpoint_find(ctx, &len, &step, &error) == PHX_ERROR_CORRUPT);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void test_reasons(void **unused)
{
    struct gang gang;
    gang_init(&gang, WORLD);
    gang.store = true;
    gang.store_reason = "the bucket is full";
    gang_run(&gang, fail_to_save, NULL);
    gang.store_reason = NULL;
    gang_next_attempt(&gang);
    gang.has_commit = true; /* of objects that are gone */
    gang.commit_step = 77;
    lose_memory(&gang);
    gang_run(&gang, find_nothing, NULL);
    gang_done(&gang);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_machines_lost),
        cmocka_unit_test(test_agent_restarts),
        cmocka_unit_test(test_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
