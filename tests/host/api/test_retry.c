/* Writes that their clients send again: each is applied once, and answered as it was (retry.c). */
#include "core/receipt/receipt.h"
#include "core/log/record.h"
#include "host/api/client.h"

#define MAPS "/api/v1/namespaces/default/configmaps"
#define MAP(meta)                                                                                            \
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{" meta "},\"data\":{\"a\":\"1\"}}"
#define KEY(key) "Idempotency-Key: " key "\r\n"
#define MERGE    "Content-Type: application/merge-patch+json\r\n"
#define JSON     "Content-Type: application/json-patch+json\r\n"

static int open_log(void **state)
{
    (void)setup(state);
    struct fake_host *host = *state;
    struct event level = {.kind = EVENT_LEVEL, .level = LEVEL_RECEIPTS};
    fake_step(host, &level, NULL);
    return 0;
}

static size_t maps(const struct fake_host *host)
{
    return object_count(core_objects(host->core), OBJECT_CONFIG_MAP);
}

/* Asks twice with the same bytes, and returns the code that both answers have. */
static int ask_twice(struct fake_host *host, struct arena *arena, const char *method, const char *url,
                     const char *headers, const char *body, struct doc *ret_docs[2])
{
    int first = ask(host, arena, method, url, headers, body, &ret_docs[0]);
    uint64_t seq = core_seq(host->core);
    int second = ask(host, arena, method, url, headers, body, &ret_docs[1]);
    assert_int_equal(first, second);
    assert_int_equal(core_seq(host->core), seq); /* it did not get to the log */
    return first;
}

static struct str uid_of(const struct doc *doc)
{
    return doc_str(doc_path(doc, "metadata", "uid", NULL), STR("none"));
}

static void test_create(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *docs[2];
    size_t before = maps(host);
    assert_int_equal(ask_twice(host, &arena, "POST", MAPS, KEY("one"), MAP("\"generateName\":\"m-\""), docs),
                     201);
    assert_int_equal(maps(host), before + 1);
    assert_true(str_equal(uid_of(docs[0]), uid_of(docs[1])));
    assert_int_equal(ask(host, &arena, "POST", MAPS, KEY("two"), MAP("\"generateName\":\"m-\""), NULL), 201);
    assert_int_equal(maps(host), before + 2);
    assert_int_equal(ask_twice(host, &arena, "POST", JOBSETS, KEY("job"), jobset_json(&arena, "a", ""), docs),
                     201);
    assert_true(str_equal(uid_of(docs[0]), uid_of(docs[1])));
    assert_int_equal(core_jobs(host->core)->jobsets.len, 1);
}

/* A patch that could not be applied twice, and what a replacement with a resourceVersion would refuse. */
static void test_changes(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *docs[2], *object;
    const char *patch = "[{\"op\":\"test\",\"path\":\"/data/a\",\"value\":\"1\"},"
                        "{\"op\":\"replace\",\"path\":\"/data/a\",\"value\":\"2\"}]";
    assert_int_equal(ask(host, &arena, "POST", MAPS, NONE, MAP("\"name\":\"m\""), &object), 201);
    assert_int_equal(ask_twice(host, &arena, "PATCH", MAPS "/m", JSON KEY("patch"), patch, docs), 200);
    assert_true(text_is(doc_path(docs[1], "data", "a", NULL), "2"));
    assert_int_equal(ask(host, &arena, "PATCH", MAPS "/m", JSON KEY("more"), patch, NULL), 422);
    struct str version = doc_str(doc_path(docs[1], "metadata", "resourceVersion", NULL), STR(""));
    char body[256];
    snprintf(body, sizeof body, MAP("\"name\":\"m\",\"resourceVersion\":\"" STR_FORMAT "\""),
             STR_ARG(version));
    assert_int_equal(ask_twice(host, &arena, "PUT", MAPS "/m", KEY("put"), body, docs), 200);
    /* A write that comes again shows the object as it is by now. */
    assert_int_equal(ask(host, &arena, "PATCH", MAPS "/m", MERGE, "{\"data\":{\"a\":\"3\"}}", NULL), 200);
    assert_int_equal(ask(host, &arena, "PUT", MAPS "/m", KEY("put"), body, &object), 200);
    assert_true(text_is(doc_path(object, "data", "a", NULL), "3"));
}

static void test_deletion(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *docs[2];
    assert_int_equal(ask(host, &arena, "POST", MAPS, KEY("make"), MAP("\"name\":\"m\""), NULL), 201);
    assert_int_equal(ask_twice(host, &arena, "DELETE", MAPS "/m", KEY("gone"), NULL, docs), 200);
    assert_true(text_is(doc_get(docs[1], "status"), "Success"));
    /* The object that was made is gone: the answer says so much. */
    assert_int_equal(ask(host, &arena, "POST", MAPS, KEY("make"), MAP("\"name\":\"m\""), &docs[0]), 201);
    assert_true(text_is(doc_get(docs[0], "kind"), "Status"));
    assert_int_equal(ask(host, &arena, "POST", MAPS, NONE, MAP("\"name\":\"m\""), NULL), 201);
    assert_int_equal(ask(host, &arena, "DELETE", MAPS "/m", KEY("gone"), NULL, NULL), 200);
    assert_int_equal(ask(host, &arena, "GET", MAPS "/m", NONE, NULL, NULL), 200); /* it is another one */
}

/* Both copies are with the log before the first is applied. */
static void test_two_at_once(void **state)
{
    struct fake_host *host = *state;
    struct client clients[2];
    size_t before = maps(host);
    host->hold_commits = true;
    for (int i = 0; i < 2; i++)
        client_send(&clients[i], host, "POST", MAPS, KEY("one"), MAP("\"generateName\":\"m-\""));
    RUN_UNTIL(host, host->writes.len == 2);
    host->hold_commits = false;
    for (int i = 0; i < 2; i++) {
        assert_true(client_wait(&clients[i], NULL));
        assert_int_equal(clients[i].code, 201);
    }
    assert_int_equal(maps(host), before + 1);
    assert_true(str_equal(buf_str(&clients[0].body), buf_str(&clients[1].body)));
    for (int i = 0; i < 2; i++)
        client_done(&clients[i]);
}

static void test_refused(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    char key[512];
    snprintf(key, sizeof key, KEY("%0256d"), 0);
    assert_int_equal(ask(host, &arena, "POST", MAPS, key, MAP("\"name\":\"m\""), NULL), 400);
    assert_int_equal(
        ask(host, &arena, "POST", MAPS, KEY("k") "Phalanx-Resent: -1\r\n", MAP("\"name\":\"m\""), NULL), 400);
    assert_int_equal(ask(host, &arena, "POST", MAPS, KEY("k"), MAP("\"name\":\"m\""), NULL), 201);
    assert_int_equal(ask(host, &arena, "POST", MAPS, KEY("k"), MAP("\"name\":\"n\""), NULL), 422);
    assert_int_equal(ask(host, &arena, "DELETE", MAPS "/m", KEY("k"), NULL, NULL), 422);
    assert_int_equal(ask(host, &arena, "GET", MAPS "/n", NONE, NULL, NULL), 404);
}

/* A write that is said to be sent again, and has no receipt, was not applied: if receipts reach so far. */
static void test_resent(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    host->clock_ns += 10 * NS_PER_SECOND;
    assert_int_equal(
        ask(host, &arena, "POST", MAPS, KEY("k") "Phalanx-Resent: 5000\r\n", MAP("\"name\":\"m\""), NULL),
        201);
    assert_int_equal(
        ask(host, &arena, "POST", MAPS, KEY("k") "Phalanx-Resent: 6000\r\n", MAP("\"name\":\"m\""), NULL),
        201);
    assert_int_equal(
        ask(host, &arena, "POST", MAPS, KEY("l") "Phalanx-Resent: 60000\r\n", MAP("\"name\":\"n\""), NULL),
        409);
    assert_int_equal(ask(host, &arena, "GET", MAPS "/n", NONE, NULL, NULL), 404);
}

/* At a level without receipts a key is no promise: what is sent again is refused. */
static void test_level_below(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    assert_int_equal(ask(host, &arena, "POST", MAPS, KEY("k"), MAP("\"name\":\"m\""), NULL), 201);
    assert_int_equal(
        ask(host, &arena, "POST", MAPS, KEY("k") "Phalanx-Resent: 10\r\n", MAP("\"name\":\"m\""), NULL), 409);
    assert_int_equal(ask(host, &arena, "POST", MAPS "?dryRun=All", KEY("k") "Phalanx-Resent: 10\r\n",
                         MAP("\"name\":\"n\""), NULL),
                     201); /* a dry run writes nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_create, open_log, teardown),
        cmocka_unit_test_setup_teardown(test_changes, open_log, teardown),
        cmocka_unit_test_setup_teardown(test_deletion, open_log, teardown),
        cmocka_unit_test_setup_teardown(test_two_at_once, open_log, teardown),
        cmocka_unit_test_setup_teardown(test_refused, open_log, teardown),
        cmocka_unit_test_setup_teardown(test_resent, open_log, teardown),
        cmocka_unit_test_setup_teardown(test_level_below, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
