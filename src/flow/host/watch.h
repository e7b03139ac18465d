/* watch.h - reads a head's status and traces from another process, and suspends its clients.
 *
 *     struct flow_watch *watch;
 *     flow_watch_open("unix:/run/flow/head.sock", NULL, &watch, &error);
 *     struct flow_status status = {0};
 *     flow_watch_status(watch, -1, &status, &error);
 *     ...
 *     flow_status_done(&status);
 *     flow_watch_close(watch);
 *
 * A watcher presents the head's token, as a client does. It sees the names and counts of all clients, but no
 * value. A head accepts 16 watchers. One thread at a time uses a watch; calls block.
 */
#ifndef PHX_FLOW_HOST_WATCH_H
#define PHX_FLOW_HOST_WATCH_H

#include "base/error.h"
#include "flow/island/status.h"
#include "flow/island/trace.h"

struct flow_watch;
/* Connects to the head at `address`. With token_file NULL the token is found as for a client (wire/token.h).
 * The caller closes *ret_watch. Returns the errors of the connection (ERROR_IO) and of flow_token_find;
 * ERROR_TIMEOUT if no head answers within 5 s; ERROR_UNAVAILABLE if it closes the connection, as with too
 * many watchers; or ERROR_DENIED if it refuses the token. */
int flow_watch_open(const char *address, const char *token_file, struct flow_watch **ret_watch,
                    struct error *error);
void flow_watch_close(struct flow_watch *watch); /* NULL allowed */

/* Requests the status and waits for it, at most until `stop_fd` is readable (-1: no limit). *ret_status is
 * empty before; the caller frees it. Returns ERROR_UNAVAILABLE if the head is lost, ERROR_TIMEOUT for
 * stop_fd, or the errors of flow_status_decode. */
int flow_watch_status(struct flow_watch *watch, int stop_fd, struct flow_status *ret_status,
                      struct error *error);

/* The outcome of a suspension. */
struct flow_suspension {
    uint32_t clients; /* number of clients suspended or resumed */
    uint64_t bytes;   /* saved by the suspension, total of all shards */
};
/* Suspends all clients of a name: saves their values and frees their devices. Waits until that is done; a
 * client that cannot be suspended within `time_ns` continues to run. Returns ERROR_CONFLICT, with the reason,
 * if such a client remains or no client has that name; ERROR_UNAVAILABLE and ERROR_TIMEOUT as above. */
int flow_watch_suspend(struct flow_watch *watch, const char *name, int64_t time_ns, int stop_fd,
                       struct flow_suspension *ret, struct error *error);
/* Resumes all clients of a name, on devices that are available now. Returns ERROR_CONFLICT if one of them
 * lacks devices or memory, and so stays suspended, or if none is suspended. */
int flow_watch_resume(struct flow_watch *watch, const char *name, struct flow_suspension *ret,
                      struct error *error);

/* Receives a trace. Names and hosts precede the records that refer to them. */
struct flow_trace_sink {
    void *context;
    /* A live host. */
    void (*host)(void *context, uint32_t host, struct str address);
    /* The name of a client, or (function != 0) of one of its functions. */
    void (*name)(void *context, uint32_t client, uint64_t function, struct str name);
    /* A record of `host` (UINT32_MAX: the head). Its times are times of day, in nanoseconds. */
    void (*record)(void *context, uint32_t host, const struct trace_record *record);
};
/* Records for `time_ns` or until `stop_fd` is readable, then collects the remaining records of all hosts (at
 * most 5 s). Returns ERROR_UNAVAILABLE if the head is lost; the sink has received the records up to then. */
int flow_watch_trace(struct flow_watch *watch, int64_t time_ns, int stop_fd,
                     const struct flow_trace_sink *sink, struct error *error);

#endif
