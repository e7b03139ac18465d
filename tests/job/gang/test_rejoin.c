/* Processes that outlive their peers: whoever is killed, the others go on under the next attempt in the
 * process that they are, from what every rank held. */
#include "job/gang.h"

#include <pthread.h>
#include <sys/mman.h>

#define WORLD   4
#define FOREVER (-1)
#define MORE    20 /* steps of the last attempt */

/* Between the test and its ranks. */
static struct shared {
    uint32_t last_attempt;       /* it ends by itself; all others have to be ended */
    uint64_t restored[GANG_MAX]; /* by task: what its process restored last, */
    uint32_t rejoined[GANG_MAX]; /* and how often it has gone on */
    uint32_t let_go[GANG_MAX];   /* threads that were blocked in the attempt before */
    uint64_t done[GANG_MAX];     /* steps */
} * shared;

static uint32_t variable(const char *name)
{
    const char *value = getenv(name);
    return value == NULL ? UINT32_MAX : (uint32_t)strtoul(value, NULL, 10);
}

static uint32_t own_task(void)
{
    return variable("PHX_TASK_UID") - 100;
}

static uint64_t load(const uint64_t *from)
{
    return __atomic_load_n(from, __ATOMIC_SEQ_CST);
}

static phx_context *join_for_long(void)
{
    struct phx_error error = {0};
    struct phx_options options = {.size = sizeof options,
                                  .join_timeout_ms = GANG_PATIENCE_MS,
                                  .leave_timeout_ms = GANG_PATIENCE_MS,
                                  .rejoins = 1};
    phx_context *ctx = NULL;
    EXPECT(phx_join(&options, &ctx, &error) == 0);
    return ctx;
}

/* The state is the sum of the steps and the rank that made it. */
static uint64_t restore(phx_context *ctx, uint64_t state[2])
{
    struct phx_error error = {0};
    uint64_t step = 0;
    size_t len;
    state[0] = 0;
    state[1] = phx_rank(ctx);
    int status = phx_checkpoint_restore(ctx, state, 2 * sizeof *state, &len, &step, &error);
    EXPECT(status == PHX_ERROR_NONE || status == 0);
    EXPECT(state[0] == step * (step + 1) / 2 && state[1] == phx_rank(ctx));
    __atomic_store_n(&shared->restored[own_task()], step, __ATOMIC_SEQ_CST);
    return step;
}

/* Until the attempt ends. */
static int make_steps(phx_context *ctx, uint64_t state[2], uint64_t step, struct phx_error *error)
{
    bool last = phx_attempt(ctx) == __atomic_load_n(&shared->last_attempt, __ATOMIC_SEQ_CST);
    uint64_t end = last ? step + MORE : UINT64_MAX;
    int status = 0;
    while (status == 0 && step < end) {
        status = phx_barrier(ctx, FOREVER, error);
        if (status == 0) {
            state[0] += ++step;
            status = phx_step(ctx, step, NULL, 0, error);
        }
        if (status == 0)
            status = phx_checkpoint_hold(ctx, step, state, 2 * sizeof *state, error);
        __atomic_store_n(&shared->done[own_task()], step, __ATOMIC_SEQ_CST);
    }
    return status == 0 ? phx_barrier(ctx, FOREVER, error) : status;
}

/* The variables that code reads which knows nothing of the library. */
static void expect_environment(const phx_context *ctx)
{
    struct phx_error error = {0};
    EXPECT(variable("RANK") == phx_rank(ctx));
    EXPECT(variable("PHX_RANK") == phx_rank(ctx));
    EXPECT(variable("WORLD_SIZE") == phx_world_size(ctx));
    EXPECT(variable("PHX_FULL_WORLD_SIZE") == phx_full_world_size(ctx));
    EXPECT(variable("PHX_ATTEMPT") == phx_attempt(ctx));
    EXPECT(variable("TORCHELASTIC_RESTART_COUNT") == phx_attempt(ctx));
    if (phx_world_size(ctx) == 1)
        return;
    const char *port = strchr(getenv("PHX_RENDEZVOUS"), ':');
    EXPECT(strcmp(getenv("MASTER_ADDR"), "127.0.0.1") == 0);
    EXPECT(port != NULL && strtoul(port + 1, NULL, 10) == variable("MASTER_PORT") + 1);
}

static int work(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = join_for_long();
    uint64_t state[2];
    for (;;) {
        int status = make_steps(ctx, state, restore(ctx, state), &error);
        if (status == 0)
            break;
        EXPECT(status == PHX_ERROR_PEER || status == PHX_ERROR_REJOIN);
        struct pollfd fd = {.fd = phx_failure_fd(ctx), .events = POLLIN};
        EXPECT(poll(&fd, 1, 0) == 1);
        EXPECT(phx_rejoin(ctx, GANG_PATIENCE_MS, &error) == 0);
        EXPECT(poll(&fd, 1, 0) == 0 && phx_check(ctx, &error) == 0);
        expect_environment(ctx);
        __atomic_add_fetch(&shared->rejoined[own_task()], 1, __ATOMIC_SEQ_CST);
    }
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void set_up(struct gang *gang, uint32_t world)
{
    gang_init(gang, world);
    memset(shared, 0, sizeof *shared);
    shared->last_attempt = UINT32_MAX;
}

static void kill_task(struct gang *gang, uint32_t task)
{
    assert_true(gang->pids[task] > 0);
    kill(gang->pids[task], SIGKILL);
    gang_until(gang, gang->pids[task] == 0);
}

/* The next attempt, with new processes in the places of those that are dead. */
static void go_on(struct gang *gang, int (*body)(void *))
{
    gang_rejoin(gang);
    for (uint32_t task = 0; task < GANG_MAX; task++)
        if (gang->ranks[task] < gang->world && gang->pids[task] == 0)
            gang_fork(gang, task, body, NULL);
}

/* Every task with a rank has made so many steps since. */
static bool have_made(const struct gang *gang, uint64_t steps)
{
    for (uint32_t task = 0; task < GANG_MAX; task++)
        if (gang->ranks[task] < gang->world &&
            load(&shared->done[task]) < load(&shared->restored[task]) + steps)
            return false;
    return true;
}

static void forget_steps(void)
{
    memset(shared->done, 0, sizeof shared->done);
}

static void end_well(struct gang *gang)
{
    gang_until(gang, gang_ended(gang));
    for (uint32_t task = 0; task < GANG_MAX; task++)
        if (gang->ranks[task] < gang->world)
            assert_int_equal(gang_exit(gang, task), 0);
    gang_done(gang);
}

/* Each rank may be the victim, rank 0 too; the pids of the others stay, and so does what was held. */
static void test_one_is_killed(void **unused)
{
    for (uint32_t victim = 0; victim < WORLD; victim++) {
        struct gang gang;
        pid_t before[WORLD];
        set_up(&gang, WORLD);
        gang_fork_all(&gang, work, NULL);
        gang_until(&gang, have_made(&gang, 3));
        memcpy(before, gang.pids, sizeof before);
        kill_task(&gang, victim);
        uint64_t least = UINT64_MAX, most = 0;
        for (uint32_t task = 0; task < WORLD; task++) {
            least = load(&shared->done[task]) < least ? load(&shared->done[task]) : least;
            most = load(&shared->done[task]) > most ? load(&shared->done[task]) : most;
        }
        shared->last_attempt = 1;
        go_on(&gang, work);
        gang_until(&gang, gang_ended(&gang));
        for (uint32_t task = 0; task < WORLD; task++) {
            assert_int_equal(gang_exit(&gang, task), 0);
            assert_int_equal(shared->rejoined[task], task != victim);
            assert_int_equal(gang.joins[task], 2);
            assert_in_range(shared->restored[task], least > 2 ? least - 2 : 0, most + 1);
            assert_int_equal(shared->restored[task], shared->restored[0]);
            assert_int_equal(gang.first_steps[task], shared->restored[0] + 1); /* nothing of the old one's */
        }
        gang_done(&gang);
    }
}

static void test_two_are_killed(void **unused)
{
    struct gang gang;
    set_up(&gang, WORLD);
    gang_fork_all(&gang, work, NULL);
    gang_until(&gang, have_made(&gang, 2));
    kill(gang.pids[0], SIGKILL);
    kill(gang.pids[2], SIGKILL);
    gang_until(&gang, gang.pids[0] == 0 && gang.pids[2] == 0);
    shared->last_attempt = 1;
    go_on(&gang, work);
    gang_until(&gang, gang_ended(&gang));
    assert_true(shared->rejoined[1] == 1 && shared->rejoined[3] == 1);
    end_well(&gang);
}

/* A second loss while the survivors meet: one more word of the agent, the same processes. Once more after
 * they have met. */
static void test_killed_on_the_way(void **unused)
{
    for (uint32_t second = 0; second < 2; second++) { /* rank 0, where the others wait; and another one */
        struct gang gang;
        set_up(&gang, WORLD);
        gang_fork_all(&gang, work, NULL);
        gang_until(&gang, have_made(&gang, 2));
        kill_task(&gang, 3);
        gang_rejoin(&gang); /* nobody takes the place of 3: they wait */
        gang_until(&gang, gang.joins[0] == 2 && gang.joins[1] == 2 && gang.joins[2] == 2);
        kill_task(&gang, second);
        forget_steps();
        go_on(&gang, work);
        gang_until(&gang, have_made(&gang, 2));
        kill_task(&gang, 1 - second);
        shared->last_attempt = 3;
        go_on(&gang, work);
        gang_until(&gang, gang_ended(&gang));
        assert_int_equal(shared->rejoined[2], 2);
        end_well(&gang);
    }
}

/* No rank is lost: the agent says where to go on, to some ranks earlier than to others. Waiting calls
 * return. */
static void test_planned(void **unused)
{
    struct gang gang;
    set_up(&gang, WORLD);
    gang_fork_all(&gang, work, NULL);
    gang_until(&gang, have_made(&gang, 3));
    shared->last_attempt = 2;
    gang_rejoin(&gang);
    gang_rejoin(&gang); /* and the plan changes at once */
    end_well(&gang);
}

/* Ranks may move and leave: 0 goes, 3 becomes 0. */
static int work_without_state(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = join_for_long();
    uint64_t step = 0;
    while (phx_attempt(ctx) == 0) {
        int status = phx_barrier(ctx, FOREVER, &error);
        __atomic_store_n(&shared->done[own_task()], ++step, __ATOMIC_SEQ_CST);
        if (status == 0)
            continue;
        EXPECT(status == PHX_ERROR_PEER || status == PHX_ERROR_REJOIN);
        EXPECT(phx_rejoin(ctx, GANG_PATIENCE_MS, &error) == 0);
        expect_environment(ctx);
    }
    struct phx_peer peer;
    EXPECT(phx_world_size(ctx) == 3 && phx_full_world_size(ctx) == 4);
    EXPECT(phx_rank(ctx) == (own_task() == 3 ? 0 : own_task()));
    EXPECT(phx_peer(ctx, 2, &peer, &error) == 0 && phx_peer(ctx, 3, &peer, &error) == PHX_ERROR_INVALID);
    for (int round = 0; round < 5; round++)
        EXPECT(phx_barrier(ctx, FOREVER, &error) == 0);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void test_shrink(void **unused)
{
    struct gang gang;
    set_up(&gang, 4);
    gang_fork_all(&gang, work_without_state, NULL);
    gang_until(&gang, have_made(&gang, 1));
    kill_task(&gang, 0);
    gang.world = 3;
    gang.ranks[0] = GANG_MAX;
    gang.ranks[3] = 0;
    gang_rejoin(&gang);
    gang_until(&gang, gang.pids[1] == 0 && gang.pids[2] == 0 && gang.pids[3] == 0);
    assert_true(gang_exit(&gang, 1) == 0 && gang_exit(&gang, 2) == 0 && gang_exit(&gang, 3) == 0);
    gang_done(&gang);
}

/* A process that waits in phx_join without a rank takes the place of one that is lost. */
static void test_spare(void **unused)
{
    struct gang gang;
    set_up(&gang, 2);
    gang_fork_all(&gang, work, NULL);
    gang_fork(&gang, 2, work, NULL);
    gang_until(&gang, have_made(&gang, 2) && gang.spares_waiting == 1);
    kill_task(&gang, 0);
    gang.ranks[0] = GANG_MAX;
    gang.ranks[2] = 0;
    shared->last_attempt = 1;
    gang_rejoin(&gang);
    gang_until(&gang, gang.pids[1] == 0 && gang.pids[2] == 0);
    assert_true(gang_exit(&gang, 1) == 0 && gang_exit(&gang, 2) == 0);
    assert_true(shared->rejoined[1] == 1 && shared->rejoined[2] == 0); /* it was in phx_join all the time */
    gang_done(&gang);
}

/* ---- other threads ---- */

struct beside {
    phx_context *ctx;
    bool stop;
};

/* Asks all the time; rank and world belong together, as the peers and the world do. */
static void *ask(void *argument)
{
    struct beside *beside = argument;
    struct phx_error error = {0};
    struct phx_peer peer;
    while (!__atomic_load_n(&beside->stop, __ATOMIC_SEQ_CST)) {
        EXPECT(phx_rank(beside->ctx) < WORLD && phx_attempt(beside->ctx) <= 1);
        EXPECT(phx_peer(beside->ctx, 0, &peer, &error) == 0 && strlen(peer.address) < 64);
        phx_notice(beside->ctx, NULL);
    }
    return NULL;
}

/* Is blocked when the attempt ends, and must not wait on in the next one. */
static void *be_blocked(void *argument)
{
    struct beside *beside = argument;
    struct phx_error error = {0};
    size_t len;
    int status = phx_kv_get(beside->ctx, "never", NULL, 0, &len, FOREVER, &error);
    EXPECT(status == PHX_ERROR_PEER || status == PHX_ERROR_REJOIN);
    __atomic_add_fetch(&shared->let_go[own_task()], 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static int work_with_threads(void *unused)
{
    struct phx_error error = {0};
    struct beside beside = {.ctx = join_for_long()};
    pthread_t asking, blocked[3];
    uint64_t state[2], step = restore(beside.ctx, state);
    bool first = phx_attempt(beside.ctx) == 0;
    EXPECT(pthread_create(&asking, NULL, ask, &beside) == 0);
    for (int i = 0; first && i < 3; i++)
        EXPECT(pthread_create(&blocked[i], NULL, be_blocked, &beside) == 0);
    int status = make_steps(beside.ctx, state, step, &error);
    if (first) {
        EXPECT(status == PHX_ERROR_PEER || status == PHX_ERROR_REJOIN);
        EXPECT(phx_rejoin(beside.ctx, GANG_PATIENCE_MS, &error) == 0);
        for (int i = 0; i < 3; i++)
            EXPECT(pthread_join(blocked[i], NULL) == 0);
        status = make_steps(beside.ctx, state, restore(beside.ctx, state), &error);
    }
    EXPECT(status == 0);
    __atomic_store_n(&beside.stop, true, __ATOMIC_SEQ_CST);
    EXPECT(pthread_join(asking, NULL) == 0);
    EXPECT(phx_leave(beside.ctx, &error) == 0);
    return 0;
}

static void test_other_threads(void **unused)
{
    struct gang gang;
    set_up(&gang, WORLD);
    gang_fork_all(&gang, work_with_threads, NULL);
    gang_until(&gang, have_made(&gang, 3));
    kill_task(&gang, 1);
    shared->last_attempt = 1;
    go_on(&gang, work_with_threads);
    gang_until(&gang, gang_ended(&gang));
    assert_true(shared->let_go[0] == 3 && shared->let_go[2] == 3 && shared->let_go[3] == 3);
    end_well(&gang);
}

/* ---- the fence ---- */

/* Stopped while the others go on without it, with another process in its place. When it runs again nothing
 * that it does counts. */
static int work_until_fenced(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = join_for_long();
    uint64_t state[2];
    int status = make_steps(ctx, state, restore(ctx, state), &error);
    if (phx_attempt(ctx) > 0) {
        EXPECT(status == 0 && phx_leave(ctx, &error) == 0);
        return 0;
    }
    if (phx_rank(ctx) != 1) {
        EXPECT(phx_rejoin(ctx, GANG_PATIENCE_MS, &error) == 0);
        EXPECT(make_steps(ctx, state, restore(ctx, state), &error) == 0);
        EXPECT(phx_leave(ctx, &error) == 0);
        return 0;
    }
    uint64_t far = 1000000;
    EXPECT(status != 0);
    EXPECT(phx_checkpoint_hold(ctx, far, state, sizeof state, &error) != 0);
    status = phx_checkpoint_save(ctx, far, state, sizeof state, &error); /* a file that nobody asks for */
    EXPECT(status == 0 || status == PHX_ERROR_FENCED);
    struct phx_region region = {.name = "state", .data = state, .dtype = PHX_U64, .dims = 1, .shape = {2}};
    EXPECT(phx_checkpoint_register(ctx, &region, 1, &error) == 0);
    EXPECT(phx_checkpoint_rescue(ctx, far, &error) == PHX_ERROR_FENCED);
    EXPECT(phx_rejoin(ctx, FOREVER, &error) == PHX_ERROR_FENCED);
    EXPECT(phx_check(ctx, &error) == PHX_ERROR_FENCED);
    phx_close(ctx);
    return 76;
}

static void test_old_process_comes_back(void **unused)
{
    struct gang gang;
    set_up(&gang, 3);
    gang_fork_all(&gang, work_until_fenced, NULL);
    gang_until(&gang, have_made(&gang, 3));
    pid_t old = gang.pids[1];
    kill(old, SIGSTOP);
    int status;
    assert_int_equal(waitpid(old, &status, WUNTRACED), old);
    gang.pids[1] = 0; /* as if it were dead */
    size_t client = 0;
    while (gang.clients[client].fd < 0 || gang.clients[client].rank != 1)
        client++;
    shared->last_attempt = 1;
    go_on(&gang, work_until_fenced);
    gang_until(&gang, have_made(&gang, 2) && gang.joins[1] == 2);
    kill(old, SIGCONT);
    gang_send(&gang, client, &(struct jobwire_message){.type = JOBWIRE_FENCED, .fenced = {1}});
    gang_until(&gang, waitpid(old, &status, WNOHANG) == old);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 76);
    assert_true(!gang.has_commit);
    end_well(&gang);
}

/* A rank that has not said that it can rejoin is not told to; a rank without an agent cannot. */
static int refuse(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    EXPECT(phx_rejoin(ctx, 0, &error) == PHX_ERROR_INVALID);
    EXPECT(phx_retry(ctx, "no", &error) == PHX_ERROR_INVALID && phx_check(ctx, &error) == 0);
    EXPECT(phx_leave(ctx, &error) == 0);
    ctx = join_for_long();
    EXPECT(phx_rejoin(ctx, 1, &error) == PHX_ERROR_TIMEOUT); /* nobody has said anything */
    phx_close(ctx);
    unsetenv("PHX_AGENT_SOCKET");
    ctx = join_for_long();
    EXPECT(phx_rejoin(ctx, 0, &error) == PHX_ERROR_INVALID);
    EXPECT(phx_retry(ctx, NULL, &error) == PHX_ERROR_INVALID);
    EXPECT(phx_full_world_size(ctx) == 1);
    EXPECT(phx_leave(ctx, &error) == 0);
    setenv("PHX_SPARE", "1", 1);
    unsetenv("PHX_RANK");
    EXPECT(phx_join(NULL, &ctx, &error) == PHX_ERROR_INVALID);
    return 0;
}

static void test_refused(void **unused)
{
    struct gang gang;
    set_up(&gang, 1);
    gang_run(&gang, refuse, NULL);
    gang_done(&gang);
}

int main(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_is_killed),
        cmocka_unit_test(test_two_are_killed),
        cmocka_unit_test(test_killed_on_the_way),
        cmocka_unit_test(test_planned),
        cmocka_unit_test(test_shrink),
        cmocka_unit_test(test_spare),
        cmocka_unit_test(test_other_threads),
        cmocka_unit_test(test_old_process_comes_back),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
