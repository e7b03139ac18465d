/* terms.c - admission's additions to Pod templates (struct rjob_terms). Users see these node labels,
 * tolerations, labels and annotations in the templates of admitted objects, and send them back when they
 * write the object. The stored document stays without them. */
#include "core/gang/trial.h"

/* --- adding terms ----------------------------------------------------------------------------- */

/* Returns a copy of an object or a list that shares its members, or an empty one if `node` is NULL. */
static struct doc *copy_shallow(struct arena *arena, const struct doc *node, enum doc_kind kind)
{
    struct doc *copy = doc_new(arena, kind);
    for (size_t i = 0; node && node->kind == kind && i < doc_len(node); i++) {
        if (kind == DOC_ARRAY)
            doc_push(arena, copy, node->array.items[i]);
        else
            CHECK(doc_try_add(arena, copy, node->object.members[i]));
    }
    return copy;
}

/* Replaces a member by a shallow copy of itself, and returns the copy. */
static struct doc *own_member(struct arena *arena, struct doc *object, const char *key, enum doc_kind kind)
{
    struct doc *copy = copy_shallow(arena, doc_get(object, key), kind);
    doc_set(arena, object, str_from(key), copy);
    return copy;
}

static void add_labels(struct arena *arena, struct doc *object, const char *key, const struct labels *labels)
{
    if (!labels->len)
        return;
    struct doc *map = own_member(arena, object, key, DOC_OBJECT);
    for (size_t i = 0; i < labels->len; i++)
        doc_set(arena, map, labels->items[i].key, doc_new_str(arena, labels->items[i].value));
}

static struct doc *toleration_doc(struct arena *arena, const struct toleration *toleration)
{
    struct doc *doc = doc_new(arena, DOC_OBJECT);
    if (toleration->key.len)
        doc_set(arena, doc, STR("key"), doc_new_str(arena, toleration->key));
    doc_set(arena, doc, STR("operator"),
            doc_new_str(arena, toleration->op.len ? toleration->op : STR("Equal")));
    if (toleration->value.len)
        doc_set(arena, doc, STR("value"), doc_new_str(arena, toleration->value));
    if (toleration->effect.len)
        doc_set(arena, doc, STR("effect"), doc_new_str(arena, toleration->effect));
    return doc;
}

const struct doc *template_with_terms(struct arena *arena, const struct doc *template,
                                      const struct rjob_terms *terms)
{
    if (!terms || !template)
        return template;
    struct doc *copy = copy_shallow(arena, template, DOC_OBJECT);
    struct doc *spec = own_member(arena, copy, "spec", DOC_OBJECT);
    add_labels(arena, spec, "nodeSelector", &terms->node_labels);
    if (terms->toleration_count) {
        struct doc *list = own_member(arena, spec, "tolerations", DOC_ARRAY);
        for (size_t i = 0; i < terms->toleration_count; i++)
            doc_push(arena, list, toleration_doc(arena, &terms->tolerations[i]));
    }
    if (terms->labels.len || terms->annotations.len) {
        struct doc *metadata = own_member(arena, copy, "metadata", DOC_OBJECT);
        add_labels(arena, metadata, "labels", &terms->labels);
        add_labels(arena, metadata, "annotations", &terms->annotations);
    }
    return copy;
}

const struct doc *document_with_terms(struct arena *arena, const struct jobset *jobset)
{
    if (!jobset->grant.terms || jobset->form == FORM_POD)
        return jobset->document;
    struct doc *copy = copy_shallow(arena, jobset->document, DOC_OBJECT);
    struct doc *spec = own_member(arena, copy, "spec", DOC_OBJECT);
    if (jobset->form == FORM_JOB) {
        const struct doc *template =
            template_with_terms(arena, doc_get(spec, "template"), &jobset->grant.terms[0]);
        doc_set(arena, spec, STR("template"), (struct doc *)template);
        return copy;
    }
    struct doc *rjobs = own_member(arena, spec, "replicatedJobs", DOC_ARRAY);
    for (size_t r = 0; r < doc_len(rjobs) && r < jobset->spec.rjob_count; r++) {
        struct doc *rjob = rjobs->array.items[r] = copy_shallow(arena, doc_at(rjobs, r), DOC_OBJECT);
        struct doc *job =
            own_member(arena, own_member(arena, rjob, "template", DOC_OBJECT), "spec", DOC_OBJECT);
        const struct doc *template =
            template_with_terms(arena, doc_get(job, "template"), &jobset->grant.terms[r]);
        doc_set(arena, job, STR("template"), (struct doc *)template);
    }
    return copy;
}

/* --- removing terms --------------------------------------------------------------------------- */

/* Removes the members that came from `labels`: those that the stored object lacks. Also removes the map if it
 * becomes empty and was not stored. */
static void strip_labels(struct doc *object, const struct doc *stored, const char *key,
                         const struct labels *labels)
{
    struct doc *map = doc_get(object, key);
    const struct doc *was = doc_get(stored, key);
    if (!map || map->kind != DOC_OBJECT || !labels->len)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < map->object.len; i++) {
        const struct doc_member *member = &map->object.members[i];
        struct str added = labels_get(labels, member->key, (struct str){0});
        bool ours =
            added.data && !doc_get_str(was, member->key) && str_equal(doc_str(member->value, STR("")), added);
        if (!ours)
            map->object.members[kept++] = *member;
    }
    map->object.len = kept;
    if (!kept && !was)
        doc_unset(object, key);
}

static bool is_toleration(const struct doc *doc, const struct toleration *toleration)
{
    struct str op = doc_str(doc_get(doc, "operator"), STR("Equal"));
    return str_equal(doc_str(doc_get(doc, "key"), STR("")), toleration->key) &&
           str_equal(op, toleration->op.len ? toleration->op : STR("Equal")) &&
           str_equal(doc_str(doc_get(doc, "value"), STR("")), toleration->value) &&
           str_equal(doc_str(doc_get(doc, "effect"), STR("")), toleration->effect);
}

static bool is_added(const struct rjob_terms *terms, const struct doc *doc)
{
    for (size_t i = 0; i < terms->toleration_count; i++)
        if (is_toleration(doc, &terms->tolerations[i]))
            return true;
    return false;
}

/* Removes the added tolerations, which follow the template's own. */
static void strip_tolerations(struct doc *spec, const struct doc *stored, const struct rjob_terms *terms)
{
    struct doc *list = doc_get(spec, "tolerations");
    const struct doc *was = doc_get(stored, "tolerations");
    if (!list || list->kind != DOC_ARRAY || !terms->toleration_count)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < list->array.len; i++)
        if (i < doc_len(was) || !is_added(terms, list->array.items[i]))
            list->array.items[kept++] = list->array.items[i];
    list->array.len = kept;
    if (!kept && !was)
        doc_unset(spec, "tolerations");
}

void document_strip_terms(const struct jobset *jobset, struct doc *document)
{
    if (!jobset->grant.terms || jobset->form == FORM_POD || workload_form(document) != jobset->form)
        return;
    for (size_t r = 0; r < jobset->spec.rjob_count; r++) {
        struct doc *template = (struct doc *)workload_pod_template(document, r);
        const struct doc *stored = workload_pod_template(jobset->document, r);
        const struct rjob_terms *terms = &jobset->grant.terms[r];
        strip_labels(doc_get(template, "spec"), doc_get(stored, "spec"), "nodeSelector", &terms->node_labels);
        strip_tolerations(doc_get(template, "spec"), doc_get(stored, "spec"), terms);
        struct doc *metadata = doc_get(template, "metadata");
        strip_labels(metadata, doc_get(stored, "metadata"), "labels", &terms->labels);
        strip_labels(metadata, doc_get(stored, "metadata"), "annotations", &terms->annotations);
        if (metadata && metadata->kind == DOC_OBJECT && !metadata->object.len && !doc_get(stored, "metadata"))
            doc_unset(template, "metadata");
    }
}
