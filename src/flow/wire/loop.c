/* The connections of a process, served with epoll. */
#include "flow/wire/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/map.h"
#include "base/units.h"
#include "flow/island/machine.h"
#include "flow/wire/clock.h"
#include "flow/wire/spin.h"

enum {
    LOOP_EVENTS = 64,
    LOOP_SPIN_RINGS_MAX = 32,  /* polling more rings than that takes too long */
    LOOP_SPIN_TURNS_MAX = 256, /* consecutive turns without poll */
};

struct connection {
    struct loop *loop;
    struct wire *wire;
    uint64_t peer;
    bool dead, held, dirty, writing;
    bool replaced; /* dead, and its peer has been added again; `closed` is still called */
    bool resumes;  /* to be read in the next turn, even if poll does not report it */
};

struct loop {
    struct loop_handler handler;
    struct wire_hub *hub; /* NULL: none */
    int epoll, wake, listener, stop_fd;
    struct u64_map by_peer; /* by peer */
    VEC(struct connection *) list;
    VEC(struct connection *) dirty;
    uint32_t guests;
    bool deaths, busy;           /* busy: the last turn had events */
    uint32_t spun;               /* consecutive turns that ended without poll */
    int64_t every_ns, ticked_ns; /* period of ticks; time of the last one */
    struct spin spin;
    _Atomic bool stop, woken;
};

int loop_new(const struct loop_handler *handler, struct loop **ret_loop, struct error *error)
{
    struct loop *loop = mem_alloc(sizeof *loop);
    loop->handler = *handler;
    loop->listener = -1;
    loop->every_ns = NS_PER_SECOND;
    spin_init(&loop->spin);
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &loop->wake};
    if (loop->epoll < 0 || loop->wake < 0 || epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->wake, &event) < 0) {
        int rc = error_set_errno(error, errno, "making an event loop");
        loop_free(loop);
        return rc;
    }
    *ret_loop = loop;
    return 0;
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    for (size_t i = 0; i < loop->list.len; i++) {
        flow_wire_free(loop->list.items[i]->wire);
        mem_free(loop->list.items[i]);
    }
    wire_hub_free(loop->hub);
    vec_done(&loop->list);
    vec_done(&loop->dirty);
    u64_map_done(&loop->by_peer);
    spin_done(&loop->spin);
    if (loop->listener >= 0)
        close(loop->listener);
    if (loop->wake >= 0)
        close(loop->wake);
    if (loop->epoll >= 0)
        close(loop->epoll);
    mem_free(loop);
}

void loop_use(struct loop *loop, struct wire_hub *hub)
{
    CHECK(loop->list.len == 0 && !loop->hub);
    loop->hub = hub;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &loop->hub};
    if (hub)
        CHECK(epoll_ctl(loop->epoll, EPOLL_CTL_ADD, wire_hub_fd(hub), &event) == 0);
}

void loop_listen(struct loop *loop, int fd)
{
    loop->listener = fd;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &loop->listener};
    CHECK(epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) == 0);
}

void loop_add(struct loop *loop, struct wire *wire, uint64_t peer)
{
    struct connection *connection = mem_alloc(sizeof *connection);
    connection->loop = loop;
    connection->wire = wire;
    connection->peer = peer;
    wire->owner = connection;
    vec_push(&loop->list, connection);
    struct connection *old = u64_map_put(&loop->by_peer, peer, connection);
    CHECK(!old || old->dead);
    if (old) /* dead, but not freed yet */
        old->replaced = true;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    CHECK(epoll_ctl(loop->epoll, EPOLL_CTL_ADD, wire->fd, &event) == 0);
}

int loop_connect(struct loop *loop, const char *address, uint64_t peer, struct error *error)
{
    struct wire *wire;
    int rc = wire_hub_connect(loop->hub, address, &wire, error);
    if (rc == 0)
        loop_add(loop, wire, peer);
    return rc;
}

void loop_stop_at(struct loop *loop, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &loop->stop_fd};
    if (fd >= 0)
        CHECK(epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) == 0);
}

/* Returns the connection on which to send to the peer. */
static struct connection *loop_connection(const struct loop *loop, uint64_t peer)
{
    struct connection *connection = u64_map_get(&loop->by_peer, peer);
    return connection && !connection->dead ? connection : NULL;
}

bool loop_has(const struct loop *loop, uint64_t peer)
{
    return loop_connection(loop, peer) != NULL;
}

/* Ends a connection. If the peer has another one, messages are sent on that from now on. */
static void loop_kill(struct loop *loop, struct connection *connection)
{
    connection->dead = true;
    loop->deaths = true;
    if (u64_map_get(&loop->by_peer, connection->peer) != connection)
        return;
    for (size_t i = 0; i < loop->list.len; i++) {
        struct connection *other = loop->list.items[i];
        if (other->peer != connection->peer || other->dead)
            continue;
        u64_map_put(&loop->by_peer, connection->peer, other);
        return;
    }
}

static void connection_watch(struct connection *connection, bool writing, bool held)
{
    if (connection->dead || (writing == connection->writing && held == connection->held))
        return;
    connection->writing = writing;
    connection->held = held;
    struct epoll_event event = {.data.ptr = connection};
    event.events = (held ? 0 : EPOLLIN) | (writing ? EPOLLOUT : 0);
    CHECK(epoll_ctl(connection->loop->epoll, EPOLL_CTL_MOD, connection->wire->fd, &event) == 0);
}

static void connection_flush(struct connection *connection)
{
    int rc = connection->dead ? 0 : flow_wire_flush(connection->wire);
    if (rc < 0)
        loop_kill(connection->loop, connection);
    else
        connection_watch(connection, rc > 0 && !connection->wire->ops->is_ready, connection->held);
}

/* Marks a connection that has bytes to write; they are flushed at the end of the turn. */
static void connection_mark(struct connection *connection)
{
    if (!connection->dirty)
        vec_push(&connection->loop->dirty, connection);
    connection->dirty = true;
}

void loop_send(struct loop *loop, uint64_t peer, const struct flow_entry *entry, struct str tail,
               struct tensor *payload)
{
    struct connection *connection = loop_connection(loop, peer);
    if (!connection)
        return;
    flow_wire_put(connection->wire, entry, tail, payload);
    uint32_t most = loop->handler.backlog_max;
    bool is_client = peer == peer_client((uint32_t)peer) || peer == peer_guest((uint32_t)peer);
    if (most && is_client && connection->wire->out.len - connection->wire->out_first > most) {
        loop_kill(loop, connection);
        return;
    }
    connection_mark(connection);
}

void loop_close(struct loop *loop, uint64_t peer)
{
    for (size_t i = 0; i < loop->list.len; i++)
        if (loop->list.items[i]->peer == peer)
            loop_kill(loop, loop->list.items[i]);
}

static bool connection_entry(void *context, const struct flow_entry *entry, struct str tail)
{
    struct connection *connection = context;
    struct loop *loop = connection->loop;
    if (loop->handler.holds_guests && connection->peer == peer_guest((uint32_t)connection->peer))
        connection_watch(connection, connection->writing, true);
    loop->handler.entry(loop->handler.context, connection->peer, entry, tail);
    return !connection->dead && !connection->held;
}

static void connection_read(struct connection *connection)
{
    if (connection->dead || connection->held)
        return;
    if (flow_wire_read(connection->wire, connection_entry, connection, NULL) < 0)
        loop_kill(connection->loop, connection);
    else if (!connection->writing && flow_wire_is_pending(connection->wire))
        connection_mark(connection); /* a step of its move to UCX */
}

static void connection_trust(struct connection *connection)
{
    wire_hub_offer(connection->loop->hub, connection->wire);
    if (flow_wire_is_pending(connection->wire))
        connection_mark(connection);
}

void loop_trust(struct loop *loop, uint64_t peer)
{
    struct connection *connection = loop_connection(loop, peer);
    if (connection)
        connection_trust(connection);
}

void loop_bind(struct loop *loop, uint64_t guest, uint64_t as)
{
    struct connection *connection = loop_connection(loop, guest);
    if (!connection)
        return;
    u64_map_remove(&loop->by_peer, guest);
    connection->peer = as;
    if (!loop_connection(loop,
                         as)) /* a peer with two connections gets messages on the first; both are read */
        u64_map_put(&loop->by_peer, as, connection);
    connection_watch(connection, connection->writing, false);
    if (as == peer_host((uint32_t)as))
        connection_trust(connection);
    connection->resumes = true;
    loop_wake(loop); /* messages that followed its hello are read in the next turn */
}

static void loop_take_guests(struct loop *loop)
{
    struct wire *wire;
    while ((wire = flow_wire_accept(loop->listener))) {
        uint64_t peer = peer_guest(++loop->guests);
        loop_add(loop, wire, peer);
        loop->handler.opened(loop->handler.context, peer);
    }
}

static void loop_bury(struct loop *loop)
{
    while (loop->deaths) {
        loop->deaths = false;
        for (size_t i = 0; i < loop->list.len; i++) {
            struct connection *connection = loop->list.items[i];
            if (!connection->dead)
                continue;
            vec_remove(&loop->list, i);
            i--;
            bool last = u64_map_get(&loop->by_peer, connection->peer) == connection;
            if (last)
                u64_map_remove(&loop->by_peer, connection->peer);
            for (size_t k = 0; k < loop->dirty.len; k++)
                if (loop->dirty.items[k] == connection)
                    vec_remove(&loop->dirty, k);
            uint64_t peer = connection->peer;
            last = last || connection->replaced;
            flow_wire_free(connection->wire);
            mem_free(connection);
            if (last)
                loop->handler.closed(loop->handler.context, peer);
        }
    }
}

static void loop_flush(struct loop *loop)
{
    for (size_t i = 0; i < loop->dirty.len; i++) {
        loop->dirty.items[i]->dirty = false;
        connection_flush(loop->dirty.items[i]);
    }
    vec_clear(&loop->dirty);
}

/* Reads the messages that have arrived, and writes what the connection accepts. */
static void connection_serve(struct connection *connection)
{
    connection_read(connection);
    if (connection->wire->ops->is_ready && flow_wire_is_pending(connection->wire))
        connection_flush(connection); /* the ring may report space to write */
}

static void loop_woken(struct loop *loop)
{
    uint64_t wakes;
    if (read(loop->wake, &wakes, sizeof wakes) < 0 && errno != EAGAIN)
        CHECK_UNREACHABLE();
    loop->woken = false;
    for (size_t k = 0; k < loop->list.len; k++)
        if (loop->list.items[k]->resumes) {
            loop->list.items[k]->resumes = false;
            connection_serve(loop->list.items[k]);
        }
    loop->handler.woken(loop->handler.context);
}

/* Collects the connections over rings. Returns 0 if there are none, or too many to poll. */
static size_t loop_rings(const struct loop *loop, struct connection **ret)
{
    size_t count = 0;
    for (size_t i = 0; i < loop->list.len; i++) {
        struct connection *connection = loop->list.items[i];
        if (!connection->wire->ops->is_ready || connection->dead || connection->held)
            continue;
        if (count == LOOP_SPIN_RINGS_MAX)
            return 0;
        ret[count++] = connection;
    }
    return count;
}

/* Polls the rings for a while, and serves those that have messages. Returns false if the loop must call
 * poll. */
static bool loop_spin(struct loop *loop)
{
    struct connection *rings[LOOP_SPIN_RINGS_MAX];
    int64_t now_ns = flow_now_ns(), end_ns = now_ns + SPIN_NS;
    size_t count = 0;
    if (loop->busy && loop->spun < LOOP_SPIN_TURNS_MAX && spin_may(&loop->spin, now_ns))
        count = loop_rings(loop, rings);
    bool found = false;
    for (size_t i = 0; i < count; i++)
        rings[i]->wire->ops->doze(rings[i]->wire, false);
    while (count > 0 && !found && !loop->woken && spin_lasts(end_ns))
        for (size_t i = 0; i < count && !found; i++)
            found = rings[i]->wire->ops->is_ready(rings[i]->wire);
    size_t served = 0;
    for (size_t i = 0; i < count; i++)
        if (!rings[i]->wire->ops->doze(rings[i]->wire, true)) {
            connection_serve(rings[i]);
            served++;
        }
    return served > 0;
}

/* Serves connections for which UCX has events. Returns how long to wait for more, in ms. */
static int loop_serve_hub(struct loop *loop, int timeout_ms)
{
    struct wire *wire;
    bool rests = !loop->hub || wire_hub_turn(loop->hub);
    if (!rests && timeout_ms > WIRE_HUB_AGAIN_MS)
        timeout_ms = WIRE_HUB_AGAIN_MS;
    while (loop->hub && (wire = wire_hub_next(loop->hub))) {
        connection_serve(wire->owner);
        timeout_ms = 0;
    }
    return timeout_ms;
}

/* Waits for events and handles them. */
static void loop_poll(struct loop *loop, int timeout_ms)
{
    struct epoll_event events[LOOP_EVENTS];
    bool served = loop->hub != NULL;
    if (served) {
        int left_ms = loop_serve_hub(loop, timeout_ms);
        served = left_ms == 0 && timeout_ms > 0;
        timeout_ms = left_ms;
    }
    int count = epoll_wait(loop->epoll, events, LOOP_EVENTS, timeout_ms);
    for (int i = 0; i < count; i++) {
        void *what = events[i].data.ptr;
        if (what == &loop->stop_fd) {
            loop->stop = true;
        } else if (what == &loop->hub) {
            continue; /* served before the next wait */
        } else if (what == &loop->listener) {
            loop_take_guests(loop);
        } else if (what == &loop->wake) {
            loop_woken(loop);
        } else {
            struct connection *connection = what;
            if (events[i].events & EPOLLOUT)
                connection_flush(connection);
            if (connection->held && events[i].events & (EPOLLHUP | EPOLLERR))
                loop_kill(loop, connection);
            else if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                connection_serve(connection);
        }
    }
    loop->busy = count > 0 || served;
}

static void loop_turn(struct loop *loop, int timeout_ms)
{
    if (loop_spin(loop)) {
        loop->spun++;
    } else {
        loop->spun = 0;
        loop_poll(loop, timeout_ms);
    }
    loop_flush(loop);
    loop_bury(loop);
    loop_flush(loop);
}

void loop_set_tick(struct loop *loop, int64_t every_ns)
{
    loop->every_ns = every_ns;
}

void loop_run(struct loop *loop)
{
    loop->ticked_ns = flow_now_ns();
    while (!loop->stop) {
        int64_t left_ms = (loop->ticked_ns + loop->every_ns - flow_now_ns()) / NS_PER_MS;
        loop_turn(loop, left_ms > 0 ? (int)left_ms : 0);
        if (flow_now_ns() >= loop->ticked_ns + loop->every_ns) {
            loop->ticked_ns = flow_now_ns();
            loop->handler.tick(loop->handler.context);
            loop_flush(loop);
        }
    }
}

void loop_wake(struct loop *loop)
{
    uint64_t one = 1;
    loop->woken = true;
    if (write(loop->wake, &one, sizeof one) < 0)
        CHECK(errno == EAGAIN);
}

void loop_stop(struct loop *loop)
{
    loop->stop = true;
    loop_wake(loop);
}
