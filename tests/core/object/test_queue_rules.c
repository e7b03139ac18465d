/* Objects that Kueue refuses and allows, by the field that is named. */
#include "object_test.h"

#define QUEUE(spec)                                                                                          \
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: a}, spec: {" spec "}}"
#define GROUPS                                                                                               \
    "resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: "  \
    "1}]}]}]"
#define COHORT(spec)                                                                                         \
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: a}, spec: {" spec "}}"
#define CHECK_OBJECT(parameters)                                                                             \
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: AdmissionCheck, metadata: {name: a}, spec: "                 \
    "{controllerName: "                                                                                      \
    "example.com/c, parameters: {" parameters "}}}"
#define OUTSIDE(kind, spec)                                                                                  \
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: " kind ", metadata: {name: a}, spec: {" spec "}}"
#define LOCAL(spec)                                                                                          \
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: a}, spec: {" spec "}}"
#define FLAVOR_OBJECT(spec)                                                                                  \
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: a}, spec: {nodeLabels: "    \
    "{zone: a}" spec "}}"
#define TOPOLOGY(levels)                                                                                     \
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: Topology, metadata: {name: a}, spec: {levels: [" levels "]}" \
                                                                                                        "}"
#define LEVEL(key) "{nodeLabel: " key "}"
#define HOST       LEVEL("kubernetes.io/hostname")

static void first_path(struct harness *h, char *text, size_t size)
{
    text[0] = 0;
    for (size_t i = 0; i < h->effects.list.len; i++) {
        const struct effect *effect = &h->effects.list.items[i];
        if (effect->kind == EFFECT_REPLY && effect->reply.causes && effect->reply.causes->list.len)
            snprintf(text, size, STR_FORMAT, STR_ARG(effect->reply.causes->list.items[0].path));
    }
}

static void expect(struct harness *h, enum write_verb verb, enum object_kind kind, const char *yaml,
                   const char *refused)
{
    char path[256];
    int code = put(h, verb, kind, kind == OBJECT_LOCAL_QUEUE ? "default" : "",
                   verb == WRITE_CREATE ? "" : "a", yaml);
    first_path(h, path, sizeof path);
    if (refused ? code != 422 || strcmp(path, refused) != 0 : code >= 300)
        fail_msg("%s: %d %s %s", yaml, code, path, h->last_message);
}

static void new_ones(void **state)
{
    (void)state;
    static const struct {
        enum object_kind kind;
        const char *yaml, *refused; /* NULL: accepted */
    } rows[] = {
        {OBJECT_CLUSTER_QUEUE, QUEUE(GROUPS ", fairSharing: {weight: '0'}"), NULL},
        {OBJECT_CLUSTER_QUEUE, QUEUE(GROUPS ", fairSharing: {weight: 0}"), NULL},
        {OBJECT_CLUSTER_QUEUE, QUEUE(GROUPS ", fairSharing: {weight: 2n}"), NULL},
        {OBJECT_CLUSTER_QUEUE, QUEUE(GROUPS ", fairSharing: {weight: 1n}"), "spec.fairSharing.weight"},
        {OBJECT_CLUSTER_QUEUE, QUEUE(GROUPS ", fairSharing: {weight: '0.0000000001'}"),
         "spec.fairSharing.weight"},
        {OBJECT_COHORT, COHORT("fairSharing: {weight: 1n}"), "spec.fairSharing.weight"},
        {OBJECT_COHORT,
         COHORT("parentName: p, resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: "
                "[{name: cpu, nominalQuota: 1, lendingLimit: 5}]}]}]"),
         NULL},
        {OBJECT_CLUSTER_QUEUE,
         QUEUE("cohortName: p, resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: "
               "[{name: cpu, nominalQuota: 1, lendingLimit: 5}]}]}]"),
         "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit"},
        {OBJECT_CLUSTER_QUEUE, QUEUE(GROUPS ", flavorFungibility: {preference: PreemptionOverBorrowing}"),
         "spec.flavorFungibility.preference"},
        {OBJECT_CLUSTER_QUEUE,
         QUEUE(GROUPS ", flavorFungibility: {whenCanBorrow: TryNextFlavor, preference: "
                      "PreemptionOverBorrowing}"),
         NULL},
        {OBJECT_CLUSTER_QUEUE,
         QUEUE(GROUPS ", admissionChecksStrategy: {admissionChecks: [{name: c, onFlavors: [f, g]}]}"),
         "spec.admissionChecksStrategy.admissionChecks[0].onFlavors[1]"},
        {OBJECT_ADMISSION_CHECK, CHECK_OBJECT("apiGroup: g, kind: K, name: nn"), NULL},
        {OBJECT_ADMISSION_CHECK, CHECK_OBJECT("apiGroup: g, kind: K, name: ''"), "spec.parameters.name"},
        {OBJECT_ADMISSION_CHECK, CHECK_OBJECT("apiGroup: '', kind: K, name: nn"), "spec.parameters.apiGroup"},
        {OBJECT_ADMISSION_CHECK, CHECK_OBJECT("apiGroup: '@g', kind: K, name: nn"),
         "spec.parameters.apiGroup"},
        {OBJECT_ADMISSION_CHECK, CHECK_OBJECT("apiGroup: g.io, kind: '@K', name: nn"),
         "spec.parameters.kind"},
        {OBJECT_ADMISSION_CHECK, CHECK_OBJECT("apiGroup: g.io, kind: 1K, name: nn"), "spec.parameters.kind"},
        {OBJECT_ADMISSION_CHECK, CHECK_OBJECT("apiGroup: g.io, kind: K-2, name: nn"), NULL},
        {OBJECT_RESOURCE_FLAVOR,
         FLAVOR_OBJECT(
             ", tolerations: [{key: k, operator: Exists, effect: NoSchedule, tolerationSeconds: 5}]"),
         "spec.tolerations[0].effect"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct harness h;
        harness_init(&h, 1, 4, 0);
        expect(&h, WRITE_CREATE, rows[i].kind, rows[i].yaml, rows[i].refused);
        harness_done(&h);
    }
}

static void changes(void **state)
{
    (void)state;
    static const struct {
        enum object_kind kind;
        const char *was, *is, *refused;
    } rows[] = {
        {OBJECT_LOCAL_QUEUE, LOCAL("clusterQueue: b"), LOCAL("clusterQueue: c"), "spec.clusterQueue"},
        {OBJECT_LOCAL_QUEUE, LOCAL("clusterQueue: b"), LOCAL("clusterQueue: b, stopPolicy: Hold"), NULL},
        {OBJECT_RESOURCE_FLAVOR, FLAVOR_OBJECT(""), FLAVOR_OBJECT(", topologyName: t"), NULL},
        {OBJECT_RESOURCE_FLAVOR, FLAVOR_OBJECT(", topologyName: t"), FLAVOR_OBJECT(", topologyName: u"),
         "spec"},
        {OBJECT_RESOURCE_FLAVOR, FLAVOR_OBJECT(", topologyName: t"), FLAVOR_OBJECT(""), "spec"},
        {OBJECT_TOPOLOGY, TOPOLOGY(LEVEL("rack") "," HOST), TOPOLOGY(LEVEL("block") "," HOST), NULL},
        {OBJECT_TOPOLOGY, TOPOLOGY(HOST), TOPOLOGY(LEVEL("block") "," LEVEL("rack") "," HOST), NULL},
        {OBJECT_TOPOLOGY, TOPOLOGY(LEVEL("block") "," LEVEL("rack")), TOPOLOGY(LEVEL("rack")), "spec.levels"},
        {OBJECT_TOPOLOGY, TOPOLOGY(LEVEL("rack") "," HOST), TOPOLOGY(LEVEL("rack")), "spec.levels"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct harness h;
        harness_init(&h, 1, 4, 0);
        expect(&h, WRITE_CREATE, rows[i].kind, rows[i].was, NULL);
        expect(&h, WRITE_REPLACE, rows[i].kind, rows[i].is, rows[i].refused);
        harness_done(&h);
    }
}

/* Objects that controllers outside read. */
static void those_of_controllers_outside(void **state)
{
    (void)state;
    static const struct {
        enum object_kind kind;
        const char *yaml, *refused; /* NULL: accepted */
    } rows[] = {
        {OBJECT_PROVISIONING_CONFIG,
         OUTSIDE("ProvisioningRequestConfig", "provisioningClassName: q.example.com"), NULL},
        {OBJECT_PROVISIONING_CONFIG, OUTSIDE("ProvisioningRequestConfig", "provisioningClassName: ''"),
         "spec.provisioningClassName"},
        {OBJECT_PROVISIONING_CONFIG,
         OUTSIDE("ProvisioningRequestConfig", "provisioningClassName: q, podSetMergePolicy: All"),
         "spec.podSetMergePolicy"},
        {OBJECT_MULTIKUEUE_CONFIG, OUTSIDE("MultiKueueConfig", "clusters: [east, west]"), NULL},
        {OBJECT_MULTIKUEUE_CONFIG, OUTSIDE("MultiKueueConfig", "clusters: []"), "spec.clusters"},
        {OBJECT_MULTIKUEUE_CONFIG, OUTSIDE("MultiKueueConfig", "clusters: [a, a]"), "spec.clusters[1]"},
        {OBJECT_MULTIKUEUE_CLUSTER,
         OUTSIDE("MultiKueueCluster", "clusterSource: {kubeConfig: {location: s, locationType: Path}}"),
         NULL},
        {OBJECT_MULTIKUEUE_CLUSTER,
         OUTSIDE("MultiKueueCluster", "clusterSource: {clusterProfileRef: {name: p}}"), NULL},
        {OBJECT_MULTIKUEUE_CLUSTER, OUTSIDE("MultiKueueCluster", "clusterSource: {}"), "spec.clusterSource"},
        {OBJECT_MULTIKUEUE_CLUSTER,
         OUTSIDE("MultiKueueCluster",
                 "clusterSource: {kubeConfig: {location: s}, clusterProfileRef: {name: p}}"),
         "spec.clusterSource"},
        {OBJECT_MULTIKUEUE_CONFIG, OUTSIDE("MultiKueueConfig", "clusters: [a, '']"), "spec.clusters[1]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct harness h;
        harness_init(&h, 1, 4, 0);
        expect(&h, WRITE_CREATE, rows[i].kind, rows[i].yaml, rows[i].refused);
        harness_done(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_ones),
        cmocka_unit_test(those_of_controllers_outside),
        cmocka_unit_test(changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
