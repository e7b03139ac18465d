/* Pods that name their machine: taken or refused by it, as a kubelet would. */
#include "core/job/story.h"

#define NAMED(fields, node, resources)                                                                       \
    "spec: {" fields "nodeName: " node ", containers: [{name: main, image: i, command: [run], resources: {"  \
    "requests: {" resources "}}}]}"
#define POD(name, node, resources)                                                                           \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: " name "}\n" NAMED("", node, resources) "\n"
#define JOB(name, fields, node, resources)                                                                   \
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: " name "}\nspec: {" fields                            \
    "template: {" NAMED("restartPolicy: Never, ", node, resources) "}}\n"
#define TPU(count) "google.com/tpu: " #count

static const struct task *pod(struct harness *h, const char *name)
{
    return jobs_find_pod(core_jobs(h->core), STR("default"), str_from(name));
}

static const char *machine_of(struct harness *h, const struct task *task)
{
    assert_true(task->machine != MACHINE_NONE);
    return core_cluster(h->core)->machines[task->machine].name.data;
}

static void cordon(struct harness *h, const char *machine)
{
    static const char body[] = "{\"spec\":{\"unschedulable\":true}}";
    struct event event = {.kind = EVENT_WRITE};
    event.write = (struct write_event){.verb = WRITE_REPLACE,
                                       .object = OBJECT_NODE,
                                       .name = str_from(machine),
                                       .body = str_from(body),
                                       .grace_s = -1};
    harness_step(h, &event);
    assert_int_equal(h->last_code, 200);
}

/* The spare too, and a cordoned machine: the scheduler is not asked. */
static void it_runs_where_it_says(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 1);
    cordon(&h, "m-2");
    assert_int_equal(harness_write_checked(&h, OBJECT_POD, WRITE_CREATE, "", POD("a", "m-1", TPU(1))), 201);
    assert_int_equal(harness_write_checked(&h, OBJECT_POD, WRITE_CREATE, "", POD("b", "m-2", TPU(1))), 201);
    assert_int_equal(harness_write_checked(&h, OBJECT_POD, WRITE_CREATE, "", POD("c", "m-4", TPU(4))), 201);
    assert_string_equal(machine_of(&h, pod(&h, "a")), "m-1");
    assert_string_equal(machine_of(&h, pod(&h, "b")), "m-2");
    assert_string_equal(machine_of(&h, pod(&h, "c")), "m-4");
    harness_run_all(&h);
    assert_int_equal(pod(&h, "b")->state, TASK_RUNNING);
    harness_exit(&h, (struct task *)pod(&h, "b"), 0);
    assert_int_equal(pod(&h, "b")->state, TASK_SUCCEEDED);
    harness_done(&h);
    (void)state;
}

static void assert_refused(struct harness *h, const char *name, const char *reason, const char *message)
{
    const struct task *task = pod(h, name);
    assert_non_null(task);
    assert_int_equal(task->state, TASK_FAILED);
    assert_int_equal(task->end, END_REFUSED);
    assert_string_equal(task->reason.data, reason);
    char text[256];
    snprintf(text, sizeof(text), "Pod was rejected: %s", message);
    assert_string_equal(task->message.data, text);
    assert_note(h, true, reason, message);
}

static void it_fails_where_it_does_not_fit(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    assert_int_equal(harness_write_checked(&h, OBJECT_POD, WRITE_CREATE, "", POD("a", "m-2", TPU(3))), 201);
    assert_int_equal(harness_write_checked(&h, OBJECT_POD, WRITE_CREATE, "", POD("b", "m-2", TPU(2))), 201);
    assert_refused(&h, "b", "OutOfgoogle.com/tpu",
                   "Node didn't have enough resource: google.com/tpu, requested: 2, used: 3, capacity: 4");
    static const char elsewhere[] =
        "apiVersion: v1\nkind: Pod\nmetadata: {name: c}\nspec: {nodeName: m-1, nodeSelector: {no: such}, "
        "containers: [{name: main, image: i, command: [run]}]}\n";
    assert_int_equal(harness_write_checked(&h, OBJECT_POD, WRITE_CREATE, "", elsewhere), 201);
    assert_refused(&h, "c", "NodeAffinity",
                   "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector");
    assert_int_equal(idle_chips(&h), 5);
    harness_done(&h);
    (void)state;
}

/* Unknown, or away: it waits, and delays nobody; it is judged when the machine comes. */
static void it_waits_for_its_machine(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_lose(&h, "m-1");
    assert_int_equal(harness_write_checked(&h, OBJECT_POD, WRITE_CREATE, "", POD("a", "m-1", TPU(4))), 201);
    assert_int_equal(harness_write_checked(&h, OBJECT_POD, WRITE_CREATE, "", POD("b", "nowhere", TPU(1))),
                     201);
    assert_int_equal(harness_write_checked(&h, OBJECT_POD, WRITE_CREATE, "", POD("c", "m-1", TPU(1))), 201);
    harness_wait(&h, 3600 * NS_PER_SECOND);
    harness_create(&h, JOBSET("whole", "", RJOB("w", 1, "", 4, "")));
    assert_int_equal(harness_task(&h, "whole-w-0-0")->state, TASK_STARTING);
    assert_int_equal(pod(&h, "a")->state, TASK_PENDING);
    assert_int_equal(pod(&h, "b")->state, TASK_PENDING);
    assert_non_null(strstr(pod(&h, "b")->gang->why.data, "not the one of spec.nodeName"));
    harness_hello(&h, "m-1", NULL, 0);
    assert_string_equal(machine_of(&h, pod(&h, "a")), "m-1");
    assert_int_equal(pod(&h, "b")->state, TASK_PENDING);
    assert_int_equal(pod(&h, "c")->end, END_REFUSED);
    harness_done(&h);
    (void)state;
}

/* Each pod of a Job for itself: those that fit run, the others count as failed and are tried again later. */
static void pods_of_a_job_are_judged_one_by_one(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    assert_int_equal(
        harness_write_checked(
            &h, OBJECT_JOB, WRITE_CREATE, "",
            JOB("j", "parallelism: 3, completions: 3, completionMode: Indexed, ", "m-1", TPU(2))),
        201);
    const struct job *job = job_of(&h, "j");
    assert_int_equal(job->active, 2);
    assert_int_equal(job->failed, 1);
    harness_run_all(&h);
    exits(&h, "j-0", 0);
    exits(&h, "j-1", 0);
    harness_wait(&h, 11 * NS_PER_SECOND);
    harness_run_all(&h);
    exits(&h, "j-2", 0);
    assert_int_equal(job->state, JOB_COMPLETE);
    assert_int_equal(
        harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", JOB("k", "backoffLimit: 1, ", "m-2", TPU(5))),
        201);
    harness_wait(&h, 60 * NS_PER_SECOND);
    assert_job_failed(&h, "k", "BackoffLimitExceeded", "Job has reached the specified backoff limit");
    harness_done(&h);
    (void)state;
}

/* The restarts of a refused JobSet end: by maxRestarts, or by the guard against crash loops. */
static void a_jobset_that_is_refused_ends(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(
        &h, JOBSET("a", "failurePolicy: {maxRestarts: 2}, ",
                   "{name: w, template: {spec: {parallelism: 1, completions: 1, backoffLimit: 0, template: {"
                   "spec: {restartPolicy: Never, nodeName: m-1, containers: [{name: c, image: i, "
                   "command: [x], resources: {limits: {google.com/tpu: 5}}}]}}}}}"));
    assert_int_equal(jobset->terminal_state, TERMINAL_FAILED);
    assert_int_equal(jobset->restarts, 2);
    jobset = harness_create(
        &h, JOBSET("b", "failurePolicy: {maxRestarts: 1000000}, ",
                   "{name: w, template: {spec: {parallelism: 1, completions: 1, backoffLimit: 0, template: {"
                   "spec: {restartPolicy: Never, nodeName: m-1, containers: [{name: c, image: i, "
                   "command: [x], resources: {limits: {google.com/tpu: 5}}}]}}}}}"));
    assert_int_equal(jobset->terminal_state, TERMINAL_NONE);
    assert_in_range(jobset->restarts, 1, RESTART_RECORDS_MAX);
    harness_done(&h);
    (void)state;
}

static void the_name_stays(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    static const char free[] = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: "
                               "main, image: i, command: [run]}]}\n";
    assert_int_equal(harness_write_checked(&h, OBJECT_POD, WRITE_CREATE, "", free), 201);
    char same[400], other[400];
    const char *here = machine_of(&h, pod(&h, "a"));
    snprintf(same, sizeof(same),
             "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {x: z}}\nspec: {nodeName: %s, "
             "containers: [{name: main, image: i, command: [run]}]}\n",
             here);
    snprintf(other, sizeof(other),
             "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {nodeName: elsewhere, "
             "containers: [{name: main, image: i, command: [run]}]}\n");
    assert_int_equal(harness_write_checked(&h, OBJECT_POD, WRITE_REPLACE, "a", same), 200);
    assert_int_equal(harness_write_checked(&h, OBJECT_POD, WRITE_REPLACE, "a", free), 200);
    assert_int_equal(harness_write_checked(&h, OBJECT_POD, WRITE_REPLACE, "a", other), 422);
    assert_non_null(strstr(h.last_message, "spec: Forbidden: pod updates may not change fields other than"));
    assert_int_equal(harness_write_checked(&h, OBJECT_POD, WRITE_CREATE, "", POD("b", "Bad_Name", TPU(1))),
                     422);
    static const char gated[] = "apiVersion: v1\nkind: Pod\nmetadata: {name: g}\nspec: {nodeName: m-2, "
                                "schedulingGates: [{name: x}], containers: [{name: main, image: i, "
                                "command: [run]}]}\n";
    assert_int_equal(harness_write_checked(&h, OBJECT_POD, WRITE_CREATE, "", gated), 422);
    assert_non_null(strstr(h.last_message, "until all schedulingGates have been cleared"));
    harness_done(&h);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_runs_where_it_says),
        cmocka_unit_test(it_fails_where_it_does_not_fit),
        cmocka_unit_test(it_waits_for_its_machine),
        cmocka_unit_test(pods_of_a_job_are_judged_one_by_one),
        cmocka_unit_test(a_jobset_that_is_refused_ends),
        cmocka_unit_test(the_name_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
