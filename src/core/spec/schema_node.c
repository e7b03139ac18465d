/* schema_node.c - Nodes as they are shown, for `explain` and for merges. Of a user's write, labels,
 * annotations, taints and `unschedulable` are kept (validate_node.c).
 *
 * Source: the OpenAPI definitions of v1. */
#include "core/spec/schema_table.h"

/* clang-format off */
static const struct schema taint = {"Taint", TABLE(
    STRING("key", REQUIRED), STRING("value"),
    STRING("effect", REQUIRED, ENUM("NoSchedule,PreferNoSchedule,NoExecute")), STRING("timeAdded"))};
static const struct schema node_spec = {"NodeSpec", TABLE(
    BOOLEAN("unschedulable"), LIST("taints", taint))};
static const struct schema node_condition = {"NodeCondition", TABLE(
    STRING("type", REQUIRED), STRING("status", REQUIRED), STRING("reason"), STRING("message"),
    STRING("lastTransitionTime"))};
static const struct schema node_address = {"NodeAddress", TABLE(
    STRING("type", REQUIRED), STRING("address", REQUIRED))};
static const struct schema node_info = {"NodeSystemInfo", TABLE(
    STRING("kubeletVersion"), STRING("kubeProxyVersion"), STRING("containerRuntimeVersion"),
    STRING("operatingSystem"), STRING("osImage"), STRING("kernelVersion"), STRING("architecture"),
    STRING("machineID"), STRING("systemUUID"), STRING("bootID"))};
static const struct schema node_phalanx = {"NodePhalanx", TABLE(
    STRING("state"), STRING("pod"), STRING("block"), BOOLEAN("spare"), INT32("chips"), INT32("freeChips"),
    INT32("tasks"))};
static const struct schema node_status = {"NodeStatus", TABLE(
    QUANTITY_MAP("capacity"), QUANTITY_MAP("allocatable"), LIST("conditions", node_condition),
    LIST("addresses", node_address), OBJECT("nodeInfo", node_info), OBJECT("phalanx", node_phalanx))};
const struct schema schema_node = {"Node", TABLE(
    STRING("apiVersion"), STRING("kind"), OBJECT("metadata", schema_object_meta),
    OBJECT("spec", node_spec), OBJECT("status", node_status))};
/* clang-format on */
