/* keeper.h - cleans up after `phalanx up`, however it ends.
 *
 * A folder belongs to one `phalanx up` at a time: the process that holds the lock DATA/up.lock, which
 * contains its process id. Before it starts anything else, `phalanx up` forks a keeper. The keeper waits at a
 * pipe for the end of `phalanx up`, then for the end of the cluster's processes. Then it removes DATA/ready,
 * the folder in memory and the control groups. The keeper shares the lock, so the next `phalanx up` begins
 * after that. Controller and agents notice the end of `phalanx up` by themselves (keeper_follow).
 */
#ifndef PHX_CMD_KEEPER_H
#define PHX_CMD_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/inject/inject.h"

enum { KEEPER_GROUPS_BYTES = INJECT_PATH_MAX + 64 };

struct keeper {
    int lock, tether;
    pid_t pid;
};

/* Locks the folder `data`, a real path, and starts the keeper. Returns false, after a message, with the
 * folder not locked. Forks, so call it before any thread is started. */
bool keeper_start(struct keeper *keeper, const char *data);
/* Closes the pipe and returns when the keeper has cleaned up and ended. */
void keeper_end(struct keeper *keeper);

/* Finds the path of the cluster's folder in memory, whose name is the cluster's secret. Returns false, with
 * the reason in `error`, if the secret cannot be read or made. */
bool keeper_memory(const char *data, char ret_path[64], struct error *error);
/* Finds the control group of the cluster, which is below the caller's own. Returns false if the caller's own
 * is not known. */
bool keeper_groups(const char *data, char ret_own[INJECT_PATH_MAX], char ret_path[KEEPER_GROUPS_BYTES]);

/* `phalanx down`: ends the cluster of the folder, with the grace periods of its tasks, and waits until all
 * its processes have ended. Returns the exit code; EXIT_TIMEOUT if a process still ran at `deadline_ns`
 * (client_clock()). */
int keeper_down(const char *data, int64_t deadline_ns);

/* Makes the kernel send SIGTERM to this process when the process `parent`, a number, ends. Returns false if
 * `parent` is not this process's parent, or has already ended. */
bool keeper_follow(const char *parent);

#endif
