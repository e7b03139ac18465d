/* The API over real sockets, on a real core. With `serve PORT [CLUSTER]` it is a server to try clients on. */
#include "host/api/client.h"

static void test_discovery(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    assert_int_equal(ask(host, &arena, "GET", "/version?timeout=5s", NONE, NULL, &doc), 200);
    assert_true(text_is(doc_get(doc, "minor"), "31"));
    assert_int_equal(ask(host, &arena, "GET", "/apis", NONE, NULL, &doc), 200);
    assert_true(text_is(doc_get(doc, "kind"), "APIGroupList"));
    const char *aggregated =
        "Accept: application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
        "application/json\r\n";
    assert_int_equal(ask(host, &arena, "GET", "/apis", aggregated, NULL, &doc), 200);
    assert_true(text_is(doc_get(doc, "apiVersion"), "apidiscovery.k8s.io/v2beta1"));
    assert_int_equal(ask(host, &arena, "GET", "/api/v1", NONE, NULL, &doc), 200);
    assert_true(doc_len(doc_get(doc, "resources")) >= 4);
    assert_int_equal(ask(host, &arena, "GET", "/apis/jobset.x-k8s.io/v1alpha2", NONE, NULL, &doc), 200);
    assert_int_equal(ask(host, &arena, "GET", "/apis/nothing/v1", NONE, NULL, &doc), 404);
    assert_int_equal(ask(host, &arena, "GET", "/openapi/v3", NONE, NULL, &doc), 200);
    struct str url =
        doc_str(doc_path(doc, "paths", "apis/jobset.x-k8s.io/v1alpha2", "serverRelativeURL", NULL), STR(""));
    assert_int_equal(ask(host, &arena, "GET", arena_strdup(&arena, url), NONE, NULL, &doc), 200);
    assert_non_null(doc_get(doc, "paths"));
    assert_int_equal(ask(host, &arena, "GET", "/openapi/v2", NONE, NULL, &doc), 200);
}

static void test_create_get_list_delete(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    assert_int_equal(ask(host, &arena, "GET", JOBSETS "/a", NONE, NULL, &doc), 404);
    assert_true(text_is(doc_get(doc, "message"), "jobsets.jobset.x-k8s.io \"a\" not found"));
    create(host, "a");
    assert_int_equal(ask(host, &arena, "POST", JOBSETS, NONE, jobset_json(&arena, "a", ""), &doc), 409);
    assert_true(text_is(doc_get(doc, "reason"), "AlreadyExists"));
    assert_int_equal(ask(host, &arena, "GET", JOBSETS "/a", NONE, NULL, &doc), 200);
    assert_true(text_is(doc_path(doc, "metadata", "namespace", NULL), "default"));
    assert_true(doc_int(doc_path(doc, "status", "restarts", NULL), -1) == 0);
    struct doc *rjobs = doc_path(doc, "status", "replicatedJobsStatus", NULL);
    assert_int_equal(doc_int(doc_get(doc_at(rjobs, 0), "ready"), -1), 2);
    assert_non_null(doc_path(doc, "status", "phalanx", "ledger", "chipSeconds", NULL));

    assert_int_equal(ask(host, &arena, "GET", "/api/v1/pods", NONE, NULL, &doc), 200);
    assert_int_equal(doc_len(doc_get(doc, "items")), 4);
    struct doc *pod = doc_at(doc_get(doc, "items"), 3);
    assert_true(text_is(doc_path(pod, "status", "phase", NULL), "Running"));
    assert_true(text_is(doc_path(pod, "spec", "hostname", NULL), "a-workers-1-1"));
    struct str node = doc_str(doc_path(pod, "spec", "nodeName", NULL), STR(""));
    char *url =
        arena_strdup(&arena, arena_printf(&arena, "/api/v1/pods?fieldSelector=spec.nodeName%%3D" STR_FORMAT,
                                          STR_ARG(node)));
    assert_int_equal(ask(host, &arena, "GET", url, NONE, NULL, &doc), 200);
    size_t there = doc_len(doc_get(doc, "items"));
    assert_true(there >= 1);

    assert_int_equal(
        ask(host, &arena, "GET", "/apis/batch/v1/namespaces/default/jobs/a-workers-0", NONE, NULL, &doc),
        200);
    struct str uid =
        doc_str(doc_path(doc, "spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid", NULL),
                STR(""));
    assert_true(uid.len == 36);
    url = arena_strdup(&arena,
                       arena_printf(&arena,
                                    "/api/v1/namespaces/default/pods?labelSelector=batch.kubernetes.io%%2F"
                                    "controller-uid%%3D" STR_FORMAT,
                                    STR_ARG(uid)));
    assert_int_equal(ask(host, &arena, "GET", url, NONE, NULL, &doc), 200);
    assert_int_equal(doc_len(doc_get(doc, "items")), 2);

    assert_int_equal(ask(host, &arena, "GET", "/api/v1/events", NONE, NULL, &doc), 200);
    assert_true(doc_len(doc_get(doc, "items")) > 0);
    assert_int_equal(
        ask(host, &arena, "DELETE", JOBSETS "/a", NONE, "{\"propagationPolicy\":\"Background\"}", &doc), 200);
    for (int i = 0; i < 1000 && ask(host, &arena, "GET", JOBSETS "/a", NONE, NULL, NULL) == 200; i++)
        continue;
    assert_int_equal(ask(host, &arena, "GET", JOBSETS "/a", NONE, NULL, NULL), 404);
    assert_int_equal(ask(host, &arena, "GET", "/api/v1/pods", NONE, NULL, &doc), 200);
    assert_int_equal(doc_len(doc_get(doc, "items")), 0);
}

static void test_every_kind_is_json(void **state)
{
    struct fake_host *host = *state;
    static const char *const urls[] = {"/apis/jobset.x-k8s.io/v1alpha2/jobsets",
                                       "/apis/batch/v1/jobs",
                                       "/api/v1/pods",
                                       "/api/v1/nodes",
                                       "/api/v1/events",
                                       "/apis/events.k8s.io/v1/events",
                                       "/api/v1/namespaces"};
    create(host, "a");
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct doc *list, *table;
        assert_int_equal(ask(host, &arena, "GET", urls[i], NONE, NULL, &list), 200);
        assert_int_equal(ask(host, &arena, "GET", urls[i], TABLE, NULL, &table), 200);
        assert_non_null(list);
        assert_non_null(table);
        assert_true(text_is(doc_get(table, "kind"), "Table"));
        struct doc *items = doc_get(list, "items"), *rows = doc_get(table, "rows");
        assert_true(doc_len(items) > 0);
        assert_int_equal(doc_len(items), doc_len(rows));
        size_t columns = doc_len(doc_get(table, "columnDefinitions"));
        for (size_t k = 0; k < doc_len(items); k++) {
            const struct doc *row = doc_at(rows, k);
            assert_int_equal(doc_len(doc_get(row, "cells")), columns);
            assert_true(
                doc_equal(doc_path(row, "object", "metadata", NULL), doc_get(doc_at(items, k), "metadata")));
            assert_non_null(doc_get(doc_at(items, k), "apiVersion"));
        }
        /* One by name is the same object. */
        struct doc *first = doc_at(items, 0), *one;
        struct str namespace_ = doc_str(doc_path(first, "metadata", "namespace", NULL), STR(""));
        struct str name = doc_str(doc_path(first, "metadata", "name", NULL), STR(""));
        struct str base = str_from(urls[i]);
        while (base.data[base.len - 1] != '/')
            base.len--;
        char *url = arena_strdup(&arena, arena_printf(&arena, STR_FORMAT "%s" STR_FORMAT "%s%s/" STR_FORMAT,
                                                      STR_ARG(base), namespace_.len ? "namespaces/" : "",
                                                      STR_ARG(namespace_), namespace_.len ? "/" : "",
                                                      urls[i] + base.len, STR_ARG(name)));
        assert_int_equal(ask(host, &arena, "GET", url, NONE, NULL, &one), 200);
        assert_true(doc_equal(doc_get(one, "metadata"), doc_get(first, "metadata")));
    }
}

static void test_refusals(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    assert_int_equal(ask(host, &arena, "POST", JOBSETS, NONE, "{", &doc), 400);
    assert_int_equal(
        ask(host, &arena, "POST", JOBSETS, NONE, "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}", &doc), 400);
    assert_int_equal(ask(host, &arena, "POST", JOBSETS "?fieldValidation=Strict", NONE,
                         jobset_json(&arena, "b", "\"bogus\":1,"), &doc),
                     400);
    struct str message = doc_str(doc_get(doc, "message"), STR(""));
    assert_non_null(memmem(message.data, message.len, "unknown field \"spec.bogus\"", 26));
    assert_int_equal(ask(host, &arena, "POST", JOBSETS, NONE, jobset_json(&arena, "Bad_Name", ""), &doc),
                     422);
    assert_true(doc_len(doc_path(doc, "details", "causes", NULL)) > 0);
    assert_int_equal(ask(host, &arena, "POST", JOBSETS,
                         "Content-Type: application/vnd.kubernetes.protobuf\r\n", "k8s", &doc),
                     415);
    assert_int_equal(ask(host, &arena, "PUT", "/api/v1/pods", NONE, "{}", &doc), 405);
    assert_int_equal(ask(host, &arena, "GET", "/nothing", NONE, NULL, &doc), 404);
    assert_int_equal(ask(host, &arena, "GET", "/api/v1/pods?labelSelector=a%20in%20x", NONE, NULL, &doc),
                     400);
    assert_int_equal(ask(host, &arena, "GET", "/api/v1/pods?fieldSelector=spec.bogus%3D1", NONE, NULL, &doc),
                     400);
    assert_int_equal(ask(host, &arena, "GET", "/api/v1/%ff", NONE, NULL, &doc), 400);
    char words[4096] = "/api/v1/pods?";
    for (size_t i = 0; i < 1000; i++)
        memcpy(words + 13 + 3 * i, "a=&", 4);
    assert_int_equal(ask(host, &arena, "GET", words, NONE, NULL, &doc), 200);
    for (size_t i = 1000; i < 1100; i++)
        memcpy(words + 13 + 3 * i, "a=&", 4);
    assert_int_equal(ask(host, &arena, "GET", words, NONE, NULL, &doc), 414);
    assert_true(text_is(doc_get(doc, "reason"), "RequestURITooLong"));
    char *large = mem_alloc(OBJECT_BYTES_MAX + 2);
    memset(large, ' ', OBJECT_BYTES_MAX + 1);
    assert_int_equal(ask(host, &arena, "POST", JOBSETS, NONE, large, &doc), 413);
    mem_free(large);
    host->disk_full = true;
    assert_int_equal(ask(host, &arena, "POST", JOBSETS, NONE, jobset_json(&arena, "b", ""), &doc), 507);
    host->disk_full = false;
    assert_int_equal(
        ask(host, &arena, "POST", JOBSETS "?dryRun=All", NONE, jobset_json(&arena, "b", ""), &doc), 201);
    assert_int_equal(ask(host, &arena, "GET", JOBSETS "/b", NONE, NULL, &doc), 404);
}

/* However many and long the warnings, the answer comes. */
static void test_warnings(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct buf fields BUF_CLEANUP = {0};
    struct client client;
    for (int i = 0; i < 50; i++)
        buf_printf(&fields, "\"bogus%0200d\":1,", i);
    char *body = jobset_json(&arena, "w", fields.data);
    client_send(&client, host, "POST", JOBSETS, NONE, body);
    assert_true(client_wait(&client, NULL));
    assert_int_equal(client.code, 201);
    assert_non_null(strcasestr(client.head, "warning: 299 - \"unknown field"));
    client_done(&client);
}

static void test_logs(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct client client;
    create(host, "a");
    struct str name = core_jobs(host->core)->jobsets.items[0]->jobs[0]->tasks.items[0]->name;
    char *url = arena_strdup(&arena, arena_printf(&arena,
                                                  "/api/v1/namespaces/default/pods/" STR_FORMAT
                                                  "/log?follow=true&tailLines=5&container=main",
                                                  STR_ARG(name)));
    client_send(&client, host, "GET", url, NONE, NULL);
    RUN_UNTIL(host, host->stream);
    assert_true(host->log_options.follow);
    assert_int_equal(host->log_options.tail_lines, 5);
    api_log_data(host->stream, STR("one\n"), false, NULL);
    assert_true(client_wait(&client, "one\n"));
    api_log_data(host->stream, STR("two\n"), false, NULL);
    assert_true(client_wait(&client, "two\n"));
    client_done(&client);
    RUN_UNTIL(host, host->logs_closed == 1);

    client_send(&client, host, "GET", url, NONE, NULL);
    RUN_UNTIL(host, host->stream);
    api_log_data(host->stream, (struct str){0}, true, "the agent is away");
    assert_true(client_wait(&client, NULL));
    assert_int_equal(client.code, 500);
    client_done(&client);
    assert_int_equal(host->logs_closed, 1);
    char *bad = arena_strdup(
        &arena, arena_printf(&arena, "/api/v1/namespaces/default/pods/" STR_FORMAT "/log?container=x",
                             STR_ARG(name)));
    assert_int_equal(ask(host, &arena, "GET", bad, NONE, NULL, NULL), 400);
}

/* Closing with watches, logs and writes under way leaves nothing behind (the sanitizer looks). */
static void test_close_busy(void **state)
{
    struct fake_host *host = *state;
    struct client watch, write;
    create(host, "a");
    client_send(&watch, host, "GET", JOBSETS "?watch=true", NONE, NULL);
    assert_true(client_wait(&watch, "ADDED"));
    host->hold_commits = true;
    client_send(&write, host, "DELETE", JOBSETS "/a", NONE, NULL);
    RUN_UNTIL(host, host->writes.len == 1);
    client_done(&watch);
    client_done(&write);
}

/* The body of a request whose URL is refused is not waited for: nobody has said yet who sends it. */
static void test_bad_url_with_a_body(void **state)
{
    struct fake_host *host = *state;
    struct client client;
    client_send_text(&client, host,
                     STR("POST /api/%zz HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                         "Content-Length: 1000000\r\n\r\n{"));
    assert_true(client_wait(&client, NULL));
    assert_int_equal(client.code, 400);
    assert_non_null(strstr(client.head, "Connection: close\r\n"));
    client_done(&client);
}

static int refused_of(struct client *clients, int count)
{
    int refused = 0;
    bool found;
    for (int i = 0; i < count; i++) {
        client_read(&clients[i], NULL, &found);
        refused += clients[i].code == 429 && strstr(clients[i].head, "Retry-After: 1\r\n");
    }
    return refused;
}

/* Bodies that never come to their end hold so much memory and no more, and small writes go on. */
static void test_half_bodies(void **state)
{
    struct fake_host *host = *state;
    enum { CLIENTS = 40, LENGTH = 1400 * 1000 };
    struct client clients[CLIENTS], small;
    struct buf text = {0};
    buf_printf(&text,
               "POST " JOBSETS " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
               "Content-Length: %d\r\n\r\n",
               LENGTH + 1);
    for (int i = 0; i < LENGTH; i++)
        buf_add_char(&text, ' ');
    for (int i = 0; i < CLIENTS; i++)
        client_send_text(&clients[i], host, buf_str(&text));
    buf_done(&text);
    int room = 32 * 1024 * 1024 / (LENGTH - 16 * 1024); /* of this address: half of all */
    RUN_UNTIL(host, refused_of(clients, CLIENTS) >= CLIENTS - room);
    create(host, "a");
    assert_int_equal(send(clients[0].fd, "x", 1, MSG_NOSIGNAL), 1); /* the first ends, and makes room */
    assert_true(client_wait(&clients[0], NULL));
    assert_int_equal(clients[0].code, 400);
    for (int i = 0; i < CLIENTS; i++)
        client_done(&clients[i]);
    client_send(&small, host, "GET", JOBSETS "/a", NONE, NULL);
    assert_true(client_wait(&small, NULL));
    assert_int_equal(small.code, 200);
    client_done(&small);
}

/* An address that has all its connections gets no more, and others are served. */
static void test_connections_of_an_address(void **state)
{
    static const char ask_text[] = "GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static const char metrics[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    enum { LIMIT = 3 };
    struct fake_host host = {.connections_of_address_max = LIMIT};
    struct client clients[LIMIT], more, other;
    fake_start(&host, CLUSTER, 0);
    for (int i = 0; i < LIMIT; i++) {
        client_send_text(&clients[i], &host, str_from(ask_text));
        assert_true(client_wait(&clients[i], NULL));
        assert_int_equal(clients[i].code, 200);
    }
    client_send_text(&more, &host, str_from(ask_text));
    assert_false(client_wait(&more, NULL));
    assert_true(more.closed && more.in.len == 0);
    client_done(&more);
    client_send_from(&other, &host, INADDR_LOOPBACK + 1, str_from(metrics));
    assert_true(client_wait(&other, NULL));
    assert_non_null(strstr(other.body.data, "\nphalanx_api_connections_refused_total 1\n"));
    client_done(&clients[0]);
    do { /* until the server has seen the end of the first */
        client_send_text(&more, &host, str_from(ask_text));
        client_wait(&more, NULL);
        client_done(&more);
    } while (more.code != 200);
    client_done(&other);
    for (int i = 1; i < LIMIT; i++)
        client_done(&clients[i]);
    fake_stop(&host);
}

static int serve(int argc, char **argv)
{
    struct fake_host host = {.log_answers_itself = true};
    fake_start(&host, argc > 3 ? argv[3] : CLUSTER, (uint16_t)strtol(argv[2], NULL, 10));
    printf("serving on port %u\n", api_port(host.api));
    fflush(stdout);
    return uv_run(&host.loop, UV_RUN_DEFAULT);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_discovery, setup, teardown),
        cmocka_unit_test_setup_teardown(test_create_get_list_delete, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_kind_is_json, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_warnings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_logs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_close_busy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_url_with_a_body, setup, teardown),
        cmocka_unit_test_setup_teardown(test_half_bodies, setup, teardown),
        cmocka_unit_test(test_connections_of_an_address),
    };
    if (argc > 2 && strcmp(argv[1], "only") == 0)
        cmocka_set_test_filter(argv[2]);
    if (argc > 2 && strcmp(argv[1], "serve") == 0)
        return serve(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
