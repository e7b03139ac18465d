/* review.c - access reviews, for `kubectl auth can-i` and `kubectl auth whoami`. Sources:
 * authorization.k8s.io/v1 and authentication.k8s.io/v1. Bodies are JSON, or protobuf from clients that
 * prefer it; answers are JSON. */
#include "host/api/guard.h"
#include "kube/protobuf.h"
#include "host/api/write.h"

#define ROW(of_group, of_plural, of_singular, of_kind, in_namespace)                                         \
    {                                                                                                        \
        .id = RESOURCES, .group = (of_group), .version = "v1", .plural = (of_plural),                        \
        .singular = (of_singular), .kind = (of_kind), .verbs = VERB_CREATE, .namespaced = (in_namespace)     \
    }
#define AUTHENTICATION "authentication.k8s.io"
#define AUTHORIZATION  "authorization.k8s.io"
const struct resource review_table[REVIEWS] = {
    [REVIEW_SELF] =
        ROW(AUTHENTICATION, "selfsubjectreviews", "selfsubjectreview", "SelfSubjectReview", false),
    [REVIEW_TOKEN] = ROW(AUTHENTICATION, "tokenreviews", "tokenreview", "TokenReview", false),
    [REVIEW_LOCAL_ACCESS] = ROW(AUTHORIZATION, "localsubjectaccessreviews", "localsubjectaccessreview",
                                "LocalSubjectAccessReview", true),
    [REVIEW_SELF_ACCESS] = ROW(AUTHORIZATION, "selfsubjectaccessreviews", "selfsubjectaccessreview",
                               "SelfSubjectAccessReview", false),
    [REVIEW_SELF_RULES] = ROW(AUTHORIZATION, "selfsubjectrulesreviews", "selfsubjectrulesreview",
                              "SelfSubjectRulesReview", false),
    [REVIEW_ACCESS] =
        ROW(AUTHORIZATION, "subjectaccessreviews", "subjectaccessreview", "SubjectAccessReview", false),
};

/* Reviews are small, because users without any right may send them. */
enum { REVIEW_BYTES_MAX = 64 * 1024 };

/* --- bodies ------------------------------------------------------------------------------------------- */

static struct str text_at(const struct doc *object, const char *key)
{
    return doc_str(doc_get(object, key), STR(""));
}

static void read_attributes(const struct doc *spec, struct access_attributes *ret_what)
{
    const struct doc *resource = doc_get(spec, "resourceAttributes");
    const struct doc *path = doc_get(spec, "nonResourceAttributes");
    if (resource)
        *ret_what = (struct access_attributes){.verb = text_at(resource, "verb"),
                                               .group = text_at(resource, "group"),
                                               .resource = text_at(resource, "resource"),
                                               .subresource = text_at(resource, "subresource"),
                                               .namespace_ = text_at(resource, "namespace"),
                                               .name = text_at(resource, "name")};
    else
        *ret_what = (struct access_attributes){.verb = text_at(path, "verb"), .path = text_at(path, "path")};
}

static struct access_user read_user(struct arena *arena, const struct doc *spec)
{
    const struct doc *groups = doc_get(spec, "groups");
    struct access_user user = {.name = text_at(spec, "user"), .uid = text_at(spec, "uid")};
    user.groups = ARENA_ARRAY(arena, struct str, doc_len(groups));
    for (size_t i = 0; i < doc_len(groups); i++)
        user.groups[user.group_count++] = doc_str(doc_at(groups, i), STR(""));
    return user;
}

/* --- answers ------------------------------------------------------------------------------------------ */

static void begin_answer(struct api_request *request, struct json_writer *out, const struct resource *row,
                         const struct doc *spec)
{
    *out = answer_begin(request, 201);
    json_begin_object(out);
    json_pair_text(out, "kind", row->kind);
    json_key(out, "apiVersion");
    json_put_str(out, arena_printf(&request->arena, "%s/%s", row->group, request->review_version));
    json_key(out, "metadata");
    json_begin_object(out);
    json_key(out, "creationTimestamp");
    json_put_null(out);
    json_end_object(out);
    json_key(out, "spec");
    if (spec)
        json_put_doc(out, spec);
    else
        json_put_raw(out, STR("{}"));
    json_key(out, "status");
    json_begin_object(out);
}

static void end_answer(struct json_writer *out)
{
    json_end_object(out);
    json_end_object(out);
}

static void put_user(struct json_writer *out, const struct access_user *user)
{
    json_begin_object(out);
    json_pair_str(out, "username", user->name);
    if (user->uid.len)
        json_pair_str(out, "uid", user->uid);
    json_key(out, "groups");
    json_begin_array(out);
    for (size_t i = 0; i < user->group_count; i++)
        json_put_str(out, user->groups[i]);
    json_end_array(out);
    access_put_extra(out, user);
    json_end_object(out);
}

static void answer_self(struct api_request *request, const struct resource *row)
{
    struct json_writer out;
    begin_answer(request, &out, row, NULL);
    json_key(&out, "userInfo");
    put_user(&out, request->user);
    end_answer(&out);
}

enum { AUDIENCES_MAX = 64 }; /* of one TokenReview */

static void answer_token(struct api_request *request, const struct resource *row, const struct doc *spec)
{
    struct access *access = request->api->access;
    struct access_user user;
    struct arena *arena = &request->arena;
    struct str header = arena_printf(arena, "Bearer " STR_FORMAT, STR_ARG(text_at(spec, "token")));
    struct doc *held = doc_new(arena, DOC_ARRAY); /* those of the audiences in the review that apply */
    const struct doc *asked = doc_get(spec, "audiences");
    struct access_credentials credentials = {.authorization = header};
    bool known =
        access && doc_len(asked) == 0 && access_authenticate(access, &credentials, arena, &user) == 0;
    for (size_t i = 0; access && i < doc_len(asked) && i < AUDIENCES_MAX; i++) {
        struct str audience = doc_str(doc_at(asked, i), STR(""));
        credentials.audiences = &audience;
        credentials.audience_count = 1;
        if (access_authenticate(access, &credentials, arena, &user) == 0)
            doc_push(arena, held, doc_new_str(arena, audience));
    }
    known = known || doc_len(held) > 0;
    struct json_writer out;
    begin_answer(request, &out, row, NULL); /* the token is not returned */
    if (known) {
        json_pair_bool(&out, "authenticated", true);
        json_key(&out, "user");
        put_user(&out, &user);
        if (doc_len(held)) {
            json_key(&out, "audiences");
            json_put_doc(&out, held);
        }
    } else {
        json_key(&out, "user");
        json_put_raw(&out, STR("{}"));
        json_pair_text(&out, "error", "invalid bearer token");
    }
    end_answer(&out);
}

static void answer_access(struct api_request *request, const struct resource *row, const struct doc *spec,
                          const struct access_user *user)
{
    struct access_attributes what;
    struct json_writer out;
    read_attributes(spec, &what);
    bool allowed = !request->api->access || access_allows(request->api->access, user, &what);
    begin_answer(request, &out, row, spec);
    json_pair_bool(&out, "allowed", allowed);
    if (allowed && !request->api->access)
        json_pair_text(&out, "reason", "this server does not authenticate users");
    end_answer(&out);
}

struct listing {
    struct json_writer *out;
    bool resources;
};

static void put_member(struct json_writer *out, const struct doc *rule, const char *key)
{
    if (doc_len(doc_get(rule, key)) == 0)
        return;
    json_key(out, key);
    json_put_doc(out, doc_get(rule, key));
}

static void put_rule(void *context, const struct doc *rule)
{
    struct listing *listing = context;
    if ((doc_len(doc_get(rule, "resources")) > 0) != listing->resources)
        return;
    json_begin_object(listing->out);
    put_member(listing->out, rule, "verbs");
    put_member(listing->out, rule, "apiGroups");
    put_member(listing->out, rule, "resources");
    put_member(listing->out, rule, "resourceNames");
    put_member(listing->out, rule, "nonResourceURLs");
    json_end_object(listing->out);
}

static void put_rules(struct api_request *request, struct json_writer *out, const char *key,
                      struct str namespace_, bool resources)
{
    struct listing listing = {out, resources};
    json_key(out, key);
    json_begin_array(out);
    if (request->api->access)
        access_visit_rules(request->api->access, request->user, namespace_, put_rule, &listing);
    else if (resources)
        json_put_raw(out, STR("{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"]}"));
    else
        json_put_raw(out, STR("{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}"));
    json_end_array(out);
}

static void answer_rules(struct api_request *request, const struct resource *row, const struct doc *spec)
{
    struct json_writer out;
    struct str namespace_ = text_at(spec, "namespace");
    if (namespace_.len == 0) {
        answer_status(request, 400, "BadRequest", "no namespace on request");
        return;
    }
    begin_answer(request, &out, row, NULL);
    put_rules(request, &out, "resourceRules", namespace_, true);
    put_rules(request, &out, "nonResourceRules", namespace_, false);
    json_pair_bool(&out, "incomplete", false);
    end_answer(&out);
}

/* --- the way here ------------------------------------------------------------------------------------- */

static bool read_spec(struct api_request *request, enum review review, struct doc **ret_spec)
{
    struct doc *body = NULL;
    bool of_others = review == REVIEW_ACCESS || review == REVIEW_LOCAL_ACCESS || review == REVIEW_TOKEN;
    if (request->body.len > REVIEW_BYTES_MAX) {
        answer_status(request, 413, "RequestEntityTooLarge", "a %s has at most %d bytes, this one has %zu",
                      review_table[review].kind, REVIEW_BYTES_MAX, request->body.len);
    } else if (str_is(body_media_type(request), PROTOBUF_MEDIA_TYPE) && of_others) {
        answer_status(request, 415, "UnsupportedMediaType", "send this review as application/json");
    } else if (str_is(body_media_type(request), PROTOBUF_MEDIA_TYPE)) {
        body = protobuf_review(&request->arena, buf_str(&request->body), review == REVIEW_SELF_RULES);
        if (!body)
            answer_status(request, 400, "BadRequest", "the protobuf body is malformed");
    } else if (!body_parse(request, &body)) {
        body = NULL;
    }
    if (body)
        *ret_spec = doc_get(body, "spec");
    return body != NULL;
}

/* A local review is about the namespace of its URL alone: its right is given there. Answers 400 otherwise. */
static bool is_local(struct api_request *request, const struct doc *spec)
{
    const struct doc *resource = doc_get(spec, "resourceAttributes");
    if (resource && !doc_get(spec, "nonResourceAttributes") &&
        str_equal(text_at(resource, "namespace"), request->namespace_))
        return true;
    answer_status(request, 400, "BadRequest",
                  "spec.resourceAttributes.namespace must match namespace: \"" STR_FORMAT "\"",
                  STR_ARG(request->namespace_));
    return false;
}

static bool allowed(struct api_request *request, const struct resource *row)
{
    request->what = (struct access_attributes){.verb = STR("create"),
                                               .group = str_from(row->group),
                                               .resource = str_from(row->plural),
                                               .namespace_ = request->namespace_,
                                               .path = request->path};
    if (!request->api->access || access_allows(request->api->access, request->user, &request->what))
        return true;
    request->audit_reason = "Forbidden";
    answer_status(request, 403, "Forbidden",
                  "%s.%s is forbidden: User \"" STR_FORMAT "\" cannot create resource \"%s\" in API group "
                  "\"%s\" %s" STR_FORMAT "%s",
                  row->plural, row->group, STR_ARG(request->user->name), row->plural, row->group,
                  request->namespace_.len ? "in the namespace \"" : "at the cluster scope",
                  STR_ARG(request->namespace_), request->namespace_.len ? "\"" : "");
    return false;
}

static void answer_review(struct api_request *request, enum review review)
{
    const struct resource *row = &review_table[review];
    struct doc *spec = NULL;
    if (!allowed(request, row) || !read_spec(request, review, &spec))
        return;
    struct access_user user = *request->user;
    switch (review) {
    case REVIEW_SELF:
        answer_self(request, row);
        break;
    case REVIEW_TOKEN:
        answer_token(request, row, spec);
        break;
    case REVIEW_SELF_RULES:
        answer_rules(request, row, spec);
        break;
    case REVIEW_LOCAL_ACCESS:
        if (!is_local(request, spec))
            return;
        /* fall through */
    case REVIEW_ACCESS:
        user = read_user(&request->arena, spec);
        /* fall through */
    case REVIEW_SELF_ACCESS:
        answer_access(request, row, spec, &user);
        break;
    case REVIEWS:
        CHECK_UNREACHABLE();
    }
}

bool handle_review(struct api_request *request, struct str group, struct str version, struct str path)
{
    struct str space = {0}, rest, plural = path;
    bool in_namespace = str_cut(path, '/', &rest, &plural) && str_is(rest, "namespaces") &&
                        str_cut(plural, '/', &space, &plural);
    if (!in_namespace)
        plural = path;
    for (int i = 0; i < REVIEWS; i++) {
        const struct resource *row = &review_table[i];
        /* kubectl 1.27 supports whoami of these versions only. */
        bool old = i == REVIEW_SELF && (str_is(version, "v1beta1") || str_is(version, "v1alpha1"));
        if ((!old && !str_is(version, "v1")) || !str_is(group, row->group) || !str_is(plural, row->plural) ||
            row->namespaced != in_namespace)
            continue;
        request->namespace_ = space;
        request->review_version = old ? (str_is(version, "v1beta1") ? "v1beta1" : "v1alpha1") : "v1";
        if (request->method == METHOD_POST)
            answer_review(request, (enum review)i);
        else
            answer_status(request, 405, "MethodNotAllowed",
                          "the server does not allow this method on the requested resource");
        return true;
    }
    return false;
}
