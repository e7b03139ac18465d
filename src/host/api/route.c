#include <stdio.h>

#include "host/api/guard.h"
#include "host/api/request.h"
#include "host/api/subresource.h"

/* Removes the next segment of a path such as "namespaces/x/pods", and returns it. */
static struct str next_segment(struct str *path)
{
    struct str head, tail;
    if (!str_cut(*path, '/', &head, &tail)) {
        head = *path;
        tail = (struct str){path->data + path->len, 0};
    }
    *path = tail;
    return head;
}

static void answer_no_path(struct api_request *request)
{
    request->resource = NULL;
    answer_status(request, 404, "NotFound", "the server could not find the requested resource");
}

static void answer_no_method(struct api_request *request)
{
    answer_status(request, 405, "MethodNotAllowed",
                  "the server does not allow this method on the requested resource");
}

static bool allowed(struct api_request *request, unsigned verb)
{
    if (request->resource->verbs & verb)
        return true;
    answer_no_method(request);
    return false;
}

static void route_collection(struct api_request *request)
{
    switch (request->method) {
    case METHOD_GET:
        if (request_flag(request, "watch") && allowed(request, VERB_WATCH))
            handle_watch(request);
        else if (request_flag(request, "watch"))
            return; /* the request was answered */
        else
            handle_list(request);
        return;
    case METHOD_POST:
        if (allowed(request, VERB_CREATE))
            handle_create(request);
        return;
    case METHOD_DELETE:
        if (allowed(request, VERB_DELETE_COLLECTION))
            handle_delete_collection(request);
        return;
    default:
        answer_no_method(request);
    }
}

static void route_object(struct api_request *request)
{
    switch (request->method) {
    case METHOD_GET:
        handle_get(request);
        return;
    case METHOD_PUT:
        if (allowed(request, VERB_UPDATE))
            handle_replace(request);
        return;
    case METHOD_PATCH:
        if (allowed(request, VERB_PATCH))
            handle_patch(request);
        return;
    case METHOD_DELETE:
        if (allowed(request, VERB_DELETE))
            handle_delete(request);
        return;
    default:
        answer_no_method(request);
    }
}

static void route_resource(struct api_request *request)
{
    if (!guard_resource(request) || !retry_accept(request))
        return;
    if (resource_is_visibility(request->resource) && request->subresource.len == 0) {
        answer_no_method(request);
    } else if (request->name.len == 0) {
        route_collection(request);
    } else if (request->subresource.len == 0) {
        route_object(request);
    } else if (request->resource->id == RESOURCE_PODS && str_is(request->subresource, "log") &&
               request->method == METHOD_GET) {
        handle_log(request);
    } else if (request->resource->id == RESOURCE_PODS &&
               (str_is(request->subresource, "exec") || str_is(request->subresource, "attach"))) {
        if (request->method == METHOD_GET || request->method == METHOD_POST)
            handle_exec(request, str_is(request->subresource, "attach"));
        else
            answer_no_method(request);
    } else {
        handle_subresource(request);
    }
}

/* Routes the part of a path after /api/v1/ or /apis/<group>/<version>/, which has one of these forms:
 *     <resource>[/<name>[/<sub>]]
 *     namespaces/<namespace>/<resource>[/<name>[/<sub>]]
 *     namespaces[/<name>]
 */
static void route_group(struct api_request *request, struct str group, struct str version, struct str path)
{
    struct str first = next_segment(&path), name = next_segment(&path);
    struct str plural = first, sub = next_segment(&path);
    if (str_is(first, "namespaces") && sub.len && !str_is(sub, "finalize") && !str_is(sub, "status")) {
        request->namespace_ = name;
        plural = sub;
        name = next_segment(&path);
        sub = next_segment(&path);
        if (!name_is_dns1123_label(request->namespace_)) {
            answer_no_path(request);
            return;
        }
    }
    const struct resource *resource = resource_find(group, version, plural);
    if (!resource || path.len || (request->namespace_.len && !resource->namespaced)) {
        answer_no_path(request);
        return;
    }
    request->resource = resource;
    request->name = name;
    request->subresource = sub;
    if (resource->namespaced && name.len && request->namespace_.len == 0) {
        answer_no_path(request);
        return;
    }
    route_resource(request);
}

void api_log_refuses(struct api *api, const char *why)
{
    snprintf(api->log_refuses, sizeof api->log_refuses, "%s", why ? why : "");
}

/* Answers the health checks. A controller whose log refuses records is alive, keeps its machines and serves
 * reads: only /readyz fails. */
static void route_health(struct api_request *request, bool readiness)
{
    const char *why = request->api->log_refuses;
    bool refuses = readiness && why[0];
    (void)answer_begin(request, refuses ? 503 : 200);
    request->answer_type = "text/plain; charset=utf-8";
    if (refuses)
        buf_printf(&request->answer, "the log takes no records, so writes are refused: %s\n", why);
    else
        buf_add_str(&request->answer, STR("ok"));
}

static bool get_only(struct api_request *request)
{
    if (request->method == METHOD_GET)
        return true;
    answer_no_method(request);
    return false;
}

static void route_path(struct api_request *request)
{
    struct str path = request->path;
    while (path.len > 1 && path.data[path.len - 1] == '/')
        path.len--;
    if (path.len)
        path = (struct str){path.data + 1, path.len - 1};
    struct str whole = path;
    struct str top = next_segment(&path);
    if (!str_is(top, "api") && !str_is(top, "apis") && !guard_path(request))
        return;
    if (str_is(top, "version") || str_is(top, "healthz") || str_is(top, "livez") || str_is(top, "readyz")) {
        if (!get_only(request))
            return;
        if (str_is(top, "version"))
            handle_version(request);
        else
            route_health(request, str_is(top, "readyz"));
        return;
    }
    if (str_is(top, "metrics") && !path.len) {
        if (get_only(request))
            handle_metrics(request);
        return;
    }
    if (str_is(top, "report") && !path.len) {
        if (get_only(request))
            handle_report(request);
        return;
    }
    if (str_is(top, "openapi") || str_starts(top, STR("swagger-2.0.0"))) {
        if (get_only(request))
            handle_openapi(request, whole);
        return;
    }
    if (!str_is(top, "api") && !str_is(top, "apis")) {
        answer_no_path(request);
        return;
    }
    struct str group = str_is(top, "apis") ? next_segment(&path) : STR("");
    struct str version = next_segment(&path);
    if (path.len && handle_review(request, group, version, path))
        return;
    if (path.len)
        route_group(request, group, version, path);
    else if (guard_path(request) && get_only(request))
        handle_discovery(request, whole);
}

/* Dates the built-in objects by the namespace "default", which every cluster has from its first boot. */
static void date_builtins(const struct api_request *request)
{
    const struct object *first =
        object_find(core_objects(request_core(request)), OBJECT_NAMESPACE, STR(""), STR("default"));
    if (first)
        access_builtins_date(request->api->builtins, first->created_ns);
}

void request_handle_again(struct api_request *request)
{
    if (guard_identify(request))
        route_path(request);
}

void request_handle(struct api_request *request)
{
    request->api->stats.requests++;
    date_builtins(request);
    request->outcome = OUTCOME_READY;
    if (request->long_url)
        answer_status(request, 414, "RequestURITooLong", "the URL is longer than %d bytes or %d parameters",
                      URL_BYTES_MAX, QUERY_MAX);
    else if (request->bad_url)
        answer_status(request, 400, "BadRequest", "the URL is malformed");
    else if (!guard_identify(request))
        return;
    else if (request->body_too_large)
        answer_status(request, 413, "RequestEntityTooLarge", "limit is %d bytes", OBJECT_BYTES_MAX);
    else
        route_path(request);
}
