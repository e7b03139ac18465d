/* convert.c - converts between the versions in which a kind is served: kueue.x-k8s.io/v1beta1 and v1beta2
 * (kubernetes-sigs/kueue, apis/kueue/v1beta1, *_conversion.go). v1beta2 is stored.
 *
 *     v1beta1                                        v1beta2
 *     ClusterQueue spec.cohort                       spec.cohortName
 *     spec.admissionChecks: [a]                      spec.admissionChecksStrategy.admissionChecks:
 *                                                    [{name: a}]
 *     flavorFungibility.whenCanBorrow: Borrow        MayStopSearch
 *     flavorFungibility.whenCanPreempt: Preempt      MayStopSearch
 *     Workload spec.priorityClassName: a             spec.priorityClassRef: {group, kind, name: a}
 *     spec.priorityClassSource                       its group and kind
 *     MultiKueueCluster spec.kubeConfig              spec.clusterSource.kubeConfig; likewise
 *                                                    clusterProfileRef
 * The other kinds have the same fields in both.
 *
 * Events are stored as v1. events.k8s.io/v1 has other names for the same fields (k8s.io/kubernetes,
 * pkg/apis/events/v1, conversion.go).
 */
#include "core/object/object.h"

static const char stored_version[] = "kueue.x-k8s.io/v1beta2";

static void rename_member(struct arena *arena, struct doc *object, const char *from, const char *to)
{
    struct doc *value = doc_get(object, from);
    if (!value || object->kind != DOC_OBJECT)
        return;
    doc_unset(object, from);
    doc_set(arena, object, str_from(to), value);
}

static void rename_value(struct arena *arena, struct doc *object, const char *key, const char *from,
                         const char *to)
{
    const struct doc *value = doc_get(object, key);
    if (value && str_is(doc_str(value, STR("")), from))
        doc_set(arena, object, str_from(key), doc_new_str(arena, str_from(to)));
}

static void convert_checks(struct arena *arena, struct doc *spec)
{
    const struct doc *names = doc_get(spec, "admissionChecks");
    if (!names || names->kind != DOC_ARRAY || doc_get(spec, "admissionChecksStrategy"))
        return;
    struct doc *rules = doc_new(arena, DOC_ARRAY);
    for (size_t i = 0; i < names->array.len; i++) {
        struct doc *rule = doc_new(arena, DOC_OBJECT);
        doc_set(arena, rule, STR("name"), names->array.items[i]);
        doc_push(arena, rules, rule);
    }
    doc_unset(spec, "admissionChecks");
    if (rules->array.len == 0)
        return;
    struct doc *strategy = doc_new(arena, DOC_OBJECT);
    doc_set(arena, strategy, STR("admissionChecks"), rules);
    doc_set(arena, spec, STR("admissionChecksStrategy"), strategy);
}

static void move_member(struct arena *arena, struct doc *from, struct doc *to, const char *key)
{
    struct doc *value = doc_get(from, key);
    if (!value)
        return;
    doc_unset(from, key);
    doc_set(arena, to, str_from(key), value);
}

/* Converts the sources of a remote cluster: members of spec in v1beta1, of spec.clusterSource in v1beta2. */
static void convert_sources(struct arena *arena, struct doc *spec, bool to_stored)
{
    struct doc *source = to_stored ? doc_new(arena, DOC_OBJECT) : doc_get(spec, "clusterSource");
    if (!source || source->kind != DOC_OBJECT || (to_stored && doc_get(spec, "clusterSource")))
        return;
    move_member(arena, to_stored ? spec : source, to_stored ? source : spec, "kubeConfig");
    move_member(arena, to_stored ? spec : source, to_stored ? source : spec, "clusterProfileRef");
    if (to_stored)
        doc_set(arena, spec, STR("clusterSource"), source);
    else
        doc_unset(spec, "clusterSource");
}

static void convert_workload(struct arena *arena, struct doc *spec)
{
    struct str name = doc_str(doc_get(spec, "priorityClassName"), STR(""));
    struct str source = doc_str(doc_get(spec, "priorityClassSource"), STR(""));
    bool ours = str_is(source, "kueue.x-k8s.io/workloadpriorityclass");
    doc_unset(spec, "priorityClassName");
    doc_unset(spec, "priorityClassSource");
    if (!name.len || doc_get(spec, "priorityClassRef"))
        return;
    struct doc *ref = doc_need_object(arena, spec, "priorityClassRef");
    doc_set(arena, ref, STR("group"),
            doc_new_str(arena, ours ? STR("kueue.x-k8s.io") : STR("scheduling.k8s.io")));
    doc_set(arena, ref, STR("kind"),
            doc_new_str(arena, ours ? STR("WorkloadPriorityClass") : STR("PriorityClass")));
    doc_set(arena, ref, STR("name"), doc_new_str(arena, name));
}

static const struct {
    const char *core, *events; /* names in v1 and in events.k8s.io/v1 */
} event_fields[] = {
    {"involvedObject", "regarding"},
    {"message", "note"},
    {"source", "deprecatedSource"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"count", "deprecatedCount"},
    {"reportingComponent", "reportingController"},
};

static void convert_event(struct arena *arena, struct doc *document, const char *version, bool to_core)
{
    doc_set(arena, document, STR("apiVersion"), doc_new_str(arena, str_from(version)));
    for (size_t i = 0; i < sizeof event_fields / sizeof *event_fields; i++)
        rename_member(arena, document, to_core ? event_fields[i].events : event_fields[i].core,
                      to_core ? event_fields[i].core : event_fields[i].events);
}

void object_convert(struct arena *arena, enum object_kind kind, struct doc *document)
{
    struct str version = doc_str(doc_get(document, "apiVersion"), STR(""));
    if (kind == OBJECT_USER_EVENT && str_is(version, OBJECT_NEW_EVENTS))
        convert_event(arena, document, "v1", true);
    if (!str_is(version, "kueue.x-k8s.io/v1beta1"))
        return;
    doc_set(arena, document, STR("apiVersion"), doc_new_str(arena, str_from(stored_version)));
    struct doc *spec = doc_get(document, "spec");
    if (kind == OBJECT_WORKLOAD && spec && spec->kind == DOC_OBJECT)
        convert_workload(arena, spec);
    if (kind == OBJECT_MULTIKUEUE_CLUSTER && spec && spec->kind == DOC_OBJECT)
        convert_sources(arena, spec, true);
    if (kind != OBJECT_CLUSTER_QUEUE || !spec || spec->kind != DOC_OBJECT)
        return;
    rename_member(arena, spec, "cohort", "cohortName");
    convert_checks(arena, spec);
    struct doc *fungibility = doc_get(spec, "flavorFungibility");
    rename_value(arena, fungibility, "whenCanBorrow", "Borrow", "MayStopSearch");
    rename_value(arena, fungibility, "whenCanPreempt", "Preempt", "MayStopSearch");
}

const struct doc *object_shown(struct arena *arena, const struct object *object, struct str api_version)
{
    bool event = object->kind == OBJECT_USER_EVENT && str_is(api_version, OBJECT_NEW_EVENTS);
    if (!event && !str_is(api_version, "kueue.x-k8s.io/v1beta1"))
        return object->document;
    struct doc *shown = doc_clone(arena, object->document);
    if (event) {
        convert_event(arena, shown, OBJECT_NEW_EVENTS, false);
        return shown;
    }
    doc_set(arena, shown, STR("apiVersion"), doc_new_str(arena, STR("kueue.x-k8s.io/v1beta1")));
    if (object->kind == OBJECT_MULTIKUEUE_CLUSTER)
        convert_sources(arena, doc_get(shown, "spec"), false);
    if (object->kind != OBJECT_CLUSTER_QUEUE)
        return shown;
    struct doc *spec = doc_get(shown, "spec"), *fungibility = doc_get(spec, "flavorFungibility");
    rename_member(arena, spec, "cohortName", "cohort");
    rename_value(arena, fungibility, "whenCanBorrow", "MayStopSearch", "Borrow");
    rename_value(arena, fungibility, "whenCanPreempt", "MayStopSearch", "Preempt");
    return shown;
}
