/* checkpoint_of.h - where the checkpoints of a job of a cluster are. */
#ifndef PHX_CMD_CHECKPOINT_OF_H
#define PHX_CMD_CHECKPOINT_OF_H

#include "cmd/client.h"

/* Is the text jobset/NAME, or jobset/NAME/GROUP, rather than a folder or the address of a store? */
bool checkpoint_is_of_job(const char *text);

/* Asks the controller for the job's folder and appends it to `out`. Returns the usual exit codes after
 * printing the reason: no step was committed, the folder is not on this machine, or several groups of ranks
 * have one each. */
int checkpoint_of_job(const char *text, const struct client_options *options, struct buf *out);

#endif
