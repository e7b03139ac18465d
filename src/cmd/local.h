/* local.h - clusters of `phalanx up` that commands of the same user find by themselves.
 *
 * For the time that it runs, `phalanx up` keeps a link to its credentials in a private folder of its user:
 *
 *     $XDG_STATE_HOME/phalanx-up/HOST-ADDRESS:PORT -> DATA/access/local.kubeconfig
 *
 * or in ~/.local/state/phalanx-up, or, where there is no home, in /tmp/phalanx-up-UID. A folder of another
 * user, or that others may write, is not used.
 */
#ifndef PHX_CMD_LOCAL_H
#define PHX_CMD_LOCAL_H

#include <limits.h>
#include <stdbool.h>

/* Finds the kubeconfig file of the running cluster whose API has this address: a URL or HOST:PORT. */
bool local_find(const char *server, char ret_path[PATH_MAX]);
/* Leaves a link to the kubeconfig file of the API at this address (NULL: none; earlier ones go). False: there
 * is none now. */
bool local_announce(const char *server, const char *kubeconfig);
/* Takes back the links to files of this folder. */
void local_forget(const char *data);

/* Can tasks of other users reach this path of root's? They can if every folder on the way lets others pass,
 * or if tasks may have mounts of their own, with which the agent bridges such folders (confine.c). If they
 * cannot, *ret_why says why, in half a sentence. */
bool local_others_reach(const char *path, char ret_why[PATH_MAX]);

#endif
