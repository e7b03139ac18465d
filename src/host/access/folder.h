/* folder.h - the credentials of a cluster in one folder, for `phalanx up` and `phalanx certs`:
 *
 *   ca.crt, ca.key            the cluster's authority; the key is needed only to issue and revoke
 *   server.crt, server.key    the controllers', for the API and for agents: O=system:controllers
 *   admin.crt, admin.key      a client in system:masters
 *   USER.crt, USER.key        other clients
 *   agents/MACHINE.crt, .key  agents: CN=system:node:MACHINE, O=system:nodes
 *   revoked.crl               revoked certificates (pki.h)
 *   tokens.csv                bearer tokens, as digests only (tokens.h)
 *
 * The folder has mode 0700, keys and tokens 0600. A certificate that is valid for another FOLDER_RENEW_DAYS
 * is kept: the functions that issue it then do nothing.
 */
#ifndef PHX_HOST_ACCESS_FOLDER_H
#define PHX_HOST_ACCESS_FOLDER_H

#include "base/error.h"
#include "base/str.h"
#include "host/access/pki.h"

enum { FOLDER_PATH_MAX = 4096, FOLDER_RENEW_DAYS = 30 };

/* Creates the folder: authority, the server's certificate for these hosts, the admin's, an empty token file.
 * Keeps what is there, but for certificates that expire soon, and a server's that lacks one of the hosts. */
int folder_init(const char *folder, const char *const *hosts, size_t host_count, struct error *error);
/* Issues a client certificate for a user in these groups. `days` 0: PKI_CLIENT_DAYS. ERROR_INVALID: the name
 * is reserved or cannot be a file name, or a group is PKI_CONTROLLERS. */
int folder_client(const char *folder, const char *user, const char *const *groups, size_t group_count,
                  int days, struct error *error);
/* Issues an agent's certificate. */
int folder_agent(const char *folder, const char *machine, struct error *error);
/* Revokes the certificate of a user or of a machine (the other is NULL): adds it to revoked.crl, and deletes
 * the certificate and its key. */
int folder_revoke(const char *folder, const char *user, const char *machine, struct error *error);
/* Makes a new token for a user, and adds its digest to tokens.csv. The token itself is not stored. */
int folder_token(const char *folder, const char *user, const char *const *groups, size_t group_count,
                 char ret_token[PKI_TOKEN_TEXT], struct error *error);

/* Makes a new token for the administrator, which replaces that of an earlier call. */
int folder_session_token(const char *folder, char ret_token[PKI_TOKEN_TEXT], struct error *error);

struct folder_config {
    const char *server;     /* "https://127.0.0.1:7070"; several controllers separated by commas */
    const char *folder;     /* NULL: plain HTTP, no credentials */
    const char *user;       /* user whose certificate is embedded; NULL: none */
    const char *token;      /* bearer token that is embedded; NULL: none */
    const char *namespace_; /* NULL: default */
};
/* Writes a kubeconfig file with embedded credentials, mode 0600. With one server, cluster and context are
 * named "phalanx". With several, each server has its own cluster and context, named by its host and port, and
 * the first is current. ERROR_INVALID: a server is empty, or named twice. */
int folder_kubeconfig(const char *path, const struct folder_config *config, struct error *error);

#endif
