#include "job/checkpoint/transfer.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "job/link/error.h"
#include "job/link/wire.h"

#define CHUNK    ((size_t)256 << 10) /* summed while it is in the processor's cache */
#define SLICE_MS 20                  /* between two tests of `stop` */

uint64_t transfer_gang(const char *jobset)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *jobset != '\0'; jobset++)
        hash = (hash ^ (uint8_t)*jobset) * 0x100000001b3u;
    return hash;
}

void transfer_put_request(const struct transfer_request *request, uint8_t ret_bytes[TRANSFER_REQUEST_SIZE])
{
    struct jobwire_writer writer = {.data = ret_bytes, .cap = TRANSFER_REQUEST_SIZE};
    uint8_t offer[OFFER_SIZE];
    offer_put(&request->offer, offer);
    jobwire_put_bytes(&writer, TRANSFER_MAGIC, 8);
    jobwire_put(
        &writer,
        request->type | (request->packed ? TRANSFER_PACKED : 0) | (request->proved ? TRANSFER_PROVED : 0), 4);
    jobwire_put(&writer, request->self.attempt, 4);
    jobwire_put(&writer, request->self.gang, 8);
    jobwire_put(&writer, request->self.rank, 4);
    jobwire_put(&writer, request->self.world, 4);
    jobwire_put_bytes(&writer, offer, sizeof offer);
    jobwire_put(&writer, request->type == TRANSFER_FRONT ? request->front : request->keep_step, 8);
    jobwire_put(&writer, request->keep_attempt, 4);
}

/* Returns true if the client sends the data. */
static bool is_copy(enum transfer_type type)
{
    return type == TRANSFER_PUT || type == TRANSFER_DELTA;
}

bool transfer_get_request(const uint8_t bytes[TRANSFER_REQUEST_SIZE], struct transfer_request *ret_request)
{
    struct jobwire_reader reader = {.data = bytes, .pos = 8, .len = TRANSFER_REQUEST_SIZE};
    uint32_t type = (uint32_t)jobwire_get(&reader, 4);
    struct transfer_request request = {.type =
                                           (enum transfer_type)(type & ~(TRANSFER_PACKED | TRANSFER_PROVED)),
                                       .packed = (type & TRANSFER_PACKED) != 0,
                                       .proved = (type & TRANSFER_PROVED) != 0};
    request.self.attempt = (uint32_t)jobwire_get(&reader, 4);
    request.self.gang = jobwire_get(&reader, 8);
    request.self.rank = (uint32_t)jobwire_get(&reader, 4);
    request.self.world = (uint32_t)jobwire_get(&reader, 4);
    const uint8_t *offer = jobwire_get_bytes(&reader, OFFER_SIZE);
    request.front = request.keep_step = jobwire_get(&reader, 8);
    request.keep_attempt = (uint32_t)jobwire_get(&reader, 4);
    if (memcmp(bytes, TRANSFER_MAGIC, 8) != 0 || request.type < TRANSFER_GET ||
        request.type > TRANSFER_FRONT || (request.packed && !is_copy(request.type)) ||
        !offer_get(offer, &request.offer) || !offer_in_memory(&request.offer))
        return false;
    *ret_request = request;
    return true;
}

/* ---- a connection ---- */

struct line {
    const struct transfer_peer *peer;
    int fd;
    int64_t begin_ns; /* start of the data, of which `moved` bytes have passed */
    uint64_t moved;
    struct seal in;      /* of the server's answers */
    struct poly1305 sum; /* of the data, with peer->prove */
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool is_stopped(const struct line *line)
{
    return line->peer->stop != NULL && atomic_load(line->peer->stop);
}

/* Waits until the socket is ready, at most limit_ms. With fd -1 waits for that time. */
static int wait_ready(const struct line *line, int fd, short events, int64_t limit_ms,
                      struct phx_error *error)
{
    int64_t until_ns = now_ns() + limit_ms * 1000000;
    for (;;) {
        int64_t left_ms = (until_ns - now_ns() + 999999) / 1000000;
        if (is_stopped(line))
            return job_fail(error, PHX_ERROR_IO, "the transfer was cancelled");
        if (left_ms <= 0)
            return job_fail(error, PHX_ERROR_TIMEOUT, "%.60s port %u doesn't answer", line->peer->address,
                            line->peer->port);
        struct pollfd poll_fd = {.fd = fd, .events = events};
        if (poll(&poll_fd, 1, left_ms < SLICE_MS ? (int)left_ms : SLICE_MS) > 0)
            return 0;
    }
}

static int broken(const struct line *line, int reason, struct phx_error *error)
{
    return reason == 0 ? job_fail(error, PHX_ERROR_IO, "%.60s port %u has closed the connection",
                                  line->peer->address, line->peer->port)
                       : job_fail_errno(error, reason, "talk to %.60s port %u", line->peer->address,
                                        line->peer->port);
}

static int open_line(struct line *line, struct phx_error *error)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *at = NULL;
    char port[8];
    int on = 1, reason = 0;
    socklen_t size = sizeof reason;
    snprintf(port, sizeof port, "%u", line->peer->port);
    if (line->peer->port == 0 || getaddrinfo(line->peer->address, port, &hints, &at) != 0)
        return job_fail(error, PHX_ERROR_IO, "no rank serves checkpoints at \"%.60s\" port %u",
                        line->peer->address, line->peer->port);
    line->fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int status = line->fd < 0 ? job_fail_errno(error, errno, "open a socket") : 0;
    if (status == 0 && connect(line->fd, at->ai_addr, at->ai_addrlen) != 0 && errno != EINPROGRESS)
        status = broken(line, errno, error);
    if (status == 0)
        status = wait_ready(line, line->fd, POLLOUT, TRANSFER_CONNECT_MS, error);
    if (status == 0 && (getsockopt(line->fd, SOL_SOCKET, SO_ERROR, &reason, &size) != 0 || reason != 0))
        status = broken(line, reason != 0 ? reason : errno, error);
    if (status == 0)
        setsockopt(line->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    freeaddrinfo(at);
    return status;
}

static void close_line(struct line *line)
{
    if (line->fd >= 0)
        close(line->fd);
}

/* Waits while the data is ahead of its rate. */
static int keep_rate(struct line *line, size_t moved, struct phx_error *error)
{
    line->moved += moved;
    if (line->peer->rate == 0)
        return 0;
    double due_s = (double)line->moved / (double)line->peer->rate;
    int64_t ahead_ms = (line->begin_ns + (int64_t)(due_s * 1e9) - now_ns()) / 1000000;
    if (ahead_ms < 1)
        return 0;
    int status = wait_ready(line, -1, 0, ahead_ms, error);
    return status == PHX_ERROR_TIMEOUT ? 0 : status; /* the time has passed, as intended */
}

/* Receives one piece of at most `len` bytes. */
static int receive_some(const struct line *line, uint8_t *to, size_t len, size_t *ret_got,
                        struct phx_error *error)
{
    for (;;) {
        ssize_t got = recv(line->fd, to, len, 0);
        if (got > 0) {
            *ret_got = (size_t)got;
            return 0;
        }
        if (got == 0 || (errno != EAGAIN && errno != EINTR))
            return broken(line, got == 0 ? 0 : errno, error);
        int status = wait_ready(line, line->fd, POLLIN, TRANSFER_STALL_MS, error);
        if (status != 0)
            return status;
    }
}

static int receive(const struct line *line, uint8_t *to, size_t len, struct phx_error *error)
{
    int status = 0;
    for (size_t at = 0, got = 0; status == 0 && at < len; at += got)
        status = receive_some(line, to + at, len - at, &got, error);
    return status;
}

static int send_all(struct line *line, const uint8_t *data, size_t len, struct phx_error *error)
{
    int status = 0;
    while (status == 0 && len > 0) {
        size_t part = len < CHUNK ? len : CHUNK;
        ssize_t sent = send(line->fd, data, part, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return broken(line, errno, error);
        if (sent < 0) {
            status = wait_ready(line, line->fd, POLLOUT, TRANSFER_STALL_MS, error);
            continue;
        }
        data += sent;
        len -= (size_t)sent;
        status = keep_rate(line, (size_t)sent, error);
    }
    return status;
}

/* Sends bytes of data, and sums them while they are in the processor's cache. */
static int send_summed(struct line *line, const uint8_t *data, size_t len, struct phx_error *error)
{
    int status = 0;
    if (!line->peer->prove)
        return send_all(line, data, len, error);
    while (status == 0 && len > 0) {
        size_t part = len < CHUNK ? len : CHUNK;
        poly1305_add(&line->sum, data, part);
        status = send_all(line, data, part, error);
        data += part;
        len -= part;
    }
    return status;
}

static int send_proof(struct line *line, struct phx_error *error)
{
    uint8_t tag[SEAL_TAG_SIZE];
    if (!line->peer->prove)
        return 0;
    poly1305_end(&line->sum, tag);
    return send_all(line, tag, sizeof tag, error);
}

static int receive_proof(struct line *line, struct phx_error *error)
{
    uint8_t tag[SEAL_TAG_SIZE];
    int status = line->peer->prove ? receive(line, tag, sizeof tag, error) : 0;
    if (status == 0 && line->peer->prove && !seal_data_check(&line->sum, tag))
        status = job_fail(error, PHX_ERROR_CORRUPT,
                          "data from %.60s port %u was changed on its way: its tag is wrong",
                          line->peer->address, line->peer->port);
    return status;
}

/* Sends data, packed if peer->pack is set. */
static int send_data(struct line *line, const uint8_t *data, uint64_t len, struct phx_error *error)
{
    struct pack *pack = line->peer->pack;
    int status = 0;
    if (pack == NULL)
        return send_summed(line, data, len, error);
    while (status == 0 && len > 0) {
        size_t part = len < PACK_PIECE ? (size_t)len : PACK_PIECE;
        const uint8_t *head, *body;
        size_t size = pack_piece(pack, data, part, &head, &body);
        status = send_summed(line, head, PACK_HEAD, error);
        if (status == 0)
            status = send_summed(line, body, size, error);
        data += part;
        len -= part;
    }
    return status;
}

struct answer {
    uint32_t attempt;
    uint64_t number; /* length of the data, or a step (DELTA) */
};

static int receive_answer(struct line *line, struct answer *ret_answer, struct phx_error *error)
{
    uint8_t bytes[TRANSFER_ANSWER_SIZE];
    int status = receive(line, bytes, sizeof bytes, error);
    if (status != 0)
        return status;
    if (!seal_check(&line->in, bytes, sizeof bytes - SEAL_TAG_SIZE, bytes + sizeof bytes - SEAL_TAG_SIZE))
        return job_fail(error, PHX_ERROR_IO, "%.60s port %u does not know the key of this gang",
                        line->peer->address, line->peer->port);
    struct jobwire_reader reader = {.data = bytes, .len = sizeof bytes};
    int code = -(int)jobwire_get(&reader, 4);
    ret_answer->attempt = (uint32_t)jobwire_get(&reader, 4);
    ret_answer->number = jobwire_get(&reader, 8);
    return code == 0 ? 0
                     : job_fail(error, code, "%.60s port %u refuses: %s", line->peer->address,
                                line->peer->port, phx_code_name(code));
}

/* Waits for the server's nonce, and sends the request with its tag. */
static int send_request(struct line *line, const struct transfer_request *request, struct phx_error *error)
{
    uint8_t hello[TRANSFER_HELLO_SIZE], bytes[TRANSFER_SEALED_SIZE];
    uint8_t *nonce = bytes + TRANSFER_REQUEST_SIZE;
    struct seal out;
    int status = receive(line, hello, sizeof hello, error);
    if (status != 0)
        return status;
    if (memcmp(hello, TRANSFER_MAGIC, 8) != 0)
        return job_fail(error, PHX_ERROR_IO, "%.60s port %u is no rank of this version", line->peer->address,
                        line->peer->port);
    if (!seal_nonce(nonce))
        return job_fail_errno(error, errno, "draw a nonce");
    transfer_put_request(request, bytes);
    seal_begin(&out, request->self.key, TRANSFER_MAGIC, SEAL_FROM_CLIENT, hello + 8, nonce);
    seal_begin(&line->in, request->self.key, TRANSFER_MAGIC, SEAL_FROM_SERVER, hello + 8, nonce);
    seal_tag(&out, bytes, sizeof bytes - SEAL_TAG_SIZE, bytes + sizeof bytes - SEAL_TAG_SIZE);
    if (request->proved)
        seal_data_begin(is_copy(request->type) ? &out : &line->in, &line->sum);
    return send_all(line, bytes, sizeof bytes, error);
}

static int begin(struct line *line, const struct transfer_request *request, struct answer *ret_answer,
                 struct phx_error *error)
{
    struct transfer_request sent = *request;
    sent.packed = line->peer->pack != NULL && is_copy(request->type);
    sent.proved = line->peer->prove;
    line->begin_ns = now_ns();
    int status = open_line(line, error);
    if (status == 0)
        status = send_request(line, &sent, error);
    if (status == 0)
        status = receive_answer(line, ret_answer, error);
    line->begin_ns = now_ns();
    line->moved = 0;
    return status;
}

int transfer_get(const struct transfer_peer *peer, const struct transfer_request *request, uint8_t *to,
                 struct phx_error *error)
{
    struct line line = {.peer = peer, .fd = -1};
    uint64_t at = 0, len = request->offer.len;
    uint32_t crc = 0;
    struct answer answer;
    int status = begin(&line, request, &answer, error);
    if (status == 0 && answer.number != len)
        status = job_fail(error, PHX_ERROR_CORRUPT, "%.60s port %u has a shard of another length",
                          peer->address, peer->port);
    while (status == 0 && at < len) {
        size_t got = 0;
        status = receive_some(&line, to + at, len - at < CHUNK ? (size_t)(len - at) : CHUNK, &got, error);
        crc = crc32c(crc, to + at, got);
        if (peer->prove)
            poly1305_add(&line.sum, to + at, got);
        at += got;
        if (status == 0)
            status = keep_rate(&line, got, error);
    }
    if (status == 0)
        status = receive_proof(&line, error);
    close_line(&line);
    if (status == 0 && crc != request->offer.crc)
        status = job_fail(error, PHX_ERROR_CORRUPT,
                          "the shard of rank %u from %.60s is damaged: its checksum is wrong",
                          request->offer.rank, peer->address);
    return status;
}

int transfer_front(const struct transfer_peer *peer, const struct transfer_request *request, uint8_t *to,
                   size_t *ret_got, struct phx_error *error)
{
    struct line line = {.peer = peer, .fd = -1};
    struct answer answer = {0};
    int status = begin(&line, request, &answer, error);
    if (status == 0 && answer.number > request->front)
        status = job_fail(error, PHX_ERROR_CORRUPT, "%.60s port %u sent more than was asked for",
                          peer->address, peer->port);
    if (status == 0)
        status = receive(&line, to, (size_t)answer.number, error);
    if (status == 0 && peer->prove)
        poly1305_add(&line.sum, to, (size_t)answer.number);
    if (status == 0)
        status = receive_proof(&line, error);
    close_line(&line);
    if (status == 0)
        *ret_got = (size_t)answer.number;
    return status;
}

int transfer_put(const struct transfer_peer *peer, const struct transfer_request *request,
                 const uint8_t *data, struct phx_error *error)
{
    struct line line = {.peer = peer, .fd = -1};
    struct answer answer;
    int status = begin(&line, request, &answer, error);
    if (status == 0)
        status = send_data(&line, data, request->offer.len, error);
    if (status == 0)
        status = send_proof(&line, error);
    if (status == 0)
        status = receive_answer(&line, &answer, error);
    close_line(&line);
    return status;
}

/* Sends the map, then its blocks, neighbouring ones together. */
static int send_map(struct line *line, const uint8_t *map, const uint8_t *data, uint64_t len,
                    struct phx_error *error)
{
    int status = send_summed(line, map, delta_map_size(len), error);
    for (uint64_t at = 0; status == 0 && at < len;) {
        bool sent;
        uint64_t run = delta_map_run(map, len, at, len, &sent);
        if (sent)
            status = send_data(line, data + at, run, error);
        at += run;
    }
    return status;
}

int transfer_put_delta(const struct transfer_peer *peer, const struct transfer_request *request,
                       const uint8_t *data, struct delta_history *history, uint64_t *ret_sent,
                       struct phx_error *error)
{
    const struct offer *offer = &request->offer;
    struct line line = {.peer = peer, .fd = -1};
    struct delta delta = {0};
    struct answer answer;
    uint8_t *map = calloc(delta_map_size(offer->len) + 1, 1);
    int status = 0;
    if (map == NULL || !delta_sum(offer->step, offer->attempt, data, offer->len, &delta))
        status = job_fail(error, PHX_ERROR_MEMORY, "out of memory");
    if (status == 0)
        status = begin(&line, request, &answer, error);
    if (status == 0) {
        delta_map(&delta, delta_find(history, answer.number, answer.attempt), map);
        status = send_map(&line, map, data, offer->len, error);
    }
    if (status == 0)
        status = send_proof(&line, error);
    if (status == 0)
        status = receive_answer(&line, &answer, error);
    if (status == 0) {
        *ret_sent = delta_map_bytes(map, offer->len);
        delta_remember(history, &delta);
    } else if (status == PHX_ERROR_CORRUPT) { /* the peer's copy is not the one in the history */
        delta_forget(history);
    }
    delta_done(&delta);
    free(map);
    close_line(&line);
    return status;
}
