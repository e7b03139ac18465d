/* phalanx.dev Lemons: what is counted of machines, and the Node's condition. */
#include "core/lemon/lemon.h"
#include "host/api/client.h"

#define LEMONS "/apis/phalanx.dev/v1/lemons"

/* The machine dies and comes back. */
static void strike(struct fake_host *host, const char *machine)
{
    struct event gone = {.kind = EVENT_MACHINE_GONE}, hello = {.kind = EVENT_MACHINE_HELLO};
    gone.machine.machine = str_from(machine);
    gone.machine.evidence = STR("test");
    fake_step(host, &gone, NULL);
    hello.machine_hello.hello = (struct hello){
        .version = WIRE_VERSION, .machine = str_from(machine), .incarnation = host->seq, .chips = 4};
    fake_step(host, &hello, NULL);
}

static void test_one_that_dies_again_and_again(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    assert_int_equal(ask(host, &arena, "GET", LEMONS, "", NULL, &doc), 200);
    assert_int_equal(doc_len(doc_get(doc, "items")), 0);
    assert_int_equal(ask(host, &arena, "GET", LEMONS "/m-2", "", NULL, NULL), 404);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(ask(host, &arena, "GET", "/api/v1/nodes/m-2", "", NULL, &doc), 200);
        assert_int_equal(doc_len(doc_path(doc, "status", "conditions", NULL)), 2);
        strike(host, "m-2");
    }
    strike(host, "m-4");
    assert_int_equal(ask(host, &arena, "GET", LEMONS, "", NULL, &doc), 200);
    assert_int_equal(doc_len(doc_get(doc, "items")), 2);
    assert_int_equal(ask(host, &arena, "GET", LEMONS "/m-2", "", NULL, &doc), 200);
    const struct doc *status = doc_get(doc, "status");
    assert_true(text_is(doc_get(doc, "kind"), "Lemon"));
    assert_true(doc_bool(doc_get(status, "lemon"), false));
    assert_int_equal(doc_int(doc_get(status, "score"), 0), 100);
    assert_true(text_is(doc_get(status, "evidence"), "out_count 5 (threshold 5)"));
    assert_int_equal(doc_len(doc_get(status, "signals")), LEMON_SIGNALS);
    assert_int_equal(doc_int(doc_path(status, "signals", "out_count", "value", NULL), 0), 5);
    assert_int_equal(ask(host, &arena, "GET", "/api/v1/nodes/m-2", "", NULL, &doc), 200);
    const struct doc *conditions = doc_path(doc, "status", "conditions", NULL);
    assert_int_equal(doc_len(conditions), 3);
    assert_true(text_is(doc_get(doc_at(conditions, 2), "type"), "Lemon"));
    const char *table = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n";
    assert_int_equal(ask(host, &arena, "GET", LEMONS, table, NULL, &doc), 200);
    const struct doc *cells = doc_get(doc_at(doc_get(doc, "rows"), 1), "cells");
    assert_true(text_is(doc_at(cells, 0), "m-4"));
    assert_true(text_is(doc_at(cells, 1), "False"));
    assert_int_equal(ask(host, &arena, "GET", LEMONS "?watch=true", "", NULL, NULL), 405);
    assert_int_equal(ask(host, &arena, "DELETE", LEMONS "/m-2", "", NULL, NULL), 405);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_that_dies_again_and_again, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
