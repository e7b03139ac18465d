#include "host/api/relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/units.h"
#include "host/api/carry.h"

enum { EVENTS_A_TURN = 64, NEWS_A_TURN = 64, LOOK_AGAIN_MS = 250, SHAKING_NICE = 10 };
#define SHAKE_LIMIT_NS (20 * NS_PER_SECOND)
#define END_LIMIT_NS   (2 * NS_PER_SECOND)

struct relay_thread {
    struct relay *relay;
    pthread_t thread;
    int epoll_fd, wake_fd;
    bool shakes;                /* the shaking thread; otherwise the carrying thread */
    bool stopping;              /* under the relay's mutex */
    struct list_node carries;   /* the thread's connections */
    struct list_node dead;      /* the thread's; closed in this turn, but an event may still refer to them */
    struct list_node newcomers; /* under the relay's mutex */
    char chunk[CARRY_CHUNK_BYTES];
};

struct relay {
    uv_async_t async;
    struct api_tls *tls;
    struct relay_hooks hooks;
    struct relay_limits limits;
    struct crowd crowd;
    uint32_t shaking, open;
    uv_close_cb closed;
    void *closed_context;
    struct relay_thread shaker, carrier;
    pthread_mutex_t mutex;
    struct list_node news; /* connections that have become ready or have ended */
};

/* --- between threads ---------------------------------------------------------------------------- */

static void relay_wake(const struct relay_thread *thread)
{
    uint64_t one = 1;
    ssize_t count = write(thread->wake_fd, &one, sizeof one);
    CHECK(count == sizeof one || errno == EAGAIN);
}

static void relay_give(struct relay_thread *thread, struct carry *carry)
{
    pthread_mutex_lock(&thread->relay->mutex);
    list_append(&thread->newcomers, &carry->node);
    pthread_mutex_unlock(&thread->relay->mutex);
    relay_wake(thread);
}

/* Reports a connection's news to the loop. Once it has ended, the loop owns the connection. */
static void relay_tell(struct carry *carry, bool gone)
{
    struct relay *relay = carry->relay;
    pthread_mutex_lock(&relay->mutex);
    carry->ready = carry->ready || !gone;
    carry->gone = gone;
    if (list_empty(&carry->news))
        list_append(&relay->news, &carry->news);
    pthread_mutex_unlock(&relay->mutex);
    uv_async_send(&relay->async);
}

/* --- threads ------------------------------------------------------------------------------------ */

/* Sets the events to wait for. Returns false if the kernel lacks memory, or a watch
 * (fs.epoll.max_user_watches). */
static bool relay_wait_for(struct relay_thread *thread, struct carry_end *end, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = end};
    if (end->fd < 0 || end->hung || end->events == events)
        return true;
    if (epoll_ctl(thread->epoll_fd, end->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, end->fd, &event) < 0)
        return false;
    end->events = events;
    return true;
}

static void relay_forget(struct relay_thread *thread, struct carry_end *end)
{
    if (end->events)
        CHECK(epoll_ctl(thread->epoll_fd, EPOLL_CTL_DEL, end->fd, NULL) == 0);
    end->events = 0;
}

static void relay_end(struct relay_thread *thread, struct carry *carry)
{
    relay_forget(thread, &carry->outer);
    relay_forget(thread, &carry->inner);
    carry_close(carry, thread->relay->tls);
    list_remove(&carry->node);
    list_append(&thread->dead, &carry->node);
}

static int64_t relay_now_ns(void)
{
    return (int64_t)uv_hrtime();
}

static void relay_go_on(struct relay_thread *thread, struct carry *carry)
{
    enum carry_stage before = carry->stage;
    if (!carry_go_on(carry, thread->relay->tls, thread->chunk)) {
        relay_end(thread, carry);
        return;
    }
    if (thread->shakes && carry->stage >= CARRY_FLOWS) {
        relay_forget(thread, &carry->outer);
        list_remove(&carry->node);
        relay_tell(carry, false);
        relay_give(&thread->relay->carrier, carry);
        return;
    }
    if (before < CARRY_PARTS && carry->stage >= CARRY_PARTS) {
        relay_forget(thread, &carry->inner);
        close(carry->inner.fd);
        carry->inner.fd = -1;
    }
    if (before != carry->stage && carry->stage >= CARRY_PARTS) {
        carry->since_ns = relay_now_ns();
        list_remove(&carry->node);
        list_append(&thread->carries, &carry->node);
    }
    /* An end that waits for nothing is watched edge-triggered: otherwise it would be reported again and
     * again. */
    uint32_t outer = carry_outer_events(carry), inner = carry_inner_events(carry);
    if (!relay_wait_for(thread, &carry->outer, outer ? outer : EPOLLRDHUP | EPOLLET) ||
        !relay_wait_for(thread, &carry->inner, inner ? inner : EPOLLRDHUP | EPOLLET))
        relay_end(thread, carry);
}

static void relay_on_event(struct relay_thread *thread, struct carry_end *end, uint32_t events)
{
    struct carry *carry = end->carry;
    if (end->fd < 0) /* the end was closed in this turn */
        return;
    if (end == &carry->outer && events & (EPOLLERR | EPOLLHUP) && carry->stage >= CARRY_FLOWS) {
        relay_end(thread, carry);
        return;
    }
    if (end == &carry->inner && events & (EPOLLERR | EPOLLHUP)) {
        relay_forget(thread, end);
        end->hung = true;
        carry->since_ns = relay_now_ns();
    }
    relay_go_on(thread, carry);
}

static void relay_take_newcomers(struct relay_thread *thread)
{
    struct list_node taken;
    uint64_t count;
    list_init(&taken);
    (void)!read(thread->wake_fd, &count, sizeof count);
    pthread_mutex_lock(&thread->relay->mutex);
    list_for_each_safe(node, after, &thread->newcomers)
    {
        list_remove(node);
        list_append(&taken, node);
    }
    pthread_mutex_unlock(&thread->relay->mutex);
    list_for_each_safe(node, after, &taken)
    {
        struct carry *carry = container_of(node, struct carry, node);
        list_remove(&carry->node);
        list_append(&thread->carries, &carry->node);
        carry->since_ns = relay_now_ns();
        relay_go_on(thread, carry);
    }
}

/* Returns how long a connection may stay in its stage. Where there is no limit, the server's limits apply. */
static int64_t relay_limit_ns(const struct relay_thread *thread, const struct carry *carry)
{
    if (thread->shakes)
        return SHAKE_LIMIT_NS;
    if (carry->stage == CARRY_ENDS)
        return END_LIMIT_NS;
    bool rests = carry->inner.hung || carry->stage == CARRY_PARTS;
    return rests ? thread->relay->limits.rest_ms * NS_PER_MS : INT64_MAX;
}

/* Ends connections that exceed the time limit of their stage: handshake, rest of an answer, end. */
static void relay_end_late(struct relay_thread *thread)
{
    int64_t now_ns = relay_now_ns();
    list_for_each_safe(node, after, &thread->carries)
    {
        struct carry *carry = container_of(node, struct carry, node);
        if (now_ns - carry->since_ns >= relay_limit_ns(thread, carry))
            relay_end(thread, carry);
        else if (thread->shakes)
            break; /* the others are younger */
    }
}

static void relay_bury(struct relay_thread *thread)
{
    list_for_each_safe(node, after, &thread->dead)
    {
        struct carry *carry = container_of(node, struct carry, node);
        list_remove(&carry->node);
        relay_tell(carry, true);
    }
}

static bool relay_stops(const struct relay_thread *thread)
{
    pthread_mutex_lock(&thread->relay->mutex);
    bool stopping = thread->stopping;
    pthread_mutex_unlock(&thread->relay->mutex);
    return stopping;
}

static void relay_end_all(struct relay_thread *thread)
{
    relay_take_newcomers(thread);
    list_for_each_safe(node, after, &thread->carries)
    {
        struct carry *carry = container_of(node, struct carry, node);
        carry->inner.hung = true; /* the server has ended: send what it left, then end */
        bool owes = carry->stage == CARRY_FLOWS || carry->stage == CARRY_PARTS;
        (void)(owes && carry_go_on(carry, thread->relay->tls, thread->chunk));
        relay_end(thread, carry);
    }
}

static void *relay_run(void *context)
{
    struct relay_thread *thread = context;
    struct epoll_event events[EVENTS_A_TURN];
    int64_t looked_ns = relay_now_ns();
    /* nice(2) acts on this thread alone on Linux */
    if (thread->shakes && !api_tls_connects(thread->relay->tls))
        (void)!nice(SHAKING_NICE);
    while (!relay_stops(thread)) {
        int wait_ms = list_empty(&thread->carries) ? -1 : LOOK_AGAIN_MS;
        int count = epoll_wait(thread->epoll_fd, events, EVENTS_A_TURN, wait_ms);
        CHECK(count >= 0 || errno == EINTR);
        for (int i = 0; i < count; i++)
            if (events[i].data.ptr)
                relay_on_event(thread, events[i].data.ptr, events[i].events);
            else
                relay_take_newcomers(thread);
        if (relay_now_ns() - looked_ns >= LOOK_AGAIN_MS * NS_PER_MS) {
            relay_end_late(thread);
            looked_ns = relay_now_ns();
        }
        relay_bury(thread);
    }
    relay_end_all(thread);
    relay_bury(thread);
    return NULL;
}

static int relay_start(struct relay *relay, struct relay_thread *thread, bool shakes, struct error *error)
{
    struct epoll_event wake = {.events = EPOLLIN};
    sigset_t all, before;
    thread->relay = relay;
    thread->shakes = shakes;
    list_init(&thread->carries);
    list_init(&thread->dead);
    list_init(&thread->newcomers);
    thread->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    thread->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = thread->epoll_fd < 0 || thread->wake_fd < 0 ||
                     epoll_ctl(thread->epoll_fd, EPOLL_CTL_ADD, thread->wake_fd, &wake) < 0
                 ? errno
                 : 0;
    sigfillset(&all); /* the loop's thread handles signals */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (rc == 0)
        rc = pthread_create(&thread->thread, NULL, relay_run, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0)
        return 0;
    if (thread->epoll_fd >= 0)
        close(thread->epoll_fd);
    if (thread->wake_fd >= 0)
        close(thread->wake_fd);
    return error_set_errno(error, rc, "starting a thread for TLS");
}

static void relay_stop(struct relay_thread *thread)
{
    pthread_mutex_lock(&thread->relay->mutex);
    thread->stopping = true;
    pthread_mutex_unlock(&thread->relay->mutex);
    relay_wake(thread);
    CHECK(pthread_join(thread->thread, NULL) == 0);
    close(thread->epoll_fd);
    close(thread->wake_fd);
}

/* --- the loop ----------------------------------------------------------------------------------- */

static void relay_has_shaken(struct relay *relay, struct carry *carry)
{
    if (!carry->shaking)
        return;
    carry->shaking = false;
    relay->crowd.counts[carry->place]--;
    relay->shaking--;
}

/* Takes the next connection with news, or returns NULL. */
static struct carry *relay_next(struct relay *relay, struct relay_client *ret_client, bool *ret_gone)
{
    struct carry *carry = NULL;
    pthread_mutex_lock(&relay->mutex);
    if (!list_empty(&relay->news)) {
        carry = container_of(relay->news.next, struct carry, news);
        list_remove(&carry->news);
        *ret_client = carry->client;
        *ret_gone = carry->gone;
        carry->client.fd = -1; /* the address stays */
        carry->client.chain = (struct api_tls_chain){0};
    }
    pthread_mutex_unlock(&relay->mutex);
    return carry;
}

static void relay_free_carry(struct carry *carry)
{
    mem_free(carry->why);
    mem_free(carry);
}

/* Reports the end of a connection to the hooks, and frees it. */
static void relay_gone(struct relay *relay, struct carry *carry)
{
    const struct relay_hooks *hooks = &relay->hooks;
    struct sockaddr_storage address = carry->client.address;
    struct error late;
    error_set(&late, ERROR_TIMEOUT, "no handshake in time");
    relay->open--;
    if (carry->client.call && !carry->told)
        hooks->failed(hooks->context, carry->client.call, carry->why ? carry->why : &late);
    relay_free_carry(carry);
    hooks->gone(hooks->context, &address);
}

static void relay_on_news(uv_async_t *async)
{
    struct relay *relay = async->data;
    struct relay_client client;
    struct carry *carry = NULL;
    bool gone;
    for (int i = 0; i < NEWS_A_TURN && (carry = relay_next(relay, &client, &gone)); i++) {
        relay_has_shaken(relay, carry);
        if (client.fd >= 0) {
            carry->told = true;
            relay->hooks.ready(relay->hooks.context, &client);
        }
        api_tls_chain_done(&client.chain);
        if (gone)
            relay_gone(relay, carry);
    }
    if (carry) /* more news in the next turn */
        uv_async_send(&relay->async);
}

static void relay_on_closed(uv_handle_t *handle)
{
    struct relay *relay = handle->data;
    uv_close_cb closed = relay->closed;
    handle->data = relay->closed_context;
    if (closed)
        closed(handle);
    pthread_mutex_destroy(&relay->mutex);
    mem_free(relay);
}

static void relay_close_handle(struct relay *relay, uv_close_cb closed, void *context)
{
    relay->closed = closed;
    relay->closed_context = context;
    uv_close((uv_handle_t *)&relay->async, relay_on_closed);
}

int relay_new(uv_loop_t *loop, struct api_tls *tls, const struct relay_hooks *hooks,
              const struct relay_limits *limits, struct relay **ret_relay, struct error *error)
{
    struct relay *relay = mem_alloc(sizeof *relay);
    relay->tls = tls;
    relay->hooks = *hooks;
    relay->limits.shaking = limits->shaking ? limits->shaking : RELAY_SHAKING_MAX;
    relay->limits.shaking_of_address =
        limits->shaking_of_address ? limits->shaking_of_address : RELAY_SHAKING_OF_ADDRESS_MAX;
    relay->limits.rest_ms = limits->rest_ms ? limits->rest_ms : RELAY_REST_MS;
    relay->crowd.seed = uv_hrtime() ^ (uint64_t)(uintptr_t)relay;
    list_init(&relay->news);
    CHECK(pthread_mutex_init(&relay->mutex, NULL) == 0 &&
          uv_async_init(loop, &relay->async, relay_on_news) == 0);
    relay->async.data = relay;
    int rc = relay_start(relay, &relay->carrier, false, error);
    if (rc == 0 && (rc = relay_start(relay, &relay->shaker, true, error)) < 0)
        relay_stop(&relay->carrier);
    if (rc < 0) {
        relay_close_handle(relay, NULL, NULL);
        return rc;
    }
    *ret_relay = relay;
    return 0;
}

/* Returns whether another handshake of the address's place may begin. */
static bool relay_has_room(const struct relay *relay, uint32_t place)
{
    return relay->shaking < relay->limits.shaking &&
           relay->crowd.counts[place] < relay->limits.shaking_of_address;
}

/* Passes a new connection to the shaking thread. */
static void relay_begin(struct relay *relay, int fd, uint32_t place, const struct sockaddr *address,
                        socklen_t len, void *call)
{
    int on = 1;
    struct carry *carry = mem_alloc(sizeof *carry);
    carry->relay = relay;
    carry->outer = (struct carry_end){.carry = carry, .fd = fd};
    carry->inner = (struct carry_end){.carry = carry, .fd = -1};
    carry->client.fd = -1;
    carry->client.call = call;
    memcpy(&carry->client.address, address,
           len < sizeof carry->client.address ? len : sizeof carry->client.address);
    carry->place = place;
    carry->shaking = true;
    list_init(&carry->node);
    list_init(&carry->news);
    relay->crowd.counts[place]++;
    relay->shaking++;
    relay->open++;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    relay_give(&relay->shaker, carry);
}

bool relay_take(struct relay *relay, int fd, const struct sockaddr *address, socklen_t len)
{
    uint32_t place = crowd_place(&relay->crowd, address);
    if (!relay_has_room(relay, place))
        return false;
    relay_begin(relay, fd, place, address, len, NULL);
    return true;
}

bool relay_connect(struct relay *relay, const struct sockaddr_storage *address, void *call)
{
    const struct sockaddr *to = (const struct sockaddr *)address;
    socklen_t len = address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    uint32_t place = crowd_place(&relay->crowd, to);
    CHECK(call && api_tls_connects(relay->tls));
    if (!relay_has_room(relay, place))
        return false;
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    if (connect(fd, to, len) < 0 && errno != EINPROGRESS) {
        close(fd);
        return false;
    }
    relay_begin(relay, fd, place, to, len, call);
    return true;
}

void relay_set_hooks(struct relay *relay, const struct relay_hooks *hooks)
{
    relay->hooks = *hooks;
}

uint32_t relay_open(const struct relay *relay)
{
    return relay->open;
}

uint32_t relay_shaking(const struct relay *relay)
{
    return relay->shaking;
}

void relay_close(struct relay *relay, uv_close_cb closed, void *context)
{
    struct relay_client client;
    struct carry *carry;
    bool gone;
    relay_stop(&relay->shaker); /* first: it passes connections to the other thread */
    relay_stop(&relay->carrier);
    while ((carry = relay_next(relay, &client, &gone))) {
        CHECK(gone);
        if (client.fd >= 0)
            close(client.fd);
        api_tls_chain_done(&client.chain);
        relay_free_carry(carry);
    }
    relay_close_handle(relay, closed, context);
}
