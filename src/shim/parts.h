/* parts.h - the shim: runs one task, from its start to the record of its end.
 *
 * The shim is the task's parent and the reaper of all its orphans (PR_SET_CHILD_SUBREAPER), so "no children
 * left" means that the whole task is dead. It outlives the agent and needs nothing from it: the shim itself
 * handles the fence, the grace of a stop and the log. Formats: host/launch/shim.h.
 *
 * The shim is built for a cheap start: it makes plain system calls, uses neither stdio nor heap, and does
 * after the vfork whatever the task does not need for its first instruction. One thread, one `struct shim`;
 * errors are negative errno values.
 */
#ifndef PHX_SHIM_PARTS_H
#define PHX_SHIM_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/launch/shim.h"

enum { RECURSIVE = 0x8000 }; /* AT_RECURSIVE, which the C library may not name */

struct task_log {
    int fd; /* -1: not open, output is dropped and counted */
    uint64_t size, size_max, dropped_bytes, times_size;
    uint32_t files;
    int times_fd; /* struct shim_log_time; -1: not open */
    int64_t timed_ns; /* arrival of the last entry in this part; 0: none yet */
};

struct cgroups {
    const char *directory[SHIM_CGROUPS_MAX]; /* "": none */
    int procs[SHIM_CGROUPS_MAX];             /* open cgroup.procs, -1: none */
    bool made[SHIM_CGROUPS_MAX];
};

struct exec_slot { /* a command that runs beside the task; fd 0: free */
    int fd;        /* connection to the launcher */
    pid_t pid;     /* 0: the request has not arrived yet */
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
    bool has_root; /* the task has its own root (root.c) */
    const struct shim_fence *fence;
    struct cgroups cgroups;
    struct task_log log;
    struct shim_start start;
    struct shim_exit exit;
    pid_t pid, task;
    int output;     /* read end of the task's stdout and stderr; -1: at end of file */
    bool task_dead; /* the first process is dead; others may live */
    struct exec_slot execs[SHIM_EXECS_MAX];
    uint64_t kill_at_ns; /* CLOCK_BOOTTIME, end of a stop's grace; 0: no stop under way */
};

/* spec.c: maps the task file and fills in the fields that come from it. Returns 0, or < 0. */
int spec_load(struct shim *shim);

/* start.c: runs the command. Returns 0, or < 0 with the failed step in exit.stage and exit.error. */
int start_task(struct shim *shim);

struct exec_command {
    const char **argv, **envp;
    int fds[3]; /* its input, output and errors */
    bool tty;
};
/* Starts a command beside the task, with the task's user, limits and so on. Returns its pid, or < 0 with the
 * failed step in *ret_stage. */
pid_t start_exec(struct shim *shim, const struct exec_command *command, enum shim_stage *ret_stage);

/* exec.c: commands beside the task (host/launch/shim.h). `fds` are SHIM_EXECS_MAX entries for poll(). */
struct pollfd;
void exec_connect(struct shim *shim, uint64_t token);
void exec_poll_set(const struct shim *shim, struct pollfd *ret_fds);
void exec_poll_done(struct shim *shim, const struct pollfd *fds);
void exec_reaped(struct shim *shim, pid_t pid, int status);

/* start.c: mounts the task's hosts file over /etc/hosts, if it has one, and stores the result in
 * start.hosts_error. */
void hosts_mount(struct shim *shim);

/* mount.c: makes the task's mounts and mounts its hosts file, in this process's own namespace. Returns 0, or
 * < 0 with the failed step in exit.stage and exit.error. */
int mount_all(struct shim *shim);
/* Enters the task's own mount namespace, unless it is entered already. Returns 0, or -errno if that is not
 * allowed. */
int own_mounts(const struct shim *shim);

/* root.c: root_enter() makes an overlay of the machine's root this process's root. `place` is any folder; the
 * changes are mounted over it for the moment. Until root_leave(), the machine's files can still be mounted
 * from descriptors. Both return 0, or -errno; a failed root_enter() changes nothing. */
int root_enter(const char *place);
int root_leave(void);

/* bind.c: mounts the file or folder of the descriptor `source`, with everything mounted below it, at that of
 * `target`. Kernels before Linux 5.12 need `path`, the target's, for a read-only mount. Returns 0, or -errno;
 * a mount that could not be made read-only then stays, writable. */
int bind_mount(int source, int target, const char *path, bool read_only);

/* readonly.c: makes everything but the task's writable mounts read-only; called in the child, before it
 * changes its user. Returns 0, or -errno. */
int make_root_read_only(const struct shim *shim);

/* seccomp.c: blocks system calls of this process and its children for good. Needs no_new_privs or
 * CAP_SYS_ADMIN. Returns 0, or -errno. */
int filter_calls(const struct shim *shim);

/* log.c: writes the log in the working directory, which is the task's or the one for logs. A failing disk
 * loses output but never the task. */
void log_open(struct task_log *log, uint64_t size_max, uint32_t files);
void log_write(struct task_log *log, const char *data, size_t len);

/* kill.c */
/* To the process group; SIGTERM also to orphans outside it. */
void kill_softly(struct shim *shim, int signal_number);
void kill_all(struct shim *shim); /* sends SIGKILL; call it again at every SIGCHLD until no child is left */

/* cgroup.c: makes the directories and sets limits; the child joins by writing to `procs`. */
int cgroup_make(struct shim *shim);
bool cgroup_oom_killed(const struct shim *shim);
void cgroup_kill(const struct shim *shim);
void cgroup_remove(struct shim *shim);

/* text.c: numbers and short paths without stdio. */
struct text {
    char data[512];
    size_t len; /* data is NUL-terminated; text that does not fit is cut */
};
void text_add(struct text *text, const char *s);
void text_add_number(struct text *text, uint64_t number);
/* Adds the name of a descriptor in /proc. */
void text_add_descriptor(struct text *text, int fd);
int file_write(const char *path, const char *data, size_t len); /* to an existing file, in one write */
/* Makes or replaces a file: first a copy of `copied_first` (NULL: none), ended by a newline, then `data`. */
int file_create(const char *path, const char *data, size_t len, const char *copied_first);
/* Reads up to cap - 1 bytes and adds a NUL. Returns the length, or < 0. */
ssize_t file_read(const char *path, char *ret_data, size_t cap);
uint64_t clock_ns(int clock);

#endif
