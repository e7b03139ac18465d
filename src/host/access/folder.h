/* folder.h - the credentials of a cluster in one folder, as up and certs keep them:
 *
 *   ca.crt, ca.key            the cluster's own authority; the key is needed for issuing only
 *   server.crt, server.key    the controllers', for the API and for agents: O=system:controllers
 *   admin.crt, admin.key      a client in system:masters
 *   USER.crt, USER.key        other clients
 *   agents/MACHINE.crt, .key  agents: CN=system:node:MACHINE, O=system:nodes
 *   revoked.crl               certificates that are no longer good (pki.h)
 *   tokens.csv                bearer tokens, their digests only (tokens.h)
 *
 * The folder has mode 0700, keys and tokens 0600. Files that are there and valid for another 30 days stay.
 */
#ifndef PHX_HOST_ACCESS_FOLDER_H
#define PHX_HOST_ACCESS_FOLDER_H

#include "base/error.h"
#include "base/str.h"
#include "host/access/pki.h"

enum { FOLDER_PATH_MAX = 4096, FOLDER_RENEW_DAYS = 30 };

/* Authority, server's certificate for these hosts, admin's, an empty token file. */
int folder_init(const char *folder, const char *const *hosts, size_t host_count, struct error *error);
/* days 0: PKI_CLIENT_DAYS. */
int folder_client(const char *folder, const char *user, const char *const *groups, size_t group_count,
                  int days, struct error *error);
int folder_agent(const char *folder, const char *machine, struct error *error);
/* Takes back the certificate of a user, or of a machine (the other is NULL): it is listed in revoked.crl, and
 * goes with its key. */
int folder_revoke(const char *folder, const char *user, const char *machine, struct error *error);
/* A new token for this user, added to tokens.csv. It is shown this once. */
int folder_token(const char *folder, const char *user, const char *const *groups, size_t group_count,
                 char ret_token[PKI_TOKEN_TEXT], struct error *error);

/* A new token for the administrator, in place of the one that an earlier call made. */
int folder_session_token(const char *folder, char ret_token[PKI_TOKEN_TEXT], struct error *error);

struct folder_config {
    const char *server;     /* "https://127.0.0.1:7070"; several controllers' with commas */
    const char *folder;     /* NULL: plain HTTP, no credentials */
    const char *user;       /* whose certificate is embedded; NULL: none */
    const char *token;      /* or this bearer token; NULL: none */
    const char *namespace_; /* NULL: default */
};
/* Writes a kubeconfig file with everything in it, mode 0600. A single server's cluster and context are named
 * "phalanx"; of several, each has its own of both, named by its host and port, and the first is the current
 * one. ERROR_INVALID: a server is empty, or named twice. */
int folder_kubeconfig(const char *path, const struct folder_config *config, struct error *error);

#endif
