/* request.h - one HTTP request on its way through the server. Private to api.
 *
 *   server.c         between the HTTP server (host/http) and the handlers
 *   route.c          from path and method to resource and handler
 *   read.c, list.c   get, list
 *   write.c          create, replace, and the core's replies; see write.h for patches and deletions
 *   subresource.c    status, eviction
 *   retry.c          writes that their clients send again
 *   ring.c, watch.c  the ring of changes, and its watchers
 *   podlog.c         pods/log
 *   podexec.c        pods/exec and pods/attach; session.c their websocket
 *   discovery.c, openapi.c   descriptions of the API
 *   status.c         errors as Status objects
 *   guard.c          authentication and authorization; review.c access reviews; hold.c rights of open streams
 *   guard_pods.c     Pod Security levels
 *   work.c           work on another thread, or in turns of the loop; seats.c its admission
 *
 * A handler leaves its outcome in the request: a complete answer, or one that follows later. Handlers know
 * nothing of connections, so tests and fuzzers call request_handle() without one.
 */
#ifndef PHX_HOST_API_REQUEST_H
#define PHX_HOST_API_REQUEST_H

#include "doc/json.h"
#include "base/list.h"
#include "host/access/access.h"
#include "host/api/api.h"
#include "kube/render.h"
#include "kube/select.h"
#include "kube/table.h"

enum method { METHOD_GET, METHOD_POST, METHOD_PUT, METHOD_PATCH, METHOD_DELETE, METHOD_OTHER };
enum outcome {
    OUTCOME_READY,   /* code and answer are set */
    OUTCOME_PENDING, /* request_finish() will be called */
    OUTCOME_UPGRADE, /* `exec` continues over a websocket */
    OUTCOME_STREAM,  /* `stream` supplies the bytes */
};
enum { QUERY_MAX = 1024, URL_BYTES_MAX = 16 * 1024, WARNINGS_MAX = 8, WARNING_BYTES_MAX = 256 };

struct query_item {
    struct str name, value;
};

/* Headers of a websocket's handshake, and the subprotocol that was chosen. */
struct request_upgrade {
    struct str to, key, version, protocols;
    const char *protocol;
};

/* A body that is produced in pieces: a list, a watch or a log. */
struct transport;
struct body_stream {
    /* Copies up to `max` bytes and returns their number. Returns 0 if there are none now (transport_wake()
     * will be called), a negative value at the end. */
    int64_t (*read)(struct body_stream *stream, char *data, size_t max);
    /* Frees the stream: its end was read, or the client has left. */
    void (*free)(struct body_stream *stream);
    /* The transport that sends the stream. The request is freed once the answer has begun. NULL in tests and
     * fuzzers. */
    struct transport *transport;
};

/* A body that was parsed on another thread (work.h). `read`: body_parse() returns this result. */
struct request_body {
    struct doc *doc;
    bool read, good;
};

/* A write that its client may send again: retry.c. */
struct request_retry {
    struct str key, resent; /* headers; .data NULL: absent */
    struct str id;          /* REQUEST_ID_BYTES in the arena; empty: there is no key */
    uint64_t content;       /* hash of method, URL and body */
};

/* A write's object, as the API showed it when the work on another thread began. */
struct request_live {
    bool taken, there; /* `text` is used instead of the core; the object exists */
    struct buf text;
    int64_t now_ns;
};

struct work;
struct worker;
struct api_request {
    struct api *api;
    struct transport *transport; /* server.c's; NULL in tests and fuzzers */
    struct arena arena;
    struct list_node node; /* in api->pending while the host has a write of the request */

    enum method method;
    struct str path; /* decoded */
    struct query_item *query;
    size_t query_count;
    struct str accept, content_type, if_none_match, user_agent;
    struct request_upgrade upgrade;
    struct request_retry retry;
    struct buf body;
    struct request_body parsed; /* of a large body: work.h */
    struct request_live live;
    struct work *work; /* not NULL: the request waits for work, or only the work's thread may use it */
    bool bad_url, long_url, body_too_large;
    bool compares; /* kubectl diff: one resourceVersion must always give the same text */

    /* The user, and the attributes by which RBAC decides: guard.c. */
    const struct guard_headers *headers; /* NULL: none were read; guard_identify() then sets empty ones */
    const struct access_user *user;      /* NULL: not authenticated yet */
    const struct access_user *impersonator;
    struct access_attributes what;
    struct str uri;           /* as sent, for the audit log */
    const char *audit_reason; /* why the request was refused, static storage; NULL: it was not */
    int64_t received_ns;
    struct str audit_violations; /* of the Pod Security level that is audited; empty: none */
    const char *review_version;  /* of an access review: "v1" */
    bool refused;                /* guard_identify() has answered the request */
    bool audited;

    /* The object that the path names. */
    const struct resource *resource;
    struct str namespace_, name, subresource;

    enum outcome outcome;
    int code;
    const char *answer_type; /* static storage */
    struct buf answer;
    char etag[24];
    int retry_after_s;    /* of a 429; 0: none */
    struct str *warnings; /* [WARNINGS_MAX] in the arena; NULL: none yet */
    size_t warning_count;
    struct body_stream *stream;
    struct api_exec *exec;
    struct write_job *write; /* write.c's state, in the arena */
};

struct watch_ring;
struct openapi;
struct usage_table;
struct access_builtins;
struct guard_headers;
/* Histogram of the time that the host's loop was busy in each turn. */
enum { TURN_BUCKETS = 13 };
struct api_turns {
    uint64_t buckets[TURN_BUCKETS + 1]; /* by turn_limits_ns of metrics.c; the last: above all limits */
    uint64_t count;
    int64_t sum_ns, longest_ns;
};

/* When rights were last checked, and must be checked next: guard_look_due(). */
struct guard_look {
    uint64_t stamp;
    int64_t due_ns;
};

struct api {
    uv_loop_t *loop;
    struct api_hooks hooks;
    struct access *access;                /* NULL: every client may do everything */
    enum pod_security_level pod_security; /* of namespaces without a label */
    struct server *server;                /* NULL in tests and fuzzers */
    struct worker *worker;                /* work.c's; NULL until it is first needed */
    struct watch_ring *ring;
    struct openapi *openapi;
    struct usage_table *usages;
    struct access_builtins *builtins;
    struct list_node pending; /* requests with a write that the host has not answered */
    struct list_node holds;   /* hold.h */
    struct guard_look holds_look;
    size_t writes_pending;             /* writes that the host has not answered */
    VEC(struct api_request *) retries; /* requests that the loop runs again: write_run_retries() */
    VEC(uint64_t) told_of_images;      /* hashes of the users who were warned that images are recorded only */
    struct api_stats stats;
    struct api_turns turns;
    char log_refuses[API_WHY_MAX]; /* why the log takes no records; empty: it does */
    bool closing;
};

/* Makes an API without sockets: the part of api_new() before it listens. */
struct api *api_new_bare(const struct api_hooks *hooks);
void api_free_bare(struct api *api);

/* Prepares a request. `url` is the request line's target, with its query. */
void request_init(struct api_request *request, struct api *api, enum method method, struct str url);
/* Handles the request: checks its rights, calls the handler, and leaves the outcome in the request. */
void request_handle(struct api_request *request);
/* Handles the request once more after its body was parsed on another thread. Rights are checked again. */
void request_handle_again(struct api_request *request);
void request_done(struct api_request *request);
struct str request_query(const struct api_request *request, const char *name); /* .data NULL: absent */
bool request_flag(const struct api_request *request, const char *name); /* "true", "1" or present and empty */
/* Adds a Warning header to the answer. Warnings beyond WARNINGS_MAX are dropped, long ones are cut. */
void request_warn(struct api_request *request, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sends the answer of a pending request, which is complete or begins. */
void request_finish(struct api_request *request);
/* Returns the user whom the connection's certificate names now. Returns NULL if there is no certificate or,
 * *ret_bad being set, if it is not valid. */
const struct access_user *transport_certificate(const struct transport *transport, bool *ret_bad);
/* Resumes a stream that has bytes again or has ended. NULL is fine. */
void transport_wake(struct transport *transport);
/* Makes the loop call write_run_retries() and work_next_turn() soon. */
void request_retry_soon(struct api *api);
void write_run_retries(struct api *api);

static inline const struct core *request_core(const struct api_request *request)
{
    return request->api->hooks.core(request->api->hooks.context);
}
static inline int64_t request_now(const struct api_request *request)
{
    return request->live.taken ? request->live.now_ns
                               : request->api->hooks.now_ns(request->api->hooks.context);
}

/* --- answers ----------------------------------------------------------------------------------- */

#define ANSWER_JSON "application/json"
/* Begins a JSON answer with this code. Write the body with the returned writer. */
struct json_writer answer_begin(struct api_request *request, int code);
/* Answers with a Status object. `reason` may be "". */
void answer_status(struct api_request *request, int code, const char *reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
struct status_cause {
    const char *reason;
    struct str message, field;
};
void answer_status_causes(struct api_request *request, int code, const char *reason, struct str message,
                          const struct field_errors *causes);
/* Answers 404: `jobsets.jobset.x-k8s.io "x" not found`. */
void answer_not_found(struct api_request *request);
/* Answers 200 with a Status of success, as for a deletion. `uid` is the object's; 0: none. */
void answer_success(struct api_request *request, obj_id uid);
/* Returns the resource's full name: "jobsets.jobset.x-k8s.io", "pods". */
struct str resource_title(struct arena *arena, const struct resource *resource);
void status_write(struct json_writer *out, int code, const char *reason, struct str message);

/* --- handlers ---------------------------------------------------------------------------------- */

/* The form in which the client wants objects: from the Accept header. */
struct answer_form {
    bool table;
    const char *version; /* of meta.k8s.io: "v1" or "v1beta1" */
    enum table_include include;
};
struct answer_form request_form(const struct api_request *request);
/* Finds the object that the URL names, in the core or among the built-in ones. Returns false, and answers
 * nothing, if there is none. */
bool request_find(const struct api_request *request, struct object_ref *ret_object);
/* Answers with one object, in the form that the client wants. */
void answer_object(struct api_request *request, int code, struct object_ref object, struct str name);

void handle_get(struct api_request *request);
void handle_list(struct api_request *request);
void handle_watch(struct api_request *request);
void handle_create(struct api_request *request);
void handle_replace(struct api_request *request);
void handle_patch(struct api_request *request);
void handle_status(struct api_request *request); /* PUT or PATCH of a status */
void handle_delete(struct api_request *request);
void handle_delete_collection(struct api_request *request);
void handle_evict(struct api_request *request);
void handle_log(struct api_request *request);
void handle_exec(struct api_request *request, bool attach);
void handle_version(struct api_request *request);
void handle_metrics(struct api_request *request); /* metrics.c: /metrics */
void handle_report(struct api_request *request);  /* read.c: /report, as a document of the kind Report */
void handle_discovery(struct api_request *request,
                      struct str path); /* /api, /apis and below, without resources */
void handle_openapi(struct api_request *request, struct str path);
/* Call before a write is handled: derives the write's id from its key. Returns false if the request was
 * answered: the write was applied before, or it is no longer known whether it was. In retry.c. */
bool retry_accept(struct api_request *request);
/* Answers a write that was applied before. */
void retry_answer(struct api_request *request, const struct receipt *receipt);
/* Drops what was prepared of the request's write, and removes the request from api->retries. */
void request_forget_write(struct api_request *request);
/* Call before a write goes to the core: sets the write's user. Returns false if the write was refused: by
 * guard_pods(), or because a role or binding grants more than the user holds. In guard.c. */
bool guard_write(struct api_request *request, struct write_event *write);
/* Returns false if the write was refused: a Pod or template violates its namespace's level or needs a right
 * that the user lacks, or a Namespace has malformed labels. Called by guard_write(). In guard_pods.c. */
bool guard_pods(struct api_request *request, const struct write_event *write);

/* Returns whether the request will be continued later. While another thread works on the request, only that
 * thread may read the outcome. */
static inline bool request_is_pending(const struct api_request *request)
{
    return request->work || request->outcome == OUTCOME_PENDING;
}
/* Parses the query's selectors, in the request's arena. Returns false if an error was answered. */
bool request_selector(struct api_request *request, struct selector *ret_selector);

/* --- watches ----------------------------------------------------------------------------------- */

struct watch_ring *watch_ring_new(struct api *api);
void watch_ring_free(struct watch_ring *ring); /* no watcher may be left */
void watch_ring_add(struct watch_ring *ring, const struct effect *changed);
/* Records that the resource was read: its reader may begin to watch from that version (ring.h). */
void watch_ring_interest(struct watch_ring *ring, const struct resource *resource);
void watch_ring_stats(const struct watch_ring *ring, struct api_stats *ret_stats);
/* Checks rights and time limits, and sends bookmarks. Call it once a second. */
void watch_ring_tick(struct watch_ring *ring);

#endif
