/* secure.h - TLS of a forwarder: its clients' sessions end here, and requests go to the leader in sessions of
 * the forwarder's own, which show that a controller asks. Private to standby.
 *
 *   client ══ TLS ══ inward relay ── pair ── outward relay ══ TLS ══ leader     (host/api/relay.h)
 *
 * Sessions end here while secure_ends(): our own certificate is a controller's (host/access/pki.h), and the
 * leader takes requests that controllers pass on. Where it is not so, for which one line on standard error
 * gives the reason, the bytes of TLS are passed on, and the sessions are the leader's. Each new leader is
 * asked (trial.h). Until it has answered, the answer of the leader before it counts.
 *
 * All functions are the loop's; hooks and `done` are called by the loop, never from inside.
 */
#ifndef PHX_HOST_STANDBY_SECURE_H
#define PHX_HOST_STANDBY_SECURE_H

#include <uv.h>

#include "host/api/relay.h"
#include "host/standby/internal.h"

struct secure;
struct secure_call; /* a session with the leader that begins */

struct secure_hooks {
    void *context;
    /* A client has shaken hands and begun a request; as relay_hooks.ready. */
    void (*client)(void *context, struct relay_client *client);
    /* A client that secure_take() took has gone. */
    void (*left)(void *context, const struct sockaddr_storage *address);
};

/* Never fails: without a certificate that serves nothing ends here, and that is tried again now and then. */
struct secure *secure_new(uv_loop_t *loop, const struct forward_tls *tls, const struct secure_hooks *hooks);
bool secure_ends(const struct secure *secure); /* NULL: no */
/* Takes a connected socket that does not block. False: too many shake hands; it stays the caller's. */
bool secure_take(struct secure *secure, int fd, const struct sockaddr_storage *address, socklen_t len);
/* Takes the sessions of another server of this process, until they end. False: nothing ends here. */
bool secure_adopt(struct secure *secure, struct relay *relay, struct api_tls *tls);
uint32_t secure_shaking(const struct secure *secure); /* clients that have sent no request yet */
/* Whether the client is a controller that may say whose requests it passes on. */
bool secure_trusts(const struct secure *secure, const struct relay_client *client);

/* Another one leads, or nobody (NULL). */
void secure_follow(struct secure *secure, const struct sockaddr_storage *leader);
/* Whether it is known if the leader takes requests of ours, or nothing depends on that. */
bool secure_decided(const struct secure *secure);
/* Opens a session with the leader. NULL: not now. `done` has its plain end; negative: it cannot be had. */
struct secure_call *secure_call(struct secure *secure, void (*done)(void *context, int fd), void *context);
void secure_cancel(struct secure_call *call); /* `done` is not called */
/* The leader has answered that it takes no requests of ours. */
void secure_refuse(struct secure *secure);

void secure_tick(struct secure *secure, uint64_t now_ms);
/* Ends all sessions; what pairs have left in them is sent. `closed` comes from the loop. NULL is fine: it
 * never comes then. */
void secure_close(struct secure *secure, void (*closed)(void *context), void *context);

#endif
