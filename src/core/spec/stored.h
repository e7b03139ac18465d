/* stored.h - stored kinds: their schema, and the rules of each. Private to spec. */
#ifndef PHX_CORE_SPEC_STORED_H
#define PHX_CORE_SPEC_STORED_H

#include "core/kinds/kinds.h"
#include "core/spec/schema.h"

struct stored_kind {
    const struct schema *schema; /* NULL: the kind is not stored, or the version is not served */
    enum object_kind id;         /* of Events: OBJECT_EVENT in v1, OBJECT_USER_EVENT in events.k8s.io/v1 */
};
struct stored_kind stored_kind_of(const struct doc *object); /* schemas.c: by apiVersion and kind */

/* validate_core.c, validate_event.c, ...: check the rules beyond types, for an object whose types are valid.
 * The functions with an `id` check nothing if the kind is not theirs. */
void validate_core_kind(const struct doc *object, enum object_kind id, struct field_errors *errors);
void validate_event_kind(const struct doc *object, enum object_kind id, struct field_errors *errors);
void validate_fault_table(const struct doc *object, struct field_errors *errors);
void validate_repair(const struct doc *object, struct field_errors *errors);
void validate_maintenance(const struct doc *object, struct field_errors *errors);
void validate_kueue_kind(const struct doc *object, enum object_kind id, struct field_errors *errors);
void validate_rbac_kind(const struct doc *object, enum object_kind id, struct field_errors *errors);

/* validate_event.c: checks a change of an Event that is written as events.k8s.io/v1. */
void validate_event_update(const struct schema *schema, const struct doc *old, const struct doc *changed,
                           struct field_errors *errors);

#endif
