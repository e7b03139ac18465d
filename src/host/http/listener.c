#include "host/http/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"

enum { LISTENER_BACKLOG = 1024, ACCEPTS_A_TURN = 256, DEFER_S = 1, LISTENER_HANDLES = 2 };
enum { KEEPALIVE_IDLE_S = 60, KEEPALIVE_INTERVAL_S = 15, KEEPALIVE_PROBES = 4 };

struct listener {
    uv_poll_t poll;
    uv_timer_t pause; /* active: accept() has failed for lack of descriptors or memory */
    int open_handles, fd;
    struct listener_options options;
    uint32_t open;
    bool rests;
    char *path; /* of a Unix socket; NULL: none */
    void (*closed)(void *context);
    void *closed_context;
};

static void on_clients(uv_poll_t *poll, int status, int events);

/* Accepts clients again, unless the limit is reached. */
static void listener_go_on(struct listener *listener)
{
    uv_timer_stop(&listener->pause);
    if (listener->open < listener->options.open_max && !listener->rests &&
        !uv_is_active((uv_handle_t *)&listener->poll))
        uv_poll_start(&listener->poll, UV_READABLE, on_clients);
}

static void on_pause_over(uv_timer_t *timer)
{
    listener_go_on(timer->data);
}

/* Pauses: the socket stays readable while clients cannot be accepted, so polling it would keep the loop
 * busy. */
static void listener_pause(struct listener *listener, int errno_code)
{
    uv_poll_stop(&listener->poll);
    uv_timer_start(&listener->pause, on_pause_over, LISTENER_PAUSE_MS, 0);
    if (listener->options.paused)
        listener->options.paused(listener->options.context, errno_code);
}

static bool listener_is_short(int errno_code)
{
    return errno_code == EMFILE || errno_code == ENFILE || errno_code == ENOBUFS || errno_code == ENOMEM;
}

/* Accepts one client. Returns false if none waits, or none can be accepted now. */
static bool listener_accept(struct listener *listener)
{
    const struct listener_options *options = &listener->options;
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address;
    int fd = accept4(listener->fd, (struct sockaddr *)&address, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && listener_is_short(errno))
        listener_pause(listener, errno);
    if (fd < 0)
        return false;
    uint32_t descriptors = options->taken(options->context, fd, &address, len);
    listener->open += descriptors;
    if (!descriptors)
        close(fd);
    return true;
}

static void on_clients(uv_poll_t *poll, int status, int events)
{
    struct listener *listener = poll->data;
    const struct listener_options *options = &listener->options;
    (void)status;
    (void)events;
    for (int i = 0; i < ACCEPTS_A_TURN && listener->open < options->open_max && !listener->rests; i++)
        if (!listener_accept(listener))
            break;
    if (listener->open >= options->open_max) /* further clients wait in the kernel's queue */
        uv_poll_stop(poll);
}

void listener_left(struct listener *listener, uint32_t descriptors)
{
    CHECK(listener->open >= descriptors);
    listener->open -= descriptors;
    if (!uv_is_closing((uv_handle_t *)&listener->poll))
        listener_go_on(listener);
}

static struct listener *listener_new(uv_loop_t *loop, int fd, const char *path,
                                     const struct listener_options *options)
{
    struct listener *listener = mem_alloc(sizeof *listener);
    listener->fd = fd;
    listener->options = *options;
    if (path) {
        listener->path = mem_alloc(strlen(path) + 1);
        memcpy(listener->path, path, strlen(path));
    }
    CHECK(uv_poll_init(loop, &listener->poll, fd) == 0 && uv_timer_init(loop, &listener->pause) == 0);
    listener->poll.data = listener->pause.data = listener;
    listener->open_handles = LISTENER_HANDLES;
    uv_poll_start(&listener->poll, UV_READABLE, on_clients);
    return listener;
}

/* Sets options that accepted sockets inherit. */
static void set_tcp_options(int fd, bool deferred)
{
    int on = 1, idle_s = KEEPALIVE_IDLE_S, interval_s = KEEPALIVE_INTERVAL_S, probes = KEEPALIVE_PROBES;
    int defer_s = DEFER_S;
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    if (deferred)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &defer_s, sizeof defer_s);
}

static uint16_t listener_port_of(const struct sockaddr_storage *bound)
{
    return bound->ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)(const void *)bound)->sin6_port)
                                        : ntohs(((const struct sockaddr_in *)(const void *)bound)->sin_port);
}

int listener_open_tcp(uv_loop_t *loop, const char *address, uint16_t port,
                      const struct listener_options *options, struct listener **ret_listener,
                      uint16_t *ret_port, struct error *error)
{
    char service[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *found;
    struct sockaddr_storage bound;
    socklen_t bound_len = sizeof bound;
    int on = 1;
    snprintf(service, sizeof service, "%u", port);
    int rc = getaddrinfo(address, service, &hints, &found);
    if (rc != 0)
        return error_set(error, ERROR_INVALID, "listen address %s: %s", address, gai_strerror(rc));
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, found->ai_addr, found->ai_addrlen) < 0 || listen(fd, LISTENER_BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&bound, &bound_len) < 0)
        rc = error_set_errno(error, errno, "listening on %s port %u", address, port);
    freeaddrinfo(found);
    if (rc < 0) {
        if (fd >= 0)
            close(fd);
        return rc;
    }
    set_tcp_options(fd, options->deferred);
    *ret_listener = listener_new(loop, fd, NULL, options);
    if (ret_port)
        *ret_port = listener_port_of(&bound);
    return 0;
}

int listener_open_shared(uv_loop_t *loop, int fd, const struct listener_options *options,
                         struct listener **ret_listener, uint16_t *ret_port, struct error *error)
{
    struct sockaddr_storage bound;
    socklen_t len = sizeof bound;
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0 || getsockname(own, (struct sockaddr *)&bound, &len) < 0) {
        int rc = error_set_errno(error, errno, "sharing a listening socket");
        if (own >= 0)
            close(own);
        return rc;
    }
    set_tcp_options(own, options->deferred);
    *ret_listener = listener_new(loop, own, NULL, options);
    if (ret_port)
        *ret_port = listener_port_of(&bound);
    return 0;
}

int listener_socket(const struct listener *listener)
{
    return listener->fd;
}

void listener_prompt(struct listener *listener)
{
    int at_once = 0;
    (void)setsockopt(listener->fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &at_once, sizeof at_once);
}

void listener_drain(struct listener *listener)
{
    while (listener->open < listener->options.open_max && listener_accept(listener))
        ;
}

void listener_rest(struct listener *listener, bool rests)
{
    listener->rests = rests;
    if (rests)
        uv_poll_stop(&listener->poll);
    else if (!uv_is_active((uv_handle_t *)&listener->pause))
        listener_go_on(listener);
}

int listener_open_unix(uv_loop_t *loop, const char *path, unsigned mode,
                       const struct listener_options *options, struct listener **ret_listener,
                       struct error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return error_set(error, ERROR_INVALID, "the path of the socket %s is longer than %zu bytes", path,
                         sizeof address.sun_path - 1);
    memcpy(address.sun_path, path, strlen(path));
    unlink(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        chmod(path, mode) < 0 || /* before any client can connect */
        listen(fd, LISTENER_BACKLOG) < 0) {
        int rc = error_set_errno(error, errno, "listening on %s", path);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    *ret_listener = listener_new(loop, fd, path, options);
    return 0;
}

static void on_listener_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;
    if (--listener->open_handles)
        return;
    void (*closed)(void *context) = listener->closed;
    void *context = listener->closed_context;
    mem_free(listener->path);
    mem_free(listener);
    if (closed)
        closed(context);
}

void listener_close(struct listener *listener, void (*closed)(void *context), void *context)
{
    listener->closed = closed;
    listener->closed_context = context;
    uv_poll_stop(&listener->poll);
    uv_close((uv_handle_t *)&listener->poll, on_listener_closed);
    uv_close((uv_handle_t *)&listener->pause, on_listener_closed);
    close(listener->fd);
    if (listener->path)
        unlink(listener->path);
}
