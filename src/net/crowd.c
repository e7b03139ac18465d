#include "net/crowd.h"

#include <netinet/in.h>

#include "base/check.h"
#include "base/hash.h"

uint32_t crowd_place(const struct crowd *crowd, const struct sockaddr *address)
{
    const struct sockaddr_in *v4 = (const void *)address;
    const struct sockaddr_in6 *v6 = (const void *)address;
    uint64_t hash = crowd->seed;
    if (address->sa_family == AF_INET)
        hash = hash64(crowd->seed, &v4->sin_addr, sizeof v4->sin_addr);
    else if (address->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
        hash = hash64(crowd->seed, &v6->sin6_addr.s6_addr[12], sizeof v4->sin_addr);
    else if (address->sa_family == AF_INET6)
        hash = hash64(crowd->seed, &v6->sin6_addr, 8);
    return (uint32_t)(hash % CROWD_PLACES);
}

bool crowd_enter(struct crowd *crowd, uint32_t place, uint32_t count, uint32_t max)
{
    uint32_t sum = crowd->counts[place] + count;
    if (sum > max || sum > UINT16_MAX)
        return false;
    crowd->counts[place] = (uint16_t)sum;
    return true;
}

void crowd_leave(struct crowd *crowd, uint32_t place, uint32_t count)
{
    CHECK(crowd->counts[place] >= count);
    crowd->counts[place] -= (uint16_t)count;
}
