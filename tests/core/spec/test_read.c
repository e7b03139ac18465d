#include "core/spec/spec_test.h"

static struct jobset_spec read_manifest(struct arena *arena, const char *name)
{
    struct buf errors = {0};
    struct jobset_spec spec = {0};
    struct doc *doc = load(arena, name);
    check_write(arena, doc, &spec, &errors);
    if (errors.len > 0)
        fail_msg("%s: %s", name, errors.data);
    buf_done(&errors);
    return spec;
}

static void assert_str(struct str got, const char *expected)
{
    if (!str_is(got, expected))
        fail_msg("\"%.*s\" is not \"%s\"", STR_ARG(got), expected);
}

static void pytorch(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    struct jobset_spec spec = read_manifest(&arena, "pytorch");
    assert_int_equal(spec.rjob_count, 1);
    assert_true(spec.has_failure_policy && spec.max_restarts == 3 && spec.strategy == RESTART_RECREATE);
    assert_true(!spec.suspend && spec.ttl_s == 86400 && spec.dns_hostnames && spec.publish_not_ready &&
                !spec.in_order);
    assert_str(spec.coordinator, "resnet-worker-0-0.resnet");
    assert_str(labels_get(&spec.labels, STR("team"), STR("")), "vision");
    const struct rjob_spec *rjob = &spec.rjobs[0];
    assert_str(rjob->name, "worker");
    assert_str(rjob->group, "default");
    assert_int_equal(rjob->replicas, 1);
    assert_true(rjob->job.indexed && rjob->job.parallelism == 4 && rjob->job.completions == 4);
    assert_true(rjob->job.backoff_limit == 0 && rjob->job.backoff_limit_per_index == -1);
    const struct pod_spec *pod = &rjob->job.pod;
    assert_str(pod->container, "torch");
    assert_str(pod->command[0], "torchrun");
    assert_int_equal(pod->arg_count, 4);
    assert_str(pod->chip_resource, "nvidia.com/gpu");
    assert_int_equal(pod->chips, 8);
    assert_true(pod->cpu_milli == 64000 && pod->cpu_request_milli == 32000);
    assert_true(pod->memory_bytes == INT64_C(512) << 30 && pod->memory_request_bytes == pod->memory_bytes);
    assert_int_equal(pod->env_count, 3);
    assert_true(pod->env[0].source == ENV_VALUE && pod->env[1].source == ENV_FIELD &&
                pod->env[2].source == ENV_RESOURCE);
    assert_str(pod->env[2].value, "limits.memory");
    assert_str(pod->node_selector.items[0].key, "disk"); /* sorted */
    assert_true(pod->toleration_count == 1 && str_is(pod->tolerations[0].op, "Exists"));
    assert_true(pod->grace_s == 60 && pod->active_deadline_s == -1 && pod->run_as_user == -1);
    assert_true(pod->restart_policy == RESTART_ON_FAILURE && !pod->host_network);
    assert_str(pod->priority_class, "training");
}

static void jax(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    struct jobset_spec spec = read_manifest(&arena, "jax");
    assert_true(spec.strategy == RESTART_BLOCKING_RECREATE && spec.rjobs[0].replicas == 2);
    assert_str(spec.rjobs[0].exclusive_topology, "cloud.example.com/slice");
    assert_true(spec.rjobs[0].job.pod.chips == 4 && spec.rjobs[0].job.pod.host_network);
    assert_int_equal(spec.ttl_s, -1);
    assert_int_equal(spec.coordinator.len, 0);
}

static void driver_worker(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    struct jobset_spec spec = read_manifest(&arena, "driver-worker");
    assert_str(spec.subdomain, "rl-net");
    assert_true(spec.success_operator == OPERATOR_ALL && spec.success_targets[0] && !spec.success_targets[1]);
    assert_true(spec.rjobs[1].depend_count == 1 && spec.rjobs[1].depends[0].rjob == 0);
    assert_int_equal(spec.rjobs[1].depends[0].status, DEPENDS_READY);
    assert_str(spec.rjobs[1].group, "rollout");
    assert_int_equal(spec.rjobs[0].job.pod.restart_policy, RESTART_NEVER);
    assert_int_equal(spec.rjobs[0].job.pod.chips, 0);
    assert_int_equal(spec.rjobs[0].job.pod.grace_s, 30);
    assert_int_equal(spec.rjobs[1].job.pod.memory_bytes, 1500000000);
}

static void policies(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    struct jobset_spec spec = read_manifest(&arena, "policies");
    assert_true(spec.success_operator == OPERATOR_ANY && !spec.success_targets && spec.rule_count == 3);
    assert_str(spec.rules[0].name, "bad_config");
    assert_str(spec.rules[1].name, "failurePolicyRule1");
    assert_true(spec.rules[0].action == FAILURE_FAIL_JOBSET && spec.rules[0].reason_count == 1);
    assert_true(spec.rules[1].action == FAILURE_RESTART_JOBSET_IGNORE_MAX && !spec.rules[1].targets);
    assert_true(spec.rules[2].action == FAILURE_RESTART_JOB && !spec.rules[2].targets[0] &&
                spec.rules[2].targets[1]);
    const struct job_spec *job = &spec.rjobs[0].job;
    assert_true(job->active_deadline_s == 3600 && job->replace_failed_only &&
                job->pod_failure_rule_count == 2);
    assert_true(job->pod_failure_rules[0].on_exit_codes && job->pod_failure_rules[0].code_count == 2);
    assert_int_equal(job->pod_failure_rules[0].codes[1], 43);
    assert_str(job->pod_failure_rules[1].conditions[0].key, "DisruptionTarget");
    assert_str(job->pod_failure_rules[1].conditions[0].value, "True");
    assert_true(job->pod.run_as_user == 1001 && job->pod.run_as_group == 1000);
    assert_str(job->pod.working_dir, "/srv/train");
    assert_str(job->pod.chip_resource, "huawei.com/Ascend910");
    assert_true(!spec.rjobs[1].job.indexed && spec.rjobs[1].job.completions == -1);
}

static void the_others(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    struct jobset_spec order = read_manifest(&arena, "in-order");
    assert_true(order.in_order && order.rjobs[1].replicas == 3 && order.rjobs[0].job.backoff_limit == 6);
    struct jobset_spec exclusive = read_manifest(&arena, "exclusive");
    assert_true(exclusive.suspend && exclusive.rjobs[0].exclusive_topology.len == 0);
    assert_str(exclusive.rjobs[1].exclusive_topology, "example.com/rack");
    assert_true(exclusive.rjobs[0].job.parallelism == 1 && exclusive.rjobs[0].job.completions == 1);
    struct jobset_spec volumes = read_manifest(&arena, "volumes");
    const struct pod_spec *pod = &volumes.rjobs[0].job.pod;
    assert_str(pod->container, "main");
    assert_int_equal(pod->chips, 6);     /* 4 + 2 of the containers; the init container's 1 is less */
    assert_int_equal(pod->env_count, 2); /* one of them from a Secret */
}

static void counts_depend_on_what_is_set(void **state)
{
    static const struct {
        const char *edits;
        int parallelism, completions, backoff;
    } rows[] = {
        {"J0.suspend=false", 1, 1, 6},
        {"J0.parallelism=3", 3, -1, 6},
        {"J0.completions=3", 1, 3, 6},
        {"J0.parallelism=3 ; J0.completions=null", 3, -1, 6},
        {"J0.parallelism=0 ; J0.completions=0", 0, 0, 6},
        {"J0.backoffLimitPerIndex=2", 1, 1, INT32_MAX},
        {"J0.backoffLimitPerIndex=2 ; J0.backoffLimit=4", 1, 1, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ARENA_CLEANUP struct arena arena = {0};
        BUF_CLEANUP struct buf errors = {0};
        struct jobset_spec spec;
        struct doc *doc = small(&arena);
        edit_all(&arena, doc, rows[i].edits);
        assert_true(check_write(&arena, doc, &spec, &errors));
        assert_int_equal(spec.rjobs[0].job.parallelism, rows[i].parallelism);
        assert_int_equal(spec.rjobs[0].job.completions, rows[i].completions);
        assert_int_equal(spec.rjobs[0].job.backoff_limit, rows[i].backoff);
    }
}

static void times_can_be_counted_in_nanoseconds(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    BUF_CLEANUP struct buf errors = {0};
    struct jobset_spec spec;
    struct doc *doc = small(&arena);
    edit_all(&arena, doc,
             "P0.terminationGracePeriodSeconds=9223372036854775807 ; "
             "J0.activeDeadlineSeconds=9223372036854775807");
    assert_true(check_write(&arena, doc, &spec, &errors));
    assert_int_equal(spec.rjobs[0].job.pod.grace_s, INT32_MAX);
    assert_int_equal(spec.rjobs[0].job.active_deadline_s, INT32_MAX);
}

static void chips_are_any_vendors(void **state)
{
    static const struct {
        const char *resources, *name;
        unsigned chips;
    } rows[] = {
        {"{\"limits\":{\"cpu\":1,\"x.io/y\":2}}", "x.io/y", 2},
        {"{\"requests\":{\"x.io/y\":\"3\"}}", "x.io/y", 3},
        {"{\"limits\":{\"kubernetes.io/x\":2,\"a.kubernetes.io/b\":1}}", "", 0},
        {"{\"limits\":{\"hugepages-2Mi\":\"4Mi\",\"memory\":\"1Gi\"}}", "", 0},
        {"{}", "", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ARENA_CLEANUP struct arena arena = {0};
        BUF_CLEANUP struct buf errors = {0};
        struct jobset_spec spec;
        struct doc *doc = small(&arena);
        edit(&arena, doc, "C0.resources", rows[i].resources);
        assert_true(check_write(&arena, doc, &spec, &errors));
        assert_str(spec.rjobs[0].job.pod.chip_resource, rows[i].name);
        assert_int_equal(spec.rjobs[0].job.pod.chips, rows[i].chips);
    }
}

static void a_failed_read_leaves_the_result_alone(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    struct field_errors errors = {.arena = &arena};
    struct jobset_spec spec = {.ttl_s = 77};
    struct doc *doc = small(&arena);
    edit(&arena, doc, "spec.suspend", "3");
    assert_false(jobset_read(&arena, doc, &spec, &errors));
    assert_true(spec.ttl_s == 77 && errors.list.len == 1);
    field_errors_done(&errors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pytorch),
        cmocka_unit_test(jax),
        cmocka_unit_test(driver_worker),
        cmocka_unit_test(policies),
        cmocka_unit_test(the_others),
        cmocka_unit_test(counts_depend_on_what_is_set),
        cmocka_unit_test(times_can_be_counted_in_nanoseconds),
        cmocka_unit_test(chips_are_any_vendors),
        cmocka_unit_test(a_failed_read_leaves_the_result_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
