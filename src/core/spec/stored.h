/* stored.h - shared by the files about stored kinds. Private to spec. */
#ifndef PHX_CORE_SPEC_STORED_H
#define PHX_CORE_SPEC_STORED_H

#include "core/spec/schema.h"

enum stored_id {
    STORED_NAMESPACE,
    STORED_CONFIG_MAP,
    STORED_SECRET,
    STORED_SERVICE,
    STORED_SERVICE_ACCOUNT,
    STORED_CLAIM,
    STORED_RESOURCE_QUOTA,
    STORED_PRIORITY_CLASS,
    STORED_CLUSTER_QUEUE,
    STORED_LOCAL_QUEUE,
    STORED_RESOURCE_FLAVOR,
    STORED_COHORT,
    STORED_WORKLOAD_PRIORITY_CLASS,
    STORED_TOPOLOGY,
    STORED_ADMISSION_CHECK,
    STORED_ROLE,
    STORED_CLUSTER_ROLE,
    STORED_ROLE_BINDING,
    STORED_CLUSTER_ROLE_BINDING,
    STORED_EVENT,
    STORED_FAULT_TABLE,
    STORED_NEW_EVENT, /* events.k8s.io/v1 */
    STORED_DISRUPTION_BUDGET,
    STORED_REPAIR,
    STORED_MAINTENANCE
};
struct stored_kind {
    const char *api_version, *kind;
    const struct schema *schema;
    enum stored_id id;
};
/* NULL: the kind is not stored, or the version is not served. */
const struct stored_kind *stored_kind_of(const struct doc *object);

/* validate_core.c, validate_event.c, ...: rules beyond types, for an object whose types are valid. */
void validate_core_kind(const struct doc *object, enum stored_id id, struct field_errors *errors);
void validate_event_kind(const struct doc *object, enum stored_id id, struct field_errors *errors);
void validate_fault_table(const struct doc *object, struct field_errors *errors);
void validate_repair(const struct doc *object, struct field_errors *errors);
void validate_maintenance(const struct doc *object, struct field_errors *errors);
void validate_kueue_kind(const struct doc *object, enum stored_id id, struct field_errors *errors);
void validate_rbac_kind(const struct doc *object, enum stored_id id, struct field_errors *errors);

/* validate_event.c: rules for changes of an Event that is written as events.k8s.io/v1. */
void validate_event_update(const struct schema *schema, const struct doc *old, const struct doc *changed,
                           struct field_errors *errors);

#endif
