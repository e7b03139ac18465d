/* A gang of another size takes what the one before has kept from wherever it lies: memory of this machine and
 * of others, copies there, storage; never parts of two checkpoints. */
#include "job/gang.h"

#include "job/state.h"

enum { STEP = 10, FOREVER = -1 };

/* One attempt of a gang. */
struct act {
    uint32_t machines; /* rank r is on number r modulo so many */
    unsigned where;    /* what it does with the step that it makes */
    bool no_storage;   /* it has no directory */
    uint64_t from;     /* the step that it begins with; 0: none */
    uint64_t count;    /* steps to make */
    bool ends;         /* it leaves, else it is killed */
};

static void enter_machine(const struct act *act)
{
    const char *parent = getenv("PHX_CHECKPOINT_DIR");
    if (parent == NULL) /* an object store: all are on one machine */
        return;
    char path[300];
    mkdir(parent, 0700);
    snprintf(path, sizeof path, "%s/machine-%llu", parent,
             strtoull(getenv("PHX_RANK"), NULL, 10) % act->machines);
    mkdir(path, 0700);
    snprintf(path + strlen(path), 10, "/memory");
    setenv("PHX_MEMORY_DIR", path, 1);
    if (act->no_storage)
        unsetenv("PHX_CHECKPOINT_DIR");
}

static int keep(phx_context *ctx, uint64_t step, unsigned where, struct phx_error *error)
{
    int status = phx_checkpoint_take(ctx, step, where, error);
    if (status == 0 && (where & PHX_IN_MEMORY) != 0)
        status = phx_checkpoint_held(ctx, step, FOREVER, error);
    if (status == 0 && (where & PHX_IN_PEER) != 0)
        status = phx_checkpoint_copied(ctx, step, FOREVER, error);
    if (status == 0 && (where & PHX_IN_STORAGE) != 0)
        status = phx_checkpoint_wait(ctx, step, FOREVER, error);
    return status;
}

static int work(void *argument)
{
    const struct act *act = argument;
    struct phx_error error = {0};
    struct state state;
    uint64_t step = 0;
    enter_machine(act);
    phx_context *ctx = gang_join();
    uint32_t rank = phx_rank(ctx), world = phx_world_size(ctx);
    make_state(&state, rank, world);
    EXPECT(phx_checkpoint_register(ctx, state.regions, 3, &error) == 0);
    int status = phx_checkpoint_load(ctx, &step, &error);
    EXPECT(act->from == 0 ? status == PHX_ERROR_NONE : status == 0 && step == act->from);
    EXPECT(act->from == 0 || walk_state(&state, rank, world, step, true));
    EXPECT(phx_barrier(ctx, FOREVER, &error) == 0);
    for (uint64_t i = 0; i < act->count; i++) {
        walk_state(&state, rank, world, step += STEP, false);
        EXPECT(keep(ctx, step, act->where, &error) == 0);
    }
    EXPECT(phx_step(ctx, step, NULL, 0, &error) == 0); /* the test hears it */
    if (!act->ends)
        pause();
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

/* Plays it; then the power fails, and the next attempt is of `next` ranks. */
static void play(struct gang *gang, struct act *act, uint32_t next)
{
    gang_fork_all(gang, work, act);
    gang_until(gang, all_have_stepped(gang) || gang_ended(gang));
    for (uint32_t rank = 0; rank < gang->world; rank++)
        if (gang->pids[rank] > 0 && !act->ends)
            kill(gang->pids[rank], SIGKILL);
    gang_until(gang, gang_ended(gang));
    for (uint32_t rank = 0; rank < gang->world; rank++)
        assert_int_equal(gang_exit(gang, rank), act->ends ? 0 : 256 + SIGKILL);
    gang_next_attempt(gang);
    gang->world = next;
}

static void lose_memory(const struct gang *gang, uint32_t machine)
{
    char path[200];
    snprintf(path, sizeof path, "%s/checkpoints/machine-%u", gang->dir, machine);
    gang_remove_tree(path);
}

/* Changes a byte of all that a rank has held on a machine. */
static void damage_memory(const struct gang *gang, uint32_t machine, const char *file)
{
    char path[240];
    uint8_t byte = 0;
    for (int slot = 0; slot < 3; slot++) {
        snprintf(path, sizeof path, "%s/checkpoints/machine-%u/memory/%s.%d", gang->dir, machine, file, slot);
        FILE *held = fopen(path, "r+");
        if (held == NULL)
            continue;
        bool any = fseek(held, -1, SEEK_END) == 0 && ftell(held) > 64 && fread(&byte, 1, 1, held) == 1;
        byte ^= 1;
        assert_true(!any || (fseek(held, -1, SEEK_END) == 0 && fwrite(&byte, 1, 1, held) == 1));
        assert_int_equal(fclose(held), 0);
    }
}

/* Smaller, larger, and with other neighbours, on one machine and on several; there is no storage at all. */
static void test_memory_alone(void **unused)
{
    static const uint32_t worlds[][6] = {{4, 1, 3, 5, 2, 4}, {4, 2, 3, 5, 2, 4}, {7, 3, 4, 6, 3, 5}};
    for (uint32_t row = 0; row < 3; row++) {
        struct gang gang;
        struct act act = {.machines = row + 1, .where = PHX_IN_MEMORY, .no_storage = true, .count = 1};
        gang_init(&gang, worlds[row][0]);
        for (size_t i = 0; i < 6; i++) {
            act.ends = i == 5;
            play(&gang, &act, worlds[row][i < 5 ? i + 1 : i]);
            act.from += STEP;
        }
        gang_done(&gang);
    }
}

/* A machine is gone, and what its ranks had lies as copies on the others. */
static void test_copies(void **unused)
{
    for (uint32_t lost = 0; lost < 2; lost++) {
        struct gang gang;
        struct act act = {.machines = 2, .where = PHX_IN_PEER, .no_storage = true, .count = 2};
        gang_init(&gang, 4);
        play(&gang, &act, 3);
        lose_memory(&gang, lost);
        act.from = 2 * STEP;
        play(&gang, &act, 2);
        lose_memory(&gang, 1 - lost);
        act.from = 4 * STEP;
        act.ends = true;
        play(&gang, &act, 1);
        gang_done(&gang);
    }
}

/* The step is neither whole in memory nor in storage. */
static void test_mix(void **unused)
{
    for (uint32_t lost = 0; lost < 2; lost++) {
        struct gang gang;
        struct act act = {.machines = 2, .where = PHX_IN_MEMORY | PHX_IN_STORAGE, .count = 2};
        gang_init(&gang, 4);
        play(&gang, &act, 3);
        lose_memory(&gang, lost);
        gang_damage_shard(&gang, 2 * STEP, 0, 1 - lost, GANG_FLIP_DATA);
        act.from = 2 * STEP;
        act.ends = true;
        play(&gang, &act, 1);
        gang_done(&gang);
    }
}

/* A damaged state, or one that a lost machine had alone, leads all ranks to the newest checkpoint that is
 * whole. */
static void test_damage(void **unused)
{
    for (uint32_t kind = 0; kind < 4; kind++) {
        struct gang gang;
        struct act act = {.machines = 2, .where = PHX_IN_MEMORY | PHX_IN_STORAGE, .count = 1};
        gang_init(&gang, 4);
        play(&gang, &act, 4);
        act = (struct act){.machines = 2, .where = PHX_IN_MEMORY, .from = STEP, .count = 2};
        play(&gang, &act, kind % 2 == 0 ? 3 : 5);
        if (kind < 2)
            lose_memory(&gang, 1);
        else
            damage_memory(&gang, 1, "rank-3");
        act = (struct act){.machines = 2, .where = PHX_IN_STORAGE, .from = STEP, .count = 1, .ends = true};
        play(&gang, &act, 1);
        assert_int_equal(gang.commit_step, 2 * STEP);
        gang_done(&gang);
    }
}

/* A slot of the newest step alone is damaged: the one before it is in memory, too. */
static void test_older_in_memory(void **unused)
{
    struct gang gang;
    struct act act = {.machines = 2, .where = PHX_IN_PEER, .no_storage = true, .count = 2};
    gang_init(&gang, 4);
    play(&gang, &act, 3);
    damage_memory(&gang, 1, "rank-3");
    act.from = 2 * STEP; /* of rank 3 there is a copy */
    act.count = 0;
    play(&gang, &act, 2);
    damage_memory(&gang, 0, "peer-3");
    act.from = 0;
    act.count = 1;
    act.ends = true;
    play(&gang, &act, 1);
    gang_done(&gang);
}

/* ---- an object store ---- */

static void lose_all_memory(const struct gang *gang)
{
    char path[128];
    snprintf(path, sizeof path, "%s/memory", gang->dir);
    gang_remove_tree(path);
}

/* Nothing is left but objects: what each rank brings of them is cut anew. */
static void test_objects(void **unused)
{
    static const uint32_t worlds[][3] = {{3, 2, 4}, {2, 5, 1}, {1, 4, 4}, {7, 2, 3}};
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        struct gang gang;
        struct act act = {.machines = 1, .where = PHX_IN_STORAGE, .count = 2};
        gang_init(&gang, worlds[i][0]);
        gang.store = true;
        play(&gang, &act, worlds[i][1]);
        lose_all_memory(&gang);
        act.from = 2 * STEP;
        act.where = i % 2 ? PHX_IN_STORAGE : PHX_IN_STORAGE | PHX_IN_MEMORY;
        play(&gang, &act, worlds[i][2]);
        lose_all_memory(&gang);
        act.from = 4 * STEP;
        act.ends = true;
        play(&gang, &act, 1);
        assert_true(gang.commit_step == 6 * STEP && gang.commit_attempt == 2);
        gang_done(&gang);
    }
}

/* An object is gone, or the agent can't bring it: no rank has a state then. */
static int find_damage(void *argument)
{
    struct phx_error error = {0};
    struct state state;
    uint64_t step;
    phx_context *ctx = gang_join();
    make_state(&state, phx_rank(ctx), phx_world_size(ctx));
    EXPECT(phx_checkpoint_register(ctx, state.regions, 3, &error) == 0);
    EXPECT(phx_checkpoint_load(ctx, &step, &error) == PHX_ERROR_CORRUPT);
    EXPECT(phx_rank(ctx) != 0 || strstr(error.message, argument) != NULL);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void test_missing_objects(void **unused)
{
    for (uint32_t missing = 0; missing < 4; missing++) {
        struct gang gang;
        struct act act = {.machines = 1, .where = PHX_IN_STORAGE, .count = 1};
        char path[160];
        gang_init(&gang, 4);
        gang.store = true;
        play(&gang, &act, 3);
        lose_all_memory(&gang);
        snprintf(path, sizeof path, "%s/store/step-%d-attempt-0-rank-%u", gang.dir, STEP, missing);
        gang.old_agent = missing == 2;
        assert_int_equal(unlink(path), 0);
        gang_run(&gang, find_damage, missing == 2 ? "too old" : missing == 1 ? "saved by 4" : "object store");
        gang_done(&gang);
    }
}

/* ---- who is slow ---- */

/* The first rank of the new gang goes on, and holds steps, before the others have read what they need. */
static int load_late(void *argument)
{
    const struct act *act = argument;
    struct phx_error error = {0};
    struct state state;
    uint64_t step = 0;
    size_t len;
    char word[8];
    enter_machine(act);
    phx_context *ctx = gang_join();
    uint32_t rank = phx_rank(ctx), world = phx_world_size(ctx);
    make_state(&state, rank, world);
    EXPECT(phx_checkpoint_register(ctx, state.regions, 3, &error) == 0);
    EXPECT(rank == 0 || phx_kv_get(ctx, "held", word, sizeof word, &len, FOREVER, &error) == 0);
    EXPECT(phx_checkpoint_load(ctx, &step, &error) == 0 && step == act->from);
    EXPECT(walk_state(&state, rank, world, step, true));
    walk_state(&state, rank, world, step + STEP, false);
    EXPECT(phx_checkpoint_take(ctx, step + STEP, act->where, &error) == 0);
    EXPECT(rank != 0 || phx_kv_put(ctx, "held", "yes", 3, &error) == 0);
    EXPECT(keep(ctx, step + 2 * STEP, act->where, &error) == 0);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void test_late(void **unused)
{
    static const unsigned wheres[] = {PHX_IN_MEMORY, PHX_IN_PEER};
    for (size_t i = 0; i < 2; i++) {
        struct gang gang;
        struct act act = {.machines = 2, .where = wheres[i], .no_storage = true, .count = 1};
        gang_init(&gang, 2);
        play(&gang, &act, 4);
        act.from = STEP;
        gang_run(&gang, load_late, &act);
        gang_done(&gang);
    }
}

/* ---- processes that stay ---- */

static int stay(void *argument)
{
    struct phx_error error = {0};
    struct phx_options options = {.size = sizeof options, .join_timeout_ms = GANG_PATIENCE_MS, .rejoins = 1};
    uint64_t *last = argument;
    phx_context *ctx = NULL;
    unsetenv("PHX_CHECKPOINT_DIR");
    EXPECT(phx_join(&options, &ctx, &error) == 0);
    for (uint64_t step = 0; step < *last;) {
        struct state state;
        uint32_t rank = phx_rank(ctx), world = phx_world_size(ctx);
        make_state(&state, rank, world);
        EXPECT(phx_checkpoint_register(ctx, state.regions, 3, &error) == 0);
        int found = phx_checkpoint_load(ctx, &step, &error);
        EXPECT(phx_attempt(ctx) == 0 ? found == PHX_ERROR_NONE
                                     : found == 0 && step == phx_attempt(ctx) * STEP);
        EXPECT(found != 0 || walk_state(&state, rank, world, step, true));
        walk_state(&state, rank, world, step += STEP, false);
        EXPECT(keep(ctx, step, PHX_IN_MEMORY, &error) == 0);
        EXPECT(phx_step(ctx, step, NULL, 0, &error) == 0);
        free_state(&state);
        while (step < *last && phx_barrier(ctx, FOREVER, &error) == 0)
            ;
        EXPECT(step == *last || phx_rejoin(ctx, GANG_PATIENCE_MS, &error) == 0);
    }
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

/* Four, three of them after a loss, two after another one, then four; the state is nowhere but in memory. */
static void test_shrink_and_grow(void **unused)
{
    struct gang gang;
    uint64_t last = 4 * STEP;
    gang_init(&gang, 4);
    gang_fork_all(&gang, stay, &last);
    for (uint32_t lost = 1; lost < 3; lost++) {
        gang_until(&gang, all_have_stepped(&gang));
        kill(gang.pids[lost], SIGKILL);
        gang_until(&gang, gang.pids[lost] == 0);
        gang.ranks[lost] = GANG_MAX;
        gang.ranks[3] = 1;
        gang.world--;
        gang_rejoin(&gang);
    }
    gang_until(&gang, all_have_stepped(&gang));
    gang.world = 4;
    gang.ranks[1] = 2;
    gang.ranks[2] = 3;
    gang_rejoin(&gang);
    gang_fork(&gang, 1, stay, &last);
    gang_fork(&gang, 2, stay, &last);
    gang_until(&gang, gang_ended(&gang));
    for (uint32_t task = 0; task < 4; task++)
        assert_int_equal(gang_exit(&gang, task), 0);
    gang_done(&gang);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_alone),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_mix),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_older_in_memory),
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_missing_objects),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_shrink_and_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
