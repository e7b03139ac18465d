/* A gang whose shards are damaged restores the newest checkpoint that is whole on every rank. */
#include "job/gang.h"

#define WORLD   3
#define OLDEST  10
#define NEWEST  50 /* every ten steps */
#define FOREVER (-1)

/* The state that a rank saves at a step, in `buf` of 64 KiB + 64; longer than what is read at once. */
static size_t state_of(uint32_t rank, uint64_t step, uint32_t attempt, char *buf)
{
    size_t len = 65536 + 8 * rank;
    memset(buf, (int)('a' + step / 10), len);
    snprintf(buf, 64, "rank %u step %llu attempt %u", rank, (unsigned long long)step, attempt);
    return len;
}

static int save_all(void *unused)
{
    struct phx_error error = {0};
    static char state[66000];
    phx_context *ctx = gang_join();
    for (uint64_t step = OLDEST; step <= NEWEST; step += 10) {
        size_t len = state_of(phx_rank(ctx), step, 0, state);
        EXPECT(phx_checkpoint_save(ctx, step, state, len, &error) == 0);
    }
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

/* Restores; then saves behind it, which has to be committed though it may lie below the last commit. The
 * argument is the step to expect, 0 for an error. */
static int go_on(void *argument)
{
    uint64_t wanted = *(uint64_t *)argument, step = 0;
    struct phx_error error = {0};
    static char state[66000], expected[66000];
    size_t len = 0;
    phx_context *ctx = gang_join();
    int status = phx_checkpoint_restore(ctx, state, sizeof state, &len, &step, &error);
    if (wanted == 0) {
        EXPECT(status == PHX_ERROR_CORRUPT && strstr(error.message, "older") != NULL);
        EXPECT(phx_checkpoint_find(ctx, &len, &step, &error) == PHX_ERROR_CORRUPT);
        EXPECT(phx_leave(ctx, &error) == 0);
        return 0;
    }
    EXPECT(status == 0 && step == wanted);
    EXPECT(len == state_of(phx_rank(ctx), wanted, 0, expected) && memcmp(state, expected, len) == 0);
    EXPECT(phx_checkpoint_wait(ctx, wanted, 0, &error) == 0);
    EXPECT(phx_checkpoint_wait(ctx, wanted + 1, 0, &error) == PHX_ERROR_TIMEOUT);
    EXPECT(phx_checkpoint_save(ctx, wanted + 10, "more", 4, &error) == 0);
    EXPECT(phx_checkpoint_wait(ctx, wanted + 10, FOREVER, &error) == 0);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static int go_on_beside_others(void *argument)
{
    setenv("PHX_WORLDS", "2", 1);
    return go_on(argument);
}

/* A gang whose newest commit is NEWEST, with all older steps beside it. */
static void prepare(struct gang *gang)
{
    gang_init(gang, WORLD);
    gang->hold_commits = true; /* so nothing is deleted */
    gang_run(gang, save_all, NULL);
    gang_next_attempt(gang);
    gang->hold_commits = false;
    gang->has_commit = true;
    gang->commit_step = NEWEST;
    gang->commit_attempt = 0;
}

/* Any shards damaged in any way: what comes out is the newest step without a damaged shard. */
static void test_newest_whole(void **unused)
{
    uint32_t state = 20231;
    for (int trial = 0; trial < 25; trial++) {
        struct gang gang;
        uint64_t wanted = 0;
        prepare(&gang);
        uint32_t share = 2 + gang_draw(&state, 7); /* one shard of so many is damaged */
        for (uint64_t step = OLDEST; step <= NEWEST; step += 10) {
            bool whole = true;
            for (uint32_t rank = 0; rank < WORLD; rank++) {
                if (gang_draw(&state, share) != 0)
                    continue;
                gang_damage_shard(&gang, step, 0, rank, (enum gang_damage)gang_draw(&state, GANG_DAMAGES));
                whole = false;
            }
            wanted = whole ? step : wanted;
        }
        gang_run(&gang, go_on, &wanted);
        if (wanted != 0)
            assert_true(gang.commit_step == wanted + 10 && gang.commit_attempt == 1);
        gang_done(&gang);
    }
}

/* One gang of several can't go back alone. */
static void test_several_gangs(void **unused)
{
    struct gang gang;
    uint64_t wanted = 0;
    prepare(&gang);
    gang_damage_shard(&gang, NEWEST, 0, 1, GANG_FLIP_DATA);
    gang_run(&gang, go_on_beside_others, &wanted);
    gang_next_attempt(&gang);
    wanted = NEWEST - 10;
    gang_run(&gang, go_on, &wanted);
    gang_done(&gang);
}

static int save_uncommitted(void *unused)
{
    struct phx_error error = {0};
    static char state[66000];
    phx_context *ctx = gang_join();
    for (uint64_t step = NEWEST + 10; step <= NEWEST + 20; step += 10)
        EXPECT(phx_checkpoint_save(ctx, step, state, state_of(phx_rank(ctx), step, 1, state), &error) == 0);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

/* A state newer than the newest commit is never restored, be it whole or not. */
static void test_nothing_newer(void **unused)
{
    struct gang gang;
    uint64_t wanted = NEWEST - 10;
    prepare(&gang);
    gang.hold_commits = true;
    gang_run(&gang, save_uncommitted, NULL);
    gang_next_attempt(&gang);
    gang.hold_commits = false;
    gang_damage_shard(&gang, NEWEST, 0, 0, GANG_CUT);
    gang_run(&gang, go_on, &wanted);
    gang_done(&gang);
}

/* A rank that is lost while the others agree. */
static int join_and_die(void *unused)
{
    struct phx_error error = {0};
    struct phx_options options = {
        .size = sizeof options, .join_timeout_ms = GANG_PATIENCE_MS, .leave_timeout_ms = GANG_PATIENCE_MS};
    phx_context *ctx = NULL;
    int status = phx_join(&options, &ctx, &error);
    EXPECT(status == PHX_ERROR_PEER || status == 0);
    while (status == 0 && phx_rank(ctx) == 1)
        pause(); /* it dies outside the barrier, or the others could pass it first */
    if (status == 0)
        EXPECT(phx_barrier(ctx, FOREVER, &error) == PHX_ERROR_PEER);
    return 75;
}

static void test_lost_meanwhile(void **unused)
{
    for (int trial = 0; trial < 8; trial++) {
        struct gang gang;
        prepare(&gang);
        gang_damage_shard(&gang, NEWEST, 0, 1, GANG_FLIP_DATA);
        gang_fork_all(&gang, join_and_die, NULL);
        gang_until(&gang, gang.joins[0] > 0 && gang.joins[1] > 0 && gang.joins[2] > 0);
        for (int turns = 0; turns < trial; turns++)
            gang_poll(&gang, 1);
        kill(gang.pids[1], SIGKILL);
        gang_until(&gang, gang.pids[1] == 0);
        for (uint32_t rank = 0; rank < WORLD; rank += 2)
            if (gang.gone[rank][1] == 0 && gang.pids[rank] > 0) /* it went before the table was sent */
                gang_poll(&gang, 200);
        if (gang.gone[0][1] > 0) {
            gang_until(&gang, gang_ended(&gang));
            assert_true(gang_exit(&gang, 0) == 75 && gang_exit(&gang, 2) == 75);
        }
        gang_done(&gang);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newest_whole),
        cmocka_unit_test(test_several_gangs),
        cmocka_unit_test(test_nothing_newer),
        cmocka_unit_test(test_lost_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
