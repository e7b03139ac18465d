/* https.h - requests over HTTPS, by libcurl; only the program `phalanx-full` contains it (full.h).
 *
 * The functions have the contracts of net/http_client.h, so client.c treats both alike.
 */
#ifndef PHX_CMD_HTTPS_H
#define PHX_CMD_HTTPS_H

#include "net/http_client.h"

struct client;
struct https_client;

/* Returns a handle for the server and credentials of `client`, which must outlive it. */
struct https_client *https_client_new(struct client *client);
void https_client_free(struct https_client *https); /* NULL: nothing */
enum http_result https_client_call(struct https_client *https, const struct http_request *request,
                                   int *ret_code, struct error *error);

/* Returns a new curl handle (CURL *) with the URL and the credentials set, for commands that hold many
 * streams or a socket. The caller frees it with curl_easy_cleanup. */
void *https_handle(struct client *client, struct str path);

#endif
