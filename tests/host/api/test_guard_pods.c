/* The door for Pods and templates: levels of namespaces, and the right to leave baseline. */
#include "client.h"

#include "host/api/request.h"
#include "os/file.h"

#define RBAC     "/apis/rbac.authorization.k8s.io/v1"
#define AS(name) "Authorization: Bearer " name "-token\r\n"
#define KIND(kind, version, name)                                                                            \
    "\"apiVersion\":\"" version "\",\"kind\":\"" kind "\",\"metadata\":{\"name\":\"" name "\"}"
#define CONTAINER "\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"command\":[\"true\"]}]"
#define HOST_PATH ",\"volumes\":[{\"name\":\"v\",\"hostPath\":{\"path\":\"/\"}}]"
#define HARD                                                                                                 \
    ",\"securityContext\":{\"runAsNonRoot\":true,\"seccompProfile\":{\"type\":\"RuntimeDefault\"}},"         \
    "\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"command\":[\"true\"],\"securityContext\":{"           \
    "\"allowPrivilegeEscalation\":false,\"capabilities\":{\"drop\":[\"ALL\"]}}}]"
#define POD(name, more) "{" KIND("Pod", "v1", name) ",\"spec\":{" CONTAINER more "}}"
#define HARD_POD(name)  "{" KIND("Pod", "v1", name) ",\"spec\":{\"restartPolicy\":\"Never\"" HARD "}}"
#define JOB(name, more)                                                                                      \
    "{" KIND("Job", "batch/v1", name) ",\"spec\":{\"suspend\":true,\"template\":{\"spec\":{"                 \
                                      "\"restartPolicy\":\"Never\"," CONTAINER more "}}}}"
#define SET(name, more)                                                                                      \
    "{" KIND("JobSet", "jobset.x-k8s.io/v1alpha2",                                                           \
             name) ",\"spec\":{\"suspend\":true,\"replicatedJobs\":["                                        \
                   "{\"name\":\"a\",\"template\":{\"spec\":{\"template\":{\"spec\":{" CONTAINER "}}}}},"     \
                   "{\"name\":\"b\",\"template\":{\"spec\":{\"template\":{\"spec\":{" CONTAINER more         \
                   "}}}}}]}}"
#define PODS(space) "/api/v1/namespaces/" space "/pods"
#define JOBS(space) "/apis/batch/v1/namespaces/" space "/jobs"
#define SETS(space) "/apis/jobset.x-k8s.io/v1alpha2/namespaces/" space "/jobsets"
#define MERGE       "Content-Type: application/merge-patch+json\r\n"
#define APPLY       "Content-Type: application/apply-patch+yaml\r\n"

struct fixture {
    struct fake_host *host;
    struct access *access;
    struct access_options options;
    char path[64], audit[64];
};

struct request {
    const char *who, *method, *url, *body;
    int code;
    const char *text; /* of the answer; NULL: any */
};

static void send_all(struct fake_host *host, const struct request *requests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct request *request = &requests[i];
        struct client client;
        client_send(&client, host, request->method, request->url, request->who, request->body);
        assert_true(client_wait(&client, NULL));
        const char *body = client.body.data ? client.body.data : "";
        if (client.code != request->code || (request->text && !strstr(body, request->text)))
            fail_msg("%zu: %s %s %s: %d %s", i, request->method, request->url, request->body, client.code,
                     body);
        client_done(&client);
    }
}
#define SEND(host, requests) send_all(host, requests, sizeof requests / sizeof *requests)

#define SPACE(name, labels)                                                                                  \
    {                                                                                                        \
        AS("root"), "POST", "/api/v1/namespaces",                                                            \
            "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"" name                   \
            "\",\"labels\":{" labels "}}}",                                                                  \
            201, NULL                                                                                        \
    }
#define LEVEL(mode, level) "\"pod-security.kubernetes.io/" mode "\":\"" level "\""
#define BIND(name, role, user)                                                                               \
    {                                                                                                        \
        AS("root"), "POST", RBAC "/clusterrolebindings",                                                     \
            "{" KIND("ClusterRoleBinding", "rbac.authorization.k8s.io/v1",                                   \
                     name) ",\"roleRef\":{\"apiGroup\":"                                                     \
                           "\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\",\"name\":\"" role         \
                           "\"},\"subjects\":[{\"kind\":"                                                    \
                           "\"User\",\"name\":\"" user "\"}]}",                                              \
            201, NULL                                                                                        \
    }

static void begin(struct fixture *fixture, struct fake_host *host)
{
    static const struct request requests[] = {
        SPACE("open", ""),
        SPACE("base", LEVEL("enforce", "baseline") "," LEVEL("enforce-version", "v1.30")),
        SPACE("strict", LEVEL("enforce", "restricted")),
        SPACE("warned", LEVEL("warn", "restricted") "," LEVEL("audit", "baseline")),
        {AS("root"), "POST", RBAC "/clusterroles",
         "{" KIND("ClusterRole", "rbac.authorization.k8s.io/v1",
                  "privileged") ",\"rules\":[{\"apiGroups\":["
                                "\"phalanx.dev\"],\"resources\":[\"podsecuritylevels\"],\"resourceNames\":["
                                "\"privileged\"],"
                                "\"verbs\":[\"use\"]}]}",
         201, NULL},
        BIND("bob", "edit", "bob"),
        BIND("carl", "edit", "carl"),
        BIND("carl-2", "privileged", "carl"),
    };
    struct error error = {0};
    *fixture = (struct fixture){.host = host};
    snprintf(fixture->path, sizeof fixture->path, "/tmp/phx-test-pods-%d.csv", (int)getpid());
    FILE *file = fopen(fixture->path, "w");
    assert_non_null(file);
    fputs("root-token,root,1,system:masters\nbob-token,bob,2\ncarl-token,carl,3\n", file);
    fclose(file);
    fixture->options.tokens = fixture->path;
    snprintf(fixture->audit, sizeof fixture->audit, "/tmp/phx-test-pods-%d.log", (int)getpid());
    fixture->options.audit = fixture->audit;
    if (access_new(&fixture->options, &fixture->access, &error) < 0)
        fail_msg("%s", error.text);
    host->api->access = fixture->access;
    SEND(host, requests);
}

static void end(struct fixture *fixture)
{
    fixture->host->api->access = NULL;
    access_free(fixture->access);
    unlink(fixture->path);
    unlink(fixture->audit);
}

static void levels_are_enforced(void **state)
{
    static const struct request requests[] = {
        {AS("root"), "POST", PODS("base"), POD("p", HOST_PATH), 403,
         "pods \\\"p\\\" is forbidden: violates PodSecurity \\\"baseline:v1.30\\\": hostPath volumes (volume "
         "\\\"v\\\")"},
        {AS("root"), "POST", JOBS("base"), JOB("j", ",\"hostNetwork\":true"), 403,
         "jobs.batch \\\"j\\\" is forbidden: violates PodSecurity \\\"baseline:v1.30\\\": host namespaces "
         "(hostNetwork=true)"},
        {AS("root"), "POST", SETS("base"), SET("s", HOST_PATH), 403, "violates PodSecurity"},
        {AS("root"), "POST", SETS("base") "?dryRun=All", SET("s", HOST_PATH), 403, "violates PodSecurity"},
        {AS("root"), "PATCH", SETS("base") "/s?fieldManager=x", SET("s", HOST_PATH), 415, NULL},
        {AS("root") APPLY, "PATCH", SETS("base") "/s?fieldManager=x", SET("s", HOST_PATH), 403,
         "violates PodSecurity"},
        {AS("root"), "POST", SETS("base"), SET("s", ""), 201, NULL},
        {AS("root") MERGE, "PATCH", SETS("base") "/s", SET("s", HOST_PATH), 403, "violates PodSecurity"},
        {AS("root"), "PUT", SETS("base") "/s", SET("s", HOST_PATH), 403, "violates PodSecurity"},
        {AS("root"), "POST", PODS("strict"), POD("p", ""), 403,
         "violates PodSecurity \\\"restricted:latest\\\": allowPrivilegeEscalation != false"},
        {AS("root"), "POST", PODS("strict"), HARD_POD("p"), 201, NULL},
        {AS("root"), "POST", PODS("open"), POD("p", HOST_PATH), 201, NULL},
    };
    struct fixture fixture;
    begin(&fixture, *state);
    SEND(*state, requests);
    end(&fixture);
}

static void baseline_is_left_by_right(void **state)
{
    static const struct request requests[] = {
        {AS("bob"), "POST", PODS("open"), POD("p", HOST_PATH), 403,
         "User \\\"bob\\\" cannot use resource \\\"podsecuritylevels\\\" named \\\"privileged\\\""},
        {AS("bob"), "POST", PODS("open"), POD("p", ",\"hostPID\":true"), 403, "hostPID=true"},
        {AS("bob"), "POST", PODS("open"), POD("p", ",\"securityContext\":{\"runAsUser\":0}"), 403,
         "runAsUser=0"},
        {AS("bob"), "POST", JOBS("open"), JOB("j", HOST_PATH), 403, "hostPath volumes"},
        {AS("bob"), "POST", SETS("open"), SET("s", HOST_PATH), 403, "hostPath volumes"},
        {AS("bob"), "POST", SETS("open"), SET("s", ",\"securityContext\":{\"runAsUser\":0}"), 403, NULL},
        {AS("bob"), "POST", SETS("open"), SET("s", ""), 201, NULL},
        {AS("bob") MERGE, "PATCH", SETS("open") "/s", SET("s", HOST_PATH), 403, "hostPath volumes"},
        {AS("bob") APPLY, "PATCH", SETS("open") "/t?fieldManager=x", SET("t", HOST_PATH), 403, NULL},
        {AS("bob"), "PUT", SETS("open") "/s", SET("s", HOST_PATH), 403, "hostPath volumes"},
        {AS("carl"), "POST", PODS("open"), POD("p", HOST_PATH), 201, NULL},
        {AS("carl"), "POST", SETS("open"), SET("h", HOST_PATH), 201, NULL},
        /* A field that somebody else wrote by right stays as it is when bob changes something else. */
        {AS("bob") MERGE, "PATCH", SETS("open") "/h", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}", 200, NULL},
        {AS("bob") MERGE, "PATCH", SETS("open") "/h",
         "{\"spec\":{\"replicatedJobs\":[{\"name\":\"a\",\"template\":{\"spec\":{\"template\":{\"spec\":{"
         "\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"command\":[\"id\"]}]" HOST_PATH "}}}}}]}}",
         403, "hostPath volumes"},
        {AS("carl"), "POST", PODS("base"), POD("p", HOST_PATH), 403, "violates PodSecurity"},
    };
    struct fixture fixture;
    begin(&fixture, *state);
    SEND(*state, requests);
    end(&fixture);
}

static void labels_are_checked(void **state)
{
    static const struct request requests[] = {
        {AS("root") MERGE, "PATCH", "/api/v1/namespaces/open",
         "{\"metadata\":{\"labels\":{" LEVEL("enforce", "strict") "}}}", 422,
         "must be one of privileged, baseline, restricted"},
        {AS("root") MERGE, "PATCH", "/api/v1/namespaces/open",
         "{\"metadata\":{\"labels\":{" LEVEL("enforce", "baseline") "}}}", 200, NULL},
        {AS("root"), "POST", PODS("open"), POD("p", HOST_PATH), 403, "violates PodSecurity"},
        {AS("bob") MERGE, "PATCH", "/api/v1/namespaces/open",
         "{\"metadata\":{\"labels\":{" LEVEL("enforce", "privileged") "}}}", 403, NULL},
    };
    struct fixture fixture;
    begin(&fixture, *state);
    SEND(*state, requests);
    end(&fixture);
}

static void warnings_are_given(void **state)
{
    struct fixture fixture;
    struct client client;
    begin(&fixture, *state);
    client_send(&client, *state, "POST", JOBS("warned"), AS("bob"), JOB("j", ""));
    assert_true(client_wait(&client, NULL));
    assert_int_equal(client.code, 201);
    assert_non_null(strcasestr(client.head, "warning: 299 - \"would violate PodSecurity \\\"restricted:"
                                            "latest\\\": allowPrivilegeEscalation != false"));
    client_done(&client);
    end(&fixture);
}

/* Without users the levels still count, and the server's own level for namespaces without a label. */
static void a_level_of_the_cluster(void **state)
{
    static const struct request requests[] = {
        {NONE, "POST", PODS("default"), POD("p", HOST_PATH), 403,
         "violates PodSecurity \\\"baseline:latest\\\""},
        {NONE, "POST", PODS("default"), POD("p", ",\"securityContext\":{\"runAsUser\":0}"), 201, NULL},
    };
    struct fake_host *host = *state;
    host->api->pod_security = POD_SECURITY_BASELINE;
    SEND(host, requests);
}

/* The line of the audit log whose request's URI has this in it. */
static void audit_line(const char *log, const char *uri, struct buf *ret_line)
{
    struct buf text BUF_CLEANUP = {0};
    struct error error;
    struct str rest, line;
    assert_int_equal(os_file_read(log, 1 << 24, &text, &error), 0);
    rest = buf_str(&text);
    while (str_cut(rest, '\n', &line, &rest)) {
        buf_clear(ret_line);
        buf_add_str(ret_line, line);
        if (strstr(ret_line->data, uri))
            return;
    }
    fail_msg("no line of %s has %s: %s", log, uri, text.data);
}

/* A Pod that the audit level does not allow is served, and stands in the request's audit line. */
static void violations_are_noted(void **state)
{
    static const struct request requests[] = {
        {AS("root"), "POST", PODS("warned") "?dryRun=All&noted", POD("p", HOST_PATH), 201, NULL},
        {AS("root"), "POST", JOBS("warned") "?dryRun=All&noted", JOB("j", ",\"hostNetwork\":true"), 201,
         NULL},
        {AS("root"), "POST", PODS("warned") "?dryRun=All&baseline", POD("p", ""), 201, NULL},
        {AS("root"), "POST", PODS("open") "?dryRun=All", POD("p", HOST_PATH), 201, NULL},
    };
    static const struct {
        const char *uri, *note;
    } lines[] = {
        {"warned/pods?dryRun=All&noted", "\"pod-security.kubernetes.io/audit-violations\":\"would violate "
                                         "PodSecurity \\\"baseline:latest\\\": "
                                         "hostPath volumes (volume \\\"v\\\")\""},
        {"warned/jobs?dryRun=All&noted", "host namespaces (hostNetwork=true)"},
        {"warned/pods?dryRun=All&baseline", NULL},
        {"open/pods?dryRun=All", NULL},
    };
    struct fixture fixture;
    begin(&fixture, *state);
    SEND(*state, requests);
    fixture.host->api->access = NULL;
    access_free(fixture.access); /* the lines have been written */
    fixture.access = NULL;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct buf line BUF_CLEANUP = {0};
        audit_line(fixture.audit, lines[i].uri, &line);
        if (lines[i].note ? !strstr(line.data, lines[i].note) : strstr(line.data, "audit-violations") != NULL)
            fail_msg("%s: %s", lines[i].uri, line.data);
    }
    end(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(levels_are_enforced, setup, teardown),
        cmocka_unit_test_setup_teardown(baseline_is_left_by_right, setup, teardown),
        cmocka_unit_test_setup_teardown(labels_are_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(warnings_are_given, setup, teardown),
        cmocka_unit_test_setup_teardown(violations_are_noted, setup, teardown),
        cmocka_unit_test_setup_teardown(a_level_of_the_cluster, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
