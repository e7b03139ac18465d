/* spec.repair of the cluster file: what it gives, and where a mistake in it is. */
#include "settings.h"

#define HEAD SECTION("repair")

static void test_what_is_given(void **state)
{
    (void)state;
    struct cluster cluster;
    struct buf out BUF_CLEANUP = {0};
    assert_true(load(HEAD
                     "    qualify: false\n    watch: 1h\n    recall: 2d\n    reboots: 3\n    absent: 1m\n"
                     "    history: 7\n    hooks:\n    - {action: fsck, retries: 4, backoff: 5s}\n"
                     "    - {action: power-cycle, machine: m-2, timeout: 90s}\n",
                     &cluster, &out));
    const struct repair_settings *set = &cluster.policy.repair;
    assert_true(!set->qualify && set->watch_ns == 3600 * NS_PER_SECOND && set->reboots_max == 3);
    assert_true(set->recall_ns == 48 * 3600 * NS_PER_SECOND && set->history_max == 7);
    assert_int_equal(set->hook_count, 2);
    assert_true(str_is(set->hooks[0].action, "fsck") && set->hooks[0].retries == 4);
    assert_true(set->hooks[0].on.len == 0 && !set->hooks[0].reboots);
    assert_true(str_is(set->hooks[1].on, "m-2") && set->hooks[1].timeout_ns == 90 * NS_PER_SECOND);
    assert_true(set->hooks[1].reboots); /* as the default one of that name */
    cluster_done(&cluster);
    assert_true(load(HEAD "    hooks: []\n", &cluster, &out));
    assert_true(cluster.policy.repair.hook_count == 0 && cluster.policy.repair.qualify);
    cluster_done(&cluster);
    assert_true(load(HEAD "    {}\n", &cluster, &out));
    assert_true(cluster.policy.repair.hook_count == 5 && cluster.policy.repair.reboots_max == 2);
    cluster_done(&cluster);
}

static void test_mistakes_have_a_place(void **state)
{
    (void)state;
    static const struct mistake cases[] = {
        {"    qualify: perhaps\n", "7:14: spec.repair.qualify: Invalid value"},
        {"    watch: long\n", "7:12: spec.repair.watch: Invalid value: \"long\""},
        {"    reboots: -1\n", "7:14: spec.repair.reboots: Invalid value"},
        {"    hook: []\n", "7:5: spec.repair.hook: unknown field"},
        {"    hooks: {action: reboot}\n", "7:12: spec.repair.hooks: Invalid value"},
        {"    hooks: [{timeout: 5s}]\n", "spec.repair.hooks[0].action: "},
        {"    hooks: [{action: ../reboot}]\n",
         "7:22: spec.repair.hooks[0].action: Invalid value: \"../reboot\""},
        {"    hooks: [{action: a}, {action: a}]\n",
         "7:35: spec.repair.hooks[1].action: Duplicate value: \"a\""},
        {"    hooks: [{action: a, timeout: 0s}]\n", "7:34: spec.repair.hooks[0].timeout: Invalid value"},
        {"    hooks: [{action: a, retries: 101}]\n", "7:34: spec.repair.hooks[0].retries: Invalid value"},
        {"    hooks: [{action: a, machine: m-9}]\n",
         "7:34: spec.repair.hooks[0].machine: Not found: \"m-9\""},
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
