/* The cost of phx_step, which waits for nobody: with an agent that reads, with one that has stopped. */
#include "job/gang.h"

#include <sys/resource.h>

#define BLOCK  1000 /* calls that are timed together, so that the clock's own cost doesn't count */
#define BLOCKS 5000

static int compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

/* The time of this thread alone: other load of the machine does not count. Waits are counted apart. */
static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Makes the steps with two metrics; prints and judges the time of one. */
static int make_steps(void *name)
{
    static int64_t times_ns[BLOCKS];
    struct phx_error error = {0};
    struct phx_options options = {
        .size = sizeof options, .join_timeout_ms = GANG_PATIENCE_MS, .leave_timeout_ms = GANG_PATIENCE_MS};
    struct rusage before, after;
    phx_context *ctx = NULL;
    uint64_t step = 0;
    if (phx_join(&options, &ctx, &error) != 0)
        return 1;
    getrusage(RUSAGE_THREAD, &before);
    for (size_t i = 0; i < BLOCKS; i++) {
        int64_t started_ns = now_ns();
        for (size_t k = 0; k < BLOCK; k++) {
            struct phx_metric metrics[] = {{"loss", 1.0 / (double)(step + 1)}, {"rate", 0.003}};
            if (phx_step(ctx, ++step, metrics, 2, &error) != 0)
                return 2;
        }
        times_ns[i] = (now_ns() - started_ns) / BLOCK;
    }
    getrusage(RUSAGE_THREAD, &after);
    qsort(times_ns, BLOCKS, sizeof *times_ns, compare);
    long waits = after.ru_nvcsw - before.ru_nvcsw;
    printf("phx_step, %s: median %lld ns, 99%% %lld ns; %ld waits in %d calls\n", (const char *)name,
           (long long)times_ns[BLOCKS / 2], (long long)times_ns[BLOCKS * 99 / 100], waits, BLOCK * BLOCKS);
    fflush(stdout);
    if (times_ns[BLOCKS / 2] >= 10000 || waits > 1000)
        return 3;
    phx_close(ctx);
    return 0;
}

static void test_read(void **unused)
{
    struct gang gang;
    gang_init(&gang, 1);
    gang_fork(&gang, 0, make_steps, (void *)(uintptr_t) "agent reads");
    gang_until(&gang, gang_ended(&gang));
    assert_int_equal(gang_exit(&gang, 0), 0);
    assert_true(gang.step_frames[0] >= 1);
    gang_done(&gang);
}

/* The agent welcomes the task and reads nothing any more. */
static void test_not_read(void **unused)
{
    struct gang gang;
    gang_init(&gang, 1);
    gang_fork(&gang, 0, make_steps, (void *)(uintptr_t) "agent stopped");
    gang_until(&gang, gang.joins[0] == 1);
    gang_reap(&gang, true);
    assert_int_equal(gang_exit(&gang, 0), 0);
    gang_done(&gang);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
