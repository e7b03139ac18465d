/* validate.h - the parts of validation. Private to spec.
 *
 * All functions expect documents whose types are valid, and add broken rules to `errors`. `path` is the path
 * of the document that is passed.
 */
#ifndef PHX_CORE_SPEC_VALIDATE_H
#define PHX_CORE_SPEC_VALIDATE_H

#include "core/spec/path.h"
#include "core/spec/schema.h"

/* Returns whether the field has this type, or is absent or null, as the check of types guarantees. */
static inline bool typed_as(const struct doc *node, enum doc_kind kind)
{
    return !node || node->kind == DOC_NULL || node->kind == kind;
}

/* Kubernetes' own texts (apimachinery, util/validation). */
#define WHY_NOT_NEGATIVE "must be greater than or equal to 0"
#define WHY_DNS1035                                                                                          \
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "  \
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "      \
    "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
#define WHY_DNS1123_LABEL                                                                                    \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "  \
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "   \
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
#define WHY_DNS1123_SUBDOMAIN                                                                                \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "    \
    "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "   \
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define WHY_LABEL_KEY                                                                                        \
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "    \
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "     \
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. "       \
    "'example.com/MyName')"
#define WHY_LABEL_VALUE                                                                                      \
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "     \
    "must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "       \
    "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
#define WHY_63_BYTES "must be no more than 63 bytes"

/* Checks the labels and annotations of an object or a template. */
void validate_meta(const struct doc *meta, const struct field_path *path, struct field_errors *errors);
/* Checks the annotations phalanx.dev/sub-health, step-pattern, work-pattern, checkpoint-folder,
 * checkpoint-keep and checkpoint-interval of a JobSet, or of a Job or Pod without one. */
void validate_pace(const struct doc *meta, const struct field_path *path, struct field_errors *errors);
/* Checks the annotations phalanx.dev/spares and spare-kind of a workload or a template. */
void validate_spares(const struct doc *meta, const struct field_path *path, struct field_errors *errors);
/* Checks the annotations of the recovery ladder and of spares, of a workload or a Pod template. */
void validate_recovery(const struct doc *meta, const struct field_path *path, struct field_errors *errors);
/* Checks that the annotations phalanx.dev/replica-size and min-replicas of a workload or a Pod template are
 * numbers. workload_validate_replicas compares them with the world. */
void validate_replicas(const struct doc *meta, const struct field_path *path, struct field_errors *errors);
/* Checks a map of label keys to label values, such as a nodeSelector. */
void validate_labels(const struct doc *map, const struct field_path *path, struct field_errors *errors);
/* Checks a metav1.LabelSelector. */
void validate_selector(const struct doc *selector, const struct field_path *path,
                       struct field_errors *errors);
/* Reports the integer at `node` if it is below `min`. */
void validate_min(const struct doc *node, int64_t min, const struct field_path *path,
                  struct field_errors *errors);

/* Checks the Job template of a replicated job. */
void validate_job(const struct doc *job_template, const struct job_spec *job, const struct field_path *path,
                  struct field_errors *errors);
/* Checks the metadata of a workload that is no JobSet: the name is a DNS subdomain; labels, annotations. */
void validate_own_meta(const struct doc *object, struct field_errors *errors);
/* Checks a Job's successPolicy. */
void validate_success_policy(const struct doc *spec, const struct job_spec *job,
                             const struct field_path *path, struct field_errors *errors);
/* Checks the other fields of a Job's spec. */
void validate_job_spec(const struct doc *spec, const struct job_spec *job, const struct field_path *path,
                       struct field_errors *errors);
void validate_managed_by(const struct doc *node, const struct field_path *path, struct field_errors *errors);
/* Checks that each mount of a container names a volume of the pod. */
void validate_pod_mounts(const struct doc *pod_spec, const struct field_path *path,
                         struct field_errors *errors);
/* podsets.c: checks a Workload's spec. */
void podsets_validate(const struct doc *object, struct field_errors *errors);
/* Check a change of a Job or Pod without a JobSet. `started`: the Job has run, and its template is fixed. */
void validate_job_update(const struct doc *old, const struct doc *changed, bool started,
                         struct field_errors *errors);
void validate_pod_update(const struct doc *old, const struct doc *changed, struct field_errors *errors);
/* Reports `field`, a member of the objects `old` and `changed`, if its meaning differs. `path` is the path of
 * the objects. */
void validate_unchanged(const struct schema *schema, const char *field, const struct doc *old,
                        const struct doc *changed, const struct field_path *path,
                        struct field_errors *errors);
/* security.c: check the securityContext of a container and of a pod, and the annotation UID_RANGE_KEY of a
 * Namespace. */
void validate_container_security(const struct doc *container, const struct field_path *path,
                                 struct field_errors *errors);
void validate_pod_security(const struct doc *spec, const struct field_path *path,
                           struct field_errors *errors);
void validate_uid_range(const struct doc *namespace_, struct field_errors *errors);
/* Checks the pod template of a Job. */
void validate_pod(const struct doc *pod_template, const struct field_path *path, struct field_errors *errors);
/* Checks success, failure and startup policies, and dependsOn. */
void validate_policies(const struct doc *spec_node, const struct jobset_spec *spec,
                       const struct field_path *path, struct field_errors *errors);
/* schema_scheduling.c: checks the types of spec.scheduling. Returns false if it reports an error. */
bool schema_check_scheduling(const struct doc *object, struct field_errors *errors);
/* Checks spec.volumeClaimPolicies, and that each mount of a pod template names a volume or a claim. `jobset`
 * is the JobSet's name. */
void validate_claims(const struct doc *spec_node, struct str jobset, const struct field_path *path,
                     struct field_errors *errors);

#endif
