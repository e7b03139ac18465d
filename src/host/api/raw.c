#include "host/api/raw.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/check.h"

static ssize_t pull(gnutls_transport_ptr_t context, void *data, size_t len)
{
    const struct raw *raw = context;
    if (!raw || !raw->reading) {
        errno = EAGAIN;
        return -1;
    }
    return recv(raw->fd, data, len, MSG_DONTWAIT);
}

/* gnutls asks for one beside a pull function; only handshakes wait, and they are over. */
static int pull_timeout(gnutls_transport_ptr_t context, unsigned wait_ms)
{
    const struct raw *raw = context;
    (void)wait_ms;
    return raw && raw->reading;
}

static gnutls_transport_ptr_t socket_pointer(int fd)
{
    return (gnutls_transport_ptr_t)(intptr_t)fd; /* NOLINT: how gnutls takes descriptors */
}

void raw_init(struct raw *raw, int fd, gnutls_session_t tls)
{
    int on = 1;
    *raw = (struct raw){.fd = fd, .tls = tls};
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (!tls)
        return;
    gnutls_transport_set_ptr2(tls, raw, socket_pointer(fd));
    gnutls_transport_set_pull_function(tls, pull);
    gnutls_transport_set_pull_timeout_function(tls, pull_timeout);
}

void raw_done(struct raw *raw)
{
    if (raw->tls)
        gnutls_transport_set_ptr2(raw->tls, NULL, socket_pointer(raw->fd));
    raw->tls = NULL;
}

static ssize_t result_of(ssize_t count)
{
    return count >= 0 ? count : count == GNUTLS_E_AGAIN || count == GNUTLS_E_INTERRUPTED ? 0 : -1;
}

ssize_t raw_send(struct raw *raw, const char *data, size_t len)
{
    ssize_t count;
    CHECK(len > 0);
    if (raw->tls) { /* a record that is under way is finished with no data; the count is that of its bytes */
        count = raw->unsent ? gnutls_record_send(raw->tls, NULL, 0) : gnutls_record_send(raw->tls, data, len);
        raw->unsent = count == GNUTLS_E_AGAIN || count == GNUTLS_E_INTERRUPTED;
        CHECK(count <= (ssize_t)len);
        return result_of(count);
    }
    do
        count = send(raw->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (count < 0 && errno == EINTR);
    return count < 0 && errno == EAGAIN ? 0 : count;
}

ssize_t raw_recv(struct raw *raw, char *data, size_t len)
{
    CHECK(len >= RAW_CHUNK_BYTES);
    if (raw->tls) {
        raw->reading = true;
        ssize_t count = gnutls_record_recv(raw->tls, data, len);
        raw->reading = false;
        bool nothing = count < 0 && !gnutls_error_is_fatal((int)count);
        return nothing ? 0 : count > 0 ? count : -1;
    }
    ssize_t count = recv(raw->fd, data, len, MSG_DONTWAIT);
    return count > 0 ? count : count < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}
