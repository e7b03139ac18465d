/* crowd.h - counts and limits the connections of each source address, open or half-open. Pure; one thread.
 *
 *     uint32_t place = crowd_place(&crowd, address);
 *     if (!crowd_enter(&crowd, place, 1, LIMIT)) ...refuse it, at little cost...
 *     ...                                                 // it is open, or gone:
 *     crowd_leave(&crowd, place, 1);
 * An IPv6 host has its own network, so only 64 bits of its address count. Addresses are hashed to places, and
 * those of one place share its limit; `seed` is random, so that no peer can aim at another's place.
 */
#ifndef PHX_NET_CROWD_H
#define PHX_NET_CROWD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { CROWD_PLACES = 4096 };

struct crowd {
    uint64_t seed;
    uint16_t counts[CROWD_PLACES];
};
/* Returns the place of an address, below CROWD_PLACES. */
uint32_t crowd_place(const struct crowd *crowd, const struct sockaddr *address);
/* Adds `count` to a place. Returns false, without adding, if the place would then exceed `max`. */
bool crowd_enter(struct crowd *crowd, uint32_t place, uint32_t count, uint32_t max);
void crowd_leave(struct crowd *crowd, uint32_t place, uint32_t count);

#endif
