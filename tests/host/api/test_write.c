/* Writes over real sockets, on a real core. */
#include "host/api/client.h"
#include "host/api/work.h"

#include <dirent.h>
#include <sys/resource.h>

static void test_patches(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    create(host, "a");
    const char *merge = "Content-Type: application/merge-patch+json\r\n";
    const char *json = "Content-Type: application/json-patch+json\r\n";
    assert_int_equal(ask(host, &arena, "PATCH", JOBSETS "/a", merge,
                         "{\"metadata\":{\"annotations\":{\"x\":\"1\"},\"labels\":{\"team\":null}}}", &doc),
                     200);
    assert_true(text_is(doc_path(doc, "metadata", "annotations", "x", NULL), "1"));
    assert_null(doc_path(doc, "metadata", "labels", "team", NULL));
    assert_int_equal(ask(host, &arena, "PATCH", JOBSETS "/a", json,
                         "[{\"op\":\"test\",\"path\":\"/metadata/annotations/x\",\"value\":\"1\"},"
                         "{\"op\":\"replace\",\"path\":\"/metadata/annotations/x\",\"value\":\"2\"}]",
                         &doc),
                     200);
    assert_true(text_is(doc_path(doc, "metadata", "annotations", "x", NULL), "2"));
    assert_int_equal(
        ask(host, &arena, "PATCH", JOBSETS "/a", json, "[{\"op\":\"remove\",\"path\":\"/nothing\"}]", &doc),
        422);
    assert_int_equal(ask(host, &arena, "PATCH", JOBSETS "/a",
                         "Content-Type: application/strategic-merge-patch+json\r\n", "{}", &doc),
                     415);
    assert_int_equal(ask(host, &arena, "PATCH", JOBSETS "/a",
                         "Content-Type: application/apply-patch+yaml\r\n", "{}", &doc),
                     422); /* without a fieldManager */
    assert_int_equal(ask(host, &arena, "PATCH", JOBSETS "/a", merge,
                         "{\"spec\":{\"network\":{\"subdomain\":\"z\"}}}", &doc),
                     422);
    assert_int_equal(
        ask(host, &arena, "PATCH", JOBSETS "/a", merge, "{\"metadata\":{\"resourceVersion\":\"1\"}}", &doc),
        409);
    struct str node = core_cluster(host->core)->machines[0].name;
    char *url = arena_strdup(&arena, arena_printf(&arena, "/api/v1/nodes/" STR_FORMAT, STR_ARG(node)));
    assert_int_equal(ask(host, &arena, "PATCH", url,
                         "Content-Type: application/strategic-merge-patch+json\r\n",
                         "{\"spec\":{\"unschedulable\":true}}", &doc),
                     200);
    assert_true(core_cluster(host->core)->machines[0].cordoned);
    assert_int_equal(ask(host, &arena, "PATCH", url, merge,
                         "{\"metadata\":{\"labels\":{\"zone\":\"z1\"}},\"spec\":{\"unschedulable\":null}}",
                         &doc),
                     200);
    assert_false(core_cluster(host->core)->machines[0].cordoned);
    assert_int_equal(core_cluster(host->core)->machines[0].taint_count, 0);
    assert_true(text_is(doc_path(doc, "metadata", "labels", "zone", NULL), "z1"));
}

/* Threads of this process that let the loop go first. */
static int nice_threads(void)
{
    int own = getpriority(PRIO_PROCESS, 0), count = 0;
    DIR *threads = opendir("/proc/self/task");
    struct dirent *entry;
    assert_non_null(threads);
    while ((entry = readdir(threads))) {
        int64_t id;
        if (str_to_i64(str_from(entry->d_name), 1, INT32_MAX, &id))
            count += getpriority(PRIO_PROCESS, (id_t)id) == own + WORK_NICE;
    }
    closedir(threads);
    return count;
}

/* A write whose body is read and worked out beside the loop is checked while the wire is lent as well
 * (fake_submit). */
static void test_large(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct buf body BUF_CLEANUP = {0};
    struct doc *doc;
    buf_add_str(&body, STR("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"large\"},"
                           "\"data\":{\"k\":\"v\""));
    for (int i = 0; body.len < WORK_BYTES_MIN; i++)
        buf_printf(&body, ",\"k%d\":\"v\"", i);
    buf_add_str(&body, STR("}}"));
    const char *maps = "/api/v1/namespaces/default/configmaps";
    const char *map = "/api/v1/namespaces/default/configmaps/large";
    assert_int_equal(ask(host, &arena, "POST", maps, NONE, body.data, &doc), 201);
    assert_int_equal(ask(host, &arena, "PATCH", map, "Content-Type: application/merge-patch+json\r\n",
                         "{\"data\":{\"k\":\"w\"}}", &doc),
                     200);
    assert_true(text_is(doc_path(doc, "data", "k", NULL), "w"));
    assert_true(text_is(doc_path(doc, "data", "k0", NULL), "v"));
    assert_true(nice_threads() > 0);
}

#define APPLIED(spec)                                                                                        \
    "{\"apiVersion\":\"jobset.x-k8s.io/v1alpha2\",\"kind\":\"JobSet\",\"metadata\":{\"name\":\"s\"},"        \
    "\"spec\":{" spec                                                                                        \
    "\"replicatedJobs\":[{\"name\":\"w\",\"template\":{\"spec\":{\"parallelism\":1,\"completions\":1,"       \
    "\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"command\":[\"x\"]}]}}}}}]}}"

/* A dry run of a diagnosis has no object to answer with. */
static void test_dry_diagnosis(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    assert_int_equal(ask(host, &arena, "POST", JOBSETS, NONE, APPLIED(""), &doc), 201);
    assert_int_equal(ask(host, &arena, "POST", JOBSETS "/s/diagnosis?dryRun=All", NONE, "", &doc), 200);
    assert_true(text_is(doc_get(doc, "kind"), "Diagnosis"));
    assert_int_equal(doc_int(doc_get(doc, "number"), -1), 0); /* nothing was asked for */
    assert_int_equal(ask(host, &arena, "POST", JOBSETS "/t/diagnosis?dryRun=All", NONE, "", &doc), 404);
    assert_int_equal(ask(host, &arena, "GET", JOBSETS "/s", NONE, NULL, &doc), 200);
}

static void test_apply(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    const char *apply = "Content-Type: application/apply-patch+yaml\r\n";
    const char *merge = "Content-Type: application/merge-patch+json\r\n";
    assert_int_equal(ask(host, &arena, "PATCH", JOBSETS "/s?fieldManager=kubectl&force=false", apply,
                         APPLIED("\"suspend\":true,"), &doc),
                     201);
    struct doc *managed = doc_at(doc_path(doc, "metadata", "managedFields", NULL), 0);
    assert_true(text_is(doc_get(managed, "manager"), "kubectl"));
    assert_true(text_is(doc_get(managed, "operation"), "Apply"));
    assert_non_null(doc_path(managed, "fieldsV1", "f:spec", "f:suspend", NULL));
    struct str version = doc_str(doc_path(doc, "metadata", "resourceVersion", NULL), STR(""));
    /* The same again changes nothing. */
    assert_int_equal(ask(host, &arena, "PATCH", JOBSETS "/s?fieldManager=kubectl", apply,
                         APPLIED("\"suspend\":true,"), &doc),
                     200);
    assert_true(str_equal(version, doc_str(doc_path(doc, "metadata", "resourceVersion", NULL), STR(""))));
    assert_int_equal(doc_int(doc_path(doc, "metadata", "generation", NULL), 0), 1);
    /* Another writer takes a field over; applying it then is a conflict. */
    assert_int_equal(ask(host, &arena, "PATCH", JOBSETS "/s?fieldManager=other", merge,
                         "{\"spec\":{\"suspend\":false}}", &doc),
                     200);
    assert_int_equal(doc_len(doc_path(doc, "metadata", "managedFields", NULL)), 2);
    assert_int_equal(ask(host, &arena, "PATCH", JOBSETS "/s?fieldManager=kubectl", apply,
                         APPLIED("\"suspend\":true,"), &doc),
                     409);
    struct doc *cause = doc_at(doc_path(doc, "details", "causes", NULL), 0);
    assert_true(text_is(doc_get(cause, "reason"), "FieldManagerConflict"));
    assert_true(text_is(doc_get(cause, "field"), ".spec.suspend"));
    assert_true(text_is(doc_get(cause, "message"), "conflict with \"other\" using jobset.x-k8s.io/v1alpha2"));
    assert_int_equal(ask(host, &arena, "PATCH", JOBSETS "/s?fieldManager=kubectl&dryRun=All&force=true",
                         apply, APPLIED("\"suspend\":true,"), &doc),
                     200);
    assert_true(doc_bool(doc_path(doc, "spec", "suspend", NULL), false));
    assert_int_equal(ask(host, &arena, "GET", JOBSETS "/s", "", "", &doc), 200);
    assert_false(doc_bool(doc_path(doc, "spec", "suspend", NULL), false));
    assert_int_equal(ask(host, &arena, "PATCH", JOBSETS "/s?fieldManager=kubectl&force=true", apply,
                         APPLIED("\"suspend\":true,"), &doc),
                     200);
    assert_int_equal(doc_len(doc_path(doc, "metadata", "managedFields", NULL)), 1);
    /* A field that is no more applied goes. */
    assert_int_equal(ask(host, &arena, "PATCH", JOBSETS "/s?fieldManager=kubectl", apply, APPLIED(""), &doc),
                     200);
    assert_null(doc_path(doc, "spec", "suspend", NULL));
}

/* kubectl drain: an eviction is accepted, and the pod is gone once it has ended. */
static void test_eviction(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    create(host, "e");
    assert_int_equal(ask(host, &arena, "GET", "/api/v1/namespaces/default/pods", "", "", &doc), 200);
    size_t before = doc_len(doc_get(doc, "items"));
    struct str pod = doc_str(doc_path(doc_at(doc_get(doc, "items"), 0), "metadata", "name", NULL), STR(""));
    char *url = arena_strdup(
        &arena, arena_printf(&arena, "/api/v1/namespaces/default/pods/" STR_FORMAT, STR_ARG(pod)));
    char *evict = arena_strdup(&arena, arena_printf(&arena, "%s/eviction", url));
    const char *json = "Content-Type: application/json\r\n";
    const char *body = "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"deleteOptions\":{%s}}";
    char text[200];
    snprintf(text, sizeof text, body, "\"dryRun\":[\"All\"]");
    assert_int_equal(ask(host, &arena, "POST", evict, json, text, &doc), 201);
    assert_int_equal(ask(host, &arena, "GET", url, "", "", &doc), 200);
    assert_null(doc_path(doc, "metadata", "deletionTimestamp", NULL));
    snprintf(text, sizeof text, body, "\"preconditions\":{\"uid\":\"other\"}");
    assert_int_equal(ask(host, &arena, "POST", evict, json, text, &doc), 409);
    host->hold_tasks = true;
    snprintf(text, sizeof text, body, "\"gracePeriodSeconds\":7");
    assert_int_equal(ask(host, &arena, "POST", evict, json, text, &doc), 201);
    assert_int_equal(ask(host, &arena, "GET", url, "", "", &doc), 200);
    assert_non_null(doc_path(doc, "metadata", "deletionTimestamp", NULL));
    host->hold_tasks = false;
    fake_obey(host);
    assert_int_equal(ask(host, &arena, "GET", url, "", "", &doc), 404);
    assert_int_equal(ask(host, &arena, "POST", evict, json, text, &doc), 404);
    assert_int_equal(ask(host, &arena, "GET", "/api/v1/namespaces/default/pods", "", "", &doc), 200);
    assert_true(doc_len(doc_get(doc, "items")) <= before);
    assert_int_equal(ask(host, &arena, "GET", JOBSETS "/e/status", "", "", &doc), 200);
    assert_int_equal(ask(host, &arena, "GET", JOBSETS "/e/scale", "", "", &doc), 404);
}

/* The fields that the server adds to a Job (selector, labels) do not become part of what its user wants. */
static void test_apply_job(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    const char *apply = "Content-Type: application/apply-patch+yaml\r\n";
    const char *strategic = "Content-Type: application/strategic-merge-patch+json\r\n";
    const char *url = "/apis/batch/v1/namespaces/default/jobs/j?fieldManager=k&force=true";
    const char *job =
        "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"j\"},\"spec\":{"
        "\"template\":{\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"c\",\"image\":\"i\","
        "\"command\":[\"x\"]}]}}}}";
    host->hold_tasks = true;
    assert_int_equal(ask(host, &arena, "PATCH", url, apply, job, &doc), 201);
    struct str version = doc_str(doc_path(doc, "metadata", "resourceVersion", NULL), STR(""));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ask(host, &arena, "PATCH", url, apply, job, &doc), 200);
        assert_true(str_equal(version, doc_str(doc_path(doc, "metadata", "resourceVersion", NULL), STR(""))));
    }
    assert_int_equal(doc_len(doc_path(doc, "metadata", "managedFields", NULL)), 1);
    assert_int_equal(
        ask(host, &arena, "PATCH", url, strategic, "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}", &doc), 200);
    assert_int_equal(doc_int(doc_path(doc, "metadata", "generation", NULL), 0), 1);
    assert_true(text_is(doc_path(doc, "metadata", "labels", "a", NULL), "b"));
    assert_int_equal(ask(host, &arena, "PATCH", url, strategic, "{\"spec\":{\"suspend\":true}}", &doc), 200);
    assert_int_equal(doc_int(doc_path(doc, "metadata", "generation", NULL), 0), 2);
}

/* A write waits for its commit; what happens between is a conflict that a patch bears and a replace
 * reports. */
static void test_conflict(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    struct client first, second;
    create(host, "a");
    host->hold_commits = true;
    client_send(&first, host, "PATCH", JOBSETS "/a", "Content-Type: application/merge-patch+json\r\n",
                "{\"metadata\":{\"annotations\":{\"one\":\"1\"}}}");
    client_send(&second, host, "PATCH", JOBSETS "/a", "Content-Type: application/merge-patch+json\r\n",
                "{\"metadata\":{\"annotations\":{\"two\":\"2\"}}}");
    RUN_UNTIL(host, host->writes.len == 2);
    assert_int_equal(first.body.len, 0);
    host->hold_commits = false;
    assert_true(client_wait(&first, NULL));
    assert_true(client_wait(&second, NULL));
    assert_int_equal(first.code, 200);
    assert_int_equal(second.code, 200);
    client_done(&first);
    client_done(&second);
    assert_int_equal(ask(host, &arena, "GET", JOBSETS "/a", NONE, NULL, &doc), 200);
    assert_non_null(doc_path(doc, "metadata", "annotations", "one", NULL));
    assert_non_null(doc_path(doc, "metadata", "annotations", "two", NULL));
}

static void test_delete_collection(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "j%d", i);
        create(host, name);
    }
    assert_int_equal(ask(host, &arena, "DELETE", JOBSETS "?labelSelector=team!%3Da", NONE, NULL, &doc), 200);
    assert_int_equal(core_jobs(host->core)->jobsets.len, 5);
    assert_int_equal(ask(host, &arena, "DELETE", JOBSETS "?labelSelector=team%3Da", NONE, NULL, &doc), 200);
    for (size_t i = 0; i < core_jobs(host->core)->jobsets.len; i++)
        assert_true(core_jobs(host->core)->jobsets.items[i]->deleted_ns != 0);
}

/* The status of an object that another controller manages is kept as written; that of our own is not. */
static void test_foreign_status(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    const char *merge = "Content-Type: application/merge-patch+json\r\n";
    const char *apply = "Content-Type: application/apply-patch+yaml\r\n";
    const char *put = "Content-Type: application/json\r\n";
    char *body = jobset_json(&arena, "far", "\"managedBy\":\"other.example/controller\",");
    assert_int_equal(ask(host, &arena, "POST", JOBSETS, NONE, body, NULL), 201);
    create(host, "near");
    const char *restarts = "{\"status\":{\"restarts\":7}}";
    assert_int_equal(ask(host, &arena, "PATCH", JOBSETS "/far/status", merge, restarts, &doc), 200);
    assert_int_equal(doc_int(doc_path(doc, "status", "restarts", NULL), 0), 7);
    assert_int_equal(ask(host, &arena, "PATCH", JOBSETS "/far/status?fieldManager=m&force=true", apply,
                         "{\"apiVersion\":\"jobset.x-k8s.io/v1alpha2\",\"kind\":\"JobSet\",\"metadata\":"
                         "{\"name\":\"far\"},\"status\":{\"terminalState\":\"Completed\"}}",
                         &doc),
                     200);
    assert_int_equal(ask(host, &arena, "GET", JOBSETS "/far", "", NULL, &doc), 200);
    assert_int_equal(doc_int(doc_path(doc, "status", "restarts", NULL), 0), 7);
    assert_true(text_is(doc_path(doc, "status", "terminalState", NULL), "Completed"));
    assert_true(text_is(doc_path(doc, "spec", "managedBy", NULL), "other.example/controller"));
    assert_int_equal(ask(host, &arena, "PUT", JOBSETS "/far/status", put,
                         "{\"metadata\":{\"resourceVersion\":\"1\"},\"status\":{}}", NULL),
                     409);
    assert_int_equal(
        ask(host, &arena, "PUT", JOBSETS "/far/status", put, "{\"status\":{\"restarts\":8}}", &doc), 200);
    assert_int_equal(doc_int(doc_path(doc, "status", "restarts", NULL), 0), 8);
    assert_null(doc_path(doc, "status", "terminalState", NULL));
    assert_int_equal(ask(host, &arena, "PUT", JOBSETS "/far/status", put, "{\"status\":3}", NULL), 400);
    assert_int_equal(ask(host, &arena, "PATCH", JOBSETS "/near/status", merge, restarts, &doc), 200);
    assert_int_equal(doc_int(doc_path(doc, "status", "restarts", NULL), 0), 0);
    assert_int_equal(ask(host, &arena, "PUT", JOBSETS "/none/status", put, restarts, NULL), 404);
}

/* Nothing else moves the log between the creates. */
static void test_generated_names(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    const char *urls[] = {"/api/v1/namespaces/default/configmaps", JOBSETS};
    const char *bodies[] = {
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"generateName\":\"g-\"}}",
        "{\"apiVersion\":\"jobset.x-k8s.io/v1alpha2\",\"kind\":\"JobSet\",\"metadata\":{"
        "\"generateName\":\"g-\"},\"spec\":{\"replicatedJobs\":[]}}"};
    for (int i = 0; i < 80; i++) {
        assert_int_equal(ask(host, &arena, "POST", urls[i % 2], "", bodies[i % 2], &doc), 201);
        struct str name = doc_str(doc_path(doc, "metadata", "name", NULL), STR(""));
        assert_true(name.len == 7 && str_starts(name, STR("g-")));
    }
    for (int i = 0; i < 2; i++) {
        char *dry = arena_strdup(&arena, arena_printf(&arena, "%s?dryRun=All", urls[i]));
        assert_int_equal(ask(host, &arena, "POST", dry, "", bodies[i], &doc), 201);
        assert_int_equal(doc_str(doc_path(doc, "metadata", "name", NULL), STR("")).len, 7);
        assert_int_equal(ask(host, &arena, "GET", urls[i], "", "", &doc), 200);
        assert_int_equal((int)doc_len(doc_get(doc, "items")), 40);
    }
}

/* Clients with typed models leave apiVersion and kind out: the path says them. */
static void test_bodies_without_type(void **state)
{
    static const struct {
        const char *url, *kind, *more;
    } kinds[] = {
        {"/api/v1/namespaces", "Namespace", ""},
        {"/api/v1/namespaces/default/configmaps", "ConfigMap", ",\"data\":{\"a\":\"b\"}"},
        {"/api/v1/namespaces/default/secrets", "Secret", ""},
        {"/api/v1/namespaces/default/pods", "Pod",
         ",\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"command\":[\"x\"]}]}"},
        {"/apis/batch/v1/namespaces/default/jobs", "Job",
         ",\"spec\":{\"template\":{\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"c\","
         "\"image\":\"i\",\"command\":[\"x\"]}]}}}"},
        {JOBSETS, "JobSet", ",\"spec\":{\"replicatedJobs\":[]}"},
        {"/apis/kueue.x-k8s.io/v1beta2/resourceflavors", "ResourceFlavor", ""},
    };
    static const char *const types[] = {"", "\"apiVersion\":null,\"kind\":\"\","};
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    for (size_t i = 0; i < 2 * sizeof kinds / sizeof *kinds; i++) {
        size_t k = i / 2;
        struct str body =
            arena_printf(&arena, "{%s\"metadata\":{\"name\":\"t%zu\"}%s}", types[i % 2], i, kinds[k].more);
        int code = ask(host, &arena, "POST", kinds[k].url, "", arena_strdup(&arena, body), &doc);
        if (code != 201)
            fail_msg("%s: %d", kinds[k].kind, code);
        assert_true(text_is(doc_get(doc, "kind"), kinds[k].kind));
        assert_true(doc_str(doc_get(doc, "apiVersion"), STR("")).len > 0);
    }
    assert_int_equal(ask(host, &arena, "PUT", "/api/v1/namespaces/default/configmaps/t2", "",
                         "{\"metadata\":{\"name\":\"t2\"},\"data\":{\"a\":\"c\"}}", &doc),
                     200);
    assert_true(text_is(doc_path(doc, "data", "a", NULL), "c"));
    /* A type that is there must be the path's. */
    assert_int_equal(ask(host, &arena, "POST", "/api/v1/namespaces/default/configmaps", "",
                         "{\"kind\":\"Secret\",\"metadata\":{\"name\":\"u\"}}", &doc),
                     400);
}

#define TWICE                                                                                                \
    "{\"template\":{\"spec\":{\"restartPolicy\":\"Never\",\"imagePullSecrets\":[{\"name\":\"s\"},{\"name\":" \
    "\"s\"}],"                                                                                               \
    "\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"command\":[\"x\"],\"ports\":[{\"containerPort\":80}," \
    "{"                                                                                                      \
    "\"containerPort\":80}],\"env\":[{\"name\":\"A\",\"value\":\"1\"},{\"name\":\"A\",\"value\":\"2\"}]}]}}" \
    "}"

/* Taken with a warning by Kubernetes' own kinds, refused by JobSets, whose schema is a custom resource's. */
static void test_keys_twice(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct client client;
    struct doc *doc;
    const char *jobs = "/apis/batch/v1/namespaces/default/jobs";
    client_send(&client, host, "POST", jobs, "", "{\"metadata\":{\"name\":\"twice\"},\"spec\":" TWICE "}");
    assert_true(client_wait(&client, NULL));
    assert_int_equal(client.code, 201);
    assert_non_null(strstr(client.head,
                           "spec.template.spec.containers[0].env[1]: hides previous definition of "
                           "\\\"A\\\", which may be dropped when using apply"));
    assert_non_null(strstr(client.head, "spec.template.spec.containers[0].ports[1]: hides"));
    client_done(&client);
    assert_int_equal(ask(host, &arena, "PATCH", "/apis/batch/v1/namespaces/default/jobs/twice",
                         "Content-Type: application/strategic-merge-patch+json\r\n",
                         "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}", &doc),
                     200);
    assert_int_equal(ask(host, &arena, "POST", JOBSETS, "",
                         "{\"metadata\":{\"name\":\"twice\"},\"spec\":{\"replicatedJobs\":[{\"name\":\"w\","
                         "\"template\":{\"spec\":" TWICE "}}]}}",
                         &doc),
                     422);
}

/* Numbers and units come back as the API server writes them, in every kind. */
static void test_quantities(void **state)
{
    static const struct {
        const char *url, *body, *path[8], *wanted;
    } cases[] = {
        {"/api/v1/namespaces/default/resourcequotas",
         "\"spec\":{\"hard\":{\"cpu\":4,\"memory\":\"2048Mi\"}}",
         {"spec", "hard", "memory"},
         "2Gi"},
        {"/api/v1/namespaces/default/resourcequotas",
         "\"spec\":{\"hard\":{\"cpu\":4,\"memory\":\"2048Mi\"}}",
         {"spec", "hard", "cpu"},
         "4"},
        {"/api/v1/namespaces/default/persistentvolumeclaims",
         "\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":\"0.5Gi\"}}"
         "}",
         {"spec", "resources", "requests", "storage"},
         "512Mi"},
    };
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str body = arena_printf(&arena, "{\"metadata\":{\"name\":\"q%zu\"},%s}", i, cases[i].body);
        assert_int_equal(ask(host, &arena, "POST", cases[i].url, "", arena_strdup(&arena, body), &doc), 201);
        for (int k = 0; cases[i].path[k]; k++)
            doc = doc_get(doc, cases[i].path[k]);
        assert_true(text_is(doc, cases[i].wanted));
    }
    const char *jobset =
        "{\"metadata\":{\"name\":\"q\"},\"spec\":{\"suspend\":true,\"replicatedJobs\":[{\"name\":\"w\","
        "\"template\":{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\","
        "\"command\":[\"x\"],\"resources\":{\"limits\":{\"cpu\":1,\"memory\":\"1024Mi\"},"
        "\"requests\":{\"cpu\":0.5}}}]}}}}}]}}";
    assert_int_equal(ask(host, &arena, "POST", JOBSETS, "", jobset, &doc), 201);
    struct doc *rjob = doc_at(doc_path(doc, "spec", "replicatedJobs", NULL), 0);
    struct doc *resources = doc_get(
        doc_at(doc_path(rjob, "template", "spec", "template", "spec", "containers", NULL), 0), "resources");
    assert_true(text_is(doc_path(resources, "limits", "cpu", NULL), "1"));
    assert_true(text_is(doc_path(resources, "limits", "memory", NULL), "1Gi"));
    assert_true(text_is(doc_path(resources, "requests", "cpu", NULL), "500m"));
    /* The same amount in another form is no change. */
    struct str version = doc_str(doc_path(doc, "metadata", "resourceVersion", NULL), STR(""));
    assert_int_equal(ask(host, &arena, "PUT", JOBSETS "/q", "", jobset, &doc), 200);
    assert_true(str_equal(version, doc_str(doc_path(doc, "metadata", "resourceVersion", NULL), STR(""))));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_keys_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(test_quantities, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bodies_without_type, setup, teardown),
        cmocka_unit_test_setup_teardown(test_generated_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_patches, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dry_diagnosis, setup, teardown),
        cmocka_unit_test_setup_teardown(test_large, setup, teardown),
        cmocka_unit_test_setup_teardown(test_apply, setup, teardown),
        cmocka_unit_test_setup_teardown(test_eviction, setup, teardown),
        cmocka_unit_test_setup_teardown(test_apply_job, setup, teardown),
        cmocka_unit_test_setup_teardown(test_conflict, setup, teardown),
        cmocka_unit_test_setup_teardown(test_foreign_status, setup, teardown),
        cmocka_unit_test_setup_teardown(test_delete_collection, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
