/* Evictions within a disruption budget, as `kubectl drain` meets them. */
#include "client.h"

#define BUDGETS "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
#define PODS    "/api/v1/namespaces/default/pods"

static char *pod_name(struct fake_host *host, struct arena *arena, size_t index)
{
    struct doc *doc;
    assert_int_equal(ask(host, arena, "GET", PODS, NONE, NULL, &doc), 200);
    return arena_strdup(
        arena, doc_str(doc_path(doc_at(doc_get(doc, "items"), index), "metadata", "name", NULL), STR("")));
}

static int evict(struct fake_host *host, struct arena *arena, const char *pod, struct doc **ret_doc)
{
    char *url = arena_strdup(arena, arena_printf(arena, PODS "/%s/eviction", pod));
    char *body = arena_strdup(arena, arena_printf(arena,
                                                  "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\","
                                                  "\"metadata\":{\"name\":\"%s\"}}",
                                                  pod));
    return ask(host, arena, "POST", url, NONE, body, ret_doc);
}

static void test_budget(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc, *same;
    create(host, "a"); /* four pods */
    assert_int_equal(
        ask(host, &arena, "POST", BUDGETS, NONE,
            "{\"apiVersion\":\"policy/v1\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{\"name\":"
            "\"b\"},\"spec\":{\"minAvailable\":4,\"selector\":{}}}",
            &doc),
        201);
    assert_int_equal(doc_int(doc_path(doc, "status", "expectedPods", NULL), 0), 4);
    int64_t healthy = 0;
    uint64_t until_ns = uv_hrtime() + PATIENCE_S * (uint64_t)NS_PER_SECOND;
    while (healthy < 4 && uv_hrtime() < until_ns) {
        assert_int_equal(ask(host, &arena, "GET", BUDGETS "/b", NONE, NULL, &doc), 200);
        healthy = doc_int(doc_path(doc, "status", "currentHealthy", NULL), 0);
    }
    assert_int_equal(healthy, 4);
    const char *pod = pod_name(host, &arena, 0);
    assert_int_equal(evict(host, &arena, pod, &doc), 429);
    assert_int_equal(
        json_parse(&arena,
                   STR("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"
                       "\"Failure\",\"message\":\"Cannot evict pod as it would violate the pod's "
                       "disruption budget.\",\"reason\":\"TooManyRequests\",\"details\":{\"causes\":[{"
                       "\"reason\":\"DisruptionBudget\",\"message\":\"The disruption budget b needs 4 "
                       "healthy pods and has 4 currently\"}]},\"code\":429}"),
                   &same, NULL),
        0);
    assert_true(doc_equal(doc, same));
    /* A deletion is no eviction. */
    assert_int_equal(ask(host, &arena, "PATCH", BUDGETS "/b",
                         "Content-Type: application/strategic-merge-patch+json\r\n",
                         "{\"spec\":{\"minAvailable\":3}}", &doc),
                     200);
    assert_int_equal(doc_int(doc_path(doc, "status", "disruptionsAllowed", NULL), 0), 1);
    assert_int_equal(evict(host, &arena, pod, &doc), 201);
    assert_int_equal(
        ask(host, &arena, "PUT", BUDGETS "/b/status", NONE,
            "{\"apiVersion\":\"policy/v1\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{\"name\":"
            "\"b\"},\"status\":{\"disruptionsAllowed\":9}}",
            &doc),
        200);
    assert_int_not_equal(doc_int(doc_path(doc, "status", "disruptionsAllowed", NULL), 0), 9);
    assert_int_equal(ask(host, &arena, "GET", "/apis/policy/v1", NONE, NULL, &doc), 200);
    assert_true(text_is(doc_get(doc_at(doc_get(doc, "resources"), 0), "name"), "poddisruptionbudgets"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_budget, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
