/* world.h - the simulated world of several controllers. Private to src/sim/ha; ha.h is its contract.
 *
 *   world.c       the event queue, chance, which places reach each other, the two phases of a run
 *   swarm.c       the options of a run, drawn from the seed
 *   fault.c       faults, and how they heal
 *   etcd.c        the model of etcd: transactions, leases, notifications to watchers
 *   call.c        a controller's calls to etcd: retried, answered late or never
 *   append.c      the log port: a leader's appends, by the rules of host/store/etcd/append.c
 *   lead.c        leases, following, take-over, hand-over: host/standby, host/store/etcd/lead.c
 *   controller.c  a controller's process: the driver that ships, turns, start, end
 *   net.c         connections of agents
 *   machine.c     machines: the agent that ships, its shims and processes
 *   client.c      clients that write, and remember acknowledged writes
 *   oracle.c      invariants
 *
 * Parts that model live code keep its names. ha_run() handles one event at a time. The only source of chance
 * is world->rng. Durations are in true nanoseconds. */
#ifndef PHX_SIM_HA_WORLD_H
#define PHX_SIM_HA_WORLD_H

#include "base/heap.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/units.h"
#include "core/agent/agent.h"
#include "core/agent/codec.h"
#include "core/log/record.h"
#include "drive/agent.h"
#include "drive/drive.h"
#include "sim/clock.h"
#include "sim/ha/ha.h"

enum {
    HA_CONTROLLERS_MAX = TORTURE_CONTROLLERS_MAX,
    HA_MEMBERS = 3,
    HA_CLIENTS_MAX = 4,
    HA_SLOTS = 8,    /* objects of a client at a time */
    HA_MACHINES = 4, /* as in the cluster file in controller.c */
    HA_CHIPS = 4,
    /* places, any two of which may be cut off from each other */
    HA_PLACE_MEMBER = HA_CONTROLLERS_MAX,
    HA_PLACE_CLIENT = HA_PLACE_MEMBER + HA_MEMBERS,
    HA_PLACE_MACHINE = HA_PLACE_CLIENT + HA_CLIENTS_MAX,
    HA_PLACES = HA_PLACE_MACHINE + HA_MACHINES,
};

/* --- events of the world ---------------------------------------------------------------------- */

enum ha_what {
    HA_REQUEST, /* `message` reaches etcd's member */
    HA_ANSWER,  /* `message` reaches its controller */
    HA_SILENCE, /* controller: call `id` has timed out; `number` 1: the keeper's call */
    HA_LEASE,   /* etcd: lease `id` may have ended */
    HA_NEWS,    /* controller, life `id`: its watch reports a change */
    HA_RENEW,   /* controller, life `id`: its keeper renews lease `number` */
    HA_LOOK,    /* controller, life `id`: look `number` is due */
    HA_TURN,    /* controller, life `id`: turn `number` is due */
    HA_START,   /* controller */
    HA_DEATH,   /* controller, life `id`: learns that the process of leadership `number` has died */
    HA_CLIENT,  /* client: its next write, or a repeated one, if `number` is its newest */
    HA_WRITE,   /* `message` reaches a controller */
    HA_REPLY,   /* `message` reaches its client */
    HA_FAULT,   /* the next fault */
    HA_PACKET,  /* the next packet of conn `id` arrives, at the agent if `number` is 1 */
    HA_CONNECT, /* machine: attempt `number` of agent life `id` to connect has an outcome */
    HA_AGENT,   /* machine: its agent starts */
    HA_TICK,    /* machine: tick `number` of agent life `id` */
    HA_PROCESS, /* machine: its processes are due, if armed with `number` */
};

struct ha_message;
struct ha_event {
    struct heap_node node; /* key: true time; tie: order of creation */
    enum ha_what what;
    uint32_t who;
    uint64_t id, number;
    struct ha_message *message; /* owned; NULL: none */
};

/* --- etcd ------------------------------------------------------------------------------------- */

enum etcd_sim_kind { SIM_HEAD, SIM_LEADER, SIM_STEP_DOWN, SIM_REPLICA, SIM_GROUP, SIM_SNAPSHOT };
/* A key with its value. `number` is 0 for kinds with a single key. */
struct sim_pair {
    enum etcd_sim_kind kind;
    uint64_t number;
    int64_t mod, lease;
    struct buf value;
};
typedef VEC(struct sim_pair) sim_pairs;

enum sim_op_kind {
    SIM_GET,      /* the key */
    SIM_GET_FROM, /* all keys of its kind from `number` on */
    SIM_GET_LAST, /* the key of its kind with the largest number */
    SIM_PUT,
    SIM_DELETE, /* all keys of its kind from `number` to `to` */
};
struct sim_op {
    enum sim_op_kind op;
    enum etcd_sim_kind kind;
    uint64_t number, to;
    int64_t lease;
    struct buf value;
};
struct sim_compare {
    enum etcd_sim_kind kind;
    int64_t mod; /* 0: the key does not exist */
};
/* IF all comparisons hold THEN `then` ELSE `otherwise`. Shared by the attempts of a call. */
struct sim_txn {
    uint32_t refs;
    struct sim_compare compares[2];
    size_t compare_count;
    VEC(struct sim_op) then;
    VEC(struct sim_op) otherwise;
};

/* control/head */
struct sim_head {
    uint64_t last, base; /* the log holds records base + 1 to last */
    uint64_t chain;      /* hash of the last record and all before */
};
/* control/leader: which controller leads */
struct sim_leader {
    uint32_t controller, pad;
    uint64_t life;
};
/* control/replica/LEASE */
struct sim_replica {
    uint32_t controller, reads, level, pad;
    uint64_t life;
};

struct sim_lease {
    int64_t id, ttl_ns;
    int64_t ends_ns; /* as promised */
    int64_t late_ns; /* how much later it really ends */
};
struct sim_etcd {
    int64_t revision;
    sim_pairs pairs; /* sorted by kind, then number */
    VEC(struct sim_lease) leases;
    int64_t down_until_ns[HA_MEMBERS];
    int64_t stalled_until_ns; /* etcd elects its own leader until then */
    int64_t full_until_ns;
};

/* --- messages --------------------------------------------------------------------------------- */

enum ha_request_kind { CALL_TXN, CALL_GRANT, CALL_KEEP_ALIVE, CALL_REVOKE, CALL_LEASES };

/* A request to etcd, which becomes the answer; or a client's write, which becomes the reply. */
struct ha_message {
    uint32_t controller;
    uint64_t life;
    /* to etcd */
    uint64_t call; /* the attempt */
    bool keeper;
    uint32_t member;
    enum ha_request_kind kind;
    struct sim_txn *txn;
    int64_t lease, ttl_ns;
    int rc; /* result of the call, as in host/store/etcd */
    bool held;
    int64_t revision;
    sim_pairs pairs;
    VEC(int64_t) leases;
    /* a write */
    uint32_t client;
    uint64_t number; /* of the client's attempt */
    bool forwarded;
    int code;
    uint64_t version; /* of the object after the write */
    bool stale;       /* a refusal by a controller that had been replaced and did not know it */
    struct write_event write;
    struct arena arena;
};

/* --- controllers ------------------------------------------------------------------------------ */

enum ha_state { HA_DOWN, HA_STARTS, HA_FOLLOWS, HA_LEADS };

/* The call to etcd that the main loop waits for; only one is under way. */
enum ha_ask {
    ASK_NOTHING,
    ASK_GRANT,    /* a lease */
    ASK_LOOK,     /* head, leader, step-down */
    ASK_RECORDS,  /* records up to the known head */
    ASK_SNAPSHOT, /* the newest snapshot */
    ASK_ANNOUNCE,
    ASK_LEAD,
    ASK_REVOKE, /* revokes the lease of a leader whose process has died */
    ASK_PART,   /* a part of a group before the last */
    ASK_APPEND,
    ASK_SAVE, /* a snapshot */
    ASK_TRIM,
    ASK_SUCCESSOR, /* looks for a live successor before resigning */
    ASK_RESIGN,
    ASK_LEASES, /* lists leases before the replicas are counted */
    ASK_REPLICAS,
};

struct ha_call {
    uint64_t id; /* of the attempt under way; 0: none */
    enum ha_ask ask;
    enum ha_request_kind kind;
    struct sim_txn *txn;
    int64_t lease, ttl_ns;
    uint32_t member;
    int64_t asked_ns; /* mono: before the first attempt */
    int64_t until_ns; /* mono: no attempt begins later */
    bool while_leads; /* the deadline is the end of the lease at the time, instead of until_ns */
    bool unsure;      /* an unanswered attempt may have been carried out */
};

/* The control keys at the last look. */
struct ha_seen {
    int64_t leader_term, leader_lease;
    struct sim_leader leader;
    int64_t step_down_term;
};

struct ha_controller {
    struct ha_world *world;
    uint32_t index;
    uint64_t life;
    enum ha_state state;
    struct core *core;
    struct driver *driver; /* NULL unless it leads */
    struct effects effects;
    struct sim_clock mono, wall;
    int64_t stopped_until_ns; /* true: its process is paused */
    int64_t busy_until_ns;    /* true: its main loop is busy; the keeper of its lease runs on */
    bool old;                 /* of the previous release: it reads level 0 only */
    struct ha_call main, keeper;
    /* its lease */
    int64_t lease, lease_length_ns, lease_until_ns; /* mono; lease_until_ns 0: it has ended */
    /* the log, as last seen */
    struct sim_head head;
    int64_t head_mod;
    int64_t term; /* its leadership: mod revision of the leader key; 0: none */
    struct ha_seen seen;
    bool something_new;
    int64_t dead_term; /* leadership whose process is known to have died; 0: none */
    bool announced;
    uint32_t announced_level;
    int64_t announced_ns;   /* true: when etcd accepted it */
    int64_t census_ns;      /* mono: when the next census of replicas is due */
    int64_t leader_look_ns; /* mono: as leader it looks at the control keys no earlier */
    int64_t leases_ns;      /* true: when etcd listed `leases` */
    VEC(int64_t) leases;
    bool resigns, ends;  /* ends: restarts only after a second */
    bool succession;     /* it has looked for a successor */
    struct sim_leader successor;
    int64_t successor_lease; /* 0: no successor: any controller may take the lead */
    bool lost;               /* has lost the lead, must not act, and ends with this event */
    uint64_t missing;        /* a record that was missing at the last look */
    bool announce_tried; /* since the last look */
    /* the append under way */
    struct buf group;
    uint32_t parts, part;
    uint64_t group_first;
    struct sim_head group_head;
    struct buf snapshot;                    /* to be saved */
    uint64_t snapshot_seq, snapshot_before; /* numbers of the last two snapshots; 0: none */
    bool saving, trimming;
    uint64_t turn_number, look_number;
    int64_t turn_ns;                  /* true time of the armed turn; INT64_MAX: none */
    VEC(struct ha_message *) inbox;   /* writes that it has not read yet */
    VEC(struct ha_message *) waiting; /* writes handed to the driver */
    bool opened;                      /* the oracle has checked its initial state */
};

/* --- machines --------------------------------------------------------------------------------- */

struct ha_packet {
    struct buf bytes; /* a frame; empty: the connection's end */
    bool end;
    int64_t due_ns;
};
/* Packets in one direction of a connection, in order. */
struct ha_lane {
    VEC(struct ha_packet) packets;
    size_t arrived; /* packets that have arrived and are unread */
    bool armed, ended;
};
struct ha_conn {
    uint64_t id;
    uint32_t machine, controller;
    uint64_t agent_life, controller_life;
    bool tether, agent_open, controller_open;
    uint32_t shims; /* shims that hold it */
    struct ha_lane to_controller, to_agent;
};

/* A task's shim and process. The record stays until the agent forgets it. */
struct ha_process {
    obj_id task;
    uint64_t number;
    bool lives, told_exited, fenced, stopping;
    uint64_t tether;
    int64_t started_ns, finished_ns; /* wall clock of its machine */
    int64_t ends_ns, kill_ns;        /* true times; INT64_MAX: never */
    int32_t exit_code, signal;
    struct arena arena;
    struct task_launch launch;
};
struct ha_machine {
    struct ha_world *world;
    uint32_t index;
    char name[8];
    struct sim_clock boot, wall;
    int64_t fence_boot_ns; /* the fence in the shims' shared memory; 0: none */
    uint64_t cluster;      /* id of the cluster that its agents stored; 0: none */
    VEC(struct ha_process *) processes;
    uint64_t process_number; /* of the armed event */
    struct agent *agent;     /* NULL: not running */
    struct machine_driver driver;
    uint64_t agent_life, tick_number, connect_number;
    uint32_t at;                                     /* controller to try next */
    uint64_t conn, tether, kept_tether, next_tether; /* 0: none */
};

/* --- clients ---------------------------------------------------------------------------------- */

/* An object as its client knows it. */
struct ha_slot {
    char name[24]; /* "": none */
    enum object_kind kind;
    uint64_t version; /* newest acknowledged version; 0: none */
    bool promised;    /* acknowledged, and no delete was sent since */
};
struct ha_client {
    uint32_t at;     /* controller to ask next */
    uint64_t number; /* of its newest attempt; replies to older ones are ignored */
    uint64_t made;   /* names created so far */
    struct ha_slot slots[HA_SLOTS];
    uint32_t slot;        /* of the write under way */
    enum write_verb verb; /* of the write under way; 0: none */
    uint32_t tries;
    uint64_t sent;    /* contents written so far */
    int64_t first_ns; /* when the current write was first sent */
    bool noted;       /* every leader since first_ns keeps receipts */
};

/* --- the world -------------------------------------------------------------------------------- */

struct ha_swarm {
    uint32_t controllers, clients;
    int64_t ttl_ns;
    int64_t delay_min_ns, delay_max_ns, spike_max_ns;
    uint32_t spike_ppm, lose_ppm;
    int64_t watch_lag_ns;
    uint32_t watch_lose_ppm;
    int64_t late_lease_ns;
    uint32_t drift_ppm;
    int64_t client_every_ns, fault_every_ns, call_timeout_ns;
    uint32_t snapshot_every, part_bytes;
    uint32_t turn_records_max;
    bool log_waits; /* the main loop waits during an append, as the live one does */
    bool old;       /* some controllers are of the previous release */
    uint32_t weights[16];
    uint32_t taker_ppm; /* share of controllers that die as soon as they have the leader key */
};
void ha_swarm_draw(struct ha_swarm *swarm, struct rng *rng, uint32_t controllers);
void ha_swarm_describe(const struct ha_swarm *swarm, char *ret_text, size_t size);

struct ha_record {
    uint64_t hash;   /* of number, stamp and bytes */
    uint64_t chain;  /* of this record and all before */
    uint64_t digest; /* of the state after it, from the first controller that applied it; 0: none yet */
};

struct ha_world {
    struct torture_options options;
    struct torture_outcome *outcome;
    struct ha_swarm swarm;
    struct rng rng;
    int64_t now_ns;
    bool healing;
    struct heap events;
    uint64_t next_tie, next_id;
    struct sim_etcd etcd;
    struct ha_controller controllers[HA_CONTROLLERS_MAX];
    struct ha_client clients[HA_CLIENTS_MAX];
    struct ha_machine machines[HA_MACHINES];
    struct machine_shared *shared;
    VEC(struct ha_conn *) conns;
    struct u64_map conns_by_id;
    VEC(struct ha_process *) buried;            /* dead; freed after the event */
    int64_t cut_until_ns[HA_PLACES][HA_PLACES]; /* from, to */
    VEC(struct ha_record) history;
    uint64_t written; /* writes acknowledged since everything healed */
    uint64_t epoch;   /* largest epoch of a boot record in the history */
    uint64_t epoch_seq;
    uint64_t level_asked;
};

/* --- world.c --- */
struct ha_event *ha_at(struct ha_world *world, int64_t true_ns, enum ha_what what, uint32_t who, uint64_t id,
                       uint64_t number);
struct ha_event *ha_after(struct ha_world *world, int64_t delay_ns, enum ha_what what, uint32_t who,
                          uint64_t id, uint64_t number);
int64_t ha_draw(struct ha_world *world, int64_t low, int64_t high); /* uniform */
int64_t ha_draw_about(struct ha_world *world, int64_t mean_ns);
bool ha_chance(struct ha_world *world, uint32_t ppm);
int64_t ha_delay(struct ha_world *world); /* of a message */
/* Returns whether a message that leaves one place now reaches the other. With `lose` it may be lost by
 * chance. */
bool ha_passes(struct ha_world *world, uint32_t from, uint32_t to, bool lose);
void ha_fail(struct ha_world *world, enum torture_result result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool ha_failed(const struct ha_world *world);
void ha_trace(struct ha_world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ha_reach(struct ha_world *world, enum torture_ha_reach reach);
struct ha_message *ha_message_new(void);
void ha_message_free(struct ha_message *message); /* NULL is allowed */

/* --- etcd.c --- */
struct sim_txn *sim_txn_new(void);
void sim_txn_unref(struct sim_txn *txn); /* NULL is allowed */
void sim_txn_if(struct sim_txn *txn, enum etcd_sim_kind kind, int64_t mod);
void sim_txn_get(struct sim_txn *txn, bool held, enum etcd_sim_kind kind);
void sim_txn_get_from(struct sim_txn *txn, enum etcd_sim_kind kind, uint64_t number);
void sim_txn_get_last(struct sim_txn *txn, enum etcd_sim_kind kind);
/* Adds a put to the THEN part. Copies the value. */
void sim_txn_put(struct sim_txn *txn, enum etcd_sim_kind kind, uint64_t number, struct str value,
                 int64_t lease);
void sim_txn_delete(struct sim_txn *txn, enum etcd_sim_kind kind, uint64_t number, uint64_t to);
/* Returns the pair with this key in an answer or in etcd, or NULL. */
const struct sim_pair *sim_pair_find(const sim_pairs *pairs, enum etcd_sim_kind kind, uint64_t number);
void etcd_sim_request(struct ha_world *world, struct ha_event *event); /* takes its message */
void etcd_sim_lease(struct ha_world *world, const struct ha_event *event);
/* Elects a leader in etcd: requests wait for `stall_ns`, and then all leases start again. */
void etcd_sim_elect(struct ha_world *world, int64_t stall_ns);
bool etcd_sim_has_lease(struct ha_world *world, int64_t id); /* the lease has not ended */
void etcd_sim_done(struct sim_etcd *etcd);

/* --- call.c --- */
/* Begin a call of the main loop or of the keeper. Take `txn`. */
void call_txn(struct ha_controller *controller, enum ha_ask ask, struct sim_txn *txn, int64_t until_ns,
              bool while_leads);
void call_lease(struct ha_controller *controller, bool keeper, enum ha_ask ask, enum ha_request_kind kind,
                int64_t lease, int64_t until_ns);
void call_answered(struct ha_world *world, struct ha_event *event); /* takes its message */
void call_silence(struct ha_world *world, struct ha_event *event);
void call_drop(struct ha_call *call);

/* --- append.c --- */
struct log_port ha_log_port(struct ha_controller *controller);
/* Handles the answer to a call of the main loop. `rc` is the call's result; without an answer, `answer` is
 * NULL and `rc` negative. */
void append_answered(struct ha_controller *controller, enum ha_ask ask, int rc,
                     const struct ha_message *answer);
bool append_maintain(struct ha_controller *controller); /* returns true if it began a call */
/* Makes a transaction that succeeds only while the controller leads. */
struct sim_txn *ha_leader_txn(const struct ha_controller *controller);
/* Returns the number of a group's key, which sorts by record, then part. */
uint64_t ha_group_key(uint64_t first, uint64_t part);
/* Applies the groups of an answer to a standby's state, up to the known head. Returns false if a group is
 * missing. */
bool ha_apply_groups(struct ha_controller *controller, const sim_pairs *pairs);
/* Calls `visit` for each record of the group that begins with record `first`. `*ret_next` is the index of its
 * first part in `pairs`, and moves to the next group. Returns false if a part is missing. */
bool ha_group_visit(const sim_pairs *pairs, uint64_t first, size_t *ret_next,
                    void (*visit)(void *context, const struct drive_record *record), void *context);
void ha_lost(struct ha_controller *controller, const char *why);

/* --- lead.c --- */
void lead_begin(struct ha_controller *controller); /* a new process: gets a lease and reads the log */
void lead_answered(struct ha_controller *controller, enum ha_ask ask, int rc,
                   const struct ha_message *answer);
void lead_kept(struct ha_controller *controller, int rc, const struct ha_message *answer);
void lead_news(struct ha_world *world, const struct ha_event *event);
void lead_renew(struct ha_world *world, const struct ha_event *event);
void lead_look(struct ha_world *world, const struct ha_event *event);
void lead_death(struct ha_world *world, const struct ha_event *event);
/* Called between two turns of a leader. Return true if they began a call. */
bool lead_look_as_leader(struct ha_controller *controller);
bool lead_resign(struct ha_controller *controller);
bool lease_runs(const struct ha_controller *controller);

/* --- controller.c --- */
int64_t ha_mono(const struct ha_controller *controller);
/* Returns whether the controller's main loop, or with `keeper` its process, is paused. If so, schedules the
 * event again for the end of the pause and takes its message. */
bool ha_stands(struct ha_controller *controller, struct ha_event *event, bool keeper);
bool ha_reads(const struct ha_controller *controller); /* it leads, and accepts input now */
void ha_start(struct ha_world *world, uint32_t index);
void ha_end(struct ha_controller *controller, int64_t away_ns, const char *why);
void ha_leads(struct ha_controller *controller); /* it leads and has the whole log: starts a driver */
void ha_turn(struct ha_world *world, const struct ha_event *event);
void ha_turn_soon(struct ha_controller *controller);
/* arms a turn for that time, or an earlier one */
void ha_turn_by(struct ha_controller *controller, int64_t mono_ns);
void ha_write_arrives(struct ha_world *world, struct ha_event *event); /* takes its message */
void ha_controller_done(struct ha_controller *controller);

/* --- net.c --- */
struct ha_conn *ha_conn_find(const struct ha_world *world, uint64_t id); /* NULL: it no longer exists */
struct ha_conn *ha_conn_open(struct ha_machine *machine, struct ha_controller *controller, bool tether);
void ha_conn_send_agent(struct ha_world *world, struct ha_conn *conn, const struct from_agent *message);
void ha_conn_send_controller(struct ha_world *world, struct ha_conn *conn,
                             const struct from_controller *message);
void ha_conn_close_agent(struct ha_world *world, uint64_t id); /* the agent's descriptor; 0 is fine */
void ha_conn_release(struct ha_world *world, uint64_t id);     /* a shim that held it has died */
void ha_conn_close_controller(struct ha_world *world, struct ha_conn *conn);
void ha_conn_end_of(struct ha_controller *controller); /* its process has ended */
void ha_conn_packet(struct ha_world *world, const struct ha_event *event);
void ha_conn_gather(struct ha_controller *controller); /* hands its driver the arrived packets */
void ha_conn_done(struct ha_world *world);

/* --- machine.c --- */
void ha_machine_init(struct ha_world *world, uint32_t index);
void ha_machine_start(struct ha_world *world, uint32_t index); /* starts its agent */
void ha_machine_crash(struct ha_machine *machine);             /* kills its agent */
void ha_machine_kill_task(struct ha_machine *machine);         /* any */
void ha_machine_connected(struct ha_world *world, const struct ha_event *event);
void ha_machine_tick(struct ha_world *world, const struct ha_event *event);
void ha_machine_act(struct ha_world *world, const struct ha_event *event);
void ha_machine_hears(struct ha_world *world, struct ha_conn *conn, const struct from_controller *message);
void ha_machine_closed(struct ha_world *world, struct ha_conn *conn);
void ha_machine_bury(struct ha_world *world);
void ha_machine_done(struct ha_machine *machine);

/* --- client.c --- */
void ha_client_act(struct ha_world *world, const struct ha_event *event);
void ha_client_hears(struct ha_world *world, const struct ha_event *event);
/* Sends the reply to a write. Takes `message`. */
void ha_client_answer(struct ha_world *world, struct ha_message *message, uint32_t from);

/* --- fault.c --- */
void ha_fault_next(struct ha_world *world);
void ha_fault_happen(struct ha_world *world);
void ha_fault_heal(struct ha_world *world);
const char *ha_fault_name(int kind);
int ha_fault_kinds(void);
void ha_fault_suspicion_alone(uint32_t *weights); /* `weights` of all kinds */

/* --- oracle.c --- */
/* Called when a transaction puts the head. Checks that the leader sent it and that the log only grows, and
 * adds its records to the history. */
void ha_oracle_head(struct ha_world *world, const struct ha_message *message, const struct sim_op *put);
/* Called when a controller has applied a record; `event` is NULL for a standby. */
void ha_oracle_applied(struct ha_controller *controller, const struct drive_record *record,
                       const struct event *event);
/* Called before a step. Checks that a machine is not taken for lost while a task lives there. */
void ha_oracle_before(struct ha_controller *controller, const struct event *event);
/* Called when a process starts on the machine. */
void ha_oracle_spawned(struct ha_world *world, const struct ha_machine *machine,
                       const struct ha_process *process);
void ha_oracle_opened(struct ha_controller *controller); /* a driver has opened */
uint64_t ha_record_hash(const struct drive_record *record);
/* Returns whether exactly one controller leads, writes were acknowledged since everything healed, and all
 * have the whole log. If not, *ret_why says what is missing. */
bool ha_oracle_alive(struct ha_world *world, char *ret_why, size_t size);
void ha_oracle_final(struct ha_world *world);

#endif
