/* guard.h - authentication, authorization and the audit line of a request. Private to api.
 *
 * If api->access is NULL, everything is allowed and every client is phalanx:local. A function that returns
 * false has answered the request: 401, 403, or 400 for malformed headers.
 */
#ifndef PHX_HOST_API_GUARD_H
#define PHX_HOST_API_GUARD_H

#include "host/api/request.h"

/* The client's identity, as headers and TLS state it. Strings are in the request's arena. */
struct guard_headers {
    struct str authorization, as_user, as_uid;
    struct str *as_groups;
    size_t as_group_count;
    struct access_extra *as_extras; /* Impersonate-Extra-KEY: VALUE */
    size_t as_extra_count;
    const struct access_user *by_cert; /* see access_credentials */
    bool bad_cert;
    struct str source; /* the peer's address */
};

/* Authenticates the client: sets request->user, and request->impersonator. Does nothing on later calls. */
bool guard_identify(struct api_request *request);
/* Authorizes what the request's method, resource, name and subresource ask for. */
bool guard_resource(struct api_request *request);
/* Authorizes a request whose path names no resource. */
bool guard_path(struct api_request *request);
/* Records who opened a stream, so that the right to it can be checked again while the stream is open. Returns
 * NULL if there is no access control. */
struct guard_pass;
struct guard_pass *guard_pass_new(const struct api_request *request);
void guard_pass_free(struct guard_pass *pass);
/* Checks a stream's right again. Returns 0 if the stream may continue; 401 if its credentials no longer name
 * a user, or name another one; 403 if the user has lost the right. */
int guard_pass_check(const struct guard_pass *pass, struct api *api, const struct transport *transport);
/* Returns whether guard_pass_check() may give other results than at the last check, and updates `look`. That
 * is so after a change of roles, tokens or files, and once a minute, as certificates and tokens expire.
 * Requires access control. */
bool guard_look_due(const struct api *api, struct guard_look *look);
/* The message to a client whose stream has ended with the result `code` of guard_pass_check(): as a text, and
 * as the request's answer. */
const char *guard_ended_text(int code);
void guard_answer_ended(struct api_request *request, int code);
/* Writes the request's audit line, once. Call it when the answer is complete, or when its stream begins. */
void guard_audit(struct api_request *request);

/* Answers an access review (authorization.k8s.io, authentication.k8s.io). `path` is what follows the version
 * in the URL. Returns false, and answers nothing, if there is no such path. */
bool handle_review(struct api_request *request, struct str group, struct str version, struct str path);
/* The reviews, as discovery shows them: they can be created, and are not stored. */
enum review {
    REVIEW_SELF,
    REVIEW_TOKEN,
    REVIEW_LOCAL_ACCESS,
    REVIEW_SELF_ACCESS,
    REVIEW_SELF_RULES,
    REVIEW_ACCESS,
    REVIEWS
};
extern const struct resource review_table[REVIEWS];

#endif
