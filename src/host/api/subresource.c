#include "host/api/subresource.h"

#include "host/api/visibility.h"

#define STATUS                                                                                               \
    {                                                                                                        \
        .name = "status", .verbs = VERB_GET | VERB_PATCH | VERB_UPDATE                                       \
    }

const struct subresource *subresources_of(const struct resource *resource)
{
    static const struct subresource none[] = {{.name = NULL}}, status[] = {STATUS, {.name = NULL}};
    static const struct subresource pods[] = {
        {"attach", "", "v1", "PodAttachOptions", VERB_CREATE | VERB_GET},
        {"eviction", "policy", "v1", "Eviction", VERB_CREATE},
        {"exec", "", "v1", "PodExecOptions", VERB_CREATE | VERB_GET},
        {"log", "", "v1", "Pod", VERB_GET},
        STATUS,
        {.name = NULL}};
    static const struct subresource jobs[] = {
        STATUS, {"diagnosis", "phalanx.dev", "v1", "Diagnosis", VERB_CREATE | VERB_GET}, {.name = NULL}};
    static const struct subresource nodes[] = {
        STATUS, {"injections", "phalanx.dev", "v1", "Injection", VERB_CREATE}, {.name = NULL}};
    static const struct subresource accounts[] = {
        {"token", "authentication.k8s.io", "v1", "TokenRequest", VERB_CREATE}, {.name = NULL}};
    static const struct subresource visibility[] = {
        {"pendingworkloads", "visibility.kueue.x-k8s.io", "v1beta2", "PendingWorkloadsSummary", VERB_GET},
        {.name = NULL}};
    static const struct subresource old_visibility[] = {
        {"pendingworkloads", "visibility.kueue.x-k8s.io", "v1beta1", "PendingWorkloadsSummary", VERB_GET},
        {.name = NULL}};
    if (resource_is_visibility(resource))
        return strcmp(resource->version, "v1beta2") == 0 ? visibility : old_visibility;
    if (resource_is_metrics(resource) || resource->id == RESOURCE_LEMONS)
        return none;
    switch (resource->object) {
    case OBJECT_POD:
        return pods;
    case OBJECT_SERVICE_ACCOUNT:
        return accounts;
    case OBJECT_JOBSET:
    case OBJECT_JOB:
        return jobs;
    case OBJECT_NODE:
        return nodes;
    case OBJECT_NAMESPACE:
    case OBJECT_CLAIM:
    case OBJECT_SERVICE:
    case OBJECT_RESOURCE_QUOTA:
    case OBJECT_DISRUPTION_BUDGET:
    case OBJECT_REPAIR:
    case OBJECT_MAINTENANCE:
    case OBJECT_CLUSTER_QUEUE:
    case OBJECT_LOCAL_QUEUE:
    case OBJECT_COHORT:
    case OBJECT_WORKLOAD:
    case OBJECT_ADMISSION_CHECK:
        return status;
    default:
        return none;
    }
}

void handle_subresource(struct api_request *request)
{
    const struct subresource *sub = subresources_of(request->resource);
    while (sub->name && !str_is(request->subresource, sub->name))
        sub++;
    if (sub->name && resource_is_visibility(request->resource)) {
        handle_pending(request);
        return;
    }
    if (sub->name && strcmp(sub->name, "diagnosis") == 0) {
        handle_diagnosis(request);
        return;
    }
    bool status = sub->name && strcmp(sub->name, "status") == 0;
    bool eviction = sub->name && strcmp(sub->name, "eviction") == 0;
    bool token = sub->name && strcmp(sub->name, "token") == 0;
    bool injection = sub->name && strcmp(sub->name, "injections") == 0;
    if (eviction && request->method == METHOD_POST)
        handle_evict(request);
    else if (token && request->method == METHOD_POST)
        handle_token_request(request);
    else if (injection && request->method == METHOD_POST)
        handle_inject(request);
    else if (status && request->method == METHOD_GET)
        handle_get(request);
    else if (status && (request->method == METHOD_PUT || request->method == METHOD_PATCH))
        handle_status(request);
    else if (status || eviction || token || injection)
        answer_status(request, 405, "MethodNotAllowed",
                      "the server does not allow this method on the requested resource");
    else
        answer_status(request, 404, "NotFound",
                      "the server could not find the requested resource (%s/" STR_FORMAT ")",
                      request->resource->plural, STR_ARG(request->subresource));
}
