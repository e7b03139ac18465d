/* default.c - the defaults of the API server and of JobSet's webhook (kubernetes-sigs/jobset,
 * pkg/webhooks).
 *
 * Upstream runs the webhook's part on create only. Here every write is defaulted completely, because a
 * client that re-applies its own file sends lists without the defaults that it was given back.
 */
#include "base/check.h"
#include "core/spec/schema.h"

static bool is_unset(const struct doc *node)
{
    return !node || node->kind == DOC_NULL || (node->kind == DOC_STRING && node->text.len == 0);
}

static void set_text(struct arena *arena, struct doc *object, const char *key, struct str value)
{
    CHECK(object->kind == DOC_OBJECT && value.len > 0);
    if (is_unset(doc_get(object, key)))
        doc_set(arena, object, str_from(key), doc_new_str(arena, value));
}

static void set_bool(struct arena *arena, struct doc *object, const char *key, bool value)
{
    CHECK(object->kind == DOC_OBJECT);
    if (is_unset(doc_get(object, key)))
        doc_set(arena, object, str_from(key), doc_new_bool(arena, value));
}

static bool is_object(const struct doc *node)
{
    return node && node->kind == DOC_OBJECT;
}

/* Returns the object member `key`, and makes it if it is absent. Returns NULL if it has another type. */
static struct doc *need_object(struct arena *arena, struct doc *object, const char *key)
{
    struct doc *node = doc_get(object, key);
    if (!node || node->kind == DOC_NULL)
        return doc_need_object(arena, object, key);
    return node->kind == DOC_OBJECT ? node : NULL;
}

/* A missing template, or template.spec.template.spec, is not made: validation reports it as required. */
static void default_replicated_job(struct arena *arena, struct doc *rjob)
{
    struct doc *job = doc_path(rjob, "template", "spec", NULL);
    if (!is_object(job))
        return;
    set_text(arena, job, "completionMode", STR("Indexed"));
    struct doc *pod = doc_path(job, "template", "spec", NULL);
    if (is_object(pod))
        set_text(arena, pod, "restartPolicy", STR("OnFailure"));
}

static void default_failure_rules(struct arena *arena, struct doc *policy)
{
    struct doc *rules = doc_get(policy, "rules");
    for (size_t i = 0; rules && rules->kind == DOC_ARRAY && i < rules->array.len; i++) {
        if (is_object(rules->array.items[i]))
            set_text(arena, rules->array.items[i], "name", arena_printf(arena, "failurePolicyRule%zu", i));
    }
}

/* Makes an absent policy with this member. A policy that is present must set the member itself. */
static void default_policy(struct arena *arena, struct doc *spec, const char *key, const char *member,
                           struct str value)
{
    CHECK(is_object(spec));
    struct doc *policy = doc_get(spec, key);
    if (policy && policy->kind != DOC_NULL)
        return;
    policy = doc_need_object(arena, spec, key);
    CHECK(is_object(policy)); /* it was absent or null, so it has just been made */
    doc_set(arena, policy, str_from(member), doc_new_str(arena, value));
}

static void default_claim_policies(struct arena *arena, struct doc *policies)
{
    for (size_t i = 0; policies && policies->kind == DOC_ARRAY && i < policies->array.len; i++) {
        struct doc *policy = policies->array.items[i];
        if (is_object(policy))
            default_policy(arena, policy, "retentionPolicy", "whenDeleted", STR("Delete"));
    }
}

void jobset_default(struct arena *arena, struct doc *object)
{
    CHECK(arena);
    if (!is_object(object))
        return;
    struct doc *spec = need_object(arena, object, "spec");
    if (!spec)
        return;
    CHECK(doc_get(object, "spec") == spec);
    schema_default(&schema_jobset, arena, object);
    struct doc *rjobs = doc_get(spec, "replicatedJobs");
    for (size_t i = 0; rjobs && rjobs->kind == DOC_ARRAY && i < rjobs->array.len; i++)
        default_replicated_job(arena, rjobs->array.items[i]);
    struct doc *network = need_object(arena, spec, "network");
    if (network) {
        set_bool(arena, network, "enableDNSHostnames", true);
        set_bool(arena, network, "publishNotReadyAddresses", true);
    }
    default_policy(arena, spec, "successPolicy", "operator", STR("All"));
    default_policy(arena, spec, "startupPolicy", "startupPolicyOrder", STR("AnyOrder"));
    default_failure_rules(arena, doc_get(spec, "failurePolicy"));
    default_claim_policies(arena, doc_get(spec, "volumeClaimPolicies"));
}
