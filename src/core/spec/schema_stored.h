/* schema_stored.h - the field trees of stored kinds (object/object.h), by file. Included by schema_*.c and
 * schemas.c. */
#ifndef PHX_CORE_SPEC_SCHEMA_STORED_H
#define PHX_CORE_SPEC_SCHEMA_STORED_H

#include "core/spec/schema_table.h"

/* The rows that every whole object begins with. */
#define WHOLE STRING("apiVersion"), STRING("kind"), OBJECT("metadata", schema_object_meta)

/* schema_core.c */
extern const struct schema schema_namespace, schema_config_map, schema_secret, schema_service,
    schema_service_account, schema_claim, schema_resource_quota, schema_priority_class, schema_event,
    schema_new_event, schema_disruption_budget;
/* schema_kueue.c; *_v1beta1: where that version differs */
extern const struct schema schema_cluster_queue, schema_cluster_queue_v1beta1, schema_local_queue,
    schema_resource_flavor, schema_cohort, schema_workload_priority_class, schema_topology,
    schema_admission_check, schema_provisioning_config, schema_multikueue_config, schema_multikueue_cluster,
    schema_multikueue_cluster_v1beta1;
/* schema_health.c */
extern const struct schema schema_fault_table, schema_fault, schema_repair, schema_maintenance;
/* schema_fabric.c */
extern const struct schema schema_cube, schema_switch, schema_slice, schema_fabric_session;
/* schema_rbac.c */
extern const struct schema schema_role, schema_role_binding, schema_cluster_role, schema_cluster_role_binding;

#endif
