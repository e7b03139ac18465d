/* podexec.h - commands and logs over an upgraded connection, shared by podexec.c, podlog.c and server.c.
 * Private to api. */
#ifndef PHX_HOST_API_PODEXEC_H
#define PHX_HOST_API_PODEXEC_H

#include "host/api/request.h"
#include "net/websocket.h"

/* Begins the command or log once the 101 response has left. `fd` is lent until request_release_upgrade();
 * `first` are bytes that the client sent after its request. Called by server.c. */
void exec_upgraded(struct api_exec *exec, int fd, struct str first);
void exec_drop(struct api_exec *exec); /* ends it at once: the server closes */
void exec_free(struct api_exec *exec); /* frees it with its request */
/* Gives the connection back to the server, which closes it. In server.c. */
void request_release_upgrade(struct api_request *request);

/* Finds the container that the request names, or the Pod's only main container. Returns false if the request
 * was answered. */
bool pod_container(struct api_request *request, const struct task *task, struct str *ret_container);
/* Check that the container has started, so that it has a log, and that it is running. Return false if the
 * request was answered. */
bool pod_container_started(struct api_request *request, const struct task *task, struct str container);
bool pod_container_runs(struct api_request *request, const struct task *task, struct str container);

/* podlog.c: opens a log whose bytes go to `sink` instead of the request's answer. The sink returns how many
 * bytes wait for its reader. After a call with `end` the stream is invalid. */
typedef int64_t log_sink_fn(void *context, struct str bytes, bool end, const char *error_text);
struct api_stream *log_sink_open(struct api_request *request, log_sink_fn *sink, void *context);
void log_sink_close(struct api_stream *stream); /* closes it before its end */

#endif
