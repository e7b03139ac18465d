#include "host/api/entry.h"

#include <netinet/in.h>

enum { TLS_HANDSHAKE = 22 }; /* a record's first byte (RFC 8446 section 5.1) */

static bool is_loopback(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    return address->ss_family == AF_INET6 &&
           (IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127));
}

bool entry_begins_tls(int fd, const struct sockaddr_storage *address)
{
    unsigned char first = TLS_HANDSHAKE;
    if (is_loopback(address))
        (void)recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
    return first == TLS_HANDSHAKE;
}
