/* schema_pod.c - v1 Pod: containers, scheduling, security. */
#include "core/spec/schema_table.h"

/* Kubernetes bounds these only by the object's size; here the checks compare items with each other. */
enum { CONTAINERS_MAX = 64, ENV_MAX = 2048, MOUNTS_MAX = 128, VOLUMES_MAX = 128, TOLERATIONS_MAX = 64 };

/* clang-format off */
const struct schema schema_local_reference = {"LocalObjectReference", TABLE(
    STRING("name", DEFAULT("")))};
const struct schema schema_key_reference = {"KeySelector", TABLE(
    STRING("name", DEFAULT("")), STRING("key", REQUIRED), BOOLEAN("optional"))};
const struct schema schema_field_reference = {"ObjectFieldSelector", TABLE(
    STRING("apiVersion"), STRING("fieldPath", REQUIRED))};
const struct schema schema_resource_reference = {"ResourceFieldSelector", TABLE(
    STRING("containerName"), STRING("resource", REQUIRED), QUANTITY("divisor"))};

/* --- environment --------------------------------------------------------------------------------------- */
static const struct schema file_reference = {"FileKeySelector", TABLE(
    STRING("key", REQUIRED), STRING("path", REQUIRED), STRING("volumeName", REQUIRED), BOOLEAN("optional"))};
static const struct schema env_source = {"EnvVarSource", TABLE(
    OBJECT("fieldRef", schema_field_reference), OBJECT("resourceFieldRef", schema_resource_reference),
    OBJECT("configMapKeyRef", schema_key_reference), OBJECT("secretKeyRef", schema_key_reference),
    OBJECT("fileKeyRef", file_reference))};
static const struct schema env_var = {"EnvVar", TABLE(
    STRING("name", REQUIRED), STRING("value"), OBJECT("valueFrom", env_source))};
static const struct schema env_from_reference = {"EnvFromReference", TABLE(
    STRING("name", DEFAULT("")), BOOLEAN("optional"))};
static const struct schema env_from = {"EnvFromSource", TABLE(
    STRING("prefix"), OBJECT("configMapRef", env_from_reference), OBJECT("secretRef", env_from_reference))};

/* --- probes and hooks ---------------------------------------------------------------------------------- */
static const struct schema exec_action = {"ExecAction", TABLE(STRINGS("command"))};
static const struct schema http_header = {"HTTPHeader", TABLE(
    STRING("name", REQUIRED), STRING("value", REQUIRED))};
static const struct schema http_action = {"HTTPGetAction", TABLE(
    STRING("host"), LIST("httpHeaders", http_header), STRING("path"), PORT("port", REQUIRED),
    STRING("scheme", ENUM("HTTP,HTTPS")))};
static const struct schema tcp_action = {"TCPSocketAction", TABLE(STRING("host"), PORT("port", REQUIRED))};
static const struct schema grpc_action = {"GRPCAction", TABLE(
    INT32("port", REQUIRED), STRING("service", DEFAULT("")))};
static const struct schema sleep_action = {"SleepAction", TABLE(INT64("seconds", REQUIRED))};
static const struct schema probe = {"Probe", TABLE(
    OBJECT("exec", exec_action), OBJECT("httpGet", http_action), OBJECT("tcpSocket", tcp_action),
    OBJECT("grpc", grpc_action), INT32("initialDelaySeconds"), INT32("timeoutSeconds"),
    INT32("periodSeconds"),
    INT32("successThreshold"), INT32("failureThreshold"), INT64("terminationGracePeriodSeconds"))};
static const struct schema hook = {"LifecycleHandler", TABLE(
    OBJECT("exec", exec_action), OBJECT("httpGet", http_action), OBJECT("tcpSocket", tcp_action),
    OBJECT("sleep", sleep_action))};
static const struct schema lifecycle = {"Lifecycle", TABLE(
    OBJECT("postStart", hook), OBJECT("preStop", hook), STRING("stopSignal"))};

/* --- security ------------------------------------------------------------------------------------------ */
static const struct schema capabilities = {"Capabilities", TABLE(STRINGS("add"), STRINGS("drop"))};
static const struct schema se_linux = {"SELinuxOptions", TABLE(
    STRING("user"), STRING("role"), STRING("type"), STRING("level"))};
static const struct schema profile = {"SecurityProfile", TABLE(
    STRING("type", REQUIRED, ENUM("Localhost,RuntimeDefault,Unconfined")), STRING("localhostProfile"))};
static const struct schema windows = {"WindowsSecurityContextOptions", TABLE(
    STRING("gmsaCredentialSpecName"), STRING("gmsaCredentialSpec"), STRING("runAsUserName"),
    BOOLEAN("hostProcess"))};
static const struct schema container_security = {"SecurityContext", TABLE(
    OBJECT("capabilities", capabilities), BOOLEAN("privileged"), OBJECT("seLinuxOptions", se_linux),
    OBJECT("windowsOptions", windows), INT64("runAsUser"), INT64("runAsGroup"), BOOLEAN("runAsNonRoot"),
    BOOLEAN("readOnlyRootFilesystem"), BOOLEAN("allowPrivilegeEscalation"), STRING("procMount"),
    OBJECT("seccompProfile", profile), OBJECT("appArmorProfile", profile))};
static const struct schema sysctl = {"Sysctl", TABLE(STRING("name", REQUIRED), STRING("value", REQUIRED))};
static const struct schema pod_security = {"PodSecurityContext", TABLE(
    OBJECT("seLinuxOptions", se_linux), OBJECT("windowsOptions", windows), INT64("runAsUser"),
    INT64("runAsGroup"), BOOLEAN("runAsNonRoot"),
    FIELD("supplementalGroups", SCHEMA_INT64, .list = SCHEMA_ATOMIC),
    STRING("supplementalGroupsPolicy", ENUM("Merge,Strict")),
    INT64("fsGroup"), LIST("sysctls", sysctl), STRING("fsGroupChangePolicy", ENUM("OnRootMismatch")),
    OBJECT("seccompProfile", profile),
    OBJECT("appArmorProfile", profile), STRING("seLinuxChangePolicy", ENUM("MountOption,Recursive")))};

/* --- containers ---------------------------------------------------------------------------------------- */
static const struct schema port = {"ContainerPort", TABLE(
    STRING("name"), INT32("hostPort"), INT32("containerPort", REQUIRED),
    STRING("protocol", ENUM("SCTP,TCP,UDP"), DEFAULT("TCP")), STRING("hostIP"))};
static const struct schema container_claim = {"ResourceClaim", TABLE(STRING("name", REQUIRED),
    STRING("request"))};
const struct schema schema_resources = {"ResourceRequirements", TABLE(
    QUANTITY_MAP("limits"), QUANTITY_MAP("requests"), KEYED("claims", container_claim, "name"))};
static const struct schema volume_mount = {"VolumeMount", TABLE(
    STRING("name", REQUIRED), BOOLEAN("readOnly"), STRING("recursiveReadOnly"), STRING("mountPath", REQUIRED),
    STRING("subPath"), STRING("mountPropagation"), STRING("subPathExpr"))};
static const struct schema volume_device = {"VolumeDevice", TABLE(
    STRING("name", REQUIRED), STRING("devicePath", REQUIRED))};
static const struct schema resize_policy = {"ContainerResizePolicy", TABLE(
    STRING("resourceName", REQUIRED), STRING("restartPolicy", REQUIRED))};
static const struct schema restart_exit_codes = {"ContainerRestartRuleOnExitCodes", TABLE(
    STRING("operator", REQUIRED, ENUM("In,NotIn")), INTS("values"))};
static const struct schema restart_rule = {"ContainerRestartRule", TABLE(
    STRING("action", REQUIRED), OBJECT("exitCodes", restart_exit_codes))};
const struct schema schema_container = {"Container", TABLE(
    STRING("name", REQUIRED), STRING("image"), STRINGS("command"), STRINGS("args"), STRING("workingDir"),
    KEYED("ports", port, "containerPort,protocol", DOUBLES), LIST("envFrom", env_from),
    KEYED("env", env_var, "name", AT_MOST(ENV_MAX), DOUBLES),
    OBJECT("resources", schema_resources), LIST("resizePolicy", resize_policy),
    STRING("restartPolicy", ENUM("Always,OnFailure,Never")), LIST("restartPolicyRules", restart_rule),
    KEYED("volumeMounts", volume_mount, "mountPath", AT_MOST(MOUNTS_MAX)),
    KEYED("volumeDevices", volume_device, "devicePath"),
    OBJECT("livenessProbe", probe), OBJECT("readinessProbe", probe), OBJECT("startupProbe", probe),
    OBJECT("lifecycle", lifecycle), STRING("terminationMessagePath"), STRING("terminationMessagePolicy"),
    STRING("imagePullPolicy", ENUM("Always,IfNotPresent,Never")),
    OBJECT("securityContext", container_security),
    BOOLEAN("stdin"), BOOLEAN("stdinOnce"), BOOLEAN("tty"), STRING("targetContainerName"))};

/* --- where a pod may run ------------------------------------------------------------------------------- */
static const struct schema requirement = {"Requirement", TABLE(
    STRING("key", REQUIRED), STRING("operator", REQUIRED), STRINGS("values"))};
const struct schema schema_label_selector = {"LabelSelector", TABLE(
    STRING_MAP("matchLabels"), LIST("matchExpressions", requirement))};
static const struct schema node_selector_term = {"NodeSelectorTerm", TABLE(
    LIST("matchExpressions", requirement), LIST("matchFields", requirement))};
static const struct schema node_selector = {"NodeSelector", TABLE(
    LIST("nodeSelectorTerms", node_selector_term, REQUIRED))};
static const struct schema preferred_node = {"PreferredSchedulingTerm", TABLE(
    INT32("weight", REQUIRED), OBJECT("preference", node_selector_term, REQUIRED))};
static const struct schema node_affinity = {"NodeAffinity", TABLE(
    OBJECT("requiredDuringSchedulingIgnoredDuringExecution", node_selector),
    LIST("preferredDuringSchedulingIgnoredDuringExecution", preferred_node))};
static const struct schema pod_affinity_term = {"PodAffinityTerm", TABLE(
    OBJECT("labelSelector", schema_label_selector), STRINGS("namespaces"), STRING("topologyKey", REQUIRED),
    OBJECT("namespaceSelector", schema_label_selector), STRINGS("matchLabelKeys"),
    STRINGS("mismatchLabelKeys"))};
static const struct schema preferred_pod = {"WeightedPodAffinityTerm", TABLE(
    INT32("weight", REQUIRED), OBJECT("podAffinityTerm", pod_affinity_term, REQUIRED))};
static const struct schema pod_affinity = {"PodAffinity", TABLE(
    LIST("requiredDuringSchedulingIgnoredDuringExecution", pod_affinity_term),
    LIST("preferredDuringSchedulingIgnoredDuringExecution", preferred_pod))};
static const struct schema affinity = {"Affinity", TABLE(
    OBJECT("nodeAffinity", node_affinity), OBJECT("podAffinity", pod_affinity),
    OBJECT("podAntiAffinity", pod_affinity))};
static const struct schema toleration = {"Toleration", TABLE(
    STRING("key"), STRING("operator", ENUM("Equal,Exists")), STRING("value"),
    STRING("effect", ENUM("NoSchedule,PreferNoSchedule,NoExecute")), INT64("tolerationSeconds"))};
static const struct schema spread = {"TopologySpreadConstraint", TABLE(
    INT32("maxSkew", REQUIRED), STRING("topologyKey", REQUIRED), STRING("whenUnsatisfiable", REQUIRED),
    OBJECT("labelSelector", schema_label_selector), INT32("minDomains"), STRING("nodeAffinityPolicy"),
    STRING("nodeTaintsPolicy"), STRINGS("matchLabelKeys"))};
static const struct schema named = {"NamedReference", TABLE(STRING("name", REQUIRED))};
static const struct schema readiness_gate = {"PodReadinessGate", TABLE(STRING("conditionType", REQUIRED))};
static const struct schema pod_claim = {"PodResourceClaim", TABLE(
    STRING("name", REQUIRED), STRING("resourceClaimName"), STRING("resourceClaimTemplateName"))};
static const struct schema scheduling_group = {"PodSchedulingGroup", TABLE(STRING("podGroupName"))};
static const struct schema workload_reference = {"WorkloadReference", TABLE(
    STRING("name", REQUIRED), STRING("podGroup", REQUIRED), STRING("podGroupReplicaKey"))};

/* --- the pod ------------------------------------------------------------------------------------------- */
static const struct schema host_alias = {"HostAlias", TABLE(STRING("ip", REQUIRED), STRINGS("hostnames"))};
static const struct schema dns_option = {"PodDNSConfigOption", TABLE(STRING("name"), STRING("value"))};
static const struct schema dns_config = {"PodDNSConfig", TABLE(
    STRINGS("nameservers"), STRINGS("searches"), LIST("options", dns_option))};
static const struct schema pod_os = {"PodOS", TABLE(STRING("name", REQUIRED))};
const struct schema schema_pod_spec = {"PodSpec", TABLE(
    KEYED("volumes", schema_volume, "name", AT_MOST(VOLUMES_MAX)),
    KEYED("initContainers", schema_container, "name", AT_MOST(CONTAINERS_MAX)),
    KEYED("containers", schema_container, "name", REQUIRED, AT_MOST(CONTAINERS_MAX)),
    KEYED("ephemeralContainers", schema_container, "name", AT_MOST(CONTAINERS_MAX)),
    STRING("restartPolicy", ENUM("Always,OnFailure,Never")), INT64("terminationGracePeriodSeconds"),
    INT64("activeDeadlineSeconds"), STRING("dnsPolicy"), STRING_MAP("nodeSelector"),
    STRING("serviceAccountName"), STRING("serviceAccount"), BOOLEAN("automountServiceAccountToken"),
    STRING("nodeName"), BOOLEAN("hostNetwork"), BOOLEAN("hostPID"), BOOLEAN("hostIPC"),
    BOOLEAN("shareProcessNamespace"), OBJECT("securityContext", pod_security),
    KEYED("imagePullSecrets", schema_local_reference, "name", DOUBLES), STRING("hostname"),
    STRING("subdomain"),
    STRING("hostnameOverride"), OBJECT("affinity", affinity), STRING("schedulerName"),
    LIST("tolerations", toleration, AT_MOST(TOLERATIONS_MAX)),
    KEYED("hostAliases", host_alias, "ip", DOUBLES),
    STRING("priorityClassName"),
    INT32("priority"), OBJECT("dnsConfig", dns_config), LIST("readinessGates", readiness_gate),
    STRING("runtimeClassName"), BOOLEAN("enableServiceLinks"),
    STRING("preemptionPolicy", ENUM("Never,PreemptLowerPriority")), QUANTITY_MAP("overhead"),
    KEYED("topologySpreadConstraints", spread, "topologyKey,whenUnsatisfiable"), BOOLEAN("setHostnameAsFQDN"),
    OBJECT("os", pod_os), BOOLEAN("hostUsers"), KEYED("schedulingGates", named, "name"),
    KEYED("resourceClaims", pod_claim, "name"), OBJECT("resources", schema_resources),
    OBJECT("schedulingGroup", scheduling_group), OBJECT("workloadRef", workload_reference))};
const struct schema schema_pod_template = {"PodTemplateSpec", TABLE(
    OBJECT("metadata", schema_embedded_meta), OBJECT("spec", schema_pod_spec))};
/* clang-format on */
