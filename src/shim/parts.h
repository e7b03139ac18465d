/* parts.h - the shim: keeps one task, from its start to the record of its end.
 *
 * The shim is the task's parent and the reaper of all its orphans (PR_SET_CHILD_SUBREAPER), so that in the
 * end "no children left" means that all of the task is dead. It outlives the agent and needs nothing from it:
 * the fence, the grace of a stop and the log are its own business. Formats: host/launch/shim.h.
 *
 * Written for a start that costs little: plain system calls, no stdio, no heap, and whatever the task does
 * not need for its first instruction is done after the vfork. One thread, one `struct shim`; errors are
 * negative errno values.
 */
#ifndef PHX_SHIM_PARTS_H
#define PHX_SHIM_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/launch/shim.h"

struct task_log {
    int fd; /* -1: not open, output is dropped and counted */
    uint64_t size, size_max, dropped_bytes, times_size;
    uint32_t files;
    int times_fd; /* struct shim_log_time; -1: not open */
    int64_t timed_ns; /* arrival of the last one in this part; 0: none yet */
};

struct cgroups {
    const char *directory[SHIM_CGROUPS_MAX]; /* "": none */
    int procs[SHIM_CGROUPS_MAX];             /* open cgroup.procs, -1: none */
    bool made[SHIM_CGROUPS_MAX];
};

struct exec_slot { /* a command that runs beside the task; fd 0: free */
    int fd;        /* connection to the launcher */
    pid_t pid;     /* 0: the request has not come yet */
};

struct mount_spec {
    const char *letters, *source, *target;
    const char *inside; /* NULL: the source itself */
};

struct shim {
    const struct shim_header *header;
    const char *name, *directory, *log_directory, *hosts, *rank_table;
    const char **argv, **envp; /* NULL-terminated, into the mapped task file */
    struct mount_spec mounts[SHIM_MOUNTS_MAX];
    uint32_t mount_count;
    bool has_root; /* one of its own (root.c) */
    const struct shim_fence *fence;
    struct cgroups cgroups;
    struct task_log log;
    struct shim_start start;
    struct shim_exit exit;
    pid_t pid, task;
    int output;          /* read end of the task's stdout and stderr; -1: at its end */
    bool task_dead;      /* its first process; others may live */
    struct exec_slot execs[SHIM_EXECS_MAX];
    uint64_t kill_at_ns; /* CLOCK_BOOTTIME, end of a stop's grace; 0: no stop under way */
};

/* spec.c: maps the task file and fills in the fields that come from it. */
int spec_load(struct shim *shim);

/* start.c: runs the command. Returns 0, or < 0 with the failed step in exit.stage and exit.error. */
int start_task(struct shim *shim);

struct exec_command {
    const char **argv, **envp;
    int fds[3]; /* its input, output and errors */
    bool tty;
};
/* Starts a command beside the task. Returns its pid, or < 0 and in *ret_stage the step that failed.
 * Everything else is as for the task. */
pid_t start_exec(struct shim *shim, const struct exec_command *command, enum shim_stage *ret_stage);

/* exec.c: commands beside the task (host/launch/shim.h). `fds` are SHIM_EXECS_MAX entries for poll(). */
struct pollfd;
void exec_connect(struct shim *shim, uint64_t token);
void exec_poll_set(const struct shim *shim, struct pollfd *ret_fds);
void exec_poll_done(struct shim *shim, const struct pollfd *fds);
void exec_reaped(struct shim *shim, pid_t pid, int status);

/* start.c: mounts the task's hosts file over /etc/hosts, if it has one; start.hosts_error says what came of
 * it. */
void hosts_mount(struct shim *shim);

/* mount.c: the task's mounts and its hosts file, in this process's own namespace. < 0: exit.stage and
 * exit.error say which. */
int mount_all(struct shim *shim);
/* Enters a mount namespace of the task's own, the first time; -errno: it is not allowed. */
int own_mounts(const struct shim *shim);

/* root.c: makes an overlay of the machine's root this process's root; `place` is any folder, over which the
 * changes lie meanwhile. The machine's files can still be mounted from descriptors until root_leave, which
 * takes them away. 0, or -errno, and then nothing has changed. */
int root_enter(const char *place);
int root_leave(void);

/* readonly.c: mounts what the descriptor `source` names, and all that is mounted below it, read-only on what
 * `target` names; no path is looked up. Returns 0, or -errno; -ENOSYS before Linux 5.12. */
int bind_read_only(int source, int target);

/* readonly.c: in the child, before it gives up its user: all but its writable mounts becomes read-only.
 * Returns 0, or -errno. */
int make_root_read_only(const struct shim *shim);

/* seccomp.c: blocks system calls of this process and its children for good. Needs no_new_privs or
 * CAP_SYS_ADMIN. Returns 0, or -errno. */
int filter_calls(const struct shim *shim);

/* log.c: into the working directory, which is the task's or that for logs. A failing disk costs output, never
 * the task. */
void log_open(struct task_log *log, uint64_t size_max, uint32_t files);
void log_write(struct task_log *log, const char *data, size_t len);

/* kill.c */
void kill_softly(struct shim *shim, int signal_number); /* process group, and orphans that left it */
void kill_all(struct shim *shim); /* SIGKILL; call again at every SIGCHLD until none is left */

/* cgroup.c: makes the directories and sets limits; the child joins by writing to `procs`. */
int cgroup_make(
    struct shim *shim); /* < 0: the failed step is in start.cgroup_stage and _error; the rest is in effect */
bool cgroup_oom_killed(const struct shim *shim);
void cgroup_kill(const struct shim *shim);
void cgroup_remove(struct shim *shim);

/* text.c: numbers and short paths without stdio. */
struct text {
    char data[512];
    size_t len; /* data is NUL-terminated; what does not fit is cut */
};
void text_add(struct text *text, const char *s);
void text_add_number(struct text *text, uint64_t number);
int file_write(const char *path, const char *data, size_t len); /* an existing file, in one write */
int file_create(const char *path, const char *data, size_t len, const char *copied_first);
/* Reads up to cap - 1 bytes and adds a NUL; the length, or < 0. */
ssize_t file_read(const char *path, char *ret_data, size_t cap);
uint64_t clock_ns(int clock);

#endif
