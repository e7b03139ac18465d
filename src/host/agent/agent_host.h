/* agent_host.h - agents in the real world: agent_step (core/agent/agent.h) with sockets, processes and clocks
 * around it.
 *
 * A host runs one machine with real tasks (src/host/launch), or any number of simulated machines: real
 * connections and real agents whose tasks are played by a tiny driver inside the process, for tests of scale.
 * A simulated task starts after 1 ms, makes a step every PHX_SIM_STEP_MS of its environment (absent: none),
 * ends with code 0 after PHX_SIM_RUN_MS (absent: when it is stopped). One timer serves all machines.
 *
 * State directory of a real machine (one host per directory at a time, guarded by the launcher):
 *     tasks, fence ...   the launcher's (docs/launcher.md)
 *     starts/<uid>       the START frame of each task not forgotten: a restarted agent knows its chips
 *     work/<uid>         working directory of tasks that name none; removed when forgotten if it is empty
 *     volumes/<uid>      its volumes (volumes.c)
 *     health             conditions that probes saw, and how far they had read the kernel log
 *     uploads/           records of shards on their way to the object store (store.c)
 *     injections/        what stands of faults on purpose (docs/inject.md)
 *     sockets/<uid>/     agent.sock of each container: for libphalanx (job/link/wire.h, sockets.c)
 *     faults.sock        for daemons that report faults (docs/faults.md); /tmp/phalanx-<hash>.sock where that
 *                        path is too long
 *
 * Connections: two to the controller, the second the tether that the launcher's shims inherit (message.h).
 * Both are made before Hello and dropped together.
 *
 * Everything on the loop's thread. docs/agent.md is the operator's view.
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

struct agent_host_options { /* strings must live until agent_host_new returns */
    const char *machine;    /* name; "{n}" in it is the machine's number when there are several */
    uint32_t machines;      /* 0: 1; more only with `simulate` */
    uint32_t first;         /* number of the first */
    bool simulate;
    const char *controller; /* address or name */
    /* Further controllers of the cluster, of which one leads: each is tried in turn when the one before does
     * not answer or its connection ends. */
    const struct agent_host_place *others;
    size_t other_count;
    uint16_t port;
    const char *address;             /* own address, for outgoing connections; NULL: the kernel's choice */
    const char *state;               /* directory; not needed with `simulate` */
    const char *volumes_dir;         /* claims are directories in it; NULL: pods with claims do not start */
    /* A folder on a file system in memory, where tasks hold checkpoints (memory.c); NULL: /dev/shm; "":
     * none. */
    const char *memory_dir;
    /* Where tasks' checkpoints go (objectstore.h), by way of memory_dir; NULL: into the directory that the
     * controller names. */
    const char *checkpoint_store;
    const char *hooks_dir;           /* operators' scripts (docs/errands.md); NULL: /etc/phalanx/hooks */
    /* The users of tasks, on an agent that runs as root (user.c): a name, a number or "FROM-TO"; NULL: ids
     * from 200000 on. */
    const char *task_user;
    bool allow_root_tasks;           /* without task_user: tasks run as root */
    bool isolation_off;              /* tasks see the agent's files, as far as their user may (confine.c) */
    bool isolation_required;         /* a task does not start where its machine cannot isolate it */
    bool seccomp_off;                /* tasks may make every system call */
    const char *const *hidden;       /* paths that no task sees; likewise the TLS key */
    size_t hidden_count;
    bool injection;                  /* break things where the controller asks (docs/inject.md) */
    bool probe_link_local;           /* containers' probes may ask link-local addresses */
    const char *shim;                /* path of phalanx-shim; NULL: the launcher's search */
    /* The size and number of each container's log files, for runs that start from now on (launch.h). */
    uint64_t log_bytes;              /* 0: the launcher's 10 MiB */
    uint32_t log_files;              /* 0: the launcher's 5; at most 100 */
    uint32_t chips;                  /* per machine, at most 64 */
    int64_t cpu_milli, memory_bytes; /* 0: what this machine has */
    /* PEM files: the authority that the controller's certificate must come from, and this machine's own
     * certificate and key. All or none; NULL: no TLS. */
    const char *tls_ca, *tls_cert, *tls_key;
    bool probes;                     /* look after the machine's health (host/probes/probes.h) */
    const char *probes_root;         /* put before every path that probes read; NULL: this machine */
    const struct doc *probe_settings; /* docs/probes.md; NULL: the defaults */
    /* Where GET /metrics is answered, for one real machine; NULL: nowhere. */
    const char *metrics_address;
    uint16_t metrics_port;
    uint64_t seed;                   /* of jitter; 0: from the clock */
    bool quiet;                      /* no notes on standard error */
    bool announce;       /* says when the controller has welcomed it */
};

int agent_host_new(uv_loop_t *loop, const struct agent_host_options *options, struct agent_host **ret_host,
                   struct error *error);

/* Lets go of connections and tasks; `closed` (may be NULL) is called from the loop when the memory is gone.
 * Tasks go on under their shims until the fence, or until an agent adopts them, unless `stop_tasks`: then
 * they get their grace and the host waits for their ends. A second call with stop_tasks = false ends the
 * waiting. */
void agent_host_shutdown(struct agent_host *host, bool stop_tasks, void (*closed)(void *context),
                         void *context);

/* The path of a socket of this name in a state directory (its real path). */
enum { AGENT_SOCKET_PATH_MAX = 100 };
void agent_socket_path(const char *directory, const char *name, char ret_path[AGENT_SOCKET_PATH_MAX + 1]);

/* For tests and `phalanx agent`'s status line. */
uint32_t
agent_host_welcome_count(const struct agent_host *host); /* machines that a controller has accepted */

#endif
