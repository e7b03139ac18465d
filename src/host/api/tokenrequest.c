/* tokenrequest.c - serviceaccounts/<name>/token: TokenRequest of authentication.k8s.io/v1, for `kubectl
 * create token`.
 *
 * The server stores no tokens: a token is valid because it is signed (host/access/accounts.h), until it
 * expires or the object that it is bound to is deleted. Refusals have the words of Kubernetes
 * (pkg/apis/authentication/validation, registry/core/serviceaccount/storage/token.go). */
#include <time.h>

#include "host/access/accounts.h"
#include "host/access/pki.h"
#include "host/api/request.h"
#include "host/api/subresource.h"
#include "host/api/write.h"

enum { SECONDS_DEFAULT = 3600, SECONDS_MIN = 600, SECONDS_GIVEN_MAX = 365 * 24 * 3600 };
#define SECONDS_ASKED_MAX (INT64_C(1) << 32)

struct asking {
    struct api_request *request;
    const struct doc *body;
    struct account_claims claims;
    int64_t seconds;
};

static bool invalid(const struct asking *asking, const char *field, int64_t value, const char *why)
{
    answer_status(asking->request, 422, "Invalid",
                  "TokenRequest.authentication.k8s.io \"\" is invalid: %s: Invalid value: %lld: %s", field,
                  (long long)value, why);
    return false;
}

static bool read_times(struct asking *asking)
{
    const struct doc *seconds = doc_path(asking->body, "spec", "expirationSeconds", NULL);
    asking->seconds = doc_int(seconds, SECONDS_DEFAULT);
    if (asking->seconds < SECONDS_MIN)
        return invalid(asking, "spec.expirationSeconds", asking->seconds,
                       "may not specify a duration less than 10 minutes");
    if (asking->seconds > SECONDS_ASKED_MAX)
        return invalid(asking, "spec.expirationSeconds", asking->seconds,
                       "may not specify a duration larger than 2^32 seconds");
    /* as with kube-apiserver's service-account-max-token-expiration */
    if (asking->seconds > SECONDS_GIVEN_MAX)
        asking->seconds = SECONDS_GIVEN_MAX;
    asking->claims.from_s = time(NULL); /* the clock by which it will be checked */
    asking->claims.until_s = asking->claims.from_s + asking->seconds;
    return true;
}

static bool read_audiences(struct asking *asking)
{
    const struct doc *audiences = doc_path(asking->body, "spec", "audiences", NULL);
    size_t count = doc_len(audiences);
    struct account_claims *claims = &asking->claims;
    if (count > ACCOUNT_AUDIENCES_MAX)
        return invalid(asking, "spec.audiences", (int64_t)count, "too many audiences");
    claims->audiences = ARENA_ARRAY(&asking->request->arena, struct str, count + 1);
    for (; claims->audience_count < count; claims->audience_count++)
        claims->audiences[claims->audience_count] =
            doc_str(doc_at(audiences, claims->audience_count), STR(""));
    if (count == 0)
        claims->audiences[claims->audience_count++] = STR(ACCOUNT_AUDIENCE);
    return true;
}

/* Reads the Pod or Secret that the token is bound to. */
static bool read_bound(struct asking *asking)
{
    struct api_request *request = asking->request;
    const struct doc *bound = doc_path(asking->body, "spec", "boundObjectRef", NULL);
    struct str kind = doc_str(doc_get(bound, "kind"), STR(""));
    struct str name = doc_str(doc_get(bound, "name"), STR("")), uid = doc_str(doc_get(bound, "uid"), STR(""));
    struct object_ref object;
    char known[UID_TEXT_MAX];
    if (doc_len(bound) == 0)
        return true;
    bool pod = str_is(kind, "Pod");
    if ((!pod && !str_is(kind, "Secret")) ||
        !str_is(doc_str(doc_get(bound, "apiVersion"), STR("v1")), "v1")) {
        answer_status(request, 400, "BadRequest",
                      "cannot bind token for serviceaccount \"" STR_FORMAT "\" to object of type " STR_FORMAT
                      ": Pods and Secrets of v1 can be",
                      STR_ARG(request->name), STR_ARG(kind));
        return false;
    }
    if (!resource_get(&resource_table[pod ? RESOURCE_PODS : RESOURCE_SECRETS], request_core(request),
                      request->namespace_, name, &object)) {
        answer_status(request, 404, "NotFound", "%s \"" STR_FORMAT "\" not found", pod ? "pods" : "secrets",
                      STR_ARG(name));
        return false;
    }
    asking->claims.bound_kind = pod ? STR("Pod") : STR("Secret");
    asking->claims.bound_name = name;
    asking->claims.bound_uid = object_name(object).uid;
    uid_text(asking->claims.bound_uid, known);
    if (uid.len == 0 || str_is(uid, known))
        return true;
    answer_status(request, 409, "Conflict",
                  "the UID in the bound object reference (" STR_FORMAT ") does not match the UID in record. "
                  "The object might have been deleted and then recreated",
                  STR_ARG(uid));
    return false;
}

static void answer_token(struct asking *asking)
{
    struct api_request *request = asking->request;
    struct buf token BUF_CLEANUP = {0};
    char until[32], created[32];
    account_token_write(access_account_key(request->api->access), &asking->claims, &token);
    time_format(asking->claims.until_s * NS_PER_SECOND, until);
    time_format(asking->claims.from_s * NS_PER_SECOND, created);
    struct json_writer out = answer_begin(request, 201);
    json_begin_object(&out);
    json_pair_text(&out, "kind", "TokenRequest");
    json_pair_text(&out, "apiVersion", "authentication.k8s.io/v1");
    json_key(&out, "metadata");
    json_begin_object(&out);
    json_pair_str(&out, "name", request->name);
    json_pair_str(&out, "namespace", request->namespace_);
    json_pair_text(&out, "creationTimestamp", created);
    json_end_object(&out);
    json_key(&out, "spec");
    json_begin_object(&out);
    json_key(&out, "audiences");
    json_begin_array(&out);
    for (size_t i = 0; i < asking->claims.audience_count; i++)
        json_put_str(&out, asking->claims.audiences[i]);
    json_end_array(&out);
    json_pair_int(&out, "expirationSeconds", asking->seconds);
    json_key(&out, "boundObjectRef");
    const struct doc *bound = doc_path(asking->body, "spec", "boundObjectRef", NULL);
    if (doc_len(bound))
        json_put_doc(&out, bound);
    else
        json_put_null(&out);
    json_end_object(&out);
    json_key(&out, "status");
    json_begin_object(&out);
    json_pair_str(&out, "token", buf_str(&token));
    json_pair_text(&out, "expirationTimestamp", until);
    json_end_object(&out);
    json_end_object(&out);
}

void handle_token_request(struct api_request *request)
{
    struct object_ref object;
    struct doc *body = NULL;
    char id[PKI_TOKEN_TEXT];
    if (!resource_get(request->resource, request_core(request), request->namespace_, request->name,
                      &object)) {
        answer_not_found(request);
        return;
    }
    if (!request->api->access || !access_account_key(request->api->access)) {
        answer_status(request, 405, "MethodNotAllowed",
                      "this server issues no tokens: it does not authenticate users");
        return;
    }
    if (!body_parse(request, &body))
        return;
    pki_random_token(id);
    struct asking asking = {.request = request,
                            .body = body,
                            .claims = {.namespace_ = request->namespace_,
                                       .name = request->name,
                                       .uid = object.object->uid,
                                       .id = str_from(id)}};
    if (read_times(&asking) && read_audiences(&asking) && read_bound(&asking))
        answer_token(&asking);
}
