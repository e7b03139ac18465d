/* torture.h - one torture run: the real core and real agents in a simulated world that breaks
 * (docs/torture.md).
 *
 *     struct torture_outcome outcome;
 *     torture_run(&(struct torture_options){.seed = 7, .steps = 4000}, &outcome);
 *
 * A run is a pure function of its options: the same options give the same run, event by event. It has two
 * phases: in the first faults of the kinds that the seed drew (swarm) happen while API clients write, for
 * `steps` events of the world; in the second faults stop, everything heals, and everything that can finish
 * must finish in bounded virtual time. The core's invariants are checked after every event of its log, the
 * world's after every event of the world.
 *
 * A broken invariant of the core or an agent aborts the process (check.h); campaign.h runs seeds in
 * processes of their own for that reason. No thread, no clock, no I/O besides options->trace. */
#ifndef PHX_SIM_TORTURE_H
#define PHX_SIM_TORTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Also exit codes of `phalanx torture`. */
enum torture_result {
    TORTURE_OK = 0,
    TORTURE_SAFETY = 3,   /* an invariant was broken */
    TORTURE_LIVENESS = 4, /* something that can go on does not */
    TORTURE_REPLAY = 5,   /* the log gives another state when it is replayed, or cannot be read back */
};

/* Known bugs that are planted in the hosts to see that they are caught. */
enum torture_plant {
    PLANT_NONE,
    PLANT_SKIP_FENCE,         /* no task is killed when the lease runs out */
    PLANT_APPLY_BEFORE_LOG,   /* effects leave before their event is durable */
    PLANT_FORGET_RELEASE,     /* a task that ends keeps its chips in the core's books */
    PLANT_START_BEFORE_DEAD,  /* an agent that dies alone is taken for a dead machine */
    PLANT_LOSE_REPORT,        /* reports are acknowledged but not logged */
    PLANT_QUOTA_TWICE,        /* quota of an admitted workload is given back while it runs */
    PLANT_SKIP_FINALIZER,     /* what was deleted loses its finalizers and stays */
    PLANT_IGNORE_RESERVATION, /* what is kept for a preemptor is given to others */
    PLANT_LOSE_READINESS,     /* that a task is ready is acknowledged but not logged */
    PLANT_OLD_SHARD,          /* a process that has joined again writes its shards as the attempt before */
    PLANT_FORGET_HOLD,        /* a restarted controller forgets what the one before granted */
    PLANT_HIDE_RESTORE,       /* a controller is not told that its log was restored from a backup */
    PLANT_APPEND_UNGUARDED,   /* of several controllers, an append compares neither leader nor head */
    PLANT_TRUST_SILENCE,      /* an append that etcd did not answer counts as done */
    PLANT_SKIP_CATCH_UP,      /* who takes the lead begins without the records that it has not seen */
    PLANT_LATE_CLEANING, /* cleaning at a take-over compares the leader alone: late, it removes records */
    PLANT_NEW_IDS,       /* a write that comes again has another id */
    PLANT_OVERSTAY,      /* a leader answers agents after its lease has ended, until an append fails */
    PLANT_REVOKE_LATER,  /* a take-over from a leader puts its key, and never ends the other's lease */
    PLANTS
};
const char *torture_plant_name(enum torture_plant plant); /* "skip-fence" ... */
bool torture_plant_find(const char *name, enum torture_plant *ret_plant);

enum {
    TORTURE_STEPS_DEFAULT = 10000,
    TORTURE_WHY_MAX = 400,
    TORTURE_DRAW_MAX = 1600,
    TORTURE_CONTROLLERS_MAX = 5,
};

/* Parts of the recovery ladder and of the driver that a run reaches; decisions come first, by rung. */
enum torture_reach {
    REACH_RETRY,
    REACH_RESTART_PROCESS,
    REACH_REPLACE_MACHINE,
    REACH_SHRINK,
    REACH_DUMP,
    REACH_REQUEUE,
    REACH_REJOINED,       /* a process went on under another attempt */
    REACH_SPARE_USED,     /* a spare became a rank */
    REACH_DUMPED,         /* a dying checkpoint was whole */
    REACH_SHRUNK,         /* replicas left */
    REACH_GROWN,          /* replicas came back */
    REACH_MOVED,          /* a machine was left at the boundary of a step */
    REACH_TURN_CUT,       /* an append left some of the queue for the next */
    REACH_APPEND_REFUSED, /* the disk took nothing */
    REACH_APPEND_FAILED,  /* an append failed after a while */
    REACH_WRITE_REFUSED,  /* a client was told to come again */
    REACH_NEWS_MISSED,    /* reports were thrown away for lack of room */
    REACH_AWAY_AGAIN,     /* an agent died alone on a machine that was away already */
    REACH_PAUSED,         /* the controller found that it had stood still for nearly a lease */
    REACH_ATTENDED,       /* a stand-in answered a heartbeat while the controller was at work */
    REACH_RANK_TABLE,     /* a gang's rank table was sent by itself */
    REACH_RESTORED,       /* a backup of the log was put back */
    REACH_STRANGER,       /* a task that the log had lost was stopped */
    REACH_CAUGHT_UP,      /* a workload went on behind an attempt that the log had lost */
    REACH_DRAINED,        /* the drain of a switch or cube was complete when it ended */
    REACH_REROUTED,       /* a running slice got other routing tables */
    REACH_SLICE_MOVED,    /* a slice left a drained cube */
    REACH_REPAIRED,       /* a running slice got tables that use a switch again */
    REACH_SLICE_LOST,     /* a running slice was short of switches: its ranks looked for other cubes */
    REACH_SWITCH_LOST,    /* such a slice may not be routed around one */
    REACH_DRAINED_AROUND, /* the drain of a switch was complete while a slice of its pod ran without it */
    REACH_SESSION,        /* the chips of a rank got tables under a session */
    REACH_WRONG_WIRE,     /* ranks saw other chips over a switch than its circuits join */
    REACH_DRAIN_ANSWERED, /* ranks had tables with a switch that is drained, and the last of them answered */
    REACH_DRAIN_OVERDUE,  /* ranks did not answer in time */
    REACHES
};
const char *torture_reach_name(enum torture_reach reach); /* "restart-process", "spare used" ... */

/* Parts of take-over and log that a run of several controllers reaches. */
enum torture_ha_reach {
    HA_TAKE_OVER,    /* a controller took the lead */
    HA_FROM_LIVING,  /* from one that lives */
    HA_TWO_LEAD,     /* two believed that they led */
    HA_DEPOSED,      /* a leader's write came to etcd after another one had taken over */
    HA_LOST,         /* a leader found out that it leads no more */
    HA_HANDED_OVER,  /* planned, to a controller that was alive */
    HA_RESIGNED,     /* planned, and none was known: to whoever took the lead */
    HA_KILLED,       /* a controller */
    HA_STOPPED,      /* a controller stood still */
    HA_CUT,          /* two places could not reach each other */
    HA_MEMBER,       /* a member of etcd was down */
    HA_LATE_LEASE,   /* a lease lasted longer than etcd had promised */
    HA_UNKNOWN,      /* a transaction was carried out and its answer lost */
    HA_JUDGED,       /* an append was sent again, and found that it was in the log */
    HA_NO_SPACE,     /* etcd's quota was used up */
    HA_PARTS,        /* a group needed several transactions */
    HA_SNAPSHOT,     /* a snapshot was saved */
    HA_LOADED,       /* a standby was slower than trimming, and went on from a snapshot */
    HA_LEVEL,        /* the log's level was raised */
    HA_ACKNOWLEDGED, /* writes */
    HA_REPEATED,     /* a write was sent again */
    HA_STALE,        /* a controller that had been replaced refused a write, and did not know it yet */
    HA_RECEIPT,      /* a write that came again was not applied again */
    HA_REACHES
};
const char *torture_ha_reach_name(enum torture_ha_reach reach);

struct torture_options {
    uint64_t seed, steps; /* steps 0: the default */
    uint32_t controllers; /* 0: one, with its log on a disk; 1 ... 5: they share a log (ha/ha.h) */
    enum torture_plant plant;
    FILE *trace; /* every event of the world, one a line; NULL: none */
};

struct torture_outcome {
    enum torture_result result;
    char why[TORTURE_WHY_MAX];    /* "" when ok */
    char drawn[TORTURE_DRAW_MAX]; /* the options that the seed drew, for people */
    uint64_t events, records;     /* of the world; of the core's log */
    uint64_t starts, faults, boots, jobsets, finished, restarts;
    uint64_t reached[REACHES]; /* how often each */
    uint64_t ha[HA_REACHES];
    int64_t virtual_ns;
    uint64_t digest; /* of the core at the end: equal for equal options */
};

/* Describes the options that a seed draws, for people. */
void torture_draw(uint64_t seed, char *ret_text, size_t size);

void torture_run(const struct torture_options *options, struct torture_outcome *ret_outcome);

#endif
