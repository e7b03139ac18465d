/* default_job.c - the API server's defaults of Jobs and Pods without a JobSet (kubernetes'
 * pkg/apis/batch/v1 and core/v1), as far as users see them. Pod templates in JobSets are kept as they were
 * written, as upstream does. */
#include "base/check.h"
#include "core/spec/schema.h"

static void set_default(struct arena *arena, struct doc *object, const char *key, struct doc *value)
{
    CHECK(object && value);
    const struct doc *node = doc_get(object, key);
    if (object->kind == DOC_OBJECT && (!node || node->kind == DOC_NULL))
        doc_set(arena, object, str_from(key), value);
}

static void set_text(struct arena *arena, struct doc *object, const char *key, const char *text)
{
    const struct doc *node = doc_get(object, key);
    if (node && node->kind == DOC_STRING && node->text.len == 0)
        doc_unset(object, key);
    set_default(arena, object, key, doc_new_str(arena, str_from(text)));
}

/* Returns Always for an image with the tag "latest" or without a tag, otherwise IfNotPresent. */
static const char *pull_policy(struct str image)
{
    struct str rest = image;
    for (size_t i = image.len; i > 0; i--)
        if (image.data[i - 1] == '/') {
            rest = (struct str){image.data + i, image.len - i};
            break;
        }
    struct str name, tag;
    return !str_cut(rest, ':', &name, &tag) || str_is(tag, "latest") ? "Always" : "IfNotPresent";
}

static void default_container(struct arena *arena, struct doc *container)
{
    if (container->kind != DOC_OBJECT)
        return;
    set_default(arena, container, "resources", doc_new(arena, DOC_OBJECT));
    set_text(arena, container, "terminationMessagePath", "/dev/termination-log");
    set_text(arena, container, "terminationMessagePolicy", "File");
    set_text(arena, container, "imagePullPolicy", pull_policy(doc_str(doc_get(container, "image"), STR(""))));
}

static void default_pod_spec(struct arena *arena, struct doc *spec, bool own)
{
    static const char *const lists[] = {"containers", "initContainers"};
    if (!spec || spec->kind != DOC_OBJECT)
        return;
    for (size_t l = 0; l < 2; l++) {
        struct doc *list = doc_get(spec, lists[l]);
        for (size_t i = 0; list && list->kind == DOC_ARRAY && i < list->array.len; i++)
            default_container(arena, list->array.items[i]);
    }
    set_text(arena, spec, "restartPolicy", "Always");
    set_text(arena, spec, "dnsPolicy", "ClusterFirst");
    set_text(arena, spec, "schedulerName", "default-scheduler");
    set_default(arena, spec, "securityContext", doc_new(arena, DOC_OBJECT));
    set_default(arena, spec, "terminationGracePeriodSeconds", doc_new_int(arena, 30));
    if (own)
        set_default(arena, spec, "enableServiceLinks", doc_new_bool(arena, true));
}

/* A Job without any count has one task. With parallelism alone it is a work queue: completions stay unset. */
static void default_job_spec(struct arena *arena, struct doc *spec)
{
    CHECK(spec->kind == DOC_OBJECT);
    const struct doc *completions = doc_get(spec, "completions"), *parallelism = doc_get(spec, "parallelism");
    bool neither =
        (!completions || completions->kind == DOC_NULL) && (!parallelism || parallelism->kind == DOC_NULL);
    bool per_index = doc_int(doc_get(spec, "backoffLimitPerIndex"), -1) >= 0;
    bool policy = doc_len(doc_get(spec, "podFailurePolicy")) > 0;
    if (neither)
        set_default(arena, spec, "completions", doc_new_int(arena, 1));
    set_default(arena, spec, "parallelism", doc_new_int(arena, 1));
    set_default(arena, spec, "backoffLimit", doc_new_int(arena, per_index ? INT32_MAX : 6));
    set_text(arena, spec, "completionMode", "NonIndexed");
    set_default(arena, spec, "suspend", doc_new_bool(arena, false));
    set_text(arena, spec, "podReplacementPolicy", policy ? "Failed" : "TerminatingOrFailed");
}

static void default_own_job(struct arena *arena, struct doc *object)
{
    struct doc *spec = doc_get(object, "spec"), *meta = doc_get(object, "metadata");
    if (!spec || spec->kind != DOC_OBJECT)
        return;
    default_job_spec(arena, spec);
    /* Fields that the server generates are shown and never stored; a client may send them back. */
    doc_unset(spec, "selector");
    struct doc *labels = doc_path(spec, "template", "metadata", "labels", NULL);
    static const char *const generated[] = {"batch.kubernetes.io/controller-uid", "controller-uid",
                                            "batch.kubernetes.io/job-name", "job-name"};
    for (size_t i = 0; labels && i < sizeof generated / sizeof *generated; i++)
        doc_unset(labels, generated[i]);
    if (doc_len(doc_get(meta, "labels")) == 0 && doc_len(labels) > 0 && meta && meta->kind == DOC_OBJECT)
        doc_set(arena, meta, STR("labels"), doc_clone(arena, labels));
    default_pod_spec(arena, doc_path(spec, "template", "spec", NULL), false);
}

static void default_own_pod(struct arena *arena, struct doc *object)
{
    struct doc *spec = doc_get(object, "spec");
    if (!spec || spec->kind != DOC_OBJECT)
        return;
    if (doc_str(doc_get(spec, "nodeName"), STR("x")).len == 0)
        doc_unset(spec, "nodeName");
    default_pod_spec(arena, spec, true);
}

void workload_default(struct arena *arena, struct doc *object)
{
    CHECK(arena);
    if (!object || object->kind != DOC_OBJECT || workload_form(object) == FORM_JOBSET) {
        jobset_default(arena, object);
        return;
    }
    if (workload_form(object) == FORM_WORKLOAD) {
        schema_default(&schema_workload, arena, object);
        return;
    }
    bool job = workload_form(object) == FORM_JOB;
    schema_default(job ? &schema_job : &schema_pod, arena, object);
    if (job)
        default_own_job(arena, object);
    else
        default_own_pod(arena, object);
}
