/* raw.h - the bytes of a connection that libmicrohttpd has handed over: its socket, or the TLS session on
 * it. Private to api.
 *
 * Behind TLS libmicrohttpd gives a socketpair and carries between it and TLS whatever fits into what is
 * left of the connection's small buffer, a round of its loop each time, and no event says that it could
 * carry more: some 400 KB/s. So we leave that pair alone and use the gnutls session, on the same thread.
 * Its pull function becomes ours, which gives nothing to a reader other than raw_recv(); writing needs no
 * such care, since libmicrohttpd writes only what came out of the pair, until raw_done().
 */
#ifndef PHX_HOST_API_RAW_H
#define PHX_HOST_API_RAW_H

#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <sys/types.h>

struct raw {
    int fd; /* to be polled */
    gnutls_session_t tls;
    bool reading, unsent; /* TLS: raw_recv() is at work; a record waits inside gnutls */
};

/* `tls` NULL: plain. Neither is owned. `raw` stays where it is until raw_done(), which may be called
 * again. */
void raw_init(struct raw *raw, int fd, gnutls_session_t tls);
void raw_done(struct raw *raw);
/* Returns the bytes moved; 0: none can be moved now; negative: the connection is over. A send that took
 * nothing must be repeated with the same bytes. Offer room for at least RAW_CHUNK_BYTES, the most that a
 * record holds: then nothing is left inside gnutls, where polling does not see it. */
enum { RAW_CHUNK_BYTES = 16 * 1024 };
ssize_t raw_send(struct raw *raw, const char *data, size_t len);
ssize_t raw_recv(struct raw *raw, char *data, size_t len);

#endif
