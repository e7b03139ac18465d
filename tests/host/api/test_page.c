/* Lists in pages: every object once, in order, whatever is written meanwhile. */
#include "host/api/client.h"

#define MAPS "/api/v1/namespaces/default/configmaps"
enum { MAP_COUNT = 37 };

static void make_map(struct fake_host *host, int number)
{
    struct arena arena ARENA_CLEANUP = {0};
    char body[160];
    snprintf(body, sizeof body,
             "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"m%03d\"%s}}", number,
             number % 2 ? ",\"labels\":{\"odd\":\"yes\"}" : "");
    assert_int_equal(ask(host, &arena, "POST", MAPS, "Content-Type: application/json\r\n", body, NULL), 201);
}

static struct doc *page_of(struct fake_host *host, struct arena *arena, const char *query, struct str token)
{
    struct doc *doc;
    struct str url =
        arena_printf(arena, MAPS "?%s%s" STR_FORMAT, query, token.len ? "&continue=" : "", STR_ARG(token));
    assert_int_equal(ask(host, arena, "GET", arena_strdup(arena, url), "", NULL, &doc), 200);
    return doc;
}

static struct str member(const struct doc *page, const char *name)
{
    return doc_str(doc_path(page, "metadata", name, NULL), STR(""));
}

/* For every size of a page, with a deletion of what was shown last and a creation behind it in between. */
static void test_pages(void **state)
{
    struct fake_host *host = *state;
    for (int i = MAP_COUNT; i-- > 0;)
        make_map(host, 2 * i);
    for (int limit = 1; limit <= MAP_COUNT + 3; limit += 3) {
        struct arena arena ARENA_CLEANUP = {0};
        char query[48];
        snprintf(query, sizeof query, "limit=%d", limit);
        struct str token = {0}, last = {0}, version = {0};
        int seen = 0;
        do {
            struct doc *page = page_of(host, &arena, query, token);
            const struct doc *items = doc_get(page, "items");
            assert_true(doc_len(items) <= (size_t)limit);
            for (size_t i = 0; i < doc_len(items); i++) {
                struct str name = doc_str(doc_path(doc_at(items, i), "metadata", "name", NULL), STR(""));
                assert_true(str_compare(last, name) < 0);
                last = name;
                seen++;
            }
            token = member(page, "continue");
            assert_true(version.len == 0 || str_equal(version, member(page, "resourceVersion")));
            version = member(page, "resourceVersion");
            int64_t left = doc_int(doc_path(page, "metadata", "remainingItemCount", NULL), 0);
            assert_int_equal(left, MAP_COUNT - seen);
            assert_int_equal(token.len > 0, left > 0);
            char *url = arena_strdup(&arena, arena_printf(&arena, MAPS "/" STR_FORMAT, STR_ARG(last)));
            assert_int_equal(ask(host, &arena, "DELETE", url, "", NULL, NULL), 200);
            make_map(host, (int)strtol(last.data + 1, NULL, 10)); /* the token's own object comes again */
        } while (token.len);
        assert_int_equal(seen, MAP_COUNT);
    }
}

/* Text that a client does not read is not held: beyond 64 KiB of text a list is rendered as it is read,
 * however few its objects are. */
static void test_few_large_objects_stream(void **state)
{
    enum { LARGE_COUNT = 8, LARGE_BYTES = 20000 };
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct buf body BUF_CLEANUP = {0};
    struct client client;
    for (int i = 0; i < LARGE_COUNT; i++) {
        buf_clear(&body);
        buf_printf(&body,
                   "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"l%d\"},"
                   "\"data\":{\"a\":\"",
                   i);
        for (int k = 0; k < LARGE_BYTES; k++)
            buf_add_char(&body, 'x');
        buf_printf(&body, "\"}}");
        assert_int_equal(
            ask(host, &arena, "POST", MAPS, "Content-Type: application/json\r\n", body.data, NULL), 201);
        client_send(&client, host, "GET", MAPS, "", NULL);
        assert_true(client_wait(&client, "]}"));
        assert_int_equal(client.chunked, i * LARGE_BYTES > 64 * 1024); /* with the last whole object */
        client_done(&client);
    }
    struct doc *page = page_of(host, &arena, "", (struct str){0});
    assert_int_equal(doc_len(doc_get(page, "items")), LARGE_COUNT);
}

static void test_selector(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    for (int i = 0; i < 6; i++)
        make_map(host, i);
    struct doc *page = page_of(host, &arena, "limit=2&labelSelector=odd=yes", (struct str){0});
    assert_int_equal(doc_len(doc_get(page, "items")), 2);
    assert_null(doc_path(page, "metadata", "remainingItemCount", NULL)); /* as with Kubernetes */
    page = page_of(host, &arena, "limit=2&labelSelector=odd=yes", member(page, "continue"));
    assert_int_equal(doc_len(doc_get(page, "items")), 1);
    assert_int_equal(member(page, "continue").len, 0);
    page = page_of(host, &arena, "limit=2&resourceVersion=0", (struct str){0});
    assert_int_equal(doc_len(doc_get(page, "items")), 6);
}

static void test_rules(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    static const struct {
        const char *query;
        int code;
    } cases[] = {
        {"limit=-1", 400},
        {"limit=x", 400},
        {"continue=x", 400},
        {"continue=1:0:a/b", 400},
        {"continue=1:5:default/b", 200},
        {"continue=1:5:default/b&resourceVersion=5", 400},
        {"continue=1:5:default/b&resourceVersionMatch=Exact", 422},
        {"resourceVersionMatch=Exact", 422},
        {"resourceVersion=0&resourceVersionMatch=Exact", 422},
        {"resourceVersion=1&resourceVersionMatch=Other", 422},
        {"resourceVersion=1&resourceVersionMatch=Exact", 410},
        {"resourceVersion=1&resourceVersionMatch=NotOlderThan", 200},
        {"resourceVersion=99999999", 504},
        {"resourceVersion=x", 400},
        {"watch=true&sendInitialEvents=true", 422},
        {"watch=true&resourceVersionMatch=NotOlderThan", 422},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char url[160];
        snprintf(url, sizeof url, MAPS "?%s", cases[i].query);
        assert_int_equal(ask(host, &arena, "GET", url, "", NULL, NULL), cases[i].code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pages, setup, teardown),
        cmocka_unit_test_setup_teardown(test_few_large_objects_stream, setup, teardown),
        cmocka_unit_test_setup_teardown(test_selector, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rules, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
