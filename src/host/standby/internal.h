/* internal.h - what the files of a standby say to each other. See standby.h. */
#ifndef PHX_HOST_STANDBY_INTERNAL_H
#define PHX_HOST_STANDBY_INTERNAL_H

#include <uv.h>

#include "base/list.h"
#include "base/units.h"
#include "host/standby/standby.h"

/* --- keeper.c: threads ---------------------------------------------------------------------------------- */

struct keeper_thread;
/* Asks for a lease, and begins to renew it and to watch the control keys. `news` is sent when something may
 * have changed, and when the lease has ended. */
int keeper_begin(const struct etcd_options *options, uv_async_t *news, struct keeper_thread **ret_keeper,
                 struct error *error);
struct etcd_lease *keeper_lease(struct keeper_thread *keeper);
void keeper_finish(struct keeper_thread *keeper); /* joins; the lease ends; NULL is fine */

/* --- forward.c: clients --------------------------------------------------------------------------------- */

struct forward;
/* Listens at a numeric address, and passes requests of its clients on to the leader. */
int forward_new(uv_loop_t *loop, const char *address, uint16_t port, struct forward **ret_forward,
                struct error *error);
uint16_t forward_port(const struct forward *forward);
int forward_socket(const struct forward *forward); /* that listens; it stays the forwarder's */
/* While it rests, whoever shares its socket takes new clients; those that are here stay. */
void forward_rest(struct forward *forward, bool rests);
/* Takes those that wait, and refuses further clients. */
void forward_unlisten(struct forward *forward);
/* Takes a connected client and the bytes that it has sent. */
void forward_take(struct forward *forward, int fd, struct str bytes);
/* The leader's API; NULL: nobody leads now, and requests wait. */
void forward_to(struct forward *forward, const struct sockaddr_storage *leader);
/* Takes no new clients, and lets go of those that are here: answers say "Connection: close", watches end,
 * clients without a request are closed a little after a leader is known, and all others after LEAVE_MS.
 * `left`: nobody is left. */
void forward_leave(struct forward *forward, void (*left)(void *context), void *context);
void forward_close(struct forward *forward); /* ends the clients; the loop must be run afterwards */
void forward_free(struct forward *forward);  /* NULL is fine */

#endif
