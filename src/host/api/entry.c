#include "host/api/entry.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

enum { TLS_HANDSHAKE = 22 }; /* a record's first byte (RFC 8446 section 5.1) */
enum { ACCEPTS_A_TURN = 256, GIVEN_A_TURN = 64 };
enum { HEAD_BYTES = ENTRY_SMALL_BYTES - 1024, DEFER_S = 1, PARAMETERS_MAX = 16 };

/* Is this the beginning of a request whose end has not arrived, or that has many parameters, each of which
 * takes more memory than its text? */
static bool begins_long(int fd)
{
    static char head[HEAD_BYTES];
    ssize_t count = recv(fd, head, sizeof head, MSG_PEEK | MSG_DONTWAIT);
    int parameters = 0;
    for (ssize_t i = 0; i < count && head[i] != '\r'; i++)
        parameters += head[i] == '&';
    return parameters > PARAMETERS_MAX || (count > 0 && !memmem(head, (size_t)count, "\r\n\r\n", 4));
}

static bool is_loopback(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    return address->ss_family == AF_INET6 &&
           (IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127));
}

static bool is_tls(const struct entry *entry, int fd, const struct sockaddr_storage *address)
{
    unsigned char first = TLS_HANDSHAKE;
    if (!entry->relay || !entry->plain)
        return entry->relay;
    if (is_loopback(address))
        (void)recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
    return first == TLS_HANDSHAKE;
}

void entry_give(struct entry *entry, int fd, const struct sockaddr *address, socklen_t len)
{
    /* A failure closes the socket as well. */
    (void)MHD_add_connection(begins_long(fd) ? entry->large : entry->small, fd, address, len);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct entry *entry = (struct entry *)((char *)poll - offsetof(struct entry, poll));
    (void)status;
    (void)events;
    int given = 0; /* those that are closed at once cost little */
    for (int i = 0; i < ACCEPTS_A_TURN && given < GIVEN_A_TURN && entry->open < entry->open_max; i++) {
        struct sockaddr_storage address;
        socklen_t len = sizeof address;
        int fd = accept4(entry->fd, (struct sockaddr *)&address, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            break;
        if (!is_tls(entry, fd, &address)) {
            given++;
            entry_give(entry, fd, (struct sockaddr *)&address, len);
        } else if (relay_take(entry->relay, fd, (struct sockaddr *)&address, len)) {
            entry->open += RELAY_FILES;
        } else {
            close(fd);
        }
    }
    if (entry->open >= entry->open_max) /* the others wait in the kernel's queue */
        uv_poll_stop(poll);
    if (given)
        entry->entered(entry->context);
}

void entry_open(struct entry *entry, uv_loop_t *loop)
{
    int defer_s = DEFER_S;
    if (entry->plain)
        (void)setsockopt(entry->fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &defer_s, sizeof defer_s);
    CHECK(uv_poll_init(loop, &entry->poll, entry->fd) == 0);
    entry->poll.data = entry->context;
    uv_poll_start(&entry->poll, UV_READABLE, on_ready);
}

void entry_left(struct entry *entry, uint32_t files)
{
    CHECK(entry->open >= files);
    entry->open -= files;
    if (!uv_is_closing((uv_handle_t *)&entry->poll) && !uv_is_active((uv_handle_t *)&entry->poll))
        uv_poll_start(&entry->poll, UV_READABLE, on_ready);
}

void entry_close(struct entry *entry, uv_close_cb closed)
{
    uv_poll_stop(&entry->poll);
    uv_close((uv_handle_t *)&entry->poll, closed);
    close(entry->fd);
}
