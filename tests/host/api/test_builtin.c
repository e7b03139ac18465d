/* The roles that always exist, as the API shows them. */
#include "host/api/client.h"

#define ROLES    "/apis/rbac.authorization.k8s.io/v1/clusterroles"
#define BINDINGS "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"

static size_t count(struct fake_host *host, const char *url)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    assert_int_equal(ask(host, &arena, "GET", url, "", NULL, &doc), 200);
    return doc_len(doc_get(doc, "items"));
}

static void test_read(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    assert_true(count(host, ROLES) > 5);
    assert_true(count(host, BINDINGS) > 3);
    assert_int_equal(count(host, ROLES),
                     count(host, ROLES "?labelSelector=kubernetes.io/bootstrapping=rbac-defaults"));
    assert_int_equal(count(host, ROLES "?limit=3"), 3);
    assert_int_equal(ask(host, &arena, "GET", ROLES "/view", "", NULL, &doc), 200);
    assert_true(text_is(doc_get(doc, "kind"), "ClusterRole"));
    assert_true(doc_len(doc_get(doc, "rules")) > 0);
    assert_int_equal(ask(host, &arena, "GET", BINDINGS "/cluster-admin", "", NULL, &doc), 200);
    assert_true(text_is(doc_path(doc, "roleRef", "name", NULL), "cluster-admin"));
    assert_true(text_is(doc_get(doc_at(doc_get(doc, "subjects"), 0), "name"), "system:masters"));
    assert_int_equal(ask(host, &arena, "GET", ROLES "/other", "", NULL, NULL), 404);
    assert_int_equal(count(host, "/apis/rbac.authorization.k8s.io/v1/roles"), 0);
}

/* A user's object takes the place of the built-in one, which is there again when the user's goes. */
static void test_replaced(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    size_t before = count(host, ROLES);
    const char *merge = "Content-Type: application/merge-patch+json\r\n";
    assert_int_equal(
        ask(host, &arena, "PATCH", ROLES "/view", merge, "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}", &doc),
        201);
    assert_true(text_is(doc_path(doc, "metadata", "labels", "a", NULL), "b"));
    assert_true(doc_len(doc_get(doc, "rules")) > 0);
    assert_int_equal(count(host, ROLES), before);
    assert_int_equal(count(host, ROLES "?labelSelector=a=b"), 1);
    assert_int_equal(ask(host, &arena, "DELETE", ROLES "/view", "", NULL, NULL), 200);
    assert_int_equal(count(host, ROLES), before);
    assert_int_equal(count(host, ROLES "?labelSelector=a=b"), 0);
    assert_int_equal(ask(host, &arena, "DELETE", ROLES "/view", "", NULL, NULL), 404);
    assert_int_equal(ask(host, &arena, "DELETE", ROLES, "", NULL, NULL), 200);
    assert_int_equal(count(host, ROLES), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_replaced, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
