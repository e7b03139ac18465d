/* A gang of another size loads what was kept in regions, each element where it belongs, from storage; the
 * checkpoint is the newest that is whole, whoever has saved its parts. */
#include "job/gang.h"

#include "job/context.h"
#include "job/checkpoint/shard.h"
#include "job/state.h"

enum { STEP = 10, SECOND = 20 };

static int keep_two(void *unused)
{
    struct phx_error error = {0};
    struct state state;
    phx_context *ctx = gang_join();
    uint32_t rank = phx_rank(ctx), world = phx_world_size(ctx);
    make_state(&state, rank, world);
    EXPECT(phx_checkpoint_register(ctx, state.regions, 3, &error) == 0);
    for (uint64_t step = STEP; step <= SECOND; step += SECOND - STEP) {
        walk_state(&state, rank, world, step, false);
        EXPECT(phx_checkpoint_take(ctx, step, PHX_IN_STORAGE, &error) == 0);
        EXPECT(phx_checkpoint_wait(ctx, step, -1, &error) == 0);
    }
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

/* The argument is the step to expect; then it goes on behind it, and that is committed. */
static int load_one(void *argument)
{
    uint64_t wanted = *(uint64_t *)argument, step = 0;
    struct phx_error error = {0};
    struct state state;
    size_t len;
    phx_context *ctx = gang_join();
    uint32_t rank = phx_rank(ctx), world = phx_world_size(ctx);
    make_state(&state, rank, world);
    EXPECT(phx_checkpoint_register(ctx, state.regions, 3, &error) == 0);
    EXPECT(phx_checkpoint_load(ctx, &step, &error) == 0 && step == wanted);
    EXPECT(walk_state(&state, rank, world, wanted, true));
    EXPECT(phx_checkpoint_restore(ctx, &state, 1, &len, &step, &error) == PHX_ERROR_INVALID &&
           strstr(error.message, "saved by") != NULL);
    EXPECT(phx_checkpoint_take(ctx, wanted + 5, PHX_IN_STORAGE, &error) == 0);
    EXPECT(phx_checkpoint_wait(ctx, wanted + 5, -1, &error) == 0);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void begin(struct gang *gang, uint32_t world, uint32_t next)
{
    gang_init(gang, world);
    gang_run(gang, keep_two, NULL);
    gang_next_attempt(gang);
    gang->world = next;
}

static void test_other_worlds(void **unused)
{
    static const uint32_t worlds[][2] = {{3, 2}, {2, 5}, {1, 4}, {4, 1}, {2, 7}};
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        struct gang gang;
        uint64_t wanted = SECOND;
        begin(&gang, worlds[i][0], worlds[i][1]);
        gang_run(&gang, load_one, &wanted);
        assert_true(gang.commit_step == SECOND + 5 && gang.commit_attempt == 1);
        gang_done(&gang);
    }
}

/* Damage in any old shard, also of a rank that is no more, leads all to the checkpoint before. */
static void test_damage(void **unused)
{
    static const uint32_t worlds[][2] = {{3, 2}, {2, 3}};
    for (size_t i = 0; i < 2; i++)
        for (uint32_t rank = 0; rank < worlds[i][0]; rank++)
            for (int kind = 0; kind < GANG_DAMAGES; kind++) {
                struct gang gang;
                uint64_t wanted = STEP;
                begin(&gang, worlds[i][0], worlds[i][1]);
                gang_damage_shard(&gang, SECOND, 0, rank, (enum gang_damage)kind);
                gang_run(&gang, load_one, &wanted);
                gang_done(&gang);
            }
}

/* ---- another cut in a world of the same size ---- */

/* Holds and stores a step, and is killed: what it holds stays. */
static int keep_and_wait(void *unused)
{
    struct phx_error error = {0};
    struct state state;
    phx_context *ctx = gang_join();
    uint32_t rank = phx_rank(ctx), world = phx_world_size(ctx);
    make_state(&state, rank, world);
    walk_state(&state, rank, world, STEP, false);
    EXPECT(phx_checkpoint_register(ctx, state.regions, 3, &error) == 0);
    EXPECT(phx_checkpoint_take(ctx, STEP, PHX_IN_MEMORY | PHX_IN_STORAGE, &error) == 0);
    EXPECT(phx_checkpoint_held(ctx, STEP, -1, &error) == 0);
    EXPECT(phx_checkpoint_wait(ctx, STEP, -1, &error) == 0);
    EXPECT(phx_step(ctx, STEP, NULL, 0, &error) == 0); /* the test hears it, and ends all */
    pause();
    return 0;
}

/* Ranks count backwards: each wants the parts of another one, of which its own memory has nothing. */
static int load_backwards(void *unused)
{
    struct phx_error error = {0};
    struct state state;
    uint64_t step = 0;
    phx_context *ctx = gang_join();
    uint32_t world = phx_world_size(ctx), part = world - 1 - phx_rank(ctx);
    make_state(&state, part, world);
    EXPECT(phx_checkpoint_register(ctx, state.regions, 3, &error) == 0);
    EXPECT(phx_checkpoint_load(ctx, &step, &error) == 0 && step == STEP);
    EXPECT(walk_state(&state, part, world, STEP, true));
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void test_memory_and_storage(void **unused)
{
    struct gang gang;
    gang_init(&gang, 3);
    gang_fork_all(&gang, keep_and_wait, NULL);
    gang_until(&gang, gang.step_frames[0] > 0 && gang.step_frames[1] > 0 && gang.step_frames[2] > 0);
    for (uint32_t rank = 0; rank < 3; rank++)
        kill(gang.pids[rank], SIGKILL);
    gang_until(&gang, gang_ended(&gang));
    gang_next_attempt(&gang);
    gang_run(&gang, load_backwards, NULL);
    gang_done(&gang);
}

/* ---- processes that stay while their world changes ---- */

/* One membership: what is there is loaded, cut for this one, and kept as the next step. That step. */
static uint64_t make_step(phx_context *ctx)
{
    struct phx_error error = {0};
    struct state state;
    uint64_t step = 0;
    uint32_t rank = phx_rank(ctx), world = phx_world_size(ctx);
    make_state(&state, rank, world);
    EXPECT(phx_checkpoint_register(ctx, state.regions, 3, &error) == 0);
    int found = phx_checkpoint_load(ctx, &step, &error);
    EXPECT(phx_attempt(ctx) == 0 ? found == PHX_ERROR_NONE : found == 0 && step == phx_attempt(ctx) * STEP);
    EXPECT(found != 0 || walk_state(&state, rank, world, step, true));
    step += STEP;
    walk_state(&state, rank, world, step, false);
    EXPECT(phx_checkpoint_take(ctx, step, PHX_IN_MEMORY | PHX_IN_STORAGE, &error) == 0);
    EXPECT(phx_checkpoint_wait(ctx, step, -1, &error) == 0);
    EXPECT(phx_step(ctx, step, NULL, 0, &error) == 0);
    free_state(&state);
    return step;
}

static int live_through_changes(void *unused)
{
    struct phx_error error = {0};
    struct phx_options options = {.size = sizeof options, .join_timeout_ms = GANG_PATIENCE_MS, .rejoins = 1};
    phx_context *ctx = NULL;
    EXPECT(phx_join(&options, &ctx, &error) == 0);
    while (make_step(ctx) < 3 * STEP) {
        while (phx_barrier(ctx, -1, &error) == 0)
            ;
        EXPECT(error.code == PHX_ERROR_PEER || error.code == PHX_ERROR_REJOIN);
        EXPECT(phx_rejoin(ctx, GANG_PATIENCE_MS, &error) == 0);
    }
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static bool all_have_stepped(const struct gang *gang)
{
    for (uint32_t rank = 0; rank < gang->world; rank++)
        if (gang->step_frames[rank] == 0)
            return false;
    return true;
}

/* Four, then three of them after a loss, then four with a new one; the state stays the same. */
static void test_shrink_and_grow(void **unused)
{
    struct gang gang;
    gang_init(&gang, 4);
    gang_fork_all(&gang, live_through_changes, NULL);
    gang_until(&gang, all_have_stepped(&gang));
    kill(gang.pids[1], SIGKILL);
    gang_until(&gang, gang.pids[1] == 0);
    gang.world = 3;
    gang.ranks[1] = GANG_MAX;
    gang.ranks[3] = 1;
    gang_rejoin(&gang);
    gang_until(&gang, all_have_stepped(&gang));
    assert_true(gang.commit_step == 2 * STEP && gang.commit_attempt == 1);
    gang.world = 4;
    gang.ranks[1] = 3;
    gang_rejoin(&gang);
    gang_fork(&gang, 1, live_through_changes, NULL);
    gang_until(&gang, gang_ended(&gang));
    for (uint32_t task = 0; task < 4; task++)
        assert_int_equal(gang_exit(&gang, task), 0);
    assert_true(gang.commit_step == 3 * STEP && gang.commit_attempt == 2);
    gang_done(&gang);
}

/* ---- a file of other programs ---- */

static int import_all(void *argument)
{
    const char *path = argument;
    struct phx_error error = {0};
    struct state state;
    char wrong[128];
    size_t count = 0;
    phx_context *ctx = gang_join();
    uint32_t rank = phx_rank(ctx), world = phx_world_size(ctx);
    make_state(&state, rank, world);
    EXPECT(phx_checkpoint_import(ctx, path, &count, &error) == PHX_ERROR_INVALID);
    EXPECT(phx_checkpoint_register(ctx, state.regions, 3, &error) == 0);
    snprintf(wrong, sizeof wrong, "%s.nowhere", path);
    EXPECT(phx_checkpoint_import(ctx, wrong, &count, &error) == PHX_ERROR_NONE);
    EXPECT(phx_checkpoint_import(ctx, "/proc/self/exe", &count, &error) == PHX_ERROR_CORRUPT);
    EXPECT(phx_checkpoint_import(ctx, "/", &count, &error) == PHX_ERROR_CORRUPT && count == 0);
    EXPECT(phx_checkpoint_import(ctx, path, &count, &error) == 0 && count == 2);
    for (int i = 0; i < CONTROL; i++) {
        EXPECT(state.control[i] == 0); /* which the file has not */
        state.control[i] = STEP + i;
    }
    EXPECT(walk_state(&state, rank, world, STEP, true));
    state.regions[0].dtype = PHX_I64;
    EXPECT(phx_checkpoint_register(ctx, state.regions, 3, &error) == 0);
    EXPECT(phx_checkpoint_import(ctx, path, NULL, &error) == PHX_ERROR_INVALID &&
           strstr(error.message, "region rows is F64") != NULL);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

/* Each rank cuts its part from the whole, and leaves what is not in the file. */
static void test_import(void **unused)
{
    struct gang gang;
    struct job_regions regions;
    struct state state;
    char path[96];
    gang_init(&gang, 3);
    snprintf(path, sizeof path, "%s/weights.safetensors", gang.dir);
    make_state(&state, 0, 1);
    walk_state(&state, 0, 1, STEP, false);
    assert_int_equal(job_regions_describe(state.regions, 2, &regions, NULL), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (size_t i = 0; i <= regions.count; i++)
        assert_int_equal(fwrite(regions.parts[i].iov_base, regions.parts[i].iov_len, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    job_regions_done(&regions);
    free_state(&state);
    gang_run(&gang, import_all, path);
    gang_done(&gang);
}

/* ---- what is refused ---- */

static void write_shards(const char *dir, uint32_t world)
{
    for (uint32_t rank = 0; rank < world; rank++) {
        struct shard_id id = {.dir = dir, .step = STEP, .rank = rank, .world = world};
        struct job_regions regions;
        struct phx_error error;
        struct state state;
        uint64_t size;
        make_state(&state, rank, world);
        walk_state(&state, rank, world, STEP, false);
        assert_int_equal(job_regions_describe(state.regions, 3, &regions, &error), 0);
        assert_int_equal(shard_write(&id, regions.parts, regions.count + 1, &size, &error), 0);
        job_regions_done(&regions);
        free_state(&state);
    }
}

/* Changes a byte, or cuts the end off. */
static void harm(const char *dir, uint32_t rank, uint32_t *seed)
{
    char path[128];
    struct stat info;
    snprintf(path, sizeof path, "%s/step-%d/attempt-0-rank-%u.shard", dir, STEP, rank);
    assert_int_equal(stat(path, &info), 0);
    uint32_t at = gang_draw(seed, (uint32_t)info.st_size);
    if (gang_draw(seed, 8) == 0) {
        assert_int_equal(truncate(path, at), 0);
        return;
    }
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    fputc(byte ^ (1 << gang_draw(seed, 8)), file);
    assert_int_equal(fclose(file), 0);
}

/* Shards that were sound when they were agreed on: what is loaded all the same is right. */
static void test_harm_after_the_join(void **unused)
{
    uint32_t seed = 77, loaded = 0, refused = 0;
    for (int trial = 0; trial < 120; trial++) {
        char dir[] = "/tmp/phalanx-test-XXXXXX";
        uint32_t old = 1 + gang_draw(&seed, 4), world = 1 + gang_draw(&seed, 4),
                 rank = gang_draw(&seed, world);
        struct phx_error error = {0};
        struct job_regions regions;
        struct state state;
        assert_non_null(mkdtemp(dir));
        write_shards(dir, old);
        if (trial % 8 != 0)
            harm(dir, gang_draw(&seed, old), &seed);
        make_state(&state, rank, world);
        assert_int_equal(job_regions_describe(state.regions, 3, &regions, &error), 0);
        struct shard_id id = {.dir = dir, .step = STEP, .rank = rank, .world = world};
        int status = job_load(NULL, &regions, NULL, 0, &id, &error);
        if (status == 0)
            assert_true(walk_state(&state, rank, world, STEP, true));
        else
            assert_true(trial % 8 != 0 && error.message[0] != 0);
        loaded += status == 0;
        refused += status != 0;
        job_regions_done(&regions);
        free_state(&state);
        gang_remove_tree(dir);
    }
    assert_true(loaded >= 15 && refused >= 30);
}

/* A loaded state has the registered form or is refused by name. */
static int load_wrong(void *unused)
{
    struct phx_error error = {0};
    struct state state;
    uint64_t step = 0;
    phx_context *ctx = gang_join();
    make_state(&state, phx_rank(ctx), phx_world_size(ctx));
    state.regions[2].name = "other";
    EXPECT(phx_checkpoint_register(ctx, state.regions, 3, &error) == 0);
    EXPECT(phx_checkpoint_load(ctx, &step, &error) == PHX_ERROR_INVALID &&
           strstr(error.message, "no region other") != NULL);
    state.regions[2].name = "control";
    state.regions[2].shape[0] = CONTROL - 1;
    EXPECT(phx_checkpoint_register(ctx, state.regions, 3, &error) == 0);
    EXPECT(phx_checkpoint_load(ctx, &step, &error) == PHX_ERROR_INVALID &&
           strstr(error.message, "region control: the checkpoint has 3 along dimension 0") != NULL);
    EXPECT(step == 0);
    EXPECT(phx_checkpoint_register(ctx, state.regions, 2, &error) == 0); /* fewer are no mistake */
    EXPECT(phx_checkpoint_load(ctx, &step, &error) == 0 && step == SECOND);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static int save_bytes(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    EXPECT(phx_checkpoint_save(ctx, STEP, "just bytes, of which the library knows nothing", 46, &error) == 0);
    EXPECT(phx_checkpoint_wait(ctx, STEP, -1, &error) == 0 && phx_leave(ctx, &error) == 0);
    return 0;
}

static int load_bytes(void *unused)
{
    struct phx_error error = {0};
    struct state state;
    uint64_t step;
    size_t len;
    phx_context *ctx = gang_join();
    make_state(&state, phx_rank(ctx), phx_world_size(ctx));
    EXPECT(phx_checkpoint_register(ctx, state.regions, 3, &error) == 0);
    EXPECT(phx_checkpoint_load(ctx, &step, &error) == PHX_ERROR_INVALID &&
           strstr(error.message, "no named regions") != NULL);
    EXPECT(phx_checkpoint_find(ctx, &len, &step, &error) == PHX_ERROR_INVALID);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void test_mistakes(void **unused)
{
    struct gang gang;
    begin(&gang, 3, 3);
    gang_run(&gang, load_wrong, NULL);
    gang_next_attempt(&gang);
    gang.world = 2;
    gang_run(&gang, load_wrong, NULL);
    gang_done(&gang);
    gang_init(&gang, 2);
    gang_run(&gang, save_bytes, NULL);
    gang_next_attempt(&gang);
    gang.world = 3;
    gang_run(&gang, load_bytes, NULL);
    gang_done(&gang);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_worlds),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_memory_and_storage),
        cmocka_unit_test(test_shrink_and_grow),
        cmocka_unit_test(test_harm_after_the_join),
        cmocka_unit_test(test_import),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
