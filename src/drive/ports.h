/* ports.h - what a driver needs from its world (drive.h): a log, a network, clocks, sinks and switches.
 *
 * A port is a table of functions with a context; the driver copies it at init. All functions are called on
 * the driver's thread, from inside a call of drive.h, and none may call the driver. Pointers that a function
 * is given are valid until it returns, unless stated otherwise.
 *
 * Handles. A session is one open connection of an agent; a request is one client that waits for an answer.
 * The world chooses their numbers, which are never 0. A session's number may be used again once it has been
 * closed, a request's once it has been answered or refused.
 */
#ifndef PHX_DRIVE_PORTS_H
#define PHX_DRIVE_PORTS_H

#include "base/error.h"
#include "core/core.h"

typedef uint64_t drive_session;
typedef uint64_t drive_request;

struct drive_record {
    uint64_t seq;
    int64_t stamp_ns;
    struct str bytes; /* record.h */
};

/* The result of an append, besides negative error codes. */
enum drive_append { APPEND_LATER = 0, APPEND_DONE = 1 };

struct log_port {
    void *context;
    /* Makes the records durable, all or none of them, after the earlier ones. APPEND_DONE: they are durable.
     * APPEND_LATER: the host calls driver_appended() later; until then the records stay valid, and no second
     * append is made. ERROR_NO_SPACE, ERROR_UNAVAILABLE: the log has none of them, and a retry may succeed.
     * Any other error: it is not known what is durable, and the driver stops. */
    int (*append)(void *context, const struct drive_record *records, size_t count, struct error *error);
    /* Takes over `bytes`, the state after record `seq`. Returns true if the host will call
     * driver_snapshot_ended(), saved or not, and false if the snapshot has ended already. */
    bool (*snapshot)(void *context, uint64_t seq, int64_t stamp_ns, struct buf *bytes);
    /* An append failed and will be retried; called after each failed try. */
    void (*refuses)(void *context, const struct error *why);
    void (*takes)(void *context, int64_t refused_ns);     /* the log takes records again, after refused_ns */
    void (*lost)(void *context, const struct error *why); /* it is not known what is durable */
};

struct net_port {
    void *context;
    /* Messages of one session arrive in order, or the session breaks. */
    void (*send)(void *context, drive_session session, const struct from_controller *message);
    /* Ends the session; no driver_closed() follows. `refused`: the reason that the agent was sent, or
     * NULL. */
    void (*close)(void *context, drive_session session, const char *refused);
};

struct clock_port {
    void *context;
    int64_t (*mono_ns)(void *context); /* never goes back; may stand still while the computer does */
    int64_t (*wall_ns)(void *context); /* may jump */
};

/* The sinks of the driver's output. Each function may be NULL. */
struct sink_port {
    void *context;
    /* The only answer to a write: `reply` after it was applied, or `refuse` if it never will be. */
    void (*reply)(void *context, drive_request request, const struct effect *effect);
    void (*refuse)(void *context, drive_request request, int code, const char *reason, const char *why);
    void (*changed)(void *context, const struct event *cause, const struct effect *effect);
    /* A message of a machine's current session that does not concern the core: LOG_DATA, EXEC_DATA, EXEC_END,
     * and HEARTBEATs with usage figures. */
    void (*said)(void *context, machine_id machine, const struct from_agent *message);
    void (*session_over)(void *context, machine_id machine); /* open requests to it stay unanswered */
    /* Called around each core_step, for an oracle. */
    void (*before_step)(void *context, const struct event *event);
    void (*after_step)(void *context, const struct event *event, const struct drive_record *record,
                       const struct effects *effects);
};

struct switch_port {
    void *context;
    /* Begins a request to an optical switch by the rules of core/words/switch.h; copy `apply` to keep it.
     * driver_switch_report() follows from the world's loop, never from inside this call. NULL: the world has
     * no switches. */
    void (*apply)(void *context, const struct switch_apply *apply);
};

struct driver_ports {
    struct log_port log;
    struct net_port net;
    struct clock_port clock;
    struct sink_port sinks;
    struct switch_port switches;
};

#endif
