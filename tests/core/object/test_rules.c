/* The rules of stored kinds: what a document becomes, and which field is named when it is refused. */
#include "object_test.h"

#include "doc/pack.h"

#include "base/rng.h"
#include "core/spec/spec.h"

struct rule {
    enum object_kind kind;
    const char *yaml;
    const char *refused; /* "field: reason" that the first cause begins with; NULL: accepted */
};

static const struct rule rules[] = {
    {OBJECT_NAMESPACE, "{apiVersion: v1, kind: Namespace, metadata: {name: Team}}",
     "metadata.name: FieldValueInvalid"},
    {OBJECT_CONFIG_MAP, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {ok.txt: x}}", NULL},
    {OBJECT_CONFIG_MAP, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {\"a b\": x}}",
     "data[a b]: FieldValueInvalid"},
    {OBJECT_CONFIG_MAP, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: 1}}",
     "data[a]: FieldValueTypeInvalid"},
    {OBJECT_CONFIG_MAP, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, binaryData: {a: \"!\"}}",
     "binaryData[a]: FieldValueInvalid"},
    {OBJECT_CONFIG_MAP, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [Not/ok/]}}",
     "metadata.finalizers: "},
    {OBJECT_SECRET, "{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: YQ==}}", NULL},
    {OBJECT_SECRET, "{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: YQ}}",
     "data[a]: FieldValueInvalid"},
    {OBJECT_SECRET,
     "{apiVersion: v1, kind: Secret, metadata: {name: a}, type: kubernetes.io/tls, data: {tls.crt: YQ==}}",
     "data[tls.key]: FieldValueRequired"},
    {OBJECT_SERVICE, "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None}}", NULL},
    {OBJECT_SERVICE, "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 70000}]}}",
     "spec.ports[0].port: FieldValueInvalid"},
    {OBJECT_SERVICE, "{apiVersion: v1, kind: Service, metadata: {name: 1a}, spec: {clusterIP: None}}",
     "metadata.name: FieldValueInvalid"},
    {OBJECT_CLAIM,
     "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {accessModes: "
     "[ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}",
     NULL},
    {OBJECT_CLAIM,
     "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {accessModes: [RWO], "
     "resources: {requests: {storage: 1Gi}}}}",
     "spec.accessModes[0]: FieldValueNotSupported"},
    {OBJECT_PRIORITY_CLASS, "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a}}",
     "value: FieldValueRequired"},
    {OBJECT_PRIORITY_CLASS,
     "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a}, value: 1000000001}",
     "value: FieldValueForbidden"},
    {OBJECT_RESOURCE_QUOTA,
     "{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}, spec: {hard: {pods: 1500m}}}",
     "spec.hard[pods]: FieldValueInvalid"},
    {OBJECT_RESOURCE_FLAVOR,
     "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: a}, spec: "
     "{nodeLabels: {zone: a}, topologyName: racks}}",
     NULL},
    {OBJECT_RESOURCE_FLAVOR,
     "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: a}, spec: "
     "{topologyName: racks}}",
     "spec: FieldValueInvalid"},
    {OBJECT_RESOURCE_FLAVOR,
     "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: a}, spec: "
     "{nodeTaints: [{key: a, effect: Sometimes}]}}",
     "spec.nodeTaints[0].effect: FieldValueNotSupported"},
    {OBJECT_TOPOLOGY,
     "{apiVersion: kueue.x-k8s.io/v1beta2, kind: Topology, metadata: {name: a}, spec: {levels: "
     "[{nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]}}",
     NULL},
    {OBJECT_TOPOLOGY,
     "{apiVersion: kueue.x-k8s.io/v1beta2, kind: Topology, metadata: {name: a}, spec: {levels: "
     "[{nodeLabel: kubernetes.io/hostname}, {nodeLabel: rack}]}}",
     "spec.levels[0].nodeLabel: FieldValueInvalid"},
    {OBJECT_TOPOLOGY,
     "{apiVersion: kueue.x-k8s.io/v1beta2, kind: Topology, metadata: {name: a}, spec: {levels: "
     "[{nodeLabel: rack}, {nodeLabel: rack}]}}",
     "spec.levels[1].nodeLabel: FieldValueDuplicate"},
    {OBJECT_LOCAL_QUEUE,
     "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: a}, spec: "
     "{clusterQueue: Bad_name}}",
     "spec.clusterQueue: FieldValueInvalid"},
    {OBJECT_ROLE,
     "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: \"a:b\"}, rules: "
     "[{apiGroups: [\"\"], resources: [pods], verbs: [get]}]}",
     NULL},
    {OBJECT_ROLE,
     "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a}, rules: [{resources: "
     "[pods], verbs: [get]}]}",
     "rules[0].apiGroups: FieldValueRequired"},
    {OBJECT_ROLE,
     "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a}, rules: "
     "[{nonResourceURLs: [/metrics], verbs: [get]}]}",
     "rules[0].nonResourceURLs: FieldValueInvalid"},
    {OBJECT_ROLE_BINDING,
     "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, roleRef: "
     "{kind: Role, name: r}, subjects: [{kind: User, name: ann}]}",
     NULL},
    {OBJECT_ROLE_BINDING,
     "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, roleRef: "
     "{kind: Roles, name: r}}",
     "roleRef.kind: FieldValueNotSupported"},
    {OBJECT_CLUSTER_ROLE_BINDING,
     "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a}, roleRef: "
     "{kind: ClusterRole, name: r}, subjects: [{kind: ServiceAccount, name: s}]}",
     "subjects[0].namespace: FieldValueRequired"},
};

/* "field: reason" of the first cause of the refusal. */
static void first_cause(struct harness *h, char *text, size_t size)
{
    text[0] = 0;
    for (size_t i = 0; i < h->effects.list.len; i++) {
        const struct effect *effect = &h->effects.list.items[i];
        if (effect->kind == EFFECT_REPLY && effect->reply.causes && effect->reply.causes->list.len)
            snprintf(text, size, STR_FORMAT ": %s", STR_ARG(effect->reply.causes->list.items[0].path),
                     effect->reply.causes->list.items[0].reason);
    }
}

static void each_rule_names_its_field(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 1, 4, 0);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char cause[256];
        int code = check(&h, WRITE_CREATE, rules[i].kind, "default", "", rules[i].yaml);
        first_cause(&h, cause, sizeof cause);
        if (!rules[i].refused && code != 0)
            fail_msg("%s: %d %s", rules[i].yaml, code, h.last_message);
        if (rules[i].refused &&
            (code != 422 || strncmp(cause, rules[i].refused, strlen(rules[i].refused)) != 0))
            fail_msg("%s: %d %s", rules[i].yaml, code, cause);
    }
    harness_done(&h);
}

/* Whatever a log's record says: an answer, a state that holds together, and a snapshot of it that can be
 * read. */
static void any_bytes_are_answered(void **state)
{
    (void)state;
    static const char *const bits[] = {"null", "0",    "-1",    "\"\"",        "[]",
                                       "{}",   "true", "1e400", "\"\\u0000\"", "[null]"};
    struct harness h;
    struct rng rng;
    rng_seed(&rng, 7);
    harness_init(&h, 1, 4, 0);
    for (int round = 0; round < 60; round++) {
        for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
            struct arena arena ARENA_CLEANUP = {0};
            struct str json = json_of(&arena, rules[i].yaml);
            struct buf text BUF_CLEANUP = {0};
            /* One value is replaced by something else: from a colon to the next comma or bracket. */
            size_t at = rng_below(&rng, json.len), end;
            while (at < json.len && json.data[at] != ':')
                at++;
            for (end = at + 1; end < json.len && !strchr(",]}", json.data[end]);)
                end++;
            if (at >= json.len || end >= json.len)
                continue;
            buf_add_str(&text, (struct str){json.data, at + 1});
            buf_add_str(&text, str_from(bits[rng_below(&rng, sizeof bits / sizeof *bits)]));
            buf_add_str(&text, (struct str){json.data + end, json.len - end});
            struct event event = {.kind = EVENT_WRITE};
            enum write_verb verb = rng_below(&rng, 4) ? WRITE_CREATE : WRITE_REPLACE;
            static const char *const spaces[] = {"default", "", "Not A Namespace", "new"};
            event.write = write_of(verb, rules[i].kind, spaces[rng_below(&rng, 4)], "a", buf_str(&text));
            h.last_code = 0;
            harness_step(&h, &event);
            assert_true(h.last_code >= 200);
            core_check_invariants(h.core);
        }
    }
    harness_done(&h);
}

/* A ClusterQueue with one piece of its spec exchanged. */
static int queue(struct harness *h, const char *cohort, const char *covered, const char *resources,
                 char *cause)
{
    char yaml[1024];
    snprintf(yaml, sizeof yaml,
             "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: q}, spec: {%s"
             "resourceGroups: [{coveredResources: [%s], flavors: [{name: f, resources: [%s]}]}]}}",
             cohort, covered, resources);
    int code = check(h, WRITE_CREATE, OBJECT_CLUSTER_QUEUE, "", "q", yaml);
    first_cause(h, cause, 256);
    return code;
}

static void quotas_are_checked(void **state)
{
    (void)state;
    struct harness h;
    char cause[256];
    harness_init(&h, 1, 4, 0);
    assert_int_equal(queue(&h, "", "cpu, memory",
                           "{name: cpu, nominalQuota: 4}, {name: memory, nominalQuota: 1Gi}", cause),
                     0);
    assert_int_equal(
        queue(&h, "", "cpu, memory", "{name: memory, nominalQuota: 4}, {name: cpu, nominalQuota: 1}", cause),
        422);
    assert_string_equal(cause, "spec.resourceGroups[0].flavors[0].resources[0].name: FieldValueInvalid");
    assert_int_equal(queue(&h, "", "cpu, memory", "{name: cpu, nominalQuota: 4}", cause), 422);
    assert_string_equal(cause, "spec.resourceGroups[0].flavors[0].resources: FieldValueInvalid");
    assert_int_equal(queue(&h, "", "cpu", "{name: cpu, nominalQuota: 4, borrowingLimit: 1}", cause), 422);
    assert_string_equal(cause,
                        "spec.resourceGroups[0].flavors[0].resources[0].borrowingLimit: FieldValueInvalid");
    assert_int_equal(
        queue(&h, "cohortName: all, ", "cpu", "{name: cpu, nominalQuota: 4, borrowingLimit: 1}", cause), 0);
    assert_int_equal(
        queue(&h, "cohortName: all, ", "cpu", "{name: cpu, nominalQuota: 4, lendingLimit: 5}", cause), 422);
    assert_string_equal(cause,
                        "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit: FieldValueInvalid");
    assert_int_equal(queue(&h, "", "cpu", "{name: cpu, nominalQuota: -1}", cause), 422);
    assert_string_equal(cause,
                        "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: FieldValueInvalid");
    assert_int_equal(queue(&h, "preemption: {borrowWithinCohort: {policy: LowerPriority}}, ", "cpu",
                           "{name: cpu, nominalQuota: 1}", cause),
                     422);
    harness_done(&h);
}

static struct str text_at(const struct object *object, const char *a, const char *b, const char *c)
{
    static struct arena arena; /* of the last text */
    arena_done(&arena);
    const struct doc *part = doc_unpacked(&arena, doc_get(object->document, a));
    return doc_str(doc_path(part, b, c, NULL), STR(""));
}

static void kueue_versions_are_one_object(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 1, 4, 0);
    assert_int_equal(
        put(&h, WRITE_CREATE, OBJECT_CLUSTER_QUEUE, "", "q",
            "{apiVersion: kueue.x-k8s.io/v1beta1, kind: ClusterQueue, metadata: {name: q}, spec: {cohort: "
            "all, admissionChecks: [a], flavorFungibility: {whenCanPreempt: Preempt}}}"),
        201);
    const struct object *object = found(&h, OBJECT_CLUSTER_QUEUE, "", "q");
    assert_true(str_is(doc_str(doc_get(object->document, "apiVersion"), STR("")), "kueue.x-k8s.io/v1beta2"));
    assert_true(str_is(text_at(object, "spec", "cohortName", NULL), "all"));
    assert_true(str_is(text_at(object, "spec", "flavorFungibility", "whenCanPreempt"), "MayStopSearch"));
    assert_true(str_is(text_at(object, "spec", "flavorFungibility", "whenCanBorrow"), "MayStopSearch"));
    assert_true(str_is(text_at(object, "spec", "preemption", "withinClusterQueue"), "Never"));
    assert_true(str_is(text_at(object, "spec", "queueingStrategy", NULL), "BestEffortFIFO"));
    struct arena arena ARENA_CLEANUP = {0};
    const struct doc *old = object_shown(&arena, object, STR("kueue.x-k8s.io/v1beta1"));
    assert_true(str_is(doc_str(doc_path(old, "spec", "cohort", NULL), STR("")), "all"));
    assert_null(doc_path(old, "spec", "cohortName", NULL));
    assert_true(str_is(doc_str(doc_path(old, "spec", "flavorFungibility", "whenCanPreempt", NULL), STR("")),
                       "Preempt"));
    /* v1beta1 knows the longer form too. */
    assert_int_equal((int)doc_len(doc_path(old, "spec", "admissionChecksStrategy", "admissionChecks", NULL)),
                     1);
    /* An object written back as it was shown changes nothing. */
    struct buf json BUF_CLEANUP = {0};
    json_write(&json, old);
    uint64_t version = object->changed_seq;
    struct event event = {.kind = EVENT_WRITE};
    event.write = write_of(WRITE_REPLACE, OBJECT_CLUSTER_QUEUE, "", "q", buf_str(&json));
    harness_step(&h, &event);
    assert_int_equal(h.last_code, 200);
    object = found(&h, OBJECT_CLUSTER_QUEUE, "", "q");
    assert_true(object->changed_seq == version && object->generation == 1);
    harness_done(&h);
}

/* The name that MultiKueue gives a cluster has another place in v1beta1. */
static void both_versions_of_another_cluster(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 1, 4, 0);
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_MULTIKUEUE_CLUSTER, "", "east",
                         "{apiVersion: kueue.x-k8s.io/v1beta1, kind: MultiKueueCluster, metadata: {name: "
                         "east}, spec: {kubeConfig: {location: east-secret}}}"),
                     201);
    const struct object *object = found(&h, OBJECT_MULTIKUEUE_CLUSTER, "", "east");
    const struct doc *kept = doc_path(object->document, "spec", "clusterSource", "kubeConfig", NULL);
    assert_true(str_is(doc_str(doc_get(kept, "location"), STR("")), "east-secret"));
    assert_true(str_is(doc_str(doc_get(kept, "locationType"), STR("")), "Secret"));
    assert_null(doc_path(object->document, "spec", "kubeConfig", NULL));
    struct arena arena ARENA_CLEANUP = {0};
    const struct doc *old = object_shown(&arena, object, STR("kueue.x-k8s.io/v1beta1"));
    assert_true(
        str_is(doc_str(doc_path(old, "spec", "kubeConfig", "location", NULL), STR("")), "east-secret"));
    assert_null(doc_path(old, "spec", "clusterSource", NULL));
    harness_done(&h);
}

static void what_may_not_change(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 1, 4, 0);
    const char *fixed =
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, immutable: true, data: {a: x}}";
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_CONFIG_MAP, "default", "c", fixed), 201);
    assert_int_equal(
        put(&h, WRITE_REPLACE, OBJECT_CONFIG_MAP, "default", "c",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, immutable: true, data: {a: y}}"),
        422);
    assert_int_equal(put(&h, WRITE_REPLACE, OBJECT_CONFIG_MAP, "default", "c",
                         "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: x}}"),
                     422);
    assert_int_equal(
        put(&h, WRITE_REPLACE, OBJECT_CONFIG_MAP, "default", "c",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {a: b}}, immutable: true, "
            "data: {a: x}}"),
        200);
    const char *binding =
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b}, roleRef: "
        "{kind: Role, name: %s}}";
    char yaml[512];
    snprintf(yaml, sizeof yaml, binding, "view");
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_ROLE_BINDING, "default", "b", yaml), 201);
    snprintf(yaml, sizeof yaml, binding, "edit");
    assert_int_equal(put(&h, WRITE_REPLACE, OBJECT_ROLE_BINDING, "default", "b", yaml), 422);
    harness_done(&h);
}

static void secrets_keep_base64(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 1, 4, 0);
    assert_int_equal(
        put(&h, WRITE_CREATE, OBJECT_SECRET, "default", "s",
            "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: YQ==}, stringData: {b: hello}}"),
        201);
    const struct object *secret = found(&h, OBJECT_SECRET, "default", "s");
    assert_true(str_is(text_at(secret, "data", "b", NULL), "aGVsbG8="));
    assert_true(str_is(text_at(secret, "data", "a", NULL), "YQ=="));
    assert_null(doc_get(secret->document, "stringData"));
    assert_true(str_is(text_at(secret, "type", NULL, NULL), "Opaque"));
    harness_done(&h);
}

/* --- limits --------------------------------------------------------------------------------------------- */

static const char job[] =
    "apiVersion: jobset.x-k8s.io/v1alpha2\n"
    "kind: JobSet\n"
    "metadata: {generateName: train-}\n"
    "spec: {replicatedJobs: [{name: w, template: {spec: {parallelism: 2, completions: 2,\n"
    "  template: {spec: {priorityClassName: high-class, containers: [{name: c, image: i,\n"
    "  command: [x], resources: {limits: {google.com/tpu: 4, cpu: 1500m}}}]}}}}}]}\n";

static void quotas_of_a_namespace(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 4, 4, 0);
    assert_int_equal(
        put(&h, WRITE_CREATE, OBJECT_RESOURCE_QUOTA, "default", "q",
            "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {count/secrets: 1, "
            "requests.google.com/tpu: 16, requests.cpu: 5, count/jobsets.jobset.x-k8s.io: 5}}}"),
        201);
    const char *secret = "{apiVersion: v1, kind: Secret, metadata: {generateName: s-}}";
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_SECRET, "default", "", secret), 201);
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_SECRET, "default", "", secret), 403);
    assert_non_null(strstr(h.last_message,
                           "exceeded quota: q, requested: count/secrets=1, used: count/secrets=1, "
                           "limited: count/secrets=1"));
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_JOBSET, "default", "", job), 201); /* 8 chips, 3 CPUs */
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_JOBSET, "default", "", job), 403);
    assert_non_null(strstr(h.last_message, "requests.cpu=3"));
    int64_t used = 0;
    assert_true(core_quota_used(h.core, STR("default"), STR("requests.google.com/tpu"), &used) &&
                used == 8000);
    harness_done(&h);
}

static void a_priority_class_counts(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 1, 4, 0);
    assert_int_equal(
        put(&h, WRITE_CREATE, OBJECT_PRIORITY_CLASS, "", "high-class",
            "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high-class}, value: "
            "4711}"),
        201);
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_JOBSET, "default", "", job),
                     201); /* does not fit: it waits */
    const struct jobset *jobset = vec_last(&core_jobs(h.core)->jobsets);
    assert_int_equal((int)jobset->gangs.len, 1);
    assert_int_equal(jobset->gangs.items[0]->queued.priority, 4711);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rule_names_its_field),
        cmocka_unit_test(any_bytes_are_answered),
        cmocka_unit_test(quotas_are_checked),
        cmocka_unit_test(kueue_versions_are_one_object),
        cmocka_unit_test(both_versions_of_another_cluster),
        cmocka_unit_test(what_may_not_change),
        cmocka_unit_test(secrets_keep_base64),
        cmocka_unit_test(quotas_of_a_namespace),
        cmocka_unit_test(a_priority_class_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
