/* session.h - one websocket connection (websocket.h) on the loop, after its HTTP request was answered with
 * 101. Private to api.
 *
 * The session owns neither the descriptor nor the context. It calls `release` once, when it no longer uses
 * the descriptor. After session_end() it calls no other handler. The caller must bound the bytes that wait to
 * be sent: see session_queued(), and `written`, which reports that some have been sent.
 */
#ifndef PHX_HOST_API_SESSION_H
#define PHX_HOST_API_SESSION_H

#include <uv.h>

#include "net/websocket.h"

struct session;

struct session_handlers {
    /* A piece of a binary message. */
    void (*data)(void *context, struct str bytes, bool first, bool last);
    void (*written)(void *context);
    /* The client has disconnected, closed the websocket or violated the protocol. The session must not be
     * used any more. */
    void (*closed)(void *context);
    void (*release)(void *context);
};

/* Begins a session on a connected, non-blocking socket. `first` are bytes that the client sent after its
 * request; they are copied. `handlers` must outlive the session. The loop calls the handlers; only
 * session_drop() calls one itself. */
struct session *session_new(uv_loop_t *loop, int fd, struct str first,
                            const struct session_handlers *handlers, void *context);
/* Sends a binary message: `channel`, then `bytes`. */
void session_send(struct session *session, uint8_t channel, struct str bytes);
size_t session_queued(const struct session *session);
/* Stops or resumes reading. Data that was read already (one chunk at most) is still passed to `data`. */
void session_pause(struct session *session, bool paused);
/* Ends the session: sends what is queued and a close frame, waits a moment for the client's close frame, and
 * releases the descriptor. */
void session_end(struct session *session, enum websocket_code code, struct str reason);
/* Ends the session at once; calls `release` before it returns. */
void session_drop(struct session *session);

#endif
