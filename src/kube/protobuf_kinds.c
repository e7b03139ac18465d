#include "kube/protobuf_kinds.h"

#include <string.h>

#define MESSAGE(name) static const struct protobuf_field name[]
#define END           {0}

/* clang-format off */

/* --- meta/v1 ----------------------------------------------------------------------------------- */
MESSAGE(owner_reference) = {
    {1, PB_TEXT, "kind", NULL}, {3, PB_TEXT, "name", NULL}, {4, PB_TEXT, "uid", NULL},
    {5, PB_TEXT, "apiVersion", NULL}, {6, PB_BOOL, "controller", NULL},
    {7, PB_BOOL, "blockOwnerDeletion", NULL}, END};
MESSAGE(object_meta) = {
    {1, PB_TEXT, "name", NULL}, {2, PB_TEXT, "generateName", NULL}, {3, PB_TEXT, "namespace", NULL},
    {5, PB_TEXT, "uid", NULL}, {6, PB_TEXT, "resourceVersion", NULL}, {11, PB_MAP, "labels", NULL},
    {12, PB_MAP, "annotations", NULL}, {13, PB_MESSAGES, "ownerReferences", owner_reference},
    {14, PB_TEXTS, "finalizers", NULL}, END};
MESSAGE(requirement) = {
    {1, PB_TEXT, "key", NULL}, {2, PB_TEXT, "operator", NULL}, {3, PB_TEXTS, "values", NULL}, END};
MESSAGE(label_selector) = {
    {1, PB_MAP, "matchLabels", NULL}, {2, PB_MESSAGES, "matchExpressions", requirement}, END};
MESSAGE(preconditions) = {{1, PB_TEXT, "uid", NULL}, {2, PB_TEXT, "resourceVersion", NULL}, END};
MESSAGE(delete_options) = {
    {1, PB_INT, "gracePeriodSeconds", NULL}, {2, PB_MESSAGE, "preconditions", preconditions},
    {3, PB_BOOL, "orphanDependents", NULL}, {4, PB_TEXT, "propagationPolicy", NULL},
    {5, PB_TEXTS, "dryRun", NULL}, END};

/* --- core/v1: small kinds ---------------------------------------------------------------------- */
MESSAGE(namespace_spec) = {{1, PB_TEXTS, "finalizers", NULL}, END};
MESSAGE(namespace_) = {
    {1, PB_MESSAGE, "metadata", object_meta}, {2, PB_MESSAGE, "spec", namespace_spec}, END};
MESSAGE(config_map) = {
    {1, PB_MESSAGE, "metadata", object_meta}, {2, PB_MAP, "data", NULL},
    {3, PB_BYTES_MAP, "binaryData", NULL}, {4, PB_BOOL, "immutable", NULL}, END};
MESSAGE(secret) = {
    {1, PB_MESSAGE, "metadata", object_meta}, {2, PB_BYTES_MAP, "data", NULL}, {3, PB_TEXT, "type", NULL},
    {4, PB_MAP, "stringData", NULL}, {5, PB_BOOL, "immutable", NULL}, END};
MESSAGE(object_reference) = {
    {1, PB_TEXT, "kind", NULL}, {2, PB_TEXT, "namespace", NULL}, {3, PB_TEXT, "name", NULL},
    {4, PB_TEXT, "uid", NULL}, {5, PB_TEXT, "apiVersion", NULL}, {6, PB_TEXT, "resourceVersion", NULL},
    {7, PB_TEXT, "fieldPath", NULL}, END};
MESSAGE(local_reference) = {{1, PB_TEXT, "name", NULL}, END};
MESSAGE(service_account) = {
    {1, PB_MESSAGE, "metadata", object_meta}, {2, PB_MESSAGES, "secrets", object_reference},
    {3, PB_MESSAGES, "imagePullSecrets", local_reference},
    {4, PB_BOOL, "automountServiceAccountToken", NULL}, END};
MESSAGE(service_port) = {
    {1, PB_TEXT, "name", NULL}, {2, PB_TEXT, "protocol", NULL}, {3, PB_PLAIN_INT, "port", NULL},
    {4, PB_INT_OR_STRING, "targetPort", NULL}, {5, PB_PLAIN_INT, "nodePort", NULL},
    {6, PB_TEXT, "appProtocol", NULL}, END};
MESSAGE(service_spec) = {
    {1, PB_MESSAGES, "ports", service_port}, {2, PB_MAP, "selector", NULL}, {3, PB_TEXT, "clusterIP", NULL},
    {4, PB_TEXT, "type", NULL}, {5, PB_TEXTS, "externalIPs", NULL}, {7, PB_TEXT, "sessionAffinity", NULL},
    {8, PB_TEXT, "loadBalancerIP", NULL}, {9, PB_TEXTS, "loadBalancerSourceRanges", NULL},
    {10, PB_TEXT, "externalName", NULL}, {11, PB_TEXT, "externalTrafficPolicy", NULL},
    {12, PB_PLAIN_INT, "healthCheckNodePort", NULL}, {13, PB_PLAIN_BOOL, "publishNotReadyAddresses", NULL},
    {17, PB_TEXT, "ipFamilyPolicy", NULL}, {18, PB_TEXTS, "clusterIPs", NULL},
    {19, PB_TEXTS, "ipFamilies", NULL}, {20, PB_BOOL, "allocateLoadBalancerNodePorts", NULL},
    {21, PB_TEXT, "loadBalancerClass", NULL}, {22, PB_TEXT, "internalTrafficPolicy", NULL}, END};
MESSAGE(service) = {
    {1, PB_MESSAGE, "metadata", object_meta}, {2, PB_MESSAGE, "spec", service_spec}, END};
MESSAGE(scope_requirement) = {
    {1, PB_TEXT, "scopeName", NULL}, {2, PB_TEXT, "operator", NULL}, {3, PB_TEXTS, "values", NULL}, END};
MESSAGE(scope_selector) = {{1, PB_MESSAGES, "matchExpressions", scope_requirement}, END};
MESSAGE(quota_spec) = {
    {1, PB_QUANTITY_MAP, "hard", NULL}, {2, PB_TEXTS, "scopes", NULL},
    {3, PB_MESSAGE, "scopeSelector", scope_selector}, END};
MESSAGE(resource_quota) = {
    {1, PB_MESSAGE, "metadata", object_meta}, {2, PB_MESSAGE, "spec", quota_spec}, END};

/* --- core/v1: pods ----------------------------------------------------------------------------- */
MESSAGE(field_selector) = {{1, PB_TEXT, "apiVersion", NULL}, {2, PB_TEXT, "fieldPath", NULL}, END};
MESSAGE(resource_selector) = {
    {1, PB_TEXT, "containerName", NULL}, {2, PB_TEXT, "resource", NULL}, {3, PB_QUANTITY, "divisor", NULL},
    END};
MESSAGE(key_selector) = {
    {1, PB_INLINE, "", local_reference}, {2, PB_TEXT, "key", NULL}, {3, PB_BOOL, "optional", NULL}, END};
MESSAGE(env_source) = {
    {1, PB_MESSAGE, "fieldRef", field_selector}, {2, PB_MESSAGE, "resourceFieldRef", resource_selector},
    {3, PB_MESSAGE, "configMapKeyRef", key_selector}, {4, PB_MESSAGE, "secretKeyRef", key_selector}, END};
MESSAGE(env_var) = {
    {1, PB_TEXT, "name", NULL}, {2, PB_TEXT, "value", NULL}, {3, PB_MESSAGE, "valueFrom", env_source}, END};
MESSAGE(env_reference) = {{1, PB_INLINE, "", local_reference}, {2, PB_BOOL, "optional", NULL}, END};
MESSAGE(env_from) = {
    {1, PB_TEXT, "prefix", NULL}, {2, PB_MESSAGE, "configMapRef", env_reference},
    {3, PB_MESSAGE, "secretRef", env_reference}, END};
MESSAGE(container_port) = {
    {1, PB_TEXT, "name", NULL}, {2, PB_PLAIN_INT, "hostPort", NULL}, {3, PB_PLAIN_INT, "containerPort", NULL},
    {4, PB_TEXT, "protocol", NULL}, {5, PB_TEXT, "hostIP", NULL}, END};
MESSAGE(resource_claim) = {{1, PB_TEXT, "name", NULL}, {2, PB_TEXT, "request", NULL}, END};
MESSAGE(resources) = {
    {1, PB_QUANTITY_MAP, "limits", NULL}, {2, PB_QUANTITY_MAP, "requests", NULL},
    {3, PB_MESSAGES, "claims", resource_claim}, END};
MESSAGE(volume_mount) = {
    {1, PB_TEXT, "name", NULL}, {2, PB_PLAIN_BOOL, "readOnly", NULL}, {3, PB_TEXT, "mountPath", NULL},
    {4, PB_TEXT, "subPath", NULL}, {5, PB_TEXT, "mountPropagation", NULL}, {6, PB_TEXT, "subPathExpr", NULL},
    END};
MESSAGE(exec_action) = {{1, PB_TEXTS, "command", NULL}, END};
MESSAGE(http_header) = {{1, PB_TEXT, "name", NULL}, {2, PB_TEXT, "value", NULL}, END};
MESSAGE(http_get) = {
    {1, PB_TEXT, "path", NULL}, {2, PB_INT_OR_STRING, "port", NULL}, {3, PB_TEXT, "host", NULL},
    {4, PB_TEXT, "scheme", NULL}, {5, PB_MESSAGES, "httpHeaders", http_header}, END};
MESSAGE(tcp_socket) = {{1, PB_INT_OR_STRING, "port", NULL}, {2, PB_TEXT, "host", NULL}, END};
MESSAGE(probe_handler) = {
    {1, PB_MESSAGE, "exec", exec_action}, {2, PB_MESSAGE, "httpGet", http_get},
    {3, PB_MESSAGE, "tcpSocket", tcp_socket}, END};
MESSAGE(probe) = {
    {1, PB_INLINE, "", probe_handler}, {2, PB_PLAIN_INT, "initialDelaySeconds", NULL},
    {3, PB_PLAIN_INT, "timeoutSeconds", NULL}, {4, PB_PLAIN_INT, "periodSeconds", NULL},
    {5, PB_PLAIN_INT, "successThreshold", NULL}, {6, PB_PLAIN_INT, "failureThreshold", NULL},
    {7, PB_INT, "terminationGracePeriodSeconds", NULL}, END};
MESSAGE(container) = {
    {1, PB_TEXT, "name", NULL}, {2, PB_TEXT, "image", NULL}, {3, PB_TEXTS, "command", NULL},
    {4, PB_TEXTS, "args", NULL}, {5, PB_TEXT, "workingDir", NULL}, {6, PB_MESSAGES, "ports", container_port},
    {7, PB_MESSAGES, "env", env_var}, {8, PB_MESSAGE, "resources", resources},
    {9, PB_MESSAGES, "volumeMounts", volume_mount}, {10, PB_MESSAGE, "livenessProbe", probe},
    {11, PB_MESSAGE, "readinessProbe", probe}, {13, PB_TEXT, "terminationMessagePath", NULL},
    {14, PB_TEXT, "imagePullPolicy", NULL}, {16, PB_PLAIN_BOOL, "stdin", NULL},
    {17, PB_PLAIN_BOOL, "stdinOnce", NULL}, {18, PB_PLAIN_BOOL, "tty", NULL},
    {19, PB_MESSAGES, "envFrom", env_from}, {20, PB_TEXT, "terminationMessagePolicy", NULL},
    {22, PB_MESSAGE, "startupProbe", probe}, {24, PB_TEXT, "restartPolicy", NULL}, END};
MESSAGE(key_to_path) = {
    {1, PB_TEXT, "key", NULL}, {2, PB_TEXT, "path", NULL}, {3, PB_INT, "mode", NULL}, END};
MESSAGE(host_path) = {{1, PB_TEXT, "path", NULL}, {2, PB_TEXT, "type", NULL}, END};
MESSAGE(empty_dir) = {{1, PB_TEXT, "medium", NULL}, {2, PB_QUANTITY, "sizeLimit", NULL}, END};
MESSAGE(secret_volume) = {
    {1, PB_TEXT, "secretName", NULL}, {2, PB_MESSAGES, "items", key_to_path},
    {3, PB_INT, "defaultMode", NULL}, {4, PB_BOOL, "optional", NULL}, END};
MESSAGE(claim_volume) = {{1, PB_TEXT, "claimName", NULL}, {2, PB_PLAIN_BOOL, "readOnly", NULL}, END};
MESSAGE(config_map_volume) = {
    {1, PB_INLINE, "", local_reference}, {2, PB_MESSAGES, "items", key_to_path},
    {3, PB_INT, "defaultMode", NULL}, {4, PB_BOOL, "optional", NULL}, END};
MESSAGE(volume_source) = {
    {1, PB_MESSAGE, "hostPath", host_path}, {2, PB_EMPTY, "emptyDir", empty_dir},
    {6, PB_MESSAGE, "secret", secret_volume}, {10, PB_MESSAGE, "persistentVolumeClaim", claim_volume},
    {19, PB_MESSAGE, "configMap", config_map_volume}, END};
MESSAGE(volume) = {{1, PB_TEXT, "name", NULL}, {2, PB_INLINE, "", volume_source}, END};
MESSAGE(toleration) = {
    {1, PB_TEXT, "key", NULL}, {2, PB_TEXT, "operator", NULL}, {3, PB_TEXT, "value", NULL},
    {4, PB_TEXT, "effect", NULL}, {5, PB_INT, "tolerationSeconds", NULL}, END};
MESSAGE(scheduling_gate) = {{1, PB_TEXT, "name", NULL}, END};
MESSAGE(host_alias) = {{1, PB_TEXT, "ip", NULL}, {2, PB_TEXTS, "hostnames", NULL}, END};
MESSAGE(pod_security) = {
    {2, PB_INT, "runAsUser", NULL}, {3, PB_BOOL, "runAsNonRoot", NULL}, {5, PB_INT, "fsGroup", NULL},
    {6, PB_INT, "runAsGroup", NULL}, END};
MESSAGE(pod_spec) = {
    {1, PB_MESSAGES, "volumes", volume}, {2, PB_MESSAGES, "containers", container},
    {3, PB_TEXT, "restartPolicy", NULL}, {4, PB_INT, "terminationGracePeriodSeconds", NULL},
    {5, PB_INT, "activeDeadlineSeconds", NULL}, {6, PB_TEXT, "dnsPolicy", NULL},
    {7, PB_MAP, "nodeSelector", NULL}, {8, PB_TEXT, "serviceAccountName", NULL},
    {9, PB_TEXT, "serviceAccount", NULL}, {10, PB_TEXT, "nodeName", NULL},
    {11, PB_PLAIN_BOOL, "hostNetwork", NULL}, {12, PB_PLAIN_BOOL, "hostPID", NULL},
    {13, PB_PLAIN_BOOL, "hostIPC", NULL}, {14, PB_MESSAGE, "securityContext", pod_security},
    {15, PB_MESSAGES, "imagePullSecrets", local_reference}, {16, PB_TEXT, "hostname", NULL},
    {17, PB_TEXT, "subdomain", NULL}, {19, PB_TEXT, "schedulerName", NULL},
    {20, PB_MESSAGES, "initContainers", container}, {21, PB_BOOL, "automountServiceAccountToken", NULL},
    {22, PB_MESSAGES, "tolerations", toleration}, {23, PB_MESSAGES, "hostAliases", host_alias},
    {24, PB_TEXT, "priorityClassName", NULL}, {25, PB_INT, "priority", NULL},
    {27, PB_BOOL, "shareProcessNamespace", NULL}, {29, PB_TEXT, "runtimeClassName", NULL},
    {30, PB_BOOL, "enableServiceLinks", NULL}, {31, PB_TEXT, "preemptionPolicy", NULL},
    {35, PB_BOOL, "setHostnameAsFQDN", NULL}, {38, PB_MESSAGES, "schedulingGates", scheduling_gate}, END};
MESSAGE(pod) = {{1, PB_MESSAGE, "metadata", object_meta}, {2, PB_MESSAGE, "spec", pod_spec}, END};
MESSAGE(pod_template) = {{1, PB_MESSAGE, "metadata", object_meta}, {2, PB_MESSAGE, "spec", pod_spec}, END};

/* --- authentication ---------------------------------------------------------------------------- */
MESSAGE(bound_reference) = {
    {1, PB_TEXT, "kind", NULL}, {2, PB_TEXT, "apiVersion", NULL}, {3, PB_TEXT, "name", NULL},
    {4, PB_TEXT, "uid", NULL}, END};
MESSAGE(token_request_spec) = {
    {1, PB_TEXTS, "audiences", NULL}, {3, PB_MESSAGE, "boundObjectRef", bound_reference},
    {4, PB_INT, "expirationSeconds", NULL}, END};
MESSAGE(token_request) = {
    {1, PB_MESSAGE, "metadata", object_meta}, {2, PB_MESSAGE, "spec", token_request_spec}, END};

/* --- batch, policy, scheduling, rbac ----------------------------------------------------------- */
MESSAGE(job_spec) = {
    {1, PB_INT, "parallelism", NULL}, {2, PB_INT, "completions", NULL},
    {3, PB_INT, "activeDeadlineSeconds", NULL}, {4, PB_MESSAGE, "selector", label_selector},
    {5, PB_BOOL, "manualSelector", NULL}, {6, PB_MESSAGE, "template", pod_template},
    {7, PB_INT, "backoffLimit", NULL}, {8, PB_INT, "ttlSecondsAfterFinished", NULL},
    {9, PB_TEXT, "completionMode", NULL}, {10, PB_BOOL, "suspend", NULL},
    {12, PB_INT, "backoffLimitPerIndex", NULL}, {13, PB_INT, "maxFailedIndexes", NULL},
    {14, PB_TEXT, "podReplacementPolicy", NULL}, {15, PB_TEXT, "managedBy", NULL}, END};
MESSAGE(job) = {{1, PB_MESSAGE, "metadata", object_meta}, {2, PB_MESSAGE, "spec", job_spec}, END};
MESSAGE(eviction) = {
    {1, PB_MESSAGE, "metadata", object_meta}, {2, PB_MESSAGE, "deleteOptions", delete_options}, END};
MESSAGE(disruption_spec) = {
    {1, PB_INT_OR_STRING, "minAvailable", NULL}, {2, PB_MESSAGE, "selector", label_selector},
    {3, PB_INT_OR_STRING, "maxUnavailable", NULL}, {4, PB_TEXT, "unhealthyPodEvictionPolicy", NULL}, END};
MESSAGE(disruption_budget) = {
    {1, PB_MESSAGE, "metadata", object_meta}, {2, PB_MESSAGE, "spec", disruption_spec}, END};
MESSAGE(priority_class) = {
    {1, PB_MESSAGE, "metadata", object_meta}, {2, PB_INT, "value", NULL},
    {3, PB_PLAIN_BOOL, "globalDefault", NULL}, {4, PB_TEXT, "description", NULL},
    {5, PB_TEXT, "preemptionPolicy", NULL}, END};
MESSAGE(policy_rule) = {
    {1, PB_TEXTS, "verbs", NULL}, {2, PB_TEXTS, "apiGroups", NULL}, {3, PB_TEXTS, "resources", NULL},
    {4, PB_TEXTS, "resourceNames", NULL}, {5, PB_TEXTS, "nonResourceURLs", NULL}, END};
MESSAGE(role) = {{1, PB_MESSAGE, "metadata", object_meta}, {2, PB_MESSAGES, "rules", policy_rule}, END};
MESSAGE(aggregation) = {{1, PB_MESSAGES, "clusterRoleSelectors", label_selector}, END};
MESSAGE(cluster_role) = {
    {1, PB_MESSAGE, "metadata", object_meta}, {2, PB_MESSAGES, "rules", policy_rule},
    {3, PB_MESSAGE, "aggregationRule", aggregation}, END};
MESSAGE(subject) = {
    {1, PB_TEXT, "kind", NULL}, {2, PB_TEXT, "apiGroup", NULL}, {3, PB_TEXT, "name", NULL},
    {4, PB_TEXT, "namespace", NULL}, END};
MESSAGE(role_reference) = {
    {1, PB_TEXT, "apiGroup", NULL}, {2, PB_TEXT, "kind", NULL}, {3, PB_TEXT, "name", NULL}, END};
MESSAGE(binding) = {
    {1, PB_MESSAGE, "metadata", object_meta}, {2, PB_MESSAGES, "subjects", subject},
    {3, PB_MESSAGE, "roleRef", role_reference}, END};
/* clang-format on */

const struct protobuf_field *protobuf_kind(const char *api_version, const char *kind)
{
    static const struct {
        const char *api_version, *kind;
        const struct protobuf_field *message;
    } known[] = {
        {"v1", "DeleteOptions", delete_options},
        {"v1", "Namespace", namespace_},
        {"v1", "ConfigMap", config_map},
        {"v1", "Secret", secret},
        {"v1", "Service", service},
        {"v1", "ServiceAccount", service_account},
        {"v1", "ResourceQuota", resource_quota},
        {"v1", "Pod", pod},
        {"batch/v1", "Job", job},
        {"policy/v1", "Eviction", eviction},
        {"authentication.k8s.io/v1", "TokenRequest", token_request},
        {"policy/v1", "PodDisruptionBudget", disruption_budget},
        {"scheduling.k8s.io/v1", "PriorityClass", priority_class},
        {"rbac.authorization.k8s.io/v1", "Role", role},
        {"rbac.authorization.k8s.io/v1", "ClusterRole", cluster_role},
        {"rbac.authorization.k8s.io/v1", "RoleBinding", binding},
        {"rbac.authorization.k8s.io/v1", "ClusterRoleBinding", binding},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(api_version, known[i].api_version) == 0 && strcmp(kind, known[i].kind) == 0)
            return known[i].message;
    return NULL;
}
