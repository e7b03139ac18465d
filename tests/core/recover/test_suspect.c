/* A machine that ends attempts of different jobs: suspected, shown, avoided, forgiven after a day. */
#include "../harness.h"

#include "core/health/fault.h"

#define DAY_NS (INT64_C(24) * 3600 * NS_PER_SECOND)

static void submit(struct harness *h, const char *name, int tasks)
{
    char yaml[1024];
    snprintf(yaml, sizeof(yaml),
             "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: %s}\nspec:\n"
             "  failurePolicy: {maxRestarts: 100}\n  replicatedJobs:\n  - name: w\n    template: {spec: "
             "{parallelism: %d, completions: %d, backoffLimit: 0, template: {spec: {restartPolicy: Never, "
             "containers: [{name: c, image: i, command: [run], resources: {limits: {google.com/tpu: 4}}}]}}}}"
             "\n",
             name, tasks, tasks);
    harness_create(h, yaml);
    harness_run_all(h);
}

static void strike(struct harness *h, const char *machine)
{
    harness_lose(h, machine);
    h->now_ns += 10 * NS_PER_SECOND;
    harness_hello(h, machine, NULL, 0);
    harness_run_all(h);
    core_check_invariants(h->core);
}

static const struct machine *machine_of(struct harness *h, const char *name)
{
    return cluster_find(core_cluster(h->core), str_from(name));
}

static const char *where(struct harness *h, const char *hostname)
{
    return core_cluster(h->core)->machines[harness_task(h, hostname)->machine].name.data;
}

static void remove_jobset(struct harness *h, const char *name)
{
    harness_write(h, WRITE_DELETE, name, NULL);
    for (size_t i = 0; i < core_cluster(h->core)->machine_count; i++)
        harness_run_all(h);
}

static void two_jobs_make_a_suspect(void **state)
{
    struct harness h;
    harness_init(&h, 3, 4, 0);
    submit(&h, "a", 1);
    assert_string_equal(where(&h, "a-w-0-0"), "m-1");
    strike(&h, "m-1"); /* it goes elsewhere */
    assert_string_equal(where(&h, "a-w-0-0"), "m-2");
    assert_false(machine_of(&h, "m-1")->suspect);
    submit(&h, "b", 1); /* one failure is nothing */
    assert_string_equal(where(&h, "b-w-0-0"), "m-1");
    strike(&h, "m-1");
    assert_true(machine_of(&h, "m-1")->suspect);
    assert_true(machine_schedulable(machine_of(&h, "m-1")));
    const struct fault *fault = fault_of_machine(core_health(h.core), STR("m-1"));
    assert_true(str_is(fault->code, SUSPECT_FAULT) && fault->open && fault->level == LEVEL_NOT_HANDLE);
    assert_true(
        str_is(buf_str(&fault->evidence), "it ended an attempt of default/b, and one of default/a before"));
    assert_string_equal(where(&h, "b-w-0-0"), "m-3");
    submit(&h, "c", 1); /* nothing else is free */
    assert_string_equal(where(&h, "c-w-0-0"), "m-1");
    harness_done(&h);
}

static void the_same_job_twice_is_its_own_affair(void **state)
{
    struct harness h;
    harness_init(&h, 1, 4, 0);
    submit(&h, "a", 1);
    strike(&h, "m-1");
    strike(&h, "m-1");
    assert_false(machine_of(&h, "m-1")->suspect);
    assert_null(fault_of_machine(core_health(h.core), STR("m-1")));
    harness_done(&h);
}

static void one_loss_of_two_jobs_is_one(void **state)
{
    struct harness h;
    harness_init(&h, 2, 8, 0);
    submit(&h, "a", 1);
    submit(&h, "b", 1);
    assert_string_equal(where(&h, "a-w-0-0"), where(&h, "b-w-0-0"));
    strike(&h, "m-1");
    assert_false(machine_of(&h, "m-1")->suspect);
    harness_done(&h);
}

static void what_a_program_does_says_nothing(void **state)
{
    struct harness h;
    harness_init(&h, 1, 8, 0);
    submit(&h, "a", 1);
    harness_exit(&h, harness_task(&h, "a-w-0-0"), 1);
    harness_wait(&h, 10 * NS_PER_SECOND);
    submit(&h, "b", 1);
    harness_exit(&h, harness_task(&h, "b-w-0-0"), 1);
    assert_false(machine_of(&h, "m-1")->suspect);
    harness_done(&h);
}

static void a_day_later_it_is_forgiven(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    submit(&h, "a", 1);
    strike(&h, "m-1");
    submit(&h, "b", 1);
    strike(&h, "m-1");
    assert_true(machine_of(&h, "m-1")->suspect);
    remove_jobset(&h, "a");
    harness_wait(&h, DAY_NS - 60 * NS_PER_SECOND);
    assert_true(machine_of(&h, "m-1")->suspect);
    harness_wait(&h, 120 * NS_PER_SECOND);
    assert_false(machine_of(&h, "m-1")->suspect);
    assert_null(fault_of_machine(core_health(h.core), STR("m-1")));
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_jobs_make_a_suspect),     cmocka_unit_test(the_same_job_twice_is_its_own_affair),
        cmocka_unit_test(one_loss_of_two_jobs_is_one), cmocka_unit_test(what_a_program_does_says_nothing),
        cmocka_unit_test(a_day_later_it_is_forgiven),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
