#include "ring.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_TIMEOUT_MS 30000
#define VERDICT_TIMEOUT_MS 3000 /* for libphalanx to say who is lost, after our own connection broke */

static int fail(struct phx_error *error, int code, const char *what, int errnum)
{
    if (error != NULL) {
        *error = (struct phx_error){.code = code, .rank = -1};
        snprintf(error->message, sizeof error->message, "%s%s%s", what, errnum != 0 ? ": " : "",
                 errnum != 0 ? strerror(errnum) : "");
    }
    return code;
}

/* A connection of the ring broke: the library knows which rank is to blame, now or in a moment. */
static int blame(struct ring *ring, int errnum, struct phx_error *error)
{
    struct pollfd fd = {.fd = phx_failure_fd(ring->ctx), .events = POLLIN};
    while (poll(&fd, 1, VERDICT_TIMEOUT_MS) < 0 && errno == EINTR)
        ;
    int status = phx_check(ring->ctx, error);
    return status != 0 ? status : fail(error, PHX_ERROR_IO, "a neighbour's connection broke", errnum);
}

/* ---- connecting ---- */

static int open_listener(int *ret_fd, uint16_t *ret_port, bool v6)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    struct sockaddr_in6 wide = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_storage bound;
    socklen_t size = sizeof bound;
    int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    int status =
        v6 ? bind(fd, (struct sockaddr *)&wide, sizeof wide) : bind(fd, (struct sockaddr *)&v4, sizeof v4);
    if (status != 0 || listen(fd, 4) != 0 || getsockname(fd, (struct sockaddr *)&bound, &size) != 0) {
        close(fd);
        return -1;
    }
    *ret_port =
        ntohs(v6 ? ((struct sockaddr_in6 *)&bound)->sin6_port : ((struct sockaddr_in *)&bound)->sin_port);
    *ret_fd = fd;
    return 0;
}

/* Waits for the descriptor; 0 when it is ready, else the failure. */
static int wait_ready(struct ring *ring, int fd, short events, struct phx_error *error)
{
    struct pollfd fds[2] = {{.fd = fd, .events = events},
                            {.fd = phx_failure_fd(ring->ctx), .events = POLLIN}};
    int ready;
    while ((ready = poll(fds, 2, CONNECT_TIMEOUT_MS)) < 0 && errno == EINTR)
        ;
    if (ready <= 0)
        return fail(error, PHX_ERROR_TIMEOUT, "the neighbours don't connect", 0);
    return fds[1].revents != 0 ? phx_check(ring->ctx, error) : 0;
}

static int connect_next(struct ring *ring, struct phx_error *error)
{
    char key[32], where[128];
    size_t len;
    snprintf(key, sizeof key, "ring/%u", (ring->rank + 1) % ring->world);
    int status = phx_kv_get(ring->ctx, key, where, sizeof where - 1, &len, CONNECT_TIMEOUT_MS, error);
    if (status != 0)
        return status;
    where[len] = '\0';
    char *space = strchr(where, ' '); /* "address port" */
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | AI_NUMERICHOST}, *found;
    if (space == NULL)
        return fail(error, PHX_ERROR_INVALID, "a neighbour's address is unreadable", 0);
    *space = '\0';
    if (getaddrinfo(where, space + 1, &hints, &found) != 0)
        return fail(error, PHX_ERROR_INVALID, "a neighbour's address is unreadable", 0);
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), problem = 0;
    socklen_t size = sizeof problem;
    if (fd < 0 || (connect(fd, found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS))
        status = fail(error, PHX_ERROR_IO, "connect to the next rank", errno);
    freeaddrinfo(found);
    if (status == 0)
        status = wait_ready(ring, fd, POLLOUT, error);
    if (status == 0 && (getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &size) != 0 || problem != 0))
        status = blame(ring, problem, error);
    if (status != 0 && fd >= 0)
        close(fd);
    if (status == 0)
        ring->next_fd = fd;
    return status;
}

/* Each rank listens, publishes where, connects to the next and accepts the previous. */
static int connect_ring(struct ring *ring, int listener, uint16_t port, const char *address,
                        struct phx_error *error)
{
    char key[32], where[128];
    int on = 1;
    snprintf(key, sizeof key, "ring/%u", ring->rank);
    int len = snprintf(where, sizeof where, "%s %u", address, port);
    int status = phx_kv_put(ring->ctx, key, where, (size_t)len, error);
    if (status == 0)
        status = connect_next(ring, error);
    while (status == 0 && ring->previous_fd < 0) {
        status = wait_ready(ring, listener, POLLIN, error);
        if (status == 0)
            ring->previous_fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (status == 0 && ring->previous_fd < 0 && errno != EAGAIN && errno != EINTR &&
            errno != ECONNABORTED)
            status = fail(error, PHX_ERROR_IO, "accept the previous rank", errno);
    }
    if (status == 0)
        setsockopt(ring->next_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return status;
}

int ring_init(struct ring *ring, phx_context *ctx, size_t count_max, struct phx_error *error)
{
    struct phx_peer self;
    uint16_t port;
    int listener;
    *ring = (struct ring){.ctx = ctx,
                          .rank = phx_rank(ctx),
                          .world = phx_world_size(ctx),
                          .next_fd = -1,
                          .previous_fd = -1,
                          .chunk_max = count_max / phx_world_size(ctx) + 1};
    if (ring->world == 1)
        return 0;
    ring->chunk = calloc(ring->chunk_max, sizeof *ring->chunk);
    if (ring->chunk == NULL)
        return fail(error, PHX_ERROR_MEMORY, "out of memory", 0);
    int status = phx_peer(ctx, ring->rank, &self, error);
    const char *address = status == 0 && self.address[0] != '\0' ? self.address : "127.0.0.1";
    if (status == 0 && open_listener(&listener, &port, strchr(address, ':') != NULL) != 0)
        status = fail(error, PHX_ERROR_IO, "listen for the previous rank", errno);
    else if (status == 0) {
        status = connect_ring(ring, listener, port, address, error);
        close(listener);
    }
    if (status != 0)
        ring_done(ring);
    return status;
}

int ring_init_fabric(struct ring *ring, phx_context *ctx, struct phx_error *error)
{
    *ring = (struct ring){
        .ctx = ctx, .rank = phx_rank(ctx), .world = phx_world_size(ctx), .next_fd = -1, .previous_fd = -1};
    return phx_fabric_open(ctx, NULL, &ring->fabric, error);
}

void ring_done(struct ring *ring)
{
    phx_fabric_abandon(ring->fabric); /* the attempt is over, or all ranks have made all steps */
    if (ring->next_fd >= 0)
        close(ring->next_fd);
    if (ring->previous_fd >= 0)
        close(ring->previous_fd);
    free(ring->chunk);
    *ring = (struct ring){.next_fd = -1, .previous_fd = -1};
}

/* ---- summing ---- */

/* Moves one direction of an exchange: 1 done, 0 not yet, -1 broken. */
static int move_some(ssize_t moved, uint8_t **data, size_t *left)
{
    if (moved > 0) {
        *data += moved;
        *left -= (size_t)moved;
        return *left == 0;
    }
    return moved < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

/* Sends to the next and receives from the previous rank at the same time: nobody waits for a full socket
 * buffer. */
static int exchange(struct ring *ring, const int64_t *out, size_t out_count, int64_t *in, size_t in_count,
                    struct phx_error *error)
{
    uint8_t *to = (uint8_t *)(uintptr_t)out, *from = (uint8_t *)in;
    size_t to_left = out_count * sizeof *out, from_left = in_count * sizeof *in;
    while (to_left > 0 || from_left > 0) {
        struct pollfd fds[3] = {{.fd = to_left > 0 ? ring->next_fd : -1, .events = POLLOUT},
                                {.fd = from_left > 0 ? ring->previous_fd : -1, .events = POLLIN},
                                {.fd = phx_failure_fd(ring->ctx), .events = POLLIN}};
        if (poll(fds, 3, -1) < 0 && errno != EINTR)
            return fail(error, PHX_ERROR_IO, "poll", errno);
        if (fds[2].revents != 0)
            return phx_check(ring->ctx, error);
        if (fds[0].revents != 0 &&
            move_some(send(ring->next_fd, to, to_left, MSG_NOSIGNAL), &to, &to_left) < 0)
            return blame(ring, errno, error);
        if (fds[1].revents != 0) {
            ssize_t got = recv(ring->previous_fd, from, from_left, 0);
            if (move_some(got, &from, &from_left) < 0)
                return blame(ring, got == 0 ? 0 : errno, error);
        }
    }
    return 0;
}

static int sum_around(struct ring *ring, int64_t *vector, size_t count, struct phx_error *error)
{
    size_t world = ring->world, rank = ring->rank;
    for (size_t round = 0; round < 2 * (world - 1); round++) {
        bool summing = round < world - 1; /* then the sums are handed out */
        size_t send = (rank + 2 * world - round) % world;
        size_t receive = (send + world - 1) % world;
        size_t send_at = count * send / world, send_end = count * (send + 1) / world;
        size_t at = count * receive / world, end = count * (receive + 1) / world;
        int64_t *in = summing ? ring->chunk : vector + at;
        int status = exchange(ring, vector + send_at, send_end - send_at, in, end - at, error);
        if (status != 0)
            return status;
        for (size_t i = at; summing && i < end; i++)
            vector[i] += ring->chunk[i - at];
    }
    return 0;
}

int ring_sum(struct ring *ring, int64_t *vector, size_t count, struct phx_error *error)
{
    phx_phase_begin(ring->ctx, PHX_PHASE_COMMUNICATE);
    int status = ring->fabric != NULL ? phx_fabric_sum(ring->fabric, vector, count, PHX_I64, error)
                                      : sum_around(ring, vector, count, error);
    phx_phase_end(ring->ctx);
    return status;
}
