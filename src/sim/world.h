/* world.h - the simulated world: time, network, disk, machines, the controller's host, clients. Private to
 * src/sim.
 *
 *   world.c       the event queue, clocks, the two phases of a run
 *   swarm.c       the kinds and rates of faults in a run, drawn from the seed
 *   fault.c       faults, and how they heal
 *   net.c         connections
 *   disk.c        the controller's log and snapshots
 *   controller.c  the controller: ports of the driver that ships (drive/), crash and replay
 *   plant.c       planted bugs around the driver
 *   machine.c     a machine: the agent's host and its launcher
 *   process.c     the processes of tasks; routes.c their routing tables
 *   switches.c    optical switches
 *   client.c      API clients; client_objects.c for stored objects, client_queues.c for queues,
 *                 client_podsets.c for Workloads
 *   spec.c        random cluster files, JobSets, Jobs and Pods; spec_pod.c, spec_meta.c parts of them;
 *                 spec_ladder.c JobSets for the recovery ladder, spec_slice.c for slices
 *   reach.c       counts the parts of the recovery ladder that a run has reached
 *   hold.c        planned restarts of the controller
 *   oracle.c      the world's invariants, whatever the core and the agents believe
 *   oracle_objects.c  invariants of stored objects, queues, chips kept for preemptors, readiness
 *   liveness.c    what must be reached once everything has healed
 *
 * torture_run() handles one event at a time. The only source of chance is world->rng. Durations are in true
 * nanoseconds. Each machine and the controller have their own clocks, which drift. */
#ifndef PHX_SIM_WORLD_H
#define PHX_SIM_WORLD_H

#include "base/heap.h"
#include "base/map.h"
#include "base/rng.h"
#include "core/agent/agent.h"
#include "core/admit/admit.h"
#include "core/agent/codec.h"
#include "core/core.h"
#include "core/health/lease_hold.h"
#include "core/log/record.h"
#include "drive/agent.h"
#include "drive/drive.h"
#include "drive/stand_in.h"
#include "sim/clock.h"
#include "sim/torture.h"

enum { SIM_MACHINES_MAX = 32, SIM_SWITCH_PORTS = 64 };

/* --- events of the world ---------------------------------------------------------------------- */

enum sim_what {
    SIM_ARRIVE,      /* the next packet of conn `id`, to the agent if `number` is 1, else to the controller */
    SIM_CONNECTED,   /* machine: attempt `number` of agent life `id` to connect has an outcome */
    SIM_AGENT_START, /* machine */
    SIM_AGENT_TICK,  /* machine: tick `number` of agent life `id` */
    SIM_AGENT_RESUME,  /* machine: its paused agent runs again */
    SIM_MACHINE_START, /* machine: its power returns */
    SIM_PROCESS,       /* machine: a process of task `id` is due, if armed with `number` */
    SIM_PARTITION_END, /* machine */
    SIM_CONTROLLER_START,
    SIM_CONTROLLER_TURN,
    SIM_CONTROLLER_SYNCED,
    SIM_CONTROLLER_RESUME, /* life `id` */
    SIM_CONTROLLER_ATTEND, /* life `id`: the stand-in checks whether a round is due */
    SIM_DISK_ROOM,         /* the disk has space again */
    SIM_CLIENT,            /* a client's next request */
    SIM_REQUEST,           /* request `id` reaches the controller */
    SIM_FAULT,             /* the next fault */
    SIM_ACTED,             /* machine: probe or hook `id` of agent life `number` has a result */
    SIM_ERRAND_ENDED,      /* machine: errand `id` of agent life `number` has ended */
    SIM_SAY_AGAIN,         /* machine: its probes report standing conditions again */
    SIM_HOLD,              /* checks whether hold `number` is confirmed */
    SIM_SWITCH,            /* switch `machine`, request `id`: `number` says what happens (switches.c) */
    SIM_WHATS
};

struct sim_event {
    struct heap_node node; /* key: true time; tie: order of creation */
    enum sim_what what;
    uint32_t machine;
    uint64_t id, number;
};

/* --- swarm: what this run has ----------------------------------------------------------------- */

enum fault_kind {
    FAULT_CONTROLLER_CRASH,
    FAULT_CONTROLLER_PAUSE,
    FAULT_AGENT_CRASH,
    FAULT_AGENT_PAUSE,
    FAULT_MACHINE_CRASH,
    FAULT_MACHINE_POWER,
    FAULT_PARTITION,
    FAULT_CONN_TIMEOUT,
    FAULT_TASK_KILL,
    FAULT_DISK_FULL,
    FAULT_CLOCK_JUMP,
    FAULT_DELAY_SPIKE,
    FAULT_SIGNAL,  /* a probe reports a signal; drawn after older options, so that old seeds keep theirs */
    FAULT_HOLD,    /* the controller is restarted under a lease hold; from a separate draw */
    FAULT_RESTORE, /* an operator restores a backup of the log; from a separate draw */
    FAULT_KINDS
};
/* Features of the objects that clients write besides plain JobSets. */
enum sim_feature {
    FEATURE_QUEUES,     /* JobSets and Jobs with a queue, and Kueue's objects */
    FEATURE_OBJECTS,    /* ConfigMaps, Secrets, PriorityClasses; finalizers and owners */
    FEATURE_NAMESPACES, /* namespaces besides "default", created and deleted */
    FEATURE_FORMS,      /* Jobs and Pods without a JobSet */
    FEATURE_CONTAINERS, /* init containers, sidecars, probes, restarts in place */
    FEATURE_TOPOLOGY,   /* topology annotations, spec.scheduling */
    FEATURES
};
struct swarm {
    uint32_t machines, chips, spares, racks;
    /* cubes of one pod with optical switches, instead of racks; 0: none; from a separate draw */
    uint32_t cubes;
    uint32_t slice_ppm; /* share of JobSets that ask for a slice; from a separate draw */
    uint32_t whole_ppm; /* share of slices that are whole cubes, and may have to move; 0: not fixed */
    int64_t lease_ns, heartbeat_ns, backfill_ns;
    uint32_t weights[FAULT_KINDS]; /* 0: not in this run */
    int64_t fault_every_ns;        /* mean; 0: no faults */
    int64_t client_every_ns;       /* mean */
    int64_t delay_min_ns, delay_max_ns, spike_max_ns;
    uint32_t spike_ppm;   /* share of packets that take up to spike_max_ns longer */
    uint32_t corrupt_ppm; /* share of packets with a flipped bit */
    uint32_t drift_ppm;   /* largest drift of a clock, either way */
    int64_t sync_min_ns, sync_max_ns;
    uint32_t snapshot_every;
    /* limits of the driver; 0: its defaults */
    uint32_t turn_records_max, turn_bytes_max, queue_bytes_max, rank_table_inside_max;
    bool log_waits;         /* the controller does not read while it appends */
    uint32_t sync_fail_ppm; /* share of appends that fail late */
    uint32_t start_fail_ppm, task_fail_ppm, ignore_term_ppm;
    uint32_t reboot_forgets_ppm; /* chance that a power loss destroys the launcher's records */
    int64_t run_max_ns;
    uint32_t jobsets_max;
    uint32_t features[FEATURES]; /* chance of each, in ppm, wherever it is possible; 0: not in this run */
    uint32_t probe_fail_ppm;
    uint32_t rejoin_ppm;      /* share of JobSets whose processes can rejoin */
    uint32_t spare_tasks_ppm; /* share of JobSets and Jobs that ask for spares */
    uint32_t rejoin_slow_ppm; /* share of Rejoin orders that take up to 40 s */
    uint32_t ladder_ppm;      /* share of JobSets that can climb the whole ladder; from a separate draw */
    int64_t min_run_s, max_life_s; /* spec.queues; max 0: none */
    bool fair, wait_ready, block_admission;
    uint32_t lemon_outs; /* times out of service that make a lemon, which is drained; 0: none is */
};
/* Draws the options of a run from `rng`; options with a separate draw come from `seed`. */
void swarm_draw(struct swarm *swarm, struct rng *rng, uint64_t seed);
void swarm_describe(const struct swarm *swarm, char *ret_text, size_t size);
const char *fault_name(enum fault_kind kind);
const char *feature_name(enum sim_feature feature);

/* --- network ---------------------------------------------------------------------------------- */

enum packet_kind { PACKET_DATA, PACKET_FIN, PACKET_TIMEOUT };
struct packet {
    struct buf bytes; /* a frame */
    enum packet_kind kind;
    int64_t due_ns;
    bool seen; /* the stand-in has read it */
};
struct lane { /* one direction of a connection, which keeps its order */
    VEC(struct packet) packets;
    bool armed;  /* an ARRIVE event for the first packet exists */
    bool broken; /* takes no more packets: the last one is a FIN or a timeout */
};
struct conn {
    uint64_t id;
    uint32_t machine;
    bool tether;
    bool agent_open; /* the agent's descriptor */
    uint32_t shims;  /* living shims that hold it */
    bool controller_open;
    uint64_t agent_life, controller_life;
    struct lane to_controller, to_agent;
};

/* --- machines --------------------------------------------------------------------------------- */

enum { SIM_PODS_MAX = 4 }; /* pods whose drains are counted */

/* The routing tables of a process's chips (routes.c). */
struct sim_routes {
    bool drawn, uses;                          /* `uses`: its chips use tables; valid once `drawn` */
    struct rank_routes said;                   /* tables that the chips have, as last reported */
    struct rank_routes older;                  /* the report before that */
    uint64_t told, told_without, told_session; /* newest tables that its agent told it of */
    int64_t act_ns;                            /* true time of its next action; INT64_MAX: none */
};

enum process_state { PROCESS_SPAWNING, PROCESS_RUNNING, PROCESS_DEAD };
/* A task's shim and process. After the process's death the record stays until the agent forgets the task. */
struct process {
    obj_id task, jobset;
    uint32_t container, run; /* both 0 for a task without containers */
    uint64_t number;         /* unique among all processes of the run */
    int32_t attempt;
    uint32_t rank, lost_rank; /* lost_rank: a peer whose connection broke */
    enum process_state state;
    bool told_started, told_exited; /* the present agent knows */
    bool joined, rejoins, stopping;
    bool can_rejoin, spare; /* a spare has no rank yet */
    int32_t told_attempt;   /* attempt of the last Rejoin order */
    uint32_t told_dump;     /* ranks of the dying checkpoint that the last Rejoin order is for; 0: none */
    bool asked;             /* has asked for a retry: makes no steps until the next Rejoin order */
    /* dying checkpoint: makes no steps, and saves once this many ranks have met; 0: no */
    uint32_t dump_world;
    int32_t writes_as; /* attempt under which it writes shards */
    uint32_t told_rank, told_world;
    uint64_t told_name; /* spare: hash of the host name that it takes over; 0: unknown */
    int64_t told_step;  /* spare: step to begin with */
    int64_t rejoin_ns;  /* true time at which it rejoins as told; INT64_MAX: none due */
    uint64_t armed;     /* number of the SIM_PROCESS event that is valid */
    int64_t wakes_ns;   /* true time of that event */
    uint64_t chips;
    uint64_t name_hash; /* hash of its host name */
    uint64_t tether;    /* id of a conn; 0: none */
    uint64_t client;    /* its connection to the agent; 0: none */
    struct arena arena;
    struct task_launch launch;
    int64_t started_wall_ns, finished_wall_ns;
    int64_t due_ns;  /* true time of its next act */
    int64_t ends_ns; /* true time at which it ends by itself */
    int64_t kill_ns; /* true time at which it is killed; INT64_MAX: never */
    int64_t run_ns;  /* time from its start, or from a spare's promotion, to ends_ns */
    int64_t step_ns; /* time between steps; 0: it makes none */
    int64_t step, total, saved_step;
    struct pace_sums pace;
    uint32_t checkpoint_every;
    int64_t stand_step; /* step that its ranks agreed to save after a notice; -1: none */
    int64_t stand_ns;   /* true time until which it waits at that step */
    bool ignores_term, fenced, start_fails;
    int32_t exit_code, signal;
    struct sim_routes routes;
};

/* A running probe or hook. */
struct sim_act {
    uint64_t id;
    obj_id task;
    uint32_t container, run;
    enum container_act act;
};
struct sim_errand {
    obj_id uid;
    enum errand_kind kind;
};

struct sim_machine {
    struct world *world;
    uint32_t index;
    char name[16];
    bool powered;
    struct sim_clock boot, wall;
    int64_t slow_ns;        /* added to each of the machine's delays */
    uint64_t fence_boot_ns; /* the fence in the shims' shared memory; 0: none */
    VEC(struct process *) processes;
    VEC(struct sim_act) acts; /* of the agent's process */
    VEC(struct sim_errand) errands; /* running errands of the agent's process */
    uint64_t cluster;               /* id of the cluster that its agents stored on disk; 0: none */
    uint64_t standing;              /* bits, by fault.c: conditions that probes saw begin but not end */
    /* the agent's process */
    struct agent *agent; /* NULL: not running */
    struct machine_driver driver; /* runs `agent` */
    uint64_t agent_life, incarnation, tick_number, connect_number;
    bool paused, start_due;
    uint64_t conn, tether; /* 0: none */
    /* newest tether that the controller has welcomed: stays open until the next one is welcomed */
    uint64_t kept_tether;
    uint64_t next_tether; /* tether of the newest connection, until the controller welcomes it */
    /* its link to the controller */
    bool cut_up, cut_down; /* partitioned: towards the controller, from it */
    uint64_t cut_number;
    bool held; /* its agent had confirmed the hold before the planned restart (hold.c) */
};

/* --- the controller's disk -------------------------------------------------------------------- */

struct disk_record {
    uint64_t seq;
    int64_t stamp_ns;
    struct buf bytes;
    uint64_t hash;
};
struct disk_snapshot {
    uint64_t seq, digest;
    struct buf bytes;
    bool durable;
};
struct sim_disk {
    VEC(struct disk_record) log;
    size_t durable;      /* records that a crash cannot destroy */
    struct core *reader; /* state after a replay from the first record, see disk_read_whole(); or NULL */
    bool restored;       /* the log is from a backup, and no boot record says so yet */
    size_t whole;        /* length of the log at the last start that replayed all of it */
    VEC(struct disk_snapshot) snapshots;
    bool full, busy; /* refuses records; `busy`: because another program holds the disk */
};

/* --- the controller --------------------------------------------------------------------------- */

/* Reserved chips that plant.c hides from the core during a step. */
struct hidden_room {
    obj_id jobset;
    struct room *rooms;
    size_t count;
};
typedef VEC(struct hidden_room) hidden_rooms;
struct planted {
    machine_id machine;
    uint64_t chips; /* chips that plant.c keeps taken; 0: none */
    hidden_rooms hidden;
    bool opened;     /* the driver has opened, and leases have begun */
    int64_t owed_ns; /* the lease hold's `owed_ns`, while plant.c hides it */
};
struct sim_controller {
    struct core *core;     /* NULL while the controller is down */
    struct driver *driver; /* NULL while it is down */
    /* state of the last crashed process, until the next process has read its state; or NULL */
    struct core *left;
    uint64_t life;
    struct sim_clock wall, mono;
    bool paused, start_due;
    struct stand_in_clock stand_in; /* runs during a pause in which only the loop is busy */
    uint64_t turn_number;
    int64_t turn_ns; /* true time of the armed turn; INT64_MAX: none */
    struct planted planted;
};

/* --- clients ---------------------------------------------------------------------------------- */

struct request {
    uint64_t id;
    bool waits; /* the controller is up, but does not read */
    struct arena arena;
    struct write_event write;
};
/* A JobSet as its client knows it. */
struct known_jobset {
    char namespace_[16], name[32];
    obj_id uid;   /* from the reply; 0: no reply yet */
    bool deletes; /* a delete was sent, or a TTL or owner may delete it */
};

/* Free chips reserved for a JobSet that waits for its victims to end. */
struct kept_room {
    obj_id jobset;
    machine_id machine;
    uint64_t chips;
    /* Counters of the Workload, which distinguish a reservation from its successor in the same step. */
    int32_t preempted, evictions;
};

/* A planned restart of the controller (hold.c), in true time. */
struct planned_restart {
    uint64_t number; /* number of the newest Maintenance that orders a restart */
    bool waits;      /* waits for the machines' confirmations */
    int64_t asked_ns, length_ns;
    int64_t until_ns; /* no task of a `held` machine may end by its fence before this time; 0: any may */
};

/* --- optical switches (switches.c) ------------------------------------------------------------ */

enum { SIM_BAD_PORTS_MAX = 32 }; /* in one health report */
struct sim_switch {
    uint16_t to[SIM_SWITCH_PORTS + 1]; /* by plus port: the minus port joined with it; 0: none */
    bool down;
    bool dark[2 * SIM_SWITCH_PORTS + 2]; /* ports without light */
    uint64_t broke_at; /* the core's newest request when the switch last broke or returned; 0: never */
    uint64_t newest;   /* the last operation carried out */
    uint64_t watched;  /* life of the controller that last sent a request, and receives its health since */
};
struct sim_request {
    uint64_t id, operation;
    uint32_t which;
    enum switch_outcome outcome;
    VEC(struct circuit) breaks, makes;
};
/* Routing tables that some life of the log gave to a slice. */
struct given_tables {
    uint64_t number;
    obj_id jobset;
    uint64_t without;
};

/* --- the world -------------------------------------------------------------------------------- */

struct world {
    struct torture_options options;
    struct torture_outcome *outcome;
    struct rng rng;
    struct swarm swarm;
    int64_t now_ns;
    int64_t jumped_ns; /* true time of the last jump of a wall clock */
    struct heap events;
    uint64_t next_tie, next_id;
    bool healing; /* the second phase */
    struct planned_restart hold;
    struct sim_machine machines[SIM_MACHINES_MAX];
    struct sim_switch switches[48];
    VEC(struct sim_request) switch_requests;
    struct machine_shared *shared;
    VEC(struct conn *) conns;
    struct u64_map conns_by_id;
    struct sim_disk disk;
    struct sim_controller controller;
    struct buf cluster_json;
    VEC(struct request *) requests;
    VEC(struct known_jobset) known;
    uint32_t created;
    uint32_t checkpoint_every; /* steps between checkpoints in the JobSet being written */
    bool uneven;               /* each of its jobs has its own `checkpoint_every` */
    /* oracle */
    VEC(uint64_t) applied;    /* hash of every applied record, by seq - 1 */
    VEC(uint64_t) digests;    /* core digest after each record; 0: not computed */
    struct u64_map shards;    /* keys: hash of (jobset, attempt, name or task, step) of every shard saved */
    struct u64_map committed; /* jobset -> struct committed */
    VEC(struct given_tables) given_tables;
    VEC(struct committed *) commits;
    size_t strangers;           /* strangers that the core knew after the last event */
    VEC(obj_id) held;           /* before the current event: objects with a user's finalizer */
    VEC(struct kept_room) kept; /* before the current event: chips reserved for preemptors */
    struct {
        uint64_t waited, overdue; /* bits: leaving switches with users; overdue ones */
    } drains[SIM_PODS_MAX];       /* state after the last event (routes.c) */
    /* dead, but functions on the stack may refer to them; freed after the event */
    VEC(struct process *) buried;
};

/* A JobSet as reach.c saw it after the last event. */
struct reach_seen {
    struct ladder_use use; /* the newest use */
    size_t uses, away;
    bool leaving; /* a machine is being left, by spares */
    uint32_t restarts;
    uint32_t tables; /* tables given to its slice */
    uint64_t tables_out, wrong;
    bool slice_moves, slice_lost;
};
struct committed {
    struct reach_seen reach;
    int64_t step;
    int32_t attempt, current; /* the attempt that committed; the current attempt after the last event */
    bool finished;
};

/* world.c */
struct sim_event *world_at(struct world *world, int64_t true_ns, enum sim_what what, uint32_t machine,
                           uint64_t id, uint64_t number);
struct sim_event *world_after(struct world *world, int64_t delay_ns, enum sim_what what, uint32_t machine,
                              uint64_t id, uint64_t number);
/* uniform; `low` if `high` is not larger */
int64_t world_draw(struct world *world, int64_t low, int64_t high);
int64_t world_draw_about(struct world *world, int64_t mean_ns); /* memoryless, at most 8 x the mean */
bool world_chance(struct world *world, uint32_t ppm);
/* Records a failure of the run, unless an earlier one is recorded. */
void world_fail(struct world *world, enum torture_result result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool world_failed(const struct world *world);
void world_trace(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* net.c */
struct conn *net_find(const struct world *world, uint64_t id); /* NULL: it no longer exists */
/* Makes a connection between the machine's agent and the controller, with both sides open. */
struct conn *net_open(struct world *world, struct sim_machine *machine, bool tether);
void net_send_agent(struct world *world, struct conn *conn, const struct from_agent *message);
void net_send_controller(struct world *world, struct conn *conn, const struct from_controller *message);
void net_close_agent(struct world *world, struct conn *conn); /* the agent's descriptor */
void net_release_shim(struct world *world, uint64_t id);      /* a shim that held it has died */
void net_close_controller(struct world *world, struct conn *conn);
void net_vanish(struct world *world,
                struct sim_machine *machine);             /* the machine lost its power: no FIN is sent */
void net_timeout(struct world *world, struct conn *conn); /* retransmissions ran out on both ends */
void net_arrive(struct world *world, const struct sim_event *event);
void net_unblock(struct world *world); /* a peer is reachable or reads again */
bool net_reachable(const struct world *world, const struct sim_machine *machine);
void net_attend(struct world *world); /* a stand-in answers heartbeats that wait for the controller */
/* Hands the controller what its stand-in has read, regardless of the network's present state. */
void net_hand_over(struct world *world);
void net_done(struct world *world);

/* disk.c */
void disk_append(struct sim_disk *disk, const struct drive_record *record);
void disk_synced(struct sim_disk *disk);
void disk_fails(struct sim_disk *disk); /* drops all records that are not durable */
void disk_crash(struct world *world);
/* Restores a backup that lacks the newest records. Returns false if the log is too short. */
bool disk_restore(struct world *world);
/* Replays the log into a core that is new or holds a prefix of the log. With `from_snapshot` the core must be
 * new, and starts from the newest snapshot if there is one. Returns false, and fails the world, if the log or
 * a snapshot cannot be read. */
bool disk_replay(struct world *world, bool from_snapshot, struct core *core);
/* Returns the state after a replay of the whole log from its first record, or NULL if the world has failed.
 * Repeated calls read each record once, because a prefix of the log always gives the same state. The core
 * belongs to the disk. Must not be called during an append. */
const struct core *disk_read_whole(struct world *world);
/* Fails the world with the first record after which a replay from the newest snapshot differs from a whole
 * replay, if there is one. */
void disk_tell_apart(struct world *world);
void disk_snapshot(struct world *world, uint64_t seq, struct buf *bytes); /* takes `bytes` */
uint64_t disk_hash(const struct drive_record *record);
void disk_done(struct sim_disk *disk);

/* controller.c */
void controller_start(struct world *world);
void controller_crash(struct world *world);
void controller_restore(struct world *world); /* crashes the controller, and restores a backup of its log */
void controller_leave(struct world *world, int64_t away_ns); /* crashes it, and starts it after `away_ns` */
void controller_turn_soon(struct world *world);              /* for queued input */
/* Pauses the controller. With `at_work` its loop is busy, and a stand-in answers heartbeats; otherwise its
 * process is stopped. */
void controller_pause(struct world *world, int64_t pause_ns, bool at_work);
void controller_attend(struct world *world, const struct sim_event *event);
void controller_go_on(struct world *world);
void controller_resume(struct world *world, const struct sim_event *event);
void controller_turn(struct world *world, const struct sim_event *event);
void controller_synced(struct world *world, const struct sim_event *event);
void controller_switch_spoke(struct world *world); /* the driver has new input */
void controller_request(struct world *world, struct request *request);
bool controller_is_open(const struct world *world); /* it is up and accepts agents and clients */
bool controller_reads(const struct world *world);   /* open, and neither paused nor waiting for its disk */
void controller_message(struct world *world, struct conn *conn, struct from_agent *message);
void controller_conn_closed(struct world *world, struct conn *conn, bool proves);
void controller_done(struct world *world);

/* plant.c */
void plant_before_step(struct world *world, const struct event *event);
void plant_after_step(struct world *world);
void plant_hide_hold(struct world *world); /* at each reading of the clock */
void plant_show_hold(struct world *world); /* when the driver has opened */
/* Returns true if the message must not reach the driver. Otherwise may have changed it. */
bool plant_message(struct world *world, struct conn *conn, struct from_agent *message);
void plant_closed(struct world *world, uint32_t machine); /* its agent's connection has closed */

/* machine.c */
void machine_init(struct world *world, uint32_t index);
void machine_power_on(struct world *world, struct sim_machine *machine);
void machine_agent_start(struct world *world, struct sim_machine *machine);
void machine_agent_crash(struct world *world, struct sim_machine *machine);
/* kills agent and tasks with SIGKILL */
void machine_kill_all(struct world *world, struct sim_machine *machine);
void machine_power_off(struct world *world, struct sim_machine *machine);
void machine_resume(struct world *world, struct sim_machine *machine);
void machine_connected(struct world *world, const struct sim_event *event);
void machine_tick(struct world *world, const struct sim_event *event);
void machine_acted(struct world *world, const struct sim_event *event);
void machine_errand_ended(struct world *world, const struct sim_event *event);
void machine_hears(struct world *world, struct conn *conn, const struct from_controller *message);
void machine_conn_closed(struct world *world, struct conn *conn);
void machine_event(struct world *world, struct sim_machine *machine, struct agent_event *event);
bool machine_reads(const struct sim_machine *machine); /* its agent runs, and is not paused */
int64_t machine_boot_ns(const struct world *world, const struct sim_machine *machine);
int64_t machine_wall_ns(const struct world *world, const struct sim_machine *machine);
void machine_done(struct sim_machine *machine);

/* process.c */
void process_spawn(struct world *world, struct sim_machine *machine, const struct task_launch *launch,
                   uint32_t container, uint32_t run);
void process_stop(struct world *world, struct sim_machine *machine, obj_id task, uint32_t container,
                  int64_t grace_ns);
void process_act(struct world *world, const struct sim_event *event);
void process_tell(struct world *world, struct sim_machine *machine,
                  struct process *process); /* reports its state to the present agent */
void process_kill(struct world *world, struct sim_machine *machine,
                  struct process *process); /* SIGKILL; dies now */
void process_welcome(struct world *world, struct sim_machine *machine, uint64_t client, int64_t restore_step);
/* gives notice: its ranks agree on a step to save */
void process_drain(struct world *world, struct sim_machine *machine, uint64_t client);
void process_rejoin(struct world *world, struct sim_machine *machine, uint64_t client,
                    const struct task_rejoin *order);
void process_arm(struct world *world, struct sim_machine *machine, struct process *process);
/* each shim reads the new fence */
void process_fence_moved(struct world *world, struct sim_machine *machine);
void process_fenced_client(struct world *world, struct sim_machine *machine, uint64_t client);
void process_forget(struct world *world, struct sim_machine *machine, obj_id task);
void process_bury_all(struct world *world);
struct process *process_find(const struct sim_machine *machine, obj_id task, uint32_t container);
bool process_lives(const struct process *process);
void process_free(struct process *process);
/* routes.c: a client is told of tables; a process reports its chips' tables again after a JOIN, takes its
 * next action, or has rejoined under another attempt. */
void routes_told(struct world *world, struct sim_machine *machine, const struct agent_effect *effect);
void routes_say(struct world *world, struct sim_machine *machine, struct process *process);
void routes_act(struct world *world, struct sim_machine *machine, struct process *process);
void routes_rejoined(struct world *world, struct sim_machine *machine, struct process *process);
void routes_judge(struct world *world);   /* oracle: no chips use tables that contain a Drained switch */
void process_hasten(struct world *world); /* second phase: long-running processes end soon */

/* reach.c: counts the parts of the ladder that the last event has reached. */
void reach_look(struct world *world, const struct jobset *jobset, struct reach_seen *seen);
/* adds the statistics of a driver that ends */
void reach_add(struct world *world, const struct driver_stats *stats);

/* client.c */
void client_act(struct world *world);
void client_reply(struct world *world, const struct effect *effect);
void client_request(struct world *world, const struct sim_event *event);
void client_unblock(struct world *world); /* the controller reads again */
void client_done(struct world *world);
/* Requests the drain of a switch or cube of the pod, or ends it. */
void client_drain(struct world *world, bool cube, struct str name, bool on);
/* Sends a request, which reaches the controller after a delay. Copies the strings. */
struct request *client_send(struct world *world, enum write_verb verb, enum object_kind object,
                            struct str namespace_, struct str name, struct str body);
bool client_has(struct world *world, enum sim_feature feature); /* a new draw: use the feature here? */
const char *client_any_namespace(struct world *world);          /* "default", or one that may not exist */
/* Notes that JobSets in the namespace may disappear without a delete request for them. */
void client_may_vanish(struct world *world, struct str namespace_);

/* client_objects.c: ConfigMaps, Secrets, Namespaces, finalizers; client_queues.c: Kueue's objects and
 * Workloads. `act` does one random thing; `tidy`, in the second phase, removes what keeps others waiting. */
void client_objects_act(struct world *world);
void client_objects_tidy(struct world *world);
void client_queues_act(struct world *world);
void client_queues_tidy(struct world *world);
/* client_podsets.c: Workloads that users make, and competitors for their chips. */
#define CLIENT_HOLD "example.com/hold"                        /* a finalizer that clients set and remove */
enum object_kind client_kind_of(const struct jobset *jobset); /* as its user created it */
void client_set_active(struct world *world, const struct workload *workload, bool active);
void client_podsets_act(struct world *world);
void client_podsets_tidy(struct world *world);
void client_fill(struct world *world);       /* creates a Job in a queue that needs many machines */
void client_squeeze_in(struct world *world); /* creates a Pod without a queue that needs one chip */
/* Creates a Workload in the victim's queue with the highest priority, which preempts if the queue allows
 * it. */
void client_rush(struct world *world, const struct workload *victim);

/* spec.c, spec_pod.c, spec_meta.c: random documents, appended to `out` */
struct json_writer;
void spec_cluster(struct world *world, struct buf *out);
void spec_jobset(struct world *world, const char *ns, const char *name, struct buf *out,
                 bool *ret_may_vanish);
void spec_job(struct world *world, const char *ns, const char *name, struct buf *out);
void spec_pod(struct world *world, const char *ns, const char *name, struct buf *out);
/* spec_slice.c: a JobSet that asks for a slice. *ret_deletes is set if it may be deleted. */
void spec_slice(struct world *world, const char *ns, const char *name, struct buf *out, bool *ret_deletes);
/* spec_ladder.c: a JobSet of ranks that can rejoin and may lose some of their number. */
void spec_ladder(struct world *world, const char *ns, const char *name, struct buf *out);
/* Writes metadata, with labels, annotations, finalizers and owners. Returns true if the object may disappear
 * with its owner. */
bool spec_metadata(struct world *world, struct json_writer *json, const char *ns, const char *name,
                   enum object_kind kind);
void spec_command(struct world *world, struct json_writer *json);
/* Writes the "spec" of a pod. With `restarts`, restartPolicy is Never or OnFailure; with `always` too,
 * any. */
void spec_pod_spec(struct world *world, struct json_writer *json, bool restarts, bool always);

/* fault.c */
void fault_next(struct world *world);
/* some standing conditions are reported again */
void fault_say_again(struct world *world, struct sim_machine *machine);
void fault_happen(struct world *world);
void fault_heal(struct world *world);
void fault_cut_off(struct world *world, struct sim_machine *machine, int64_t cut_ns);
void fault_partition_end(struct world *world, const struct sim_event *event);

/* hold.c: an operator restarts the controller under a lease hold */
void hold_plan(struct world *world);
void hold_look(struct world *world, const struct sim_event *event);
void hold_void(struct world *world); /* forgets the plan and its promise */
void hold_tidy(struct world *world); /* ends a hold, in the second phase */

/* oracle.c: each function fails the world if it finds a broken invariant */
void oracle_spawned(struct world *world, const struct sim_machine *machine, const struct process *process);
/* Checks that no other process has the rank of one that continues under another attempt. */
void oracle_rejoined(struct world *world, const struct process *process);
void oracle_fence(struct world *world, const struct sim_machine *machine); /* its fence was moved */
void oracle_told_start(struct world *world, const struct task *task);
/* Checks that no process lives under the name of the rank that a spare is told to take. */
void oracle_takes_rank(struct world *world, const struct sim_machine *machine, const struct process *spare);
void oracle_before(struct world *world, const struct event *event); /* before the step */
void oracle_applied(struct world *world, const struct event *event, const struct drive_record *record);
/* oracle_objects.c: before and after each event of the core's log */
void oracle_before_objects(struct world *world);
void oracle_objects(struct world *world, const struct event *event);
void oracle_saved(struct world *world, const struct process *process);
void oracle_restarted(struct world *world); /* after a start's replay */
/* The log has lost its newest records, and with them acknowledged writes: forget them. The second call comes
 * when a controller has read the restored log. */
void oracle_lost(struct world *world);
void oracle_restored(struct world *world);
void oracle_final(struct world *world); /* replays the whole log and compares */
void oracle_done(struct world *world);

/* liveness.c */
/* if false, *ret_why says what is missing */
bool liveness_reached(const struct world *world, char *ret_why, size_t size);
void liveness_trace(struct world *world); /* prints the state of everything to the trace */

/* switches.c */
void sim_switches_begin(struct world *world);
/* Drains a switch or cube, or ends a drain. At most two switches and one cube are drained at a time. */
void sim_switches_maintain(struct world *world);
void sim_switches_heal(struct world *world); /* all return, and fail no more */
void sim_switches_event(struct world *world, const struct sim_event *event);
void sim_switches_apply(void *context, const struct switch_apply *apply); /* a port of the driver */
void sim_switches_judge_start(struct world *world,
                              const struct task *task); /* oracle: its slice is connected */
void sim_switches_done(struct world *world);

#endif
