#include "net/crowd.h"

#include <netinet/in.h>

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
