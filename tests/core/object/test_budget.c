/* The bytes of what is kept: how they are counted, and the budgets of a namespace and of the cluster. */
#include "object_test.h"

#include "doc/pack.h"

static const char cluster_text[] =
    "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"test\"},\"spec\":{"
    "\"settings\":{\"storedBytes\":{\"namespace\":\"4Mi\",\"cluster\":\"6Mi\"}},"
    "\"addresses\":\"127.0.1.1\",\"pods\":[{\"racks\":[{\"machines\":1,\"chips\":4}]}]}}";

static void begin(struct harness *h)
{
    struct event cluster = {.kind = EVENT_CLUSTER};
    harness_init(h, 1, 4, 0);
    cluster.cluster.document = str_from(cluster_text);
    harness_step(h, &cluster);
    assert_int_equal(core_cluster(h->core)->policy.stored_bytes.namespace_max, 4 << 20);
}

/* A ConfigMap of `keys` small values, the dearest that can be kept as a tree. */
static struct str many_keys(struct arena *arena, const char *ns, const char *name, int keys)
{
    struct buf json BUF_CLEANUP = {0};
    buf_printf(&json,
               "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s\","
               "\"namespace\":\"%s\"},\"data\":{",
               name, ns);
    for (int i = 0; i < keys; i++)
        buf_printf(&json, "%s\"k%05d\":\"v\"", i ? "," : "", i);
    buf_printf(&json, "}}");
    return arena_str(arena, buf_str(&json));
}

/* Writes it as a client does: checked first, then logged. Returns the status. */
static int write_keys(struct harness *h, enum write_verb verb, const char *ns, const char *name, int keys)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct event event = {.kind = EVENT_WRITE};
    event.write = write_of(verb, OBJECT_CONFIG_MAP, ns, name,
                           verb == WRITE_DELETE ? STR("") : many_keys(&arena, ns, name, keys));
    h->last_code = 0;
    if (!core_check_write(h->core, &event.write, h->now_ns, &h->effects, NULL)) {
        harness_watch(h);
        return h->last_code;
    }
    harness_step(h, &event);
    core_check_invariants(h->core);
    return h->last_code;
}

static uint64_t bytes_in(const struct harness *h, const char *ns)
{
    return objects_bytes_in(core_objects(h->core), str_from(ns));
}

static void make_namespace(struct harness *h, const char *name)
{
    char json[128];
    snprintf(json, sizeof json, "{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", name);
    assert_int_equal(put(h, WRITE_CREATE, OBJECT_NAMESPACE, "", name, json), 201);
}

/* 28 times its text as a tree; packed, little more than its text. */
static void data_is_kept_as_text(void **state)
{
    struct harness h;
    struct arena arena ARENA_CLEANUP = {0};
    begin(&h);
    assert_int_equal(write_keys(&h, WRITE_CREATE, "default", "a", 40000), 201);
    const struct object *object = found(&h, OBJECT_CONFIG_MAP, "default", "a");
    size_t text = many_keys(&arena, "default", "a", 40000).len;
    assert_true(object->bytes >= text && object->bytes < text + 2048);
    assert_true(object->arena.used_bytes < text + 4096);
    const struct doc *packed = doc_get(object->document, "data"), *data = doc_unpacked(&arena, packed);
    assert_int_equal(packed->kind, DOC_PACKED);
    assert_int_equal(doc_len(packed), 40000);
    assert_true(str_is(doc_str(doc_get(data, "k39999"), STR("")), "v"));
    uint64_t version = object->changed_seq;
    assert_int_equal(write_keys(&h, WRITE_REPLACE, "default", "a", 40000), 200);
    assert_int_equal(object->changed_seq, version); /* the same content is no change */
    assert_int_equal(write_keys(&h, WRITE_REPLACE, "default", "a", 39999), 200);
    assert_true(object->changed_seq > version);
    harness_done(&h);
}

static void a_namespace_has_a_budget(void **state)
{
    struct harness h;
    begin(&h);
    int made = 0;
    char name[16];
    for (int code = 201; code == 201; made += code == 201) {
        snprintf(name, sizeof name, "m%d", made);
        code = write_keys(&h, WRITE_CREATE, "default", name, 60000);
    }
    assert_int_equal(h.last_code, 403);
    assert_in_range(made, 3, 6);
    assert_non_null(
        strstr(h.last_message, "is forbidden: exceeded quota: stored-bytes-of-namespace, requested: bytes="));
    assert_non_null(strstr(h.last_message, "limited: bytes=4194304: delete objects, or raise "
                                           "spec.settings.storedBytes.namespace of the cluster"));
    assert_true(bytes_in(&h, "default") <= 4 << 20);
    /* Growth is refused, a smaller document and another namespace are not. */
    assert_int_equal(write_keys(&h, WRITE_REPLACE, "default", "m0", 90000), 403);
    assert_int_equal(write_keys(&h, WRITE_REPLACE, "default", "m0", 100), 200);
    assert_int_equal(write_keys(&h, WRITE_CREATE, "default", name, 50000), 201);
    assert_int_equal(write_keys(&h, WRITE_CREATE, "default", "more", 60000), 403);
    make_namespace(&h, "other");
    assert_int_equal(write_keys(&h, WRITE_CREATE, "other", "m", 10000), 201);
    /* A deletion gives its bytes back. */
    assert_int_equal(write_keys(&h, WRITE_DELETE, "default", "m1", 0), 200);
    assert_int_equal(write_keys(&h, WRITE_CREATE, "default", "more", 50000), 201);
    harness_done(&h);
}

static void the_cluster_has_one_too(void **state)
{
    struct harness h;
    begin(&h);
    int made = 0;
    for (int code = 201; code == 201; made += code == 201) {
        char ns[16];
        snprintf(ns, sizeof ns, "ns%d", made);
        make_namespace(&h, ns);
        code = write_keys(&h, WRITE_CREATE, ns, "m", 60000);
    }
    assert_non_null(strstr(h.last_message, "stored-bytes-of-cluster"));
    assert_true(objects_bytes(core_objects(h.core)) <= 6 << 20);
    harness_done(&h);
}

/* JobSets as well, for as long as they are there. */
static void workloads_are_charged(void **state)
{
    static const char jobset[] =
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: w, namespace: team}\n"
        "spec: {replicatedJobs: [{name: x, template: {spec: {template: {spec: {containers: "
        "[{name: c, image: i, command: [x]}]}}}}}]}\n";
    struct harness h;
    begin(&h);
    make_namespace(&h, "team");
    uint64_t before = bytes_in(&h, "team");
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_JOBSET, "team", "w", jobset), 201);
    uint64_t with = bytes_in(&h, "team");
    assert_true(with > before + 500);
    struct buf snapshot BUF_CLEANUP = {0};
    struct error error = {0};
    core_snapshot_write(h.core, &snapshot);
    struct core *copy = core_new();
    assert_int_equal(core_snapshot_read(copy, buf_str(&snapshot), &error), 0);
    assert_int_equal(objects_bytes_in(core_objects(copy), STR("team")), with);
    core_free(copy);
    assert_int_equal(drop(&h, OBJECT_JOBSET, "team", "w", PROPAGATION_BACKGROUND), 200);
    harness_run_all(&h);
    assert_true(bytes_in(&h, "team") < with);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_is_kept_as_text),
        cmocka_unit_test(a_namespace_has_a_budget),
        cmocka_unit_test(the_cluster_has_one_too),
        cmocka_unit_test(workloads_are_charged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
