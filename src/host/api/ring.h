/* ring.h - the newest changes of all resources, rendered once, shared by every watcher. Private to api.
 *
 * A change is rendered only while somebody watches its resource, or has read it within INTEREST_NS (the
 * reader may be about to watch from there). Changes that were not rendered raise the resource's floor: a
 * watch may begin at version v only if v >= floor, i.e. all changes after v are in the ring.
 */
#ifndef PHX_HOST_API_RING_H
#define PHX_HOST_API_RING_H

#include "host/api/request.h"

#define INTEREST_NS (120 * NS_PER_SECOND)

struct change {
    uint64_t seq;
    obj_id uid;
    enum resource_id resource;
    enum change_type type;
    struct str namespace_, name, object, metadata, cells; /* in `text` */
    size_t bytes;
    char text[];
};
struct watch_ring {
    struct api *api;
    struct change **slots; /* [API_RING_ENTRIES_MAX], by number % API_RING_ENTRIES_MAX */
    uint64_t first, next;  /* numbers of the changes kept: [first, next) */
    size_t bytes;
    size_t first_bytes; /* names that watchers have taken down when they began */
    uint64_t floor_seq[RESOURCES];
    int64_t interest_ns[RESOURCES]; /* until when readers may come back */
    struct list_node watchers[RESOURCES];
    size_t watcher_count[RESOURCES];
    struct buf object_text, cells_text; /* reused */
    struct guard_look rights;           /* the watchers' */
};

static inline const struct change *ring_at(const struct watch_ring *ring, uint64_t number)
{
    return ring->slots[number % API_RING_ENTRIES_MAX];
}
/* watch.c: ends the watches whose right has ended, if anything changed since the last check. */
void watchers_check_rights(struct watch_ring *ring);
/* watch.c: ends all watches; their clients see the end of a whole answer. */
void watchers_end(struct watch_ring *ring);
/* watch.c: a change of this resource has come. */
void watchers_notice(struct watch_ring *ring, const struct change *change, uint64_t number);

#endif
