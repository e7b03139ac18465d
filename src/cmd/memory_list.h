/* memory_list.h - lists a folder of checkpoints in memory (job/checkpoint/held.h, job/gang/offer.h): the
 * steps that a machine's ranks hold, and copies of other machines' ranks. One thread. */
#ifndef PHX_CMD_MEMORY_LIST_H
#define PHX_CMD_MEMORY_LIST_H

#include <stdbool.h>

#include "base/str.h"

/* Appends the held steps, newest first, as a table or one JSON object. Returns false, with nothing appended,
 * if the folder contains none. */
bool memory_list(const char *folder, bool json, struct buf *out);

#endif
