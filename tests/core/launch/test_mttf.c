/* How long a JobSet runs until a machine fails it: the prior, what was seen, and what tasks are told. */
#include "core/job/story.h"
#include "core/launch/launch.h"

#include "core/lemon/lemon.h"

#define DAY_S INT64_C(86400)
/* Two failures in 2 / 0.0065 days. */
#define PRIOR_S INT64_C(26584615)

#define ONE_RANK(machines, more)                                                                             \
    "{name: w, replicas: 1, template: {spec: {parallelism: " machines ", completions: " machines             \
    ", backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, command: "  \
    "[run], " more "resources: {limits: {google.com/tpu: 4}}}]}}}}}"

static int64_t told(struct harness *h, const char *hostname, int64_t machine_s, const char *name)
{
    struct arena arena = {0};
    struct launch_common common = {.arena = &arena, .machine_mttf_s = machine_s};
    struct task_launch launch = {0};
    int64_t value = -1;
    struct task *task = harness_task(h, hostname);
    assert_non_null(task);
    task_launch_build_next(&common, task, core_cluster(h->core), &arena, &launch);
    for (size_t i = 0; i < launch.env_count; i++)
        if (str_is(launch.env[i].name, name))
            assert_true(str_to_i64(launch.env[i].value, 0, INT64_MAX, &value));
    arena_done(&arena);
    return value;
}

static void nothing_seen_is_the_published_rate(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 0);
    const struct cluster *cluster = core_cluster(h.core);
    const struct lemon_store *lemons = core_lemons(h.core);
    assert_int_equal(machine_mttf_s(cluster, lemons, 0), PRIOR_S / 2); /* 153.8 days */
    assert_int_equal(machine_mttf_s(cluster, lemons, -5), PRIOR_S / 2);
    assert_int_equal(machine_mttf_s(cluster, lemons, DAY_S), (PRIOR_S + 4 * DAY_S) / 2);
    int64_t window_s = cluster->policy.lemons.window_days * DAY_S;
    assert_int_equal(machine_mttf_s(cluster, lemons, 1000 * DAY_S), (PRIOR_S + 4 * window_s) / 2);
    harness_done(&h);
}

static void what_was_seen_counts(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 0);
    int64_t before = core_machine_mttf_s(h.core);
    for (int i = 0; i < 3; i++) {
        harness_lose(&h, "m-1");
        h.now_ns += NS_PER_SECOND;
        harness_hello(&h, "m-1", NULL, 0);
    }
    const struct lemon *lemon = lemon_find(core_lemons(h.core), STR("m-1"));
    assert_non_null(lemon);
    int64_t seen = lemon->totals[LEMON_OUT];
    assert_true(seen > 0);
    assert_int_equal(machine_mttf_s(core_cluster(h.core), core_lemons(h.core), 0), PRIOR_S / (2 + seen));
    assert_true(core_machine_mttf_s(h.core) < before);
    harness_done(&h);
}

static void a_job_fails_with_each_of_its_machines(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 0);
    struct jobset *jobset = harness_create(&h, JOBSET("a", "", ONE_RANK("3", "")));
    assert_int_equal(jobset_mttf_s(jobset, 9000), 3000);
    assert_int_equal(jobset_mttf_s(jobset, 2), 1);
    assert_int_equal(told(&h, "a-w-0-2", 9000, "PHX_MTTF_S"), 3000);
    assert_int_equal(told(&h, "a-w-0-2", 0, "PHX_MTTF_S"), -1);
    harness_create(&h, JOBSET("b", "", ONE_RANK("2", "env: [{name: PHX_MTTF_S, value: \"7\"}], ")));
    assert_int_equal(jobset_mttf_s(harness_jobset(&h, "b"), 9000), 0); /* it waits */
    harness_done(&h);
}

/* How often is an annotation, and the library's to hear. */
static void intervals_are_set(void **state)
{
#define EVERY(interval)                                                                                      \
    JOBSET("a, annotations: {phalanx.dev/checkpoint-interval: \"" interval "\"}", "", ONE_RANK("1", ""))
    struct harness h;
    harness_init(&h, 2, 4, 0);
    static const char *const wrong[] = {EVERY("0"), EVERY("-1"), EVERY("often"), EVERY(""), EVERY("5m")};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(harness_write(&h, WRITE_CREATE, "", wrong[i]), 422);
        assert_non_null(strstr(h.last_message, "metadata.annotations[phalanx.dev/checkpoint-interval]"));
    }
    harness_create(&h, EVERY("250"));
    assert_int_equal(told(&h, "a-w-0-0", 0, "PHX_CHECKPOINT_INTERVAL"), 250);
    harness_done(&h);
#undef EVERY
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_seen_is_the_published_rate),
        cmocka_unit_test(what_was_seen_counts),
        cmocka_unit_test(a_job_fails_with_each_of_its_machines),
        cmocka_unit_test(intervals_are_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
