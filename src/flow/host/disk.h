/* disk.h - tensors of suspended clients in a file; private to src/flow/host.
 *
 * The file has no name: it ends with the process, also when that is killed. A thread of its own, started with
 * the first order, reads and writes. Room that is given back is a hole in the file.
 */
#ifndef PHX_FLOW_HOST_DISK_H
#define PHX_FLOW_HOST_DISK_H

#include "flow/island/machine.h"
#include "flow/wire/loop.h"

struct disk;
/* `folder` must live as long; the file is made with the first save. Events wait in a list, and `loop` is
 * woken. */
struct disk *disk_new(const char *folder, struct loop *loop);
/* Waits for the order under way, and drops the others: what was saved may be scrapped then. */
void disk_stop(struct disk *disk);
/* After disk_stop, once all that was handed out is scrapped. Events that nobody has taken are dropped. */
void disk_free(struct disk *disk);

/* SAVE: takes over the effect's payload. Thread-safe, as all below. */
void disk_save(struct disk *disk, struct flow_effect *effect);
void disk_load(struct disk *disk, const struct flow_effect *effect);
/* SCRAP: `saved` is of a SAVED event. */
void disk_scrap(struct disk *disk, void *saved);

/* Hands out one SAVED or LOADED event; false: none. What it points to lives until the next call. */
bool disk_next(struct disk *disk, struct flow_event *ret_event);

#endif
