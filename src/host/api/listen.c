/* listen.h - see there. */
#include "host/api/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 1024

int api_listen(const char *address, uint16_t port, uint16_t *ret_port, struct error *error)
{
    char service[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *found;
    int on = 1;
    snprintf(service, sizeof service, "%u", port);
    int rc = getaddrinfo(address, service, &hints, &found);
    if (rc != 0)
        return error_set(error, ERROR_INVALID, "listen address %s: %s", address, gai_strerror(rc));
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_storage bound;
    socklen_t bound_len = sizeof bound;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, found->ai_addr, found->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&bound, &bound_len) < 0) {
        rc = error_set_errno(error, errno, "listening on %s port %u", address, port);
        if (fd >= 0)
            close(fd);
        freeaddrinfo(found);
        return rc;
    }
    /* Inherited by accepted sockets: a peer that vanished without a word is noticed within two minutes. */
    int idle_s = 60, interval_s = 15, probes = 4;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    freeaddrinfo(found);
    *ret_port = bound.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&bound)->sin6_port)
                                            : ntohs(((struct sockaddr_in *)&bound)->sin_port);
    return fd;
}
