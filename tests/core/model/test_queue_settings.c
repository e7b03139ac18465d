/* spec.queues of the cluster file: what it gives, and where a mistake in it is. */
#include "settings.h"

#define HEAD SECTION("queues")

static void test_what_is_given(void **state)
{
    (void)state;
    struct cluster cluster;
    struct buf out BUF_CLEANUP = {0};
    assert_true(load(HEAD "    minimumRunTime: 0\n    maximumLifetime: 0\n    preemptionsPerRequeue: 3\n"
                          "    waitForPodsReady: {enable: true, timeout: 90s, recoveryTimeout: 5m,\n"
                          "      requeuingStrategy: {timestamp: Creation, backoffLimitCount: 0}}\n"
                          "    fairSharing: {enable: true, preemptionStrategies: [LessThanInitialShare]}\n",
                     &cluster, &out));
    const struct queue_settings *set = &cluster.policy.queues;
    assert_true(set->min_run_ns == 0 && set->max_life_ns == 0 && set->victims_max == 3);
    assert_true(set->wait_ready && !set->block_admission && set->ready_timeout_ns == 90 * NS_PER_SECOND);
    assert_true(set->recovery_timeout_ns == 300 * NS_PER_SECOND && set->creation_timestamp);
    assert_true(set->backoff_limit == 0 && set->fair && set->strategy_count == 1);
    assert_int_equal(set->strategies[0], FAIR_LESS_INITIAL);
    cluster_done(&cluster);
    assert_true(load(HEAD "    {}\n", &cluster, &out));
    assert_true(cluster.policy.queues.min_run_ns == 7200 * NS_PER_SECOND);
    assert_true(cluster.policy.queues.max_life_ns == 7 * 24 * 3600 * NS_PER_SECOND);
    assert_true(!cluster.policy.queues.wait_ready && !cluster.policy.queues.fair &&
                cluster.policy.queues.backoff_limit < 0);
    cluster_done(&cluster);
}

/* Line and column count from the first line of the file: queues begins on the 7th. */
static void test_mistakes_have_a_place(void **state)
{
    (void)state;
    static const struct mistake cases[] = {
        {"    minimumRunTime: soon\n", "7:21: spec.queues.minimumRunTime: Invalid value: \"soon\""},
        {"    minimumRunTime: -1s\n", "7:21: spec.queues.minimumRunTime: Invalid value"},
        {"    minimumRunTime: 5 m\n", "7:21: spec.queues.minimumRunTime: Invalid value: \"5 m\""},
        {"    maximumLifetime: [7d]\n", "7:22: spec.queues.maximumLifetime: Invalid value"},
        {"    preemptionsPerRequeue: -1\n", "7:28: spec.queues.preemptionsPerRequeue: Invalid value"},
        {"    preemptionsPerRequeue: many\n", "7:28: spec.queues.preemptionsPerRequeue: Invalid value"},
        {"    minRunTime: 1h\n", "7:5: spec.queues.minRunTime: unknown field"},
        {"    waitForPodsReady: true\n", "7:23: spec.queues.waitForPodsReady: Invalid value"},
        {"    waitForPodsReady: {enable: maybe}\n",
         "7:32: spec.queues.waitForPodsReady.enable: Invalid value"},
        {"    waitForPodsReady: {timeout: 0s}\n",
         "7:33: spec.queues.waitForPodsReady.timeout: Invalid value"},
        {"    waitForPodsReady: {requeuingStrategy: {timestamp: Now}}\n",
         "7:55: spec.queues.waitForPodsReady.requeuingStrategy.timestamp: Unsupported value: \"Now\""},
        {"    waitForPodsReady: {requeuingStrategy: {backoffBaseSeconds: 9, backoffMaxSeconds: 8}}\n",
         "7:86: spec.queues.waitForPodsReady.requeuingStrategy.backoffMaxSeconds: Invalid value"},
        {"    fairSharing: {preemptionStrategies: [Often]}\n",
         "7:42: spec.queues.fairSharing.preemptionStrategies[0]: Unsupported value: \"Often\""},
        {"    fairSharing: {preemptionStrategies: LessThanInitialShare}\n",
         "7:41: spec.queues.fairSharing.preemptionStrategies: Invalid value"},
        {"    fairSharing: {enabled: true}\n", "7:19: spec.queues.fairSharing.enabled: unknown field"},
        {"    - 1\n", "7:5: spec.queues: Invalid value: array"},
    };
    assert_mistakes(HEAD, cases, sizeof(cases) / sizeof(*cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_given),
        cmocka_unit_test(test_mistakes_have_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
