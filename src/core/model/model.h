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
#include "core/words/ids.h"
#include "core/words/lifecycle.h"
#include "core/words/limits.h"
#include "core/model/policy.h"
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

/* The free chips of a machine: so many are reserved, and the others are the owner's (ledger/ledger.h). */
struct booked_chips {
    uint8_t owner, chips, reserved;
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
    obj_id blamed_job;         /* JobSet whose attempt it ended last (recover/suspect.c); 0: none */
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
    uint64_t
        reserved_mask; /* chips that admission keeps for JobSets, free or not (gang/reserve.c); derived */
    struct booked_chips booked; /* as the cluster's book has its free chips; derived */
    uint64_t incarnation;      /* of the last agent that registered; larger is newer */
    uint32_t found_plus_1;     /* 1 + the chips that this agent found; 0: none has registered */
    int64_t found_cpu_milli, found_memory_bytes; /* that this agent found; 0: it did not say */
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
    struct str chips; /* driver and address of a machine's chips, with {cube} and {machine}; empty: none */
    machine_id first;
    uint32_t count;
};

enum { SWITCH_NONE = UINT32_MAX };
/* An optical switch of a pod, as the cluster file has it; its state is slice/slice.h's. */
struct optical_switch {
    struct str name;     /* unique in the cluster: "<pod>-x5" */
    uint32_t pod;        /* index into cluster->pods */
    uint32_t number;     /* in its pod: fabric/wiring.h */
    struct str protocol; /* name of the driver: "scpi", "tl1", "sai", or a library's path */
    struct str address;  /* HOST:PORT, or what the driver takes */
    const struct switch_login *login; /* of all switches of its entry; NULL: none */
    int64_t timeout_ns;  /* of one request */
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
    /* The largest capacity of one machine, by the cluster file or, where that has none, by its agent; 0: none
     * is known. Derived. */
    int64_t cpu_milli_max, memory_bytes_max;
    struct machine_changes *changes; /* owned */
    struct str_map by_name;    /* machine name -> struct machine */
    struct str chip_resource;  /* resource name shown on Nodes: "google.com/tpu" by default */
    struct policy policy;
    struct str checkpoint_dir; /* empty: under the controller's data directory */
    struct labels priority_classes; /* name -> decimal value */
    struct qualification qualification;
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
/* Driver and address of the chips of a machine in a cube (phalanx/chips.h), in `arena`; empty: the cluster
 * file names none. */
struct str machine_chips_at(const struct cluster *cluster, const struct machine *machine,
                            struct arena *arena);
uint64_t machine_all_chips(const struct machine *machine); /* mask of the chips it has, free or not */
/* Takes / gives back chips and capacity for one task (task_count changes by one). CHECKs that the chips
 * were free / held. */
void machine_take(struct machine *machine, uint64_t chips, int64_t cpu_milli, int64_t memory_bytes);
void machine_give(struct machine *machine, uint64_t chips, int64_t cpu_milli, int64_t memory_bytes);
/* Sets what its agent found; 0: it did not say. */
void machine_found(struct cluster *cluster, struct machine *machine, int64_t cpu_milli, int64_t memory_bytes);
void cluster_find_max(struct cluster *cluster); /* derives the two capacities above from all machines */
/* Notes in the journal that its state, room, labels, taints or faults have changed; the functions here that
 * change them call it themselves. */
void machine_changed(const struct machine *machine);
/* Number of the next change in the cluster's journal; 0: it has none. */
uint64_t cluster_next_change(const struct cluster *cluster);
/* Numbers the changes of the new cluster after those of the one that it replaces, so that what was read from
 * one journal is never taken for a place in the other. Called before the first change. */
void cluster_number_changes_after(struct cluster *cluster, const struct cluster *before);
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
