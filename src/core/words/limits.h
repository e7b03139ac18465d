/* limits.h - the limits of the core, all fixed at build time. Exceeding one is ERROR_LIMIT with its name. */
#ifndef PHX_CORE_WORDS_LIMITS_H
#define PHX_CORE_WORDS_LIMITS_H

#include "base/units.h"

enum {
    MACHINES_MAX = 131072,             /* machines of one cluster file */
    CHIPS_PER_MACHINE_MAX = 64,        /* a machine's chips are one 64-bit mask */
    LABELS_MAX = 64,                   /* labels of one machine or object */
    JOBSETS_MAX = 100000,              /* live JobSet objects */
    REPLICATED_JOBS_MAX = 256,         /* of one JobSet */
    TASKS_PER_JOBSET_MAX = 65536,      /* sum of parallelism x replicas */
    SPARES_PER_JOB_MAX = 64,           /* tasks of one Job that wait for a rank */
    OBJECT_BYTES_MAX = 3 * 512 * 1024, /* one API object as JSON (etcd's and Kubernetes' 1.5 MiB) */
    REPAIRS_MAX = MACHINES_MAX + 8192, /* Repairs: an open one for each machine, ended ones, and those that
                                        * people create */
    MAINTENANCES_MAX = 1000,
    USER_EVENTS_MAX = 4096,               /* Events that clients wrote: in all, and ... */
    USER_EVENTS_PER_NAMESPACE_MAX = 1024, /* ... in one namespace; a new one replaces the oldest */
    USER_EVENT_BYTES_MAX = 8 * 1024,      /* of one of them as JSON */
    EVENT_OBJECTS_MAX = 4096,             /* the newest API Events of the control plane itself */
    /* API Events that one step may leave: a large gang must not displace all earlier ones */
    NOTES_PER_STEP_MAX = 1024,
    RESTART_RECORDS_MAX = 16,     /* newest restarts kept per JobSet */
    NAME_MAX_BYTES = 253,         /* DNS-1123 subdomain */
    SAVED_BEFORE_MAX = 7,         /* checkpoints by which a rank may be ahead of the slowest */
    REPORTS_PER_EVENT_MAX = 4096, /* task reports in one agent message */
    SIGNALS_PER_EVENT_MAX = 1024, /* signals in one agent message */
    ERRANDS_PER_MACHINE_MAX = 64, /* kept by one agent: waiting, running and ended */
    ERRANDS_MAX = 131072,         /* open errands of all machines */
};

_Static_assert(CHIPS_PER_MACHINE_MAX <= 64, "a machine's chips are bits of one word");
_Static_assert(NOTES_PER_STEP_MAX < EVENT_OBJECTS_MAX, "one step leaves notes of earlier ones");

/* Restarts within this time, with no attempt started between them, can be one incident (job/records.c). */
#define INCIDENT_WINDOW_NS (2 * NS_PER_SECOND)

/* Default length of the windows over which ranks are compared (pace/pace.h). */
#define PACE_WINDOW_DEFAULT_NS (30 * NS_PER_SECOND)
#define PACE_WINDOW_MIN_NS     (200 * NS_PER_MS)
#define PACE_WINDOW_MAX_NS     (3600 * NS_PER_SECOND)

/* Crash loops: after RESTART_RECORDS_MAX restarts of a JobSet in this time, the next attempt waits until the
 * time has passed. */
#define RESTART_WINDOW_NS (60 * NS_PER_SECOND)

/* Times of the machine lease. An agent fences its tasks one lease after it *sent* its last acknowledged
 * heartbeat. The controller waits a lease and a tenth after it *received* that heartbeat, so the agent is
 * first even if the clocks' rates differ by 10 %. */
#define LEASE_DEFAULT_NS     (3 * NS_PER_SECOND)
#define HEARTBEAT_DEFAULT_NS (1 * NS_PER_SECOND)
_Static_assert(LEASE_DEFAULT_NS >= 3 * HEARTBEAT_DEFAULT_NS, "two heartbeats may be lost");
/* The longest time for which leases are held during a planned restart of the controller (lease_hold.h). */
#define LEASE_HOLD_MAX_NS (1800 * NS_PER_SECOND)

#endif
