/* internal.h - what the files of a standby say to each other. See standby.h. */
#ifndef PHX_HOST_STANDBY_INTERNAL_H
#define PHX_HOST_STANDBY_INTERNAL_H

#include <uv.h>

#include "base/list.h"
#include "base/units.h"
#include "core/core.h"
#include "host/standby/standby.h"

/* --- keeper.c: threads ---------------------------------------------------------------------------------- */

struct keeper_thread;
/* Asks for a lease, and begins to renew it and to watch the control keys. `news` is sent when something may
 * have changed, and when the lease has ended. */
int keeper_begin(const struct etcd_options *options, uv_async_t *news, struct keeper_thread **ret_keeper,
                 struct error *error);
struct etcd_lease *keeper_lease(struct keeper_thread *keeper);
/* Asks etcd, until an answer comes which a majority stands behind; then `news` is sent. */
void keeper_seek(struct keeper_thread *keeper);
bool keeper_seeks(struct keeper_thread *keeper);  /* no answer has come yet */
void keeper_finish(struct keeper_thread *keeper); /* joins; the lease ends; NULL is fine */

/* --- forward.c: clients --------------------------------------------------------------------------------- */

struct forward;
struct relay;
struct relay_client;
struct api_tls;
/* TLS of the cluster (secure.h). The strings must outlive the forwarder. */
struct forward_tls {
    const char *cert, *key;
    const char *client_ca;                              /* NULL: none */
    bool loopback_http;                                 /* clients on this computer may speak plain HTTP */
    uint32_t handshakes_max, handshakes_of_address_max; /* as api_options */
};
/* Listens at a numeric address, and passes requests of its clients on to the leader. One source address has
 * `of_address_max` connections; more are closed unheard. 0: half of all. `tls` NULL: plain HTTP alone. */
int forward_new(uv_loop_t *loop, const char *address, uint16_t port, uint32_t of_address_max,
                const struct forward_tls *tls, struct forward **ret_forward, struct error *error);
uint16_t forward_port(const struct forward *forward);
int forward_socket(const struct forward *forward); /* that listens; it stays the forwarder's */
/* While it rests, whoever shares its socket takes new clients; those that are here stay. */
void forward_rest(struct forward *forward, bool rests);
/* Takes those that wait, and refuses further clients. */
void forward_unlisten(struct forward *forward);
/* Takes a connected client and the bytes that it has sent; `tls`: what is known of one whose session ends in
 * a relay; and such a relay, until its last client has gone (false: it cannot be taken). */
void forward_take(struct forward *forward, int fd, struct str bytes, const struct relay_client *tls);
bool forward_adopt(struct forward *forward, struct relay *relay, struct api_tls *tls);
/* The API that answers reads here (rule.h); NULL: all requests are the leader's. Requests that are being
 * answered are not affected. */
struct forward_reads {
    void *context;
    /* Returns a socket whose other end answers requests of the connected client; negative: none is left.
     * `tls`: of a client whose session ends in a relay; NULL: it speaks plain HTTP. */
    int (*connect)(void *context, int client, const struct relay_client *tls);
    uint64_t (*version)(void *context); /* the last record of the state that is answered from */
    void (*look)(void *context);        /* asks for forward_looked(), soon */
};
void forward_reads(struct forward *forward, const struct forward_reads *reads);
/* Tells of a look that began after it was asked for: the state holds every record that was in the log then.
 * Not `newest`: that cannot be known, and reads that need it are the leader's. */
void forward_looked(struct forward *forward, bool newest);
/* The leader's API; NULL: nobody leads now, and requests wait. */
void forward_to(struct forward *forward, const struct sockaddr_storage *leader);
/* Whether the leader takes a write that comes again for the same one (core/receipt/receipt.h): then writes
 * are given keys, and those whose leader goes without an answer are sent to the next one. */
void forward_repeats(struct forward *forward, bool repeats);
/* Takes no new clients, and lets go of those that are here: answers say "Connection: close", watches end,
 * clients without a request are closed a little after a leader is known, and all others after LEAVE_MS.
 * `left`: nobody is left. */
void forward_leave(struct forward *forward, void (*left)(void *context), void *context);
void forward_close(struct forward *forward); /* ends the clients; the loop must be run afterwards */
void forward_free(struct forward *forward);  /* NULL is fine */

/* --- reads.c: the standby's own API --------------------------------------------------------------------- */

struct reads;
/* Serves what is in the core, which the caller changes and tells of. `options` must outlive it. */
int reads_begin(uv_loop_t *loop, const struct controller_options *options, struct core *core,
                struct reads **ret_reads, struct error *error);
/* Returns a socket that speaks for the connected client; negative: no descriptor is left. */
int reads_connect(struct reads *reads, int client, const struct relay_client *tls);
void reads_changed(struct reads *reads, const struct effects *effects); /* right after their core_step() */
void reads_flush(struct reads *reads);                                  /* behind a batch of them */
/* Takes no more requests, and closes when answers that are under way have left: *owner, which must outlive
 * it, is NULL then. The core must live until then. */
void reads_end(struct reads **owner);
void reads_close(struct reads *reads); /* at once; the loop must be run afterwards; NULL is fine */

#endif
