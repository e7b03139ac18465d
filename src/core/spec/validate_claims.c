/* validate_claims.c - rules of volumes: every mount names a volume, and claim policies are complete. */
#include "core/spec/validate.h"

#include <stdio.h>

static const struct doc *pod_spec_of(const struct doc *rjob)
{
    return doc_path(rjob, "template", "spec", "template", "spec", NULL);
}

static bool has_named(const struct doc *list, struct str name)
{
    for (size_t i = 0; i < doc_len(list); i++) {
        if (str_equal(doc_str(doc_get(doc_at(list, i), "name"), STR("")), name))
            return true;
    }
    return false;
}

static struct str template_name(const struct doc *claim)
{
    return doc_str(doc_path(claim, "metadata", "name", NULL), STR(""));
}

/* Returns whether a claim template before (policy, index), in any policy, has this name. */
static bool claimed_before(const struct doc *policies, struct str name, size_t policy, size_t index)
{
    CHECK(policy <= doc_len(policies));
    for (size_t p = 0; p <= policy && p < doc_len(policies); p++) {
        const struct doc *templates = doc_get(doc_at(policies, p), "templates");
        for (size_t t = 0; t < doc_len(templates) && (p < policy || t < index); t++) {
            if (str_equal(template_name(doc_at(templates, t)), name))
                return true;
        }
    }
    return false;
}

static bool mounts_in(const struct doc *containers, struct str name)
{
    for (size_t i = 0; i < doc_len(containers); i++) {
        if (has_named(doc_get(doc_at(containers, i), "volumeMounts"), name))
            return true;
    }
    return false;
}

static bool is_mounted(const struct doc *rjobs, struct str name)
{
    for (size_t i = 0; i < doc_len(rjobs); i++) {
        const struct doc *pod = pod_spec_of(doc_at(rjobs, i));
        if (mounts_in(doc_get(pod, "containers"), name) || mounts_in(doc_get(pod, "initContainers"), name))
            return true;
    }
    return false;
}

static void validate_claim_use(const struct doc *rjobs, const struct doc *claim, struct str name,
                               const struct field_path *path, struct field_errors *errors)
{
    const struct doc *node = doc_path(claim, "metadata", "name", NULL);
    if (!is_mounted(rjobs, name))
        path_invalid(errors, path, node, name,
                     "at least one container or initContainer must mount a volume of this name");
    for (size_t i = 0; i < doc_len(rjobs); i++) {
        if (has_named(doc_get(pod_spec_of(doc_at(rjobs, i)), "volumes"), name)) {
            char why[96];
            snprintf(why, sizeof why, "the pod template of replicatedJobs[%zu] defines a volume of this name",
                     i);
            path_invalid(errors, path, node, name, why);
        }
    }
}

static void validate_claim(const struct doc *spec_node, const struct doc *claim, struct str jobset,
                           bool repeated, const struct field_path *path, struct field_errors *errors)
{
    const struct doc *node = doc_path(claim, "metadata", "name", NULL);
    const struct doc *space = doc_path(claim, "metadata", "namespace", NULL);
    struct str name = template_name(claim);
    const struct field_path *meta = AT(path, "metadata"), *here = AT(meta, "name");
    if (doc_str(space, STR("")).len > 0)
        path_forbidden(errors, AT(meta, "namespace"), space, "must be empty");
    if (name.len == 0) {
        path_required(errors, here, claim, NULL);
        return;
    }
    if (repeated)
        path_duplicate(errors, here, node, name);
    if (!name_is_dns1123_subdomain(name))
        path_invalid(errors, here, node, name, WHY_DNS1123_SUBDOMAIN);
    if (name.len + 1 + jobset.len > 63)
        path_invalid(
            errors, here, node, name,
            "the name of the PersistentVolumeClaim, \"<template>-<jobset>\", must be no more than 63 bytes");
    validate_claim_use(doc_get(spec_node, "replicatedJobs"), claim, name, here, errors);
}

static void validate_mounts(const struct doc *containers, const struct doc *volumes,
                            const struct doc *policies, const struct field_path *path,
                            struct field_errors *errors)
{
    CHECK(typed_as(containers, DOC_ARRAY));
    for (size_t i = 0; i < doc_len(containers); i++) {
        const struct doc *mounts = doc_get(doc_at(containers, i), "volumeMounts");
        for (size_t m = 0; m < doc_len(mounts); m++) {
            const struct doc *node = doc_get(doc_at(mounts, m), "name");
            struct str name = doc_str(node, STR(""));
            if (has_named(volumes, name) || claimed_before(policies, name, doc_len(policies), 0))
                continue;
            struct str quoted = path_quote(errors->arena, name);
            path_error(errors, AT(AT_INDEX(AT(AT_INDEX(path, i), "volumeMounts"), m), "name"),
                       "FieldValueNotFound", node, "Not found: " STR_FORMAT, STR_ARG(quoted));
        }
    }
}

bool claim_specs_equal(const struct doc *existing, const struct doc *wanted)
{
    for (const struct schema_field *field = schema_claim_spec.fields; field->name; field++) {
        const struct doc *value = doc_get(wanted, field->name);
        if (value && !schema_equal(field, doc_get(existing, field->name), value))
            return false;
    }
    return true;
}

void validate_claims(const struct doc *spec_node, struct str jobset, const struct field_path *path,
                     struct field_errors *errors)
{
    CHECK(errors && errors->arena);
    const struct doc *policies = doc_get(spec_node, "volumeClaimPolicies");
    const struct doc *rjobs = doc_get(spec_node, "replicatedJobs");
    for (size_t p = 0; p < doc_len(policies); p++) {
        const struct doc *templates = doc_get(doc_at(policies, p), "templates");
        const struct field_path *list = AT(AT_INDEX(AT(path, "volumeClaimPolicies"), p), "templates");
        for (size_t t = 0; t < doc_len(templates); t++) {
            const struct doc *claim = doc_at(templates, t);
            bool repeated = claimed_before(policies, template_name(claim), p, t);
            validate_claim(spec_node, claim, jobset, repeated, AT_INDEX(list, t), errors);
        }
    }
    for (size_t i = 0; i < doc_len(rjobs); i++) {
        const struct doc *pod = pod_spec_of(doc_at(rjobs, i)), *volumes = doc_get(pod, "volumes");
        const struct field_path *here =
            AT(AT(AT(AT(AT_INDEX(AT(path, "replicatedJobs"), i), "template"), "spec"), "template"), "spec");
        validate_mounts(doc_get(pod, "containers"), volumes, policies, AT(here, "containers"), errors);
        validate_mounts(doc_get(pod, "initContainers"), volumes, policies, AT(here, "initContainers"),
                        errors);
    }
}

void validate_pod_mounts(const struct doc *pod_spec, const struct field_path *path,
                         struct field_errors *errors)
{
    const struct doc *volumes = doc_get(pod_spec, "volumes");
    validate_mounts(doc_get(pod_spec, "containers"), volumes, NULL, AT(path, "containers"), errors);
    validate_mounts(doc_get(pod_spec, "initContainers"), volumes, NULL, AT(path, "initContainers"), errors);
}
