/* A Maintenance of the controller: who has confirmed its hold of the leases. */
#include "host/api/client.h"

#define MAINTENANCES "/apis/phalanx.dev/v1/maintenances"

static void test_a_hold_names_who_has_not_confirmed(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    const char *body =
        "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Maintenance\",\"metadata\":{\"name\":\"planned\"},"
        "\"spec\":{\"controller\":\"5m\"}}";
    assert_int_equal(ask(host, &arena, "POST", MAINTENANCES, "", body, &doc), 201);
    struct event lost = {.kind = EVENT_MACHINE_GONE};
    lost.machine.machine = STR("m-3");
    lost.machine.evidence = STR("test");
    fake_step(host, &lost, NULL);
    assert_int_equal(ask(host, &arena, "GET", MAINTENANCES "/planned", "", NULL, &doc), 200);
    const struct doc *status = doc_get(doc, "status"), *missing = doc_get(status, "unconfirmed");
    int64_t machines = doc_int(doc_get(status, "machines"), 0);
    assert_true(text_is(doc_get(status, "phase"), "Active"));
    assert_int_equal(machines,
                     (int64_t)core_cluster(host->core)->machine_count - 1); /* nothing lives on m-3 */
    assert_int_equal(doc_int(doc_get(status, "confirmed"), 0), machines - 1);
    assert_int_equal(doc_len(missing), 1);
    assert_true(text_is(doc_at(missing, 0), "m-2")); /* fake_host.h */
    const char *table = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n";
    assert_int_equal(ask(host, &arena, "GET", MAINTENANCES, table, NULL, &doc), 200);
    const struct doc *cells = doc_get(doc_at(doc_get(doc, "rows"), 0), "cells");
    assert_true(text_is(doc_at(cells, 1), "Active"));
    assert_true(text_is(doc_at(cells, 4), doc_get(status, "until")->text.data));
    assert_int_equal(ask(host, &arena, "DELETE", MAINTENANCES "/planned", "", NULL, NULL), 200);
    body = "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Maintenance\",\"metadata\":{\"name\":\"long\"},"
           "\"spec\":{\"controller\":\"2h\"}}";
    assert_int_equal(ask(host, &arena, "POST", MAINTENANCES, "", body, &doc), 422);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_hold_names_who_has_not_confirmed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
