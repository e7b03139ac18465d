/* access.h - authentication, authorization and audit of the API's requests.
 *
 *   access.c    settings, reloading, authentication and authorization
 *   tokens.c    bearer tokens from a file
 *   accounts.c  signed tokens of ServiceAccounts                             (accounts.h)
 *   pki.c       certificates: authorities, issuing, checking (GnuTLS)        (pki.h)
 *   revoke.c    revoked certificates                                         (pki.h)
 *   rbac.c      Kubernetes' roles and bindings, evaluated                    (rbac.h)
 *   builtin.c   the roles that always exist
 *   audit.c     one line for each request, written by a separate thread
 *   folder.c    the credentials of a cluster in one folder, kubeconfig files (folder.h)
 *
 * A server without `struct access` (NULL) authenticates nobody, as `phalanx up` on the loopback interface.
 * With it, a request without a known user is refused with 401, and one that no role allows with 403.
 *
 * Threading: one thread (the loop's); the audit log writes from its own thread.
 */
#ifndef PHX_HOST_ACCESS_ACCESS_H
#define PHX_HOST_ACCESS_ACCESS_H

#include "base/arena.h"
#include "doc/doc.h"
#include "base/error.h"
#include "core/object/object.h"

struct core;

struct access_user {
    struct str name, uid; /* name empty: unknown */
    struct str *groups;
    size_t group_count;
    struct access_extra { /* passed on, but without effect on rights; a key may occur several times */
        struct str key, value;
    } * extras;
    size_t extra_count;
};
/* Writes the "extra" member of a UserInfo, if the user has extras. */
struct json_writer;
void access_put_extra(struct json_writer *out, const struct access_user *user);
/* Names that have a meaning in Kubernetes. */
#define ACCESS_ANONYMOUS       "system:anonymous"
#define ACCESS_UNAUTHENTICATED "system:unauthenticated"
#define ACCESS_AUTHENTICATED   "system:authenticated"
#define ACCESS_MASTERS         "system:masters" /* may do everything, whatever roles say */
#define ACCESS_NODES           "system:nodes"
#define ACCESS_NODE_PREFIX     "system:node:"
#define ACCESS_ACCOUNT_PREFIX  "system:serviceaccount:" /* NAMESPACE:NAME */
#define ACCESS_ACCOUNTS        "system:serviceaccounts" /* also with ":NAMESPACE" appended */
#define ACCESS_LOCAL_USER      "phalanx:local"          /* the user of a server without authentication */
bool access_in_group(const struct access_user *user, const char *group);
/* Returns a copy in the arena. */
struct access_user access_user_copy(struct arena *arena, const struct access_user *user);
/* Returns the user of a server without authentication. */
struct access_user access_local_user(struct arena *arena);

/* The attributes of a request by which RBAC decides. */
struct access_attributes {
    struct str verb;                                           /* "get", "list", "deletecollection", ... */
    struct str group, resource, subresource, namespace_, name; /* resource empty: `path` counts */
    struct str path;
};

struct access_options {
    const char *client_ca; /* PEM file of authorities for client certificates; NULL: none are accepted */
    const char *tokens;    /* token file; NULL: none */
    const char
        *account_key;  /* key file for ServiceAccounts' tokens, created if absent; NULL: no such tokens */
    const char *roles; /* file of roles in addition to the API's; need not exist yet; NULL: none */
    const char *audit; /* audit log; NULL: none; "-": standard error */
    const char *audit_policy; /* audit.k8s.io/v1 Policy; NULL: metadata of everything but health checks */
    uint64_t audit_bytes_max; /* size at which the file is renamed and a new one begun; 0: 100 MiB */
    uint32_t audit_files_max; /* renamed files that are kept; 0: 10 */
    bool open;                /* every client is phalanx:local: for audit without authentication */
    /* a request without credentials comes from system:anonymous instead of being refused */
    bool anonymous;
};

struct access;
/* Reads the files. The options' strings must outlive the access. Fails if a file is missing (except `roles`)
 * or malformed (ERROR_INVALID). */
int access_new(const struct access_options *options, struct access **ret_access, struct error *error);
void access_free(struct access *access); /* NULL is fine */
/* Reads every file but the account key again. On failure everything stays as it was. */
int access_reload(struct access *access, struct error *error);
/* Returns whether a file has changed since it was read. Checks at most once a second of `now_ns` (monotonic),
 * and returns false in between. */
bool access_files_changed(struct access *access, int64_t now_ns);
uint64_t access_generation(const struct access *access); /* grows with every reload */
const char *access_client_ca(const struct access *access);

/* --- authentication ----------------------------------------------------------------------------------- */

struct access_credentials {
    struct str authorization;          /* the header; empty: none */
    const struct access_user *by_cert; /* the user of an accepted certificate; NULL: none */
    bool bad_cert;                     /* the client showed a certificate that was not accepted */
    const struct str *audiences;       /* a token must be for one of these; none: for this API */
    size_t audience_count;
};
/* Finds the user that the credentials name: by certificate, by the token file, or by a ServiceAccount's
 * token, which counts while the account and the object that it is bound to exist in the core of
 * access_follow(). The user is in `arena`, with the group system:authenticated added. Without any
 * credentials, and with the option `anonymous`, the user is system:anonymous. ERROR_DENIED: no known user. */
int access_authenticate(const struct access *access, const struct access_credentials *credentials,
                        struct arena *arena, struct access_user *ret_user);
/* Returns the key that signs ServiceAccounts' tokens, or NULL if this server issues none. */
struct account_key;
const struct account_key *access_account_key(const struct access *access);
/* A DER certificate. */
struct access_blob {
    const uint8_t *data;
    size_t len;
};
/* Sets *ret_user, in `arena`, to the user whom a chain of certificates (leaf first) names. ERROR_DENIED, with
 * the reason: none of our authorities signed the chain for clients, or it is not valid now. */
int access_check_certificate(const struct access *access, const struct access_blob *chain, size_t count,
                             struct arena *arena, struct access_user *ret_user, struct error *error);

/* Checks that the chain is a controller's (pki_check_controller()). ERROR_DENIED says why it is not. */
int access_check_controller(const struct access *access, const struct access_blob *chain, size_t count,
                            struct error *error);

/* --- authorization ------------------------------------------------------------------------------------ */

/* Applies changes of the API's roles and bindings. Call it before the functions below. Cheap if nothing has
 * changed. The core must stay valid until the next call. */
void access_follow(struct access *access, const struct core *core);
bool access_allows(const struct access *access, const struct access_user *user,
                   const struct access_attributes *attributes);
/* Checks that a role or binding, as it would be stored, grants no right that the user lacks. Accepts any
 * other kind of object. ERROR_DENIED: it grants more, and the user has no right to `escalate` or `bind`. */
int access_check_grant(const struct access *access, const struct access_user *user, const struct doc *object,
                       struct error *error);
/* Calls `visit` with each rule that the user holds in the namespace, as a PolicyRule. */
void access_visit_rules(const struct access *access, const struct access_user *user, struct str namespace_,
                        void (*visit)(void *context, const struct doc *rule), void *context);

/* --- audit -------------------------------------------------------------------------------------------- */

struct access_record {
    const struct access_user *user, *impersonated; /* impersonated NULL: no impersonation */
    struct access_attributes what;
    struct str api_version, uri, source, user_agent;
    struct str body; /* of a write, as sent; logged only at the level Request, and never of secrets */
    int64_t received_ns, answered_ns; /* wall clock */
    int code;
    const char *stage; /* "ResponseComplete", "ResponseStarted" for streams */
    struct str reason; /* of a refusal */
    struct str decision, decision_reason;
    struct str violations; /* of the Pod Security level that the namespace audits; empty: none */
};
/* Queues a line for the audit log, if there is one and its policy wants the line. Never waits for the
 * disk. */
void access_audit(struct access *access, const struct access_record *record);
/* Returns the number of lines that were lost because the disk was too slow, or writing failed. */
uint64_t access_audit_dropped(const struct access *access);
enum { AUDIT_BUFFER_BYTES = 8 * 1024 * 1024 };

/* The built-in ClusterRoles and bindings (builtin.c) as objects, for users to read; no core stores them. */
struct access_builtins;
struct access_builtins *access_builtins_new(void);
void access_builtins_free(struct access_builtins *builtins);
/* Sets the creation time of the built-in objects to that of the cluster. */
void access_builtins_date(struct access_builtins *builtins, int64_t created_ns);
/* Returns the built-in object at `index`, or NULL if there are no more, or none of that kind. */
const struct object *access_builtin_at(struct access_builtins *builtins, enum object_kind kind, size_t index);

#endif
