/* world.h - the simulated world: time, network, disk, machines, the controller's host, clients. Private to
 * src/sim.
 *
 *   world.c       the queue of events, clocks, the run's two phases
 *   swarm.c       which faults a run has and how often: drawn from the seed
 *   fault.c       faults as they happen, and how they heal
 *   net.c         connections
 *   disk.c        the controller's log and snapshots
 *   controller.c  the controller: ports of the driver that ships (drive/), crash and replay
 *   plant.c       bugs that are planted around it
 *   machine.c     a machine: the agent's host and its launcher
 *   process.c     what the processes of tasks do
 *   client.c      API clients; client_objects.c of stored objects, client_queues.c of queues,
 *                 client_podsets.c of Workloads
 *   spec.c        cluster files, JobSets, Jobs and Pods at random; spec_pod.c, spec_meta.c parts of them;
 *                 spec_ladder.c JobSets for the recovery ladder, reach.c what was reached of it
 *   hold.c        planned restarts of the controller
 *   oracle.c      the world's invariants: what must never be, whatever anybody believes
 *   oracle_objects.c  those of stored objects, queues, rooms of preemptors, readiness
 *   liveness.c    what must have been reached when everything has healed
 *
 * Everything happens in world_run's loop, one event at a time; the only source of chance is world->rng.
 * Durations are in true nanoseconds; each machine and the controller have clocks of their own that drift. */
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
    SIM_ARRIVE,        /* the next packet of conn `id`; `number` 1: on its way to the agent */
    SIM_CONNECTED,     /* machine: its agent's try to connect (life `id`, try `number`) has an outcome */
    SIM_AGENT_START,   /* machine */
    SIM_AGENT_TICK,    /* machine, life `id`, number of the arming */
    SIM_AGENT_RESUME,  /* machine: its agent runs again */
    SIM_MACHINE_START, /* machine: power is back */
    SIM_PROCESS,       /* machine, task `id`, life `number` of the process: its next act is due */
    SIM_PARTITION_END, /* machine */
    SIM_CONTROLLER_START,
    SIM_CONTROLLER_TURN,
    SIM_CONTROLLER_SYNCED,
    SIM_CONTROLLER_RESUME, /* life `id` */
    SIM_CONTROLLER_ATTEND, /* likewise: a stand-in looks whether a round is due */
    SIM_DISK_ROOM,         /* the disk has space again */
    SIM_CLIENT,            /* a client's next request */
    SIM_REQUEST,           /* request `id` reaches the controller */
    SIM_FAULT,             /* the next fault */
    SIM_ACTED,             /* machine: act `id` of agent life `number` has a result */
    SIM_ERRAND_ENDED,      /* machine: errand `id` of agent life `number` has ended */
    SIM_SAY_AGAIN,         /* machine: its probes look again */
    SIM_HOLD,              /* is hold `number` confirmed by now? */
    SIM_SWITCH,            /* switch `machine`, request `id`: `number` says what happens (switches.c) */
    SIM_WHATS
};

struct sim_event {
    struct heap_node node; /* key: true time; tie: order of making */
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
    FAULT_SIGNAL,  /* a probe sees something; drawn apart, so that worlds without it stay what they were */
    FAULT_HOLD,    /* the controller is restarted under a hold of the leases; drawn apart */
    FAULT_RESTORE, /* an operator puts a backup of the log back; drawn apart */
    FAULT_KINDS
};
/* The objects that clients write besides plain JobSets. */
enum sim_feature {
    FEATURE_QUEUES,     /* JobSets and Jobs with a queue, and the objects of queues */
    FEATURE_OBJECTS,    /* ConfigMaps, Secrets, PriorityClasses; finalizers and owners */
    FEATURE_NAMESPACES, /* others than "default", which come and go */
    FEATURE_FORMS,      /* Jobs and Pods of their own */
    FEATURE_CONTAINERS, /* init containers, sidecars, probes, restarts in place */
    FEATURE_TOPOLOGY,   /* topology annotations, spec.scheduling */
    FEATURES
};
struct swarm {
    uint32_t machines, chips, spares, racks;
    uint32_t cubes;     /* of one pod with optical switches, in place of racks; 0: none; drawn apart */
    uint32_t slice_ppm; /* of JobSets that ask for a slice; drawn apart */
    uint32_t whole_ppm; /* of slices that are whole cubes, and may have to move; 0: as they come */
    int64_t lease_ns, heartbeat_ns, backfill_ns;
    uint32_t weights[FAULT_KINDS]; /* 0: this run has none */
    int64_t fault_every_ns;        /* mean; 0: no faults at all */
    int64_t client_every_ns;       /* mean */
    int64_t delay_min_ns, delay_max_ns, spike_max_ns;
    uint32_t spike_ppm;   /* of packets that take up to spike_max */
    uint32_t corrupt_ppm; /* of packets with a flipped bit */
    uint32_t drift_ppm;   /* clocks differ by up to so much */
    int64_t sync_min_ns, sync_max_ns;
    uint32_t snapshot_every;
    /* of the driver; 0: the defaults */
    uint32_t turn_records_max, turn_bytes_max, queue_bytes_max, rank_table_inside_max;
    bool log_waits;         /* the controller does not read while it appends */
    uint32_t sync_fail_ppm; /* of appends that fail after a while */
    uint32_t start_fail_ppm, task_fail_ppm, ignore_term_ppm;
    uint32_t reboot_forgets_ppm; /* machines whose launcher's records do not survive a power loss */
    int64_t run_max_ns;
    uint32_t jobsets_max;
    uint32_t features[FEATURES]; /* chance of each where it can be; 0: this run has none */
    uint32_t probe_fail_ppm;
    uint32_t rejoin_ppm;           /* of JobSets whose processes can rejoin */
    uint32_t spare_tasks_ppm;      /* of JobSets and Jobs that want spares */
    uint32_t rejoin_slow_ppm;      /* of Rejoins that are taken late, or not at all */
    uint32_t ladder_ppm;           /* of JobSets that are made for the ladder; drawn apart */
    int64_t min_run_s, max_life_s; /* spec.queues; max 0: none */
    bool fair, wait_ready, block_admission;
    uint32_t lemon_outs; /* times out of service that make a lemon, which is drained; 0: none is */
};
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
    bool seen; /* by the stand-in of the controller's host */
};
struct lane { /* one direction; in order */
    VEC(struct packet) packets;
    bool armed;  /* an ARRIVE event for the first packet exists */
    bool broken; /* nothing goes in any more: FIN or a timeout is the last */
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

enum { SIM_PODS_MAX = 4 }; /* whose drains are counted */

/* The routing tables of a process's chips (routes.c). */
struct sim_routes {
    bool drawn, uses;                          /* whether its chips use tables at all */
    struct rank_routes said;                   /* what they truly have, and what it has said */
    struct rank_routes older;                  /* what it said before */
    uint64_t told, told_without, told_session; /* by its agent */
    int64_t act_ns;                            /* true: when it goes on; INT64_MAX: it waits */
};

enum process_state { PROCESS_SPAWNING, PROCESS_RUNNING, PROCESS_DEAD };
/* A task's shim and process; the record stays after its death until the agent forgets it. */
struct process {
    obj_id task, jobset;
    uint32_t container, run; /* 0, 0: of a task without containers */
    uint64_t number;         /* its own, among all that ever were */
    int32_t attempt;
    uint32_t rank, lost_rank; /* lost: a peer whose connection broke */
    enum process_state state;
    bool told_started, told_exited; /* the living agent knows */
    bool joined, rejoins, stopping;
    bool can_rejoin, spare; /* spare: it has no rank yet */
    int32_t told_attempt; /* of the last Rejoin */
    uint32_t told_dump;   /* it is for a dying checkpoint of so many ranks; 0: it is not */
    bool asked;           /* to go back with all others: no steps until it is told where it goes on */
    uint32_t dump_world;  /* it makes no steps, and saves when so many have met; 0: no */
    int32_t writes_as;    /* attempt of the shards that it writes */
    uint32_t told_rank, told_world;
    uint64_t told_name; /* a spare: of the host name that it takes over; 0: not known */
    int64_t told_step;    /* that it is to begin with, of a spare */
    int64_t rejoin_ns;    /* true: when it goes on as it; INT64_MAX: it has */
    uint64_t armed;       /* number of the SIM_PROCESS event that counts */
    int64_t wakes_ns;     /* true: when it is */
    uint64_t chips;
    uint64_t name_hash; /* of its host name */
    uint64_t tether;    /* conn, 0: none */
    uint64_t client;    /* of its connection to the agent; 0: none */
    struct arena arena;
    struct task_launch launch;
    int64_t started_wall_ns, finished_wall_ns;
    int64_t due_ns;  /* true time of its next act */
    int64_t ends_ns; /* true: when it ends by itself */
    int64_t kill_ns; /* true: when it is killed; INT64_MAX: not */
    int64_t run_ns;  /* from its start, or from when a spare gets a rank, to ends_ns */
    int64_t step_ns; /* between steps; 0: makes none */
    int64_t step, total, saved_step;
    struct pace_sums pace;
    uint32_t checkpoint_every;
    int64_t stand_step; /* that its ranks agreed to save when they were told to leave; -1: none */
    int64_t stand_ns;   /* true: so long it stands there */
    bool ignores_term, fenced, start_fails;
    int32_t exit_code, signal;
    struct sim_routes routes;
};

/* A probe or hook that runs. */
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
    int64_t slow_ns;        /* added to everything that it does */
    uint64_t fence_boot_ns; /* the shims' shared memory; 0: none */
    VEC(struct process *) processes;
    VEC(struct sim_act) acts; /* of the agent's process */
    VEC(struct sim_errand) errands; /* likewise: those that run */
    uint64_t cluster;               /* that its agents have kept on its disk; 0: none */
    uint64_t standing;        /* conditions that its probes saw begin and not end: fault.c's bits */
    /* the agent's process */
    struct agent *agent; /* NULL: not running */
    struct machine_driver driver; /* around it */
    uint64_t agent_life, incarnation, tick_number, connect_number;
    bool paused, start_due;
    uint64_t conn, tether; /* 0: none */
    uint64_t kept_tether;  /* of the newest connection that was welcome: kept open until the next one is */
    uint64_t next_tether;  /* of the newest connection, if that is not welcome yet */
    /* its link to the controller */
    bool cut_up, cut_down; /* partitioned: towards the controller, from it */
    uint64_t cut_number;
    bool held; /* its agent had confirmed the hold when the controller left (hold.c) */
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
    size_t durable; /* records that a crash cannot take */
    struct core *reader; /* what the log gives from its first record on, so far as it was asked; or NULL */
    bool restored;       /* from a backup, and no boot has said so yet */
    size_t whole;        /* records that a controller has replayed from scratch when it started, at most */
    VEC(struct disk_snapshot) snapshots;
    bool full, busy; /* it takes nothing; busy: because another program holds it */
};

/* --- the controller --------------------------------------------------------------------------- */

/* Reservations that plant.c hides from the core during a step. */
struct hidden_room {
    obj_id jobset;
    struct room *rooms;
    size_t count;
};
typedef VEC(struct hidden_room) hidden_rooms;
struct planted {
    machine_id machine;
    uint64_t chips; /* 0: none is kept */
    hidden_rooms hidden;
    bool opened;     /* the driver has opened, and its leases have begun */
    int64_t owed_ns; /* of the hold of the leases, while that is hidden */
};
struct sim_controller {
    struct core *core;     /* NULL: down */
    struct driver *driver; /* likewise */
    struct core *left;     /* of the process that crashed last, until the next one has its state; or NULL */
    uint64_t life;
    struct sim_clock wall, mono;
    bool paused, start_due;
    struct stand_in_clock stand_in; /* while it is paused at work, and not stopped */
    uint64_t turn_number;
    int64_t turn_ns; /* true time of the armed turn; INT64_MAX: none */
    struct planted planted;
};

/* --- clients ---------------------------------------------------------------------------------- */

struct request {
    uint64_t id;
    bool waits; /* the controller is there, but does not read */
    struct arena arena;
    struct write_event write;
};
/* A JobSet as its client knows it. */
struct known_jobset {
    char namespace_[16], name[32];
    obj_id uid;   /* from the reply; 0: no reply yet */
    bool deletes; /* a delete was sent, or it has a TTL: it may vanish */
};

/* Chips that lie free for a JobSet that waits for its victims. */
struct kept_room {
    obj_id jobset;
    machine_id machine;
    uint64_t chips;
    /* Counts of the Workload's: they tell a hold from another that took its place in one step. */
    int32_t preempted, evictions;
};

/* A planned restart of the controller (hold.c), in true time. */
struct planned_restart {
    uint64_t number; /* of the newest Maintenance that orders one */
    bool waits;      /* for confirmations */
    int64_t asked_ns, length_ns;
    int64_t until_ns; /* no task of a machine that is `held` ends by its fence before; 0: it may */
};

/* --- optical switches (switches.c) ------------------------------------------------------------ */

enum { SIM_BAD_PORTS_MAX = 32 }; /* told in one report of health */
struct sim_switch {
    uint16_t to[SIM_SWITCH_PORTS + 1]; /* by plus port: the minus port that it is joined with; 0: none */
    bool down;
    bool dark[2 * SIM_SWITCH_PORTS + 2]; /* ports without light */
    uint64_t broke_at; /* the core's newest request at its last failure or return; 0: never */
    uint64_t newest;  /* operation that was carried out last */
    uint64_t watched; /* the life of the controller in which it was asked last: its health is told since */
};
struct sim_request {
    uint64_t id, operation;
    uint32_t which;
    enum switch_outcome outcome;
    VEC(struct circuit) breaks, makes;
};
/* Routing tables that some life of the log has given to a slice. */
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
    int64_t jumped_ns; /* true time at which a wall clock was set last */
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
    uint32_t checkpoint_every; /* steps between checkpoints in the JobSet that is being made */
    bool uneven;               /* each of its jobs has its own */
    /* oracle */
    VEC(uint64_t) applied; /* hash of every record that was applied, by seq - 1 */
    VEC(uint64_t) digests; /* of the core after each, where it was computed; 0: it was not */
    struct u64_map shards; /* hash of (jobset, attempt, name, step): it was saved by that attempt's process */
    struct u64_map committed; /* jobset -> struct committed */
    VEC(struct given_tables) given_tables;
    VEC(struct committed *) commits;
    size_t strangers;           /* that the core knew after the last event */
    VEC(obj_id) held;           /* before the event at hand: objects with a user's finalizer */
    VEC(struct kept_room) kept; /* likewise: rooms of preemptors */
    struct {
        uint64_t waited, overdue; /* switches that leave and have users; overdue ones */
    } drains[SIM_PODS_MAX];       /* as after the last event (routes.c) */
    VEC(struct process *) buried; /* freed when the event of the world is over */
};

/* The counts of the ladder and of replicas after the last event. */
struct reach_seen {
    struct ladder_use use; /* the newest */
    size_t uses, away;
    bool leaving; /* a machine, by spares */
    uint32_t restarts;
    uint32_t tables; /* of its slice */
    uint64_t tables_out, wrong;
    bool slice_moves, slice_lost;
};
struct committed {
    struct reach_seen reach;
    int64_t step;
    int32_t attempt, current; /* that committed; that was current after the last event */
    bool finished;
};

/* world.c */
struct sim_event *world_at(struct world *world, int64_t true_ns, enum sim_what what, uint32_t machine,
                           uint64_t id, uint64_t number);
struct sim_event *world_after(struct world *world, int64_t delay_ns, enum sim_what what, uint32_t machine,
                              uint64_t id, uint64_t number);
int64_t world_draw(struct world *world, int64_t low, int64_t high); /* uniform */
int64_t world_draw_about(struct world *world, int64_t mean_ns); /* exponential-like, at most 8 x the mean */
bool world_chance(struct world *world, uint32_t ppm);
void world_fail(struct world *world, enum torture_result result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool world_failed(const struct world *world);
void world_trace(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* net.c */
struct conn *net_find(const struct world *world, uint64_t id); /* NULL: gone */
/* A new connection between the machine's agent and the controller, both open. */
struct conn *net_open(struct world *world, struct sim_machine *machine, bool tether);
void net_send_agent(struct world *world, struct conn *conn, const struct from_agent *message);
void net_send_controller(struct world *world, struct conn *conn, const struct from_controller *message);
void net_close_agent(struct world *world, struct conn *conn); /* the agent's descriptor */
void net_release_shim(struct world *world, uint64_t id);      /* a shim that held it is dead */
void net_close_controller(struct world *world, struct conn *conn);
void net_vanish(struct world *world,
                struct sim_machine *machine);             /* the machine lost its power: no FIN ever */
void net_timeout(struct world *world, struct conn *conn); /* the kernel gave up on both ends */
void net_arrive(struct world *world, const struct sim_event *event);
void net_unblock(struct world *world); /* somebody can be reached or reads again */
bool net_reachable(const struct world *world, const struct sim_machine *machine);
void net_attend(struct world *world); /* a stand-in answers heartbeats that wait for the controller */
/* The controller gets what its stand-in has read, whatever has become of the network since. */
void net_hand_over(struct world *world);
void net_done(struct world *world);

/* disk.c */
void disk_append(struct sim_disk *disk, const struct drive_record *record);
void disk_synced(struct sim_disk *disk);
void disk_fails(struct sim_disk *disk); /* nothing that is not durable is there */
void disk_crash(struct world *world);
/* Puts back a backup, some records old. False: the log is too short. */
bool disk_restore(struct world *world);
/* Brings a core that is fresh, or holds a beginning of the log, to the log's end; with `from_snapshot` a
 * fresh one, by the newest snapshot if there is one. Fails the world when the log or a snapshot cannot be
 * read back. False then. */
bool disk_replay(struct world *world, bool from_snapshot, struct core *core);
/* Returns what the whole log gives, from its first record on; NULL: the world has failed. Each record is
 * read once, however often this is asked: a prefix of the log gives the same state each time. Belongs to
 * the disk. To be called while no append is under way. */
const struct core *disk_read_whole(struct world *world);
/* Names the first record after which a core from the newest snapshot differs from one without, if any. */
void disk_tell_apart(struct world *world);
void disk_snapshot(struct world *world, uint64_t seq, struct buf *bytes); /* takes them over */
uint64_t disk_hash(const struct drive_record *record);
void disk_done(struct sim_disk *disk);

/* controller.c */
void controller_start(struct world *world);
void controller_crash(struct world *world);
void controller_restore(struct world *world); /* it crashes, and its log is an older one when it starts */
void controller_leave(struct world *world, int64_t away_ns); /* a crash, and how long it is gone */
void controller_turn_soon(struct world *world); /* something was queued */
/* `at_work`: its loop is late, and a stand-in answers heartbeats; else its process is stopped. */
void controller_pause(struct world *world, int64_t pause_ns, bool at_work);
void controller_attend(struct world *world, const struct sim_event *event);
void controller_go_on(struct world *world);
void controller_resume(struct world *world, const struct sim_event *event);
void controller_turn(struct world *world, const struct sim_event *event);
void controller_synced(struct world *world, const struct sim_event *event);
void controller_switch_spoke(struct world *world); /* the driver has been handed something */
void controller_request(struct world *world, struct request *request);
bool controller_is_open(const struct world *world); /* up; agents and clients are heard */
bool controller_reads(const struct world *world);   /* likewise; neither paused nor waiting for its disk */
void controller_message(struct world *world, struct conn *conn, struct from_agent *message);
void controller_conn_closed(struct world *world, struct conn *conn, bool proves);
void controller_done(struct world *world);

/* plant.c */
void plant_before_step(struct world *world, const struct event *event);
void plant_after_step(struct world *world);
void plant_hide_hold(struct world *world); /* at each look at the clock */
void plant_show_hold(struct world *world); /* when the driver has opened */
/* True: it goes no further. Else it may have been changed. */
bool plant_message(struct world *world, struct conn *conn, struct from_agent *message);
void plant_closed(struct world *world, uint32_t machine); /* the connection of its agent */

/* machine.c */
void machine_init(struct world *world, uint32_t index);
void machine_power_on(struct world *world, struct sim_machine *machine);
void machine_agent_start(struct world *world, struct sim_machine *machine);
void machine_agent_crash(struct world *world, struct sim_machine *machine);
void machine_kill_all(struct world *world, struct sim_machine *machine); /* agent and tasks: kill -9 */
void machine_power_off(struct world *world, struct sim_machine *machine);
void machine_resume(struct world *world, struct sim_machine *machine);
void machine_connected(struct world *world, const struct sim_event *event);
void machine_tick(struct world *world, const struct sim_event *event);
void machine_acted(struct world *world, const struct sim_event *event);
void machine_errand_ended(struct world *world, const struct sim_event *event);
void machine_hears(struct world *world, struct conn *conn, const struct from_controller *message);
void machine_conn_closed(struct world *world, struct conn *conn);
void machine_event(struct world *world, struct sim_machine *machine, struct agent_event *event);
bool machine_reads(const struct sim_machine *machine); /* its agent runs and is not paused */
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
                  struct process *process); /* the living agent */
void process_kill(struct world *world, struct sim_machine *machine,
                  struct process *process); /* dead now, SIGKILL */
void process_welcome(struct world *world, struct sim_machine *machine, uint64_t client, int64_t restore_step);
void process_drain(struct world *world, struct sim_machine *machine, uint64_t client); /* a notice */
void process_rejoin(struct world *world, struct sim_machine *machine, uint64_t client,
                    const struct task_rejoin *order);
void process_arm(struct world *world, struct sim_machine *machine, struct process *process);
void process_fence_moved(struct world *world, struct sim_machine *machine); /* each shim looks at it */
void process_fenced_client(struct world *world, struct sim_machine *machine, uint64_t client);
void process_forget(struct world *world, struct sim_machine *machine, obj_id task);
void process_bury_all(struct world *world);
struct process *process_find(const struct sim_machine *machine, obj_id task, uint32_t container);
bool process_lives(const struct process *process);
void process_free(struct process *process);
/* routes.c: it is told of tables; says again what its chips have, after a JOIN; goes on. */
void routes_told(struct world *world, struct sim_machine *machine, const struct agent_effect *effect);
void routes_say(struct world *world, struct sim_machine *machine, struct process *process);
void routes_act(struct world *world, struct sim_machine *machine, struct process *process);
void routes_rejoined(struct world *world, struct sim_machine *machine, struct process *process);
void routes_judge(struct world *world);   /* no chips forward by tables with a switch that is Drained */
void process_hasten(struct world *world); /* the second phase: stragglers end soon */

/* reach.c: counts what the last event has come to. */
void reach_look(struct world *world, const struct jobset *jobset, struct reach_seen *seen);
void reach_add(struct world *world, const struct driver_stats *stats); /* of a driver that ends */

/* client.c */
void client_act(struct world *world);
void client_reply(struct world *world, const struct effect *effect);
void client_request(struct world *world, const struct sim_event *event);
void client_unblock(struct world *world); /* the controller reads again */
void client_done(struct world *world);
/* A request on its way. Strings are copied. */
/* Drains a switch or cube of the pod, or ends that. */
void client_drain(struct world *world, bool cube, struct str name, bool on);
struct request *client_send(struct world *world, enum write_verb verb, enum object_kind object,
                            struct str namespace_, struct str name, struct str body);
bool client_has(struct world *world, enum sim_feature feature); /* drawn anew: may it be used here? */
const char *client_any_namespace(struct world *world); /* "default", or another one that may not exist */
/* The objects in the namespace, or those that this object owns, may vanish without having been asked for. */
void client_may_vanish(struct world *world, struct str namespace_);

/* client_objects.c: ConfigMaps, Secrets, Namespaces, finalizers; client_queues.c: Kueue's objects, Workloads.
 * Each does one thing at random; `tidy` in the second phase undoes what keeps others waiting. */
void client_objects_act(struct world *world);
void client_objects_tidy(struct world *world);
void client_queues_act(struct world *world);
void client_queues_tidy(struct world *world);
/* client_podsets.c: Workloads that users make, and what they compete with. */
#define CLIENT_HOLD "example.com/hold" /* a finalizer that clients set and take away */
enum object_kind client_kind_of(const struct jobset *jobset); /* as its user sees it */
void client_set_active(struct world *world, const struct workload *workload, bool active);
void client_podsets_act(struct world *world);
void client_podsets_tidy(struct world *world);
void client_fill(struct world *world);       /* a Job that waits in a queue for many machines */
void client_squeeze_in(struct world *world); /* a Pod of no queue that needs one chip */
/* A Workload in the victim's queue that preempts, if it may. */
void client_rush(struct world *world, const struct workload *victim);

/* spec.c, spec_pod.c, spec_meta.c: documents at random */
struct json_writer;
void spec_cluster(struct world *world, struct buf *out);
void spec_jobset(struct world *world, const char *ns, const char *name, struct buf *out,
                 bool *ret_may_vanish);
void spec_job(struct world *world, const char *ns, const char *name, struct buf *out);
void spec_pod(struct world *world, const char *ns, const char *name, struct buf *out);
/* spec_ladder.c: ranks of one world that can rejoin, with room for losses. */
void spec_slice(struct world *world, const char *ns, const char *name, struct buf *out, bool *ret_deletes);
void spec_ladder(struct world *world, const char *ns, const char *name, struct buf *out);
/* metadata, with labels, annotations, finalizers and owners. True: it may vanish with its owner. */
bool spec_metadata(struct world *world, struct json_writer *json, const char *ns, const char *name,
                   enum object_kind kind);
void spec_command(struct world *world, struct json_writer *json);
/* "spec" of a pod; `restarts`: restartPolicy Never or OnFailure, or with `always` any. */
void spec_pod_spec(struct world *world, struct json_writer *json, bool restarts, bool always);

/* fault.c */
void fault_next(struct world *world);
void fault_say_again(struct world *world, struct sim_machine *machine); /* of what stands, some does yet */
void fault_happen(struct world *world);
void fault_heal(struct world *world);
void fault_cut_off(struct world *world, struct sim_machine *machine, int64_t cut_ns);
void fault_partition_end(struct world *world, const struct sim_event *event);

/* hold.c: an operator restarts the controller under a hold of the leases */
void hold_plan(struct world *world);
void hold_look(struct world *world, const struct sim_event *event);
void hold_void(struct world *world); /* what was planned or promised cannot be told any more */
void hold_tidy(struct world *world); /* ends it, in the second phase */

/* oracle.c: each fails the world when it finds something wrong */
void oracle_spawned(struct world *world, const struct sim_machine *machine, const struct process *process);
/* The process goes on under another attempt: no other process has its rank there. */
void oracle_rejoined(struct world *world, const struct process *process);
void oracle_fence(struct world *world, const struct sim_machine *machine); /* its fence was moved, or acts */
void oracle_told_start(struct world *world, const struct task *task);
/* A spare is told of its rank: nobody lives under that rank's name. */
void oracle_takes_rank(struct world *world, const struct sim_machine *machine, const struct process *spare);
void oracle_before(struct world *world, const struct event *event); /* before the step */
void oracle_applied(struct world *world, const struct event *event, const struct drive_record *record);
/* oracle_objects.c: before and after an event of the core's log */
void oracle_before_objects(struct world *world);
void oracle_objects(struct world *world, const struct event *event);
void oracle_saved(struct world *world, const struct process *process);
void oracle_restarted(struct world *world); /* after a replay */
/* The log has lost its newest part: records need not be there any more, nor what was acknowledged. The second
 * when a controller has read it. */
void oracle_lost(struct world *world);
void oracle_restored(struct world *world);
void oracle_final(struct world *world);     /* the whole log again */
void oracle_done(struct world *world);

/* liveness.c */
bool liveness_reached(const struct world *world, char *ret_why, size_t size); /* false: what is missing */
void liveness_trace(struct world *world);                                     /* how everything stands */

/* switches.c */
void sim_switches_begin(struct world *world);
/* An operator drains a switch or cube, or ends a drain; two switches at a time, and one cube. */
void sim_switches_maintain(struct world *world);
void sim_switches_heal(struct world *world); /* all come back, and fail no more */
void sim_switches_event(struct world *world, const struct sim_event *event);
void sim_switches_apply(void *context, const struct switch_apply *apply); /* a port of the driver */
void sim_switches_judge_start(struct world *world,
                              const struct task *task); /* oracle: its slice is connected */
void sim_switches_done(struct world *world);

#endif
