/* The losses that the ladder answers, and those that the failure policy does. */
#include "core/job/story.h"

#include "core/recover/internal.h"
#include "core/recover/ask.h"
#include "core/step.h"

#define TRAIN(meta, spec)                                                                                    \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a" meta "}\nspec: {" spec          \
    "replicatedJobs: [{name: w, replicas: 1, template: {spec: {parallelism: 2, completions: 2, "             \
    "backoffLimit: 0, " POD_OF("", "4") "}}}]}\n"
#define NOTED(key, value) ", annotations: {" key ": '" value "'}"
#define MAX2              "failurePolicy: {maxRestarts: 2}, "

enum { CAN = 1, CANNOT = 2, NO_JOIN = 3 };

static struct jobset *begin(struct harness *h, const char *yaml, int first, int second)
{
    harness_init(h, 4, 4, 1);
    struct jobset *jobset = harness_create(h, yaml);
    harness_run_all(h);
    for (int i = 0; i < 2; i++) {
        int how = i ? second : first;
        struct task *task = jobset->jobs[0]->tasks.items[i];
        struct task_report report = {
            .kind = REPORT_JOINED, .task = task->uid, .attempt_plus_1 = 1, .can_rejoin = how == CAN};
        if (how != NO_JOIN)
            harness_report(h, &report, task->machine);
    }
    return jobset;
}

/* Returns the ladder's answer if the ranks from `first` on end so in one step, the one after the other. */
static struct recovery ask_all(struct harness *h, const struct jobset *jobset, size_t first,
                               enum task_end end, int exit_code)
{
    struct incident incident = {0};
    struct step step = {.cluster = (struct cluster *)core_cluster(h->core),
                        .jobs = (struct job_store *)core_jobs(h->core),
                        .now_ns = h->now_ns};
    struct task *const *tasks = jobset->jobs[0]->tasks.items;
    int32_t before[2] = {tasks[0]->exit_code, tasks[1]->exit_code};
    uint8_t ends[2] = {tasks[0]->end, tasks[1]->end};
    for (size_t i = first; i < 2; i++) {
        tasks[i]->exit_code = exit_code;
        tasks[i]->end = (uint8_t)end;
        incident_note(&incident, tasks[i]->uid, (uint8_t)end);
    }
    incident_judge(&step, &incident);
    struct recovery recovery =
        recovery_ask(&step, jobset, (struct trouble){TROUBLE_LOSSES, .incident = &incident});
    incident_done(&incident);
    for (size_t i = 0; i < 2; i++) {
        tasks[i]->exit_code = before[i];
        tasks[i]->end = ends[i];
    }
    return recovery;
}

static struct recovery ask(struct harness *h, const struct jobset *jobset, enum task_end end, int exit_code)
{
    return ask_all(h, jobset, 1, end, exit_code);
}

static void by_kind_of_loss(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, TRAIN("", MAX2), CAN, CAN);
    struct recovery recovery = ask(&h, jobset, END_EXIT, 1);
    assert_true(recovery.rung == RUNG_RESTART_PROCESS && recovery.counted);
    assert_string_equal(rung_name(recovery.rung), "restart-process");
    recovery = ask(&h, jobset, END_MACHINE_LOST, 0);
    assert_true(recovery.rung == RUNG_REPLACE_MACHINE && !recovery.counted);
    struct task *task = jobset->jobs[0]->tasks.items[1];
    task->evicted = true;
    recovery = ask(&h, jobset, END_STOPPED, 143);
    assert_true(recovery.rung == RUNG_REPLACE_MACHINE && !recovery.counted);
    task->evicted = false;
    task->fenced = true; /* the machine was cut off */
    recovery = ask(&h, jobset, END_EXIT, 9);
    assert_true(recovery.rung == RUNG_RESTART_PROCESS && !recovery.counted);
    task->fenced = false;
    assert_int_equal(ask(&h, jobset, END_EXIT, 0).rung, RUNG_REQUEUE); /* never a failure */
    assert_int_equal(ask(&h, jobset, END_REFUSED, 0).rung, RUNG_REQUEUE);
    jobset->recovery.in_place_counted =
        2; /* no more of its own; what infrastructure caused is never counted */
    assert_int_equal(ask(&h, jobset, END_EXIT, 1).rung, RUNG_REQUEUE);
    assert_int_equal(ask(&h, jobset, END_MACHINE_LOST, 0).rung, RUNG_REPLACE_MACHINE);
    jobset->recovery.in_place_counted = 0;
    harness_done(&h);
}

static void by_what_processes_can(void **state)
{
    static const struct {
        const char *yaml;
        int first, second;
        enum rung rung;
    } cases[] = {
        {TRAIN("", MAX2), CAN, CANNOT, RUNG_REQUEUE},
        {TRAIN("", MAX2), CANNOT, CAN, RUNG_REQUEUE},
        {TRAIN("", MAX2), NO_JOIN, CAN, RUNG_REQUEUE},
        {TRAIN("", MAX2), CAN, NO_JOIN, RUNG_REQUEUE},
        {TRAIN(NOTED("phalanx.dev/recovery", "restart-process"), MAX2), NO_JOIN, CANNOT,
         RUNG_RESTART_PROCESS},
        {TRAIN(NOTED("phalanx.dev/recovery", "off"), MAX2), CAN, CAN, RUNG_REQUEUE},
        {TRAIN(NOTED("jobset.sigs.k8s.io/disable-in-place-restart", "true"), MAX2), CAN, CAN, RUNG_REQUEUE},
        {TRAIN("", ""), CAN, CAN, RUNG_REQUEUE}, /* no failure of its own is allowed */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct harness h;
        struct jobset *jobset = begin(&h, cases[i].yaml, cases[i].first, cases[i].second);
        if (ask(&h, jobset, END_EXIT, 1).rung != cases[i].rung)
            fail_msg("case %zu: %s", i, rung_name(ask(&h, jobset, END_EXIT, 1).rung));
        harness_done(&h);
    }
}

static void not_once_it_ends(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, TRAIN("", MAX2), CAN, CAN);
    struct task *zero = jobset->jobs[0]->tasks.items[0];
    assert_true(recovery_keeps(zero));
    harness_exit(&h, zero, 0);
    assert_false(recovery_keeps(zero));
    assert_int_equal(ask(&h, jobset, END_MACHINE_LOST, 0).rung, RUNG_REQUEUE); /* a rank is through */
    harness_write(&h, WRITE_DELETE, "a", NULL);
    harness_run_all(&h);
    harness_done(&h);
}

/* A Job of its own: failures of its processes count towards its backoffLimit. */
static void own_jobs_count_for_themselves(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 1);
    assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "",
                                           "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n"
                                           "spec: {parallelism: 2, completions: 2, backoffLimit: 1, "
                                           "completionMode: Indexed, " POD_OF("", "4") "}\n"),
                     201);
    struct jobset *jobset = vec_last(&core_jobs(h.core)->jobsets);
    for (int run = 0; run < 2; run++) {
        harness_run_all(&h);
        for (int i = 0; i < 2; i++) {
            struct task *task = jobset->jobs[0]->tasks.items[i];
            struct task_report report = {.kind = REPORT_JOINED,
                                         .task = task->uid,
                                         .attempt_plus_1 = (uint32_t)task->attempt + 1,
                                         .can_rejoin = true};
            harness_report(&h, &report, task->machine);
        }
        progress_to(&h, jobset, 5 + run);
        harness_exit(&h, jobset->jobs[0]->tasks.items[1], 1);
        assert_int_equal(jobset->attempt, 1);
        assert_int_equal(jobset->jobs[0]->tasks.items[0]->state, run ? TASK_STOPPING : TASK_RUNNING);
    }
    harness_run_all(&h);
    assert_int_equal(jobset->jobs[0]->state, JOB_FAILED);
    assert_string_equal(jobset->jobs[0]->reason, "BackoffLimitExceeded");
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_kind_of_loss),
        cmocka_unit_test(by_what_processes_can),
        cmocka_unit_test(not_once_it_ends),
        cmocka_unit_test(own_jobs_count_for_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
