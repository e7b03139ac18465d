/* api.h - the Kubernetes-style REST API of the controller (docs/api.md).
 *
 * Runs on the host's libuv loop and thread; it owns no state of the cluster: reads render the core's structs
 * as they stand, writes go through the host into the log. kubectl 1.27 to 1.33 and client libraries speak to
 * it as to a Kubernetes API server.
 *
 *     api_new(loop, &options, &api, error)
 *     a write arrives    -> hooks.submit(context, write, request)    host: append it to the log
 *     the group commit   -> core_step(core, event, effects); for each effect, in order:
 *                             EFFECT_CHANGED -> api_changed(api, effect)
 *                             EFFECT_REPLY   -> api_reply(request, effect)
 *                           finally api_flush(api)
 *     the log fails      -> api_reply_error(request, 507, "InsufficientStorage", "the disk is full: ...")
 *
 * Order and durability: the core only ever holds applied events, and an event is applied only after its
 * commit. So what a read or a watch shows is always durable, and a write is answered only through api_reply.
 * None of the functions below calls a hook, so they may be called while effects are carried out; hooks are
 * called from the loop only.
 *
 * resourceVersion is the log's sequence number: of an object, of its last change; of a list, core_seq().
 * A watch replays a bounded ring of rendered changes (of the kinds that somebody lists or watches); a client
 * that falls behind it, or asks for a version from before it, gets 410 Expired and lists again. Memory:
 * API_RING_BYTES_MAX for the ring, less than 1 KiB for each idle watch, one body of OBJECT_BYTES_MAX for each
 * write under way.
 */
#ifndef PHX_HOST_API_API_H
#define PHX_HOST_API_API_H

#include <uv.h>

#include "core/core.h"
#include "core/spec/pod_security.h"

struct access;
struct api; /* the server */
/* A write that has no reply yet: valid from submit until its reply, also when its client has gone. */
struct api_request;
/* TLS of connections (relay.h, tls.h). */
struct relay;
struct relay_client;
struct api_tls;
/* A log being read: valid from logs until the `end` of api_log_data or hooks.logs_closed. */
struct api_stream;
/* A command beside a task: valid from exec until api_exec_end or hooks.exec_closed. */
struct api_exec;

enum {
    API_CONNECTIONS_MAX = 32768,
    API_IDLE_TIMEOUT_S = 120, /* a connection that neither asks nor watches, or does not take its answer */
    API_HEAD_TIMEOUT_S = 20,  /* from a request's first byte to the end of its headers */
    API_BODY_TIMEOUT_S = 60,
    API_RING_ENTRIES_MAX = 65536, /* changes kept for watches */
    API_RING_BYTES_MAX = 64 * 1024 * 1024,
    API_EXEC_WINDOW_BYTES = 256 * 1024, /* of a command's output that are on their way to a client */
    API_STREAM_BYTES_MAX = 1024 * 1024, /* of a log waiting for a slow reader; see api_log_data */
};

struct api_log_options {
    struct str container; /* a container of the task */
    bool timestamps;      /* before each line */
    bool follow, previous;
    int32_t attempt;     /* an earlier one of its place; -1: the task's own */
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
    /* Only read, and asked with core_check_write(); called freely. */
    struct core *(*core)(void *context);
    /* Wall clock, for ages. */
    int64_t (*now_ns)(void *context);
    /* A write that core_check_write() accepted. Its strings live as long as `request`, and its
     * `prepared` is the host's from now on. The host answers with
     * exactly one api_reply() or api_reply_error(), at once or later. */
    void (*submit)(void *context, const struct write_event *write, struct api_request *request);
    /* Read the log of a task. Answered by api_log_data(); `stream` may get its end at once (with an
     * error). */
    void (*logs)(void *context, const struct task *task, const struct api_log_options *options,
                 struct api_stream *stream);
    /* The reader went away before the end; the stream is gone when this returns. */
    void (*logs_closed)(void *context, struct api_stream *stream);
    /* Run a command beside a task. Answered by api_exec_output() and api_exec_end(), which may come at once.
     * The host may have API_EXEC_WINDOW_BYTES of output on the way, and more as exec_credit says so. */
    void (*exec)(void *context, const struct task *task, const struct api_exec_options *options,
                 struct api_exec *exec);
    /* Passes the client's input, never more than api_exec_credit() has asked for; `end`: no more follows. */
    void (*exec_input)(void *context, struct api_exec *exec, struct str bytes, bool end);
    void (*exec_credit)(void *context, struct api_exec *exec, uint64_t bytes);
    void (*exec_resize)(void *context, struct api_exec *exec, uint16_t width, uint16_t height);
    /* The client went away before the end; the exec is gone when this returns. */
    void (*exec_closed)(void *context, struct api_exec *exec);
    /* Has the machine's agent confirmed that it counts by the present hold of the leases
     * (core/health/lease_hold.h)? */
    bool (*hold_counts)(void *context, machine_id machine);
    /* Called around each piece of work that may take long and calls no more of the host than the hooks
     * above; the host may call any function below before `ends` returns. Never nested. NULL: not wanted. */
    void (*begins)(void *context);
    void (*ends)(void *context);
};

struct api_options {
    const char *address; /* IPv4 or IPv6 to listen on; NULL: 127.0.0.1 */
    uint16_t port;       /* 0: any free one, see api_port() */
    int listening_fd;    /* > 0: this listening socket is shared instead (http/listener.h) */
    bool listens_not;    /* no socket listens: connections come by api_take() */
    /* 0: half of what RLIMIT_NOFILE allows; never more than API_CONNECTIONS_MAX and that limit */
    uint32_t connections_max;
    /* Open connections of one source address (net/crowd.h); more are closed unheard. 0: half of all. A
     * connection with TLS counts as three, which is what it has of files. */
    uint32_t connections_of_address_max;
    struct api_hooks hooks; /* all of them are needed */
    /* Decides what each user may do (host/access/access.h); must outlive the server. NULL: every user may do
     * everything. */
    struct access *access;
    /* The level of namespaces without the label pod-security.kubernetes.io/enforce. */
    enum pod_security_level pod_security;
    const char *tls_cert, *tls_key; /* PEM files: HTTPS; NULL: plain HTTP */
    bool loopback_http;             /* with TLS: clients on this computer may speak plain HTTP too */
    bool from_controllers; /* other controllers may pass requests of their clients on (forwarded.h) */
    /* TLS connections that have sent no request yet, in all and of one source address; more are closed
     * unheard. 0: RELAY_SHAKING_MAX, RELAY_SHAKING_OF_ADDRESS_MAX. */
    uint32_t handshakes_max, handshakes_of_address_max;
    /* Names by which clients ask for the server over plain HTTP, beside loopback names and the address that
     * they reach (origin.h); must outlive the server. */
    const char *const *names;
    size_t name_count;
};

/* Binds and listens; requests are served once the loop runs. ERROR_IO: the address or port cannot be had. */
int api_new(uv_loop_t *loop, const struct api_options *options, struct api **ret_api, struct error *error);

/* Serves a connected socket, where plain HTTP comes and goes, and owns it. It need not be the client's own:
 * `from` and `here` (NULL: not known) are the ends of the client's connection. `tls`: of a client whose
 * session ends elsewhere, its certificates (relay.h); NULL: it speaks plain HTTP. */
void api_take(struct api *api, int fd, const struct sockaddr_storage *from,
              const struct sockaddr_storage *here, const struct relay_client *tls);

/* Closes the listener and every connection. Requests and streams are gone at once (the host forgets its
 * tokens; no hook is called any more); `closed` (may be NULL) is called from the loop when the memory is
 * gone. */
void api_close(struct api *api, void (*closed)(void *context), void *context);

/* The server that takes over the clients at a hand-over. */
struct api_heir {
    void *context;
    /* Takes a client's socket, and what of its next request was received. `tls`: plain bytes come and go
     * there, and the relay has the session; NULL: the client speaks plain HTTP. */
    void (*client)(void *context, int fd, struct str bytes, const struct relay_client *tls);
    /* Takes the sessions of TLS: the relay with its settings, which outlive it. False, or NULL: those clients
     * cannot be taken. */
    bool (*relay)(void *context, struct relay *relay, struct api_tls *tls);
};
/* Another controller is about to serve the clients. Accepts none any more; connections whose request has been
 * answered, or that have none, go to the heir. Those of TLS that it cannot take are served on, and told to
 * close. api_unanswered() tells when all requests that had begun are answered. */
void api_hand_over(struct api *api, const struct api_heir *heir);
size_t api_unanswered(const struct api *api); /* requests that wait for the host, or whose body comes */
size_t api_tls_connections(const struct api *api); /* with TLS, which the heir has not taken */
/* The other one serves now: ends watches, so that their clients go on from where they are, and connections of
 * TLS that wait for a request. api_connections() tells when none is left. */
void api_handed_over(struct api *api);
size_t api_connections(const struct api *api);

uint16_t api_port(const struct api *api);

/* Reads certificate, key, and the files of `access` again. The server also does so within two seconds after a
 * file changed. After a failure the previous ones stay in use. */
int api_reload(struct api *api, struct error *error);

/* Announces an EFFECT_CHANGED, in effect order, right after the core_step() that made it (it points into the
 * core). */
void api_changed(struct api *api, const struct effect *changed);

/* Sets what a machine and its containers use now: served as metrics.k8s.io until USAGE_KEPT_S have
 * passed. */
void api_usage(struct api *api, machine_id machine, const struct usage *usage);

/* The log refuses records, for the reason `why` (copied, cut to API_WHY_MAX); NULL: it takes them. Shown by
 * /readyz and at /metrics, so that a monitoring client need not write to learn of it. */
enum { API_WHY_MAX = 200 };
void api_log_refuses(struct api *api, const char *why);

/* The host's loop was busy for so long in one turn: shown at /metrics. */
void api_turn(struct api *api, int64_t busy_ns);

/* The core's answer (EFFECT_REPLY) to a submitted write, right after its core_step(). The request is gone. */
void api_reply(struct api_request *request, const struct effect *reply);
/* The write did not reach the core: `code` is an HTTP status (507 disk full, 503 shutting down), `reason` a
 * Kubernetes Status reason. The request is gone. */
void api_reply_error(struct api_request *request, int code, const char *reason, const char *message);

/* Bytes of a log in order; `end` finishes it. `error_text`, only with `end`: why it failed; before the first
 * byte it becomes an error Status, later a last line. Returns the bytes that wait for the reader: a host that
 * can should stop asking its agent at API_STREAM_BYTES_MAX; beyond twice that the stream is cut with a last
 * line that says so (negative is returned and the stream is gone). */
int64_t api_log_data(struct api_stream *stream, struct str bytes, bool end, const char *error_text);
/* A place for the host's own bookkeeping of a stream (its number on the wire). */
void api_stream_set_tag(struct api_stream *stream, uint64_t tag);
uint64_t api_stream_tag(const struct api_stream *stream);

/* Output in order; false: more than was asked for, nothing was taken. */
bool api_exec_output(struct api_exec *exec, bool errors, struct str bytes);
/* The command takes this many further bytes of input; the client sends nothing before the first credit. */
void api_exec_credit(struct api_exec *exec, uint64_t bytes);
/* Ends the exec with `exit_code`, or with -1 and the reason why the command could not run. Frees the exec. */
void api_exec_end(struct api_exec *exec, int exit_code, const char *error_text);

/* Sends what became ready. Call it at the end of a batch; forgetting it costs a loop iteration, nothing
 * else. */
void api_flush(struct api *api);

struct api_stats {
    uint64_t requests, connections, watches, streams, ring_entries, ring_bytes, expired_watches;
    uint64_t refused_connections; /* beyond connections_of_address_max */
    uint64_t accept_pauses;       /* no connection could be accepted for want of descriptors or memory */
};
void api_stats(const struct api *api, struct api_stats *ret_stats);

#endif
