/* spec.settings.storedBytes of the cluster file. */
#include "core/words/limits.h"
#include "settings.h"

#define HEAD SECTION("settings")

static void test_what_is_given(void **state)
{
    (void)state;
    struct cluster cluster;
    struct buf out BUF_CLEANUP = {0};
    assert_true(load(HEAD "    storedBytes: {namespace: 16Mi, cluster: 1G}\n", &cluster, &out));
    assert_int_equal(cluster.policy.stored_bytes.namespace_max, 16 << 20);
    assert_int_equal(cluster.policy.stored_bytes.cluster_max, 1000000000);
    cluster_done(&cluster);
    assert_true(load(HEAD "    {}\n", &cluster, &out));
    assert_int_equal(cluster.policy.stored_bytes.namespace_max, INT64_C(256) << 20);
    assert_int_equal(cluster.policy.stored_bytes.cluster_max, INT64_C(2) << 30);
    cluster_done(&cluster);
}

static void test_mistakes_have_a_place(void **state)
{
    (void)state;
    static const struct mistake cases[] = {
        {"    storedBytes: 4Gi\n", "7:18: spec.settings.storedBytes: Invalid value"},
        {"    storedBytes: {namespace: 4Mi, pod: 1}\n", "7:35: spec.settings.storedBytes.pod: unknown field"},
        {"    storedBytes: {namespace: 1Mi}\n",
         "7:30: spec.settings.storedBytes.namespace: Invalid value: must be a quantity, 4Mi to 1Ti"},
        {"    storedBytes: {cluster: much}\n",
         "7:28: spec.settings.storedBytes.cluster: Invalid value: \"much\""},
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
