#include "sim/fabric/ocs_serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct serve_session {
    int fd;
    struct ocs_session session;
    struct buf out;
    int64_t wake_ns;
};
struct serve_switch {
    struct ocs ocs;
    int listen_fd[2]; /* by protocol; -1: none */
    uint16_t port[2];
    /* `silent`: it does not answer; `touched`: it may have changed since chips followed it */
    bool silent, touched;
    int64_t away_until_ns; /* no session is accepted before */
    struct serve_session *sessions[OCS_SESSIONS_MAX];
};
struct ocs_serve {
    struct ocs_serve_settings settings;
    struct serve_switch *switches;
    struct chips_serve *chips; /* NULL: none */
    struct light_serve *light; /* NULL: none */
    struct buf orders;         /* the part of a line that was read so far */
    size_t next_act;
    int64_t begin_ns;
};

enum { ORDER_BYTES_MAX = 64 << 10 }; /* limit of a line */

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* --- opening and closing ------------------------------------------------------------------------------- */

static int listen_at(const char *address, uint16_t port, int *ret_fd, uint16_t *ret_port, struct error *error)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t length = sizeof at;
    int one = 1;
    if (inet_pton(AF_INET, address, &at.sin_addr) != 1)
        return error_set(error, ERROR_INVALID, "address \"%.64s\": expected one such as 127.0.0.1", address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set_errno(error, errno, "socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &length) < 0) {
        int rc = error_set_errno(error, errno, "listening at %.64s:%u", address, port);
        close(fd);
        return rc;
    }
    *ret_fd = fd;
    *ret_port = ntohs(at.sin_port);
    return 0;
}

int ocs_serve_open(const struct ocs_serve_settings *settings, struct ocs_serve **ret_serve,
                   struct error *error)
{
    CHECK(settings->switches >= 1 && settings->switches <= OCS_SWITCHES_MAX);
    struct ocs_serve *serve = mem_alloc(sizeof *serve);
    uint32_t offset = 0;
    int rc = 0;
    serve->settings = *settings;
    serve->switches = mem_alloc(settings->switches * sizeof *serve->switches);
    for (uint32_t i = 0; i < settings->switches; i++) {
        struct ocs_settings ocs = settings->ocs;
        ocs.seed += i;
        ocs_init(&serve->switches[i].ocs, &ocs);
        serve->switches[i].listen_fd[OCS_SCPI] = serve->switches[i].listen_fd[OCS_TL1] = -1;
    }
    for (int protocol = 0; protocol < 2; protocol++)
        for (uint32_t i = 0; settings->protocol[protocol] && i < settings->switches && rc == 0; i++) {
            struct serve_switch *sw = &serve->switches[i];
            uint32_t port = settings->port ? settings->port + offset++ : 0;
            if (port > UINT16_MAX)
                rc = error_set(error, ERROR_INVALID, "port %u: expected a lower first port", port);
            else
                rc = listen_at(settings->address, (uint16_t)port, &sw->listen_fd[protocol],
                               &sw->port[protocol], error);
        }
    if (rc == 0 && settings->chips)
        rc = chips_serve_open(settings->chips, &serve->chips, error);
    if (rc == 0 && settings->light)
        rc = light_serve_open(settings->light, &serve->light, error);
    if (rc < 0) {
        ocs_serve_close(serve);
        return rc;
    }
    *ret_serve = serve;
    return 0;
}

uint16_t ocs_serve_port(const struct ocs_serve *serve, uint32_t which, enum ocs_protocol protocol)
{
    CHECK(which < serve->settings.switches);
    return serve->switches[which].port[protocol];
}

static void end_session(struct serve_session **slot)
{
    struct serve_session *session = *slot;
    if (!session)
        return;
    close(session->fd);
    ocs_session_done(&session->session);
    buf_done(&session->out);
    mem_free(session);
    *slot = NULL;
}

static void end_sessions(struct serve_switch *sw)
{
    for (int i = 0; i < OCS_SESSIONS_MAX; i++)
        end_session(&sw->sessions[i]);
}

void ocs_serve_close(struct ocs_serve *serve)
{
    for (uint32_t i = 0; i < serve->settings.switches; i++) {
        end_sessions(&serve->switches[i]);
        for (int protocol = 0; protocol < 2; protocol++)
            if (serve->switches[i].listen_fd[protocol] >= 0)
                close(serve->switches[i].listen_fd[protocol]);
    }
    if (serve->chips)
        chips_serve_close(serve->chips);
    if (serve->light)
        light_serve_close(serve->light);
    buf_done(&serve->orders);
    mem_free(serve->switches);
    mem_free(serve);
}

/* --- what happens to switches -------------------------------------------------------------------------- */

static bool switch_is_away(const struct serve_switch *sw, int64_t now_ns)
{
    return sw->ocs.dead || now_ns < sw->away_until_ns;
}

static void act_on(const struct ocs_act *act, struct serve_switch *sw, int64_t now_ns)
{
    ocs_act_apply(act, &sw->ocs, now_ns);
    sw->touched = true;
    if (act->kind == OCS_ACT_SILENCE || act->kind == OCS_ACT_ANSWER)
        sw->silent = act->kind == OCS_ACT_SILENCE;
    if (act->kind == OCS_ACT_RESTART)
        sw->away_until_ns = now_ns + act->span_ns;
    if (act->kind == OCS_ACT_RESTART || act->kind == OCS_ACT_DROP)
        end_sessions(sw);
}

static void act_on_all(struct ocs_serve *serve, const struct ocs_act *act, int64_t now_ns)
{
    for (uint32_t i = 0; i < serve->settings.switches; i++)
        if (act->which == OCS_ALL_SWITCHES || act->which == (int32_t)i)
            act_on(act, &serve->switches[i], now_ns);
}

/* Carries out due acts. Returns when the next one is due, or OCS_NEVER if none is left. */
static int64_t play_script(struct ocs_serve *serve, const struct ocs_script *script, int64_t now_ns)
{
    for (; script && serve->next_act < script->acts.len; serve->next_act++) {
        const struct ocs_act *act = &script->acts.items[serve->next_act];
        if (serve->begin_ns + act->at_ns > now_ns)
            return serve->begin_ns + act->at_ns;
        act_on_all(serve, act, now_ns);
    }
    return OCS_NEVER;
}

static void carry_out_order(struct ocs_serve *serve, struct str line, int64_t now_ns)
{
    struct ocs_script script = {0};
    struct error error = {0};
    if (str_trim(line).len == 0)
        return;
    if (ocs_script_parse(line, &script, &error) < 0 && serve->settings.complain)
        serve->settings.complain(error.text);
    for (size_t i = 0; i < script.acts.len; i++) /* `at` is ignored here: all acts are due */
        act_on_all(serve, &script.acts.items[i], now_ns);
    ocs_script_done(&script);
}

/* Reads once, and carries out the complete lines. */
static void take_orders(struct ocs_serve *serve, int64_t now_ns)
{
    char bytes[4096];
    ssize_t got = read(serve->settings.orders_fd, bytes, sizeof bytes);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR) || serve->orders.len > ORDER_BYTES_MAX)
        serve->settings.orders_fd = -1;
    buf_add(&serve->orders, bytes, got > 0 ? (size_t)got : 0);
    struct str left = buf_str(&serve->orders), line;
    while (str_cut(left, '\n', &line, &left))
        carry_out_order(serve, line, now_ns);
    buf_drop_front(&serve->orders, serve->orders.len - left.len);
}

/* --- sessions ------------------------------------------------------------------------------------------ */

static void take_session(struct serve_switch *sw, enum ocs_protocol protocol, int64_t now_ns)
{
    int one = 1, slot = 0, fd = accept4(sw->listen_fd[protocol], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    while (slot < OCS_SESSIONS_MAX && sw->sessions[slot])
        slot++;
    if (slot == OCS_SESSIONS_MAX || switch_is_away(sw, now_ns)) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct serve_session *session = mem_alloc(sizeof *session);
    session->fd = fd;
    session->wake_ns = OCS_NEVER;
    ocs_session_init(&session->session, protocol);
    sw->sessions[slot] = session;
}

/* Reads, carries out and writes as much as possible. Returns false if the session has ended. */
static bool serve_session(struct serve_switch *sw, struct serve_session *session, bool readable,
                          int64_t now_ns)
{
    char bytes[16 * 1024];
    if (readable) {
        ssize_t got = recv(session->fd, bytes, sizeof bytes, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        if (got > 0)
            ocs_session_take(&session->session, (struct str){bytes, (size_t)got});
    }
    session->session.silent = sw->silent;
    sw->touched = true;
    session->wake_ns = ocs_session_next(&session->session, &sw->ocs, now_ns, &session->out);
    if (session->out.len) {
        ssize_t sent = send(session->fd, session->out.data, session->out.len, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        if (sent > 0)
            buf_drop_front(&session->out, (size_t)sent);
    }
    return !session->session.ended;
}

struct polled {
    struct serve_switch *sw;
    struct serve_session **slot; /* NULL: a listener */
    enum ocs_protocol protocol;
};

static void gather(struct ocs_serve *serve, struct pollfd *fds, struct polled *polled, size_t *ret_count,
                   int64_t *wake_ns)
{
    size_t count = 0;
    for (uint32_t i = 0; i < serve->settings.switches; i++) {
        struct serve_switch *sw = &serve->switches[i];
        for (int protocol = 0; protocol < 2; protocol++)
            if (sw->listen_fd[protocol] >= 0) {
                fds[count] = (struct pollfd){sw->listen_fd[protocol], POLLIN, 0};
                polled[count++] = (struct polled){sw, NULL, (enum ocs_protocol)protocol};
            }
        for (int k = 0; k < OCS_SESSIONS_MAX; k++) {
            struct serve_session *session = sw->sessions[k];
            if (!session)
                continue;
            fds[count] = (struct pollfd){session->fd, (short)(POLLIN | (session->out.len ? POLLOUT : 0)), 0};
            polled[count++] = (struct polled){sw, &sw->sessions[k], session->session.protocol};
            if (session->wake_ns < *wake_ns)
                *wake_ns = session->wake_ns;
        }
    }
    *ret_count = count;
}

static void serve_polled(const struct polled *at, const struct pollfd *fd, int64_t now_ns)
{
    if (!at->slot) {
        if (fd->revents)
            take_session(at->sw, at->protocol, now_ns);
    } else if (*at->slot && (*at->slot)->fd == fd->fd &&
               (fd->revents || (*at->slot)->wake_ns <= now_ns || at->sw->ocs.dead) &&
               !serve_session(at->sw, *at->slot, (fd->revents & ~POLLOUT) != 0, now_ns)) {
        end_session(at->slot);
    }
}

/* --- chips and light ----------------------------------------------------------------------------------- */

static uint32_t chip_fds(const struct ocs_serve *serve)
{
    return (serve->chips ? chips_serve_fds(serve->chips) : 0) +
           (serve->light ? light_serve_fds(serve->light) : 0);
}

static void watch_chips(const struct ocs_serve *serve, struct pollfd *fds)
{
    if (serve->chips)
        chips_serve_watch(serve->chips, fds);
    if (serve->light)
        light_serve_watch(serve->light, fds + (serve->chips ? chips_serve_fds(serve->chips) : 0));
}

static void serve_chips(struct ocs_serve *serve, const struct pollfd *fds)
{
    for (uint32_t i = 0; i < serve->settings.switches; i++) {
        struct serve_switch *sw = &serve->switches[i];
        if (sw->touched && serve->chips)
            chips_serve_follow(serve->chips, i, &sw->ocs);
        if (sw->touched && serve->light)
            light_serve_follow(serve->light, i, &sw->ocs);
        sw->touched = false;
    }
    if (serve->chips)
        chips_serve_turn(serve->chips, fds);
    if (serve->light)
        light_serve_turn(serve->light, fds + (serve->chips ? chips_serve_fds(serve->chips) : 0));
}

/* --- the loop ------------------------------------------------------------------------------------------ */

/* Waits once and serves what is ready. Returns false if poll() failed. */
static bool turn(struct ocs_serve *serve, const struct ocs_script *script, struct pollfd *fds,
                 struct polled *polled)
{
    size_t count;
    sigset_t none;
    sigemptyset(&none);
    int64_t now_ns = monotonic_ns(), wake_ns = play_script(serve, script, now_ns);
    gather(serve, fds, polled, &count, &wake_ns);
    struct pollfd *orders = &fds[count], *chips = orders + 1;
    *orders = (struct pollfd){serve->settings.orders_fd, POLLIN, 0};
    watch_chips(serve, chips);
    int64_t wait_ns = wake_ns == OCS_NEVER ? 3600LL * 1000000000 : wake_ns > now_ns ? wake_ns - now_ns : 0;
    struct timespec wait = {wait_ns / 1000000000, wait_ns % 1000000000};
    /* The caller blocks the signals that set *stop, so that none is lost between the test and the wait. */
    if (ppoll(fds, count + 1 + chip_fds(serve), &wait, &none) < 0)
        return errno == EINTR;
    now_ns = monotonic_ns();
    for (size_t i = 0; i < count; i++)
        serve_polled(&polled[i], &fds[i], now_ns);
    if (orders->revents)
        take_orders(serve, now_ns);
    serve_chips(serve, chips);
    return true;
}

void ocs_serve_run(struct ocs_serve *serve, const struct ocs_script *script,
                   const volatile sig_atomic_t *stop)
{
    enum { SESSIONS_MAX = OCS_SWITCHES_MAX * (2 + OCS_SESSIONS_MAX) };
    struct pollfd *fds = mem_alloc((SESSIONS_MAX + 1 + chip_fds(serve)) * sizeof *fds);
    struct polled *polled = mem_alloc(SESSIONS_MAX * sizeof *polled);
    serve->begin_ns = monotonic_ns();
    while (!*stop && turn(serve, script, fds, polled))
        ;
    mem_free(fds);
    mem_free(polled);
}
