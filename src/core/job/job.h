/* job.h - JobSets, Jobs, tasks and gangs as data: structs, indexes, and questions about them.
 *
 * JobSet -> replicated jobs -> Jobs -> tasks. A JobSet's tasks that are created together form a gang: they
 * are placed together or not at all. A restart makes new Jobs and tasks with a higher attempt. A task of the
 * new attempt starts only when the old task of the same name is known to be dead, or on the same machine,
 * whose agent keeps that order itself.
 *
 *   store.c        the indexes
 *   mark.c         marks for what is reconciled before the step ends
 *   facts.c        questions that several folders ask; spares.c: about spares; containers.c: about containers
 *   ranks.c        the ranks of tasks
 *   states.c       the states of tasks, Jobs, gangs and moves
 *   hold.c         the chips that tasks and gangs hold
 *   gates.c        the scheduling gates of Pods
 *   priority.c     the priority of Pods
 *   labels.c       labels of Jobs and Pods; user_meta.c: those from users
 *   conditions.c   the conditions of a JobSet
 *   records.c      restart records
 *   folder.c       checkpoint folders of deleted JobSets
 *
 * Higher folders change these objects: core/gang forms, places and starts gangs; core/life runs Jobs and
 * JobSets while nothing fails; core/recover answers losses and reconciles JobSets; core/launch builds the
 * message that starts a task. The API reads everything here between steps.
 */
#ifndef PHX_CORE_JOB_JOB_H
#define PHX_CORE_JOB_JOB_H

#include "base/list.h"
#include "core/effect.h"
#include "core/health/attribute.h"
#include "core/ledger/ledger.h"
#include "core/model/model.h"
#include "core/note.h"
#include "core/pace/pace.h"
#include "core/ladder/incident.h"
#include "core/ladder/ladder.h"
#include "core/ladder/plan.h"
#include "core/sched/sched.h"

/* --- tasks (API: Pod) ----------------------------------------------------------------------------------- */

enum task_state {
    TASK_PENDING,   /* exists; waits for its gang's placement */
    TASK_PLACED,    /* holds its chips; waits for the preparations of its start (gang/start.c) */
    TASK_STARTING,  /* told to start */
    TASK_RUNNING,   /* its process runs */
    TASK_STOPPING,  /* told to stop; may be alive until its agent reports the end or its machine is lost */
    TASK_SUCCEEDED, /* ended with exit code 0 */
    TASK_FAILED,    /* ended otherwise, was stopped, or was lost with its machine */
    TASK_STATES
};
extern const struct lifecycle task_lifecycle;
static inline bool task_ended(uint8_t state)
{
    return state == TASK_SUCCEEDED || state == TASK_FAILED;
}

enum task_end {
    END_NONE,
    END_EXIT,         /* its process exited or was killed by a signal */
    END_START_FAILED, /* could not be started */
    END_MACHINE_LOST, /* lost with its machine */
    END_STOPPED,      /* stopped by the controller */
    END_REFUSED,      /* refused by the machine that it names; `reason` says why */
};

/* The state of a process that survives a restart in place of its JobSet (recover/inplace.c). */
enum keep_state {
    KEEP_NO,
    KEEP_WAITS, /* runs on, and waits for the next attempt to begin */
    KEEP_TOLD,  /* was told of the attempt and has not joined it yet */
};

struct task {
    obj_id uid;                /* of this run of its processes; names the run to agents */
    obj_id pod_uid;            /* of the Pod: the first run's uid */
    struct job *job;
    struct gang *gang;
    int32_t index;             /* completion index; below 0: a spare, -1 - its number (task_is_spare) */
    uint32_t retry;            /* number of earlier tasks of this index in this job */
    uint32_t runs_before;      /* number of earlier runs in its place */
    int32_t execution;         /* its Job's execution when the task was made */
    int32_t priority;          /* its priority when the task was made: of its class, or its pod's own */
    uint32_t failed_runs;      /* earlier runs that count towards backoffLimit (recover/inplace.c) */
    uint8_t state;             /* enum task_state */
    bool doomed;               /* the controller stopped the task: it is deleted when it has ended */
    bool ready;                /* running, and its containers' readiness probes pass */
    bool joined;               /* uses libphalanx, and has joined `attempt` */
    bool can_rejoin,
        spare;    /* as reported at its newest join: it can continue under another attempt; it has no rank */
    uint8_t keep; /* enum keep_state */
    bool was_spare;            /* its process began as a spare, so its agent knows it by another host name */
    bool parked;               /* PLACED again: waits to run once more in its place (recover/inplace.c) */
    bool evicted;              /* the Pod was deleted, by a user or as a disruption */
    uint8_t loss;              /* enum loss_cause: the cause of its eviction; LOSS_NONE: a user's request */
    bool peers_lost;           /* a peer's connection to it broke: evidence, until it reports again */
    bool counted;              /* private: counted among its gang's started tasks */
    bool holds;                /* its chips, cpu and memory are booked on its machine */
    uint8_t end;               /* enum task_end */
    struct str name;           /* Pod name: "<job>-<index>-<5 characters>"; NonIndexed: without index */
    struct str hostname;       /* "<job>-<index>"; NonIndexed: the name; a bare Pod's own */
    machine_id machine;        /* MACHINE_NONE until placed; stays after the end */
    uint64_t chips;            /* held; 0 after the end */
    uint64_t chips_were;       /* the chips last held, for display */
    /* Held resources besides chips. The requests of its containers may differ by now: a suspended JobSet
     * may change while its tasks still end. */
    int64_t cpu_milli, memory_bytes;
    uint32_t asked_chips;      /* PENDING: private, the chips that its gang counts for the task */
    uint32_t rank, world;      /* within its group; absent ranks are numbered after all others */
    int32_t attempt;           /* the JobSet's attempt when its process was told to start or rejoin */
    int32_t began_attempt;     /* attempt in which its process began; lower if it survived restarts */
    uint16_t port;             /* base of its attempt's two ports: MASTER_PORT, rendezvous + 1 */
    int64_t created_ns, placed_ns, start_sent_ns, started_ns, ended_ns, stopping_since_ns;
    int64_t stop_grace_ns;     /* STOPPING: its grace period */
    int32_t exit_code, signal;
    bool oom, fenced;
    struct str message;        /* why it failed, for people */
    struct str reason;         /* END_REFUSED: a kubelet's reason, "OutOfcpu", "NodeAffinity", ... */
    int64_t saved_step;        /* step of the newest shard that it saved; -1: none */
    int64_t saved_before[SAVED_BEFORE_MAX]; /* steps of the kept shards before it, newest first */
    uint32_t saved_before_count;
    struct rank_routes routes; /* as its agent reported last; slice_tables.c */
    uint64_t changed_seq;
    struct user_meta *meta;      /* the user's changes of its labels and annotations; NULL: none */
    /* PENDING: scheduling gates of its template that were not removed yet (gates.c). A Pod without a JobSet
     * has them in its document. */
    struct str *gates;
    uint32_t gate_count;
    struct list_node on_machine; /* in job_store.machine_tasks[machine] while it lives there */
    /* As its agent last reported them: main containers, then init ones; NULL: the task is one process */
    struct container_status *containers;
    uint32_t container_count;
    struct arena containers_arena; /* private: of `containers` */
    struct arena arena;        /* name, message */
};

/* Returns whether the task is a spare, which waits for a rank (life/spare.c). A spare is in its Job's
 * `spares`, has its own gang, and is counted nowhere. */
static inline bool task_is_spare(const struct task *task)
{
    return task->index < 0;
}

/* Returns whether the task's process has ended in this step, whose consequences are decided when the step
 * settles (recover/decide.c). A dead task keeps its state and place until then. */
static inline bool task_is_dead(const struct task *task)
{
    return task->end != END_NONE && !task_ended(task->state);
}

/* Numbers of a replicated job's Jobs, by state. */
struct rjob_status {
    int32_t ready, succeeded, failed, active, suspended;
};

/* --- jobs (API: batch/v1 Job) --------------------------------------------------------------------------- */

enum job_state {
    JOB_SUSPENDED,  /* exists without tasks */
    JOB_ACTIVE,     /* has tasks, or wants some */
    JOB_FAILING,    /* FailureTarget: the Job will fail when its tasks have ended */
    JOB_COMPLETING, /* SuccessCriteriaMet: the Job will complete when its tasks have ended */
    JOB_FAILED,
    JOB_COMPLETE,
    JOB_STATES
};
extern const struct lifecycle job_lifecycle;

struct job_index {
    struct task *task;         /* the newest task; NULL: none yet, or it was deleted */
    uint32_t made;             /* number of tasks made so far */
    uint32_t failures;         /* number of counted failures */
    int64_t retry_due_ns;      /* with backoffLimitPerIndex: earliest time of a new task; 0: any */
    bool succeeded, failed;    /* decided for good */
};
struct job {
    obj_id uid;
    struct jobset *jobset;
    const struct rjob_spec *rjob;
    uint32_t rjob_index, index, global_index;
    uint32_t first_slot;       /* first of its indexes in slots.last_machines */
    int32_t attempt;           /* label restart-attempt */
    int32_t job_attempt;       /* label job-restart-attempt: earlier restarts of this job alone */
    /* annotation execution-attempt: that of the JobSet at creation or resumption */
    int32_t execution;
    uint8_t state;             /* enum job_state */
    bool doomed;               /* of an older attempt, or deleted: removed when its tasks have ended */
    int64_t doomed_ns;         /* stamp since which it is doomed; 0: it is not */
    struct str name;
    struct job_index *indexes; /* [index_count]: completions, or parallelism for a work queue; may have
                                * more entries than the spec has now (resize.c) */
    uint32_t index_count;
    uint32_t failed_indexes, first_open; /* private: failed indexes; all indexes below first_open are
                                          * decided for good */
    struct job *before;                  /* private: the next older Job of the place that is still ending */
    VEC(struct task *) tasks;  /* alive or ended, of this job, in creation order */
    VEC(struct task *) spares; /* alive, in creation order (life/spare.c) */
    uint32_t spare_failures;   /* consecutive spares that ended unasked */
    int64_t spare_due_ns;      /* job_goes_on: earliest time of a new spare; 0: any */
    uint32_t active, ready, succeeded, failed; /* numbers of tasks; failed counts towards backoffLimit */
    /* FAILING/FAILED: BackoffLimitExceeded, DeadlineExceeded, PodFailurePolicy, ... */
    const char *reason;
    struct str message;
    int32_t success_rule;      /* index in successPolicy of the rule that completed the Job; -1: none */
    struct task *culprit;      /* the first task with a counted failure */
    obj_id restore_culprit;    /* private: only while a snapshot is restored */
    int64_t created_ns, start_ns, finished_ns; /* start_ns: set while it is not suspended */
    /* Back-off: earliest stamp of a new task; 0: any. With backoffLimitPerIndex: the stamp at which the
     * first waiting index is due. */
    int64_t retry_due_ns;
    bool dirty, uncounted;     /* private: in jobset->work.dirty; in jobset->work.uncounted */
    bool gone;                 /* private: in job_store.dead_jobs */
    bool sift;                 /* private: some of its ended tasks may have to be removed */
    struct rjob_status counted; /* private: the Job's part of its replicated job's status */
    struct heap_node timer;    /* private: in jobset->work.timers */
    struct user_meta *meta;    /* as in struct task */
    uint32_t old_place;        /* private: in jobset->old_jobs */
    /* private: all its tasks were told to stop, because it ends / because it is doomed */
    bool told_stop, told_doom;
    uint64_t changed_seq;
    struct arena arena;
};

/* --- gangs ---------------------------------------------------------------------------------------------- */

enum gang_state { GANG_QUEUED, GANG_PLACED, GANG_RUNNING, GANG_ENDED, GANG_STATES };
extern const struct lifecycle gang_lifecycle;

struct gang {
    struct queued_gang queued;  /* id = uid */
    obj_id uid;
    struct jobset *jobset;
    int32_t attempt;
    uint8_t state;              /* enum gang_state */
    bool replaces;              /* made by a restart or retry: may be placed on spare machines */
    bool told;                  /* PLACED: one of its tasks was told to start since the gang was placed */
    bool feasible;              /* private: fits on the empty cluster of shape `feasible_shape` */
    uint64_t feasible_shape;    /* private: job_store.shape + 1 of that judgement; 0: never judged */
    /* private: cluster_next_change() at a refusal that only machines caused; or 0 */
    uint64_t refused_at;
    uint64_t refused_shape; /* private: shape of the capacity index that refused it (capacity.h) */
    obj_id rival;           /* private: the gang at the head of the queue when `competes` was judged */
    uint64_t rival_shape;   /* private: job_store.shape + 1 at that judgement; 0: not judged */
    bool competes;          /* private: this gang could delay the rival */
    VEC(struct task *) tasks;
    struct str why;             /* why it waits, in numbers: QUEUED, or in its preflight */
    struct buf why_text;        /* private: owns `why` */
    /* 1 + the attempt under which an older process of one of its ranks may have lived when the gang was
     * formed: reports of ranks about a peer may then be about that process (recover/peers.c); 0: none. */
    uint32_t mixed_plus_1;
    int64_t why_since_ns;       /* private: stamp of the first of the newest `why_changes`; 0: none */
    uint32_t why_changes;       /* private: changes of `why` since then (why.c) */
    bool why_due;               /* private: `why` is worked out again at `why_timer` */
    struct heap_node why_timer; /* private: in job_store.whys */
    uint32_t min_count;         /* QUEUED: number of tasks with which it may start; 0: only with all */
    uint32_t waiting, alive;    /* number of tasks neither running nor ended; number of tasks not ended */
    bool thinned;               /* private: some of `tasks` have left; removed before the step ends */
    bool gated;                 /* private: some of `tasks` had scheduling gates when it was formed */
    bool barred;                /* private: QUEUED: its namespace's Pod Security level refuses its Pods */
    struct preflight *preflight; /* PLACED: tests of its machines before its start (gang/preflight.h);
                                  * NULL: none */
    struct ledger_account account;
    int64_t queued_ns, placed_ns, running_ns; /* running: stamp since which every task runs */
};

/* --- JobSets -------------------------------------------------------------------------------------------- */

enum condition_kind { /* in the order of the status */
    CONDITION_COMPLETED, CONDITION_FAILED, CONDITION_SUSPENDED, CONDITION_STARTUP_IN_PROGRESS,
    CONDITION_STARTUP_COMPLETED, CONDITION_RESTARTING, CONDITION_KINDS
};
const char *condition_name(enum condition_kind kind); /* "Completed", "StartupPolicyInProgress", ... */
struct condition {
    bool present, status; /* present: it was True at least once */
    char *reason;         /* owned, followed by `message` in the same block; NULL: never set */
    struct str message;
    int64_t changed_ns;         /* last transition */
};
/* How a JobSet has ended: its status.terminalState. */
enum terminal_state { TERMINAL_NONE, TERMINAL_COMPLETED, TERMINAL_FAILED, TERMINAL_STATES };
const char *terminal_state_name(enum terminal_state state); /* "", "Completed", "Failed" */
/* The cost of one restart. Times are stamps; 0: not yet. */
struct restart_record {
    int32_t attempt;            /* the attempt that the restart began */
    char cause[32];             /* "MachineLost", "TaskFailed", "OutOfMemory", "StartFailed", ... */
    char machine[64], detail[160];
    int64_t fault_ns;           /* the fault was detected */
    int64_t evidence_ns;        /* newest sign of life before the fault, if known */
    int64_t started_ns;         /* every task of the new attempt ran */
    int64_t stepped_ns;         /* every rank had made its next step */
    int64_t step_at_fault, step_resumed_from; /* -1: unknown */
    int64_t redone_us;          /* lost chip-microseconds: all since the newest checkpoint */
    uint8_t cause_plus_1, size; /* 1 + the ledger's cause (0: not counted); the JobSet's size class */
    int64_t assumed_us;         /* loss by the usual assumption (ledger_assumed_loss) */
    struct end_signatures signatures; /* signatures of the attempt that ended; grows for ATTRIBUTE_AFTER_NS */
    struct end_faults faults;         /* faults that struck that attempt; grows for ATTRIBUTE_AFTER_NS */
    uint8_t rung;               /* enum rung: the ladder's answer; RUNG_NONE: it was not asked */
    char *passed;               /* owned: why the ladder passed over earlier rungs; NULL: no reason */
};
/* The JobSet's move off an unhealthy machine (enum sub_health), once its ranks have saved. */
enum move_state {
    MOVE_NONE,    /* no move is under way */
    MOVE_ROOM,    /* by spares: replacements of the machine's ranks are made, or are starting */
    MOVE_SAVING,  /* the JobSet's ranks were told to save */
    MOVE_LEAVING, /* by spares: its tasks on the machine are being stopped */
    MOVE_STATES
};
extern const struct lifecycle move_lifecycle;
struct move {
    uint8_t state; /* enum move_state */
    bool by_spares; /* spares take the ranks; the other processes survive and wait where they have saved */
    bool planned;   /* the machine is not at fault */
    machine_id machine;
    enum sub_health policy;
    int64_t noticed_ns, due_ns; /* begin of the state; stamp at which the move is given up */
    char why[160];
};
/* The JobSet's consecutive crashes, under its failure policy (recover/backoff.c). */
struct crashes {
    int32_t count;     /* crashes without a new step between them */
    int64_t best_step; /* ladder.best_step at the last crash */
    int64_t due_ns;    /* the next attempt begins no earlier than this stamp; 0: at once */
};
/* The last save of a suspended JobSet, whose ranks have a notice (recover/suspend.c). */
struct suspend_grace {
    int64_t noticed_ns, due_ns; /* 0, 0: no save is awaited */
};
/* The newest step that every rank of the JobSet has reached. */
struct progress {
    int32_t attempt;            /* attempt in which `step` was reached; -1: none */
    int64_t step, total;        /* -1 / 0: unknown */
    enum step_source source;    /* of `step`; COUNTED: the JobSet's numbers are not absolute steps */
    int64_t step_ns;            /* stamp at which `step` was reached */
    int64_t base_step, base_ns; /* an older point, for the rate */
    struct step_metric metrics[METRICS_MAX];
    char metric_names[METRICS_MAX][32];
    size_t metric_count;
};
/* Absent replicas: those that take no part in the attempt (recover/shrink.c). */
struct absence {
    VEC(uint32_t) replicas; /* by their number in the full world, ascending */
    uint32_t size;          /* number of ranks of each; meaningless while none is absent */
    int64_t since_ns;       /* stamp since which some are absent */
    int64_t grow_ns;        /* no replica returns before this stamp; 0: no limit */
    bool overdue;           /* places have been missing for so long that replicas may leave */
};
/* The joins of the present attempt (recover/unjoined.c). */
struct joins {
    int64_t newest_ns; /* stamp of the newest join; 0: no rank has joined */
    int64_t due_ns;    /* stamp from which ranks that have not joined are late; 0: none is awaited */
    int64_t blamed_ns; /* a machine was last blamed for a late rank, in any attempt; 0: never */
};
/* Recovery of the JobSet from losses, and planned changes, without new Jobs (ladder/plan.h). */
struct jobset_recovery {
    uint8_t state, path; /* enum recovery_state, enum recovery_path */
    bool counted;        /* the restart under way counts towards maxRestarts */
    int64_t since_ns;    /* BACKING_OFF: its end; PARKED: begin of the wait for places; DUMPING: begin */
    int64_t rejoin_since_ns; /* begin of an attempt with kept processes. Kept processes that have not joined
                              * within their time are ended. 0 after that, and in other attempts. */
    int64_t apart_ns; /* a rank lost its connection to a living one, and no step was made since; 0: none */
    int32_t in_place_restarts, in_place_counted; /* restarts in place: all; those towards maxRestarts */
    uint64_t attempt_epoch;   /* of the controller that began the attempt; 0: the JobSet's first */
    int32_t seen_attempt;     /* private: an attempt of a lost log that a machine has seen; 0 between steps */
    struct incident incident; /* private: the losses of this step; empty between steps */
    struct joins joins;
    struct absence absence;
    struct ladder ladder;
    struct crashes crashes;
    struct move move;
    struct suspend_grace suspend_grace;
};
/* The restarts of the JobSet and their causes. */
struct restart_history {
    struct restart_record *records; /* [RESTART_RECORDS_MAX]; NULL: there was no restart yet */
    uint32_t record_count;   /* number of all records; the newest RESTART_RECORDS_MAX are kept at index
                              * % MAX */
    struct end_signatures signatures; /* of tasks that ended since the newest restart */
    struct end_faults faults;         /* recent faults that struck the JobSet since the newest restart */
    machine_id *suspects;    /* machines that caused restarts */
    size_t suspect_count;
};
/* The use of chips by the JobSet. */
struct jobset_usage {
    struct ledger_account closed; /* sums over gangs that have ended */
    /* The whole account as of the JobSet's last change. Watchers see this one, so that one resourceVersion
     * has one text for all of them; a read computes the account as of now. */
    struct ledger_account shown;
    int64_t shown_ns;
    uint64_t shown_seq; /* private: log position of the step that made `shown` */
    /* FAILED: private: 1 + the cause of its end (0: none); its size class, real and assumed loss then */
    uint8_t failed_plus_1, failed_size;
    int64_t failed_us, failed_assumed_us;
};
/* The status written by another controller (managedBy) in place of ours. */
struct foreign_status {
    struct doc *status; /* NULL: none */
    struct arena arena;
};
struct checkpoint_state {
    int64_t committed_step;     /* -1: none */
    int32_t committed_attempt;
    int64_t committed_ns;
    int64_t fallback_step; /* an older checkpoint that the ranks have returned to because newer ones were
                            * unusable, while no later one is committed; -1: none */
    uint64_t count;
    struct task *laggard; /* private: a task whose shard of a checkpoint is missing; NULL: unknown */
};

/* Admission's additions to the spec of one replicated job (Kueue: a PodSet). Kept with the JobSet while it
 * is admitted (jobset->grant.terms) and used for every placement of its tasks. */
struct rjob_terms {
    struct labels node_labels;         /* of its flavours, besides its own nodeSelector */
    struct labels labels, annotations; /* of its Pods, besides their template's */
    struct toleration *tolerations;    /* of its flavours, besides its own */
    size_t toleration_count;
    struct str *levels; /* of its flavours' Topology: node label keys, widest first; none: the
                                       * cluster file's own levels (pod, block, machine) */
    size_t level_count;
    struct queue_spares spares; /* of each Job, unless its own spec sets them */
};

/* Capacity that is reserved on a machine for a later gang. */
struct room {
    machine_id machine;
    uint64_t chips;
    int64_t cpu_milli, memory_bytes;
};

/* The terms and the reservation that admission has granted the JobSet. */
struct jobset_grant {
    struct rjob_terms *terms; /* additions to the spec for placement: [spec.rjob_count] or NULL */
    struct arena arena;       /* private: owns the terms */
    /* kept for the JobSet's gang (jobset_reserve), by ascending machine; NULL: none */
    struct room *reserved;
    size_t reserved_count;
    bool promised; /* being preempted: the JobSet's resources are already reserved for the preemptor */
};
/* The machine on which each rank ran last. */
struct jobset_slots {
    machine_id *last_machines; /* [count] last machine of each (job, index) */
    uint32_t count;
    struct arena arena; /* private: owns the JobSet's arrays by job and by replicated job */
};
/* An order to start: the first one, or, `again`, one that was lost. */
struct task_due {
    obj_id task;
    bool again;
};
/* private: work of the JobSet that is done before the step ends, or at a timer. */
struct job_work {
    uint32_t loose_tasks;               /* number of PENDING tasks without a gang */
    VEC(struct job *) dirty, uncounted; /* to be reconciled; to be counted */
    VEC(struct task_due) starts;        /* tasks whose order to start may be due */
    struct heap timers;                 /* of current Jobs: deadlines, back-off */
};
/* private: the JobSet's place in the job store. */
struct store_entry {
    struct heap_node timer; /* the stamp at which the JobSet has to be reconciled again */
    bool touched;           /* in job_store.touched */
    bool dirty, gone;       /* in job_store.dirty; in job_store.dead_jobsets */
    bool exclusive;         /* one of its jobs wants an exclusive topology domain; never changes */
    bool names_machine;     /* one of its pods has spec.nodeName */
    struct arena stems; /* keys in job_store.job_stems */
};

/* A JobSet, or a Job or Pod without one. `form` decides what users see: the API shows no JobSet for a Job
 * or Pod without one, and no Job for such a Pod (step_changed and the indexes keep them out). */
struct jobset {
    obj_id uid;
    enum form form;             /* of `document`; never changes */
    struct str key, namespace_, name; /* key: "namespace/name", owned; the two others point into it */
    struct arena arena;         /* document and spec of the current generation */
    /* The JobSet, Job or Pod as it was written: apiVersion, kind, metadata (labels, annotations,
     * finalizers...), spec; with defaults */
    struct doc *document;
    struct jobset_spec spec;
    int64_t generation;
    int64_t created_ns, deleted_ns; /* deleted_ns: deletionTimestamp, 0: none */
    /* Deleted with propagationPolicy Orphan. Users no longer see the JobSet (or the Job without a JobSet);
     * its Jobs (Pods) have no owner and continue. This object is freed when the last of them is deleted. */
    bool hidden;
    const struct workload *workload; /* FORM_WORKLOAD: the Workload as which the API shows this object, set
                                      * by admit; NULL: none */
    uint64_t changed_seq;
    struct condition conditions[CONDITION_KINDS];
    int32_t restarts, restarts_counted;
    uint8_t terminal_state;     /* enum terminal_state */
    struct rjob_status *rjob_status; /* [spec.rjob_count] */
    /* [job_count] current job of each (rjob, index) in spec order; NULL: not created */
    struct job **jobs;
    uint32_t job_count;
    uint32_t made;              /* private: number of existing `jobs` */
    VEC(struct job *) old_jobs; /* of earlier attempts, still ending; in no order */
    struct job_work work;
    struct job **ending;        /* private: [job_count] newest of old_jobs for each place, NULL: none */
    VEC(struct gang *) gangs;   /* of the current attempt, and older ones that are still ending */
    int32_t attempt;            /* first_attempt, plus restarts of the whole JobSet, recreated or in place;
                                 * part of every fence */
    int32_t first_attempt;      /* 0, or one more than the last attempt of its predecessor in a checkpoint
                                 * folder (folder.h) */
    int32_t executions;         /* resumptions and restarts of the whole since it first ran; -1: never ran */
    int32_t *job_attempts;      /* [job_count] RestartJob: restarts of one job alone */
    int32_t *job_attempts_counted; /* [job_count] those that count towards maxRestarts */
    uint32_t *widths;           /* private: [spec.rjob_count] number of indexes of each Job (resize.c) */
    int64_t first_queued_ns;    /* its place in the queue, kept over restarts */
    struct progress progress;
    struct checkpoint_state checkpoint;
    /* Whether a Job counts as failed only when its pods have ended (as in upstream JobSet), not as soon as
     * its failure is decided. Taken at the JobSet's last write from the annotation
     * phalanx.dev/act-on-failure-target, else from the cluster's setting. */
    bool failures_wait;
    struct jobset_recovery recovery;
    struct restart_history history;
    struct jobset_usage usage;
    struct foreign_status foreign;
    struct pace pace;           /* of its ranks, by slot: first_slot of their job plus their index */
    struct jobset_slots slots;
    struct jobset_grant grant;
    int64_t finished_ns; /* stamp at which it became Completed or Failed; its TTL starts here */
    struct store_entry entry;
};

static inline bool jobset_finished(const struct jobset *jobset)
{
    return jobset->terminal_state != TERMINAL_NONE;
}

/* Returns whether a restart in place is being prepared: tasks that end keep their places, and none starts. */
static inline bool jobset_parks(const struct jobset *jobset)
{
    return recovery_state_parks(jobset->recovery.state);
}

/* Returns whether the newest restart in place keeps processes, until every rank has made its next step. */
static inline bool jobset_keeps(const struct jobset *jobset)
{
    return recovery_state_keeps(jobset->recovery.state, jobset->recovery.path);
}

/* Returns whether the JobSet is, or is about to be, suspended. False for a hidden JobSet: its orphaned Jobs
 * continue as they are, and a suspension that was still due never happens. */
static inline bool jobset_suspends(const struct jobset *jobset)
{
    return jobset->spec.suspend && !jobset->hidden;
}

/* Returns whether the JobSet is suspended and no last save is awaited. */
static inline bool jobset_rests(const struct jobset *jobset)
{
    return jobset->spec.suspend && !jobset->recovery.suspend_grace.noticed_ns;
}

/* Returns whether the API shows the object as a JobSet. */
static inline bool jobset_is_seen(const struct jobset *jobset)
{
    return jobset->form == FORM_JOBSET && !jobset->hidden;
}
/* Returns the Job that users see in a place (index in `jobs`): the oldest one that is still ending, else the
 * current one, which may be NULL. Two Jobs of one name are never shown at once. */
static inline struct job *jobset_seen_job(const struct jobset *jobset, uint32_t place)
{
    struct job *seen = jobset->ending[place];
    for (struct job *job = seen; job; job = job->before)
        seen = job->uid < seen->uid ? job : seen;
    return seen ? seen : jobset->jobs[place];
}
/* Returns whether this is a deleted Job without a JobSet whose pods are orphaned. */
static inline bool job_is_hidden(const struct job *job)
{
    return job->jobset->form == FORM_JOB && job->jobset->hidden;
}

/* Returns whether the Job may retry an index, make a spare or exceed its deadline, and so has a timer. */
static inline bool job_goes_on(const struct job *job)
{
    return job->state == JOB_ACTIVE && !job->doomed && !job->jobset->deleted_ns && !job_is_hidden(job);
}

/* A machine that failed a test before a gang's start; becomes a fault. */
struct preflight_verdict {
    machine_id machine;
    struct buf code, evidence; /* own */
};

static inline bool gang_is_spare(const struct gang *gang)
{
    return gang->tasks.len == 1 && task_is_spare(gang->tasks.items[0]);
}

struct object_store;
struct health;
struct checkpoint_folder; /* folder.h */

struct slices;
struct job_store {
    const struct object_store *objects; /* private: the core's, for PriorityClasses */
    const struct health *health;        /* private: the core's, to name a machine's fault in the reason why a
                                         * gang waits */
    const struct slices *slices;        /* private: the core's */
    uint64_t judged;                    /* private: version of the Namespaces by which gangs were judged last
                                   * (gang/bar.c); 0: none yet */
    uint64_t shape;               /* private: changes with machines, their labels and their taints */
    VEC(struct jobset *) touched; /* private: reconciled since admission last ran */
    VEC(struct jobset *) dirty;   /* private: to be reconciled before the step ends */
    VEC(obj_id) lacking;          /* private: JobSets whose Service and claims are checked before the step
                                   * ends */
    struct heap timers;           /* private: of JobSets */
    struct heap whys;             /* private: of gangs whose `why` is worked out again (gang/why.c) */
    struct list_node *machine_tasks; /* [machine_count] living tasks on each machine */
    size_t machine_count;
    struct capacity *capacity; /* private: index of the machines' free capacity, for placement; NULL: none */
    /* private: freed when the next step begins, so that effects can refer to them */
    VEC(struct jobset *) dead_jobsets;
    VEC(struct job *) dead_jobs;
    VEC(struct task *) dead_tasks;
    VEC(struct gang *) dead_gangs;
    VEC(struct arena) dead_arenas;   /* of replaced documents */
    VEC(struct jobset *) jobsets; /* in creation order */
    struct str_map by_name;       /* "namespace/name" -> struct jobset of FORM_JOBSET */
    struct u64_map by_uid;        /* uid -> struct jobset */
    size_t exclusive;             /* private: JobSets with a job that wants an exclusive topology domain */
    VEC(struct jobset *) reserving; /* private: JobSets with a reservation, in no order */
    VEC(machine_id)
    reserved_anew;                /* private: machines whose reserved_mask is recomputed before the step
                                     * ends (gang/reserve.c); some twice */
    size_t naming;                /* private: JobSets with a pod that names its machine */
    struct u64_map tasks;         /* uid -> struct task */
    struct str_map task_names;    /* "namespace/pod-name" -> struct task */
    struct str_map job_stems;     /* private: "namespace/<jobset>-<replicated job>" -> the first JobSet of
                                   * that name */
    size_t spares;                /* private: number of spare tasks */
    size_t own_jobs;              /* private: Jobs without a JobSet */
    /* private: number of JobSets with an unanswered incident; 0 between steps */
    size_t incidents;
    struct str_map job_names;     /* "namespace/job-name" -> struct job (jobset_seen_job) */
    uint64_t completed_total, failed_total; /* number of JobSets that have ever completed, failed */
    struct sched_queue queue;
    VEC(struct gang *) preflights;  /* private: gangs that wait for tests, by uid */
    VEC(machine_id) testing;        /* private: machines under such a test, ascending */
    VEC(struct preflight_verdict) verdicts; /* not taken yet; empty between steps */
    /* private: placed tasks that wait for a ConfigMap, Secret or claim (gang/config.c); the version of these
     * objects at which the tasks were checked last (gang/start.c) */
    VEC(obj_id) config_waiters;
    uint64_t config_version;
    VEC(struct checkpoint_folder) folders; /* private: of deleted JobSets, the oldest first (folder.h) */
};

/* --- for readers ---------------------------------------------------------------------------------------- */

/* The find functions return NULL if there is no such object. jobs_find finds only objects that the API shows
 * as a JobSet; jobs_find_job finds the Job that users see under the name. */
struct jobset *jobs_find(const struct job_store *store, struct str namespace_, struct str name);
struct jobset *jobs_find_uid(const struct job_store *store, obj_id uid);
struct task *jobs_find_task(const struct job_store *store, obj_id uid);
struct task *jobs_find_pod(const struct job_store *store, struct str namespace_, struct str name);
struct job *jobs_find_job(const struct job_store *store, struct str namespace_, struct str name);
/* Call `visit` for every Job that users see, or every task: in order of JobSets' creation, Job, task. */
void jobs_visit_jobs(const struct job_store *store, void (*visit)(void *context, const struct job *),
                     void *context);
void jobs_visit_tasks(const struct job_store *store, void (*visit)(void *context, const struct task *),
                      void *context);

/* Returns whether a task of the JobSet, spares and older attempts included, has not ended. */
bool jobset_has_living(const struct jobset *jobset);
/* Returns whether a gang of the JobSet other than a spare's is placed or running. */
bool jobset_is_running(const struct jobset *jobset);

uint32_t restarts_kept(const struct restart_history *history); /* number of records that are kept */
/* Returns the record of the restart that came `back` restarts before the newest; NULL if it is not kept. */
struct restart_record *restart_back(const struct restart_history *history, uint32_t back);
struct restart_record *restart_newest(const struct jobset *jobset); /* NULL: there was no restart */

/* The number of spares that a JobSet's Jobs should have, and of those that could take a rank now. */
struct spare_counts {
    uint32_t wanted, ready;
};
struct spare_counts jobset_spares(const struct jobset *jobset, const struct cluster *cluster);
/* Returns whether the task is a spare that could take a rank now, on a ready machine. A warm spare must have
 * joined as a spare; a cold one must be placed and through its preflight. */
bool task_is_ready_spare(const struct task *task, const struct cluster *cluster);

/* Returns the stamp at which the first of the machine's living tasks was told to start, or INT64_MAX if
 * none was (health/evidence.h). */
int64_t jobs_oldest_start(const struct job_store *store, machine_id machine);
/* Returns the scheduling gates of a Pod that a Job made, in the form of its spec; lives in `arena`. */
struct doc *task_gates(const struct task *task, struct arena *arena);
/* Returns whether the task belongs to an absent replica. Such a task is placed but idle, or has no place. */
bool task_is_away(const struct task *task);
bool gang_is_away(const struct gang *gang); /* its first living task is away */
/* Returns the rank that the task has while no replica is absent; *ret_world: the size of that world. */
uint32_t task_full_rank(const struct task *task, uint32_t *ret_world);
/* Returns the number of the JobSet's replicas, including absent ones, or 0 if it has no replicas. */
uint32_t jobset_replicas(const struct jobset *jobset);
/* Returns whether the step belongs to the JobSet's present attempt. A step without an attempt does not count
 * while the task's process is kept: the process waits for the next attempt, or has not joined it yet. */
bool task_step_counts(const struct task *task, const struct task_step *step);
/* Returns the class of the JobSet's size (ledger_size_of): that of all chips that its spec wants. */
uint8_t jobset_size_class(const struct jobset *jobset);
/* Returns the JobSet's account over all gangs, as of now. */
struct ledger_account jobset_account(const struct jobset *jobset, int64_t now_ns);
/* Returns the annotations of a Job (`task` NULL) or of its Pod, besides those of its template; in `arena`,
 * sorted by key. */
struct labels job_annotations(const struct job *job, const struct task *task, struct arena *arena);
/* Returns the labels of a Job (`task` NULL) or of its Pod: those of its template and the controllers' own
 * (jobset.sigs.k8s.io/..., job-name, ...); in `arena`, sorted by key. */
struct labels job_labels(const struct job *job, const struct task *task, struct arena *arena);

/* Labels and annotations from a user for a Job or Pod that the controller made. They replace all but the
 * controllers' own (meta_is_controlled), and are freed with the object. */
struct user_meta {
    struct labels labels, annotations; /* sorted by key */
    struct arena arena;
};
/* Returns whether only the controllers may set the label or annotation. */
bool meta_is_controlled(struct str key);
/* Returns the rate in steps per 1000 seconds over the last window, or 0 if it is unknown. */
int64_t progress_rate_milli(const struct progress *progress);
/* Returns the model FLOPs utilisation while steps are made, in millionths, or -1 if it is unknown: the
 * operations of a step, as rank 0 reports them (metric step_teraflop, 10^12 operations of all ranks), times
 * the rate of steps, over the peak of `chips` chips of `chip_teraflops` each. PaLM (arXiv 2204.02311),
 * app. B. */
int64_t progress_mfu_ppm(const struct progress *progress, int64_t chips, int64_t chip_teraflops);

#endif
