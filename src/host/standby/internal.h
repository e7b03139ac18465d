/* internal.h - declarations shared by the files of a standby. See standby.h. */
#ifndef PHX_HOST_STANDBY_INTERNAL_H
#define PHX_HOST_STANDBY_INTERNAL_H

#include <uv.h>

#include "base/list.h"
#include "base/units.h"
#include "core/core.h"
#include "host/standby/standby.h"

/* --- keeper.c: threads ---------------------------------------------------------------------------------- */

struct keeper_thread;
/* Obtains a lease and starts the threads that renew it and watch etcd's control keys. They send `news` when
 * a key may have changed and when the lease has ended. On failure nothing is left running. */
int keeper_begin(const struct etcd_options *options, uv_async_t *news, struct keeper_thread **ret_keeper,
                 struct error *error);
struct etcd_lease *keeper_lease(struct keeper_thread *keeper); /* the keeper's; valid until its end */
/* Queries etcd on the keeper's thread until etcd gives an answer that a majority confirms; then sends
 * `news`. */
void keeper_seek(struct keeper_thread *keeper);
bool keeper_seeks(struct keeper_thread *keeper);  /* whether keeper_seek() still waits for that answer */
void keeper_finish(struct keeper_thread *keeper); /* joins the threads, ends the lease; NULL is fine */

/* --- forward.c: clients --------------------------------------------------------------------------------- */

struct forward;
struct relay;
struct relay_client;
struct api_tls;
/* TLS of the cluster (secure.h). The strings must outlive the forwarder. */
struct forward_tls {
    const char *cert, *key;
    const char *client_ca;                              /* NULL: none */
    bool loopback_http;                                 /* clients on this machine may speak plain HTTP */
    uint32_t handshakes_max, handshakes_of_address_max; /* as in api_options */
};
/* Listens at a numeric address and forwards its clients' requests to the leader. One source address may hold
 * `of_address_max` connections (0: half of all); further ones are closed unread. Serves plain HTTP only if
 * `tls` is NULL. */
int forward_new(uv_loop_t *loop, const char *address, uint16_t port, uint32_t of_address_max,
                const struct forward_tls *tls, struct forward **ret_forward, struct error *error);
uint16_t forward_port(const struct forward *forward);
int forward_socket(const struct forward *forward); /* the listening socket, the forwarder's; 0: closed */
/* While the forwarder rests, it accepts no clients, so that another listener on its socket can. Connected
 * clients stay. */
void forward_rest(struct forward *forward, bool rests);
/* Accepts the clients that wait in the kernel's queue, then closes the listening socket. */
void forward_unlisten(struct forward *forward);
/* Takes over a connected client and the bytes that it has sent. `tls` describes a client whose session ends
 * in a relay; NULL: plain HTTP. */
void forward_take(struct forward *forward, int fd, struct str bytes, const struct relay_client *tls);
/* Takes over another server's relay and its settings until the relay's last client has left. Returns false,
 * and takes nothing, if TLS sessions do not end here. */
bool forward_adopt(struct forward *forward, struct relay *relay, struct api_tls *tls);
/* The local API that answers reads (rule.h). */
struct forward_reads {
    void *context;
    /* Returns a socket whose other end answers the connected client's requests, or a negative value if no
     * descriptor is left. `tls` describes a client whose session ends in a relay; NULL: plain HTTP. */
    int (*connect)(void *context, int client, const struct relay_client *tls);
    uint64_t (*version)(void *context); /* the last record applied to the state */
    void (*look)(void *context);        /* requests a refresh from the log, then forward_looked() */
};
/* Sets the API that answers reads; NULL: the leader answers all requests. A request whose answer is under way
 * is not affected. */
void forward_reads(struct forward *forward, const struct forward_reads *reads);
/* Reports the refresh that forward_reads.look requested. `newest`: the state holds every record that the log
 * held when the refresh began. Otherwise that is unknown, and waiting reads go to the leader. */
void forward_looked(struct forward *forward, bool newest);
/* Sets the address of the leader's API; NULL: nobody leads, and requests wait. */
void forward_to(struct forward *forward, const struct sockaddr_storage *leader);
/* Sets whether the leader recognises a repeated write by its key (core/receipt/receipt.h). If so, writes get
 * keys, and a write whose leader disappears without an answer is sent to the next leader. */
void forward_repeats(struct forward *forward, bool repeats);
/* Stops listening and lets the connected clients go: answers say "Connection: close", watches end, clients
 * without a request are closed shortly after a leader is known, and all others after LEAVE_MS. Calls `left`
 * when no client is left. */
void forward_leave(struct forward *forward, void (*left)(void *context), void *context);
void forward_close(struct forward *forward); /* ends the clients; the loop must be run afterwards */
void forward_free(struct forward *forward);  /* NULL is fine */

/* --- reads.c: the standby's own API --------------------------------------------------------------------- */

struct reads;
/* Serves the core's state. The caller changes the core and reports each change with reads_changed(). The
 * strings in `options` must outlive the API. */
int reads_begin(uv_loop_t *loop, const struct controller_options *options, struct core *core,
                struct reads **ret_reads, struct error *error);
/* As forward_reads.connect. The caller owns the socket. */
int reads_connect(struct reads *reads, int client, const struct relay_client *tls);
void reads_changed(struct reads *reads, const struct effects *effects); /* right after each core_step() */
void reads_flush(struct reads *reads);                                  /* after a batch of changes */
/* Takes no more requests, and closes once the answers under way have been sent, after five seconds at the
 * latest. *owner is set to NULL then; `owner` and the core must live until that moment. */
void reads_end(struct reads **owner);
void reads_close(struct reads *reads); /* closes at once; run the loop afterwards; NULL is fine */

#endif
