/* bar.c - Pod Security levels, judged again when Pods are made, because a namespace's label may have become
 * stricter since the template was accepted.
 *
 * A gang whose Pods violate the level that the label of their namespace enforces is barred: it takes no
 * machines, no other gang waits for it, and an Event tells why. When the label changes, waiting gangs are
 * judged once more. Placed Pods are not affected, as in Kubernetes.
 */
#include "core/gang/internal.h"
#include "core/spec/pod_security.h"

/* Appends Kubernetes' text for the refusal of a Job's Pod. Returns false if all Pods conform. */
static bool bar_says(const struct job_store *store, const struct gang *gang, struct buf *why)
{
    const struct jobset *jobset = gang->jobset;
    const struct object *space = object_find(store->objects, OBJECT_NAMESPACE, STR(""), jobset->namespace_);
    struct pod_security_policy policy;
    pod_security_of(space ? space->document : NULL, POD_SECURITY_PRIVILEGED, &policy);
    enum pod_security_level level = policy.modes[POD_SECURITY_ENFORCE].level;
    const struct rjob_spec *judged = NULL; /* tasks of one job follow each other */
    for (size_t t = 0; level > POD_SECURITY_PRIVILEGED && t < gang->tasks.len; t++) {
        const struct task *task = gang->tasks.items[t];
        struct buf detail BUF_CLEANUP = {0};
        if (task->job->rjob == judged)
            continue;
        judged = task->job->rjob;
        const struct doc *template = workload_pod_template(jobset->document, task->job->rjob_index);
        if (!pod_security_violated(doc_get(template, "spec"), level, &detail))
            continue;
        buf_printf(why,
                   "pods \"" STR_FORMAT "\" is forbidden: violates PodSecurity \"%s:" STR_FORMAT
                   "\": " STR_FORMAT,
                   STR_ARG(task->name), pod_security_name(level),
                   STR_ARG(policy.modes[POD_SECURITY_ENFORCE].version), STR_ARG(buf_str(&detail)));
        return true;
    }
    return false;
}

void gang_judge(const struct job_store *store, struct gang *gang)
{
    struct buf why BUF_CLEANUP = {0};
    gang->barred = bar_says(store, gang, &why);
}

bool gang_say_barred(const struct job_store *store, struct gang *gang, struct buf *why)
{
    CHECK(gang->state == GANG_QUEUED);
    gang->barred = gang->barred && bar_says(store, gang, why); /* the violating Pod may have left the gang */
    CHECK(!gang->barred || why->len > 0);
    return gang->barred;
}

void gangs_judge(struct job_store *store)
{
    uint64_t version = object_kind_version(store->objects, OBJECT_NAMESPACE) + 1;
    if (store->judged == version)
        return;
    store->judged = version;
    for (size_t i = 0; i < store->queue.gangs.len; i++) {
        struct gang *gang = container_of(store->queue.gangs.items[i], struct gang, queued);
        CHECK(gang->state == GANG_QUEUED);
        gang_judge(store, gang);
    }
}
