/* python/phalanx against the tiny agent: three ranks in Python. */
#include "job/gang.h"

#define SKIPPED 77

static char library[512], runtime[512];

/* A library with the address sanitizer needs it to be loaded first; where it is, the process itself shows.
 * Empty: this test has no sanitizer, or has it inside. */
static void find_sanitizer(void)
{
    char line[1024];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        char *path = strchr(line, '/');
        if (path != NULL && strstr(path, "libasan") != NULL)
            snprintf(runtime, sizeof runtime, "%.*s", (int)strcspn(path, "\n"), path);
    }
    if (maps != NULL)
        fclose(maps);
}

static int exec_python(void *argument)
{
    setenv("PYTHONPATH", "python", 1);
    setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    setenv("PHX_LIB", library, 1);
    if (runtime[0] != '\0') {
        setenv("LD_PRELOAD", runtime, 1);
        setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    }
    execl("/usr/bin/python3", "python3", "tests/job/test_python.py", argument, (char *)NULL);
    return 98;
}

static void run(struct gang *gang, const char *what)
{
    gang_fork_all(gang, exec_python, (void *)(uintptr_t)what);
    gang_until(gang, gang_ended(gang));
}

static void test_python(void **unused)
{
    struct gang gang;
    gang_init(&gang, 3);
    run(&gang, "talk");
    for (uint32_t rank = 0; rank < 3; rank++) {
        assert_int_equal(gang_exit(&gang, rank), 0);
        assert_true(gang.steps[rank].step == 3 && gang.steps[rank].total == 10 && gang.leaves[rank] == 1);
        assert_int_equal(gang.steps[rank].metric_count, 2);
    }
    gang_next_attempt(&gang);
    run(&gang, "restore");
    for (uint32_t rank = 0; rank < 3; rank++)
        assert_int_equal(gang_exit(&gang, rank), 0);
    static const char *const stages[] = {"keep", "load",
                                         "import"}; /* regions, back from memory, from a file */
    for (int stage = 0; stage < 3; stage++) {
        gang_next_attempt(&gang);
        run(&gang, stages[stage]);
        for (uint32_t rank = 0; rank < 3; rank++)
            assert_int_equal(gang_exit(&gang, rank), 0);
    }
    gang_next_attempt(&gang);
    run(&gang, "lose");
    for (uint32_t rank = 0; rank < 3; rank++)
        assert_int_equal(gang_exit(&gang, rank), rank == 1 ? 256 + SIGKILL : 0);
    gang_done(&gang);
}

/* Rank 1 kills itself; the processes of the others go on in the next attempt beside a new one. */
static void outlive(const char *first, const char *again)
{
    struct gang gang;
    gang_init(&gang, 3);
    gang_fork_all(&gang, exec_python, (void *)(uintptr_t)first);
    pid_t before[3] = {gang.pids[0], gang.pids[1], gang.pids[2]};
    gang_until(&gang, gang.pids[1] == 0);
    assert_int_equal(gang_exit(&gang, 1), 256 + SIGKILL);
    gang_rejoin(&gang);
    assert_true(gang.pids[0] == before[0] && gang.pids[2] == before[2]);
    gang_fork(&gang, 1, exec_python, (void *)(uintptr_t)again);
    gang_until(&gang, gang_ended(&gang));
    for (uint32_t rank = 0; rank < 3; rank++)
        assert_int_equal(gang_exit(&gang, rank), 0);
    gang_done(&gang);
}

static void test_rejoin(void **unused)
{
    outlive("rejoin", "rejoined");
}

static void test_loop(void **unused)
{
    struct gang gang;
    outlive("loop", "looped");
    gang_init(&gang, 3);
    run(&gang, "raise");
    for (uint32_t rank = 0; rank < 3; rank++)
        assert_int_equal(gang_exit(&gang, rank), 0);
    gang_done(&gang);
}

static void test_retry(void **unused)
{
    struct gang gang;
    gang_init(&gang, 3);
    gang_fork_all(&gang, exec_python, (void *)(uintptr_t) "doubt");
    gang_until(&gang, gang.retries[2] == 1);
    assert_non_null(strstr(gang.retry_reason, "the sum is gone"));
    gang_rejoin(&gang);
    gang_until(&gang, gang_ended(&gang));
    for (uint32_t rank = 0; rank < 3; rank++)
        assert_int_equal(gang_exit(&gang, rank), 0);
    gang_done(&gang);
}

static void test_group(void **unused)
{
    struct gang gang;
    gang_init(&gang, 3);
    run(&gang, "group");
    for (uint32_t rank = 0; rank < 3; rank++)
        assert_int_equal(gang_exit(&gang, rank), 0);
    gang_done(&gang);
}

int main(void)
{
    const char *build = getenv("PHX_BUILD");
    snprintf(library, sizeof library, "%s/libphalanx.so", build != NULL ? build : "build");
    find_sanitizer();
    if (access("/usr/bin/python3", X_OK) != 0 || access(library, R_OK) != 0) {
        printf("skipped: no /usr/bin/python3, or no %s\n", library);
        return SKIPPED;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_python), cmocka_unit_test(test_rejoin),
                                       cmocka_unit_test(test_loop), cmocka_unit_test(test_retry),
                                       cmocka_unit_test(test_group)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
