/* stored.c - the server's defaults of stored kinds (object/object.h). */
#include "base/base64.h"
#include "core/spec/stored.h"

static bool is_object(const struct doc *node)
{
    return node && node->kind == DOC_OBJECT;
}

/* Gives a Namespace its name as a label, and the finalizer that waits for its content. */
static void default_namespace(struct arena *arena, struct doc *object)
{
    CHECK(object->kind == DOC_OBJECT);
    struct doc *metadata = doc_need_object(arena, object, "metadata");
    struct doc *labels = metadata ? doc_need_object(arena, metadata, "labels") : NULL;
    struct str name = doc_str(doc_get(metadata, "name"), STR(""));
    if (labels)
        doc_set(arena, labels, STR("kubernetes.io/metadata.name"), doc_new_str(arena, name));
    struct doc *spec = doc_need_object(arena, object, "spec");
    if (!spec || doc_get(spec, "finalizers"))
        return;
    struct doc *finalizers = doc_new(arena, DOC_ARRAY);
    doc_push(arena, finalizers, doc_new_str(arena, STR("kubernetes")));
    doc_set(arena, spec, STR("finalizers"), finalizers);
}

/* Moves stringData, which is write-only, into data. */
static void default_secret(struct arena *arena, struct doc *object)
{
    CHECK(object->kind == DOC_OBJECT);
    const struct doc *plain = doc_get(object, "stringData");
    if (!is_object(plain)) {
        if (plain && plain->kind == DOC_NULL)
            doc_unset(object, "stringData");
        return;
    }
    struct doc *data = doc_need_object(arena, object, "data");
    for (size_t i = 0; data && i < plain->object.len; i++) {
        const struct doc_member *member = &plain->object.members[i];
        if (!member->value || member->value->kind != DOC_STRING)
            return; /* reported by the check of types */
        struct buf text BUF_CLEANUP = {0};
        base64_encode(member->value->text, &text);
        doc_set(arena, data, member->key, doc_new_str(arena, buf_str(&text)));
    }
    if (data)
        doc_unset(object, "stringData");
}

static void default_service(struct arena *arena, struct doc *object)
{
    const struct doc *ports = doc_path(object, "spec", "ports", NULL);
    for (size_t i = 0; i < doc_len(ports); i++) {
        struct doc *port = doc_at(ports, i);
        const struct doc *number = doc_get(port, "port");
        if (is_object(port) && !doc_get(port, "targetPort") && number && number->kind == DOC_INT)
            doc_set(arena, port, STR("targetPort"), doc_new_int(arena, number->integer));
    }
}

static void default_claim(struct arena *arena, struct doc *object)
{
    struct doc *spec = doc_get(object, "spec");
    if (is_object(spec) && !doc_get(spec, "volumeMode"))
        doc_set(arena, spec, STR("volumeMode"), doc_new_str(arena, STR("Filesystem")));
}

static void default_subjects(struct arena *arena, struct doc *object)
{
    const struct doc *subjects = doc_get(object, "subjects");
    for (size_t i = 0; i < doc_len(subjects); i++) {
        struct doc *subject = doc_at(subjects, i);
        struct str kind = doc_str(doc_get(subject, "kind"), STR(""));
        if (is_object(subject) && !doc_get(subject, "apiGroup") &&
            (str_is(kind, "User") || str_is(kind, "Group")))
            doc_set(arena, subject, STR("apiGroup"), doc_new_str(arena, STR("rbac.authorization.k8s.io")));
    }
}

void stored_default(struct arena *arena, struct doc *object)
{
    CHECK(arena);
    struct stored_kind kind = stored_kind_of(object);
    if (!kind.schema || !is_object(object))
        return;
    schema_default(kind.schema, arena, object);
    switch (kind.id) {
    case OBJECT_NAMESPACE:
        default_namespace(arena, object);
        break;
    case OBJECT_SECRET:
        default_secret(arena, object);
        break;
    case OBJECT_SERVICE:
        default_service(arena, object);
        break;
    case OBJECT_CLAIM:
        default_claim(arena, object);
        break;
    case OBJECT_ROLE_BINDING:
    case OBJECT_CLUSTER_ROLE_BINDING:
        default_subjects(arena, object);
        break;
    default:
        break;
    }
}
