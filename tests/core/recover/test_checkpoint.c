/* Checkpoints: whole or not at all, fenced by attempt, and handed to the next attempt. */
#include "core/job/story.h"
#include "core/launch/launch.h"

#define SET JOBSET("a", "failurePolicy: {maxRestarts: 5}, ", RJOB("x", 1, "", 3, ""))

static void join_all(struct harness *h)
{
    report_task(h, "a-x-0-0", (struct task_report){.kind = REPORT_JOINED});
    report_task(h, "a-x-0-1", (struct task_report){.kind = REPORT_JOINED});
    report_task(h, "a-x-0-2", (struct task_report){.kind = REPORT_JOINED});
}

static void saved(struct harness *h, const char *hostname, int64_t step)
{
    report_task(h, hostname, (struct task_report){.kind = REPORT_SHARD_SAVED, .step = step});
}

static int committed_notices(const struct harness *h)
{
    int count = 0;
    for (size_t i = 0; i < h->effects.list.len; i++)
        count += h->effects.list.items[i].kind == EFFECT_TASK_NOTICE;
    return count;
}

static void whole_or_not(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    saved(&h, "a-x-0-0", -5); /* what no rank says: an agent that lies changes nothing */
    assert_int_equal(committed_notices(&h), 0);
    saved(&h, "a-x-0-0", 10); /* a world of which one has joined is no world */
    report_task(&h, "a-x-0-0", (struct task_report){.kind = REPORT_JOINED});
    saved(&h, "a-x-0-0", 11);
    assert_int_equal((int)jobset->checkpoint.committed_step, -1);
    join_all(&h);
    saved(&h, "a-x-0-1", 20);
    saved(&h, "a-x-0-2", 20);
    assert_int_equal((int)jobset->checkpoint.committed_step, -1); /* two of them never saved 11 */
    saved(&h, "a-x-0-2", 30);
    assert_int_equal(committed_notices(&h), 0);
    saved(&h, "a-x-0-0", 20); /* all have saved 20, one of them more since */
    assert_int_equal((int)jobset->checkpoint.committed_step, 20);
    assert_int_equal(committed_notices(&h), 3);
    saved(&h, "a-x-0-0", 5); /* never back */
    assert_int_equal((int)jobset->checkpoint.committed_step, 20);
    assert_int_equal((int)jobset->checkpoint.count, 1);
    harness_done(&h);
}

static void old_attempts_never_commit(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    join_all(&h);
    saved(&h, "a-x-0-0", 10);
    saved(&h, "a-x-0-1", 10);
    saved(&h, "a-x-0-2", 10);
    saved(&h, "a-x-0-0", 20);
    saved(&h, "a-x-0-1", 20);
    struct task *late = harness_task(&h, "a-x-0-2");
    obj_id late_uid = late->uid;
    machine_id machine = late->machine;
    exits(&h, "a-x-0-1", 1);
    struct task_report report = {.kind = REPORT_SHARD_SAVED, .task = late_uid, .step = 20};
    harness_report(&h, &report, machine); /* its shard came too late */
    assert_int_equal((int)jobset->checkpoint.committed_step, 10);
    harness_run_all(&h);
    struct arena arena = {0};
    struct task_launch launch;
    task_launch_build(harness_task(&h, "a-x-0-2"), core_cluster(h.core), &arena, &launch);
    assert_int_equal((int)launch.restore_step, 10);
    assert_int_equal(launch.restore_attempt, 0);
    assert_int_equal(launch.attempt, 1);
    arena_done(&arena);
    assert_int_equal((int)jobset->history.records[0].step_resumed_from, 10);
    join_all(&h);
    saved(&h, "a-x-0-0", 12);
    saved(&h, "a-x-0-1", 12);
    assert_int_equal((int)jobset->checkpoint.committed_step, 10);
    saved(&h, "a-x-0-2", 12);
    assert_int_equal((int)jobset->checkpoint.committed_step, 12);
    assert_int_equal(jobset->checkpoint.committed_attempt, 1);
    harness_done(&h);
}

/* A rank that ended well has its last shard; one that was lost has none. */
static void ranks_that_ended(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    join_all(&h);
    saved(&h, "a-x-0-0", 10);
    exits(&h, "a-x-0-0", 0);
    saved(&h, "a-x-0-1", 10);
    saved(&h, "a-x-0-2", 10);
    assert_int_equal((int)jobset->checkpoint.committed_step, 10);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_or_not),
        cmocka_unit_test(old_attempts_never_commit),
        cmocka_unit_test(ranks_that_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
