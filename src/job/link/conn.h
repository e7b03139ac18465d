/* conn.h - one non-blocking stream connection with its buffers: bytes in, bytes out, without their meaning.
 *
 * Not thread-safe: the owner's lock covers it. The caller bounds the input: it takes whole frames out of `in`
 * and closes the connection of a peer whose frames are too long. The output has a limit, JOB_CONN_OUT_MAX. */
#ifndef PHX_JOB_LINK_CONN_H
#define PHX_JOB_LINK_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_CONN_OUT_MAX (256u * 1024 * 1024)

struct job_bytes {
    uint8_t *data;
    size_t pos, len, cap; /* the valid bytes are [pos, len) */
};

struct job_conn {
    int fd; /* -1: closed */
    struct job_bytes in, out;
};

void job_conn_init(struct job_conn *conn);         /* closed */
void job_conn_open(struct job_conn *conn, int fd); /* takes the descriptor, which must be non-blocking */
void job_conn_close(struct job_conn *conn);        /* closes and frees; may be opened again */

/* Reads the available bytes, at most a fixed amount per call. Returns 0, or -1 if the peer has closed, the
 * connection broke, or there is no memory. */
int job_conn_read(struct job_conn *conn);

/* Appends to the output and sends as much as the socket takes. Returns 0, or -1 if the connection broke, the
 * output would exceed JOB_CONN_OUT_MAX, or there is no memory. */
int job_conn_queue(struct job_conn *conn, const void *data, size_t len);
/* Sends as much of the output as the socket takes. Returns 0, or -1 if the connection broke. */
int job_conn_flush(struct job_conn *conn);

bool job_conn_pending(const struct job_conn *conn); /* output is waiting for the socket */

/* Returns the bytes that were read and not yet taken; valid until the next call that changes `conn`. NULL if
 * there are none. */
const uint8_t *job_conn_data(const struct job_conn *conn, size_t *ret_len);
/* Drops the first `len` of those bytes. */
void job_conn_take(struct job_conn *conn, size_t len);

#endif
