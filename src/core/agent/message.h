/* message.h - the messages between controller and agents.
 *
 * Each machine has one connection, opened by its agent. Messages arrive in order, or the connection breaks.
 * The agent's first message is Hello with its full inventory; the controller answers Welcome or Refused. A
 * new Hello voids all messages under way on older connections: the controller compares the inventory with its
 * own state and repeats Start and Stop. Every message may therefore arrive twice, and must be harmless then;
 * it names a task by uid.
 *
 * In addition, an agent opens a tether: a second connection on which it sends only Tether. Every shim of the
 * machine inherits the tether's socket, so the kernel closes it exactly when the last shim is dead. A closed
 * tether distinguishes a lost machine from an agent that died alone.
 *
 * On the wire a message is a frame {u32 length, u32 crc32c, protobuf bytes} (proto/wire.proto, codec.h); a
 * simulation passes the structs themselves. Strings point into the arena into which the message was decoded.
 */
#ifndef PHX_CORE_AGENT_MESSAGE_H
#define PHX_CORE_AGENT_MESSAGE_H

#include "base/str.h"
#include "core/words/container.h"
#include "core/words/order.h"
#include "core/words/release.h"
#include "core/health/signature.h"
#include "core/words/signal.h"
#include "core/words/ids.h"

enum { METRICS_MAX = 8, FRAME_BYTES_MAX = 32 * 1024 * 1024 };

/* --- agent -> controller -------------------------------------------------------------------------------- */

enum report_kind {
    REPORT_STARTED = 1,      /* the process runs */
    REPORT_EXITED = 2,       /* the task ended; its chips are free */
    REPORT_START_FAILED = 3, /* the task could not be started; its chips are free */
    REPORT_JOINED = 4,       /* the task joined through libphalanx: it will report steps */
    REPORT_SHARD_SAVED = 5,  /* its checkpoint shard of `step` is durable */
    REPORT_PEER_GONE = 6,    /* its connection to `peer_rank` broke: evidence that the peer is lost */
    REPORT_PREPARING = 7,    /* init containers run or wait; the main containers do not run yet */
    REPORT_NOTE = 8,         /* an event of the Pod: `reason`, `message`, `warning`; `step` numbers them */
    REPORT_RETRY = 9,        /* its program cannot continue from its state, though no rank is lost;
                              * `message`: why */
    REPORT_ROUTES = 10,      /* `routes`: the routing tables that its chips use have changed */
};
/* The routing tables of the slice that a rank's chips use, as the rank's process reports them. A rank opens
 * fabric sessions of its chips one after another, under growing numbers. A session has no tables when it
 * opens. Before the rank loads tables, it waits until NOTICE_TABLES names its session, so that the log has
 * the session first. */
struct rank_routes {
    uint64_t session; /* number of the newest session; 0: it has opened none */
    bool open;        /* the session was not closed */
    uint64_t tables;  /* number of the tables that its chips have loaded; 0: none yet */
    uint64_t without; /* switches that the tables avoid, one bit for each number */
    uint64_t wrong;   /* switches over which its chips see other chips than the slice's circuits join */
};
struct task_report {
    enum report_kind kind;
    obj_id task;
    int32_t exit_code;               /* EXITED: >= 0; -1 if a signal ended it */
    int32_t signal;                  /* EXITED: 0 or the signal */
    bool oom, fenced;                /* EXITED: killed for memory; killed by the fence */
    int64_t started_ns, finished_ns; /* wall clock of the machine; 0: unknown */
    int64_t step;                    /* SHARD_SAVED */
    uint32_t peer_rank;              /* PEER_GONE */
    int64_t pid;
    struct str message; /* START_FAILED, RETRY: why; NOTE: the event's text */
    bool not_ready;     /* STARTED: one of its containers is not ready */
    /* STARTED, EXITED, START_FAILED, PREPARING: the containers of a task that was started with some. The
     * report is repeated when one of them changes. */
    struct container_status *containers;
    size_t container_count;
    struct str reason; /* NOTE: "Unhealthy", "BackOff", ... */
    bool warning;
    struct signature *signatures; /* EXITED: from the end of its log; at most SIGNATURES_MAX */
    size_t signature_count;
    /* STARTED, JOINED, SHARD_SAVED, PEER_GONE, RETRY, ROUTES: 1 + the attempt of the report. START_FAILED of
     * a fenced task: 1 + the newest attempt seen. 0: not given. */
    uint32_t attempt_plus_1;
    bool can_rejoin, spare;    /* JOINED: the process can continue under another attempt; it has no rank */
    struct rank_routes routes; /* ROUTES; STARTED repeats the newest that this agent has received */
};

struct step_metric {
    struct str name;
    int64_t micro; /* value x 1,000,000, so that no float reaches the core */
};
/* A rank's use of its time, summed since its process began. */
struct pace_sums {
    int64_t steps; /* 0: not reported */
    int64_t elapsed_us, own_us; /* own_us: its own work, without waiting for other ranks */
};
/* The source of a task's step. The numbers are part of the log and of snapshots. */
enum step_source {
    STEP_SAID,    /* its process reports the step through libphalanx */
    STEP_READ,    /* its log has the number (phalanx.dev/step-pattern) */
    STEP_COUNTED, /* the number of matching log lines since its process began: not an absolute step */
    STEP_SOURCES
};
/* The newest step of one task; carried by heartbeats, never acknowledged, never logged as such. */
struct task_step {
    obj_id task;
    int64_t step, total; /* total 0: unknown */
    enum step_source source;
    int64_t first_plus_1; /* 1 + the step from which its process resumed, or of its first line; 0: neither */
    struct step_metric metrics[METRICS_MAX];
    size_t metric_count;
    /* Losses among the metrics; used within an agent only. */
    struct str not_finite;   /* name of a loss that is not finite; empty: none */
    int64_t not_finite_step; /* the step since which that is so */
    bool finite_loss;        /* a loss is finite */
    struct pace_sums pace;
    uint32_t attempt_plus_1; /* as in task_report */
};

/* The newest attempt of a JobSet that an agent has seen in an order. */
struct attempt_seen {
    obj_id jobset;
    int32_t attempt;
    uint64_t epoch; /* the ordering controller's; 0: unknown, because an earlier agent received the order */
};
enum { ATTEMPTS_SEEN_MAX = 256 };

struct hello {
    uint32_t version;     /* the agent's version of the wire (release.h) */
    struct str machine;   /* name in the cluster file */
    uint64_t incarnation; /* wall clock ns at the agent's start; grows with every start */
    /* Number of the connection within this incarnation, from 1; its tether has the same number. */
    uint64_t connection;
    uint32_t chips; /* number that the agent found, or was given */
    int64_t cpu_milli, memory_bytes;
    struct str software; /* "phalanx 0.1.0" */
    bool rank_tables;    /* the agent understands RANK_TABLE */
    /* Inventory: STARTED for each live task (also while launching), EXITED / START_FAILED for each ended
     * one that was not acknowledged yet. */
    struct task_report *reports;
    size_t report_count;
    bool errands;       /* the agent understands errands */
    obj_id *errand_ids; /* errands that wait, run, or have ended without an acknowledgement */
    size_t errand_count;
    bool injection; /* the agent injects faults on request (ERRAND_INJECT) */
    /* Attempts above 0. A controller whose log was restored from a backup continues with attempts after
     * these. */
    struct attempt_seen *seen;
    size_t seen_count;
    uint64_t cluster; /* identity of the machine's cluster (core_identity); 0: none yet */
};
/* The usage of a machine and its containers during the last window, measured by the agent's host. One
 * heartbeat in ten seconds carries it; it is never logged. */
struct container_usage {
    obj_id task;
    uint32_t container;   /* index into its launch's containers */
    int64_t cpu_nano;     /* billionths of a CPU */
    int64_t memory_bytes; /* memory that cannot be reclaimed at will */
};
enum { USAGE_ITEMS_MAX = 4096 };
struct usage {
    int64_t window_ns; /* 0: not measured */
    int64_t cpu_nano, memory_bytes;
    struct container_usage *items;
    size_t item_count;
};
/* The rest of a hold of the leases when the controller answers (lease_hold.h). */
struct lease_grant {
    uint64_t number; /* number of the hold's newest change; 0: there never was a hold */
    int64_t left_ns; /* time on top of the lease; 0: no hold is in force */
};
struct heartbeat {
    int64_t sent_ns;         /* agent's CLOCK_BOOTTIME; returned in the acknowledgement */
    int64_t wall_ns;         /* agent's wall clock, to measure its skew */
    uint64_t grant;          /* number of the grant that its fence includes */
    struct task_step *steps; /* steps that have changed */
    size_t step_count;
    struct usage usage;
};
struct reports {
    uint64_t number; /* counts from 1 on each connection; acknowledged when the reports are durable */
    struct task_report *items;
    size_t count;
    struct signal *signals; /* observations on the machine */
    size_t signal_count;
    struct errand_end *errands; /* ended errands; repeated until acknowledged */
    size_t errand_count;
};
struct log_data {
    uint64_t stream;
    struct str bytes;
    bool end;         /* nothing follows */
    struct str error; /* with end: why it failed; empty: no failure */
};

/* A command that runs beside a task (kubectl exec). Every byte of a channel spends credit that its receiver
 * gave before, so neither side ever buffers more than it offered. EXEC_OPEN gives the agent its first credit;
 * the agent's first EXEC_DATA gives the controller its own. Streams end with the connection. */
enum exec_channel { EXEC_STDIN, EXEC_STDOUT, EXEC_STDERR };
struct exec_data { /* both ways */
    uint64_t stream;
    uint32_t channel; /* enum exec_channel */
    struct str bytes;
    bool end;        /* the channel is closed */
    uint64_t credit; /* further bytes that the receiver of this message may send */
};
struct exec_end { /* the last message of a stream */
    uint64_t stream;
    int32_t exit_code; /* >= 0; -1: it could not be run or watched to its end, `error` says why */
    struct str error;
};

enum from_agent_kind {
    FROM_AGENT_HELLO = 1,
    FROM_AGENT_TETHER = 2, /* only machine, incarnation and connection of hello are set */
    FROM_AGENT_HEARTBEAT = 3,
    FROM_AGENT_REPORTS = 4,
    FROM_AGENT_STEPS = 5, /* `heartbeat` with steps only: between heartbeats, at once for a first step */
    FROM_AGENT_LOG_DATA = 6,
    FROM_AGENT_EXEC_DATA = 7,
    FROM_AGENT_EXEC_END = 8,
};
struct from_agent {
    enum from_agent_kind kind;
    union {
        struct hello hello;
        struct heartbeat heartbeat; /* also STEPS */
        struct reports reports;
        struct log_data log_data;
        struct exec_data exec_data;
        struct exec_end exec_end;
    };
};

/* --- controller -> agent -------------------------------------------------------------------------------- */

/* A rank of a gang. The agent makes the hosts file and the rank table from these entries (rank_table.h). */
struct rank_table_entry {
    struct str hostname; /* "<job>-<index>" */
    struct str address, machine;
    uint64_t chips; /* mask on its machine */
    uint32_t rank;
};
struct gang_rank_table {
    struct str subdomain, namespace_;
    struct rank_table_entry *entries; /* by rank */
    size_t count;
};
/* A gang's rank table, sent once to a machine however many ranks the machine starts. The following STARTs on
 * this connection refer to it by number, until another RANK_TABLE replaces it. */
struct packed_rank_table {
    uint64_t number;  /* derived from its bytes, so that an equal rank table need not be sent again; not 0 */
    struct str bytes; /* codec_pack_rank_table */
};
struct task_launch {
    obj_id task, jobset;
    int32_t attempt;                          /* restart number of the JobSet; an older one is fenced */
    struct str name, namespace_;              /* of the Pod */
    struct str checkpoint_folder;             /* the JobSet's, in the checkpoint directory or store */
    struct str checkpoint_dir;                /* the cluster's; empty: none */
    struct str *argv;
    size_t argc;
    struct env_var *env; /* the user's variables and Phalanx's; the agent adds paths that only it knows
                          * (PHX_AGENT_SOCKET, PHX_RANK_TABLE, PHX_HOSTS_FILE) */
    size_t env_count;
    struct str working_dir;            /* empty: the task's own directory */
    int64_t run_as_user, run_as_group; /* -1: the agent's choice */
    uint32_t uid_from, uid_count;      /* the namespace's range of user ids; count 0: it has none */
    uint32_t fs_group;                 /* the group of its volumes; 0: none */
    uint64_t chips;
    int64_t cpu_milli, memory_bytes; /* limits; 0: none */
    int64_t grace_ns;
    uint32_t rank, world;
    int64_t restore_step;    /* newest committed checkpoint, -1: none */
    int32_t restore_attempt; /* attempt that wrote it */
    struct gang_rank_table rank_table;
    /* Used only on the wire. If it is not 0, `rank_table` and the variables made from it are left out, and
     * the RANK_TABLE of this number has them (rank_table.h). */
    uint64_t rank_table_number;
    /* The main containers, then init containers and sidecars in order. Without any, the task has one main
     * container that is never restarted in place: `argv` to `memory_bytes` above describe it, and are
     * otherwise unused. */
    struct container_launch *containers;
    size_t container_count;
    struct volume_launch *volumes;
    size_t volume_count;
    /* Patterns (spec.h) for the lines of its log; empty: none. A line that matches the first is a step. The
     * number after a match of the second is the rank's own time in a step, in milliseconds. */
    struct str step_pattern, work_pattern;
    uint8_t gang_key[GANG_KEY_BYTES]; /* secret by which the attempt's ranks authenticate; zeros: none */
};
/* Orders a living process to continue in another attempt. The process closes its connections, joins its agent
 * again with `attempt`, and meets the other ranks at the rendezvous. From then on its messages of an older
 * attempt are refused. */
enum rejoin_flag { REJOIN_DUMP = 1 };
enum { RENDEZVOUS_MAX = 271 }; /* bytes of task_rejoin.rendezvous: a host name, a colon, a port */
struct task_rejoin {
    obj_id task;
    int32_t attempt;
    uint32_t rank, world;
    uint32_t full_world;   /* the world before a shrink */
    uint32_t flags;        /* enum rejoin_flag */
    struct str rendezvous; /* "host:port" of rank 0, printable ASCII without blanks; empty: rank 0 is on no
                            * machine yet */
    int64_t restore_step;  /* as in task_launch */
    int32_t restore_attempt;
    uint8_t gang_key[GANG_KEY_BYTES];
};
struct task_stop {
    obj_id task;
    int64_t grace_ns; /* 0: kill at once */
};
enum { SLICE_TABLES_MAX = 160 }; /* bytes of the name of routing tables (slice/slice.h) */
enum notice_kind { NOTICE_CHECKPOINT_COMMITTED = 1, NOTICE_DRAIN = 2, NOTICE_TABLES = 3 };
/* Numbered as enum phx_drain_reason (include/phalanx/phalanx.h). For all but the first, the announced stop
 * follows as soon as a checkpoint is committed. */
enum drain_reason { DRAIN_MAINTENANCE = 1, DRAIN_PREEMPTION = 2, DRAIN_FAULT = 3, DRAIN_MOVE = 4 };
struct task_notice {
    enum notice_kind kind;
    obj_id task;
    int64_t step;        /* CHECKPOINT_COMMITTED; TABLES: their number; newer tables have a larger one */
    int64_t deadline_ns; /* DRAIN: time left from now */
    enum drain_reason reason; /* DRAIN */
    struct str tables;        /* TABLES: their name: "4x4x8-twisted without x5" */
    uint64_t session;         /* TABLES: the rank's open session in the log; 0: none */
};
struct welcome {
    uint64_t epoch; /* the controller's; the agent refuses one smaller than it has seen */
    int64_t lease_ns, heartbeat_ns;
    uint32_t chips_plus_1; /* 1 + the machine's number of chips in the cluster file; 0: not given */
    struct lease_grant grant;
    uint64_t cluster; /* identity of the controller's cluster; the agent refuses any but its own */
    uint32_t version; /* the controller's version of the wire (release.h) */
};
#define LOG_NOT_KEPT "no log of this attempt is here" /* LOG_DATA.error: another machine may have the log */
struct log_open {
    uint64_t stream;
    obj_id task;
    bool follow, previous;
    int64_t tail_lines;   /* -1: all */
    int64_t since_ns;     /* wall clock; 0: from the beginning */
    int64_t limit_bytes;  /* 0: none */
    struct str container; /* empty: the task's only or first one */
    bool timestamps; /* each line begins with the time of its arrival (RFC 3339, nanoseconds) and a space */
    /* If not empty, asks for the task that had this name, "<namespace>.<host name>", in `attempt`, and `task`
     * is ignored. `after` is the JobSet: tasks older than it belong to an earlier JobSet of the same name. */
    struct str earlier;
    int32_t attempt;
    obj_id after;
};

struct exec_open {
    uint64_t stream;
    obj_id task;
    struct str container; /* empty: the task's only or first one */
    struct str *argv;
    size_t argc;
    bool tty;   /* all output comes on EXEC_STDOUT */
    bool input; /* false: the command reads the end of file at once */
    uint64_t credit;
};
struct exec_resize {
    uint64_t stream;
    uint16_t width, height; /* of the terminal, in characters */
};

enum from_controller_kind {
    FROM_CONTROLLER_WELCOME = 1,
    FROM_CONTROLLER_REFUSED = 2, /* `text`: why, `cluster`: the controller's own; the connection closes */
    /* `sent_ns` of the heartbeat, from which the lease and `grant` run; `clock_ns` */
    FROM_CONTROLLER_HEARTBEAT_ACK = 3,
    FROM_CONTROLLER_REPORTS_ACK = 4, /* `number`: all Reports up to it are durable */
    FROM_CONTROLLER_START = 5,
    FROM_CONTROLLER_STOP = 6,
    FROM_CONTROLLER_NOTICE = 7,
    FROM_CONTROLLER_FORGET = 8, /* `task`: its end is durable; its record is deleted, its log files stay */
    FROM_CONTROLLER_LOG_OPEN = 9,
    FROM_CONTROLLER_LOG_CLOSE = 10, /* `number`: the stream */
    FROM_CONTROLLER_EXEC_OPEN = 11,
    FROM_CONTROLLER_EXEC_INPUT = 12, /* `exec_data` */
    FROM_CONTROLLER_EXEC_RESIZE = 13,
    FROM_CONTROLLER_EXEC_CLOSE = 14, /* `number`: the stream; its command is killed */
    FROM_CONTROLLER_RANK_TABLE = 15,
    FROM_CONTROLLER_SAY_AGAIN = 16, /* the machine's probes run again and report every standing signal */
    FROM_CONTROLLER_ERRAND_START = 17,
    FROM_CONTROLLER_ERRAND_STOP = 18, /* `number`: the errand; no end is reported */
    FROM_CONTROLLER_REJOIN = 19,
};
struct from_controller {
    enum from_controller_kind kind;
    union {
        struct welcome welcome;
        struct {
            struct str text;
            uint64_t cluster; /* identity of the controller's cluster; 0: not given */
        };
        struct {
            int64_t sent_ns;
            int64_t clock_ns; /* the controller's wall clock when it answered; 0: not given */
            struct lease_grant grant;
        };
        uint64_t number;
        struct task_launch start;
        struct task_stop stop;
        struct task_notice notice;
        obj_id task;
        struct log_open log_open;
        struct exec_open exec_open;
        struct exec_data exec_data;
        struct exec_resize exec_resize;
        struct packed_rank_table rank_table;
        struct errand_start errand_start;
        struct task_rejoin rejoin;
    };
};

#endif
