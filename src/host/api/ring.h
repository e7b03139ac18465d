/* ring.h - the newest changes of all resources, rendered once and shared by all watchers. Private to api.
 *
 * A change is rendered only if a client watches its resource, or has read it within INTEREST_NS (and may be
 * about to watch from there). Changes that are not rendered, or dropped, raise the resource's floor: a watch
 * may begin at version v only if v >= floor, that is, if all changes after v are in the ring.
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
    size_t first_bytes; /* memory for the names of existing objects that watchers still have to report */
    uint64_t floor_seq[RESOURCES];
    int64_t interest_ns[RESOURCES]; /* wall clock: until when changes are rendered without a watcher */
    struct list_node watchers[RESOURCES];
    size_t watcher_count[RESOURCES];
    struct buf object_text, cells_text; /* reused */
    struct guard_look rights;           /* when the watchers' rights were last checked */
};

static inline const struct change *ring_at(const struct watch_ring *ring, uint64_t number)
{
    return ring->slots[number % API_RING_ENTRIES_MAX];
}
/* Ends the watches whose users have lost the right, if anything has changed since the last check. In watch.c,
 * as the following. */
void watchers_check_rights(struct watch_ring *ring);
/* Ends all watches. Clients see a complete answer. */
void watchers_end(struct watch_ring *ring);
/* Wakes the idle watchers that a new change concerns. */
void watchers_notice(struct watch_ring *ring, const struct change *change, uint64_t number);

#endif
