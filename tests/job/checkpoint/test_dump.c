/* Dying checkpoints: what the survivors still hold of all ranks of the old world goes to storage as one
 * checkpoint, or nothing does. Each machine has a folder of its own. */
#include "job/gang.h"

#include <sys/mman.h>

#include "job/checkpoint/shard.h"

#define WORLD    4
#define MACHINES 2 /* ranks 0 and 1 on one, 2 and 3 on the other */
#define COUNT    5000
#define LAST     6
#define LIVE     (LAST + 3)
#define FOREVER  (-1)

struct plan {
    bool replicated, peer;
    bool rescued;      /* survivors keep what they have when they hear of the loss, of step LIVE */
    bool damaged;      /* the copy of the newest step of rank 3 */
    uint32_t *refused; /* shared: survivors that heard why nothing was written */
    uint64_t restored; /* by the gang that begins anew */
};

static void own_machine(void)
{
    const char *parent = getenv("PHX_CHECKPOINT_DIR");
    char machine[256], dir[300];
    uint64_t task = strtoull(getenv("PHX_TASK_UID"), NULL, 10) - 100;
    snprintf(machine, sizeof machine, "%s/machine-%u", parent, (unsigned)(task * MACHINES / WORLD));
    snprintf(dir, sizeof dir, "%s/memory", machine);
    mkdir(parent, 0700);
    mkdir(machine, 0700);
    setenv("PHX_MEMORY_DIR", dir, 1);
}

static float value_of(const struct plan *plan, uint32_t rank, uint64_t step, size_t i)
{
    return (float)(step * 10 + (plan->replicated ? 0 : rank) + i % 7);
}

static void describe(const struct plan *plan, phx_context *ctx, float *weights)
{
    struct phx_error error = {0};
    struct phx_region region = {.name = "weights",
                                .data = weights,
                                .dtype = PHX_F32,
                                .dims = 1,
                                .shape = {COUNT},
                                .shard_index = phx_rank(ctx),
                                .shard_count = plan->replicated ? 0 : WORLD};
    EXPECT(phx_checkpoint_register(ctx, &region, 1, &error) == 0);
}

static void rescue(const struct plan *plan, phx_context *ctx, float *weights)
{
    struct phx_error error = {0};
    for (size_t i = 0; i < COUNT; i++)
        weights[i] = value_of(plan, phx_rank(ctx), LIVE, i);
    EXPECT(phx_checkpoint_rescue(ctx, LIVE, &error) == 0);
}

/* Takes some steps and waits for what comes; the dump is all that a survivor does then. */
static int live(void *argument)
{
    const struct plan *plan = argument;
    static float weights[COUNT];
    struct phx_error error = {0};
    struct phx_options options = {.size = sizeof options,
                                  .join_timeout_ms = GANG_PATIENCE_MS,
                                  .leave_timeout_ms = GANG_PATIENCE_MS,
                                  .rejoins = 1};
    phx_context *ctx = NULL;
    own_machine();
    EXPECT(phx_join(&options, &ctx, &error) == 0);
    describe(plan, ctx, weights);
    EXPECT(phx_barrier(ctx, FOREVER, &error) == 0);
    for (uint64_t step = 1; step <= LAST; step++) {
        for (size_t i = 0; i < COUNT; i++)
            weights[i] = value_of(plan, phx_rank(ctx), step, i);
        EXPECT(phx_checkpoint_take(ctx, step, plan->peer ? PHX_IN_PEER : PHX_IN_MEMORY, &error) == 0);
    }
    EXPECT(phx_checkpoint_held(ctx, LAST, FOREVER, &error) == 0);
    EXPECT(!plan->peer || phx_checkpoint_copied(ctx, LAST, FOREVER, &error) == 0);
    EXPECT(phx_barrier(ctx, FOREVER, &error) == 0);
    EXPECT(phx_checkpoint_rescue(ctx, LIVE, &error) == PHX_ERROR_INVALID); /* all could take it */
    EXPECT(phx_step(ctx, LAST, NULL, 0, &error) == 0);
    int status = 0;
    while (status == 0 || status == PHX_ERROR_TIMEOUT) /* until a rank is lost */
        status = phx_barrier(ctx, 50, &error);
    if (plan->rescued)
        rescue(plan, ctx, weights);
    status = phx_rejoin(ctx, FOREVER, &error); /* it ends from outside where the dump was written */
    EXPECT(status == PHX_ERROR_NONE && strstr(error.message, "no dying checkpoint") != NULL);
    EXPECT(strstr(error.message, "rank 2") != NULL && strstr(error.message, "step 6") != NULL);
    __atomic_add_fetch(plan->refused, 1, __ATOMIC_SEQ_CST);
    for (;;) /* likewise: who ends by itself may do so before the other has heard */
        pause();
}

static int begin_anew(void *argument)
{
    const struct plan *plan = argument;
    static float weights[COUNT];
    struct phx_error error = {0};
    uint64_t step = 0;
    phx_context *ctx = gang_join(); /* in a folder in memory that holds nothing */
    describe(plan, ctx, weights);
    int status = phx_checkpoint_load(ctx, &step, &error);
    EXPECT(status == (plan->restored > 0 ? 0 : PHX_ERROR_NONE) && step == plan->restored);
    for (size_t i = 0; i < COUNT && status == 0; i++)
        EXPECT(weights[i] == value_of(plan, phx_rank(ctx), step, i));
    EXPECT(phx_barrier(ctx, FOREVER, &error) == 0);
    phx_close(ctx);
    return 0;
}

static void damage_newest_copy(const struct gang *gang)
{
    for (int slot = 0; slot < 2; slot++) {
        char path[200];
        uint64_t step = 0;
        snprintf(path, sizeof path, "%s/checkpoints/machine-0/memory/peer-3.%d", gang->dir, slot);
        FILE *file = fopen(path, "r+");
        assert_non_null(file);
        assert_true(fseek(file, 16, SEEK_SET) == 0 && fread(&step, sizeof step, 1, file) == 1);
        if (step == LAST)
            assert_true(fseek(file, 5000, SEEK_SET) == 0 && fwrite("damage", 6, 1, file) == 1);
        assert_int_equal(fclose(file), 0);
    }
}

/* Ranks 2 and 3 die with their machine; the others are told to write what there is. */
static void start_and_lose(struct gang *gang, struct plan *plan)
{
    char path[200];
    gang_init(gang, WORLD);
    plan->refused =
        mmap(NULL, sizeof *plan->refused, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(plan->refused != MAP_FAILED);
    gang_fork_all(gang, live, plan);
    gang_until(gang, gang->step_frames[0] > 0 && gang->step_frames[1] > 0 && gang->step_frames[2] > 0 &&
                         gang->step_frames[3] > 0);
    kill(gang->pids[2], SIGKILL);
    kill(gang->pids[3], SIGKILL);
    gang_until(gang, gang->pids[2] == 0 && gang->pids[3] == 0);
    snprintf(path, sizeof path, "%s/checkpoints/machine-1", gang->dir);
    gang_remove_tree(path);
    if (plan->damaged)
        damage_newest_copy(gang);
    gang->full_world = WORLD;
    gang->world = 2;
    gang->rejoin_flags = JOBWIRE_REJOIN_DUMP;
    gang_rejoin(gang);
    gang->rejoin_flags = 0;
}

/* The whole world starts again, with nothing in memory. */
static void start_again(struct gang *gang, struct plan *plan)
{
    for (uint32_t task = 0; task < WORLD; task++)
        if (gang->pids[task] > 0)
            kill(gang->pids[task], SIGKILL);
    gang_until(gang, gang_ended(gang));
    gang->world = WORLD;
    gang_next_attempt(gang);
    gang_run(gang, begin_anew, plan);
    munmap(plan->refused, sizeof *plan->refused);
    gang_done(gang);
}

static void expect_dump(struct plan plan)
{
    struct gang gang;
    start_and_lose(&gang, &plan);
    gang_until(&gang, gang.has_commit);
    plan.restored = plan.damaged ? LAST - 1 : plan.rescued ? LIVE : LAST;
    assert_true(gang.commit_step == plan.restored && gang.commit_attempt == 1);
    assert_int_equal(*plan.refused, 0);
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        char dir[160];
        struct phx_error error;
        snprintf(dir, sizeof dir, "%s/checkpoints", gang.dir);
        struct shard_id id = {.dir = dir, .step = plan.restored, .attempt = 1, .rank = rank, .world = WORLD};
        assert_int_equal(shard_verify(&id, &error), 0);
    }
    start_again(&gang, &plan);
}

static void test_from_replicas(void **unused)
{
    expect_dump((struct plan){.replicated = true});
}

/* A replica that lives has more than what was held last. */
static void test_from_live_replicas(void **unused)
{
    expect_dump((struct plan){.replicated = true, .rescued = true});
}

/* No other rank has saved that step with the lost ranks' parts: the step that was held last is complete. */
static void test_live_but_incomplete(void **unused)
{
    struct gang gang;
    struct plan plan = {.peer = true, .rescued = true};
    start_and_lose(&gang, &plan);
    gang_until(&gang, gang.has_commit);
    assert_int_equal(gang.commit_step, LAST);
    plan.restored = LAST;
    start_again(&gang, &plan);
}

static void test_from_copies(void **unused)
{
    expect_dump((struct plan){.peer = true});
}

/* Then all of the step before. */
static void test_damaged_copy(void **unused)
{
    expect_dump((struct plan){.peer = true, .damaged = true});
}

/* Each rank has its own part, and nobody has the lost ones': nothing is written. */
static void test_refused(void **unused)
{
    struct gang gang;
    struct plan plan = {0};
    char path[200];
    start_and_lose(&gang, &plan);
    gang_until(&gang, __atomic_load_n(plan.refused, __ATOMIC_SEQ_CST) == 2);
    assert_false(gang.has_commit);
    snprintf(path, sizeof path, "%s/checkpoints/step-%d", gang.dir, LAST);
    assert_int_not_equal(access(path, F_OK), 0);
    start_again(&gang, &plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_replicas),       cmocka_unit_test(test_from_live_replicas),
        cmocka_unit_test(test_live_but_incomplete), cmocka_unit_test(test_from_copies),
        cmocka_unit_test(test_damaged_copy),        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
