/* request.h - one HTTP request on its way through the server. Private to api.
 *
 *   server.c     between the HTTP server (host/http) and the handlers
 *   route.c      path and method -> what is asked of which resource
 *   read.c, list.c   get, list
 *   write.c      create, replace, and the core's replies; see write.h for patches and deletions
 *   subresource.c  status, eviction
 *   retry.c      writes that their clients send again
 *   watch.c      the ring of changes and its watchers
 *   podlog.c     pods/log
 *   podexec.c    pods/exec and pods/attach; session.c their websocket, websocket.c its frames
 *   discovery.c, openapi.c   what there is
 *   status.c     errors as Status objects
 *   guard_pods.c may this Pod be: Pod Security levels
 *   work.c       what is done beside the loop, or in turns of it; seats.c  for whom, and who waits
 *   guard.c      who asks and may they; review.c  what they ask about that; hold.c  may they still
 * A handler leaves its outcome in the request: an answer that is whole, or one that comes later. Handlers
 * know nothing of connections, so tests and fuzzers call request_handle() without any.
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
    OUTCOME_UPGRADE, /* `exec` goes on over a websocket */
    OUTCOME_STREAM,  /* `stream` gives the bytes as they come */
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

/* A body that comes in pieces: a watch or a log. */
struct transport;
struct body_stream {
    /* Copies up to `max` bytes. 0: nothing now (transport_wake() will come); negative: the end. */
    int64_t (*read)(struct body_stream *stream, char *data, size_t max);
    void (*free)(struct body_stream *stream); /* the client is gone, or the end was read */
    /* The transport whose answer the stream is; the request is gone once the answer has begun. NULL in tests
     * and fuzzers. */
    struct transport *transport;
};

/* A body that was read beside the loop; read: body_parse() has its result. */
struct request_body {
    struct doc *doc;
    bool read, good;
};

/* A write that its client may send again: retry.c. */
struct request_retry {
    struct str key, resent; /* headers; .data NULL: absent */
    struct str id;          /* REQUEST_ID_BYTES in the arena; empty: there is no key */
    uint64_t content;       /* hash of all that is asked for */
};

/* The object that a write is about, as the API showed it when its work began. */
struct request_live {
    bool taken, there; /* taken: the core is not asked again */
    struct buf text;
    int64_t now_ns;
};

struct work;
struct worker;
struct api_request {
    struct api *api;
    struct transport *transport; /* server.c's; NULL in tests and fuzzers */
    struct arena arena;
    struct list_node node; /* in api->pending while OUTCOME_PENDING */

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
    struct work *work; /* NULL: nothing is done beside the loop; else only its thread may use the request */
    bool bad_url, long_url, body_too_large;
    bool compares; /* kubectl diff: wants one text of one resourceVersion */

    /* The user, and the attributes of the request that RBAC decides by: guard.c. */
    const struct guard_headers *headers; /* NULL until guard_identify() without any */
    const struct access_user *user;      /* NULL: not looked at yet */
    const struct access_user *impersonator;
    struct access_attributes what;
    struct str uri;           /* as sent, for the audit log */
    const char *audit_reason; /* of a refusal, static storage; NULL: none */
    int64_t received_ns;
    struct str audit_violations; /* of the Pod Security level that is audited; empty: none */
    const char *review_version; /* of an access review: "v1" */
    bool refused; /* guard_identify() has answered it */
    bool audited;

    /* The object that the path names. */
    const struct resource *resource;
    struct str namespace_, name, subresource;

    enum outcome outcome;
    int code;
    const char *answer_type; /* static storage */
    struct buf answer;
    char etag[24];
    int retry_after_s; /* of a 429; 0: none */
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
/* How long the host's loop was busy in each of its turns. */
enum { TURN_BUCKETS = 13 };
struct api_turns {
    uint64_t buckets[TURN_BUCKETS + 1]; /* by turn_limits_ns of metrics.c; the last: longer than all */
    uint64_t count;
    int64_t sum_ns, longest_ns;
};

/* When rights were looked at last: guard_look_due(). */
struct guard_look {
    uint64_t stamp;
    int64_t due_ns;
};

struct api {
    uv_loop_t *loop;
    struct api_hooks hooks;
    struct access *access; /* NULL: every client may do everything */
    enum pod_security_level pod_security; /* of namespaces without a label */
    struct server *server; /* NULL in tests and fuzzers */
    struct worker *worker; /* of work.c; NULL: nothing was done beside the loop yet */
    struct watch_ring *ring;
    struct openapi *openapi;
    struct usage_table *usages;
    struct access_builtins *builtins;
    struct list_node pending;          /* requests whose reply has not come */
    struct list_node holds;            /* hold.h */
    struct guard_look holds_look;
    size_t writes_pending;             /* writes with the host */
    VEC(struct api_request *) retries; /* writes to be tried again from the loop */
    VEC(uint64_t) told_of_images; /* hashes of the users who were warned that images are recorded only */
    struct api_stats stats;
    struct api_turns turns;
    char log_refuses[API_WHY_MAX]; /* why the log takes no records; empty: it does */
    bool closing;
};

/* Makes an API without sockets: the part of api_new() before it listens. */
struct api *api_new_bare(const struct api_hooks *hooks);
void api_free_bare(struct api *api);

/* `url`: as in the request line, with its query. */
void request_init(struct api_request *request, struct api *api, enum method method, struct str url);
void request_handle(struct api_request *request);
/* The same once more, after work beside the loop: rights are looked at again. */
void request_handle_again(struct api_request *request);
void request_done(struct api_request *request);
struct str request_query(const struct api_request *request, const char *name); /* .data NULL: absent */
bool request_flag(const struct api_request *request, const char *name); /* "true", "1" or present and empty */
void request_warn(struct api_request *request, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The answer of a pending request is there. */
void request_finish(struct api_request *request);
/* Returns the user whom the certificate of the connection names now; NULL: there is none, or (*ret_bad) it is
 * not valid. */
const struct access_user *transport_certificate(const struct transport *transport, bool *ret_bad);
/* The stream that is sent there has bytes again, or ended. */
void transport_wake(struct transport *transport);
/* Asks the loop to run api->retries soon. */
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
/* An empty answer of this code, to be filled through the writer. */
struct json_writer answer_begin(struct api_request *request, int code);
/* A Status object; `reason` may be "" . */
void answer_status(struct api_request *request, int code, const char *reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
struct status_cause {
    const char *reason;
    struct str message, field;
};
void answer_status_causes(struct api_request *request, int code, const char *reason, struct str message,
                          const struct field_errors *causes);
/* `jobsets.jobset.x-k8s.io "x" not found` */
void answer_not_found(struct api_request *request);
void answer_success(struct api_request *request, obj_id uid); /* Status of a delete */
struct str resource_title(struct arena *arena,
                          const struct resource *resource); /* "jobsets.jobset.x-k8s.io", "pods" */
void status_write(struct json_writer *out, int code, const char *reason, struct str message);

/* --- handlers ---------------------------------------------------------------------------------- */

/* How the client wants objects: from the Accept header. */
struct answer_form {
    bool table;
    const char *version; /* of meta.k8s.io: "v1" or "v1beta1" */
    enum table_include include;
};
struct answer_form request_form(const struct api_request *request);
/* Finds the object that the URL names, also a built-in one; false: there is none (nothing is answered). */
bool request_find(const struct api_request *request, struct object_ref *ret_object);
/* Answers with one object, in the form that the client wants, with this code. */
void answer_object(struct api_request *request, int code, struct object_ref object, struct str name);

void handle_get(struct api_request *request);
void handle_list(struct api_request *request);
void handle_watch(struct api_request *request);
void handle_create(struct api_request *request);
void handle_replace(struct api_request *request);
void handle_patch(struct api_request *request);
void handle_status(struct api_request *request); /* PUT or PATCH of it */
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
/* retry.c, before a write is handled: makes its id of its key. False: the request has been answered, because
 * it was applied before, or because it cannot be told any more whether it was. */
bool retry_accept(struct api_request *request);
/* Answers a write that was applied before. */
void retry_answer(struct api_request *request, const struct receipt *receipt);
void request_forget_write(struct api_request *request);
/* guard.c, before a write goes to the core: notes the writer; false: a role or binding that gives more than
 * the user holds was refused. */
bool guard_write(struct api_request *request, struct write_event *write);
/* guard_pods.c, called by guard_write. False: a Pod or template of one was refused by the level of its
 * namespace or for want of a right, or a Namespace for its labels; the request has been answered. */
bool guard_pods(struct api_request *request, const struct write_event *write);

/* Whether somebody will go on with the request. While work is done beside the loop its thread alone may look
 * at the outcome. */
static inline bool request_is_pending(const struct api_request *request)
{
    return request->work || request->outcome == OUTCOME_PENDING;
}
/* The selector of the query, in the request's arena; false: an error was answered. */
bool request_selector(struct api_request *request, struct selector *ret_selector);

/* --- watches ----------------------------------------------------------------------------------- */

struct watch_ring *watch_ring_new(struct api *api);
void watch_ring_free(struct watch_ring *ring); /* no watcher may be left */
void watch_ring_add(struct watch_ring *ring, const struct effect *changed);
/* A list was given out: its reader may watch from there. */
void watch_ring_interest(struct watch_ring *ring, const struct resource *resource);
void watch_ring_stats(const struct watch_ring *ring, struct api_stats *ret_stats);
/* Once a second: time limits and bookmarks. */
void watch_ring_tick(struct watch_ring *ring);

#endif
