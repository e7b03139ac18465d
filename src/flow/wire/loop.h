/* loop.h - the event loop of a process, one thread that owns its connections; for head and worker.
 *
 *     struct loop *loop; loop_new(&handler, &loop, &error);
 *     flow_wire_listen(address, &fd, &error); loop_listen(loop, fd); loop_add(loop, wire, peer);
 *     loop_run(loop);                       // until loop_stop
 *
 * Entries that are sent during one turn leave together at its end. All functions are for the loop's own
 * thread, except loop_wake and loop_stop, which any thread may call.
 */
#ifndef PHX_FLOW_WIRE_LOOP_H
#define PHX_FLOW_WIRE_LOOP_H

#include "flow/wire/hub.h"
#include "flow/wire/wire.h"

struct loop;
struct loop_handler {
    void *context;
    void (*opened)(void *context, uint64_t peer); /* accepted a connection; it gets a guest's number */
    void (*entry)(void *context, uint64_t peer, const struct flow_entry *entry, struct str tail);
    void (*closed)(void *context, uint64_t peer);
    void (*woken)(void *context);
    void (*tick)(void *context); /* about once a second, or at the period of loop_set_tick */
    bool holds_guests;           /* after its first entry a guest is not read until loop_bind */
    /* Chunks that may wait for a guest or client, each of WIRE_READ_MAX bytes or a tensor. A peer that reads
     * too slowly is disconnected. 0: no limit. */
    uint32_t backlog_max;
};

int loop_new(const struct loop_handler *handler, struct loop **ret_loop, struct error *error);
void loop_free(struct loop *loop);
/* Takes over the hub, through which connections move to UCX; NULL: none does. Called before the first
 * connection is added. */
void loop_use(struct loop *loop, struct wire_hub *hub);
/* Takes over the listening descriptor. */
void loop_listen(struct loop *loop, int fd);
/* Connects to a peer and adds the connection. */
int loop_connect(struct loop *loop, const char *address, uint64_t peer, struct error *error);
/* Takes over the wire. A peer whose connection has ended may be added again, even before `closed` is called
 * for the old connection. */
void loop_add(struct loop *loop, struct wire *wire, uint64_t peer);
bool loop_has(const struct loop *loop, uint64_t peer);
/* Queues an entry for the peer, and takes its own reference to the payload (NULL allowed). Does nothing if
 * there is no such peer. */
void loop_send(struct loop *loop, uint64_t peer, const struct flow_entry *entry, struct str tail,
               struct tensor *payload);
/* Ends all connections of the peer. `closed` is called later. */
void loop_close(struct loop *loop, uint64_t peer);
/* Makes the guest known as peer `as`. A peer may have several connections: all are read, the oldest live one
 * is used for sending, and `closed` is called when the last one has ended. */
void loop_bind(struct loop *loop, uint64_t guest, uint64_t as);
/* Marks the peer as a proven worker of this runtime, so that its connection may move to UCX. loop_bind does
 * this for hosts. */
void loop_trust(struct loop *loop, uint64_t peer);
/* Stops the loop when fd becomes readable; -1: never. The descriptor stays the caller's. */
void loop_stop_at(struct loop *loop, int fd);
/* Sets the period of `tick`, in nanoseconds. */
void loop_set_tick(struct loop *loop, int64_t every_ns);
/* Runs until loop_stop. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
void loop_wake(struct loop *loop);

#endif
