/* checkpoint_gc.h - phalanx checkpoint gc: what no restore can want is deleted from a folder of checkpoints
 * or an object store.
 *
 * That is, where some step is complete: files of writes that did not finish and parts of checkpoints that are
 * not complete, both of steps below the newest complete one; and uploads that were begun more than a day ago.
 *
 * One thread; it blocks for as long as the store takes.
 */
#ifndef PHX_CMD_CHECKPOINT_GC_H
#define PHX_CMD_CHECKPOINT_GC_H

#include <stdbool.h>

/* A folder or the address of a store, with the job's folder in it. Prints each thing that goes, or, dry, that
 * would; returns an exit status. */
int checkpoint_gc(const char *where, bool dry_run);

#endif
