/* proxy.h - a way to one etcd member that a test can hold and break: transactions wait at a gate before they
 * are passed on, and the answer of one may be lost although the member has carried it out. Everything else
 * passes, unless the proxy denies what etcd 3.5.28 lets its user root alone do. Included by one test program
 * at a time.
 *
 *     struct proxy proxy;
 *     proxy_start(&proxy, members.client_ports[0]);
 *     ... options.endpoints = proxy.endpoint ...
 *     gate_shut(&proxy.gate);                    // transactions wait, also those whose sender gives up
 *     proxy_lose_answer(&proxy, false);          // the next transaction is carried out, and nobody is told
 *     proxy_stop(&proxy);                        // after its clients have gone
 */
#ifndef PHX_TESTS_HOST_STORE_ETCD_PROXY_H
#define PHX_TESTS_HOST_STORE_ETCD_PROXY_H

#include <poll.h>
#include <stdatomic.h>

#include "host/store/etcd/members.h"
#include "host/store/gate.h"

enum { PROXY_WAYS_MAX = 256 };

struct proxy_way {
    struct proxy *proxy;
    pthread_t thread;
    int client, member;
    bool asked; /* a request was passed on, and nothing of its answer has come */
    bool loses; /* that answer */
};

struct proxy {
    struct gate gate;
    char endpoint[48];
    uint16_t port; /* the member's */
    int listener;
    atomic_bool loses;      /* the answer of the next transaction */
    atomic_bool shuts_then; /* the gate, when that was lost */
    atomic_bool denies;     /* the data's size, and compactions */
    pthread_t thread;
    struct proxy_way ways[PROXY_WAYS_MAX];
    int count;
};

/* The length of the request at the front; 0: it is not whole. */
static inline size_t proxy_whole(struct str bytes)
{
    static const char name[] = "\r\nContent-Length: ";
    const char *end = memmem(bytes.data, bytes.len, "\r\n\r\n", 4);
    if (!end)
        return 0;
    size_t head = (size_t)(end - bytes.data) + 4;
    const char *line = memmem(bytes.data, head, name, strlen(name));
    size_t len = head + (line ? strtoul(line + strlen(name), NULL, 10) : 0);
    return len <= bytes.len ? len : 0;
}

static inline void proxy_pass(int fd, struct str bytes)
{
    while (bytes.len > 0) {
        ssize_t len = send(fd, bytes.data, bytes.len, MSG_NOSIGNAL);
        if (len <= 0)
            return; /* its end has gone */
        bytes.data += len;
        bytes.len -= (size_t)len;
    }
}

/* Answers as etcd 3.5.30 does where the user is not root. */
static inline void proxy_deny(struct proxy_way *way)
{
    static const char body[] = "{\"code\":7,\"message\":\"etcdserver: permission denied\"}";
    char answer[256];
    int len = snprintf(answer, sizeof answer,
                       "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: "
                       "%zu\r\n\r\n%s",
                       strlen(body), body);
    proxy_pass(way->client, (struct str){answer, (size_t)len});
}

static inline bool proxy_is_for_root(struct str request)
{
    return str_starts(request, STR("POST /v3/maintenance/status ")) ||
           str_starts(request, STR("POST /v3/kv/compaction "));
}

static inline void proxy_ask(struct proxy_way *way, struct buf *requests)
{
    struct proxy *proxy = way->proxy;
    size_t len;
    while ((len = proxy_whole(buf_str(requests))) > 0) {
        if (str_starts(buf_str(requests), STR("POST /v3/kv/txn "))) {
            gate_pass(&proxy->gate);
            way->loses = atomic_exchange(&proxy->loses, false);
        }
        if (atomic_load(&proxy->denies) && proxy_is_for_root(buf_str(requests))) {
            proxy_deny(way);
        } else {
            way->asked = true;
            proxy_pass(way->member, (struct str){requests->data, len});
        }
        buf_drop_front(requests, len);
    }
}

/* Returns whether the way goes on. */
static inline bool proxy_answer(struct proxy_way *way, struct str bytes)
{
    way->asked = false;
    if (!way->loses) {
        proxy_pass(way->client, bytes);
        return true;
    }
    if (atomic_exchange(&way->proxy->shuts_then, false))
        gate_shut(&way->proxy->gate);
    return false;
}

/* A request whose sender has gone is carried out all the same. */
static inline void *proxy_serve(void *context)
{
    struct proxy_way *way = context;
    struct buf requests = {0};
    char room[65536];
    bool gone = false;
    while (!gone || way->asked) {
        struct pollfd fds[] = {{gone ? -1 : way->client, POLLIN, 0}, {way->member, POLLIN, 0}};
        (void)poll(fds, 2, -1);
        if (fds[1].revents) {
            ssize_t len = recv(way->member, room, sizeof room, 0);
            if (len <= 0 || !proxy_answer(way, (struct str){room, (size_t)len}))
                break;
        }
        if (fds[0].revents) {
            ssize_t len = recv(way->client, room, sizeof room, 0);
            gone = len <= 0;
            if (!gone)
                buf_add(&requests, room, (size_t)len);
            proxy_ask(way, &requests);
        }
    }
    shutdown(way->client, SHUT_RDWR);
    shutdown(way->member, SHUT_RDWR);
    buf_done(&requests);
    return NULL;
}

static inline void *proxy_accept(void *context)
{
    struct proxy *proxy = context;
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(proxy->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int client;
    while ((client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        CHECK(proxy->count < PROXY_WAYS_MAX);
        struct proxy_way *way = &proxy->ways[proxy->count++];
        *way = (struct proxy_way){proxy, 0,    client, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                                  false, false};
        if (connect(way->member, (struct sockaddr *)&at, sizeof at) < 0)
            shutdown(client, SHUT_RDWR);
        CHECK(pthread_create(&way->thread, NULL, proxy_serve, way) == 0);
    }
    return NULL;
}

static inline void proxy_start(struct proxy *proxy, uint16_t port)
{
    *proxy = (struct proxy){.gate = GATE_OPEN, .port = port};
    snprintf(proxy->endpoint, sizeof proxy->endpoint, "http://127.0.0.1:%u", members_port(&proxy->listener));
    assert_int_equal(listen(proxy->listener, 16), 0);
    CHECK(pthread_create(&proxy->thread, NULL, proxy_accept, proxy) == 0);
}

static inline void proxy_stop(struct proxy *proxy)
{
    shutdown(proxy->listener, SHUT_RDWR);
    pthread_join(proxy->thread, NULL);
    close(proxy->listener);
    gate_open(&proxy->gate);
    for (int i = 0; i < proxy->count; i++) {
        shutdown(proxy->ways[i].client, SHUT_RDWR);
        shutdown(proxy->ways[i].member, SHUT_RDWR);
        pthread_join(proxy->ways[i].thread, NULL);
        close(proxy->ways[i].client);
        close(proxy->ways[i].member);
    }
}

/* `shuts`: further transactions wait at the gate when the answer was lost. */
static inline void proxy_lose_answer(struct proxy *proxy, bool shuts)
{
    atomic_store(&proxy->shuts_then, shuts);
    atomic_store(&proxy->loses, true);
}

#endif
