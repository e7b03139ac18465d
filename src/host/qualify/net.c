#include "host/qualify/internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"

enum { NET_CHUNK = 256 * 1024, ROUNDS_MAX = 10000 };

/* --- sockets -------------------------------------------------------------------------------------------- */

static bool wait_for(int fd, short events, int64_t deadline_ns)
{
    for (;;) {
        int64_t left_ns = deadline_ns - test_now_ns();
        if (left_ns <= 0)
            return false;
        struct pollfd ready = {fd, events, 0};
        int64_t left_ms = left_ns / NS_PER_MS + 1;
        int rc = poll(&ready, 1, left_ms > 60000 ? 60000 : (int)left_ms);
        if (rc > 0)
            return true;
        if (rc < 0 && errno != EINTR)
            return false;
    }
}

static bool address_of(const char *host, uint16_t port, struct sockaddr_in *ret)
{
    *ret = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    return inet_pton(AF_INET, host, &ret->sin_addr) == 1;
}

static int set_up(int fd)
{
    int one = 1;
    if (fd >= 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

int net_listen(const char *host, uint16_t port, uint16_t *ret_port, struct test_answer *answer)
{
    struct sockaddr_in address;
    socklen_t len = sizeof address;
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool known = address_of(host, port, &address);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || !known || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 8) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) < 0) {
        test_fail(answer, "listening on %s:%u: %s", host, port,
                  known ? strerror(errno) : "expected an IPv4 address");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    *ret_port = ntohs(address.sin_port);
    return fd;
}

int net_accept(int listener, int64_t deadline_ns)
{
    if (!wait_for(listener, POLLIN, deadline_ns))
        return -1;
    return set_up(accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

int net_connect(const char *host, uint16_t port, int64_t deadline_ns)
{
    struct sockaddr_in address;
    int failed = 0;
    socklen_t len = sizeof failed;
    if (!address_of(host, port, &address))
        return -1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool begun =
        fd >= 0 && (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno == EINPROGRESS);
    if (begun && wait_for(fd, POLLOUT, deadline_ns) &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &len) == 0 && failed == 0)
        return set_up(fd);
    if (fd >= 0)
        close(fd);
    return -1;
}

bool net_write(const struct net_end *end, const void *data, size_t len)
{
    const char *bytes = data;
    while (len > 0) {
        ssize_t count = send(end->fd, bytes, len, MSG_NOSIGNAL);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
            if (!wait_for(end->fd, POLLOUT, end->deadline_ns))
                return false;
            continue;
        }
        if (count <= 0)
            return false;
        bytes += count;
        len -= (size_t)count;
    }
    return true;
}

bool net_read(const struct net_end *end, void *data, size_t len)
{
    char *bytes = data;
    while (len > 0) {
        ssize_t count = recv(end->fd, bytes, len, 0);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
            if (!wait_for(end->fd, POLLIN, end->deadline_ns))
                return false;
            continue;
        }
        if (count <= 0)
            return false;
        bytes += count;
        len -= (size_t)count;
    }
    return true;
}

/* --- the work ------------------------------------------------------------------------------------------- */

/* Makes round trips of one byte, which the end that begins measures. */
static bool do_rounds(const struct net_end *end, bool first, double *ret_latency_us)
{
    static int64_t times_ns[ROUNDS_MAX];
    uint32_t rounds = end->rounds < ROUNDS_MAX ? end->rounds : ROUNDS_MAX;
    for (uint32_t i = 0; i < rounds; i++) {
        char byte = (char)i;
        int64_t begun_ns = test_now_ns();
        if (first && !net_write(end, &byte, 1))
            return false;
        if (!net_read(end, &byte, 1) || byte != (char)i || (!first && !net_write(end, &byte, 1)))
            return false;
        times_ns[i] = test_now_ns() - begun_ns;
    }
    *ret_latency_us = (double)test_median(times_ns, rounds) / 1e3;
    return true;
}

static void fill(uint64_t *chunk)
{
    for (size_t i = 0; i < NET_CHUNK / sizeof *chunk; i++)
        chunk[i] = test_noise(i);
}

/* Sends the data. The receiver compares it and answers with one byte when it has all; only then the sender
 * stops its clock. */
static bool do_send(const struct net_end *end, const uint64_t *chunk, int64_t *ret_took_ns)
{
    int64_t begun_ns = test_now_ns();
    char done;
    for (uint64_t sent = 0; sent < end->bytes; sent += NET_CHUNK)
        if (!net_write(end, chunk, NET_CHUNK))
            return false;
    if (!net_read(end, &done, 1) || done != 'd')
        return false;
    *ret_took_ns = test_now_ns() - begun_ns;
    return true;
}

static bool do_receive(const struct net_end *end, const uint64_t *chunk, uint64_t *room, bool *ret_damaged)
{
    for (uint64_t got = 0; got < end->bytes; got += NET_CHUNK) {
        if (!net_read(end, room, NET_CHUNK))
            return false;
        *ret_damaged = *ret_damaged || memcmp(room, chunk, NET_CHUNK) != 0;
    }
    return net_write(end, *ret_damaged ? "x" : "d", 1) && !*ret_damaged;
}

/* The summary that each end sends to the other, so that both know all figures. Both ends are this program on
 * machines of one byte order; otherwise the epoch before it does not match either. */
struct net_summary {
    int64_t sent_ns, work_ns;
    double latency_us;
};

static bool do_all(const struct net_end *end, bool first, struct net_work *ret, bool *ret_damaged)
{
    uint64_t *chunk = mem_alloc(NET_CHUNK), *room = mem_alloc(NET_CHUNK);
    struct net_summary own = {0}, other = {0};
    int64_t begun_ns = test_now_ns();
    fill(chunk);
    bool good = do_rounds(end, first, &own.latency_us);
    if (good && first)
        good = do_send(end, chunk, &own.sent_ns) && do_receive(end, chunk, room, ret_damaged);
    else if (good)
        good = do_receive(end, chunk, room, ret_damaged) && do_send(end, chunk, &own.sent_ns);
    own.work_ns = test_now_ns() - begun_ns;
    good = good && net_write(end, &own, sizeof own) && net_read(end, &other, sizeof other);
    mem_free(chunk);
    mem_free(room);
    if (!good)
        return false;
    const struct net_summary *head = first ? &own : &other;
    int64_t slow_ns = own.sent_ns > other.sent_ns ? own.sent_ns : other.sent_ns;
    uint64_t sent = (end->bytes + NET_CHUNK - 1) / NET_CHUNK * NET_CHUNK;
    *ret = (struct net_work){(double)sent / ((double)(slow_ns > 0 ? slow_ns : 1) / 1e9) / 1e6,
                             head->latency_us, head->work_ns};
    return true;
}

bool net_do(const struct net_end *end, bool first, struct net_work *ret, struct test_answer *answer)
{
    bool damaged = false;
    if (do_all(end, first, ret, &damaged))
        return true;
    if (damaged)
        return test_fail(answer, "bytes were damaged on the way");
    return test_fail(answer, test_now_ns() >= end->deadline_ns ? "the work was not done by the deadline"
                                                               : "the other end left");
}
