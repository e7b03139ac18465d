/* schema_rbac.c - rbac.authorization.k8s.io/v1: Role, RoleBinding, ClusterRole, ClusterRoleBinding. */
#include "core/spec/schema_stored.h"

/* clang-format off */
static const struct schema policy_rule = {"PolicyRule", TABLE(
    STRINGS("verbs", REQUIRED), STRINGS("apiGroups"), STRINGS("resources"), STRINGS("resourceNames"),
    STRINGS("nonResourceURLs"))};
static const struct schema aggregation_rule = {"AggregationRule", TABLE(
    LIST("clusterRoleSelectors", schema_label_selector))};
static const struct schema subject = {"Subject", TABLE(
    STRING("kind", REQUIRED), STRING("apiGroup"), STRING("name", REQUIRED), STRING("namespace"))};
static const struct schema role_ref = {"RoleRef", TABLE(
    STRING("apiGroup", DEFAULT("rbac.authorization.k8s.io")), STRING("kind", REQUIRED),
    STRING("name", REQUIRED))};

const struct schema schema_role = {"Role", TABLE(WHOLE, LIST("rules", policy_rule))};
const struct schema schema_cluster_role = {"ClusterRole", TABLE(
    WHOLE, LIST("rules", policy_rule), OBJECT("aggregationRule", aggregation_rule))};
const struct schema schema_role_binding = {"RoleBinding", TABLE(
    WHOLE, LIST("subjects", subject), OBJECT("roleRef", role_ref, REQUIRED))};
const struct schema schema_cluster_role_binding = {"ClusterRoleBinding", TABLE(
    WHOLE, LIST("subjects", subject), OBJECT("roleRef", role_ref, REQUIRED))};
/* clang-format on */
