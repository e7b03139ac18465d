/* launch.h - runs the processes of tasks on this machine, on behalf of the machine's agent.
 *
 *     agent --posix_spawn--> phalanx-shim (one per task, outlives the agent) --vfork+exec--> the task
 *
 * A launcher owns one state directory (one per machine; docs/launcher.md has the layout). No function here
 * blocks: a spawn costs the agent one small file and one vfork, and the shim does everything else. Events of
 * tasks are delivered to one callback, from the loop and never from inside launch_spawn, launch_stop or
 * launch_signal; launch_adopt is the exception.
 *
 * Guarantees
 * - No exit status is lost: the shim writes it to the task's directory before it exits, and the launcher
 *   reports the task, again after every restart of the agent, until launch_forget().
 * - LAUNCH_EXITED means that *everything* the task started is dead, its chips included, and its cgroup is
 *   removed. Each launcher reports it exactly once per task, after LAUNCH_STARTED if the command could be
 *   executed at all.
 * - A task outlives neither its shim nor the fence deadline (launch_set_fence): the shim kills it even if the
 *   agent is dead or cut off.
 * - Signals reach a shim through its pidfd: a reused pid is never signalled.
 *
 * Ownership: the launcher copies every string and array that it is given. Pointers in an event are valid
 * during the callback only. Threading: all calls and callbacks are on the loop's thread. The process must not
 * reap children that it does not know (no waitpid(-1)); libuv's own uv_spawn is fine. Needs Linux >= 5.4.
 */
#ifndef PHX_HOST_LAUNCH_LAUNCH_H
#define PHX_HOST_LAUNCH_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "base/str.h"

struct launcher;

enum { LAUNCH_PATH_MAX = 1024, LAUNCH_NAME_MAX = 253, LAUNCH_SPEC_BYTES_MAX = 16 << 20 };
enum { LAUNCH_KEPT_ALIKE = 8 };

/* ---- what happens ---- */

enum launch_event_kind {
    LAUNCH_STARTED, /* execve succeeded: `pid`, `started_ns` */
    LAUNCH_ADOPTED, /* launch_adopt found the task running: the same fields as LAUNCH_STARTED */
    LAUNCH_EXITED,  /* see struct launch_exit; the record stays until launch_forget() */
    /* A sentence for the log, each reason once per launcher: the hosts file was not mounted, limits are not
     * enforced ... `uid` is the first task concerned. */
    LAUNCH_NOTE,
};

struct launch_exit {
    bool signaled;     /* true: `signal` ended it; false: `exit_code` counts */
    int exit_code;     /* 0-255; 127: command not found, 126: it could not be executed */
    int signal;        /* SIGKILL, SIGSEGV ... */
    bool start_failed; /* the command never ran: exit_code is 126 or 127, `message` says why */
    bool oom;          /* the task failed after its cgroup's memory limit killed one of its processes */
    bool fenced;       /* the fence deadline passed: the shim killed it */
    bool stopped;      /* it ended after a launch_stop */
    bool lost;         /* the shim was killed or never ran, so the status is not known: reported as SIGKILL */
    int64_t started_ns, finished_ns; /* wall clock; started_ns is 0 if it never ran */
    uint64_t user_us, system_us;     /* CPU time of the task and all its descendants */
    uint64_t max_rss_bytes;          /* of its largest process */
    uint64_t log_dropped_bytes;      /* output that could not be written (disk full) */
    const char *message;             /* one line for people, never NULL; "" if there is none */
};

struct launch_event {
    enum launch_event_kind kind;
    uint64_t uid;
    uint32_t attempt, run;
    const char *name;
    int pid;                 /* STARTED, ADOPTED, EXITED (0 when never ran): the task's first process */
    int64_t started_ns;      /* STARTED, ADOPTED, EXITED: wall clock */
    struct launch_exit exit; /* EXITED */
    const char *note;        /* NOTE */
};

typedef void launch_event_fn(void *context, const struct launch_event *event);

/* ---- the launcher ---- */

enum launch_cgroups { LAUNCH_CGROUPS_WHEN_LIMITED, LAUNCH_CGROUPS_ALWAYS, LAUNCH_CGROUPS_NEVER };

struct launcher_options {
    /* State of this machine; created (os_folder_way) with its parents. A file system in memory (/run/...) is
     * best: the state need not survive a reboot, and a busy disk would delay every start. */
    const char *directory;
    const char *log_directory; /* tasks' logs, on a disk; created, too; NULL: `directory` */
    const char *shim; /* path of phalanx-shim; NULL: beside this program, else /usr/libexec/phalanx/ */
    launch_event_fn *on_event; /* required */
    void *context;
    enum launch_cgroups cgroups; /* making a cgroup costs time: by default only for a task with a limit */
    const char *cgroup_parent;   /* below each hierarchy's root; NULL: "phalanx" */
    /* Logs kept of forgotten tasks per task name; 0: 3; < 0: none. Names that differ only in their last five
     * characters (attempts of one rank) share a limit of LAUNCH_KEPT_ALIKE. */
    int kept_attempts;
    int kept_tasks_max;          /* logs kept of forgotten tasks in all; 0: 1000 */
    bool private_hosts_off;      /* never mount the hosts file (tests of the fallback) */
};

/* Creates a launcher and locks its directory (flock): ERROR_CONFLICT if another launcher holds it. Call
 * launch_adopt() next, before any spawn. Free the launcher with launch_shutdown(). */
int launcher_new(uv_loop_t *loop, const struct launcher_options *options, struct launcher **ret_launcher,
                 struct error *error);

/* Closes the launcher without touching a task: tasks keep running under their shims. `closed` (may be NULL)
 * is called from the loop once the launcher's memory is freed. To end the tasks too, first launch_stop() each
 * and await LAUNCH_EXITED. */
void launch_shutdown(struct launcher *launcher, void (*closed)(void *context), void *context);

/* Returns false if the state or log directory that the launcher has open was deleted or replaced. */
bool launch_is_whole(const struct launcher *launcher);
/* Recreates a deleted state directory with all its files. Logs of forgotten tasks are no longer known
 * afterwards. Returns ERROR_UNAVAILABLE while tasks are known, because their ends are written to the deleted
 * files. */
int launch_renew(struct launcher *launcher, struct error *error);

/* Sets the tether: every shim spawned from now on holds `fd` (typically the TCP connection to the controller)
 * open and never passes it to its task. The peer therefore sees the end of the connection only when this
 * process *and* all such shims are dead. The descriptor is duplicated and the caller keeps its own; -1: no
 * tether from now on. */
int launcher_set_tether(struct launcher *launcher, int fd, struct error *error);

/* Sets the fence of all tasks of this machine, including those already running: a CLOCK_BOOTTIME time in
 * nanoseconds; 0: no fence. Moving it forward, as every acknowledged heartbeat does, costs one store in
 * memory. A value in the past kills all tasks at once. The fence is kept in the directory and holds while no
 * agent is alive. */
void launch_set_fence(struct launcher *launcher, uint64_t deadline_boottime_ns);

/* Returns a description of the control groups that this machine offers, for the inventory: "cgroup v2",
 * "cgroup v1 (memory pids cpu)", "no cgroups". The text lives as long as the launcher. */
const char *launcher_cgroup_text(struct launcher *launcher);

/* ---- tasks ---- */

struct launch_limit {
    bool set;       /* false: the agent's own limit */
    uint64_t value; /* soft and hard; UINT64_MAX: unlimited */
};

/* A file or directory of the machine that only this task sees at `target`. An absent target is created, in
 * the task's root or, without one, on the machine. All sources are looked up before anything is mounted. If
 * an optional mount fails, the task runs without it.
 * With `inside`, a relative path, the mount is that file or directory in `source`. A link in the path that
 * leads out of `source` fails the mount, even if it is placed there during the mount. Such a mount is not
 * optional. */
struct launch_mount {
    const char *source, *target;
    const char *inside; /* NULL: the source itself */
    bool read_only, is_file, optional;
    /* The task finds an empty directory at `target`, and below it only what else is mounted. `source` is an
     * empty directory that many tasks may share, since they cannot write to it. If it is NULL, the launcher
     * makes one for the task, which takes longer. */
    bool hidden;
    /* The task's root, at `target` "/", and the first mount: the files of the machine's root file system.
     * Changes that the task makes in them are held in memory and lost when the task ends. `source` is any
     * directory that no other mount names. The task sees other file systems only if further mounts bring
     * them. */
    bool root;
};

enum { LAUNCH_GROUPS_MAX = 32 };

struct launch_spec {
    uint64_t uid;     /* of this attempt's task; not used again on this machine until forgotten */
    uint32_t attempt; /* recorded and reported only */
    /* Restarts in place before this one: a spawn with a higher number replaces the run that ended, whose log
     * becomes the previous one. */
    uint32_t run;
    const char *name; /* the task's (Pod's) name: no '/', at most LAUNCH_NAME_MAX bytes */
    /* NULL-terminated, at least one; argv[0] without '/' is looked up in the task's PATH. */
    const char *const *argv;
    /* NULL-terminated "K=V", complete: the agent's environment is not inherited. The launcher adds
     * PHX_TASK_DIR (the task's directory), PHX_RANK_TABLE and PHX_HOSTS_FILE (paths, where they apply) and
     * PATH where it is absent. */
    const char *const *env;
    const char *directory; /* working directory; NULL: "/" */
    bool set_user;         /* run as user_id, group_id and with `groups` only (needs root) */
    uint32_t user_id, group_id;
    const uint32_t *groups;
    size_t group_count;     /* at most LAUNCH_GROUPS_MAX */
    bool bound;             /* limits the task to `capabilities` (the bounding set) */
    uint64_t capabilities;  /* bit N: capability N of capabilities(7) */
    bool no_new_privileges; /* setuid programs and file capabilities have no effect */
    bool read_only_root;    /* only its mounts, /proc and /dev are writable; else it does not start */
    bool filtered;          /* system calls that container runtimes block by default fail with EPERM */
    struct str hosts;       /* lines added to /etc/hosts for this task alone; empty: none */
    struct str rank_table;  /* content of the file that PHX_RANK_TABLE names; empty: none */
    uint64_t memory_limit_bytes; /* 0: none, for all three limits */
    uint64_t cpu_limit_milli;
    uint64_t pids_limit;
    struct launch_limit nofile, core, memlock;
    /* Mounted in this order, so one may lie within another. An agent that is not root mounts in a user
     * namespace, where that is allowed. */
    const struct launch_mount *mounts;
    size_t mount_count;       /* at most 256 */
    int64_t grace_ns;         /* for a stop without a grace (SIGTERM to the shim itself); 0: 30 s */
    uint64_t log_limit_bytes; /* the log is rotated at this size; 0: 10 MiB */
    uint32_t log_files;       /* files kept, the current one included; 0: 5 */
};

/* Starts a task. Returns ERROR_EXISTS if the uid is known (running, or ended and not forgotten): an effect
 * carried out twice may take that as success. ERROR_INVALID: the spec breaks a rule above. ERROR_IO,
 * ERROR_NO_SPACE: the state cannot be written or the shim cannot be started. A command that cannot be
 * executed is no error here: it is reported as LAUNCH_EXITED with start_failed. */
int launch_spawn(struct launcher *launcher, const struct launch_spec *spec, struct error *error);

/* Returns whether the task was spawned or adopted and is not forgotten: it has reported its end or will. */
bool launch_has(const struct launcher *launcher, uint64_t uid);

/* Stops a task: sends SIGTERM to its process group and to its orphans outside the group. After grace_ns (0:
 * at once; < 0: the spec's), or once its first process has ended, whatever remains of the task gets SIGKILL.
 * The shim carries this out even if the agent dies. Repeating the call can only shorten the grace. Returns 0
 * and does nothing if the task has ended already. A task that was adopted before its exec is stopped after
 * its LAUNCH_STARTED. ERROR_NOT_FOUND: no such task. */
int launch_stop(struct launcher *launcher, uint64_t uid, int64_t grace_ns, struct error *error);

/* Sends signal_number (1-64, else ERROR_INVALID) to the task's process group. Returns 0 and does nothing if
 * the task has ended already. ERROR_NOT_FOUND: no such task. ERROR_UNAVAILABLE: the task was adopted before
 * its exec; try again after its LAUNCH_STARTED. */
int launch_signal(struct launcher *launcher, uint64_t uid, int signal_number, struct error *error);

/* Finds the tasks that an earlier agent left, to be called after a start of the agent. Reports each before it
 * returns, with LAUNCH_ADOPTED if it is alive or LAUNCH_EXITED if it has ended. Two kinds are reported from
 * the loop a moment later: a task caught between spawn and exec (LAUNCH_STARTED), and a task whose shim was
 * killed and whose processes are still being killed (LAUNCH_EXITED, lost). Returns how many tasks are alive,
 * or a negative error. */
int launch_adopt(struct launcher *launcher, struct error *error);

/* ---- a command beside the task, as `kubectl exec` runs it ---- */

struct launch_exec;

enum launch_exec_kind {
    LAUNCH_EXEC_STARTED, /* `value`: its pid */
    LAUNCH_EXEC_FAILED,  /* `why`; `value`: 126 or 127 as in a shell, -1: the machine's fault */
    LAUNCH_EXEC_ENDED,   /* `value`: its exit code, 128 + n when signal n ended it */
};
struct launch_exec_options {
    const char *const *argv; /* NULL-terminated; looked up in the task's PATH */
    const char *const *env;  /* NULL-terminated "K=V", ahead of the task's variables; NULL: none */
    int fds[3];              /* its input, output and errors; duplicated, the caller keeps its own */
    bool tty;                /* fds[0] is a terminal that becomes the controlling one */
    /* Called from the loop. FAILED and ENDED are the last events and free the exec. */
    void (*on_event)(void *context, enum launch_exec_kind kind, int value, const char *why);
    void *context;
};

/* Runs a command as a child of the task's shim: user, groups, limits, cgroup, namespaces, working directory
 * and environment are the task's, and it dies with the task. The strings are copied. ERROR_NOT_FOUND: no such
 * task. ERROR_UNAVAILABLE: the task is not running. ERROR_INVALID: the command is empty. ERROR_LIMIT: it is
 * longer than SHIM_EXEC_BYTES_MAX. */
int launch_exec(struct launcher *launcher, uint64_t uid, const struct launch_exec_options *options,
                struct launch_exec **ret_exec, struct error *error);
/* Kills the command's process group and frees the exec; no event follows. Call it for each remaining exec
 * before launch_shutdown(). */
void launch_exec_close(struct launch_exec *exec);

/* Returns the uid of the task that a process belongs to: the process descends from that task's shim, which
 * adopts orphaned processes. Returns 0 if no task of this launcher does. */
uint64_t launch_find_process(const struct launcher *launcher, int pid);

/* ---- what tasks use ---- */

struct launch_usage {
    uint64_t uid;
    int64_t cpu_ns; /* since its start, ended and reaped processes included */
    /* Memory of its cgroup, less inactive file pages; without a cgroup the resident pages of its processes,
     * in which shared pages count once per process. */
    int64_t memory_bytes;
};
/* Measures up to `max` running tasks and returns how many. A task with a cgroup costs a few file reads; all
 * others together cost a scan of every process of the machine (about 10 us each). */
size_t launch_measure(struct launcher *launcher, struct launch_usage *ret_usages, size_t max);
/* Measures the whole machine: CPU time since boot that was not idle, and memory that is not available.
 * Returns false if /proc cannot be read. */
bool launch_measure_machine(int64_t *ret_cpu_ns, int64_t *ret_memory_bytes);

/* Drops a task's records once the controller has its exit, and keeps its log as configured. ERROR_NOT_FOUND:
 * unknown, so repeating is harmless. ERROR_CONFLICT: the task has not ended. */
int launch_forget(struct launcher *launcher, uint64_t uid, struct error *error);

/* Stores the path of the task's current log, with stdout and stderr interleaved as written. Older parts lie
 * beside it as "log.1" (newest) to "log.<log_files - 1>". The path is known from launch_spawn until retention
 * drops the log, also of forgotten tasks; ERROR_NOT_FOUND after that. To follow a log: read to the end and
 * wait (inotify). When the path's inode differs from the open file's, read the rest and reopen. */
int launch_log_path(struct launcher *launcher, uint64_t uid, char ret_path[LAUNCH_PATH_MAX],
                    struct error *error);
/* An entry of the file "times" ("times.1" ...) beside each part of a log: when the bytes from `offset` on
 * arrived. */
struct launch_log_time {
    uint64_t offset;
    int64_t arrived_ns; /* wall clock */
};

/* Finds the newest forgotten task with a kept log that was named "<stem>-" and five characters, ran as
 * `attempt` and has a uid above `after`. Returns its uid, or 0 if there is none. */
uint64_t launch_kept_find(const struct launcher *launcher, struct str stem, uint32_t attempt, uint64_t after);
/* Returns the name of a forgotten task, or NULL if its log is not kept. The name is valid while the log is
 * kept. */
const char *launch_kept_name(const struct launcher *launcher, uint64_t uid);
/* Stores the path of the log of the run before the newest one. ERROR_NOT_FOUND: no such log is kept. */
int launch_previous_log_path(struct launcher *launcher, uint64_t uid, char ret_path[LAUNCH_PATH_MAX],
                             struct error *error);

#endif
