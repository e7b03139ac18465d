/* Events that clients write: what is kept of them, in which form, and that a storm of them has an end. */
#include "object_test.h"

#include "core/words/limits.h"

/* The invariants of thousands of writes are checked once, by put() afterwards. */
static int write_event(struct harness *h, const char *ns, const char *name)
{
    char json[512];
    struct event event = {.kind = EVENT_WRITE};
    snprintf(json, sizeof json,
             "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"%s\"},\"involvedObject\":{"
             "\"kind\":\"Pod\",\"name\":\"p\",\"namespace\":\"%s\"},\"reason\":\"R\",\"type\":\"Normal\"}",
             name, ns);
    event.write = write_of(WRITE_CREATE, OBJECT_EVENT, ns, name, str_from(json));
    h->last_code = 0;
    harness_step(h, &event);
    return h->last_code;
}

#define NEW_EVENT(more)                                                                                      \
    "{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: e, namespace: default}, regarding: "       \
    "{kind: "                                                                                                \
    "Pod, name: p, namespace: default}, reason: R, type: Normal, action: A, reportingInstance: i, "          \
    "reportingController: example.com/c, eventTime: 2026-01-02T03:04:05.000000Z" more "}"

static void both_forms_are_one_object(void **state)
{
    (void)state;
    struct harness h;
    struct arena arena ARENA_CLEANUP = {0};
    harness_init(&h, 1, 4, 0);
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_EVENT, "default", "e", NEW_EVENT(", note: text")), 201);
    const struct object *event = found(&h, OBJECT_USER_EVENT, "default", "e");
    assert_non_null(event);
    assert_true(str_is(doc_str(doc_get(event->document, "apiVersion"), STR("")), "v1"));
    assert_true(str_is(doc_str(doc_get(event->document, "message"), STR("")), "text"));
    assert_null(doc_get(event->document, "note"));
    const struct doc *shown = object_shown(&arena, event, STR(OBJECT_NEW_EVENTS));
    assert_true(str_is(doc_str(doc_path(shown, "regarding", "name", NULL), STR("")), "p"));
    assert_null(doc_get(shown, "involvedObject"));
    /* The message of an event is fixed, its series is not. */
    assert_int_equal(put(&h, WRITE_REPLACE, OBJECT_EVENT, "default", "e", NEW_EVENT(", note: other")), 422);
    assert_int_equal(
        put(&h, WRITE_REPLACE, OBJECT_EVENT, "default", "e",
            NEW_EVENT(", note: text, series: {count: 2, lastObservedTime: 2026-01-02T03:04:06Z}")),
        200);
    assert_int_equal(
        put(&h, WRITE_REPLACE, OBJECT_EVENT, "default", "e",
            NEW_EVENT(", note: text, series: {count: 1, lastObservedTime: 2026-01-02T03:04:06Z}")),
        422);
    /* The namespaces agree. */
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_EVENT, "kube-system", "f",
                         "{apiVersion: v1, kind: Event, metadata: {name: f, namespace: kube-system}, "
                         "involvedObject: {kind: Pod, name: p, namespace: default}}"),
                     422);
    /* Only the kind's own name is served: the stored kind is never written directly. */
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_USER_EVENT, "default", "g", NEW_EVENT("")), 405);
    assert_int_equal(drop(&h, OBJECT_EVENT, "default", "e", PROPAGATION_DEFAULT), 200);
    assert_null(found(&h, OBJECT_USER_EVENT, "default", "e"));
    harness_check_replay(&h);
    harness_done(&h);
}

static void the_oldest_make_room(void **state)
{
    (void)state;
    struct harness h;
    char name[32];
    harness_init(&h, 1, 4, 0);
    h.twins.off = true; /* a thousand snapshots of a thousand objects would take minutes */
    assert_int_equal(write_event(&h, "kube-system", "first"), 201);
    assert_int_equal(write_event(&h, "default", "kept"), 201);
    for (int i = 1; i < USER_EVENTS_PER_NAMESPACE_MAX; i++) {
        snprintf(name, sizeof name, "e-%d", i);
        assert_int_equal(write_event(&h, "default", name), 201);
    }
    /* An event that was seen again is not the oldest. */
    assert_int_equal(
        put(&h, WRITE_REPLACE, OBJECT_EVENT, "default", "kept",
            "{apiVersion: v1, kind: Event, metadata: {name: kept, namespace: default}, involvedObject: "
            "{kind: Pod, name: p, namespace: default}, count: 2}"),
        200);
    assert_int_equal(write_event(&h, "default", "last"), 201);
    const struct object_store *store = core_objects(h.core);
    assert_int_equal(object_count_in(store, OBJECT_USER_EVENT, STR("default")),
                     USER_EVENTS_PER_NAMESPACE_MAX);
    assert_non_null(found(&h, OBJECT_USER_EVENT, "kube-system", "first"));
    assert_non_null(found(&h, OBJECT_USER_EVENT, "default", "kept"));
    assert_null(found(&h, OBJECT_USER_EVENT, "default", "e-1"));
    assert_non_null(found(&h, OBJECT_USER_EVENT, "default", "e-2"));
    harness_check_replay(&h);
    harness_done(&h);
}

static void all_namespaces_share_a_bound(void **state)
{
    (void)state;
    struct harness h;
    char name[32];
    static const char *const spaces[] = {"default", "kube-system", "kube-public", "kube-node-lease",
                                         "default"};
    harness_init(&h, 1, 4, 0);
    h.twins.off = true;
    for (int i = 0; i < USER_EVENTS_MAX; i++) {
        snprintf(name, sizeof name, "e-%d", i);
        assert_int_equal(write_event(&h, spaces[i / USER_EVENTS_PER_NAMESPACE_MAX], name), 201);
    }
    assert_int_equal(object_count(core_objects(h.core), OBJECT_USER_EVENT), USER_EVENTS_MAX);
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_NAMESPACE, "", "team",
                         "{apiVersion: v1, kind: Namespace, metadata: {name: team}}"),
                     201);
    assert_int_equal(write_event(&h, "team", "one-more"), 201);
    assert_int_equal(object_count(core_objects(h.core), OBJECT_USER_EVENT), USER_EVENTS_MAX);
    assert_null(found(&h, OBJECT_USER_EVENT, "default", "e-0"));
    assert_non_null(found(&h, OBJECT_USER_EVENT, "default", "e-1"));
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms_are_one_object),
        cmocka_unit_test(the_oldest_make_room),
        cmocka_unit_test(all_namespaces_share_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
