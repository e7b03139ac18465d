/* loop.h - the one thread of a process that holds its connections; head and worker alike.
 *
 *     struct loop *loop; loop_new(&handler, &loop, &error);
 *     loop_listen(loop, address, ...); loop_add(loop, wire, peer);
 *     loop_run(loop);                       // until loop_stop
 *
 * Entries that are sent during one turn leave together at its end. Functions are for the loop's own thread,
 * but loop_wake and loop_stop, which any thread may call.
 */
#ifndef PHX_FLOW_WIRE_LOOP_H
#define PHX_FLOW_WIRE_LOOP_H

#include "flow/wire/hub.h"
#include "flow/wire/wire.h"

struct loop;
struct loop_handler {
    void *context;
    void (*opened)(void *context, uint64_t peer); /* a connection came; its number is a guest's */
    void (*entry)(void *context, uint64_t peer, const struct flow_entry *entry, struct str tail);
    void (*closed)(void *context, uint64_t peer);
    void (*woken)(void *context);
    void (*tick)(void *context); /* about once a second, or as loop_set_tick says */
    bool holds_guests;           /* after its first entry a guest is not read until loop_bind */
    /* Chunks that may wait for a peer other than a host, each of WIRE_READ_MAX bytes or a tensor; one that
     * reads too slowly is closed. 0: any number. */
    uint32_t backlog_max;
};

int loop_new(const struct loop_handler *handler, struct loop **ret_loop, struct error *error);
void loop_free(struct loop *loop);
/* Takes over the hub, by which connections move to UCX; NULL: none does. Before the first connection. */
void loop_use(struct loop *loop, struct wire_hub *hub);
/* Takes over the descriptor. */
void loop_listen(struct loop *loop, int fd);
/* Connects to a peer and adds it. */
int loop_connect(struct loop *loop, const char *address, uint64_t peer, struct error *error);
/* Takes over the wire. A peer whose connection has ended may be added again, also before `closed` is called
 * for the old one. */
void loop_add(struct loop *loop, struct wire *wire, uint64_t peer);
bool loop_has(const struct loop *loop, uint64_t peer);
/* Nothing happens where there is no such peer. */
void loop_send(struct loop *loop, uint64_t peer, const struct flow_entry *entry, struct str tail,
               struct tensor *payload);
void loop_close(struct loop *loop, uint64_t peer); /* all its connections; `closed` is called later */
/* The guest is `as` from now on. A peer may have several connections: it is sent to by the oldest one that
 * lives, all are read, and `closed` is called when the last one has ended. */
void loop_bind(struct loop *loop, uint64_t guest, uint64_t as);
/* The peer has shown that it is a worker of this runtime: its connection may move to UCX. loop_bind as a
 * host says so too. */
void loop_trust(struct loop *loop, uint64_t peer);
void loop_stop_at(struct loop *loop, int fd); /* when fd is readable; -1: never */
void loop_set_tick(struct loop *loop, int64_t every_ns);
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
void loop_wake(struct loop *loop);

#endif
