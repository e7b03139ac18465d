/* internal.h - a driver's state, and the functions that its files share. See drive.h. */
#ifndef PHX_DRIVE_INTERNAL_H
#define PHX_DRIVE_INTERNAL_H

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/vec.h"
#include "core/log/record.h"
#include "drive/drive.h"

/* An event that waits for its record to be durable. */
struct pending {
    struct event event;
    struct arena arena;    /* owns the memory to which the event points */
    drive_request request; /* EVENT_WRITE: the client to answer; 0: none */
    drive_session session; /* HELLO, REPORTS: the session to answer; 0: it has ended */
    machine_id machine;    /* HELLO, REPORTS: the reporting machine; else MACHINE_NONE */
};

/* A session whose first message, Hello or Tether, has arrived. */
struct session {
    struct list_node node;
    drive_session handle;
    machine_id machine;
    bool tether;
};

/* The sessions of one machine's agent. Indexed by machine_id. */
struct machine_sessions {
    drive_session session;   /* the current session; 0: none */
    bool welcomed;           /* its Hello has been applied */
    bool missed_news;        /* reports were dropped for lack of space: its agent must say Hello again */
    uint32_t hellos, queued; /* in the queue: the machine's Hellos, and events that name `session` */
    bool takes_rank_tables;  /* its agent understands RANK_TABLE, a gang's rank table by itself */
    uint64_t rank_table;     /* number of the newest RANK_TABLE that was sent on `session`; 0: none */
    struct evidence evidence;
    struct heap_node lease; /* in `leases` while the core counts on the machine */
};

struct job_steps;

struct driver {
    struct driver_options options; /* defaults filled in */
    struct driver_ports ports;
    struct core *core;
    struct effects effects;
    uint64_t identity;
    uint8_t secret[GANG_KEY_BYTES]; /* for the boot event; only that of the log's first boot counts */
    bool open;
    uint32_t level_asked; /* the level of the newest queued EVENT_LEVEL; 0: none */
    struct driver_stats stats;
    /* clocks */
    int64_t clock_offset_ns; /* the stamps' clock less the monotonic one */
    bool listens;            /* between driver_wait() and the next turn */
    int64_t listened_ns;     /* monotonic: input that arrived before it has been handed over */
    int64_t wait_ns;         /* how long nothing was due at that time */
    int64_t attended_ns;     /* how long a stand-in has answered heartbeats since then */
    /* the queue and its log */
    VEC(struct pending *) queue;
    size_t in_flight; /* how many of the first events are being appended; 0: none */
    size_t queue_bytes, queued_writes;
    bool tick_queued;
    VEC(struct drive_record) records; /* of the append under way */
    struct buf record_bytes;          /* of the same records */
    struct arena record_scratch;      /* of the encoder */
    struct arena start_scratch;       /* of one START after the other */
    int64_t blocked_since_ns;         /* since when the log refuses records; 0: it takes them */
    struct error blocked;             /* why */
    int64_t retry_ns;                 /* when the next append is tried; 0: whenever something waits */
    bool lost;                        /* it is not known what is durable: the driver does nothing more */
    uint64_t snapshot_seq;            /* of the newest snapshot */
    /* Bytes of the newest snapshot; 0: not known, as it was made before this driver. */
    size_t snapshot_size;
    size_t bytes_since_snapshot;      /* of the records that this driver has appended */
    bool snapshot_under_way;
    /* sessions */
    struct machine_sessions *machines; /* [machine_count]; NULL until the driver is open */
    struct heap leases;
    uint64_t hold_number; /* number of the last change of the hold of the leases that was handled */
    int64_t hold_over_ns; /* monotonic: when the time that the hold owes ends; INT64_MAX: it owes none */
    struct list_node sessions;
    struct u64_map sessions_by_handle;
    size_t missing_news; /* machines with missed_news */
    /* steps of ranks */
    VEC(struct job_steps *) job_steps;
    struct u64_map steps_by_jobset;
    struct heap steps_due;
    struct u64_map paces; /* by JobSet */
    struct heap paces_due;
};

/* driver.c */
int64_t driver_mono_ns(const struct driver *driver);
void driver_opens(struct driver *driver); /* when the records of its start have been applied */

/* queue.c */
struct pending *pending_new(enum event_kind kind);
void queue_put(struct driver *driver, struct pending *pending); /* takes `pending` over */
/* Puts an event that concerns no machine and no client ahead of all that is not being appended. */
void queue_put_first(struct driver *driver, struct pending *pending);
bool queue_has_room(const struct driver *driver); /* for agents' messages */
/* Returns how many of the first events make up a turn. */
size_t queue_turn(const struct driver *driver);
void queue_drop_first(struct driver *driver, size_t count); /* after they have been applied */
/* Clears the machine's current session in queued events, when that session ends. */
void queue_forget_session(struct driver *driver, struct machine_sessions *sessions);
void queue_forget_hellos(struct driver *driver, machine_id machine); /* before a newer one is queued */
void queue_refuse_writes(struct driver *driver, int code, const char *reason, const char *why);
void queue_done(struct driver *driver);

/* commit.c */
void commit_turn(struct driver *driver);

/* dispatch.c */
void dispatch(struct driver *driver, const struct pending *pending); /* carries out the effects of its step */

/* sessions.c */
void sessions_open(struct driver *driver); /* arms leases of machines that the core counts on */
/* After a pause: makes agents connect again, and gives each machine a whole lease to do so. */
void sessions_resume(struct driver *driver);
void sessions_check(struct driver *driver); /* checks leases and dropped reports */
void sessions_hello_applied(struct driver *driver, const struct pending *pending);
int64_t sessions_deadline(const struct driver *driver); /* monotonic; INT64_MAX: none */
void sessions_done(struct driver *driver);

/* progress.c */
void job_steps_report(struct driver *driver, machine_id machine, const struct heartbeat *heartbeat);
/* Queues the steps that were reported before a task's end, before that end. */
void job_steps_before_end(struct driver *driver, const struct reports *reports);
void job_steps_flush(struct driver *driver);
int64_t job_steps_deadline(const struct driver *driver); /* monotonic; INT64_MAX: none */
void job_steps_forget(struct driver *driver, obj_id jobset);
void job_steps_done(struct driver *driver);

/* paces.c: windows of the ranks' pace */
void paces_report(struct driver *driver, const struct task *task, const struct pace_sums *sums);
void paces_flush(struct driver *driver);             /* makes ended windows events */
int64_t paces_deadline(const struct driver *driver); /* monotonic; INT64_MAX: none */
void paces_forget(struct driver *driver, obj_id jobset);
void paces_done(struct driver *driver);

#endif
