/* shim.h - what the launcher and phalanx-shim share: the task file, inherited descriptors, control signals,
 * messages.
 *
 * The two are built together, but a shim outlives its agent: an agent of a later version meets shims of an
 * earlier one. So every format here is versioned, fixed in size, in the machine's byte order, and only ever
 * extended at its end.
 *
 * The task file (<directory>/tasks/<uid>/task, mode 0600: it holds the environment)
 *     struct shim_header    written by the launcher before the shim starts
 *     struct shim_start     zero, then written by the shim once the command runs
 *     struct shim_exit      zero, then written by the shim when everything of the task is dead
 *     strings               `strings_len` bytes, NUL-terminated each, in this order:
 *                           name, working directory, log directory ("": the task's), cgroup directory [3],
 *                           argv [argc], env [envc], hosts, rank table; with SHIM_MOUNTS: the number of
 *                           mounts in decimal, then of each its letters (shim_mount), source, with
 *                           SHIM_MOUNT_INSIDE the path inside the source, and target
 * A header is valid iff magic and version match and the file has exactly header.file_len bytes; a start
 * record iff its magic matches; an exit record iff magic and checksum match. The exit record lies in blocks
 * that were allocated with the file, so that a full disk cannot lose an exit status.
 *
 * Liveness: the launcher takes flock(LOCK_EX) on the task file and the shim inherits that open file
 * description; the lock is free if and only if the shim has ended (or was never started). No pid is trusted
 * without it.
 */
#ifndef PHX_HOST_LAUNCH_SHIM_H
#define PHX_HOST_LAUNCH_SHIM_H

#include <stddef.h>
#include <stdint.h>

#define SHIM_HEADER_MAGIC UINT64_C(0x314b534154584850) /* "PHXTASK1" */
#define SHIM_START_MAGIC  UINT64_C(0x3154524154535850) /* "PXSTART1" */
#define SHIM_EXIT_MAGIC   UINT64_C(0x3154495845585850) /* "PXXEXIT1" */
#define SHIM_EVENT_MAGIC  UINT32_C(0x56455850)         /* "PXEV" */

enum { SHIM_VERSION = 1, SHIM_CGROUPS_MAX = 3 };

/* Descriptors that the shim starts with. 0-2 are /dev/null; its working directory is the task's directory;
 * every signal is blocked, so that a control signal can be sent the moment posix_spawn returns. */
enum shim_fd {
    SHIM_FD_TASK = 3,  /* the task file, locked */
    SHIM_FD_FENCE = 4, /* struct shim_fence, read only */
    SHIM_FD_EVENTS =
        5, /* the FIFO to the current agent: struct shim_event; O_RDWR, so that it never breaks */
    SHIM_FD_TETHER = 6, /* may be absent */
    SHIM_FD_FREE = 7,
};

/* Control signals: queued with a 64-bit value (pidfd_send_signal, SI_QUEUE). Real-time signals, given as
 * numbers because SIGRTMIN differs between C libraries. A plain SIGTERM, as an operator may send, is a stop
 * with the default grace. */
enum shim_signal {
    SHIM_SIGNAL_EXEC = 39,  /* value: the token of a command to run beside the task; see below */
    SHIM_SIGNAL_SEND = 40,  /* value: the signal for the process group */
    SHIM_SIGNAL_FENCE = 41, /* the fence did not just move forward: read it again */
    /* Value: grace in milliseconds, or SHIM_GRACE_DEFAULT for the header's. This is the highest number,
     * because the lowest of several pending signals is read first and a stop must follow signals sent before
     * it. */
    SHIM_SIGNAL_STOP = 42,
};
#define SHIM_GRACE_DEFAULT UINT64_MAX

/* <directory>/fence, mapped by the launcher (writer) and all shims. */
struct shim_fence {
    uint64_t deadline_boottime_ns; /* atomic; 0: no fence */
};

struct shim_limit {
    uint64_t set, value;
};

enum shim_flags {
    SHIM_SET_USER = 1 << 0,
    SHIM_PRIVATE_HOSTS = 1 << 1,   /* mount the hosts file over /etc/hosts */
    SHIM_TETHER = 1 << 2,          /* SHIM_FD_TETHER is open */
    SHIM_MOUNTS = 1 << 4,          /* mounts follow the strings; the task has its own mount namespace */
    SHIM_USER_NAMESPACE = 1 << 5,  /* SHIM_MOUNTS in a user namespace, as the agent is not root */
    SHIM_RESET_OOM_SCORE = 1 << 3, /* the agent is protected from the OOM killer, but its tasks must not be */
    SHIM_BOUND = 1 << 6,           /* the capability bounding set becomes header.capabilities */
    SHIM_NO_NEW_PRIVILEGES = 1 << 7,
    SHIM_UNPRIVILEGED = 1 << 8,    /* the agent is not root */
    SHIM_SECCOMP = 1 << 9,         /* system calls are filtered (shim/seccomp.c) */
    SHIM_READ_ONLY_ROOT = 1 << 10, /* everything but the task's own mounts is read-only (shim/readonly.c) */
};
enum { SHIM_GROUPS_MAX = 32 };

struct shim_header {
    uint64_t magic;
    uint32_t version, flags;
    uint64_t file_len, uid;
    uint32_t attempt, user_id, group_id,
        cgroup_version; /* 0, 1 (one directory per controller) or 2 (first only) */
    uint32_t argc, envc, hosts_len, rank_table_len;
    uint64_t memory_limit_bytes, cpu_limit_milli, pids_limit; /* 0: none */
    struct shim_limit nofile, core, memlock;
    uint64_t grace_ns, log_limit_bytes;
    uint32_t log_files, run;                       /* restarts in place before this one */
    uint64_t capabilities;                         /* bit N: capability N; with SHIM_BOUND */
    uint32_t groups[SHIM_GROUPS_MAX], group_count; /* supplementary ones, with SHIM_SET_USER */
    uint32_t reserved;
};

/* Letters of a mount: 'f', 'd', 'h' or 'o', then 'r' or 'w', then optionally '?' if the task may run without
 * the mount, or 'i' if the mount is a path inside the source that no link may lead out of. */
enum shim_mount {
    SHIM_MOUNT_FILE = 'f',
    SHIM_MOUNT_DIRECTORY = 'd',
    SHIM_MOUNT_HIDDEN = 'h', /* an empty folder is mounted over the target: the source, or a new one for "" */
    SHIM_MOUNT_ROOT = 'o',   /* the first mount: "/" becomes an overlay (shim/root.c), made at the source */
    SHIM_MOUNT_READ_ONLY = 'r',
    SHIM_MOUNT_WRITABLE = 'w',
    SHIM_MOUNT_OPTIONAL = '?',
    SHIM_MOUNT_INSIDE = 'i',
};
enum { SHIM_MOUNTS_MAX = 256 };

enum shim_cgroup {
    SHIM_CGROUP_MEMORY,
    SHIM_CGROUP_PIDS,
    SHIM_CGROUP_CPU
}; /* order of the cgroup directories */

/* The step at which a start failed; the launcher turns it and `error` (an errno) into a sentence. */
enum shim_stage {
    SHIM_STAGE_NONE,
    SHIM_STAGE_FILES,     /* rank table, hosts file */
    SHIM_STAGE_NAMESPACE, /* hosts file over /etc/hosts */
    SHIM_STAGE_CGROUP_MAKE,
    SHIM_STAGE_CGROUP_LIMIT,
    SHIM_STAGE_CGROUP_JOIN,
    SHIM_STAGE_PROCESS, /* pipe, vfork */
    SHIM_STAGE_LIMITS,
    SHIM_STAGE_USER,
    SHIM_STAGE_DIRECTORY,
    SHIM_STAGE_EXEC,
    SHIM_STAGE_PRIVILEGES, /* capabilities, no new privileges */
    SHIM_STAGE_READ_ONLY,  /* the root file system */
    SHIM_STAGE_MOUNT,      /* in an exit record the mount's number is above it: SHIM_STAGE_SHIFT */
};
enum { SHIM_STAGE_SHIFT = 8 };

/* The start record. Its errors did not keep the task from running. */
struct shim_start {
    uint64_t magic;
    int32_t shim_pid, task_pid;
    int64_t started_ns; /* wall clock */
    int32_t hosts_error, cgroup_error;
    uint32_t cgroup_stage;
    int32_t mounts_error; /* of the first optional mount that failed */
};

enum shim_exit_flags {
    SHIM_EXIT_SIGNALED = 1 << 0,
    SHIM_EXIT_START_FAILED = 1 << 1,
    SHIM_EXIT_OOM = 1 << 2,
    SHIM_EXIT_FENCED = 1 << 3,
    SHIM_EXIT_STOPPED = 1 << 4,
    SHIM_EXIT_LOST = 1 << 5, /* written by a launcher that found the shim dead without a record */
};

struct shim_exit {
    uint64_t magic;
    uint32_t flags;
    int32_t status; /* exit code, or signal with SHIM_EXIT_SIGNALED */
    int64_t started_ns, finished_ns;
    uint64_t user_us, system_us, max_rss_bytes, log_dropped_bytes;
    uint32_t stage; /* with SHIM_EXIT_START_FAILED: enum shim_stage and errno */
    int32_t error;
    uint64_t checksum; /* shim_checksum of all fields before */
};

enum shim_event_kind { SHIM_EVENT_STARTED = 1, SHIM_EVENT_EXITED = 2 };

/* A message in the FIFO, of at most PIPE_BUF bytes, so that writers never interleave. A message is lost if
 * the FIFO is full, but the task file has the same content. */
struct shim_event {
    uint32_t magic, kind;
    uint64_t uid;
    struct shim_start start;
};

/* A command to run beside the task, as for `kubectl exec`. The launcher listens on the abstract address
 * "phalanx-exec-<token as 16 hexadecimal digits>" (SOCK_SEQPACKET) and sends SHIM_SIGNAL_EXEC; the shim
 * connects. Each side makes sure that the other has its own user id, the launcher also that it is this shim.
 * The launcher then sends one message: struct shim_exec_request, its strings (argv [argc], then variables
 * [envc] that come before the task's) and three descriptors. The shim answers with STARTED or FAILED, and
 * after STARTED with ENDED. Closing the connection earlier kills the command's process group; processes that
 * left the group live as long as the task. The command is a child of the shim, so every rule for a task's
 * processes holds for it too. A shim that is too old leaves the signal pending.
 * */
#define SHIM_EXEC_MAGIC   UINT32_C(0x58455850) /* "PXEX" */
#define SHIM_EXEC_ADDRESS "phalanx-exec-"
enum { SHIM_EXECS_MAX = 16, SHIM_EXEC_BYTES_MAX = 65536 };
enum shim_exec_flags { SHIM_EXEC_TTY = 1 << 0 }; /* its input becomes the controlling terminal */

struct shim_exec_request {
    uint32_t magic, flags, argc, envc;
};

enum shim_exec_reply_kind { SHIM_EXEC_STARTED = 1, SHIM_EXEC_FAILED = 2, SHIM_EXEC_ENDED = 3 };

struct shim_exec_reply {
    uint32_t magic, kind;
    uint32_t stage;  /* FAILED: enum shim_stage */
    int32_t value;   /* STARTED: pid; FAILED: errno; ENDED: exit code or signal */
    uint32_t signal; /* ENDED: 1 when `value` is a signal */
};

/* An entry of "times" beside "log" ("times.1" beside "log.1" ...): when the bytes of the log from `offset` on
 * arrived. The shim writes it before the bytes, at most once a millisecond, so the log itself stays plain
 * text and the cost small. An incomplete last entry does not count. */
struct shim_log_time {
    uint64_t offset;
    int64_t arrived_ns; /* wall clock */
};
_Static_assert(sizeof(struct shim_log_time) == 16, "the file's layout is fixed");

enum {
    SHIM_START_OFFSET = sizeof(struct shim_header),
    SHIM_EXIT_OFFSET = SHIM_START_OFFSET + sizeof(struct shim_start),
    SHIM_STRINGS_OFFSET = SHIM_EXIT_OFFSET + sizeof(struct shim_exit),
};
_Static_assert(sizeof(struct shim_header) == 304, "the task file's layout is fixed");
_Static_assert(sizeof(struct shim_start) == 40, "the task file's layout is fixed");
_Static_assert(sizeof(struct shim_exit) == 80, "the task file's layout is fixed");
_Static_assert(sizeof(struct shim_event) == 56, "the message's layout is fixed");
_Static_assert(sizeof(struct shim_exec_request) == 16, "the message's layout is fixed");
_Static_assert(sizeof(struct shim_exec_reply) == 20, "the message's layout is fixed");

/* FNV-1a (draft-eastlake-fnv): enough to tell a torn or forgotten record from a whole one. */
static inline uint64_t shim_checksum(const void *data, size_t len)
{
    const unsigned char *bytes = data;
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < len; i++)
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static inline uint64_t shim_exit_checksum(const struct shim_exit *record)
{
    return shim_checksum(record, offsetof(struct shim_exit, checksum));
}

#endif
