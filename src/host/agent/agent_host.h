/* agent_host.h - agents in the real world: agent_step (core/agent/agent.h) with sockets, processes and clocks
 * around it.
 *
 * A host runs one machine with real tasks (src/host/launch), or any number of simulated machines for tests of
 * scale: their connections and agents are real, and a tiny driver inside the process plays their tasks. A
 * simulated task starts after 1 ms, makes a step every PHX_SIM_STEP_MS of its environment (absent: none), and
 * exits with code 0 after PHX_SIM_RUN_MS (absent: when it is stopped). One timer serves all machines.
 *
 * State directory of a real machine (one host per directory at a time, guarded by the launcher):
 *     tasks, fence ...   the launcher's (docs/launcher.md)
 *     starts/<uid>       the START frame of each task not forgotten, from which a restarted agent learns its
 *                        chips
 *     work/<uid>         working directory of a task that names none; removed with the task's records if
 *                        empty
 *     volumes/<uid>      the task's volumes (volumes.c)
 *     health             the probes' conditions, and their position in the kernel log
 *     uploads/           records of shards on their way to the object store (store.c)
 *     injections/        injected faults that are in force (docs/inject.md)
 *     sockets/<uid>/     agent.sock of each container: for libphalanx (job/link/wire.h, sockets.c)
 *     faults.sock        for daemons that report faults (docs/faults.md); /tmp/phalanx-<hash>.sock where that
 *                        path is too long
 *
 * A machine has two connections to the controller: the session, and the tether that the launcher's shims
 * inherit (message.h). Both are made before Hello and closed together.
 *
 * All calls and callbacks are on the loop's thread. docs/agent.md is the operator's view.
 */
#ifndef PHX_HOST_AGENT_AGENT_HOST_H
#define PHX_HOST_AGENT_AGENT_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "doc/doc.h"
#include "base/error.h"

struct agent_host;

enum { AGENT_HOST_MACHINES_MAX = 131072 };

enum { AGENT_HOST_CONTROLLERS_MAX = 8 };

struct agent_host_place {
    const char *controller; /* address or name */
    uint16_t port;
};

/* Strings must live until agent_host_new returns, the tls_* as long as the host. */
struct agent_host_options {
    const char *machine;    /* name; "{n}" in it is the machine's number when there are several */
    uint32_t machines;      /* 0: 1; more only with `simulate` */
    uint32_t first;         /* number of the first machine */
    bool simulate;
    const char *controller; /* address or name */
    /* Further controllers of the cluster, of which one leads. The agent tries the next one in turn when a
     * controller does not answer or its connection ends. */
    const struct agent_host_place *others;
    size_t other_count;
    uint16_t port;
    const char *address;             /* source address of connections; NULL: the kernel's choice */
    const char *state;               /* directory; not needed with `simulate` */
    /* Parent of the claims' directories; NULL: pods with claims do not start. */
    const char *volumes_dir;
    /* A folder on a file system in memory, where tasks hold checkpoints (memory.c); NULL: /dev/shm; "":
     * none. */
    const char *memory_dir;
    /* The object store for tasks' checkpoints (objectstore.h), which pass through memory_dir; NULL:
     * checkpoints go to the directory that the controller names. */
    const char *checkpoint_store;
    const char *hooks_dir;           /* operators' scripts (docs/errands.md); NULL: /etc/phalanx/hooks */
    /* The users that tasks run as, on an agent that runs as root (user.c): a name, a number or "FROM-TO";
     * NULL: ids from 200000 on. */
    const char *task_user;
    bool allow_root_tasks;     /* tasks may run as root; without task_user they do by default */
    bool isolation_off;        /* tasks see the agent's files, as file permissions allow (confine.c) */
    bool isolation_required;   /* a task does not start if the machine cannot isolate it */
    bool seccomp_off;          /* system calls are not filtered */
    const char *const *hidden; /* paths that no task sees, in addition to the TLS key */
    size_t hidden_count;
    bool injection;                  /* allows faults that the controller injects (docs/inject.md) */
    bool probe_link_local;           /* containers' probes may connect to link-local addresses */
    const char *shim;                /* path of phalanx-shim; NULL: the launcher's search */
    /* The size and number of each container's log files, for runs that start from now on (launch.h). */
    uint64_t log_bytes;              /* 0: the launcher's 10 MiB */
    uint32_t log_files;              /* 0: the launcher's 5; at most 100 */
    uint32_t chips;                  /* per machine, at most 64 */
    int64_t cpu_milli, memory_bytes; /* 0: this machine's own */
    /* PEM files: the authority that must have signed the controller's certificate, and this machine's own
     * certificate and key. All or none; NULL: no TLS. */
    const char *tls_ca, *tls_cert, *tls_key;
    bool probes;                      /* watch the machine's health (host/probes/probes.h) */
    const char *probes_root;          /* prefix of every path that probes read; NULL: none */
    const struct doc *probe_settings; /* docs/probes.md; NULL: the defaults */
    /* The address at which one real machine serves GET /metrics; NULL: none. */
    const char *metrics_address;
    uint16_t metrics_port;
    uint64_t seed; /* of jitter; 0: taken from the clock */
    bool quiet;    /* print no notes on standard error */
    bool announce; /* print a note when the controller has welcomed the machine */
};

/* Creates a host, adopts the tasks of an earlier agent and begins to connect. ERROR_INVALID: an option breaks
 * a rule above. ERROR_CORRUPT: the state directory names no valid cluster. Other errors are those of the
 * launcher and of files. After a failure the loop may have to run to close handles. */
int agent_host_new(uv_loop_t *loop, const struct agent_host_options *options, struct agent_host **ret_host,
                   struct error *error);

/* Closes the host's connections and leaves its tasks; `closed` (may be NULL) is called from the loop when the
 * memory is freed. Tasks keep running under their shims until the fence, or until another agent adopts them.
 * With `stop_tasks` the host instead stops all tasks with their grace and waits for their ends; a second call
 * with stop_tasks = false ends the wait. */
void agent_host_shutdown(struct agent_host *host, bool stop_tasks, void (*closed)(void *context),
                         void *context);

/* Stores the path of the socket `name` of a state directory, which is given by its real path. */
enum { AGENT_SOCKET_PATH_MAX = 100 };
void agent_socket_path(const char *directory, const char *name, char ret_path[AGENT_SOCKET_PATH_MAX + 1]);

/* Returns how many machines a controller has accepted; for tests and `phalanx agent`'s status line. */
uint32_t agent_host_welcome_count(const struct agent_host *host);

#endif
