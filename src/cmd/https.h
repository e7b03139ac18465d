/* https.h - requests over HTTPS, by libcurl; only the program `phalanx-full` has this part (full.h).
 *
 * The functions answer as net/http_client.h's do, so that client.c does not care which of the two it calls.
 */
#ifndef PHX_CMD_HTTPS_H
#define PHX_CMD_HTTPS_H

#include "net/http_client.h"

struct client;
struct https_client;

/* `client` gives server and credentials, and must outlive the handle. */
struct https_client *https_client_new(struct client *client);
void https_client_free(struct https_client *https); /* NULL: nothing */
enum http_result https_client_call(struct https_client *https, const struct http_request *request,
                                   int *ret_code, struct error *error);

/* A new curl handle (CURL *) with everything set but what to do, for commands that hold many streams or a
 * socket. The caller frees it with curl_easy_cleanup. */
void *https_handle(struct client *client, struct str path);

#endif
