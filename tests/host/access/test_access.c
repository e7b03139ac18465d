/* Credentials in a folder: who is known by them and who is not, what roles files give, what is audited. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <gnutls/x509.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "doc/json.h"
#include "doc/yaml.h"
#include "host/access/audit.h"
#include "host/access/folder.h"
#include "os/file.h"

static char folder[] = "/tmp/phalanx-access-XXXXXX";
static const char *const hosts[] = {"localhost", "127.0.0.1"};

static const char *at(const char *name)
{
    static char paths[8][300];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_file(const char *path, const char *text)
{
    struct error error;
    if (os_file_write(path, str_from(text), 0600, true, &error) < 0)
        fail_msg("%s", error.text);
}

static int set_up(void **state)
{
    static const char *const groups[] = {"team-a", "team-b"};
    struct error error = {0};
    if (!mkdtemp(folder) || folder_init(at("c"), hosts, 2, &error) < 0 ||
        folder_client(at("c"), "alice", groups, 2, 0, &error) < 0 ||
        folder_agent(at("c"), "m-1", &error) < 0 || folder_init(at("evil"), hosts, 2, &error) < 0 ||
        folder_client(at("evil"), "alice", groups, 2, 0, &error) < 0)
        fail_msg("%s", error.text);
    return 0;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"c", "evil"};
    static const char *const files[] = {"ca",       "server", "admin", "alice",      "agents/m-1", "named",
                                        "nameless", "short",  "later", "tokens.csv", "roles.yaml", "audit"};
    for (size_t i = 0; i < 2; i++) {
        char path[400];
        for (size_t k = 0; k < sizeof files / sizeof *files; k++)
            for (int e = 0; e < 3; e++) {
                static const char *const endings[] = {"", ".crt", ".key"};
                snprintf(path, sizeof path, "%s/%s/%s%s", folder, names[i], files[k], endings[e]);
                unlink(path);
            }
        snprintf(path, sizeof path, "%s/%s/agents", folder, names[i]);
        rmdir(path);
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        rmdir(path);
    }
    static const char *const more[] = {"audit", "audit.1", "audit.2", "audit.3", "policy", "config"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        unlink(at(more[i]));
    rmdir(folder);
    return 0;
}

static struct access *open_with(const char *roles)
{
    struct access *access;
    struct error error = {0};
    static char ca[300], tokens[300], roles_path[300];
    snprintf(ca, sizeof ca, "%s", at("c/ca.crt"));
    snprintf(tokens, sizeof tokens, "%s", at("c/tokens.csv"));
    snprintf(roles_path, sizeof roles_path, "%s", at("c/roles.yaml"));
    if (roles)
        write_file(roles_path, roles);
    struct access_options options = {.client_ca = ca, .tokens = tokens, .roles = roles ? roles_path : NULL};
    if (access_new(&options, &access, &error) < 0)
        fail_msg("%s", error.text);
    return access;
}

/* The leaf of a PEM file as DER; the caller frees. */
static gnutls_datum_t der_of(const char *path)
{
    struct buf text BUF_CLEANUP = {0};
    gnutls_x509_crt_t cert;
    gnutls_datum_t der;
    assert_int_equal(os_file_read(path, 1 << 20, &text, NULL), 0);
    gnutls_datum_t pem = {(unsigned char *)text.data, (unsigned)text.len};
    gnutls_x509_crt_init(&cert);
    assert_int_equal(gnutls_x509_crt_import(cert, &pem, GNUTLS_X509_FMT_PEM), 0);
    assert_int_equal(gnutls_x509_crt_export2(cert, GNUTLS_X509_FMT_DER, &der), 0);
    gnutls_x509_crt_deinit(cert);
    return der;
}

static int check(const struct access *access, const char *path, struct arena *arena, struct access_user *user,
                 struct error *error)
{
    gnutls_datum_t der = der_of(path);
    struct access_blob chain = {der.data, der.size};
    int rc = access_check_certificate(access, &chain, 1, arena, user, error);
    gnutls_free(der.data);
    return rc;
}

/* --- certificates ------------------------------------------------------------------------------------- */

static void test_certificates(void **state)
{
    struct access *access = open_with(NULL);
    struct arena arena ARENA_CLEANUP = {0};
    struct access_user user;
    struct error error;
    assert_int_equal(check(access, at("c/alice.crt"), &arena, &user, &error), 0);
    assert_true(str_is(user.name, "alice") && access_in_group(&user, "team-a") &&
                access_in_group(&user, "team-b") && user.group_count == 2);
    assert_int_equal(check(access, at("c/agents/m-1.crt"), &arena, &user, &error), 0);
    assert_true(str_is(user.name, "system:node:m-1") && access_in_group(&user, ACCESS_NODES));
    /* Another authority's, and a self-signed one. */
    assert_int_equal(check(access, at("evil/alice.crt"), &arena, &user, &error), ERROR_DENIED);
    assert_int_equal(check(access, at("evil/ca.crt"), &arena, &user, &error), ERROR_DENIED);
    /* Rubbish. */
    struct access_blob rubbish = {(const uint8_t *)"rubbish", 7};
    assert_int_equal(access_check_certificate(access, &rubbish, 1, &arena, &user, &error), ERROR_DENIED);
    assert_int_equal(access_check_certificate(access, &rubbish, 0, &arena, &user, &error), ERROR_DENIED);
    access_free(access);
}

static int check_controller(const struct access *access, const char *path, struct error *error)
{
    gnutls_datum_t der = der_of(path);
    struct access_blob chain = {der.data, der.size};
    int rc = access_check_controller(access, &chain, 1, error);
    gnutls_free(der.data);
    return rc;
}

/* A controller's certificate has an organization that no user can have, and a server's purpose. */
static void test_controllers(void **state)
{
    static const char *const organizations[] = {"team-a", PKI_CONTROLLERS};
    struct access *access = open_with(NULL);
    struct error error;
    const struct pki_request named = {
        .name = "alice", .organizations = organizations, .organization_count = 2, .days = 9};
    const struct pki_request nameless = {.name = "ctl", .hosts = hosts, .host_count = 2, .days = 9};
    assert_int_equal(check_controller(access, at("c/server.crt"), &error), 0);
    assert_int_equal(
        pki_issue(at("c/ca.crt"), at("c/ca.key"), &named, at("c/named.crt"), at("c/named.key"), &error), 0);
    assert_int_equal(check_controller(access, at("c/named.crt"), &error), ERROR_DENIED); /* a client's */
    assert_int_equal(pki_issue(at("c/ca.crt"), at("c/ca.key"), &nameless, at("c/nameless.crt"),
                               at("c/nameless.key"), &error),
                     0);
    assert_int_equal(check_controller(access, at("c/nameless.crt"), &error), ERROR_DENIED);
    assert_non_null(strstr(error.text, PKI_CONTROLLERS));
    assert_int_equal(check_controller(access, at("c/admin.crt"), &error), ERROR_DENIED);
    assert_int_equal(check_controller(access, at("evil/server.crt"), &error), ERROR_DENIED);
    assert_int_equal(access_check_controller(access, NULL, 0, &error), ERROR_DENIED);
    assert_int_equal(folder_client(at("c"), "eve", organizations, 2, 0, &error), ERROR_INVALID);
    access_free(access);
}

/* A token that has expired, made with a negative life. */
static void test_expired(void **state)
{
    struct access *access = open_with(NULL);
    struct arena arena ARENA_CLEANUP = {0};
    struct access_user user;
    struct error error;
    struct pki_request request = {.name = "alice", .days = -1};
    assert_int_equal(
        pki_issue(at("c/ca.crt"), at("c/ca.key"), &request, at("c/short.crt"), at("c/short.key"), &error), 0);
    assert_int_equal(check(access, at("c/short.crt"), &arena, &user, &error), ERROR_DENIED);
    assert_non_null(strstr(error.text, "expired"));
    assert_false(pki_is_valid_for(at("c/short.crt"), 0));
    assert_true(pki_is_valid_for(at("c/alice.crt"), 300));
    access_free(access);
}

/* A copy of the certificate stands for one that somebody still has. */
static void copy_file(const char *from, const char *to)
{
    struct buf text BUF_CLEANUP = {0};
    char path[256];
    snprintf(path, sizeof path, "%s", to);
    assert_int_equal(os_file_read(from, 1 << 20, &text, NULL), 0);
    assert_int_equal(os_file_write(path, buf_str(&text), 0600, true, NULL), 0);
}

static void test_revoked(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct access_user user;
    struct error error;
    char kept[256], second[256];
    snprintf(kept, sizeof kept, "%s", at("kept.crt"));
    snprintf(second, sizeof second, "%s", at("second.crt"));
    assert_int_equal(folder_client(at("c"), "carol", NULL, 0, 0, &error), 0);
    assert_int_equal(folder_client(at("c"), "dave", NULL, 0, 0, &error), 0);
    copy_file(at("c/carol.crt"), kept);
    copy_file(at("c/dave.crt"), second);
    struct access *access = open_with(NULL);
    assert_int_equal(check(access, kept, &arena, &user, &error), 0);
    int64_t now_ns = INT64_C(1) << 50;
    assert_false(access_files_changed(access, now_ns));
    assert_int_equal(folder_revoke(at("c"), "carol", NULL, &error), 0);
    assert_true(access_files_changed(access, now_ns + 2 * INT64_C(1000000000)));
    assert_int_equal(access_reload(access, &error), 0);
    assert_int_equal(check(access, kept, &arena, &user, &error), ERROR_DENIED);
    assert_non_null(strstr(error.text, "revoked"));
    assert_int_equal(check(access, second, &arena, &user, &error), 0);
    /* The list grows, and a new certificate of the same name is another. */
    assert_int_equal(folder_revoke(at("c"), "dave", NULL, &error), 0);
    assert_int_equal(folder_client(at("c"), "carol", NULL, 0, 0, &error), 0);
    assert_int_equal(access_reload(access, &error), 0);
    assert_int_equal(check(access, kept, &arena, &user, &error), ERROR_DENIED);
    assert_int_equal(check(access, second, &arena, &user, &error), ERROR_DENIED);
    assert_int_equal(check(access, at("c/carol.crt"), &arena, &user, &error), 0);
    /* A missing file, one of another authority, a list that another authority signed. */
    assert_true(folder_revoke(at("c"), "nobody", NULL, &error) < 0);
    assert_int_equal(pki_revoke(at("c/ca.crt"), at("c/ca.key"), at("evil/alice.crt"), &error), ERROR_INVALID);
    char list[256];
    snprintf(list, sizeof list, "%s", at("c/revoked.crl"));
    assert_int_equal(folder_client(at("evil"), "eve", NULL, 0, 0, &error), 0);
    assert_int_equal(folder_revoke(at("evil"), "eve", NULL, &error), 0);
    copy_file(list, at("good.crl"));
    copy_file(at("evil/revoked.crl"), list);
    assert_true(access_reload(access, &error) < 0);
    assert_int_equal(check(access, kept, &arena, &user, &error), ERROR_DENIED); /* as it was */
    copy_file(at("good.crl"), list);
    assert_int_equal(access_reload(access, &error), 0);
    access_free(access);
}

static void test_files(void **state)
{
    struct stat info;
    static const char *const secret[] = {"c/ca.key", "c/server.key", "c/admin.key", "c/tokens.csv"};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(stat(at(secret[i]), &info), 0);
        assert_int_equal(info.st_mode & 0777, 0600);
    }
    assert_int_equal(stat(at("c"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    /* A certificate that is there and lasts stays. */
    struct buf before BUF_CLEANUP = {0}, after BUF_CLEANUP = {0};
    struct error error;
    assert_int_equal(os_file_read(at("c/server.crt"), 1 << 20, &before, &error), 0);
    assert_int_equal(folder_init(at("c"), hosts, 2, &error), 0);
    assert_int_equal(os_file_read(at("c/server.crt"), 1 << 20, &after, &error), 0);
    assert_true(str_equal(buf_str(&before), buf_str(&after)));
    /* A host that the certificate lacks makes another one. */
    static const char *const more[] = {"localhost", "ctl.example.org", "10.1.2.3"};
    assert_false(pki_names_hosts(at("c/server.crt"), more, 3));
    assert_int_equal(folder_init(at("c"), more, 3, &error), 0);
    assert_true(pki_names_hosts(at("c/server.crt"), more, 3));
    assert_false(pki_names_hosts(at("c/admin.crt"), more, 3));
    assert_true(pki_names_hosts(at("c/admin.crt"), more, 0));
    assert_int_equal(folder_init(at("c"), hosts, 2, &error), 0);
    /* A key of another certificate is noticed. */
    struct pki_identity *identity;
    assert_int_equal(pki_identity_load(at("c/server.crt"), at("c/admin.key"), &identity, &error),
                     ERROR_INVALID);
    assert_int_equal(pki_identity_load(at("c/server.crt"), at("c/server.key"), &identity, &error), 0);
    pki_identity_free(identity);
    assert_int_equal(folder_client(at("c"), "../x", NULL, 0, 0, &error), ERROR_INVALID);
}

/* --- who ---------------------------------------------------------------------------------------------- */

static void test_authentication(void **state)
{
    struct error error;
    char token[PKI_TOKEN_TEXT], header[100];
    static const char *const groups[] = {"g1", "g2"}, *const two_lines[] = {"g1",
                                                                            "g2\",\nx,eve,,\"system:masters"};
    assert_int_equal(folder_token(at("c"), "bo\nb", groups, 2, token, &error), ERROR_INVALID);
    assert_int_equal(folder_token(at("c"), "bob", two_lines, 2, token, &error), ERROR_INVALID);
    assert_non_null(strstr(error.text, "group 2"));
    assert_int_equal(folder_token(at("c"), "bo\"b", groups, 2, token, &error), 0);
    struct access *access = open_with(NULL);
    struct arena arena ARENA_CLEANUP = {0};
    struct access_user user;
    snprintf(header, sizeof header, "Bearer %s", token);
    struct access_credentials credentials = {.authorization = str_from(header)};
    assert_int_equal(access_authenticate(access, &credentials, &arena, &user), 0);
    assert_true(str_is(user.name, "bo\"b") && access_in_group(&user, "g2") &&
                access_in_group(&user, ACCESS_AUTHENTICATED));
    /* The file keeps no token. */
    struct buf text BUF_CLEANUP = {0};
    assert_int_equal(os_file_read(at("c/tokens.csv"), 1 << 20, &text, &error), 0);
    assert_null(strstr(text.data, token));
    header[10] ^= 1;
    assert_int_equal(access_authenticate(access, &credentials, &arena, &user), ERROR_DENIED);
    credentials.authorization = STR("Basic YTpi");
    assert_int_equal(access_authenticate(access, &credentials, &arena, &user), ERROR_DENIED);
    credentials.authorization = STR("");
    assert_int_equal(access_authenticate(access, &credentials, &arena, &user), ERROR_DENIED);
    credentials.bad_cert = true;
    assert_int_equal(access_authenticate(access, &credentials, &arena, &user), ERROR_DENIED);
    /* A token that is taken out of the file is unknown after the next reading. */
    write_file(at("c/tokens.csv"), "# none\n");
    assert_true(access_files_changed(access, INT64_MAX));
    assert_int_equal(access_reload(access, &error), 0);
    header[10] ^= 1;
    credentials = (struct access_credentials){.authorization = str_from(header)};
    assert_int_equal(access_authenticate(access, &credentials, &arena, &user), ERROR_DENIED);
    /* A broken file leaves what there was. */
    uint64_t generation = access_generation(access);
    write_file(at("c/tokens.csv"), "broken\n");
    assert_int_equal(access_reload(access, &error), ERROR_INVALID);
    assert_int_equal(access_generation(access), generation);
    write_file(at("c/tokens.csv"), "# none\n");
    access_free(access);
}

/* --- may they ----------------------------------------------------------------------------------------- */

static bool may(const struct access *access, struct str user, struct str group, struct str verb,
                struct str resource, struct str namespace_, struct str name)
{
    struct access_user who = {.name = user, .groups = &group, .group_count = group.len ? 1 : 0};
    struct access_attributes what = {
        .verb = verb, .resource = resource, .namespace_ = namespace_, .name = name};
    return access_allows(access, &who, &what);
}

static void test_roles_file(void **state)
{
    struct access *access = open_with("bindings:\n"
                                      "- {role: edit, namespaces: [team-a], users: [bob], groups: [dev]}\n"
                                      "- {role: operator, groups: [ops]}\n"
                                      "---\n"
                                      "kind: ClusterRole\nmetadata: {name: mine}\n"
                                      "rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n");
    struct str none = {0};
    assert_true(may(access, STR("bob"), none, STR("create"), STR("configmaps"), STR("team-a"), none));
    assert_false(may(access, STR("bob"), none, STR("create"), STR("configmaps"), STR("team-b"), none));
    assert_true(may(access, STR("x"), STR("dev"), STR("create"), STR("configmaps"), STR("team-a"), none));
    assert_true(may(access, STR("x"), STR("ops"), STR("patch"), STR("nodes"), none, STR("m-1")));
    assert_false(may(access, STR("x"), none, STR("patch"), STR("nodes"), none, STR("m-1")));
    /* A node writes itself only. */
    assert_true(
        may(access, STR("system:node:m-1"), STR(ACCESS_NODES), STR("patch"), STR("nodes"), none, STR("m-1")));
    assert_false(
        may(access, STR("system:node:m-1"), STR(ACCESS_NODES), STR("patch"), STR("nodes"), none, STR("m-2")));
    struct error error;
    static const char *const bad[] = {"bindings: [{role: no-such-role, users: [x]}]",
                                      "bindings: [{role: view}]",
                                      "bindings: [{role: view, users: [x], namespaces: ['']}]", "other: 1",
                                      "kind: Pod\nmetadata: {name: x}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file(at("c/roles.yaml"), bad[i]);
        assert_int_equal(access_reload(access, &error), ERROR_INVALID);
    }
    assert_true(may(access, STR("x"), STR("ops"), STR("patch"), STR("nodes"), none, STR("m-1")));
    access_free(access);
}

/* The file is made, and deleted, while users are there. */
static void test_roles_file_made_later(void **state)
{
    struct access *access;
    struct error error = {0};
    struct str none = {0};
    static const char binding[] = "bindings: [{role: view, users: [bob]}]\n";
    struct access_options options = {.roles = at("c/roles.yaml")};
    unlink(options.roles);
    assert_int_equal(access_new(&options, &access, &error), 0);
    for (int times = 0; times < 2; times++) {
        int64_t later_ns = (2 * times + 1) * 3600 * NS_PER_SECOND;
        assert_false(may(access, STR("bob"), none, STR("list"), STR("pods"), STR("a"), none));
        write_file(options.roles, binding);
        assert_true(access_files_changed(access, later_ns));
        assert_int_equal(access_reload(access, &error), 0);
        assert_true(may(access, STR("bob"), none, STR("list"), STR("pods"), STR("a"), none));
        unlink(options.roles);
        assert_true(access_files_changed(access, later_ns + 3600 * NS_PER_SECOND));
        assert_int_equal(access_reload(access, &error), 0);
    }
    access_free(access);
}

static int grant(const struct access *access, const char *user, const char *text)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 1 << 20};
    struct doc_list documents;
    struct error error;
    struct access_user who = {.name = str_from(user)};
    struct str whole = arena_printf(&arena, "---\n%s", text); /* without it braces mean JSON */
    CHECK(yaml_parse_all(&arena, whole, &documents, &error) == 0);
    return access_check_grant(access, &who, documents.items[0], &error);
}

/* A user can grant no right that the user does not have. */
static void test_escalation(void **state)
{
    struct access *access =
        open_with("bindings: [{role: admin, namespaces: [a], users: [ada]}, {role: binder, users: [ben]}]\n"
                  "---\nkind: ClusterRole\nmetadata: {name: binder}\n"
                  "rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], "
                  "resourceNames: [view], verbs: [bind]}]\n");
#define ROLE(rules) "{kind: Role, metadata: {name: r, namespace: a}, rules: [" rules "]}"
#define BIND(space, r)                                                                                       \
    "{kind: RoleBinding, metadata: {name: r, namespace: " space "}, roleRef: {kind: ClusterRole, name: " r   \
    "}}"
    assert_int_equal(grant(access, "ada", ROLE("{apiGroups: [''], resources: [pods], verbs: [get]}")), 0);
    assert_int_equal(grant(access, "ada", ROLE("{apiGroups: [''], resources: [nodes], verbs: [patch]}")),
                     ERROR_DENIED);
    assert_int_equal(grant(access, "ada", ROLE("{apiGroups: ['*'], resources: ['*'], verbs: ['*']}")),
                     ERROR_DENIED);
    assert_int_equal(grant(access, "ada", BIND("a", "edit")), 0);
    assert_int_equal(grant(access, "ada", BIND("b", "edit")), ERROR_DENIED);
    assert_int_equal(grant(access, "ada", BIND("a", "cluster-admin")), ERROR_DENIED);
    assert_int_equal(grant(access, "ada", BIND("a", "unknown")), ERROR_DENIED);
    assert_int_equal(grant(access, "ben", BIND("z", "view")), 0);
    assert_int_equal(grant(access, "ben", BIND("z", "edit")), ERROR_DENIED);
    assert_int_equal(grant(access, "x", "{kind: ConfigMap, metadata: {name: r}}"), 0);
    access_free(access);
}

/* --- audit -------------------------------------------------------------------------------------------- */

static struct access_record record_of(const struct access_user *user, const char *verb, const char *resource)
{
    return (struct access_record){.user = user,
                                  .what = {.verb = str_from(verb),
                                           .resource = str_from(resource),
                                           .namespace_ = STR("default"),
                                           .name = STR("x")},
                                  .uri = STR("/api/v1/x"),
                                  .body = STR("{\"data\":{\"password\":\"hunter2\"}}"),
                                  .received_ns = 1000000000,
                                  .answered_ns = 1002500000,
                                  .code = 201,
                                  .stage = "ResponseComplete"};
}

static void test_audit_levels(void **state)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 1 << 20};
    struct doc_list policy;
    struct error error;
    struct access_user user = {.name = STR("alice")};
    const char *text =
        "kind: Policy\nrules:\n"
        "- {level: None, users: [quiet]}\n"
        "- {level: Request, verbs: [create], resources: [{group: '', resources: [secrets, pods]}]}\n"
        "- {level: Metadata, resources: [{group: '', resources: [pods]}]}\n"
        "- {level: Metadata, nonResourceURLs: [/api*]}\n";
    assert_int_equal(yaml_parse_all(&arena, str_from(text), &policy, &error), 0);
    struct access_record record = record_of(&user, "create", "pods");
    assert_int_equal(audit_level_of(policy.items[0], &record), AUDIT_REQUEST);
    record = record_of(&user, "get", "pods");
    assert_int_equal(audit_level_of(policy.items[0], &record), AUDIT_METADATA);
    record = record_of(&user, "get", "configmaps");
    assert_int_equal(audit_level_of(policy.items[0], &record), AUDIT_NONE);
    assert_int_equal(audit_level_of(NULL, &record), AUDIT_METADATA);
    /* The content of a secret is never written, whatever the policy says. */
    record = record_of(&user, "create", "secrets");
    assert_int_equal(audit_level_of(policy.items[0], &record), AUDIT_METADATA);
    struct buf line BUF_CLEANUP = {0};
    audit_format(&line, audit_level_of(policy.items[0], &record), &record);
    assert_null(strstr(line.data, "hunter2"));
    struct doc *event;
    assert_int_equal(json_parse(&arena, buf_str(&line), &event, &error), 0);
    assert_true(str_is(doc_str(doc_path(event, "user", "username", NULL), STR("")), "alice"));
    assert_true(str_is(doc_str(doc_path(event, "objectRef", "resource", NULL), STR("")), "secrets"));
    assert_int_equal(doc_int(doc_path(event, "responseStatus", "code", NULL), 0), 201);
    record = record_of(&user, "create", "pods");
    buf_clear(&line);
    audit_format(&line, AUDIT_REQUEST, &record);
    assert_non_null(strstr(line.data, "hunter2"));
    struct access_user quiet = {.name = STR("quiet")};
    record = record_of(&quiet, "create", "pods");
    assert_int_equal(audit_level_of(policy.items[0], &record), AUDIT_NONE);
}

/* Every line is written or counted, in order, over all the files; the newest are kept. */
static void test_audit_files(void **state)
{
    enum { LINES = 400 };
    static char path[300];
    snprintf(path, sizeof path, "%s", at("audit"));
    struct access_options options = {.audit = path, .audit_bytes_max = 20000, .audit_files_max = 3};
    struct access_user user = {.name = STR("alice")};
    struct audit *audit;
    struct error error;
    assert_int_equal(audit_new(&options, &audit, &error), 0);
    for (int i = 0; i < LINES; i++) {
        struct access_record record = record_of(&user, "get", "pods");
        audit_write(audit, &record);
    }
    assert_int_equal(audit_dropped(audit), 0);
    audit_free(audit);
    static const char *const names[] = {"audit", "audit.1", "audit.2", "audit.3"};
    size_t lines = 0;
    for (size_t i = 0; i < 4; i++) {
        struct buf text BUF_CLEANUP = {0};
        if (access(at(names[i]), F_OK) < 0)
            continue;
        assert_int_equal(os_file_read(at(names[i]), 1 << 24, &text, &error), 0);
        for (size_t k = 0; k < text.len; k++)
            lines += text.data[k] == '\n';
        assert_true(text.len == 0 || text.data[text.len - 1] == '\n');
    }
    assert_true(lines > 0 && lines <= LINES);
    assert_int_equal(access(at("audit.4"), F_OK), -1);
}

/* More than the buffer holds while nothing can be written is dropped, and counted. */
static void test_audit_drops(void **state)
{
    struct access_options options = {.audit = "/dev/full"};
    struct access_user user = {.name = STR("alice")};
    struct audit *audit;
    struct error error;
    assert_int_equal(audit_new(&options, &audit, &error), 0);
    struct access_record record = record_of(&user, "get", "pods");
    audit_write(audit, &record);
    for (int tries = 0; tries < 200000 && audit_dropped(audit) == 0; tries++)
        sched_yield();
    assert_int_equal(audit_dropped(audit), 1);
    audit_free(audit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_certificates), cmocka_unit_test(test_controllers),
        cmocka_unit_test(test_expired),      cmocka_unit_test(test_revoked),
        cmocka_unit_test(test_files),        cmocka_unit_test(test_authentication),
        cmocka_unit_test(test_roles_file),   cmocka_unit_test(test_roles_file_made_later),
        cmocka_unit_test(test_escalation),   cmocka_unit_test(test_audit_levels),
        cmocka_unit_test(test_audit_files),  cmocka_unit_test(test_audit_drops),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
