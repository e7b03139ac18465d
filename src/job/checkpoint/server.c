/* The server of transfer.h: one thread, with connections that never block it. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "job/checkpoint/copies.h"
#include "base/crc32c.h"
#include "job/link/error.h"
#include "job/checkpoint/transfer.h"
#include "job/link/wire.h"

#define CHUNK ((size_t)256 << 10)
#define TURN  ((size_t)4 << 20) /* bytes of one connection before the others are served */

enum line_state {
    LINE_FREE,
    LINE_REQUEST,   /* receives the request */
    LINE_ANSWER,    /* sends an answer, then enters `next` */
    LINE_SENDING,   /* GET, FRONT: sends the data */
    LINE_MAP,       /* DELTA: receives the map of blocks */
    LINE_RECEIVING, /* PUT, DELTA: receives the data */
    LINE_PROOF      /* PUT, DELTA: receives the data's tag */
};

struct line {
    enum line_state state, next;
    int fd;
    int64_t begin_ns, seen_ns;      /* when the connection was accepted, and when a byte moved last */
    uint8_t nonce[SEAL_NONCE_SIZE]; /* this side's */
    struct seal out;                /* of the answers */
    uint8_t bytes[TRANSFER_SEALED_SIZE];
    size_t bytes_len; /* of the request received so far, or of the answer left to send */
    struct transfer_request request;
    int file;                /* GET, FRONT; -1: none */
    off_t at;                /* position in `file` */
    struct copy copy;        /* PUT; fd -1: none */
    uint8_t *map;            /* DELTA; NULL: all data is sent */
    size_t map_len;          /* bytes of the map that have arrived */
    struct pack_inbox inbox; /* for packed data; without a buffer, data is not packed */
    uint64_t left;
    uint32_t crc;
    struct poly1305 sum; /* of the data, if it is proved */
};

struct transfer_server {
    char dir[3072];
    pthread_mutex_t mutex; /* covers `self` and `known` */
    struct transfer_self self;
    bool known; /* `self` has been set */
    uint64_t quota;
    atomic_bool stop;
    int listen_fd, wake_fd;
    uint16_t port;
    struct line lines[TRANSFER_LINES];
    struct copy_maps maps;
    uint8_t chunk[CHUNK]; /* buffer for data that is summed while it is sent */
    const char *library;
    struct pack *pack; /* NULL: no client has sent packed data yet */
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- beginning and end ---- */

/* Returns a listening socket at a port of the kernel's choice, or -1. */
static int listen_at(int family, const struct sockaddr *address, socklen_t size, uint16_t *ret_port)
{
    struct sockaddr_in6 bound = {0};
    socklen_t bound_size = sizeof bound;
    int off = 0, fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (fd >= 0 && bind(fd, address, size) == 0 && listen(fd, 1024) == 0 &&
        getsockname(fd, (struct sockaddr *)&bound, &bound_size) == 0) {
        *ret_port = ntohs(bound.sin6_port); /* the port is at the same place in both families */
        return fd;
    }
    int reason = errno;
    if (fd >= 0)
        close(fd);
    errno = reason;
    return -1;
}

/* Listens on all addresses of both families, or else of IPv4. */
static int listen_anywhere(uint16_t *ret_port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    int fd = listen_at(AF_INET6, (struct sockaddr *)&six, sizeof six, ret_port);
    return fd >= 0 ? fd : listen_at(AF_INET, (struct sockaddr *)&four, sizeof four, ret_port);
}

static int listen_on(const char *address, uint16_t *ret_port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_PASSIVE}, *at;
    if (getaddrinfo(address, NULL, &hints, &at) != 0) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    int fd = listen_at(at->ai_family, at->ai_addr, at->ai_addrlen, ret_port);
    freeaddrinfo(at);
    return fd;
}

int transfer_serve_new(const char *dir, const char *address, struct transfer_server **ret_server,
                       struct phx_error *error)
{
    struct transfer_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return job_fail(error, PHX_ERROR_MEMORY, "out of memory");
    size_t len = strlen(dir);
    memcpy(server->dir, dir, len < sizeof server->dir ? len : sizeof server->dir - 1);
    pthread_mutex_init(&server->mutex, NULL);
    server->library = PACK_LIBRARY;
    server->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    server->listen_fd = address != NULL ? listen_on(address, &server->port) : listen_anywhere(&server->port);
    int reason = errno;
    for (size_t i = 0; i < TRANSFER_LINES; i++)
        server->lines[i].fd = server->lines[i].file = server->lines[i].copy.fd = -1;
    if (server->wake_fd < 0 || server->listen_fd < 0) {
        transfer_serve_free(server);
        return job_fail_errno(error, reason, "listen for transfers at %.60s",
                              address != NULL ? address : "*");
    }
    *ret_server = server;
    return 0;
}

static void end_line(struct transfer_server *server, struct line *line)
{
    if (line->fd >= 0)
        close(line->fd);
    if (line->file >= 0)
        close(line->file);
    if (line->copy.fd >= 0)
        copy_end(&line->copy, &server->maps);
    free(line->map);
    pack_room_done(&line->inbox);
    *line = (struct line){.fd = -1, .file = -1, .copy = {.fd = -1}};
}

void transfer_serve_free(struct transfer_server *server)
{
    if (server == NULL)
        return;
    for (size_t i = 0; i < TRANSFER_LINES; i++)
        end_line(server, &server->lines[i]);
    copy_maps_done(&server->maps);
    pack_close(server->pack);
    if (server->listen_fd >= 0)
        close(server->listen_fd);
    if (server->wake_fd >= 0)
        close(server->wake_fd);
    pthread_mutex_destroy(&server->mutex);
    free(server);
}

void transfer_serve_library(struct transfer_server *server, const char *library)
{
    server->library = library;
}

uint16_t transfer_serve_port(const struct transfer_server *server)
{
    return server->port;
}

void transfer_serve_quota(struct transfer_server *server, uint64_t bytes)
{
    server->quota = bytes;
}

void transfer_serve_as(struct transfer_server *server, const struct transfer_self *self)
{
    pthread_mutex_lock(&server->mutex);
    server->self = *self;
    server->known = true;
    pthread_mutex_unlock(&server->mutex);
}

/* Reads what transfer_serve_as has set. Returns false if it was not called yet. */
static bool self_of(struct transfer_server *server, struct transfer_self *ret_self)
{
    pthread_mutex_lock(&server->mutex);
    *ret_self = server->self;
    bool known = server->known;
    pthread_mutex_unlock(&server->mutex);
    return known;
}

void transfer_serve_stop(struct transfer_server *server)
{
    atomic_store(&server->stop, true);
    (void)!eventfd_write(server->wake_fd, 1);
}

/* ---- a connection; functions return false if it must end ---- */

static void answer_of(struct line *line, int code, uint32_t attempt, uint64_t number, enum line_state next)
{
    struct jobwire_writer writer = {.data = line->bytes, .cap = TRANSFER_ANSWER_SIZE - SEAL_TAG_SIZE};
    jobwire_put(&writer, (uint32_t)-code, 4);
    jobwire_put(&writer, attempt, 4);
    jobwire_put(&writer, number, 8);
    seal_tag(&line->out, line->bytes, writer.len, line->bytes + writer.len);
    line->bytes_len = TRANSFER_ANSWER_SIZE;
    line->state = LINE_ANSWER;
    line->next = next;
}

static void answer(struct line *line, int code, uint64_t len, enum line_state next)
{
    answer_of(line, code, 0, len, next);
}

static int begin_unpacking(struct transfer_server *server, struct line *line)
{
    if (server->pack == NULL && pack_open(server->library, 0, &server->pack, NULL) != 0)
        return PHX_ERROR_INVALID;
    return pack_room(&line->inbox) ? 0 : PHX_ERROR_MEMORY;
}

static int begin_copy(struct transfer_server *server, struct line *line)
{
    const struct transfer_request *request = &line->request;
    int code = request->packed ? begin_unpacking(server, line) : 0;
    if (code == 0)
        code = copy_begin(server->dir, &request->offer, request->keep_step, request->keep_attempt,
                          server->quota, &server->maps, &line->copy, NULL);
    if (code != 0 || request->type != TRANSFER_DELTA)
        return code;
    line->map = calloc(delta_map_size(request->offer.len) + 1, 1);
    return line->map != NULL ? 0 : PHX_ERROR_MEMORY;
}

/* Returns true if the client is a rank of this gang, attempt and world, and a copy that it sends is of its
 * own shard. */
static bool is_peer(const struct transfer_self *self, const struct transfer_request *request)
{
    const struct transfer_self *peer = &request->self;
    const struct offer *offer = &request->offer;
    bool gives = request->type == TRANSFER_GET || request->type == TRANSFER_FRONT;
    return peer->gang == self->gang && peer->attempt == self->attempt && peer->world == self->world &&
           peer->rank < self->world &&
           (gives ||
            (offer->rank == peer->rank && offer->world == self->world && offer->attempt <= self->attempt));
}

static void begin(struct transfer_server *server, struct line *line, const struct transfer_self *self)
{
    const struct transfer_request *request = &line->request;
    struct shard_header header;
    bool gives = request->type == TRANSFER_GET || request->type == TRANSFER_FRONT;
    int code = 0;
    line->left = request->offer.len;
    if (request->type == TRANSFER_FRONT && request->front < line->left)
        line->left = request->front;
    if (!is_peer(self, request))
        code = PHX_ERROR_FENCED;
    else if (gives)
        code = offer_open(server->dir, &request->offer, &header, &line->file, NULL);
    else
        code = begin_copy(server, line);
    const struct shard_header *base = &line->copy.base;
    line->at = SHARD_HEADER_SIZE;
    if (code != 0)
        answer(line, code, 0, LINE_FREE);
    else if (gives)
        answer(line, 0, line->left, LINE_SENDING);
    else if (request->type == TRANSFER_DELTA)
        answer_of(line, 0, line->copy.any_base ? base->attempt : UINT32_MAX, base->step, LINE_MAP);
    else
        answer(line, 0, 0, LINE_RECEIVING);
}

/* Takes a request. Verifies its tag before anything else; a wrong tag ends the connection. */
static bool take_request(struct transfer_server *server, struct line *line)
{
    const uint8_t *nonce = line->bytes + TRANSFER_REQUEST_SIZE, *tag = nonce + SEAL_NONCE_SIZE;
    struct transfer_self self;
    struct seal in;
    if (!self_of(server, &self))
        return false;
    seal_begin(&in, self.key, TRANSFER_MAGIC, SEAL_FROM_CLIENT, line->nonce, nonce);
    seal_begin(&line->out, self.key, TRANSFER_MAGIC, SEAL_FROM_SERVER, line->nonce, nonce);
    if (!seal_check(&in, line->bytes, TRANSFER_REQUEST_SIZE + SEAL_NONCE_SIZE, tag) ||
        !transfer_get_request(line->bytes, &line->request))
        return false;
    if (line->request.proved) {
        bool gives = line->request.type == TRANSFER_GET || line->request.type == TRANSFER_FRONT;
        seal_data_begin(gives ? &line->out : &in, &line->sum);
    }
    begin(server, line, &self);
    return true;
}

static bool read_request(struct transfer_server *server, struct line *line)
{
    ssize_t got = recv(line->fd, line->bytes + line->bytes_len, sizeof line->bytes - line->bytes_len, 0);
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EINTR);
    line->bytes_len += (size_t)got;
    return line->bytes_len < sizeof line->bytes || take_request(server, line);
}

/* Ends a copy that has arrived. Seals it if it has the announced checksum, and is still of this attempt. */
static void finish_copy(struct transfer_server *server, struct line *line)
{
    struct transfer_self self;
    bool still = self_of(server, &self) && self.attempt == line->request.self.attempt;
    int code = line->crc != line->request.offer.crc ? PHX_ERROR_CORRUPT : still ? 0 : PHX_ERROR_FENCED;
    if (code == 0)
        copy_seal(&line->copy);
    answer(line, code, 0, LINE_FREE);
}

/* Continues after all data has arrived. */
static void end_receiving(struct transfer_server *server, struct line *line)
{
    line->bytes_len = 0;
    if (line->request.proved)
        line->state = LINE_PROOF;
    else
        finish_copy(server, line);
}

static bool read_proof(struct transfer_server *server, struct line *line)
{
    ssize_t got = recv(line->fd, line->bytes + line->bytes_len, SEAL_TAG_SIZE - line->bytes_len, 0);
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EINTR);
    line->bytes_len += (size_t)got;
    if (line->bytes_len < SEAL_TAG_SIZE)
        return true;
    if (seal_data_check(&line->sum, line->bytes))
        finish_copy(server, line);
    else
        answer(line, PHX_ERROR_CORRUPT, 0, LINE_FREE);
    return true;
}

/* Continues after all data was sent. Returns false if nothing follows. */
static bool end_sending(struct line *line)
{
    if (!line->request.proved)
        return false;
    poly1305_end(&line->sum, line->bytes + TRANSFER_ANSWER_SIZE - SEAL_TAG_SIZE);
    line->bytes_len = SEAL_TAG_SIZE; /* sent like the end of an answer */
    line->state = LINE_ANSWER;
    line->next = LINE_FREE;
    return true;
}

static bool send_answer(struct transfer_server *server, struct line *line)
{
    size_t begin_at = TRANSFER_ANSWER_SIZE - line->bytes_len;
    ssize_t sent = send(line->fd, line->bytes + begin_at, line->bytes_len, MSG_NOSIGNAL);
    if (sent < 0)
        return errno == EAGAIN || errno == EINTR;
    line->bytes_len -= (size_t)sent;
    if (line->bytes_len > 0)
        return true;
    line->state = line->next;
    if ((line->state == LINE_RECEIVING || line->state == LINE_MAP) && line->left == 0)
        end_receiving(server, line);
    if (line->state == LINE_SENDING && line->left == 0)
        return end_sending(line);
    return line->state != LINE_FREE;
}

/* Sends a part from user space, because sendfile cannot sum it. */
static ssize_t send_summed(struct transfer_server *server, struct line *line)
{
    size_t part = line->left < CHUNK ? (size_t)line->left : CHUNK;
    ssize_t got = pread(line->file, server->chunk, part, line->at);
    ssize_t sent = got > 0 ? send(line->fd, server->chunk, (size_t)got, MSG_NOSIGNAL) : got;
    if (sent > 0) {
        poly1305_add(&line->sum, server->chunk, (size_t)sent);
        line->at += sent;
    }
    return sent;
}

static bool send_data(struct transfer_server *server, struct line *line)
{
    size_t turn = 0;
    while (line->left > 0 && turn < TURN) {
        size_t part = line->left < TURN ? (size_t)line->left : TURN;
        ssize_t sent = line->request.proved ? send_summed(server, line)
                                            : sendfile(line->fd, line->file, &line->at, part);
        if (sent <= 0)
            return sent < 0 && (errno == EAGAIN || errno == EINTR);
        line->left -= (uint64_t)sent;
        turn += (size_t)sent;
    }
    return line->left > 0 || end_sending(line);
}

static bool receive_map(struct line *line)
{
    size_t size = delta_map_size(line->request.offer.len);
    ssize_t got = recv(line->fd, line->map + line->map_len, size - line->map_len, 0);
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EINTR);
    if (line->request.proved)
        poly1305_add(&line->sum, line->map + line->map_len, (size_t)got);
    line->map_len += (size_t)got;
    if (line->map_len == size)
        line->state = LINE_RECEIVING;
    return true;
}

/* Returns the length of the next part, at most `most` bytes. *ret_comes: the client sends it; otherwise the
 * copy already has it. */
static size_t next_part(const struct line *line, size_t most, bool *ret_comes)
{
    uint64_t len = line->request.offer.len;
    *ret_comes = true;
    return line->map != NULL   ? (size_t)delta_map_run(line->map, len, len - line->left, most, ret_comes)
           : line->left < most ? (size_t)line->left
                               : most;
}

static ssize_t nothing_now(ssize_t got)
{
    return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

/* Receives the next bytes of data into `to`. Returns their number, 0 if there are none yet, or -1 if the
 * connection must end. */
static ssize_t receive_part(struct line *line, uint8_t *to)
{
    bool comes;
    size_t part = next_part(line, CHUNK, &comes);
    ssize_t got = comes ? recv(line->fd, to, part, 0) : (ssize_t)part;
    if (got <= 0)
        return nothing_now(got);
    line->crc = crc32c(line->crc, to, (size_t)got);
    if (comes && line->request.proved)
        poly1305_add(&line->sum, to, (size_t)got);
    return got;
}

/* As receive_part, for packed data: unpacks whole pieces. */
static ssize_t receive_piece(struct transfer_server *server, struct line *line, uint8_t *to)
{
    bool comes;
    size_t part = next_part(line, PACK_PIECE, &comes), room;
    int whole = 0;
    if (!comes) {
        line->crc = crc32c(line->crc, to, part);
        return (ssize_t)part;
    }
    while (whole == 0) {
        uint8_t *into = pack_next(&line->inbox, &room);
        ssize_t got = recv(line->fd, into, room, 0);
        if (got <= 0)
            return nothing_now(got);
        if (line->request.proved)
            poly1305_add(&line->sum, into, (size_t)got);
        whole = pack_came(&line->inbox, (size_t)got, part);
    }
    bool taken = whole > 0 && pack_take(server->pack, &line->inbox, to, part, &line->crc);
    return taken ? (ssize_t)part : -1;
}

static bool receive_data(struct transfer_server *server, struct line *line)
{
    uint8_t *to = copy_data(&line->copy) + (line->request.offer.len - line->left);
    for (size_t turn = 0; line->left > 0 && turn < TURN;) {
        ssize_t got = line->inbox.room != NULL ? receive_piece(server, line, to) : receive_part(line, to);
        if (got <= 0)
            return got == 0;
        to += got;
        line->left -= (uint64_t)got;
        turn += (size_t)got;
    }
    if (line->left == 0)
        end_receiving(server, line);
    return true;
}

static bool move_on(struct transfer_server *server, struct line *line)
{
    switch (line->state) {
    case LINE_REQUEST:
        return read_request(server, line);
    case LINE_ANSWER:
        return send_answer(server, line);
    case LINE_SENDING:
        return send_data(server, line);
    case LINE_MAP:
        return receive_map(line);
    case LINE_RECEIVING:
        return receive_data(server, line);
    case LINE_PROOF:
        return read_proof(server, line);
    default:
        return false;
    }
}

/* ---- the thread ---- */

/* Returns a free line, or ends and returns the one that has waited longest for a valid request. Returns NULL
 * if all are busy. */
static struct line *line_for_newcomer(struct transfer_server *server)
{
    struct line *oldest = NULL;
    for (size_t i = 0; i < TRANSFER_LINES; i++) {
        struct line *line = &server->lines[i];
        if (line->state == LINE_FREE)
            return line;
        if (line->state == LINE_REQUEST && (oldest == NULL || line->begin_ns < oldest->begin_ns))
            oldest = line;
    }
    if (oldest != NULL)
        end_line(server, oldest);
    return oldest;
}

/* Sends this side's nonce, which always fits into a new socket's buffer. */
static bool greet(struct line *line)
{
    uint8_t hello[TRANSFER_HELLO_SIZE];
    if (!seal_nonce(line->nonce))
        return false;
    memcpy(hello, TRANSFER_MAGIC, 8);
    memcpy(hello + 8, line->nonce, SEAL_NONCE_SIZE);
    return send(line->fd, hello, sizeof hello, MSG_NOSIGNAL) == sizeof hello;
}

static void accept_all(struct transfer_server *server)
{
    int on = 1;
    for (size_t i = 0; i < TRANSFER_LINES; i++) {
        int fd = accept4(server->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        struct line *line = line_for_newcomer(server);
        if (line == NULL) { /* the client will try again */
            close(fd);
            return;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        line->fd = fd;
        line->state = LINE_REQUEST;
        line->seen_ns = line->begin_ns = now_ns();
        if (!greet(line))
            end_line(server, line);
    }
}

/* Returns the event to wait for. Data that this side already has is summed without waiting for the client:
 * POLLOUT is ready at once. */
static short awaited(const struct line *line)
{
    bool comes = true;
    if (line->state == LINE_RECEIVING)
        (void)next_part(line, CHUNK, &comes);
    return line->state == LINE_ANSWER || line->state == LINE_SENDING || !comes ? POLLOUT : POLLIN;
}

/* Fills the list for poll(), in the order of the lines. Returns how long to wait. */
static int fill(struct transfer_server *server, struct pollfd *fds)
{
    bool any = false, full = true;
    for (size_t i = 0; i < TRANSFER_LINES; i++) {
        const struct line *line = &server->lines[i];
        fds[i] = (struct pollfd){.fd = line->fd, .events = awaited(line)};
        any = any || line->state != LINE_FREE;
        full = full && line->state != LINE_FREE && line->state != LINE_REQUEST;
    }
    fds[TRANSFER_LINES] = (struct pollfd){.fd = full ? -1 : server->listen_fd, .events = POLLIN};
    fds[TRANSFER_LINES + 1] = (struct pollfd){.fd = server->wake_fd, .events = POLLIN};
    return any ? 1000 : -1;
}

static bool is_late(const struct line *line, int64_t now)
{
    return now - line->seen_ns > (int64_t)TRANSFER_STALL_MS * 1000000 ||
           (line->state == LINE_REQUEST && now - line->begin_ns > (int64_t)TRANSFER_HELLO_MS * 1000000);
}

void transfer_serve(struct transfer_server *server)
{
    struct pollfd fds[TRANSFER_LINES + 2];
    while (!atomic_load(&server->stop)) {
        int timeout_ms = fill(server, fds);
        if (poll(fds, TRANSFER_LINES + 2, timeout_ms) < 0)
            continue;
        int64_t now = now_ns();
        for (size_t i = 0; i < TRANSFER_LINES; i++) {
            struct line *line = &server->lines[i];
            if (line->state == LINE_FREE)
                continue;
            if (fds[i].revents != 0)
                line->seen_ns = now;
            if ((fds[i].revents != 0 && !move_on(server, line)) || is_late(line, now))
                end_line(server, line);
        }
        if (fds[TRANSFER_LINES].revents != 0)
            accept_all(server);
    }
}
