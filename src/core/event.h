/* event.h - everything that can happen to the controller, as one closed union.
 *
 * An event is stamped and appended to the log, made durable, and only then applied (core_step). Its log form
 * is protobuf (proto/log.proto, record.h): kinds and fields are only ever added, so an old log replays under
 * a new binary. Events own nothing: strings and arrays point into memory that outlives the step.
 */
#ifndef PHX_CORE_EVENT_H
#define PHX_CORE_EVENT_H

#include "core/agent/message.h"

enum event_kind {
    EVENT_BOOT = 1,           /* a controller process took over the log */
    EVENT_CLUSTER = 2,        /* the cluster file, at first start and whenever it changed */
    EVENT_TICK = 3,           /* time passed: timers that are due by the stamp fire */
    EVENT_WRITE = 4,          /* an API write that passed the host's checks */
    EVENT_MACHINE_HELLO = 5,  /* an agent registered with its inventory */
    EVENT_MACHINE_AWAY = 6,   /* its connection broke, its tether did not */
    EVENT_MACHINE_GONE = 7,   /* every process on it is dead: connection and tethers are closed */
    EVENT_MACHINE_SILENT = 8, /* its lease ran out */
    EVENT_REPORTS = 9,        /* an agent reported about its tasks */
    EVENT_PROGRESS = 10,      /* the step that every rank of an attempt has reached, coalesced by the host */
    EVENT_PACE = 11,          /* how long the ranks of an attempt worked on a step, of one window */
    EVENT_HOLD_OVER = 12,     /* what agents were granted by holds has ended (lease_hold.h) */
};

/* Kinds of API objects. The order is part of the log format. */
enum object_kind {
    OBJECT_JOBSET = 1,
    OBJECT_JOB = 2,
    OBJECT_POD = 3,
    OBJECT_NODE = 4,
    OBJECT_EVENT = 5,
    OBJECT_NAMESPACE = 6,
    /* What follows, and Namespaces, are stored as they were written: object/object.h. */
    OBJECT_CONFIG_MAP = 7,
    OBJECT_SECRET = 8,
    OBJECT_SERVICE = 9,
    OBJECT_SERVICE_ACCOUNT = 10,
    OBJECT_CLAIM = 11, /* PersistentVolumeClaim */
    OBJECT_PRIORITY_CLASS = 12,
    OBJECT_RESOURCE_QUOTA = 13,
    OBJECT_CLUSTER_QUEUE = 14,
    OBJECT_LOCAL_QUEUE = 15,
    OBJECT_RESOURCE_FLAVOR = 16,
    OBJECT_COHORT = 17,
    OBJECT_WORKLOAD_PRIORITY_CLASS = 18,
    OBJECT_TOPOLOGY = 19,
    OBJECT_WORKLOAD = 20, /* made by admit/, never stored */
    OBJECT_ROLE = 21,
    OBJECT_ROLE_BINDING = 22,
    OBJECT_CLUSTER_ROLE = 23,
    OBJECT_CLUSTER_ROLE_BINDING = 24,
    OBJECT_USER_EVENT = 25,     /* Events that clients wrote; writes to them name OBJECT_EVENT */
    OBJECT_DISRUPTION_BUDGET = 26, /* PodDisruptionBudget */
    OBJECT_ADMISSION_CHECK = 27,
    OBJECT_REPAIR = 28,         /* repair/repair.h */
    OBJECT_MAINTENANCE = 29,
    OBJECT_FAULT = 30,          /* health/fault.h, never stored */
    OBJECT_FAULT_TABLE = 31,
    OBJECT_KINDS
};
enum write_verb {
    WRITE_CREATE = 1,
    WRITE_REPLACE = 2,
    WRITE_DELETE = 3,
    /* The body's `status` becomes that of a JobSet or Job that another controller manages (managedBy); of
     * one of ours: 403. The rest of the body is not looked at. */
    WRITE_STATUS = 4,
    /* The body's metadata.labels and metadata.annotations become those of a Job or Pod that the control plane
     * made from something else. The rest of the body is not looked at. */
    WRITE_METADATA = 5,
    /* A person wants to know for whom the ranks of a JobSet, or of a Job of its own, wait (hang/hang.h). */
    WRITE_DIAGNOSE = 90,
    /* Something of a Node is broken on purpose, by its agent, or that is undone (core/injections.c). */
    WRITE_INJECT = 180,
};

/* What becomes of the objects that an owner leaves behind (metav1.DeletionPropagation). */
enum propagation {
    PROPAGATION_DEFAULT = 0, /* background */
    PROPAGATION_BACKGROUND = 1,
    PROPAGATION_FOREGROUND = 2, /* the owner goes last */
    PROPAGATION_ORPHAN = 3,
};

struct write_event {
    enum write_verb verb;
    enum object_kind object;
    struct str namespace_, name; /* name is empty on create with generateName */
    struct str body;             /* the whole object as JSON; empty on delete */
    uint64_t if_version;         /* resourceVersion that must still hold; 0: any */
    struct str uid_text;         /* delete precondition; empty: any */
    int64_t grace_s;             /* delete: -1 the object's own */
    struct str user;             /* who wrote, for the record */
    enum propagation propagation; /* delete */
    bool evict;                   /* delete of a Pod: only as far as its disruption budget allows */
    /* Random bits that the host drew: the name is made from them where metadata has only a generateName, so
     * the check and the step give the same one. */
    uint64_t draw;
};

struct progress_event {
    obj_id jobset;
    int32_t attempt;             /* restart number; older ones are ignored */
    int64_t step, total;         /* lowest newest step of all ranks */
    enum step_source source;     /* COUNTED when it is for any of them */
    int64_t first_plus_1;        /* the lowest of them (struct task_step); 0: none said */
    struct step_metric metrics[METRICS_MAX]; /* rank 0's */
    size_t metric_count;
};

/* The mean over the steps that were made in the window. */
struct pace_event {
    obj_id jobset;
    int32_t attempt;
    int64_t window_ns;
    uint32_t *own_us; /* [count] a step's own work of each rank, by slot (job.h); 0: it made no step */
    size_t count;
};

struct event {
    enum event_kind kind;
    uint64_t seq;                /* log position, from 1 without gaps */
    int64_t stamp_ns;            /* wall clock at append, never smaller than the one before */
    union {
        struct {
            uint64_t epoch;      /* one more than the last boot's */
            struct str version;
            bool paused; /* the same process as before, which stood still for nearly a lease or longer */
            uint64_t identity; /* random bits; the first boot's are the cluster's for ever (ids.h) */
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
        uint64_t hold_over; /* the hold's number; of no meaning when there was a change since */
    };
};

#endif
