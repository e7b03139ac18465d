/* checkpoint_of.h - finds the folder with the checkpoints of a job in a cluster. */
#ifndef PHX_CMD_CHECKPOINT_OF_H
#define PHX_CMD_CHECKPOINT_OF_H

#include "cmd/client.h"

/* Returns true if the text is jobset/NAME or jobset/NAME/GROUP, rather than a folder or the address of a
 * store. */
bool checkpoint_is_of_job(const char *text);

/* Asks the controller for the job's folder and appends it to `out`. Returns the usual exit codes, after a
 * message on failure: no step was committed, the folder is not on this machine, or there are several groups
 * of ranks, each with its own folder. */
int checkpoint_of_job(const char *text, const struct client_options *options, struct buf *out);

#endif
