/* cause.h - describes an attribution (docs/faults.md) in words. */
#ifndef PHX_CMD_CAUSE_H
#define PHX_CMD_CAUSE_H

#include "cmd/client.h"

/* Appends " of rank 2 on m-3 and 4 other tasks". */
void put_place(struct buf *out, const struct doc *found);

/* Appends why a JobSet failed, from an object that was read alone (not in a list): "exit/1 of rank 2 on m-3
 * (user): EVIDENCE", or else the message of its condition. Appends nothing if the JobSet has not failed. */
void put_failure(struct buf *out, const struct doc *jobset);

#endif
