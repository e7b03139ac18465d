/* processes.h - finds the processes of a local cluster, or of one of its machines, on this computer. */
#ifndef PHX_CMD_PROCESSES_H
#define PHX_CMD_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Calls `visit` with every process of the machine whose state directory is `state`: the agent that names it
 * on its command line, and the shims and tasks whose working directory is below it. Leaves out the caller's
 * own process, and processes that have been killed even if they have not ended yet. */
void processes_visit(const char *state, void (*visit)(void *context, pid_t pid), void *context);
bool processes_exist(const char *state); /* returns true if there is such a process */
/* Calls `visit` with every process of the whole cluster in the folder `data`, a real path: its controller,
 * agents and shims. A task never outlives its shim. */
void processes_of_cluster(const char *data, void (*visit)(void *context, pid_t pid), void *context);

/* Facts from /proc/PID/stat. */
struct process_facts {
    char name[16], state; /* the program's file name; 'R', 'S', 'Z', ... */
    pid_t parent;
    uint64_t started; /* in clock ticks since boot */
};
bool process_facts(pid_t pid, struct process_facts *ret); /* returns false if there is no such process */
uint64_t processes_now(void);                             /* returns the present time as `started` counts */

/* Returns a descriptor that becomes readable when the process has ended, even if its pid is reused; -1 with
 * errno. The caller closes it. */
int process_watch(pid_t pid);
/* Waits for the end of the process. Returns false if it still runs at `deadline_ns` of client_clock(). */
bool process_await(int watch, int64_t deadline_ns);

#endif
