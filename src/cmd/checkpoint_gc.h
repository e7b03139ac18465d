/* checkpoint_gc.h - phalanx checkpoint gc: deletes what no restore can need from a folder of checkpoints or
 * an object store.
 *
 * If some step is complete, gc deletes unfinished files and parts of incomplete checkpoints of steps below
 * the newest complete one; and in any case uploads that were begun more than a day ago.
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
