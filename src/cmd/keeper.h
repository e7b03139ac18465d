/* keeper.h - cleans up behind `phalanx up` when it ends, however it ends.
 *
 * A folder belongs to one `phalanx up` at a time: the holder of the lock DATA/up.lock, which contains its
 * process id. Before it starts anything it forks a keeper. The keeper waits for the end of `phalanx up` at a
 * pipe, then for the end of the cluster's processes, and then removes what is useless without them:
 * DATA/ready, the folder in memory, control groups. The keeper shares the lock, so the next `phalanx up`
 * begins after that. Controller and agents notice the end of `phalanx up` by themselves (keeper_follow).
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

/* Takes the folder `data`, a real path, and starts the keeper. False after a message; the folder is not taken
 * then. Call it before any thread is made. */
bool keeper_start(struct keeper *keeper, const char *data);
/* Lets go of the tether and returns when the keeper has done its work. */
void keeper_end(struct keeper *keeper);

/* Returns the path of the cluster's folder in memory, whose name is the cluster's secret. False: `error` says
 * why it is not known. */
bool keeper_memory(const char *data, char ret_path[64], struct error *error);
/* Returns the control groups of the cluster, below the caller's own. False: the caller's own is not known. */
bool keeper_groups(const char *data, char ret_own[INJECT_PATH_MAX], char ret_path[KEEPER_GROUPS_BYTES]);

/* `phalanx down`: ends the cluster of the folder, with the graces of its tasks, and returns when all of it is
 * gone. The exit code; EXIT_TIMEOUT: something still ran at `deadline_ns` (client_clock()). */
int keeper_down(const char *data, int64_t deadline_ns);

/* This process gets SIGTERM when `parent`, a number, ends. False: it is not, or not any more, the parent. */
bool keeper_follow(const char *parent);

#endif
