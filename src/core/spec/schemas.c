/* schemas.c - the schema of each row of core/kinds/kinds.h, keyed by its id. */
#include "core/spec/schema_stored.h"
#include "core/spec/stored.h"

/* clang-format off */
/* The entries of one of Kueue's kinds in both versions. `old` is the schema of v1beta1, which may differ. */
#define BOTH(id, schema, old) [RESOURCE_##id] = &(schema), [RESOURCE_OLD_##id] = &(old)
static const struct schema *const schemas[RESOURCES] = {
    [RESOURCE_JOBSETS] = &schema_jobset,
    [RESOURCE_JOBS] = &schema_job,
    [RESOURCE_PODS] = &schema_pod,
    [RESOURCE_NODES] = &schema_node,
    [RESOURCE_EVENTS] = &schema_event,
    [RESOURCE_NEW_EVENTS] = &schema_new_event,
    [RESOURCE_NAMESPACES] = &schema_namespace,
    [RESOURCE_CONFIG_MAPS] = &schema_config_map,
    [RESOURCE_SECRETS] = &schema_secret,
    [RESOURCE_SERVICES] = &schema_service,
    [RESOURCE_SERVICE_ACCOUNTS] = &schema_service_account,
    [RESOURCE_CLAIMS] = &schema_claim,
    [RESOURCE_RESOURCE_QUOTAS] = &schema_resource_quota,
    [RESOURCE_PRIORITY_CLASSES] = &schema_priority_class,
    BOTH(CLUSTER_QUEUES, schema_cluster_queue, schema_cluster_queue_v1beta1),
    BOTH(LOCAL_QUEUES, schema_local_queue, schema_local_queue),
    BOTH(RESOURCE_FLAVORS, schema_resource_flavor, schema_resource_flavor),
    BOTH(COHORTS, schema_cohort, schema_cohort),
    BOTH(WORKLOAD_PRIORITY_CLASSES, schema_workload_priority_class, schema_workload_priority_class),
    BOTH(TOPOLOGIES, schema_topology, schema_topology),
    BOTH(ADMISSION_CHECKS, schema_admission_check, schema_admission_check),
    BOTH(PROVISIONING_CONFIGS, schema_provisioning_config, schema_provisioning_config),
    BOTH(MULTIKUEUE_CONFIGS, schema_multikueue_config, schema_multikueue_config),
    BOTH(MULTIKUEUE_CLUSTERS, schema_multikueue_cluster, schema_multikueue_cluster_v1beta1),
    BOTH(WORKLOADS, schema_workload, schema_workload_v1beta1),
    [RESOURCE_ROLES] = &schema_role,
    [RESOURCE_ROLE_BINDINGS] = &schema_role_binding,
    [RESOURCE_CLUSTER_ROLES] = &schema_cluster_role,
    [RESOURCE_CLUSTER_ROLE_BINDINGS] = &schema_cluster_role_binding,
    [RESOURCE_FAULTS] = &schema_fault,
    [RESOURCE_FAULT_TABLES] = &schema_fault_table,
    [RESOURCE_REPAIRS] = &schema_repair,
    [RESOURCE_MAINTENANCES] = &schema_maintenance,
    [RESOURCE_CUBES] = &schema_cube,
    [RESOURCE_SWITCHES] = &schema_switch,
    [RESOURCE_SLICES] = &schema_slice,
    [RESOURCE_FABRIC_SESSIONS] = &schema_fabric_session,
    [RESOURCE_DISRUPTION_BUDGETS] = &schema_disruption_budget,
};
/* clang-format on */

static const struct resource *row_of(const struct doc *object)
{
    return resource_served(doc_str(doc_get(object, "apiVersion"), STR("")),
                           doc_str(doc_get(object, "kind"), STR("")));
}

const struct schema *schema_of_row(enum resource_id id)
{
    CHECK((unsigned)id < RESOURCES);
    return schemas[id];
}

const struct schema *schema_of(const struct doc *object)
{
    const struct resource *row = row_of(object);
    CHECK(!row || (unsigned)row->id < RESOURCES);
    return row ? schemas[row->id] : NULL;
}

struct stored_kind stored_kind_of(const struct doc *object)
{
    const struct resource *row = row_of(object);
    if (!row || row->rules != RULES_STORED)
        return (struct stored_kind){0};
    CHECK(schemas[row->id]);
    return (struct stored_kind){schemas[row->id], row->named};
}
