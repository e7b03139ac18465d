/* Several machines, each a folder of its own: the loss of one loses no shard, neither of replicas nor of
 * ranks that have sent a copy to a peer. */
#include "job/gang.h"

#include <sched.h>
#include <sys/mman.h>

#include "job/link/machine.h"

#define WORLD    4
#define MACHINES 2 /* ranks 0 and 1 on one, 2 and 3 on the other */
#define FOREVER  (-1)
#define COUNT    60000

struct plan {
    bool replicated;      /* all ranks have the whole state */
    bool peer;            /* every step goes to a peer */
    const char *every;    /* every so many holds do, by the environment; the last one of them: */
    uint64_t copied;      /* 0: none */
    bool delta;           /* only what changes: half of the state does */
    bool forever;         /* go on until the end comes from outside */
    uint64_t from, until; /* step to begin with, UINT64_MAX: what is known at least; last one to take */
    uint64_t *by_all;     /* shared: newest that a rank knew to be copied (or held) by all */
    const char *rate;
    const char *level;   /* of compression; */
    const char *library; /* that isn't there */
};

static float value_of(const struct plan *plan, uint32_t rank, uint64_t step, size_t i)
{
    bool frozen = plan->delta && i >= COUNT / 2;
    return (float)((frozen ? 0 : step * 10) + (plan->replicated ? 0 : rank) + i % 7);
}

static void own_machine(const struct plan *plan)
{
    const char *parent = getenv("PHX_CHECKPOINT_DIR");
    char machine[256], dir[300];
    uint64_t rank = strtoull(getenv("PHX_RANK"), NULL, 10);
    snprintf(machine, sizeof machine, "%s/machine-%u", parent, (unsigned)(rank * MACHINES / WORLD));
    snprintf(dir, sizeof dir, "%s/memory", machine);
    mkdir(parent, 0700);
    mkdir(machine, 0700);
    setenv("PHX_MEMORY_DIR", dir, 1);
    if (plan->rate != NULL)
        setenv("PHX_PEER_RATE", plan->rate, 1);
    if (plan->every != NULL)
        setenv("PHX_PEER_EVERY", plan->every, 1);
    setenv("PHX_PEER_DELTA", plan->delta ? "1" : "0", 1);
    setenv("PHX_PEER_ZSTD", plan->level != NULL ? plan->level : "0", 1);
    if (plan->library != NULL && rank < WORLD / 2) /* the others send to these */
        setenv("PHX_ZSTD_LIBRARY", plan->library, 1);
}

static uint64_t begin(phx_context *ctx, const struct plan *plan, float *weights)
{
    struct phx_error error = {0};
    uint64_t step = 0;
    struct phx_region region = {.name = "weights",
                                .data = weights,
                                .dtype = PHX_F32,
                                .dims = 1,
                                .shape = {COUNT},
                                .shard_index = phx_rank(ctx),
                                .shard_count = plan->replicated ? 0 : WORLD};
    EXPECT(phx_checkpoint_register(ctx, &region, 1, &error) == 0);
    int status = phx_checkpoint_load(ctx, &step, &error);
    EXPECT(status == 0 || (status == PHX_ERROR_NONE && (plan->from == 0 || *plan->by_all == 0)));
    EXPECT(plan->from == UINT64_MAX ? step >= *plan->by_all : step == plan->from);
    for (size_t i = 0; i < COUNT && status == 0; i++)
        EXPECT(weights[i] == value_of(plan, phx_rank(ctx), step, i));
    EXPECT(phx_barrier(ctx, FOREVER, &error) == 0 || error.code == PHX_ERROR_PEER);
    return step;
}

static int work(void *argument)
{
    const struct plan *plan = argument;
    static float weights[COUNT];
    struct phx_error error = {0};
    bool told_before = false;
    own_machine(plan);
    phx_context *ctx = gang_join();
    for (uint64_t step = begin(ctx, plan, weights) + 1; step <= plan->until; step++) {
        for (size_t i = 0; i < COUNT; i++)
            weights[i] = value_of(plan, phx_rank(ctx), step, i);
        int status = phx_checkpoint_take(ctx, step, plan->peer ? PHX_IN_PEER : PHX_IN_MEMORY, &error);
        if (status == 0 && !plan->forever)
            status = plan->peer ? phx_checkpoint_copied(ctx, step, FOREVER, &error)
                                : phx_checkpoint_held(ctx, step, FOREVER, &error);
        if (status == PHX_ERROR_PEER)
            return 75;
        EXPECT(status == 0);
        bool told = strstr(error.message, "not compressed") != NULL;
        EXPECT(told == (plan->library != NULL && !told_before));
        told_before = told_before || told;
        error.message[0] = '\0';
        if (!plan->forever || phx_checkpoint_copied(ctx, step - 1, 0, &error) == 0)
            __atomic_store_n(plan->by_all, plan->forever ? step - 1 : step, __ATOMIC_SEQ_CST);
        EXPECT(step != plan->copied || phx_checkpoint_copied(ctx, step, FOREVER, &error) == 0);
    }
    EXPECT(phx_barrier(ctx, FOREVER, &error) == 0);
    phx_close(ctx);
    return 0;
}

static void lose_machine(const struct gang *gang, uint32_t machine)
{
    char path[200];
    snprintf(path, sizeof path, "%s/checkpoints/machine-%u", gang->dir, machine);
    gang_remove_tree(path);
}

static uint64_t *shared_word(void)
{
    uint64_t *word = mmap(NULL, sizeof *word, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(word != MAP_FAILED);
    return word;
}

/* From another machine's memory, by the network, without any copy that was sent. */
static void test_replicas(void **unused)
{
    struct gang gang;
    struct plan plan = {.replicated = true, .until = 3, .by_all = shared_word()};
    gang_init(&gang, WORLD);
    for (uint32_t i = 0; i < 4; i++) {
        gang_run(&gang, work, &plan);
        gang_next_attempt(&gang);
        lose_machine(&gang, i % 2); /* rank 0's, too: then nobody who meets first knows the keys */
        plan.from = plan.until;
        plan.until += 2;
    }
    lose_machine(&gang, 0);
    lose_machine(&gang, 1);
    plan.from = 0;
    gang_run(&gang, work, &plan);
    gang_done(&gang);
}

/* Every rank has its own part; each machine is lost in turn. */
static void lose_in_turn(struct plan plan)
{
    struct gang gang;
    bool delta = plan.delta;
    plan.peer = true;
    plan.until = delta ? 6 : 3;
    plan.by_all = shared_word();
    gang_init(&gang, WORLD);
    for (uint32_t i = 0; i < 4; i++) {
        gang_run(&gang, work, &plan);
        gang_next_attempt(&gang);
        lose_machine(&gang, i % 2);
        plan.from = plan.until;
        plan.until += delta ? 4 : 1 + i % 3;
    }
    gang_done(&gang);
}

static void test_lost_machine(void **unused)
{
    lose_in_turn((struct plan){.delta = false});
}

static void test_lost_machine_of_deltas(void **unused)
{
    lose_in_turn((struct plan){.delta = true});
}

static void test_lost_machine_of_packed(void **unused)
{
    lose_in_turn((struct plan){.level = "3"});
    lose_in_turn((struct plan){.level = "1", .delta = true});
}

/* One machine has no zstd: copies from and to it go as they are, and each rank is told once. */
static void test_no_zstd(void **unused)
{
    lose_in_turn((struct plan){.level = "1", .library = "libnowhere.so.1"});
}

/* Steps that go nowhere are held between copies, and after them: the last one that all peers have a copy of
 * is gone on from, also when it is what the attempt began with. */
static void test_lost_machine_of_seldom_copies(void **unused)
{
    static const uint64_t until[] = {7, 11, 11, 13}, from[] = {0, 6, 9, 9}, copied[] = {6, 9, 0, 12};
    static const uint32_t lost[] = {0, 1, 1, 0};
    struct gang gang;
    struct plan plan = {.every = "3", .by_all = shared_word()};
    gang_init(&gang, WORLD);
    for (uint32_t i = 0; i < 4; i++) {
        plan.from = from[i];
        plan.until = until[i];
        plan.copied = copied[i];
        gang_run(&gang, work, &plan);
        gang_next_attempt(&gang);
        lose_machine(&gang, lost[i]); /* not the one that the last copies came to after a loss */
    }
    gang_done(&gang);
}

/* The processes end, no machine does: what they go on from has no copy yet, and what has one stays, both here
 * and there, however many steps are held and copies cut short until a machine is lost after all. */
static void test_lost_machine_after_lost_processes(void **unused)
{
    static const uint64_t from[] = {0, 7, 9, 11, 6, 7}, until[] = {7, 9, 11, 12, 7, 8};
    struct gang gang;
    struct plan plan = {.every = "3", .copied = 6, .by_all = shared_word()};
    gang_init(&gang, WORLD);
    for (uint32_t i = 0; i < 6; i++) {
        plan.from = from[i];
        plan.until = until[i];
        gang_run(&gang, work, &plan);
        gang_next_attempt(&gang);
        plan.copied = 0;
        if (i == 3)
            lose_machine(&gang, 1);
    }
    gang_done(&gang);
}

static void damage_copies(const struct gang *gang, uint32_t machine, uint32_t owner)
{
    char path[240];
    for (int slot = 0; slot < 2; slot++) {
        snprintf(path, sizeof path, "%s/checkpoints/machine-%u/memory/peer-%u.%d", gang->dir, machine, owner,
                 slot);
        FILE *file = fopen(path, "r+");
        assert_non_null(file);
        assert_true(fseek(file, 5000, SEEK_SET) == 0 && fwrite("damage", 6, 1, file) == 1);
        assert_int_equal(fclose(file), 0);
    }
}

/* A damaged copy is not taken; without another one there is no such step for anybody. */
static void test_damaged_copies(void **unused)
{
    struct gang gang;
    struct plan plan = {.peer = true, .until = 5, .by_all = shared_word()};
    gang_init(&gang, WORLD);
    gang_run(&gang, work, &plan);
    gang_next_attempt(&gang);
    damage_copies(&gang, 0, 2); /* nobody needs them: rank 2 has its own */
    plan.from = 5;
    plan.until = 6;
    gang_run(&gang, work, &plan);
    gang_next_attempt(&gang);
    damage_copies(&gang, 0, 3);
    lose_machine(&gang, 1);
    plan.from = 0;
    *plan.by_all = 0;
    gang_run(&gang, work, &plan);
    gang_done(&gang);
}

/* Everything dies at any moment, also in the middle of copies that are slow, and a machine is lost with it:
 * what was known to be copied by all is there, or something newer. */
static void test_killed_anywhere(void **unused)
{
    struct gang gang;
    struct plan plan = {.peer = true, .forever = true, .until = UINT64_MAX, .by_all = shared_word()};
    gang_init(&gang, WORLD);
    for (uint32_t trial = 0; trial < 10; trial++) {
        uint64_t before = *plan.by_all;
        plan.rate = trial % 2 ? "20000000" : NULL;
        gang_fork_all(&gang, work, &plan);
        gang_until(&gang, __atomic_load_n(plan.by_all, __ATOMIC_SEQ_CST) > before + 2 * (trial % 4) ||
                              gang_ended(&gang));
        for (uint32_t rank = 0; rank < WORLD; rank++)
            assert_true(gang.pids[rank] != 0 || gang_exit(&gang, rank) != 99);
        for (uint32_t rank = 0; rank < WORLD; rank++)
            if (gang.pids[(rank + trial) % WORLD] > 0)
                kill(gang.pids[(rank + trial) % WORLD], SIGKILL);
        gang_until(&gang, gang_ended(&gang));
        gang_next_attempt(&gang);
        lose_machine(&gang, trial % MACHINES);
        plan.from = UINT64_MAX;
    }
    gang_done(&gang);
}

/* One machine alone: there is nobody to copy to, and a hold is all that there is. */
static int take_alone(void *argument)
{
    static float weights[COUNT];
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    EXPECT(begin(ctx, argument, weights) == 0);
    EXPECT(phx_checkpoint_take(ctx, 1, PHX_IN_PEER, &error) == 0);
    EXPECT(phx_checkpoint_held(ctx, 1, FOREVER, &error) == 0);
    EXPECT(phx_checkpoint_copied(ctx, 1, FOREVER, &error) == PHX_ERROR_INVALID);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void test_one_machine(void **unused)
{
    struct gang gang;
    struct plan plan = {.by_all = shared_word()};
    gang_init(&gang, WORLD);
    gang_run(&gang, take_alone, &plan);
    gang_done(&gang);
}

/* Every second hold goes on to a peer where the environment says so; phx_leave lets go of all of it. */
static int hold_every_second(void *argument)
{
    const struct plan *plan = argument;
    struct phx_error error = {0};
    char state[1000] = "state";
    own_machine(plan);
    setenv("PHX_PEER_EVERY", "2", 1);
    phx_context *ctx = gang_join();
    for (uint64_t step = 1; step <= 5; step++)
        EXPECT(phx_checkpoint_hold(ctx, step, state, sizeof state, &error) == 0);
    EXPECT(phx_checkpoint_copied(ctx, 4, FOREVER, &error) == 0);
    EXPECT(phx_checkpoint_copied(ctx, 5, 0, &error) == PHX_ERROR_TIMEOUT);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void test_every_second(void **unused)
{
    struct gang gang;
    struct plan plan = {.by_all = shared_word()};
    char path[200];
    gang_init(&gang, WORLD);
    gang_run(&gang, hold_every_second, &plan);
    for (int machine = 0; machine < MACHINES; machine++) {
        snprintf(path, sizeof path, "%s/checkpoints/machine-%d/memory", gang.dir, machine);
        assert_int_equal(rmdir(path) != 0 && errno == ENOENT, 1);
    }
    gang_done(&gang);
}

/* ---- buddies ---- */

/* Another machine, another rack where that can be for all, and no machine keeps those of two. */
static void test_buddies(void **unused)
{
    uint32_t seed = 5;
    for (int trial = 0; trial < 2000; trial++) {
        struct machine ranks[40];
        uint32_t machines = 1 + gang_draw(&seed, 8), each = 1 + gang_draw(&seed, 4), racks[8] = {0};
        uint32_t rack_count = 1 + gang_draw(&seed, 4), world = machines * each, largest = 0;
        uint32_t rack_of[8], keeps[8] = {0};
        for (uint32_t i = 0; i < machines; i++)
            largest =
                ++racks[rack_of[i] = gang_draw(&seed, rack_count)] > largest ? racks[rack_of[i]] : largest;
        for (uint32_t rank = 0; rank < world; rank++)
            ranks[rank] = (struct machine){1 + rank / each, 1 + rack_of[rank / each]};
        bool by_rack = gang_draw(&seed, 2);
        for (uint32_t rank = 0; rank < world; rank++) {
            uint32_t buddy = machine_buddy(ranks, world, rank, by_rack);
            assert_int_equal(buddy == MACHINE_NONE, machines == 1);
            if (buddy == MACHINE_NONE)
                continue;
            assert_true(buddy < world && buddy / each != rank / each && buddy % each == rank % each);
            keeps[buddy / each]++;
            if (by_rack && 2 * largest <= machines)
                assert_int_not_equal(rack_of[buddy / each], rack_of[rank / each]);
        }
        for (uint32_t i = 0; i < machines && machines > 1; i++)
            assert_int_equal(keeps[i], each);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_lost_machine),
        cmocka_unit_test(test_damaged_copies),
        cmocka_unit_test(test_killed_anywhere),
        cmocka_unit_test(test_one_machine),
        cmocka_unit_test(test_every_second),
        cmocka_unit_test(test_buddies),
        cmocka_unit_test(test_lost_machine_of_deltas),
        cmocka_unit_test(test_lost_machine_of_packed),
        cmocka_unit_test(test_lost_machine_of_seldom_copies),
        cmocka_unit_test(test_lost_machine_after_lost_processes),
        cmocka_unit_test(test_no_zstd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
