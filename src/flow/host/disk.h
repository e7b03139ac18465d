/* disk.h - tensors of suspended clients in a file; private to src/flow/host.
 *
 * The file has no name, so the kernel removes it when the process ends, even when it is killed. A thread,
 * started with the first order, reads and writes. The space of a released tensor becomes a hole in the file.
 */
#ifndef PHX_FLOW_HOST_DISK_H
#define PHX_FLOW_HOST_DISK_H

#include "flow/island/machine.h"
#include "flow/wire/loop.h"

struct disk;
/* `folder` is borrowed until disk_free; the file is made with the first save. Completed orders wait as events
 * for disk_next, and `loop` is woken for them. */
struct disk *disk_new(const char *folder, struct loop *loop);
/* Waits for the current order and drops the others. Afterwards saved tensors may be scrapped. */
void disk_stop(struct disk *disk);
/* Frees the disk after disk_stop, when all saved tensors that were returned have been scrapped. Drops the
 * events that disk_next has not returned. */
void disk_free(struct disk *disk);

/* Carries out SAVE, and takes over the effect's payload. This and the functions below are thread-safe. */
void disk_save(struct disk *disk, struct flow_effect *effect);
/* Carries out LOAD. */
void disk_load(struct disk *disk, const struct flow_effect *effect);
/* Carries out SCRAP; `saved` is the `executable` of a SAVED event. */
void disk_scrap(struct disk *disk, void *saved);

/* Returns one SAVED or LOADED event in *ret_event, or false if there is none. The event's fault and results
 * are valid until the next call; the caller takes over the reference to a loaded tensor. */
bool disk_next(struct disk *disk, struct flow_event *ret_event);

#endif
