/* priority.c - the priority of a Job's pods. */
#include "core/job/facts.h"

static void find_default_class(void *context, const struct object *class)
{
    const struct doc **value = context;
    if (doc_bool(doc_get(class->document, "globalDefault"), false))
        *value = doc_get(class->document, "value");
}

/* PriorityClasses come before the cluster file's classes, and these before the pod's own number. */
int32_t job_priority(const struct job_store *store, const struct cluster *cluster,
                     const struct rjob_spec *rjob)
{
    const struct pod_spec *pod = &rjob->job.pod;
    int64_t priority = pod->priority;
    const struct doc *from_class = NULL;
    if (pod->priority_class.len) {
        const struct object *class =
            object_find(store->objects, OBJECT_PRIORITY_CLASS, STR(""), pod->priority_class);
        from_class = class ? doc_get(class->document, "value") : NULL;
    } else if (priority == 0 && object_count(store->objects, OBJECT_PRIORITY_CLASS) > 0) {
        object_visit(store->objects, OBJECT_PRIORITY_CLASS, STR(""), find_default_class, &from_class);
    }
    if (from_class)
        return (int32_t)doc_int(from_class, 0);
    struct str value = labels_get(&cluster->priority_classes, pod->priority_class, STR(""));
    if (pod->priority_class.len && value.len)
        str_to_i64(value, INT32_MIN, INT32_MAX, &priority);
    CHECK(priority >= INT32_MIN && priority <= INT32_MAX);
    return (int32_t)priority;
}
