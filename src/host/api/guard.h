/* guard.h - the API's doors: authentication, authorization and the audit line of a request. Private to api.
 *
 * With api->access NULL every door is open and every client is phalanx:local. Functions that return false
 * have answered the request: 401, 403, or 400 for malformed headers.
 */
#ifndef PHX_HOST_API_GUARD_H
#define PHX_HOST_API_GUARD_H

#include "host/api/request.h"

/* The identity of the client, as headers and TLS state it; in the request's arena. */
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

/* Sets request->user (and ->impersonator); does nothing when it is set already. */
bool guard_identify(struct api_request *request);
/* May this user do what resource, name, subresource and method say? */
bool guard_resource(struct api_request *request);
/* The same for a path that names no resource. */
bool guard_path(struct api_request *request);
/* Remembers who opened a stream, so that the right to it can be checked again while it is open. NULL: no
 * access control. */
struct guard_pass;
struct guard_pass *guard_pass_new(const struct api_request *request);
void guard_pass_free(struct guard_pass *pass);
/* Returns 0: the stream may go on; 401: its credentials name no user any more, or another one; 403: its right
 * has ended. */
int guard_pass_check(const struct guard_pass *pass, struct api *api, const struct transport *transport);
/* May answers of guard_pass_check be others than at the last look? When roles, tokens or files changed,
 * and once a minute, as certificates and tokens end by themselves. Only where somebody is asked. */
bool guard_look_due(const struct api *api, struct guard_look *look);
/* The message to a client whose stream guard_pass_check has ended: as a text, and as the request's answer. */
const char *guard_ended_text(int code);
void guard_answer_ended(struct api_request *request, int code);
/* The audit line; at most one a stage. Called when the answer is whole or its stream begins. */
void guard_audit(struct api_request *request);

/* Access reviews (authorization.k8s.io, authentication.k8s.io). `path` follows the version. False: no such
 * path, and nothing was answered. */
bool handle_review(struct api_request *request, struct str group, struct str version, struct str path);
/* The reviews, as discovery shows them: they can be created, and nothing of them is kept. */
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
