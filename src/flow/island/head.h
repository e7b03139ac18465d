/* head.h - the state of the head; private to src/flow/island.
 *
 * A host keeps its number for ever; one that comes back at the same address is a new host of the next
 * incarnation. Devices are numbered over all hosts, in the order in which they came.
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
    HEAD_CLIENT_LAUNCHES_MAX = 65536, /* queued launches of one client: the library stops long before */
    HEAD_PROGRESS_EVERY = 64,
    /* Bounds of one client: beyond them launches, puts and meshes fail, and functions and programs are not
     * kept. */
    HEAD_CLIENT_OBJECTS_MAX = 1 << 20,
    HEAD_CLIENT_ARGS_MAX = 1 << 22, /* arguments of queued launches */
    HEAD_CLIENT_MESHES_MAX = 4096,
    HEAD_CLIENT_TEXTS_MAX = 1 << 16,      /* functions and programs, each */
    HEAD_CLIENT_TEXT_BYTES_MAX = 1 << 30, /* of both together */
    HEAD_ADDRESS_MAX = 511,
    STRIDE_UNIT = 1 << 20,
};
#define HEAD_MEMORY_WAIT_NS   (INT64_C(10) * 1000 * 1000 * 1000)
/* How long a host may take to be seen lost after a connection to it broke. */
#define HEAD_BREAK_NS         (INT64_C(2) * 1000 * 1000 * 1000)
#define HEAD_REJOIN_NS        (INT64_C(10) * 1000 * 1000 * 1000)
#define HEAD_DEVICE_NS_MAX    (UINT64_C(3600) * 1000 * 1000 * 1000)
#define NS_OF_UNKNOWN_PROGRAM (INT64_C(100) * 1000)

struct head_device {
    uint32_t load; /* virtual devices on it */
    uint64_t mark; /* head.mark: the mesh that is being placed has it */
    int64_t used_bytes;
    int64_t idle_bytes;                /* of values that no launch under way takes */
    int64_t wanted_bytes, short_bytes; /* of the plan that is being made (head_spill.c); 0 otherwise */
    uint64_t busy_ns; /* of its worker's last word */
    uint32_t queued;
};
struct head_host {
    uint64_t peer;
    bool alive;
    bool vacant;   /* has yet to come back to a head that takes the place of a lost one */
    bool told_all; /* what it has from before */
    uint64_t birth;
    uint32_t island, incarnation, first_device, device_count;
    int64_t device_bytes;
    int64_t host_bytes, spilled_bytes;      /* its memory for spilled shards; their bytes */
    int64_t arriving_bytes;                 /* of the plan that is being made; 0 otherwise */
    uint64_t spilled_in_all, filled_in_all; /* bytes, since it came */
    uint64_t place; /* in the memory of its machine; 0: none */
    char *address;
    struct head_device *devices;
    uint64_t load[LOAD_NUMBERS]; /* its worker's last word */
    uint32_t trace_epoch;        /* of the last word about tracing that it has answered */
};
struct head_island {
    char name[64];
    uint64_t next_ticket; /* the next one to stamp, from 1 */
    uint32_t running;     /* stamped and not over */
    bool full;            /* waits until half of the window is through */
    uint64_t pass;        /* of the launch stamped last: where newcomers start */
};

/* Where the virtual devices of a mesh were at one time; shared by objects made then. */
struct head_places {
    uint32_t references, count;
    struct lower_place places[];
};
struct head_mesh {
    uint32_t id, client, island;
    struct flow_mesh shape;
    uint32_t epoch; /* of its last change */
    struct head_places *places;
    struct head_mesh *parent; /* of a slice */
    uint32_t slices;          /* children that are not freed */
    uint32_t *of_parent;      /* a slice: numbers of its devices in the parent */
    uint32_t moved;           /* client's epoch when its values moved along with it last */
    bool freed, whole;        /* whole: every place is on a live host */
    bool parked;              /* its client is suspended: it loads no device. False of slices */
    struct head_places *before; /* while it is resumed: where it was; NULL otherwise */
    bool was_whole;             /* there */
    uint64_t *births;         /* of the places' hosts, while a kept mesh waits for them */
    int64_t until_ns;         /* how long it waits */
    struct fault lost;        /* why it last changed, or is not whole */
};

/* A shard that was there before its client's word of the value. */
struct head_early {
    uint32_t host, shard;
    bool spilled;
};
struct head_object {
    uint64_t handle;
    size_t index;               /* in its client's list */
    struct program_value value; /* type and sharding */
    struct head_places *places; /* NULL: failed before it had any */
    int64_t shard_bytes;
    uint32_t pending; /* queued launches that name it */
    uint32_t missing; /* shards that its client has yet to put */
    bool *there;      /* of each shard, while some are missing */
    VEC(struct head_early) early;
    bool released, charged;
    bool spilled;            /* in the memory of its hosts, none of a device's */
    bool planned;            /* the plan that is being made names it */
    uint32_t running;        /* launches under way that have it as an argument */
    struct list_node recent; /* of head.recent while it is charged to devices */
    bool parked; /* its client is suspended: saved by the hosts of its places */
    /* Where its shards are that are not there yet: they move from these places. NULL: they do not. */
    struct head_places *from;
    bool kept;        /* from before this head */
    uint64_t *births; /* of the places' hosts, while it is not known to be whole */
    int64_t until_ns;
    uint64_t launch; /* that made it, for those who are told that it is lost */
    bool rides; /* hosts are told of the release by the launch that used it last */
    int64_t broke_ns; /* when its client's connection to a host broke that lacks a shard; 0: none did */
    struct fault *fault;
};

/* Bytes that a launch reserves on one device. */
struct head_need {
    uint32_t host, device;
    int64_t bytes;
};

struct head_program {
    uint32_t id;
    struct program *program;
    bool lowered;
    uint32_t epoch;      /* of its plans */
    struct plan **plans; /* of each host, NULL where it has no part */
    uint32_t plan_count;
    struct head_need *needs;
    uint32_t need_count;
    VEC(uint32_t) islands; /* in ascending order */
    bool covers;           /* every host of its meshes has a plan, and so gets each launch */
    uint32_t references;   /* launches */
    bool freed;
    uint64_t estimate_ns; /* of its device time */
    uint64_t launches, device_ns; /* over */
    size_t bytes;         /* of its text */
    char *wrong;          /* why it cannot be launched */
};

struct head_launch {
    struct head_client *client;
    struct head_program *program;
    struct flow_entry entry;
    uint64_t *args;
    bool makes_room;  /* its arguments are spilled in part, or others must be for it */
    uint64_t no_room; /* head.room_epoch when there was none for it; 0: not looked for */
    int64_t queued_ns;
    int64_t broke_ns;  /* when a connection inside its gang broke; 0: none did */
    uint32_t broke[2]; /* between these hosts */
    uint64_t device_ns;
    int64_t arrived_ns, stamped_ns;
    bool lost; /* with a member of its gang */
    /* once stamped */
    VEC(uint32_t) hosts; /* that have not said DONE */
    VEC(uint32_t) islands;
    struct head_need *needs;
    uint32_t need_count;
};

/* The text of a function, for hosts that come later. */
struct head_function {
    uint64_t id;
    struct buf text;
};

/* A suspended client keeps its place in the queue; its values are saved, and its devices are free. */
enum head_client_state {
    CLIENT_RUNS,
    CLIENT_DRAINS, /* no launch gets a ticket, until what is under way is over */
    CLIENT_SAVES,  /* hosts write its values outside memory */
    CLIENT_SUSPENDED,
};

/* The use of devices by all clients of one name; kept as long as the head lives. */
struct head_account {
    char name[STATUS_NAME_MAX + 1];
    uint32_t clients; /* connected */
    uint64_t launches, failed, device_ns;
};

struct head_client {
    uint32_t id;
    struct head_account *account; /* NULL: it has yet to say HELLO to this head */
    uint64_t launches, device_ns; /* over */
    uint64_t peer;
    uint32_t weight;
    int32_t priority;
    uint32_t epoch; /* raised whenever one of its meshes changes */
    uint64_t token, pass, finished, told;
    uint64_t last_launch, last_put; /* numbers that it has used */
    uint64_t kept_launch;           /* the last one of a head before */
    uint64_t queued_args, text_bytes;
    bool gone;
    bool away;        /* a worker has told of it, and it has yet to come */
    bool tells;       /* what there is from before */
    bool broke;       /* a connection to a host while a value was put */
    int64_t until_ns; /* how long it may be away */
    enum head_client_state state;
    bool stopped;             /* has answered that it puts nothing more */
    uint32_t suspension;      /* number of the last one */
    int64_t suspend_until_ns; /* how long it may take */
    VEC(uint32_t) savers;     /* hosts that have yet to answer SAVE */
    uint64_t saved_bytes;     /* by the last suspension */
    uint32_t next_mesh;
    uint32_t running;
    VEC(struct head_launch *) queue;
    size_t queue_first; /* items before it have left */
    struct u64_map objects, programs;
    VEC(struct head_function) functions;
    VEC(struct head_object *) object_list;
    VEC(struct head_program *) program_list;
};

/* A connection that looks at the head. */
struct head_watcher {
    uint64_t peer;
    bool traces, ends; /* ends: some hosts have yet to answer `epoch` */
    uint32_t epoch;
    struct head_account *suspends; /* NULL: it waits for no suspension */
    struct fault fault;            /* why a client of it runs on */
};

struct head {
    struct head_options options;
    VEC(struct head_account *) accounts;
    VEC(struct head_watcher) watchers;
    struct trace_list traced; /* of the head itself */
    uint32_t trace_epoch;
    struct flow_status_tally tally;
    struct flow_histogram waits, times;
    int64_t began_ns;
    VEC(struct head_host) hosts;
    VEC(struct head_island) islands;
    VEC(struct head_mesh *) meshes;
    VEC(struct head_client *) clients;
    VEC(struct head_launch *) running;
    struct u64_map mesh_index, peer_index; /* mesh id; peer → client */
    struct u64_map tokens; /* peer that has yet to say who it is → its token, as a pointer */
    uint64_t mark;
    struct list_node recent; /* values charged to devices, the one least recently used first */
    uint64_t spilled;        /* values charged to hosts */
    uint64_t room_epoch;     /* raised whenever there may be more room */
    uint32_t next_client, device_count;
    uint32_t suspending; /* clients that drain or save */
    int64_t now_ns;
};

/* head_mesh.c */
void head_mesh_new(struct head *head, struct head_client *client, const struct flow_entry *entry,
                   struct str tail, struct flow_effects *effects);
void head_mesh_slice(struct head *head, struct head_client *client, const struct flow_entry *entry,
                     struct str tail, struct flow_effects *effects);
void head_mesh_free(struct head *head, struct head_mesh *mesh);
struct head_places *head_places_new(uint32_t count);
/* Enters a mesh into the tables; false: its client has too many. */
bool head_mesh_may_add(const struct head *head, const struct head_client *client);
void head_mesh_add(struct head *head, struct head_client *client, struct head_mesh *mesh);
struct head_mesh *head_mesh_part(const struct head *head, struct head_mesh *parent, const uint32_t *start,
                                 const struct flow_mesh *shape);
bool head_place_alive(const struct head *head, struct lower_place place);
/* Whether the mesh, or the one that it is a part of, is parked. */
bool head_mesh_parked(const struct head_mesh *mesh);
/* Takes the devices of a mesh that is no slice off it, and puts it on the least loaded ones again, its old
 * ones where those are as free. False: not every device has a place. */
void head_mesh_park(struct head *head, struct head_mesh *mesh);
bool head_mesh_unpark(struct head *head, struct head_mesh *mesh);
void head_slice_place(const struct head *head, struct head_mesh *slice);
/* Returns the MESH that it adds. */
struct flow_effect *head_mesh_tell(const struct head *head, const struct head_client *client,
                                   const struct head_mesh *mesh, uint64_t request,
                                   struct flow_effects *effects);
void head_mesh_end(struct head *head, struct head_mesh *mesh); /* with no look at slices */
/* Gives the virtual devices that are on dead hosts, or nowhere, new places; tells the clients. */
void head_mesh_remap(struct head *head, const struct fault *why, struct flow_effects *effects);
struct head_mesh *head_mesh_of(struct head *head, uint32_t client, uint32_t id); /* NULL: none of it */
struct head_places *head_places_ref(struct head_places *places);
void head_places_unref(struct head_places *places);

/* head_launch.c */
void head_program(struct head *head, struct head_client *client, const struct flow_entry *entry,
                  struct str tail);
/* Ends a program that has been freed and has no launch left, here and on the workers. */
void head_program_rest(struct head *head, struct head_client *client, struct head_program *program,
                       struct flow_effects *effects);
/* Whether a client may have a text of so many bytes more; counts them. */
bool head_client_pays(struct head_client *client, size_t bytes);
void head_launch(struct head *head, struct head_client *client, const struct flow_entry *entry,
                 struct str tail, struct flow_effects *effects);
void head_schedule(struct head *head, struct flow_effects *effects);
/* A client that has had nothing to do has not saved up the time. */
void head_client_comes_back(const struct head *head, struct head_client *client);
/* Tells each client of the launches that are over and that it has not heard of; at each tick. */
void head_tell_progress(struct head *head, struct flow_effects *effects);
void head_done(struct head *head, uint32_t host, const struct flow_entry *entry,
               struct flow_effects *effects);
void head_host_lost(struct head *head, uint32_t host, const struct fault *fault,
                    struct flow_effects *effects);
void head_client_drop_queue(struct head *head, struct head_client *client);
void head_client_free(struct head_client *client);

/* head.c */
struct head_client *head_client_of(const struct head *head, uint32_t id); /* NULL: none */
struct head_client *head_client_new(struct head *head, uint32_t id, uint64_t token);
uint32_t head_island_named(struct head *head, struct str name);
void head_client_gone(struct head *head, struct head_client *client, struct flow_effects *effects);
void head_tell_host(const struct head *head, uint32_t h, uint64_t peer, struct flow_effects *effects);

void head_tell_client(const struct head_client *client, uint64_t peer, struct flow_effects *effects);

/* head_rejoin.c: what is from before this head */
struct head_client *head_client_claim(struct head *head, const struct flow_entry *hello);
void head_client_known(struct head *head, uint32_t host, const struct flow_entry *entry,
                       struct flow_effects *effects);
void head_mesh_kept(struct head *head, struct head_client *client, const struct flow_entry *entry,
                    struct str tail);
void head_value_kept(struct head *head, struct head_client *client, const struct flow_entry *entry,
                     struct str tail, struct flow_effects *effects);
void head_client_told_all(struct head *head, struct head_client *client, const struct flow_entry *entry,
                          struct flow_effects *effects);
/* Returns the births of the hosts for which a mesh waits; the caller frees them. */
uint64_t *head_mesh_births(const struct head_mesh *mesh, int64_t *ret_until_ns);
bool head_mesh_waits(const struct head_mesh *mesh);
/* Settles what has waited for hosts that have come, or will not. */
void head_rejoin(struct head *head, struct flow_effects *effects);

/* Tells the hosts that are not through with the launch that it is lost. */
void head_launch_tell_lost(const struct head *head, const struct head_launch *launch,
                           const struct fault *fault, struct flow_effects *effects);

/* head_break.c: connections between others */
void head_hosts_broke(struct head *head, uint32_t host, uint32_t other);
void head_client_broke(struct head *head, struct head_client *client, uint32_t host);
/* Ends what waits for messages that were lost on a connection. */
void head_judge_broken(struct head *head, struct flow_effects *effects);

/* head_suspend.c: clients that leave their devices for a while */
/* SUSPEND and RESUME of a watcher. */
void head_suspend(struct head *head, struct head_watcher *watcher, const struct flow_event *event,
                  struct flow_effects *effects);
void head_resume(struct head *head, const struct head_watcher *watcher, const struct flow_event *event,
                 struct flow_effects *effects);
/* SUSPEND of a client: it puts nothing more. */
void head_client_stopped(struct head_client *client, const struct flow_entry *entry);
/* SAVE of a host. */
void head_saved(struct head *head, uint32_t host, const struct flow_event *event,
                struct flow_effects *effects);
void head_suspend_host_lost(struct head *head, uint32_t host);
/* The client is gone. */
void head_suspend_end(struct head *head, struct head_client *client);
/* Goes on with suspensions, after each event. */
void head_suspend_go(struct head *head, struct flow_effects *effects);

/* head_watch.c: watchers, and what they are told */
/* NULL: no client has had that name. */
struct head_account *head_account_find(const struct head *head, struct str name);
/* Enters a client that has said HELLO in the account of its name. */
void head_account_open(struct head *head, struct head_client *client, struct str name,
                       struct flow_effects *effects);
void head_account_close(struct head_client *client);
/* Counts a launch that is over; `failed`: it had no ticket, or its gang lost a member. */
void head_account_launch(struct head *head, const struct head_launch *launch, bool failed,
                         struct flow_effects *effects);
void head_watch_hello(struct head *head, uint64_t peer, struct flow_effects *effects);
/* A message of a watcher; false: the peer is none. */
bool head_watch_entry(struct head *head, const struct flow_event *event, struct flow_effects *effects);
void head_watch_closed(struct head *head, uint64_t peer, struct flow_effects *effects);
/* A function has come: its name goes to those who trace. */
void head_watch_function(const struct head *head, const struct head_client *client,
                         const struct head_function *function, struct flow_effects *effects);
/* A host has come, or is gone. */
void head_watch_host(struct head *head, uint32_t host, struct flow_effects *effects);
void head_watch_tick(struct head *head, struct flow_effects *effects);
/* LOAD and TRACE of a host. */
void head_load(struct head *head, uint32_t host, const struct flow_entry *entry, struct str tail);
void head_trace(struct head *head, uint32_t host, const struct flow_event *event,
                struct flow_effects *effects);
void head_watch_free(struct head *head);

/* head_spill.c: values that make room on devices */
/* Finds the memory for a value that comes, and charges it: on the devices of its places, or else on their
 * hosts. False: *ret_fault says which device is full. */
bool head_object_admit(struct head *head, struct head_object *object, struct fault *ret_fault);
/* Charges a value from before this head as hosts have told of it; one that devices have no room for goes to
 * host memory if it can. */
void head_object_admit_kept(struct head *head, struct head_object *object, struct flow_effects *effects);
/* Tells the hosts of a spilled value that it is. */
void head_object_tell_spilled(const struct head *head, const struct head_object *object,
                              struct flow_effects *effects);
/* Whether each device of the gang has room for the launch, or would have once values have left it. Sets
 * launch->makes_room. */
bool head_launch_finds_room(struct head *head, struct head_launch *launch);
/* Whether the launch lacks room, with the reason in *ret_fault. *ret_never: a device could not hold it if it
 * were empty. */
bool head_launch_lacks(const struct head *head, const struct head_launch *launch, bool *ret_never,
                       struct fault *ret_fault);
/* Moves values so that the launch has room; false: there is none any more, and nothing has moved. */
bool head_launch_make_room(struct head *head, struct head_launch *launch, struct flow_effects *effects);
/* The launch is stamped: its arguments are in use, and so most recently. */
void head_launch_use_args(struct head *head, struct head_launch *launch);
/* The launch has ended: what it used is free for others. */
void head_launch_end_use(struct head *head, const struct head_launch *launch);

/* head_object.c */
void head_value_fail(const struct head_client *client, uint64_t handle, const struct fault *fault,
                     struct flow_effects *effects);
void head_value_take_early(struct head *head, struct head_object *object, struct flow_effects *effects);
struct head_object *head_object_new(struct head_client *client, uint64_t handle,
                                    const struct program_value *value);
void head_object_charge(struct head *head, struct head_object *object);
void head_object_uncharge(struct head *head, struct head_object *object);
/* Adds (sign 1) or takes off (-1) the value's bytes where it is on devices and no launch under way takes it:
 * before and after each change of that. */
void head_object_count_idle(const struct head *head, const struct head_object *object, int sign);
/* A shard of the value is missing: each of them comes with PUT_DONE, from `object->from`. */
void head_object_moves(struct head_object *object);
void head_object_fail(const struct head_client *client, struct head_object *object, const struct fault *fault,
                      struct flow_effects *effects);
void head_object_release(struct head *head, struct head_client *client, struct head_object *object,
                         struct flow_effects *effects);
void head_object_end(struct head *head, struct head_client *client, struct head_object *object);
void head_value(struct head *head, struct head_client *client, const struct flow_entry *entry,
                struct str tail, struct flow_effects *effects);
void head_put_done(struct head *head, uint32_t host, const struct flow_entry *entry,
                   struct flow_effects *effects);
void head_object_try_release(struct head *head, struct head_client *client, struct head_object *object,
                             struct flow_effects *effects);
void head_objects_lost(struct head *head, uint32_t host, const struct fault *fault,
                       struct flow_effects *effects);

#endif
