/* crowd.h - how many half-open connections each source address has. Pure; one thread.
 *
 *     uint32_t place = crowd_place(&crowd, address);
 *     if (crowd.counts[place] >= LIMIT) ...refuse it, at little cost... else crowd.counts[place]++;
 *     ...                                                 // it is open, or gone:
 *     crowd.counts[place]--;
 * A host of IPv6 has a network of its own, so 64 bits of such an address count. Addresses that fall into one
 * place share its limit; `seed` is drawn at start, so that nobody can aim at another's place.
 */
#ifndef PHX_NET_CROWD_H
#define PHX_NET_CROWD_H

#include <stdint.h>
#include <sys/socket.h>

enum { CROWD_PLACES = 4096 };

struct crowd {
    uint64_t seed;
    uint16_t counts[CROWD_PLACES];
};
uint32_t crowd_place(const struct crowd *crowd, const struct sockaddr *address);

#endif
