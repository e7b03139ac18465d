/* schema_core.c - the stored kinds of v1 and scheduling.k8s.io/v1: Namespace, ConfigMap, Secret, Service,
 * ServiceAccount, PersistentVolumeClaim, ResourceQuota, PriorityClass, Event (events.k8s.io/v1 too), and
 * PodDisruptionBudget of policy/v1.
 *
 * Source: the OpenAPI definitions of v1 and scheduling.k8s.io/v1. Statuses are kept unchecked: only the
 * control plane writes them.
 */
#include "core/spec/schema_stored.h"

/* clang-format off */
static const struct schema namespace_spec = {"NamespaceSpec", TABLE(STRINGS("finalizers"))};
const struct schema schema_namespace = {"Namespace", TABLE(
    WHOLE, OBJECT("spec", namespace_spec), ANYTHING("status"))};

const struct schema schema_config_map = {"ConfigMap", TABLE(
    WHOLE, STRING_MAP("data"), STRING_MAP("binaryData"), BOOLEAN("immutable"))};
const struct schema schema_secret = {"Secret", TABLE(
    WHOLE, STRING_MAP("data"), STRING_MAP("stringData"), STRING("type", DEFAULT("Opaque")),
    BOOLEAN("immutable"))};

static const struct schema service_port = {"ServicePort", TABLE(
    STRING("name"), STRING("protocol", ENUM("TCP,UDP,SCTP"), DEFAULT("TCP")), STRING("appProtocol"),
    INT32("port", REQUIRED), PORT("targetPort"), INT32("nodePort"))};
static const struct schema service_spec = {"ServiceSpec", TABLE(
    KEYED("ports", service_port, "port,protocol"), STRING_MAP("selector"), STRING("clusterIP"),
    STRINGS("clusterIPs"),
    STRING("type", ENUM("ClusterIP,NodePort,LoadBalancer,ExternalName"), DEFAULT("ClusterIP")),
    STRINGS("externalIPs"), STRING("sessionAffinity", ENUM("None,ClientIP"), DEFAULT("None")),
    STRING("loadBalancerIP"), STRINGS("loadBalancerSourceRanges"), STRING("externalName"),
    STRING("externalTrafficPolicy", ENUM("Cluster,Local")), INT32("healthCheckNodePort"),
    BOOLEAN("publishNotReadyAddresses"), ANYTHING("sessionAffinityConfig"), STRINGS("ipFamilies"),
    STRING("ipFamilyPolicy", ENUM("SingleStack,PreferDualStack,RequireDualStack")),
    BOOLEAN("allocateLoadBalancerNodePorts"), STRING("loadBalancerClass"),
    STRING("internalTrafficPolicy", ENUM("Cluster,Local"), DEFAULT("Cluster")),
    STRING("trafficDistribution"))};
const struct schema schema_service = {"Service", TABLE(
    WHOLE, OBJECT("spec", service_spec), ANYTHING("status"))};

static const struct schema object_reference = {"ObjectReference", TABLE(
    STRING("kind"), STRING("namespace"), STRING("name"), STRING("uid"), STRING("apiVersion"),
    STRING("resourceVersion"), STRING("fieldPath"))};
static const struct schema event_source = {"EventSource", TABLE(STRING("component"), STRING("host"))};
static const struct schema event_series = {"EventSeries", TABLE(
    INT32("count"), STRING("lastObservedTime"))};
const struct schema schema_event = {"Event", TABLE(
    WHOLE, OBJECT("involvedObject", object_reference, REQUIRED), STRING("reason"), STRING("message"),
    OBJECT("source", event_source), STRING("firstTimestamp"), STRING("lastTimestamp"), INT32("count"),
    STRING("type"), STRING("eventTime"), OBJECT("series", event_series), STRING("action"),
    OBJECT("related", object_reference), STRING("reportingComponent"), STRING("reportingInstance"))};
const struct schema schema_new_event = {"Event", TABLE(
    WHOLE, STRING("eventTime", REQUIRED), OBJECT("series", event_series), STRING("reportingController"),
    STRING("reportingInstance"), STRING("action"), STRING("reason"), OBJECT("regarding", object_reference),
    OBJECT("related", object_reference), STRING("note"), STRING("type"),
    OBJECT("deprecatedSource", event_source), STRING("deprecatedFirstTimestamp"),
    STRING("deprecatedLastTimestamp"), INT32("deprecatedCount"))};

const struct schema schema_service_account = {"ServiceAccount", TABLE(
    WHOLE, KEYED("secrets", object_reference, "name"), LIST("imagePullSecrets", schema_local_reference),
    BOOLEAN("automountServiceAccountToken"))};

const struct schema schema_claim = {"PersistentVolumeClaim", TABLE(
    WHOLE, OBJECT("spec", schema_claim_spec), ANYTHING("status"))};

static const struct schema scope_requirement = {"ScopedResourceSelectorRequirement", TABLE(
    STRING("scopeName", REQUIRED), STRING("operator", REQUIRED, ENUM("In,NotIn,Exists,DoesNotExist")),
    STRINGS("values"))};
static const struct schema scope_selector = {"ScopeSelector", TABLE(
    LIST("matchExpressions", scope_requirement))};
static const struct schema quota_spec = {"ResourceQuotaSpec", TABLE(
    QUANTITY_MAP("hard"), STRINGS("scopes"), OBJECT("scopeSelector", scope_selector))};
const struct schema schema_resource_quota = {"ResourceQuota", TABLE(
    WHOLE, OBJECT("spec", quota_spec), ANYTHING("status"))};

static const struct schema disruption_spec = {"PodDisruptionBudgetSpec", TABLE(
    PORT("minAvailable"), OBJECT("selector", schema_label_selector), PORT("maxUnavailable"),
    STRING("unhealthyPodEvictionPolicy", ENUM("IfHealthyBudget,AlwaysAllow")))};
const struct schema schema_disruption_budget = {"PodDisruptionBudget", TABLE(
    WHOLE, OBJECT("spec", disruption_spec), ANYTHING("status"))};

const struct schema schema_priority_class = {"PriorityClass", TABLE(
    WHOLE, INT32("value", REQUIRED), BOOLEAN("globalDefault"), STRING("description"),
    STRING("preemptionPolicy", ENUM("Never,PreemptLowerPriority"), DEFAULT("PreemptLowerPriority")))};
/* clang-format on */
