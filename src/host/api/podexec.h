/* podexec.h - commands and logs over an upgraded connection, as podexec.c, podlog.c and server.c share them.
 * Private to api. */
#ifndef PHX_HOST_API_PODEXEC_H
#define PHX_HOST_API_PODEXEC_H

#include "host/api/request.h"
#include "net/websocket.h"

/* server.c: the response has left and the descriptor is ours; calls exec_drop or waits for
 * request_release_upgrade. */
void exec_upgraded(struct api_exec *exec, int fd, struct str first);
void exec_drop(struct api_exec *exec); /* the server closes */
void exec_free(struct api_exec *exec); /* with its request */
/* server.c: the connection is the server's again, and closes. */
void request_release_upgrade(struct api_request *request);

/* The container that the request names, or the only main one; false: it was answered. */
bool pod_container(struct api_request *request, const struct task *task, struct str *ret_container);
/* Has the container a log? Does it run? False: the request was answered. */
bool pod_container_started(struct api_request *request, const struct task *task, struct str container);
bool pod_container_runs(struct api_request *request, const struct task *task, struct str container);

/* podlog.c: a log whose bytes go to a function instead of the request's answer. The function returns how many
 * bytes wait; with `end` the stream is gone. */
typedef int64_t log_sink_fn(void *context, struct str bytes, bool end, const char *error_text);
struct api_stream *log_sink_open(struct api_request *request, log_sink_fn *sink, void *context);
void log_sink_close(struct api_stream *stream); /* before its end */

#endif
