/* model.h - the inventory: the cluster's machines and chips, their places, and their state.
 *
 * Loaded from a cluster file (docs/cluster-file.md); the document fixes the inventory of machines, and
 * events change their state. A machine is a host with up to 64 chips; chips are bits of a mask. Machines
 * are ordered by place (pod, cube or rack, index), so neighbours in the array are neighbours in the hall;
 * rank order follows it.
 */
#ifndef PHX_CORE_MODEL_MODEL_H
#define PHX_CORE_MODEL_MODEL_H

#include "base/map.h"
#include "base/vec.h"
#include "core/fabric/wiring.h"
#include "core/ids.h"
#include "core/lifecycle.h"
#include "core/limits.h"
#include "core/model/qualification.h"
#include "core/spec/spec.h"

enum machine_state {
    MACHINE_UNSEEN, /* in the cluster file, its agent has never registered */
    MACHINE_READY,  /* its agent is connected and its inventory is known */
    MACHINE_AWAY,   /* its agent's connection broke; its tasks may be alive; its lease runs */
    MACHINE_LOST,   /* lost (by evidence) or silent beyond the lease: its tasks are dead or have fenced
                     * themselves */
    MACHINE_STATES
};
extern const struct lifecycle machine_lifecycle;

/* The result of the judgement of its faults (health/fault.h), its repair and planned maintenance
 * (repair/repair.h). Users' cordons are separate. */
enum isolation {
    ISOLATION_HEALTHY,
    ISOLATION_SUSPECT,     /* it has a fault that does not keep it from work */
    ISOLATION_DRAINING,    /* takes no new work; running work goes on */
    ISOLATION_QUARANTINED, /* takes no work */
    ISOLATION_RESETTING,   /* idle: a hook runs there, or is about to */
    ISOLATION_QUALIFYING,  /* idle: it is tested before it comes back */
    ISOLATION_TICKETED,    /* idle: waits for a person */
    ISOLATION_RETURNED,    /* at work again, repaired a short while ago */
    ISOLATIONS
};
extern const struct lifecycle isolation_lifecycle;
/* Whether a machine in this state gets no new work. */
bool isolation_is_out(enum isolation isolation);
/* Returns the stronger of the two: a state without new work before one with, a repair before its cause,
 * SUSPECT before RETURNED. */
enum isolation isolation_join(enum isolation a, enum isolation b);

struct taint {
    struct str key, value, effect; /* NoSchedule, PreferNoSchedule, NoExecute */
};

/* A journal of the machines of which something changed that placement looks at. Readers note how far they
 * have read; one that finds the beginning gone looks at every machine (sched/capacity.h). */
struct machine_changes {
    VEC(machine_id) ids;
    uint64_t first; /* running number of ids.items[0]; the first of all is 1 */
};

struct machine {
    machine_id id;
    struct machine_changes *changes; /* of its cluster */
    struct str name;           /* unique; API: Node's name */
    struct str address;        /* IP address of its tasks */
    uint32_t pod, block;       /* indexes into cluster->pods, cluster->blocks */
    uint32_t chip_count;
    int64_t cpu_milli, memory_bytes; /* capacity; 0: unknown, not a constraint */
    bool spare;                /* used only to replace a machine of a running gang */
    struct labels labels;      /* sorted: the cluster file's, and kubernetes.io/hostname,
                                * phalanx.dev/pod|cube|rack */

    /* Changed by events. */
    uint8_t state;             /* enum machine_state */
    bool cordoned;             /* API: spec.unschedulable */
    uint8_t isolation;         /* enum isolation */
    uint8_t kept;              /* enum isolation that its repair or maintenance requires; derived */
    int64_t isolated_ns;       /* stamp of its last change; 0: never */
    obj_id last_job;           /* JobSet of the last task that ended here; 0: none */
    int64_t last_job_ns;       /* when it did */
    obj_id blamed_job;         /* JobSet whose attempt it ended last (job/suspect.c); 0: none */
    int64_t blamed_ns;         /* when it did */
    bool suspect;              /* it failed several jobs: other machines are preferred; derived */
    int64_t noticed_ns, leave_ns; /* quarantined: when its tasks were told, and when they are stopped; 0:
                                   * not */
    struct taint *taints;
    size_t taint_count;
    struct labels user_labels; /* API additions */
    struct labels annotations; /* set by the API only */
    struct str managed_fields; /* metadata.managedFields as JSON: the owner of each field; empty: none */
    struct arena user;         /* owns the four above */
    uint64_t free_mask;        /* chips that no task holds */
    int64_t cpu_used_milli, memory_used_bytes;
    uint32_t task_count;       /* tasks placed here, chips or not */
    uint64_t incarnation;      /* of the last agent that registered; larger is newer */
    uint32_t found_plus_1;     /* 1 + the chips that this agent found; 0: none has registered */
    bool errands;              /* that agent understands errands (errand/errand.h) */
    bool injection;            /* and injects faults if asked to (injections.c) */
    /* When it last passed its tests (qualification.h), alone and with a partner, while that counts; 0: not
     * valid. And the errand that tests it before a gang starts; 0: none. */
    int64_t qualified_ns, paired_ns;
    obj_id qualifying;
    int64_t state_since_ns;
    uint64_t changed_seq;      /* log position of the last change: resourceVersion */
    obj_id uid;
    int64_t created_ns;
};

enum block_kind { BLOCK_CUBE, BLOCK_RACK };
struct block {                 /* a cube (16 machines of 2x2x1 chips, 4x4x4 in all) or a rack */
    struct str name;           /* unique in its pod */
    enum block_kind kind;
    uint32_t pod;
    machine_id first;          /* its machines are first .. first + count - 1 */
    uint32_t count;
};
struct pod {
    struct str name;
    uint32_t first_block, block_count;
    uint32_t cube_count;   /* its first so many blocks are cubes: cube c is block first_block + c */
    uint32_t first_switch; /* of its POD_SWITCHES in cluster->switches; SWITCH_NONE: none are managed */
    machine_id first;
    uint32_t count;
};

enum { SWITCH_NONE = UINT32_MAX };
/* An optical switch of a pod, as the cluster file has it; its state is slice/slice.h's. */
struct optical_switch {
    struct str name;     /* unique in the cluster: "<pod>-x5" */
    uint32_t pod;        /* index into cluster->pods */
    uint32_t number;     /* in its pod: fabric/wiring.h */
    struct str protocol; /* "scpi" or "tl1" */
    struct str address;  /* HOST:PORT */
    int64_t timeout_ns;  /* of one request */
};

/* The settings of the queues (cluster file, spec.queues). All zero but the defaults of load_queues.c. */
enum fair_strategy { FAIR_LESS_OR_EQUAL_FINAL, FAIR_LESS_INITIAL };
struct queue_settings {
    int64_t min_run_ns;        /* protection from preemption after an admission */
    int64_t max_life_ns;       /* of one admission; 0: no limit */
    int64_t victims_max;       /* victims of one gang while it waits; 0: no limit */
    bool wait_ready;           /* waitForPodsReady.enable */
    bool block_admission;      /* no workload is admitted while an admitted one is not ready */
    bool creation_timestamp;   /* requeuingStrategy.timestamp: Creation instead of Eviction */
    int64_t ready_timeout_ns;
    int64_t recovery_timeout_ns; /* -1: none */
    int64_t backoff_limit;     /* requeuings before it is deactivated; -1: no limit */
    int64_t backoff_base_ns, backoff_max_ns;
    bool fair;                 /* fairSharing.enable */
    enum fair_strategy strategies[2];
    size_t strategy_count;
};

/* When a machine that fails repeatedly is called a lemon (core/lemon/lemon.h; cluster file,
 * spec.settings.lemons). The first six are counts, the last is in per cent. */
enum lemon_signal {
    LEMON_SIGNAL_EXCLUSIONS,
    LEMON_SIGNAL_XIDS,
    LEMON_SIGNAL_TICKETS,
    LEMON_SIGNAL_OUTS,
    LEMON_SIGNAL_MULTI_NODE_FAILURES,
    LEMON_SIGNAL_SINGLE_NODE_FAILURES,
    LEMON_SIGNAL_FAILURE_RATE,
    LEMON_SIGNALS
};
enum { LEMON_WINDOW_DAYS_MAX = 28 };
struct lemon_settings {
    int64_t window_days;
    int64_t thresholds[LEMON_SIGNALS]; /* 0: the signal is not used */
    bool remove;                       /* lemons are drained: a fault is opened on them */
};

/* A job's policy for a machine that is slow or otherwise unhealthy (LEVEL_SUB_HEALTH): the annotation
 * phalanx.dev/sub-health, else the cluster's setting. */
enum sub_health {
    SUB_HEALTH_IGNORE,
    SUB_HEALTH_GRACE_EXIT, /* its ranks are told, save and restart elsewhere; at the latest after their
                            * grace */
    SUB_HEALTH_FORCE_EXIT, /* they restart elsewhere at once */
    SUB_HEALTH_HOT_SWITCH, /* as graceExit, but only to an available machine, and never without a save */
    SUB_HEALTHS
};
extern const char *const sub_health_names[SUB_HEALTHS]; /* as users write them: "graceExit" */
bool sub_health_read(struct str text, enum sub_health *ret);

/* When a job that makes no steps is suspected to hang (core/hang/hang.h; spec.settings.hangs). */
struct hang_settings {
    bool off;              /* only jobs with the annotation are watched */
    int64_t factor;        /* multiple of the longest time between two steps, but ... */
    int64_t minimum_ns;    /* ... at least this */
    int64_t first_step_ns; /* for start, restore and the first steps */
    int64_t checkpoint_ns; /* while a checkpoint is being saved */
    int64_t answer_ns;     /* wait for a rank's record */
    int64_t join_ns;       /* a rank that runs and has not joined though its peers have (job/unjoined.c) */
};

/* Bytes of documents that are kept at most (cluster file, spec.settings.storedBytes). */
struct stored_bytes_settings {
    int64_t namespace_max, cluster_max;
};

/* How machines are repaired (cluster file, spec.repair); defaults in load_repair.c. */
struct repair_hook {
    struct str action;         /* the name in fault rules, and of the agent's script */
    struct str on;             /* machine that runs it; empty: the machine under repair */
    int64_t timeout_ns;
    int64_t retries;           /* tries after the first one */
    int64_t backoff_ns;        /* before the first retry; doubles */
    bool reboots;              /* the machine goes down and comes back, which is the hook's success */
};
enum { REPAIR_HOOKS_MAX = 16 };
struct repair_settings {
    struct repair_hook *hooks; /* from the mildest to the hardest */
    size_t hook_count;
    bool qualify;              /* tests the machine before it comes back, by spec.qualification */
    int64_t absent_ns;         /* a machine whose agent is away for longer cannot be repaired by a hook */
    int64_t watch_ns;          /* time that a returned machine is RETURNED */
    int64_t recall_ns;         /* time that an earlier repair counts */
    int64_t reboots_max;       /* reboots for one fault code within that time; after them, a ticket */
    int64_t history_max;       /* number of ended Repairs that are kept */
};

struct cluster {
    struct arena arena;        /* owns everything below */
    struct str name;
    struct pod *pods;
    size_t pod_count;
    struct block *blocks;
    size_t block_count;
    struct machine *machines;
    size_t machine_count;
    struct optical_switch *switches; /* by pod, then number */
    size_t switch_count;
    uint64_t chip_count;       /* of all machines */
    uint32_t chips_max;        /* of one machine */
    struct machine_changes *changes; /* owned */
    struct str_map by_name;    /* machine name -> struct machine */
    struct str chip_resource;  /* resource name shown on Nodes: "google.com/tpu" by default */
    int64_t lease_ns, heartbeat_ns;
    int64_t backfill_window_ns; /* how long later gangs may overtake a waiting head */
    enum sub_health sub_health;
    int64_t pace_window_ns;    /* window of a comparison of ranks (pace.h) */
    bool failures_wait;        /* a JobSet acts on a Job's failure only when its pods have ended */
    struct str checkpoint_dir; /* empty: under the controller's data directory */
    struct labels priority_classes; /* name -> decimal value */
    struct queue_settings queues;
    struct lemon_settings lemons;
    struct qualification qualification;
    struct hang_settings hangs;
    struct stored_bytes_settings stored_bytes;
    struct repair_settings repair;
};

/* Reads a cluster document. On failure, errors name the field path and place, and *ret_cluster is
 * untouched. */
bool cluster_load(const struct doc *document, struct cluster *ret_cluster, struct field_errors *errors);
void cluster_done(struct cluster *cluster);
/* Describes the inventory for people: totals, pods, blocks, chips, spares, addresses; printed by `phalanx
 * cluster check`. */
void cluster_describe(const struct cluster *cluster, struct buf *out);

struct machine *cluster_find(const struct cluster *cluster, struct str name); /* NULL: unknown */
/* Finds the value of a label of the machine (user_labels win); false: it has none. */
bool machine_label(const struct machine *machine, struct str key, struct str *ret_value);
/* Whether it is READY, not cordoned, and not isolated. */
bool machine_schedulable(const struct machine *machine);
uint64_t machine_all_chips(const struct machine *machine); /* mask of the chips it has, free or not */
/* Takes / gives back chips and capacity for one task (task_count changes by one). CHECKs that the chips
 * were free / held. */
void machine_take(struct machine *machine, uint64_t chips, int64_t cpu_milli, int64_t memory_bytes);
void machine_give(struct machine *machine, uint64_t chips, int64_t cpu_milli, int64_t memory_bytes);
/* Notes in the journal that its state, room, labels, taints or faults have changed; the functions here that
 * change them call it themselves. */
void machine_changed(const struct machine *machine);
/* Number of the next change in the cluster's journal; 0: it has none. */
uint64_t cluster_next_change(const struct cluster *cluster);
/* A machine's metadata that users set through the API. */
struct machine_user {
    struct labels labels, annotations; /* labels: besides the file's */
    struct taint *taints;
    size_t taint_count;
    struct str managed_fields;
};
/* The present metadata; lives with the machine. */
struct machine_user machine_user(const struct machine *machine);
/* Replaces the metadata by copies. */
void machine_set_user(struct machine *machine, const struct machine_user *user);
bool machine_user_equal(const struct machine_user *a, const struct machine_user *b);
void machine_set_state(struct machine *machine, enum machine_state state, int64_t now_ns, uint64_t seq);

#endif
