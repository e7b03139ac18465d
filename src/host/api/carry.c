#include "host/api/carry.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/check.h"

enum {
    CARRY_CHUNKS_A_TURN = 8, /* then other connections follow */
    CARRY_UNREAD_BYTES =
        32 * 1024, /* of handshakes and records; a chain of certificates has some thousands */
};

/* --- handshakes --------------------------------------------------------------------------------- */

/* A gnutls_pull_func. GnuTLS keeps an incomplete handshake message, which may announce 16 MiB, also after
 * the handshake. So bytes that arrive before any byte of a request are counted and limited. */
static ssize_t carry_pull(gnutls_transport_ptr_t transport, void *bytes, size_t size)
{
    struct carry *carry = transport;
    ssize_t count = recv(carry->outer.fd, bytes, size, MSG_DONTWAIT);
    if (count <= 0)
        return count;
    carry->unread_bytes += (size_t)count;
    if (carry->unread_bytes <= CARRY_UNREAD_BYTES)
        return count;
    errno = ECONNABORTED;
    return -1;
}

static int carry_pull_ready(gnutls_transport_ptr_t transport, unsigned wait_ms)
{
    const struct carry *carry = transport;
    struct pollfd one = {.fd = carry->outer.fd, .events = POLLIN};
    (void)wait_ms; /* nothing here waits */
    return poll(&one, 1, 0);
}

static void carry_begin(struct carry *carry, struct api_tls *tls)
{
    carry->session = api_tls_begin(tls, carry->outer.fd);
    gnutls_transport_ptr_t from, to;
    gnutls_transport_get_ptr2(carry->session, &from, &to);
    gnutls_transport_set_ptr2(carry->session, carry, to);
    gnutls_transport_set_pull_function(carry->session, carry_pull);
    gnutls_transport_set_pull_timeout_function(carry->session, carry_pull_ready);
}

/* Records for the loop why a connection of relay_connect() fails. */
static bool carry_fail(struct carry *carry, const struct error *why)
{
    if (carry->client.call) {
        carry->why = mem_alloc(sizeof *carry->why);
        *carry->why = *why;
    }
    return false;
}

static bool carry_make_pair(struct carry *carry);

/* Continues after the handshake. Returns false if the connection has ended. */
static bool carry_has_shaken(struct carry *carry)
{
    struct error error;
    carry->stage = CARRY_HEARS;
    carry->unread_bytes = 0;
    if (!carry->client.call)
        return true;
    return api_tls_check_leader(carry->session, &error) < 0 ? carry_fail(carry, &error)
                                                            : carry_make_pair(carry);
}

static bool carry_shake(struct carry *carry, struct api_tls *tls)
{
    struct error error;
    if (!carry->session)
        carry_begin(carry, tls);
    int rc = gnutls_handshake(carry->session);
    if (rc == 0)
        return carry_has_shaken(carry);
    if (!gnutls_error_is_fatal(rc))
        return true;
    (void)gnutls_alert_send_appropriate(carry->session, rc);
    error_set(&error, ERROR_IO, "the handshake: %s", gnutls_strerror(rc));
    return carry_fail(carry, &error);
}

/* Makes the pair of sockets: with the first bytes of a request, or when a leader can be asked. */
static bool carry_make_pair(struct carry *carry)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
        return false;
    carry->inner.fd = pair[0];
    carry->client.fd = pair[1];
    api_tls_chain_take(carry->session, &carry->client.chain);
    carry->client.forwards = api_tls_forwards(carry->session);
    carry->stage = CARRY_FLOWS;
    return true;
}

/* --- client to server --------------------------------------------------------------------------- */

/* Passes held bytes to the server. Returns false if the server takes no more now. */
static bool carry_hand_over(struct carry *carry)
{
    while (carry->held_sent < carry->held.len) {
        ssize_t count = send(carry->inner.fd, carry->held.data + carry->held_sent,
                             carry->held.len - carry->held_sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && errno == EAGAIN)
            return false;
        if (count < 0) { /* the server has closed its end: its answer is still sent */
            carry->outer_ended = true;
            break;
        }
        carry->held_sent += (size_t)count;
    }
    buf_done(&carry->held);
    carry->held_sent = 0;
    return true;
}

/* Records that the client sends no more, and passes that on to the server's end, if there is one. */
static void carry_outer_end(struct carry *carry)
{
    carry->outer_ended = true;
    if (carry->inner.fd >= 0)
        (void)shutdown(carry->inner.fd, SHUT_WR);
}

/* Moves bytes from the client to the server. Returns false if the connection has ended. */
static bool carry_in(struct carry *carry, char *chunk)
{
    for (int i = 0; i < CARRY_CHUNKS_A_TURN; i++) {
        if (!carry_hand_over(carry) || carry->outer_ended)
            return true;
        ssize_t count = gnutls_record_recv(carry->session, chunk, CARRY_CHUNK_BYTES);
        if (count == GNUTLS_E_AGAIN)
            return true;
        if (count < 0 && !gnutls_error_is_fatal((int)count))
            continue;
        if (count <= 0)
            carry_outer_end(carry);
        if (count <= 0 &&
            (carry->stage == CARRY_HEARS || (count != 0 && count != GNUTLS_E_PREMATURE_TERMINATION)))
            return false;
        if (count <= 0)
            return true;
        if (carry->stage == CARRY_HEARS && !carry_make_pair(carry))
            return false;
        carry->unread_bytes = 0;
        buf_add(&carry->held, chunk, (size_t)count);
    }
    return true;
}

/* --- server to client --------------------------------------------------------------------------- */

/* Sends close_notify: without it a client treats its answer as truncated. */
static void carry_say_goodbye(struct carry *carry)
{
    int rc = gnutls_bye(carry->session, GNUTLS_SHUT_WR);
    carry->stage = rc == GNUTLS_E_AGAIN || rc == GNUTLS_E_INTERRUPTED ? CARRY_PARTS : CARRY_ENDS;
    if (carry->stage == CARRY_ENDS)
        (void)shutdown(carry->outer.fd, SHUT_WR);
}

/* Encrypts bytes into records, of a size that the client chooses (RFC 8449). Returns how many were sent, or
 * -1 if the connection has ended. GnuTLS keeps one record that waits, and must get the same bytes again. */
static ssize_t carry_seal(struct carry *carry, const char *bytes, size_t len)
{
    size_t done = 0;
    while (done < len) {
        ssize_t count = gnutls_record_send(carry->session, bytes + done, len - done);
        if (count == GNUTLS_E_AGAIN || count == GNUTLS_E_INTERRUPTED)
            break;
        if (count <= 0)
            return -1;
        CHECK((size_t)count <= len - done);
        done += (size_t)count;
    }
    return (ssize_t)done;
}

/* Sends the waiting bytes. Returns false if the connection has ended. */
static bool carry_send_waiting(struct carry *carry)
{
    if (carry->waiting.len == 0)
        return true;
    ssize_t count = carry_seal(carry, carry->waiting.data + carry->waiting_sent,
                               carry->waiting.len - carry->waiting_sent);
    if (count < 0)
        return false;
    carry->waiting_sent += (size_t)count;
    if (carry->waiting_sent < carry->waiting.len)
        return true;
    buf_done(&carry->waiting);
    carry->waiting_sent = 0;
    return true;
}

static bool carry_out(struct carry *carry, char *chunk)
{
    /* No event reports more bytes of an end that has hung up; the kernel holds few. */
    for (int i = 0; (i < CARRY_CHUNKS_A_TURN || carry->inner.hung) && carry->stage == CARRY_FLOWS; i++) {
        if (!carry_send_waiting(carry))
            return false;
        if (carry->waiting.len > 0)
            return true;
        ssize_t count = recv(carry->inner.fd, chunk, CARRY_CHUNK_BYTES, MSG_DONTWAIT);
        if (count < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (count <= 0) {
            carry_say_goodbye(carry);
            return true;
        }
        ssize_t sent = carry_seal(carry, chunk, (size_t)count);
        if (sent < 0)
            return false;
        if (sent < count)
            buf_add(&carry->waiting, chunk + sent, (size_t)(count - sent));
    }
    return true;
}

/* Reads and discards what the client still sends: closing a socket with unread bytes resets the connection,
 * and the reset can overtake the answer. Returns false if the connection has ended: the client's side is
 * broken, or has ended and is owed nothing. */
static bool carry_throw_away(struct carry *carry, char *chunk)
{
    ssize_t count = CARRY_CHUNK_BYTES;
    for (int i = 0; i < CARRY_CHUNKS_A_TURN && count > 0; i++)
        count = recv(carry->outer.fd, chunk, CARRY_CHUNK_BYTES, MSG_DONTWAIT);
    if (count == 0) {
        carry->outer_ended = true;
        return carry->stage == CARRY_PARTS;
    }
    return count > 0 || errno == EAGAIN || errno == EINTR;
}

/* --- all of it ---------------------------------------------------------------------------------- */

bool carry_go_on(struct carry *carry, struct api_tls *tls, char *chunk)
{
    if (carry->stage == CARRY_SHAKES && !carry_shake(carry, tls))
        return false;
    if ((carry->stage == CARRY_HEARS || carry->stage == CARRY_FLOWS) && !carry_in(carry, chunk))
        return false;
    if (carry->stage == CARRY_FLOWS && !carry_out(carry, chunk))
        return false;
    if (carry->stage == CARRY_PARTS)
        carry_say_goodbye(carry);
    return carry->stage < CARRY_PARTS || carry_throw_away(carry, chunk);
}

uint32_t carry_outer_events(const struct carry *carry)
{
    if (carry->stage == CARRY_SHAKES)
        return carry->session && gnutls_record_get_direction(carry->session) ? EPOLLOUT : EPOLLIN;
    if (carry->stage == CARRY_PARTS)
        return EPOLLOUT | (carry->outer_ended ? 0 : EPOLLIN);
    bool reads = carry->stage == CARRY_ENDS || (!carry->outer_ended && carry->held.len == 0);
    return (reads ? EPOLLIN : 0) | (carry->waiting.len ? EPOLLOUT : 0);
}

uint32_t carry_inner_events(const struct carry *carry)
{
    if (carry->stage != CARRY_FLOWS)
        return 0;
    return (carry->waiting.len ? 0 : EPOLLIN) | (carry->held.len ? EPOLLOUT : 0);
}

void carry_close(struct carry *carry, struct api_tls *tls)
{
    if (carry->session)
        api_tls_end(tls, carry->session);
    carry->session = NULL;
    if (carry->outer.fd >= 0)
        close(carry->outer.fd);
    if (carry->inner.fd >= 0)
        close(carry->inner.fd);
    carry->outer.fd = carry->inner.fd = -1;
    buf_done(&carry->held);
    buf_done(&carry->waiting);
}
