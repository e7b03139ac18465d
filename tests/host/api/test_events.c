/* Events of the control plane and of clients under one name: lists, watches, selectors, who writes which. */
#include "client.h"

#define EVENTS     "/api/v1/namespaces/default/events"
#define NEW_EVENTS "/apis/events.k8s.io/v1/namespaces/default/events"
#define EVENT(name)                                                                                          \
    "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"" name "\"},\"involvedObject\":{"    \
    "\"kind\":\"Pod\",\"name\":\"p\",\"namespace\":\"default\"},\"reason\":\"ByHand\",\"message\":\"m\"}"

static void test_events_of_both(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    create(host, "a"); /* leaves notes */
    assert_int_equal(ask(host, &arena, "GET", EVENTS, "", NULL, &doc), 200);
    size_t notes = doc_len(doc_get(doc, "items"));
    assert_true(notes > 0);
    struct str note = doc_str(doc_path(doc_at(doc_get(doc, "items"), 0), "metadata", "name", NULL), STR(""));
    struct client watch = {0};
    client_send(&watch, host, "GET", NEW_EVENTS "?watch=true&fieldSelector=regarding.name%3Dp", "", NULL);
    assert_int_equal(ask(host, &arena, "POST", EVENTS, "", EVENT("mine"), &doc), 201);
    assert_true(client_wait(&watch, "\"note\":\"m\""));
    client_done(&watch);
    assert_int_equal(ask(host, &arena, "GET", EVENTS, "", NULL, &doc), 200);
    assert_true(doc_len(doc_get(doc, "items")) > notes);
    assert_int_equal(ask(host, &arena, "GET", NEW_EVENTS "?fieldSelector=regarding.name%3Dp", "", NULL, &doc),
                     200);
    assert_int_equal(doc_len(doc_get(doc, "items")), 1);
    assert_true(text_is(doc_get(doc_at(doc_get(doc, "items"), 0), "note"), "m"));
    /* Events of the control plane are its own. */
    char *url = arena_strdup(&arena, arena_printf(&arena, EVENTS "/" STR_FORMAT, STR_ARG(note)));
    assert_int_equal(ask(host, &arena, "DELETE", url, "", NULL, &doc), 403);
    assert_int_equal(ask(host, &arena, "PATCH", url, "Content-Type: application/merge-patch+json\r\n",
                         "{\"message\":\"x\"}", &doc),
                     403);
    char *taken = arena_strdup(
        &arena, arena_printf(&arena,
                             "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"" STR_FORMAT
                             "\"},\"involvedObject\":{\"namespace\":\"default\"}}",
                             STR_ARG(note)));
    assert_int_equal(ask(host, &arena, "POST", EVENTS, "", taken, &doc), 409);
    /* All of a client's go at once, the others stay. */
    assert_int_equal(ask(host, &arena, "DELETE", EVENTS, "", NULL, &doc), 200);
    assert_int_equal(ask(host, &arena, "GET", EVENTS "/mine", "", NULL, &doc), 404);
    assert_int_equal(ask(host, &arena, "GET", url, "", NULL, &doc), 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_events_of_both, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
