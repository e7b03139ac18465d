#include "host/api/guard.h"

#include <stdio.h>
#include <string.h>

#define LOOK_AGAIN_NS (60 * NS_PER_SECOND)

static bool is_health(struct str path)
{
    return str_is(path, "/healthz") || str_is(path, "/livez") || str_is(path, "/readyz");
}

/* --- who ---------------------------------------------------------------------------------------------- */

static bool refuse_identity(struct api_request *request)
{
    request->resource = NULL;
    answer_status(request, 401, "Unauthorized", "Unauthorized");
    return false;
}

/* Returns the first extra that the user may not impersonate, or NULL. Each value is a separate right:
 * resource userextras/KEY, resource name VALUE. */
static const struct access_extra *forbidden_extra(const struct api_request *request,
                                                  const struct access_user *user)
{
    const struct guard_headers *headers = request->headers;
    for (size_t i = 0; i < headers->as_extra_count; i++) {
        struct access_attributes what = {.verb = STR("impersonate"),
                                         .group = STR("authentication.k8s.io"),
                                         .resource = STR("userextras"),
                                         .subresource = headers->as_extras[i].key,
                                         .name = headers->as_extras[i].value};
        if (!access_allows(request->api->access, user, &what))
            return &headers->as_extras[i];
    }
    return NULL;
}

static bool may_become(const struct api_request *request, const struct access_user *user,
                       const char *resource, struct str group, struct str name)
{
    struct access_attributes what = {
        .verb = STR("impersonate"), .group = group, .resource = str_from(resource), .name = name};
    return access_allows(request->api->access, user, &what);
}

static bool refuse_impersonation(struct api_request *request, const struct access_user *user,
                                 const char *resource, struct str group, struct str name)
{
    request->resource = NULL;
    request->audit_reason = "Forbidden";
    answer_status(request, 403, "Forbidden",
                  "%s" STR_FORMAT STR_FORMAT " \"" STR_FORMAT "\" is forbidden: User \"" STR_FORMAT
                  "\" cannot impersonate resource \"%s\" in API group \"" STR_FORMAT
                  "\" at the cluster scope",
                  resource, STR_ARG(group.len ? STR(".") : STR("")), STR_ARG(group), STR_ARG(name),
                  STR_ARG(user->name), resource, STR_ARG(group));
    return false;
}

/* Applies kubectl's --as, --as-group and --as-uid (Kubernetes' "User impersonation"). */
static bool impersonate(struct api_request *request, struct access_user *user)
{
    const struct guard_headers *headers = request->headers;
    struct arena *arena = &request->arena;
    struct str authentication = STR("authentication.k8s.io"), none = {0};
    if (headers->as_user.len == 0) {
        if (headers->as_group_count == 0 && headers->as_uid.len == 0 && headers->as_extra_count == 0)
            return true;
        answer_status(request, 400, "BadRequest", "groups, a uid or extras are impersonated without a user");
        return false;
    }
    struct str prefix = STR("system:serviceaccount:"), space, account;
    bool is_account = str_starts(headers->as_user, prefix);
    struct str rest = {headers->as_user.data + prefix.len, headers->as_user.len - prefix.len};
    if (is_account && str_cut(rest, ':', &space, &account)) {
        if (!may_become(request, user, "serviceaccounts", none, account))
            return refuse_impersonation(request, user, "serviceaccounts", none, account);
    } else if (!may_become(request, user, "users", none, headers->as_user)) {
        return refuse_impersonation(request, user, "users", none, headers->as_user);
    }
    for (size_t i = 0; i < headers->as_group_count; i++)
        if (!may_become(request, user, "groups", none, headers->as_groups[i]))
            return refuse_impersonation(request, user, "groups", none, headers->as_groups[i]);
    if (headers->as_uid.len && !may_become(request, user, "uids", authentication, headers->as_uid))
        return refuse_impersonation(request, user, "uids", authentication, headers->as_uid);
    const struct access_extra *extra = forbidden_extra(request, user);
    if (extra) {
        char *resource =
            arena_strdup(arena, arena_printf(arena, "userextras/" STR_FORMAT, STR_ARG(extra->key)));
        return refuse_impersonation(request, user, resource, authentication, extra->value);
    }
    struct access_user *before = ARENA_NEW(arena, struct access_user);
    *before = *user;
    request->impersonator = before;
    struct access_user after = {.name = headers->as_user,
                                .uid = headers->as_uid,
                                .extras = headers->as_extras,
                                .extra_count = headers->as_extra_count};
    after.groups = ARENA_ARRAY(arena, struct str, headers->as_group_count + 1);
    for (size_t i = 0; i < headers->as_group_count; i++)
        after.groups[after.group_count++] = headers->as_groups[i];
    const char *everybody =
        str_is(after.name, ACCESS_ANONYMOUS) ? ACCESS_UNAUTHENTICATED : ACCESS_AUTHENTICATED;
    if (!access_in_group(&after, everybody))
        after.groups[after.group_count++] = str_from(everybody);
    *user = after;
    return true;
}

bool guard_identify(struct api_request *request)
{
    struct access *access = request->api->access;
    static const struct guard_headers none;
    if (request->user)
        return !request->refused;
    if (!request->headers)
        request->headers = &none;
    request->received_ns = request_now(request);
    struct access_user *user = ARENA_NEW(&request->arena, struct access_user);
    if (!access) {
        *user = access_local_user(&request->arena);
        request->user = user;
        return true;
    }
    access_follow(access, request_core(request));
    struct access_credentials credentials = {.authorization = request->headers->authorization,
                                             .by_cert = request->headers->by_cert,
                                             .bad_cert = request->headers->bad_cert};
    if (access_authenticate(access, &credentials, &request->arena, user) < 0) {
        static struct str unauthenticated[] = {STR(ACCESS_UNAUTHENTICATED)};
        *user =
            (struct access_user){.name = STR(ACCESS_ANONYMOUS), .groups = unauthenticated, .group_count = 1};
        request->user = user;
        request->refused = !is_health(request->path);
        return !request->refused || refuse_identity(request);
    }
    request->user = user;
    request->refused = !impersonate(request, user);
    return !request->refused;
}

/* --- may they ----------------------------------------------------------------------------------------- */

static struct str verb_of(const struct api_request *request, bool collection)
{
    switch (request->method) {
    case METHOD_GET:
        if (collection && request_flag(request, "watch")) /* a watch of one object is served as a get */
            return STR("watch");
        return collection ? STR("list") : STR("get");
    case METHOD_POST:
        return STR("create");
    case METHOD_PUT:
        return STR("update");
    case METHOD_PATCH:
        return STR("patch");
    case METHOD_DELETE:
        return collection ? STR("deletecollection") : STR("delete");
    default:
        return STR("");
    }
}

/* Returns the name if a list or watch selects one name, so that resourceNames apply. */
static struct str selected_name(const struct api_request *request)
{
    struct str selector = request_query(request, "fieldSelector"), prefix = STR("metadata.name=");
    if (!str_starts(selector, prefix))
        return (struct str){0};
    struct str name = {selector.data + prefix.len, selector.len - prefix.len};
    if (name.len && name.data[0] == '=')
        name = (struct str){name.data + 1, name.len - 1};
    return memchr(name.data, ',', name.len) ? (struct str){0} : name;
}

static void describe(struct api_request *request)
{
    const struct resource *resource = request->resource;
    struct access_attributes *what = &request->what;
    bool collection = request->name.len == 0;
    *what = (struct access_attributes){.verb = verb_of(request, collection),
                                       .group = str_from(resource->group),
                                       .resource = str_from(resource->plural),
                                       .subresource = request->subresource,
                                       .namespace_ = request->namespace_,
                                       .name = request->name,
                                       .path = request->path};
    if (collection && request->method != METHOD_POST)
        what->name = selected_name(request);
    if (resource->id == RESOURCE_NAMESPACES)
        what->namespace_ = request->name;
    /* A websocket begins with GET; a user who may read a Pod must not therefore be allowed to act in it. */
    if (resource->id == RESOURCE_PODS &&
        (str_is(what->subresource, "exec") || str_is(what->subresource, "attach") ||
         str_is(what->subresource, "portforward")))
        what->verb = STR("create");
}

static struct str cannot(struct api_request *request, const struct access_attributes *what)
{
    struct arena *arena = &request->arena;
    struct str user = request->user->name;
    if (what->resource.len == 0)
        return arena_printf(arena, "User \"" STR_FORMAT "\" cannot " STR_FORMAT " path \"" STR_FORMAT "\"",
                            STR_ARG(user), STR_ARG(what->verb), STR_ARG(what->path));
    struct str where = STR("at the cluster scope");
    if (what->namespace_.len)
        where = arena_printf(arena, "in the namespace \"" STR_FORMAT "\"", STR_ARG(what->namespace_));
    return arena_printf(arena,
                        "User \"" STR_FORMAT "\" cannot " STR_FORMAT " resource \"" STR_FORMAT "%s" STR_FORMAT
                        "\" in API group \"" STR_FORMAT "\" " STR_FORMAT,
                        STR_ARG(user), STR_ARG(what->verb), STR_ARG(what->resource),
                        what->subresource.len ? "/" : "", STR_ARG(what->subresource), STR_ARG(what->group),
                        STR_ARG(where));
}

/* Answers 403 in the words of Kubernetes (apiserver's forbidden status). */
static void refuse(struct api_request *request, struct str why)
{
    request->audit_reason = "Forbidden";
    if (!request->resource) {
        answer_status(request, 403, "Forbidden", "forbidden: " STR_FORMAT, STR_ARG(why));
        return;
    }
    struct str title = resource_title(&request->arena, request->resource);
    if (request->what.name.len)
        answer_status(request, 403, "Forbidden", STR_FORMAT " \"" STR_FORMAT "\" is forbidden: " STR_FORMAT,
                      STR_ARG(title), STR_ARG(request->what.name), STR_ARG(why));
    else
        answer_status(request, 403, "Forbidden", STR_FORMAT " is forbidden: " STR_FORMAT, STR_ARG(title),
                      STR_ARG(why));
}

static bool ask(struct api_request *request, const struct access_attributes *what)
{
    if (!request->api->access || access_allows(request->api->access, request->user, what))
        return true;
    refuse(request, cannot(request, what));
    return false;
}

/* Asks for the right to create as well: server-side apply of an absent object creates it. */
static bool ask_apply(struct api_request *request)
{
    struct object_ref object;
    if (request->method != METHOD_PATCH || request->subresource.len || !request->api->access ||
        !str_starts(request->content_type, STR("application/apply-patch")) ||
        resource_get(request->resource, request_core(request), request->namespace_, request->name, &object))
        return true;
    struct access_attributes what = request->what;
    what.verb = STR("create");
    return ask(request, &what);
}

bool guard_resource(struct api_request *request)
{
    describe(request);
    return ask(request, &request->what) && ask_apply(request);
}

bool guard_path(struct api_request *request)
{
    static const char *const verbs[] = {"get", "post", "put", "patch", "delete", ""};
    request->what =
        (struct access_attributes){.verb = str_from(verbs[request->method]), .path = request->path};
    return is_health(request->path) || ask(request, &request->what);
}

bool guard_write(struct api_request *request, struct write_event *write)
{
    if (request->api->access)
        write->user = request->user->name;
    if (!guard_pods(request, write))
        return false;
    bool role = write->object == OBJECT_ROLE || write->object == OBJECT_CLUSTER_ROLE ||
                write->object == OBJECT_ROLE_BINDING || write->object == OBJECT_CLUSTER_ROLE_BINDING;
    if (!request->api->access || !role || write->verb == WRITE_DELETE)
        return true;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *object;
    struct error error;
    if (json_parse(&arena, write->body, &object, NULL) < 0)
        return true; /* the core reports the error */
    access_follow(request->api->access, request_core(request));
    if (access_check_grant(request->api->access, request->user, object, &error) == 0)
        return true;
    refuse(request, str_from(error.text));
    return false;
}

/* --- for how long ------------------------------------------------------------------------------------- */

struct guard_pass {
    struct arena arena;
    struct access_user who, as; /* the credentials' user; the impersonated user (name empty: none) */
    struct access_attributes what;
    struct str authorization;
};

struct guard_pass *guard_pass_new(const struct api_request *request)
{
    if (!request->api->access || !request->user || !request->headers)
        return NULL;
    struct guard_pass *pass = mem_alloc(sizeof *pass);
    struct arena *arena = &pass->arena;
    const struct access_attributes *what = &request->what;
    pass->who = access_user_copy(arena, request->impersonator ? request->impersonator : request->user);
    if (request->impersonator)
        pass->as = access_user_copy(arena, request->user);
    pass->what = (struct access_attributes){.verb = arena_str(arena, what->verb),
                                            .group = arena_str(arena, what->group),
                                            .resource = arena_str(arena, what->resource),
                                            .subresource = arena_str(arena, what->subresource),
                                            .namespace_ = arena_str(arena, what->namespace_),
                                            .name = arena_str(arena, what->name),
                                            .path = arena_str(arena, what->path)};
    pass->authorization = arena_str(arena, request->headers->authorization);
    return pass;
}

void guard_pass_free(struct guard_pass *pass)
{
    if (!pass)
        return;
    explicit_bzero((char *)pass->authorization.data, pass->authorization.len);
    arena_done(&pass->arena);
    mem_free(pass);
}

int guard_pass_check(const struct guard_pass *pass, struct api *api, const struct transport *transport)
{
    struct access *access = api->access;
    struct access_credentials credentials = {.authorization = pass->authorization};
    struct access_user now;
    struct arena scratch ARENA_CLEANUP = {0};
    credentials.by_cert = transport_certificate(transport, &credentials.bad_cert);
    access_follow(access, api->hooks.core(api->hooks.context));
    if (access_authenticate(access, &credentials, &scratch, &now) < 0 || !str_equal(now.name, pass->who.name))
        return 401;
    return access_allows(access, pass->as.name.len ? &pass->as : &now, &pass->what) ? 0 : 403;
}

/* Returns a number that changes with everything that affects an answer, except the expiry of certificates
 * and tokens, and the end of Pods that tokens are bound to. */
static uint64_t guard_stamp(const struct api *api)
{
    static const enum object_kind kinds[] = {OBJECT_ROLE,         OBJECT_ROLE_BINDING,
                                             OBJECT_CLUSTER_ROLE, OBJECT_CLUSTER_ROLE_BINDING,
                                             OBJECT_SECRET,       OBJECT_SERVICE_ACCOUNT};
    const struct object_store *objects = core_objects(api->hooks.core(api->hooks.context));
    uint64_t stamp = access_generation(api->access);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        stamp += object_kind_version(objects, kinds[i]); /* each of these only grows */
    return stamp;
}

const char *guard_ended_text(int code)
{
    return code == 401 ? "Unauthorized: the user who opened it is no longer known"
                       : "the right to this has ended";
}

void guard_answer_ended(struct api_request *request, int code)
{
    if (code == 401)
        answer_status(request, 401, "Unauthorized", "Unauthorized");
    else
        answer_status(request, 403, "Forbidden", "%s", guard_ended_text(code));
}

bool guard_look_due(const struct api *api, struct guard_look *look)
{
    uint64_t stamp = guard_stamp(api);
    int64_t now_ns = api->hooks.now_ns(api->hooks.context);
    if (stamp == look->stamp && now_ns < look->due_ns)
        return false;
    look->stamp = stamp;
    look->due_ns = now_ns + LOOK_AGAIN_NS;
    return true;
}

/* --- audit -------------------------------------------------------------------------------------------- */

/* The user of a request that was refused before its user was authenticated. */
static const struct access_user *unidentified(void)
{
    static struct str groups[] = {STR(ACCESS_UNAUTHENTICATED)};
    static const struct access_user user = {
        .name = STR(ACCESS_ANONYMOUS), .groups = groups, .group_count = 1};
    return &user;
}

void guard_audit(struct api_request *request)
{
    struct access *access = request->api->access;
    if (!access || request->audited)
        return;
    request->audited = true;
    if (!request->user) {
        request->user = unidentified();
        request->received_ns = request_now(request);
        request->audit_reason = "Refused";
    }
    const struct access_user *user = request->impersonator ? request->impersonator : request->user;
    struct access_record record = {
        .user = user,
        .impersonated = request->impersonator ? request->user : NULL,
        .what = request->what,
        .api_version = request->resource ? str_from(request->resource->version) : STR(""),
        .uri = request->uri,
        .source = request->headers ? request->headers->source : (struct str){0},
        .user_agent = request->user_agent,
        .body = buf_str(&request->body),
        .received_ns = request->received_ns,
        .answered_ns = request_now(request),
        .code = request->outcome == OUTCOME_STREAM ? 200 : request->code,
        .stage = request->outcome == OUTCOME_STREAM ? "ResponseStarted" : "ResponseComplete",
        .reason = str_from(request->audit_reason),
        .violations = request->audit_violations,
        .decision = request->audit_reason ? STR("forbid") : STR("allow"),
    };
    if (request->code == 401) {
        record.reason = STR("Unauthorized");
        record.decision = (struct str){0};
    }
    if (record.what.verb.len == 0 && record.what.resource.len == 0)
        record.what = (struct access_attributes){.verb = verb_of(request, false), .path = request->path};
    access_audit(access, &record);
}
