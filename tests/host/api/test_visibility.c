/* visibility.kueue.x-k8s.io: who waits in a queue, and at which place. */
#include "host/api/client.h"

#define GROUP  "/apis/visibility.kueue.x-k8s.io/"
#define KUEUE  "/apis/kueue.x-k8s.io/v1beta2"
#define SPACED "/namespaces/default"

static void post(struct fake_host *host, const char *url, const char *body)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    int code = ask(host, &arena, "POST", url, "Content-Type: application/json\r\n", body, &doc);
    if (code != 201)
        fail_msg("%s: %d", url, code);
}

static void post_job(struct fake_host *host, const char *name, const char *queue, const char *class)
{
    char body[1024];
    snprintf(body, sizeof body,
             "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"%s\",\"labels\":{"
             "\"kueue.x-k8s.io/queue-name\":\"%s\",\"kueue.x-k8s.io/priority-class\":\"%s\"}},\"spec\":{"
             "\"template\":{\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"c\",\"image\":"
             "\"i\",\"command\":[\"run\"],\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}}}}",
             name, queue, class);
    post(host, "/apis/batch/v1" SPACED "/jobs", body);
}

/* A queue without quota, two LocalQueues, four Jobs: c goes first, then a, b, d. */
static void make_queues(struct fake_host *host)
{
    post(host, KUEUE "/resourceflavors",
         "{\"apiVersion\":\"kueue.x-k8s.io/v1beta2\",\"kind\":\"ResourceFlavor\",\"metadata\":{\"name\":"
         "\"f\"}}");
    post(host, KUEUE "/workloadpriorityclasses",
         "{\"apiVersion\":\"kueue.x-k8s.io/v1beta2\",\"kind\":\"WorkloadPriorityClass\",\"metadata\":{"
         "\"name\":\"high\"},\"value\":9}");
    post(host, KUEUE "/clusterqueues",
         "{\"apiVersion\":\"kueue.x-k8s.io/v1beta2\",\"kind\":\"ClusterQueue\",\"metadata\":{\"name\":\"cq\"}"
         ",\"spec\":{\"namespaceSelector\":{},\"resourceGroups\":[{\"coveredResources\":[\"cpu\"],"
         "\"flavors\":[{\"name\":\"f\",\"resources\":[{\"name\":\"cpu\",\"nominalQuota\":0}]}]}]}}");
    for (int i = 1; i <= 2; i++) {
        char body[256];
        snprintf(body, sizeof body,
                 "{\"apiVersion\":\"kueue.x-k8s.io/v1beta2\",\"kind\":\"LocalQueue\",\"metadata\":{\"name\":"
                 "\"q%d\"},\"spec\":{\"clusterQueue\":\"cq\"}}",
                 i);
        post(host, KUEUE SPACED "/localqueues", body);
    }
    post_job(host, "a", "q1", "");
    post_job(host, "b", "q2", "");
    post_job(host, "c", "q2", "high");
    post_job(host, "d", "q1", "");
}

static void expect(const struct doc *doc, const char *wanted)
{
    const struct doc *items = doc_get(doc, "items");
    struct buf got BUF_CLEANUP = {0};
    for (size_t i = 0; i < doc_len(items); i++) {
        const struct doc *item = doc_at(items, i);
        const struct doc *owner = doc_at(doc_path(item, "metadata", "ownerReferences", NULL), 0);
        buf_printf(&got, "%s" STR_FORMAT ":%lld:%lld", i ? " " : "",
                   STR_ARG(doc_str(doc_get(owner, "name"), STR(""))),
                   (long long)doc_int(doc_get(item, "positionInClusterQueue"), -1),
                   (long long)doc_int(doc_get(item, "positionInLocalQueue"), -1));
    }
    assert_string_equal(got.data ? got.data : "", wanted);
}

static void test_places(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    make_queues(host);
    static const char *const versions[] = {"v1beta2", "v1beta1"};
    for (size_t v = 0; v < 2; v++) {
        char url[256];
        snprintf(url, sizeof url, GROUP "%s/clusterqueues/cq/pendingworkloads", versions[v]);
        assert_int_equal(ask(host, &arena, "GET", url, "", NULL, &doc), 200);
        assert_true(text_is(doc_get(doc, "kind"), "PendingWorkloadsSummary"));
        expect(doc, "c:0:0 a:1:0 b:2:1 d:3:1");
        const struct doc *first = doc_at(doc_get(doc, "items"), 0);
        assert_int_equal(doc_int(doc_get(first, "priority"), 0), 9);
        assert_true(text_is(doc_get(first, "localQueueName"), "q2"));
        assert_true(text_is(doc_path(first, "metadata", "namespace", NULL), "default"));
        snprintf(url, sizeof url, GROUP "%s" SPACED "/localqueues/q1/pendingworkloads", versions[v]);
        assert_int_equal(ask(host, &arena, "GET", url, "", NULL, &doc), 200);
        expect(doc, "a:1:0 d:3:1");
    }
#define CQ GROUP "v1beta2/clusterqueues/cq/pendingworkloads"
    assert_int_equal(ask(host, &arena, "GET", CQ "?offset=1&limit=2", "", NULL, &doc), 200);
    expect(doc, "a:1:0 b:2:1");
    assert_int_equal(ask(host, &arena, "GET", CQ "?offset=9", "", NULL, &doc), 200);
    expect(doc, "");
    assert_int_equal(ask(host, &arena, "GET", CQ "?limit=all", "", NULL, NULL), 400);
    assert_int_equal(ask(host, &arena, "POST", CQ, "", "{}", NULL), 405);
}

static void test_what_is_not_there(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    assert_int_equal(ask(host, &arena, "GET", CQ, "", NULL, &doc), 404);
    assert_int_equal(ask(host, &arena, "GET", GROUP "v1beta2/clusterqueues", "", NULL, NULL), 405);
    assert_int_equal(ask(host, &arena, "GET", GROUP "v1beta2/clusterqueues/cq", "", NULL, NULL), 405);
    assert_int_equal(ask(host, &arena, "GET", GROUP "v1beta2/clusterqueues/cq/status", "", NULL, NULL), 404);
    assert_int_equal(ask(host, &arena, "GET", GROUP "v1beta2", "", NULL, &doc), 200);
    const struct doc *resources = doc_get(doc, "resources");
    bool found = false;
    for (size_t i = 0; i < doc_len(resources); i++)
        found |= text_is(doc_get(doc_at(resources, i), "name"), "localqueues/pendingworkloads") &&
                 text_is(doc_get(doc_at(resources, i), "kind"), "PendingWorkloadsSummary");
    assert_true(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_places, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_not_there, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
