/* torture.h - one torture run: the real core and real agents in a simulated world that breaks
 * (docs/torture.md).
 *
 *     struct torture_outcome outcome;
 *     torture_run(&(struct torture_options){.seed = 7, .steps = 4000}, &outcome);
 *
 * A run is a pure function of its options: equal options give equal runs, event by event. It has two phases.
 * The first lasts for `steps` events of the world: API clients write while faults occur, of the kinds that
 * the seed drew (swarm). In the second, faults stop, everything heals, and everything that can finish must
 * finish in bounded virtual time. The core's invariants are checked after every event of its log, and the
 * world's after every event of the world.
 *
 * A broken invariant of the core or an agent aborts the process (check.h), so campaign.h runs seeds in
 * processes of their own. A run uses no threads, reads no clock, and does no I/O except to options->trace. */
#ifndef PHX_SIM_TORTURE_H
#define PHX_SIM_TORTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Also exit codes of `phalanx torture`. */
enum torture_result {
    TORTURE_OK = 0,
    TORTURE_SAFETY = 3,   /* an invariant was broken */
    TORTURE_LIVENESS = 4, /* something that can proceed does not */
    TORTURE_REPLAY = 5,   /* a replay of the log gives another state, or the log cannot be read back */
};

/* Known bugs that can be planted in the hosts, to verify that the run finds them. */
enum torture_plant {
    PLANT_NONE,
    PLANT_SKIP_FENCE,         /* no task is killed when the lease runs out */
    PLANT_APPLY_BEFORE_LOG,   /* effects leave before their event is durable */
    PLANT_FORGET_RELEASE,     /* a task that ends keeps its chips in the core's books */
    PLANT_START_BEFORE_DEAD,  /* a dead agent counts as a dead machine, although tasks live */
    PLANT_LOSE_REPORT,        /* reports are acknowledged but not logged */
    PLANT_QUOTA_TWICE,        /* quota of an admitted workload is given back while it runs */
    PLANT_SKIP_FINALIZER,     /* a deleted object loses its finalizers but stays */
    PLANT_IGNORE_RESERVATION, /* chips reserved for a preemptor are given to others */
    PLANT_LOSE_READINESS,     /* reports that a task is ready are acknowledged but not logged */
    PLANT_OLD_SHARD,          /* a rejoined process writes its shards under the previous attempt */
    PLANT_FORGET_HOLD,        /* a restarted controller forgets the lease hold of its predecessor */
    PLANT_HIDE_RESTORE,       /* a controller is not told that its log was restored from a backup */
    PLANT_APPEND_UNGUARDED,   /* several controllers: an append compares neither leader nor head */
    PLANT_TRUST_SILENCE,      /* an append that etcd did not answer counts as done */
    PLANT_SKIP_CATCH_UP,      /* a new leader starts without the records that it has not read yet */
    /* the clean-up at a take-over compares the leader only, so a late one removes records */
    PLANT_LATE_CLEANING,
    PLANT_NEW_IDS,      /* a repeated write gets a new id */
    PLANT_OVERSTAY,     /* a leader answers agents after its lease has ended, until an append fails */
    PLANT_REVOKE_LATER, /* a take-over from a living leader puts its key without ending that leader's lease */
    PLANTS
};
const char *torture_plant_name(enum torture_plant plant); /* such as "skip-fence"; "?" for an unknown plant */
bool torture_plant_find(const char *name, enum torture_plant *ret_plant);

enum {
    TORTURE_STEPS_DEFAULT = 10000,
    TORTURE_WHY_MAX = 400,
    TORTURE_DRAW_MAX = 1600,
    TORTURE_CONTROLLERS_MAX = 5,
};

/* Parts of the recovery ladder and the driver that a run can reach. The ladder's decisions come first, by
 * rung. */
enum torture_reach {
    REACH_RETRY,
    REACH_RESTART_PROCESS,
    REACH_REPLACE_MACHINE,
    REACH_SHRINK,
    REACH_DUMP,
    REACH_REQUEUE,
    REACH_REJOINED,       /* a process continued under another attempt */
    REACH_SPARE_USED,     /* a spare became a rank */
    REACH_DUMPED,         /* a dying checkpoint was whole */
    REACH_SHRUNK,         /* replicas left */
    REACH_GROWN,          /* replicas returned */
    REACH_MOVED,          /* a gang left a machine between two steps */
    REACH_TURN_CUT,       /* an append left some of the queue for the next */
    REACH_APPEND_REFUSED, /* the disk took nothing */
    REACH_APPEND_FAILED,  /* an append failed after a while */
    REACH_WRITE_REFUSED,  /* a client was told to retry */
    REACH_NEWS_MISSED,    /* reports were dropped because the queue was full */
    REACH_AWAY_AGAIN,     /* an agent died alone on a machine that was AWAY already */
    REACH_PAUSED,         /* the controller noticed that it had paused for nearly a lease */
    REACH_ATTENDED,       /* a stand-in answered a heartbeat while the controller was at work */
    REACH_RANK_TABLE,     /* a gang's rank table was sent in a message of its own */
    REACH_RESTORED,       /* a backup of the log was put back */
    REACH_STRANGER,       /* a task that the log had lost was stopped */
    REACH_CAUGHT_UP,      /* a workload continued after an attempt that the log had lost */
    REACH_DRAINED,        /* the drain of a switch or cube was complete when it ended */
    REACH_REROUTED,       /* a running slice got other routing tables */
    REACH_SLICE_MOVED,    /* a slice left a drained cube */
    REACH_REPAIRED,       /* a running slice got tables that use a switch again */
    REACH_SLICE_LOST,     /* a running slice was short of switches, and its ranks left for other cubes */
    REACH_SWITCH_LOST,    /* the same, for a slice that may not be rerouted */
    REACH_DRAINED_AROUND, /* the drain of a switch was complete while a slice of its pod ran without it */
    REACH_SESSION,        /* the chips of a rank got tables under a session */
    REACH_WRONG_WIRE,     /* ranks saw other chips over a switch than its circuits join */
    REACH_DRAIN_ANSWERED, /* ranks had tables that use a drained switch, and the last of them loaded others */
    REACH_DRAIN_OVERDUE,  /* ranks did not answer in time */
    REACHES
};
const char *torture_reach_name(enum torture_reach reach); /* such as "restart-process" or "spare used" */

/* Parts of take-over and log that a run with several controllers can reach. */
enum torture_ha_reach {
    HA_TAKE_OVER,    /* a controller took the lead */
    HA_FROM_LIVING,  /* the same, from a living leader */
    HA_TWO_LEAD,     /* two controllers believed that they led */
    HA_DEPOSED,      /* a leader's write reached etcd after another controller had taken over */
    HA_LOST,         /* a leader found out that it no longer leads */
    HA_HANDED_OVER,  /* a planned hand-over to a controller that was alive */
    HA_RESIGNED,     /* a planned resignation: no other controller was known */
    HA_KILLED,       /* a controller was killed */
    HA_STOPPED,      /* a controller paused */
    HA_CUT,          /* two places could not reach each other */
    HA_MEMBER,       /* a member of etcd was down */
    HA_LATE_LEASE,   /* a lease lasted longer than etcd had promised */
    HA_UNKNOWN,      /* a transaction was carried out and its answer lost */
    HA_JUDGED,       /* a repeated append found its records in the log */
    HA_NO_SPACE,     /* etcd's quota was used up */
    HA_PARTS,        /* a group needed several transactions */
    HA_SNAPSHOT,     /* a snapshot was saved */
    HA_LOADED,       /* a standby fell behind trimming, and continued from a snapshot */
    HA_LEVEL,        /* the log's level was raised */
    HA_ACKNOWLEDGED, /* writes were acknowledged */
    HA_REPEATED,     /* a write was repeated */
    HA_STALE,        /* a replaced controller that did not know it yet refused a write */
    HA_RECEIPT,      /* a repeated write was not applied twice */
    HA_REACHES
};
const char *torture_ha_reach_name(enum torture_ha_reach reach);

struct torture_options {
    uint64_t seed, steps; /* steps 0: the default */
    uint32_t controllers; /* 0: one with its log on a disk; 1 to 5: they share a log in etcd (ha/ha.h) */
    enum torture_plant plant;
    FILE *trace; /* every event of the world, one a line; NULL: none */
};

struct torture_outcome {
    enum torture_result result;
    char why[TORTURE_WHY_MAX];    /* "" if the result is TORTURE_OK */
    char drawn[TORTURE_DRAW_MAX]; /* the drawn options, for people */
    uint64_t events, records;     /* events of the world; records of the core's log */
    uint64_t starts, faults, boots, jobsets, finished, restarts;
    uint64_t reached[REACHES]; /* how often each part was reached */
    uint64_t ha[HA_REACHES];
    int64_t virtual_ns;
    uint64_t digest; /* of the core at the end; equal options give equal digests */
};

/* Describes the options that a seed draws, for people. Cuts the text to `size` bytes. */
void torture_draw(uint64_t seed, char *ret_text, size_t size);

/* Runs one seed. Sets every field of *ret_outcome, and aborts on a broken invariant. */
void torture_run(const struct torture_options *options, struct torture_outcome *ret_outcome);

#endif
