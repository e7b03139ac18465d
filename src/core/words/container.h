/* container.h - the containers of a task: how its agent runs them, and what the agent reports of them.
 *
 * Kubernetes' Pod (v1 PodSpec: initContainers, containers, probes, lifecycle, volumes) in the form that a
 * machine needs: all references are resolved. Init containers run one after the other, each to exit code 0.
 * A sidecar (an init container with restartPolicy Always) is started in its place among them, and delays the
 * next one until it has started. Then all main containers run together. The task ends when all main
 * containers have ended for good. Sidecars are stopped last, in reverse order.
 */
#ifndef PHX_CORE_WORDS_CONTAINER_H
#define PHX_CORE_WORDS_CONTAINER_H

#include <stdint.h>

#include "base/str.h"

enum {
    TASK_CONTAINERS_MAX = 128, /* init and main ones together */
    TASK_VOLUMES_MAX = 128,
    TASK_FILES_BYTES_MAX = 8 * 1024 * 1024, /* of all files of all volumes of one task */
    PROBE_OUTPUT_MAX = 512,                 /* bytes of a failed probe's output, in an event */
};

struct env_var {
    struct str name, value;
    bool host_names; /* the value is the gang's host names, which are also in its rank table */
};

enum container_role { CONTAINER_MAIN, CONTAINER_INIT, CONTAINER_SIDECAR, CONTAINER_ROLES };
enum container_restart { RERUN_NEVER, RERUN_ON_FAILURE, RERUN_ALWAYS };
/* restartPolicyRules: an exit with one of these codes (not_in: with any other) restarts the container,
 * regardless of its policy. */
struct container_rule {
    bool not_in;
    int32_t *codes;
    size_t code_count;
};

enum action_kind { ACTION_NONE, ACTION_EXEC, ACTION_HTTP, ACTION_TCP, ACTION_SLEEP, ACTION_KINDS };
struct container_action {
    enum action_kind kind;
    struct str *argv; /* EXEC: in the container's environment */
    size_t argc;
    bool tls;              /* HTTP over TLS; no certificate is checked */
    struct str host, path; /* HTTP, TCP: host empty: this machine */
    uint16_t port;
    struct env_var *headers; /* HTTP */
    size_t header_count;
    int64_t sleep_ns;
};

enum probe_kind { PROBE_STARTUP, PROBE_READINESS, PROBE_LIVENESS, PROBE_KINDS };
struct container_probe {
    struct container_action action; /* NONE: no such probe */
    int64_t initial_delay_ns, period_ns, timeout_ns;
    int32_t success_threshold, failure_threshold;
    int64_t grace_ns; /* grace of the kill after its failure; -1: the task's */
};

struct container_mount {
    struct str volume, path, sub_path;
    bool read_only;
};

enum { CONTAINER_GROUPS_MAX = 24 };
struct container_security {
    uint32_t *groups; /* supplementary ones: supplementalGroups, fsGroup */
    size_t group_count;
    uint64_t added, dropped; /* capabilities: bit N of capabilities(7) */
    bool non_root;           /* must not run as user 0 */
    bool privileged;
    bool escalation;     /* allowPrivilegeEscalation is set to true explicitly */
    bool read_only_root; /* volumes and /tmp alone can be written */
    bool unconfined;     /* no system calls are filtered */
};

struct container_launch {
    struct str name;
    enum container_role role;
    enum container_restart restart;
    /* After the task has joined its gang through libphalanx, the container is not restarted on the machine,
     * because the task's peers have lost it: the task ends with the container. */
    bool ends_joined;
    struct container_rule *rules;
    size_t rule_count;
    struct str *argv;
    size_t argc;
    struct env_var *env; /* complete, like a task's */
    size_t env_count;
    struct str working_dir;            /* empty: the task's own directory */
    int64_t run_as_user, run_as_group; /* -1: the agent's */
    int64_t cpu_milli, memory_bytes;   /* limits; 0: none */
    struct container_probe probes[PROBE_KINDS];
    struct container_action post_start, pre_stop;
    struct container_mount *mounts;
    size_t mount_count;
    struct container_security security;
};

enum volume_kind {
    VOLUME_EMPTY,  /* a directory of the task's own */
    VOLUME_MEMORY, /* the same in memory */
    VOLUME_HOST,   /* `source`: a path on the machine */
    VOLUME_CLAIM,  /* `source`: a claim, a directory below the agent's --volumes-dir */
    VOLUME_FILES,  /* `files`: ConfigMaps, Secrets and fields of the Pod as of its start */
    VOLUME_KINDS
};
struct volume_file {
    struct str path, data; /* relative, without ".." */
    uint32_t mode;         /* permission bits */
};
struct volume_launch {
    struct str name;
    enum volume_kind kind;
    struct str source, type; /* type: hostPath's "", "Directory", "DirectoryOrCreate", "File", ... */
    int64_t size_bytes;      /* MEMORY: limit, 0: none */
    struct volume_file *files;
    size_t file_count;
};

/* --- reports -------------------------------------------------------------------------------------------- */

enum container_phase { CONTAINER_WAITING, CONTAINER_RUNNING, CONTAINER_TERMINATED, CONTAINER_PHASES };
struct container_end {
    int32_t exit_code, signal; /* as a task's: -1 and the signal */
    bool oom, start_failed;
    int64_t started_ns, finished_ns; /* wall clock */
    struct str message;
};
struct container_status {
    struct str name;
    enum container_role role;
    enum container_phase phase;
    bool ready, started;
    uint32_t restarts;
    struct str reason, message; /* WAITING: "PodInitializing", "CrashLoopBackOff", ... */
    int64_t started_ns;         /* RUNNING: wall clock */
    /* TERMINATED: this run's end; otherwise, with restarts > 0: the last run's */
    struct container_end end;
};

/* Returns whether the path stays within its directory: it is relative and has no "..". */
bool volume_path_is_inner(struct str path);

struct arena;
/* Make deep copies, with all memory from `arena`. `ret` must not be `from`. */
void container_launch_copy(struct arena *arena, const struct container_launch *from,
                           struct container_launch *ret);
void volume_launch_copy(struct arena *arena, const struct volume_launch *from, struct volume_launch *ret);
void container_status_copy(struct arena *arena, const struct container_status *from,
                           struct container_status *ret);

#endif
