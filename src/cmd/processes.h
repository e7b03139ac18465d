/* processes.h - which processes of this computer belong to one machine of a local cluster. */
#ifndef PHX_CMD_PROCESSES_H
#define PHX_CMD_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Calls `visit` with every process of the machine whose state directory is `state`: its agent names it on the
 * command line, its shims and tasks work below it. Left out are the caller's own process and those that have
 * been killed, though they may not be dead yet. */
void processes_visit(const char *state, void (*visit)(void *context, pid_t pid), void *context);
bool processes_exist(const char *state); /* there is one */
/* The same of the whole cluster in the folder `data`, a real path: its controller, agents and shims. A task
 * never outlives its shim. */
void processes_of_cluster(const char *data, void (*visit)(void *context, pid_t pid), void *context);

/* Facts of /proc/PID/stat. */
struct process_facts {
    char name[16], state; /* of its program's file; 'R', 'S', 'Z', ... */
    pid_t parent;
    uint64_t started; /* in clock ticks since boot */
};
bool process_facts(pid_t pid, struct process_facts *ret);
uint64_t processes_now(void); /* as `started` */

/* Returns a descriptor that becomes readable when the process has ended, even if its pid is used again; -1
 * with errno. The caller closes it. */
int process_watch(pid_t pid);
/* False: it has not ended at `deadline_ns` of client_clock(). */
bool process_await(int watch, int64_t deadline_ns);

#endif
