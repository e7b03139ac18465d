/* owned_objects.c - the stored objects that a JobSet creates: the headless Service of its network, and the
 * PersistentVolumeClaims of its volumeClaimPolicies.
 *
 * These objects are created last in a step, so that the uids of Jobs and tasks do not depend on them. The
 * Service is made again if it is deleted; a claim is made once. Both are deleted with the JobSet by their
 * ownerReferences (core/react/collect.c). Claims with the policy Retain have none, and stay.
 */
#include "core/life/internal.h"
#include "core/object/object.h"
#include "core/spec/spec.h"

enum { SERVICE_BYTES = 2432 }; /* approximate size of a Service's document in memory */

static void set_text(struct arena *arena, struct doc *object, const char *key, struct str value)
{
    doc_set(arena, object, str_from(key), doc_new_str(arena, value));
}

static void add_owner(struct arena *arena, struct doc *metadata, const struct jobset *jobset)
{
    char uid[UID_TEXT_MAX];
    uid_text(jobset->uid, uid);
    struct doc *list = doc_new(arena, DOC_ARRAY), *owner = doc_new(arena, DOC_OBJECT);
    doc_add(arena, owner, STR("apiVersion"), doc_new_literal(arena, STR("jobset.x-k8s.io/v1alpha2")));
    doc_add(arena, owner, STR("kind"), doc_new_literal(arena, STR("JobSet")));
    doc_add(arena, owner, STR("name"), doc_new_str(arena, jobset->name));
    doc_add(arena, owner, STR("uid"), doc_new_str(arena, str_from(uid)));
    doc_add(arena, owner, STR("controller"), doc_new_bool(arena, true));
    doc_add(arena, owner, STR("blockOwnerDeletion"), doc_new_bool(arena, true));
    doc_push(arena, list, owner);
    doc_add(arena, metadata, STR("ownerReferences"), list);
}

static void put(struct step *step, struct jobset *jobset, enum object_kind kind, const struct doc *document,
                const char *failed)
{
    struct error error = {0};
    if (object_put(step, kind, document, NULL, &error) < 0)
        step_note(step, true, failed, ref_jobset(jobset), "%s", error.text);
}

static struct str service_name(const struct jobset *jobset)
{
    return jobset->spec.subdomain.len ? jobset->spec.subdomain : jobset->name;
}

/* Adds a member whose key and text are literals. */
static void add_literal(struct arena *arena, struct doc *object, struct str key, struct str value)
{
    doc_add(arena, object, key, doc_new_literal(arena, value));
}

static struct doc *add_object(struct arena *arena, struct doc *object, struct str key)
{
    struct doc *made = doc_new(arena, DOC_OBJECT);
    doc_add(arena, object, key, made);
    return made;
}

/* Makes the Service in the form of a stored write: with the defaults of its schema, in their order. */
static struct doc *service_document(struct arena *arena, const struct jobset *jobset, struct str name)
{
    struct doc *service = doc_new(arena, DOC_OBJECT);
    add_literal(arena, service, STR("apiVersion"), STR("v1"));
    add_literal(arena, service, STR("kind"), STR("Service"));
    struct doc *metadata = add_object(arena, service, STR("metadata"));
    doc_add(arena, metadata, STR("name"), doc_new_str(arena, name));
    doc_add(arena, metadata, STR("namespace"), doc_new_str(arena, jobset->namespace_));
    add_owner(arena, metadata, jobset);
    struct doc *spec = add_object(arena, service, STR("spec"));
    add_literal(arena, spec, STR("clusterIP"), STR("None"));
    doc_add(arena, spec, STR("publishNotReadyAddresses"),
            doc_new_bool(arena, jobset->spec.publish_not_ready));
    struct doc *selector = add_object(arena, spec, STR("selector"));
    doc_add(arena, selector, STR("jobset.sigs.k8s.io/jobset-name"), doc_new_str(arena, jobset->name));
    add_literal(arena, spec, STR("type"), STR("ClusterIP"));
    add_literal(arena, spec, STR("sessionAffinity"), STR("None"));
    add_literal(arena, spec, STR("internalTrafficPolicy"), STR("Cluster"));
    return service;
}

/* Creates the Service. Because every JobSet has one, and its document is known to be valid, it is not checked
 * again. */
static void make_service(struct step *step, struct jobset *jobset)
{
    struct str name = service_name(jobset);
    if (!jobset->spec.dns_hostnames || object_find(step->objects, OBJECT_SERVICE, jobset->namespace_, name))
        return;
    struct arena arena ARENA_CLEANUP = {0};
    arena_reserve(&arena, SERVICE_BYTES);
    struct doc *service = service_document(&arena, jobset, name);
    if (!name_is_dns1035_label(name) || !object_put_checked(step, OBJECT_SERVICE, &arena, service))
        put(step, jobset, OBJECT_SERVICE, service, "HeadlessServiceCreationFailed");
}

struct str jobset_claim_name(struct arena *arena, struct str jobset, struct str template)
{
    return arena_printf(arena, STR_FORMAT "-" STR_FORMAT, STR_ARG(template), STR_ARG(jobset));
}

static void make_claim(struct step *step, struct jobset *jobset, const struct doc *template, bool owned)
{
    struct arena arena ARENA_CLEANUP = {0};
    const struct doc *given = doc_get(template, "metadata");
    struct str name = jobset_claim_name(&arena, jobset->name, doc_str(doc_get(given, "name"), STR("")));
    if (object_find(step->objects, OBJECT_CLAIM, jobset->namespace_, name))
        return;
    struct doc *claim = doc_new(&arena, DOC_OBJECT);
    set_text(&arena, claim, "apiVersion", STR("v1"));
    set_text(&arena, claim, "kind", STR("PersistentVolumeClaim"));
    struct doc *metadata = doc_need_object(&arena, claim, "metadata");
    set_text(&arena, metadata, "name", name);
    set_text(&arena, metadata, "namespace", jobset->namespace_);
    if (doc_len(doc_get(given, "annotations")))
        doc_set(&arena, metadata, STR("annotations"), doc_clone(&arena, doc_get(given, "annotations")));
    if (doc_len(doc_get(given, "labels")))
        doc_set(&arena, metadata, STR("labels"), doc_clone(&arena, doc_get(given, "labels")));
    set_text(&arena, doc_need_object(&arena, metadata, "labels"), "jobset.sigs.k8s.io/jobset-name",
             jobset->name);
    if (owned)
        add_owner(&arena, metadata, jobset);
    if (doc_len(doc_get(template, "spec")))
        doc_set(&arena, claim, STR("spec"), doc_clone(&arena, doc_get(template, "spec")));
    put(step, jobset, OBJECT_CLAIM, claim, "PVCCreationFailed");
}

static void make_claims(struct step *step, struct jobset *jobset)
{
    const struct doc *policies = doc_path(jobset->document, "spec", "volumeClaimPolicies", NULL);
    for (size_t p = 0; p < doc_len(policies); p++) {
        const struct doc *policy = doc_at(policies, p), *templates = doc_get(policy, "templates");
        const struct doc *when = doc_path(policy, "retentionPolicy", "whenDeleted", NULL);
        for (size_t t = 0; t < doc_len(templates); t++)
            make_claim(step, jobset, doc_at(templates, t), !str_is(doc_str(when, STR("Delete")), "Retain"));
    }
}

void owned_objects_make(struct step *step)
{
    struct job_store *store = step->jobs;
    for (size_t i = 0; i < store->lacking.len; i++) {
        struct jobset *jobset = jobs_find_uid(store, store->lacking.items[i]);
        if (!jobset || jobset->deleted_ns || jobset->hidden || jobset_finished(jobset) ||
            jobset_is_foreign(jobset))
            continue;
        make_service(step, jobset);
        make_claims(step, jobset);
    }
    vec_clear(&store->lacking);
}

void owned_objects_mark(struct step *step, const struct jobset *jobset)
{
    if (jobset->form == FORM_JOBSET && step->objects)
        vec_push(&step->jobs->lacking, jobset->uid);
}

void jobs_object_gone(struct step *step, const struct object *object)
{
    const struct doc *owners = doc_path(object->document, "metadata", "ownerReferences", NULL);
    for (size_t i = 0; i < doc_len(owners) && object->kind == OBJECT_SERVICE; i++) {
        obj_id uid;
        struct jobset *jobset = NULL;
        if (uid_parse(doc_str(doc_get(doc_at(owners, i), "uid"), STR("")), &uid))
            jobset = jobs_find_uid(step->jobs, uid);
        if (!jobset || jobset->deleted_ns)
            continue;
        owned_objects_mark(step, jobset);
        jobset_mark(step, jobset); /* makes the step settle once more */
    }
}

void jobset_check_claims(const struct object_store *objects, const struct doc *object,
                         struct field_errors *errors)
{
    const struct doc *policies = doc_path(object, "spec", "volumeClaimPolicies", NULL);
    struct str ns = doc_str(doc_path(object, "metadata", "namespace", NULL), STR("default"));
    struct str name = doc_str(doc_path(object, "metadata", "name", NULL), STR(""));
    for (size_t p = 0; p < doc_len(policies); p++) {
        const struct doc *policy = doc_at(policies, p), *templates = doc_get(policy, "templates");
        const struct doc *when = doc_path(policy, "retentionPolicy", "whenDeleted", NULL);
        for (size_t t = 0; t < doc_len(templates); t++) {
            const struct doc *template = doc_at(templates, t),
                             *node = doc_path(template, "metadata", "name", NULL);
            struct str claim = jobset_claim_name(errors->arena, name, doc_str(node, STR("")));
            const struct object *there = object_find(objects, OBJECT_CLAIM, ns, claim);
            struct str path =
                arena_printf(errors->arena, "spec.volumeClaimPolicies[%zu].templates[%zu]", p, t);
            if (there && !str_is(doc_str(when, STR("Delete")), "Retain"))
                field_error_add(errors, path, "FieldValueInvalid", node,
                                "Invalid value: \"" STR_FORMAT
                                "\": the PersistentVolumeClaim exists: its retention policy must be Retain",
                                STR_ARG(claim));
            else if (there && !claim_specs_equal(doc_get(there->document, "spec"), doc_get(template, "spec")))
                field_error_add(errors, path, "FieldValueInvalid", node,
                                "Invalid value: \"" STR_FORMAT
                                "\": the PersistentVolumeClaim exists with another spec",
                                STR_ARG(claim));
        }
    }
}
