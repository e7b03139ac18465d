/* The requests that a standby answers itself, and how new its state must be. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "host/standby/bounds.h"
#include "host/standby/rule.h"

static struct http_head scratch;

static struct read_rule rule(const char *method, const char *target, const char *lines)
{
    char text[1024];
    struct request_bounds request;
    size_t len;
    int size = snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: a\r\n%s\r\n", method, target, lines);
    assert_true(size > 0 && (size_t)size < sizeof text);
    assert_int_equal(bounds_request_begin(str_from(text), 0, &scratch, &request, &len), 1);
    return rule_of(&scratch);
}

static bool here(const char *target)
{
    return rule("GET", target, "").here;
}

static void collections_and_objects(void **state)
{
    assert_true(here("/api/v1/pods"));
    assert_true(here("/api/v1/nodes/m-1"));
    assert_true(here("/api/v1/namespaces"));
    assert_true(here("/api/v1/namespaces/default"));
    assert_true(here("/api/v1/namespaces/default/configmaps"));
    assert_true(here("/api/v1/namespaces/default/configmaps/a?pretty=true"));
    assert_true(here("/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets/a"));
    assert_true(here("/apis/phalanx.dev/v1/faults?limit=5"));
    assert_true(here("/api/v1/pods?watch=true&resourceVersion=5"));
    assert_true(rule("HEAD", "/api/v1/pods", "").here);
}

static void its_own_life(void **state)
{
    static const char *const targets[] = {"/livez", "/healthz", "/livez?verbose"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        struct read_rule life = rule("GET", targets[i], "");
        assert_true(life.here && !life.newest && life.version == 0);
    }
    assert_false(here("/livez/etcd"));
    assert_false(rule("POST", "/livez", "").here);
}

static void what_the_leader_has(void **state)
{
    static const char *const targets[] = {"/",
                                          "/version",
                                          "/metrics",
                                          "/readyz",
                                          "/api",
                                          "/api/v1",
                                          "/apis/jobset.x-k8s.io/v1alpha2",
                                          "/openapi/v3",
                                          "/apis/metrics.k8s.io/v1beta1/nodes",
                                          "/apis/phalanx.dev/v1/maintenances",
                                          "/apis/phalanx.dev/v1/maintenances/a",
                                          "/api/v1/namespaces/default/pods/a/log",
                                          "/api/v1/namespaces/default/pods/a/exec?command=ls",
                                          "/api/v1/nodes/m-1/proxy/stats",
                                          "/apis/batch/v1/namespaces/default/jobs/a/status/x",
                                          "/other/v1/pods",
                                          "//api/v1/pods"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (here(targets[i]))
            fail_msg("%s", targets[i]);
    assert_false(rule("POST", "/api/v1/pods", "").here);
    assert_false(rule("DELETE", "/api/v1/namespaces/default/pods/a", "").here);
    assert_false(rule("GET", "/api/v1/pods", "Content-Length: 2\r\n").here);
    assert_false(rule("GET", "/api/v1/pods", "Upgrade: websocket\r\n").here);
}

static void versions(void **state)
{
    struct read_rule newest = rule("GET", "/api/v1/pods", "");
    assert_true(newest.newest && newest.version == 0);
    newest = rule("GET", "/api/v1/pods?resourceVersion=&watch=1", "");
    assert_true(newest.here && newest.newest);
    struct read_rule any = rule("GET", "/api/v1/pods?watch=1&resourceVersion=0", "");
    assert_true(any.here && !any.newest && any.version == 0);
    struct read_rule later = rule("GET", "/api/v1/pods?resourceVersion=41&limit=1", "");
    assert_true(later.here && !later.newest && later.version == 41);
    /* The leader says what is wrong with these. */
    assert_false(here("/api/v1/pods?resourceVersion=x"));
    assert_false(here("/api/v1/pods?resourceVersion=-1"));
    assert_false(here("/api/v1/pods?resourceVersion=99999999999999999999"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collections_and_objects),
        cmocka_unit_test(its_own_life),
        cmocka_unit_test(what_the_leader_has),
        cmocka_unit_test(versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
