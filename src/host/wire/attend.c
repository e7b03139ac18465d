/* attend.c - connections served by another thread, while the loop's thread has lent the wire (wire.h).
 *
 * The attendant reads sockets itself and appends the bytes to the connection's `in`, after its incomplete
 * frame; libuv then finds only later bytes. It skips a connection with a write under way in libuv, into which
 * its answer would cut, and one whose peer has not sent a complete frame yet. */
#include "host/wire/internal.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/vec.h"
#include "core/agent/codec.h"

enum { READ_AT_ONCE_BYTES = 64 * 1024, READS_A_ROUND = 16, KEPT_BYTES_MAX = 16 * 1024 * 1024 };

struct wire_attendant {
    VEC(struct pollfd) polls;
    VEC(struct wire_conn *) conns;
    struct arena arena; /* of the message in hand */
    char data[READ_AT_ONCE_BYTES];
};

struct wire_attendant *wire_attendant_new(void)
{
    return mem_alloc(sizeof(struct wire_attendant));
}

void wire_attendant_free(struct wire_attendant *attendant)
{
    if (!attendant)
        return;
    vec_done(&attendant->polls);
    vec_done(&attendant->conns);
    arena_done(&attendant->arena);
    mem_free(attendant);
}

static bool is_served(const struct wire_conn *conn)
{
    bool whole = conn->state == CONN_OPEN && conn->framed && !conn->failing && !conn->overflowed;
    bool plain = !conn->tls || wire_tls_established(conn->tls);
    return whole && plain && conn->accepted && conn->handlers->stand_in && conn->in_flight == 0 &&
           !conn->broke && !conn->garbled && conn->in.len < KEPT_BYTES_MAX;
}

static void keep(struct wire_conn *conn)
{
    if (list_empty(&conn->kept_node))
        list_append(&conn->wire->kept, &conn->kept_node);
}

static void open_records(struct wire_attendant *attendant, struct wire_conn *conn, size_t len)
{
    struct error error;
    ssize_t plain;
    wire_tls_take(conn->tls, attendant->data, len);
    while ((plain = wire_tls_open(conn->tls, attendant->data, READ_AT_ONCE_BYTES, &error)) > 0)
        buf_add(&conn->in, attendant->data, (size_t)plain);
    conn->garbled = plain < 0;
}

/* Reads the bytes that have arrived. The loop will find an end of the connection again, but not an error,
 * which is kept in `broke`. */
static void read_all(struct wire_attendant *attendant, struct wire_conn *conn)
{
    ssize_t len = READ_AT_ONCE_BYTES;
    for (int i = 0; i < READS_A_ROUND && len == READ_AT_ONCE_BYTES && !conn->garbled; i++) {
        len = recv(wire_conn_fd(conn), attendant->data, READ_AT_ONCE_BYTES, MSG_DONTWAIT);
        if (len < 0 && errno != EAGAIN && errno != EINTR)
            conn->broke = errno;
        if (conn->broke || len > 0)
            keep(conn);
        if (len > 0 && conn->tls)
            open_records(attendant, conn, (size_t)len);
        else if (len > 0)
            buf_add(&conn->in, attendant->data, (size_t)len);
    }
}

/* Answers a message if the stand-in does. Returns false if the bytes are no message, so that the loop will
 * close the connection. */
static bool answer(struct wire_attendant *attendant, struct wire_conn *conn, struct str bytes)
{
    struct from_agent message;
    struct from_controller reply;
    struct error error;
    attendant->arena.limit_bytes = CODEC_ARENA_BYTES;
    bool whole = codec_get_agent(&attendant->arena, bytes, &message, &error) == 0;
    if (whole && conn->handlers->stand_in(conn, &message, &reply))
        (void)codec_put_controller(conn->tls ? wire_tls_plain(conn->tls) : &conn->out, &reply, NULL);
    arena_clear(&attendant->arena);
    return whole;
}

/* Answers the frames that have become complete. A broken frame, and all after it, are left to the loop: the
 * loop will never see the heartbeats after it, so an answer would extend a lease that the driver counts as
 * expired. */
static void answer_all(struct wire_attendant *attendant, struct wire_conn *conn)
{
    struct str bytes;
    struct error error;
    size_t used;
    while (codec_frame(conn->in.data + conn->seen, conn->in.len - conn->seen, &bytes, &used, &error) > 0 &&
           answer(attendant, conn, bytes))
        conn->seen += used;
}

/* Sends what the kernel takes now; the loop writes the rest. */
static void send_all(struct wire_conn *conn)
{
    if (conn->tls)
        wire_tls_seal(conn->tls);
    if (conn->out.len == 0)
        return;
    ssize_t sent = send(wire_conn_fd(conn), conn->out.data, conn->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0)
        buf_drop_front(&conn->out, (size_t)sent);
    if (conn->out.len > 0)
        keep(conn);
}

void wire_attend(struct wire *wire, struct wire_attendant *attendant)
{
    vec_clear(&attendant->polls);
    vec_clear(&attendant->conns);
    list_for_each(node, &wire->conns)
    {
        struct wire_conn *conn = container_of(node, struct wire_conn, node);
        if (!is_served(conn))
            continue;
        struct pollfd of_conn = {.fd = wire_conn_fd(conn), .events = POLLIN};
        vec_push(&attendant->polls, of_conn);
        vec_push(&attendant->conns, conn);
    }
    int ready = attendant->polls.len ? poll(attendant->polls.items, attendant->polls.len, 0) : 0;
    for (size_t i = 0; ready > 0 && i < attendant->polls.len; i++) {
        struct wire_conn *conn = attendant->conns.items[i];
        if (!attendant->polls.items[i].revents)
            continue;
        ready--;
        read_all(attendant, conn);
        answer_all(attendant, conn);
        send_all(conn);
    }
}

bool wire_has_kept(const struct wire *wire)
{
    return !list_empty(&wire->kept);
}

/* Delivers all kept bytes. An owner may close any connection, which removes it from the list. */
void wire_gather(struct wire *wire)
{
    while (!list_empty(&wire->kept))
        wire_conn_take_kept(container_of(wire->kept.next, struct wire_conn, kept_node));
}
