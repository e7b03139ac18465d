/* access.h - who is asking, and may they: authentication, authorization, audit.
 *
 *   access.c    the whole: settings, reloading, one question after the other
 *   tokens.c    bearer tokens from a file
 *   accounts.c  tokens of ServiceAccounts, signed                            (accounts.h)
 *   pki.c       certificates: authorities, issuing, checking (GnuTLS)        (pki.h)
 *   rbac.c      Kubernetes' roles and bindings, evaluated                    (rbac.h)
 *   builtin.c   the roles that always exist
 *   audit.c     one line for each request, written by a thread of its own
 *   folder.c    the credentials of a cluster in one folder, kubeconfig files (folder.h)
 *
 * Without `struct access` (NULL) a server asks nobody who they are: `phalanx up` on the loopback interface.
 * With it, every request is refused (401) that does not name a known user, and (403) whatever no role allows.
 *
 * One thread (the loop's), except that the audit log writes from its own. Files are read again by
 * access_reload(), which keeps what it had when one of them cannot be read.
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
    struct access_extra { /* told on, but decide nothing; keys may occur several times */
        struct str key, value;
    } * extras;
    size_t extra_count;
};
/* The "extra" member of a UserInfo; nothing where there is none. */
struct json_writer;
void access_put_extra(struct json_writer *out, const struct access_user *user);
/* Names that Kubernetes gives a meaning. */
#define ACCESS_ANONYMOUS       "system:anonymous"
#define ACCESS_UNAUTHENTICATED "system:unauthenticated"
#define ACCESS_AUTHENTICATED   "system:authenticated"
#define ACCESS_MASTERS         "system:masters" /* may do everything, whatever roles say */
#define ACCESS_NODES           "system:nodes"
#define ACCESS_NODE_PREFIX     "system:node:"
#define ACCESS_ACCOUNT_PREFIX  "system:serviceaccount:" /* NAMESPACE:NAME */
#define ACCESS_ACCOUNTS        "system:serviceaccounts" /* and with ":NAMESPACE" behind it */
#define ACCESS_LOCAL_USER      "phalanx:local" /* the user of a server without authentication */
bool access_in_group(const struct access_user *user, const char *group);
/* A copy in the arena. */
struct access_user access_user_copy(struct arena *arena, const struct access_user *user);
/* The user of a server without authentication. */
struct access_user access_local_user(struct arena *arena);

/* The attributes of a request that RBAC decides by. */
struct access_attributes {
    struct str verb;                                           /* "get", "list", "deletecollection", ... */
    struct str group, resource, subresource, namespace_, name; /* resource empty: `path` counts */
    struct str path;
};

struct access_options {
    const char *client_ca;    /* PEM file of authorities for client certificates; NULL: none are accepted */
    const char *tokens;       /* token file; NULL: none */
    const char
        *account_key; /* key file for tokens of ServiceAccounts, made when absent; NULL: there are none */
    const char *roles;        /* file of roles beside those in the API; need not exist yet. NULL: none */
    const char *audit;        /* audit log; NULL: none. "-": standard error */
    const char *audit_policy; /* audit.k8s.io/v1 Policy; NULL: metadata of everything but health checks */
    uint64_t audit_bytes_max; /* a file larger than this is put aside; 0: 100 MiB */
    uint32_t audit_files_max; /* files put aside that are kept; 0: 10 */
    bool open;                /* everyone is phalanx:local: for audit alone */
    /* a request without credentials comes from system:anonymous instead of being refused */
    bool anonymous;
};

struct access;
/* ERROR_INVALID, ERROR_IO: a file is missing or malformed. The options' strings must outlive it. */
int access_new(const struct access_options *options, struct access **ret_access, struct error *error);
void access_free(struct access *access);
/* Reads every file again. On failure everything stays as it was. */
int access_reload(struct access *access, struct error *error);
/* Whether a file has changed since it was read (looks at most once a second of `now_ns`, monotonic). */
bool access_files_changed(struct access *access, int64_t now_ns);
uint64_t access_generation(const struct access *access); /* grows with every reload */
const char *access_client_ca(const struct access *access);

/* --- who ---------------------------------------------------------------------------------------------- */

struct access_credentials {
    struct str authorization;          /* the header; empty: none */
    const struct access_user *by_cert; /* the user of a checked certificate; NULL: none was shown */
    bool bad_cert;                     /* one was shown, and was not accepted */
    const struct str *audiences;       /* for one of which a ServiceAccount's token must be; none: this API */
    size_t audience_count;
};
/* ERROR_DENIED: no known user. A ServiceAccount's token counts while the account and the object to which it
 * is bound exist in the core that access_follow() saw. On success the user is in `arena`, with the group
 * system:authenticated. */
int access_authenticate(const struct access *access, const struct access_credentials *credentials,
                        struct arena *arena, struct access_user *ret_user);
/* The key that signs tokens of ServiceAccounts; NULL: this server issues none. */
struct account_key;
const struct account_key *access_account_key(const struct access *access);
/* A DER certificate. */
struct access_blob {
    const uint8_t *data;
    size_t len;
};
/* Names the user of a chain of DER certificates (leaf first), if an authority of ours signed it for
 * clients and it is valid now. ERROR_DENIED with the reason. */
int access_check_certificate(const struct access *access, const struct access_blob *chain, size_t count,
                             struct arena *arena, struct access_user *ret_user, struct error *error);

/* Whether the chain is a controller's (pki_check_controller()). ERROR_DENIED with the reason. */
int access_check_controller(const struct access *access, const struct access_blob *chain, size_t count,
                            struct error *error);

/* --- may they ----------------------------------------------------------------------------------------- */

/* Takes over changes of the API's roles and bindings; call it before questions. Cheap if nothing changed. */
void access_follow(struct access *access, const struct core *core);
bool access_allows(const struct access *access, const struct access_user *user,
                   const struct access_attributes *attributes);
/* May the user write this role or binding, or would it give rights that the user does not hold? Other objects
 * pass. `object`: as it would be stored. ERROR_DENIED names the missing right. */
int access_check_grant(const struct access *access, const struct access_user *user, const struct doc *object,
                       struct error *error);
/* Each rule that the user holds in the namespace, as a PolicyRule. */
void access_visit_rules(const struct access *access, const struct access_user *user, struct str namespace_,
                        void (*visit)(void *context, const struct doc *rule), void *context);

/* --- audit -------------------------------------------------------------------------------------------- */

struct access_record {
    const struct access_user *user, *impersonated; /* impersonated NULL: no impersonation */
    struct access_attributes what;
    struct str api_version, uri, source, user_agent;
    struct str body; /* of a write, as sent; kept only where the policy says Request, never of secrets */
    int64_t received_ns, answered_ns; /* wall clock */
    int code;
    const char *stage; /* "ResponseComplete", "ResponseStarted" for streams */
    struct str reason; /* of a refusal */
    struct str decision, decision_reason;
    struct str violations; /* of the Pod Security level that the namespace audits; empty: none */
};
void access_audit(struct access *access, const struct access_record *record);
/* Lines that were lost because the disk was too slow for the buffer of AUDIT_BUFFER_BYTES. */
uint64_t access_audit_dropped(const struct access *access);
enum { AUDIT_BUFFER_BYTES = 8 * 1024 * 1024 };

/* The built-in ClusterRoles and bindings (builtin.c) as objects, for people to read: they stand in no core.
 * NULL: there are no more, or none of that kind. */
struct access_builtins;
struct access_builtins *access_builtins_new(void);
void access_builtins_free(struct access_builtins *builtins);
/* Sets the creation time of the built-in objects to that of the cluster. */
void access_builtins_date(struct access_builtins *builtins, int64_t created_ns);
const struct object *access_builtin_at(struct access_builtins *builtins, enum object_kind kind, size_t index);

#endif
