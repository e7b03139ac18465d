/* local.h - lets commands find the clusters of `phalanx up` of the same user.
 *
 * While it runs, `phalanx up` keeps a link to its credentials in a private folder of its user:
 *
 *     $XDG_STATE_HOME/phalanx-up/HOST-ADDRESS:PORT -> DATA/access/local.kubeconfig
 *
 * or in ~/.local/state/phalanx-up, or, without a home directory, in /tmp/phalanx-up-UID. A folder that
 * belongs to another user or that others may write is not used.
 */
#ifndef PHX_CMD_LOCAL_H
#define PHX_CMD_LOCAL_H

#include <limits.h>
#include <stdbool.h>

/* Finds the kubeconfig file of the running cluster whose API has this address, a URL or HOST:PORT. Returns
 * false if there is none. */
bool local_find(const char *server, char ret_path[PATH_MAX]);
/* Replaces the links for the API at this address by a link to `kubeconfig`; NULL: only removes them. Returns
 * true if there is a link now. */
bool local_announce(const char *server, const char *kubeconfig);
/* Removes the links to files in the folder `data`. */
void local_forget(const char *data);

/* Returns true if tasks of other users can reach this path: every folder on the way lets others pass, or
 * tasks may have their own mounts, with which the agent makes such folders accessible (confine.c). Otherwise
 * ret_why receives the reason. */
bool local_others_reach(const char *path, char ret_why[PATH_MAX]);

#endif
