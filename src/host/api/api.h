/* api.h - the Kubernetes-style REST API of the controller (docs/api.md).
 *
 * The server runs on the host's libuv loop and thread. It owns no state of the cluster: reads render the
 * core's current state, writes go through the host into the log. kubectl 1.27 to 1.33 and client libraries
 * use it as they use a Kubernetes API server.
 *
 *     api_new(loop, &options, &api, error)
 *     a write arrives    -> hooks.submit(context, write, request)    host: append it to the log
 *     the group commit   -> core_step(core, event, effects); for each effect, in order:
 *                             EFFECT_CHANGED -> api_changed(api, effect)
 *                             EFFECT_REPLY   -> api_reply(request, effect)
 *                           finally api_flush(api)
 *     the log fails      -> api_reply_error(request, 507, "InsufficientStorage", "the disk is full: ...")
 *
 * Order and durability: the core holds only applied events, and an event is applied only after its commit.
 * Everything that a read or a watch shows is therefore durable, and a write is answered only through
 * api_reply(). The functions below may be called while effects are carried out: they call no hook but `core`
 * and `now_ns`. Exceptions are api_exec_credit(), which calls `exec_input`, and api_flush(), which may call
 * any hook. All other calls of hooks come from the loop.
 *
 * resourceVersion is a sequence number of the log: an object's is that of its last change, a list's is
 * core_seq(). A watch replays a bounded ring of rendered changes, of the kinds that some client lists or
 * watches. A client that falls behind the ring, or asks for an older version, gets 410 Expired and lists
 * again. Memory: API_RING_BYTES_MAX for the ring, less than 1 KiB for each idle watch, one body of
 * OBJECT_BYTES_MAX for each write under way.
 */
#ifndef PHX_HOST_API_API_H
#define PHX_HOST_API_API_H

#include <uv.h>

#include "core/core.h"
#include "core/spec/pod_security.h"

struct access;
struct api; /* the server */
/* A write without a reply: valid from hooks.submit until its reply, even if its client has disconnected. */
struct api_request;
/* TLS of connections (relay.h, tls.h). */
struct relay;
struct relay_client;
struct api_tls;
/* A log being read: valid from hooks.logs until api_log_data() has passed `end`, or until
 * hooks.logs_closed. */
struct api_stream;
/* A command in a task's container: valid from hooks.exec until api_exec_end() or hooks.exec_closed. */
struct api_exec;

enum {
    API_CONNECTIONS_MAX = 32768,
    API_IDLE_TIMEOUT_S = 120, /* a connection without a request, or a client that does not read its answer */
    API_HEAD_TIMEOUT_S = 20,  /* from a request's first byte to the end of its headers */
    API_BODY_TIMEOUT_S = 60,
    API_RING_ENTRIES_MAX = 65536, /* changes kept for watches */
    API_RING_BYTES_MAX = 64 * 1024 * 1024,
    API_EXEC_WINDOW_BYTES = 256 * 1024, /* output of a command that is on its way to a client */
    API_STREAM_BYTES_MAX = 1024 * 1024, /* log bytes that wait for a slow reader; see api_log_data() */
};

struct api_log_options {
    struct str container; /* a container of the task */
    bool timestamps;      /* before each line */
    bool follow, previous;
    int32_t attempt;     /* an earlier attempt of the task's index; -1: the current one */
    int64_t tail_lines;  /* -1: all */
    int64_t since_ns;    /* wall clock; 0: all */
    int64_t limit_bytes; /* 0: none */
};

struct api_exec_options {
    struct str container; /* a container of the task */
    struct str *argv;
    size_t argc;
    bool tty, input;
};

struct api_hooks {
    void *context;
    /* Returns the core, which the API reads, and asks with core_check_write(). Called at any time. */
    struct core *(*core)(void *context);
    /* Returns the wall clock, for ages. Called at any time. */
    int64_t (*now_ns)(void *context);
    /* Takes a write that core_check_write() has accepted. The write's strings live as long as `request`; the
     * host owns `write->prepared`. It answers with exactly one api_reply() or api_reply_error(), at once or
     * later. */
    void (*submit)(void *context, const struct write_event *write, struct api_request *request);
    /* Reads the log of a task. The host answers with api_log_data(), at once or later. */
    void (*logs)(void *context, const struct task *task, const struct api_log_options *options,
                 struct api_stream *stream);
    /* The reader has left before the end. The stream is invalid when this returns. */
    void (*logs_closed)(void *context, struct api_stream *stream);
    /* Runs a command in a task's container. The host answers with api_exec_output() and api_exec_end(), at
     * once or later. It may pass API_EXEC_WINDOW_BYTES of output, and the bytes that exec_credit adds. */
    void (*exec)(void *context, const struct task *task, const struct api_exec_options *options,
                 struct api_exec *exec);
    /* Passes the client's input, never more than api_exec_credit() has granted. `end`: no more follows. */
    void (*exec_input)(void *context, struct api_exec *exec, struct str bytes, bool end);
    void (*exec_credit)(void *context, struct api_exec *exec, uint64_t bytes);
    void (*exec_resize)(void *context, struct api_exec *exec, uint16_t width, uint16_t height);
    /* The client has left before the end. The exec is invalid when this returns. */
    void (*exec_closed)(void *context, struct api_exec *exec);
    /* Returns whether the machine's agent has confirmed that it applies the present hold of the leases
     * (core/health/lease_hold.h). */
    bool (*hold_counts)(void *context, machine_id machine);
    /* Called before and after each piece of work that may take long. The work calls only the hooks above. The
     * host may call any function below before `ends` returns. Calls are not nested. Both may be NULL. */
    void (*begins)(void *context);
    void (*ends)(void *context);
};

struct api_options {
    const char *address; /* IPv4 or IPv6 to listen on; NULL: 127.0.0.1 */
    uint16_t port;       /* 0: any free port, see api_port() */
    int listening_fd;    /* > 0: share this listening socket instead (http/listener.h) */
    bool listens_not;    /* do not listen: all connections come through api_take() */
    /* 0: half of what RLIMIT_NOFILE allows; never more than API_CONNECTIONS_MAX and that limit */
    uint32_t connections_max;
    /* Open connections of one source address (net/crowd.h); more are closed unread. 0: half of all. A
     * connection with TLS counts as three, the number of its descriptors. */
    uint32_t connections_of_address_max;
    struct api_hooks hooks; /* all are required but `begins` and `ends` */
    /* Decides what each user may do (host/access/access.h); must outlive the server. NULL: every user may do
     * everything. */
    struct access *access;
    /* The level of namespaces without the label pod-security.kubernetes.io/enforce. */
    enum pod_security_level pod_security;
    const char *tls_cert, *tls_key; /* PEM files for HTTPS, must outlive the server; NULL: plain HTTP */
    bool loopback_http;             /* with TLS: clients on this machine may speak plain HTTP too */
    bool from_controllers; /* take requests that other controllers forward for their clients (forwarded.h) */
    /* TLS connections that have sent no request yet, in all and of one source address; more are closed
     * unread. 0: RELAY_SHAKING_MAX, RELAY_SHAKING_OF_ADDRESS_MAX. */
    uint32_t handshakes_max, handshakes_of_address_max;
    /* Further Host names that are accepted over plain HTTP, besides loopback names and the address of the
     * connection (origin.h); must outlive the server. */
    const char *const *names;
    size_t name_count;
};

/* Binds and listens; requests are served once the loop runs. ERROR_IO: the address or port is not available.
 * After a failure run the loop, so that handles finish closing. */
int api_new(uv_loop_t *loop, const struct api_options *options, struct api **ret_api, struct error *error);

/* Serves plain HTTP on a connected socket, and owns the socket. `from` and `here` (NULL: unknown) are the
 * addresses of the client's connection, which may be another one. `tls` has the certificates of a client
 * whose TLS session ends elsewhere (relay.h), and is copied; NULL: the client speaks plain HTTP. */
void api_take(struct api *api, int fd, const struct sockaddr_storage *from,
              const struct sockaddr_storage *here, const struct relay_client *tls);

/* Closes the listener and every connection. Requests, streams and execs are invalid at once, and no hook is
 * called any more. The loop calls `closed` (may be NULL) when the memory is freed. */
void api_close(struct api *api, void (*closed)(void *context), void *context);

/* The server that takes over the clients at a hand-over. */
struct api_heir {
    void *context;
    /* Takes over a client's socket and the received part of its next request. `tls` (valid during the call)
     * describes a client whose session is in a relay: the socket is the session's plain end. NULL: the client
     * speaks plain HTTP. */
    void (*client)(void *context, int fd, struct str bytes, const struct relay_client *tls);
    /* Takes over the TLS sessions: the relay, and its settings, which must outlive it. Returns false if it
     * cannot. NULL: it never can. */
    bool (*relay)(void *context, struct relay *relay, struct api_tls *tls);
};
/* Begins a hand-over. The server accepts no more clients, and passes each connection to the heir once it has
 * no unanswered request. TLS connections that the heir cannot take are served further, and told to close.
 * Wait until api_unanswered() is 0, then call api_handed_over(). */
void api_hand_over(struct api *api, const struct api_heir *heir);
size_t api_unanswered(const struct api *api);      /* requests that wait for the host, or for their body */
size_t api_tls_connections(const struct api *api); /* TLS connections that the heir has not taken */
/* Ends the hand-over: ends watches, so that their clients resume at the next leader, and TLS connections that
 * wait for a request. The server may be closed when api_connections() is 0. */
void api_handed_over(struct api *api);
size_t api_connections(const struct api *api);

uint16_t api_port(const struct api *api);

/* Reads certificate, key and the files of `access` again. The server also does so by itself within two
 * seconds after a file has changed. What cannot be read stays in use as it was. */
int api_reload(struct api *api, struct error *error);

/* Announces an EFFECT_CHANGED, which points into the core. Call it in the order of the effects, right after
 * the core_step() that made them. */
void api_changed(struct api *api, const struct effect *changed);

/* Sets what a machine and its containers use now. The API serves it as metrics.k8s.io for USAGE_KEPT_S. */
void api_usage(struct api *api, machine_id machine, const struct usage *usage);

/* Sets why the log refuses records (copied, cut to API_WHY_MAX); NULL: the log takes records. /readyz and
 * /metrics show it, so that a monitoring client learns of it without writing. */
enum { API_WHY_MAX = 200 };
void api_log_refuses(struct api *api, const char *why);

/* Counts one turn of the host's loop, which was busy for `busy_ns`, for /metrics. */
void api_turn(struct api *api, int64_t busy_ns);

/* Answers a submitted write with the core's reply (EFFECT_REPLY). Call it right after the core_step(). The
 * request is invalid afterwards. */
void api_reply(struct api_request *request, const struct effect *reply);
/* Answers a write that did not reach the core. `code` is an HTTP status (507 disk full, 503 shutting down),
 * `reason` a Kubernetes Status reason. The request is invalid afterwards. */
void api_reply_error(struct api_request *request, int code, const char *reason, const char *message);

/* Passes bytes of a log, in order; `end` ends the log. `error_text` (only with `end`) says why the log
 * failed: before the first byte it becomes an error Status, later a last line. Returns the number of bytes
 * that wait for the reader; a host that can should stop asking its agent at API_STREAM_BYTES_MAX. Beyond
 * twice that the log is cut with a last line that says so: a negative value is returned, and the stream is
 * invalid. */
int64_t api_log_data(struct api_stream *stream, struct str bytes, bool end, const char *error_text);
/* Stores a number for the host with a stream, such as the stream's number on the wire. */
void api_stream_set_tag(struct api_stream *stream, uint64_t tag);
uint64_t api_stream_tag(const struct api_stream *stream);

/* Passes output of a command, in order; `errors`: of its standard error. Returns false, and takes nothing, if
 * that is more than was allowed (hooks.exec). */
bool api_exec_output(struct api_exec *exec, bool errors, struct str bytes);
/* Grants `bytes` further bytes of input, and passes those that have arrived to hooks.exec_input. The host
 * gets no input before the first credit. */
void api_exec_credit(struct api_exec *exec, uint64_t bytes);
/* Ends the exec with `exit_code`, or with -1 and the reason why the command could not run. The host must not
 * use `exec` afterwards. */
void api_exec_end(struct api_exec *exec, int exit_code, const char *error_text);

/* Sends what has become ready. Call it after a batch of the calls above; without it the bytes leave in the
 * next turn of the loop. */
void api_flush(struct api *api);

struct api_stats {
    uint64_t requests, connections, watches, streams, ring_entries, ring_bytes, expired_watches;
    uint64_t refused_connections; /* beyond connections_of_address_max */
    uint64_t accept_pauses;       /* times that descriptors or memory for a new connection were lacking */
};
void api_stats(const struct api *api, struct api_stats *ret_stats);

#endif
