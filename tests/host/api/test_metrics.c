/* metrics.k8s.io: what agents measured, as kubectl top reads it. */
#include "host/api/client.h"
#include "kube/usage.h"

#define METRICS "/apis/metrics.k8s.io/v1beta1"

static void find_task(void *context, const struct task *task)
{
    const struct task **found = context;
    if (!*found && task->machine != MACHINE_NONE)
        *found = task;
}

static const struct task *first_task(struct fake_host *host)
{
    const struct task *found = NULL;
    jobs_visit_tasks(core_jobs(host->core), find_task, &found);
    assert_non_null(found);
    return found;
}

static void test_discovery(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    assert_int_equal(ask(host, &arena, "GET", METRICS, "", NULL, &doc), 200);
    const struct doc *resources = doc_get(doc, "resources");
    assert_int_equal(doc_len(resources), 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(doc_len(doc_get(doc_at(resources, i), "verbs")), 2);
    assert_int_equal(ask(host, &arena, "GET", METRICS "/nodes?watch=true", "", NULL, NULL), 405);
}

static void test_nodes(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    struct usage usage = {
        .window_ns = 10 * NS_PER_SECOND, .cpu_nano = 1500000000, .memory_bytes = 3 * 1024 * 1024};
    assert_int_equal(ask(host, &arena, "GET", METRICS "/nodes", "", NULL, &doc), 200);
    assert_int_equal(doc_len(doc_get(doc, "items")), 0);
    assert_int_equal(ask(host, &arena, "GET", METRICS "/nodes/m-2", "", NULL, &doc), 404);
    uint64_t seq = core_seq(host->core);
    api_usage(host->api, 1, &usage);
    assert_int_equal(core_seq(host->core), seq); /* nothing of it is an event */
    assert_int_equal(ask(host, &arena, "GET", METRICS "/nodes", "", NULL, &doc), 200);
    assert_int_equal(doc_len(doc_get(doc, "items")), 1);
    assert_int_equal(ask(host, &arena, "GET", METRICS "/nodes/m-2", "", NULL, &doc), 200);
    assert_true(text_is(doc_get(doc, "kind"), "NodeMetrics"));
    assert_true(text_is(doc_get(doc, "window"), "10.000s"));
    assert_true(text_is(doc_path(doc, "usage", "cpu", NULL), "1500000000n"));
    assert_true(text_is(doc_path(doc, "usage", "memory", NULL), "3072Ki"));
    assert_int_equal(
        ask(host, &arena, "GET", METRICS "/nodes?labelSelector=kubernetes.io/hostname=m-1", "", NULL, &doc),
        200);
    assert_int_equal(doc_len(doc_get(doc, "items")), 0);
    host->clock_ns += (USAGE_KEPT_S + 1) * NS_PER_SECOND; /* it says nothing any more */
    assert_int_equal(ask(host, &arena, "GET", METRICS "/nodes/m-2", "", NULL, &doc), 404);
}

static void test_pods(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    create(host, "t");
    assert_int_equal(ask(host, &arena, "GET", "/api/v1/pods", "", NULL, NULL), 200);
    const struct task *task = first_task(host);
    struct container_usage item = {.task = task->uid, .cpu_nano = 250000000, .memory_bytes = 1 << 20};
    struct usage usage = {.window_ns = NS_PER_SECOND, .items = &item, .item_count = 1};
    api_usage(host->api, task->machine, &usage);
    assert_int_equal(ask(host, &arena, "GET", METRICS "/pods", "", NULL, &doc), 200);
    const struct doc *items = doc_get(doc, "items");
    assert_int_equal(doc_len(items), 1); /* of the other tasks nothing is known */
    const struct doc *containers = doc_get(doc_at(items, 0), "containers");
    assert_true(
        str_equal(doc_str(doc_path(doc_at(items, 0), "metadata", "name", NULL), STR("")), task->name));
    assert_int_equal(doc_len(containers), 1);
    assert_true(text_is(doc_path(doc_at(containers, 0), "usage", "cpu", NULL), "250000000n"));
    const char *table = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n";
    assert_int_equal(ask(host, &arena, "GET", METRICS "/pods", table, NULL, &doc), 200);
    assert_true(text_is(doc_at(doc_get(doc_at(doc_get(doc, "rows"), 0), "cells"), 1), "250m"));
    assert_int_equal(ask(host, &arena, "GET", METRICS "/namespaces/other/pods", "", NULL, &doc), 200);
    assert_int_equal(doc_len(doc_get(doc, "items")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_discovery, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nodes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pods, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
