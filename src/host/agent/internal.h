/* internal.h - inside the agent's host.
 *   host.c      many machines on one loop: the timer, start and end
 *   machine.c   one machine: events in, effects out, its connections
 *   unreached.c when to report that no controller is reached
 *   seek.c      finds another leading controller while ours is silent
 *   cluster.c   the cluster that the machine belongs to
 *   tasks.c     real tasks: the launcher, start records, adoption
 *   sockets.c   a socket for each container; clients.c: connections of libphalanx at them
 *   logs.c      log streams
 *   paces.c     steps read from logs; steplines.c: from their lines; values.c: figures reported with steps
 *   tails.c     failure signatures from the end of a task's log
 *   exec.c      commands beside tasks
 *   probe*.c    probes and hooks of containers
 *   errand.c    errands of the controller: hooks, qualification
 *   injections.c  injected faults that are in force
 *   store.c     checkpoints in an object store
 *   user.c      the users of tasks; confine.c: what tasks may do and see
 *   volumes.c   volumes of tasks and where containers see them
 *   health.c    the machine's probes
 *   metrics.c   the agent's own metrics, over HTTP (host/http)
 *   faults.c    the socket at which daemons report faults; report.c its bodies
 *   usage.c     CPU and memory usage
 *   sim.c       simulated tasks
 */
#ifndef PHX_HOST_AGENT_INTERNAL_H
#define PHX_HOST_AGENT_INTERNAL_H

#include "base/heap.h"
#include "base/list.h"
#include "base/units.h"
#include "core/agent/agent.h"
#include "drive/agent.h"
#include "host/agent/agent_host.h"
#include "host/agent/unreached.h"
#include "host/launch/launch.h"
#include "host/wire/wire.h"
#include "job/checkpoint/retention.h"
#include "job/link/wire.h"

enum { PATH_BYTES = 512, CLIENTS_MAX = 4096, STREAMS_MAX = 256, CONNECT_OF_SEVERAL_MS = 1000 };

struct agent_host {
    uv_loop_t *loop;
    uv_timer_t timer;
    struct wire *wire;
    struct wire_tls *tls; /* NULL: none */
    char *controller, *address; /* address NULL: none */
    uint16_t port;
    struct local_place { /* the first is `controller` and `port` */
        char *controller;
        uint16_t port;
    } places[AGENT_HOST_CONTROLLERS_MAX];
    uint32_t place_count;
    bool simulate, quiet, announce, closing, probe_link_local;
    struct heap due;     /* machines, ordered by their next tick */
    struct heap sim_due; /* simulated tasks, ordered by their next act */
    int64_t armed_ns;    /* boottime for which the timer is set; INT64_MAX: not set */
    struct machine_shared *shared;
    struct local_machine *machines;
    uint32_t machine_count;
    uint64_t sim_sequence;
    int open_parts; /* handles and machines' parts that must close before the memory is freed */
    bool waiting_for_tasks;
    void (*closed)(void *context);
    void *closed_context;
};

struct sim_act {
    obj_id task;
    uint32_t container, run;
    enum container_act act;
};

/* Looks for another controller that leads (seek.c). */
struct local_seek {
    uint32_t unheard;       /* heartbeats since the controller's last message */
    uint32_t tried;         /* other controllers' addresses tried in this round */
    struct wire_conn *conn; /* the connection attempt; NULL: none is under way */
};

struct local_machine {
    uint32_t place; /* index of the controller that is connected to next */
    struct local_seek seek;
    struct agent_host *host;
    struct agent *agent;
    struct heap_node due;
    struct wire_conn *conn, *tether;
    struct machine_driver driver;
    bool booted;
    bool welcomed;                /* a controller has welcomed it since the last note that none is reached */
    struct unreached unreached;   /* in boottime */
    int kept_tether, next_tether; /* duplicated descriptors of tethers, -1: none; see drive/agent.h */
    char *name;
    struct live *live;          /* real tasks; NULL when simulated */
    struct list_node sim_tasks; /* simulated ones */
    VEC(struct sim_act) sim_acts;
    VEC(obj_id) sim_errands;          /* ended errands, reported after the effects */
    struct errand_end sim_errand_end; /* the end that is being reported */
};

/* Identifies the file at a path; inode 0: no file existed. */
struct file_mark {
    uint64_t device, inode;
};

struct failed_launch {
    uint64_t task;
    uint32_t container, run;
    char text[ERROR_TEXT_MAX];
};

/* The user ids of tasks (user.c); choose false: tasks run as the agent's own user. */
struct task_users {
    int64_t from, to, group;
    bool choose, fixed, allow_root;
    bool as_agent; /* tasks run as root unless they ask for another user */
};

struct live {
    struct local_machine *machine;
    struct launcher *launcher;
    char directory[PATH_BYTES];
    VEC(struct failed_launch) failed; /* reported as TASK_EXITED after the effects */
    struct failed_launch said;        /* the one that is being reported */
    VEC(uint64_t) running; /* local_container_uid of containers with a process, as the launcher reported */
    bool adopting, logging;
    /* state.c */
    uv_timer_t state_timer;
    bool state_watched, state_fault;
    struct file_mark faults_mark;
    struct list_node sockets; /* sockets.c */
    /* clients.c */
    struct list_node clients;
    size_t client_count;
    uint64_t next_client;
    int64_t refused_ns; /* boottime of the last note about a refused process; 0: none */
    /* logs.c */
    uv_timer_t log_timer;
    struct list_node streams;
    size_t stream_count;
    /* paces.c */
    uv_timer_t pace_timer;
    struct list_node paces;
    bool pacing;
    /* exec.c */
    struct list_node execs;
    size_t exec_count;
    char *volumes_dir; /* of claims; NULL: none */
    char *memory_dir;  /* memory.c; NULL: tasks hold no checkpoints in memory */
    uv_timer_t memory_timer;
    struct store_keeper *store; /* store.c; NULL: none */
    uint64_t log_bytes; /* of each container's log; see agent_host.h */
    uint32_t log_files;
    /* probe.c */
    struct list_node probes;
    size_t probe_count;
    struct list_node errands;  /* errand.c */
    char *hooks_dir;           /* NULL: the default */
    bool injection;            /* errands may inject faults */
    bool injecting;            /* injections.c: its timer is open */
    uv_timer_t injection_timer;
    struct usage_meter *meter;   /* usage.c; NULL: nothing measured yet */
    struct health_watch *health; /* health.c; NULL: no probes */
    struct agent_metrics *metrics; /* metrics.c */
    struct fault_door *fault_door; /* faults.c; NULL: closed */
    uint32_t chips;
    struct task_users users;
    bool isolation_off, isolation_required; /* confine.c */
    int mounts_refused;                     /* errno of the refusal; 0: tasks may have their own mounts */
    bool own_roots;                         /* root.c: tasks have their own root file systems */
    bool seccomp;                           /* confine.c */
    VEC(char *) hidden;
};

/* host.c */
int64_t local_boot_ns(void);
int64_t local_wall_ns(void);
void local_arm(struct agent_host *host);
/* Counts one of open_parts as closed; the last one frees the host. */
void local_part_closed(struct agent_host *host);
void local_tasks_ended(struct agent_host *host); /* the last running task has ended */

/* machine.c */
void local_step(struct local_machine *machine, struct agent_event event);
void local_note(const struct local_machine *machine, struct str text);
/* As local_note, printed by a quiet agent too. */
void local_warn(const struct local_machine *machine, struct str text);
/* Returns the address of the controller at a place, without TLS. */
struct wire_target local_machine_target(const struct local_machine *machine, uint32_t place,
                                        char ret_source[32]);
void local_machine_drive(struct local_machine *machine); /* starts its driver, after its agent was made */
void local_close_tethers(struct local_machine *machine); /* closes its descriptors of tethers */
void local_tick(struct local_machine *machine);
/* Returns the place to which the newest connection was made or tried. */
const struct local_place *local_machine_place(const struct local_machine *machine);

/* seek.c */
void local_seek_beat(struct local_machine *machine); /* counts a heartbeat that was sent */
/* Ends the search: the controller has answered or is not connected. */
void local_seek_end(struct local_machine *machine);

/* cluster.c */
/* Reads the cluster to which the machine of this state directory belongs; 0: none yet. ERROR_CORRUPT: the
 * file does not hold a cluster's identity. */
int local_cluster_read(const char *state, uint64_t *ret_cluster, struct error *error);
/* Writes the cluster of the machine's agent, durably. A failure is logged. */
void local_cluster_keep(const struct local_machine *machine);
/* Notes that a controller of another cluster was refused. */
void local_cluster_stranger(struct local_machine *machine, uint64_t cluster);

/* tasks.c */
int local_tasks_new(struct local_machine *machine, const struct agent_host_options *options,
                    struct error *error);
int local_tasks_adopt(struct live *live, struct error *error);
void local_tasks_close(struct live *live);
void local_tasks_free(struct live *live); /* NULL is allowed; after everything has closed */
void local_tasks_stop_all(struct live *live);
void local_tasks_launch(struct live *live, const struct agent_effect *effect);
void local_tasks_stop(struct live *live, const struct task_stop *stop, uint32_t container);
void local_tasks_forget(struct live *live, obj_id task, uint32_t containers);
/* Returns the launcher's uid of a container's process and log. */
uint64_t local_container_uid(obj_id task, uint32_t index);
/* Finds that uid by the container's name (empty: the first main container). ERROR_NOT_FOUND: the task has no
 * such container. */
int local_container_find(struct live *live, obj_id task, struct str container, uint64_t *ret_uid,
                         struct error *error);
/* Returns the launch with which the task was started, in `arena`, or NULL if it is not known here. */
const struct task_launch *local_tasks_launch_of(struct live *live, obj_id task, struct arena *arena);
/* Returns whether a task of the JobSet was started here and is not forgotten. */
bool local_tasks_has_jobset(struct live *live, obj_id jobset);
/* Stores container `index` of a launch, also of a launch with a single process. Strings remain the
 * launch's. */
void local_container_launch(const struct task_launch *launch, uint32_t index, struct container_launch *ret);

/* Makes the folders below the state directory. */
int local_tasks_make_folders(const struct live *live, struct error *error);

/* state.c: recreates deleted files of the state directory, or reports a fault of the machine. */
void local_state_mark(const char *path, struct file_mark *ret_mark);
/* Returns whether the marked file is still at the path. */
bool local_state_is_there(const char *path, struct file_mark mark);
void local_state_watch(struct live *live);
/* Reports that deleted files of the state directory were made again or, with an error, that they could not
 * be. */
void local_state_renewed(struct live *live, const struct error *error);
void local_state_close(struct live *live);

/* sockets.c: opens the socket at which container `index` of a launch reaches the agent. Opening it again is
 * harmless. */
int local_socket_open(struct live *live, const struct task_launch *launch, uint32_t index,
                      struct error *error);
/* Removes the socket of a container, if it exists. `container` is a uid of local_container_uid(). */
void local_socket_remove(struct live *live, uint64_t container);
const char *local_socket_path(const struct live *live, uint64_t container, struct arena *arena);
bool local_sockets_whole(const struct live *live);
/* Recreates those that were deleted or replaced. */
int local_sockets_renew(struct live *live, struct error *error);
void local_sockets_close(struct live *live);

/* clients.c */
void local_client_accept(struct live *live, uint64_t container, uv_stream_t *listener);
void local_clients_close(struct live *live);
void local_clients_send(struct live *live, const struct agent_effect *effect);
/* Sends STORED or FETCHED to a client, if its connection is still open. */
void local_clients_moved(struct live *live, uint64_t client, const struct jobwire_message *message);

/* paces.c: reads the steps of a task with step patterns from its log. An adopted task's log is read from its
 * end, others from the beginning. */
void local_pace_watch(struct live *live, const struct task_launch *launch, bool adopted);
void local_pace_last(struct live *live, obj_id task); /* reads its last output, before its end is reported */
void local_pace_forget(struct live *live, obj_id task);
void local_paces_init(struct live *live);
void local_paces_close(struct live *live);

/* tails.c: reads failure signatures from the last SIGNATURE_TAIL_BYTES of a container's log and returns how
 * many. Their strings are in `arena`. Call it after the launcher has reported the container's end, when the
 * log is complete. */
size_t local_tail_signatures(struct live *live, uint64_t process, struct arena *arena,
                             struct signature ret_signatures[SIGNATURES_MAX]);

/* logs.c */
void local_logs_init(struct live *live);
void local_logs_open(struct live *live, const struct log_open *open);
void local_logs_close(struct live *live, uint64_t stream);
void local_logs_close_all(struct live *live); /* the connection has closed */
void local_logs_pump(struct live *live);      /* sends more, when the connection can take it */
void local_logs_shutdown(struct live *live);

/* exec.c */
void local_exec_message(struct local_machine *machine, const struct from_controller *message);
void local_exec_close_all(struct live *live);
/* tasks.c: finds the launcher's uid of a container's process by name (empty: the first container).
 * ERROR_UNAVAILABLE: the task does not run here. */
int local_container_process(struct live *live, obj_id task, struct str container, uint64_t *ret_uid,
                            struct error *error);
void local_terminal_owner(struct live *live, obj_id task, int fd);

/* probe.c: carries out ACT and ACT_CANCEL. The result is fed as ACTED, never from inside a step. */
void local_probe_run(struct live *live, const struct agent_effect *effect);
void local_probe_cancel(struct live *live, obj_id task, uint32_t container);
void local_probe_close_all(struct live *live);

/* errand.c: runs an errand. Its result is fed as ERRAND_ENDED, never from inside a step; a stopped errand has
 * none. */
void local_errand_start(struct live *live, const struct errand_start *start);
void local_errand_stop(struct live *live, obj_id errand);
void local_errand_close_all(struct live *live);
/* Starts an errand of the agent itself that undoes abandoned injected faults. */
void local_errand_heal(struct live *live);

/* injections.c */
void local_injections_init(struct live *live); /* undoes abandoned injections, now and once a minute */
void local_injections_close(struct live *live);

/* health.c */
struct probes;
const struct probes *local_health_probes(const struct live *live); /* NULL: none */
int local_health_new(struct live *live, const struct agent_host_options *options, struct error *error);
void local_health_close(struct live *live);
/* Reports all lasting conditions, after a new run of every probe. */
void local_health_say_again(struct live *live);
/* Tells the probes how far this machine's clock is from the controller's. A signal follows later, never from
 * inside this call. */
void local_health_clock(struct live *live, int64_t ahead_ns, int64_t error_ns);

/* metrics.c */
int local_metrics_new(struct live *live, const struct agent_host_options *options, struct error *error);
void local_metrics_close(struct live *live);
void local_metrics_free(struct live *live);
/* Passes a signal of the machine to the agent and counts it. Not from inside a step. */
void local_saw(struct live *live, const struct signal *signal);

/* faults.c */
int local_faults_listen(struct live *live, struct error *error);
void local_faults_close(struct live *live);

/* usage.c: adds the usage of machine and containers to a heartbeat when a measurement is due; memory is from
 * `arena`. */
void local_usage_add(struct live *live, struct arena *arena, struct heartbeat *heartbeat);
void local_usage_free(struct live *live);
/* Splits a uid of local_container_uid() into task and index. */
void local_container_of(uint64_t uid, obj_id *ret_task, uint32_t *ret_index);

/* volumes.c: local_volumes_make() makes all volumes of a task, once; local_volumes_mounts() stores a
 * container's mounts in `spec`, from `arena`. Errors name the volume. */
int local_volumes_init(struct live *live, const char *volumes_dir, struct error *error);
int local_volumes_make(struct live *live, const struct task_launch *launch, struct error *error);
int local_volumes_mounts(const struct live *live, const struct task_launch *launch,
                         const struct container_launch *container, struct arena *arena,
                         struct launch_spec *spec, struct error *error);
/* Makes the JobSet's checkpoint folder for the task's user. A failure is noted. */
void local_checkpoints_make(struct live *live, const struct task_launch *launch);
void local_mounts_sort(struct launch_spec *spec); /* outer ones first */
void local_volumes_remove(struct live *live, obj_id task);
void local_volumes_sweep(struct live *live); /* removes those of unknown tasks, after adoption */

/* user.c: fills in the user and group of every container. ERROR_DENIED: the task may not use a user or group
 * on this machine. */
int local_users_init(struct live *live, const struct agent_host_options *options, struct error *error);
int local_users_apply(const struct live *live, struct arena *arena, struct task_launch *launch,
                      struct error *error);
/* Return the user and group of a container's process: the agent's own if the container names none. */
uint32_t local_user_of(const struct container_launch *container);
uint32_t local_group_of(const struct container_launch *container);
/* Returns the group that all tasks of a namespace share and to which its claims belong, or -1 if there is
 * none. */
int64_t local_users_group(const struct live *live, const struct task_launch *launch);

/* confine.c: sets in `spec` what a task may do and see. `spec` already has its user, directory and other
 * mounts. */
void local_confine_init(struct live *live, const struct agent_host_options *options);
void local_confine_done(struct live *live);
int local_confine(struct live *live, const struct task_launch *launch,
                  const struct container_launch *container, struct arena *arena, struct launch_spec *spec,
                  struct error *error);

/* tmp.c: calls `visit` with each text by which a container may name a folder: its working directory, its
 * arguments and its variables' values. */
void local_texts_visit(const struct launch_spec *spec, void (*visit)(void *context, const char *text),
                       void *context);
bool local_is_name_byte(char c); /* whether `c` can be part of a folder's name that a text mentions */

/* tmp.c: adds the mounts that give a container its own /tmp and /var/tmp. `spec` is otherwise complete. */
enum { LOCAL_TMP_MOUNTS_MAX = 32 };
int local_tmp_mounts(struct live *live, obj_id task, uint32_t container, struct arena *arena,
                     struct launch_spec *spec, struct error *error);

/* root.c: adds the mounts that give a container its own copy of the system's files, if the machine allows it.
 * `spec` has all mounts but those of local_confine. Only tasks of root with a writable root need it: all
 * others cannot change those files. */
void local_root_init(struct live *live); /* what can't be is a note */
void local_root_mounts(const struct live *live, const struct task_launch *launch, struct arena *arena,
                       struct launch_spec *spec);

void local_remove_later(struct live *live, const char *path); /* removes a tree, in another thread */

/* memory.c: where tasks hold checkpoints in memory. */
void local_memory_init(struct live *live, const char *memory_dir); /* what can't be is a note */
void local_memory_close(struct live *live);
void local_memory_sweep(struct live *live); /* removes folders of JobSets that left ten minutes ago */
/* Makes the JobSet's folder and returns the environment variable that names it, in `arena`. Returns NULL,
 * after a note, if there is none. */
const char *local_memory_env(const struct live *live, const struct task_launch *launch, struct arena *arena);

/* store.c: an object store for checkpoints; address NULL: none. ERROR_INVALID: the address is wrong.
 * ERROR_NOT_FOUND: there are no credentials. */
struct store_client { /* what a connection of libphalanx has reported about itself */
    bool welcome;     /* the attempt is current */
    uint64_t id;
    obj_id task;
    uint32_t rank;
    struct retention retention; /* last 0: nothing is deleted */
};
int local_store_init(struct live *live, const char *address, struct error *error);
void local_store_close(struct live *live);
const char *local_store_env(const struct live *live); /* a variable of each task's environment; NULL: none */
void local_store_joined(struct live *live, struct store_client *client);
void local_store_committed(struct live *live, struct store_client *client, uint64_t step, uint32_t attempt);
/* Carries out STORE or FETCH. The answer is given to local_clients_moved, perhaps before this returns. */
void local_store_move(struct live *live, const struct store_client *client, uint16_t type,
                      const struct jobwire_slot *slot);

/* sim.c */
void local_sim_launch(struct local_machine *machine, const struct agent_effect *effect);
void local_sim_stop(struct local_machine *machine, const struct task_stop *stop, uint32_t container);
/* Lets every probe and hook of a simulated container pass. local_sim_acted() delivers the results after the
 * step. */
void local_sim_act(struct local_machine *machine, const struct agent_effect *effect);
bool local_sim_acted(struct local_machine *machine, struct agent_event *ret_event);
/* Lets every errand of a simulated machine succeed; the end is reported after the step. */
void local_sim_errand(struct local_machine *machine, const struct errand_start *start);
void local_sim_run_due(struct agent_host *host, int64_t now_ns);
void local_sim_log_open(struct local_machine *machine, const struct log_open *open);
void local_sim_free(struct local_machine *machine);

#endif
