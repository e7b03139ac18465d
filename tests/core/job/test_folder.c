/* Checkpoint folders: a JobSet that names one goes on from what its predecessor committed there. */
#include "core/job/folder.h"
#include "story.h"
#include "core/launch/launch.h"

#define TRAIN(name, notes)                                                                                   \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: " name ", annotations: {" notes    \
    "}}\nspec: {failurePolicy: {maxRestarts: 3}, replicatedJobs: [{name: w, template: {spec: "               \
    "{parallelism: 2, completions: 2, backoffLimit: 0, " POD_OF("", "4") "}}}]}\n"
#define IN_RUN "phalanx.dev/checkpoint-folder: run-7"

static void saves(struct harness *h, const char *jobset, int64_t step)
{
    for (int rank = 0; rank < 2; rank++) {
        char host[32];
        snprintf(host, sizeof host, "%s-w-0-%d", jobset, rank);
        const struct task *task = harness_task(h, host);
        struct task_report joined = {.kind = REPORT_JOINED, .task = task->uid};
        struct task_report saved = {.kind = REPORT_SHARD_SAVED, .task = task->uid, .step = step};
        harness_report(h, &joined, task->machine);
        harness_report(h, &saved, task->machine);
    }
    core_check_invariants(h->core);
}

static struct str environment(struct harness *h, const char *hostname, const char *name, struct arena *arena)
{
    struct task_launch launch;
    task_launch_build(harness_task(h, hostname), core_cluster(h->core), arena, &launch);
    for (size_t i = 0; i < launch.env_count; i++)
        if (str_is(launch.env[i].name, name))
            return launch.env[i].value;
    return (struct str){0};
}

static void assert_environment(struct harness *h, const char *hostname, const char *name, const char *value)
{
    struct arena arena = {0};
    struct str got = environment(h, hostname, name, &arena);
    if (!str_is(got, value))
        fail_msg("%s is " STR_FORMAT ", not %s", name, STR_ARG(got), value);
    arena_done(&arena);
}

static void without_a_folder_it_begins_anew(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *first = harness_create(&h, TRAIN("a", ""));
    harness_run_all(&h);
    saves(&h, "a", 40);
    assert_int_equal((int)first->checkpoint.committed_step, 40);
    harness_write(&h, WRITE_DELETE, "a", NULL);
    harness_run_all(&h);
    struct jobset *second = harness_create(&h, TRAIN("a", ""));
    assert_int_equal((int)second->checkpoint.committed_step, -1);
    assert_int_equal(second->attempt, 0);
    harness_check_replay(&h);
    harness_done(&h);
}

static void it_goes_on_from_a_deleted_predecessor(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *first = harness_create(&h, TRAIN("a", IN_RUN));
    harness_run_all(&h);
    saves(&h, "a", 40);
    assert_environment(&h, "a-w-0-0", "PHX_CHECKPOINT_DIR", "/ckpt/default/run-7/default");
    exits(&h, "a-w-0-0", 1); /* attempt 1 */
    harness_run_all(&h);
    assert_int_equal(first->attempt, 1);
    harness_write(&h, WRITE_DELETE, "a", NULL);
    harness_run_all(&h);
    assert_null(harness_jobset(&h, "a"));
    harness_check_replay(&h); /* a snapshot has the folder now */

    struct jobset *second = harness_create(&h, TRAIN("a", IN_RUN));
    assert_int_equal((int)second->checkpoint.committed_step, 40);
    assert_int_equal(second->checkpoint.committed_attempt, 0);
    assert_int_equal(second->attempt, 2); /* no file of it is one of its predecessor's */
    assert_int_equal(second->restarts, 0);
    harness_run_all(&h);
    assert_environment(&h, "a-w-0-0", "PHX_RESTORE_STEP", "40");
    assert_environment(&h, "a-w-0-0", "PHX_RESTORE_ATTEMPT", "0");
    assert_environment(&h, "a-w-0-0", "PHX_ATTEMPT", "2");
    assert_int_equal(notes(&h, "ResumesFromCheckpoint"), 1);
    saves(&h, "a", 50);
    assert_int_equal(second->checkpoint.committed_attempt, 2);
    exits(&h, "a-w-0-1", 1);
    harness_run_all(&h);
    assert_int_equal(second->attempt, 3);
    assert_int_equal(second->restarts + second->recovery.in_place_restarts, 1);
    harness_check_replay(&h);
    harness_done(&h);
}

static void it_goes_on_from_a_finished_one_under_another_name(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, TRAIN("a", IN_RUN));
    harness_run_all(&h);
    saves(&h, "a", 40);
    assert_int_equal(harness_write_checked(&h, OBJECT_JOBSET, WRITE_CREATE, "", TRAIN("b", IN_RUN)), 409);
    assert_non_null(strstr(h.last_message, "checkpoint folder \"run-7\""));
    exits(&h, "a-w-0-0", 0);
    exits(&h, "a-w-0-1", 0);
    struct jobset *next = harness_create(&h, TRAIN("b", IN_RUN));
    assert_int_equal((int)next->checkpoint.committed_step, 40);
    assert_int_equal(next->attempt, 1);
    harness_check_replay(&h);
    harness_done(&h);
}

static void the_folder_stays_and_has_a_plain_name(void **state)
{
    struct harness h;
    static const char *const wrong[] = {
        TRAIN("b", "phalanx.dev/checkpoint-folder: a/b"),
        TRAIN("b", "phalanx.dev/checkpoint-folder: .."),
        TRAIN("b", "phalanx.dev/checkpoint-folder: ''"),
    };
    harness_init(&h, 2, 4, 0);
    harness_create(&h, TRAIN("a", IN_RUN));
    assert_int_equal(harness_write_checked(&h, OBJECT_JOBSET, WRITE_REPLACE, "a", TRAIN("a", "")), 422);
    assert_non_null(strstr(h.last_message, "field is immutable"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(harness_write_checked(&h, OBJECT_JOBSET, WRITE_CREATE, "", wrong[i]), 422);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_folder_it_begins_anew),
        cmocka_unit_test(it_goes_on_from_a_deleted_predecessor),
        cmocka_unit_test(it_goes_on_from_a_finished_one_under_another_name),
        cmocka_unit_test(the_folder_stays_and_has_a_plain_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
