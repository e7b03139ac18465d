/* Rules of JobSets that are options of ours, or were added to upstream's first ones. */
#include "core/job/story.h"

#define ANNOTATED(name, notes, fields, rjobs)                                                                \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: " name ", annotations: {" notes    \
    "}}\nspec: {" fields "replicatedJobs: [" rjobs "]}\n"

static void failures_count_at_once_or_when_pods_have_ended(void **state)
{
    for (int waits = 0; waits < 2; waits++) {
        struct harness h;
        harness_init(&h, 2, 4, 0);
        struct jobset *jobset = harness_create(
            &h,
            waits ? ANNOTATED("a", "phalanx.dev/act-on-failure-target: 'false'", "", RJOB("w", 1, "", 2, ""))
                  : ANNOTATED("a", "phalanx.dev/act-on-failure-target: 'true'", "", RJOB("w", 1, "", 2, "")));
        harness_run_all(&h);
        exits(&h, "a-w-0-0", 1);
        assert_int_equal(jobset_finished(jobset), !waits); /* the other pod still ends */
        assert_int_equal(jobset->rjob_status[0].failed, !waits);
        harness_check_replay(&h);
        harness_run_all(&h);
        assert_int_equal(jobset->terminal_state, TERMINAL_FAILED);
        core_check_invariants(h.core);
        harness_done(&h);
    }
}

static void single_restarts_count_with_those_of_the_whole(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset =
        harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 2, rules: [{action: RestartJob}]}, ",
                                  RJOB("w", 2, "", 1, "")));
    harness_run_all(&h);
    exits(&h, "a-w-1-0", 1);
    harness_run_all(&h);
    assert_int_equal(jobset->restarts, 0);
    assert_int_equal(jobset->restarts_counted, 0);
    assert_int_equal(jobset->job_attempts[1], 1);
    assert_int_equal(jobset->job_attempts_counted[1], 1);
    struct arena arena = {0};
    struct labels labels = job_labels(jobset->jobs[1], NULL, &arena);
    assert_true(str_is(labels_get(&labels, STR("jobset.sigs.k8s.io/job-restart-attempt"), STR("")), "1"));
    assert_true(str_is(labels_get(&labels, STR("jobset.sigs.k8s.io/restart-attempt"), STR("")), "0"));
    arena_done(&arena);
    harness_check_replay(&h);
    harness_wait(&h, 10 * NS_PER_SECOND);
    exits(&h, "a-w-0-0", 1);
    harness_run_all(&h);
    harness_wait(&h, 10 * NS_PER_SECOND);
    exits(&h, "a-w-0-0", 1);
    harness_run_all(&h);
    assert_string_equal(jobset->conditions[CONDITION_FAILED].reason, "ReachedMaxRestarts");
    harness_done(&h);
}

#define SIZED(n, noted)                                                                                      \
    ANNOTATED("a", noted, "",                                                                                \
              "{name: w, replicas: 2, template: {spec: {parallelism: " #n ", completions: " #n               \
              ", " POD_OF("", "1") "}}}")

static void elastic_jobsets_change_their_size(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 0);
    struct jobset *jobset = harness_create(&h, SIZED(2, "phalanx.dev/elastic: 'true'"));
    harness_run_all(&h);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", SIZED(3, "other: x")), 422);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", SIZED(4, "phalanx.dev/elastic: 'true'")), 200);
    core_check_invariants(h.core);
    harness_run_all(&h);
    assert_int_equal(jobset->jobs[1]->active, 4);
    assert_non_null(harness_task(&h, "a-w-1-3"));
    harness_check_replay(&h);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", SIZED(1, "phalanx.dev/elastic: 'true'")), 200);
    harness_run_all(&h);
    core_check_invariants(h.core);
    assert_int_equal(jobset->jobs[0]->active, 1);
    assert_int_equal(jobset->jobs[0]->failed, 0);
    exits(&h, "a-w-0-0", 0);
    exits(&h, "a-w-1-0", 0);
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    core_check_invariants(h.core);
    harness_done(&h);
}

/* Failures that a policy ignores are unbounded: what is kept of them is not. */
static void ignored_failures_are_bounded(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, JOBSET("a", "",
                                                      RJOB("w", 1, "", 1,
                                                           "podFailurePolicy: {rules: [{action: Ignore, "
                                                           "onExitCodes: {operator: In, values: [7]}}]}, ")));
    harness_run_all(&h);
    for (int i = 0; i < 60; i++) {
        exits(&h, "a-w-0-0", 7);
        harness_wait(&h, 11 * NS_PER_SECOND);
        harness_run_all(&h);
    }
    assert_int_equal(jobset->jobs[0]->failed, 0);
    assert_true(jobset->jobs[0]->tasks.len <= 20);
    assert_non_null(harness_task(&h, "a-w-0-0"));
    core_check_invariants(h.core);
    harness_done(&h);
}

static void suspended_jobs_have_no_pods(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, JOBSET("a", "", RJOB("w", 1, "", 2, "")));
    harness_run_all(&h);
    harness_write(&h, WRITE_REPLACE, "a", JOBSET("a", "suspend: true, ", RJOB("w", 1, "", 2, "")));
    harness_run_all(&h);
    assert_int_equal((int)jobset->jobs[0]->tasks.len, 0);
    harness_write(&h, WRITE_REPLACE, "a", JOBSET("a", "suspend: false, ", RJOB("w", 1, "", 2, "")));
    harness_run_all(&h);
    assert_int_equal(jobset->jobs[0]->active, 2);
    harness_done(&h);
}

/* Pods of an Indexed Job are "<job>-<index>-<5>", of a NonIndexed one "<job>-<5>". */
static void pods_are_named_after_the_mode(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, JOBSET("a", "",
                              RJOB("i", 1, "", 1, "") ", {name: w, template: {spec: {parallelism: 2, "
                                                      "completionMode: NonIndexed, " POD_OF("", "1") "}}}"));
    const struct job *indexed = job_of(&h, "a-i-0"), *other = job_of(&h, "a-w-0");
    assert_int_equal((int)other->tasks.len, 2);
    assert_int_equal((int)indexed->tasks.items[0]->name.len, (int)strlen("a-i-0-0-12345"));
    assert_true(str_starts(indexed->tasks.items[0]->name, STR("a-i-0-0-")));
    for (size_t t = 0; t < 2; t++) {
        assert_true(str_starts(other->tasks.items[t]->name, STR("a-w-0-")));
        assert_int_equal((int)other->tasks.items[t]->name.len, (int)strlen("a-w-0-12345"));
    }
    assert_false(str_equal(other->tasks.items[0]->name, other->tasks.items[1]->name));
    harness_check_replay(&h);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_count_at_once_or_when_pods_have_ended),
        cmocka_unit_test(single_restarts_count_with_those_of_the_whole),
        cmocka_unit_test(elastic_jobsets_change_their_size),
        cmocka_unit_test(ignored_failures_are_bounded),
        cmocka_unit_test(suspended_jobs_have_no_pods),
        cmocka_unit_test(pods_are_named_after_the_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
