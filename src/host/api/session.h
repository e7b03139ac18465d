/* session.h - one websocket connection (websocket.h) on the loop, after its HTTP request was answered with
 * 101. Private to api.
 *
 * The session owns neither the descriptor nor its context: `release` gives the descriptor back, once, when
 * the session has stopped to use it. After session_end() no handler but `release` is called. The caller
 * bounds the bytes that are queued to be sent: session_queued(), and `written` when some of it has left.
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
    /* The client has gone, closed or broken the protocol; the session is gone when this returns. */
    void (*closed)(void *context);
    void (*release)(void *context);
};

/* `first`: bytes that the client sent behind its request. Handlers are called from the
 * loop only, never from inside. */
struct session *session_new(uv_loop_t *loop, int fd, struct str first,
                            const struct session_handlers *handlers, void *context);
/* Sends a binary message: `channel`, then `bytes`. */
void session_send(struct session *session, uint8_t channel, struct str bytes);
size_t session_queued(const struct session *session);
/* While paused nothing is read, at most one more chunk is handed out. */
void session_pause(struct session *session, bool paused);
/* Sends what is queued and a close frame, waits a moment for the client's, and goes. */
void session_end(struct session *session, enum websocket_code code, struct str reason);
/* Goes at once; `release` is called from inside. */
void session_drop(struct session *session);

#endif
