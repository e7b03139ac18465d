/* crowd.h - how many connections each source address has, open or half-open. Pure; one thread.
 *
 *     uint32_t place = crowd_place(&crowd, address);
 *     if (!crowd_enter(&crowd, place, 1, LIMIT)) ...refuse it, at little cost...
 *     ...                                                 // it is open, or gone:
 *     crowd_leave(&crowd, place, 1);
 * A host of IPv6 has a network of its own, so 64 bits of such an address count. Addresses that fall into one
 * place share its limit; `seed` is drawn at start, so that nobody can aim at another's place.
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
uint32_t crowd_place(const struct crowd *crowd, const struct sockaddr *address);
/* Counts `count` more there; false: that would be more than `max`, and nothing is counted. */
bool crowd_enter(struct crowd *crowd, uint32_t place, uint32_t count, uint32_t max);
void crowd_leave(struct crowd *crowd, uint32_t place, uint32_t count);

#endif
