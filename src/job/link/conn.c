#include "job/link/conn.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_SIZE (64u * 1024)

void job_conn_init(struct job_conn *conn)
{
    *conn = (struct job_conn){.fd = -1};
}

void job_conn_open(struct job_conn *conn, int fd)
{
    assert(conn->fd < 0 && fd >= 0);
    conn->fd = fd;
}

void job_conn_close(struct job_conn *conn)
{
    if (conn->fd >= 0)
        close(conn->fd);
    free(conn->in.data);
    free(conn->out.data);
    job_conn_init(conn);
}

/* Reserves `len` more bytes. Moves the valid bytes to the front if that is enough. */
static int reserve(struct job_bytes *bytes, size_t len)
{
    if (bytes->pos == bytes->len)
        bytes->pos = bytes->len = 0;
    if (bytes->cap - bytes->len >= len)
        return 0;
    size_t used = bytes->len - bytes->pos;
    if (bytes->pos > 0) {
        memmove(bytes->data, bytes->data + bytes->pos, used);
        bytes->pos = 0;
        bytes->len = used;
    }
    if (bytes->cap - used >= len)
        return 0;
    size_t cap = bytes->cap * 2 > used + len ? bytes->cap * 2 : used + len;
    uint8_t *data = realloc(bytes->data, cap);
    if (data == NULL)
        return -1;
    bytes->data = data;
    bytes->cap = cap;
    return 0;
}

int job_conn_read(struct job_conn *conn)
{
    if (conn->fd < 0 || reserve(&conn->in, READ_SIZE) != 0)
        return -1;
    ssize_t got = recv(conn->fd, conn->in.data + conn->in.len, READ_SIZE, 0);
    if (got > 0) {
        conn->in.len += (size_t)got;
        return 0;
    }
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0 : -1;
}

int job_conn_flush(struct job_conn *conn)
{
    struct job_bytes *out = &conn->out;
    while (out->pos < out->len) {
        ssize_t sent = send(conn->fd, out->data + out->pos, out->len - out->pos, MSG_NOSIGNAL);
        if (sent > 0)
            out->pos += (size_t)sent;
        else if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        else if (sent == 0 || errno != EINTR)
            return -1;
    }
    return 0;
}

int job_conn_queue(struct job_conn *conn, const void *data, size_t len)
{
    if (conn->fd < 0 || conn->out.len - conn->out.pos + len > JOB_CONN_OUT_MAX)
        return -1;
    if (reserve(&conn->out, len) != 0)
        return -1;
    memcpy(conn->out.data + conn->out.len, data, len);
    conn->out.len += len;
    return job_conn_flush(conn);
}

bool job_conn_pending(const struct job_conn *conn)
{
    return conn->out.pos < conn->out.len;
}

const uint8_t *job_conn_data(const struct job_conn *conn, size_t *ret_len)
{
    *ret_len = conn->in.len - conn->in.pos;
    return *ret_len == 0 ? NULL : conn->in.data + conn->in.pos;
}

void job_conn_take(struct job_conn *conn, size_t len)
{
    assert(len <= conn->in.len - conn->in.pos);
    conn->in.pos += len;
}
