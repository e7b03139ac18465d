/* Frames over sockets: unix:PATH and HOST:PORT. */
#include "flow/wire/socket.h"

#include "flow/wire/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { SOCKET_BACKLOG = 512, SOCKET_BUFFER = 1 << 20, SOCKET_CONNECT_S = 5 };
/* A machine that has vanished without a word is noticed after 25 s, whether this side sends or not. */
enum { SOCKET_IDLE_S = 10, SOCKET_PROBE_S = 5, SOCKET_PROBES = 3, SOCKET_UNANSWERED_MS = 25000 };

ssize_t wire_socket_read(struct wire *wire, void *data, size_t len)
{
    ssize_t got = recv(wire->fd, data, len, MSG_DONTWAIT);
    if (got > 0)
        return got;
    return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

ssize_t wire_socket_write(struct wire *wire, const void *data, size_t len)
{
    ssize_t sent = send(wire->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0)
        return sent;
    return errno == EAGAIN || errno == EINTR || errno == ENOTCONN ? 0 : -1;
}

static void socket_close(struct wire *wire)
{
    close(wire->fd);
}

static const struct wire_ops wire_sockets = {
    .name = "sockets", .read = wire_socket_read, .write = wire_socket_write, .close = socket_close};

/* Reads the first bytes of an accepted connection, which determine its carrier. */
static ssize_t guest_read(struct wire *wire, void *data, size_t len)
{
    int known = wire_ring_accept(wire);
    if (known <= 0)
        return known;
    if (!wire->carrier)
        wire->ops = &wire_sockets;
    return wire->ops->read(wire, data, len);
}

/* Writes nothing before the peer's first bytes have been read: until then this side does not know whether a
 * byte on the socket is a bell or part of a frame. */
static ssize_t guest_write(struct wire *wire, const void *data, size_t len)
{
    return 0;
}

static const struct wire_ops wire_guests = {
    .name = "guests", .read = guest_read, .write = guest_write, .close = socket_close};

static struct wire *wire_of_socket(int fd)
{
    struct wire *wire = mem_alloc(sizeof *wire);
    wire->ops = &wire_sockets;
    wire->fd = fd;
    const int size = SOCKET_BUFFER;
    static const int tcp[][3] = {{IPPROTO_TCP, TCP_NODELAY, 1},
                                 {SOL_SOCKET, SO_KEEPALIVE, 1},
                                 {IPPROTO_TCP, TCP_KEEPIDLE, SOCKET_IDLE_S},
                                 {IPPROTO_TCP, TCP_KEEPINTVL, SOCKET_PROBE_S},
                                 {IPPROTO_TCP, TCP_KEEPCNT, SOCKET_PROBES},
                                 {IPPROTO_TCP, TCP_USER_TIMEOUT, SOCKET_UNANSWERED_MS}};
    /* These fail on unix sockets, which do not need them. */
    for (size_t i = 0; i < sizeof tcp / sizeof *tcp; i++)
        setsockopt(fd, tcp[i][0], tcp[i][1], &tcp[i][2], sizeof tcp[i][2]);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    return wire;
}

static int wire_unix_address(const char *path, struct sockaddr_un *ret, struct error *error)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof ret->sun_path)
        return error_set(error, ERROR_INVALID, "the socket's path %s is longer than %zu bytes", path,
                         sizeof ret->sun_path - 1);
    memcpy(ret->sun_path, path, strlen(path));
    return 0;
}

static int wire_resolve(const char *address, bool passive, struct addrinfo **ret, struct error *error)
{
    struct str host, port, rest = str_from(address);
    char name[256];
    const char *colon = strrchr(address, ':');
    if (!colon || (size_t)(colon - address) >= sizeof name)
        return error_set(error, ERROR_INVALID, "%s is no address: unix:PATH or HOST:PORT", address);
    host = (struct str){rest.data, (size_t)(colon - address)};
    port = str_from(colon + 1);
    if (host.len > 1 && host.data[0] == '[' && host.data[host.len - 1] == ']')
        host = (struct str){host.data + 1, host.len - 2};
    snprintf(name, sizeof name, STR_FORMAT, STR_ARG(host));
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = passive ? AI_PASSIVE : 0};
    int rc = getaddrinfo(name[0] ? name : NULL, port.data, &hints, ret);
    if (rc != 0)
        return error_set(error, ERROR_IO, "resolving %s: %s", address, gai_strerror(rc));
    return 0;
}

int wire_socket_connect(const char *address, struct wire **ret_wire, struct error *error)
{
    int fd = -1;
    if (strncmp(address, "unix:", 5) == 0) {
        struct sockaddr_un where;
        int rc = wire_unix_address(address + 5, &where, error);
        if (rc < 0)
            return rc;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&where, sizeof where) < 0) {
            rc = error_set_errno(error, errno, "connecting to %s", address);
            if (fd >= 0)
                close(fd);
            return rc;
        }
    } else {
        struct addrinfo *found, *one;
        int rc = wire_resolve(address, false, &found, error);
        if (rc < 0)
            return rc;
        int refused = 0;
        const struct timeval patience = {.tv_sec = SOCKET_CONNECT_S};
        for (one = found; one && fd < 0; one = one->ai_next) {
            fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
            if (fd >= 0) /* limits the time of connect to an unreachable machine */
                setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
            if (fd >= 0 && connect(fd, one->ai_addr, one->ai_addrlen) < 0) {
                refused = errno;
                close(fd);
                fd = -1;
            }
        }
        freeaddrinfo(found);
        if (fd < 0)
            return error_set_errno(error, refused, "connecting to %s", address);
    }
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    *ret_wire = wire_of_socket(fd);
    return 0;
}

int flow_wire_connect(const char *address, struct wire **ret_wire, struct error *error)
{
    struct wire *wire;
    int rc = wire_socket_connect(address, &wire, error);
    if (rc < 0)
        return rc;
    if (strncmp(address, "unix:", 5) == 0 && !wire_ring_offer(wire)) {
        flow_wire_free(wire);
        return error_set(error, ERROR_UNAVAILABLE, "%s has closed the connection", address);
    }
    *ret_wire = wire;
    return 0;
}

static int wire_listen_unix(const char *path, int *ret_fd, struct error *error)
{
    struct sockaddr_un where;
    int rc = wire_unix_address(path, &where, error);
    if (rc < 0)
        return rc;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set_errno(error, errno, "making a socket");
    struct stat info;
    if (lstat(path, &info) == 0 && S_ISSOCK(info.st_mode))
        unlink(path);
    if (bind(fd, (struct sockaddr *)&where, sizeof where) < 0 || chmod(path, 0600) < 0 ||
        listen(fd, SOCKET_BACKLOG) < 0) {
        rc = error_set_errno(error, errno, "listening at unix:%s", path);
        close(fd);
        return rc;
    }
    *ret_fd = fd;
    return 0;
}

int flow_wire_listen(const char *address, int *ret_fd, struct error *error)
{
    if (strncmp(address, "unix:", 5) == 0)
        return wire_listen_unix(address + 5, ret_fd, error);
    struct addrinfo *found;
    int rc = wire_resolve(address, true, &found, error);
    if (rc < 0)
        return rc;
    int on = 1;
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, found->ai_addr, found->ai_addrlen) < 0 || listen(fd, SOCKET_BACKLOG) < 0) {
        rc = error_set_errno(error, errno, "listening at %s", address);
        if (fd >= 0)
            close(fd);
    } else {
        *ret_fd = fd;
    }
    freeaddrinfo(found);
    return rc;
}

int flow_wire_name(int fd, const char *address, char *ret, size_t len)
{
    struct sockaddr_storage where;
    socklen_t size = sizeof where;
    char port[32];
    const char *colon = strrchr(address, ':');
    if (strncmp(address, "unix:", 5) == 0 || !colon ||
        getsockname(fd, (struct sockaddr *)&where, &size) < 0 ||
        getnameinfo((struct sockaddr *)&where, size, NULL, 0, port, sizeof port, NI_NUMERICSERV) != 0)
        return snprintf(ret, len, "%s", address);
    return snprintf(ret, len, "%.*s:%s", (int)(colon - address), address, port);
}

struct wire *flow_wire_accept(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return NULL;
    struct wire *wire = wire_of_socket(fd);
    struct sockaddr_storage where;
    socklen_t size = sizeof where;
    if (getsockname(fd, (struct sockaddr *)&where, &size) == 0 && where.ss_family == AF_UNIX)
        wire->ops = &wire_guests;
    return wire;
}
