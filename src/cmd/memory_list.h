/* memory_list.h - a folder of checkpoints in memory (job/held.h, job/offer.h): what a machine's ranks hold,
 * and the copies that other machines' ranks have sent. One thread. */
#ifndef PHX_CMD_MEMORY_LIST_H
#define PHX_CMD_MEMORY_LIST_H

#include <stdbool.h>

#include "base/str.h"

/* Prints what is held, newest first, as a table or one JSON object. False: the folder holds nothing of the
 * kind, and nothing was printed. */
bool memory_list(const char *folder, bool json, struct buf *out);

#endif
