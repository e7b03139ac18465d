#include "host/fabric/line.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int switch_fail(struct phx_switch_error *error, enum phx_switch_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (error) {
        error->status = status;
        vsnprintf(error->message, sizeof error->message, format, args);
    }
    va_end(args);
    return status;
}

static int64_t line_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits for `events`. Returns false if the deadline has passed. */
static bool wait_for_events(int fd, short events, int64_t deadline_ms)
{
    for (;;) {
        struct pollfd at = {fd, events, 0};
        int64_t left_ms = deadline_ms - line_clock_ms();
        int ready = poll(&at, 1, left_ms > 0 ? (int)left_ms : 0);
        if (ready > 0)
            return true;
        if (ready == 0 && left_ms <= 0)
            return false;
    }
}

static int connect_to(struct line *line, const struct addrinfo *place, const char *address,
                      struct phx_switch_error *error)
{
    int one = 1, cause = 0;
    socklen_t length = sizeof cause;
    int64_t deadline_ms = line_clock_ms() + line->timeout_ms;
    line->fd = socket(place->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (line->fd < 0)
        return switch_fail(error, PHX_SWITCH_LOST, "%s: socket: %m", address);
    setsockopt(line->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(line->fd, place->ai_addr, place->ai_addrlen) == 0)
        return PHX_SWITCH_OK;
    if (errno == EINPROGRESS) {
        if (!wait_for_events(line->fd, POLLOUT, deadline_ms))
            return switch_fail(error, PHX_SWITCH_TIMEOUT, "%s: no connection within %u ms", address,
                               line->timeout_ms);
        getsockopt(line->fd, SOL_SOCKET, SO_ERROR, &cause, &length);
    } else {
        cause = errno;
    }
    errno = cause;
    return cause ? switch_fail(error, PHX_SWITCH_LOST, "%s: %m", address) : PHX_SWITCH_OK;
}

int line_open(struct line *line, const char *address, uint32_t timeout_ms, struct phx_switch_error *error)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *places = NULL;
    const char *colon = strrchr(address, ':');
    char host[256];
    size_t length = colon ? (size_t)(colon - address) : 0;
    *line = (struct line){.fd = -1, .timeout_ms = timeout_ms};
    if (!length || length >= sizeof host)
        return switch_fail(error, PHX_SWITCH_INVALID, "address \"%.64s\": expected HOST:PORT", address);
    memcpy(host, address, length);
    host[length] = 0;
    int rc = getaddrinfo(host, colon + 1, &hints, &places);
    if (rc != 0)
        return switch_fail(error, PHX_SWITCH_LOST, "%s: %s", address, gai_strerror(rc));
    rc = PHX_SWITCH_LOST;
    for (const struct addrinfo *place = places; place && rc < 0; place = place->ai_next) {
        rc = connect_to(line, place, address, error);
        if (rc < 0)
            line_close(line);
    }
    freeaddrinfo(places);
    return rc;
}

void line_close(struct line *line)
{
    if (line->fd >= 0)
        close(line->fd);
    line->fd = -1;
    buf_done(&line->in);
    line->taken = 0;
}

int line_send(struct line *line, struct str text, struct phx_switch_error *error)
{
    int64_t deadline_ms = line_clock_ms() + line->timeout_ms;
    while (text.len) {
        ssize_t sent = send(line->fd, text.data, text.len, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return switch_fail(error, PHX_SWITCH_LOST, "the session broke: %m");
        if (sent > 0)
            text = (struct str){text.data + sent, text.len - (size_t)sent};
        else if (!wait_for_events(line->fd, POLLOUT, deadline_ms))
            return switch_fail(error, PHX_SWITCH_TIMEOUT, "the switch takes no commands for %u ms",
                               line->timeout_ms);
    }
    return PHX_SWITCH_OK;
}

int line_receive(struct line *line, size_t (*length)(struct str bytes), struct str *ret_answer,
                 struct phx_switch_error *error)
{
    int64_t deadline_ms = line_clock_ms() + line->timeout_ms;
    buf_drop_front(&line->in, line->taken);
    line->taken = 0;
    for (;;) {
        size_t whole = length(buf_str(&line->in));
        if (whole) {
            line->taken = whole;
            *ret_answer = (struct str){line->in.data, whole};
            return PHX_SWITCH_OK;
        }
        if (line->in.len > LINE_ANSWER_MAX)
            return switch_fail(error, PHX_SWITCH_GARBLED, "the switch answers more than %d bytes",
                               LINE_ANSWER_MAX);
        if (!wait_for_events(line->fd, POLLIN, deadline_ms))
            return switch_fail(error, PHX_SWITCH_TIMEOUT, "no answer within %u ms", line->timeout_ms);
        buf_reserve(&line->in, 4096);
        ssize_t got = recv(line->fd, line->in.data + line->in.len, 4096, 0);
        if (got == 0)
            return switch_fail(error, PHX_SWITCH_LOST, "the switch closed the session");
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return switch_fail(error, PHX_SWITCH_LOST, "the session broke: %m");
        if (got > 0) {
            line->in.len += (size_t)got;
            line->in.data[line->in.len] = 0;
        }
    }
}
