/* launch.h - runs the processes of tasks on this machine, on behalf of the machine's agent.
 *
 *     agent --posix_spawn--> phalanx-shim (one per task, outlives the agent) --vfork+exec--> the task
 *
 * A launcher owns one state directory (one per machine; docs/launcher.md has the layout). Nothing here
 * blocks: a spawn costs the agent one small file and one vfork, everything else happens in the shim. Events
 * of tasks come back through one callback, from the loop (never from inside launch_spawn/stop/signal;
 * launch_adopt is the exception).
 *
 * Guarantees
 * - No exit status is lost: the shim leaves it in the task's directory before it goes, and the task is
 *   reported (again after every restart of the agent) until launch_forget().
 * - LAUNCH_EXITED means that *everything* the task started is dead, its chips included, and its cgroup is
 *   gone. It comes exactly once per task and launcher, after LAUNCH_STARTED if the command could be executed
 *   at all.
 * - A task never outlives its shim, nor a fence deadline that passed (launch_set_fence): with the agent dead
 *   or cut off the shim kills it by itself.
 * - Signals reach a shim through its pidfd: a reused pid is never signalled.
 *
 * Ownership: every string and array handed in is copied; what is handed out is valid during the call only.
 * Threading: everything on the loop's thread. The process must not reap children that it does not know
 * (no waitpid(-1)); libuv's own uv_spawn is fine. Needs Linux >= 5.4.
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
    LAUNCH_ADOPTED, /* launch_adopt found it alive and started: the same fields as LAUNCH_STARTED */
    LAUNCH_EXITED,  /* see struct launch_exit; the record stays until launch_forget() */
    LAUNCH_NOTE, /* a sentence for the log, each reason once per launcher: hosts file not mounted, limits not
                       enforced ... ; uid is that of the task that met it */
};

struct launch_exit {
    bool signaled;     /* true: `signal` ended it; false: `exit_code` counts */
    int exit_code;     /* 0-255; 127 command not found, 126 it could not be executed */
    int signal;        /* SIGKILL, SIGSEGV ... */
    bool start_failed; /* the command never ran: exit_code is 126 or 127, `message` says why */
    bool oom;          /* its cgroup's memory limit killed a process of it, and it failed */
    bool fenced;       /* the fence deadline passed: the shim killed it */
    bool stopped;      /* launch_stop was under way */
    bool lost;         /* the shim was killed or never ran, so the status is not known: reported as SIGKILL */
    int64_t started_ns, finished_ns; /* wall clock; started_ns 0 when it never ran */
    uint64_t user_us, system_us;     /* CPU time of the task and all its descendants */
    uint64_t max_rss_bytes;          /* of its largest process */
    uint64_t log_dropped_bytes;      /* output that could not be written (disk full) */
    const char *message;             /* one line for people, never NULL; "" when there is nothing to say */
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
    /* State of this machine; created (os_folder_way) with its parents. Best in memory (/run/...): it need
     * not survive a reboot, and a busy disk would hold up every start. */
    const char *directory;
    const char *log_directory; /* logs of tasks, likewise created, on a disk; NULL: in `directory` */
    const char *shim; /* path of phalanx-shim; NULL: beside this program, else /usr/libexec/phalanx/ */
    launch_event_fn *on_event; /* required */
    void *context;
    enum launch_cgroups cgroups; /* making a cgroup costs time: by default only for a task with a limit */
    const char *cgroup_parent;   /* below each hierarchy's root; NULL: "phalanx" */
    int kept_attempts;           /* logs of forgotten tasks kept per task name; 0: 3; < 0: none. Of names
                                  * that differ in their last five characters alone (attempts of one rank)
                                  * LAUNCH_KEPT_ALIKE */
    int kept_tasks_max;          /* ... and in all; 0: 1000 */
    bool private_hosts_off;      /* never mount the hosts file (tests of the fallback) */
};

/* Takes the directory (an flock: one launcher per directory at a time, ERROR_CONFLICT otherwise). Call
 * launch_adopt() next, before any spawn. Free with launch_shutdown. */
int launcher_new(uv_loop_t *loop, const struct launcher_options *options, struct launcher **ret_launcher,
                 struct error *error);

/* Lets go of everything without touching a task: they go on under their shims. `closed` (may be NULL) is
 * called from the loop once the launcher's memory is gone. To end the tasks too, launch_stop() each and await
 * LAUNCH_EXITED. */
void launch_shutdown(struct launcher *launcher, void (*closed)(void *context), void *context);

/* Is the state directory the one that the launcher has open, or was it deleted? */
bool launch_is_whole(const struct launcher *launcher);
/* The state directory was deleted: makes it again with all its files. ERROR_UNAVAILABLE while tasks are
 * known: their ends are written into the deleted files. */
int launch_renew(struct launcher *launcher, struct error *error);

/* The tether: every shim spawned from now on holds `fd` (typically the TCP connection to the controller) open
 * and never hands it to its task, so that the peer sees the end of it only when this process *and* all such
 * shims are dead. The fd is duplicated, the caller keeps its own; -1: none from now on. */
int launcher_set_tether(struct launcher *launcher, int fd, struct error *error);

/* The fence of all tasks of this machine, those already running included: a CLOCK_BOOTTIME time in
 * nanoseconds, 0: no fence. Costs a store in memory when it moves forward, as it does at every acknowledged
 * heartbeat. A value in the past kills all tasks at once. Kept in the directory: it holds while no agent is
 * alive. */
void launch_set_fence(struct launcher *launcher, uint64_t deadline_boottime_ns);

/* Describes the control groups that this machine allows, for the inventory: "cgroup v2", "cgroup v1 (memory,
 * pids, cpu)", "no cgroups". */
const char *launcher_cgroup_text(struct launcher *launcher);

/* ---- tasks ---- */

struct launch_limit {
    bool set;       /* false: as the agent's own */
    uint64_t value; /* soft and hard; UINT64_MAX: unlimited */
};

/* A file or directory of the machine that only the task sees at `target`, which is made if it is absent (in
 * the task's root, or without one on the machine, whose files the task sees everywhere else). Sources are
 * looked up before anything is mounted. If an optional mount fails, the task runs without it. With `inside`,
 * a relative path, what is mounted is that file or directory in `source`; a link in it that leads out of
 * `source` fails the mount, whoever put it there and when. Such a mount is not optional. */
struct launch_mount {
    const char *source, *target;
    const char *inside; /* NULL: the source itself */
    bool read_only, is_file, optional;
    bool hidden; /* the task finds an empty directory at `target`, and below it only what else is mounted */
    /* The task's root, at `target` "/": the files of the machine's root file system, and what the task
     * changes in them, which is held in memory and gone with the task. `source` is any directory that no
     * other mount names. The first mount: of other file systems the task sees those that further mounts
     * bring. */
    bool root;
};

enum { LAUNCH_GROUPS_MAX = 32 };

struct launch_spec {
    uint64_t uid;     /* of this attempt's task, never used again on this machine until forgotten */
    uint32_t attempt; /* recorded and handed back only */
    /* Restarts in place before this one: a spawn with a higher number replaces the run that ended, whose log
     * becomes the previous one. */
    uint32_t run;
    const char *name; /* the task's (Pod's) name: no '/', at most LAUNCH_NAME_MAX bytes */
    /* NULL-terminated, at least one; argv[0] without '/' is looked up in the task's PATH. */
    const char *const *argv;
    /* NULL-terminated "K=V", complete: nothing of the agent's environment is added. The launcher adds
     * PHX_TASK_DIR (the task's directory), PHX_RANK_TABLE and PHX_HOSTS_FILE (paths, where they apply) and
     * PATH where it is absent. */
    const char *const *env;
    const char *directory; /* working directory; NULL: "/" */
    bool set_user;         /* run as user_id, group_id and with `groups` only (needs root) */
    uint32_t user_id, group_id;
    const uint32_t *groups;
    size_t group_count;     /* at most LAUNCH_GROUPS_MAX */
    bool bound;             /* nothing in the task can have capabilities beyond these */
    uint64_t capabilities;  /* bit N: capability N of capabilities(7) */
    bool no_new_privileges; /* setuid programs and file capabilities give it none */
    bool read_only_root;    /* it writes to its mounts, /proc and /dev alone; else it does not start */
    bool filtered;          /* system calls that containers may not make by default fail with EPERM */
    struct str hosts; /* lines after those of /etc/hosts, for this task alone; empty: /etc/hosts as it is */
    struct str rank_table;       /* content of the file PHX_RANK_TABLE names; empty: none */
    uint64_t memory_limit_bytes; /* 0: none; likewise the next two */
    uint64_t cpu_limit_milli;
    uint64_t pids_limit;
    struct launch_limit nofile, core, memlock;
    /* In this order, so that one may lie within another. Not root: in a user namespace, where that is
     * allowed. */
    const struct launch_mount *mounts;
    size_t mount_count;       /* at most 256 */
    int64_t grace_ns;         /* for a stop that names none (SIGTERM to the shim itself); 0: 30 s */
    uint64_t log_limit_bytes; /* the log is rotated at this size; 0: 10 MiB */
    uint32_t log_files;       /* files kept, the current one included; 0: 5 */
};

/* Starts a task. ERROR_EXISTS if the uid is known (running, or ended and not forgotten): an effect carried
 * out twice may take that as done. ERROR_INVALID for a spec that breaks a rule above; ERROR_IO/NO_SPACE when
 * the state cannot be written or the shim cannot be started. A command that cannot be executed is no error
 * here: it comes as LAUNCH_EXITED with start_failed. */
int launch_spawn(struct launcher *launcher, const struct launch_spec *spec, struct error *error);

/* Whether the task was spawned or adopted and is not forgotten: it has reported its end or will. */
bool launch_has(const struct launcher *launcher, uint64_t uid);

/* SIGTERM to the task's process group and to orphans of it that left the group; whatever is left of the task
 * after grace_ns (0: at once; < 0: the spec's), or once its first process has ended, gets SIGKILL. The shim
 * does it, whatever becomes of the agent. Repeating it can only shorten the grace. A task that has ended
 * already: 0 and nothing happens. One that was adopted before its exec is stopped behind its LAUNCH_STARTED.
 * ERROR_NOT_FOUND: no such task. */
int launch_stop(struct launcher *launcher, uint64_t uid, int64_t grace_ns, struct error *error);

/* `signal_number` (1-64) to the task's process group. A task that has ended already: 0 and nothing happens.
 * ERROR_NOT_FOUND: no such task; ERROR_UNAVAILABLE: adopted a moment ago, before its exec: again after its
 * LAUNCH_STARTED. */
int launch_signal(struct launcher *launcher, uint64_t uid, int signal_number, struct error *error);

/* Called after a start of the agent: finds the tasks that an earlier agent left and reports each before it
 * returns, with LAUNCH_ADOPTED when alive or LAUNCH_EXITED. Two kinds come a moment later, from the loop: a
 * task caught between spawn and exec (LAUNCH_STARTED), and one whose shim was killed and whose processes are
 * still being killed (LAUNCH_EXITED, lost). Returns how many it found alive. */
int launch_adopt(struct launcher *launcher, struct error *error);

/* ---- a command beside the task, as `kubectl exec` runs it ---- */

struct launch_exec;

enum launch_exec_kind {
    LAUNCH_EXEC_STARTED, /* `value`: its pid */
    LAUNCH_EXEC_FAILED,  /* `why`; `value`: 126 or 127 as a shell would say, -1: the machine's fault */
    LAUNCH_EXEC_ENDED,   /* `value`: its exit code, 128 + n when signal n ended it */
};
struct launch_exec_options {
    const char *const *argv; /* NULL-terminated; looked up in the task's PATH */
    const char *const *env;  /* NULL-terminated "K=V" that come before the task's; NULL: none */
    int fds[3];              /* its input, output and errors; duplicated, the caller keeps its own */
    bool tty;                /* the first is a terminal that becomes its controlling one */
    /* From the loop; FAILED and ENDED are the last, and free the exec. */
    void (*on_event)(void *context, enum launch_exec_kind kind, int value, const char *why);
    void *context;
};

/* Runs a command as a child of the task's shim: user, groups, limits, cgroup, namespaces, working directory
 * and environment are the task's, and it dies with the task. The strings are copied. ERROR_NOT_FOUND: no such
 * task; ERROR_UNAVAILABLE: it does not run; ERROR_INVALID, ERROR_LIMIT: the command. */
int launch_exec(struct launcher *launcher, uint64_t uid, const struct launch_exec_options *options,
                struct launch_exec **ret_exec, struct error *error);
/* Kills the command's process group; no event follows. Before launch_shutdown, for each that is left. */
void launch_exec_close(struct launch_exec *exec);

/* Returns the uid of the task that a process belongs to: the process descends from that task's shim, which
 * adopts whatever leaves its parents. 0: no task of this launcher. */
uint64_t launch_find_process(const struct launcher *launcher, int pid);

/* ---- what tasks use ---- */

struct launch_usage {
    uint64_t uid;
    int64_t cpu_ns;       /* since its start, of everything it ran and that has been waited for */
    int64_t memory_bytes; /* of its cgroup less file pages that can go at once; else the resident pages of its
                             processes, shared ones counted for each */
};
/* Measures every task that runs, at most `max`; returns how many. A task with a cgroup costs one file or two;
 * all others together cost a look at every process of the machine (about 10 us each). */
size_t launch_measure(struct launcher *launcher, struct launch_usage *ret_usages, size_t max);
/* Measures the whole machine: CPU time since boot that was not idle, and memory that is not available. */
bool launch_measure_machine(int64_t *ret_cpu_ns, int64_t *ret_memory_bytes);

/* The controller has the exit: drops the task's records, keeps its log as configured. ERROR_NOT_FOUND:
 * unknown, so repeating is harmless; ERROR_CONFLICT: it has not ended. */
int launch_forget(struct launcher *launcher, uint64_t uid, struct error *error);

/* Path of the task's current log, stdout and stderr interleaved as written; older parts beside it as "log.1"
 * (newest) to "log.<log_files - 1>". Known from launch_spawn until retention drops it, forgotten tasks
 * included. To follow: read to the end, wait (inotify), and when the path's inode differs from the open one,
 * read the rest and reopen. */
int launch_log_path(struct launcher *launcher, uint64_t uid, char ret_path[LAUNCH_PATH_MAX],
                    struct error *error);
/* An entry of the file "times" (or "times.1" ...) beside each part of a log: the bytes from `offset` on
 * arrived then. */
struct launch_log_time {
    uint64_t offset;
    int64_t arrived_ns; /* wall clock */
};

/* Finds the newest forgotten task with a kept log that was called "<stem>-" and five characters, ran as
 * `attempt` and has a uid above `after`; 0: there is none. */
uint64_t launch_kept_find(const struct launcher *launcher, struct str stem, uint32_t attempt, uint64_t after);
/* Returns the name of a forgotten task whose log is kept; NULL: it is not. */
const char *launch_kept_name(const struct launcher *launcher, uint64_t uid);
/* The log of the run before the newest one, while it is kept. ERROR_NOT_FOUND: there is none. */
int launch_previous_log_path(struct launcher *launcher, uint64_t uid, char ret_path[LAUNCH_PATH_MAX],
                             struct error *error);

#endif
