/* checkpoint_gc.h - phalanx checkpoint gc: deletes files that no restore can need from a folder of
 * checkpoints or an object store.
 *
 * If a step is complete, deletes unfinished files and parts of incomplete checkpoints of steps below the
 * newest complete one. In any case deletes uploads that began more than a day ago.
 *
 * The functions block while the store works, and are called by one thread.
 */
#ifndef PHX_CMD_CHECKPOINT_GC_H
#define PHX_CMD_CHECKPOINT_GC_H

#include <stdbool.h>

/* Cleans `where`, a folder or the address of a store that includes the job's folder. Prints each file that it
 * deletes or, with `dry_run`, would delete. Returns an exit status. */
int checkpoint_gc(const char *where, bool dry_run);

#endif
