/* Watches end with the right to them: a binding that goes, a token that is withdrawn. */
#include "client.h"

#include "core/log/record.h"
#include "host/api/request.h"

#define ROLES     "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
#define MAPS      "/api/v1/namespaces/default/configmaps"
#define AS(name)  "Authorization: Bearer " name "-token\r\n"
#define MAP(name) "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"" name "\"}}"

struct fixture {
    struct fake_host *host;
    struct access *access;
    struct access_options options;
    char path[64], key[64];
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
    snprintf(fixture->key, sizeof fixture->key, "/tmp/phx-test-rights-%d.key", (int)getpid());
    fixture->options.account_key = fixture->key;
    if (access_new(&fixture->options, &fixture->access, &error) < 0)
        fail_msg("%s", error.text);
    host->api->access = fixture->access;
    struct arena arena ARENA_CLEANUP = {0};
    assert_int_equal(
        ask(host, &arena, "POST", ROLES "/roles", AS("root"),
            "{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"Role\",\"metadata\":{"
            "\"name\":\"r\"},\"rules\":[{\"apiGroups\":[\"\"],\"resources\":[\"configmaps\"],"
            "\"verbs\":[\"watch\"]},{\"apiGroups\":[\"\"],\"resources\":[\"pods/log\",\"pods/exec\"],"
            "\"verbs\":[\"get\",\"create\"]}]}",
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
    unlink(fixture->key);
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

/* One object is served as a get, whatever the query says: bob may watch, and may not get. */
static void a_get_is_asked_as_a_get(void **state)
{
    struct fixture fixture;
    struct arena arena ARENA_CLEANUP = {0};
    begin(&fixture, *state);
    assert_int_equal(ask(fixture.host, &arena, "POST", MAPS, AS("root"), MAP("one"), NULL), 201);
    static const char *const paths[] = {"/one", "/one?watch=true", "/one?watch=1", "/one?watch"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char *url = arena_strdup(&arena, arena_printf(&arena, MAPS "%s", paths[i]));
        assert_int_equal(ask(fixture.host, &arena, "GET", url, AS("bob"), NULL, NULL), 403);
        assert_int_equal(ask(fixture.host, &arena, "GET", url, AS("root"), NULL, NULL), 200);
    }
    end(&fixture);
}

/* A user who may create, and not get, is told that a write which comes again was done, and shown nothing.
 * Another user's key is another key. */
static void a_receipt_shows_what_its_user_may_get(void **state)
{
    struct fixture fixture;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc = NULL;
    struct event level = {.kind = EVENT_LEVEL, .level = LEVEL_RECEIPTS};
    begin(&fixture, *state);
    fake_step(fixture.host, &level, NULL);
    assert_int_equal(ask(fixture.host, &arena, "PUT", ROLES "/roles/r", AS("root"),
                         "{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"Role\",\"metadata\":{"
                         "\"name\":\"r\"},\"rules\":[{\"apiGroups\":[\"\"],\"resources\":[\"configmaps\"],"
                         "\"verbs\":[\"create\"]}]}",
                         NULL),
                     200);
#define KEY "Idempotency-Key: k\r\n"
    assert_int_equal(ask(fixture.host, &arena, "POST", MAPS, AS("bob") KEY, MAP("one"), NULL), 201);
    assert_int_equal(ask(fixture.host, &arena, "POST", MAPS, AS("bob") KEY, MAP("one"), &doc), 201);
    assert_true(text_is(doc_get(doc, "kind"), "Status") && text_is(doc_get(doc, "status"), "Success"));
    assert_int_equal(ask(fixture.host, &arena, "POST", MAPS, AS("eve") KEY, MAP("one"), NULL), 409);
    assert_int_equal(ask(fixture.host, &arena, "POST", MAPS, AS("root") KEY, MAP("two"), NULL), 201);
    assert_int_equal(ask(fixture.host, &arena, "POST", MAPS, AS("root") KEY, MAP("two"), &doc), 201);
    assert_true(text_is(doc_get(doc, "kind"), "ConfigMap"));
    end(&fixture);
}

/* The path of the first Pod of a JobSet that runs. */
static const char *running_pod(struct fixture *fixture, struct arena *arena)
{
    struct doc *pods = NULL;
    assert_int_equal(
        ask(fixture->host, arena, "POST", JOBSETS, AS("root"), jobset_json(arena, "train", ""), NULL), 201);
    RUN_UNTIL(fixture->host, ask(fixture->host, arena, "GET",
                                 "/api/v1/namespaces/default/pods?fieldSelector=status.phase%3DRunning",
                                 AS("root"), NULL, &pods) == 200 &&
                                 doc_len(doc_get(pods, "items")) > 0);
    struct str name = doc_str(doc_path(doc_at(doc_get(pods, "items"), 0), "metadata", "name", NULL), STR(""));
    return arena_strdup(arena,
                        arena_printf(arena, "/api/v1/namespaces/default/pods/" STR_FORMAT, STR_ARG(name)));
}

static void forget_bob(struct fixture *fixture)
{
    struct error error = {0};
    write_tokens(fixture, "root-token,root,1,system:masters\neve-token,eve,3\n");
    assert_int_equal(access_reload(fixture->access, &error), 0);
}

/* A log that has begun, and one of which nothing has come yet. */
static void logs_end_with_the_token(void **state)
{
    struct fixture fixture;
    struct arena arena ARENA_CLEANUP = {0};
    begin(&fixture, *state);
    struct fake_host *host = fixture.host;
    const char *url =
        arena_strdup(&arena, arena_printf(&arena, "%s/log?follow=true", running_pod(&fixture, &arena)));
    struct client begun, waiting, eve;
    client_send(&eve, host, "GET", url, AS("eve"), NULL);
    RUN_UNTIL(host, host->stream);
    struct api_stream *of_eve = host->stream;
    host->stream = NULL;
    client_send(&begun, host, "GET", url, AS("bob"), NULL);
    RUN_UNTIL(host, host->stream);
    api_log_data(host->stream, STR("a line\n"), false, NULL);
    assert_true(client_wait(&begun, "a line"));
    host->stream = NULL;
    client_send(&waiting, host, "GET", url, AS("bob"), NULL);
    RUN_UNTIL(host, host->stream);
    forget_bob(&fixture);
    assert_true(client_wait(&begun, "the log ends here: Unauthorized"));
    assert_true(client_wait(&begun, NULL));
    assert_true(client_wait(&waiting, NULL));
    assert_int_equal(waiting.code, 401);
    assert_int_equal(host->logs_closed, 2); /* the host reads on for nobody */
    api_log_data(of_eve, STR("for eve\n"), true, NULL);
    assert_true(client_wait(&eve, NULL));
    assert_non_null(strstr(eve.body.data, "for eve"));
    client_done(&begun);
    client_done(&waiting);
    client_done(&eve);
    end(&fixture);
}

static bool has_come(struct client *client, const char *text)
{
    bool found;
    (void)client_read(client, text, &found);
    return client->in.len && memmem(client->in.data, client->in.len, text, strlen(text));
}

static void a_command_ends_with_its_binding(void **state)
{
    struct fixture fixture;
    struct arena arena ARENA_CLEANUP = {0};
    begin(&fixture, *state);
    struct fake_host *host = fixture.host;
    const char *url = arena_strdup(
        &arena, arena_printf(&arena, "%s/exec?command=cat&stdout=true", running_pod(&fixture, &arena)));
    struct client bob;
    client_send(&bob, host, "GET", url,
                AS("bob") "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                          "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n",
                NULL);
    RUN_UNTIL(host, host->exec);
    assert_int_equal(ask(host, &arena, "DELETE", ROLES "/rolebindings/b", AS("root"), NULL, NULL), 200);
    RUN_UNTIL(host, host->execs_closed == 1); /* the agent is told to give it up */
    RUN_UNTIL(host, has_come(&bob, "the right to this has ended"));
    client_done(&bob);
    end(&fixture);
}

#define ACCOUNTS  "/api/v1/namespaces/default/serviceaccounts"
#define TOKEN_URL ACCOUNTS "/robot/token"

/* A token of the ServiceAccount "robot", as a header. */
static const char *robot_token(struct fixture *fixture, struct arena *arena, const char *spec)
{
    struct doc *doc = NULL;
    const char *body = arena_strdup(
        arena,
        arena_printf(arena,
                     "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenRequest\",\"spec\":%s}",
                     spec));
    assert_int_equal(ask(fixture->host, arena, "POST", TOKEN_URL, AS("root"), body, &doc), 201);
    struct str token = doc_str(doc_path(doc, "status", "token", NULL), STR(""));
    assert_true(token.len > 0);
    return arena_strdup(arena,
                        arena_printf(arena, "Authorization: Bearer " STR_FORMAT "\r\n", STR_ARG(token)));
}

static void make_robot(struct fixture *fixture, struct arena *arena)
{
    assert_int_equal(
        ask(fixture->host, arena, "POST", ACCOUNTS, AS("root"),
            "{\"apiVersion\":\"v1\",\"kind\":\"ServiceAccount\",\"metadata\":{\"name\":\"robot\"}}", NULL),
        201);
}

/* A service account is the user of its token, has the rights of its bindings, and is nobody once it is
 * deleted, also in streams that are open. */
static void service_accounts(void **state)
{
    struct fixture fixture;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    static const char whoami[] = "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                      kind[] = "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"SelfSubjectReview\"}";
    begin(&fixture, *state);
    struct fake_host *host = fixture.host;
    assert_int_equal(ask(host, &arena, "POST", TOKEN_URL, AS("root"), "{}", NULL), 404);
    make_robot(&fixture, &arena);
    assert_int_equal(ask(host, &arena, "POST", TOKEN_URL, AS("bob"), "{}", NULL), 403);
    assert_int_equal(
        ask(host, &arena, "POST", TOKEN_URL, AS("root"), "{\"spec\":{\"expirationSeconds\":599}}", NULL),
        422);
    const char *robot = robot_token(&fixture, &arena, "{\"expirationSeconds\":600}");
    assert_int_equal(ask(host, &arena, "POST", whoami, robot, kind, &doc), 201);
    const struct doc *user = doc_path(doc, "status", "userInfo", NULL);
    assert_true(text_is(doc_get(user, "username"), "system:serviceaccount:default:robot"));
    assert_int_equal(doc_len(doc_get(user, "groups")), 3);
    assert_true(text_is(doc_at(doc_get(user, "groups"), 1), "system:serviceaccounts:default"));
    assert_int_equal(ask(host, &arena, "GET", MAPS, robot, NULL, NULL), 403);
    assert_int_equal(
        ask(host, &arena, "POST", ROLES "/rolebindings", AS("root"),
            "{\"apiVersion\":\"rbac.authorization.k8s.io/"
            "v1\",\"kind\":\"RoleBinding\",\"metadata\":{\"name\":"
            "\"rb\"},\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\","
            "\"name\":"
            "\"view\"},\"subjects\":[{\"kind\":\"ServiceAccount\",\"name\":\"robot\",\"namespace\":"
            "\"default\"}]}",
            NULL),
        201);
    assert_int_equal(ask(host, &arena, "GET", MAPS, robot, NULL, NULL), 200);
    struct client watch;
    client_send(&watch, host, "GET", MAPS "?watch=true", robot, NULL);
    assert_int_equal(ask(host, &arena, "POST", MAPS, AS("root"), MAP("seen"), NULL), 201);
    assert_true(client_wait(&watch, "\"seen\""));
    assert_int_equal(ask(host, &arena, "DELETE", ACCOUNTS "/robot", AS("root"), NULL, NULL), 200);
    assert_true(client_wait(&watch, "\"code\":401"));
    assert_true(client_wait(&watch, NULL));
    client_done(&watch);
    make_robot(&fixture, &arena); /* of the same name is another one */
    assert_int_equal(ask(host, &arena, "GET", MAPS, robot, NULL, NULL), 401);
    assert_int_equal(ask(host, &arena, "GET", MAPS, robot_token(&fixture, &arena, "{}"), NULL, NULL), 200);
    end(&fixture);
}

static bool review_says(struct fixture *fixture, struct arena *arena, const char *header,
                        const char *audiences)
{
    struct doc *doc;
    char *body = arena_strdup(
        arena, arena_printf(arena,
                            "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\","
                            "\"spec\":{\"token\":\"%.*s\",\"audiences\":%s}}",
                            (int)strcspn(header + 22, "\r"), header + 22, audiences));
    assert_int_equal(ask(fixture->host, arena, "POST", "/apis/authentication.k8s.io/v1/tokenreviews",
                         AS("root"), body, &doc),
                     201);
    return doc_bool(doc_path(doc, "status", "authenticated", NULL), false);
}

/* For whom a token is, and with what it ends. */
static void audiences_and_bonds(void **state)
{
    struct fixture fixture;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *pod;
    begin(&fixture, *state);
    struct fake_host *host = fixture.host;
    make_robot(&fixture, &arena);
    const char *vault = robot_token(&fixture, &arena, "{\"audiences\":[\"vault\"]}");
    assert_int_equal(ask(host, &arena, "GET", MAPS, vault, NULL, NULL), 401);
    assert_true(review_says(&fixture, &arena, vault, "[\"other\",\"vault\"]"));
    assert_false(review_says(&fixture, &arena, vault, "[]"));
    assert_true(review_says(&fixture, &arena, AS("bob"), "[\"phalanx\"]"));
    assert_false(review_says(&fixture, &arena, AS("bob"), "[\"vault\"]"));
    const char *url = running_pod(&fixture, &arena);
    assert_int_equal(ask(host, &arena, "GET", url, AS("root"), NULL, &pod), 200);
    struct str name = doc_str(doc_path(pod, "metadata", "name", NULL), STR(""));
    struct str bond = arena_printf(
        &arena, "{\"boundObjectRef\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"name\":\"" STR_FORMAT "\"}}",
        STR_ARG(name));
    const char *bound = robot_token(&fixture, &arena, arena_strdup(&arena, bond));
    assert_true(review_says(&fixture, &arena, bound, "[]"));
    assert_int_equal(ask(host, &arena, "DELETE", JOBSETS "/train", AS("root"), NULL, NULL), 200);
    RUN_UNTIL(host, !review_says(&fixture, &arena, bound, "[]"));
    end(&fixture);
}

/* Every user may send reviews, so a large one is refused unread: this is no JSON after its first 64 KiB. */
static void a_review_is_small(void **state)
{
    static const char access[] = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    struct fixture fixture;
    struct arena arena ARENA_CLEANUP = {0};
    struct buf body BUF_CLEANUP = {0};
    begin(&fixture, *state);
    buf_printf(&body, "{\"spec\":{\"nonResourceAttributes\":{\"verb\":\"get\",\"path\":\"/x\"}}}");
    assert_int_equal(ask(fixture.host, &arena, "POST", access, AS("bob"), body.data, NULL), 201);
    while (body.len <= 64 * 1024)
        buf_add_char(&body, ' ');
    buf_printf(&body, "no JSON");
    assert_int_equal(ask(fixture.host, &arena, "POST", access, AS("bob"), body.data, NULL), 413);
    end(&fixture);
}

#define FAULTS "/apis/phalanx.dev/v1/faults"

/* A sender that is too fast hears when to come again. */
#define LOCAL_REVIEW(attributes)                                                                             \
    "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"LocalSubjectAccessReview\",\"spec\":{\"user\":"  \
    "\"eve\"," attributes "}}"

/* The right to it is given in a namespace, so it tells nothing of another one. */
static void a_local_review_stays_in_its_namespace(void **state)
{
    struct fake_host *host = *state;
    struct fixture fixture;
    begin(&fixture, host);
    static const struct {
        const char *body;
        int code;
    } cases[] = {
        {LOCAL_REVIEW(
             "\"resourceAttributes\":{\"verb\":\"get\",\"resource\":\"pods\",\"namespace\":\"default\"}"),
         201},
        {LOCAL_REVIEW(
             "\"resourceAttributes\":{\"verb\":\"get\",\"resource\":\"pods\",\"namespace\":\"other\"}"),
         400},
        {LOCAL_REVIEW("\"resourceAttributes\":{\"verb\":\"get\",\"resource\":\"pods\"}"), 400},
        {LOCAL_REVIEW("\"nonResourceAttributes\":{\"verb\":\"get\",\"path\":\"/metrics\"}"), 400},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        assert_int_equal(ask(host, &arena, "POST",
                             "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews",
                             AS("root"), cases[i].body, NULL),
                         cases[i].code);
    }
    end(&fixture);
}

static void a_fast_sender_waits(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    static const char report[] =
        "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Fault\",\"metadata\":{},\"spec\":{"
        "\"machine\":\"m-1\",\"code\":\"public/1\",\"severity\":\"notice\",\"sender\":"
        "\"CCAE\"}}";
    struct client client;
    assert_int_equal(
        ask(host, &arena, "POST", "/apis/phalanx.dev/v1/faulttables", NONE,
            "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"FaultTable\",\"metadata\":{\"name\":\"default\"},"
            "\"spec\":{\"public\":{\"perSecond\":1,\"burst\":1}}}",
            NULL),
        201);
    assert_int_equal(ask(host, &arena, "POST", FAULTS, NONE, report, NULL), 201);
    host->clock_ns = -60 * NS_PER_SECOND; /* so that the second does not pass */
    client_send(&client, host, "POST", FAULTS, NONE, report);
    assert_true(client_wait(&client, NULL));
    assert_int_equal(client.code, 429);
    assert_non_null(strcasestr(client.head, "retry-after: 1\r\n"));
    assert_non_null(strstr(client.body.data, "\"retryAfterSeconds\":1"));
    client_done(&client);
    host->clock_ns = 2 * NS_PER_SECOND;
    assert_int_equal(ask(host, &arena, "POST", FAULTS, NONE, report, NULL), 201);
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
        cmocka_unit_test_setup_teardown(a_get_is_asked_as_a_get, setup, teardown),
        cmocka_unit_test_setup_teardown(a_receipt_shows_what_its_user_may_get, setup, teardown),
        cmocka_unit_test_setup_teardown(a_watch_ends_with_its_token, setup, teardown),
        cmocka_unit_test_setup_teardown(logs_end_with_the_token, setup, teardown),
        cmocka_unit_test_setup_teardown(a_command_ends_with_its_binding, setup, teardown),
        cmocka_unit_test_setup_teardown(service_accounts, setup, teardown),
        cmocka_unit_test_setup_teardown(audiences_and_bonds, setup, teardown),
        cmocka_unit_test_setup_teardown(a_review_is_small, setup, teardown),
        cmocka_unit_test_setup_teardown(a_local_review_stays_in_its_namespace, setup, teardown),
        cmocka_unit_test_setup_teardown(a_fast_sender_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(extras_are_honoured, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
