/* cause.h - puts an attribution (docs/faults.md) into words. */
#ifndef PHX_CMD_CAUSE_H
#define PHX_CMD_CAUSE_H

#include "cmd/client.h"

/* Appends " of rank 2 on m-3 and 4 other tasks". */
void put_place(struct buf *out, const struct doc *found);

/* Appends why a JobSet failed, as its object read alone says: "exit/1 of rank 2 on m-3 (user): EVIDENCE",
 * else the message of its condition. Nothing if it has not failed. */
void put_failure(struct buf *out, const struct doc *jobset);

#endif
