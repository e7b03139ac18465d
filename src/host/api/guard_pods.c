/* guard_pods.c - checks Pods and Pod templates: Pod Security levels, and the right to go beyond them.
 *
 * Two rules hold for each Pod that a write would create, also for the templates of JobSets and Jobs: tasks
 * are started from templates, and no Pod of theirs is ever written through the API.
 *   - The Pod must comply with the level that its namespace enforces, whatever roles the user has.
 *   - A Pod beyond the level baseline (hostPath, host namespaces and ports, privileged, capabilities, ...),
 *     or one that asks for user 0, needs a separate right: verb `use`, resource `podsecuritylevels` of
 *     `phalanx.dev`, name `privileged`.
 * A template that a write does not change is accepted, so that labels and sizes can still be changed.
 */
#include "core/spec/pod_security.h"
#include "host/api/guard.h"
#include "host/api/write.h"

/* Returns the document that the user wrote, or NULL if the object does not exist or is made from another
 * one. */
static const struct doc *find_written(const struct api_request *request, const struct write_event *write)
{
    struct object_ref found;
    if (write->verb == WRITE_CREATE ||
        !resource_get(request->resource, request_core(request), write->namespace_, write->name, &found))
        return NULL;
    if (found.kind == OBJECT_JOBSET)
        return found.jobset->document;
    if (found.kind == OBJECT_JOB)
        return found.job->jobset->form == FORM_JOB ? found.job->jobset->document : NULL;
    return found.task->job->jobset->form == FORM_POD ? found.task->job->jobset->document : NULL;
}

static void forbid(struct api_request *request, const struct write_event *write, struct str why)
{
    struct str title = resource_title(&request->arena, request->resource);
    request->audit_reason = "Forbidden";
    if (write->name.len > 0)
        answer_status(request, 403, "Forbidden", STR_FORMAT " \"" STR_FORMAT "\" is forbidden: " STR_FORMAT,
                      STR_ARG(title), STR_ARG(write->name), STR_ARG(why));
    else
        answer_status(request, 403, "Forbidden", STR_FORMAT " is forbidden: " STR_FORMAT, STR_ARG(title),
                      STR_ARG(why));
}

/* Returns `violates PodSecurity "restricted:latest": ...` for one mode; .data is NULL if the Pod complies. */
static struct str judge_mode(struct api_request *request, const struct pod_security_policy *policy,
                             enum pod_security_mode mode, const struct doc *pod_spec)
{
    struct buf why BUF_CLEANUP = {0};
    if (!pod_security_violated(pod_spec, policy->modes[mode].level, &why))
        return (struct str){0};
    return arena_printf(&request->arena, "%s PodSecurity \"%s:" STR_FORMAT "\": %s",
                        mode == POD_SECURITY_ENFORCE ? "violates" : "would violate",
                        pod_security_name(policy->modes[mode].level), STR_ARG(policy->modes[mode].version),
                        why.data);
}

static bool may_leave_baseline(struct api_request *request, const struct write_event *write,
                               const struct doc *pod_spec)
{
    struct buf why BUF_CLEANUP = {0};
    struct access *access = request->api->access;
    bool beyond = pod_security_violated(pod_spec, POD_SECURITY_BASELINE, &why);
    if (pod_security_asks_root(pod_spec))
        buf_printf(&why, "%srunAsUser=0", beyond ? ", " : "");
    if (!access || why.len == 0)
        return true;
    struct access_attributes what = {.verb = STR("use"),
                                     .group = STR("phalanx.dev"),
                                     .resource = STR("podsecuritylevels"),
                                     .namespace_ = write->namespace_,
                                     .name = STR("privileged")};
    access_follow(access, request_core(request));
    if (access_allows(access, request->user, &what))
        return true;
    forbid(request, write,
           arena_printf(&request->arena,
                        "User \"" STR_FORMAT
                        "\" cannot use resource \"podsecuritylevels\" named \"privileged\" in API group "
                        "\"phalanx.dev\" in the namespace \"" STR_FORMAT "\", which this takes: %s",
                        STR_ARG(request->user->name), STR_ARG(write->namespace_), why.data));
    return false;
}

static bool judge_template(struct api_request *request, const struct write_event *write,
                           const struct pod_security_policy *policy, const struct doc *pod_spec)
{
    struct str why = judge_mode(request, policy, POD_SECURITY_ENFORCE, pod_spec);
    if (why.len > 0) {
        forbid(request, write, why);
        return false;
    }
    if (!may_leave_baseline(request, write, pod_spec))
        return false;
    why = judge_mode(request, policy, POD_SECURITY_WARN, pod_spec);
    if (why.len > 0 && request->write->tries == 0)
        request_warn(request, STR_FORMAT, STR_ARG(why));
    why = judge_mode(request, policy, POD_SECURITY_AUDIT, pod_spec);
    if (why.len > 0)
        request->audit_violations = why;
    return true;
}

static bool guard_templates(struct api_request *request, const struct write_event *write,
                            const struct doc *object)
{
    const struct object_store *objects = core_objects(request_core(request));
    const struct object *space = object_find(objects, OBJECT_NAMESPACE, (struct str){0}, write->namespace_);
    const struct doc *before = find_written(request, write);
    size_t count =
        workload_form(object) == FORM_JOBSET ? doc_len(doc_path(object, "spec", "replicatedJobs", NULL)) : 1;
    struct pod_security_policy policy;
    pod_security_of(space ? space->document : NULL, request->api->pod_security, &policy);
    for (size_t i = 0; i < count; i++) {
        const struct doc *spec = doc_get(workload_pod_template(object, i), "spec");
        const struct doc *old = before ? doc_get(workload_pod_template(before, i), "spec") : NULL;
        if (old && spec && spec_equal(old, spec))
            continue;
        if (!judge_template(request, write, &policy, spec))
            return false;
    }
    return true;
}

static bool guard_labels(struct api_request *request, const struct write_event *write,
                         const struct doc *namespace_)
{
    struct field_errors errors = {.arena = &request->arena};
    pod_security_check_labels(namespace_, &errors);
    bool good = errors.list.len == 0;
    if (!good)
        answer_status_causes(request, 422, "Invalid",
                             arena_printf(&request->arena,
                                          "Namespace \"" STR_FORMAT "\" is invalid: " STR_FORMAT
                                          ": " STR_FORMAT,
                                          STR_ARG(write->name), STR_ARG(errors.list.items[0].path),
                                          STR_ARG(errors.list.items[0].message)),
                             &errors);
    field_errors_done(&errors);
    return good;
}

bool guard_pods(struct api_request *request, const struct write_event *write)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *object;
    bool workload =
        write->object == OBJECT_JOBSET || write->object == OBJECT_JOB || write->object == OBJECT_POD;
    if ((!workload && write->object != OBJECT_NAMESPACE) ||
        (write->verb != WRITE_CREATE && write->verb != WRITE_REPLACE) ||
        json_parse(&arena, write->body, &object, NULL) < 0)
        return true; /* the core reports the error */
    return workload ? guard_templates(request, write, object) : guard_labels(request, write, object);
}
