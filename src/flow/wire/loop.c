/* Connections of one process: epoll. */
#include "flow/wire/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/map.h"
#include "base/units.h"
#include "flow/island/machine.h"

enum { LOOP_EVENTS = 64 };

struct link {
    struct loop *loop;
    struct wire *wire;
    uint64_t peer;
    bool dead, held, dirty, writing;
};

struct loop {
    struct loop_handler handler;
    int epoll, wake, listener, stop_fd;
    struct u64_map links; /* by peer */
    VEC(struct link *) list;
    VEC(struct link *) dirty;
    uint32_t guests;
    bool deaths;
    _Atomic bool stop;
};

static int64_t loop_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

int loop_new(const struct loop_handler *handler, struct loop **ret_loop, struct error *error)
{
    struct loop *loop = mem_alloc(sizeof *loop);
    loop->handler = *handler;
    loop->listener = -1;
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
    vec_done(&loop->list);
    vec_done(&loop->dirty);
    u64_map_done(&loop->links);
    if (loop->listener >= 0)
        close(loop->listener);
    if (loop->wake >= 0)
        close(loop->wake);
    if (loop->epoll >= 0)
        close(loop->epoll);
    mem_free(loop);
}

void loop_listen(struct loop *loop, int fd)
{
    loop->listener = fd;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &loop->listener};
    CHECK(epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) == 0);
}

void loop_add(struct loop *loop, struct wire *wire, uint64_t peer)
{
    struct link *link = mem_alloc(sizeof *link);
    link->loop = loop;
    link->wire = wire;
    link->peer = peer;
    vec_push(&loop->list, link);
    CHECK(u64_map_put(&loop->links, peer, link) == NULL);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = link};
    CHECK(epoll_ctl(loop->epoll, EPOLL_CTL_ADD, wire->fd, &event) == 0);
}

void loop_stop_at(struct loop *loop, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &loop->stop_fd};
    if (fd >= 0)
        CHECK(epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) == 0);
}

static struct link *loop_link(const struct loop *loop, uint64_t peer)
{
    struct link *link = u64_map_get(&loop->links, peer);
    return link && !link->dead ? link : NULL;
}

bool loop_has(const struct loop *loop, uint64_t peer)
{
    return loop_link(loop, peer) != NULL;
}

static void loop_kill(struct loop *loop, struct link *link)
{
    link->dead = true;
    loop->deaths = true;
}

static void link_watch(struct link *link, bool writing, bool held)
{
    if (link->dead || (writing == link->writing && held == link->held))
        return;
    link->writing = writing;
    link->held = held;
    struct epoll_event event = {.data.ptr = link};
    event.events = (held ? 0 : EPOLLIN) | (writing ? EPOLLOUT : 0);
    CHECK(epoll_ctl(link->loop->epoll, EPOLL_CTL_MOD, link->wire->fd, &event) == 0);
}

static void link_flush(struct link *link)
{
    int rc = link->dead ? 0 : flow_wire_flush(link->wire);
    if (rc < 0)
        loop_kill(link->loop, link);
    else
        link_watch(link, rc > 0, link->held);
}

void loop_send(struct loop *loop, uint64_t peer, const struct flow_entry *entry, struct str tail,
               struct tensor *payload)
{
    struct link *link = loop_link(loop, peer);
    if (!link)
        return;
    flow_wire_put(link->wire, entry, tail, payload);
    if (!link->dirty)
        vec_push(&loop->dirty, link);
    link->dirty = true;
}

void loop_close(struct loop *loop, uint64_t peer)
{
    struct link *link = loop_link(loop, peer);
    if (link)
        loop_kill(loop, link);
}

static bool link_entry(void *context, const struct flow_entry *entry, struct str tail)
{
    struct link *link = context;
    struct loop *loop = link->loop;
    if (loop->handler.holds_guests && link->peer == peer_guest((uint32_t)link->peer))
        link_watch(link, link->writing, true);
    loop->handler.entry(loop->handler.context, link->peer, entry, tail);
    return !link->dead && !link->held;
}

static void link_read(struct link *link)
{
    if (!link->dead && !link->held && flow_wire_read(link->wire, link_entry, link, NULL) < 0)
        loop_kill(link->loop, link);
}

void loop_bind(struct loop *loop, uint64_t guest, uint64_t as)
{
    struct link *link = loop_link(loop, guest);
    if (!link)
        return;
    struct link *old = u64_map_get(&loop->links, as);
    if (old) { /* a peer that comes again takes the place of its old connection */
        u64_map_remove(&loop->links, as);
        old->peer = peer_guest(++loop->guests);
        u64_map_put(&loop->links, old->peer, old);
        loop_kill(loop, old);
    }
    u64_map_remove(&loop->links, guest);
    link->peer = as;
    u64_map_put(&loop->links, as, link);
    link_watch(link, link->writing, false);
    loop_wake(loop); /* what it has sent behind its hello is read in the next turn */
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
            struct link *link = loop->list.items[i];
            if (!link->dead)
                continue;
            vec_remove(&loop->list, i);
            i--;
            u64_map_remove(&loop->links, link->peer);
            for (size_t k = 0; k < loop->dirty.len; k++)
                if (loop->dirty.items[k] == link)
                    vec_remove(&loop->dirty, k);
            uint64_t peer = link->peer;
            flow_wire_free(link->wire);
            mem_free(link);
            loop->handler.closed(loop->handler.context, peer);
        }
    }
}

static void loop_flush(struct loop *loop)
{
    for (size_t i = 0; i < loop->dirty.len; i++) {
        loop->dirty.items[i]->dirty = false;
        link_flush(loop->dirty.items[i]);
    }
    vec_clear(&loop->dirty);
}

static void loop_turn(struct loop *loop, int timeout_ms)
{
    struct epoll_event events[LOOP_EVENTS];
    int count = epoll_wait(loop->epoll, events, LOOP_EVENTS, timeout_ms);
    for (int i = 0; i < count; i++) {
        void *what = events[i].data.ptr;
        if (what == &loop->stop_fd) {
            loop->stop = true;
        } else if (what == &loop->listener) {
            loop_take_guests(loop);
        } else if (what == &loop->wake) {
            uint64_t wakes;
            if (read(loop->wake, &wakes, sizeof wakes) < 0 && errno != EAGAIN)
                CHECK_UNREACHABLE();
            for (size_t k = 0; k < loop->list.len; k++)
                if (loop->list.items[k]->wire->in.len > loop->list.items[k]->wire->in_used)
                    link_read(loop->list.items[k]);
            loop->handler.woken(loop->handler.context);
        } else {
            struct link *link = what;
            if (events[i].events & EPOLLOUT)
                link_flush(link);
            if (link->held && events[i].events & (EPOLLHUP | EPOLLERR))
                loop_kill(loop, link);
            else if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                link_read(link);
        }
    }
    loop_flush(loop);
    loop_bury(loop);
    loop_flush(loop);
}

void loop_run(struct loop *loop)
{
    int64_t tick_ns = loop_now_ns() + NS_PER_SECOND;
    while (!loop->stop) {
        int64_t left_ms = (tick_ns - loop_now_ns()) / NS_PER_MS;
        loop_turn(loop, left_ms > 0 ? (int)left_ms : 0);
        if (loop_now_ns() >= tick_ns) {
            tick_ns = loop_now_ns() + NS_PER_SECOND;
            loop->handler.tick(loop->handler.context);
            loop_flush(loop);
        }
    }
}

void loop_wake(struct loop *loop)
{
    uint64_t one = 1;
    if (write(loop->wake, &one, sizeof one) < 0)
        CHECK(errno == EAGAIN);
}

void loop_stop(struct loop *loop)
{
    loop->stop = true;
    loop_wake(loop);
}
