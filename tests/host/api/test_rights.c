/* Watches end with the right to them: a binding that goes, a token that is withdrawn. */
#include "client.h"

#include "host/api/request.h"

#define ROLES     "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
#define MAPS      "/api/v1/namespaces/default/configmaps"
#define AS(name)  "Authorization: Bearer " name "-token\r\n"
#define MAP(name) "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"" name "\"}}"

struct fixture {
    struct fake_host *host;
    struct access *access;
    struct access_options options;
    char path[64];
};

static void write_tokens(struct fixture *fixture, const char *lines)
{
    FILE *file = fopen(fixture->path, "w");
    assert_non_null(file);
    fputs(lines, file);
    fclose(file);
}

static void begin(struct fixture *fixture, struct fake_host *host)
{
    struct error error = {0};
    *fixture = (struct fixture){.host = host};
    snprintf(fixture->path, sizeof fixture->path, "/tmp/phx-test-rights-%d.csv", (int)getpid());
    write_tokens(fixture, "root-token,root,1,system:masters\nbob-token,bob,2\neve-token,eve,3\n");
    fixture->options.tokens = fixture->path;
    if (access_new(&fixture->options, &fixture->access, &error) < 0)
        fail_msg("%s", error.text);
    host->api->access = fixture->access;
    struct arena arena ARENA_CLEANUP = {0};
    assert_int_equal(ask(host, &arena, "POST", ROLES "/roles", AS("root"),
                         "{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"Role\",\"metadata\":{"
                         "\"name\":\"r\"},\"rules\":[{\"apiGroups\":[\"\"],\"resources\":[\"configmaps\"],"
                         "\"verbs\":[\"watch\"]}]}",
                         NULL),
                     201);
    assert_int_equal(
        ask(host, &arena, "POST", ROLES "/rolebindings", AS("root"),
            "{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"RoleBinding\",\"metadata\":{"
            "\"name\":\"b\"},\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"Role\","
            "\"name\":\"r\"},\"subjects\":[{\"kind\":\"User\",\"name\":\"bob\"},{\"kind\":\"User\","
            "\"name\":\"eve\"}]}",
            NULL),
        201);
}

static void end(struct fixture *fixture)
{
    fixture->host->api->access = NULL;
    access_free(fixture->access);
    unlink(fixture->path);
}

static void a_watch_ends_with_its_binding(void **state)
{
    struct fixture fixture;
    struct arena arena ARENA_CLEANUP = {0};
    begin(&fixture, *state);
    struct client bob, root;
    client_send(&bob, fixture.host, "GET", MAPS "?watch=true", AS("bob"), NULL);
    client_send(&root, fixture.host, "GET", MAPS "?watch=true", AS("root"), NULL);
    assert_int_equal(ask(fixture.host, &arena, "POST", MAPS, AS("root"), MAP("seen"), NULL), 201);
    assert_true(client_wait(&bob, "\"seen\""));
    assert_int_equal(ask(fixture.host, &arena, "DELETE", ROLES "/rolebindings/b", AS("root"), NULL, NULL),
                     200);
    assert_int_equal(ask(fixture.host, &arena, "POST", MAPS, AS("root"), MAP("hidden"), NULL), 201);
    assert_true(client_wait(&bob, "\"code\":403"));
    assert_true(client_wait(&bob, NULL)); /* it has ended */
    assert_null(strstr(bob.body.data, "hidden"));
    assert_true(client_wait(&root, "\"hidden\""));
    client_done(&bob);
    client_done(&root);
    end(&fixture);
}

static void a_watch_ends_with_its_token(void **state)
{
    struct fixture fixture;
    struct arena arena ARENA_CLEANUP = {0};
    struct error error = {0};
    begin(&fixture, *state);
    struct client bob, eve;
    client_send(&bob, fixture.host, "GET", MAPS "?watch=true", AS("bob"), NULL);
    client_send(&eve, fixture.host, "GET", MAPS "?watch=true", AS("eve"), NULL);
    assert_int_equal(ask(fixture.host, &arena, "POST", MAPS, AS("root"), MAP("seen"), NULL), 201);
    assert_true(client_wait(&bob, "\"seen\"") && client_wait(&eve, "\"seen\""));
    write_tokens(&fixture, "root-token,root,1,system:masters\neve-token,eve,3\n");
    assert_int_equal(access_reload(fixture.access, &error), 0);
    assert_int_equal(ask(fixture.host, &arena, "POST", MAPS, AS("root"), MAP("hidden"), NULL), 201);
    assert_true(client_wait(&bob, "\"code\":401"));
    assert_true(client_wait(&bob, NULL));
    assert_null(strstr(bob.body.data, "hidden"));
    assert_true(client_wait(&eve, "\"hidden\""));
    client_done(&bob);
    client_done(&eve);
    end(&fixture);
}

/* Extras are told on, by whoever may say them. */
static void extras_are_honoured(void **state)
{
    struct fixture fixture;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    static const char review[] =
        "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"SelfSubjectReview\",\"metadata\":{}}";
    static const char url[] = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    begin(&fixture, *state);
    assert_int_equal(
        ask(fixture.host, &arena, "POST", url,
            AS("root") "Impersonate-User: eve\r\nImpersonate-Extra-Scopes: view\r\n"
                       "impersonate-extra-scopes: edit\r\nImpersonate-Extra-acme.org%2Fteam: x\r\n",
            review, &doc),
        201);
    const struct doc *extra = doc_path(doc, "status", "userInfo", "extra", NULL);
    assert_int_equal(doc_len(doc_get(extra, "scopes")), 2);
    assert_true(text_is(doc_at(doc_get(extra, "acme.org/team"), 0), "x"));
    assert_int_equal(
        ask(fixture.host, &arena, "POST", url, AS("root") "Impersonate-Extra-scopes: view\r\n", review, &doc),
        400);
    assert_int_equal(
        ask(fixture.host, &arena, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", AS("root"),
            "{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"ClusterRole\",\"metadata\":{"
            "\"name\":\"as\"},\"rules\":[{\"apiGroups\":[\"\"],\"resources\":[\"users\"],\"verbs\":["
            "\"impersonate\"]},{\"apiGroups\":[\"authentication.k8s.io\"],\"resources\":["
            "\"userextras/scopes\"],\"resourceNames\":[\"view\"],\"verbs\":[\"impersonate\"]}]}",
            NULL),
        201);
    assert_int_equal(
        ask(fixture.host, &arena, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            AS("root"),
            "{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"ClusterRoleBinding\",\"metadata\":{"
            "\"name\":\"as\"},\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":"
            "\"ClusterRole\",\"name\":\"as\"},\"subjects\":[{\"kind\":\"User\",\"name\":\"bob\"}]}",
            NULL),
        201);
    assert_int_equal(ask(fixture.host, &arena, "POST", url,
                         AS("bob") "Impersonate-User: eve\r\nImpersonate-Extra-scopes: view\r\n", review,
                         &doc),
                     201);
    assert_int_equal(ask(fixture.host, &arena, "POST", url,
                         AS("bob") "Impersonate-User: eve\r\nImpersonate-Extra-scopes: edit\r\n", review,
                         &doc),
                     403);
    end(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_watch_ends_with_its_binding, setup, teardown),
        cmocka_unit_test_setup_teardown(a_watch_ends_with_its_token, setup, teardown),
        cmocka_unit_test_setup_teardown(extras_are_honoured, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
