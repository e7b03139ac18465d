/* job.h - the life of jobs: JobSet -> replicated jobs -> Jobs -> tasks, and the gangs they are placed in.
 *
 * A JobSet's tasks that are created together form a gang: they are placed together or not at all. A restart
 * makes new jobs and tasks with a higher attempt; a task of the new attempt is started only when the task
 * with the same name of the old one is known dead, or on the same machine, whose agent keeps that order
 * itself.
 *
 *   jobset.c    the JobSet: creation, new generations, conditions, deletion, its end
 *   reconcile.c what is marked is moved on: Jobs, success, suspend, deletion, TTL, timers
 *   status.c    its numbers and timers, from the Jobs that changed
 *   attempt.c   restart numbers: failure policy, ending an attempt, beginning the next
 *   startup.c   which replicated jobs may start now (AnyOrder, InOrder, dependsOn)
 *   batch.c     the batch/v1 Job: indexes, completions, back-off, failure reasons
 *   task.c      one task: lifecycle table, reports, stops
 *   gang.c      gangs: queue, taking and giving chips
 *   form.c      which tasks form a gang
 *   gates.c     scheduling gates: what holds a gang before it is placed
 *   named.c     pods that name their machine
 *   request.c   what the scheduler is asked for a gang, or for a JobSet that is tried
 *   trial.c     would a JobSet find machines; terms and reservations of admission
 *   mttf.c      how long a JobSet runs until a machine fails it
 *   launch.c    what an agent needs to start a task: environment, ranks, ports, the gang's sheet
 *   inplace.c   all tasks of a JobSet run again where they are
 *   rejoin.c    those of them whose processes live on
 *   spare.c     tasks that wait for a rank
 *   shrink.c    replicas that leave for want of machines, and come back
 *   dump.c      survivors save what all had, before all of it runs again
 *   suspend.c   ranks that are to be suspended save a last time
 *   recovery.c  which losses the ladder answers
 *   belongings.c   the Service and the claims of a JobSet
 *   resize.c    room for Jobs and indexes; parallelism and completions that change
 *   progress.c  steps, checkpoints, restart records
 *   ends.c      what the ends of tasks leave behind, kept with the restart that they explain
 *   suspect.c   machines that end attempts of different jobs
 *   move.c      a JobSet leaves a machine that is not well
 *   peers.c     what ranks say of each other
 * Everything here is read by the API between steps; only core.c's routing and the files above change it.
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
#include "core/recovery/ladder.h"
#include "core/sched/sched.h"

/* --- tasks (API: Pod) ----------------------------------------------------------------------------------- */

enum task_state {
    TASK_PENDING,   /* exists; waits for its gang's placement */
    TASK_PLACED,    /* holds its chips; waits for its predecessor's death */
    TASK_STARTING,  /* told to start */
    TASK_RUNNING,   /* its process runs */
    TASK_STOPPING,  /* told to stop; may be alive until its agent or the machine's loss says otherwise */
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
    END_EXIT,         /* exit code or signal of its own */
    END_START_FAILED, /* could not be started */
    END_MACHINE_LOST, /* gone with its machine */
    END_STOPPED,      /* we told it to */
    END_REFUSED,      /* the machine that it names would not take it; `reason` says why */
};

/* A process that lives through a restart in place of its JobSet (inplace.c). */
enum keep_state {
    KEEP_NO,
    KEEP_WAITS, /* it goes on, and waits for the next attempt to begin */
    KEEP_TOLD,  /* it was told of the attempt and has not joined it yet */
};

struct task {
    obj_id uid;                /* of this run of its processes: what agents know it by */
    obj_id pod_uid;            /* of the Pod: the first run's uid */
    struct job *job;
    struct gang *gang;
    int32_t index;             /* completion index; below 0: a spare, -1 - its number (task_is_spare) */
    uint32_t retry;            /* how many tasks this index had before, in this job */
    uint32_t runs_before;      /* how often it ran in its place before */
    int32_t execution;         /* of its Job when it was made */
    int32_t priority;          /* likewise: of its class then, or as its pod says */
    uint32_t failed_runs;      /* those of them that count towards backoffLimit (inplace.c) */
    uint8_t state;             /* enum task_state */
    bool doomed;               /* to be deleted when it has ended (stop was ours) */
    bool ready;                /* running, and its containers' readiness probes pass */
    bool joined;               /* speaks libphalanx, and has joined `attempt` */
    bool can_rejoin,
        spare;    /* as it said when it joined last: it can go on under another attempt; has no rank */
    uint8_t keep; /* enum keep_state */
    bool was_spare;            /* its process began as a spare: its agent knows it by another host name */
    bool parked;               /* PLACED again: it waits to run once more in its place (inplace.c) */
    bool evicted;              /* a user deleted the Pod */
    uint8_t loss;              /* enum loss_cause: evicted because of; LOSS_NONE: a user's wish */
    bool peers_lost;           /* a peer's connection to it broke: evidence, until it is heard of again */
    bool counted;              /* private: its gang knows that it has started */
    bool holds;                /* counts on its machine: chips, cpu, memory */
    uint8_t end;               /* enum task_end */
    struct str name;           /* Pod name: "<job>-<index>-<5 characters>"; NonIndexed: without index */
    struct str hostname;       /* "<job>-<index>"; NonIndexed: the name; a bare Pod's own */
    machine_id machine;        /* MACHINE_NONE until placed; stays after the end */
    uint64_t chips;            /* held; 0 after the end */
    uint64_t chips_were;       /* the chips it held, for display */
    /* What it holds beside chips. What its containers ask for now may be something else: a suspended JobSet's
     * may change while its tasks still end. */
    int64_t cpu_milli, memory_bytes;
    uint32_t asked_chips;      /* PENDING: private, what its gang counts for it */
    uint32_t rank, world;      /* within its group; of one that is away: behind all that take part, of all */
    int32_t attempt;           /* of its JobSet when its process was told to start or rejoin: of its shards */
    int32_t began_attempt;     /* in which its process began: it may have lived through restarts */
    uint16_t port;             /* base of its attempt's two ports: MASTER_PORT, rendezvous + 1 */
    int64_t created_ns, placed_ns, start_sent_ns, started_ns, ended_ns, stopping_since_ns;
    int64_t stop_grace_ns;     /* STOPPING: the grace it was given */
    int32_t exit_code, signal;
    bool oom, fenced;
    struct str message;        /* why it failed, in words */
    struct str reason;         /* END_REFUSED: "OutOfcpu", "NodeAffinity", ... as a kubelet says */
    int64_t saved_step;        /* newest shard it has saved, -1: none */
    int64_t saved_before[SAVED_BEFORE_MAX]; /* those before it, newest first, as many as are kept */
    uint32_t saved_before_count;
    uint64_t changed_seq;
    struct user_meta *meta;      /* what a user made of its labels and annotations; NULL: nothing */
    /* PENDING: scheduling gates of its template that nobody has removed yet (gates.c). A Pod of its own has
     * them in its document. */
    struct str *gates;
    uint32_t gate_count;
    struct list_node on_machine; /* in job_store.machine_tasks[machine] while it lives there */
    /* As its agent said last: main containers, then init ones; NULL: it has but one, which is the task */
    struct container_status *containers;
    uint32_t container_count;
    struct arena containers_arena; /* private: of `containers` */
    struct arena arena;        /* name, message */
};

/* It waits for a rank (spare.c): in its Job's `spares`, with a gang of its own, and counts for nothing. */
static inline bool task_is_spare(const struct task *task)
{
    return task->index < 0;
}

/* What a replicated job's Jobs are, in numbers. */
struct rjob_status {
    int32_t ready, succeeded, failed, active, suspended;
};

/* --- jobs (API: batch/v1 Job) --------------------------------------------------------------------------- */

enum job_state {
    JOB_SUSPENDED, /* exists without tasks */
    JOB_ACTIVE,    /* has or wants tasks */
    JOB_FAILING,   /* FailureTarget: its fate is decided, its tasks are ending */
    JOB_COMPLETING, /* SuccessCriteriaMet: likewise */
    JOB_FAILED,
    JOB_COMPLETE,
    JOB_STATES
};
extern const struct lifecycle job_lifecycle;

struct job_index {
    struct task *task;         /* the newest one; NULL: none yet, or gone */
    uint32_t made;             /* tasks in all */
    uint32_t failures;         /* counted ones */
    int64_t retry_due_ns;      /* with backoffLimitPerIndex: no new task before; 0: none */
    bool succeeded, failed;    /* decided for good */
};
struct job {
    obj_id uid;
    struct jobset *jobset;
    const struct rjob_spec *rjob;
    uint32_t rjob_index, index, global_index;
    uint32_t first_slot;       /* of its indexes in jobset->last_machines */
    int32_t attempt;           /* label restart-attempt */
    int32_t job_attempt;       /* label job-restart-attempt: restarts of this place alone before */
    int32_t execution;         /* annotation execution-attempt: of its JobSet when it was made or resumed */
    uint8_t state;             /* enum job_state */
    bool doomed;               /* of an older attempt, or deleted: goes when its tasks have ended */
    int64_t doomed_ns;         /* since when; 0: it is not */
    struct str name;
    struct job_index *indexes; /* [index_count]: completions, or parallelism for a work queue; or more
                                * than the spec has now (resize.c) */
    uint32_t index_count;
    uint32_t failed_indexes, first_open; /* private: of indexes; below first_open all are decided for good */
    struct job *before;        /* private: older one of its place that still ends (jobset->ending) */
    VEC(struct task *) tasks;  /* alive or ended, of this job, in creation order */
    VEC(struct task *) spares; /* alive, in creation order (spare.c) */
    uint32_t spare_failures;   /* of spares in a row that ended by themselves */
    int64_t spare_due_ns;      /* no spare is made before; 0: none waits */
    uint32_t active, ready, succeeded, failed; /* of tasks; failed counts towards backoffLimit */
    /* FAILING/FAILED: BackoffLimitExceeded, DeadlineExceeded, PodFailurePolicy, ... */
    const char *reason;
    struct str message;
    int32_t success_rule;      /* of successPolicy, by which it completed; -1: by its completions */
    struct task *culprit;      /* the first task whose failure counted */
    obj_id restore_culprit;    /* private: only while a snapshot is read */
    int64_t created_ns, start_ns, finished_ns; /* start_ns: set when not suspended */
    /* Back-off: no new task before; 0: none. With backoffLimitPerIndex: the first index that waits is due. */
    int64_t retry_due_ns;
    bool dirty, uncounted;     /* private: in jobset->dirty_jobs; in jobset->uncounted */
    bool gone;                 /* private: in job_store.dead_jobs */
    bool sift;                 /* private: some of its ended tasks may have to go */
    struct rjob_status counted; /* private: what it adds to its replicated job's status */
    struct heap_node timer;    /* private: in jobset->job_timers */
    struct user_meta *meta;    /* as of a task */
    uint32_t old_place;        /* private: in jobset->old_jobs */
    /* private: all its tasks were told to stop, since it ends / since it is doomed */
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
    bool replaces;              /* made by a restart or retry: may use spares */
    bool feasible;              /* private: it could be placed on the empty cluster of this shape */
    uint64_t feasible_shape;    /* private: job_store.shape + 1 when that was judged; 0: never */
    uint64_t refused_at; /* private: the cluster's next change when nothing but machines refused it; 0 */
    VEC(struct task *) tasks;
    struct str why;             /* why it waits, in numbers: QUEUED, or in its preflight */
    struct buf why_text;        /* private: owns `why` */
    uint32_t min_count;         /* QUEUED: it may start with so many of its tasks; 0: only with all */
    uint32_t waiting, alive;    /* tasks neither running nor ended; tasks not ended */
    bool thinned;               /* private: some of `tasks` have left it; taken out before the step ends */
    bool gated;                 /* private: some of `tasks` had scheduling gates when it was formed */
    struct preflight *preflight; /* PLACED: its machines are tested first (job/preflight.h); NULL: no */
    struct ledger_account account;
    int64_t queued_ns, placed_ns, running_ns; /* running: every task runs */
};

/* --- JobSets -------------------------------------------------------------------------------------------- */

enum condition_kind { /* in the order they are listed */
    CONDITION_COMPLETED, CONDITION_FAILED, CONDITION_SUSPENDED, CONDITION_STARTUP_IN_PROGRESS,
    CONDITION_STARTUP_COMPLETED, CONDITION_RESTARTING, CONDITION_KINDS
};
const char *condition_name(enum condition_kind kind); /* "Completed", "StartupPolicyInProgress", ... */
struct condition {
    bool present, status;       /* stored only once it has been True */
    char reason[176];
    struct str message;
    struct buf text;            /* private: owns `message` */
    int64_t changed_ns;         /* last transition */
};
/* What one restart cost. Times are stamps; 0: not yet. */
struct restart_record {
    int32_t attempt;            /* the one it began */
    char cause[32];             /* "MachineLost", "TaskFailed", "OutOfMemory", "StartFailed", ... */
    char machine[64], detail[160];
    int64_t fault_ns;           /* detected */
    int64_t evidence_ns;        /* newest sign of life before the fault, where known */
    int64_t started_ns;         /* every task of the new attempt runs */
    int64_t stepped_ns;         /* every rank has made its next step */
    int64_t step_at_fault, step_resumed_from; /* -1: unknown */
    int64_t redone_us;          /* chip-microseconds that it took: all since the newest checkpoint */
    struct end_clues clues;     /* of the attempt that it ended; grows for ATTRIBUTE_AFTER_NS */
    struct end_faults faults;   /* likewise */
    uint8_t rung;               /* enum rung: how the ladder answered; RUNG_NONE: it was not asked */
    char *passed;               /* owned: why it passed the finer ones over; NULL: nothing to say */
};
/* It is to leave a machine that is not well (enum sub_health), once its ranks have saved. */
enum move_phase {
    MOVE_SAVING,  /* its ranks were told */
    MOVE_ROOM,    /* before that, by spares: those who take the ranks over are made, or are starting */
    MOVE_LEAVING, /* after that, by spares: its tasks there are being stopped */
    MOVE_PHASES
};
struct move {
    bool under_way;
    enum move_phase phase;
    bool by_spares; /* its processes outlive their peers: they wait where they have saved */
    bool planned;   /* nothing speaks against the machine */
    machine_id machine;
    enum sub_health policy;
    int64_t noticed_ns, due_ns; /* of the phase's beginning; what happens if it does not end happens then */
    char why[160];
};
/* How often it has crashed in a row, under its failure policy (backoff.c). */
struct crashes {
    int32_t count;     /* without a new step in between */
    int64_t best_step; /* ladder.best_step at the last of them */
    int64_t due_ns;    /* the next attempt does not begin before this stamp; 0: at once */
};
/* Its ranks were told that it is suspended, and are not stopped before they have saved (suspend.c). */
struct farewell {
    int64_t noticed_ns, due_ns; /* 0, 0: nobody is waited for */
};
/* Steps of one group as the attempt goes on. */
struct progress {
    int32_t attempt;            /* in which `step` was reached; -1: none */
    int64_t step, total;        /* -1 / 0: unknown */
    enum step_source source;    /* of `step`; once COUNTED, the JobSet's numbers are no places */
    int64_t step_ns;            /* when `step` was reached */
    int64_t base_step, base_ns; /* an older point, for the rate */
    struct step_metric metrics[METRICS_MAX];
    char metric_names[METRICS_MAX][32];
    size_t metric_count;
};
/* Replicas of it that take no part in its attempt (shrink.c). */
struct absence {
    VEC(uint32_t) replicas; /* by their number in the full world, ascending */
    uint32_t size;          /* ranks of each; while there are none, of no meaning */
    int64_t since_ns;       /* since when some are away */
    int64_t grow_ns;        /* none comes back before this stamp; 0: it is over */
    bool overdue;           /* places are missing for so long that replicas may leave */
};
/* A dying checkpoint (dump.c). What is over belongs to the restart that follows. Part of snapshots: numbers
 * only grow. */
enum dump_state { DUMP_NONE, DUMP_UNDER_WAY, DUMP_SAVED, DUMP_REFUSED, DUMP_STATES };
struct checkpoint_state {
    int64_t committed_step;     /* -1: none */
    int32_t committed_attempt;
    int64_t committed_ns;
    uint64_t count;
};

struct rjob_terms; /* job/trial.h */

/* What is kept on a machine for a gang that comes later. */
struct room {
    machine_id machine;
    uint64_t chips;
    int64_t cpu_milli, memory_bytes;
};

/* What users see of it depends on `form`: of a Job or Pod of their own there is no JobSet in the API, and of
 * a Pod no Job either (step_changed and the indexes keep them out). */
struct jobset {
    obj_id uid;
    enum form form;             /* of `document`; never changes */
    struct str key, namespace_, name; /* key: "namespace/name", owned; the two others are cut from it */
    struct arena arena;         /* document and spec of the current generation */
    /* The JobSet, Job or Pod as it was written: apiVersion, kind, metadata (labels, annotations,
     * finalizers...), spec; defaulted */
    struct doc *document;
    struct jobset_spec spec;
    int64_t generation;
    int64_t created_ns, deleted_ns; /* deleted_ns: deletionTimestamp, 0: none */
    /* Deleted with propagationPolicy Orphan: for users the JobSet (of a Job of its own: the Job) is gone, and
     * its Jobs (Pods) belong to nobody. They go on by themselves; with the last that is deleted this goes. */
    bool hidden;
    uint64_t changed_seq;
    struct condition conditions[CONDITION_KINDS];
    int32_t restarts, restarts_counted;
    const char *terminal_state; /* "", "Completed", "Failed" */
    struct rjob_status *rjob_status; /* [spec.rjob_count] */
    /* [job_count] current job of each (rjob, index) in spec order; NULL: not created */
    struct job **jobs;
    uint32_t job_count;
    uint32_t made;              /* private: of `jobs`, those that exist */
    VEC(struct job *) old_jobs; /* of earlier attempts, still ending; in no order */
    /* private: to be looked at, to be counted before the step ends */
    VEC(struct job *) dirty_jobs, uncounted;
    struct heap job_timers;     /* private: of current jobs: deadlines, back-off */
    struct job **ending;        /* private: [job_count] newest of old_jobs of each place, NULL: none */
    struct task *laggard;       /* private: a task that keeps a checkpoint from being whole; NULL: unknown */
    VEC(struct gang *) gangs;   /* of the current attempt, and older ones that still end */
    int32_t attempt;            /* restarts of the whole, recreated or in place, and first_attempt; part of
                                 * every fence */
    int32_t first_attempt;      /* 0, but behind its predecessor's in a checkpoint folder (folder.h) */
    int32_t executions;         /* resumptions and restarts of the whole since it first ran; -1: never ran */
    int32_t *job_attempts;      /* [job_count] RestartJob: extra restarts of one job */
    int32_t *job_attempts_counted; /* [job_count] those of them that count towards maxRestarts */
    uint32_t *widths;           /* private: [spec.rjob_count] places of each Job (resize.c) */
    int64_t first_queued_ns;    /* keeps the place in the queue over restarts */
    struct progress progress;
    struct checkpoint_state checkpoint;
    /* A Job counts as failed when its pods have ended (upstream's way), not as soon as its fate is decided.
     * From the annotation phalanx.dev/act-on-failure-target, else the cluster's setting, when it was last
     * written. */
    bool failures_wait;
    /* Restarts in place (inplace.c): how often its tasks ran again. While `parking`, they end and keep their
     * places, until all of them are dead and run again as one. */
    int32_t in_place_restarts, in_place_counted; /* all; those that count towards maxRestarts */
    bool parking, parking_counted;               /* the one under way is among those that count */
    bool backing_off;                            /* they run again at parking_since_ns, not before */
    int64_t parking_since_ns;                    /* from then on places that are missing are waited for */
    /* The last of them keeps the processes that can rejoin; until every rank has made its next step. Who is
     * late is ended a while after rejoin_since_ns, the begin of its attempt; 0: none is waited for. */
    bool keeping;
    int64_t rejoin_since_ns;
    uint8_t dump;     /* enum dump_state; UNDER_WAY: `parking` and `keeping`, and no rank is made anew */
    int64_t apart_ns; /* a rank lost its connection to one that lives, and no step came since; 0: none has */
    bool planned;     /* it was no loss: ranks come when their step is made, and nobody hurries them */
    /* Of this attempt: the newest join; when those that have not joined are late, 0: none is waited for. And
     * when a machine was blamed for such a rank last; 0: never. */
    int64_t joined_ns, join_due_ns, unjoined_ns;
    struct absence absence;
    struct ledger_account closed; /* sums of gangs that are gone */
    /* The whole account as it stood with the last change of the JobSet: what watchers see, so that one
     * resourceVersion is one text for all of them. A read has it as of now. */
    struct ledger_account shown;
    int64_t shown_ns;
    uint64_t shown_seq;         /* private: made in this step already */
    /* The status that another controller (managedBy) wrote, instead of ours; NULL: none. In its arena. */
    struct doc *foreign_status;
    struct arena foreign_arena;
    struct end_clues clues;     /* of tasks that ended since the newest restart */
    struct end_faults faults;   /* that struck it since; of the last minutes */
    struct ladder ladder;
    struct crashes crashes;
    int32_t seen_attempt; /* private: a machine has seen this one, newer than its own; 0 between steps */
    struct move move;
    struct farewell farewell;
    struct pace pace;           /* of its ranks, by slot: first_slot of their job and their index */
    struct restart_record records[RESTART_RECORDS_MAX];
    uint32_t record_count;      /* in all; the newest RESTART_RECORDS_MAX are kept at index % MAX */
    machine_id *suspects;       /* machines that caused restarts */
    size_t suspect_count;
    machine_id *last_machines;  /* [slot_count] where each (job, index) was placed last */
    uint32_t slot_count, loose_tasks; /* loose: PENDING without a gang */
    /* What admission adds to the spec for placement: [spec.rjob_count] or NULL (jobset_set_terms). */
    struct rjob_terms *terms;
    struct arena terms_arena;   /* private: owns them */
    struct room *reserved; /* kept for its gang (jobset_reserve), by ascending machine; NULL: none */
    size_t reserved_count;
    bool promised; /* what its tasks hold is another's reservation already: they make room for it */
    int64_t finished_ns;        /* Completed/Failed since; TTL runs from here */
    struct heap_node timer;     /* private: when it must be looked at again */
    bool touched;               /* private: in job_store.touched */
    bool dirty, gone;           /* private: in job_store.dirty; in job_store.dead_jobsets */
    /* private: one of its jobs wants a topology domain for itself; never changes */
    bool exclusive;
    bool names_machine; /* private: one of its pods has spec.nodeName */
    /* private: another JobSet's Jobs have, or had, the names of its own: each waits for its name. An old log
     * may hold such JobSets; new ones are refused. */
    bool shares_names, name_noted;
    struct arena stems;         /* private: keys in job_store.job_stems */
};

/* It is to stand still, and nobody is waited for. */
static inline bool jobset_rests(const struct jobset *jobset)
{
    return jobset->spec.suspend && !jobset->farewell.noticed_ns;
}

static inline bool jobset_is_seen(const struct jobset *jobset) /* as a JobSet */
{
    return jobset->form == FORM_JOBSET && !jobset->hidden;
}
/* Which Job of a place users see: the oldest one that still ends, then the current one (NULL: there is none).
 * Two Jobs of one name are never seen at once. */
static inline struct job *jobset_seen_job(const struct jobset *jobset, uint32_t place)
{
    struct job *seen = jobset->ending[place];
    for (struct job *job = seen; job; job = job->before)
        seen = job->uid < seen->uid ? job : seen;
    return seen ? seen : jobset->jobs[place];
}
static inline bool job_is_hidden(const struct job *job) /* its pods are nobody's */
{
    return job->jobset->form == FORM_JOB && job->jobset->hidden;
}

/* A machine failed a test before a gang's start: to be made a fault of. */
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

struct job_store {
    const struct object_store *objects; /* private: the core's, for PriorityClasses */
    /* private: says what a machine's fault is, for why gangs wait; from core.c, because health is not known
     * here; NULL: it is not said */
    void (*fault_name)(const struct health *health, struct str machine, struct buf *out);
    const struct health *health;
    uint64_t shape;               /* private: changes when machines, their labels or their taints do */
    VEC(struct jobset *) touched; /* private: reconciled since admission looked last */
    VEC(struct jobset *) dirty;   /* private: to be reconciled before the step ends */
    VEC(obj_id) lacking;          /* private: JobSets whose Service and claims are looked at before it ends */
    struct heap timers;           /* private: of JobSets */
    struct list_node *machine_tasks; /* [machine_count] live tasks that were placed there */
    size_t machine_count;
    struct capacity *capacity; /* private: of the machines, for placement; NULL: not kept */
    /* private: freed when the next step begins, so that effects can name them */
    VEC(struct jobset *) dead_jobsets;
    VEC(struct job *) dead_jobs;
    VEC(struct task *) dead_tasks;
    VEC(struct gang *) dead_gangs;
    VEC(struct arena) dead_arenas;   /* of replaced documents */
    VEC(struct jobset *) jobsets; /* in creation order */
    struct str_map by_name;       /* "namespace/name" -> struct jobset of FORM_JOBSET */
    struct u64_map by_uid;        /* uid -> struct jobset */
    size_t exclusive;             /* private: JobSets with a job that wants a topology domain for itself */
    size_t reserving;             /* private: JobSets with a reservation */
    size_t naming;                /* private: JobSets with a pod that names its machine */
    struct u64_map tasks;         /* uid -> struct task */
    struct str_map task_names;    /* "namespace/pod-name" -> struct task */
    struct str_map job_stems;     /* private: "namespace/<jobset>-<replicated job>" -> the first of it */
    size_t spares;                /* private: tasks that wait for a rank */
    size_t own_jobs;              /* private: Jobs without a JobSet */
    bool names_freed;             /* private: somebody may wait for a name (jobset->shares_names) */
    struct str_map job_names;     /* "namespace/job-name" -> struct job (jobset_seen_job) */
    uint64_t completed_total, failed_total; /* JobSets that have ended, ever */
    struct sched_queue queue;
    VEC(struct gang *) preflights;  /* private: those that wait for tests, by uid */
    VEC(machine_id) testing;        /* private: machines with a test for them, ascending */
    VEC(struct preflight_verdict) verdicts; /* not heard of yet; empty between steps */
    /* private: placed tasks that wait for a ConfigMap or Secret; when they were looked at last (config.c) */
    VEC(obj_id) config_waiters;
    uint64_t config_version;
    VEC(struct checkpoint_folder) folders; /* private: of deleted JobSets, the oldest first (folder.h) */
};

/* --- for readers ---------------------------------------------------------------------------------------- */

/* Only what is a JobSet in the API. */
struct jobset *jobs_find(const struct job_store *store, struct str namespace_, struct str name);
struct jobset *jobs_find_uid(const struct job_store *store, obj_id uid);
struct task *jobs_find_task(const struct job_store *store, obj_id uid);
struct task *jobs_find_pod(const struct job_store *store, struct str namespace_, struct str name);
struct job *jobs_find_job(const struct job_store *store, struct str namespace_, struct str name);
/* Calls `visit` for every Job (those of bare Pods are none) / task in a fixed order (creation of JobSet, then
 * job, then task). */
void jobs_visit_jobs(const struct job_store *store, void (*visit)(void *context, const struct job *),
                     void *context);
void jobs_visit_tasks(const struct job_store *store, void (*visit)(void *context, const struct task *),
                      void *context);

struct lemon_store;
/* Expected seconds to the next failure of one machine of the cluster, which is `age_s` old (mttf.c). */
int64_t machine_mttf_s(const struct cluster *cluster, const struct lemon_store *lemons, int64_t age_s);
/* Of a JobSet on the machines that its ranks hold now, each failing once in `machine_s` on average: at least
 * 1; 0: it holds none. */
int64_t jobset_mttf_s(const struct jobset *jobset, const struct cluster *cluster, int64_t machine_s);

/* How many spares its Jobs should have, and how many could take a rank now. */
struct spare_counts {
    uint32_t wanted, ready;
};
struct spare_counts jobset_spares(const struct jobset *jobset, const struct cluster *cluster);
/* It could take a rank now: a warm one has joined as a spare, a cold one has its room. */
bool task_is_ready_spare(const struct task *task, const struct cluster *cluster);

/* Stamp at which the first of the machine's living tasks was told to start; INT64_MAX: none was
 * (health/evidence.h). */
int64_t jobs_oldest_start(const struct job_store *store, machine_id machine);
/* Could a queued gang be placed if every machine were ready and empty? False: `why` (NULL: not wanted) gets
 * one sentence in numbers. */
bool gang_feasible(const struct job_store *store, const struct cluster *cluster, const struct gang *gang,
                   struct buf *why);

/* What the agent needs to start the task; everything lives in `arena` or in the core. `machines` resolves
 * names. */
void task_launch_build(const struct task *task, const struct cluster *cluster, struct arena *arena,
                       struct task_launch *ret_launch);
/* The same for many tasks between two events: what the starts of a gang have in common is made with the first
 * of them. Give it an arena and zeroes; launches point into that arena too. Not to be kept when an event is
 * applied: it may move tasks. */
struct launch_common {
    struct arena *arena;
    int64_t machine_mttf_s;             /* see machine_mttf_s(); 0: tasks are not told */
    const struct object_store *objects; /* for ConfigMaps and Secrets; NULL: there are none */
    const struct jobset *jobset;
    struct str group;
    struct gang_sheet sheet;
    struct launch_place *places; /* of the sheet's entries */
    uint32_t nodes;
    struct str hostnames;        /* "a.sub,b.sub,..." */
    int64_t mttf_s;              /* of the JobSet; 0: not known */
};
void task_launch_build_next(struct launch_common *common, const struct task *task,
                            const struct cluster *cluster, struct arena *arena,
                            struct task_launch *ret_launch);
/* The scheduling gates of a Pod that a Job made, as its spec has them. */
struct doc *task_gates(const struct task *task, struct arena *arena);
/* It belongs to a replica that takes no part: it stands by, or has no place. */
bool task_is_away(const struct task *task);
bool gang_is_away(const struct gang *gang); /* its tasks are */
/* Its rank, and the world of its group, when nobody is away. */
uint32_t task_full_rank(const struct task *task, uint32_t *ret_world);
/* Replicas of the JobSet, those that are away among them; 0: it is not divided. */
uint32_t jobset_replicas(const struct jobset *jobset);
/* What its living process needs to go on as its attempt; everything lives in `arena` or in the core. */
void task_rejoin_build(const struct task *task, const struct cluster *cluster, struct arena *arena,
                       struct task_rejoin *ret_rejoin);
/* Is the step news of the attempt that the task is in now? Not what a process says that is still to go on as
 * it, or of a JobSet whose next attempt has not begun. */
bool task_step_counts(const struct task *task, const struct task_step *step);
/* The JobSet's account over all gangs, at now. */
struct ledger_account jobset_account(const struct jobset *jobset, int64_t now_ns);
/* Annotations that a Job or pod carries besides those of its template; likewise. */
struct labels job_annotations(const struct job *job, const struct task *task, struct arena *arena);
/* Labels that every job and pod of the JobSet carries (jobset.sigs.k8s.io/..., job-name, ...), those of its
 * template among them; in `arena`, sorted by key. `task` NULL: those of the Job. */
struct labels job_labels(const struct job *job, const struct task *task, struct arena *arena);

/* Labels and annotations that a user gave a Job or a Pod that was made from something else: all that it has,
 * but for the controllers' own (meta_is_controlled), which stay. They go with the object. */
struct user_meta {
    struct labels labels, annotations; /* sorted by key */
    struct arena arena;
};
bool meta_is_controlled(struct str key);
/* Steps per 1000 seconds over the last window; 0: unknown. */
int64_t progress_rate_milli(const struct progress *progress);

#endif
