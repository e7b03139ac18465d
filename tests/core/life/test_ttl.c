/* The end of a JobSet: ttlSecondsAfterFinished, deletion, finalizers; and writes that change nothing. */
#include "core/lemon/lemon.h"
#include "core/job/story.h"

/* Whether no timer of the job is due: the record that the job ran once is forgotten weeks later. */
static bool nothing_is_due(const struct harness *h)
{
    return core_deadline(h->core) > h->now_ns + LEMON_DAY_NS;
}

static void ttl(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, JOBSET("a", "ttlSecondsAfterFinished: 30, ", RJOB("x", 1, "", 1, "")));
    harness_run_all(&h);
    harness_wait(&h, 100 * NS_PER_SECOND);
    exits(&h, "a-x-0-0", 0);
    harness_wait(&h, 30 * NS_PER_SECOND - 1);
    assert_non_null(harness_jobset(&h, "a"));
    harness_wait(&h, 1);
    assert_null(harness_jobset(&h, "a"));
    assert_null(job_of(&h, "a-x-0"));
    assert_true(nothing_is_due(&h));
    harness_done(&h);
}

static void ttl_zero_and_failed(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, JOBSET("a", "ttlSecondsAfterFinished: 0, ", RJOB("x", 1, "", 2, "")));
    harness_run_all(&h);
    exits(&h, "a-x-0-0", 1);
    harness_wait(&h, 0);
    assert_true(harness_jobset(&h, "a")->deleted_ns > 0); /* its other task is still ending */
    harness_run_all(&h);
    assert_null(harness_jobset(&h, "a"));
    harness_done(&h);
}

#define HELD(finalizers)                                                                                     \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, finalizers: [" finalizers       \
    "]}\nspec: {ttlSecondsAfterFinished: 1, replicatedJobs: [" RJOB("x", 1, "", 1, "") "]}\n"
static void finalizers_hold(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, HELD("example.com/a"));
    harness_run_all(&h);
    exits(&h, "a-x-0-0", 0);
    harness_wait(&h, 2 * NS_PER_SECOND);
    assert_true(jobset->deleted_ns == h.now_ns);
    assert_true(nothing_is_due(&h));
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", HELD("")), 200);
    assert_null(harness_jobset(&h, "a"));
    harness_done(&h);
}

/* Deleting while everything still waits for a place. */
static void deleted_in_the_queue(void **state)
{
    struct harness h;
    harness_init(&h, 1, 4, 0);
    harness_create(&h, JOBSET("a", "", RJOB("x", 2, "", 4, "")));
    assert_int_equal((int)core_jobs(h.core)->queue.gangs.len, 1);
    assert_int_equal(harness_write(&h, WRITE_DELETE, "a", NULL), 200);
    assert_null(harness_jobset(&h, "a"));
    assert_int_equal((int)core_jobs(h.core)->queue.gangs.len, 0);
    assert_int_equal(harness_write(&h, WRITE_DELETE, "a", NULL), 404);
    harness_done(&h);
}

#define PLAIN(extra) JOBSET("a", extra, RJOB("x", 1, "", 1, ""))
static void writes_that_change_nothing(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, PLAIN(""));
    uint64_t version = jobset->changed_seq;
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", PLAIN("")), 200);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", PLAIN("network: {enableDNSHostnames: true}, ")),
                     200);
    assert_true(jobset->changed_seq == version);
    assert_int_equal((int)jobset->generation, 1);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", PLAIN("ttlSecondsAfterFinished: 5, ")), 200);
    assert_int_equal((int)jobset->generation, 2);
    assert_true(jobset->changed_seq > version);
    harness_done(&h);
}

static void refusals(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, PLAIN(""));
    assert_int_equal(harness_write(&h, WRITE_CREATE, "", PLAIN("")), 409);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "b", PLAIN("")), 404);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", JOBSET("b", "", RJOB("x", 1, "", 1, ""))), 400);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", JOBSET("a", "", RJOB("x", 2, "", 1, ""))), 422);
    assert_int_equal(harness_write(&h, WRITE_CREATE, "", JOBSET("c", "", RJOB("x", -1, "", 1, ""))), 422);
    struct event event = {.kind = EVENT_WRITE};
    event.write = (struct write_event){.verb = WRITE_DELETE,
                                       .object = OBJECT_JOBSET,
                                       .namespace_ = STR("default"),
                                       .name = STR("a"),
                                       .if_version = jobset->changed_seq + 1,
                                       .grace_s = -1};
    harness_step(&h, &event);
    assert_int_equal(h.last_code, 409);
    event.write.if_version = 0;
    event.write.uid_text = STR("00000000-0000-4000-8000-000000000000");
    harness_step(&h, &event);
    assert_int_equal(h.last_code, 409);
    assert_non_null(harness_jobset(&h, "a"));
    harness_done(&h);
}

static void generated_names(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    const char *text = "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {generateName: "
                       "run-}\nspec: {replicatedJobs: [" RJOB("x", 1, "", 1, "") "]}\n";
    struct jobset *first = harness_create(&h, text), *second = harness_create(&h, text);
    assert_int_equal((int)first->name.len, 9);
    assert_true(str_starts(first->name, STR("run-")));
    assert_false(str_equal(first->name, second->name));
    assert_true(
        str_is(doc_str(doc_path(first->document, "metadata", "generateName", NULL), STR("")), "run-"));
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ttl),
        cmocka_unit_test(ttl_zero_and_failed),
        cmocka_unit_test(finalizers_hold),
        cmocka_unit_test(deleted_in_the_queue),
        cmocka_unit_test(writes_that_change_nothing),
        cmocka_unit_test(refusals),
        cmocka_unit_test(generated_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
