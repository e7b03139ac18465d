/* Jobs and Pods of their own: created, run, changed, deleted; their names, and what users see of them. */
#include "core/job/story.h"

#define JOB(name, fields, pod)                                                                               \
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: " name ", labels: {app: x}}\nspec: {" fields          \
    "template: {metadata: {labels: {app: x}}, spec: {restartPolicy: Never, " pod                             \
    "containers: [{name: main, image: none, command: [run]}]}}}\n"
#define POD(name, fields)                                                                                    \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: " name ", labels: {run: x}}\nspec: {" fields                \
    "containers: [{name: main, image: none, command: [run]}]}\n"

static struct job *find_job(struct harness *h, const char *name)
{
    return jobs_find_job(core_jobs(h->core), STR("default"), str_from(name));
}

static struct task *find_pod(struct harness *h, const char *name)
{
    return jobs_find_pod(core_jobs(h->core), STR("default"), str_from(name));
}

static void count_job(void *context, const struct job *job)
{
    (void)job;
    ++*(int *)context;
}

/* The first living task of a Job. */
static struct task *first_living(const struct job *job)
{
    for (size_t i = 0; i < job->tasks.len; i++)
        if (!task_ended(job->tasks.items[i]->state))
            return job->tasks.items[i];
    return NULL;
}

static void a_job_runs_and_completes(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", JOB("one", "", "")), 201);
    const struct job *job = find_job(&h, "one");
    assert_non_null(job);
    assert_int_equal(job->jobset->form, FORM_JOB);
    assert_null(harness_jobset(&h, "one"));
    harness_run_all(&h);
    struct task *task = first_living(job);
    assert_int_equal(task->state, TASK_RUNNING);
    assert_true(str_starts(task->name, STR("one-")) && task->name.len == strlen("one-abcde"));
    assert_true(str_equal(task->name, task->hostname));
    struct arena arena = {0};
    struct labels labels = job_labels(job, task, &arena);
    assert_true(str_is(labels_get(&labels, STR("job-name"), STR("")), "one"));
    assert_true(str_is(labels_get(&labels, STR("app"), STR("")), "x"));
    assert_int_equal(labels_get(&labels, STR("jobset.sigs.k8s.io/jobset-name"), STR("")).len, 0);
    arena_done(&arena);
    harness_exit(&h, task, 0);
    assert_int_equal(job->state, JOB_COMPLETE);
    assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_DELETE, "one", NULL), 200);
    assert_null(find_job(&h, "one"));
    assert_int_equal((int)core_jobs(h.core)->jobsets.len, 0);
    harness_done(&h);
}

static void indexed_pods_carry_their_index(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "",
                          JOB("ix", "completionMode: Indexed, completions: 3, parallelism: 2, ", ""));
    harness_run_all(&h);
    assert_non_null(harness_task(&h, "ix-0"));
    assert_non_null(harness_task(&h, "ix-1"));
    assert_null(harness_task(&h, "ix-2"));
    exits(&h, "ix-0", 0);
    harness_run_all(&h);
    exits(&h, "ix-2", 0);
    assert_int_equal(find_job(&h, "ix")->state, JOB_ACTIVE);
    exits(&h, "ix-1", 0);
    assert_int_equal(find_job(&h, "ix")->state, JOB_COMPLETE);
    harness_done(&h);
}

static void the_success_policy_ends_a_job(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_write_checked(
        &h, OBJECT_JOB, WRITE_CREATE, "",
        JOB("sp",
            "completionMode: Indexed, completions: 3, parallelism: 3, successPolicy: {rules: "
            "[{succeededIndexes: '0,2', succeededCount: 1}]}, ",
            ""));
    harness_run_all(&h);
    exits(&h, "sp-1", 0);
    assert_int_equal(find_job(&h, "sp")->state, JOB_ACTIVE);
    exits(&h, "sp-2", 0);
    assert_int_equal(find_job(&h, "sp")->state, JOB_COMPLETING);
    harness_run_all(&h);
    assert_int_equal(find_job(&h, "sp")->state, JOB_COMPLETE);
    assert_int_equal(find_job(&h, "sp")->success_rule, 0);
    harness_done(&h);
}

static void a_work_queue_ends_with_its_first_success(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", JOB("wq", "parallelism: 2, ", ""));
    harness_run_all(&h);
    struct job *job = find_job(&h, "wq");
    assert_int_equal(job->active, 2);
    harness_exit(&h, first_living(job), 0);
    assert_int_equal(job->active, 1);
    assert_int_equal(job->state, JOB_ACTIVE);
    harness_exit(&h, first_living(job), 0);
    assert_int_equal(job->state, JOB_COMPLETE);
    harness_done(&h);
}

/* One Pod had succeeded and the others were stopped: nothing is left to run, and no report will come. */
static void a_work_queue_that_is_resumed_may_be_over(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", JOB("wq", "parallelism: 2, ", ""));
    harness_run_all(&h);
    harness_exit(&h, first_living(find_job(&h, "wq")), 0);
    harness_write_checked(&h, OBJECT_JOB, WRITE_REPLACE, "wq",
                          JOB("wq", "parallelism: 2, suspend: true, ", ""));
    harness_run_all(&h);
    struct job *job = find_job(&h, "wq");
    assert_int_equal(job->state, JOB_SUSPENDED);
    assert_int_equal(job->active, 0);
    assert_int_equal(job->jobset->terminal_state, TERMINAL_NONE);
    const char *resumed = JOB("wq", "parallelism: 2, suspend: false, ttlSecondsAfterFinished: 7, ", "");
    assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_REPLACE, "wq", resumed), 200);
    assert_int_equal(job->state, JOB_COMPLETE);
    assert_int_equal(job->jobset->terminal_state, TERMINAL_COMPLETED);
    harness_check_replay(&h);
    harness_wait(&h, 8 * NS_PER_SECOND);
    assert_null(find_job(&h, "wq"));
    harness_done(&h);
}

/* The Pod that succeeded has an index beyond the number of Pods that the queue is resumed with. */
static void a_smaller_work_queue_may_be_over(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", JOB("wq", "parallelism: 2, ", ""));
    harness_run_all(&h);
    struct job *job = find_job(&h, "wq");
    harness_exit(&h, job->indexes[1].task, 0);
    harness_write_checked(&h, OBJECT_JOB, WRITE_REPLACE, "wq",
                          JOB("wq", "parallelism: 1, suspend: true, ", ""));
    harness_run_all(&h);
    assert_int_equal(job->state, JOB_SUSPENDED);
    assert_int_equal(job->active, 0);
    const char *resumed = JOB("wq", "parallelism: 1, suspend: false, ", "");
    assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_REPLACE, "wq", resumed), 200);
    assert_int_equal(job->state, JOB_COMPLETE);
    assert_int_equal(job->jobset->terminal_state, TERMINAL_COMPLETED);
    harness_check_replay(&h);
    harness_done(&h);
}

static void parallelism_may_change(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 0);
    harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", JOB("p", "parallelism: 2, completions: 6, ", ""));
    harness_run_all(&h);
    struct job *job = find_job(&h, "p");
    assert_int_equal(job->active, 2);
    assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_REPLACE, "p",
                                           JOB("p", "parallelism: 4, completions: 6, ", "")),
                     200);
    harness_run_all(&h);
    assert_int_equal(job->active, 4);
    assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_REPLACE, "p",
                                           JOB("p", "parallelism: 1, completions: 6, ", "")),
                     200);
    harness_run_all(&h);
    assert_int_equal(job->active, 1);
    assert_int_equal(job->failed, 0);
    assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_REPLACE, "p",
                                           JOB("p", "parallelism: 1, completions: 7, ", "")),
                     422);
    harness_done(&h);
}

static void a_work_queue_grows_and_shrinks(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 0);
    harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", JOB("q", "parallelism: 1, ", ""));
    harness_run_all(&h);
    harness_write_checked(&h, OBJECT_JOB, WRITE_REPLACE, "q", JOB("q", "parallelism: 5, ", ""));
    harness_run_all(&h);
    assert_int_equal(find_job(&h, "q")->active, 5);
    harness_write_checked(&h, OBJECT_JOB, WRITE_REPLACE, "q", JOB("q", "parallelism: 2, ", ""));
    harness_run_all(&h);
    assert_int_equal(find_job(&h, "q")->active, 2);
    harness_check_replay(&h);
    harness_exit(&h, first_living(find_job(&h, "q")), 0);
    harness_exit(&h, first_living(find_job(&h, "q")), 0);
    assert_int_equal(find_job(&h, "q")->state, JOB_COMPLETE);
    harness_done(&h);
}

static void suspend_and_deadline_and_ttl(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", JOB("s", "suspend: true, ", ""));
    assert_int_equal(find_job(&h, "s")->state, JOB_SUSPENDED);
    assert_int_equal(find_job(&h, "s")->active, 0);
    harness_write_checked(
        &h, OBJECT_JOB, WRITE_REPLACE, "s",
        JOB("s", "suspend: false, activeDeadlineSeconds: 5, ttlSecondsAfterFinished: 7, ", ""));
    harness_run_all(&h);
    assert_int_equal(find_job(&h, "s")->active, 1);
    harness_wait(&h, 5 * NS_PER_SECOND);
    harness_run_all(&h);
    assert_string_equal(find_job(&h, "s")->reason, "DeadlineExceeded");
    assert_int_equal(find_job(&h, "s")->state, JOB_FAILED);
    harness_wait(&h, 8 * NS_PER_SECOND);
    assert_null(find_job(&h, "s"));
    harness_done(&h);
}

static void a_template_is_fixed_once_it_ran(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", JOB("t", "suspend: true, ", ""));
    assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_REPLACE, "t",
                                           JOB("t", "suspend: true, ", "nodeSelector: {a: b}, ")),
                     200);
    assert_int_equal(
        harness_write_checked(&h, OBJECT_JOB, WRITE_REPLACE, "t",
                              JOB("t", "suspend: true, ", "nodeSelector: {a: b}, hostname: h, ")),
        422);
    assert_non_null(strstr(h.last_message, "spec.template.spec.hostname"));
    harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", JOB("u", "", ""));
    assert_int_equal(
        harness_write_checked(&h, OBJECT_JOB, WRITE_REPLACE, "u", JOB("u", "", "nodeSelector: {a: b}, ")),
        422);
    assert_non_null(strstr(h.last_message, "Job.batch \"u\" is invalid: spec.template: Invalid value"));
    assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_REPLACE, "u", JOB("u", "", "")), 200);
    assert_int_equal((int)find_job(&h, "u")->jobset->generation, 1); /* the same again is no change */
    harness_done(&h);
}

static void a_deleted_job_is_seen_until_its_processes_are_dead(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", JOB("d", "parallelism: 2, completions: 2, ", ""));
    harness_run_all(&h);
    harness_write_checked(&h, OBJECT_JOB, WRITE_DELETE, "d", NULL);
    assert_non_null(find_job(&h, "d"));
    assert_int_not_equal(find_job(&h, "d")->jobset->deleted_ns, 0);
    assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", JOB("d", "", "")), 409);
    harness_check_replay(&h);
    harness_run_all(&h);
    assert_null(find_job(&h, "d"));
    assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", JOB("d", "", "")), 201);
    harness_done(&h);
}

static void a_pod_runs_under_its_name(void **state)
{
    struct harness h;
    int jobs = 0;
    harness_init(&h, 2, 4, 0);
    assert_int_equal(
        harness_write_checked(&h, OBJECT_POD, WRITE_CREATE, "", POD("p", "restartPolicy: Never, ")), 201);
    assert_int_equal(
        harness_write_checked(&h, OBJECT_POD, WRITE_CREATE, "", POD("p", "restartPolicy: Never, ")), 409);
    assert_string_equal(h.last_message, "pods \"p\" already exists");
    harness_run_all(&h);
    struct task *task = find_pod(&h, "p");
    assert_int_equal(task->state, TASK_RUNNING);
    assert_true(str_is(task->hostname, "p"));
    jobs_visit_jobs(core_jobs(h.core), count_job, &jobs);
    assert_int_equal(jobs, 0);
    struct arena arena = {0};
    struct labels labels = job_labels(task->job, task, &arena);
    assert_int_equal(labels.len, 1);
    arena_done(&arena);
    harness_exit(&h, task, 3);
    assert_int_equal(find_pod(&h, "p")->state, TASK_FAILED); /* and nothing is made in its place */
    harness_wait(&h, 100 * NS_PER_SECOND);
    assert_int_equal(find_pod(&h, "p")->state, TASK_FAILED);
    harness_write_checked(&h, OBJECT_POD, WRITE_DELETE, "p", NULL);
    assert_null(find_pod(&h, "p"));
    harness_done(&h);
}

static void a_deleted_pod_goes_when_it_is_dead(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_write_checked(&h, OBJECT_POD, WRITE_CREATE, "", POD("p", "restartPolicy: Never, "));
    harness_run_all(&h);
    harness_write_checked(&h, OBJECT_POD, WRITE_DELETE, "p", NULL);
    assert_int_equal(find_pod(&h, "p")->state, TASK_STOPPING);
    harness_run_all(&h);
    assert_null(find_pod(&h, "p"));
    assert_int_equal(harness_write_checked(&h, OBJECT_POD, WRITE_CREATE, "", POD("p", "")), 201);
    harness_done(&h);
}

static void equal_names_are_refused(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 0);
    assert_int_equal(harness_write_checked(&h, OBJECT_JOBSET, WRITE_CREATE, "",
                                           JOBSET("a-b", "", RJOB("c", 1, "", 1, ""))),
                     201);
    assert_int_equal(harness_write_checked(&h, OBJECT_JOBSET, WRITE_CREATE, "",
                                           JOBSET("a", "", RJOB("b-c", 2, "", 1, ""))),
                     409);
    assert_string_equal(h.last_message, "jobs.batch \"a-b-c-0\" already exists");
    assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", JOB("a-b-c-0", "", "")), 409);
    assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", JOB("a-b-c-1", "", "")), 201);
    assert_int_equal(harness_write_checked(&h, OBJECT_JOBSET, WRITE_CREATE, "",
                                           JOBSET("a-b-c", "", RJOB("x", 1, "", 1, ""))),
                     201);
    assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", JOB("x-z-0", "", "")), 201);
    assert_int_equal(
        harness_write_checked(&h, OBJECT_JOBSET, WRITE_CREATE, "", JOBSET("x", "", RJOB("z", 1, "", 1, ""))),
        409);
    harness_done(&h);
}

static void children_are_changed_where_they_come_from(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, JOBSET("a", "", RJOB("w", 1, "", 1, "")));
    assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_REPLACE, "a-w-0", JOB("a-w-0", "", "")),
                     403);
    assert_int_equal(
        harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", JOB("neg", "backoffLimit: -1, ", "")), 422);
    assert_non_null(strstr(h.last_message, "spec.backoffLimit: Invalid value: -1"));
    assert_int_equal(harness_write_checked(&h, OBJECT_POD, WRITE_CREATE, "",
                                           "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n"
                                           "spec: {containers: []}\n"),
                     422);
    assert_non_null(strstr(h.last_message, "Pod \"x\" is invalid: spec.containers"));
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_runs_and_completes),
        cmocka_unit_test(indexed_pods_carry_their_index),
        cmocka_unit_test(the_success_policy_ends_a_job),
        cmocka_unit_test(a_work_queue_ends_with_its_first_success),
        cmocka_unit_test(a_work_queue_that_is_resumed_may_be_over),
        cmocka_unit_test(a_smaller_work_queue_may_be_over),
        cmocka_unit_test(parallelism_may_change),
        cmocka_unit_test(a_work_queue_grows_and_shrinks),
        cmocka_unit_test(suspend_and_deadline_and_ttl),
        cmocka_unit_test(a_template_is_fixed_once_it_ran),
        cmocka_unit_test(a_deleted_job_is_seen_until_its_processes_are_dead),
        cmocka_unit_test(a_pod_runs_under_its_name),
        cmocka_unit_test(a_deleted_pod_goes_when_it_is_dead),
        cmocka_unit_test(equal_names_are_refused),
        cmocka_unit_test(children_are_changed_where_they_come_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
