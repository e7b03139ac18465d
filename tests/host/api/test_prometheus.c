/* /metrics, as Prometheus reads it. */
#include "host/api/client.h"

static void test_metrics(void **state)
{
    struct fake_host *host = *state;
    create(host, "counted");
    api_turn(host->api, 70 * NS_PER_US);
    api_turn(host->api, 3 * NS_PER_MS);
    api_turn(host->api, 2 * NS_PER_SECOND);
    struct client client;
    client_send(&client, host, "GET", "/metrics", "", NULL);
    assert_true(client_wait(&client, NULL));
    static const char *const lines[] = {
        "# TYPE jobset_completed_total counter\njobset_completed_total{jobset_name=\"\",namespace=\"\"} 0\n",
        "jobset_failed_total{jobset_name=\"\",namespace=\"\"} 0\n",
        "phalanx_jobsets{state=\"Failed\"} 0\n",
        "# TYPE phalanx_pods gauge\n",
        "phalanx_machines{state=\"lost\"} 0\n",
        "phalanx_chips{owner=\"idle\"} ",
        "phalanx_machines_isolated{isolation=\"Quarantined\"} 0\n",
        "phalanx_faults_open{level=\"Separate\"} 0\n",
        "# TYPE phalanx_loop_turn_seconds histogram\n",
        "phalanx_loop_turn_seconds_bucket{le=\"0.000100\"} 1\n",
        "phalanx_loop_turn_seconds_bucket{le=\"0.005000\"} 2\n",
        "phalanx_loop_turn_seconds_bucket{le=\"+Inf\"} 3\n",
        "phalanx_loop_turn_seconds_sum 2.003070000\n",
        "phalanx_loop_turn_longest_seconds 2.000000000\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(client.body.data, lines[i]))
            fail_msg("no %s in %s", lines[i], client.body.data);
    client_done(&client);
    struct arena arena ARENA_CLEANUP = {0};
    assert_int_equal(ask(host, &arena, "POST", "/metrics", "", NULL, NULL), 405);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_metrics, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
