/* Checkpoints in memory: a slot counts or it does not, whatever happens to who writes it; what every rank
 * holds is what a gang goes on from. */
#include "job/gang.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "job/checkpoint/held.h"
#include "job/gang/offer.h"

#define WORLD   3
#define FOREVER (-1)
#define BYTES   (300 * 1000)

/* Different at every step, and in every byte's place. */
static void fill(uint8_t *state, size_t len, uint32_t rank, uint64_t step)
{
    uint32_t word = (uint32_t)(step * 2654435761u) ^ rank;
    for (size_t i = 0; i < len; i++)
        state[i] = (uint8_t)((word >> (i % 4 * 8)) + i);
}

static bool is_filled(const uint8_t *state, size_t len, uint32_t rank, uint64_t step)
{
    static uint8_t expected[2 * BYTES];
    fill(expected, len, rank, step);
    return memcmp(state, expected, len) == 0;
}

/* ---- one rank's slots ---- */

/* In two parts. */
static int copy(struct held *held, int slot, const void *data, size_t len, struct phx_error *error)
{
    uint8_t *bytes = (uint8_t *)(uintptr_t)data;
    struct iovec parts[2] = {{bytes, len / 3}, {bytes + len / 3, len - len / 3}};
    return held_copy(held, slot, parts, 2, error);
}

static void hold(struct held *held, int slot, uint64_t step, size_t len)
{
    static uint8_t state[2 * BYTES];
    struct phx_error error;
    fill(state, len, held->rank, step);
    assert_int_equal(copy(held, slot, state, len, &error), 0);
    assert_int_equal(held_find(held, step, held->attempt), -1); /* not before it is sealed */
    assert_int_equal(held_seal(held, slot, step, len, 0, &error), 0);
}

static void test_two_slots(void **unused)
{
    struct gang gang;
    struct held held;
    struct phx_error error;
    static uint8_t back[2 * BYTES];
    size_t len;
    char dir[96];
    gang_init(&gang, 1);
    snprintf(dir, sizeof dir, "%s/memory", gang.dir);
    assert_int_equal(held_open(&held, dir, false, 2, 4, 0, &error), PHX_ERROR_NONE);
    assert_int_equal(held_open(&held, dir, true, 2, 4, 0, &error), 0);
    uint64_t step = UINT64_MAX;
    uint32_t attempt = UINT32_MAX;
    assert_false(held_find_older(&held, &step, &attempt));
    hold(&held, 0, 10, 1000);
    hold(&held, 1, 20, BYTES);
    hold(&held, 0, 30, 0);
    hold(&held, 0, 40, 2 * BYTES);
    held_close(&held);
    assert_int_equal(held_open(&held, dir, false, 2, 4, 1, &error), 0);
    assert_true(held_find_older(&held, &step, &attempt) && step == 40 && attempt == 0);
    assert_int_equal(held_read(&held, 0, back, BYTES, &len, &error), PHX_ERROR_SPACE);
    assert_int_equal(len, 2 * BYTES);
    assert_int_equal(held_read(&held, 0, back, sizeof back, &len, &error), 0);
    assert_true(is_filled(back, len, 2, 40));
    assert_true(held_find_older(&held, &step, &attempt) && step == 20);
    assert_false(held_find_older(&held, &step, &attempt));
    assert_true(held_find(&held, 40, 0) == 0 && held_find(&held, 20, 0) == 1 && held_find(&held, 20, 1) < 0);
    assert_true(held_verify(&held, 0) && held_verify(&held, 1));
    held.slots[1].map[64 + BYTES / 2] ^= 1;
    assert_true(held_verify(&held, 1)); /* once in an attempt */
    assert_int_equal(held_renew(&held, 2, &error), 0);
    assert_true(held_known(&held, 0) && held_known(&held, 1) && held_verify(&held, 0));
    assert_false(held_verify(&held, 1));
    assert_int_equal(held_find(&held, 20, 0), -1);
    held_discard(&held);
    assert_int_equal(held_open(&held, dir, false, 2, 4, 1, &error),
                     PHX_ERROR_NONE); /* nobody else was there */
    assert_int_equal(held_open(&held, dir, true, 2, 4, 1, &error), 0);
    step = UINT64_MAX;
    assert_false(held_find_older(&held, &step, &attempt));
    held_close(&held);
    gang_done(&gang);
}

/* Where what comes from elsewhere may go at once. */
static void test_ready(void **unused)
{
    struct gang gang;
    struct held held;
    struct phx_error error;
    gang_init(&gang, 1);
    assert_int_equal(held_open(&held, gang.dir, false, 0, 1, 0, &error), 0);
    assert_int_equal(held_ready(&held, 1000, 0, UINT32_MAX), -1); /* no slot has memory */
    hold(&held, 2, 10, 1000);
    hold(&held, 1, 20, 1000);
    hold(&held, 3, 5, 500);
    assert_int_equal(held_ready(&held, 500, 0, UINT32_MAX), 3); /* the oldest */
    assert_int_equal(held_ready(&held, 1000, 0, UINT32_MAX), 2);
    assert_int_equal(held_ready(&held, 1000, 10, 1), 2);
    assert_int_equal(held_ready(&held, 1000, 10, 0), 1); /* what all can go back to stays */
    assert_int_equal(held_ready(&held, 1001, 0, UINT32_MAX), -1);
    assert_int_equal(copy(&held, 1, "newer", 5, &error), 0);
    assert_int_equal(held_ready(&held, 500, 0, UINT32_MAX), 1); /* that holds nothing */
    held_close(&held);
    assert_int_equal(held_open(&held, gang.dir, false, 0, 2, 1, &error), 0);
    assert_true(held_left(&held, 2, 10, 0));
    assert_int_equal(held_ready(&held, 500, 0, UINT32_MAX), 1); /* the others are of another world */
    held_discard(&held);
    gang_done(&gang);
}

/* The next process knows the states of which peers have a copy, and no new state takes their slots. */
static void test_copied(void **unused)
{
    struct gang gang;
    struct held old, held;
    struct phx_error error;
    uint64_t step;
    uint32_t attempt;
    gang_init(&gang, 1);
    assert_int_equal(held_open(&old, gang.dir, false, 0, 1, 0, &error), 0);
    assert_false(held_last_copied(&old, &step, &attempt));
    for (int slot = 0; slot < HELD_SLOTS; slot++)
        hold(&old, slot, 10 + (uint64_t)slot, 100);
    held_copied(&old, 10, 0);
    assert_int_equal(held_open(&held, gang.dir, false, 0, 1, 1, &error), 0);
    assert_true(held_last_copied(&held, &step, &attempt) && step == 10 && attempt == 0);
    assert_int_equal(held_ready(&held, 100, 13, 0), 1);
    assert_int_equal(held_spare(&held, 13, 0), 1);
    held_copied(&old, 11, 0); /* it is of the past: nobody listens to it */
    held_forget_copied(&old);
    assert_true(held_last_copied(&held, &step, &attempt) && step == 10);
    held_forget_copied(&held);
    assert_false(held_last_copied(&held, &step, &attempt));
    assert_int_equal(held_ready(&held, 100, 13, 0), 0);
    held_close(&old);
    held_discard(&held);
    gang_done(&gang);
}

/* Memory that is made ahead changes nothing of what is held, and comes piece by piece. */
static void test_prepared(void **unused)
{
    enum { LARGE = 50 << 20 };
    struct gang gang;
    struct held held;
    struct phx_error error;
    int pieces = 1;
    gang_init(&gang, 1);
    assert_int_equal(held_open(&held, gang.dir, false, 0, 1, 0, &error), 0);
    hold(&held, 0, 10, BYTES);
    while (held_prepare(&held, 0, LARGE))
        pieces++;
    assert_true(pieces > 2);
    assert_int_equal(held_ready(&held, LARGE, 0, UINT32_MAX), 0);
    assert_true(held_find(&held, 10, 0) == 0 && held_verify(&held, 0));
    assert_false(held_prepare(&held, 0, LARGE));
    held_close(&held);
    assert_int_equal(held_open(&held, gang.dir, false, 0, 1, 1, &error), 0);
    assert_true(held_find(&held, 10, 0) == 0 && held_verify(&held, 0));
    assert_int_equal(held_ready(&held, LARGE, 0, UINT32_MAX), 0);
    held_discard(&held);
    gang_done(&gang);
}

/* An attempt that comes back when a newer one has begun. */
static void test_fence(void **unused)
{
    struct gang gang;
    struct held old, new;
    struct phx_error error;
    gang_init(&gang, 1);
    assert_int_equal(held_open(&old, gang.dir, false, 0, 1, 3, &error), 0);
    hold(&old, 0, 10, 100);
    assert_int_equal(copy(&old, 1, "old", 3, &error), 0);
    assert_int_equal(held_open(&new, gang.dir, false, 0, 1, 4, &error), 0);
    assert_int_equal(held_seal(&old, 1, 20, 3, 0, &error), PHX_ERROR_FENCED);
    assert_int_equal(copy(&old, 0, "old", 3, &error), PHX_ERROR_FENCED);
    held_discard(&old);
    assert_int_equal(held_open(&old, gang.dir, false, 0, 1, 3, &error), PHX_ERROR_FENCED);
    assert_true(held_find(&new, 10, 3) == 0 && held_verify(&new, 0));
    held_close(&new);
    assert_int_equal(held_open(&new, gang.dir, false, 0, 1, 4, &error), 0);
    assert_int_equal(held_find(&new, 10, 3), 0);
    held_close(&new);
    gang_done(&gang);
}

/* The same process under newer attempts: what others wrote meanwhile is not known, and a folder that was
 * cleared is one. */
static void test_renewed(void **unused)
{
    struct gang gang;
    struct held held, other;
    struct phx_error error;
    gang_init(&gang, 1);
    assert_int_equal(held_open(&held, gang.dir, false, 0, 1, 0, &error), 0);
    hold(&held, 0, 10, 100);
    hold(&held, 1, 20, 100);
    const uint8_t *map = held.slots[0].map;
    assert_int_equal(held_open(&other, gang.dir, false, 0, 1, 1, &error), 0);
    hold(&other, 1, 30, BYTES);
    held_close(&other);
    assert_int_equal(held_renew(&held, 2, &error), 0);
    assert_ptr_equal(held.slots[0].map, map);
    assert_true(held_known(&held, 0) && held_find(&held, 20, 0) < 0);
    assert_true(held_find(&held, 30, 1) == 1 && !held_known(&held, 1) && held_verify(&held, 1));
    assert_int_equal(held_open(&other, gang.dir, false, 0, 1, 3, &error), 0);
    assert_int_equal(held_renew(&held, 2, &error), PHX_ERROR_FENCED);
    held_discard(&other);
    assert_int_equal(held_open(&held, gang.dir, true, 0, 1, 4, &error), 0);
    gang_remove_tree(gang.dir);
    assert_int_equal(held_renew(&held, 5, &error), PHX_ERROR_NONE);
    gang_done(&gang);
}

/* Killed anywhere, again and again: a slot that counts is whole, and the newest that was sealed is there or
 * the one after it. */
static void test_killed_anywhere(void **unused)
{
    struct gang gang;
    struct held held;
    struct phx_error error;
    gang_init(&gang, 1);
    uint64_t *sealed = mmap(NULL, sizeof *sealed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(sealed != MAP_FAILED);
    for (uint32_t trial = 0; trial < 60; trial++) {
        uint64_t before = *sealed;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            if (held_open(&held, gang.dir, false, 0, 1, 0, &error) != 0)
                _exit(1);
            for (uint64_t step = *sealed + 1;; step++) {
                hold(&held, (int)(step % 2), step, BYTES + trial % 7);
                __atomic_store_n(sealed, step, __ATOMIC_SEQ_CST);
            }
        }
        while (__atomic_load_n(sealed, __ATOMIC_SEQ_CST) < before + 1 + trial % 5)
            sched_yield();
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        uint64_t step = UINT64_MAX;
        uint32_t attempt = 0;
        assert_int_equal(held_open(&held, gang.dir, false, 0, 1, 0, &error), 0);
        assert_true(held_find_older(&held, &step, &attempt) && step >= *sealed && step <= *sealed + 1);
        do {
            int slot = held_find(&held, step, 0);
            assert_true(held_verify(&held, slot));
            assert_true(is_filled(held.slots[slot].map + 64, held.slots[slot].len, 0, step));
        } while (held_find_older(&held, &step, &attempt));
        *sealed = *sealed + 1; /* it may be there: go on behind it */
        held_close(&held);
    }
    munmap(sealed, sizeof *sealed);
    gang_done(&gang);
}

/* Where there is no room the call fails, and what was held before stays. */
static void test_no_room(void **unused)
{
    struct gang gang;
    struct held held;
    struct phx_error error;
    struct rlimit before, tight = {.rlim_cur = BYTES};
    static uint8_t state[2 * BYTES];
    gang_init(&gang, 1);
    assert_int_equal(held_open(&held, gang.dir, false, 0, 1, 0, &error), 0);
    hold(&held, 0, 10, 1000);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    int status = copy(&held, 1, state, sizeof state, &error);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, PHX_ERROR_SPACE);
    assert_true(held_verify(&held, 0));
    hold(&held, 1, 20, sizeof state);
    held_close(&held);
    gang_done(&gang);
}

/* ---- gangs ---- */

struct plan {
    uint64_t restored; /* step that the gang begins with; 0: from the beginning */
    uint64_t until;    /* last step to hold */
    uint64_t saved;    /* step to save, too; 0: none */
    bool leave;        /* else each rank waits for its end */
    uint64_t *by_all;  /* shared: newest that a rank knew to be held by all */
};

static uint64_t begin(phx_context *ctx, const struct plan *plan)
{
    static uint8_t state[BYTES];
    struct phx_error error = {0};
    size_t len;
    uint64_t step = 0;
    int status = phx_checkpoint_restore(ctx, state, sizeof state, &len, &step, &error);
    EXPECT(status == 0 || (status == PHX_ERROR_NONE && plan->restored == 0));
    EXPECT(plan->restored == UINT64_MAX ? step >= *plan->by_all : step == plan->restored);
    EXPECT(status != 0 || (len == BYTES && is_filled(state, len, phx_rank(ctx), step)));
    return step;
}

static int work(void *argument)
{
    const struct plan *plan = argument;
    static uint8_t state[BYTES];
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    for (uint64_t step = begin(ctx, plan) + 10; step <= plan->until; step += 10) {
        fill(state, BYTES, phx_rank(ctx), step);
        if (step == plan->saved)
            EXPECT(phx_checkpoint_save(ctx, step, state, BYTES, &error) == 0);
        int status = phx_checkpoint_hold(ctx, step, state, BYTES, &error);
        if (status == PHX_ERROR_PEER)
            return 75;
        EXPECT(status == 0);
        EXPECT(phx_checkpoint_hold(ctx, step, state, BYTES, &error) == PHX_ERROR_INVALID); /* does not rise */
        if (phx_checkpoint_held(ctx, step, 0, &error) == 0)
            __atomic_store_n(plan->by_all, step, __ATOMIC_SEQ_CST);
    }
    if (plan->until > 0 && phx_checkpoint_held(ctx, plan->until, FOREVER, &error) == PHX_ERROR_PEER)
        return 75;
    __atomic_store_n(plan->by_all, plan->until, __ATOMIC_SEQ_CST);
    if (plan->leave)
        EXPECT(phx_leave(ctx, &error) == 0);
    else
        EXPECT(phx_barrier(ctx, FOREVER, &error) == 0 || error.code == PHX_ERROR_PEER);
    while (!plan->leave)
        pause();
    return 0;
}

static uint64_t *shared_word(void)
{
    uint64_t *word = mmap(NULL, sizeof *word, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(word != MAP_FAILED);
    return word;
}

static void kill_all(struct gang *gang)
{
    for (uint32_t rank = 0; rank < gang->world; rank++)
        if (gang->pids[rank] > 0)
            kill(gang->pids[rank], SIGKILL);
    gang_until(gang, gang_ended(gang));
    gang_next_attempt(gang);
}

static void lose_memory_of(const struct gang *gang, uint32_t rank)
{
    char path[160];
    for (int slot = 0; slot < HELD_SLOTS; slot++) {
        snprintf(path, sizeof path, "%s/memory/rank-%u.%d", gang->dir, rank, slot);
        unlink(path);
    }
}

/* Processes die at any moment; the gang begins with something that all held, no older than what any rank
 * knew of, though nothing was ever saved. */
static void test_gang_of_the_killed(void **unused)
{
    struct gang gang;
    struct plan plan = {.restored = 0, .until = 1000000, .by_all = shared_word()};
    gang_init(&gang, WORLD);
    for (uint32_t trial = 0; trial < 12; trial++) {
        uint64_t before = *plan.by_all;
        gang_fork_all(&gang, work, &plan);
        gang_until(&gang, __atomic_load_n(plan.by_all, __ATOMIC_SEQ_CST) > before + 10 * (trial % 4) ||
                              gang.pids[0] == 0 || gang.pids[1] == 0 || gang.pids[2] == 0);
        for (uint32_t rank = 0; rank < WORLD; rank++)
            assert_true(gang.pids[rank] != 0 || gang_exit(&gang, rank) != 99);
        kill(gang.pids[trial % WORLD], SIGKILL);
        gang_until(&gang, gang.pids[trial % WORLD] == 0);
        kill_all(&gang);
        plan.restored = UINT64_MAX; /* what is known to be held by all, or newer */
    }
    assert_false(gang.has_commit);
    munmap(plan.by_all, sizeof *plan.by_all);
    gang_done(&gang);
}

/* A machine's memory goes with it: what was saved counts then, and its files are still there. */
static void test_lost_machine(void **unused)
{
    struct gang gang;
    struct plan plan = {.until = 60, .saved = 30, .by_all = shared_word()};
    gang_init(&gang, WORLD);
    gang_fork_all(&gang, work, &plan);
    gang_until(&gang, *plan.by_all == 60 && gang.has_commit);
    kill_all(&gang);
    plan =
        (struct plan){.restored = 60, .until = 80, .by_all = plan.by_all}; /* from memory, nothing is saved */
    gang_fork_all(&gang, work, &plan);
    gang_until(&gang, *plan.by_all == 80);
    kill_all(&gang);
    lose_memory_of(&gang, 1);
    plan = (struct plan){.restored = 30, .until = 40, .by_all = plan.by_all};
    gang_fork_all(&gang, work, &plan);
    gang_until(&gang, *plan.by_all == 40);
    kill_all(&gang);
    plan = (struct plan){.restored = 40, .until = 50, .leave = true, .by_all = plan.by_all};
    gang_run(&gang, work, &plan);
    gang_next_attempt(&gang);
    plan =
        (struct plan){.restored = 30, .until = 0, .leave = true, .by_all = plan.by_all}; /* left: let go of */
    gang_run(&gang, work, &plan);
    munmap(plan.by_all, sizeof *plan.by_all);
    gang_done(&gang);
}

/* Nothing was ever saved, and one rank's memory is gone: that is a beginning. */
static void test_lost_before_anything_was_saved(void **unused)
{
    struct gang gang;
    struct plan plan = {.until = 20, .by_all = shared_word()};
    gang_init(&gang, WORLD);
    gang_fork_all(&gang, work, &plan);
    gang_until(&gang, *plan.by_all == 20);
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        *plan.by_all = 0;
        kill_all(&gang);
        lose_memory_of(&gang, rank);
        gang_fork_all(&gang, work, &plan);
        gang_until(&gang, *plan.by_all == 20);
    }
    kill_all(&gang);
    munmap(plan.by_all, sizeof *plan.by_all);
    gang_done(&gang);
}

/* Rank 1 has no room for step 20. */
static int hold_without_room(void *unused)
{
    static uint8_t state[BYTES];
    struct phx_error error = {0};
    struct rlimit before, tight = {.rlim_cur = BYTES / 2};
    phx_context *ctx = gang_join();
    bool short_of_it = phx_rank(ctx) == 1;
    signal(SIGXFSZ, SIG_IGN);
    EXPECT(getrlimit(RLIMIT_FSIZE, &before) == 0);
    tight.rlim_max = before.rlim_max;
    for (uint64_t step = 10; step <= 50; step += 10) {
        /* Memory that was made ahead is as large as the hold before: it has no room for step 20 either. */
        size_t len = step == 10 ? BYTES / 4 : BYTES;
        fill(state, BYTES, phx_rank(ctx), step);
        EXPECT(!short_of_it || setrlimit(RLIMIT_FSIZE, step == 20 ? &tight : &before) == 0);
        int status = phx_checkpoint_hold(ctx, step, state, len, &error);
        EXPECT(status == (short_of_it && step == 20 ? PHX_ERROR_SPACE : 0));
        if (step == 20)
            EXPECT(phx_checkpoint_hold(ctx, 25, state, 1, &error) == 0); /* nobody waits for step 20 */
    }
    EXPECT(phx_checkpoint_held(ctx, 50, FOREVER, &error) == 0);
    phx_close(ctx);
    return 0;
}

static void test_one_has_no_room(void **unused)
{
    struct gang gang;
    struct plan plan = {.restored = 50, .until = 60, .leave = true, .by_all = shared_word()};
    gang_init(&gang, WORLD);
    gang_fork_all(&gang, hold_without_room, NULL);
    gang_until(&gang, gang_ended(&gang));
    for (uint32_t rank = 0; rank < WORLD; rank++)
        assert_int_equal(gang_exit(&gang, rank), 0);
    gang_next_attempt(&gang);
    gang_run(&gang, work, &plan);
    munmap(plan.by_all, sizeof *plan.by_all);
    gang_done(&gang);
}

/* ---- regions, in both places ---- */

struct model {
    float weights[1000][8];
    int64_t counter;
};

/* Each rank has a part of its own of the weights. */
static void describe(struct model *model, uint32_t rank, struct phx_region regions[2])
{
    memset(regions, 0, 2 * sizeof *regions);
    regions[0] = (struct phx_region){.name = "weights",
                                     .data = model->weights,
                                     .dtype = PHX_F32,
                                     .dims = 2,
                                     .shape = {1000, 8},
                                     .shard_index = rank,
                                     .shard_count = WORLD};
    regions[1] = (struct phx_region){.name = "counter", .data = &model->counter, .dtype = PHX_I64};
}

/* From the step that is there to the one that is given; each is taken into memory, every third to storage
 * too. */
static int take_regions(void *argument)
{
    static struct model model;
    uint64_t *range = argument, step = 0;
    struct phx_error error = {0};
    struct phx_region regions[2];
    phx_context *ctx = gang_join();
    EXPECT(phx_checkpoint_take(ctx, 1, PHX_IN_MEMORY, &error) ==
           PHX_ERROR_INVALID); /* nothing is registered */
    describe(&model, phx_rank(ctx), regions);
    EXPECT(phx_checkpoint_register(ctx, regions, 2, &error) == 0);
    int status = phx_checkpoint_load(ctx, &step, &error);
    EXPECT(status == (range[0] > 0 ? 0 : PHX_ERROR_NONE) && step == range[0]);
    EXPECT((uint64_t)model.counter == step &&
           model.weights[999][7] == (float)step + (float)phx_rank(ctx) * (step > 0));
    for (step++; step <= range[1]; step++) {
        model.counter = (int64_t)step;
        for (int i = 0; i < 8000; i++)
            model.weights[i / 8][i % 8] = (float)step + (float)phx_rank(ctx);
        unsigned where = PHX_IN_MEMORY | (step % 3 == 0 ? PHX_IN_STORAGE : 0);
        EXPECT(phx_checkpoint_take(ctx, step, where, &error) == 0);
        memset(model.weights, 0, sizeof model.weights); /* what was taken is not what is here now */
    }
    if (range[1] >= 3)
        EXPECT(phx_checkpoint_wait(ctx, range[1] / 3 * 3, FOREVER, &error) == 0);
    EXPECT(range[1] == range[0] || phx_checkpoint_held(ctx, range[1], FOREVER, &error) == 0);
    if (range[2])
        EXPECT(phx_leave(ctx, &error) == 0);
    else
        phx_close(ctx);
    return 0;
}

static void test_regions(void **unused)
{
    struct gang gang;
    gang_init(&gang, WORLD);
    uint64_t first[] = {0, 10, false}, second[] = {10, 17, false}, third[] = {15, 20, true},
             last[] = {18, 18, true};
    gang_run(&gang, take_regions, first);
    assert_true(gang.has_commit && gang.commit_step == 9); /* from memory, behind the program's back */
    gang_next_attempt(&gang);
    gang_run(&gang, take_regions, second);
    assert_int_equal(gang.commit_step, 15);
    gang_next_attempt(&gang);
    lose_memory_of(&gang, 0);
    gang_run(&gang, take_regions, third); /* all from storage */
    gang_next_attempt(&gang);
    gang_run(&gang, take_regions, last);
    gang_done(&gang);
}

/* Rank 1 cannot store step 10: a later take says so, and holds nothing. Nobody waits for what it did not
 * hold. */
static int take_without_storage(void *unused)
{
    static struct model model;
    struct phx_error error = {0};
    struct phx_region regions[2];
    bool fails = strcmp(getenv("PHX_RANK"), "1") == 0;
    int failures = 0;
    if (fails)
        setenv("PHX_CHECKPOINT_DIR", "/proc/none", 1);
    phx_context *ctx = gang_join();
    describe(&model, phx_rank(ctx), regions);
    EXPECT(phx_checkpoint_register(ctx, regions, 2, &error) == 0);
    for (uint64_t step = 10; step <= 50; step += 10) {
        int status =
            phx_checkpoint_take(ctx, step, PHX_IN_MEMORY | (step == 10 ? PHX_IN_STORAGE : 0), &error);
        EXPECT(status == 0 || fails);
        failures += status != 0;
    }
    EXPECT(failures == (fails ? 1 : 0));
    EXPECT(phx_checkpoint_held(ctx, 50, FOREVER, &error) == 0);
    phx_close(ctx);
    return 0;
}

static void test_one_cannot_store(void **unused)
{
    struct gang gang;
    gang_init(&gang, WORLD);
    gang_run(&gang, take_without_storage, NULL);
    gang_done(&gang);
}

/* Replicas: every rank has the whole. The argument: the step to begin with, the last one to take. */
static int take_replicated(void *argument)
{
    static float weights[5000];
    uint64_t *range = argument, step = 0;
    struct phx_error error = {0};
    struct phx_region region = {
        .name = "weights", .data = weights, .dtype = PHX_F32, .dims = 1, .shape = {5000}};
    phx_context *ctx = gang_join();
    EXPECT(phx_checkpoint_register(ctx, &region, 1, &error) == 0);
    int status = phx_checkpoint_load(ctx, &step, &error);
    EXPECT(status == (range[0] > 0 ? 0 : PHX_ERROR_NONE) && step == range[0]);
    EXPECT(weights[0] == (float)step && weights[4999] == (float)step);
    EXPECT(phx_barrier(ctx, FOREVER, &error) == 0);
    for (step++; step <= range[1]; step++) {
        for (int i = 0; i < 5000; i++)
            weights[i] = (float)step;
        EXPECT(phx_checkpoint_take(ctx, step, PHX_IN_MEMORY, &error) == 0);
        EXPECT(phx_checkpoint_held(ctx, step, FOREVER, &error) == 0);
    }
    EXPECT(phx_barrier(ctx, FOREVER, &error) == 0);
    phx_close(ctx);
    return 0;
}

/* A state that one rank still holds is enough for all, and is not taken for another state's. */
static void test_replicas(void **unused)
{
    struct gang gang;
    gang_init(&gang, WORLD);
    uint64_t ranges[][2] = {{0, 5}, {5, 8}, {8, 9}, {0, 2}};
    for (size_t i = 0; i < 4; i++) {
        for (uint32_t rank = 0; rank < WORLD && i > 0; rank++)
            if (rank != i % WORLD || i == 3) /* at last nobody's */
                lose_memory_of(&gang, rank);
        gang_run(&gang, take_replicated, ranges[i]);
        gang_next_attempt(&gang);
    }
    gang_done(&gang);
}

/* Rank 1's slot with this step, as it lies in the folder; -1: there is none. */
static int slot_with(const char *dir, uint64_t step)
{
    for (int slot = 0; slot < HELD_SLOTS; slot++) {
        struct offer offer;
        if (offer_look(dir, OFFER_SLOT, 1, (uint8_t)slot, &offer) && offer.step == step)
            return slot;
    }
    return -1;
}

/* A state that comes to a process is in its slot when the process has joined. */
static int look_at_slots(void *argument)
{
    const uint64_t *steps = argument;
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    const char *dir = getenv("PHX_MEMORY_DIR");
    for (int i = 0; i < 2; i++)
        EXPECT(slot_with(dir, steps[i]) >= 0);
    EXPECT(phx_barrier(ctx, FOREVER, &error) == 0);
    phx_close(ctx);
    return 0;
}

/* A process was killed while it copied. The one that replaces it finds the memory of its slots, and what
 * comes from a replica goes there at once; what all can go back to stays. */
static void test_replaced_process(void **unused)
{
    struct gang gang;
    char path[160], dir[128];
    uint64_t range[] = {0, 5}, steps[] = {5, 4};
    uint8_t nothing[64] = {0};
    gang_init(&gang, WORLD);
    gang_run(&gang, take_replicated, range);
    gang_next_attempt(&gang);
    snprintf(dir, sizeof dir, "%s/memory", gang.dir);
    int slot = slot_with(dir, 5);
    assert_true(slot >= 0 && slot_with(dir, 4) >= 0);
    snprintf(path, sizeof path, "%s/rank-1.%d", dir, slot);
    FILE *file = fopen(path, "r+");
    assert_true(file != NULL && fwrite(nothing, sizeof nothing, 1, file) == 1);
    fclose(file);
    gang_run(&gang, look_at_slots, steps);
    assert_int_equal(slot_with(dir, 5), slot);
    gang_done(&gang);
}

/* After the first hold the memory for the second one is made, but no more. */
static int wait_for_memory(void *unused)
{
    static uint8_t state[BYTES];
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    for (uint64_t step = 1; step <= 3; step++) {
        int with_memory = 0;
        EXPECT(phx_checkpoint_hold(ctx, step, state, BYTES, &error) == 0);
        while (with_memory < 2) {
            with_memory = 0;
            for (int slot = 0; slot < HELD_SLOTS; slot++) {
                struct stat info;
                char path[300];
                snprintf(path, sizeof path, "%s/rank-%u.%d", getenv("PHX_MEMORY_DIR"), phx_rank(ctx), slot);
                with_memory += stat(path, &info) == 0 && info.st_size > BYTES;
            }
            EXPECT(with_memory <= 2);
            sched_yield();
        }
    }
    EXPECT(phx_barrier(ctx, -1, &error) == 0); /* a rank that leaves ends the holds of the others */
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void test_memory_made_ahead(void **unused)
{
    struct gang gang;
    gang_init(&gang, WORLD);
    gang_run(&gang, wait_for_memory, NULL);
    gang_done(&gang);
}

static int hold_nowhere(void *unused)
{
    struct phx_error error = {0};
    unsetenv("PHX_MEMORY_DIR");
    phx_context *ctx = gang_join();
    EXPECT(phx_checkpoint_hold(ctx, 1, "a", 1, &error) == PHX_ERROR_INVALID);
    EXPECT(strstr(error.message, "PHX_MEMORY_DIR") != NULL);
    EXPECT(phx_leave(ctx, &error) == 0);
    setenv("PHX_MEMORY_DIR", "/nowhere/at/all", 1);
    ctx = gang_join();
    EXPECT(phx_checkpoint_hold(ctx, 1, "a", 1, &error) == PHX_ERROR_IO);
    EXPECT(phx_checkpoint_held(ctx, 1, 0, &error) == PHX_ERROR_TIMEOUT);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void test_nowhere(void **unused)
{
    struct gang gang;
    gang_init(&gang, 1);
    gang_run(&gang, hold_nowhere, NULL);
    gang_done(&gang);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_slots),
        cmocka_unit_test(test_ready),
        cmocka_unit_test(test_copied),
        cmocka_unit_test(test_prepared),
        cmocka_unit_test(test_fence),
        cmocka_unit_test(test_renewed),
        cmocka_unit_test(test_killed_anywhere),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_gang_of_the_killed),
        cmocka_unit_test(test_lost_machine),
        cmocka_unit_test(test_lost_before_anything_was_saved),
        cmocka_unit_test(test_one_has_no_room),
        cmocka_unit_test(test_one_cannot_store),
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_replaced_process),
        cmocka_unit_test(test_memory_made_ahead),
        cmocka_unit_test(test_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
