#include "host/access/access.h"

#include <errno.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "base/check.h"
#include "doc/json.h"
#include "base/units.h"
#include "doc/yaml.h"
#include "core/core.h"
#include "core/object/object.h"
#include "host/access/accounts.h"
#include "host/access/audit.h"
#include "host/access/pki.h"
#include "host/access/rbac.h"
#include "host/access/tokens.h"
#include "os/file.h"

enum { ROLES_BYTES_MAX = 16 * 1024 * 1024, CERT_GROUPS_MAX = 64, WATCHED_FILES = 5 };
#define LOOK_NS NS_PER_SECOND

struct file_mark { /* the state of a file when it was read */
    struct timespec changed;
    ino_t inode;
    off_t size;
};

struct access {
    struct access_options options;
    struct tokens *tokens;
    struct account_key *accounts; /* NULL: none */
    const struct core *core;      /* the core with the accounts; NULL until access_follow() */
    gnutls_x509_trust_list_t trust;
    struct arena roles_arena; /* holds the roles file */
    struct doc_list roles;
    struct rbac *policy;
    uint64_t kind_versions[4];
    struct audit *audit;
    struct file_mark marks[WATCHED_FILES];
    int64_t looked_ns;
    uint64_t generation;
};

/* --- users -------------------------------------------------------------------------------------------- */

bool access_in_group(const struct access_user *user, const char *group)
{
    for (size_t i = 0; i < user->group_count; i++)
        if (str_is(user->groups[i], group))
            return true;
    return false;
}

static struct access_user copy_with(struct arena *arena, const struct access_user *user, const char *group)
{
    struct access_user copy = {.name = arena_str(arena, user->name), .uid = arena_str(arena, user->uid)};
    copy.groups = ARENA_ARRAY(arena, struct str, user->group_count + 1);
    for (size_t i = 0; i < user->group_count; i++)
        copy.groups[copy.group_count++] = arena_str(arena, user->groups[i]);
    if (group && !access_in_group(user, group))
        copy.groups[copy.group_count++] = str_from(group);
    copy.extras = ARENA_ARRAY(arena, struct access_extra, user->extra_count);
    for (size_t i = 0; i < user->extra_count; i++)
        copy.extras[copy.extra_count++] = (struct access_extra){arena_str(arena, user->extras[i].key),
                                                                arena_str(arena, user->extras[i].value)};
    return copy;
}

void access_put_extra(struct json_writer *out, const struct access_user *user)
{
    if (user->extra_count == 0)
        return;
    json_key(out, "extra");
    json_begin_object(out);
    for (size_t i = 0; i < user->extra_count; i++) {
        bool first = true;
        for (size_t before = 0; before < i; before++)
            first = first && !str_equal(user->extras[before].key, user->extras[i].key);
        if (!first)
            continue;
        json_key_str(out, user->extras[i].key);
        json_begin_array(out);
        for (size_t same = i; same < user->extra_count; same++)
            if (str_equal(user->extras[same].key, user->extras[i].key))
                json_put_str(out, user->extras[same].value);
        json_end_array(out);
    }
    json_end_object(out);
}

struct access_user access_user_copy(struct arena *arena, const struct access_user *user)
{
    return copy_with(arena, user, NULL);
}

struct access_user access_local_user(struct arena *arena)
{
    struct str groups[] = {STR(ACCESS_MASTERS), STR(ACCESS_AUTHENTICATED)};
    struct access_user user = {.name = STR(ACCESS_LOCAL_USER), .groups = groups, .group_count = 2};
    return access_user_copy(arena, &user);
}

/* --- files -------------------------------------------------------------------------------------------- */

static void mark_files(const struct access *access, struct file_mark marks[WATCHED_FILES])
{
    const struct access_options *options = &access->options;
    const char *paths[WATCHED_FILES] = {options->client_ca, options->tokens, options->roles,
                                        options->audit_policy, NULL};
    char revoked[PKI_PATH_MAX];
    if (options->client_ca) {
        pki_revoked_path(options->client_ca, revoked);
        paths[WATCHED_FILES - 1] = revoked;
    }
    for (int i = 0; i < WATCHED_FILES; i++) {
        struct stat info;
        marks[i] = (struct file_mark){0};
        if (paths[i] && stat(paths[i], &info) == 0)
            marks[i] = (struct file_mark){info.st_mtim, info.st_ino, info.st_size};
    }
}

bool access_files_changed(struct access *access, int64_t now_ns)
{
    struct file_mark marks[WATCHED_FILES];
    if (now_ns - access->looked_ns < LOOK_NS)
        return false;
    access->looked_ns = now_ns;
    mark_files(access, marks);
    for (int i = 0; i < WATCHED_FILES; i++) {
        const struct file_mark *old = &access->marks[i], *new = &marks[i];
        if (old->changed.tv_sec != new->changed.tv_sec || old->changed.tv_nsec != new->changed.tv_nsec ||
            old->inode != new->inode || old->size != new->size)
            return true;
    }
    return false;
}

static int load_tokens(const char *path, struct tokens **ret_tokens, struct error *error)
{
    struct buf text BUF_CLEANUP = {0};
    int rc = os_file_read(path, TOKEN_FILE_BYTES_MAX, &text, error);
    if (rc == 0 && (rc = tokens_parse(buf_str(&text), ret_tokens, error)) < 0)
        error_wrap(error, "%s", path);
    if (text.data)
        gnutls_memset(text.data, 0, text.len);
    return rc;
}

/* Reads the roles file. An absent file gives no roles: it may be created later, or deleted to revoke all of
 * them. */
static int load_roles(const char *path, struct arena *arena, struct doc_list *ret_roles, struct error *error)
{
    struct buf text BUF_CLEANUP = {0};
    struct stat info;
    if (stat(path, &info) != 0 && errno == ENOENT)
        return 0;
    int rc = os_file_read(path, ROLES_BYTES_MAX, &text, error);
    if (rc < 0)
        return rc;
    arena->limit_bytes = 4 * ROLES_BYTES_MAX;
    rc = yaml_parse_all(arena, buf_str(&text), ret_roles, error);
    return rc < 0 ? error_wrap(error, "%s", path) : 0;
}

/* --- the policy --------------------------------------------------------------------------------------- */

static void bind_all(struct rbac *policy, struct str role, struct str namespace_, const struct doc *names,
                     bool group)
{
    for (size_t i = 0; i < doc_len(names); i++)
        rbac_bind(policy, role, namespace_, group, doc_str(doc_at(names, i), STR("")));
}

/* Adds the short form: bindings: [{role: edit, namespaces: [a], users: [bob], groups: [team]}]. */
static int add_short(struct rbac *policy, const struct doc *document, struct error *error)
{
    const struct doc *bindings = doc_get(document, "bindings");
    if (!bindings || bindings->kind != DOC_ARRAY)
        return error_set(error, ERROR_INVALID,
                         "a document is a role or binding (kind: ...), or has a list `bindings`");
    for (size_t i = 0; i < bindings->array.len; i++) {
        const struct doc *binding = bindings->array.items[i];
        const struct doc *namespaces = doc_get(binding, "namespaces");
        struct str role = doc_str(doc_get(binding, "role"), STR(""));
        if (role.len == 0 || (namespaces && namespaces->kind != DOC_ARRAY) ||
            (doc_len(doc_get(binding, "users")) == 0 && doc_len(doc_get(binding, "groups")) == 0))
            return error_set(error, ERROR_INVALID,
                             "bindings[%zu] (line %u): role, and users or groups, are needed; namespaces is "
                             "a list",
                             i, binding->line);
        for (size_t k = 0; k < (namespaces ? namespaces->array.len : 1); k++) {
            struct str space = doc_str(doc_at(namespaces, k), STR(""));
            if (namespaces && space.len == 0)
                return error_set(error, ERROR_INVALID, "bindings[%zu] (line %u): a namespace has a name", i,
                                 binding->line);
            bind_all(policy, role, space, doc_get(binding, "users"), false);
            bind_all(policy, role, space, doc_get(binding, "groups"), true);
        }
    }
    return 0;
}

/* Adds the roles file. Each of its short bindings must name an existing role: a misspelt name would silently
 * give no rights. */
static int add_roles_file(struct rbac *policy, const struct doc_list *roles, struct error *error)
{
    for (size_t i = 0; i < roles->len; i++) {
        const struct doc *document = roles->items[i];
        int rc = doc_get(document, "kind") ? rbac_add(policy, document, error)
                                           : add_short(policy, document, error);
        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; i < roles->len; i++) {
        const struct doc *bindings = doc_get(roles->items[i], "bindings");
        for (size_t k = 0; k < doc_len(bindings); k++) {
            struct str role = doc_str(doc_get(doc_at(bindings, k), "role"), STR(""));
            if (!rbac_has_role(policy, (struct str){0}, role))
                return error_set(error, ERROR_INVALID,
                                 "bindings[%zu]: role \"" STR_FORMAT "\" does not exist", k, STR_ARG(role));
        }
    }
    return 0;
}

static const enum object_kind role_kinds[] = {OBJECT_CLUSTER_ROLE, OBJECT_ROLE, OBJECT_CLUSTER_ROLE_BINDING,
                                              OBJECT_ROLE_BINDING};

/* Builds the policy from the built-in roles and the roles file. */
static int build(struct access *access, const struct doc_list *roles, struct rbac **ret_policy,
                 struct error *error)
{
    struct rbac *policy = rbac_new();
    rbac_add_builtin(policy);
    int rc = add_roles_file(policy, roles, error);
    if (rc < 0) {
        rbac_free(policy);
        return error_wrap(error, "%s", access->options.roles);
    }
    rbac_seal(policy);
    *ret_policy = policy;
    return 0;
}

static void follow_object(void *context, const struct object *object)
{
    rbac_follow(context, (int)object->kind, object->uid, object->changed_seq, object->document);
}

void access_follow(struct access *access, const struct core *core)
{
    const struct object_store *objects = core_objects(core);
    bool changed = false;
    access->core = core;
    for (size_t i = 0; i < sizeof role_kinds / sizeof *role_kinds; i++) {
        enum object_kind kind = role_kinds[i];
        uint64_t version = object_kind_version(objects, kind) + 1; /* 0: not read yet */
        if (version == access->kind_versions[i])
            continue;
        access->kind_versions[i] = version;
        rbac_follow_begin(access->policy, (int)kind);
        object_visit(objects, kind, (struct str){0}, follow_object, access->policy);
        rbac_follow_end(access->policy, (int)kind);
        changed = true;
    }
    if (changed)
        rbac_seal(access->policy);
}

/* --- the whole ---------------------------------------------------------------------------------------- */

int access_reload(struct access *access, struct error *error)
{
    const struct access_options *options = &access->options;
    struct tokens *tokens = NULL;
    gnutls_x509_trust_list_t trust = NULL;
    struct arena roles_arena = {0};
    struct doc_list roles = {0};
    struct rbac *policy = NULL;
    mark_files(access, access->marks); /* first, so that a change during reading is noticed the next time */
    int rc = options->tokens ? load_tokens(options->tokens, &tokens, error) : 0;
    if (rc == 0 && options->client_ca)
        rc = pki_trust_load(options->client_ca, &trust, error);
    if (rc == 0 && options->roles)
        rc = load_roles(options->roles, &roles_arena, &roles, error);
    if (rc == 0)
        rc = build(access, &roles, &policy, error);
    if (rc == 0)
        rc = audit_reload(access->audit, options->audit_policy, error);
    if (rc < 0) {
        rbac_free(policy);
        tokens_free(tokens);
        if (trust)
            gnutls_x509_trust_list_deinit(trust, 1);
        arena_done(&roles_arena);
        return rc;
    }
    tokens_free(access->tokens);
    if (access->trust)
        gnutls_x509_trust_list_deinit(access->trust, 1);
    arena_done(&access->roles_arena);
    rbac_free(access->policy);
    access->tokens = tokens;
    access->trust = trust;
    access->roles_arena = roles_arena;
    access->roles = roles;
    access->policy = policy;
    memset(access->kind_versions, 0, sizeof access->kind_versions);
    access->generation++;
    return 0;
}

int access_new(const struct access_options *options, struct access **ret_access, struct error *error)
{
    struct access *access = mem_alloc(sizeof *access);
    access->options = *options;
    int rc = audit_new(options, &access->audit, error);
    if (rc == 0 && options->account_key)
        rc = account_key_open(options->account_key, &access->accounts, error);
    if (rc == 0)
        rc = access_reload(access, error);
    if (rc < 0) {
        access_free(access);
        return rc;
    }
    *ret_access = access;
    return 0;
}

void access_free(struct access *access)
{
    if (!access)
        return;
    audit_free(access->audit);
    tokens_free(access->tokens);
    account_key_free(access->accounts);
    if (access->trust)
        gnutls_x509_trust_list_deinit(access->trust, 1);
    arena_done(&access->roles_arena);
    rbac_free(access->policy);
    mem_free(access);
}

uint64_t access_generation(const struct access *access)
{
    return access->generation;
}

const char *access_client_ca(const struct access *access)
{
    return access->options.client_ca;
}

const struct account_key *access_account_key(const struct access *access)
{
    return access->accounts;
}

/* --- who ---------------------------------------------------------------------------------------------- */

/* Returns whether the account, and the object that the token is bound to, still exist with the same uids. */
static bool account_lives(const struct core *core, const struct account_claims *claims)
{
    const struct object_store *objects = core_objects(core);
    const struct object *account =
        object_find(objects, OBJECT_SERVICE_ACCOUNT, claims->namespace_, claims->name);
    if (!account || account->uid != claims->uid)
        return false;
    if (claims->bound_kind.len == 0)
        return true;
    if (str_is(claims->bound_kind, "Pod"))
        return jobs_find_task(core_jobs(core), claims->bound_uid) != NULL;
    const struct object *secret = object_find(objects, OBJECT_SECRET, claims->namespace_, claims->bound_name);
    return secret && secret->uid == claims->bound_uid;
}

static bool is_for(const struct account_claims *claims, const struct access_credentials *credentials)
{
    static const struct str own = STR(ACCOUNT_AUDIENCE);
    const struct str *wanted = credentials->audience_count ? credentials->audiences : &own;
    size_t wanted_count = credentials->audience_count ? credentials->audience_count : 1;
    for (size_t i = 0; i < claims->audience_count; i++)
        for (size_t k = 0; k < wanted_count; k++)
            if (str_equal(claims->audiences[i], wanted[k]))
                return true;
    return false;
}

/* Makes the user as Kubernetes names it, with the token's claims as extras. */
static struct access_user account_user(struct arena *arena, const struct account_claims *claims)
{
    char uid[UID_TEXT_MAX], bound[UID_TEXT_MAX];
    uid_text(claims->uid, uid);
    uid_text(claims->bound_uid, bound);
    struct access_user user = {
        .name = arena_printf(arena, ACCESS_ACCOUNT_PREFIX STR_FORMAT ":" STR_FORMAT,
                             STR_ARG(claims->namespace_), STR_ARG(claims->name)),
        .uid = arena_str(arena, str_from(uid)),
        .groups = ARENA_ARRAY(arena, struct str, 2),
        .group_count = 2,
        .extras = ARENA_ARRAY(arena, struct access_extra, 3),
        .extra_count = 1,
    };
    user.groups[0] = STR(ACCESS_ACCOUNTS);
    user.groups[1] = arena_printf(arena, ACCESS_ACCOUNTS ":" STR_FORMAT, STR_ARG(claims->namespace_));
    user.extras[0] = (struct access_extra){STR("authentication.kubernetes.io/credential-id"),
                                           arena_printf(arena, "JTI=" STR_FORMAT, STR_ARG(claims->id))};
    if (!str_is(claims->bound_kind, "Pod"))
        return user;
    user.extras[user.extra_count++] =
        (struct access_extra){STR("authentication.kubernetes.io/pod-name"), claims->bound_name};
    user.extras[user.extra_count++] =
        (struct access_extra){STR("authentication.kubernetes.io/pod-uid"), arena_str(arena, str_from(bound))};
    return user;
}

static bool authenticate_account(const struct access *access, const struct access_credentials *credentials,
                                 struct str token, struct arena *arena, struct access_user *ret_user)
{
    struct account_claims claims;
    struct timespec now;
    struct error error;
    if (!access->accounts || !access->core ||
        account_token_read(access->accounts, arena, token, &claims, &error) < 0)
        return false;
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec < claims.from_s || now.tv_sec >= claims.until_s || !is_for(&claims, credentials) ||
        !account_lives(access->core, &claims))
        return false;
    *ret_user = account_user(arena, &claims);
    return true;
}

int access_authenticate(const struct access *access, const struct access_credentials *credentials,
                        struct arena *arena, struct access_user *ret_user)
{
    struct str header = credentials->authorization, scheme, token, own = STR(ACCOUNT_AUDIENCE);
    bool shown = header.len > 0 || credentials->bad_cert;
    if (access->options.open) {
        *ret_user = access_local_user(arena);
        return 0;
    }
    if (credentials->by_cert) {
        *ret_user = copy_with(arena, credentials->by_cert, ACCESS_AUTHENTICATED);
        return 0;
    }
    if (str_cut(header, ' ', &scheme, &token) && scheme.len == 6 &&
        strncasecmp(scheme.data, "Bearer", 6) == 0) {
        const struct access_user *user = tokens_find(access->tokens, str_trim(token));
        if (user && is_for(&(struct account_claims){.audiences = &own, .audience_count = 1}, credentials)) {
            *ret_user = copy_with(arena, user, ACCESS_AUTHENTICATED);
            return 0;
        }
        struct access_user account;
        if (authenticate_account(access, credentials, str_trim(token), arena, &account)) {
            *ret_user = copy_with(arena, &account, ACCESS_AUTHENTICATED);
            return 0;
        }
    }
    if (shown || !access->options.anonymous)
        return ERROR_DENIED;
    *ret_user =
        copy_with(arena, &(struct access_user){.name = STR(ACCESS_ANONYMOUS)}, ACCESS_UNAUTHENTICATED);
    return 0;
}

/* Reads a part of a certificate's name. Returns false if it is absent or not text. */
static bool name_part(gnutls_x509_crt_t cert, const char *oid, unsigned index, struct arena *arena,
                      struct str *ret_text)
{
    char text[256];
    size_t len = sizeof text;
    if (gnutls_x509_crt_get_dn_by_oid(cert, oid, index, 0, text, &len) < 0 || len == 0 ||
        memchr(text, 0, len) || !str_is_utf8((struct str){text, len}))
        return false;
    *ret_text = arena_str(arena, (struct str){text, len});
    return true;
}

static void blobs_data(const struct access_blob *chain, size_t count, gnutls_datum_t data[PKI_CHAIN_MAX])
{
    for (size_t i = 0; i < count && i < PKI_CHAIN_MAX; i++)
        data[i] = (gnutls_datum_t){(unsigned char *)chain[i].data, (unsigned)chain[i].len};
}

int access_check_controller(const struct access *access, const struct access_blob *chain, size_t count,
                            struct error *error)
{
    gnutls_datum_t data[PKI_CHAIN_MAX];
    if (!access->trust)
        return error_set(error, ERROR_DENIED, "no client certificates are accepted here");
    blobs_data(chain, count, data);
    return pki_check_controller(access->trust, data, count, error);
}

int access_check_certificate(const struct access *access, const struct access_blob *chain, size_t count,
                             struct arena *arena, struct access_user *ret_user, struct error *error)
{
    gnutls_datum_t data[PKI_CHAIN_MAX];
    gnutls_x509_crt_t leaf;
    if (!access->trust)
        return error_set(error, ERROR_DENIED, "no client certificates are accepted here");
    blobs_data(chain, count, data);
    int rc = pki_check_chain(access->trust, data, count, GNUTLS_KP_TLS_WWW_CLIENT, &leaf, error);
    if (rc < 0)
        return rc;
    struct access_user user = {.groups = ARENA_ARRAY(arena, struct str, CERT_GROUPS_MAX)};
    if (name_part(leaf, GNUTLS_OID_X520_COMMON_NAME, 0, arena, &user.name)) {
        while (user.group_count < CERT_GROUPS_MAX &&
               name_part(leaf, GNUTLS_OID_X520_ORGANIZATION_NAME, (unsigned)user.group_count, arena,
                         &user.groups[user.group_count]))
            user.group_count++;
        *ret_user = user;
    } else {
        rc = error_set(error, ERROR_DENIED, "the certificate has no common name");
    }
    gnutls_x509_crt_deinit(leaf);
    return rc;
}

/* --- may they ----------------------------------------------------------------------------------------- */

/* Returns whether an agent writes a Node other than its own. */
static bool is_other_node(const struct access_user *user, const struct access_attributes *what)
{
    bool reads = str_is(what->verb, "get") || str_is(what->verb, "list") || str_is(what->verb, "watch");
    if (reads || !str_is(what->resource, "nodes") || !access_in_group(user, ACCESS_NODES))
        return false;
    struct str prefix = STR(ACCESS_NODE_PREFIX), own = {0};
    if (str_starts(user->name, prefix))
        own = (struct str){user->name.data + prefix.len, user->name.len - prefix.len};
    return own.len == 0 || !str_equal(own, what->name);
}

bool access_allows(const struct access *access, const struct access_user *user,
                   const struct access_attributes *attributes)
{
    if (access_in_group(user, ACCESS_MASTERS))
        return true;
    return !is_other_node(user, attributes) && rbac_allows(access->policy, user, attributes);
}

static bool may(const struct access *access, const struct access_user *user, const char *verb,
                const char *resource, struct str namespace_, struct str name)
{
    struct access_attributes what = {.verb = str_from(verb),
                                     .group = STR("rbac.authorization.k8s.io"),
                                     .resource = str_from(resource),
                                     .namespace_ = namespace_,
                                     .name = name};
    return access_allows(access, user, &what);
}

int access_check_grant(const struct access *access, const struct access_user *user, const struct doc *object,
                       struct error *error)
{
    struct str kind = doc_str(doc_get(object, "kind"), STR(""));
    struct str name = doc_str(doc_path(object, "metadata", "name", NULL), STR(""));
    bool cluster = str_starts(kind, STR("Cluster"));
    struct str namespace_ =
        cluster ? STR("") : doc_str(doc_path(object, "metadata", "namespace", NULL), STR("default"));
    const struct doc *given = doc_get(object, "rules");
    bool held = true;
    if (access_in_group(user, ACCESS_MASTERS))
        return 0;
    if (str_is(kind, "Role") || str_is(kind, "ClusterRole")) {
        const char *plural = cluster ? "clusterroles" : "roles";
        if (may(access, user, "escalate", plural, namespace_, name))
            return 0;
        /* Aggregation includes roles that do not exist yet. */
        held = doc_len(doc_path(object, "aggregationRule", "clusterRoleSelectors", NULL)) == 0 ||
               rbac_allows(access->policy, user,
                           &(struct access_attributes){STR("*"), STR("*"), STR("*"), .name = STR("")});
    } else if (str_is(kind, "RoleBinding") || str_is(kind, "ClusterRoleBinding")) {
        const struct doc *ref = doc_get(object, "roleRef");
        struct str role = doc_str(doc_get(ref, "name"), STR(""));
        bool of_cluster = str_is(doc_str(doc_get(ref, "kind"), STR("")), "ClusterRole");
        if (may(access, user, "bind", of_cluster ? "clusterroles" : "roles", namespace_, role))
            return 0;
        given = rbac_role_rules(access->policy, of_cluster ? STR("") : namespace_, role);
        held = given != NULL;
    } else {
        return 0;
    }
    int covers = held ? rbac_covers(access->policy, user, namespace_, given) : 0;
    if (covers == ERROR_LIMIT)
        return error_set(
            error, ERROR_DENIED,
            "the role has more than %d combinations of verb, group, resource and name, too many to "
            "check: split it",
            RBAC_ATOMS_MAX);
    if (covers == 1)
        return 0;
    return error_set(error, ERROR_DENIED,
                     "user \"" STR_FORMAT "\" is attempting to grant RBAC permissions not currently held",
                     STR_ARG(user->name));
}

void access_visit_rules(const struct access *access, const struct access_user *user, struct str namespace_,
                        void (*visit)(void *context, const struct doc *rule), void *context)
{
    rbac_visit_rules(access->policy, user, namespace_, visit, context);
}

/* --- audit -------------------------------------------------------------------------------------------- */

void access_audit(struct access *access, const struct access_record *record)
{
    audit_write(access->audit, record);
}

uint64_t access_audit_dropped(const struct access *access)
{
    return audit_dropped(access->audit);
}
