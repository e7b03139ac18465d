/* head.h - the state of the head; private to src/flow/island.
 *
 * A host number is never given to another worker, except that a worker which rejoins a replacement head keeps
 * its own. A worker that restarts at the same address becomes a new host with the next incarnation. Devices
 * are numbered across all hosts, in the order in which the hosts joined.
 */
#ifndef PHX_FLOW_ISLAND_HEAD_H
#define PHX_FLOW_ISLAND_HEAD_H

#include "base/list.h"
#include "base/map.h"
#include "flow/island/machine.h"
#include "flow/island/status.h"
#include "flow/island/trace.h"
#include "flow/lower/lower.h"

enum {
    HEAD_WINDOW = 64,
    HEAD_CLIENT_LAUNCHES_MAX = 65536, /* queued launches of one client; one more ends its connection */
    HEAD_PROGRESS_EVERY = 64,         /* launches that end before the client receives a PROGRESS */
    /* Bounds of one client. Beyond them launches, puts and meshes fail, and functions and programs are
     * ignored. */
    HEAD_CLIENT_OBJECTS_MAX = 1 << 20,
    HEAD_CLIENT_ARGS_MAX = 1 << 22, /* arguments of queued launches */
    HEAD_CLIENT_MESHES_MAX = 4096,
    HEAD_CLIENT_TEXTS_MAX = 1 << 16,      /* functions, and as many programs */
    HEAD_CLIENT_TEXT_BYTES_MAX = 1 << 30, /* functions and programs together */
    HEAD_ADDRESS_MAX = 511,
    STRIDE_UNIT = 1 << 20,
};
#define HEAD_MEMORY_WAIT_NS (INT64_C(10) * 1000 * 1000 * 1000)
/* After a reported break of a connection, how long the head waits to see whether the host itself is lost. */
#define HEAD_BREAK_NS         (INT64_C(2) * 1000 * 1000 * 1000)
#define HEAD_REJOIN_NS        (INT64_C(10) * 1000 * 1000 * 1000)
#define HEAD_DEVICE_NS_MAX    (UINT64_C(3600) * 1000 * 1000 * 1000)
#define NS_OF_UNKNOWN_PROGRAM (INT64_C(100) * 1000)

struct head_device {
    uint32_t load; /* virtual devices on it */
    uint64_t mark; /* equals head.mark if the mesh being placed already has this device */
    int64_t used_bytes;
    int64_t idle_bytes;                /* of values that no running launch takes */
    int64_t wanted_bytes, short_bytes; /* of the plan in progress (head_spill.c); 0 otherwise */
    uint64_t busy_ns;                  /* from its worker's last LOAD */
    uint32_t queued;
};
struct head_host {
    uint64_t peer;
    bool alive;
    bool vacant;   /* known only by its number: its worker has yet to join this head */
    bool told_all; /* its worker has finished the report of its state, or had none to report */
    uint64_t birth;
    uint32_t island, incarnation, first_device, device_count;
    int64_t device_bytes;
    int64_t host_bytes, spilled_bytes;      /* memory for spilled shards; bytes used of it */
    int64_t arriving_bytes;                 /* of the plan in progress (head_spill.c); 0 otherwise */
    uint64_t spilled_in_all, filled_in_all; /* bytes since the host joined */
    uint64_t place;                         /* in the shared memory of its machine (host/board.h); 0: none */
    char *address;
    struct head_device *devices;
    uint64_t load[LOAD_NUMBERS]; /* from its worker's last LOAD */
    uint32_t trace_epoch;        /* of the last TRACE order that the worker has answered */
};
struct head_island {
    char name[64];
    uint64_t next_ticket; /* to stamp next; the first is 1 */
    uint32_t running;     /* launches stamped and not over */
    bool full;            /* the window was reached; no launch is stamped until half of it has ended */
    uint64_t pass;        /* of the client stamped last; clients that become active start here */
};

/* The devices of a mesh at one time. The values made on them share this record. Counted by references. */
struct head_places {
    uint32_t references, count;
    struct lower_place places[];
};
struct head_mesh {
    uint32_t id, client, island;
    struct flow_mesh shape;
    uint32_t epoch; /* the client's epoch when the places last changed */
    struct head_places *places;
    struct head_mesh *parent;   /* slices only */
    uint32_t slices;            /* child slices that are not freed */
    uint32_t *of_parent;        /* slices only: index in the parent of each device */
    uint32_t moved;             /* the client's epoch when a resume last moved the mesh with its values */
    bool freed, whole;          /* whole: every place is on a live host */
    bool parked;                /* the client is suspended, so the mesh loads no device; false for slices */
    struct head_places *before; /* the places before a resume that is in progress; NULL: none is */
    bool was_whole;             /* `whole` before that resume */
    uint64_t *births;           /* expected births of the places' hosts, while a kept mesh waits for them */
    int64_t until_ns;           /* when that wait ends */
    struct fault lost;          /* why the places last changed, or why the mesh is not whole */
};

/* A shard that a host has reported before the client has described the value. */
struct head_early {
    uint32_t host, shard;
    bool spilled;
};
struct head_object {
    uint64_t handle;
    size_t index;               /* in its client's list */
    struct program_value value; /* type and sharding */
    struct head_places *places; /* NULL: not known yet, or failed before it had any */
    int64_t shard_bytes;
    uint32_t pending; /* queued launches that take the value as an argument */
    uint32_t missing; /* shards that no host has reported yet */
    bool *there;      /* for each shard, whether it was reported; valid while some are missing */
    VEC(struct head_early) early;
    bool released, charged;
    bool spilled;            /* charged to the memory of its hosts, not of its devices */
    bool planned;            /* part of the plan in progress (head_spill.c) */
    uint32_t running;        /* running launches that take the value as an argument */
    struct list_node recent; /* of head.recent while the value is charged to devices */
    bool parked;             /* the client is suspended; the hosts of the places have saved the shards */
    /* The places from which missing shards are moving. NULL: the client puts them. */
    struct head_places *from;
    bool kept;        /* reported by a client that had another head before */
    uint64_t *births; /* expected births of the places' hosts, until the value is known to be whole */
    int64_t until_ns; /* how long to wait for vacant hosts of the places */
    uint64_t launch;  /* kept values: the launch that made the value, named in its fault; 0: it was put */
    bool rides;       /* the last launch that used the value carries the release to its hosts */
    int64_t broke_ns; /* when a connection broke that was to carry a shard, plus 1 ns; 0: none did */
    struct fault *fault;
};

/* The bytes that a launch reserves on one device. */
struct head_need {
    uint32_t host, device;
    int64_t bytes;
};

struct head_program {
    uint32_t id;
    struct program *program;
    bool lowered;
    uint32_t epoch;      /* the client's epoch when the plans were made */
    struct plan **plans; /* by host; NULL: the host has no part */
    uint32_t plan_count;
    struct head_need *needs;
    uint32_t need_count;
    VEC(uint32_t) islands; /* in ascending order */
    bool covers;           /* every host of the meshes has a plan, and so receives each launch */
    uint32_t references;   /* launches, queued or running */
    bool freed;
    uint64_t estimate_ns;         /* moving average of the device time of a launch */
    uint64_t launches, device_ns; /* of launches that are over */
    size_t bytes;                 /* of its text */
    char *wrong;                  /* why the program cannot be launched; NULL: it can */
};

struct head_launch {
    struct head_client *client;
    struct head_program *program;
    struct flow_entry entry;
    uint64_t *args;
    bool makes_room;   /* values must spill or fill before the launch is stamped */
    uint64_t no_room;  /* the head.room_epoch at which memory was too short; 0: not known to be */
    int64_t queued_ns; /* when memory was first too short for it; INT64_MAX: never */
    int64_t broke_ns;  /* when a connection within its gang broke, plus 1 ns; 0: none did */
    uint32_t broke[2]; /* the hosts at its two ends */
    uint64_t device_ns;
    int64_t arrived_ns, stamped_ns;
    bool lost; /* the gang has lost a member or a connection */
    /* Set when the launch is stamped. */
    VEC(uint32_t) hosts; /* that have not sent DONE */
    VEC(uint32_t) islands;
    struct head_need *needs;
    uint32_t need_count;
};

/* A function's name and text, for hosts that join later. */
struct head_function {
    uint64_t id;
    struct buf text;
};

/* A suspended client keeps its queued launches. Its values are saved, and its devices are free. */
enum head_client_state {
    CLIENT_RUNS,
    CLIENT_DRAINS, /* no launch gets a ticket; the running launches and puts end */
    CLIENT_SAVES,  /* hosts write the client's values outside memory */
    CLIENT_SUSPENDED,
};

/* The device use of all clients of one name. Accounts live as long as the head. */
struct head_account {
    char name[STATUS_NAME_MAX + 1];
    uint32_t clients; /* connected */
    uint64_t launches, failed, device_ns;
};

struct head_client {
    uint32_t id;
    struct head_account *account; /* NULL: the client has yet to connect to this head */
    uint64_t launches, device_ns; /* of launches that are over */
    uint64_t peer;
    uint32_t weight;
    int32_t priority;
    uint32_t epoch;                       /* raised whenever the places of one of its meshes change */
    uint64_t token, pass, finished, told; /* pass: stride scheduling; finished: launches; told: in PROGRESS */
    uint64_t last_launch, last_put;       /* highest numbers used */
    uint64_t kept_launch;                 /* the last launch under an earlier head */
    uint64_t queued_args, text_bytes;
    bool gone;
    bool away;        /* known from a worker's report; the client has yet to connect to this head */
    bool tells;       /* the client is reporting its state from before this head */
    bool broke;       /* some of its values have broke_ns set */
    int64_t until_ns; /* when a client that is away counts as lost */
    enum head_client_state state;
    bool stopped;             /* the client has answered SUSPEND: no more values will be put */
    uint32_t suspension;      /* number of the last suspension */
    int64_t suspend_until_ns; /* when a suspension that has not completed is reverted */
    VEC(uint32_t) savers;     /* hosts that have yet to answer SAVE */
    uint64_t saved_bytes;     /* by the last suspension */
    uint32_t next_mesh;
    uint32_t running; /* launches */
    VEC(struct head_launch *) queue;
    size_t queue_first; /* index of the first launch that is still queued */
    struct u64_map objects, programs;
    VEC(struct head_function) functions;
    VEC(struct head_object *) object_list;
    VEC(struct head_program *) program_list;
};

/* A connection that reads the status, records traces, or suspends and resumes clients. */
struct head_watcher {
    uint64_t peer;
    bool traces, ends; /* ends: the trace ends once every host has answered `epoch` */
    uint32_t epoch;
    struct head_account *suspends; /* the account whose suspension it awaits; NULL: none */
    struct fault fault;            /* why a client of that account was not suspended */
};

struct head {
    struct head_options options;
    VEC(struct head_account *) accounts;
    VEC(struct head_watcher) watchers;
    struct trace_list traced; /* records of the head itself */
    uint32_t trace_epoch;
    struct flow_status_tally tally;
    struct flow_histogram waits, times;
    int64_t began_ns;
    VEC(struct head_host) hosts;
    VEC(struct head_island) islands;
    VEC(struct head_mesh *) meshes;
    VEC(struct head_client *) clients;
    VEC(struct head_launch *) running;
    struct u64_map mesh_index, peer_index; /* client << 32 | mesh id → mesh; peer → client */
    struct u64_map tokens; /* peer that has yet to send HELLO → its token, cast to a pointer */
    uint64_t mark;
    struct list_node recent; /* values charged to devices, the least recently used first */
    uint64_t spilled;        /* number of values charged to hosts */
    uint64_t room_epoch;     /* raised whenever a launch that lacked memory may have become possible */
    uint32_t next_client, device_count;
    struct u64_map ended; /* numbers of clients that have ended, each mapped to itself: never given again */
    uint32_t suspending;  /* clients in CLIENT_DRAINS or CLIENT_SAVES */
    int64_t now_ns;
};

/* Functions that take an entry handle that message of the client or host; most answer with effects. Pointers
 * to clients, hosts, meshes, objects and programs are valid until they end; none is owned by the caller. */

/* head_mesh.c */
/* Handles MESH_NEW and MESH_SLICE. The answer is a MESH, or FAILED with the reason. */
void head_mesh_new(struct head *head, struct head_client *client, const struct flow_entry *entry,
                   struct str tail, struct flow_effects *effects);
void head_mesh_slice(struct head *head, struct head_client *client, const struct flow_entry *entry,
                     struct str tail, struct flow_effects *effects);
/* Marks a mesh freed, and ends it once it has no slices left; then also its parents that waited for this. */
void head_mesh_free(struct head *head, struct head_mesh *mesh);
/* Returns `count` places on no host, with one reference. */
struct head_places *head_places_new(uint32_t count);
/* Returns whether the client has fewer than HEAD_CLIENT_MESHES_MAX meshes and slices. */
bool head_mesh_may_add(const struct head *head, const struct head_client *client);
/* Enters a mesh into the tables of the head, which owns it from then on. Numbers it if its id is 0. */
void head_mesh_add(struct head *head, struct head_client *client, struct head_mesh *mesh);
/* Makes the slice of `shape` at `start` of its parent; the caller enters it with head_mesh_add. */
struct head_mesh *head_mesh_part(const struct head *head, struct head_mesh *parent, const uint32_t *start,
                                 const struct flow_mesh *shape);
/* Returns whether the place is on a live host. */
bool head_place_alive(const struct head *head, struct lower_place place);
/* Returns whether the mesh, or the root mesh of a slice, is parked. */
bool head_mesh_parked(const struct head_mesh *mesh);
/* Frees the devices of a mesh that is not a slice. The mesh keeps its places as a record. */
void head_mesh_park(struct head *head, struct head_mesh *mesh);
/* Places a parked mesh on the least loaded devices of its island, and prefers its old devices among equals.
 * Returns false if some virtual devices found no device. */
bool head_mesh_unpark(struct head *head, struct head_mesh *mesh);
/* Copies the parent's places into a slice, whose places no one may share, and sets `whole`. */
void head_slice_place(const struct head *head, struct head_mesh *slice);
/* Adds a MESH to the client, and returns the effect, valid until the next one is added. */
struct flow_effect *head_mesh_tell(const struct head *head, const struct head_client *client,
                                   const struct head_mesh *mesh, uint64_t request,
                                   struct flow_effects *effects);
/* Frees a mesh at once, even if slices of it remain. */
void head_mesh_end(struct head *head, struct head_mesh *mesh);
/* Gives new places to the virtual devices that are on lost hosts or on none, and informs the clients. `why`
 * becomes the reason of the change; NULL: the old reasons stay. */
void head_mesh_remap(struct head *head, const struct fault *why, struct flow_effects *effects);
/* Returns NULL if the client has no such mesh, or has freed it. */
struct head_mesh *head_mesh_of(struct head *head, uint32_t client, uint32_t id);
struct head_places *head_places_ref(struct head_places *places);
void head_places_unref(struct head_places *places);

/* head_launch.c */
/* Handles PROGRAM. An invalid program fails the launches that name it. */
void head_program(struct head *head, struct head_client *client, const struct flow_entry *entry,
                  struct str tail);
/* Takes a freed program out of the client's table. Ends it here and on the workers if no launch needs it. */
void head_program_rest(struct head *head, struct head_client *client, struct head_program *program,
                       struct flow_effects *effects);
/* Counts `bytes` of text against the client's bound. Returns false, and counts nothing, if they exceed it. */
bool head_client_pays(struct head_client *client, size_t bytes);
/* Handles LAUNCH: queues it. A launch beyond the client's bounds fails; one that breaks the protocol ends the
 * connection. */
void head_launch(struct head *head, struct head_client *client, const struct flow_entry *entry,
                 struct str tail, struct flow_effects *effects);
/* Stamps every launch that can start now, and fails those that never can. Called at the end of each step. */
void head_schedule(struct head *head, struct flow_effects *effects);
/* Raises the client's pass to that of the islands: an idle client accumulates no claim to device time. */
void head_client_comes_back(const struct head *head, struct head_client *client);
/* Sends PROGRESS to each client that has launches ended since its last one. Called at each tick. */
void head_tell_progress(struct head *head, struct flow_effects *effects);
/* Handles DONE of a host. A launch ends with the last DONE of its gang. */
void head_done(struct head *head, uint32_t host, const struct flow_entry *entry,
               struct flow_effects *effects);
/* Fails the running launches that have the lost host in their gang. */
void head_host_lost(struct head *head, uint32_t host, const struct fault *fault,
                    struct flow_effects *effects);
/* Frees the queued launches of a client that has ended, without a message: they have no tickets yet. */
void head_client_drop_queue(struct head *head, struct head_client *client);
/* Frees a client without queued or running launches and without objects. */
void head_client_free(struct head_client *client);

/* head.c */
/* Returns NULL if no client has that number. */
struct head_client *head_client_of(const struct head *head, uint32_t id);
struct head_client *head_client_new(struct head *head, uint32_t id, uint64_t token);
/* Returns the number of the island, which is added if it is new. The name has at most 63 bytes. */
uint32_t head_island_named(struct head *head, struct str name);
/* Ends a client with its queue, values and meshes. Its running launches end first; it is freed after them. */
void head_client_gone(struct head *head, struct head_client *client, struct flow_effects *effects);
/* Sends HOST of host `h` to the peer. */
void head_tell_host(const struct head *head, uint32_t h, uint64_t peer, struct flow_effects *effects);

/* Sends CLIENT to the peer. */
void head_tell_client(const struct head_client *client, uint64_t peer, struct flow_effects *effects);

/* head_rejoin.c: the state from before this head, as workers and clients report it */
/* Returns the client that a HELLO_CLIENT with ENTRY_IS_KEPT names, or NULL if the HELLO has no such claim, or
 * its token is not the client's. */
struct head_client *head_client_claim(struct head *head, const struct flow_entry *hello);
/* Handles CLIENT of a worker: it had that client before, or (client 0) its report is complete. */
void head_client_known(struct head *head, uint32_t host, const struct flow_entry *entry,
                       struct flow_effects *effects);
/* Handle MESH, VALUE with ENTRY_IS_KEPT, and PROGRESS, by which a client reports. */
void head_mesh_kept(struct head *head, struct head_client *client, const struct flow_entry *entry,
                    struct str tail);
void head_value_kept(struct head *head, struct head_client *client, const struct flow_entry *entry,
                     struct str tail, struct flow_effects *effects);
void head_client_told_all(struct head *head, struct head_client *client, const struct flow_entry *entry,
                          struct flow_effects *effects);
/* Returns the birth of each place's host, for a mesh that waits. The caller frees the array. */
uint64_t *head_mesh_births(const struct head_mesh *mesh, int64_t *ret_until_ns);
/* Returns whether the mesh, or the root mesh of a slice, waits for hosts to rejoin. */
bool head_mesh_waits(const struct head_mesh *mesh);
/* Settles the meshes, values and clients whose awaited hosts or connections have joined or are overdue. */
void head_rejoin(struct head *head, struct flow_effects *effects);

/* Sends LOST to the hosts that have not sent DONE for the launch. */
void head_launch_tell_lost(const struct head *head, const struct head_launch *launch,
                           const struct fault *fault, struct flow_effects *effects);

/* head_break.c: broken connections between two other parties */
/* A host reports that its connection to another host broke. */
void head_hosts_broke(struct head *head, uint32_t host, uint32_t other);
/* A client reports that its connection to a host broke. */
void head_client_broke(struct head *head, struct head_client *client, uint32_t host);
/* Ends the launches, puts and moves whose connection broke HEAD_BREAK_NS ago between parties that still
 * live. */
void head_judge_broken(struct head *head, struct flow_effects *effects);

/* head_suspend.c: clients that give up their devices for a while */
/* Handle SUSPEND and RESUME of a watcher. */
void head_suspend(struct head *head, struct head_watcher *watcher, const struct flow_event *event,
                  struct flow_effects *effects);
void head_resume(struct head *head, const struct head_watcher *watcher, const struct flow_event *event,
                 struct flow_effects *effects);
/* Handles the client's answer to SUSPEND: no more values will be put. */
void head_client_stopped(struct head_client *client, const struct flow_entry *entry);
/* Handles a host's answer to SAVE. */
void head_saved(struct head *head, uint32_t host, const struct flow_event *event,
                struct flow_effects *effects);
/* Stops waiting for the SAVE answers of a lost host. */
void head_suspend_host_lost(struct head *head, uint32_t host);
/* Ends the suspension of a client that has ended. */
void head_suspend_end(struct head *head, struct head_client *client);
/* Advances suspensions, reverts overdue ones, and answers watchers. Called after each event. */
void head_suspend_go(struct head *head, struct flow_effects *effects);

/* head_watch.c: watchers, accounts, traces */
/* Returns NULL if no client has had that name. */
struct head_account *head_account_find(const struct head *head, struct str name);
/* Enters a client that has sent HELLO in the account of its name. */
void head_account_open(struct head *head, struct head_client *client, struct str name,
                       struct flow_effects *effects);
void head_account_close(struct head_client *client);
/* Counts a launch that is over. It `failed` if it got no ticket, or if its gang lost a member. */
void head_account_launch(struct head *head, const struct head_launch *launch, bool failed,
                         struct flow_effects *effects);
/* Handles HELLO_WATCH. */
void head_watch_hello(struct head *head, uint64_t peer, struct flow_effects *effects);
/* Handles a message of a watcher. Returns false, and does nothing, if the peer is not a watcher. */
bool head_watch_entry(struct head *head, const struct flow_event *event, struct flow_effects *effects);
/* Forgets the peer if it is a watcher. */
void head_watch_closed(struct head *head, uint64_t peer, struct flow_effects *effects);
/* Sends the name of a new function to the watchers that trace. */
void head_watch_function(const struct head *head, const struct head_client *client,
                         const struct head_function *function, struct flow_effects *effects);
/* Informs the watchers that trace, and the host itself, when a host has joined or is lost. */
void head_watch_host(struct head *head, uint32_t host, struct flow_effects *effects);
void head_watch_tick(struct head *head, struct flow_effects *effects);
/* Handle LOAD and TRACE of a host. */
void head_load(struct head *head, uint32_t host, const struct flow_entry *entry, struct str tail);
void head_trace(struct head *head, uint32_t host, const struct flow_event *event,
                struct flow_effects *effects);
void head_watch_free(struct head *head);

/* head_spill.c: values that move to host memory and return */
/* Charges a new value to the devices of its places, or to host memory if a device is full. Returns false, and
 * charges nothing, if neither has the space; *ret_fault then names the device. */
bool head_object_admit(struct head *head, struct head_object *object, struct fault *ret_fault);
/* Charges a kept value where its hosts report it. A value that its devices cannot hold is spilled if its
 * hosts have the space, and is charged to the devices in any case otherwise. */
void head_object_admit_kept(struct head *head, struct head_object *object, struct flow_effects *effects);
/* Sends SPILL of the value to the hosts of its places. */
void head_object_tell_spilled(const struct head *head, const struct head_object *object,
                              struct flow_effects *effects);
/* Returns whether each device of the gang has the memory for the launch now, or would have it after other
 * values are spilled. Sets launch->makes_room in the second case. */
bool head_launch_finds_room(struct head *head, struct head_launch *launch);
/* Returns whether a device lacks memory for the launch, with the reason in *ret_fault. Sets *ret_never if a
 * device is too small even when empty. */
bool head_launch_lacks(const struct head *head, const struct head_launch *launch, bool *ret_never,
                       struct fault *ret_fault);
/* Spills and fills values for a launch that makes room. Returns false, and moves nothing, if this has become
 * impossible since head_launch_finds_room. */
bool head_launch_make_room(struct head *head, struct head_launch *launch, struct flow_effects *effects);
/* Marks the arguments of a launch that is being stamped as in use, and as the most recently used. */
void head_launch_use_args(struct head *head, struct head_launch *launch);
/* Ends the use of the arguments when the launch is over. */
void head_launch_end_use(struct head *head, const struct head_launch *launch);

/* head_object.c */
/* Sends FAILED of one value to its client. */
void head_value_fail(const struct head_client *client, uint64_t handle, const struct fault *fault,
                     struct flow_effects *effects);
/* Accounts for the shards that were reported before their value. Releases them if the value has no places. */
void head_value_take_early(struct head *head, struct head_object *object, struct flow_effects *effects);
/* Enters a value of a new handle into the client's table, without places and not charged. */
struct head_object *head_object_new(struct head_client *client, uint64_t handle,
                                    const struct program_value *value);
/* Charges the value's bytes to its devices, or to its hosts if it is spilled; takes the charge back. */
void head_object_charge(struct head *head, struct head_object *object);
void head_object_uncharge(struct head *head, struct head_object *object);
/* Adds (sign 1) or subtracts (sign -1) the value's bytes in idle_bytes of its devices, if it is charged to
 * them and no running launch takes it. Called before (-1) and after (1) each change of these conditions. */
void head_object_count_idle(const struct head *head, const struct head_object *object, int sign);
/* Marks all shards of a whole value as missing. Each one arrives, from its place in `object->from`, with a
 * PUT_DONE. */
void head_object_moves(struct head_object *object);
/* Fails a value, and informs its client unless the value had failed before. */
void head_object_fail(const struct head_client *client, struct head_object *object, const struct fault *fault,
                      struct flow_effects *effects);
/* Sends RELEASE to the hosts that have shards, unless a launch carries it, and ends the value. */
void head_object_release(struct head *head, struct head_client *client, struct head_object *object,
                         struct flow_effects *effects);
/* Frees the value, with its charge, without a message. */
void head_object_end(struct head *head, struct head_client *client, struct head_object *object);
/* Handles VALUE: the client is about to put the value. */
void head_value(struct head *head, struct head_client *client, const struct flow_entry *entry,
                struct str tail, struct flow_effects *effects);
/* Handles PUT_DONE of a host. */
void head_put_done(struct head *head, uint32_t host, const struct flow_entry *entry,
                   struct flow_effects *effects);
/* Releases the value if its client has released it, no queued launch names it, and no shard is on its way. */
void head_object_try_release(struct head *head, struct head_client *client, struct head_object *object,
                             struct flow_effects *effects);
/* Fails the incomplete values that have a place on the lost host, or shards that were moving from it. */
void head_objects_lost(struct head *head, uint32_t host, const struct fault *fault,
                       struct flow_effects *effects);

#endif
