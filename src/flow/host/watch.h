/* watch.h - looking at a head from another process: its status, and what its devices do.
 *
 *     struct flow_watch *watch;
 *     flow_watch_open("unix:/run/flow/head.sock", NULL, &watch, &error);
 *     struct flow_status status = {0};
 *     flow_watch_status(watch, -1, &status, &error);
 *     ...
 *     flow_status_done(&status);
 *     flow_watch_close(watch);
 *
 * A watcher shows the head's token, as a client does, and sees the names and counts of all clients, but no
 * value. A head has room for 16. One thread at a time uses a watch; calls block.
 */
#ifndef PHX_FLOW_HOST_WATCH_H
#define PHX_FLOW_HOST_WATCH_H

#include "base/error.h"
#include "flow/island/status.h"
#include "flow/island/trace.h"

struct flow_watch;
/* Connects to the head at `address`. token_file NULL: as a client finds its token (wire/token.h). The caller
 * closes *ret_watch. ERROR_UNAVAILABLE: no head answers there, or it has no room for another watcher;
 * ERROR_DENIED: it refuses the token; ERROR_INVALID: the token cannot be read. */
int flow_watch_open(const char *address, const char *token_file, struct flow_watch **ret_watch,
                    struct error *error);
void flow_watch_close(struct flow_watch *watch); /* NULL allowed */

/* Asks for the status and waits for it. `stop_fd`: readable ends the wait (-1: nothing does). *ret_status is
 * empty before, and the caller's to free. ERROR_UNAVAILABLE: the head is gone; ERROR_TIMEOUT: stop_fd; and
 * the errors of flow_status_decode. */
int flow_watch_status(struct flow_watch *watch, int stop_fd, struct flow_status *ret_status,
                      struct error *error);

/* The outcome of a suspension. */
struct flow_suspension {
    uint32_t clients; /* that are suspended, or have been resumed */
    uint64_t bytes;   /* saved, all shards together */
};
/* Suspends all clients of a name: their values are saved, and their devices are free for others. Waits until
 * that is done, which may take `time_ns`; a client that is not through then runs on. ERROR_CONFLICT: a client
 * of that name runs on, or there is none: *error says why. ERROR_UNAVAILABLE, ERROR_TIMEOUT as above. */
int flow_watch_suspend(struct flow_watch *watch, const char *name, int64_t time_ns, int stop_fd,
                       struct flow_suspension *ret, struct error *error);
/* Resumes them, on devices of today. ERROR_CONFLICT: there is no room for one, which stays suspended, or none
 * is suspended. */
int flow_watch_resume(struct flow_watch *watch, const char *name, struct flow_suspension *ret,
                      struct error *error);

/* The functions that hear a trace. Names and hosts come before the records that need them. */
struct flow_trace_sink {
    void *context;
    /* A host is there. */
    void (*host)(void *context, uint32_t host, struct str address);
    /* The name of a client, or (function != 0) of one of its functions. */
    void (*name)(void *context, uint32_t client, uint64_t function, struct str name);
    /* Something that `host` has done (UINT32_MAX: the head). The record's times are those of the day's clock
     * here. */
    void (*record)(void *context, uint32_t host, const struct trace_record *record);
};
/* Records for `time_ns` or until `stop_fd` is readable, then until all hosts have said what they had (at most
 * 5 s). ERROR_UNAVAILABLE: the head is gone; what came before was told. */
int flow_watch_trace(struct flow_watch *watch, int64_t time_ns, int stop_fd,
                     const struct flow_trace_sink *sink, struct error *error);

#endif
