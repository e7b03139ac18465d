/* event.h - everything that can happen to the controller, as one closed union.
 *
 * The host stamps an event, appends it to the log, makes it durable, and only then applies it (core_step).
 * Its log form is protobuf (proto/log.proto, record.h): kinds and fields are only added, so an old log
 * replays under a new binary. Events own nothing: strings and arrays point into memory that outlives the
 * step.
 */
#ifndef PHX_CORE_EVENT_H
#define PHX_CORE_EVENT_H

#include "core/agent/message.h"
#include "core/kinds/kinds.h"
#include "core/words/switch.h"

enum event_kind {
    EVENT_BOOT = 1,          /* a controller process took over the log */
    EVENT_CLUSTER = 2,       /* the cluster file, at first start and after every change of it */
    EVENT_TICK = 3,          /* time has passed: timers that are due at the stamp fire */
    EVENT_WRITE = 4,         /* an API write that passed the host's checks */
    EVENT_MACHINE_HELLO = 5, /* an agent registered with its inventory */
    EVENT_MACHINE_AWAY = 6,  /* a machine's connection broke, its tether did not */
    /* every process of a machine is dead: the kernel closed connection and tethers */
    EVENT_MACHINE_GONE = 7,
    EVENT_MACHINE_SILENT = 8, /* a machine's lease expired */
    EVENT_REPORTS = 9,        /* an agent reported about its tasks */
    EVENT_PROGRESS = 10,      /* the step that every rank of an attempt has reached, collected by the host */
    EVENT_PACE = 11,          /* mean own work of an attempt's ranks in a step, over one window */
    EVENT_HOLD_OVER = 12,     /* the grants of lease holds have expired (lease_hold.h) */
    EVENT_SWITCH_REPORT = 13, /* an optical switch has answered a request, or failed to (switch.h) */
    EVENT_SWITCH_HEALTH = 14, /* the health of an optical switch has changed */
    EVENT_LEVEL = 15,         /* every replica reads the log up to a higher level (record.h) */
};

enum write_verb {
    WRITE_CREATE = 1,
    WRITE_REPLACE = 2,
    WRITE_DELETE = 3,
    /* Replaces the status of a JobSet or Job that another controller manages (managedBy) by the body's
     * `status`. If this controller manages the object, the write is refused with 403. The rest of the body
     * is ignored. */
    WRITE_STATUS = 4,
    /* Replaces the labels and annotations of a Job or Pod that the control plane made by the body's
     * metadata.labels and metadata.annotations. The rest of the body is ignored. */
    WRITE_METADATA = 5,
    /* Asks which ranks the others of a JobSet, or of a Job without one, wait for (hang/hang.h). */
    WRITE_DIAGNOSE = 6,
    /* Orders a Node's agent to inject a fault, or to revert one (core/react/injections.c). */
    WRITE_INJECT = 7,
};

/* The fate of the objects that an owner leaves behind (metav1.DeletionPropagation). */
enum propagation {
    PROPAGATION_DEFAULT = 0, /* background */
    PROPAGATION_BACKGROUND = 1,
    PROPAGATION_FOREGROUND = 2, /* the owner is removed last */
    PROPAGATION_ORPHAN = 3,
};

struct doc;
struct prepared_write;

struct write_event {
    enum write_verb verb;
    enum object_kind object;
    struct str namespace_, name; /* name is empty for a create with generateName */
    struct str body;             /* the whole object as JSON; empty on delete */
    uint64_t if_version;         /* required resourceVersion; 0: any */
    struct str uid_text;         /* delete precondition; empty: any */
    int64_t grace_s;             /* delete: grace period; -1: the object's own */
    struct str user;             /* the author of the write, for the record */
    enum propagation propagation; /* delete */
    /* Id of the request, empty or REQUEST_ID_BYTES: with an id, the client may repeat the write
     * (receipt/receipt.h). Present from LEVEL_RECEIPTS on (record.h). `content` is the hash of the whole
     * request. */
    struct str request;
    uint64_t content;
    bool evict; /* delete of a Pod: refused unless its disruption budget allows it */
    /* Random bits from the host. If metadata has only a generateName, the name is made from them, so the
     * check and the step give the same one. */
    uint64_t draw;
    /* In memory only: the log holds `body`, and a replay gives the same state without these two. */
    const struct doc *document;      /* core_check_write: `body` as it was parsed; NULL: parse it */
    /* The parsed body, made by core_check_write or core_prepare_write for core_step; NULL: none */
    struct prepared_write *prepared;
};

struct progress_event {
    obj_id jobset;
    int32_t attempt;             /* restart number; events of older attempts are ignored */
    int64_t step, total;         /* the lowest of all ranks' newest steps */
    enum step_source source;     /* COUNTED if any rank's steps are */
    int64_t first_plus_1;        /* the lowest of all ranks' (struct task_step); 0: no rank reported one */
    struct step_metric metrics[METRICS_MAX]; /* of rank 0 */
    size_t metric_count;
};

/* The mean over all steps of one window. */
struct pace_event {
    obj_id jobset;
    int32_t attempt;
    int64_t window_ns;
    uint32_t *own_us; /* [count] own work of each rank in a step, by slot (job.h); 0: the rank made no step */
    size_t count;
};

struct event {
    enum event_kind kind;
    uint64_t seq;                /* log position, from 1 without gaps */
    int64_t stamp_ns;            /* wall clock at append, never smaller than the last one */
    union {
        struct {
            uint64_t epoch; /* the time in ms, and greater than the last boot's */
            struct str version;
            bool restored; /* the log was restored from a backup: it may lack its newest part */
            bool paused; /* the same process as before, after a pause of nearly a lease or longer */
            uint64_t identity; /* random bits; those of the first boot identify the cluster for ever
                                * (ids.h) */
            struct str secret; /* 32 random bytes, or none; the cluster's secret is that of the first boot
                                * that has one (core_gang_key) */
            struct str place;  /* ADDRESS:PORT of the controller's API, if controllers share the log; from
                               * LEVEL_PLACE on (record.h) */
        } boot;
        struct {
            struct str document; /* JSON */
        } cluster;
        struct write_event write;
        struct {
            struct hello hello;
        } machine_hello;
        struct {
            struct str machine;
            struct str evidence; /* for people: "connection and 4 tethers closed", "no heartbeat for 3.3 s" */
        } machine;               /* AWAY, GONE, SILENT */
        struct {
            struct str machine;
            struct reports reports;
        } reports;
        struct progress_event progress;
        struct pace_event pace;
        struct switch_report switch_report;
        struct switch_health switch_health;
        uint32_t level;     /* from 1 to what this release reads */
        uint64_t hold_over; /* the hold's number; the event is ignored if the hold has changed since */
    };
};

#endif
