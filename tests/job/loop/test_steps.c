/* phx_run_steps: the loop goes on whoever is lost, and its result is that of a run that nobody disturbed. */
#include "job/gang.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/mman.h>

#define WORLD 3
#define STEPS 60

static struct shared {
    uint64_t made[GANG_MAX]; /* by rank: steps; calls of begin, end, reset and abort; */
    uint32_t begun[GANG_MAX], ended[GANG_MAX], was_reset[GANG_MAX], aborted[GANG_MAX];
    uint64_t from[GANG_MAX];   /* where the last attempt began; */
    uint32_t loaded[GANG_MAX]; /* how often the state was not what the step before left */
    uint64_t spoil[GANG_MAX];  /* after so many steps what the rank has is no good, once; 0: never */
    uint64_t gate;             /* no step is made from here on, until it is raised */
    uint64_t result[GANG_MAX];
} * shared;

struct state {
    uint64_t sum, rank;
};

/* A job whose ranks wait for each other in every step, by a barrier or in a way that hears of no loss. */
struct job {
    struct state state;
    uint64_t last; /* sum that the last step left */
    bool deaf;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool is_over; /* said by abort */
};

static uint64_t sum_to(uint64_t step)
{
    return step * (step + 1) / 2;
}

static void set_over(struct job *job, bool over)
{
    pthread_mutex_lock(&job->mutex);
    job->is_over = over;
    pthread_cond_broadcast(&job->cond);
    pthread_mutex_unlock(&job->mutex);
}

static int reset(void *argument, phx_context *ctx, struct phx_error *error)
{
    struct job *job = argument;
    job->state = (struct state){0, phx_rank(ctx)};
    shared->was_reset[phx_rank(ctx)]++;
    return 0;
}

static int begin(void *argument, phx_context *ctx, uint64_t step, struct phx_error *ret_error)
{
    struct job *job = argument;
    struct phx_error error = {0};
    uint32_t rank = phx_rank(ctx);
    EXPECT(job->state.sum == sum_to(step) && job->state.rank == rank);
    shared->begun[rank]++;
    shared->from[rank] = step;
    shared->loaded[rank] += shared->begun[rank] > 1 && job->last != job->state.sum;
    EXPECT(shared->begun[rank] == shared->ended[rank] + 1);
    return phx_barrier(ctx, -1, ret_error); /* "connects" */
}

static void end(void *argument, phx_context *ctx)
{
    struct job *job = argument;
    shared->ended[phx_rank(ctx)]++;
    set_over(job, false);
}

static void abort_step(void *argument)
{
    set_over(argument, true);
}

/* As a collective whose peers never answer: only abort ends it. */
static int hang(struct job *job, phx_context *ctx, struct phx_error *error)
{
    pthread_mutex_lock(&job->mutex);
    while (!job->is_over)
        pthread_cond_wait(&job->cond, &job->mutex);
    pthread_mutex_unlock(&job->mutex);
    __atomic_add_fetch(&shared->aborted[phx_rank(ctx)], 1, __ATOMIC_SEQ_CST);
    *error = (struct phx_error){PHX_ERROR_IO, -1, "the collective was aborted"}; /* its own words */
    return error->code;
}

static int spoil(struct job *job, phx_context *ctx, struct phx_error *error)
{
    shared->spoil[phx_rank(ctx)] = 0;
    job->state.sum = 12345678;
    *error = (struct phx_error){PHX_ERROR_RETRY, -1, "a page\tis gone"};
    return error->code;
}

static int step(void *argument, phx_context *ctx, uint64_t step, struct phx_error *error)
{
    struct job *job = argument;
    if (shared->spoil[phx_rank(ctx)] > 0 && step >= shared->spoil[phx_rank(ctx)])
        return spoil(job, ctx, error);
    if (step >= __atomic_load_n(&shared->gate, __ATOMIC_SEQ_CST) && job->deaf)
        return hang(job, ctx, error);
    int status = phx_barrier(ctx, -1, error);
    if (status != 0)
        return status;
    job->last = job->state.sum += step + 1;
    __atomic_store_n(&shared->made[phx_rank(ctx)], step + 1, __ATOMIC_SEQ_CST);
    return 0;
}

struct plan {
    uint64_t hold_every, save_every, steps;
    bool deaf, no_reset, no_rejoin;
    bool replicated; /* every rank has the whole state */
};

static int run(void *argument)
{
    const struct plan *plan = argument;
    struct phx_error error = {0};
    struct phx_options options = {.size = sizeof options,
                                  .join_timeout_ms = GANG_PATIENCE_MS,
                                  .leave_timeout_ms = GANG_PATIENCE_MS,
                                  .rejoins = !plan->no_rejoin};
    struct job job = {
        .deaf = plan->deaf, .mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    struct phx_metric metric = {"sum", 0};
    struct phx_region region = {
        .name = "state", .data = &job.state, .dtype = PHX_U64, .dims = 1, .shape = {2}, .shard_count = WORLD};
    struct phx_loop loop = {.size = sizeof loop,
                            .steps = plan->steps,
                            .hold_every = plan->hold_every,
                            .save_every = plan->save_every,
                            .job = &job,
                            .reset = plan->no_reset ? NULL : reset,
                            .begin = begin,
                            .step = step,
                            .end = end,
                            .abort = abort_step,
                            .metrics = &metric,
                            .metric_count = 1,
                            .whole_steps = 1};
    phx_context *ctx = NULL;
    EXPECT(phx_join(&options, &ctx, &error) == 0);
    job.state.rank = phx_rank(ctx);
    if (plan->replicated)
        region.shape[0] = 1, region.shard_count = 1; /* the sum alone */
    else
        region.shard_index = phx_rank(ctx); /* no replica of any other rank's */
    EXPECT(phx_checkpoint_register(ctx, &region, 1, &error) == 0);
    int status = phx_run_steps(ctx, &loop, &error);
    if (status != 0) {
        phx_close(ctx);
        return -status;
    }
    shared->result[phx_rank(ctx)] = job.state.sum;
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void set_up(struct gang *gang)
{
    gang_init(gang, WORLD);
    memset(shared, 0, sizeof *shared);
    shared->gate = UINT64_MAX;
}

static bool all_made(uint64_t steps)
{
    for (uint32_t rank = 0; rank < WORLD; rank++)
        if (__atomic_load_n(&shared->made[rank], __ATOMIC_SEQ_CST) < steps)
            return false;
    return true;
}

static bool all_begun(uint32_t attempts)
{
    for (uint32_t rank = 0; rank < WORLD; rank++)
        if (__atomic_load_n(&shared->begun[rank], __ATOMIC_SEQ_CST) < attempts)
            return false;
    return true;
}

static void lose(struct gang *gang, uint32_t rank)
{
    assert_true(gang->pids[rank] > 0);
    kill(gang->pids[rank], SIGKILL);
    gang_until(gang, gang->pids[rank] == 0);
}

static void expect_result(struct gang *gang, uint64_t steps)
{
    gang_expect_exits(gang, 0);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        assert_true(shared->result[rank] == sum_to(steps) && gang->steps[rank].step == steps);
}

static void test_undisturbed(void **unused)
{
    struct gang gang;
    struct plan plan = {.hold_every = 3, .save_every = 20, .steps = STEPS};
    set_up(&gang);
    gang_run(&gang, run, &plan);
    expect_result(&gang, STEPS);
    assert_true(gang.has_commit && gang.commit_step == STEPS);
    assert_string_equal(gang.steps[1].metrics[0].name, "sum");
    for (uint32_t rank = 0; rank < WORLD; rank++)
        assert_true(shared->begun[rank] == 1 && shared->was_reset[rank] == 1 && shared->ended[rank] == 0);
    gang_done(&gang);
}

/* Any rank at random steps, one after the other, with several intervals of holding; saved ones only, too. */
static void test_killed(void **unused)
{
    for (uint32_t trial = 0; trial < 8; trial++) {
        struct gang gang;
        struct plan plan = {.hold_every = trial % 3, .save_every = trial < 3 ? 7 : 0, .steps = 4000};
        if (trial >= 6) {
            setenv("PHX_MTTF_S", "1", 1);
            plan.hold_every = plan.save_every = PHX_AUTO;
        }
        uint32_t draws = 77 + trial;
        set_up(&gang);
        gang_fork_all(&gang, run, &plan);
        for (uint32_t i = 0; i < WORLD; i++) {
            uint32_t victim = (trial + i) % WORLD;
            gang_until(&gang, all_begun(i + 1));
            uint64_t until = shared->from[victim] + 1 + gang_draw(&draws, 40);
            gang_until(&gang, all_made(until));
            lose(&gang, victim);
            shared->ended[victim]++; /* counted by rank: the new process is one more attempt of it */
            gang_rejoin(&gang);
            gang_fork(&gang, victim, run, &plan);
        }
        expect_result(&gang, 4000);
        gang_done(&gang);
        unsetenv("PHX_MTTF_S");
    }
}

/* A step that a survivor has made is not made again, though it was never held: any survivor is a replica of
 * those that are lost. */
static void test_rescued(void **unused)
{
    struct gang gang;
    struct plan plan = {.hold_every = PHX_AUTO - 1, .steps = 4000, .replicated = true};
    uint32_t draws = 5;
    set_up(&gang);
    gang_fork_all(&gang, run, &plan);
    for (uint32_t i = 0; i < 2 * WORLD; i++) {
        uint32_t survivor = i % WORLD;
        gang_until(&gang, all_begun(i + 1));
        uint64_t until = shared->from[survivor] + 1 + gang_draw(&draws, 40);
        gang_until(&gang, all_made(until));
        for (uint32_t rank = 0; rank < WORLD; rank++)
            if (rank != survivor) {
                lose(&gang, rank);
                shared->ended[rank] = shared->begun[rank]; /* it may have heard of the other's end */
            }
        gang_until(&gang, gang.gone[survivor][(survivor + 1) % WORLD] > 0 ||
                              gang.gone[survivor][(survivor + 2) % WORLD] > 0);
        gang_rejoin(&gang);
        for (uint32_t rank = 0; rank < WORLD; rank++)
            if (rank != survivor)
                gang_fork(&gang, rank, run, &plan);
        gang_until(&gang, all_begun(i + 2));
        assert_true(shared->from[survivor] >= until);
        assert_true(shared->from[0] == shared->from[1] && shared->from[1] == shared->from[2]);
    }
    expect_result(&gang, plan.steps);
    assert_true(shared->was_reset[0] == 1 && shared->was_reset[1] == 1 && shared->was_reset[2] == 1);
    gang_done(&gang);
}

/* A process that hears of no loss is ended by `abort`, and its last words are not taken for a failure of the
 * job. */
static void test_aborted(void **unused)
{
    struct gang gang;
    struct plan plan = {.hold_every = 1, .steps = STEPS, .deaf = true};
    set_up(&gang);
    shared->gate = 10;
    gang_fork_all(&gang, run, &plan);
    gang_until(&gang, all_made(10));
    lose(&gang, 1);
    shared->ended[1]++;
    gang_until(&gang, shared->aborted[0] == 1 && shared->aborted[2] == 1);
    __atomic_store_n(&shared->gate, UINT64_MAX, __ATOMIC_SEQ_CST);
    gang_rejoin(&gang);
    gang_fork(&gang, 1, run, &plan);
    expect_result(&gang, STEPS);
    for (uint32_t rank = 0; rank < WORLD; rank += 2)
        assert_true(shared->from[rank] >= 9 && shared->begun[rank] == 2 && shared->was_reset[rank] == 1);
    gang_done(&gang);
}

/* A rank that finds its own state no good asks for another attempt, in which nobody is lost: from its
 * replicas it gets the step that they had, without them all go back to what they held. Told again to an agent
 * that was started again. */
static void test_retried(void **unused)
{
    for (int replicated = 0; replicated < 2; replicated++) {
        struct gang gang;
        struct plan plan = {.hold_every = 8, .steps = 2000, .replicated = replicated != 0};
        set_up(&gang);
        shared->spoil[2] = 21;
        gang_fork_all(&gang, run, &plan);
        gang_until(&gang, gang.retries[2] == 1);
        assert_string_equal(gang.retry_reason, "a page?is gone");
        gang_stop_agent(&gang);
        gang_listen(&gang);
        gang_until(&gang, gang.retries[2] == 2);
        gang_until(&gang, gang.joins[0] == 2 && gang.joins[1] == 2 && gang.joins[2] == 2);
        shared->spoil[0] = 40;
        gang_rejoin(&gang);
        gang_until(&gang, all_begun(2));
        assert_true(shared->from[0] == (replicated ? 21 : 16));
        for (uint32_t rank = 0; rank < WORLD; rank++) /* their own step stands, but the asker's */
            assert_true(shared->loaded[rank] == !replicated);
        gang_until(&gang, gang.retries[0] == 1); /* the meeting point itself */
        gang_rejoin(&gang);
        gang_until(&gang, all_begun(3));
        assert_true(shared->from[1] == 40); /* also a multiple of the interval */
        expect_result(&gang, plan.steps);
        assert_true(gang.retries[0] == 1 && gang.retries[1] == 0 && gang.retries[2] == 2);
        gang_done(&gang);
    }
}

/* A program that did not say that it can go on is told of the loss instead; one that cannot begin anew ends
 * when there is nothing to go back to. */
static void test_ends(void **unused)
{
    struct gang gang;
    struct plan plan = {.steps = UINT64_MAX, .no_rejoin = true};
    set_up(&gang);
    gang_fork_all(&gang, run, &plan);
    gang_until(&gang, all_made(3));
    lose(&gang, 0);
    gang_until(&gang, gang_ended(&gang));
    assert_true(gang_exit(&gang, 1) == -PHX_ERROR_PEER && gang_exit(&gang, 2) == -PHX_ERROR_PEER);
    gang_done(&gang);

    plan = (struct plan){.steps = UINT64_MAX, .no_rejoin = true};
    set_up(&gang);
    shared->spoil[1] = 3;
    gang_fork_all(&gang, run, &plan);
    gang_until(&gang, gang.pids[1] == 0);
    assert_true(gang_exit(&gang, 1) == -PHX_ERROR_RETRY && gang.retries[1] == 0);
    gang_done(&gang);

    plan = (struct plan){.steps = UINT64_MAX, .no_reset = true};
    set_up(&gang);
    gang_fork_all(&gang, run, &plan);
    gang_until(&gang, all_made(3));
    lose(&gang, 2);
    gang_rejoin(&gang);
    shared->ended[2]++;
    gang_fork(&gang, 2, run, &plan);
    gang_until(&gang, gang.pids[0] == 0 && gang.pids[1] == 0);
    assert_true(gang_exit(&gang, 0) == -PHX_ERROR_NONE && gang_exit(&gang, 1) == -PHX_ERROR_NONE);
    lose(&gang, 2);
    gang_done(&gang);
}

/* The shards of one step; those that rank 0 alone, or another one, had saved would be fewer. */
static uint32_t shards_in(const struct gang *gang, const char *step)
{
    char path[4096];
    uint32_t count = 0;
    snprintf(path, sizeof path, "%s/checkpoints/%s", gang->dir, step);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        count += strstr(entry->d_name, ".shard") != NULL;
    closedir(dir);
    return count;
}

static double metric(const struct jobwire_step *step, const char *name)
{
    for (size_t i = 0; i < step->metric_count; i++)
        if (strcmp(step->metrics[i].name, name) == 0)
            return step->metrics[i].value;
    return -1;
}

/* Intervals that nobody has set: chosen, the same on all ranks, and said by rank 0. */
static void test_chosen(void **unused)
{
    struct gang gang;
    struct plan plan = {.hold_every = PHX_AUTO, .save_every = PHX_AUTO, .steps = 3000};
    char path[4096];
    uint32_t steps = 0;
    setenv("PHX_MTTF_S", "1", 1);
    setenv("PHX_CHECKPOINT_KEEP", "every=1", 1);
    set_up(&gang);
    gang_run(&gang, run, &plan);
    expect_result(&gang, plan.steps);
    assert_true(gang.has_commit && gang.commit_step == plan.steps);
    snprintf(path, sizeof path, "%s/checkpoints", gang.dir);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strncmp(entry->d_name, "step-", 5) != 0)
            continue;
        assert_int_equal(shards_in(&gang, entry->d_name), WORLD);
        steps++;
    }
    closedir(dir);
    assert_true(steps >= 3); /* the measured one, the last one, and what was chosen */
    assert_true(metric(&gang.steps[0], "checkpoint_save_steps") >= 1);
    assert_true(metric(&gang.steps[0], "checkpoint_hold_steps") >= 1);
    assert_true(metric(&gang.steps[0], "checkpoint_mttf_s") == 1);
    assert_true(metric(&gang.steps[0], "checkpoint_ettr") > 0);
    assert_true(metric(&gang.steps[0], "sum") == 0 && metric(&gang.steps[1], "checkpoint_ettr") == -1);
    gang_done(&gang);
    unsetenv("PHX_CHECKPOINT_KEEP");
    unsetenv("PHX_MTTF_S");
}

/* The environment's number is the one of a loop that leaves it open, and of no other. */
static void test_set_from_outside(void **unused)
{
    setenv("PHX_CHECKPOINT_INTERVAL", "25", 1);
    for (int open = 0; open < 2; open++) {
        struct gang gang;
        struct plan plan = {.save_every = open ? PHX_AUTO : 40, .steps = 45};
        set_up(&gang);
        shared->gate = 41;
        plan.deaf = true; /* nobody passes the gate */
        gang_fork_all(&gang, run, &plan);
        gang_until(&gang, all_made(41));
        gang_until(&gang, gang.has_commit && gang.commit_step == (open ? 25 : 40));
        gang_done(&gang);
    }
    unsetenv("PHX_CHECKPOINT_INTERVAL");
}

/* One save answers a notice to all ranks, also where checkpoints go to an object store; another notice, to
 * one of them, is answered by one more, at which who is to be stopped stands. */
static void test_notice(void **unused)
{
    for (int store = 0; store < 2; store++) {
        struct gang gang;
        struct plan plan = {.steps = UINT64_MAX};
        struct jobwire_message notice = {.type = JOBWIRE_DRAIN};
        notice.drain.deadline_ms = GANG_PATIENCE_MS;
        notice.drain.reason = PHX_DRAIN_MAINTENANCE;
        set_up(&gang);
        gang.store = store != 0;
        gang_fork_all(&gang, run, &plan);
        gang_until(&gang, all_made(3));
        assert_false(gang.has_commit);
        gang_send_all(&gang, &notice);
        gang_until(&gang, gang.has_commit);
        uint64_t step = gang.commit_step;
        gang_until(&gang, all_made(step + 100));
        gang_send_all(&gang, &notice); /* said again: nothing new */
        gang_until(&gang, all_made(step + 200));
        assert_int_equal(gang.commit_step, step);
        size_t other = 0;
        while (gang.clients[other].fd < 0 || gang.clients[other].rank != 1)
            other++;
        notice.drain.reason = PHX_DRAIN_PREEMPTION;
        gang_send(&gang, other, &notice);
        gang_until(&gang, gang.commit_step > step);
        gang_done(&gang);
    }
}

int main(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_undisturbed), cmocka_unit_test(test_killed),
        cmocka_unit_test(test_rescued),     cmocka_unit_test(test_retried),
        cmocka_unit_test(test_aborted),     cmocka_unit_test(test_ends),
        cmocka_unit_test(test_chosen),      cmocka_unit_test(test_set_from_outside),
        cmocka_unit_test(test_notice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
