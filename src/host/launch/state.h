/* state.h - the launcher's own structures; private to this folder.
 *
 * Layout of the state directory
 *     lock                    flock of the one launcher
 *     fence                   struct shim_fence, mapped by launcher and shims
 *     boot                    boot id the fence belongs to: after a reboot its time means nothing
 *     events                  FIFO, struct shim_event from shims
 *     tasks/<uid>/            task (shim.h), hosts, rank_table; until forgotten
 * and of the log directory (the same one unless the options say otherwise)
 *     tasks/<uid>/            log, log.1 ...
 *     kept/<name>/<seq>-<uid>/  logs of forgotten tasks; <seq> grows, so the smallest goes first. Logs whose
 *                             task vanished with the state directory (a reboot) have the name "_lost"
 *
 * A task's states, with what ends each:
 *     STARTING  -> RUNNING (shim reports the start) -> EXITED (record read, or SWEPT) -> forgotten
 *     STARTING | RUNNING -> SWEEPING (the shim left no record: its processes are killed) -> EXITED
 */
#ifndef PHX_HOST_LAUNCH_STATE_H
#define PHX_HOST_LAUNCH_STATE_H

#include "base/list.h"
#include "base/map.h"
#include "host/launch/launch.h"
#include "host/launch/shim.h"

enum task_state { TASK_STARTING, TASK_RUNNING, TASK_SWEEPING, TASK_EXITED };

struct task {
    struct list_node node; /* in launcher->tasks, also while forgotten but not yet reaped */
    struct launcher *launcher;
    enum task_state state;
    bool forgotten; /* out of the map; freed by the timer once its shim is reaped */
    bool child;     /* the shim is our child, to be reaped */
    bool watched;   /* poll and pidfd are open */
    bool stop_owed; /* launch_stop was called before the shim was known */
    int64_t stop_grace_ns;
    uint64_t uid;
    uint32_t attempt, run;
    char *name;
    pid_t shim_pid;
    int pidfd;
    uv_poll_t poll;
    struct shim_start start; /* magic 0: not started */
    struct sweep *sweep;     /* TASK_SWEEPING */
    bool limits_unenforced;  /* a limit was requested and there are no cgroups */
};

struct kept { /* a forgotten task's log */
    struct list_node node;
    uint64_t seq, uid;
    uint32_t attempt;
    char *name;
};

enum note { NOTE_HOSTS = 1 << 0, NOTE_CGROUP = 1 << 1, NOTE_NO_CGROUPS = 1 << 2, NOTE_TMP = 1 << 3 };

struct cgroup_host { /* the control groups that the machine offers */
    bool probed;
    int version; /* 0, 1, 2 */
    /* Parents of the tasks' cgroups, NULL: controller absent; v2: first only. */
    char *directory[SHIM_CGROUPS_MAX];
    char text[64];
};

struct launcher {
    uv_loop_t *loop;
    launch_event_fn *on_event;
    void *context;
    char *directory, *logs, *shim, *cgroup_parent;
    bool logs_apart; /* logs != directory */
    enum launch_cgroups cgroups;
    int kept_attempts, kept_tasks_max;
    bool private_hosts, reset_oom_score;
    unsigned noted; /* enum note */
    /* All are >= FD_LOW, so they never collide with the descriptors that the shim expects. */
    int lock_fd, tasks_fd, log_tasks_fd, fence_fd, events_fd, null_fd, tether_fd;
    struct shim_fence *fence;
    uv_poll_t events_poll;
    uv_timer_t timer; /* sweeps, and shims found between spawn and exec */
    int handles;      /* open libuv handles; the last close frees */
    bool closing;
    void (*closed)(void *context);
    void *closed_context;
    struct list_node tasks;
    struct u64_map by_uid;
    struct list_node kept; /* oldest first */
    uint64_t kept_seq, kept_len;
    struct cgroup_host cgroup;
};

enum { FD_LOW = 16 };
_Static_assert(sizeof(struct launch_log_time) == sizeof(struct shim_log_time),
               "the shim writes what readers read");
#define UID_FORMAT   "%llu"
#define UID_ARG(uid) (unsigned long long)(uid)

/* Moves a descriptor below FD_LOW above it, close-on-exec, and closes the old one; others are returned as
 * they are. Returns -1 with errno on failure. */
int fd_raise(int fd);
int64_t now_wall_ns(void);
struct task *task_new(struct launcher *launcher, uint64_t uid, uint32_t attempt, struct str name);
void task_free(struct task *task);

/* watch.c */
int watch_start(struct launcher *launcher, struct error *error); /* the FIFO and the timer */
int watch_task(struct task *task, int pidfd, struct error *error);
void watch_stop(struct launcher *launcher);
void handle_closed(struct launcher *launcher); /* counts a closed handle; the last one frees */
void task_started(struct task *task, const struct shim_start *start, enum launch_event_kind kind);
void task_exited(struct task *task, const struct shim_exit *record, int file_fd);
/* Reads the task file for an end that was not reported. Sweeps a task that has no record if its shim has
 * ended. */
void task_examine(struct task *task, bool shim_gone);
void timer_arm(struct launcher *launcher);

/* record.c: the task file, read back. */
struct task_file {
    struct shim_header header;
    struct shim_start start; /* magic 0 when not valid */
    struct shim_exit exit;   /* as for `start` */
};
int task_file_open(struct launcher *launcher, uint64_t uid); /* fd or -1 */
int task_file_read(int fd, struct task_file *ret_file);      /* < 0: not a valid task file */
/* Reads the strings: name, directory, argv[0] and the cgroup directories. They are views into *ret_block,
 * which the caller frees with mem_free(). */
struct task_strings {
    struct str name, directory, command, cgroup[SHIM_CGROUPS_MAX];
    struct str mounts; /* the strings of all mounts */
};
int task_file_strings(int fd, const struct task_file *file, struct task_strings *ret_strings,
                      char **ret_block);
void exit_message(const struct shim_exit *record, const struct task_strings *strings, struct buf *ret_text);
const char *stage_text(uint32_t stage);

/* launch.c: sends a stop that was requested before the shim was watched. */
void carry_out_stop(struct task *task);
/* launch.c: asks the shim of a running task to connect (shim.h). */
int exec_signal(struct launcher *launcher, uint64_t uid, uint64_t token, pid_t *ret_shim,
                struct error *error);

/* sweep.c: kills the processes that a dead shim left, found by PHX_TASK_DIR in their environment. */
void sweep_begin(struct task *task);
bool sweep_step(struct task *task); /* true: all processes are dead and the task has exited */
void sweep_free(struct sweep *sweep);

/* adopt.c: examines a task whose shim was found between spawn and exec. Returns true if its state is now
 * known. */
bool adopt_again(struct task *task);

/* keep.c */
int keep_load(struct launcher *launcher, struct error *error);
void keep_task(struct launcher *launcher, const struct task *task);
void keep_lost(struct launcher *launcher); /* logs without a task, after launch_adopt */
void keep_done(struct launcher *launcher);
/* Finds the newest kept log of the uid, or the one `skip` places before it. Returns false if there is
 * none. */
bool keep_find(struct launcher *launcher, uint64_t uid, int skip, char ret_path[LAUNCH_PATH_MAX]);
void directory_remove(int parent_fd, const char *name); /* and the files in it */

/* cgroups.c */
void cgroups_probe(struct launcher *launcher);
void cgroups_done(struct launcher *launcher);
/* Determines the cgroup directories of this task, by enum shim_cgroup; those not needed stay empty. Returns 0
 * for no cgroup, or the version, 1 or 2. *ret_unenforced: a limit was requested for which this machine has no
 * controller. */
int cgroups_for(struct launcher *launcher, const struct launch_spec *spec,
                struct buf ret_directory[SHIM_CGROUPS_MAX], bool *ret_unenforced);

#endif
