/* Reads the kubeconfig file of $PHALANX_CONFIG or $KUBECONFIG: the credentials and the server of its current
 * context, and the servers of the cluster's other controllers. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base64.h"
#include "doc/yaml.h"
#include "cmd/client.h"
#include "cmd/local.h"
#include "os/file.h"

enum { CONFIG_BYTES_MAX = 4 * 1024 * 1024 };

/* Returns the member `kind` of the entry with this name in a list of a kubeconfig. */
static const struct doc *named(const struct doc *config, const char *list, struct str name, const char *kind)
{
    const struct doc *entries = doc_get(config, list);
    for (size_t i = 0; i < doc_len(entries); i++)
        if (str_equal(doc_str(doc_get(doc_at(entries, i), "name"), STR("")), name))
            return doc_get(doc_at(entries, i), kind);
    return NULL;
}

static int in_memory(struct str text)
{
    int fd = memfd_create("phalanx-credentials", MFD_CLOEXEC);
    if (fd < 0 || write(fd, text.data, text.len) != (ssize_t)text.len) {
        say("no memory for credentials");
        return -1;
    }
    return fd;
}

/* Reads a credential: KEY-data in base64, or KEY, the name of a file relative to the kubeconfig file. */
static bool credential(const struct doc *from, const char *key, const char *config_path, int *ret_fd)
{
    char name[64];
    struct buf text BUF_CLEANUP = {0}, path BUF_CLEANUP = {0};
    snprintf(name, sizeof name, "%s-data", key);
    struct str data = doc_str(doc_get(from, name), STR("")), file = doc_str(doc_get(from, key), STR(""));
    if (data.len) {
        if (!base64_decode(data, &text)) {
            say("%s: %s is not base64", config_path, name);
            return false;
        }
    } else if (file.len) {
        struct error error;
        const char *slash = strrchr(config_path, '/');
        if (file.data[0] != '/' && slash)
            buf_add(&path, config_path, (size_t)(slash + 1 - config_path));
        buf_add_str(&path, file);
        if (os_file_read(path.data, CONFIG_BYTES_MAX, &text, &error) < 0) {
            say("%s", error.text);
            return false;
        }
    } else {
        return true;
    }
    *ret_fd = in_memory(buf_str(&text));
    return *ret_fd >= 0;
}

/* Appends the servers of the current user's other contexts whose clusters have the current one's authority:
 * further controllers of the same cluster (`phalanx certs kubeconfig --server A,B`). */
static void add_alternatives(struct client *client, const struct doc *config, const struct doc *context,
                             const struct doc *cluster)
{
    struct str user = doc_str(doc_get(context, "user"), STR(""));
    struct str authority = doc_str(doc_get(cluster, "certificate-authority-data"), STR(""));
    const struct doc *others = doc_get(config, "contexts");
    for (size_t i = 0; authority.len > 0 && i < doc_len(others); i++) {
        const struct doc *other = doc_get(doc_at(others, i), "context");
        const struct doc *place =
            named(config, "clusters", doc_str(doc_get(other, "cluster"), STR("")), "cluster");
        struct str server = doc_str(doc_get(place, "server"), STR(""));
        if (place != cluster && server.len > 0 && str_equal(doc_str(doc_get(other, "user"), STR("")), user) &&
            str_equal(doc_str(doc_get(place, "certificate-authority-data"), STR("")), authority))
            buf_printf(&client->server, "," STR_FORMAT, STR_ARG(server));
    }
}

static bool take(struct client *client, const char *path, const struct doc *config, bool server_given)
{
    struct str context_name = doc_str(doc_get(config, "current-context"), STR(""));
    const struct doc *context = named(config, "contexts", context_name, "context");
    const struct doc *cluster =
        named(config, "clusters", doc_str(doc_get(context, "cluster"), STR("")), "cluster");
    const struct doc *user = named(config, "users", doc_str(doc_get(context, "user"), STR("")), "user");
    struct str server = doc_str(doc_get(cluster, "server"), STR(""));
    struct str token = doc_str(doc_get(user, "token"), STR(""));
    if (server.len == 0) {
        say("%s: its current context names no cluster with a server", path);
        return false;
    }
    if (!server_given) {
        buf_add_str(&client->server, server);
        add_alternatives(client, config, context, cluster);
    }
    if (token.len)
        buf_add_str(&client->bearer, token);
    return credential(cluster, "certificate-authority", path, &client->ca_fd) &&
           credential(user, "client-certificate", path, &client->cert_fd) &&
           credential(user, "client-key", path, &client->key_fd);
}

/* Returns the path of the kubeconfig file. $KUBECONFIG may name several files, of which the first is used,
 * and a file that does not exist yet. */
static const char *kubeconfig(char path[PATH_MAX])
{
    struct str list = str_from(getenv("KUBECONFIG")), first, rest;
    first = str_cut(list, ':', &first, &rest) ? first : list;
    if (first.len == 0 || first.len >= PATH_MAX)
        return NULL;
    snprintf(path, PATH_MAX, STR_FORMAT, STR_ARG(first));
    return access(path, F_OK) == 0 ? path : NULL;
}

bool client_read_config(struct client *client, const char *server)
{
    const char *path = getenv("PHALANX_CONFIG");
    char place[PATH_MAX];
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 16 * CONFIG_BYTES_MAX};
    struct buf text BUF_CLEANUP = {0};
    struct doc_list documents = {0};
    struct error error;
    if (!path || !*path) /* kubectl's credentials are only for kubectl's server */
        path = server ? NULL : kubeconfig(place);
    if (!path && local_find(server ? server : CLIENT_SERVER_DEFAULT, place)) {
        path = place;
        server = NULL; /* the file names the server, with its scheme */
    }
    if (!path)
        return true;
    int rc = os_file_read(path, CONFIG_BYTES_MAX, &text, &error);
    if (rc == 0)
        rc = yaml_parse_all(&arena, buf_str(&text), &documents, &error);
    if (rc < 0 || documents.len != 1) {
        say("%s: %s", path, rc < 0 ? error.text : "expected exactly one document");
        return false;
    }
    return take(client, path, documents.items[0], server != NULL);
}
