/* model.h - the inventory: the cluster's machines and chips, their places, and their state.
 *
 * A cluster file (docs/cluster-file.md) fixes the inventory; events change the state of its machines. A
 * machine is a host with up to 64 chips; a set of its chips is a 64-bit mask. Machines are ordered by place
 * (pod, cube or rack, index), so neighbours in the array are neighbours in the hall. Rank order follows the
 * array.
 *
 * Not thread-safe: one owner thread (core.h).
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
    MACHINE_UNSEEN, /* in the cluster file; its agent has never registered */
    MACHINE_READY,  /* its agent is connected and its inventory is known */
    MACHINE_AWAY,   /* its agent's connection broke; its lease runs, and its tasks may be alive */
    /* Lost by evidence, or silent beyond the lease: its tasks are dead or have fenced themselves. */
    MACHINE_LOST,
    MACHINE_STATES
};
extern const struct lifecycle machine_lifecycle;

/* Whether a machine may work, as its faults (health/fault.h), its repair and planned maintenance
 * (repair/repair.h) decide. Users' cordons are separate. */
enum isolation {
    ISOLATION_HEALTHY,
    ISOLATION_SUSPECT,     /* has a fault that does not keep it from work */
    ISOLATION_DRAINING,    /* takes no new work; running work continues */
    ISOLATION_QUARANTINED, /* takes no work */
    ISOLATION_RESETTING,   /* idle: a repair hook runs or will run next */
    ISOLATION_QUALIFYING,  /* idle: is tested before it returns to work */
    ISOLATION_TICKETED,    /* idle: waits for a person */
    ISOLATION_RETURNED,    /* works again after a recent repair */
    ISOLATIONS
};
extern const struct lifecycle isolation_lifecycle;
/* Returns whether a machine in this state gets no new work. */
bool isolation_is_out(enum isolation isolation);
/* Returns the stronger state, in this order, the strongest first: TICKETED, QUALIFYING, RESETTING,
 * QUARANTINED, DRAINING, SUSPECT, RETURNED, HEALTHY. */
enum isolation isolation_join(enum isolation a, enum isolation b);

struct taint {
    struct str key, value, effect; /* NoSchedule, PreferNoSchedule, NoExecute */
};

/* A journal of machines whose state changed in a way that can affect placement. Each reader keeps the number
 * of the next change to read. If the journal no longer has that change, the reader inspects every machine
 * (sched/capacity.h). */
struct machine_changes {
    VEC(machine_id) ids;
    uint64_t first; /* number of ids.items[0]; changes are numbered from 1 */
};

/* How the ledger accounts for a machine's free chips (ledger/ledger.h): `reserved` of them are reserved, and
 * the others belong to `owner`. */
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
    bool suspect;              /* several jobs failed on it: other machines are preferred; derived */
    /* Quarantined: when its tasks were given notice, and when they will be stopped; 0: never. */
    int64_t noticed_ns, leave_ns;
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
    struct booked_chips booked; /* derived */
    uint64_t incarnation;      /* of the last agent that registered; larger is newer */
    uint32_t found_plus_1;     /* 1 + the chips that this agent found; 0: no agent has registered */
    int64_t found_cpu_milli, found_memory_bytes; /* found by this agent; 0: not reported */
    bool errands;                                /* this agent understands errands (errand/errand.h) */
    bool injection; /* this agent injects faults on request (react/injections.c) */
    /* When the machine last passed its tests (qualification.h), alone and in a pair; 0: never, or no longer
     * valid. `qualifying` is the errand that tests it before a gang starts; 0: none. */
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
    uint32_t cube_count;   /* cubes come first: cube c is block first_block + c */
    uint32_t first_switch; /* of its POD_SWITCHES in cluster->switches; SWITCH_NONE: none are managed */
    struct str chips; /* driver and address of a machine's chips, with {cube} and {machine}; empty: none */
    machine_id first;
    uint32_t count;
};

enum { SWITCH_NONE = UINT32_MAX };
/* An optical switch of a pod, as the cluster file describes it. slice/slice.h has its state. */
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
    struct arena arena; /* owns what follows, as far as cluster_load makes it */
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
    /* The largest capacity of one machine. A machine's capacity is that of the cluster file or, without one,
     * that found by its agent. 0: no capacity is known. Derived. */
    int64_t cpu_milli_max, memory_bytes_max;
    struct machine_changes *changes; /* owned */
    struct str_map by_name;    /* machine name -> struct machine */
    struct str chip_resource;  /* resource name shown on Nodes: "google.com/tpu" by default */
    struct policy policy;
    struct str checkpoint_dir; /* empty: under the controller's data directory */
    struct labels priority_classes; /* name -> decimal value */
    struct qualification qualification;
};

/* Reads a cluster document and copies all that it keeps. Returns false if the document has errors; each is
 * added to `errors` with its field path and place, and *ret_cluster is unchanged. */
bool cluster_load(const struct doc *document, struct cluster *ret_cluster, struct field_errors *errors);
/* Frees the cluster with its machines, and clears it. */
void cluster_done(struct cluster *cluster);
/* Describes the inventory for people: totals, pods, blocks, chips, spares, addresses; printed by `phalanx
 * cluster check`. */
void cluster_describe(const struct cluster *cluster, struct buf *out);

struct machine *cluster_find(const struct cluster *cluster, struct str name); /* NULL: unknown */
/* Finds the value of a label of the machine; user_labels take precedence. Returns false if the machine does
 * not have the label. */
bool machine_label(const struct machine *machine, struct str key, struct str *ret_value);
/* Returns whether the machine is READY, not cordoned, and not isolated (isolation_is_out). */
bool machine_schedulable(const struct machine *machine);
/* Returns the driver and address of the machine's chips (phalanx/chips.h), in `arena`. Empty if the cluster
 * file names none, or the machine is not in a cube. */
struct str machine_chips_at(const struct cluster *cluster, const struct machine *machine,
                            struct arena *arena);
uint64_t machine_all_chips(const struct machine *machine); /* mask of the chips it has, free or not */
/* Takes chips (a mask) and capacity for one more task. CHECKs that the chips are free. */
void machine_take(struct machine *machine, uint64_t chips, int64_t cpu_milli, int64_t memory_bytes);
/* Returns what machine_take took for a task. CHECKs that the chips are held. */
void machine_give(struct machine *machine, uint64_t chips, int64_t cpu_milli, int64_t memory_bytes);
/* Sets the capacity that the machine's agent found (0: not reported), and updates the cluster's largest. */
void machine_found(struct cluster *cluster, struct machine *machine, int64_t cpu_milli, int64_t memory_bytes);
void cluster_find_max(struct cluster *cluster); /* derives cpu_milli_max and memory_bytes_max */
/* Records in the journal that the machine's state, free resources, labels, taints or faults have changed. The
 * functions of this header that change them call it. */
void machine_changed(const struct machine *machine);
/* Returns the number of the next change in the cluster's journal, or 0 if the cluster has no journal. */
uint64_t cluster_next_change(const struct cluster *cluster);
/* Numbers the changes of a new cluster after those of the cluster that it replaces: a position in the old
 * journal is never valid in the new one. Called before the first change. */
void cluster_number_changes_after(struct cluster *cluster, const struct cluster *before);
/* A machine's metadata that users set through the API. */
struct machine_user {
    struct labels labels, annotations; /* labels: besides the file's */
    struct taint *taints;
    size_t taint_count;
    struct str managed_fields;
};
/* Returns the present metadata; valid until machine_set_user or the machine's end. */
struct machine_user machine_user(const struct machine *machine);
/* Replaces the metadata by a copy of `user`, which may point into the present metadata. CHECKs that it has at
 * most LABELS_MAX labels and LABELS_MAX taints. */
void machine_set_user(struct machine *machine, const struct machine_user *user);
bool machine_user_equal(const struct machine_user *a, const struct machine_user *b);
/* Moves the machine to a state that machine_lifecycle allows. `seq` is the log position of the change. */
void machine_set_state(struct machine *machine, enum machine_state state, int64_t now_ns, uint64_t seq);

#endif
