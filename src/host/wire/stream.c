#include "host/wire/internal.h"

#include "core/agent/codec.h"

enum {
    FLUSH_EVERY = 256,
    PUSH_BYTES = 64 * 1024, /* beyond this, bytes go to the kernel at once, to avoid a second copy */
};

static enum wire_reason reason_of(int status)
{
    if (status == UV_EOF)
        return WIRE_EOF;
    return status == UV_ETIMEDOUT ? WIRE_TIMEOUT : WIRE_RESET;
}
/* --- sending -------------------------------------------------------------------------------------- */

/* Does nothing: the active handle alone keeps the loop from sleeping. */
static void on_idle(uv_idle_t *idle)
{
    (void)idle;
}

static void conn_flush(struct wire_conn *conn);

static void on_written(uv_write_t *request, int status)
{
    struct write *write = container_of(request, struct write, request);
    struct wire_conn *conn = write->conn;
    conn->in_flight -= write->bytes.len;
    buf_done(&write->bytes);
    mem_free(write);
    if (conn->state != CONN_OPEN)
        return; /* closing: the handle's close callback comes later and frees it */
    if (status < 0)
        wire_conn_fail(conn, reason_of(status), uv_strerror(status));
    else
        conn_flush(conn);
}

/* Sends the rest of the queue when the socket is writable. */
static void write_later(struct wire_conn *conn)
{
    struct write *write = mem_alloc(sizeof *write);
    write->conn = conn;
    write->bytes = conn->out;
    conn->out = (struct buf){0};
    conn->in_flight = write->bytes.len;
    uv_buf_t buffer = uv_buf_init(write->bytes.data, (unsigned)write->bytes.len);
    int rc = uv_write(&write->request, (uv_stream_t *)&conn->tcp, &buffer, 1, on_written);
    CHECK(rc == 0);
}

/* Hands the queue to the kernel; returns 0 or libuv's error. */
static int write_now(struct wire_conn *conn)
{
    uv_buf_t buffer = uv_buf_init(conn->out.data, (unsigned)conn->out.len);
    int written = uv_try_write((uv_stream_t *)&conn->tcp, &buffer, 1);
    if (written < 0 && written != UV_EAGAIN)
        return written;
    size_t done = written > 0 ? (size_t)written : 0;
    if (done == conn->out.len) {
        buf_done(&conn->out);
        return 0;
    }
    buf_drop_front(&conn->out, done);
    write_later(conn);
    return 0;
}

/* Returns the buffer in which messages wait: plain bytes become TLS records when they are written. */
static struct buf *queue_of(struct wire_conn *conn)
{
    return conn->tls ? wire_tls_plain(conn->tls) : &conn->out;
}

static void conn_flush(struct wire_conn *conn)
{
    if (conn->overflowed) {
        wire_conn_fail(conn, WIRE_OVERFLOW, "the peer reads too slowly");
        return;
    }
    if (conn->in_flight > 0 || conn->state != CONN_OPEN)
        return;
    if (conn->tls)
        wire_tls_seal(conn->tls);
    int rc = conn->out.len > 0 ? write_now(conn) : 0;
    if (rc < 0)
        wire_conn_fail(conn, reason_of(rc), uv_strerror(rc));
    else if (conn->in_flight == 0 && conn->handlers->drained &&
             (!conn->tls || wire_tls_established(conn->tls)))
        conn->handlers->drained(conn);
}

void wire_flush(struct wire *wire)
{
    /* Bytes that a callback queues in the meantime wait for the next turn, so that one busy stream cannot
     * hold the loop. */
    struct list_node turn;
    list_init(&turn);
    list_for_each_safe(node, after, &wire->dirty)
    {
        list_remove(node);
        list_append(&turn, node);
    }
    wire->unflushed = 0;
    while (!list_empty(&turn)) {
        struct wire_conn *conn = container_of(turn.next, struct wire_conn, dirty_node);
        list_remove(&conn->dirty_node);
        conn_flush(conn);
    }
    if (wire->idling && list_empty(&wire->dirty)) {
        uv_idle_stop(&wire->idle);
        wire->idling = false;
    }
}

/* Flushes after every FLUSH_EVERY callbacks. While every poll finds a full batch of events, libuv handles up
 * to 48 batches before it runs the prepare handles, and with 16,384 connections answers would wait for all of
 * them. */
void wire_flush_sometimes(struct wire *wire)
{
    if (++wire->unflushed >= FLUSH_EVERY)
        wire_flush(wire);
}

void wire_conn_mark_dirty(struct wire_conn *conn)
{
    struct wire *wire = conn->wire;
    if (list_empty(&conn->dirty_node))
        list_append(&wire->dirty, &conn->dirty_node);
    if (!wire->idling)
        uv_idle_start(&wire->idle, on_idle);
    wire->idling = true;
}

static int after_put(struct wire_conn *conn, int rc)
{
    if (rc < 0)
        return rc;
    if (queue_of(conn)->len >= PUSH_BYTES && conn->state == CONN_OPEN && conn->in_flight == 0) {
        if (conn->tls)
            wire_tls_seal(conn->tls);
        if (conn->out.len > 0)
            (void)write_now(conn); /* an error occurs again at the flush, which may call the owner */
    }
    if (wire_conn_queued(conn) > conn->limit) {
        conn->overflowed = true;
        buf_done(queue_of(conn));
        rc = ERROR_LIMIT;
    }
    if ((conn->state == CONN_OPEN && conn->in_flight == 0) || conn->overflowed)
        wire_conn_mark_dirty(conn);
    return rc;
}

int wire_send_agent(struct wire_conn *conn, const struct from_agent *message)
{
    if (conn->state == CONN_CLOSING || conn->failing || conn->overflowed)
        return ERROR_UNAVAILABLE;
    return after_put(conn, codec_put_agent(queue_of(conn), message, NULL));
}

int wire_send_controller(struct wire_conn *conn, const struct from_controller *message)
{
    if (conn->state == CONN_CLOSING || conn->failing || conn->overflowed)
        return ERROR_UNAVAILABLE;
    return after_put(conn, codec_put_controller(queue_of(conn), message, NULL));
}

void wire_close(struct wire_conn *conn)
{
    if (conn->state == CONN_CLOSING || conn->failing)
        return;
    if (conn->state == CONN_OPEN && conn->tls)
        wire_tls_seal(conn->tls);
    if (conn->state == CONN_OPEN && conn->in_flight == 0 && conn->out.len > 0) {
        uv_buf_t buffer = uv_buf_init(conn->out.data, (unsigned)conn->out.len);
        (void)uv_try_write((uv_stream_t *)&conn->tcp, &buffer, 1); /* best effort by contract */
    }
    wire_conn_drop(conn);
}

/* --- receiving ------------------------------------------------------------------------------------ */

static int deliver(struct wire_conn *conn, struct str bytes, struct error *error)
{
    struct wire *wire = conn->wire;
    int rc;
    wire->arena.limit_bytes = CODEC_ARENA_BYTES;
    if (conn->handlers->from_agent) {
        struct from_agent message;
        rc = codec_get_agent(&wire->arena, bytes, &message, error);
        if (rc == 0)
            conn->handlers->from_agent(conn, &message);
    } else {
        struct from_controller message;
        rc = codec_get_controller(&wire->arena, bytes, &message, error);
        if (rc == 0)
            conn->handlers->from_controller(conn, &message);
    }
    arena_done(&wire->arena);
    return rc == ERROR_UNSUPPORTED ? 0 : rc; /* of a later version: skipped */
}

/* Delivers whole frames; returns how many bytes they took, or negative when the stream is broken. The
 * connection may be closing afterwards. */
static ssize_t deliver_all(struct wire_conn *conn, const char *data, size_t len, struct error *error)
{
    size_t pos = 0;
    while (conn->state == CONN_OPEN) {
        struct str bytes;
        size_t used;
        int rc = codec_frame(data + pos, len - pos, &bytes, &used, error);
        bool stranger = conn->accepted && !conn->framed && !conn->tls; /* TLS has verified its peer by now */
        if (rc == 0 && stranger && used > STRANGER_FRAME_MAX)
            return error_set(error, ERROR_CORRUPT, "its first frame is larger than %d bytes",
                             STRANGER_FRAME_MAX);
        if (rc == 0)
            break;
        if (rc > 0) {
            conn->framed = true;
            rc = deliver(conn, bytes, error);
        }
        if (rc < 0)
            return rc;
        pos += used;
    }
    return (ssize_t)pos;
}

/* Fails a broken connection. `bytes` were received and are no complete frame. */
static void conn_break(struct wire_conn *conn, struct str bytes, enum wire_reason reason, const char *why)
{
    (void)wire_last_wrong(conn, bytes, &reason, &why);
    wire_conn_fail(conn, reason, why);
}

static void conn_read(struct wire_conn *conn, ssize_t count, const uv_buf_t *buffer)
{
    if (count < 0) {
        conn_break(conn, buf_str(&conn->in), reason_of((int)count), uv_strerror((int)count));
        return;
    }
    struct error error;
    bool kept = conn->in.len > 0;
    conn->seen = 0; /* the bytes left afterwards are no complete frame */
    if (kept)
        buf_add(&conn->in, buffer->base, (size_t)count);
    const char *data = kept ? conn->in.data : buffer->base;
    size_t len = kept ? conn->in.len : (size_t)count;
    ssize_t used = deliver_all(conn, data, len, &error);
    if (conn->state != CONN_OPEN)
        return;
    if (used < 0) {
        conn_break(conn, (struct str){data, len}, WIRE_PROTOCOL, error.text);
        return;
    }
    if (!kept && (size_t)used < len)
        buf_add(&conn->in, data + used, len - (size_t)used);
    else if (kept && (size_t)used == len)
        buf_done(&conn->in);
    else if (kept && used > 0)
        buf_drop_front(&conn->in, (size_t)used);
    wire_conn_count(conn, conn->accepted && !conn->framed ? conn->in.len : 0);
    if (conn->counted > 0 && conn->wire->stranger_bytes > STRANGER_BYTES_MAX)
        wire_conn_fail(conn, WIRE_PROTOCOL, "too many connections have sent half of their first frame");
}

void wire_conn_take_kept(struct wire_conn *conn)
{
    list_remove(&conn->kept_node);
    if (conn->out.len > 0 && conn->in_flight == 0)
        wire_conn_mark_dirty(conn);
    if (conn->in.len > 0)
        conn_read(conn, 0, &(uv_buf_t){.base = conn->wire->read_buffer});
    if (conn->state != CONN_OPEN)
        return;
    if (conn->garbled)
        wire_conn_fail(conn, WIRE_PROTOCOL, "TLS: a record cannot be opened");
    else if (conn->broke)
        conn_break(conn, buf_str(&conn->in), reason_of(-conn->broke), strerror(conn->broke));
}

/* Continues after a step of the handshake. Returns true if the connection is open. */
static bool conn_shaken(struct wire_conn *conn, int rc, struct error *error)
{
    rc = wire_tls_finish(conn->tls, rc, error);
    if (rc < 0 && conn->out.len > 0)
        (void)write_now(conn); /* the alert tells the peer why */
    else if (conn->out.len > 0)
        wire_conn_mark_dirty(conn);
    if (rc < 0) {
        wire_conn_fail(conn, WIRE_PROTOCOL, error->text);
        return false;
    }
    if (rc == 0)
        return false;
    conn->shaking = false;
    conn->wire->connecting--;
    wire_conn_leaves_crowd(conn);
    if (wire_conn_queued(conn) > 0)
        wire_conn_mark_dirty(conn);
    if (conn->handlers->opened)
        conn->handlers->opened(conn);
    return conn->state == CONN_OPEN;
}

static bool conn_shake(struct wire_conn *conn)
{
    struct error error;
    int rc = wire_tls_step(conn->tls, &error);
    return conn_shaken(conn, rc, &error);
}

/* Decrypts received records. The loop's buffer holds the socket's bytes until these are copied, and plain
 * bytes afterwards. */
static void conn_read_records(struct wire_conn *conn)
{
    struct error error;
    ssize_t plain = 1;
    while (plain > 0 && conn->state == CONN_OPEN) {
        plain = wire_tls_open(conn->tls, conn->wire->read_buffer, READ_BYTES, &error);
        if (plain < 0)
            wire_conn_fail(conn, WIRE_PROTOCOL, error.text);
        else if (plain > 0)
            conn_read(conn, plain, &(uv_buf_t){.base = conn->wire->read_buffer});
    }
}

static void read_start(struct wire_conn *conn);

void wire_conn_shaken(struct wire_conn *conn)
{
    if (conn->orphan) {
        wire_conn_free(conn);
        return;
    }
    if (conn->state != CONN_OPEN) /* its handle is closing */
        return;
    read_start(conn);
    if (conn->state == CONN_OPEN && conn_shaken(conn, conn->shake_rc, &conn->shake_error))
        conn_read_records(conn);
}

static void conn_read_tls(struct wire_conn *conn, const char *data, size_t len)
{
    wire_tls_take(conn->tls, data, len);
    if (wire_tls_established(conn->tls)) {
        conn_read_records(conn);
    } else if (conn->accepted) {
        uv_read_stop((uv_stream_t *)&conn->tcp);
        shaker_give(conn->wire->shaker, conn);
    } else if (conn_shake(conn)) {
        conn_read_records(conn);
    }
}

/* Examines the first bytes. Returns false if the peer speaks another protocol; the connection has then
 * failed. */
static bool conn_hear_first(struct wire_conn *conn, struct str bytes)
{
    enum wire_reason reason;
    const char *why;
    conn->heard = true;
    if (!wire_first_wrong(conn, bytes, &reason, &why))
        return true;
    struct str answer = wire_first_answer(reason);
    if (conn->accepted && answer.len > 0 && conn->in_flight == 0) {
        uv_buf_t buffer = uv_buf_init((char *)answer.data, (unsigned)answer.len);
        (void)uv_try_write((uv_stream_t *)&conn->tcp, &buffer, 1); /* best effort, whatever the peer is */
    }
    wire_conn_fail(conn, reason, why);
    return false;
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct wire_conn *conn = stream->data;
    struct wire *wire = conn->wire;
    if (count == 0 || conn->state != CONN_OPEN)
        return;
    if (!list_empty(&conn->kept_node)) {
        /* The loop's buffer holds the newer bytes in the meantime: an owner may send, but reads nothing. */
        wire_conn_take_kept(conn);
        if (conn->state != CONN_OPEN)
            return;
    }
    if (count > 0 && !conn->heard && !conn_hear_first(conn, (struct str){buffer->base, (size_t)count}))
        return;
    if (conn->tls && count > 0)
        conn_read_tls(conn, buffer->base, (size_t)count);
    else
        conn_read(conn, count, buffer);
    wire_flush_sometimes(wire);
}

/* Provides the loop's one read buffer: libuv calls on_read right after each read. */
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    const struct wire_conn *conn = handle->data;
    bool shakes = conn->accepted && conn->tls && !wire_tls_established(conn->tls);
    *buffer = uv_buf_init(conn->wire->read_buffer, shakes ? SHAKING_READ_BYTES : READ_BYTES);
}

static void read_start(struct wire_conn *conn)
{
    int rc = uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, on_read);
    if (rc < 0)
        wire_conn_fail(conn, WIRE_RESET, uv_strerror(rc));
}

void wire_conn_open(struct wire_conn *conn)
{
    conn->state = CONN_OPEN;
    uv_tcp_nodelay(&conn->tcp, 1);
    read_start(conn);
    if (conn->state != CONN_OPEN)
        return;
    if (conn->tls_settings) {
        struct wire *wire = conn->wire;
        conn->tls = wire_tls_begin(conn, conn->tls_settings, conn->accepted ? NULL : conn->tls_server.data);
        /* Moves the bytes that were queued before the connection was made. */
        buf_add_str(wire_tls_plain(conn->tls), buf_str(&conn->out));
        buf_done(&conn->out);
        conn->shaking = true;
        wire->connecting++;
        if (!uv_is_active((uv_handle_t *)&wire->sweep))
            uv_timer_start(&wire->sweep, wire_on_sweep, WIRE_SWEEP_MS, WIRE_SWEEP_MS);
        if (!conn->accepted)
            (void)conn_shake(conn);
        return;
    }
    if (conn->out.len > 0)
        wire_conn_mark_dirty(conn);
    if (conn->handlers->opened)
        conn->handlers->opened(conn);
}
