/* Watches and long lists over real sockets, on a real core. */
#include <malloc.h>

#include "host/api/client.h"
#include "host/api/request.h"

/* A long list comes in pieces, whole and in order, as objects and as a Table. */
static void test_long_list(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    enum { COUNT = 600 };
    const char *json = "Content-Type: application/json\r\n", *maps = "/api/v1/namespaces/default/configmaps";
    for (int i = 0; i < COUNT; i++) {
        char body[200];
        snprintf(body, sizeof body,
                 "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c-%03d\","
                 "\"labels\":{\"odd\":\"%d\"}}}",
                 i, i % 2);
        assert_int_equal(ask(host, &arena, "POST", maps, json, body, &doc), 201);
    }
    assert_int_equal(ask(host, &arena, "GET", maps, "", "", &doc), 200);
    assert_int_equal(doc_len(doc_get(doc, "items")), COUNT);
    for (int i = 0; i < COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "c-%03d", i);
        assert_true(
            text_is(doc_path(doc_at(doc_get(doc, "items"), (size_t)i), "metadata", "name", NULL), name));
    }
    /* A watch from nowhere begins with all of them, rendered as its client reads. */
    struct client client;
    char *watch = arena_strdup(&arena, arena_printf(&arena, "%s?watch=true&timeoutSeconds=1", maps));
    client_send(&client, host, "GET", watch, "", "");
    host->clock_ns += 2 * NS_PER_SECOND;
    assert_true(client_wait(&client, NULL));
    size_t lines = 0;
    for (size_t i = 0; i < client.body.len; i++)
        lines += client.body.data[i] == '\n';
    assert_int_equal(lines, COUNT);
    client_done(&client);
    char *half = arena_strdup(&arena, arena_printf(&arena, "%s?labelSelector=odd%%3D1", maps));
    assert_int_equal(ask(host, &arena, "GET", half, "", "", &doc), 200);
    assert_int_equal(doc_len(doc_get(doc, "items")), COUNT / 2);
    assert_int_equal(
        ask(host, &arena, "GET", maps, "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n", "", &doc),
        200);
    assert_int_equal(doc_len(doc_get(doc, "rows")), COUNT);
    assert_int_equal(ask(host, &arena, "DELETE", maps, "", "", &doc), 200);
    assert_int_equal(ask(host, &arena, "GET", maps, "", "", &doc), 200);
    assert_int_equal(doc_len(doc_get(doc, "items")), 0);
}

static void test_watch(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    struct client all, one, labelled, pods;
    assert_int_equal(ask(host, &arena, "GET", JOBSETS, NONE, NULL, &doc), 200);
    struct str version = doc_str(doc_path(doc, "metadata", "resourceVersion", NULL), STR(""));
    create(host, "a");
    char *url = arena_strdup(
        &arena, arena_printf(&arena, JOBSETS "?watch=true&resourceVersion=" STR_FORMAT, STR_ARG(version)));
    client_send(&all, host, "GET", url, NONE, NULL);
    assert_true(client_wait(&all, "{\"type\":\"ADDED\""));
    client_send(&one, host, "GET", JOBSETS "?watch=1&fieldSelector=metadata.name%3Db", TABLE, NULL);
    client_send(&labelled, host, "GET", JOBSETS "?watch=1&labelSelector=team%3Da", NONE, NULL);
    assert_true(client_wait(&labelled, "\"name\":\"a\""));
    client_send(&pods, host, "GET",
                "/api/v1/pods?watch=true&fieldSelector=status.phase%3DRunning&resourceVersion=0", NONE, NULL);
    assert_true(client_wait(&pods, "\"name\":\"a-workers-0-0"));
    create(host, "b");
    assert_true(client_wait(&one, "\"name\":\"b\""));
    assert_null(strstr(one.body.data, "\"name\":\"a\""));
    assert_non_null(strstr(one.body.data, "columnDefinitions"));
    assert_true(client_wait(&all, "\"name\":\"b\""));
    assert_true(client_wait(&pods, "\"name\":\"b-workers-1-1"));
    /* A label goes: for this watcher the object is gone. */
    assert_int_equal(ask(host, &arena, "PATCH", JOBSETS "/a",
                         "Content-Type: application/merge-patch+json\r\n",
                         "{\"metadata\":{\"labels\":{\"team\":null}}}", &doc),
                     200);
    assert_true(client_wait(&labelled, "{\"type\":\"DELETED\""));
    assert_null(strstr(all.body.data, "{\"type\":\"DELETED\""));
    assert_int_equal(ask(host, &arena, "DELETE", JOBSETS "/b", NONE, NULL, &doc), 200);
    assert_true(client_wait(&all, "{\"type\":\"DELETED\""));
    assert_true(client_wait(&pods, "{\"type\":\"DELETED\""));
    struct api_stats stats;
    api_stats(host->api, &stats);
    assert_int_equal(stats.watches, 4);
    client_done(&all);
    client_done(&one);
    client_done(&labelled);
    client_done(&pods);
    /* Clients that go are noticed without a change. */
    RUN_UNTIL(host, (api_stats(host->api, &stats), stats.watches == 0));
}

/* A watcher that finds little among many changes looks at some of them, and lets others have their turn. */
static void test_rare_changes(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    struct client client;
    struct api_request request;
    char data[4096], body[200];
    enum { COUNT = 700 };
    const char *maps = "/api/v1/namespaces/default/configmaps";
    assert_int_equal(ask(host, &arena, "GET", maps, NONE, NULL, &doc), 200);
    struct str version = doc_str(doc_path(doc, "metadata", "resourceVersion", NULL), STR(""));
    for (int i = 1; i <= COUNT; i++) {
        snprintf(body, sizeof body,
                 "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c-%d\"}}", i);
        assert_int_equal(ask(host, &arena, "POST", maps, NONE, body, NULL), 201);
    }
    char *url = arena_strdup(
        &arena,
        arena_printf(&arena, "%s?watch=1&fieldSelector=metadata.name%%3Dc-%d&resourceVersion=" STR_FORMAT,
                     maps, COUNT, STR_ARG(version)));
    request_init(&request, host->api, METHOD_GET, str_from(url));
    request_handle(&request);
    assert_int_equal(request.outcome, OUTCOME_STREAM);
    assert_int_equal(request.stream->read(request.stream, data, sizeof data), 0);
    assert_true(request.stream->read(request.stream, data, sizeof data) > 0);
    request_done(&request);
    client_send(&client, host, "GET", url, NONE, NULL);
    assert_true(client_wait(&client, "\"name\":\"c-700\""));
    client_done(&client);
}

static void test_watch_expired(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    create(host, "a"); /* nobody has read: its changes are not kept */
    assert_int_equal(ask(host, &arena, "GET", JOBSETS "?watch=true&resourceVersion=1", NONE, NULL, &doc),
                     410);
    assert_true(text_is(doc_get(doc, "reason"), "Expired"));
    struct client slow;
    client_send(&slow, host, "GET",
                JOBSETS "?watch=true&resourceVersion=0&timeoutSeconds=1&allowWatchBookmarks=true", NONE,
                NULL);
    assert_true(client_wait(&slow, NULL)); /* ends by itself */
    client_done(&slow);
}

/* A watcher that reads nothing holds a bounded text, falls out of the ring and is told so. */
static void test_slow_watcher(void **state)
{
    struct fake_host *host = *state;
    struct client slow;
    create(host, "a");
    client_send(&slow, host, "GET", JOBSETS "?watch=true", NONE, NULL);
    assert_true(client_wait(&slow, "ADDED"));
    const struct jobset *jobset = core_jobs(host->core)->jobsets.items[0];
    struct effect changed = {.kind = EFFECT_CHANGED};
    changed.changed.type = CHANGE_MODIFIED;
    changed.changed.object = (struct object_ref){.kind = OBJECT_JOBSET, .jobset = jobset};
    for (int i = 0; i < API_RING_ENTRIES_MAX + 5000; i++) {
        changed.seq = core_seq(host->core);
        changed.seq += (uint64_t)i + 1;
        api_changed(host->api, &changed);
        if (i % 1000 == 0)
            uv_run(&host->loop, UV_RUN_NOWAIT);
    }
    struct api_stats stats;
    api_stats(host->api, &stats);
    assert_true(stats.ring_bytes <= API_RING_BYTES_MAX);
    assert_true(stats.ring_entries <= API_RING_ENTRIES_MAX);
    assert_true(client_wait(&slow, "\"code\":410"));
    client_done(&slow);
}

/* An idle watch holds less than 1 KiB, whatever the allocator adds. */
static void test_idle_watches_are_small(void **state)
{
    enum { IDLE_WATCHES = 200, IDLE_BYTES_MAX = 1024 };
    static const struct str text = {"GET " JOBSETS "?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n",
                                    sizeof "GET " JOBSETS "?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n" -
                                        1};
    struct fake_host *host = *state;
    struct client clients[IDLE_WATCHES + 1];
    struct api_stats stats;
    client_send_text(&clients[IDLE_WATCHES], host, text); /* what all of them share is there */
    RUN_UNTIL(host, (api_stats(host->api, &stats), stats.watches == 1));
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < IDLE_WATCHES; i++)
        client_send_text(&clients[i], host, text);
    RUN_UNTIL(host, (api_stats(host->api, &stats), stats.watches == IDLE_WATCHES + 1));
    uv_run(&host->loop, UV_RUN_NOWAIT); /* their heads have left */
    size_t held = mallinfo2().uordblks - before;
    if (held > IDLE_WATCHES * IDLE_BYTES_MAX)
        fail_msg("%zu bytes each", held / IDLE_WATCHES);
    for (int i = 0; i <= IDLE_WATCHES; i++)
        client_done(&clients[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_long_list, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rare_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_expired, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slow_watcher, setup, teardown),
        cmocka_unit_test_setup_teardown(test_idle_watches_are_small, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
