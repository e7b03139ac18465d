/* /metrics, as Prometheus reads it. */
#include "host/access/access.h"
#include "host/api/client.h"
#include "host/api/request.h"

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

/* The text of /metrics has the line; NULL: no line that begins so. */
static void expect_line(struct fake_host *host, const char *begin, const char *end)
{
    struct buf line BUF_CLEANUP = {0};
    struct client client;
    client_send(&client, host, "GET", "/metrics", "", NULL);
    assert_true(client_wait(&client, NULL));
    assert_int_equal(client.code, 200);
    buf_printf(&line, "\n%s%s", begin, end ? end : "");
    if ((strstr(client.body.data, line.data) != NULL) != (end != NULL))
        fail_msg("%s%s: %s", begin, end ? end : " is there", client.body.data);
    client_done(&client);
}

/* Lines of the audit log that its disk did not take are counted; without users there is no such log. */
static void test_lost_audit_lines(void **state)
{
    const struct access_options options = {.audit = "/dev/full", .open = true};
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct access *access;
    struct error error;
    expect_line(host, "phalanx_audit_dropped_total", NULL);
    assert_int_equal(access_new(&options, &access, &error), 0);
    host->api->access = access;
    assert_int_equal(ask(host, &arena, "GET", "/api/v1/nodes", "", NULL, NULL), 200);
    RUN_UNTIL(host, access_audit_dropped(access) == 1);
    expect_line(host, "phalanx_audit_dropped_total", " 1\n");
    host->api->access = NULL;
    access_free(access);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_metrics, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_audit_lines, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
