/* Connecting and closing; the connection's thread. */
#include "flow/client/client.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "flow/wire/token.h"

enum { CLIENT_EVENTS = 64, CLIENT_SEEK_US = 20000 };

int client_error(struct phx_error *error, int code, const char *format, ...)
{
    if (!error)
        return code;
    error->code = code;
    error->rank = -1;
    va_list args;
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    return code;
}

int client_error_of(struct phx_error *error, const struct error *from)
{
    int code = PHX_ERROR_INVALID;
    if (from->code == ERROR_IO || from->code == ERROR_UNAVAILABLE)
        code = PHX_ERROR_IO;
    return client_error(error, code, "%.240s", from->text);
}

static void *client_main(void *arg)
{
    phx_flow *flow = arg;
    struct epoll_event events[CLIENT_EVENTS];
    bool stop = false, soon = false, suspects = false, seeks = false;
    while (!stop) {
        struct timespec wait = {.tv_nsec = CLIENT_FLUSH_US * 1000};
        if (!soon)
            wait = (struct timespec){.tv_sec = 1};
        if (seeks)
            wait = (struct timespec){.tv_nsec = CLIENT_SEEK_US * 1000};
        bool timed = soon || suspects || seeks;
        int count = epoll_pwait2(flow->epoll, events, CLIENT_EVENTS, timed ? &wait : NULL, NULL);
        pthread_mutex_lock(&flow->reading);
        bool flush = soon; /* entries held back since the last turn have waited long enough */
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == &flow->wake) {
                uint64_t wakes;
                if (read(flow->wake, &wakes, sizeof wakes) < 0)
                    CHECK(errno == EAGAIN);
                continue;
            }
            struct client_connection *connection = events[i].data.ptr;
            if (events[i].events & EPOLLOUT)
                client_write_rest(flow, connection);
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                client_read(flow, connection);
            if (connection->wire->ops->is_ready) /* a ring becomes readable also when it has space again */
                client_write_rest(flow, connection);
        }
        pthread_mutex_unlock(&flow->reading);
        pthread_mutex_lock(&flow->mutex);
        if (flush)
            client_flush(flow);
        soon = flow->unflushed;
        suspects = client_judge_suspects(flow);
        stop = flow->stop || flow->broken;
        seeks = flow->away;
        pthread_mutex_unlock(&flow->mutex);
        if (seeks && !stop)
            client_seek_head(flow);
    }
    return NULL;
}

static void client_free(phx_flow *flow)
{
    flow->head.dead = true; /* no more messages are sent */
    for (size_t i = flow->value_list.len; i-- > 0; i = client_walk_on(flow, i))
        client_lineage_drop(flow, flow->value_list.items[i]);
    for (size_t i = 0; i < flow->connections.len; i++) {
        flow_wire_free(flow->connections.items[i]->wire);
        if (flow->connections.items[i] != &flow->head)
            mem_free(flow->connections.items[i]);
    }
    for (size_t i = 0; i < flow->hosts.len; i++)
        mem_free(flow->hosts.items[i]);
    for (size_t i = 0; i < flow->meshes.len; i++) {
        client_places_unref(flow->meshes.items[i]->places);
        mem_free(flow->meshes.items[i]);
    }
    while (flow->value_list.len > 0)
        client_value_free(flow, vec_last(&flow->value_list));
    client_functions_free(flow);
    vec_done(&flow->connections);
    vec_done(&flow->programs);
    buf_done(&flow->hello_tail);
    mem_free(flow->address);
    vec_done(&flow->hosts);
    vec_done(&flow->meshes);
    vec_done(&flow->value_list);
    u64_map_done(&flow->mesh_index);
    u64_map_done(&flow->values);
    u64_map_done(&flow->names);
    buf_done(&flow->releases);
    if (flow->wake >= 0)
        close(flow->wake);
    if (flow->epoll >= 0)
        close(flow->epoll);
    pthread_cond_destroy(&flow->moved);
    pthread_mutex_destroy(&flow->mutex);
    pthread_mutex_destroy(&flow->reading);
    spin_done(&flow->spin);
    mem_free(flow);
}

static int client_start(phx_flow *flow, struct phx_error *error)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&flow->thread, NULL, client_main, flow);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0)
        return client_error(error, PHX_ERROR_MEMORY, "starting the connection's thread failed");
    flow->started = true;
    return 0;
}

static int client_hello(phx_flow *flow, const struct phx_flow_options *options,
                        const struct flow_token *token, struct phx_error *error)
{
    struct buf tail BUF_CLEANUP = {0};
    const char *name = options && options->name ? options->name : program_invocation_short_name;
    struct flow_entry hello = {.kind = ENTRY_HELLO_CLIENT, .node = 0x80000000u};
    hello.count =
        options && options->weight ? (uint16_t)(options->weight < 65535 ? options->weight : 65535) : 1;
    hello.node += (uint32_t)(options ? options->priority : 0);
    buf_add_str(&tail, str_from(name));
    flow_token_sign(token, &hello, &tail);
    pthread_mutex_lock(&flow->mutex);
    flow->hello = hello;
    buf_add_str(&flow->hello_tail, buf_str(&tail));
    client_send_entry(flow, &flow->head, &hello, buf_str(&tail), true);
    while (flow->id == 0 && !flow->refused && client_wait(flow, INT64_MAX))
        ;
    bool known = flow->id != 0, refused = flow->refused;
    pthread_mutex_unlock(&flow->mutex);
    if (refused)
        return client_error(error, PHX_ERROR_INVALID,
                            token->set ? "the head refuses the token: it is another head's, or out of date"
                                       : "the head wants a token: set PHX_FLOW_TOKEN_FILE or PHX_FLOW_TOKEN");
    return known ? 0 : client_error(error, PHX_ERROR_IO, "the head has refused the connection");
}

int phx_flow_connect(const char *address, const struct phx_flow_options *options, phx_flow **ret_flow,
                     struct phx_error *error)
{
    struct error why;
    struct wire *wire;
    struct flow_token token;
    if (flow_token_find(NULL, address, &token, &why) < 0 || flow_wire_connect(address, &wire, &why) < 0)
        return client_error_of(error, &why);
    phx_flow *flow = mem_alloc(sizeof *flow);
    pthread_mutex_init(&flow->mutex, NULL);
    pthread_mutex_init(&flow->reading, NULL);
    spin_init(&flow->spin);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&flow->moved, &monotonic);
    pthread_condattr_destroy(&monotonic);
    flow->head = (struct client_connection){.wire = wire, .host = UINT32_MAX};
    vec_push(&flow->connections, &flow->head);
    flow->epoch = 1;
    flow->address = mem_alloc(strlen(address) + 1);
    memcpy(flow->address, address, strlen(address));
    flow->reconnect_ns =
        options && options->head_grace_ms ? options->head_grace_ms * INT64_C(1000000) : CLIENT_RECONNECT_NS;
    flow->epoll = epoll_create1(EPOLL_CLOEXEC);
    flow->rerun_launches = options ? options->rerun_launches : 0;
    if (flow->rerun_launches > CLIENT_RERUNS_MAX)
        flow->rerun_launches = CLIENT_RERUNS_MAX;
    flow->rerun_bytes = options && options->rerun_bytes ? options->rerun_bytes : CLIENT_RERUN_BYTES;
    flow->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &flow->wake};
    struct epoll_event head = {.events = EPOLLIN, .data.ptr = &flow->head};
    int rc = 0;
    if (flow->epoll < 0 || flow->wake < 0 || epoll_ctl(flow->epoll, EPOLL_CTL_ADD, flow->wake, &event) < 0 ||
        epoll_ctl(flow->epoll, EPOLL_CTL_ADD, wire->fd, &head) < 0)
        rc = client_error(error, PHX_ERROR_IO, "making the connection's descriptors failed");
    if (rc == 0)
        rc = client_start(flow, error);
    if (rc == 0)
        rc = client_hello(flow, options, &token, error);
    if (rc < 0) {
        phx_flow_close(flow);
        return rc;
    }
    *ret_flow = flow;
    return 0;
}

void phx_flow_close(phx_flow *flow)
{
    if (!flow)
        return;
    if (flow->started) {
        pthread_mutex_lock(&flow->mutex);
        client_flush_releases(flow);
        client_flush(flow);
        flow->stop = true;
        uint64_t one = 1;
        if (write(flow->wake, &one, sizeof one) < 0)
            CHECK(errno == EAGAIN);
        pthread_mutex_unlock(&flow->mutex);
        pthread_join(flow->thread, NULL);
    }
    client_free(flow);
}
