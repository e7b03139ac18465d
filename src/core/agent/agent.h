/* agent.h - the daemon of one machine, without its I/O: a deterministic state machine of the form of core.h,
 * at the other end of the wire.
 *
 *     agent_step(agent, event, effects):   state x event -> state', effects
 *
 * The agent supervises the tasks of one machine for a controller that may be away. It starts and stops tasks,
 * keeps the order of attempts on the same chips, repeats reports until the controller has them, and ends all
 * tasks when the lease expires. It does no I/O and reads no clock: each event carries both clocks, and
 * agent_deadline() returns when the next TICK is wanted. boot_ns never decreases from one event to the next.
 * Any event may occur in any state; one that has no meaning there changes nothing.
 *
 * Connection. CONNECT asks the host for a connection. The host answers CONNECTED or DISCONNECTED; it also
 * reports DISCONNECTED when a connection breaks, but not after CLOSE. CONNECTED means that the machine's
 * tether is open, too: tasks launched later hold it. Retries are spread by a seeded jitter. They are quick
 * while tasks live, because tasks end with the lease. If there are several controllers, of which one leads,
 * the agent tries each before it waits. It gives up a controller that leaves Hello unanswered for a quarter
 * of the lease, because a leader that hangs does not close its connections when another takes the lead. In
 * the meantime the host looks for the new leader, and reports DISCONNECTED when it has found one.
 *
 * Cluster. The first Welcome names the cluster that the machine belongs to, and KEEP_CLUSTER has the host
 * store it for later agents of this machine. From then on a controller of another cluster is refused, even if
 * the machine has no tasks: its messages have no effect, and the lease expires as the machine's own
 * controller granted it. STRANGER reports such a controller, at once and then at growing intervals. Hello
 * names the cluster, so that such a controller refuses the machine first.
 *
 * Lease and fence. A lease of `lease_ns` starts when the last acknowledged Hello or heartbeat was sent. It
 * ends AGENT_KILL_ALLOWANCE_NS early (a quarter of the lease if that is less), which leaves time for the kill
 * itself. When it ends, the connection is closed and made again. The fence is that end and the controller's
 * grant on top of it (lease_hold.h); it moves backwards only when a new grant replaces earlier ones. When the
 * fence passes, all tasks are killed without grace. FENCE tells the launcher the same deadline, so that shims
 * act when the agent cannot. The controller counts the lease from the *receipt* of the heartbeat and adds a
 * margin, so the agent always acts first.
 *
 * Reports. Every Hello has the state of each task (running, ended); a later change is one report on the
 * connection. Joins, saved shards, lost peers, signals and ends of errands are kept until they are
 * acknowledged, and repeated on a new connection. The record of an ended task is kept until FORGET. Report
 * numbers start at 1 on each connection.
 *
 * Order on the chips. A task holds its chips from START to its end. If a stopping task holds the chips of a
 * START (or its host name, in the same JobSet), the START waits until that task has ended and the controller
 * is connected. A holder of an older attempt of the same JobSet is stopped first. Any other holder fails the
 * START with a START_FAILED that names the holder. An attempt older than the newest seen of its JobSet is
 * fenced.
 *
 * Rejoin. A process that can continue under another attempt says so when it joins. REJOIN raises the attempt
 * of its task, and the newest attempt seen of the JobSet. From then on, messages of a connection that joined
 * under an older attempt are refused, and its unacknowledged reports are dropped. The process receives the
 * order, and receives it again whenever it joins with an older attempt, until it joins with the new one on
 * any connection. After a restart of the agent, the record has the attempt of the START again. It is raised
 * by a process that can rejoin and joins with a newer attempt, and by the REJOIN that answers Hello.
 */
#ifndef PHX_CORE_AGENT_AGENT_H
#define PHX_CORE_AGENT_AGENT_H

#include "base/vec.h"
#include "core/agent/message.h"

#define AGENT_KILL_ALLOWANCE_NS (100 * NS_PER_MS)
/* The launcher identifies a container by its task's uid with its index in the upper bits
 * (host/agent/tasks.c). */
#define AGENT_CONTAINER_TASKS_MAX (UINT64_C(1) << 57)
#define AGENT_STEPS_INTERVAL_NS                                                                              \
    (100 * NS_PER_MS) /* STEPS at most this often; 1 ms x world size for large gangs */

enum {
    AGENT_TASKS_MAX = 2048,   /* records on one machine; START beyond it fails */
    AGENT_PENDING_MAX = 1024, /* unacknowledged joins, shards and lost peers; the oldest is dropped first */
    /* Unacknowledged signals; equal ones are merged. Beyond the limit the least important is dropped: the
     * lowest severity first, then momentary events before begins and ends, then the oldest. "os/signals-lost"
     * counts the dropped ones. */
    AGENT_SIGNALS_MAX = 256,
    AGENT_ERRANDS_RUNNING_MAX = 8, /* errands that run at one time; others wait */
};

struct agent_config {
    struct str machine, software;
    uint64_t incarnation; /* wall clock ns at start */
    uint32_t chips;
    int64_t cpu_milli, memory_bytes;
    uint32_t controllers; /* addresses that the host tries in turn, one for each CONNECT; 0: 1 */
    uint64_t seed; /* of the jitter */
    bool injection; /* its host injects faults if the controller asks for it */
    uint64_t cluster; /* identity of the machine's cluster, as KEEP_CLUSTER stored it; 0: none yet */
};

/* --- events --------------------------------------------------------------------------------------- */

enum agent_event_kind {
    AGENT_ADOPTED = 1, /* `adopted`: a live task of an earlier agent; before BOOT */
    AGENT_BOOT,        /* the inventory is complete: the agent connects */
    AGENT_TICK,
    AGENT_CONNECTED,
    AGENT_DISCONNECTED,
    AGENT_MESSAGE,      /* `message` from the controller */
    AGENT_TASK_STARTED, /* `started`, from the launcher */
    /* `exited`: ended, could not be started, or (before BOOT) had ended under an earlier agent */
    AGENT_TASK_EXITED,
    AGENT_CLIENT_JOIN, /* `client`, from a task through libphalanx, as are the six below */
    AGENT_CLIENT_STEP,
    AGENT_CLIENT_SHARD_SAVED,
    AGENT_CLIENT_PEER_GONE,
    AGENT_CLIENT_RETRY,
    AGENT_CLIENT_ROUTES,
    AGENT_CLIENT_LEFT,  /* the task took its leave, or its connection closed */
    AGENT_ACTED,        /* `acted`: the result of an ACT; none follows ACT_CANCEL */
    AGENT_SAW,          /* `saw`: a signal of a machine probe, or of another daemon of the machine */
    AGENT_ERRAND_ENDED, /* `errand_ended`; none follows ERRAND_STOP */
    AGENT_TASK_PACED,   /* `paced`: a step read from the log of a task that does not use libphalanx */
};

/* Probes and hooks of a container. */
enum container_act { ACT_STARTUP, ACT_READINESS, ACT_LIVENESS, ACT_POST_START, ACT_PRE_STOP, ACT_KINDS };

struct agent_exit {
    obj_id task;
    bool start_failed, oom, fenced;
    bool stopped;      /* a STOP was under way */
    int32_t exit_code; /* -1 if a signal ended it */
    int32_t signal;
    int64_t started_ns, finished_ns;
    int64_t pid;
    struct str message;
    const struct signature *signatures; /* from the end of its log; at most SIGNATURES_MAX; copied */
    size_t signature_count;
};

struct agent_event {
    enum agent_event_kind kind;
    int64_t boot_ns; /* CLOCK_BOOTTIME; never falls */
    int64_t wall_ns; /* CLOCK_REALTIME; may jump */
    /* TASK_STARTED, TASK_EXITED, ACTED: index of the task's container, and the number of its earlier
     * restarts */
    uint32_t container, run;
    union {
        struct {
            obj_id task;
            int32_t attempt;
            struct str name;
            int64_t pid, started_ns;
            /* The launch with which the task was started. NULL: it is lost, and the task holds no chips here.
             * For a task with containers, TASK_STARTED and TASK_EXITED before BOOT report their states. */
            const struct task_launch *launch;
        } adopted;
        struct {
            obj_id task;
            enum container_act act;
            bool ok;
            struct str message; /* !ok: why */
        } acted;
        struct {
            obj_id task;
            struct task_step step; /* .task is ignored */
        } paced;
        const struct from_controller *message;
        const struct signal *saw; /* valid; copied */
        /* OK, FAILED or TIMED_OUT; the output is UTF-8; copied */
        const struct errand_end *errand_ended;
        struct {
            obj_id task;
            int64_t pid, started_ns;
        } started;
        struct agent_exit exited;
        struct {
            uint64_t client;       /* the connection: a number that the host chooses, never 0 */
            obj_id task;           /* JOIN */
            int32_t attempt;       /* JOIN */
            struct task_step step; /* STEP; .task is ignored */
            int64_t saved_step;
            uint32_t peer_rank;
            struct str reason; /* RETRY; copied */
            bool can_rejoin, spare; /* JOIN */
            struct rank_routes routes; /* ROUTES */
        } client;
    };
};

/* --- effects -------------------------------------------------------------------------------------- */

enum agent_effect_kind {
    AGENT_CONNECT = 1,
    AGENT_CLOSE,          /* closes the connection at once */
    AGENT_SEND,           /* `send` */
    AGENT_FENCE,          /* `fence_ns`: the new deadline (CLOCK_BOOTTIME) of all tasks */
    AGENT_LAUNCH,         /* `launch`; a failure comes as TASK_EXITED with start_failed */
    AGENT_STOP,           /* `stop`; grace_ns 0: kill now */
    AGENT_FORGET,         /* `task`: its records may be deleted, its logs stay */
    AGENT_CLIENT_WELCOME, /* `client`, a message of job/link/wire.h, as are the three below */
    AGENT_CLIENT_FENCED,
    AGENT_CLIENT_COMMITTED,
    AGENT_CLIENT_DRAIN,
    AGENT_LOG_OPEN,      /* `log_open`: send the log as LOG_DATA; streams end with the connection */
    AGENT_LOG_CLOSE,     /* `stream` */
    AGENT_NOTE,          /* `note`: a line for the operator's log */
    AGENT_ACT,           /* `act`: run a container's probe or hook and answer ACTED */
    AGENT_ACT_CANCEL,    /* `task` and `container`: end all its acts without an answer */
    AGENT_CLOCK,         /* `clock`: the difference between this machine's clock and the controller's */
    AGENT_ERRAND_START,  /* `errand_start`: run it, at most for its time-out, and answer ERRAND_ENDED */
    AGENT_ERRAND_STOP,   /* `task`: the errand; kill it without an answer */
    AGENT_SAY_AGAIN,     /* run the machine's probes again, and send SAW for every standing signal, whether or
                          * not it was reported before */
    AGENT_CLIENT_REJOIN, /* `rejoin`: its process has to join again under that attempt */
    AGENT_CLIENT_TABLES, /* `tables`: the tables by which its slice is routed from now on */
    AGENT_KEEP_CLUSTER,  /* `cluster`: the machine's own from now on; store it before the next effect */
    AGENT_STRANGER,      /* `cluster`: whose controller was refused; a line for the operator's log */
};

struct agent_effect {
    enum agent_effect_kind kind;
    /* LAUNCH, STOP, ACT, ACT_CANCEL: index into the launch's containers, 0 without any; FORGET: their
     * number, at least 1. LAUNCH, ACT: the number of earlier restarts. A LAUNCH replaces the run before. */
    uint32_t container, run;
    union {
        struct from_agent send;
        int64_t fence_ns;
        const struct task_launch *launch;
        struct task_stop stop;
        obj_id task;
        uint64_t cluster;
        struct {
            uint64_t client;
            int32_t attempt;      /* WELCOME: the attempt as which it joined; FENCED: the valid one, 0: none;
                              * COMMITTED: the writers' */
            int64_t restore_step; /* WELCOME: -1: none */
            int32_t restore_attempt;
            uint8_t gang_key[GANG_KEY_BYTES]; /* WELCOME: key of the attempt; zeros: not known */
            int64_t step;        /* COMMITTED */
            int64_t deadline_ns; /* DRAIN: time left */
            enum drain_reason reason; /* DRAIN */
        } client;
        struct {
            uint64_t client;
            const struct task_rejoin *order; /* `task` is the client's */
        } rejoin;
        struct {
            uint64_t client;
            int64_t number;
            struct str name;  /* of the tables */
            uint64_t session; /* the open session of its process that the controller knows of; 0: none */
        } tables;
        struct log_open log_open;
        uint64_t stream;
        struct str note;
        const struct errand_start *errand_start;
        struct {
            int64_t ahead_ns; /* < 0: behind */
            int64_t error_ns; /* largest error: half of the round trip */
        } clock;
        struct {
            obj_id task;
            enum container_act act;
            const struct task_launch *launch;
            const struct container_action *action;
            int64_t timeout_ns; /* the duration after which it counts as failed; INT64_MAX: never */
        } act;
    };
};

/* The effects of one step, to be carried out in order. A zeroed struct is ready for use. Effects point into
 * the agent, the event and `arena`. They are valid until the event's memory is freed, until the agent's next
 * step, and until another step uses this struct. */
struct agent_effects {
    VEC(struct agent_effect) list;
    struct arena arena;
};
void agent_effects_done(struct agent_effects *effects);

/* --- the agent ------------------------------------------------------------------------------------ */

struct agent;

/* Copies `config`. The agent connects after BOOT. The caller frees the result with agent_free. */
struct agent *agent_new(const struct agent_config *config);
void agent_free(struct agent *agent); /* NULL is allowed */

/* Applies one event and returns its effects in `effects`, which is cleared first. */
void agent_step(struct agent *agent, const struct agent_event *event, struct agent_effects *effects);

int64_t agent_deadline(const struct agent *agent); /* boot_ns at which a TICK is wanted; INT64_MAX: none */
uint64_t agent_digest(const struct agent *agent);  /* a hash of the whole state */
/* Checks the invariants of a single state; aborts through CHECK. */
void agent_check_invariants(const struct agent *agent);

/* For hosts, tests and the simulation's invariants. */
struct str agent_machine(const struct agent *agent); /* its name */
uint64_t agent_incarnation(const struct agent *agent);
/* Returns the identity of the machine's cluster; 0: none yet. */
uint64_t agent_cluster(const struct agent *agent);
/* Returns the number of the newest connection and of its tether; 0: none yet. */
uint64_t agent_connection(const struct agent *agent);
bool agent_is_welcome(const struct agent *agent);     /* connected, and the controller has sent Welcome */
int64_t agent_fence(const struct agent *agent);       /* boot_ns; 0: none yet */
size_t agent_live_tasks(const struct agent *agent);   /* number waiting, starting, running or stopping */
uint64_t agent_busy_chips(const struct agent *agent); /* mask of the chips of tasks that may have a process */
bool agent_task_known(const struct agent *agent, obj_id task);
bool agent_task_live(const struct agent *agent, obj_id task); /* false also if the task is not known */

/* Make deep copies, whose memory comes from `arena`. Texts of task reports are cut to `text_max` bytes.
 * Signals are copied unchanged, and outputs of errands up to ERRAND_OUTPUT_MAX bytes. */
void task_launch_copy(struct arena *arena, const struct task_launch *from, struct task_launch *ret);
void task_report_copy(struct arena *arena, const struct task_report *from, size_t text_max,
                      struct task_report *ret);
struct task_report *task_reports_copy(struct arena *arena, const struct task_report *from, size_t count,
                                      size_t text_max);
void reports_copy(struct arena *arena, const struct reports *from, size_t text_max, struct reports *ret);
void hello_copy(struct arena *arena, const struct hello *from, size_t text_max, struct hello *ret);

#endif
