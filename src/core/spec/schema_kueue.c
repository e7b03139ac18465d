/* schema_kueue.c - kueue.x-k8s.io/v1beta2 as it is stored, and the fields that v1beta1 names differently
 * (object/convert.c).
 *
 * Source: the CRDs of kubernetes-sigs/kueue, apis/kueue/v1beta2 and v1beta1.
 */
#include "core/spec/schema_stored.h"

enum {
    GROUPS_MAX = 16,
    FLAVORS_MAX = 64,
    RESOURCES_MAX = 64,
    LEVELS_MAX = 16,
    TAINTS_MAX = 8,
    CHECKS_MAX = 64,
    CLUSTERS_MAX = 20, /* of a MultiKueueConfig */
    MANAGED_MAX = 100, /* resources of a ProvisioningRequestConfig */
    SELECTORS_MAX = 8,
    PODSETS_MAX = 18 /* of a Workload */
};

/* clang-format off */
static const struct schema resource_quota = {"ResourceQuota", TABLE(
    STRING("name", REQUIRED), QUANTITY("nominalQuota", REQUIRED), QUANTITY("borrowingLimit"),
    QUANTITY("lendingLimit"))};
static const struct schema flavor_quotas = {"FlavorQuotas", TABLE(
    STRING("name", REQUIRED), KEYED("resources", resource_quota, "name", REQUIRED, AT_MOST(RESOURCES_MAX)))};
static const struct schema resource_group = {"ResourceGroup", TABLE(
    STRINGS("coveredResources", REQUIRED, AT_MOST(RESOURCES_MAX)),
    KEYED("flavors", flavor_quotas, "name", REQUIRED, AT_MOST(FLAVORS_MAX)))};
static const struct schema fair_sharing = {"FairSharing", TABLE(QUANTITY("weight", DEFAULT("1")))};
static const struct schema fungibility = {"FlavorFungibility", TABLE(
    STRING("whenCanBorrow", ENUM("MayStopSearch,TryNextFlavor"), DEFAULT("MayStopSearch")),
    STRING("whenCanPreempt", ENUM("MayStopSearch,TryNextFlavor"), DEFAULT("TryNextFlavor")),
    STRING("preference", ENUM("BorrowingOverPreemption,PreemptionOverBorrowing")))};
static const struct schema fungibility_v1beta1 = {"FlavorFungibility", TABLE(
    STRING("whenCanBorrow", ENUM("Borrow,MayStopSearch,TryNextFlavor"), DEFAULT("Borrow")),
    STRING("whenCanPreempt", ENUM("Preempt,MayStopSearch,TryNextFlavor"), DEFAULT("TryNextFlavor")),
    STRING("preference", ENUM("BorrowingOverPreemption,PreemptionOverBorrowing")))};
static const struct schema borrow_within_cohort = {"BorrowWithinCohort", TABLE(
    STRING("policy", ENUM("Never,LowerPriority"), DEFAULT("Never")), INT32("maxPriorityThreshold"))};
static const struct schema preemption = {"ClusterQueuePreemption", TABLE(
    STRING("reclaimWithinCohort", ENUM("Never,LowerPriority,Any"), DEFAULT("Never")),
    OBJECT("borrowWithinCohort", borrow_within_cohort, DEFAULT("{}")),
    STRING("withinClusterQueue", ENUM("Never,LowerPriority,LowerOrNewerEqualPriority"), DEFAULT("Never")))};
static const struct schema check_rule = {"AdmissionCheckStrategyRule", TABLE(
    STRING("name", REQUIRED), STRING_SET("onFlavors", AT_MOST(FLAVORS_MAX)))};
static const struct schema checks_strategy = {"AdmissionChecksStrategy", TABLE(
    KEYED("admissionChecks", check_rule, "name", REQUIRED, AT_MOST(CHECKS_MAX)))};
static const struct schema admission_scope = {"AdmissionScope", TABLE(
    STRING("admissionMode", REQUIRED, ENUM("UsageBasedAdmissionFairSharing,NoAdmissionFairSharing")))};

#define QUEUE_FIELDS(fungible)                                                                               \
    LIST("resourceGroups", resource_group, AT_MOST(GROUPS_MAX)),                                             \
    STRING("queueingStrategy", ENUM("StrictFIFO,BestEffortFIFO"), DEFAULT("BestEffortFIFO")),                \
    OBJECT("namespaceSelector", schema_label_selector),                                                      \
    OBJECT("flavorFungibility", fungible, DEFAULT("{}")), OBJECT("preemption", preemption, DEFAULT("{}")),   \
    OBJECT("admissionChecksStrategy", checks_strategy),                                                      \
    STRING("stopPolicy", ENUM("None,Hold,HoldAndDrain"), DEFAULT("None")),                                   \
    OBJECT("fairSharing", fair_sharing), OBJECT("admissionScope", admission_scope),                          \
    ANYTHING("concurrentAdmissionPolicy")

static const struct schema cluster_queue_spec = {"ClusterQueueSpec", TABLE(
    QUEUE_FIELDS(fungibility), STRING("cohortName"))};
static const struct schema cluster_queue_spec_v1beta1 = {"ClusterQueueSpec", TABLE(
    QUEUE_FIELDS(fungibility_v1beta1), STRING("cohort"), STRINGS("admissionChecks", AT_MOST(CHECKS_MAX)))};
const struct schema schema_cluster_queue = {"ClusterQueue", TABLE(
    WHOLE, OBJECT("spec", cluster_queue_spec, DEFAULT("{}")), ANYTHING("status"))};
const struct schema schema_cluster_queue_v1beta1 = {"ClusterQueue", TABLE(
    WHOLE, OBJECT("spec", cluster_queue_spec_v1beta1, DEFAULT("{}")), ANYTHING("status"))};

static const struct schema local_queue_spec = {"LocalQueueSpec", TABLE(
    STRING("clusterQueue"), STRING("stopPolicy", ENUM("None,Hold,HoldAndDrain"), DEFAULT("None")),
    OBJECT("fairSharing", fair_sharing))};
const struct schema schema_local_queue = {"LocalQueue", TABLE(
    WHOLE, OBJECT("spec", local_queue_spec, DEFAULT("{}")), ANYTHING("status"))};

static const struct schema flavor_taint = {"Taint", TABLE(
    STRING("key", REQUIRED), STRING("value"),
    STRING("effect", REQUIRED, ENUM("NoSchedule,PreferNoSchedule,NoExecute")), STRING("timeAdded"))};
static const struct schema flavor_toleration = {"Toleration", TABLE(
    STRING("key"), STRING("operator", ENUM("Exists,Equal")), STRING("value"),
    STRING("effect", ENUM("NoSchedule,PreferNoSchedule,NoExecute")), INT64("tolerationSeconds"))};
static const struct schema flavor_spec = {"ResourceFlavorSpec", TABLE(
    STRING_MAP("nodeLabels"), LIST("nodeTaints", flavor_taint, AT_MOST(TAINTS_MAX)),
    LIST("tolerations", flavor_toleration, AT_MOST(TAINTS_MAX)), STRING("topologyName"))};
const struct schema schema_resource_flavor = {"ResourceFlavor", TABLE(
    WHOLE, OBJECT("spec", flavor_spec), ANYTHING("status"))};

static const struct schema cohort_spec = {"CohortSpec", TABLE(
    STRING("parentName"), LIST("resourceGroups", resource_group, AT_MOST(GROUPS_MAX)),
    OBJECT("fairSharing", fair_sharing))};
const struct schema schema_cohort = {"Cohort", TABLE(WHOLE, OBJECT("spec", cohort_spec), ANYTHING("status"))};

const struct schema schema_workload_priority_class = {"WorkloadPriorityClass", TABLE(
    WHOLE, INT32("value", REQUIRED), STRING("description"))};

static const struct schema topology_level = {"TopologyLevel", TABLE(STRING("nodeLabel", REQUIRED))};
static const struct schema topology_spec = {"TopologySpec", TABLE(
    LIST("levels", topology_level, REQUIRED, AT_MOST(LEVELS_MAX)))};
const struct schema schema_topology = {"Topology", TABLE(
    WHOLE, OBJECT("spec", topology_spec, REQUIRED), ANYTHING("status"))};

static const struct schema check_parameters = {"AdmissionCheckParametersReference", TABLE(
    STRING("apiGroup", REQUIRED), STRING("kind", REQUIRED), STRING("name", REQUIRED))};
static const struct schema check_spec = {"AdmissionCheckSpec", TABLE(
    STRING("controllerName", REQUIRED), INT64("retryDelayMinutes"),
    OBJECT("parameters", check_parameters))};
const struct schema schema_admission_check = {"AdmissionCheck", TABLE(
    WHOLE, OBJECT("spec", check_spec, REQUIRED), ANYTHING("status"))};

static const struct schema provisioning_retry = {"ProvisioningRequestRetryStrategy", TABLE(
    INT32("backoffLimitCount", DEFAULT("3")), INT32("backoffBaseSeconds", DEFAULT("60")),
    INT32("backoffMaxSeconds", DEFAULT("1800")))};
static const struct schema provisioned_selector = {"ProvisioningRequestPodSetUpdatesNodeSelector", TABLE(
    STRING("key", REQUIRED), STRING("valueFromProvisioningClassDetail", REQUIRED))};
static const struct schema provisioned_updates = {"ProvisioningRequestPodSetUpdates", TABLE(
    KEYED("nodeSelector", provisioned_selector, "key", AT_MOST(SELECTORS_MAX)))};
static const struct schema provisioning_spec = {"ProvisioningRequestConfigSpec", TABLE(
    STRING("provisioningClassName", REQUIRED), STRING_MAP("parameters"),
    STRING_SET("managedResources", AT_MOST(MANAGED_MAX)),
    OBJECT("retryStrategy", provisioning_retry, DEFAULT("{}")), OBJECT("podSetUpdates", provisioned_updates),
    STRING("podSetMergePolicy", ENUM("IdenticalPodTemplates,IdenticalWorkloadSchedulingRequirements")))};
const struct schema schema_provisioning_config = {"ProvisioningRequestConfig", TABLE(
    WHOLE, OBJECT("spec", provisioning_spec, REQUIRED))};

static const struct schema multikueue_spec = {"MultiKueueConfigSpec", TABLE(
    STRINGS("clusters", REQUIRED, AT_MOST(CLUSTERS_MAX)),
    STRING("quotaManagement", ENUM("Manual,Automated")))};
const struct schema schema_multikueue_config = {"MultiKueueConfig", TABLE(
    WHOLE, OBJECT("spec", multikueue_spec, REQUIRED))};
static const struct schema cluster_kubeconfig = {"KubeConfig", TABLE(
    STRING("location", REQUIRED), STRING("locationType", ENUM("Secret,Path"), DEFAULT("Secret")))};
static const struct schema cluster_profile = {"ClusterProfileReference", TABLE(STRING("name", REQUIRED))};
#define CLUSTER_SOURCES                                                                                      \
    OBJECT("kubeConfig", cluster_kubeconfig), OBJECT("clusterProfileRef", cluster_profile)
static const struct schema cluster_source = {"ClusterSource", TABLE(CLUSTER_SOURCES)};
static const struct schema remote_spec = {"MultiKueueClusterSpec", TABLE(
    OBJECT("clusterSource", cluster_source, REQUIRED))};
static const struct schema remote_spec_v1beta1 = {"MultiKueueClusterSpec", TABLE(CLUSTER_SOURCES)};
const struct schema schema_multikueue_cluster = {"MultiKueueCluster", TABLE(
    WHOLE, OBJECT("spec", remote_spec, REQUIRED), ANYTHING("status"))};
const struct schema schema_multikueue_cluster_v1beta1 = {"MultiKueueCluster", TABLE(
    WHOLE, OBJECT("spec", remote_spec_v1beta1, REQUIRED), ANYTHING("status"))};

static const struct schema priority_class_ref = {"PriorityClassRef", TABLE(
    STRING("group", REQUIRED, ENUM("kueue.x-k8s.io,scheduling.k8s.io")),
    STRING("kind", REQUIRED, ENUM("WorkloadPriorityClass,PriorityClass")), STRING("name", REQUIRED))};
static const struct schema topology_request = {"PodSetTopologyRequest", TABLE(
    STRING("required"), STRING("preferred"), BOOLEAN("unconstrained"), STRING("podIndexLabel"),
    STRING("subGroupIndexLabel"), INT32("subGroupCount"), STRING("podSetGroupName"),
    STRING("podSetSliceRequiredTopology"), INT32("podSetSliceSize"),
    ANYTHING("podsetSliceRequiredTopologyConstraints"))};
static const struct schema podset = {"PodSet", TABLE(
    STRING("name", DEFAULT("main")), INT32("count", DEFAULT("1")), INT32("minCount"),
    OBJECT("template", schema_pod_template, REQUIRED), OBJECT("topologyRequest", topology_request))};
#define WORKLOAD_FIELDS                                                                                      \
    KEYED("podSets", podset, "name", REQUIRED, AT_MOST(PODSETS_MAX)), STRING("queueName"),                   \
    INT32("priority"), BOOLEAN("active"), INT32("maximumExecutionTimeSeconds")
#define CLASS_SOURCES "kueue.x-k8s.io/workloadpriorityclass,scheduling.k8s.io/priorityclass,"
static const struct schema workload_spec = {"WorkloadSpec", TABLE(
    WORKLOAD_FIELDS, OBJECT("priorityClassRef", priority_class_ref))};
static const struct schema workload_spec_v1beta1 = {"WorkloadSpec", TABLE(
    WORKLOAD_FIELDS, STRING("priorityClassName"),
    STRING("priorityClassSource", ENUM(CLASS_SOURCES)))};
const struct schema schema_workload = {"Workload", TABLE(
    WHOLE, OBJECT("spec", workload_spec, REQUIRED), ANYTHING("status"))};
const struct schema schema_workload_v1beta1 = {"Workload", TABLE(
    WHOLE, OBJECT("spec", workload_spec_v1beta1, REQUIRED), ANYTHING("status"))};
/* clang-format on */
