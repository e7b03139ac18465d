#include "host/access/folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "doc/json.h"
#include "doc/yaml.h"
#include "core/words/limits.h"
#include "host/access/access.h"
#include "os/file.h"

enum { FILE_BYTES_MAX = 16 * 1024 * 1024, NAME_BYTES = 253 };

static void join(char path[FOLDER_PATH_MAX], const char *folder, const char *name, const char *ending)
{
    snprintf(path, FOLDER_PATH_MAX, "%s/%s%s", folder, name, ending);
}

/* Checks a name, which becomes part of a file name. */
static int check_name(const char *name, struct error *error)
{
    size_t len = strlen(name);
    if (len == 0 || len > NAME_BYTES || name[0] == '.' || strchr(name, '/'))
        return error_set(error, ERROR_INVALID, "\"%s\" cannot be the name of a file of credentials", name);
    return 0;
}

/* Checks a user's name. The folder's own certificates must not be a user's: their owner could issue any
 * certificate, or pose as the controller. */
static int check_user(const char *user, struct error *error)
{
    int rc = check_name(user, error);
    if (rc == 0 && (strcasecmp(user, "ca") == 0 || strcasecmp(user, "server") == 0))
        rc = error_set(error, ERROR_INVALID,
                       "\"%s\" is no user: the folder keeps the %s's certificate by that name", user,
                       strcasecmp(user, "ca") == 0 ? "authority" : "controller");
    return rc;
}

static int make_folder(const char *folder, struct error *error)
{
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "making %s", folder);
    return 0;
}

/* Issues a certificate, unless the folder has one that is valid long enough and names the request's hosts. */
static int issue(const char *folder, const char *name, const struct pki_request *request, struct error *error)
{
    char cert[FOLDER_PATH_MAX], key[FOLDER_PATH_MAX], ca_cert[FOLDER_PATH_MAX], ca_key[FOLDER_PATH_MAX];
    join(cert, folder, name, ".crt");
    join(key, folder, name, ".key");
    join(ca_cert, folder, "ca", ".crt");
    join(ca_key, folder, "ca", ".key");
    if (access(key, R_OK) == 0 && pki_is_valid_for(cert, FOLDER_RENEW_DAYS) &&
        pki_names_hosts(cert, request->hosts, request->host_count))
        return 0;
    unlink(key);
    return pki_issue(ca_cert, ca_key, request, cert, key, error);
}

int folder_init(const char *folder, const char *const *hosts, size_t host_count, struct error *error)
{
    static const char *const masters[] = {ACCESS_MASTERS}, *const controllers[] = {PKI_CONTROLLERS};
    char cert[FOLDER_PATH_MAX], key[FOLDER_PATH_MAX], agents[FOLDER_PATH_MAX], tokens[FOLDER_PATH_MAX];
    join(cert, folder, "ca", ".crt");
    join(key, folder, "ca", ".key");
    join(agents, folder, "agents", "");
    join(tokens, folder, "tokens", ".csv");
    int rc = make_folder(folder, error);
    if (rc == 0)
        rc = make_folder(agents, error);
    if (rc == 0)
        rc = pki_authority("phalanx", cert, key, error);
    if (rc == 0)
        rc = issue(folder, "server",
                   &(struct pki_request){.name = "phalanx-controller",
                                         .organizations = controllers,
                                         .organization_count = 1,
                                         .hosts = hosts,
                                         .host_count = host_count,
                                         .days = PKI_SERVER_DAYS},
                   error);
    if (rc == 0)
        rc = issue(
            folder, "admin",
            &(struct pki_request){
                .name = "admin", .organizations = masters, .organization_count = 1, .days = PKI_CLIENT_DAYS},
            error);
    if (rc == 0 && access(tokens, F_OK) < 0)
        rc = os_file_write(tokens, STR("# token or sha256:DIGEST,user,uid,\"group1,group2\"\n"), 0600, false,
                           error);
    return rc;
}

int folder_client(const char *folder, const char *user, const char *const *groups, size_t group_count,
                  int days, struct error *error)
{
    int rc = check_user(user, error);
    for (size_t i = 0; rc == 0 && i < group_count; i++)
        if (strcmp(groups[i], PKI_CONTROLLERS) == 0)
            rc =
                error_set(error, ERROR_INVALID,
                          "group " PKI_CONTROLLERS " is for controllers: their certificate, server.crt, says "
                          "whose requests they pass on");
    if (rc < 0)
        return rc;
    return issue(folder, user,
                 &(struct pki_request){.name = user,
                                       .organizations = groups,
                                       .organization_count = group_count,
                                       .days = days ? days : PKI_CLIENT_DAYS},
                 error);
}

int folder_revoke(const char *folder, const char *user, const char *machine, struct error *error)
{
    char authority[FOLDER_PATH_MAX], key[FOLDER_PATH_MAX + 4], cert[FOLDER_PATH_MAX];
    int rc = user ? check_user(user, error) : check_name(machine, error);
    if (rc < 0)
        return rc;
    snprintf(authority, sizeof authority, "%s/ca.crt", folder);
    snprintf(key, sizeof key, "%s/ca.key", folder);
    snprintf(cert, sizeof cert, "%s/%s%s.crt", folder, user ? "" : "agents/", user ? user : machine);
    rc = pki_revoke(authority, key, cert, error);
    if (rc < 0)
        return rc;
    (void)unlink(cert); /* so that a new one can be issued */
    cert[strlen(cert) - strlen("crt")] = 0;
    snprintf(key, sizeof key, "%skey", cert);
    (void)unlink(key);
    return 0;
}

int folder_agent(const char *folder, const char *machine, struct error *error)
{
    static const char *const nodes[] = {ACCESS_NODES};
    char name[FOLDER_PATH_MAX], file[FOLDER_PATH_MAX];
    int rc = check_name(machine, error);
    if (rc < 0)
        return rc;
    snprintf(name, sizeof name, ACCESS_NODE_PREFIX "%s", machine);
    snprintf(file, sizeof file, "agents/%s", machine);
    return issue(folder, file,
                 &(struct pki_request){
                     .name = name, .organizations = nodes, .organization_count = 1, .days = PKI_CLIENT_DAYS},
                 error);
}

/* --- tokens --------------------------------------------------------------------------------------------- */

static void put_field(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '"')
            buf_add_char(out, '"');
        buf_add_char(out, *text);
    }
}

/* Removes the lines of the token file that contain `mark`. */
static void drop_lines(struct buf *text, struct str mark)
{
    struct buf kept = {0};
    struct str rest = buf_str(text), line;
    while (rest.len) {
        if (!str_cut(rest, '\n', &line, &rest)) {
            line = rest;
            rest = (struct str){0};
        }
        if (line.len && memmem(line.data, line.len, mark.data, mark.len) == NULL) {
            buf_add_str(&kept, line);
            buf_add_char(&kept, '\n');
        }
    }
    buf_done(text);
    *text = kept;
}

/* Adds a token with the uid `session`. If that is not empty, removes the tokens that have it. */
static int add_token(const char *folder, const char *user, const char *session, const char *const *groups,
                     size_t group_count, char ret_token[PKI_TOKEN_TEXT], struct error *error)
{
    char path[FOLDER_PATH_MAX], token[PKI_TOKEN_TEXT], hex[65];
    uint8_t digest[32];
    struct buf text BUF_CLEANUP = {0}, mark BUF_CLEANUP = {0};
    join(path, folder, "tokens", ".csv");
    int rc = os_file_read(path, FILE_BYTES_MAX, &text, error);
    if (rc < 0)
        return rc;
    pki_random_token(token);
    sha256(token, strlen(token), digest);
    hex_encode(digest, sizeof digest, hex);
    buf_printf(&mark, "\",%s,\"", session);
    if (*session)
        drop_lines(&text, buf_str(&mark));
    if (text.len && text.data[text.len - 1] != '\n')
        buf_add_char(&text, '\n');
    buf_printf(&text, "sha256:%s,\"", hex);
    put_field(&text, user);
    buf_add_str(&text, buf_str(&mark));
    for (size_t i = 0; i < group_count; i++) {
        if (i)
            buf_add_char(&text, ',');
        put_field(&text, groups[i]);
    }
    buf_add_str(&text, STR("\"\n"));
    rc = os_file_write(path, buf_str(&text), 0600, true, error);
    if (rc == 0)
        memcpy(ret_token, token, sizeof token);
    return rc;
}

int folder_token(const char *folder, const char *user, const char *const *groups, size_t group_count,
                 char ret_token[PKI_TOKEN_TEXT], struct error *error)
{
    if (strpbrk(user, "\r\n"))
        return error_set(error, ERROR_INVALID, "the user's name must be one line");
    for (size_t i = 0; i < group_count; i++)
        if (strpbrk(groups[i], "\r\n"))
            return error_set(error, ERROR_INVALID, "group %zu: the name must be one line", i + 1);
    return add_token(folder, user, "", groups, group_count, ret_token, error);
}

int folder_session_token(const char *folder, char ret_token[PKI_TOKEN_TEXT], struct error *error)
{
    static const char *const masters[] = {ACCESS_MASTERS};
    return add_token(folder, "admin", "phalanx-up", masters, 1, ret_token, error);
}

/* --- kubeconfig ----------------------------------------------------------------------------------------- */

static void set_text(struct arena *arena, struct doc *object, const char *key, const char *text)
{
    doc_set(arena, object, str_from(key), doc_new_str(arena, str_from(text)));
}

/* Adds a named entry to a kubeconfig's list, and returns its content. */
static struct doc *add_entry(struct arena *arena, struct doc *config, const char *list, const char *kind,
                             struct str name)
{
    struct doc *array = doc_get(config, list), *entry = doc_new(arena, DOC_OBJECT);
    if (!array) {
        array = doc_new(arena, DOC_ARRAY);
        doc_set(arena, config, str_from(list), array);
    }
    doc_set(arena, entry, STR("name"), doc_new_str(arena, name));
    doc_push(arena, array, entry);
    return doc_need_object(arena, entry, kind);
}

static int embed(struct arena *arena, struct doc *object, const char *key, const char *folder,
                 const char *name, const char *ending, struct error *error)
{
    char path[FOLDER_PATH_MAX];
    struct buf text BUF_CLEANUP = {0};
    gnutls_datum_t coded = {0};
    join(path, folder, name, ending);
    int rc = os_file_read(path, FILE_BYTES_MAX, &text, error);
    if (rc < 0)
        return rc;
    gnutls_datum_t plain = {(unsigned char *)text.data, (unsigned)text.len};
    if (gnutls_base64_encode2(&plain, &coded) < 0)
        return error_set(error, ERROR_INVALID, "%s: not to be encoded", path);
    doc_set(arena, object, str_from(key),
            doc_new_str(arena, (struct str){(const char *)coded.data, coded.size}));
    gnutls_free(coded.data);
    return 0;
}

/* Returns a URL's host and port: 10.0.0.1:7070 for "https://10.0.0.1:7070/". */
static struct str place_of(struct str url)
{
    struct str scheme, place = url, path;
    if (memmem(url.data, url.len, "://", 3)) {
        (void)str_cut(url, ':', &scheme, &place);
        place = (struct str){place.data + 2, place.len - 2};
    }
    (void)str_cut(place, '/', &place, &path);
    return place;
}

static int add_server(struct arena *arena, struct doc *root, const struct folder_config *config,
                      struct str url, struct str name, struct error *error)
{
    const struct doc *others = doc_get(root, "clusters");
    if (name.len == 0)
        return error_set(error, ERROR_INVALID, "the server \"" STR_FORMAT "\" has no host", STR_ARG(url));
    for (size_t i = 0; i < doc_len(others); i++)
        if (str_equal(doc_str(doc_get(doc_at(others, i), "name"), STR("")), name))
            return error_set(error, ERROR_INVALID, "the server " STR_FORMAT " is named twice", STR_ARG(name));
    struct doc *cluster = add_entry(arena, root, "clusters", "cluster", name);
    doc_set(arena, cluster, STR("server"), doc_new_str(arena, url));
    struct doc *context = add_entry(arena, root, "contexts", "context", name);
    doc_set(arena, context, STR("cluster"), doc_new_str(arena, name));
    set_text(arena, context, "user", "phalanx");
    if (config->namespace_)
        set_text(arena, context, "namespace", config->namespace_);
    if (others == NULL)
        doc_set(arena, root, STR("current-context"), doc_new_str(arena, name));
    return config->folder
               ? embed(arena, cluster, "certificate-authority-data", config->folder, "ca", ".crt", error)
               : 0;
}

static int add_servers(struct arena *arena, struct doc *root, const struct folder_config *config,
                       struct error *error)
{
    struct str rest = str_from(config->server), url;
    int rc = 0;
    if (!strchr(config->server, ','))
        return add_server(arena, root, config, rest, STR("phalanx"), error);
    for (bool more = true; more && rc == 0;) {
        more = str_cut(rest, ',', &url, &rest);
        url = more ? url : rest;
        rc = add_server(arena, root, config, url, place_of(url), error);
    }
    return rc;
}

int folder_kubeconfig(const char *path, const struct folder_config *config, struct error *error)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *root = doc_new(&arena, DOC_OBJECT);
    set_text(&arena, root, "apiVersion", "v1");
    set_text(&arena, root, "kind", "Config");
    int rc = add_servers(&arena, root, config, error);
    struct doc *user = add_entry(&arena, root, "users", "user", STR("phalanx"));
    if (rc == 0 && config->user)
        rc = check_user(config->user, error);
    if (rc == 0 && config->folder && config->user) {
        rc = embed(&arena, user, "client-certificate-data", config->folder, config->user, ".crt", error);
        if (rc == 0)
            rc = embed(&arena, user, "client-key-data", config->folder, config->user, ".key", error);
    }
    if (config->token)
        set_text(&arena, user, "token", config->token);
    if (rc < 0)
        return rc;
    struct buf text BUF_CLEANUP = {0};
    yaml_write(&text, root);
    return os_file_write(path, buf_str(&text), 0600, true, error);
}
