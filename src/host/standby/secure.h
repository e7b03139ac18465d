/* secure.h - TLS of a forwarder: clients' sessions end here. Their requests go to the leader in the
 * forwarder's own sessions, which prove that a controller asks. Private to standby.
 *
 *   client ══ TLS ══ inward relay ── pair ── outward relay ══ TLS ══ leader     (host/api/relay.h)
 *
 * Sessions end here while secure_ends(): our certificate is a controller's (host/access/pki.h), and the
 * leader takes requests that controllers forward. Otherwise one line on standard error gives the reason, the
 * encrypted bytes are forwarded, and the sessions end at the leader. Each new leader is asked (trial.h);
 * until it answers, the answer of the leader before it counts.
 *
 * Call all functions on the loop's thread. The loop calls hooks and `done`, never one of these functions.
 */
#ifndef PHX_HOST_STANDBY_SECURE_H
#define PHX_HOST_STANDBY_SECURE_H

#include <uv.h>

#include "host/api/relay.h"
#include "host/standby/internal.h"

struct secure;
struct secure_call; /* a session with the leader that is being opened */

struct secure_hooks {
    void *context;
    /* A client has completed the handshake and begun a request; as relay_hooks.ready. */
    void (*client)(void *context, struct relay_client *client);
    /* A client that secure_take() took has left. */
    void (*left)(void *context, const struct sockaddr_storage *address);
};

/* Never fails: while the certificate is not usable, no session ends here, and secure_tick() tries again every
 * second. The strings in `tls` must outlive the result. */
struct secure *secure_new(uv_loop_t *loop, const struct forward_tls *tls, const struct secure_hooks *hooks);
bool secure_ends(const struct secure *secure); /* false for NULL */
/* Takes over a connected, non-blocking socket. Returns false, and leaves the socket to the caller, if too
 * many handshakes are under way. Requires secure_ends(). */
bool secure_take(struct secure *secure, int fd, const struct sockaddr_storage *address, socklen_t len);
/* Takes over another server's relay and its settings until its sessions end. Returns false, and takes
 * nothing, unless secure_ends(). */
bool secure_adopt(struct secure *secure, struct relay *relay, struct api_tls *tls);
uint32_t secure_shaking(const struct secure *secure); /* clients that have sent no request yet; 0 for NULL */
/* Returns whether the client is a controller, and so may name the client of each request that it forwards. */
bool secure_trusts(const struct secure *secure, const struct relay_client *client);

/* Sets the leader's address; NULL: nobody leads. A NULL `secure` is fine. */
void secure_follow(struct secure *secure, const struct sockaddr_storage *leader);
/* Returns whether it is known if the leader takes our requests. Also true if no session can end here. */
bool secure_decided(const struct secure *secure);
/* Opens a session with the leader, and passes the plain end's socket to `done`, or a negative value if the
 * session failed. Returns NULL, and never calls `done`, if no session can be opened now. */
struct secure_call *secure_call(struct secure *secure, void (*done)(void *context, int fd), void *context);
void secure_cancel(struct secure_call *call); /* `done` is not called */
/* Records that the leader has refused a forwarded request. */
void secure_refuse(struct secure *secure);
/* Retries, re-reads changed certificate files and frees adopted relays. NULL is fine. */

void secure_tick(struct secure *secure, uint64_t now_ms);
/* Sends what the pairs have left in the sessions, then ends the sessions. The loop calls `closed` once the
 * memory is freed. NULL is fine: `closed` is then never called. */
void secure_close(struct secure *secure, void (*closed)(void *context), void *context);

#endif
