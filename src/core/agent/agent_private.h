/* agent_private.h - state and functions shared by the agent's files.
 *   agent.c            the step, the connection, the lease
 *   agent_task.c       start, stop and end of tasks; the queue for busy chips
 *   agent_container.c  a task's containers: their order, restarts, ends
 *   agent_probe.c      the probes and hooks of containers
 *   agent_client.c     messages of tasks through libphalanx
 *   agent_errand.c     errands of the controller
 *   agent_signal.c     signals, kept until they are acknowledged
 *   agent_report.c     Hello, reports, heartbeats, steps
 *   agent_check.c      digest and invariants
 */
#ifndef PHX_CORE_AGENT_AGENT_PRIVATE_H
#define PHX_CORE_AGENT_AGENT_PRIVATE_H

#include "base/rng.h"
#include "base/units.h"
#include "core/agent/agent.h"
#include "core/words/lifecycle.h"

enum link_state {
    LINK_DOWN,       /* the next try is at retry_ns */
    LINK_CONNECTING, /* CONNECT was given, and the host has not answered */
    LINK_HELLO,      /* Hello was sent; Welcome is awaited until hello_deadline_ns */
    LINK_WELCOME,    /* the controller has accepted the machine */
    LINK_STATES
};
enum local_state {
    LOCAL_WAITING,   /* for the chips or the host name of a stopping task */
    LOCAL_LAUNCHING, /* LAUNCH was given */
    LOCAL_RUNNING,
    LOCAL_STOPPING, /* STOP was given */
    LOCAL_ENDED,    /* the record is kept until FORGET */
    LOCAL_STATES
};
extern const struct lifecycle link_lifecycle, local_lifecycle;

enum { METRIC_NAME_MAX = 32 };

enum run_state {
    RUN_IDLE,    /* not started yet */
    RUN_BACKOFF, /* runs again at retry_ns */
    RUN_LAUNCHING,
    RUN_RUNNING,
    RUN_STOPPING, /* STOP was given, or its preStop hook runs */
    RUN_ENDED,    /* never runs again */
    RUN_STATES
};
extern const struct lifecycle run_lifecycle;

struct local_probe {
    bool out;          /* an ACT is under way */
    int32_t good, bad; /* consecutive results */
    int64_t next_ns;   /* boottime of the next ACT */
};

struct local_container {
    uint8_t state; /* enum run_state */
    bool posted;   /* its postStart hook is done, or it has none */
    bool started;  /* posted, and its startup probe has passed */
    bool ready;
    bool failing;     /* killed because of a probe or hook: it has failed, whatever its exit code */
    bool hook_out;    /* the ACT of a hook is under way */
    bool pre_stopped; /* its preStop hook is done */
    bool stop_sent, kill_sent;
    bool has_end;
    uint32_t runs;                /* number of launches */
    int64_t retry_ns, delay_ns;   /* BACKOFF: boottime of the next run; the delay before it */
    int64_t backoff_ns;           /* the delay after the next failure */
    int64_t begun_ns;             /* boottime at this run's start */
    int64_t stop_by_ns;           /* STOPPING: boottime at the end of its grace */
    int64_t pid, started_ns;
    struct container_end end; /* end of the newest run that has ended; its message is end_message */
    char *end_message;        /* owned */
    struct local_probe probes[PROBE_KINDS];
};

struct local_task {
    obj_id uid, jobset;
    int32_t attempt;
    uint32_t rank, world;
    uint8_t state;                   /* enum local_state */
    bool fenced;                     /* killed by the fence, or refused as an old attempt */
    bool killed;                     /* a STOP without grace was given */
    bool launched;                   /* the launcher knows the task */
    bool report_due;                 /* its state was not reported on this connection yet */
    bool start_failed, oom;          /* ENDED */
    char *name, *hostname, *message; /* owned; hostname "" if there is none; message "" */
    uint64_t chips;
    int64_t grace_ns;
    int64_t pid, started_ns, finished_ns;
    int32_t exit_code, signal;
    int64_t restore_step;
    int32_t restore_attempt;
    /* Owns `launch`. Without containers, filled while the task is WAITING and freed once it has started or
     * ended; with containers, filled until the record is freed. */
    struct arena launch_arena;
    /* Signatures of its end from its log; signature_arena owns their lines. */
    struct signature signatures[SIGNATURES_MAX];
    size_t signature_count;
    struct arena signature_arena;
    struct task_launch launch;
    /* Containers of a task that was started with some. container_count 0: its one process is the task. */
    struct local_container *containers;
    size_t container_count, main_count; /* the main containers come first */
    bool adopting;                      /* until BOOT: events only restore its containers' past */
    /* An adopted task that the controller may have given up, and whose name another task may have by now.
     * None of its containers is started until the controller has acknowledged a heartbeat: by then it has
     * sent its Stop in answer to Hello. */
    bool doubtful;
    bool stop_seen;                     /* an earlier agent has stopped one of its containers */
    bool ran;                           /* its main containers have begun */
    bool join_due;                      /* its process joined before `ran`: the join is to be reported then */
    int64_t stop_by_ns;                 /* STOPPING with containers: boottime at the end of the grace */
    int32_t culprit;                    /* container whose failure ends the task; -1: none yet */
    /* libphalanx */
    uint64_t client; /* its connection; 0: none */
    bool joined;     /* its process has joined as `attempt` */
    bool adopted;    /* started by an earlier agent */
    bool can_rejoin, spare;    /* as reported by its newest join */
    int32_t client_attempt;    /* attempt as which the client joined */
    struct task_rejoin rejoin; /* the order for `attempt`, with its rendezvous in rejoin_text; task 0: none */
    char *rejoin_text;         /* owned; NULL: none */
    uint8_t gang_key[GANG_KEY_BYTES]; /* key of `attempt`; zeros: not known, or there is none */
    int64_t drain_deadline_ns;        /* boottime; 0: no drain is announced */
    enum drain_reason drain_reason; /* an announcement for any reason but maintenance ends with the attempt */
    int64_t tables_number;          /* number of the slice's newest routing tables; 0: none */
    char *tables;                   /* their name; owned; NULL: none */
    uint64_t tables_session;        /* its process's session that a notice of tables named; 0: none */
    struct rank_routes routes;      /* as its process last reported them */
    bool step_due, step_urgent, has_step;
    int64_t step, total;
    enum step_source step_source;
    int64_t first_plus_1;
    struct pace_sums pace;
    size_t metric_count;
    char not_finite[METRIC_NAME_MAX]; /* a loss that has not been finite since not_finite_step; "": none */
    int64_t not_finite_step;
    struct {
        char name[METRIC_NAME_MAX];
        int64_t micro;
    } metrics[METRICS_MAX];
};

struct pending_report {
    uint64_t number;           /* number of the Reports on this connection that had it; 0: not sent */
    struct task_report report; /* its message is empty or in `text`, its reason is static */
    char *text;                /* owned; NULL: none */
};

struct local_signal {
    uint64_t number;      /* number of the Reports on this connection that had it; 0: not sent */
    struct signal signal; /* strings in `text` */
    struct arena text;
};

/* An errand of the controller (core/errand/errand.h). */
enum local_errand_state {
    ERRAND_WAITS, /* for one of AGENT_ERRANDS_RUNNING_MAX places */
    ERRAND_RUNS,  /* ERRAND_START was given */
    ERRAND_ENDED, /* its end is kept until acknowledged */
    ERRAND_STATES
};
extern const struct lifecycle errand_lifecycle;
struct local_errand {
    obj_id uid;
    uint8_t state;   /* enum local_errand_state */
    uint64_t number; /* ENDED: number of the Reports on this connection that had it; 0: not sent */
    struct errand_start start;
    struct errand_end end;
    struct arena arena; /* owns their texts */
};

struct agent {
    struct agent_config config; /* owns the strings */
    char *machine, *software;
    struct rng rng;
    int64_t boot_ns, wall_ns; /* of the newest event */
    /* connection */
    uint8_t link; /* enum link_state */
    bool booted;
    uint64_t connection; /* number of the newest; 0: none yet */
    int64_t retry_ns, retry_delay_ns, hello_sent_ns, hello_deadline_ns;
    uint32_t tries;          /* failed tries since the last Welcome, in this round of the controllers */
    uint64_t epoch_seen;     /* highest epoch of a controller */
    uint64_t cluster;        /* the machine's cluster; 0: none yet */
    int64_t stranger_say_ns; /* boottime of the next STRANGER; 0: none was given since Welcome */
    uint64_t report_number;  /* number of the last Reports on this connection */
    /* lease */
    int64_t lease_ns, heartbeat_ns;
    /* Boottime at the end of the lease, less the allowance: the connection is closed if nothing is
     * acknowledged before. */
    int64_t lease_end_ns;
    uint64_t grant;    /* number of the newest grant (lease_hold.h), which the fence includes */
    int64_t fence_ns;  /* boottime; 0: none yet */
    bool fence_passed; /* all tasks were killed; reset by the next Welcome */
    int64_t next_heartbeat_ns, last_heartbeat_ns;
    int64_t steps_sent_ns;          /* when steps were last sent */
    VEC(struct local_task *) tasks; /* in order of arrival */
    VEC(struct pending_report) pending;
    VEC(struct local_signal) signals; /* oldest first */
    uint64_t signals_number;          /* number of the Reports under way with signals; 0: none */
    uint32_t signals_given_up;        /* number of signals in them that were dropped since */
    VEC(struct local_errand *) errands; /* in order of arrival */
    VEC(struct attempt_seen) seen;      /* oldest first */
    int64_t notes;                      /* number of NOTE reports made */
};

static inline bool local_live(const struct local_task *task)
{
    return task->state != LOCAL_ENDED;
}

/* Appends an effect and returns it, for the caller to fill in; valid until the next one is added. */
struct agent_effect *agent_effect_add(struct agent_effects *effects, enum agent_effect_kind kind);
void agent_note(struct agent_effects *effects, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* agent.c */
/* Closes the connection and plans the next one. delay_ns 0: the usual back-off. */
void agent_disconnect(struct agent *agent, struct agent_effects *effects, int64_t delay_ns);

/* agent_task.c */
struct local_task *agent_task_find(const struct agent *agent, obj_id uid); /* NULL: unknown */
int32_t agent_seen_attempt(const struct agent *agent, obj_id jobset);      /* -1: none */
/* Records an attempt of the JobSet. `epoch` is that of the controller that gave the order; 0: unknown. */
void agent_attempt_seen(struct agent *agent, obj_id jobset, int32_t attempt, uint64_t epoch);
void agent_task_start(struct agent *agent, const struct task_launch *launch, struct agent_effects *effects);
void agent_task_stop(struct agent *agent, const struct task_stop *stop, struct agent_effects *effects);
void agent_task_adopted(struct agent *agent, const struct agent_event *event);
void agent_task_started(struct agent *agent, const struct agent_event *event, struct agent_effects *effects);
void agent_task_exited(struct agent *agent, const struct agent_event *event, struct agent_effects *effects);
void agent_task_forget(struct agent *agent, obj_id uid, struct agent_effects *effects);
/* Starts the WAITING tasks whose chips and host name are free, while the controller has accepted the
 * machine. */
void agent_task_start_waiting(struct agent *agent, struct agent_effects *effects);
/* Kills all tasks when the fence passes. Returns the number of tasks that were alive. */
size_t agent_kill_all(struct agent *agent, struct agent_effects *effects);
void agent_task_free(struct local_task *task);

void agent_task_end(struct local_task *task); /* moves it to ENDED; its record stays */
/* Replaces the task's signatures by those of this end. */
void agent_task_take_signatures(struct local_task *task, const struct agent_exit *exited);
/* Stops a task that is not WAITING. grace_ns 0: kill. */
void agent_task_stop_now(struct agent *agent, struct local_task *task, int64_t grace_ns,
                         struct agent_effects *effects);

/* agent_container.c */
void agent_containers_init(struct local_task *task, const struct task_launch *launch); /* keeps a copy */
void agent_containers_free(struct local_task *task);
/* Carries out what is due in the present state of the containers: launches, stops, the task's end. */
void agent_containers_advance(struct agent *agent, struct local_task *task, struct agent_effects *effects);
void agent_containers_stop(struct agent *agent, struct local_task *task, int64_t grace_ns,
                           struct agent_effects *effects);
void agent_container_started(struct agent *agent, struct local_task *task, const struct agent_event *event,
                             struct agent_effects *effects);
void agent_container_exited(struct agent *agent, struct local_task *task, const struct agent_event *event,
                            struct agent_effects *effects);
/* Called when the controller has acknowledged a heartbeat: doubtful tasks that it has not stopped
 * continue. */
void agent_containers_confirmed(struct agent *agent, struct agent_effects *effects);
/* Called when the inventory is complete. */
void agent_containers_boot(struct agent *agent, struct agent_effects *effects);
void agent_containers_tick(struct agent *agent, struct agent_effects *effects);
int64_t agent_containers_deadline(const struct agent *agent); /* INT64_MAX: nothing waits */
void agent_containers_report(const struct local_task *task, struct arena *arena, struct task_report *report);
/* Ends this run of the container as failed: preStop hook, SIGTERM, SIGKILL after the grace. */
void agent_container_end_run(struct agent *agent, struct local_task *task, uint32_t index, int64_t grace_ns,
                             struct agent_effects *effects);
static inline bool run_live(const struct local_container *container)
{
    return container->state == RUN_LAUNCHING || container->state == RUN_RUNNING ||
           container->state == RUN_STOPPING;
}

/* Returns the index of the i-th container in the order of starting: init containers and sidecars, then the
 * main containers. */
static inline uint32_t container_in_order(const struct local_task *task, size_t i)
{
    return (uint32_t)((task->main_count + i) % task->container_count);
}

/* agent_probe.c */
/* Called when the container's run has begun: starts its postStart hook, then its probes. An adopted run
 * counts as started. */
void agent_probes_begin(struct agent *agent, struct local_task *task, uint32_t index, bool adopted,
                        struct agent_effects *effects);
void agent_probes_tick(struct agent *agent, struct local_task *task, uint32_t index,
                       struct agent_effects *effects);
int64_t agent_probes_deadline(const struct local_task *task, uint32_t index);
/* Cancels the container's acts under way. */
void agent_probes_end(struct local_task *task, uint32_t index, struct agent_effects *effects);
void agent_acted(struct agent *agent, const struct agent_event *event, struct agent_effects *effects);
void agent_hook(struct local_task *task, uint32_t index, enum container_act act, int64_t timeout_ns,
                struct agent_effects *effects);
/* Makes a NOTE report: an event of the task's Pod. */
void agent_container_note(struct agent *agent, const struct local_task *task, bool warning,
                          const char *reason, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* agent_client.c */
void agent_client_event(struct agent *agent, const struct agent_event *event, struct agent_effects *effects);
void agent_task_paced(struct agent *agent, const struct agent_event *event);
void agent_client_notice(struct agent *agent, const struct task_notice *notice,
                         struct agent_effects *effects);
void agent_pend_joined(struct agent *agent, const struct local_task *task); /* makes a JOINED report */
void agent_task_rejoin(struct agent *agent, const struct task_rejoin *rejoin, struct agent_effects *effects);

/* agent_report.c */
/* Keeps a report until it is acknowledged; copies the message of a NOTE or RETRY. An equal report that is
 * pending already is sent again instead. */
void agent_pend(struct agent *agent, const struct task_report *report);
void agent_unpend(struct agent *agent, size_t index); /* forgets it */
void agent_send_hello(struct agent *agent, struct agent_effects *effects);
/* Sends the reports, the heartbeat and the steps that are due. */
void agent_send_due(struct agent *agent, struct agent_effects *effects);
void agent_reports_acked(struct agent *agent, uint64_t number);
int64_t agent_steps_deadline(const struct agent *agent); /* INT64_MAX: nothing waits */

/* agent_signal.c */
void agent_saw(struct agent *agent, const struct signal *signal); /* keeps a copy */
void agent_drop_signal(struct agent *agent, size_t index);
/* Returns the number of signals to send: all, or none while some are under way. */
size_t agent_signals_due(const struct agent *agent);
void agent_signals_unsent(struct agent *agent); /* called when the connection broke */
/* Adds the signals that are due to the Reports, which point into the agent. */
void agent_take_signals(struct agent *agent, struct arena *arena, struct reports *reports);
void agent_signals_acked(struct agent *agent, uint64_t number);
bool agent_tells_lost(const struct signal *signal); /* whether it is "os/signals-lost" */

/* agent_errand.c */
void agent_errand_start(struct agent *agent, const struct errand_start *start, struct agent_effects *effects);
void agent_errand_stop(struct agent *agent, obj_id uid, struct agent_effects *effects);
void agent_errand_ended(struct agent *agent, const struct errand_end *end, struct agent_effects *effects);
void agent_errand_drop(struct agent *agent, size_t index);
void agent_list_errands(const struct agent *agent, struct arena *arena, struct hello *hello);
size_t agent_errands_due(const struct agent *agent); /* number of ends to send */
/* Adds the ends that are due to the Reports, which point into the agent. */
void agent_take_errands(struct agent *agent, struct arena *arena, struct reports *reports);
void agent_errands_acked(struct agent *agent, uint64_t number);
void agent_errands_unsaid(struct agent *agent); /* called when the connection broke */

#endif
