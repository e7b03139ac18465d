/* Workloads that clients make, over real sockets: every verb, both versions. */
#include "host/api/client.h"

#define NEW   "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads"
#define OLD   "/apis/kueue.x-k8s.io/v1beta1/namespaces/default/workloads"
#define APPLY "Content-Type: application/apply-patch+yaml\r\n"
#define MERGE "Content-Type: application/merge-patch+json\r\n"
#define JSON  "Content-Type: application/json-patch+json\r\n"

#define MANIFEST(version, meta, spec)                                                                        \
    "{\"apiVersion\":\"kueue.x-k8s.io/" version "\",\"kind\":\"Workload\",\"metadata\":{" meta "},"          \
    "\"spec\":{" spec "\"queueName\":\"lq\",\"podSets\":[{\"name\":\"main\",\"count\":2,\"template\":"       \
    "{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{\"requests\":{\"cpu\":"       \
    "\"1000m\"}}}]}}}]}}"

static struct str text_at(const struct doc *doc, const char *part, const char *key)
{
    return doc_str(doc_path(doc, part, key, NULL), STR(""));
}

static void test_create_and_read(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    assert_int_equal(ask(host, &arena, "POST", NEW, "", MANIFEST("v1beta2", "\"name\":\"a\"", ""), &doc),
                     201);
    assert_true(str_is(text_at(doc, "metadata", "name"), "a"));
    assert_true(text_at(doc, "metadata", "uid").len > 0);
    assert_true(doc_bool(doc_path(doc, "spec", "active", NULL), false));
    assert_int_equal(ask(host, &arena, "POST", NEW, "", MANIFEST("v1beta2", "\"name\":\"a\"", ""), &doc),
                     409);
    assert_int_equal(
        ask(host, &arena, "POST", NEW, "", MANIFEST("v1beta2", "\"generateName\":\"g-\"", ""), &doc), 201);
    assert_true(str_starts(text_at(doc, "metadata", "name"), STR("g-")));
    assert_int_equal(
        ask(host, &arena, "POST", NEW "?dryRun=All", "", MANIFEST("v1beta2", "\"name\":\"dry\"", ""), &doc),
        201);
    assert_int_equal(ask(host, &arena, "GET", NEW "/dry", "", NULL, &doc), 404);
    assert_int_equal(ask(host, &arena, "GET", NEW, "", NULL, &doc), 200);
    assert_int_equal(doc_len(doc_get(doc, "items")), 2);
    assert_int_equal(ask(host, &arena, "POST", NEW "?fieldValidation=Strict", "",
                         MANIFEST("v1beta2", "\"name\":\"b\"", "\"priorityClassName\":\"old\","), &doc),
                     400);
}

static void test_old_version(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    assert_int_equal(ask(host, &arena, "POST", OLD, "",
                         MANIFEST("v1beta1", "\"name\":\"a\"",
                                  "\"priority\":3,\"priorityClassName\":\"c\",\"priorityClassSource\":"
                                  "\"kueue.x-k8s.io/workloadpriorityclass\","),
                         &doc),
                     201);
    assert_true(str_is(text_at(doc, "spec", "priorityClassName"), "c"));
    assert_int_equal(ask(host, &arena, "GET", NEW "/a", "", NULL, &doc), 200);
    assert_true(str_is(doc_str(doc_path(doc, "spec", "priorityClassRef", "kind", NULL), STR("")),
                       "WorkloadPriorityClass"));
    assert_null(doc_path(doc, "spec", "priorityClassName", NULL));
}

static void test_changes(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    assert_int_equal(ask(host, &arena, "PATCH", NEW "/a?fieldManager=tool", APPLY,
                         MANIFEST("v1beta2", "\"name\":\"a\",\"labels\":{\"team\":\"x\"}", ""), &doc),
                     201);
    assert_int_equal(doc_len(doc_path(doc, "metadata", "managedFields", NULL)), 1);
    struct str version = text_at(doc, "metadata", "resourceVersion");
    assert_int_equal(ask(host, &arena, "PATCH", NEW "/a?fieldManager=tool", APPLY,
                         MANIFEST("v1beta2", "\"name\":\"a\",\"labels\":{\"team\":\"x\"}", ""), &doc),
                     200);
    assert_true(str_equal(version, text_at(doc, "metadata", "resourceVersion")));
    assert_int_equal(doc_int(doc_path(doc, "metadata", "generation", NULL), 0), 1);
    assert_int_equal(
        ask(host, &arena, "PATCH", NEW "/a", MERGE, "{\"spec\":{\"priority\":7,\"active\":false}}", &doc),
        200);
    assert_int_equal(doc_int(doc_path(doc, "spec", "priority", NULL), 0), 7);
    assert_false(doc_bool(doc_path(doc, "spec", "active", NULL), true));
    assert_int_equal(ask(host, &arena, "PATCH", NEW "/a", JSON,
                         "[{\"op\":\"replace\",\"path\":\"/spec/podSets/0/count\",\"value\":3}]", &doc),
                     200);
    assert_int_equal(ask(host, &arena, "PATCH", NEW "/a", JSON,
                         "[{\"op\":\"replace\",\"path\":\"/spec/podSets/0/count\",\"value\":-3}]", &doc),
                     422);
    assert_int_equal(ask(host, &arena, "PATCH", NEW "/a?fieldManager=tool", APPLY,
                         MANIFEST("v1beta2", "\"name\":\"a\",\"labels\":{\"team\":\"y\"}", ""), &doc),
                     409); /* the count is another manager's now */
    assert_int_equal(ask(host, &arena, "GET", NEW "?labelSelector=team%3Dx", "", NULL, &doc), 200);
    assert_int_equal(doc_len(doc_get(doc, "items")), 1);
    assert_int_equal(ask(host, &arena, "PUT", NEW "/a", "",
                         MANIFEST("v1beta2", "\"name\":\"a\",\"finalizers\":[\"example.com/x\"]", ""), &doc),
                     200);
    assert_int_equal(ask(host, &arena, "DELETE", NEW "/a", "", NULL, &doc), 200);
    assert_int_equal(ask(host, &arena, "GET", NEW "/a", "", NULL, &doc), 200);
    assert_true(text_at(doc, "metadata", "deletionTimestamp").len > 0);
    assert_int_equal(
        ask(host, &arena, "PATCH", NEW "/a", MERGE, "{\"metadata\":{\"finalizers\":null}}", &doc), 200);
    assert_int_equal(ask(host, &arena, "GET", NEW "/a", "", NULL, &doc), 404);
    assert_int_equal(ask(host, &arena, "POST", NEW, "", MANIFEST("v1beta2", "\"name\":\"b\"", ""), &doc),
                     201);
    assert_int_equal(ask(host, &arena, "DELETE", NEW, "", NULL, &doc), 200);
    assert_int_equal(ask(host, &arena, "GET", NEW "/b", "", NULL, &doc), 404);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_create_and_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_old_version, setup, teardown),
        cmocka_unit_test_setup_teardown(test_changes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
