/* examples/train as a real job of several processes: killed at any step it ends with the weights of a run
 * that nobody disturbed, to the last bit. */
#include "job/gang.h"

#define STEPS   "60"
#define BATCH   "12"
#define SKIPPED 77

static char program[512];

struct run {
    const char *const *arguments; /* behind the fixed ones; NULL at the end */
    char hash_file[128];
};

static int exec_train(void *argument)
{
    const struct run *run = argument;
    /* The test starts a process anew when it has ended (for living processes: test_steps, and tests/e2e). */
    const char *list[32] = {
        program, "--steps",     STEPS, "--batch",     BATCH,          "--checkpoint-every",
        "5",     "--log-every", "0",   "--hash-file", run->hash_file, "--no-rejoin"};
    size_t count = 12;
    for (size_t i = 0; run->arguments != NULL && run->arguments[i] != NULL && count < 31; i++)
        list[count++] = run->arguments[i];
    unsetenv("PHX_MEMORY_DIR"); /* what is saved is all there is */
    if (freopen("/dev/null", "w", stdout) == NULL)
        return 98;
    execv(program, (char **)(uintptr_t)list);
    return 98;
}

static void set_up(struct gang *gang, struct run *run, uint32_t world)
{
    gang_init(gang, world);
    *run = (struct run){0};
    snprintf(run->hash_file, sizeof run->hash_file, "%s/result", gang->dir);
}

static void read_result(const struct run *run, char *line, size_t size)
{
    FILE *file = fopen(run->hash_file, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, (int)size, file));
    fclose(file);
    assert_non_null(strstr(line, "final step " STEPS " loss "));
}

static void undisturbed(uint32_t world, char *line, size_t size)
{
    struct gang gang;
    struct run run;
    set_up(&gang, &run, world);
    gang_fork_all(&gang, exec_train, &run);
    gang_until(&gang, gang_ended(&gang));
    for (uint32_t rank = 0; rank < world; rank++) {
        assert_int_equal(gang_exit(&gang, rank), 0);
        assert_true(gang.leaves[rank] == 1 && gang.steps[rank].step == 60 && gang.steps[rank].total == 60);
        assert_string_equal(gang.steps[rank].metrics[0].name, "loss");
    }
    assert_true(gang.has_commit && gang.commit_step == 60);
    read_result(&run, line, size);
    gang_done(&gang);
}

/* Kills a random rank at a random step behind the last commit, unless it is through already. */
static void kill_one(struct gang *gang, uint32_t *state)
{
    uint32_t victim = gang_draw(state, gang->world);
    uint64_t target = gang->commit_step + gang_draw(state, 18);
    target = target > 55 ? 55 : target;
    gang_until(gang,
               (gang->steps[victim].step >= target && gang->step_frames[victim] > 0) || gang_ended(gang));
    bool killed = gang->pids[victim] > 0;
    if (killed)
        kill(gang->pids[victim], SIGKILL);
    gang_until(gang, gang_ended(gang));
    for (uint32_t rank = 0; rank < gang->world; rank++) {
        int code = gang_exit(gang, rank); /* behind the last barrier nobody needs the victim any more */
        assert_true(code == 75 || code == 0 || (killed && rank == victim && code == 256 + SIGKILL));
    }
}

/* Runs the gang again and again, with a kill in each run but the last. */
static void disturbed(uint32_t world, uint32_t kills, uint32_t seed, char *line, size_t size)
{
    struct gang gang;
    struct run run;
    uint32_t state = seed * 2654435761u + 1;
    set_up(&gang, &run, world);
    for (uint32_t kill_count = 0; kill_count <= kills; kill_count++) {
        memset(gang.steps, 0, sizeof gang.steps);
        gang_fork_all(&gang, exec_train, &run);
        if (kill_count < kills) {
            kill_one(&gang, &state);
            gang_next_attempt(&gang);
        }
    }
    gang_until(&gang, gang_ended(&gang));
    for (uint32_t rank = 0; rank < world; rank++)
        assert_int_equal(gang_exit(&gang, rank), 0);
    read_result(&run, line, size);
    gang_done(&gang);
}

static void test_same_weights(void **unused)
{
    char expected[256], line[256];
    undisturbed(3, expected, sizeof expected);
    undisturbed(1, line, sizeof line); /* the number of ranks makes no difference either */
    assert_string_equal(line, expected);
    for (uint32_t seed = 1; seed <= 2; seed++) {
        disturbed(3, 3, seed, line, sizeof line);
        assert_string_equal(line, expected);
    }
}

/* A bit of the newest checkpoint turns over in some ranks' shards: while one is whole, the ranks being
 * replicas, nothing is lost; else the gang goes on one commit earlier. The weights are the same. */
static void damaged(const char *expected, uint32_t first_damaged, uint64_t lost)
{
    char line[256];
    struct gang gang;
    struct run run;
    set_up(&gang, &run, 3);
    gang_fork_all(&gang, exec_train, &run);
    gang_until(&gang, gang.has_commit && gang.commit_step >= 20);
    kill(gang.pids[1], SIGKILL);
    gang_until(&gang, gang_ended(&gang));
    uint64_t newest = gang.commit_step;
    for (uint32_t rank = first_damaged; rank < 3; rank++)
        gang_damage_shard(&gang, newest, 0, rank, GANG_FLIP_DATA);
    gang_next_attempt(&gang);
    gang_fork_all(&gang, exec_train, &run);
    gang_until(&gang, gang_ended(&gang));
    for (uint32_t rank = 0; rank < 3; rank++) {
        assert_int_equal(gang_exit(&gang, rank), 0);
        assert_int_equal(gang.first_steps[rank], newest - lost);
    }
    read_result(&run, line, sizeof line);
    assert_string_equal(line, expected);
    gang_done(&gang);
}

static void test_damaged_checkpoint(void **unused)
{
    char expected[256];
    undisturbed(3, expected, sizeof expected);
    damaged(expected, 2, 0);
    damaged(expected, 0, 5);
}

static int exec_wrong(void *argument)
{
    const char *list[] = {program, argument, NULL};
    if (freopen("/dev/null", "w", stderr) == NULL || freopen("/dev/null", "w", stdout) == NULL)
        return 98;
    execv(program, (char **)(uintptr_t)list);
    return 98;
}

static void test_command_line(void **unused)
{
    static const struct {
        const char *argument;
        int code;
    } cases[] = {{"--help", 0},    {"--check-gradients", 0}, {"--steps=x", 2},           {"--batch=0", 2},
                 {"--rate=-1", 2}, {"--unknown", 2},         {"--text=/nonexistent", 2}, {"word", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gang gang;
        gang_init(&gang, 1);
        gang_fork(&gang, 0, exec_wrong, (void *)(uintptr_t)cases[i].argument);
        gang_until(&gang, gang_ended(&gang));
        if (gang_exit(&gang, 0) != cases[i].code)
            fail_msg("train %s ended with %d", cases[i].argument, gang_exit(&gang, 0));
        gang_done(&gang);
    }
}

static int exec_drained(void *argument)
{
    static const char *const slow[] = {"--checkpoint-every", "0", "--steps", "100000", NULL};
    struct run *run = argument;
    run->arguments = slow;
    return exec_train(run);
}

/* A notice that reaches one rank makes the whole gang save at one step. */
static void test_notice(void **unused)
{
    struct gang gang;
    struct run run;
    set_up(&gang, &run, 3);
    gang_fork_all(&gang, exec_drained, &run);
    gang_until(&gang, gang.step_frames[1] > 1 && gang.steps[1].step > 0);
    struct jobwire_message drain = {.type = JOBWIRE_DRAIN, .drain = {.deadline_ms = 5000, .reason = 1}};
    for (size_t i = 0; i < GANG_MAX; i++)
        if (gang.clients[i].fd >= 0 && gang.clients[i].rank == 1)
            gang_send(&gang, i, &drain);
    gang_until(&gang, gang.has_commit);
    assert_true(gang.commit_step > 0);
    gang_done(&gang);
}

int main(void)
{
    const char *build = getenv("PHX_BUILD");
    snprintf(program, sizeof program, "%s/train", build != NULL ? build : "build");
    if (access(program, X_OK) != 0) {
        printf("skipped: %s is not built\n", program);
        return SKIPPED;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_weights),
        cmocka_unit_test(test_command_line),
        cmocka_unit_test(test_notice),
        cmocka_unit_test(test_damaged_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
